//! Arithmetic on traced values: which op a Rust operator becomes, by element type.

use crate::trace::{self, Attr, Constant, IrType, Loc, Operand, RawValue};
use crate::{Diagnostic, ScalarType};

/// A binary operator or method of two operands of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    /// Integers: the larger. Floats: NaN if either is NaN.
    Max,
    Min,
    /// Floats: the other operand if one is NaN.
    MaxNum,
    MinNum,
}

impl Binary {
    /// The op; `None` where the language has no such operator for the type (the types refuse it first).
    fn op(self, ty: ScalarType) -> Option<&'static str> {
        let by_sign = |signed, unsigned| if ty.is_unsigned() { unsigned } else { signed };
        Some(if ty.is_float() {
            match self {
                Self::Add => "arith.addf",
                Self::Sub => "arith.subf",
                Self::Mul => "arith.mulf",
                Self::Div => "arith.divf",
                Self::Rem => "arith.remf",
                Self::Max => "arith.maximumf",
                Self::Min => "arith.minimumf",
                Self::MaxNum => "arith.maxnumf",
                Self::MinNum => "arith.minnumf",
                Self::BitAnd | Self::BitOr | Self::BitXor | Self::Shl | Self::Shr => return None,
            }
        } else {
            match self {
                Self::Add => "arith.addi",
                Self::Sub => "arith.subi",
                Self::Mul => "arith.muli",
                Self::Div => by_sign("arith.divsi", "arith.divui"),
                Self::Rem => by_sign("arith.remsi", "arith.remui"),
                Self::BitAnd => "arith.andi",
                Self::BitOr => "arith.ori",
                Self::BitXor => "arith.xori",
                Self::Shl => "arith.shli",
                Self::Shr => by_sign("arith.shrsi", "arith.shrui"),
                Self::Max | Self::MaxNum => by_sign("arith.maxsi", "arith.maxui"),
                Self::Min | Self::MinNum => by_sign("arith.minsi", "arith.minui"),
            }
        })
    }
}

/// Emits `a op b`; scalars or vectors of `ty`.
pub(crate) fn binary(op: Binary, ty: ScalarType, a: RawValue, b: RawValue, loc: Loc) -> RawValue {
    let Some(name) = op.op(ty) else { return RawValue::DEAD };
    let result = trace::with(|t| t.type_of(a)).flatten().unwrap_or(IrType::Scalar(ty));
    let b = if matches!(op, Binary::Shl | Binary::Shr) { masked_shift(ty, b, loc) } else { b };
    if matches!(op, Binary::Div | Binary::Rem) && ty.is_integer() && trace::with(|t| t.known(b)).flatten() == Some(0) {
        trace::error(loc, Diagnostic::error("division by zero").label("the divisor is the constant 0"));
    }
    trace::emit1(name, &[a, b], result, &[], loc)
}

/// `a op b` of integers of 32 or 64 bits, as a part of the language's own address arithmetic: made once (see
/// [`trace::once`]), and left out where what is known of the operands says the result.
///
/// Shifts are by less than the width, and divisors are not 0.
pub(crate) fn once(op: Binary, ty: ScalarType, a: impl Into<Operand>, b: impl Into<Operand>, loc: Loc) -> RawValue {
    let (a, b) = (a.into(), b.into());
    let width = if ty.bytes() == 8 { ScalarType::I64 } else { ScalarType::I32 };
    let constant = |value| trace::constant(width, Constant::Int(value), loc);
    let known = (a.known(), b.known());
    if let (Some(a), Some(b)) = known
        && let Some(value) = folded(op, ty, a, b)
    {
        return constant(value);
    }
    match (op, known.0, known.1) {
        (Binary::Add | Binary::BitOr | Binary::BitXor, Some(0), _) | (Binary::Mul, Some(1), _) => return b.value(loc),
        (Binary::Add | Binary::Sub | Binary::BitOr | Binary::BitXor | Binary::Shl | Binary::Shr, _, Some(0))
        | (Binary::Mul | Binary::Div, _, Some(1)) => return a.value(loc),
        (Binary::Mul | Binary::BitAnd, Some(0), _) | (Binary::Mul | Binary::BitAnd, _, Some(0)) => return constant(0),
        _ => {}
    }
    let Some(name) = op.op(ty) else { return RawValue::DEAD };
    trace::once(name, &[a, b], IrType::Scalar(width), &[], loc)
}

/// The result of integers that are known; `None` where that is left to the device.
fn folded(op: Binary, ty: ScalarType, a: i64, b: i64) -> Option<i64> {
    let positive = a >= 0 && b >= 0;
    let width = 8 * ty.bytes() as i64;
    match op {
        // Constants are cut to the width of their type.
        Binary::Add => Some(a.wrapping_add(b)),
        Binary::Sub => Some(a.wrapping_sub(b)),
        Binary::Mul => Some(a.wrapping_mul(b)),
        Binary::BitAnd => Some(a & b),
        Binary::BitOr => Some(a | b),
        Binary::BitXor => Some(a ^ b),
        Binary::Shl if (0..width).contains(&b) => Some(a.wrapping_shl(b as u32)),
        Binary::Shr if positive && b < width => Some(a >> b),
        Binary::Div if positive && b > 0 => Some(a / b),
        Binary::Rem if positive && b > 0 => Some(a % b),
        Binary::Max if positive => Some(a.max(b)),
        Binary::Min if positive => Some(a.min(b)),
        _ => None,
    }
}

/// A comparison of integers, as a part of the language's own masks: made once.
pub(crate) fn compare_once(
    op: Cmp,
    ty: ScalarType,
    a: impl Into<Operand>,
    b: impl Into<Operand>,
    loc: Loc,
) -> RawValue {
    let (a, b) = (a.into(), b.into());
    if let (Some(a), Some(b), false) = (a.known(), b.known(), ty.is_unsigned()) {
        let holds = match op {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
        };
        return trace::constant(ScalarType::Bool, Constant::Int(i64::from(holds)), loc);
    }
    trace::once("arith.cmpi", &[a, b], IrType::BOOL, &[("predicate", Attr::Int(op.of_integers(ty)))], loc)
}

/// `a & b` of conditions, likewise.
pub(crate) fn both_once(a: RawValue, b: RawValue, loc: Loc) -> RawValue {
    match (trace::known(a), trace::known(b)) {
        (Some(1), _) => b,
        (_, Some(1)) => a,
        _ => trace::once("arith.andi", &[a.into(), b.into()], IrType::BOOL, &[], loc),
    }
}

/// An `I32` as an `I64`, made once.
pub(crate) fn widened(value: RawValue, loc: Loc) -> RawValue {
    match trace::known(value) {
        Some(known) => trace::constant(ScalarType::I64, Constant::Int(known), loc),
        None => trace::once("arith.extsi", &[value.into()], IrType::I64, &[], loc),
    }
}

/// The low half of an `I64`, made once.
pub(crate) fn narrowed(value: RawValue, loc: Loc) -> RawValue {
    match trace::known(value) {
        Some(known) => trace::constant(ScalarType::I32, Constant::Int(known), loc),
        None => trace::once("arith.trunci", &[value.into()], IrType::I32, &[], loc),
    }
}

/// Rust's `wrapping_shl` meaning: the amount is taken modulo the width.
fn masked_shift(ty: ScalarType, amount: RawValue, loc: Loc) -> RawValue {
    let width = 8 * ty.bytes() as i64;
    match trace::with(|t| (t.known(amount), t.type_of(amount))) {
        Some((Some(known), _)) if (0..width).contains(&known) => amount,
        Some((_, Some(IrType::Scalar(_)))) => {
            let mask = trace::constant(ty, Constant::Int(width - 1), loc);
            trace::emit1("arith.andi", &[amount, mask], IrType::Scalar(ty), &[], loc)
        }
        Some((_, Some(vector @ IrType::Vector(..)))) => {
            let mask = trace::constant(ty, Constant::Int(width - 1), loc);
            let mask = trace::emit1("vector.broadcast", &[mask], vector, &[], loc);
            trace::emit1("arith.andi", &[amount, mask], vector, &[], loc)
        }
        _ => RawValue::DEAD,
    }
}

/// `-a`.
pub(crate) fn negate(ty: ScalarType, a: RawValue, loc: Loc) -> RawValue {
    let result = trace::with(|t| t.type_of(a)).flatten().unwrap_or(IrType::Scalar(ty));
    if ty.is_float() {
        return trace::emit1("arith.negf", &[a], result, &[], loc);
    }
    let zero = trace::constant(ty, Constant::Int(0), loc);
    let zero = match result {
        IrType::Vector(..) => trace::emit1("vector.broadcast", &[zero], result, &[], loc),
        _ => zero,
    };
    trace::emit1("arith.subi", &[zero, a], result, &[], loc)
}

/// `!a` of a condition.
pub(crate) fn not(a: RawValue, loc: Loc) -> RawValue {
    trace::with(|t| t.not(a, loc)).unwrap_or(RawValue::DEAD)
}

/// A comparison of two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// Emits a comparison. Floats compare as in Rust: with NaN all are false but `!=`.
pub(crate) fn compare(op: Cmp, ty: ScalarType, a: RawValue, b: RawValue, loc: Loc) -> RawValue {
    let result = trace::with(|t| t.type_of(a)).flatten().unwrap_or(IrType::Scalar(ty)).as_bool();
    if ty.is_float() {
        // Numbers of arith's CmpFPredicate: ordered forms, and unordered `!=`.
        let predicate = match op {
            Cmp::Eq => 1,
            Cmp::Gt => 2,
            Cmp::Ge => 3,
            Cmp::Lt => 4,
            Cmp::Le => 5,
            Cmp::Ne => 13,
        };
        let attributes = [("predicate", Attr::Int(predicate))];
        return trace::emit1("arith.cmpf", &[a, b], result, &attributes, loc);
    }
    trace::emit1("arith.cmpi", &[a, b], result, &[("predicate", Attr::Int(op.of_integers(ty)))], loc)
}

impl Cmp {
    /// The number of arith's CmpIPredicate.
    fn of_integers(self, ty: ScalarType) -> i64 {
        match (self, ty.is_unsigned() || ty == ScalarType::Bool) {
            (Cmp::Eq, _) => 0,
            (Cmp::Ne, _) => 1,
            (Cmp::Lt, false) => 2,
            (Cmp::Le, false) => 3,
            (Cmp::Gt, false) => 4,
            (Cmp::Ge, false) => 5,
            (Cmp::Lt, true) => 6,
            (Cmp::Le, true) => 7,
            (Cmp::Gt, true) => 8,
            (Cmp::Ge, true) => 9,
        }
    }
}

/// How a conversion to a narrower float rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    NearestEven,
    TowardZero,
}

/// Converts between element types, scalars or vectors, with the meaning of Rust's `as`:
/// float to integer saturates (NaN gives 0), integers wrap, floats round to nearest even.
pub(crate) fn cast(from: ScalarType, to: ScalarType, value: RawValue, rounding: Rounding, loc: Loc) -> RawValue {
    use ScalarType as S;
    let Some(source) = trace::with(|t| t.type_of(value)).flatten() else { return RawValue::DEAD };
    let emit = |name, value, to: ScalarType| trace::emit1(name, &[value], source.with_element(to), &[], loc);
    if from == to {
        return value;
    }
    let is_fp8 = |ty| matches!(ty, S::F8E4M3 | S::F8E5M2);
    if is_fp8(from) {
        // Every 8-bit float is an f32.
        let wide = emit("arith.extf", value, S::F32);
        return cast(S::F32, to, wide, rounding, loc);
    }
    if is_fp8(to) {
        if from == S::F64 {
            let diagnostic = Diagnostic::error(format!("no conversion from `f64` to `{to}`"))
                .label("this would round twice")
                .help("convert to `F32` first, if that is meant");
            trace::error(loc, diagnostic);
            return trace::refused(source.with_element(to), loc);
        }
        let wide = cast(from, S::F32, value, Rounding::NearestEven, loc);
        return emit("lw.to_fp8", wide, to);
    }
    match (from.is_float(), to.is_float()) {
        (true, true) => {
            if from.bytes() == to.bytes() {
                // f16 and bf16: neither holds the other.
                let wide = emit("arith.extf", value, S::F32);
                return cast(S::F32, to, wide, rounding, loc);
            }
            if from.bytes() < to.bytes() {
                return emit("arith.extf", value, to);
            }
            let attributes: &[(&str, Attr)] = match rounding {
                Rounding::NearestEven => &[],
                // arith's RoundingMode counts to_nearest_even, downward, upward, toward_zero from 0.
                Rounding::TowardZero => &[("roundingmode", Attr::Int32(3))],
            };
            trace::emit1("arith.truncf", &[value], source.with_element(to), attributes, loc)
        }
        (true, false) => emit(if to.is_unsigned() { "arith.fptoui" } else { "arith.fptosi" }, value, to),
        (false, true) => {
            let unsigned = from.is_unsigned() || from == S::Bool;
            emit(if unsigned { "arith.uitofp" } else { "arith.sitofp" }, value, to)
        }
        (false, false) => {
            let from_bits = if from == S::Bool { 1 } else { 8 * from.bytes() };
            let to_bits = if to == S::Bool { 1 } else { 8 * to.bytes() };
            match from_bits.cmp(&to_bits) {
                std::cmp::Ordering::Less if from.is_unsigned() || from == S::Bool => emit("arith.extui", value, to),
                std::cmp::Ordering::Less => emit("arith.extsi", value, to),
                std::cmp::Ordering::Greater => emit("arith.trunci", value, to),
                // Same width: one MLIR type, so the handle just changes its Rust type.
                std::cmp::Ordering::Equal => value,
            }
        }
    }
}
