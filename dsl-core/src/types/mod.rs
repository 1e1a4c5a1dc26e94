//! The types of the kernel language.

pub(crate) mod arith;
mod scalar;
mod scalar_type;

pub use scalar::{
    BF16, Bool, CastTarget, Cmp, F8E4M3, F8E5M2, F16, F32, F64, Float, I8, I16, I32, I64, Int, Num, Scalar, ScalarExt,
    U8, U16, U32, U64,
};
pub use scalar_type::ScalarType;

/// Shared memory handed out while a kernel is traced.
#[derive(Clone, Debug, Default)]
pub struct SharedLayout {
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Largest alignment so far.
    pub(crate) align: u64,
}
