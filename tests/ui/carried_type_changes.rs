//! A state whose type changes in the loop body (F13).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn changes(n: I32, x: F32, y: TensorMut<F32, 1>) {
    let mut sum = I32::from(0);
    for i in range(n) {
        sum = x * 2.0;
        y.at(i).store(x);
    }
}

fn main() {}
