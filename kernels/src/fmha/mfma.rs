//! `fmha_fwd` for AMD chips: FlashAttention-2 with the matrix instruction 32x32x8.
//!
//! One block of four waves computes 128 query rows of one head, 32 a wave. The products are transposed:
//! S' = K Q' has keys as rows and queries as columns, so that a lane holds 16 scores of *one* query and a
//! row's maximum needs one exchange between the two halves of a wave. The same layout is the B operand of
//! O' = V' P': probabilities go into the second product without leaving their registers.

use lacewing_core::prelude::*;

use super::{Geometry, LN_2, causal_limit};

/// Query rows of a block.
pub(super) const BLOCK_M: usize = 128;
/// Waves of a block, with 32 query rows each.
const WAVES: usize = BLOCK_M / 32;
/// Threads of a block.
pub(super) const THREADS: usize = WAVES * 64;
/// Elements that a thread moves at once.
const CHUNK: usize = 8;

/// Keys of a tile: as many as fit in 64 KiB of LDS with their values.
pub(super) const fn block_n(head_dim: usize) -> usize {
    if head_dim > 128 { 32 } else { 64 }
}

/// Forward attention with the arguments of [`super::mma::fmha_fwd_mma`]; the grid is one block for each
/// tile of 128 query rows, head and sequence, flattened in x with tiles innermost.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn fmha_fwd_mfma<T: MmaElement>(
    #[comptime] geometry: Geometry,
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    scale: F32,
) {
    let head_dim = geometry.head_dim;
    let block_n = block_n(head_dim);
    // Rows of V' and O': the head dimension rounded up to what the instruction takes.
    let width = head_dim.next_multiple_of(32);
    let vector = geometry.vector();

    let (seqlen_q, seqlen_kv) = (q.extent(2), k.extent(2));
    let m_blocks = (seqlen_q + (BLOCK_M as i32 - 1)) / (BLOCK_M as i32);
    let block = block_id(X);
    let m_block = block % m_blocks;
    let first_row = m_block * (BLOCK_M as i32);
    let head = block / m_blocks % q.extent(1);
    let batch = block / m_blocks / q.extent(1);
    let head_kv = head / (q.extent(1) / k.extent(1));

    // A lane's query, and the first of each group of four keys (or columns of O) that it holds.
    let mma = TiledMma::<Mfma<32, 32, 8, T>>::new([1, WAVES]);
    let [key_in_tile, query] = mma.thread_coordinate(block_n, BLOCK_M);
    let row = first_row + query;

    // A length that is no length must not lead out of K.
    let keys = kv_len.at(batch).load().max(0).min(seqlen_kv);
    let limit = if const_expr(geometry.causal) { keys.min(causal_limit(row, seqlen_q, seqlen_kv)) } else { keys };
    let visible = if const_expr(geometry.causal) {
        keys.min(causal_limit(first_row + (BLOCK_M as i32 - 1), seqlen_q, seqlen_kv))
    } else {
        keys
    };

    // Q' as B operand, for the whole kernel.
    let q_head = q.matrix((batch, head)).tile([BLOCK_M, head_dim], (m_block, 0)).vectors(vector).whole_rows();
    let q_part = mma.partition_b_global(&q_head);
    let mut q_fragments = Vec::new();
    for step in range_constexpr(q_part.k_steps()) {
        q_fragments.push(q_part.load(step));
    }

    // Pitches are odd multiples of 16 bytes, which spreads rows over the banks. V is kept transposed, columns of V as
    // rows: its A operand is four neighbouring keys.
    let k_tile = shared_tensor::<T>("k", layout![(block_n, head_dim); (head_dim + CHUNK, 1)]);
    let v_tile = shared_tensor::<T>("v", layout![(width, block_n); (block_n + CHUNK, 1)]);
    let copy_k = TiledCopy::<T>::rows(CopyAtom::Registers, THREADS, head_dim, CHUNK);
    // Neighbouring threads take neighbouring keys, so that the transposed stores are neighbours too.
    let across = THREADS / block_n;
    let copy_v = TiledCopy::<T>::new(CopyAtom::Registers, layout![(block_n, across)], [1, 32 / across]);
    let (k_part, v_part) = (mma.partition_a(&k_tile), mma.partition_a(&v_tile));
    let (k_head, v_head) = (k.matrix((batch, head_kv)), v.matrix((batch, head_kv)));
    let (k_head, v_head) = (k_head.with_extent(0, keys), v_head.with_extent(0, keys));

    let scale_log2 = scale * std::f32::consts::LOG2_E;
    let mut acc = mma.accumulators(width, BLOCK_M);
    let mut max = F32::from(f32::NEG_INFINITY);
    let mut sum = F32::from(0.0);

    for tile in range((visible.max(0) + (block_n as i32 - 1)) / (block_n as i32)) {
        let first_key = tile * (block_n as i32);
        // All waves are done with the tile before.
        barrier();
        let from = k_head.tile([block_n, head_dim], (tile, 0)).vectors(vector).whole_rows();
        copy(&copy_k, &copy_k.partition_global(&from), &copy_k.partition_shared(&k_tile));
        let from = v_head.tile([block_n, width], (tile, 0)).vectors(vector).with_extent(1, head_dim);
        copy(&copy_v, &copy_v.partition_global(&from), &copy_v.partition_shared(&v_tile.transposed()));
        barrier();

        // S' = K Q'.
        let mut s = mma.accumulators(block_n, BLOCK_M);
        for step in range_constexpr(k_part.k_steps()) {
            gemm(&k_part.load(step), &q_fragments[step], &mut s);
        }

        // Keys that the query sees from the lane's first one on.
        let seen = limit - (first_key + key_in_tile);
        let mut new_max = max;
        for e in constexpr(s.elements()) {
            let score = s.get(e.atom, e.value) * scale_log2;
            let score = (seen > (e.row as i32)).select(score, F32::from(f32::NEG_INFINITY));
            s.set(e.atom, e.value, score);
            new_max = new_max.max(score);
        }
        new_max = new_max.max(shfl_xor(new_max, 32));
        // A row without a visible key so far: subtracting 0 keeps -inf - -inf out.
        let base = (new_max == f32::NEG_INFINITY).select(F32::from(0.0), new_max);
        let rescale = (max - base).exp2_fast();
        max = new_max;
        let mut tile_sum = F32::from(0.0);
        for e in constexpr(s.elements()) {
            let p = (s.get(e.atom, e.value) - base).exp2_fast();
            s.set(e.atom, e.value, p);
            tile_sum += p;
        }
        sum = sum * rescale + tile_sum;
        acc.map(|x| x * rescale);

        // O' += V' P'.
        let p = s.to_b();
        for step in range_constexpr(v_part.k_steps()) {
            gemm(&v_part.load(step), &p.step(step), &mut acc);
        }
    }

    let total = sum + shfl_xor(sum, 32);
    let empty = total == 0.0;
    let inverse = empty.select(F32::from(0.0), F32::from(1.0) / empty.select(F32::from(1.0), total));
    acc.map(|x| x * inverse);
    let o_head = o.matrix((batch, head)).tile([BLOCK_M, width], (m_block, 0)).vectors(vector).with_extent(1, head_dim);
    mma.partition_c(&o_head.transposed()).store(&acc);
    if row < seqlen_q && key_in_tile == 0 {
        let value = empty.select(F32::from(f32::NEG_INFINITY), (max + total.log2()) * LN_2);
        lse.at((batch, head, row)).store(value);
    }
}
