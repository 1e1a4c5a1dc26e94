//! How often, and for which threads, an expression is evaluated.

use lacewing::prelude::*;
use lacewing::runtime::emulator::ReportKind;

use super::{devices, report, run};

/// Counts its calls in memory, and gives how many there were before.
#[device]
fn tick(counter: TensorMut<I32, 1>) -> I32 {
    counter.at(0).atomic_add(I32::from(1))
}

#[kernel(block = [1, 1, 1])]
fn ticks(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let n = x.at(0).load();
    let mut log = I32::from(0);
    if tick(y) < 5 && n > 0 {
        log += 1;
    }
    if n > 0 && tick(y) < 5 || tick(y) == 1 {
        log = log * 3 + 1;
    }
    if n < tick(y) {
        log = log * 3 + 1;
    } else if tick(y) > 2 && !(tick(y) == n) {
        log = log * 3 + 2;
    }
    let larger = tick(y).max(tick(y));
    log = log * 3 + larger;
    log += tick(y) * tick(y) - tick(y);
    while tick(y) < 14 {
        log = log * 3 + tick(y);
    }
    for i in range(tick(y) - 13, tick(y) - 10, tick(y) - 16) {
        log = log * 3 + i;
    }
    let picked = if tick(y) % 2 == 0 { tick(y) } else { -tick(y) };
    log = log * 3 + (tick(y) < 100).select(picked, tick(y));
    let vector = Vector::<I32, 2>::from([tick(y), tick(y)]);
    log = log * 3 + vector.get(0) * vector.get(1);
    let (a, b) = (tick(y), [tick(y); 2]);
    log = log * 3 + a - b[0] - b[1];
    y.at(1).store(log);
}

fn ticks_on_host(n: i32) -> [i32; 2] {
    let mut count = 0;
    let mut tick = || {
        count += 1;
        count - 1
    };
    let mut log = 0i32;
    let next = |log: i32, value: i32| log.wrapping_mul(3).wrapping_add(value);
    if tick() < 5 && n > 0 {
        log += 1;
    }
    if n > 0 && tick() < 5 || tick() == 1 {
        log = log * 3 + 1;
    }
    if n < tick() {
        log = log * 3 + 1;
    } else if tick() > 2 && tick() != n {
        log = log * 3 + 2;
    }
    let larger = tick().max(tick());
    log = next(log, larger);
    log += tick() * tick() - tick();
    while tick() < 14 {
        log = next(log, tick());
    }
    let (lo, hi, step) = (tick() - 13, tick() - 10, tick() - 16);
    for i in (lo..hi).step_by(step as usize) {
        log = next(log, i);
    }
    let picked = if tick() % 2 == 0 { tick() } else { -tick() };
    let (small, other) = (tick() < 100, tick());
    log = next(log, if small { picked } else { other });
    let vector = [tick(), tick()];
    log = next(log, vector[0] * vector[1]);
    let (a, b) = (tick(), [tick(); 2]);
    log = next(log, a - b[0] - b[1]);
    [count, log]
}

// F3
#[test]
fn an_atomic_is_done_as_often_as_it_is_written() {
    for n in -1..9 {
        assert_eq!(run(&ticks::new(), 1, &[n], &[0, 0]), ticks_on_host(n), "n = {n}");
    }
}

#[kernel(block = [128, 1, 1])]
fn loads_behind_conditions(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.extent(0);
    let mut count = I32::from(0);
    if i < n && x.at(i).load() > 0 {
        count += 1;
    }
    if !(i >= n || x.at(i).load() <= 3) {
        count += 10;
    }
    if i < n && (i == 0 || x.at(i - 1).load() < x.at(i).load()) && x.at(i).load() != 7 {
        count += 100;
    }
    let mut at = i;
    while at < n && x.at(at).load() % 5 != 0 {
        at += 1;
        count += 1000;
    }
    let inside = i < n && x.at(i).load() == 2;
    y.at(i).store(if inside { -count } else { count });
}

fn loads_behind_conditions_on_host(x: &[i32], i: usize) -> i32 {
    let n = x.len();
    let mut count = 0;
    if i < n && x[i] > 0 {
        count += 1;
    }
    if !(i >= n || x[i] <= 3) {
        count += 10;
    }
    if i < n && (i == 0 || x[i - 1] < x[i]) && x[i] != 7 {
        count += 100;
    }
    let mut at = i;
    while at < n && x[at] % 5 != 0 {
        at += 1;
        count += 1000;
    }
    if i < n && x[i] == 2 { -count } else { count }
}

// F4
#[test]
fn the_right_side_of_a_condition_is_evaluated_only_where_the_left_side_lets_it() {
    for n in [1, 7, 32, 63, 64, 100] {
        let x: Vec<i32> = (0..n).map(|i| i * 37 % 11 - 2).collect();
        let y = run(&loads_behind_conditions::new(), 1, &x, &[0; 128]);
        let expected: Vec<i32> = (0..128).map(|i| loads_behind_conditions_on_host(&x, i)).collect();
        assert_eq!(y, expected, "n = {n}");
    }
}

#[kernel(block = [64, 1, 1])]
fn load_beside_a_condition(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    if (i < x.extent(0)) & (x.at(i).load() > 0) {
        y.at(i).store(I32::from(1));
    }
}

// F4: `&` is not `&&`, and the emulator says what the difference is.
#[test]
fn both_sides_of_a_plain_and_are_evaluated() {
    let report = report(&load_beside_a_condition::new(), &[1; 40], &[0; 64]);
    assert_eq!((report.kind, report.thread), (ReportKind::OutOfBounds, Some([40, 0, 0])));
    assert_eq!(super::line_of(&report.location), "if (i < x.extent(0)) & (x.at(i).load() > 0) {");
}

#[derive(Clone, Copy, Carried)]
struct Counter {
    total: I32,
    parts: [I32; 2],
}

impl Counter {
    #[device]
    fn bump(&mut self, by: I32) {
        self.total += by;
        if by > 2 {
            self.parts[1] += 1;
        }
    }
}

#[kernel(block = [64, 1, 1])]
fn changes_in_branches(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let v = x.at(i).load();
    let mut plain = v;
    let mut counter = Counter { total: v, parts: [v; 2] };
    let mut pair = (v, [v, v + 1]);
    if v > 3 {
        plain = plain * 2;
        counter.bump(v);
        pair.1[0] -= 1;
    } else {
        (plain, pair.0) = (pair.0 + 5, plain);
        if v == 2 {
            counter.parts[0] = plain;
            let plain = counter.total;
            counter.bump(plain);
        }
    }
    {
        let part = &mut counter.parts[1];
        if v % 2 == 0 {
            *part += 50;
        }
    }
    let total = plain + counter.total * 3 + counter.parts[0] * 5 + counter.parts[1] * 7;
    y.at(i).store(total + pair.0 * 11 + pair.1[0] * 13 + pair.1[1] * 17);
}

fn changes_in_branches_on_host(v: i32) -> i32 {
    let (mut plain, mut total, mut parts, mut pair) = (v, v, [v; 2], (v, [v, v + 1]));
    if v > 3 {
        plain *= 2;
        total += v;
        parts[1] += 1;
        pair.1[0] -= 1;
    } else {
        (plain, pair.0) = (pair.0 + 5, plain);
        if v == 2 {
            parts[0] = plain;
            let by = total;
            total += by;
            parts[1] += i32::from(by > 2);
        }
    }
    if v % 2 == 0 {
        parts[1] += 50;
    }
    plain + total * 3 + parts[0] * 5 + parts[1] * 7 + pair.0 * 11 + pair.1[0] * 13 + pair.1[1] * 17
}

// F5
#[test]
fn a_branch_changes_the_state_of_the_threads_that_take_it() {
    let x: Vec<i32> = (0..64).map(|i| i % 9 - 1).collect();
    let y = run(&changes_in_branches::new(), 1, &x, &[0; 64]);
    let expected: Vec<i32> = x.iter().map(|v| changes_in_branches_on_host(*v)).collect();
    assert_eq!(y, expected);
    // Nobody takes a branch: nothing of it is left.
    assert_eq!(run(&changes_in_branches::new(), 1, &[3; 64], &[0; 64]), [changes_in_branches_on_host(3); 64]);
}

#[kernel(block = [32, 1, 1])]
fn clamped(x: Tensor<F32, 1>, whole: TensorMut<I32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    whole.at(i).store((i - 10).clamp(-3, i / 2));
    y.at(i).store(x.at(i).load().clamp(-1.5, 2.0));
}

#[test]
fn clamp_keeps_to_both_ends_and_passes_nan_on() {
    let mut x: Vec<f32> = (-16..16).map(|i| i as f32 * 0.5).collect();
    x[7] = f32::NAN;
    for dev in devices() {
        let given = dev.tensor_from_slice(&x, [32]).unwrap();
        let mut whole = dev.tensor_uninit::<i32, 1>([32]).unwrap();
        let mut y = dev.tensor_uninit::<f32, 1>([32]).unwrap();
        clamped::new().grid([1, 1, 1]).launch(&dev, (&given, &mut whole, &mut y)).unwrap();
        let expected: Vec<i32> = (0..32).map(|i| (i - 10).clamp(-3, i / 2)).collect();
        assert_eq!(whole.to_vec().unwrap(), expected);
        let bits = |values: Vec<f32>| values.into_iter().map(|v| if v.is_nan() { 0x7fc0_0000 } else { v.to_bits() });
        let expected = x.iter().map(|v| v.clamp(-1.5, 2.0)).collect();
        assert!(bits(y.to_vec().unwrap()).eq(bits(expected)));
    }
}
