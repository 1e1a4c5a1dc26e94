//! Shared memory of other blocks of the cluster.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1], cluster = [2, 1, 1])]
fn wrong(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let tile = shared_array::<F32>(32);
    let there = tile.of_block(F32::from(1.0));
    let bracketed = tile.of_block(1)[3];
    cp_async::<4>(tile.of_block(1).at(0), x.at(0), Bool::from(true));
    y.at(0).store(x.of_block(1).at(0).load());
}

fn main() {}
