//! Whole items: kernels, helpers, derives.

use insta::assert_snapshot;
use proc_macro2::TokenStream;
use syn::parse_str;

use super::{pretty, root};
use crate::{carried, device, kernel, shared};

fn tokens(text: &str) -> TokenStream {
    parse_str(text).expect("the test's text is made of tokens")
}

fn kernel_of(arguments: &str, item: &str) -> String {
    pretty(kernel::expand(tokens(arguments), tokens(item), &root()))
}

#[test]
fn kernel_with_everything() {
    assert_snapshot!(kernel_of(
        "block = [n, WARPS * 32, 1], min_blocks = 2, max_regs = 128, waves_per_eu = 1, cluster = [2, 1, 1]",
        "/// y = a x + y
         #[allow(unused_variables)]
         pub fn axpy<T: Float, const WARPS: usize>(#[comptime] n: usize, a: T, x: Tensor<T, 1>, mut y: TensorMut<T, 1>)
         where T: Copy { let i = thread_id(X); if i < x.extent(0) { y.at(i).store(a * x.at(i).load()); } }",
    ));
}

/// Those of the body stand in front of what the kernel becomes; those of a parameter before what binds it.
#[test]
fn attributes_of_bodies_and_parameters() {
    let item = "fn f(#[allow(unused_variables)] #[comptime] n: usize, #[expect(unused_variables)] x: F32) { #![allow(unused_mut)] }";
    let expanded = kernel_of("block = [1]", item);
    assert!(!expanded.contains("#!["), "{expanded}");
    let compact: String = expanded.split_whitespace().collect();
    assert!(compact.contains("#[allow(unused_variables)]#[allow(unused_variables,reason"), "{expanded}");
    assert!(compact.contains("#[expect(unused_variables)]let(x,):(F32,)=__lw_params;"), "{expanded}");
    let helper = pretty(device::expand(TokenStream::new(), tokens("fn f() { #![allow(unused_mut)] }"), &root()));
    assert!(!helper.contains("#![") && helper.contains("#[allow(unused_mut)]"), "{helper}");
}

#[test]
fn kernel_without_parameters() {
    assert_snapshot!(kernel_of("block = [32]", "fn nothing() {}"));
}

#[test]
fn kernel_that_does_not_parse() {
    let expanded = kernel::expand(tokens("block = [1]"), tokens("fn f(x: I32) { x. }"), &root()).to_string();
    assert!(expanded.contains("compile_error"), "{expanded}");
    assert!(expanded.ends_with("fn f (x : I32) { x . }"), "{expanded}");
}

#[test]
fn device_functions() {
    let expand = |item| pretty(device::expand(TokenStream::new(), tokens(item), &root()));
    assert_snapshot!("device_free", expand("/// Doc\npub fn scale(x: F32, mut y: F32) -> F32 { y += x; y }"));
    assert_snapshot!("device_impl_trait", expand("fn scale(x: F32) -> impl Epilogue { Scale(x) }"));
    assert_snapshot!("device_reference", expand("fn head<'a>(x: &'a mut [F32]) -> &'a mut F32 { &mut x[0] }"));
}

#[test]
fn device_methods_of_traits() {
    let declared = device::expand(TokenStream::new(), tokens("fn apply(&self, x: F32) -> F32;"), &root());
    assert_eq!(declared.to_string(), "# [track_caller] fn apply (& self , x : F32) -> F32 ;");
    let item = "fn twice(&self, x: F32) -> F32 { self.apply(self.apply(x)) }";
    let expanded = device::expand(TokenStream::new(), tokens(item), &root());
    assert_snapshot!(pretty(quote::quote!(trait Epilogue { #expanded })));
}

#[test]
fn derive_carried() {
    let expand = |item| pretty(carried::expand(tokens(item), &root()));
    assert_snapshot!(
        "carried_named",
        expand("struct Acc<T: Float, const N: usize> where T: Copy { max: T, sum: [T; N], rows: usize }")
    );
    assert_snapshot!("carried_tuple", expand("struct Pair(F32, pub I32);"));
    assert_snapshot!("carried_unit", expand("struct Nothing;"));
    assert_snapshot!("carried_enum", expand("enum Either { A(F32), B(I32) }"));
}

#[test]
fn derive_shared() {
    let expand = |item| pretty(shared::expand(tokens(item), &root()));
    assert_snapshot!(
        "shared_named",
        expand(
            "struct Smem<const BN: usize> { k: SharedTile<F16, BN, 64>, #[shared(align = 128)] v: SharedTile<F16, BN, 64>, \
             #[shared(overlap = \"k\", align = BN)] o: SharedTile<F16, 64, 64> }",
        )
    );
    assert_snapshot!(
        "shared_union",
        expand("#[shared(union)] struct Stage { a: SharedArray<F32, 8>, b: SharedArray<I32, 8> }")
    );
    assert_snapshot!(
        "shared_mistakes",
        expand("struct Smem { #[shared(align = 3)] a: A, #[shared(overlap = \"c\")] b: B, #[shared(pack)] c: C }")
    );
    assert_snapshot!("shared_enum", expand("enum Either { A }"));
}
