//! Loops and what they carry.

use lacewing::prelude::*;

use super::constructs;

#[kernel(block = [32, 1, 1])]
fn range_to(n: I32, y: TensorMut<I32, 1>) {
    for i in range(n) {
        y.at(i).store(i);
    }
}

#[kernel(block = [32, 1, 1])]
fn range_from_to(lo: I64, hi: I32, y: TensorMut<I64, 1>) {
    for i in range(lo, hi) {
        y.at(i).store(i);
    }
}

#[kernel(block = [32, 1, 1])]
fn range_of_positions(n: Index, y: TensorMut<Index, 1>) {
    for i in range(4, n) {
        y.at(i).store(i * 2);
    }
}

#[kernel(block = [32, 1, 1])]
fn range_with_known_step(y: TensorMut<I32, 1>) {
    for i in range(0, 256, 64) {
        y.at(i).store(i);
    }
}

#[kernel(block = [32, 1, 1])]
fn range_that_could_overflow(n: I32, step: I32, y: TensorMut<I32, 1>) {
    for i in range(0, n, step) {
        y.at(i).store(i);
    }
}

#[kernel(block = [32, 1, 1])]
fn range_that_counts_its_rounds(lo: I64, hi: I64, y: TensorMut<I64, 1>) {
    for i in range(lo, hi, 3) {
        y.at(i).store(i);
    }
}

#[kernel(block = [32, 1, 1])]
fn compile_time(#[comptime] weights: Vec<i32>, x: I32, y: TensorMut<I32, 1>) {
    for i in range_constexpr(2) {
        y.at(i).store(x);
    }
    for i in range_constexpr(4, 10, 5) {
        y.at(i).store(x * weights[i % 3]);
    }
    for (i, weight) in constexpr(weights.iter().enumerate()) {
        if const_expr(*weight > 2) {
            continue;
        }
        y.at(i).store(x + *weight);
    }
}

#[kernel(block = [32, 1, 1])]
fn hints(n: I32, y: TensorMut<I32, 1>) {
    for i in range(0, n).unroll(4) {
        y.at(i).store(i);
    }
    for i in range(0, n).unroll(2).pipeline(3) {
        y.at(i).store(i);
    }
}

#[derive(Clone, Copy, Carried)]
struct Running {
    max: F32,
    sums: [F32; 2],
    rounds: usize,
}

#[kernel(block = [32, 1, 1])]
fn carried_scalar(n: I32, y: TensorMut<F32, 1>) {
    let mut sum = F32::from(0.0);
    // Read in the loop but not changed by it: not carried.
    let mut scale = F32::from(2.0);
    scale *= 3.0;
    for i in range(n) {
        sum += y.at(i).load() * scale;
    }
    y.at(0).store(sum);
}

#[kernel(block = [32, 1, 1])]
fn carried_aggregates(n: I32, y: TensorMut<F32, 1>) {
    let zero = F32::from(0.0);
    let mut running = Running { max: zero, sums: [zero; 2], rounds: 2 };
    let mut pair = (zero, Vector::<F32, 2>::splat(zero));
    for i in range(n) {
        let value = y.at(i).load();
        running.max = running.max.max(value);
        running.sums[1] += running.max;
        pair = (value, pair.1 + value);
    }
    y.at(0).store(running.max + running.sums[0] + running.sums[1] + pair.0 + pair.1.get(0));
}

#[kernel(block = [32, 1, 1])]
fn explicit_carry(n: I32, y: TensorMut<I32, 1>) {
    let (sum, product) = range(1, n).carry((I32::from(0), I32::from(1)), |i, (sum, product)| (sum + i, product * i));
    y.at(0).store(sum - product);
}

#[kernel(block = [32, 1, 1])]
fn while_loop(n: I32, y: TensorMut<I32, 1>) {
    let mut i = n;
    while i > 0 && y.at(i).load() != 3 {
        i -= 1;
    }
    y.at(0).store(i);
}

#[kernel(block = [32, 1, 1])]
fn break_and_continue(n: I32, y: TensorMut<I32, 1>) {
    let mut sum = I32::from(0);
    for i in range(n) {
        if i == 7 {
            break;
        }
        if i == 3 {
            continue;
        }
        sum += i;
    }
    y.at(0).store(sum);
}

#[kernel(block = [32, 1, 1])]
fn loop_with_value(n: I32, y: TensorMut<I32, 1>) {
    let mut i = n;
    let found = loop {
        i += 1;
        if i % 7 == 0 {
            break i * 2;
        }
    };
    y.at(0).store(found);
}

#[device]
fn search(n: I32, y: TensorMut<I32, 1>) -> I32 {
    'rows: for i in range(n) {
        for j in range(n) {
            if y.at(j).load() == i {
                return j;
            }
            if j > i {
                continue 'rows;
            }
        }
    }
    I32::from(-1)
}

#[kernel(block = [32, 1, 1])]
fn early_returns(n: I32, y: TensorMut<I32, 1>) {
    if thread_id(X) >= n {
        return;
    }
    y.at(0).store(search(n, y));
}

constructs! {
    "range" {
        range_of_one_bound: range_to::new();
        range_of_mixed_bounds: range_from_to::new();
        range_of_positions: range_of_positions::new();
        range_known: range_with_known_step::new();
        range_in_64_bits: range_that_could_overflow::new();
        range_in_rounds: range_that_counts_its_rounds::new();
    }
    "compile-time loops" { unrolled: compile_time::new(vec![2, 3, 1]); }
    "loop hints" { unroll_and_pipeline: hints::new(); }
    "carried state" {
        carried_sum: carried_scalar::new();
        carried_struct_and_tuple: carried_aggregates::new();
    }
    "explicit carry" { carry: explicit_carry::new(); }
    "while, break, continue, return" {
        while_condition: while_loop::new();
        break_continue: break_and_continue::new();
        loop_value: loop_with_value::new();
        returns: early_returns::new();
    }
}
