//! What a block works on: pieces of work by number, and how the thread that finds them out tells the others.

use lacewing_core::prelude::*;

use super::super::causal_limit;
use super::HopperGeometry;

/// One piece of work: the query rows of a block.
#[derive(Clone, Copy, Carried)]
pub(in crate::fmha) struct Work {
    pub(in crate::fmha) first_row: I32,
    pub(in crate::fmha) head: I32,
    pub(in crate::fmha) batch: I32,
    /// Valid keys of the sequence.
    pub(in crate::fmha) keys: I32,
    /// Tiles of keys, at least one; 0 where there is no more work.
    pub(in crate::fmha) tiles: I32,
}

/// Words that a piece of work takes in shared memory, in whole vectors.
pub(in crate::fmha) const WORK_WORDS: usize = 8;

/// How the scheduling thread tells the others what to work on: through slots in shared memory, so that nobody else waits for
/// quotients, the counter and lengths in global memory.
#[derive(Clone, Copy)]
pub(in crate::fmha) struct Handover {
    pub(in crate::fmha) slots: Pipeline,
    pub(in crate::fmha) words: SharedSlice<I32>,
}

#[device]
pub(in crate::fmha) fn hand_over(to: &Handover, at: Cursor, work: Work) {
    let first = at.stage() * (WORK_WORDS as i32);
    to.words.at(first).store_vec(Vector::from([work.tiles, work.keys, work.first_row, work.head]));
    to.words.at(first + 4).store(work.batch);
    to.slots.commit(at);
}

/// What stands in a slot that has been waited for.
#[device]
pub(in crate::fmha) fn work_in(from: &Handover, at: Cursor) -> Work {
    let first = at.stage() * (WORK_WORDS as i32);
    let words = from.words.at(first).load_vec::<4>();
    let batch = from.words.at(first + 4).load();
    Work { tiles: words.get(0), keys: words.get(1), first_row: words.get(2), head: words.get(3), batch }
}

/// The sizes that work is cut from.
#[derive(Clone, Copy)]
pub(in crate::fmha) struct Sizes {
    pub(in crate::fmha) seqlen_q: I32,
    pub(in crate::fmha) seqlen_kv: I32,
    pub(in crate::fmha) heads: I32,
    pub(in crate::fmha) row_blocks: I32,
    /// Heads whose work is mixed, for causal attention.
    pub(in crate::fmha) group: I32,
}

/// Quotient and remainder of what is not negative: without the steps that signs would take.
#[device]
pub(in crate::fmha) fn divide(a: I32, b: I32) -> (I32, I32) {
    let quotient = (a.cast::<U32>() / b.cast::<U32>()).cast::<I32>();
    (quotient, a - quotient * b)
}

/// First row, head and batch of work number `index`. Row blocks of one head follow each other, so that its keys stay in the
/// L2 cache. With a causal mask the longest come first, mixed over a group of heads, so that all blocks end together.
#[device]
pub(in crate::fmha) fn rows_at(index: I32, geometry: &HopperGeometry, sizes: &Sizes) -> (I32, I32, I32) {
    let (row_block, head_index) = if const_expr(geometry.causal) {
        let (groups, rest) = divide(index, sizes.row_blocks * sizes.group);
        let (behind, member) = divide(rest, sizes.group);
        (sizes.row_blocks - 1 - behind, groups * sizes.group + member)
    } else {
        let (head_index, row_block) = divide(index, sizes.row_blocks);
        (row_block, head_index)
    };
    let (batch, head) = divide(head_index, sizes.heads);
    (row_block * (geometry.block_m() as i32), head, batch)
}

/// The whole piece of work, with the keys that its rows see.
#[device]
pub(in crate::fmha) fn work_at(
    (first_row, head, batch): (I32, I32, I32),
    geometry: &HopperGeometry,
    sizes: &Sizes,
    kv_len: Tensor<I32, 1>,
) -> Work {
    // A length that is no length must not lead out of K.
    let keys = kv_len.at(batch).load().max(0).min(sizes.seqlen_kv);
    let visible = if const_expr(geometry.causal) {
        let last_row = (first_row + (geometry.block_m() as i32)).min(sizes.seqlen_q) - 1;
        keys.min(causal_limit(last_row, sizes.seqlen_q, sizes.seqlen_kv))
    } else {
        keys
    };
    let block_n = geometry.block_n as i32;
    let (tiles, _) = divide(visible.max(1) + (block_n - 1), I32::from(block_n));
    Work { first_row, head, batch, keys, tiles }
}
