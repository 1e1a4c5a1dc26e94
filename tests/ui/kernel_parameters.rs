//! What a kernel cannot take or give.

use lacewing::prelude::*;

struct Options;

#[kernel(block = [32, 1, 1])]
fn host_parameter(n: usize, y: TensorMut<F32, 1>) {
    y.at(n).store(F32::from(1.0));
}

#[kernel(block = [32, 1, 1])]
fn opaque_parameter(#[comptime] options: Options, y: TensorMut<F32, 1>) {
    y.at(0).store(F32::from(1.0));
}

#[kernel]
fn no_block(y: TensorMut<F32, 1>) {
    y.at(0).store(F32::from(1.0));
}

#[kernel(block = [32, 1, 1])]
fn gives(x: F32) -> F32 {
    x
}

struct Tile;

impl Tile {
    #[kernel(block = [32, 1, 1])]
    fn method(&self, x: F32) {
        let _ = x;
    }
}

fn main() {}
