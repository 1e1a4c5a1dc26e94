//! Errors of the macro itself. They are collected: one mistake never hides another.

use proc_macro2::{Span, TokenStream};
use syn::Error;

/// Everything refused so far, each at the user's span.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Records `message` at `span`.
    pub fn push(&mut self, span: Span, message: impl std::fmt::Display) {
        self.absorb(Error::new(span, message));
    }

    /// Records an error that a parser reported.
    pub fn absorb(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// `compile_error!` items, or nothing.
    pub fn into_tokens(self) -> TokenStream {
        self.0.map(Error::into_compile_error).unwrap_or_default()
    }
}

/// What is emitted for an item that cannot be understood: the error, and the item as it was written, so
/// that an editor goes on helping.
pub(crate) fn unparsed(error: Error, item: TokenStream) -> TokenStream {
    let mut tokens = error.into_compile_error();
    tokens.extend(item);
    tokens
}
