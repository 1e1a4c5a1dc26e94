//! Loop headers: run-time `range`, compile-time `range_constexpr` and `constexpr`.

use std::panic::Location;

use super::control::{Bounds, for_begin, for_end};
use super::state::{Carried, flag_slot};
use crate::trace::{self, Constant, Loc, RawValue};
use crate::types::{I32, I64, Index, Scalar, Uniform};
use crate::{Diagnostic, ScalarType, SourceLocation};

/// A run-time loop over `lo, lo + step, ..` below `hi`; made by [`range`](fn@range).
#[must_use = "a range does nothing until a `for` runs over it"]
#[derive(Clone, Copy, Debug)]
pub struct Range<I> {
    bounds: Bounds,
    index: std::marker::PhantomData<I>,
}

impl<I: LoopIndex> Range<I> {
    /// Asks for `factor` copies of the body in each iteration.
    pub fn unroll(mut self, factor: u32) -> Self {
        self.bounds.unroll = Some(factor);
        self
    }

    /// Asks for software pipelining over `stages` stages.
    pub fn pipeline(mut self, stages: u32) -> Self {
        self.bounds.pipeline = Some(stages);
        self
    }

    /// The loop with its carried state spelled out: `body` gets the index and the state, and gives the
    /// next state. A loop that runs zero times gives `init`.
    #[track_caller]
    pub fn carry<S: Carried>(self, init: S, body: impl FnOnce(I, S) -> S) -> S {
        let mut state = init;
        let open = for_begin(self, &mut [flag_slot("state", &mut state)], 0);
        let mut state = body(open.iv(), state);
        for_end(open, &[], &mut [flag_slot("state", &mut state)]);
        state
    }
}

/// The type of a loop variable.
#[diagnostic::on_unimplemented(
    message = "a loop cannot count in `{Self}`",
    label = "not the type of a loop variable",
    note = "loops count in `I32`, `I64` or `Index`; convert the variable with `.cast::<..>()`"
)]
pub trait LoopIndex: Copy {
    #[doc(hidden)]
    const COUNTED: ScalarType;
    #[doc(hidden)]
    fn counter(raw: RawValue) -> Self;
}
macro_rules! loop_indices {
    ($($ty:ident)*) => { $(
        impl LoopIndex for $ty {
            const COUNTED: ScalarType = $ty::TYPE;
            fn counter(raw: RawValue) -> Self {
                $ty::from_raw(raw)
            }
        }
        /// Of a loop whose bounds are uniform.
        impl LoopIndex for Uniform<$ty> {
            const COUNTED: ScalarType = $ty::TYPE;
            fn counter(raw: RawValue) -> Self {
                Uniform::assume($ty::from_raw(raw))
            }
        }
    )* };
}
loop_indices! { I32 I64 Index }

/// What an unmarked `for` runs over, by a variable of type `Variable`.
///
/// It is a parameter, not an associated type: rustc would report each mistake once more for
/// every use of `R::Variable`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a host iterator: this `for` must say when it runs",
    label = "host iterator in an unmarked `for`",
    note = "for a compile-time (unrolled) loop write `range_constexpr(lo, hi)` or `constexpr(iter)`",
    note = "for a run-time loop write `range(lo, hi)`"
)]
pub trait RtRange<Variable> {
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "the bounds are made and read inside this module tree")]
    fn bounds(&self) -> Bounds;
    #[doc(hidden)]
    fn index(raw: RawValue) -> Variable;
}

impl<I: LoopIndex> RtRange<I> for Range<I> {
    #[allow(private_interfaces, reason = "the bounds are made and read inside this module tree")]
    fn bounds(&self) -> Bounds {
        self.bounds
    }
    fn index(raw: RawValue) -> I {
        I::counter(raw)
    }
}

/// The value of an integer as a bound of a loop over `ty`.
trait BoundValue: Copy {
    fn value(self, ty: ScalarType, loc: Loc) -> RawValue;
}

fn host_bound(value: i128, ty: ScalarType, loc: Loc) -> RawValue {
    let fits = match ty {
        ScalarType::I32 => i32::try_from(value).is_ok(),
        _ => i64::try_from(value).is_ok(),
    };
    if !fits {
        trace::with(|t| {
            t.error(
                Diagnostic::error(format!("the loop bound {value} does not fit in `{ty}`"))
                    .at(SourceLocation::from_caller(loc))
                    .help("make one bound an `I64`"),
            );
        });
    }
    trace::constant(ty, Constant::Int(value as i64), loc)
}

macro_rules! host_bounds {
    ($($ty:ty),*) => { $(
        impl BoundValue for $ty {
            fn value(self, ty: ScalarType, loc: Loc) -> RawValue {
                host_bound(self as i128, ty, loc)
            }
        }
    )* };
}
host_bounds!(i32, i64, usize);

impl BoundValue for I32 {
    fn value(self, ty: ScalarType, loc: Loc) -> RawValue {
        crate::types::arith::cast(ScalarType::I32, ty, self.raw(), crate::types::arith::Rounding::NearestEven, loc)
    }
}
/// Kernel integers of 64 bits bound loops of 64 bits only.
macro_rules! wide_bounds {
    ($($ty:ident)*) => { $(
        impl BoundValue for $ty {
            fn value(self, _: ScalarType, _: Loc) -> RawValue {
                self.raw()
            }
        }
    )* };
}
wide_bounds! { I64 Index }

impl<T: Scalar + BoundValue> BoundValue for Uniform<T> {
    fn value(self, ty: ScalarType, loc: Loc) -> RawValue {
        self.get().value(ty, loc)
    }
}

/// The only bound of a loop over `Variable`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loop bound",
    label = "expected an integer",
    note = "bounds are `I32`, `I64`, `Index`, `i32`, `i64` or `usize`, with commas between them: `range(lo, hi)`"
)]
pub trait Bound<Variable>: Copy {
    #[doc(hidden)]
    fn upper(self, loc: Loc) -> RawValue;
}

/// Two bounds of a loop over `Variable`: `Index` if either is, else `I64` if either is 64 bits wide on its own
/// (`I64`, `i64`), else `I32`. A [`Uniform`] and a host number bound a loop over uniform values.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Other}` cannot bound one loop",
    label = "expected two integers",
    note = "bounds are `I32`, `I64`, `Index`, `i32`, `i64` or `usize`"
)]
pub trait Join<Other, Variable>: Copy {
    #[doc(hidden)]
    fn both(self, other: Other, loc: Loc) -> [RawValue; 2];
}

/// The step of a loop over `Variable`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the step of a loop over `{Variable}`",
    label = "expected an integer",
    note = "steps are `I32`, `i32` or `usize`, and `I64`, `Index` or `i64` where a bound is 64 bits wide"
)]
pub trait Step<Variable>: Copy {
    #[doc(hidden)]
    fn step(self, loc: Loc) -> RawValue;
}

macro_rules! bounds {
    ($($index:ty { $($ty:ty)*; $($step:ty)*; $($a:ty, $b:ty;)* })*) => { $(
        $( impl Bound<$index> for $ty {
            fn upper(self, loc: Loc) -> RawValue {
                self.value(<$index as LoopIndex>::COUNTED, loc)
            }
        } )*
        $( impl Step<$index> for $step {
            fn step(self, loc: Loc) -> RawValue {
                self.value(<$index as LoopIndex>::COUNTED, loc)
            }
        } )*
        $( impl Join<$b, $index> for $a {
            fn both(self, other: $b, loc: Loc) -> [RawValue; 2] {
                [self.value(<$index as LoopIndex>::COUNTED, loc), other.value(<$index as LoopIndex>::COUNTED, loc)]
            }
        } )*
    )* };
}
bounds! {
    I32 {
        I32 i32 usize; I32 i32 usize;
        I32, I32; I32, i32; I32, usize; i32, I32; i32, i32; i32, usize; usize, I32; usize, i32; usize, usize;
    }
    I64 {
        I64 i64; I64 i64 I32 i32 usize;
        I64, I64; I64, i64; I64, I32; I64, i32; I64, usize; I32, I64; I32, i64; i64, I64; i64, I32; i64, i64; i64, i32;
        i64, usize; i32, I64; i32, i64; usize, I64; usize, i64;
    }
    Index {
        Index; Index I64 i64 I32 i32 usize;
        Index, Index; Index, I64; Index, i64; Index, I32; Index, i32; Index, usize; I64, Index; i64, Index; I32, Index;
        i32, Index; usize, Index;
    }
}
/// Bounds of loops over `Uniform<T>`, and those that make a loop over `T` beside a plain value.
macro_rules! uniform_bounds {
    ($($ty:ident)*) => { $(
        bounds! {
            Uniform<$ty> {
                Uniform<$ty>; Uniform<$ty> i32 usize;
                Uniform<$ty>, Uniform<$ty>; Uniform<$ty>, i32; Uniform<$ty>, usize; i32, Uniform<$ty>;
                usize, Uniform<$ty>;
            }
            $ty { ; Uniform<$ty>; Uniform<$ty>, $ty; $ty, Uniform<$ty>; }
        }
    )* };
}
uniform_bounds! { I32 I64 Index }

/// The arguments of `range`, for a loop over `Variable`.
#[diagnostic::on_unimplemented(
    message = "these are not loop bounds: `{Self}`",
    note = "write `range(hi)`, `range(lo, hi)` or `range(lo, hi, step)` with `I32`, `I64`, `Index`, `i32`, `i64` or `usize`"
)]
pub trait RangeArgs<Variable> {
    #[doc(hidden)]
    #[track_caller]
    fn range(self) -> Range<Variable>;
}

fn make<I: LoopIndex>([lo, hi]: [RawValue; 2], step: RawValue) -> Range<I> {
    let bounds = Bounds { ty: I::COUNTED, lo, hi, step, unroll: None, pipeline: None };
    Range { bounds, index: std::marker::PhantomData }
}

fn int<I: LoopIndex>(value: i64, loc: Loc) -> RawValue {
    trace::constant(I::COUNTED, Constant::Int(value), loc)
}

impl<A: Bound<I>, I: LoopIndex> RangeArgs<I> for (A,) {
    #[track_caller]
    fn range(self) -> Range<I> {
        let loc = Location::caller();
        make([int::<I>(0, loc), self.0.upper(loc)], int::<I>(1, loc))
    }
}
impl<A: Join<B, I>, B, I: LoopIndex> RangeArgs<I> for (A, B) {
    #[track_caller]
    fn range(self) -> Range<I> {
        let loc = Location::caller();
        make(self.0.both(self.1, loc), int::<I>(1, loc))
    }
}
impl<A: Join<B, I>, B, C: Step<I>, I: LoopIndex> RangeArgs<I> for (A, B, C) {
    #[track_caller]
    fn range(self) -> Range<I> {
        let loc = Location::caller();
        make(self.0.both(self.1, loc), self.2.step(loc))
    }
}

/// A run-time loop from 0 to `hi`. In a kernel also `range(lo, hi)` and `range(lo, hi, step)`: there
/// the macro turns the call into [`range_args`].
///
/// It counts as `(lo..hi).step_by(step)` does, up to the ends of the type. A step that is known not to
/// be positive is refused; one that is known only at run time is asserted to be positive, so that the
/// emulator names the loop and a device traps instead of counting without end.
#[track_caller]
pub fn range<A: Bound<I>, I: LoopIndex>(hi: A) -> Range<I> {
    (hi,).range()
}

/// `range(..)` as kernels write it, with one to three bounds.
#[track_caller]
pub fn range_args<A: RangeArgs<I>, I>(arguments: A) -> Range<I> {
    arguments.range()
}

/// A bound of a compile-time loop.
#[diagnostic::on_unimplemented(
    message = "`range_constexpr` needs host integers, found `{Self}`",
    label = "`{Self}` is known only at run time",
    note = "for a run-time loop write `range(..)`"
)]
pub trait HostInt: Copy {
    #[doc(hidden)]
    fn to_usize(self) -> Option<usize>;
}
macro_rules! host_ints {
    ($($ty:ty),*) => { $(
        impl HostInt for $ty {
            fn to_usize(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
        }
    )* };
}
host_ints!(usize, u64, u32, u16, u8, isize, i64, i32, i16, i8);

/// The arguments of `range_constexpr`.
#[diagnostic::on_unimplemented(
    message = "`range_constexpr` needs host integers, found `{Self}`",
    note = "for a run-time loop write `range(..)`"
)]
pub trait HostRangeArgs {
    #[doc(hidden)]
    #[track_caller]
    fn steps(self) -> std::iter::StepBy<std::ops::Range<usize>>;
}

#[track_caller]
fn host_steps(lo: impl HostInt, hi: impl HostInt, step: impl HostInt) -> std::iter::StepBy<std::ops::Range<usize>> {
    let loc = Location::caller();
    match (lo.to_usize(), hi.to_usize(), step.to_usize()) {
        (Some(lo), Some(hi), Some(step)) if step > 0 => (lo..hi).step_by(step),
        _ => {
            trace::error(
                loc,
                Diagnostic::error("`range_constexpr` needs bounds from 0 on and a step above 0")
                    .help("count from 0 and subtract, or use `constexpr(iter)` over any host iterator"),
            );
            (0..0).step_by(1)
        }
    }
}

impl<A: HostInt> HostRangeArgs for (A,) {
    #[track_caller]
    fn steps(self) -> std::iter::StepBy<std::ops::Range<usize>> {
        host_steps(0usize, self.0, 1usize)
    }
}
impl<A: HostInt, B: HostInt> HostRangeArgs for (A, B) {
    #[track_caller]
    fn steps(self) -> std::iter::StepBy<std::ops::Range<usize>> {
        host_steps(self.0, self.1, 1usize)
    }
}
impl<A: HostInt, B: HostInt, C: HostInt> HostRangeArgs for (A, B, C) {
    #[track_caller]
    fn steps(self) -> std::iter::StepBy<std::ops::Range<usize>> {
        host_steps(self.0, self.1, self.2)
    }
}

/// A compile-time (unrolled) loop from 0 to `hi`. In a kernel also with `(lo, hi)` and
/// `(lo, hi, step)`: there the macro turns the call into [`range_constexpr_args`].
#[track_caller]
pub fn range_constexpr(hi: impl HostInt) -> std::iter::StepBy<std::ops::Range<usize>> {
    host_steps(0usize, hi, 1usize)
}

/// `range_constexpr(..)` as kernels write it, with one to three bounds.
#[track_caller]
pub fn range_constexpr_args<A: HostRangeArgs>(arguments: A) -> std::iter::StepBy<std::ops::Range<usize>> {
    arguments.steps()
}

/// A compile-time (unrolled) loop over a host iterator.
pub fn constexpr<I: IntoIterator>(iterator: I) -> I::IntoIter {
    iterator.into_iter()
}

/// A literal on the left of an operator whose right side may be a kernel value.
#[derive(Clone, Copy, Debug)]
pub struct Lit<L>(pub L);

macro_rules! literals {
    ($($trait:ident $method:ident;)*) => { $(
        impl<T: crate::types::Float> std::ops::$trait<T> for Lit<f32> {
            type Output = T;
            #[track_caller]
            fn $method(self, rhs: T) -> T {
                std::ops::$trait::$method(T::from(self.0), rhs)
            }
        }
        impl std::ops::$trait<f32> for Lit<f32> {
            type Output = f32;
            fn $method(self, rhs: f32) -> f32 {
                std::ops::$trait::$method(self.0, rhs)
            }
        }
        impl std::ops::$trait<f64> for Lit<f64> {
            type Output = f64;
            fn $method(self, rhs: f64) -> f64 {
                std::ops::$trait::$method(self.0, rhs)
            }
        }
        impl std::ops::$trait<crate::types::F64> for Lit<f64> {
            type Output = crate::types::F64;
            #[track_caller]
            fn $method(self, rhs: crate::types::F64) -> crate::types::F64 {
                std::ops::$trait::$method(crate::types::F64::from(self.0), rhs)
            }
        }
    )* };
}
literals! { Add add; Sub sub; Mul mul; Div div; }
