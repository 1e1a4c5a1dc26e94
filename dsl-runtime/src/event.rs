//! Points in a device's work, for timing.

use std::time::Duration;
#[cfg(feature = "mlir")]
use std::time::Instant;

use cudarc::driver::CudaEvent;

use crate::cuda;
use crate::error::Error;

/// A point in the work of a device's stream, made by [`Device::record`](crate::Device::record).
#[derive(Debug)]
pub struct Event(pub(crate) Point);

#[derive(Debug)]
pub(crate) enum Point {
    /// On the emulator, work is through when its launch returns.
    #[cfg(feature = "mlir")]
    Host(Instant),
    /// On a GPU.
    Cuda(CudaEvent),
}

impl Event {
    /// Waits until the work before it is through.
    ///
    /// # Errors
    /// [`Error::Device`] when that work has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        match &self.0 {
            #[cfg(feature = "mlir")]
            Point::Host(_) => Ok(()),
            Point::Cuda(event) => event.synchronize().map_err(cuda::event_failed),
        }
    }

    /// The time from this event to a later one; waits for both.
    ///
    /// # Errors
    /// [`Error::Device`] when work before them has failed, the events are of two devices, or the driver is too old.
    pub fn until(&self, end: &Event) -> Result<Duration, Error> {
        match (&self.0, &end.0) {
            #[cfg(feature = "mlir")]
            (Point::Host(start), Point::Host(end)) => Ok(end.saturating_duration_since(*start)),
            (Point::Cuda(start), Point::Cuda(end)) => cuda::elapsed(start, end),
            #[cfg(feature = "mlir")]
            _ => Err(Error::Device("the two events are of different devices".to_owned())),
        }
    }
}
