//! Elementary functions and vectors.

use crate::types::testing::{body, trace_body};
use crate::types::*;

#[test]
fn approximate_forms_are_marked_and_exact_ones_are_not() {
    let text = body(trace_body(|x: (F32,)| {
        let _ = x.0.exp2();
        let _ = x.0.exp2_fast();
        let _ = x.0.rcp();
        let _ = x.0.rcp_fast();
        let _ = x.0.fma(2.0, 1.0);
    }));
    insta::assert_snapshot!(text, @r#"
    %0 = math.exp2 %arg0 : f32
    %1 = math.exp2 %arg0 fastmath<afn> : f32
    %cst = arith.constant 1.000000e+00 : f32
    %2 = arith.divf %cst, %arg0 : f32
    %3 = "lw.rcp"(%arg0) : (f32) -> f32
    %cst_0 = arith.constant 2.000000e+00 : f32
    %4 = math.fma %arg0, %cst_0, %cst : f32
    "#);
}

#[test]
fn short_floats_compute_in_f32() {
    let text = body(trace_body(|x: (F16, BF16)| {
        let _ = x.0.tanh();
        let _ = x.1.abs();
    }));
    insta::assert_snapshot!(text, @"
    %0 = arith.extf %arg0 : f16 to f32
    %1 = math.tanh %0 : f32
    %2 = arith.truncf %1 : f32 to f16
    %3 = math.absf %arg1 : bf16
    ");
}

#[test]
fn counts_of_bits_are_i32() {
    let text = body(trace_body(|x: (U64, U8)| {
        let _: I32 = x.0.count_ones();
        let _: I32 = x.1.leading_zeros();
    }));
    insta::assert_snapshot!(text, @"
    %0 = math.ctpop %arg0 : i64
    %1 = arith.trunci %0 : i64 to i32
    %2 = math.ctlz %arg1 : i8
    %3 = arith.extui %2 : i8 to i32
    ");
}

#[test]
fn vectors_work_element_by_element() {
    let text = body(trace_body(|x: (F32, I32)| {
        let v = Vector::from([x.0, x.0]);
        let w = (v * 2.0 + v).max(0.0).fma(v, 1.0);
        let small: Vector<Bool, 2> = w.lt(v);
        let _ = small.select(v, x.0).cast::<F16>();
        let _ = (-Vector::<I32, 4>::splat(x.1)).abs() << 3;
        let _ = w.with(1, x.0).get(0).cast::<F64>();
    }));
    insta::assert_snapshot!(text, @"
    %0 = vector.from_elements %arg0, %arg0 : vector<2xf32>
    %cst = arith.constant 2.000000e+00 : f32
    %1 = vector.broadcast %cst : f32 to vector<2xf32>
    %2 = arith.mulf %0, %1 : vector<2xf32>
    %3 = arith.addf %2, %0 : vector<2xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %4 = vector.broadcast %cst_0 : f32 to vector<2xf32>
    %5 = arith.maximumf %3, %4 : vector<2xf32>
    %cst_1 = arith.constant 1.000000e+00 : f32
    %6 = vector.broadcast %cst_1 : f32 to vector<2xf32>
    %7 = math.fma %5, %0, %6 : vector<2xf32>
    %8 = arith.cmpf olt, %7, %0 : vector<2xf32>
    %9 = vector.broadcast %arg0 : f32 to vector<2xf32>
    %10 = arith.select %8, %0, %9 : vector<2xi1>, vector<2xf32>
    %11 = arith.truncf %10 : vector<2xf32> to vector<2xf16>
    %12 = vector.broadcast %arg1 : i32 to vector<4xi32>
    %c0_i32 = arith.constant 0 : i32
    %13 = vector.broadcast %c0_i32 : i32 to vector<4xi32>
    %14 = arith.subi %13, %12 : vector<4xi32>
    %15 = math.absi %14 : vector<4xi32>
    %c3_i32 = arith.constant 3 : i32
    %16 = vector.broadcast %c3_i32 : i32 to vector<4xi32>
    %17 = arith.shli %15, %16 : vector<4xi32>
    %18 = vector.insert %arg0, %7 [1] : f32 into vector<2xf32>
    %19 = vector.extract %18[0] : f32 from vector<2xf32>
    %20 = arith.extf %19 : f32 to f64
    ");
}
