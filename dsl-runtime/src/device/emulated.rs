//! Devices that are emulated, and how kernels are compiled for GPUs: what a program without a compiler has not.

use std::sync::Arc;

use lacewing_core::Target;

use super::{Backend, Device, Identity, Options as DeviceOptions};
use crate::bench::Recorder;
use crate::cuda::CompileOptions;
use crate::element::Element;
use crate::emulator::{
    ArgValue, Buffer, Checks, Launch, LaunchStats, Program, Report, ReportKind, Writers, run, run_recorded,
};
use crate::error::Error;
use crate::placement::{Content, Placement};
use crate::record::{Observer, Recorded, RecordedView};
use crate::storage::Storage;
use crate::tensor::DevTensor;

/// How a handle emulates.
#[derive(Clone, Default)]
pub(super) struct Options {
    seed: u64,
    checks: Checks,
    threads: usize,
    printed: Printed,
    placement: Placement,
    observer: Option<Arc<Observer>>,
}

/// Where the lines of a kernel's `printf!` go, besides [`LaunchStats::printed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Printed {
    /// To standard output, as on a GPU.
    #[default]
    Stdout,
    /// To standard error.
    Stderr,
    /// Nowhere.
    Nowhere,
}

impl Device {
    /// An emulated chip of kind `target`, on the CPU.
    ///
    /// # Errors
    /// None today; a launch reports what the emulator does not know of the target.
    pub fn emulator(target: Target) -> Result<Self, Error> {
        let identity = Identity { target, backend: Backend::Emulator };
        Ok(Device { identity: Arc::new(identity), options: DeviceOptions::default() })
    }

    /// The same device with another seed for the order in which warps run. Results of a kernel
    /// without races do not depend on it.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.options.emulation.seed = seed;
        self
    }

    /// The same device with other checks.
    #[must_use]
    pub fn with_checks(mut self, checks: Checks) -> Self {
        self.options.emulation.checks = checks;
        self
    }

    /// The same device, emulated by this many host threads; 0 for as many as there are cores.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.options.emulation.threads = threads;
        self
    }

    /// The same device with the lines of `printf!` going elsewhere.
    #[must_use]
    pub fn with_printed(mut self, printed: Printed) -> Self {
        self.options.emulation.printed = printed;
        self
    }

    /// The same device, which tells what launches do: tensors that are made with the handle remember which elements
    /// kernels read, and launches leave a record. The emulator alone does.
    #[must_use]
    pub fn with_observer(mut self, observer: &Arc<Observer>) -> Self {
        self.options.emulation.placement.watched = true;
        self.options.emulation.observer = Some(Arc::clone(observer));
        self
    }

    /// The same device with gaps between the rows, and between the matrices, of tensors that are made with the handle
    /// (`true`). Nothing has written the gaps: whoever reads them without the check `init` finds NaN. The emulator
    /// alone makes them; their rows are as aligned as they would be without.
    #[must_use]
    pub fn with_padding(mut self, padded: bool) -> Self {
        self.options.emulation.placement.padded = padded;
        self
    }

    /// The same device, which takes floats of the host whose bits are all set for memory that nothing wrote
    /// (`true`), so that the emulator names the line that reads one.
    #[must_use]
    pub fn with_poison(mut self, poisoned: bool) -> Self {
        self.options.emulation.placement.poisoned = poisoned;
        self
    }

    /// The same device with kernels compiled another way (a GPU; the emulator compiles nothing).
    #[must_use]
    pub fn with_compile_options(mut self, options: CompileOptions) -> Self {
        self.options.compile = options;
        self
    }

    pub(crate) fn with_recorder(mut self, recorder: Recorder) -> Self {
        self.options.recorder = Some(recorder);
        self
    }

    pub(crate) fn without_recorder(&self) -> Self {
        let mut other = self.clone();
        other.options.recorder = None;
        other
    }

    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.options.recorder.as_ref()
    }

    /// New memory with the same content.
    pub(crate) fn copy_of(&self, storage: &Storage) -> Result<Storage, Error> {
        match (storage, &self.identity.backend) {
            (Storage::Emulated(buffer), _) => Ok(Storage::Emulated(Buffer::from_bytes(&buffer.read()))),
            (Storage::Cuda(_), Backend::Cuda(gpu)) => {
                let copy = self.allocate(gpu, storage.len(), None)?;
                self.copy(storage, &copy)?;
                Ok(copy)
            }
            (Storage::Cuda(_), Backend::Emulator) => Err(foreign()),
        }
    }

    /// Copies the content of memory to other memory of the same size.
    pub(crate) fn copy(&self, from: &Storage, to: &Storage) -> Result<(), Error> {
        match (from, to, &self.identity.backend) {
            (Storage::Emulated(from), Storage::Emulated(to), _) => {
                to.write(0, &from.read());
                Ok(())
            }
            (Storage::Cuda(from), Storage::Cuda(to), Backend::Cuda(gpu)) => gpu.copy(self.stream(gpu), from, to),
            _ => Err(foreign()),
        }
    }

    /// All bytes of memory, whether anything wrote them or not.
    pub(crate) fn bytes_of(&self, storage: &Storage) -> Result<Vec<u8>, Error> {
        self.read(storage, 0..storage.len())
    }

    /// Whether memory that nothing wrote is filled with a pattern that shows.
    pub(super) fn marks_unwritten(&self) -> bool {
        self.options.emulation.checks.initialized
    }

    /// Whether launches leave a record.
    pub(crate) fn is_recording(&self) -> bool {
        self.options.emulation.observer.is_some()
    }

    /// A tensor in the emulator's memory.
    pub(super) fn emulated<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
        content: Content<'_>,
    ) -> Result<DevTensor<T, RANK>, Error> {
        let (buffer, strides) = self.options.emulation.placement.place(T::TYPE, shape, content)?;
        Ok(DevTensor::strided(self.clone(), Storage::Emulated(buffer), shape, strides))
    }

    /// Runs a kernel on the emulator; `views` are for the record.
    pub(crate) fn emulate(
        &self,
        program: &Program,
        grid: [u32; 3],
        args: Vec<ArgValue>,
        views: Vec<RecordedView>,
    ) -> Result<LaunchStats, Error> {
        let Options { seed, checks, threads, printed, ref observer, .. } = self.options.emulation;
        let launch = Launch { grid, args, seed, checks, threads };
        let stats = match observer {
            None => run(program, &launch).map_err(|report| refuse(*report))?,
            Some(observer) => {
                let outcome = run_recorded(program, &launch);
                let (stats, writers) = match &outcome {
                    Ok((stats, writers)) => (Some(stats.clone()), writers.clone()),
                    Err(_) => (None, Writers::default()),
                };
                let (kernel, location) = (program.name().to_owned(), program.location().cloned());
                observer.add(Recorded { kernel, location, views, stats, writers });
                outcome.map_err(|report| refuse(*report))?.0
            }
        };
        let dropped = (stats.printed_dropped > 0).then(|| format!("({} more lines)", stats.printed_dropped));
        for line in stats.printed.iter().chain(&dropped) {
            match printed {
                Printed::Stdout => println!("{}", line.trim_end_matches('\n')),
                Printed::Stderr => eprintln!("{}", line.trim_end_matches('\n')),
                Printed::Nowhere => break,
            }
        }
        Ok(stats)
    }
}

/// Handles and their storage are made together: only a fault of ours can part them.
pub(super) fn foreign() -> Error {
    Error::Device("a tensor does not lie on its device (a fault in Lacewing)".to_owned())
}

/// A report about arguments is a refused launch: nothing ran.
fn refuse(report: Report) -> Error {
    if report.kind == ReportKind::BadLaunch {
        Error::Launch { kernel: report.kernel, reason: report.message }
    } else {
        Error::Report(Box::new(report))
    }
}
