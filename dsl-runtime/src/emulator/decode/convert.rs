//! Conversions between types.

use lacewing_core::Error;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::arith::rounds_toward_zero;
use super::emit::{Canon, Decoder};
use super::lifetime::value_key;
use super::types::{Elem, Place, ValueType};
use crate::emulator::exec::elementwise::{CompareOp, UnaryOp};
use crate::emulator::lanes::Reg;
use crate::emulator::op::Op;

impl Decoder {
    fn conversion_places(&mut self, op: &OperationRef<'_, '_>) -> Result<(Place, Place), Error> {
        let a = self.operand(op, 0)?;
        Ok((self.result(op, 0)?, a))
    }

    fn unary_elements(&mut self, d: Place, a: Place, canon: Canon, out: Canon, chosen: UnaryOp) {
        self.elementwise(d, &[(a, canon)], out, &mut |this, d, operands| {
            this.emit(Op::Unary { op: chosen, d, a: operands[0] });
        });
    }

    fn move_elements(&mut self, d: Place, a: Place, canon: Canon, out: Canon) {
        self.elementwise(d, &[(a, canon)], out, &mut |this, d, operands| {
            this.emit(Op::Move { d, a: operands[0], count: 1 });
        });
    }

    pub(super) fn convert_integer(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<(), Error> {
        let a = self.operand(op, 0)?;
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        let (from, to) = (a.ty.elem, self.type_of(op, result)?);
        if self.lifetimes.is_alias(value_key(result)) {
            self.bind(value_key(result), Place { ty: to, ..a });
            return Ok(());
        }
        let d = self.result(op, 0)?;
        let signed = matches!(name, "arith.extsi" | "arith.index_cast");
        match (from.bits(), to.elem.bits()) {
            (1, 64) => {
                let on = self.constant64(if signed { u64::MAX } else { 1 });
                let off = self.constant64(0);
                self.choose_constants(d, a, on, off);
            }
            (1, _) => {
                // Narrow vectors of conditions are rare: element by element.
                let on = self.constant32(if signed { u32::MAX } else { 1 });
                let off = self.constant32(0);
                self.choose_constants(d, a, on, off);
            }
            (64, 1) => {
                let one = self.constant64(1);
                self.low_bit(d, a, one);
            }
            (_, 1) => {
                let one = self.constant32(1);
                self.low_bit(d, a, one);
            }
            (64, 64) => self.copy(d, a),
            (64, _) => self.unary_elements(d, a, Canon::Raw, Canon::Raw, UnaryOp::Truncate64),
            (_, 64) => {
                let (canon, widen) = if signed {
                    (Canon::Signed, UnaryOp::SignExtend64)
                } else {
                    (Canon::Unsigned, UnaryOp::ZeroExtend64)
                };
                self.unary_elements(d, a, canon, Canon::Raw, widen);
            }
            (from, to) if from < to => {
                let canon = if signed { Canon::Signed } else { Canon::Unsigned };
                self.move_elements(d, a, canon, Canon::Raw);
            }
            _ => self.move_elements(d, a, Canon::Raw, Canon::Raw),
        }
        Ok(())
    }

    /// `d = a ? on : off` for conditions.
    pub(super) fn choose_constants(&mut self, d: Place, a: Place, on: Reg, off: Reg) {
        let wide = d.ty.elem.is_wide();
        let count = d.ty.count;
        let mut at = 0;
        self.elementwise(d, &[], Canon::Raw, &mut |this, d, _| {
            let (half, mask) = ((at / count) as u8, a.mask(at % count));
            this.emit(if wide {
                Op::Select64 { half, d, mask, a: on, b: off }
            } else {
                Op::Select32 { half, d, mask, a: on, b: off }
            });
            at += 1;
        });
    }

    /// `d = a & 1 != 0`, where `one` is a register of ones.
    fn low_bit(&mut self, d: Place, a: Place, one: Reg) {
        use crate::emulator::exec::elementwise::BinaryOp;
        let wide = a.ty.elem.is_wide();
        let slots = if wide { 2 } else { 1 };
        let (and, equal) = if wide { (BinaryOp::And64, CompareOp::EqI64) } else { (BinaryOp::And32, CompareOp::EqI32) };
        for element in 0..d.ty.count {
            for half in 0..self.halves {
                let (reg, temporary) = self.fetch(a, half, element, Canon::Raw);
                let bit = self.slots.take(slots);
                self.emit(Op::Binary { op: and, d: bit, a: reg, b: one });
                let (half, d) = (half as u8, d.mask(element));
                self.emit(Op::Compare { op: equal, negate: false, half, d, a: bit, b: one });
                self.slots.give(bit, slots);
                if temporary {
                    self.slots.give(reg, 1);
                }
            }
        }
    }

    pub(super) fn extend_float(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (d, a) = self.conversion_places(op)?;
        match (a.ty.elem, d.ty.elem) {
            // The widening itself is the result: no copy.
            (Elem::F16 | Elem::Bf16, Elem::F32) => self.widen_halves(d, a),
            (_, Elem::F64) => self.unary_elements(d, a, Canon::Float, Canon::Raw, UnaryOp::F32ToF64),
            (Elem::E4m3 | Elem::E5m2, Elem::F32 | Elem::F16 | Elem::Bf16) => {
                self.move_elements(d, a, Canon::Float, Canon::Float);
            }
            _ => return Err(self.unknown(op)),
        }
        Ok(())
    }

    fn widen_halves(&mut self, d: Place, a: Place) {
        let is_f16 = a.ty.elem == Elem::F16;
        for half in 0..self.halves {
            for element in 0..d.ty.count {
                let (d, a) = (d.half(half) + element, a.half(half) + element / 2);
                self.emit(match (is_f16, element % 2) {
                    (true, 0) => Op::F16LowToF32 { d, a },
                    (true, _) => Op::F16HighToF32 { d, a },
                    (false, 0) => Op::Unary { op: UnaryOp::Bf16LowToF32, d, a },
                    (false, _) => Op::Unary { op: UnaryOp::Bf16HighToF32, d, a },
                });
            }
        }
    }

    pub(super) fn truncate_float(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let toward_zero = rounds_toward_zero(self, op)?;
        let (d, a) = self.conversion_places(op)?;
        // From binary64 to 16 bits through binary32 rounded to odd, so that rounding happens once.
        let from_f64 = a.ty.elem == Elem::F64;
        let narrow = match (d.ty.elem, toward_zero) {
            (Elem::F32, false) if from_f64 => {
                self.unary_elements(d, a, Canon::Raw, Canon::Raw, UnaryOp::F64ToF32);
                return Ok(());
            }
            (Elem::F32, true) if from_f64 => {
                self.unary_elements(d, a, Canon::Raw, Canon::Raw, UnaryOp::F64ToF32TowardZero);
                return Ok(());
            }
            (Elem::F16 | Elem::Bf16, false) => None,
            (Elem::F16, true) => Some(UnaryOp::F32ToF16TowardZero),
            (Elem::Bf16, true) => Some(UnaryOp::F32ToBf16TowardZero),
            (Elem::E4m3, false) => Some(UnaryOp::F32ToE4m3),
            (Elem::E5m2, false) => Some(UnaryOp::F32ToE5m2),
            _ => return Err(self.unknown(op)),
        };
        self.round_elements(d, a, narrow);
        Ok(())
    }

    pub(super) fn saturate_to_fp8(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (d, a) = self.conversion_places(op)?;
        let narrow = match d.ty.elem {
            Elem::E4m3 => UnaryOp::F32ToE4m3Saturating,
            Elem::E5m2 => UnaryOp::F32ToE5m2Saturating,
            _ => return Err(self.unknown(op)),
        };
        self.round_elements(d, a, Some(narrow));
        Ok(())
    }

    /// Floats to a narrower format: by an operation, or to nearest even as [`Self::pack`] does.
    fn round_elements(&mut self, d: Place, a: Place, narrow: Option<UnaryOp>) {
        let from_f64 = a.ty.elem == Elem::F64;
        if narrow.is_none() && !from_f64 && a.ty.elem == Elem::F32 {
            for half in 0..self.halves {
                let elements: Vec<Reg> = (0..d.ty.count).map(|element| a.half(half) + element).collect();
                self.pack_half(d, half, &elements, Canon::Float);
            }
            return;
        }
        let out = if narrow.is_none() { Canon::Float } else { Canon::Raw };
        self.elementwise(d, &[(a, Canon::Float)], out, &mut |this, d, operands| {
            let mut source = operands[0];
            if from_f64 {
                this.emit(Op::Unary { op: UnaryOp::F64ToF32Odd, d, a: source });
                source = d;
            }
            match narrow {
                Some(op) => {
                    this.emit(Op::Unary { op, d, a: source });
                }
                None if source != d => {
                    this.emit(Op::Move { d, a: source, count: 1 });
                }
                None => {}
            }
        });
    }

    pub(super) fn integer_to_float(&mut self, op: &OperationRef<'_, '_>, signed: bool) -> Result<(), Error> {
        let (d, a) = self.conversion_places(op)?;
        if a.is_mask() {
            // A condition as a signed number is 0 or -1.
            let one = if signed { -1.0_f64 } else { 1.0 };
            if d.ty.elem == Elem::F64 {
                let (on, off) = (self.constant64(one.to_bits()), self.constant64(0));
                self.choose_constants(d, a, on, off);
                return Ok(());
            }
            let (on, off) = (self.constant32((one as f32).to_bits()), self.constant32(0));
            let count = d.ty.count;
            let mut at = 0;
            self.elementwise(d, &[], Canon::Float, &mut |this, d, _| {
                let (half, mask) = ((at / count) as u8, a.mask(at % count));
                this.emit(Op::Select32 { half, d, mask, a: on, b: off });
                at += 1;
            });
            return Ok(());
        }
        let canon = if signed { Canon::Signed } else { Canon::Unsigned };
        let wide = a.ty.elem.is_wide();
        let chosen = match (d.ty.elem, wide, signed) {
            (Elem::F64, false, true) => UnaryOp::I32ToF64,
            (Elem::F64, false, false) => UnaryOp::U32ToF64,
            (Elem::F64, true, true) => UnaryOp::I64ToF64,
            (Elem::F64, true, false) => UnaryOp::U64ToF64,
            (Elem::F32, false, true) => UnaryOp::I32ToF32,
            (Elem::F32, false, false) => UnaryOp::U32ToF32,
            (Elem::F32, true, true) => UnaryOp::I64ToF32,
            (Elem::F32, true, false) => UnaryOp::U64ToF32,
            (Elem::F16 | Elem::Bf16, true, true) => UnaryOp::I64ToF32Odd,
            (Elem::F16 | Elem::Bf16, true, false) => UnaryOp::U64ToF32Odd,
            (Elem::F16 | Elem::Bf16, false, _) => {
                // 32 bits may not fit binary32: through 64, rounded to odd.
                let (widen, narrow) = if signed {
                    (UnaryOp::SignExtend64, UnaryOp::I64ToF32Odd)
                } else {
                    (UnaryOp::ZeroExtend64, UnaryOp::U64ToF32Odd)
                };
                self.elementwise(d, &[(a, canon)], Canon::Float, &mut |this, d, operands| {
                    let long = this.slots.take(2);
                    this.emit(Op::Unary { op: widen, d: long, a: operands[0] });
                    this.emit(Op::Unary { op: narrow, d, a: long });
                    this.slots.give(long, 2);
                });
                return Ok(());
            }
            _ => return Err(self.unknown(op)),
        };
        self.unary_elements(d, a, canon, Canon::Float, chosen);
        Ok(())
    }

    pub(super) fn float_to_integer(&mut self, op: &OperationRef<'_, '_>, signed: bool) -> Result<(), Error> {
        let (d, a) = self.conversion_places(op)?;
        let from_f64 = a.ty.elem == Elem::F64;
        let chosen = match (d.ty.elem.bits(), from_f64, signed) {
            (8, false, true) => UnaryOp::F32ToI8,
            (8, false, false) => UnaryOp::F32ToU8,
            (16, false, true) => UnaryOp::F32ToI16,
            (16, false, false) => UnaryOp::F32ToU16,
            (32, false, true) => UnaryOp::F32ToI32,
            (32, false, false) => UnaryOp::F32ToU32,
            (64, false, true) => UnaryOp::F32ToI64,
            (64, false, false) => UnaryOp::F32ToU64,
            (8, true, true) => UnaryOp::F64ToI8,
            (8, true, false) => UnaryOp::F64ToU8,
            (16, true, true) => UnaryOp::F64ToI16,
            (16, true, false) => UnaryOp::F64ToU16,
            (32, true, true) => UnaryOp::F64ToI32,
            (32, true, false) => UnaryOp::F64ToU32,
            (64, true, true) => UnaryOp::F64ToI64,
            (64, true, false) => UnaryOp::F64ToU64,
            _ => return Err(self.unknown(op)),
        };
        self.unary_elements(d, a, Canon::Float, Canon::Raw, chosen);
        Ok(())
    }

    /// Bits of one type as another's. Most are names for the same slots.
    pub(super) fn bitcast(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let a = self.operand(op, 0)?;
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        let ty = self.type_of(op, result)?;
        if self.lifetimes.is_alias(value_key(result)) {
            self.bind(value_key(result), Place { ty, ..a });
            return Ok(());
        }
        let words = |ty: ValueType| ty.count * ty.elem.bits();
        if a.is_mask() || ty.elem == Elem::I1 || words(a.ty) != words(ty) {
            return Err(self.unknown(op));
        }
        // Pairs of words to or from slots of 64 bits: lanes of a pair alternate there.
        let d = self.result(op, 0)?;
        for half in 0..self.halves {
            for pair in 0..d.ty.slots() / 2 {
                let (d, a) = (d.half(half) + 2 * pair, a.half(half) + 2 * pair);
                self.emit(if ty.elem.is_wide() { Op::JoinWords { d, a } } else { Op::SplitWords { d, a } });
            }
        }
        Ok(())
    }
}
