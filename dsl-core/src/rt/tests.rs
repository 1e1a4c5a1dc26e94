//! Control flow as the macro emits it, written out by hand: the traced IR must verify and read as meant.

use std::panic::Location;

use super::*;
use crate::types::{F32, I32};
use crate::{Error, Target, trace_kernel};

/// A kernel of one integer and one float whose body is a closure.
#[derive(Clone)]
struct Body<F>(F);

impl<F: Fn(I32, F32) + Clone + 'static> Kernel for Body<F> {
    type Params = (I32, F32);
    fn name(&self) -> &'static str {
        "body"
    }
    fn location(&self) -> &'static Location<'static> {
        Location::caller()
    }
    fn comptime(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn param_names() -> &'static [&'static str] {
        &["n", "x"]
    }
    fn attributes(&self) -> KernelAttributes {
        KernelAttributes { block: [32, 1, 1], min_blocks: None, max_regs: None, waves_per_eu: None, cluster: None }
    }
    fn trace(&self, (n, x): (I32, F32)) {
        (self.0)(n, x);
    }
}

/// The lines of the body, trimmed; `keep` marks where a value ends up.
fn ir(body: impl Fn(I32, F32) + Clone + 'static) -> Result<String, Error> {
    let text = trace_kernel(&Body(body), Target::SM_80)?.text();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let from = lines.iter().position(|l| l.contains("gpu.func")).unwrap() + 1;
    let to = lines.iter().position(|l| l.contains("gpu.return")).unwrap();
    Ok(lines[from..to].join("\n"))
}

/// Something that cannot be removed.
fn keep(value: impl Scalar) {
    trace::emit0("lw.assert", &[value.raw()], &[("message", Attr::Str("kept".into()))], Location::caller());
}

fn s<'a>(name: &'static str, state: &'a mut impl State) -> Slot<'a> {
    flag_slot(name, state)
}

#[test]
fn a_branch_carries_what_it_changes_and_nothing_else() {
    let text = ir(|n, x| {
        let (mut a, mut b) = (x, x);
        let mut open = if_begin(lt(&n, &3), &mut [s("a", &mut a), s("b", &mut b)]);
        a += 1.0;
        if_else(&mut open, &mut [s("a", &mut a), s("b", &mut b)]);
        if_end(open, &mut [s("a", &mut a), s("b", &mut b)], [(), ()]);
        keep(gt(&a, &b));
    })
    .unwrap();
    insta::assert_snapshot!(text, @r#"
    %c3_i32 = arith.constant 3 : i32
    %0 = arith.cmpi slt, %arg0, %c3_i32 : i32
    %1 = scf.if %0 -> (f32) {
    %cst = arith.constant 1.000000e+00 : f32
    %3 = arith.addf %arg1, %cst : f32
    scf.yield %3 : f32
    } else {
    scf.yield %arg1 : f32
    }
    %2 = arith.cmpf ogt, %1, %arg1 : f32
    "lw.assert"(%2) {message = "kept"} : (i1) -> ()
    "#);
}

#[test]
fn a_loop_drops_state_that_its_body_leaves_alone() {
    let text = ir(|n, x| {
        let (mut a, mut b) = (x, x);
        let mut open = for_begin(range_args((0, n)), &mut [s("b", &mut b), s("a", &mut a)], 0);
        while open.enter() {
            let _ = open.iv();
            a += b;
        }
        for_end(open, &[], &mut [s("b", &mut b), s("a", &mut a)]);
        keep(gt(&a, &b));
    })
    .unwrap();
    insta::assert_snapshot!(text, @r#"
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %0 = scf.for %arg2 = %c0_i32 to %arg0 step %c1_i32 iter_args(%arg3 = %arg1) -> (f32)  : i32 {
    %2 = arith.addf %arg3, %arg1 : f32
    scf.yield %2 : f32
    }
    %1 = arith.cmpf ogt, %0, %arg1 : f32
    "lw.assert"(%1) {message = "kept"} : (i1) -> ()
    "#);
}

#[test]
fn a_break_ends_the_loop() {
    let text = ir(|n, x| {
        let mut a = x;
        let mut left = no();
        let mut open = for_begin(range_args((0, n)), &mut [s("a", &mut a), s("left", &mut left)], 1);
        while open.enter() {
            let _ = open.iv();
            let mut branch = if_begin(gt(&a, &10.0f32), &mut [s("left", &mut left)]);
            left = yes();
            if_else(&mut branch, &mut [s("left", &mut left)]);
            if_end(branch, &mut [s("left", &mut left)], [(), ()]);
            if let Some(rest) = guard(&[left], &mut [s("a", &mut a)]) {
                a += 1.0;
                guard_end(rest, &mut [s("a", &mut a)], ());
            }
        }
        for_end(open, &[left], &mut [s("a", &mut a), s("left", &mut left)]);
        keep(gt(&a, &x));
    })
    .unwrap();
    insta::assert_snapshot!(text, @r#"
    %false = arith.constant false
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c0_i64 = arith.constant 0 : i64
    %0 = arith.extsi %arg0 : i32 to i64
    %c1_i64 = arith.constant 1 : i64
    %1:3 = scf.while (%arg2 = %c0_i64, %arg3 = %false, %arg4 = %arg1, %arg5 = %false) : (i64, i1, f32, i1) -> (i64, f32, i1) {
    %3 = arith.cmpi slt, %arg2, %0 : i64
    %true = arith.constant true
    %4 = arith.xori %arg3, %true : i1
    %5 = arith.andi %3, %4 : i1
    scf.condition(%5) %arg2, %arg4, %arg5 : i64, f32, i1
    } do {
    ^bb0(%arg2: i64, %arg3: f32, %arg4: i1):
    %3 = arith.trunci %arg2 : i64 to i32
    %cst = arith.constant 1.000000e+01 : f32
    %4 = arith.cmpf ogt, %arg3, %cst : f32
    %5 = scf.if %4 -> (i1) {
    %true_0 = arith.constant true
    scf.yield %true_0 : i1
    } else {
    scf.yield %arg4 : i1
    }
    %true = arith.constant true
    %6 = arith.xori %5, %true : i1
    %7 = scf.if %6 -> (f32) {
    %cst_0 = arith.constant 1.000000e+00 : f32
    %9 = arith.addf %arg3, %cst_0 : f32
    scf.yield %9 : f32
    } else {
    scf.yield %arg3 : f32
    }
    %8 = arith.addi %arg2, %c1_i64 : i64
    scf.yield %8, %5, %7, %5 : i64, i1, f32, i1
    }
    %2 = arith.cmpf ogt, %1#1, %arg1 : f32
    "lw.assert"(%2) {message = "kept"} : (i1) -> ()
    "#);
}

#[test]
fn a_while_loop_tests_its_condition_once_a_round_and_not_after_a_break() {
    let body = |with_exit: bool| {
        ir(move |n, _| {
            let mut i = n;
            let mut left = no();
            let mut open = while_begin(&mut [s("i", &mut i), s("left", &mut left)]);
            while open.enter() {
                let go = gt(&i, &0);
                while_cond(&mut open, go, &mut [s("i", &mut i), s("left", &mut left)]);
                i -= 1;
                if with_exit {
                    left = eq(&i, &7);
                }
            }
            let exits = [left];
            let exits: &[Bool] = if with_exit { &exits } else { &[] };
            while_end(open, exits, &mut [s("i", &mut i), s("left", &mut left)]);
            keep(eq(&i, &0));
        })
        .unwrap()
    };
    insta::assert_snapshot!(body(false), @r#"
    %false = arith.constant false
    %0 = scf.while (%arg2 = %arg0) : (i32) -> i32 {
    %c0_i32_0 = arith.constant 0 : i32
    %2 = arith.cmpi sgt, %arg2, %c0_i32_0 : i32
    scf.condition(%2) %arg2 : i32
    } do {
    ^bb0(%arg2: i32):
    %c1_i32 = arith.constant 1 : i32
    %2 = arith.subi %arg2, %c1_i32 : i32
    scf.yield %2 : i32
    }
    %c0_i32 = arith.constant 0 : i32
    %1 = arith.cmpi eq, %0, %c0_i32 : i32
    "lw.assert"(%1) {message = "kept"} : (i1) -> ()
    "#);
    insta::assert_snapshot!(body(true), @r#"
    %false = arith.constant false
    %0:2 = scf.while (%arg2 = %false, %arg3 = %arg0, %arg4 = %false) : (i1, i32, i1) -> (i32, i1) {
    %true = arith.constant true
    %2 = arith.xori %arg2, %true : i1
    %3:3 = scf.if %2 -> (i1, i32, i1) {
    %c0_i32_0 = arith.constant 0 : i32
    %4 = arith.cmpi sgt, %arg3, %c0_i32_0 : i32
    scf.yield %4, %arg3, %arg4 : i1, i32, i1
    } else {
    scf.yield %false, %arg3, %arg4 : i1, i32, i1
    }
    scf.condition(%3#0) %3#1, %3#2 : i32, i1
    } do {
    ^bb0(%arg2: i32, %arg3: i1):
    %c1_i32 = arith.constant 1 : i32
    %2 = arith.subi %arg2, %c1_i32 : i32
    %c7_i32 = arith.constant 7 : i32
    %3 = arith.cmpi eq, %2, %c7_i32 : i32
    scf.yield %3, %2, %3 : i1, i32, i1
    }
    %c0_i32 = arith.constant 0 : i32
    %1 = arith.cmpi eq, %0#0, %c0_i32 : i32
    "lw.assert"(%1) {message = "kept"} : (i1) -> ()
    "#);
}

#[test]
fn a_step_that_could_overflow_counts_in_64_bits() {
    let text = ir(|n, x| {
        let mut a = x;
        let mut open = for_begin(range_args((0, n, 64)), &mut [s("a", &mut a)], 0);
        while open.enter() {
            keep(lt(&open.iv(), &3));
            a += 1.0;
        }
        for_end(open, &[], &mut [s("a", &mut a)]);
        keep(gt(&a, &x));
    })
    .unwrap();
    assert!(text.contains("arith.extsi %arg0 : i32 to i64"), "{text}");
    assert!(text.contains("step %c64_i64"), "{text}");
    let fixed = ir(|_, _| {
        let mut open = for_begin(range_args((0, 256, 64)), &mut [], 0);
        while open.enter() {
            keep(lt(&open.iv(), &3));
        }
        for_end(open, &[], &mut []);
    })
    .unwrap();
    assert!(fixed.contains("step %c64_i32") && !fixed.contains("i64"), "{fixed}");
}

#[test]
fn the_right_side_of_and_is_traced_in_its_own_region() {
    let text = ir(|n, x| {
        let both: Bool = match and_begin(lt(&n, &3)) {
            Enter::Go(token) => logic_end(token, gt(&x, &0.0f32)),
            Enter::Skip(value) => logic_skip(value),
        };
        keep(both);
    })
    .unwrap();
    insta::assert_snapshot!(text, @r#"
    %c3_i32 = arith.constant 3 : i32
    %0 = arith.cmpi slt, %arg0, %c3_i32 : i32
    %1 = scf.if %0 -> (i1) {
    %cst = arith.constant 0.000000e+00 : f32
    %2 = arith.cmpf ogt, %arg1, %cst : f32
    scf.yield %2 : i1
    } else {
    %false = arith.constant false
    scf.yield %false : i1
    }
    "lw.assert"(%1) {message = "kept"} : (i1) -> ()
    "#);
}

#[test]
fn host_state_that_changes_in_a_loop_is_an_error_that_names_it() {
    let error = ir(|n, _| {
        let mut count = 0usize;
        let mut open = for_begin(range_args((n,)), &mut [s("count", &mut count)], 0);
        while open.enter() {
            count += 1;
        }
        for_end(open, &[], &mut [s("count", &mut count)]);
    })
    .unwrap_err();
    assert!(
        error.diagnostics[0]
            .message
            .contains("the host part of `count` changed inside a run-time loop, from `0` to `1`"),
        "{error}"
    );
}

#[test]
fn a_value_of_a_closed_region_is_reported_with_both_places() {
    let error = ir(|n, x| {
        let mut leaked = None;
        let mut open = if_begin(lt(&n, &3), &mut []);
        leaked.replace(x + 1.0);
        if_else(&mut open, &mut []);
        if_end(open, &mut [], [(), ()]);
        keep(gt(&leaked.unwrap(), &0.0f32));
    })
    .unwrap_err();
    assert!(error.diagnostics[0].message.contains("inside run-time control flow that has ended"), "{error}");
    assert!(error.diagnostics[0].notes[0].contains("rt/tests.rs"), "{error}");
}

#[test]
fn a_zero_step_and_a_zero_divisor_are_refused() {
    let error = ir(|n, _| {
        let mut open = for_begin(range_args((0, n, 0)), &mut [], 0);
        while open.enter() {}
        for_end(open, &[], &mut []);
    })
    .unwrap_err();
    assert_eq!(error.diagnostics[0].message, "the step of this loop is zero");
    let error = ir(|n, _| keep(eq(&(n / 0), &1))).unwrap_err();
    assert_eq!(error.diagnostics[0].message, "division by zero");
}

#[test]
fn endless_recursion_of_helpers_is_an_error() {
    #[allow(unconditional_recursion, reason = "it is what the test is about")]
    fn again() {
        let _frame = frame(Location::caller());
        again();
    }
    let error = ir(|_, _| again()).unwrap_err();
    assert!(error.diagnostics[0].message.contains("calls itself without end"), "{error}");
    assert!(trace::with(|_| ()).is_none(), "the trace is closed again");
}

#[test]
fn values_do_not_cross_kernels() {
    let outside = F32::from(1.0);
    let error = ir(move |_, x| keep(gt(&x, &outside))).unwrap_err();
    assert_eq!(error.diagnostics[0].message, "this value was not made by the kernel that uses it");
}

mod through_the_macro {
    use crate::prelude::*;
    use crate::{Target, trace_kernel};

    #[kernel(block = [lanes, 1, 1])]
    fn clipped_sum(#[comptime] lanes: u32, #[comptime] steps: usize, n: I32, x: F32) {
        let mut total = F32::from(0.0);
        for i in range(0, n) {
            if i == 7 {
                break;
            }
            for j in range_constexpr(steps) {
                total += x * (j as f32);
            }
            if const_expr(steps > 100) {
                total += 1.0;
            }
        }
        crate::rt::tests::keep(total > 0.0 && n < 8);
    }

    #[test]
    fn a_kernel_traces_and_verifies() {
        let traced = trace_kernel(&clipped_sum::new(64, 2), Target::SM_80).unwrap();
        assert_eq!(traced.meta.attributes.block, [64, 1, 1]);
        assert_eq!(traced.meta.params.len(), 2);
        insta::assert_snapshot!(traced.text(), @r#"
        module attributes {gpu.container_module} {
          gpu.module @clipped_sum {
            gpu.func @clipped_sum(%arg0: i32 {lw.elem = "i32", lw.name = "n"}, %arg1: f32 {lw.elem = "f32", lw.name = "x"}) kernel attributes {known_block_size = array<i32: 64, 1, 1>, lw.shared_bytes = 0 : i64, lw.target = "sm_80"} {
              %cst = arith.constant 0.000000e+00 : f32
              %false = arith.constant false
              %c0_i32 = arith.constant 0 : i32
              %c1_i32 = arith.constant 1 : i32
              %c0_i64 = arith.constant 0 : i64
              %0 = arith.extsi %arg0 : i32 to i64
              %c1_i64 = arith.constant 1 : i64
              %1:3 = scf.while (%arg2 = %c0_i64, %arg3 = %false, %arg4 = %cst, %arg5 = %false) : (i64, i1, f32, i1) -> (i64, f32, i1) {
                %4 = arith.cmpi slt, %arg2, %0 : i64
                %true = arith.constant true
                %5 = arith.xori %arg3, %true : i1
                %6 = arith.andi %4, %5 : i1
                scf.condition(%6) %arg2, %arg4, %arg5 : i64, f32, i1
              } do {
              ^bb0(%arg2: i64, %arg3: f32, %arg4: i1):
                %4 = arith.trunci %arg2 : i64 to i32
                %c7_i32 = arith.constant 7 : i32
                %5 = arith.cmpi eq, %4, %c7_i32 : i32
                %6 = scf.if %5 -> (i1) {
                  %true_0 = arith.constant true
                  scf.yield %true_0 : i1
                } else {
                  scf.yield %arg4 : i1
                }
                %true = arith.constant true
                %7 = arith.xori %6, %true : i1
                %8 = scf.if %7 -> (f32) {
                  %10 = arith.mulf %arg1, %cst : f32
                  %11 = arith.addf %arg3, %10 : f32
                  %cst_0 = arith.constant 1.000000e+00 : f32
                  %12 = arith.mulf %arg1, %cst_0 : f32
                  %13 = arith.addf %11, %12 : f32
                  scf.yield %13 : f32
                } else {
                  scf.yield %arg3 : f32
                }
                %9 = arith.addi %arg2, %c1_i64 : i64
                scf.yield %9, %6, %8, %6 : i64, i1, f32, i1
              }
              %2 = arith.cmpf ogt, %1#1, %cst : f32
              %3 = scf.if %2 -> (i1) {
                %c8_i32 = arith.constant 8 : i32
                %4 = arith.cmpi slt, %arg0, %c8_i32 : i32
                scf.yield %4 : i1
              } else {
                scf.yield %false : i1
              }
              "lw.assert"(%3) {message = "kept"} : (i1) -> ()
              gpu.return
            }
          }
        }
        "#);
    }
}
