//! Row-wise sums of products on the host, for references.
//!
//! They live here because this crate is optimised in every profile: a reference in an unoptimised
//! crate that calls them once per row costs about what an optimised one does. All sums are taken in
//! a fixed order, so that results do not depend on the host.

/// How many partial sums [`dot_f64`] and [`dot_f32`] keep.
const LANES: usize = 8;

macro_rules! products {
    ($float:ty, $dot:ident, $rows_dot:ident, $weighted_rows:ident) => {
        /// The sum of `a[i] * b[i]`, taken as eight interleaved partial sums.
        pub fn $dot(a: &[$float], b: &[$float]) -> $float {
            let (a_chunks, a_rest) = a.as_chunks::<LANES>();
            let (b_chunks, b_rest) = b.as_chunks::<LANES>();
            let mut sums: [$float; LANES] = [0.0; LANES];
            for (x, y) in a_chunks.iter().zip(b_chunks) {
                for lane in 0..LANES {
                    sums[lane] += x[lane] * y[lane];
                }
            }
            let rest: $float = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
            sums.iter().sum::<$float>() + rest
        }

        /// `out[r]` = the product of row `r` of `matrix` (rows of `vector.len()`) and `vector`, for
        /// every `r` within both `out` and the matrix.
        pub fn $rows_dot(matrix: &[$float], vector: &[$float], out: &mut [$float]) {
            if vector.is_empty() {
                out.fill(0.0);
                return;
            }
            for (sum, row) in out.iter_mut().zip(matrix.chunks_exact(vector.len())) {
                *sum = $dot(row, vector);
            }
        }

        /// `out` = the sum over `r` of `weights[r]` times row `r` of `matrix` (rows of `out.len()`).
        ///
        /// Every row counts, one with weight zero too: a NaN in it comes through.
        pub fn $weighted_rows(weights: &[$float], matrix: &[$float], out: &mut [$float]) {
            out.fill(0.0);
            if out.is_empty() {
                return;
            }
            for (weight, row) in weights.iter().zip(matrix.chunks_exact(out.len())) {
                for (sum, x) in out.iter_mut().zip(row) {
                    *sum += weight * x;
                }
            }
        }
    };
}

products!(f64, dot_f64, rows_dot_f64, weighted_rows_f64);
products!(f32, dot_f32, rows_dot_f32, weighted_rows_f32);

/// A storage format that numbers are rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE single.
    F32,
}

impl Precision {
    /// `x` rounded to nearest even.
    pub fn round(self, x: f32) -> f32 {
        match self {
            Precision::F16 => half::f16::from_f32(x).to_f32(),
            Precision::Bf16 => half::bf16::from_f32(x).to_f32(),
            Precision::F32 => x,
        }
    }

    /// Rounds every element in place.
    pub fn round_all(self, numbers: &mut [f32]) {
        for x in numbers {
            *x = self.round(*x);
        }
    }

    /// Rounds every element in place but those that would overflow to infinity, which stay.
    pub fn round_all_finite(self, numbers: &mut [f32]) {
        for x in numbers {
            let rounded = self.round(*x);
            if rounded.is_finite() || !x.is_finite() {
                *x = rounded;
            }
        }
    }
}

/// Exponentials relative to the largest of `scores`, in place; gives that largest score and their
/// sum. Scores must not be empty; a largest score of -inf gives a sum of zero.
macro_rules! softmax_parts {
    ($float:ty, $name:ident) => {
        /// Replaces `scores` by `exp(score - largest)`; gives the largest score and the sum of the
        /// exponentials. With no score, or none above -inf, they are all 0 and the sum is 0.
        pub fn $name(scores: &mut [$float]) -> ($float, $float) {
            // `max` of the standard library drops NaN; here it must reach the result.
            let largest = scores.iter().fold(<$float>::NEG_INFINITY, |m, x| if x.is_nan() || *x > m { *x } else { m });
            if largest == <$float>::NEG_INFINITY {
                scores.fill(0.0);
                return (largest, 0.0);
            }
            let mut sum = 0.0;
            for score in scores.iter_mut() {
                *score = (*score - largest).exp();
                sum += *score;
            }
            (largest, sum)
        }
    };
}

softmax_parts!(f64, exponentials_f64);
softmax_parts!(f32, exponentials_f32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_products() {
        let a: Vec<f64> = (1..=11).map(f64::from).collect();
        assert_eq!(dot_f64(&a, &a), 506.0);
        let mut out = [0.0; 2];
        rows_dot_f64(&[1.0, 2.0, 3.0, 4.0], &[10.0, 1.0], &mut out);
        assert_eq!(out, [12.0, 34.0]);
        weighted_rows_f64(&[10.0, 1.0], &[1.0, 2.0, 3.0, 4.0], &mut out);
        assert_eq!(out, [13.0, 24.0]);
    }

    #[test]
    fn exponentials_of_nothing_are_nothing_and_nan_comes_through() {
        assert_eq!(exponentials_f64(&mut []), (f64::NEG_INFINITY, 0.0));
        let mut masked = [f32::NEG_INFINITY; 3];
        assert_eq!(exponentials_f32(&mut masked), (f32::NEG_INFINITY, 0.0));
        assert_eq!(masked, [0.0; 3]);
        let mut bad = [1.0, f64::NAN, 2.0];
        assert!(exponentials_f64(&mut bad).1.is_nan());
        let mut good = [1000.0, 1000.0];
        assert_eq!(exponentials_f64(&mut good), (1000.0, 2.0));
    }

    #[test]
    fn rounding_leaves_what_would_overflow() {
        let mut numbers = [1e9, 1.0 + 1.0 / 4096.0, f32::NEG_INFINITY];
        Precision::F16.round_all_finite(&mut numbers);
        assert_eq!(numbers, [1e9, 1.0, f32::NEG_INFINITY]);
    }
}
