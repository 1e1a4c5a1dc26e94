//! Global memory: buffers that the host shares with launches.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::block_races::BlockRaces;
use super::{AccessFault, BitShadow, Bytes, Memory, Region, UNWRITTEN};
use crate::emulator::lanes::LANES;
use crate::emulator::op::Access;

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
    /// What kernels have read, for buffers that are watched.
    read: Option<BitShadow>,
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
        Self(Arc::new(Allocation { cells, bytes, written, read: None, lock: RwLock::new(()) }))
    }

    /// The same buffer, which from now on knows what kernels read of it ([`unread`](Self::unread)). A buffer that
    /// has clones already stays as it is.
    #[must_use]
    pub fn watched(mut self) -> Self {
        if let Some(allocation) = Arc::get_mut(&mut self.0) {
            allocation.read = Some(BitShadow::new(allocation.bytes));
        }
        self
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

    /// The ranges of bytes that no kernel has read; none for a buffer that is not [`watched`](Self::watched).
    pub fn unread(&self) -> Vec<Range<usize>> {
        let _guard = self.0.lock.read().unwrap_or_else(PoisonError::into_inner);
        self.0.read.as_ref().map(BitShadow::unwritten).unwrap_or_default()
    }

    /// Whether the buffer knows which bytes are written: one that the host has filled at once does not.
    pub(crate) fn tracks_writes(&self) -> bool {
        self.0.written.is_some()
    }

    /// Whether two handles share their bytes.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn copy_in(&self, offset: usize, content: &[u8]) {
        let len = content.len().min(self.0.bytes.saturating_sub(offset));
        let mut rest = content.get(..len).unwrap_or_default();
        let mut at = offset;
        while let Some(cell) = self.0.cells.get(at >> 2) {
            let taken = match rest {
                [a, b, c, d, ..] if at & 3 == 0 => {
                    cell.store(u32::from_le_bytes([*a, *b, *c, *d]), Ordering::Relaxed);
                    4
                }
                [a, ..] => {
                    merge(cell, 0xff << (8 * (at & 3)), u32::from(*a) << (8 * (at & 3)));
                    1
                }
                [] => break,
            };
            at += taken;
            rest = rest.get(taken..).unwrap_or_default();
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
    /// The first is empty: address 0 belongs to nothing.
    pub(crate) views: Vec<GlobalView<'a>>,
    _guards: Vec<BufferGuard<'a>>,
}

impl<'a> LockedBuffers<'a> {
    /// Locks distinct buffers; each with its name in reports and whether the kernel may write it.
    /// `race_shift` asks for a shadow of races between blocks, with cells of so many bytes; `keep_last` for the last
    /// writer of each cell in it, instead of the first of its block.
    ///
    /// # Errors
    /// What to tell the user when the system has no memory for the shadow.
    pub(crate) fn lock(
        buffers: &'a [(Buffer, String, bool)],
        check_written: bool,
        race_shift: Option<u32>,
        keep_last: bool,
    ) -> Result<Self, String> {
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
        let null = GlobalView {
            cells: &[],
            bytes: 0,
            written: None,
            read: None,
            check_written: false,
            writable: false,
            name: "null",
            races: None,
            is_mixed: false,
        };
        let mut views = vec![null];
        for (buffer, name, writable) in buffers {
            let races = race_shift.filter(|_| *writable).map(|shift| BlockRaces::new(buffer.0.bytes, shift, keep_last));
            let races = races.transpose().map_err(|refused| {
                format!(
                    "looking for races between blocks in `{name}` ({} bytes) needs {refused} bytes of host memory, \
                     which the system does not give; leave out the check `races`",
                    buffer.0.bytes
                )
            })?;
            views.push(GlobalView {
                cells: &buffer.0.cells,
                bytes: buffer.0.bytes,
                written: buffer.0.written.as_ref(),
                read: buffer.0.read.as_ref(),
                check_written,
                writable: *writable,
                name,
                races,
                is_mixed: false,
            });
        }
        Ok(Self { views, _guards: guards })
    }
}

/// Bits of an address below the number of its allocation.
const OFFSET_BITS: u32 = 40;

/// Global memory of a running launch. An address is `allocation << 40 | offset`, so that a pointer
/// that leaves its allocation lands in no other.
#[derive(Clone, Copy)]
pub(crate) struct GlobalMemory<'a>(pub(crate) &'a [GlobalView<'a>]);

impl<'a> GlobalMemory<'a> {
    /// The address of a byte of an allocation.
    pub(crate) fn address(allocation: usize, offset: u64) -> u64 {
        (allocation as u64) << OFFSET_BITS | offset & ((1 << OFFSET_BITS) - 1)
    }

    /// The allocation that an address was meant for, and the offset, negative for one before it.
    pub(crate) fn nearest(&self, address: u64) -> (Option<&'a GlobalView<'a>>, i64) {
        let allocation = address.wrapping_add(1 << (OFFSET_BITS - 1)) >> OFFSET_BITS;
        let offset = address.wrapping_sub(allocation << OFFSET_BITS) as i64;
        (self.0.get(allocation as usize).filter(|_| allocation > 0), offset)
    }
}

impl<'a> Memory for GlobalMemory<'a> {
    type Address = u64;
    type Region = GlobalView<'a>;

    #[inline(always)]
    fn contiguous(lanes: &[u64; LANES], step: u32) -> bool {
        let mut differs = 0;
        for (i, lane) in lanes.iter().enumerate() {
            differs |= lane ^ lanes[0].wrapping_add(i as u64 * u64::from(step));
        }
        differs == 0
    }

    #[inline(always)]
    fn region(&self, address: u64) -> (&GlobalView<'a>, u64) {
        let allocation = (address >> OFFSET_BITS) as usize;
        let offset = address & ((1 << OFFSET_BITS) - 1);
        // SAFETY: a launch has at least the empty allocation.
        let view = self.0.get(allocation).unwrap_or_else(|| unsafe { self.0.get_unchecked(0) });
        (view, offset)
    }
}

/// One buffer of a running launch.
pub(crate) struct GlobalView<'a> {
    cells: &'a [AtomicU32],
    pub(crate) bytes: usize,
    written: Option<&'a BitShadow>,
    read: Option<&'a BitShadow>,
    check_written: bool,
    /// Whether the kernel may write it. Then blocks that run in parallel use relaxed atomic accesses,
    /// one cell at a time: races of the kernel stay races of values. Otherwise accesses are plain,
    /// which the launch's shared lock allows: nothing writes the buffer meanwhile.
    pub(crate) writable: bool,
    pub(crate) name: &'a str,
    /// Who touched what, for buffers that the kernel may write.
    pub(crate) races: Option<BlockRaces>,
    /// Whether the kernel both loads from it and stores to it.
    pub(crate) is_mixed: bool,
}

impl<'a> GlobalView<'a> {
    /// The cell that holds the byte at `offset`.
    ///
    /// # Safety
    /// `offset` lies inside the buffer.
    #[inline(always)]
    pub(crate) unsafe fn cell(&self, offset: usize) -> &'a AtomicU32 {
        // SAFETY: the buffer has a cell for every byte inside it.
        unsafe { self.cells.get_unchecked(offset >> 2) }
    }

    #[inline(always)]
    fn base(&self) -> *const u8 {
        self.cells.as_ptr().cast()
    }
}

/// Replaces the bits of a mask; neighbours in the cell may change meanwhile.
#[inline(always)]
fn merge(cell: &AtomicU32, mask: u32, bits: u32) {
    let mut old = cell.load(Ordering::Relaxed);
    while let Err(now) = cell.compare_exchange_weak(old, old & !mask | bits, Ordering::Relaxed, Ordering::Relaxed) {
        old = now;
    }
}

impl Bytes for GlobalView<'_> {
    #[inline(always)]
    unsafe fn load_u8(&self, offset: usize) -> u8 {
        // SAFETY: as the caller promises.
        (unsafe { self.cell(offset) }.load(Ordering::Relaxed) >> (8 * (offset & 3))) as u8
    }

    #[inline(always)]
    unsafe fn load_u16(&self, offset: usize) -> u16 {
        // SAFETY: as the caller promises.
        (unsafe { self.cell(offset) }.load(Ordering::Relaxed) >> (8 * (offset & 2))) as u16
    }

    #[inline(always)]
    unsafe fn load_words<const N: usize>(&self, offset: usize) -> [u32; N] {
        if self.writable {
            // SAFETY: as the caller promises.
            std::array::from_fn(|i| unsafe { self.cell(offset + 4 * i) }.load(Ordering::Relaxed))
        } else {
            // SAFETY: inside the buffer as the caller promises; no writer exists, see `writable`.
            unsafe { self.base().add(offset).cast::<[u32; N]>().read_unaligned() }
        }
    }

    #[inline(always)]
    unsafe fn store_u8(&self, offset: usize, value: u8) {
        let shift = 8 * (offset & 3);
        // SAFETY: as the caller promises.
        merge(unsafe { self.cell(offset) }, 0xff << shift, u32::from(value) << shift);
    }

    #[inline(always)]
    unsafe fn store_u16(&self, offset: usize, value: u16) {
        let shift = 8 * (offset & 2);
        // SAFETY: as the caller promises.
        merge(unsafe { self.cell(offset) }, 0xffff << shift, u32::from(value) << shift);
    }

    #[inline(always)]
    unsafe fn store_words<const N: usize>(&self, offset: usize, value: [u32; N]) {
        for (i, word) in value.into_iter().enumerate() {
            // SAFETY: as the caller promises.
            unsafe { self.cell(offset + 4 * i) }.store(word, Ordering::Relaxed);
        }
    }
}

impl Region for GlobalView<'_> {
    #[inline(always)]
    fn check_range(&self, offset: u64, len: usize, access: &Access) -> Result<usize, AccessFault> {
        // Offsets are below 2^40 and lengths below 2^16: the sum does not wrap.
        if offset + len as u64 > self.bytes as u64 {
            return Err(AccessFault::OutOfBounds);
        }
        if offset & (u64::from(access.align) - 1) != 0 {
            return Err(AccessFault::Misaligned);
        }
        Ok(offset as usize)
    }

    #[inline(always)]
    fn check_written(&self, offset: usize, len: usize) -> Result<(), AccessFault> {
        if let Some(read) = self.read {
            read.set(offset, len);
        }
        match self.written {
            Some(written) if self.check_written && !written.all(offset, len) => Err(AccessFault::Uninitialized),
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn check_writable(&self) -> Result<(), AccessFault> {
        if self.writable { Ok(()) } else { Err(AccessFault::ReadOnly) }
    }

    #[inline(always)]
    fn mark_written(&self, offset: usize, len: usize) {
        if let Some(written) = self.written {
            written.set(offset, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_access_round_trips_and_tracks_written_bytes() {
        let buffer = Buffer::uninit(11);
        assert_eq!(buffer.unwritten(), vec![0..11; 1]);
        buffer.write(1, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(buffer.unwritten(), [0..1, 9..11]);
        assert_eq!(buffer.read(), [255, 1, 2, 3, 4, 5, 6, 7, 8, 255, 255]);
        buffer.write(9, &[9; 10]);
        assert_eq!(buffer.read()[9..], [9, 9]);
        assert_eq!(Buffer::from_bytes(&[1, 2, 3]).read(), [1, 2, 3]);
        assert!(Buffer::zeroed(5).unwritten().is_empty());
        assert!(buffer.unread().is_empty());
        assert_eq!(Buffer::zeroed(5).watched().unread(), vec![0..5; 1]);
    }
}
