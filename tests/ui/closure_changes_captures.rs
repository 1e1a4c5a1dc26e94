//! A closure that changes what it captured, called in a run-time loop.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn bumps(n: I32, x: F32, y: TensorMut<F32, 1>) {
    let mut sum = x;
    let mut bump = |by: F32| sum += by;
    for _ in range(n) {
        bump(x);
    }
    y.at(0).store(sum);
}

fn main() {}
