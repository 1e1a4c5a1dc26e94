//! `#[derive(Carried)]`: a struct whose values run-time control flow may change.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Generics, Member, Type, parse2};

use crate::errors::Errors;
use crate::generated::{Root, where_clause};

/// Expands `#[derive(Carried)]`: implementations of `State`, `Carried` and, where every field has it,
/// `Poison`.
pub fn expand(item: TokenStream, root: &Root) -> TokenStream {
    let input = match parse2::<DeriveInput>(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let (span, what) = match &input.data {
        Data::Struct(data) => return implementations(&input, &data.fields, root),
        Data::Enum(data) => (data.enum_token.span, "an enum"),
        Data::Union(data) => (data.union_token.span, "a union"),
    };
    let mut errors = Errors::default();
    errors.push(
        span,
        format_args!(
            "`Carried` is derived for structs: which variant {what} has is decided when tracing, so run-time control \
             flow cannot change it; use a struct with a `Bool` beside the values, or decide by `match` at compile time"
        ),
    );
    errors.into_tokens()
}

fn implementations(input: &DeriveInput, fields: &syn::Fields, root: &Root) -> TokenStream {
    let name = &input.ident;
    let members: Vec<Member> = fields.members().collect();
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let [state, carried, poison, visitor] = ["State", "Carried", "Poison", "Visitor"].map(|name| root.quiet(name));
    // At the types: an error about a field points there.
    let visits = members.iter().zip(&types).map(|(member, ty)| {
        let visit = root.rt(ty.span(), "State");
        quote_spanned!(ty.span()=> #visit::visit(&mut self.#member, __lw_visitor);)
    });
    let poisons = members.iter().zip(&types).map(|(member, ty)| {
        let poison = root.rt(ty.span(), "Poison");
        quote_spanned!(ty.span()=> #member: <#ty as #poison>::poison())
    });
    let (impl_generics, type_generics, _) = input.generics.split_for_impl();
    let state_where = for_each_parameter(&input.generics, &state);
    let carried_where = for_each_parameter(&input.generics, &carried);
    let poison_where = poison_bounds(&input.generics, &types, &carried, &poison);
    quote! {
        #[automatically_derived]
        impl #impl_generics #state for #name #type_generics #state_where {
            fn visit(&mut self, __lw_visitor: &mut dyn #visitor) {
                #(#visits)*
            }
        }
        #[automatically_derived]
        impl #impl_generics #carried for #name #type_generics #carried_where {}
        #[automatically_derived]
        impl #impl_generics #poison for #name #type_generics #poison_where {
            fn poison() -> Self {
                Self { #(#poisons),* }
            }
        }
    }
}

/// The `where` clause with the bound on each type parameter.
fn for_each_parameter(generics: &Generics, bound: &TokenStream) -> TokenStream {
    where_clause(generics, generics.type_params().map(|param| &param.ident).map(|name| quote!(#name: #bound)))
}

/// `Poison` holds where it holds for each field. A struct with a host field is carried but has no
/// poison, which is no error: the quantifier keeps rustc from deciding the bound at once.
fn poison_bounds(generics: &Generics, types: &[&Type], carried: &TokenStream, poison: &TokenStream) -> TokenStream {
    let parameters = generics.type_params().map(|param| &param.ident).map(|name| quote!(#name: #carried));
    let fields = types.iter().map(|ty| quote!(for<'__lw> #ty: #poison));
    where_clause(generics, parameters.chain(fields))
}
