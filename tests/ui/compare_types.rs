//! Comparisons of two types, and of host values that are no numbers.

use lacewing::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Plain,
    Scaled,
}

#[kernel(block = [32, 1, 1])]
fn compares(#[comptime] mode: Mode, n: I32, u: U32, x: F32, y: TensorMut<F32, 1>) {
    if x < n {
        y.at(0).store(x);
    }
    if u == n {
        y.at(1).store(x);
    }
    if x > 1 {
        y.at(2).store(x);
    }
    if mode == Mode::Plain {
        y.at(3).store(x);
    }
    if n && x > 0.0 {
        y.at(4).store(x);
    }
}

fn main() {}
