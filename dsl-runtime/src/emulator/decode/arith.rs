//! `arith`, `math` and `lw`'s scalar operations.

use lacewing_core::Error;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::attributes;
use super::emit::{Canon, Decoder, FALSE, TRUE};
use super::lifetime::value_key;
use super::types::{Elem, Place};
use crate::emulator::exec::elementwise::{BinaryOp, CompareOp, DivideOp, UnaryOp};
use crate::emulator::op::Op;

/// The forms of a binary operation: for 32-bit lanes, for 64-bit lanes, and how narrow operands come
/// to the first.
struct Binary {
    narrow: BinaryOp,
    wide: BinaryOp,
    canon: Canon,
}

fn binary(name: &str) -> Option<Binary> {
    use BinaryOp as B;
    let (narrow, wide, canon) = match name {
        "arith.addi" => (B::AddI32, B::AddI64, Canon::Raw),
        "arith.subi" => (B::SubI32, B::SubI64, Canon::Raw),
        "arith.muli" => (B::MulI32, B::MulI64, Canon::Raw),
        "arith.andi" => (B::And32, B::And64, Canon::Raw),
        "arith.ori" => (B::Or32, B::Or64, Canon::Raw),
        "arith.xori" => (B::Xor32, B::Xor64, Canon::Raw),
        "arith.shli" => (B::Shl32, B::Shl64, Canon::Unsigned),
        "arith.shrui" => (B::ShrU32, B::ShrU64, Canon::Unsigned),
        "arith.shrsi" => (B::ShrS32, B::ShrS64, Canon::Signed),
        "arith.maxsi" => (B::MaxS32, B::MaxS64, Canon::Signed),
        "arith.minsi" => (B::MinS32, B::MinS64, Canon::Signed),
        "arith.maxui" => (B::MaxU32, B::MaxU64, Canon::Unsigned),
        "arith.minui" => (B::MinU32, B::MinU64, Canon::Unsigned),
        "arith.addf" => (B::AddF32, B::AddF64, Canon::Float),
        "arith.subf" => (B::SubF32, B::SubF64, Canon::Float),
        "arith.mulf" => (B::MulF32, B::MulF64, Canon::Float),
        "arith.divf" => (B::DivF32, B::DivF64, Canon::Float),
        "arith.remf" => (B::RemF32, B::RemF64, Canon::Float),
        "arith.maximumf" => (B::MaximumF32, B::MaximumF64, Canon::Float),
        "arith.minimumf" => (B::MinimumF32, B::MinimumF64, Canon::Float),
        "arith.maxnumf" => (B::MaxnumF32, B::MaxnumF64, Canon::Float),
        "arith.minnumf" => (B::MinnumF32, B::MinnumF64, Canon::Float),
        "math.copysign" => (B::CopySignF32, B::CopySignF64, Canon::Float),
        _ => return None,
    };
    Some(Binary { narrow, wide, canon })
}

fn divide(name: &str) -> Option<(DivideOp, DivideOp, Canon)> {
    Some(match name {
        "arith.divsi" => (DivideOp::DivS32, DivideOp::DivS64, Canon::Signed),
        "arith.divui" => (DivideOp::DivU32, DivideOp::DivU64, Canon::Unsigned),
        "arith.remsi" => (DivideOp::RemS32, DivideOp::RemS64, Canon::Signed),
        "arith.remui" => (DivideOp::RemU32, DivideOp::RemU64, Canon::Unsigned),
        _ => return None,
    })
}

/// The forms of a float function: exact, approximate, and for binary64.
fn function(name: &str) -> Option<(UnaryOp, UnaryOp, UnaryOp)> {
    use UnaryOp as U;
    Some(match name {
        "arith.negf" => (U::NegF32, U::NegF32, U::NegF64),
        "math.absf" => (U::AbsF32, U::AbsF32, U::AbsF64),
        "math.exp" => (U::ExpF32, U::ExpFast, U::ExpF64),
        "math.exp2" => (U::Exp2F32, U::Exp2Fast, U::Exp2F64),
        "math.log" => (U::LogF32, U::LogFast, U::LogF64),
        "math.log2" => (U::Log2F32, U::Log2Fast, U::Log2F64),
        "math.log10" => (U::Log10F32, U::Log10Fast, U::Log10F64),
        "math.sqrt" => (U::SqrtF32, U::SqrtF32, U::SqrtF64),
        "math.rsqrt" => (U::RsqrtF32, U::RsqrtFast, U::RsqrtF64),
        "math.sin" => (U::SinF32, U::SinF32, U::SinF64),
        "math.cos" => (U::CosF32, U::CosF32, U::CosF64),
        "math.tanh" => (U::TanhF32, U::TanhFast, U::TanhF64),
        "math.erf" => (U::ErfF32, U::ErfF32, U::ErfF64),
        "math.floor" => (U::FloorF32, U::FloorF32, U::FloorF64),
        "math.ceil" => (U::CeilF32, U::CeilF32, U::CeilF64),
        "math.round" => (U::RoundF32, U::RoundF32, U::RoundF64),
        "math.roundeven" => (U::RoundEvenF32, U::RoundEvenF32, U::RoundEvenF64),
        "math.trunc" => (U::TruncF32, U::TruncF32, U::TruncF64),
        "lw.rcp" => (U::RcpFast, U::RcpFast, U::RcpFast),
        _ => return None,
    })
}

/// The rounding of `arith.truncf`, by its enumeration in MLIR.
pub(super) fn rounds_toward_zero(decoder: &Decoder, op: &OperationRef<'_, '_>) -> Result<bool, Error> {
    let text = attributes::text(op, "roundingmode");
    match text.split(' ').next() {
        None | Some("" | "0" | "to_nearest_even") => Ok(false),
        Some("3" | "toward_zero") => Ok(true),
        Some(_) => Err(decoder.fail(op, format!("the emulator does not know the rounding mode `{text}`"))),
    }
}

impl Decoder {
    /// Decodes an operation on values alone. False when it is none of them.
    pub(crate) fn arith(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<bool, Error> {
        if let Some(binary) = binary(name) {
            self.binary_op(op, name, &binary)?;
        } else if let Some((narrow, wide, canon)) = divide(name) {
            let (d, a, b) = self.binary_operands(op)?;
            let is_wide = d.ty.elem.is_wide();
            if d.is_mask() {
                return Err(self.unknown(op));
            }
            // The op needs its half for the lanes it may blame: halves alternate with elements.
            let per_half = d.ty.count;
            let mut done = 0;
            self.elementwise(d, &[(a, canon), (b, canon)], Canon::Raw, &mut |this, d, operands| {
                let op = if is_wide { wide } else { narrow };
                this.emit(Op::Divide { op, half: (done / per_half) as u8, d, a: operands[0], b: operands[1] });
                done += 1;
            });
        } else if let Some((exact, fast, wide)) = function(name) {
            let flags = attributes::text(op, "fastmath");
            let approximate = flags.contains("afn") || flags.contains("<fast>");
            let (a, d) = (self.operand(op, 0)?, self.result(op, 0)?);
            let narrow = if approximate { fast } else { exact };
            let chosen = if d.ty.elem.is_wide() { wide } else { narrow };
            self.elementwise(d, &[(a, Canon::Float)], Canon::Float, &mut |this, d, operands| {
                this.emit(Op::Unary { op: chosen, d, a: operands[0] });
            });
        } else {
            match name {
                "arith.constant" => self.constant(op)?,
                "ub.poison" => self.poison(op)?,
                "math.fma" => self.fma(op)?,
                "arith.cmpi" => self.compare_integers(op)?,
                "arith.cmpf" => self.compare_floats(op)?,
                "arith.select" => self.select(op)?,
                "math.absi" | "math.ctpop" | "math.ctlz" | "math.cttz" => self.count_bits(op, name)?,
                "arith.extsi" | "arith.extui" | "arith.trunci" | "arith.index_cast" | "arith.index_castui" => {
                    self.convert_integer(op, name)?;
                }
                "arith.extf" => self.extend_float(op)?,
                "arith.truncf" => self.truncate_float(op)?,
                "lw.to_fp8" => self.saturate_to_fp8(op)?,
                "arith.sitofp" | "arith.uitofp" => self.integer_to_float(op, name == "arith.sitofp")?,
                "arith.fptosi" | "arith.fptoui" => self.float_to_integer(op, name == "arith.fptosi")?,
                "arith.bitcast" | "vector.bitcast" => self.bitcast(op)?,
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn binary_operands(&mut self, op: &OperationRef<'_, '_>) -> Result<(Place, Place, Place), Error> {
        let (a, b) = (self.operand(op, 0)?, self.operand(op, 1)?);
        Ok((self.result(op, 0)?, a, b))
    }

    fn binary_op(&mut self, op: &OperationRef<'_, '_>, name: &str, binary: &Binary) -> Result<(), Error> {
        let (d, a, b) = self.binary_operands(op)?;
        if d.is_mask() {
            for element in 0..d.ty.count {
                let (d, a, b) = (d.mask(element), a.mask(element), b.mask(element));
                self.emit(match name {
                    // One bit: sum and difference are exclusive or, the product is and.
                    "arith.xori" | "arith.addi" | "arith.subi" => Op::MaskXor { d, a, b },
                    "arith.andi" | "arith.muli" | "arith.minui" => Op::MaskAnd { d, a, b },
                    "arith.ori" | "arith.maxui" => Op::MaskOr { d, a, b },
                    _ => return Err(self.unknown(op)),
                });
            }
            return Ok(());
        }
        let bitwise = matches!(name, "arith.andi" | "arith.ori" | "arith.xori");
        if bitwise && !d.ty.elem.is_wide() {
            // Whole words, however many elements they hold.
            for half in 0..self.halves {
                for word in 0..d.ty.slots() {
                    let (d, a, b) = (d.half(half) + word, a.half(half) + word, b.half(half) + word);
                    self.emit(Op::Binary { op: binary.narrow, d, a, b });
                }
            }
            return Ok(());
        }
        let chosen = if d.ty.elem.is_wide() { binary.wide } else { binary.narrow };
        let out = if binary.canon == Canon::Float { Canon::Float } else { Canon::Raw };
        let index = self.indices.signed(op).filter(|_| d.ty.elem == Elem::I32);
        self.elementwise(d, &[(a, binary.canon), (b, binary.canon)], out, &mut |this, d, operands| {
            let (a, b) = (operands[0], operands[1]);
            this.emit(match index {
                Some(signed) => Op::Index { op: chosen, signed, d, a, b },
                None => Op::Binary { op: chosen, d, a, b },
            });
        });
        if d.ty.elem == Elem::I64 && !d.ty.is_vector {
            self.note_part(op, name)?;
        }
        Ok(())
    }

    fn constant(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        let ty = self.type_of(op, result)?;
        let attribute = op.attribute("value").map_err(|_| self.unknown(op))?;
        let bits = attributes::constant_bits(attribute, ty);
        let bits = bits.ok_or_else(|| self.fail(op, format!("the emulator cannot read the constant `{attribute}`")))?;
        let key = value_key(result);
        if let (false, [only]) = (ty.is_vector, bits.as_slice()) {
            let unused = 64 - ty.elem.bits();
            self.known.insert(key, (only << unused) as i64 >> unused);
        }
        if ty.elem == Elem::I1 {
            let mask = |bits: u64| if bits & 1 == 1 { TRUE } else { FALSE };
            if let [only] = bits.as_slice() {
                self.bind(key, Place { ty, base: mask(*only), stride: 0 });
                return Ok(());
            }
            let base = self.masks.take_fresh(ty.count);
            for (element, &bits) in bits.iter().enumerate() {
                self.program.mask_constants.push((base + element as u32, bits & 1 == 1));
            }
            self.bind(key, Place { ty, base, stride: 0 });
            return Ok(());
        }
        let place = self.constant_words(attributes::pack_words(ty, &bits), ty);
        self.bind(key, place);
        Ok(())
    }

    /// Poison is zero here: no path that exists reads it.
    fn poison(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        let ty = self.type_of(op, result)?;
        let place = if ty.elem == Elem::I1 {
            if ty.count == 1 {
                Place { ty, base: FALSE, stride: 0 }
            } else {
                let base = self.masks.take_fresh(ty.count);
                Place { ty, base, stride: 0 }
            }
        } else {
            self.constant_words(vec![0; ty.slots() as usize], ty)
        };
        self.bind(value_key(result), place);
        Ok(())
    }

    fn fma(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let operands = [self.operand(op, 0)?, self.operand(op, 1)?, self.operand(op, 2)?];
        let d = self.result(op, 0)?;
        let elem = d.ty.elem;
        self.elementwise(d, &operands.map(|o| (o, Canon::Float)), Canon::Float, &mut |this, d, operands| {
            let [a, b, c] = [operands[0], operands[1], operands[2]];
            this.emit(match elem {
                Elem::F64 => Op::FmaF64 { d, a, b, c },
                Elem::F32 => Op::FmaF32 { d, a, b, c },
                _ => Op::FmaOdd { d, a, b, c },
            });
        });
        Ok(())
    }

    fn compare_integers(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (d, a, b) = self.binary_operands(op)?;
        let predicate = attributes::integer(op, "predicate").ok_or_else(|| self.unknown(op))?;
        if a.is_mask() {
            for element in 0..d.ty.count {
                let (d, a, b) = (d.mask(element), a.mask(element), b.mask(element));
                self.emit(Op::MaskXor { d, a, b });
                match predicate {
                    0 => self.emit(Op::MaskNot { d, a: d }),
                    1 => 0,
                    _ => return Err(self.unknown(op)),
                };
            }
            return Ok(());
        }
        // `arith::CmpIPredicate`: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
        let wide = a.ty.elem.is_wide();
        let pick = |narrow, w| if wide { w } else { narrow };
        let equal = pick(CompareOp::EqI32, CompareOp::EqI64);
        let (less_s, less_equal_s) =
            (pick(CompareOp::LtS32, CompareOp::LtS64), pick(CompareOp::LeS32, CompareOp::LeS64));
        let (less_u, less_equal_u) =
            (pick(CompareOp::LtU32, CompareOp::LtU64), pick(CompareOp::LeU32, CompareOp::LeU64));
        let (compare, swap, negate, canon) = match predicate {
            0 => (equal, false, false, Canon::Unsigned),
            1 => (equal, false, true, Canon::Unsigned),
            2 => (less_s, false, false, Canon::Signed),
            3 => (less_equal_s, false, false, Canon::Signed),
            4 => (less_s, true, false, Canon::Signed),
            5 => (less_equal_s, true, false, Canon::Signed),
            6 => (less_u, false, false, Canon::Unsigned),
            7 => (less_equal_u, false, false, Canon::Unsigned),
            8 => (less_u, true, false, Canon::Unsigned),
            9 => (less_equal_u, true, false, Canon::Unsigned),
            _ => return Err(self.unknown(op)),
        };
        self.compare(d, (a, b), canon, compare, swap, negate);
        Ok(())
    }

    fn compare_floats(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (d, a, b) = self.binary_operands(op)?;
        let predicate = attributes::integer(op, "predicate").ok_or_else(|| self.unknown(op))?;
        let wide = a.ty.elem.is_wide();
        let pick = |narrow, w| if wide { w } else { narrow };
        let equal = pick(CompareOp::EqF32, CompareOp::EqF64);
        let less = pick(CompareOp::LtF32, CompareOp::LtF64);
        let less_equal = pick(CompareOp::LeF32, CompareOp::LeF64);
        let not_equal = pick(CompareOp::NeF32, CompareOp::NeF64);
        let ordered = pick(CompareOp::OrderedF32, CompareOp::OrderedF64);
        // `arith::CmpFPredicate`. The unordered forms are the opposites of ordered ones.
        let (compare, swap, negate) = match predicate {
            0 | 15 => {
                let constant = if predicate == 0 { FALSE } else { TRUE };
                for element in 0..d.ty.count {
                    self.emit(Op::MaskMove { d: d.mask(element), a: constant });
                }
                return Ok(());
            }
            1 => (equal, false, false),
            2 => (less, true, false),
            3 => (less_equal, true, false),
            4 => (less, false, false),
            5 => (less_equal, false, false),
            6 => (not_equal, false, false),
            7 => (ordered, false, false),
            8 => (not_equal, false, true),
            9 => (less_equal, false, true),
            10 => (less, false, true),
            11 => (less_equal, true, true),
            12 => (less, true, true),
            13 => (equal, false, true),
            14 => (ordered, false, true),
            _ => return Err(self.unknown(op)),
        };
        self.compare(d, (a, b), Canon::Float, compare, swap, negate);
        Ok(())
    }

    /// A comparison of each element; `swap` exchanges the operands, `negate` the result.
    pub(crate) fn compare(
        &mut self,
        d: Place,
        (a, b): (Place, Place),
        canon: Canon,
        op: CompareOp,
        swap: bool,
        negate: bool,
    ) {
        for element in 0..d.ty.count {
            for half in 0..self.halves {
                let (x, y) = (self.fetch(a, half, element, canon), self.fetch(b, half, element, canon));
                let (left, right) = if swap { (y.0, x.0) } else { (x.0, y.0) };
                let (half, d) = (half as u8, d.mask(element));
                self.emit(Op::Compare { op, negate, half, d, a: left, b: right });
                for (reg, temporary) in [x, y] {
                    if temporary {
                        self.slots.give(reg, 1);
                    }
                }
            }
        }
    }

    fn select(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (cond, a, b) = (self.operand(op, 0)?, self.operand(op, 1)?, self.operand(op, 2)?);
        let d = self.result(op, 0)?;
        let choice = |element: u32| cond.mask(if cond.ty.is_vector { element } else { 0 });
        if d.is_mask() {
            for element in 0..d.ty.count {
                let (d, a, b) = (d.mask(element), a.mask(element), b.mask(element));
                self.emit(Op::MaskSelect { d, mask: choice(element), a, b });
            }
            return Ok(());
        }
        if cond.ty.is_vector && d.ty.elem.bits() < 32 {
            let mut element = 0;
            let count = d.ty.count;
            self.elementwise(d, &[(a, Canon::Raw), (b, Canon::Raw)], Canon::Raw, &mut |this, d, operands| {
                let (half, mask) = ((element / count) as u8, choice(element % count));
                this.emit(Op::Select32 { half, d, mask, a: operands[0], b: operands[1] });
                element += 1;
            });
            return Ok(());
        }
        self.select_words(d, a, b, &choice);
        Ok(())
    }

    /// Chooses whole words, or pairs of 64 bits.
    pub(crate) fn select_words(&mut self, d: Place, a: Place, b: Place, choice: &dyn Fn(u32) -> u32) {
        let wide = d.ty.elem.is_wide();
        let step = if wide { 2 } else { 1 };
        for half in 0..self.halves {
            for unit in 0..d.ty.slots() / step {
                let [d, a, b] = [d, a, b].map(|p| p.half(half) + step * unit);
                let (half, mask) = (half as u8, choice(unit));
                self.emit(if wide {
                    Op::Select64 { half, d, mask, a, b }
                } else {
                    Op::Select32 { half, d, mask, a, b }
                });
            }
        }
    }

    fn count_bits(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<(), Error> {
        let (a, d) = (self.operand(op, 0)?, self.result(op, 0)?);
        let bits = d.ty.elem.bits();
        let (narrow, wide) = match name {
            "math.absi" => (UnaryOp::AbsI32, UnaryOp::AbsI64),
            "math.ctpop" => (UnaryOp::Popcount32, UnaryOp::Popcount64),
            "math.ctlz" => (UnaryOp::LeadingZeros32, UnaryOp::LeadingZeros64),
            _ => (UnaryOp::TrailingZeros32, UnaryOp::TrailingZeros64),
        };
        if bits == 1 {
            return Err(self.unknown(op));
        }
        let canon = if name == "math.absi" { Canon::Signed } else { Canon::Unsigned };
        let (leading, trailing) = (name == "math.ctlz" && bits < 32, name == "math.cttz" && bits < 32);
        let (excess, stop) =
            (self.constant32(32 - bits.min(32)), self.constant32(1_u32.checked_shl(bits).unwrap_or(0)));
        self.elementwise(d, &[(a, canon)], Canon::Raw, &mut |this, d, operands| {
            let a = operands[0];
            if bits == 64 {
                this.emit(Op::Unary { op: wide, d, a });
            } else if trailing {
                // A bit past the element ends the count.
                this.emit(Op::Binary { op: BinaryOp::Or32, d, a, b: stop });
                this.emit(Op::Unary { op: narrow, d, a: d });
            } else {
                this.emit(Op::Unary { op: narrow, d, a });
                if leading {
                    this.emit(Op::Binary { op: BinaryOp::SubI32, d, a: d, b: excess });
                }
            }
        });
        Ok(())
    }
}
