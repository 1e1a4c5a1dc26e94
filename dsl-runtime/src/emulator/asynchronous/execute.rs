//! One operation of a warp.

use std::cell::RefCell;

use super::fault::AsyncFault;
use super::mbarrier::Mbarrier;
use super::op::{AsyncOp, OperandA, ProxyFence, SharedOperand, TensorCopyOp, WgmmaOp};
use super::state::{AsyncState, Wait};
use super::tcgen05::{self, WarpTensor};
use super::tensor_map::BoundMap;
use super::transfer::{Source, Store, Transfer, find_unwritten, read_box, store_box};
use super::wgmma::{Pending, marked};
use crate::emulator::exact::{ExactPart, Follower, Now};
use crate::emulator::exec::access::AccessError;
use crate::emulator::exec::numbers::{Births, Moment};
use crate::emulator::exec::warp::{Action, BlockMemory, FaultKind, Stop, Warp};
use crate::emulator::isa::Isa;
use crate::emulator::lanes::{LANES, Reg, Registers};
use crate::emulator::memory::{AccessFault, BulkAccess, Conflict, Epoch, Memory, Region, SharedRaces, Touch, Toucher};
use crate::emulator::op::Pc;
use crate::emulator::program::Program;

/// What one warp has started.
#[derive(Debug, Default)]
pub(crate) struct WarpAsync {
    stores: Vec<Store>,
    /// Groups of bulk stores that each lane has closed.
    committed: [u32; LANES],
    /// The barrier of the cluster that the warp has arrived at and not waited for.
    pub(crate) cluster: Option<u64>,
    pub(super) tensor: WarpTensor,
}

impl WarpAsync {
    pub(crate) fn clear(&mut self) {
        self.stores.clear();
        self.tensor.clear();
        self.committed = [0; LANES];
        self.cluster = None;
    }
}

/// How a warp goes on.
pub(crate) enum Flow {
    Next,
    /// It stops here and tries again.
    Wait(Wait),
    /// It stops behind the operation.
    Stop(Stop),
    /// It has broken a rule in this lane.
    Fault(u32, FaultKind),
}

pub(super) type Step<T = ()> = Result<T, (u32, FaultKind)>;

pub(super) fn broken(lane: u32, fault: AsyncFault) -> (u32, FaultKind) {
    (lane, FaultKind::Async(Box::new(fault)))
}

/// Lanes of a mask.
pub(super) fn lanes(mask: u64) -> impl Iterator<Item = u32> + use<> {
    (0..LANES as u32).filter(move |lane| mask >> lane & 1 == 1)
}

/// A warp at an operation.
pub(super) struct Context<'a, 'r, 'm> {
    pub(super) program: &'a Program,
    pub(super) block: &'a BlockMemory<'m>,
    pub(super) state: &'a mut AsyncState<'m>,
    pub(super) own: &'a mut WarpAsync,
    pub(super) births: &'a mut Births,
    pub(super) follower: Option<&'a mut Follower>,
    pub(super) regs: &'a mut Registers<'r>,
    pub(super) warp: u32,
    pub(super) mask: u64,
    pub(super) pc: Pc,
}

/// Executes one operation.
#[inline(never)]
pub(crate) fn execute<I: Isa>(
    program: &Program,
    table: u32,
    warp: &mut Warp,
    regs: &mut Registers<'_>,
    block: &BlockMemory<'_>,
    (mask, pc): (u64, Pc),
) -> Flow {
    let Some(op) = program.asynchronous.get(table as usize) else { return Flow::Next };
    let simple = match *op {
        AsyncOp::Uniform { d, a, halves } => {
            if let Some(races) = block.races {
                races.borrow_mut().agree(warp.index);
            }
            Some(uniform(regs, (d, a, halves), warp.existing, mask))
        }
        AsyncOp::NamedBarrier { id, index, threads, sync } => {
            Some(named_barrier(regs, (id, index), (threads, sync), warp.existing, mask))
        }
        _ => None,
    };
    if let Some(result) = simple {
        return result.unwrap_or_else(|(lane, kind)| Flow::Fault(lane, kind));
    }
    let Some(state) = block.asynchronous else { return Flow::Next };
    let state = &mut *state.borrow_mut();
    if let AsyncOp::WgmmaWait { groups, values, results } = op {
        return match wgmma_wait::<I>(program, warp, regs, (block, state), (*groups, values, results), mask) {
            Ok(flow) => flow,
            Err((lane, kind)) => Flow::Fault(lane, kind),
        };
    }
    let existing = warp.existing;
    let follower = warp.follower.as_deref_mut();
    let (own, births, warp) = (&mut warp.asynchronous, &mut warp.births, warp.index);
    let mut context = Context { program, block, state, own, births, follower, regs, warp, mask, pc };
    let result = match op {
        AsyncOp::BarrierInit { address, count, access } => context.barrier_init(*address, *count, *access),
        AsyncOp::BarrierArrive { address, bytes, access } => context.barrier_arrive(*address, None, *bytes, *access),
        AsyncOp::BarrierArrivePeer { address, rank, access } => {
            context.barrier_arrive(*address, Some(*rank), None, *access)
        }
        AsyncOp::BarrierWait { address, parity, access } => context.barrier_wait(*address, *parity, *access),
        AsyncOp::FenceProxy(kind) => context.fence_proxy(*kind),
        AsyncOp::TensorLoad(op) => context.tensor_load(op),
        AsyncOp::TensorStore(op) => context.tensor_store(op),
        AsyncOp::StoreCommit => context.store_commit(),
        AsyncOp::StoreWait { groups, read } => context.store_wait(*groups, *read),
        AsyncOp::Wgmma(op) => whole(existing, mask).and_then(|()| context.wgmma::<I>(op, table)),
        AsyncOp::SetRegisters { count, increase } => {
            whole(existing, mask).and_then(|()| context.set_registers(*count, *increase))
        }
        AsyncOp::ClusterSync { arrive, wait } => {
            whole(existing, mask).and_then(|()| context.cluster_sync(*arrive, *wait))
        }
        AsyncOp::Peer(op) => context.peer(op),
        AsyncOp::StoreAsync(op) => context.store_async(op),
        AsyncOp::BlockCopy(op) => context.block_copy(op),
        AsyncOp::Tensor(op) => tcgen05::execute::<I>(&mut context, op, existing),
        AsyncOp::Landed { value, slots } => context.landed(*value, *slots),
        AsyncOp::WgmmaWait { .. } | AsyncOp::Uniform { .. } | AsyncOp::NamedBarrier { .. } => Ok(Flow::Next),
    };
    result.unwrap_or_else(|(lane, kind)| Flow::Fault(lane, kind))
}

/// The end of a warp: what it has started must have been waited for.
pub(crate) fn finish(warp: &mut Warp, block: &BlockMemory<'_>) -> Option<(Pc, FaultKind)> {
    let own = &mut warp.asynchronous;
    let unread = own.stores.iter().find(|store| store.content.is_none()).map(|store| store.pc);
    if block.checks.copies
        && let Some(pc) = first_unwaited(block, warp.index).or(unread).or(own.tensor.first_unwaited())
    {
        return Some((pc, FaultKind::Async(Box::new(AsyncFault::NeverWaited))));
    }
    let stores = std::mem::take(&mut own.stores);
    for store in stores {
        let map = block.maps.get(store.map as usize).and_then(Option::as_ref);
        if let Some(map) = map {
            let content = store.content.or(store.early);
            let content = content.unwrap_or_else(|| read_box(block.shared, map, store.source));
            store_box(&block.global, map, &store.coordinates, &content);
        }
    }
    if let Some(state) = block.asynchronous {
        state.borrow_mut().warp_ended(block.rank, own.cluster.is_some());
    }
    None
}

/// Where the oldest product of a warp was issued that it has not waited for.
fn first_unwaited(block: &BlockMemory<'_>, warp: u32) -> Option<Pc> {
    let state = block.asynchronous?.borrow();
    state.blocks.get(block.rank as usize)?.products.get(warp as usize)?.first_unwaited()
}

pub(super) fn whole(existing: u64, mask: u64) -> Step {
    if mask == existing {
        Ok(())
    } else {
        Err((mask.trailing_zeros(), FaultKind::PartialWarp { missing: existing & !mask }))
    }
}

/// The value that all active lanes have.
pub(super) fn common(regs: &Registers<'_>, reg: Reg, mask: u64, what: &'static str) -> Step<u32> {
    let mut active = lanes(mask);
    let first = regs.lane::<u32>(reg, active.next().unwrap_or(0) as usize);
    for lane in active {
        let other = regs.lane::<u32>(reg, lane as usize);
        if other != first {
            return Err(broken(lane, AsyncFault::NotUniform { what, values: [first, other] }));
        }
    }
    Ok(first)
}

fn uniform(regs: &mut Registers<'_>, (d, a, halves): ([Reg; 2], [Reg; 2], u8), existing: u64, mask: u64) -> Step<Flow> {
    whole(existing, mask)?;
    let first = regs.lane::<u32>(a[0], 0);
    for half in 0..usize::from(halves.min(2)) {
        let values = regs.read::<u32>(a[half]);
        let differs = |lane: &usize| existing >> (32 * half + lane) & 1 == 1 && values[*lane] != first;
        if let Some(lane) = (0..LANES).find(differs) {
            let values = [first, values[lane]];
            return Err(broken((32 * half + lane) as u32, AsyncFault::NotUniform { what: "value", values }));
        }
        regs.write(d[half], [first; LANES]);
    }
    Ok(Flow::Next)
}

fn named_barrier(
    regs: &Registers<'_>,
    (id, index): (u32, Reg),
    (threads, sync): (u32, bool),
    existing: u64,
    mask: u64,
) -> Step<Flow> {
    if mask != existing {
        return Err((mask.trailing_zeros(), FaultKind::DivergentBarrier { missing: existing & !mask }));
    }
    let id = id.wrapping_add(common(regs, index, mask, "number of a named barrier")?);
    if !(1..=15).contains(&id) {
        return Err(broken(mask.trailing_zeros(), AsyncFault::NoSuchBarrier { id }));
    }
    Ok(Flow::Stop(if sync { Stop::NamedSync { id, threads } } else { Stop::NamedArrive { id, threads } }))
}

/// Waits for products: computes those whose turn has come, and takes the results.
#[inline(never)]
fn wgmma_wait<I: Isa>(
    program: &Program,
    warp: &mut Warp,
    regs: &mut Registers<'_>,
    (block, state): (&BlockMemory<'_>, &mut AsyncState<'_>),
    (groups, values, results): (u32, &[Reg], &[Reg]),
    mask: u64,
) -> Step<Flow> {
    whole(warp.existing, mask)?;
    let (rank, own, group) = (block.rank, warp.index as usize, warp.index as usize / 4);
    let Some(target) = state.queue(rank, own).map(|queue| queue.target(groups)) else { return Ok(Flow::Next) };
    while state.queue(rank, own).is_some_and(|queue| queue.computed < target) {
        let members = || (4 * group)..(4 * group + 4);
        let next = state.queue(rank, own).map_or(0, |queue| queue.computed);
        if members().any(|warp| state.queue(rank, warp).is_none_or(|queue| queue.issued <= next)) {
            return Ok(Flow::Wait(Wait::Warpgroup));
        }
        compute_product::<I>(program, (block, state), members())?;
    }
    let queue = state.blocks.get_mut(rank as usize).and_then(|block| block.products.get_mut(own));
    let specials = queue.map(|queue| queue.waited_for(target)).unwrap_or_default();
    for (pc, special) in specials {
        let strict = block.checks.infinity;
        let moment = Moment { program, regs, births: &mut warp.births, pc, mask, strict };
        let factors = special.factors.iter().copied();
        if let Some(found) = moment.term(factors, special.before, special.result, special.lane) {
            return Err(FaultKind::number(found));
        }
    }
    if let (Some(races), Some(last)) = (state.races, target.checked_sub(1)) {
        let computed = state.blocks.get(rank as usize).and_then(|block| block.computed.get(group));
        if let Some((Some(component), ticks)) = computed {
            let tick = ticks.get(last as usize).copied().unwrap_or(0);
            races.borrow_mut().learn(warp.index, *component, tick);
        }
    }
    let queue = state.blocks.get_mut(rank as usize).and_then(|block| block.products.get_mut(own));
    let Some(queue) = queue else { return Ok(Flow::Next) };
    for (&value, &result) in values.iter().zip(results) {
        let follower = warp.follower.as_deref_mut();
        queue.take(regs, (value, result), groups, follower).map_err(|fault| broken(0, fault))?;
    }
    Ok(Flow::Next)
}

/// Computes the oldest product of a warpgroup, for all its warps.
fn compute_product<I: Isa>(
    program: &Program,
    (block, state): (&BlockMemory<'_>, &mut AsyncState<'_>),
    members: std::ops::Range<usize>,
) -> Step {
    let group = members.start / 4;
    let component = state.products_component(block.rank, group);
    let tick = state.races.map_or(0, |races| races.borrow_mut().next_tick());
    let watch = block.checks.nan || block.checks.infinity;
    let races = state.races;
    let Some(own) = state.blocks.get_mut(block.rank as usize) else { return Ok(()) };
    for (part, warp) in members.enumerate() {
        let Some(queue) = own.products.get_mut(warp) else { continue };
        let Some(pending) = queue.take_oldest() else { continue };
        let Some(AsyncOp::Wgmma(op)) = program.asynchronous.get(pending.table as usize) else { continue };
        let at_product = |kind| (0, FaultKind::At { pc: pending.pc, kind: Box::new(kind) });
        let who = Toucher { warp: warp as u32, lane: Epoch::TOGETHER, pc: pending.pc };
        for (operand, base) in operands(op, &pending) {
            let (ranges, size) = (operand.ranges.get(part).map(Vec::as_slice).unwrap_or_default(), op.ty.bytes());
            for &(offset, len) in ranges {
                let (at, len) = ((base + offset) as usize, len as usize);
                let checked = races.map_or(Ok(()), |races| {
                    let races = &mut *races.borrow_mut();
                    let checked = races.check_async(BulkAccess { who, known: &pending.known }, at, len, false);
                    races.note_product_read((pending.pc, component, tick), warp as u32, at, len);
                    checked
                });
                checked.map_err(|conflict| {
                    at_product(FaultKind::Race { conflict, access: operand.access, touch: Touch::Read })
                })?;
                if block.shared.check_written(at, len).is_err() {
                    let is_unwritten = |byte: &usize| block.shared.check_written(at + byte, size).is_err();
                    let byte = (0..len).step_by(size).find(is_unwritten).unwrap_or(0);
                    let error = AccessError { fault: AccessFault::Uninitialized, lane: 0, address: (at + byte) as u64 };
                    let (access, action) = (operand.access, Action::Read);
                    return Err(at_product(FaultKind::Access { error, access, shared: true, action }));
                }
            }
        }
        let exact = block.checks.shadow.then_some(ExactPart {
            memory: block.exact,
            checks: &block.checks,
            shared: block.shared,
            rank: block.rank,
            warp: warp as u32,
            pc: pending.pc,
            ty: op.ty,
            k: op.k,
        });
        queue.compute::<I>(op, &pending, (block.shared, exact.as_ref()), 16 * part, watch);
    }
    if let Some((_, ticks)) = own.computed.get_mut(group) {
        ticks.push(tick);
    }
    Ok(())
}

/// The operands in shared memory and where they start.
fn operands<'o>(op: &'o WgmmaOp, pending: &Pending) -> impl Iterator<Item = (&'o SharedOperand, u32)> {
    let a = match &op.a {
        OperandA::Shared(operand) => Some((operand, pending.a_base)),
        OperandA::Registers(_) => None,
    };
    a.into_iter().chain(std::iter::once((&op.b, pending.b_base)))
}

impl Context<'_, '_, '_> {
    /// A value that must not be that of a product under way.
    fn landed(&self, value: Reg, slots: u32) -> Step<Flow> {
        let Some((ticket, _)) = (value..value + slots).find_map(|reg| marked(self.regs, reg)) else {
            return Ok(Flow::Next);
        };
        let queue = self.state.queue(self.block.rank, self.warp as usize);
        Err(broken(0, queue.map_or(AsyncFault::HandedOn, |queue| queue.blame(ticket))))
    }

    pub(super) fn races(&self) -> Option<std::cell::RefMut<'_, SharedRaces>> {
        self.state.races.map(RefCell::borrow_mut)
    }

    /// Checks a range of shared memory that a lane names.
    pub(super) fn range(&self, address: u32, len: u32, access: u32, lane: u32, action: Action) -> Step<usize> {
        let shape = self.program.access(access);
        self.block.shared.check_range(u64::from(address), len as usize, shape).map_err(|fault| {
            let error = AccessError { fault, lane, address: address.into() };
            (lane, FaultKind::Access { error, access, shared: true, action })
        })
    }

    fn barrier_init(&mut self, address: Reg, count: u32, access: u32) -> Step<Flow> {
        for lane in lanes(self.mask) {
            let at = self.regs.lane::<u32>(address, lane as usize);
            self.range(at, 8, access, lane, Action::Write)?;
            if let Some(known) = self.state.barrier(self.block.rank, at) {
                let made = known.made;
                return Err(broken(lane, AsyncFault::BarrierAgain { address: at, made }));
            }
            let who = Toucher { warp: self.warp, lane, pc: self.pc };
            let mut maker = Epoch::default();
            let mut nothing = crate::emulator::memory::Knowledge::default();
            if let Some(mut races) = self.races() {
                races
                    .check(who, at as usize, 8, Touch::Write)
                    .map_err(|conflict| (lane, FaultKind::Race { conflict, access, touch: Touch::Write }))?;
                races.reserve(who, at as usize, 8);
                maker = races.moment_of(who);
                nothing = races.nothing();
            }
            // With the shadow of races, that tells of accesses to these bytes.
            if self.state.races.is_some() {
                self.block.shared.mark_written(at as usize, 8);
            } else {
                self.block.shared.mark_unwritten(at as usize, 8);
            }
            let barrier = Mbarrier::new(count, self.pc, maker, nothing);
            if let Some(block) = self.state.blocks.get_mut(self.block.rank as usize) {
                block.barriers.insert(at, barrier);
            }
        }
        Ok(Flow::Next)
    }

    /// The mbarrier that a lane names, if the warp may use it; `by_copy` for the copy engine.
    pub(super) fn barrier(&mut self, rank: u32, address: u32, lane: u32, by_copy: bool) -> Step {
        if self.state.blocks.get(rank as usize).is_some_and(|block| block.running == 0) {
            return Err(broken(lane, AsyncFault::BlockEnded { rank }));
        }
        let Some(barrier) = self.state.barrier(rank, address) else {
            return Err(broken(lane, AsyncFault::NotABarrier { address }));
        };
        let (made, maker, fenced) = (barrier.made, barrier.maker, barrier.fenced);
        if self.races().is_some_and(|races| !races.has_seen(self.warp, maker)) {
            return Err(broken(lane, AsyncFault::BarrierUnseen { address, made }));
        }
        if (by_copy || rank != self.block.rank) && !fenced && self.state.races.is_some() {
            return Err(broken(lane, AsyncFault::BarrierUnfenced { address, made }));
        }
        Ok(())
    }

    fn barrier_arrive(&mut self, address: Reg, rank: Option<Reg>, bytes: Option<u32>, access: u32) -> Step<Flow> {
        // The mbarrier of the first lane, and its phase before.
        let mut first = None;
        for lane in lanes(self.mask) {
            let at = self.regs.lane::<u32>(address, lane as usize);
            self.range(at, 8, access, lane, Action::Update)?;
            let rank = rank.map_or(self.block.rank, |rank| self.regs.lane::<u32>(rank, lane as usize));
            let blocks = self.state.blocks.len() as u32;
            if rank >= blocks {
                return Err(broken(lane, AsyncFault::NoSuchRank { rank, blocks }));
            }
            self.barrier(rank, at, lane, false)?;
            let races = self.state.races;
            if let Some(races) = races.filter(|_| rank != self.block.rank) {
                let moment = races.borrow().moment_of(Toucher { warp: self.warp, lane, pc: self.pc });
                self.state.comes_from_afar(rank, moment, self.pc);
            }
            let Some(barrier) = self.state.barrier(rank, at) else { continue };
            if let Some(races) = races {
                races.borrow_mut().release_to(self.warp, self.mask, &mut barrier.current);
            }
            barrier.last_arrival = Some(self.pc);
            let (_, before) = *first.get_or_insert(((rank, at), barrier.phase));
            let arrived = bytes.map_or(Ok(()), |bytes| barrier.expect(bytes)).and_then(|()| barrier.arrive());
            let (count, bytes) = (barrier.count, barrier.bytes);
            // Lanes that arrive together mean one phase.
            if barrier.phase > before + 1 && first.is_some_and(|(place, _)| place == (rank, at)) {
                let lanes = self.mask.count_ones();
                return Err(broken(lane, AsyncFault::PhasesAtOnce { address: at, count, lanes }));
            }
            match arrived {
                Ok(completed) => self.state.woken |= completed,
                Err(overflow) => {
                    return Err(broken(lane, AsyncFault::BarrierOverflow { address: at, overflow, count, bytes }));
                }
            }
        }
        Ok(Flow::Next)
    }

    fn barrier_wait(&mut self, address: Reg, parity: Reg, access: u32) -> Step<Flow> {
        let mut last = None;
        for lane in lanes(self.mask) {
            let at = self.regs.lane::<u32>(address, lane as usize);
            let parity = self.regs.lane::<u32>(parity, lane as usize);
            if last == Some((at, parity)) {
                continue;
            }
            self.range(at, 8, access, lane, Action::Read)?;
            self.barrier(self.block.rank, at, lane, false)?;
            if self.state.barrier(self.block.rank, at).is_some_and(|barrier| !barrier.is_complete(parity)) {
                return Ok(Flow::Wait(Wait::Mbarrier { address: at, parity }));
            }
            last = Some((at, parity));
        }
        let mut last = None;
        for lane in lanes(self.mask) {
            let at = self.regs.lane::<u32>(address, lane as usize);
            let races = self.state.races;
            if last == Some(at) {
                continue;
            }
            self.state.waited(self.block.rank, at);
            if let (Some(races), Some(barrier)) = (races, self.state.barrier(self.block.rank, at)) {
                races.borrow_mut().acquire(self.warp, self.mask, &barrier.done);
            }
            if let Some(barrier) = self.state.barrier(self.block.rank, at) {
                barrier.unnoticed = 0;
            }
            last = Some(at);
        }
        Ok(Flow::Next)
    }

    fn fence_proxy(&mut self, kind: ProxyFence) -> Step<Flow> {
        let mut own = None;
        if let Some(mut races) = self.races() {
            if kind == ProxyFence::Async {
                races.fence_proxy(self.warp, self.mask);
            }
            own = Some(races.moment(self.warp).0);
        }
        // Either fence makes this warp's new mbarriers known to the copy engine.
        if let (Some(own), Some(block)) = (own, self.state.blocks.get_mut(self.block.rank as usize)) {
            block.barriers.values_mut().filter(|barrier| barrier.maker.warp() == own).for_each(|b| b.fenced = true);
        }
        Ok(Flow::Next)
    }

    fn map(&self, op: &TensorCopyOp) -> Step<&BoundMap> {
        // A launch binds every map of the kernel.
        let map = self.block.maps.get(op.map as usize).and_then(Option::as_ref);
        map.ok_or((0, FaultKind::Assert { text: "the tensor map is no argument of this launch".to_owned() }))
    }

    fn coordinates(&self, op: &TensorCopyOp, lane: u32) -> [i32; 5] {
        op.coordinates.map(|reg| self.regs.lane::<i32>(reg, lane as usize))
    }

    /// The race of a bulk access, as a fault.
    pub(super) fn race(lane: u32, conflict: Conflict, access: u32, writes: bool) -> (u32, FaultKind) {
        let touch = if writes { Touch::CopyStart } else { Touch::Read };
        (lane, FaultKind::Race { conflict, access, touch })
    }

    fn tensor_load(&mut self, op: &TensorCopyOp) -> Step<Flow> {
        for lane in lanes(self.mask) {
            let destination = self.regs.lane::<u32>(op.address, lane as usize);
            let barrier = self.regs.lane::<u32>(op.barrier, lane as usize);
            let coordinates = self.coordinates(op, lane);
            let map = self.map(op)?;
            let bytes = map.box_bytes();
            if self.block.checks.initialized
                && let Some(address) = find_unwritten(&self.block.global, map, &coordinates)
            {
                let error = AccessError { fault: AccessFault::Uninitialized, lane, address };
                let kind = FaultKind::Access { error, access: op.access, shared: false, action: Action::Read };
                return Err((lane, kind));
            }
            self.range(destination, bytes, op.access, lane, Action::Write)?;
            self.range(barrier, 8, op.barrier_access, lane, Action::Update)?;
            let known = self.races().map(|mut races| races.snapshot(self.warp, 1 << lane)).unwrap_or_default();
            let blocks = self.state.blocks.len() as u32;
            let receivers = if op.multicast == 0 { 1 << self.block.rank } else { op.multicast };
            if receivers >> blocks != 0 {
                return Err(broken(lane, AsyncFault::NoSuchRank { rank: receivers.ilog2(), blocks }));
            }
            for rank in (0..blocks).filter(|rank| receivers >> rank & 1 == 1) {
                self.barrier(rank, barrier, lane, true)?;
                let component = self.state.component(rank, barrier);
                if let Some(mut races) = self.races() {
                    races.reach(rank);
                    let who = Toucher { warp: self.warp, lane, pc: self.pc };
                    let access = BulkAccess { who, known: &known };
                    let checked = races.check_async(access, destination as usize, bytes as usize, true);
                    races.note_async_write((self.pc, component), destination as usize, bytes as usize, None);
                    races.reach(self.block.rank);
                    checked.map_err(|conflict| Self::race(lane, conflict, op.access, true))?;
                }
                if let Some(shared) = self.state.shared.get(rank as usize) {
                    shared.mark_unwritten(destination as usize, bytes as usize);
                }
                let source = Source::Box { map: op.map, coordinates };
                self.state.transfers.push(Transfer { pc: self.pc, source, rank, destination, barrier, bytes });
            }
            self.note_rows(op, &coordinates, lane, false)?;
            if self.block.checks.shadow {
                let map = self.map(op)?;
                for rank in (0..blocks).filter(|rank| receivers >> rank & 1 == 1) {
                    self.block.exact.box_loaded(map, &coordinates, (rank, destination));
                }
            }
            if self.state.is_early() {
                self.state.land_newest(receivers.count_ones()).map_err(|fault| fault.at(lane))?;
            }
        }
        Ok(Flow::Next)
    }

    /// Tells the shadow of races between blocks what a copy does to global memory.
    fn note_rows(&self, op: &TensorCopyOp, coordinates: &[i32], lane: u32, is_write: bool) -> Step {
        if self.state.races.is_none() || self.block.synchronised.get() {
            return Ok(());
        }
        let mine = Epoch::new(self.block.time, self.pc, self.warp, lane);
        for row in self.map(op)?.rows(coordinates).filter(|row| row.len > 0) {
            let (region, offset) = self.block.global.region(row.address);
            let Some(races) = &region.races else { return Ok(()) };
            if let Some(conflict) = races.touch(mine, offset as usize, row.len, is_write) {
                let (address, access) = (row.address, op.access);
                return Err((lane, FaultKind::BlockRace { conflict, address, access, is_write }));
            }
        }
        Ok(())
    }

    fn tensor_store(&mut self, op: &TensorCopyOp) -> Step<Flow> {
        for lane in lanes(self.mask) {
            let source = self.regs.lane::<u32>(op.address, lane as usize);
            let coordinates = self.coordinates(op, lane);
            let bytes = self.map(op)?.box_bytes();
            self.range(source, bytes, op.access, lane, Action::Read)?;
            let mut known = crate::emulator::memory::Knowledge::default();
            if let Some(mut races) = self.races() {
                known = races.snapshot(self.warp, 1 << lane);
                let who = Toucher { warp: self.warp, lane: Epoch::TOGETHER, pc: self.pc };
                races.note_async_read(who, source as usize, bytes as usize, true);
            }
            self.note_rows(op, &coordinates, lane, true)?;
            if self.block.checks.shadow {
                let (checks, memory, rank) = (&self.block.checks, self.block.exact, self.block.rank);
                let (program, regs, pc, mask) = (self.program, &*self.regs, self.pc, self.mask);
                let now = Now { program, regs, memory, checks, rank, pc, mask };
                let copied = (self.map(op)?, coordinates.as_slice());
                memory.box_stored(&now, copied, self.block.shared, source).map_or(Ok(()), Err)?;
            }
            let (pc, map) = (self.pc, op.map);
            let mut early = None;
            if self.state.is_early() {
                early = Some(read_box(self.block.shared, self.map(op)?, source));
            }
            let store = Store { pc, lane, map, coordinates, source, bytes, group: None, content: None, early, known };
            self.own.stores.push(store);
        }
        Ok(Flow::Next)
    }

    fn store_commit(&mut self) -> Step<Flow> {
        for lane in lanes(self.mask) {
            let Some(committed) = self.own.committed.get_mut(lane as usize) else { continue };
            let open = |store: &&mut Store| store.lane == lane && store.group.is_none();
            self.own.stores.iter_mut().filter(open).for_each(|store| store.group = Some(*committed));
            *committed += 1;
        }
        Ok(Flow::Next)
    }

    fn store_wait(&mut self, groups: u32, read: bool) -> Step<Flow> {
        let committed = self.own.committed;
        let limit = |lane: u32| committed.get(lane as usize).copied().unwrap_or(0).saturating_sub(groups);
        let mask = self.mask;
        let is_due =
            |store: &Store| mask >> store.lane & 1 == 1 && store.group.is_some_and(|group| group < limit(store.lane));
        let mut stores = std::mem::take(&mut self.own.stores);
        let mut result = Ok(Flow::Next);
        for store in stores.iter_mut().filter(|store| is_due(store)) {
            if store.content.is_none() {
                match self.read_source(store) {
                    Ok(content) => store.content = Some(content),
                    Err(fault) => {
                        result = Err(fault);
                        break;
                    }
                }
            }
        }
        if !read && result.is_ok() {
            for store in stores.extract_if(.., |store| is_due(store)) {
                let map = self.block.maps.get(store.map as usize).and_then(Option::as_ref);
                if let (Some(map), Some(content)) = (map, store.content) {
                    store_box(&self.block.global, map, &store.coordinates, &content);
                }
            }
        }
        self.own.stores = stores;
        result
    }

    /// Reads the source of a store, at the wait for it. Faults are at the store.
    fn read_source(&self, store: &Store) -> Step<Vec<u8>> {
        let at_store = |kind| (store.lane, FaultKind::At { pc: store.pc, kind: Box::new(kind) });
        let (at, len) = (store.source as usize, store.bytes as usize);
        let access = self.program.ops.get(store.pc as usize).and_then(|op| match op {
            crate::emulator::op::Op::Async { table } => self.program.asynchronous.get(*table as usize),
            _ => None,
        });
        let access = match access {
            Some(AsyncOp::TensorStore(op)) => op.access,
            _ => 0,
        };
        let size = self.program.access(access).element as usize;
        if self.block.shared.check_written(at, len).is_err() {
            let unwritten = |byte: &usize| self.block.shared.check_written(at + byte, size.max(1)).is_err();
            let byte = (0..len).step_by(size.max(1)).find(unwritten).unwrap_or(0);
            let error =
                AccessError { fault: AccessFault::Uninitialized, lane: store.lane, address: (at + byte) as u64 };
            return Err(at_store(FaultKind::Access { error, access, shared: true, action: Action::Read }));
        }
        if let Some(mut races) = self.races() {
            let who = Toucher { warp: self.warp, lane: store.lane, pc: store.pc };
            let checked = races.check_async(BulkAccess { who, known: &store.known }, at, len, false);
            races.note_async_read(who, at, len, false);
            checked.map_err(|conflict| at_store(FaultKind::Race { conflict, access, touch: Touch::Read }))?;
        }
        if let Some(early) = &store.early {
            return Ok(early.clone());
        }
        let map = self.block.maps.get(store.map as usize).and_then(Option::as_ref);
        Ok(map.map(|map| read_box(self.block.shared, map, store.source)).unwrap_or_default())
    }

    fn wgmma<I: Isa>(&mut self, op: &WgmmaOp, table: u32) -> Step<Flow> {
        let threads = self.program.block_threads();
        if (self.warp / 4 + 1) * 128 > threads {
            return Err(broken(0, AsyncFault::NoWarpgroup { threads }));
        }
        let mut bases = [0; 2];
        let a = match &op.a {
            OperandA::Shared(operand) => Some(operand),
            OperandA::Registers(_) => None,
        };
        for (operand, base) in [a, Some(&op.b)].into_iter().zip(&mut bases) {
            let Some(operand) = operand else { continue };
            *base = common(self.regs, operand.address, self.mask, "address of an operand")?;
            self.range(*base, operand.span, operand.access, 0, Action::Read)?;
        }
        if let Some(block) = self.state.blocks.get_mut(self.block.rank as usize) {
            block.step(self.warp, self.pc, bases).map_err(|fault| broken(0, fault))?;
        }
        let known = self.races().map(|mut races| races.snapshot(self.warp, u64::MAX)).unwrap_or_default();
        let pending = Pending::new(self.pc, table, (bases[0], bases[1]), known);
        let (rank, warp) = (self.block.rank, self.warp);
        let component = self.state.products_component(rank, warp as usize / 4);
        if let Some(mut races) = self.races() {
            for (operand, base) in operands(op, &pending) {
                let ranges = operand.ranges.get(warp as usize % 4).map(Vec::as_slice).unwrap_or_default();
                for &(offset, len) in ranges {
                    races.note_product_issue((self.pc, component), warp, (base + offset) as usize, len as usize);
                }
            }
        }
        // Another warp may wait for this one's part.
        self.state.woken = true;
        let queue = self.state.blocks.get_mut(rank as usize).and_then(|block| block.products.get_mut(warp as usize));
        let follower = self.follower.as_deref().filter(|_| self.block.checks.shadow);
        let memory = (self.block.shared, follower);
        let issued = queue.map_or(Ok(()), |queue| queue.issue::<I>(self.regs, op, pending, memory));
        issued.map_err(|fault| broken(0, fault))?;
        self.compute_early::<I>()?;
        Ok(Flow::Next)
    }

    /// Now and then computes a product before anyone waits for it, once all four warps have issued it.
    fn compute_early<I: Isa>(&mut self) -> Step {
        let (rank, group) = (self.block.rank, self.warp as usize / 4);
        let members = || (4 * group)..(4 * group + 4);
        let next = self.state.queue(rank, 4 * group).map_or(0, |queue| queue.computed);
        let is_issued = |warp| self.state.queue(rank, warp).is_some_and(|queue| queue.issued > next);
        if members().all(is_issued) && self.state.is_early() {
            compute_product::<I>(self.program, (self.block, self.state), members())?;
        }
        Ok(())
    }

    fn set_registers(&mut self, count: u32, increase: bool) -> Step<Flow> {
        let (warp, pc) = (self.warp, self.pc);
        let Some(block) = self.state.blocks.get_mut(self.block.rank as usize) else { return Ok(Flow::Next) };
        let Some(&from) = block.registers.get(warp as usize) else { return Ok(Flow::Next) };
        if increase && count < from || !increase && count > from {
            return Err(broken(0, AsyncFault::WrongDirection { from, to: count }));
        }
        if increase && count - from > block.free_registers {
            return Ok(Flow::Wait(Wait::Registers { count }));
        }
        block.step(warp, pc, [0, 0]).map_err(|fault| broken(0, fault))?;
        block.free_registers = block.free_registers + from - count;
        if let Some(own) = block.registers.get_mut(warp as usize) {
            *own = count;
        }
        self.state.woken |= !increase;
        Ok(Flow::Next)
    }

    fn cluster_sync(&mut self, arrive: bool, wait: bool) -> Step<Flow> {
        let rank = self.block.rank;
        if arrive && self.own.cluster.is_none() {
            self.own.cluster = Some(self.state.cluster.completed);
            self.state.arrive_at_cluster(rank, self.warp);
        }
        if !wait {
            return Ok(Flow::Next);
        }
        match self.own.cluster {
            Some(arrived) if self.state.cluster.completed == arrived => Ok(Flow::Wait(Wait::Cluster)),
            _ => {
                self.own.cluster = None;
                self.state.leave_cluster(rank, self.warp);
                Ok(Flow::Next)
            }
        }
    }
}
