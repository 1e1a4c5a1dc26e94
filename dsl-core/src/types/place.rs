//! Places: one element of global or shared memory, with the address computed.

use std::marker::PhantomData;
use std::panic::Location;

use super::arith::{self, Binary, Cmp, Rounding};
use super::{Bool, Scalar, Vector};
use crate::rt::{Carried, Poison, State, Visitor};
use crate::trace::{self, Attr, Constant, IrType, Loc, Operand, RawValue, Space};
use crate::{Diagnostic, ScalarType};

/// What may be done at a place, and in which memory it is.
pub trait Access: Copy + std::fmt::Debug + 'static {
    #[doc(hidden)]
    const SPACE: Space;
}

/// Places of a [`super::Tensor`]: global memory that the kernel only reads.
#[derive(Clone, Copy, Debug)]
pub struct GlobalRead;
/// Places of a [`super::TensorMut`]: global memory that the kernel may write.
#[derive(Clone, Copy, Debug)]
pub struct GlobalWrite;
/// Places of shared memory (LDS).
#[derive(Clone, Copy, Debug)]
pub struct InShared;
/// Places of the shared memory of a block of the cluster: what `.of_block(rank)` gives.
#[derive(Clone, Copy, Debug)]
pub struct InCluster;

impl Access for GlobalRead {
    const SPACE: Space = Space::Global;
}
impl Access for GlobalWrite {
    const SPACE: Space = Space::Global;
}
impl Access for InShared {
    const SPACE: Space = Space::Shared;
}
impl Access for InCluster {
    const SPACE: Space = Space::Cluster;
}

/// An [`Access`] that allows stores.
#[diagnostic::on_unimplemented(
    message = "this memory cannot be written: it belongs to a `Tensor`, which the kernel only reads",
    label = "write to a read-only tensor",
    note = "take the parameter as `TensorMut<T, RANK>` to store through it"
)]
pub trait Writable: Access {}
impl Writable for GlobalWrite {}
impl Writable for InShared {}
impl Writable for InCluster {}

/// An [`Access`] to global memory.
#[diagnostic::on_unimplemented(
    message = "this needs a place in global memory, found one in shared memory",
    label = "not in global memory"
)]
pub trait InGlobal: Access {}
impl InGlobal for GlobalRead {}
impl InGlobal for GlobalWrite {}

/// One element of type `T` in memory: the result of `.at(..)`.
///
/// The address is computed where the place is made; loads and stores at it come later, as often as
/// wanted. Loads and stores of vectors reach the elements that follow in memory, whatever the tensor's
/// strides, and need an address that is a multiple of the vector's size: the emulator checks both.
#[must_use = "a place is only an address: load from it or store to it"]
#[derive(Clone, Copy, Debug)]
pub struct Place<T: Scalar, A: Access> {
    address: RawValue,
    kind: PhantomData<(T, A)>,
}

impl<T: Scalar, A: Access> State for Place<T, A> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.address);
    }
}
impl<T: Scalar, A: Access> Carried for Place<T, A> {}
impl<T: Scalar, A: Access> Poison for Place<T, A> {
    fn poison() -> Self {
        Self::new(crate::rt::poison_value(IrType::Pointer(A::SPACE)))
    }
}

/// The type under which a value lies in memory: a `Bool` is a byte.
pub(crate) fn stored(ty: IrType) -> IrType {
    match ty.element() {
        Some(ScalarType::Bool) => ty.with_element(ScalarType::U8),
        _ => ty,
    }
}

/// A value as it is stored.
pub(crate) fn to_memory(ty: IrType, value: RawValue, loc: Loc) -> RawValue {
    match ty.element() {
        Some(ScalarType::Bool) => arith::cast(ScalarType::Bool, ScalarType::U8, value, Rounding::NearestEven, loc),
        _ => value,
    }
}

/// A value from what was loaded.
pub(crate) fn from_memory(ty: IrType, value: RawValue, loc: Loc) -> RawValue {
    if ty.element() != Some(ScalarType::Bool) {
        return value;
    }
    let zero = trace::constant(ScalarType::U8, Constant::Int(0), loc);
    let zero = match ty {
        IrType::Vector(..) => trace::emit1("vector.broadcast", &[zero], stored(ty), &[], loc),
        _ => zero,
    };
    arith::compare(Cmp::Ne, ScalarType::U8, value, zero, loc)
}

/// The element type of an address computation: what occupies as many bytes and LLVM knows.
fn address_unit(ty: ScalarType) -> &'static str {
    match ty {
        ScalarType::F16 => "f16",
        ScalarType::Bf16 => "bf16",
        ScalarType::F32 => "f32",
        ScalarType::F64 => "f64",
        other => match other.bytes() {
            1 => "i8",
            2 => "i16",
            4 => "i32",
            _ => "i64",
        },
    }
}

/// The address `index` elements after `base`; `index` is an `I64`, or an `I32` in shared memory of any block, and `None`
/// stands for 0. It is made once: see [`trace::once`].
pub(crate) fn element_address(
    space: Space,
    ty: ScalarType,
    base: RawValue,
    index: Option<impl Into<Operand>>,
    loc: Loc,
) -> RawValue {
    let Some(index) = index.map(Into::into).filter(|index| index.known() != Some(0)) else { return base };
    let attributes = [
        ("elem_type", Attr::Text(address_unit(ty).to_owned())),
        // LLVM's mark for "this index is an operand".
        ("rawConstantIndices", Attr::Text("array<i32: -2147483648>".to_owned())),
    ];
    trace::once("llvm.getelementptr", &[base.into(), index], IrType::Pointer(space), &attributes, loc)
}

/// Loads a scalar or vector; under a mask, with what stands for it where the mask is false.
pub(super) fn read(address: RawValue, ty: IrType, mask: Option<(Bool, RawValue)>, loc: Loc) -> RawValue {
    let align = [("align", Attr::Int(size(ty)))];
    let value = match mask {
        None => trace::emit1("lw.load", &[address], stored(ty), &align, loc),
        Some((mask, other)) => {
            let operands = [address, mask.raw(), to_memory(ty, other, loc)];
            trace::emit1("lw.load_masked", &operands, stored(ty), &align, loc)
        }
    };
    from_memory(ty, value, loc)
}

/// Stores a scalar or vector, where the mask is true if there is one.
pub(super) fn write(address: RawValue, ty: IrType, value: RawValue, mask: Option<Bool>, loc: Loc) {
    let align = [("align", Attr::Int(size(ty)))];
    let value = to_memory(ty, value, loc);
    match mask {
        None => trace::emit0("lw.store", &[value, address], &align, loc),
        Some(mask) => trace::emit0("lw.store_masked", &[value, address, mask.raw()], &align, loc),
    }
}

impl<T: Scalar, A: Access> Place<T, A> {
    pub(crate) fn new(address: RawValue) -> Self {
        Self { address, kind: PhantomData }
    }

    pub(crate) fn address(self) -> RawValue {
        self.address
    }

    pub(crate) fn element_type(self) -> ScalarType {
        T::TYPE
    }

    fn read(self, ty: IrType, mask: Option<(Bool, RawValue)>, loc: Loc) -> RawValue {
        read(self.address, ty, mask, loc)
    }

    fn write(self, ty: IrType, value: RawValue, mask: Option<Bool>, loc: Loc) {
        write(self.address, ty, value, mask, loc);
    }

    /// The element.
    #[track_caller]
    pub fn load(self) -> T {
        T::from_raw(self.read(IrType::Scalar(T::TYPE), None, Location::caller()))
    }

    /// The element where `mask` holds, else `other`; memory is not touched there.
    #[track_caller]
    pub fn load_if(self, mask: Bool, other: T) -> T {
        T::from_raw(self.read(IrType::Scalar(T::TYPE), Some((mask, other.raw())), Location::caller()))
    }

    /// The element and the `N - 1` that follow it in memory, in one access.
    ///
    /// The address must be a multiple of `N * T::BYTES` bytes.
    #[track_caller]
    pub fn load_vec<const N: usize>(self) -> Vector<T, N> {
        Vector::from_raw(self.read(Vector::<T, N>::TYPE, None, Location::caller()))
    }

    /// [`Place::load_vec`] where `mask` holds, else `other`; memory is not touched there.
    #[track_caller]
    pub fn load_vec_if<const N: usize>(self, mask: Bool, other: Vector<T, N>) -> Vector<T, N> {
        Vector::from_raw(self.read(Vector::<T, N>::TYPE, Some((mask, other.raw())), Location::caller()))
    }

    /// The place `elements` elements further on in memory (back, if negative).
    #[track_caller]
    pub fn offset(self, elements: impl Coordinate) -> Self {
        let loc = Location::caller();
        let index = match (A::SPACE, elements.coordinate(loc)) {
            (_, Coord::Known(0)) => None,
            (Space::Global, index) => Some(index.wide(loc)),
            (Space::Shared | Space::Cluster, index) => Some(index.narrow(loc)),
        };
        Self::new(element_address(A::SPACE, T::TYPE, self.address, index, loc))
    }
}

impl<T: Scalar, A: Access> Place<T, A> {
    /// Stores an element.
    #[track_caller]
    pub fn store(self, value: T)
    where
        A: Writable,
    {
        self.write(IrType::Scalar(T::TYPE), value.raw(), None, Location::caller());
    }

    /// Stores an element where `mask` holds.
    #[track_caller]
    pub fn store_if(self, mask: Bool, value: T)
    where
        A: Writable,
    {
        self.write(IrType::Scalar(T::TYPE), value.raw(), Some(mask), Location::caller());
    }

    /// Stores the element and the `N - 1` that follow it in memory, in one access.
    ///
    /// The address must be a multiple of `N * T::BYTES` bytes.
    #[track_caller]
    pub fn store_vec<const N: usize>(self, value: Vector<T, N>)
    where
        A: Writable,
    {
        self.write(Vector::<T, N>::TYPE, value.raw(), None, Location::caller());
    }

    /// [`Place::store_vec`] where `mask` holds.
    #[track_caller]
    pub fn store_vec_if<const N: usize>(self, mask: Bool, value: Vector<T, N>)
    where
        A: Writable,
    {
        self.write(Vector::<T, N>::TYPE, value.raw(), Some(mask), Location::caller());
    }
}

/// Bytes of a value in memory.
fn size(ty: IrType) -> i64 {
    let element = ty.element().map_or(1, ScalarType::bytes);
    let count = if let IrType::Vector(_, count) = ty { count } else { 1 };
    (element * count) as i64
}

/// One index of a tensor: `I32`, `I64`, `Index`, `usize` or `i32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index",
    label = "expected `I32`, `I64`, `Index`, `usize` or `i32`",
    note = "convert with `.cast::<I32>()`"
)]
pub trait Coordinate: Copy {
    #[doc(hidden)]
    fn coordinate(self, loc: Loc) -> Coord;
}

/// An index, as far as the trace knows it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Coord {
    /// A constant.
    Known(i64),
    /// A run-time index of 32 bits.
    Narrow(RawValue),
    /// A run-time index of 64 bits.
    Wide(RawValue),
}

impl Coord {
    /// As an `I64`.
    pub(crate) fn wide(self, loc: Loc) -> RawValue {
        match self {
            Self::Known(value) => trace::constant(ScalarType::I64, Constant::Int(value), loc),
            Self::Narrow(value) => arith::widened(value, loc),
            Self::Wide(value) => value,
        }
    }

    /// As an `I32`: for shared memory, which is smaller than 4 GiB.
    pub(crate) fn narrow(self, loc: Loc) -> RawValue {
        match self {
            Self::Known(value) => trace::constant(ScalarType::I32, Constant::Int(value), loc),
            Self::Narrow(value) => value,
            Self::Wide(value) => arith::narrowed(value, loc),
        }
    }

    /// Whether it is below 0 for certain; reports that.
    pub(crate) fn is_negative(self, loc: Loc) -> bool {
        match self {
            Self::Known(value) if value < 0 => {
                trace::error(loc, Diagnostic::error(format!("index {value} is negative")));
                true
            }
            _ => false,
        }
    }
}

macro_rules! host_coordinates {
    ($($ty:ty)*) => { $(
        impl Coordinate for $ty {
            fn coordinate(self, _: Loc) -> Coord {
                Coord::Known(self as i64)
            }
        }
    )* };
}
host_coordinates! { usize i32 }

macro_rules! kernel_coordinates {
    ($($ty:ident $form:ident)*) => { $(
        impl Coordinate for super::$ty {
            fn coordinate(self, _: Loc) -> Coord {
                trace::known(self.raw()).map_or(Coord::$form(self.raw()), Coord::Known)
            }
        }
    )* };
}
kernel_coordinates! { I32 Narrow I64 Wide Index Wide }

/// The index of an element in a tensor or a piece of shared memory of rank `R`: one [`Coordinate`], or
/// a tuple or an array of them.
#[diagnostic::on_unimplemented(
    message = "a tensor of rank {R} cannot be indexed by `{Self}`",
    label = "not an index of rank {R}",
    note = "give one `I32` per dimension"
)]
pub trait Indices<const R: usize> {
    #[doc(hidden)]
    fn coordinates(self, loc: Loc) -> [Coord; R];
}

/// What `tensor[i]` would need, which nothing has.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a tensor is not indexed by `[..]`",
    label = "`[..]` is for host arrays",
    note = "to read, write `x.at(i).load()`; to write, `y.at(i).store(value)`"
)]
pub trait UseAt {
    #[doc(hidden)]
    fn element_of<T, C>(self, tensor: &C) -> &T;
    #[doc(hidden)]
    fn element_of_mut<T, C>(self, tensor: &mut C) -> &mut T;
}

/// Gives `tensor[i]` a text of its own, in place of rustc's "cannot index into a value".
macro_rules! not_indexed {
    ($([$($generics:tt)*] $ty:ty;)*) => { $(
        impl<I: UseAt, $($generics)*> std::ops::Index<I> for $ty {
            type Output = T;
            fn index(&self, index: I) -> &T {
                index.element_of(self)
            }
        }
        impl<I: UseAt, $($generics)*> std::ops::IndexMut<I> for $ty {
            fn index_mut(&mut self, index: I) -> &mut T {
                index.element_of_mut(self)
            }
        }
    )* };
}
not_indexed! {
    [T: Scalar, const R: usize] super::Tensor<T, R>;
    [T: Scalar, const R: usize] super::TensorMut<T, R>;
    [T: Scalar] super::SharedSlice<T>;
    [T: Scalar, const N: usize] super::SharedArray<T, N>;
    [T: Scalar, const R: usize, const C: usize, const P: usize] super::SharedTile<T, R, C, P>;
    [T: Scalar] super::Peer<super::SharedSlice<T>>;
    [T: Scalar, const N: usize] super::Peer<super::SharedArray<T, N>>;
    [T: Scalar, const R: usize, const C: usize, const P: usize] super::Peer<super::SharedTile<T, R, C, P>>;
}

macro_rules! single_indices {
    ($($ty:ty)*) => { $(
        impl Indices<1> for $ty {
            fn coordinates(self, loc: Loc) -> [Coord; 1] {
                [self.coordinate(loc)]
            }
        }
    )* };
}
single_indices! { super::I32 super::I64 super::Index usize i32 }

impl<C: Coordinate, const R: usize> Indices<R> for [C; R] {
    fn coordinates(self, loc: Loc) -> [Coord; R] {
        self.map(|coordinate| coordinate.coordinate(loc))
    }
}

macro_rules! tuple_indices {
    ($($rank:literal ($($name:ident)*))*) => { $(
        #[allow(non_snake_case, reason = "one name serves as type and as binding")]
        impl<$($name: Coordinate),*> Indices<$rank> for ($($name,)*) {
            fn coordinates(self, loc: Loc) -> [Coord; $rank] {
                let ($($name,)*) = self;
                [$($name.coordinate(loc)),*]
            }
        }
    )* };
}
tuple_indices! { 1 (A) 2 (A B) 3 (A B C) 4 (A B C D) 5 (A B C D E) 6 (A B C D E F) }

/// `coordinate * stride` in type `ty`, made once.
pub(crate) fn scaled(coordinate: RawValue, stride: impl Into<Operand>, ty: ScalarType, loc: Loc) -> RawValue {
    arith::once(Binary::Mul, ty, coordinate, stride, loc)
}

/// The sum of some values of type `ty`, made once; `None` stands for 0.
pub(crate) fn sum(terms: impl IntoIterator<Item = RawValue>, ty: ScalarType, loc: Loc) -> Option<RawValue> {
    terms.into_iter().reduce(|sum, term| arith::once(Binary::Add, ty, sum, term, loc))
}
