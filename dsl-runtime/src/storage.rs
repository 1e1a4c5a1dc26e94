//! The bytes behind tensors, on whatever device they lie.

use std::ops::Range;
use std::sync::Arc;

use crate::cuda::Memory;
#[cfg(feature = "mlir")]
use crate::emulator::Buffer;

/// An allocation of one device. Clones share the bytes.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    /// Memory of the emulator, which knows of each byte whether it was written.
    #[cfg(feature = "mlir")]
    Emulated(Buffer),
    /// Memory of a GPU.
    Cuda(Arc<Memory>),
}

impl Storage {
    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            #[cfg(feature = "mlir")]
            Storage::Emulated(buffer) => buffer.len(),
            Storage::Cuda(memory) => memory.len(),
        }
    }

    /// The memory of a GPU, if it is that.
    pub(crate) fn cuda(&self) -> Option<&Arc<Memory>> {
        match self {
            #[cfg(feature = "mlir")]
            Storage::Emulated(_) => None,
            Storage::Cuda(memory) => Some(memory),
        }
    }

    /// Whether two handles share their bytes.
    pub(crate) fn same(&self, other: &Storage) -> bool {
        match (self, other) {
            (Storage::Cuda(a), Storage::Cuda(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "mlir")]
            (Storage::Emulated(a), Storage::Emulated(b)) => a.same(b),
            #[cfg(feature = "mlir")]
            _ => false,
        }
    }

    /// The ranges of bytes that are known never to have been written. A GPU does not know.
    pub(crate) fn unwritten(&self) -> Vec<Range<usize>> {
        match self {
            #[cfg(feature = "mlir")]
            Storage::Emulated(buffer) => buffer.unwritten(),
            Storage::Cuda(_) => Vec::new(),
        }
    }
}
