//! Loops: at run time, and unrolled by tracing.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, ExprForLoop, ExprLoop, ExprMethodCall, ExprWhile, Label};

use super::{Lower, Position, Region};
use crate::analysis::effects::Effects;
use crate::analysis::jumps::{Frame, Jump, JumpKind, LoopId, Scan, has_break, label_name};
use crate::analysis::marks::{is_range, peel};
use crate::generated::{block, flag, value_of};

/// The call of a method of iterators on `range(..)` that stands nearest to it.
fn adapter_of_range(expr: &Expr) -> Option<&ExprMethodCall> {
    const ADAPTERS: &[&str] = &[
        "rev",
        "step_by",
        "enumerate",
        "zip",
        "map",
        "filter",
        "skip",
        "take",
        "chain",
        "take_while",
        "skip_while",
        "by_ref",
    ];
    let Expr::MethodCall(call) = peel(expr) else { return None };
    let nearer = adapter_of_range(&call.receiver);
    let own = is_range(&call.receiver) && ADAPTERS.iter().any(|adapter| call.method == adapter);
    nearer.or(own.then_some(call))
}

/// A run-time loop, as far as all of them are alike.
struct RuntimeLoop {
    id: LoopId,
    region: Region,
    /// The flags that end the loop: its own `break`, and whatever leaves it for somewhere else.
    exits: Vec<TokenStream>,
    /// Declares the flag of `break`; stands before the loop.
    before: TokenStream,
    /// Declares the flag of `continue`; stands before the body.
    inside: TokenStream,
    own_break: Option<Jump>,
}

impl Lower<'_> {
    pub(super) fn runtime_for(&mut self, each: &mut ExprForLoop) -> Expr {
        let span = each.for_token.span;
        self.refuse_adapters(&mut each.expr);
        self.operand(&mut each.expr);
        let each_loop = self.runtime_body(each.label.as_ref(), false, |lower| {
            lower.scoped(|lower| {
                lower.scopes.bind_loop_variable(&each.pat);
                lower.block(&mut each.body, Position::Statement);
            });
        });
        let slots = self.slots(&each_loop.region);
        let (begin, end) = (self.rt(span, "for_begin"), self.rt(span, "for_end"));
        let RuntimeLoop { exits, before, inside, .. } = &each_loop;
        let (calls, at_begin, again, count) = (&slots.calls, &slots.begin, &slots.again, exits.len());
        let (pattern, range, body) = (&each.pat, &each.expr, &each.body);
        // `enter` is true once; rustc sees a loop, and speaks of moves and of missing values as in one.
        let tokens = quote_spanned! {span=>
            #calls
            #before
            let mut __lw_loop = #begin(#range, #at_begin, #count);
            while __lw_loop.enter() {
                let #pattern = __lw_loop.iv();
                #inside
                #body
            }
            #end(__lw_loop, &[#(#exits),*], #again);
        };
        with_attributes(block(span, tokens), &mut each.attrs)
    }

    /// `range(n).rev()`: rustc would say that a type which nobody wrote is no iterator.
    fn refuse_adapters(&mut self, range: &mut Expr) {
        let Some(call) = adapter_of_range(range) else { return };
        let instead = match call.method.to_string().as_str() {
            "rev" => "count up, and use `hi - 1 - i`",
            "step_by" => "give the step to the range: `range(lo, hi, step)`",
            "enumerate" => "count from 0, and compute the other number from that",
            _ => "compute in its body what it needs",
        };
        self.errors.push(
            call.method.span(),
            format_args!(
                "a loop over `range` runs on the device and is no iterator, so it has no `{}`: {instead}",
                call.method
            ),
        );
        // What is left is checked as the loop that it is.
        *range = (*call.receiver).clone();
    }

    pub(super) fn runtime_while(&mut self, each: &mut ExprWhile) -> Expr {
        let span = each.while_token.span;
        let each_loop = self.runtime_body(each.label.as_ref(), false, |lower| {
            lower.operand(&mut each.cond);
            lower.block(&mut each.body, Position::Statement);
        });
        let condition = &each.cond;
        let tokens = self.while_tokens(span, &each_loop, &quote!(#condition), &each.body);
        with_attributes(block(span, tokens), &mut each.attrs)
    }

    pub(super) fn runtime_loop(&mut self, each: &mut ExprLoop, position: Position) -> Expr {
        let span = each.loop_token.span;
        let endless = !has_break(each);
        let each_loop = self.runtime_body(each.label.as_ref(), true, |lower| {
            lower.block(&mut each.body, Position::Statement);
        });
        let yes = self.rt(span, "yes");
        let mut tokens = self.while_tokens(span, &each_loop, &quote!(#yes()), &each.body);
        if each_loop.own_break.is_some_and(|jump| jump.valued) {
            let (value, poison) = (value_of(JumpKind::Break(each_loop.id)), self.rt(span, "poison"));
            tokens = quote_spanned!(span=> let mut #value = #poison(); #tokens #value);
        } else if endless && position == Position::Value {
            let poison = self.rt(span, "poison");
            tokens.extend(quote!(#poison()));
        }
        with_attributes(block(span, tokens), &mut each.attrs)
    }

    fn while_tokens(
        &mut self,
        span: Span,
        each_loop: &RuntimeLoop,
        condition: &TokenStream,
        body: &Block,
    ) -> TokenStream {
        let slots = self.slots(&each_loop.region);
        let [begin, decide, end] = ["while_begin", "while_cond", "while_end"].map(|name| self.rt(span, name));
        let RuntimeLoop { exits, before, inside, .. } = each_loop;
        let (calls, at_begin, again) = (&slots.calls, &slots.begin, &slots.again);
        quote_spanned! {span=>
            #calls
            #before
            let mut __lw_loop = #begin(#at_begin);
            while __lw_loop.enter() {
                #decide(&mut __lw_loop, #condition, #again);
                #inside
                #body
            }
            #end(__lw_loop, &[#(#exits),*], #again);
        }
    }

    /// Lowers the body of a run-time loop.
    fn runtime_body(&mut self, label: Option<&Label>, valued: bool, lower_body: impl FnOnce(&mut Self)) -> RuntimeLoop {
        let id = self.new_loop();
        self.frames.push(Frame::Loop { id, label: label_name(label), runtime: true, valued });
        let mut region = self.inner_region(lower_body);
        self.frames.pop();
        self.scopes.restore_uninitialised(&region.unset);
        let (own_break, own_continue) = (JumpKind::Break(id), JumpKind::Continue(id));
        let jump = region.effects.jumps_to(own_break);
        let inside = self.declare_flag(own_continue, region.effects.jumps_to(own_continue));
        region.effects.forget_jumps_to(&[own_continue]);
        let exits = region.effects.jumps.iter().map(|jump| flag(jump.kind));
        let exits = exits.map(|flag| quote!(#flag)).collect();
        self.merge_outside(&region.effects, &[own_break]);
        RuntimeLoop { id, exits, before: self.declare_flag(own_break, jump), inside, region, own_break: jump }
    }

    /// As `region`, but the enclosing code learns of it by `merge_outside`.
    fn inner_region(&mut self, lower: impl FnOnce(&mut Self)) -> Region {
        let enclosing = std::mem::take(&mut self.effects);
        let ((), region) = self.region(lower);
        self.effects = enclosing;
        region
    }

    /// The effects of a loop, as the code around it has them.
    fn merge_outside(&mut self, effects: &Effects, own: &[JumpKind]) {
        let mut outside = effects.clone();
        outside.forget_jumps_to(own);
        if let Some(enclosing) = self.effects.last_mut() {
            enclosing.merge(&outside);
        }
    }

    fn declare_flag(&self, kind: JumpKind, jump: Option<Jump>) -> TokenStream {
        let (flag, no) = (flag(kind), self.root.quiet("no"));
        jump.map(|_| quote!(let mut #flag = #no();)).unwrap_or_default()
    }

    /// `for x in range_constexpr(..)`: plain Rust; with a flagged jump out of it, each pass is guarded.
    pub(super) fn host_for(&mut self, each: &mut ExprForLoop) -> Option<Expr> {
        let span = each.for_token.span;
        let source = self.scopes.source_of(&each.expr);
        self.operand(&mut each.expr);
        let pattern = (*each.pat).clone();
        let bind = move |lower: &mut Self| lower.scopes.bind_pattern(&pattern, true, source);
        let before = self.host_body(span, each.label.as_ref(), &mut each.body, bind)?;
        let each = &*each;
        Some(block(span, quote!(#before #each)))
    }

    /// `while let`, `while const_expr(..)`.
    pub(super) fn host_while(&mut self, each: &mut ExprWhile) -> Option<Expr> {
        let span = each.while_token.span;
        let mark = self.scopes.enter();
        self.host_condition(&mut each.cond);
        let before = self.host_body(span, each.label.as_ref(), &mut each.body, |_| {});
        self.scopes.leave(mark);
        let (before, each) = (before?, &*each);
        Some(block(span, quote!(#before #each)))
    }

    /// A `loop` inside of `const_expr(..)`.
    pub(super) fn host_loop(&mut self, each: &mut ExprLoop) {
        let id = self.new_loop();
        let label = label_name(each.label.as_ref());
        self.frames.push(Frame::Loop { id, label, runtime: false, valued: true });
        self.block(&mut each.body, Position::Statement);
        self.frames.pop();
    }

    /// Lowers the body of a compile-time loop. Returns the declarations that must stand before the loop,
    /// if there are any.
    fn host_body(
        &mut self,
        span: Span,
        label: Option<&Label>,
        body: &mut Block,
        bind: impl FnOnce(&mut Self),
    ) -> Option<TokenStream> {
        let id = self.new_loop();
        let (own_break, own_continue) = (JumpKind::Break(id), JumpKind::Continue(id));
        let label = label_name(label);
        self.frames.push(Frame::Loop { id, label, runtime: false, valued: false });
        let mut scan = Scan::new(&self.frames, self.host);
        scan.visit_block(body);
        let guarded = scan.flagged && scan.found.iter().any(|kind| *kind != own_continue);
        if guarded {
            self.frames.push(Frame::Runtime);
        }
        let mark = self.scopes.enter();
        bind(self);
        let mut region = self.inner_region(|lower| lower.block(body, Position::Statement));
        if guarded {
            self.frames.pop();
        }
        self.frames.pop();
        self.scopes.restore_uninitialised(&region.unset);
        let inside = self.declare_flag(own_continue, region.effects.jumps_to(own_continue));
        region.effects.forget_jumps_to(&[own_continue]);
        let before = self.declare_flag(own_break, region.effects.jumps_to(own_break));
        self.merge_outside(&region.effects, &[own_break]);
        let inner = quote!(#body);
        if guarded {
            let slots = self.slots(&region);
            let flags = region.effects.jumps.iter().map(|jump| flag(jump.kind));
            let (guard, end) = (self.rt(span, "guard"), self.rt(span, "guard_end"));
            let (calls, begin, again) = (&slots.calls, &slots.begin, &slots.again);
            let tokens = quote_spanned! {span=>
                #calls
                if let ::core::option::Option::Some(__lw_guard) = #guard(&[#(#flags),*], #begin) {
                    #inside
                    #inner
                    #end(__lw_guard, #again, ())
                } else { break }
            };
            *body = into_body(block(body.span(), tokens), body);
        } else if !inside.is_empty() {
            *body = into_body(block(body.span(), quote!(#inside #inner)), body);
        }
        self.scopes.leave(mark);
        (!before.is_empty()).then_some(before)
    }
}

fn into_body(expr: Expr, old: &Block) -> Block {
    match expr {
        Expr::Block(new) => new.block,
        _ => old.clone(),
    }
}

/// Moves the attributes of what was written (`#[cfg(..)]`, `#[allow(..)]`) to what it became.
fn with_attributes(mut lowered: Expr, attributes: &mut Vec<syn::Attribute>) -> Expr {
    if let Expr::Block(lowered) = &mut lowered {
        lowered.attrs = std::mem::take(attributes);
    }
    lowered
}
