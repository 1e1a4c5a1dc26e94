//! Uniform values: what they compute, what is checked of them, and where they may change.

use lacewing::prelude::*;
use lacewing::runtime::emulator::{Report, ReportKind};
use lacewing::{Error, core, rt};

use super::refusals::refusal;
use super::run;

/// A position in a ring, as a user would write it.
#[derive(Clone, Copy, Carried)]
struct Place {
    stage: Uniform<I32>,
    round: Uniform<U32>,
}

impl Place {
    #[device]
    fn advance(&mut self, stages: i32) {
        self.stage += 1;
        if self.stage == stages {
            self.stage = 0.into();
            self.round += 1;
        }
    }
}

#[device]
fn digits(value: Uniform<I32>) -> Uniform<I32> {
    let mut left = value;
    let mut count = Uniform::<I32>::from(0);
    while left > 0 {
        left /= 10;
        count += 1;
        if count == 5 {
            break;
        }
    }
    count
}

#[kernel(block = [64, 1, 1])]
fn computed(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    // Every lane loads the same element.
    let n = uniform(x.at(block_id(X)).load());
    let mut place = Place { stage: 0.into(), round: 0.into() };
    let mut sum = Uniform::<I32>::from(0);
    for i in range(1, n) {
        place.advance(3);
        sum = sum * 2 + i;
        if i % 4 == 3 && n > 5 || i == 2 {
            sum -= 7;
        }
    }
    let larger = if sum > 100 { sum - 100 } else { 100 - sum };
    let mixed = (n > 4).select(larger, sum.min(3).max(-2)) ^ digits(n * 9);
    let wide = uniform(x.at(block_id(X)).load().cast::<I64>() << 33) >> 32;
    let mut total = thread_id(X) + mixed + 2 * place.stage - *place.round.cast::<I32>();
    total += wide.cast::<I32>();
    if !(n == 3) & (thread_id(X) < n) {
        total = -total;
    }
    y.at(block_id(X) * 64 + thread_id(X)).store(total);
}

fn computed_on_host(n: i32, thread: i32) -> i32 {
    let (mut stage, mut round, mut sum) = (0, 0, 0i32);
    for i in 1..n {
        stage += 1;
        if stage == 3 {
            (stage, round) = (0, round + 1);
        }
        sum = sum.wrapping_mul(2).wrapping_add(i);
        if i % 4 == 3 && n > 5 || i == 2 {
            sum -= 7;
        }
    }
    let larger = if sum > 100 { sum - 100 } else { 100 - sum };
    let (mut digits, mut left) = (0, n * 9);
    while left > 0 && digits < 5 {
        (left, digits) = (left / 10, digits + 1);
    }
    let mixed = if n > 4 { larger } else { sum.clamp(-2, 3) } ^ digits;
    let total = thread + mixed + 2 * stage - round + 2 * n;
    if n != 3 && thread < n { -total } else { total }
}

#[test]
fn uniform_values_compute_what_plain_ones_do() {
    let x = [0, 1, 2, 3, 5, 8, 13, 21];
    let wanted: Vec<_> = x.iter().flat_map(|&n| (0..64).map(move |thread| computed_on_host(n, thread))).collect();
    assert_eq!(run(&computed::new(), x.len(), &x, &vec![0; wanted.len()]), wanted);
}

fn reported<T: std::fmt::Debug>(launched: Result<T, Error>) -> Report {
    let Err(Error::Report(report)) = launched else { panic!("no report: {launched:?}") };
    *report
}

#[kernel(block = [32, 1, 1])]
fn launched(n: Uniform<I32>, at: Uniform<Index>, flag: Uniform<Bool>, y: TensorMut<I32, 1>) {
    let mut sum = I32::from(0);
    for i in range(n) {
        sum += i * 10 + lane_id();
    }
    if flag && elect_one() {
        y.at(at + 1).store(sum);
    }
}

#[test]
fn launches_give_uniform_values() {
    for target in super::TARGETS {
        let dev = Device::emulator(target).unwrap();
        let mut y = dev.tensor_zeros::<i32, 1>([4]).unwrap();
        for (flag, wanted) in [(false, 0), (true, 30)] {
            launched::new().grid([1, 1, 1]).launch(&dev, (3, 1usize, flag, &mut y)).unwrap();
            assert_eq!(y.to_vec().unwrap(), [0, 0, wanted, 0]);
        }
    }
}

/// Claims to be uniform what is not: `kind` says of which type.
#[kernel(block = [64, 1, 1])]
fn claims(#[comptime] kind: usize, n: I32, y: TensorMut<I64, 1>) {
    let value: Uniform<I64> = match kind {
        0 => uniform(lane_id() / n).cast(),                // <- CLAIMS AN INTEGER
        1 => uniform((lane_id() / n).cast::<I64>() << 40), // <- CLAIMS 64 BITS
        2 => {
            let first = uniform(lane_id() < n); // <- CLAIMS A CONDITION
            first.select(1.into(), 2.into())
        }
        3 => uniform((lane_id() / n).cast::<F32>()).cast(), // <- CLAIMS A FLOAT
        _ => uniform(broadcast_first(lane_id() + n)).cast(),
    };
    if elect_one() {
        y.at(warp_id()).store(*value);
    }
}

#[test]
fn lanes_that_differ_are_reported_at_the_line() {
    for target in [Target::SM_80, Target::SM_90A, Target::GFX942] {
        let run = |kind, n: i32| {
            let dev = Device::emulator(target).unwrap();
            let mut y = dev.tensor_zeros::<i64, 1>([2]).unwrap();
            claims::new(kind).grid([1, 1, 1]).launch(&dev, (n, &mut y)).map(|_| y.to_vec().unwrap())
        };
        for (kind, tag) in [(0, "AN INTEGER"), (1, "64 BITS"), (2, "A CONDITION"), (3, "A FLOAT")] {
            let report = reported(run(kind, 20));
            assert_eq!((report.kind, report.lane), (ReportKind::NotUniform, Some(20)), "{report}");
            assert!(report.message.starts_with("the value is not the same in all lanes of the warp: "), "{report}");
            let text = include_str!("uniform.rs");
            let line = text.lines().position(|line| line.ends_with(&format!("// <- CLAIMS {tag}"))).unwrap() as u32 + 1;
            assert_eq!(report.location.as_ref().map(|location| location.line), Some(line), "{report}");
            // Lanes that agree are nobody's business.
            run(kind, 100).unwrap();
        }
        assert_eq!(run(4, 5).unwrap()[0], 5);
    }
}

/// The whole warp must make the claim.
#[kernel(block = [32, 1, 1])]
fn partly(n: I32, y: TensorMut<I32, 1>) {
    if lane_id() < n {
        y.at(lane_id()).store(*uniform(y.at(0).load()));
    }
}

#[test]
fn a_part_of_a_warp_cannot_claim() {
    let dev = Device::emulator(Target::SM_90A).unwrap();
    let mut y = dev.tensor_zeros::<i32, 1>([32]).unwrap();
    let report = reported(partly::new().grid([1, 1, 1]).launch(&dev, (7, &mut y)));
    assert_eq!(report.kind, ReportKind::PartialWarp, "{report}");
}

/// How often the warp is asked.
fn asked(kernel: &impl rt::Kernel) -> usize {
    core::trace_kernel(kernel, Target::SM_90A).unwrap().text().matches("\"lw.uniform\"").count()
}

#[kernel(block = [128, 1, 1], cluster = [2, 1, 1])]
fn evident(n: I32, x: Tensor<I32, 2>, y: TensorMut<I32, 1>) {
    let mut sum = uniform(I32::from(3)) + uniform(n) * uniform(block_id(Y) % 3) + cluster_rank();
    sum += uniform((x.extent(0) + grid_dim(X)).max(n).cast::<I64>()).cast::<I32>();
    for i in range(2, x.extent(1), 3) {
        sum += uniform(i);
    }
    if elect_one() {
        for i in range(y.at(0).load()) {
            sum = uniform(y.at(i).load());
            y.at(sum).store(1.into());
        }
        sum = 0.into();
        y.at(sum).store(1.into());
    }
}

#[kernel(block = [128, 1, 1])]
fn asks(y: TensorMut<I32, 1>) {
    let warp = uniform(warp_id());
    let loaded = uniform(y.at(warp).load());
    y.at(loaded).store(*warp);
}

/// Parameters of other scalars: their plain values, and casts to floats of 8 bits and back.
#[kernel(block = [32, 1, 1])]
fn scaled(scale: Uniform<F32>, shift: Uniform<U8>, y: TensorMut<F32, 1>) {
    let (plain, shift): (F32, U8) = (scale.into(), shift.into());
    let small = uniform(scale.cast::<F8E4M3>());
    let rounded: F8E4M3 = small.into();
    if thread_id(X) == 0 {
        y.at(0).store(plain + rounded.cast::<F32>() + shift.cast::<F32>());
    }
}

#[test]
fn uniform_values_of_every_scalar_become_plain_ones() {
    let device = Device::emulator(Target::SM_90A).unwrap();
    let mut y = device.tensor_zeros::<f32, 1>([1]).unwrap();
    scaled::new().grid([1, 1, 1]).launch(&device, (17.0, 3, &mut y)).unwrap();
    // The neighbours of 17 in E4M3 are 16 and 18, as far away: to the even one.
    assert_eq!(y.to_vec().unwrap(), [17.0 + 16.0 + 3.0]);
    assert_eq!(asked(&scaled::new()), 0);
}

#[test]
fn only_what_is_not_evident_costs_something() {
    // `sum` leaves the elected lane's branch, where it is refused: see below. All else is said of it here.
    let refused = refusal(&evident::new(), Target::SM_90A);
    assert_eq!(refused.matches("is uniform, but").count(), 1, "{refused}");
    assert_eq!(asked(&asks::new()), 2);
    assert_eq!(asked(&branches_together::new()), 0);
}

#[kernel(block = [64, 1, 1])]
fn branches_together(n: I32, y: TensorMut<I32, 1>) {
    let mut at = Uniform::<I32>::from(0);
    // Of plain type, and known to be alike: computed from what a launch gives.
    if n > 3 && y.extent(0) == n {
        at += 1;
    }
    for i in range(n) {
        if i == 7 {
            break;
        }
        if warp_id() == 1 {
            at += 2;
        }
        if any(lane_id() == n) {
            at += uniform(i);
        }
    }
    if elect_one() {
        let mut own = at;
        while y.at(own).load() > 3 {
            own += 1;
        }
        if y.at(own + 1).load() > 2 {
            own += 1;
        }
        y.at(own).store(1.into());
    }
    if thread_id(X) == 3 {
        let mut own = at;
        for _ in range(y.at(0).load()) {
            own += 1;
        }
        y.at(own).store(1.into());
    }
    'rows: for row in range(n) {
        while at < 2 * row {
            if at == row {
                continue 'rows;
            }
            if row > 5 {
                break 'rows;
            }
            at += uniform(row);
        }
        at += 1;
    }
    y.at(at).store(*at);
    if n == 9 {
        return;
    }
    at += 1;
    y.at(at).store(*at);
}

#[kernel(block = [64, 1, 1])]
fn parts(n: I32, y: TensorMut<I32, 1>) {
    let mut at = Uniform::<I32>::from(0);
    if thread_id(X) < n {
        at += 1;
    }
    let number = if thread_id(X) % 2 == 0 { at } else { at + 1 };
    let chosen = (lane_id() > 3).select(at, number);
    for _ in range(thread_id(X)) {
        at += 1;
    }
    while y.at(thread_id(X)).load() > at {
        at += 1;
    }
    for i in range(n) {
        if thread_id(X) == i {
            break;
        }
        at += chosen;
    }
    if elect_one() {
        at += 1;
    }
    y.at(at).store(*at);
}

#[test]
fn lanes_that_may_part_cannot_change_a_uniform_value() {
    insta::assert_snapshot!(refusal(&parts::new(), Target::SM_90A));
}

#[kernel(block = [64, 1, 1])]
fn cursor_of_one_lane(map: TensorMap<BF16, 2>, y: TensorMut<I32, 1>, steps: I32) {
    let ring = SwizzledRing::<BF16>::new("ring", 3, 8, 64);
    let mut setup = BarrierSetup::new();
    let stages = Pipeline::new(&mut setup, "stages", 3, 1);
    setup.finish();
    let mut at = stages.start();
    if warp_id() == 0 && elect_one() {
        for step in range(steps) {
            let full = stages.acquire(at, ring.bytes());
            map.load(ring.stage(at.stage()), (step * 8, 0), full);
            at.advance();
        }
    }
    y.at(thread_id(X)).store(*at.stage());
}

#[test]
fn a_cursor_that_one_lane_advances_is_that_lanes_own() {
    insta::assert_snapshot!(refusal(&cursor_of_one_lane::new(), Target::SM_90A));
}

/// What one lane has is no value of the warp's: kept beyond its branch where the macro does not see it, by way of a host
/// container, and of a value that is older than the branch.
#[kernel(block = [64, 1, 1])]
fn kept_from_one_lane(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let own = x.at(lane_id()).load();
    let kept = std::cell::Cell::new(Uniform::<I32>::from(0));
    if lane_id() == 3 {
        let mine = uniform(own);
        y.at(mine).store(*mine);
        kept.set(mine);
    }
    y.at(kept.get()).store(1.into());
}

#[test]
fn what_one_lane_has_stays_in_its_branch() {
    insta::assert_snapshot!(refusal(&kept_from_one_lane::new(), Target::SM_90A), @"
    this value was made inside run-time control flow that has ended
      at `y.at(kept.get()).store(1.into());`: used here, where it may not exist
      help: assign it to a `let mut` variable of the outer scope; a value kept in a `Cell` is not seen
    ");
}
