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
    /// What the wrong elements have in common.
    pub profile: Profile,
}

/// What is known of the elements that are wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The extents of the output.
    pub shape: Vec<usize>,
    /// Elements of the output.
    pub total: usize,
    /// How many are outside the tolerance.
    pub wrong: usize,
    /// The first wrong elements in row-major order, at most eight.
    pub first: Vec<Worst>,
    /// How many of the wrong elements are zero where the right number is not.
    pub zeros: usize,
    /// How many of them are NaN.
    pub nans: usize,
    /// `got / wanted`, if it is about the same for all wrong elements (and there are several).
    pub factor: Option<f64>,
    /// Whether `got / wanted` is about the same within each row (the last dimension), but not for all.
    pub factor_by_row: bool,
    /// A number that depends on all elements of the right output: two references that differ have different ones.
    pub reference: f64,
}

/// Wrong elements that are kept.
const KEPT: usize = 8;

/// The common ratio of pairs, when their ratios scatter by less than a tenth of what the ratio is off 1.
fn common_factor<'a>(pairs: impl Iterator<Item = &'a (f64, f64)> + Clone) -> Option<f64> {
    let ratios = || pairs.clone().filter(|(_, wanted)| *wanted != 0.0).map(|(got, wanted)| got / wanted);
    let count = ratios().count();
    let mean = ratios().sum::<f64>() / count as f64;
    let scatter = ratios().map(|ratio| (ratio - mean).abs()).fold(0.0, f64::max);
    (count >= 4 && mean != 0.0 && mean.is_finite() && scatter < 0.1 * (mean - 1.0).abs()).then_some(mean)
}

impl Profile {
    fn new(shape: &[usize], got: &[f64], wanted: &[f64], unit: Unit, tolerance: f64) -> Self {
        let is_wrong = |got: f64, wanted: f64| {
            let error = unit.error(got, wanted);
            error.is_nan() || error > tolerance
        };
        let mut profile = Profile { shape: shape.to_vec(), total: got.len(), ..Profile::default() };
        let mut pairs = Vec::new();
        let mut rows: Vec<std::ops::Range<usize>> = Vec::new();
        let width = shape.last().copied().unwrap_or(1).max(1);
        for (row, (got, wanted)) in got.chunks(width).zip(wanted.chunks(width)).enumerate() {
            let before = pairs.len();
            for (column, (got, wanted)) in got.iter().copied().zip(wanted.iter().copied()).enumerate() {
                // Irrational weights: no exchange of elements leaves the sum as it is.
                let weight = ((row * width + column) as f64).sqrt() + 1.0;
                profile.reference += if wanted.is_finite() { wanted * weight } else { weight };
                if !is_wrong(got, wanted) {
                    continue;
                }
                if profile.first.len() < KEPT {
                    profile.first.push(Worst { index: coordinates(row * width + column, shape), got, wanted });
                }
                profile.zeros += usize::from(got == 0.0 && wanted != 0.0);
                profile.nans += usize::from(got.is_nan());
                pairs.push((got, wanted));
            }
            if pairs.len() > before {
                rows.push(before..pairs.len());
            }
        }
        profile.wrong = pairs.len();
        profile.factor = common_factor(pairs.iter());
        profile.factor_by_row = profile.factor.is_none()
            && rows.len() > 1
            && rows.into_iter().all(|row| common_factor(pairs.get(row).unwrap_or_default().iter()).is_some());
        profile
    }
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
        let profile = Profile::new(shape, got, wanted, unit, tolerance);
        Comparison { tensor: tensor.to_owned(), against: String::new(), error, tolerance, worst, profile }
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
    fn what_wrong_elements_have_in_common() {
        let wanted: Vec<f64> = (1..=12).map(f64::from).collect();
        let of = |got: &[f64]| Comparison::new("o", &[3, 4], got, &wanted, Unit::Absolute, 1e-3).profile;
        assert_eq!((of(&wanted).wrong, of(&wanted).factor), (0, None));

        let twice: Vec<f64> = wanted.iter().map(|x| 1.02 * x).collect();
        let factor = of(&twice).factor.unwrap();
        assert!((factor - 1.02).abs() < 1e-9 && !of(&twice).factor_by_row);

        let rows: Vec<f64> = wanted.iter().enumerate().map(|(i, x)| x * (1.1 + (i / 4) as f64)).collect();
        assert!(of(&rows).factor.is_none() && of(&rows).factor_by_row);

        let mut late = wanted.clone();
        late[9] = 0.0;
        late[10] = f64::NAN;
        let profile = of(&late);
        assert_eq!((profile.wrong, profile.zeros, profile.nans, profile.total), (2, 1, 1, 12));
        assert_eq!(profile.first[0], Worst { index: vec![2, 1], got: 0.0, wanted: 10.0 });
        // The reference's number sees an exchange.
        let mut exchanged = wanted.clone();
        exchanged.swap(0, 5);
        let other = Comparison::new("o", &[3, 4], &wanted, &exchanged, Unit::Absolute, 1e-3).profile;
        assert!(other.reference != profile.reference);
    }

    #[test]
    fn lengths_that_differ_never_pass() {
        assert!(!compare(&[1.0], &[1.0, 2.0], Unit::Absolute, 1.0).holds());
        assert!(largest_error(Unit::Absolute, &[], &[1.0]).is_nan());
        assert!(compare(&[], &[], Unit::Absolute, 0.0).holds());
    }
}
