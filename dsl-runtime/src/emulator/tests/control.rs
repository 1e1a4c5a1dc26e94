//! Loops, branches and carried values in divergent code.

use super::*;

const TARGETS: [&str; 2] = ["sm_80", "gfx942"];

/// Runs a body that stores `%r : i32` for each of 100 threads in blocks of 50.
fn results(target: &str, body: &str) -> Vec<i32> {
    let body = format!("{THREAD}{body}{}", store("r", "d", "i32"));
    let kernel = Kernel { target, block: [50, 1, 1], args: "d:out", body: &body, ..Kernel::default() };
    to_i32s(&kernel.run([2, 1, 1], &[Arg::Uninit(400)])[0])
}

fn check(body: &str, model: impl Fn(i32) -> i32) {
    for target in TARGETS {
        let expected: Vec<i32> = (0..100).map(&model).collect();
        assert_eq!(results(target, body), expected, "{target}\n{body}");
    }
}

#[test]
fn trip_counts_differ_by_lane_and_values_trade_places() {
    // Fibonacci by swapping: yields that read each other's old value.
    check(
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%c10 = arith.constant 10 : i32\n\
         %n = arith.remui %tid, %c10 : i32\n\
         %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c1) -> (i32, i32) : i32 {\n\
           %t = arith.addi %a, %b : i32\n  scf.yield %b, %t : i32, i32\n}\n",
        |tid| {
            let (mut a, mut b) = (0, 1);
            for _ in 0..tid % 10 {
                (a, b) = (b, a + b);
            }
            a
        },
    );
}

#[test]
fn loops_of_64_bits_with_steps_nest() {
    check(
        "%c0 = arith.constant 0 : i64\n%c3 = arith.constant 3 : i64\n%c1 = arith.constant 1 : i32\n%z = arith.constant 0 : i32\n\
         %r = scf.for %i = %c0 to %tid64 step %c3 iter_args(%a = %z) -> (i32) : i64 {\n\
           %ii = arith.trunci %i : i64 to i32\n\
           %in = scf.for %j = %z to %ii step %c1 iter_args(%b = %a) -> (i32) : i32 {\n\
             %odd = arith.andi %j, %c1 : i32\n%is = arith.cmpi eq, %odd, %c1 : i32\n\
             %v = scf.if %is -> (i32) {\n%x = arith.addi %b, %tid : i32\nscf.yield %x : i32\n} else {\n\
               %y = arith.subi %b, %c1 : i32\nscf.yield %y : i32\n}\n\
             scf.yield %v : i32\n}\n\
           scf.yield %in : i32\n}\n",
        |tid| {
            let mut sum = 0;
            for i in (0..i64::from(tid)).step_by(3) {
                for j in 0..i {
                    sum += if j % 2 == 1 { tid } else { -1 };
                }
            }
            sum
        },
    );
}

#[test]
fn while_loops_forward_and_carry_conditions() {
    // Collatz steps; the carried flag records whether the number was ever above 100.
    check(
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%c2 = arith.constant 2 : i32\n%c3 = arith.constant 3 : i32\n\
         %c100 = arith.constant 100 : i32\n%c1000 = arith.constant 1000 : i32\n%f = arith.constant false\n\
         %start = arith.addi %tid, %c1 : i32\n\
         %n, %steps, %big = scf.while (%x = %start, %k = %c0, %g = %f) : (i32, i32, i1) -> (i32, i32, i1) {\n\
           %go = arith.cmpi ne, %x, %c1 : i32\n  scf.condition(%go) %x, %k, %g : i32, i32, i1\n\
         } do {\n^bb0(%x: i32, %k: i32, %g: i1):\n\
           %odd = arith.andi %x, %c1 : i32\n%is = arith.cmpi eq, %odd, %c1 : i32\n\
           %next = scf.if %is -> (i32) {\n%m = arith.muli %x, %c3 : i32\n%m1 = arith.addi %m, %c1 : i32\nscf.yield %m1 : i32\n\
           } else {\n%h = arith.shrsi %x, %c1 : i32\nscf.yield %h : i32\n}\n\
           %over = arith.cmpi sgt, %next, %c100 : i32\n%g2 = arith.ori %g, %over : i1\n%k2 = arith.addi %k, %c1 : i32\n\
           scf.yield %next, %k2, %g2 : i32, i32, i1\n}\n\
         %bonus = arith.select %big, %c1000, %c0 : i32\n%r = arith.addi %steps, %bonus : i32\n",
        |tid| {
            let (mut x, mut k, mut big) = (tid + 1, 0, false);
            while x != 1 {
                x = if x % 2 == 1 { 3 * x + 1 } else { x / 2 };
                big |= x > 100;
                k += 1;
            }
            k + if big { 1000 } else { 0 }
        },
    );
}

#[test]
fn a_while_forwards_values_that_differ_from_its_state() {
    check(
        "%c1 = arith.constant 1 : i32\n%c7 = arith.constant 7 : i32\n%c50 = arith.constant 50 : i64\n%k = arith.constant 3 : i64\n\
         %last = scf.while (%x = %tid64) : (i64) -> i32 {\n\
           %go = arith.cmpi slt, %x, %c50 : i64\n%t = arith.trunci %x : i64 to i32\n%t7 = arith.muli %t, %c7 : i32\n\
           scf.condition(%go) %t7 : i32\n\
         } do {\n^bb0(%y: i32):\n\
           %q = arith.divsi %y, %c7 : i32\n%w = arith.extsi %q : i32 to i64\n%n = arith.addi %w, %k : i64\n scf.yield %n : i64\n}\n\
         %r = arith.addi %last, %c1 : i32\n",
        |tid| {
            let mut x = tid;
            while x < 50 {
                x += 3;
            }
            7 * x + 1
        },
    );
}

#[test]
fn branches_give_wide_and_narrow_values() {
    check(
        "%c2 = arith.constant 2 : i32\n%c3 = arith.constant 3 : i32\n%h = arith.constant 1.5 : f16\n%q = arith.constant 2.5 : f16\n\
         %m2 = arith.remui %tid, %c2 : i32\n%m3 = arith.remui %tid, %c3 : i32\n%z = arith.constant 0 : i32\n\
         %a = arith.cmpi eq, %m2, %z : i32\n%b = arith.cmpi eq, %m3, %z : i32\n\
         %x, %w, %y = scf.if %a -> (f16, i64, i1) {\n\
           %in = scf.if %b -> (f16) {\nscf.yield %h : f16\n} else {\nscf.yield %q : f16\n}\n\
           scf.yield %in, %tid64, %b : f16, i64, i1\n\
         } else {\n%s = arith.addf %h, %q : f16\n%n = arith.addi %tid64, %tid64 : i64\nscf.yield %s, %n, %a : f16, i64, i1\n}\n\
         %xi = arith.fptosi %x : f16 to i32\n%wi = arith.trunci %w : i64 to i32\n%yi = arith.extui %y : i1 to i32\n\
         %p = arith.muli %xi, %wi : i32\n%r = arith.addi %p, %yi : i32\n",
        |tid| {
            let (a, b) = (tid % 2 == 0, tid % 3 == 0);
            if a { tid * if b { 1 } else { 2 } + i32::from(b) } else { 4 * 2 * tid }
        },
    );
}

#[test]
fn values_outside_a_loop_survive_many_temporaries_inside() {
    // More values than would fit if a slot were given back too early.
    let mut body =
        String::from("%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%c5 = arith.constant 5 : i32\n");
    for i in 0..40 {
        body += &format!("%k{i} = arith.constant {i} : i32\n%v{i} = arith.addi %tid, %k{i} : i32\n");
    }
    body +=
        "%r = scf.for %i = %c0 to %c5 step %c1 iter_args(%a = %c0) -> (i32) : i32 {\n%s0 = arith.addi %a, %i : i32\n";
    for i in 0..40 {
        body += &format!("%t{i} = arith.xori %v{i}, %i : i32\n%s{} = arith.addi %s{i}, %t{i} : i32\n", i + 1);
    }
    body += "scf.yield %s40 : i32\n}\n";
    check(&body, |tid| {
        let mut a = 0;
        for i in 0..5 {
            a += i;
            for k in 0..40 {
                a += (tid + k) ^ i;
            }
        }
        a
    });
}

#[test]
fn an_endless_loop_is_reported() {
    let body = "%t = arith.constant true\nscf.while : () -> () {\nscf.condition(%t)\n} do {\nscf.yield\n}\n";
    let kernel = Kernel { body, ..Kernel::default() };
    let mut launch = Launch::new([1, 1, 1], vec![]);
    launch.checks.op_budget = 10_000;
    let report = crate::emulator::run(&kernel.decode(), &launch).unwrap_err();
    assert_eq!(report.kind, crate::emulator::ReportKind::OpBudget);
}

#[test]
fn a_step_of_zero_is_reported() {
    let body = format!(
        "{THREAD}%c0 = arith.constant 0 : i32\n%c9 = arith.constant 9 : i32\nscf.for %i = %c0 to %c9 step %tid : i32 {{\n}}\n"
    );
    let report = Kernel { body: &body, ..Kernel::default() }.report(&[]);
    assert_eq!((report.kind, report.lane), (crate::emulator::ReportKind::LoopStep, Some(0)));
    assert_eq!(report.message, "the loop's step is 0: it must be positive");
}

#[test]
fn division_by_zero_blames_the_active_lane() {
    let body = format!(
        "{THREAD}%c5 = arith.constant 5 : i32\n%c40 = arith.constant 40 : i32\n%m = arith.subi %tid, %c40 : i32\n\
         %big = arith.cmpi ugt, %tid, %c5 : i32\nscf.if %big {{\n%q = arith.divsi %c5, %m : i32 loc(\"k.rs\":7:3)\n}}\n"
    );
    for target in TARGETS {
        let report = Kernel { target, block: [64, 1, 1], body: &body, ..Kernel::default() }.report(&[]);
        assert_eq!(report.kind, crate::emulator::ReportKind::DivisionByZero);
        assert_eq!(report.thread, Some([40, 0, 0]), "{target}");
        assert_eq!(report.location.as_ref().map(|l| (l.line, l.column)), Some((7, 3)));
    }
}
