//! What a loop or a branch carries, and what it leaves behind.

use lacewing::prelude::*;

use super::run;

#[kernel(block = [64, 1, 1])]
fn first_values(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let v = x.at(i).load();
    let chosen;
    let mut deep;
    if v > 3 {
        chosen = v * 2;
        if v > 5 {
            deep = chosen + 1;
        } else {
            deep = -v;
        }
    } else if v < 0 {
        chosen = -v;
        deep = v;
    } else {
        let local = v + 7;
        (chosen, deep) = (local, local * local);
    }
    deep += chosen;
    let pair: (I32, [I32; 2]);
    if v % 2 == 0 {
        pair = (v, [v, deep]);
    } else {
        pair = (deep, [chosen, v]);
    }
    let in_loop;
    {
        let mut sum = I32::from(0);
        for k in range(0, v & 3) {
            let step;
            if k % 2 == 0 {
                step = k + 1;
            } else {
                step = k * 10;
            }
            sum += step;
        }
        in_loop = sum;
    }
    y.at(i).store(chosen + 3 * deep + 5 * pair.0 + 7 * pair.1[0] + 11 * pair.1[1] + 1000 * in_loop);
}

fn first_values_on_host(v: i32) -> i32 {
    let (chosen, mut deep) = if v > 3 {
        (v * 2, if v > 5 { v * 2 + 1 } else { -v })
    } else if v < 0 {
        (-v, v)
    } else {
        (v + 7, (v + 7) * (v + 7))
    };
    deep += chosen;
    let pair = if v % 2 == 0 { (v, [v, deep]) } else { (deep, [chosen, v]) };
    let in_loop: i32 = (0..v & 3).map(|k| if k % 2 == 0 { k + 1 } else { k * 10 }).sum();
    chosen + 3 * deep + 5 * pair.0 + 7 * pair.1[0] + 11 * pair.1[1] + 1000 * in_loop
}

// F11
#[test]
fn a_variable_can_get_its_first_value_in_the_arms_of_a_branch() {
    let x: Vec<i32> = (0..64).map(|i| i % 16 - 5).collect();
    let y = run(&first_values::new(), 1, &x, &[0; 64]);
    let expected: Vec<i32> = x.iter().map(|v| first_values_on_host(*v)).collect();
    assert_eq!(y, expected);
}

#[kernel(block = [64, 1, 1])]
fn rounds(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    let mut counted = I32::from(7);
    let mut last = I32::from(-1);
    let mut pair = (n, [n + 1, n + 2]);
    for k in range(0, n) {
        counted += 1;
        last = k;
        pair = (pair.1[1], [pair.0, k]);
    }
    let mut waited = I32::from(3);
    while waited < n {
        waited += 2;
    }
    let explicit = range(5, n).carry((I32::from(1), n), |k, (product, sum)| (product * k, sum + k));
    let mut unrolled = n;
    for k in range_constexpr(0) {
        unrolled += k as i32 + 100;
    }
    let mut left_early = I32::from(50);
    for k in range(0, n) {
        if k == 2 {
            break;
        }
        left_early += 1;
    }
    let sum = counted + 3 * last + 5 * pair.0 + 7 * pair.1[0] + 11 * pair.1[1] + 13 * waited;
    y.at(i).store(sum + 17 * explicit.0 + 19 * explicit.1 + 23 * unrolled + 29 * left_early);
}

fn rounds_on_host(n: i32) -> i32 {
    let (mut counted, mut last, mut pair) = (7, -1, (n, [n + 1, n + 2]));
    for k in 0..n {
        counted += 1;
        last = k;
        pair = (pair.1[1], [pair.0, k]);
    }
    let mut waited = 3;
    while waited < n {
        waited += 2;
    }
    let explicit = (5..n).fold((1, n), |(product, sum), k| (product * k, sum + k));
    let left_early = 50 + n.clamp(0, 2);
    let sum = counted + 3 * last + 5 * pair.0 + 7 * pair.1[0] + 11 * pair.1[1] + 13 * waited;
    sum + 17 * explicit.0 + 19 * explicit.1 + 23 * n + 29 * left_early
}

// F12
#[test]
fn a_loop_that_runs_zero_times_leaves_the_first_state() {
    // For all threads, then for some of them.
    assert_eq!(run(&rounds::new(), 1, &[0; 64], &[0; 64]), [rounds_on_host(0); 64]);
    assert_eq!(run(&rounds::new(), 1, &[-3; 64], &[0; 64]), [rounds_on_host(-3); 64]);
    let x: Vec<i32> = (0..64).map(|i| i % 11 - 3).collect();
    let y = run(&rounds::new(), 1, &x, &[0; 64]);
    let expected: Vec<i32> = x.iter().map(|n| rounds_on_host(*n)).collect();
    assert_eq!(y, expected);
}

#[derive(Clone, Copy, Carried)]
struct Inner<T: Num> {
    value: T,
    history: [T; 2],
}

/// A struct with a host part, a vector and structs in it.
#[derive(Clone, Carried)]
struct Outer {
    scale: i32,
    lanes: Vector<I32, 4>,
    inner: [Inner<I32>; 2],
    pair: (I32, Option<I32>),
    stages: Vec<I32>,
}

impl Outer {
    #[device]
    fn step(&mut self, k: I32) {
        self.lanes = self.lanes * 2 + k;
        self.inner[1].history = [self.inner[0].value, self.inner[1].history[0]];
        self.inner[0].value += self.lanes.get(3) * self.scale;
        // Stages rotate: the places stay, the values move.
        self.stages.rotate_left(1);
        self.stages[2] = k;
    }
}

#[kernel(block = [64, 1, 1])]
fn all_kinds_of_state(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    let inner = Inner { value: n, history: [n + 1, n + 2] };
    let mut outer = Outer {
        scale: 3,
        lanes: Vector::from([n, n + 1, n + 2, n + 3]),
        inner: [inner; 2],
        pair: (n, Some(n * 2)),
        stages: vec![n, n + 5, n + 9],
    };
    let mut grid = [[n; 2]; 3];
    let mut nested = ((n, n), [(n, n); 2]);
    let mut flag = n > 2;
    let mut boxed = Box::new(n);
    for k in range(0, n) {
        outer.step(k);
        if flag {
            grid[1][0] += grid[0][1] + k;
            nested.1[1] = (nested.0.1, nested.1[0].0 + 1);
            if let Some(part) = &mut outer.pair.1 {
                *part += k;
            }
        } else {
            nested.0 = (nested.0.1, k);
            *boxed += 2;
        }
        for row in constexpr(grid.iter_mut()) {
            row[1] += 1;
        }
        flag = !flag || k > 4;
        (outer.pair.0, outer.inner[0].history[0]) = (outer.inner[0].history[0], outer.pair.0 + 1);
    }
    let mut log = flag.select(I32::from(1), I32::from(2));
    for value in constexpr(outer.lanes.to_array()) {
        log = log * 3 + value;
    }
    for inner in constexpr(outer.inner) {
        log = log * 3 + inner.value + 2 * inner.history[0] + 5 * inner.history[1];
    }
    for stage in constexpr(outer.stages.iter()) {
        log = log * 3 + *stage;
    }
    for row in constexpr(grid) {
        log = log * 3 + row[0] - row[1];
    }
    let rest = [nested.0.0, nested.0.1, nested.1[0].0, nested.1[0].1, nested.1[1].0, nested.1[1].1, *boxed];
    for value in constexpr(rest) {
        log = log * 3 + value;
    }
    let Some(part) = outer.pair.1 else { return };
    y.at(i).store(log * 3 + outer.pair.0 + part);
}

fn all_kinds_of_state_on_host(n: i32) -> i32 {
    let mut lanes = [n, n + 1, n + 2, n + 3];
    let mut inner = [(n, [n + 1, n + 2]); 2];
    let (mut pair, mut stages) = ((n, n * 2), vec![n, n + 5, n + 9]);
    let (mut grid, mut nested, mut flag, mut boxed) = ([[n; 2]; 3], ((n, n), [(n, n); 2]), n > 2, n);
    for k in 0..n {
        lanes = lanes.map(|lane| lane * 2 + k);
        inner[1].1 = [inner[0].0, inner[1].1[0]];
        inner[0].0 += lanes[3] * 3;
        stages.rotate_left(1);
        stages[2] = k;
        if flag {
            grid[1][0] += grid[0][1] + k;
            nested.1[1] = (nested.0.1, nested.1[0].0 + 1);
            pair.1 += k;
        } else {
            nested.0 = (nested.0.1, k);
            boxed += 2;
        }
        for row in &mut grid {
            row[1] += 1;
        }
        flag = !flag || k > 4;
        (pair.0, inner[0].1[0]) = (inner[0].1[0], pair.0 + 1);
    }
    let mut log = if flag { 1i32 } else { 2 };
    let mut next = |value: i32| log = log.wrapping_mul(3).wrapping_add(value);
    lanes.into_iter().for_each(&mut next);
    inner.into_iter().for_each(|(value, history)| next(value + 2 * history[0] + 5 * history[1]));
    stages.into_iter().for_each(&mut next);
    grid.into_iter().for_each(|row| next(row[0] - row[1]));
    let rest = [nested.0.0, nested.0.1, nested.1[0].0, nested.1[0].1, nested.1[1].0, nested.1[1].1, boxed];
    rest.into_iter().for_each(&mut next);
    next(pair.0 + pair.1);
    log
}

// F14
#[test]
fn structs_tuples_arrays_vectors_and_lists_are_carried() {
    let x: Vec<i32> = (0..64).map(|i| i % 9 - 1).collect();
    let y = run(&all_kinds_of_state::new(), 1, &x, &[0; 64]);
    let expected: Vec<i32> = x.iter().map(|n| all_kinds_of_state_on_host(*n)).collect();
    assert_eq!(y, expected);
}

#[kernel(block = [32, 1, 1])]
fn state_behind_references(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    let mut values = vec![n, n + 1, n + 2];
    let mut total = n;
    {
        let (head, tail) = values.split_at_mut(1);
        let first = &mut head[0];
        let alias = &mut total;
        for k in range(0, n & 7) {
            *first += tail[0] * k;
            *alias += *first;
            if *alias > 20 {
                tail[1] -= 1;
            }
        }
    }
    let largest = values.iter().copied().reduce(|a, b| a.max(b)).unwrap_or(n);
    y.at(i).store(total + 100 * largest + 10_000 * values[2]);
}

fn state_behind_references_on_host(n: i32) -> i32 {
    let (mut values, mut total) = (vec![n, n + 1, n + 2], n);
    for k in 0..n & 7 {
        values[0] += values[1] * k;
        total += values[0];
        if total > 20 {
            values[2] -= 1;
        }
    }
    total + 100 * values.iter().max().unwrap_or(&n) + 10_000 * values[2]
}

// F14
#[test]
fn state_changes_through_references_kept_across_a_loop() {
    let x: Vec<i32> = (0..32).map(|i| i - 9).collect();
    let y = run(&state_behind_references::new(), 1, &x, &[0; 32]);
    let expected: Vec<i32> = x.iter().map(|n| state_behind_references_on_host(*n)).collect();
    assert_eq!(y, expected);
}

#[device]
fn count(counter: &mut I32, limit: I32) {
    if *counter < limit {
        *counter += 1;
    }
}

/// Passes its own reference on, inside of run-time control flow.
#[device]
fn count_often(counter: &mut I32, times: I32, log: &mut I32) {
    for k in range(times) {
        count(counter, I32::from(5));
        if k > 2 {
            count(log, k);
            (count)((counter), k);
        }
        *log += *counter;
    }
}

#[kernel(block = [32, 1, 1])]
fn references_passed_on(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    let mut counter = n - 3;
    let mut log = I32::from(0);
    let reference = &mut log;
    if n > 1 {
        count_often(&mut counter, n, reference);
        count(reference, n);
    }
    y.at(i).store(counter + 100 * log);
}

fn references_passed_on_on_host(n: i32) -> i32 {
    fn count(counter: &mut i32, limit: i32) {
        *counter += i32::from(*counter < limit);
    }
    let (mut counter, mut log) = (n - 3, 0);
    if n > 1 {
        for k in 0..n {
            count(&mut counter, 5);
            if k > 2 {
                count(&mut log, k);
                count(&mut counter, k);
            }
            log += counter;
        }
        count(&mut log, n);
    }
    counter + 100 * log
}

// F14: found by the random programs.
#[test]
fn a_reference_passed_to_a_helper_is_carried() {
    let x: Vec<i32> = (0..32).map(|i| i % 9 - 1).collect();
    let y = run(&references_passed_on::new(), 1, &x, &[0; 32]);
    let expected: Vec<i32> = x.iter().map(|n| references_passed_on_on_host(*n)).collect();
    assert_eq!(y, expected);
}

#[device]
fn add_to<T: Int>(place: &mut T, value: T) {
    *place += value;
}

#[kernel(block = [32, 1, 1])]
fn references_found_by_their_types(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    let mut values = vec![n, n + 1, n + 2];
    let mut maybe = Some(n);
    let mut pair = (n, n * 2);
    let (left, right) = &mut pair;
    for k in range(0, n) {
        // Nothing reads the changes after the loop but the loop itself.
        for value in constexpr(values.iter_mut()) {
            if *value < 20 {
                add_to(value, k);
            }
        }
        if let Some(part) = &mut maybe {
            add_to(part, values[0]);
        }
        add_to(left, *right);
        if k > 1 {
            let last = values.last_mut();
            match last {
                Some(last) if true => add_to(last, *left),
                _ => {}
            }
        }
        let reference = &mut *right;
        if k > 2 {
            add_to(reference, k);
            add_to(left, k);
        }
        y.at(i).store(values[0] + 10 * values[2] + 1000 * *left + *right);
    }
    // Values that are moved into a helper inside of a branch stay as they are.
    let owned = vec![n];
    if n > 0 {
        let place = y.at(i);
        place.store(place.load() + sum_of(owned) + maybe.unwrap_or(n));
    }
}

#[device]
fn sum_of(values: Vec<I32>) -> I32 {
    let mut sum = I32::from(0);
    for value in constexpr(values) {
        sum += value;
    }
    sum
}

fn references_found_by_their_types_on_host(n: i32) -> i32 {
    let (mut values, mut maybe, mut left, mut right) = ([n, n + 1, n + 2], n, n, n * 2);
    let mut y = 0;
    for k in 0..n {
        for value in &mut values {
            *value += if *value < 20 { k } else { 0 };
        }
        maybe += values[0];
        left += right;
        if k > 1 {
            values[2] += left;
        }
        if k > 2 {
            right += k;
            left += k;
        }
        y = values[0] + 10 * values[2] + 1000 * left + right;
    }
    if n > 0 { y + n + maybe } else { y }
}

// F14
#[test]
fn a_reference_is_carried_however_it_was_made() {
    let x: Vec<i32> = (0..32).map(|i| i % 9 - 1).collect();
    let y = run(&references_found_by_their_types::new(), 1, &x, &[0; 32]);
    let expected: Vec<i32> = x.iter().map(|n| references_found_by_their_types_on_host(*n)).collect();
    assert_eq!(y, expected);
}
