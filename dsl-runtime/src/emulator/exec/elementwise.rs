//! Operations that work lane by lane, each defined once on scalars.

use crate::emulator::lanes::{LANES, Lane, Reg, Registers};
use crate::emulator::numeric::math;
use crate::emulator::numeric::narrow::{self, Fp8};

// Operations come in two lists: the hot ones are compiled into each copy of the interpreter, the cold
// ones once, as a call, which keeps the interpreter quick to compile.
macro_rules! unary_ops {
    (
        hot { $($(#[$hot_doc:meta])* $hot:ident: $hot_a:ty => $hot_d:ty, |$hot_x:ident| $hot_body:expr;)* }
        cold { $($(#[$cold_doc:meta])* $cold:ident: $cold_a:ty => $cold_d:ty, |$cold_x:ident| $cold_body:expr;)* }
    ) => {
        /// An operation of one operand.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum UnaryOp { $($(#[$hot_doc])* $hot,)* $($(#[$cold_doc])* $cold,)* }

        impl UnaryOp {
            /// Slots of the result and the operand.
            pub(crate) fn slots(self) -> (u32, u32) {
                match self {
                    $(Self::$hot => (<$hot_d>::SLOTS, <$hot_a>::SLOTS),)*
                    $(Self::$cold => (<$cold_d>::SLOTS, <$cold_a>::SLOTS),)*
                }
            }
        }

        impl Registers<'_> {
            /// `d = op(a)` in every lane.
            #[inline(always)]
            pub(crate) fn unary(&mut self, op: UnaryOp, d: Reg, a: Reg) {
                match op {
                    $(UnaryOp::$hot => self.map1(d, a, |$hot_x: $hot_a| -> $hot_d { $hot_body }),)*
                    _ => self.unary_cold(op, d, a),
                }
            }

            #[inline(never)]
            fn unary_cold(&mut self, op: UnaryOp, d: Reg, a: Reg) {
                match op {
                    $(UnaryOp::$hot => {})*
                    $(UnaryOp::$cold => self.map1(d, a, |$cold_x: $cold_a| -> $cold_d { $cold_body }),)*
                }
            }
        }
    };
}

macro_rules! binary_ops {
    (
        hot { $($(#[$hot_doc:meta])* $hot:ident: $hot_t:ty, |$hot_x:ident, $hot_y:ident| $hot_body:expr;)* }
        cold { $($(#[$cold_doc:meta])* $cold:ident: $cold_t:ty, |$cold_x:ident, $cold_y:ident| $cold_body:expr;)* }
    ) => {
        /// An operation of two operands of the result's type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum BinaryOp { $($(#[$hot_doc])* $hot,)* $($(#[$cold_doc])* $cold,)* }

        impl BinaryOp {
            /// Slots of each operand and of the result.
            pub(crate) fn slots(self) -> u32 {
                match self {
                    $(Self::$hot => <$hot_t>::SLOTS,)*
                    $(Self::$cold => <$cold_t>::SLOTS,)*
                }
            }
        }

        impl Registers<'_> {
            /// `d = op(a, b)` in every lane.
            #[inline(always)]
            pub(crate) fn binary(&mut self, op: BinaryOp, d: Reg, a: Reg, b: Reg) {
                match op {
                    $(BinaryOp::$hot => self.map2(d, a, b, |$hot_x: $hot_t, $hot_y: $hot_t| -> $hot_t { $hot_body }),)*
                    _ => self.binary_cold(op, d, a, b),
                }
            }

            #[inline(never)]
            fn binary_cold(&mut self, op: BinaryOp, d: Reg, a: Reg, b: Reg) {
                match op {
                    $(BinaryOp::$hot => {})*
                    $(BinaryOp::$cold => {
                        self.map2(d, a, b, |$cold_x: $cold_t, $cold_y: $cold_t| -> $cold_t { $cold_body });
                    })*
                }
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
            /// Slots of each operand.
            pub(crate) fn slots(self) -> u32 {
                match self { $(Self::$name => <$T>::SLOTS,)* }
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

unary_ops! {
    hot {
        SignExtend8: u32 => i32, |x| i32::from(x as i8);
        SignExtend16: u32 => i32, |x| i32::from(x as i16);
        ZeroExtend8: u32 => u32, |x| x & 0xff;
        ZeroExtend16: u32 => u32, |x| x & 0xffff;
        SignExtend64: i32 => i64, |x| i64::from(x);
        ZeroExtend64: u32 => u64, |x| u64::from(x);
        Truncate64: u64 => u32, |x| x as u32;
        F32ToI32: f32 => i32, |x| x as i32;
        I32ToF32: i32 => f32, |x| x as f32;
        U32ToF32: u32 => f32, |x| x as f32;
        Bf16LowToF32: u32 => f32, |x| f32::from_bits(x << 16);
        Bf16HighToF32: u32 => f32, |x| f32::from_bits(x & 0xffff_0000);
        NegF32: u32 => u32, |x| x ^ 0x8000_0000;
        AbsF32: u32 => u32, |x| x & 0x7fff_ffff;
        SqrtF32: f32 => f32, |x| x.sqrt();
        RsqrtFast: f32 => f32, |x| 1.0 / x.sqrt();
        RcpFast: f32 => f32, |x| math::rcp_fast(x);
        ExpFast: f32 => f32, |x| math::exp_fast(x);
        Exp2Fast: f32 => f32, |x| math::exp2_fast(x);
        LogFast: f32 => f32, |x| math::log_fast(x);
        Log2Fast: f32 => f32, |x| math::log2_fast(x);
        TanhFast: f32 => f32, |x| math::tanh_fast(x);
    }
    cold {
        AbsI32: i32 => i32, |x| x.wrapping_abs();
        AbsI64: i64 => i64, |x| x.wrapping_abs();
        Popcount32: u32 => u32, |x| x.count_ones();
        Popcount64: u64 => u64, |x| u64::from(x.count_ones());
        LeadingZeros32: u32 => u32, |x| x.leading_zeros();
        LeadingZeros64: u64 => u64, |x| u64::from(x.leading_zeros());
        TrailingZeros32: u32 => u32, |x| x.trailing_zeros();
        TrailingZeros64: u64 => u64, |x| u64::from(x.trailing_zeros());
        F32ToI8: f32 => i32, |x| i32::from(x as i8);
        F32ToU8: f32 => u32, |x| u32::from(x as u8);
        F32ToI16: f32 => i32, |x| i32::from(x as i16);
        F32ToU16: f32 => u32, |x| u32::from(x as u16);
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
        I64ToF32: i64 => f32, |x| x as f32;
        U64ToF32: u64 => f32, |x| x as f32;
        I32ToF64: i32 => f64, |x| f64::from(x);
        U32ToF64: u32 => f64, |x| f64::from(x);
        I64ToF64: i64 => f64, |x| x as f64;
        U64ToF64: u64 => f64, |x| x as f64;
        /// Rounded to odd, on the way to a 16-bit format.
        I64ToF32Odd: i64 => f32, |x| narrow::i64_to_f32_odd(x);
        U64ToF32Odd: u64 => f32, |x| narrow::u64_to_f32_odd(x);
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
        RsqrtF32: f32 => f32, |x| (1.0 / f64::from(x).sqrt()) as f32;
        FloorF32: f32 => f32, |x| x.floor();
        CeilF32: f32 => f32, |x| x.ceil();
        /// Half away from zero.
        RoundF32: f32 => f32, |x| x.round();
        RoundEvenF32: f32 => f32, |x| x.round_ties_even();
        TruncF32: f32 => f32, |x| x.trunc();
        ExpF32: f32 => f32, |x| libm::expf(x);
        Exp2F32: f32 => f32, |x| libm::exp2f(x);
        LogF32: f32 => f32, |x| libm::logf(x);
        Log2F32: f32 => f32, |x| libm::log2f(x);
        Log10F32: f32 => f32, |x| libm::log10f(x);
        Log10Fast: f32 => f32, |x| math::log10_fast(x);
        SinF32: f32 => f32, |x| libm::sinf(x);
        CosF32: f32 => f32, |x| libm::cosf(x);
        TanhF32: f32 => f32, |x| libm::tanhf(x);
        ErfF32: f32 => f32, |x| libm::erff(x);
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
}

binary_ops! {
    hot {
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
        AddF32: f32, |x, y| x + y;
        SubF32: f32, |x, y| x - y;
        MulF32: f32, |x, y| x * y;
        DivF32: f32, |x, y| x / y;
        MaximumF32: f32, |x, y| math::maximum_f32(x, y);
        MinimumF32: f32, |x, y| math::minimum_f32(x, y);
        MaxnumF32: f32, |x, y| math::maxnum_f32(x, y);
        MinnumF32: f32, |x, y| math::minnum_f32(x, y);
        /// Two 16-bit values as the halves of a word.
        Pack16: u32, |x, y| x & 0xffff | y << 16;
        /// Two binary32 values to bfloat16, to nearest even, as the halves of a word.
        PackBf16: f32, |x, y| f32::from_bits(u32::from(narrow::f32_to_bf16(x)) | u32::from(narrow::f32_to_bf16(y)) << 16);
    }
    cold {
        ShrS64: i64, |x, y| x.wrapping_shr(y as u32);
        MaxS64: i64, |x, y| x.max(y);
        MinS64: i64, |x, y| x.min(y);
        MaxU64: u64, |x, y| x.max(y);
        MinU64: u64, |x, y| x.min(y);
        RemF32: f32, |x, y| libm::fmodf(x, y);
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
        /// Two bytes as the low half of a word.
        Pack8: u32, |x, y| x & 0xff | (y & 0xff) << 8;
    }
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
    #[inline(never)]
    pub(crate) fn divide(&mut self, op: DivideOp, d: Reg, a: Reg, b: Reg, active: u32) -> u32 {
        // A quotient of 32-bit numbers is exact in binary64 once it is truncated: where x / y is no whole number it is
        // at least 1 / |y| away from one, and it is rounded by at most 2^-53 |x / y|, which is less than 2^-20 / |y|.
        // Processors divide floats by vectors.
        macro_rules! divide_in_f64 {
            ($ty:ty, |$x:ident, $y:ident, $quotient:ident| $result:expr) => {{
                let (left, right) = (self.read::<$ty>(a), self.read::<$ty>(b));
                let zero = self.compare::<$ty>(b, b, |y, _| y == 0);
                let mut out = [0; LANES];
                for lane in 0..LANES {
                    let ($x, $y) = (left[lane], right[lane]);
                    let $quotient = f64::from($x) / f64::from($y);
                    out[lane] = if $y == 0 { 0 } else { $result };
                }
                self.write::<$ty>(d, out);
                zero & active
            }};
        }
        // The one overflow, of the smallest number by -1, wraps.
        let signed = |quotient: f64| if quotient == -f64::from(i32::MIN) { i32::MIN } else { quotient as i32 };
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
            DivideOp::DivS32 => divide_in_f64!(i32, |x, y, quotient| signed(quotient)),
            DivideOp::DivU32 => divide_in_f64!(u32, |x, y, quotient| quotient as u32),
            DivideOp::RemS32 => divide_in_f64!(i32, |x, y, q| x.wrapping_sub(signed(q).wrapping_mul(y))),
            DivideOp::RemU32 => divide_in_f64!(u32, |x, y, q| x.wrapping_sub((q as u32).wrapping_mul(y))),
            DivideOp::DivS64 => divide!(i64, wrapping_div),
            DivideOp::DivU64 => divide!(u64, wrapping_div),
            DivideOp::RemS64 => divide!(i64, wrapping_rem),
            DivideOp::RemU64 => divide!(u64, wrapping_rem),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::lanes::Slot;

    /// The four results of a pair that is no division by zero.
    fn divide(pairs: &[(u32, u32)]) {
        let word = |f: fn(&(u32, u32)) -> u32| Slot(std::array::from_fn(|lane| pairs.get(lane).map_or(1, f)));
        let mut slots = [word(|p| p.0), word(|p| p.1), Slot([0; LANES])];
        let mut masks = [];
        for op in [DivideOp::DivS32, DivideOp::DivU32, DivideOp::RemS32, DivideOp::RemU32] {
            let mut regs = Registers::new(&mut slots, &mut masks);
            let zero = regs.divide(op, 2, 0, 1, u32::MAX);
            for (lane, &(x, y)) in pairs.iter().enumerate() {
                let wanted = match op {
                    _ if y == 0 => 0,
                    DivideOp::DivS32 => (x as i32).wrapping_div(y as i32) as u32,
                    DivideOp::RemS32 => (x as i32).wrapping_rem(y as i32) as u32,
                    DivideOp::DivU32 => x / y,
                    _ => x % y,
                };
                assert_eq!(regs.lane::<u32>(2, lane), wanted, "{op:?} {x} {y}");
                assert_eq!(zero >> lane & 1 == 1, y == 0, "{op:?} {x} {y}");
            }
        }
    }

    #[test]
    fn quotients_are_those_of_integers() {
        let edges = [0, 1, 2, 3, 5, 7, 10, 641, 1 << 15, 65535, 65536, 65537, (1 << 24) + 1, i32::MAX as u32 - 1];
        let edges: Vec<u32> = edges.into_iter().flat_map(|x: u32| [x, x.wrapping_neg(), !x, x ^ 1 << 31]).collect();
        let mut pairs = Vec::new();
        for &y in &edges {
            for &x in &edges {
                pairs.push((x, y));
                // Beside a multiple of y.
                let multiple = x.wrapping_mul(y);
                pairs.extend([multiple, multiple.wrapping_sub(1), multiple.wrapping_add(1)].map(|x| (x, y)));
            }
        }
        // A multiplicative congruence: spread over all sizes.
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (x, y) = ((state >> 32) as u32, (state as u32) >> (state >> 59));
            pairs.push((x, y));
            pairs.push(((x / y.max(1)).wrapping_mul(y).wrapping_sub(1), y));
        }
        pairs.chunks(LANES).for_each(divide);
    }
}
