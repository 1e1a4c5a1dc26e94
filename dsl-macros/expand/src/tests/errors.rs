//! What the macro refuses: the text, and where it is put.

use proc_macro2::TokenStream;
use syn::visit::{self, Visit};
use syn::{Macro, parse_str};

use super::root;
use crate::{device, kernel};

/// The errors of an expansion, each as `line:column: text`.
fn errors(expanded: TokenStream) -> Vec<String> {
    struct Errors(Vec<String>);
    impl<'a> Visit<'a> for Errors {
        fn visit_macro(&mut self, mac: &'a Macro) {
            if mac.path.segments.last().is_some_and(|segment| segment.ident == "compile_error") {
                let at = mac.path.segments[0].ident.span().start();
                let text: syn::LitStr = mac.parse_body().expect("an error has a text");
                self.0.push(format!("{}:{}: {}", at.line, at.column + 1, text.value()));
            }
            visit::visit_macro(self, mac);
        }
    }
    let mut errors = Errors(Vec::new());
    let file = syn::parse2(expanded).expect("the expansion parses");
    errors.visit_file(&file);
    errors.0
}

fn kernel_errors(arguments: &str, item: &str) -> Vec<String> {
    let arguments = parse_str(arguments).expect("tokens");
    errors(kernel::expand(arguments, parse_str(item).expect("tokens"), &root()))
}

fn device_errors(item: &str) -> Vec<String> {
    errors(device::expand(TokenStream::new(), parse_str(item).expect("tokens"), &root()))
}

#[test]
fn what_a_kernel_cannot_be() {
    let cases = [
        "async fn f() {}",
        "const fn f() {}",
        "fn f() -> F32 { x }",
        "fn f<'a>(x: F32) {}",
        "fn f(x: impl Float) {}",
        "fn f(#[comptme] x: F32) {}",
        "fn f(#[comptime] (a, b): (usize, usize)) {}",
        "fn f(&self, x: F32) {}",
        "fn f(x: Self) {}",
        concat!("unsafe", " fn f() {}"),
        "fn f(#[comptime] names: &[usize]) {}",
        "fn f(/** of x */ x: F32) {}",
    ];
    let found: Vec<_> = cases.iter().flat_map(|case| kernel_errors("block = [1]", case)).collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn arguments_of_a_kernel() {
    let cases = ["", "max_regs = 1", "block = [1], blok = [2], warps = 3", "block = [1], block = [2]", "block"];
    let found: Vec<_> = cases.iter().flat_map(|case| kernel_errors(case, "fn f() {}")).collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn what_a_body_cannot_hold() {
    let cases = [
        "fn f(y: Option<F32>) { let z = y?; let w = y?; }",
        "fn f(y: Option<F32>, n: I32) -> Option<F32> { if n > 3 { store(y?); } None }",
        "fn f(y: Option<F32>, n: I32) -> Option<F32> { if n > 3 { return None; } let z = y?; Some(z) }",
        "fn f() { async { 1 }; g().await; }",
        "fn f() { let g = |v: F32| { if v > 0.0 { return v; } v }; }",
        "fn f(c: Bool) { if let Some(x) = o && c { store(x); } }",
        "fn f(n: I32) { for i in range(n) { store(if i > 3 { i } else { continue }); } }",
        "fn f(n: I32) -> I32 { 1 + if n > 3 { return n } else { 2 } }",
        "fn f(n: I32) { while n > 3 { if n > 4 { break 5; } } }",
        "fn f(n: I32) { for i in range(n).rev() { store(i); } for i in range(0, n).unroll(2).step_by(2).rev() { store(i); } }",
        "fn f(n: I32) { for (k, i) in range(n).enumerate() { store(i); } for i in range(n).filter(odd) { store(i); } }",
        "async fn f() {}",
        "const fn f() {}",
        "extern \"C\" fn f() {}",
    ];
    let found: Vec<_> = cases.iter().flat_map(|case| device_errors(case)).collect();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn what_a_body_may_hold() {
    let cases = [
        "fn f(c: bool) { if let Some(x) = o && const_expr(c) { store(x); } }",
        "fn f() { let g = |v: F32| { if const_expr(true) { return v; } v }; }",
        "fn f(n: I32) { store(loop { if n > 4 { break n; } }); }",
        "fn f(n: I32) { let g = |v: I32| { for i in range(v) { if i > 3 { break; } } }; }",
        "fn f(n: I32) { let y = if n > 3 { n } else { return }; }",
        "fn f(o: Option<I32>, n: I32) { if n > 3 { let Some(x) = o else { return }; store(x); } }",
        "fn f(y: Option<F32>) -> Option<F32> { let z = y?; for w in constexpr(list(z)) { store(w?); } Some(z) }",
        "fn f(y: Option<F32>, n: I32) { let g = || { let z = y?; Some(z) }; if n > 3 { store(g()); } }",
    ];
    for case in cases {
        assert_eq!(device_errors(case), Vec::<String>::new(), "{case}");
    }
}
