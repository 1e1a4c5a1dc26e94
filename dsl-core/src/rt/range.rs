//! Loop headers: run-time `range`, compile-time `range_constexpr` and `constexpr`.

use std::panic::Location;

use super::control::{Bounds, for_begin, for_end};
use super::state::{Carried, flag_slot};
use crate::trace::{self, Constant, Loc, RawValue};
use crate::types::{I32, I64, Scalar};
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
pub trait LoopIndex: Scalar {}
impl LoopIndex for I32 {}
impl LoopIndex for I64 {}

/// What an unmarked `for` runs over.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a host iterator: this `for` must say when it runs",
    label = "host iterator in an unmarked `for`",
    note = "for a compile-time (unrolled) loop write `range_constexpr(lo, hi)` or `constexpr(iter)`",
    note = "for a run-time loop write `range(lo, hi)`"
)]
pub trait RtRange {
    /// Type of the loop variable.
    type Index: Copy;
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "the bounds are made and read inside this module tree")]
    fn bounds(&self) -> Bounds;
    #[doc(hidden)]
    fn index(raw: RawValue) -> Self::Index;
}

impl<I: LoopIndex> RtRange for Range<I> {
    type Index = I;
    #[allow(private_interfaces, reason = "the bounds are made and read inside this module tree")]
    fn bounds(&self) -> Bounds {
        self.bounds
    }
    fn index(raw: RawValue) -> I {
        I::from_raw(raw)
    }
}

/// One bound of a run-time loop.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loop bound",
    label = "expected an integer",
    note = "bounds are `I32`, `I64`, `i32`, `i64` or `usize`"
)]
pub trait Bound: Copy {
    #[doc(hidden)]
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
        impl Bound for $ty {
            fn value(self, ty: ScalarType, loc: Loc) -> RawValue {
                host_bound(self as i128, ty, loc)
            }
        }
    )* };
}
host_bounds!(i32, i64, usize);

impl Bound for I32 {
    fn value(self, ty: ScalarType, loc: Loc) -> RawValue {
        crate::types::arith::cast(ScalarType::I32, ty, self.raw(), crate::types::arith::Rounding::NearestEven, loc)
    }
}
impl Bound for I64 {
    fn value(self, _: ScalarType, _: Loc) -> RawValue {
        self.raw()
    }
}

/// The loop variable's type for two bounds: `I64` if either is 64 bits wide.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{Other}` cannot bound one loop",
    note = "bounds are `I32`, `I64`, `i32`, `i64` or `usize`"
)]
pub trait Join<Other> {
    /// `I32` or `I64`.
    type Index: LoopIndex;
}
macro_rules! join {
    ($($index:ident { $($a:ty, $b:ty;)* })*) => { $($( impl Join<$b> for $a { type Index = $index; } )*)* };
}
join! {
    I32 { I32, I32; I32, i32; I32, usize; i32, I32; i32, i32; i32, usize; usize, I32; usize, i32; usize, usize; }
    I64 { I64, I64; I64, i64; I64, I32; I64, i32; I64, usize; I32, I64; I32, i64; i64, I64; i64, I32; i64, i64; i64, i32;
         i64, usize; i32, I64; i32, i64; usize, I64; usize, i64; }
}

/// The arguments of `range`.
#[diagnostic::on_unimplemented(
    message = "these are not loop bounds: `{Self}`",
    note = "write `range(hi)`, `range(lo, hi)` or `range(lo, hi, step)` with `I32`, `I64`, `i32`, `i64` or `usize`"
)]
pub trait RangeArgs {
    /// Type of the loop variable.
    type Index: LoopIndex;
    #[doc(hidden)]
    #[track_caller]
    fn range(self) -> Range<Self::Index>;
}

fn make<I: LoopIndex>(lo: impl Bound, hi: impl Bound, step: impl Bound, loc: Loc) -> Range<I> {
    let ty = I::TYPE;
    let bounds = Bounds {
        ty,
        lo: lo.value(ty, loc),
        hi: hi.value(ty, loc),
        step: step.value(ty, loc),
        unroll: None,
        pipeline: None,
    };
    Range { bounds, index: std::marker::PhantomData }
}

impl<A: Bound + Join<i32>> RangeArgs for (A,) {
    type Index = A::Index;
    #[track_caller]
    fn range(self) -> Range<A::Index> {
        make(0i32, self.0, 1i32, Location::caller())
    }
}
impl<A: Bound + Join<B>, B: Bound> RangeArgs for (A, B) {
    type Index = A::Index;
    #[track_caller]
    fn range(self) -> Range<A::Index> {
        make(self.0, self.1, 1i32, Location::caller())
    }
}
impl<A: Bound + Join<B>, B: Bound, C: Bound> RangeArgs for (A, B, C)
where
    A::Index: Join<C>,
{
    type Index = <A::Index as Join<C>>::Index;
    #[track_caller]
    fn range(self) -> Range<Self::Index> {
        make(self.0, self.1, self.2, Location::caller())
    }
}

/// A run-time loop from 0 to `hi`. In a kernel also `range(lo, hi)` and `range(lo, hi, step)`: there
/// the macro turns the call into [`range_args`].
#[track_caller]
pub fn range<A: Bound + Join<i32>>(hi: A) -> Range<A::Index> {
    (hi,).range()
}

/// `range(..)` as kernels write it, with one to three bounds.
#[track_caller]
pub fn range_args<A: RangeArgs>(arguments: A) -> Range<A::Index> {
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
