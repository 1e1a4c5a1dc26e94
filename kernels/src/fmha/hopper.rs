//! `fmha_fwd` for Hopper: FlashAttention-3's algorithm with tensor copies, warpgroup products and roles.
//!
//! A block has one producer warpgroup, of which one thread starts copies and one finds out what to work on, and two to four
//! consumer warpgroups with 64 query rows each. Keys and values go through rings of stages. A consumer multiplies `Q K^T` of one
//! tile of keys while `P V` of the tile before runs, and works on the exponentials while the tensor cores are
//! the other warpgroup's: they take turns.
//!
//! No maximum is looked for where it is not needed. Softmax allows any reference that keeps its weights in range, so that a
//! tile's are taken against the one so far, 0 at first; their sum shows whether one was out of range, and only then is
//! the tile's maximum taken into the reference and the tile weighed anew.
//!
//! Blocks are persistent: they take work in turn, or draw it from a counter when causal, and the producer fetches the next
//! work's tiles while consumers write out the last one's rows. Tiles of keys come from right to left, so that
//! those with something to mask come first. A launch may overlap the one before it.
//!
//! J. Shah et al., "FlashAttention-3" (2024), algorithm 2; in base 2 as in [`super::mma`].

mod shared;
mod span;
mod work;

use lacewing_core::ScalarType;
use lacewing_core::prelude::*;

pub use self::shared::{Shares, fmha_fwd_hopper_shared};
use self::shared::{Sharing, hand_over_shares, join, part_in};
pub(super) use self::span::{Span, Sums, Supply, attend, bring};
use self::work::{Handover, WORK_WORDS, hand_over, rows_at, work_at, work_in};
pub(super) use self::work::{Sizes, Work, divide, query_of};
use super::{LARGEST_SHIFT, causal_limit};

/// Query rows of a consumer warpgroup.
pub(super) const ROWS: usize = 64;
/// Threads of a warpgroup.
pub(super) const WARPGROUP: usize = 128;
/// Elements of 16 bytes.
pub(super) const CHUNK: usize = 8;

/// Sum of a thread's weights of a row in one tile, up to which the reference serves. No weight is larger, as none is negative:
/// half precision holds it.
const LARGEST_SUM: f32 = 256.0;

/// Sum of a row's weights in its first tile, from which a reference of 0 serves: what f16 loses of weights that are far below is
/// then no more of the sum than with the maximum as the reference.
const SMALLEST_SUM: f32 = 1.0;
/// The same for bf16, whose exponents reach as far as those of sums.
const SMALLEST_WIDE_SUM: f32 = 1.0 / (1 << 20) as f32;
/// Keys below which a row's reference is its maximum, so that the weight of a key which is all alone is exact.
const FEW_KEYS: usize = 32;
/// What the kernel is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopperGeometry {
    /// Elements of a query, key or value.
    pub(super) head_dim: usize,
    /// Whether a query sees only keys up to its own.
    pub(super) causal: bool,
    /// Consumer warpgroups: 2 to 4; 1 too in [`super::split`].
    pub(super) consumers: usize,
    /// Keys of a tile.
    pub(super) block_n: usize,
    /// Stages of the rings of keys and values.
    pub(super) stages: usize,
}

impl HopperGeometry {
    /// The tiles that were fastest on an H200 for a head dimension and lengths; `None` for a head dimension that the
    /// kernel does not have. docs/src/inside/hopper-attention.md says what was tried.
    pub fn new(head_dim: usize, causal: bool, seqlen_q: usize, seqlen_kv: usize) -> Option<Self> {
        let tiles = |consumers, block_n, stages| Some(HopperGeometry { head_dim, causal, consumers, block_n, stages });
        let (few_rows, many_keys) = (seqlen_q <= FEW_ROWS, seqlen_kv > MANY_KEYS);
        match (head_dim, causal) {
            (64, false) if seqlen_kv > MOST_KEYS => tiles(3, 96, 3),
            (64, _) => tiles(4, 64, 4),
            (96, false) if few_rows => tiles(2, 128, 2),
            (96, true) if !many_keys => tiles(2, 128, 2),
            (96, _) => tiles(3, 80, 2),
            (128, _) => tiles(2, 128, 2),
            (192, _) => tiles(2, 96, 2),
            (256, _) => tiles(2, 64, 2),
            _ => None,
        }
    }

    /// Query rows of a block.
    pub fn block_m(&self) -> usize {
        self.consumers * ROWS
    }

    /// Whether the output of the tile before is waited for behind all exponentials of a tile, and not where the
    /// assembler likes. Two warpgroups must overlap what a third would hide, but where products take so much longer than
    /// exponentials that they are hidden anyway.
    fn waits_late(&self) -> bool {
        self.consumers == 1 || (self.consumers == 2 && self.head_dim < 256)
    }

    /// Columns of the output that a warpgroup has room for in shared memory on their way to the tensor.
    fn staged_columns(&self) -> usize {
        if self.head_dim > 128 { self.head_dim / 2 } else { self.head_dim }
    }

    pub(super) fn threads(&self) -> u32 {
        ((self.consumers + 1) * WARPGROUP) as u32
    }

    /// Registers of a producer's and a consumer's thread.
    pub(super) fn registers(&self) -> (u32, u32) {
        match self.consumers {
            1 if self.resident() == 2 => (24, 232),
            1 | 2 => (24, 240),
            3 => (32, 160),
            _ => (32, 112),
        }
    }
}

/// Rows up to which blocks of 128 are faster than blocks of 192 for head dimension 96, of which the last is partly empty.
const FEW_ROWS: usize = 1024;
/// Keys above which three warpgroups are faster than two on causal attention of head dimension 96.
const MANY_KEYS: usize = 4096;
/// Keys above which three warpgroups are faster than four for head dimension 64 without a mask.
const MOST_KEYS: usize = 8192;

/// Pieces of work for each block that heads which are mixed have together, where there are so many.
const WORKS_OF_A_BLOCK: usize = 3;

/// How many of `heads` heads are mixed when causal, of `row_blocks` row blocks each, on a grid of so many blocks: the fewest, up to
/// 16, that divide them and have three pieces of work for each block. Fewer leave blocks idle at the end, and more
/// bring keys of too many heads into the L2 cache at once.
pub fn mixed_heads(heads: usize, row_blocks: usize, blocks: usize) -> usize {
    let groups: Vec<_> = (1..=16).filter(|group| heads.is_multiple_of(*group)).collect();
    let enough = |group: &usize| group.saturating_mul(row_blocks) >= WORKS_OF_A_BLOCK.saturating_mul(blocks);
    groups.iter().copied().find(enough).or(groups.last().copied()).unwrap_or(1)
}

/// A thread's two rows of the scores so far.
#[derive(Clone, Copy, Carried)]
struct RowState {
    /// The score that has weight 1: a row's maximum when it was last looked for.
    max: [F32; 2],
    /// What is added to scaled scores, by [`shift`].
    shift: [F32; 2],
    /// The thread's share of the sums of weights.
    sum: [F32; 2],
}

/// Which of a thread's two rows an accumulator's element stands in.
fn half_of(element: usize) -> usize {
    element / 2 % 2
}

/// What is added to scaled scores so that `max` gets weight 1. Where that cannot be, infinity: each weight is infinite then or
/// no number, and its tile is weighed anew. A row without keys so far has no maximum, and a large one must be subtracted before
/// scores are scaled: the fused form would weigh with what rounding took from it.
#[device]
fn shift(max: F32, scale: F32) -> F32 {
    let shift = -(max * scale);
    (shift.abs() <= LARGEST_SHIFT).select(shift, F32::from(f32::INFINITY))
}

/// Turns scores into weights against the reference so far.
#[device]
fn weigh(s: &mut Accumulator, rows: &RowState, scale: F32) {
    for i in range_constexpr(s.len()) {
        s[i] = s[i].fma(scale, rows.shift[half_of(i)]).exp2_fast();
    }
}

/// Takes the scores' maxima into the reference and turns the scores into weights against it. Gives what earlier sums and outputs
/// are to be multiplied with.
#[device]
fn weigh_anew(s: &mut Accumulator, rows: &mut RowState, scale: F32) -> [F32; 2] {
    let mut rescale = rows.max;
    for half in range_constexpr(2) {
        // Two chains, as each step waits for the one before.
        let mut chains = [rows.max[half], s[2 * half]];
        for i in range_constexpr(1, s.len()) {
            if const_expr(half_of(i) == half) {
                chains[i % 2] = chains[i % 2].maxnum(s[i]);
            }
        }
        let mut max = chains[0].maxnum(chains[1]);
        max = max.maxnum(shfl_xor(max, 2));
        max = max.maxnum(shfl_xor(max, 1));
        // Subtracting 0 where a row has seen no key keeps -inf - -inf out.
        let base = (max == f32::NEG_INFINITY).select(F32::from(0.0), max);
        for i in range_constexpr(s.len()) {
            if const_expr(half_of(i) == half) {
                s[i] = ((s[i] - base) * scale).exp2_fast();
            }
        }
        rescale[half] = ((rows.max[half] - base) * scale).exp2_fast();
        rows.max[half] = max;
        rows.shift[half] = shift(max, scale);
    }
    rescale
}

/// The sums of a thread's weights, row by row, in two chains each.
#[device]
fn sums(s: &Accumulator) -> [F32; 2] {
    let mut sums = [s[0], s[2]];
    for half in range_constexpr(2) {
        let mut chains = [s[2 * half], s[2 * half + 1]];
        for i in range_constexpr(4, s.len()) {
            if const_expr(half_of(i) == half) {
                chains[i % 2] += s[i];
            }
        }
        sums[half] = chains[0] + chains[1];
    }
    sums
}

/// Weights of a warpgroup's first tile, against a reference of 0: scores are seldom so large or so small that it does not serve,
/// and nobody waits for maxima. `seen` is the number of keys that every row sees.
#[device]
fn first_weights<T: MmaElement>(mut s: Accumulator, seen: I32, scale: F32) -> (RowState, Fragments<T>) {
    let mut rows = RowState { max: [0.0.into(); 2], shift: [0.0.into(); 2], sum: [0.0.into(); 2] };
    let mut weights = s.clone();
    weigh(&mut weights, &rows, scale);
    rows.sum = sums(&weights);
    let mut p = weights.cast::<T>();
    let smallest = if const_expr(T::TYPE == ScalarType::F16) { SMALLEST_SUM } else { SMALLEST_WIDE_SUM };
    let mut serves = seen >= (FEW_KEYS as i32);
    for half in range_constexpr(2) {
        let mut total = rows.sum[half];
        total += shfl_xor(total, 2);
        total += shfl_xor(total, 1);
        serves &= (total >= smallest) & (rows.sum[half] <= LARGEST_SUM);
    }
    if any(!serves) {
        rows.max = [f32::NEG_INFINITY.into(); 2];
        // Nothing came before that is to be rescaled.
        let [_, _] = weigh_anew(&mut s, &mut rows, scale);
        rows.sum = sums(&s);
        p = s.cast::<T>();
    }
    (rows, p)
}

/// Hides the scores of keys from the limit of each of the thread's two rows on; limits count from the thread's
/// first column.
#[device]
fn mask(s: &mut Accumulator, limits: [I32; 2]) {
    for i in range_constexpr(s.len()) {
        let column = (i / 4 * 8 + i % 2) as i32;
        s[i] = (limits[half_of(i)] > column).select(s[i], F32::from(f32::NEG_INFINITY));
    }
}

/// What a consumer warpgroup works with.
#[derive(Clone, Copy)]
pub(super) struct Consumer<T: WgmmaElement> {
    pub(super) q: SwizzledTile<T>,
    pub(super) k: SwizzledRing<T>,
    pub(super) v: SwizzledRing<T>,
    pub(super) keys: Pipeline,
    pub(super) values: Pipeline,
    /// An mbarrier whose only phase is complete.
    pub(super) boundary: Mbarrier,
    /// The named barriers at which warpgroups take turns, this one's number and the next one's.
    pub(super) turns: NamedBarriers,
    pub(super) number: Uniform<I32>,
    pub(super) next: Uniform<I32>,
    pub(super) scale_log2: F32,
}

impl<T: WgmmaElement> Consumer<T> {
    /// The warpgroup of that number; `q` holds the rows of all.
    #[device]
    pub(super) fn new(
        geometry: &HopperGeometry,
        number: Uniform<I32>,
        q: SwizzledTile<T>,
        from: &Supply<T>,
        boundary: Mbarrier,
        scale: F32,
    ) -> Self {
        let consumers = geometry.consumers;
        Consumer {
            q: q.row_block(ROWS, number),
            k: from.k_ring,
            v: from.v_ring,
            keys: from.keys,
            values: from.values,
            boundary,
            turns: named_barriers(1, consumers, 2 * WARPGROUP),
            number,
            next: (number == consumers as i32 - 1).select(0.into(), number + 1),
            scale_log2: scale * std::f32::consts::LOG2_E,
        }
    }
}

/// Gives the first warpgroup its first turn.
#[device]
pub(super) fn start_turns<T: WgmmaElement>(c: &Consumer<T>, geometry: &HopperGeometry) {
    if const_expr(geometry.consumers > 1) {
        if c.number == geometry.consumers as i32 - 1 {
            c.turns.at(0).arrive();
        }
    }
}

/// Takes the turn that nobody else takes: as many arrive at a barrier as wait there.
#[device]
pub(super) fn end_turns<T: WgmmaElement>(c: &Consumer<T>, geometry: &HopperGeometry) {
    if const_expr(geometry.consumers > 1) {
        if c.number == 0 {
            c.turns.at(0).sync();
        }
    }
}

/// Waits for the warpgroup's turn at the tensor cores. One alone takes no turns.
#[device]
fn take_turn<T: WgmmaElement>(c: &Consumer<T>, geometry: &HopperGeometry) {
    if const_expr(geometry.consumers > 1) {
        c.turns.at(c.number).sync();
    }
}

/// Gives the next warpgroup its turn.
#[device]
fn hand_on<T: WgmmaElement>(c: &Consumer<T>, geometry: &HopperGeometry) {
    if const_expr(geometry.consumers > 1) {
        c.turns.at(c.next).arrive();
    }
}

/// What a consumer carries from one tile of keys to the next.
#[derive(Carried)]
struct State<T: MmaElement> {
    rows: RowState,
    /// Output so far, without the tile that `p` belongs to.
    o: Accumulator,
    p: Fragments<T>,
    /// The stage of that tile's values; that of the next tile's keys follows it.
    at: Cursor,
}

/// The thread's number in its block, by way of the warp: a compiler does not move that, so that what is computed from it stays
/// beside its use, and takes no registers in between. It is told of the range, which the warp's word hides: 1024 threads.
#[device]
pub(super) fn this_thread() -> I32 {
    shfl_xor(thread_id(X), 0) & 1023
}

/// The first of a thread's two rows in its block of rows, for the consumer warpgroup of that number; the other is 8 below it.
#[device]
pub(super) fn first_row_of(thread: I32, number: Uniform<I32>) -> I32 {
    number * (ROWS as i32) + thread % (WARPGROUP as i32) / 32 * 16 + thread % 32 / 4
}

/// First key that each of the thread's two rows does not see, counted from the thread's first column of a tile.
#[device]
fn limits<T: WgmmaElement>(
    c: &Consumer<T>,
    geometry: &HopperGeometry,
    sizes: &Sizes,
    work: Work,
    tile: I32,
) -> [I32; 2] {
    let thread = this_thread();
    let start = tile * (geometry.block_n as i32) + thread % 4 * 2;
    let mut limits = [work.keys - start; 2];
    if const_expr(geometry.causal) {
        for half in range_constexpr(2) {
            let row = query_of(work.first_row + first_row_of(thread, c.number) + ((8 * half) as i32), sizes);
            limits[half] = limits[half].min(causal_limit(row, sizes.seqlen_q, sizes.seqlen_kv) - start);
        }
    }
    limits
}

/// Tile number `tile` of keys, counted from the left: `S = Q K^T` of it beside `O += P V` of the one before. Tiles from `whole` on
/// may have something to mask. `queries` is where Q is released beside tile `begin`, if a tensor copy brought it.
#[device]
fn step<T: MmaElement>(
    c: &Consumer<T>,
    geometry: &HopperGeometry,
    sizes: &Sizes,
    work: Work,
    queries: Option<(Pipeline, Cursor)>,
    tile: Uniform<I32>,
    begin: Uniform<I32>,
    whole: Uniform<I32>,
    state: &mut State<T>,
) {
    let next = state.at.next();
    c.keys.wait(next);
    take_turn(c, geometry);
    let s = wgmma(c.q, c.k.stage(next.stage()).t());
    c.values.wait(state.at);
    let o = wgmma_add(&state.p, c.v.stage(state.at.stage()), std::mem::take(&mut state.o));
    hand_on(c, geometry);
    let mut s = s.wait::<1>();
    c.keys.release(next);
    if let Some((queries, q_at)) = queries {
        queries.release_if(tile == begin, q_at);
    }
    if const_expr(geometry.causal) {
        if tile >= whole {
            mask(&mut s, limits(c, geometry, sizes, work, *tile));
        }
    }
    let mut weights = s.clone();
    weigh(&mut weights, &state.rows, c.scale_log2);
    if const_expr(geometry.waits_late()) {
        // Complete from the start: a boundary that keeps the assembler from moving the next wait. The stage's own barrier
        // would not do: once all four warps have issued the product, another may wait for it and release the stage, and
        // a warp that comes here after the stage was filled again would wait for the phase after that one, for ever.
        c.boundary.wait(0);
    }
    let mut o = o.wait_after::<0>(&mut weights);
    c.values.release(state.at);
    let mut added = sums(&weights);
    let mut p = weights.cast::<T>();
    // What is no number is not smaller either.
    if any(!(added[0] <= LARGEST_SUM) | !(added[1] <= LARGEST_SUM)) {
        let rescale = weigh_anew(&mut s, &mut state.rows, c.scale_log2);
        added = sums(&s);
        p = s.cast::<T>();
        for half in range_constexpr(2) {
            state.rows.sum[half] *= rescale[half];
        }
        for i in range_constexpr(o.len()) {
            o[i] *= rescale[half_of(i)];
        }
    }
    for half in range_constexpr(2) {
        state.rows.sum[half] += added[half];
    }
    state.o = o;
    state.p = p;
    state.at = next;
}

/// Forward attention. Q and O are `[B, Hq, Sq, D]`, K and V `[B, Hkv, Sk, D]`; query head `h` reads key head
/// `h / heads_per_kv`. Keys from `kv_len[b]` on are padding. `group` divides B Hq: the heads whose row blocks are
/// mixed when causal ([`mixed_heads`]). `counter` holds a zero, before and after; no other launch may use it at the same time, but one
/// that overlaps this one. The grid has at most as many blocks in x as there are row blocks.
#[kernel(block = [geometry.threads(), 1, 1], min_blocks = 1)]
pub fn fmha_fwd_hopper<T: MmaElement>(
    #[comptime] geometry: HopperGeometry,
    q: TensorMap<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMap<T, 4>,
    lse: TensorMut<F32, 3>,
    counter: TensorMut<I32, 1>,
    heads_per_kv: I32,
    seqlen_kv: I32,
    group: I32,
    scale: F32,
) {
    attend_to_all(&geometry, q, k, v, kv_len, o, lse, counter, heads_per_kv, seqlen_kv, group, scale, None);
}

/// What [`fmha_fwd_hopper`] and [`fmha_fwd_hopper_shared`] do.
#[device]
fn attend_to_all<T: MmaElement>(
    geometry: &HopperGeometry,
    q: TensorMap<T, 4>,
    k: TensorMap<T, 4>,
    v: TensorMap<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMap<T, 4>,
    lse: TensorMut<F32, 3>,
    counter: TensorMut<I32, 1>,
    heads_per_kv: I32,
    seqlen_kv: I32,
    group: I32,
    scale: F32,
    sharing: Option<Sharing>,
) {
    // Other blocks read the same keys and values soon.
    let (q, k, v) = (q.evict_first(), k.evict_last(), v.evict_last());
    release_next_grid();
    let (head_dim, block_n, consumers) = (geometry.head_dim, geometry.block_n, geometry.consumers);
    let block_m = geometry.block_m();
    let (row_blocks, _) = divide(lse.extent(2) + (block_m as i32 - 1), I32::from(block_m as i32));
    let sizes = Sizes { seqlen_q: lse.extent(2), seqlen_kv, heads: lse.extent(1), row_blocks, group, packed: None };
    let works = uniform(row_blocks * lse.extent(1) * lse.extent(0));

    let q_tile = SwizzledTile::<T>::new("q", block_m, head_dim);
    let k_ring = SwizzledRing::<T>::new("k", geometry.stages, block_n, head_dim);
    let v_ring = SwizzledRing::<T>::new("v", geometry.stages, block_n, head_dim);
    let staged = SwizzledRing::<T>::new("o", consumers, ROWS, geometry.staged_columns());
    let mut setup = BarrierSetup::new();
    let queries = Pipeline::new(&mut setup, "queries", consumers, 1);
    let keys = Pipeline::new(&mut setup, "keys", geometry.stages, consumers);
    let values = Pipeline::new(&mut setup, "values", geometry.stages, consumers);
    let schedule =
        if const_expr(geometry.causal) { Schedule::drawn_by_one(counter, works) } else { Schedule::in_turn(works) };
    // Released by each thread of the consumers, as each has read by itself, and by the producer. Two, so that the next work is
    // known early.
    let handover = Handover {
        slots: Pipeline::new(&mut setup, "work", 2, consumers * WARPGROUP + 1),
        words: shared_array_named::<I32>("work", 2 * WORK_WORDS),
    };
    // Whether a warpgroup was the last one.
    let flags = sharing.map(|_| shared_array_named::<I32>("last", consumers));
    let boundary = setup.mbarrier("boundary", 1);
    // Where the producer says that the next work is to be drawn.
    let soon = if const_expr(geometry.causal) { Some(setup.mbarrier("soon", 1)) } else { None };
    setup.finish();

    let (producer_registers, consumer_registers) = geometry.registers();
    let [producer, consumer] = warpgroup_roles([(1, producer_registers), (consumers, consumer_registers)]);
    let supply = Supply { k, v, k_ring, v_ring, keys, values, soon };
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            boundary.arrive();
            wait_for_previous_grid();
            let (mut at, mut slot) = (keys.start(), handover.slots.start());
            let mut round = Uniform::<I32>::from(0);
            handover.slots.wait(slot);
            let mut work = work_in(&handover, slot);
            while work.tiles > 0 {
                let head_kv = divide(work.head, heads_per_kv).0;
                let begin = match sharing {
                    Some(_) => uniform(part_in(&handover, slot).begin),
                    None => 0.into(),
                };
                let span = Span { begin, end: uniform(work.tiles) };
                at = bring(&supply, geometry, work.batch, head_kv, span, at, || {
                    for c in range_constexpr(consumers) {
                        let rows = q_tile.row_block(ROWS, c);
                        let full = queries.acquire(queries.at(c, round), rows.bytes());
                        q.load(rows, (work.batch, work.head, work.first_row + ((c * ROWS) as i32), 0), full);
                    }
                });
                round += 1;
                handover.slots.empty(slot).arrive();
                slot.advance();
                handover.slots.wait(slot);
                work = work_in(&handover, slot);
            }
        }
        if warp_id() == 1 && elect_one() {
            if let Some(sharing) = sharing {
                hand_over_shares(&handover, geometry, &sizes, &sharing, kv_len);
            } else {
                let (mut slot, mut ticket) = (handover.slots.start(), schedule.start());
                let first = rows_at(*ticket.number(), geometry, &sizes);
                wait_for_previous_grid();
                hand_over(&handover, slot, work_at(first, geometry, &sizes, kv_len));
                let mut drawn = Uniform::<I32>::from(0);
                while schedule.has(ticket) {
                    slot.advance();
                    handover.slots.wait_empty(slot);
                    if let Some(soon) = soon {
                        soon.wait(*drawn % 2);
                        drawn += 1;
                    }
                    schedule.draw(&mut ticket);
                    // Behind the last one, what is read is of the last one.
                    let next = rows_at(*ticket.number().min(works - 1), geometry, &sizes);
                    let mut work = work_at(next, geometry, &sizes, kv_len);
                    work.tiles = schedule.has(ticket).select(work.tiles, I32::from(0));
                    hand_over(&handover, slot, work);
                }
            }
        }
    } else {
        consumer.begin();
        wait_for_previous_grid();
        let number = consumer.number();
        let c = Consumer::new(geometry, number, q_tile, &supply, boundary, scale);
        start_turns(&c, geometry);
        let (mut at, mut slot) = (keys.start(), handover.slots.start());
        let mut round = Uniform::<I32>::from(0);
        handover.slots.wait(slot);
        let mut work = work_in(&handover, slot);
        let mut tiles = uniform(work.tiles);
        while tiles > 0 {
            work.keys = *uniform(work.keys);
            let begin = match sharing {
                Some(_) => uniform(part_in(&handover, slot).begin),
                None => 0.into(),
            };
            let (span, q_at) = (Span { begin, end: tiles }, queries.at(number, round));
            let (mut sums, next) = attend(&c, geometry, &sizes, work, span, Some((queries, q_at)), at);
            at = next;
            // Where the rows go, read again: nothing of it has taken registers from the tiles.
            let done = work_in(&handover, slot);
            let part = sharing.map(|_| part_in(&handover, slot));
            handover.slots.empty(slot).arrive();
            if let (Some(sharing), Some(part), Some(flags)) = (sharing, part, flags) {
                let scale = c.scale_log2;
                if join(&mut sums, geometry, &sizes, &sharing, part, number, flags, scale) {
                    write_rows(o, lse, staged.stage(number), geometry, number, done, scale, sums);
                }
            } else {
                write_rows(o, lse, staged.stage(number), geometry, number, done, c.scale_log2, sums);
            }
            round += 1;
            slot.advance();
            handover.slots.wait(slot);
            work = work_in(&handover, slot);
            tiles = uniform(work.tiles);
        }
        // Shared memory lasts as long as the block.
        if thread_id(X) % (WARPGROUP as i32) == 0 {
            tma_store_wait(0);
        }
        end_turns(&c, geometry);
    }
}

/// Makes outputs of a warpgroup's sums, and writes them.
#[device]
fn write_rows<T: MmaElement>(
    o: TensorMap<T, 4>,
    lse: TensorMut<F32, 3>,
    staged: SwizzledTile<T>,
    geometry: &HopperGeometry,
    number: Uniform<I32>,
    work: Work,
    scale_log2: F32,
    sums: Sums,
) {
    let mut sums = sums;
    let (row_in_block, lane) = (first_row_of(this_thread(), number), lane_id());
    for half in range_constexpr(2) {
        let row = work.first_row + row_in_block + ((8 * half) as i32);
        let (inverse, log) = sums.finish(half, scale_log2);
        for i in range_constexpr(sums.acc.len()) {
            if const_expr(half_of(i) == half) {
                sums.acc[i] *= inverse;
            }
        }
        if row < lse.extent(2) && lane % 4 == 0 {
            lse.at((work.batch, work.head, row)).store(log);
        }
    }
    store_rows(o, staged, geometry, number, work, &sums.acc);
}

/// Writes a warpgroup's 64 rows of the output by way of shared memory, from where the copy engine takes them: it leaves out
/// rows behind the last one.
#[device]
fn store_rows<T: MmaElement>(
    o: TensorMap<T, 4>,
    staged: SwizzledTile<T>,
    geometry: &HopperGeometry,
    number: Uniform<I32>,
    work: Work,
    acc: &Accumulator,
) {
    let together = named_barriers(geometry.consumers + 2, geometry.consumers, WARPGROUP).at(number);
    let thread = this_thread() % (WARPGROUP as i32);
    let leader = thread == 0;
    // Where the rows of the four matrices begin, one for each lane: those of the upper 8 and the lower 8 rows, then their neighbours
    // to the right.
    let (row, column) = (thread / 32 * 16 + thread % 16, thread % 32 / 16 * 8);
    let width = geometry.staged_columns();
    for part in range_constexpr(geometry.head_dim / width) {
        // What was written before has been read.
        if leader {
            tma_store_wait(0);
        }
        together.sync();
        for block in range_constexpr(width / 16) {
            let mut pairs = [Vector::<T, 2>::splat(T::from(0.0)); 4];
            for i in range_constexpr(4) {
                let element = part * (width / 2) + 8 * block + 2 * i;
                pairs[i] = Vector::<F32, 2>::from([acc[element], acc[element + 1]]).cast::<T>();
            }
            stmatrix_x4(staged.at((row, column + ((16 * block) as i32))), pairs);
        }
        fence_proxy(ProxyFence::AsyncShared);
        together.sync();
        if leader {
            let first_row = work.first_row + number * (ROWS as i32);
            o.store((work.batch, work.head, first_row, (part * width) as i32), staged);
            tma_store_commit();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use lacewing_core::lower::{EmitOptions, Report, find_nvdisasm, find_ptxas};
    use lacewing_core::{rt, trace_kernel};
    use rayon::prelude::*;

    use super::*;

    const HEAD_DIMS: [usize; 5] = [64, 96, 128, 192, 256];

    /// Every geometry that [`HopperGeometry::new`] gives.
    fn geometries() -> Vec<HopperGeometry> {
        let mut all: Vec<HopperGeometry> = Vec::new();
        for head_dim in HEAD_DIMS {
            for causal in [false, true] {
                for length in [1, FEW_ROWS + 1, MANY_KEYS + 1, MOST_KEYS + 1] {
                    let geometry = HopperGeometry::new(head_dim, causal, length, length).unwrap();
                    if !all.contains(&geometry) {
                        all.push(geometry);
                    }
                }
            }
        }
        all
    }

    /// What there is to complain of in the machine code of a kernel with warpgroup products in a loop.
    pub(in crate::fmha) fn complaints(kernel: &impl rt::Kernel) -> Vec<String> {
        let traced = trace_kernel(kernel, Target::SM_90A).unwrap();
        let report = Report::of(&traced, &EmitOptions::default()).unwrap();
        // One for each of the masked, the unmasked and the last tiles, or fewer; none would mean that nobody looked.
        assert!(report.main_loops.iter().any(|found| found.products >= 8), "{:?}", report.main_loops);
        report.complaints()
    }

    /// Whether there is what shows the machine code.
    pub(in crate::fmha) fn machine_code_shows() -> bool {
        let shows = find_ptxas(None).is_ok() && find_nvdisasm().is_some();
        if !shows {
            let required = ["CI", "LACEWING_REQUIRE_PTXAS"].iter().find(|name| std::env::var_os(name).is_some());
            assert!(required.is_none(), "no ptxas or no nvdisasm: nobody would see serialised products");
            eprintln!("SKIPPED: no ptxas or no nvdisasm");
        }
        shows
    }

    /// Serialised products, registers in memory, an ignored `setmaxnreg` and addresses that threads must hand to the
    /// warp cost more than any tuning wins.
    #[test]
    fn the_machine_code_has_nothing_to_complain_of() {
        if !machine_code_shows() {
            return;
        }
        let found: Vec<_> = geometries()
            .par_iter()
            .flat_map_iter(|geometry| {
                let half = (geometry.head_dim == 128).then(|| fmha_fwd_hopper::<F16>::new(geometry.clone()));
                let other = half.iter().flat_map(complaints);
                let shares = !geometry.causal;
                let shared = shares.then(|| fmha_fwd_hopper_shared::<BF16>::new(geometry.clone()));
                let found: Vec<_> = complaints(&fmha_fwd_hopper::<BF16>::new(geometry.clone()))
                    .into_iter()
                    .chain(other)
                    .chain(shared.iter().flat_map(complaints))
                    .collect();
                found.into_iter().map(move |complaint| format!("{geometry:?}: {complaint}"))
            })
            .collect();
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn mixed_heads_divide_all() {
        for (heads, group) in [(64, 16), (30, 15), (17, 1), (14, 14), (1, 1)] {
            assert_eq!(mixed_heads(heads, 1, 132), group);
        }
        // No more than give each block three pieces of work.
        for (heads, row_blocks, group) in
            [(8, 128, 4), (16, 64, 8), (32, 32, 16), (64, 16, 16), (9, 400, 1), (9, 200, 3)]
        {
            assert_eq!(mixed_heads(heads, row_blocks, 132), group);
        }
    }
}
