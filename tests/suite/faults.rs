//! Faulty kernels that are not among the samples: each is reported under every seed, by kind and line, the lines marked
//! `// <- TAG`; the same kernels without the fault are clean.

use half::{bf16, f16};
use lacewing::prelude::*;
use lacewing::runtime::emulator::{Report, ReportKind};
use lacewing::runtime::{Error, LaunchStats};

const SEEDS: std::ops::Range<u64> = 0..10;

mod indices;
mod peers;
mod sync;
mod tiles;

/// The files of these kernels.
const SOURCES: [(&str, &str); 5] = [
    ("faults.rs", include_str!("faults.rs")),
    ("faults/indices.rs", include_str!("faults/indices.rs")),
    ("faults/peers.rs", include_str!("faults/peers.rs")),
    ("faults/sync.rs", include_str!("faults/sync.rs")),
    ("faults/tiles.rs", include_str!("faults/tiles.rs")),
];

/// The tag of a line that ends in `// <- TAG`.
fn tag_of(report: &Report) -> Option<&'static str> {
    let location = report.location.as_ref()?;
    let (_, text) = SOURCES.iter().find(|(file, _)| location.file.ends_with(file))?;
    text.lines().nth(location.line as usize - 1)?.split_once("// <- ").map(|(_, tag)| tag)
}

/// The reports under every seed, each of a kind and at a line that `allowed` has.
#[track_caller]
fn faulty(
    target: Target,
    allowed: &[(ReportKind, &str)],
    run: impl Fn(&Device) -> Result<LaunchStats, Error>,
) -> Vec<Report> {
    let (mut reports, mut wrong) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let report = match run(&Device::emulator(target).unwrap().with_seed(seed)) {
            Err(Error::Report(report)) => *report,
            other => {
                wrong
                    .push(format!("seed {seed}: {}", other.map_or_else(|error| error.to_string(), |_| "clean".into())));
                continue;
            }
        };
        let tag = tag_of(&report);
        if tag.is_none_or(|tag| !allowed.contains(&(report.kind, tag))) {
            wrong.push(format!("seed {seed}: {}: {report}", report.kind));
        }
        reports.push(report);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    reports
}

#[track_caller]
fn clean(target: Target, run: impl Fn(&Device) -> Result<LaunchStats, Error>) {
    for seed in SEEDS {
        let outcome = run(&Device::emulator(target).unwrap().with_seed(seed));
        assert!(outcome.is_ok(), "seed {seed}: {}", outcome.unwrap_err());
    }
}

fn ones(dev: &Device, rows: usize, columns: usize) -> Result<DevTensor<bf16, 2>, Error> {
    dev.tensor_from_slice(&vec![bf16::ONE; rows * columns], [rows, columns])
}

/// Waits for all but the newest product, which is the one that it gives.
#[device]
fn collected(product: InFlight) -> Accumulator {
    product.wait::<1>() // <- IN A HELPER
}

/// `A A^T`. Its sums are taken by a helper that waits for too little, or only where `n` is above 0.
#[kernel(block = [128, 1, 1])]
fn gram(#[comptime] fault: usize, a: TensorMap<BF16, 2>, d: TensorMut<F32, 1>, n: I32) {
    let tile = SwizzledTile::<BF16>::new("tile", 64, 64);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    if warp_id() == 0 && elect_one() {
        full.expect(tile.bytes());
        a.load(tile, (0, 0), full);
    }
    full.wait(I32::from(0));
    let product = wgmma(tile, tile.t()); // <- PRODUCT
    if const_expr(fault == 1) {
        let sums = collected(product);
        d.at(thread_id(X)).store(sums[0] + sums[1]);
    } else if n > 0 {
        let sums = product.wait::<0>();
        d.at(thread_id(X)).store(sums[0]);
    }
}

fn run_gram(dev: &Device, fault: usize, n: i32) -> Result<LaunchStats, Error> {
    let a = ones(dev, 64, 64)?;
    let mut d = dev.tensor_uninit::<f32, 1>([128])?;
    gram::new(fault).grid([1, 1, 1]).launch(dev, (&a, &mut d, n))
}

#[test]
fn an_accumulator_that_a_helper_takes_too_early() {
    clean(Target::SM_90A, |dev| run_gram(dev, 0, 1));
    for report in faulty(Target::SM_90A, &[(ReportKind::InFlight, "IN A HELPER")], |dev| run_gram(dev, 1, 1)) {
        assert_eq!(report.call_chain.len(), 1, "{report}");
    }
}

#[test]
fn a_product_that_one_branch_alone_waits_for() {
    faulty(Target::SM_90A, &[(ReportKind::CopyInFlight, "PRODUCT")], |dev| run_gram(dev, 0, 0));
}

/// Sums the columns of a matrix, eight rows a stage, by way of a ring of two stages.
///
/// Faults: 1, the producer announces two tiles and brings one; 2, it announces half a tile; 3, the consumer waits for
/// the first round's phase always; 4, it never releases; 5, it releases before it reads; 6, the producer waits for nobody.
#[kernel(block = [64, 1, 1])]
fn column_sums(#[comptime] fault: usize, x: TensorMap<BF16, 2>, y: TensorMut<F32, 1>, steps: I32) {
    let ring = SwizzledRing::<BF16>::new("ring", 2, 8, 64);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 2, 1);
    setup.finish();
    if warp_id() == 0 {
        if elect_one() {
            let mut at = stages.start();
            for step in range(steps) {
                let bytes = match fault {
                    1 => ring.bytes() * 2,
                    2 => ring.bytes() / 2,
                    _ => ring.bytes(),
                };
                let place = if const_expr(fault == 6) { stages.at(at.stage(), 0) } else { at };
                let full = stages.acquire(place, bytes); // <- ACQUIRES
                x.load(ring.stage(at.stage()), (step * 8, 0), full); // <- BRINGS
                at.advance();
            }
        }
    } else {
        let mut at = stages.start();
        let mut sums = [F32::from(0.0), F32::from(0.0)];
        for _ in range(steps) {
            if const_expr(fault == 3) {
                stages.wait(stages.at(at.stage(), 0)); // <- FIRST PARITY
            } else {
                stages.wait(at); // <- WAITS
            }
            if const_expr(fault == 5) {
                stages.release_warp(at);
            }
            for row in range_constexpr(8) {
                for half in range_constexpr(2) {
                    let column = lane_id() + (half * 32) as i32;
                    sums[half] = sums[half] + ring.stage(at.stage()).at((row as i32, column)).load().cast::<F32>(); // <- SUMS
                }
            }
            if const_expr(fault != 4 && fault != 5) {
                warp_sync();
                stages.release_warp(at);
            }
            at.advance();
        }
        for half in range_constexpr(2) {
            y.at(lane_id() + (half * 32) as i32).store(sums[half]);
        }
    }
}

fn run_sums(dev: &Device, fault: usize) -> Result<LaunchStats, Error> {
    let x = ones(dev, 56, 64)?;
    let mut y = dev.tensor_uninit::<f32, 1>([64])?;
    let stats = column_sums::new(fault).grid([1, 1, 1]).launch(dev, (&x, &mut y, 7))?;
    assert!(fault > 0 || y.to_vec()?.iter().all(|&sum| sum == 56.0));
    Ok(stats)
}

#[test]
fn a_ring_of_two_stages_is_clean() {
    clean(Target::SM_90A, |dev| run_sums(dev, 0));
}

#[test]
fn bytes_that_never_come() {
    for report in faulty(Target::SM_90A, &[(ReportKind::Deadlock, "WAITS")], |dev| run_sums(dev, 1)) {
        let text = report.to_string();
        assert!(text.contains("1 of 1 arrivals, 1024 of 2048 bytes still to come"), "{text}");
    }
}

#[test]
fn fewer_bytes_announced_than_come() {
    for report in faulty(Target::SM_90A, &[(ReportKind::Deadlock, "WAITS")], |dev| run_sums(dev, 2)) {
        assert!(report.to_string().contains("1 of 1 arrivals, 512 bytes more than the 512 expected"), "{report}");
        assert_eq!(report.help.as_deref(), Some("expect exactly the bytes that the copies of the phase bring"));
    }
}

#[test]
fn the_parity_of_the_first_round_in_every_round() {
    // By the order of the warps the consumer reads too early, or one of them waits for what is past.
    let waits = [(ReportKind::Deadlock, "ACQUIRES"), (ReportKind::Deadlock, "FIRST PARITY")];
    let races = [(ReportKind::Race, "SUMS"), (ReportKind::Race, "BRINGS")];
    let reports = faulty(Target::SM_90A, &[waits, races].concat(), |dev| run_sums(dev, 3));
    assert!(reports.iter().any(|report| report.kind == ReportKind::Race));
}

#[test]
fn stages_that_are_never_released() {
    for report in
        faulty(Target::SM_90A, &[(ReportKind::Deadlock, "ACQUIRES"), (ReportKind::Deadlock, "WAITS")], |dev| {
            run_sums(dev, 4)
        })
    {
        assert!(report.to_string().contains("0 of 1 arrivals"), "{report}");
    }
}

#[test]
fn stages_that_are_released_before_they_are_read() {
    faulty(Target::SM_90A, &[(ReportKind::Race, "SUMS"), (ReportKind::Race, "BRINGS")], |dev| run_sums(dev, 5));
}

#[test]
fn a_producer_that_does_not_wait_for_releases() {
    let kinds = [(ReportKind::Race, "SUMS"), (ReportKind::Race, "BRINGS"), (ReportKind::Mbarrier, "ACQUIRES")];
    faulty(Target::SM_90A, &kinds, |dev| run_sums(dev, 6));
}

/// Three warps meet; one thinks that two do.
#[kernel(block = [96, 1, 1])]
fn meets(#[comptime] wrong: bool, y: TensorMut<I32, 1>) {
    let tile = shared_array_named::<I32>("tile", 96);
    let i = thread_id(X);
    tile.at(i).store(i);
    if warp_id() == 2 {
        named_barrier(1, if const_expr(wrong) { 64 } else { 96 }).sync(); // <- TWO
    } else {
        named_barrier(1, 96).sync(); // <- THREE
    }
    y.at(i).store(tile.at(95 - i).load());
}

#[test]
fn a_named_barrier_of_two_counts() {
    let run = |dev: &Device, wrong| {
        let mut y = dev.tensor_uninit::<i32, 1>([96])?;
        meets::new(wrong).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_80, |dev| run(dev, false));
    let kinds = [(ReportKind::Deadlock, "TWO"), (ReportKind::Deadlock, "THREE")];
    for report in faulty(Target::SM_80, &kinds, |dev| run(dev, true)) {
        assert!(report.message.starts_with("named barrier 1 is reached with "), "{report}");
    }
}

/// Block 1 of a pair tells block 0, which does not wait for it.
#[kernel(block = [32, 1, 1], cluster = [2, 1, 1])]
fn tells(#[comptime] stays: bool, y: TensorMut<I32, 1>) {
    let mut setup = BarrierSetup::new();
    let told = setup.mbarrier("told", 1);
    setup.finish();
    if cluster_rank() == 1 {
        if elect_one() {
            told.arrive_at(0); // <- TELLS
        }
    }
    y.at(block_id(X) * 32 + lane_id()).store(lane_id());
    if const_expr(stays) {
        cluster_sync();
    }
}

#[test]
fn a_block_that_ends_while_another_may_still_arrive() {
    let run = |dev: &Device, stays| {
        let mut y = dev.tensor_uninit::<i32, 1>([64])?;
        tells::new(stays).grid([2, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, true));
    faulty(Target::SM_90A, &[(ReportKind::Mbarrier, "TELLS")], |dev| run(dev, false));
}

/// Tiles of a row through three buffers; `pending` groups may be on their way when one is used.
#[kernel(block = [32, 1, 1])]
fn streamed(#[comptime] pending: usize, x: Tensor<F32, 1>, y: TensorMut<F32, 1>, tiles: I32) {
    let buffers = shared_array_named::<F32>("buffers", 96);
    let i = thread_id(X);
    for tile in range_constexpr(2) {
        cp_async::<4>(buffers.at(i + (tile * 32) as i32), x.at(i + (tile * 32) as i32), Bool::from(true));
        cp_async_commit();
    }
    let mut sum = F32::from(0.0);
    for tile in range(tiles) {
        cp_async_wait(pending);
        sum += buffers.at(tile % 3 * 32 + i).load(); // <- STREAMED
        let next = tile + 2;
        let more = next < tiles;
        cp_async::<4>(buffers.at(next % 3 * 32 + i), x.at(more.select(next, I32::from(0)) * 32 + i), more); // <- NEXT
        cp_async_commit();
    }
    y.at(i).store(sum);
    cp_async_wait(0);
}

#[test]
fn a_wait_for_one_group_too_few() {
    let run = |dev: &Device, pending| {
        let x = dev.tensor_from_slice(&[1.0_f32; 224], [224])?;
        let mut y = dev.tensor_uninit::<f32, 1>([32])?;
        streamed::new(pending).grid([1, 1, 1]).launch(dev, (&x, &mut y, 7))
    };
    clean(Target::SM_80, |dev| run(dev, 1));
    faulty(Target::SM_80, &[(ReportKind::Race, "STREAMED"), (ReportKind::Uninitialized, "STREAMED")], |dev| {
        run(dev, 2)
    });
}

/// Warp 0 leaves a matrix in shared memory and warp 1 takes it, both by their matrix instructions.
#[kernel(block = [64, 1, 1])]
fn handed_over(#[comptime] fault: usize, y: TensorMut<F16, 1>) {
    let tile = shared_array_named::<F16>("tile", 64);
    let lane = lane_id();
    tile.at(lane * 2).store(F16::from(f16::ZERO));
    tile.at(lane * 2 + 1).store(F16::from(f16::ZERO));
    barrier();
    if warp_id() == 0 {
        let pair = Vector::<F16, 2>::splat(lane.cast::<F16>());
        stmatrix_x1(tile.at(lane % 8 * 8), [pair]); // <- STMATRIX
    }
    if const_expr(fault == 0) {
        barrier();
    }
    if const_expr(fault == 1) {
        warp_sync();
    }
    if warp_id() == 1 {
        let [pair] = ldmatrix_x1(tile.at(lane % 8 * 8)); // <- LDMATRIX
        y.at(lane * 2).store_vec(pair);
    }
}

#[test]
fn matrices_that_one_warp_stores_and_another_loads() {
    let run = |dev: &Device, fault| {
        let mut y = dev.tensor_uninit::<f16, 1>([64])?;
        handed_over::new(fault).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    faulty(Target::SM_90A, &[(ReportKind::Race, "STMATRIX"), (ReportKind::Race, "LDMATRIX")], |dev| run(dev, 1));
}

/// Each wave copies its part straight to LDS and reads it.
#[kernel(block = [128, 1, 1])]
fn straight(#[comptime] hasty: bool, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let tile = shared_array_named::<F32>("tile", 128);
    let i = thread_id(X);
    load_to_shared::<4>(tile.at(i / 64 * 64), x.at(i));
    if const_expr(!hasty) {
        barrier();
    }
    y.at(i).store(tile.at(i).load()); // <- STRAIGHT
    barrier();
}

#[test]
fn a_copy_to_lds_that_is_read_before_the_barrier() {
    let run = |dev: &Device, hasty| {
        let x = dev.tensor_from_slice(&[1.0_f32; 128], [128])?;
        let mut y = dev.tensor_uninit::<f32, 1>([128])?;
        straight::new(hasty).grid([1, 1, 1]).launch(dev, (&x, &mut y))
    };
    clean(Target::GFX942, |dev| run(dev, false));
    faulty(Target::GFX942, &[(ReportKind::Race, "STRAIGHT"), (ReportKind::Uninitialized, "STRAIGHT")], |dev| {
        run(dev, true)
    });
}

/// Two tiles go out through one buffer, which is filled again while `pending` stores may still read it. `alone`: one thread
/// makes the fence for all, before the barrier.
#[kernel(block = [64, 1, 1])]
fn two_tiles(#[comptime] pending: usize, #[comptime] alone: bool, y: TensorMap<F16, 2>) {
    let tile = SwizzledTile::<F16>::new("tile", 8, 64);
    for part in range_constexpr(2) {
        for row in range_constexpr(8) {
            tile.at((row as i32, thread_id(X))).store((thread_id(X) + part as i32).cast::<F16>()); // <- REFILLS
        }
        if const_expr(alone) {
            if thread_id(X) == 0 {
                fence_proxy(ProxyFence::AsyncShared);
            }
        } else {
            fence_proxy(ProxyFence::AsyncShared);
        }
        barrier();
        if thread_id(X) == 0 {
            y.store(((part * 8) as i32, 0), tile); // <- GOES OUT
            tma_store_commit();
            tma_store_wait(pending);
        }
        barrier();
    }
    if thread_id(X) == 0 {
        tma_store_wait(0);
    }
}

fn run_two_tiles(dev: &Device, pending: usize, alone: bool) -> Result<LaunchStats, Error> {
    let mut y = dev.tensor_zeros::<f16, 2>([16, 64])?;
    two_tiles::new(pending, alone).grid([1, 1, 1]).launch(dev, (&mut y,))
}

#[test]
fn a_buffer_that_is_filled_again_while_it_is_stored() {
    clean(Target::SM_90A, |dev| run_two_tiles(dev, 0, false));
    faulty(Target::SM_90A, &[(ReportKind::Race, "REFILLS")], |dev| run_two_tiles(dev, 1, false));
}

#[test]
fn a_proxy_fence_by_one_thread_for_all() {
    for report in faulty(Target::SM_90A, &[(ReportKind::Race, "GOES OUT")], |dev| run_two_tiles(dev, 0, true)) {
        assert!(report.message.contains("no proxy fence"), "{report}");
    }
}

#[device]
fn start_of(part: I32, length: I32) -> I32 {
    part * length // <- WRAPS
}

/// Each block stores at the start of its part, of which there are 2^28 elements; the parts are cut to the tensor.
#[kernel(block = [32, 1, 1])]
fn far_parts(y: TensorMut<I32, 1>, length: I32) {
    let start = start_of(block_id(X), length);
    if block_id(X) % 16 == 0 {
        let slot = start + block_id(X) / 16 * 32;
        y.at(slot + thread_id(X)).store(slot);
    }
}

#[test]
fn a_start_that_wraps_in_a_helper() {
    let reports = faulty(Target::SM_80, &[(ReportKind::IndexOverflow, "WRAPS")], |dev| {
        let mut y = dev.tensor_zeros::<i32, 1>([64])?;
        far_parts::new().grid([17, 1, 1]).launch(dev, (&mut y, 1 << 28))
    });
    assert_eq!(reports[0].block, Some([16, 0, 0]), "{}", reports[0]);
}

/// Weights by hand: the largest overflow, the smallest vanish.
#[kernel(block = [32, 1, 1])]
fn weighted(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    let large = x.at(i).load().exp();
    let small = (-x.at(i).load()).exp();
    let mut kept = shfl_xor(large * small, 1); // <- ZERO TIMES INF
    if i % 2 == 0 {
        kept = kept.max(0.5);
    }
    y.at(i).store(kept);
}

#[test]
fn zero_times_infinity() {
    let reports = faulty(Target::SM_80, &[(ReportKind::NotANumber, "ZERO TIMES INF")], |dev| {
        let x: Vec<f32> = (0..32).map(|i| if i == 20 { 1000.0 } else { 1.0 }).collect();
        let x = dev.tensor_from_slice(&x, [32])?;
        let mut y = dev.tensor_uninit::<f32, 1>([32])?;
        weighted::new().grid([1, 1, 1]).launch(dev, (&x, &mut y))
    });
    assert_eq!(reports[0].thread, Some([20, 0, 0]), "{}", reports[0]);
}

/// Merges the sums of two partitions by their logarithms.
#[kernel(block = [32, 1, 1])]
fn merged(sums: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    let first = sums.at((0, i)).load().log();
    let second = sums.at((1, i)).load().log();
    let largest = first.max(second);
    let total = (first - largest).exp() + (second - largest).exp(); // <- BOTH EMPTY
    y.at(i).store(largest + total.log());
}

#[test]
fn two_empty_partitions_are_merged() {
    let reports = faulty(Target::GFX942, &[(ReportKind::NotANumber, "BOTH EMPTY")], |dev| {
        let sums: Vec<f32> = (0..64).map(|i| if i % 32 == 5 { 0.0 } else { 1.0 }).collect();
        let sums = dev.tensor_from_slice(&sums, [2, 32])?;
        let mut y = dev.tensor_uninit::<f32, 1>([32])?;
        merged::new().grid([1, 1, 1]).launch(dev, (&sums, &mut y))
    });
    assert_eq!((reports[0].message.as_str(), reports[0].thread), ("-inf - -inf is NaN", Some([5, 0, 0])));
}

/// Blocks of 32 elements, `pitch` apart.
#[kernel(block = [32, 1, 1])]
fn tiled(pitch: I32, y: TensorMut<I32, 1>) {
    y.at(block_id(X) * pitch + thread_id(X)).store(block_id(X)); // <- OVERLAPS
}

#[test]
fn blocks_whose_tiles_overlap_by_one() {
    let run = |dev: &Device, pitch| {
        let mut y = dev.tensor_uninit::<i32, 1>([256])?;
        tiled::new().grid([8, 1, 1]).launch(dev, (pitch, &mut y))
    };
    clean(Target::GFX942, |dev| run(dev, 32));
    faulty(Target::GFX942, &[(ReportKind::Race, "OVERLAPS")], |dev| run(dev, 31));
}

/// Reads vectors of a row whose last element nobody wrote.
#[kernel(block = [32, 1, 1])]
fn padded(count: I32, y: TensorMut<F16, 1>) {
    let row = shared_array_named::<F16>("row", 256);
    for i in range(thread_id(X), count, 32) {
        row.at(i).store(i.cast::<F16>());
    }
    barrier();
    y.at(thread_id(X) * 8).store_vec(row.at(thread_id(X) * 8).load_vec::<8>()); // <- VECTOR
}

#[test]
fn a_vector_with_one_element_that_nothing_wrote() {
    let run = |dev: &Device, count| {
        let mut y = dev.tensor_uninit::<f16, 1>([256])?;
        padded::new().grid([1, 1, 1]).launch(dev, (count, &mut y))
    };
    clean(Target::SM_80, |dev| run(dev, 256));
    faulty(Target::SM_80, &[(ReportKind::Uninitialized, "VECTOR")], |dev| run(dev, 255));
}

/// Half a warp asks the other half.
#[kernel(block = [32, 1, 1])]
fn asks(distance: I32, y: TensorMut<I32, 1>) {
    let lane = lane_id();
    let mut value = lane;
    if lane < 16 {
        value = shfl_down(value, distance); // <- ASKS
    }
    y.at(lane).store(value);
}

#[test]
fn a_shuffle_from_lanes_of_the_other_branch() {
    let reports = faulty(Target::SM_80, &[(ReportKind::InactiveLaneRead, "ASKS")], |dev| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        asks::new().grid([1, 1, 1]).launch(dev, (1, &mut y))
    });
    assert_eq!(reports[0].thread, Some([15, 0, 0]), "{}", reports[0]);
}

/// Sums of neighbours, tile by tile through one buffer: filled again while a slower warp may still read.
#[kernel(block = [64, 1, 1])]
fn neighbours(#[comptime] guarded: bool, x: Tensor<F32, 1>, y: TensorMut<F32, 1>, tiles: I32) {
    let tile = shared_array_named::<F32>("tile", 64);
    let i = thread_id(X);
    let mut sum = F32::from(0.0);
    for at in range(tiles) {
        tile.at(i).store(x.at(at * 64 + i).load()); // <- FILLS
        barrier();
        sum += tile.at((i + 1) % 64).load(); // <- NEIGHBOUR
        if const_expr(guarded) {
            barrier();
        }
    }
    y.at(i).store(sum);
}

#[test]
fn a_buffer_that_is_filled_again_while_others_read() {
    let run = |dev: &Device, guarded, tiles| {
        let x = dev.tensor_from_slice(&[1.0_f32; 192], [192])?;
        let mut y = dev.tensor_uninit::<f32, 1>([64])?;
        neighbours::new(guarded).grid([1, 1, 1]).launch(dev, (&x, &mut y, tiles))
    };
    clean(Target::SM_80, |dev| run(dev, true, 3));
    clean(Target::SM_80, |dev| run(dev, false, 1));
    faulty(Target::SM_80, &[(ReportKind::Race, "FILLS"), (ReportKind::Race, "NEIGHBOUR")], |dev| run(dev, false, 3));
}

/// A tree of sums within a warp, as if its lanes ran in lockstep.
#[kernel(block = [64, 1, 1])]
fn lockstep(y: TensorMut<I32, 1>) {
    let sums = shared_array_named::<I32>("sums", 64);
    let i = thread_id(X);
    sums.at(i).store(i);
    barrier();
    for step in range_constexpr(5) {
        let distance = 16 >> step;
        if i < distance {
            sums.at(i).store(sums.at(i).load() + sums.at(i + distance).load()); // <- LOCKSTEP
        }
    }
    if i == 0 {
        y.at(0).store(sums.at(0).load());
    }
}

#[test]
fn lanes_that_are_thought_to_run_in_lockstep() {
    let run = |dev: &Device| {
        let mut y = dev.tensor_uninit::<i32, 1>([1])?;
        lockstep::new().grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::GFX942, run);
    faulty(Target::SM_80, &[(ReportKind::Race, "LOCKSTEP")], run);
}

/// Warps whose rounds differ in number meet in each.
#[kernel(block = [64, 1, 1])]
fn rounds(each: I32, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let mut sum = I32::from(0);
    for round in range(each + warp_id()) {
        sum += round;
        barrier(); // <- ROUNDS
    }
    y.at(i).store(sum);
}

#[test]
fn warps_that_meet_more_often_than_others() {
    faulty(Target::SM_80, &[(ReportKind::DivergentBarrier, "ROUNDS")], |dev| {
        let mut y = dev.tensor_uninit::<i32, 1>([64])?;
        rounds::new().grid([1, 1, 1]).launch(dev, (2, &mut y))
    });
}

/// A whole warp arrives where one arrival completes a phase.
#[kernel(block = [64, 1, 1])]
fn all_arrive(#[comptime] one: bool, y: TensorMut<I32, 1>) {
    let tile = shared_array_named::<I32>("tile", 32);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    if warp_id() == 0 {
        tile.at(lane_id()).store(lane_id());
        if const_expr(one) {
            warp_sync();
            if elect_one() {
                full.arrive();
            }
        } else {
            full.arrive(); // <- ALL ARRIVE
        }
    } else {
        full.wait(I32::from(0));
        y.at(lane_id()).store(tile.at(31 - lane_id()).load());
    }
}

#[test]
fn a_warp_that_arrives_where_one_thread_should() {
    let run = |dev: &Device, one| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        all_arrive::new(one).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, true));
    for report in faulty(Target::SM_90A, &[(ReportKind::Mbarrier, "ALL ARRIVE")], |dev| run(dev, false)) {
        assert!(report.message.contains("32 lanes arrive together at the mbarrier"), "{report}");
    }
}

/// Sums of neighbours through `buffers` buffers, two copies ahead of their use: three buffers are enough.
#[kernel(block = [64, 1, 1])]
fn copied_ahead(#[comptime] buffers: usize, x: Tensor<F32, 1>, y: TensorMut<F32, 1>, tiles: I32) {
    let ring = shared_array_named::<F32>("ring", 64 * buffers);
    let i = thread_id(X);
    for tile in range_constexpr(2) {
        cp_async::<4>(ring.at(i + (tile * 64) as i32), x.at(i + (tile * 64) as i32), Bool::from(true));
        cp_async_commit();
    }
    let mut sum = F32::from(0.0);
    for tile in range(tiles) {
        cp_async_wait(1);
        barrier();
        let next = tile + 2;
        let more = next < tiles;
        let source = x.at(more.select(next, I32::from(0)) * 64 + i);
        cp_async::<4>(ring.at(next % (buffers as i32) * 64 + i), source, more); // <- TOO FAR AHEAD
        cp_async_commit();
        sum += ring.at(tile % (buffers as i32) * 64 + (i + 32) % 64).load(); // <- BEHIND
    }
    y.at(i).store(sum);
    cp_async_wait(0);
}

#[test]
fn a_ring_that_is_one_buffer_short() {
    let run = |dev: &Device, buffers| {
        let x = dev.tensor_from_slice(&[1.0_f32; 448], [448])?;
        let mut y = dev.tensor_uninit::<f32, 1>([64])?;
        copied_ahead::new(buffers).grid([1, 1, 1]).launch(dev, (&x, &mut y, 7))
    };
    clean(Target::SM_80, |dev| run(dev, 3));
    let kinds =
        [(ReportKind::Race, "TOO FAR AHEAD"), (ReportKind::Race, "BEHIND"), (ReportKind::Uninitialized, "BEHIND")];
    faulty(Target::SM_80, &kinds, |dev| run(dev, 2));
}

/// Warp 0 fills one buffer again and again for warp 1, which says by a barrier of its own when it has read; `hasty`: warp 0
/// does not listen.
#[kernel(block = [64, 1, 1])]
fn relayed(#[comptime] hasty: bool, y: TensorMut<I32, 1>, rounds: I32) {
    let buffer = shared_array_named::<I32>("buffer", 32);
    let (filled, read) = (named_barrier(1, 64), named_barrier(2, 64));
    let lane = lane_id();
    if warp_id() == 0 {
        for round in range(rounds) {
            if const_expr(!hasty) {
                if round > 0 {
                    read.sync();
                }
            }
            buffer.at(lane).store(round); // <- RELAYS
            filled.arrive(); // <- ARRIVES
        }
    } else {
        let mut sum = I32::from(0);
        for round in range(rounds) {
            filled.sync();
            sum += buffer.at(31 - lane).load(); // <- TAKES
            if const_expr(!hasty) {
                if round + 1 < rounds {
                    read.arrive();
                }
            }
        }
        y.at(lane).store(sum);
    }
}

#[test]
fn a_producer_that_does_not_listen_for_what_was_read() {
    let run = |dev: &Device, hasty| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        relayed::new(hasty).grid([1, 1, 1]).launch(dev, (&mut y, 4))
    };
    clean(Target::SM_80, |dev| run(dev, false));
    // A second arrival in one phase counts another warp in: then the count is wrong before the data is.
    let kinds = [(ReportKind::Race, "RELAYS"), (ReportKind::Race, "TAKES"), (ReportKind::Deadlock, "ARRIVES")];
    faulty(Target::SM_80, &kinds, |dev| run(dev, true));
}

/// A product of a wave in a branch that half of its lanes take.
#[kernel(block = [64, 1, 1])]
fn half_a_wave(y: TensorMut<F32, 1>, rows: I32) {
    let ones = Vector::<F16, 4>::splat(F16::from(f16::ONE));
    let mut sums = [F32::from(0.0), F32::from(0.0), F32::from(0.0), F32::from(0.0)];
    if lane_id() < rows {
        sums = mfma_16x16x16(ones, ones, sums); // <- HALF A WAVE
    }
    y.at(lane_id()).store(sums[0]);
}

#[test]
fn a_product_of_half_a_wave() {
    let run = |dev: &Device, rows| {
        let mut y = dev.tensor_uninit::<f32, 1>([64])?;
        half_a_wave::new().grid([1, 1, 1]).launch(dev, (&mut y, rows))
    };
    clean(Target::GFX942, |dev| run(dev, 64));
    faulty(Target::GFX942, &[(ReportKind::PartialWarp, "HALF A WAVE")], |dev| run(dev, 32));
}
