//! Lacewing: GPU kernels in Rust.
//!
//! A kernel is a Rust function under `#[kernel]`. Run once for a [`Target`], it builds MLIR; that is
//! lowered to PTX or AMDGCN, or executed as it stands by an emulator that checks every access.
//!
//! ```text
//! prelude   what the file of a kernel and its launch imports
//! runtime   devices, tensors, launches, the emulator, kernels by name
//! core      types, trace, dialect, targets, lowering
//! kernels   the bundled kernels and their references on the host
//! cli       the `lacewing` command, for any set of kernels
//! check!    the debugging ladder of `lacewing check`, in a test
//! ```

extern crate self as lacewing;

pub mod cli;
mod trial;

#[cfg(doctest)]
mod book;

pub use lacewing_core as core;
pub use lacewing_kernels as kernels;
pub use lacewing_runtime as runtime;

pub use lacewing_core::{Diagnostic, SourceLocation, Target, Traced};
pub use lacewing_runtime::{Device, Error};
#[doc(hidden)]
pub use trial::__check;

#[doc(hidden)]
pub use lacewing_core::rt;

/// What the file of a kernel and its launch imports: `use lacewing::prelude::*`.
pub mod prelude {
    pub use lacewing_core::Target;
    pub use lacewing_core::prelude::*;
    pub use lacewing_runtime::{DevTensor, Device, HostTensor, KernelExt};
}
