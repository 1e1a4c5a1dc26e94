//! The lists of slots: the variables whose handles a region swaps.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{Lower, Region};
use crate::analysis::effects::{Change, How};
use crate::analysis::jumps::{Jump, JumpKind};
use crate::analysis::scopes::Access;
use crate::generated::{flag, value_of};

/// The slots of one region. They are rebuilt at each use, so that no borrow lives across the region.
pub(super) struct Slots {
    /// Checks of closures that the region calls; a statement before the region.
    pub calls: TokenStream,
    /// For the beginning, where the types are checked.
    pub begin: TokenStream,
    /// For every later use.
    pub again: TokenStream,
}

impl Lower<'_> {
    pub(super) fn slots(&self, region: &Region) -> Slots {
        let (mut begin, mut again, mut calls) = (Vec::new(), Vec::new(), TokenStream::new());
        for change in &region.effects.changes {
            let binding = change.binding.and_then(|id| self.scopes.get(id));
            // A variable without a value has no handle to swap: rustc's own rules do the rest.
            if binding.is_some_and(|binding| region.unset.contains(&binding.id)) {
                continue;
            }
            let access = binding.map(|binding| binding.access);
            if change.called {
                calls.extend(self.called(change));
            }
            let Some(place) = self.place(change, access) else {
                continue;
            };
            begin.push(self.checked_slot(change, &place, access));
            again.push(self.plain_slot(&change.name, &place));
        }
        for jump in &region.effects.jumps {
            for slot in self.jump_slots(*jump) {
                begin.push(slot.clone());
                again.push(slot);
            }
        }
        Slots { calls, begin: quote!(&mut [#(#begin),*]), again: quote!(&mut [#(#again),*]) }
    }

    /// The reference that a slot holds; `None` where the change is not one of a carried value.
    fn place(&self, change: &Change, access: Option<Access>) -> Option<TokenStream> {
        let (ident, span) = (&change.ident, change.ident.span());
        let whole = quote_spanned!(span=> &);
        // `mut` at the user's span would show the keyword's help on hover.
        let mutability = Ident::new("mut", Span::call_site());
        // All but the method's name is at the user's span, so that rustc's errors are.
        let reborrow = |method: &str| {
            let method = Ident::new(method, Span::call_site());
            quote_spanned!(span=> #whole #mutability #ident.#method())
        };
        match (change.how, access) {
            (How::Call, _) => None,
            (How::Maybe, Some(Access::Perhaps)) => Some(reborrow("__lw_probe")),
            (_, Some(Access::Mut)) => Some(quote!(#whole #mutability #ident)),
            (How::Whole, None | Some(Access::Hidden)) => Some(quote!(#whole #mutability #ident)),
            // rustc reports the assignment itself.
            (How::Whole, Some(Access::Plain | Access::Reference | Access::Perhaps)) => None,
            (How::Maybe, Some(Access::Plain | Access::Hidden) | None) => None,
            // Reborrows a reference, and makes rustc suggest `let mut` for anything else.
            (How::Part | How::Maybe, _) => Some(reborrow("__lw_ref")),
        }
    }

    fn checked_slot(&self, change: &Change, place: &TokenStream, access: Option<Access>) -> TokenStream {
        let kind = match (change.how, access) {
            (How::Maybe, Some(Access::Perhaps)) => "watch_probed",
            (How::Maybe, _) => "watch",
            _ => "slot",
        };
        let (slot, name, marker) = (self.root.quiet(kind), plain(&change.name), self.marker(change, access.is_some()));
        quote!(#slot(#marker, #name, #place))
    }

    fn plain_slot(&self, name: &str, place: &TokenStream) -> TokenStream {
        let (slot, name) = (self.root.quiet("flag_slot"), plain(name));
        quote!(#slot(#name, #place))
    }

    fn called(&self, change: &Change) -> TokenStream {
        let (called, ident, span) = (self.root.quiet("called"), &change.ident, change.ident.span());
        let (marker, reference) = (self.marker(change, true), quote_spanned!(span=> &));
        let mutability = Ident::new("mut", Span::call_site());
        quote!(#called(#marker, #reference #mutability #ident);)
    }

    /// A value whose type carries the variable's name into rustc's message. A misspelt name gets none:
    /// rustc would take the marker for what was meant.
    fn marker(&self, change: &Change, bound: bool) -> TokenStream {
        if !bound {
            return quote!(::core::marker::PhantomData::<()>);
        }
        let mut name = match change.name.as_str() {
            "self" => Ident::new("self_", Span::call_site()),
            _ => change.ident.clone(),
        };
        name.set_span(Span::call_site());
        quote!({ enum #name {} ::core::marker::PhantomData::<#name> })
    }

    fn jump_slots(&self, jump: Jump) -> Vec<TokenStream> {
        let flag_slot = self.root.quiet("flag_slot");
        let flag = flag(jump.kind);
        let what = match jump.kind {
            JumpKind::Break(_) => "break",
            JumpKind::Continue(_) => "continue",
            JumpKind::Return => "return",
        };
        let mut slots = vec![quote!(#flag_slot(#what, &mut #flag))];
        if jump.valued {
            let (value, what) = (value_of(jump.kind), format!("the value of `{what}`"));
            slots.push(quote!(#flag_slot(#what, &mut #value)));
        }
        slots
    }
}

/// A variable's name as the user says it: without `r#`.
fn plain(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}
