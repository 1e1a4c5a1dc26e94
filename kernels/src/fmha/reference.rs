//! `fmha_ref`: attention as its definition reads, the oracle on a device.
//!
//! One block computes one query row. Every thread scores one key of a tile; the tile's scores go through
//! shared memory; then every thread adds up its own columns of O. All arithmetic is f32, in key order.

use lacewing_core::prelude::*;

use super::{Geometry, LN_2, causal_limit};

/// Threads of a block, which is also the number of keys of a tile.
pub(super) const THREADS: usize = 64;

/// Forward attention with the arguments of [`super::mma::fmha_fwd_mma`]; the grid is one block for each
/// query row, head and sequence, flattened in x with rows innermost.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn fmha_ref<T: Float, Out: Float>(
    #[comptime] geometry: Geometry,
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMut<Out, 4>,
    lse: TensorMut<F32, 3>,
    scale: F32,
) {
    let (seqlen_q, seqlen_kv) = (q.extent(2), k.extent(2));
    let block = block_id(X);
    let row = block % seqlen_q;
    let head = block / seqlen_q % q.extent(1);
    let batch = block / seqlen_q / q.extent(1);
    let head_kv = head / (q.extent(1) / k.extent(1));
    let thread = thread_id(X);

    // A length that is no length must not lead out of K.
    let mut keys = kv_len.at(batch).load().max(0).min(seqlen_kv);
    if const_expr(geometry.causal) {
        keys = keys.min(causal_limit(row, seqlen_q, seqlen_kv));
    }

    let scores = shared_array_named::<F32>("scores", THREADS);
    let columns = geometry.head_dim.div_ceil(THREADS);
    let mut acc = vec![F32::from(0.0); columns];
    let mut max = F32::from(f32::NEG_INFINITY);
    let mut sum = F32::from(0.0);

    for first in range(0, keys, THREADS) {
        let key = first + thread;
        let mut score = F32::from(f32::NEG_INFINITY);
        if key < keys {
            let mut dot = F32::from(0.0);
            for d in range(geometry.head_dim) {
                let a = q.at((batch, head, row, d)).load().cast::<F32>();
                let b = k.at((batch, head_kv, key, d)).load().cast::<F32>();
                dot = a.fma(b, dot);
            }
            score = dot * scale;
        }
        scores.at(thread).store(score);
        barrier();

        let here = (keys - first).min(THREADS as i32);
        let mut new_max = max;
        for j in range(here) {
            new_max = new_max.max(scores.at(j).load());
        }
        let rescale = (max - new_max).exp();
        max = new_max;
        sum *= rescale;
        for c in range_constexpr(columns) {
            acc[c] *= rescale;
        }
        for j in range(here) {
            let p = (scores.at(j).load() - max).exp();
            sum += p;
            for c in range_constexpr(columns) {
                let d = thread + ((c * THREADS) as i32);
                if d < (geometry.head_dim as i32) {
                    acc[c] = p.fma(v.at((batch, head_kv, first + j, d)).load().cast::<F32>(), acc[c]);
                }
            }
        }
        // The scores are read by all before the next tile overwrites them.
        barrier();
    }

    let empty = sum == 0.0;
    let total = empty.select(F32::from(1.0), sum);
    for c in range_constexpr(columns) {
        let d = thread + ((c * THREADS) as i32);
        if d < (geometry.head_dim as i32) {
            o.at((batch, head, row, d)).store((acc[c] / total).cast::<Out>());
        }
    }
    if thread == 0 {
        let value = empty.select(F32::from(f32::NEG_INFINITY), max + total.log2() * LN_2);
        lse.at((batch, head, row)).store(value);
    }
}
