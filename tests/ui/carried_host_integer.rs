//! A host integer as the state of a run-time loop (F13, D14, F19).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn counts(n: I32, y: TensorMut<F32, 1>) {
    let mut count = 256 / 2;
    for i in range(n) {
        y.at(i).store(F32::from(1.0));
        count += 1;
    }
}

fn main() {}
