//! `matmul` for NVIDIA chips: `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! Tiles of A and B go through a ring of stages in shared memory: while one step of the inner dimension is multiplied,
//! those after it are on their way. Within a step the fragments of the next product are loaded before the present ones
//! are multiplied, over the end of a step too: the step's last product waits for the next stage first.
//!
//! A step takes whole lines of 128 bytes of A and of B, and rows in shared memory are swizzled: neither `ldmatrix` nor a
//! copy has a bank conflict. Blocks that run at the same time compute tiles that lie together, which share rows of A
//! and columns of B in the L2 cache.
//!
//! What bounds the kernel is shared memory, and then power: docs/src/inside/mma-sync.md has the measurements.

use lacewing_core::prelude::*;

use super::{Vectorized, divide_up};
use crate::tiles::{CHUNK, swizzled};

/// How the work is divided among blocks and warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Rows of C of a block.
    rows: usize,
    /// Columns of C of a block.
    columns: usize,
    /// Elements of the inner dimension of one step.
    inner: usize,
    /// Warps along rows and columns.
    warps: [usize; 2],
    /// Stages of A and B in shared memory.
    stages: usize,
    /// TFLOP/s on an H200 full of such blocks, for [`Tiling::for_shape`].
    rate: usize,
}

impl Tiling {
    /// 64 x 64 elements a warp, the most that registers hold: each element that is read from shared memory serves 64
    /// products. One block fills a multiprocessor.
    pub const LARGE: Self = Tiling { rows: 128, columns: 256, inner: 64, warps: [2, 4], stages: 3, rate: 443 };
    /// The same for a warp in blocks half as large, two on a multiprocessor.
    pub const MEDIUM: Self = Tiling { columns: 128, warps: [2, 2], rate: 426, ..Self::LARGE };
    /// 32 x 64 elements a warp, for matrices that have few tiles.
    pub const SMALL: Self = Tiling { rows: 64, stages: 4, rate: 350, ..Self::MEDIUM };
    /// 32 x 32 elements a warp.
    pub const TINY: Self = Tiling { columns: 64, rate: 297, ..Self::SMALL };

    /// The tiling that is done first, of those that find room: what one multiprocessor has to compute at most, by the rate
    /// of the tiling. `shared_bytes` is what a block may have of shared memory.
    #[must_use]
    pub fn for_shape(rows: usize, columns: usize, multiprocessors: usize, shared_bytes: usize) -> Self {
        let time = |tiling: &Self| {
            let blocks = tiling.blocks(rows, columns).div_ceil(multiprocessors.max(1));
            // In millionths, to be an integer.
            blocks.saturating_mul(tiling.rows * tiling.columns * 1_000_000 / tiling.rate)
        };
        let all = [Self::LARGE, Self::MEDIUM, Self::SMALL, Self::TINY];
        all.into_iter().filter(|tiling| tiling.shared_bytes() <= shared_bytes).min_by_key(time).unwrap_or(Self::TINY)
    }

    /// Bytes of shared memory that a block takes.
    fn shared_bytes(&self) -> usize {
        (self.rows + self.columns) * self.inner * self.stages * 2
    }

    /// Blocks of a launch for so many rows and columns of C.
    #[must_use]
    pub fn blocks(&self, rows: usize, columns: usize) -> usize {
        rows.div_ceil(self.rows).saturating_mul(columns.div_ceil(self.columns))
    }

    /// Rows, columns, and elements of the inner dimension of a tile.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        [self.rows, self.columns, self.inner]
    }

    /// Whether an inner dimension of so many elements is whole steps, and at least one.
    #[must_use]
    pub fn has_whole_steps(&self, inner: usize) -> bool {
        inner > 0 && inner.is_multiple_of(self.inner)
    }

    fn threads(&self) -> usize {
        self.warps[0] * self.warps[1] * 32
    }
}

/// Rows of tiles that are computed together: with as many columns of them at a time, what a wave of blocks reads is near
/// the least.
const GROUP: i32 = 8;

/// Row and column of the block's tile among the tiles of C: down a group of rows first, then along it, so that tiles that
/// are computed at the same time make a square.
#[device]
fn tile_coordinate(tiles: [I32; 2]) -> (I32, I32) {
    let in_group = tiles[1] * GROUP;
    let group = block_id(X) / in_group;
    let rows = (tiles[0] - group * GROUP).min(GROUP);
    let inside = block_id(X) - group * in_group;
    (group * GROUP + inside % rows, inside / rows)
}

/// C = A B; arguments are those of [`super`]. The grid is one block for each tile ([`Tiling::blocks`]), flattened in x.
/// `whole_steps` promises that the inner dimension is a multiple of the tiling's, and not 0.
#[kernel(block = [tiling.threads() as u32, 1, 1])]
pub fn matmul_mma<T: MmaElement, Out: Float>(
    #[comptime] tiling: Tiling,
    #[comptime] vectorized: Vectorized,
    #[comptime] whole_steps: bool,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    c: TensorMut<Out, 2>,
) {
    let Tiling { rows, columns, inner, warps, stages, .. } = tiling;
    let (row, column) = tile_coordinate([divide_up(c.extent(0), rows), divide_up(c.extent(1), columns)]);
    let mma = TiledMma::<MmaSync<16, 8, 16, T>>::new(warps);
    let mut acc = mma.accumulators(rows, columns);

    // Tiles `(m, k)` and `(k, n)`.
    let a_tiles = shared_tensor::<T>("a", swizzled(rows, inner, stages));
    let b_tiles = shared_tensor::<T>("b", swizzled(inner, columns, stages));
    let copy_a = TiledCopy::<T>::rows(CopyAtom::CpAsync, tiling.threads(), inner, CHUNK);
    let copy_b = TiledCopy::<T>::rows(CopyAtom::CpAsync, tiling.threads(), columns, CHUNK);
    let k_steps = divide_up(a.extent(1), inner);
    let fill = |step: I32, stage: I32| {
        // Where there are no parts of steps, what lies beyond the last one is the last once more, and nothing needs a
        // mask along the inner dimension; elsewhere it is zeros.
        let step = if const_expr(whole_steps) { step.min(k_steps - 1) } else { step };
        let mut a_tile = a.tile([rows, inner], (row, step)).vectors(vectorized.a);
        let mut b_tile = b.tile([inner, columns], (step, column)).vectors(vectorized.b);
        if const_expr(whole_steps) {
            a_tile = a_tile.whole_along(1);
            b_tile = b_tile.whole_along(0);
        }
        copy(&copy_a, &copy_a.partition_global(&a_tile), &copy_a.partition_shared(&a_tiles.stage(stage)));
        copy(&copy_b, &copy_b.partition_global(&b_tile), &copy_b.partition_shared(&b_tiles.stage(stage)));
        cp_async_commit();
    };
    let parts =
        |stage: I32| (mma.partition_a(&a_tiles.stage(stage)), mma.partition_b(&b_tiles.stage(stage).transposed()));

    for stage in range_constexpr(stages - 1) {
        fill(I32::from(stage as i32), I32::from(stage as i32));
    }
    cp_async_wait(stages - 2);
    barrier();
    let (a_part, b_part) = parts(I32::from(0));
    let mut a_now = a_part.load(0);
    let mut b_now = b_part.load(0);

    // The stage that is multiplied, and the one that was before: all warps are done with that.
    let mut stage = I32::from(0);
    let mut before = I32::from((stages - 1) as i32);
    for step in range(k_steps) {
        let next = (stage == ((stages - 1) as i32)).select(I32::from(0), stage + 1);
        let ((a_part, b_part), (a_after, b_after)) = (parts(stage), parts(next));
        for k in range_constexpr(a_part.k_steps()) {
            let (a_next, b_next) = if const_expr(k + 1 < a_part.k_steps()) {
                (a_part.load(k + 1), b_part.load(k + 1))
            } else {
                cp_async_wait(stages - 2);
                // The next stage is there for all warps, and all have loaded what they need of this one.
                barrier();
                (a_after.load(0), b_after.load(0))
            };
            if const_expr(k == 0) {
                fill(step + ((stages - 1) as i32), before);
            }
            gemm(&a_now, &b_now, &mut acc);
            a_now = a_next;
            b_now = b_next;
        }
        before = stage;
        stage = next;
    }
    // A block must not end with copies in flight, though nobody reads what they bring.
    cp_async_wait(0);

    let c_tile = c.tile([rows, columns], (row, column)).vectors(vectorized.c);
    if const_expr(vectorized.c == CHUNK && rows <= inner * stages) {
        // Through the memory of B, to leave in rows of 16 bytes.
        barrier();
        let sums = b_tiles.reuse::<Out>(swizzled(rows, columns, 1)).stage(0);
        mma.store_c(&acc, &sums);
        barrier();
        let copy_c = TiledCopy::<Out>::rows(CopyAtom::Registers, tiling.threads(), columns, CHUNK);
        copy(&copy_c, &copy_c.partition_shared(&sums), &copy_c.partition_global(&c_tile));
    } else {
        mma.partition_c(&c_tile).store(&acc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tilings_by_shape() {
        const ROOM: usize = 227 * 1024;
        for (rows, columns, processors, room, wanted) in [
            (8192, 8192, 132, ROOM, Tiling::LARGE),
            (1024, 1024, 132, ROOM, Tiling::SMALL),
            (512, 512, 132, ROOM, Tiling::TINY),
            (1, 1, 132, ROOM, Tiling::TINY),
            (0, 5, 132, ROOM, Tiling::LARGE),
            // A chip of capability 8.6.
            (8192, 8192, 84, 99 * 1024, Tiling::MEDIUM),
            (usize::MAX, usize::MAX, 1, 0, Tiling::TINY),
        ] {
            assert_eq!(Tiling::for_shape(rows, columns, processors, room), wanted, "{rows} x {columns}");
        }
    }
}
