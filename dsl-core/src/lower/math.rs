//! Elementary functions on `f32`, expanded into arithmetic.
//!
//! No device library is linked (`libdevice` and `ocml` may not be there), so what the target's
//! instructions do not give is computed here, in the same way for every target. The polynomials were
//! made for this file by the Remez exchange algorithm in 40-digit arithmetic, minimising the error
//! relative to the function, then rounded to `f32`; the remaining steps are standard (range
//! reduction after Cody and Waite, and after Payne and Hanek for large angles). Bounds are in units
//! in the last place (ulp) and are checked by the tests below; they take the target's base-2
//! exponential as 2 ulp (PTX ISA, `ex2`: relative error below 2^-22).
//!
//! | function | bound |
//! |---|---|
//! | [`exp`] | 3 ulp |
//! | [`log`], [`log2`], [`log10`] | 2 ulp |
//! | [`tanh`] | 3 ulp |
//! | [`erf`] | 3 ulp |
//! | [`sin`], [`cos`] | 2.5 ulp over the whole range |
//! | [`rsqrt`] | 1.5 ulp |
//! | [`remainder`] | exact |

use super::numeric::{Kind, Numeric, horner};

const LOG2_E: [f32; 2] = [f32::from_bits(0x3fb8_aa3b), f32::from_bits(0x32a5_7060)];
const LN_2: [f32; 2] = [f32::from_bits(0x3f31_7218), f32::from_bits(0xb102_e308)];
const LOG10_E: [f32; 2] = [f32::from_bits(0x3ede_5bd9), f32::from_bits(0xb22d_91af)];
const LOG10_2: [f32; 2] = [f32::from_bits(0x3e9a_209b), f32::from_bits(0xb276_0860)];
const HALF_PI: [f32; 3] = [f32::from_bits(0x3fc9_0fdb), f32::from_bits(0xb33b_bd2e), f32::from_bits(0xa6f7_2ced)];
const TWO_OVER_PI: f32 = f32::from_bits(0x3f22_f983);

/// (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2)-1, sqrt(2)-1]; relative error of the logarithm 5.9e-9.
const LOG_TAIL: [f32; 8] = [
    f32::from_bits(0x3eaa_aaaa),
    f32::from_bits(0xbe80_0113),
    f32::from_bits(0x3e4c_d007),
    f32::from_bits(0xbe2a_3941),
    f32::from_bits(0x3e11_6cf3),
    f32::from_bits(0xbe06_c184),
    f32::from_bits(0x3e02_add1),
    f32::from_bits(0xbd9c_6038),
];
/// (tanh(x) - x) / x^3 in x^2 for x^2 <= 0.4; relative error of tanh 4.7e-9.
const TANH_TAIL: [f32; 5] = [
    f32::from_bits(0xbeaa_aa98),
    f32::from_bits(0x3e08_8348),
    f32::from_bits(0xbd5c_1333),
    f32::from_bits(0x3ca8_c5a4),
    f32::from_bits(0xbbb9_7e86),
];
/// erf(x)/x - 1 in x^2 for x <= 0.9375; error 5.0e-10.
const ERF_NEAR: [f32; 7] = [
    f32::from_bits(0x3e03_75d4),
    f32::from_bits(0xbec0_93a1),
    f32::from_bits(0x3de7_1703),
    f32::from_bits(0xbcdc_0718),
    f32::from_bits(0x3baa_6168),
    f32::from_bits(0xba55_035f),
    f32::from_bits(0x38ad_fe1a),
];
/// (log(1 - erf(x)) + x) / x for 0.9375 <= x <= 4; error of erf 1.8e-10.
const ERFC_LOG: [f32; 8] = [
    f32::from_bits(0xbe03_a661),
    f32::from_bits(0xbf22_b486),
    f32::from_bits(0xbdd7_cf07),
    f32::from_bits(0x3cba_b75f),
    f32::from_bits(0xbb44_cf86),
    f32::from_bits(0x389f_36ed),
    f32::from_bits(0x3829_8d62),
    f32::from_bits(0xb697_860c),
];
/// (sin(r) - r) / r^3 in r^2 for |r| <= pi/4; relative error of the sine 3.7e-9.
const SIN_TAIL: [f32; 3] = [f32::from_bits(0xbe2a_aaa3), f32::from_bits(0x3c08_8397), f32::from_bits(0xb94c_9eb9)];
/// (cos(r) - 1 + r^2/2) / r^4 in r^2 for |r| <= pi/4; error of the cosine 1.0e-10.
const COS_TAIL: [f32; 3] = [f32::from_bits(0x3d2a_aaa5), f32::from_bits(0xbab6_062c), f32::from_bits(0x37cc_f96f)];
/// The binary fraction of 2/pi after 32 zero bits.
const TWO_OVER_PI_WORDS: [u32; 8] =
    [0, 0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// `x * 2^k` for `|x|` in [0.5, 2] and `k` in [-160, 160]: two factors, so that neither overflows
/// alone and the result is rounded once.
fn scale<N: Numeric>(n: &N, x: N::Value, k: N::Value) -> Result<N::Value, N::Error> {
    let half = n.isar(k, n.int(1)?)?;
    let rest = n.isub(k, half)?;
    let mut y = x;
    for part in [half, rest] {
        let exponent = n.iadd(part, n.int(127)?)?;
        y = n.mul(y, n.float_of(n.ishl(exponent, n.int(23)?)?)?)?;
    }
    Ok(y)
}

/// The base-e exponential.
pub(crate) fn exp<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    // Beyond these the result is 0 or infinite anyway; NaN passes both comparisons by.
    let (low, high) = (n.float(-104.0)?, n.float(89.0)?);
    let x = n.select(n.less(x, low)?, low, x)?;
    let x = n.select(n.less(high, x)?, high, x)?;
    let k = n.round(n.mul(x, n.float(LOG2_E[0])?)?)?;
    // x*log2(e) - k to twice the precision: the product's rounding error would be amplified by k.
    let f = n.fma(x, n.float(LOG2_E[0])?, n.neg(k)?)?;
    let f = n.fma(x, n.float(LOG2_E[1])?, f)?;
    scale(n, n.exp2_near_zero(f)?, n.to_int(k)?)
}

/// `(k, f, r)` with `log(x) = k*log(2) + f + r`, `1+f` in [sqrt(1/2), sqrt(2)), `r` the part of
/// log(1+f) beyond f. For positive finite `x`.
fn log_parts<N: Numeric>(n: &N, x: N::Value) -> Result<[N::Value; 3], N::Error> {
    let subnormal = n.less(x, n.float(f32::MIN_POSITIVE)?)?;
    let x = n.select(subnormal, n.mul(x, n.float(8_388_608.0)?)?, x)?;
    let shift = n.select(subnormal, n.int(-23)?, n.int(0)?)?;
    let bits = n.bits(x)?;
    let sqrt_half = n.int(std::f32::consts::FRAC_1_SQRT_2.to_bits() as i32)?;
    let k = n.isar(n.isub(bits, sqrt_half)?, n.int(23)?)?;
    let m = n.float_of(n.isub(bits, n.ishl(k, n.int(23)?)?)?)?;
    let f = n.sub(m, n.float(1.0)?)?;
    let tail = horner(n, f, &LOG_TAIL)?;
    let r = n.mul(n.mul(f, f)?, n.fma(f, tail, n.float(-0.5)?)?)?;
    Ok([n.to_float(n.iadd(k, shift)?)?, f, r])
}

/// Puts in what a logarithm is where `x` is not positive and finite.
fn log_edges<N: Numeric>(n: &N, x: N::Value, y: N::Value) -> Result<N::Value, N::Error> {
    let (zero, infinity) = (n.float(0.0)?, n.float(f32::INFINITY)?);
    let y = n.select(n.less(x, infinity)?, y, x)?;
    let y = n.select(n.less(x, zero)?, n.float(f32::NAN)?, y)?;
    n.select(n.equal(x, zero)?, n.float(f32::NEG_INFINITY)?, y)
}

/// The natural logarithm.
pub(crate) fn log<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    let [k, f, r] = log_parts(n, x)?;
    let low = n.fma(k, n.float(LN_2[1])?, r)?;
    let y = n.fma(k, n.float(LN_2[0])?, n.add(f, low)?)?;
    log_edges(n, x, y)
}

/// `(f + r) * constant` as an unevaluated sum of a large and a small part.
fn scaled_sum<N: Numeric>(
    n: &N,
    f: N::Value,
    r: N::Value,
    constant: [f32; 2],
) -> Result<(N::Value, N::Value), N::Error> {
    let factor = n.float(constant[0])?;
    let high = n.mul(f, factor)?;
    let low = n.fma(f, factor, n.neg(high)?)?;
    let low = n.fma(f, n.float(constant[1])?, low)?;
    Ok((high, n.fma(r, factor, low)?))
}

/// The base-2 logarithm.
pub(crate) fn log2<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    let [k, f, r] = log_parts(n, x)?;
    let (high, low) = scaled_sum(n, f, r, LOG2_E)?;
    let y = n.add(k, n.add(high, low)?)?;
    log_edges(n, x, y)
}

/// The base-10 logarithm.
pub(crate) fn log10<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    let [k, f, r] = log_parts(n, x)?;
    let (high, low) = scaled_sum(n, f, r, LOG10_E)?;
    let low = n.fma(k, n.float(LOG10_2[1])?, low)?;
    let y = n.fma(k, n.float(LOG10_2[0])?, n.add(high, low)?)?;
    log_edges(n, x, y)
}

/// `1 / sqrt(x)`, each step correctly rounded.
pub(crate) fn rsqrt<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    n.div(n.float(1.0)?, n.sqrt(x)?)
}

/// The hyperbolic tangent.
pub(crate) fn tanh<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    let a = n.abs(x)?;
    let square = n.mul(a, a)?;
    let near = n.fma(n.mul(square, a)?, horner(n, square, &TANH_TAIL)?, a)?;
    let e = exp(n, n.add(a, a)?)?;
    let one = n.float(1.0)?;
    let far = n.sub(one, n.div(n.float(2.0)?, n.add(e, one)?)?)?;
    n.copysign(n.select(n.less(a, n.float(0.625)?)?, near, far)?, x)
}

/// The error function.
pub(crate) fn erf<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    let a = n.abs(x)?;
    let near = n.fma(a, horner(n, n.mul(a, a)?, &ERF_NEAR)?, a)?;
    // erf is 1 to the last bit from 3.92 on.
    let four = n.float(4.0)?;
    let bounded = n.select(n.less(four, a)?, four, a)?;
    let exponent = n.fma(horner(n, bounded, &ERFC_LOG)?, bounded, n.neg(bounded)?)?;
    let far = n.sub(n.float(1.0)?, exp(n, exponent)?)?;
    n.copysign(n.select(n.less(a, n.float(0.9375)?)?, near, far)?, x)
}

/// `(r, q)`: `a = q * pi/2 + r` with `|r| <= pi/4`; `q` modulo 4 is right. For `a >= 0`.
fn reduce_angle<N: Numeric>(n: &N, a: N::Value) -> Result<[N::Value; 2], N::Error> {
    // With three parts of pi/2 in fma the reduced angle keeps full precision while q has 16 bits.
    let small = n.less(a, n.float(100_000.0)?)?;
    n.branch(
        small,
        [Kind::Float, Kind::Int],
        |n| {
            let q = n.round(n.mul(a, n.float(TWO_OVER_PI)?)?)?;
            let minus_q = n.neg(q)?;
            let mut r = a;
            for part in HALF_PI {
                r = n.fma(minus_q, n.float(part)?, r)?;
            }
            Ok([r, n.to_int(q)?])
        },
        |n| reduce_large_angle(n, a),
    )
}

/// Payne and Hanek: of the product of the 24-bit significand with 2/pi only the bits that matter
/// modulo 4 are formed, in integers.
fn reduce_large_angle<N: Numeric>(n: &N, a: N::Value) -> Result<[N::Value; 2], N::Error> {
    let bits = n.bits(a)?;
    let significand = n.ior(n.iand(bits, n.int(0x7f_ffff)?)?, n.int(0x80_0000)?)?;
    // a = significand * 2^e; the window starts at the bit of 2/pi that has weight 2 in the product.
    let e = n.isub(n.ishr(bits, n.int(23)?)?, n.int(150)?)?;
    let start = n.iadd(e, n.int(30)?)?;
    let index = n.ishr(start, n.int(5)?)?;
    let shift = n.iand(start, n.int(31)?)?;
    let word = |offset: usize| -> Result<N::Value, N::Error> {
        let mut value = n.int(TWO_OVER_PI_WORDS.get(offset + 4).copied().unwrap_or(0) as i32)?;
        for candidate in (0..4).rev() {
            let here = n.iequal(index, n.int(candidate)?)?;
            let bits = TWO_OVER_PI_WORDS.get(offset + candidate as usize).copied().unwrap_or(0);
            value = n.select(here, n.int(bits as i32)?, value)?;
        }
        Ok(value)
    };
    let words = [word(0)?, word(1)?, word(2)?, word(3)?];
    let wide_shift = n.widen(shift)?;
    let window = |high: N::Value, low: N::Value| -> Result<N::Value, N::Error> {
        let pair = n.ior(n.ishl(n.widen(high)?, n.long(32)?)?, n.widen(low)?)?;
        n.ishr(n.ishl(pair, wide_shift)?, n.long(32)?)
    };
    let high = window(words[0], words[1])?;
    let middle = window(words[1], words[2])?;
    let low = window(words[2], words[3])?;
    let significand = n.widen(significand)?;
    let top = n.ishl(n.imul(significand, high)?, n.long(32)?)?;
    let product = n.iadd(top, n.imul(significand, middle)?)?;
    let product = n.iadd(product, n.ishr(n.imul(significand, low)?, n.long(32)?)?)?;
    // Two integer bits (the quadrant) and 62 of fraction; to the nearest quadrant.
    let quadrant = n.ishr(n.iadd(product, n.long(1 << 61)?)?, n.long(62)?)?;
    let fraction = n.isub(product, n.ishl(quadrant, n.long(62)?)?)?;
    let unit = 1.0 / (1u64 << 62) as f32;
    let turn = n.to_float(fraction)?;
    let low = n.mul(turn, n.float(HALF_PI[1] * unit)?)?;
    Ok([n.fma(turn, n.float(HALF_PI[0] * unit)?, low)?, n.narrow(quadrant)?])
}

/// The sine, of `quarter_turns` (0 or 1) more right angles than `x`.
fn sine_shifted<N: Numeric>(n: &N, x: N::Value, quarter_turns: i32) -> Result<N::Value, N::Error> {
    let a = n.abs(x)?;
    let [r, q] = reduce_angle(n, a)?;
    let q = n.iadd(q, n.int(quarter_turns)?)?;
    let square = n.mul(r, r)?;
    let sine = n.fma(n.mul(square, r)?, horner(n, square, &SIN_TAIL)?, r)?;
    let tail = horner(n, square, &COS_TAIL)?;
    let cosine = n.fma(square, n.fma(square, tail, n.float(-0.5)?)?, n.float(1.0)?)?;
    let odd = n.iequal(n.iand(q, n.int(1)?)?, n.int(1)?)?;
    let y = n.select(odd, cosine, sine)?;
    let negative = n.iequal(n.iand(q, n.int(2)?)?, n.int(2)?)?;
    let y = n.select(negative, n.neg(y)?, y)?;
    // Infinities and NaN have no sine: x - x is NaN for both.
    n.select(n.less(a, n.float(f32::INFINITY)?)?, y, n.sub(x, x)?)
}

/// The sine of an angle in radians.
pub(crate) fn sin<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    let y = sine_shifted(n, n.abs(x)?, 0)?;
    // The sine is odd; multiplying by the sign keeps sin(-0) = -0 and NaN.
    n.mul(y, n.copysign(n.float(1.0)?, x)?)
}

/// The cosine of an angle in radians.
pub(crate) fn cos<N: Numeric>(n: &N, x: N::Value) -> Result<N::Value, N::Error> {
    sine_shifted(n, x, 1)
}

/// Rust's `x % y`: the remainder of the truncated quotient, exact, with the sign of `x`.
///
/// Schoolbook division of the significands, one bit of the quotient a step, as many steps as the
/// exponents differ.
pub(crate) fn remainder<N: Numeric>(n: &N, x: N::Value, y: N::Value) -> Result<N::Value, N::Error> {
    let (a, b) = (n.abs(x)?, n.abs(y)?);
    let [ma, ea] = significand(n, a)?;
    let [mb, eb] = significand(n, b)?;
    let one = n.int(1)?;
    let reduce = |n: &N, m: N::Value| -> Result<N::Value, N::Error> {
        let below = n.uless(m, mb)?;
        n.select(below, m, n.isub(m, mb)?)
    };
    let [m, e] = n.repeat(
        [ma, ea],
        move |n, [_, e]| n.iless(eb, e),
        move |n, [m, e]| Ok([n.ishl(reduce(n, m)?, one)?, n.isub(e, one)?]),
    )?;
    let m = reduce(n, m)?;
    // Back to a float: normalise, or shift into a subnormal.
    let shift = n.isub(n.ictlz(m)?, n.int(8)?)?;
    let exponent = n.isub(e, shift)?;
    let normal = n.ishl(m, n.iand(shift, n.int(31)?)?)?;
    let normal = n.iadd(n.isub(normal, n.int(0x80_0000)?)?, n.ishl(exponent, n.int(23)?)?)?;
    // The unit of a subnormal is that of exponent 1; e is below it only if y was subnormal.
    let up = n.ishl(m, n.iand(n.isub(e, one)?, n.int(31)?)?)?;
    let down = n.ishr(m, n.iand(n.isub(one, e)?, n.int(31)?)?)?;
    let subnormal = n.select(n.iless(e, one)?, down, up)?;
    let bits = n.select(n.iless(n.int(0)?, exponent)?, normal, subnormal)?;
    let zero = n.int(0)?;
    let bits = n.select(n.iequal(m, zero)?, zero, bits)?;
    let r = n.float_of(bits)?;
    let r = n.select(n.less(a, b)?, a, r)?;
    let r = n.copysign(r, x)?;
    // x infinite, y zero, or a NaN: no remainder.
    let infinity = n.float(f32::INFINITY)?;
    let nan = n.float(f32::NAN)?;
    let r = n.select(n.less(a, infinity)?, r, nan)?;
    let r = n.select(n.less(n.float(0.0)?, b)?, r, nan)?;
    Ok(r)
}

/// 24-bit significand with its top bit set, and the biased exponent it then has (below 1 for what
/// was subnormal). Zero gives zero.
fn significand<N: Numeric>(n: &N, a: N::Value) -> Result<[N::Value; 2], N::Error> {
    let bits = n.bits(a)?;
    let field = n.ishr(bits, n.int(23)?)?;
    let fraction = n.iand(bits, n.int(0x7f_ffff)?)?;
    let zero = n.int(0)?;
    let subnormal = n.iequal(field, zero)?;
    let m = n.select(subnormal, fraction, n.ior(fraction, n.int(0x80_0000)?)?)?;
    let e = n.select(subnormal, n.int(1)?, field)?;
    // ctlz(0) is 32: a shift of 24 of nothing.
    let shift = n.isub(n.ictlz(m)?, n.int(8)?)?;
    Ok([n.ishl(m, shift)?, n.isub(e, shift)?])
}

#[cfg(test)]
mod tests {
    use super::super::numeric::host::{Evaluate, Host};
    use super::*;

    type Unary = fn(&Evaluate, Host) -> Result<Host, String>;

    /// Bit patterns over the whole range of `f32`, all exponents, both signs.
    fn samples() -> impl Iterator<Item = f32> {
        // A step prime to the number of patterns visits every exponent with varied significands.
        (0..200_000u32).map(|i| f32::from_bits(i.wrapping_mul(2_654_435_761)))
    }

    fn error_in_ulp(got: f32, want: f64) -> f64 {
        let nearest = want as f32;
        if got == nearest || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        if !nearest.is_finite() || !got.is_finite() {
            // One of them overflowed: at most one step apart counts as one ulp.
            let steps = (i64::from(got.to_bits() as i32) - i64::from(nearest.to_bits() as i32)).abs();
            return if steps <= 2 { steps as f64 } else { f64::INFINITY };
        }
        let exponent = nearest.abs().max(f32::MIN_POSITIVE).log2().floor();
        (f64::from(got) - want).abs() / 2f64.powi(exponent as i32 - 23)
    }

    fn worst(f: Unary, want: impl Fn(f64) -> f64, inputs: impl Iterator<Item = f32>) -> (f64, f32) {
        let mut worst = (0.0, 0.0);
        for x in inputs {
            let got = f(&Evaluate, Host::F(x)).unwrap().f().unwrap();
            let error = error_in_ulp(got, want(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        worst
    }

    fn erf_reference(x: f64) -> f64 {
        let a = x.abs();
        if x.is_nan() || a > 6.0 {
            return if x.is_nan() { x } else { x.signum() };
        }
        // Series of positive terms: erf(x) = 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
        }
        (2.0 / std::f64::consts::PI.sqrt() * (-a * a).exp() * sum).copysign(x)
    }

    #[test]
    fn errors_stay_within_the_documented_bounds() {
        // The host's exp2 is within half an ulp, the targets' within two: bounds are lower here.
        type Case = (&'static str, Unary, fn(f64) -> f64, f64);
        let cases: [Case; 8] = [
            ("exp", exp, f64::exp, 1.5),
            ("log", log, f64::ln, 2.0),
            ("log2", log2, f64::log2, 2.0),
            ("log10", log10, f64::log10, 2.0),
            ("tanh", tanh, f64::tanh, 2.0),
            ("erf", erf, erf_reference, 2.0),
            ("sin", sin, f64::sin, 2.5),
            ("cos", cos, f64::cos, 2.5),
        ];
        for (name, f, want, bound) in cases {
            let near = (0..100_000).map(|i| (i as f32 - 50_000.0) * 2.2e-4);
            let near_one = (0..20_000).map(|i| 1.0 + (i as f32 - 10_000.0) * 1e-6);
            let (error, at) = worst(f, want, samples().chain(near).chain(near_one));
            assert!(error <= bound, "{name}({at:e}): {error} ulp");
        }
        let (error, at) = worst(rsqrt, |x| 1.0 / x.sqrt(), samples().filter(|x| *x > 0.0));
        assert!(error <= 1.5, "rsqrt({at:e}): {error} ulp");
    }

    #[test]
    fn special_values_are_those_of_the_standard() {
        let at = |f: Unary, x: f32| f(&Evaluate, Host::F(x)).unwrap().f().unwrap();
        let infinity = f32::INFINITY;
        assert_eq!((at(exp, infinity), at(exp, -infinity)), (infinity, 0.0));
        assert_eq!((at(log, 0.0), at(log2, infinity), at(log10, 1.0)), (-infinity, infinity, 0.0));
        assert!(at(log, -1.0).is_nan() && at(log2, -infinity).is_nan() && at(exp, f32::NAN).is_nan());
        assert!(at(sin, infinity).is_nan() && at(cos, f32::NAN).is_nan());
        assert!(at(sin, -0.0).is_sign_negative() && at(tanh, -0.0).is_sign_negative());
        assert_eq!((at(tanh, infinity), at(erf, -infinity), at(tanh, -20.0)), (1.0, -1.0, -1.0));
        assert!(at(erf, f32::NAN).is_nan() && at(tanh, f32::NAN).is_nan());
    }

    #[test]
    fn the_remainder_is_exact() {
        let pairs = samples().step_by(16).zip(samples().skip(7).step_by(16)).chain([
            (5.5, 2.0),
            (-5.5, 2.0),
            (0.0, 1.0),
            (1.0, 0.0),
            (f32::INFINITY, 1.0),
            (1.0, f32::INFINITY),
            (3e-45, 1e-45),
            (1e30, 3e-45),
            (f32::MAX, f32::MIN_POSITIVE * 1.5),
            (7e-39, 3e-39),
        ]);
        for (x, y) in pairs {
            let got = remainder(&Evaluate, Host::F(x), Host::F(y)).unwrap().f().unwrap();
            let want = x % y;
            assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{x:e} % {y:e}: {got:e}");
        }
    }
}
