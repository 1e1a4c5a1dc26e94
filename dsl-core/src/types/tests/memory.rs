//! Tensors, places, atomics and buffers.

use crate::types::testing::{body, messages, trace_body};
use crate::types::*;

#[test]
fn addresses_are_computed_in_64_bits_and_zero_indices_cost_nothing() {
    let text = body(trace_body(|(t, i): (Tensor<F32, 3>, I32)| {
        let _ = t.at((i, 0, i)).load();
        let _ = t.at((0usize, 0, 0)).load();
        let _ = t.at([i, i, i]).load();
    }));
    insta::assert_snapshot!(text, @r#"
    %0 = arith.extsi %arg7 : i32 to i64
    %1 = arith.muli %0, %arg4 : i64
    %2 = arith.muli %0, %arg6 : i64
    %3 = arith.addi %1, %2 : i64
    %4 = llvm.getelementptr %arg0[%3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %5 = "lw.load"(%4) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
    %6 = "lw.load"(%arg0) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
    %7 = arith.muli %0, %arg5 : i64
    %8 = arith.addi %1, %7 : i64
    %9 = arith.addi %8, %2 : i64
    %10 = llvm.getelementptr %arg0[%9] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %11 = "lw.load"(%10) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
    "#);
}

#[test]
fn a_known_index_is_folded() {
    let text = body(trace_body(|(t,): (Tensor<F16, 1>,)| {
        let _ = t.at(1).load();
        let _ = t.at(I64::from(7)).load_vec::<8>();
    }));
    insta::assert_snapshot!(text, @r#"
    %c1_i64 = arith.constant 1 : i64
    %0 = llvm.getelementptr %arg0[%arg2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
    %1 = "lw.load"(%0) {align = 2 : i64} : (!llvm.ptr<1>) -> f16
    %c7_i64 = arith.constant 7 : i64
    %2 = arith.muli %c7_i64, %arg2 : i64
    %3 = llvm.getelementptr %arg0[%2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
    %4 = "lw.load"(%3) {align = 16 : i64} : (!llvm.ptr<1>) -> vector<8xf16>
    "#);
}

#[test]
fn masked_and_vector_accesses_carry_their_alignment() {
    let text = body(trace_body(|(y, i, mask): (TensorMut<BF16, 1>, I32, Bool)| {
        let place = y.at(i);
        let v = place.load_vec_if::<8>(mask, Vector::splat(BF16::from(0.0)));
        place.store_vec_if(mask, v);
        place.offset(8).store_if(mask, place.load_if(mask, v.get(0)));
        place.store_vec(v);
        place.store(v.get(1));
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg4, %c0_i8 : i8
    %1 = arith.extsi %arg3 : i32 to i64
    %2 = arith.muli %1, %arg2 : i64
    %3 = llvm.getelementptr %arg0[%2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %cst = arith.constant 0.000000e+00 : bf16
    %4 = vector.broadcast %cst : bf16 to vector<8xbf16>
    %5 = "lw.load_masked"(%3, %0, %4) {align = 16 : i64} : (!llvm.ptr<1>, i1, vector<8xbf16>) -> vector<8xbf16>
    "lw.store_masked"(%5, %3, %0) {align = 16 : i64} : (vector<8xbf16>, !llvm.ptr<1>, i1) -> ()
    %c8_i64 = arith.constant 8 : i64
    %6 = llvm.getelementptr %3[%c8_i64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
    %7 = vector.extract %5[0] : bf16 from vector<8xbf16>
    %8 = "lw.load_masked"(%3, %0, %7) {align = 2 : i64} : (!llvm.ptr<1>, i1, bf16) -> bf16
    "lw.store_masked"(%8, %6, %0) {align = 2 : i64} : (bf16, !llvm.ptr<1>, i1) -> ()
    "lw.store"(%5, %3) {align = 16 : i64} : (vector<8xbf16>, !llvm.ptr<1>) -> ()
    %9 = vector.extract %5[1] : bf16 from vector<8xbf16>
    "lw.store"(%9, %3) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
    "#);
}

#[test]
fn conditions_lie_in_memory_as_bytes() {
    let text = body(trace_body(|(y,): (TensorMut<Bool, 1>,)| {
        y.at(0).store(y.at(1).load());
        y.at(4).store_vec(y.at(8).load_vec::<4>());
    }));
    insta::assert_snapshot!(text, @r#"
    %c1_i64 = arith.constant 1 : i64
    %0 = llvm.getelementptr %arg0[%arg2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %1 = "lw.load"(%0) {align = 1 : i64} : (!llvm.ptr<1>) -> i8
    %c0_i8 = arith.constant 0 : i8
    %2 = arith.cmpi ne, %1, %c0_i8 : i8
    %3 = arith.extui %2 : i1 to i8
    "lw.store"(%3, %arg0) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
    %c4_i64 = arith.constant 4 : i64
    %4 = arith.muli %c4_i64, %arg2 : i64
    %5 = llvm.getelementptr %arg0[%4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %c8_i64 = arith.constant 8 : i64
    %6 = arith.muli %c8_i64, %arg2 : i64
    %7 = llvm.getelementptr %arg0[%6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
    %8 = "lw.load"(%7) {align = 4 : i64} : (!llvm.ptr<1>) -> vector<4xi8>
    %9 = vector.broadcast %c0_i8 : i8 to vector<4xi8>
    %10 = arith.cmpi ne, %8, %9 : vector<4xi8>
    %11 = arith.extui %10 : vector<4xi1> to vector<4xi8>
    "lw.store"(%11, %5) {align = 4 : i64} : (vector<4xi8>, !llvm.ptr<1>) -> ()
    "#);
}

#[test]
fn a_tile_is_a_tensor_with_its_own_origin_and_extents() {
    let text = body(trace_body(|(t, row): (Tensor<F16, 2>, I32)| {
        let tile = t.local_tile([64, 32], (row, 0));
        let _ = tile.at((1, 2)).load();
        let _ = tile.extent(0);
    }));
    insta::assert_snapshot!(text, @r#"
    %0 = arith.extsi %arg5 : i32 to i64
    %c64_i64 = arith.constant 64 : i64
    %1 = arith.muli %0, %c64_i64 : i64
    %2 = arith.extsi %arg1 : i32 to i64
    %3 = arith.subi %2, %1 : i64
    %4 = arith.minsi %3, %c64_i64 : i64
    %c0_i64 = arith.constant 0 : i64
    %5 = arith.maxsi %4, %c0_i64 : i64
    %6 = arith.trunci %5 : i64 to i32
    %7 = arith.muli %1, %arg3 : i64
    %8 = arith.extsi %arg2 : i32 to i64
    %c32_i64 = arith.constant 32 : i64
    %9 = arith.minsi %8, %c32_i64 : i64
    %10 = arith.maxsi %9, %c0_i64 : i64
    %11 = arith.trunci %10 : i64 to i32
    %12 = llvm.getelementptr %arg0[%7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    %13 = arith.muli %c2_i64, %arg4 : i64
    %14 = arith.addi %arg3, %13 : i64
    %15 = llvm.getelementptr %12[%14] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
    %16 = "lw.load"(%15) {align = 2 : i64} : (!llvm.ptr<1>) -> f16
    "#);
}

#[test]
fn dimensions_and_indices_that_cannot_be_are_refused() {
    let found = messages(trace_body(|(t,): (Tensor<F32, 2>,)| {
        let _ = t.extent(2);
        let _ = t.stride(5);
        let _ = t.at((0, -1)).load();
        let _ = t.local_tile([4, 4], (-1, 0)).at((0, 0)).load();
        let _ = Vector::<F32, 2>::splat(F32::from(1.0)).get(2);
    }));
    insta::assert_snapshot!(found.join("\n"), @"
    dimension 2 of a tensor of rank 2
    dimension 5 of a tensor of rank 2
    index -1 is negative
    index -1 is negative
    element 2 of a vector of 2
    ");
}

#[test]
fn atomics_name_their_kind_ordering_and_scope() {
    let text = body(trace_body(|(f, n): (TensorMut<F32, 1>, TensorMut<U32, 1>)| {
        let _ = f.at(0).atomic_add(F32::from(1.0));
        let _ = n.at(0).atomic_max(U32::from(1));
        let _ = n.at(0).atomic_xor_with(U32::from(1), Ordering::AcqRel, Scope::System);
        let _ = n.at(0).atomic_cas(U32::from(0), U32::from(1));
        let _ = f.at(0).atomic_cas(F32::from(0.0), F32::from(1.0));
        let counter = shared_array::<I32>(1);
        let _ = counter.at(0).atomic_sub(I32::from(1));
    }));
    insta::assert_snapshot!(text, @r#"
    %cst = arith.constant 1.000000e+00 : f32
    %0 = "lw.atomic_rmw"(%arg0, %cst) {kind = "fadd", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, f32) -> f32
    %c1_i32 = arith.constant 1 : i32
    %1 = "lw.atomic_rmw"(%arg3, %c1_i32) {kind = "umax", ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, i32) -> i32
    %2 = "lw.atomic_rmw"(%arg3, %c1_i32) {kind = "xor", ordering = "acq_rel", scope = "system"} : (!llvm.ptr<1>, i32) -> i32
    %c0_i32 = arith.constant 0 : i32
    %3 = "lw.atomic_cas"(%arg3, %c0_i32, %c1_i32) {ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, i32, i32) -> i32
    %cst_0 = arith.constant 0.000000e+00 : f32
    %4 = arith.bitcast %cst_0 : f32 to i32
    %5 = arith.bitcast %cst : f32 to i32
    %6 = "lw.atomic_cas"(%arg0, %4, %5) {ordering = "relaxed", scope = "device"} : (!llvm.ptr<1>, i32, i32) -> i32
    %7 = arith.bitcast %6 : i32 to f32
    %8 = "lw.shared"() {align = 16 : i64, bytes = 4 : i64, name = "shared_array::<i32>(1)", offset = 0 : i64} : () -> !llvm.ptr<3>
    %c1_i32_1 = arith.constant 1 : i32
    %9 = "lw.atomic_rmw"(%8, %c1_i32_1) {kind = "sub", ordering = "relaxed", scope = "block"} : (!llvm.ptr<3>, i32) -> i32
    "#);
}

#[test]
fn a_buffer_knows_its_size_and_counts_in_elements() {
    let text = body(trace_body(|(x, y, i, mask): (Tensor<F16, 2>, TensorMut<F16, 1>, I32, Bool)| {
        let (from, to) = (BufferRsrc::new(x), BufferRsrc::new(y));
        let v = from.load::<8>(elements(i), mask);
        to.store(elements(i) + elements(8), v, mask);
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg9, %c0_i8 : i8
    %c0_i64 = arith.constant 0 : i64
    %1 = arith.extsi %arg1 : i32 to i64
    %c1_i64 = arith.constant 1 : i64
    %2 = arith.subi %1, %c1_i64 : i64
    %3 = arith.muli %2, %arg3 : i64
    %4 = arith.cmpi sgt, %1, %c0_i64 : i64
    %5 = arith.extsi %arg2 : i32 to i64
    %6 = arith.subi %5, %c1_i64 : i64
    %7 = arith.muli %6, %arg4 : i64
    %8 = arith.addi %3, %7 : i64
    %9 = arith.cmpi sgt, %5, %c0_i64 : i64
    %10 = arith.andi %4, %9 : i1
    %11 = arith.addi %8, %c1_i64 : i64
    %c2_i64 = arith.constant 2 : i64
    %12 = arith.muli %11, %c2_i64 : i64
    %13 = arith.select %10, %12, %c0_i64 : i64
    %14 = arith.extsi %arg6 : i32 to i64
    %15 = arith.subi %14, %c1_i64 : i64
    %16 = arith.muli %15, %arg7 : i64
    %17 = arith.cmpi sgt, %14, %c0_i64 : i64
    %18 = arith.addi %16, %c1_i64 : i64
    %19 = arith.muli %18, %c2_i64 : i64
    %20 = arith.select %17, %19, %c0_i64 : i64
    %21 = "lw.buffer_load"(%arg0, %13, %arg8, %0) : (!llvm.ptr<1>, i64, i32, i1) -> vector<8xf16>
    %c8_i32 = arith.constant 8 : i32
    %22 = arith.addi %arg8, %c8_i32 : i32
    "lw.buffer_store"(%21, %arg5, %20, %22, %0) : (vector<8xf16>, !llvm.ptr<1>, i64, i32, i1) -> ()
    "#);
}
