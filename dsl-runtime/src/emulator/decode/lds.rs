//! Copies from global memory straight to LDS.

use lacewing_core::Error;
use lacewing_core::atoms::CopySpec;
use lacewing_core::mlir::ir::OperationRef;

use super::attributes;
use super::emit::{Decoder, TRUE};
use super::types::{Elem, ValueType};
use crate::emulator::exec::elementwise::UnaryOp;
use crate::emulator::lanes::{MaskReg, Reg};
use crate::emulator::op::{CopyOp, Op, ToLds};

/// The source of a copy in one half of the wave.
struct Source {
    /// Addresses of the lanes.
    address: Reg,
    /// Whether the address is known to be valid, or the range and the offset that say so, in elements of so many bytes.
    bounds: Option<(Reg, Reg, u32)>,
}

impl Decoder {
    /// `lw.load_lds` and, with a range, `lw.buffer_load_lds`. The hardware checks the range for each dword (CDNA3 ISA,
    /// Buffer addressing: range checking), so these copies are made of dwords.
    pub(crate) fn load_lds(&mut self, op: &OperationRef<'_, '_>, bounded: bool) -> Result<(), Error> {
        let bytes = attributes::unsigned(op, "bytes").unwrap_or(0);
        let Some(spec) = CopySpec::to_lds(bytes as usize, bounded).filter(|_| self.halves == 2) else {
            return Err(self.fail(op, format!("no lane copies {bytes} bytes to LDS")));
        };
        let target = self.program.target();
        spec.legal_on(target).map_err(|reason| self.fail(op, reason))?;
        let unit = if bounded { attributes::unsigned(op, "unit").unwrap_or(0) } else { bytes };
        if unit == 0 || !bytes.is_multiple_of(unit) {
            return Err(self.fail(op, format!("{bytes} bytes of elements of {unit}")));
        }
        let destination = self.operand(op, 0)?;
        let from = self.operand(op, 1)?;
        let bounds = if bounded { Some((self.operand(op, 2)?, self.operand(op, 3)?)) } else { None };
        let mask = if bounded { self.operand(op, 4)?.mask(0) } else { TRUE };
        let inside = self.masks.take(1);
        for half in 0..self.halves {
            let mut source = Source { address: from.half(half), bounds: None };
            if let Some((range, offset)) = bounds {
                let long = self.slots.take(2);
                source.address = self.slots.take(2);
                self.emit(Op::Unary { op: UnaryOp::SignExtend64, d: long, a: offset.half(half) });
                self.emit(Op::Address64 { d: source.address, base: from.half(half), index: long, scale: unit });
                self.slots.give(long, 2);
                source.bounds = Some((range.half(half), offset.half(half), unit));
            }
            let lds = ToLds { first: destination.base, pitch: spec.pitch as u32 / 8, part: 0 };
            // Without a range a lane's bytes go together, where their number allows it.
            let piece = if bounded || bytes == 12 { 4 } else { bytes };
            for part in (0..bytes).step_by(piece as usize) {
                let lds = ToLds { part, ..lds };
                self.lds_part(op, destination.half(half), &source, (mask, inside), (half, piece), lds)?;
            }
            if source.bounds.is_some() {
                self.slots.give(source.address, 2);
            }
        }
        self.masks.give(inside, 1);
        Ok(())
    }

    /// `piece` bytes of each lane of a half.
    fn lds_part(
        &mut self,
        op: &OperationRef<'_, '_>,
        destination: Reg,
        source: &Source,
        (mask, inside): (MaskReg, MaskReg),
        (half, piece): (u32, u32),
        lds: ToLds,
    ) -> Result<(), Error> {
        let ty = ValueType { elem: Elem::I32, count: piece / 4, is_vector: true };
        let to = self.access(op, 0, ty, piece, half)?;
        let from = self.access(op, 1, ty, piece, half)?;
        let mut valid = mask;
        if let Some((range, offset, unit)) = source.bounds {
            // The test looks at the bytes up to the piece's end.
            let mut shape = *self.program.access(from);
            (shape.bytes, shape.element) = (lds.part + piece, unit);
            self.program.accesses.push(shape);
            let access = self.program.accesses.len() as u32 - 1;
            self.emit(Op::BufferMask { d: inside, mask, offset, bytes: range, access });
            valid = inside;
        }
        let mut address = source.address;
        if lds.part > 0 {
            let step = self.constant64(lds.part.into());
            address = self.slots.take(2);
            self.emit(Op::Address64 { d: address, base: source.address, index: step, scale: 1 });
        }
        self.program.copies.push(CopyOp {
            destination,
            source: address,
            valid,
            to,
            from,
            half: half as u8,
            lds: Some(lds),
        });
        let table = self.program.copies.len() as u32 - 1;
        self.emit(Op::CopyAsync { table });
        if lds.part > 0 {
            self.slots.give(address, 2);
        }
        Ok(())
    }
}
