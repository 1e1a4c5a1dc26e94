//! `fmha_fwd` for Hopper where there are few rows and many keys: decoding, and prompts in chunks.
//!
//! Row blocks of [`super::hopper`] alone would leave most of the chip idle then. Here the keys of each row block are cut into
//! parts, one for each block of the grid, and a second kernel joins what the parts give: `O = sum of 2^(m_p - m) O_p` over the
//! sum of weights, where each part has its own reference `m_p` and m is the largest. It adds in the order of the parts, so that
//! results do not depend on which block was first; and it is launched to overlap the first kernel's end.
//!
//! Query heads that read one key head share its keys, and so they share blocks: rows are packed, query by query, each with its
//! heads. What a token of decoding costs is reading its keys and values once; one consumer warpgroup keeps up with that.
//!
//! T. Dao et al., "Flash-Decoding for long-context inference" (2023); the steps are those of [`super::hopper`].

mod even;

use lacewing_core::prelude::*;
use lacewing_runtime::{Error, LaunchStats};

pub use self::even::fmha_fwd_hopper_even;

use super::hopper::{
    CHUNK, Consumer, HopperGeometry, ROWS, Sizes, Span, Sums, Supply, WARPGROUP, Work, attend, bring, divide,
    end_turns, first_row_of, query_of, start_turns, this_thread,
};
use super::{LN_2, causal_limit};
use crate::reference::AttentionShape;

/// Keys below which a part is not worth a block of its own.
const KEYS_OF_A_PART: usize = 256;
/// Parts beyond which joining them takes longer than reading them.
const MOST_PARTS: usize = 256;

/// Refuses a number of parts that is too large.
pub(super) fn check_count(parts: usize) -> Result<(), Error> {
    if parts > MOST_PARTS {
        return Err(Error::Setting(format!("{parts} parts of the keys: there are at most {MOST_PARTS}")));
    }
    Ok(())
}

impl HopperGeometry {
    /// The tiles for `rows` packed rows of one key head; `None` for a head dimension that Hopper's kernels do not have.
    /// Up to 64 rows, reading keys is all: one consumer warpgroup, and as many stages as fit. Where two blocks fit on a
    /// multiprocessor, stages are as many as that leaves room for.
    pub fn for_parts(head_dim: usize, causal: bool, rows: usize) -> Option<Self> {
        let tiles = |consumers, block_n, stages| Some(HopperGeometry { head_dim, causal, consumers, block_n, stages });
        match (head_dim, rows <= ROWS) {
            (64, true) => tiles(1, 128, 3),
            (96, true) => tiles(1, 64, 4),
            (128, true) => tiles(1, 64, 3),
            (192, true) => tiles(1, 64, 4),
            (256, true) => tiles(1, 64, 3),
            (64, false) => tiles(2, 128, 3),
            (96 | 128, false) => tiles(2, 128, 2),
            (192, false) => tiles(2, 96, 2),
            (256, false) => tiles(2, 64, 2),
            _ => None,
        }
    }

    /// Blocks that a multiprocessor runs at once: with one consumer two, where shared memory is enough.
    pub(super) fn resident(&self) -> usize {
        if self.consumers == 1 && self.head_dim <= 128 { 2 } else { 1 }
    }
}

/// How keys are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The tiles.
    pub(super) tiles: HopperGeometry,
    /// Parts of the keys of a row block.
    pub(super) parts: usize,
}

/// The tiles for even parts of all keys, and how many blocks take one; `None` for one sequence, whose row blocks are alike anyway,
/// where the kernel does not have the head dimension, and for more tiles than it can count.
pub(super) fn even_parts(
    shape: &AttentionShape,
    causal: bool,
    multiprocessors: usize,
) -> Option<(HopperGeometry, usize)> {
    let tiles = Cut::into_parts(shape, causal, 1)?.tiles;
    let row_blocks = row_blocks(shape, &tiles);
    let units = row_blocks.saturating_mul(shape.seqlen_kv.div_ceil(tiles.block_n).saturating_add(even::OVERHEAD));
    let useful = row_blocks.saturating_mul(shape.seqlen_kv.div_ceil(KEYS_OF_A_PART));
    let blocks = multiprocessors.saturating_mul(tiles.resident()).min(useful).max(1);
    (shape.batch > 1 && i32::try_from(units).is_ok()).then_some((tiles, blocks))
}

/// Row blocks of a launch: packed rows of one key head, for each key head of each sequence.
pub(super) fn row_blocks(shape: &AttentionShape, tiles: &HopperGeometry) -> usize {
    let rows = shape.seqlen_q.saturating_mul(shape.heads_q / shape.heads_kv.max(1));
    rows.div_ceil(tiles.block_m()).saturating_mul(shape.heads_kv).saturating_mul(shape.batch)
}

impl Cut {
    /// Into so many parts; `None` where the kernel does not have the head dimension.
    pub(super) fn into_parts(shape: &AttentionShape, causal: bool, parts: usize) -> Option<Self> {
        let rows = shape.seqlen_q.saturating_mul(shape.heads_q / shape.heads_kv.max(1));
        let tiles = HopperGeometry::for_parts(shape.head_dim, causal, rows)?;
        Some(Cut { tiles, parts: parts.clamp(1, MOST_PARTS) })
    }

    /// As many parts as give each of `multiprocessors` multiprocessors one block, none of them of less than
    /// [`KEYS_OF_A_PART`] keys, and whether that is faster than whole rows: always where the packed rows of a key head fit into one
    /// block of 64, and else where there are two parts or more. Two blocks to a multiprocessor are for what is left over.
    pub(super) fn choose(shape: &AttentionShape, causal: bool, multiprocessors: usize) -> Option<Self> {
        let whole = Cut::into_parts(shape, causal, 1)?;
        let fill = multiprocessors / row_blocks(shape, &whole.tiles).max(1);
        let parts = fill.min(shape.seqlen_kv.div_ceil(KEYS_OF_A_PART)).clamp(1, MOST_PARTS);
        (parts > 1 || whole.tiles.consumers == 1).then_some(Cut { parts, ..whole })
    }
}

/// Where a block's sums go.
#[derive(Clone, Copy)]
enum Destination<T: MmaElement> {
    /// Beside those of the other parts.
    Parts {
        /// `[P, B Hkv, R, D]`: sums of values by weights.
        o: TensorMut<F32, 4>,
        /// `[P, B Hkv, R, 2]`: the score that has weight 1, and the sum of weights.
        weights: TensorMut<F32, 4>,
    },
    /// To the outputs, as the block has all keys.
    Whole {
        /// `[B, Hq, Sq, D]`.
        o: TensorMut<T, 4>,
        /// `[B, Hq, Sq]`.
        lse: TensorMut<F32, 3>,
    },
}

/// The sizes of a launch, and the block's place in it.
#[derive(Clone, Copy)]
struct Place {
    /// Packed rows of a key head.
    rows: I32,
    heads_per_kv: I32,
    part: I32,
    /// Number of the key head among all sequences', where parts have room for each.
    head: I32,
    /// Packed rows that stand before those that parts have room for.
    above: I32,
}

impl Place {
    /// Query head and query of a packed row.
    #[device]
    fn row(&self, work: Work, row: I32) -> (I32, I32) {
        let (query, member) = divide(row, self.heads_per_kv);
        (work.head * self.heads_per_kv + member, query)
    }
}

/// Tiles of keys that some row of a row block sees, of the `valid` keys of its sequence.
#[device]
fn visible_tiles(geometry: &HopperGeometry, sizes: &Sizes, rows: I32, first_row: I32, valid: I32) -> I32 {
    let mut visible = valid;
    if const_expr(geometry.causal) {
        let last_query = query_of((first_row + geometry.block_m() as i32).min(rows) - 1, sizes);
        visible = valid.min(causal_limit(last_query, sizes.seqlen_q, sizes.seqlen_kv)).max(0);
    }
    let block_n = geometry.block_n as i32;
    divide(visible + (block_n - 1), I32::from(block_n)).0
}

/// Brings a warpgroup's rows of Q to its tile: rows are packed, so that they are not neighbours for a tensor copy. Rows
/// beyond the last become zeros. `again` says that others may be there, which some warp of the group still multiplies.
#[device]
fn load_queries<T: MmaElement>(
    q: Tensor<T, 4>,
    c: &Consumer<T>,
    geometry: &HopperGeometry,
    work: Work,
    place: Place,
    again: bool,
) {
    let together = named_barriers(geometry.consumers + 2, geometry.consumers, WARPGROUP).at(c.number);
    let chunks = geometry.head_dim / CHUNK;
    // In a loop, places of all chunks would stay in registers.
    let thread = if const_expr(again) { this_thread() } else { thread_id(X) } % (WARPGROUP as i32);
    let mut loaded = Vec::new();
    for round in range_constexpr(ROWS * chunks / WARPGROUP) {
        let (row, chunk) = divide(thread + ((round * WARPGROUP) as i32), I32::from(chunks as i32));
        let packed = work.first_row + c.number * (ROWS as i32) + row;
        let (head, query) = place.row(work, packed);
        let from = q.at((work.batch, head, query, chunk * (CHUNK as i32)));
        let values = from.load_vec_if(packed < place.rows, Vector::<T, CHUNK>::splat(T::from(0.0)));
        loaded.push((row, chunk, values));
    }
    if const_expr(again) {
        together.sync();
    }
    // Behind all loads, so that nobody waits for one after the other.
    for (row, chunk, values) in constexpr(loaded) {
        c.q.at((row, chunk * (CHUNK as i32))).store_vec(values);
    }
    fence_proxy(ProxyFence::AsyncShared);
    together.sync();
}

/// Writes what a warpgroup has summed up.
#[device]
fn store_sums<T: MmaElement>(to: Destination<T>, c: &Consumer<T>, work: Work, place: Place, sums: &Sums) {
    let acc = &sums.acc;
    let thread = this_thread();
    let (first, column) = (thread % 4 == 0, thread % 4 * 2);
    for half in range_constexpr(2) {
        let row = work.first_row + first_row_of(thread, c.number) + ((8 * half) as i32);
        let inside = row < place.rows;
        match to {
            Destination::Parts { o, weights } => {
                let pair = Vector::<F32, 2>::from([sums.max[half], sums.total[half]]);
                weights.at((place.part, place.head, row - place.above, 0)).store_vec_if(inside & first, pair);
                for group in range_constexpr(acc.len() / 4) {
                    let at = 4 * group + 2 * half;
                    let to = o.at((place.part, place.head, row - place.above, column + ((8 * group) as i32)));
                    to.store_vec_if(inside, Vector::<F32, 2>::from([acc[at], acc[at + 1]]));
                }
            }
            Destination::Whole { o, lse } => {
                let (inverse, log) = sums.finish(half, c.scale_log2);
                let (head, query) = place.row(work, row);
                lse.at((work.batch, head, query)).store_if(inside & first, log);
                for group in range_constexpr(acc.len() / 4) {
                    let at = 4 * group + 2 * half;
                    let pair = Vector::<F32, 2>::from([acc[at] * inverse, acc[at + 1] * inverse]);
                    o.at((work.batch, head, query, column + ((8 * group) as i32)))
                        .store_vec_if(inside, pair.cast::<T>());
                }
            }
        }
    }
}

/// Attention of every row to a part of its keys. Q is `[B, Hq, Sq, D]`, K and V `[B, Hkv, Sk, D]`; packed row `r` of key head
/// `h` is query `r / heads_per_kv` of query head `h heads_per_kv + r % heads_per_kv`. Keys from `kv_len[b]` on are padding.
/// `partial_o` is `[P, B Hkv, R, D]` and `partial_weights` `[P, B Hkv, R, 2]` for P parts and R packed rows; the grid is one
/// block for each part, row block and key head, flattened in x with parts innermost.
#[kernel(block = [geometry.threads(), 1, 1], min_blocks = geometry.resident() as u32)]
pub fn fmha_fwd_hopper_part<T: MmaElement>(
    #[comptime] geometry: HopperGeometry,
    q: Tensor<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    partial_o: TensorMut<F32, 4>,
    partial_weights: TensorMut<F32, 4>,
    heads_per_kv: I32,
    seqlen_kv: I32,
    scale: F32,
) {
    let to = Destination::Parts { o: partial_o, weights: partial_weights };
    part_of(&geometry, q, k, v, kv_len, to, partial_o.extent(0), heads_per_kv, seqlen_kv, scale);
}

/// Attention of every row to all its keys, with packed rows as in [`fmha_fwd_hopper_part`]. The grid is one block for each row
/// block and key head, flattened in x.
#[kernel(block = [geometry.threads(), 1, 1], min_blocks = geometry.resident() as u32)]
pub fn fmha_fwd_hopper_packed<T: MmaElement>(
    #[comptime] geometry: HopperGeometry,
    q: Tensor<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    heads_per_kv: I32,
    seqlen_kv: I32,
    scale: F32,
) {
    let to = Destination::Whole { o, lse };
    part_of(&geometry, q, k, v, kv_len, to, I32::from(1), heads_per_kv, seqlen_kv, scale);
}

/// What both kernels do.
#[device]
fn part_of<T: MmaElement>(
    geometry: &HopperGeometry,
    q: Tensor<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    to: Destination<T>,
    parts: I32,
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

    let q_tile = SwizzledTile::<T>::new("q", block_m, head_dim);
    let k_ring = SwizzledRing::<T>::new("k", geometry.stages, block_n, head_dim);
    let v_ring = SwizzledRing::<T>::new("v", geometry.stages, block_n, head_dim);
    let mut setup = BarrierSetup::new();
    let keys = Pipeline::new(&mut setup, "keys", geometry.stages, consumers);
    let values = Pipeline::new(&mut setup, "values", geometry.stages, consumers);
    let boundary = setup.mbarrier("boundary", 1);

    let (index, part) = divide(block_id(X), parts);
    let (head_index, row_block) = divide(index, row_blocks);
    let (batch, head) = divide(head_index, heads_kv);
    let first_row = row_block * (block_m as i32);
    // A length that is no length must not lead out of K.
    let valid = kv_len.at(batch).load().max(0).min(seqlen_kv);
    let tiles = visible_tiles(geometry, &sizes, rows, first_row, valid);
    let work = Work { first_row, head, batch, keys: valid, tiles };
    let place = Place { rows, heads_per_kv, part, head: head_index, above: I32::from(0) };
    // The first parts have a tile more where tiles do not go round.
    let (share, rest) = divide(tiles, parts);
    let begin = uniform(share * part + part.min(rest));
    let end = begin + uniform(share + (part < rest).select(I32::from(1), I32::from(0)));
    let span = Span { begin, end };
    let supply = Supply { k, v, k_ring, v_ring, keys, values, soon: None };
    setup.finish();

    let (producer_registers, consumer_registers) = geometry.registers();
    let [producer, consumer] = warpgroup_roles([(1, producer_registers), (consumers, consumer_registers)]);
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            boundary.arrive();
            if begin < end {
                let _ = bring(&supply, geometry, batch, head, span, keys.start(), || {});
            }
        }
    } else {
        consumer.begin();
        let c = Consumer::new(geometry, consumer.number(), q_tile, &supply, boundary, scale);
        if begin < end {
            load_queries(q, &c, geometry, work, place, false);
            start_turns(&c, geometry);
            let (sums, _) = attend(&c, geometry, &sizes, work, span, None, keys.start());
            store_sums(to, &c, work, place, &sums);
            end_turns(&c, geometry);
        } else {
            store_sums(to, &c, work, place, &Sums::none(head_dim));
        }
    }
}

/// How the joining kernel is compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// Elements of a row of O.
    head_dim: usize,
    /// Groups of threads that share out the parts of one row: 1, 2, 4 or 8.
    groups: usize,
    /// Rows of a row block, where parts have room for one alone and `edges` says which they are.
    block_m: Option<usize>,
}

/// Columns that a thread joins: 16 bytes.
const COLUMNS: usize = 4;
/// Groups of threads in a block.
const GROUPS: usize = 8;
/// Parts of which a thread reads the outputs at once.
const AT_ONCE: usize = 4;

impl Joining {
    /// For head dimensions that are multiples of 16, and so many parts.
    pub fn new(head_dim: usize, parts: usize) -> Self {
        let groups = parts.div_ceil(AT_ONCE).next_power_of_two().min(GROUPS);
        Joining { head_dim, groups, block_m: None }
    }

    /// For what [`fmha_fwd_hopper_even`] gives with such tiles: for about as many parts of a row block.
    pub(super) fn of_even(tiles: &HopperGeometry, parts: usize) -> Self {
        Joining { block_m: Some(tiles.block_m()), ..Joining::new(tiles.head_dim, parts) }
    }

    /// Rows that a block joins.
    pub fn rows(&self) -> usize {
        GROUPS / self.groups
    }

    /// Threads of a group: the row's columns.
    fn width(&self) -> usize {
        self.head_dim / COLUMNS
    }

    fn threads(&self) -> u32 {
        (self.width() * GROUPS) as u32
    }
}

/// A reference, or 0 for a row without a visible key: subtracting that keeps -inf - -inf out.
#[device]
fn finite(max: F32) -> F32 {
    (max == f32::NEG_INFINITY).select(F32::from(0.0), max)
}

/// Joins what [`fmha_fwd_hopper_part`] gave into O `[B, Hq, Sq, D]` and LSE `[B, Hq, Sq]`. The grid is one block for each
/// [`Joining::rows`] packed rows of all key heads, flattened in x.
#[kernel(block = [joining.threads(), 1, 1])]
pub fn fmha_fwd_hopper_join<T: MmaElement>(
    #[comptime] joining: Joining,
    partial_o: Tensor<F32, 4>,
    partial_weights: Tensor<F32, 4>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    heads_per_kv: I32,
    scale: F32,
) {
    join(&joining, partial_o, partial_weights, None, o, lse, heads_per_kv, scale);
}

/// Joins what [`fmha_fwd_hopper_even`] gave, as [`fmha_fwd_hopper_join`].
#[kernel(block = [joining.threads(), 1, 1])]
pub fn fmha_fwd_hopper_join_even<T: MmaElement>(
    #[comptime] joining: Joining,
    partial_o: Tensor<F32, 4>,
    partial_weights: Tensor<F32, 4>,
    edges: Tensor<I32, 2>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    heads_per_kv: I32,
    scale: F32,
) {
    join(&joining, partial_o, partial_weights, Some(edges), o, lse, heads_per_kv, scale);
}

/// What both kernels do.
#[device]
fn join<T: MmaElement>(
    joining: &Joining,
    partial_o: Tensor<F32, 4>,
    partial_weights: Tensor<F32, 4>,
    edges: Option<Tensor<I32, 2>>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    heads_per_kv: I32,
    scale: F32,
) {
    let (groups, width) = (joining.groups as i32, joining.width() as i32);
    let scale_log2 = scale * std::f32::consts::LOG2_E;
    let (heads, rows) = match edges {
        None => (partial_o.extent(1), partial_o.extent(2)),
        Some(_) => (o.extent(0) * divide(o.extent(1), heads_per_kv).0, o.extent(2) * heads_per_kv),
    };
    let (slot, thread) = divide(thread_id(X), I32::from(width));
    let (row_in_block, group) = divide(slot, I32::from(groups));
    let index = block_id(X) * (joining.rows() as i32) + row_in_block;
    let inside = index < heads * rows;
    // Threads beyond the last row go with it, and write nothing.
    let (head_index, row) = divide(index.min(heads * rows - 1), rows);
    let column = thread * (COLUMNS as i32);
    // Where it stands is known before anything is read.
    wait_for_previous_grid();

    // Where the row's parts are, and where it stands in them.
    let (mut first, mut end) = (I32::from(0), partial_o.extent(0));
    let (mut room, mut row_of_room) = (head_index, row);
    if let (Some(edges), Some(block_m)) = (edges, joining.block_m) {
        let block_m = I32::from(block_m as i32);
        let (row_block, row_of_block) = divide(row, block_m);
        let (row_blocks, _) = divide(rows + block_m - 1, block_m);
        let [from, to] = edges.at((head_index * row_blocks + row_block, 0)).load_vec::<2>().to_array();
        (first, end) = (from, to);
        (room, row_of_room) = (I32::from(0), row_of_block);
    }

    // Against the largest reference of the group's parts.
    let mut max = F32::from(f32::NEG_INFINITY);
    for part in range(first + group, end, groups) {
        max = max.maxnum(partial_weights.at((part, room, row_of_room, 0)).load());
    }
    let mut total = F32::from(0.0);
    let mut acc = [F32::from(0.0); COLUMNS];
    for part in range(first + group, end, groups).unroll(AT_ONCE as u32) {
        let [reference, sum] = partial_weights.at((part, room, row_of_room, 0)).load_vec::<2>().to_array();
        let values = partial_o.at((part, room, row_of_room, column)).load_vec::<COLUMNS>();
        let weight = ((reference - finite(max)) * scale_log2).exp2_fast();
        total = weight.fma(sum, total);
        for i in range_constexpr(COLUMNS) {
            acc[i] = weight.fma(values.get(i), acc[i]);
        }
    }

    if const_expr(joining.groups > 1) {
        let slots = shared_array_named::<F32>("outputs", GROUPS * joining.head_dim);
        let of_groups = shared_array_named::<F32>("weights", 2 * GROUPS);
        slots.at(slot * (width * COLUMNS as i32) + column).store_vec(Vector::<F32, COLUMNS>::from(acc));
        if thread == 0 {
            of_groups.at(2 * slot).store_vec(Vector::<F32, 2>::from([max, total]));
        }
        barrier();
        if group == 0 {
            for other in range_constexpr(1, joining.groups) {
                max = max.maxnum(of_groups.at(2 * (slot + other as i32)).load());
            }
            total = F32::from(0.0);
            acc = [F32::from(0.0); COLUMNS];
            for other in range_constexpr(joining.groups) {
                let of = slot + other as i32;
                let [reference, sum] = of_groups.at(2 * of).load_vec::<2>().to_array();
                let values = slots.at(of * (width * COLUMNS as i32) + column).load_vec::<COLUMNS>();
                let weight = ((reference - finite(max)) * scale_log2).exp2_fast();
                total = weight.fma(sum, total);
                for i in range_constexpr(COLUMNS) {
                    acc[i] = weight.fma(values.get(i), acc[i]);
                }
            }
        }
    }

    let empty = total == 0.0;
    let inverse = empty.select(F32::from(0.0), total.rcp_fast());
    for i in range_constexpr(COLUMNS) {
        acc[i] *= inverse;
    }
    let (heads_kv, _) = divide(o.extent(1), heads_per_kv);
    let (batch, head_kv) = divide(head_index, heads_kv);
    let (query, member) = divide(row, heads_per_kv);
    let head = head_kv * heads_per_kv + member;
    let mine = inside & (group == 0);
    o.at((batch, head, query, column)).store_vec_if(mine, Vector::<F32, COLUMNS>::from(acc).cast::<T>());
    let log = max.fma(scale_log2, total.log2_fast()) * LN_2;
    lse.at((batch, head, query)).store_if(mine & (thread == 0), empty.select(F32::from(f32::NEG_INFINITY), log));
}

/// What two launches did, as one.
pub(super) fn together(mut first: LaunchStats, second: LaunchStats) -> LaunchStats {
    first.printed.extend(second.printed);
    first.printed_dropped += second.printed_dropped;
    first.warp_ops += second.warp_ops;
    first.line_costs.extend(second.line_costs);
    first.line_costs.sort_by_key(|line| std::cmp::Reverse(line.cost.saturating_sub(line.least)));
    first.branches.extend(second.branches);
    first.branches.sort_by_key(|branch| std::cmp::Reverse(branch.divergent));
    first.work.extend(second.work);
    first
}

#[cfg(test)]
mod tests {
    use lacewing_core::lower::{EmitOptions, Report};
    use lacewing_core::trace_kernel;
    use rayon::prelude::*;

    use super::super::hopper::tests::{complaints, machine_code_shows};
    use super::*;

    const HEAD_DIMS: [usize; 5] = [64, 96, 128, 192, 256];

    /// As [`super::super::hopper`]'s: the same things cost more than any tuning wins.
    #[test]
    fn the_machine_code_has_nothing_to_complain_of() {
        if !machine_code_shows() {
            return;
        }
        let cases: Vec<_> = HEAD_DIMS
            .into_iter()
            .flat_map(|head_dim| {
                [(head_dim, false, 1), (head_dim, true, 1), (head_dim, false, 65), (head_dim, true, 65)]
            })
            .collect();
        let found: Vec<_> = cases
            .par_iter()
            .flat_map_iter(|(head_dim, causal, rows)| {
                let tiles = HopperGeometry::for_parts(*head_dim, *causal, *rows).unwrap();
                let whole = (*rows == 1).then(|| fmha_fwd_hopper_packed::<BF16>::new(tiles.clone()));
                let found: Vec<_> = complaints(&fmha_fwd_hopper_part::<BF16>::new(tiles.clone()))
                    .into_iter()
                    .chain(complaints(&fmha_fwd_hopper_even::<BF16>::new(tiles.clone())))
                    .chain(whole.iter().flat_map(complaints))
                    .collect();
                found.into_iter().map(move |complaint| format!("{tiles:?}: {complaint}"))
            })
            .collect();
        assert!(found.is_empty(), "{found:#?}");
        let traced = |head_dim| {
            trace_kernel(&fmha_fwd_hopper_join::<BF16>::new(Joining::new(head_dim, 64)), Target::SM_90A).unwrap()
        };
        let of_even = |head_dim| {
            let tiles = HopperGeometry::for_parts(head_dim, false, 1).unwrap();
            let joining = Joining::of_even(&tiles, 4);
            trace_kernel(&fmha_fwd_hopper_join_even::<BF16>::new(joining), Target::SM_90A).unwrap()
        };
        let joins: Vec<_> = HEAD_DIMS
            .into_iter()
            .flat_map(|head_dim| [traced(head_dim), of_even(head_dim)])
            .flat_map(|traced| Report::of(&traced, &EmitOptions::default()).unwrap().complaints())
            .collect();
        assert!(joins.is_empty(), "{joins:#?}");
    }

    /// Two blocks to a multiprocessor where they fit, and no more than there are parts of use; none of one sequence alone.
    #[test]
    fn even_parts_fill_the_chip() {
        let blocks = |batch, seqlen_kv, head_dim| {
            let shape = AttentionShape { batch, heads_q: 16, heads_kv: 2, seqlen_q: 1, seqlen_kv, head_dim };
            even_parts(&shape, false, 132).map(|(_, blocks)| blocks)
        };
        assert_eq!(blocks(8, 32768, 128), Some(264));
        assert_eq!(blocks(8, 32768, 256), Some(132));
        assert_eq!(blocks(3, 1000, 128), Some(24));
        assert_eq!(blocks(1, 32768, 128), None);
        assert_eq!(blocks(8, 32768, 80), None);
    }

    /// On the 132 multiprocessors of an H200.
    #[test]
    fn keys_are_cut_where_row_blocks_leave_the_chip_idle() {
        let cut = |batch, heads_q, heads_kv, seqlen_q, seqlen_kv| {
            let shape = AttentionShape { batch, heads_q, heads_kv, seqlen_q, seqlen_kv, head_dim: 128 };
            Cut::choose(&shape, false, 132).map(|cut| (cut.tiles.consumers, cut.parts))
        };
        // Decoding: eight row blocks; no more parts than keys allow; and one where sequences fill the chip.
        assert_eq!(cut(1, 64, 8, 1, 131072), Some((1, 16)));
        assert_eq!(cut(1, 64, 8, 1, 2000), Some((1, 8)));
        assert_eq!(cut(64, 64, 8, 1, 8192), Some((1, 1)));
        // A chunk of a prompt has blocks of 128 rows, one to a multiprocessor.
        assert_eq!(cut(1, 8, 8, 128, 16384), Some((2, 16)));
        assert_eq!(cut(1, 8, 8, 512, 16384), Some((2, 4)));
        assert_eq!(cut(4, 16, 16, 4096, 4096), None);
        assert_eq!(cut(1, 8, 8, 512, 200), None);
    }
}
