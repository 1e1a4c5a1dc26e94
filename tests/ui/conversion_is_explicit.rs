//! Types do not mix, and conversions are written (no implicit promotion).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn mixes(#[comptime] tile: usize, n: I32, u: U32, h: F16, x: F32, e: F8E4M3, y: TensorMut<F32, 1>) {
    y.at(0).store(x + h);
    y.at(1).store(x * n);
    y.at(2).store((n + u).cast());
    y.at(3).store(x + 1);
    y.at(4).store((e + e).cast());
    y.at(5).store((n + tile).cast());
    y.at(6).store(n as f32);
    y.at(7).store((x & x).cast());
    y.at(8).store((n > 3).cast::<Bool>().select(x, x));
}

fn main() {}
