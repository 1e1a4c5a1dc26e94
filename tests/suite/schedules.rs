//! Persistent blocks on the emulator: every piece of work is done once, whoever takes it, and chains of products.

use half::bf16;
use lacewing::prelude::*;
use lacewing::runtime::emulator::ReportKind;
use lacewing::runtime::{Error, LaunchStats};

/// Number of the line of this file that ends in `// <- TAG`.
fn marked(tag: &str) -> u32 {
    let mark = format!("// <- {tag}");
    include_str!("schedules.rs").lines().position(|line| line.ends_with(&mark)).unwrap() as u32 + 1
}

/// Counts in `done` what one thread draws for itself.
#[kernel(block = [32, 1, 1])]
fn tally_alone(counter: TensorMut<I32, 1>, done: TensorMut<I32, 1>) {
    let schedule = Schedule::drawn_by_one(counter, uniform(done.extent(0)));
    if elect_one() {
        let mut ticket = schedule.start();
        while schedule.has(ticket) {
            let _ = done.at(ticket.number()).atomic_add(I32::from(1));
            schedule.draw(&mut ticket);
        }
    }
}

fn device() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

/// Counts in `done` how often each piece of work comes to the consumer warp, from a producer warp that draws them.
#[kernel(block = [64, 1, 1])]
fn tally(#[comptime] drawn: bool, counter: TensorMut<I32, 1>, done: TensorMut<I32, 1>) {
    let mut setup = BarrierSetup::new();
    let schedule = if const_expr(drawn) {
        Schedule::drawn(&mut setup, "tickets", counter, uniform(done.extent(0)), 1)
    } else {
        Schedule::in_turn(uniform(done.extent(0)))
    };
    setup.finish();
    count_all(schedule, done);
}

/// [`tally`] of what a table lists.
#[kernel(block = [64, 1, 1])]
fn tally_listed(table: Tensor<I32, 2>, done: TensorMut<I32, 1>) {
    count_all(Schedule::listed(table), done);
}

/// The same by pairs of blocks.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn tally_listed_by_pairs(table: Tensor<I32, 2>, done: TensorMut<I32, 1>) {
    count_all(Schedule::listed(table), done);
}

#[device]
fn count_all(schedule: Schedule, done: TensorMut<I32, 1>) {
    if warp_id() == 0 {
        if elect_one() {
            let mut ticket = schedule.start();
            while schedule.has(ticket) {
                schedule.draw(&mut ticket);
            }
        }
    } else {
        let mut ticket = schedule.start();
        while schedule.has(ticket) {
            if lane_id() == 0 {
                let _ = done.at(ticket.number()).atomic_add(I32::from(1));
            }
            schedule.receive(&mut ticket);
        }
    }
}

#[test]
fn every_piece_of_work_is_done_once() {
    for drawn in [false, true] {
        for (count, blocks) in [(1, 4), (4, 4), (23, 4), (9, 1), (0, 2)] {
            for seed in 0..4 {
                let dev = device().with_seed(seed);
                let mut counter = dev.tensor_zeros::<i32, 1>([1]).unwrap();
                let mut done = dev.tensor_zeros::<i32, 1>([count]).unwrap();
                // A counter that was used is as it was: the second launch does the same.
                for round in 1..=2 {
                    tally::new(drawn).grid([blocks, 1, 1]).launch(&dev, (&mut counter, &mut done)).unwrap();
                    assert_eq!(done.to_vec().unwrap(), vec![round; count], "{count} by {blocks}, drawn: {drawn}");
                    assert_eq!(counter.to_vec().unwrap(), [0]);
                }
                tally_alone::new().grid([blocks, 1, 1]).launch(&dev, (&mut counter, &mut done)).unwrap();
                assert_eq!(done.to_vec().unwrap(), vec![3; count], "{count} by {blocks}, one thread each");
                assert_eq!(counter.to_vec().unwrap(), [0]);
            }
        }
    }
}

/// Draws once, and fails.
#[kernel(block = [32, 1, 1])]
fn fails_behind_a_draw(counter: TensorMut<I32, 1>, done: TensorMut<I32, 1>) {
    if elect_one() {
        let _ = counter.at(0).atomic_add(I32::from(1));
        done.at(done.extent(0)).store(I32::from(1));
    }
}

#[test]
fn each_launch_finds_a_zero_in_its_counter() {
    let dev = device();
    let mut done = dev.tensor_zeros::<i32, 1>([9]).unwrap();
    for round in 1..=3 {
        let mut counter = dev.work_counters("tally", 1).unwrap();
        tally::new(true).grid([4, 1, 1]).launch(&dev, (&mut counter, &mut done)).unwrap();
        assert_eq!(done.to_vec().unwrap(), [round; 9]);
        // Not even a launch that a check has ended leaves something to the next.
        let mut counter = dev.work_counters("tally", 1).unwrap();
        let failed = fails_behind_a_draw::new().grid([1, 1, 1]).launch(&dev, (&mut counter, &mut done));
        assert!(matches!(failed, Err(Error::Report(_))), "{failed:?}");
        assert_eq!(counter.to_vec().unwrap(), [1]);
    }
}

#[test]
fn a_table_lists_each_blocks_work() {
    const TABLE: [[i32; 3]; 4] = [[5, 0, 2], [-1, 3, 3], [6, -1, 1], [4, 3, -7]];
    let wanted = |by: i32| vec![by, 0, by, by, by, by, by];
    for seed in 0..4 {
        let dev = device().with_seed(seed);
        let table = dev.tensor_from_slice(TABLE.as_flattened(), [4, 3]).unwrap();
        let mut done = dev.tensor_zeros::<i32, 1>([7]).unwrap();
        tally_listed::new().grid([4, 1, 1]).launch(&dev, (&table, &mut done)).unwrap();
        assert_eq!(done.to_vec().unwrap(), wanted(1));
        let mut done = dev.tensor_zeros::<i32, 1>([7]).unwrap();
        tally_listed_by_pairs::new().grid([8, 1, 1]).launch(&dev, (&table, &mut done)).unwrap();
        assert_eq!(done.to_vec().unwrap(), wanted(2));
        // Nothing is listed.
        let none = dev.tensor_zeros::<i32, 2>([4, 0]).unwrap();
        tally_listed::new().grid([4, 1, 1]).launch(&dev, (&none, &mut done)).unwrap();
        assert_eq!(done.to_vec().unwrap(), wanted(2));
    }
    // More blocks than rows.
    let dev = device();
    let table = dev.tensor_from_slice(TABLE.as_flattened(), [4, 3]).unwrap();
    let mut done = dev.tensor_zeros::<i32, 1>([7]).unwrap();
    let launched = tally_listed::new().grid([5, 1, 1]).launch(&dev, (&table, &mut done));
    let Err(Error::Report(report)) = launched else { panic!("no report: {launched:?}") };
    assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
}

/// Row and column of each tile, by its number.
#[kernel(block = [32, 1, 1])]
fn tiles(#[comptime] group: usize, rows: Uniform<I32>, columns: Uniform<I32>, out: TensorMut<I32, 2>) {
    let order = TileOrder::grouped(rows, columns, group);
    for number in range(order.count()) {
        if lane_id() == 0 {
            let (row, column) = order.at(number);
            out.at((number, 0)).store(*row);
            out.at((number, 1)).store(*column);
        }
    }
}

#[test]
fn tiles_come_in_groups_of_rows_column_by_column() {
    for (group, rows, columns) in [(4, 10, 3), (1, 3, 5), (8, 2, 7), (3, 9, 1)] {
        let dev = device();
        let mut out = dev.tensor_uninit::<i32, 2>([rows * columns, 2]).unwrap();
        tiles::new(group).grid([1, 1, 1]).launch(&dev, (rows as i32, columns as i32, &mut out)).unwrap();
        let mut wanted = Vec::new();
        for first in (0..rows).step_by(group) {
            for column in 0..columns {
                wanted.extend((first..rows.min(first + group)).flat_map(|row| [row as i32, column as i32]));
            }
        }
        assert_eq!(out.to_vec().unwrap(), wanted, "{rows} x {columns} in groups of {group}");
    }
}

/// `A B` of 64 x K and K x 64, step by step in one accumulator. `early` releases a stage whose product is under way.
#[kernel(block = [256, 1, 1], min_blocks = 1)]
fn chain(#[comptime] early: bool, a: TensorMap<BF16, 2>, b: TensorMap<BF16, 2>, c: TensorMut<F32, 2>, steps: I32) {
    let a_ring = SwizzledRing::<BF16>::new("a", 2, 64, 64);
    let b_ring = SwizzledRing::<BF16>::new("b", 2, 64, 64);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 2, 1);
    setup.finish();
    let [producer, consumer] = warpgroup_roles([(1, 40), (1, 208)]);
    if producer.is_mine() {
        producer.begin();
        if warp_id() == 0 && elect_one() {
            let mut at = stages.start();
            for step in range(steps) {
                let full = stages.acquire(at, a_ring.bytes() + b_ring.bytes());
                a.load(a_ring.stage(at.stage()), (0, step * 64), full); // <- OVERWRITES
                b.load(b_ring.stage(at.stage()), (step * 64, 0), full);
                at.advance();
            }
        }
    } else {
        consumer.begin();
        let mut at = stages.start();
        stages.wait(at);
        let mut product = wgmma(a_ring.stage(at.stage()), b_ring.stage(at.stage()));
        for _ in range(1, steps) {
            let before = at;
            at.advance();
            stages.wait(at);
            product = product.add(a_ring.stage(at.stage()), b_ring.stage(at.stage())); // <- READS
            if const_expr(!early) {
                product.wait_before::<1>();
            }
            stages.release(before);
        }
        let acc = product.wait::<0>();
        let thread = thread_id(X) % 128;
        for i in range_constexpr(32) {
            let row = thread / 32 * 16 + lane_id() / 4 + (i / 2 % 2 * 8) as i32;
            c.at((row, lane_id() % 4 * 2 + (i / 4 * 8 + i % 2) as i32)).store(acc[i]);
        }
    }
}

fn run_chain(early: bool, seed: u64) -> (Result<LaunchStats, Error>, Vec<f32>) {
    let dev = device().with_seed(seed);
    let value = |i: usize, step: usize| (i * step % 7) as f32 - 3.0;
    let numbers = |count: usize, step| (0..count).map(|i| bf16::from_f32(value(i, step))).collect::<Vec<_>>();
    let a = dev.tensor_from_slice(&numbers(64 * 448, 5), [64, 448]).unwrap();
    let b = dev.tensor_from_slice(&numbers(448 * 64, 3), [448, 64]).unwrap();
    let mut c = dev.tensor_uninit::<f32, 2>([64, 64]).unwrap();
    let launched = chain::new(early).grid([1, 1, 1]).launch(&dev, (&a, &b, &mut c, 7));
    let wanted = (0..64 * 64)
        .map(|index| (0..448).map(|k| value(index / 64 * 448 + k, 5) * value(k * 64 + index % 64, 3)).sum())
        .collect();
    if launched.is_ok() {
        assert_eq!(c.to_vec().unwrap(), wanted);
    }
    (launched, wanted)
}

#[test]
fn a_chain_of_products_sums_all_steps() {
    for seed in 0..4 {
        run_chain(false, seed).0.unwrap();
    }
}

#[test]
fn a_stage_that_is_released_before_its_product_is_named() {
    for seed in 0..4 {
        let (launched, _) = run_chain(true, seed);
        let Err(Error::Report(report)) = launched else { panic!("no report: {launched:?}") };
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        let text = report.to_string();
        let line = |tag| format!("schedules.rs:{}:", marked(tag));
        assert!(text.contains(&line("OVERWRITES")) || text.contains(&line("READS")), "{text}");
    }
}
