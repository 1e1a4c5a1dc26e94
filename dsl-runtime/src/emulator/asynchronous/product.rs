//! The dense micro-kernel: 16 rows of A, eight columns of B at a time.
//!
//! Sums run over k in order, in f32, as for `mma.sync`: neither the truncation of the hardware nor its
//! groups are modelled, and every host computes the same bits.

use crate::emulator::isa::Isa;

/// Sums of 16 rows and 8 columns, the columns in the order of
/// [`COLUMNS`](crate::emulator::exec::matrix::COLUMNS).
pub(crate) type Tile = [[f32; 8]; 16];

/// `sums += a * b`. `EXACT`: all products are exact in f32.
#[inline(always)]
fn multiply_of<I: Isa, const EXACT: bool>(sums: &mut Tile, a: &[f32], b: &[[f32; 8]]) {
    let k = b.len();
    for (half, rows) in sums.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let Some(a) = a.get(half * 8 * k..(half + 1) * 8 * k) else { return };
        // SAFETY: each row has eight floats; the ISA was detected before it was chosen.
        let mut wide: [I::F32x8; 8] =
            std::array::from_fn(|row| unsafe { I::join(rows[row].as_ptr(), rows[row].as_ptr().add(4)) });
        for (depth, row_of_b) in b.iter().enumerate() {
            // SAFETY: as above.
            let row_of_b = unsafe { I::join(row_of_b.as_ptr(), row_of_b.as_ptr().add(4)) };
            for (row, sum) in wide.iter_mut().enumerate() {
                // SAFETY: `row` is below 8 and `depth` below k, so the index is below 8 k.
                *sum = unsafe { I::add_scaled::<EXACT>(*sum, *a.get_unchecked(row * k + depth), row_of_b) };
            }
        }
        for (row, sum) in rows.iter_mut().zip(wide) {
            // SAFETY: as above.
            unsafe { I::split(sum, row.as_mut_ptr(), row.as_mut_ptr().add(4)) };
        }
    }
}

/// `sums += a * b`: `a` has 16 rows of k, `b` k rows of 8.
#[inline(always)]
pub(crate) fn multiply<I: Isa>(sums: &mut Tile, a: &[f32], b: &[[f32; 8]], exact: bool) {
    if exact { multiply_of::<I, true>(sums, a, b) } else { multiply_of::<I, false>(sums, a, b) }
}
