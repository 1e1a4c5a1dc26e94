//! Devices, launch and the checking emulator of Lacewing.
//!
//! ```text
//! Device      where kernels run: an emulated chip, or a GPU
//! DevTensor   a typed view of device memory: offset, extents, strides
//! PinnedVec   memory of the host that is copied while the host goes on
//! TensorMap   a tensor for the copy engine of sm_90 and later chips
//! Launch      `kernel.grid([x, y, z]).launch(&device, (arguments))`: checked, then run
//! record      what launches on the emulator did
//! bench       repeats the launches of a run, and takes their time
//! artifact    kernels that were compiled before, from a file
//! registry    kernels by name, for the command line
//! host        tensors in host memory; host_math: sums for references
//! check       the debugging ladder: tries a kernel until something is wrong, and says what
//! emulator    runs a traced kernel on the CPU and checks every access
//! cuda        runs it on an NVIDIA GPU, through the driver
//! ```
//!
//! This crate knows no syntax and no lowering.
//!
//! Without the feature `mlir` (on by default) there are neither the emulator nor a compiler: artifacts, on GPUs, are what is
//! left, in programs that link no MLIR.

#![cfg_attr(
    not(any(feature = "aot", feature = "mlir")),
    allow(dead_code, reason = "without either feature there is nothing to launch")
)]

#[cfg(feature = "aot")]
pub mod artifact;
#[cfg(feature = "mlir")]
pub mod bench;
#[cfg(feature = "mlir")]
pub mod cache;
#[cfg(feature = "mlir")]
pub mod check;
pub mod compare;
pub mod cuda;
pub mod device;
pub mod element;
#[cfg(feature = "mlir")]
pub mod emulator;
mod error;
mod event;
mod graph;
pub mod host;
pub mod host_math;
pub mod launch;
mod pinned;
#[cfg(feature = "mlir")]
mod placement;
#[cfg(feature = "mlir")]
pub mod record;
#[cfg(feature = "mlir")]
pub mod registry;
#[cfg(feature = "mlir")]
pub mod runner;
mod storage;
pub mod tensor;
pub mod tensor_map;

pub use device::Device;
pub use element::{Element, ElementOf};
#[cfg(feature = "mlir")]
pub use emulator::LaunchStats;
pub use error::Error;
pub use event::Event;
pub use graph::Graph;
pub use host::{HostTensor, Tensors};
#[cfg(feature = "mlir")]
pub use launch::{KernelExt, Launch, Prepared};
pub use pinned::{PinnedVec, Transfer};
pub use tensor::DevTensor;
pub use tensor_map::{TensorMap, TileSwizzle};
