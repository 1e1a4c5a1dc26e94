//! Tensor copies, pipelines and products in the language, on the emulator of sm_90a: what they compute, what a
//! launch refuses (D23), and planted mistakes (D17, D19) at their lines, marked `// <- D19` and so on.

use half::bf16;
use lacewing::prelude::*;
use lacewing::runtime::emulator::{Report, ReportKind};
use lacewing::runtime::{Error, LaunchStats, TensorMap as HostMap, TileSwizzle};

/// Number of the line of this file that ends in `// <- TAG`.
fn marked(tag: &str) -> u32 {
    let mark = format!("// <- {tag}");
    let line = include_str!("tensor_maps.rs").lines().position(|line| line.ends_with(&mark));
    line.unwrap() as u32 + 1
}

fn report(outcome: Result<LaunchStats, Error>) -> Box<Report> {
    match outcome {
        Err(Error::Report(report)) => report,
        other => panic!("no report: {other:?}"),
    }
}

#[track_caller]
fn assert_report(report: &Report, kind: ReportKind, tag: &str) {
    assert_eq!(report.kind, kind, "{report}");
    let location = report.location.as_ref().unwrap();
    assert!(location.file.ends_with("tensor_maps.rs") && location.line == marked(tag), "{report}");
}

fn device() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

fn numbers(device: &Device, rows: usize, columns: usize) -> DevTensor<bf16, 2> {
    let elements: Vec<bf16> = (0..rows * columns).map(|i| bf16::from_f32((i % 251) as f32)).collect();
    device.tensor_from_slice(&elements, [rows, columns]).unwrap()
}

/// Copies the 16 rows of 96 columns from `row` on to `out`, by way of shared memory.
#[kernel(block = [32, 1, 1])]
fn copy_tile(x: TensorMap<BF16, 2>, out: TensorMut<BF16, 2>, row: I32) {
    let tile = SwizzledTile::<BF16>::new("tile", 16, 96);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    if elect_one() {
        full.expect(tile.bytes());
        x.load(tile, (row, 0), full);
    }
    full.wait(I32::from(0));
    for i in range(16) {
        for part in range_constexpr(3) {
            let j = lane_id() + (32 * part) as i32;
            out.at((i, j)).store(tile.at((i, j)).load());
        }
    }
}

#[test]
fn what_is_read_through_a_map_is_told_from_what_is_not() {
    let observer = std::sync::Arc::new(lacewing::runtime::record::Observer::default());
    for seed in 0..4 {
        let dev = device().with_observer(&observer).with_seed(seed);
        let x = numbers(&dev, 40, 96);
        let mut out = dev.tensor_uninit::<bf16, 2>([16, 96]).unwrap();
        copy_tile::new().grid([1, 1, 1]).launch(&dev, (&x, &mut out, 8)).unwrap();
        let launches = observer.take();
        let view = launches[0].view("x").unwrap();
        let missed = view.unread().unwrap();
        assert_eq!((missed.elements.len(), missed.total, missed.first), (24 * 96, 40 * 96, vec![0, 0]));
        assert_eq!(view.reads.len(), 1, "{:?}", view.reads);
        assert!(view.reads[0][0].file.ends_with("tensor_maps.rs"), "{:?}", view.reads);
    }
}

#[test]
fn a_tile_is_copied_from_a_tensor_or_a_map_of_it() {
    let dev = device();
    let x = numbers(&dev, 40, 104).slice(1, 0..96).unwrap();
    let given = x.to_vec().unwrap();
    for row in [0, 24, 30, -5, 40] {
        let mut out = dev.tensor_uninit::<bf16, 2>([16, 96]).unwrap();
        let check = |out: &DevTensor<bf16, 2>| {
            for (index, got) in out.to_vec().unwrap().into_iter().enumerate() {
                let from = row + (index / 96) as i32;
                let wanted = if (0..40).contains(&from) { given[from as usize * 96 + index % 96] } else { bf16::ZERO };
                assert_eq!(got, wanted, "row {row}, element {index}");
            }
        };
        copy_tile::new().grid([1, 1, 1]).launch(&dev, (&x, &mut out, row)).unwrap();
        check(&out);
        // The map keeps the memory of a tensor that is gone.
        let map = {
            let x = x.slice(0, 0..40).unwrap();
            HostMap::tiled(&x, [32, 16], TileSwizzle::Bytes64).unwrap()
        };
        let mut out = dev.tensor_uninit::<bf16, 2>([16, 96]).unwrap();
        copy_tile::new().grid([1, 1, 1]).launch(&dev, (&map, &mut out, row)).unwrap();
        check(&out);
    }
}

#[test]
fn d23_a_launch_names_the_rule_that_a_tensor_breaks() {
    let dev = device();
    let mut out = dev.tensor_uninit::<bf16, 2>([16, 96]).unwrap();
    let mut refusal = |x: &DevTensor<bf16, 2>| match copy_tile::new().grid([1, 1, 1]).launch(&dev, (x, &mut out, 0)) {
        Err(error @ Error::Launch { .. }) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    };
    let text = refusal(&numbers(&dev, 40, 100));
    assert_eq!(
        text,
        "kernel `copy_tile` cannot be launched: tensor map `x`: the stride of dimension 0 is 100 elements of 2 bytes = 200 \
         bytes, and the copy engine needs a multiple of 16"
    );
    let text = refusal(&numbers(&dev, 40, 104).slice(1, 3..99).unwrap());
    assert!(text.contains("the tensor's first element is at byte 6 of its buffer"), "{text}");
    let text = refusal(&numbers(&dev, 96, 96).permute([1, 0]).unwrap());
    assert!(
        text.contains("the innermost dimension has a stride of 96 elements, and the copy engine needs 1"),
        "{text}"
    );
    let text = refusal(&numbers(&dev, 40, 104).slice(0, 7..7).unwrap());
    assert!(text.contains("dimension 0 of the tensor [0, 104] has 0 elements"), "{text}");

    let x = numbers(&dev, 40, 96);
    for (map, reason) in [
        (
            HostMap::tiled(&x, [32, 8], TileSwizzle::Bytes64),
            "it was made for boxes of [32, 8], and the kernel copies boxes of [32, 16]",
        ),
        (
            HostMap::tiled(&x, [32, 16], TileSwizzle::Bytes128),
            "it was made for a swizzle of 128 bytes, and the kernel's tiles have 64",
        ),
    ] {
        let launched = copy_tile::new().grid([1, 1, 1]).launch(&dev, (&map.unwrap(), &mut out, 0));
        let text = launched.unwrap_err().to_string();
        assert!(text.ends_with(&format!("tensor map `x`: {reason}")), "{text}");
    }
}

/// Writes each element's own number into a tile and stores it to `y` from row `row` on.
#[kernel(block = [64, 1, 1])]
fn store_tile(#[comptime] fenced: bool, y: TensorMap<F16, 2>, row: I32) {
    let tile = SwizzledTile::<F16>::new("tile", 8, 64);
    for i in range(8) {
        let j = thread_id(X);
        tile.at((i, j)).store((i * 64 + j).cast::<F16>()); // <- STORED
    }
    if const_expr(fenced) {
        fence_proxy(ProxyFence::AsyncShared);
    }
    barrier();
    if warp_id() == 0 && elect_one() {
        y.store((row, 0), tile); // <- D19
        tma_store_commit();
        tma_store_wait(0);
    }
}

#[test]
fn a_tile_is_stored_up_to_the_tensors_end() {
    let dev = device();
    let mut y = dev.tensor_zeros::<half::f16, 2>([20, 64]).unwrap();
    store_tile::new(true).grid([1, 1, 1]).launch(&dev, (&mut y, 15)).unwrap();
    let got = y.to_vec().unwrap();
    for (index, got) in got.iter().enumerate() {
        let wanted = if index >= 15 * 64 { (index - 15 * 64) as f32 } else { 0.0 };
        assert_eq!(got.to_f32(), wanted);
    }
    let refused = store_tile::new(true).grid([1, 1, 1]).launch(&dev, (&y, 0)).unwrap_err().to_string();
    assert!(refused.contains("tensor map `y`: the kernel stores through it: give `&mut tensor`"), "{refused}");
    let map = HostMap::tiled_mut(&mut y, [64, 8], TileSwizzle::Bytes128).unwrap();
    store_tile::new(true).grid([1, 1, 1]).launch(&dev, (&map, -4)).unwrap();
    assert_eq!(y.to_vec().unwrap()[0].to_f32(), 256.0);
}

#[test]
fn d19_a_missing_proxy_fence_is_named() {
    let dev = device();
    let mut y = dev.tensor_zeros::<half::f16, 2>([20, 64]).unwrap();
    for seed in 0..5 {
        let report = report(store_tile::new(false).grid([1, 1, 1]).launch(&dev.clone().with_seed(seed), (&mut y, 0)));
        assert_report(&report, ReportKind::Race, "D19");
        assert!(report.message.contains("this TMA store of index "), "{report}");
        let place = format!("tensor_maps.rs:{}:", marked("STORED"));
        assert!(report.message.contains(&place) && report.message.ends_with("no proxy fence between them"), "{report}");
        let help = report.help.unwrap();
        assert!(help.contains("`fence_proxy(ProxyFence::AsyncShared)`"), "{help}");
    }
}

/// `D = A B^T` of 128 x K and 64 x K, by a pair of blocks: each has 64 rows of A, loads half of each tile of B to both,
/// and releases stages to both.
#[kernel(block = [256, 1, 1], cluster = [2, 1, 1], min_blocks = 1)]
fn product_of_a_pair(
    #[comptime] stages: usize,
    a: TensorMap<F16, 2>,
    b: TensorMap<F16, 2>,
    d: TensorMut<F32, 2>,
    tiles: I32,
) {
    let a_ring = SwizzledRing::<F16>::new("a", stages, 64, 64);
    let b_ring = SwizzledRing::<F16>::new("b", stages, 64, 64);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::multicast(&mut setup, "stages", stages, 1);
    setup.finish();
    let rank = cluster_rank();
    let [producer, consumer] = warpgroup_roles([(1, 40), (1, 208)]);
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            let mut at = stages.start();
            for tile in range(tiles) {
                let full = stages.acquire(at, a_ring.bytes() + b_ring.bytes());
                a.load(a_ring.stage(at.stage()), (rank * 64, tile * 64), full);
                b.load_multicast(b_ring.stage(at.stage()).row_block(32, rank), (rank * 32, tile * 64), full, 3);
                at.advance();
            }
            stages.drain(at);
        }
    } else {
        consumer.begin();
        let mut acc = Accumulator::zeros(64);
        let mut at = stages.start();
        for _ in range(tiles) {
            stages.wait(at);
            acc = wgmma_add(a_ring.stage(at.stage()), b_ring.stage(at.stage()).t(), acc).wait::<0>();
            stages.release(at);
            at.advance();
        }
        let thread = thread_id(X) % 128;
        let (warp, lane) = (thread / 32, lane_id());
        for i in range_constexpr(32) {
            let row = rank * 64 + warp * 16 + lane / 4 + (i / 2 % 2 * 8) as i32;
            let column = lane % 4 * 2 + (i / 4 * 8 + i % 2) as i32;
            d.at((row, column)).store(acc[i]);
        }
    }
    cluster_sync();
}

/// Small whole numbers, whose products sum exactly.
fn whole_numbers(device: &Device, rows: usize, columns: usize, step: usize) -> DevTensor<half::f16, 2> {
    let elements: Vec<half::f16> =
        (0..rows * columns).map(|i| half::f16::from_f32((i * step % 7) as f32 - 3.0)).collect();
    device.tensor_from_slice(&elements, [rows, columns]).unwrap()
}

fn product_on(dev: &Device, stages: usize) -> Vec<f32> {
    let (a, b) = (whole_numbers(dev, 128, 320, 5), whole_numbers(dev, 64, 320, 3));
    let mut d = dev.tensor_uninit::<f32, 2>([128, 64]).unwrap();
    product_of_a_pair::new(stages).grid([2, 1, 1]).launch(dev, (&a, &b, &mut d, 5)).unwrap();
    d.to_vec().unwrap()
}

#[test]
fn a_pair_of_blocks_shares_its_loads() {
    let value = |i: usize, step: usize| (i * step % 7) as f32 - 3.0;
    for seed in 0..5 {
        // Fewer stages than steps, as many and more, even and odd: each is drained.
        let stages = [2, 1, 3, 5, 6][seed];
        let got = product_on(&device().with_seed(seed as u64), stages);
        for (index, got) in got.into_iter().enumerate() {
            let (row, column) = (index / 64, index % 64);
            let wanted: f32 = (0..320).map(|k| value(row * 320 + k, 5) * value(column * 320 + k, 3)).sum();
            assert_eq!(got, wanted, "{row}, {column}");
        }
    }
    let dev = device();
    let (a, b) = (whole_numbers(&dev, 128, 64, 5), whole_numbers(&dev, 64, 64, 3));
    let mut d = dev.tensor_uninit::<f32, 2>([128, 64]).unwrap();
    let refused = product_of_a_pair::new(2).grid([3, 1, 1]).launch(&dev, (&a, &b, &mut d, 1)).unwrap_err().to_string();
    assert!(refused.contains("whole clusters of 2 x 1 x 1"), "{refused}");
}

/// A GPU of this chip computes the same, bit for bit.
#[test]
fn a_gpu_agrees_with_the_emulator() {
    let Some(gpu) = crate::cuda::gpu().filter(|gpu| gpu.target() == Target::SM_90A) else { return };
    assert_eq!(product_on(&gpu, 3), product_on(&device(), 3));
    let copied = |dev: &Device, row: i32| {
        let mut out = dev.tensor_zeros::<bf16, 2>([16, 96]).unwrap();
        let x = numbers(dev, 40, 104).slice(1, 0..96).unwrap();
        copy_tile::new().grid([1, 1, 1]).launch(dev, (&x, &mut out, row)).unwrap();
        out.to_vec().unwrap()
    };
    let stored = |dev: &Device| {
        let mut y = dev.tensor_zeros::<half::f16, 2>([20, 64]).unwrap();
        store_tile::new(true).grid([1, 1, 1]).launch(dev, (&mut y, 15)).unwrap();
        y.to_vec().unwrap()
    };
    for row in [0, 24, 30, -5, 40] {
        assert_eq!(copied(&gpu, row), copied(&device(), row), "row {row}");
    }
    assert_eq!(stored(&gpu), stored(&device()));
}

/// Waits `turns` times for a barrier that completes once.
#[kernel(block = [64, 1, 1])]
fn waits(#[comptime] arrivals: usize, #[comptime] turns: usize) {
    let mut setup = BarrierSetup::new();
    let ready = setup.mbarrier("ready", arrivals);
    setup.finish();
    ready.arrive();
    for turn in range_constexpr(turns) {
        ready.wait(I32::from((turn % 2) as i32)); // <- D17
    }
}

#[test]
fn d17_deadlocks_show_counts_and_phases() {
    let dev = device();
    waits::new(64, 1).grid([2, 1, 1]).launch(&dev, ()).unwrap();
    let few = report(waits::new(65, 1).grid([1, 1, 1]).launch(&dev, ()));
    assert_report(&few, ReportKind::Deadlock, "D17");
    assert!(
        few.notes[0].contains("which is in phase 0 (parity 0): 64 of 65 arrivals, 0 of 0 bytes still to come"),
        "{few}"
    );
    let wrong = report(waits::new(64, 2).grid([1, 1, 1]).launch(&dev, ()));
    assert_report(&wrong, ReportKind::Deadlock, "D17");
    assert!(wrong.notes[0].contains("wait for parity 1 of the mbarrier"), "{wrong}");
    assert!(wrong.notes[0].contains("phase 1 (parity 1): 0 of 64 arrivals"), "{wrong}");
    assert!(wrong.help.unwrap().contains("the other parity"));
}
