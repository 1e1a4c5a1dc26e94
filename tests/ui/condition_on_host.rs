//! A host `bool` as the condition of an unmarked `if` or `while` (F17).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn branches(#[comptime] causal: bool, #[comptime] tiles: usize, x: F32, y: TensorMut<F32, 1>) {
    if causal {
        y.at(0).store(x);
    }
    if tiles > 2 {
        y.at(1).store(x);
    }
    while causal {
        y.at(2).store(x);
    }
}

fn main() {}
