//! Shared memory of one block.

use super::{AccessFault, BitShadow, Bytes, Memory, Region, UNWRITTEN};
use crate::emulator::lanes::LANES;
use crate::emulator::op::Access;

/// The shared memory of the block that a worker runs, reused from block to block. One thread uses
/// it, so its accesses are plain.
pub(crate) struct SharedMemory {
    /// Cells give interior mutability: [`Bytes`] takes `&self`.
    words: Box<[std::cell::Cell<u32>]>,
    bytes: usize,
    written: BitShadow,
    track: bool,
}

impl SharedMemory {
    /// Shared memory of a kernel; `track` turns the check for unwritten bytes on.
    pub(crate) fn new(bytes: usize, track: bool) -> Self {
        Self {
            words: vec![std::cell::Cell::new(UNWRITTEN); bytes.div_ceil(4)].into(),
            bytes,
            written: BitShadow::new(bytes),
            track,
        }
    }

    /// Makes it the memory of a fresh block.
    pub(crate) fn reset(&mut self) {
        if self.track {
            // Stale words of the last block cannot be read: their bits are clear.
            self.written.reset();
        } else {
            self.words.fill(std::cell::Cell::new(UNWRITTEN));
        }
    }

    /// Size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// All of it, word by word.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        self.words.iter().map(std::cell::Cell::get)
    }

    /// Notes that a checked range holds nothing: a copy to it is under way.
    pub(crate) fn mark_unwritten(&self, offset: usize, len: usize) {
        if self.track {
            self.written.clear_owned(offset, len);
        }
    }

    #[inline(always)]
    fn base(&self) -> *mut u8 {
        // `Cell<u32>` allows writes through a shared reference, and has the layout of `u32`.
        self.words.as_ptr().cast::<u8>().cast_mut()
    }
}

impl Bytes for SharedMemory {
    #[inline(always)]
    unsafe fn load_u8(&self, offset: usize) -> u8 {
        // SAFETY: inside the memory, as the caller promises; the cells are not shared by threads.
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

    #[inline(always)]
    unsafe fn store_u8(&self, offset: usize, value: u8) {
        // SAFETY: as for `load_u8`; no reference into the cells is alive.
        unsafe { *self.base().add(offset) = value }
    }

    #[inline(always)]
    unsafe fn store_u16(&self, offset: usize, value: u16) {
        // SAFETY: as for `store_u8`.
        unsafe { self.base().add(offset).cast::<u16>().write_unaligned(value) }
    }

    #[inline(always)]
    unsafe fn store_words<const N: usize>(&self, offset: usize, value: [u32; N]) {
        // SAFETY: as for `store_u8`.
        unsafe { self.base().add(offset).cast::<[u32; N]>().write_unaligned(value) }
    }
}

impl Region for SharedMemory {
    #[inline(always)]
    fn check_range(&self, offset: u64, len: usize, access: &Access) -> Result<usize, AccessFault> {
        debug_assert!(access.high as usize <= self.bytes);
        if offset < u64::from(access.low) || offset + len as u64 > u64::from(access.high) {
            return Err(AccessFault::OutOfBounds);
        }
        if offset & (u64::from(access.align) - 1) != 0 {
            return Err(AccessFault::Misaligned);
        }
        Ok(offset as usize)
    }

    #[inline(always)]
    fn check_written(&self, offset: usize, len: usize) -> Result<(), AccessFault> {
        if self.track && !self.written.all(offset, len) { Err(AccessFault::Uninitialized) } else { Ok(()) }
    }

    #[inline(always)]
    fn check_writable(&self) -> Result<(), AccessFault> {
        Ok(())
    }

    #[inline(always)]
    fn mark_written(&self, offset: usize, len: usize) {
        if self.track {
            self.written.set_owned(offset, len);
        }
    }
}

impl Memory for SharedMemory {
    type Address = u32;
    type Region = Self;

    #[inline(always)]
    fn contiguous(lanes: &[u32; LANES], step: u32) -> bool {
        let mut differs = 0;
        for (i, lane) in lanes.iter().enumerate() {
            differs |= lane ^ lanes[0].wrapping_add(i as u32 * step);
        }
        differs == 0
    }

    #[inline(always)]
    fn region(&self, address: u32) -> (&Self, u64) {
        (self, u64::from(address))
    }
}
