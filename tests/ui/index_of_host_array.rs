//! A run-time loop variable as the index of a host array (D12).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn indexes(x: F32, y: TensorMut<F32, 1>) {
    let weights = [x, x * 2.0, x * 3.0, x * 4.0];
    for i in range(4) {
        y.at(i).store(weights[i]);
    }
}

fn main() {}
