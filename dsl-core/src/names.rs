//! The types of kernels' parameters, as names.
//!
//! A program without a compiler never makes a value of the kernel language. It names types, for typed launches of
//! artifacts: `(F32, Tensor<F32, 1>, TensorMut<F32, 1>)`. With the feature `mlir` the module of the same name has the types
//! themselves.

use std::marker::PhantomData;

use half::{bf16, f16};

pub use crate::ScalarType;

/// A scalar type of the kernel language.
pub trait Scalar: Copy + std::fmt::Debug + 'static {
    /// The host's type with the same bits.
    type Host: Copy + Send + Sync + std::fmt::Debug + PartialEq + 'static;
    /// The type as data.
    const TYPE: ScalarType;
    /// Size in memory, in bytes.
    const BYTES: usize = Self::TYPE.bytes();
}

macro_rules! scalars {
    ($($(#[$doc:meta])* $name:ident $variant:ident $host:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl Scalar for $name {
            type Host = $host;
            const TYPE: ScalarType = ScalarType::$variant;
        }
    )*};
}

scalars! {
    /// A condition, passed as a byte.
    Bool Bool bool;
    /// A signed integer of 8 bits.
    I8 I8 i8;
    /// A signed integer of 16 bits.
    I16 I16 i16;
    /// A signed integer of 32 bits.
    I32 I32 i32;
    /// A signed integer of 64 bits.
    I64 I64 i64;
    /// A position: a signed integer of 64 bits of its own type.
    Index I64 usize;
    /// An unsigned integer of 8 bits.
    U8 U8 u8;
    /// An unsigned integer of 16 bits.
    U16 U16 u16;
    /// An unsigned integer of 32 bits.
    U32 U32 u32;
    /// An unsigned integer of 64 bits.
    U64 U64 u64;
    /// IEEE binary16.
    F16 F16 f16;
    /// The upper half of binary32 ("brain float").
    BF16 Bf16 bf16;
    /// IEEE binary32.
    F32 F32 f32;
    /// IEEE binary64.
    F64 F64 f64;
    /// OCP E4M3, an 8-bit float without infinities: largest 448.
    F8E4M3 F8E4M3 float8::F8E4M3;
    /// OCP E5M2, an 8-bit float: largest 57344.
    F8E5M2 F8E5M2 float8::F8E5M2;
}

/// A scalar that the lanes of a warp have alike, as every argument of a launch is.
#[derive(Clone, Copy, Debug)]
pub struct Uniform<T: Scalar>(PhantomData<T>);

/// A view of global memory of `R` dimensions that the kernel reads.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<T: Scalar, const R: usize>(PhantomData<T>);

/// A view of global memory of `R` dimensions that the kernel reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct TensorMut<T: Scalar, const R: usize>(PhantomData<T>);

/// A tensor of `R` dimensions in global memory that boxes are copied from and to.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap<T: Scalar, const R: usize>(PhantomData<T>);
