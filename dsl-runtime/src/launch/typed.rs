//! Launches of kernels whose source is in the program.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use lacewing_core::{Target, Traced, rt, trace_kernel};

use super::{Args, Arguments, Ready};
use crate::cache;
use crate::cuda::Manner;
use crate::device::Device;
use crate::emulator::LaunchStats;
use crate::error::Error;

/// What every kernel can do on the host.
///
/// ```ignore
/// axpy::<F32>::new(256).grid([n.div_ceil(256), 1, 1]).launch(&dev, (2.0f32, &x, &mut y))?;
/// ```
pub trait KernelExt: rt::Kernel {
    /// A launch of the kernel on a grid of blocks (x, y, z).
    fn grid(&self, grid: [usize; 3]) -> Launch<Self> {
        Launch { kernel: self.clone(), grid, manner: Manner::default() }
    }

    /// Traces the kernel for a target.
    ///
    /// # Errors
    /// When the trace or the verifier refuses it.
    fn traced(&self, target: impl Borrow<Target>) -> Result<Traced, Error> {
        Ok(trace_kernel(self, *target.borrow())?)
    }

    /// The kernel's traced MLIR as text.
    ///
    /// # Errors
    /// When the trace or the verifier refuses the kernel.
    fn mlir(&self, target: impl Borrow<Target>) -> Result<String, Error> {
        Ok(self.traced(target)?.text())
    }
}

impl<K: rt::Kernel> KernelExt for K {}

/// A launch that has not happened yet.
#[must_use = "nothing runs until `.launch(&device, arguments)` is called"]
#[derive(Clone, Debug)]
pub struct Launch<K> {
    kernel: K,
    grid: [usize; 3],
    manner: Manner,
}

impl<K: rt::Kernel> Launch<K> {
    /// The same launch, of which all blocks run at once, so that they may wait for each other; one whose blocks do not all
    /// fit on the device is refused. The emulator, which runs blocks one after the other, refuses more than one.
    pub fn cooperative(mut self) -> Self {
        self.manner.cooperative = true;
        self
    }

    /// The same launch, which may start before the launch before it on the stream is through (programmatic dependent
    /// launch). The kernel says from where on it needs what that one wrote: by `wait_for_previous_grid()`, without which
    /// the launch is refused. Every block must come to it: a launch behind this one waits for this one alone, and takes for
    /// granted that what came before is through. Chips before sm_90 and the emulator run it in order.
    pub fn overlapping(mut self) -> Self {
        self.manner.overlapping = true;
        self
    }

    /// Checks the arguments against the kernel and runs it. A grid without blocks does nothing. On a GPU the kernel
    /// is put on the device's stream, and the host goes on.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel does not compile, [`Error::Launch`] when grid, block,
    /// shared memory or arguments break a rule of the device, [`Error::Report`] when a check of the
    /// emulator ends the run, [`Error::Fault`] when this or an earlier kernel has failed on the GPU.
    pub fn launch<A: Args<K::Params>>(&self, device: &Device, args: A) -> Result<LaunchStats, Error> {
        self.prepare(device)?.launch(args)
    }

    /// Compiles the kernel for a device, unless that has been done, and checks grid and block: what is left is cheap
    /// and can be done many times.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the kernel does not compile, [`Error::Launch`] when grid, block or shared memory break
    /// a rule of the device.
    pub fn prepare(&self, device: &Device) -> Result<Prepared<K>, Error> {
        Ok(Prepared {
            ready: Ready::new(device, cache::compiled(&self.kernel, device)?, self.grid, self.manner)?,
            kernel: PhantomData,
        })
    }
}

/// A launch that needs nothing more than its arguments, for launching one kernel many times: the kernel is looked up
/// once, and a launch allocates no memory.
#[must_use = "nothing runs until `.launch(arguments)` is called"]
pub struct Prepared<K> {
    ready: Ready,
    kernel: PhantomData<fn() -> K>,
}

impl<K: rt::Kernel> Prepared<K> {
    /// Checks the arguments against the kernel and runs it, as [`Launch::launch`].
    ///
    /// # Errors
    /// [`Error::Launch`] when the arguments break a rule of the device, [`Error::Report`] when a check of the emulator
    /// ends the run, [`Error::Fault`] when this or an earlier kernel has failed on the GPU.
    pub fn launch<A: Args<K::Params>>(&self, args: A) -> Result<LaunchStats, Error> {
        let mut arguments = Arguments::default();
        args.pass(&mut arguments);
        self.ready.launch(&mut arguments)
    }
}

impl<K> Clone for Prepared<K> {
    fn clone(&self) -> Self {
        Prepared { ready: self.ready.clone(), kernel: PhantomData }
    }
}

impl<K> fmt::Debug for Prepared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({})", self.ready)
    }
}
