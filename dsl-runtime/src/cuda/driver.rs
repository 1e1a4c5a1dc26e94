//! The CUDA driver: every call that the safe part of `cudarc` does not have, and nothing else.
//!
//! What makes the calls sound: a [`Context`] keeps the driver's context alive, and everything made in it holds the
//! context; handles are destroyed by `Drop` alone; memory is freed in the order of its stream.

use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys;
use cudarc::driver::{CudaContext, CudaEvent, CudaGraph, CudaStream, DriverError, result};
use lacewing_core::{ScalarType, Target};

use crate::error::Error;
use crate::tensor_map::Plan;

/// The driver that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    version: i32,
}

/// A GPU that the driver lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// Its number: `cuda:N`.
    pub ordinal: usize,
    /// Its name, as `NVIDIA H200`.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Its memory in bytes.
    pub memory_bytes: usize,
}

/// The oldest version of CUDA whose drivers have all that is called here and load the PTX that we emit
/// (PTX ISA, "Release notes": PTX 8.3 came with CUDA 12.3).
const OLDEST: i32 = 12_030;

/// `cuEventElapsedTime_v2` came with CUDA 12.8.
const TIMES_EVENTS: i32 = 12_080;

/// The machine's CUDA driver, loaded and initialised once.
///
/// # Errors
/// [`Error::Device`], which names what is missing: the library, a GPU, or a newer driver.
pub fn driver() -> Result<Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(load).clone().map_err(Error::Device)
}

/// What to do where there is no GPU.
#[cfg(feature = "mlir")]
pub(super) const USE_EMULATOR: &str = "use the emulator instead: `--device emulator`, `Device::emulator(..)`";
#[cfg(not(feature = "mlir"))]
pub(super) const USE_EMULATOR: &str = "this program holds compiled kernels alone, which run nowhere else (Lacewing's \
                                       emulator is in programs that are built with its feature `mlir`)";

fn load() -> Result<Driver, String> {
    // SAFETY: loading the driver's library runs its constructors, as any program that links it does.
    if !unsafe { sys::is_culib_present() } {
        return Err(format!(
            "there is no CUDA driver on this machine: no libcuda.so.1 is found\n  on a machine with an NVIDIA GPU \
             install its driver, or add the library's folder to LD_LIBRARY_PATH; {USE_EMULATOR}"
        ));
    }
    result::init().map_err(|DriverError(code)| match code {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => {
            format!("there is a CUDA driver, but no NVIDIA GPU that it can use; {USE_EMULATOR}")
        }
        sys::CUresult::CUDA_ERROR_STUB_LIBRARY => {
            format!("the libcuda.so.1 that is found is a stub for linking, not a driver; {USE_EMULATOR}")
        }
        code => format!("the CUDA driver does not start: {}; {USE_EMULATOR}", words(DriverError(code))),
    })?;
    let mut version = 0;
    // SAFETY: the pointer is to a local of the right type.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(words)?;
    let driver = Driver { version };
    if version < OLDEST {
        return Err(format!(
            "the driver is one for CUDA {driver}, and kernels need one for {} or later: update it; {USE_EMULATOR}",
            Driver { version: OLDEST }
        ));
    }
    Ok(driver)
}

impl Driver {
    /// The newest version of CUDA that it supports, as 13000 for 13.0.
    pub fn version(self) -> i32 {
        self.version
    }

    /// Whether time between two events can be asked for.
    pub(super) fn times_events(self) -> bool {
        self.version >= TIMES_EVENTS
    }

    /// Every GPU.
    ///
    /// # Errors
    /// What the driver says.
    pub fn gpus(self) -> Result<Vec<GpuInfo>, Error> {
        let listed = || -> Result<Vec<GpuInfo>, DriverError> {
            let count = result::device::get_count()?;
            (0..count).map(|ordinal| gpu_info(ordinal, result::device::get(ordinal)?)).collect()
        };
        listed().map_err(|error| Error::Device(format!("the GPUs cannot be listed: {}", words(error))))
    }
}

fn gpu_info(ordinal: i32, device: sys::CUdevice) -> Result<GpuInfo, DriverError> {
    use sys::CUdevice_attribute_enum as Attribute;
    // SAFETY: the handle came from the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    Ok(GpuInfo {
        ordinal: usize::try_from(ordinal).unwrap_or_default(),
        name: result::device::get_name(device)?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device) }?,
    })
}

impl GpuInfo {
    /// The target that kernels are compiled for, if the GPU can run any of ours.
    pub fn target(&self) -> Option<Target> {
        match self.capability {
            (9, 0) => Some(Target::SM_90A),
            (10, 0) => Some(Target::SM_100A),
            // PTX for sm_80 without architecture-specific instructions runs on all that follow.
            (major, _) if major >= 8 => Some(Target::SM_80),
            _ => None,
        }
    }

    /// Whether code for this target can run on it.
    pub fn runs(&self, target: Target) -> bool {
        target.is_nvidia() && self.target().is_some_and(|own| own == target || target == Target::SM_80)
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version / 1000, self.version % 1000 / 10)
    }
}

/// The context that all of a process shares on a GPU.
pub(super) fn open(ordinal: usize) -> Result<Arc<CudaContext>, DriverError> {
    let context = CudaContext::new(ordinal)?;
    // With tracking, the first new stream waits for the whole GPU, which ends every capture that is under way in
    // another thread.
    // SAFETY: what is tracked are `CudaSlice`s; none is made in this context, which no other library gets from us.
    unsafe { context.disable_event_tracking() };
    Ok(context)
}

/// The driver's own words for an error.
pub(super) fn words(error: DriverError) -> String {
    let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
    text.unwrap_or_else(|_| format!("{:?}", error.0))
}

/// One allocation of device memory. It is freed in the order of its home stream.
#[derive(Debug)]
pub(super) struct Allocation {
    pointer: sys::CUdeviceptr,
    bytes: usize,
    home: Arc<CudaStream>,
}

impl Allocation {
    /// Memory with any content.
    pub(super) fn new(home: &Arc<CudaStream>, bytes: usize) -> Result<Self, DriverError> {
        let context = home.context();
        context.bind_to_thread()?;
        // The driver refuses empty allocations.
        let room = bytes.max(1);
        // SAFETY: the stream is alive. The content is never taken for anything but bytes.
        let pointer = unsafe {
            if context.has_async_alloc() {
                result::malloc_async(home.cu_stream(), room)?
            } else {
                result::malloc_sync(room)?
            }
        };
        Ok(Self { pointer, bytes, home: Arc::clone(home) })
    }

    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn home(&self) -> &Arc<CudaStream> {
        &self.home
    }

    /// The address of a byte; inside the allocation or just behind it.
    fn address(&self, offset: usize) -> sys::CUdeviceptr {
        self.pointer + offset.min(self.bytes) as u64
    }

    /// The part of `len` bytes from `offset` on that lies inside.
    fn inside(&self, offset: usize, len: usize) -> usize {
        len.min(self.bytes.saturating_sub(offset))
    }

    /// Sets every byte, in the order of the stream.
    pub(super) fn fill(&self, stream: &CudaStream, byte: u8) -> Result<(), DriverError> {
        if self.bytes == 0 {
            return Ok(());
        }
        stream.context().bind_to_thread()?;
        // SAFETY: the range is the allocation.
        unsafe { result::memset_d8_async(self.pointer, byte, self.bytes, stream.cu_stream()) }
    }

    /// Copies bytes in, in the order of the stream, and waits until they are there. Bytes past the end are ignored.
    pub(super) fn write(&self, stream: &CudaStream, offset: usize, content: &[u8]) -> Result<(), DriverError> {
        let Some(content) = content.get(..self.inside(offset, content.len())).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        stream.context().bind_to_thread()?;
        // SAFETY: the range is inside the allocation; the source lives until the stream is through.
        unsafe { result::memcpy_htod_async(self.address(offset), content, stream.cu_stream()) }?;
        stream.synchronize()
    }

    /// Copies all of another allocation in, as far as there is room, in the order of the stream.
    #[cfg(feature = "mlir")]
    pub(super) fn copy_from(&self, stream: &CudaStream, other: &Allocation) -> Result<(), DriverError> {
        let bytes = self.inside(0, other.bytes);
        if bytes == 0 {
            return Ok(());
        }
        stream.context().bind_to_thread()?;
        // SAFETY: both ranges are inside their allocations.
        unsafe { result::memcpy_dtod_async(self.pointer, other.pointer, bytes, stream.cu_stream()) }
    }

    /// Copies bytes out, in the order of the stream, and waits for them. Bytes past the end stay as they are.
    pub(super) fn read(&self, stream: &CudaStream, offset: usize, into: &mut [u8]) -> Result<(), DriverError> {
        let len = self.inside(offset, into.len());
        let Some(into) = into.get_mut(..len).filter(|bytes| !bytes.is_empty()) else { return Ok(()) };
        stream.context().bind_to_thread()?;
        // SAFETY: the range is inside the allocation; the destination lives until the stream is through.
        unsafe { result::memcpy_dtoh_async(into, self.address(offset), stream.cu_stream()) }?;
        stream.synchronize()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let context = self.home.context();
        let freed = context.bind_to_thread().and_then(|()| {
            if context.has_async_alloc() {
                // SAFETY: allocated by us, freed once; the stream orders it behind all earlier uses.
                unsafe { result::free_async(self.pointer, self.home.cu_stream()) }
            } else {
                self.home.synchronize()?;
                // SAFETY: as above; the stream is through.
                unsafe { result::free_sync(self.pointer) }
            }
        });
        // Reported by the next call that can report.
        context.record_err(freed);
    }
}

/// Page-locked memory of the host, which the GPU copies from and to by itself.
#[derive(Debug)]
pub(super) struct HostMemory {
    pointer: NonNull<u8>,
    bytes: usize,
    context: Arc<CudaContext>,
}

// SAFETY: it is owned memory, as a boxed slice is; the driver frees it from any thread.
unsafe impl Send for HostMemory {}
// SAFETY: as above; shared handles only read.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Memory that holds zeros.
    pub(super) fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Self, DriverError> {
        context.bind_to_thread()?;
        // SAFETY: the flags are none. The driver refuses empty allocations.
        let pointer = unsafe { result::malloc_host(bytes.max(1), 0) }?.cast::<u8>();
        let pointer = NonNull::new(pointer).ok_or(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY))?;
        // SAFETY: so many bytes have just been allocated.
        unsafe { pointer.write_bytes(0, bytes.max(1)) };
        Ok(Self { pointer, bytes, context: Arc::clone(context) })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is ours and initialised. A copy that writes it owns it, so none is under way.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.bytes) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: allocated by us, freed once; no copy is under way, because a copy owns its memory.
        let freed =
            self.context.bind_to_thread().and_then(|()| unsafe { result::free_host(self.pointer.as_ptr().cast()) });
        self.context.record_err(freed);
    }
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToDevice,
    ToHost,
}

/// A copy between page-locked memory and the device that may be under way. It owns the host's memory; dropped, it waits.
#[derive(Debug)]
pub(super) struct HostCopy {
    /// Taken by `wait` alone.
    memory: Option<HostMemory>,
    end: CudaEvent,
}

impl HostCopy {
    /// Puts the copy of all of the host's memory from or to a byte of an allocation on a stream; bytes past the end of the
    /// allocation stay as they are. Gives the memory up only when the copy did not start.
    pub(super) fn start(
        memory: HostMemory,
        way: Way,
        allocation: &Allocation,
        offset: usize,
        stream: &CudaStream,
    ) -> Result<Self, DriverError> {
        let mut copy = Self { end: stream.context().new_event(None)?, memory: Some(memory) };
        let Some(memory) = copy.memory.as_mut() else { return Ok(copy) };
        let bytes = allocation.inside(offset, memory.bytes);
        stream.context().bind_to_thread()?;
        if bytes > 0 {
            let address = allocation.address(offset);
            let started = match (way, memory.bytes().get(..bytes)) {
                // SAFETY: both ranges are inside; the memory lives until the copy is through, because it is freed by
                // nothing but `HostCopy`, which waits first, and never if that is forgotten.
                (Way::ToDevice, Some(source)) => unsafe {
                    result::memcpy_htod_async(address, source, stream.cu_stream())
                },
                (Way::ToHost, _) => match memory.bytes_mut().get_mut(..bytes) {
                    // SAFETY: as above; nobody else sees the memory before `wait`.
                    Some(into) => unsafe { result::memcpy_dtoh_async(into, address, stream.cu_stream()) },
                    None => Ok(()),
                },
                (Way::ToDevice, None) => Ok(()),
            };
            started?;
        }
        if let Err(error) = copy.end.record(stream) {
            // The event would say that nothing is under way.
            if stream.synchronize().is_err() {
                std::mem::forget(copy.memory.take());
            }
            return Err(error);
        }
        Ok(copy)
    }

    /// Whether the copy is through.
    pub(super) fn is_done(&self) -> bool {
        self.end.is_complete()
    }

    /// Waits, and gives the memory back.
    pub(super) fn wait(mut self) -> Result<Option<HostMemory>, DriverError> {
        self.end.synchronize()?;
        Ok(self.memory.take())
    }
}

impl Drop for HostCopy {
    fn drop(&mut self) {
        if self.memory.is_some() && self.end.synchronize().is_err() {
            // It is not known whether the device still uses the memory: it is never freed.
            std::mem::forget(self.memory.take());
        }
    }
}

/// A loaded module; unloaded with its last function.
#[derive(Debug)]
struct Module {
    handle: sys::CUmodule,
    context: Arc<CudaContext>,
}

// SAFETY: the driver's handles may be used from any thread (CUDA Driver API, "Stream synchronization behavior" and
// "API synchronization behavior": calls are thread-safe unless said otherwise), each call after `bind_to_thread`.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded by us, unloaded once.
        let unloaded = self.context.bind_to_thread().and_then(|()| unsafe { result::module::unload(self.handle) });
        self.context.record_err(unloaded);
    }
}

/// A kernel function of a loaded module.
#[derive(Debug)]
pub(super) struct Function {
    handle: sys::CUfunction,
    module: Module,
}

// SAFETY: as for `Module`.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// Why a module was not loaded: the driver's error and what its compiler wrote.
#[derive(Debug)]
pub(crate) struct LoadError {
    pub(super) error: DriverError,
    pub(super) log: String,
}

impl From<DriverError> for LoadError {
    fn from(error: DriverError) -> Self {
        Self { error, log: String::new() }
    }
}

/// Room for what the driver's compiler has to say.
const LOG_BYTES: usize = 16 * 1024;

impl Function {
    /// Loads PTX text or a cubin and takes the function of this name from it.
    pub(super) fn load(context: &Arc<CudaContext>, image: &[u8], name: &str) -> Result<Self, LoadError> {
        let invalid = || LoadError::from(DriverError(sys::CUresult::CUDA_ERROR_INVALID_IMAGE));
        context.bind_to_thread()?;
        // PTX ends with a zero byte; a cubin says itself how long it is, and one more byte does not matter.
        let mut image = image.to_vec();
        image.push(0);
        let mut log = vec![0u8; LOG_BYTES];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(LOG_BYTES)];
        let mut handle = std::ptr::null_mut();
        // SAFETY: the image is complete (a header of an ELF file, or text ended by zero); the options' values are a
        // buffer and its size, and both arrays have the length that is given.
        let loaded = unsafe {
            let count = options.len() as u32;
            sys::cuModuleLoadDataEx(
                &mut handle,
                image.as_ptr().cast(),
                count,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        loaded.result().map_err(|error| {
            let written = log.split(|byte| *byte == 0).next().unwrap_or_default();
            LoadError { error, log: String::from_utf8_lossy(written).trim().to_owned() }
        })?;
        let module = Module { handle, context: Arc::clone(context) };
        let name = CString::new(name).map_err(|_| invalid())?;
        // SAFETY: the module is loaded.
        let handle = unsafe { result::module::get_function(module.handle, name) }?;
        Ok(Self { handle, module })
    }

    /// Lets launches ask for this much dynamic shared memory.
    pub(super) fn allow_dynamic_shared(&self, bytes: u32) -> Result<(), DriverError> {
        use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as LIMIT;
        self.module.context.bind_to_thread()?;
        let bytes = i32::try_from(bytes).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
        // SAFETY: the function is alive with its module.
        unsafe { result::function::set_function_attribute(self.handle, LIMIT, bytes) }
    }

    /// Lets clusters have more than the eight blocks that every chip with clusters has room for (CUDA C++ Programming
    /// Guide, "Thread Block Clusters").
    pub(super) fn allow_large_clusters(&self) -> Result<(), DriverError> {
        use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED as ALLOWED;
        self.module.context.bind_to_thread()?;
        // SAFETY: the function is alive with its module.
        unsafe { result::function::set_function_attribute(self.handle, ALLOWED, 1) }
    }

    /// Blocks that a multiprocessor holds at once.
    pub(super) fn resident_blocks(&self, threads: u32, dynamic_shared_bytes: u32) -> Result<u32, DriverError> {
        self.module.context.bind_to_thread()?;
        let threads = i32::try_from(threads).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
        // SAFETY: the function is alive with its module.
        let blocks = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(self.handle, threads, dynamic_shared_bytes as usize)
        };
        Ok(u32::try_from(blocks?).unwrap_or_default())
    }

    /// Clusters that the GPU holds at once.
    pub(super) fn resident_clusters(&self, shape: &Shape) -> Result<u32, DriverError> {
        self.module.context.bind_to_thread()?;
        let mut attributes = Attributes::of(shape);
        let config = attributes.config(shape, std::ptr::null_mut());
        let mut clusters = 0;
        // SAFETY: the function is alive with its module; the configuration and its attributes outlive the call.
        unsafe { sys::cuOccupancyMaxActiveClusters(&mut clusters, self.handle, &config) }.result()?;
        Ok(u32::try_from(clusters).unwrap_or_default())
    }

    /// Puts a launch on a stream. `values` are those of the function's parameters.
    ///
    /// Host memory is safe from any kernel. Device memory is safe as far as the kernel keeps to its arguments, which
    /// the emulator checks; the driver reports the rest.
    pub(super) fn launch<'a>(
        &self,
        stream: &CudaStream,
        shape: &Shape,
        values: impl IntoIterator<Item = Value<'a>>,
    ) -> Result<(), DriverError> {
        self.module.context.bind_to_thread()?;
        let mut slots = [0u64; MAX_PARAMETERS];
        let mut pointers = [std::ptr::null_mut::<c_void>(); MAX_PARAMETERS];
        let mut places = slots.iter_mut().zip(&mut pointers);
        for value in values {
            let Some((slot, pointer)) = places.next() else {
                return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
            };
            // Little-endian: a shorter parameter reads the first bytes of its slot.
            *slot = match value {
                Value::Pointer(memory, offset) => memory.address(offset),
                Value::Map(_) => 0,
                Value::Bits(bits) => bits,
            };
            *pointer = match value {
                // The driver only reads it.
                Value::Map(descriptor) => std::ptr::from_ref(descriptor).cast_mut().cast(),
                _ => std::ptr::from_mut(slot).cast(),
            };
        }
        let mut attributes = Attributes::of(shape);
        let config = attributes.config(shape, stream.cu_stream());
        // SAFETY: function and stream are alive; the caller gives one value for each parameter, each in eight bytes,
        // which no parameter but a tensor map exceeds, and that has its 128; the driver copies them and the attributes
        // before it returns.
        unsafe { sys::cuLaunchKernelEx(&config, self.handle, pointers.as_mut_ptr(), std::ptr::null_mut()) }.result()
    }
}

/// Puts a graph on a stream, which need not be the one that it was captured on.
pub(super) fn launch_graph(graph: &CudaGraph, stream: &CudaStream) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: graph and stream are alive; a graph is not `Sync`, so no other thread uses it now.
    unsafe { result::graph::launch(graph.cu_graph_exec(), stream.cu_stream()) }
}

/// Parameters that a function may have, flattened. Sixteen tensors of rank 5 have 176; a kernel's parameters have
/// room for 4 KiB in any case (CUDA C++ Programming Guide, "Function parameters").
pub(super) const MAX_PARAMETERS: usize = 256;

/// Grid, block, dynamic shared memory and manner of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) dynamic_shared_bytes: u32,
    /// Blocks of a cluster.
    pub(super) cluster: Option<[u32; 3]>,
    /// Whether all blocks must run at once, or the launch is refused.
    pub(super) cooperative: bool,
    /// Whether it may start before the launch before it is through (programmatic dependent launch).
    pub(super) overlapping: bool,
}

/// The attributes of a launch, as the driver reads them.
struct Attributes {
    list: [sys::CUlaunchAttribute; 3],
    count: usize,
}

impl Attributes {
    fn of(shape: &Shape) -> Self {
        use sys::CUlaunchAttributeID as Id;
        let none = sys::CUlaunchAttribute {
            id: Id::CU_LAUNCH_ATTRIBUTE_IGNORE,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { pad: [0; 64] },
        };
        let mut attributes = Self { list: [none; 3], count: 0 };
        if let Some([x, y, z]) = shape.cluster {
            let cluster = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes
                .add(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, sys::CUlaunchAttributeValue { clusterDim: cluster });
        }
        if shape.cooperative {
            attributes.add(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, sys::CUlaunchAttributeValue { cooperative: 1 });
        }
        if shape.overlapping {
            attributes.add(
                Id::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
            );
        }
        attributes
    }

    fn add(&mut self, id: sys::CUlaunchAttributeID, value: sys::CUlaunchAttributeValue) {
        if let Some(place) = self.list.get_mut(self.count) {
            (place.id, place.value) = (id, value);
            self.count += 1;
        }
    }

    /// The configuration of a launch. It points into the attributes.
    fn config(&mut self, shape: &Shape, stream: sys::CUstream) -> sys::CUlaunchConfig {
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (shape.grid, shape.block);
        sys::CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: shape.dynamic_shared_bytes,
            hStream: stream,
            attrs: self.list.as_mut_ptr(),
            numAttrs: self.count as u32,
        }
    }
}

/// The value of one parameter of a function.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    /// The address of a byte of an allocation.
    Pointer(&'a Allocation, usize),
    /// A tensor map, passed by value.
    Map(&'a Descriptor),
    /// A number's bits, zero-extended.
    Bits(u64),
}

/// A tensor map as the driver encodes it: 128 bytes at a multiple of 64.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Descriptor([u64; 16]);

const _: () = assert!(size_of::<Descriptor>() == size_of::<sys::CUtensorMap>());

/// The first version of CUDA whose drivers encode maps of small tensors right: until 13.1 they set a bit that CUTLASS
/// clears (`make_tma_copy_desc` in `cute/atom/copy_traits_sm90_tma.hpp`).
const ENCODES_SMALL_TENSORS: i32 = 13_020;
/// Tensors below this many bytes are small, and the bit of the second word.
const SMALL_TENSOR: (u64, u64) = (128 * 1024, 1 << 21);

/// Encodes the map of a tensor in an allocation.
pub(super) fn encode(allocation: &Allocation, plan: &Plan) -> Result<Descriptor, DriverError> {
    let mut map = sys::CUtensorMap { opaque: [0; 16] };
    let address = allocation.address(usize::try_from(plan.byte_offset).unwrap_or(usize::MAX));
    let rank = plan.extents.len();
    let outer_strides = plan.strides.get(1..).unwrap_or_default();
    let element_strides = [1_u32; 5];
    let inside = plan.byte_offset.saturating_add(plan.span()) <= allocation.len() as u64;
    if rank != plan.strides.len() || rank != plan.box_shape.len() || rank > element_strides.len() || !inside {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    allocation.home().context().bind_to_thread()?;
    // SAFETY: all pointers are to locals or to lists that live until the call returns: extents, box and element
    // strides have `rank` entries, the strides of the outer dimensions one less. The address is that of a tensor
    // inside the allocation, which the driver stores and does not follow.
    let encoded = unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            data_type(plan.scalar),
            rank as u32,
            std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or_default()),
            plan.extents.as_ptr(),
            outer_strides.as_ptr(),
            plan.box_shape.as_ptr(),
            element_strides.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle(plan.swizzle),
            // With 256 bytes, what is limited by memory takes 8 % longer, and rows that start between sectors a sixth; others
            // are alike (on an H200).
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    encoded.result()?;
    let mut words = map.opaque;
    let old = driver().is_ok_and(|driver| driver.version() < ENCODES_SMALL_TENSORS);
    let (small, bit) = SMALL_TENSOR;
    if old && plan.span() < small {
        let [_, second, ..] = &mut words;
        *second &= !bit;
    }
    Ok(Descriptor(words))
}

fn data_type(scalar: ScalarType) -> sys::CUtensorMapDataType {
    use sys::CUtensorMapDataType as Type;
    match scalar {
        ScalarType::Bool | ScalarType::I8 | ScalarType::U8 | ScalarType::F8E4M3 | ScalarType::F8E5M2 => {
            Type::CU_TENSOR_MAP_DATA_TYPE_UINT8
        }
        ScalarType::I16 | ScalarType::U16 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        ScalarType::I32 => Type::CU_TENSOR_MAP_DATA_TYPE_INT32,
        ScalarType::U32 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        ScalarType::I64 => Type::CU_TENSOR_MAP_DATA_TYPE_INT64,
        ScalarType::U64 => Type::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        ScalarType::F16 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        ScalarType::Bf16 => Type::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        ScalarType::F32 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        ScalarType::F64 => Type::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }
}

fn swizzle(bytes: u32) -> sys::CUtensorMapSwizzle {
    use sys::CUtensorMapSwizzle as Swizzle;
    match bytes {
        128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(capability: (i32, i32)) -> GpuInfo {
        GpuInfo { ordinal: 0, name: String::new(), capability, memory_bytes: 0 }
    }

    #[test]
    fn the_target_follows_from_the_compute_capability() {
        let target = |major, minor| gpu((major, minor)).target();
        assert_eq!(target(9, 0), Some(Target::SM_90A));
        assert_eq!(target(10, 0), Some(Target::SM_100A));
        assert_eq!([target(8, 0), target(8, 9), target(12, 0), target(10, 3)], [Some(Target::SM_80); 4]);
        assert_eq!(target(7, 5), None);
        assert!(gpu((9, 0)).runs(Target::SM_80) && !gpu((9, 0)).runs(Target::SM_100A));
        assert!(
            !gpu((8, 0)).runs(Target::SM_90A) && !gpu((9, 0)).runs(Target::GFX942) && !gpu((7, 5)).runs(Target::SM_80)
        );
    }

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(Driver { version: 12_080 }.to_string(), "12.8");
        assert!(Driver { version: 12_080 }.times_events() && !Driver { version: 12_030 }.times_events());
    }

    /// On a machine without a driver; elsewhere there is nothing to refuse.
    #[test]
    fn no_driver_is_an_error_that_offers_the_emulator() {
        if let Err(error) = driver() {
            let text = error.to_string();
            assert!(text.contains(USE_EMULATOR), "{text}");
        }
    }
}
