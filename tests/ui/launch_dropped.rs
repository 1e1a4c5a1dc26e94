//! A launch that never happens (F10).

#![deny(unused_must_use)]

use lacewing::prelude::*;

#[kernel(block = [256, 1, 1])]
pub fn axpy<T: Float>(a: T, x: Tensor<T, 1>, y: TensorMut<T, 1>) {
    let i = block_id(X) * block_dim(X) + thread_id(X);
    if i < x.extent(0) {
        y.at(i).store(a * x.at(i).load() + y.at(i).load());
    }
}

fn main() -> Result<(), lacewing::Error> {

    axpy::<F32>::new().grid([1, 1, 1]);
    Ok(())
}
