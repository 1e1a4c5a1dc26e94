//! Fragments of one type in the matrix instruction of another, and of the wrong shape (F6, D8).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn multiplies(x: Tensor<F32, 1>) {
    let zero = [F32::from(0.0); 4];
    let halves = [Vector::<F16, 2>::splat(F16::from(0.0)); 4];
    let brains = [Vector::<BF16, 2>::splat(BF16::from(0.0)); 2];
    let singles = [x.at(0).load_vec::<2>(); 4];
    let _ = mma_m16n8k16(halves, brains, zero);
    let _ = mma_m16n8k16(brains, halves, zero);
    let _ = mma_m16n8k16(singles, [singles[0]; 2], zero);
    let rows = shared_array::<F32>(64);
    let _ = ldmatrix_x4(rows.at(0));
}

fn main() {}
