//! One GPU: its context, its streams, and the blame for faults that show later.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys};
use lacewing_core::Target;

use super::driver::{self, HostCopy, HostMemory, USE_EMULATOR, Way, words};
use super::memory::Memory;
use crate::error::Error;

/// A GPU and the target that its kernels are compiled for.
#[derive(Debug)]
pub(crate) struct Gpu {
    context: Arc<CudaContext>,
    ordinal: usize,
    name: String,
    target: Target,
    /// Major number of its compute capability: machine code runs on no other one, PTX on any later.
    major: u32,
    shared_limit: u32,
    multiprocessors: u32,
    home: Stream,
    /// Whether there is more than one stream, so that their work must be ordered by events. Held for reading while
    /// work is put on a stream.
    many_streams: RwLock<bool>,
    recent: Mutex<Recent>,
}

/// A stream of a GPU: work on it runs in order, or is captured for a graph.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    raw: Arc<CudaStream>,
    capture: Option<Arc<Mutex<Captured>>>,
    /// Zeros that kernels of these names leave as they found them.
    counters: Arc<Mutex<HashMap<&'static str, Arc<Memory>>>>,
}

/// What a graph uses.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// Each allocation, and whether it is written.
    pub(super) uses: Vec<(Arc<Memory>, bool)>,
    pub(super) kernels: Vec<Arc<str>>,
}

impl Stream {
    fn new(raw: Arc<CudaStream>) -> Self {
        Self { raw, capture: None, counters: Arc::default() }
    }

    pub(super) fn capturing(raw: Arc<CudaStream>) -> Self {
        Self { raw, capture: Some(Arc::default()), counters: Arc::default() }
    }

    pub(super) fn raw(&self) -> &Arc<CudaStream> {
        &self.raw
    }

    pub(super) fn capture(&self) -> Option<&Mutex<Captured>> {
        self.capture.as_deref()
    }

    /// Refuses what a graph cannot hold: it would end the capture with an error that says nothing.
    fn check_running(&self, what: &str) -> Result<(), Error> {
        match self.capture {
            None => Ok(()),
            Some(_) => Err(Error::Device(format!(
                "{what} cannot be captured in a graph: do it before the capture, or with the handle that is captured"
            ))),
        }
    }
}

/// The kernels launched since the device was last seen to be well: one of them is at fault when it is not.
#[derive(Debug, Default)]
struct Recent {
    kernels: VecDeque<Arc<str>>,
}

/// Kernels that are remembered.
const REMEMBERED: usize = 8;

impl Gpu {
    /// The GPU of this number; kernels are compiled for `target`, or for the best one that it runs.
    pub(crate) fn open(ordinal: usize, target: Option<Target>) -> Result<Self, Error> {
        let gpus = driver::driver()?.gpus()?;
        let Some(info) = gpus.get(ordinal) else {
            let there: Vec<String> = gpus.iter().map(|gpu| format!("cuda:{} ({})", gpu.ordinal, gpu.name)).collect();
            let there = if there.is_empty() { "no GPU at all".to_owned() } else { there.join(", ") };
            return Err(Error::Device(format!("there is no cuda:{ordinal}: the driver lists {there}; {USE_EMULATOR}")));
        };
        let (major, minor) = info.capability;
        let Some(best) = info.target() else {
            return Err(Error::Device(format!(
                "cuda:{ordinal} ({}) has compute capability {major}.{minor}, and kernels need 8.0 or later; \
                 {USE_EMULATOR}",
                info.name
            )));
        };
        if let Some(target) = target.filter(|target| !info.runs(*target)) {
            return Err(Error::Device(format!(
                "cuda:{ordinal} ({}, compute capability {major}.{minor}) does not run code for {target}; it runs {best}",
                info.name
            )));
        }
        let target = target.unwrap_or(best);
        let opened = || -> Result<Self, DriverError> {
            let context = driver::open(ordinal)?;
            let stream = context.new_stream()?;
            Self::new(context, stream, info.name.clone(), target)
        };
        opened().map_err(|error| Error::Device(format!("cuda:{ordinal} cannot be opened: {}", words(error))))
    }

    /// The GPU of a stream that another library made.
    pub(crate) fn borrow(stream: Arc<CudaStream>) -> Result<Self, Error> {
        let context = Arc::clone(stream.context());
        let ordinal = context.ordinal();
        let gpus = driver::driver()?.gpus()?;
        let info = gpus.get(ordinal).ok_or_else(|| Error::Device(format!("the driver lists no cuda:{ordinal}")))?;
        let target = info.target().ok_or_else(|| {
            Error::Device(format!("cuda:{ordinal} ({}) is too old: kernels need compute capability 8.0", info.name))
        })?;
        Self::new(context, stream, info.name.clone(), target)
            .map_err(|error| Error::Device(format!("cuda:{ordinal} cannot be used: {}", words(error))))
    }

    fn new(
        context: Arc<CudaContext>,
        stream: Arc<CudaStream>,
        name: String,
        target: Target,
    ) -> Result<Self, DriverError> {
        let shared =
            context.attribute(sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let multiprocessors =
            context.attribute(sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let (major, _) = context.compute_capability()?;
        Ok(Self {
            ordinal: context.ordinal(),
            name,
            target,
            major: u32::try_from(major).unwrap_or_default(),
            shared_limit: u32::try_from(shared).unwrap_or_default(),
            multiprocessors: u32::try_from(multiprocessors).unwrap_or_default(),
            context,
            home: Stream::new(stream),
            many_streams: RwLock::new(false),
            recent: Mutex::default(),
        })
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }

    /// The chip's name, as `NVIDIA H200`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn home(&self) -> &Stream {
        &self.home
    }

    /// Tells contexts apart: what is loaded in one does not exist in another.
    pub(crate) fn context_id(&self) -> usize {
        Arc::as_ptr(&self.context).addr()
    }

    pub(super) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Whether machine code for a target runs, or only PTX. That for sm_80 runs on all of 8.x; that for sm_90a and sm_100a
    /// on its own chip, which is the only one that it is chosen for.
    pub(crate) fn runs_code_for(&self, target: Target) -> bool {
        self.major == target.generation() / 10
    }

    /// Shared memory that a block may have on this very chip.
    pub(crate) fn shared_limit(&self) -> u32 {
        self.shared_limit
    }

    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// One more stream. From now on the device's streams wait for each other where they share memory.
    pub(crate) fn new_stream(&self) -> Result<Stream, Error> {
        let mut many = self.many_streams.write().unwrap_or_else(PoisonError::into_inner);
        let made = || {
            if !*many {
                // Earlier uses of memory left no events.
                self.home.raw.synchronize()?;
            }
            self.context.new_stream()
        };
        let stream = made().map_err(|error| self.fault("a stream", error))?;
        *many = true;
        Ok(Stream::new(stream))
    }

    /// Memory with every byte set to `fill`, or as it comes.
    pub(crate) fn allocate(&self, stream: &Stream, bytes: usize, fill: Option<u8>) -> Result<Memory, Error> {
        stream.check_running("making a tensor")?;
        let made = || {
            let memory = Memory::new(stream, bytes)?;
            // Other streams must wait for the allocation even where nothing is filled.
            let fill = || fill.map_or(Ok(()), |byte| memory.allocation().fill(stream.raw(), byte));
            self.touch(&memory, stream, true, fill)?;
            Ok(memory)
        };
        made().map_err(|error| self.fault(&format!("an allocation of {bytes} bytes"), error))
    }

    /// As [`allocate`](Gpu::allocate); for a capture, on the first stream and now: the graph waits for it as for all that it uses,
    /// and keeps it.
    pub(crate) fn allocate_ahead(&self, stream: &Stream, bytes: usize, fill: Option<u8>) -> Result<Memory, Error> {
        self.allocate(if stream.capture.is_some() { &self.home } else { stream }, bytes, fill)
    }

    /// So many bytes of zeros for the launches of a kernel on this stream, each of which leaves zeros behind: these launches
    /// are in order, so that the zeros are set once. A capture has its own, which its graph takes along: no two
    /// launches of a graph run at once.
    pub(crate) fn counters(&self, stream: &Stream, kernel: &'static str, bytes: usize) -> Result<Arc<Memory>, Error> {
        let zeros = || self.allocate_ahead(stream, bytes, Some(0)).map(Arc::new);
        if stream.capture.is_none() {
            let status = stream.raw.capture_status().map_err(|error| self.fault("a look at the stream", error))?;
            if status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
                // Another library captures its stream, and may replay the graph beside this stream's launches.
                return zeros();
            }
        }
        let mut counters = stream.counters.lock().unwrap_or_else(PoisonError::into_inner);
        // What is too small is let go: launches on their way keep it.
        if let Some(known) = counters.get(kernel).filter(|known| known.len() >= bytes) {
            return Ok(Arc::clone(known));
        }
        let made = zeros()?;
        counters.insert(kernel, Arc::clone(&made));
        Ok(made)
    }

    /// Overwrites bytes.
    pub(crate) fn write(&self, stream: &Stream, memory: &Memory, offset: usize, content: &[u8]) -> Result<(), Error> {
        stream.check_running("a copy to the device")?;
        let write = || memory.allocation().write(stream.raw(), offset, content);
        self.touch(memory, stream, true, write).map_err(|error| self.fault("a copy to the device", error))
    }

    /// A copy of bytes.
    pub(crate) fn read(&self, stream: &Stream, memory: &Memory, offset: usize, len: usize) -> Result<Vec<u8>, Error> {
        stream.check_running("a copy to the host")?;
        let mut bytes = vec![0; len];
        let read = || memory.allocation().read(stream.raw(), offset, &mut bytes);
        self.touch(memory, stream, false, read).map_err(|error| self.fault("a copy to the host", error))?;
        self.is_well();
        Ok(bytes)
    }

    /// Page-locked memory of the host.
    pub(crate) fn pinned(&self, bytes: usize) -> Result<Pinned, Error> {
        let made = HostMemory::new(&self.context, bytes);
        made.map(Pinned).map_err(|error| self.fault(&format!("{bytes} bytes of page-locked memory"), error))
    }

    /// Starts a copy from page-locked memory to the device, or back with `to_host`.
    pub(crate) fn start_copy(
        &self,
        stream: &Stream,
        pinned: Pinned,
        to_host: bool,
        memory: &Memory,
        offset: usize,
    ) -> Result<Copying, Error> {
        stream.check_running("a copy between host and device")?;
        let way = if to_host { Way::ToHost } else { Way::ToDevice };
        let mut started = None;
        let work = || {
            started = Some(HostCopy::start(pinned.0, way, memory.allocation(), offset, stream.raw())?);
            Ok(())
        };
        let outcome = self.touch(memory, stream, !to_host, work);
        let failed = |error| self.fault("a copy between host and device", error);
        outcome.map_err(failed)?;
        started.map(Copying).ok_or_else(|| failed(DriverError(sys::CUresult::CUDA_ERROR_UNKNOWN)))
    }

    /// Copies memory to other memory of the same size. Part of a graph while one is captured.
    #[cfg(feature = "mlir")]
    pub(crate) fn copy(&self, stream: &Stream, from: &Arc<Memory>, to: &Arc<Memory>) -> Result<(), Error> {
        let work = || to.allocation().copy_from(stream.raw(), from.allocation());
        let outcome = match stream.capture() {
            None => self.ordered(stream, [(&**from, false), (&**to, true)].into_iter(), work),
            Some(captured) => {
                let uses = [(Arc::clone(from), false), (Arc::clone(to), true)];
                captured.lock().unwrap_or_else(PoisonError::into_inner).uses.extend(uses);
                work()
            }
        };
        outcome.map_err(|error| self.fault("a copy on the device", error))
    }

    /// Bytes of the cache that all multiprocessors share.
    #[cfg(feature = "mlir")]
    pub(crate) fn cache_bytes(&self) -> usize {
        let bytes = self.context.attribute(sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
        usize::try_from(bytes.unwrap_or_default()).unwrap_or_default()
    }

    /// Bytes of memory that nothing uses.
    #[cfg(feature = "mlir")]
    pub(crate) fn free_bytes(&self) -> Result<usize, Error> {
        Ok(self.context.mem_get_info().map_err(|error| self.fault("a look at the memory", error))?.0)
    }

    /// What the chip is, for reports.
    #[cfg(feature = "mlir")]
    pub(crate) fn facts(&self) -> Result<Vec<(&'static str, String)>, Error> {
        use sys::CUdevice_attribute_enum as Attribute;
        let failed = |error| self.fault("a look at the device", error);
        let attribute = |which| self.context.attribute(which).map_err(failed);
        let (major, minor) = self.context.compute_capability().map_err(failed)?;
        let (_, memory) = self.context.mem_get_info().map_err(failed)?;
        Ok(vec![
            ("name", self.name.clone()),
            ("compute_capability", format!("{major}.{minor}")),
            ("multiprocessors", self.multiprocessors.to_string()),
            ("memory_bytes", memory.to_string()),
            ("l2_bytes", self.cache_bytes().to_string()),
            ("clock_khz", attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?.to_string()),
            ("driver", driver::driver()?.to_string()),
        ])
    }

    /// Puts work that uses one allocation on a stream, behind the work of other streams.
    fn touch(
        &self,
        memory: &Memory,
        stream: &Stream,
        writes: bool,
        work: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        self.ordered(stream, std::iter::once((memory, writes)), work)
    }

    /// Puts work on a stream, behind the work of other streams on the same memory, which later waits for it. `uses`
    /// are the allocations, and whether each is written.
    pub(super) fn ordered<'a>(
        &self,
        stream: &Stream,
        uses: impl Iterator<Item = (&'a Memory, bool)> + Clone,
        work: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let many = self.many_streams.read().unwrap_or_else(PoisonError::into_inner);
        if !*many {
            return work();
        }
        for (memory, writes) in uses.clone() {
            memory.before(stream.raw(), writes)?;
        }
        work()?;
        let event: Arc<CudaEvent> = Arc::new(stream.raw().record_event(None)?);
        for (memory, writes) in uses {
            memory.after(stream.raw(), &event, writes);
        }
        Ok(())
    }

    /// Waits for all work of a stream.
    pub(crate) fn synchronize(&self, stream: &Stream) -> Result<(), Error> {
        stream.check_running("waiting")?;
        stream.raw.synchronize().map_err(|error| self.fault("work on the device", error))?;
        self.is_well();
        Ok(())
    }

    /// A point in the work of a stream, which keeps the time.
    pub(crate) fn record(&self, stream: &Stream) -> Result<CudaEvent, Error> {
        stream.check_running("an event")?;
        let flags = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        stream.raw.record_event(flags).map_err(|error| self.fault("an event", error))
    }

    /// Remembers a kernel until the device is next seen to be well.
    pub(super) fn launched(&self, kernel: &Arc<str>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.kernels.back().is_some_and(|last| Arc::ptr_eq(last, kernel)) {
            return;
        }
        if recent.kernels.len() == REMEMBERED {
            recent.kernels.pop_front();
        }
        recent.kernels.push_back(Arc::clone(kernel));
    }

    /// All work of a stream is through without a fault. With several streams another may still have work, so nothing
    /// is forgotten.
    fn is_well(&self) {
        if !*self.many_streams.read().unwrap_or_else(PoisonError::into_inner) {
            self.recent.lock().unwrap_or_else(PoisonError::into_inner).kernels.clear();
        }
    }

    /// What went wrong, with the kernels that may have caused it: a fault of a kernel is told by whichever call comes
    /// next.
    pub(super) fn fault(&self, what: &str, error: DriverError) -> Error {
        let Some(meaning) = kernel_fault(error.0) else {
            let hint =
                if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY { self.memory_left() } else { String::new() };
            return Error::Device(format!("{what} failed on {self}: {}{hint}", words(error)));
        };
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kernels: Vec<String> = Vec::new();
        for kernel in recent.kernels.iter().rev() {
            if !kernels.iter().any(|known| **known == **kernel) {
                kernels.push(kernel.to_string());
            }
        }
        Error::Fault { device: self.to_string(), kernels, meaning: format!("{meaning} ({})", words(error)) }
    }

    fn memory_left(&self) -> String {
        match self.context.mem_get_info() {
            Ok((free, total)) => format!("; {} of {} MiB are free", free >> 20, total >> 20),
            Err(_) => String::new(),
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.ordinal)
    }
}

/// Page-locked memory of the host.
#[derive(Debug)]
pub(crate) struct Pinned(HostMemory);

impl Pinned {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// A copy that may be under way; dropped, it waits.
#[derive(Debug)]
pub(crate) struct Copying(HostCopy);

impl Copying {
    pub(crate) fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// Waits, and gives the memory back.
    pub(crate) fn wait(self) -> Result<Pinned, Error> {
        let memory = self.0.wait().map_err(event_failed)?;
        memory.map(Pinned).ok_or_else(|| Error::Device("the memory of a copy is gone (a fault in Lacewing)".to_owned()))
    }
}

/// The time between two events; waits for both.
pub(crate) fn elapsed(start: &CudaEvent, end: &CudaEvent) -> Result<Duration, Error> {
    let driver = driver::driver()?;
    if !driver.times_events() {
        return Err(Error::Device(format!(
            "a driver for CUDA {driver} does not time events; 12.8 is the first that does"
        )));
    }
    let milliseconds = start.elapsed_ms(end).map_err(event_failed)?;
    Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
}

pub(crate) fn event_failed(error: DriverError) -> Error {
    Error::Device(format!("the work before an event failed: {}", words(error)))
}

/// What a kernel did, for the errors that a kernel causes (CUDA Driver API, `CUresult`). All of them leave the
/// context unusable.
fn kernel_fault(code: sys::CUresult) -> Option<&'static str> {
    use sys::CUresult as Code;
    Some(match code {
        Code::CUDA_ERROR_ILLEGAL_ADDRESS => "it accessed memory outside every allocation",
        Code::CUDA_ERROR_MISALIGNED_ADDRESS => "it accessed memory at an address that is not aligned",
        Code::CUDA_ERROR_ASSERT => "an assertion in it failed",
        Code::CUDA_ERROR_ILLEGAL_INSTRUCTION => "it executed an illegal instruction, or an assertion in it trapped",
        Code::CUDA_ERROR_INVALID_ADDRESS_SPACE => "it used an address in the wrong address space",
        Code::CUDA_ERROR_INVALID_PC => "it jumped outside its code",
        Code::CUDA_ERROR_HARDWARE_STACK_ERROR => "its stack overflowed or was corrupted",
        Code::CUDA_ERROR_LAUNCH_TIMEOUT => "it ran longer than the driver allows",
        Code::CUDA_ERROR_LAUNCH_FAILED => {
            "it failed while it ran: an assertion in it trapped, or shared memory was \
                                           accessed outside its bounds"
        }
        _ => return None,
    })
}
