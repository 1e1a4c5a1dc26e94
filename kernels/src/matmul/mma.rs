//! `matmul` for NVIDIA chips: `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! Tiles of A and B are double buffered: while one step is multiplied, the next is on its way to shared
//! memory. Rows in shared memory are 16 bytes longer than their elements, so that the eight rows that one
//! phase of `ldmatrix` reads lie in eight different groups of four banks.

use lacewing_core::prelude::*;

use super::{BLOCK, BLOCK_K, CHUNK, Vectorized, WARP, block_coordinate, k_steps};

/// Threads of a block: one warp for each 32 x 32 elements of C.
pub(super) const THREADS: usize = (BLOCK / WARP) * (BLOCK / WARP) * 32;

/// C = A B; arguments and grid are those of [`super`].
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_mma<T: MmaElement, Out: Float>(
    #[comptime] vectorized: Vectorized,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    let (row, column) = block_coordinate(c.extent(1));
    let mma = TiledMma::<MmaSync<16, 8, 16, T>>::new([BLOCK / WARP, BLOCK / WARP]);
    let mut acc = mma.accumulators(BLOCK, BLOCK);

    // Tiles `(m, k)` and `(k, n)`, two stages each.
    let a_tiles =
        shared_tensor::<T>("a", layout![(BLOCK, BLOCK_K, 2); (BLOCK_K + CHUNK, 1, BLOCK * (BLOCK_K + CHUNK))]);
    let b_tiles = shared_tensor::<T>("b", layout![(BLOCK_K, BLOCK, 2); (BLOCK + CHUNK, 1, BLOCK_K * (BLOCK + CHUNK))]);
    let copy_a = TiledCopy::<T>::rows(CopyAtom::CpAsync, THREADS, BLOCK_K, CHUNK);
    let copy_b = TiledCopy::<T>::rows(CopyAtom::CpAsync, THREADS, BLOCK, CHUNK);
    let fill = |step: I32, stage: I32| {
        let a_tile = a.tile([BLOCK, BLOCK_K], (row, step)).vectors(vectorized.width_a());
        let b_tile = b.tile([BLOCK_K, BLOCK], (step, column)).vectors(vectorized.width_b());
        copy(&copy_a, &copy_a.partition_global(&a_tile), &copy_a.partition_shared(&a_tiles.stage(stage)));
        copy(&copy_b, &copy_b.partition_global(&b_tile), &copy_b.partition_shared(&b_tiles.stage(stage)));
    };
    fill(I32::from(0), I32::from(0));
    cp_async_commit();

    let steps = k_steps(a.extent(1));
    for step in range(steps) {
        let stage = step % 2;
        cp_async_wait(0);
        // The step's tiles are there for all warps, and all are done with the stage that is filled next.
        barrier();
        if step + 1 < steps {
            fill(step + 1, 1 - stage);
        }
        cp_async_commit();

        let a_part = mma.partition_a(&a_tiles.stage(stage));
        let b_part = mma.partition_b(&b_tiles.stage(stage).transposed());
        for k in range_constexpr(a_part.k_steps()) {
            gemm(&a_part.load(k), &b_part.load(k), &mut acc);
        }
    }
    // The last group is empty, but a block must not end with copies in flight.
    cp_async_wait(0);

    mma.partition_c(&c.tile([BLOCK, BLOCK], (row, column))).store(&acc);
}
