//! Asynchronous copies from global to shared memory.
//!
//! A copy is checked where it is started. With the scheduler's seed 0 it lands when its group is waited for, no earlier: a
//! kernel that forgets to wait reads bytes that count as unwritten. Other seeds execute some copies earlier, which a GPU may
//! do as well: what is still read where a copy lands shows then.
//!
//! Copies straight to LDS belong to no group: they land at the warp's next barrier.

use super::access::AccessError;
use super::order::active_lanes;
use crate::emulator::lanes::{LANES, Registers, half_of};
use crate::emulator::memory::{
    Bytes, Conflict, GlobalMemory, Memory, Region, SharedMemory, SharedRaces, Touch, Toucher,
};
use crate::emulator::op::{Access, CopyOp, Pc};

/// Copies of one instruction, under way.
struct Pending {
    pc: Pc,
    active: u32,
    valid: u32,
    /// Half of the wave.
    half: u8,
    bytes: u32,
    source: [u64; LANES],
    destination: [u32; LANES],
    /// Whether it has been executed before its wait.
    landed: bool,
}

/// What a warp has started and not waited for.
#[derive(Default)]
pub(crate) struct CopyQueue {
    /// Closed groups, oldest first; the last group is open.
    groups: Vec<Vec<Pending>>,
    open: Vec<Pending>,
    /// Copies straight to LDS, which land at the next barrier.
    lds: Vec<Pending>,
    /// Decides how early copies are executed; 0 for as late as the kernel's waits allow.
    pace: u64,
}

/// Which side of a copy failed.
pub(crate) enum CopyError {
    Source(AccessError),
    Destination(AccessError),
    /// Two lanes name different destinations of a copy that has one.
    NotUniform {
        lane: u32,
        values: [u32; 2],
    },
}

/// Where each lane's bytes go.
pub(crate) fn destinations(regs: &Registers<'_>, op: &CopyOp, active: u64) -> Result<[u32; LANES], CopyError> {
    let own = regs.read::<u32>(op.destination);
    let Some(lds) = op.lds else { return Ok(own) };
    // One address for the wave; that of its first active lane.
    let leader = active.trailing_zeros() as usize % (2 * LANES);
    let first = match leader < LANES {
        true => regs.lane::<u32>(lds.first, leader),
        false => own[leader - LANES],
    };
    let lanes = half_of(active, op.half);
    if let Some(lane) = (0..LANES).find(|&lane| lanes >> lane & 1 == 1 && own[lane] != first) {
        return Err(CopyError::NotUniform { lane: lane as u32 + 32 * u32::from(op.half), values: [first, own[lane]] });
    }
    let start = first.wrapping_add(lds.part).wrapping_add(32 * u32::from(op.half) * lds.pitch);
    Ok(std::array::from_fn(|lane| start.wrapping_add(lane as u32 * lds.pitch)))
}

impl CopyQueue {
    /// Forgets all copies.
    pub(crate) fn clear(&mut self) {
        self.groups.clear();
        self.open.clear();
        self.lds.clear();
    }

    /// Sets how early copies are executed. With 0 all wait for their wait; otherwise some are executed where they are
    /// started, some where their group is closed, and some at the wait, by a sequence that the number starts.
    pub(crate) fn set_pace(&mut self, pace: u64) {
        self.pace = pace;
    }

    /// Whether this is one of the occasions on which a copy is executed early: one in four.
    fn is_early(&mut self) -> bool {
        if self.pace == 0 {
            return false;
        }
        // A linear congruential step (Knuth's constants); its upper bits are well mixed. The state stays odd, never 0.
        self.pace = self.pace.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_406) | 1;
        self.pace >> 62 == 0
    }

    /// Checks both sides and queues the copy.
    pub(crate) fn start(
        &mut self,
        (global, shared): (&GlobalMemory<'_>, &SharedMemory),
        regs: &Registers<'_>,
        op: &CopyOp,
        (to, from): (&Access, &Access),
        active_lanes: u64,
        pc: Pc,
    ) -> Result<(), CopyError> {
        let source = regs.read::<u64>(op.source);
        let destination = destinations(regs, op, active_lanes)?;
        let active = half_of(active_lanes, op.half);
        let valid = active & half_of(regs.mask(op.valid), op.half);
        let len = to.bytes as usize;
        let mut rest = active;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize & 31;
            rest &= rest - 1;
            if valid >> lane & 1 == 1 {
                let (region, offset) = global.region(source[lane]);
                region.check_range(offset, len, from).and_then(|at| region.check_written(at, len)).map_err(
                    |fault| CopyError::Source(AccessError { fault, lane: lane as u32, address: source[lane] }),
                )?;
            }
            let address = destination[lane];
            let at = shared.check_range(u64::from(address), len, to).map_err(|fault| {
                CopyError::Destination(AccessError { fault, lane: lane as u32, address: address.into() })
            })?;
            shared.mark_unwritten(at, len);
        }
        let landed = self.is_early();
        let copy = Pending { pc, active, valid, half: op.half, bytes: to.bytes, source, destination, landed };
        if landed {
            copy.land(global, shared);
        }
        if op.lds.is_some() {
            self.lds.push(copy)
        } else {
            self.open.push(copy)
        }
        Ok(())
    }

    /// Tests and notes the destinations of the copy that was started last.
    pub(crate) fn note_start(&self, races: &mut SharedRaces, warp: u32, op: &CopyOp) -> Result<(), Conflict> {
        let queue = if op.lds.is_some() { &self.lds } else { &self.open };
        queue.last().map_or(Ok(()), |copy| copy.touch(races, warp, Touch::CopyStart))
    }

    /// Whether copies to LDS are under way.
    pub(crate) fn any_to_lds(&self) -> bool {
        !self.lds.is_empty()
    }

    /// A barrier: the copies to LDS land.
    pub(crate) fn barrier(
        &mut self,
        global: &GlobalMemory<'_>,
        shared: &SharedMemory,
        mut races: Option<(&mut SharedRaces, u32)>,
    ) {
        for copy in self.lds.drain(..) {
            copy.finish(global, shared, &mut races);
        }
    }

    /// Closes the open group.
    pub(crate) fn commit(&mut self, global: &GlobalMemory<'_>, shared: &SharedMemory) {
        let mut group = std::mem::take(&mut self.open);
        if !group.is_empty() && self.is_early() {
            for copy in group.iter_mut().filter(|copy| !copy.landed) {
                copy.land(global, shared);
                copy.landed = true;
            }
        }
        self.groups.push(group);
    }

    /// Where the oldest copy that has not landed was started.
    pub(crate) fn first_pending(&self) -> Option<Pc> {
        self.groups.iter().flatten().chain(&self.open).chain(&self.lds).map(|copy| copy.pc).next()
    }

    /// Lands all groups but the newest `keep`; for other threads they are written now, by this warp.
    pub(crate) fn wait(
        &mut self,
        keep: usize,
        global: &GlobalMemory<'_>,
        shared: &SharedMemory,
        mut races: Option<(&mut SharedRaces, u32)>,
    ) {
        let landing = self.groups.len().saturating_sub(keep);
        for copy in self.groups.drain(..landing).flatten() {
            copy.finish(global, shared, &mut races);
        }
    }

    /// Where a copy to this byte of shared memory was started that has not landed.
    pub(crate) fn pending_at(&self, offset: u32) -> Option<Pc> {
        self.groups.iter().flatten().chain(&self.open).chain(&self.lds).find_map(|copy| {
            let hit = (0..LANES)
                .any(|lane| copy.active >> lane & 1 == 1 && offset.wrapping_sub(copy.destination[lane]) < copy.bytes);
            hit.then_some(copy.pc)
        })
    }
}

impl Pending {
    /// Tells the race shadow of the copy's destinations.
    fn touch(&self, races: &mut SharedRaces, warp: u32, touch: Touch) -> Result<(), Conflict> {
        let in_wave = |lane: usize| lane as u32 + 32 * u32::from(self.half);
        let (len, who) = (self.bytes as usize, |lane: usize| Toucher { warp, lane: in_wave(lane), pc: self.pc });
        let active = || active_lanes(self.active);
        let rows = || active().map(|lane| self.destination[lane] as usize);
        let is_new = || !races.are_old(warp, rows(), len, touch);
        if touch == Touch::CopyStart && is_new() && !races.are_own(warp, active().map(in_wave).zip(rows()), len, touch)
        {
            for lane in active() {
                races.check(who(lane), self.destination[lane] as usize, len, touch)?;
            }
        }
        races.note_rows(who(0), active().map(in_wave).zip(rows()), len, touch);
        Ok(())
    }

    /// Lands the copy unless it has; for other threads it is written now, by this warp.
    fn finish(&self, global: &GlobalMemory<'_>, shared: &SharedMemory, races: &mut Option<(&mut SharedRaces, u32)>) {
        if !self.landed {
            self.land(global, shared);
        }
        if let Some((races, warp)) = races {
            self.touch(races, *warp, Touch::CopyEnd).ok();
        }
    }

    fn land(&self, global: &GlobalMemory<'_>, shared: &SharedMemory) {
        let mut rest = self.active;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize & 31;
            rest &= rest - 1;
            let at = self.destination[lane] as usize;
            let valid = self.valid >> lane & 1 == 1;
            let (region, offset) = global.region(self.source[lane]);
            // SAFETY: both ranges and their alignment were checked when the copy was started, and
            // neither memory changes its size during a launch. Without `valid` nothing is read.
            unsafe {
                match (self.bytes, valid) {
                    (16, true) => shared.store_words::<4>(at, region.load_words(offset as usize)),
                    (8, true) => shared.store_words::<2>(at, region.load_words(offset as usize)),
                    (_, true) => shared.store_words::<1>(at, region.load_words(offset as usize)),
                    (16, false) => shared.store_words(at, [0; 4]),
                    (8, false) => shared.store_words(at, [0; 2]),
                    (_, false) => shared.store_words(at, [0]),
                }
            }
            shared.mark_written(at, self.bytes as usize);
        }
    }
}
