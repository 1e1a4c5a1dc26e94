//! Stores and copies to a block of the cluster that complete at an mbarrier there.

use super::execute::{Context, Flow, Step, broken, lanes};
use super::fault::AsyncFault;
use super::op::{BlockCopyOp, StoreAsyncOp};
use super::transfer::{Source, Transfer};
use crate::emulator::exec::access::AccessError;
use crate::emulator::exec::numbers::nan_stored;
use crate::emulator::exec::order;
use crate::emulator::exec::warp::{Action, FaultKind};
use crate::emulator::lanes::Reg;
use crate::emulator::memory::{AccessFault, BulkAccess, Region, Touch, Toucher};

/// Where a lane's bytes go.
struct Target {
    rank: u32,
    address: u32,
    barrier: u32,
    bytes: u32,
    access: u32,
}

impl Context<'_, '_, '_> {
    /// The place and the mbarrier that a lane names: both of one block, which is there.
    fn target(
        &mut self,
        lane: u32,
        (address, barrier): (Reg, Reg),
        bytes: u32,
        (access, barrier_access): (u32, u32),
    ) -> Step<Target> {
        let at = lane as usize;
        let (rank, other) = (self.regs.lane::<u32>(address + 1, at), self.regs.lane::<u32>(barrier + 1, at));
        let (address, barrier) = (self.regs.lane::<u32>(address, at), self.regs.lane::<u32>(barrier, at));
        self.find_block(rank, 1 << lane)?;
        self.find_block(other, 1 << lane)?;
        if rank != other {
            return Err(broken(lane, AsyncFault::OtherBlock { rank, other }));
        }
        for (address, len, access, action) in
            [(address, bytes, access, Action::Write), (barrier, 8, barrier_access, Action::Update)]
        {
            self.range(address, len, access, lane, action).map_err(|(lane, kind)| (lane, self.of_block(rank, kind)))?;
        }
        self.barrier(rank, barrier, lane, false)?;
        Ok(Target { rank, address, barrier, bytes, access })
    }

    /// Starts to bring bytes there.
    fn start(&mut self, lane: u32, target: &Target, source: Source, known: Option<BulkAccess<'_>>) -> Step {
        let Target { rank, address, barrier, bytes, access } = *target;
        let (at, len) = (address as usize, bytes as usize);
        let who = Toucher { warp: self.warp, lane, pc: self.pc };
        let component = self.state.component(rank, barrier);
        let checked = self.in_block(rank, |races| {
            let checked = match known {
                Some(access) => races.check_async(access, at, len, true),
                None => races.check(who, at, len, Touch::Write),
            };
            races.note_async_write((self.pc, component), at, len, None);
            checked
        });
        checked.map_err(|conflict| {
            let (lane, kind) = Self::race(lane, conflict, access, true);
            (lane, self.of_block(rank, kind))
        })?;
        if let Some(shared) = self.state.shared.get(rank as usize) {
            shared.mark_unwritten(at, len);
        }
        self.state.transfers.push(Transfer { pc: self.pc, source, rank, destination: address, barrier, bytes });
        Ok(())
    }

    fn lands_early(&mut self, started: u32) -> Step<Flow> {
        if self.state.is_early() {
            let lane = self.mask.trailing_zeros();
            self.state.land_newest(started).map_err(|fault| fault.at(lane))?;
        }
        Ok(Flow::Next)
    }

    /// `st.async`: the value is taken now, and lands later.
    #[inline(never)]
    pub(super) fn store_async(&mut self, op: &StoreAsyncOp) -> Step<Flow> {
        let shape = *self.program.access(op.access);
        if self.births.any()
            && let Some(found) = nan_stored(self.regs, self.births, op.value, self.mask, &shape, self.pc)
        {
            return Err(FaultKind::number(found));
        }
        let mut started = 0;
        for lane in lanes(self.mask) {
            let places = (op.address, op.barrier);
            let target = self.target(lane, places, shape.bytes, (op.access, op.barrier_access))?;
            let word = |index| order::word(self.regs, op.value, lane as usize, index, &shape);
            let content = (0..shape.slots()).flat_map(|index| word(index).to_le_bytes()).collect();
            self.start(lane, &target, Source::Value(content), None)?;
            started += 1;
        }
        self.lands_early(started)
    }

    /// A bulk copy from the own block's shared memory.
    #[inline(never)]
    pub(super) fn block_copy(&mut self, op: &BlockCopyOp) -> Step<Flow> {
        let mut started = 0;
        for lane in lanes(self.mask) {
            let places = (op.destination, op.barrier);
            let target = self.target(lane, places, op.bytes, (op.to, op.barrier_access))?;
            let address = self.regs.lane::<u32>(op.source, lane as usize);
            let at = self.range(address, op.bytes, op.from, lane, Action::Read)?;
            let len = op.bytes as usize;
            if self.block.shared.check_written(at, len).is_err() {
                let is_unwritten = |byte: &usize| self.block.shared.check_written(at + byte, 1).is_err();
                let byte = (0..len).find(is_unwritten).unwrap_or(0);
                let error = AccessError { fault: AccessFault::Uninitialized, lane, address: (at + byte) as u64 };
                let (access, action) = (op.from, Action::Read);
                return Err((lane, FaultKind::Access { error, access, shared: true, action }));
            }
            let who = Toucher { warp: self.warp, lane, pc: self.pc };
            let known = self.races().map(|mut races| races.snapshot(self.warp, 1 << lane)).unwrap_or_default();
            let component = self.state.component(target.rank, target.barrier);
            let checked = self.in_block(self.block.rank, |races| {
                let checked = races.check_async(BulkAccess { who, known: &known }, at, len, false);
                races.note_product_issue((self.pc, component), self.warp, at, len);
                checked
            });
            checked.map_err(|conflict| Self::race(lane, conflict, op.from, false))?;
            let source = Source::Shared {
                rank: self.block.rank,
                warp: self.warp,
                lane,
                address,
                access: op.from,
                known: known.clone(),
            };
            self.start(lane, &target, source, Some(BulkAccess { who, known: &known }))?;
            started += 1;
        }
        self.lands_early(started)
    }
}
