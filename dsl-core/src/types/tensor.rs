//! Views of global memory: what a kernel takes as a parameter.

use std::marker::PhantomData;
use std::panic::Location;

use super::arith::{self, Binary};
use super::place::{self, Access, Coord, GlobalRead, GlobalWrite, Indices, Place};
use super::{Bool, I32, I64, Scalar};
use crate::rt::{Carried, KernelParam, ParamBuilder, ParamValues, State, Visitor};
use crate::trace::{self, Constant, IrType, Loc, Operand, RawValue, Space};
use crate::{Diagnostic, ScalarType};

/// Base address, extents (`i32`) and strides (`i64`, in elements) of a view.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct View<const R: usize> {
    pub(crate) base: RawValue,
    pub(crate) extents: [RawValue; R],
    pub(crate) strides: [RawValue; R],
}

/// What [`View::rest`] gives.
#[derive(Debug)]
pub(crate) struct Rest<const R: usize> {
    pub(crate) base: RawValue,
    pub(crate) start: Option<RawValue>,
    pub(crate) left: [RawValue; R],
    pub(crate) strides: [RawValue; R],
}

impl<const R: usize> View<R> {
    fn take(values: &mut ParamValues) -> Self {
        let base = values.next();
        let extents = std::array::from_fn(|_| values.next());
        let strides = std::array::from_fn(|_| values.next());
        Self { base, extents, strides }
    }

    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
        self.extents.iter_mut().chain(&mut self.strides).for_each(|value| visitor.value(value));
    }

    /// Address of an element, in 64 bits before any multiplication.
    fn address(&self, index: [Coord; R], ty: ScalarType, loc: Loc) -> RawValue {
        if index.iter().any(|coordinate| coordinate.is_negative(loc)) {
            return trace::refused(IrType::Pointer(Space::Global), loc);
        }
        let terms = index.iter().zip(self.strides).filter(|(coordinate, _)| !matches!(coordinate, Coord::Known(0)));
        let terms = terms.map(|(coordinate, stride)| place::scaled(coordinate.wide(loc), stride, ScalarType::I64, loc));
        let offset = place::sum(terms, ScalarType::I64, loc);
        place::element_address(Space::Global, ty, self.base, offset, loc)
    }

    /// The tile at a tile coordinate: base moved, extents clamped to what is left.
    fn tile(&self, shape: [usize; R], coordinate: [Coord; R], ty: ScalarType, loc: Loc) -> Self {
        if coordinate.iter().any(|coordinate| coordinate.is_negative(loc)) {
            return Self { base: trace::refused(IrType::Pointer(Space::Global), loc), ..*self };
        }
        let mut extents = self.extents;
        let mut starts = Vec::new();
        let long = |op, a: Operand, b: Operand| arith::once(op, ScalarType::I64, a, b, loc);
        let dims = shape.into_iter().zip(coordinate).zip(self.strides);
        for (((size, coordinate), stride), extent) in dims.zip(&mut extents) {
            let size = Operand::Known(ScalarType::I64, size as i64);
            let start = Self::start(coordinate, size, loc);
            let whole = arith::widened(*extent, loc);
            let rest = start.map_or(whole, |start| long(Binary::Sub, whole.into(), start.into()));
            let below = long(Binary::Min, rest.into(), size);
            *extent = arith::narrowed(long(Binary::Max, below.into(), Operand::Known(ScalarType::I64, 0)), loc);
            starts.extend(start.map(|start| place::scaled(start, stride, ScalarType::I64, loc)));
        }
        let offset = place::sum(starts, ScalarType::I64, loc);
        let base = place::element_address(Space::Global, ty, self.base, offset, loc);
        Self { base, extents, strides: self.strides }
    }

    /// The first index of tile number `coordinate` of so many elements, as an `I64`; `None` stands for 0.
    fn start(coordinate: Coord, size: Operand, loc: Loc) -> Option<RawValue> {
        match coordinate {
            Coord::Known(0) => None,
            Coord::Known(index) => Some(Coord::Known(index.saturating_mul(size.known().unwrap_or(0))).wide(loc)),
            _ => Some(place::scaled(coordinate.wide(loc), size, ScalarType::I64, loc)),
        }
    }

    /// The base address, where the tile at a tile coordinate begins (elements from there, `None` for 0), and how much of the
    /// tensor is left from its first element on: 0 beyond the end, and up to all of the tensor.
    fn rest(&self, shape: [usize; R], coordinate: [Coord; R], loc: Loc) -> Rest<R> {
        let mut base = self.base;
        if coordinate.iter().any(|coordinate| coordinate.is_negative(loc)) {
            base = trace::refused(IrType::Pointer(Space::Global), loc);
        }
        let mut left = self.extents;
        let mut starts = Vec::new();
        for (((size, coordinate), stride), left) in shape.into_iter().zip(coordinate).zip(self.strides).zip(&mut left) {
            let size = Operand::Known(ScalarType::I64, size as i64);
            let Some(start) = Self::start(coordinate, size, loc) else { continue };
            let rest = arith::once(Binary::Sub, ScalarType::I64, arith::widened(*left, loc), start, loc);
            let zero = Operand::Known(ScalarType::I64, 0);
            *left = arith::narrowed(arith::once(Binary::Max, ScalarType::I64, rest, zero, loc), loc);
            starts.push(place::scaled(start, stride, ScalarType::I64, loc));
        }
        Rest { base, start: place::sum(starts, ScalarType::I64, loc), left, strides: self.strides }
    }

    fn part(of: &[RawValue; R], dim: usize, ty: IrType, loc: Loc) -> RawValue {
        of.get(dim).copied().unwrap_or_else(|| {
            let message = format!("dimension {dim} of a tensor of rank {R}");
            trace::error(loc, Diagnostic::error(message).label("dimensions count from 0"));
            trace::refused(ty, loc)
        })
    }

    /// Bytes from the base to the end of the last element, as an `I64`; 0 for an empty view.
    pub(crate) fn bytes(&self, ty: ScalarType, loc: Loc) -> RawValue {
        let int = |value| trace::constant(ScalarType::I64, Constant::Int(value), loc);
        let long = |op, a, b| arith::binary(op, ScalarType::I64, a, b, loc);
        let mut last = int(0);
        let mut filled: Option<Bool> = None;
        for (extent, stride) in self.extents.into_iter().zip(self.strides) {
            let extent = trace::emit1("arith.extsi", &[extent], IrType::I64, &[], loc);
            let reach = long(Binary::Mul, long(Binary::Sub, extent, int(1)), stride);
            last = if trace::known(last) == Some(0) { reach } else { long(Binary::Add, last, reach) };
            let some = Bool::from_raw(arith::compare(super::Cmp::Gt, ScalarType::I64, extent, int(0), loc));
            filled = Some(match filled {
                None => some,
                Some(before) => {
                    Bool::from_raw(trace::emit1("arith.andi", &[before.raw(), some.raw()], IrType::BOOL, &[], loc))
                }
            });
        }
        let bytes = long(Binary::Mul, long(Binary::Add, last, int(1)), int(ty.bytes() as i64));
        match filled {
            None => bytes,
            Some(filled) => trace::emit1("arith.select", &[filled.raw(), bytes, int(0)], IrType::I64, &[], loc),
        }
    }
}

/// A tensor of either kind.
pub trait GlobalTensor: Copy {
    /// Element type.
    type Elem: Scalar;
    /// What its places allow.
    type Access: Access;
    #[doc(hidden)]
    fn bytes(self, loc: Loc) -> RawValue;
    #[doc(hidden)]
    fn base(self) -> RawValue;
}

macro_rules! tensor {
    ($(#[$doc:meta])* $name:ident $access:ident $mutable:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<T: Scalar, const R: usize> {
            view: View<R>,
            element: PhantomData<T>,
        }

        impl<T: Scalar, const R: usize> State for $name<T, R> {
            fn visit(&mut self, visitor: &mut dyn Visitor) {
                self.view.visit(visitor);
            }
        }
        impl<T: Scalar, const R: usize> Carried for $name<T, R> {}

        impl<T: Scalar, const R: usize> KernelParam for $name<T, R> {
            fn declare(name: &str, builder: &mut ParamBuilder) {
                builder.tensor(name, T::TYPE, R, $mutable);
            }
            fn take(values: &mut ParamValues) -> Self {
                Self { view: View::take(values), element: PhantomData }
            }
        }

        impl<T: Scalar, const R: usize> GlobalTensor for $name<T, R> {
            type Elem = T;
            type Access = $access;
            fn bytes(self, loc: Loc) -> RawValue {
                self.view.bytes(T::TYPE, loc)
            }
            fn base(self) -> RawValue {
                self.view.base
            }
        }

        impl<T: Scalar, const R: usize> $name<T, R> {
            /// The element at an index: one `I32`, `I64`, `Index`, `usize` or `i32` for each dimension.
            ///
            /// The address is computed in 64 bits; a negative constant is a trace error. Whether the index
            /// is inside the tensor is the kernel's business; the emulator checks it at each access.
            #[track_caller]
            pub fn at(self, index: impl Indices<R>) -> Place<T, $access> {
                let loc = Location::caller();
                Place::new(self.view.address(index.coordinates(loc), T::TYPE, loc))
            }

            /// The tensor from the first element of a tile on.
            pub(crate) fn rest(self, shape: [usize; R], coordinate: impl Indices<R>, loc: Loc) -> Rest<R> {
                self.view.rest(shape, coordinate.coordinates(loc), loc)
            }

            /// The tensor with another extent in dimension `dim`: less of it, if the kernel knows of an earlier end. That
            /// there are as many elements is the kernel's business.
            #[track_caller]
            pub fn with_extent(mut self, dim: usize, extent: I32) -> Self {
                match self.view.extents.get_mut(dim) {
                    Some(old) => *old = extent.raw(),
                    None => drop(View::part(&self.view.extents, dim, IrType::I32, Location::caller())),
                }
                self
            }

            /// Elements in dimension `dim`, a host number below the rank.
            #[track_caller]
            pub fn extent(self, dim: usize) -> I32 {
                I32::from_raw(View::part(&self.view.extents, dim, IrType::I32, Location::caller()))
            }

            /// Elements from one index of dimension `dim` to the next, in memory.
            #[track_caller]
            pub fn stride(self, dim: usize) -> I64 {
                I64::from_raw(View::part(&self.view.strides, dim, IrType::I64, Location::caller()))
            }

            /// Tile number `coordinate` of the tensor cut into tiles of `shape` elements, as a tensor whose
            /// index 0 is the tile's first element. Its extents are those of the tile, less at the
            /// tensor's end, and 0 beyond it; its strides are the tensor's.
            #[track_caller]
            pub fn local_tile(self, shape: [usize; R], coordinate: impl Indices<R>) -> Self {
                let loc = Location::caller();
                Self { view: self.view.tile(shape, coordinate.coordinates(loc), T::TYPE, loc), ..self }
            }
        }
    };
}
tensor! {
    /// A view of global memory of `R` dimensions that the kernel reads: a kernel parameter.
    ///
    /// It is passed as an address, `R` extents and `R` strides; strides count elements and may be anything,
    /// so that a transposed or broadcast view is a tensor too.
    Tensor GlobalRead false
}
tensor! {
    /// A view of global memory of `R` dimensions that the kernel reads and writes: a kernel parameter.
    ///
    /// It is passed as [`Tensor`] is.
    TensorMut GlobalWrite true
}

macro_rules! matrices {
    ($($tensor:ident $rank:literal $leading:literal)*) => { $(
        impl<T: Scalar> $tensor<T, $rank> {
            /// The matrix of the last two dimensions at an index of those before.
            #[track_caller]
            pub fn matrix(self, leading: impl Indices<$leading>) -> $tensor<T, 2> {
                let loc = Location::caller();
                let leading = leading.coordinates(loc);
                let mut index = [Coord::Known(0); $rank];
                index.iter_mut().zip(leading).for_each(|(index, leading)| *index = leading);
                let base = self.view.address(index, T::TYPE, loc);
                let last = |all: [RawValue; $rank]| [all[$leading], all[$leading + 1]];
                let view = View { base, extents: last(self.view.extents), strides: last(self.view.strides) };
                $tensor { view, element: PhantomData }
            }
        }
    )* };
}
matrices! { Tensor 3 1 Tensor 4 2 TensorMut 3 1 TensorMut 4 2 }

impl<T: Scalar, const R: usize> TensorMut<T, R> {
    /// The same view, for reading.
    pub fn as_tensor(self) -> Tensor<T, R> {
        Tensor { view: self.view, element: PhantomData }
    }
}
