//! The vocabulary of generated code: the path of `rt`, and the names that user code cannot hold.
//!
//! Generated names are not hygienic. `Location::caller()` of a call is right only if the first token of
//! the call carries the *context* of the user's code, and names must be resolved from there; so every
//! generated name begins with `__lw_` instead.

use std::collections::HashMap;
use std::sync::Mutex;

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Expr;

use crate::analysis::jumps::{JumpKind, LoopId};

/// The crate whose `rt` module generated code is written against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(String);

impl Root {
    /// Looks the crate up in the manifest of the crate that is being compiled: `lacewing`, under
    /// whatever name, else `lacewing-core`.
    pub fn find() -> Self {
        // One process may serve many crates: the server of rust-analyzer does.
        static FOUND: Mutex<Option<HashMap<String, Root>>> = Mutex::new(None);
        let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let Ok(mut found) = FOUND.lock() else {
            return Self::look_up();
        };
        found.get_or_insert_default().entry(manifest).or_insert_with(Self::look_up).clone()
    }

    /// A root of a known name.
    pub fn named(name: &str) -> Self {
        Root(name.to_owned())
    }

    fn look_up() -> Self {
        // Both crates say `extern crate self as ..`, so an absolute path serves inside them as well.
        for package in ["lacewing", "lacewing-core"] {
            match crate_name(package) {
                Ok(FoundCrate::Itself) => return Root(package.replace('-', "_")),
                Ok(FoundCrate::Name(name)) => return Root(name),
                Err(_) => {}
            }
        }
        Root::named("lacewing")
    }

    /// `::lacewing::rt::NAME`, every token at `span`.
    pub(crate) fn rt(&self, span: Span, name: &str) -> TokenStream {
        let (root, name) = (Ident::new(&self.0, span), Ident::new(name, span));
        quote_spanned!(span=> ::#root::rt::#name)
    }

    /// The same at the call site: for bookkeeping that needs no location.
    pub(crate) fn quiet(&self, name: &str) -> TokenStream {
        self.rt(Span::call_site(), name)
    }
}

/// The attribute of each lowered function. What is left of plain Rust's lints (unused variables,
/// unreachable code, `must_use`) then behaves as in plain Rust.
pub(crate) fn lint_attribute() -> TokenStream {
    quote! {
        #[allow(
            unused_mut, unused_assignments, unused_parens, unused_braces, unused_labels, path_statements,
            non_camel_case_types, clippy::all,
            reason = "lowered by Lacewing: the lints would speak of generated code"
        )]
    }
}

/// The `where` clause of `generics` with more predicates.
pub(crate) fn where_clause(generics: &syn::Generics, more: impl IntoIterator<Item = TokenStream>) -> TokenStream {
    let own = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let more = more.into_iter();
    quote!(where #(#own,)* #(#more,)*)
}

/// The variable that says whether a jump has been taken.
pub(crate) fn flag(jump: JumpKind) -> Ident {
    match jump {
        JumpKind::Break(LoopId(id)) => format_ident!("__lw_break{}", id),
        JumpKind::Continue(LoopId(id)) => format_ident!("__lw_continue{}", id),
        JumpKind::Return => format_ident!("__lw_return"),
    }
}

/// The variable that holds the value a jump carries to its target.
pub(crate) fn value_of(jump: JumpKind) -> Ident {
    match jump {
        JumpKind::Break(LoopId(id)) | JumpKind::Continue(LoopId(id)) => {
            format_ident!("__lw_value{}", id)
        }
        JumpKind::Return => format_ident!("__lw_return_value"),
    }
}

/// A block expression of generated statements. It is a real block, so that syn knows where it needs
/// parentheses; its inside is left unparsed, so that a deep nest is not parsed once a level.
pub(crate) fn block(span: Span, statements: TokenStream) -> Expr {
    let brace_token = syn::token::Brace { span: delimiters(span) };
    Expr::Block(syn::ExprBlock {
        attrs: Vec::new(),
        label: None,
        block: syn::Block { brace_token, stmts: vec![syn::Stmt::Expr(Expr::Verbatim(statements), None)] },
    })
}

/// A parenthesised generated expression.
pub(crate) fn parenthesised(span: Span, expression: TokenStream) -> Expr {
    let paren_token = syn::token::Paren { span: delimiters(span) };
    Expr::Paren(syn::ExprParen { attrs: Vec::new(), paren_token, expr: Box::new(Expr::Verbatim(expression)) })
}

/// `&expression`, with the parentheses that precedence asks for.
pub(crate) fn reference(span: Span, expression: Expr) -> Expr {
    Expr::Reference(syn::ExprReference {
        attrs: Vec::new(),
        and_token: syn::Token![&](span),
        mutability: None,
        expr: Box::new(expression),
    })
}

fn delimiters(span: Span) -> proc_macro2::extra::DelimSpan {
    let mut group = proc_macro2::Group::new(proc_macro2::Delimiter::Brace, TokenStream::new());
    group.set_span(span);
    group.delim_span()
}
