//! One operation, before and after it runs.

use super::format::{self, Format};
use super::memory::MemoryCell;
use super::{
    Cell, ExactMemory, Follower, Inexact, Kind, Loaded, Moved, Number, Origin, Predicted, SLOT, explains, outweighs,
    raw, shared_key, spot,
};
use crate::emulator::Checks;
use crate::emulator::asynchronous::op::{AsyncOp, PeerOp};
use crate::emulator::asynchronous::tcgen05::TensorOp;
use crate::emulator::exec::collective::source_lane;
use crate::emulator::exec::copy::destinations;
use crate::emulator::exec::elementwise::BinaryOp;
use crate::emulator::exec::numbers::loop_around;
use crate::emulator::exec::warp::FaultKind;
use crate::emulator::lanes::{LANES, Reg, Registers, half_of};
use crate::emulator::numeric::math;
use crate::emulator::op::{Access, AtomicKind, AtomicOp, AtomicType, CopyOp, Op, Pc};
use crate::emulator::program::Program;

/// An operation that is about to run, or has run.
pub(crate) struct Now<'a, 'r> {
    pub(crate) program: &'a Program,
    pub(crate) regs: &'a Registers<'r>,
    pub(crate) memory: &'a ExactMemory,
    pub(crate) checks: &'a Checks,
    /// The block's number in its cluster.
    pub(crate) rank: u32,
    pub(crate) pc: Pc,
    pub(crate) mask: u64,
}

/// A store that has yet to happen.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) key: u64,
    pub(super) bytes: u32,
    pub(super) known: Vec<(u32, MemoryCell)>,
}

/// An atomic on a float that has yet to happen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Updated {
    pub(super) key: u64,
    /// Where the old value comes to lie.
    pub(super) at: u32,
    pub(super) format: Format,
    pub(super) combine: fn(f64, f64) -> f64,
    pub(super) operand: Number,
    pub(super) lane: u32,
    pub(super) is_global: bool,
}

fn lanes(bits: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| bits >> lane & 1 == 1)
}

/// The lanes of a warp that break a rule of exactness.
type Broken = Option<(u32, FaultKind)>;

impl Follower {
    /// Predicts what the operation will give, and tests the addresses and values that leave the registers.
    #[inline(never)]
    pub(crate) fn before(&mut self, now: &Now<'_, '_>) -> Broken {
        let op = now.program.ops.get(now.pc as usize)?;
        self.pending.pc = now.pc;
        let floats = now.checks.shadow;
        match op.general() {
            Op::Unary { op, d, a } => {
                self.pending.cleared.push((d, op.slots().0));
                match format::unary(op) {
                    Some((from, part, to, f)) if floats => {
                        self.compute(now, (d, 0, to), &[(a, from, part)], &|x| f(x[0]));
                    }
                    _ => self.convert_integer(now, op, d, a),
                }
            }
            Op::Binary { op: BinaryOp::PackBf16, d, a, b } if floats => {
                self.pending.cleared.push((d, 1));
                self.compute(now, (d, 0, Format::Bf16), &[(a, Format::F32, 0)], &|x| x[0]);
                self.compute(now, (d, 2, Format::Bf16), &[(b, Format::F32, 0)], &|x| x[0]);
            }
            Op::PackF16 { d, low, high } => {
                self.pending.cleared.push((d, 1));
                if floats {
                    self.compute(now, (d, 0, Format::F16), &[(low, Format::F32, 0)], &|x| x[0]);
                    self.compute(now, (d, 2, Format::F16), &[(high, Format::F32, 0)], &|x| x[0]);
                }
            }
            Op::F16LowToF32 { d, a } | Op::F16HighToF32 { d, a } => {
                self.pending.cleared.push((d, 1));
                if floats {
                    let part = if matches!(op, Op::F16LowToF32 { .. }) { 0 } else { 2 };
                    self.compute(now, (d, 0, Format::F32), &[(a, Format::F16, part)], &|x| x[0]);
                }
            }
            Op::Binary { op, d, a, b } => {
                self.pending.cleared.push((d, op.slots()));
                match format::binary(op) {
                    Some((format, f)) if floats => {
                        self.compute(now, (d, 0, format), &[(a, format, 0), (b, format, 0)], &|x| f(x[0], x[1]));
                    }
                    Some(_) => {}
                    None => self.binary_bits(now, op, (d, a, b)),
                }
            }
            Op::Index { op, signed, d, a, b } => {
                self.pending.cleared.push((d, op.slots()));
                self.index(now, (op, signed), (d, a, b));
            }
            Op::FmaF32 { d, a, b, c } | Op::FmaOdd { d, a, b, c } => self.fma(now, Format::F32, d, [a, b, c]),
            Op::FmaF64 { d, a, b, c } => self.fma(now, Format::F64, d, [a, b, c]),
            Op::Divide { op, d, .. } => self.pending.cleared.push((d, op.slots())),
            Op::Select32 { half, d, mask, a, b } => {
                self.pending.cleared.push((d, 1));
                let choice = half_of(now.regs.mask(mask), half);
                for lane in 0..LANES {
                    let from = if choice >> lane & 1 == 1 { a } else { b };
                    self.carry(spot(from, lane, 4, 0), spot(d, lane, 4, 0), 4);
                }
            }
            Op::Select64 { half, d, mask, a, b } => {
                self.pending.cleared.push((d, 2));
                let choice = half_of(now.regs.mask(mask), half);
                for lane in 0..LANES {
                    let from = if choice >> lane & 1 == 1 { a } else { b };
                    self.carry(spot(from, lane, 8, 0), spot(d, lane, 8, 0), 8);
                }
            }
            Op::JoinWords { d, .. } | Op::SplitWords { d, .. } => self.pending.cleared.push((d, 2)),
            Op::Address64 { d, base, index, scale } => self.address(now, 8, (d, base, index), scale),
            Op::Address32 { d, base, index, scale } => self.address(now, 4, (d, base, index), scale),
            Op::Move { d, a, count } => {
                self.pending.cleared.push((d, count));
                for slot in 0..count {
                    self.carry(SLOT * (a + slot), SLOT * (d + slot), SLOT);
                }
            }
            Op::MoveMasked { half, d, a, count } => {
                for lane in lanes(half_of(now.mask, half)) {
                    for slot in 0..count {
                        self.replace(spot(a + slot, lane, 4, 0), spot(d + slot, lane, 4, 0), 4);
                    }
                }
            }
            Op::MoveMasked64 { half, d, a, count } => {
                for lane in lanes(half_of(now.mask, half)) {
                    for pair in 0..count {
                        self.replace(spot(a + 2 * pair, lane, 8, 0), spot(d + 2 * pair, lane, 8, 0), 8);
                    }
                }
            }
            Op::LoadGlobal { d, address, mask, access } => {
                return self.load(now, d, address, now.mask & now.regs.mask(mask), (access, Home::Global));
            }
            Op::LoadShared { d, address, mask, access } => {
                return self.load(now, d, address, now.mask & now.regs.mask(mask), (access, Home::Block(now.rank)));
            }
            Op::StoreGlobal { value, address, mask, access } => {
                return self.store(now, value, address, now.mask & now.regs.mask(mask), (access, Home::Global));
            }
            Op::StoreShared { value, address, mask, access } => {
                return self.store(
                    now,
                    value,
                    address,
                    now.mask & now.regs.mask(mask),
                    (access, Home::Block(now.rank)),
                );
            }
            Op::Atomic { table } => {
                let op = now.program.atomic(table);
                let home = if op.shared { Home::Block(now.rank) } else { Home::Global };
                return self.atomic(now, op, home);
            }
            Op::CopyAsync { table } => return self.copy_async(now, now.program.copy(table)),
            Op::LoadMatrix { table } => return self.load_matrix(now, now.program.matrix_load(table)),
            Op::StoreMatrix { table } => return self.store_matrix(now, now.program.matrix_store(table)),
            Op::Mma { table } => self.mma(now, now.program.mma(table)),
            Op::Mfma { table } => self.mfma(now, now.program.mfma(table)),
            Op::Atom { table } => self.atom(now, now.program.atom(table)),
            Op::ShuffleXor { d, a, distance } => {
                self.pending.cleared.push((d, 1));
                for lane in 0..LANES {
                    let source = (lane ^ distance as usize) % LANES;
                    self.carry(spot(a, source, 4, 0), spot(d, lane, 4, 0), 4);
                }
            }
            Op::Shuffle { mode, wave, d, a, index } => {
                let width = if wave { 64 } else { 32 };
                self.pending.cleared.push((d, width as u32 / 32));
                for lane in 0..width {
                    let distance = now.regs.lane::<u32>(index + (lane / 32) as u32, lane % 32);
                    let source = source_lane(mode, lane, distance, width);
                    let from = spot(a + (source / 32) as u32, source % 32, 4, 0);
                    self.carry(from, spot(d + (lane / 32) as u32, lane % 32, 4, 0), 4);
                }
            }
            Op::Ballot { wave, d, .. } => self.pending.cleared.push((d, if wave { 4 } else { 2 })),
            Op::For { kind, wave, iv, .. } | Op::Next { kind, wave, iv, .. } => {
                self.pending.cleared.push((iv, kind.slots() << u32::from(wave)));
            }
            Op::Async { table } => {
                let op = now.program.asynchronous.get(table as usize)?;
                return self.asynchronous(now, op);
            }
            _ => {}
        }
        None
    }

    /// Compares what the operation gave with what was predicted.
    #[inline(never)]
    pub(crate) fn after(&mut self, now: &Now<'_, '_>) -> Broken {
        let mut pending = std::mem::take(&mut self.pending);
        for (first, count) in pending.cleared.drain(..) {
            self.forget(first, count);
        }
        for (at, bytes) in pending.emptied.drain(..) {
            self.unset(at, bytes);
        }
        for moved in pending.moved.drain(..) {
            self.set(moved.at, moved.width.into(), moved.cell);
        }
        for loaded in pending.loaded.drain(..) {
            self.take_loaded(now.regs, now.memory, loaded);
        }
        for predicted in pending.predicted.drain(..) {
            self.settle(now, pending.pc, &predicted);
        }
        for Stored { key, bytes, known } in pending.stored.drain(..) {
            now.memory.put(key, bytes, known);
        }
        let broken = self.settle_updates(now, &mut pending);
        self.pending = pending;
        broken
    }

    /// Gives a result its cell: with the origin of its error, if it is too far from the shadow.
    fn settle(&mut self, now: &Now<'_, '_>, pc: Pc, predicted: &Predicted) {
        let Predicted { at, format, exact, digits, origin, contribution, lane, .. } = *predicted;
        let value = format.value(raw(now.regs, at, format.width()));
        let digits = digits.min(format.digits());
        let mut cell = Cell::float(exact, 0, digits, format);
        if now.checks.shadow_bound.is_exceeded([value, exact], digits) {
            let error = (value - exact).abs();
            // An operand's error explains that of the result when the result would change by as much without it.
            let explained = origin != 0 && explains(contribution, error);
            cell.origin = if explained {
                origin
            } else {
                let half = (u32::from(lane) / 32) as u8;
                now.memory.note(Origin {
                    pc,
                    lane: lane.into(),
                    warp: self.warp,
                    operands: predicted.operands.iter().take(predicted.count.into()).copied().collect(),
                    result: [value, exact],
                    around: loop_around(now.program, now.regs, pc, half, usize::from(lane) % LANES),
                })
            };
        }
        let says_something = value != exact || cell.origin != 0 || digits < format.digits();
        self.set(at, format.width(), if says_something { cell } else { Cell::NOTHING });
    }

    /// Predicts a float for each active lane.
    fn compute(
        &mut self,
        now: &Now<'_, '_>,
        (d, part, out): (Reg, u32, Format),
        operands: &[(Reg, Format, u32)],
        f: &dyn Fn(&[f64]) -> f64,
    ) {
        let half = now.program.half(now.pc);
        for lane in lanes(half_of(now.mask, half)) {
            let mut numbers = [Number { value: 0.0, exact: 0.0, origin: 0, digits: u8::MAX }; 3];
            for (number, &(reg, format, part)) in numbers.iter_mut().zip(operands) {
                *number = self.number(now.regs, spot(reg, lane, format.width(), part), format);
            }
            let exacts = numbers.map(|number| number.exact);
            let exact = f(&exacts);
            let mut worst = (0, 0.0);
            for (index, number) in numbers.iter().enumerate().filter(|(_, number)| number.origin != 0) {
                let mut changed = exacts;
                changed[index] = number.value;
                let contribution = (f(&changed) - exact).abs();
                if worst.0 == 0 || outweighs(contribution, worst.1) {
                    worst = (number.origin, contribution);
                }
            }
            self.pending.predicted.push(Predicted {
                at: spot(d, lane, out.width(), part),
                format: out,
                exact,
                operands: numbers.map(|number| [number.value, number.exact]),
                count: operands.len() as u8,
                origin: worst.0,
                contribution: worst.1,
                digits: numbers.iter().map(|number| number.digits).min().unwrap_or(u8::MAX),
                lane: lane as u8 + 32 * half,
            });
        }
    }

    fn fma(&mut self, now: &Now<'_, '_>, format: Format, d: Reg, operands: [Reg; 3]) {
        self.pending.cleared.push((d, format.width().div_ceil(4)));
        if now.checks.shadow {
            let operands = operands.map(|reg| (reg, format, 0));
            self.compute(now, (d, 0, format), &operands, &|x| x[0] * x[1] + x[2]);
        }
    }

    /// Operations on the bits of words: those that only move bytes take what is known along.
    fn binary_bits(&mut self, now: &Now<'_, '_>, op: BinaryOp, (d, a, b): (Reg, Reg, Reg)) {
        match op {
            BinaryOp::Pack16 => {
                for lane in 0..LANES {
                    self.carry(spot(a, lane, 4, 0), spot(d, lane, 4, 0), 2);
                    self.carry(spot(b, lane, 4, 0), spot(d, lane, 4, 2), 2);
                }
            }
            BinaryOp::Pack8 => {
                for lane in 0..LANES {
                    self.carry(spot(a, lane, 4, 0), spot(d, lane, 4, 0), 1);
                    self.carry(spot(b, lane, 4, 0), spot(d, lane, 4, 1), 1);
                }
            }
            BinaryOp::ShrU32 => {
                for lane in 0..LANES {
                    let shift = now.regs.lane::<u32>(b, lane);
                    if shift < 32 && shift.is_multiple_of(8) {
                        self.carry(spot(a, lane, 4, shift / 8), spot(d, lane, 4, 0), 4 - shift / 8);
                    }
                }
            }
            _ => self.wide_index(now, op, (d, a, b)),
        }
    }

    /// Takes what is known of some bytes to others; nothing of them is forgotten here.
    pub(super) fn carry(&mut self, from: u32, to: u32, bytes: u32) {
        if self.rows.get((from / SLOT) as usize).is_none_or(|row| row.width == 0) {
            return;
        }
        let mut offset = 0;
        while offset < bytes {
            match self.get_any(from + offset) {
                Some((width, cell)) => {
                    if offset + width <= bytes && (to + offset).is_multiple_of(width) {
                        self.pending.moved.push(Moved { at: to + offset, width: width as u8, cell });
                    }
                    offset += width;
                }
                None => offset += 1,
            }
        }
    }

    /// [`Self::carry`] to bytes of a value whose other lanes stay.
    fn replace(&mut self, from: u32, to: u32, bytes: u32) {
        self.pending.emptied.push((to, bytes));
        self.carry(from, to, bytes);
    }

    /// An address that is not what its index says.
    fn wild_address(&self, now: &Now<'_, '_>, address: Reg, width: u32, active: u32, half: u8) -> Broken {
        if self.rows.get(address as usize..).is_none_or(|rows| rows.iter().take(2).all(|row| row.width == 0)) {
            return None;
        }
        let lane = lanes(active).find(|&lane| {
            self.get(spot(address, lane, width, 0), width).is_some_and(|cell| cell.kind == Kind::Integer)
        })?;
        self.wild(now, spot(address, lane, width, 0), width, lane as u32 + 32 * u32::from(half))
    }

    /// The report of an index or address that wrapped.
    pub(super) fn wild(&self, now: &Now<'_, '_>, at: u32, width: u32, lane: u32) -> Broken {
        let cell = self.get(at, width)?;
        let exact = cell.as_integer()?;
        let origin = now.memory.origin(cell.origin)?;
        let value = raw(now.regs, at, width);
        let value = if width == 8 { value as i64 as f64 } else { f64::from(value as u32 as i32) };
        let shown = Inexact { origin, shown: now.pc, value: [value, exact as f64], is_index: true };
        Some((lane, FaultKind::Inexact(Box::new(shown))))
    }

    fn load(&mut self, now: &Now<'_, '_>, d: Reg, address: Reg, active: u64, (access, home): (u32, Home)) -> Broken {
        let access = now.program.access(access);
        let active = half_of(active, access.half);
        let broken = self.wild_address(now, address, home.width(), active, access.half);
        if broken.is_some() {
            return broken;
        }
        for lane in lanes(active) {
            let key = home.key(now.regs, address, lane);
            for (at, offset, bytes) in pieces(d, lane, access) {
                if now.checks.shadow {
                    self.pending.loaded.push(Loaded { at, key: key + u64::from(offset), bytes });
                } else {
                    self.pending.emptied.push((at, bytes));
                }
            }
        }
        None
    }

    fn store(
        &mut self,
        now: &Now<'_, '_>,
        value: Reg,
        address: Reg,
        active: u64,
        (access, home): (u32, Home),
    ) -> Broken {
        let access = now.program.access(access);
        let active = half_of(active, access.half);
        let broken = self.wild_address(now, address, home.width(), active, access.half);
        if broken.is_some() || !now.checks.shadow {
            return broken;
        }
        for lane in lanes(active) {
            let key = home.key(now.regs, address, lane);
            let mut known = Vec::new();
            for (at, offset, bytes) in pieces(value, lane, access) {
                known.extend(self.known(now.regs, at, bytes).into_iter().map(|(byte, cell)| (offset + byte, cell)));
            }
            if home == Home::Global {
                let broken = known.iter().find_map(|(_, cell)| leaves(now, cell));
                if broken.is_some() {
                    return broken;
                }
            }
            self.pending.stored.push(Stored { key, bytes: access.bytes, known });
        }
        None
    }

    fn atomic(&mut self, now: &Now<'_, '_>, op: &AtomicOp, home: Home) -> Broken {
        let access = now.program.access(op.access);
        let active = half_of(now.mask, access.half);
        let broken = self.wild_address(now, op.address, home.width(), active, access.half);
        if broken.is_some() {
            return broken;
        }
        let format = match op.ty {
            AtomicType::Integer => None,
            AtomicType::F16 => Some(Format::F16),
            AtomicType::Bf16 => Some(Format::Bf16),
            AtomicType::F32 => Some(Format::F32),
            AtomicType::F64 => Some(Format::F64),
        };
        let combine: Option<fn(f64, f64) -> f64> = match op.kind {
            AtomicKind::AddF => Some(|x, y| x + y),
            AtomicKind::MaxF => Some(math::maxnum_f64),
            AtomicKind::MinF => Some(math::minnum_f64),
            _ => None,
        };
        for lane in lanes(active) {
            for (at, _, bytes) in pieces(op.d, lane, access) {
                self.pending.emptied.push((at, bytes));
            }
            if !now.checks.shadow {
                continue;
            }
            let key = home.key(now.regs, op.address, lane);
            let (Some(format), Some(combine)) = (format, combine) else {
                // Whatever it leaves there, it is no float that was followed.
                self.pending.stored.push(Stored { key, bytes: access.bytes, known: Vec::new() });
                continue;
            };
            let operand = self.number(now.regs, spot(op.value, lane, format.width(), 0), format);
            let (at, is_global) = (spot(op.d, lane, format.width(), 0), home == Home::Global);
            let lane = lane as u32 + 32 * u32::from(access.half);
            self.pending.updated.push(Updated { key, at, format, combine, operand, lane, is_global });
        }
        None
    }

    /// Shadows of what atomics have left in memory, lane after lane as they ran.
    pub(super) fn settle_updates(&mut self, now: &Now<'_, '_>, pending: &mut super::Pending) -> Broken {
        let (pc, mut broken) = (pending.pc, None);
        for updated in pending.updated.drain(..) {
            let Updated { key, at, format, combine, operand, lane, is_global } = updated;
            let bits = raw(now.regs, at, format.width());
            let old = format.value(bits);
            let width = format.width() as u8;
            let known = now.memory.get(key).filter(|known| known.width == width && known.bits == bits);
            let before = known.map(|known| known.cell).and_then(|cell| Some((cell.as_float()?, cell)));
            let (old_exact, old_origin, old_digits) =
                before.map_or((old, 0, format.digits()), |(exact, cell)| (exact, cell.origin, cell.digits));
            if let Some((_, cell)) = before {
                self.set(at, width.into(), cell);
            }
            let (bits, exact) = (format.bits(combine(old, operand.value)), combine(old_exact, operand.exact));
            let value = format.value(bits);
            let digits = old_digits.min(operand.digits).min(format.digits());
            let mut cell = Cell::float(exact, 0, digits, format);
            if now.checks.shadow_bound.is_exceeded([value, exact], digits) {
                cell.origin = if old_origin.max(operand.origin) > 0 {
                    old_origin.max(operand.origin)
                } else {
                    let operands = vec![[old, old_exact], [operand.value, operand.exact]];
                    let result = [value, exact];
                    now.memory.note(Origin { pc, lane, warp: self.warp, operands, result, around: None })
                };
            }
            let known = MemoryCell { cell, width, bits };
            now.memory.put(key, format.width(), [(0, known)]);
            if is_global && broken.is_none() {
                broken = leaves(&Now { pc, ..*now }, &known);
            }
        }
        broken
    }

    fn copy_async(&mut self, now: &Now<'_, '_>, op: &CopyOp) -> Broken {
        let to = now.program.access(op.to);
        let active = half_of(now.mask, op.half);
        let valid = half_of(now.regs.mask(op.valid), op.half);
        let broken = self
            .wild_address(now, op.source, 8, active & valid, op.half)
            .or_else(|| self.wild_address(now, op.destination, 4, active, op.half));
        if broken.is_some() || !now.checks.shadow {
            return broken;
        }
        // A destination that is no copy's is the copy's own report.
        let destination = destinations(now.regs, op, now.mask).ok()?;
        for lane in lanes(active) {
            // It lands later; until then nothing may read there, and what is read must have the bits of the source.
            let key = shared_key(now.rank, destination[lane].into());
            let source = now.regs.lane::<u64>(op.source, lane);
            let known = if valid >> lane & 1 == 1 { now.memory.known(source, to.bytes) } else { Vec::new() };
            self.pending.stored.push(Stored { key, bytes: to.bytes, known });
        }
        None
    }

    fn asynchronous(&mut self, now: &Now<'_, '_>, op: &AsyncOp) -> Broken {
        match op {
            AsyncOp::Uniform { d, a, halves } => {
                for &d in d.iter().take((*halves).into()) {
                    self.pending.cleared.push((d, 1));
                    (0..LANES).for_each(|lane| self.carry(spot(a[0], 0, 4, 0), spot(d, lane, 4, 0), 4));
                }
                None
            }
            AsyncOp::Peer(op) => {
                let (home, mask) = (Home::Named(op.rank()), op.mask());
                let active = mask.map_or(now.mask, |mask| now.mask & now.regs.mask(mask));
                match *op {
                    PeerOp::Load { d, address, access, .. } => self.load(now, d, address, active, (access, home)),
                    PeerOp::Store { value, address, access, .. } => {
                        self.store(now, value, address, active, (access, home))
                    }
                    PeerOp::Atomic(ref op) => self.atomic(now, op, home),
                }
            }
            AsyncOp::StoreAsync(op) => {
                self.store(now, op.value, op.address, now.mask, (op.access, Home::Named(op.address + 1)))
            }
            AsyncOp::BlockCopy(op) => {
                let wild = self.wild_address(now, op.source, 4, now.mask as u32, 0);
                let broken = wild.or_else(|| self.wild_address(now, op.destination, 4, now.mask as u32, 0));
                if broken.is_some() || !now.checks.shadow {
                    return broken;
                }
                for lane in lanes(now.mask as u32) {
                    let from = Home::Block(now.rank).key(now.regs, op.source, lane);
                    let key = Home::Named(op.destination + 1).key(now.regs, op.destination, lane);
                    // What is read there must have the bits of the source.
                    let known = now.memory.known(from, op.bytes);
                    self.pending.stored.push(Stored { key, bytes: op.bytes, known });
                }
                None
            }
            AsyncOp::TensorLoad(op) | AsyncOp::TensorStore(op) => lanes(now.mask as u32).find_map(|lane| {
                op.coordinates.iter().find_map(|&reg| self.wild(now, spot(reg, lane, 4, 0), 4, lane as u32))
            }),
            // Tensor memory has no shadows: what comes out of it begins anew.
            AsyncOp::Tensor(TensorOp::Load { d: registers, .. } | TensorOp::Wait { results: registers, .. }) => {
                self.pending.cleared.extend(registers.iter().map(|&register| (register, 1)));
                None
            }
            // Marks, until the wait gives the sums, with their cells.
            AsyncOp::Wgmma(op) => {
                self.pending.cleared.extend(op.d.iter().map(|&d| (d, 1)));
                None
            }
            _ => None,
        }
    }
}

/// Pieces of an access in a register lane: where each lies, its offset in memory, and its bytes.
fn pieces(value: Reg, lane: usize, access: &Access) -> impl Iterator<Item = (u32, u32, u32)> + use<> {
    let step = if access.unit == 8 { 8 } else { 4 };
    let bytes = access.bytes;
    (0..bytes)
        .step_by(step as usize)
        .map(move |offset| (spot(value + offset / 4, lane, step, 0), offset, step.min(bytes - offset)))
}

/// The memory that an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Global,
    /// Shared memory of a block of the cluster.
    Block(u32),
    /// The same, of the block whose rank a slot has.
    Named(Reg),
}

impl Home {
    /// Bytes of an address.
    fn width(self) -> u32 {
        if self == Self::Global { 8 } else { 4 }
    }

    /// What a lane's bytes are known by.
    fn key(self, regs: &Registers<'_>, address: Reg, lane: usize) -> u64 {
        let shared = || u64::from(regs.lane::<u32>(address, lane));
        match self {
            Self::Global => regs.lane::<u64>(address, lane),
            Self::Block(rank) => shared_key(rank, shared()),
            Self::Named(slot) => shared_key(regs.lane::<u32>(slot, lane), shared()),
        }
    }
}

/// The report of a value that goes to global memory and is too far from its shadow.
pub(super) fn leaves(now: &Now<'_, '_>, known: &MemoryCell) -> Broken {
    let exact = known.cell.as_float().filter(|_| known.cell.origin != 0)?;
    let value = known.cell.format()?.value(known.bits);
    if (value - exact).abs() <= now.checks.shadow_floor {
        return None;
    }
    let origin = now.memory.origin(known.cell.origin)?;
    let lane = origin.lane;
    let shown = Inexact { origin, shown: now.pc, value: [value, exact], is_index: false };
    Some((lane, FaultKind::Inexact(Box::new(shown))))
}
