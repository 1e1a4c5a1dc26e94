//! What a region of a body does to variables declared outside of it, and which jumps leave it.

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{Expr, UnOp};

use super::jumps::{Jump, JumpKind};
use super::scopes::BindingId;

/// How a variable is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum How {
    /// `x(..)` of a local `mut` binding: a closure that changes what it captured.
    Call,
    /// A method call, or a mention in the tokens of a macro: perhaps not at all.
    Maybe,
    /// `x.f = ..`, `x[i] += ..`, `*x = ..`, `&mut x`, a `ref mut` pattern over `x`.
    Part,
    /// `x = ..`, `x += ..`.
    Whole,
}

/// A change of one variable: the strongest of all that a region makes, at its first place.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// `None`: a name that is bound nowhere we can see.
    pub binding: Option<BindingId>,
    pub ident: Ident,
    pub name: String,
    pub how: How,
    /// Whether some of the changes is a call of a closure.
    pub called: bool,
}

/// The effects of a piece of code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    pub changes: Vec<Change>,
    pub jumps: Vec<Jump>,
}

impl Effects {
    pub fn change(&mut self, change: Change) {
        let same = |old: &&mut Change| old.binding == change.binding && old.name == change.name;
        match self.changes.iter_mut().find(same) {
            Some(old) => {
                old.called |= change.called;
                let weak = old.how <= How::Maybe;
                if change.how > old.how && weak {
                    old.how = change.how;
                    old.ident = change.ident;
                }
            }
            None => self.changes.push(change),
        }
    }

    pub fn jump(&mut self, jump: Jump) {
        match self.jumps.iter_mut().find(|old| old.kind == jump.kind) {
            Some(old) => old.valued |= jump.valued,
            None => self.jumps.push(jump),
        }
    }

    pub fn merge(&mut self, other: &Effects) {
        other.changes.iter().for_each(|change| self.change(change.clone()));
        other.jumps.iter().for_each(|jump| self.jump(*jump));
    }

    pub fn jumps_to(&self, kind: JumpKind) -> Option<Jump> {
        self.jumps.iter().copied().find(|jump| jump.kind == kind)
    }

    pub fn forget_jumps_to(&mut self, kinds: &[JumpKind]) {
        self.jumps.retain(|jump| !kinds.contains(&jump.kind));
    }
}

/// The variable at the root of a place, through fields, indices, `*` and parentheses; and whether the
/// place is the whole variable.
pub(crate) fn place_root(place: &Expr) -> Option<(&Ident, bool)> {
    let part = |base| place_root(base).map(|(ident, _)| (ident, false));
    match place {
        Expr::Path(path) => path.path.get_ident().map(|ident| (ident, true)),
        Expr::Field(field) => part(&field.base),
        Expr::Index(index) => part(&index.expr),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => part(&unary.expr),
        Expr::Paren(paren) => place_root(&paren.expr),
        Expr::Group(group) => place_root(&group.expr),
        _ => None,
    }
}

/// Every identifier in `tokens`.
pub(crate) fn idents_in(tokens: TokenStream, found: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident),
            TokenTree::Group(group) => idents_in(group.stream(), found),
            _ => {}
        }
    }
}
