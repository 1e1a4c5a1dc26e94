//! Kernels as users of other kernel languages write them, each compared with plain Rust under several seeds, all checks on, and
//! assembled for every chip that it is for.

use half::{bf16, f16};
use lacewing::core::lower::{Emit, EmitOptions, emit, find_ptxas};
use lacewing::prelude::*;
use lacewing::{Error, rt};

const SEEDS: std::ops::Range<u64> = 0..4;
const ALL: [Target; 4] = [Target::SM_80, Target::SM_90A, Target::SM_100A, Target::GFX942];

/// Runs on each chip under each seed.
#[track_caller]
fn everywhere(targets: &[Target], run: impl Fn(&Device) -> Result<(), Error>) {
    for &target in targets {
        for seed in SEEDS {
            let device = Device::emulator(target).unwrap().with_seed(seed);
            run(&device).unwrap_or_else(|error| panic!("{target}, seed {seed}: {error}"));
        }
    }
}

/// Compiles for each chip, to machine code where that needs no tool that is missing.
#[track_caller]
pub(crate) fn assembled(kernel: &impl rt::Kernel, targets: &[Target]) {
    for &target in targets {
        let stage = match (target.is_amd(), find_ptxas(None)) {
            (true, _) => Emit::Amdgcn,
            (false, Ok(_)) => Emit::Cubin,
            (false, Err(_)) => Emit::Ptx,
        };
        let traced = lacewing::core::trace_kernel(kernel, target).unwrap_or_else(|error| panic!("{target}: {error}"));
        emit(&traced, stage, &EmitOptions::default()).unwrap_or_else(|error| panic!("{target}: {error}"));
    }
}

/// Numbers from -1 to 1.
pub(crate) fn random(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[track_caller]
fn assert_close(got: &[f32], wanted: &[f32], tolerance: f32) {
    assert_eq!(got.len(), wanted.len());
    for (i, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!((got - wanted).abs() <= tolerance * (1.0 + wanted.abs()), "{i}: {got}, not {wanted}");
    }
}

/// What an attention may be asked for beside the plain one.
#[derive(Clone, Copy, Debug, Default)]
struct Variant {
    /// Keys up to the query's own that it sees.
    window: Option<i32>,
    /// A bias by distance, of another slope for each head (Press, Smith, Lewis: "Train Short, Test Long").
    alibi: bool,
    /// Scores are kept within plus and minus this.
    soft_cap: Option<f32>,
    /// Whether `visible` says which tiles of 16 queries by 64 keys are looked at.
    sparse: bool,
}

/// Attention of one query row a block, of which each thread has a key of the tile and a column of the output. `kv_len` keys of
/// each head count. A row that sees no key is 0.
#[kernel(block = [64, 1, 1])]
fn attention(
    #[comptime] variant: Variant,
    #[comptime] width: usize,
    q: Tensor<F16, 3>,
    k: Tensor<F16, 3>,
    v: Tensor<F16, 3>,
    kv_len: Tensor<I32, 1>,
    visible: Tensor<Bool, 2>,
    o: TensorMut<F16, 3>,
    scale: F32,
) {
    let (row, head, thread) = (block_id(X), block_id(Y), thread_id(X));
    let scores = shared_array_named::<F32>("scores", 64);
    let keys = kv_len.at(head).load();
    // The query's own place among the keys.
    let place = row + k.extent(1) - q.extent(1);
    let first = match variant.window {
        Some(window) => (place - window + 1).max(0) / 64 * 64,
        None => I32::from(0),
    };
    let mut acc = F32::from(0.0);
    let mut max = F32::from(f32::NEG_INFINITY);
    let mut sum = F32::from(0.0);
    for start in range(first, keys, 64) {
        if const_expr(variant.sparse) {
            if !visible.at((row / 16, start / 64)).load() {
                continue;
            }
        }
        let key = start + thread;
        let mut seen = key < keys;
        if let Some(window) = variant.window {
            seen = seen & (key > place - window) & (key <= place);
        }
        let mut score = F32::from(f32::NEG_INFINITY);
        if seen {
            let mut dot = F32::from(0.0);
            for column in range(width) {
                let (a, b) = (q.at((head, row, column)).load(), k.at((head, key, column)).load());
                dot = a.cast::<F32>().fma(b.cast::<F32>(), dot);
            }
            score = dot * scale;
            if let Some(cap) = variant.soft_cap {
                score = (score / cap).tanh() * cap;
            }
            if const_expr(variant.alibi) {
                score += (-(head + 1).cast::<F32>()).exp2() * (key - place).cast::<F32>();
            }
        }
        scores.at(thread).store(score);
        barrier();
        let mut new_max = max;
        for j in range(64) {
            new_max = new_max.max(scores.at(j).load());
        }
        let base = (new_max == f32::NEG_INFINITY).select(F32::from(0.0), new_max);
        let rescale = (max - base).exp();
        sum *= rescale;
        acc *= rescale;
        for j in range((keys - start).min(64)) {
            let weight = (scores.at(j).load() - base).exp();
            sum += weight;
            if thread < width as i32 {
                acc = weight.fma(v.at((head, start + j, thread)).load().cast::<F32>(), acc);
            }
        }
        max = new_max;
        barrier();
    }
    if thread < width as i32 {
        let value = (sum == 0.0).select(F32::from(0.0), acc / sum);
        o.at((head, row, thread)).store(value.cast::<F16>());
    }
}

#[test]
fn attention_with_windows_biases_caps_and_sparse_tiles() {
    const HEADS: usize = 2;
    const QUERIES: usize = 33;
    const KEYS: usize = 100;
    const WIDTH: usize = 40;
    let lengths = [100_i32, 70];
    let numbers =
        |seed, count: usize| -> Vec<f16> { random(count, seed).into_iter().map(|x| f16::from_f32(2.0 * x)).collect() };
    let (q, mut k, mut v) =
        (numbers(1, HEADS * QUERIES * WIDTH), numbers(2, HEADS * KEYS * WIDTH), numbers(3, HEADS * KEYS * WIDTH));
    // Beyond the length of the second head there is nothing that may be looked at.
    k[(KEYS + 70) * WIDTH..].fill(f16::NAN);
    v[(KEYS + 70) * WIDTH..].fill(f16::NAN);
    // Rows 16 to 31 see nothing where the mask counts.
    let visible = [true, false, false, false, true, true];
    let scale = 1.0 / (WIDTH as f32).sqrt();

    let right = |variant: &Variant| -> Vec<f32> {
        let mut all = Vec::new();
        for (head, &length) in lengths.iter().enumerate() {
            for row in 0..QUERIES {
                let place = (row + KEYS - QUERIES) as i32;
                let score = |key: i32| {
                    let of = |x: &[f16], at: usize| x[at].to_f32();
                    let dot = (0..WIDTH).map(|c| {
                        of(&q, (head * QUERIES + row) * WIDTH + c) * of(&k, (head * KEYS + key as usize) * WIDTH + c)
                    });
                    let mut score = scale * dot.sum::<f32>();
                    score = variant.soft_cap.map_or(score, |cap| (score / cap).tanh() * cap);
                    score + if variant.alibi { 0.5_f32.powi(head as i32 + 1) * (key - place) as f32 } else { 0.0 }
                };
                let sees = |key: i32| {
                    variant.window.is_none_or(|window| key > place - window && key <= place)
                        && (!variant.sparse || visible[row / 16 * 2 + key as usize / 64])
                };
                let weights: Vec<(usize, f32)> =
                    (0..length).filter(|&key| sees(key)).map(|key| (key as usize, score(key).exp())).collect();
                let sum: f32 = weights.iter().map(|(_, weight)| weight).sum();
                all.extend((0..WIDTH).map(|c| {
                    let acc: f32 = weights.iter().map(|(key, w)| w * v[(head * KEYS + key) * WIDTH + c].to_f32()).sum();
                    if sum == 0.0 { 0.0 } else { acc / sum }
                }));
            }
        }
        all
    };
    let plain = Variant::default();
    let all = Variant { window: Some(40), alibi: true, soft_cap: Some(3.0), sparse: true };
    for variant in [
        plain,
        Variant { window: Some(17), ..plain },
        Variant { alibi: true, ..plain },
        Variant { soft_cap: Some(5.0), ..plain },
        Variant { sparse: true, ..plain },
        all,
    ] {
        let wanted = right(&variant);
        everywhere(&[Target::SM_80, Target::GFX942], |device| {
            let tensor = |numbers: &[f16], rows| device.tensor_from_slice(numbers, [HEADS, rows, WIDTH]);
            let mut o = device.tensor_uninit::<f16, 3>([HEADS, QUERIES, WIDTH])?;
            attention::new(variant, WIDTH).grid([QUERIES, HEADS, 1]).launch(
                device,
                (
                    &tensor(&q, QUERIES)?,
                    &tensor(&k, KEYS)?,
                    &tensor(&v, KEYS)?,
                    &device.tensor_from_slice(&lengths, [HEADS])?,
                    &device.tensor_from_slice(&visible, [3, 2])?,
                    &mut o,
                    scale,
                ),
            )?;
            let o: Vec<f32> = o.to_vec()?.into_iter().map(f16::to_f32).collect();
            assert_close(&o, &wanted, 2e-3);
            Ok(())
        });
    }
    assembled(&attention::new(all, WIDTH), &ALL);
}

/// Running sums in one pass over memory: each block waits for the one before it (Merrill, Garland: "Single-pass Parallel Prefix
/// Scan with Decoupled Look-back"). Blocks take their parts in the order in which they come, so that the one that is waited for
/// is under way.
#[kernel(block = [32, 1, 1])]
fn running_sums(
    x: Tensor<I32, 1>,
    y: TensorMut<I32, 1>,
    ready: TensorMut<I32, 1>,
    sums: TensorMut<I32, 1>,
    ticket: TensorMut<I32, 1>,
) {
    let lane = lane_id();
    let mut part = I32::from(0);
    if lane == 0 {
        part = ticket.at(0).atomic_add(I32::from(1));
    }
    part = broadcast_first(part);
    let at = part * 32 + lane;
    let mut sum = x.at(at).load_if(at < x.extent(0), I32::from(0));
    for step in range_constexpr(5) {
        let below = shfl_up(sum, 1_usize << step);
        if lane >= 1 << step {
            sum += below;
        }
    }
    let total = shfl_idx(sum, 31);
    let mut before = I32::from(0);
    if lane == 0 {
        if part > 0 {
            while ready.at(part - 1).atomic_add_with(I32::from(0), Ordering::Acquire, Scope::Device) == 0 {}
            before = sums.at(part - 1).load();
        }
        sums.at(part).store(before + total);
        let _ = ready.at(part).atomic_exch_with(I32::from(1), Ordering::Release, Scope::Device);
    }
    before = broadcast_first(before);
    y.at(at).store_if(at < y.extent(0), before + sum);
}

#[test]
fn running_sums_by_looking_back() {
    let x: Vec<i32> = (0..300).map(|i| i * 37 % 101 - 50).collect();
    let wanted: Vec<i32> = x.iter().scan(0, |sum, x| Some(*sum + x).inspect(|new| *sum = *new)).collect();
    everywhere(&[Target::SM_80, Target::SM_90A], |device| {
        let zeros = |count| device.tensor_zeros::<i32, 1>([count]);
        let mut y = device.tensor_uninit::<i32, 1>([x.len()])?;
        let mut sums = device.tensor_uninit::<i32, 1>([10])?;
        running_sums::new().grid([10, 1, 1]).launch(
            device,
            (&device.tensor_from_slice(&x, [x.len()])?, &mut y, &mut zeros(10)?, &mut sums, &mut zeros(1)?),
        )?;
        assert_eq!(y.to_vec()?, wanted);
        Ok(())
    });
    assembled(&running_sums::new(), &ALL[..3]);
}

/// `c = a (b scale)` with weights of 8 bits, which threads widen on their way to shared memory, while A comes by `cp.async`.
#[kernel(block = [128, 1, 1])]
fn product_of_int8_weights(a: Tensor<BF16, 2>, b: Tensor<I8, 2>, scale: Tensor<F32, 1>, c: TensorMut<F32, 2>) {
    let mma = TiledMma::<MmaSync<16, 8, 16, BF16>>::new([2, 2]);
    let a_tile = shared_tensor::<BF16>("a", layout![(64, 32); (40, 1)]);
    let b_tile = shared_tensor::<BF16>("b", layout![(32, 64); (72, 1)]);
    let fill = TiledCopy::<BF16>::rows(CopyAtom::CpAsync, 128, 32, 8);
    let (a_part, b_part) = (mma.partition_a(&a_tile), mma.partition_b(&b_tile.transposed()));
    let mut acc = mma.accumulators(64, 64);
    let (inner, columns) = (b.extent(0), b.extent(1));
    for step in range((inner + 31) / 32) {
        barrier();
        let from = a.tile([64, 32], (block_id(Y), step)).vectors(8);
        copy(&fill, &fill.partition_global(&from), &fill.partition_shared(&a_tile));
        cp_async_commit();
        for element in range(thread_id(X), 32 * 64, 128) {
            let (row, column) = (step * 32 + element / 64, block_id(X) * 64 + element % 64);
            let inside = (row < inner) & (column < columns);
            let weight = b.at((row, column)).load_if(inside, I8::from(0)).cast::<F32>();
            let factor = scale.at(column).load_if(inside, F32::from(0.0));
            b_tile.at((element / 64, element % 64)).store((weight * factor).cast::<BF16>());
        }
        cp_async_wait(0);
        barrier();
        for k in range_constexpr(a_part.k_steps()) {
            gemm(&a_part.load(k), &b_part.load(k), &mut acc);
        }
    }
    mma.partition_c(&c.tile([64, 64], (block_id(Y), block_id(X)))).store(&acc);
}

#[test]
fn weights_of_8_bits_are_widened_on_their_way() {
    const M: usize = 70;
    const N: usize = 90;
    const K: usize = 72;
    let a: Vec<bf16> = random(M * K, 4).into_iter().map(bf16::from_f32).collect();
    let b: Vec<i8> = (0..K * N).map(|i| (i * 31 % 255) as u8 as i8).collect();
    let scale: Vec<f32> = random(N, 5).iter().map(|x| x.abs() * 0.01 + 0.001).collect();
    let weight = |k: usize, n: usize| bf16::from_f32(f32::from(b[k * N + n]) * scale[n]).to_f32();
    let wanted: Vec<f32> =
        (0..M * N).map(|i| (0..K).map(|k| a[i / N * K + k].to_f32() * weight(k, i % N)).sum()).collect();
    everywhere(&ALL[..3], |device| {
        let mut c = device.tensor_uninit::<f32, 2>([M, N])?;
        product_of_int8_weights::new().grid([N.div_ceil(64), M.div_ceil(64), 1]).launch(
            device,
            (
                &device.tensor_from_slice(&a, [M, K])?,
                &device.tensor_from_slice(&b, [K, N])?,
                &device.tensor_from_slice(&scale, [N])?,
                &mut c,
            ),
        )?;
        assert_close(&c.to_vec()?, &wanted, 1e-3);
        Ok(())
    });
    assembled(&product_of_int8_weights::new(), &ALL[..3]);
}

/// Each plane of X goes to two planes of Y, once and twice as large: a warp fills the stages of a ring by stores, two others
/// take them, and send their tiles off by the copy engine.
#[kernel(block = [96, 1, 1])]
fn once_and_twice(x: Tensor<F16, 3>, y: TensorMap<F16, 3>, tiles: Uniform<I32>) {
    let ring = SwizzledRing::<F16>::new("ring", 2, 8, 64);
    let out = SwizzledRing::<F16>::new("out", 2, 8, 64);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 2, 2);
    setup.finish();
    let mut at = stages.start();
    if warp_id() == 0 {
        for tile in range(tiles) {
            stages.wait_empty(at);
            for (row, half) in constexpr((0..8).flat_map(|row| [(row, 0), (row, 32)])) {
                let (from, column) = (tile * 8 + row, lane_id() + half);
                let value = x.at((block_id(X), from, column)).load_if(from < x.extent(1), F16::from(0.0));
                ring.stage(at.stage()).at((row, column)).store(value);
            }
            warp_sync();
            if elect_one() {
                stages.commit(at);
            }
            at.advance();
        }
    } else {
        let own = uniform(warp_id() - 1);
        let factor = (*own + 1).cast::<F16>();
        for tile in range(tiles) {
            stages.wait(at);
            if elect_one() {
                tma_store_wait(0);
            }
            warp_sync();
            for (row, half) in constexpr((0..8).flat_map(|row| [(row, 0), (row, 32)])) {
                let place = (row, lane_id() + half);
                out.stage(own).at(place).store(ring.stage(at.stage()).at(place).load() * factor);
            }
            fence_proxy(ProxyFence::AsyncShared);
            warp_sync();
            stages.release_warp(at);
            if elect_one() {
                y.store((block_id(X) * 2 + *own, tile * 8, 0), out.stage(own));
                tma_store_commit();
            }
            at.advance();
        }
        if elect_one() {
            tma_store_wait(0);
        }
    }
}

#[test]
fn a_ring_that_threads_fill_and_two_warps_send_off() {
    const PLANES: usize = 2;
    const ROWS: usize = 37;
    let x: Vec<f16> = random(PLANES * ROWS * 64, 6).into_iter().map(f16::from_f32).collect();
    let wanted: Vec<f16> = (0..2 * PLANES)
        .flat_map(|plane| x.chunks(ROWS * 64).nth(plane / 2).unwrap().iter().map(move |x| (plane, x)))
        .map(|(plane, x)| f16::from_f32(x.to_f32() * (plane % 2 + 1) as f32))
        .collect();
    let targets = [Target::SM_90A, Target::SM_100A];
    everywhere(&targets, |device| {
        let x = device.tensor_from_slice(&x, [PLANES, ROWS, 64])?;
        let mut y = device.tensor_uninit::<f16, 3>([2 * PLANES, ROWS, 64])?;
        once_and_twice::new().grid([PLANES, 1, 1]).launch(device, (&x, &mut y, ROWS.div_ceil(8) as i32))?;
        assert_eq!(y.to_vec()?, wanted);
        Ok(())
    });
    assembled(&once_and_twice::new(), &targets);
}
