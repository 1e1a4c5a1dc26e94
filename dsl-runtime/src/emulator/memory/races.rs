//! Races in shared memory, by happens-before.
//!
//! The scheduler runs one warp at a time, so one counter of ticks per block orders all synchronisation.
//! A warp's clock advances when it releases what it did (a barrier, a warp sync, an atomic with release
//! ordering); `seen[x]` is the latest tick of warp x that is ordered before this warp. Each cell knows its
//! last write, and for each warp the last read. An access races with an earlier one that it has not
//! seen, unless both are the same thread's.
//!
//! Cells are as large as the smallest access of the kernel, up to four bytes: neighbours never share one.

use std::collections::HashMap;

use super::epoch::{Epoch, untouched};
use crate::emulator::op::Pc;

/// Cells of a line, which summarises them: an old line needs no look at its cells.
const LINE_SHIFT: usize = 5;

/// The latest ticks in a line, and how many copies to it are under way.
#[derive(Clone, Copy, Default)]
struct Line {
    written: u32,
    read: u32,
    in_flight: u32,
}

/// What a warp knows.
#[derive(Clone, Default)]
struct Clock {
    now: u32,
    /// The smallest of `seen`.
    floor: u32,
    seen: Vec<u32>,
}

impl Clock {
    fn join(&mut self, other: &[u32]) {
        for (mine, theirs) in self.seen.iter_mut().zip(other) {
            *mine = (*mine).max(*theirs);
        }
        self.floor = self.seen.iter().copied().min().unwrap_or(0);
    }
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
}

/// One lane's part of an access, or a whole warp's.
#[derive(Clone, Copy)]
pub(crate) struct Toucher {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) pc: Pc,
}

/// The shadow of one block's shared memory.
pub(crate) struct SharedRaces {
    shift: u32,
    /// Lanes of a wave run in lockstep and need no sync among themselves.
    lockstep: bool,
    cells: usize,
    writes: Box<[Epoch]>,
    /// Of each warp, one row.
    reads: Box<[Epoch]>,
    /// The same for read-modify-writes; empty for kernels without. They are kept apart so that they do
    /// not hide a plain write.
    atomics: Box<[Epoch]>,
    lines: Vec<Line>,
    tick: u32,
    clocks: Vec<Clock>,
    /// What the arrivals at each named barrier released.
    named: HashMap<u32, Vec<u32>>,
    /// What atomics released, by the cell they release to.
    released: HashMap<usize, Vec<u32>>,
}

impl SharedRaces {
    pub(crate) fn new(bytes: usize, shift: u32, warps: usize, lockstep: bool, has_atomics: bool) -> Self {
        let cells = bytes.max(1).div_ceil(1 << shift).next_multiple_of(1 << LINE_SHIFT);
        Self {
            shift,
            lockstep,
            cells,
            writes: untouched(cells),
            reads: untouched(cells * warps),
            atomics: untouched(if has_atomics { cells * warps } else { 0 }),
            lines: vec![Line::default(); cells >> LINE_SHIFT],
            tick: 0,
            clocks: vec![Clock { seen: vec![0; warps], ..Clock::default() }; warps],
            named: HashMap::new(),
            released: HashMap::new(),
        }
    }

    /// A fresh block: what was done before is seen by all.
    pub(crate) fn start_block(&mut self) {
        if self.tick > u32::MAX / 2 {
            self.writes.fill(Epoch::default());
            self.reads.fill(Epoch::default());
            self.atomics.fill(Epoch::default());
            self.lines.fill(Line::default());
            self.tick = 0;
        }
        for line in &mut self.lines {
            line.in_flight = 0;
        }
        self.named.clear();
        self.released.clear();
        self.barrier();
    }

    /// All warps are at the block's barrier.
    pub(crate) fn barrier(&mut self) {
        let seen = self.tick;
        self.tick += 1;
        for clock in &mut self.clocks {
            clock.seen.fill(seen);
            clock.floor = seen;
            clock.now = self.tick;
        }
    }

    /// The lanes of a warp are ordered among themselves.
    pub(crate) fn warp_sync(&mut self, warp: u32) {
        self.tick += 1;
        let Some(clock) = self.clocks.get_mut(warp as usize) else { return };
        if let Some(own) = clock.seen.get_mut(warp as usize) {
            *own = clock.now;
        }
        clock.now = self.tick;
        clock.floor = clock.seen.iter().copied().min().unwrap_or(0);
    }

    /// A warp arrives at a named barrier and releases what it did.
    pub(crate) fn arrive(&mut self, id: u32, warp: u32) {
        self.warp_sync(warp);
        let Some(clock) = self.clocks.get(warp as usize) else { return };
        let joined = self.named.entry(id).or_insert_with(|| vec![0; clock.seen.len()]);
        joined.iter_mut().zip(&clock.seen).for_each(|(all, mine)| *all = (*all).max(*mine));
    }

    /// A named barrier lets these warps go on.
    pub(crate) fn release(&mut self, id: u32, warps: impl Iterator<Item = usize>) {
        let Some(joined) = self.named.remove(&id) else { return };
        for warp in warps {
            if let Some(clock) = self.clocks.get_mut(warp) {
                clock.join(&joined);
            }
        }
    }

    /// An atomic acquires what others released to its cell, and releases what its warp did.
    pub(crate) fn synchronise(&mut self, warp: u32, byte: usize, acquires: bool, releases: bool) {
        let cell = byte >> self.shift;
        if acquires
            && let (Some(released), Some(clock)) = (self.released.get(&cell), self.clocks.get_mut(warp as usize))
        {
            clock.join(released);
        }
        if releases {
            self.tick += 1;
            let Some(clock) = self.clocks.get_mut(warp as usize) else { return };
            let all = self.released.entry(cell).or_insert_with(|| vec![0; clock.seen.len()]);
            all.iter_mut().zip(&clock.seen).for_each(|(all, mine)| *all = (*all).max(*mine));
            if let Some(own) = all.get_mut(warp as usize) {
                *own = (*own).max(clock.now);
            }
            clock.now = self.tick;
        }
    }

    fn range(&self, at: usize, len: usize) -> (usize, usize) {
        let first = (at >> self.shift).min(self.cells);
        (first, ((at + len + (1 << self.shift) - 1) >> self.shift).clamp(first, self.cells))
    }

    /// Whether the lines of a range hold nothing that the warp has not seen.
    #[inline(always)]
    pub(crate) fn is_old(&self, warp: u32, at: usize, len: usize, touch: Touch) -> bool {
        let (first, end) = self.range(at, len);
        let floor = self.clocks.get(warp as usize).map_or(0, |clock| clock.floor);
        let lines = self.lines.get(first >> LINE_SHIFT..(end + (1 << LINE_SHIFT) - 1) >> LINE_SHIFT);
        let writes = touch != Touch::Read;
        lines.is_some_and(|lines| {
            lines.iter().all(|line| (line.written <= floor) & (line.in_flight == 0) & (!writes | (line.read <= floor)))
        })
    }

    /// Finds the first earlier access that a lane's access races with.
    pub(crate) fn check(&self, who: Toucher, at: usize, len: usize, touch: Touch) -> Result<(), Conflict> {
        if touch == Touch::CopyEnd || self.is_old(who.warp, at, len, touch) {
            return Ok(());
        }
        let Some(clock) = self.clocks.get(who.warp as usize) else { return Ok(()) };
        let (first, end) = self.range(at, len);
        let ordered = |earlier: Epoch| {
            let seen = clock.seen.get(earlier.warp() as usize).copied().unwrap_or(u32::MAX);
            let same_lane = earlier.lane() == Some(who.lane) || earlier.is_together();
            let own = earlier.warp() == who.warp && (self.lockstep || same_lane);
            !earlier.is_in_flight() && (earlier.time() <= seen || own)
        };
        for cell in first..end {
            let conflict = |earlier, earlier_read| {
                Err(Conflict { byte: (cell as u64) << self.shift, earlier, earlier_read, lane: who.lane })
            };
            let write = self.writes.get(cell).copied().unwrap_or_default();
            if !ordered(write) {
                return conflict(write, false);
            }
            let of_rows =
                |rows: &[Epoch]| rows.iter().skip(cell).step_by(self.cells).copied().find(|&earlier| !ordered(earlier));
            if touch != Touch::Read
                && let Some(read) = of_rows(&self.reads)
            {
                return conflict(read, true);
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
        let floor = self.clocks.get(warp as usize).map_or(0, |clock| clock.floor);
        let shift = self.shift as usize + LINE_SHIFT;
        let writes = touch != Touch::Read;
        let is_new = |line: usize| {
            self.lines
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

    /// Notes lanes' accesses of `len` bytes each.
    #[inline(always)]
    pub(crate) fn note_rows(
        &mut self,
        who: Toucher,
        rows: impl Iterator<Item = (u32, usize)>,
        len: usize,
        touch: Touch,
    ) {
        let now = self.clocks.get(who.warp as usize).map_or(0, |clock| clock.now);
        let epoch = Epoch::new(now, who.pc, who.warp, 0);
        let row = who.warp as usize * self.cells;
        let (cells, merges, epoch) = match touch {
            Touch::Read => (self.reads.get_mut(row..row + self.cells), true, epoch),
            Touch::Atomic => (self.atomics.get_mut(row..row + self.cells), true, epoch.atomic()),
            Touch::CopyStart => (self.writes.get_mut(..), false, epoch.in_flight()),
            Touch::Write | Touch::CopyEnd => (self.writes.get_mut(..), false, epoch),
        };
        let Some(cells) = cells else { return };
        let line_shift = self.shift as usize + LINE_SHIFT;
        let count = len >> self.shift;
        for (lane, at) in rows {
            for line in at >> line_shift..=(at + len - 1) >> line_shift {
                let Some(line) = self.lines.get_mut(line) else { continue };
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
            let first = at >> self.shift;
            let put = |cell: &mut Epoch| *cell = if merges { merged(*cell, mine) } else { mine };
            // Sixteen bytes are most accesses: without a loop.
            match cells.get_mut(first..first + count) {
                Some([a, b, c, d]) => [a, b, c, d].into_iter().for_each(put),
                Some([a]) => put(a),
                Some(cells) => cells.iter_mut().for_each(put),
                None => {}
            }
        }
    }

    /// Notes an access of all 32 lanes to one range, `len` bytes a lane.
    #[inline(always)]
    pub(crate) fn note_warp(&mut self, who: Toucher, at: usize, len: usize, touch: Touch) {
        let (first, end) = self.range(at, 32 * len);
        let now = self.clocks.get(who.warp as usize).map_or(0, |clock| clock.now);
        let epoch = Epoch::new(now, who.pc, who.warp, who.lane);
        let lines = first >> LINE_SHIFT..(end + (1 << LINE_SHIFT) - 1) >> LINE_SHIFT;
        let Some(lines) = self.lines.get_mut(lines) else { return };
        let row = who.warp as usize * self.cells;
        let per_lane = (end - first) / 32;
        if touch == Touch::Read {
            lines.iter_mut().for_each(|line| line.read = now);
            let Some(cells) = self.reads.get_mut(row + first..row + end) else { return };
            for (lane, cells) in cells.chunks_exact_mut(per_lane.max(1)).enumerate() {
                let mine = Epoch(epoch.0 + lane as u64);
                cells.iter_mut().for_each(|cell| *cell = merged(*cell, mine));
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
        self.writes.get(byte >> self.shift).copied().unwrap_or_default()
    }
}

/// A read beside the last one of the same warp: several lanes at one tick become "many".
#[inline(always)]
fn merged(last: Epoch, new: Epoch) -> Epoch {
    let same_tick = last.0 >> 32 == new.0 >> 32;
    let other_lane = (last.0 ^ new.0) & u64::from(Epoch::MANY) != 0;
    Epoch(new.0 | if same_tick & other_lane { u64::from(Epoch::MANY) } else { 0 })
}
