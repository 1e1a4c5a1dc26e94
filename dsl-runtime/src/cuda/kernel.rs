//! A compiled kernel on a GPU.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock, PoisonError};

use cudarc::driver::{DriverError, sys};
use lacewing_core::lower::{self, Emit, EmitOptions};
use lacewing_core::{KernelMeta, Traced};

use super::driver::{self, Descriptor, Function, LoadError, Shape, Value as Slot, words};
use super::gpu::{Gpu, Stream};
use super::memory::Memory;
use crate::cache::disk::{self, Key, Parts};
use crate::error::Error;
use crate::tensor_map::Plan;

/// How kernels are compiled for a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Optimisation level of LLVM and `ptxas`, 0 to 3.
    pub opt_level: u8,
    /// Who makes machine code from PTX.
    pub assembler: Assembler,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self { opt_level: 3, assembler: Assembler::default() }
    }
}

/// Who makes machine code from PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assembler {
    /// `ptxas` where it is found and the GPU runs its code, else the driver.
    #[default]
    Best,
    /// The driver, when the kernel is loaded.
    Driver,
    /// `ptxas`; an error where it is not found.
    Ptxas,
}

/// A kernel that is loaded on a GPU.
#[derive(Debug)]
pub(crate) struct CudaKernel {
    function: Function,
    name: Arc<str>,
    block: [u32; 3],
    dynamic_shared_bytes: u32,
}

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
    /// Compiles a traced kernel and loads it.
    pub(crate) fn compile(gpu: &Gpu, traced: &Traced, options: CompileOptions) -> Result<Self, Error> {
        let meta = &traced.meta;
        if meta.shared_bytes > gpu.shared_limit() {
            return Err(refuse(
                meta,
                format!(
                    "it needs {} bytes of shared memory, and {gpu} ({}) has {} for a block",
                    meta.shared_bytes,
                    gpu.name(),
                    gpu.shared_limit()
                ),
            ));
        }
        let load = |form| -> Result<Result<Function, LoadError>, Error> {
            let image = image(traced, form, options.opt_level)?;
            Ok(Function::load(gpu.context(), &image, &meta.name))
        };
        let cubin = match options.assembler {
            Assembler::Driver => false,
            Assembler::Ptxas => true,
            Assembler::Best => gpu.is_native() && lower::find_ptxas(None).is_ok(),
        };
        let mut function = load(if cubin { Emit::Cubin } else { Emit::Ptx })?;
        if cubin && options.assembler == Assembler::Best && function.as_ref().is_err_and(is_image_refused) {
            // A driver older than ptxas does not know its files, but compiles PTX itself.
            function = load(Emit::Ptx)?;
        }
        let function = function.map_err(|refused| load_failed(gpu, meta, &refused))?;
        Self::new(gpu, function, meta)
    }

    fn new(gpu: &Gpu, function: Function, meta: &KernelMeta) -> Result<Self, Error> {
        let dynamic_shared_bytes = meta.dynamic_shared_bytes();
        if dynamic_shared_bytes > 0 {
            function
                .allow_dynamic_shared(dynamic_shared_bytes)
                .map_err(|error| gpu.fault(&format!("kernel `{}`: its shared memory", meta.name), error))?;
        }
        Ok(Self { function, name: meta.name.as_str().into(), block: meta.attributes.block, dynamic_shared_bytes })
    }

    /// Puts a launch on a stream.
    pub(crate) fn launch(&self, gpu: &Gpu, stream: &Stream, grid: [u32; 3], values: &[Value<'_>]) -> Result<(), Error> {
        let shape = Shape { grid, block: self.block, dynamic_shared_bytes: self.dynamic_shared_bytes };
        let slots = values.iter().map(|value| match *value {
            Value::Pointer { memory, byte_offset, .. } => Slot::Pointer(memory.allocation(), byte_offset),
            Value::Map { descriptor, .. } => Slot::Map(descriptor),
            Value::Bits(bits) => Slot::Bits(bits),
        });
        let uses = values.iter().filter_map(|value| match *value {
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

/// PTX or machine code of a kernel: from the disk cache, or made and kept there.
fn image(traced: &Traced, form: Emit, opt_level: u8) -> Result<Vec<u8>, Error> {
    let options = EmitOptions { opt_level, ..EmitOptions::default() };
    let make = || Ok::<_, Error>(lower::emit(traced, form, &options)?.as_bytes().to_vec());
    let Some(cache) = disk::default_cache() else { return make() };
    let key = cache_key(traced, form, opt_level)?;
    if let Some(found) = cache.get(&key) {
        return Ok(found);
    }
    let made = make()?;
    cache.put(&key, &made);
    Ok(made)
}

/// The key of a kernel's PTX or machine code in the disk cache.
///
/// # Errors
/// When the kernel does not lower, or `ptxas` is asked for and not found.
pub fn cache_key(traced: &Traced, form: Emit, opt_level: u8) -> Result<Key, Error> {
    let target = traced.meta.target;
    // The IR after our own lowering: an edit of a kernel, a helper or the lowering is in it.
    let ir = lower::emit(traced, Emit::Llvm, &EmitOptions { opt_level, ..EmitOptions::default() })?;
    let parts = Parts {
        ir: ir.text().unwrap_or_default(),
        target: target.name(),
        form: form.name(),
        options: &format!("O{opt_level}"),
        pipeline: &lower::describe(target, opt_level),
        toolchain: &toolchain(form)?,
    };
    Ok(parts.key())
}

/// What makes an image of this form. `ptxas` is asked once in a process.
fn toolchain(form: Emit) -> Result<Cow<'static, str>, Error> {
    static PTXAS: OnceLock<Result<String, lacewing_core::Error>> = OnceLock::new();
    if form != Emit::Cubin {
        return Ok(lower::toolchain().into());
    }
    let ptxas = PTXAS.get_or_init(|| lower::ptxas_version(&lower::find_ptxas(None)?));
    Ok(format!("{}; {}", lower::toolchain(), ptxas.as_ref().map_err(Clone::clone)?).into())
}

fn refuse(meta: &KernelMeta, reason: String) -> Error {
    Error::Launch { kernel: meta.name.clone(), reason }
}

/// Whether the driver does not know the form of the image, as opposed to finding a fault in it.
fn is_image_refused(refused: &LoadError) -> bool {
    use sys::CUresult as Code;
    matches!(
        refused.error.0,
        Code::CUDA_ERROR_INVALID_IMAGE
            | Code::CUDA_ERROR_NO_BINARY_FOR_GPU
            | Code::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            | Code::CUDA_ERROR_INVALID_SOURCE
    )
}

fn load_failed(gpu: &Gpu, meta: &KernelMeta, refused: &LoadError) -> Error {
    match gpu.fault(&format!("loading kernel `{}`", meta.name), refused.error) {
        Error::Device(text) if !refused.log.is_empty() => Error::Device(format!("{text}\n{}", refused.log)),
        other => other,
    }
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
