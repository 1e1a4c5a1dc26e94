//! The host types that a tensor's elements can have.

use half::{bf16, f16};
use lacewing_core::ScalarType;
use lacewing_core::types::{self, Scalar};

use crate::error::Error;

/// A host type that tensors are made of: `f32`, `half::f16`, `i32`, ...
///
/// Sealed: the set of element types is that of the kernel language.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element type of a tensor",
    note = "a tensor holds bool, i8 to i64, u8 to u64, f16, bf16, f32, f64 or an 8-bit float"
)]
pub trait Element: sealed::Sealed + Copy + Send + Sync + PartialEq + 'static {
    /// The type of the kernel language that it is the host's form of.
    type Dsl: Scalar;
    /// The same as a value.
    const TYPE: ScalarType;
    /// The little-endian bytes of elements.
    fn to_bytes(elements: &[Self]) -> Vec<u8>;
    /// Elements from little-endian bytes. Refused when the bytes are no whole number of elements,
    /// or (for `bool`) no valid ones.
    fn from_bytes(bytes: &[u8]) -> Result<Vec<Self>, Error>;
    /// The bits of one, zero-extended.
    fn bits(self) -> u64;
}

/// `Self` is the host's form of elements of type `T` in a kernel.
///
/// Generic host code that launches generic kernels asks for `T::Host: ElementOf<T>`.
#[diagnostic::on_unimplemented(
    message = "the kernel's tensor has elements of type `{T}`, but this one holds `{Self}`",
    note = "a launch converts nothing: make the tensor with the element type that the kernel names"
)]
pub trait ElementOf<T: Scalar>: Element {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($host:ty, $name:ident, $variant:ident;)*) => {$(
        impl sealed::Sealed for $host {}
        impl Element for $host {
            type Dsl = types::$name;
            const TYPE: ScalarType = ScalarType::$variant;

            fn to_bytes(elements: &[Self]) -> Vec<u8> {
                elements.iter().flat_map(|x| x.to_le_bytes()).collect()
            }

            fn from_bytes(bytes: &[u8]) -> Result<Vec<Self>, Error> {
                let (chunks, rest) = bytes.as_chunks::<{ size_of::<$host>() }>();
                if !rest.is_empty() {
                    return Err(ragged(bytes.len(), ScalarType::$variant));
                }
                Ok(chunks.iter().map(|chunk| <$host>::from_le_bytes(*chunk)).collect())
            }

            fn bits(self) -> u64 {
                let mut wide = [0; 8];
                wide.iter_mut().zip(self.to_le_bytes()).for_each(|(wide, byte)| *wide = byte);
                u64::from_le_bytes(wide)
            }
        }
        impl ElementOf<types::$name> for $host {}
    )*};
}

plain! {
    i8, I8, I8;
    i16, I16, I16;
    i32, I32, I32;
    i64, I64, I64;
    u8, U8, U8;
    u16, U16, U16;
    u32, U32, U32;
    u64, U64, U64;
    f16, F16, F16;
    bf16, BF16, Bf16;
    f32, F32, F32;
    f64, F64, F64;
}

macro_rules! float8 {
    ($($name:ident;)*) => {$(
        impl sealed::Sealed for float8::$name {}
        impl Element for float8::$name {
            type Dsl = types::$name;
            const TYPE: ScalarType = ScalarType::$name;

            fn to_bytes(elements: &[Self]) -> Vec<u8> {
                elements.iter().map(float8::$name::to_bits).collect()
            }

            fn from_bytes(bytes: &[u8]) -> Result<Vec<Self>, Error> {
                Ok(bytes.iter().map(|byte| float8::$name::from_bits(*byte)).collect())
            }

            fn bits(self) -> u64 {
                self.to_bits().into()
            }
        }
        impl ElementOf<types::$name> for float8::$name {}
    )*};
}

float8! { F8E4M3; F8E5M2; }

/// Positions lie in memory as 64-bit integers.
impl ElementOf<types::Index> for i64 {}

impl sealed::Sealed for bool {}
impl Element for bool {
    type Dsl = types::Bool;
    const TYPE: ScalarType = ScalarType::Bool;

    fn to_bytes(elements: &[Self]) -> Vec<u8> {
        elements.iter().map(|x| u8::from(*x)).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Vec<Self>, Error> {
        // Any other byte is what a kernel or a file got wrong, and would read as `true` here and
        // as something else on a device that tests the lowest bit.
        bytes
            .iter()
            .map(|byte| match byte {
                0 => Ok(false),
                1 => Ok(true),
                other => Err(Error::Shape(format!("{other} is no bool: neither 0 nor 1"))),
            })
            .collect()
    }

    fn bits(self) -> u64 {
        self.into()
    }
}
impl ElementOf<types::Bool> for bool {}

fn ragged(bytes: usize, scalar: ScalarType) -> Error {
    Error::Shape(format!("{bytes} bytes are no whole number of {} elements", scalar.name()))
}
