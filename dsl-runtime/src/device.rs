//! Where kernels run.

use std::fmt;
use std::sync::Arc;

use lacewing_core::Target;

use crate::element::Element;
use crate::emulator::{Buffer, Checks, LaunchStats, Program, Report, ReportKind};
use crate::error::Error;
use crate::host::{HostTensor, check_room};
use crate::tensor::DevTensor;

/// A device: an emulated chip, or a GPU once there is support for one.
///
/// Clones are the same device with the same memory; a clone may have other launch options
/// ([`with_seed`](Device::with_seed), [`with_checks`](Device::with_checks)).
#[derive(Clone)]
pub struct Device {
    identity: Arc<Identity>,
    options: Options,
}

/// What makes two handles the same device: tensors remember it.
pub(crate) struct Identity {
    target: Target,
}

#[derive(Clone)]
struct Options {
    seed: u64,
    checks: Checks,
    threads: usize,
    printed: Printed,
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
        let options = Options { seed: 0, checks: Checks::default(), threads: 0, printed: Printed::default() };
        Ok(Device { identity: Arc::new(Identity { target }), options })
    }

    /// The CUDA device number `index`.
    ///
    /// # Errors
    /// Always, for now.
    pub fn cuda(index: usize) -> Result<Self, Error> {
        Err(Error::Device(format!("there is no cuda:{index}: this build has no CUDA device yet; use the emulator")))
    }

    /// A device by name: `emulator` (of sm_80), `emulator:gfx942`, `cuda:0`.
    ///
    /// # Errors
    /// [`Error::Setting`] for a name that means no device, [`Error::Device`] for a device that is
    /// not there.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        let (kind, detail) = name.split_once(':').map_or((name, None), |(kind, detail)| (kind, Some(detail)));
        match (kind, detail) {
            ("emulator", None) => Self::emulator(Target::SM_80),
            ("emulator", Some(target)) => Self::emulator(target_from_name(target)?),
            ("cuda", None) => Self::cuda(0),
            ("cuda", Some(index)) => {
                let index = index.parse().map_err(|_| {
                    Error::Setting(format!("`cuda:{index}` names no device: a number follows, as in cuda:0"))
                })?;
                Self::cuda(index)
            }
            _ => Err(Error::Setting(format!(
                "there is no device `{name}`\n  known: emulator, emulator:TARGET (as emulator:sm_80), cuda:N"
            ))),
        }
    }

    /// The same device with another seed for the order in which warps run. Results of a kernel
    /// without races do not depend on it.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// The same device with other checks.
    #[must_use]
    pub fn with_checks(mut self, checks: Checks) -> Self {
        self.options.checks = checks;
        self
    }

    /// The same device, emulated by this many host threads; 0 for as many as there are cores.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// The same device with the lines of `printf!` going elsewhere.
    #[must_use]
    pub fn with_printed(mut self, printed: Printed) -> Self {
        self.options.printed = printed;
        self
    }

    /// The chip that kernels are compiled for.
    pub fn target(&self) -> Target {
        self.identity.target
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
        Ok(DevTensor::whole(self.clone(), Buffer::from_bytes(host.bytes()), host.shape_of()?))
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
    /// [`Error::Shape`] when it does not fit in memory.
    pub fn tensor_zeros<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DevTensor<T, RANK>, Error> {
        Ok(DevTensor::whole(self.clone(), Buffer::zeroed(check_room(&shape, T::TYPE.bytes())?), shape))
    }

    /// A tensor whose elements count as never written: the emulator reports a kernel that reads
    /// one, and [`DevTensor::to_vec`] refuses to give one out. The right start for outputs.
    ///
    /// # Errors
    /// [`Error::Shape`] when it does not fit in memory.
    pub fn tensor_uninit<T: Element, const RANK: usize>(
        &self,
        shape: [usize; RANK],
    ) -> Result<DevTensor<T, RANK>, Error> {
        Ok(DevTensor::whole(self.clone(), Buffer::uninit(check_room(&shape, T::TYPE.bytes())?), shape))
    }

    pub(crate) fn run(
        &self,
        program: &Program,
        grid: [u32; 3],
        args: Vec<crate::emulator::ArgValue>,
    ) -> Result<LaunchStats, Error> {
        let Options { seed, checks, threads, printed } = self.options;
        let launch = crate::emulator::Launch { grid, args, seed, checks, threads };
        let stats = crate::emulator::run(program, &launch).map_err(|report| refuse(*report))?;
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

/// A report about arguments is a refused launch: nothing ran.
fn refuse(report: Report) -> Error {
    if report.kind == ReportKind::BadLaunch {
        Error::Launch { kernel: report.kernel, reason: report.message }
    } else {
        Error::Report(Box::new(report))
    }
}

/// A target by its name, with the closest one suggested for a wrong name.
///
/// # Errors
/// [`Error::Setting`] when there is none of that name.
pub fn target_from_name(name: &str) -> Result<Target, Error> {
    Target::from_name(name).map_err(|_| {
        let known = Target::ALL.iter().map(|target| target.name());
        Error::Setting(crate::registry::unknown("target", name, known))
    })
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "emulator:{}", self.target().name())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_by_name() {
        assert_eq!(Device::from_name("emulator").unwrap().to_string(), "emulator:sm_80");
        assert_eq!(Device::from_name("emulator:gfx942").unwrap().target(), Target::GFX942);
        let refused = |name: &str| Device::from_name(name).unwrap_err().to_string();
        assert!(refused("emulator:sm80").contains("did you mean `sm_80`?"), "{}", refused("emulator:sm80"));
        assert!(refused("cuda:0").contains("use the emulator"));
        assert!(refused("cuda:x").contains("a number follows"));
        assert!(refused("metal").contains("known: emulator"));
    }
}
