//! A tensor in global memory as bulk copies see it (PTX ISA, "Tensors").

use crate::emulator::Buffer;

/// A tensor map: what the driver encodes in 128 bytes, as the emulator takes it. Innermost dimension first.
#[derive(Clone, Debug)]
pub struct TensorMap {
    /// The memory.
    pub buffer: Buffer,
    /// Where the first element is, in bytes.
    pub byte_offset: u64,
    /// Size of an element in bytes.
    pub element_bytes: u32,
    /// Extents; as many as the tensor has dimensions.
    pub extents: Vec<u64>,
    /// Strides in bytes; the innermost is an element.
    pub strides: Vec<u64>,
    /// Elements of a box in each dimension.
    pub box_shape: Vec<u32>,
    /// Bytes of a swizzled row in shared memory: 128, 64, 32, or 0 for none.
    pub swizzle: u32,
}

impl TensorMap {
    /// Whether every element lies in the buffer and the lists have one length from 1 to 5.
    pub(crate) fn is_sound(&self) -> bool {
        let rank = self.extents.len();
        if !(1..=5).contains(&rank) || self.strides.len() != rank || self.box_shape.len() != rank {
            return false;
        }
        let mut end = u128::from(self.byte_offset) + u128::from(self.element_bytes);
        for (extent, stride) in self.extents.iter().zip(&self.strides) {
            let Some(steps) = extent.checked_sub(1) else { return false };
            end += u128::from(steps) * u128::from(*stride);
        }
        let row = self.box_shape.first().map_or(0, |elements| elements * self.element_bytes);
        let elements: u64 = self.box_shape.iter().map(|&elements| u64::from(elements)).product();
        end <= self.buffer.len() as u128
            && elements * u64::from(self.element_bytes) <= 1 << 20
            && row.is_multiple_of(16)
            && self.box_shape.iter().all(|elements| (1..=256).contains(elements))
            && self.strides.first() == Some(&u64::from(self.element_bytes))
            && matches!(self.swizzle, 0 | 32 | 64 | 128)
    }
}

/// A map of a running launch.
#[derive(Clone, Debug)]
pub(crate) struct BoundMap {
    pub(crate) address: u64,
    pub(crate) map: TensorMap,
}

impl BoundMap {
    /// Bytes of a box in shared memory.
    pub(crate) fn box_bytes(&self) -> u32 {
        self.map.box_shape.iter().product::<u32>() * self.map.element_bytes
    }

    /// Bytes of a row of a box.
    pub(crate) fn row_bytes(&self) -> u32 {
        self.map.box_shape.first().copied().unwrap_or(0) * self.map.element_bytes
    }

    /// The rows of a box at these coordinates, in the order of shared memory.
    pub(crate) fn rows<'a>(&'a self, coordinates: &'a [i32]) -> impl Iterator<Item = Row> + 'a {
        let map = &self.map;
        let outer: u32 = map.box_shape.iter().skip(1).product();
        let first = i64::from(coordinates.first().copied().unwrap_or(0));
        let width = i64::from(map.box_shape.first().copied().unwrap_or(0));
        let extent = map.extents.first().map_or(0, |&extent| extent as i64);
        // The part of a row that lies in the tensor.
        let (low, high) = ((-first).clamp(0, width), (extent - first).clamp(0, width));
        let size = i64::from(map.element_bytes);
        (0..outer).map(move |number| {
            let mut rest = number;
            let mut inside = low < high;
            let mut at = (first + low) * size;
            let dimensions = map.extents.iter().zip(&map.strides).zip(map.box_shape.iter().zip(coordinates));
            for ((&extent, &stride), (&length, &coordinate)) in dimensions.skip(1) {
                let index = i64::from(coordinate) + i64::from(rest % length.max(1));
                rest /= length.max(1);
                inside &= index >= 0 && (index as u64) < extent;
                at = at.wrapping_add(index.wrapping_mul(stride as i64));
            }
            let (skipped, len) = if inside { (low * size, (high - low) * size) } else { (0, 0) };
            Row { address: self.address.wrapping_add(at as u64), skipped: skipped as usize, len: len as usize }
        })
    }
}

/// A row of a box: `len` bytes at `address` belong to the tensor, `skipped` bytes after the row's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) address: u64,
    pub(crate) skipped: usize,
    pub(crate) len: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_where_the_tensor_ends() {
        let map = TensorMap {
            buffer: Buffer::zeroed(2 * 3 * 20),
            byte_offset: 0,
            element_bytes: 2,
            extents: vec![20, 3],
            strides: vec![2, 40],
            box_shape: vec![8, 2],
            swizzle: 0,
        };
        assert!(map.is_sound());
        let bound = BoundMap { address: 1000, map };
        let rows = |x, y| bound.rows(&[x, y]).map(|row| (row.address, row.skipped, row.len)).collect::<Vec<_>>();
        assert_eq!(rows(16, 1), [(1072, 0, 8), (1112, 0, 8)]);
        let shown = rows(-3, 2);
        assert_eq!(shown[0], (1080, 6, 10));
        assert_eq!((shown[1].1, shown[1].2), (0, 0));
        assert!(rows(20, 0).iter().all(|row| row.2 == 0));
        assert!(rows(0, -2).iter().all(|row| row.2 == 0));
    }
}
