//! A kernel that is loaded on a GPU.

use std::sync::{Arc, PoisonError};

use cudarc::driver::{DriverError, sys};
use lacewing_core::{KernelAttributes, KernelMeta};

use super::driver::{self, Descriptor, Function, LoadError, Shape, Value as Slot, words};
use super::gpu::{Gpu, Stream};
use super::memory::Memory;
use crate::error::Error;
use crate::tensor_map::Plan;

/// A kernel that is loaded on a GPU.
#[derive(Debug)]
pub(crate) struct CudaKernel {
    function: Function,
    name: Arc<str>,
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    cluster: Option<[u32; 3]>,
}

/// The manner of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    /// All blocks run at once.
    pub(crate) cooperative: bool,
    /// It may start before the launch before it is through.
    pub(crate) overlapping: bool,
}

/// The most blocks of a cluster that every chip with clusters has room for.
const PORTABLE_CLUSTER: u32 = 8;

/// The value of one flattened parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// The address of a byte of memory.
    Pointer {
        /// The memory.
        memory: &'a Arc<Memory>,
        /// The byte.
        byte_offset: usize,
        /// Whether the kernel may write through it.
        writable: bool,
    },
    /// A tensor map, and the memory that it describes.
    Map {
        /// The memory.
        memory: &'a Arc<Memory>,
        /// The map as the driver encoded it.
        descriptor: &'a Descriptor,
        /// Whether the kernel may write through it.
        writable: bool,
    },
    /// A number's bits, zero-extended.
    Bits(u64),
}

/// Encodes a tensor map of memory.
pub(crate) fn encode(memory: &Memory, plan: &Plan) -> Result<Descriptor, String> {
    driver::encode(memory.allocation(), plan).map_err(|error| {
        format!(
            "the driver refuses a tensor map ({}): {} elements, extents {:?}, strides in bytes {:?}, box {:?}, swizzle \
             {} (innermost dimension first)",
            words(error),
            plan.scalar,
            plan.extents,
            plan.strides,
            plan.box_shape,
            plan.swizzle
        )
    })
}

impl CudaKernel {
    /// Loads PTX text or machine code.
    pub(crate) fn load(gpu: &Gpu, image: &[u8], meta: &KernelMeta) -> Result<Self, Refused> {
        check_shared(gpu, meta).map_err(Refused::ByUs)?;
        let function = Function::load(gpu.context(), image, &meta.name).map_err(Refused::ByDriver)?;
        Self::new(gpu, function, meta).map_err(Refused::ByUs)
    }

    fn new(gpu: &Gpu, function: Function, meta: &KernelMeta) -> Result<Self, Error> {
        let dynamic_shared_bytes = meta.dynamic_shared_bytes();
        if dynamic_shared_bytes > 0 {
            function
                .allow_dynamic_shared(dynamic_shared_bytes)
                .map_err(|error| gpu.fault(&format!("kernel `{}`: its shared memory", meta.name), error))?;
        }
        let KernelAttributes { block, cluster, .. } = meta.attributes;
        let kernel = Self { function, name: meta.name.as_str().into(), block, dynamic_shared_bytes, cluster };
        if let Some(cluster) = cluster {
            let room = || -> Result<u32, DriverError> {
                if cluster.iter().product::<u32>() > PORTABLE_CLUSTER {
                    kernel.function.allow_large_clusters()?;
                }
                kernel.function.resident_clusters(&kernel.shape(cluster, Manner::default()))
            };
            let room = room().map_err(|error| gpu.fault(&format!("kernel `{}`: its cluster", meta.name), error))?;
            if room == 0 {
                let [x, y, z] = cluster;
                let reason =
                    format!("{gpu} ({}) has no room for a cluster of {x} x {y} x {z} of its blocks", gpu.name());
                return Err(Error::Launch { kernel: meta.name.clone(), reason });
            }
        }
        Ok(kernel)
    }

    fn shape(&self, grid: [u32; 3], manner: Manner) -> Shape {
        let Self { block, dynamic_shared_bytes, cluster, .. } = *self;
        let Manner { cooperative, overlapping } = manner;
        Shape { grid, block, dynamic_shared_bytes, cluster, cooperative, overlapping }
    }

    /// Blocks of it that the GPU holds at once.
    pub(crate) fn resident_blocks(&self, gpu: &Gpu) -> Result<u64, Error> {
        let threads = self.block.iter().product();
        let a_multiprocessor = self.function.resident_blocks(threads, self.dynamic_shared_bytes);
        let a_multiprocessor =
            a_multiprocessor.map_err(|error| gpu.fault(&format!("kernel `{}`: its occupancy", self.name), error))?;
        Ok(u64::from(a_multiprocessor) * u64::from(gpu.multiprocessors()))
    }

    /// Puts a launch on a stream.
    pub(crate) fn launch<'a>(
        &self,
        gpu: &Gpu,
        stream: &Stream,
        grid: [u32; 3],
        manner: Manner,
        values: impl Iterator<Item = Value<'a>> + Clone,
    ) -> Result<(), Error> {
        let shape = self.shape(grid, manner);
        let slots = values.clone().map(|value| match value {
            Value::Pointer { memory, byte_offset, .. } => Slot::Pointer(memory.allocation(), byte_offset),
            Value::Map { descriptor, .. } => Slot::Map(descriptor),
            Value::Bits(bits) => Slot::Bits(bits),
        });
        let uses = values.filter_map(|value| match value {
            Value::Pointer { memory, writable, .. } | Value::Map { memory, writable, .. } => Some((memory, writable)),
            Value::Bits(_) => None,
        });
        let launch = || self.function.launch(stream.raw(), &shape, slots);
        let outcome = match stream.capture() {
            None => {
                gpu.launched(&self.name);
                gpu.ordered(stream, uses.map(|(memory, writable)| (&**memory, writable)), launch)
            }
            // Nothing runs yet: the graph waits for other streams when it is launched.
            Some(captured) => {
                let mut captured = captured.lock().unwrap_or_else(PoisonError::into_inner);
                captured.kernels.push(Arc::clone(&self.name));
                captured.uses.extend(uses.map(|(memory, writable)| (Arc::clone(memory), writable)));
                launch()
            }
        };
        outcome.map_err(|error| match launch_refused(error) {
            Some(reason) => Error::Launch { kernel: self.name.to_string(), reason },
            None => gpu.fault(&format!("the launch of kernel `{}`", self.name), error),
        })
    }
}

/// Why a kernel was not loaded.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It asks for more than there is.
    ByUs(Error),
    /// What the driver says.
    ByDriver(LoadError),
}

impl Refused {
    /// Whether the driver does not know the form of the image, as opposed to finding a fault in it.
    pub(crate) fn is_of_form(&self) -> bool {
        use sys::CUresult as Code;
        matches!(
            self,
            Refused::ByDriver(LoadError {
                error: DriverError(
                    Code::CUDA_ERROR_INVALID_IMAGE
                        | Code::CUDA_ERROR_NO_BINARY_FOR_GPU
                        | Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
                        | Code::CUDA_ERROR_INVALID_SOURCE
                ),
                ..
            })
        )
    }

    /// The error for the user.
    pub(crate) fn into_error(self, gpu: &Gpu, kernel: &str) -> Error {
        match self {
            Refused::ByUs(error) => error,
            Refused::ByDriver(LoadError { error, log }) => {
                match gpu.fault(&format!("loading kernel `{kernel}`"), error) {
                    Error::Device(text) if !log.is_empty() => Error::Device(format!("{text}\n{log}")),
                    other => other,
                }
            }
        }
    }
}

fn check_shared(gpu: &Gpu, meta: &KernelMeta) -> Result<(), Error> {
    let (wanted, limit) = (meta.shared_bytes, gpu.shared_limit());
    if wanted <= limit {
        return Ok(());
    }
    Err(Error::Launch {
        kernel: meta.name.clone(),
        reason: format!("it needs {wanted} bytes of shared memory, and {gpu} ({}) has {limit} for a block", gpu.name()),
    })
}

/// The reason, for launches that the driver refuses by themselves.
fn launch_refused(error: DriverError) -> Option<String> {
    use sys::CUresult as Code;
    match error.0 {
        Code::CUDA_ERROR_INVALID_VALUE => Some("the driver refuses its grid, block or arguments".to_owned()),
        Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => Some(format!(
            "the GPU has not the registers or the shared memory for one block ({}); a smaller block or `max_regs` helps",
            words(error)
        )),
        Code::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => {
            Some("its blocks do not all fit on the GPU at once, as a cooperative launch needs".to_owned())
        }
        Code::CUDA_ERROR_INVALID_CLUSTER_SIZE => Some("the GPU has no room for a cluster of this size".to_owned()),
        _ => None,
    }
}
