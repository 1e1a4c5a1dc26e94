//! What a kernel's file imports: `use lacewing::prelude::*`.

pub use crate::rt::{const_expr, constexpr, range, range_constexpr};
pub use crate::types::{
    BF16, Bool, CastTarget, F8E4M3, F8E5M2, F16, F32, F64, Float, I8, I16, I32, I64, Int, Num, Scalar, ScalarExt, U8,
    U16, U32, U64,
};
pub use lacewing_macros::*;
