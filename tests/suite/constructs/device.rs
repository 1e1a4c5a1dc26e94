//! Threads, warps and blocks; what a kernel says of itself.

use lacewing::prelude::*;

use super::constructs;

#[kernel(block = [64, 2, 1])]
fn ids(y: TensorMut<I32, 1>) {
    let ids = [thread_id(X), thread_id(Y), thread_id(Z), block_id(X), block_id(Z), block_dim(Y), grid_dim(X)];
    for (i, id) in constexpr(ids.into_iter().chain([thread_index(), lane_id(), warp_id()]).enumerate()) {
        y.at(i).store(id);
    }
}

/// Of a launch, of a block, of a warp, of a loop; in a branch, and beside plain values.
#[kernel(block = [128, 1, 1])]
fn uniform_values(n: Uniform<I32>, y: TensorMut<I32, 1>) {
    let warp = uniform(warp_id());
    let mut at = warp * 3 + uniform(block_id(X));
    for i in range(1, n) {
        if at + i > 5 {
            at -= i;
        }
    }
    let wide = uniform(y.at(at).load().cast::<I64>());
    y.at(at + thread_id(X)).store(*wide.cast::<I32>());
}

#[kernel(block = [128, 1, 1])]
fn barriers() {
    barrier();
    warp_sync();
    sched_barrier();
    fence(Scope::Block);
    fence(Scope::Device);
    fence(Scope::System);
}

#[kernel(block = [128, 1, 1])]
fn named_barriers() {
    if warp_id() < 2 {
        named_barrier(1, 128).arrive();
    } else {
        named_barrier(1, 128).sync();
    }
}

#[kernel(block = [128, 1, 1])]
fn shuffles(x: Tensor<F32, 1>, y: TensorMut<F32, 1>, d: TensorMut<F64, 1>) {
    let v = x.at(thread_id(X)).load();
    let mixed = shfl_xor(v, 1) + shfl_up(v, 2) + shfl_down(v, lane_id()) + shfl_idx(v, 5) + broadcast_first(v);
    y.at(thread_id(X)).store(mixed);
    let [a, b] = shfl_xor([v.cast::<F64>(), d.at(0).load()], 16);
    d.at(0).store(a + b);
}

#[kernel(block = [128, 1, 1])]
fn votes(n: I32, y: TensorMut<U64, 1>) {
    let low = lane_id() < n;
    let mut mask = ballot(low);
    if any(low) && !all(low) && elect_one() {
        mask += 1;
    }
    y.at(0).store(mask);
}

#[kernel(block = [128, 1, 1])]
fn warp_reduction(y: TensorMut<F32, 1>) {
    let largest = reduce_warp(y.at(thread_id(X)).load(), |a, b| a.max(b));
    y.at(0).store(largest);
}

#[kernel(block = [128, 1, 1])]
fn block_reduction(y: TensorMut<F32, 1>) {
    let sum = reduce_block(y.at(thread_id(X)).load(), |a, b| a + b, F32::from(0.0));
    y.at(0).store(sum);
}

#[kernel(block = [32, 1, 1])]
fn messages(#[comptime] tile: usize, n: I32, x: F16, y: TensorMut<F32, 1>) {
    static_assert!(tile == 64);
    static_assert!(tile.is_power_of_two(), "tile {} is no power of two", tile);
    device_assert!(n > 0, "nothing to do");
    device_assert!(n < 100);
    printf!("n = {}, x = {}, tile = {}, {}\n", n, x, tile, n > 3);
    y.at(0).store(x.cast());
}

#[kernel(block = [128, 2, 1], min_blocks = 2, max_regs = 128)]
fn nvidia_attributes() {
    barrier();
}

#[kernel(block = [threads, 1, 1], cluster = [2, 1, 1])]
fn cluster_attribute(#[comptime] threads: usize) {
    barrier();
}

#[kernel(block = [256, 1, 1], waves_per_eu = 2)]
fn amd_attributes() {
    barrier();
}

trait Activation<T: Float> {
    fn apply(x: T) -> T;
}

#[derive(Clone, Debug)]
struct Relu;

impl<T: Float> Activation<T> for Relu {
    #[device]
    fn apply(x: T) -> T {
        if x > 0.0 { x } else { T::from(0.0) }
    }
}

#[device]
fn weighted<T: Float, const N: usize>(x: [T; N], weight: impl Fn(usize) -> f32) -> T {
    let mut sum = T::from(0.0);
    for (i, x) in constexpr(x.into_iter().enumerate()) {
        sum += x * weight(i);
    }
    sum
}

#[kernel(block = [32, 1, 1])]
fn generic<T, A, const N: usize>(#[comptime] scale: f32, x: Tensor<T, 1>, y: TensorMut<T, 1>)
where
    T: Float,
    A: Activation<T> + Clone + std::fmt::Debug + 'static,
{
    let values: [T; N] = std::array::from_fn(|i| x.at(i).load());
    y.at(thread_id(X)).store(A::apply(weighted(values, |i| scale * i as f32)));
}

constructs! {
    "ids" {
        of_a_warp_of_32: ids::new();
        of_a_wave_of_64: ids::new(), on GFX942;
    }
    "uniform values" {
        uniform_in_a_warp_of_32: uniform_values::new();
        uniform_in_a_wave_of_64: uniform_values::new(), on GFX942;
    }
    "synchronisation" {
        barriers_and_fences: barriers::new();
        barriers_by_name: named_barriers::new();
    }
    "collectives" {
        shuffle: shuffles::new();
        vote: votes::new();
        reduce_a_warp_of_32: warp_reduction::new();
        reduce_a_wave_of_64: warp_reduction::new(), on GFX942;
        reduce_a_block: block_reduction::new();
    }
    "printf, device_assert, static_assert" { said_on_the_device: messages::new(64); }
    "resource attributes" {
        attributes_for_nvidia: nvidia_attributes::new();
        attributes_for_clusters: cluster_attribute::new(192), on SM_90A;
        attributes_for_amd: amd_attributes::new(), on GFX942;
    }
    "generics, helpers, compile-time parameters" { instance: generic::<F16, Relu, 2>::new(0.5); }
}
