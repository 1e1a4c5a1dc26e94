//! Outputs against what is right: every element counts, and NaN never passes.

use crate::tensor::coordinates;

/// One output against what is right.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Name of the output.
    pub tensor: String,
    /// What it was compared with, in words.
    pub against: String,
    /// The largest error, in the unit of the tolerance; NaN when the output or the right one has a NaN.
    pub error: f64,
    /// The largest error that passes.
    pub tolerance: f64,
    /// Where the largest error (or the first NaN) is.
    pub worst: Option<Worst>,
}

/// The element that is furthest from right.
#[derive(Debug, Clone, PartialEq)]
pub struct Worst {
    /// Its index.
    pub index: Vec<usize>,
    /// What the kernel gave.
    pub got: f64,
    /// What is right.
    pub wanted: f64,
}

/// What an error is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// `|got - wanted|`.
    Absolute,
    /// `|got - wanted| / max(1, |wanted|)`.
    Relative,
}

impl Unit {
    /// The error of one element. Equal infinities differ by nothing; an infinity against anything else
    /// differs by infinity.
    fn error(self, got: f64, wanted: f64) -> f64 {
        let error = if got == wanted { 0.0 } else { (got - wanted).abs() };
        let size = wanted.abs().max(1.0);
        // Infinite references divide nothing.
        if self == Unit::Relative && size.is_finite() { error / size } else { error }
    }

    /// The largest error and where it is; the first NaN ends the search.
    fn largest(self, got: &[f64], wanted: &[f64]) -> (f64, Option<usize>) {
        let mut largest = (0.0, None);
        for (index, (got, wanted)) in got.iter().zip(wanted).enumerate() {
            let error = self.error(*got, *wanted);
            if error.is_nan() {
                return (f64::NAN, Some(index));
            }
            if error > largest.0 || largest.1.is_none() {
                largest = (error, Some(index));
            }
        }
        largest
    }
}

/// The largest error of any element; NaN when there is one on either side, or the lengths differ.
pub fn largest_error(unit: Unit, got: &[f64], wanted: &[f64]) -> f64 {
    if got.len() == wanted.len() { unit.largest(got, wanted).0 } else { f64::NAN }
}

impl Comparison {
    /// Compares an output of this shape with the right one, each element in `unit`.
    pub fn new(tensor: &str, shape: &[usize], got: &[f64], wanted: &[f64], unit: Unit, tolerance: f64) -> Self {
        let (error, index) = unit.largest(got, wanted);
        // Sides of different length share no largest error: nothing passes.
        let error = if got.len() == wanted.len() { error } else { f64::NAN };
        let worst = index.and_then(|index| {
            Some(Worst { index: coordinates(index, shape), got: *got.get(index)?, wanted: *wanted.get(index)? })
        });
        Comparison { tensor: tensor.to_owned(), against: String::new(), error, tolerance, worst }
    }

    /// Says in words what it was compared with.
    #[must_use]
    pub fn against(mut self, against: &str) -> Self {
        against.clone_into(&mut self.against);
        self
    }

    /// Whether every element is within the tolerance. A NaN on either side never is, and a tolerance that is
    /// not finite allows nothing.
    pub fn holds(&self) -> bool {
        self.tolerance.is_finite() && self.error <= self.tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(got: &[f64], wanted: &[f64], unit: Unit, tolerance: f64) -> Comparison {
        Comparison::new("o", &[got.len()], got, wanted, unit, tolerance)
    }

    #[test]
    fn an_infinite_tolerance_passes_nothing() {
        assert!(!compare(&[f64::INFINITY], &[1.0], Unit::Absolute, f64::INFINITY).holds());
        assert!(!compare(&[1.0], &[1.0], Unit::Absolute, f64::INFINITY).holds());
    }

    #[test]
    fn nan_never_passes() {
        for (got, wanted) in [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)] {
            for unit in [Unit::Absolute, Unit::Relative] {
                assert!(!compare(&[1.0, got], &[1.0, wanted], unit, f64::MAX).holds());
            }
        }
        assert!(!compare(&[1.0], &[1.0], Unit::Absolute, f64::NAN).holds());
    }

    #[test]
    fn an_infinity_must_be_met_exactly() {
        let inf = f64::INFINITY;
        for unit in [Unit::Absolute, Unit::Relative] {
            assert!(compare(&[-inf, 1.0], &[-inf, 1.0], unit, 0.0).holds());
            assert!(!compare(&[inf], &[-inf], unit, 1e9).holds());
            assert!(!compare(&[-1e30], &[-inf], unit, 1e9).holds());
            assert!(!compare(&[-inf], &[0.0], unit, 1e9).holds());
        }
    }

    #[test]
    fn the_worst_element_is_named() {
        let (got, wanted) = ([0.0, 1.0, 2.0, 3.5, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let comparison = Comparison::new("o", &[2, 3], &got, &wanted, Unit::Absolute, 0.1);
        assert!(!comparison.holds());
        assert_eq!(comparison.worst, Some(Worst { index: vec![1, 0], got: 3.5, wanted: 3.0 }));
        assert!(compare(&[1000.5], &[1000.0], Unit::Relative, 1e-3).holds());
    }

    #[test]
    fn lengths_that_differ_never_pass() {
        assert!(!compare(&[1.0], &[1.0, 2.0], Unit::Absolute, 1.0).holds());
        assert!(largest_error(Unit::Absolute, &[], &[1.0]).is_nan());
        assert!(compare(&[], &[], Unit::Absolute, 0.0).holds());
    }
}
