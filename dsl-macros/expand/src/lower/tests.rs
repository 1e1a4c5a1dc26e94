//! Tests of the analysis: what a region changes, and which jumps leave it.

use syn::{ImplItemFn, parse_str};

use super::{Lower, Position};
use crate::Root;
use crate::analysis::jumps::{Frame, LoopId};

/// The effects of the body of `function` on its parameters, as text: `a whole, b part | continue0, return`.
/// The body stands in a run-time loop.
fn effects(function: &str) -> String {
    let function: ImplItemFn = parse_str(function).expect("the test's function parses");
    let (root, mut block) = (Root::named("lacewing"), function.block);
    let mut lower = Lower::new(&root, true);
    function.sig.inputs.iter().for_each(|input| lower.bind_argument(input));
    let id = lower.new_loop();
    lower.frames.push(Frame::Loop { id, label: Some("o".to_owned()), runtime: true, valued: false });
    assert_eq!(id, LoopId(0));
    let ((), region) = lower.region(|lower| lower.block(&mut block, Position::Statement));
    let changes = region.effects.changes.iter().map(|change| {
        let unknown = if change.binding.is_none() { "unknown " } else { "" };
        format!("{unknown}{} {:?}", change.name, change.how).to_lowercase()
    });
    let jumps = region.effects.jumps.iter().map(|jump| {
        let value = if jump.valued { " with a value" } else { "" };
        crate::generated::flag(jump.kind).to_string().replace("__lw_", "") + value
    });
    let (changes, jumps) = (changes.collect::<Vec<_>>().join(", "), jumps.collect::<Vec<_>>().join(", "));
    if jumps.is_empty() { changes } else { format!("{changes} | {jumps}") }
}

#[test]
fn changes_by_assignment() {
    assert_eq!(effects("fn f(mut a: F32, b: F32) { a = b; }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32, b: F32) { a += b; }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32, mut b: F32) { (a, b) = (b, a); }"), "a whole, b whole");
    assert_eq!(effects("fn f(mut a: S, mut b: F32) { S { x: a.y, z: [b, _] } = s; }"), "a part, b whole");
    assert_eq!(effects("fn f(mut a: [F32; 2], i: usize) { a[i].x += 1.0; }"), "a part");
    assert_eq!(effects("fn f(a: &mut F32) { *a = 1.0; }"), "a part");
    assert_eq!(effects("fn f(mut a: F32) { *(&mut a) = 1.0; }"), "a part");
}

#[test]
fn changes_in_nested_code() {
    assert_eq!(effects("fn f(mut a: F32, c: Bool) { if c { { a += 1.0; } } else { } }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { match m { X => a += 1.0, _ => {} } }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { let g = |x: F32| a += x; }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { for j in range(4) { while a > 1.0 { a -= 1.0; } } }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { if const_expr({ a += 1.0; true }) { } }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { printf!(\"{}\", { a += 1.0; a }); }"), "a whole");
}

#[test]
fn shadowing() {
    assert_eq!(effects("fn f(mut a: F32) { let mut a = a; a += 1.0; }"), "");
    assert_eq!(effects("fn f(mut a: F32) { { let mut a = a; a += 1.0; } a += 1.0; }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { for a in range(3) { a += 1; } }"), "");
    assert_eq!(effects("fn f(mut a: F32) { if let Some(mut a) = o { a += 1.0; } }"), "");
    assert_eq!(effects("fn f(mut a: F32) { match o { Some(mut a) => a += 1.0, None => a += 2.0 } }"), "a whole");
    assert_eq!(effects("fn f(mut a: F32) { let g = |mut a: F32| a += 1.0; }"), "");
    assert_eq!(
        effects("fn f(mut a: F32) { let Some(mut a) = o else { return }; a += 1.0; }"),
        " | return with a value"
    );
}

#[test]
fn perhaps_changed() {
    assert_eq!(effects("fn f(mut a: S) { a.push(1.0); }"), "a maybe");
    assert_eq!(effects("fn f(a: S) { a.push(1.0); }"), "");
    assert_eq!(effects("fn f(a: &mut S) { a.b.push(1.0); }"), "a maybe");
    assert_eq!(effects("fn f(&mut self) { self.push(1.0); }"), "self maybe");
    assert_eq!(effects("fn f(&self) { self.push(1.0); }"), "");
    assert_eq!(effects("fn f(mut a: S) { a.push(1.0); a.x = 1; }"), "a part");
    assert_eq!(effects("fn f(mut a: S) { bump!(a); }"), "a maybe");
    assert_eq!(effects("fn f(mut a: S) { printf!(\"{}\", a); }"), "");
    assert_eq!(effects("fn f(mut a: S) { let r = &mut a; r.push(); }"), "a part");
    assert_eq!(effects("fn f(mut a: S) { let S { ref mut x, .. } = a; }"), "a part");
    assert_eq!(effects("fn f(mut a: S) { match a { S { ref mut x, .. } => {} } }"), "a part");
    assert_eq!(effects("fn f(mut g: G) { g(1.0); }"), "g call");
    assert_eq!(effects("fn f(g: G) { g(1.0); }"), "");
}

#[test]
fn unknown_names() {
    assert_eq!(effects("fn f() { q += 1.0; }"), "unknown q whole");
    assert_eq!(effects("fn f() { def!(q); q += 1.0; }"), "");
    assert_eq!(effects("fn f() { q.push(1.0); g(q); }"), "");
}

#[test]
fn jumps_that_leave() {
    assert_eq!(effects("fn f(c: Bool) { if c { break; } }"), " | break0");
    assert_eq!(effects("fn f(c: Bool) { if c { continue 'o; } }"), " | continue0");
    assert_eq!(effects("fn f(c: Bool) -> F32 { if c { return x; } }"), " | return with a value");
    assert_eq!(effects("fn f(c: Bool) { for i in range(3) { if c { break; } } }"), "");
    assert_eq!(effects("fn f(c: Bool) { for i in range(3) { if c { break 'o; } } }"), " | break0");
    assert_eq!(effects("fn f(c: Bool) { for i in range_constexpr(3) { if c { break; } } }"), "");
    assert_eq!(effects("fn f(c: Bool) { for i in range_constexpr(3) { if c { continue 'o; } } }"), " | continue0");
    assert_eq!(effects("fn f(c: Bool) { let g = || { for i in range(3) { if c { break; } } }; }"), "");
    assert_eq!(effects("fn f(c: Bool) { 'a: { if c { break 'a; } } }"), "");
}

#[test]
fn compile_time_decisions_in_a_run_time_loop() {
    // Each leaves the loop, which is a run-time one: the flag is a constant when it is traced.
    assert_eq!(effects("fn f(m: M) { match m { M::A => break, M::B => {} } }"), " | break0");
    assert_eq!(effects("fn f() { for i in range_constexpr(3) { if const_expr(i == 1) { break; } } }"), "");
}
