//! Float formats, and the functions of the machine in binary64.

use crate::emulator::asynchronous::op::InputType;
use crate::emulator::exec::elementwise::{BinaryOp, UnaryOp};
use crate::emulator::numeric::math;
use crate::emulator::numeric::narrow::{self, Fp8};
use crate::emulator::op::MatrixType;

/// A float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    E4m3,
    E5m2,
    F16,
    Bf16,
    F32,
    F64,
}

impl Format {
    /// Size in bytes.
    pub(crate) fn width(self) -> u32 {
        match self {
            Self::E4m3 | Self::E5m2 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Binary digits of the significand, the implied one too.
    pub(crate) fn digits(self) -> u8 {
        match self {
            Self::E5m2 => 3,
            Self::E4m3 => 4,
            Self::Bf16 => 8,
            Self::F16 => 11,
            Self::F32 => 24,
            Self::F64 => 53,
        }
    }

    /// The number that bits stand for.
    pub(crate) fn value(self, bits: u64) -> f64 {
        match self {
            Self::E4m3 => narrow::fp8_to_f32(Fp8::E4m3, bits as u8).into(),
            Self::E5m2 => narrow::fp8_to_f32(Fp8::E5m2, bits as u8).into(),
            Self::F16 => narrow::f16_to_f32(bits as u16).into(),
            Self::Bf16 => narrow::bf16_to_f32(bits as u16).into(),
            Self::F32 => f32::from_bits(bits as u32).into(),
            Self::F64 => f64::from_bits(bits),
        }
    }

    /// The bits of a number, rounded to nearest even as the machine does.
    pub(crate) fn bits(self, value: f64) -> u64 {
        match self {
            Self::E4m3 => narrow::f32_to_fp8(Fp8::E4m3, narrow::f64_to_f32_odd(value), false).into(),
            Self::E5m2 => narrow::f32_to_fp8(Fp8::E5m2, narrow::f64_to_f32_odd(value), false).into(),
            Self::F16 => narrow::f32_to_f16(narrow::f64_to_f32_odd(value)).into(),
            Self::Bf16 => narrow::f32_to_bf16(narrow::f64_to_f32_odd(value)).into(),
            Self::F32 => (value as f32).to_bits().into(),
            Self::F64 => value.to_bits(),
        }
    }

    /// The format of a matrix operand of 16 bits, or of tf32.
    pub(crate) fn of_matrix(ty: MatrixType) -> Self {
        match ty {
            MatrixType::F16 => Self::F16,
            MatrixType::Bf16 => Self::Bf16,
            MatrixType::Tf32 => Self::F32,
        }
    }
}

impl From<InputType> for Format {
    fn from(ty: InputType) -> Self {
        match ty {
            InputType::F16 => Self::F16,
            InputType::Bf16 => Self::Bf16,
            InputType::E4m3 => Self::E4m3,
            InputType::E5m2 => Self::E5m2,
        }
    }
}

/// A function of one operand: the operand's format and byte in its word, the result's format, and the function.
pub(super) type Unary = (Format, u32, Format, fn(f64) -> f64);

/// The exact form of an operation; `None` for those on integers and those that jump.
pub(super) fn unary(op: UnaryOp) -> Option<Unary> {
    use Format::{Bf16, E4m3, E5m2, F16, F32, F64};
    use UnaryOp as U;
    let same: fn(f64) -> f64 = |x| x;
    Some(match op {
        U::Bf16LowToF32 => (Bf16, 0, F32, same),
        U::Bf16HighToF32 => (Bf16, 2, F32, same),
        U::E4m3ToF32 => (E4m3, 0, F32, same),
        U::E5m2ToF32 => (E5m2, 0, F32, same),
        U::F32ToF64 => (F32, 0, F64, same),
        U::F64ToF32 | U::F64ToF32TowardZero | U::F64ToF32Odd => (F64, 0, F32, same),
        U::F32ToF16TowardZero => (F32, 0, F16, same),
        U::F32ToBf16TowardZero => (F32, 0, Bf16, same),
        // Saturation is asked for, so it is no error.
        U::F32ToE4m3Saturating => (F32, 0, E4m3, |x| x.clamp(-448.0, 448.0)),
        U::F32ToE5m2Saturating => (F32, 0, E5m2, |x| x.clamp(-57344.0, 57344.0)),
        U::F32ToE4m3 => (F32, 0, E4m3, same),
        U::F32ToE5m2 => (F32, 0, E5m2, same),
        U::NegF32 => (F32, 0, F32, |x| -x),
        U::AbsF32 => (F32, 0, F32, f64::abs),
        U::SqrtF32 => (F32, 0, F32, f64::sqrt),
        U::RsqrtF32 | U::RsqrtFast => (F32, 0, F32, |x| 1.0 / x.sqrt()),
        U::RcpFast => (F32, 0, F32, |x| 1.0 / x),
        U::ExpF32 | U::ExpFast => (F32, 0, F32, libm::exp),
        U::Exp2F32 | U::Exp2Fast => (F32, 0, F32, libm::exp2),
        U::LogF32 | U::LogFast => (F32, 0, F32, libm::log),
        U::Log2F32 | U::Log2Fast => (F32, 0, F32, libm::log2),
        U::Log10F32 | U::Log10Fast => (F32, 0, F32, libm::log10),
        U::SinF32 => (F32, 0, F32, libm::sin),
        U::CosF32 => (F32, 0, F32, libm::cos),
        U::TanhF32 | U::TanhFast => (F32, 0, F32, libm::tanh),
        U::ErfF32 => (F32, 0, F32, libm::erf),
        U::NegF64 => (F64, 0, F64, |x| -x),
        U::AbsF64 => (F64, 0, F64, f64::abs),
        U::SqrtF64 => (F64, 0, F64, f64::sqrt),
        U::RsqrtF64 => (F64, 0, F64, |x| 1.0 / x.sqrt()),
        U::ExpF64 => (F64, 0, F64, libm::exp),
        U::Exp2F64 => (F64, 0, F64, libm::exp2),
        U::LogF64 => (F64, 0, F64, libm::log),
        U::Log2F64 => (F64, 0, F64, libm::log2),
        U::Log10F64 => (F64, 0, F64, libm::log10),
        U::SinF64 => (F64, 0, F64, libm::sin),
        U::CosF64 => (F64, 0, F64, libm::cos),
        U::TanhF64 => (F64, 0, F64, libm::tanh),
        U::ErfF64 => (F64, 0, F64, libm::erf),
        _ => return None,
    })
}

/// A function of two operands, and the format of both and of the result.
pub(super) type Binary = (Format, fn(f64, f64) -> f64);

/// The exact form of an operation of two floats; `None` for those on integers and those that jump.
pub(super) fn binary(op: BinaryOp) -> Option<Binary> {
    use BinaryOp as B;
    use Format::{F32, F64};
    Some(match op {
        B::AddF32 => (F32, |x, y| x + y),
        B::SubF32 => (F32, |x, y| x - y),
        B::MulF32 => (F32, |x, y| x * y),
        B::DivF32 => (F32, |x, y| x / y),
        B::MaximumF32 => (F32, math::maximum_f64),
        B::MinimumF32 => (F32, math::minimum_f64),
        B::MaxnumF32 => (F32, math::maxnum_f64),
        B::MinnumF32 => (F32, math::minnum_f64),
        B::AddF64 => (F64, |x, y| x + y),
        B::SubF64 => (F64, |x, y| x - y),
        B::MulF64 => (F64, |x, y| x * y),
        B::DivF64 => (F64, |x, y| x / y),
        B::MaximumF64 => (F64, math::maximum_f64),
        B::MinimumF64 => (F64, math::minimum_f64),
        B::MaxnumF64 => (F64, math::maxnum_f64),
        B::MinnumF64 => (F64, math::minnum_f64),
        _ => return None,
    })
}
