//! One snapshot a construct.

use insta::assert_snapshot;

use super::lowered;

macro_rules! constructs {
    ($($name:ident: $function:literal)*) => { $(
        #[test]
        fn $name() {
            assert_snapshot!(lowered($function));
        }
    )* };
}

constructs! {
    // Loops
    for_range: "fn f(n: I32, mut a: F32, b: F32) { for i in range(0, n).unroll(4) { a += b; } }"
    for_with_break_and_continue:
        "fn f(n: I32, mut a: F32) { for i in range(n) { if a > 2.0 { break; } if a < 1.0 { continue; } a += 1.0; } }"
    labelled_break_out_of_two_loops:
        "fn f(n: I32, mut a: F32) { 'o: for i in range(n) { for j in range(n) { if a > 2.0 { break 'o; } a += 1.0; } } }"
    while_loop: "fn f(mut i: I32, x: F32) { while i > 0 && x > 1.0 { i -= 1; } }"
    loop_with_break: "fn f(mut i: I32) { loop { i += 1; if i > 20 { break; } } }"
    loop_with_value: "fn f(mut i: I32) -> I32 { loop { i += 1; if i > 20 { break i * 2; } } }"
    loop_left_by_return: "fn f(mut i: I32) -> I32 { loop { i += 1; if i > 20 { return i; } } }"
    compile_time_loop: "fn f(mut acc: [F32; 4], x: F32) { for j in range_constexpr(4) { acc[j] += x * (j as f32); } }"
    compile_time_loop_with_run_time_break:
        "fn f(mut s: F32) { for j in range_constexpr(1, 3) { if s > 10.0 { break; } s += 1.0; } s += 2.0; }"
    compile_time_loop_with_run_time_continue:
        "fn f(mut s: F32) { for j in constexpr(0..3) { if s > 10.0 { continue; } s += 1.0; } }"
    host_jumps_stay:
        "fn f(m: Mode, mut s: F32) { for j in range_constexpr(3) { if const_expr(j == m) { continue; } if let Some(_) = o { break; } s += 1.0; } }"
    while_let: "fn f(mut stack: Vec<F32>, c: Bool) { while let Some(x) = stack.pop() { if c { break; } store(x); } }"
    // Branches
    if_statement: "fn f(c: Bool, mut a: F32) { if c { a += 1.0; } }"
    if_value: "fn f(n: I32, x: F32, mut k: F32) { let y = if n < 3 { k += 1.0; k * 2.0 } else { k }; }"
    else_if: "fn f(i: I32, j: I32, mut a: F32) { if i < j { a += 1.0; } else if i > j { a = a * 2.0; } else { let a = 1; } }"
    if_const_expr: "fn f(m: Mode, mut a: F32) { if const_expr(m == Mode::A && m != Mode::B) { a += 1.0; } else if !const_expr(m.deep()) { a += 2.0; } }"
    const_expr_beside_a_run_time_condition: "fn f(m: bool, n: I32) { if const_expr(m) && n > 3 { store(n); } }"
    host_match: "fn f(m: Mode, n: I32, mut a: F32) { match m { Mode::A => { if n < 2 { a += 1.0; } } Mode::B(k) if k == 3 => a = a * 2.0, _ => {} } }"
    value_or_continue: "fn f(n: I32, x: F32) { for i in range(n) { let y = if i < 2 { x } else { continue }; store(y); } }"
    assigned_or_break: "fn f(n: I32, mut s: F32) { for i in range(n) { s = if i > 3 { s * 2.0 } else { break }; } }"
    // First values
    first_value_in_both_arms: "fn f(n: I32, x: F32) { let y; if n > 2 { y = x; } else { y = x + 1.0; } store(y); }"
    first_value_in_one_arm: "fn f(n: I32, x: F32) { let y; if n > 2 { y = x; } store(y); }"
    first_value_or_return: "fn f(n: I32, x: F32) { let mut y; if n > 2 { y = x; } else { return; } y += 1.0; store(y); }"
    first_value_under_a_guard: "fn f(n: I32, x: F32) { let y; { if n > 3 { return; } y = x; } store(y); }"
    first_value_after_a_jump: "fn f(c: Bool, x: F32) -> F32 { let mut u; if c { match m { true => { return x; } false => { return x; } } u = x; } else { u = x; } u }"
    // Returns
    early_return: "fn f(n: I32, tid: I32) { if tid >= n { return; } store(tid); }"
    return_value: "fn f(n: I32, x: F32) -> F32 { for i in range(n) { if i == 3 { return x * 2.0; } } x + 1.0 }"
    both_arms_return: "fn f(n: I32, x: F32) -> F32 { if n > 3 { return x; } else { return x + 1.0; } }"
    host_return_stays: "fn f(m: bool, x: F32) -> F32 { if const_expr(m) { return x; } x + 1.0 }"
    let_else: "fn f(n: I32, o: Option<F32>) { for i in range(n) { let Some(x) = o else { continue; }; store(x); } }"
    labelled_block: "fn f(n: I32, x: F32) -> F32 { let v = 'a: { if n > 3 { break 'a x; } x + 3.0 }; v }"
    // Operators
    comparisons: "fn f(a: F32, b: F32) { let c = [a < b, a <= b, a > b, a >= b, a == b, a != b, a + b < b * a]; }"
    logic: "fn f(a: Bool, b: Bool, c: bool) { let d = a && b || !c; }"
    literals_on_the_left: "fn f(x: F32) { let y = 2.0 * x + (1.0 - x) / 3.0; let z = 2.0 * 3.0; let w = -1.0 * x; let v = 1.0f64 * k; }"
    // Macros
    macro_arguments: "fn f(a: F32, c: Bool) { printf!(\"{}\", if c { a } else { 1.0 }); static_assert!(N == 4); let v = vec![a < 1.0; 2]; twice!(a => b); }"
    macro_that_may_change: "fn f(n: I32, mut a: F32) { for i in range(n) { bump!(a); } }"
    macro_that_declares: "fn f(n: I32, x: F32) { for i in range(n) { def!(q, x); for j in range(n) { q += 1.0; } } }"
    // The rest
    closures: "fn f(n: I32, x: F32) { let mut a = x; for i in range(n) { let bump = |v: F32| if v > 0.0 { v + 1.0 } else { v }; a = bump(a); } }"
    explicit_carry: "fn f(n: I32, x: F32) { let r = range(0, n).carry(x, |i, s| if i > 2 { s + 1.0 } else { s }); }"
    raw_identifiers: "fn f(n: I32, mut r#type: F32) { for r#in in range(n) { r#type += 1.0; } }"
    method_of_a_reference: "fn f(&mut self, c: Bool, a: &mut [F32]) { if c { self.total += 1.0; self.step(); a[0] = 1.0; } }"
    closure_that_changes_captures: "fn f(n: I32, x: F32) { let mut acc = x; let mut bump = |v: F32| acc += v; for i in range(n) { bump(x); } }"
    attributes_stay: "fn f(c: Bool) { #[cfg(feature = \"checks\")] if c { store(1); } }"
}
