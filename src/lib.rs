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
//!
//! Features, both on by default: `mlir` is all of the above; `aot` launches kernels that were compiled before
//! ([`artifact!`]). A program with `aot` alone links neither LLVM nor MLIR.

extern crate self as lacewing;

#[cfg(feature = "mlir")]
pub mod cli;
#[cfg(feature = "mlir")]
mod trial;

#[cfg(all(doctest, feature = "mlir"))]
mod book;

pub use lacewing_core as core;
#[cfg(feature = "mlir")]
pub use lacewing_kernels as kernels;
pub use lacewing_runtime as runtime;

#[cfg(feature = "mlir")]
pub use lacewing_core::Traced;
pub use lacewing_core::{Diagnostic, SourceLocation, Target};
#[cfg(feature = "aot")]
pub use lacewing_runtime::artifact::Module;
pub use lacewing_runtime::{Device, Error};
#[doc(hidden)]
#[cfg(feature = "mlir")]
pub use trial::__check;

#[doc(hidden)]
#[cfg(feature = "mlir")]
pub use lacewing_core::rt;

/// What the file of a kernel and its launch imports: `use lacewing::prelude::*`.
#[cfg(feature = "mlir")]
pub mod prelude {
    pub use lacewing_core::Target;
    pub use lacewing_core::prelude::*;
    pub use lacewing_runtime::{DevTensor, Device, HostTensor, KernelExt};
}

/// What the file of a launch imports: `use lacewing::prelude::*`.
#[cfg(not(feature = "mlir"))]
pub mod prelude {
    pub use lacewing_core::Target;
    pub use lacewing_core::types::{
        BF16, Bool, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, Index, Scalar, Tensor, TensorMap, TensorMut, U8,
        U16, U32, U64,
    };
    pub use lacewing_runtime::{DevTensor, Device, HostTensor};
}

/// The artifact in a file, which becomes part of the program: `artifact!("axpy.lwa")`, with the path from the source file
/// that it stands in. Gives `Result<`[`Module`]`, `[`Error`]`>`.
///
/// `lacewing compile KERNEL --target T --emit artifact -o FILE` writes such files; [`Module::from_file`] reads them when the
/// program runs.
#[cfg(feature = "aot")]
#[macro_export]
macro_rules! artifact {
    ($path:literal) => {
        $crate::Module::from_artifact(::core::include_bytes!($path).as_slice())
    };
}
