//! Run-time loops count as Rust's `(lo..hi).step_by(step)` does.

use lacewing::prelude::*;
use lacewing::runtime::emulator::ReportKind;

use super::{devices, line_of, report, run};

macro_rules! counting {
    ($module:ident $ty:ident $int:ty) => {
        mod $module {
            use lacewing::prelude::*;

            /// How many rounds, the first and the last variable, and a sum in which the order counts.
            #[device]
            pub fn note(noted: [$ty; 4], k: $ty) -> [$ty; 4] {
                [noted[0] + 1, if noted[0] == 0 { k } else { noted[1] }, k, noted[3] * 3 + k]
            }

            /// One range a thread, counted in four ways: plainly, with an early exit that never
            /// happens, with one that does, and with a `continue`.
            #[kernel(block = [64, 1, 1])]
            pub fn count(ranges: Tensor<$ty, 2>, y: TensorMut<$ty, 3>) {
                let i = block_id(X) * block_dim(X) + thread_id(X);
                if i >= ranges.extent(0) {
                    return;
                }
                let (lo, hi) = (ranges.at((i, 0)).load(), ranges.at((i, 1)).load());
                let step = ranges.at((i, 2)).load();
                let start = [$ty::from(0), $ty::from(0) - 1, $ty::from(0) - 1, $ty::from(0)];
                let mut plain = start;
                for k in range(lo, hi, step) {
                    plain = note(plain, k);
                }
                let mut never_left = start;
                for k in range(lo, hi, step) {
                    if never_left[0] == 1000 {
                        break;
                    }
                    never_left = note(never_left, k);
                }
                let mut left = start;
                for k in range(lo, hi, step) {
                    if left[0] == 3 {
                        break;
                    }
                    left = note(left, k);
                }
                let mut odd = start;
                for k in range(lo, hi, step) {
                    if k % 2 == 0 {
                        continue;
                    }
                    odd = note(odd, k);
                }
                for (way, found) in constexpr([plain, never_left, left, odd].into_iter().enumerate()) {
                    for (part, value) in constexpr(found.into_iter().enumerate()) {
                        y.at((i, way, part)).store(value);
                    }
                }
            }

            fn notes(rounds: impl Iterator<Item = $int>) -> [$int; 4] {
                rounds.fold([0, -1, -1, 0], |[count, first, _, sum], k| {
                    [count + 1, if count == 0 { k } else { first }, k, sum.wrapping_mul(3).wrapping_add(k)]
                })
            }

            pub fn on_host([lo, hi, step]: [$int; 3]) -> [[$int; 4]; 4] {
                let all = || (lo..hi).step_by(step as usize);
                [notes(all()), notes(all()), notes(all().take(3)), notes(all().filter(|k| k % 2 != 0))]
            }

            pub fn check(ranges: &[[$int; 3]]) {
                for dev in super::devices() {
                    let n = ranges.len();
                    let x = dev.tensor_from_slice(ranges.as_flattened(), [n, 3]).unwrap();
                    let mut y = dev.tensor_uninit::<$int, 3>([n, 4, 4]).unwrap();
                    count::new().grid([n.div_ceil(64), 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
                    let found = y.to_vec().unwrap();
                    for (range, found) in ranges.iter().zip(found.chunks(16)) {
                        assert_eq!(found, on_host(*range).as_flattened(), "{dev}: {range:?}");
                    }
                }
            }
        }
    };
}
counting!(narrow I32 i32);
counting!(wide I64 i64);
counting!(positions Index i64);

macro_rules! counting_known {
    ($module:ident in $of:ident: $ty:ident $int:ty) => {
        mod $module {
            use lacewing::prelude::*;

            use super::$of::{note, on_host};

            /// The same loop with bounds that are known when tracing.
            #[kernel(block = [1, 1, 1])]
            pub fn count_known(
                #[comptime] lo: $int,
                #[comptime] hi: $int,
                #[comptime] step: $int,
                y: TensorMut<$ty, 2>,
            ) {
                let start = [$ty::from(0), $ty::from(0) - 1, $ty::from(0) - 1, $ty::from(0)];
                let mut plain = start;
                for k in range(lo, hi, step) {
                    plain = note(plain, k);
                }
                let mut left = start;
                for k in range(lo, hi, step) {
                    if left[0] == 3 {
                        break;
                    }
                    left = note(left, k);
                }
                for (way, found) in constexpr([plain, left].into_iter().enumerate()) {
                    for (part, value) in constexpr(found.into_iter().enumerate()) {
                        y.at((way, part)).store(value);
                    }
                }
            }

            pub fn check_known(ranges: &[[$int; 3]]) {
                let dev = Device::emulator(Target::SM_80).unwrap();
                for [lo, hi, step] in ranges {
                    let mut y = dev.tensor_uninit::<$int, 2>([2, 4]).unwrap();
                    count_known::new(*lo, *hi, *step).grid([1, 1, 1]).launch(&dev, (&mut y,)).unwrap();
                    let [all, _, left, _] = on_host([*lo, *hi, *step]);
                    assert_eq!(y.to_vec().unwrap(), [all, left].as_flattened(), "{lo} {hi} {step}");
                }
            }
        }
    };
}
counting_known!(narrow_known in narrow: I32 i32);
counting_known!(wide_known in wide: I64 i64);

/// Ranges around zero, then at both ends of the type; none has more than some 40 rounds.
macro_rules! ranges {
    ($int:ident) => {{
        const MIN: $int = $int::MIN;
        const MAX: $int = $int::MAX;
        let mut ranges = Vec::new();
        for lo in -5..5 {
            for hi in [-6, -5, -1, 0, 1, 2, 6, 20] {
                for step in [1, 2, 3, 7, MAX] {
                    ranges.push([lo, hi, step]);
                }
            }
        }
        for step in [1, 2, 3, 10, MAX - 1, MAX] {
            for back in [1, 2, 5, 11] {
                ranges.extend([[MAX - back, MAX, step], [MIN, MIN + back, step], [MAX, MIN + back, step]]);
                ranges.extend([[MAX - back, MAX - 1, step], [MAX - back, MIN, step]]);
            }
        }
        for step in [MAX / 3, MAX / 16 + 1, MAX] {
            ranges.extend([[MIN, MAX, step], [0, MAX, step], [MIN, 0, step], [-1, MAX, step], [1, MAX - 1, step]]);
        }
        ranges
    }};
}

// F15
#[test]
fn ranges_of_i32_count_as_in_rust() {
    let ranges = ranges!(i32);
    narrow::check(&ranges);
    narrow_known::check_known(&ranges[..60]);
    narrow_known::check_known(&ranges[400..]);
}

// F15: 64 bits have nothing wider to count in.
#[test]
fn ranges_of_i64_count_as_in_rust() {
    let ranges = ranges!(i64);
    wide::check(&ranges);
    wide_known::check_known(&ranges[400..]);
}

// F15: positions count as `i64` does.
#[test]
fn ranges_of_index_count_as_in_rust() {
    positions::check(&ranges!(i64));
}

const TILE: usize = 3;

/// What a kernel does with positions: loops over them from bounds of every kind, arithmetic with host constants,
/// indices of tensors and of shared memory, and what every integer has.
#[kernel(block = [32, 1, 1])]
fn positions_in_use(first: Index, n: Index, x: Tensor<Index, 1>, y: TensorMut<I64, 1>) {
    let lane = lane_id().cast::<Index>();
    let staged = shared_array::<Index>(32);
    staged.at(lane).store(x.at(lane).load());
    barrier();
    let mut sum = Index::from(0);
    for k in range(first, n, TILE) {
        sum = sum * 3 + k + x.at(k).load();
    }
    for k in range(n) {
        sum += staged.at(k).load();
    }
    for k in range(lane, 40, 2 * TILE) {
        sum += k * TILE;
    }
    for k in range(3, n) {
        sum -= k;
    }
    for k in range(I32::from(0), n) {
        sum += k;
    }
    // A difference of positions may be negative.
    let behind = lane - 5;
    if behind < 0 {
        sum += behind.abs() + (0 - behind) + behind.max(first).min(n);
    }
    let pair = Vector::<Index, 2>::from([lane, sum]) * 2 + 1;
    let most = reduce_warp(lane, |a, b| a.max(b));
    y.at(lane).store((sum + pair.get(0) - pair.get(1) / 2 + most).cast());
}

#[test]
fn positions_do_what_integers_do() {
    let x: Vec<i64> = (0..32).map(|i| i * 7 - 40).collect();
    let (first, n) = (1i64, 30i64);
    let wanted: Vec<i64> = (0..32i64)
        .map(|lane| {
            let mut sum =
                (first..n).step_by(3).fold(0i64, |sum, k| sum.wrapping_mul(3).wrapping_add(k + x[k as usize]));
            sum += x[..n as usize].iter().sum::<i64>();
            sum += (lane..40).step_by(6).map(|k| k * 3).sum::<i64>();
            sum -= (3..n).sum::<i64>();
            sum += (0..n).sum::<i64>();
            let behind = lane - 5;
            if behind < 0 {
                sum += behind.abs() - behind + behind.max(first).min(n);
            }
            sum + (2 * lane + 1) - (sum * 2 + 1) / 2 + 31
        })
        .collect();
    // A warp of 32; the reduction is over a whole wave.
    for dev in devices().into_iter().filter(|dev| dev.target().is_nvidia()) {
        let (x, mut y) = (dev.tensor_from_slice(&x, [32]).unwrap(), dev.tensor_uninit::<i64, 1>([32]).unwrap());
        positions_in_use::new().grid([1, 1, 1]).launch(&dev, (first as usize, n as usize, &x, &mut y)).unwrap();
        assert_eq!(y.to_vec().unwrap(), wanted, "{dev}");
    }
}

#[kernel(block = [1, 1, 1])]
fn bounds_of_mixed_types(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let n = x.at(0).load();
    let long = n.cast::<I64>();
    let host: usize = 5;
    let mut sum = I64::from(0);
    for k in range(n) {
        sum = sum * 3 + k.cast::<I64>();
    }
    for k in range(long) {
        sum = sum * 3 + k;
    }
    for k in range(host) {
        sum = sum * 3 + k.cast::<I64>();
    }
    for k in range(1, long) {
        sum = sum * 3 + k;
    }
    for k in range(n - 3, host) {
        sum = sum * 3 + k.cast::<I64>();
    }
    for k in range(n, long + 9, host) {
        sum = sum * 3 + k;
    }
    for k in range(0, 3) {
        sum = sum * 3 + k.cast::<I64>();
    }
    for k in range(0, 3_000_000_000, 1_000_000_000) {
        sum = sum * 3 + k;
    }
    y.at(0).store(sum.cast());
    y.at(1).store((sum >> 32).cast());
}

// F15
#[test]
fn bounds_of_mixed_types_make_the_wider_loop() {
    let n = 4i64;
    let rounds = [0..n, 0..n, 0..5, 1..n, n - 3..5].into_iter().flatten();
    let rounds = rounds.chain((n..n + 9).step_by(5)).chain(0..3).chain([0, 1_000_000_000, 2_000_000_000]);
    let sum = rounds.fold(0i64, |sum, k| sum.wrapping_mul(3).wrapping_add(k));
    assert_eq!(run(&bounds_of_mixed_types::new(), 1, &[4], &[0, 0]), [sum as i32, (sum >> 32) as i32]);
}

#[kernel(block = [32, 1, 1])]
fn step_at_run_time(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let step = x.at(thread_id(X)).load();
    for k in range(0, 10, step) {
        y.at(thread_id(X)).store(k);
    }
}

// F15, D15
#[test]
fn a_step_that_turns_out_not_to_be_positive_is_reported_at_the_loop() {
    for step in [0, -1, i32::MIN] {
        let mut steps = [3; 32];
        steps[5] = step;
        let report = report(&step_at_run_time::new(), &steps, &[0; 32]);
        assert_eq!((report.kind, report.thread), (ReportKind::AssertFailed, Some([5, 0, 0])), "{report}");
        assert_eq!(line_of(&report.location), "for k in range(0, 10, step) {");
        let message = format!("the step of this loop is {step}, and must be positive: it goes from 0 up to 10");
        assert_eq!(report.message, format!("assertion failed: {message}"));
    }
}

#[kernel(block = [32, 1, 1])]
fn counted_at_run_time(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let (lo, hi, step) = (x.at(0).load(), x.at(1).load(), x.at(2).load());
    let mut rounds = I32::from(0);
    for _ in range(lo, hi, step) {
        rounds += 1;
    }
    for _ in range(lo.cast::<I64>(), hi.cast::<I64>(), step.cast::<I64>()) {
        rounds += 100;
    }
    y.at(thread_id(X)).store(rounds);
}

// D15: a stop below the start is no round, whatever the step; a step that would never come to the stop is refused
// even then, as `step_by(0)` is in Rust.
#[test]
fn a_stop_below_the_start_is_no_round() {
    for (range, rounds) in
        [([5, 5, 1], 0), ([5, 4, 1], 0), ([5, -5, 100], 0), ([i32::MAX, i32::MIN, 1], 0), ([0, 7, 3], 303)]
    {
        assert_eq!(run(&counted_at_run_time::new(), 1, &range, &[-1; 32]), [rounds; 32], "{range:?}");
    }
    let report = report(&counted_at_run_time::new(), &[9, 2, -2], &[0; 32]);
    assert!(report.message.contains("is -2, and must be positive: it goes from 9 up to 2"), "{report}");
}
