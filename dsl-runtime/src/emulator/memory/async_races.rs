//! Races of bulk copies (TMA) and wgmma with ordinary accesses and with each other.
//!
//! They touch whole tiles, so what they do is noted by the line of 32 cells where they cover it, and by
//! the cell where they do not. Rules (PTX ISA, "Memory consistency model", async proxy):
//!
//! - what a bulk copy writes is ordered before those that wait for its mbarrier;
//! - what an ordinary store writes is seen by a bulk copy or a wgmma only behind a proxy fence of the
//!   writer (or of one that is ordered behind it), and whatever orders the two besides;
//! - a bulk copy may overwrite what was read, when that is ordered before it; no fence is needed.

use super::clock::Knowledge;
use super::epoch::{Epoch, untouched};
use super::races::{Conflict, LINE_SHIFT, Missing, SharedRaces, Touch, Toucher};

/// What bulk accesses did to a line.
#[derive(Clone, Copy, Default)]
struct BulkLine {
    /// The last one that wrote all of it; flagged while it is under way.
    write: Epoch,
    /// Whether anything touched it in this block.
    touched: bool,
    /// Reads under way.
    reading: u32,
}

/// The shadow of bulk accesses. Empty for kernels without.
pub(super) struct Bulk {
    lines: Vec<BulkLine>,
    /// Of each line, one cell a warp and one a warpgroup: its last bulk read; flagged while it is under way.
    reads: Box<[Epoch]>,
    rows: usize,
}

impl Bulk {
    pub(super) fn new(lines: usize, warps: usize) -> Self {
        let rows = warps + warps.div_ceil(4);
        Self { lines: vec![BulkLine::default(); lines], reads: untouched(lines * rows), rows }
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        self.lines.fill(BulkLine::default());
        self.reads.fill(Epoch::default());
    }

    /// What earlier blocks did is seen by all.
    pub(super) fn start_block(&mut self) {
        for (line, reads) in self.lines.iter_mut().zip(self.reads.chunks_exact_mut(self.rows.max(1))) {
            if line.touched {
                *line = BulkLine::default();
                reads.fill(Epoch::default());
            }
        }
    }

    /// Whether no bulk access has touched these lines.
    #[inline(always)]
    pub(super) fn is_old(&self, lines: std::ops::Range<usize>) -> bool {
        self.lines.is_empty() || self.lines.get(lines).is_some_and(|lines| lines.iter().all(|line| !line.touched))
    }

    fn reads_of(&self, line: usize) -> impl Iterator<Item = Epoch> + '_ {
        let first = line * self.rows;
        self.reads.get(first..first + self.rows).unwrap_or_default().iter().copied()
    }
}

/// A bulk access of a warp, or of the copy engine on its behalf.
#[derive(Clone, Copy)]
pub(crate) struct BulkAccess<'a> {
    pub(crate) who: Toucher,
    /// What the warp knew when it issued the access.
    pub(crate) known: &'a Knowledge,
}

impl SharedRaces {
    /// What lanes of a warp know now; its clock moves on, so that what it does later is told apart.
    pub(crate) fn snapshot(&mut self, warp: u32, lanes: u64) -> Knowledge {
        let component = self.first_warp + warp;
        let known = self.clock(warp).map(|clock| {
            let mut known = Knowledge { issued: clock.now, ..clock.known_to(lanes) };
            if clock.speaks_for_all(lanes) {
                known.see(component, clock.now);
            }
            known
        });
        self.step(warp);
        self.lift(component);
        known.unwrap_or_default()
    }

    /// A proxy fence of lanes of a warp: bulk accesses that follow see what the lanes stored, and what they knew of.
    pub(crate) fn fence_proxy(&mut self, warp: u32, lanes: u64) {
        let component = self.first_warp + warp;
        if let Some(clock) = self.clocks.get_mut(component as usize) {
            let mut fenced = clock.known_to(lanes).seen;
            clock.tell(component, lanes, &mut fenced);
            clock.known.fenced.join(&fenced);
        }
        self.step(warp);
        self.lift(component);
    }

    /// The whole lines of a range, and whether it is made of whole lines.
    fn bulk_lines(&self, at: usize, len: usize) -> (std::ops::Range<usize>, bool) {
        let (first, end) = self.range(at, len);
        let mask = (1 << LINE_SHIFT) - 1;
        (first >> LINE_SHIFT..(end + mask) >> LINE_SHIFT, first & mask == 0 && end & mask == 0)
    }

    /// What bulk accesses did before an ordinary access to these cells.
    #[inline(never)]
    pub(super) fn check_bulk(&self, who: Toucher, (first, end): (usize, usize), touch: Touch) -> Result<(), Conflict> {
        if self.bulk.lines.is_empty() || end <= first {
            return Ok(());
        }
        let Some(clock) = self.clock(who.warp) else { return Ok(()) };
        for line in first >> LINE_SHIFT..=(end - 1) >> LINE_SHIFT {
            let cell = first.max(line << LINE_SHIFT);
            self.check_line(who, &clock.known, line, cell, touch != Touch::Read)?;
        }
        Ok(())
    }

    /// What bulk accesses did to one line before another access. `cell` is where the blame goes.
    fn check_line(
        &self,
        who: Toucher,
        known: &Knowledge,
        line: usize,
        cell: usize,
        writes: bool,
    ) -> Result<(), Conflict> {
        let Some(bulk) = self.bulk.lines.get(line).filter(|bulk| bulk.touched) else { return Ok(()) };
        let ordered = |earlier: Epoch| !earlier.is_in_flight() && known.seen.covers(earlier);
        let conflict = |earlier, earlier_read| {
            let missing = known.seen.missing(earlier);
            Err(Conflict { byte: self.byte_of(cell), earlier, earlier_read, lane: who.lane & 31, missing })
        };
        if !ordered(bulk.write) {
            return conflict(bulk.write, false);
        }
        if writes {
            let own = self.first_warp + who.warp;
            let late = |read: &Epoch| !ordered(*read) && (read.is_in_flight() || read.warp() != own);
            if let Some(read) = self.bulk.reads_of(line).find(late) {
                return conflict(read, true);
            }
            if bulk.reading > 0 {
                let read = self.bulk.reads_of(line).max_by_key(|read| read.time()).unwrap_or_default();
                return conflict(read, true);
            }
        }
        Ok(())
    }

    /// Finds the first earlier access that a bulk access races with, or that no proxy fence divides from it.
    pub(crate) fn check_async(
        &self,
        access: BulkAccess<'_>,
        at: usize,
        len: usize,
        writes: bool,
    ) -> Result<(), Conflict> {
        let BulkAccess { who, known } = access;
        let (first, end) = self.range(at, len);
        let owner = self.first_warp_of_memory();
        let (fenced_floor, seen_floor) =
            (self.floor_of(owner, known.fenced.ticks()), self.floor_of(owner, known.seen.ticks()));
        // What a lane issues is no more in order with other lanes of its warp than with other warps, whoever has fenced.
        let fenced_floor = if who.lane < 64 { fenced_floor.min(seen_floor) } else { fenced_floor };
        let (lines, _) = self.bulk_lines(at, len);
        for line in lines {
            let cells = first.max(line << LINE_SHIFT)..end.min((line + 1) << LINE_SHIFT);
            self.check_line(who, known, line, cells.start, writes)?;
            let Some(plain) = self.lines.get(line) else { continue };
            if plain.written > fenced_floor || plain.in_flight != 0 || writes && plain.read > seen_floor {
                self.check_cells(access, cells, writes)?;
            }
        }
        Ok(())
    }

    /// The same against ordinary accesses, cell by cell.
    #[inline(never)]
    fn check_cells(
        &self,
        BulkAccess { who, known }: BulkAccess<'_>,
        cells: std::ops::Range<usize>,
        writes: bool,
    ) -> Result<(), Conflict> {
        let warps = self.clocks.len() as u32;
        let own = self.first_warp + who.warp;
        for cell in cells {
            let conflict = |earlier, earlier_read, unfenced| {
                let missing = if unfenced { Missing::ProxyFence } else { known.seen.missing(earlier) };
                Err(Conflict { byte: self.byte_of(cell), earlier, earlier_read, lane: who.lane & 31, missing })
            };
            let write = self.writes.get(cell).copied().unwrap_or_default();
            let seen = known.seen.covers(write);
            let is_own = write.warp() == own;
            // What bulk copies wrote is in their own proxy.
            let is_async = write.warp() >= warps;
            if write.is_in_flight() || is_async && !seen {
                return conflict(write, false, false);
            }
            // An access of one lane is no more in order with other lanes of its warp than with other warps.
            let by_other_lane = |epoch: Epoch| {
                who.lane < 64 && !epoch.is_together() && epoch.lane() != Some(who.lane) && !known.seen.covers(epoch)
            };
            if !is_async && !known.fenced.covers(write) {
                let ordered = seen || is_own && self.is_before(write, known, own) && !by_other_lane(write);
                return conflict(write, false, ordered);
            }
            if !is_async && is_own && by_other_lane(write) {
                return conflict(write, false, false);
            }
            if writes {
                let late = |read: &Epoch| match read.warp() == own {
                    true => by_other_lane(*read),
                    false => !known.seen.covers(*read),
                };
                let single = || self.reads.iter().skip(cell).step_by(self.cells).copied();
                if let Some(read) = single().chain(self.rows_over(cell)).find(late) {
                    return conflict(read, true, false);
                }
            }
        }
        Ok(())
    }

    /// Whether a warp did something before it took this snapshot: snapshots move its clock on.
    fn is_before(&self, epoch: Epoch, known: &Knowledge, own: u32) -> bool {
        epoch.time() <= known.issued.max(known.seen_of(own))
    }

    /// Notes a warp's bulk read: as under way, or as done.
    pub(crate) fn note_async_read(&mut self, who: Toucher, at: usize, len: usize, under_way: bool) {
        let (component, now) = self.moment(who.warp);
        let epoch = Epoch::new(now, who.pc, component, Epoch::TOGETHER);
        let (lines, whole) = self.bulk_lines(at, len);
        if whole {
            self.note_read_lines(lines, component as usize, epoch, under_way);
        } else if !under_way {
            self.note_rows(who, std::iter::once((Epoch::TOGETHER, at)), len, Touch::Read);
        }
    }

    /// Notes that a warp has issued a product which reads these bytes.
    pub(crate) fn note_product_issue(&mut self, (pc, component): (u32, u32), warp: u32, at: usize, len: usize) {
        let (lines, whole) = self.bulk_lines(at, len);
        if whole {
            let epoch = Epoch::new(self.tick, pc, component, Epoch::TOGETHER);
            self.note_read_lines(lines, self.row_of_products(warp), epoch, true);
        }
    }

    /// Notes that a warp's part of a product has read these bytes, at a tick of the warpgroup's own component.
    pub(crate) fn note_product_read(
        &mut self,
        (pc, component, tick): (u32, u32, u32),
        warp: u32,
        at: usize,
        len: usize,
    ) {
        let epoch = Epoch::new(tick, pc, component, Epoch::TOGETHER);
        let (lines, whole) = self.bulk_lines(at, len);
        if whole {
            self.note_read_lines(lines, self.row_of_products(warp), epoch, false);
            return;
        }
        for line in lines {
            if let Some(line) = self.lines.get_mut(line) {
                line.read = line.read.max(tick);
            }
        }
        let (first, end) = self.range(at, len);
        let row = (self.first_warp + warp) as usize * self.cells;
        if let Some(cells) = self.reads.get_mut(row + first..row + end) {
            cells.fill(epoch);
        }
    }

    fn row_of_products(&self, warp: u32) -> usize {
        self.clocks.len() + (self.first_warp + warp) as usize / 4
    }

    fn note_read_lines(&mut self, lines: std::ops::Range<usize>, row: usize, epoch: Epoch, under_way: bool) {
        let epoch = if under_way { epoch.in_flight() } else { epoch };
        let rows = self.bulk.rows;
        for line in lines {
            let Some(bulk) = self.bulk.lines.get_mut(line) else { continue };
            bulk.touched = true;
            bulk.reading = if under_way { bulk.reading + 1 } else { bulk.reading.saturating_sub(1) };
            if let Some(read) = self.bulk.reads.get_mut(line * rows + row) {
                *read = epoch;
            }
        }
    }

    /// A warp learns what a component did up to a tick.
    pub(crate) fn learn(&mut self, warp: u32, component: u32, tick: u32) {
        if let Some(clock) = self.clocks.get_mut((self.first_warp + warp) as usize) {
            clock.known.see(component, tick);
        }
    }

    /// Notes a bulk write: as under way, or as landed for those who learn of `component` at `tick`.
    pub(crate) fn note_async_write(&mut self, (pc, component): (u32, u32), at: usize, len: usize, landed: Option<u32>) {
        let time = landed.unwrap_or(self.tick);
        let epoch = Epoch::new(time, pc, component, Epoch::TOGETHER);
        let epoch = if landed.is_none() { epoch.in_flight() } else { epoch };
        let (first, end) = self.range(at, len);
        let (lines, _) = self.bulk_lines(at, len);
        for line in lines {
            let cells = first.max(line << LINE_SHIFT)..end.min((line + 1) << LINE_SHIFT);
            if cells.len() == 1 << LINE_SHIFT {
                if let Some(bulk) = self.bulk.lines.get_mut(line) {
                    bulk.touched = true;
                    bulk.write = epoch;
                }
                continue;
            }
            if let Some(plain) = self.lines.get_mut(line) {
                plain.written = plain.written.max(time);
                plain.in_flight =
                    if landed.is_none() { plain.in_flight + 1 } else { plain.in_flight.saturating_sub(1) };
            }
            if let Some(cells) = self.writes.get_mut(cells) {
                cells.fill(epoch);
            }
        }
    }

    /// Whether a warp, or one of its lanes, knows what another thread did.
    pub(crate) fn has_seen(&self, warp: u32, earlier: Epoch) -> bool {
        let own = earlier.warp() == self.first_warp + warp;
        own || self.clock(warp).is_none_or(|clock| {
            let apart = || clock.apart.as_ref().is_some_and(|apart| apart.known.seen.covers(earlier));
            clock.known.seen.covers(earlier) || apart()
        })
    }

    /// A thread's place and time.
    pub(crate) fn moment_of(&self, who: Toucher) -> Epoch {
        let (component, now) = self.moment(who.warp);
        Epoch::new(now, who.pc, component, who.lane)
    }

    /// A warp as a component of the clocks, and its time.
    pub(crate) fn moment(&self, warp: u32) -> (u32, u32) {
        (self.first_warp + warp, self.clock(warp).map_or(0, |clock| clock.now))
    }

    /// A tick of its own for something that no warp does.
    pub(crate) fn next_tick(&mut self) -> u32 {
        self.tick += 1;
        self.tick
    }

    /// Makes bytes an mbarrier: from now on every ordinary access to them is a conflict with `pc`.
    pub(crate) fn reserve(&mut self, who: Toucher, at: usize, len: usize) {
        let now = self.clock(who.warp).map_or(0, |clock| clock.now);
        let epoch = Epoch::new(now, who.pc, self.first_warp + who.warp, who.lane).in_flight();
        let (first, end) = self.range(at, len);
        if let Some(cells) = self.writes.get_mut(first..end) {
            cells.fill(epoch);
        }
        if let Some(line) = self.lines.get_mut(first >> LINE_SHIFT) {
            line.written = now;
            line.in_flight += 1;
        }
    }
}
