//! `fmha_fwd` for AMD chips: FlashAttention-2 with the matrix instruction 32x32x8.
//!
//! One block of four waves computes 128 query rows of one head, 32 a wave. The products are transposed:
//! S' = K Q' has keys as rows and queries as columns, so that a lane holds 16 scores of *one* query and a
//! row's maximum needs one exchange between the two halves of a wave. The same layout is the B operand of
//! O' = V' P': probabilities go into the second product without leaving their registers (CDNA3 ISA, matrix
//! instructions: `B[k][n]` is in lane n + 32 (k / 4), element k % 4; `D[m][n]` in lane n + 32 ((m / 4) % 2),
//! register 4 (m / 8) + m % 4).

use lacewing_core::prelude::*;
use lacewing_core::types::GlobalRead;

use super::{Geometry, LN_2, causal_limit};

/// Query rows of a block.
pub(super) const BLOCK_M: usize = 128;
/// Threads of a block: one wave for each 32 query rows.
pub(super) const THREADS: usize = BLOCK_M / 32 * 64;
/// Elements that a thread moves at once.
const CHUNK: usize = 8;

/// Keys of a tile: as many as fit in 64 KiB of LDS with their values.
pub(super) const fn block_n(head_dim: usize) -> usize {
    if head_dim > 128 { 32 } else { 64 }
}

/// Loads `CHUNK` neighbouring elements of a row; zeros where not valid.
#[device]
fn load_chunk<T: MmaElement>(place: Place<T, GlobalRead>, stride: I64, valid: Bool, vectorized: bool) -> [T; CHUNK] {
    let mut values = [T::from(0.0); CHUNK];
    if const_expr(vectorized) {
        let zeros = Vector::<T, CHUNK>::splat(T::from(0.0));
        values = place.load_vec_if::<CHUNK>(valid, zeros).to_array();
    } else {
        for element in range_constexpr(CHUNK) {
            values[element] = place.offset(stride * (element as i64)).load_if(valid, T::from(0.0));
        }
    }
    values
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
    let k_steps = head_dim / 8;
    let d_tiles = head_dim.div_ceil(32);
    let vectorized = geometry.vectorized;

    let (seqlen_q, seqlen_kv) = (q.extent(2), k.extent(2));
    let m_blocks = (seqlen_q + (BLOCK_M as i32 - 1)) / (BLOCK_M as i32);
    let block = block_id(X);
    let first_row = block % m_blocks * (BLOCK_M as i32);
    let head = block / m_blocks % q.extent(1);
    let batch = block / m_blocks / q.extent(1);
    let head_kv = head / (q.extent(1) / k.extent(1));

    let thread = thread_id(X);
    let lane = lane_id();
    // A lane's query, and which half of each group of eight keys (or columns of O) it holds.
    let row = first_row + warp_id() * 32 + lane % 32;
    let half = lane / 32;
    let row_exists = row < seqlen_q;

    // A length that is no length must not lead out of K.
    let keys = kv_len.at(batch).load().max(0).min(seqlen_kv);
    let limit = if const_expr(geometry.causal) { keys.min(causal_limit(row, seqlen_q, seqlen_kv)) } else { keys };
    let visible = if const_expr(geometry.causal) {
        keys.min(causal_limit(first_row + (BLOCK_M as i32 - 1), seqlen_q, seqlen_kv))
    } else {
        keys
    };

    // Q' as B operand, for the whole kernel.
    let mut q_fragments = Vec::new();
    for step in range_constexpr(k_steps) {
        let column = half * 4 + ((step * 8) as i32);
        let place = q.at((batch, head, row, column));
        let mut values = [T::from(0.0); 4];
        if const_expr(vectorized) {
            let zeros = Vector::<T, 4>::splat(T::from(0.0));
            values = place.load_vec_if::<4>(row_exists, zeros).to_array();
        } else {
            for element in range_constexpr(4) {
                values[element] = place.offset(q.stride(3) * (element as i64)).load_if(row_exists, T::from(0.0));
            }
        }
        q_fragments.push(Vector::<T, 4>::from(values));
    }

    // Pitches are odd multiples of 16 bytes, which spreads rows over the banks.
    let k_pitch = head_dim + CHUNK;
    let v_pitch = block_n + CHUNK;
    let k_tile = shared_array_named::<T>("k", block_n * k_pitch);
    // V is kept transposed, columns of V as rows: its A operand is four neighbouring keys.
    let v_tile = shared_array_named::<T>("v", d_tiles * 32 * v_pitch);

    let scale_log2 = scale * std::f32::consts::LOG2_E;
    let mut acc = vec![[F32::from(0.0); 16]; d_tiles];
    let mut max = F32::from(f32::NEG_INFINITY);
    let mut sum = F32::from(0.0);

    for first_key in range(0, visible, block_n) {
        // All waves are done with the tile before.
        barrier();
        let k_chunks = block_n * head_dim / CHUNK;
        for round in range_constexpr(k_chunks.div_ceil(THREADS)) {
            let chunk = thread + ((round * THREADS) as i32);
            if chunk < (k_chunks as i32) {
                let key = chunk / ((head_dim / CHUNK) as i32);
                let column = chunk % ((head_dim / CHUNK) as i32) * (CHUNK as i32);
                let valid = first_key + key < keys;
                let place = k.at((batch, head_kv, first_key + key, column));
                let values = load_chunk(place, k.stride(3), valid, vectorized);
                k_tile.at(key * (k_pitch as i32) + column).store_vec(Vector::<T, CHUNK>::from(values));
            }
        }
        let v_chunks = block_n * d_tiles * 32 / CHUNK;
        for round in range_constexpr(v_chunks.div_ceil(THREADS)) {
            let chunk = thread + ((round * THREADS) as i32);
            if chunk < (v_chunks as i32) {
                // Neighbouring threads take neighbouring keys, so that the transposed stores are neighbours too.
                let key = chunk % (block_n as i32);
                let column = chunk / (block_n as i32) * (CHUNK as i32);
                let valid = first_key + key < keys && column < (head_dim as i32);
                let place = v.at((batch, head_kv, first_key + key, column));
                let values = load_chunk(place, v.stride(3), valid, vectorized);
                for element in range_constexpr(CHUNK) {
                    v_tile.at((column + (element as i32)) * (v_pitch as i32) + key).store(values[element]);
                }
            }
        }
        barrier();

        // S' = K Q': 32 keys x 32 queries a tile.
        let mut s = vec![[F32::from(0.0); 16]; block_n / 32];
        for tile in range_constexpr(block_n / 32) {
            for step in range_constexpr(k_steps) {
                let key = lane % 32 + ((tile * 32) as i32);
                let column = half * 4 + ((step * 8) as i32);
                let a = k_tile.at(key * (k_pitch as i32) + column).load_vec::<4>();
                s[tile] = mfma_32x32x8(a, q_fragments[step], s[tile]);
            }
        }

        let mut new_max = max;
        for tile in range_constexpr(block_n / 32) {
            for r in range_constexpr(16) {
                let key = first_key + half * 4 + ((tile * 32 + r / 4 * 8 + r % 4) as i32);
                let score = s[tile][r] * scale_log2;
                s[tile][r] = (key < limit).select(score, F32::from(f32::NEG_INFINITY));
                new_max = new_max.max(s[tile][r]);
            }
        }
        new_max = new_max.max(shfl_xor(new_max, 32));
        // A row without a visible key so far: subtracting 0 keeps -inf - -inf out.
        let base = (new_max == f32::NEG_INFINITY).select(F32::from(0.0), new_max);
        let rescale = (max - base).exp2_fast();
        max = new_max;
        let mut tile_sum = F32::from(0.0);
        for tile in range_constexpr(block_n / 32) {
            for r in range_constexpr(16) {
                s[tile][r] = (s[tile][r] - base).exp2_fast();
                tile_sum += s[tile][r];
            }
        }
        sum = sum * rescale + tile_sum;
        for d in range_constexpr(d_tiles) {
            for r in range_constexpr(16) {
                acc[d][r] *= rescale;
            }
        }

        // O' += V' P'.
        for tile in range_constexpr(block_n / 32) {
            for step in range_constexpr(4) {
                let p = Vector::<F32, 4>::from([
                    s[tile][4 * step],
                    s[tile][4 * step + 1],
                    s[tile][4 * step + 2],
                    s[tile][4 * step + 3],
                ])
                .cast::<T>();
                for d in range_constexpr(d_tiles) {
                    let column = lane % 32 + ((d * 32) as i32);
                    let key = half * 4 + ((tile * 32 + step * 8) as i32);
                    let a = v_tile.at(column * (v_pitch as i32) + key).load_vec::<4>();
                    acc[d] = mfma_32x32x8(a, p, acc[d]);
                }
            }
        }
    }

    let total = sum + shfl_xor(sum, 32);
    let empty = total == 0.0;
    let inverse = empty.select(F32::from(0.0), F32::from(1.0) / empty.select(F32::from(1.0), total));
    if row_exists {
        for d in range_constexpr(d_tiles) {
            for group in range_constexpr(4) {
                // Columns come in fours, and the head dimension in eights: a group is inside or outside as a whole.
                if const_expr(d * 32 + group * 8 < head_dim) {
                    let column = half * 4 + ((d * 32 + group * 8) as i32);
                    let place = o.at((batch, head, row, column));
                    let mut values = [F32::from(0.0); 4];
                    for element in range_constexpr(4) {
                        values[element] = acc[d][4 * group + element] * inverse;
                    }
                    let rounded = Vector::<F32, 4>::from(values).cast::<T>();
                    if const_expr(vectorized) {
                        place.store_vec(rounded);
                    } else {
                        for element in range_constexpr(4) {
                            place.offset(o.stride(3) * (element as i64)).store(rounded.get(element));
                        }
                    }
                }
            }
        }
        if half == 0 {
            let value = empty.select(F32::from(f32::NEG_INFINITY), (max + total.log2()) * LN_2);
            lse.at((batch, head, row)).store(value);
        }
    }
}
