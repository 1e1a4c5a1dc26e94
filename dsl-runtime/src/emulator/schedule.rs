//! The scheduler of one block: one warp at a time runs until it stops; a seeded choice picks the next.

use super::exec::interpret::Interpreter;
use super::exec::warp::{BlockMemory, Fault, Stop, Warp};
use super::op::Pc;
use super::program::Program;

/// Where a warp stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ready,
    /// At the block's barrier.
    Barrier,
    /// At a named barrier.
    Named(u32),
    Done,
}

/// Position of a warp when its block came to a stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) status: Status,
    /// The operation it stands at; the end for a warp that is done.
    pub(crate) pc: Pc,
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
    Stuck { positions: Vec<Position>, barriers: [NamedBarrier; 16] },
    /// A named barrier was reached with another count, or by too many threads.
    NamedMismatch { warp: u32, pc: Pc, id: u32, threads: u32, barrier: NamedBarrier },
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

/// Runs all warps of a block to their end.
pub(crate) fn run_block(
    program: &Program,
    interpreter: Interpreter,
    warps: &mut [Warp],
    memory: &BlockMemory<'_>,
    random: &mut SplitMix,
) -> Result<(), Box<BlockFailure>> {
    let mut status = vec![Status::Ready; warps.len()];
    let mut ready: Vec<usize> = (0..warps.len()).collect();
    let mut barriers = [NamedBarrier::default(); 16];
    let mut at_barrier = 0;

    while !ready.is_empty() {
        let choice = if ready.len() == 1 { 0 } else { random.next() as usize % ready.len() };
        let index = ready.swap_remove(choice);
        let Some(warp) = warps.get_mut(index) else { continue };
        let arrive = |id| {
            if let Some(races) = memory.races {
                races.borrow_mut().arrive(id, index as u32);
            }
        };
        let next = match interpreter(program, warp, memory) {
            Stop::Done => Status::Done,
            Stop::Barrier => {
                at_barrier += 1;
                Status::Barrier
            }
            Stop::NamedSync { id, threads } => {
                named(&mut barriers, warp, program, id, threads)?;
                arrive(id);
                Status::Named(id)
            }
            Stop::NamedArrive { id, threads } => {
                named(&mut barriers, warp, program, id, threads)?;
                arrive(id);
                release(&mut barriers, id, &mut status, &mut ready, memory);
                Status::Ready
            }
            Stop::Fault(fault) => return Err(Box::new(BlockFailure::Fault { warp: index as u32, fault })),
        };
        if let Some(slot) = status.get_mut(index) {
            *slot = next;
        }
        match next {
            Status::Ready => ready.push(index),
            Status::Named(id) => release(&mut barriers, id, &mut status, &mut ready, memory),
            Status::Barrier if at_barrier == warps.len() => {
                at_barrier = 0;
                if let Some(races) = memory.races {
                    races.borrow_mut().barrier();
                }
                status.fill(Status::Ready);
                ready.extend(0..warps.len());
            }
            Status::Barrier | Status::Done => {}
        }
    }

    if status.iter().all(|&s| s == Status::Done) {
        return Ok(());
    }
    let positions = status
        .iter()
        .zip(warps.iter())
        .map(|(&status, warp)| {
            // A waiting warp's counter is past its barrier.
            let pc = if status == Status::Done { warp.pc } else { warp.pc.saturating_sub(1) };
            Position { status, pc }
        })
        .collect();
    Err(Box::new(BlockFailure::Stuck { positions, barriers }))
}

/// Counts a warp in at a named barrier.
fn named(
    barriers: &mut [NamedBarrier; 16],
    warp: &Warp,
    program: &Program,
    id: u32,
    threads: u32,
) -> Result<(), Box<BlockFailure>> {
    let Some(barrier) = barriers.get_mut(id as usize) else { return Ok(()) };
    // PTX ISA, barrier: a warp counts as all of its threads.
    let arriving = program.target.warp_size();
    let differs = barrier.arrived > 0 && barrier.expected != threads;
    if differs || barrier.arrived + arriving > threads {
        let pc = warp.pc.saturating_sub(1);
        return Err(Box::new(BlockFailure::NamedMismatch { warp: warp.index, pc, id, threads, barrier: *barrier }));
    }
    barrier.expected = threads;
    barrier.arrived += arriving;
    Ok(())
}

/// Wakes the warps of a named barrier that is complete.
fn release(
    barriers: &mut [NamedBarrier; 16],
    id: u32,
    status: &mut [Status],
    ready: &mut Vec<usize>,
    memory: &BlockMemory<'_>,
) {
    let Some(barrier) = barriers.get_mut(id as usize) else { return };
    if barrier.arrived == 0 || barrier.arrived < barrier.expected {
        return;
    }
    *barrier = NamedBarrier::default();
    if let Some(races) = memory.races {
        let waiting = status.iter().enumerate().filter(|(_, status)| **status == Status::Named(id));
        races.borrow_mut().release(id, waiting.map(|(index, _)| index));
    }
    for (index, slot) in status.iter_mut().enumerate() {
        if *slot == Status::Named(id) {
            *slot = Status::Ready;
            ready.push(index);
        }
    }
}
