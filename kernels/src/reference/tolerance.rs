//! When a result counts as right.

use lacewing_core::ScalarType;
use lacewing_runtime::compare::{Comparison, Unit, largest_error};

/// Tolerance for attention's O: twice the error of the plain low-precision implementation, plus
/// 1e-5. This is the rule of FlashAttention's own tests (`tests/test_flash_attn.py`).
///
/// Gives NaN, which nothing passes, when either side has a NaN.
pub fn attention_tolerance(low: &[f64], exact: &[f64]) -> f64 {
    2.0 * largest_error(Unit::Absolute, low, exact) + 1e-5
}

/// Compares O with the right one under a tolerance from [`attention_tolerance`].
pub fn compare_o(got: &[f64], wanted: &[f64], shape: &[usize], tolerance: f64) -> Comparison {
    Comparison::new("o", shape, got, wanted, Unit::Absolute, tolerance)
}

/// Compares the log-sum-exp with the right one: `|lse - ref| <= (2e-4 + slack) * max(1, |ref|)`, where
/// `slack` is 0 but for inputs that were rounded before the kernel saw them ([`input_rounding`]).
pub fn compare_lse(got: &[f64], wanted: &[f64], shape: &[usize], slack: f64) -> Comparison {
    Comparison::new("lse", shape, got, wanted, Unit::Relative, 2e-4 + slack)
}

/// How far rounding the inputs moves the log-sum-exp, in units of `max(1, |ref|)`.
pub fn input_rounding(rounded: &[f64], exact: &[f64]) -> f64 {
    largest_error(Unit::Relative, rounded, exact)
}

/// The largest relative error of rounding a number to nearest in a floating-point format; 0 for the others.
pub fn unit_roundoff(format: ScalarType) -> f64 {
    let precision = match format {
        ScalarType::F64 => 53,
        ScalarType::F32 => 24,
        ScalarType::F16 => 11,
        ScalarType::Bf16 => 8,
        ScalarType::F8E4M3 => 4,
        ScalarType::F8E5M2 => 3,
        _ => return 0.0,
    };
    f64::powi(2.0, -precision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_attention() {
        let tolerance = attention_tolerance(&[1.0, 2.001], &[1.0, 2.0]);
        assert!((tolerance - 2.01e-3).abs() < 1e-12);
        assert!(compare_o(&[1.002, 2.0], &[1.0, 2.0], &[2], tolerance).holds());
        assert!(!compare_o(&[1.003, 2.0], &[1.0, 2.0], &[2], tolerance).holds());
        let spoilt = attention_tolerance(&[f64::NAN], &[1.0]);
        assert!(!compare_o(&[1.0], &[1.0], &[1], spoilt).holds());
    }

    #[test]
    fn an_lse_is_right_to_two_in_ten_thousand() {
        assert!(compare_lse(&[100.019], &[100.0], &[1], 0.0).holds());
        assert!(!compare_lse(&[100.021], &[100.0], &[1], 0.0).holds());
        assert!(!compare_lse(&[0.00021], &[0.0], &[1], 0.0).holds());
        assert!(!compare_lse(&[f64::INFINITY], &[f64::NEG_INFINITY], &[1], 1.0).holds());
    }
}
