//! How a tensor's elements are laid out in emulated memory: as they are, or as the ladder wants them.

use lacewing_core::ScalarType;

use crate::emulator::Buffer;
use crate::error::Error;
use crate::host::check_room;

/// What a new tensor holds.
pub(crate) enum Content<'a> {
    Bytes(&'a [u8]),
    Zeros,
    Unwritten,
}

/// Choices of a device handle about the tensors that it makes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placement {
    /// Whether rows and matrices have gaps between them that nothing wrote.
    pub(crate) padded: bool,
    /// Whether floats of the host whose bits are all set count as never written.
    pub(crate) poisoned: bool,
    /// Whether buffers remember what is read.
    pub(crate) watched: bool,
}

/// Elements between the end of a row and the next: at least 16 bytes, and a multiple of them, so that the gap changes
/// no row's alignment.
const GAP: usize = 16;
/// Rows between two matrices.
const GAP_ROWS: usize = 3;

/// The byte that memory holds which nothing wrote: a NaN in every float type.
pub(crate) const POISON: u8 = 0xff;

fn is_float(scalar: ScalarType) -> bool {
    use ScalarType as S;
    matches!(scalar, S::F16 | S::Bf16 | S::F32 | S::F64 | S::F8E4M3 | S::F8E5M2)
}

impl Placement {
    /// A buffer with the content, and the strides of the tensor in it.
    pub(crate) fn place<const RANK: usize>(
        self,
        scalar: ScalarType,
        extents: [usize; RANK],
        content: Content<'_>,
    ) -> Result<(Buffer, [i64; RANK]), Error> {
        let size = scalar.bytes();
        // What a dimension's index steps over: its inner neighbour with the gap.
        let mut room = extents;
        if self.padded && !extents.contains(&0) {
            for (index, (extent, gap)) in room.iter_mut().rev().zip([GAP, GAP_ROWS]).enumerate() {
                // The outermost dimension ends the buffer: beyond it every access is outside.
                if index + 1 < RANK {
                    *extent += gap;
                }
            }
        }
        let total = check_room(&room, size)?;
        let mut strides = [1_i64; RANK];
        let mut step = 1_i64;
        for (stride, extent) in strides.iter_mut().zip(room).rev() {
            *stride = step;
            step = step.saturating_mul(i64::try_from(extent.max(1)).unwrap_or(i64::MAX));
        }
        let rows = Rows { extents: &extents, strides: &strides, size };
        let end = rows.end();
        let buffer = match content {
            Content::Bytes(bytes) if room == extents && !(self.poisoned && is_float(scalar)) => {
                Buffer::from_bytes(bytes)
            }
            Content::Zeros if room == extents => Buffer::zeroed(total),
            Content::Unwritten if room == extents => Buffer::uninit(total),
            content => {
                let buffer = Buffer::uninit(end);
                let zeros;
                let bytes = match content {
                    Content::Bytes(bytes) => bytes,
                    Content::Zeros => {
                        zeros = vec![0; extents.iter().product::<usize>() * size];
                        &zeros
                    }
                    Content::Unwritten => &[],
                };
                let poison = if self.poisoned && is_float(scalar) { size } else { 0 };
                rows.write(&buffer, bytes, poison);
                buffer
            }
        };
        Ok((if self.watched { buffer.watched() } else { buffer }, strides))
    }
}

/// Rows of a tensor: the last dimension is contiguous.
struct Rows<'a> {
    extents: &'a [usize],
    strides: &'a [i64],
    size: usize,
}

impl Rows<'_> {
    /// Bytes up to the end of the last element.
    fn end(&self) -> usize {
        if self.extents.contains(&0) {
            return 0;
        }
        let last: i64 =
            self.extents.iter().zip(self.strides).map(|(extent, stride)| (*extent as i64 - 1) * stride).sum();
        (usize::try_from(last).unwrap_or(0) + 1) * self.size
    }

    /// Writes the elements, row by row. With `poison`, the size of an element, those with all bits set are left out.
    fn write(&self, buffer: &Buffer, bytes: &[u8], poison: usize) {
        let length = self.extents.last().copied().unwrap_or(1) * self.size;
        if length == 0 {
            return;
        }
        for (row, bytes) in bytes.chunks(length).enumerate() {
            let mut rest = row;
            let mut at = 0;
            for (extent, stride) in self.extents.iter().zip(self.strides).rev().skip(1) {
                at += (rest % extent.max(&1)) as i64 * stride;
                rest /= extent.max(&1);
            }
            let at = usize::try_from(at).unwrap_or(0) * self.size;
            if poison == 0 {
                buffer.write(at, bytes);
                continue;
            }
            for (index, element) in bytes.chunks(poison).enumerate() {
                if element.iter().any(|byte| *byte != POISON) {
                    buffer.write(at + index * poison, element);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_gaps_that_nothing_wrote() {
        let padded = Placement { padded: true, ..Placement::default() };
        let content: Vec<u8> = (0..12).collect();
        let (buffer, strides) = padded.place(ScalarType::U8, [2, 2, 3], Content::Bytes(&content)).unwrap();
        assert_eq!(strides, [5 * 19, 19, 1]);
        // Up to the last element, and no further.
        assert_eq!(buffer.len(), 5 * 19 + 19 + 3);
        assert_eq!(buffer.read()[95..98], [6, 7, 8]);
        assert_eq!(buffer.unwritten(), [3..19, 22..95, 98..114]);
        let (vector, strides) = padded.place(ScalarType::F32, [7], Content::Zeros).unwrap();
        assert_eq!((vector.len(), strides), (28, [1]));
    }

    #[test]
    fn floats_with_all_bits_set_count_as_unwritten() {
        let poisoned = Placement { poisoned: true, ..Placement::default() };
        let content = [0, 0, 0xff, 0xff, 0xff, 0x7f];
        let (buffer, _) = poisoned.place(ScalarType::F16, [3], Content::Bytes(&content)).unwrap();
        assert_eq!(buffer.unwritten(), vec![2..4; 1]);
        let (buffer, _) = poisoned.place(ScalarType::I16, [3], Content::Bytes(&content)).unwrap();
        assert!(buffer.unwritten().is_empty());
    }
}
