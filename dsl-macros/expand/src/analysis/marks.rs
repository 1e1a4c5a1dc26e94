//! The marks by which a body says what is decided at compile time.

use syn::{BinOp, Expr, UnOp};

/// `expr` without parentheses and the invisible groups that `macro_rules!` leaves.
pub(crate) fn peel(expr: &Expr) -> &Expr {
    match expr {
        Expr::Paren(paren) => peel(&paren.expr),
        Expr::Group(group) => peel(&group.expr),
        other => other,
    }
}

/// The last segment of the path that `expr` is.
pub(crate) fn last_segment(expr: &Expr) -> Option<String> {
    match peel(expr) {
        Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

/// Whether `expr` is a call of one of `names`, also under method calls: `range(4).unroll(2)`.
fn is_call_of(expr: &Expr, names: &[&str]) -> bool {
    match peel(expr) {
        Expr::Call(call) => last_segment(&call.func).is_some_and(|name| names.contains(&name.as_str())),
        Expr::MethodCall(call) => is_call_of(&call.receiver, names),
        _ => false,
    }
}

/// `range(..)`, also under method calls: `range(n).unroll(2)`.
pub(crate) fn is_range(expr: &Expr) -> bool {
    is_call_of(expr, &["range"])
}

/// `const_expr(..)`.
pub(crate) fn is_const_expr(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Call(call) => last_segment(&call.func).as_deref() == Some("const_expr"),
        _ => false,
    }
}

/// `for x in range_constexpr(..)`, `for x in constexpr(..)`: the loop is unrolled.
pub(crate) fn is_compile_time_iterator(expr: &Expr) -> bool {
    is_call_of(expr, &["range_constexpr", "constexpr"])
}

/// Whether a `let` stands in the condition `expr`.
pub(crate) fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(paren) => has_let(&paren.expr),
        Expr::Group(group) => has_let(&group.expr),
        _ => false,
    }
}

/// Whether an `if` or `while` with the condition `expr` is decided at compile time: a pattern is matched,
/// or everything is marked by `const_expr(..)`.
pub(crate) fn is_compile_time_condition(expr: &Expr) -> bool {
    has_let(expr) || is_marked(expr)
}

/// Whether every operand of the condition `expr` is `const_expr(..)`.
pub(crate) fn is_marked(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Unary(unary) => matches!(unary.op, UnOp::Not(_)) && is_marked(&unary.expr),
        Expr::Binary(binary) => {
            let logic = matches!(binary.op, BinOp::And(_) | BinOp::Or(_));
            logic && is_marked(&binary.left) && is_marked(&binary.right)
        }
        other => is_const_expr(other),
    }
}

/// Macros whose arguments are expressions and which change none of them.
pub(crate) fn is_pure_macro(name: &str) -> bool {
    const PURE: &[&str] = &[
        "printf",
        "device_assert",
        "vec",
        "format",
        "print",
        "println",
        "eprint",
        "eprintln",
        "panic",
        "todo",
        "unreachable",
        "unimplemented",
        "matches",
        "concat",
        "stringify",
        "env",
    ];
    PURE.contains(&name) || is_host_macro(name)
}

/// Macros that check something at compile time: their arguments are host code.
pub(crate) fn is_host_macro(name: &str) -> bool {
    const HOST: &[&str] =
        &["static_assert", "assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];
    HOST.contains(&name)
}
