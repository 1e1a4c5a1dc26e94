//! Races in global memory between blocks. Nothing but atomics orders blocks, so a cell that one block
//! writes must be touched by no other.

use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{AtomicU64, Ordering};

use super::epoch::Epoch;

/// Who wrote and read each cell of a buffer that the kernel may write.
pub(crate) struct BlockRaces {
    shift: u32,
    /// Whether a block's last write to a cell is kept, instead of its first: a store more for each write.
    keep_last: bool,
    writes: Box<[AtomicU64]>,
    reads: Box<[AtomicU64]>,
}

/// The block number that stands for several readers.
const MANY_BLOCKS: u32 = u32::MAX;

/// A boxed slice of zeros whose pages come zeroed from the system, when they are touched; `None` where the system
/// refuses. (`Vec` can only abort then, or touches every page.)
fn zeros(count: usize) -> Option<Box<[AtomicU64]>> {
    let layout = Layout::array::<AtomicU64>(count).ok()?;
    if layout.size() == 0 {
        return Some(Box::default());
    }
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    if start.is_null() {
        return None;
    }
    // SAFETY: the allocation is `count` zeroed numbers, which zero bytes are valid for, with the layout of their
    // boxed slice.
    Some(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, count)) })
}

/// The access of another block that a block's access races with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockConflict {
    pub(crate) byte: u64,
    pub(crate) earlier: Epoch,
    pub(crate) earlier_read: bool,
}

impl BlockConflict {
    /// The other block, `None` for several.
    pub(crate) fn block(&self) -> Option<u64> {
        let time = self.earlier.time();
        (time != MANY_BLOCKS).then(|| u64::from(time) - 1)
    }
}

/// The time of a block's epochs.
pub(crate) fn time_of_block(linear: u64) -> u32 {
    (linear % u64::from(MANY_BLOCKS - 1)) as u32 + 1
}

impl BlockRaces {
    /// A shadow for a buffer, with cells of `1 << shift` bytes; `keep_last` as in the field. The memory that the system
    /// would not give, in bytes, when it refuses.
    pub(crate) fn new(bytes: usize, shift: u32, keep_last: bool) -> Result<Self, u128> {
        let cells = bytes.div_ceil(1 << shift);
        let refused = 2 * cells as u128 * size_of::<AtomicU64>() as u128;
        match (zeros(cells), zeros(cells)) {
            (Some(writes), Some(reads)) => Ok(Self { shift, keep_last, writes, reads }),
            _ => Err(refused),
        }
    }

    /// Who wrote each cell, and the logarithm of a cell's size.
    pub(crate) fn writes(&self) -> (u32, Vec<Epoch>) {
        (self.shift, self.writes.iter().map(|epoch| Epoch(epoch.load(Ordering::Relaxed))).collect())
    }

    /// Notes a read-modify-write; gives the first plain access of another block that it races with, unless `ordered` says
    /// that the block may know what others did.
    pub(crate) fn touch_atomic(&self, mine: Epoch, at: usize, len: usize, ordered: bool) -> Option<BlockConflict> {
        let first = at >> self.shift;
        let end = (at + len + (1 << self.shift) - 1) >> self.shift;
        let (writes, reads) = (self.writes.get(first..end)?, self.reads.get(first..end)?);
        let mut found = None;
        for (i, (write, read)) in writes.iter().zip(reads).enumerate() {
            let byte = ((first + i) as u64) << self.shift;
            let other = |epoch: Epoch| epoch.0 != 0 && epoch.time() != mine.time() && !epoch.is_atomic();
            let earlier = Epoch(write.swap(mine.atomic().0, Ordering::SeqCst));
            if !ordered && other(earlier) {
                found = found.or(Some(BlockConflict { byte, earlier, earlier_read: false }));
            }
            let earlier = Epoch(read.load(Ordering::SeqCst));
            if !ordered && other(earlier) {
                found = found.or(Some(BlockConflict { byte, earlier, earlier_read: true }));
            }
        }
        found
    }

    /// Notes an access; gives the first that it races with. `mine` has the time of the block.
    #[inline(always)]
    pub(crate) fn touch(&self, mine: Epoch, at: usize, len: usize, is_write: bool) -> Option<BlockConflict> {
        let first = at >> self.shift;
        let end = (at + len + (1 << self.shift) - 1) >> self.shift;
        let (writes, reads) = (self.writes.get(first..end)?, self.reads.get(first..end)?);
        let mut found = None;
        for (i, (write, read)) in writes.iter().zip(reads).enumerate() {
            let byte = ((first + i) as u64) << self.shift;
            let other = |epoch: u64| epoch != 0 && Epoch(epoch).time() != mine.time();
            // Exchanges make one of two simultaneous accesses see the other.
            let earlier = if is_write {
                let last = Epoch(write.load(Ordering::Relaxed));
                if last.time() != mine.time() || self.keep_last { write.swap(mine.0, Ordering::SeqCst) } else { last.0 }
            } else {
                let last = Epoch(read.load(Ordering::Relaxed));
                if last.time() != mine.time() && last.time() != MANY_BLOCKS {
                    let many = Epoch(mine.0 | u64::from(MANY_BLOCKS) << 32);
                    read.swap(if last.0 == 0 { mine.0 } else { many.0 }, Ordering::SeqCst);
                }
                write.load(Ordering::SeqCst)
            };
            if other(earlier) {
                found = found.or(Some(BlockConflict { byte, earlier: Epoch(earlier), earlier_read: false }));
            }
            if is_write {
                let earlier = read.load(Ordering::SeqCst);
                if other(earlier) {
                    found = found.or(Some(BlockConflict { byte, earlier: Epoch(earlier), earlier_read: true }));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shadow_that_does_not_fit_is_refused() {
        assert!(BlockRaces::new(0, 2).is_ok());
        assert!(BlockRaces::new(1 << 20, 2).is_ok());
        assert_eq!(BlockRaces::new(1 << 60, 2).err(), Some(1 << 62));
        assert_eq!(BlockRaces::new(usize::MAX, 0).err(), Some(16 * u128::from(u64::MAX)));
    }
}
