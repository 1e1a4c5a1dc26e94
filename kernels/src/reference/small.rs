//! References of the small kernels.

use lacewing_runtime::host_math::{exponentials_f64, rows_dot_f64};

/// `a * x + y`, element by element.
pub fn axpy(a: f64, x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| a * x + y).collect()
}

/// The transpose of a row-major matrix with rows of `columns` elements.
pub fn transpose(matrix: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|c| matrix.iter().skip(c).step_by(columns).copied()).collect()
}

/// Softmax of each row of a row-major matrix with rows of `columns` elements. A row of -inf only
/// gives NaN, as the formula does.
pub fn softmax_rows(matrix: &[f64], columns: usize) -> Vec<f64> {
    let mut out = matrix.to_vec();
    for row in out.chunks_mut(columns.max(1)) {
        let (_, sum) = exponentials_f64(row);
        row.iter_mut().for_each(|x| *x /= sum);
    }
    out
}

/// Root-mean-square norm of each row: `x / sqrt(mean(x^2) + epsilon) * weight`, with rows of
/// `weight.len()` elements.
pub fn rms_norm(matrix: &[f64], weight: &[f64], epsilon: f64) -> Vec<f64> {
    let mut out = matrix.to_vec();
    for row in out.chunks_mut(weight.len().max(1)) {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
        let factor = (mean + epsilon).sqrt().recip();
        for (x, w) in row.iter_mut().zip(weight) {
            *x *= factor * w;
        }
    }
    out
}

/// The product of row-major matrices: `a` of `rows` rows, and `b` of `columns` columns.
pub fn matmul(a: &[f64], b: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; rows * columns];
    let inner = a.len().checked_div(rows).unwrap_or(0);
    if inner == 0 || columns == 0 {
        return out;
    }
    let b_columns = transpose(b, columns);
    for (row, out) in a.chunks(inner).zip(out.chunks_mut(columns)) {
        rows_dot_f64(&b_columns, row, out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_references_by_hand() {
        assert_eq!(axpy(2.0, &[1.0, 2.0], &[10.0, 20.0]), [12.0, 24.0]);
        assert_eq!(transpose(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        assert_eq!(softmax_rows(&[5.0, 5.0, 1.0, 1.0], 2), [0.5; 4]);
        assert_eq!(rms_norm(&[3.0, -3.0], &[1.0, 2.0], 0.0), [1.0, -2.0]);
        let product = matmul(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2, 2);
        assert_eq!(product, [19.0, 22.0, 43.0, 50.0]);
        assert_eq!(matmul(&[], &[], 0, 3), []);
        assert_eq!(matmul(&[], &[], 2, 1), [0.0; 2]);
        assert_eq!(transpose(&[], 0), []);
    }
}
