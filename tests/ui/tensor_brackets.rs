//! A tensor is no host array.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn brackets(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    y[i] = x[i] + 1.0;
    let tile = shared_array::<F32>(32);
    tile[0] = y.at(i).load();
}

#[kernel(block = [32, 1, 1])]
fn unsigned_loop(n: U32, y: TensorMut<F32, 1>) {
    for i in range(n) {
        y.at(i.cast::<I32>()).store(F32::from(0.0));
    }
}

#[kernel(block = [32, 1, 1])]
fn host_assertion(n: I32, y: TensorMut<F32, 1>) {
    assert!(n > 3);
    y.at(n).store(F32::from(0.0));
}

fn main() {}
