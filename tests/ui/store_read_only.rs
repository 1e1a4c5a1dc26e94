//! A tensor that the kernel only reads is written.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn stores(i: I32, x: Tensor<F32, 1>) {
    let v = x.at(i).load();
    x.at(i).store(v);
    let _ = x.at(i).atomic_add(v);
}

fn main() {}
