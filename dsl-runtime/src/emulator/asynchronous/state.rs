//! What the warps of a cluster share beside memory: mbarriers, copies under way, registers.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::fault::AsyncFault;
use super::mbarrier::Mbarrier;
use super::tensor_map::BoundMap;
use super::tensor_memory::{TensorFault, TensorMemory};
use super::transfer::{Source, Transfer, get_words, load_box, put_words};
use super::wgmma::WgmmaQueue;
use crate::emulator::exec::warp::FaultKind;
use crate::emulator::memory::{
    BulkAccess, COMPONENTS, Epoch, GlobalMemory, Knowledge, Region, SharedMemory, SharedRaces, Touch, Toucher,
};
use crate::emulator::op::Pc;
use crate::emulator::program::Program;

/// What a warp waits for, beside the barriers of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The phase of a parity of the mbarrier at an address.
    Mbarrier { address: u32, parity: u32 },
    /// Registers that other warpgroups must give back first.
    Registers { count: u32 },
    /// The barrier of the cluster.
    Cluster,
    /// Columns of tensor memory, of which so many are free.
    TensorMemory { columns: u32, free: u32 },
    /// The other warps of the warpgroup, which must issue a product too.
    Warpgroup,
}

/// What the warps of one block share.
#[derive(Debug)]
pub(crate) struct BlockState {
    /// By address.
    pub(crate) barriers: BTreeMap<u32, Mbarrier>,
    /// Warps that have not ended.
    pub(crate) running: u32,
    /// Registers of a thread of each warp.
    pub(crate) registers: Vec<u32>,
    /// Registers of one lane of a warp that no warp has.
    pub(crate) free_registers: u32,
    /// What each warpgroup did together: operation and addresses.
    steps: Vec<Vec<(Pc, [u32; 2])>>,
    /// How much of it each warp has done.
    done: Vec<usize>,
    /// The products of each warp.
    pub(crate) products: Vec<WgmmaQueue>,
    /// Of each warpgroup, the component of its products in the clocks, and the tick at which each was computed.
    pub(crate) computed: Vec<(Option<u32>, Vec<u32>)>,
    pub(crate) tensor: TensorMemory,
    /// What each thread of another block did here last, by an arrival or an access, and each copy from here: when and where.
    /// Several lanes at once are one more thread.
    visits: BTreeMap<u32, (Epoch, Pc)>,
}

/// What the warps of a cluster share.
pub(crate) struct AsyncState<'a> {
    pub(crate) global: GlobalMemory<'a>,
    pub(crate) shared: &'a [SharedMemory],
    pub(crate) maps: &'a [Option<BoundMap>],
    pub(crate) races: Option<&'a RefCell<SharedRaces>>,
    /// By rank.
    pub(crate) blocks: Vec<BlockState>,
    /// Copies under way, in the order of their start.
    pub(crate) transfers: Vec<Transfer>,
    /// Whether something happened that a waiting warp may wait for.
    pub(crate) woken: bool,
    pub(crate) cluster: ClusterBarrier,
    components: u32,
    /// Decides what happens early; 0 for as late as the kernel's waits allow.
    pace: u64,
    /// Copies that landed before anyone waited for them: rank, mbarrier, and where they were started.
    early: Vec<(u32, u32, Pc)>,
}

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterBarrier {
    /// Warps that have arrived and not ended.
    arrived: u32,
    /// Warps that have not ended.
    pub(crate) running: u32,
    /// Barriers that are complete.
    pub(crate) completed: u64,
    current: Knowledge,
    done: Knowledge,
}

/// Registers of a thread when the kernel starts: what `max_regs` says, or what the multiprocessor's 65536 give each
/// of `min_blocks` blocks (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
pub(crate) fn entry_registers(program: &Program) -> u32 {
    let threads = program.warps() * 32;
    let share = 65536 / (threads * program.min_blocks.unwrap_or(1).max(1)).max(1);
    let registers = program.max_regs.unwrap_or(share).min(share).min(255);
    registers / 8 * 8
}

impl BlockState {
    fn new(program: &Program) -> Self {
        let warps = program.warps() as usize;
        Self {
            barriers: BTreeMap::new(),
            running: program.warps(),
            registers: vec![entry_registers(program); warps],
            free_registers: 0,
            steps: vec![Vec::new(); warps.div_ceil(4)],
            done: vec![0; warps],
            products: (0..warps).map(|_| WgmmaQueue::default()).collect(),
            computed: vec![(None, Vec::new()); warps.div_ceil(4)],
            tensor: TensorMemory::default(),
            visits: BTreeMap::new(),
        }
    }

    /// A step that all four warps of a warpgroup take together: one that another has not taken is an error.
    pub(crate) fn step(&mut self, warp: u32, pc: Pc, addresses: [u32; 2]) -> Result<(), AsyncFault> {
        let (group, warp) = (warp as usize / 4, warp as usize);
        let (Some(steps), Some(done)) = (self.steps.get_mut(group), self.done.get_mut(warp)) else { return Ok(()) };
        let mine = (pc, addresses);
        match steps.get(*done) {
            None => steps.push(mine),
            Some(step) if *step == mine => {}
            Some(&(other, _)) => {
                let first = group * 4;
                let ahead = self.done.iter().skip(first).take(4).enumerate().max_by_key(|(_, done)| **done);
                let warp = first + ahead.map_or(0, |(index, _)| index);
                return Err(AsyncFault::Warpgroup { warp: warp as u32, other });
            }
        }
        *done += 1;
        Ok(())
    }

    /// A step that a warp has not taken although others of its warpgroup have.
    fn missing_step(&self) -> Option<(u32, Pc)> {
        self.done.iter().enumerate().find_map(|(warp, &done)| {
            let step = self.steps.get(warp / 4)?.get(done)?;
            Some((warp as u32, step.0))
        })
    }
}

/// Something wrong that shows when the blocks have ended, or when a copy lands.
#[derive(Debug)]
pub(crate) struct LateFault {
    pub(crate) rank: u32,
    pub(crate) warp: Option<u32>,
    pub(crate) pc: Pc,
    pub(crate) fault: AsyncFault,
}

/// Something wrong with what has landed.
#[derive(Debug)]
pub(crate) enum LandFault {
    Late(LateFault),
    /// An operation of a thread of a block broke a rule.
    Broken {
        rank: u32,
        warp: u32,
        lane: u32,
        pc: Pc,
        kind: FaultKind,
    },
}

impl LandFault {
    /// It as the fault of a lane that has started what landed at once.
    pub(crate) fn at(self, lane: u32) -> (u32, FaultKind) {
        let (pc, kind) = match self {
            Self::Late(late) => (late.pc, FaultKind::Async(Box::new(late.fault))),
            Self::Broken { pc, kind, .. } => (pc, kind),
        };
        (lane, FaultKind::At { pc, kind: Box::new(kind) })
    }
}

/// What became of something that has landed.
pub(crate) type Landing<T = ()> = Result<T, Box<LandFault>>;

impl<'a> AsyncState<'a> {
    pub(crate) fn new(
        program: &Program,
        global: GlobalMemory<'a>,
        shared: &'a [SharedMemory],
        maps: &'a [Option<BoundMap>],
        races: Option<&'a RefCell<SharedRaces>>,
    ) -> Self {
        let nothing = races.map(|races| races.borrow().nothing()).unwrap_or_default();
        let warps = program.warps() * shared.len() as u32;
        Self {
            global,
            shared,
            maps,
            races,
            blocks: shared.iter().map(|_| BlockState::new(program)).collect(),
            transfers: Vec::new(),
            woken: false,
            cluster: ClusterBarrier {
                running: warps,
                current: nothing.clone(),
                done: nothing,
                ..ClusterBarrier::default()
            },
            components: warps,
            pace: 0,
            early: Vec::new(),
        }
    }

    /// Sets how early things happen beside the threads. With 0 all wait for their wait; otherwise some happen where they
    /// are started and some on the way, by a sequence that the number starts.
    pub(crate) fn set_pace(&mut self, pace: u64) {
        self.pace = pace;
    }

    /// The next number of the sequence.
    fn step_pace(&mut self) -> u64 {
        // A linear congruential step (Knuth's constants); its upper bits are well mixed. The state stays odd, never 0.
        self.pace = self.pace.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_406) | 1;
        self.pace >> 32
    }

    /// Whether this is one of the occasions on which something happens early: one in four.
    pub(crate) fn is_early(&mut self) -> bool {
        self.pace != 0 && self.step_pace() >> 30 == 0
    }

    /// Lands the copies that were started last, so many of them.
    pub(crate) fn land_newest(&mut self, count: u32) -> Landing {
        for _ in 0..count {
            let Some(transfer) = self.transfers.pop() else { break };
            self.land_early(&transfer)?;
        }
        Ok(())
    }

    /// Now and then lands a copy that nobody waits for yet, whichever.
    pub(crate) fn land_some(&mut self) -> Landing {
        if !self.transfers.is_empty() && self.is_early() {
            let chosen = self.step_pace() as usize % self.transfers.len();
            let transfer = self.transfers.remove(chosen);
            self.land_early(&transfer)?;
        }
        Ok(())
    }

    fn land_early(&mut self, transfer: &Transfer) -> Landing {
        self.early.push((transfer.rank, transfer.barrier, transfer.pc));
        self.land(transfer)
    }

    /// Someone has waited for the copies of an mbarrier.
    pub(crate) fn waited(&mut self, rank: u32, barrier: u32) {
        self.early.retain(|&(other, address, _)| (other, address) != (rank, barrier));
    }

    /// The products of a warp.
    pub(crate) fn queue(&self, rank: u32, warp: usize) -> Option<&WgmmaQueue> {
        self.blocks.get(rank as usize)?.products.get(warp)
    }

    /// The mbarrier at an address of a block.
    pub(crate) fn barrier(&mut self, rank: u32, address: u32) -> Option<&mut Mbarrier> {
        self.blocks.get_mut(rank as usize)?.barriers.get_mut(&address)
    }

    /// A thread of another block arrives at an mbarrier of this one, or accesses its memory.
    pub(crate) fn comes_from_afar(&mut self, rank: u32, moment: Epoch, pc: Pc) {
        if let Some(block) = self.blocks.get_mut(rank as usize) {
            block.visits.insert(moment.thread(), (moment, pc));
        }
    }

    /// An arrival or an access of another block that no warp of the block knows of at its end: it might have come after.
    fn visit_at_the_end(&self) -> Option<LateFault> {
        let races = &mut *self.races?.borrow_mut();
        self.blocks.iter().zip(0..).find_map(|(block, rank)| {
            races.enter(rank);
            let warps = block.registers.len() as u32;
            let unseen =
                |(_, (moment, _)): &(&u32, &(Epoch, Pc))| !(0..warps).any(|warp| races.has_seen(warp, *moment));
            let (_, &(moment, pc)) = block.visits.iter().find(unseen)?;
            let from = moment.warp();
            if from >= warps * self.blocks.len() as u32 {
                return Some(LateFault { rank, warp: None, pc, fault: AsyncFault::SourceMayEnd { rank } });
            }
            let fault = AsyncFault::MayHaveEnded { rank };
            Some(LateFault { rank: from / warps, warp: Some(from % warps), pc, fault })
        })
    }

    /// The clocks' component of what copies complete at an mbarrier. When there are too many mbarriers, some share
    /// one: then a race between their copies may not be found.
    pub(crate) fn component(&mut self, rank: u32, address: u32) -> u32 {
        let next = self.components;
        let Some(barrier) = self.barrier(rank, address) else { return COMPONENTS - 1 };
        let component = *barrier.component.get_or_insert(next.min(COMPONENTS - 1));
        if component == next {
            self.components += 1;
        }
        component
    }

    /// The clocks' component of the products of a warpgroup.
    pub(crate) fn products_component(&mut self, rank: u32, group: usize) -> u32 {
        let next = self.components;
        let computed = self.blocks.get_mut(rank as usize).and_then(|block| block.computed.get_mut(group));
        let Some((component, _)) = computed else { return COMPONENTS - 1 };
        let component = *component.get_or_insert(next.min(COMPONENTS - 1));
        if component == next {
            self.components += 1;
        }
        component
    }

    /// A component of the clocks that nothing has; the last one is shared when there are too many.
    pub(super) fn new_component(&mut self) -> u32 {
        let component = self.components.min(COMPONENTS - 1);
        self.components += 1;
        component
    }

    pub(super) fn late(rank: u32, pc: Pc, fault: AsyncFault) -> Box<LandFault> {
        Box::new(LandFault::Late(LateFault { rank, warp: None, pc, fault }))
    }

    /// Lands one copy that a waiting warp waits for, or one commit, if there is any. `choose` picks one of so many.
    pub(crate) fn land_one(
        &mut self,
        is_awaited: impl Fn(u32, u32) -> bool,
        choose: impl FnOnce(usize) -> usize,
    ) -> Landing<bool> {
        let awaited = |transfer: &Transfer| is_awaited(transfer.rank, transfer.barrier);
        let count = self.transfers.iter().filter(|transfer| awaited(transfer)).count();
        let commits = self.awaited_commits(&is_awaited);
        if count + commits.len() == 0 {
            return Ok(false);
        }
        let chosen = choose(count + commits.len());
        if let Some(commit) = chosen.checked_sub(count).and_then(|index| commits.get(index)) {
            return self.land_commit(*commit).map(|()| true);
        }
        let found = self.transfers.iter().enumerate().filter(|(_, transfer)| awaited(transfer)).nth(chosen);
        let Some(index) = found.map(|(index, _)| index) else { return Ok(false) };
        let transfer = self.transfers.remove(index);
        self.land(&transfer)?;
        Ok(true)
    }

    /// What lands may be in another block than the warp that runs: its accesses are noted there, and those that follow
    /// where they were before.
    pub(super) fn elsewhere<T>(&mut self, landing: impl FnOnce(&mut Self) -> T) -> T {
        let place = self.races.map(|races| races.borrow().place());
        let result = landing(self);
        if let (Some(races), Some(place)) = (self.races, place) {
            races.borrow_mut().go_back(place);
        }
        result
    }

    fn land(&mut self, transfer: &Transfer) -> Landing {
        self.elsewhere(|state| state.land_there(transfer))
    }

    fn land_there(&mut self, transfer: &Transfer) -> Landing {
        let Transfer { pc, rank, barrier: address, bytes, destination, .. } = *transfer;
        let component = self.component(rank, address);
        let tick = self.races.map(|races| races.borrow_mut().next_tick());
        self.bring(transfer, (component, tick))?;
        if let (Some(races), Some(tick)) = (self.races, tick) {
            let races = &mut *races.borrow_mut();
            races.enter(rank);
            races.note_async_write((pc, component), destination as usize, bytes as usize, Some(tick));
        }
        let Some(barrier) = self.barrier(rank, address) else { return Ok(()) };
        barrier.current.see(component, tick.unwrap_or(0));
        match barrier.complete(bytes) {
            Ok(completed) => self.woken |= completed,
            Err(overflow) => {
                let fault =
                    AsyncFault::BarrierOverflow { address, overflow, count: barrier.count, bytes: barrier.bytes };
                return Err(Self::late(rank, pc, fault));
            }
        }
        Ok(())
    }

    /// Puts what a copy brings in its place.
    fn bring(&mut self, transfer: &Transfer, (component, tick): (u32, Option<u32>)) -> Landing {
        let Transfer { pc, rank, bytes, destination, .. } = *transfer;
        let Some(shared) = self.shared.get(rank as usize) else { return Ok(()) };
        match &transfer.source {
            Source::Box { map, coordinates } => {
                let Some(map) = self.maps.get(*map as usize).and_then(Option::as_ref) else { return Ok(()) };
                load_box(&self.global, shared, map, coordinates, destination);
            }
            Source::Value(content) => put_words(shared, destination, content),
            Source::Shared { rank: from, warp, lane, address, access, known } => {
                let (from, warp, lane, access) = (*from, *warp, *lane, *access);
                if self.blocks.get(from as usize).is_some_and(|block| block.running == 0) {
                    return Err(Self::late(from, pc, AsyncFault::SourceEnded { rank: from }));
                }
                if let (Some(races), Some(tick)) = (self.races, tick) {
                    let races = &mut *races.borrow_mut();
                    let (at, len) = (*address as usize, bytes as usize);
                    races.enter(from);
                    let checked =
                        races.check_async(BulkAccess { who: Toucher { warp, lane, pc }, known }, at, len, false);
                    races.note_product_read((pc, component, tick), warp, at, len);
                    checked.map_err(|conflict| {
                        let kind = FaultKind::Race { conflict, access, touch: Touch::Read };
                        Box::new(LandFault::Broken { rank: from, warp, lane, pc, kind })
                    })?;
                }
                if let (Some(block), Some(tick)) = (self.blocks.get_mut(from as usize), tick) {
                    let moment = Epoch::new(tick, pc, component, Epoch::TOGETHER);
                    block.visits.insert(moment.thread(), (moment, pc));
                }
                let Some(source) = self.shared.get(from as usize) else { return Ok(()) };
                put_words(shared, destination, &get_words(source, *address, bytes));
            }
        }
        shared.mark_written(destination as usize, bytes as usize);
        Ok(())
    }

    /// A warp arrives at the barrier of the cluster.
    pub(crate) fn arrive_at_cluster(&mut self, rank: u32, warp: u32) {
        if let Some(races) = self.races {
            let races = &mut *races.borrow_mut();
            races.enter(rank);
            races.release_to(warp, u64::MAX, &mut self.cluster.current);
        }
        self.cluster.arrived += 1;
        self.settle_cluster();
    }

    /// A warp has gone on from the barrier of the cluster.
    pub(crate) fn leave_cluster(&mut self, rank: u32, warp: u32) {
        if let Some(races) = self.races {
            let races = &mut *races.borrow_mut();
            races.enter(rank);
            races.acquire(warp, u64::MAX, &self.cluster.done);
        }
    }

    /// A warp has ended: the others do not wait for it any more.
    pub(crate) fn warp_ended(&mut self, rank: u32, has_arrived: bool) {
        if let Some(block) = self.blocks.get_mut(rank as usize) {
            block.running = block.running.saturating_sub(1);
        }
        self.cluster.running = self.cluster.running.saturating_sub(1);
        if has_arrived {
            self.cluster.arrived = self.cluster.arrived.saturating_sub(1);
        }
        self.settle_cluster();
    }

    fn settle_cluster(&mut self) {
        let cluster = &mut self.cluster;
        if cluster.arrived == 0 || cluster.arrived < cluster.running {
            return;
        }
        cluster.arrived = 0;
        cluster.completed += 1;
        cluster.done.join(&cluster.current);
        cluster.current.clear();
        self.woken = true;
    }

    /// What is wrong with what the blocks leave behind.
    pub(crate) fn leftovers(&self) -> Option<LateFault> {
        let unfinished = self.transfers.first().map(|transfer| LateFault {
            rank: transfer.rank,
            warp: None,
            pc: transfer.pc,
            fault: AsyncFault::NeverWaited,
        });
        let unawaited = || {
            let &(rank, _, pc) = self.early.first()?;
            Some(LateFault { rank, warp: None, pc, fault: AsyncFault::NeverWaited })
        };
        let left = unfinished.or_else(unawaited).or_else(|| {
            self.blocks.iter().enumerate().find_map(|(rank, block)| {
                let rank = rank as u32;
                if let Some((warp, pc)) = block.tensor.unfinished() {
                    return Some(LateFault { rank, warp: Some(warp), pc, fault: AsyncFault::NeverWaited });
                }
                if let Some((columns, pc)) = block.tensor.leak() {
                    let fault = AsyncFault::Tensor(TensorFault::Leak { columns });
                    return Some(LateFault { rank, warp: None, pc, fault });
                }
                let (warp, pc) = block.missing_step()?;
                let fault = AsyncFault::Warpgroup { warp, other: pc };
                Some(LateFault { rank, warp: Some(warp), pc, fault })
            })
        });
        left.or_else(|| self.visit_at_the_end())
    }
}
