//! `matmul` for AMD chips: the matrix instruction 32x32x8.
//!
//! Both operands of the instruction want four neighbours along the inner dimension in one lane, so B is
//! transposed on its way to shared memory. Rows there are 16 bytes longer than their elements, which spreads
//! them over the banks.

use lacewing_core::prelude::*;

use super::{BLOCK, BLOCK_K, CHUNK, Vectorized, WARP, block_coordinate, k_steps};

/// Threads of a block: one wave for each 32 x 32 elements of C.
pub(super) const THREADS: usize = (BLOCK / WARP) * (BLOCK / WARP) * 64;
/// Distance of rows in shared memory, in elements.
const PITCH: usize = BLOCK_K + CHUNK;

/// C = A B; arguments and grid are those of [`super`].
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

    for step in range(k_steps(a.extent(1))) {
        // All waves are done with the tiles before.
        barrier();
        let a_source = a.tile([BLOCK, BLOCK_K], (row, step)).vectors(vectorized.width_a());
        let b_source = b.tile([BLOCK_K, BLOCK], (step, column)).vectors(vectorized.width_b());
        copy(&copy_a, &copy_a.partition_global(&a_source), &copy_a.partition_shared(&a_tile));
        copy(&copy_b, &copy_b.partition_global(&b_source), &copy_b.partition_shared(&b_tile.transposed()));
        barrier();
        for k in range_constexpr(a_part.k_steps()) {
            gemm(&a_part.load(k), &b_part.load(k), &mut acc);
        }
    }

    mma.partition_c(&c.tile([BLOCK, BLOCK], (row, column))).store(&acc);
}
