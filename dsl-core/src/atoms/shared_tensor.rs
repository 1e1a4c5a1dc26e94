//! Shared memory with a layout.

use std::marker::PhantomData;
use std::panic::Location;

use super::offset::{Offset, int, scaled};
use crate::layout::{ComposedLayout, Coord, Layout, LayoutError, Nested, Swizzle, Term, Tiler};
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, IrType, Loc, Operand, RawValue, Space};
use crate::types::arith::{self, Binary};
use crate::types::{Coordinate, I32, InShared, Indices, KernelMath, Place, Scalar, place, shared_array_named};
use crate::{Diagnostic, ScalarType, SourceLocation};

/// A layout of memory, or why there is none: what functions of kernels take that need one.
///
/// A [`LayoutError`] is reported at the call that was given it, and ends the trace.
pub trait IntoLayout {
    /// The layout.
    ///
    /// # Errors
    /// The error that stands in its place.
    fn into_layout(self) -> Result<ComposedLayout, LayoutError>;
}

impl IntoLayout for ComposedLayout {
    fn into_layout(self) -> Result<ComposedLayout, LayoutError> {
        Ok(self)
    }
}

impl IntoLayout for Layout {
    fn into_layout(self) -> Result<ComposedLayout, LayoutError> {
        ComposedLayout::new(Swizzle::IDENTITY, self)
    }
}

impl<L: IntoLayout> IntoLayout for Result<L, LayoutError> {
    fn into_layout(self) -> Result<ComposedLayout, LayoutError> {
        self?.into_layout()
    }
}

impl<L: IntoLayout + Clone> IntoLayout for &L {
    fn into_layout(self) -> Result<ComposedLayout, LayoutError> {
        self.clone().into_layout()
    }
}

/// Takes the value, or reports the error at `loc` and ends the trace.
pub(super) fn or_stop<T>(result: Result<T, LayoutError>, loc: Loc) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            trace::stop(loc, Diagnostic::error(error.to_string()).label("this layout is not defined"));
            None
        }
    }
}

/// Results of the layout algebra inside kernels.
pub trait LayoutResult<T> {
    /// The layout; where there is none, the kernel is refused at this line, with the reason.
    ///
    /// Outside a kernel, where there is no trace to refuse, it panics as `unwrap` does.
    fn in_kernel(self) -> T;
}

impl<T> LayoutResult<T> for Result<T, LayoutError> {
    #[track_caller]
    fn in_kernel(self) -> T {
        let loc = Location::caller();
        match self {
            Ok(value) => value,
            Err(error) => {
                let diagnostic = Diagnostic::error(error.to_string()).label("this layout is not defined");
                trace::stop(loc, diagnostic.clone());
                // No trace is open: host code asked.
                std::panic::resume_unwind(Box::new(diagnostic.at(SourceLocation::from_caller(loc)).message))
            }
        }
    }
}

/// Elements of shared memory under a static layout: `at` takes coordinates, and partitions divide it among threads.
///
/// The layout may be swizzled. The last mode can be the stages of a pipeline: [`SharedTensor::stage`].
#[derive(Clone, Debug)]
pub struct SharedTensor<T: Scalar> {
    base: RawValue,
    layout: ComposedLayout,
    /// Elements to add after the swizzle: a multiple of its period.
    shift: Option<RawValue>,
    /// The largest power of two, in elements, of which the shift is seen to be a multiple.
    aligned: i64,
    element: PhantomData<T>,
}

impl<T: Scalar> State for SharedTensor<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
        if let Some(shift) = &mut self.shift {
            visitor.value(shift);
        }
        visitor.host(self.layout.to_string());
    }
}
impl<T: Scalar> Carried for SharedTensor<T> {}

/// The alignment of what is not shifted: more than any access needs.
const ALIGNED: i64 = 1 << 20;

/// Shared memory for a layout, under a name for reports. Each call takes further memory.
///
/// A layout that is dynamic or has negative strides is refused here, and so is a [`LayoutError`] in its place.
#[track_caller]
pub fn shared_tensor<T: Scalar>(name: &str, layout: impl IntoLayout) -> SharedTensor<T> {
    let loc = Location::caller();
    let layout = layout.into_layout().and_then(|layout| layout.cosize().map(|size| (layout, size)));
    let (layout, size) = or_stop(layout, loc).unwrap_or_else(|| (ComposedLayout::unit(), 1));
    let memory = shared_array_named::<T>(name, usize::try_from(size).unwrap_or(usize::MAX));
    SharedTensor { base: memory.base(), layout, shift: None, aligned: ALIGNED, element: PhantomData }
}

impl<T: Scalar> SharedTensor<T> {
    /// The layout.
    pub fn layout(&self) -> &ComposedLayout {
        &self.layout
    }

    /// Extents of the modes.
    pub fn shape(&self) -> Vec<usize> {
        let modes = self.layout.layout().modes().map(|mode| mode.static_size().unwrap_or(1));
        modes.map(|size| usize::try_from(size).unwrap_or(1)).collect()
    }

    /// The element at a coordinate, one index for each mode: `I32`, `I64`, `usize` or `i32`.
    #[track_caller]
    pub fn at<const R: usize>(&self, index: impl Indices<R>) -> Place<T, InShared> {
        let loc = Location::caller();
        let mut math = KernelMath::<I32>::at([], loc);
        let part = |coordinate: place::Coord| match coordinate {
            place::Coord::Known(value) => Nested::Leaf(Term::Known(value)),
            _ => Nested::Leaf(Term::Value(I32::from_raw(coordinate.narrow(loc)))),
        };
        let coordinates = index.coordinates(loc);
        for (coordinate, extent) in coordinates.iter().zip(self.shape()) {
            if let place::Coord::Known(value) = *coordinate
                && usize::try_from(value).map_or(true, |value| value >= extent)
            {
                trace::error(loc, Diagnostic::error(format!("shared-memory index {value} of {extent}")));
                return Place::new(trace::refused(IrType::Pointer(Space::Shared), loc));
            }
        }
        let coordinate = Nested::Tuple(coordinates.map(part).to_vec());
        let Some(index) = or_stop(self.layout.index_with(&coordinate, &mut math), loc) else {
            return Place::new(RawValue::DEAD);
        };
        let offset = match index {
            Term::Known(known) => Offset::known(known),
            Term::Value(value) => Offset::run_time(value.raw(), i64::MAX >> 2, 1),
        };
        Place::new(self.address(offset, loc))
    }

    /// The most neighbours that one access may take: those that the swizzle keeps together, at the start of every stage.
    pub(super) fn unit(&self) -> i64 {
        let swizzle = self.layout.swizzle();
        let whole = if swizzle.bits() == 0 { 1 << 20 } else { 1_i64 << swizzle.base().min(20) };
        whole.min(self.aligned)
    }

    /// The address of a swizzled offset. First comes what is of the thread, which is the same for all stages; what is known
    /// comes last, where it becomes an immediate.
    pub(super) fn address(&self, offset: Offset, loc: Loc) -> RawValue {
        let element = |base, index| place::element_address(Space::Shared, T::TYPE, base, index, loc);
        let base = element(self.base, offset.value.map(Operand::from));
        let base = element(base, self.shift.map(Operand::from));
        element(base, Some(Operand::Known(ScalarType::I32, offset.known)))
    }

    /// The tensor with its last mode fixed at `index`, a run-time or host number: one stage of a pipeline.
    ///
    /// Stages must be whole periods of the swizzle apart, so that each begins where the swizzle begins anew.
    #[track_caller]
    pub fn stage(&self, index: impl Coordinate) -> Self {
        let loc = Location::caller();
        let layout = self.layout.layout();
        let rank = layout.rank();
        let last = rank.saturating_sub(1);
        let parts = layout.mode(&[last]).and_then(|mode| {
            let stride = mode.coalesce()?.stride().leaves().first().map_or(Ok(0), |stride| stride.get("stage"))?;
            Ok((mode.static_size()?, stride, layout.take(0..last)?, mode.coalesce()?.rank()))
        });
        let Some((stages, stride, inner, simple)) = or_stop(parts, loc) else { return self.clone() };
        let period = self.layout.swizzle().period();
        if simple != 1 || self.layout.swizzle().bits() > 0 && stride % period != 0 {
            let message = format!("the stages of {} are no whole periods of its swizzle apart", self.layout);
            trace::error(loc, Diagnostic::error(message).label(format!("the period is {period} elements")));
            return self.clone();
        }
        let index = index.coordinate(loc);
        let known = match index {
            place::Coord::Known(known) if (0..stages).contains(&known) => Some(known),
            place::Coord::Known(known) => {
                trace::error(loc, Diagnostic::error(format!("stage {known} of {stages}")).label("out of range"));
                return self.clone();
            }
            _ => None,
        };
        let offset = match known {
            Some(known) => int(known * stride, loc),
            None => scaled(index.narrow(loc), stride, loc),
        };
        let shift = match self.shift {
            Some(shift) => arith::once(Binary::Add, ScalarType::I32, shift, offset, loc),
            None => offset,
        };
        let shift = (trace::known(shift) != Some(0)).then_some(shift);
        // The largest power of two that divides all stages' starts, or this one's; 0 has no end of zeros.
        let start = known.unwrap_or(1).wrapping_mul(stride);
        let aligned = self.aligned.min(1 << start.trailing_zeros().min(ALIGNED.trailing_zeros()));
        let layout = ComposedLayout::with_offset(self.layout.swizzle(), self.layout.offset(), inner);
        Self { layout: or_stop(layout, loc).unwrap_or_else(ComposedLayout::unit), shift, aligned, ..self.clone() }
    }

    /// The same memory as elements of another type under another layout, which must find room in it. A barrier belongs
    /// between the last use as the one and the first as the other.
    #[track_caller]
    pub fn reuse<U: Scalar>(&self, layout: impl IntoLayout) -> SharedTensor<U> {
        let loc = Location::caller();
        let sizes = layout.into_layout().and_then(|layout| {
            let bytes = layout.cosize()?.saturating_mul(U::BYTES as i64);
            Ok((layout, bytes, self.layout.cosize()?.saturating_mul(T::BYTES as i64)))
        });
        let (layout, bytes, room) = or_stop(sizes, loc).unwrap_or_else(|| (ComposedLayout::unit(), 1, 1));
        if bytes > room || self.shift.is_some() || self.layout.offset() != 0 {
            let message = format!("{layout} of {} takes {bytes} bytes of a tensor of {room}", U::TYPE);
            let label = match bytes > room {
                true => "there is not room enough",
                false => "only a whole tensor's memory can be used again, not a stage or tile of it",
            };
            trace::error(loc, Diagnostic::error(message).label(label));
        }
        SharedTensor { base: self.base, layout, shift: None, aligned: ALIGNED, element: PhantomData }
    }

    /// The two modes exchanged: a tile that is stored `(k, n)` as one of `(n, k)`.
    #[track_caller]
    pub fn transposed(&self) -> Self {
        let loc = Location::caller();
        let (inner, swizzle) = (self.layout.layout(), self.layout.swizzle());
        if inner.rank() != 2 {
            let message = format!("the transpose of {}, which has {} modes", self.layout, inner.rank());
            trace::error(loc, Diagnostic::error(message).help("fix its other modes first, with `.stage(..)`"));
            return self.clone();
        }
        let layout =
            inner.select(&[1, 0]).and_then(|inner| ComposedLayout::with_offset(swizzle, self.layout.offset(), inner));
        match or_stop(layout, loc) {
            Some(layout) => Self { layout, ..self.clone() },
            None => self.clone(),
        }
    }

    /// A part of the tensor by host coordinates: see [`Layout::local_tile`].
    #[track_caller]
    pub fn local_tile(&self, tiler: impl Into<Tiler>, coordinate: impl Into<Coord>) -> Self {
        let loc = Location::caller();
        let ends = self.layout.cosize().and_then(|all| {
            let part = self.layout.local_tile(tiler, coordinate)?.layout;
            Ok((all, part.cosize()?, part))
        });
        match or_stop(ends, loc) {
            Some((all, end, layout)) if end <= all => Self { layout, ..self.clone() },
            Some((all, end, layout)) => {
                let message = format!("the tile {layout} reaches element {end} of {all}");
                let label = "a tile that does not divide the tensor reaches beyond its end";
                trace::error(loc, Diagnostic::error(message).label(label));
                self.clone()
            }
            None => self.clone(),
        }
    }
}
