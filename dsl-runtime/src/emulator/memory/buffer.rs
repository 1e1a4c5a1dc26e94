//! Global memory: buffers that the host shares with launches.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{AccessFault, BitShadow, Bytes, UNWRITTEN};

/// Bytes of the emulated device's global memory. Clones share the bytes.
///
/// A launch locks its buffers: shared where the kernel only reads, exclusive where it may write. The
/// host's [`read`](Self::read) and [`write`](Self::write) wait for launches on other threads.
#[derive(Clone)]
pub struct Buffer(Arc<Allocation>);

struct Allocation {
    /// Cells are atomic because blocks that run in parallel may touch the same bytes: a race in a
    /// kernel must not be one in the emulator.
    cells: Box<[AtomicU32]>,
    bytes: usize,
    /// `None` when the host has filled the buffer: then no read needs a test.
    written: Option<BitShadow>,
    /// Taken shared by launches that only read the buffer, exclusive by those that may write it.
    lock: RwLock<()>,
}

impl Buffer {
    /// A buffer whose bytes count as never written.
    pub fn uninit(bytes: usize) -> Self {
        Self::new(bytes, UNWRITTEN, Some(BitShadow::new(bytes)))
    }

    /// A buffer of zeros, written.
    pub fn zeroed(bytes: usize) -> Self {
        Self::new(bytes, 0, None)
    }

    /// A buffer with this content.
    pub fn from_bytes(content: &[u8]) -> Self {
        let buffer = Self::new(content.len(), 0, None);
        buffer.copy_in(0, content);
        buffer
    }

    fn new(bytes: usize, fill: u32, written: Option<BitShadow>) -> Self {
        let cells = (0..bytes.div_ceil(4)).map(|_| AtomicU32::new(fill)).collect();
        Self(Arc::new(Allocation { cells, bytes, written, lock: RwLock::new(()) }))
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    /// Whether the size is zero.
    pub fn is_empty(&self) -> bool {
        self.0.bytes == 0
    }

    /// A copy of the content. Bytes that nothing wrote read as `0xff`, a NaN in every float type.
    pub fn read(&self) -> Vec<u8> {
        let _guard = self.0.lock.read().unwrap_or_else(PoisonError::into_inner);
        let mut content: Vec<u8> =
            self.0.cells.iter().flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes()).collect();
        content.truncate(self.0.bytes);
        content
    }

    /// Overwrites the bytes from `offset` on; they count as written. Bytes past the end are ignored.
    pub fn write(&self, offset: usize, content: &[u8]) {
        let _guard = self.0.lock.write().unwrap_or_else(PoisonError::into_inner);
        self.copy_in(offset, content);
    }

    /// The ranges of bytes that neither the host nor a kernel has written.
    pub fn unwritten(&self) -> Vec<Range<usize>> {
        let _guard = self.0.lock.read().unwrap_or_else(PoisonError::into_inner);
        self.0.written.as_ref().map(BitShadow::unwritten).unwrap_or_default()
    }

    /// Whether two handles share their bytes.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn copy_in(&self, offset: usize, content: &[u8]) {
        let len = content.len().min(self.0.bytes.saturating_sub(offset));
        let content = content.get(..len).unwrap_or_default();
        let cells = AtomicCells(&self.0.cells);
        let mut at = 0;
        while at < len {
            let rest = content.get(at..).unwrap_or_default();
            match rest {
                [a, b, c, d, ..] if (offset + at) % 4 == 0 => {
                    // SAFETY: `at + 4 <= len`, and `offset + len` is inside the buffer.
                    unsafe { cells.store_words(offset + at, [u32::from_le_bytes([*a, *b, *c, *d])]) };
                    at += 4;
                }
                [a, ..] => {
                    // SAFETY: `at < len`, and `offset + len` is inside the buffer.
                    unsafe { cells.store_u8(offset + at, *a) };
                    at += 1;
                }
                [] => break,
            }
        }
        if let Some(written) = &self.0.written {
            written.set(offset, len);
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.0.bytes)
    }
}

/// The locks of a launch's buffers, taken in one order so that two launches cannot wait for each
/// other.
#[expect(dead_code, reason = "the guards are held, not read")]
pub(crate) enum BufferGuard<'a> {
    Shared(RwLockReadGuard<'a, ()>),
    Exclusive(RwLockWriteGuard<'a, ()>),
}

/// What a launch sees of its buffers while it holds their locks.
pub(crate) struct LockedBuffers<'a> {
    pub(crate) views: Vec<GlobalView<'a>>,
    _guards: Vec<BufferGuard<'a>>,
}

impl<'a> LockedBuffers<'a> {
    /// Locks distinct buffers; each with its name in reports and whether the kernel may write it.
    pub(crate) fn lock(buffers: &'a [(Buffer, String, bool)]) -> Self {
        let mut order: Vec<&(Buffer, String, bool)> = buffers.iter().collect();
        order.sort_by_key(|(buffer, _, _)| Arc::as_ptr(&buffer.0).cast::<()>());
        let guards = order
            .into_iter()
            .map(|(buffer, _, writable)| {
                let lock = &buffer.0.lock;
                if *writable {
                    BufferGuard::Exclusive(lock.write().unwrap_or_else(PoisonError::into_inner))
                } else {
                    BufferGuard::Shared(lock.read().unwrap_or_else(PoisonError::into_inner))
                }
            })
            .collect();
        let views = buffers
            .iter()
            .map(|(buffer, name, writable)| GlobalView {
                cells: &buffer.0.cells,
                bytes: buffer.0.bytes,
                written: buffer.0.written.as_ref(),
                writable: *writable,
                name,
            })
            .collect();
        Self { views, _guards: guards }
    }
}

/// One buffer of a running launch.
pub(crate) struct GlobalView<'a> {
    cells: &'a [AtomicU32],
    pub(crate) bytes: usize,
    written: Option<&'a BitShadow>,
    pub(crate) writable: bool,
    pub(crate) name: &'a str,
}

impl<'a> GlobalView<'a> {
    /// A buffer of no bytes, for addresses that belong to nothing.
    pub(crate) const fn empty() -> Self {
        Self { cells: &[], bytes: 0, written: None, writable: false, name: "null" }
    }

    /// Tests a range for bounds and alignment (of its start).
    #[inline(always)]
    pub(crate) fn check_range(&self, offset: u64, len: usize, align: usize) -> Result<usize, AccessFault> {
        // Offsets are below 2^40 and lengths below 2^16: the sum does not wrap.
        if offset + len as u64 > self.bytes as u64 {
            return Err(AccessFault::OutOfBounds);
        }
        if offset & (align as u64 - 1) != 0 {
            return Err(AccessFault::Misaligned);
        }
        Ok(offset as usize)
    }

    /// Tests that every byte of a checked range is written.
    #[inline(always)]
    pub(crate) fn check_written(&self, offset: usize, len: usize) -> Result<(), AccessFault> {
        match self.written {
            Some(written) if !written.all(offset, len) => Err(AccessFault::Uninitialized),
            _ => Ok(()),
        }
    }

    /// Notes that a checked range is written.
    #[inline(always)]
    pub(crate) fn mark_written(&self, offset: usize, len: usize) {
        if let Some(written) = self.written {
            written.set(offset, len);
        }
    }

    /// Access for buffers that some block may write.
    #[inline(always)]
    pub(crate) fn atomic_cells(&self) -> AtomicCells<'a> {
        AtomicCells(self.cells)
    }

    /// Access for buffers that no block writes.
    #[inline(always)]
    pub(crate) fn plain_cells(&self) -> PlainCells<'a> {
        debug_assert!(!self.writable);
        PlainCells(self.cells)
    }
}

/// Relaxed accesses, one cell at a time: races of the kernel stay races of values.
#[derive(Clone, Copy)]
pub(crate) struct AtomicCells<'a>(&'a [AtomicU32]);

impl<'a> AtomicCells<'a> {
    /// The cell that holds the byte at `offset`.
    ///
    /// # Safety
    /// `offset` lies inside the buffer.
    #[inline(always)]
    pub(crate) unsafe fn cell(&self, offset: usize) -> &'a AtomicU32 {
        debug_assert!(offset / 4 < self.0.len());
        // SAFETY: the buffer has a cell for every byte inside it.
        unsafe { self.0.get_unchecked(offset >> 2) }
    }

    /// Replaces the bits of `keep`'s complement; neighbours in the cell may change meanwhile.
    #[inline(always)]
    unsafe fn merge(&self, offset: usize, mask: u32, bits: u32) {
        // SAFETY: as the caller promises.
        let cell = unsafe { self.cell(offset) };
        let mut old = cell.load(Ordering::Relaxed);
        while let Err(now) =
            cell.compare_exchange_weak(old, old & !mask | bits, Ordering::Relaxed, Ordering::Relaxed)
        {
            old = now;
        }
    }
}

impl Bytes for AtomicCells<'_> {
    #[inline(always)]
    unsafe fn load_u8(&self, offset: usize) -> u8 {
        // SAFETY: as the caller promises.
        let cell = unsafe { self.cell(offset) }.load(Ordering::Relaxed);
        (cell >> (8 * (offset & 3))) as u8
    }

    #[inline(always)]
    unsafe fn load_u16(&self, offset: usize) -> u16 {
        // SAFETY: as the caller promises.
        let cell = unsafe { self.cell(offset) }.load(Ordering::Relaxed);
        (cell >> (8 * (offset & 2))) as u16
    }

    #[inline(always)]
    unsafe fn load_words<const N: usize>(&self, offset: usize) -> [u32; N] {
        // SAFETY: as the caller promises.
        std::array::from_fn(|i| unsafe { self.cell(offset + 4 * i) }.load(Ordering::Relaxed))
    }

    #[inline(always)]
    unsafe fn store_u8(&self, offset: usize, value: u8) {
        let shift = 8 * (offset & 3);
        // SAFETY: as the caller promises.
        unsafe { self.merge(offset, 0xff << shift, u32::from(value) << shift) }
    }

    #[inline(always)]
    unsafe fn store_u16(&self, offset: usize, value: u16) {
        let shift = 8 * (offset & 2);
        // SAFETY: as the caller promises.
        unsafe { self.merge(offset, 0xffff << shift, u32::from(value) << shift) }
    }

    #[inline(always)]
    unsafe fn store_words<const N: usize>(&self, offset: usize, value: [u32; N]) {
        for (i, word) in value.into_iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { self.cell(offset + 4 * i) }.store(word, Ordering::Relaxed);
        }
    }
}

/// Plain reads of cells that nothing writes while the launch holds its shared lock.
#[derive(Clone, Copy)]
pub(crate) struct PlainCells<'a>(&'a [AtomicU32]);

impl PlainCells<'_> {
    #[inline(always)]
    fn base(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }
}

impl Bytes for PlainCells<'_> {
    #[inline(always)]
    unsafe fn load_u8(&self, offset: usize) -> u8 {
        // SAFETY: inside the buffer as the caller promises; no writer exists under the shared lock.
        unsafe { *self.base().add(offset) }
    }

    #[inline(always)]
    unsafe fn load_u16(&self, offset: usize) -> u16 {
        // SAFETY: as for `load_u8`.
        unsafe { self.base().add(offset).cast::<u16>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn load_words<const N: usize>(&self, offset: usize) -> [u32; N] {
        // SAFETY: as for `load_u8`.
        unsafe { self.base().add(offset).cast::<[u32; N]>().read_unaligned() }
    }

    // A store to a read-only buffer is reported before it happens; these do nothing.
    #[inline(always)]
    unsafe fn store_u8(&self, _offset: usize, _value: u8) {}

    #[inline(always)]
    unsafe fn store_u16(&self, _offset: usize, _value: u16) {}

    #[inline(always)]
    unsafe fn store_words<const N: usize>(&self, _offset: usize, _value: [u32; N]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_access_round_trips_and_tracks_written_bytes() {
        let buffer = Buffer::uninit(11);
        assert_eq!(buffer.unwritten(), [0..11]);
        buffer.write(1, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(buffer.unwritten(), [0..1, 9..11]);
        assert_eq!(buffer.read(), [255, 1, 2, 3, 4, 5, 6, 7, 8, 255, 255]);
        buffer.write(9, &[9; 10]);
        assert_eq!(buffer.read()[9..], [9, 9]);
        assert_eq!(Buffer::from_bytes(&[1, 2, 3]).read(), [1, 2, 3]);
        assert!(Buffer::zeroed(5).unwritten().is_empty());
    }
}
