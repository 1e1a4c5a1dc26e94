//! Arms of a run-time `if` that are host values, or of two types.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn host_values(n: I32, y: TensorMut<I32, 1>) {
    let step = if n > 3 { 1 } else { 2 };
    y.at(0).store(n + step);
}

#[kernel(block = [32, 1, 1])]
fn two_types(n: I32, x: F32, y: TensorMut<I32, 1>) {
    let value = if n > 3 { n } else { x };
    y.at(0).store(value);
}

fn main() {}
