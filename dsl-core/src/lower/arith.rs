//! `arith` ops whose standard conversion does not mean what the kernel language means, and
//! everything about 8-bit floats.

use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;

use super::build::{Builder, Elem, F16, F32, I8, I16, I32, Op, Ty, Val, maker, operand, refuse, result, type_of};
use super::fp8::{self, Fp8};
use super::math;
use super::numeric::Numeric as _;
use crate::Error;
use crate::mlir::name_of;

/// The value that replaces the op; `None` where the standard conversion is right.
pub(super) fn lower<'m>(b: &Builder<'m>, op: Op<'m>, name: &str) -> Result<Option<Val<'m>>, Error> {
    match name {
        "arith.fptosi" => saturating(b, op, "llvm.fptosi.sat").map(Some),
        "arith.fptoui" => saturating(b, op, "llvm.fptoui.sat").map(Some),
        "arith.divsi" | "arith.remsi" if !is_known_positive(operand(op, 1)?) => signed_division(b, op, name).map(Some),
        "arith.remf" => remainder(b, op).map(Some),
        // The standard conversion for NVIDIA calls libdevice for the second pair.
        "arith.maximumf" => extremum(b, op, "llvm.maximum").map(Some),
        "arith.minimumf" => extremum(b, op, "llvm.minimum").map(Some),
        "arith.maxnumf" => extremum(b, op, "llvm.maxnum").map(Some),
        "arith.minnumf" => extremum(b, op, "llvm.minnum").map(Some),
        "arith.truncf" => truncate(b, op),
        "arith.extf" if type_of(operand(op, 0)?)?.is_fp8() => from_fp8(b, op).map(Some),
        "arith.constant" | "arith.select" | "arith.bitcast" | "arith.extf" => Ok(None),
        _ if name.starts_with("arith.") => refuse_fp8(op, name).map(|()| None),
        _ => Ok(None),
    }
}

/// 8-bit floats are for storage: no target computes with them one by one.
fn refuse_fp8(op: Op<'_>, name: &str) -> Result<(), Error> {
    for index in 0..op.operand_count() {
        if type_of(operand(op, index)?).is_ok_and(Ty::is_fp8) {
            return Err(refuse(op, format!("`{name}` does not exist for 8-bit floats"), "cast to F32 first"));
        }
    }
    if op.result_count() == 1 && type_of(result(op, 0)?).is_ok_and(Ty::is_fp8) {
        return Err(refuse(op, format!("`{name}` does not give 8-bit floats"), "compute in F32, then cast"));
    }
    Ok(())
}

/// Whether a value is a constant above zero, such as the extent of a tile.
fn is_known_positive(value: Val<'_>) -> bool {
    let Some(owner) = maker(value) else { return false };
    name_of(owner) == "arith.constant"
        && owner
            .attribute("value")
            .ok()
            .and_then(|value| IntegerAttribute::try_from(value).ok())
            .is_some_and(|value| value.value() > 0)
}

/// Rust's wrapping `/` and `%`: MIN / -1 is MIN and MIN % -1 is 0, where LLVM's `sdiv` and `srem` are undefined.
fn signed_division<'m>(b: &Builder<'m>, op: Op<'m>, name: &str) -> Result<Val<'m>, Error> {
    let (x, y) = (operand(op, 0)?, operand(op, 1)?);
    let ty = type_of(x)?;
    /// arith's CmpIPredicate `eq`.
    const EQUAL: i64 = 0;
    let is_minus_one = b.compare(EQUAL, y, b.constant(ty, -1)?)?;
    let zero = b.constant(ty, 0)?;
    let divided = b.binary(name, x, b.pick(is_minus_one, b.constant(ty, 1)?, y)?)?;
    let special = if name == "arith.divsi" { b.binary("arith.subi", zero, x)? } else { zero };
    b.pick(is_minus_one, special, divided)
}

/// Rust's `as`: toward zero, saturating, NaN to 0 (LLVM Language Reference, `llvm.fptosi.sat`).
fn saturating<'m>(b: &Builder<'m>, op: Op<'m>, intrinsic: &str) -> Result<Val<'m>, Error> {
    let mut x = operand(op, 0)?;
    let from = type_of(x)?;
    if from.is_fp8() {
        return Err(refuse(op, "an 8-bit float does not convert to an integer directly", "cast to F32 first"));
    }
    if matches!(from.elem, Elem::F16 | Elem::Bf16) {
        x = b.cast("arith.extf", x, from.with(Elem::F32))?;
    }
    b.call(intrinsic, &[x], type_of(result(op, 0)?)?)
}

/// Minimum or maximum of either kind, by LLVM's intrinsic of that kind.
fn extremum<'m>(b: &Builder<'m>, op: Op<'m>, intrinsic: &str) -> Result<Val<'m>, Error> {
    refuse_fp8(op, name_of(op))?;
    let x = operand(op, 0)?;
    b.call(intrinsic, &[x, operand(op, 1)?], type_of(x)?)
}

/// Rust's `%`. f16 and bf16 are exact in f32, and so is their remainder.
fn remainder<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let (x, y) = (operand(op, 0)?, operand(op, 1)?);
    let ty = type_of(x)?;
    let scalar = |x, y| match ty.elem {
        Elem::F32 => math::remainder(b, x, y),
        Elem::F16 | Elem::Bf16 => {
            let wide = math::remainder(b, b.cast("arith.extf", x, F32)?, b.cast("arith.extf", y, F32)?)?;
            b.cast("arith.truncf", wide, ty.element())
        }
        _ => Err(refuse(op, format!("`%` does not exist for {}", ty.spelling()), "compute it in F32")),
    };
    if ty.lanes.is_none() {
        return scalar(x, y);
    }
    let mut elements = Vec::new();
    for lane in 0..ty.lane_count() {
        elements.push(scalar(b.extract(x, lane)?, b.extract(y, lane)?)?);
    }
    b.vector_of(&elements)
}

/// `arith.truncf` to nearest stays; toward zero is made from it; other modes do not exist.
fn truncate<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Option<Val<'m>>, Error> {
    let x = operand(op, 0)?;
    let (from, to) = (type_of(x)?, type_of(result(op, 0)?)?);
    if to.is_fp8() {
        return Err(refuse(op, "`arith.truncf` does not give 8-bit floats", "the trace casts to them by `lw.to_fp8`"));
    }
    let Ok(mode) = op.attribute("roundingmode") else { return Ok(None) };
    // 0 to nearest even, 1 downward, 2 upward, 3 toward zero, 4 to nearest away.
    let mode = mode.to_string();
    match mode.as_str() {
        "0 : i32" => return b.cast("arith.truncf", x, to).map(Some),
        "3 : i32" => {}
        _ => {
            return Err(refuse(
                op,
                format!("no cast rounds by mode {mode}"),
                "casts round to nearest even (`cast`) or toward zero (`cast_rz`)",
            ));
        }
    }
    // If the nearest value lies beyond x, the one before it in magnitude is x rounded toward zero.
    // That also turns an overflow to infinity into the largest finite value. NaN compares false.
    let nearest = b.cast("arith.truncf", x, to)?;
    let back = b.cast("arith.extf", nearest, from)?;
    let beyond = b.compare_float(2, b.abs(back)?, b.abs(x)?)?;
    let integer = to.with(Elem::Int(to.bits()));
    let bits = b.bitcast(nearest, integer)?;
    let before = b.binary("arith.subi", bits, b.constant(integer, 1)?)?;
    let toward_zero = b.pick(beyond, before, bits)?;
    // An infinite x stays infinite: |back| is not above it.
    b.bitcast(toward_zero, to).map(Some)
}

fn format_of(ty: Ty) -> Fp8 {
    if ty.elem == Elem::F8E4M3 { Fp8::E4M3 } else { Fp8::E5M2 }
}

/// Whether the chip converts OCP 8-bit floats itself. gfx942 has FNUZ encodings, which differ.
fn has_fp8_conversions(b: &Builder<'_>) -> bool {
    b.target().is_nvidia() && b.target().generation() >= 89
}

/// `lw.to_fp8`: `cvt.rn.satfinite.{e4m3x2,e5m2x2}.f32` (PTX ISA, cvt) where it exists.
pub(super) fn to_fp8<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let x = operand(op, 0)?;
    let ty = type_of(result(op, 0)?)?;
    let byte = if has_fp8_conversions(b) {
        // The second operand lands in the low byte.
        let pair = b.value(
            "nvvm.convert.f32x2.to.f8x2",
            &[b.float(0.0)?, x],
            I16,
            &[
                ("rnd", b.attr("#nvvm.fp_rnd_mode<rn>")?),
                ("sat", b.attr("#nvvm.sat_mode<satfinite>")?),
                ("dstTy", b.type_attr(ty)?),
            ],
        )?;
        b.cast("arith.trunci", pair, I8)?
    } else {
        b.cast("arith.trunci", fp8::encode(b, x, format_of(ty))?, I8)?
    };
    b.bitcast(byte, ty)
}

/// `arith.extf` from an 8-bit float, exact: by way of f16, which holds every value of both formats.
fn from_fp8<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let x = operand(op, 0)?;
    let (from, to) = (type_of(x)?, type_of(result(op, 0)?)?);
    let bytes = b.bitcast(x, from.storage())?;
    if from.lanes.is_none() {
        let value = if has_fp8_conversions(b) {
            let pair = convert_pair(b, b.vector_of(&[bytes, bytes])?, from)?;
            b.extract(pair, 0)?
        } else {
            decode(b, bytes, from)?
        };
        return convert_float(b, value, to);
    }
    let mut elements = Vec::new();
    let lanes = from.lane_count();
    if has_fp8_conversions(b) {
        for lane in (0..lanes).step_by(2) {
            let first = b.extract(bytes, lane)?;
            let second = if lane + 1 < lanes { b.extract(bytes, lane + 1)? } else { first };
            let pair = convert_pair(b, b.vector_of(&[first, second])?, from)?;
            elements.push(b.extract(pair, 0)?);
            if lane + 1 < lanes {
                elements.push(b.extract(pair, 1)?);
            }
        }
    } else {
        for lane in 0..lanes {
            elements.push(decode(b, b.extract(bytes, lane)?, from)?);
        }
    }
    convert_float(b, b.vector_of(&elements)?, to)
}

/// `cvt.rn.f16x2.{e4m3x2,e5m2x2}`.
fn convert_pair<'m>(b: &Builder<'m>, bytes: Val<'m>, from: Ty) -> Result<Val<'m>, Error> {
    let source = b.type_attr(from.element())?;
    b.value("nvvm.convert.f8x2.to.f16x2", &[bytes], F16.vector(2), &[("srcType", source)])
}

fn decode<'m>(b: &Builder<'m>, byte: Val<'m>, from: Ty) -> Result<Val<'m>, Error> {
    fp8::decode(b, b.cast("arith.extui", byte, I32)?, format_of(from))
}

/// Between float types of one shape, exactly for the values at hand.
fn convert_float<'m>(b: &Builder<'m>, value: Val<'m>, to: Ty) -> Result<Val<'m>, Error> {
    let from = type_of(value)?;
    if from == to {
        return Ok(value);
    }
    match (from.bits(), to.bits()) {
        (a, b_) if a < b_ => b.cast("arith.extf", value, to),
        (a, b_) if a > b_ => b.cast("arith.truncf", value, to),
        // f16 to bf16.
        _ => {
            let wide = b.cast("arith.extf", value, from.with(Elem::F32))?;
            b.cast("arith.truncf", wide, to)
        }
    }
}
