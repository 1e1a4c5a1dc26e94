//! `matmul` for NVIDIA chips: `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! Tiles of A and B are double buffered: while one step is multiplied, the next is on its way to shared
//! memory. Rows in shared memory are 16 bytes longer than their elements, so that the eight rows that one
//! phase of `ldmatrix` reads lie in eight different groups of four banks.

use lacewing_core::prelude::*;
use lacewing_core::types::InShared;

use super::{BLOCK, BLOCK_K, CHUNK, Vectorized, WARP, first_element, load_chunk};

/// Threads of a block: one warp for each 32 x 32 elements of C.
pub(super) const THREADS: usize = (BLOCK / WARP) * (BLOCK / WARP) * 32;

/// Two stages of a tile of `rows` x `columns` elements in shared memory.
#[derive(Clone)]
struct Tile<T: Scalar> {
    memory: SharedSlice<T>,
    rows: usize,
    columns: usize,
}

impl<T: MmaElement> Tile<T> {
    fn new(name: &'static str, rows: usize, columns: usize) -> Self {
        let memory = shared_array_named::<T>(name, 2 * rows * (columns + CHUNK));
        Tile { memory, rows, columns }
    }

    /// An element of a stage.
    #[device]
    fn at(&self, stage: I32, row: I32, column: I32) -> Place<T, InShared> {
        let row = stage * (self.rows as i32) + row;
        self.memory.at(row * ((self.columns + CHUNK) as i32) + column)
    }

    /// Fills a stage with the elements of `source` from `(first_row, first_column)` on; zeros outside.
    #[device]
    fn fill(&self, stage: I32, source: Tensor<T, 2>, first_row: I32, first_column: I32, vectorized: bool) {
        let chunks_in_row = self.columns / CHUNK;
        static_assert!(self.rows * chunks_in_row % THREADS == 0);
        for round in range_constexpr(self.rows * chunks_in_row / THREADS) {
            let chunk = thread_id(X) + ((round * THREADS) as i32);
            let r = chunk / (chunks_in_row as i32);
            let c = chunk % (chunks_in_row as i32) * (CHUNK as i32);
            let (row, column) = (first_row + r, first_column + c);
            if const_expr(vectorized) {
                let inside = row < source.extent(0) && column < source.extent(1);
                cp_async::<16>(self.at(stage, r, c), source.at((row, column)), inside);
            } else {
                self.at(stage, r, c).store_vec(load_chunk(source, row, column, vectorized));
            }
        }
    }
}

/// C = A B; arguments and grid are those of [`super`].
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_mma<T: MmaElement, Out: Float>(
    #[comptime] vectorized: Vectorized,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    let (first_row, first_column) = first_element(c.extent(1));
    let lane = lane_id();
    let warp_row = warp_id() / ((BLOCK / WARP) as i32) * (WARP as i32);
    let warp_column = warp_id() % ((BLOCK / WARP) as i32) * (WARP as i32);

    let a_tile = Tile::<T>::new("a", BLOCK, BLOCK_K);
    let b_tile = Tile::<T>::new("b", BLOCK_K, BLOCK);
    a_tile.fill(I32::from(0), a, first_row, I32::from(0), vectorized.a);
    b_tile.fill(I32::from(0), b, I32::from(0), first_column, vectorized.b);
    cp_async_commit();

    // One accumulator for each 16 x 8 elements of the warp's part of C.
    let mut acc = [[[F32::from(0.0); 4]; WARP / 8]; WARP / 16];

    for first in range(0, a.extent(1), BLOCK_K) {
        let stage = first / (BLOCK_K as i32) % 2;
        cp_async_wait(0);
        // The step's tiles are there for all warps, and all are done with the stage that is filled next.
        barrier();
        if first < a.extent(1) - (BLOCK_K as i32) {
            let next = first + (BLOCK_K as i32);
            a_tile.fill(1 - stage, a, first_row, next, vectorized.a);
            b_tile.fill(1 - stage, b, next, first_column, vectorized.b);
        }
        cp_async_commit();

        for inner in range_constexpr(0, BLOCK_K, 16) {
            // Each lane names one row of 8 elements: lanes 0 to 15 the left half of 16 rows, the others the right.
            let (row, half) = (lane % 16, lane / 16 * 8);
            let mut a_fragments = Vec::new();
            for m in range_constexpr(WARP / 16) {
                let place = a_tile.at(stage, warp_row + row + ((16 * m) as i32), half + (inner as i32));
                a_fragments.push(ldmatrix_x4(place));
            }
            for pair in range_constexpr(WARP / 16) {
                // B has its rows along k, and the instruction wants them along n: each matrix is transposed.
                let place = b_tile.at(stage, row + (inner as i32), warp_column + half + ((16 * pair) as i32));
                let b = ldmatrix_x4_trans(place);
                for m in range_constexpr(WARP / 16) {
                    acc[m][2 * pair] = mma_m16n8k16(a_fragments[m], [b[0], b[1]], acc[m][2 * pair]);
                    acc[m][2 * pair + 1] = mma_m16n8k16(a_fragments[m], [b[2], b[3]], acc[m][2 * pair + 1]);
                }
            }
        }
    }
    // The last group is empty, but a block must not end with copies in flight.
    cp_async_wait(0);

    for m in range_constexpr(WARP / 16) {
        for n in range_constexpr(WARP / 8) {
            for e in range_constexpr(4) {
                // Element e of a lane: PTX ISA, "Matrix Fragments for mma.m16n8k16".
                let row = first_row + warp_row + lane / 4 + ((16 * m + e / 2 * 8) as i32);
                let column = first_column + warp_column + lane % 4 * 2 + ((8 * n + e % 2) as i32);
                let inside = row < c.extent(0) && column < c.extent(1);
                c.at((row, column)).store_if(inside, acc[m][n][e].cast::<Out>());
            }
        }
    }
}
