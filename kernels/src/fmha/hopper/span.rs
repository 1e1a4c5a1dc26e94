//! Attention of a row block to a span of tiles of keys: all that it sees, or a part of them.
//!
//! The producer [brings](bring) tiles and a consumer warpgroup [attends](attend) to them, both from right to left.

use lacewing_core::prelude::*;

use super::{
    CHUNK, Consumer, HopperGeometry, ROWS, Sizes, State, WARPGROUP, Work, divide, first_weights, hand_on, limits, mask,
    query_of, step, take_turn,
};
use crate::fmha::{LN_2, causal_limit};

/// Tiles of keys from `begin` to before `end`, at least one, counted from the left.
#[derive(Clone, Copy)]
pub(in crate::fmha) struct Span {
    pub(in crate::fmha) begin: Uniform<I32>,
    pub(in crate::fmha) end: Uniform<I32>,
}

/// Keys and values on their way: where they come from, and the rings that they go through.
#[derive(Clone, Copy)]
pub(in crate::fmha) struct Supply<T: WgmmaElement> {
    pub(in crate::fmha) k: TensorMap<T, 4>,
    pub(in crate::fmha) v: TensorMap<T, 4>,
    pub(in crate::fmha) k_ring: SwizzledRing<T>,
    pub(in crate::fmha) v_ring: SwizzledRing<T>,
    pub(in crate::fmha) keys: Pipeline,
    pub(in crate::fmha) values: Pipeline,
    /// Where the producer says that it is nearly through with a span.
    pub(in crate::fmha) soon: Option<Mbarrier>,
}

/// Starts the copy of one tile of keys of a key head.
#[device]
fn bring_keys<T: WgmmaElement>(
    from: &Supply<T>,
    geometry: &HopperGeometry,
    batch: I32,
    head: I32,
    tile: I32,
    at: Cursor,
) {
    let full = from.keys.acquire(at, from.k_ring.bytes());
    from.k.load(from.k_ring.stage(at.stage()), (batch, head, tile * (geometry.block_n as i32), 0), full);
}

/// Starts the copy of one tile of values of a key head.
#[device]
fn bring_values<T: WgmmaElement>(
    from: &Supply<T>,
    geometry: &HopperGeometry,
    batch: I32,
    head: I32,
    tile: I32,
    at: Cursor,
) {
    let full = from.values.acquire(at, from.v_ring.bytes());
    from.v.load(from.v_ring.stage(at.stage()), (batch, head, tile * (geometry.block_n as i32), 0), full);
}

/// Starts the copies of a span of tiles in the order in which they are needed: the keys of a tile, then the values of the one to
/// the right of it. `queries` is called behind the first keys. Gives where the next span begins in the rings.
#[device]
pub(in crate::fmha) fn bring<T: WgmmaElement>(
    from: &Supply<T>,
    geometry: &HopperGeometry,
    batch: I32,
    head: I32,
    span: Span,
    at: Cursor,
    queries: impl Fn(),
) -> Cursor {
    let mut at = at;
    let last = span.end - 1;
    let left = last - span.begin;
    bring_keys(from, geometry, batch, head, *last, at);
    queries();
    // Before the last tile: early enough to hide how long a draw takes. What is drawn earlier makes blocks end at different times, as
    // nobody knows yet which one will be free first.
    if let Some(soon) = from.soon {
        if left == 0 {
            soon.arrive();
        }
    }
    for behind in range(0, left) {
        if let Some(soon) = from.soon {
            if behind == left - 1 {
                soon.arrive();
            }
        }
        let (tile, ahead) = (last - behind, at.next());
        bring_keys(from, geometry, batch, head, *tile - 1, ahead);
        bring_values(from, geometry, batch, head, *tile, at);
        at = ahead;
    }
    bring_values(from, geometry, batch, head, *span.begin, at);
    at.next()
}

/// What a consumer warpgroup has of its rows when it has attended to a span.
#[derive(Carried)]
pub(in crate::fmha) struct Sums {
    /// The score that has weight 1, for each of the thread's two rows.
    pub(in crate::fmha) max: [F32; 2],
    /// Sums of a whole row's weights.
    pub(in crate::fmha) total: [F32; 2],
    /// Sums of values by weights.
    pub(in crate::fmha) acc: Accumulator,
}

impl Sums {
    /// Those of rows without keys.
    pub(in crate::fmha) fn none(head_dim: usize) -> Self {
        let (max, total) = (F32::from(f32::NEG_INFINITY), F32::from(0.0));
        Sums { max: [max; 2], total: [total; 2], acc: Accumulator::zeros(head_dim) }
    }

    /// What turns one row's sums of values into its output by multiplication, and its LSE: 0 and -inf without keys.
    #[device]
    pub(in crate::fmha) fn finish(&self, half: usize, scale_log2: F32) -> (F32, F32) {
        let total = self.total[half];
        let empty = total == 0.0;
        let lse = self.max[half].fma(scale_log2, total.log2_fast()) * LN_2;
        (empty.select(F32::from(0.0), total.rcp_fast()), empty.select(F32::from(f32::NEG_INFINITY), lse))
    }
}

/// How many keys one of the warpgroup's rows sees, counted from the left.
#[device]
fn seen_by<T: WgmmaElement>(c: &Consumer<T>, geometry: &HopperGeometry, sizes: &Sizes, work: Work, row: usize) -> I32 {
    let mut seen = work.keys;
    if const_expr(geometry.causal) {
        let query = query_of(work.first_row + c.number * (ROWS as i32) + (row as i32), sizes);
        seen = causal_limit(query, sizes.seqlen_q, sizes.seqlen_kv).min(seen).max(0);
    }
    seen
}

/// Makes the values of padding keys zeros, in the last tile: a weight of 0 times NaN would be NaN. The copies have
/// put zeros where the tensor ends, so that only a shorter `kv_len` leaves something to do.
#[device]
fn clear_padding<T: MmaElement>(
    c: &Consumer<T>,
    geometry: &HopperGeometry,
    sizes: &Sizes,
    work: Work,
    end: Uniform<I32>,
    at: Cursor,
) {
    let valid = work.keys - (end - 1) * (geometry.block_n as i32);
    if work.keys < sizes.seqlen_kv && valid < (geometry.block_n as i32) {
        c.values.wait(at);
        let tile = c.v.stage(at.stage());
        let (chunks, threads) = (geometry.head_dim / CHUNK, geometry.consumers * WARPGROUP);
        let first = valid * (chunks as i32) + thread_id(X) - (WARPGROUP as i32);
        for chunk in range(first, I32::from((geometry.block_n * chunks) as i32), threads as i32) {
            let (row, column) = divide(chunk, I32::from(chunks as i32));
            tile.at((row, column * (CHUNK as i32))).store_vec(Vector::<T, CHUNK>::splat(T::from(0.0)));
        }
        fence_proxy(ProxyFence::AsyncShared);
        named_barrier(geometry.consumers + 1, threads).sync();
    }
}

/// Leaves a tile of keys and values alone, in turn. All four warps have waited for both stages before one thread releases them:
/// else these could be filled twice before a warp that fell behind looks.
#[device]
fn pass_on<T: WgmmaElement>(c: &Consumer<T>, geometry: &HopperGeometry, at: Cursor) {
    c.keys.wait(at);
    c.values.wait(at);
    take_turn(c, geometry);
    hand_on(c, geometry);
    c.keys.release(at);
    c.values.release(at);
}

/// Attention of a warpgroup's rows to a span of tiles, and where the next one begins in the rings. Where Q came by tensor copy,
/// `queries` is what to wait for, and to release once it was read for the last time, beside the last tile.
#[device]
pub(in crate::fmha) fn attend<T: MmaElement>(
    c: &Consumer<T>,
    geometry: &HopperGeometry,
    sizes: &Sizes,
    work: Work,
    span: Span,
    queries: Option<(Pipeline, Cursor)>,
    at: Cursor,
) -> (Sums, Cursor) {
    let block_n = geometry.block_n as i32;
    let mut at = at;
    clear_padding(c, geometry, sizes, work, span.end, at);

    // Tiles on the right that no row of the warpgroup sees are passed on, in turn; but not the last one. A block of one
    // warpgroup is not brought such tiles.
    let last = span.end - 1;
    let mut first = last;
    if const_expr(geometry.causal && geometry.consumers > 1) {
        let seen = seen_by(c, geometry, sizes, work, ROWS - 1).max(*(span.begin * block_n + 1));
        let tiles = divide(seen + (block_n - 1), I32::from(block_n)).0;
        first = uniform(tiles.min(*span.end)) - 1;
        for _ in range(first, last) {
            pass_on(c, geometry, at);
            at.advance();
        }
    }

    // S = Q K^T of the first tile, which has no output before it.
    if let Some((queries, q_at)) = queries {
        queries.wait(q_at);
    }
    c.keys.wait(at);
    take_turn(c, geometry);
    let s = wgmma(c.q, c.k.stage(at.stage()).t());
    hand_on(c, geometry);
    let mut s = s.wait::<0>();
    c.keys.release(at);
    if let Some((queries, q_at)) = queries {
        queries.release_if(first == span.begin, q_at);
    }
    let seen_by_all = seen_by(c, geometry, sizes, work, 0);
    if const_expr(geometry.causal) {
        mask(&mut s, limits(c, geometry, sizes, work, *first));
    } else {
        if work.keys < (*first + 1) * block_n {
            mask(&mut s, limits(c, geometry, sizes, work, *first));
        }
    }
    let (rows, p) = first_weights::<T>(s, seen_by_all, c.scale_log2);
    let mut state = State { rows, o: Accumulator::zeros(geometry.head_dim), p, at };

    // Tiles that every row of the warpgroup sees whole need no mask.
    let mut whole = first;
    if const_expr(geometry.causal) {
        whole = uniform(divide(seen_by_all, I32::from(block_n)).0).min(first);
    }
    for behind in range(0, first - span.begin) {
        step(c, geometry, sizes, work, queries, first - 1 - behind, span.begin, whole, &mut state);
    }

    // O += P V of the last tile, beside which sums become those of whole rows.
    c.values.wait(state.at);
    let pv = wgmma_add(&state.p, c.v.stage(state.at.stage()), std::mem::take(&mut state.o));
    let mut total = state.rows.sum;
    for half in range_constexpr(2) {
        total[half] += shfl_xor(total[half], 2);
        total[half] += shfl_xor(total[half], 1);
    }
    let acc = pv.wait::<0>();
    c.values.release(state.at);
    (Sums { max: state.rows.max, total, acc }, state.at.next())
}
