//! Operations on tensor memory, and the products that sum there (PTX ISA, "tcgen05").
//!
//! A product is computed when a commit behind it lands: when a warp waits for the commit's mbarrier and nothing else
//! can run. Loads take what is there when they start, and count as under way until their wait; stores likewise.

use std::sync::Arc;

use super::execute::{Context, Flow, Step, broken, common, whole};
use super::fault::AsyncFault;
use super::op::{InputType, SharedOperand};
use super::operand::Gather;
use super::product::{Tile, multiply};
use super::state::{AsyncState, LandFault, Landing, Wait};
use super::tensor_memory::{Area, Mark, TensorFault, TensorMemory, Work};
use super::wgmma::{Special, find_special, is_special};
use crate::emulator::exec::access::AccessError;
use crate::emulator::exec::matrix::COLUMNS as ORDER;
use crate::emulator::exec::numbers::Moment;
use crate::emulator::exec::warp::{Action, FaultKind};
use crate::emulator::isa::{Isa, Vectorised, run_on};
use crate::emulator::lanes::{LANES as WARP, MaskReg, Reg};
use crate::emulator::memory::{
    AccessFault, BulkAccess, Bytes, Knowledge, Region, SharedMemory, TensorOrder, Touch, Toucher,
};
use crate::emulator::op::Pc;

/// One operation, as decoded. `access` is the shape of an access to shared memory.
#[derive(Clone, Debug)]
pub(crate) enum TensorOp {
    /// Allocates columns, and writes their address to shared memory.
    Alloc { slot: Reg, columns: u32, access: u32 },
    /// Gives columns back.
    Dealloc { address: Reg, columns: u32 },
    /// Ends the right to allocate.
    Relinquish,
    /// Loads columns, a register each.
    Load { address: Reg, d: Vec<Reg>, rows: u32 },
    /// Stores registers, a column each.
    Store { address: Reg, values: Vec<Reg> },
    /// Completes the warp's loads, or its stores.
    Wait { store: bool, values: Vec<Reg>, results: Vec<Reg> },
    /// Half of the order between threads.
    Fence { before: bool },
    /// Starts a product.
    Multiply(Arc<MultiplyOp>),
    /// An arrival behind the thread's products.
    Commit { barrier: Reg, access: u32 },
}

impl TensorOp {
    /// The registers that it names, but for the addresses of a product's operands.
    pub(crate) fn registers(&self) -> impl Iterator<Item = Reg> {
        let (one, many): (Option<Reg>, [&[Reg]; 2]) = match self {
            Self::Alloc { slot: reg, .. } | Self::Dealloc { address: reg, .. } | Self::Commit { barrier: reg, .. } => {
                (Some(*reg), [&[]; 2])
            }
            Self::Load { address, d: registers, .. } | Self::Store { address, values: registers } => {
                (Some(*address), [registers.as_slice(), &[]])
            }
            Self::Wait { values, results, .. } => (None, [values.as_slice(), results.as_slice()]),
            Self::Multiply(op) => (Some(op.d), [&[]; 2]),
            Self::Relinquish | Self::Fence { .. } => (None, [&[]; 2]),
        };
        one.into_iter().chain(many.into_iter().flatten().copied())
    }

    /// The shape of its access to shared memory, but for those of a product's operands.
    pub(crate) fn access(&self) -> Option<u32> {
        match self {
            Self::Alloc { access, .. } | Self::Commit { access, .. } => Some(*access),
            _ => None,
        }
    }
}

/// Operands of a product of m x n x k.
#[derive(Clone, Debug)]
pub(crate) struct MultiplyOp {
    pub(crate) ty: InputType,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: SharedOperand,
    pub(crate) b: SharedOperand,
    pub(crate) d: Reg,
    pub(crate) accumulate: MaskReg,
}

/// A product under way.
pub(crate) struct Product {
    pub(crate) pc: Pc,
    op: Arc<MultiplyOp>,
    a_base: u32,
    b_base: u32,
    /// Of D.
    column: u32,
    lane: u32,
    accumulate: bool,
    /// What the warp knew when it started the product.
    known: Knowledge,
    /// Whether cells that nothing wrote are a mistake, and NaNs.
    track: bool,
    watch: bool,
    compute: fn(&Product, &SharedMemory, &mut TensorMemory) -> Vec<Special>,
}

impl std::fmt::Debug for Product {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Product").field("pc", &self.pc).field("column", &self.column).finish_non_exhaustive()
    }
}

impl Product {
    fn area(&self) -> Area {
        Area::accumulator(self.column, self.op.n as u32, self.op.m as u32, self.lane)
    }

    /// First lane of 16 rows (PTX ISA, "Layout D" and "Layout F").
    fn lane_of(&self, sixteen: usize) -> u32 {
        let step = if self.op.m == 128 { 16 } else { 32 };
        self.lane + step * sixteen as u32
    }

    fn operands(&self) -> [(&SharedOperand, u32); 2] {
        [(&self.op.a, self.a_base), (&self.op.b, self.b_base)]
    }

    fn compute<I: Isa>(&self, shared: &SharedMemory, memory: &mut TensorMemory) -> Vec<Special> {
        run_on::<I, _>(Computation { product: self, shared, memory })
    }

    /// Sums run over k in order, in f32, as for `wgmma`. Gives sums that became infinite or NaN, one of each 16 rows
    /// at most, with their column in tensor memory, and their lane there as the row.
    #[inline(always)]
    fn run<I: Isa>(&self, shared: &SharedMemory, memory: &mut TensorMemory) -> Vec<Special> {
        let op = &*self.op;
        let gather = Gather { memory: shared, ty: op.ty, k: op.k };
        let mut a = vec![0.0; op.m * op.k];
        let mut a_safe = true;
        for (index, rows) in a.chunks_exact_mut(16 * op.k).enumerate() {
            a_safe &= gather.rows_of_a::<I>(self.a_base as usize, &op.a.layout, 16 * index, rows);
        }
        let mut b = vec![[0.0; 8]; op.k];
        let mut specials: Vec<Option<Special>> = (0..op.m / 16).map(|_| None).collect();
        for first in (0..op.n).step_by(8) {
            let safe = a_safe & gather.columns_of_b::<I>(self.b_base as usize, &op.b.layout, first, &mut b);
            for (index, rows) in a.chunks_exact(16 * op.k).enumerate() {
                let lane = self.lane_of(index);
                let mut tile: Tile = [[0.0; 8]; 16];
                for (place, column) in ORDER.into_iter().enumerate().filter(|_| self.accumulate) {
                    let cells = memory.cells(self.column + (first + column) as u32, lane, 16);
                    for (row, &bits) in tile.iter_mut().zip(cells) {
                        row[place] = f32::from_bits(bits);
                    }
                }
                let before = tile;
                multiply::<I>(&mut tile, rows, &b, safe);
                for (place, column) in ORDER.into_iter().enumerate() {
                    let cells = memory.cells_mut(self.column + (first + column) as u32, lane, 16);
                    for (row, bits) in tile.iter().zip(cells) {
                        *bits = row[place].to_bits();
                    }
                }
                let Some(special) = specials.get_mut(index).filter(|special| special.is_none()) else { continue };
                if self.watch && is_special(&tile) {
                    *special = find_special(&tile, &before, rows, &b).map(|found| Special {
                        row: lane + found.row,
                        column: self.column + first as u32 + found.column,
                        lane: (lane + found.row) % WARP as u32,
                        ..found
                    });
                }
            }
        }
        specials.into_iter().flatten().collect()
    }
}

/// A product and the memories that it works on.
struct Computation<'a> {
    product: &'a Product,
    shared: &'a SharedMemory,
    memory: &'a mut TensorMemory,
}

impl Vectorised for Computation<'_> {
    type Output = Vec<Special>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Vec<Special> {
        self.product.run::<I>(self.shared, self.memory)
    }
}

/// Loads and stores that a warp has started.
#[derive(Debug, Default)]
pub(crate) struct WarpTensor {
    loads: Vec<(Pc, Area)>,
    stores: Vec<(Pc, Area)>,
}

impl WarpTensor {
    pub(crate) fn clear(&mut self) {
        self.loads.clear();
        self.stores.clear();
    }

    /// Where the first was started that the warp has not waited for.
    pub(crate) fn first_unwaited(&self) -> Option<Pc> {
        self.loads.iter().chain(&self.stores).map(|(pc, _)| *pc).next()
    }
}

fn tensor(lane: u32, fault: TensorFault) -> (u32, FaultKind) {
    broken(lane, AsyncFault::Tensor(fault))
}

/// Executes one operation.
pub(super) fn execute<I: Isa>(context: &mut Context<'_, '_, '_>, op: &TensorOp, existing: u64) -> Step<Flow> {
    match op {
        TensorOp::Multiply(op) => context.one_thread().and_then(|lane| context.start_product::<I>(op, lane)),
        TensorOp::Commit { barrier, access } => {
            context.one_thread().and_then(|lane| context.tensor_commit(*barrier, *access, lane))
        }
        // Fences are each thread's own; what they order is known of whole warps.
        TensorOp::Fence { before } => context.tensor_fence(*before),
        _ => {
            whole(existing, context.mask)?;
            match op {
                TensorOp::Alloc { slot, columns, access } => context.tensor_alloc(*slot, *columns, *access),
                TensorOp::Dealloc { address, columns } => context.tensor_dealloc(*address, *columns),
                TensorOp::Relinquish => {
                    let pc = context.pc;
                    if let Some(memory) = context.tensor_memory() {
                        memory.relinquish(pc);
                    }
                    Ok(Flow::Next)
                }
                TensorOp::Load { address, d, rows } => context.tensor_load_rows(*address, d, *rows),
                TensorOp::Store { address, values } => context.tensor_store_rows(*address, values),
                TensorOp::Wait { store, values, results } => {
                    context.tensor_wait(*store);
                    for (&value, &result) in values.iter().zip(results) {
                        let lanes = context.regs.read::<u32>(value);
                        context.regs.write(result, lanes);
                    }
                    Ok(Flow::Next)
                }
                TensorOp::Multiply(_) | TensorOp::Commit { .. } | TensorOp::Fence { .. } => Ok(Flow::Next),
            }
        }
    }
}

impl Context<'_, '_, '_> {
    fn one_thread(&self) -> Step<u32> {
        let lane = self.mask.trailing_zeros();
        match self.mask.count_ones() {
            1 => Ok(lane),
            threads => Err(tensor(lane, TensorFault::ManyThreads { threads })),
        }
    }

    fn tensor_memory(&mut self) -> Option<&mut TensorMemory> {
        self.state.blocks.get_mut(self.block.rank as usize).map(|block| &mut block.tensor)
    }

    /// Gives the order of earlier accesses before one of this warp.
    fn order(&self) -> impl Fn(Mark) -> TensorOrder + use<> {
        let warp = self.warp;
        // What the warp has seen does not change while it executes one operation.
        let clock = self.races().map(|races| races.tensor_view(warp));
        move |mark| clock.as_ref().map_or(TensorOrder::Ordered, |clock| clock.order((mark.component, mark.tick)))
    }

    /// This warp as the author of an access, now.
    fn mark(&self) -> Mark {
        let (component, tick) = self.races().map_or((self.warp, 1), |races| races.moment(self.warp));
        Mark { pc: self.pc, component, tick }
    }

    fn tensor_fence(&mut self, before: bool) -> Step<Flow> {
        if let Some(mut races) = self.races() {
            if before {
                races.tensor_fence_before(self.warp);
            } else {
                races.tensor_fence_after(self.warp);
            }
        }
        Ok(Flow::Next)
    }

    fn tensor_alloc(&mut self, slot: Reg, columns: u32, access: u32) -> Step<Flow> {
        let slot = common(self.regs, slot, self.mask, "address of the slot")?;
        let at = self.range(slot, 4, access, 0, Action::Write)?;
        let pc = self.pc;
        let Some(memory) = self.tensor_memory() else { return Ok(Flow::Next) };
        let first = match memory.allocate(columns, pc) {
            Ok(Some(first)) => first,
            Ok(None) => {
                let free = memory.free_columns();
                return Ok(Flow::Wait(Wait::TensorMemory { columns, free }));
            }
            Err(fault) => return Err(tensor(0, fault)),
        };
        if let Some(mut races) = self.races() {
            let who = Toucher { warp: self.warp, lane: 0, pc: self.pc };
            races.check(who, at, 4, Touch::Write).map_err(|conflict| Self::race(0, conflict, access, true))?;
            races.note_rows(who, std::iter::once((0, at)), 4, Touch::Write);
        }
        // SAFETY: the range was checked.
        unsafe { self.block.shared.store_words(at, [first]) };
        self.block.shared.mark_written(at, 4);
        Ok(Flow::Next)
    }

    fn tensor_dealloc(&mut self, address: Reg, columns: u32) -> Step<Flow> {
        let address = common(self.regs, address, self.mask, "address in tensor memory")?;
        let (pc, order) = (self.pc, self.order());
        if let Some(memory) = self.tensor_memory() {
            memory.free((address, columns), pc, order).map_err(|fault| tensor(0, fault))?;
        }
        self.state.woken = true;
        Ok(Flow::Next)
    }

    /// The column of a warp's access, which must be to its own quarter of the lanes.
    fn own_lanes(&mut self, address: Reg, count: usize, store: bool) -> Step<(u32, u32)> {
        let address = common(self.regs, address, self.mask, "address in tensor memory")?;
        let (lane, column, warp) = (address >> 16, address & 0xffff, self.warp);
        if lane != 32 * (warp % 4) {
            return Err(tensor(0, TensorFault::OtherLanes { warp, lane, store }));
        }
        if let Some(memory) = self.tensor_memory() {
            memory.check_allocated(column, count as u32).map_err(|fault| tensor(0, fault))?;
        }
        Ok((column, lane))
    }

    fn tensor_load_rows(&mut self, address: Reg, d: &[Reg], rows: u32) -> Step<Flow> {
        let (column, lane) = self.own_lanes(address, d.len(), false)?;
        let area = Area::lanes(column, d.len() as u32, lane, rows);
        let (order, mark, pc) = (self.order(), self.mark(), self.pc);
        let track = self.block.checks.initialized;
        let Some(block) = self.state.blocks.get_mut(self.block.rank as usize) else { return Ok(Flow::Next) };
        let memory = &mut block.tensor;
        memory.check(area, (false, None), order).map_err(|fault| tensor(0, fault))?;
        if track {
            memory.check_written(area).map_err(|fault| tensor(0, fault))?;
        }
        memory.note_read(area, Mark { tick: 0, ..mark }, true);
        for (&reg, column) in d.iter().zip(column..) {
            let mut values = [0_u32; WARP];
            for (value, &bits) in values.iter_mut().zip(memory.cells(column, lane, WARP as u32)) {
                *value = bits;
            }
            self.regs.write(reg, values);
        }
        self.own.tensor.loads.push((pc, area));
        let columns = column..column + d.len() as u32;
        let is_read =
            |special: &Special| (lane..lane + rows).contains(&special.row) && columns.contains(&special.column);
        for (pc, special) in memory.specials.extract_if(.., |(_, special)| is_read(special)) {
            let (program, regs, mask) = (self.program, &*self.regs, self.mask);
            let moment = Moment { program, regs, births: self.births, pc, mask, strict: self.block.checks.infinity };
            let factors = special.factors.iter().copied();
            if let Some(found) = moment.term(factors, special.before, special.result, special.lane) {
                return Err(FaultKind::number(found));
            }
        }
        Ok(Flow::Next)
    }

    fn tensor_store_rows(&mut self, address: Reg, values: &[Reg]) -> Step<Flow> {
        let (column, lane) = self.own_lanes(address, values.len(), true)?;
        let area = Area::lanes(column, values.len() as u32, lane, 32);
        let (order, mark, pc) = (self.order(), self.mark(), self.pc);
        let Some(block) = self.state.blocks.get_mut(self.block.rank as usize) else { return Ok(Flow::Next) };
        let memory = &mut block.tensor;
        memory.check(area, (true, None), order).map_err(|fault| tensor(0, fault))?;
        memory.start_write(area, Mark { tick: 0, ..mark });
        for (&reg, column) in values.iter().zip(column..) {
            let lanes = self.regs.read::<u32>(reg);
            memory.cells_mut(column, lane, WARP as u32).copy_from_slice(&lanes);
        }
        self.own.tensor.stores.push((pc, area));
        Ok(Flow::Next)
    }

    fn tensor_wait(&mut self, store: bool) {
        let mark = self.mark();
        let waited = std::mem::take(if store { &mut self.own.tensor.stores } else { &mut self.own.tensor.loads });
        let Some(memory) = self.tensor_memory() else { return };
        for (pc, area) in waited {
            if store {
                memory.end_write(area, Mark { pc, ..mark });
            } else {
                memory.note_read(area, Mark { pc, ..mark }, false);
            }
        }
    }

    fn start_product<I: Isa>(&mut self, op: &Arc<MultiplyOp>, lane: u32) -> Step<Flow> {
        let mut bases = [0; 2];
        for (operand, base) in [&op.a, &op.b].into_iter().zip(&mut bases) {
            *base = self.regs.lane::<u32>(operand.address, lane as usize);
            self.range(*base, operand.span, operand.access, lane, Action::Read)?;
        }
        let [a_base, b_base] = bases;
        let d = self.regs.lane::<u32>(op.d, lane as usize);
        let (first, column) = (d >> 16, d & 0xffff);
        if first != 0 && !(first == 16 && op.m == 64) {
            return Err(tensor(lane, TensorFault::AccumulatorLane { lane: first }));
        }
        let product = Product {
            pc: self.pc,
            op: Arc::clone(op),
            a_base,
            b_base,
            column,
            lane: first,
            accumulate: self.regs.mask(op.accumulate) >> lane & 1 == 1,
            known: self.races().map(|mut races| races.snapshot(self.warp, 1 << lane)).unwrap_or_default(),
            track: self.block.checks.initialized,
            watch: self.block.checks.nan || self.block.checks.infinity,
            compute: Product::compute::<I>,
        };
        let area = product.area();
        let (order, pc, warp, rank) = (self.order(), self.pc, self.warp, self.block.rank);
        let component = self.state.issuer_component(rank, warp, lane);
        if let Some(mut races) = self.races() {
            for (operand, base) in product.operands() {
                for &(offset, len) in operand.ranges.iter().flatten() {
                    races.note_product_issue((pc, component), warp, (base + offset) as usize, len as usize);
                }
            }
        }
        let Some(memory) = self.tensor_memory() else { return Ok(Flow::Next) };
        let allocated = memory.check_allocated(column, op.n as u32);
        let checked = allocated.and_then(|()| memory.check(area, (true, Some(component)), order));
        checked.map_err(|fault| tensor(lane, fault))?;
        memory.start_write(area, Mark { pc, component, tick: 0 });
        memory.issuer(warp, lane, || component).queue.push_back(Work::Product(Box::new(product)));
        Ok(Flow::Next)
    }

    fn tensor_commit(&mut self, barrier: Reg, access: u32, lane: u32) -> Step<Flow> {
        let at = self.regs.lane::<u32>(barrier, lane as usize);
        self.range(at, 8, access, lane, Action::Update)?;
        self.barrier(self.block.rank, at, lane, true)?;
        let (rank, warp, pc) = (self.block.rank, self.warp, self.pc);
        let component = self.state.issuer_component(rank, warp, lane);
        if let Some(memory) = self.tensor_memory() {
            memory.issuer(warp, lane, || component).queue.push_back(Work::Commit { pc, barrier: at });
        }
        Ok(Flow::Next)
    }
}

impl AsyncState<'_> {
    /// The clocks' component of the products of a thread.
    fn issuer_component(&mut self, rank: u32, warp: u32, lane: u32) -> u32 {
        let issuers = self.blocks.get(rank as usize).map(|block| block.tensor.issuers.as_slice()).unwrap_or_default();
        let known = issuers.iter().find(|issuer| issuer.warp == warp && issuer.lane == lane);
        known.map(|issuer| issuer.component).unwrap_or_else(|| self.new_component())
    }

    /// The commits that a warp waits for: of which block, by which thread, how many before it.
    pub(super) fn awaited_commits(&self, is_awaited: impl Fn(u32, u32) -> bool) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (rank, block) in self.blocks.iter().enumerate() {
            for (number, issuer) in block.tensor.issuers.iter().enumerate() {
                for (place, work) in issuer.queue.iter().enumerate() {
                    if matches!(work, Work::Commit { barrier, .. } if is_awaited(rank as u32, *barrier)) {
                        found.push((rank, number, place));
                    }
                }
            }
        }
        found
    }

    /// Completes what a thread has started, up to one commit.
    pub(super) fn land_commit(&mut self, commit: (usize, usize, usize)) -> Landing {
        self.elsewhere(|state| state.land_commit_there(commit))
    }

    fn land_commit_there(&mut self, (rank, number, place): (usize, usize, usize)) -> Landing {
        for _ in 0..=place {
            let issuer = self.blocks.get_mut(rank).and_then(|block| block.tensor.issuers.get_mut(number));
            let Some(issuer) = issuer else { return Ok(()) };
            let (warp, lane, component) = (issuer.warp, issuer.lane, issuer.component);
            match issuer.queue.pop_front() {
                Some(Work::Product(product)) => self.complete((rank as u32, warp, component), lane, &product)?,
                Some(Work::Commit { pc, barrier }) => self.arrive_for((rank as u32, component), pc, barrier)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Computes a product.
    fn complete(&mut self, (rank, warp, component): (u32, u32, u32), lane: u32, product: &Product) -> Landing {
        let pc = product.pc;
        let fault = |kind| Err(Box::new(LandFault::Broken { rank, warp, lane, pc, kind }));
        let Some(shared) = self.shared.get(rank as usize) else { return Ok(()) };
        let tick = self.races.map_or(1, |races| {
            let races = &mut *races.borrow_mut();
            races.enter(rank);
            races.next_tick()
        });
        let who = Toucher { warp, lane, pc };
        for (operand, base) in product.operands() {
            let size = product.op.ty.bytes();
            for &(offset, len) in operand.ranges.iter().flatten() {
                let (at, len) = ((base + offset) as usize, len as usize);
                let checked = self.races.map_or(Ok(()), |races| {
                    let races = &mut *races.borrow_mut();
                    let checked = races.check_async(BulkAccess { who, known: &product.known }, at, len, false);
                    races.note_product_read((pc, component, tick), warp, at, len);
                    checked
                });
                if let Err(conflict) = checked {
                    return fault(FaultKind::Race { conflict, access: operand.access, touch: Touch::Read });
                }
                if shared.check_written(at, len).is_err() {
                    let is_unwritten = |byte: &usize| shared.check_written(at + byte, size).is_err();
                    let byte = (0..len).step_by(size).find(is_unwritten).unwrap_or(0);
                    let error = AccessError { fault: AccessFault::Uninitialized, lane, address: (at + byte) as u64 };
                    let (access, action) = (operand.access, Action::Read);
                    return fault(FaultKind::Access { error, access, shared: true, action });
                }
            }
        }
        let Some(block) = self.blocks.get_mut(rank as usize) else { return Ok(()) };
        let memory = &mut block.tensor;
        if product.accumulate
            && product.track
            && let Err(unwritten) = memory.check_written(product.area())
        {
            return fault(FaultKind::Async(Box::new(AsyncFault::Tensor(unwritten))));
        }
        let specials = (product.compute)(product, shared, memory);
        memory.specials.extend(specials.into_iter().map(|special| (pc, special)));
        memory.end_write(product.area(), Mark { pc, component, tick });
        Ok(())
    }

    /// The arrival of a commit.
    fn arrive_for(&mut self, (rank, component): (u32, u32), pc: Pc, address: u32) -> Landing {
        let tick = self.races.map_or(1, |races| races.borrow_mut().next_tick());
        let Some(barrier) = self.barrier(rank, address) else { return Ok(()) };
        barrier.current.see(component, tick);
        barrier.current.see_tensor(component, tick);
        match barrier.arrive() {
            Ok(completed) => self.woken |= completed,
            Err(overflow) => {
                let (count, bytes) = (barrier.count, barrier.bytes);
                return Err(AsyncState::late(
                    rank,
                    pc,
                    AsyncFault::BarrierOverflow { address, overflow, count, bytes },
                ));
            }
        }
        Ok(())
    }
}
