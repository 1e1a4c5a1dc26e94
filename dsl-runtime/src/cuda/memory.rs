//! Device memory that several streams may use.
//!
//! Work on one stream is in order by itself. Work on another stream waits for it through events, which are recorded
//! only once a device has more than one stream. The memory is freed in the order of the stream that it was made on,
//! behind all uses on others: work in flight needs no handle to stay alive.

use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaEvent, CudaStream, DriverError};

use super::driver::Allocation;
use super::gpu::Stream;

/// One allocation.
#[derive(Debug)]
pub(crate) struct Memory {
    allocation: Allocation,
    uses: Mutex<Uses>,
}

/// The last uses on each stream.
#[derive(Debug, Default)]
struct Uses {
    write: Option<Use>,
    reads: Vec<Use>,
}

/// Work on a stream, up to an event.
#[derive(Clone, Debug)]
struct Use {
    stream: Arc<CudaStream>,
    event: Arc<CudaEvent>,
}

impl Use {
    fn await_on(&self, stream: &CudaStream) -> Result<(), DriverError> {
        if *self.stream == *stream { Ok(()) } else { stream.wait(&self.event) }
    }
}

impl Memory {
    pub(super) fn new(stream: &Stream, bytes: usize) -> Result<Self, DriverError> {
        Ok(Self { allocation: Allocation::new(stream.raw(), bytes)?, uses: Mutex::default() })
    }

    pub(crate) fn len(&self) -> usize {
        self.allocation.len()
    }

    pub(super) fn allocation(&self) -> &Allocation {
        &self.allocation
    }

    /// Makes a stream wait for the work of others: a reader for the last writer, a writer for all.
    pub(super) fn before(&self, stream: &CudaStream, writes: bool) -> Result<(), DriverError> {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.write.iter().try_for_each(|used| used.await_on(stream))?;
        if writes { uses.reads.iter().try_for_each(|used| used.await_on(stream)) } else { Ok(()) }
    }

    /// Notes a use that ends with the event.
    pub(super) fn after(&self, stream: &Arc<CudaStream>, event: &Arc<CudaEvent>, writes: bool) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let used = Use { stream: Arc::clone(stream), event: Arc::clone(event) };
        if writes {
            // The writer waited for every reader: whoever waits for it waits for them.
            *uses = Uses { write: Some(used), reads: Vec::new() };
        } else {
            uses.reads.retain(|other| *other.stream != **stream);
            uses.reads.push(used);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let home = self.allocation.home();
        let uses = self.uses.get_mut().unwrap_or_else(PoisonError::into_inner);
        for used in uses.write.iter().chain(&uses.reads) {
            home.context().record_err(used.await_on(home));
        }
    }
}
