//! What accesses cost: cycles of shared memory's banks, sectors of global memory.

use std::collections::BTreeMap;

use lacewing_core::{SourceLocation, Target};

use crate::emulator::asynchronous::op::{AsyncOp, TensorCopyOp};
use crate::emulator::asynchronous::tensor_map::BoundMap;
use crate::emulator::lanes::{LANES, Reg, Registers, half_of};
use crate::emulator::op::{Access, Op, Pc};
use crate::emulator::program::Program;

/// Which memory an access of [`LineCost`] goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Shared memory: the unit of cost is a cycle in which each bank serves one word.
    Shared,
    /// Global memory: the unit of cost is a sector (32 bytes on NVIDIA, 64 on AMD).
    Global,
}

/// What the accesses of one source line cost, by [`Checks::performance`](super::super::Checks::performance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCost {
    /// The access in the source.
    pub location: SourceLocation,
    /// Where it goes.
    pub space: Space,
    /// Accesses that warps executed.
    pub accesses: u64,
    /// Cycles or sectors that they took.
    pub cost: u64,
    /// What they would have taken without conflicts, or with all lanes side by side.
    pub least: u64,
    /// The largest number of words that one bank had to serve in one cycle's group of lanes; for
    /// global memory the largest ratio of sectors to the least, rounded up.
    pub degree: u64,
    /// Accesses to global memory of which every lane goes on where the access before stopped: one access of a vector
    /// could do the work of several.
    pub adjacent: u64,
    /// Of those, how many make a pair that starts at a multiple of its size, as a vector must.
    pub aligned: u64,
}

/// How often a branch of the source parted the lanes of a warp, by
/// [`Checks::performance`](super::super::Checks::performance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCost {
    /// The branch in the source.
    pub location: SourceLocation,
    /// How often warps came to it.
    pub executed: u64,
    /// How often some lanes went one way and some the other, so that the warp went both.
    pub divergent: u64,
}

/// What runs beside the threads, or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// Tensor copies to shared memory; their amount is in bytes.
    TensorLoad,
    /// Tensor copies from shared memory; their amount is in bytes.
    TensorStore,
    /// Products of warpgroups; their amount is in multiplications.
    Product,
    /// Waits for mbarriers and products; their amount is the most registers of a thread that hold accumulators across
    /// the wait.
    Wait,
}

/// What a source line starts beside the threads, or waits for, by
/// [`Checks::performance`](super::super::Checks::performance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkCost {
    /// The operation in the source.
    pub location: SourceLocation,
    /// What it does.
    pub work: Work,
    /// How often warps executed it.
    pub executed: u64,
    /// How much that was altogether, in the unit of its [`Work`].
    pub amount: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    accesses: u64,
    cost: u64,
    least: u64,
    degree: u64,
    adjacent: u64,
    aligned: u64,
}

/// The global access before, to see whether the next goes on from it.
struct Last {
    active: u32,
    bytes: u32,
    addresses: [u64; LANES],
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.accesses += other.accesses;
        self.cost += other.cost;
        self.least += other.least;
        self.degree = self.degree.max(other.degree);
        self.adjacent += other.adjacent;
        self.aligned += other.aligned;
    }
}

/// Costs by operation.
#[derive(Default)]
pub(crate) struct Traffic {
    costs: BTreeMap<Pc, Cost>,
    /// Executions of a branch, and those that parted the warp.
    branches: BTreeMap<Pc, (u64, u64)>,
    /// Executions and amounts of what runs beside the threads.
    work: BTreeMap<Pc, (Work, u64, u64)>,
    last: Option<Box<Last>>,
}

/// Groups of lanes that banks serve together, and the number of banks (PTX ISA and CUDA C++ guide:
/// 32 lanes of 4 bytes, halves of 8, quarters of 16; CDNA3: measured groups of `ds_read_b128`; gfx950
/// has 64 banks for reads).
fn groups(target: Target, bytes: u32, is_read: bool) -> (&'static [&'static [usize]], usize) {
    const ALL: &[&[usize]] = &[&[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
        30, 31,
    ]];
    const HALVES: &[&[usize]] = &[
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        &[16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31],
    ];
    const QUARTERS: &[&[usize]] = &[
        &[0, 1, 2, 3, 4, 5, 6, 7],
        &[8, 9, 10, 11, 12, 13, 14, 15],
        &[16, 17, 18, 19, 20, 21, 22, 23],
        &[24, 25, 26, 27, 28, 29, 30, 31],
    ];
    const READS_942: &[&[usize]] = &[
        &[0, 1, 2, 3, 20, 21, 22, 23],
        &[4, 5, 6, 7, 16, 17, 18, 19],
        &[8, 9, 10, 11, 28, 29, 30, 31],
        &[12, 13, 14, 15, 24, 25, 26, 27],
    ];
    const READS_950: &[&[usize]] = &[
        &[0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27],
        &[4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31],
    ];
    let wide_reads = target == Target::GFX950 && is_read;
    let lanes = match bytes {
        0..=4 => ALL,
        5..=8 if wide_reads => ALL,
        5..=8 => HALVES,
        _ if wide_reads => READS_950,
        _ if target.is_amd() && is_read => READS_942,
        _ => QUARTERS,
    };
    (lanes, if wide_reads { 64 } else { 32 })
}

/// Cycles of one group: the most words that one bank serves. Lanes that want one word share it.
fn cycles(words: &mut Vec<u32>, banks: usize) -> u64 {
    words.sort_unstable();
    words.dedup();
    let mut load = [0_u64; 64];
    for &word in words.iter() {
        if let Some(bank) = load.get_mut(word as usize % banks) {
            *bank += 1;
        }
    }
    load.into_iter().max().unwrap_or(0)
}

impl Traffic {
    fn add(&mut self, pc: Pc, cost: Cost) {
        self.costs.entry(pc).or_default().add(cost);
    }

    /// One access of half a wave, or a warp, to shared memory.
    #[inline(never)]
    pub(crate) fn shared(
        &mut self,
        target: Target,
        regs: &Registers<'_>,
        address: Reg,
        active: u64,
        access: &Access,
        (pc, is_read): (Pc, bool),
    ) {
        let (lanes, addresses) = (half_of(active, access.half), regs.read::<u32>(address));
        let (groups, banks) = groups(target, access.bytes, is_read);
        let mut total = Cost { accesses: 1, ..Cost::default() };
        for group in groups {
            let mut words = Vec::with_capacity(64);
            for &lane in group.iter().filter(|&&lane| lanes >> lane & 1 == 1) {
                let (first, last) = (addresses[lane] / 4, (addresses[lane] + access.bytes - 1) / 4);
                words.extend(first..=last);
            }
            total.group(&mut words, banks);
        }
        self.add(pc, total);
    }

    /// `ldmatrix` or `stmatrix` of so many matrices: eight rows of 16 bytes at a time.
    pub(crate) fn matrix(&mut self, regs: &Registers<'_>, (address, count): (Reg, usize), pc: Pc) {
        let addresses = regs.read::<u32>(address);
        let mut total = Cost { accesses: 1, ..Cost::default() };
        for rows in addresses.chunks(8).take(count) {
            let mut words: Vec<u32> = rows.iter().flat_map(|&row| row / 4..row / 4 + 4).collect();
            total.group(&mut words, 32);
        }
        self.add(pc, total);
    }

    /// One access of half a wave, or a warp, to global memory.
    #[inline(never)]
    pub(crate) fn global(
        &mut self,
        target: Target,
        regs: &Registers<'_>,
        address: Reg,
        active: u64,
        access: &Access,
        pc: Pc,
    ) {
        let (lanes, addresses) = (half_of(active, access.half), regs.read::<u64>(address));
        let shift = if target.is_amd() { 6 } else { 5 };
        let (mut sectors, mut bytes) = (Vec::with_capacity(64), Vec::with_capacity(LANES));
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
            let first = addresses[lane];
            sectors.extend(first >> shift..=(first + u64::from(access.bytes) - 1) >> shift);
            bytes.push(first);
        }
        sectors.sort_unstable();
        sectors.dedup();
        bytes.sort_unstable();
        bytes.dedup();
        let cost = sectors.len() as u64;
        let least = (bytes.len() as u64 * u64::from(access.bytes)).div_ceil(1 << shift);
        if least > 0 {
            // An access that starts inside a sector cannot help one more.
            let degree = cost.saturating_sub(1).max(least).div_ceil(least);
            let (adjacent, aligned) = self.follow(lanes, access.bytes, &addresses);
            self.add(pc, Cost { accesses: 1, cost, least, degree, adjacent, aligned });
        }
    }

    /// Whether an access goes on where the one before stopped, in every lane, and whether the two make one aligned
    /// vector.
    fn follow(&mut self, active: u32, bytes: u32, addresses: &[u64; LANES]) -> (u64, u64) {
        let size = u64::from(bytes);
        let all = |holds: &dyn Fn(usize) -> bool| (0..LANES).filter(|lane| active >> lane & 1 == 1).all(holds);
        let before = self.last.as_ref().filter(|last| last.active == active && last.bytes == bytes && bytes < 16);
        let adjacent = before.is_some_and(|last| all(&|lane| addresses[lane] == last.addresses[lane] + size));
        let aligned = adjacent && before.is_some_and(|last| all(&|lane| last.addresses[lane].is_multiple_of(2 * size)));
        self.last = Some(Box::new(Last { active, bytes, addresses: *addresses }));
        (u64::from(adjacent), u64::from(aligned))
    }

    /// One execution of an operation that starts something beside the threads, or waits for it.
    #[inline(never)]
    pub(crate) fn asynchronous(
        &mut self,
        program: &Program,
        maps: &[Option<BoundMap>],
        (table, pc): (u32, Pc),
        active: u64,
    ) {
        let bytes = |op: &TensorCopyOp| {
            let map = maps.get(op.map as usize).and_then(Option::as_ref);
            map.map_or(0, |map| u64::from(map.box_bytes())) * u64::from(active.count_ones())
        };
        let (work, amount) = match program.asynchronous.get(table as usize) {
            Some(AsyncOp::TensorLoad(op)) => (Work::TensorLoad, bytes(op)),
            Some(AsyncOp::TensorStore(op)) => (Work::TensorStore, bytes(op)),
            // A warp has 16 of the 64 rows.
            Some(AsyncOp::Wgmma(op)) => (Work::Product, 16 * (op.n * op.k) as u64),
            Some(AsyncOp::BarrierWait { .. } | AsyncOp::WgmmaWait { .. }) => {
                let held = program.held.binary_search_by_key(&pc, |(pc, _)| *pc).ok();
                (Work::Wait, held.and_then(|at| program.held.get(at)).map_or(0, |(_, held)| u64::from(*held)))
            }
            _ => return,
        };
        self.add_work(pc, (work, 1, amount));
    }

    fn add_work(&mut self, pc: Pc, (work, executed, amount): (Work, u64, u64)) {
        let all = self.work.entry(pc).or_insert((work, 0, 0));
        all.1 += executed;
        all.2 = if work == Work::Wait { all.2.max(amount) } else { all.2 + amount };
    }

    /// What runs beside the threads by source line, in the order of the source.
    pub(crate) fn work(&self, program: &Program) -> Vec<WorkCost> {
        let mut lines: BTreeMap<(String, u32, u32, Work), WorkCost> = BTreeMap::new();
        for (&pc, &(work, executed, amount)) in &self.work {
            let Some(location) = program.place(pc).location else { continue };
            let key = (location.file.clone(), location.line, location.column, work);
            let line = lines.entry(key).or_insert(WorkCost { location, work, executed: 0, amount: 0 });
            line.executed += executed;
            line.amount = if work == Work::Wait { line.amount.max(amount) } else { line.amount + amount };
        }
        lines.into_values().collect()
    }

    /// One execution of a branch by lanes of which those of `holds` take it.
    pub(crate) fn branch(&mut self, pc: Pc, active: u64, holds: u64) {
        let (executed, divergent) = self.branches.entry(pc).or_default();
        *executed += 1;
        *divergent += u64::from(active & holds != 0 && active & !holds != 0);
    }

    /// Branches by source line, those that part most warps first.
    pub(crate) fn branches(&self, program: &Program) -> Vec<BranchCost> {
        let mut lines: BTreeMap<(String, u32, u32), BranchCost> = BTreeMap::new();
        for (&pc, &(executed, divergent)) in &self.branches {
            let Some(location) = program.place(pc).location else { continue };
            let key = (location.file.clone(), location.line, location.column);
            let line = lines.entry(key).or_insert(BranchCost { location, executed: 0, divergent: 0 });
            line.executed += executed;
            line.divergent += divergent;
        }
        let mut lines: Vec<BranchCost> = lines.into_values().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.divergent));
        lines
    }

    pub(crate) fn merge(&mut self, other: &mut Self) {
        for (pc, cost) in std::mem::take(&mut other.costs) {
            self.add(pc, cost);
        }
        for (pc, work) in std::mem::take(&mut other.work) {
            self.add_work(pc, work);
        }
        for (pc, (executed, divergent)) in std::mem::take(&mut other.branches) {
            let all = self.branches.entry(pc).or_default();
            all.0 += executed;
            all.1 += divergent;
        }
    }

    /// By source line, the most expensive first.
    pub(crate) fn lines(&self, program: &Program) -> Vec<LineCost> {
        let mut lines: BTreeMap<(String, u32, u32, Space), (SourceLocation, Cost)> = BTreeMap::new();
        for (&pc, &cost) in &self.costs {
            let Some(location) = program.place(pc).location else { continue };
            let global = matches!(program.ops.get(pc as usize), Some(Op::LoadGlobal { .. } | Op::StoreGlobal { .. }));
            let space = if global { Space::Global } else { Space::Shared };
            let key = (location.file.to_string(), location.line, location.column, space);
            lines.entry(key).or_insert_with(|| (location, Cost::default())).1.add(cost);
        }
        let mut lines: Vec<LineCost> = lines
            .into_iter()
            .map(|((.., space), (location, cost))| {
                let Cost { accesses, cost, least, degree, adjacent, aligned } = cost;
                LineCost { location, space, accesses, cost, least, degree, adjacent, aligned }
            })
            .collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.cost - line.least));
        lines
    }
}

impl Cost {
    /// Adds the cycles of one group of lanes.
    fn group(&mut self, words: &mut Vec<u32>, banks: usize) {
        let degree = cycles(words, banks);
        self.cost += degree;
        self.least += (words.len() as u64).div_ceil(banks as u64);
        self.degree = self.degree.max(degree);
    }
}
