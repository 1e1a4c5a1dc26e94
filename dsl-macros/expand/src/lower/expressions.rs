//! Expressions: what each kind becomes.

use proc_macro2::Span;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut;
use syn::{
    Expr, ExprBlock, ExprBreak, ExprCall, ExprClosure, ExprContinue, ExprLit, ExprReturn, ExprUnary, Lit, LitInt, Pat,
    UnOp,
};

use super::{Lower, Position};
use crate::analysis::effects::{How, place_root};
use crate::analysis::jumps::{Frame, Jump, JumpKind, JumpSyntax, Target, assigned_names, label_name, resolve};
use crate::analysis::marks::{is_compile_time_condition, is_compile_time_iterator, last_segment};
use crate::analysis::scopes::{Access, Source, is_mut_reference_type};
use crate::generated::{block, flag, value_of};

impl Lower<'_> {
    /// Lowers `expr` in the middle of an expression, where a flagged jump cannot leave.
    pub(super) fn operand(&mut self, expr: &mut Expr) {
        let barrier = std::mem::replace(&mut self.barrier, self.frames.len());
        self.expr(expr, Position::Value);
        self.barrier = barrier;
    }

    pub(super) fn expr(&mut self, expr: &mut Expr, position: Position) {
        match expr {
            Expr::Paren(inner) => self.expr(&mut inner.expr, position),
            Expr::Group(inner) => self.expr(&mut inner.expr, position),
            Expr::Block(inner) if inner.label.is_some() => {
                let lowered = self.labelled_block(inner, position);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::Block(inner) => self.block(&mut inner.block, position),
            Expr::Unsafe(inner) => self.block(&mut inner.block, position),
            Expr::Const(_) => {}
            Expr::If(branch) if self.host || is_compile_time_condition(&branch.cond) => {
                self.host_if(branch, position);
            }
            Expr::If(branch) => {
                let lowered = self.runtime_if(branch, position);
                self.replace(expr, lowered);
            }
            Expr::Match(choice) => self.host_match(choice, position),
            Expr::Let(matched) => {
                self.borrowed_by(&matched.pat, &matched.expr);
                let source = self.scopes.source_of(&matched.expr);
                self.operand(&mut matched.expr);
                self.scopes.bind_pattern(&matched.pat, true, source);
            }
            Expr::ForLoop(each) if self.host || is_compile_time_iterator(&each.expr) => {
                let lowered = self.host_for(each);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::ForLoop(each) => {
                let lowered = self.runtime_for(each);
                self.replace(expr, lowered);
            }
            Expr::While(each) if self.host || is_compile_time_condition(&each.cond) => {
                let lowered = self.host_while(each);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::While(each) => {
                let lowered = self.runtime_while(each);
                self.replace(expr, lowered);
            }
            Expr::Loop(each) if self.host => self.host_loop(each),
            Expr::Loop(each) => {
                let lowered = self.runtime_loop(each, position);
                self.replace(expr, lowered);
            }
            Expr::Break(jump) => {
                let lowered = self.break_(jump, position);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::Continue(jump) => {
                let lowered = self.continue_(jump, position);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::Return(jump) => {
                let lowered = self.return_(jump, position);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::Closure(closure) => self.closure(closure),
            Expr::Binary(binary) => {
                let lowered = self.binary(binary);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::Assign(assign) => {
                self.operand(&mut assign.right);
                self.assigned(&mut assign.left);
                let names = assigned_names(&assign.left);
                names.into_iter().for_each(|name| self.scopes.initialise(&name.to_string()));
            }
            Expr::Reference(borrow) => {
                if borrow.mutability.is_some() {
                    self.changed_at_root(&borrow.expr, How::Part);
                }
                self.operand(&mut borrow.expr);
            }
            Expr::Index(index) => {
                self.host_index(&mut index.index);
                visit_mut::visit_expr_index_mut(self, index);
            }
            Expr::RawAddr(borrow) => {
                self.changed_at_root(&borrow.expr, How::Part);
                self.operand(&mut borrow.expr);
            }
            Expr::MethodCall(call) => {
                self.changed_at_root(&call.receiver, How::Maybe);
                call.args.iter().for_each(|argument| self.passed(argument));
                visit_mut::visit_expr_method_call_mut(self, call);
            }
            Expr::Call(call) => {
                let lowered = self.call(call);
                if let Some(lowered) = lowered {
                    self.replace(expr, lowered);
                }
            }
            Expr::Macro(call) => self.macro_call(&mut call.mac),
            Expr::Async(refused) => self.errors.push(
                refused.async_token.span,
                "`async` has no meaning in a kernel: use asynchronous copies and wait for their tokens",
            ),
            Expr::Await(refused) => self.errors.push(
                refused.await_token.span,
                "`.await` has no meaning in a kernel: wait for the token of an asynchronous copy",
            ),
            Expr::Try(question) => {
                let span = question.question_token.span;
                self.operand(&mut question.expr);
                let Some(problem) = self.question() else { return };
                self.errors.push(span, problem);
                // Some value of the right type: nothing else is reported because of the `?`.
                let inner = &question.expr;
                let tokens = quote_spanned!(span=> match #inner { _ => ::core::unreachable!() });
                self.replace(expr, block(span, tokens));
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }

    /// What is wrong with a `?`. It is a decision of the host: it may leave a helper or a closure where no run-time
    /// control flow is in its way.
    fn question(&self) -> Option<&'static str> {
        let target = resolve(&self.frames, JumpSyntax::Return)?;
        let closure = matches!(self.frames.get(target.frame), Some(Frame::Body { closure: true }));
        match (target.flagged, closure || self.returns_value) {
            (false, true) => None,
            (true, true) => Some(
                "`?` under a run-time condition: it decides while the kernel is traced; handle the host error outside \
                 of the run-time control flow",
            ),
            (_, false) => {
                Some("`?` cannot leave a kernel: it runs on the device; handle the host error before the launch")
            }
        }
    }

    /// Records a change of the variable at the root of `place`.
    fn changed_at_root(&mut self, place: &Expr, how: How) {
        if let Some((ident, _)) = place_root(place) {
            let ident = ident.clone();
            self.record(&ident, how);
        }
    }

    /// Host arrays have no run-time index: rustc would speak of slices and `usize`.
    fn host_index(&mut self, index: &mut Expr) {
        let Some((ident, true)) = place_root(index) else { return };
        if !self.scopes.find(&ident.to_string()).is_some_and(|binding| binding.counts) {
            return;
        }
        let text = format!(
            "`{ident}` counts at run time: it cannot index a host array; make the loop a compile-time one with \
             `range_constexpr`, or keep the values in shared memory"
        );
        self.errors.push(ident.span(), text);
        // The rest of the kernel is checked as if the index were known.
        *index = syn::parse_quote_spanned!(ident.span()=> 0usize);
    }

    /// An argument that is a `&mut` reference: the callee may change what it refers to.
    fn passed(&mut self, argument: &Expr) {
        if let Some((ident, true)) = place_root(argument)
            && let Some(binding) = self.scopes.find(&ident.to_string())
            && (matches!(binding.access, Access::Reference | Access::Perhaps) || binding.mut_reference)
        {
            let ident = ident.clone();
            self.record(&ident, How::Maybe);
        }
    }

    /// The left side of an assignment: each leaf of a pattern is a place.
    pub(super) fn assigned(&mut self, place: &mut Expr) {
        match place {
            Expr::Tuple(tuple) => tuple.elems.iter_mut().for_each(|place| self.assigned(place)),
            Expr::Array(array) => array.elems.iter_mut().for_each(|place| self.assigned(place)),
            Expr::Struct(item) => item.fields.iter_mut().for_each(|field| self.assigned(&mut field.expr)),
            Expr::Call(call) => call.args.iter_mut().for_each(|place| self.assigned(place)),
            Expr::Paren(paren) => self.assigned(&mut paren.expr),
            Expr::Group(group) => self.assigned(&mut group.expr),
            Expr::Infer(_) | Expr::Range(_) => {}
            place => {
                if let Some((ident, whole)) = place_root(place) {
                    let ident = ident.clone();
                    self.record(&ident, if whole { How::Whole } else { How::Part });
                }
                self.operand(place);
            }
        }
    }

    fn call(&mut self, call: &mut ExprCall) -> Option<Expr> {
        let name = last_segment(&call.func);
        if name.as_deref() == Some("const_expr") {
            let host = std::mem::replace(&mut self.host, true);
            call.args.iter_mut().for_each(|argument| self.operand(argument));
            self.host = host;
            return None;
        }
        if let Some((ident, true)) = place_root(&call.func) {
            let ident = ident.clone();
            self.record(&ident, How::Call);
        }
        call.args.iter().for_each(|argument| self.passed(argument));
        visit_mut::visit_expr_call_mut(self, call);
        let single = matches!(&*call.func, Expr::Path(path) if path.path.get_ident().is_some());
        let callee = name.unwrap_or_default();
        let takes = match callee.as_str() {
            "range" => "range_args",
            "range_constexpr" if call.args.len() != 1 => "range_constexpr_args",
            _ => return None,
        };
        if !single || self.scopes.find(&callee).is_some() {
            return None;
        }
        if callee == "range" {
            call.args.iter_mut().for_each(type_literal_bound);
        }
        // Bounds of mixed kinds: a trait on their tuple tells which. The import keeps the name
        // in the text, for editors and for rustc.
        let (span, function, arguments) = (call.func.span(), &call.func, call.args.iter());
        let takes = self.rt(span, takes);
        let tokens = quote_spanned! {span=>
            #[allow(unused_imports, reason = "keeps the name `range` alive")]
            use #function as _;
            #takes((#(#arguments,)*))
        };
        Some(block(span, tokens))
    }

    /// The body of a closure is a function of its own, whose changes are those of the code that holds it.
    fn closure(&mut self, closure: &mut ExprClosure) {
        if let Some(token) = &closure.asyncness {
            self.errors.push(token.span, "`async` has no meaning in a kernel");
        }
        let frames = std::mem::replace(&mut self.frames, vec![Frame::Body { closure: true }]);
        let barrier = std::mem::replace(&mut self.barrier, 0);
        let unset = self.scopes.uninitialised();
        self.scoped(|lower| {
            for input in &closure.inputs {
                let reference = matches!(input, Pat::Type(typed) if is_mut_reference_type(&typed.ty));
                let source = if reference { Source::Reference } else { Source::Perhaps };
                lower.scopes.bind_pattern(input, true, source);
            }
            lower.expr(&mut closure.body, Position::Value);
        });
        self.scopes.restore_uninitialised(&unset);
        (self.frames, self.barrier) = (frames, barrier);
    }

    fn labelled_block(&mut self, inner: &mut ExprBlock, position: Position) -> Option<Expr> {
        let (id, label) = (self.new_loop(), label_name(inner.label.as_ref())?);
        let kind = JumpKind::Break(id);
        self.frames.push(Frame::Block { id, label });
        let ((), mut effects) = {
            self.effects.push(Default::default());
            self.block(&mut inner.block, position);
            ((), self.effects.pop().unwrap_or_default())
        };
        self.frames.pop();
        let jump = effects.jumps_to(kind);
        effects.forget_jumps_to(&[kind]);
        if let Some(enclosing) = self.effects.last_mut() {
            enclosing.merge(&effects);
        }
        let (span, flag, value, inner) = (inner.span(), flag(kind), value_of(kind), &*inner);
        let no = self.rt(span, "no");
        let tokens = if jump?.valued {
            let (poison, join) = (self.rt(span, "poison"), self.rt(span, "ret_join"));
            quote_spanned! {span=>
                let mut #flag = #no();
                let mut #value = #poison();
                let __lw_tail = #inner;
                #join(#flag, #value, __lw_tail)
            }
        } else {
            quote_spanned!(span=> let mut #flag = #no(); #inner)
        };
        Some(block(span, tokens))
    }

    fn break_(&mut self, jump: &mut ExprBreak, position: Position) -> Option<Expr> {
        if let Some(value) = &mut jump.expr {
            self.operand(value);
        }
        let span = jump.break_token.span;
        let target = resolve(&self.frames, JumpSyntax::Break(jump.label.as_ref()))?;
        if !target.flagged || !self.may_leave(target, span, "break") {
            return None;
        }
        let valued = match self.frames.get(target.frame) {
            Some(Frame::Loop { valued: false, .. }) if jump.expr.is_some() => {
                self.errors.push(span, "`break` with a value leaves only a `loop` or a labelled block");
                return None;
            }
            _ => jump.expr.is_some(),
        };
        self.record_jump(Jump { kind: target.kind, valued });
        let value = jump.expr.as_ref().map(|value| {
            let variable = value_of(target.kind);
            quote!(#variable = #value;)
        });
        Some(self.set_flag(span, target.kind, value, position))
    }

    fn continue_(&mut self, jump: &mut ExprContinue, position: Position) -> Option<Expr> {
        let span = jump.continue_token.span;
        let target = resolve(&self.frames, JumpSyntax::Continue(jump.label.as_ref()))?;
        if !target.flagged || !self.may_leave(target, span, "continue") {
            return None;
        }
        self.record_jump(Jump { kind: target.kind, valued: false });
        Some(self.set_flag(span, target.kind, None, position))
    }

    fn return_(&mut self, jump: &mut ExprReturn, position: Position) -> Option<Expr> {
        if let Some(value) = &mut jump.expr {
            self.operand(value);
        }
        let span = jump.return_token.span;
        let target = resolve(&self.frames, JumpSyntax::Return)?;
        if !target.flagged {
            return None;
        }
        if matches!(self.frames.get(target.frame), Some(Frame::Body { closure: true })) {
            self.errors
                .push(span, "`return` under a run-time condition inside a closure: make the closure a `#[device] fn`");
            return None;
        }
        if !self.may_leave(target, span, "return") {
            return None;
        }
        self.record_jump(Jump { kind: JumpKind::Return, valued: self.returns_value });
        let value = jump.expr.as_ref().map(|value| {
            if self.returns_value {
                let variable = value_of(JumpKind::Return);
                quote!(#variable = #value;)
            } else {
                let unit = self.rt(value.span(), "unit");
                quote!(#unit(#value);)
            }
        });
        Some(self.set_flag(span, JumpKind::Return, value, position))
    }

    /// Refuses a flagged jump out of the middle of an expression: what stands after it there would still
    /// be evaluated.
    fn may_leave(&mut self, target: Target, span: Span, what: &str) -> bool {
        let free = target.frame >= self.barrier;
        if !free {
            self.errors.push(
                span,
                format_args!(
                    "`{what}` under a run-time condition leaves the middle of an expression: \
                     bind the value with `let` first, then use it"
                ),
            );
        }
        free
    }

    fn set_flag(
        &self,
        span: Span,
        kind: JumpKind,
        value: Option<proc_macro2::TokenStream>,
        position: Position,
    ) -> Expr {
        let (flag, yes) = (flag(kind), self.rt(span, "yes"));
        let poison = (position == Position::Value).then(|| {
            let poison = self.rt(span, "poison");
            quote!(#poison())
        });
        block(span, quote_spanned!(span=> #value #flag = #yes(); #poison))
    }
}

/// Gives a literal bound the type that rustc's fallback would give it too late: `range(0, n)` must have an
/// index type before the body uses it. Beside a 64-bit bound the loop is 64 bits wide all the same.
fn type_literal_bound(bound: &mut Expr) {
    match bound {
        Expr::Lit(ExprLit { lit: Lit::Int(literal), .. }) if literal.suffix().is_empty() => {
            let suffix = if literal.base10_parse::<i32>().is_ok() { "i32" } else { "i64" };
            let typed = LitInt::new(&format!("{literal}{suffix}"), literal.span());
            *literal = typed;
        }
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => type_literal_bound(expr),
        _ => {}
    }
}
