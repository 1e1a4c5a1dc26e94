//! Accesses to the shared memory of a block of the cluster, the own one or another.

use super::execute::{Context, Flow, Step, broken};
use super::fault::AsyncFault;
use super::op::PeerOp;
use crate::emulator::exec::access::{AccessError, load, store};
use crate::emulator::exec::atomics::atomic;
use crate::emulator::exec::numbers::nan_stored;
use crate::emulator::exec::order::{self, Visitor};
use crate::emulator::exec::warp::{Action, FaultKind};
use crate::emulator::lanes::LANES;
use crate::emulator::memory::{AccessFault, Conflict, Epoch, SharedMemory, SharedRaces, Touch, Toucher};

impl PeerOp {
    fn touch(&self) -> Touch {
        match self {
            Self::Load { .. } => Touch::Read,
            Self::Store { .. } => Touch::Write,
            Self::Atomic(_) => Touch::Atomic,
        }
    }

    fn action(&self) -> Action {
        match self {
            Self::Load { .. } => Action::Read,
            Self::Store { .. } => Action::Write,
            Self::Atomic(_) => Action::Update,
        }
    }
}

impl Context<'_, '_, '_> {
    /// One access of a warp, block by block.
    #[inline(never)]
    pub(super) fn peer(&mut self, op: &PeerOp) -> Step<Flow> {
        let mut rest = op.mask().map_or(self.mask, |mask| self.mask & self.regs.mask(mask));
        let stored = match op {
            PeerOp::Load { .. } => None,
            PeerOp::Store { value, .. } => Some(*value),
            PeerOp::Atomic(op) => Some(op.value),
        };
        if self.births.any()
            && let Some(value) = stored
            && let Some(found) =
                nan_stored(self.regs, self.births, value, rest, self.program.access(op.access()), self.pc)
        {
            return Err(FaultKind::number(found));
        }
        let ranks = self.regs.read::<u32>(op.rank());
        while rest != 0 {
            let first = rest.trailing_zeros();
            let rank = ranks.get(first as usize).copied().unwrap_or_default();
            let alike = ranks.iter().enumerate().filter(|(_, other)| **other == rank);
            let lanes = rest & alike.fold(0, |lanes, (lane, _)| lanes | 1 << lane);
            rest &= !lanes;
            self.reach_block(rank, lanes)?;
            let Some(shared) = self.state.shared.get(rank as usize) else { continue };
            self.access_block(op, (rank, shared), lanes).map_err(|(lane, kind)| (lane, self.of_block(rank, kind)))?;
        }
        Ok(Flow::Next)
    }

    /// What is wrong with an access to the memory of a block.
    pub(super) fn of_block(&self, rank: u32, kind: FaultKind) -> FaultKind {
        if rank == self.block.rank { kind } else { FaultKind::OfBlock { rank, kind: Box::new(kind) } }
    }

    /// Whether the block is there: it has begun, and will not end before the access, whatever the order of warps.
    fn reach_block(&mut self, rank: u32, lanes: u64) -> Step {
        self.find_block(rank, lanes)?;
        let Some(races) = self.state.races.filter(|_| rank != self.block.rank) else { return Ok(()) };
        let lane = if lanes.is_power_of_two() { lanes.trailing_zeros() } else { Epoch::MANY };
        let moment = races.borrow().moment_of(Toucher { warp: self.warp, lane, pc: self.pc });
        self.state.comes_from_afar(rank, moment, self.pc);
        Ok(())
    }

    /// Whether the block is there now, and has begun whatever the order of warps.
    pub(super) fn find_block(&self, rank: u32, lanes: u64) -> Step {
        let blocks = self.state.blocks.len() as u32;
        let lane = lanes.trailing_zeros();
        if rank >= blocks {
            return Err(broken(lane, AsyncFault::NoSuchRank { rank, blocks }));
        }
        if rank == self.block.rank {
            return Ok(());
        }
        if self.state.blocks.get(rank as usize).is_some_and(|block| block.running == 0) {
            return Err(broken(lane, AsyncFault::BlockEnded { rank }));
        }
        let Some(races) = self.state.races else { return Ok(()) };
        // Atomics on global memory may have told of the block's begin.
        if !self.block.synchronised.get() && !races.borrow().knows_of_block(self.warp, lanes, rank) {
            return Err(broken(lane, AsyncFault::NotBegun { rank }));
        }
        Ok(())
    }

    fn access_block(&mut self, op: &PeerOp, (rank, shared): (u32, &SharedMemory), lanes: u64) -> Step {
        let (access, touch) = (op.access(), op.touch());
        let shape = self.program.access(access);
        let visitor = Visitor { warp: self.warp, pc: self.pc };
        let refused =
            |error: AccessError| (error.lane, FaultKind::Access { error, access, shared: true, action: op.action() });
        let raced = |conflict: Conflict| (conflict.lane, FaultKind::Race { conflict, access, touch });
        match *op {
            PeerOp::Load { d, address, .. } => {
                let ordered = |context: &Self| {
                    context.in_block(rank, |races| {
                        let what = (visitor, touch);
                        order::shared(races, shared, context.regs, (d, address), lanes, shape, what)
                    })
                };
                let result = load(shared, self.regs, d, address, lanes, shape);
                if matches!(result, Err(error) if error.fault == AccessFault::Uninitialized) {
                    // A copy under way, or a write that nothing orders, is the better answer.
                    ordered(self).map_err(raced)?;
                }
                result.map_err(refused)?;
                ordered(self).map_err(raced)
            }
            PeerOp::Store { value, address, .. } => {
                // The shadow is asked while the old bytes are still there; broken bounds come first.
                let ordered = self.in_block(rank, |races| {
                    order::shared(races, shared, self.regs, (value, address), lanes, shape, (visitor, touch))
                });
                store(shared, self.regs, value, address, lanes, shape).map_err(refused)?;
                ordered.map_err(raced)
            }
            PeerOp::Atomic(ref op) => {
                atomic(&self.block.global, shared, self.regs, op, lanes, shape).map_err(refused)?;
                let fenced = self.program.has_fence;
                self.in_block(rank, |races| order::atomic(races, self.regs, (op, fenced), lanes, shape, visitor))
                    .map_err(raced)
            }
        }
    }

    /// What an access to the memory of a block races with.
    pub(super) fn in_block(
        &self,
        rank: u32,
        check: impl FnOnce(&mut SharedRaces) -> Result<(), Conflict>,
    ) -> Result<(), Conflict> {
        let Some(races) = self.state.races else { return Ok(()) };
        let races = &mut *races.borrow_mut();
        races.reach(rank);
        let result = check(races);
        races.reach(self.block.rank);
        result
    }
}

const _: () = assert!(LANES == 32, "clusters are of targets whose warps have 32 lanes");
