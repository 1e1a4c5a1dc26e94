//! Operations that work lane by lane, each defined once on scalars.

use crate::emulator::lanes::{Lane, Reg, Registers};
use crate::emulator::numeric::math;
use crate::emulator::numeric::narrow::{self, Fp8};

macro_rules! unary_ops {
    ($($(#[$doc:meta])* $name:ident: $A:ty => $D:ty, |$x:ident| $body:expr;)*) => {
        /// An operation of one operand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum UnaryOp { $($(#[$doc])* $name,)* }

        impl UnaryOp {
            /// Every operation.
            #[cfg(test)]
            pub(crate) const ALL: &'static [UnaryOp] = &[$(Self::$name),*];

            /// Slots of the result and the operand.
            pub(crate) fn slots(self) -> (u32, u32) {
                match self { $(Self::$name => (<$D>::SLOTS, <$A>::SLOTS),)* }
            }

            /// The operation on one lane's bits.
            #[cfg(test)]
            pub(crate) fn model(self, a: u64) -> u64 {
                match self { $(Self::$name => {
                    let $x = <$A as Bits>::from_u64(a);
                    <$D as Bits>::to_u64($body)
                })* }
            }
        }

        impl Registers<'_> {
            /// `d = op(a)` in every lane.
            #[inline(always)]
            pub(crate) fn unary(&mut self, op: UnaryOp, d: Reg, a: Reg) {
                match op { $(UnaryOp::$name => self.map1(d, a, |$x: $A| -> $D { $body }),)* }
            }
        }
    };
}

macro_rules! binary_ops {
    ($($(#[$doc:meta])* $name:ident: $T:ty, |$x:ident, $y:ident| $body:expr;)*) => {
        /// An operation of two operands of the result's type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum BinaryOp { $($(#[$doc])* $name,)* }

        impl BinaryOp {
            /// Every operation.
            #[cfg(test)]
            pub(crate) const ALL: &'static [BinaryOp] = &[$(Self::$name),*];

            /// Slots of each operand and of the result.
            pub(crate) fn slots(self) -> u32 {
                match self { $(Self::$name => <$T>::SLOTS,)* }
            }

            /// The operation on one lane's bits.
            #[cfg(test)]
            pub(crate) fn model(self, a: u64, b: u64) -> u64 {
                match self { $(Self::$name => {
                    let ($x, $y) = (<$T as Bits>::from_u64(a), <$T as Bits>::from_u64(b));
                    <$T as Bits>::to_u64($body)
                })* }
            }
        }

        impl Registers<'_> {
            /// `d = op(a, b)` in every lane.
            #[inline(always)]
            pub(crate) fn binary(&mut self, op: BinaryOp, d: Reg, a: Reg, b: Reg) {
                match op { $(BinaryOp::$name => self.map2(d, a, b, |$x: $T, $y: $T| -> $T { $body }),)* }
            }
        }
    };
}

macro_rules! compare_ops {
    ($($(#[$doc:meta])* $name:ident: $T:ty, |$x:ident, $y:ident| $body:expr;)*) => {
        /// A comparison. Those that are missing are these with swapped operands or the result negated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum CompareOp { $($(#[$doc])* $name,)* }

        impl CompareOp {
            /// Every comparison.
            #[cfg(test)]
            pub(crate) const ALL: &'static [CompareOp] = &[$(Self::$name),*];

            /// Slots of each operand.
            pub(crate) fn slots(self) -> u32 {
                match self { $(Self::$name => <$T>::SLOTS,)* }
            }

            /// The comparison on one lane's bits.
            #[cfg(test)]
            pub(crate) fn model(self, a: u64, b: u64) -> bool {
                match self { $(Self::$name => {
                    let ($x, $y) = (<$T as Bits>::from_u64(a), <$T as Bits>::from_u64(b));
                    $body
                })* }
            }
        }

        impl Registers<'_> {
            /// The lanes where a comparison holds.
            #[inline(always)]
            pub(crate) fn compare_op(&self, op: CompareOp, a: Reg, b: Reg) -> u32 {
                match op { $(CompareOp::$name => self.compare(a, b, |$x: $T, $y: $T| -> bool { $body }),)* }
            }
        }
    };
}

/// A lane's bits, for the tests' models.
#[cfg(test)]
pub(crate) trait Bits: Lane {
    fn from_u64(bits: u64) -> Self;
    fn to_u64(self) -> u64;
}

#[cfg(test)]
macro_rules! bits {
    ($($ty:ty: |$x:ident| $from:expr, |$y:ident| $to:expr;)*) => {$(
        impl Bits for $ty {
            fn from_u64($x: u64) -> Self { $from }
            fn to_u64(self) -> u64 { let $y = self; $to }
        }
    )*};
}

#[cfg(test)]
bits! {
    u32: |x| x as u32, |y| u64::from(y);
    i32: |x| x as i32, |y| u64::from(y as u32);
    f32: |x| f32::from_bits(x as u32), |y| u64::from(y.to_bits());
    u64: |x| x, |y| y;
    i64: |x| x as i64, |y| y as u64;
    f64: |x| f64::from_bits(x), |y| y.to_bits();
}

unary_ops! {
    // Integers. Narrow ones are extended first.
    SignExtend8: u32 => i32, |x| i32::from(x as i8);
    SignExtend16: u32 => i32, |x| i32::from(x as i16);
    ZeroExtend8: u32 => u32, |x| x & 0xff;
    ZeroExtend16: u32 => u32, |x| x & 0xffff;
    /// Words to their high halves.
    High16: u32 => u32, |x| x >> 16;
    SignExtend64: i32 => i64, |x| i64::from(x);
    ZeroExtend64: u32 => u64, |x| u64::from(x);
    Truncate64: u64 => u32, |x| x as u32;
    AbsI32: i32 => i32, |x| x.wrapping_abs();
    AbsI64: i64 => i64, |x| x.wrapping_abs();
    Popcount32: u32 => u32, |x| x.count_ones();
    Popcount64: u64 => u64, |x| u64::from(x.count_ones());
    LeadingZeros32: u32 => u32, |x| x.leading_zeros();
    LeadingZeros64: u64 => u64, |x| u64::from(x.leading_zeros());
    TrailingZeros32: u32 => u32, |x| x.trailing_zeros();
    TrailingZeros64: u64 => u64, |x| u64::from(x.trailing_zeros());
    // Conversions between integers and floats: Rust's `as`.
    F32ToI8: f32 => i32, |x| i32::from(x as i8);
    F32ToU8: f32 => u32, |x| u32::from(x as u8);
    F32ToI16: f32 => i32, |x| i32::from(x as i16);
    F32ToU16: f32 => u32, |x| u32::from(x as u16);
    F32ToI32: f32 => i32, |x| x as i32;
    F32ToU32: f32 => u32, |x| x as u32;
    F32ToI64: f32 => i64, |x| x as i64;
    F32ToU64: f32 => u64, |x| x as u64;
    F64ToI8: f64 => i32, |x| i32::from(x as i8);
    F64ToU8: f64 => u32, |x| u32::from(x as u8);
    F64ToI16: f64 => i32, |x| i32::from(x as i16);
    F64ToU16: f64 => u32, |x| u32::from(x as u16);
    F64ToI32: f64 => i32, |x| x as i32;
    F64ToU32: f64 => u32, |x| x as u32;
    F64ToI64: f64 => i64, |x| x as i64;
    F64ToU64: f64 => u64, |x| x as u64;
    I32ToF32: i32 => f32, |x| x as f32;
    U32ToF32: u32 => f32, |x| x as f32;
    I64ToF32: i64 => f32, |x| x as f32;
    U64ToF32: u64 => f32, |x| x as f32;
    I32ToF64: i32 => f64, |x| f64::from(x);
    U32ToF64: u32 => f64, |x| f64::from(x);
    I64ToF64: i64 => f64, |x| x as f64;
    U64ToF64: u64 => f64, |x| x as f64;
    /// Rounded to odd, on the way to a 16-bit format.
    I64ToF32Odd: i64 => f32, |x| narrow::i64_to_f32_odd(x);
    U64ToF32Odd: u64 => f32, |x| narrow::u64_to_f32_odd(x);
    // Conversions between floats. Binary16 widens in ops of its own.
    Bf16LowToF32: u32 => f32, |x| f32::from_bits(x << 16);
    Bf16HighToF32: u32 => f32, |x| f32::from_bits(x & 0xffff_0000);
    E4m3ToF32: u32 => f32, |x| narrow::fp8_to_f32(Fp8::E4m3, x as u8);
    E5m2ToF32: u32 => f32, |x| narrow::fp8_to_f32(Fp8::E5m2, x as u8);
    F32ToF16TowardZero: f32 => u32, |x| u32::from(narrow::f32_to_f16_toward_zero(x));
    F32ToBf16TowardZero: f32 => u32, |x| u32::from(narrow::f32_to_bf16_toward_zero(x));
    F32ToE4m3: f32 => u32, |x| u32::from(narrow::f32_to_fp8(Fp8::E4m3, x, false));
    F32ToE5m2: f32 => u32, |x| u32::from(narrow::f32_to_fp8(Fp8::E5m2, x, false));
    F32ToE4m3Saturating: f32 => u32, |x| u32::from(narrow::f32_to_fp8(Fp8::E4m3, x, true));
    F32ToE5m2Saturating: f32 => u32, |x| u32::from(narrow::f32_to_fp8(Fp8::E5m2, x, true));
    F32ToF64: f32 => f64, |x| f64::from(x);
    F64ToF32: f64 => f32, |x| x as f32;
    F64ToF32TowardZero: f64 => f32, |x| narrow::f64_to_f32_toward_zero(x);
    /// Rounded to odd, on the way to a 16-bit format.
    F64ToF32Odd: f64 => f32, |x| narrow::f64_to_f32_odd(x);
    // Binary32.
    NegF32: u32 => u32, |x| x ^ 0x8000_0000;
    AbsF32: u32 => u32, |x| x & 0x7fff_ffff;
    SqrtF32: f32 => f32, |x| x.sqrt();
    RsqrtF32: f32 => f32, |x| (1.0 / f64::from(x).sqrt()) as f32;
    RsqrtFast: f32 => f32, |x| 1.0 / x.sqrt();
    RcpFast: f32 => f32, |x| math::rcp_fast(x);
    FloorF32: f32 => f32, |x| x.floor();
    CeilF32: f32 => f32, |x| x.ceil();
    /// Half away from zero.
    RoundF32: f32 => f32, |x| x.round();
    RoundEvenF32: f32 => f32, |x| x.round_ties_even();
    TruncF32: f32 => f32, |x| x.trunc();
    ExpF32: f32 => f32, |x| libm::expf(x);
    ExpFast: f32 => f32, |x| math::exp_fast(x);
    Exp2F32: f32 => f32, |x| libm::exp2f(x);
    Exp2Fast: f32 => f32, |x| math::exp2_fast(x);
    LogF32: f32 => f32, |x| libm::logf(x);
    LogFast: f32 => f32, |x| math::log_fast(x);
    Log2F32: f32 => f32, |x| libm::log2f(x);
    Log2Fast: f32 => f32, |x| math::log2_fast(x);
    Log10F32: f32 => f32, |x| libm::log10f(x);
    Log10Fast: f32 => f32, |x| math::log10_fast(x);
    SinF32: f32 => f32, |x| libm::sinf(x);
    CosF32: f32 => f32, |x| libm::cosf(x);
    TanhF32: f32 => f32, |x| libm::tanhf(x);
    TanhFast: f32 => f32, |x| math::tanh_fast(x);
    ErfF32: f32 => f32, |x| libm::erff(x);
    // Binary64; there are no approximate forms.
    NegF64: u64 => u64, |x| x ^ 1 << 63;
    AbsF64: u64 => u64, |x| x & !(1 << 63);
    SqrtF64: f64 => f64, |x| x.sqrt();
    RsqrtF64: f64 => f64, |x| 1.0 / x.sqrt();
    FloorF64: f64 => f64, |x| x.floor();
    CeilF64: f64 => f64, |x| x.ceil();
    RoundF64: f64 => f64, |x| x.round();
    RoundEvenF64: f64 => f64, |x| x.round_ties_even();
    TruncF64: f64 => f64, |x| x.trunc();
    ExpF64: f64 => f64, |x| libm::exp(x);
    Exp2F64: f64 => f64, |x| libm::exp2(x);
    LogF64: f64 => f64, |x| libm::log(x);
    Log2F64: f64 => f64, |x| libm::log2(x);
    Log10F64: f64 => f64, |x| libm::log10(x);
    SinF64: f64 => f64, |x| libm::sin(x);
    CosF64: f64 => f64, |x| libm::cos(x);
    TanhF64: f64 => f64, |x| libm::tanh(x);
    ErfF64: f64 => f64, |x| libm::erf(x);
}

binary_ops! {
    AddI32: u32, |x, y| x.wrapping_add(y);
    SubI32: u32, |x, y| x.wrapping_sub(y);
    MulI32: u32, |x, y| x.wrapping_mul(y);
    And32: u32, |x, y| x & y;
    Or32: u32, |x, y| x | y;
    Xor32: u32, |x, y| x ^ y;
    Shl32: u32, |x, y| x.wrapping_shl(y);
    ShrU32: u32, |x, y| x.wrapping_shr(y);
    ShrS32: i32, |x, y| x.wrapping_shr(y as u32);
    MaxS32: i32, |x, y| x.max(y);
    MinS32: i32, |x, y| x.min(y);
    MaxU32: u32, |x, y| x.max(y);
    MinU32: u32, |x, y| x.min(y);
    AddI64: u64, |x, y| x.wrapping_add(y);
    SubI64: u64, |x, y| x.wrapping_sub(y);
    MulI64: u64, |x, y| x.wrapping_mul(y);
    And64: u64, |x, y| x & y;
    Or64: u64, |x, y| x | y;
    Xor64: u64, |x, y| x ^ y;
    Shl64: u64, |x, y| x.wrapping_shl(y as u32);
    ShrU64: u64, |x, y| x.wrapping_shr(y as u32);
    ShrS64: i64, |x, y| x.wrapping_shr(y as u32);
    MaxS64: i64, |x, y| x.max(y);
    MinS64: i64, |x, y| x.min(y);
    MaxU64: u64, |x, y| x.max(y);
    MinU64: u64, |x, y| x.min(y);
    AddF32: f32, |x, y| x + y;
    SubF32: f32, |x, y| x - y;
    MulF32: f32, |x, y| x * y;
    DivF32: f32, |x, y| x / y;
    RemF32: f32, |x, y| libm::fmodf(x, y);
    MaximumF32: f32, |x, y| math::maximum_f32(x, y);
    MinimumF32: f32, |x, y| math::minimum_f32(x, y);
    MaxnumF32: f32, |x, y| math::maxnum_f32(x, y);
    MinnumF32: f32, |x, y| math::minnum_f32(x, y);
    CopySignF32: u32, |x, y| x & 0x7fff_ffff | y & 0x8000_0000;
    AddF64: f64, |x, y| x + y;
    SubF64: f64, |x, y| x - y;
    MulF64: f64, |x, y| x * y;
    DivF64: f64, |x, y| x / y;
    RemF64: f64, |x, y| libm::fmod(x, y);
    MaximumF64: f64, |x, y| math::maximum_f64(x, y);
    MinimumF64: f64, |x, y| math::minimum_f64(x, y);
    MaxnumF64: f64, |x, y| math::maxnum_f64(x, y);
    MinnumF64: f64, |x, y| math::minnum_f64(x, y);
    CopySignF64: u64, |x, y| x & !(1 << 63) | y & 1 << 63;
    /// Two 16-bit values as the halves of a word.
    Pack16: u32, |x, y| x & 0xffff | y << 16;
    /// Two bytes as the low half of a word.
    Pack8: u32, |x, y| x & 0xff | (y & 0xff) << 8;
    /// Two binary32 values to bfloat16, to nearest even, as the halves of a word.
    PackBf16: f32, |x, y| f32::from_bits(u32::from(narrow::f32_to_bf16(x)) | u32::from(narrow::f32_to_bf16(y)) << 16);
}

compare_ops! {
    EqI32: u32, |x, y| x == y;
    LtS32: i32, |x, y| x < y;
    LeS32: i32, |x, y| x <= y;
    LtU32: u32, |x, y| x < y;
    LeU32: u32, |x, y| x <= y;
    EqI64: u64, |x, y| x == y;
    LtS64: i64, |x, y| x < y;
    LeS64: i64, |x, y| x <= y;
    LtU64: u64, |x, y| x < y;
    LeU64: u64, |x, y| x <= y;
    /// Ordered: false when either is NaN, as the next three.
    EqF32: f32, |x, y| x == y;
    LtF32: f32, |x, y| x < y;
    LeF32: f32, |x, y| x <= y;
    /// Less or greater.
    NeF32: f32, |x, y| (x < y) | (x > y);
    /// Neither is NaN.
    OrderedF32: f32, |x, y| !(x.is_nan() | y.is_nan());
    EqF64: f64, |x, y| x == y;
    LtF64: f64, |x, y| x < y;
    LeF64: f64, |x, y| x <= y;
    NeF64: f64, |x, y| (x < y) | (x > y);
    OrderedF64: f64, |x, y| !(x.is_nan() | y.is_nan());
}

/// A division or remainder of integers, wrapping at the one overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DivideOp {
    DivS32,
    DivU32,
    RemS32,
    RemU32,
    DivS64,
    DivU64,
    RemS64,
    RemU64,
}

impl DivideOp {
    /// Slots of each operand and of the result.
    pub(crate) fn slots(self) -> u32 {
        match self {
            Self::DivS32 | Self::DivU32 | Self::RemS32 | Self::RemU32 => 1,
            Self::DivS64 | Self::DivU64 | Self::RemS64 | Self::RemU64 => 2,
        }
    }
}

impl Registers<'_> {
    /// `d = op(a, b)`; lanes that divide by zero give zero. Returns those among `active`.
    #[inline(always)]
    pub(crate) fn divide(&mut self, op: DivideOp, d: Reg, a: Reg, b: Reg, active: u32) -> u32 {
        macro_rules! divide {
            ($ty:ty, $f:ident) => {{
                let mut zero = 0_u32;
                for lane in 0..32 {
                    let (x, y) = (self.lane::<$ty>(a, lane), self.lane::<$ty>(b, lane));
                    zero |= u32::from(y == 0) << lane;
                    self.set_lane::<$ty>(d, lane, if y == 0 { 0 } else { x.$f(y) });
                }
                zero & active
            }};
        }
        match op {
            DivideOp::DivS32 => divide!(i32, wrapping_div),
            DivideOp::DivU32 => divide!(u32, wrapping_div),
            DivideOp::RemS32 => divide!(i32, wrapping_rem),
            DivideOp::RemU32 => divide!(u32, wrapping_rem),
            DivideOp::DivS64 => divide!(i64, wrapping_div),
            DivideOp::DivU64 => divide!(u64, wrapping_div),
            DivideOp::RemS64 => divide!(i64, wrapping_rem),
            DivideOp::RemU64 => divide!(u64, wrapping_rem),
        }
    }
}
