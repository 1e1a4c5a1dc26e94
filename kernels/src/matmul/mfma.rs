//! `matmul` for AMD chips: the matrix instruction 32x32x8.
//!
//! Both operands of the instruction want four neighbours along the inner dimension in one lane, so B is
//! transposed on its way to shared memory. Rows there are 16 bytes longer than their elements, which spreads
//! them over the banks.

use lacewing_core::prelude::*;

use super::{BLOCK, BLOCK_K, CHUNK, Vectorized, WARP, first_element, load_chunk};

/// Threads of a block: one wave for each 32 x 32 elements of C.
pub(super) const THREADS: usize = (BLOCK / WARP) * (BLOCK / WARP) * 64;
/// Distance of rows in shared memory, in elements.
const PITCH: usize = BLOCK_K + CHUNK;

/// The shared memory of a block.
#[derive(Shared)]
struct Buffers<T: Scalar> {
    /// Rows of A.
    #[shared(align = 16)]
    a: SharedTile<T, BLOCK, BLOCK_K, PITCH>,
    /// Columns of B.
    #[shared(align = 16)]
    b: SharedTile<T, BLOCK, BLOCK_K, PITCH>,
}

/// C = A B; arguments and grid are those of [`super`].
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_mfma<T: MmaElement, Out: Float>(
    #[comptime] vectorized: Vectorized,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    let (first_row, first_column) = first_element(c.extent(1));
    let (thread, lane) = (thread_id(X), lane_id());
    let warp_row = warp_id() / ((BLOCK / WARP) as i32) * (WARP as i32);
    let warp_column = warp_id() % ((BLOCK / WARP) as i32) * (WARP as i32);
    // A lane's row of A and column of B, and which four of each eight along the inner dimension it holds.
    let (line, half) = (lane % 32, lane / 32 * 4);

    let tiles = shared::<Buffers<T>>();
    let mut acc = [F32::from(0.0); 16];
    static_assert!(BLOCK * BLOCK_K == CHUNK * THREADS);

    for first in range(0, a.extent(1), BLOCK_K) {
        // All waves are done with the tiles before.
        barrier();
        let row = thread / ((BLOCK_K / CHUNK) as i32);
        let inner = thread % ((BLOCK_K / CHUNK) as i32) * (CHUNK as i32);
        let chunk = load_chunk(a, first_row + row, first + inner, vectorized.a);
        tiles.a.at((row, inner)).store_vec(chunk);

        // Neighbouring threads take neighbouring rows of B, so that the transposed stores are neighbours too.
        let inner = thread % (BLOCK_K as i32);
        let column = thread / (BLOCK_K as i32) * (CHUNK as i32);
        let chunk = load_chunk(b, first + inner, first_column + column, vectorized.b);
        for e in range_constexpr(CHUNK) {
            tiles.b.at((column + (e as i32), inner)).store(chunk.get(e));
        }
        barrier();

        for step in range_constexpr(0, BLOCK_K, 8) {
            let a_fragment = tiles.a.at((warp_row + line, half + (step as i32))).load_vec::<4>();
            let b_fragment = tiles.b.at((warp_column + line, half + (step as i32))).load_vec::<4>();
            acc = mfma_32x32x8(a_fragment, b_fragment, acc);
        }
    }

    for e in range_constexpr(16) {
        // Element e of a lane: CDNA3 ISA, "Matrix Arithmetic Instructions", D of 32x32x8.
        let row = first_row + warp_row + half + ((e / 4 * 8 + e % 4) as i32);
        let column = first_column + warp_column + line;
        let inside = row < c.extent(0) && column < c.extent(1);
        c.at((row, column)).store_if(inside, acc[e].cast::<Out>());
    }
}
