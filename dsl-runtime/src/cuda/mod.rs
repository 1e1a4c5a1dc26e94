//! NVIDIA GPUs, through the CUDA driver.
//!
//! ```text
//! driver    the only file that calls the driver: presence, memory, modules, launches
//! gpu       one device: context, streams, and who is to blame for a fault
//! memory    an allocation that every stream may use, and that is freed after the last use
//! graph     launches that are captured once and replayed as one
//! kernel    a kernel that is loaded: a function of the driver, and its launch
//! compile   from traced MLIR, through the disk cache, to a kernel that is loaded
//! ```
//!
//! The driver's library is loaded when the first device is asked for. Where there is none, or no GPU, that is an
//! error value that says what is missing.

#[cfg(feature = "mlir")]
mod compile;
mod driver;
mod gpu;
mod graph;
mod kernel;
mod memory;

#[cfg(feature = "mlir")]
pub(crate) use compile::compile;
#[cfg(feature = "mlir")]
pub use compile::{Assembler, CompileOptions, cache_key};
pub(crate) use driver::Descriptor;
pub use driver::{Driver, GpuInfo, driver};
pub(crate) use gpu::{Copying, Gpu, Pinned, Stream, elapsed, event_failed};
pub(crate) use graph::Captured;
pub(crate) use kernel::{CudaKernel, Manner, Value, encode};
pub(crate) use memory::Memory;
