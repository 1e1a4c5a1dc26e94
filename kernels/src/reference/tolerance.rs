//! When a result counts as right.

use lacewing_runtime::runner::{Comparison, Worst};
use lacewing_runtime::tensor::coordinates;

/// Tolerance for attention's O: twice the error of the plain low-precision implementation, plus
/// 1e-5. This is the rule of FlashAttention's own tests (`tests/test_flash_attn.py`).
///
/// Gives NaN, which nothing passes, when either side has a NaN.
pub fn attention_tolerance(low: &[f64], exact: &[f64]) -> f64 {
    2.0 * largest_error(low.iter().zip(exact)).0 + 1e-5
}

/// Compares O with the right one under a tolerance from [`attention_tolerance`].
pub fn compare_o(got: &[f64], wanted: &[f64], shape: &[usize], tolerance: f64, against: &str) -> Comparison {
    compare("o", got, wanted, shape, tolerance, against)
}

/// Compares the log-sum-exp with the right one: `|lse - ref| <= 2e-4 * max(1, |ref|)`.
///
/// The error is in units of `max(1, |ref|)`; a row that must be -inf is right only when it is.
pub fn compare_lse(got: &[f64], wanted: &[f64], shape: &[usize], against: &str) -> Comparison {
    let unit = |got: &f64, wanted: &f64| {
        let unit = wanted.abs().max(1.0);
        // Infinite references divide nothing: they are compared as they are.
        if unit.is_finite() { (got / unit, wanted / unit) } else { (*got, *wanted) }
    };
    let pairs: Vec<(f64, f64)> = got.iter().zip(wanted).map(|(g, w)| unit(g, w)).collect();
    let (error, index) = largest_error(pairs.iter().map(|(g, w)| (g, w)));
    finish("lse", error, 2e-4, index, got, wanted, shape, against)
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
    let (error, index) = largest_error(got.iter().zip(wanted));
    finish(tensor, error, tolerance, index, got, wanted, shape, against)
}

#[expect(clippy::too_many_arguments, reason = "private: the two callers above share one ending")]
fn finish(
    tensor: &str,
    error: f64,
    tolerance: f64,
    index: Option<usize>,
    got: &[f64],
    wanted: &[f64],
    shape: &[usize],
    against: &str,
) -> Comparison {
    // Sides of different length share no largest error: nothing passes.
    let error = if got.len() == wanted.len() { error } else { f64::NAN };
    let worst = index.and_then(|index| {
        Some(Worst { index: coordinates(index, shape), got: *got.get(index)?, wanted: *wanted.get(index)? })
    });
    Comparison { tensor: tensor.to_owned(), against: against.to_owned(), error, tolerance, worst }
}

/// The largest |a - b| and where it is. Equal infinities differ by nothing; the first NaN ends the
/// search.
fn largest_error<'a>(pairs: impl Iterator<Item = (&'a f64, &'a f64)>) -> (f64, Option<usize>) {
    let mut largest = (0.0, None);
    for (index, (a, b)) in pairs.enumerate() {
        let error = if a == b { 0.0 } else { (a - b).abs() };
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
            assert!(!compare_lse(&[got], &[wanted], &[1], "").holds());
        }
        let tolerance = attention_tolerance(&[f64::NAN], &[1.0]);
        assert!(!compare_o(&[1.0], &[1.0], &[1], tolerance, "").holds());
    }

    #[test]
    fn an_infinite_lse_must_be_met_exactly() {
        let inf = f64::INFINITY;
        assert!(compare_lse(&[-inf, 1.0], &[-inf, 1.0], &[2], "").holds());
        assert!(!compare_lse(&[inf], &[-inf], &[1], "").holds());
        assert!(!compare_lse(&[-1e30], &[-inf], &[1], "").holds());
        assert!(!compare_lse(&[-inf], &[0.0], &[1], "").holds());
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
