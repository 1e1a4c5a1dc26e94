//! `fmha_fwd` for NVIDIA chips: FlashAttention-2 with `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! A block of four warps computes 128 or 64 query rows of one head; each warp owns a quarter of them, so
//! that a row's maximum and sum never leave a quad of lanes. Keys and values come in tiles. Either there are two stages of
//! both, and while tile `j` is multiplied, tile `j + 1` is on its way; or there is one, and the values are on their way during
//! the first product, the next keys during the second. What a head dimension gets was measured on an H200: see
//! [`Tiling`]. Shared memory is what bounds the kernel, and rows in it are swizzled without gaps:
//! docs/src/inside/mma-sync.md says why.
//!
//! Formulas: T. Dao, "FlashAttention-2" (2023), algorithm 1, in base 2: with `t = scale * log2(e) * q.k` and any
//! reference `r`, `p = 2^(t - r)`, `l = sum p`, the result is `O = P V / l` and `LSE = (r + log2 l) * ln 2`. The reference
//! is a maximum of `t` so far, not necessarily the last one: as long as a new maximum exceeds it by less than 8, so that
//! probabilities stay below 2^8, nothing is rescaled.

use lacewing_core::atoms::Element;
use lacewing_core::prelude::*;

use super::{Geometry, LN_2, any_large, causal_limit};
use crate::tiles::{CHUNK, swizzled};

/// Warps of a block, each with its own query rows.
const WARPS: usize = 4;
/// Threads of a block.
const THREADS: usize = WARPS * 32;
/// How far, in powers of two, scores may exceed their reference: probabilities up to `2^SLACK` fit every type.
const SLACK: f32 = 8.0;

/// How a block of four warps divides its work: bounded by registers, since accumulators take `rows * D` and scores
/// `rows * keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Query rows of a block. What a warp reads of K and V serves all of its rows.
    rows: usize,
    /// Keys of a tile.
    keys: usize,
    /// Stages of K and V in shared memory.
    stages: usize,
    /// Whether Q stays in registers; else it is read from shared memory for each tile.
    q_in_registers: bool,
}

impl Tiling {
    /// 64 query rows a block: what short sequences and few heads need.
    #[must_use]
    pub fn small(geometry: &Geometry) -> Self {
        Tiling { rows: 64, keys: 64, ..Self::large(geometry) }
    }

    /// 128 query rows a block, which read each key and value half as often; 64 where registers do not suffice.
    #[must_use]
    pub fn large(geometry: &Geometry) -> Self {
        match geometry.width {
            ..=64 => Tiling { rows: 128, keys: 64, stages: 2, q_in_registers: true },
            65..=128 => Tiling { rows: 128, keys: 32, stages: 2, q_in_registers: false },
            _ => Tiling { rows: 64, keys: 64, stages: 1, q_in_registers: false },
        }
    }

    /// Large blocks where there are enough of them to keep the largest chip busy, else small ones. `heads` are those of all
    /// sequences.
    #[must_use]
    pub fn for_queries(geometry: &Geometry, seqlen_q: usize, heads: usize) -> Self {
        /// Two blocks for each of an H200's 132 multiprocessors.
        const BUSY: usize = 264;
        let large = Self::large(geometry);
        let blocks = seqlen_q.div_ceil(large.rows).saturating_mul(heads);
        if blocks >= BUSY { large } else { Self::small(geometry) }
    }

    /// Query rows of a block.
    #[must_use]
    pub fn block_m(&self) -> usize {
        self.rows
    }

    /// Keys of a tile.
    #[must_use]
    pub fn block_n(&self) -> usize {
        self.keys
    }
}

/// The atom of both products.
type Atom<T> = MmaSync<16, 8, 16, T>;

/// What a row of scores needs to become probabilities; one of each for each row of the thread.
#[derive(Carried)]
struct Rows {
    /// The score (before scaling) that the row's probabilities refer to; -inf while it has seen no key.
    reference: Vec<F32>,
    /// Sum of the probabilities in this thread's columns.
    sum: Vec<F32>,
}

/// The thread's row that an element belongs to: rows of a warp are 8 apart.
fn row_of(element: &Element) -> usize {
    element.row / 8
}

/// A reference, or 0 for a row without a visible key so far: subtracting that keeps -inf - -inf out.
#[device]
fn finite(reference: F32) -> F32 {
    (reference == f32::NEG_INFINITY).select(F32::from(0.0), reference)
}

/// Online softmax of a tile of scores, which become probabilities; rescales the accumulators where a row's reference
/// changes.
#[device]
fn softmax<T: MmaElement>(s: &mut FragmentC<Atom<T>>, acc: &mut FragmentC<Atom<T>>, rows: &mut Rows, scale: F32) {
    let count = rows.sum.len();
    let elements = s.elements();

    // A thread's part of each row in two chains, then the quad's.
    let mut maxima = Vec::new();
    for row in range_constexpr(count) {
        let mut chains = [F32::from(f32::NEG_INFINITY); 2];
        for (at, e) in constexpr(elements.iter().filter(|e| row_of(e) == row).enumerate()) {
            let value = s.get(e.atom, e.value);
            chains[at % 2] = if const_expr(at < 2) { value } else { chains[at % 2].max(value) };
        }
        let mut max = chains[0].max(chains[1]);
        max = max.max(shfl_xor(max, 1));
        max = max.max(shfl_xor(max, 2));
        maxima.push(max);
    }

    // Rows whose new maximum leaves the slack get it as their reference, as does the first one of a row. Differences are
    // taken before they are scaled: of large scores, products would lose them.
    let mut grown = Vec::new();
    let mut some = Bool::from(false);
    for row in range_constexpr(count) {
        let first = (rows.reference[row] == f32::NEG_INFINITY) & (maxima[row] > f32::NEG_INFINITY);
        let grows = first | ((maxima[row] - finite(rows.reference[row])) * scale > SLACK);
        some |= grows;
        grown.push(grows);
    }
    if any(some) {
        for row in range_constexpr(count) {
            let new = grown[row].select(maxima[row], finite(rows.reference[row]));
            let factor = grown[row].select(((rows.reference[row] - new) * scale).exp2_fast(), F32::from(1.0));
            rows.reference[row] = grown[row].select(maxima[row], rows.reference[row]);
            rows.sum[row] *= factor;
            for e in constexpr(acc.elements().iter().filter(|e| row_of(e) == row)) {
                acc.set(e.atom, e.value, acc.get(e.atom, e.value) * factor);
            }
        }
    }

    // p = 2^(scale s - reference) by one fused multiply-add and one exponential; a large reference is taken out of the
    // scores before they are scaled.
    let mut references = Vec::new();
    let mut shifts = Vec::new();
    for row in range_constexpr(count) {
        references.push(finite(rows.reference[row]));
        shifts.push(-(references[row] * scale));
    }
    if any_large(&shifts) {
        for e in constexpr(&elements) {
            s.set(e.atom, e.value, s.get(e.atom, e.value) - references[row_of(e)]);
        }
        for row in range_constexpr(count) {
            shifts[row] = F32::from(0.0);
        }
    }
    for row in range_constexpr(count) {
        let mut sums = [F32::from(0.0); 2];
        for (at, e) in constexpr(elements.iter().filter(|e| row_of(e) == row).enumerate()) {
            let p = s.get(e.atom, e.value).fma(scale, shifts[row]).exp2_fast();
            s.set(e.atom, e.value, p);
            sums[at % 2] = if const_expr(at < 2) { p } else { sums[at % 2] + p };
        }
        rows.sum[row] += sums[0] + sums[1];
    }
}

/// Forward attention. Q and O are `[B, Hq, Sq, D]`, K and V `[B, Hkv, Sk, D]` with any strides; query head
/// `h` reads key head `h / (Hq / Hkv)`. Keys from `kv_len[b]` on are padding. The grid is one block for each
/// tile of query rows, each head and each sequence, flattened in x: with tiles innermost, or, where causal, with the last
/// tiles of all heads first, since these have the most keys.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn fmha_fwd_mma<T: MmaElement>(
    #[comptime] geometry: Geometry,
    #[comptime] tiling: Tiling,
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    scale: F32,
) {
    let (head_dim, width) = (geometry.head_dim, geometry.width);
    let Tiling { rows: block_m, keys: block_n, stages, q_in_registers } = tiling;
    let vector = geometry.vector();

    let (seqlen_q, seqlen_kv) = (q.extent(2), k.extent(2));
    let m_blocks = (seqlen_q + (block_m as i32 - 1)) / (block_m as i32);
    let block = block_id(X);
    let (m_block, row_of_heads) = if const_expr(geometry.causal) {
        let heads = q.extent(0) * q.extent(1);
        (m_blocks - 1 - block / heads, block % heads)
    } else {
        (block % m_blocks, block / m_blocks)
    };
    let first_row = m_block * (block_m as i32);
    let (head, batch) = (row_of_heads % q.extent(1), row_of_heads / q.extent(1));
    let head_kv = head / (q.extent(1) / k.extent(1));

    // A length that is no length must not lead out of K.
    let keys = kv_len.at(batch).load().max(0).min(seqlen_kv);
    let visible = if const_expr(geometry.causal) {
        keys.min(causal_limit(first_row + (block_m as i32 - 1), seqlen_q, seqlen_kv))
    } else {
        keys
    };
    let tiles = (visible.max(0) + (block_n as i32 - 1)) / (block_n as i32);

    let q_tile = shared_tensor::<T>("q", swizzled(block_m, width, 1)).stage(0);
    let k_tiles = shared_tensor::<T>("k", swizzled(block_n, width, stages));
    let v_tiles = shared_tensor::<T>("v", swizzled(block_n, width, stages));

    // Rows beyond the last key, and columns beyond the head dimension, become zero: what is masked must not bring in NaN
    // by `0 * NaN`.
    let rows_of = TiledCopy::<T>::rows(CopyAtom::CpAsync, THREADS, width, CHUNK);
    let (k_head, v_head) = (k.matrix((batch, head_kv)), v.matrix((batch, head_kv)));
    let (k_head, v_head) = (k_head.with_extent(0, keys), v_head.with_extent(0, keys));
    let fill = |from: Tensor<T, 2>, to: &SharedTensor<T>, tile: I32, stage: I32| {
        let from = from.tile([block_n, width], (tile, 0)).vectors(vector).with_extent(1, head_dim);
        copy(&rows_of, &rows_of.partition_global(&from), &rows_of.partition_shared(&to.stage(stage)));
    };
    let q_head = q.matrix((batch, head)).tile([block_m, width], (m_block, 0)).vectors(vector).with_extent(1, head_dim);
    copy(&rows_of, &rows_of.partition_global(&q_head), &rows_of.partition_shared(&q_tile));
    fill(k_head, &k_tiles, I32::from(0), I32::from(0));
    if const_expr(stages == 2) {
        fill(v_head, &v_tiles, I32::from(0), I32::from(0));
    }
    cp_async_commit();

    let mma = TiledMma::<Atom<T>>::new([WARPS, 1]);
    let mut acc = mma.accumulators(block_m, width);
    let count = block_m / WARPS / 8;
    let mut rows = Rows { reference: vec![F32::from(f32::NEG_INFINITY); count], sum: vec![F32::from(0.0); count] };
    let [row_in_tile, column_in_tile] = mma.thread_coordinate(block_m, block_n);
    let row = first_row + row_in_tile;
    let q_part = mma.partition_a(&q_tile);

    // The largest score is what scaling by a positive number leaves the largest: of a negative scale, the sign goes to
    // Q. (0 becomes tiny, so that -inf times it is no NaN.)
    if scale < 0.0 {
        cp_async_wait(0);
        barrier();
        rows_of.partition_shared(&q_tile).map(&rows_of, |x| -x);
        barrier();
    }
    let scale_log2 = (scale.abs() * std::f32::consts::LOG2_E).max(f32::MIN_POSITIVE);

    let mut q_fragments = Vec::new();
    if const_expr(q_in_registers) {
        cp_async_wait(0);
        barrier();
        for step in range_constexpr(q_part.k_steps()) {
            q_fragments.push(q_part.load(step));
        }
    }

    for tile in range(tiles) {
        let stage = if const_expr(stages == 2) { tile % 2 } else { I32::from(0) };
        let first_key = tile * (block_n as i32);
        cp_async_wait(0);
        // Keys `tile` (with two stages, values too) are there for all warps, and all are done with what is filled next.
        barrier();
        if const_expr(stages == 1) {
            fill(v_head, &v_tiles, tile, stage);
        } else if tile + 1 < tiles {
            fill(k_head, &k_tiles, tile + 1, 1 - stage);
            fill(v_head, &v_tiles, tile + 1, 1 - stage);
        }
        cp_async_commit();

        // S = Q K'.
        let mut s = mma.accumulators(block_m, block_n);
        let k_part = mma.partition_b(&k_tiles.stage(stage));
        for step in range_constexpr(k_part.k_steps()) {
            if const_expr(q_in_registers) {
                gemm(&q_fragments[step], &k_part.load(step), &mut s);
            } else {
                gemm(&q_part.load(step), &k_part.load(step), &mut s);
            }
        }
        if const_expr(stages == 1) {
            cp_async_wait(0);
            // The values are there for all warps, and all are done with the keys.
            barrier();
            if tile + 1 < tiles {
                fill(k_head, &k_tiles, tile + 1, stage);
            }
            cp_async_commit();
        }

        // Only tiles that reach past the last key or over the diagonal have something to mask.
        let mut masked = first_key + (block_n as i32) > keys;
        if const_expr(geometry.causal) {
            masked |= first_key + (block_n as i32) > causal_limit(first_row, seqlen_q, seqlen_kv);
        }
        if masked {
            let first_column = first_key + column_in_tile;
            for at in range_constexpr(count) {
                let limit = if const_expr(geometry.causal) {
                    keys.min(causal_limit(row + ((at * 8) as i32), seqlen_q, seqlen_kv))
                } else {
                    keys
                };
                // What the row sees from the thread's first column on.
                let seen = limit - first_column;
                for e in constexpr(s.elements().iter().filter(|e| row_of(e) == at)) {
                    let score = s.get(e.atom, e.value);
                    s.set(e.atom, e.value, (seen > (e.column as i32)).select(score, F32::from(f32::NEG_INFINITY)));
                }
            }
        }

        softmax(&mut s, &mut acc, &mut rows, scale_log2);

        // O += P V. Two neighbouring accumulators of S are one A fragment of P: no data moves.
        let p = s.to_a();
        let v_part = mma.partition_b(&v_tiles.stage(stage).transposed());
        for step in range_constexpr(v_part.k_steps()) {
            gemm(&p.step(step), &v_part.load(step), &mut acc);
        }
    }
    // The last group may be empty, but a block must not end with copies in flight; and without keys this is where Q
    // arrives.
    cp_async_wait(0);
    barrier();

    let lane = lane_id();
    for at in range_constexpr(count) {
        let mut total = rows.sum[at];
        total += shfl_xor(total, 1);
        total += shfl_xor(total, 2);
        let empty = total == 0.0;
        let inverse = empty.select(F32::from(0.0), F32::from(1.0) / empty.select(F32::from(1.0), total));
        for e in constexpr(acc.elements().iter().filter(|e| row_of(e) == at)) {
            acc.set(e.atom, e.value, acc.get(e.atom, e.value) * inverse);
        }
        let row = row + ((at * 8) as i32);
        if row < seqlen_q && lane % 4 == 0 {
            let value = (rows.reference[at] * scale_log2 + total.log2()) * LN_2;
            lse.at((batch, head, row)).store(empty.select(F32::from(f32::NEG_INFINITY), value));
        }
    }
    // O goes through the memory of Q, whose rows no other warp reads, to leave in rows of 16 bytes.
    mma.store_c(&acc, &q_tile);
    barrier();
    let o_head = o.matrix((batch, head)).tile([block_m, width], (m_block, 0)).vectors(vector).with_extent(1, head_dim);
    copy(&rows_of, &rows_of.partition_shared(&q_tile), &rows_of.partition_global(&o_head));
}
