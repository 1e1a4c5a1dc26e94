//! `#[derive(Shared)]`: the shared memory of a block, as a struct of arrays and tiles.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Expr, ExprLit, Field, Lit, LitStr, Token, parse2};

use crate::errors::Errors;
use crate::generated::Root;

/// What `#[shared(..)]` says of a member.
#[derive(Default)]
struct Placement {
    align: Option<Expr>,
    /// The member whose memory it shares.
    overlap: Option<LitStr>,
}

/// Expands `#[derive(Shared)]`: members are laid out in order, each with its name for reports.
pub fn expand(item: TokenStream, root: &Root) -> TokenStream {
    let input = match parse2::<DeriveInput>(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let fields: Vec<&Field> = match &input.data {
        Data::Struct(data) => data.fields.iter().collect(),
        Data::Enum(data) => return refused(data.enum_token.span),
        Data::Union(data) => return refused(data.union_token.span),
    };
    let union = is_union(&input.attrs, &mut errors);
    let (shared, shared_field, alloc) = (root.quiet("Shared"), root.quiet("SharedField"), root.quiet("SharedAlloc"));
    let structure = &input.ident;
    let mut known: Vec<String> = Vec::new();
    let (mut statements, mut members, mut variables) = (Vec::new(), Vec::new(), Vec::new());
    for (position, field) in fields.into_iter().enumerate() {
        let (member, name) = match &field.ident {
            Some(ident) => (quote!(#ident), ident.to_string()),
            None => {
                let index = syn::Index::from(position);
                (quote!(#index), position.to_string())
            }
        };
        let placement = Placement::of(&field.attrs, &mut errors);
        let over = match &placement.overlap {
            Some(other) if !known.contains(&other.value()) => {
                let other_name = other.value();
                let text =
                    format!("`{structure}` has no member `{other_name}` before this one: overlap with an earlier one");
                errors.push(other.span(), text);
                None
            }
            Some(other) => Some(other.value()),
            None => known.first().filter(|_| union).cloned(),
        };
        let overlap = over.map(|other| {
            let other = format!("{structure}.{other}");
            quote!(__lw_alloc.overlap_with(#other);)
        });
        let align = match &placement.align {
            Some(align) => quote!(::core::option::Option::Some(#align)),
            None => quote!(::core::option::Option::None),
        };
        let (ty, variable, full) = (&field.ty, format_ident!("__lw_member{}", position), format!("{structure}.{name}"));
        let field_trait = quote_spanned!(ty.span()=> <#ty as #shared_field>);
        statements.push(quote!(#overlap let #variable = #field_trait::alloc(__lw_alloc, #full, #align);));
        members.push(member);
        variables.push(variable);
        known.push(name);
    }
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let errors = errors.into_tokens();
    quote! {
        #errors
        #[automatically_derived]
        impl #impl_generics #shared for #structure #type_generics #where_clause {
            fn alloc(__lw_alloc: &mut #alloc) -> Self {
                #(#statements)*
                Self { #(#members: #variables),* }
            }
        }
    }
}

fn refused(span: Span) -> TokenStream {
    let text = "`Shared` is derived for structs; members that share memory are marked \
                `#[shared(overlap = \"other\")]`";
    syn::Error::new(span, text).into_compile_error()
}

impl Placement {
    fn of(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut placement = Placement::default();
        for attribute in shared_attributes(attributes) {
            let parsed = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("align") {
                    meta.input.parse::<Token![=]>()?;
                    let align: Expr = meta.input.parse()?;
                    check_alignment(&align)?;
                    placement.align = Some(align);
                } else if meta.path.is_ident("overlap") {
                    meta.input.parse::<Token![=]>()?;
                    placement.overlap = Some(meta.input.parse()?);
                } else {
                    return Err(meta.error("unknown argument: a member takes `align = BYTES`, `overlap = \"other\"`"));
                }
                Ok(())
            });
            if let Err(error) = parsed {
                errors.absorb(error);
            }
        }
        placement
    }
}

/// `#[shared(union)]` on the struct: all members begin at one place.
fn is_union(attributes: &[Attribute], errors: &mut Errors) -> bool {
    let mut union = false;
    for attribute in shared_attributes(attributes) {
        let parsed = attribute.parse_nested_meta(|meta| {
            union |= meta.path.is_ident("union");
            if union { Ok(()) } else { Err(meta.error("unknown argument: the struct takes `union`")) }
        });
        if let Err(error) = parsed {
            errors.absorb(error);
        }
    }
    union
}

fn shared_attributes(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("shared"))
}

fn check_alignment(align: &Expr) -> syn::Result<()> {
    let Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) = align else {
        return Ok(());
    };
    let bytes: usize = literal.base10_parse()?;
    if bytes.is_power_of_two() {
        return Ok(());
    }
    let span: Span = literal.span();
    Err(syn::Error::new(span, "an alignment is a power of two, in bytes"))
}
