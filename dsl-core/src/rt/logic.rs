//! Comparisons, `&&`, `||`, and the marks of compile-time code.

use std::cmp::Ordering;
use std::panic::Location;

use super::constant_bool;
use super::control::{If, if_begin, if_else, if_end};
use super::state::Slot;
use crate::trace::Loc;
use crate::types::{Bool, Cmp, Scalar, Uniform, arith};

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

impl RtCond for Uniform<Bool> {
    fn condition(self) -> Bool {
        self.get()
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

/// The left side of `&&` and `||`. `Open` is what is open while the right side is traced: a parameter,
/// so that rustc speaks of a wrong left side once.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` need conditions, found `{Self}`",
    label = "expected `Bool` or `bool`"
)]
pub trait Condition<Open>: Sized {
    #[doc(hidden)]
    fn enter(self, and: bool, slots: &mut [Slot<'_>], loc: Loc) -> Enter<LogicToken<Open>, Self>;
}

/// What is open behind a host condition: nothing.
pub struct HostLeft(());

/// The open `if` behind a run-time condition, and the value of the whole where it is not entered.
pub struct RuntimeLeft {
    open: If,
    otherwise: bool,
    loc: Loc,
}

impl Condition<HostLeft> for bool {
    fn enter(self, and: bool, _: &mut [Slot<'_>], _: Loc) -> Enter<LogicToken<HostLeft>, bool> {
        if self == and { Enter::Go(LogicToken(HostLeft(()))) } else { Enter::Skip(self) }
    }
}

impl Condition<RuntimeLeft> for Bool {
    #[track_caller]
    fn enter(self, and: bool, slots: &mut [Slot<'_>], loc: Loc) -> Enter<LogicToken<RuntimeLeft>, Bool> {
        let evaluated = if and { self } else { Bool::from_raw(arith::not(self.raw(), loc)) };
        Enter::Go(LogicToken(RuntimeLeft { open: if_begin(evaluated, slots), otherwise: !and, loc }))
    }
}

/// [`RuntimeLeft`] of a condition that is uniform.
pub struct UniformLeft(RuntimeLeft);

impl Condition<UniformLeft> for Uniform<Bool> {
    #[track_caller]
    fn enter(self, and: bool, slots: &mut [Slot<'_>], loc: Loc) -> Enter<LogicToken<UniformLeft>, Self> {
        let evaluated = if and { self } else { !self };
        Enter::Go(LogicToken(UniformLeft(RuntimeLeft { open: if_begin(evaluated, slots), otherwise: !and, loc })))
    }
}

/// The open left side of `&&` or `||`.
pub struct LogicToken<Open>(Open);

/// Begins `lhs && ..`.
#[track_caller]
pub fn and_begin<L: Condition<Open>, Open>(lhs: L) -> Enter<LogicToken<Open>, L> {
    lhs.enter(true, &mut [], Location::caller())
}

/// Begins `lhs && ..` whose right side changes the variables of the slots.
#[track_caller]
pub fn and_begin_with<L: Condition<Open>, Open>(lhs: L, slots: &mut [Slot<'_>]) -> Enter<LogicToken<Open>, L> {
    lhs.enter(true, slots, Location::caller())
}

/// Begins `lhs || ..`.
#[track_caller]
pub fn or_begin<L: Condition<Open>, Open>(lhs: L) -> Enter<LogicToken<Open>, L> {
    lhs.enter(false, &mut [], Location::caller())
}

/// Begins `lhs || ..` whose right side changes the variables of the slots.
#[track_caller]
pub fn or_begin_with<L: Condition<Open>, Open>(lhs: L, slots: &mut [Slot<'_>]) -> Enter<LogicToken<Open>, L> {
    lhs.enter(false, slots, Location::caller())
}

/// The right side of `&&` or `||`.
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` need conditions, found `{Self}`",
    label = "expected `Bool` or `bool`"
)]
pub trait LogicRhs<Open, Out> {
    #[doc(hidden)]
    fn finish(self, left: Open, slots: &mut [Slot<'_>]) -> Out;
}
impl LogicRhs<HostLeft, bool> for bool {
    fn finish(self, _: HostLeft, _: &mut [Slot<'_>]) -> bool {
        self
    }
}
impl LogicRhs<HostLeft, Bool> for Bool {
    fn finish(self, _: HostLeft, _: &mut [Slot<'_>]) -> Bool {
        self
    }
}
impl LogicRhs<RuntimeLeft, Bool> for Bool {
    fn finish(self, left: RuntimeLeft, slots: &mut [Slot<'_>]) -> Bool {
        let RuntimeLeft { mut open, otherwise, loc } = left;
        if_else(&mut open, slots);
        let otherwise = constant_bool(otherwise, loc);
        if_end(open, slots, [self, otherwise])
    }
}
impl LogicRhs<RuntimeLeft, Bool> for bool {
    fn finish(self, left: RuntimeLeft, slots: &mut [Slot<'_>]) -> Bool {
        constant_bool(self, left.loc).finish(left, slots)
    }
}

impl LogicRhs<HostLeft, Uniform<Bool>> for Uniform<Bool> {
    fn finish(self, _: HostLeft, _: &mut [Slot<'_>]) -> Uniform<Bool> {
        self
    }
}
impl LogicRhs<RuntimeLeft, Bool> for Uniform<Bool> {
    fn finish(self, left: RuntimeLeft, slots: &mut [Slot<'_>]) -> Bool {
        self.get().finish(left, slots)
    }
}
impl LogicRhs<UniformLeft, Bool> for Bool {
    fn finish(self, left: UniformLeft, slots: &mut [Slot<'_>]) -> Bool {
        self.finish(left.0, slots)
    }
}
impl LogicRhs<UniformLeft, Uniform<Bool>> for Uniform<Bool> {
    fn finish(self, left: UniformLeft, slots: &mut [Slot<'_>]) -> Uniform<Bool> {
        let RuntimeLeft { mut open, otherwise, loc } = left.0;
        if_else(&mut open, slots);
        let otherwise = Uniform::assume(constant_bool(otherwise, loc));
        if_end(open, slots, [self, otherwise])
    }
}
impl LogicRhs<UniformLeft, Uniform<Bool>> for bool {
    fn finish(self, left: UniformLeft, slots: &mut [Slot<'_>]) -> Uniform<Bool> {
        Uniform::assume(constant_bool(self, left.0.loc)).finish(left, slots)
    }
}

/// Ends `lhs && rhs` or `lhs || rhs`.
pub fn logic_end<R: LogicRhs<Open, Out>, Open, Out>(token: LogicToken<Open>, rhs: R) -> Out {
    rhs.finish(token.0, &mut [])
}

/// Ends `lhs && rhs` or `lhs || rhs` whose right side changes the variables of the slots.
pub fn logic_end_with<R: LogicRhs<Open, Out>, Open, Out>(
    token: LogicToken<Open>,
    rhs: R,
    slots: &mut [Slot<'_>],
) -> Out {
    rhs.finish(token.0, slots)
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
    note = "a lane, a thread index and everything computed from them are run-time values even when their range is known: drop `const_expr`",
    note = "to check a run-time value, write `device_assert!(..)`"
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

/// `<`, `<=`, `>`, `>=` inside `const_expr(..)`.
#[diagnostic::on_unimplemented(
    message = "`const_expr` compares compile-time values, found `{Self}`",
    label = "`{Self}` is known only at run time",
    note = "a lane, a thread index and everything computed from them are run-time values even when their range is known: drop `const_expr`",
    note = "to check a run-time value, write `device_assert!(..)`"
)]
pub trait HostOrder<R: ?Sized> {
    #[doc(hidden)]
    fn host_order(&self, rhs: &R) -> Option<Ordering>;
}
#[diagnostic::do_not_recommend]
impl<L: PartialOrd<R> + ?Sized, R: ?Sized> HostOrder<R> for L {
    fn host_order(&self, rhs: &R) -> Option<Ordering> {
        self.partial_cmp(rhs)
    }
}

macro_rules! host_orders {
    ($($(#[$doc:meta])* $name:ident $of:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name<L: HostOrder<R> + ?Sized, R: ?Sized>(lhs: &L, rhs: &R) -> bool {
            lhs.host_order(rhs).is_some_and(Ordering::$of)
        }
    )* };
}
host_orders! {
    /// `lhs < rhs` on host values.
    host_lt is_lt;
    /// `lhs <= rhs` on host values.
    host_le is_le;
    /// `lhs > rhs` on host values.
    host_gt is_gt;
    /// `lhs >= rhs` on host values.
    host_ge is_ge;
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
