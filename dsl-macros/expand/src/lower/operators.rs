//! Operators. Arithmetic stays as it was written; comparisons and logic cannot be overloaded to give a
//! `Bool`, so they become calls.

use proc_macro2::Span;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, Lit, UnOp};

use super::Lower;
use crate::analysis::marks::{has_let, peel};
use crate::generated::{parenthesised, reference};

impl Lower<'_> {
    /// Lowers an operator; `None`: it stays, with its operands lowered in place.
    pub(super) fn binary(&mut self, binary: &mut ExprBinary) -> Option<Expr> {
        if is_compound_assignment(&binary.op) {
            self.operand(&mut binary.right);
            self.assigned(&mut binary.left);
            return None;
        }
        self.operand(&mut binary.left);
        let span = binary.op.span();
        // rustc wants a `let` where it was written: never rewrite beside one.
        let decides = !self.host && !has_let(&binary.left) && !has_let(&binary.right);
        match binary.op {
            BinOp::And(_) if decides => return Some(self.logic("and_begin", span, binary)),
            BinOp::Or(_) if decides => return Some(self.logic("or_begin", span, binary)),
            _ => self.operand(&mut binary.right),
        }
        if self.host {
            return self.host_comparison(binary);
        }
        match binary.op {
            BinOp::Lt(_) => Some(self.comparison("lt", span, binary)),
            BinOp::Le(_) => Some(self.comparison("le", span, binary)),
            BinOp::Gt(_) => Some(self.comparison("gt", span, binary)),
            BinOp::Ge(_) => Some(self.comparison("ge", span, binary)),
            BinOp::Eq(_) => Some(self.comparison("eq", span, binary)),
            BinOp::Ne(_) => Some(self.comparison("ne", span, binary)),
            BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_) => self.literal_left(binary),
            _ => None,
        }
    }

    /// Inside of `const_expr(..)`: only the texts of comparisons need help.
    fn host_comparison(&self, binary: &ExprBinary) -> Option<Expr> {
        let name = match binary.op {
            BinOp::Eq(_) => "host_eq",
            BinOp::Ne(_) => "host_ne",
            BinOp::Lt(_) => "host_lt",
            BinOp::Le(_) => "host_le",
            BinOp::Gt(_) => "host_gt",
            BinOp::Ge(_) => "host_ge",
            _ => return None,
        };
        Some(self.comparison(name, binary.op.span(), binary))
    }

    fn comparison(&self, name: &str, span: Span, binary: &ExprBinary) -> Expr {
        let compare = self.rt(span, name);
        let left = reference(binary.left.span(), (*binary.left).clone());
        let right = reference(binary.right.span(), (*binary.right).clone());
        Expr::Verbatim(quote_spanned!(span=> #compare(#left, #right)))
    }

    /// The left side is evaluated once; the right side inside of the region that it opens, and where it changes
    /// variables, these are carried out of it as out of a branch.
    fn logic(&mut self, begin: &str, span: Span, binary: &mut ExprBinary) -> Expr {
        let ((), region) = self.region(|lower| lower.under_runtime(|lower| lower.operand(&mut binary.right)));
        let (left, right) = (&binary.left, &binary.right);
        let (enter, skip) = (self.rt(span, "Enter"), self.rt(span, "logic_skip"));
        if region.effects.changes.is_empty() {
            let (begin, end) = (self.rt(span, begin), self.rt(right.span(), "logic_end"));
            let tokens = quote_spanned! {span=>
                match #begin(#left) {
                    #enter::Go(__lw_token) => #end(__lw_token, #right),
                    #enter::Skip(__lw_value) => #skip(__lw_value),
                }
            };
            return parenthesised(span, tokens);
        }
        self.scopes.restore_uninitialised(&region.unset);
        let slots = self.slots(&region);
        let (calls, first, again) = (&slots.calls, &slots.begin, &slots.again);
        let begin = self.rt(span, &format!("{begin}_with"));
        let end = self.rt(right.span(), "logic_end_with");
        // The slots borrow what the right side changes: they are rebuilt behind it.
        let tokens = quote_spanned! {span=>
            match #begin(#left, #first) {
                #enter::Go(__lw_token) => {
                    #calls
                    let __lw_right = #right;
                    #end(__lw_token, __lw_right, #again)
                }
                #enter::Skip(__lw_value) => #skip(__lw_value),
            }
        };
        parenthesised(span, tokens)
    }

    /// `2.0 * x` with a generic `x`: no supertrait can ask for `f32: Mul<T>`, a wrapper can have it.
    fn literal_left(&self, binary: &ExprBinary) -> Option<Expr> {
        if !is_float_literal(&binary.left) || is_literal(&binary.right) {
            return None;
        }
        let (span, left) = (binary.left.span(), &binary.left);
        let wrap = self.rt(span, "Lit");
        let left = Box::new(Expr::Verbatim(quote!(#wrap(#left))));
        Some(Expr::Binary(ExprBinary { left, ..binary.clone() }))
    }
}

pub(super) fn is_compound_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

fn literal(expr: &Expr) -> Option<&Lit> {
    match peel(expr) {
        Expr::Lit(literal) => Some(&literal.lit),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => literal(&unary.expr),
        _ => None,
    }
}

fn is_literal(expr: &Expr) -> bool {
    literal(expr).is_some()
}

fn is_float_literal(expr: &Expr) -> bool {
    // A literal with a suffix says which host type it is.
    matches!(literal(expr), Some(Lit::Float(float)) if float.suffix().is_empty())
}
