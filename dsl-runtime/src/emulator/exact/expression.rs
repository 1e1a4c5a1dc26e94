//! What an operation computes, in the user's words.

use super::Origin;
use crate::emulator::exec::elementwise::{BinaryOp, UnaryOp};
use crate::emulator::op::Op;

/// A number with as many digits as tell it from others: those of a `f32` where it is one, nine otherwise.
pub(crate) fn show(value: f64) -> String {
    let narrow = value as f32;
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    if f64::from(narrow) == value || !value.is_finite() || value == 0.0 {
        return format!("{narrow}");
    }
    let digits = 8 - value.abs().log10().floor() as i32;
    if (0..=17).contains(&digits) {
        let text = format!("{value:.*}", digits as usize);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.8e}")
    }
}

fn function(op: UnaryOp) -> &'static str {
    use UnaryOp as U;
    match op {
        U::F64ToF32 | U::F64ToF32TowardZero | U::F64ToF32Odd => "f32",
        U::F32ToF16TowardZero => "f16",
        U::F32ToBf16TowardZero => "bf16",
        U::F32ToE4m3 | U::F32ToE4m3Saturating => "e4m3",
        U::F32ToE5m2 | U::F32ToE5m2Saturating => "e5m2",
        U::SqrtF32 | U::SqrtF64 => "sqrt",
        U::RsqrtF32 | U::RsqrtFast | U::RsqrtF64 => "rsqrt",
        U::RcpFast => "1 / ",
        U::ExpF32 | U::ExpFast | U::ExpF64 => "exp",
        U::Exp2F32 | U::Exp2Fast | U::Exp2F64 => "exp2",
        U::LogF32 | U::LogFast | U::LogF64 => "log",
        U::Log2F32 | U::Log2Fast | U::Log2F64 => "log2",
        U::Log10F32 | U::Log10Fast | U::Log10F64 => "log10",
        U::SinF32 | U::SinF64 => "sin",
        U::CosF32 | U::CosF64 => "cos",
        U::TanhF32 | U::TanhFast | U::TanhF64 => "tanh",
        U::ErfF32 | U::ErfF64 => "erf",
        _ => "",
    }
}

fn sign(op: BinaryOp) -> Option<&'static str> {
    use BinaryOp as B;
    Some(match op {
        B::AddF32 | B::AddF64 | B::AddI32 => "+",
        B::SubF32 | B::SubF64 | B::SubI32 => "-",
        B::MulF32 | B::MulF64 | B::MulI32 => "*",
        B::DivF32 | B::DivF64 => "/",
        B::Shl32 => "<<",
        _ => return None,
    })
}

/// The operation with its operands' values, as `16777216 + 1`.
pub(crate) fn expression(op: Option<&Op>, origin: &Origin) -> String {
    let values: Vec<String> = origin.operands.iter().map(|[value, _]| show(*value)).collect();
    match (op.map(|op| op.general()), values.as_slice()) {
        (Some(Op::PackF16 { .. }), [a, ..]) => format!("f16({a})"),
        (Some(Op::Binary { op: BinaryOp::PackBf16, .. }), [a, ..]) => format!("bf16({a})"),
        (Some(Op::Unary { op, .. }), [a]) => match function(op) {
            "1 / " => format!("1 / {a}"),
            name => format!("{name}({a})"),
        },
        (Some(Op::Binary { op, .. } | Op::Index { op, .. }), [a, b]) => match sign(op) {
            Some(sign) => format!("{a} {sign} {b}"),
            None => format!("an operation on {a} and {b}"),
        },
        (Some(Op::FmaF32 { .. } | Op::FmaF64 { .. } | Op::FmaOdd { .. }), [a, b, c]) => format!("{a} * {b} + {c}"),
        (Some(Op::Mma { .. } | Op::Mfma { .. } | Op::Atom { .. } | Op::Async { .. }), [before, sum]) => {
            format!("a matrix product that adds {sum} to {before}")
        }
        (Some(Op::Atomic { .. }), [old, operand]) => format!("an atomic on {old} and {operand}"),
        (_, values) => format!("an operation on {}", values.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        let cases = [
            (0.1_f32.into(), "0.1"),
            (0.1, "0.1"),
            (0.0, "0"),
            (1.0 / 3.0, "0.333333333"),
            (16_777_217.0, "16777217"),
            (4_294_967_296.0 * 3.0, "12884901888"),
            (1e-30 / 3.0, "3.33333333e-31"),
            (f64::INFINITY, "inf"),
            (-2.5, "-2.5"),
        ];
        for (value, text) in cases {
            assert_eq!(show(value), text);
        }
    }
}
