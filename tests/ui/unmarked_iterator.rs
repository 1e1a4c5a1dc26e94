//! Host iterators in unmarked loops.

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn loops(#[comptime] tiles: Vec<i32>, y: TensorMut<I32, 1>) {
    for i in 0..4 {
        y.at(i).store(I32::from(1));
    }
    for tile in tiles.iter() {
        y.at(0).store(I32::from(*tile));
    }
}

fn main() {}
