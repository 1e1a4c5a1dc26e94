//! The arguments of `#[kernel(..)]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, Ident, Token};

use crate::errors::Errors;
use crate::generated::Root;

const KNOWN: &str = "`block`, `min_blocks`, `max_regs`, `waves_per_eu`, `cluster`";

/// What a kernel asks of the hardware; each is an expression that may name comptime parameters.
#[derive(Default)]
pub(crate) struct KernelArguments {
    block: Option<Expr>,
    min_blocks: Option<Expr>,
    max_regs: Option<Expr>,
    waves_per_eu: Option<Expr>,
    cluster: Option<Expr>,
}

struct Argument {
    name: Ident,
    value: Expr,
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Argument { name, value: input.parse()? })
    }
}

impl KernelArguments {
    /// Parses the arguments. `kernel` is where a missing one is reported.
    pub fn parse(tokens: TokenStream, kernel: Span, errors: &mut Errors) -> Self {
        let mut arguments = KernelArguments::default();
        // At the arguments; without any, at the name of the kernel.
        let at = if tokens.is_empty() { kernel } else { tokens.span() };
        let list = match Punctuated::<Argument, Token![,]>::parse_terminated.parse2(tokens) {
            Ok(list) => list,
            Err(error) => {
                errors.absorb(error);
                return arguments;
            }
        };
        for Argument { name, value } in list {
            let place = match name.to_string().as_str() {
                "block" => &mut arguments.block,
                "min_blocks" => &mut arguments.min_blocks,
                "max_regs" => &mut arguments.max_regs,
                "waves_per_eu" => &mut arguments.waves_per_eu,
                "cluster" => &mut arguments.cluster,
                other => {
                    errors.push(name.span(), format_args!("unknown argument `{other}`: a kernel takes {KNOWN}"));
                    continue;
                }
            };
            if place.is_some() {
                errors.push(name.span(), format_args!("`{name}` is given twice"));
            }
            *place = Some(value);
        }
        if arguments.block.is_none() {
            errors.push(
                at,
                "a kernel needs its block size: `#[kernel(block = [x, y, z])]`, the number of threads in each dimension",
            );
        }
        arguments
    }

    /// The value of `rt::KernelAttributes`.
    pub fn to_tokens(&self, root: &Root) -> TokenStream {
        let attributes = root.quiet("KernelAttributes");
        let block = self.block.as_ref().map_or_else(|| quote!([1, 1, 1]), |value| extent(root, value));
        let cluster = optional(self.cluster.as_ref().map(|value| extent(root, value)));
        let count = |value: &Option<Expr>| optional(value.as_ref().map(|value| count(root, value)));
        let (min_blocks, max_regs) = (count(&self.min_blocks), count(&self.max_regs));
        let waves_per_eu = count(&self.waves_per_eu);
        quote! {
            #attributes {
                block: #block,
                min_blocks: #min_blocks,
                max_regs: #max_regs,
                waves_per_eu: #waves_per_eu,
                cluster: #cluster,
            }
        }
    }
}

fn optional(value: Option<TokenStream>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

/// `[x, y, z]`; what is left out at the end is 1.
fn extent(root: &Root, value: &Expr) -> TokenStream {
    let Expr::Array(array) = value else {
        return quote!(#value);
    };
    let mut extents: Vec<TokenStream> = array.elems.iter().map(|value| count(root, value)).collect();
    while extents.len() < 3 {
        extents.push(quote!(1));
    }
    quote!([#(#extents),*])
}

/// A count of any host integer type.
fn count(root: &Root, value: &Expr) -> TokenStream {
    let span = value.span();
    let count = root.rt(span, "count");
    quote_spanned!(span=> #count(#value))
}
