//! Comparisons, `&&`, `||`, and the marks of compile-time code.

use std::panic::Location;

use super::constant_bool;
use super::control::{If, if_begin, if_else, if_end, not};
use crate::trace::Loc;
use crate::types::{Bool, Cmp};

/// The condition of run-time control flow.
#[diagnostic::on_unimplemented(
    message = "the condition of a run-time `if` or `while` must be a `Bool`, found `{Self}`",
    label = "this is a `{Self}`",
    note = "if the condition is known at compile time, write `if const_expr(..)`"
)]
pub trait RtCond {
    /// The condition.
    fn condition(self) -> Bool;
}
impl RtCond for Bool {
    fn condition(self) -> Bool {
        self
    }
}

/// `<`, `<=`, `>`, `>=` between `Self` and `R`; `Out` is `Bool` for kernel values, `bool` for host values.
#[diagnostic::on_unimplemented(
    message = "cannot compare `{Self}` with `{R}`",
    label = "`{Self}` against `{R}`",
    note = "both sides of a comparison must have one type; convert with `.cast::<..>()`"
)]
pub trait Compare<R: ?Sized, Out> {
    /// The comparison.
    #[track_caller]
    fn apply(&self, rhs: &R, op: Cmp) -> Out;
}

/// `==`, `!=` between `Self` and `R`.
#[diagnostic::on_unimplemented(
    message = "cannot compare `{Self}` with `{R}`",
    label = "`{Self}` against `{R}`",
    note = "both sides of a comparison must have one type; convert with `.cast::<..>()`",
    note = "host values other than numbers are compared inside `const_expr(..)`"
)]
pub trait Equal<R: ?Sized, Out> {
    /// The comparison.
    #[track_caller]
    fn apply(&self, rhs: &R, op: Cmp) -> Out;
}

macro_rules! host_compare {
    ($($ty:ty),*) => { $(
        impl Compare<$ty, bool> for $ty {
            fn apply(&self, rhs: &$ty, op: Cmp) -> bool {
                match op {
                    Cmp::Lt => self < rhs,
                    Cmp::Le => self <= rhs,
                    Cmp::Gt => self > rhs,
                    Cmp::Ge => self >= rhs,
                    Cmp::Eq => self == rhs,
                    Cmp::Ne => self != rhs,
                }
            }
        }
        impl Equal<$ty, bool> for $ty {
            fn apply(&self, rhs: &$ty, op: Cmp) -> bool {
                (self == rhs) == (op == Cmp::Eq)
            }
        }
    )* };
}
host_compare!(usize, isize, u64, i64, u32, i32, u16, i16, u8, i8, bool, char, f32, f64);

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident $trait:ident $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<L: $trait<R, Out> + ?Sized, R: ?Sized, Out>(lhs: &L, rhs: &R) -> Out {
            lhs.apply(rhs, Cmp::$op)
        }
    )* };
}
comparison! {
    /// `lhs < rhs`
    lt Compare Lt;
    /// `lhs <= rhs`
    le Compare Le;
    /// `lhs > rhs`
    gt Compare Gt;
    /// `lhs >= rhs`
    ge Compare Ge;
    /// `lhs == rhs`
    eq Equal Eq;
    /// `lhs != rhs`
    ne Equal Ne;
}

/// What becomes of the right side of `&&` or `||`.
pub enum Enter<Token, Value> {
    /// It is evaluated.
    Go(Token),
    /// It is not: the left side, known at compile time, decides.
    Skip(Value),
}

/// The left side of `&&` and `||`.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` need conditions, found `{Self}`",
    label = "expected `Bool` or `bool`"
)]
pub trait Condition: Sized {
    /// What is open while the right side is traced.
    type Open;
    #[doc(hidden)]
    fn enter(self, and: bool, loc: Loc) -> Enter<Self::Open, Self>;
}

impl Condition for bool {
    type Open = ();
    fn enter(self, and: bool, _: Loc) -> Enter<(), bool> {
        if self == and { Enter::Go(()) } else { Enter::Skip(self) }
    }
}

impl Condition for Bool {
    /// The open `if`, and the value of the whole where the right side is not evaluated.
    type Open = (If, bool, Loc);
    #[track_caller]
    fn enter(self, and: bool, loc: Loc) -> Enter<Self::Open, Bool> {
        let evaluated = if and { self } else { not(self, loc) };
        Enter::Go((if_begin(evaluated, &mut []), !and, loc))
    }
}

/// The open left side of `&&` or `||`.
pub struct LogicToken<L: Condition>(L::Open);

/// Begins `lhs && ..`.
#[track_caller]
pub fn and_begin<L: Condition>(lhs: L) -> Enter<LogicToken<L>, L> {
    begin(lhs, true, Location::caller())
}

/// Begins `lhs || ..`.
#[track_caller]
pub fn or_begin<L: Condition>(lhs: L) -> Enter<LogicToken<L>, L> {
    begin(lhs, false, Location::caller())
}

#[track_caller]
fn begin<L: Condition>(lhs: L, and: bool, loc: Loc) -> Enter<LogicToken<L>, L> {
    match lhs.enter(and, loc) {
        Enter::Go(open) => Enter::Go(LogicToken(open)),
        Enter::Skip(value) => Enter::Skip(value),
    }
}

/// The right side of `&&` or `||` after a left side `L`.
#[diagnostic::on_unimplemented(
    message = "`{L} && {Self}` and `{L} || {Self}` have no meaning in a kernel",
    label = "expected a condition, found `{Self}`"
)]
pub trait LogicRhs<L: Condition, Out> {
    #[doc(hidden)]
    fn finish(self, open: L::Open) -> Out;
}
impl LogicRhs<bool, bool> for bool {
    fn finish(self, (): ()) -> bool {
        self
    }
}
impl LogicRhs<bool, Bool> for Bool {
    fn finish(self, (): ()) -> Bool {
        self
    }
}
impl LogicRhs<Bool, Bool> for Bool {
    fn finish(self, (mut open, otherwise, loc): (If, bool, Loc)) -> Bool {
        if_else(&mut open, &mut []);
        let otherwise = constant_bool(otherwise, loc);
        if_end(open, &mut [], [self, otherwise])
    }
}
impl LogicRhs<Bool, Bool> for bool {
    fn finish(self, open: (If, bool, Loc)) -> Bool {
        let rhs = constant_bool(self, open.2);
        LogicRhs::<Bool, Bool>::finish(rhs, open)
    }
}

/// Ends `lhs && rhs` or `lhs || rhs`.
pub fn logic_end<L: Condition, R: LogicRhs<L, Out>, Out>(token: LogicToken<L>, rhs: R) -> Out {
    rhs.finish(token.0)
}

/// The value of `lhs && ..` or `lhs || ..` whose right side is not evaluated.
pub fn logic_skip<L, Out: From<L>>(lhs: L) -> Out {
    Out::from(lhs)
}

/// A condition that is known at compile time.
#[diagnostic::on_unimplemented(
    message = "`const_expr` needs a condition that is known at compile time, found `{Self}`",
    label = "`{Self}` is known only at run time",
    note = "a lane, a thread index and everything computed from them are run-time values even when their range is known: drop `const_expr`"
)]
pub trait HostBool {
    /// The condition.
    fn get(self) -> bool;
}
impl HostBool for bool {
    fn get(self) -> bool {
        self
    }
}

/// Marks a condition as known at compile time: the arm that is not taken is not traced.
pub fn const_expr(condition: impl HostBool) -> bool {
    condition.get()
}

/// `==` inside `const_expr(..)`.
#[diagnostic::on_unimplemented(
    message = "`const_expr` compares compile-time values, found `{Self}`",
    label = "`{Self}` is known only at run time",
    note = "a lane, a thread index and everything computed from them are run-time values even when their range is known: drop `const_expr`"
)]
pub trait HostEqual<R: ?Sized> {
    #[doc(hidden)]
    fn host_equal(&self, rhs: &R) -> bool;
}
#[diagnostic::do_not_recommend]
impl<L: PartialEq<R> + ?Sized, R: ?Sized> HostEqual<R> for L {
    fn host_equal(&self, rhs: &R) -> bool {
        self == rhs
    }
}

/// `lhs == rhs` on host values.
pub fn host_eq<L: HostEqual<R> + ?Sized, R: ?Sized>(lhs: &L, rhs: &R) -> bool {
    lhs.host_equal(rhs)
}

/// `lhs != rhs` on host values.
pub fn host_ne<L: HostEqual<R> + ?Sized, R: ?Sized>(lhs: &L, rhs: &R) -> bool {
    !lhs.host_equal(rhs)
}

/// A constant condition, false.
#[track_caller]
pub fn no() -> Bool {
    constant_bool(false, Location::caller())
}

/// A constant condition, true.
#[track_caller]
pub fn yes() -> Bool {
    constant_bool(true, Location::caller())
}

/// False, in a way that rustc does not see through.
pub fn never() -> bool {
    false
}

/// Checks that a `return` without a value has none.
pub fn unit((): ()) {}
