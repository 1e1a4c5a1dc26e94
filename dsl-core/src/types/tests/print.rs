//! Printing and assertions.

use crate::types::testing::{body, messages, trace_body};
use crate::types::*;
use crate::{device_assert, printf, static_assert};

#[test]
fn each_type_has_its_conversion() {
    let text = body(trace_body(|(i, u, f, h, b, d): (I64, U8, F32, BF16, Bool, F64)| {
        printf!("{} {} {} {} {} {}\n", i, u, f, h, b, d);
        printf!("100% of {}: {{{}}} {}", "tile", 3usize, f + 1.0);
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg4, %c0_i8 : i8
    %1 = arith.extui %arg1 : i8 to i32
    %2 = arith.extf %arg3 : bf16 to f32
    %3 = arith.extui %0 : i1 to i32
    gpu.printf "%lld %u %f %f %d %f\0A", %arg0, %1, %arg2, %2, %3, %arg5 : i64, i32, f32, f32, i32, f64
    %cst = arith.constant 1.000000e+00 : f32
    %4 = arith.addf %arg2, %cst : f32
    gpu.printf "100%% of tile: {3} %f", %4 : f32
    "#);
}

#[test]
fn formats_are_checked() {
    let found = messages(trace_body(|(f,): (F32,)| {
        printf!("{} {}", f);
        printf!("none", f, f);
        printf!("{:?}", f);
        printf!("}");
        printf!("{}");
    }));
    insta::assert_snapshot!(found.join("\n"), @"
    this `printf!` has 2 `{}` places and 1 argument
    this `printf!` has 0 `{}` places and 2 arguments
    `printf!` knows only `{}`, found `{:?}`
    a `}` without its `{`; write `}}` for the character
    this `printf!` has 1 `{}` place and 0 arguments
    ");
}

#[test]
fn assertions() {
    let text = body(trace_body(|(b,): (Bool,)| {
        device_assert!(b, "outside the row");
        device_assert!(!b);
        static_assert!(1 + 1 == 2);
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i8 = arith.constant 0 : i8
    %0 = arith.cmpi ne, %arg0, %c0_i8 : i8
    "lw.assert"(%0) {message = "outside the row"} : (i1) -> ()
    %true = arith.constant true
    %1 = arith.xori %0, %true : i1
    "lw.assert"(%1) {message = "assertion failed: !b"} : (i1) -> ()
    "#);
    let found = messages(trace_body(|(): ()| {
        let d = 24;
        static_assert!(d < 32);
        static_assert!(d % 16 == 0, "D = {d} must be a multiple of 16");
        static_assert!(d < 16, "never reached");
    }));
    insta::assert_snapshot!(found.join("\n"), @"D = 24 must be a multiple of 16");
}
