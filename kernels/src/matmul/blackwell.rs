//! `matmul` for Blackwell: products that sum in tensor memory.
//!
//! A block of four warps has a tile of 128 x 128 elements of C, and as many columns of tensor memory. All threads fill
//! a stage of shared memory, then one starts the product of it; while that runs, the others fill the next stage. A
//! stage is free again when its product has arrived at the stage's mbarrier. What lies outside of A and B is filled
//! with zeros, so that any shape and any strides go.
//!
//! Written for the emulator, and assembled by `ptxas`: no GPU of this kind was at hand, so nothing is known of its
//! speed. Copies by the copy engine, a producer's warp of its own and wider stores of C would come next.

use lacewing_core::prelude::*;

use super::{Vectorized, divide_up};

/// Rows and columns of C that a block computes.
const BLOCK_M: usize = 128;
const BLOCK_N: usize = 128;
/// Elements of the inner dimension of one stage.
const BLOCK_K: usize = 64;
/// All three.
pub(super) const TILE: [usize; 3] = [BLOCK_M, BLOCK_N, BLOCK_K];
/// Elements of 16 bytes.
const CHUNK: usize = 8;
/// Stages: 32 KB of shared memory each.
const STAGES: usize = 2;
/// Threads of a block: a warp for each 32 rows, which it loads from tensor memory.
const THREADS: usize = BLOCK_M;
/// Columns of C that a thread holds at a time.
const COLUMNS: usize = 32;

/// Fills a tile with the elements of `source` from a row and a column on, with zeros beyond its end: 16 bytes at a time
/// where `wide`.
#[device]
fn fill<T: MmaElement>(tile: SwizzledTile<T>, source: Tensor<T, 2>, first: (I32, I32), wide: bool) {
    let (row, column) = first;
    // Not the sums: they may be beyond what an I32 holds.
    let (rows, columns) = (source.extent(0) - row, source.extent(1) - column);
    let thread = thread_id(X);
    let zero = T::from(0.0);
    if const_expr(wide) {
        let per_row = tile.columns() / CHUNK;
        for part in range_constexpr(tile.rows() * per_row / THREADS) {
            let chunk = thread + (part * THREADS) as i32;
            let (r, c) = (chunk / (per_row as i32), chunk % (per_row as i32) * (CHUNK as i32));
            let inside = (r < rows) & (c < columns);
            let values = source.at((row + r, column + c)).load_vec_if(inside, Vector::<T, CHUNK>::splat(zero));
            tile.at((r, c)).store_vec(values);
        }
    } else {
        let width = tile.columns() as i32;
        for element in range(thread, (tile.rows() * tile.columns()) as i32, THREADS as i32) {
            let (r, c) = (element / width, element % width);
            let inside = (r < rows) & (c < columns);
            tile.at((r, c)).store(source.at((row + r, column + c)).load_if(inside, zero));
        }
    }
}

/// Stores a part of a row of C from a place on, `N` elements at a time, where the row is inside and so many columns are
/// left.
#[device]
fn store<Out: Float, const N: usize>(
    c: TensorMut<Out, 2>,
    place: (I32, I32),
    inside: (Bool, I32),
    values: &[F32; COLUMNS],
) {
    let ((row, column), (is_row, columns)) = (place, inside);
    for part in range_constexpr(COLUMNS / N) {
        let first = part * N;
        let parts: [Out; N] = std::array::from_fn(|i| values[first + i].cast::<Out>());
        let mask = is_row & (columns > first as i32);
        c.at((row, column + first as i32)).store_vec_if(mask, Vector::from(parts));
    }
}

/// C = A B; arguments are those of [`super`], and the grid is one block for each tile of 128 x 128.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_tcgen05<T: MmaElement, Out: Float>(
    #[comptime] vectorized: Vectorized,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    let tiles_in_row = divide_up(c.extent(1), BLOCK_N);
    let row = block_id(X) / tiles_in_row * (BLOCK_M as i32);
    let column = block_id(X) % tiles_in_row * (BLOCK_N as i32);

    let a_ring = SwizzledRing::<T>::new("a", STAGES, BLOCK_M, BLOCK_K);
    let b_ring = SwizzledRing::<T>::new("b", STAGES, BLOCK_K, BLOCK_N);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", STAGES, 1);
    let done = setup.mbarrier("done", 1);
    setup.finish();
    let memory = TensorMemory::alloc(BLOCK_N);
    memory.relinquish_alloc_permit();
    let sums = memory.accumulator(BLOCK_M, 0, BLOCK_N);

    // One step at least: it makes the sums zero where the inner dimension is empty.
    let steps = divide_up(a.extent(1), BLOCK_K).max(1);
    let mut at = stages.start();
    for step in range(steps) {
        stages.wait_empty(at);
        let (a_tile, b_tile) = (a_ring.stage(at.stage()), b_ring.stage(at.stage()));
        let k = step * (BLOCK_K as i32);
        fill(a_tile, a, (row, k), vectorized.a == CHUNK);
        fill(b_tile, b, (k, column), vectorized.b == CHUNK);
        fence_proxy(ProxyFence::AsyncShared);
        barrier();
        if warp_id() == 0 && elect_one() {
            tcgen05_mma(a_tile, b_tile, sums, step > 0).commit(stages.empty(at));
        }
        at.advance();
    }
    if warp_id() == 0 && elect_one() {
        tcgen05_commit(done);
    }

    let own = sums.wait(done, I32::from(0)).own_rows();
    let r = thread_id(X);
    let (rows, columns) = (c.extent(0) - row, c.extent(1) - column);
    for part in range((BLOCK_N / COLUMNS) as i32) {
        let first = part * (COLUMNS as i32);
        let values = own.load::<COLUMNS>(first).wait();
        let place = (row + r, column + first);
        match vectorized.c {
            8 => store::<Out, 8>(c, place, (r < rows, columns - first), &values),
            4 => store::<Out, 4>(c, place, (r < rows, columns - first), &values),
            2 => store::<Out, 2>(c, place, (r < rows, columns - first), &values),
            _ => store::<Out, 1>(c, place, (r < rows, columns - first), &values),
        }
    }
    memory.dealloc();
}

/// Blocks for a matrix of this many rows and columns.
pub(super) fn blocks(rows: usize, columns: usize) -> usize {
    rows.div_ceil(BLOCK_M).saturating_mul(columns.div_ceil(BLOCK_N))
}
