//! Branches: `if` at run time, `if`, `if let` and `match` at compile time.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{BinOp, Block, Expr, ExprBlock, ExprIf, ExprMatch, Lit, Pat, Stmt};

use super::{Lower, Position, declare, first_assignment, joined_names};
use crate::analysis::jumps::{assigns_always, assigns_somewhere, block_diverges, diverges, mentions};
use crate::analysis::marks::{has_let, is_const_expr, peel};
use crate::generated::block;

/// The variables that an `if` gives their first value.
#[derive(Default)]
struct FirstValues {
    /// Assigned on every path: they have a value afterwards.
    always: Vec<Ident>,
    /// Assigned on some: rustc shall say so where they are used.
    sometimes: Vec<Ident>,
}

/// One arm of a run-time `if`, lowered.
struct Arm {
    block: Block,
    diverges: bool,
    tail: Span,
    /// The variables that get no value on some path, but do in this arm.
    sometimes: Vec<Ident>,
    /// Which of the declared variables this arm mentions.
    mentioned: Vec<Ident>,
}

impl Lower<'_> {
    pub(super) fn runtime_if(&mut self, branch: &mut ExprIf, position: Position) -> Expr {
        let span = branch.if_token.span;
        self.operand(&mut branch.cond);
        let otherwise = match branch.else_branch.take() {
            None => empty_else(span),
            Some((_, other)) => into_block(*other),
        };
        let then = std::mem::replace(&mut branch.then_branch, empty_else(span));
        let first = self.first_values(&then, &otherwise);
        let diverging = (block_diverges(&then), block_diverges(&otherwise));
        // A diverging arm gives a poison of the type of the other one.
        let of_arm = |own: bool, other: bool| {
            if own && !other { Position::Value } else { position }
        };
        let positions = (of_arm(diverging.0, diverging.1), of_arm(diverging.1, diverging.0));
        let (arms, region) = self.region(|lower| {
            let then = lower.arm(then, positions.0, span, &first);
            let otherwise = lower.arm(otherwise, positions.1, span, &first);
            [then, otherwise]
        });
        self.scopes.restore_uninitialised(&region.unset);
        let slots = self.slots(&region);
        let condition = &branch.cond;
        let [begin_call, else_call, end_call] = ["if_begin", "if_else", "if_end"].map(|name| self.rt(span, name));
        let (calls, begin, again) = (&slots.calls, &slots.begin, &slots.again);
        let [then, otherwise] = &arms;
        // Named at the tails: rustc points there when the types of the arms differ.
        let (then_value, else_value) = (Ident::new("__lw_then", then.tail), Ident::new("__lw_else", otherwise.tail));
        let (then_block, else_block) = (self.arm_tokens(then, &first), self.arm_tokens(otherwise, &first));
        let end = if first.is_empty() {
            quote_spanned!(span=> #end_call(__lw_if, #again, [#then_value, #else_value]))
        } else {
            let join = quote_spanned!(span=> #end_call(__lw_if, #again, [#then_value.0, #else_value.0]));
            let at = branch.cond.span();
            let never = self.rt(at, "never");
            let never = quote_spanned!(at=> #never());
            let values = [(then, &then_value), (otherwise, &else_value)];
            self.joined_first_values(span, &first, join, never, values)
        };
        let tokens = quote_spanned! {span=>
            #calls
            let mut __lw_if = #begin_call(#condition, #begin);
            let #then_value = #then_block;
            #else_call(&mut __lw_if, #again);
            let #else_value = #else_block;
            #end
        };
        let mut lowered = block(span, tokens);
        if let Expr::Block(lowered) = &mut lowered {
            lowered.attrs = std::mem::take(&mut branch.attrs);
        }
        lowered
    }

    fn first_values(&self, then: &Block, otherwise: &Block) -> FirstValues {
        let mut first = FirstValues::default();
        for binding in self.scopes.visible_uninitialised() {
            let name = first_assignment(then, &binding.name).or_else(|| first_assignment(otherwise, &binding.name));
            let Some(name) = name else { continue };
            let assigned = |block| block_diverges(block) || assigns_always(block, &name);
            if assigned(then) && assigned(otherwise) && !(block_diverges(then) && block_diverges(otherwise)) {
                first.always.push(name);
            } else {
                first.sometimes.push(name);
            }
        }
        first
    }

    fn arm(&mut self, mut body: Block, position: Position, span: Span, first: &FirstValues) -> Arm {
        let tail = match body.stmts.last() {
            Some(Stmt::Expr(expr, None)) => expr.span(),
            _ => span,
        };
        let sometimes = first.sometimes.iter().filter(|name| assigns_somewhere(&body, name)).cloned().collect();
        let mentioned = first.names().filter(|name| mentions(&body, name)).cloned().collect();
        let diverges = block_diverges(&body);
        self.scoped(|lower| {
            let names: Vec<Ident> = first.names().cloned().collect();
            lower.shadow_unset(&names);
            lower.under_runtime(|lower| lower.block(&mut body, position));
        });
        Arm { block: body, diverges, tail, sometimes, mentioned }
    }

    /// An arm with the variables that it gives their first value: declared in it, returned beside its value.
    fn arm_tokens(&self, arm: &Arm, first: &FirstValues) -> TokenStream {
        let block = &arm.block;
        if first.is_empty() {
            return quote!(#block);
        }
        // Only where it is mentioned: the type of any other would be known to nobody.
        let declared = first.names().filter(|name| arm.mentioned.contains(name));
        let declarations = declared.map(|name| declare(name, self.is_mut(name)));
        let poison = self.root.quiet("poison");
        let always = first.always.iter().map(|name| if arm.diverges { quote!(#poison()) } else { quote!(#name) });
        let sometimes = arm.certain();
        quote!({
            #(#declarations)*
            let __lw_value = #block;
            ((__lw_value, #(#always),*), (#(#sometimes,)*))
        })
    }

    fn joined_first_values(
        &mut self,
        span: Span,
        first: &FirstValues,
        join: TokenStream,
        never: TokenStream,
        arms: [(&Arm, &Ident); 2],
    ) -> TokenStream {
        let always = &first.always;
        let joined = joined_names(always);
        // Never run, but seen by rustc: it then says which condition leaves the variable without a value.
        let partial = arms.map(|(arm, value)| {
            let names = arm.certain();
            let values: Vec<Ident> = names.iter().map(|name| format_ident!("__lw_partial_{}", name)).collect();
            quote_spanned!(span=> { let (#(#values,)*) = #value.1; #(if #never { #names = #values; })* })
        });
        always.iter().for_each(|name| self.scopes.initialise(&name.to_string()));
        quote! {
            let (__lw_value, #(#joined),*) = #join;
            #(#partial)*
            #(#always = #joined;)*
            __lw_value
        }
    }

    /// `if const_expr(..)`, `if let`: plain Rust, one arm of which is traced.
    pub(super) fn host_if(&mut self, branch: &mut ExprIf, position: Position) {
        let other_diverges = branch.else_branch.as_ref().is_some_and(|(_, other)| diverges(other));
        let then_diverges = block_diverges(&branch.then_branch);
        let of_arm = |own: bool, other: bool| {
            if own && !other { Position::Value } else { position }
        };
        let before = self.scopes.uninitialised();
        if then_diverges != other_diverges
            && let Some((_, other)) = &mut branch.else_branch
        {
            let then = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block: branch.then_branch.clone() });
            if other_diverges {
                self.fill_unset(other, &[&then]);
            } else {
                let mut filled = then;
                self.fill_unset(&mut filled, &[other]);
                branch.then_branch = into_block(filled);
            }
        }
        self.scoped(|lower| {
            lower.host_condition(&mut branch.cond);
            lower.block(&mut branch.then_branch, of_arm(then_diverges, other_diverges));
        });
        let mut unset = if then_diverges { Vec::new() } else { self.scopes.uninitialised() };
        self.scopes.restore_uninitialised(&before);
        if let Some((_, other)) = &mut branch.else_branch {
            self.expr(other, of_arm(other_diverges, then_diverges));
            if let Expr::Paren(paren) = &**other {
                // `else` wants a block.
                let inner = &paren.expr;
                **other = block(paren.paren_token.span.join(), quote!(#inner));
            }
        }
        if !other_diverges || then_diverges {
            // Where both arms leave by a flag, rustc sees both come to their end.
            unset.extend(if other_diverges { before.clone() } else { self.scopes.uninitialised() });
        }
        unset.retain(|id| before.contains(id));
        self.scopes.restore_uninitialised(&unset);
    }

    /// Gives a poison to the variables without a value that the `others` set, in an arm that leaves by a
    /// flagged jump: rustc sees such an arm come to its end.
    pub(super) fn fill_unset(&self, leaving: &mut Expr, others: &[&Expr]) {
        let unset = self.scopes.visible_uninitialised();
        if unset.is_empty() || !self.has_flagged_jump(|scan| scan.visit_expr(leaving)) {
            return;
        }
        let as_block = |expr: &Expr| into_block(expr.clone());
        let own = as_block(leaving);
        let set = |name: &Ident| others.iter().all(|other| assigns_always(&as_block(other), name));
        let first = |name: &str| others.iter().find_map(|other| first_assignment(&as_block(other), name));
        let names = unset.into_iter().filter_map(|binding| first(&binding.name));
        let names: Vec<Ident> = names.filter(|name| set(name) && !assigns_somewhere(&own, name)).collect();
        if !names.is_empty() {
            let poison = self.root.quiet("poison");
            let fill = Stmt::Expr(Expr::Verbatim(quote!(#(#names = #poison();)*)), None);
            let stmts = std::iter::once(fill).chain(own.stmts).collect();
            let block = Block { brace_token: own.brace_token, stmts };
            *leaving = Expr::Block(ExprBlock { attrs: Vec::new(), label: None, block });
        }
    }

    /// A condition that is decided at compile time. A chain of `let`s may not hold a run-time condition.
    pub(super) fn host_condition(&mut self, condition: &mut Expr) {
        match condition {
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
                let chained = has_let(&binary.left) || has_let(&binary.right);
                for side in [&mut binary.left, &mut binary.right] {
                    if chained && !self.host && !may_stand_beside_let(side) {
                        self.errors.push(
                            side.span(),
                            "a condition beside `let` is decided at compile time: write `const_expr(..)` around \
                             it, or nest a run-time `if`",
                        );
                    }
                    self.host_condition(side);
                }
            }
            Expr::Paren(paren) => self.host_condition(&mut paren.expr),
            Expr::Unary(unary) => self.host_condition(&mut unary.expr),
            other => {
                let barrier = std::mem::replace(&mut self.barrier, self.frames.len());
                self.expr(other, Position::Value);
                self.barrier = barrier;
            }
        }
    }

    pub(super) fn host_match(&mut self, choice: &mut ExprMatch, position: Position) {
        for arm in &choice.arms {
            self.borrowed_by(&arm.pat, &choice.expr);
        }
        let source = self.scopes.source_of(&choice.expr);
        self.operand(&mut choice.expr);
        let before = self.scopes.uninitialised();
        let mut unset = Vec::new();
        let all_diverge = choice.arms.iter().all(|arm| diverges(&arm.body));
        let bodies: Vec<Expr> = match self.scopes.visible_uninitialised().is_empty() {
            true => Vec::new(),
            false => choice.arms.iter().map(|arm| (*arm.body).clone()).collect(),
        };
        let others: Vec<&Expr> = bodies.iter().filter(|body| !diverges(body)).collect();
        let leaving = choice.arms.iter_mut().filter(|arm| diverges(&arm.body));
        leaving.for_each(|arm| self.fill_unset(&mut arm.body, &others));
        for arm in &mut choice.arms {
            self.scopes.restore_uninitialised(&before);
            let diverging = diverges(&arm.body);
            let own = if diverging && !all_diverge { Position::Value } else { position };
            self.scoped(|lower| {
                lower.scopes.bind_pattern(&arm.pat, true, source);
                if let Pat::Guard(guard) = &mut arm.pat {
                    let host = std::mem::replace(&mut lower.host, true);
                    lower.operand(&mut guard.guard);
                    lower.host = host;
                }
                lower.expr(&mut arm.body, own);
            });
            if !diverging {
                unset.extend(self.scopes.uninitialised());
            }
        }
        if all_diverge {
            unset.clone_from(&before);
        }
        unset.retain(|id| before.contains(id));
        self.scopes.restore_uninitialised(&unset);
    }
}

impl FirstValues {
    fn is_empty(&self) -> bool {
        self.always.is_empty() && self.sometimes.is_empty()
    }

    fn names(&self) -> impl Iterator<Item = &Ident> {
        self.always.iter().chain(&self.sometimes)
    }
}

impl Arm {
    /// The variables that get their value in this arm, but not in the other one.
    fn certain(&self) -> &[Ident] {
        if self.diverges { &[] } else { &self.sometimes }
    }
}

/// `let`, `const_expr(..)`, and literals.
fn may_stand_beside_let(condition: &Expr) -> bool {
    match peel(condition) {
        Expr::Let(_) => true,
        Expr::Binary(binary) => may_stand_beside_let(&binary.left) && may_stand_beside_let(&binary.right),
        Expr::Unary(unary) => may_stand_beside_let(&unary.expr),
        Expr::Lit(literal) => matches!(literal.lit, Lit::Bool(_)),
        other => is_const_expr(other),
    }
}

/// The arm of an `if` without `else`: `()`, at the `if`.
fn empty_else(span: Span) -> Block {
    let Expr::Block(unit) = block(span, quote_spanned!(span=> ())) else {
        return Block { brace_token: Default::default(), stmts: Vec::new() };
    };
    unit.block
}

fn into_block(expr: Expr) -> Block {
    match expr {
        Expr::Block(block) if block.label.is_none() => block.block,
        other => Block { brace_token: Default::default(), stmts: vec![Stmt::Expr(other, None)] },
    }
}
