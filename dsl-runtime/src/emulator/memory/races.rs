//! Races in shared memory, by happens-before.
//!
//! The scheduler runs one warp at a time, so one counter of ticks per block orders all synchronisation.
//! A warp's clock advances when it releases what it did (a barrier, a warp sync, an atomic with release
//! ordering); it knows for each warp the latest tick that is ordered before it ([`super::clock`]). Each cell knows its
//! last write, and for each warp the last read. An access races with an earlier one that it has not
//! seen, unless both are the same thread's. What all lanes of a warp read together, by `ldmatrix`, is kept by rows of 16
//! bytes, apart from the reads of single lanes.
//!
//! Cells are as large as the smallest access of the kernel, up to four bytes: neighbours never share one.
//!
//! The blocks of a cluster share one shadow and its clocks, each with cells of its own: [`SharedRaces::enter`]
//! says whose accesses follow. What bulk copies and wgmma do is in [`super::async_races`].

use std::collections::HashMap;

use super::async_races::Bulk;
use super::clock::{Apart, Clock, Knowledge};
use super::epoch::{COMPONENTS, Epoch, untouched};
use crate::emulator::op::Pc;

/// Bytes of a row of `ldmatrix`, at a multiple of as many.
const ROW_BYTES: usize = 16;

/// Logarithm of the cells of a row, for cells of `1 << shift` bytes.
fn row_shift(shift: u32) -> u32 {
    ROW_BYTES.trailing_zeros().saturating_sub(shift)
}

/// Cells of a line, which summarises them: an old line needs no look at its cells.
pub(super) const LINE_SHIFT: usize = 5;

/// The latest ticks in a line, and how many copies to it are under way.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    pub(super) written: u32,
    pub(super) read: u32,
    /// Copies under way, and mbarriers, which no ordinary access may touch.
    pub(super) in_flight: u32,
}

/// What an access does to its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    Write,
    /// A read-modify-write: races with plain accesses, not with its own kind.
    Atomic,
    /// A write that lands later.
    CopyStart,
    /// A copy that has been waited for.
    CopyEnd,
}

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    /// First byte of the cell.
    pub(crate) byte: u64,
    /// The earlier access.
    pub(crate) earlier: Epoch,
    /// Whether the earlier access only read.
    pub(crate) earlier_read: bool,
    pub(crate) lane: u32,
    pub(crate) missing: Missing,
}

/// What would put two accesses in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A barrier, or whatever else one thread waits at for another.
    Barrier,
    /// A fence between the generic and the async proxy: a barrier orders the two.
    ProxyFence,
    /// A `warp_sync()`: another lane of the first one's warp has told of what that lane did.
    WarpSync,
}

/// One lane's part of an access, or a whole warp's.
#[derive(Clone, Copy)]
pub(crate) struct Toucher {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) pc: Pc,
}

/// What a shadow is for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShadowShape {
    /// Shared memory of a block.
    pub(crate) bytes: usize,
    /// Logarithm of the size of a cell.
    pub(crate) shift: u32,
    /// Warps of a block.
    pub(crate) warps: usize,
    /// Threads of a block, and of a warp.
    pub(crate) threads: u32,
    pub(crate) width: u32,
    /// Blocks of a cluster.
    pub(crate) blocks: usize,
    /// Lanes of a wave run in lockstep and need no sync among themselves.
    pub(crate) lockstep: bool,
    pub(crate) has_atomics: bool,
    /// Whether the kernel has `ldmatrix`.
    pub(crate) has_matrices: bool,
    /// Whether the kernel has mbarriers, bulk copies or wgmma.
    pub(crate) asynchronous: bool,
    /// Whether threads access the memory of other blocks of the cluster.
    pub(crate) reaches_peers: bool,
}

/// The shadow of the shared memory of a block, or of all blocks of a cluster.
pub(crate) struct SharedRaces {
    pub(super) shift: u32,
    lockstep: bool,
    /// Cells of all blocks.
    pub(super) cells: usize,
    cells_of_block: usize,
    pub(super) warps_of_block: usize,
    /// The block whose accesses follow: its first cell and its first warp.
    pub(super) first_cell: usize,
    pub(super) first_warp: u32,
    pub(super) writes: Box<[Epoch]>,
    /// Of each warp, one row.
    pub(super) reads: Box<[Epoch]>,
    /// The same for what all lanes of a warp read together: of each row of [`ROW_BYTES`]. Empty for kernels without.
    pub(super) rows: Box<[Epoch]>,
    rows_of_warp: usize,
    /// As [`Self::reads`] for read-modify-writes; empty for kernels without. They are kept apart so that they do
    /// not hide a plain write.
    atomics: Box<[Epoch]>,
    pub(super) lines: Vec<Line>,
    pub(super) bulk: Bulk,
    pub(super) tick: u32,
    pub(super) clocks: Vec<Clock>,
    /// The lanes of each warp of a block.
    existing: Box<[u64]>,
    asynchronous: bool,
    reaches_peers: bool,
    /// The tick at which the blocks began.
    started: u32,
    /// Components of a clock.
    components: usize,
    /// What the arrivals at each named barrier released.
    named: HashMap<(u32, u32), Knowledge>,
    /// What atomics released, by the cell they release to.
    released: HashMap<usize, Knowledge>,
}

impl SharedRaces {
    pub(crate) fn new(shape: &ShadowShape) -> Self {
        let ShadowShape { bytes, shift, warps, blocks, lockstep, has_atomics, asynchronous, .. } = *shape;
        let cells_of_block = bytes.max(1).div_ceil(1 << shift).next_multiple_of(1 << LINE_SHIFT);
        let (cells, all_warps) = (cells_of_block * blocks, warps * blocks);
        let components = if asynchronous { COMPONENTS as usize } else { all_warps };
        let known = Knowledge::nothing(components, asynchronous);
        let rows_of_warp = if shape.has_matrices { cells >> row_shift(shift) } else { 0 };
        let lanes = |warp: usize| match shape.threads.saturating_sub(warp as u32 * shape.width).min(shape.width) {
            0 => 0,
            count => u64::MAX >> (64 - count.min(64)),
        };
        Self {
            shift,
            lockstep,
            cells,
            cells_of_block,
            warps_of_block: warps,
            first_cell: 0,
            first_warp: 0,
            writes: untouched(cells),
            reads: untouched(cells * all_warps),
            rows: untouched(rows_of_warp * all_warps),
            rows_of_warp,
            atomics: untouched(if has_atomics { cells * all_warps } else { 0 }),
            lines: vec![Line::default(); cells >> LINE_SHIFT],
            bulk: Bulk::new(if asynchronous { cells >> LINE_SHIFT } else { 0 }, all_warps),
            tick: 0,
            clocks: vec![Clock { known, ..Clock::default() }; all_warps],
            existing: (0..warps).map(lanes).collect(),
            asynchronous,
            reaches_peers: shape.reaches_peers,
            started: 0,
            components,
            named: HashMap::new(),
            released: HashMap::new(),
        }
    }

    /// The accesses that follow are of this block of the cluster, to its own memory.
    pub(crate) fn enter(&mut self, rank: u32) {
        self.reach(rank);
        self.first_warp = rank * self.warps_of_block as u32;
    }

    /// Where the accesses that follow are noted, for [`SharedRaces::go_back`].
    pub(crate) fn place(&self) -> (u32, usize) {
        (self.first_warp, self.first_cell)
    }

    /// The accesses that follow are noted where those before [`SharedRaces::place`] were.
    pub(crate) fn go_back(&mut self, (first_warp, first_cell): (u32, usize)) {
        (self.first_warp, self.first_cell) = (first_warp, first_cell);
    }

    /// The accesses that follow are to the memory of this block.
    pub(crate) fn reach(&mut self, rank: u32) {
        self.first_cell = rank as usize * self.cells_of_block;
    }

    /// The first warp of the block whose memory is accessed.
    pub(super) fn first_warp_of_memory(&self) -> u32 {
        (self.first_cell / self.cells_of_block.max(1) * self.warps_of_block) as u32
    }

    /// Knowledge of nothing.
    pub(crate) fn nothing(&self) -> Knowledge {
        Knowledge::nothing(self.components, self.asynchronous)
    }

    /// Fresh blocks: what was done before is seen by all.
    pub(crate) fn start_block(&mut self) {
        if self.tick > u32::MAX / 2 {
            self.writes.fill(Epoch::default());
            self.reads.fill(Epoch::default());
            self.rows.fill(Epoch::default());
            self.atomics.fill(Epoch::default());
            self.lines.fill(Line::default());
            self.bulk.forget();
            self.tick = 0;
        }
        for (line, cells) in self.lines.iter_mut().zip(self.writes.chunks_exact_mut(1 << LINE_SHIFT)) {
            if line.in_flight != 0 {
                line.in_flight = 0;
                cells.iter_mut().filter(|cell| cell.is_in_flight()).for_each(|cell| *cell = Epoch::default());
            }
        }
        self.bulk.start_block();
        self.named.clear();
        self.released.clear();
        let seen = self.tick;
        self.tick += 1;
        self.started = seen;
        for clock in &mut self.clocks {
            clock.known.seen.start(seen);
            clock.known.fenced.start(seen);
            clock.known.tensor.clear();
            clock.apart = None;
            (clock.touched, clock.wrote) = (0, false);
            clock.tensor.clear();
            clock.floor = seen;
            clock.now = self.tick;
        }
    }

    fn clocks_of_block(&mut self) -> Option<&mut [Clock]> {
        let first = self.first_warp as usize;
        self.clocks.get_mut(first..first + self.warps_of_block)
    }

    /// All warps of the block are at its barrier.
    pub(crate) fn barrier(&mut self) {
        let seen = self.tick;
        self.tick += 1;
        let (now, own) = (self.tick, self.first_warp as usize..self.first_warp as usize + self.warps_of_block);
        let mut all = if self.asynchronous { self.nothing() } else { Knowledge::default() };
        let Some(clocks) = self.clocks_of_block() else { return };
        for clock in &mut *clocks {
            clock.reunite();
            all.join(&clock.known);
        }
        for clock in clocks {
            clock.known.join(&all);
            clock.known.seen.start_of(own.clone(), seen);
            (clock.touched, clock.wrote) = (0, false);
            clock.floor = seen;
            clock.now = now;
        }
        if self.reaches_peers {
            (self.first_warp..self.first_warp + self.warps_of_block as u32).for_each(|component| self.lift(component));
        }
    }

    /// The warps that access the memory of the block which begins with warp `first`.
    fn visitors(&self, first: usize) -> std::ops::Range<usize> {
        if self.reaches_peers { 0..self.clocks.len() } else { first..first + self.warps_of_block }
    }

    /// The smallest tick seen of the warps that access the memory of the block which begins with warp `first`.
    pub(super) fn floor_of(&self, first: u32, seen: &[u32]) -> u32 {
        seen.get(self.visitors(first as usize)).unwrap_or_default().iter().copied().min().unwrap_or(0)
    }

    /// Whether lanes of a warp know of anything that a block of the cluster did.
    pub(crate) fn knows_of_block(&self, warp: u32, lanes: u64, rank: u32) -> bool {
        let first = rank * self.warps_of_block as u32;
        let components = first..first + self.warps_of_block as u32;
        self.clock(warp).is_none_or(|clock| {
            let apart = clock.apart.as_ref().filter(|apart| apart.lanes & lanes == lanes);
            clock.known.seen.is_past(&components, self.started)
                || apart.is_some_and(|apart| apart.known.seen.is_past(&components, self.started))
        })
    }

    /// The lanes of a warp are ordered among themselves.
    pub(crate) fn warp_sync(&mut self, warp: u32) {
        let component = self.first_warp + warp;
        if let Some(clock) = self.clocks.get_mut(component as usize) {
            clock.reunite();
            clock.known.see(component, clock.now);
        }
        self.step(warp);
        self.lift(component);
    }

    /// The lanes of a warp have agreed on a value: what they have read they have read, though what they wrote others need
    /// not see.
    pub(crate) fn agree(&mut self, warp: u32) {
        if self.clock(warp).is_some_and(|clock| !clock.wrote) {
            self.warp_sync(warp);
        }
    }

    /// A warp's clock moves on: what it does later is told apart from what it did.
    pub(super) fn step(&mut self, warp: u32) {
        self.tick += 1;
        let now = self.tick;
        if let Some(clock) = self.clocks.get_mut((self.first_warp + warp) as usize) {
            clock.now = now;
        }
    }

    /// Finds a warp's floor anew.
    pub(super) fn lift(&mut self, component: u32) {
        let watched = self.visitors(self.first_warp as usize);
        let first = watched.start;
        let Some(clock) = self.clocks.get_mut(component as usize) else { return };
        let own = clock.known.seen_of(component);
        if clock.touched_at <= own {
            (clock.touched, clock.wrote) = (0, false);
        }
        let seen = clock.known.seen.ticks().get(watched).unwrap_or_default();
        // A warp that has touched nothing since its lanes were ordered has no part in it.
        let own = if clock.touched == 0 { own.max(clock.now.saturating_sub(1)) } else { own };
        let others = seen.iter().enumerate().filter(|(index, _)| first + index != component as usize);
        clock.floor = others.map(|(_, tick)| *tick).fold(own, u32::min);
    }

    /// The lanes of a warp that stand for it: all of them where they run in lockstep.
    fn speakers(&self, warp: u32, lanes: u64) -> u64 {
        if self.lockstep { u64::MAX } else { lanes & self.existing_of(warp) }
    }

    fn existing_of(&self, warp: u32) -> u64 {
        self.existing.get(warp as usize).copied().unwrap_or(u64::MAX)
    }

    /// Adds what some lanes of a warp did so far, and what they know, to what others may learn.
    pub(crate) fn release_to(&mut self, warp: u32, lanes: u64, to: &mut Knowledge) {
        let (component, lanes) = (self.first_warp + warp, self.speakers(warp, lanes));
        if let Some(clock) = self.clocks.get(component as usize) {
            to.join(&clock.known);
            if let Some(apart) = clock.apart.as_ref().filter(|apart| apart.lanes & lanes != 0) {
                to.join(&apart.known);
            }
            clock.tell(component, lanes, &mut to.seen);
        }
        self.step(warp);
        self.lift(component);
    }

    /// Lanes of a warp learn what others released.
    pub(crate) fn acquire(&mut self, warp: u32, lanes: u64, from: &Knowledge) {
        let component = self.first_warp + warp;
        let (lanes, existing) = (self.speakers(warp, lanes), self.existing_of(warp));
        let Some(clock) = self.clocks.get_mut(component as usize) else { return };
        if lanes & existing == existing {
            clock.known.join(from);
        } else {
            let apart = clock.apart.get_or_insert_with(|| Box::new(Apart { lanes: 0, known: Knowledge::default() }));
            if apart.lanes == 0 {
                apart.known.clone_from(from);
            } else {
                apart.known.join(from);
            }
            apart.lanes |= lanes;
            if apart.lanes & existing == existing {
                clock.reunite();
            }
        }
        self.lift(component);
    }

    /// A warp arrives at a named barrier and releases what it did.
    pub(crate) fn arrive(&mut self, id: u32, warp: u32) {
        let key = (self.first_warp, id);
        let mut joined = self.named.remove(&key).unwrap_or_else(|| self.nothing());
        self.release_to(warp, u64::MAX, &mut joined);
        self.named.insert(key, joined);
    }

    /// A named barrier lets these warps go on.
    pub(crate) fn release(&mut self, id: u32, warps: impl Iterator<Item = usize>) {
        let Some(joined) = self.named.remove(&(self.first_warp, id)) else { return };
        for warp in warps {
            self.acquire(warp as u32, u64::MAX, &joined);
        }
    }

    /// A lane's atomic acquires what others released to its cell, and releases what the lane did.
    pub(crate) fn synchronise(&mut self, who: Toucher, byte: usize, acquires: bool, releases: bool) {
        let cell = self.first_cell + (byte >> self.shift);
        let lanes = 1 << (who.lane & 63);
        if acquires && let Some(released) = self.released.remove(&cell) {
            self.acquire(who.warp, lanes, &released);
            self.released.insert(cell, released);
        }
        if releases {
            let mut all = self.released.remove(&cell).unwrap_or_else(|| self.nothing());
            self.release_to(who.warp, lanes, &mut all);
            self.released.insert(cell, all);
        }
    }

    /// The clock of a warp of the block.
    pub(super) fn clock(&self, warp: u32) -> Option<&Clock> {
        self.clocks.get((self.first_warp + warp) as usize)
    }

    #[inline(always)]
    pub(super) fn range(&self, at: usize, len: usize) -> (usize, usize) {
        let first = (self.first_cell + (at >> self.shift)).min(self.cells);
        (first, (self.first_cell + ((at + len + (1 << self.shift) - 1) >> self.shift)).clamp(first, self.cells))
    }

    /// The byte of the block that a cell starts at.
    pub(super) fn byte_of(&self, cell: usize) -> u64 {
        (cell.saturating_sub(self.first_cell) as u64) << self.shift
    }

    /// Whether the lines of a range hold nothing that the warp has not seen.
    #[inline(always)]
    pub(crate) fn is_old(&self, warp: u32, at: usize, len: usize, touch: Touch) -> bool {
        let (first, end) = self.range(at, len);
        let floor = self.clock(warp).map_or(0, |clock| clock.floor);
        let range = first >> LINE_SHIFT..(end + (1 << LINE_SHIFT) - 1) >> LINE_SHIFT;
        let writes = touch != Touch::Read;
        let lines = self.lines.get(range.clone());
        lines.is_some_and(|lines| {
            lines.iter().all(|line| (line.written <= floor) & (line.in_flight == 0) & (!writes | (line.read <= floor)))
        }) && self.bulk.is_old(range)
    }

    /// A lane's access now.
    pub(super) fn epoch_of(&self, who: Toucher) -> Epoch {
        Epoch::new(self.clock(who.warp).map_or(0, |clock| clock.now), who.pc, self.first_warp + who.warp, who.lane)
    }

    /// What would put an earlier access of a thread of the block before what a warp does now.
    pub(super) fn missing(&self, who: Toucher, earlier: Epoch) -> Missing {
        self.clock(who.warp).map_or(Missing::Barrier, |clock| clock.known.seen.missing(earlier))
    }

    /// Lanes of a warp have touched memory that is not in this shadow: who arrives alone does not speak for them.
    pub(crate) fn touched_elsewhere(&mut self, warp: u32, lanes: u64) {
        self.touched(warp, lanes, Touch::Read);
    }

    /// Whether an earlier access of a thread of the block is ordered before what a lane does now.
    pub(super) fn is_ordered(&self, who: Toucher, earlier: Epoch) -> bool {
        let own = earlier.warp() == self.first_warp + who.warp && (self.lockstep || earlier.lane() == Some(who.lane));
        own || self.clock(who.warp).is_none_or(|clock| clock.sees(earlier, who.lane))
    }

    /// Finds the first earlier access that a lane's access races with.
    pub(crate) fn check(&self, who: Toucher, at: usize, len: usize, touch: Touch) -> Result<(), Conflict> {
        if touch == Touch::CopyEnd || self.is_old(who.warp, at, len, touch) {
            return Ok(());
        }
        let Some(clock) = self.clock(who.warp) else { return Ok(()) };
        let (first, end) = self.range(at, len);
        let component = self.first_warp + who.warp;
        let ordered = |earlier: Epoch| {
            let same_lane = earlier.lane() == Some(who.lane) || earlier.is_together();
            let own = earlier.warp() == component && (self.lockstep || same_lane);
            !earlier.is_in_flight() && (own || clock.sees(earlier, who.lane))
        };
        self.check_bulk(who, (first, end), touch)?;
        for cell in first..end {
            let conflict = |earlier, earlier_read| {
                let byte = self.byte_of(cell);
                let missing = clock.known.seen.missing(earlier);
                Err(Conflict { byte, earlier, earlier_read, lane: who.lane, missing })
            };
            let write = self.writes.get(cell).copied().unwrap_or_default();
            if !ordered(write) {
                return conflict(write, false);
            }
            let of_rows =
                |rows: &[Epoch]| rows.iter().skip(cell).step_by(self.cells).copied().find(|&earlier| !ordered(earlier));
            if touch != Touch::Read {
                let together = self.rows_over(cell).find(|&earlier| !ordered(earlier));
                if let Some(read) = of_rows(&self.reads).or(together) {
                    return conflict(read, true);
                }
            }
            if touch != Touch::Atomic
                && let Some(atomic) = of_rows(&self.atomics)
            {
                return conflict(atomic, false);
            }
        }
        Ok(())
    }

    /// Whether lanes' ranges of `len` bytes hold nothing that the warp has not seen: then no lane's access
    /// needs a look at its cells.
    #[inline(always)]
    pub(crate) fn are_old(&self, warp: u32, rows: impl Iterator<Item = usize>, len: usize, touch: Touch) -> bool {
        let floor = self.clock(warp).map_or(0, |clock| clock.floor);
        let (shift, first_line) = (self.shift as usize + LINE_SHIFT, self.first_cell >> LINE_SHIFT);
        let writes = touch != Touch::Read;
        let is_new = |line: usize| {
            let line = first_line + line;
            !self.bulk.is_old(line..line + 1)
                || self
                    .lines
                    .get(line)
                    .is_none_or(|line| (line.written > floor) | (line.in_flight != 0) | (writes & (line.read > floor)))
        };
        let mut any_new = false;
        for at in rows {
            let (first, last) = (at >> shift, (at + len - 1) >> shift);
            any_new |= is_new(first) | (first != last && is_new(last));
        }
        !any_new
    }

    /// Whether lanes' ranges of `len` bytes hold, beside what the warp has seen, nothing but writes of the same lane. Says
    /// no where that takes more than a look at the last writes; [`Self::check`] then knows.
    #[inline(always)]
    pub(crate) fn are_own(
        &self,
        warp: u32,
        rows: impl Iterator<Item = (u32, usize)>,
        len: usize,
        touch: Touch,
    ) -> bool {
        let Some(clock) = self.clock(warp) else { return false };
        if touch == Touch::Atomic || !self.atomics.is_empty() || clock.apart.is_some() {
            return false;
        }
        let component = self.first_warp + warp;
        let (floor, own) = (clock.floor, clock.known.seen_of(component));
        let (line_shift, first_line) = (self.shift as usize + LINE_SHIFT, self.first_cell >> LINE_SHIFT);
        let reads_matter = touch != Touch::Read;
        let mut fine = true;
        for (lane, at) in rows {
            let (first, end) = self.range(at, len);
            let Some(cells) = self.writes.get(first..end) else { return false };
            let mine = Epoch::new(0, 0, component, lane);
            for &write in cells {
                let seen = if write.warp() == component { own } else { floor };
                fine &= !write.is_in_flight() & ((write.time() <= seen) | write.is_by(mine));
            }
            for line in at >> line_shift..=(at + len - 1) >> line_shift {
                let line = first_line + line;
                let read = self.lines.get(line).map_or(u32::MAX, |line| line.read);
                fine &= (!reads_matter | (read <= floor)) & self.bulk.is_old(line..line + 1);
            }
        }
        fine
    }

    /// The lanes of a warp have touched memory.
    #[inline(always)]
    fn touched(&mut self, warp: u32, lanes: u64, touch: Touch) {
        if let Some(clock) = self.clocks.get_mut((self.first_warp + warp) as usize) {
            clock.touched |= lanes;
            clock.wrote |= touch != Touch::Read;
            clock.touched_at = clock.now;
        }
    }

    /// Notes lanes' accesses of `len` bytes each.
    #[inline(always)]
    pub(crate) fn note_rows(
        &mut self,
        who: Toucher,
        rows: impl Iterator<Item = (u32, usize)>,
        len: usize,
        touch: Touch,
    ) {
        let now = self.clock(who.warp).map_or(0, |clock| clock.now);
        let component = self.first_warp + who.warp;
        let epoch = Epoch::new(now, who.pc, component, 0);
        let row = component as usize * self.cells;
        let (first_cell, first_line) = (self.first_cell, self.first_cell >> LINE_SHIFT);
        let (cells, merges, epoch) = match touch {
            Touch::Read => (self.reads.get_mut(row..row + self.cells), true, epoch),
            Touch::Atomic => (self.atomics.get_mut(row..row + self.cells), true, epoch.atomic()),
            Touch::CopyStart => (self.writes.get_mut(..), false, epoch.in_flight()),
            Touch::Write | Touch::CopyEnd => (self.writes.get_mut(..), false, epoch),
        };
        let Some(cells) = cells else { return };
        let line_shift = self.shift as usize + LINE_SHIFT;
        let count = len >> self.shift;
        let mut lanes = 0;
        for (lane, at) in rows {
            lanes |= if lane < 64 { 1 << lane } else { 0 };
            for line in at >> line_shift..=(at + len - 1) >> line_shift {
                let Some(line) = self.lines.get_mut(first_line + line) else { continue };
                match touch {
                    Touch::Read => line.read = now,
                    Touch::Write | Touch::Atomic => line.written = now,
                    Touch::CopyStart => {
                        line.written = now;
                        line.in_flight += 1;
                    }
                    Touch::CopyEnd => {
                        line.written = now;
                        line.in_flight = line.in_flight.saturating_sub(1);
                    }
                }
            }
            let mine = Epoch(epoch.0 | u64::from(lane));
            let first = first_cell + (at >> self.shift);
            let put = |cell: &mut Epoch| *cell = if merges { cell.merged(mine) } else { mine };
            // Sixteen bytes are most accesses: without a loop.
            match cells.get_mut(first..first + count) {
                Some([a, b, c, d]) => [a, b, c, d].into_iter().for_each(put),
                Some([a]) => put(a),
                Some(cells) => cells.iter_mut().for_each(put),
                None => {}
            }
        }
        self.touched(who.warp, lanes, touch);
    }

    /// Notes a read of rows of [`ROW_BYTES`] by all lanes of a warp together. Later ones cover earlier ones, so that no
    /// look at those is needed.
    #[inline(always)]
    pub(crate) fn note_together(&mut self, who: Toucher, rows: impl Iterator<Item = usize>) {
        let now = self.clock(who.warp).map_or(0, |clock| clock.now);
        let component = self.first_warp + who.warp;
        let epoch = Epoch::new(now, who.pc, component, Epoch::TOGETHER);
        let (first_line, first_row) = (self.first_cell >> LINE_SHIFT, self.first_cell >> row_shift(self.shift));
        let first = component as usize * self.rows_of_warp;
        let Some(noted) = self.rows.get_mut(first..first + self.rows_of_warp) else { return };
        let line_shift = self.shift as usize + LINE_SHIFT;
        for at in rows {
            if let Some(line) = self.lines.get_mut(first_line + (at >> line_shift)) {
                line.read = now;
            }
            if let Some(row) = noted.get_mut(first_row + at / ROW_BYTES) {
                *row = epoch;
            }
        }
    }

    /// The last reads that warps made together of the row around a cell.
    pub(super) fn rows_over(&self, cell: usize) -> impl Iterator<Item = Epoch> + '_ {
        self.rows.iter().skip(cell >> row_shift(self.shift)).step_by(self.rows_of_warp.max(1)).copied()
    }

    /// Notes an access of all 32 lanes to one range, `len` bytes a lane.
    #[inline(always)]
    pub(crate) fn note_warp(&mut self, who: Toucher, at: usize, len: usize, touch: Touch) {
        let (first, end) = self.range(at, 32 * len);
        let now = self.clock(who.warp).map_or(0, |clock| clock.now);
        let component = self.first_warp + who.warp;
        let epoch = Epoch::new(now, who.pc, component, who.lane);
        let lines = first >> LINE_SHIFT..(end + (1 << LINE_SHIFT) - 1) >> LINE_SHIFT;
        self.touched(who.warp, u64::from(u32::MAX) << who.lane, touch);
        let Some(lines) = self.lines.get_mut(lines) else { return };
        let row = component as usize * self.cells;
        let per_lane = (end - first) / 32;
        if touch == Touch::Read {
            lines.iter_mut().for_each(|line| line.read = now);
            let Some(cells) = self.reads.get_mut(row + first..row + end) else { return };
            for (lane, cells) in cells.chunks_exact_mut(per_lane.max(1)).enumerate() {
                let mine = Epoch(epoch.0 + lane as u64);
                cells.iter_mut().for_each(|cell| *cell = cell.merged(mine));
            }
        } else {
            lines.iter_mut().for_each(|line| line.written = now);
            let Some(cells) = self.writes.get_mut(first..end) else { return };
            for (lane, cells) in cells.chunks_exact_mut(per_lane.max(1)).enumerate() {
                cells.fill(Epoch(epoch.0 + lane as u64));
            }
        }
    }

    /// The last write of a byte.
    pub(crate) fn last_write(&self, byte: usize) -> Epoch {
        self.writes.get(self.first_cell + (byte >> self.shift)).copied().unwrap_or_default()
    }
}
