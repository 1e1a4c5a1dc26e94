//! Indices that leave a tensor, lanes that a warp does not have, and loops that nobody can end.

use super::*;

/// Differences along the rows of a matrix, or along its columns, or of one row of a stack of matrices. Faults: 1, the last of a
/// row takes the first of the next; 2, the first of a row takes the last of the one before; 3, the same of a tensor of rank 3 by
/// way of `matrix`; 4, the same by a vector's worth of elements, whose first is outside.
#[kernel(block = [32, 1, 1])]
fn differences(#[comptime] fault: usize, x: Tensor<F32, 2>, stack: Tensor<F32, 3>, y: TensorMut<F32, 2>) {
    let (row, column) = (block_id(X), lane_id());
    if column < x.extent(1) {
        let value = x.at((row, column)).load();
        let other = match fault {
            1 => x.at((row, column + 1)).load(),                 // <- NEXT ROW
            2 => x.at((row, column - 1)).load(),                 // <- ROW BEFORE
            3 => stack.matrix(1).at((row, column + 1)).load(),   // <- IN A STACK
            4 => x.at((row, column * 2)).load_vec::<2>().get(0), // <- IN TWOS
            _ => {
                let place = x.at((row, column + 1));
                place.load_if(column + 1 < x.extent(1), F32::from(0.0))
            }
        };
        y.at((row, column)).store(other - value);
    }
}

fn run_differences(dev: &Device, fault: usize) -> Result<LaunchStats, Error> {
    const ROWS: usize = 5;
    const COLUMNS: usize = 20;
    let numbers: Vec<f32> = (0..3 * ROWS * COLUMNS).map(|i| (i * i % 17) as f32).collect();
    // A view whose rows lie in a larger matrix, so that no overrun leaves the buffer.
    let all = dev.tensor_from_slice(&numbers, [3 * ROWS, COLUMNS])?;
    let x = all.slice(0, ROWS..2 * ROWS)?;
    let stack = dev.tensor_from_slice(&numbers, [3, ROWS, COLUMNS])?;
    let mut y = dev.tensor_uninit::<f32, 2>([ROWS, COLUMNS])?;
    let stats = differences::new(fault).grid([ROWS, 1, 1]).launch(dev, (&x, &stack, &mut y))?;
    let x = x.to_vec()?;
    for (i, y) in y.to_vec()?.into_iter().enumerate() {
        let next = if i % COLUMNS + 1 < COLUMNS { x[i + 1] } else { 0.0 };
        assert_eq!(y, next - x[i], "{i}");
    }
    Ok(stats)
}

#[test]
fn an_index_past_the_end_of_a_row() {
    for target in [Target::SM_80, Target::GFX942] {
        clean(target, |dev| run_differences(dev, 0));
        let faults = [
            (1, "NEXT ROW", 19, "index 20 of 20 along dimension 1: read outside `x`"),
            (2, "ROW BEFORE", 0, "index -1 of 20 along dimension 1: read outside `x`"),
            (3, "IN A STACK", 19, "index 20 of 20 along dimension 2: read outside `stack`"),
            (4, "IN TWOS", 10, "index 20 of 20 along dimension 1: read outside `x`"),
        ];
        for (fault, tag, lane, message) in faults {
            for report in faulty(target, &[(ReportKind::OutOfBounds, tag)], |dev| run_differences(dev, fault)) {
                assert_eq!((report.message.as_str(), report.lane), (message, Some(lane)), "{report}");
                let note = "the address is that of another element, such as one of the next row";
                assert!(report.notes.iter().any(|found| found == note), "{report}");
            }
        }
    }
}

/// Sums of a part of a vector, which is the whole tensor for the kernel.
#[kernel(block = [32, 1, 1])]
fn part_sums(#[comptime] inclusive: bool, x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let mut sum = I32::from(0);
    for i in range(0, if const_expr(inclusive) { x.extent(0) + 1 } else { x.extent(0) }) {
        sum += x.at(i).load(); // <- OF A PART
    }
    y.at(lane_id()).store(sum);
}

#[test]
fn an_index_past_the_end_of_a_view() {
    let run = |dev: &Device, inclusive, stride: i64| {
        let all = dev.tensor_from_slice(&(0..100).collect::<Vec<i32>>(), [100])?;
        let x = all.as_strided::<1>(50, [10], [stride])?;
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        let stats = part_sums::new(inclusive).grid([1, 1, 1]).launch(dev, (&x, &mut y))?;
        assert_eq!(y.to_vec()?[0], (0..10).map(|i| 50 + i * stride as i32).sum::<i32>());
        Ok(stats)
    };
    for stride in [1, 3, 0, -2] {
        clean(Target::SM_80, |dev| run(dev, false, stride));
        for report in faulty(Target::SM_80, &[(ReportKind::OutOfBounds, "OF A PART")], |dev| run(dev, true, stride)) {
            assert_eq!(report.message, "index 10 of 10: read outside `x`");
        }
    }
}

/// Places that begin outside and are used inside: an element further on, tiles, and addresses that nothing is done with.
#[kernel(block = [32, 1, 1])]
fn comes_back(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let (row, column) = (block_id(X), lane_id());
    let outside = x.at((row, column - 1));
    let tile = x.local_tile([2, 8], (row / 2, column / 8));
    let far = x.local_tile([2, 8], (row / 2, column / 8 + 100));
    let mut sum = outside.offset(1).load() + tile.at((row % 2, column % 8)).load();
    if far.extent(1) > 0 {
        sum += far.at((0, 0)).load();
    }
    y.at((row, column)).store(sum);
}

#[test]
fn addresses_that_come_back_are_no_fault() {
    for target in [Target::SM_80, Target::GFX942] {
        clean(target, |dev| {
            let x = dev.tensor_from_slice(&(0..6 * 64).map(|i| i as f32).collect::<Vec<_>>(), [6, 64])?;
            let mut y = dev.tensor_zeros::<f32, 2>([6, 64])?;
            let stats = comes_back::new().grid([6, 1, 1]).launch(dev, (&x, &mut y))?;
            for (i, (x, y)) in x.to_vec()?.into_iter().zip(y.to_vec()?).enumerate().filter(|(i, _)| i % 64 < 32) {
                assert_eq!(y, 2.0 * x, "{i}");
            }
            Ok(stats)
        });
    }
}

/// A butterfly for waves of 64 on any chip; `how` says how lanes are named.
#[kernel(block = [64, 1, 1])]
fn wide_butterfly(#[comptime] how: usize, y: TensorMut<I32, 1>) {
    let lane = lane_id();
    let other = match how {
        0 => shfl_xor(lane, 32),            // <- XOR 32
        1 => shfl_xor(lane, lane * 0 + 32), // <- XOR BY A VALUE
        2 => shfl_idx(lane, lane + 1),      // <- ONE BEYOND
        3 => shfl_idx(lane, lane - 1),      // <- ONE BEFORE
        4 => shfl_down(lane, 32),           // <- DOWN 32
        _ => shfl_idx(lane, (lane + 1) % target().warp_size() as i32),
    };
    y.at(thread_id(X)).store(other);
}

#[test]
fn lanes_that_a_warp_does_not_have() {
    let run = |dev: &Device, how| {
        let mut y = dev.tensor_uninit::<i32, 1>([64])?;
        wide_butterfly::new(how).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    let faults = [
        (0, "XOR 32", "a shuffle over 32 lanes: a warp of this target has 32"),
        (1, "XOR BY A VALUE", "a shuffle over 32 lanes: a warp of this target has 32"),
        (2, "ONE BEYOND", "a shuffle reads lane 32: a warp of this target has lanes 0 to 31"),
        (3, "ONE BEFORE", "a shuffle reads lane -1: a warp of this target has lanes 0 to 31"),
        (4, "DOWN 32", "a shuffle over 32 lanes: a warp of this target has 32"),
    ];
    for (how, tag, message) in faults {
        for report in faulty(Target::SM_80, &[(ReportKind::InactiveLaneRead, tag)], |dev| run(dev, how)) {
            assert_eq!(report.message, message, "{report}");
        }
    }
    clean(Target::SM_80, |dev| run(dev, 5));
    for how in [0, 1, 4, 5] {
        clean(Target::GFX942, |dev| run(dev, how));
    }
    faulty(Target::GFX942, &[(ReportKind::InactiveLaneRead, "ONE BEYOND")], |dev| run(dev, 2));
}

/// Warp 0 goes round until a flag is set. Faults: 1, warp 1 waits for it at the barrier first; 2, nobody sets the flag; 3, warp
/// 1 waits for a flag of warp 0's, which warp 0 sets behind its loop.
#[kernel(block = [64, 1, 1])]
fn waits_for_a_flag(#[comptime] fault: usize, y: TensorMut<I32, 1>) {
    let flags = shared_array_named::<I32>("flags", 2);
    if thread_id(X) < 2 {
        flags.at(thread_id(X)).store(I32::from(0));
    }
    barrier();
    if warp_id() == 0 {
        // -> GOES ROUND
        while flags.at(0).atomic_add_with(I32::from(0), Ordering::Acquire, Scope::Block) == 0 {}
        if const_expr(fault == 1) {
            barrier();
        }
        if lane_id() == 0 {
            let _ = flags.at(1).atomic_exch(I32::from(1));
        }
    } else {
        if const_expr(fault == 1) {
            barrier();
        }
        if const_expr(fault == 3) {
            while flags.at(1).atomic_add(I32::from(0)) == 0 {}
        }
        if const_expr(fault != 2) {
            if lane_id() == 0 {
                let _ = flags.at(0).atomic_exch_with(I32::from(1), Ordering::Release, Scope::Block);
            }
        }
    }
    y.at(block_id(X) * 64 + thread_id(X)).store(thread_id(X));
}

#[test]
fn a_loop_for_a_flag_that_nobody_can_set() {
    let run = |target: Target, seed: u64, fault| {
        let dev = Device::emulator(target).unwrap().with_seed(seed);
        let mut y = dev.tensor_uninit::<i32, 1>([192])?;
        waits_for_a_flag::new(fault).grid([3, 1, 1]).launch(&dev, (&mut y,))
    };
    let text = include_str!("indices.rs");
    let line = text.lines().position(|line| line.ends_with("// -> GOES ROUND")).unwrap() as u32 + 2;
    for seed in SEEDS {
        let others = [
            (1, "warp 1 waits at the block's barrier at tests/suite/faults/indices.rs:"),
            (2, "warp 1 has ended"),
            (3, "warp 1 goes round in the loop at tests/suite/faults/indices.rs:"),
        ];
        for (fault, other) in others {
            let Err(Error::Report(report)) = run(Target::SM_80, seed, fault) else { panic!("no report") };
            assert_eq!(report.kind, ReportKind::Deadlock, "{report}");
            assert_eq!(report.message, "deadlock: this loop waits for memory that no warp is left to write");
            assert_eq!(report.location.as_ref().map(|l| l.line), Some(line), "{report}");
            assert!(report.notes[0].starts_with("warp 0 goes round in the loop at "), "{report}");
            assert!(report.notes[1].starts_with(other), "{report}");
        }
    }
}

/// Two products; the wait in front of the second is for the phase of `parity`.
#[kernel(block = [128, 1, 1])]
fn one_after_the_other(#[comptime] parity: i32, x: TensorMap<F16, 2>, d: TensorMut<F32, 1>) {
    let tile = SwizzledTile::<F16>::new("tile", 64, 64);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    if warp_id() == 0 && elect_one() {
        full.expect(tile.bytes());
        x.load(tile, (0, 0), full); // <- FIRST LOAD
    }
    full.wait(I32::from(parity)); // <- WAITS FOR A PHASE
    let sums = wgmma(tile, tile.t()).wait::<0>(); // <- ITS PRODUCT
    d.at(thread_id(X)).store(sums[0]);
}

#[test]
fn the_wait_for_a_wrong_phase_is_to_blame_not_the_product_behind_it() {
    let run = |dev: &Device, parity| {
        let x = dev.tensor_from_slice(&vec![f16::ONE; 64 * 64], [64, 64])?;
        let mut d = dev.tensor_uninit::<f32, 1>([128])?;
        one_after_the_other::new(parity).grid([1, 1, 1]).launch(dev, (&x, &mut d))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    let kinds = [
        (ReportKind::Deadlock, "WAITS FOR A PHASE"),
        (ReportKind::Race, "ITS PRODUCT"),
        (ReportKind::Race, "FIRST LOAD"),
        (ReportKind::Uninitialized, "ITS PRODUCT"),
    ];
    for report in faulty(Target::SM_90A, &kinds, |dev| run(dev, 1)) {
        if report.kind == ReportKind::Deadlock {
            assert!(report.help.as_deref().is_some_and(|help| help.contains("the other parity")), "{report}");
        }
    }
}

/// Each block turns its part of a vector round, by way of scratch in global memory. `how`: 0, all threads meet between the store
/// and the load; 1, they do not; 2, the lanes of a warp alone meet; 3, a thread takes what it left itself; 4, all store one value,
/// and one thread of each block takes it.
#[kernel(block = [128, 1, 1])]
fn by_way_of_scratch(#[comptime] how: usize, x: Tensor<F32, 1>, scratch: TensorMut<F32, 1>, y: TensorMut<F32, 1>) {
    let (thread, base) = (thread_id(X), block_id(X) * 128);
    let slot = if const_expr(how == 4) { base } else { base + thread };
    let value = if const_expr(how == 4) { F32::from(2.0) } else { x.at(base + thread).load() * 2.0 };
    scratch.at(slot).store(value); // <- TO SCRATCH
    match how {
        0 | 4 => barrier(),
        2 => warp_sync(),
        _ => {}
    }
    let other = match how {
        2 => base + thread / 32 * 32 + (31 - thread % 32),
        3 | 4 => slot,
        _ => base + (127 - thread),
    };
    y.at(base + thread).store(scratch.at(other).load()); // <- FROM SCRATCH
}

#[test]
fn global_memory_that_threads_of_a_block_hand_over_without_a_barrier() {
    let run = |dev: &Device, how: usize| {
        let numbers: Vec<f32> = (0..384).map(|i| if how == 4 { 1.0 } else { i as f32 }).collect();
        let x = dev.tensor_from_slice(&numbers, [384])?;
        let (mut scratch, mut y) = (dev.tensor_zeros::<f32, 1>([384])?, dev.tensor_uninit::<f32, 1>([384])?);
        let stats = by_way_of_scratch::new(how).grid([3, 1, 1]).launch(dev, (&x, &mut scratch, &mut y))?;
        for (i, y) in y.to_vec()?.into_iter().enumerate() {
            let from = match how {
                0 => i / 128 * 128 + 127 - i % 128,
                2 => i / 32 * 32 + 31 - i % 32,
                _ => i,
            };
            assert_eq!(y, 2.0 * numbers[from], "{i}");
        }
        Ok(stats)
    };
    for target in [Target::SM_80, Target::GFX942] {
        for how in [0, 2, 3, 4] {
            clean(target, |dev| run(dev, how));
        }
        let kinds = [(ReportKind::Race, "TO SCRATCH"), (ReportKind::Race, "FROM SCRATCH")];
        for report in faulty(target, &kinds, |dev| run(dev, 1)) {
            assert!(report.message.starts_with("race in global memory: nothing orders this "), "{report}");
            assert_eq!(report.help.as_deref(), Some("put a `barrier()` between the two"), "{report}");
        }
    }
}

/// A warp adds up a row in place, element by element, or with a step for all lanes at once that forgets to let the lanes meet.
#[kernel(block = [32, 1, 1])]
fn prefix_in_place(#[comptime] met: bool, x: TensorMut<I32, 1>) {
    let lane = lane_id();
    for step in range_constexpr(5) {
        let before = x.at(lane - (1 << step)).load_if(lane >= 1 << step, I32::from(0)); // <- BEFORE IT
        let own = x.at(lane).load();
        if const_expr(met) {
            warp_sync();
        }
        x.at(lane).store(own + before); // <- ADDS TO IT
        if const_expr(met) {
            warp_sync();
        }
    }
}

#[test]
fn lanes_that_change_what_others_read() {
    let run = |dev: &Device, met| {
        let mut x = dev.tensor_from_slice(&[1; 32], [32])?;
        let stats = prefix_in_place::new(met).grid([1, 1, 1]).launch(dev, (&mut x,))?;
        assert_eq!(x.to_vec()?, (1..=32).collect::<Vec<_>>());
        Ok(stats)
    };
    clean(Target::SM_80, |dev| run(dev, true));
    faulty(Target::SM_80, &[(ReportKind::Race, "ADDS TO IT"), (ReportKind::Race, "BEFORE IT")], |dev| run(dev, false));
    // The lanes of AMD's waves run in lockstep.
    clean(Target::GFX942, |dev| run(dev, false));
}

/// A warp hands numbers over to another in global memory, by way of a ring of two stages. Faults: 1, the elected lane commits
/// before the others are known to have stored; 2, nobody waits.
#[kernel(block = [64, 1, 1])]
fn ring_in_global_memory(
    #[comptime] fault: usize,
    ring: TensorMut<I32, 2>,
    y: TensorMut<I32, 1>,
    rounds: Uniform<I32>,
) {
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 2, 1);
    setup.finish();
    let (mut at, lane) = (stages.start(), lane_id());
    if warp_id() == 0 {
        for round in range(rounds) {
            stages.wait_empty(at); // <- IS IT EMPTY
            ring.at((at.stage(), lane)).store(*round * 100 + lane); // <- INTO THE RING
            if const_expr(fault != 1) {
                warp_sync();
            }
            if elect_one() {
                stages.commit(at);
            }
            at.advance();
        }
    } else {
        let mut sum = I32::from(0);
        for _ in range(rounds) {
            if const_expr(fault != 2) {
                stages.wait(at);
            }
            sum += ring.at((at.stage(), 31 - lane)).load(); // <- OUT OF THE RING
            warp_sync();
            stages.release_warp(at);
            at.advance();
        }
        y.at(lane).store(sum);
    }
}

#[test]
fn arrivals_order_global_memory_too() {
    let run = |dev: &Device, fault| {
        let mut ring = dev.tensor_zeros::<i32, 2>([2, 32])?;
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        ring_in_global_memory::new(fault).grid([1, 1, 1]).launch(dev, (&mut ring, &mut y, 6))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    for report in faulty(Target::SM_90A, &[(ReportKind::Race, "OUT OF THE RING")], |dev| run(dev, 1)) {
        assert!(report.help.as_deref().is_some_and(|help| help.starts_with("put a `warp_sync()` before")), "{report}");
    }
    let kinds = [
        (ReportKind::Race, "OUT OF THE RING"),
        (ReportKind::Race, "INTO THE RING"),
        (ReportKind::Deadlock, "IS IT EMPTY"),
    ];
    faulty(Target::SM_90A, &kinds, |dev| run(dev, 2));
}
