//! The parameters of a kernel as types, for launches of kernels whose source is not there.

use crate::ParamKind;
use crate::types::{
    BF16, Bool, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, Index, Scalar, Tensor, TensorMap, TensorMut, U8, U16,
    U32, U64, Uniform,
};

/// A type that a run-time parameter of a kernel can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no type of a kernel's run-time parameter",
    label = "not a kernel parameter",
    note = "these are scalars (`F32`, `I32`, ..), `Tensor<T, RANK>`, `TensorMut<T, RANK>` and `TensorMap<T, RANK>`"
)]
pub trait Parameter {
    /// What it is.
    const KIND: ParamKind;
}

/// The parameters of a kernel, as a tuple.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of a kernel's run-time parameters",
    note = "it is a tuple of parameter types, at most sixteen; `(Tensor<F32, 1>,)` for a single one"
)]
pub trait Signature {
    /// What each is, in order.
    const KINDS: &'static [ParamKind];
}

macro_rules! scalars {
    ($($name:ident)*) => {$(
        impl Parameter for $name {
            const KIND: ParamKind = ParamKind::Scalar(<$name as Scalar>::TYPE);
        }
    )*};
}
scalars! { Bool I8 I16 I32 I64 Index U8 U16 U32 U64 F16 BF16 F32 F64 F8E4M3 F8E5M2 }

impl<T: Scalar> Parameter for Uniform<T> {
    const KIND: ParamKind = ParamKind::Scalar(T::TYPE);
}

impl<T: Scalar, const R: usize> Parameter for Tensor<T, R> {
    const KIND: ParamKind = ParamKind::Tensor { elem: T::TYPE, rank: R, mutable: false };
}
impl<T: Scalar, const R: usize> Parameter for TensorMut<T, R> {
    const KIND: ParamKind = ParamKind::Tensor { elem: T::TYPE, rank: R, mutable: true };
}

/// The box and its swizzle are the kernel's: the type does not say them.
impl<T: Scalar, const R: usize> Parameter for TensorMap<T, R> {
    const KIND: ParamKind =
        ParamKind::TensorMap { elem: T::TYPE, rank: R, box_shape: [0; 5], swizzle: 0, mutable: false };
}

/// Whether a parameter of a kernel has the type that a signature gives.
pub fn has_type(parameter: &ParamKind, signature: &ParamKind) -> bool {
    match (parameter, signature) {
        (ParamKind::TensorMap { elem, rank, .. }, ParamKind::TensorMap { elem: other, rank: other_rank, .. }) => {
            (elem, rank) == (other, other_rank)
        }
        (parameter, signature) => parameter == signature,
    }
}

impl Signature for () {
    const KINDS: &'static [ParamKind] = &[];
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {$(
        impl<$($name: Parameter),*> Signature for ($($name,)*) {
            const KINDS: &'static [ParamKind] = &[$($name::KIND),*];
        }
    )*};
}
tuples! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
    (A B C D E F G H I) (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
    (A B C D E F G H I J K L M) (A B C D E F G H I J K L M N) (A B C D E F G H I J K L M N O)
    (A B C D E F G H I J K L M N O P)
}
