//! Accesses of a warp on their way to the race shadows.

use super::access::load_part;
use super::matrix_store::Row;
use super::warp::{BlockMemory, FaultKind};
use crate::emulator::lanes::{LANES, Reg, Registers, half_of};
use crate::emulator::memory::{
    BlockConflict, Bytes, Conflict, Epoch, GlobalMemory, Memory, Missing, SharedMemory, SharedRaces, Touch, Toucher,
};
use crate::emulator::op::{Access, AtomicOp, MatrixLoadOp};

/// Who accesses: a warp at an operation.
#[derive(Clone, Copy)]
pub(crate) struct Visitor {
    pub(crate) warp: u32,
    pub(crate) pc: u32,
}

impl Visitor {
    fn lane(self, lane: usize, half: u8) -> Toucher {
        Toucher { warp: self.warp, pc: self.pc, lane: lane as u32 + 32 * u32::from(half) }
    }
}

/// The lanes of a mask.
#[inline(always)]
pub(crate) fn active_lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

/// Tests and notes a load or a store of shared memory whose ranges have been checked. For a store this
/// comes before the bytes change: two writes of one value do no harm.
#[inline(always)]
pub(crate) fn shared(
    races: &mut SharedRaces,
    memory: &SharedMemory,
    regs: &Registers<'_>,
    (value, address): (Reg, Reg),
    active: u64,
    access: &Access,
    (visitor, touch): (Visitor, Touch),
) -> Result<(), Conflict> {
    let lanes = half_of(active, access.half);
    let addresses = regs.read::<u32>(address);
    let len = access.bytes as usize;
    if lanes == u32::MAX && SharedMemory::contiguous(&addresses, access.bytes) {
        let at = addresses[0] as usize;
        if races.is_old(visitor.warp, at, LANES * len, touch) {
            races.note_warp(visitor.lane(0, access.half), at, len, touch);
            return Ok(());
        }
    }
    shared_lanes(races, memory, regs, (value, &addresses), lanes, access, (visitor, touch))
}

#[inline(never)]
fn shared_lanes(
    races: &mut SharedRaces,
    memory: &SharedMemory,
    regs: &Registers<'_>,
    (value, addresses): (Reg, &[u32; LANES]),
    lanes: u32,
    access: &Access,
    (visitor, touch): (Visitor, Touch),
) -> Result<(), Conflict> {
    let len = access.bytes as usize;
    let active = || active_lanes(lanes);
    let in_wave = |lane: usize| (lane as u32 + 32 * u32::from(access.half), addresses[lane] as usize);
    if !races.are_old(visitor.warp, active().map(|lane| addresses[lane] as usize), len, touch)
        && !races.are_own(visitor.warp, active().map(in_wave), len, touch)
    {
        for lane in active() {
            let (who, at) = (visitor.lane(lane, access.half), addresses[lane] as usize);
            if let Err(conflict) = races.check(who, at, len, touch) {
                let harmless = touch == Touch::Write
                    && !conflict.earlier_read
                    && !conflict.earlier.is_in_flight()
                    && holds(memory, regs, value, lane, at, access);
                if !harmless {
                    return Err(conflict);
                }
            }
        }
    }
    races.note_rows(visitor.lane(0, 0), active().map(in_wave), len, touch);
    if touch == Touch::Write {
        // Lanes of one instruction that write one place.
        for lane in active() {
            let at = addresses[lane] as usize;
            let who = visitor.lane(lane, access.half);
            let last = races.last_write(at);
            let other = last.lane().filter(|&other| other != who.lane).map(|other| other as usize & 31);
            if let Some(other) = other
                && !(addresses[other] == addresses[lane] && same_value(regs, value, lane, other, access))
            {
                return Err(Conflict {
                    byte: at as u64,
                    earlier: last,
                    earlier_read: false,
                    lane: who.lane,
                    missing: Missing::Barrier,
                });
            }
        }
    }
    Ok(())
}

/// Words of a lane's value in the order of its bytes.
pub(crate) fn word(regs: &Registers<'_>, value: Reg, lane: usize, index: u32, access: &Access) -> u32 {
    if access.unit == 8 {
        let pair = regs.lane::<u64>(value + index / 2 * 2, lane);
        (pair >> (32 * (index % 2))) as u32
    } else {
        regs.lane::<u32>(value + index, lane)
    }
}

fn significant(access: &Access, index: u32) -> u32 {
    let bytes = (access.bytes - 4 * index).min(4);
    u32::MAX >> (32 - 8 * bytes)
}

/// Whether memory holds a lane's value already.
fn holds(memory: &SharedMemory, regs: &Registers<'_>, value: Reg, lane: usize, at: usize, access: &Access) -> bool {
    at + access.bytes as usize <= memory.len()
        && (0..access.slots()).all(|index| {
            let count = (access.bytes - 4 * index).min(4) as usize;
            // SAFETY: the range lies inside the memory.
            let there = unsafe { load_part(memory, at + 4 * index as usize, count) };
            (word(regs, value, lane, index, access) ^ there) & significant(access, index) == 0
        })
}

fn same_value(regs: &Registers<'_>, value: Reg, lane: usize, other: usize, access: &Access) -> bool {
    (0..access.slots()).all(|index| {
        let differs = word(regs, value, lane, index, access) ^ word(regs, value, other, index, access);
        differs & significant(access, index) == 0
    })
}

/// A read-modify-write of shared memory. Beside a fence a relaxed one orders as well.
#[inline(never)]
pub(crate) fn atomic(
    races: &mut SharedRaces,
    regs: &Registers<'_>,
    (op, fenced): (&AtomicOp, bool),
    active: u64,
    access: &Access,
    visitor: Visitor,
) -> Result<(), Conflict> {
    let (lanes, addresses) = (half_of(active, access.half), regs.read::<u32>(op.address));
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
        let (who, at) = (visitor.lane(lane, access.half), addresses[lane] as usize);
        races.synchronise(who, at, op.acquires || fenced, false);
        races.check(who, at, access.bytes as usize, Touch::Atomic)?;
        races.note_rows(who, std::iter::once((who.lane, at)), access.bytes as usize, Touch::Atomic);
        races.synchronise(who, at, false, op.releases || fenced);
    }
    Ok(())
}

/// `ldmatrix`: rows are read for several lanes.
#[inline(always)]
pub(crate) fn matrix(
    races: &mut SharedRaces,
    regs: &Registers<'_>,
    op: &MatrixLoadOp,
    visitor: Visitor,
) -> Result<(), Conflict> {
    let addresses = regs.read::<u32>(op.address);
    let rows = || addresses.iter().take(8 * usize::from(op.count)).map(|&address| address as usize);
    let who = Toucher { warp: visitor.warp, pc: visitor.pc, lane: Epoch::TOGETHER };
    if !races.are_old(who.warp, rows(), 16, Touch::Read) {
        for (lane, at) in rows().enumerate() {
            races.check(who, at, 16, Touch::Read).map_err(|conflict| Conflict { lane: lane as u32, ..conflict })?;
        }
    }
    races.note_together(who, rows());
    Ok(())
}

/// `stmatrix`: a lane writes the row that it names. The shadow is asked while the old bytes are still there.
#[inline(never)]
pub(crate) fn matrix_store(
    races: &mut SharedRaces,
    memory: &SharedMemory,
    rows: &[Row],
    visitor: Visitor,
) -> Result<(), Conflict> {
    const BYTES: usize = 16;
    let who = |row: &Row| visitor.lane(row.lane as usize, 0);
    for row in rows {
        if let Err(conflict) = races.check(who(row), row.at, BYTES, Touch::Write) {
            // SAFETY: the range was checked when the rows were gathered.
            let there: [u32; 4] = unsafe { memory.load_words(row.at) };
            if there != row.words || conflict.earlier_read || conflict.earlier.is_in_flight() {
                return Err(conflict);
            }
        }
    }
    races.note_rows(visitor.lane(0, 0), rows.iter().map(|row| (row.lane, row.at)), BYTES, Touch::Write);
    // Two rows of one instruction in one place.
    for row in rows {
        let last = races.last_write(row.at);
        let other = last.lane().and_then(|lane| rows.iter().find(|other| other.lane == lane));
        if other.is_some_and(|other| other.lane != row.lane && other.at == row.at && other.words != row.words) {
            let (byte, lane) = (row.at as u64, row.lane);
            return Err(Conflict { byte, earlier: last, earlier_read: false, lane, missing: Missing::Barrier });
        }
    }
    Ok(())
}

/// Tests and notes an access to global memory for races between blocks, and between threads of the block.
#[inline(always)]
pub(crate) fn global(
    block: &BlockMemory<'_>,
    regs: &Registers<'_>,
    address: Reg,
    active: u64,
    (number, access): (u32, &Access),
    (visitor, is_write): (Visitor, bool),
) -> Result<(), (u32, FaultKind)> {
    let lanes = half_of(active, access.half);
    if lanes == 0 {
        return Ok(());
    }
    let first = regs.lane::<u64>(address, lanes.trailing_zeros() as usize);
    // All lanes use one buffer, but for pointers that are chosen lane by lane.
    let region = block.global.region(first).0;
    if region.is_mixed {
        global_threads(block, regs, address, lanes, (number, access), (visitor, is_write))?;
    }
    if region.races.is_none() {
        return Ok(());
    }
    let how = (visitor, block.time, is_write);
    global_lanes(&block.global, regs, address, lanes, access, how).map_err(|(lane, conflict)| {
        let address = regs.lane::<u64>(address, lane as usize % 32);
        (lane, FaultKind::BlockRace { conflict, address, access: number, is_write })
    })
}

#[inline(never)]
fn global_threads(
    block: &BlockMemory<'_>,
    regs: &Registers<'_>,
    address: Reg,
    lanes: u32,
    (number, access): (u32, &Access),
    (visitor, is_write): (Visitor, bool),
) -> Result<(), (u32, FaultKind)> {
    let (Some(races), Some(threads)) = (block.races, block.threads) else { return Ok(()) };
    let (mut races, mut threads) = (races.borrow_mut(), threads.borrow_mut());
    let addresses = regs.read::<u64>(address);
    let touched = active_lanes(lanes).filter(|&lane| block.global.region(addresses[lane]).0.is_mixed);
    let touched = touched.map(|lane| (visitor.lane(lane, access.half), addresses[lane]));
    threads.touch(&races, block.rank, touched, (access.bytes as usize, is_write)).map_err(|(conflict, address)| {
        (conflict.lane, FaultKind::ThreadRace { conflict, address, access: number, is_write })
    })?;
    races.touched_elsewhere(visitor.warp, u64::from(lanes) << (32 * u32::from(access.half)));
    Ok(())
}

/// Tests and notes a read-modify-write of global memory for races with plain accesses of other blocks. `ordered` says
/// whether the block has executed one before.
#[inline(never)]
pub(crate) fn global_atomic(
    memory: &GlobalMemory<'_>,
    regs: &Registers<'_>,
    op: &AtomicOp,
    active: u64,
    access: &Access,
    (visitor, time, ordered): (Visitor, u32, bool),
) -> Result<(), (u32, BlockConflict)> {
    let (lanes, addresses) = (half_of(active, access.half), regs.read::<u64>(op.address));
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
        let (region, offset) = memory.region(addresses[lane]);
        let Some(races) = &region.races else { continue };
        let lane = lane as u32 + 32 * u32::from(access.half);
        let mine = Epoch::new(time, visitor.pc, visitor.warp, lane);
        if let Some(conflict) = races.touch_atomic(mine, offset as usize, access.bytes as usize, ordered) {
            return Err((lane, conflict));
        }
    }
    Ok(())
}

#[inline(never)]
fn global_lanes(
    memory: &GlobalMemory<'_>,
    regs: &Registers<'_>,
    address: Reg,
    lanes: u32,
    access: &Access,
    (visitor, time, is_write): (Visitor, u32, bool),
) -> Result<(), (u32, BlockConflict)> {
    let addresses = regs.read::<u64>(address);
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
        let (region, offset) = memory.region(addresses[lane]);
        let Some(races) = &region.races else { continue };
        let lane = lane as u32 + 32 * u32::from(access.half);
        let mine = Epoch::new(time, visitor.pc, visitor.warp, lane);
        if let Some(conflict) = races.touch(mine, offset as usize, access.bytes as usize, is_write) {
            return Err((lane, conflict));
        }
    }
    Ok(())
}
