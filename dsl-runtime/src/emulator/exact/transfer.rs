//! Tensor copies: what is known of a box goes along with it.

use lacewing_core::atoms::swizzled_byte as swizzled;

use super::memory::{ExactMemory, MemoryCell, shared_key};
use super::step::{Now, leaves};
use crate::emulator::asynchronous::tensor_map::BoundMap;
use crate::emulator::exec::warp::FaultKind;
use crate::emulator::memory::{Bytes, SharedMemory};

impl ExactMemory {
    /// A box on its way to the shared memory of a block. It lands later; what is read before has other bits.
    pub(crate) fn box_loaded(&self, map: &BoundMap, coordinates: &[i32], (rank, destination): (u32, u32)) {
        let row_bytes = map.row_bytes();
        let key = |linear: u32| shared_key(rank, swizzled(destination + linear, map.map.swizzle).into());
        for chunk in 0..map.box_bytes() / 16 {
            self.put(key(16 * chunk), 16, []);
        }
        for (number, row) in map.rows(coordinates).enumerate() {
            for (offset, known) in self.known(row.address, row.len as u32) {
                let linear = number as u32 * row_bytes + row.skipped as u32 + offset;
                self.put(key(linear), known.width.into(), [(0, known)]);
            }
        }
    }

    /// A box on its way to global memory: the report of its first value that is too far from its shadow.
    pub(crate) fn box_stored(
        &self,
        now: &Now<'_, '_>,
        (map, coordinates): (&BoundMap, &[i32]),
        shared: &SharedMemory,
        source: u32,
    ) -> Option<(u32, FaultKind)> {
        let row_bytes = map.row_bytes();
        for (number, row) in map.rows(coordinates).enumerate() {
            let mut stored = Vec::new();
            for offset in 0..row.len as u32 {
                let linear = number as u32 * row_bytes + row.skipped as u32 + offset;
                let at = swizzled(source + linear, map.map.swizzle);
                let Some(known) = self.get(shared_key(now.rank, at.into())) else { continue };
                let MemoryCell { width, bits, .. } = known;
                let held = (0..u32::from(width)).rev().fold(0, |held, byte| {
                    // SAFETY: the box's range was checked when the copy was started.
                    held << 8 | u64::from(unsafe { shared.load_u8((at + byte) as usize) })
                });
                if held != bits || offset + u32::from(width) > row.len as u32 {
                    continue;
                }
                let broken = leaves(now, &known);
                if broken.is_some() {
                    return broken;
                }
                stored.push((offset, known));
            }
            self.put(row.address, row.len as u32, stored);
        }
        None
    }
}
