//! What kernels cost on the host: a launch on the emulator, one operation of a warp, and the compiler.
//!
//! `cargo bench --bench emulator`. Launches make the default checks, or where the name says so bounds and
//! unwritten memory alone, and are decoded beforehand; `decode` is measured by itself.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run has nothing to report")]

use divan::Bencher;
use divan::counter::ItemsCount;
use lacewing::core::lower::{Emit, EmitOptions, emit, emit_last};
use lacewing::core::{ScalarType, rt};
use lacewing::kernels::fmha::hopper::{HopperGeometry, fmha_fwd_hopper};
use lacewing::kernels::fmha::{Forward, Geometry, mfma, mma};
use lacewing::prelude::*;
use lacewing::runtime::emulator::{Check, Checks, Program};
use lacewing::runtime::host::Random;

fn main() {
    divan::main();
}

/// The host's type of a kernel's elements.
type Half = <F16 as Scalar>::Host;

/// Attention of the given sizes: head dimension 64, one sequence, f16, not causal.
fn forward(bencher: Bencher, target: Target, checks: Checks, heads: usize, length: usize) {
    let device = Device::emulator(target).unwrap().with_threads(2).with_checks(checks);
    let shape = [1, heads, length, 64];
    let mut random = Random::new(1);
    let mut tensor = || device.tensor_from::<Half, 4>(&random.tensor(ScalarType::F16, &shape, 1.0).unwrap()).unwrap();
    let (q, k, v) = (tensor(), tensor(), tensor());
    let kv_len = device.tensor_from_slice(&[length as i32], [1]).unwrap();
    let mut o = device.tensor_uninit(shape).unwrap();
    let mut lse = device.tensor_uninit([1, heads, length]).unwrap();
    let problem = Forward { q: &q, k: &k, v: &v, kv_len: &kv_len, causal: false, scale: 0.125 };
    // The first launch decodes the kernel.
    let ops = problem.fmha_fwd::<F16>(&mut o, &mut lse).unwrap().warp_ops;
    let bencher = bencher.counter(ItemsCount::new(ops));
    bencher.bench_local(|| problem.fmha_fwd::<F16>(&mut o, &mut lse).unwrap());
}

#[divan::bench(args = [(2, 256), (9, 106)])]
fn fmha_fwd_sm_80(bencher: Bencher, (heads, length): (usize, usize)) {
    forward(bencher, Target::SM_80, Checks::default(), heads, length);
}

/// With bounds and never-written checks alone.
#[divan::bench(args = [(2, 256), (9, 106)])]
fn fmha_fwd_sm_80_bounds_init(bencher: Bencher, (heads, length): (usize, usize)) {
    forward(bencher, Target::SM_80, Checks::none().with(Check::Initialized), heads, length);
}

/// With one of the default checks left out: the difference is what it costs.
#[divan::bench(args = ["init", "nan", "races", "copies", "overflow"])]
fn fmha_fwd_sm_80_without(bencher: Bencher, name: &str) {
    let check = Check::ALL.into_iter().find(|check| check.name() == name).unwrap();
    forward(bencher, Target::SM_80, Checks::default().without(check), 2, 256);
}

/// With every float's shadow in binary64 beside it.
#[divan::bench(args = [(2, 256)], sample_count = 5)]
fn fmha_fwd_sm_80_shadow(bencher: Bencher, (heads, length): (usize, usize)) {
    forward(bencher, Target::SM_80, Checks::default().with(Check::Shadow), heads, length);
}

#[divan::bench(args = [(2, 256), (9, 106)])]
fn fmha_fwd_gfx942(bencher: Bencher, (heads, length): (usize, usize)) {
    forward(bencher, Target::GFX942, Checks::default(), heads, length);
}

/// A long line of additions and products in one warp: items are operations.
#[kernel(block = [32, 1, 1])]
fn straight_line(count: I32, x: TensorMut<F32, 1>) {
    let place = x.at(lane_id());
    let mut value = place.load();
    let step = value + 1.0;
    for _round in range(count) {
        for _copy in range_constexpr(100) {
            value = value * step + step;
        }
    }
    place.store(value);
}

#[divan::bench(args = ["default", "init"])]
fn elementwise_warp_operations(bencher: Bencher, checks: &str) {
    let checks = if checks == "init" { Checks::none().with(Check::Initialized) } else { Checks::default() };
    let device = Device::emulator(Target::SM_80).unwrap().with_threads(1).with_checks(checks);
    let mut x = device.tensor_zeros::<f32, 1>([32]).unwrap();
    let kernel = straight_line::new();
    let ops = kernel.grid([1, 1, 1]).launch(&device, (500, &mut x)).unwrap().warp_ops;
    let bencher = bencher.counter(ItemsCount::new(ops));
    bencher.bench_local(|| kernel.grid([1, 1, 1]).launch(&device, (500, &mut x)).unwrap());
}

fn fmha_fwd(head_dim: usize) -> mma::fmha_fwd_mma<F16> {
    let geometry = Geometry::new(head_dim, true, true).unwrap();
    let tiling = mma::Tiling::small(&geometry);
    mma::fmha_fwd_mma::new(geometry, tiling)
}

const HEAD_DIMS: [usize; 2] = [64, 256];

#[divan::bench(args = HEAD_DIMS)]
fn trace(bencher: Bencher, head_dim: usize) {
    bencher.bench_local(|| fmha_fwd(head_dim).traced(Target::SM_80).unwrap());
}

fn decoded<K: rt::Kernel>(bencher: Bencher, kernel: &K, target: Target) {
    let traced = kernel.traced(target).unwrap();
    bencher.bench_local(|| Program::decode(&traced).unwrap());
}

#[divan::bench(args = HEAD_DIMS)]
fn decode_sm_80(bencher: Bencher, head_dim: usize) {
    decoded(bencher, &fmha_fwd(head_dim), Target::SM_80);
}

#[divan::bench(args = HEAD_DIMS)]
fn decode_gfx942(bencher: Bencher, head_dim: usize) {
    let geometry = Geometry::new(head_dim, true, true).unwrap();
    decoded(bencher, &mfma::fmha_fwd_mfma::<F16>::new(geometry), Target::GFX942);
}

/// Hopper's attention from the Rust function to PTX in process: tracing, lowering and LLVM's work.
#[divan::bench(args = [64, 128, 256])]
fn hopper_to_ptx(bencher: Bencher, head_dim: usize) {
    let geometry = HopperGeometry::new(head_dim, true, 4096, 4096).unwrap();
    let kernel = fmha_fwd_hopper::<BF16>::new(geometry);
    bencher.bench_local(|| {
        let traced = kernel.traced(Target::SM_90A).unwrap();
        emit_last(traced, Emit::Ptx, &EmitOptions::default()).unwrap()
    });
}

/// From the trace to PTX in process, `llc`'s work included.
#[divan::bench(args = HEAD_DIMS)]
fn trace_to_ptx(bencher: Bencher, head_dim: usize) {
    let traced = fmha_fwd(head_dim).traced(Target::SM_80).unwrap();
    bencher.bench_local(|| emit(&traced, Emit::Ptx, &EmitOptions::default()).unwrap());
}
