//! The last row blocks of a launch without a mask, shared out over all blocks of the grid.
//!
//! Row blocks are all of the same length then, and where their number is no multiple of the grid's blocks, some of these would
//! have nothing to do while others work on the last ones. So the tiles of the last row blocks are put in a line, and every block
//! takes an equal share of that line: the end of one row block, and the beginning of the next. Whoever attends to a
//! part of a row block leaves its sums in global memory, and who comes last joins all parts of it, in their order, so that
//! results do not depend on who that is. Nobody waits.
//!
//! M. Osama et al., "Stream-K" (2023), for attention.

use lacewing_core::prelude::*;

use super::span::Sums;
use super::work::{Handover, WORK_WORDS, divide, rows_at, work_at};
use super::{HopperGeometry, Sizes, WARPGROUP, attend_to_all, half_of, this_thread};

/// Tiles that each block must be spared, to be worth what cutting and joining costs.
const LEAST_SAVED: usize = 16;
/// Head dimension from which it is worth it.
const LEAST_HEAD_DIM: usize = 128;

/// Which row blocks are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Row blocks that are not.
    pub whole: usize,
    /// The last row blocks, which are.
    pub row_blocks: usize,
    /// Tiles of a block's share.
    pub tiles: usize,
    /// Blocks of the grid.
    pub blocks: usize,
}

impl Shares {
    /// For `row_blocks` row blocks of `seqlen_kv` keys on as many blocks as there are multiprocessors; `None` where row blocks go
    /// round, or too little is saved.
    pub fn choose(
        geometry: &HopperGeometry,
        row_blocks: usize,
        seqlen_kv: usize,
        multiprocessors: usize,
    ) -> Option<Self> {
        let tiles = seqlen_kv.div_ceil(geometry.block_n);
        let able = !geometry.causal && geometry.head_dim >= LEAST_HEAD_DIM;
        Self::out_of(geometry, row_blocks, seqlen_kv, multiprocessors)
            .filter(|shares| able && shares.tiles + LEAST_SAVED <= tiles)
    }

    /// [`Shares::choose`], however little is saved: `None` where row blocks go round, or there are no more than blocks.
    pub fn out_of(geometry: &HopperGeometry, row_blocks: usize, seqlen_kv: usize, blocks: usize) -> Option<Self> {
        let rest = row_blocks.checked_rem(blocks).filter(|rest| *rest > 0 && row_blocks > blocks)?;
        let all = rest.checked_mul(seqlen_kv.div_ceil(geometry.block_n))?;
        let share = all.div_ceil(blocks);
        // The kernel counts all tiles that are shared out, and a share from each of them on.
        i32::try_from(all.checked_add(share)?).ok()?;
        Some(Shares { whole: row_blocks - rest, row_blocks: rest, tiles: share, blocks })
    }

    /// Extents of the tensor of partial sums: a row for each part.
    pub fn partial(&self, geometry: &HopperGeometry) -> [usize; 2] {
        [self.blocks + self.row_blocks, geometry.consumers * elements_of_sums(geometry)]
    }

    /// How many counters of parts that are done there are.
    pub fn counters(&self, geometry: &HopperGeometry) -> usize {
        self.row_blocks * geometry.consumers
    }
}

/// Elements that a thread writes and reads at once: 16 bytes.
const VECTOR: usize = 4;
/// The same of all threads of a warpgroup.
const ALL_VECTORS: usize = WARPGROUP * VECTOR;

/// Elements of a warpgroup's sums: vectors of its threads side by side, of which each has those of sums of values, and one for
/// its references and sums of weights.
fn elements_of_sums(geometry: &HopperGeometry) -> usize {
    (geometry.head_dim / 2 / VECTOR + 1) * ALL_VECTORS
}

/// The same on the device.
#[derive(Clone, Copy)]
pub(super) struct Sharing {
    /// [`Shares::partial`].
    pub(super) partial: TensorMut<F32, 2>,
    /// How many parts of a row block are done, for each consumer warpgroup; zeros before and after.
    pub(super) done: TensorMut<I32, 1>,
    /// Row blocks that are not shared out.
    pub(super) whole: I32,
    /// Row blocks that are.
    pub(super) row_blocks: I32,
    /// Tiles of a block's share.
    pub(super) tiles: I32,
}

/// A part of a row block that is shared out.
#[derive(Clone, Copy, Carried)]
pub(super) struct Part {
    /// Its first tile.
    pub(super) begin: I32,
    /// Number of the row block among those that are shared out; negative where the block has it whole.
    row_block: I32,
    /// Number of the part among all: where its sums go.
    number: I32,
}

#[device]
pub(super) fn part_in(from: &Handover, at: Cursor) -> Part {
    let words = from.words.at(at.stage() * (WORK_WORDS as i32) + 4).load_vec::<4>();
    Part { begin: words.get(1), row_block: words.get(2), number: words.get(3) }
}

/// Tiles of a whole row block.
#[device]
fn tiles_of_all(geometry: &HopperGeometry, sizes: &Sizes) -> I32 {
    divide(sizes.seqlen_kv + (geometry.block_n as i32 - 1), I32::from(geometry.block_n as i32)).0
}

/// What the scheduling thread does: hands over whole row blocks in turn, then the block's share.
#[device]
pub(super) fn hand_over_shares(
    to: &Handover,
    geometry: &HopperGeometry,
    sizes: &Sizes,
    sharing: &Sharing,
    kv_len: Tensor<I32, 1>,
) {
    let tiles = tiles_of_all(geometry, sizes);
    let (mut number, blocks) = (block_id(X), grid_dim(X));
    let line = sharing.row_blocks * tiles;
    let mut from = (number * sharing.tiles).min(line);
    let end = (from + sharing.tiles).min(line);
    wait_for_previous_grid();
    // A shorter sequence's row blocks are not cut: who has the first tile has all.
    let (cut, into) = divide(from, tiles);
    if into > 0 {
        if work_at(rows_at(sharing.whole + cut, geometry, sizes), geometry, sizes, kv_len).tiles < tiles {
            from = end.min((cut + 1) * tiles);
        }
    }
    let mut slot = to.slots.start();
    let mut more = Bool::from(true);
    while more {
        to.slots.wait_empty(slot);
        let is_whole = number < sharing.whole;
        let (row_block, begin) = divide(from, tiles);
        let index = is_whole.select(number, sharing.whole + row_block.min(sharing.row_blocks - 1));
        let mut work = work_at(rows_at(index, geometry, sizes), geometry, sizes, kv_len);
        let stop = tiles.min(begin + end - from);
        let mut part = Part { begin: 0.into(), row_block: (-1).into(), number: 0.into() };
        if !is_whole & (work.tiles == tiles) & (stop - begin < tiles) {
            // Every bound between row blocks or between shares begins a part.
            part = Part { begin, row_block, number: block_id(X) + row_block };
            work.tiles = stop;
        }
        more = is_whole | (from < end);
        work.tiles = more.select(work.tiles, I32::from(0));
        let first = slot.stage() * (WORK_WORDS as i32);
        to.words.at(first).store_vec(Vector::from([work.tiles, work.keys, work.first_row, work.head]));
        to.words.at(first + 4).store_vec(Vector::from([work.batch, part.begin, part.row_block, part.number]));
        to.slots.commit(slot);
        from = is_whole.select(from, from + stop - begin);
        number += blocks;
        slot.advance();
    }
}

/// Leaves a part's sums to whoever comes last, and gives whether that is this warpgroup: then `sums` become those of all parts.
/// `flags` has a word for each warpgroup.
#[device]
pub(super) fn join(
    sums: &mut Sums,
    geometry: &HopperGeometry,
    sizes: &Sizes,
    sharing: &Sharing,
    part: Part,
    number: Uniform<I32>,
    flags: SharedSlice<I32>,
    scale_log2: F32,
) -> Uniform<Bool> {
    let mut last = Uniform::<I32>::from(1);
    if uniform(part.row_block) >= 0 {
        let together = named_barriers(geometry.consumers + 2, geometry.consumers, WARPGROUP).at(number);
        let tiles = tiles_of_all(geometry, sizes);
        let first = divide(part.row_block * tiles, sharing.tiles).0;
        let parts = divide((part.row_block + 1) * tiles - 1, sharing.tiles).0 - first + 1;
        let (vectors, thread) = (geometry.head_dim / 2 / VECTOR, this_thread() % (WARPGROUP as i32));
        // The thread's first vector. Others are counted from there, so that their addresses are computed where they are used, and
        // take no registers from the tiles.
        let column = thread * (VECTOR as i32) + number * (elements_of_sums(geometry) as i32);
        for i in range_constexpr(vectors) {
            let four = [sums.acc[4 * i], sums.acc[4 * i + 1], sums.acc[4 * i + 2], sums.acc[4 * i + 3]];
            sharing
                .partial
                .at((part.number, column + (i * ALL_VECTORS) as i32))
                .store_vec(Vector::<F32, VECTOR>::from(four));
        }
        let weights = [sums.max[0], sums.max[1], sums.total[0], sums.total[1]];
        sharing
            .partial
            .at((part.number, column + (vectors * ALL_VECTORS) as i32))
            .store_vec(Vector::<F32, VECTOR>::from(weights));
        fence(Scope::Device);
        together.sync();
        let counter = sharing.done.at(part.row_block * (geometry.consumers as i32) + number);
        if thread == 0 {
            let before = counter.atomic_add_with(I32::from(1), Ordering::AcqRel, Scope::Device);
            // As it was before the launch.
            counter.store_if(before == parts - 1, I32::from(0));
            flags.at(number).store(before);
        }
        together.sync();
        last = (uniform(flags.at(number).load()) == uniform(parts - 1)).select(1.into(), 0.into());
        if last == 1 {
            fence(Scope::Device);
            let mut max = [F32::from(f32::NEG_INFINITY); 2];
            for behind in range(0, parts) {
                let at = first + part.row_block + behind;
                let of =
                    sharing.partial.at((at, column + (vectors * ALL_VECTORS) as i32)).load_vec::<VECTOR>().to_array();
                for half in range_constexpr(2) {
                    max[half] = max[half].maxnum(of[half]);
                }
            }
            let mut all = Sums { max, total: [F32::from(0.0); 2], acc: Accumulator::zeros(geometry.head_dim) };
            for behind in range(0, parts) {
                let at = first + part.row_block + behind;
                let of =
                    sharing.partial.at((at, column + (vectors * ALL_VECTORS) as i32)).load_vec::<VECTOR>().to_array();
                let mut factors = max;
                for half in range_constexpr(2) {
                    factors[half] = ((of[half] - max[half]) * scale_log2).exp2_fast();
                    all.total[half] = factors[half].fma(of[2 + half], all.total[half]);
                }
                for i in range_constexpr(vectors) {
                    let four =
                        sharing.partial.at((at, column + (i * ALL_VECTORS) as i32)).load_vec::<VECTOR>().to_array();
                    for j in range_constexpr(VECTOR) {
                        all.acc[4 * i + j] = factors[half_of(j)].fma(four[j], all.acc[4 * i + j]);
                    }
                }
            }
            sums.max = all.max;
            sums.total = all.total;
            sums.acc = all.acc;
        }
    }
    last == 1
}

/// [`super::fmha_fwd_hopper`] without a mask, where the last `row_blocks` row blocks are shared out ([`Shares`]), `tiles` tiles of keys
/// to each block of the grid; the first `whole` are not. The grid has [`Shares::blocks`] blocks in x. `counter` holds zeros, before and after: how many parts of
/// a row block are done, for each consumer warpgroup.
#[kernel(block = [geometry.threads(), 1, 1], min_blocks = 1)]
pub fn fmha_fwd_hopper_shared<T: MmaElement>(
    #[comptime] geometry: HopperGeometry,
    q: TensorMap<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMap<T, 4>,
    lse: TensorMut<F32, 3>,
    counter: TensorMut<I32, 1>,
    partial: TensorMut<F32, 2>,
    heads_per_kv: I32,
    seqlen_kv: I32,
    whole: I32,
    row_blocks: I32,
    tiles: I32,
    scale: F32,
) {
    let sharing = Some(Sharing { partial, done: counter, whole, row_blocks, tiles });
    let group = I32::from(1);
    attend_to_all(&geometry, q, k, v, kv_len, o, lse, counter, heads_per_kv, seqlen_kv, group, scale, sharing);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the 132 multiprocessors of an H200: 16384 tokens, 2048 columns of all heads.
    #[test]
    fn row_blocks_are_shared_out_where_that_saves_enough() {
        let shares = |head_dim: usize, causal, seqlen: usize| {
            let tiles = HopperGeometry::new(head_dim, causal, seqlen, seqlen).unwrap();
            let row_blocks = 16384 / tiles.block_m() * 2048 / head_dim;
            Shares::choose(&tiles, row_blocks, seqlen, 132)
                .map(|shares| (shares.whole, shares.row_blocks, shares.tiles))
        };
        assert_eq!(shares(256, false, 16384), Some((924, 100, 194)));
        assert_eq!(shares(256, false, 8192), Some((924, 100, 97)));
        assert_eq!(shares(256, false, 4096), None);
        assert_eq!(shares(128, false, 16384), Some((1980, 68, 66)));
        assert_eq!(shares(256, true, 16384), None);
        assert_eq!(shares(64, false, 16384), None);
        // All go round, or there are no more than blocks.
        let tiles = HopperGeometry::new(256, false, 16384, 16384).unwrap();
        for row_blocks in [0, 100, 132, 264] {
            assert_eq!(Shares::choose(&tiles, row_blocks, 16384, 132), None);
        }
        // Tiles that 32 bits do not count.
        assert_eq!(Shares::choose(&tiles, 263, 1 << 30, 132), None);
    }
}
