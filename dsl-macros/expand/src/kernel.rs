//! `#[kernel]`: a function becomes a type that describes the kernel and can trace it.
//!
//! `fn axpy<T: Float>(#[comptime] n: usize, a: T, x: Tensor<T, 1>)` becomes `struct axpy<T>` with the
//! field `n`, `axpy::<T>::new(n)`, and an implementation of `rt::Kernel`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    AttrStyle, Attribute, Block, FnArg, GenericParam, ItemFn, Lifetime, ParenthesizedGenericArguments, Pat, PatType,
    ReturnType, Safety, Signature, Type, TypeFnPtr, TypeReference, Visibility, parse2,
};

use crate::analysis::scopes::unannotated;
use crate::attributes::KernelArguments;
use crate::device::refuse_qualifiers;
use crate::errors::{Errors, unparsed};
use crate::generated::{self, Root, lint_attribute};
use crate::lower::{Lowered, lower_body};

/// Expands `#[kernel(..)]` on a free function.
pub fn expand(arguments: TokenStream, item: TokenStream, root: &Root) -> TokenStream {
    let function = match parse2::<ItemFn>(item.clone()) {
        Ok(function) => function,
        Err(error) => return unparsed(error, item),
    };
    let mut errors = Errors::default();
    let arguments = KernelArguments::parse(arguments, function.sig.ident.span(), &mut errors);
    if let Some(span) = mention_of_self(&function) {
        errors.push(
            span,
            "a kernel cannot be a method: make it a free function; helpers in `impl` blocks are `#[device]`",
        );
        // Whatever it became would not stand in an `impl` block: leave the method as it was written.
        let errors = errors.into_tokens();
        return method_with_error(function, errors);
    }
    refuse_signature(&function.sig, &mut errors);
    let (kernel, block) = Kernel::new(root, arguments, function, &mut errors);
    kernel.expand(block, errors)
}

/// A parameter of a kernel.
struct Parameter {
    name: Ident,
    pattern: Pat,
    ty: Type,
    /// `#[allow(..)]` and the like.
    lints: Vec<Attribute>,
}

/// The parameters, by when their values are known.
#[derive(Default)]
struct Parameters {
    comptime: Vec<Parameter>,
    device: Vec<Parameter>,
}

impl Parameters {
    fn of<'a>(inputs: impl IntoIterator<Item = &'a FnArg>, errors: &mut Errors) -> Self {
        let mut parameters = Parameters::default();
        for (position, input) in inputs.into_iter().enumerate() {
            let FnArg::Typed(typed) = input else { continue };
            let (mut is_comptime, mut lints) = (false, Vec::new());
            for attribute in &typed.attrs {
                if attribute.path().is_ident("comptime") {
                    is_comptime = true;
                } else if attribute.path().is_ident("doc") {
                    errors.push(
                        attribute.pound_token.spans[0],
                        "a parameter has no documentation of its own, as in all of Rust: say it in that of the kernel",
                    );
                } else if is_lint(attribute) {
                    lints.push(attribute.clone());
                } else {
                    errors.push(
                        attribute.pound_token.spans[0],
                        "unknown attribute of a kernel parameter: there is `#[comptime]`",
                    );
                }
            }
            let name = match unannotated(&typed.pat) {
                Pat::Ident(ident) => ident.ident.clone(),
                _ if is_comptime => {
                    errors.push(typed.colon_token.spans[0], "a comptime parameter needs a name");
                    continue;
                }
                _ => format_ident!("arg{}", position),
            };
            let (pattern, mut ty) = ((*typed.pat).clone(), (*typed.ty).clone());
            StaticReferences.visit_type_mut(&mut ty);
            let list = if is_comptime { &mut parameters.comptime } else { &mut parameters.device };
            list.push(Parameter { name, pattern, ty, lints });
        }
        parameters
    }
}

/// A kernel, taken apart.
struct Kernel<'a> {
    root: &'a Root,
    arguments: KernelArguments,
    comptime: Vec<Parameter>,
    device: Vec<Parameter>,
    signature: Signature,
    visibility: Visibility,
    /// `#[cfg(..)]`: where the kernel is left out, so is all that it became.
    configuration: Vec<Attribute>,
    lints: Vec<Attribute>,
    documentation: Vec<Attribute>,
}

impl<'a> Kernel<'a> {
    /// The kernel without its body.
    fn new(root: &'a Root, arguments: KernelArguments, function: ItemFn, errors: &mut Errors) -> (Self, Block) {
        let Parameters { comptime, device } = Parameters::of(&function.sig.inputs, errors);
        let attributes = function.attrs.into_iter().map(outer);
        let (configuration, other) = attributes.partition(|attribute| attribute.path().is_ident("cfg"));
        let other: Vec<Attribute> = other;
        let (lints, documentation) = other.into_iter().partition(is_lint);
        let (signature, visibility) = (function.sig, function.vis);
        let kernel =
            Kernel { root, arguments, comptime, device, signature, visibility, configuration, lints, documentation };
        (kernel, *function.block)
    }

    fn expand(&self, block: Block, errors: Errors) -> TokenStream {
        let Lowered { body, errors: found } =
            lower_body(self.root, &self.signature.inputs, &ReturnType::Default, block);
        let (errors, found) = (errors.into_tokens(), found.into_tokens());
        let (structure, implementation) = (self.structure(), self.implementation(body));
        quote!(#errors #found #structure #implementation)
    }

    /// The type that describes the kernel, and how it is made.
    fn structure(&self) -> TokenStream {
        let Kernel { signature, visibility, configuration, lints, documentation, .. } = self;
        let (name, generics) = (&signature.ident, &signature.generics);
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        let (fields, types) = (self.fields(), self.field_types());
        let type_params = generics.type_params().map(|param| &param.ident);
        let phantom = quote!(::core::marker::PhantomData);
        let new_doc = format!(" The kernel `{name}` with its compile-time parameters.");
        let field_texts = fields.iter().map(|field| field.to_string());
        let name_text = self.name();
        let [clone_where, debug_where] = ["Clone", "Debug"].map(|name| {
            let bounds = types.iter().map(|ty| bound(ty, &core_trait(ty.span(), name)));
            generated::where_clause(generics, bounds)
        });
        quote! {
            #(#configuration)*
            #(#documentation)*
            #[allow(non_camel_case_types, reason = "a kernel is named like the function that it is written as")]
            #(#lints)*
            #visibility struct #name #generics #where_clause {
                #(#fields: #types,)*
                __lw_types: #phantom<fn() -> (#(#type_params,)*)>,
            }

            #(#configuration)*
            impl #impl_generics #name #type_generics #where_clause {
                #[doc = #new_doc]
                #[must_use]
                #[allow(clippy::too_many_arguments, reason = "as many as the kernel has")]
                #visibility fn new(#(#fields: #types),*) -> Self {
                    Self { #(#fields,)* __lw_types: #phantom }
                }
            }

            #(#configuration)*
            impl #impl_generics ::core::clone::Clone for #name #type_generics #clone_where {
                fn clone(&self) -> Self {
                    Self { #(#fields: ::core::clone::Clone::clone(&self.#fields),)* __lw_types: #phantom }
                }
            }

            #(#configuration)*
            impl #impl_generics ::core::fmt::Debug for #name #type_generics #debug_where {
                fn fmt(&self, __lw_formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    __lw_formatter.debug_struct(#name_text) #(.field(#field_texts, &self.#fields))* .finish()
                }
            }
        }
    }

    /// What a trace asks of the kernel.
    fn implementation(&self, body: TokenStream) -> TokenStream {
        let Kernel { root, signature, configuration, lints, .. } = self;
        let (name, generics) = (&signature.ident, &signature.generics);
        let (impl_generics, type_generics, _) = generics.split_for_impl();
        let [kernel, kernel_attributes, slot_ref, slot_none] =
            ["Kernel", "KernelAttributes", "SlotRef", "SlotNone"].map(|name| root.quiet(name));
        let comptime = self.field_types().into_iter().flat_map(|ty| {
            let traits = ["Clone", "Debug"].map(|name| core_trait(ty.span(), name));
            traits.map(|wanted| bound(ty, &wanted))
        });
        let device = self.device.iter().map(|Parameter { ty, .. }| bound(ty, &root.rt(ty.span(), "KernelParam")));
        // A cached kernel is found by its type.
        let known = generics.type_params().map(|param| {
            let name = &param.ident;
            quote!(#name: 'static)
        });
        let where_clause = generated::where_clause(generics, comptime.chain(device).chain(known));
        let name_text = self.name();
        let comptime_values = comptime_values(&self.comptime, generics);
        let (types, patterns): (Vec<_>, Vec<_>) =
            self.device.iter().map(|parameter| (&parameter.ty, &parameter.pattern)).unzip();
        let parameter_lints = self.device.iter().flat_map(|parameter| &parameter.lints);
        let param_names = self.device.iter().map(|parameter| parameter.name.to_string());
        let attributes = self.arguments.to_tokens(root);
        let bindings = self.comptime.iter().map(|Parameter { name, pattern, ty, lints }| {
            quote! {
                #(#lints)*
                #[allow(unused_variables, reason = "it may serve the attributes alone")]
                let #pattern: #ty = ::core::clone::Clone::clone(&self.#name);
            }
        });
        let bindings = quote!(#(#bindings)*);
        // The location of this call is that of the kernel.
        let caller = quote_spanned!(signature.fn_token.span=> ::core::panic::Location::caller());
        let lint_attribute = lint_attribute();
        quote! {
            #(#configuration)*
            impl #impl_generics #kernel for #name #type_generics #where_clause {
                type Params = (#(#types,)*);

                fn name(&self) -> &'static str {
                    #name_text
                }

                fn location(&self) -> &'static ::core::panic::Location<'static> {
                    #caller
                }

                fn comptime(&self) -> ::std::vec::Vec<(&'static str, ::std::string::String)> {
                    ::std::vec![#(#comptime_values),*]
                }

                fn param_names() -> &'static [&'static str] {
                    &[#(#param_names),*]
                }

                fn attributes(&self) -> #kernel_attributes {
                    #bindings
                    #attributes
                }

                #(#lints)*
                #lint_attribute
                fn trace(&self, __lw_params: Self::Params) {
                    #[allow(unused_imports, reason = "only some bodies reborrow a slot")]
                    use #slot_ref as _;
                    #[allow(unused_imports, reason = "only some bodies reborrow a slot")]
                    use #slot_none as _;
                    #bindings
                    #(#parameter_lints)*
                    let (#(#patterns,)*): (#(#types,)*) = __lw_params;
                    #body
                }
            }
        }
    }

    fn fields(&self) -> Vec<&Ident> {
        self.comptime.iter().map(|parameter| &parameter.name).collect()
    }

    fn field_types(&self) -> Vec<&Type> {
        self.comptime.iter().map(|parameter| &parameter.ty).collect()
    }

    fn name(&self) -> String {
        let name = self.signature.ident.to_string();
        name.strip_prefix("r#").map_or(name.clone(), str::to_owned)
    }
}

/// `ty: wanted`, at the span of the type: rustc points there when it does not hold.
fn bound(ty: &Type, wanted: &TokenStream) -> TokenStream {
    quote_spanned!(ty.span()=> #ty: #wanted)
}

fn core_trait(span: Span, name: &str) -> TokenStream {
    let module = Ident::new(if name == "Clone" { "clone" } else { "fmt" }, span);
    let name = Ident::new(name, span);
    quote_spanned!(span=> ::core::#module::#name)
}

/// The name and the text of each compile-time parameter, of each generic type and each const generic.
fn comptime_values(comptime: &[Parameter], generics: &syn::Generics) -> Vec<TokenStream> {
    let mut values = Vec::new();
    for Parameter { name, .. } in comptime {
        let text = name.to_string();
        values.push(quote!((#text, ::std::format!("{:?}", self.#name))));
    }
    for param in &generics.params {
        match param {
            GenericParam::Lifetime(_) => {}
            GenericParam::Type(param) => {
                let (name, text) = (&param.ident, param.ident.to_string());
                let value = quote!(::std::string::String::from(::core::any::type_name::<#name>()));
                values.push(quote!((#text, #value)));
            }
            GenericParam::Const(param) => {
                let (name, text) = (&param.ident, param.ident.to_string());
                values.push(quote!((#text, ::std::format!("{:?}", #name))));
            }
        }
    }
    values
}

fn refuse_signature(signature: &Signature, errors: &mut Errors) {
    refuse_qualifiers(signature, "kernel", errors);
    if let ReturnType::Type(arrow, ty) = &signature.output
        && !matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty())
    {
        errors.push(arrow.spans[0], "a kernel returns nothing: store its results in a `TensorMut` parameter");
    }
    for default in signature.generics.params.iter().filter_map(default_of) {
        errors.push(default, "a generic parameter of a function has no default");
    }
    for lifetime in signature.generics.lifetimes() {
        errors.push(
            lifetime.lifetime.span(),
            "a kernel has no lifetime parameters: tensors are passed by value, and comptime parameters are owned",
        );
    }
    if let Safety::Unsafe(token) = &signature.safety {
        errors.push(token.span, "a kernel cannot be `unsafe`: its accesses are checked, and a launch is safe");
    }
    for input in &signature.inputs {
        let FnArg::Typed(typed) = input else { continue };
        match &*typed.ty {
            Type::ImplTrait(ty) => errors.push(
                ty.impl_token.span,
                "a kernel's parameter types are named when it is launched: make this a generic parameter",
            ),
            Type::Reference(ty) if ty.lifetime.is_none() && is_comptime(typed) => errors.push(
                ty.and_token.span,
                "a comptime parameter is kept by the kernel: take an owned value, or a `&'static` reference",
            ),
            _ => {}
        }
    }
}

fn is_comptime(parameter: &PatType) -> bool {
    parameter.attrs.iter().any(|attribute| attribute.path().is_ident("comptime"))
}

/// Gives references without a lifetime the only one that a kernel can hold: whether it may hold them is then told by the
/// type's traits, and not by a lifetime that is missing in generated code.
struct StaticReferences;

impl VisitMut for StaticReferences {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        let span = reference.and_token.span;
        reference.lifetime.get_or_insert_with(|| Lifetime::new("'static", span));
        visit_mut::visit_type_reference_mut(self, reference);
    }
    // Those of a function's type are its own.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}
    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {}
}

/// Where a kernel speaks of the type that it would be a method of.
fn mention_of_self(function: &ItemFn) -> Option<Span> {
    struct Search(Option<Span>);
    impl<'a> Visit<'a> for Search {
        fn visit_ident(&mut self, ident: &'a Ident) {
            if ident == "Self" && self.0.is_none() {
                self.0 = Some(ident.span());
            }
        }
        fn visit_receiver(&mut self, receiver: &'a syn::Receiver) {
            self.0 = Some(receiver.self_token.span);
        }
        fn visit_item(&mut self, _: &'a syn::Item) {}
    }
    let mut search = Search(None);
    visit::visit_signature(&mut search, &function.sig);
    visit::visit_block(&mut search, &function.block);
    search.0
}

fn method_with_error(mut function: ItemFn, errors: TokenStream) -> TokenStream {
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.clear();
        }
    }
    let (attributes, visibility, signature) = (&function.attrs, &function.vis, &function.sig);
    // Without its body, which speaks a language that rustc would misread.
    quote! {
        #(#attributes)*
        #[allow(unused_variables, reason = "the kernel was refused")]
        #visibility #signature { #errors ::core::unreachable!() }
    }
}

fn default_of(param: &GenericParam) -> Option<Span> {
    match param {
        GenericParam::Type(param) => param.default.as_ref().map(|(token, _)| token.spans[0]),
        GenericParam::Const(param) => param.default.as_ref().map(|(token, _)| token.spans[0]),
        GenericParam::Lifetime(_) => None,
    }
}

/// An attribute of the body (`#![allow(..)]`) as one of the function, which it stands in front of here.
pub(crate) fn outer(mut attribute: Attribute) -> Attribute {
    attribute.style = AttrStyle::Outer;
    attribute
}

fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|name| attribute.path().is_ident(name))
}
