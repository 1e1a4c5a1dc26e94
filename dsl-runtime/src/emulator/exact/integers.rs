//! Indices that wrap: sums and products as integers without an end.

use super::step::Now;
use super::{Cell, Follower, Moved, Origin, raw, spot};
use crate::emulator::exec::elementwise::{BinaryOp, UnaryOp};
use crate::emulator::exec::numbers::loop_around;
use crate::emulator::lanes::{LANES, Reg, Registers};

/// The exact result of an operation on integers, as far as 64 bits hold it; `None` for one that is not followed.
fn exact(op: BinaryOp, x: i64, y: i64) -> Option<i64> {
    use BinaryOp as B;
    Some(match op {
        B::AddI32 | B::AddI64 => x.saturating_add(y),
        B::SubI32 | B::SubI64 => x.saturating_sub(y),
        B::MulI32 | B::MulI64 => x.saturating_mul(y),
        B::Shl32 if (0..32).contains(&y) => x.saturating_mul(1 << y),
        B::Shl64 if (0..63).contains(&y) => x.saturating_mul(1 << y),
        B::MaxS32 | B::MaxU32 | B::MaxS64 | B::MaxU64 => x.max(y),
        B::MinS32 | B::MinU32 | B::MinS64 | B::MinU64 => x.min(y),
        _ => return None,
    })
}

impl Registers<'_> {
    /// The lanes in which an operation on 32-bit integers wraps, active or not.
    #[inline(always)]
    pub(crate) fn wraps(&self, op: BinaryOp, signed: bool, a: Reg, b: Reg) -> u32 {
        match (op, signed) {
            (BinaryOp::AddI32, true) => {
                self.compare::<i32>(a, b, |x, y| ((x.wrapping_add(y) ^ x) & (x.wrapping_add(y) ^ y)) < 0)
            }
            (BinaryOp::AddI32, false) => self.compare::<u32>(a, b, |x, y| x.wrapping_add(y) < x),
            (BinaryOp::SubI32, true) => self.compare::<i32>(a, b, |x, y| ((x ^ y) & (x.wrapping_sub(y) ^ x)) < 0),
            (BinaryOp::SubI32, false) => self.compare::<u32>(a, b, |x, y| x < y),
            (BinaryOp::MulI32, true) => {
                self.compare::<i32>(a, b, |x, y| i64::from(x) * i64::from(y) != i64::from(x.wrapping_mul(y)))
            }
            (BinaryOp::MulI32, false) => {
                self.compare::<u32>(a, b, |x, y| u64::from(x) * u64::from(y) > u64::from(u32::MAX))
            }
            (BinaryOp::Shl32, true) => {
                self.compare::<i32>(a, b, |x, y| x.wrapping_shl(y as u32).wrapping_shr(y as u32) != x)
            }
            (BinaryOp::Shl32, false) => self.compare::<u32>(a, b, |x, y| x.wrapping_shl(y).wrapping_shr(y) != x),
            _ => 0,
        }
    }
}

impl Follower {
    /// A 32- or 64-bit integer as the machine has it and as it would be, with the number of its origin.
    fn integer(&self, now: &Now<'_, '_>, at: u32, width: u32, signed: bool) -> (i64, i64, u32) {
        let bits = raw(now.regs, at, width);
        let value = match (width, signed) {
            (4, true) => i64::from(bits as u32 as i32),
            (4, false) => i64::from(bits as u32),
            _ => bits as i64,
        };
        match self.get(at, width).and_then(|cell| Some((cell.as_integer()?, cell.origin))) {
            Some((exact, origin)) => (value, exact, origin),
            None => (value, value, 0),
        }
    }

    /// An operation of 32 bits that leads to an address.
    pub(super) fn index(&mut self, now: &Now<'_, '_>, (op, signed): (BinaryOp, bool), (d, a, b): (Reg, Reg, Reg)) {
        let half = now.program.half(now.pc);
        let wrapped = now.regs.wraps(op, signed, a, b);
        let known = [a, b].iter().any(|&reg| self.rows.get(reg as usize).is_some_and(|row| row.width > 0));
        if wrapped == 0 && !known {
            return;
        }
        for lane in 0..LANES {
            let (x, exact_x, origin_x) = self.integer(now, spot(a, lane, 4, 0), 4, signed);
            let (y, exact_y, origin_y) = self.integer(now, spot(b, lane, 4, 0), 4, signed);
            let Some(exact) = exact(op, exact_x, exact_y) else { continue };
            let machine = match op {
                BinaryOp::AddI32 => x.wrapping_add(y),
                BinaryOp::SubI32 => x.wrapping_sub(y),
                BinaryOp::MulI32 => x.wrapping_mul(y),
                BinaryOp::Shl32 => (x as i32).wrapping_shl(y as u32).into(),
                _ => self::exact(op, x, y).unwrap_or(x),
            };
            let machine = if signed { i64::from(machine as i32) } else { i64::from(machine as u32) };
            if machine == exact {
                continue;
            }
            let active = now.mask >> (lane as u32 + 32 * u32::from(half)) & 1 == 1;
            let origin = match (origin_x.max(origin_y), active) {
                (0, false) => continue,
                (0, true) => now.memory.note(Origin {
                    pc: now.pc,
                    lane: lane as u32 + 32 * u32::from(half),
                    warp: self.warp,
                    operands: vec![[x as f64; 2], [y as f64; 2]],
                    result: [machine as f64, exact as f64],
                    around: loop_around(now.program, now.regs, now.pc, half, lane),
                }),
                (known, _) => known,
            };
            self.pending.moved.push(Moved { at: spot(d, lane, 4, 0), width: 4, cell: Cell::integer(exact, origin) });
        }
    }

    /// An operation of 64 bits, of operands that are known.
    pub(super) fn wide_index(&mut self, now: &Now<'_, '_>, op: BinaryOp, (d, a, b): (Reg, Reg, Reg)) {
        let known = |reg: Reg| self.rows.iter().skip(reg as usize).take(2).any(|row| row.width == 8);
        if op.slots() != 2 || !known(a) && !known(b) {
            return;
        }
        for lane in 0..LANES {
            let (x, exact_x, origin_x) = self.integer(now, spot(a, lane, 8, 0), 8, true);
            let (y, exact_y, origin_y) = self.integer(now, spot(b, lane, 8, 0), 8, true);
            let origin = origin_x.max(origin_y);
            if origin == 0 {
                continue;
            }
            let (Some(exact), Some(machine)) = (exact(op, exact_x, exact_y), exact(op, x, y)) else { continue };
            if exact != machine {
                let cell = Cell::integer(exact, origin);
                self.pending.moved.push(Moved { at: spot(d, lane, 8, 0), width: 8, cell });
            }
        }
    }

    /// Conversions between 32 and 64 bits.
    pub(super) fn convert_integer(&mut self, now: &Now<'_, '_>, op: UnaryOp, d: Reg, a: Reg) {
        let (from, to) = match op {
            UnaryOp::SignExtend64 | UnaryOp::ZeroExtend64 => (4, 8),
            UnaryOp::Truncate64 => (8, 4),
            _ => return,
        };
        if self.rows.iter().skip(a as usize).take(2).all(|row| row.width == 0) {
            return;
        }
        for lane in 0..LANES {
            let Some(cell) = self.get(spot(a, lane, from, 0), from) else { continue };
            let Some(exact) = cell.as_integer() else { continue };
            let bits = raw(now.regs, spot(a, lane, from, 0), from);
            let machine = match op {
                UnaryOp::SignExtend64 => i64::from(bits as u32 as i32),
                UnaryOp::ZeroExtend64 => i64::from(bits as u32),
                // What 32 bits have room for is right.
                _ if i64::from(bits as u32) == exact => exact,
                _ => i64::from(bits as u32 as i32),
            };
            if machine != exact {
                self.pending.moved.push(Moved { at: spot(d, lane, to, 0), width: to as u8, cell });
            }
        }
    }

    /// `base + index * scale`.
    pub(super) fn address(&mut self, now: &Now<'_, '_>, width: u32, (d, base, index): (Reg, Reg, Reg), scale: u32) {
        self.pending.cleared.push((d, width / 4));
        let known = |reg: Reg| self.rows.iter().skip(reg as usize).take(2).any(|row| row.width > 0);
        if !known(base) && !known(index) {
            return;
        }
        for lane in 0..LANES {
            let (_, exact_base, origin_base) = self.integer(now, spot(base, lane, width, 0), width, false);
            let (_, exact_index, origin_index) = self.integer(now, spot(index, lane, width, 0), width, true);
            let origin = origin_base.max(origin_index);
            if origin != 0 {
                let exact = exact_base.saturating_add(exact_index.saturating_mul(scale.into()));
                let cell = Cell::integer(exact, origin);
                self.pending.moved.push(Moved { at: spot(d, lane, width, 0), width: width as u8, cell });
            }
        }
    }
}
