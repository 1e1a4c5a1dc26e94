//! Exchanges and reductions.

use crate::Target;
use crate::types::testing::{body, messages, trace_body, trace_with};
use crate::types::*;

#[test]
fn words_travel_as_they_are() {
    let text = body(trace_body(|(f, n, lane): (F32, U32, I32)| {
        let _ = shfl_xor(f, 16);
        let _ = shfl_up(n, 1usize);
        let _ = shfl_down(n, 1u32);
        let _ = shfl_idx(f, lane);
        let _ = broadcast_first(f);
    }));
    insta::assert_snapshot!(text, @"
    %c16_i32 = arith.constant 16 : i32
    %c32_i32 = arith.constant 32 : i32
    %shuffleResult, %valid = gpu.shuffle  xor %arg0, %c16_i32, %c32_i32 : f32
    %c1_i32 = arith.constant 1 : i32
    %shuffleResult_0, %valid_1 = gpu.shuffle  up %arg1, %c1_i32, %c32_i32 : i32
    %shuffleResult_2, %valid_3 = gpu.shuffle  down %arg1, %c1_i32, %c32_i32 : i32
    %shuffleResult_4, %valid_5 = gpu.shuffle  idx %arg0, %arg2, %c32_i32 : f32
    %c0_i32 = arith.constant 0 : i32
    %shuffleResult_6, %valid_7 = gpu.shuffle  idx %arg0, %c0_i32, %c32_i32 : f32
    ");
}

#[test]
fn other_widths_travel_in_words() {
    let text = body(trace_body(|(h, d, b, c): (F16, F64, Bool, I8)| {
        let _ = shfl_xor(h, 1);
        let _ = shfl_xor(d, 1);
        let _ = shfl_xor(b, 1);
        let _ = shfl_xor(c, 1);
    }));
    insta::assert_snapshot!(text, @"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg2, %c0_i8 : i8
    %c1_i32 = arith.constant 1 : i32
    %1 = arith.bitcast %arg0 : f16 to i16
    %2 = arith.extui %1 : i16 to i32
    %c32_i32 = arith.constant 32 : i32
    %shuffleResult, %valid = gpu.shuffle  xor %2, %c1_i32, %c32_i32 : i32
    %3 = arith.trunci %shuffleResult : i32 to i16
    %4 = arith.bitcast %3 : i16 to f16
    %5 = arith.bitcast %arg1 : f64 to i64
    %c32_i64 = arith.constant 32 : i64
    %6 = arith.trunci %5 : i64 to i32
    %shuffleResult_0, %valid_1 = gpu.shuffle  xor %6, %c1_i32, %c32_i32 : i32
    %7 = arith.shrui %5, %c32_i64 : i64
    %8 = arith.trunci %7 : i64 to i32
    %shuffleResult_2, %valid_3 = gpu.shuffle  xor %8, %c1_i32, %c32_i32 : i32
    %9 = arith.extui %shuffleResult_2 : i32 to i64
    %10 = arith.shli %9, %c32_i64 : i64
    %11 = arith.extui %shuffleResult_0 : i32 to i64
    %12 = arith.ori %10, %11 : i64
    %13 = arith.bitcast %12 : i64 to f64
    %14 = arith.extui %0 : i1 to i8
    %15 = arith.extui %14 : i8 to i32
    %shuffleResult_4, %valid_5 = gpu.shuffle  xor %15, %c1_i32, %c32_i32 : i32
    %16 = arith.trunci %shuffleResult_4 : i32 to i8
    %17 = arith.cmpi ne, %16, %c0_i8 : i8
    %18 = arith.extui %arg3 : i8 to i32
    %shuffleResult_6, %valid_7 = gpu.shuffle  xor %18, %c1_i32, %c32_i32 : i32
    %19 = arith.trunci %shuffleResult_6 : i32 to i8
    ");
}

#[test]
fn vectors_of_small_elements_travel_packed() {
    let text = body(trace_body(|(h, f): (F16, F32)| {
        let _ = shfl_xor(Vector::from([h, h, h, h]), 1);
        let _ = shfl_xor([Vector::splat(f), Vector::<F32, 1>::splat(f)], 1);
    }));
    insta::assert_snapshot!(text, @"
    %0 = vector.from_elements %arg0, %arg0, %arg0, %arg0 : vector<4xf16>
    %c1_i32 = arith.constant 1 : i32
    %1 = vector.bitcast %0 : vector<4xf16> to vector<2xi32>
    %2 = vector.extract %1[0] : i32 from vector<2xi32>
    %c32_i32 = arith.constant 32 : i32
    %shuffleResult, %valid = gpu.shuffle  xor %2, %c1_i32, %c32_i32 : i32
    %3 = vector.extract %1[1] : i32 from vector<2xi32>
    %shuffleResult_0, %valid_1 = gpu.shuffle  xor %3, %c1_i32, %c32_i32 : i32
    %4 = vector.from_elements %shuffleResult, %shuffleResult_0 : vector<2xi32>
    %5 = vector.bitcast %4 : vector<2xi32> to vector<4xf16>
    %6 = vector.broadcast %arg1 : f32 to vector<1xf32>
    %7 = vector.broadcast %arg1 : f32 to vector<1xf32>
    %8 = vector.extract %6[0] : f32 from vector<1xf32>
    %shuffleResult_2, %valid_3 = gpu.shuffle  xor %8, %c1_i32, %c32_i32 : f32
    %9 = vector.from_elements %shuffleResult_2 : vector<1xf32>
    %10 = vector.extract %7[0] : f32 from vector<1xf32>
    %shuffleResult_4, %valid_5 = gpu.shuffle  xor %10, %c1_i32, %c32_i32 : f32
    %11 = vector.from_elements %shuffleResult_4 : vector<1xf32>
    ");
}

#[test]
fn votes() {
    let text = body(trace_body(|(b,): (Bool,)| {
        let _ = ballot(b).count_ones();
        let _ = any(b);
        let _ = all(b);
        let _ = elect_one();
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg0, %c0_i8 : i8
    %1 = "lw.ballot"(%0) : (i1) -> i64
    %2 = math.ctpop %1 : i64
    %3 = arith.trunci %2 : i64 to i32
    %c0_i64 = arith.constant 0 : i64
    %4 = "lw.ballot"(%0) : (i1) -> i64
    %5 = arith.cmpi eq, %4, %c0_i64 : i64
    %true = arith.constant true
    %6 = arith.xori %5, %true : i1
    %7 = arith.xori %0, %true : i1
    %8 = "lw.ballot"(%7) : (i1) -> i64
    %9 = arith.cmpi eq, %8, %c0_i64 : i64
    %10 = "lw.elect"() : () -> i1
    "#);
}

#[test]
fn a_warp_is_reduced_by_a_butterfly() {
    let text = body(trace_with(Target::SM_80, [4, 1, 1], |(f,): (F32,)| {
        let _ = reduce_warp(f, |a, b| a.max(b));
    }));
    insta::assert_snapshot!(text, @"
    %c2_i32 = arith.constant 2 : i32
    %c32_i32 = arith.constant 32 : i32
    %shuffleResult, %valid = gpu.shuffle  xor %arg0, %c2_i32, %c32_i32 : f32
    %0 = arith.maximumf %arg0, %shuffleResult : f32
    %c1_i32 = arith.constant 1 : i32
    %shuffleResult_0, %valid_1 = gpu.shuffle  xor %0, %c1_i32, %c32_i32 : f32
    %1 = arith.maximumf %0, %shuffleResult_0 : f32
    ");
    let shuffles = |target| {
        let text = body(trace_with(target, [128, 1, 1], |(f,): (F32,)| {
            let _ = reduce_warp((f, f), |a, b| (a.0 + b.0, a.1.max(b.1)));
        }));
        text.matches("gpu.shuffle").count()
    };
    assert_eq!((shuffles(Target::SM_90A), shuffles(Target::GFX950)), (10, 12));
    let found = messages(trace_with(Target::SM_80, [40, 1, 1], |(f,): (F32,)| {
        let _ = reduce_warp(f, |a, b| a + b);
    }));
    insta::assert_snapshot!(found.join("\n"), @"`reduce_warp` in a block of 40 threads: its last warp has missing lanes");
}

#[test]
fn a_block_is_reduced_through_shared_memory() {
    let text = body(trace_with(Target::SM_80, [96, 1, 1], |(f,): (F32,)| {
        let _ = reduce_block(f, |a, b| a + b, F32::from(0.0));
    }));
    insta::assert_snapshot!(text, @r#"
    %cst = arith.constant 0.000000e+00 : f32
    %c16_i32 = arith.constant 16 : i32
    %c32_i32 = arith.constant 32 : i32
    %shuffleResult, %valid = gpu.shuffle  xor %arg0, %c16_i32, %c32_i32 : f32
    %0 = arith.addf %arg0, %shuffleResult : f32
    %c8_i32 = arith.constant 8 : i32
    %shuffleResult_0, %valid_1 = gpu.shuffle  xor %0, %c8_i32, %c32_i32 : f32
    %1 = arith.addf %0, %shuffleResult_0 : f32
    %c4_i32 = arith.constant 4 : i32
    %shuffleResult_2, %valid_3 = gpu.shuffle  xor %1, %c4_i32, %c32_i32 : f32
    %2 = arith.addf %1, %shuffleResult_2 : f32
    %c2_i32 = arith.constant 2 : i32
    %shuffleResult_4, %valid_5 = gpu.shuffle  xor %2, %c2_i32, %c32_i32 : f32
    %3 = arith.addf %2, %shuffleResult_4 : f32
    %c1_i32 = arith.constant 1 : i32
    %shuffleResult_6, %valid_7 = gpu.shuffle  xor %3, %c1_i32, %c32_i32 : f32
    %4 = arith.addf %3, %shuffleResult_6 : f32
    %5 = "lw.shared"() {align = 16 : i64, bytes = 12 : i64, name = "reduce_block", offset = 0 : i64} : () -> !llvm.ptr<3>
    %6 = gpu.lane_id upper_bound 32
    %7 = arith.index_cast %6 : index to i32
    %c0_i32 = arith.constant 0 : i32
    %8 = arith.cmpi eq, %7, %c0_i32 : i32
    scf.if %8 {
    %thread_id_x = gpu.thread_id  x upper_bound 96
    %15 = arith.index_cast %thread_id_x : index to i32
    %c5_i32 = arith.constant 5 : i32
    %16 = arith.shrui %15, %c5_i32 : i32
    %17 = llvm.getelementptr %5[%16] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    "lw.store"(%4, %17) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
    }
    gpu.barrier
    %c3_i32 = arith.constant 3 : i32
    %9 = arith.andi %7, %c3_i32 : i32
    %10 = llvm.getelementptr %5[%9] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %11 = arith.cmpi slt, %9, %c3_i32 : i32
    %12 = "lw.load_masked"(%10, %11, %cst) {align = 4 : i64} : (!llvm.ptr<3>, i1, f32) -> f32
    gpu.barrier
    %shuffleResult_8, %valid_9 = gpu.shuffle  xor %12, %c2_i32, %c32_i32 : f32
    %13 = arith.addf %12, %shuffleResult_8 : f32
    %shuffleResult_10, %valid_11 = gpu.shuffle  xor %13, %c1_i32, %c32_i32 : f32
    %14 = arith.addf %13, %shuffleResult_10 : f32
    "#);
}

#[test]
fn a_block_of_odd_size_is_reduced_by_a_tree() {
    let text = body(trace_with(Target::SM_80, [5, 1, 1], |(f,): (F32,)| {
        let _ = reduce_block(f, |a, b| a + b, F32::from(0.0));
    }));
    insta::assert_snapshot!(text, @r#"
    %cst = arith.constant 0.000000e+00 : f32
    %0 = "lw.shared"() {align = 16 : i64, bytes = 20 : i64, name = "reduce_block", offset = 0 : i64} : () -> !llvm.ptr<3>
    %thread_id_x = gpu.thread_id  x upper_bound 5
    %1 = arith.index_cast %thread_id_x : index to i32
    %2 = llvm.getelementptr %0[%1] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    "lw.store"(%arg0, %2) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
    gpu.barrier
    %c2_i32 = arith.constant 2 : i32
    %3 = arith.cmpi slt, %1, %c2_i32 : i32
    scf.if %3 {
    %c3_i32 = arith.constant 3 : i32
    %7 = llvm.getelementptr %2[%c3_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %8 = "lw.load"(%7) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    %9 = "lw.load"(%2) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    %10 = arith.addf %9, %8 : f32
    "lw.store"(%10, %2) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
    }
    gpu.barrier
    %c1_i32 = arith.constant 1 : i32
    %4 = arith.cmpi slt, %1, %c1_i32 : i32
    scf.if %4 {
    %7 = llvm.getelementptr %2[%c2_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %8 = "lw.load"(%7) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    %9 = "lw.load"(%2) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    %10 = arith.addf %9, %8 : f32
    "lw.store"(%10, %2) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
    }
    gpu.barrier
    %5 = arith.cmpi slt, %1, %c1_i32 : i32
    scf.if %5 {
    %7 = llvm.getelementptr %2[%c1_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %8 = "lw.load"(%7) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    %9 = "lw.load"(%2) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    %10 = arith.addf %9, %8 : f32
    "lw.store"(%10, %2) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
    }
    gpu.barrier
    %6 = "lw.load"(%0) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
    gpu.barrier
    "#);
}
