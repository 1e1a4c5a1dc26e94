//! A buffer offset without its unit (D9).

use lacewing::prelude::*;

#[kernel(block = [32, 1, 1])]
fn loads(i: I32, x: Tensor<F16, 1>, y: TensorMut<F16, 1>) {
    let buffer = BufferRsrc::new(x);
    let mask = Bool::from(true);
    let bytes = i * 2;
    y.at(i).store(buffer.load::<1>(bytes, mask).get(0));
    y.at(i).store(buffer.load::<1>(elements(i) * 2, mask).get(0));
    buffer.store(elements(i), buffer.load::<1>(elements(i), mask), mask);
}

fn main() {}
