//! Bounded access to global memory: out of range, reads give zero and writes vanish.

use std::marker::PhantomData;
use std::panic::Location;

use super::place::{self, Access, GlobalRead, InShared, Place, Writable};
use super::tensor::GlobalTensor;
use super::{Bool, I32, Scalar, Vector};
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, RawValue};

/// An offset into a buffer, counted in elements (not bytes). Made by [`elements`].
#[derive(Clone, Copy, Debug)]
pub struct Elements(I32);

/// An offset of so many elements: `elements(i)`, with `i` an `I32` or a host `i32`.
#[track_caller]
pub fn elements(count: impl Into<I32>) -> Elements {
    Elements(count.into())
}

impl State for Elements {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.0.visit(visitor);
    }
}
impl Carried for Elements {}

impl std::ops::Add for Elements {
    type Output = Elements;
    #[track_caller]
    fn add(self, rhs: Elements) -> Elements {
        Elements(self.0 + rhs.0)
    }
}

/// The memory of a tensor, from its first to its last element, as a bounded buffer: `A` says whether it may be
/// written.
///
/// On AMD it is a buffer resource, whose range the hardware checks; on NVIDIA each access is predicated.
/// The mask of an access holds whatever the buffer's size is.
#[derive(Clone, Copy, Debug)]
pub struct BufferRsrc<T: Scalar, A: Access = GlobalRead> {
    base: RawValue,
    bytes: RawValue,
    kind: PhantomData<(T, A)>,
}

impl<T: Scalar, A: Access> State for BufferRsrc<T, A> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
        visitor.value(&mut self.bytes);
    }
}
impl<T: Scalar, A: Access> Carried for BufferRsrc<T, A> {}

impl<T: Scalar, A: Access> BufferRsrc<T, A> {
    /// The buffer that a [`super::Tensor`] or [`super::TensorMut`] spans, computed from its extents and
    /// strides; an empty tensor spans nothing.
    #[track_caller]
    pub fn new(tensor: impl GlobalTensor<Elem = T, Access = A>) -> Self {
        Self { base: tensor.base(), bytes: tensor.bytes(Location::caller()), kind: PhantomData }
    }

    /// `N` elements from `offset` on, in one access; zeros where the access would leave the buffer, where
    /// the offset is negative, and where `mask` is false.
    #[track_caller]
    pub fn load<const N: usize>(self, offset: Elements, mask: Bool) -> Vector<T, N> {
        let loc = Location::caller();
        let ty = Vector::<T, N>::TYPE;
        let operands = [self.base, self.bytes, offset.0.raw(), mask.raw()];
        let value = trace::emit1("lw.buffer_load", &operands, place::stored(ty), &[], loc);
        Vector::from_raw(place::from_memory(ty, value, loc))
    }

    /// Starts copies of `N` elements a lane, from `offset` on, straight to LDS: as
    /// [`load_to_shared`](super::load_to_shared), with zeros for what the buffer does not have and where `mask` is false.
    ///
    /// `N` elements are 4 bytes, or on CDNA4 also 12 or 16. AMD only.
    #[track_caller]
    pub fn load_to_shared<const N: usize>(self, offset: Elements, destination: Place<T, InShared>, mask: Bool) {
        let loc = Location::caller();
        if !super::mma::can_copy_to_lds(N * T::BYTES, loc) {
            return;
        }
        let operands = [destination.address(), self.base, self.bytes, offset.0.raw(), mask.raw()];
        let attributes = [("bytes", Attr::Int((N * T::BYTES) as i64)), ("unit", Attr::Int(T::BYTES as i64))];
        trace::emit0("lw.buffer_load_lds", &operands, &attributes, loc);
    }

    /// Stores `N` elements from `offset` on, in one access; nothing where the access would leave the buffer,
    /// where the offset is negative, and where `mask` is false.
    #[track_caller]
    pub fn store<const N: usize>(self, offset: Elements, value: Vector<T, N>, mask: Bool)
    where
        A: Writable,
    {
        let loc = Location::caller();
        let value = place::to_memory(Vector::<T, N>::TYPE, value.raw(), loc);
        trace::emit0("lw.buffer_store", &[value, self.base, self.bytes, offset.0.raw(), mask.raw()], &[], loc);
    }
}
