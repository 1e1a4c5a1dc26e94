//! Memory of the emulated device and what is known of each byte.

mod async_races;
mod block_races;
mod buffer;
mod clock;
mod epoch;
mod races;
mod shadow;
mod shared;
mod tensor_order;
mod thread_races;

pub(crate) use async_races::BulkAccess;
pub(crate) use block_races::{BlockConflict, time_of_block};
pub use buffer::Buffer;
pub(crate) use buffer::{GlobalMemory, GlobalView, LockedBuffers};
pub(crate) use clock::Knowledge;
pub(crate) use epoch::{COMPONENTS, Epoch};
pub(crate) use races::{Conflict, Missing, ShadowShape, SharedRaces, Touch, Toucher};
use shadow::BitShadow;
pub(crate) use shared::SharedMemory;
pub(crate) use tensor_order::TensorOrder;
pub(crate) use thread_races::ThreadRaces;

use super::lanes::{LANES, Lane};
use super::op::Access;

/// The rule that one access broke; the caller knows lane, address and source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessFault {
    OutOfBounds,
    Misaligned,
    Uninitialized,
    ReadOnly,
}

/// Content of memory that nothing wrote: a NaN in every float type, so that a read which no check
/// stops still shows.
pub(crate) const UNWRITTEN: u32 = 0xffff_ffff;

/// Raw reads and writes of a memory whose ranges the caller has checked.
///
/// # Safety of the methods
/// `offset .. offset + size` must lie inside the memory. Offsets of 4-byte and longer accesses are
/// multiples of four, those of 2-byte accesses of two.
pub(crate) trait Bytes {
    /// Reads one byte.
    unsafe fn load_u8(&self, offset: usize) -> u8;
    /// Reads two bytes.
    unsafe fn load_u16(&self, offset: usize) -> u16;
    /// Reads `N` words.
    unsafe fn load_words<const N: usize>(&self, offset: usize) -> [u32; N];
    /// Writes one byte.
    unsafe fn store_u8(&self, offset: usize, value: u8);
    /// Writes two bytes.
    unsafe fn store_u16(&self, offset: usize, value: u16);
    /// Writes `N` words.
    unsafe fn store_words<const N: usize>(&self, offset: usize, value: [u32; N]);
}

/// One allocation: raw bytes and what is known of them.
pub(crate) trait Region: Bytes {
    /// Tests `len` bytes at `offset` against the region, or the part of it that `access` may use, and
    /// the start against the access's alignment.
    fn check_range(&self, offset: u64, len: usize, access: &Access) -> Result<usize, AccessFault>;
    /// Tests that a checked range is written.
    fn check_written(&self, offset: usize, len: usize) -> Result<(), AccessFault>;
    /// Tests that the kernel may write here.
    fn check_writable(&self) -> Result<(), AccessFault>;
    /// Notes that a checked range is written.
    fn mark_written(&self, offset: usize, len: usize);
}

/// An address space.
pub(crate) trait Memory {
    /// What an address is in a register.
    type Address: Lane + Into<u64>;
    /// Its allocations.
    type Region: Region;

    /// Whether lane i's address is that of lane 0 plus `i * step`.
    fn contiguous(lanes: &[Self::Address; LANES], step: u32) -> bool;

    /// The allocation that an address lies in, and the offset there.
    fn region(&self, address: Self::Address) -> (&Self::Region, u64);
}
