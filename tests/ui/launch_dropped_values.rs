//! Values that are computed and dropped (F10).

#![deny(unused_must_use)]

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn drops(i: I32, x: F32, y: TensorMut<F32, 1>) {
    x.max(2.0);
    y.at(i);
    y.at(i).load();
    x + 1.0;
    range(0, i);
    named_barrier(1, 32);
}

fn main() {
    drops::new();
}
