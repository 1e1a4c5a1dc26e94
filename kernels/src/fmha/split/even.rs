//! Parts of equal size where sequences are of unequal length.
//!
//! Parts of each row block alike would leave blocks with short sequences idle while the longest one is read. Here the tiles of all
//! row blocks stand in a line, sequence by sequence, each row block's behind a few units for what it costs beside them, and every
//! block of the grid takes a share of the line: the end of one row block, some whole ones, and the beginning of another. What it
//! has of a row block is a part, and goes to a place of its own; the joining kernel adds those of a row block in their
//! order. Lengths are known to the device alone, so that each block finds its place in the line by itself.

use lacewing_core::prelude::*;

use super::super::hopper::{
    Consumer, HopperGeometry, Sizes, Span, Sums, Supply, WARPGROUP, Work, attend, bring, divide, end_turns, start_turns,
};
use super::{Destination, Place, load_queries, store_sums, visible_tiles};

/// What a row block costs beside its tiles, in tiles: its rows, the first and the last product, and its sums.
pub(super) const OVERHEAD: usize = 2;

/// Registers of a producer's and a consumer's thread: a producer keeps its place in the line beside what
/// [`HopperGeometry::registers`] is for, where rows are packed for the mask too.
fn registers(geometry: &HopperGeometry) -> (u32, u32) {
    match geometry.consumers {
        1 if geometry.resident() == 2 => (40, 216),
        1 => (40, 240),
        _ => geometry.registers(),
    }
}

/// The tiles of all row blocks, one behind the other.
#[derive(Clone, Copy)]
struct Line {
    kv_len: Tensor<I32, 1>,
    seqlen_kv: I32,
    /// Row blocks of a sequence.
    row_blocks: Uniform<I32>,
    /// Keys of a tile.
    block_n: usize,
}

impl Line {
    /// Valid keys of a sequence, and how many tiles they make; none behind the last sequence.
    #[device]
    fn keys(&self, sequence: I32) -> (I32, I32) {
        let there = sequence < self.kv_len.extent(0);
        // A length that is no length must not lead out of K.
        let keys = self.kv_len.at(sequence).load_if(there, I32::from(0)).max(0).min(self.seqlen_kv);
        let block_n = self.block_n as i32;
        (keys, divide(keys + (block_n - 1), I32::from(block_n)).0)
    }

    /// Units that a sequence takes of the line.
    #[device]
    fn units(&self, sequence: I32) -> I32 {
        let (_, tiles) = self.keys(sequence);
        let there = sequence < self.kv_len.extent(0);
        there.select((tiles + (OVERHEAD as i32)) * self.row_blocks, I32::from(0))
    }

    /// Units of all sequences. The whole warp calls it.
    #[device]
    fn total(&self) -> I32 {
        let mut units = I32::from(0);
        for first in range(0, self.kv_len.extent(0), 32) {
            units += self.units(first + lane_id());
        }
        reduce_warp(units, |a, b| a + b)
    }

    /// The place of a unit that is in the line. The whole warp calls it.
    #[device]
    fn walk(&self, unit: Uniform<I32>) -> Walk {
        let lane = lane_id();
        let (mut sequence, mut before, mut behind) = (I32::from(0), I32::from(0), I32::from(0));
        for first in range(0, self.kv_len.extent(0), 32) {
            let units = self.units(first + lane);
            let mut up_to = units;
            for distance in constexpr([1, 2, 4, 8, 16]) {
                let below = shfl_up(up_to, distance as u32);
                up_to += (lane >= distance).select(below, I32::from(0));
            }
            let start = behind + up_to - units;
            let found = ballot((start <= *unit) & (*unit < start + units));
            let its_lane = found.trailing_zeros() & 31;
            let its_start = shfl_idx(start, its_lane);
            sequence = (found != 0).select(first + its_lane, sequence);
            before = (found != 0).select(its_start, before);
            behind += shfl_idx(up_to, 31);
        }
        let (keys, tiles) = self.keys(sequence);
        let tiles = uniform(tiles);
        let a_row_block = tiles + (OVERHEAD as i32);
        let before = uniform(before);
        let row_block = uniform(divide(*(unit - before), *a_row_block).0);
        let start = before + row_block * a_row_block;
        Walk { unit, start, sequence: uniform(sequence), row_block, keys: uniform(keys), tiles }
    }
}

/// A place in the line.
#[derive(Clone, Copy, Carried)]
struct Walk {
    unit: Uniform<I32>,
    /// The first unit of the row block that it belongs to.
    start: Uniform<I32>,
    sequence: Uniform<I32>,
    /// The row block's number in its sequence.
    row_block: Uniform<I32>,
    /// Valid keys of the sequence.
    keys: Uniform<I32>,
    /// Tiles that they make.
    tiles: Uniform<I32>,
}

impl Walk {
    /// Where the next row block begins.
    #[device]
    fn next(&self, line: &Line) -> Walk {
        let mut next = *self;
        next.start = self.start + self.tiles + (OVERHEAD as i32);
        next.unit = next.start;
        next.row_block = self.row_block + 1;
        if next.row_block == line.row_blocks {
            next.row_block = Uniform::from(0);
            next.sequence = self.sequence + 1;
            let (keys, tiles) = line.keys(*next.sequence);
            next.keys = uniform(keys);
            next.tiles = uniform(tiles);
        }
        next
    }
}

/// What a block has of a row block.
#[derive(Clone, Copy)]
struct Piece {
    work: Work,
    place: Place,
    /// Tiles of the part, seen or not.
    part: Span,
    /// Those of them that some row sees.
    seen: Span,
    /// The row block's number.
    number: Uniform<I32>,
}

/// What a share that ends at `end` has of the row block at `walk`.
#[device]
fn piece_of(geometry: &HopperGeometry, sizes: &Sizes, rows: I32, line: &Line, walk: Walk, end: Uniform<I32>) -> Piece {
    let first_tile = walk.start + (OVERHEAD as i32);
    let part = Span { begin: (walk.unit - first_tile).max(0), end: (end - first_tile).min(walk.tiles) };
    let (head, row_block) = divide(*walk.row_block, sizes.row_blocks);
    let first_row = row_block * (geometry.block_m() as i32);
    let tiles = visible_tiles(geometry, sizes, rows, first_row, *walk.keys);
    let work = Work { first_row, head, batch: *walk.sequence, keys: *walk.keys, tiles };
    let number = walk.sequence * line.row_blocks + walk.row_block;
    // No two parts have one sum: from one to the next in the line, one of both numbers grows.
    let slot = number + uniform(block_id(X));
    let place = Place {
        rows,
        heads_per_kv: sizes.packed.unwrap_or(I32::from(1)),
        part: *slot,
        head: I32::from(0),
        above: first_row,
    };
    Piece { work, place, part, seen: Span { end: part.end.min(uniform(tiles)), ..part }, number }
}

/// Attention of every row to a part of its keys, as [`super::fmha_fwd_hopper_part`], with the tiles of all row blocks in shares
/// of equal size, one for each block of the grid, which is flattened in x. For G blocks, B sequences and N row blocks of M rows (or
/// all R packed rows, where these are fewer), `partial_o` is `[G + B N, 1, M, D]` and `partial_weights` `[G + B N, 1, M, 2]`, and
/// `edges`, `[B N, 2]`, gets the first part of each row block and the one behind its last.
#[kernel(block = [geometry.threads(), 1, 1], min_blocks = geometry.resident() as u32)]
pub fn fmha_fwd_hopper_even<T: MmaElement>(
    #[comptime] geometry: HopperGeometry,
    q: Tensor<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    partial_o: TensorMut<F32, 4>,
    partial_weights: TensorMut<F32, 4>,
    edges: TensorMut<I32, 2>,
    heads_per_kv: I32,
    seqlen_kv: I32,
    scale: F32,
) {
    let (head_dim, block_n, consumers) = (geometry.head_dim, geometry.block_n, geometry.consumers);
    let block_m = geometry.block_m();
    let rows = q.extent(2) * heads_per_kv;
    let (row_blocks, _) = divide(rows + (block_m as i32 - 1), I32::from(block_m as i32));
    let (heads_kv, _) = divide(q.extent(1), heads_per_kv);
    let packed = Some(heads_per_kv);
    let sizes = Sizes { seqlen_q: q.extent(2), seqlen_kv, heads: heads_kv, row_blocks, group: I32::from(1), packed };
    let to = Destination::<T>::Parts { o: partial_o, weights: partial_weights };

    let q_tile = SwizzledTile::<T>::new("q", block_m, head_dim);
    let k_ring = SwizzledRing::<T>::new("k", geometry.stages, block_n, head_dim);
    let v_ring = SwizzledRing::<T>::new("v", geometry.stages, block_n, head_dim);
    let mut setup = BarrierSetup::new();
    let keys = Pipeline::new(&mut setup, "keys", geometry.stages, consumers);
    let values = Pipeline::new(&mut setup, "values", geometry.stages, consumers);
    let boundary = setup.mbarrier("boundary", 1);
    let supply = Supply { k, v, k_ring, v_ring, keys, values, soon: None };

    let line = Line { kv_len, seqlen_kv, row_blocks: uniform(row_blocks * heads_kv), block_n };
    // The first shares have a unit more where units do not go round.
    let (share, rest) = divide(line.total(), grid_dim(X));
    let block = block_id(X);
    let begin = uniform(share * block + block.min(rest));
    let end = begin + uniform(share + (block < rest).select(I32::from(1), I32::from(0)));
    let start = line.walk(begin);
    setup.finish();

    let (producer_registers, consumer_registers) = registers(&geometry);
    let [producer, consumer] = warpgroup_roles([(1, producer_registers), (consumers, consumer_registers)]);
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            boundary.arrive();
            let (mut walk, mut at) = (start, keys.start());
            while walk.unit < end {
                let Piece { work, seen, .. } = piece_of(&geometry, &sizes, rows, &line, walk, end);
                if seen.begin < seen.end {
                    at = bring(&supply, &geometry, work.batch, work.head, seen, at, || {});
                }
                walk = walk.next(&line);
            }
        }
    } else {
        consumer.begin();
        let c = Consumer::new(&geometry, consumer.number(), q_tile, &supply, boundary, scale);
        let first_thread = thread_id(X) == WARPGROUP as i32;
        start_turns(&c, &geometry);
        let (mut walk, mut at) = (start, keys.start());
        while walk.unit < end {
            let Piece { work, place, part, seen, number } = piece_of(&geometry, &sizes, rows, &line, walk, end);
            // A row block without keys has no parts, and whoever has its first unit says so.
            let none = (walk.tiles == 0) & (walk.unit == walk.start);
            let has_first = (part.begin == 0) & (part.end > 0);
            let has_last = (part.end == walk.tiles) & (part.end > part.begin);
            let slot = none.select(I32::from(0), place.part);
            edges.at((number, 0)).store_if(first_thread & (none | has_first), slot);
            edges.at((number, 1)).store_if(first_thread & (none | has_last), none.select(slot, slot + 1));
            if seen.begin < seen.end {
                load_queries(q, &c, &geometry, work, place, true);
                let (sums, next) = attend(&c, &geometry, &sizes, work, seen, None, at);
                at = next;
                store_sums(to, &c, work, place, &sums);
            } else if part.begin < part.end {
                store_sums(to, &c, work, place, &Sums::none(head_dim));
            }
            walk = walk.next(&line);
        }
        end_turns(&c, &geometry);
    }
}
