//! A value of another type is stored (F6, D10).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn stores(i: I32, x: F32, h: F16, a: TensorMut<F16, 1>, y: TensorMut<F32, 1>) {
    a.at(i).store(x);
    y.at(i).store(i);
    y.at(i).store(h);
    y.at(i).store(1.0);
    y.at(i).store_vec(x);
    y.at(i).store_vec(Vector::<F16, 4>::splat(h));
    y.at(i).store(y.at(i).load_vec::<2>());
    let shared = shared_array::<F16>(32);
    shared.at(i).store(x);
}

fn main() {}
