//! Races in global memory between the threads of a block.
//!
//! Looked for in tensors that a kernel both loads from and stores to. Barriers and whatever else orders accesses to shared
//! memory orders these too, so that the clocks are those of [`SharedRaces`]. A cell knows its last write and its last read:
//! of several readers the last one counts. Two writes are let be, for all threads of a block often store one result.

use std::collections::HashMap;

use super::epoch::Epoch;
use super::races::{Conflict, SharedRaces, Toucher};

/// Logarithm of the cells of a page.
const PAGE_SHIFT: u32 = 8;
const CELLS: usize = 1 << PAGE_SHIFT;

/// What is known of some neighbouring cells.
struct Page {
    writes: [Epoch; CELLS],
    reads: [Epoch; CELLS],
}

/// The shadow of global memory of the blocks of a cluster.
pub(crate) struct ThreadRaces {
    /// Logarithm of the size of a cell.
    shift: u32,
    /// By the block in its cluster and the number of the page.
    pages: HashMap<(u32, u64), Box<Page>>,
    unused: Vec<Box<Page>>,
}

impl ThreadRaces {
    pub(crate) fn new(shift: u32) -> Self {
        Self { shift, pages: HashMap::new(), unused: Vec::new() }
    }

    /// Fresh blocks.
    pub(crate) fn start_block(&mut self) {
        self.unused.extend(self.pages.drain().map(|(_, page)| page));
    }

    /// Notes loads or stores of `len` bytes by some lanes of a warp of block `rank` of the cluster, each from its address on;
    /// gives the first access that one races with, and the address of that lane.
    pub(crate) fn touch(
        &mut self,
        races: &SharedRaces,
        rank: u32,
        lanes: impl Iterator<Item = (Toucher, u64)>,
        (len, is_write): (usize, bool),
    ) -> Result<(), (Conflict, u64)> {
        let Self { shift, pages, unused } = self;
        // Neighbouring lanes mostly have one page.
        let mut current: Option<(u64, &mut Page)> = None;
        for (who, address) in lanes {
            let mine = races.epoch_of(who);
            let (first, end) = (address >> *shift, (address + len as u64 + (1 << *shift) - 1) >> *shift);
            for cell in first..end {
                let number = cell >> PAGE_SHIFT;
                let page = match current.take() {
                    Some((of, page)) if of == number => page,
                    _ => &mut **pages.entry((rank, number)).or_insert_with(|| fresh(unused)),
                };
                let slot = cell as usize & (CELLS - 1);
                if let (Some(write), Some(read)) = (page.writes.get_mut(slot), page.reads.get_mut(slot)) {
                    let earlier = if is_write { *read } else { *write };
                    if earlier != Epoch::default() && !races.is_ordered(who, earlier) {
                        let byte = (cell << *shift).saturating_sub(address);
                        let missing = races.missing(who, earlier);
                        let conflict = Conflict { byte, earlier, earlier_read: is_write, lane: who.lane, missing };
                        return Err((conflict, address));
                    }
                    if is_write {
                        *write = mine;
                    } else {
                        *read = read.merged(mine);
                    }
                }
                current = Some((number, page));
            }
        }
        Ok(())
    }
}

/// A page that nobody has touched.
fn fresh(unused: &mut Vec<Box<Page>>) -> Box<Page> {
    let nobody = || Page { writes: [Epoch::default(); CELLS], reads: [Epoch::default(); CELLS] };
    match unused.pop() {
        Some(mut page) => {
            *page = nobody();
            page
        }
        None => Box::new(nobody()),
    }
}
