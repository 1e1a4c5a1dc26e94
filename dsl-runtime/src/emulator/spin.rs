//! Loops on memory that nobody is left to write.
//!
//! Where all warps of a cluster wait, have ended, or go round in loops whose conditions read shared memory, only those
//! loops can change anything. Once all that they see is as it was, nothing ever will.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::asynchronous::op::AsyncOp;
use super::exec::warp::{BlockMemory, Warp};
use super::op::{Op, Pc};
use super::program::Program;

/// How often everything must have been the same, before a loop is taken not to end.
const SEEN: u32 = 3;

/// What a cluster was like when nothing but its loops on memory ran.
#[derive(Default)]
pub(crate) struct Standstill {
    rounds: u32,
    /// The state at the last round whose number is a power of two, and how often it has been seen.
    state: u64,
    seen: u32,
}

impl Standstill {
    /// Whether the loops that these warps are in cannot end: called each time that none but they can run.
    pub(crate) fn lasts_for_ever(
        &mut self,
        program: &Program,
        spinning: &[usize],
        warps: &[Warp],
        memories: &[BlockMemory<'_>],
    ) -> bool {
        if !spinning.iter().filter_map(|&index| warps.get(index)).all(|warp| sees_shared_memory_alone(program, warp.pc))
        {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        for warp in warps {
            (warp.pc, warp.mask, &warp.masks).hash(&mut hasher);
            warp.slots.iter().for_each(|slot| slot.0.hash(&mut hasher));
        }
        memories.iter().for_each(|memory| memory.shared.words().for_each(|word| hasher.write_u32(word)));
        let now = hasher.finish();
        self.rounds = self.rounds.saturating_add(1);
        if self.seen > 0 && now == self.state {
            self.seen += 1;
        } else if self.rounds.is_power_of_two() {
            (self.state, self.seen) = (now, 1);
        }
        self.seen >= SEEN
    }
}

/// The last operation of the loop that begins there.
pub(crate) fn end_of_loop(program: &Program, first: Pc) -> Option<Pc> {
    let ops = program.ops.iter().enumerate().skip(first as usize);
    ops.map(|(pc, op)| (pc as Pc, op))
        .find(|(_, op)| matches!(op, Op::Repeat { body, .. } if *body == first))
        .map(|(pc, _)| pc)
}

/// Whether a loop neither looks at what other blocks may write nor does anything that warps may wait for.
fn sees_shared_memory_alone(program: &Program, first: Pc) -> bool {
    let Some(last) = end_of_loop(program, first) else { return false };
    let body = program.ops.get(first as usize..last as usize).unwrap_or_default();
    body.iter().all(|op| match op {
        Op::Async { table } => matches!(program.asynchronous.get(*table as usize), Some(AsyncOp::Peer(_))),
        Op::LoadGlobal { .. } | Op::CopyAsync { .. } | Op::Barrier | Op::NamedSync { .. } | Op::NamedArrive { .. } => {
            false
        }
        Op::Atomic { table } => program.atomics.get(*table as usize).is_some_and(|atomic| atomic.shared),
        _ => true,
    })
}
