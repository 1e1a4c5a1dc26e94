//! The types of the kernel language.

mod scalar_type;

pub use scalar_type::ScalarType;
