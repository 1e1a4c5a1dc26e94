//! Bounds that are not integers, or not host integers.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn run_time(n: I32, x: F32, u: U32, y: TensorMut<F32, 1>) {
    for i in range(x) {
        y.at(i).store(x);
    }
    for i in range(0, u) {
        y.at(i).store(x);
    }
    for i in range(0, n, 0.5) {
        y.at(i).store(x);
    }
    for i in range(0, n, 1, 2) {
        y.at(i).store(x);
    }
}

#[kernel(block = [32, 1, 1])]
fn compile_time(n: I32, x: F32, y: TensorMut<F32, 1>) {
    for i in range_constexpr(n) {
        y.at(i).store(x);
    }
    for i in range_constexpr(0, n) {
        y.at(i).store(x);
    }
}

#[kernel(block = [32, 1, 1])]
fn adapters(n: I32, y: TensorMut<F32, 1>) {
    for i in range(n).rev() {
        y.at(i).store(F32::from(0.0));
    }
    for i in range(0, n).step_by(2) {
        y.at(i).store(F32::from(0.0));
    }
    for i in range(0..8) {
        y.at(i).store(F32::from(0.0));
    }
}

fn main() {}
