//! Tensors in device memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use crate::device::Device;
use crate::element::Element;
use crate::error::Error;
use crate::host::{HostTensor, element_count};
use crate::storage::Storage;

/// A view of device memory: a buffer, where the first element is, an extent and a stride (in
/// elements) for each dimension.
///
/// Views made from a tensor share its memory, and keep it alive. A launch takes `&tensor` for a
/// kernel's `Tensor` and `&mut tensor` for its `TensorMut`; a tensor to be written must not overlap
/// itself or another argument.
pub struct DevTensor<T: Element, const RANK: usize> {
    pub(crate) device: Device,
    pub(crate) storage: Storage,
    /// Elements before the first one of the view.
    pub(crate) offset: usize,
    pub(crate) extents: [usize; RANK],
    pub(crate) strides: [i64; RANK],
    element: PhantomData<T>,
}

/// Strides of a contiguous tensor with the last dimension fastest. A zero extent counts as one, so
/// that the strides of an empty tensor are usable too.
fn contiguous<const RANK: usize>(extents: [usize; RANK]) -> [i64; RANK] {
    let mut strides = [1; RANK];
    let mut step = 1i64;
    for (stride, extent) in strides.iter_mut().zip(extents).rev() {
        *stride = step;
        step = step.saturating_mul(i64::try_from(extent.max(1)).unwrap_or(i64::MAX));
    }
    strides
}

impl<T: Element, const RANK: usize> DevTensor<T, RANK> {
    pub(crate) fn whole(device: Device, storage: Storage, extents: [usize; RANK]) -> Self {
        Self::strided(device, storage, extents, contiguous(extents))
    }

    /// A tensor whose first element is that of its buffer.
    pub(crate) fn strided(device: Device, storage: Storage, extents: [usize; RANK], strides: [i64; RANK]) -> Self {
        DevTensor { device, storage, offset: 0, extents, strides, element: PhantomData }
    }

    fn with_layout<const R: usize>(&self, offset: usize, extents: [usize; R], strides: [i64; R]) -> DevTensor<T, R> {
        DevTensor {
            device: self.device.clone(),
            storage: self.storage.clone(),
            offset,
            extents,
            strides,
            element: PhantomData,
        }
    }

    /// The same view again.
    pub(crate) fn part(&self) -> Self {
        self.with_layout(self.offset, self.extents, self.strides)
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The same tensor by another handle of its device: on another stream, with other checks, or in a
    /// [capture](Device::capture). Functions that launch on the device of their tensors then launch there.
    ///
    /// # Errors
    /// [`Error::Device`] when `device` is another device.
    pub fn on(&self, device: &Device) -> Result<Self, Error> {
        if !self.device.same(device) {
            return Err(Error::Device(format!(
                "the tensor lies on {}, and not on {device}: copy it there",
                self.device
            )));
        }
        Ok(DevTensor { device: device.clone(), ..self.part() })
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> [usize; RANK] {
        self.extents
    }

    /// The strides in elements.
    pub fn strides(&self) -> [i64; RANK] {
        self.strides
    }

    /// Where its first element lies in its buffer, in bytes. Buffers start at multiples of 256 bytes.
    pub fn offset_bytes(&self) -> usize {
        self.offset * T::TYPE.bytes()
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        element_count(&self.extents).unwrap_or(usize::MAX)
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }

    /// Whether its elements lie one after the other, last dimension fastest. Strides of dimensions
    /// with one element do not matter.
    pub fn is_contiguous(&self) -> bool {
        let wanted = contiguous(self.extents);
        let mut dimensions = self.extents.iter().zip(self.strides.iter().zip(wanted));
        self.is_empty() || dimensions.all(|(extent, (stride, wanted))| *extent == 1 || *stride == wanted)
    }

    /// The view with its dimensions in another order: dimension `d` of the result is dimension
    /// `order[d]` of this.
    ///
    /// # Errors
    /// When `order` is no permutation.
    pub fn permute(&self, order: [usize; RANK]) -> Result<Self, Error> {
        let mut seen = [false; RANK];
        let mut extents = [0; RANK];
        let mut strides = [0; RANK];
        for ((extent, stride), from) in extents.iter_mut().zip(&mut strides).zip(order) {
            let dimension = self.dimension(from)?;
            if std::mem::replace(&mut seen[from], true) {
                return Err(Error::Shape(format!("{order:?} names dimension {from} twice")));
            }
            (*extent, *stride) = dimension;
        }
        Ok(self.with_layout(self.offset, extents, strides))
    }

    /// The part of the view with indices `range` in dimension `dimension`.
    ///
    /// # Errors
    /// When the range is not inside the dimension.
    pub fn slice(&self, dimension: usize, range: Range<usize>) -> Result<Self, Error> {
        let (extent, stride) = self.dimension(dimension)?;
        if range.start > range.end || range.end > extent {
            return Err(Error::Shape(format!("{range:?} is not inside dimension {dimension} of extent {extent}")));
        }
        let mut extents = self.extents;
        extents[dimension] = range.end - range.start;
        let moved = i64::try_from(range.start).ok().and_then(|start| start.checked_mul(stride));
        let offset = moved.and_then(|moved| i64::try_from(self.offset).ok()?.checked_add(moved));
        // An empty part may start past the last element: it has no first element to point to.
        let offset = if extents[dimension] == 0 { Some(0) } else { offset.and_then(|x| usize::try_from(x).ok()) };
        let offset = offset.ok_or_else(|| Error::Shape("the slice starts outside the tensor".to_owned()))?;
        Ok(self.with_layout(offset, extents, self.strides))
    }

    /// The view with dimensions of extent 1 repeated (stride 0) up to `extents`. It can be read,
    /// but not written.
    ///
    /// # Errors
    /// When another dimension would change.
    pub fn broadcast(&self, extents: [usize; RANK]) -> Result<Self, Error> {
        let mut strides = self.strides;
        for ((stride, from), to) in strides.iter_mut().zip(self.extents).zip(extents) {
            if from == to {
                continue;
            }
            if from != 1 {
                return Err(Error::Shape(format!("a tensor {:?} does not broadcast to {extents:?}", self.extents)));
            }
            *stride = 0;
        }
        Ok(self.with_layout(self.offset, extents, strides))
    }

    /// Any view of the tensor's whole buffer: `offset` elements into it, with these extents and
    /// strides, which may be zero or negative.
    ///
    /// # Errors
    /// When an element would lie outside the buffer.
    pub fn as_strided<const R: usize>(
        &self,
        offset: usize,
        extents: [usize; R],
        strides: [i64; R],
    ) -> Result<DevTensor<T, R>, Error> {
        let elements = self.storage.len() / T::TYPE.bytes();
        let outside = || {
            Error::Shape(format!(
                "a view at {offset} with extents {extents:?} and strides {strides:?} leaves the buffer of {elements} \
                 elements"
            ))
        };
        let view = self.with_layout(offset, extents, strides);
        element_count(&extents)?;
        match view.span() {
            // An empty view points nowhere.
            None => Ok(self.with_layout(0, extents, strides)),
            Some((first, last)) if first >= 0 && last < elements as i128 => Ok(view),
            Some(_) => Err(outside()),
        }
    }

    /// The view under another shape with as many elements.
    ///
    /// # Errors
    /// When the numbers of elements differ or the view is not contiguous.
    pub fn reshape<const R: usize>(&self, extents: [usize; R]) -> Result<DevTensor<T, R>, Error> {
        if element_count(&extents)? != self.len() {
            return Err(Error::Shape(format!(
                "{:?} has {} elements, {extents:?} another number",
                self.extents,
                self.len()
            )));
        }
        if !self.is_contiguous() {
            return Err(Error::Shape(format!("a view with strides {:?} has no other shape", self.strides)));
        }
        Ok(self.with_layout(self.offset, extents, contiguous(extents)))
    }

    /// The elements in row-major order of the view. On a GPU, waits for the work that writes them.
    ///
    /// # Errors
    /// When one of them was never written, by the host or a kernel: the first one is named (the emulator knows; a GPU
    /// does not). [`Error::Fault`] when a kernel has failed on the GPU.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        if let Some(index) = self.layout().first_within(&self.storage.unwritten()) {
            return Err(Error::Unwritten { index, shape: self.extents.to_vec() });
        }
        self.to_vec_unchecked()
    }

    /// As [`to_vec`](Self::to_vec), with elements that were never written as they lie in memory (all bits
    /// set, a NaN in every float type, as long as the device's checks are on).
    ///
    /// # Errors
    /// When the memory holds what is no `T` (a `bool` that is neither 0 nor 1), or the GPU has failed.
    pub fn to_vec_unchecked(&self) -> Result<Vec<T>, Error> {
        let layout = self.layout();
        let span = layout.bytes();
        T::from_bytes(&layout.gather(&self.device.read(&self.storage, span.clone())?, span.start))
    }

    /// A host tensor with the elements.
    ///
    /// # Errors
    /// As [`to_vec`](Self::to_vec).
    pub fn to_host(&self) -> Result<HostTensor, Error> {
        HostTensor::new(&self.to_vec()?, &self.extents)
    }

    /// Overwrites the elements, given in row-major order of the view. Waits for launches that use them.
    ///
    /// # Errors
    /// When the number of elements is not that of the view, or the GPU has failed.
    pub fn copy_from(&mut self, elements: &[T]) -> Result<(), Error> {
        if elements.len() != self.len() {
            return Err(Error::Shape(format!(
                "{} elements for a tensor {:?} of {}",
                elements.len(),
                self.extents,
                self.len()
            )));
        }
        self.layout().scatter(&self.device, &self.storage, &T::to_bytes(elements))
    }

    fn layout(&self) -> Layout<'_> {
        Layout {
            element_bytes: T::TYPE.bytes(),
            offset: self.offset,
            extents: &self.extents,
            strides: &self.strides,
            contiguous: self.is_contiguous(),
        }
    }

    /// The lowest and the highest element position; `None` for an empty view.
    pub(crate) fn span(&self) -> Option<(i128, i128)> {
        span(self.offset, &self.extents, &self.strides)
    }

    fn dimension(&self, dimension: usize) -> Result<(usize, i64), Error> {
        match (self.extents.get(dimension), self.strides.get(dimension)) {
            (Some(extent), Some(stride)) => Ok((*extent, *stride)),
            _ => Err(Error::Shape(format!("there is no dimension {dimension} in a tensor of rank {RANK}"))),
        }
    }
}

/// A view without its types: these loops over elements are compiled once, in this crate, which is
/// always optimised.
struct Layout<'a> {
    element_bytes: usize,
    offset: usize,
    extents: &'a [usize],
    strides: &'a [i64],
    contiguous: bool,
}

impl Layout<'_> {
    /// Where in the buffer each element's bytes start, in row-major order of the view.
    fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        positions(self.offset, self.extents, self.strides, self.element_bytes)
    }

    /// The bytes of the buffer from the lowest to the highest that the view has.
    fn bytes(&self) -> Range<usize> {
        let (low, end) = span(self.offset, self.extents, self.strides).map_or((0, 0), |(low, high)| (low, high + 1));
        // Views are inside their buffers.
        let at = |element: i128| usize::try_from(element).unwrap_or_default().saturating_mul(self.element_bytes);
        at(low)..at(end)
    }

    /// The elements' bytes in row-major order of the view, out of a part of the buffer's that starts at `base`.
    fn gather(&self, part: &[u8], base: usize) -> Vec<u8> {
        let size = self.element_bytes;
        if self.contiguous {
            let count = element_count(self.extents).unwrap_or(0);
            return part.get(..count * size).unwrap_or_default().to_vec();
        }
        self.positions().flat_map(|at| part.get(at - base..at - base + size).unwrap_or_default()).copied().collect()
    }

    /// Writes elements' bytes, in row-major order of the view, to the buffer.
    fn scatter(&self, device: &Device, storage: &Storage, bytes: &[u8]) -> Result<(), Error> {
        if self.contiguous {
            return device.write(storage, self.offset * self.element_bytes, bytes);
        }
        let elements = self.positions().zip(bytes.chunks(self.element_bytes));
        match storage {
            // Byte by byte: elements between those of the view may never have been written, and stay so.
            #[cfg(feature = "mlir")]
            Storage::Emulated(buffer) => elements.for_each(|(at, element)| buffer.write(at, element)),
            Storage::Cuda(_) => {
                let span = self.bytes();
                let mut part = device.read(storage, span.clone())?;
                for (at, element) in elements {
                    let at = at - span.start;
                    if let Some(place) = part.get_mut(at..at + element.len()) {
                        place.copy_from_slice(element);
                    }
                }
                device.write(storage, span.start, &part)?;
            }
        }
        Ok(())
    }

    /// The index of the first element with a byte in one of these ranges, which are in order.
    fn first_within(&self, ranges: &[Range<usize>]) -> Option<Vec<usize>> {
        if ranges.is_empty() {
            return None;
        }
        let index = self.positions().position(|at| {
            let next = ranges.partition_point(|range| range.end <= at);
            ranges.get(next).is_some_and(|range| range.start < at + self.element_bytes)
        })?;
        Some(coordinates(index, self.extents))
    }
}

/// Where in its buffer each element's bytes start, in row-major order of a view.
pub(crate) fn positions<'a>(
    offset: usize,
    extents: &'a [usize],
    strides: &'a [i64],
    element_bytes: usize,
) -> impl Iterator<Item = usize> + 'a {
    let count = element_count(extents).unwrap_or(0);
    (0..count).map(move |index| {
        let mut rest = index;
        let mut at = offset as i64;
        for (extent, stride) in extents.iter().zip(strides).rev() {
            // One element is at its only index, whatever the stride: it may be out of any range.
            if *extent > 1 {
                at += (rest % extent) as i64 * stride;
                rest /= extent;
            }
        }
        at as usize * element_bytes
    })
}

/// The index of the element that is number `index` in row-major order.
pub fn coordinates(mut index: usize, extents: &[usize]) -> Vec<usize> {
    let mut out = extents.to_vec();
    for coordinate in out.iter_mut().rev() {
        let extent = (*coordinate).max(1);
        *coordinate = index % extent;
        index /= extent;
    }
    out
}

/// The lowest and the highest element position of a view; `None` for an empty one.
pub(crate) fn span(offset: usize, extents: &[usize], strides: &[i64]) -> Option<(i128, i128)> {
    let (mut low, mut high) = (offset as i128, offset as i128);
    for (extent, stride) in extents.iter().zip(strides) {
        let reach = (*extent as i128).checked_sub(1).filter(|reach| *reach >= 0)? * i128::from(*stride);
        low += reach.min(0);
        high += reach.max(0);
    }
    Some((low, high))
}

impl<T: Element, const RANK: usize> fmt::Debug for DevTensor<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevTensor")
            .field("element", &T::TYPE.name())
            .field("extents", &self.extents)
            .field("strides", &self.strides)
            .field("offset", &self.offset)
            .field("device", &self.device)
            .finish()
    }
}

#[cfg(test)]
#[cfg(feature = "mlir")]
mod tests {
    use super::*;
    use lacewing_core::Target;

    fn numbers() -> DevTensor<i32, 2> {
        let device = Device::emulator(Target::SM_80).unwrap();
        device.tensor_from_slice(&[0, 1, 2, 10, 11, 12], [2, 3]).unwrap()
    }

    #[test]
    fn another_handle_is_the_same_tensor_on_the_same_device() {
        let tensor = numbers();
        let seeded = tensor.device().clone().with_seed(7);
        let mut again = tensor.permute([1, 0]).unwrap().on(&seeded).unwrap();
        again.copy_from(&[5, 6, 7, 8, 9, 10]).unwrap();
        assert_eq!((again.strides(), tensor.to_vec().unwrap()), ([1, 3], vec![5, 7, 9, 6, 8, 10]));
        let text = tensor.on(&Device::emulator(Target::SM_90A).unwrap()).unwrap_err().to_string();
        assert_eq!(text, "the tensor lies on emulator:sm_80, and not on emulator:sm_90a: copy it there");
    }

    #[test]
    fn views_permute_slice_and_broadcast() {
        let tensor = numbers();
        let transposed = tensor.permute([1, 0]).unwrap();
        assert_eq!((transposed.shape(), transposed.strides()), ([3, 2], [1, 3]));
        assert!(!transposed.is_contiguous());
        assert_eq!(transposed.to_vec().unwrap(), [0, 10, 1, 11, 2, 12]);
        assert_eq!(transposed.slice(0, 1..3).unwrap().to_vec().unwrap(), [1, 11, 2, 12]);
        let row = tensor.slice(0, 1..2).unwrap().broadcast([2, 3]).unwrap();
        assert_eq!(row.to_vec().unwrap(), [10, 11, 12, 10, 11, 12]);
        assert_eq!(tensor.reshape([6]).unwrap().to_vec().unwrap()[3], 10);

        assert!(tensor.permute([0, 0]).is_err());
        assert!(tensor.permute([0, 2]).is_err());
        assert!(tensor.slice(1, 2..4).is_err());
        assert!(tensor.slice(2, 0..1).is_err());
        assert!(tensor.broadcast([4, 3]).is_err());
        assert!(transposed.reshape([6]).is_err());
        assert!(tensor.slice(0, 2..2).unwrap().to_vec().unwrap().is_empty());
    }

    #[test]
    fn any_strides_within_the_buffer() {
        let tensor = numbers();
        let reversed = tensor.as_strided(5, [6], [-1]).unwrap();
        assert_eq!(reversed.to_vec().unwrap(), [12, 11, 10, 2, 1, 0]);
        assert!(tensor.as_strided(5, [7], [-1]).is_err());
        assert!(tensor.as_strided(0, [2, 2], [4, 2]).is_err());
        assert!(tensor.as_strided(0, [2, usize::MAX], [i64::MAX, i64::MAX]).is_err());
        // The stride of a dimension of one element is never used.
        let odd = tensor.as_strided(0, [1, 6], [i64::MIN, 1]).unwrap();
        assert!(odd.is_contiguous());
        assert!(tensor.as_strided(99, [0], [1]).unwrap().is_empty());
    }

    #[test]
    fn an_element_that_was_never_written_is_not_given_out() {
        let device = Device::emulator(Target::SM_80).unwrap();
        let mut tensor = device.tensor_uninit::<f32, 2>([2, 3]).unwrap();
        tensor.slice(0, 0..1).unwrap().copy_from(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(tensor.slice(0, 0..1).unwrap().to_vec().unwrap(), [1.0, 2.0, 3.0]);
        let text = tensor.to_vec().unwrap_err().to_string();
        assert_eq!(text, "element [1, 0] of a tensor [2, 3] was never written");
        assert!(tensor.to_vec_unchecked().unwrap()[3].is_nan());
        tensor.permute([1, 0]).unwrap().copy_from(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]).unwrap();
        assert_eq!(tensor.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert!(tensor.copy_from(&[1.0]).is_err());
    }

    #[test]
    fn the_host_tensor_must_have_the_type_and_rank() {
        let device = Device::emulator(Target::SM_80).unwrap();
        let host = HostTensor::new(&[1u8, 2], &[2]).unwrap();
        assert!(device.tensor_from::<u8, 1>(&host).is_ok());
        assert!(device.tensor_from::<i8, 1>(&host).is_err());
        assert!(device.tensor_from::<u8, 2>(&host).is_err());
        assert!(device.tensor_zeros::<f64, 2>([usize::MAX, 2]).is_err());
    }
}
