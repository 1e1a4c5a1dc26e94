//! When a result counts as right.

use lacewing_runtime::runner::{Comparison, Worst};
use lacewing_runtime::tensor::coordinates;

/// Tolerance for attention's O: twice the error of the plain low-precision implementation, plus
/// 1e-5. This is the rule of FlashAttention's own tests (`tests/test_flash_attn.py`).
///
/// Gives NaN, which nothing passes, when either side has a NaN.
pub fn attention_tolerance(low: &[f64], exact: &[f64]) -> f64 {
    2.0 * largest_error(low, exact).0 + 1e-5
}

/// Compares O with the right one under a tolerance from [`attention_tolerance`].
pub fn compare_o(got: &[f64], wanted: &[f64], shape: &[usize], tolerance: f64, against: &str) -> Comparison {
    compare("o", got, wanted, shape, tolerance, against)
}

/// Compares the log-sum-exp with the right one: `|lse - ref| <= (2e-4 + slack) * max(1, |ref|)`, where
/// `slack` is 0 but for inputs that were rounded before the kernel saw them ([`input_rounding`]).
///
/// The error is in units of `max(1, |ref|)`; a row that must be -inf is right only when it is.
pub fn compare_lse(got: &[f64], wanted: &[f64], shape: &[usize], slack: f64, against: &str) -> Comparison {
    let relative: Vec<f64> = got.iter().zip(wanted).map(|(got, wanted)| relative_error(*got, *wanted)).collect();
    let (error, index) = largest(relative.iter().copied());
    finish("lse", error, 2e-4 + slack, index, Sides { got, wanted, shape, against })
}

/// How far rounding the inputs moves the log-sum-exp, in units of `max(1, |ref|)`.
pub fn input_rounding(rounded: &[f64], exact: &[f64]) -> f64 {
    largest(rounded.iter().zip(exact).map(|(rounded, exact)| relative_error(*rounded, *exact))).0
}

/// Compares any output with the right one, every element within `tolerance`.
pub fn compare(
    tensor: &str,
    got: &[f64],
    wanted: &[f64],
    shape: &[usize],
    tolerance: f64,
    against: &str,
) -> Comparison {
    let (error, index) = largest_error(got, wanted);
    finish(tensor, error, tolerance, index, Sides { got, wanted, shape, against })
}

struct Sides<'a> {
    got: &'a [f64],
    wanted: &'a [f64],
    shape: &'a [usize],
    against: &'a str,
}

fn finish(tensor: &str, error: f64, tolerance: f64, index: Option<usize>, sides: Sides) -> Comparison {
    let Sides { got, wanted, shape, against } = sides;
    // Sides of different length share no largest error: nothing passes.
    let error = if got.len() == wanted.len() { error } else { f64::NAN };
    let worst = index.and_then(|index| {
        Some(Worst { index: coordinates(index, shape), got: *got.get(index)?, wanted: *wanted.get(index)? })
    });
    Comparison { tensor: tensor.to_owned(), against: against.to_owned(), error, tolerance, worst }
}

/// Equal infinities differ by nothing.
fn error(got: f64, wanted: f64) -> f64 {
    if got == wanted { 0.0 } else { (got - wanted).abs() }
}

fn relative_error(got: f64, wanted: f64) -> f64 {
    let unit = wanted.abs().max(1.0);
    // Infinite references divide nothing: they are compared as they are.
    if unit.is_finite() { error(got, wanted) / unit } else { error(got, wanted) }
}

fn largest_error(got: &[f64], wanted: &[f64]) -> (f64, Option<usize>) {
    largest(got.iter().zip(wanted).map(|(got, wanted)| error(*got, *wanted)))
}

/// The largest error and where it is; the first NaN ends the search.
fn largest(errors: impl Iterator<Item = f64>) -> (f64, Option<usize>) {
    let mut largest = (0.0, None);
    for (index, error) in errors.enumerate() {
        if error.is_nan() {
            return (f64::NAN, Some(index));
        }
        if error > largest.0 || largest.1.is_none() {
            largest = (error, Some(index));
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_never_passes() {
        for (got, wanted) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)] {
            assert!(!compare("o", &[1.0, got], &[1.0, wanted], &[2], 1e9, "").holds());
            assert!(!compare_lse(&[got], &[wanted], &[1], 0.0, "").holds());
        }
        let tolerance = attention_tolerance(&[f64::NAN], &[1.0]);
        assert!(!compare_o(&[1.0], &[1.0], &[1], tolerance, "").holds());
    }

    #[test]
    fn an_infinite_lse_must_be_met_exactly() {
        let inf = f64::INFINITY;
        assert!(compare_lse(&[-inf, 1.0], &[-inf, 1.0], &[2], 0.0, "").holds());
        assert!(!compare_lse(&[inf], &[-inf], &[1], 0.0, "").holds());
        assert!(!compare_lse(&[-1e30], &[-inf], &[1], 0.0, "").holds());
        assert!(!compare_lse(&[-inf], &[0.0], &[1], 0.0, "").holds());
    }

    #[test]
    fn the_worst_element_is_named() {
        let comparison = compare_o(&[0.0, 1.0, 2.0, 3.5, 4.0, 5.0], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3], 0.1, "x");
        assert!(!comparison.holds());
        let worst = comparison.worst.unwrap();
        assert_eq!((worst.index, worst.got, worst.wanted), (vec![1, 0], 3.5, 3.0));
    }

    #[test]
    fn lengths_that_differ_never_pass() {
        assert!(!compare("o", &[1.0], &[1.0, 2.0], &[2], 1.0, "").holds());
    }
}
