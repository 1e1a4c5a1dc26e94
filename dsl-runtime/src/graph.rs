//! Launches that are replayed as one.

use crate::cuda::Captured;
use crate::device::{Backend, Device};
use crate::error::Error;

/// Launches that were captured by [`Device::capture`]. It keeps the tensors that they use alive.
#[derive(Debug)]
#[must_use = "nothing runs until `.launch()` is called"]
pub struct Graph {
    pub(crate) device: Device,
    pub(crate) captured: Captured,
}

impl Graph {
    /// Puts all launches on the stream of the handle that captured them, with the arguments that they were captured
    /// with.
    ///
    /// # Errors
    /// [`Error::Fault`] when an earlier kernel has failed, [`Error::Device`] when the driver refuses.
    pub fn launch(&self) -> Result<(), Error> {
        match self.device.backend() {
            Backend::Cuda(gpu) => self.captured.launch(gpu, self.device.stream(gpu)),
            #[cfg(feature = "mlir")]
            Backend::Emulator => Err(Error::Device("the emulator has no graphs".to_owned())),
        }
    }
}
