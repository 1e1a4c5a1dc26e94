//! `#[device]`: a helper, inlined where it is called.
//!
//! The function takes its caller's location and keeps it as a frame while its body is traced; the body
//! stands in a closure, which does not inherit `#[track_caller]`, so that its operations are located in
//! the body itself.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::{ImplItemFn, ReturnType, TraitItemFn, Type, TypeReference, parse2};

use crate::errors::{Errors, unparsed};
use crate::generated::{Root, lint_attribute};
use crate::kernel::outer;
use crate::lower::{Lowered, lower_body};

/// Expands `#[device]` on a function, a method, or a method of a trait.
pub fn expand(arguments: TokenStream, item: TokenStream, root: &Root) -> TokenStream {
    let mut errors = Errors::default();
    if let Some(argument) = arguments.into_iter().next() {
        errors.push(argument.span(), "`#[device]` takes no arguments");
    }
    // A method of a trait may lack its body; every other function is one of an `impl` as well.
    let function = match parse2::<ImplItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => match parse2::<TraitItemFn>(item.clone()) {
            Ok(method) if method.default.is_none() => {
                let errors = errors.into_tokens();
                return quote!(#errors #[track_caller] #method);
            }
            _ => return unparsed(error, item),
        },
    };
    refuse_qualifiers(&function.sig, "`#[device]` function", &mut errors);
    let Lowered { body, errors: found } = lower_body(root, &function.sig.inputs, &function.sig.output, function.block);
    let (errors, found) = (errors.into_tokens(), found.into_tokens());
    let attributes = function.attrs.into_iter().map(outer);
    let (visibility, modifiers) = (&function.vis, &function.modifiers.defaultness);
    let (mut signature, lints) = (function.sig, lint_attribute());
    signature.asyncness = None;
    signature.constness = None;
    let call = call(&signature.output, body);
    let [frame, slot_ref, slot_none] = ["frame", "SlotRef", "SlotNone"].map(|name| root.quiet(name));
    quote! {
        #(#attributes)*
        #lints
        #[track_caller]
        #visibility #modifiers #signature {
            #errors
            #found
            #[allow(unused_imports, reason = "only some bodies reborrow a slot")]
            use #slot_ref as _;
            #[allow(unused_imports, reason = "only some bodies reborrow a slot")]
            use #slot_none as _;
            let __lw_frame = #frame(::core::panic::Location::caller());
            #call
        }
    }
}

/// The body as a closure, called at once.
fn call(output: &ReturnType, body: TokenStream) -> TokenStream {
    match output {
        ReturnType::Default => quote!((move || -> () { #body })()),
        ReturnType::Type(_, ty) if holds_impl_trait(ty) => quote!((move || #body)()),
        // A closure may hand out a reference to what it captured only if it is known to be called once.
        ReturnType::Type(_, ty) if holds_reference(ty) => {
            quote!(::core::option::Option::None.unwrap_or_else(move || -> #ty { #body }))
        }
        ReturnType::Type(_, ty) => quote!((move || -> #ty { #body })()),
    }
}

/// Refuses what a traced function cannot be.
pub(crate) fn refuse_qualifiers(signature: &syn::Signature, what: &str, errors: &mut Errors) {
    if let Some(token) = &signature.asyncness {
        errors.push(
            token.span,
            format_args!("a {what} cannot be `async`: it runs on the device; use asynchronous copies and tokens"),
        );
    }
    if let Some(token) = &signature.constness {
        errors.push(token.span, format_args!("a {what} cannot be `const`: it is traced, not evaluated"));
    }
    if let Some(abi) = &signature.abi {
        errors.push(abi.extern_token.span, format_args!("a {what} has no ABI of its own: it is inlined"));
    }
    if let Some(variadic) = &signature.variadic {
        errors.push(variadic.dots.spans[0], format_args!("a {what} cannot be variadic"));
    }
}

fn holds_impl_trait(ty: &Type) -> bool {
    ty.to_token_stream().into_iter().any(|token| token.to_string() == "impl")
}

fn holds_reference(ty: &Type) -> bool {
    struct Search(bool);
    impl<'a> Visit<'a> for Search {
        fn visit_type_reference(&mut self, reference: &'a TypeReference) {
            self.0 = true;
            visit::visit_type_reference(self, reference);
        }
    }
    let mut search = Search(false);
    search.visit_type(ty);
    search.0
}
