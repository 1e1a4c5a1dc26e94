//! Tiles in shared memory.

use lacewing_core::prelude::*;

/// Elements of 16 bits in one copy of 16 bytes.
pub(crate) const CHUNK: usize = 8;

/// Stages of a tile of 16-bit elements, row after row without gaps, in which pieces of 16 bytes change places: no eight
/// rows' pieces one above the other share a bank, and a copy of neighbours fills whole lines of 128 bytes.
///
/// Rows with gaps would have no bank conflicts under `ldmatrix` either. But `cp.async` writes a line of global memory
/// at a time, and where gaps lay it across two lines of shared memory, it takes two turns.
///
/// `columns` is a multiple of 16. With `2^t` the largest power of two that divides the number of pieces in a row, pieces are
/// moved by the number of the row, or of the line, modulo `2^t`, at most 8.
pub(crate) fn swizzled(rows: usize, columns: usize, stages: usize) -> Result<ComposedLayout, LayoutError> {
    let power = (columns / CHUNK).trailing_zeros();
    let swizzle = Swizzle::new(power.min(3), CHUNK.ilog2(), power.max(3) as i32)?;
    ComposedLayout::new(swizzle, layout![(rows, columns, stages); (columns, 1, rows * columns)]?)
}

#[cfg(test)]
mod tests {
    use lacewing_core::atoms::{WarpAccess, access_conflicts};

    use super::*;

    /// What `ldmatrix` and copies ask of each width that attention and products have.
    #[test]
    fn swizzled_rows_have_no_bank_conflicts() {
        for columns in (16..=512).step_by(16) {
            let stages = swizzled(32, columns, 1).unwrap();
            let tile = ComposedLayout::new(stages.swizzle(), stages.layout().take(0..2).unwrap()).unwrap();
            for column in (0..columns).step_by(CHUNK) {
                let lanes = (0..32).map(|lane| [lane, column]).collect();
                let rows = WarpAccess { lanes, bytes: 16, store: false };
                let conflicts = access_conflicts(Target::SM_80, &tile, 2, &rows).unwrap();
                assert_eq!(conflicts.degree, 1, "pieces at {column} of rows of {columns}");
            }
            let pieces = columns / CHUNK;
            let lanes = (0..32.min(32 * pieces)).map(|lane| [lane / pieces, lane % pieces * CHUNK]).collect();
            let fill = WarpAccess { lanes, bytes: 16, store: true };
            assert_eq!(access_conflicts(Target::SM_80, &tile, 2, &fill).unwrap().degree, 1, "rows of {columns}");
        }
    }
}
