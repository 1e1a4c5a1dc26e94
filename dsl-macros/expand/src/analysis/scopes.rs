//! Scopes: which binding a name stands for, and what may be done through it.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Expr, Pat, PatGuard, PatIdent, Type};

use super::effects::idents_in;

/// Identifies a binding. Numbers grow with the text, so a binding with a number lower than that of a
/// region's begin lives outside of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BindingId(pub u32);

/// What the text says about changing the value behind a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// `let mut x`, `mut x: T`.
    Mut,
    /// Not `mut`, but a `&mut` reference for all to see: `x: &mut T`, `let x = &mut y`, `&mut self`.
    Reference,
    /// Not `mut`, and made of what can be changed (`x.iter_mut()`, a part of a reference): its type tells
    /// whether it is a `&mut` reference.
    Perhaps,
    /// Any other binding: it may still turn out to be a `&mut` reference.
    Plain,
    /// Probably declared by a macro of the user; nobody knows how.
    Hidden,
}

#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub id: BindingId,
    pub name: String,
    pub access: Access,
    /// False between `let x;` and the first assignment.
    pub initialised: bool,
    /// Whether it is `mut` and a `&mut` reference beside.
    pub mut_reference: bool,
    /// Whether it is the variable of a run-time loop.
    pub counts: bool,
}

/// What a pattern is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nothing that could be changed through it.
    Value,
    /// A `&mut` reference.
    Reference,
    /// What may be or hold `&mut` references.
    Perhaps,
}

/// The bindings in scope, innermost last.
#[derive(Default)]
pub(crate) struct Scopes {
    bindings: Vec<Binding>,
    next: u32,
}

/// Where a scope began.
pub(crate) struct Mark(usize);

impl Scopes {
    pub fn enter(&self) -> Mark {
        Mark(self.bindings.len())
    }

    pub fn leave(&mut self, mark: Mark) {
        self.bindings.truncate(mark.0);
    }

    /// The number that the next binding will get.
    pub fn next_id(&self) -> BindingId {
        BindingId(self.next)
    }

    pub fn bind(&mut self, name: String, access: Access, initialised: bool) {
        let id = self.next_id();
        self.next += 1;
        self.bindings.push(Binding { id, name, access, initialised, mut_reference: false, counts: false });
    }

    /// Binds what `pattern` binds when it is matched against `source`.
    pub fn bind_pattern(&mut self, pattern: &Pat, initialised: bool, source: Source) {
        let whole = matches!(unannotated(pattern), Pat::Ident(_));
        let reference = whole && source == Source::Reference;
        for name in names_of(pattern) {
            let access = if name.mutable {
                Access::Mut
            } else if name.by_mut_reference || reference {
                Access::Reference
            } else if source != Source::Value {
                Access::Perhaps
            } else {
                Access::Plain
            };
            self.bind(name.ident.to_string(), access, initialised);
            if let Some(binding) = self.bindings.last_mut() {
                binding.mut_reference = name.mutable && reference;
            }
        }
    }

    /// What a pattern that is matched against `value` may bind.
    pub fn source_of(&self, value: &Expr) -> Source {
        let mut idents = Vec::new();
        idents_in(value.to_token_stream(), &mut idents);
        let changeable = |name: String| {
            let bound = || self.find(&name).is_some_and(|binding| binding.access != Access::Plain);
            name == "mut" || name.ends_with("_mut") || bound()
        };
        if idents.iter().any(|ident| changeable(ident.to_string())) { Source::Perhaps } else { Source::Value }
    }

    /// Binds the variable of a run-time loop.
    pub fn bind_loop_variable(&mut self, pattern: &Pat) {
        self.bind_pattern(pattern, true, Source::Value);
        if let (Pat::Ident(_), Some(binding)) = (unannotated(pattern), self.bindings.last_mut()) {
            binding.counts = true;
        }
    }

    pub fn find(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().rev().find(|binding| binding.name == name)
    }

    pub fn get(&self, id: BindingId) -> Option<&Binding> {
        let at = self.bindings.binary_search_by_key(&id, |binding| binding.id).ok()?;
        self.bindings.get(at)
    }

    pub fn initialise(&mut self, name: &str) {
        if let Some(binding) = self.bindings.iter_mut().rev().find(|binding| binding.name == name) {
            binding.initialised = true;
        }
    }

    pub fn uninitialised(&self) -> Vec<BindingId> {
        let unset = self.bindings.iter().filter(|binding| !binding.initialised);
        unset.map(|binding| binding.id).collect()
    }

    /// The bindings without a value that a name stands for here, and that are not shadowed.
    pub fn visible_uninitialised(&self) -> Vec<&Binding> {
        let unset = self.bindings.iter().filter(|binding| !binding.initialised);
        let visible = |binding: &&Binding| self.find(&binding.name).is_some_and(|found| found.id == binding.id);
        unset.filter(visible).collect()
    }

    /// Makes exactly `unset` the bindings that have no value yet.
    pub fn restore_uninitialised(&mut self, unset: &[BindingId]) {
        for binding in &mut self.bindings {
            binding.initialised = !unset.contains(&binding.id);
        }
    }
}

/// A name that a pattern binds.
pub(crate) struct PatternName {
    pub ident: Ident,
    pub mutable: bool,
    pub by_mut_reference: bool,
}

/// The names that `pattern` binds, in order.
pub(crate) fn names_of(pattern: &Pat) -> Vec<PatternName> {
    struct Names(Vec<PatternName>);
    impl<'a> Visit<'a> for Names {
        fn visit_pat_ident(&mut self, pattern: &'a PatIdent) {
            let (by_ref, mutable) = (pattern.by_ref.is_some(), pattern.mutability.is_some());
            self.0.push(PatternName {
                ident: pattern.ident.clone(),
                // In `ref mut x` the `mut` belongs to the reference.
                mutable: mutable && !by_ref,
                by_mut_reference: mutable && by_ref,
            });
            visit::visit_pat_ident(self, pattern);
        }
        fn visit_pat_guard(&mut self, pattern: &'a PatGuard) {
            self.visit_pat(&pattern.pat);
        }
        fn visit_expr(&mut self, _: &'a Expr) {}
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    names.0
}

/// Whether `pattern` takes a `&mut` reference to a part of what it matches.
pub(crate) fn takes_mut_reference(pattern: &Pat) -> bool {
    names_of(pattern).iter().any(|name| name.by_mut_reference)
}

/// `pattern` without a type annotation or parentheses.
pub(crate) fn unannotated(pattern: &Pat) -> &Pat {
    match pattern {
        Pat::Type(typed) => unannotated(&typed.pat),
        Pat::Paren(paren) => unannotated(&paren.pat),
        other => other,
    }
}

/// Whether `ty` is a `&mut` reference for all to see.
pub(crate) fn is_mut_reference_type(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => reference.mutability.is_some(),
        Type::Paren(paren) => is_mut_reference_type(&paren.elem),
        Type::Group(group) => is_mut_reference_type(&group.elem),
        _ => false,
    }
}
