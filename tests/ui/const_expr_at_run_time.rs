//! A run-time value in `const_expr` (F16, D13).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn folds(n: I32, y: TensorMut<F32, 1>) {
    let lane = lane_id();
    if const_expr(lane == 0) {
        y.at(0).store(F32::from(1.0));
    }
    if const_expr(n < 3) {
        y.at(1).store(F32::from(1.0));
    }
    let flag = n > 4;
    if const_expr(flag) {
        y.at(2).store(F32::from(1.0));
    }
}

fn main() {}
