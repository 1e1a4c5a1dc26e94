//! Fused multiply-add with one rounding, with and without the host's instruction.

use super::narrow::f64_to_f32_odd;
use crate::emulator::isa::Isa;

/// `a * b + c` in binary64, where the product is exact, rounded to odd: the last bit is set when
/// bits were lost. Narrowing the result then rounds once.
#[inline(always)]
fn sum_to_odd(a: f32, b: f32, c: f32) -> f64 {
    let product = f64::from(a) * f64::from(b);
    let addend = f64::from(c);
    // TwoSum (Knuth): `sum + error` is the exact sum.
    let sum = product + addend;
    let shifted = sum - product;
    let error = (product - (sum - shifted)) + (addend - shifted);
    let bits = sum.to_bits();
    // NaN errors come with infinite sums, which are exact.
    let inexact = (error != 0.0) & !error.is_nan() & (bits & 1 == 0);
    let outward = (error.to_bits() ^ bits) >> 63 == 0;
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact { odd } else { bits })
}

/// Binary32 `a * b + c` with one rounding.
#[inline(always)]
pub(crate) fn fma_f32<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FMA { a.mul_add(b, c) } else { sum_to_odd(a, b, c) as f32 }
}

/// Binary32 `a * b + c` rounded to odd, for 16-bit formats: their own rounding follows.
#[inline(always)]
pub(crate) fn fma_odd(a: f32, b: f32, c: f32) -> f32 {
    f64_to_f32_odd(sum_to_odd(a, b, c))
}

/// Binary64 `a * b + c` with one rounding.
#[inline(always)]
pub(crate) fn fma_f64<I: Isa>(a: f64, b: f64, c: f64) -> f64 {
    if I::FMA { a.mul_add(b, c) } else { libm::fma(a, b, c) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::isa::Baseline;

    #[test]
    fn the_portable_form_equals_libm() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 32) as u32
        };
        for round in 0..300_000 {
            let a = f32::from_bits(next());
            let b = if round % 2 == 0 { f32::from_bits(next()) } else { f32::from_bits(0x3f80_0000 | next() & 0xfff) };
            // Near cancellation is the hard case.
            let c = if round % 3 == 0 {
                f32::from_bits((-(a * b)).to_bits() ^ (next() & 3))
            } else {
                f32::from_bits(next())
            };
            let (ours, theirs) = (fma_f32::<Baseline>(a, b, c), libm::fmaf(a, b, c));
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{a:e} {b:e} {c:e}");
        }
    }
}
