//! `matmul` for `mma.sync` once more, with its index arithmetic written out: the same tiles, stages and order of work as
//! the bundled kernel's largest tiling.

use lacewing::prelude::*;

/// Rows and columns of C of a block, and elements of the inner dimension of a step.
const ROWS: usize = 128;
const COLUMNS: usize = 256;
const INNER: usize = 64;
const STAGES: usize = 3;
/// Elements of 16 bytes.
const CHUNK: usize = 8;
/// Threads of a block: two warps along rows, four along columns.
const THREADS: usize = 256;
const GROUP: i32 = 8;

#[device]
fn steps(size: I32, step: usize) -> I32 {
    let step = step as i32;
    size / step + (size % step).min(1)
}

/// Where a chunk of a row lies: chunks change places by the row's number modulo 8.
#[device]
fn swizzled(row: I32, chunk: I32, columns: usize) -> I32 {
    row * (columns as i32) + (chunk ^ (row % 8)) * (CHUNK as i32)
}

/// Both tiles in shared memory.
#[derive(Clone, Copy)]
struct Tiles {
    a: SharedSlice<F16>,
    b: SharedSlice<F16>,
}

/// Copies step `step` of A and B to a stage.
#[device]
fn fill(a: Tensor<F16, 2>, b: Tensor<F16, 2>, tiles: Tiles, first: [I32; 2], step: I32, stage: I32) {
    let step = step.min(steps(a.extent(1), INNER) - 1);
    let thread = thread_id(X);
    let (row, chunk) = (thread / 8, thread % 8);
    for round in range_constexpr(ROWS * INNER / CHUNK / THREADS) {
        let row = row + ((round * (THREADS / 8)) as i32);
        let place = a.at((first[0] + row, step * (INNER as i32) + chunk * (CHUNK as i32)));
        let to = tiles.a.at(stage * ((ROWS * INNER) as i32) + swizzled(row, chunk, INNER));
        cp_async::<16>(to, place, first[0] + row < a.extent(0));
    }
    let (row, chunk) = (thread / 32, thread % 32);
    for round in range_constexpr(INNER * COLUMNS / CHUNK / THREADS) {
        let row = row + ((round * (THREADS / 32)) as i32);
        let place = b.at((step * (INNER as i32) + row, first[1] + chunk * (CHUNK as i32)));
        let to = tiles.b.at(stage * ((INNER * COLUMNS) as i32) + swizzled(row, chunk, COLUMNS));
        cp_async::<16>(to, place, first[1] + chunk * (CHUNK as i32) < b.extent(1));
    }
    cp_async_commit();
}

/// The warp's fragments of one product.
#[derive(Clone, Copy, Carried)]
struct Fragments {
    a: [[Vector<F16, 2>; 4]; 4],
    b: [[Vector<F16, 2>; 4]; 4],
}

#[device]
fn load(tiles: Tiles, stage: I32, k: usize) -> Fragments {
    let (lane, warp) = (lane_id(), warp_id());
    let zero = Vector::<F16, 2>::splat(F16::from(0.0));
    let mut fragments = Fragments { a: [[zero; 4]; 4], b: [[zero; 4]; 4] };
    for i in range_constexpr(4) {
        let row = warp / 4 * 64 + lane % 16 + ((i * 16) as i32);
        let chunk = lane / 16 + ((k * 2) as i32);
        fragments.a[i] = ldmatrix_x4(tiles.a.at(stage * ((ROWS * INNER) as i32) + swizzled(row, chunk, INNER)));
    }
    for j in range_constexpr(4) {
        let row = lane % 16 + ((k * 16) as i32);
        let chunk = warp % 4 * 8 + lane / 16 + ((j * 2) as i32);
        let place = tiles.b.at(stage * ((INNER * COLUMNS) as i32) + swizzled(row, chunk, COLUMNS));
        fragments.b[j] = ldmatrix_x4_trans(place);
    }
    fragments
}

/// C = A B, for rows of whole chunks and an inner dimension of whole steps.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn matmul_by_hand(a: Tensor<F16, 2>, b: Tensor<F16, 2>, c: TensorMut<F32, 2>) {
    let tiles_of_c = [steps(c.extent(0), ROWS), steps(c.extent(1), COLUMNS)];
    let in_group = tiles_of_c[1] * GROUP;
    let group = block_id(X) / in_group;
    let rows = (tiles_of_c[0] - group * GROUP).min(GROUP);
    let inside = block_id(X) - group * in_group;
    let first = [(group * GROUP + inside % rows) * (ROWS as i32), inside / rows * (COLUMNS as i32)];

    let tiles = Tiles {
        a: shared_array_named::<F16>("a", STAGES * ROWS * INNER),
        b: shared_array_named::<F16>("b", STAGES * INNER * COLUMNS),
    };
    for stage in range_constexpr(STAGES - 1) {
        fill(a, b, tiles, first, I32::from(stage as i32), I32::from(stage as i32));
    }
    cp_async_wait(STAGES - 2);
    barrier();
    let mut now = load(tiles, I32::from(0), 0);
    let mut acc = [[F32::from(0.0); 4]; 32];

    let mut stage = I32::from(0);
    let mut before = I32::from((STAGES - 1) as i32);
    for step in range(steps(a.extent(1), INNER)) {
        let next = (stage == ((STAGES - 1) as i32)).select(I32::from(0), stage + 1);
        for k in range_constexpr(INNER / 16) {
            let after = if const_expr(k + 1 < INNER / 16) {
                load(tiles, stage, k + 1)
            } else {
                cp_async_wait(STAGES - 2);
                barrier();
                load(tiles, next, 0)
            };
            if const_expr(k == 0) {
                fill(a, b, tiles, first, step + ((STAGES - 1) as i32), before);
            }
            for i in range_constexpr(4) {
                for j in range_constexpr(8) {
                    let (left, right) = (now.a[i], now.b[j / 2]);
                    let right = [right[j % 2 * 2], right[j % 2 * 2 + 1]];
                    acc[i * 8 + j] = mma_m16n8k16(left, right, acc[i * 8 + j]);
                }
            }
            now = after;
        }
        before = stage;
        stage = next;
    }
    cp_async_wait(0);

    let (lane, warp) = (lane_id(), warp_id());
    for i in range_constexpr(4) {
        for j in range_constexpr(8) {
            for half in range_constexpr(2) {
                let row = first[0] + warp / 4 * 64 + lane / 4 + ((i * 16 + half * 8) as i32);
                let column = first[1] + warp % 4 * 64 + lane % 4 * 2 + ((j * 8) as i32);
                let sums = acc[i * 8 + j];
                let pair = Vector::<F32, 2>::from([sums[half * 2], sums[half * 2 + 1]]);
                c.at((row, column)).store_vec_if((row < c.extent(0)) & (column < c.extent(1)), pair);
            }
        }
    }
}
