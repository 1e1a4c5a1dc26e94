//! Where kernels run.

#[cfg(feature = "mlir")]
mod emulated;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use lacewing_core::{ScalarType, Target};

#[cfg(feature = "mlir")]
use crate::cuda::CompileOptions;
use crate::cuda::{Captured, CudaKernel, Gpu, Manner, Stream, Value};
use crate::element::Element;
use crate::error::{Error, unknown};
use crate::event::{Event, Point};
use crate::graph::Graph;
use crate::host::{HostTensor, element_count, too_large};
#[cfg(feature = "mlir")]
use crate::placement::Content;
use crate::storage::Storage;
use crate::tensor::DevTensor;

/// A device: an emulated chip, or a GPU.
///
/// Clones are the same device with the same memory; a clone may have other launch options
/// ([`with_seed`](Device::with_seed), [`with_checks`](Device::with_checks)) or another stream
/// ([`new_stream`](Device::new_stream)).
///
/// Work on a GPU is put on the handle's stream, and the host goes on. Reading a tensor waits for it;
/// [`synchronize`](Device::synchronize) waits for all of it. Tensors may be dropped while work that uses them is
/// under way.
#[derive(Clone)]
pub struct Device {
    identity: Arc<Identity>,
    options: Options,
}

/// What makes two handles the same device: tensors remember it.
pub(crate) struct Identity {
    target: Target,
    backend: Backend,
}

pub(crate) enum Backend {
    #[cfg(feature = "mlir")]
    Emulator,
    Cuda(Gpu),
}

#[derive(Clone, Default)]
struct Options {
    #[cfg(feature = "mlir")]
    emulation: emulated::Options,
    #[cfg(feature = "mlir")]
    compile: CompileOptions,
    /// What notes launches, for timing.
    #[cfg(feature = "mlir")]
    recorder: Option<crate::bench::Recorder>,
    /// Whether a launch on a GPU waits for its end.
    synchronous: bool,
    /// The stream on a GPU; `None` for its first.
    stream: Option<Stream>,
}

#[cfg(feature = "mlir")]
pub use emulated::Printed;

impl Device {
    /// The CUDA device number `index`, with kernels compiled for the best target that it runs.
    ///
    /// # Errors
    /// [`Error::Device`], which names what is missing: the driver, the GPU, or one that is new enough.
    pub fn cuda(index: usize) -> Result<Self, Error> {
        Ok(Self::from_gpu(Gpu::open(index, None)?))
    }

    /// The CUDA device number `index`, with kernels compiled for `target`: an sm_80 kernel on a later chip, say.
    ///
    /// # Errors
    /// As [`cuda`](Self::cuda), and when the GPU does not run code for the target.
    pub fn cuda_for(index: usize, target: Target) -> Result<Self, Error> {
        Ok(Self::from_gpu(Gpu::open(index, Some(target))?))
    }

    /// The CUDA device of a stream that another library made with `cudarc`: work goes on that stream, in order with
    /// the library's own.
    ///
    /// # Errors
    /// [`Error::Device`] when the GPU is too old.
    pub fn from_cudarc(stream: &Arc<cudarc::driver::CudaStream>) -> Result<Self, Error> {
        Ok(Self::from_gpu(Gpu::borrow(Arc::clone(stream))?))
    }

    fn from_gpu(gpu: Gpu) -> Self {
        let identity = Identity { target: gpu.target(), backend: Backend::Cuda(gpu) };
        Device { identity: Arc::new(identity), options: Options::default() }
    }

    /// A device by name: `emulator` (of sm_80), `emulator:gfx942`, `cuda:0`, `cuda:0:sm_80`.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that means no device, [`Error::Device`] for a device that is
    /// not there.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let (kind, detail) = name.split_once(':').map_or((name, None), |(kind, detail)| (kind, Some(detail)));
        match (kind, detail) {
            #[cfg(feature = "mlir")]
            ("emulator", None) => Self::emulator(Target::SM_80),
            #[cfg(feature = "mlir")]
            ("emulator", Some(target)) => Self::emulator(target_from_name(target)?),
            #[cfg(not(feature = "mlir"))]
            ("emulator", _) => Err(Error::Device(
                "this program has no emulator: it was built without Lacewing's feature `mlir`".to_owned(),
            )),
            ("cuda", None) => Self::cuda(0),
            ("cuda", Some(detail)) => {
                let (index, target) = detail.split_once(':').map_or((detail, None), |(i, target)| (i, Some(target)));
                let index = index.parse().map_err(|_| {
                    Error::Setting(format!("`cuda:{detail}` names no device: a number follows, as in cuda:0"))
                })?;
                match target {
                    None => Self::cuda(index),
                    Some(target) => Self::cuda_for(index, target_from_name(target)?),
                }
            }
            _ => Err(Error::Setting(format!(
                "there is no device `{name}`\n  known: emulator, emulator:TARGET (as emulator:sm_80), cuda:N, \
                 cuda:N:TARGET"
            ))),
        }
    }

    /// The same device, on which a launch waits until the kernel is through (`true`) or returns at once. A kernel
    /// that fails on a GPU is then the one that the error names, and the error comes from its launch.
    #[must_use]
    pub fn with_synchronous(mut self, synchronous: bool) -> Self {
        self.options.synchronous = synchronous;
        self
    }

    /// The same device with a stream of its own: work on it runs beside that of other handles. Where they share
    /// tensors, each waits for the other as needed. The emulator has one stream.
    ///
    /// # Errors
    /// When the driver has none left.
    pub fn new_stream(&self) -> Result<Self, Error> {
        let mut other = self.clone();
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => {}
            Backend::Cuda(gpu) => other.options.stream = Some(gpu.new_stream()?),
        }
        Ok(other)
    }

    /// Waits for all work of this handle's stream.
    ///
    /// # Errors
    /// [`Error::Fault`] when a kernel has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => Ok(()),
            Backend::Cuda(gpu) => gpu.synchronize(self.stream(gpu)),
        }
    }

    /// Captures launches instead of running them: those that `work` makes on the handle that it is given. They are
    /// then replayed as one, which costs the host one launch.
    ///
    /// Tensors cannot be filled, read or written with that handle, nor can it be waited for. What launches need for themselves it
    /// gives, once for all replays, and the graph keeps it: [`tensor_uninit`](Device::tensor_uninit) and
    /// [`work_counters`](Device::work_counters). Functions that launch on the device of their tensors are captured by
    /// tensors [on](DevTensor::on) that handle.
    ///
    /// # Errors
    /// What `work` returns; [`Error::Device`] on the emulator, which has no graphs, and when the driver refuses.
    pub fn capture(&self, work: impl FnOnce(&Device) -> Result<(), Error>) -> Result<Graph, Error> {
        let Some(gpu) = self.gpu() else {
            return Err(Error::Device(format!("{self} has no graphs: launch the kernels themselves")));
        };
        let captured = Captured::new(gpu, |stream| {
            let mut capturing = self.clone().with_synchronous(false);
            capturing.options.stream = Some(stream);
            work(&capturing)
        })?;
        Ok(Graph { device: self.clone(), captured })
    }

    /// A point in the work of this handle's stream, for timing: `start.until(&end)`.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn record(&self) -> Result<Event, Error> {
        Ok(Event(match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => Point::Host(std::time::Instant::now()),
            Backend::Cuda(gpu) => Point::Cuda(gpu.record(self.stream(gpu))?),
        }))
    }

    /// Whether it is a GPU, and not emulated.
    pub fn is_gpu(&self) -> bool {
        self.gpu().is_some()
    }

    /// The chip that kernels are compiled for.
    pub fn target(&self) -> Target {
        self.identity.target
    }

    /// Multiprocessors (compute units) of the device: how many blocks a persistent kernel starts. The emulator has
    /// 4, whatever the host, so that its blocks take several pieces of work too.
    pub fn multiprocessors(&self) -> u32 {
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => 4,
            Backend::Cuda(gpu) => gpu.multiprocessors().max(1),
        }
    }

    /// Bytes of shared memory that a block may have: of the chip at hand, which may be less than its target's
    /// ([`Target::max_shared_bytes`]), as on chips of capability 8.6 and 8.9, which run code for sm_80.
    pub fn max_shared_bytes(&self) -> u32 {
        let target = self.target().max_shared_bytes();
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => target,
            Backend::Cuda(gpu) => gpu.shared_limit().min(target),
        }
    }

    /// Whether two handles are the same device.
    pub fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.identity, &other.identity)
    }

    /// A tensor with the elements of a host tensor, which must have this type and rank.
    ///
    /// # Errors
    /// [`Error::Shape`] when it has not.
    pub fn tensor_from<T: Element, const RANK: usize>(&self, host: &HostTensor) -> Result<DevTensor<T, RANK>, Error> {
        if host.scalar() != T::TYPE {
            return Err(Error::Shape(format!(
                "the host tensor holds {}, not {}",
                host.scalar().name(),
                T::TYPE.name()
            )));
        }
        let shape = host.shape_of()?;
        let storage = match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => return self.emulated(shape, Content::Bytes(host.bytes())),
            Backend::Cuda(gpu) => {
                let memory = gpu.allocate(self.stream(gpu), host.bytes().len(), None)?;
                gpu.write(self.stream(gpu), &memory, 0, host.bytes())?;
                Storage::Cuda(Arc::new(memory))
            }
        };
        Ok(DevTensor::whole(self.clone(), storage, shape))
    }

    /// A tensor with these elements in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] when their number is not that of the shape.
    pub fn tensor_from_slice<T: Element, const RANK: usize>(
        &self,
        elements: &[T],
        shape: [usize; RANK],
    ) -> Result<DevTensor<T, RANK>, Error> {
        self.tensor_from(&HostTensor::new(elements, &shape)?)
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Device`] when it does not fit in memory.
    pub fn tensor_zeros<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DevTensor<T, RANK>, Error> {
        let storage = match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => return self.emulated(shape, Content::Zeros),
            Backend::Cuda(gpu) => self.allocate(gpu, byte_count(&shape, T::TYPE.bytes())?, Some(0))?,
        };
        Ok(DevTensor::whole(self.clone(), storage, shape))
    }

    /// Zeros that every launch of a kernel leaves as zeros: the counter from which persistent blocks draw their work, as by
    /// [`Schedule::drawn`], or counters of parts that are done. `kernel` says whose launches share them.
    ///
    /// On a GPU they are made and cleared once for each stream and each capture, and handed out again for each launch: nothing
    /// stands between launches that follow each other, so that they can overlap. Launches on one stream are in order, and so
    /// is a graph with itself: no two use them at the same time, unless one overlaps the other, and then it counts behind
    /// `wait_for_previous_grid()`. A kernel that fails leaves no device behind on which they would matter. The emulator,
    /// which goes on when a check has ended a launch, makes new ones for each.
    ///
    /// # Errors
    /// [`Error::Device`] when no memory is left, [`Error::Fault`] when an earlier kernel has failed.
    ///
    /// [`Schedule::drawn`]: lacewing_core::types::Schedule::drawn
    pub fn work_counters(&self, kernel: &'static str, count: usize) -> Result<DevTensor<i32, 1>, Error> {
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => self.tensor_zeros([count]),
            Backend::Cuda(gpu) => {
                let bytes = byte_count(&[count], ScalarType::I32.bytes())?;
                let memory = gpu.counters(self.stream(gpu), kernel, bytes)?;
                Ok(DevTensor::whole(self.clone(), Storage::Cuda(memory), [count]))
            }
        }
    }

    /// A tensor whose elements count as never written: the emulator reports a kernel that reads
    /// one, and [`DevTensor::to_vec`] refuses to give one out. The right start for outputs.
    ///
    /// A GPU does not know what was written. There all bits are set (a NaN in every float type) as long as the
    /// checks' `initialized` is on, so that an element which a kernel forgets is no right answer of an earlier run. In a
    /// [capture](Device::capture) that is done once, and not by each replay.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Device`] when it does not fit in memory.
    pub fn tensor_uninit<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DevTensor<T, RANK>, Error> {
        let storage = match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => return self.emulated(shape, Content::Unwritten),
            Backend::Cuda(gpu) => {
                let fill = self.marks_unwritten().then_some(UNWRITTEN);
                let bytes = byte_count(&shape, T::TYPE.bytes())?;
                Storage::Cuda(Arc::new(gpu.allocate_ahead(self.stream(gpu), bytes, fill)?))
            }
        };
        Ok(DevTensor::whole(self.clone(), storage, shape))
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.identity.backend
    }

    /// The GPU; `None` for the emulator.
    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => None,
            Backend::Cuda(gpu) => Some(gpu),
        }
    }

    #[cfg(feature = "mlir")]
    pub(crate) fn compile_options(&self) -> CompileOptions {
        self.options.compile
    }

    /// Whether memory that nothing wrote is filled with a pattern that shows. Without an emulator there is no choice.
    #[cfg(not(feature = "mlir"))]
    fn marks_unwritten(&self) -> bool {
        true
    }

    pub(crate) fn stream<'a>(&'a self, gpu: &'a Gpu) -> &'a Stream {
        self.options.stream.as_ref().unwrap_or(gpu.home())
    }

    fn allocate(&self, gpu: &Gpu, bytes: usize, fill: Option<u8>) -> Result<Storage, Error> {
        Ok(Storage::Cuda(Arc::new(gpu.allocate(self.stream(gpu), bytes, fill)?)))
    }

    /// A copy of bytes of an allocation of this device.
    pub(crate) fn read(&self, storage: &Storage, range: Range<usize>) -> Result<Vec<u8>, Error> {
        match (storage, &self.identity.backend) {
            (Storage::Cuda(memory), Backend::Cuda(gpu)) => gpu.read(self.stream(gpu), memory, range.start, range.len()),
            #[cfg(feature = "mlir")]
            (Storage::Emulated(buffer), _) => Ok(buffer.read().get(range).unwrap_or_default().to_vec()),
            #[cfg(feature = "mlir")]
            (Storage::Cuda(_), Backend::Emulator) => Err(emulated::foreign()),
        }
    }

    /// Overwrites bytes of an allocation of this device.
    pub(crate) fn write(&self, storage: &Storage, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        match (storage, &self.identity.backend) {
            (Storage::Cuda(memory), Backend::Cuda(gpu)) => gpu.write(self.stream(gpu), memory, offset, bytes),
            #[cfg(feature = "mlir")]
            (Storage::Emulated(buffer), _) => {
                buffer.write(offset, bytes);
                Ok(())
            }
            #[cfg(feature = "mlir")]
            (Storage::Cuda(_), Backend::Emulator) => Err(emulated::foreign()),
        }
    }

    /// Runs a kernel on the GPU.
    pub(crate) fn submit<'a>(
        &self,
        gpu: &Gpu,
        kernel: &CudaKernel,
        grid: [u32; 3],
        manner: Manner,
        values: impl Iterator<Item = Value<'a>> + Clone,
    ) -> Result<(), Error> {
        kernel.launch(gpu, self.stream(gpu), grid, manner, values)?;
        if self.options.synchronous {
            gpu.synchronize(self.stream(gpu))?;
        }
        Ok(())
    }
}

/// The byte of memory that nothing wrote, as on the emulator.
const UNWRITTEN: u8 = 0xff;

/// Bytes of a tensor in device memory, which the host need not have room for.
fn byte_count(shape: &[usize], bytes_per_element: usize) -> Result<usize, Error> {
    element_count(shape)?.checked_mul(bytes_per_element).ok_or_else(|| too_large(shape))
}

/// A target by its name, with the closest one suggested for a wrong name.
///
/// # Errors
/// [`Error::Setting`] when there is none of that name.
pub fn target_from_name(name: &str) -> Result<Target, Error> {
    Target::from_name(name).map_err(|_| {
        let known = Target::ALL.iter().map(|target| target.name());
        Error::Setting(unknown("target", name, known))
    })
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity.backend {
            #[cfg(feature = "mlir")]
            Backend::Emulator => write!(f, "emulator:{}", self.target().name()),
            Backend::Cuda(gpu) => write!(f, "{gpu}"),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

#[cfg(test)]
#[cfg(feature = "mlir")]
mod tests {
    use super::*;

    #[test]
    fn devices_by_name() {
        assert_eq!(Device::from_name("emulator").unwrap().to_string(), "emulator:sm_80");
        assert_eq!(Device::from_name("emulator:gfx942").unwrap().target(), Target::GFX942);
        let refused = |name: &str| Device::from_name(name).unwrap_err().to_string();
        assert!(refused("emulator:sm80").contains("did you mean `sm_80`?"), "{}", refused("emulator:sm80"));
        assert!(refused("cuda:x:sm_80").contains("a number follows"));
        assert!(refused("cuda:x").contains("a number follows"));
        assert!(refused("metal").contains("known: emulator"));
    }
}
