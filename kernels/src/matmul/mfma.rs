//! `matmul` for AMD chips: the matrix instruction 32x32x8.
//!
//! Both operands of the instruction want four neighbours along the inner dimension in one lane, so B is
//! transposed on its way to shared memory. Rows there are 16 bytes longer than their elements, which spreads
//! them over the banks. A block of four waves computes a tile of 64 x 64 elements of C, 32 x 32 each.

use lacewing_core::prelude::*;

use super::{Vectorized, divide_up};
use crate::tiles::CHUNK;

/// Rows and columns of C that a block computes.
const BLOCK: usize = 64;
/// Rows and columns of C that a wave computes.
const WARP: usize = 32;
/// Elements of the inner dimension of one step.
const BLOCK_K: usize = 32;
/// Rows, columns, and elements of the inner dimension of a tile.
pub(super) const TILE: [usize; 3] = [BLOCK, BLOCK, BLOCK_K];
/// Threads of a block: one wave for each 32 x 32 elements of C.
const THREADS: usize = (BLOCK / WARP) * (BLOCK / WARP) * 64;
/// Distance of rows in shared memory, in elements.
const PITCH: usize = BLOCK_K + CHUNK;

/// Blocks of a launch for so many rows and columns of C.
pub(super) fn blocks(rows: usize, columns: usize) -> usize {
    rows.div_ceil(BLOCK).saturating_mul(columns.div_ceil(BLOCK))
}

/// Row and column of a block's tile among the tiles of C.
#[device]
fn block_coordinate(columns: I32) -> (I32, I32) {
    let tiles_in_row = divide_up(columns, BLOCK);
    (block_id(X) / tiles_in_row, block_id(X) % tiles_in_row)
}

/// C = A B; arguments are those of [`super`]. The grid is one block for each tile, flattened in x with the tiles of a row
/// of C innermost.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_mfma<T: MmaElement, Out: Float>(
    #[comptime] vectorized: Vectorized,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    let (row, column) = block_coordinate(c.extent(1));
    let mma = TiledMma::<Mfma<32, 32, 8, T>>::new([BLOCK / WARP, BLOCK / WARP]);
    let mut acc = mma.accumulators(BLOCK, BLOCK);

    // Tiles `(m, k)` and `(n, k)`.
    let a_tile = shared_tensor::<T>("a", layout![(BLOCK, BLOCK_K); (PITCH, 1)]);
    let b_tile = shared_tensor::<T>("b", layout![(BLOCK, BLOCK_K); (PITCH, 1)]);
    let copy_a = TiledCopy::<T>::rows(CopyAtom::Registers, THREADS, BLOCK_K, CHUNK);
    // Neighbouring threads take neighbouring rows of B, so that the transposed stores are neighbours too.
    let copy_b = TiledCopy::<T>::new(CopyAtom::Registers, layout![(BLOCK_K, THREADS / BLOCK_K)], [1, CHUNK]);
    let (a_part, b_part) = (mma.partition_a(&a_tile), mma.partition_b(&b_tile));

    for step in range(divide_up(a.extent(1), BLOCK_K)) {
        // All waves are done with the tiles before.
        barrier();
        let a_source = a.tile([BLOCK, BLOCK_K], (row, step)).vectors(vectorized.a);
        let b_source = b.tile([BLOCK_K, BLOCK], (step, column)).vectors(vectorized.b);
        copy(&copy_a, &copy_a.partition_global(&a_source), &copy_a.partition_shared(&a_tile));
        copy(&copy_b, &copy_b.partition_global(&b_source), &copy_b.partition_shared(&b_tile.transposed()));
        barrier();
        for k in range_constexpr(a_part.k_steps()) {
            gemm(&a_part.load(k), &b_part.load(k), &mut acc);
        }
    }

    mma.partition_c(&c.tile([BLOCK, BLOCK], (row, column))).store(&acc);
}
