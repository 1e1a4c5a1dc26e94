//! Matrix instructions and the copies that feed them.

use lacewing::prelude::*;

use super::constructs;

#[kernel(block = [32, 1, 1])]
fn copies(x: Tensor<F16, 1>, f: Tensor<F32, 1>) {
    let memory = shared_array::<F16>(1024);
    let floats = shared_array::<F32>(64);
    let lane = lane_id();
    cp_async::<16>(memory.at(lane * 8), x.at(lane * 8), lane < 16);
    cp_async::<4>(floats.at(lane), f.at(lane), Bool::from(true));
    cp_async_commit();
    cp_async::<8>(memory.at(512 + lane * 4), x.at(lane * 4), lane < 16);
    cp_async_commit();
    cp_async_wait(1);
}

#[kernel(block = [32, 1, 1])]
fn load_matrices(y: TensorMut<F16, 1>) {
    let memory = shared_array::<F16>(512);
    let row = memory.at(lane_id() * 8);
    let [a, b, c, d] = ldmatrix_x4(row);
    let [e, f] = ldmatrix_x2_trans(row);
    let [g] = ldmatrix_x1(row);
    y.at(0).store_vec(a + b + c + d + e + f + g);
}

#[kernel(block = [32, 1, 1])]
fn multiply_16_bit<T: MmaElement>(x: Tensor<T, 1>, y: TensorMut<F32, 1>) {
    let fragment = |i: usize| x.at(i).load_vec::<2>();
    let sums = mma_m16n8k16(std::array::from_fn(fragment), [fragment(8), fragment(10)], [F32::from(0.0); 4]);
    let sums = mma_m16n8k8([fragment(0), fragment(2)], [fragment(4)], sums);
    y.at(0).store_vec(Vector::from(sums));
}

#[kernel(block = [32, 1, 1])]
fn multiply_tf32(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let value = x.at(0).load();
    y.at(0).store_vec(Vector::from(mma_m16n8k8_tf32([value; 4], [value; 2], [F32::from(0.0); 4])));
}

#[kernel(block = [64, 1, 1])]
fn multiply_on_amd<T: MmaElement>(x: Tensor<T, 1>, y: TensorMut<F32, 1>) {
    let v = x.at(0).load_vec::<4>();
    let small = mfma_16x16x16(v, v, [F32::from(0.0); 4]);
    let large = mfma_32x32x8(v, v, [small[0]; 16]);
    y.at(0).store(large[15]);
}

constructs! {
    "asynchronous copies" { cp_async_in_groups: copies::new(); }
    "matrix instructions" {
        ldmatrix: load_matrices::new();
        mma_f16: multiply_16_bit::<F16>::new();
        mma_bf16: multiply_16_bit::<BF16>::new();
        mma_tf32: multiply_tf32::new();
        mfma_f16: multiply_on_amd::<F16>::new(), on GFX942;
        mfma_bf16: multiply_on_amd::<BF16>::new(), on GFX950;
    }
}
