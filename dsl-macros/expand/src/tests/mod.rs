//! Tests of the expansion: the text that each construct becomes, the errors at their spans, and random
//! bodies that must never break it.

mod constructs;
mod errors;
mod items;
mod random;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ImplItemFn, parse_str};

use crate::Root;
use crate::lower::lower_body;

fn root() -> Root {
    Root::named("lacewing")
}

/// Lays out tokens that are items.
fn pretty(tokens: TokenStream) -> String {
    match syn::parse2(tokens.clone()) {
        Ok(file) => prettyplease::unparse(&file),
        Err(error) => panic!("the expansion does not parse: {error}\n{tokens}"),
    }
}

/// The lowered body of a function, and the errors found in it.
fn lowered(function: &str) -> String {
    let function: ImplItemFn = parse_str(function).expect("the test's function parses");
    let lowered = lower_body(&root(), &function.sig.inputs, &function.sig.output, function.block);
    let (body, errors) = (lowered.body, lowered.errors.into_tokens());
    pretty(quote!(fn body() { #errors #body }))
}
