//! Matrix instructions that the emulator executes by their layouts.

use lacewing_core::Error;
use lacewing_core::atoms::{MatrixOp, MmaSpec, Role};
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::attributes;
use super::emit::Decoder;
use super::types::Place;
use crate::emulator::exec::atom::{AtomOp, spots};
use crate::emulator::op::Op;

impl Decoder {
    /// The instruction of an op of the table; an error for one that the chip does not have.
    pub(crate) fn instruction(&self, op: &OperationRef<'_, '_>, which: MatrixOp) -> Result<&'static MmaSpec, Error> {
        let shape = ["m", "n", "k"].map(|name| attributes::unsigned(op, name).unwrap_or(0) as usize);
        let kind = attributes::string(op, "kind").unwrap_or_default();
        let Some(spec) = MmaSpec::find(which, shape, kind) else {
            let [m, n, k] = shape;
            return Err(self.fail(op, format!("there is no {} of shape {m}x{n}x{k} for {kind}", which.name())));
        };
        let target = self.program.target();
        spec.legal_on(target)
            .map_err(|reason| self.fail(op, format!("`{}` does not exist on {target}: {reason}", spec.name())))?;
        Ok(spec)
    }

    /// `lw.mma_sync` or `lw.mfma` by its layouts.
    pub(crate) fn atom(&mut self, op: &OperationRef<'_, '_>, spec: &'static MmaSpec) -> Result<(), Error> {
        let counts = [Role::A, Role::B, Role::C].map(|role| spec.operand(role).registers());
        if op.operand_count() != counts.iter().sum::<usize>()
            || op.result_count() != counts[2]
            || spec.threads() != 32 * self.halves as usize
        {
            return Err(self.unknown(op));
        }
        let halves = self.halves;
        let both = |place: Place| [place.half(0), place.half(halves - 1)];
        let mut operands = Vec::new();
        for index in 0..op.operand_count() {
            operands.push(both(self.operand(op, index)?));
        }
        let mut results = Vec::new();
        for index in 0..counts[2] {
            results.push(both(self.result(op, index)?));
        }
        let (a, rest) = operands.split_at(counts[0]);
        let (b, c) = rest.split_at(counts[1]);
        self.program.atoms.push(AtomOp {
            spec,
            a: spots(spec, Role::A, a),
            b: spots(spec, Role::B, b),
            c: spots(spec, Role::C, c),
            d: spots(spec, Role::C, &results),
        });
        let table = self.program.atoms.len() as u32 - 1;
        self.emit(Op::Atom { table });
        Ok(())
    }
}
