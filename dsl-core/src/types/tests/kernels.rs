//! Whole kernels, as users write them.

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
