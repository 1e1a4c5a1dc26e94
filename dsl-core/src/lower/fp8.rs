//! The 8-bit floats of the OCP specification (e4m3fn, e5m2) in integer arithmetic, for chips without
//! a conversion instruction or with one for other encodings (gfx942: FNUZ).
//!
//! Source of the formats: OCP 8-bit Floating Point Specification, revision 1.0, table 1.

use super::numeric::Numeric;

/// An 8-bit format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fp8 {
    /// 4 exponent bits, 3 of significand, largest 448, no infinity.
    E4M3,
    /// 5 exponent bits, 2 of significand, largest 57344.
    E5M2,
}

impl Fp8 {
    /// Bits of the significand.
    fn fraction_bits(self) -> i32 {
        match self {
            Fp8::E4M3 => 3,
            Fp8::E5M2 => 2,
        }
    }

    fn bias(self) -> i32 {
        match self {
            Fp8::E4M3 => 7,
            Fp8::E5M2 => 15,
        }
    }

    /// The largest finite value.
    pub(crate) fn largest(self) -> f32 {
        match self {
            Fp8::E4M3 => 448.0,
            Fp8::E5M2 => 57_344.0,
        }
    }
}

/// `f32` to the low byte of an `i32`: nearest even, saturating at the largest finite value; NaN
/// gives 0x7f, as `cvt.rn.satfinite` does (PTX ISA, cvt).
pub(crate) fn encode<N: Numeric>(n: &N, x: N::Value, format: Fp8) -> Result<N::Value, N::Error> {
    let bits = n.bits(x)?;
    let sign = n.iand(n.ishr(bits, n.int(24)?)?, n.int(0x80)?)?;
    let magnitude = n.iand(bits, n.int(0x7fff_ffff)?)?;
    let largest = n.int(format.largest().to_bits() as i32)?;
    let clamped = n.select(n.iless(largest, magnitude)?, largest, magnitude)?;

    // Normal results: round away the excess bits, then move the exponent's bias.
    let excess = 23 - format.fraction_bits();
    let odd = n.iand(n.ishr(clamped, n.int(excess)?)?, n.int(1)?)?;
    let rounded = n.iadd(n.iadd(clamped, n.int((1 << (excess - 1)) - 1)?)?, odd)?;
    let rebias = (127 - format.bias()) << format.fraction_bits();
    let normal = n.isub(n.ishr(rounded, n.int(excess)?)?, n.int(rebias)?)?;

    // Subnormal results: adding a number whose unit is the format's smallest step rounds to it.
    let smallest_step = 1 - format.bias() - format.fraction_bits();
    let magic = 2f32.powi(smallest_step + 23);
    let sum = n.add(n.float_of(clamped)?, n.float(magic)?)?;
    let subnormal = n.isub(n.bits(sum)?, n.int(magic.to_bits() as i32)?)?;

    let smallest_normal = n.int(2f32.powi(1 - format.bias()).to_bits() as i32)?;
    let byte = n.select(n.iless(clamped, smallest_normal)?, subnormal, normal)?;
    let byte = n.ior(byte, sign)?;
    let is_nan = n.iless(n.int(f32::INFINITY.to_bits() as i32)?, magnitude)?;
    n.select(is_nan, n.int(0x7f)?, byte)
}

/// The byte in an `i32` to `f32`, exactly.
pub(crate) fn decode<N: Numeric>(n: &N, byte: N::Value, format: Fp8) -> Result<N::Value, N::Error> {
    let sign = n.ishl(n.iand(byte, n.int(0x80)?)?, n.int(24)?)?;
    let magnitude = n.iand(byte, n.int(0x7f)?)?;
    let shifted = n.ishl(magnitude, n.int(23 - format.fraction_bits())?)?;
    // With f32's bias this is too small by a power of two; the product is exact, subnormals included.
    let value = n.mul(n.float_of(shifted)?, n.float(2f32.powi(127 - format.bias()))?)?;
    let value = match format {
        Fp8::E4M3 => {
            let is_nan = n.iequal(magnitude, n.int(0x7f)?)?;
            n.select(is_nan, n.float(f32::NAN)?, value)?
        }
        Fp8::E5M2 => {
            let special = n.iless(n.int(0x7b)?, magnitude)?;
            let is_infinite = n.iequal(magnitude, n.int(0x7c)?)?;
            let edge = n.select(is_infinite, n.float(f32::INFINITY)?, n.float(f32::NAN)?)?;
            n.select(special, edge, value)?
        }
    };
    n.float_of(n.ior(n.bits(value)?, sign)?)
}

#[cfg(test)]
mod tests {
    use super::super::numeric::host::{Evaluate, Host};
    use super::*;

    fn decoded(byte: u8, format: Fp8) -> f32 {
        decode(&Evaluate, Host::I(i32::from(byte)), format).unwrap().f().unwrap()
    }

    fn encoded(x: f32, format: Fp8) -> u8 {
        encode(&Evaluate, Host::F(x), format).unwrap().i().unwrap() as u8
    }

    #[test]
    fn every_byte_decodes_as_in_the_float8_crate() {
        for byte in 0..=255u8 {
            let want = [float8::F8E4M3::from_bits(byte).to_f32(), float8::F8E5M2::from_bits(byte).to_f32()];
            for (format, want) in [Fp8::E4M3, Fp8::E5M2].into_iter().zip(want) {
                let got = decoded(byte, format);
                assert!(got == want || (got.is_nan() && want.is_nan()), "{format:?} {byte:#x}: {got} not {want}");
            }
        }
    }

    #[test]
    fn encoding_gives_the_nearest_value_ties_to_even_and_saturates() {
        for format in [Fp8::E4M3, Fp8::E5M2] {
            for byte in 0..=0x7bu8 {
                let (low, high) = (decoded(byte, format), decoded(byte + 1, format));
                assert_eq!(encoded(low, format), byte);
                assert_eq!(encoded(-low, format), byte | 0x80);
                if !high.is_finite() {
                    continue;
                }
                let middle = (low + high) / 2.0;
                assert_eq!(encoded(middle, format), byte + (byte & 1), "{format:?} tie at {middle}");
                assert_eq!(encoded(middle.next_down(), format), byte);
                assert_eq!(encoded(middle.next_up(), format), byte + 1);
            }
            let largest = encoded(format.largest(), format);
            for x in [format.largest() * 1.3, 1e30, f32::INFINITY] {
                assert_eq!((encoded(x, format), encoded(-x, format)), (largest, largest | 0x80));
            }
            assert_eq!(encoded(f32::NAN, format), 0x7f);
        }
    }
}
