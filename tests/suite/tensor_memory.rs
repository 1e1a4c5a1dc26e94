//! Tensor memory and the products that sum there, on the emulator of sm_100a: right kernels against plain products,
//! wrong ones with their reports (D19, D20, D21) at their lines, marked `// <- D20` and so on.

use half::{bf16, f16};
use lacewing::prelude::*;
use lacewing::runtime::emulator::{Check, Checks, Report, ReportKind};
use lacewing::runtime::{Error, LaunchStats};

fn device() -> Device {
    Device::emulator(Target::SM_100A).unwrap()
}

/// Number of the line of this file that ends in `// <- TAG`.
fn marked(tag: &str) -> u32 {
    let mark = format!("// <- {tag}");
    let line = include_str!("tensor_memory.rs").lines().position(|line| line.ends_with(&mark));
    line.unwrap() as u32 + 1
}

#[track_caller]
fn assert_report(outcome: Result<LaunchStats, Error>, kind: ReportKind, tag: &str) -> Box<Report> {
    let Err(Error::Report(report)) = outcome else { panic!("no report: {outcome:?}") };
    assert_eq!(report.kind, kind, "{report}");
    let location = report.location.as_ref().unwrap();
    assert!(location.file.ends_with("tensor_memory.rs") && location.line == marked(tag), "{report}");
    report
}

/// A whole number of a few bits that depends on its place.
fn number(i: usize, step: usize) -> f32 {
    (i * step % 7) as f32 - 3.0
}

fn numbers<T: lacewing::runtime::Element>(
    dev: &Device,
    [rows, columns]: [usize; 2],
    step: usize,
    narrow: fn(f32) -> T,
) -> DevTensor<T, 2> {
    let elements: Vec<T> = (0..rows * columns).map(|i| narrow(number(i, step))).collect();
    dev.tensor_from_slice(&elements, [rows, columns]).unwrap()
}

/// What a product is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    m: usize,
    n: usize,
    k: usize,
    /// Whether A and B lie transposed in global and shared memory: A as k x m, B as k x n.
    a_across: bool,
    b_across: bool,
}

/// Fills a tile by all threads, element by element.
#[device]
fn fill<T: MmaElement>(tile: SwizzledTile<T>, source: Tensor<T, 2>) {
    let elements = (tile.rows() * tile.columns()) as i32;
    let columns = tile.columns() as i32;
    for i in range(thread_id(X), elements, 128) {
        let place = (i / columns, i % columns);
        tile.at(place).store(source.at(place).load()); // <- STORED
    }
}

/// `d = a b` of one tile, twice over: the second product adds to the first.
#[kernel(block = [128, 1, 1])]
fn one_tile<T: MmaElement>(
    #[comptime] shape: Shape,
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    d: TensorMut<F32, 2>,
    twice: I32,
) {
    let Shape { m, n, k, a_across, b_across } = shape;
    let (a_rows, a_columns) = if const_expr(a_across) { (k, m) } else { (m, k) };
    let (b_rows, b_columns) = if const_expr(b_across) { (k, n) } else { (n, k) };
    let a_tile = SwizzledTile::<T>::new("a", a_rows, a_columns);
    let b_tile = SwizzledTile::<T>::new("b", b_rows, b_columns);
    let mut setup = BarrierSetup::new();
    let (read, done) = (setup.mbarrier("read", 1), setup.mbarrier("done", 1));
    setup.finish();
    let memory = TensorMemory::alloc(256);
    memory.relinquish_alloc_permit();
    fill(a_tile, a);
    fill(b_tile, b);
    fence_proxy(ProxyFence::AsyncShared);
    barrier();
    let sums = memory.accumulator(m, 0, n);
    if warp_id() == 0 && elect_one() {
        let mut more = Bool::from(false);
        for _ in range(twice) {
            let product = if const_expr(a_across) {
                if const_expr(b_across) {
                    tcgen05_mma(a_tile.t(), b_tile, sums, more)
                } else {
                    tcgen05_mma(a_tile.t(), b_tile.t(), sums, more)
                }
            } else if const_expr(b_across) {
                tcgen05_mma(a_tile, b_tile, sums, more)
            } else {
                tcgen05_mma(a_tile, b_tile.t(), sums, more)
            };
            product.commit(read);
            more = Bool::from(true);
        }
        tcgen05_commit(done);
    }
    let rows = sums.wait(done, I32::from(0)).own_rows();
    let row = warp_id() * ((m / 4) as i32) + lane_id();
    for j in range_constexpr(n / 8) {
        let values = rows.load::<8>(8 * j).wait();
        if lane_id() < ((m / 4) as i32) {
            for i in range_constexpr(8) {
                d.at((row, 8 * j + i)).store(values[i]);
            }
        }
    }
    memory.dealloc();
}

fn multiply<T: MmaElement + Scalar<Host: lacewing::runtime::ElementOf<T>>>(
    dev: &Device,
    shape: &Shape,
    twice: i32,
    narrow: fn(f32) -> T::Host,
) -> Vec<f32> {
    let Shape { m, n, k, a_across, b_across } = *shape;
    let a = numbers(dev, if a_across { [k, m] } else { [m, k] }, 5, narrow);
    let b = numbers(dev, if b_across { [k, n] } else { [n, k] }, 3, narrow);
    let mut d = dev.tensor_uninit::<f32, 2>([m, n]).unwrap();
    let launched = one_tile::<T>::new(shape.clone()).grid([1, 1, 1]).launch(dev, (&a, &b, &mut d, twice));
    launched.unwrap_or_else(|error| panic!("{shape:?}: {error}"));
    d.to_vec().unwrap()
}

#[test]
fn products_of_every_layout_are_exact_on_whole_numbers() {
    let shapes = [
        (128, 16, 16),
        (128, 32, 64),
        (128, 64, 80),
        (128, 112, 32),
        (128, 256, 64),
        (64, 8, 16),
        (64, 24, 48),
        (64, 64, 128),
    ];
    for (seed, (m, n, k)) in shapes.into_iter().enumerate() {
        for (a_across, b_across) in [(false, false), (false, true), (true, false), (true, true)] {
            // Rows of a tile have a multiple of 32 bytes.
            if b_across && n % 16 != 0 {
                continue;
            }
            let shape = Shape { m, n, k, a_across, b_across };
            let dev = device().with_seed(seed as u64);
            let twice = 1 + (seed % 3) as i32;
            let found = if seed % 2 == 0 {
                multiply::<F16>(&dev, &shape, twice, f16::from_f32)
            } else {
                multiply::<BF16>(&dev, &shape, twice, bf16::from_f32)
            };
            let a = |row: usize, i: usize| number(if a_across { i * m + row } else { row * k + i }, 5);
            let b = |column: usize, i: usize| number(if b_across { i * n + column } else { column * k + i }, 3);
            for (place, found) in found.into_iter().enumerate() {
                let (row, column) = (place / n, place % n);
                let sum: f32 = (0..k).map(|i| a(row, i) * b(column, i)).sum();
                assert_eq!(found, twice as f32 * sum, "{shape:?}: {row}, {column}");
            }
        }
    }
}

/// One mistake each, by number.
#[kernel(block = [128, 1, 1])]
fn wrong(#[comptime] mistake: u32, a: Tensor<F16, 2>, d: TensorMut<F32, 2>) {
    let tile = SwizzledTile::<F16>::new("tile", 128, 32);
    let mut setup = BarrierSetup::new();
    let (done, free) = (setup.mbarrier("done", 1), setup.mbarrier("free", 128));
    setup.finish();
    let memory = TensorMemory::alloc(128);
    memory.relinquish_alloc_permit();
    let sums = memory.accumulator(128, 0, 128);
    fill(tile, a);
    if const_expr(mistake != 19) {
        fence_proxy(ProxyFence::AsyncShared);
    }
    barrier();
    let first = Bool::from(mistake == 1);
    if const_expr(mistake == 2) {
        if warp_id() == 0 {
            tcgen05_mma(tile, tile.t(), sums, first).commit(done); // <- THREADS
        }
    }
    let multiplies = if const_expr(mistake == 3) { warp_id() < 2 } else { warp_id() == 0 };
    if multiplies && elect_one() {
        let product = tcgen05_mma(tile, tile.t(), sums, first); // <- PRODUCT
        if const_expr(mistake == 4) {
            product.commit(free);
        } else {
            product.commit(done);
        }
    }
    barrier();
    if const_expr(mistake == 4) {
        // Another thread's commit waits for none of the products.
        if warp_id() == 1 && elect_one() {
            tcgen05_commit(done);
        }
    }
    if const_expr(mistake == 5) {
        tile.at((thread_id(X), 0)).store(F16::from(f16::ONE)); // <- OVERWRITTEN
    }
    let rows = if const_expr(mistake == 6) {
        // The wait without its fence.
        done.wait(I32::from(0));
        memory.tile(0, 128).own_rows()
    } else if const_expr(mistake == 20) {
        sums.wait(done, I32::from(1)).own_rows()
    } else {
        sums.wait(done, I32::from(0)).own_rows()
    };
    let load = rows.load::<4>(64); // <- LOADED
    let values = load.wait();
    for i in range_constexpr(4) {
        d.at((thread_id(X), i)).store(values[i]);
    }
    if const_expr(mistake == 7) {
        free.arrive();
        if warp_id() == 0 && elect_one() {
            free.wait(I32::from(0));
            tcgen05_mma(tile, tile.t(), sums, first).commit(done); // <- AGAIN
            done.wait(I32::from(1));
        }
    } else if const_expr(mistake == 8) {
        tcgen05_fence_before_thread_sync();
        free.arrive();
        if warp_id() == 0 && elect_one() {
            free.wait(I32::from(0));
            tcgen05_fence_after_thread_sync();
            tcgen05_mma(tile, tile.t(), sums, first).commit(done);
            done.wait(I32::from(1));
        }
    } else if const_expr(mistake == 9) {
        tcgen05_fence_before_thread_sync();
        barrier();
        tcgen05_fence_after_thread_sync();
        if warp_id() == 0 && elect_one() {
            tcgen05_mma(tile, tile.t(), sums, first).commit(free); // <- UNWAITED
        }
    }
    memory.dealloc();
}

fn run_wrong(mistake: u32, seed: u64, checks: Checks) -> Result<LaunchStats, Error> {
    let dev = device().with_seed(seed).with_checks(checks);
    let a = numbers(&dev, [128, 32], 5, f16::from_f32);
    let mut d = dev.tensor_uninit::<f32, 2>([128, 4]).unwrap();
    let stats = wrong::new(mistake).grid([1, 1, 1]).launch(&dev, (&a, &mut d))?;
    let sums = d.to_vec()?;
    let sum: f32 = (0..32).map(|i| number(64 * 32 + i, 5) * number(i, 5)).sum();
    assert_eq!(sums[0], sum);
    Ok(stats)
}

#[test]
fn mistakes_are_found_at_their_line_under_every_seed() {
    for seed in 0..10 {
        let run = |mistake| run_wrong(mistake, seed, Checks::default());
        run(0).unwrap();
        run(8).unwrap();

        let early = assert_report(run(20), ReportKind::InFlight, "LOADED");
        let product =
            format!("column 64, while the tcgen05.mma at tests/suite/tensor_memory.rs:{}:", marked("PRODUCT"));
        assert!(early.message.starts_with("tcgen05.ld of tensor memory, lane "), "{early}");
        assert!(early.message.contains(&product) && early.message.ends_with("under way, which sums there"), "{early}");
        assert!(early.help.as_deref().unwrap().contains("`accumulator.wait(barrier, parity)`"), "{early}");

        let alone = assert_report(run(4), ReportKind::InFlight, "LOADED");
        assert!(alone.message.contains("while the tcgen05.mma at "), "{alone}");

        let unwritten = assert_report(run(1), ReportKind::Uninitialized, "PRODUCT");
        assert_eq!(unwritten.message, "tcgen05.mma reads tensor memory that nothing wrote: lane 0, column 0");

        let threads = assert_report(run(2), ReportKind::TensorMemory, "THREADS");
        assert_eq!(threads.message, "32 threads of the warp execute this tcgen05.mma, and each makes one of its own");

        let two = assert_report(run(3), ReportKind::InFlight, "PRODUCT");
        assert!(two.message.contains("while the tcgen05.mma at "), "{two}");

        let overwritten = assert_report(run(5), ReportKind::Race, "OVERWRITTEN");
        assert!(overwritten.notes.contains(&"the product reads its operands until its commit arrives".to_owned()));

        let fence = assert_report(run(6), ReportKind::Race, "LOADED");
        assert!(fence.message.ends_with("which wrote it: no tcgen05 fence between them"), "{fence}");
        assert!(fence.notes[0].contains("no tcgen05.fence::after_thread_sync"), "{fence}");

        let again = assert_report(run(7), ReportKind::Race, "AGAIN");
        assert!(again.message.contains("the tcgen05.ld at ") && again.message.contains("which read it"), "{again}");
        assert!(again.notes[0].contains("no tcgen05.fence::before_thread_sync"), "{again}");

        // The block goes on to free what a product still sums in.
        let unwaited = run(9).unwrap_err().to_string();
        assert!(unwaited.contains("tensor memory is freed while the tcgen05.mma at "), "{unwaited}");
        assert!(unwaited.contains(&format!("tensor_memory.rs:{}:", marked("UNWAITED"))), "{unwaited}");

        let unfenced = assert_report(run(19), ReportKind::Race, "PRODUCT");
        assert!(unfenced.message.contains("nothing orders this tcgen05.mma of index 0 of `tile` and "), "{unfenced}");
        assert!(unfenced.message.contains(&format!("tensor_memory.rs:{}:", marked("STORED"))), "{unfenced}");
        assert!(unfenced.message.ends_with("no proxy fence between them"), "{unfenced}");
    }
    // Without the checks of races the results are what the hardware would give at best.
    run_wrong(6, 0, Checks::default().without(Check::Races)).unwrap();
}

/// Row blocks by an index: the warp's own, or another's.
#[kernel(block = [256, 1, 1])]
fn by_index(#[comptime] own: bool, d: TensorMut<F32, 2>) {
    let memory = TensorMemory::alloc(32);
    let tile = memory.tile(0, 32);
    if warp_id() < 4 {
        let number = thread_id(X).cast::<F32>();
        tile.own_rows().store(3, [number, number * 2.0]).wait();
    }
    tcgen05_fence_before_thread_sync();
    barrier();
    tcgen05_fence_after_thread_sync();
    if warp_id() >= 4 {
        let block = if const_expr(own) { warp_id() - 4 } else { warp_id() };
        let rows = tile.row_block(block);
        let values = rows.load::<2>(3).wait(); // <- D21
        d.at((thread_id(X) - 128, 0)).store(values[0] + values[1]);
    }
    memory.dealloc();
}

#[test]
fn d21_the_second_four_warps_reach_the_same_lanes_as_the_first() {
    for seed in 0..10 {
        let dev = device().with_seed(seed);
        let mut d = dev.tensor_uninit::<f32, 2>([128, 1]).unwrap();
        by_index::new(true).grid([1, 1, 1]).launch(&dev, (&mut d,)).unwrap();
        let wanted: Vec<f32> = (0..128).map(|i| 3.0 * i as f32).collect();
        assert_eq!(d.to_vec().unwrap(), wanted);

        let outcome = by_index::new(false).grid([1, 1, 1]).launch(&dev, (&mut d,));
        let report = assert_report(outcome, ReportKind::TensorMemory, "D21");
        let warp = report.warp.unwrap();
        assert!((4..8).contains(&warp));
        let (asked, own) = (32 * warp, 32 * (warp - 4));
        let message = format!(
            "warp {warp} loads lanes {asked} to {} of tensor memory, and it reaches lanes {own} to {} alone",
            asked + 31,
            own + 31
        );
        assert_eq!(report.message, message);
    }
}

/// Infinities times zero are born in the product.
#[test]
fn a_nan_of_a_product_is_blamed_on_it() {
    let dev = device();
    let mut elements = vec![f16::ONE; 128 * 32];
    elements[5 * 32 + 1] = f16::INFINITY;
    elements[66 * 32 + 1] = f16::ZERO;
    let a = dev.tensor_from_slice(&elements, [128, 32]).unwrap();
    let mut d = dev.tensor_uninit::<f32, 2>([128, 4]).unwrap();
    let report =
        assert_report(wrong::new(0).grid([1, 1, 1]).launch(&dev, (&a, &mut d)), ReportKind::NotANumber, "PRODUCT");
    assert!(report.message.contains("inf * 0"), "{report}");
}
