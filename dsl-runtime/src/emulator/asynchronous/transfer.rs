//! Bulk tensor copies.

use lacewing_core::atoms::swizzled_byte as swizzled;

use super::tensor_map::BoundMap;
use crate::emulator::memory::{AccessFault, Bytes, GlobalMemory, Knowledge, Memory, Region, SharedMemory};
use crate::emulator::op::Pc;

/// A box with at most this many bytes in a row: 256 elements of 8 bytes.
const ROW_BYTES: usize = 2048;

/// What a copy brings.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A box of a tensor.
    Box { map: u32, coordinates: [i32; 5] },
    /// Bytes that a thread has given.
    Value(Vec<u8>),
    /// Shared memory of the block of a thread, which started the copy.
    Shared {
        rank: u32,
        warp: u32,
        lane: u32,
        address: u32,
        access: u32,
        /// What the warp knew then.
        known: Knowledge,
    },
}

/// A copy to the shared memory of one block, under way.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) pc: Pc,
    pub(crate) source: Source,
    /// The block that receives it, and where.
    pub(crate) rank: u32,
    pub(crate) destination: u32,
    /// The mbarrier of that block that it completes at.
    pub(crate) barrier: u32,
    pub(crate) bytes: u32,
}

/// A copy from shared memory, under way.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) pc: Pc,
    pub(crate) lane: u32,
    pub(crate) map: u32,
    pub(crate) coordinates: [i32; 5],
    pub(crate) source: u32,
    pub(crate) bytes: u32,
    /// Number of its group among the lane's; `None` while the group is open.
    pub(crate) group: Option<u32>,
    /// What was read, once it has been.
    pub(crate) content: Option<Vec<u8>>,
    /// What was read before the wait, where that happened early.
    pub(crate) early: Option<Vec<u8>>,
    /// What the warp knew when it issued the copy.
    pub(crate) known: Knowledge,
}

/// Copies bytes out of global memory. The range has been checked.
fn read_global(global: &GlobalMemory<'_>, address: u64, out: &mut [u8]) {
    let (region, offset) = global.region(address);
    // Tells the buffer that these bytes are read; whether something wrote them was asked when the copy was started.
    let _ = region.check_written(offset as usize, out.len());
    let mut at = offset as usize;
    if at.is_multiple_of(4) {
        let mut words = out.chunks_exact_mut(4);
        for word in &mut words {
            // SAFETY: inside the tensor, which was checked against its buffer when the launch was bound.
            let [bits] = unsafe { region.load_words(at) };
            word.copy_from_slice(&u32::to_le_bytes(bits));
            at += 4;
        }
        for byte in words.into_remainder() {
            // SAFETY: as above.
            *byte = unsafe { region.load_u8(at) };
            at += 1;
        }
        return;
    }
    for byte in out {
        // SAFETY: as above.
        *byte = unsafe { region.load_u8(at) };
        at += 1;
    }
}

/// Copies bytes to global memory. The range has been checked.
fn write_global(global: &GlobalMemory<'_>, address: u64, bytes: &[u8]) {
    let (region, offset) = global.region(address);
    let mut at = offset as usize;
    if at.is_multiple_of(4) {
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            // SAFETY: inside the tensor, which was checked against its buffer when the launch was bound.
            unsafe { region.store_words(at, [u32::from_le_bytes(*word)]) };
            at += 4;
        }
        for byte in rest {
            // SAFETY: as above.
            unsafe { region.store_u8(at, *byte) };
            at += 1;
        }
    } else {
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: as above.
            unsafe { region.store_u8(at + i, *byte) };
        }
    }
    region.mark_written(offset as usize, bytes.len());
}

/// The first element that nothing wrote among those that a box reads, as its address.
pub(crate) fn find_unwritten(global: &GlobalMemory<'_>, map: &BoundMap, coordinates: &[i32]) -> Option<u64> {
    map.rows(coordinates).filter(|row| row.len > 0).find_map(|row| {
        let (region, offset) = global.region(row.address);
        let is_unwritten = |at: usize, len: usize| region.check_written(at, len) == Err(AccessFault::Uninitialized);
        let size = map.map.element_bytes as usize;
        if !is_unwritten(offset as usize, row.len) {
            return None;
        }
        (0..row.len)
            .step_by(size)
            .find(|&at| is_unwritten(offset as usize + at, size))
            .map(|at| row.address + at as u64)
    })
}

/// Copies a box to shared memory; zeros where it leaves the tensor. Both ranges have been checked.
pub(crate) fn load_box(
    global: &GlobalMemory<'_>,
    shared: &SharedMemory,
    map: &BoundMap,
    coordinates: &[i32],
    destination: u32,
) {
    let row_bytes = (map.row_bytes() as usize).min(ROW_BYTES);
    let mut buffer = [0_u8; ROW_BYTES];
    for (number, row) in map.rows(coordinates).enumerate() {
        let Some(bytes) = buffer.get_mut(..row_bytes) else { return };
        bytes.fill(0);
        if let Some(inside) = bytes.get_mut(row.skipped..row.skipped + row.len) {
            read_global(global, row.address, inside);
        }
        let start = destination + (number * row_bytes) as u32;
        for (chunk, bytes) in bytes.as_chunks::<16>().0.iter().enumerate() {
            let at = swizzled(start + 16 * chunk as u32, map.map.swizzle);
            // SAFETY: the box's range in shared memory was checked when the copy was started; a swizzle moves
            // bytes within 128-byte rows of it, to which its start is aligned.
            unsafe { shared.store_words::<4>(at as usize, bytemuck::cast(*bytes)) };
        }
    }
}

/// Writes words to shared memory. The range has been checked, and starts at a word.
pub(crate) fn put_words(shared: &SharedMemory, at: u32, bytes: &[u8]) {
    for (number, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
        // SAFETY: inside the range, as the caller promises.
        unsafe { shared.store_words(at as usize + 4 * number, [u32::from_le_bytes(*word)]) };
    }
}

/// Reads words out of shared memory. The range has been checked, and starts at a word.
pub(crate) fn get_words(shared: &SharedMemory, at: u32, bytes: u32) -> Vec<u8> {
    (0..bytes / 4)
        .flat_map(|number| {
            // SAFETY: inside the range, as the caller promises.
            let [word] = unsafe { shared.load_words((at + 4 * number) as usize) };
            word.to_le_bytes()
        })
        .collect()
}

/// Reads a box out of shared memory, row after row. The range has been checked.
pub(crate) fn read_box(shared: &SharedMemory, map: &BoundMap, source: u32) -> Vec<u8> {
    let bytes = map.box_bytes();
    (0..bytes / 16)
        .flat_map(|chunk| {
            let at = swizzled(source + 16 * chunk, map.map.swizzle);
            // SAFETY: as for `load_box`.
            let words: [u32; 4] = unsafe { shared.load_words(at as usize) };
            bytemuck::cast::<_, [u8; 16]>(words)
        })
        .collect()
}

/// Writes a box that was read from shared memory; what leaves the tensor is dropped.
pub(crate) fn store_box(global: &GlobalMemory<'_>, map: &BoundMap, coordinates: &[i32], content: &[u8]) {
    let row_bytes = map.row_bytes() as usize;
    for (row, bytes) in map.rows(coordinates).zip(content.chunks_exact(row_bytes.max(1))) {
        if let Some(inside) = bytes.get(row.skipped..row.skipped + row.len).filter(|bytes| !bytes.is_empty()) {
            write_global(global, row.address, inside);
        }
    }
}
