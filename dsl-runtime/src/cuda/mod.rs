//! NVIDIA GPUs, through the CUDA driver.
//!
//! ```text
//! driver    the only file that calls the driver: presence, memory, modules, launches
//! gpu       one device: context, streams, and who is to blame for a fault
//! memory    an allocation that every stream may use, and that is freed after the last use
//! graph     launches that are captured once and replayed as one
//! kernel    a compiled kernel: from traced MLIR, through the disk cache, to a function of the driver
//! ```
//!
//! The driver's library is loaded when the first device is asked for. Where there is none, or no GPU, that is an
//! error value that says what is missing.

mod driver;
mod gpu;
mod graph;
mod kernel;
mod memory;

pub(crate) use driver::Descriptor;
pub use driver::{Driver, GpuInfo, driver};
pub(crate) use gpu::{Gpu, Stream, elapsed, event_failed};
pub(crate) use graph::Captured;
pub use kernel::{Assembler, CompileOptions, cache_key};
pub(crate) use kernel::{CudaKernel, Value, encode};
pub(crate) use memory::Memory;
