//! Devices, launch and the checking emulator of Lacewing.
//!
//! ```text
//! Device      where kernels run: an emulated chip, or a GPU
//! DevTensor   a typed view of device memory: offset, extents, strides
//! TensorMap   a tensor for the copy engine of sm_90 and later chips
//! Launch      `kernel.grid([x, y, z]).launch(&device, (arguments))`: checked, then run
//! registry    kernels by name, for the command line
//! host        tensors in host memory; host_math: sums for references
//! emulator    runs a traced kernel on the CPU and checks every access
//! cuda        runs it on an NVIDIA GPU, through the driver
//! ```
//!
//! This crate knows no syntax and no lowering.

pub mod cache;
pub mod compare;
pub mod cuda;
pub mod device;
pub mod element;
pub mod emulator;
mod error;
mod event;
mod graph;
pub mod host;
pub mod host_math;
pub mod launch;
pub mod registry;
pub mod runner;
mod storage;
pub mod tensor;
pub mod tensor_map;

pub use device::Device;
pub use element::{Element, ElementOf};
pub use emulator::LaunchStats;
pub use error::Error;
pub use event::Event;
pub use graph::Graph;
pub use host::{HostTensor, Tensors};
pub use launch::{KernelExt, Launch, Prepared};
pub use tensor::DevTensor;
pub use tensor_map::{TensorMap, TileSwizzle};
