//! Matrix instructions and asynchronous copies.

use crate::Target;
use crate::types::testing::{body, messages, trace_body, trace_with};
use crate::types::*;

#[test]
fn products_take_fragments() {
    let text = body(trace_body(|(i, c): (I32, F32)| {
        let tile = shared_array::<BF16>(1024);
        let a = ldmatrix_x4(tile.at(i));
        let b = ldmatrix_x2_trans(tile.at(i));
        let d = mma_m16n8k16(a, b, [c; 4]);
        let d = mma_m16n8k8([a[0], a[1]], ldmatrix_x1(tile.at(i)), d);
        let _ = mma_m16n8k8_tf32(d, [c, c], d);
    }));
    insta::assert_snapshot!(text, @r#"
    %0 = "lw.shared"() {align = 128 : i64, bytes = 2048 : i64, name = "shared_array::<bf16>(1024)", offset = 0 : i64} : () -> !llvm.ptr<3>
    %1 = llvm.getelementptr %0[%arg0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
    %2:4 = "lw.ldmatrix"(%1) {trans = false} : (!llvm.ptr<3>) -> (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
    %3:2 = "lw.ldmatrix"(%1) {trans = true} : (!llvm.ptr<3>) -> (vector<2xbf16>, vector<2xbf16>)
    %4:4 = "lw.mma_sync"(%2#0, %2#1, %2#2, %2#3, %3#0, %3#1, %arg1, %arg1, %arg1, %arg1) {k = 16 : i64, kind = "bf16", m = 16 : i64, n = 8 : i64, operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
    %5 = "lw.ldmatrix"(%1) {trans = false} : (!llvm.ptr<3>) -> vector<2xbf16>
    %6:4 = "lw.mma_sync"(%2#0, %2#1, %5, %4#0, %4#1, %4#2, %4#3) {k = 8 : i64, kind = "bf16", m = 16 : i64, n = 8 : i64, operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
    %7:4 = "lw.mma_sync"(%6#0, %6#1, %6#2, %6#3, %arg1, %arg1, %6#0, %6#1, %6#2, %6#3) {k = 8 : i64, kind = "tf32", m = 16 : i64, n = 8 : i64, operandSegmentSizes = array<i32: 4, 2, 4>} : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32)
    "#);
}

#[test]
fn waves_have_their_own() {
    let text = body(trace_with(Target::GFX950, [64, 1, 1], |(x, c): (F16, F32)| {
        let v = Vector::splat(x);
        let _ = mfma_16x16x16(v, v, [c; 4]);
        let [first, ..] = mfma_32x32x8(v, v, [c; 16]);
        let _ = first + 1.0;
    }));
    insta::assert_snapshot!(text, @r#"
    %0 = vector.broadcast %arg0 : f16 to vector<4xf16>
    %1:4 = "lw.mfma"(%0, %0, %arg1, %arg1, %arg1, %arg1) {k = 16 : i64, kind = "f16", m = 16 : i64, n = 16 : i64} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
    %2:16 = "lw.mfma"(%0, %0, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1, %arg1) {k = 8 : i64, kind = "f16", m = 32 : i64, n = 32 : i64} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
    %cst = arith.constant 1.000000e+00 : f32
    %3 = arith.addf %2#0, %cst : f32
    "#);
}

#[test]
fn copies_run_in_groups() {
    let text = body(trace_body(|(x, i, valid): (Tensor<F16, 1>, I32, Bool)| {
        let tile = shared_array::<F16>(1024);
        cp_async::<16>(tile.at(i), x.at(i), valid);
        cp_async_commit();
        cp_async_wait(1);
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg4, %c0_i8 : i8
    %1 = "lw.shared"() {align = 128 : i64, bytes = 2048 : i64, name = "shared_array::<f16>(1024)", offset = 0 : i64} : () -> !llvm.ptr<3>
    %2 = llvm.getelementptr %1[%arg3] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
    %3 = arith.extsi %arg3 : i32 to i64
    %4 = arith.muli %3, %arg2 : i64
    %5 = llvm.getelementptr %arg0[%4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
    "lw.cp_async"(%2, %5, %0) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> ()
    "lw.cp_async_commit"() : () -> ()
    "lw.cp_async_wait"() {groups = 1 : i64} : () -> ()
    "#);
}

#[test]
fn a_copy_does_not_change_the_type() {
    let found = messages(trace_body(|(x, valid): (Tensor<F32, 1>, Bool)| {
        cp_async::<4>(shared_array::<I32>(8).at(0), x.at(0), valid);
    }));
    insta::assert_snapshot!(found.join("\n"), @"`cp_async` would copy `f32` elements into shared memory of `i32`");
}
