//! Launches that are captured once and replayed as one.

use std::fmt;
use std::mem;
use std::sync::{Arc, PoisonError};

use cudarc::driver::{CudaGraph, DriverError, sys};

use super::driver;
use super::gpu::{Gpu, Stream};
use super::memory::Memory;
use crate::error::Error;

/// The graph of a capture, with what it uses.
pub(crate) struct Captured {
    graph: CudaGraph,
    /// Kept alive: a graph holds addresses.
    uses: Vec<(Arc<Memory>, bool)>,
    kernels: Vec<Arc<str>>,
}

impl Captured {
    /// Captures what `work` puts on the stream that it is given.
    pub(crate) fn new(gpu: &Gpu, work: impl FnOnce(Stream) -> Result<(), Error>) -> Result<Self, Error> {
        let failed = |error: DriverError| gpu.fault("the capture of a graph", error);
        // A stream of its own: tensors that are dropped meanwhile are freed on theirs, not in the graph.
        let raw = gpu.context().new_stream().map_err(failed)?;
        let stream = Stream::capturing(Arc::clone(&raw));
        // Relaxed: a kernel may be compiled and loaded meanwhile.
        raw.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).map_err(failed)?;
        let outcome = work(stream.clone());
        // Ended in any case, so that the stream can be destroyed.
        let graph = raw.end_capture(sys::CUgraphInstantiate_flags(0));
        outcome?;
        let graph = graph.map_err(failed)?.ok_or_else(|| Error::Device("nothing was captured".to_owned()))?;
        let captured =
            stream.capture().map(|captured| mem::take(&mut *captured.lock().unwrap_or_else(PoisonError::into_inner)));
        let captured = captured.unwrap_or_default();
        Ok(Self { graph, uses: captured.uses, kernels: captured.kernels })
    }

    /// Puts all of it on a stream.
    pub(crate) fn launch(&self, gpu: &Gpu, stream: &Stream) -> Result<(), Error> {
        if stream.capture().is_some() {
            return Err(Error::Device("a graph cannot be launched while another is captured".to_owned()));
        }
        self.kernels.iter().for_each(|kernel| gpu.launched(kernel));
        let uses = self.uses.iter().map(|(memory, writes)| (&**memory, *writes));
        gpu.ordered(stream, uses, || driver::launch_graph(&self.graph, stream.raw()))
            .map_err(|error| gpu.fault("the launch of a graph", error))
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Captured").field("kernels", &self.kernels).finish_non_exhaustive()
    }
}
