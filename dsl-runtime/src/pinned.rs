//! Copies between host and device that the host does not wait for.
//!
//! ```text
//! PinnedVec   elements in memory of the host that the GPU reads and writes by itself
//! Transfer    a copy that may be under way: it owns the memory, and gives it back when it is through
//! ```
//!
//! Ordinary memory is copied by `DevTensor::copy_from` and `to_vec`, which wait. A copy of a [`PinnedVec`] is put on the
//! stream, and the host goes on; until the copy is through nobody can touch the memory, because the [`Transfer`] owns it.
//! Dropped, a transfer waits; forgotten, it never frees the memory.

use std::fmt;
use std::marker::PhantomData;

use crate::cuda::{Copying, Pinned};
use crate::device::{Backend, Device};
use crate::element::Element;
use crate::error::Error;
use crate::storage::Storage;
use crate::tensor::DevTensor;

/// Elements in page-locked memory of the host. On the emulator it is ordinary memory.
pub struct PinnedVec<T: Element> {
    device: Device,
    memory: HostBytes,
    len: usize,
    element: PhantomData<T>,
}

enum HostBytes {
    #[cfg(feature = "mlir")]
    Ordinary(Vec<u8>),
    Pinned(Pinned),
}

impl HostBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            #[cfg(feature = "mlir")]
            HostBytes::Ordinary(bytes) => bytes,
            HostBytes::Pinned(pinned) => pinned.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            #[cfg(feature = "mlir")]
            HostBytes::Ordinary(bytes) => bytes,
            HostBytes::Pinned(pinned) => pinned.bytes_mut(),
        }
    }
}

impl Device {
    /// Page-locked memory for so many elements, which are zero (`false`). Page-locking is slow and takes memory from the
    /// system: make it once, and use it for many copies.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Device`] when it does not fit in memory.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedVec<T>, Error> {
        let too_large = || Error::Shape(format!("{len} elements of {} do not fit in memory", T::TYPE));
        let bytes = len.checked_mul(T::TYPE.bytes()).ok_or_else(too_large)?;
        let memory = match self.backend() {
            #[cfg(feature = "mlir")]
            Backend::Emulator => HostBytes::Ordinary(vec![0; crate::host::check_room(&[bytes], 1)?]),
            Backend::Cuda(gpu) => HostBytes::Pinned(gpu.pinned(bytes)?),
        };
        Ok(PinnedVec { device: self.clone(), memory, len, element: PhantomData })
    }
}

impl<T: Element> PinnedVec<T> {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements.
    ///
    /// # Errors
    /// [`Error::Shape`] when the memory holds what is no `T` (a `bool` that is neither 0 nor 1).
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        T::from_bytes(self.memory.bytes())
    }

    /// Overwrites the first elements.
    ///
    /// # Errors
    /// [`Error::Shape`] when there are more than it has room for.
    pub fn copy_from(&mut self, elements: &[T]) -> Result<(), Error> {
        let bytes = T::to_bytes(elements);
        let len = self.len;
        let Some(place) = self.memory.bytes_mut().get_mut(..bytes.len()) else {
            return Err(Error::Shape(format!("{} elements do not fit in {len}", elements.len())));
        };
        place.copy_from_slice(&bytes);
        Ok(())
    }

    /// The bytes of the elements, little-endian, to read in place.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// The bytes of the elements, little-endian, to write in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl<T: Element> fmt::Debug for PinnedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedVec({} {})", self.len, T::TYPE)
    }
}

impl<T: Element, const RANK: usize> DevTensor<T, RANK> {
    /// Overwrites the elements, behind earlier work of the stream; the host goes on. The elements are those of the view in
    /// row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] when the view is not contiguous or has another number of elements, [`Error::Device`] when the memory
    /// belongs to another device or a graph is being captured. The memory is freed then.
    pub fn upload(&mut self, from: PinnedVec<T>) -> Result<Transfer<T>, Error> {
        self.transfer(from, false)
    }

    /// Copies the elements out, behind earlier work of the stream; the host goes on.
    ///
    /// # Errors
    /// As [`upload`](Self::upload); on the emulator also [`Error::Unwritten`], as [`to_vec`](Self::to_vec).
    pub fn download(&self, into: PinnedVec<T>) -> Result<Transfer<T>, Error> {
        self.transfer(into, true)
    }

    fn transfer(&self, host: PinnedVec<T>, to_host: bool) -> Result<Transfer<T>, Error> {
        let PinnedVec { device: owner, memory, len, .. } = host;
        if !owner.same(self.device()) {
            return Err(Error::Device("the page-locked memory belongs to another device than the tensor".to_owned()));
        }
        if !self.is_contiguous() || len != self.len() {
            return Err(Error::Shape(format!(
                "{len} elements of page-locked memory for a tensor {:?} with strides {:?}: it must be contiguous and have \
                 as many",
                self.shape(),
                self.strides()
            )));
        }
        let state = match (memory, &self.storage, self.device().backend()) {
            #[cfg(feature = "mlir")]
            (HostBytes::Ordinary(mut bytes), Storage::Emulated(_), _) => {
                if to_host {
                    bytes = T::to_bytes(&self.to_vec()?);
                } else {
                    self.device().write(&self.storage, self.offset_bytes(), &bytes)?;
                }
                State::Done(HostBytes::Ordinary(bytes))
            }
            (HostBytes::Pinned(pinned), Storage::Cuda(memory), Backend::Cuda(gpu)) => {
                let (stream, offset) = (self.device().stream(gpu), self.offset_bytes());
                State::Copying(gpu.start_copy(stream, pinned, to_host, memory, offset)?)
            }
            #[cfg(feature = "mlir")]
            _ => {
                return Err(Error::Device(
                    "page-locked memory does not lie on its device (a fault in Lacewing)".to_owned(),
                ));
            }
        };
        Ok(Transfer { device: owner, state, len, element: PhantomData })
    }
}

/// A copy between page-locked memory and a tensor that may be under way. It owns the memory until it is through.
#[must_use = "dropped, it waits for the copy; `.wait()` gives the memory back"]
pub struct Transfer<T: Element> {
    device: Device,
    state: State,
    len: usize,
    element: PhantomData<T>,
}

enum State {
    #[cfg(feature = "mlir")]
    Done(HostBytes),
    Copying(Copying),
}

impl<T: Element> Transfer<T> {
    /// Whether the copy is through, so that [`wait`](Self::wait) returns at once.
    pub fn is_done(&self) -> bool {
        match &self.state {
            #[cfg(feature = "mlir")]
            State::Done(_) => true,
            State::Copying(copy) => copy.is_done(),
        }
    }

    /// Waits until the copy is through, and gives the memory back.
    ///
    /// # Errors
    /// [`Error::Device`] when work before the copy has failed.
    pub fn wait(self) -> Result<PinnedVec<T>, Error> {
        let memory = match self.state {
            #[cfg(feature = "mlir")]
            State::Done(bytes) => bytes,
            State::Copying(copy) => HostBytes::Pinned(copy.wait()?),
        };
        Ok(PinnedVec { device: self.device, memory, len: self.len, element: PhantomData })
    }
}

impl<T: Element> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transfer({} {}, {})", self.len, T::TYPE, if self.is_done() { "done" } else { "under way" })
    }
}

#[cfg(all(test, feature = "mlir"))]
mod tests {
    use super::*;
    use lacewing_core::Target;

    #[allow(clippy::unwrap_used, reason = "a helper of tests")]
    fn device() -> Device {
        Device::emulator(Target::SM_80).unwrap()
    }

    #[test]
    fn elements_go_there_and_back() {
        let device = device();
        let mut host = device.pinned::<f32>(6).unwrap();
        assert_eq!((host.len(), host.to_vec().unwrap()), (6, vec![0.0; 6]));
        host.copy_from(&[1.0, 2.0, 3.0]).unwrap();
        let mut tensor = device.tensor_uninit::<f32, 2>([2, 3]).unwrap();
        let transfer = tensor.upload(host).unwrap();
        assert!(transfer.is_done());
        let host = transfer.wait().unwrap();
        assert_eq!(tensor.to_vec().unwrap(), [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
        tensor.copy_from(&[7.0; 6]).unwrap();
        let host = tensor.download(host).unwrap().wait().unwrap();
        assert_eq!(host.to_vec().unwrap(), [7.0; 6]);
        assert_eq!(host.bytes()[..4], 7f32.to_le_bytes());
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let device = device();
        let mut tensor = device.tensor_zeros::<i32, 2>([2, 3]).unwrap();
        let text = tensor.upload(device.pinned(5).unwrap()).unwrap_err().to_string();
        assert!(text.contains("5 elements of page-locked memory for a tensor [2, 3]"), "{text}");
        let transposed = tensor.permute([1, 0]).unwrap();
        assert!(transposed.download(device.pinned(6).unwrap()).is_err());
        let other = Device::emulator(Target::SM_80).unwrap();
        let text = tensor.upload(other.pinned(6).unwrap()).unwrap_err().to_string();
        assert!(text.contains("belongs to another device"), "{text}");
        assert!(device.pinned::<i32>(2).unwrap().copy_from(&[1, 2, 3]).is_err());
        assert!(device.pinned::<f64>(usize::MAX).is_err());
        let unwritten = device.tensor_uninit::<i32, 1>([4]).unwrap();
        assert!(matches!(unwritten.download(device.pinned(4).unwrap()), Err(Error::Unwritten { .. })));
    }
}
