//! The checks of the emulator on kernels in the language: planted mistakes (numbered as in the debugging
//! cases) are found at their line, marked `// <- D1` and so on; bundled kernels are clean.

use lacewing::kernels::ENTRIES;
use lacewing::prelude::*;
use lacewing::runtime::emulator::{Check, Checks, Report, ReportKind, Space};
use lacewing::runtime::host::Random;
use lacewing::runtime::registry::{KernelEntry, Settings};
use lacewing::runtime::runner::Sizes;
use lacewing::runtime::{Error, LaunchStats};

/// Number of the line of this file that ends in `// <- TAG`.
fn marked(tag: &str) -> u32 {
    let mark = format!("// <- {tag}");
    let line = include_str!("sanitizer.rs").lines().position(|line| line.ends_with(&mark));
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
    assert!(location.file.ends_with("sanitizer.rs") && location.line == marked(tag), "{report}");
}

fn device() -> Device {
    Device::emulator(Target::SM_80).unwrap()
}

/// Softmax of rows in which an element that is not positive is masked.
#[kernel(block = [32, 1, 1])]
fn masked_softmax(#[comptime] guarded: bool, x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let (row, column) = (block_id(X), thread_id(X));
    let score = x.at((row, column)).load();
    let score = (score > 0.0).select(score, F32::from(f32::NEG_INFINITY));
    let mut max = reduce_warp(score, |a, b| a.max(b));
    if const_expr(guarded) {
        max = (max == f32::NEG_INFINITY).select(F32::from(0.0), max);
    }
    let weight = (score - max).exp(); // <- D1
    let total = reduce_warp(weight, |a, b| a + b);
    let inverse = F32::from(1.0) / total; // <- D2
    y.at((row, column)).store(weight * inverse);
}

fn softmax_of(guarded: bool, checks: Checks) -> Result<LaunchStats, Error> {
    let dev = device().with_checks(checks);
    // Row 2 has nothing to see.
    let x: Vec<f32> = (0..128).map(|i| if i / 32 == 2 { -1.0 } else { i as f32 / 64.0 + 0.1 }).collect();
    let x = dev.tensor_from_slice(&x, [4, 32])?;
    let mut y = dev.tensor_uninit::<f32, 2>([4, 32])?;
    masked_softmax::new(guarded).grid([4, 1, 1]).launch(&dev, (&x, &mut y))
}

#[test]
fn d1_a_fully_masked_row() {
    let report = report(softmax_of(false, Checks::default()));
    assert_report(&report, ReportKind::NotANumber, "D1");
    assert_eq!(report.message, "-inf - -inf is NaN");
    assert_eq!((report.block, report.thread), (Some([2, 0, 0]), Some([0, 0, 0])));
    assert!(report.help.unwrap().contains("(max == f32::NEG_INFINITY).select(F32::from(0.0), max)"));
}

#[test]
fn d2_one_over_an_empty_sum() {
    let report = report(softmax_of(true, Checks::default()));
    assert_report(&report, ReportKind::DivisionByZero, "D2");
    assert_eq!(report.message, "division by zero: 1 / 0 is inf");
    assert!(report.notes.iter().any(|note| note.ends_with(": 0 * inf")), "{report}");
    softmax_of(true, Checks::default().without(Check::Nan)).unwrap();
}

/// The sum of exponentials in one pass, with the factor the wrong way round.
#[kernel(block = [32, 1, 1])]
fn online_sum(x: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = thread_id(X);
    let mut max = F32::from(f32::NEG_INFINITY);
    let mut sum = F32::from(0.0);
    for column in range(x.extent(1)) {
        let score = x.at((row, column)).load();
        let new_max = max.max(score);
        let rescale = (new_max - max).exp();
        sum = sum * rescale + (score - new_max).exp(); // <- D3
        max = new_max;
    }
    y.at(row).store(sum);
}

#[test]
fn d3_the_first_iteration_of_online_softmax() {
    let dev = device();
    let x = dev.tensor_from_slice(&[0.5_f32; 128], [32, 4]).unwrap();
    let mut y = dev.tensor_uninit::<f32, 1>([32]).unwrap();
    let report = report(online_sum::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)));
    assert_report(&report, ReportKind::NotANumber, "D3");
    assert_eq!(report.message, "0 * inf is NaN");
    assert!(report.notes.iter().any(|note| note.starts_with("in the first iteration of the loop at")), "{report}");
}

/// One sum a partition: to a slot of its own, or wrongly to the partition's number in all the work.
#[kernel(block = [32, 1, 1])]
fn partial_sums(#[comptime] first: i32, x: Tensor<F32, 1>, partial: TensorMut<F32, 1>) {
    let slot = block_id(X);
    let value = x.at(slot * 32 + thread_id(X)).load();
    let sum = reduce_warp(value, |a, b| a + b);
    if thread_id(X) == 0 {
        partial.at(slot + first).store(sum); // <- D4
    }
}

#[kernel(block = [32, 1, 1])]
fn total(partial: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    if thread_id(X) == 0 {
        let mut sum = F32::from(0.0);
        for slot in range(partial.extent(0)) {
            sum += partial.at(slot).load(); // <- D5
        }
        y.at(0).store(sum);
    }
}

#[test]
fn d4_and_d5_slots_that_nothing_wrote() {
    let dev = device();
    let x = dev.tensor_from_slice(&[1.0_f32; 128], [128]).unwrap();
    let mut partial = dev.tensor_uninit::<f32, 1>([4]).unwrap();
    // A slot beyond the end.
    let beyond = report(partial_sums::new(1).grid([4, 1, 1]).launch(&dev, (&x, &mut partial)));
    assert_report(&beyond, ReportKind::OutOfBounds, "D4");
    // Slots that stay empty: the output says which, and so does the kernel that reads them.
    let mut partial = dev.tensor_uninit::<f32, 1>([4]).unwrap();
    partial_sums::new(1).grid([3, 1, 1]).launch(&dev, (&x, &mut partial)).unwrap();
    assert!(matches!(partial.to_vec(), Err(Error::Unwritten { ref index, .. }) if *index == [0]));
    let mut y = dev.tensor_uninit::<f32, 1>([1]).unwrap();
    let empty = report(total::new().grid([1, 1, 1]).launch(&dev, (&partial, &mut y)));
    assert_report(&empty, ReportKind::Uninitialized, "D5");
    assert_eq!(empty.address.as_ref().and_then(|address| address.index), Some(0));
}

#[kernel(block = [64, 1, 1])]
fn waits_in_a_branch(y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    if i < 40 {
        barrier(); // <- D16
    }
    y.at(i).store(i);
}

#[test]
fn d16_a_barrier_in_a_divergent_branch() {
    let dev = device();
    let mut y = dev.tensor_uninit::<i32, 1>([64]).unwrap();
    let report = report(waits_in_a_branch::new().grid([1, 1, 1]).launch(&dev, (&mut y,)));
    assert_report(&report, ReportKind::DivergentBarrier, "D16");
}

/// Reverses a block through shared memory, without a barrier when `hasty`.
#[kernel(block = [128, 1, 1])]
fn reverse(#[comptime] hasty: bool, x: Tensor<F16, 1>, y: TensorMut<F16, 1>) {
    let tile = shared_array_named::<F16>("tile", 128);
    let (i, base) = (thread_id(X), block_id(X) * 128);
    tile.at(i).store(x.at(base + i).load()); // <- D18 write
    if const_expr(!hasty) {
        barrier();
    }
    y.at(base + i).store(tile.at(127 - i).load()); // <- D18 read
}

#[test]
fn d18_shared_memory_without_a_barrier() {
    let x = vec![half::f16::ONE; 256];
    for seed in 0..10 {
        let launch = |hasty: bool, checks: Checks| {
            let dev = device().with_seed(seed).with_checks(checks);
            let x = dev.tensor_from_slice(&x, [256]).unwrap();
            let mut y = dev.tensor_uninit::<half::f16, 1>([256]).unwrap();
            reverse::new(hasty).grid([2, 1, 1]).launch(&dev, (&x, &mut y))
        };
        launch(false, Checks::default()).unwrap();
        let report = report(launch(true, Checks::default().without(Check::Initialized)));
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        let line = report.location.as_ref().unwrap().line;
        let (write, read) = (marked("D18 write"), marked("D18 read"));
        assert!(line == write || line == read, "{report}");
        let other = format!("sanitizer.rs:{}", if line == write { read } else { write });
        assert!(report.message.contains(&other), "{report}");
        assert_eq!(report.help.as_deref(), Some("put a `barrier()` between the two"));
    }
}

/// A transpose through shared memory whose rows are `pitch` words apart.
#[kernel(block = [32, 1, 1])]
fn transpose_tile(#[comptime] pitch: usize, x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let tile = shared_array_named::<F32>("tile", 32 * pitch);
    let i = thread_id(X);
    for row in range_constexpr(32) {
        tile.at(i + ((row * pitch) as i32)).store(x.at((row, i)).load());
    }
    barrier();
    for row in range_constexpr(32) {
        let value = tile.at(i * (pitch as i32) + (row as i32)).load(); // <- D24
        y.at((row, i)).store(value);
    }
}

#[test]
fn d24_bank_conflicts_by_line() {
    let dev = device().with_checks(Checks::default().with(Check::Performance));
    let degree = |pitch: usize| {
        let x = dev.tensor_from_slice(&vec![1.0_f32; 1024], [32, 32]).unwrap();
        let mut y = dev.tensor_uninit::<f32, 2>([32, 32]).unwrap();
        let stats = transpose_tile::new(pitch).grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
        let shared = |line: u32| {
            let mut costs = stats.line_costs.iter().filter(|cost| cost.space == Space::Shared);
            costs.find(|cost| cost.location.line == line).unwrap().clone()
        };
        let cost = shared(marked("D24"));
        assert_eq!((cost.accesses, cost.least), (32, 32));
        assert_eq!(cost.cost, 32 * cost.degree);
        cost.degree
    };
    assert_eq!([degree(32), degree(33), degree(40)], [32, 1, 8]);
}

/// Runs a bundled kernel on random inputs under ten seeds of the scheduler, with all checks.
fn clean(entry: &KernelEntry, target: Target, sizes: &[&str], set: &[(&str, &str)]) {
    let mut settings = Settings::defaults(entry.parameters);
    for (name, value) in set {
        settings.set(name, value).unwrap();
    }
    let runner = entry.runner.unwrap();
    let mut chosen = Sizes::defaults(runner.dimensions());
    sizes.iter().for_each(|size| chosen.set(size).unwrap());
    let mut inputs = runner.random(&settings, &chosen, &mut Random::new(7)).unwrap();
    runner.prepare(&mut settings, &mut inputs, &mut Vec::new()).unwrap();
    for seed in 0..10 {
        let dev = Device::emulator(target).unwrap().with_seed(seed);
        let outcome = runner.run(&dev, &settings, &inputs);
        assert!(outcome.is_ok(), "{} {target} {sizes:?} {set:?} seed {seed}: {}", entry.name, outcome.unwrap_err());
    }
}

#[test]
fn bundled_kernels_are_clean_under_ten_seeds() {
    for entry in ENTRIES {
        for target in [Target::SM_80, Target::GFX942].into_iter().filter(|target| entry.targets.contains(target)) {
            let dtypes: &[&str] =
                if entry.name == "matmul" || entry.name == "fmha_fwd" { &["f16", "bf16"] } else { &["f16", "f32"] };
            for dtype in dtypes {
                let attention: &[&str] = &["Hq=2", "Hkv=1", "Sq=70", "Sk=50", "D=32"];
                let sizes = if entry.name.starts_with("fmha") { attention } else { &[] };
                clean(entry, target, sizes, &[("dtype", dtype)]);
            }
        }
    }
}

#[test]
fn products_in_tensor_memory_are_clean_under_ten_seeds() {
    let matmul = ENTRIES.iter().find(|entry| entry.name == "matmul").unwrap();
    // Several tiles and stages, and one that is nearly empty.
    for sizes in [["M=130", "N=140", "K=200"], ["M=1", "N=1", "K=0"]] {
        clean(matmul, Target::SM_100A, &sizes, &[("dtype", "bf16")]);
    }
}

#[test]
fn attention_is_clean_under_ten_seeds() {
    let fwd = ENTRIES.iter().find(|entry| entry.name == "fmha_fwd").unwrap();
    let shapes: [(&[&str], &str, &str); 6] = [
        (&["B=1", "Hq=2", "Hkv=1", "Sq=130", "Sk=200"], "64", "false"),
        // Rows without keys: more queries than keys under the causal mask.
        (&["B=1", "Hq=1", "Hkv=1", "Sq=150", "Sk=40"], "64", "true"),
        (&["B=1", "Hq=2", "Hkv=2", "Sq=1", "Sk=333"], "128", "false"),
        (&["B=2", "Hq=1", "Hkv=1", "Sq=106", "Sk=106"], "40", "true"),
        (&["B=1", "Hq=1", "Hkv=1", "Sq=65", "Sk=1"], "256", "false"),
        (&["B=1", "Hq=1", "Hkv=1", "Sq=64", "Sk=256"], "16", "true"),
    ];
    for (sizes, head_dim, causal) in shapes {
        let dimension = format!("D={head_dim}");
        let sizes: Vec<&str> = sizes.iter().copied().chain([dimension.as_str()]).collect();
        for target in [Target::SM_80, Target::SM_90A, Target::GFX942] {
            clean(fwd, target, &sizes, &[("causal", causal)]);
        }
    }
}

/// Block 0 sets a counter, the others add to it: in some order.
#[kernel(block = [32, 1, 1])]
fn counts(#[comptime] plain: bool, counter: TensorMut<I32, 1>) {
    if thread_id(X) == 0 {
        if const_expr(plain) {
            if block_id(X) == 0 {
                counter.at(0).store(I32::from(0)); // <- PLAIN
            } else {
                let _ = counter.at(0).atomic_add(I32::from(1)); // <- ATOMIC
            }
        } else {
            let _ = counter.at(0).atomic_add(I32::from(1));
        }
    }
}

#[test]
fn an_atomic_of_one_block_races_with_a_plain_store_of_another() {
    for seed in 0..10 {
        let launch = |plain: bool| {
            let dev = device().with_seed(seed);
            let mut counter = dev.tensor_zeros::<i32, 1>([1])?;
            counts::new(plain).grid([6, 1, 1]).launch(&dev, (&mut counter,))?;
            counter.to_vec()
        };
        assert_eq!(launch(false).unwrap(), [6]);
        let Err(Error::Report(report)) = launch(true) else { panic!("no report") };
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        let lines = [marked("PLAIN"), marked("ATOMIC")];
        let line = report.location.as_ref().unwrap().line;
        assert!(lines.contains(&line), "{report}");
        let (what, other) = if line == lines[0] { ("this write", lines[1]) } else { ("this atomic", lines[0]) };
        assert!(report.message.contains(what), "{report}");
        assert!(report.message.contains(&format!("sanitizer.rs:{other}")), "{report}");
    }
}

/// Each block leaves its part and counts itself; the last one, which knows that by the counter, adds the parts up.
#[kernel(block = [32, 1, 1])]
fn last_block_adds(parts: TensorMut<I32, 1>, counter: TensorMut<I32, 1>, total: TensorMut<I32, 1>) {
    if thread_id(X) == 0 {
        parts.at(block_id(X)).store(block_id(X) + 1);
        fence(Scope::Device);
        let before = counter.at(0).atomic_add(I32::from(1));
        if before == grid_dim(X) - 1 {
            let mut sum = I32::from(0);
            for part in range(grid_dim(X)) {
                sum += parts.at(part).load();
            }
            total.at(0).store(sum);
        }
    }
}

#[test]
fn the_block_that_counts_itself_last_may_read_what_the_others_left() {
    for seed in 0..10 {
        let dev = device().with_seed(seed);
        let mut parts = dev.tensor_uninit::<i32, 1>([8]).unwrap();
        let mut counter = dev.tensor_zeros::<i32, 1>([1]).unwrap();
        let mut total = dev.tensor_uninit::<i32, 1>([1]).unwrap();
        last_block_adds::new().grid([8, 1, 1]).launch(&dev, (&mut parts, &mut counter, &mut total)).unwrap();
        assert_eq!(total.to_vec().unwrap(), [36]);
    }
}

/// Two tiles by way of shared memory, the second on its way while the first is used; without its wait when `hasty`.
#[kernel(block = [32, 1, 1])]
fn doubled(#[comptime] hasty: bool, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let tiles = shared_array_named::<F32>("tiles", 64);
    let i = thread_id(X);
    for tile in range_constexpr(2) {
        let at = i + ((tile * 32) as i32);
        cp_async::<4>(tiles.at(at), x.at(at), Bool::from(true));
        cp_async_commit();
    }
    for tile in range_constexpr(2) {
        if const_expr(!hasty || tile == 0) {
            cp_async_wait(1 - tile);
        }
        let at = i + ((tile * 32) as i32);
        y.at(at).store(tiles.at(at).load() * 2.0); // <- HASTY
    }
    if const_expr(hasty) {
        cp_async_wait(0);
    }
}

#[test]
fn copies_land_early_or_late_by_the_seed_and_a_missing_wait_shows_on_every_one() {
    let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
    let (mut unwritten, mut races) = (0, 0);
    for seed in 0..40 {
        let launch = |hasty: bool| {
            let dev = device().with_seed(seed);
            let x = dev.tensor_from_slice(&x, [64])?;
            let mut y = dev.tensor_uninit::<f32, 1>([64])?;
            doubled::new(hasty).grid([1, 1, 1]).launch(&dev, (&x, &mut y))?;
            y.to_vec()
        };
        assert!(launch(false).unwrap().iter().zip(&x).all(|(y, x)| *y == 2.0 * x));
        let Err(Error::Report(report)) = launch(true) else { panic!("seed {seed}: no report") };
        assert_eq!(report.location.as_ref().unwrap().line, marked("HASTY"), "{report}");
        match report.kind {
            ReportKind::Uninitialized => unwritten += 1,
            ReportKind::Race => races += 1,
            _ => panic!("{report}"),
        }
    }
    // Late copies leave memory unwritten; early ones are seen by their order alone.
    assert!(unwritten > 0 && races > 0, "{unwritten} late, {races} early");
}

#[test]
fn divergent_branches_and_candidates_for_vectors_by_line() {
    /// Adds four neighbours, one by one; odd threads then double.
    #[kernel(block = [32, 1, 1])]
    fn fours(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
        let i = thread_id(X);
        let mut sum = F32::from(0.0);
        for part in range_constexpr(4) {
            sum += x.at(i * 4 + (part as i32)).load(); // <- FOURS
        }
        // -> PARTS
        if i % 2 == 1 {
            sum = sum * 2.0;
        }
        y.at(i).store(sum);
    }
    let dev = device().with_checks(Checks::default().with(Check::Performance));
    let x = dev.tensor_from_slice(&[1.0_f32; 128], [128]).unwrap();
    let mut y = dev.tensor_uninit::<f32, 1>([32]).unwrap();
    let stats = fours::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
    let cost = stats.line_costs.iter().find(|cost| cost.location.line == marked("FOURS")).unwrap();
    assert_eq!((cost.accesses, cost.adjacent, cost.aligned), (4, 3, 2));
    let line = include_str!("sanitizer.rs").lines().position(|line| line.ends_with("// -> PARTS")).unwrap() as u32 + 2;
    let branch = stats.branches.iter().find(|branch| branch.location.line == line).unwrap();
    assert_eq!((branch.executed, branch.divergent), (1, 1));
}

mod before {
    use lacewing::prelude::*;

    #[device]
    fn factor(x: F32) -> F32 {
        x * 2.0
    }

    #[kernel(block = [32, 1, 1])]
    pub fn scaled(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
        y.at(thread_id(X)).store(factor(x.at(thread_id(X)).load()));
    }
}

mod after {
    use lacewing::prelude::*;

    #[device]
    fn factor(x: F32) -> F32 {
        x * 3.0
    }

    #[kernel(block = [32, 1, 1])]
    pub fn scaled(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
        y.at(thread_id(X)).store(factor(x.at(thread_id(X)).load()));
    }
}

/// D30: what is kept of a kernel is found by what it was made from; `cache::disk` has tests of its own.
#[test]
fn d30_an_edit_of_a_helper_is_another_kernel() {
    let dev = device();
    let x = dev.tensor_from_slice(&[1.0_f32; 32], [32]).unwrap();
    let mut y = dev.tensor_uninit::<f32, 1>([32]).unwrap();
    for _ in 0..2 {
        before::scaled::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [2.0; 32]);
        after::scaled::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0; 32]);
    }
    assert_ne!(before::scaled::new().mlir(Target::SM_80).unwrap(), after::scaled::new().mlir(Target::SM_80).unwrap());
}
