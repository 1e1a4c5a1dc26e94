use lacewing::prelude::*;

#[kernel(block = [128, 1, 1])]
fn sums_of_a_warpgroup(d: TensorMut<F32, 1>) {
    let (a, b) = (SwizzledTile::<F16>::new("a", 64, 64), SwizzledTile::<F16>::new("b", 64, 64));
    let product = wgmma(a, b);
    d.at(thread_id(X)).store(product[0]);
}

#[kernel(block = [128, 1, 1])]
fn sums_in_tensor_memory(d: TensorMut<F32, 1>) {
    let memory = TensorMemory::alloc(32);
    let sums = memory.accumulator(128, 0, 32);
    let [first] = sums.own_rows().load::<1>(0).wait();
    d.at(thread_id(X)).store(first);
    memory.dealloc();
}

#[kernel(block = [128, 1, 1])]
fn rows_of_tensor_memory(d: TensorMut<F32, 1>) {
    let memory = TensorMemory::alloc(32);
    let values = memory.tile(0, 32).own_rows().load::<4>(0);
    d.at(thread_id(X)).store(values[3]);
    memory.dealloc();
}

fn main() {}
