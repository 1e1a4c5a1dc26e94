//! A block's tensor memory: which columns are allocated, what the cells hold, who touched them.
//!
//! Accesses cover 16 neighbouring lanes of a column, or 32, or all: so what is known is kept for parts of 16.

use std::collections::VecDeque;

use super::tcgen05::Product;
use super::wgmma::Special;
use crate::emulator::memory::{TensorOrder, UNWRITTEN};
use crate::emulator::op::Pc;

/// Columns and lanes of tensor memory (PTX ISA, "Tensor memory").
pub(crate) const COLUMNS: u32 = 512;
pub(crate) const LANES: u32 = 128;
/// Lanes of a part.
const PART: u32 = 16;
/// Parts of a column.
const PARTS: u32 = LANES / PART;

/// Which rule was broken. Columns count from the start of their allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TensorFault {
    /// A warp reaches for the lanes of another.
    OtherLanes { warp: u32, lane: u32, store: bool },
    /// Columns that are not allocated; where they were freed.
    NotAllocated { first: u32, count: u32, freed: Option<Pc> },
    /// Cells that an operation under way writes or reads.
    UnderWay { earlier: Pc, earlier_read: bool, lane: u32, column: u32 },
    /// An access that nothing orders with an earlier one, or no fence does.
    Race { earlier: Pc, earlier_read: bool, order: TensorOrder, lane: u32, column: u32 },
    /// Cells that nothing wrote.
    Unwritten { lane: u32, column: u32 },
    /// An allocation behind the permit's end.
    Relinquished { at: Pc },
    /// An allocation that is larger than the one before.
    Grows { columns: u32, before: u32, at: Pc },
    /// What is freed was not allocated like that.
    NotAnAllocation { address: u32, columns: u32, freed: Option<Pc> },
    /// What is freed is in use.
    FreedInUse { earlier: Pc },
    /// Columns that the block leaves behind.
    Leak { columns: u32 },
    /// An operation of one thread by several.
    ManyThreads { threads: u32 },
    /// An accumulator at a lane that none can begin at.
    AccumulatorLane { lane: u32 },
}

/// One access: its kind follows from the operation there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) pc: Pc,
    /// Component of the clocks.
    pub(crate) component: u32,
    /// 0 for never.
    pub(crate) tick: u32,
}

/// What is known of 16 lanes of a column.
#[derive(Clone, Debug, Default)]
struct Part {
    written: bool,
    write: Mark,
    /// Products and stores under way that write here; [`Part::write`] is the last of them.
    writing: u32,
    /// The last read of each component, and whether it is under way.
    reads: Vec<(Mark, bool)>,
}

/// Columns of one allocation, and where it was made, or freed.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    first: u32,
    columns: u32,
    pc: Pc,
}

impl Allocation {
    fn has(&self, column: u32) -> bool {
        (self.first..self.first + self.columns).contains(&column)
    }
}

/// Neighbouring columns, and which parts of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) first: u32,
    pub(crate) columns: u32,
    /// A bit for each part.
    parts: u8,
}

impl Area {
    /// `count` lanes from `lane` on, multiples of 16.
    pub(crate) fn lanes(first: u32, columns: u32, lane: u32, count: u32) -> Self {
        let bits = ((1_u32 << (count / PART)) - 1) << (lane / PART);
        Self { first, columns, parts: bits as u8 }
    }

    /// The rows of an accumulator: all lanes for 128, 16 of each 32 for 64 (PTX ISA, "Layout F").
    pub(crate) fn accumulator(first: u32, columns: u32, rows: u32, lane: u32) -> Self {
        let parts = match (rows, lane) {
            (128, _) => 0xff,
            (_, 0) => 0x55,
            _ => 0xaa,
        };
        Self { first, columns, parts }
    }

    fn places(self) -> impl Iterator<Item = (u32, u32)> {
        let columns = self.first..self.first + self.columns;
        columns.flat_map(move |column| {
            (0..PARTS).filter(move |part| self.parts >> part & 1 == 1).map(move |part| (column, part))
        })
    }
}

/// What a thread has started and not seen the end of.
#[derive(Debug)]
pub(crate) enum Work {
    Product(Box<Product>),
    Commit { pc: Pc, barrier: u32 },
}

/// A thread that starts products.
#[derive(Debug)]
pub(crate) struct Issuer {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    /// Component of its products in the clocks.
    pub(crate) component: u32,
    /// In the order of the start.
    pub(crate) queue: VecDeque<Work>,
}

/// The tensor memory of a block.
#[derive(Debug, Default)]
pub(crate) struct TensorMemory {
    /// Column after column, 128 lanes each; empty before the first allocation.
    cells: Vec<u32>,
    /// Column after column.
    parts: Vec<Part>,
    allocations: Vec<Allocation>,
    freed: Vec<Allocation>,
    relinquished: Option<Pc>,
    last: Option<(u32, Pc)>,
    pub(crate) issuers: Vec<Issuer>,
    /// Sums that became infinite or NaN, until a load of them tells.
    pub(crate) specials: Vec<(Pc, Special)>,
}

impl TensorMemory {
    fn part(&self, (column, part): (u32, u32)) -> Option<&Part> {
        self.parts.get((column * PARTS + part) as usize)
    }

    fn part_mut(&mut self, (column, part): (u32, u32)) -> Option<&mut Part> {
        self.parts.get_mut((column * PARTS + part) as usize)
    }

    /// Where a place lies, as its lane and its column in the allocation.
    fn spot(&self, (column, part): (u32, u32)) -> (u32, u32) {
        let first = self.allocations.iter().find(|allocation| allocation.has(column)).map_or(0, |a| a.first);
        (part * PART, column - first)
    }

    /// Allocates columns and gives the first of them; `None` while too few are free.
    ///
    /// The highest that fit are taken: a kernel that counts on an address of 0 fails here.
    pub(crate) fn allocate(&mut self, columns: u32, pc: Pc) -> Result<Option<u32>, TensorFault> {
        if let Some(at) = self.relinquished {
            return Err(TensorFault::Relinquished { at });
        }
        if let Some((before, at)) = self.last.filter(|(before, _)| columns > *before) {
            return Err(TensorFault::Grows { columns, before, at });
        }
        let is_free = |first: &u32| {
            self.allocations.iter().all(|other| *first >= other.first + other.columns || first + columns <= other.first)
        };
        let Some(first) = (0..COLUMNS / columns).rev().map(|index| index * columns).find(is_free) else {
            return Ok(None);
        };
        if self.cells.is_empty() {
            self.cells = vec![UNWRITTEN; (COLUMNS * LANES) as usize];
            self.parts = vec![Part::default(); (COLUMNS * PARTS) as usize];
        }
        self.forget(first, columns);
        self.last = Some((columns, pc));
        self.allocations.push(Allocation { first, columns, pc });
        Ok(Some(first))
    }

    fn forget(&mut self, first: u32, columns: u32) {
        let parts = (first * PARTS) as usize..((first + columns) * PARTS) as usize;
        self.parts.get_mut(parts).unwrap_or_default().fill(Part::default());
        let cells = (first * LANES) as usize..((first + columns) * LANES) as usize;
        self.cells.get_mut(cells).unwrap_or_default().fill(UNWRITTEN);
    }

    /// Frees an allocation; `order` says how its uses stand to this thread, which must be behind them all.
    pub(crate) fn free(
        &mut self,
        (address, columns): (u32, u32),
        pc: Pc,
        order: impl Fn(Mark) -> TensorOrder,
    ) -> Result<(), TensorFault> {
        let is_it = |other: &Allocation| other.first == address && other.columns == columns;
        let Some(index) = self.allocations.iter().position(is_it) else {
            let freed = self.freed.iter().rev().find(|freed| is_it(freed)).map(|freed| freed.pc);
            return Err(TensorFault::NotAnAllocation { address, columns, freed });
        };
        let all = Area { first: address, columns, parts: 0xff };
        for place in all.places() {
            let Some(part) = self.part(place) else { continue };
            if part.writing > 0 {
                return Err(TensorFault::FreedInUse { earlier: part.write.pc });
            }
            let reads = part.reads.iter();
            if let Some((read, _)) = reads.clone().find(|(_, under_way)| *under_way) {
                return Err(TensorFault::FreedInUse { earlier: read.pc });
            }
            let late = |mark: &Mark| mark.tick > 0 && order(*mark) == TensorOrder::Unordered;
            if let Some(mark) = reads.map(|(read, _)| *read).chain([part.write]).find(late) {
                return Err(TensorFault::FreedInUse { earlier: mark.pc });
            }
        }
        self.allocations.remove(index);
        self.freed.push(Allocation { first: address, columns, pc });
        Ok(())
    }

    /// No allocation may follow.
    pub(crate) fn relinquish(&mut self, pc: Pc) {
        self.relinquished.get_or_insert(pc);
    }

    /// Columns that are free.
    pub(crate) fn free_columns(&self) -> u32 {
        COLUMNS - self.allocations.iter().map(|allocation| allocation.columns).sum::<u32>()
    }

    /// An allocation that was not freed: its columns, and where it was made.
    pub(crate) fn leak(&self) -> Option<(u32, Pc)> {
        self.allocations.first().map(|allocation| (allocation.columns, allocation.pc))
    }

    /// Tests that columns are allocated.
    pub(crate) fn check_allocated(&self, first: u32, count: u32) -> Result<(), TensorFault> {
        let is_there = |column: u32| self.allocations.iter().any(|allocation| allocation.has(column));
        let Some(missing) = (first..first + count).find(|column| !is_there(*column)) else { return Ok(()) };
        let freed = self.freed.iter().rev().find(|freed| freed.has(missing)).map(|freed| freed.pc);
        let base = match self.allocations.iter().find(|allocation| allocation.has(first)) {
            Some(allocation) => allocation.first,
            // Behind the end of what is nearest.
            None => self.allocations.iter().map(|a| a.first).filter(|base| *base <= first).max().unwrap_or(0),
        };
        Err(TensorFault::NotAllocated { first: first - base, count, freed })
    }

    /// Tests an access against those before it. `own` are products of the same thread, which run in order.
    pub(crate) fn check(
        &self,
        area: Area,
        (writes, own): (bool, Option<u32>),
        order: impl Fn(Mark) -> TensorOrder,
    ) -> Result<(), TensorFault> {
        for place in area.places() {
            let Some(part) = self.part(place) else { continue };
            let (lane, column) = self.spot(place);
            let before_own = own == Some(part.write.component);
            if part.writing > 0 && !before_own {
                return Err(TensorFault::UnderWay { earlier: part.write.pc, earlier_read: false, lane, column });
            }
            if !writes && part.write.tick == 0 {
                continue;
            }
            let reads = part.reads.iter().filter(|_| writes);
            if let Some((read, _)) = reads.clone().find(|(_, under_way)| *under_way) {
                return Err(TensorFault::UnderWay { earlier: read.pc, earlier_read: true, lane, column });
            }
            let write = (part.write, false);
            let write = Some(write).filter(|_| !before_own);
            for (mark, earlier_read) in write.into_iter().chain(reads.map(|(read, _)| (*read, true))) {
                let order = if mark.tick == 0 { TensorOrder::Ordered } else { order(mark) };
                if order != TensorOrder::Ordered {
                    return Err(TensorFault::Race { earlier: mark.pc, earlier_read, order, lane, column });
                }
            }
        }
        Ok(())
    }

    /// Tests that all cells are written.
    pub(crate) fn check_written(&self, area: Area) -> Result<(), TensorFault> {
        match area.places().find(|&place| self.part(place).is_some_and(|part| !part.written)) {
            None => Ok(()),
            Some(place) => {
                let (lane, column) = self.spot(place);
                Err(TensorFault::Unwritten { lane, column })
            }
        }
    }

    /// A product or a store that writes an area starts.
    pub(crate) fn start_write(&mut self, area: Area, mark: Mark) {
        for place in area.places() {
            if let Some(part) = self.part_mut(place) {
                part.write = mark;
                part.writing += 1;
            }
        }
    }

    /// It is complete, as what `mark` says.
    pub(crate) fn end_write(&mut self, area: Area, mark: Mark) {
        for place in area.places() {
            if let Some(part) = self.part_mut(place) {
                part.written = true;
                part.writing = part.writing.saturating_sub(1);
                if part.writing == 0 {
                    part.write = mark;
                }
                part.reads.clear();
            }
        }
    }

    /// A load of an area starts, or is complete.
    pub(crate) fn note_read(&mut self, area: Area, mark: Mark, under_way: bool) {
        for place in area.places() {
            let Some(part) = self.part_mut(place) else { continue };
            match part.reads.iter_mut().find(|(read, _)| read.component == mark.component) {
                Some(read) => *read = (mark, under_way),
                None => part.reads.push((mark, under_way)),
            }
        }
    }

    /// `count` cells of a column from a lane on.
    pub(crate) fn cells(&self, column: u32, lane: u32, count: u32) -> &[u32] {
        let at = (column * LANES + lane) as usize;
        self.cells.get(at..at + count as usize).unwrap_or_default()
    }

    /// The same, to be written.
    pub(crate) fn cells_mut(&mut self, column: u32, lane: u32, count: u32) -> &mut [u32] {
        let at = (column * LANES + lane) as usize;
        self.cells.get_mut(at..at + count as usize).unwrap_or_default()
    }

    /// A thread among those that start products; `component` gives a new one its component.
    pub(crate) fn issuer(&mut self, warp: u32, lane: u32, component: impl FnOnce() -> u32) -> &mut Issuer {
        let found = self.issuers.iter().position(|issuer| issuer.warp == warp && issuer.lane == lane);
        let index = found.unwrap_or_else(|| {
            let component = component();
            self.issuers.push(Issuer { warp, lane, component, queue: VecDeque::new() });
            self.issuers.len() - 1
        });
        &mut self.issuers[index]
    }

    /// A product that no commit which somebody waited for was behind.
    pub(crate) fn unfinished(&self) -> Option<(u32, Pc)> {
        self.issuers.iter().find_map(|issuer| {
            issuer.queue.iter().find_map(|work| match work {
                Work::Product(product) => Some((issuer.warp, product.pc)),
                Work::Commit { .. } => None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(_: Mark) -> TensorOrder {
        TensorOrder::Ordered
    }

    #[test]
    fn allocations_are_aligned_bounded_and_freed_once() {
        let mut memory = TensorMemory::default();
        assert_eq!(memory.allocate(256, 1), Ok(Some(256)));
        assert_eq!(memory.allocate(128, 2), Ok(Some(128)));
        assert_eq!(memory.allocate(256, 3), Err(TensorFault::Grows { columns: 256, before: 128, at: 2 }));
        assert_eq!(memory.allocate(128, 4), Ok(Some(0)));
        assert_eq!((memory.allocate(32, 5), memory.free_columns()), (Ok(None), 0));
        assert_eq!(
            memory.free((128, 64), 6, free).unwrap_err(),
            TensorFault::NotAnAllocation { address: 128, columns: 64, freed: None }
        );
        memory.free((128, 128), 7, free).unwrap();
        assert_eq!(
            memory.free((128, 128), 8, free).unwrap_err(),
            TensorFault::NotAnAllocation { address: 128, columns: 128, freed: Some(7) }
        );
        assert_eq!(memory.check_allocated(300, 100), Ok(()));
        let outside = TensorFault::NotAllocated { first: 120, count: 16, freed: Some(7) };
        assert_eq!(memory.check_allocated(120, 16), Err(outside));
        assert_eq!(memory.allocate(32, 9), Ok(Some(224)));
        memory.relinquish(10);
        assert_eq!(memory.allocate(32, 11), Err(TensorFault::Relinquished { at: 10 }));
        assert_eq!(memory.leak(), Some((256, 1)));
    }

    #[test]
    fn areas_cover_the_rows_of_accumulators() {
        assert_eq!(Area::lanes(3, 1, 96, 32).places().collect::<Vec<_>>(), [(3, 6), (3, 7)]);
        let narrow = Area::accumulator(0, 1, 64, 16);
        assert_eq!(narrow.places().map(|(_, part)| part).collect::<Vec<_>>(), [1, 3, 5, 7]);
        assert_eq!(Area::accumulator(0, 2, 128, 0).places().count(), 16);
    }

    #[test]
    fn cells_are_written_when_a_product_ends_and_not_when_it_starts() {
        let mut memory = TensorMemory::default();
        let first = memory.allocate(32, 1).unwrap().unwrap();
        let area = Area::accumulator(first, 32, 128, 0);
        let load = Area::lanes(first + 4, 2, 32, 32);
        assert_eq!(memory.check_written(load), Err(TensorFault::Unwritten { lane: 32, column: 4 }));
        memory.start_write(area, Mark { pc: 5, component: 9, tick: 0 });
        let under_way = TensorFault::UnderWay { earlier: 5, earlier_read: false, lane: 32, column: 4 };
        assert_eq!(memory.check(load, (false, None), free), Err(under_way));
        // Products of one thread follow each other.
        assert_eq!(memory.check(area, (true, Some(9)), free), Ok(()));
        memory.end_write(area, Mark { pc: 5, component: 9, tick: 3 });
        assert_eq!((memory.check(load, (false, None), free), memory.check_written(load)), (Ok(()), Ok(())));
        let race = memory.check(load, (false, None), |_| TensorOrder::NoFenceAfter).unwrap_err();
        assert!(matches!(race, TensorFault::Race { earlier: 5, order: TensorOrder::NoFenceAfter, .. }));
    }
}
