//! The lowering of a body: run-time control flow becomes calls of `rt`, everything else stays.
//!
//! One walk, bottom up. A *region* (a branch, a loop body, the rest of a block under a guard) is lowered
//! first; what it changes and which flagged jumps leave it has then been collected, and the slots are
//! written around it.

mod branches;
mod expressions;
mod loops;
mod macros;
mod operators;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Block, Expr, FnArg, Local, Pat, Receiver, ReceiverKind, ReturnType, Stmt, Type};

use crate::analysis::effects::{Change, Effects, How, place_root};
use crate::analysis::jumps::{Frame, Jump, JumpKind, LoopId, Scan, assigned_names, assigns_always, diverges};
use crate::analysis::marks::peel;
use crate::analysis::scopes::{
    Access, Binding, BindingId, Scopes, Source, is_mut_reference_type, takes_mut_reference, unannotated,
};
use crate::errors::Errors;
use crate::generated::{self, Root, flag, value_of};

/// A lowered body, and what was wrong with it.
pub(crate) struct Lowered {
    /// One block expression.
    pub body: TokenStream,
    pub errors: Errors,
}

/// Lowers the body of a function that takes `inputs` and returns `output`.
pub(crate) fn lower_body<'a>(
    root: &Root,
    inputs: impl IntoIterator<Item = &'a FnArg>,
    output: &ReturnType,
    mut block: Block,
) -> Lowered {
    let returned = returned_type(output);
    let mut lower = Lower::new(root, returned.is_some());
    inputs.into_iter().for_each(|input| lower.bind_argument(input));
    let position = if returned.is_some() { Position::Value } else { Position::Statement };
    let ((), region) = lower.region(|lower| lower.block(&mut block, position));
    let span = block.brace_token.span.join();
    let body = match (region.effects.jumps_to(JumpKind::Return), returned) {
        (None, _) => quote!(#block),
        (Some(_), None) => {
            let (returned, no) = (flag(JumpKind::Return), root.rt(span, "no"));
            quote_spanned!(span=> { let mut #returned = #no(); #block })
        }
        (Some(_), Some(ty)) => {
            let (returned, value) = (flag(JumpKind::Return), value_of(JumpKind::Return));
            let (no, poison) = (root.rt(span, "no"), root.rt(span, "poison"));
            let join = root.rt(span, "ret_join");
            quote_spanned! {span=> {
                let mut #returned = #no();
                let mut #value: #ty = #poison();
                let __lw_tail: #ty = #block;
                #join(#returned, #value, __lw_tail)
            }}
        }
    };
    Lowered { body, errors: lower.errors }
}

/// The type of a function's value, `_` where it has no name; `None` for `()`.
fn returned_type(output: &ReturnType) -> Option<TokenStream> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => match &**ty {
            Type::Tuple(tuple) if tuple.elems.is_empty() => None,
            Type::ImplTrait(_) => Some(quote!(_)),
            ty => Some(quote!(#ty)),
        },
    }
}

/// What becomes of the value of an expression. A flagged jump does not diverge: where its value is
/// wanted, it gives a poison of the type that the context asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Value,
    Statement,
}

/// What a region does, and what had no value yet when it began.
struct Region {
    effects: Effects,
    unset: Vec<BindingId>,
}

struct Lower<'a> {
    root: &'a Root,
    scopes: Scopes,
    frames: Vec<Frame>,
    /// The effects of the regions and statements that are being lowered, innermost last.
    effects: Vec<Effects>,
    errors: Errors,
    next_loop: u32,
    /// A flagged jump to a frame below this would leave the middle of an expression.
    barrier: usize,
    /// Inside of `const_expr(..)`: nothing is run-time.
    host: bool,
    returns_value: bool,
    /// The first binding of the block that is being lowered.
    block_start: BindingId,
    /// Variables without a value whose first one is joined at the end of a guard around here.
    joined: Vec<BindingId>,
    /// How many expressions were rewritten: tells whether the arguments of a macro need be replaced.
    rewrites: usize,
}

impl<'a> Lower<'a> {
    fn new(root: &'a Root, returns_value: bool) -> Self {
        Lower {
            root,
            scopes: Scopes::default(),
            frames: vec![Frame::Body { closure: false }],
            effects: Vec::new(),
            errors: Errors::default(),
            next_loop: 0,
            barrier: 0,
            host: false,
            returns_value,
            block_start: BindingId(0),
            joined: Vec::new(),
            rewrites: 0,
        }
    }

    fn bind_argument(&mut self, input: &FnArg) {
        match input {
            FnArg::Receiver(receiver) => {
                let access = receiver_access(receiver);
                self.scopes.bind("self".to_owned(), access, true);
            }
            FnArg::Typed(typed) => {
                let reference = is_mut_reference_type(&typed.ty);
                let source = if reference { Source::Reference } else { Source::Value };
                self.scopes.bind_pattern(&typed.pat, true, source);
            }
        }
    }

    fn rt(&self, span: Span, name: &str) -> TokenStream {
        self.root.rt(span, name)
    }

    fn new_loop(&mut self) -> LoopId {
        let id = LoopId(self.next_loop);
        self.next_loop += 1;
        id
    }

    fn replace(&mut self, target: &mut Expr, new: Expr) {
        self.rewrites += 1;
        *target = new;
    }

    /// Runs `lower` and collects what it does to the outside; the enclosing code does it, too.
    fn region<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> (T, Region) {
        let start = self.scopes.next_id();
        let unset = self.scopes.uninitialised();
        let (value, mut effects) = self.collect(lower);
        effects.changes.retain(|change| change.binding.is_none_or(|id| id < start));
        (value, Region { effects, unset })
    }

    fn collect<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> (T, Effects) {
        self.effects.push(Effects::default());
        let value = lower(self);
        let effects = self.effects.pop().unwrap_or_default();
        if let Some(enclosing) = self.effects.last_mut() {
            enclosing.merge(&effects);
        }
        (value, effects)
    }

    /// Lowers under a run-time frame.
    fn under_runtime<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        self.frames.push(Frame::Runtime);
        let value = lower(self);
        self.frames.pop();
        value
    }

    /// Lowers in a scope of its own.
    fn scoped<T>(&mut self, lower: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.scopes.enter();
        let value = lower(self);
        self.scopes.leave(mark);
        value
    }

    fn record(&mut self, ident: &Ident, how: How) {
        let name = ident.to_string();
        let binding = self.scopes.find(&name);
        let worth_it = match (how, binding.map(|binding| binding.access)) {
            (How::Whole | How::Part, _) => true,
            (How::Maybe, access) => matches!(access, Some(Access::Mut | Access::Reference | Access::Perhaps)),
            (How::Call, access) => access == Some(Access::Mut),
        };
        if !worth_it {
            return;
        }
        let binding = binding.map(|binding| binding.id);
        let change = Change { binding, ident: ident.clone(), name, how, called: how == How::Call };
        if let Some(effects) = self.effects.last_mut() {
            effects.change(change);
        }
    }

    fn record_jump(&mut self, jump: Jump) {
        if let Some(effects) = self.effects.last_mut() {
            effects.jump(jump);
        }
    }

    /// Whether a flagged jump leaves the code that `visit` shows to the scan.
    fn has_flagged_jump(&self, visit: impl FnOnce(&mut Scan)) -> bool {
        let mut scan = Scan::new(&self.frames, self.host);
        visit(&mut scan);
        scan.escapes()
    }

    fn block(&mut self, block: &mut Block, position: Position) {
        let start = std::mem::replace(&mut self.block_start, self.scopes.next_id());
        let statements = std::mem::take(&mut block.stmts);
        block.stmts = self.scoped(|lower| lower.statements(statements.into(), position));
        self.block_start = start;
    }

    /// Lowers the statements of a block. After one that can take a flagged jump, the rest is guarded.
    fn statements(&mut self, mut queue: VecDeque<Stmt>, position: Position) -> Vec<Stmt> {
        let mut lowered = Vec::new();
        while let Some(mut statement) = queue.pop_front() {
            if let Some((value, assignment)) = self.split_assignment(&statement) {
                queue.push_front(assignment);
                queue.push_front(value);
                continue;
            }
            if let Stmt::Local(local) = &statement
                && self.leaves_by_else(local)
            {
                let Stmt::Local(local) = statement else { break };
                lowered.push(self.flagged_let_else(local, queue, position));
                return lowered;
            }
            let last = queue.iter().all(|statement| matches!(statement, Stmt::Item(_)));
            let ends_in_jump = last
                && position == Position::Value
                && matches!(&statement, Stmt::Expr(expr, semicolon) if diverges(expr) && (semicolon.is_some() || !queue.is_empty()));
            let own = if last && queue.is_empty() { position } else { Position::Statement };
            let ((), effects) = self.collect(|lower| lower.statement(&mut statement, own));
            lowered.push(statement);
            if effects.jumps.is_empty() {
                continue;
            }
            if !last {
                // What the whole block can name has to stand outside of the guard.
                let (items, rest): (Vec<_>, Vec<_>) =
                    queue.into_iter().partition(|statement| matches!(statement, Stmt::Item(_)));
                lowered.extend(items);
                lowered.push(self.guarded(&effects.jumps, rest.into(), position));
                return lowered;
            }
            if ends_in_jump {
                lowered.extend(queue.drain(..));
                let poison = self.root.quiet("poison");
                lowered.push(Stmt::Expr(Expr::Verbatim(quote!(#poison())), None));
            }
        }
        lowered
    }

    /// `if let Some(guard) = rt::guard(flags, slots) { rest } else { poison }`.
    fn guarded(&mut self, jumps: &[Jump], rest: VecDeque<Stmt>, position: Position) -> Stmt {
        let span = rest.front().map_or_else(Span::call_site, Spanned::span);
        // Variables of enclosing blocks that get their first value in here are joined at the end.
        let first: Vec<Ident> = self.first_assigned(&rest);
        let mutable: Vec<bool> = first.iter().map(|name| self.is_mut(name)).collect();
        let (statements, region) = self.region(|lower| {
            lower.under_runtime(|lower| {
                lower.scoped(|lower| {
                    let shadows = lower.shadow_unset(&first);
                    lower.joined.extend(shadows);
                    lower.statements(rest, position)
                })
            })
        });
        self.scopes.restore_uninitialised(&region.unset);
        let flags = jumps.iter().map(|jump| flag(jump.kind));
        let slots = self.slots(&region);
        let (begin, end) = (&slots.begin, &slots.again);
        let (guard, guard_end) = (self.rt(span, "guard"), self.rt(span, "guard_end"));
        let (poison, calls) = (self.rt(span, "poison"), &slots.calls);
        let some = quote!(::core::option::Option::Some);
        let tokens = if first.is_empty() {
            quote_spanned! {span=>
                #calls
                if let #some(__lw_guard) = #guard(&[#(#flags),*], #begin) {
                    let __lw_rest = { #(#statements)* };
                    #guard_end(__lw_guard, #end, __lw_rest)
                } else { #poison() }
            }
        } else {
            first.iter().for_each(|name| self.scopes.initialise(&name.to_string()));
            let joined = joined_names(&first);
            let declarations = first.iter().zip(&mutable).map(|(name, mutable)| declare(name, *mutable));
            quote_spanned! {span=>
                #calls
                let (__lw_rest, #(#joined),*) =
                    if let #some(__lw_guard) = #guard(&[#(#flags),*], #begin) {
                        #(#declarations)*
                        let __lw_rest = { #(#statements)* };
                        #guard_end(__lw_guard, #end, (__lw_rest, #(#first),*))
                    } else { #poison() };
                #(#first = #joined;)*
                __lw_rest
            }
        };
        Stmt::Expr(Expr::Verbatim(tokens), None)
    }

    /// The variables without a value, declared outside of the block that ends in `rest`, that `rest`
    /// always assigns.
    fn first_assigned(&self, rest: &VecDeque<Stmt>) -> Vec<Ident> {
        let mut unset = self.scopes.visible_uninitialised();
        unset.retain(|binding| binding.id < self.block_start || self.joined.contains(&binding.id));
        if unset.is_empty() {
            return Vec::new();
        }
        let block = Block { brace_token: Default::default(), stmts: rest.iter().cloned().collect() };
        let first = |binding: &Binding| first_assignment(&block, &binding.name);
        unset.into_iter().filter_map(first).filter(|name| assigns_always(&block, name)).collect()
    }

    fn is_mut(&self, name: &Ident) -> bool {
        self.scopes.find(&name.to_string()).is_some_and(|binding| binding.access == Access::Mut)
    }

    /// Opens bindings of their own for `names`, as the generated `let x;` does.
    fn shadow_unset(&mut self, names: &[Ident]) -> Vec<BindingId> {
        let bind = |name: &Ident| {
            let access = if self.is_mut(name) { Access::Mut } else { Access::Plain };
            let id = self.scopes.next_id();
            self.scopes.bind(name.to_string(), access, false);
            id
        };
        names.iter().map(bind).collect()
    }

    /// `x = if c { y } else { continue };` must not assign where it continues: its value becomes a
    /// statement of its own, and the guard after it holds the assignment.
    fn split_assignment(&self, statement: &Stmt) -> Option<(Stmt, Stmt)> {
        let Stmt::Expr(expr, semicolon) = statement else {
            return None;
        };
        let right = match expr {
            Expr::Assign(assign) => &assign.right,
            Expr::Binary(binary) if operators::is_compound_assignment(&binary.op) => &binary.right,
            _ => return None,
        };
        let control =
            matches!(peel(right), Expr::If(_) | Expr::Match(_) | Expr::Block(_) | Expr::Loop(_) | Expr::Unsafe(_));
        if !control || !self.has_flagged_jump(|scan| scan.visit_expr(right)) {
            return None;
        }
        let span = right.span();
        let name = Ident::new("__lw_assigned", span);
        let value = Stmt::Local(Local {
            attrs: Vec::new(),
            let_token: syn::Token![let](span),
            modifiers: Default::default(),
            pat: Pat::Ident(syn::PatIdent {
                attrs: Vec::new(),
                by_ref: None,
                mutability: None,
                ident: name.clone(),
                subpat: None,
            }),
            init: Some(syn::LocalInit { eq_token: syn::Token![=](span), expr: right.clone(), diverge: None }),
            semi_token: syn::Token![;](span),
        });
        let name = Box::new(Expr::Verbatim(quote!(#name)));
        let assignment = match expr {
            Expr::Assign(assign) => Expr::Assign(syn::ExprAssign { right: name, ..assign.clone() }),
            Expr::Binary(binary) => Expr::Binary(syn::ExprBinary { right: name, ..binary.clone() }),
            _ => return None,
        };
        Some((value, Stmt::Expr(assignment, *semicolon)))
    }

    fn statement(&mut self, statement: &mut Stmt, position: Position) {
        match statement {
            Stmt::Local(local) => self.local(local),
            Stmt::Item(_) => {}
            Stmt::Expr(expr, semicolon) => {
                let position = if semicolon.is_some() { Position::Statement } else { position };
                self.expr(expr, position);
            }
            Stmt::Macro(call) => self.statement_macro(&mut call.mac),
        }
    }

    fn local(&mut self, local: &mut Local) {
        let mut reference = matches!(&local.pat, Pat::Type(typed) if is_mut_reference_type(&typed.ty));
        let mut source = Source::Value;
        if let Some(init) = &mut local.init {
            reference |= is_mut_borrow(&init.expr);
            source = self.scopes.source_of(&init.expr);
            self.borrowed_by(&local.pat, &init.expr);
            match &mut init.diverge {
                None => self.expr(&mut init.expr, Position::Value),
                Some((_, diverge)) => {
                    self.operand(&mut init.expr);
                    self.expr(diverge, Position::Value);
                }
            }
        }
        let source = if reference { Source::Reference } else { source };
        self.scopes.bind_pattern(&local.pat, local.init.is_some(), source);
    }

    /// A `ref mut` in `pattern` may change what it is matched against.
    fn borrowed_by(&mut self, pattern: &Pat, value: &Expr) {
        if takes_mut_reference(pattern)
            && let Some((ident, _)) = place_root(value)
        {
            self.record(&ident.clone(), How::Part);
        }
    }

    /// `let PATTERN = value else { continue };` where the `continue` is flagged, and so does not diverge.
    fn leaves_by_else(&self, local: &Local) -> bool {
        let diverge = local.init.as_ref().and_then(|init| init.diverge.as_ref());
        diverge.is_some_and(|(_, block)| self.has_flagged_jump(|scan| scan.visit_expr(block)))
    }

    /// Such a `let` is an `if let` around the rest of its block: which way it goes is known when tracing.
    fn flagged_let_else(&mut self, local: Local, rest: VecDeque<Stmt>, position: Position) -> Stmt {
        let span = local.let_token.span;
        let Some(init) = local.init else {
            return Stmt::Expr(Expr::Verbatim(TokenStream::new()), None);
        };
        let (mut value, mut diverge) = (*init.expr, init.diverge);
        self.borrowed_by(&local.pat, &value);
        let source = self.scopes.source_of(&value);
        self.operand(&mut value);
        if let Pat::Type(typed) = &local.pat {
            let ty = &typed.ty;
            value = generated::block(span, quote_spanned!(span=> let __lw_value: #ty = #value; __lw_value));
        }
        let unset = self.scopes.uninitialised();
        if let Some((_, block)) = &mut diverge
            && !unset.is_empty()
        {
            let stmts = rest.iter().cloned().collect();
            let rest = Block { brace_token: Default::default(), stmts };
            self.fill_unset(block, &[&Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block: rest })]);
        }
        let other = diverge.as_mut().map(|(_, block)| {
            self.expr(block, position);
            quote!(#block)
        });
        self.scopes.restore_uninitialised(&unset);
        let pattern = unannotated(&local.pat);
        let statements = self.scoped(|lower| {
            lower.scopes.bind_pattern(pattern, true, source);
            lower.statements(rest, position)
        });
        let value = generated::parenthesised(span, quote!(#value));
        let tokens = quote_spanned!(span=> if let #pattern = #value { #(#statements)* } else #other);
        Stmt::Expr(Expr::Verbatim(tokens), None)
    }
}

impl VisitMut for Lower<'_> {
    // The walk through every expression that is not control flow.
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        self.operand(expr);
    }
    fn visit_block_mut(&mut self, block: &mut Block) {
        self.block(block, Position::Value);
    }
    fn visit_macro_mut(&mut self, mac: &mut syn::Macro) {
        self.macro_call(mac);
    }
    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
    fn visit_pat_mut(&mut self, _: &mut Pat) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
}

fn receiver_access(receiver: &Receiver) -> Access {
    match &receiver.kind {
        ReceiverKind::Reference(_, _, Some(_)) => Access::Reference,
        ReceiverKind::Typed(_, ty) if is_mut_reference_type(ty) => Access::Reference,
        _ if receiver.mutability.is_some() => Access::Mut,
        _ => Access::Plain,
    }
}

/// `&mut ..`, for all to see.
fn is_mut_borrow(expr: &Expr) -> bool {
    matches!(peel(expr), Expr::Reference(reference) if reference.mutability.is_some())
}

/// `let name;`, `let mut name;`.
fn declare(name: &Ident, mutable: bool) -> TokenStream {
    let mutability = mutable.then(|| quote!(mut));
    quote!(let #mutability #name;)
}

/// Names for the values that `names` have after a join.
fn joined_names(names: &[Ident]) -> Vec<Ident> {
    names.iter().map(|name| format_ident!("__lw_joined_{}", name)).collect()
}

/// The first assignment to the variable `name` in `block`: its identifier carries the user's span.
fn first_assignment(block: &Block, name: &str) -> Option<Ident> {
    struct Search<'s> {
        name: &'s str,
        found: Option<Ident>,
    }
    impl<'a> Visit<'a> for Search<'_> {
        fn visit_expr_assign(&mut self, assign: &'a syn::ExprAssign) {
            let names = assigned_names(&assign.left);
            let hit = names.into_iter().find(|ident| *ident == self.name);
            if self.found.is_none() {
                self.found = hit.cloned();
            }
            syn::visit::visit_expr_assign(self, assign);
        }
    }
    let mut search = Search { name, found: None };
    search.visit_block(block);
    search.found
}
