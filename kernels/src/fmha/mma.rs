//! `fmha_fwd` for NVIDIA chips: FlashAttention-2 with `cp.async`, `ldmatrix` and `mma.sync`.
//!
//! A block computes some query rows of one head ([`Tiling`]); each warp owns 16 or 32 of them, so that a row's
//! maximum and sum never leave a quad of lanes. Keys and values come in tiles of 64: a tile of V is on its way to
//! shared memory during Q K^T, the next tile of K during the softmax and P V.
//!
//! Formulas: T. Dao, "FlashAttention-2" (2023), algorithm 1, in base 2: with `c = scale * log2(e)`, `s = q.k`,
//! `m = max s` and `b = m c`, `p = 2^(s c - b)` is one fused multiply-add and one exponential, `l = sum p`, and the result is `O = P V / l` and `LSE = (m c + log2 l) * ln 2`.

use lacewing_core::prelude::*;
use lacewing_core::types::{GlobalRead, InShared};

use super::{Geometry, LARGEST_SHIFT, LN_2, causal_limit};

/// Threads of a block: four warps.
const THREADS: usize = 128;
/// Keys of a tile.
pub(super) const BLOCK_N: usize = 64;
/// Elements of one 16-byte copy.
const CHUNK: usize = 8;

/// How a block of four warps divides its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Tiles of 16 query rows that a warp computes. What it reads of K and V serves them all.
    row_tiles: usize,
    /// Whether Q stays in registers, where there is room for it.
    queries_in_registers: bool,
    /// Whether sums are rescaled only where a row has a new maximum. That spares most of the work and orders the rest: where
    /// registers are short it pays, else the scheduler does more with straight code.
    lazy_rescale: bool,
}

impl Tiling {
    fn new(geometry: &Geometry, row_tiles: usize) -> Self {
        let narrow = geometry.width <= 64;
        Tiling { row_tiles, queries_in_registers: narrow, lazy_rescale: !narrow }
    }

    /// 64 query rows a block: what short sequences and few heads need.
    #[must_use]
    pub fn small(geometry: &Geometry) -> Self {
        Self::new(geometry, 1)
    }

    /// 128 query rows a block, which read each key and value half as often; 64 where registers do not suffice.
    #[must_use]
    pub fn large(geometry: &Geometry) -> Self {
        Self::new(geometry, if geometry.width <= 128 { 2 } else { 1 })
    }

    /// Large blocks where there are enough of them to keep the largest chip busy, else small ones. `heads` are those of all
    /// sequences.
    #[must_use]
    pub fn for_queries(geometry: &Geometry, seqlen_q: usize, heads: usize) -> Self {
        /// Two blocks for each of an H200's 132 multiprocessors.
        const BUSY: usize = 264;
        let large = Self::large(geometry);
        let blocks = seqlen_q.div_ceil(large.block_m()).saturating_mul(heads);
        if blocks >= BUSY { large } else { Self::small(geometry) }
    }

    /// Query rows of a block.
    #[must_use]
    pub fn block_m(&self) -> usize {
        THREADS / 32 * self.row_tiles * 16
    }
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

/// The rows of one head that a block copies tile by tile, as one thread sees them.
#[derive(Clone, Carried)]
struct RowCopy<T: Scalar> {
    /// The thread's first chunk of the next tile.
    source: Place<T, GlobalRead>,
    /// Elements from a row to the next, and from a column to the next.
    stride: I64,
    column_stride: I64,
    /// The first row of the next tile, and the row from which on there is nothing.
    first: I32,
    limit: I32,
}

impl<T: MmaElement> RowCopy<T> {
    /// Rows from `first` on.
    #[device]
    fn new(source: Tensor<T, 4>, batch: I32, head: I32, first: I32, limit: I32, geometry: &Geometry) -> Self {
        let (row, column) = Self::chunk(0, geometry);
        RowCopy {
            source: source.at((batch, head, first + row, column)),
            stride: source.stride(2),
            column_stride: source.stride(3),
            first,
            limit,
        }
    }

    /// Row and column of the thread's chunk in a round.
    #[device]
    fn chunk(round: usize, geometry: &Geometry) -> (I32, I32) {
        let chunks_per_row = (geometry.width / CHUNK) as i32;
        let chunk = thread_id(X) + ((round * THREADS) as i32);
        (chunk / chunks_per_row, chunk % chunks_per_row * (CHUNK as i32))
    }

    /// Copies `rows` rows to a tile and goes on to the rows after them. Rows from the limit on, and columns
    /// beyond the head dimension, become zero: what is masked must not bring in NaN by `0 * NaN`.
    #[device]
    fn copy(mut self, tile: &Tile<T>, rows: usize, geometry: &Geometry) -> Self {
        let chunks_per_row = geometry.width / CHUNK;
        let chunks = rows * chunks_per_row;
        let (first_row, first_column) = Self::chunk(0, geometry);
        // Where a round of all threads is whole rows, each thread's next chunk lies straight below the one before.
        let in_columns = THREADS.is_multiple_of(chunks_per_row);
        let start = self.source;
        for round in range_constexpr(chunks.div_ceil(THREADS)) {
            let (mut row, mut column) = (first_row, first_column);
            if const_expr(in_columns) {
                row += (round * THREADS / chunks_per_row) as i32;
            } else {
                (row, column) = Self::chunk(round, geometry);
                let rows_on = (row - first_row).cast::<I64>() * self.stride;
                self.source = start.offset(rows_on + (column - first_column).cast::<I64>() * self.column_stride);
            }
            let inside = const_expr((round + 1) * THREADS <= chunks) || row < (rows as i32);
            if inside {
                let target = tile.at(row, column);
                let mut valid = self.first + row < self.limit;
                if const_expr(geometry.width != geometry.head_dim) {
                    valid &= column < (geometry.head_dim as i32);
                }
                if const_expr(geometry.vectorized) {
                    cp_async::<16>(target, self.source, valid);
                } else {
                    let mut values = [T::from(0.0); CHUNK];
                    for element in range_constexpr(CHUNK) {
                        let place = self.source.offset(self.column_stride * (element as i64));
                        values[element] = place.load_if(valid, T::from(0.0));
                    }
                    target.store_vec(Vector::<T, CHUNK>::from(values));
                }
            }
            if const_expr(in_columns) {
                self.source = self.source.offset(self.stride * ((THREADS / chunks_per_row) as i64));
            }
        }
        if const_expr(!in_columns || !chunks.is_multiple_of(THREADS)) {
            self.source = start.offset(self.stride * (rows as i64));
        }
        self.first += rows as i32;
        self
    }
}

/// Makes a scale that is not positive one that is, for the maximum of scaled scores is the scaled maximum only
/// then: a negative one changes the signs of Q, and zero makes Q zero and the scale anything else.
#[device]
fn make_positive<T: MmaElement>(scale: F32, q: &Tile<T>, rows: usize, width: usize) -> F32 {
    if !(scale > 0.0) {
        cp_async_wait(0);
        barrier();
        let sign = (scale < 0.0).select(F32::from(-1.0), F32::from(0.0));
        let chunks_per_row = (width / CHUNK) as i32;
        for chunk in range(thread_id(X), (rows as i32) * chunks_per_row, THREADS as i32) {
            let place = q.at(chunk / chunks_per_row, chunk % chunks_per_row * (CHUNK as i32));
            place.store_vec((place.load_vec::<CHUNK>().cast::<F32>() * sign).cast::<T>());
        }
    }
    (scale == 0.0).select(F32::from(1.0), scale.abs())
}

/// Forward attention. Q and O are `[B, Hq, Sq, D]`, K and V `[B, Hkv, Sk, D]` with any strides; query head
/// `h` reads key head `h / (Hq / Hkv)`. Keys from `kv_len[b]` on are padding. The grid is one block for each
/// [`Tiling::block_m`] query rows, each head and each sequence, flattened in x with rows innermost.
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
    let row_tiles = tiling.row_tiles;
    let block_m = tiling.block_m();
    let k_steps = geometry.width / 16;
    let n_tiles = BLOCK_N / 8;
    let d_tiles = geometry.width / 8;

    let (seqlen_q, seqlen_kv) = (q.extent(2), k.extent(2));
    let m_blocks = (seqlen_q + (block_m as i32 - 1)) / (block_m as i32);
    let block = block_id(X);
    // The last rows see the most keys under the causal mask: they start first, so that no long block ends alone.
    let first_row = if const_expr(geometry.causal) {
        (m_blocks - 1 - block % m_blocks) * (block_m as i32)
    } else {
        block % m_blocks * (block_m as i32)
    };
    let head = block / m_blocks % q.extent(1);
    let batch = block / m_blocks / q.extent(1);
    let head_kv = head / (q.extent(1) / k.extent(1));

    let lane = lane_id();
    let row_of_warp = warp_id() * ((16 * row_tiles) as i32);
    // Row and column of this lane's first accumulator element (PTX ISA, mma.m16n8k16: groupID, threadID_in_group).
    let row = first_row + row_of_warp + lane / 4;
    let column_in_tile = lane % 4 * 2;

    // A length that is no length must not lead out of K.
    let keys = kv_len.at(batch).load().max(0).min(seqlen_kv);
    let visible = if const_expr(geometry.causal) {
        keys.min(causal_limit(first_row + (block_m as i32 - 1), seqlen_q, seqlen_kv))
    } else {
        keys
    };
    let tiles = (visible.max(0) + (BLOCK_N as i32 - 1)) / (BLOCK_N as i32);

    let q_tile = Tile::<T>::new("q", block_m, geometry.width);
    let k_tile = Tile::<T>::new("k", BLOCK_N, geometry.width);
    let v_tile = Tile::<T>::new("v", BLOCK_N, geometry.width);

    RowCopy::new(q, batch, head, first_row, seqlen_q, &geometry).copy(&q_tile, block_m, &geometry);
    let mut k_copy = RowCopy::new(k, batch, head_kv, I32::from(0), keys, &geometry);
    let mut v_copy = RowCopy::new(v, batch, head_kv, I32::from(0), keys, &geometry);
    k_copy = k_copy.copy(&k_tile, BLOCK_N, &geometry);
    cp_async_commit();

    let scale_log2 = make_positive(scale, &q_tile, block_m, geometry.width) * std::f32::consts::LOG2_E;

    let mut acc = vec![[F32::from(0.0); 4]; row_tiles * d_tiles];
    // Two rows a lane and row tile: `row` and `row + 8`. Half `h` of row tile `r` is number 2 r + h.
    let mut max = vec![F32::from(f32::NEG_INFINITY); 2 * row_tiles];
    let mut sum = vec![F32::from(0.0); 2 * row_tiles];

    // The A fragment of a row tile and a step of 16 columns.
    let query = |r: usize, step: usize| {
        let column = lane / 16 * 8 + ((step * 16) as i32);
        ldmatrix_x4(q_tile.at(row_of_warp + ((r * 16) as i32) + lane % 16, column))
    };
    let mut queries = Vec::new();
    if const_expr(tiling.queries_in_registers) {
        cp_async_wait(0);
        barrier();
        for step in range_constexpr(k_steps) {
            for r in range_constexpr(row_tiles) {
                queries.push(query(r, step));
            }
        }
    }

    // One body, traced twice: the tiles that every row sees whole, and those that reach past the last key or over
    // the diagonal.
    let whole = if const_expr(geometry.causal) {
        keys.min(causal_limit(first_row, seqlen_q, seqlen_kv)).max(0) / (BLOCK_N as i32)
    } else {
        keys / (BLOCK_N as i32)
    };
    for masked in range_constexpr(2) {
        let (from, to) = if const_expr(masked == 0) { (I32::from(0), whole) } else { (whole, tiles) };
        for tile in range(from, to) {
            let first_key = tile * (BLOCK_N as i32);
            // The tile of K is there for all warps, and all are done with the V before.
            cp_async_wait(0);
            barrier();
            v_copy = v_copy.copy(&v_tile, BLOCK_N, &geometry);
            cp_async_commit();

            // S = Q K^T: 16 rows x BLOCK_N keys for each row tile.
            let mut s = vec![[F32::from(0.0); 4]; row_tiles * n_tiles];
            for step in range_constexpr(k_steps) {
                let mut a = Vec::new();
                for r in range_constexpr(row_tiles) {
                    a.push(if const_expr(tiling.queries_in_registers) {
                        queries[step * row_tiles + r]
                    } else {
                        query(r, step)
                    });
                }
                for pair in range_constexpr(n_tiles / 2) {
                    let key = lane % 8 + lane / 16 * 8 + ((pair * 16) as i32);
                    let column = lane / 8 % 2 * 8 + ((step * 16) as i32);
                    let b = ldmatrix_x4(k_tile.at(key, column));
                    for r in range_constexpr(row_tiles) {
                        let t = r * n_tiles + 2 * pair;
                        s[t] = mma_m16n8k16(a[r], [b[0], b[1]], s[t]);
                        s[t + 1] = mma_m16n8k16(a[r], [b[2], b[3]], s[t + 1]);
                    }
                }
            }

            // The tile of V is there, and all are done with this K.
            cp_async_wait(0);
            barrier();
            if tile + 1 < tiles {
                k_copy = k_copy.copy(&k_tile, BLOCK_N, &geometry);
            }
            cp_async_commit();

            if const_expr(masked == 1) {
                for r in range_constexpr(row_tiles) {
                    for e in range_constexpr(4) {
                        let limit = if const_expr(geometry.causal) {
                            keys.min(causal_limit(row + ((r * 16 + e / 2 * 8) as i32), seqlen_q, seqlen_kv))
                        } else {
                            keys
                        };
                        for t in range_constexpr(n_tiles) {
                            let key = first_key + column_in_tile + ((t * 8 + e % 2) as i32);
                            let score = s[r * n_tiles + t][e];
                            s[r * n_tiles + t][e] = (key < limit).select(score, F32::from(f32::NEG_INFINITY));
                        }
                    }
                }
            }

            // Online softmax of the lane's rows: the new maxima first.
            let mut largest = Vec::new();
            let mut base = Vec::new();
            let mut rescale = Vec::new();
            let mut changed = Bool::from(false);
            let mut large = Bool::from(false);
            for h in range_constexpr(2 * row_tiles) {
                let scores = (0..2 * n_tiles).map(|t| s[h / 2 * n_tiles + t / 2][2 * (h % 2) + t % 2]);
                let mut tile_max = F32::from(f32::NEG_INFINITY);
                for score in constexpr(scores) {
                    tile_max = tile_max.max(score);
                }
                tile_max = tile_max.max(shfl_xor(tile_max, 1));
                tile_max = tile_max.max(shfl_xor(tile_max, 2));
                let before = max[h];
                max[h] = before.max(tile_max);
                // A row without a visible key so far: subtracting 0 keeps -inf - -inf out.
                largest.push((max[h] == f32::NEG_INFINITY).select(F32::from(0.0), max[h]));
                base.push(largest[h] * scale_log2);
                large |= base[h].abs() > LARGEST_SHIFT;
                rescale.push(((before - largest[h]) * scale_log2).exp2_fast());
                changed |= rescale[h] != 1.0;
            }
            if any(large) {
                for t in range_constexpr(row_tiles * n_tiles) {
                    for e in range_constexpr(4) {
                        s[t][e] -= largest[2 * (t / n_tiles) + e / 2];
                    }
                }
                for h in range_constexpr(2 * row_tiles) {
                    base[h] = F32::from(0.0);
                }
            }
            for h in range_constexpr(2 * row_tiles) {
                let mut tile_sum = F32::from(0.0);
                for t in range_constexpr(h / 2 * n_tiles, (h / 2 + 1) * n_tiles) {
                    for e in range_constexpr(2 * (h % 2), 2 * (h % 2) + 2) {
                        s[t][e] = s[t][e].fma(scale_log2, -base[h]).exp2_fast();
                        tile_sum += s[t][e];
                    }
                }
                sum[h] = sum[h] * rescale[h] + tile_sum;
            }

            // Two neighbouring accumulator tiles of S are one A fragment of P: no data moves.
            let mut p = Vec::new();
            for step in range_constexpr(BLOCK_N / 16) {
                for r in range_constexpr(row_tiles) {
                    let (lo, hi) = (s[r * n_tiles + 2 * step], s[r * n_tiles + 2 * step + 1]);
                    p.push([
                        pack::<T>(lo[0], lo[1]),
                        pack::<T>(lo[2], lo[3]),
                        pack::<T>(hi[0], hi[1]),
                        pack::<T>(hi[2], hi[3]),
                    ]);
                }
            }

            // Once a row has met its largest scores, its sums keep their scale: most tiles of a long sequence have
            // nothing to do here.
            if const_expr(!tiling.lazy_rescale) || any(changed) {
                for t in range_constexpr(row_tiles * d_tiles) {
                    for e in range_constexpr(4) {
                        acc[t][e] *= rescale[2 * (t / d_tiles) + e / 2];
                    }
                }
            }

            // O += P V.
            for step in range_constexpr(BLOCK_N / 16) {
                for pair in range_constexpr(d_tiles / 2) {
                    let key = lane % 16 + ((step * 16) as i32);
                    let column = lane / 16 * 8 + ((pair * 16) as i32);
                    let b = ldmatrix_x4_trans(v_tile.at(key, column));
                    for r in range_constexpr(row_tiles) {
                        let t = r * d_tiles + 2 * pair;
                        acc[t] = mma_m16n8k16(p[step * row_tiles + r], [b[0], b[1]], acc[t]);
                        acc[t + 1] = mma_m16n8k16(p[step * row_tiles + r], [b[2], b[3]], acc[t + 1]);
                    }
                }
            }
        }
    }
    // A block must not end with copies in flight, and the output is gathered where those of Q went.
    cp_async_wait(0);
    barrier();

    for h in range_constexpr(2 * row_tiles) {
        let (r, half) = (h / 2, h % 2);
        let row_in_block = row_of_warp + lane / 4 + ((r * 16 + half * 8) as i32);
        let row = first_row + row_in_block;
        let mut total = sum[h];
        total += shfl_xor(total, 1);
        total += shfl_xor(total, 2);
        let empty = total == 0.0;
        let inverse = empty.select(F32::from(0.0), F32::from(1.0) / empty.select(F32::from(1.0), total));
        for t in range_constexpr(geometry.head_dim / 8) {
            let values = acc[r * d_tiles + t];
            let pair = pack::<T>(values[2 * half] * inverse, values[2 * half + 1] * inverse);
            // The warp's rows of Q have been read for the last time.
            q_tile.at(row_in_block, column_in_tile + ((t * 8) as i32)).store_vec(pair);
        }
        if row < seqlen_q && lane % 4 == 0 {
            let value = empty.select(F32::from(f32::NEG_INFINITY), (max[h] * scale_log2 + total.log2()) * LN_2);
            lse.at((batch, head, row)).store(value);
        }
    }
    warp_sync();
    // Whole rows go out, 16 bytes a lane.
    let chunks_per_row = geometry.head_dim / CHUNK;
    let chunks = 16 * row_tiles * chunks_per_row;
    for round in range_constexpr(chunks.div_ceil(32)) {
        let chunk = lane + ((round * 32) as i32);
        let row_in_warp = chunk / (chunks_per_row as i32);
        let column = chunk % (chunks_per_row as i32) * (CHUNK as i32);
        let row_in_block = row_of_warp + row_in_warp;
        let inside = const_expr((round + 1) * 32 <= chunks) || row_in_warp < ((16 * row_tiles) as i32);
        if inside && first_row + row_in_block < seqlen_q {
            let values = q_tile.at(row_in_block, column).load_vec::<CHUNK>();
            let place = o.at((batch, head, first_row + row_in_block, column));
            if const_expr(geometry.vectorized) {
                place.store_vec(values);
            } else {
                for element in range_constexpr(CHUNK) {
                    o.at((batch, head, first_row + row_in_block, column + (element as i32))).store(values.get(element));
                }
            }
        }
    }
}

/// Two neighbouring elements of a row, rounded to nearest even.
#[device]
fn pack<T: MmaElement>(low: F32, high: F32) -> Vector<T, 2> {
    Vector::<F32, 2>::from([low, high]).cast::<T>()
}
