//! Indices that leave a tensor along one of its dimensions.
//!
//! Such an address mostly lies in the tensor's buffer all the same: behind the end of a row comes the next row. Its lanes get
//! a mark, with which it lies nowhere: an access there is out of bounds, and the mark says along which dimension. A lane whose
//! access is masked makes none.

use crate::emulator::lanes::{LANES, Reg, Registers, half_of};
use crate::emulator::program::Dimension;

/// The mark, above all bits of an address; the number of the dimension is below it.
const MARK: u64 = 1 << 62;
const NUMBER: u32 = 50;
const ADDRESS: u64 = (1 << NUMBER) - 1;

/// The last indices along a dimension that were outside, by lane, and the extents.
#[derive(Clone)]
pub(crate) struct Outside {
    index: [i64; 2 * LANES],
    extent: [i32; 2 * LANES],
}

impl Default for Outside {
    fn default() -> Self {
        Self { index: [0; 2 * LANES], extent: [0; 2 * LANES] }
    }
}

impl Outside {
    /// Index and extent of a lane.
    pub(crate) fn of(&self, lane: u32) -> Option<(i64, i32)> {
        let lane = lane as usize;
        self.index.get(lane).copied().zip(self.extent.get(lane).copied())
    }
}

/// Notes the active lanes whose index is outside.
#[inline(always)]
pub(crate) fn beyond(
    regs: &mut Registers<'_>,
    dimension: &Dimension,
    half: u8,
    active: u64,
    outside: Option<&mut Outside>,
) {
    let at = usize::from(half & 1);
    let (index, extent) = (regs.read::<i64>(dimension.index[at]), regs.read::<i32>(dimension.extent[at]));
    let mut bits = 0_u32;
    for lane in 0..LANES {
        bits |= u32::from(index[lane] as u64 >= extent[lane] as u64) << lane;
    }
    bits &= half_of(active, half);
    regs.set_half_mask(dimension.mask, half, bits);
    if bits != 0
        && let Some(outside) = outside
    {
        outside.index[LANES * at..][..LANES].copy_from_slice(&index);
        outside.extent[LANES * at..][..LANES].copy_from_slice(&extent);
    }
}

/// Marks the addresses of lanes whose index is outside.
#[inline(always)]
pub(crate) fn mark(regs: &mut Registers<'_>, d: Reg, dimension: &Dimension, table: u32, half: u8) {
    let bits = half_of(regs.mask(dimension.mask), half);
    if bits != 0 {
        mark_lanes(regs, d, table, bits);
    }
}

#[cold]
#[inline(never)]
fn mark_lanes(regs: &mut Registers<'_>, d: Reg, table: u32, bits: u32) {
    let mut addresses = regs.read::<u64>(d);
    for (lane, address) in addresses.iter_mut().enumerate() {
        if bits >> lane & 1 == 1 && marked(*address).is_none() {
            *address = *address & ADDRESS | u64::from(table) << NUMBER | MARK;
        }
    }
    regs.write(d, addresses);
}

/// Takes all marks off.
pub(crate) fn unmark(regs: &mut Registers<'_>, d: Reg) {
    let addresses = regs.read::<u64>(d);
    regs.write(d, addresses.map(|address| marked(address).map_or(address, |(_, address)| address)));
}

/// The number of the dimension that an address is marked with, and the address.
pub(crate) fn marked(address: u64) -> Option<(u32, u64)> {
    (address >> 62 == 1).then_some(((address >> NUMBER) as u32 & 0xfff, address & ADDRESS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keep_the_address() {
        let address = 5 << 40 | 123;
        assert_eq!(marked(address), None);
        assert_eq!(marked(address | 4095 << NUMBER | MARK), Some((4095, address)));
        // What lies before the first byte of a buffer has no mark.
        assert_eq!(marked((1 << 40) - 8), None);
    }
}
