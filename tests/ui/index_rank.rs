//! An index of another rank, or of something that is no index (F7).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn ranks(i: I32, x: F32, y: TensorMut<F32, 1>, z: TensorMut<F32, 2>) {
    y.at((i, i, i)).store(x);
    z.at(i).store(x);
    z.at((i, x)).store(x);
    z.at((i, 2u64)).store(x);
}

fn main() {}
