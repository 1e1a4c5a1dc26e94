//! Branches and conditions.

use lacewing::prelude::*;

use super::constructs;

#[kernel(block = [32, 1, 1])]
fn if_statement(n: I32, y: TensorMut<I32, 1>) {
    let mut a = n;
    if n > 3 {
        a += 1;
        y.at(0).store(a);
    }
    y.at(1).store(a);
}

#[kernel(block = [32, 1, 1])]
fn if_expression(n: I32, y: TensorMut<F32, 1>) {
    let (mut a, x) = (n, y.at(0).load());
    let value = if n < 3 {
        a += 1;
        x
    } else if n > 10 {
        x * 2.0
    } else {
        -x
    };
    y.at(a).store(value);
}

#[kernel(block = [32, 1, 1])]
fn first_value(n: I32, y: TensorMut<I32, 1>) {
    let value;
    if n > 3 {
        value = n;
    } else {
        value = n * 2;
    }
    y.at(0).store(value);
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Plain,
    Scaled(i32),
}

#[kernel(block = [32, 1, 1])]
fn decided(#[comptime] mode: Mode, #[comptime] limit: Option<i32>, n: I32, y: TensorMut<I32, 1>) {
    let mut value = n;
    if const_expr(mode != Mode::Plain) {
        value += 1;
    } else {
        value -= 1;
    }
    match mode {
        Mode::Plain => {}
        Mode::Scaled(by) => value *= by,
    }
    if let Some(limit) = limit {
        value = value.min(limit);
    }
    y.at(0).store(value);
}

#[kernel(block = [32, 1, 1])]
fn short_circuit(n: I32, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    if i < n && x.at(i).load() > 0.0 {
        y.at(i).store(F32::from(1.0));
    }
    if !(i < n || x.at(i).load() > 0.0) {
        y.at(i).store(F32::from(2.0));
    }
}

#[kernel(block = [32, 1, 1])]
fn select(c: Bool, a: F32, b: F32, y: TensorMut<F32, 1>) {
    y.at(0).store(c.select(a, b));
    let pair = c.select((a, [b, a]), (b, [b, b]));
    y.at(1).store(pair.0 + pair.1[0] + pair.1[1]);
}

#[kernel(block = [32, 1, 1])]
fn compare_integers(a: I32, b: I32, u: U32, v: U32, y: TensorMut<Bool, 1>) {
    let found = [a < b, a <= b, a > b, a >= b, a == b, a != b, u < v, u <= v, u > v, u >= v, a < 3, 3 < a];
    for (i, found) in constexpr(found.into_iter().enumerate()) {
        y.at(i).store(found);
    }
}

#[kernel(block = [32, 1, 1])]
fn compare_floats(a: F32, b: F32, h: F16, y: TensorMut<Bool, 1>) {
    let found = [a < b, a <= b, a > b, a >= b, a == b, a != b, h > 1.5];
    for (i, found) in constexpr(found.into_iter().enumerate()) {
        y.at(i).store(found);
    }
}

constructs! {
    "if" {
        if_else: if_statement::new();
        if_value: if_expression::new();
        if_first_value: first_value::new();
    }
    "const_expr, match, if let" {
        host_decisions: decided::new(Mode::Scaled(3), Some(100));
        other_host_decisions: decided::new(Mode::Plain, None);
    }
    "&&, ||, !" { and_or_not: short_circuit::new(); }
    "select" { both_computed: select::new(); }
    "comparisons" {
        of_integers: compare_integers::new();
        of_floats: compare_floats::new();
    }
}
