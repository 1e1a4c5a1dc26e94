//! Functions of `math`: the exact ones by the portable `libm` crate (errors below one ulp or so),
//! the approximate ones by short polynomials in plain multiplications and additions (a fused
//! multiply-add would make hosts differ).

/// `2^x`, error below 3 ulp, right for subnormal results, infinities and NaN.
#[inline(always)]
pub(crate) fn exp2_fast(x: f32) -> f32 {
    // Beyond these the result is 0 or infinity anyway; inside, both scales below are normal.
    let clamped = choose_f32(x < -152.0, -152.0, choose_f32(x > 129.0, 129.0, x));
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
    let shifted = clamped + 12_582_912.0;
    let integer = (shifted.to_bits() as i32).wrapping_sub(0x4b40_0000);
    let fraction = clamped - (shifted - 12_582_912.0);
    // Minimax polynomial of 2^f on [-1/2, 1/2].
    let mut p = 1.540_353e-4_f32;
    p = p * fraction + 1.333_355_8e-3;
    p = p * fraction + 9.618_129e-3;
    p = p * fraction + 5.550_411e-2;
    p = p * fraction + 2.402_265e-1;
    p = p * fraction + 6.931_472e-1;
    p = p * fraction + 1.0;
    // Two scales: one alone does not reach subnormal results.
    let first = integer >> 1;
    let second = integer.wrapping_sub(first);
    let scale = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    let result = p * scale(first) * scale(second);
    choose_f32(x.is_nan(), x, result)
}

/// `e^x` as `2^(x log2 e)`, as the hardware's approximate form computes it.
#[inline(always)]
pub(crate) fn exp_fast(x: f32) -> f32 {
    exp2_fast(x * std::f32::consts::LOG2_E)
}

/// Base-2 logarithm, absolute error below 1e-6 near 1 and a few ulp elsewhere.
#[inline(always)]
pub(crate) fn log2_fast(x: f32) -> f32 {
    // Subnormals are scaled into the normal range.
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits();
    // Split at sqrt(1/2) so that the mantissa lies in [0.707, 1.414).
    let offset = bits.wrapping_sub(0x3f35_04f3);
    let exponent = (offset as i32) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub((exponent as u32) << 23));
    // log(m) = 2 artanh((m - 1) / (m + 1)), odd series in s.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let s2 = s * s;
    let mut p = 0.222_222_22_f32;
    p = p * s2 + 0.285_714_3;
    p = p * s2 + 0.4;
    p = p * s2 + 0.666_666_7;
    p = p * s2 + 2.0;
    let exponent = exponent as f32 - if tiny { 23.0 } else { 0.0 };
    let result = p * s * std::f32::consts::LOG2_E + exponent;
    let result = if x == f32::INFINITY || x.is_nan() { x } else { result };
    if x == 0.0 {
        f32::NEG_INFINITY
    } else if x < 0.0 {
        f32::NAN
    } else {
        result
    }
}

/// Natural logarithm by [`log2_fast`].
#[inline(always)]
pub(crate) fn log_fast(x: f32) -> f32 {
    log2_fast(x) * std::f32::consts::LN_2
}

/// Decimal logarithm by [`log2_fast`].
#[inline(always)]
pub(crate) fn log10_fast(x: f32) -> f32 {
    log2_fast(x) * std::f32::consts::LOG10_2
}

/// Hyperbolic tangent, relative error about 1e-6 (the hardware's form: 2^-11).
#[inline(always)]
pub(crate) fn tanh_fast(x: f32) -> f32 {
    let magnitude = x.abs();
    // Small arguments by the series, where the quotient would cancel.
    let x2 = x * x;
    let small = x * (1.0 + x2 * (-0.333_333_34 + x2 * (0.133_333_34 + x2 * -0.053_968_254)));
    let e = exp2_fast(magnitude * (2.0 * std::f32::consts::LOG2_E));
    let large = (1.0 - 2.0 / (e + 1.0)).copysign(x);
    if magnitude < 0.25 { small } else { large }
}

/// `1 / x` with subnormal arguments and results flushed to zero, as `rcp.approx.ftz.f32` does.
#[inline(always)]
pub(crate) fn rcp_fast(x: f32) -> f32 {
    let flush = |v: f32| if v.abs() < f32::MIN_POSITIVE { 0.0_f32.copysign(v) } else { v };
    flush(1.0 / flush(x))
}

/// The larger operand; NaN if either is; +0 is larger than -0.
#[inline(always)]
pub(crate) fn maximum_f32(a: f32, b: f32) -> f32 {
    choose_f32((a > b) | a.is_nan(), a, choose_f32(a == b, f32::from_bits(a.to_bits() & b.to_bits()), b))
}

/// The smaller operand; NaN if either is; -0 is smaller than +0.
#[inline(always)]
pub(crate) fn minimum_f32(a: f32, b: f32) -> f32 {
    choose_f32((a < b) | a.is_nan(), a, choose_f32(a == b, f32::from_bits(a.to_bits() | b.to_bits()), b))
}

/// The larger operand, or the one that is not NaN.
#[inline(always)]
pub(crate) fn maxnum_f32(a: f32, b: f32) -> f32 {
    choose_f32(a.is_nan(), b, choose_f32(b.is_nan(), a, maximum_f32(a, b)))
}

/// The smaller operand, or the one that is not NaN.
#[inline(always)]
pub(crate) fn minnum_f32(a: f32, b: f32) -> f32 {
    choose_f32(a.is_nan(), b, choose_f32(b.is_nan(), a, minimum_f32(a, b)))
}

/// `condition ? a : b` by bit masks: branches between float comparisons keep loops from vectorising.
#[inline(always)]
fn choose_f32(condition: bool, a: f32, b: f32) -> f32 {
    let mask = u32::from(condition).wrapping_neg();
    f32::from_bits(a.to_bits() & mask | b.to_bits() & !mask)
}

/// The larger operand; NaN if either is; +0 is larger than -0.
#[inline(always)]
pub(crate) fn maximum_f64(a: f64, b: f64) -> f64 {
    choose_f64((a > b) | a.is_nan(), a, choose_f64(a == b, f64::from_bits(a.to_bits() & b.to_bits()), b))
}

/// The smaller operand; NaN if either is; -0 is smaller than +0.
#[inline(always)]
pub(crate) fn minimum_f64(a: f64, b: f64) -> f64 {
    choose_f64((a < b) | a.is_nan(), a, choose_f64(a == b, f64::from_bits(a.to_bits() | b.to_bits()), b))
}

/// The larger operand, or the one that is not NaN.
#[inline(always)]
pub(crate) fn maxnum_f64(a: f64, b: f64) -> f64 {
    choose_f64(a.is_nan(), b, choose_f64(b.is_nan(), a, maximum_f64(a, b)))
}

/// The smaller operand, or the one that is not NaN.
#[inline(always)]
pub(crate) fn minnum_f64(a: f64, b: f64) -> f64 {
    choose_f64(a.is_nan(), b, choose_f64(b.is_nan(), a, minimum_f64(a, b)))
}

/// `condition ? a : b` by bit masks: branches between float comparisons keep loops from vectorising.
#[inline(always)]
fn choose_f64(condition: bool, a: f64, b: f64) -> f64 {
    let mask = u64::from(condition).wrapping_neg();
    f64::from_bits(a.to_bits() & mask | b.to_bits() & !mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps(ours: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        let step = f64::from(f32::from_bits(nearest.abs().to_bits() + 1)) - f64::from(nearest.abs());
        (f64::from(ours) - exact).abs() / step
    }

    #[test]
    fn approximations_are_close_and_right_at_the_edges() {
        let mut worst = [0.0_f64; 3];
        for i in -300_000..300_000 {
            let x = i as f32 * 4.9e-4;
            if x > -148.0 && x < 127.9 {
                worst[0] = worst[0].max(ulps(exp2_fast(x), f64::from(x).exp2()));
            }
            let y = (x * 0.6).exp2();
            worst[1] =
                worst[1].max((f64::from(log2_fast(y)) - f64::from(y).log2()).abs() / (1.0 + f64::from(y).log2().abs()));
            let t = f64::from(x).tanh();
            worst[2] = worst[2].max((f64::from(tanh_fast(x)) - t).abs() / t.abs().max(1e-30));
        }
        assert!(worst[0] < 3.0 && worst[1] < 4e-7 && worst[2] < 2e-6, "{worst:?}");
        assert_eq!(exp2_fast(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp2_fast(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp2_fast(-149.0), f32::from_bits(1));
        assert!(exp2_fast(f32::NAN).is_nan());
        assert_eq!(log2_fast(0.0), f32::NEG_INFINITY);
        assert_eq!(log2_fast(f32::from_bits(1)), -149.0);
        assert_eq!(log2_fast(f32::INFINITY), f32::INFINITY);
        assert!(log2_fast(-1.0).is_nan());
        assert_eq!(tanh_fast(f32::NEG_INFINITY), -1.0);
        assert_eq!(rcp_fast(1e-40), f32::INFINITY);
        assert_eq!(rcp_fast(3e38).to_bits(), 0);
    }

    #[test]
    fn extrema_follow_their_rules_for_nan_and_zero() {
        assert!(maximum_f32(f32::NAN, 1.0).is_nan() && maximum_f32(1.0, f32::NAN).is_nan());
        assert!(minimum_f64(f64::NAN, 1.0).is_nan() && minimum_f64(1.0, f64::NAN).is_nan());
        assert_eq!(maxnum_f32(f32::NAN, 1.0), 1.0);
        assert_eq!(minnum_f32(1.0, f32::NAN), 1.0);
        assert_eq!(maximum_f32(-0.0, 0.0).to_bits(), 0);
        assert_eq!(maximum_f32(0.0, -0.0).to_bits(), 0);
        assert_eq!(minimum_f32(0.0, -0.0).to_bits(), 0x8000_0000);
        assert_eq!(maximum_f32(-3.0, -2.0), -2.0);
        assert_eq!(minnum_f64(-3.0, -2.0), -3.0);
    }
}
