//! What a Lacewing kernel is made of: types, trace, dialect, targets, lowering.
//!
//! A function under `#[kernel]` becomes a *trace function*: run once for a [`Target`], it builds MLIR
//! through the thread's open trace ([`trace`]). What the standard dialects cannot say is an op of
//! the dialect `lw`, described once in [`dialect`]. [`lower`] turns a traced module into target code;
//! the emulator of `lacewing-runtime` executes it as it stands.
//!
//! This crate knows no device.

extern crate self as lacewing_core;

pub mod atoms;
pub mod dialect;
mod error;
pub mod kernel;
pub mod layout;
pub mod lower;
pub mod mlir;
pub mod prelude;
pub mod rt;
mod target;
pub mod trace;
pub mod types;

pub use error::{Diagnostic, Error, Severity, SourceLocation};
pub use kernel::{KernelAttributes, KernelMeta, ParamDesc, ParamKind, Traced, trace_kernel};
pub use target::{Target, Vendor};
pub use types::ScalarType;
