//! Whole kernels, as users write them.

use crate::lower::{Emit, EmitOptions, emit};
use crate::prelude::*;
use crate::trace_kernel;
use crate::types::testing::messages;

#[derive(Clone, Copy, Shared)]
struct Smem<T: Scalar> {
    a: [SharedTile<T, 16, 16, 24>; 2],
    #[shared(align = 1024)]
    b: SharedTile<T, 16, 16>,
    #[shared(overlap = "b")]
    sums: SharedArray<F32, 4>,
}

#[device]
fn row_sum<const N: usize>(x: Tensor<F16, 2>, row: I32) -> F32 {
    let mut sum = F32::from(0.0);
    for step in range(x.extent(1).max(0) / N as i32) {
        let v = x.at((row, step * N as i32)).load_vec::<N>();
        sum += v.cast::<F32>().reduce(|a, b| a + b);
    }
    sum
}

#[kernel(block = [128, 1, 1])]
fn everything<const N: usize>(#[comptime] stages: usize, x: Tensor<F16, 2>, y: TensorMut<F32, 1>, scale: F32) {
    static_assert!(stages <= 2, "at most 2 stages, not {stages}");
    let smem = shared::<Smem<F16>>();
    let row = block_id(X);
    let lane = lane_id();
    for stage in range_constexpr(stages) {
        let valid = lane < 16;
        cp_async::<16>(smem.a[stage].at((lane % 16, 0)), x.at((row, lane * 8)), valid);
        cp_async_commit();
    }
    cp_async_wait(0);
    barrier();
    let mut acc = [F32::from(0.0); 4];
    for _ in range(3) {
        let a = ldmatrix_x4(smem.a[0].at((lane % 16, 0)));
        let b = ldmatrix_x2_trans(smem.b.at((lane % 16, 0)));
        acc = mma_m16n8k16(a, b, acc);
    }
    let mut total = row_sum::<N>(x, row) * scale;
    if warp_id() == 0 && elect_one() {
        total += acc[0].exp2_fast();
        device_assert!(total > 0.0, "no weight");
    }
    let total = reduce_block(total, |a, b| a + b, F32::from(0.0));
    smem.sums.at(lane % 4).store(reduce_warp(total, |a, b| a.max(b)));
    if thread_index() == 0 {
        printf!("row {} of {}: {}\n", row, stages, total);
        y.at(row).store(total);
        let _ = y.at(row).atomic_add(total);
    }
}

#[test]
fn every_part_of_the_language_meets_the_others() {
    let kernel = everything::<4>::new(2);
    for target in [crate::Target::SM_80, crate::Target::SM_90A] {
        let traced = trace_kernel(&kernel, target).map_err(|error| error.to_string());
        let text = traced.as_ref().map(crate::Traced::text).unwrap_or_else(String::clone);
        assert!(text.contains("name = \"Smem.a[1]\""), "{text}");
        assert_eq!(traced.map(|traced| traced.meta.shared_bytes), Ok(2576));
    }
}

#[kernel(block = [32, 1, 1])]
fn faulty() {
    let smem = shared_array::<F32>(64);
    smem.at(100).store(F32::from(1.0));
}

#[test]
fn a_fault_is_shown_at_its_line() {
    let error = trace_kernel(&faulty::new(), crate::Target::SM_80).map(drop).unwrap_err().to_string();
    assert!(error.contains("shared-memory index 100 of 64"), "{error}");
    assert!(error.contains("types/tests/kernels.rs") && error.contains("smem.at(100)"), "{error}");
    let found = messages(trace_kernel(&everything::<4>::new(3), crate::Target::SM_80));
    assert_eq!(found[0], "at most 2 stages, not 3");
}

#[kernel(block = [128, 1, 1])]
fn one_of_each(
    x: Tensor<F32, 2>,
    h: TensorMut<F16, 1>,
    y: TensorMut<F32, 1>,
    b: TensorMut<Bool, 1>,
    d: TensorMut<F64, 1>,
    u: TensorMut<U64, 1>,
    e: TensorMut<F8E4M3, 1>,
) {
    let i = thread_index();
    let buffer = BufferRsrc::new(y);
    let v = buffer.load::<4>(elements(i * 4), i < 8);
    buffer.store(elements(i), v.fma(2.0, v).max(0.0), i < 3);
    let t = x.local_tile([16, 32], (block_id(X), block_id(Y)));
    let mut m = Vector::<F32, 4>::splat(F32::from(0.0));
    if i < t.extent(0) {
        m = t.at((i, 0)).load_vec_if::<4>(t.extent(1) > 4, v);
    }
    h.at(i * 4).store_vec(m.cast::<F16>());
    let hv = h.at(i * 4).load_vec::<4>();
    let hv = shfl_xor(hv, 1) * hv + hv.abs();
    h.at(i * 4).store_vec(hv);
    e.at(i * 4).store_vec(m.cast::<F8E4M3>());
    y.at(i).store(e.at(i * 4).load_vec::<4>().cast::<F32>().reduce(|a, b| a + b));
    b.at(i).store(any(b.at(i).load()));
    b.at(i * 4).store_vec(m.gt(v));
    d.at(i).store(d.at(i).load().sqrt().floor().fma(2.0, 1.0));
    let w = reduce_block(d.at(i).load(), |a, b| a + b, F64::from(0.0));
    d.at(i).store(w);
    let n = u.at(i).load();
    u.at(i).store(reduce_warp(n, |a, b| a.max(b)));
    let _ = u.at(0).atomic_max_with(n, Ordering::AcqRel, Scope::System);
    let _ = y.at(0).atomic_cas(F32::from(1.0), F32::from(2.0));
    let _ = y.at(0).atomic_min(F32::from(2.0));
    let _ = d.at(0).atomic_add(w);
    y.at(i).store(v.get(0).tanh() + v.get(1).erf() + v.get(2).sin().log2_fast() + v.get(3).rsqrt_fast().rcp_fast());
    h.at(i).store(hv.get(0).exp().round().copysign(hv.get(1)));
    y.at(i).store(n.leading_zeros().cast::<F32>());
    fence(Scope::Device);
    warp_sync();
    if const_expr(target().is_nvidia()) {
        printf!("{} {} {} {}\n", n, hv.get(0), w, i < 3);
    }
    device_assert!(i < 96);
    y.at(i).store(broadcast_first((m.bitcast::<I32, 4>() >> 3).get(0)).cast::<F32>());
    let packed = hv.bitcast::<U32, 2>();
    u.at(i).store((packed << 1).get(1).cast::<U64>() + ballot(i < 4));
}

#[test]
fn every_target_lowers_what_the_language_says() {
    for target in crate::Target::ALL {
        let what = if target.is_amd() { Emit::Amdgcn } else { Emit::Ptx };
        let traced = trace_kernel(&one_of_each::new(), target);
        let lowered = traced.and_then(|traced| emit(&traced, what, &EmitOptions::default()).map(drop));
        assert!(lowered.is_ok(), "{target}: {}", lowered.map_err(|error| error.to_string()).unwrap_err());
    }
}

#[test]
fn what_a_target_lacks_is_refused_at_its_line() {
    let traced = trace_kernel(&everything::<4>::new(2), crate::Target::GFX942);
    let error = traced.and_then(|traced| emit(&traced, Emit::Amdgcn, &EmitOptions::default()).map(drop)).unwrap_err();
    let first = &error.diagnostics[0];
    assert_eq!(first.message, "`lw.cp_async` does not exist on gfx942");
    assert!(first.location.as_ref().is_some_and(|place| place.file.ends_with("kernels.rs")), "{error}");
}
