//! The scheduler of a cluster of blocks, mostly of one: one warp at a time runs until it stops; a seeded choice
//! picks the next. Warps in loops on memory stop now and then, and go on when all others have stopped. Copies land when no
//! warp can run.

use super::asynchronous::mbarrier::Mbarrier;
use super::asynchronous::state::{LandFault, LateFault, Wait};
use super::exact::Follower;
use super::exec::interpret::{Interpreter, interpret_followed};
use super::exec::warp::{BlockMemory, Fault, Stop, Warp};
use super::op::Pc;
use super::program::Program;
use super::spin::{Standstill, end_of_loop};

/// Where a warp stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ready,
    /// At the block's barrier.
    Barrier,
    /// At a named barrier.
    Named(u32),
    /// Waits for something else.
    Waiting(Wait),
    /// In a loop on shared memory that nobody will write.
    Spins,
    Done,
}

/// Position of a warp when its cluster came to a stop.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub(crate) status: Status,
    /// The operation it stands at; the end for a warp that is done.
    pub(crate) pc: Pc,
    /// The block in its cluster, and the warp in its block.
    pub(crate) rank: u32,
    pub(crate) warp: u32,
    /// State of the barrier it waits at.
    pub(crate) named: NamedBarrier,
    pub(crate) mbarrier: Option<Box<Mbarrier>>,
    /// Registers of a thread that it has, and those of all warps together.
    pub(crate) registers: (u32, u32),
}

/// State of a named barrier.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NamedBarrier {
    pub(crate) arrived: u32,
    pub(crate) expected: u32,
}

/// Why a block did not end.
#[derive(Debug)]
pub(crate) enum BlockFailure {
    /// A warp broke a rule.
    Fault { warp: u32, fault: Box<Fault> },
    /// No warp can run.
    Stuck { positions: Vec<Position> },
    /// A named barrier was reached with another count, or by too many threads.
    NamedMismatch { warp: u32, pc: Pc, id: u32, threads: u32, barrier: NamedBarrier },
    /// A rule that shows when no warp runs.
    Late(LateFault),
}

/// The block of a cluster that failed.
#[derive(Debug)]
pub(crate) struct ClusterFailure {
    pub(crate) rank: u32,
    pub(crate) failure: BlockFailure,
}

/// A small generator of well-mixed numbers (Steele, Lea, Flood: SplitMix64).
pub(crate) struct SplitMix(pub(crate) u64);

impl SplitMix {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// The barriers of one block.
#[derive(Default)]
struct Barriers {
    named: [NamedBarrier; 16],
    /// Warps at the block's barrier.
    at_barrier: usize,
}

/// The warps of a cluster while they run.
struct Scheduler<'a, 'm> {
    program: &'a Program,
    /// Warps of a block.
    warps: usize,
    memories: &'a [BlockMemory<'m>],
    status: Vec<Status>,
    ready: Vec<usize>,
    /// Warps in loops on memory, which run again when no other can.
    spinning: Vec<usize>,
    barriers: Vec<Barriers>,
}

/// Runs all warps of a cluster to their end: those of its first block, then those of the next.
pub(crate) fn run_cluster(
    program: &Program,
    interpreter: Interpreter,
    warps: &mut [Warp],
    memories: &[BlockMemory<'_>],
    random: &mut SplitMix,
) -> Result<(), Box<ClusterFailure>> {
    let mut scheduler = Scheduler {
        program,
        warps: (program.warps() as usize).max(1),
        memories,
        status: vec![Status::Ready; warps.len()],
        ready: (0..warps.len()).collect(),
        spinning: Vec::new(),
        barriers: memories.iter().map(|_| Barriers::default()).collect(),
    };
    let mut standstill = Standstill::default();
    loop {
        while !scheduler.ready.is_empty() {
            let count = scheduler.ready.len();
            let choice = if count == 1 { 0 } else { random.next() as usize % count };
            let index = scheduler.ready.swap_remove(choice);
            if let Some(warp) = warps.get_mut(index) {
                scheduler.run(interpreter, warp, index)?;
            }
        }
        if scheduler.status.iter().all(|&status| status == Status::Done) {
            return scheduler.end();
        }
        let landed = scheduler.land(random)?;
        let spinning = std::mem::take(&mut scheduler.spinning);
        if landed {
            standstill = Standstill::default();
        } else if spinning.is_empty() || standstill.lasts_for_ever(program, &spinning, warps, memories) {
            for &index in &spinning {
                if let Some(status) = scheduler.status.get_mut(index) {
                    *status = Status::Spins;
                }
            }
            return Err(scheduler.stuck(warps));
        }
        scheduler.ready.extend(spinning);
    }
}

impl Scheduler<'_, '_> {
    fn fail<T>(rank: usize, failure: BlockFailure) -> Result<T, Box<ClusterFailure>> {
        Err(Box::new(ClusterFailure { rank: rank as u32, failure }))
    }

    /// Runs one warp until it stops.
    fn run(&mut self, interpreter: Interpreter, warp: &mut Warp, index: usize) -> Result<(), Box<ClusterFailure>> {
        let (program, rank) = (self.program, index / self.warps);
        let Some(memory) = self.memories.get(rank) else { return Ok(()) };
        let number = warp.index;
        if let Some(state) = memory.asynchronous
            && let Err(fault) = state.borrow_mut().land_some()
        {
            return Self::landing_failed(*fault);
        }
        if let Some(races) = memory.races.filter(|_| self.memories.len() > 1) {
            races.borrow_mut().enter(rank as u32);
        }
        let arrive = |id| {
            if let Some(races) = memory.races {
                races.borrow_mut().arrive(id, number);
            }
        };
        let mut stop = if warp.follower.is_some() {
            interpret_followed(program, warp, memory)
        } else {
            interpreter(program, warp, memory)
        };
        if matches!(stop, Stop::Wraps) {
            warp.follower = Some(Box::new(Follower::new(program, number)));
            stop = interpret_followed(program, warp, memory);
        }
        let Some(barriers) = self.barriers.get_mut(rank) else { return Ok(()) };
        let next = match stop {
            Stop::Done => Status::Done,
            Stop::Barrier => {
                barriers.at_barrier += 1;
                Status::Barrier
            }
            Stop::NamedSync { id, threads } => {
                named(barriers, warp, program, id, threads).or_else(|failure| Self::fail(rank, failure))?;
                arrive(id);
                Status::Named(id)
            }
            Stop::NamedArrive { id, threads } => {
                named(barriers, warp, program, id, threads).or_else(|failure| Self::fail(rank, failure))?;
                arrive(id);
                self.release(rank, id);
                Status::Ready
            }
            Stop::Wait(wait) => Status::Waiting(wait),
            Stop::Spins => {
                self.spinning.push(index);
                self.wake();
                return Ok(());
            }
            Stop::Wraps => Status::Ready,
            Stop::Fault(fault) => return Self::fail(rank, BlockFailure::Fault { warp: number, fault }),
        };
        if let Some(slot) = self.status.get_mut(index) {
            *slot = next;
        }
        match next {
            Status::Ready => self.ready.push(index),
            Status::Named(id) => self.release(rank, id),
            Status::Barrier => self.release_block(rank),
            Status::Waiting(_) | Status::Spins | Status::Done => {}
        }
        self.wake();
        Ok(())
    }

    /// Lets the warps at the block's barrier go on when all are there.
    fn release_block(&mut self, rank: usize) {
        let (Some(barriers), Some(memory)) = (self.barriers.get_mut(rank), self.memories.get(rank)) else { return };
        if barriers.at_barrier < self.warps {
            return;
        }
        barriers.at_barrier = 0;
        if let Some(races) = memory.races {
            races.borrow_mut().barrier();
        }
        let block = rank * self.warps..(rank + 1) * self.warps;
        if let Some(status) = self.status.get_mut(block.clone()) {
            status.fill(Status::Ready);
        }
        self.ready.extend(block);
    }

    /// Wakes the warps of a named barrier that is complete.
    fn release(&mut self, rank: usize, id: u32) {
        let (Some(barriers), Some(memory)) = (self.barriers.get_mut(rank), self.memories.get(rank)) else { return };
        let Some(barrier) = barriers.named.get_mut(id as usize) else { return };
        if barrier.arrived == 0 || barrier.arrived < barrier.expected {
            return;
        }
        *barrier = NamedBarrier::default();
        let first = rank * self.warps;
        let Some(status) = self.status.get_mut(first..first + self.warps) else { return };
        if let Some(races) = memory.races {
            let waiting = status.iter().enumerate().filter(|(_, status)| **status == Status::Named(id));
            races.borrow_mut().release(id, waiting.map(|(index, _)| index));
        }
        for (index, slot) in status.iter_mut().enumerate() {
            if *slot == Status::Named(id) {
                *slot = Status::Ready;
                self.ready.push(first + index);
            }
        }
    }

    /// Lets waiting warps try again when something happened that they may wait for.
    fn wake(&mut self) {
        let Some(state) = self.memories.first().and_then(|memory| memory.asynchronous) else { return };
        if !std::mem::take(&mut state.borrow_mut().woken) {
            return;
        }
        for (index, status) in self.status.iter_mut().enumerate() {
            if matches!(status, Status::Waiting(_)) {
                *status = Status::Ready;
                self.ready.push(index);
            }
        }
    }

    /// Lands one copy that a warp waits for; false when there is none.
    fn land(&mut self, random: &mut SplitMix) -> Result<bool, Box<ClusterFailure>> {
        let Some(state) = self.memories.first().and_then(|memory| memory.asynchronous) else { return Ok(false) };
        let (status, warps) = (&self.status, self.warps);
        let is_awaited = |rank: u32, barrier: u32| {
            let block = rank as usize * warps..(rank as usize + 1) * warps;
            let waits = |status: &Status| matches!(status, Status::Waiting(Wait::Mbarrier { address, .. }) if *address == barrier);
            status.get(block).is_some_and(|block| block.iter().any(waits))
        };
        let landed = state.borrow_mut().land_one(is_awaited, |count| random.next() as usize % count);
        match landed {
            Ok(landed) => {
                self.wake();
                Ok(landed)
            }
            Err(fault) => Self::landing_failed(*fault),
        }
    }

    fn landing_failed<T>(fault: LandFault) -> Result<T, Box<ClusterFailure>> {
        match fault {
            LandFault::Late(fault) => Self::fail(fault.rank as usize, BlockFailure::Late(fault)),
            LandFault::Broken { rank, warp, lane, pc, kind } => {
                let fault = Box::new(Fault { pc, lane, kind });
                Self::fail(rank as usize, BlockFailure::Fault { warp, fault })
            }
        }
    }

    /// All warps have ended: nothing may be left over.
    fn end(&self) -> Result<(), Box<ClusterFailure>> {
        let Some(memory) = self.memories.first().filter(|memory| memory.checks.copies) else { return Ok(()) };
        match memory.asynchronous.and_then(|state| state.borrow().leftovers()) {
            Some(fault) => Self::fail(fault.rank as usize, BlockFailure::Late(fault)),
            None => Ok(()),
        }
    }

    fn stuck(&self, warps: &[Warp]) -> Box<ClusterFailure> {
        let positions: Vec<Position> = self
            .status
            .iter()
            .zip(warps)
            .enumerate()
            .map(|(index, (&status, warp))| {
                let rank = index / self.warps;
                // A warp at a barrier is past it; one that tries again is at the operation.
                let pc = match status {
                    Status::Done | Status::Waiting(_) => warp.pc,
                    Status::Spins => end_of_loop(self.program, warp.pc).unwrap_or(warp.pc),
                    _ => warp.pc.saturating_sub(1),
                };
                let state = self.memories.get(rank).and_then(|memory| memory.asynchronous);
                let block = |read: &dyn Fn(&super::asynchronous::state::BlockState) -> (u32, u32)| {
                    state.and_then(|state| state.borrow().blocks.get(rank).map(read)).unwrap_or_default()
                };
                let registers = block(&|block| {
                    let own = block.registers.get(warp.index as usize).copied().unwrap_or(0);
                    (own, block.registers.iter().sum::<u32>() + block.free_registers)
                });
                let mbarrier = match status {
                    Status::Waiting(Wait::Mbarrier { address, .. }) => {
                        state.and_then(|state| state.borrow_mut().barrier(rank as u32, address).cloned())
                    }
                    _ => None,
                };
                let named = match status {
                    Status::Named(id) => self.barriers.get(rank).and_then(|b| b.named.get(id as usize)).copied(),
                    _ => None,
                };
                Position {
                    status,
                    pc,
                    rank: rank as u32,
                    warp: warp.index,
                    named: named.unwrap_or_default(),
                    mbarrier: mbarrier.map(Box::new),
                    registers,
                }
            })
            .collect();
        let rank = blamed(&positions).map_or(0, |position| position.rank);
        Box::new(ClusterFailure { rank, failure: BlockFailure::Stuck { positions } })
    }
}

/// The warp whose wait says most of why no warp can run: one at an mbarrier at which all have arrived, and whose bytes are
/// not those that were expected; one in a loop on memory; or else the first that waits, for more than that other warps come to
/// where it is.
pub(crate) fn blamed(positions: &[Position]) -> Option<&Position> {
    let lacks_bytes = |position: &&Position| {
        position.mbarrier.as_ref().is_some_and(|barrier| barrier.pending == 0 && barrier.bytes != 0)
    };
    let is_in_loop = |position: &&Position| position.status == Status::Spins;
    let first = |follows: bool| {
        let of_a_warpgroup = |status| matches!(status, Status::Waiting(Wait::Warpgroup));
        let waits = move |status| status != Status::Done && of_a_warpgroup(status) == follows;
        positions.iter().find(move |position| waits(position.status))
    };
    let found = positions.iter().find(lacks_bytes).or_else(|| positions.iter().find(is_in_loop));
    found.or_else(|| first(false)).or_else(|| first(true))
}

/// Counts a warp in at a named barrier.
fn named(barriers: &mut Barriers, warp: &Warp, program: &Program, id: u32, threads: u32) -> Result<(), BlockFailure> {
    let Some(barrier) = barriers.named.get_mut(id as usize) else { return Ok(()) };
    // PTX ISA, barrier: a warp counts as all of its threads.
    let arriving = program.target.warp_size();
    let differs = barrier.arrived > 0 && barrier.expected != threads;
    if differs || barrier.arrived + arriving > threads {
        let pc = warp.pc.saturating_sub(1);
        return Err(BlockFailure::NamedMismatch { warp: warp.index, pc, id, threads, barrier: *barrier });
    }
    barrier.expected = threads;
    barrier.arrived += arriving;
    Ok(())
}
