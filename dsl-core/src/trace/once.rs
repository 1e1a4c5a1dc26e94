//! Operations without effects that are made once: what the language's own address arithmetic is made of.
//!
//! A tile is partitioned wherever that reads best, often in a loop and several times. The thread's part of the offsets is
//! the same each time: such an operation is found again where it was made, and it is made outside of the loops that its
//! operands do not come from. What a kernel computes by operators of its own is made where it is written.

use super::{Attr, Constant, IrType, Loc, RawValue, Trace, with};
use crate::ScalarType;

/// An operand of an operation that is made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// A value of the trace.
    Value(RawValue),
    /// A constant, which is made where the operation is.
    Known(ScalarType, i64),
}

impl From<RawValue> for Operand {
    fn from(value: RawValue) -> Self {
        Self::Value(value)
    }
}

impl Operand {
    /// What is known of it.
    pub(crate) fn known(self) -> Option<i64> {
        match self {
            Self::Known(_, value) => Some(value),
            Self::Value(value) => super::known(value),
        }
    }

    /// It as a value of the open trace.
    pub(crate) fn value(self, loc: Loc) -> RawValue {
        match self {
            Self::Known(ty, value) => super::constant(ty, Constant::Int(value), loc),
            Self::Value(value) => value,
        }
    }
}

/// What makes two operations the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    name: &'static str,
    operands: Vec<Operand>,
    ty: IrType,
    attributes: Vec<(&'static str, Attr)>,
}

impl Trace {
    /// The result of an operation without effects, one that cannot trap whatever its operands are.
    ///
    /// It is appended to the outermost region that its operands allow, but not moved out of the arm of a branch: there it
    /// may be rare.
    fn once(
        &mut self,
        name: &'static str,
        operands: &[Operand],
        ty: IrType,
        attributes: &[(&'static str, Attr)],
        loc: Loc,
    ) -> RawValue {
        let sources = operands.iter().map(|operand| self.source(*operand)).collect::<Option<Vec<_>>>();
        let Some((sources, lowest)) = sources.and_then(|sources| self.lowest(&sources).map(|lowest| (sources, lowest)))
        else {
            // An operand that cannot be used: the ordinary way says why.
            let innermost = self.open.len().saturating_sub(1);
            let operands: Vec<_> = operands.iter().map(|operand| self.placed(*operand, innermost, loc)).collect();
            return self.emit1(name, &operands, ty, attributes, loc);
        };
        let key = Key { name, operands: sources, ty, attributes: attributes.to_vec() };
        if let Some(found) = self.open.iter().rev().find_map(|region| region.once.get(&key)) {
            return *found;
        }
        let innermost = self.open.len().saturating_sub(1);
        let leaves = |depth: &usize| self.open.get(depth + 1).is_some_and(|region| region.repeats);
        let depth = (lowest..innermost).rev().take_while(leaves).last().unwrap_or(innermost);
        let placed: Vec<_> = key.operands.iter().map(|operand| self.placed(*operand, depth, loc)).collect();
        let results = self.emit_at(depth, (name, &placed, &[ty], attributes), Vec::new(), loc);
        let result = results.first().copied().unwrap_or(RawValue::DEAD);
        if let Some(region) = self.open.get_mut(depth) {
            region.once.insert(key, result);
        }
        result
    }

    /// An operand in the form in which it is compared; `None` for a value that was refused or is of another trace.
    fn source(&self, operand: Operand) -> Option<Operand> {
        let Operand::Value(value) = operand else { return Some(operand) };
        let info = self.info(value)?;
        match (info.known, info.ty) {
            (Some(known), IrType::Scalar(scalar)) => Some(Operand::Known(signless(scalar), known)),
            _ => info.value.is_some().then_some(operand),
        }
    }

    /// An operand as a value of an open region, counted from the outermost.
    fn placed(&mut self, operand: Operand, depth: usize, loc: Loc) -> RawValue {
        match operand {
            Operand::Value(value) => value,
            Operand::Known(scalar, known) => self.constant_at(depth, scalar, Constant::Int(known), loc),
        }
    }

    /// The outermost open region in which all operands exist; `None` where one is of a region that is closed.
    fn lowest(&self, operands: &[Operand]) -> Option<usize> {
        operands.iter().try_fold(0, |lowest, operand| {
            let Operand::Value(value) = operand else { return Some(lowest) };
            let region = self.info(*value)?.region;
            let depth = self.open.iter().rposition(|open| open.id == region)?;
            Some(lowest.max(depth))
        })
    }
}

/// Of types that are one to MLIR, the signed one.
fn signless(ty: ScalarType) -> ScalarType {
    match ty {
        ScalarType::U32 => ScalarType::I32,
        ScalarType::U64 => ScalarType::I64,
        other => other,
    }
}

/// The result of an operation without effects, made once: see [`Trace::once`].
pub(crate) fn once(
    name: &'static str,
    operands: &[Operand],
    ty: IrType,
    attributes: &[(&'static str, Attr)],
    loc: Loc,
) -> RawValue {
    with(|trace| trace.once(name, operands, ty, attributes, loc)).unwrap_or(RawValue::DEAD)
}
