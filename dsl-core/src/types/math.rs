//! Elementary functions. What is approximate says so in its name: `exp2` is what the target's library
//! computes, `exp2_fast` one instruction.

use std::panic::Location;

use super::arith::{self, Binary, Rounding};
use super::{BF16, F16, F32, F64, Float, I8, I16, I32, I64, Index, Int, Num, Scalar};
use crate::ScalarType;
use crate::trace::{self, Attr, IrType, Loc, RawValue};

/// A number that can be negative.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be negative",
    label = "not a signed number",
    note = "the signed numbers are `I8` to `I64`, `Index`, `F16`, `BF16`, `F32` and `F64`"
)]
pub trait Signed: Num + std::ops::Neg<Output = Self> {}
macro_rules! signed {
    ($($ty:ty)*) => { $( impl Signed for $ty {} )* };
}
signed! { I8 I16 I32 I64 Index F16 BF16 F32 F64 }

/// Emits `op` on operands of `ty`, scalars or vectors; for 16-bit floats in `f32`, rounded once more.
pub(crate) fn through_f32(
    op: &str,
    ty: ScalarType,
    operands: &[RawValue],
    attributes: &[(&str, Attr)],
    loc: Loc,
) -> RawValue {
    let compute = match ty {
        ScalarType::F16 | ScalarType::Bf16 => ScalarType::F32,
        other => other,
    };
    let nearest = Rounding::NearestEven;
    let wide: Vec<_> = operands.iter().map(|&operand| arith::cast(ty, compute, operand, nearest, loc)).collect();
    let result = wide.first().and_then(|&first| trace::with(|t| t.type_of(first)).flatten());
    let result = trace::emit1(op, &wide, result.unwrap_or(IrType::Scalar(compute)), attributes, loc);
    arith::cast(compute, ty, result, nearest, loc)
}

/// The approximate form of a math op.
fn approximate() -> [(&'static str, Attr); 1] {
    [("fastmath", Attr::Text("#arith.fastmath<afn>".to_owned()))]
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $op:literal $fast:literal;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        fn $name(self) -> Self {
            let attributes = approximate();
            let attributes = if $fast { &attributes[..] } else { &[] };
            Self::from_raw(through_f32($op, Self::TYPE, &[self.raw()], attributes, Location::caller()))
        }
    )* };
}

macro_rules! unary_double {
    ($($(#[$doc:meta])* $name:ident $op:literal;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(self) -> F64 {
            F64::from_raw(through_f32($op, ScalarType::F64, &[self.raw()], &[], Location::caller()))
        }
    )* };
}

/// Methods of every number, for generic code too.
pub trait NumExt: Num {
    /// The larger of the two; for floats NaN if either is NaN (IEEE 754-2019 `maximum`).
    #[track_caller]
    fn max(self, other: Self) -> Self {
        Self::from_raw(arith::binary(Binary::Max, Self::TYPE, self.raw(), other.raw(), Location::caller()))
    }

    /// The smaller of the two; for floats NaN if either is NaN (IEEE 754-2019 `minimum`).
    #[track_caller]
    fn min(self, other: Self) -> Self {
        Self::from_raw(arith::binary(Binary::Min, Self::TYPE, self.raw(), other.raw(), Location::caller()))
    }
}
impl<T: Num> NumExt for T {}

/// Methods of signed numbers.
pub trait SignedExt: Signed {
    /// The absolute value; the smallest integer stays as it is.
    #[track_caller]
    fn abs(self) -> Self {
        let op = if Self::TYPE.is_float() { "math.absf" } else { "math.absi" };
        Self::from_raw(trace::emit1(op, &[self.raw()], IrType::Scalar(Self::TYPE), &[], Location::caller()))
    }
}
impl<T: Signed> SignedExt for T {}

/// Methods of integers.
pub trait IntExt: Int {
    /// How many bits are set.
    #[track_caller]
    fn count_ones(self) -> I32 {
        bits("math.ctpop", self, Location::caller())
    }

    /// How many bits above the highest set one are clear: all for 0.
    #[track_caller]
    fn leading_zeros(self) -> I32 {
        bits("math.ctlz", self, Location::caller())
    }

    /// How many bits below the lowest set one are clear: all for 0.
    #[track_caller]
    fn trailing_zeros(self) -> I32 {
        bits("math.cttz", self, Location::caller())
    }
}
impl<T: Int> IntExt for T {}

fn bits<T: Int>(op: &str, value: T, loc: Loc) -> I32 {
    let count = trace::emit1(op, &[value.raw()], IrType::Scalar(T::TYPE), &[], loc);
    // A count is small, and positive only as an unsigned number.
    let unsigned = match T::BYTES {
        1 => ScalarType::U8,
        2 => ScalarType::U16,
        4 => ScalarType::U32,
        _ => ScalarType::U64,
    };
    I32::from_raw(arith::cast(unsigned, ScalarType::I32, count, Rounding::NearestEven, loc))
}

/// Elementary functions of `F32`, and of `F16` and `BF16`, which compute in `f32` and round the result.
pub trait FloatExt: Float {
    unary! {
        /// 2 to the power of the value.
        exp2 "math.exp2" false;
        /// As [`FloatExt::exp2`], by the target's approximate instruction.
        exp2_fast "math.exp2" true;
        /// e to the power of the value.
        exp "math.exp" false;
        /// As [`FloatExt::exp`], by the target's approximate instruction.
        exp_fast "math.exp" true;
        /// Logarithm to base 2.
        log2 "math.log2" false;
        /// As [`FloatExt::log2`], by the target's approximate instruction.
        log2_fast "math.log2" true;
        /// Natural logarithm.
        log "math.log" false;
        /// As [`FloatExt::log`], by the target's approximate instruction.
        log_fast "math.log" true;
        /// Square root, correctly rounded for `F32`.
        sqrt "math.sqrt" false;
        /// 1 over the square root.
        rsqrt "math.rsqrt" false;
        /// As [`FloatExt::rsqrt`], by the target's approximate instruction.
        rsqrt_fast "math.rsqrt" true;
        /// Hyperbolic tangent.
        tanh "math.tanh" false;
        /// As [`FloatExt::tanh`], by the target's approximate instruction.
        tanh_fast "math.tanh" true;
        /// Error function.
        erf "math.erf" false;
        /// Sine of an angle in radians.
        sin "math.sin" false;
        /// Cosine of an angle in radians.
        cos "math.cos" false;
        /// The largest whole number that is not larger.
        floor "math.floor" false;
        /// The smallest whole number that is not smaller.
        ceil "math.ceil" false;
        /// The nearest whole number; halfway cases go away from zero, as in Rust.
        round "math.round" false;
        /// The nearest whole number; halfway cases go to the even one.
        round_ties_even "math.roundeven" false;
        /// The whole part.
        trunc "math.trunc" false;
    }

    /// `1 / self`, correctly rounded for `F32`.
    #[track_caller]
    fn rcp(self) -> Self {
        Self::from(1.0f32) / self
    }

    /// `1 / self` by the target's approximate instruction: within 1 ulp of `f32`, and subnormal inputs
    /// and results become zero.
    #[track_caller]
    fn rcp_fast(self) -> Self {
        Self::from_raw(through_f32("lw.rcp", Self::TYPE, &[self.raw()], &[], Location::caller()))
    }

    /// `self * b + c`, rounded once for `F32`.
    #[track_caller]
    fn fma(self, b: impl Into<Self>, c: impl Into<Self>) -> Self {
        let operands = [self.raw(), b.into().raw(), c.into().raw()];
        Self::from_raw(through_f32("math.fma", Self::TYPE, &operands, &[], Location::caller()))
    }

    /// The value with the sign of `sign`.
    #[track_caller]
    fn copysign(self, sign: impl Into<Self>) -> Self {
        let operands = [self.raw(), sign.into().raw()];
        Self::from_raw(through_f32("math.copysign", Self::TYPE, &operands, &[], Location::caller()))
    }

    /// The larger of the two; the other one where one is NaN (IEEE 754-2008 `maxNum`).
    #[track_caller]
    fn maxnum(self, other: Self) -> Self {
        Self::from_raw(arith::binary(Binary::MaxNum, Self::TYPE, self.raw(), other.raw(), Location::caller()))
    }

    /// The smaller of the two; the other one where one is NaN (IEEE 754-2008 `minNum`).
    #[track_caller]
    fn minnum(self, other: Self) -> Self {
        Self::from_raw(arith::binary(Binary::MinNum, Self::TYPE, self.raw(), other.raw(), Location::caller()))
    }
}
impl<T: Float> FloatExt for T {}

/// `F64` has what the chips compute exactly; for the rest convert to `F32`.
impl F64 {
    unary_double! {
        /// Square root, correctly rounded.
        sqrt "math.sqrt";
        /// The largest whole number that is not larger.
        floor "math.floor";
        /// The smallest whole number that is not smaller.
        ceil "math.ceil";
        /// The nearest whole number; halfway cases go away from zero, as in Rust.
        round "math.round";
        /// The nearest whole number; halfway cases go to the even one.
        round_ties_even "math.roundeven";
        /// The whole part.
        trunc "math.trunc";
    }

    /// `1 / self`, correctly rounded.
    #[track_caller]
    pub fn rcp(self) -> F64 {
        F64::from(1.0) / self
    }

    /// `self * b + c`, rounded once.
    #[track_caller]
    pub fn fma(self, b: impl Into<F64>, c: impl Into<F64>) -> F64 {
        let operands = [self.raw(), b.into().raw(), c.into().raw()];
        F64::from_raw(through_f32("math.fma", ScalarType::F64, &operands, &[], Location::caller()))
    }

    /// The value with the sign of `sign`.
    #[track_caller]
    pub fn copysign(self, sign: impl Into<F64>) -> F64 {
        let operands = [self.raw(), sign.into().raw()];
        F64::from_raw(through_f32("math.copysign", ScalarType::F64, &operands, &[], Location::caller()))
    }
}
