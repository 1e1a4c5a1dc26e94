//! Tensor maps: tensors as the copy engine of sm_90 and later chips sees them.

use std::fmt;

use lacewing_core::ScalarType;
use smallvec::SmallVec;

use crate::element::Element;
use crate::error::Error;
use crate::tensor::DevTensor;

/// How the copy engine permutes the 16-byte chunks of a tile in shared memory: each 128-byte row by its own number,
/// so that neither rows nor columns of a tile fall into one bank (PTX ISA, "Swizzling modes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TileSwizzle {
    /// Rows of a box lie one after the other.
    #[default]
    None,
    /// Over rows of at most 32 bytes.
    Bytes32,
    /// Over rows of at most 64 bytes.
    Bytes64,
    /// Over rows of at most 128 bytes.
    Bytes128,
}

impl TileSwizzle {
    /// Bytes of a row: 0, 32, 64 or 128.
    pub fn bytes(self) -> u32 {
        match self {
            TileSwizzle::None => 0,
            TileSwizzle::Bytes32 => 32,
            TileSwizzle::Bytes64 => 64,
            TileSwizzle::Bytes128 => 128,
        }
    }
}

/// A tensor and the boxes that are copied of it, for a kernel's `TensorMap<T, RANK>` parameter.
///
/// A launch may be given the tensor itself instead: then it makes the map from the boxes that the kernel copies.
/// A map made here says what its maker thinks the kernel copies, and a launch refuses it when they differ. It
/// keeps the tensor's memory alive.
///
/// ```
/// use lacewing_runtime::tensor_map::{TensorMap, TileSwizzle};
/// # use lacewing_runtime::Device;
/// # use lacewing_core::Target;
/// let device = Device::emulator(Target::SM_90A)?;
/// let x = device.tensor_zeros::<half::bf16, 2>([100, 64])?;
/// // Boxes of 16 rows of 64 elements, innermost dimension first.
/// let map = TensorMap::tiled(&x, [64, 16], TileSwizzle::Bytes128)?;
/// let refused = TensorMap::tiled(&x, [64, 300], TileSwizzle::Bytes128).unwrap_err();
/// assert_eq!(refused.to_string(), "tensor map: its box has 300 elements in dimension 0, and 1 to 256 are possible");
/// # Ok::<(), lacewing_runtime::Error>(())
/// ```
pub struct TensorMap<T: Element, const RANK: usize> {
    pub(crate) tensor: DevTensor<T, RANK>,
    pub(crate) box_shape: [u32; RANK],
    pub(crate) swizzle: TileSwizzle,
    pub(crate) mutable: bool,
}

impl<T: Element, const RANK: usize> TensorMap<T, RANK> {
    /// A map that a kernel may read through. The box is in elements, innermost dimension first, as a kernel's
    /// coordinates; the tensor's own extents are outermost first.
    ///
    /// # Errors
    /// [`Error::Shape`] with the rule that is broken and the values. The rules (CUDA Driver API,
    /// `cuTensorMapEncodeTiled`; dimensions count from the outermost, as the tensor's):
    /// - 1 to 5 dimensions, each of 1 to 2^32 elements;
    /// - the first element at a multiple of 16 bytes;
    /// - the innermost stride is 1 element, the others are multiples of 16 bytes, not negative, and less than
    ///   2^40 bytes; strides of dimensions with one element do not matter;
    /// - a box of 1 to 256 elements in each dimension, whose rows (innermost) are a multiple of 16 bytes and,
    ///   with a swizzle, no longer than that.
    pub fn tiled(tensor: &DevTensor<T, RANK>, box_shape: [usize; RANK], swizzle: TileSwizzle) -> Result<Self, Error> {
        Self::new(tensor, box_shape, swizzle, false)
    }

    /// A map that a kernel may also store through.
    ///
    /// # Errors
    /// As [`tiled`](Self::tiled).
    pub fn tiled_mut(
        tensor: &mut DevTensor<T, RANK>,
        box_shape: [usize; RANK],
        swizzle: TileSwizzle,
    ) -> Result<Self, Error> {
        Self::new(tensor, box_shape, swizzle, true)
    }

    fn new(
        tensor: &DevTensor<T, RANK>,
        box_shape: [usize; RANK],
        swizzle: TileSwizzle,
        mutable: bool,
    ) -> Result<Self, Error> {
        let box_shape = box_shape.map(|elements| u32::try_from(elements).unwrap_or(u32::MAX));
        let view = View { scalar: T::TYPE, offset: tensor.offset, extents: &tensor.extents, strides: &tensor.strides };
        Plan::new(&view, &box_shape, swizzle.bytes())
            .map_err(|reason| Error::Shape(format!("tensor map: {reason}")))?;
        Ok(Self { tensor: tensor.part(), box_shape, swizzle, mutable })
    }

    /// Elements of a box, innermost dimension first.
    pub fn box_shape(&self) -> [u32; RANK] {
        self.box_shape
    }

    /// How boxes lie in shared memory.
    pub fn swizzle(&self) -> TileSwizzle {
        self.swizzle
    }
}

impl<T: Element, const RANK: usize> fmt::Debug for TensorMap<T, RANK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorMap")
            .field("tensor", &self.tensor)
            .field("box_shape", &self.box_shape)
            .field("swizzle", &self.swizzle)
            .finish()
    }
}

/// A tensor's view, without its types: outermost dimension first, in elements.
pub(crate) struct View<'a> {
    pub(crate) scalar: ScalarType,
    /// Elements before the first one.
    pub(crate) offset: usize,
    pub(crate) extents: &'a [usize],
    pub(crate) strides: &'a [i64],
}

/// What the driver encodes: innermost dimension first, in bytes. Every rule holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) scalar: ScalarType,
    /// Where the first element is in its allocation.
    pub(crate) byte_offset: u64,
    pub(crate) extents: SmallVec<[u64; 5]>,
    /// The first is the size of an element.
    pub(crate) strides: SmallVec<[u64; 5]>,
    pub(crate) box_shape: SmallVec<[u32; 5]>,
    /// Bytes of a swizzled row: 0, 32, 64 or 128.
    pub(crate) swizzle: u32,
}

/// Bytes of a sector of the L2 cache.
const SECTOR: u64 = 32;
/// Most elements of a box in one dimension.
const LARGEST_BOX: u32 = 256;
/// What addresses, strides and rows of boxes are multiples of.
const GRANULE: u64 = 16;

impl Plan {
    /// Whether all rows of the tensor, at an address, start at sectors of the L2 cache.
    pub(crate) fn starts_at_sectors(&self, address: u64) -> bool {
        let outer = self.strides.get(1..).unwrap_or_default();
        outer.iter().chain([&address]).all(|bytes| bytes.is_multiple_of(SECTOR))
    }

    /// Checks a view and a box (innermost dimension first) against the rules; the one that is broken, in words.
    pub(crate) fn new(view: &View<'_>, box_shape: &[u32], swizzle: u32) -> Result<Self, String> {
        let size = view.scalar.bytes() as u64;
        let rank = view.extents.len();
        if !(1..=5).contains(&rank) {
            return Err(format!("the tensor has {rank} dimensions, and 1 to 5 are possible"));
        }
        if box_shape.len() != rank {
            return Err(format!("a box of {} dimensions for a tensor of {rank}", box_shape.len()));
        }
        let byte_offset = view.offset as u64 * size;
        if !byte_offset.is_multiple_of(GRANULE) {
            return Err(format!(
                "the tensor's first element is at byte {byte_offset} of its buffer, and the copy engine needs a \
                 multiple of {GRANULE}"
            ));
        }
        let mut plan = Self {
            scalar: view.scalar,
            byte_offset,
            extents: SmallVec::new(),
            strides: SmallVec::new(),
            box_shape: SmallVec::from_slice(box_shape),
            swizzle,
        };
        // Bytes from one element to the next in a dimension, if all before were contiguous.
        let mut packed = size;
        let dimensions = view.extents.iter().zip(view.strides).enumerate().rev();
        for (dimension, (&extent, &stride)) in dimensions {
            let innermost = dimension + 1 == rank;
            let extent = extent as u64;
            if !(1..=1 << 32).contains(&extent) {
                return Err(format!(
                    "dimension {dimension} of the tensor {:?} has {extent} elements, and 1 to 2^32 are possible",
                    view.extents
                ));
            }
            let bytes = if innermost {
                if extent > 1 && stride != 1 {
                    return Err(format!(
                        "the innermost dimension has a stride of {stride} elements, and the copy engine needs 1 \
                         (strides {:?})",
                        view.strides
                    ));
                }
                size
            } else if extent == 1 {
                // Never used; whatever the view says must not decide.
                packed.next_multiple_of(GRANULE).min((1 << 40) - GRANULE)
            } else {
                stride_bytes(view, dimension, stride, size)?
            };
            plan.extents.push(extent);
            plan.strides.push(bytes);
            packed = bytes.saturating_mul(extent);
        }
        plan.check_box(rank)?;
        Ok(plan)
    }

    fn check_box(&self, rank: usize) -> Result<(), String> {
        for (index, &elements) in self.box_shape.iter().enumerate() {
            if !(1..=LARGEST_BOX).contains(&elements) {
                let dimension = rank - 1 - index;
                return Err(format!(
                    "its box has {elements} elements in dimension {dimension}, and 1 to {LARGEST_BOX} are possible"
                ));
            }
        }
        let elements = self.box_shape.first().copied().unwrap_or(0);
        let size = self.scalar.bytes() as u32;
        let row = elements * size;
        if !u64::from(row).is_multiple_of(GRANULE) {
            return Err(format!(
                "a row of its box has {elements} elements of {size} bytes = {row} bytes, and a multiple of {GRANULE} \
                 is needed"
            ));
        }
        if self.swizzle > 0 && row > self.swizzle {
            return Err(format!(
                "a row of its box has {elements} elements of {size} bytes = {row} bytes, more than the {} that its \
                 swizzle permutes; copy several boxes of {} elements side by side",
                self.swizzle,
                self.swizzle / size
            ));
        }
        Ok(())
    }

    /// Bytes from the first to behind the last element.
    pub(crate) fn span(&self) -> u64 {
        let steps = self.extents.iter().zip(&self.strides).map(|(extent, stride)| (extent - 1) * stride);
        steps.sum::<u64>() + self.scalar.bytes() as u64
    }
}

/// A stride in bytes, if the copy engine takes it.
fn stride_bytes(view: &View<'_>, dimension: usize, stride: i64, size: u64) -> Result<u64, String> {
    let here = format!("the stride of dimension {dimension} is {stride} elements of {size} bytes");
    let Ok(elements) = u64::try_from(stride) else {
        return Err(format!("{here}, and the copy engine knows no negative ones (strides {:?})", view.strides));
    };
    match elements.checked_mul(size) {
        Some(bytes) if bytes >= 1 << 40 => Err(format!("{here} = {bytes} bytes, and it must be less than 2^40")),
        None => Err(format!("{here}, and it must be less than 2^40 bytes")),
        Some(bytes) if !bytes.is_multiple_of(GRANULE) => {
            Err(format!("{here} = {bytes} bytes, and the copy engine needs a multiple of {GRANULE}"))
        }
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use half::bf16;
    use lacewing_core::Target;

    fn plan(
        offset: usize,
        extents: &[usize],
        strides: &[i64],
        box_shape: &[u32],
        swizzle: u32,
    ) -> Result<Plan, String> {
        Plan::new(&View { scalar: ScalarType::Bf16, offset, extents, strides }, box_shape, swizzle)
    }

    #[test]
    fn strides_become_bytes_innermost_first() {
        let plan = plan(8, &[2, 3, 40, 64], &[7680, 64, 192, 1], &[64, 16, 1, 1], 128).unwrap();
        assert_eq!(plan.extents[..], [64, 40, 3, 2]);
        assert_eq!(plan.strides[..], [2, 384, 128, 15360]);
        assert_eq!((plan.byte_offset, plan.swizzle), (16, 128));
        assert_eq!(plan.span(), 63 * 2 + 39 * 384 + 2 * 128 + 15360 + 2);
    }

    #[test]
    fn d23_every_rule_is_named_with_its_values() {
        let cases: &[(Result<Plan, String>, &str)] = &[
            (
                plan(0, &[10, 60], &[60, 1], &[32, 8], 64),
                "the stride of dimension 0 is 60 elements of 2 bytes = 120 bytes, and the copy engine needs a multiple of 16",
            ),
            (
                plan(0, &[10, 128], &[128, 1], &[128, 8], 128),
                "a row of its box has 128 elements of 2 bytes = 256 bytes, more than the 128 that its swizzle permutes; \
                 copy several boxes of 64 elements side by side",
            ),
            (
                plan(0, &[1000, 64], &[64, 1], &[64, 257], 128),
                "its box has 257 elements in dimension 0, and 1 to 256 are possible",
            ),
            (
                plan(0, &[1000, 64], &[64, 1], &[0, 8], 128),
                "its box has 0 elements in dimension 1, and 1 to 256 are possible",
            ),
            (
                plan(0, &[4, 0, 64], &[64, 64, 1], &[64, 8, 1], 128),
                "dimension 1 of the tensor [4, 0, 64] has 0 elements, and 1 to 2^32 are possible",
            ),
            (
                plan(3, &[10, 64], &[64, 1], &[64, 8], 128),
                "the tensor's first element is at byte 6 of its buffer, and the copy engine needs a multiple of 16",
            ),
            (
                plan(0, &[64, 10], &[1, 64], &[8, 8], 0),
                "the innermost dimension has a stride of 64 elements, and the copy engine needs 1 (strides [1, 64])",
            ),
            (
                plan(0, &[10, 64], &[-64, 1], &[64, 8], 128),
                "the stride of dimension 0 is -64 elements of 2 bytes, and the copy engine knows no negative ones \
                 (strides [-64, 1])",
            ),
            (
                plan(0, &[10, 64], &[1 << 40, 1], &[64, 8], 128),
                "the stride of dimension 0 is 1099511627776 elements of 2 bytes = 2199023255552 bytes, and it must be less \
                 than 2^40",
            ),
            (
                plan(0, &[10, 64], &[i64::MAX, 1], &[64, 8], 128),
                "the stride of dimension 0 is 9223372036854775807 elements of 2 bytes = 18446744073709551614 bytes, and it must be \
                 less than 2^40",
            ),
            (
                plan(0, &[10, 64], &[64, 1], &[12, 8], 0),
                "a row of its box has 12 elements of 2 bytes = 24 bytes, and a multiple of 16 is needed",
            ),
            (plan(0, &[1; 6], &[1; 6], &[8; 6], 0), "the tensor has 6 dimensions, and 1 to 5 are possible"),
            (plan(0, &[], &[], &[], 0), "the tensor has 0 dimensions, and 1 to 5 are possible"),
            (plan(0, &[10, 64], &[64, 1], &[64], 0), "a box of 1 dimensions for a tensor of 2"),
        ];
        for (result, wanted) in cases {
            assert_eq!(result.as_ref().unwrap_err(), wanted);
        }
    }

    #[test]
    fn strides_of_single_elements_do_not_matter() {
        let garbage = plan(0, &[1, 1, 30, 64], &[-77, i64::MIN, 64, 1], &[64, 8, 1, 1], 128).unwrap();
        assert_eq!(garbage.strides[..], [2, 128, 3840, 3840]);
        // A tensor of one column, and one whose whole is a single element.
        let column = plan(0, &[30, 1], &[8, 999], &[8, 8], 0).unwrap();
        assert_eq!(column.strides[..], [2, 16]);
        let single = plan(0, &[1, 1], &[5, 3], &[8, 1], 0).unwrap();
        assert_eq!(single.strides[..], [2, 16]);
        assert_eq!(single.span(), 2);
    }

    #[test]
    fn maps_are_made_of_tensors() {
        let device = Device::emulator(Target::SM_90A).unwrap();
        let mut tensor = device.tensor_zeros::<bf16, 2>([100, 64]).unwrap();
        let map = TensorMap::tiled_mut(&mut tensor, [64, 16], TileSwizzle::Bytes128).unwrap();
        assert_eq!((map.box_shape(), map.swizzle()), ([64, 16], TileSwizzle::Bytes128));
        let part = tensor.slice(1, 4..36).unwrap();
        let refused = TensorMap::tiled(&part, [32, 8], TileSwizzle::Bytes64).unwrap_err();
        assert!(refused.is_input());
        assert_eq!(
            refused.to_string(),
            "tensor map: the tensor's first element is at byte 8 of its buffer, and the copy engine needs a multiple of 16"
        );
        assert!(TensorMap::tiled(&tensor, [usize::MAX, 1], TileSwizzle::None).is_err());
    }
}
