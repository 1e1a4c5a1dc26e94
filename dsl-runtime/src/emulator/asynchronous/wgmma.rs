//! Products under way and their accumulators.
//!
//! A product is computed when the first warp of its warpgroup waits for it, 16 rows for each of the four warps,
//! which must all have issued it. Until a warp's own wait the registers of its result hold a mark: it names the
//! product and the register, moves with the value through loops and branches, and is looked for wherever the
//! value must not be used.

use std::collections::VecDeque;

use lacewing_core::atoms::WgmmaSpec;

use super::fault::AsyncFault;
use super::op::{OperandA, WgmmaOp};
use super::operand::Gather;
use super::product::{Tile, multiply};
use crate::emulator::exact::{ExactPart, ExactTile, Follower, Number};
use crate::emulator::exec::matrix::COLUMNS;
use crate::emulator::isa::{Isa, Vectorised, run_on};
use crate::emulator::lanes::{LANES, Reg, Registers};
use crate::emulator::memory::{Knowledge, SharedMemory};
use crate::emulator::op::Pc;

/// What lanes 2 and up of a marked register hold: a NaN that no operation makes.
const MARK: u32 = 0x7fa5_c39d;
/// What lane 0 holds, with the number of the register in its low bits.
const MARK_REGISTER: u32 = 0x7fa9_0000;

/// Puts the mark of a product's register.
fn mark(regs: &mut Registers<'_>, reg: Reg, ticket: u32, register: usize) {
    let mut lanes = [MARK; LANES];
    lanes[0] = MARK_REGISTER | register as u32;
    lanes[1] = ticket;
    regs.write(reg, lanes);
}

/// The product and the register that a mark names.
#[inline(always)]
pub(crate) fn marked(regs: &Registers<'_>, reg: Reg) -> Option<(u32, usize)> {
    if regs.lane::<u32>(reg, 2) != MARK {
        return None;
    }
    let lanes = regs.read::<u32>(reg);
    let [first, ticket, rest @ ..] = lanes;
    let is_mark = rest.iter().all(|lane| *lane == MARK) && first & 0xffff_0000 == MARK_REGISTER;
    is_mark.then_some((ticket, (first & 0xffff) as usize))
}

/// The sums of one warp: a tile of 16 rows for each eight columns.
#[derive(Debug)]
struct Accumulator {
    /// The last product that added to it, and the number of its group.
    ticket: u32,
    group: u64,
    issued: Pc,
    spec: &'static WgmmaSpec,
    tiles: Vec<Tile>,
    /// Their shadows, where they are asked for.
    exact: Option<ExactTile>,
}

/// One product under way.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) pc: Pc,
    /// Index of the operation in the program's table.
    pub(crate) table: u32,
    accumulator: u32,
    /// A from registers: 16 rows of k.
    a: Vec<f32>,
    a_safe: bool,
    /// The same with its shadows, where they are asked for.
    exact_a: Vec<Number>,
    pub(crate) a_base: u32,
    pub(crate) b_base: u32,
    /// What the warp knew when it issued the product.
    pub(crate) known: Knowledge,
}

/// What a warp has started.
#[derive(Debug, Default)]
pub(crate) struct WgmmaQueue {
    /// Products that are not computed.
    pending: VecDeque<Pending>,
    /// Where the products that the warp has not waited for were issued.
    unwaited: VecDeque<Pc>,
    accumulators: Vec<Accumulator>,
    next_ticket: u32,
    /// Products that were issued, those that are computed, and those that the warp has waited for.
    pub(crate) issued: u64,
    pub(crate) computed: u64,
    waited: u64,
    /// Elements that became infinite or NaN, until the warp's wait tells of them.
    specials: Vec<(Pc, Special)>,
}

/// Accumulators of completed products that are kept for later waits.
const KEPT: usize = 16;

/// An element that is not finite although it was: its lane, and what made it.
#[derive(Debug)]
pub(crate) struct Special {
    /// Row and column in the tile of 16 x 8.
    pub(crate) row: u32,
    pub(crate) column: u32,
    pub(crate) lane: u32,
    pub(crate) before: f32,
    pub(crate) result: f32,
    /// Its factors, k after k.
    pub(crate) factors: Vec<(f32, f32)>,
}

/// Where register `register` of lane `4 row + t` lies, by the atom's layout: tile, row of the tile for `row` 0, first column
/// in [`COLUMNS`]' order for `t` 0.
pub(crate) fn place(spec: &WgmmaSpec, register: usize) -> (usize, usize, usize) {
    let index = spec.d.tv.index(0, register);
    let (row, column) = (index % spec.shape[0], index / spec.shape[0]);
    let first = COLUMNS.iter().position(|&other| other == column % 8).unwrap_or(0);
    (column / 8, row, first)
}

impl WgmmaQueue {
    /// Where the oldest product that has not been waited for was issued.
    pub(crate) fn first_unwaited(&self) -> Option<Pc> {
        self.unwaited.front().copied()
    }

    /// The number of products that are behind a wait which leaves `groups` in flight.
    pub(crate) fn target(&self, groups: u32) -> u64 {
        self.issued.saturating_sub(u64::from(groups)).max(self.waited)
    }

    /// The warp has waited for so many products; what became infinite or NaN in them.
    pub(crate) fn waited_for(&mut self, target: u64) -> Vec<(Pc, Special)> {
        let count = target.saturating_sub(self.waited) as usize;
        self.unwaited.drain(..count.min(self.unwaited.len()));
        self.waited = self.waited.max(target);
        std::mem::take(&mut self.specials)
    }

    /// Which rule the use of a marked value breaks.
    pub(crate) fn blame(&self, ticket: u32) -> AsyncFault {
        match self.accumulators.iter().find(|accumulator| accumulator.ticket == ticket) {
            Some(found) if found.group >= self.waited => AsyncFault::InFlight { issued: found.issued },
            Some(found) => AsyncFault::NotTied { issued: found.issued },
            None => AsyncFault::HandedOn,
        }
    }

    /// Starts a product: takes what comes from registers, and marks the results.
    pub(crate) fn issue<I: Isa>(
        &mut self,
        regs: &mut Registers<'_>,
        op: &WgmmaOp,
        pending: Pending,
        (memory, follower): (&SharedMemory, Option<&Follower>),
    ) -> Result<(), AsyncFault> {
        let mut pending = pending;
        if let OperandA::Registers(fragments) = &op.a {
            let gather = Gather { memory, ty: op.ty, k: op.k };
            pending.a = vec![0.0; 16 * op.k];
            pending.a_safe = gather.fragments_of_a::<I>(regs, (fragments, op.spec), &mut pending.a);
            if let Some(follower) = follower {
                pending.exact_a = follower.fragments(regs, (fragments, op.spec), op.ty, op.k);
            }
        }
        let chained = op.c.first().and_then(|&c| marked(regs, c));
        let ticket = self.next_ticket;
        self.next_ticket = self.next_ticket.wrapping_add(1);
        let at = match chained {
            Some((earlier, _)) => {
                let found = self.accumulators.iter().position(|accumulator| accumulator.ticket == earlier);
                let whole = op.c.iter().enumerate().all(|(i, &c)| marked(regs, c) == Some((earlier, i)));
                match found.filter(|_| whole) {
                    Some(at) => at,
                    None => return Err(self.blame(earlier)),
                }
            }
            None => {
                let mut tiles = vec![[[0.0; 8]; 16]; op.n / 8];
                let mut exact = follower.map(|_| ExactTile::new(op.spec));
                for (register, &c) in op.c.iter().enumerate() {
                    if let Some((ticket, _)) = marked(regs, c) {
                        return Err(self.blame(ticket));
                    }
                    let (tile, first_row, column) = place(op.spec, register);
                    if let (Some(exact), Some(follower)) = (&mut exact, follower) {
                        follower.fill_tile(exact, c, register);
                    }
                    let lanes = regs.read::<f32>(c);
                    if let Some(tile) = tiles.get_mut(tile) {
                        for (row, quad) in lanes.as_chunks::<4>().0.iter().enumerate() {
                            tile[first_row + row][column..column + 4].copy_from_slice(quad);
                        }
                    }
                }
                self.make_room();
                self.accumulators.push(Accumulator { ticket, group: 0, issued: 0, spec: op.spec, tiles, exact });
                self.accumulators.len() - 1
            }
        };
        if let Some(accumulator) = self.accumulators.get_mut(at) {
            accumulator.ticket = ticket;
            accumulator.group = self.issued;
            accumulator.issued = pending.pc;
        }
        pending.accumulator = ticket;
        // Products that add to the same sums name them by their own number: the last one's counts.
        if let Some((earlier, _)) = chained {
            self.pending.iter_mut().filter(|other| other.accumulator == earlier).for_each(|o| o.accumulator = ticket);
        }
        self.unwaited.push_back(pending.pc);
        self.pending.push_back(pending);
        self.issued += 1;
        for (register, &d) in op.d.iter().enumerate() {
            mark(regs, d, ticket, register);
        }
        Ok(())
    }

    fn make_room(&mut self) {
        if self.accumulators.len() >= KEPT {
            let waited = self.waited;
            if let Some(oldest) = self.accumulators.iter().position(|accumulator| accumulator.group < waited) {
                self.accumulators.remove(oldest);
            }
        }
    }

    /// The oldest product that is not computed.
    pub(crate) fn take_oldest(&mut self) -> Option<Pending> {
        self.pending.pop_front()
    }

    /// Computes a product; with its shadows, where `part` is given.
    pub(crate) fn compute<I: Isa>(
        &mut self,
        op: &WgmmaOp,
        pending: &Pending,
        (memory, part): (&SharedMemory, Option<&ExactPart<'_>>),
        rows: usize,
        watch: bool,
    ) {
        self.computed += 1;
        let found = self.accumulators.iter_mut().find(|other| other.ticket == pending.accumulator);
        let Some(accumulator) = found else { return };
        let before = part.map(|_| accumulator.tiles.clone());
        let job = Job { op, pending, memory, rows, watch, tiles: &mut accumulator.tiles };
        if let Some(special) = run_on::<I, _>(job) {
            self.specials.push((pending.pc, special));
        }
        if let (Some(part), Some(before), Some(exact)) = (part, before, &mut accumulator.exact) {
            let from_memory = match &op.a {
                OperandA::Shared(operand) => Some(part.rows_of_a(operand, pending.a_base, rows)),
                OperandA::Registers(_) => None,
            };
            let a = from_memory.as_ref().unwrap_or(&pending.exact_a);
            part.settle(exact, (a, &op.b, pending.b_base), &before, &accumulator.tiles);
        }
    }

    /// Takes the value of a register out of a completed product; `None` when the register holds no mark.
    pub(crate) fn take(
        &mut self,
        regs: &mut Registers<'_>,
        (value, result): (Reg, Reg),
        groups: u32,
        follower: Option<&mut Follower>,
    ) -> Result<(), AsyncFault> {
        let Some((ticket, register)) = marked(regs, value) else {
            if let Some(follower) = follower {
                follower.pass_on(value, result);
            }
            let lanes = regs.read::<u32>(value);
            regs.write(result, lanes);
            return Ok(());
        };
        let waited = self.waited;
        let Some(found) = self.accumulators.iter_mut().rev().find(|accumulator| accumulator.ticket == ticket) else {
            return Err(AsyncFault::HandedOn);
        };
        if found.group >= waited {
            return Err(AsyncFault::LeftInFlight { issued: found.issued, groups });
        }
        let (tile, first_row, column) = place(found.spec, register);
        let mut lanes = [0.0_f32; LANES];
        if let Some(tile) = found.tiles.get(tile) {
            for (row, quad) in lanes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                quad.copy_from_slice(&tile[first_row + row][column..column + 4]);
            }
        }
        regs.write(result, lanes);
        if let (Some(exact), Some(follower)) = (&mut found.exact, follower) {
            follower.take_tile(exact, result, register);
        }
        Ok(())
    }
}

/// A product on its way to the micro-kernel.
struct Job<'a> {
    op: &'a WgmmaOp,
    pending: &'a Pending,
    memory: &'a SharedMemory,
    /// First of the warp's 16 rows.
    rows: usize,
    watch: bool,
    /// The sums, eight columns each.
    tiles: &'a mut [Tile],
}

impl Vectorised for Job<'_> {
    type Output = Option<Special>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Option<Special> {
        let Job { op, pending, memory, rows, watch, tiles } = self;
        let gather = Gather { memory, ty: op.ty, k: op.k };
        let mut from_memory = Vec::new();
        let (a, a_safe) = match &op.a {
            OperandA::Registers(_) => (&pending.a, pending.a_safe),
            OperandA::Shared(operand) => {
                from_memory.resize(16 * op.k, 0.0);
                let base = pending.a_base as usize;
                let safe = gather.rows_of_a::<I>(base, &operand.layout, rows, &mut from_memory);
                (&from_memory, safe)
            }
        };
        let mut b = vec![[0.0; 8]; op.k];
        let mut special = None;
        for (number, tile) in tiles.iter_mut().enumerate() {
            let base = pending.b_base as usize;
            let b_safe = gather.columns_of_b::<I>(base, &op.b.layout, 8 * number, &mut b);
            let before = if watch { *tile } else { [[0.0; 8]; 16] };
            multiply::<I>(tile, a, &b, a_safe && b_safe);
            if watch && special.is_none() && is_special(tile) {
                special = find_special(tile, &before, a, &b);
            }
        }
        special
    }
}

/// Whether some sum is infinite or NaN.
#[inline(always)]
pub(super) fn is_special(tile: &Tile) -> bool {
    let mut worst = [0_u32; 8];
    for row in tile {
        for (worst, value) in worst.iter_mut().zip(row) {
            *worst = (*worst).max(value.to_bits() & 0x7fff_ffff);
        }
    }
    worst.iter().any(|&bits| bits >= 0x7f80_0000)
}

#[cold]
#[inline(never)]
pub(super) fn find_special(tile: &Tile, before: &Tile, a: &[f32], b: &[[f32; 8]]) -> Option<Special> {
    let k = b.len();
    for (row, sums) in tile.iter().enumerate() {
        for (place, &result) in sums.iter().enumerate() {
            let was = before.get(row).and_then(|row| row.get(place)).copied().unwrap_or(0.0);
            if result.is_finite() || !was.is_finite() {
                continue;
            }
            let factors: Vec<(f32, f32)> =
                a.iter().skip(row * k).zip(b).map(|(&a, b)| (a, b.get(place).copied().unwrap_or(0.0))).collect();
            let made_of_nan = factors.iter().any(|(a, b)| a.is_nan() || b.is_nan());
            let made_of_infinity = factors.iter().any(|(a, b)| a.is_infinite() || b.is_infinite());
            if made_of_nan || !result.is_nan() && made_of_infinity {
                continue;
            }
            let column = COLUMNS.get(place).copied().unwrap_or(0);
            let lane = (4 * (row % 8) + column / 2) as u32;
            return Some(Special { row: row as u32, column: column as u32, lane, before: was, result, factors });
        }
    }
    None
}

impl Pending {
    pub(crate) fn new(pc: Pc, table: u32, (a_base, b_base): (u32, u32), known: Knowledge) -> Self {
        Self { pc, table, accumulator: 0, a: Vec::new(), a_safe: true, exact_a: Vec::new(), a_base, b_base, known }
    }
}
