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
use lacewing_core::types::Scalar;
use lacewing_runtime::runner::Tile;
use lacewing_runtime::{DevTensor, ElementOf, Error, KernelExt, LaunchStats};

use super::{CHUNK, Vectorized};
use crate::views::HostFloat;

/// Rows and columns of C that a block computes.
const BLOCK_M: usize = 128;
const BLOCK_N: usize = 128;
/// Elements of the inner dimension of one stage.
const BLOCK_K: usize = 64;
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

/// C = A B; arguments are those of [`super`], and the grid is one block for each tile of 128 x 128.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_tcgen05<T: MmaElement, Out: Float>(
    #[comptime] vectorized: Vectorized,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    // Rounded up; a block runs only where there is a column.
    let tiles_in_row = (c.extent(1) - 1) / (BLOCK_N as i32) + 1;
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
    let inner = a.extent(1);
    let steps = (inner / (BLOCK_K as i32) + (inner % (BLOCK_K as i32)).min(1)).max(1);
    let mut at = stages.start();
    for step in range(steps) {
        stages.wait_empty(at);
        let (a_tile, b_tile) = (a_ring.stage(at.stage()), b_ring.stage(at.stage()));
        let k = step * (BLOCK_K as i32);
        fill(a_tile, a, (row, k), vectorized.a);
        fill(b_tile, b, (k, column), vectorized.b);
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
        for i in range_constexpr(COLUMNS) {
            let j = first + i as i32;
            c.at((row + r, column + j)).store_if((r < rows) & (j < columns), values[i].cast::<Out>());
        }
    }
    memory.dealloc();
}

/// Its tiles, for the debugging ladder.
pub(super) fn tiles() -> Vec<Tile> {
    vec![Tile::new("M", BLOCK_M), Tile::new("N", BLOCK_N), Tile::new("K", BLOCK_K)]
}

/// Launches it. Shapes have been checked.
///
/// # Errors
/// Those of a launch.
pub fn run<T, Out>(
    a: &DevTensor<T::Host, 2>,
    b: &DevTensor<T::Host, 2>,
    c: &mut DevTensor<Out::Host, 2>,
) -> Result<LaunchStats, Error>
where
    T: MmaElement + Scalar<Host: ElementOf<T>>,
    Out: HostFloat,
{
    let device = a.device().clone();
    let ([rows, _], [_, columns]) = (a.shape(), b.shape());
    let grid = [rows.div_ceil(BLOCK_M) * columns.div_ceil(BLOCK_N), 1, 1];
    matmul_tcgen05::<T, Out>::new(Vectorized::new(a, b)).grid(grid).launch(&device, (a, b, c))
}
