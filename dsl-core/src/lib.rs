//! What a Lacewing kernel is made of: types, trace, dialect, targets, lowering.
//!
//! A function under `#[kernel]` becomes a *trace function*: run once for a [`Target`], it builds MLIR
//! through the thread's open trace ([`trace`]). What the standard dialects cannot say is an op of
//! the dialect `lw`, described once in [`dialect`]. [`lower`] turns a traced module into target code;
//! the emulator of `lacewing-runtime` executes it as it stands.
//!
//! This crate knows no device.
//!
//! Without the feature `mlir` (on by default) nothing of a compiler is left: what a launch must know of kernels
//! ([`KernelMeta`]), the names of their parameters' types ([`types`], [`signature`]), and targets. That is what a program
//! which loads artifacts needs, and it links neither LLVM nor MLIR.

extern crate self as lacewing_core;

#[cfg(feature = "mlir")]
pub mod atoms;
#[cfg(feature = "mlir")]
pub mod dialect;
mod error;
#[cfg(feature = "mlir")]
pub mod kernel;
#[cfg(feature = "mlir")]
pub mod layout;
#[cfg(feature = "mlir")]
pub mod lower;
mod meta;
#[cfg(feature = "mlir")]
pub mod mlir;
pub mod occupancy;
#[cfg(feature = "mlir")]
pub mod prelude;
#[cfg(feature = "mlir")]
pub mod rt;
mod scalar_type;
pub mod signature;
mod target;
#[cfg(feature = "mlir")]
pub mod trace;
#[cfg(feature = "mlir")]
pub mod types;
#[cfg(not(feature = "mlir"))]
#[path = "names.rs"]
pub mod types;

pub use error::{Diagnostic, Error, Severity, SourceLocation};
#[cfg(feature = "mlir")]
pub use kernel::{Traced, trace_kernel};
pub use meta::{KernelAttributes, KernelMeta, ParamDesc, ParamKind};
pub use scalar_type::ScalarType;
pub use target::{Target, Vendor};
