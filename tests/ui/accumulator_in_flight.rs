//! An accumulator that is used before the wait for its product (D20).

use lacewing::prelude::*;

#[device]
fn narrow(sums: Accumulator) -> Fragments<BF16> {
    sums.cast::<BF16>()
}

#[kernel(block = [128, 1, 1])]
fn too_early(out: TensorMut<F32, 1>) {
    let q = SwizzledTile::<BF16>::new("q", 64, 64);
    let product = wgmma(q, q.t());
    out.at(0).store(product[0]);
    let _ = narrow(product);
}

fn main() {}
