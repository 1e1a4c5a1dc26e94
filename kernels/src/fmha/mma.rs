//! `fmha_fwd` for NVIDIA chips: FlashAttention-2 with `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! One block of four warps computes 64 query rows of one head; each warp owns 16 of them, so that a row's
//! maximum and sum never leave a quad of lanes. Keys and values come in tiles, double buffered: while tile
//! `j` is multiplied, tile `j + 1` is on its way to shared memory.
//!
//! Formulas: T. Dao, "FlashAttention-2" (2023), algorithm 1, in base 2: with `t = scale * log2(e) * q.k`,
//! `m = max t`, `p = 2^(t - m)`, `l = sum p`, the result is `O = P V / l` and `LSE = (m + log2 l) * ln 2`.

use lacewing_core::prelude::*;
use lacewing_core::types::InShared;

use super::{Geometry, LN_2, causal_limit};

/// Query rows of a block.
pub(super) const BLOCK_M: usize = 64;
/// Threads of a block: one warp for each 16 query rows.
pub(super) const THREADS: usize = BLOCK_M / 16 * 32;
/// Elements of one 16-byte copy.
const CHUNK: usize = 8;

/// Keys of a tile: as many as leave room for two stages and the accumulators.
pub(super) const fn block_n(head_dim: usize) -> usize {
    if head_dim > 128 { 32 } else { 64 }
}

/// A tile of rows in shared memory. Rows are 16 bytes longer than their elements, so that the eight rows
/// that one `ldmatrix` phase reads lie in eight different groups of four banks.
#[derive(Clone)]
struct Tile<T: Scalar> {
    memory: SharedSlice<T>,
    pitch: usize,
}

impl<T: MmaElement> Tile<T> {
    fn new(name: &'static str, rows: usize, width: usize) -> Self {
        let pitch = width + CHUNK;
        Tile { memory: shared_array_named::<T>(name, rows * pitch), pitch }
    }

    /// The element in a row and column.
    #[device]
    fn at(&self, row: I32, column: I32) -> Place<T, InShared> {
        self.memory.at(row * (self.pitch as i32) + column)
    }
}

/// Copies `rows` rows of one head, from `first` on, to row `to` of a tile. Rows from `limit` on, and columns
/// beyond the head dimension, become zero: what is masked must not bring in NaN by `0 * NaN`.
#[device]
#[allow(clippy::too_many_arguments, reason = "a copy has two ends, and each has its bounds")]
fn copy_rows<T: MmaElement>(
    source: Tensor<T, 4>,
    batch: I32,
    head: I32,
    first: I32,
    limit: I32,
    tile: &Tile<T>,
    to: I32,
    rows: usize,
    geometry: &Geometry,
) {
    let chunks_per_row = geometry.width / CHUNK;
    let chunks = rows * chunks_per_row;
    let thread = thread_id(X);
    for round in range_constexpr(chunks.div_ceil(THREADS)) {
        let chunk = thread + ((round * THREADS) as i32);
        let row = chunk / (chunks_per_row as i32);
        let column = chunk % (chunks_per_row as i32) * (CHUNK as i32);
        let inside = const_expr((round + 1) * THREADS <= chunks) || row < (rows as i32);
        if inside {
            let target = tile.at(to + row, column);
            let valid = first + row < limit && column < (geometry.head_dim as i32);
            if const_expr(geometry.vectorized) {
                cp_async::<16>(target, source.at((batch, head, first + row, column)), valid);
            } else {
                let mut values = [T::from(0.0); CHUNK];
                for element in range_constexpr(CHUNK) {
                    let place = source.at((batch, head, first + row, column + (element as i32)));
                    values[element] = place.load_if(valid, T::from(0.0));
                }
                target.store_vec(Vector::<T, CHUNK>::from(values));
            }
        }
    }
}

/// Forward attention. Q and O are `[B, Hq, Sq, D]`, K and V `[B, Hkv, Sk, D]` with any strides; query head
/// `h` reads key head `h / (Hq / Hkv)`. Keys from `kv_len[b]` on are padding. The grid is one block for each
/// tile of 64 query rows, each head and each sequence, flattened in x with tiles innermost.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn fmha_fwd_mma<T: MmaElement>(
    #[comptime] geometry: Geometry,
    q: Tensor<T, 4>,
    k: Tensor<T, 4>,
    v: Tensor<T, 4>,
    kv_len: Tensor<I32, 1>,
    o: TensorMut<T, 4>,
    lse: TensorMut<F32, 3>,
    scale: F32,
) {
    let block_n = block_n(geometry.head_dim);
    let k_steps = geometry.width / 16;
    let n_tiles = block_n / 8;
    let d_tiles = geometry.width / 8;

    let (seqlen_q, seqlen_kv) = (q.extent(2), k.extent(2));
    let m_blocks = (seqlen_q + (BLOCK_M as i32 - 1)) / (BLOCK_M as i32);
    let block = block_id(X);
    let first_row = block % m_blocks * (BLOCK_M as i32);
    let head = block / m_blocks % q.extent(1);
    let batch = block / m_blocks / q.extent(1);
    let head_kv = head / (q.extent(1) / k.extent(1));

    let lane = lane_id();
    let warp = warp_id();
    // Row and column of this lane's first accumulator element (PTX ISA, mma.m16n8k16: groupID, threadID_in_group).
    let row_in_warp = lane / 4;
    let column_in_tile = lane % 4 * 2;
    let row = first_row + warp * 16 + row_in_warp;

    // A length that is no length must not lead out of K.
    let keys = kv_len.at(batch).load().max(0).min(seqlen_kv);
    let visible = if const_expr(geometry.causal) {
        keys.min(causal_limit(first_row + (BLOCK_M as i32 - 1), seqlen_q, seqlen_kv))
    } else {
        keys
    };
    let tiles = (visible.max(0) + (block_n as i32 - 1)) / (block_n as i32);

    let q_tile = Tile::<T>::new("q", BLOCK_M, geometry.width);
    let k_tile = Tile::<T>::new("k", 2 * block_n, geometry.width);
    let v_tile = Tile::<T>::new("v", 2 * block_n, geometry.width);

    copy_rows(q, batch, head, first_row, seqlen_q, &q_tile, I32::from(0), BLOCK_M, &geometry);
    copy_rows(k, batch, head_kv, I32::from(0), keys, &k_tile, I32::from(0), block_n, &geometry);
    copy_rows(v, batch, head_kv, I32::from(0), keys, &v_tile, I32::from(0), block_n, &geometry);
    cp_async_commit();

    let scale_log2 = scale * std::f32::consts::LOG2_E;
    let mut acc = vec![[F32::from(0.0); 4]; d_tiles];
    // Two rows a lane: `row` and `row + 8`.
    let mut max = [F32::from(f32::NEG_INFINITY); 2];
    let mut sum = [F32::from(0.0); 2];

    for tile in range(tiles) {
        let stage = tile % 2 * (block_n as i32);
        let first_key = tile * (block_n as i32);
        cp_async_wait(0);
        // Tile `tile` is there for all warps, and all are done with the stage that is filled next.
        barrier();
        let next_key = first_key + (block_n as i32);
        let next_stage = (block_n as i32) - stage;
        if tile + 1 < tiles {
            copy_rows(k, batch, head_kv, next_key, keys, &k_tile, next_stage, block_n, &geometry);
            copy_rows(v, batch, head_kv, next_key, keys, &v_tile, next_stage, block_n, &geometry);
        }
        cp_async_commit();

        // S = Q K^T: 16 rows x block_n keys a warp.
        let mut s = vec![[F32::from(0.0); 4]; n_tiles];
        for step in range_constexpr(k_steps) {
            let column = lane / 16 * 8 + ((step * 16) as i32);
            let a = ldmatrix_x4(q_tile.at(warp * 16 + lane % 16, column));
            for pair in range_constexpr(n_tiles / 2) {
                let key = stage + ((pair * 16) as i32) + lane % 8 + lane / 16 * 8;
                let column = lane / 8 % 2 * 8 + ((step * 16) as i32);
                let b = ldmatrix_x4(k_tile.at(key, column));
                s[2 * pair] = mma_m16n8k16(a, [b[0], b[1]], s[2 * pair]);
                s[2 * pair + 1] = mma_m16n8k16(a, [b[2], b[3]], s[2 * pair + 1]);
            }
        }

        for t in range_constexpr(n_tiles) {
            for e in range_constexpr(4) {
                s[t][e] *= scale_log2;
            }
        }
        // Only tiles that reach past the last key or over the diagonal have something to mask.
        let mut masked = first_key + (block_n as i32) > keys;
        if const_expr(geometry.causal) {
            masked |= first_key + (block_n as i32) > causal_limit(first_row, seqlen_q, seqlen_kv);
        }
        if masked {
            for e in range_constexpr(4) {
                let limit = if const_expr(geometry.causal) {
                    keys.min(causal_limit(row + ((e / 2 * 8) as i32), seqlen_q, seqlen_kv))
                } else {
                    keys
                };
                for t in range_constexpr(n_tiles) {
                    let key = first_key + column_in_tile + ((t * 8 + e % 2) as i32);
                    s[t][e] = (key < limit).select(s[t][e], F32::from(f32::NEG_INFINITY));
                }
            }
        }

        // Online softmax of the two rows.
        for half in range_constexpr(2) {
            let mut tile_max = s[0][2 * half].max(s[0][2 * half + 1]);
            for t in range_constexpr(1, n_tiles) {
                tile_max = tile_max.max(s[t][2 * half]).max(s[t][2 * half + 1]);
            }
            tile_max = tile_max.max(shfl_xor(tile_max, 1));
            tile_max = tile_max.max(shfl_xor(tile_max, 2));
            let new_max = max[half].max(tile_max);
            // A row without a visible key so far: subtracting 0 keeps -inf - -inf out.
            let base = (new_max == f32::NEG_INFINITY).select(F32::from(0.0), new_max);
            let rescale = (max[half] - base).exp2_fast();
            max[half] = new_max;
            let mut tile_sum = F32::from(0.0);
            for t in range_constexpr(n_tiles) {
                for e in range_constexpr(2 * half, 2 * half + 2) {
                    s[t][e] = (s[t][e] - base).exp2_fast();
                    tile_sum += s[t][e];
                }
            }
            sum[half] = sum[half] * rescale + tile_sum;
            for t in range_constexpr(d_tiles) {
                acc[t][2 * half] *= rescale;
                acc[t][2 * half + 1] *= rescale;
            }
        }

        // O += P V. Two neighbouring accumulator tiles of S are one A fragment of P: no data moves.
        for step in range_constexpr(block_n / 16) {
            let (lo, hi) = (s[2 * step], s[2 * step + 1]);
            let p =
                [pack::<T>(lo[0], lo[1]), pack::<T>(lo[2], lo[3]), pack::<T>(hi[0], hi[1]), pack::<T>(hi[2], hi[3])];
            for pair in range_constexpr(d_tiles / 2) {
                let key = stage + ((step * 16) as i32) + lane % 16;
                let column = lane / 16 * 8 + ((pair * 16) as i32);
                let b = ldmatrix_x4_trans(v_tile.at(key, column));
                acc[2 * pair] = mma_m16n8k16(p, [b[0], b[1]], acc[2 * pair]);
                acc[2 * pair + 1] = mma_m16n8k16(p, [b[2], b[3]], acc[2 * pair + 1]);
            }
        }
    }
    // The last group may be empty, but a block must not end with copies in flight.
    cp_async_wait(0);

    for half in range_constexpr(2) {
        let row = row + ((half * 8) as i32);
        let mut total = sum[half];
        total += shfl_xor(total, 1);
        total += shfl_xor(total, 2);
        let empty = total == 0.0;
        let inverse = empty.select(F32::from(0.0), F32::from(1.0) / empty.select(F32::from(1.0), total));
        if row < seqlen_q {
            for t in range_constexpr(geometry.head_dim / 8) {
                let column = column_in_tile + ((t * 8) as i32);
                let pair = pack::<T>(acc[t][2 * half] * inverse, acc[t][2 * half + 1] * inverse);
                let place = o.at((batch, head, row, column));
                if const_expr(geometry.vectorized) {
                    place.store_vec(pair);
                } else {
                    place.store(pair.get(0));
                    o.at((batch, head, row, column + 1)).store(pair.get(1));
                }
            }
            if lane % 4 == 0 {
                let value = empty.select(F32::from(f32::NEG_INFINITY), (max[half] + total.log2()) * LN_2);
                lse.at((batch, head, row)).store(value);
            }
        }
    }
}

/// Two neighbouring elements of a row, rounded to nearest even.
#[device]
fn pack<T: MmaElement>(low: F32, high: F32) -> Vector<T, 2> {
    Vector::<F32, 2>::from([low, high]).cast::<T>()
}
