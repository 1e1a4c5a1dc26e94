//! Conversions between f32 and the 16-bit and 8-bit float formats, in integer and float operations
//! that vectorise. Equal to the hardware's on every input; see the exhaustive tests.

/// IEEE binary16 to binary32, exact. Signalling NaNs become quiet, as F16C and `cvt.f32.f16` do.
#[inline(always)]
pub(crate) fn f16_to_f32(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7fff);
    let sign = u32::from(half & 0x8000) << 16;
    // Moving the fields into place leaves the exponent 112 too small; the product mends that for
    // normal and subnormal numbers alike.
    let scaled = (f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let special = if magnitude > 0x7c00 { 0x7fc0_0000 } else { 0x7f80_0000 };
    let bits = if magnitude >= 0x7c00 { scaled | special } else { scaled };
    f32::from_bits(bits | sign)
}

/// Binary32 to binary16, to nearest even. NaNs keep the top of their payload and become quiet.
#[inline(always)]
pub(crate) fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // Adding one half makes the hardware round at the last place of binary16's subnormals.
    let subnormal = (f32::from_bits(magnitude) + 0.5_f32).to_bits().wrapping_sub(0x3f00_0000);
    let normal = magnitude.wrapping_add(0xc800_0fff).wrapping_add((magnitude >> 13) & 1) >> 13;
    let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    let large = if magnitude > 0x7f80_0000 { nan } else { 0x7c00 };
    let result = if magnitude >= 0x4780_0000 {
        large
    } else if magnitude < 0x3880_0000 {
        subnormal
    } else {
        normal
    };
    (result | sign) as u16
}

/// Binary32 to binary16, toward zero: an overflow gives the largest finite number.
#[inline(always)]
pub(crate) fn f32_to_f16_toward_zero(value: f32) -> u16 {
    let nearest = f32_to_f16(value);
    // Step back where rounding went away from zero; infinities and NaNs stay.
    let away = f16_to_f32(nearest).abs() > value.abs();
    if away { nearest - 1 } else { nearest }
}

/// bfloat16 to binary32, exact.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Binary32 to bfloat16, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if value.is_nan() { nan } else { rounded }) as u16
}

/// Binary32 to bfloat16, toward zero.
#[inline(always)]
pub(crate) fn f32_to_bf16_toward_zero(value: f32) -> u16 {
    let top = value.to_bits() >> 16;
    (if value.is_nan() { top | 0x40 } else { top }) as u16
}

/// Binary64 to binary32 with an inexact result's last bit set. Rounding the result once more to a
/// format of 22 bits or fewer gives what one rounding of the binary64 would.
#[inline(always)]
pub(crate) fn f64_to_f32_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || value.is_nan() {
        return nearest;
    }
    let toward_zero = f64_to_f32_toward_zero(value);
    f32::from_bits(toward_zero.to_bits() | 1)
}

/// Binary64 to binary32, toward zero.
#[inline(always)]
pub(crate) fn f64_to_f32_toward_zero(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest).abs() > value.abs() { f32::from_bits(nearest.to_bits() - 1) } else { nearest }
}

/// A signed integer to binary32 with an inexact result's last bit set.
#[inline(always)]
pub(crate) fn i64_to_f32_odd(value: i64) -> f32 {
    let magnitude = u64_to_f32_odd(value.unsigned_abs());
    if value < 0 { -magnitude } else { magnitude }
}

/// An unsigned integer to binary32 with an inexact result's last bit set.
#[inline(always)]
pub(crate) fn u64_to_f32_odd(value: u64) -> f32 {
    let excess = 40_u32.saturating_sub(value.leading_zeros());
    // Keep 24 bits; the last tells whether any below were set.
    let kept = value >> excess;
    let sticky = u64::from(kept << excess != value);
    ((kept | sticky) as f32) * f32::from_bits((127 + excess) << 23)
}

/// The two OCP formats of eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fp8 {
    /// Bias 7, largest 448, `0x7f` and `0xff` are NaN, no infinities.
    E4m3,
    /// Bias 15, largest 57344, IEEE infinities and NaNs.
    E5m2,
}

impl Fp8 {
    const fn mantissa_bits(self) -> u32 {
        match self {
            Self::E4m3 => 3,
            Self::E5m2 => 2,
        }
    }

    const fn bias(self) -> i32 {
        match self {
            Self::E4m3 => 7,
            Self::E5m2 => 15,
        }
    }

    const fn largest(self) -> u32 {
        match self {
            Self::E4m3 => 0x7e,
            Self::E5m2 => 0x7b,
        }
    }
}

/// OCP float8 to binary32, exact.
#[inline(always)]
pub(crate) fn fp8_to_f32(format: Fp8, byte: u8) -> f32 {
    let mantissa_bits = format.mantissa_bits();
    let magnitude = u32::from(byte & 0x7f);
    let special = match format {
        Fp8::E4m3 => magnitude == 0x7f,
        Fp8::E5m2 => magnitude >= 0x7c,
    };
    let sign = u32::from(byte & 0x80) << 24;
    if special {
        let bits = if magnitude == 0x7c && format == Fp8::E5m2 { 0x7f80_0000 } else { 0x7fc0_0000 };
        return f32::from_bits(bits | sign);
    }
    let scale = f32::from_bits(((127 + 127 - format.bias()) as u32) << 23);
    let unscaled = f32::from_bits(magnitude << (23 - mantissa_bits));
    f32::from_bits((unscaled * scale).to_bits() | sign)
}

/// Binary32 to OCP float8, to nearest even. Beyond the largest finite number the result is that
/// number when `saturate` is set (infinities included), else infinity (E5M2) or NaN (E4M3).
#[inline(always)]
pub(crate) fn f32_to_fp8(format: Fp8, value: f32, saturate: bool) -> u8 {
    let sign = ((value.to_bits() >> 24) & 0x80) as u8;
    if value.is_nan() {
        return 0x7f | sign;
    }
    let mantissa_bits = format.mantissa_bits();
    let magnitude = value.to_bits() & 0x7fff_ffff;
    // As in `f32_to_f16`: round normal numbers by integers, subnormal ones by an addition whose last
    // place is the format's smallest step, 2^(1 - bias - mantissa bits).
    let shift = 23 - mantissa_bits;
    let rebias = ((127 - format.bias()) as u32) << 23;
    let half = (1_u32 << (shift - 1)) - 1 + ((magnitude >> shift) & 1);
    let normal = magnitude.wrapping_sub(rebias).wrapping_add(half) >> shift;
    let magic = f32::from_bits(((127 + 24 - format.bias() - mantissa_bits as i32) as u32) << 23);
    let subnormal = (f32::from_bits(magnitude) + magic).to_bits().wrapping_sub(magic.to_bits());
    let result = if magnitude < rebias + (1 << 23) { subnormal } else { normal };
    let overflow = match (format, saturate) {
        (_, true) => format.largest(),
        (Fp8::E4m3, false) => 0x7f,
        (Fp8::E5m2, false) => 0x7c,
    };
    (if magnitude >= 0x7f80_0000 || result > format.largest() { overflow } else { result }) as u8 | sign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_equals_the_half_crate_on_every_input() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#06x}");
            if !ours.is_nan() {
                assert_eq!(f32_to_f16(ours), bits);
                assert_eq!(f32_to_f16_toward_zero(ours), bits);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn f16_equals_f16c_with_nan_payloads() {
        if !is_x86_feature_detected!("f16c") {
            return;
        }
        #[target_feature(enable = "f16c,avx")]
        fn widen(bits: u16) -> u32 {
            use std::arch::x86_64::*;
            _mm_cvtsi128_si32(_mm_castps_si128(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits))))) as u32
        }
        #[target_feature(enable = "f16c,avx")]
        fn narrow(value: f32) -> u16 {
            use std::arch::x86_64::*;
            _mm_cvtsi128_si32(_mm_cvtps_ph::<0>(_mm_set_ss(value))) as u16
        }
        for bits in 0..=u16::MAX {
            // SAFETY: f16c was detected.
            assert_eq!(f16_to_f32(bits).to_bits(), unsafe { widen(bits) }, "{bits:#06x}");
        }
        // Every pattern of the bits that decide, with all small patterns below them.
        for top in 0..=u16::MAX {
            for low in [0_u32, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x7fff, 0x8000, 0xf000, 0xffff] {
                let value = f32::from_bits(u32::from(top) << 16 | low);
                // SAFETY: f16c was detected.
                assert_eq!(f32_to_f16(value), unsafe { narrow(value) }, "{:#010x}", value.to_bits());
            }
        }
    }

    /// Nearest-even by search over a format's finite values, which are monotone in their bits.
    fn nearest_by_search(value: f64, largest: u32, decode: impl Fn(u32) -> f32) -> u32 {
        let magnitude = value.abs();
        let (mut low, mut high) = (0, largest);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if f64::from(decode(middle)) <= magnitude { low = middle } else { high = middle - 1 }
        }
        if low == largest {
            return low;
        }
        let (below, above) = (f64::from(decode(low)), f64::from(decode(low + 1)));
        match (magnitude - below).partial_cmp(&(above - magnitude)) {
            Some(std::cmp::Ordering::Less) => low,
            Some(std::cmp::Ordering::Greater) => low + 1,
            _ => low + (low & 1),
        }
    }

    #[test]
    fn fp8_agrees_with_a_search_over_its_values() {
        for format in [Fp8::E4m3, Fp8::E5m2] {
            let decode = |bits: u32| fp8_to_f32(format, bits as u8);
            for top in 0..=u16::MAX {
                for low in [0_u32, 1, 0x8000, 0xffff] {
                    let value = f32::from_bits(u32::from(top) << 16 | low);
                    let ours = f32_to_fp8(format, value, true);
                    if value.is_nan() {
                        assert!(fp8_to_f32(format, ours).is_nan());
                        continue;
                    }
                    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
                    let expected = nearest_by_search(f64::from(value), format.largest(), decode) as u8 | sign;
                    assert_eq!(ours, expected, "{format:?} {value:e}");
                }
            }
        }
        assert_eq!(fp8_to_f32(Fp8::E4m3, 0x7e), 448.0);
        assert_eq!(fp8_to_f32(Fp8::E4m3, 0x01), 2.0_f32.powi(-9));
        assert_eq!(fp8_to_f32(Fp8::E5m2, 0x7b), 57344.0);
        assert_eq!(fp8_to_f32(Fp8::E5m2, 0x01), 2.0_f32.powi(-16));
        assert_eq!(f32_to_fp8(Fp8::E4m3, 1e6, false), 0x7f);
        assert_eq!(f32_to_fp8(Fp8::E5m2, f32::INFINITY, false), 0x7c);
        assert_eq!(f32_to_fp8(Fp8::E5m2, f32::NEG_INFINITY, true), 0xfb);
    }

    #[test]
    fn bf16_agrees_with_the_half_crate() {
        for top in 0..=u16::MAX {
            for low in [0_u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits(u32::from(top) << 16 | low);
                assert_eq!(f32_to_bf16(value), half::bf16::from_f32(value).to_bits(), "{value:e}");
                let truncated = bf16_to_f32(f32_to_bf16_toward_zero(value));
                assert!(value.is_nan() || truncated.abs() <= value.abs());
            }
        }
    }

    #[test]
    fn odd_rounding_then_nearest_is_one_rounding() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let exponent = 1023 - 30 + (state >> 58);
            let wide = f64::from_bits(exponent << 52 | state >> 12 & !(u64::MAX >> (20 + (state & 31))));
            let twice = f32_to_f16(f64_to_f32_odd(wide));
            if wide.abs() < 65_000.0 {
                let expected = nearest_by_search(wide, 0x7bff, |bits| f16_to_f32(bits as u16)) as u16;
                assert_eq!(twice & 0x7fff, expected, "{wide:e}");
            }
            let integer = (state >> (state & 63)) as i64;
            let expected = i128::from(integer);
            let odd = i64_to_f32_odd(integer);
            assert!((odd as i128 - expected).abs() <= expected.abs() >> 23, "{integer}");
            assert_eq!(odd as i128 == expected, integer as f32 as i128 == expected, "{integer}");
        }
        assert_eq!(f64_to_f32_toward_zero(1e300), f32::MAX);
        assert_eq!(f64_to_f32_odd(f64::INFINITY), f32::INFINITY);
    }
}
