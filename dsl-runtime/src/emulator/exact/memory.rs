//! Shadows of memory, and the origins of errors.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{Cell, Follower, Format, Loaded, Number, Origin, raw};
use crate::emulator::lanes::Registers;
use crate::emulator::memory::{Bytes, SharedMemory};
use crate::emulator::op::Pc;

/// Origins that are kept in full; later ones stand for others of the same operation.
const KEPT: usize = 1 << 14;

/// A known value in memory. It counts only while memory holds the bits that it belongs to, so that whatever else
/// writes there takes it away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryCell {
    pub(super) cell: Cell,
    pub(super) width: u8,
    pub(super) bits: u64,
}

/// What the warps of a worker know together: the shadows of global and shared memory, and where errors began.
#[derive(Debug, Default)]
pub(crate) struct ExactMemory {
    /// By address; those of shared memory by [`shared_key`].
    cells: RefCell<HashMap<u64, MemoryCell>>,
    origins: RefCell<Origins>,
}

#[derive(Debug, Default)]
struct Origins {
    all: Vec<Origin>,
    by_pc: HashMap<Pc, u32>,
}

/// The key of a byte of a block's shared memory. Addresses of global memory have no use for the highest bit.
pub(crate) fn shared_key(rank: u32, offset: u64) -> u64 {
    1 << 63 | u64::from(rank) << 32 | offset
}

impl ExactMemory {
    /// Forgets shared memory, for the next blocks.
    pub(crate) fn next_cluster(&self) {
        self.cells.borrow_mut().retain(|key, _| key >> 63 == 0);
    }

    /// Notes where an error began; its number, counted from 1.
    pub(super) fn note(&self, origin: Origin) -> u32 {
        let origins = &mut *self.origins.borrow_mut();
        if origins.all.len() >= KEPT
            && let Some(&known) = origins.by_pc.get(&origin.pc)
        {
            return known;
        }
        let pc = origin.pc;
        origins.all.push(origin);
        let number = origins.all.len() as u32;
        origins.by_pc.insert(pc, number);
        number
    }

    /// Where an error began, by its number.
    pub(super) fn origin(&self, number: u32) -> Option<Origin> {
        self.origins.borrow().all.get(number.checked_sub(1)? as usize).cloned()
    }

    pub(super) fn get(&self, key: u64) -> Option<MemoryCell> {
        self.cells.borrow().get(&key).copied()
    }

    /// Replaces what is known of `bytes` bytes.
    pub(super) fn put(&self, key: u64, bytes: u32, known: impl IntoIterator<Item = (u32, MemoryCell)>) {
        let cells = &mut *self.cells.borrow_mut();
        if !cells.is_empty() {
            (0..u64::from(bytes)).for_each(|byte| {
                cells.remove(&(key + byte));
            });
        }
        for (offset, cell) in known {
            cells.insert(key + u64::from(offset), cell);
        }
    }

    /// A float in shared memory. The range has been checked.
    pub(super) fn number(&self, shared: &SharedMemory, rank: u32, offset: u32, format: Format) -> Number {
        let at = offset as usize;
        // SAFETY: as the caller promises; floats of 8 and 16 bits lie at multiples of their size.
        let bits = unsafe {
            match format.width() {
                1 => u64::from(shared.load_u8(at)),
                _ => u64::from(shared.load_u16(at)),
            }
        };
        let known = self.get(shared_key(rank, offset.into())).filter(|known| known.bits == bits);
        let known = known.filter(|known| u32::from(known.width) == format.width());
        Number::new(format.value(bits), known.map(|known| known.cell), format)
    }

    /// What is known of `bytes` bytes, by offset.
    pub(super) fn known(&self, key: u64, bytes: u32) -> Vec<(u32, MemoryCell)> {
        let cells = self.cells.borrow();
        if cells.is_empty() {
            return Vec::new();
        }
        (0..bytes).filter_map(|byte| Some((byte, *cells.get(&(key + u64::from(byte)))?))).collect()
    }
}

impl Follower {
    /// Gives a register what is known of the memory that it was loaded from.
    pub(super) fn take_loaded(&mut self, regs: &Registers<'_>, memory: &ExactMemory, load: Loaded) {
        let Loaded { at, key, bytes } = load;
        self.unset(at, bytes);
        for (offset, known) in memory.known(key, bytes) {
            let (at, width) = (at + offset, u32::from(known.width));
            if offset + width <= bytes && at.is_multiple_of(width) && raw(regs, at, width) == known.bits {
                self.set(at, width, known.cell);
            }
        }
    }

    /// What is known of some bytes of a register, as memory keeps it.
    pub(super) fn known(&self, regs: &Registers<'_>, at: u32, bytes: u32) -> Vec<(u32, MemoryCell)> {
        let mut known = Vec::new();
        let mut offset = 0;
        while offset < bytes {
            match self.get_any(at + offset) {
                Some((width, cell)) if cell.format().is_some() && offset + width <= bytes => {
                    let bits = raw(regs, at + offset, width);
                    known.push((offset, MemoryCell { cell, width: width as u8, bits }));
                    offset += width;
                }
                _ => offset += 1,
            }
        }
        known
    }
}
