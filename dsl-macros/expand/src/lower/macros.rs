//! Macro calls. Arguments that are expressions are lowered; the bodies of user macros never are.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, Macro, Token};

use super::Lower;
use crate::analysis::effects::{How, idents_in};
use crate::analysis::marks::{is_host_macro, is_pure_macro};
use crate::analysis::scopes::Access;

impl Lower<'_> {
    pub(super) fn macro_call(&mut self, mac: &mut Macro) {
        self.mentioned_idents(mac);
        self.macro_arguments(mac);
    }

    /// A macro call as a statement may declare variables.
    pub(super) fn statement_macro(&mut self, mac: &mut Macro) {
        let mentioned = self.mentioned_idents(mac);
        self.macro_arguments(mac);
        for ident in mentioned {
            let name = ident.to_string();
            let variable = name.starts_with(|first: char| first.is_lowercase() || first == '_');
            if variable && self.scopes.find(&name).is_none() {
                self.scopes.bind(name, Access::Hidden, true);
            }
        }
    }

    /// Whatever is named in the tokens of a macro may be changed by it.
    fn mentioned_idents(&mut self, mac: &Macro) -> Vec<Ident> {
        let mut idents = Vec::new();
        if !macro_name(mac).is_some_and(|name| is_pure_macro(&name)) {
            idents_in(mac.tokens.clone(), &mut idents);
            for ident in &idents {
                self.record(ident, How::Maybe);
            }
        }
        idents
    }

    fn macro_arguments(&mut self, mac: &mut Macro) {
        let name = macro_name(mac).unwrap_or_default();
        let Ok(mut arguments) = Arguments::parse.parse2(mac.tokens.clone()) else {
            return;
        };
        let (before, host) = (self.rewrites, self.host);
        self.host |= is_host_macro(&name);
        let written = mac.tokens.to_string();
        match &mut arguments {
            Arguments::List(list) => list.iter_mut().for_each(|argument| self.operand(argument)),
            Arguments::Repeat(value, count) => {
                self.operand(value);
                self.operand(count);
            }
        }
        self.host = host;
        // What needed no lowering stays as it was: a macro may look at its tokens.
        if self.rewrites != before {
            arguments.tell(&name, &written);
            mac.tokens = quote!(#arguments);
        }
    }
}

fn macro_name(mac: &Macro) -> Option<String> {
    mac.path.segments.last().map(|segment| segment.ident.to_string())
}

/// `a, b, c`, or `a; n` as `vec!` takes it.
enum Arguments {
    List(Punctuated<Expr, Token![,]>),
    Repeat(Box<Expr>, Box<Expr>),
}

impl Arguments {
    /// An assertion without a text of its own speaks of what was written, not of what became of it.
    fn tell(&mut self, name: &str, written: &str) {
        let Arguments::List(list) = self else { return };
        if list.len() != 1 {
            return;
        }
        let written = written.trim_end_matches([',', ' ']);
        let text: &[String] = match name {
            "device_assert" => &[format!("assertion failed: {written}")],
            // The text of this one is a format.
            "static_assert" => &["{}".to_owned(), format!("static assertion failed: {written}")],
            _ => return,
        };
        list.extend(text.iter().map(|text| -> Expr { syn::parse_quote!(#text) }));
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let mut list = Punctuated::new();
        while !input.is_empty() {
            let argument = input.parse()?;
            if list.is_empty() && input.peek(Token![;]) {
                input.parse::<Token![;]>()?;
                return Ok(Arguments::Repeat(Box::new(argument), Box::new(input.parse()?)));
            }
            list.push_value(argument);
            if !input.is_empty() {
                list.push_punct(input.parse()?);
            }
        }
        Ok(Arguments::List(list))
    }
}

impl ToTokens for Arguments {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Arguments::List(list) => list.to_tokens(tokens),
            Arguments::Repeat(value, count) => tokens.extend(quote!(#value; #count)),
        }
    }
}
