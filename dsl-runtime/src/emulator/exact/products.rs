//! Matrix instructions: fragments, and sums in binary64.

use super::format::Format;
use super::step::{Now, Stored};
use super::{
    Cell, ExactMemory, Follower, Loaded, Moved, Number, Origin, Predicted, SLOT, explains, outweighs, shared_key, spot,
};
use crate::emulator::Checks;
use crate::emulator::asynchronous::op::{InputType, SharedOperand};
use crate::emulator::asynchronous::operand::first_of_a;
use crate::emulator::asynchronous::wgmma;
use crate::emulator::exec::atom::{AtomOp, Spot};
use crate::emulator::exec::matrix::COLUMNS;
use crate::emulator::exec::matrix_store::MatrixStoreOp;
use crate::emulator::exec::warp::FaultKind;
use crate::emulator::lanes::{LANES, Reg, Registers};
use crate::emulator::memory::SharedMemory;
use crate::emulator::op::{MatrixLoadOp, MatrixType, MfmaOp, MmaOp, Pc};
use lacewing_core::ScalarType;
use lacewing_core::atoms::{Role, WgmmaSpec};

/// The terms of one element of a product, added up.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// As the machine's factors give them, without rounding.
    value: f64,
    exact: f64,
    origin: u32,
    contribution: f64,
    digits: u8,
}

fn terms(factors: impl Iterator<Item = (Number, Number)>) -> Terms {
    let mut sum = Terms { value: 0.0, exact: 0.0, origin: 0, contribution: 0.0, digits: u8::MAX };
    let mut largest = 0.0;
    for (a, b) in factors {
        let (value, exact) = (a.value * b.value, a.exact * b.exact);
        sum.value += value;
        sum.exact += exact;
        sum.digits = sum.digits.min(a.digits).min(b.digits);
        let origin = if a.origin != 0 { a.origin } else { b.origin };
        if origin != 0 {
            // Many small errors of one kind make a large one.
            let error = (value - exact).abs();
            sum.contribution += error;
            if sum.origin == 0 || outweighs(error, largest) {
                (sum.origin, largest) = (origin, error);
            }
        }
    }
    sum
}

/// A matrix as numbers, row after row.
struct Matrix {
    columns: usize,
    numbers: Vec<Number>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> Number) -> Self {
        let numbers = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Self { columns, numbers: numbers.map(|(row, column)| at(row, column)).collect() }
    }

    fn row(&self, row: usize) -> &[Number] {
        self.numbers.get(row * self.columns..(row + 1) * self.columns).unwrap_or_default()
    }
}

impl Follower {
    /// Predicts one result of a product.
    fn predict_sum(&mut self, (at, lane, format): (u32, u8, Format), before: Number, terms: Terms) {
        let error = (before.value - before.exact).abs();
        let mut worst = (terms.origin, terms.contribution);
        if before.origin != 0 && (worst.0 == 0 || outweighs(error, worst.1)) {
            worst = (before.origin, error);
        }
        self.pending.predicted.push(Predicted {
            at,
            format,
            exact: before.exact + terms.exact,
            operands: [[before.value, before.exact], [terms.value, terms.exact], [0.0; 2]],
            count: 2,
            origin: worst.0,
            contribution: worst.1,
            digits: before.digits.min(terms.digits),
            lane,
        });
    }

    /// `ldmatrix`: lane `8 i + j` names row j of matrix i.
    pub(super) fn load_matrix(&mut self, now: &Now<'_, '_>, op: &MatrixLoadOp) -> Option<(u32, FaultKind)> {
        for (matrix, &d) in op.d.iter().enumerate().take(usize::from(op.count)) {
            self.pending.cleared.push((d, 1));
            for row in 0..8 {
                let lane = 8 * matrix + row;
                let broken = self.wild(now, spot(op.address, lane, 4, 0), 4, lane as u32);
                if broken.is_some() {
                    return broken;
                }
                if !now.checks.shadow {
                    continue;
                }
                let first = now.regs.lane::<u32>(op.address, lane);
                for column in 0..8 {
                    let (to_row, to_column) = if op.transposed { (column, row) } else { (row, column) };
                    let at = SLOT * d + (16 * to_row + 2 * to_column) as u32;
                    let key = shared_key(now.rank, u64::from(first) + 2 * column as u64);
                    self.pending.loaded.push(Loaded { at, key, bytes: 2 });
                }
            }
        }
        None
    }

    /// `stmatrix`: a lane names each row.
    pub(super) fn store_matrix(&mut self, now: &Now<'_, '_>, op: &MatrixStoreOp) -> Option<(u32, FaultKind)> {
        for row in &op.rows {
            let lane = usize::from(row.lane) % LANES;
            let broken = self.wild(now, spot(op.address, lane, 4, 0), 4, lane as u32);
            if broken.is_some() {
                return broken;
            }
            if !now.checks.shadow {
                continue;
            }
            let first = now.regs.lane::<u32>(op.address, lane);
            let mut known = Vec::new();
            for (half, from) in row.halves.iter().enumerate() {
                let at = spot(from.slot, usize::from(from.lane) % LANES, 4, u32::from(from.shift) / 8);
                known
                    .extend(self.known(now.regs, at, 2).into_iter().map(|(byte, cell)| (2 * half as u32 + byte, cell)));
            }
            self.pending.stored.push(Stored { key: shared_key(now.rank, first.into()), bytes: 16, known });
        }
        None
    }

    /// `mma.sync`, with the layouts of [`crate::emulator::exec::matrix`].
    pub(super) fn mma(&mut self, now: &Now<'_, '_>, op: &MmaOp) {
        self.pending.cleared.extend(op.d.iter().map(|&d| (d, 1)));
        if !now.checks.shadow {
            return;
        }
        let (format, depth) = (Format::of_matrix(op.ty), usize::from(op.k));
        let place = |registers: &[Reg], register: usize, line: usize, k: usize| {
            let reg = registers.get(register).copied().unwrap_or(0);
            match op.ty {
                MatrixType::Tf32 => spot(reg, line * 4 + k % 4, 4, 0),
                _ => SLOT * reg + (16 * line + 2 * (k % 8)) as u32,
            }
        };
        let per_register = if op.ty == MatrixType::Tf32 { 4 } else { 8 };
        let a = Matrix::new(16, depth, |row, k| {
            self.number(now.regs, place(&op.a, row / 8 + k / per_register * 2, row % 8, k), format)
        });
        let b =
            Matrix::new(8, depth, |column, k| self.number(now.regs, place(&op.b, k / per_register, column, k), format));
        for (register, (&c, &d)) in op.c.iter().zip(&op.d).enumerate() {
            for lane in 0..LANES {
                let (row, column) = (lane / 4 + register / 2 * 8, lane % 4 * 2 + register % 2);
                let before = self.number(now.regs, spot(c, lane, 4, 0), Format::F32);
                let terms = terms(a.row(row).iter().copied().zip(b.row(column).iter().copied()));
                self.predict_sum((spot(d, lane, 4, 0), lane as u8, Format::F32), before, terms);
            }
        }
    }

    /// `mfma`, likewise.
    pub(super) fn mfma(&mut self, now: &Now<'_, '_>, op: &MfmaOp) {
        let registers = op.registers();
        self.pending.cleared.extend(op.d.iter().take(registers).map(|&d| (d, 2)));
        if !now.checks.shadow {
            return;
        }
        let size = usize::from(op.size);
        let (format, depth) = (Format::of_matrix(op.ty), if size == 32 { 8 } else { 16 });
        let element = |reg: Reg, index: usize, k: usize| {
            let lane = k / 4 * size + index;
            let reg = reg + (lane / 32 * 2 + k % 4 / 2) as u32;
            self.number(now.regs, spot(reg, lane % 32, 2, (k % 2 * 2) as u32), format)
        };
        let a = Matrix::new(size, depth, |row, k| element(op.a, row, k));
        let b = Matrix::new(size, depth, |column, k| element(op.b, column, k));
        for (register, (&c, &d)) in op.c.iter().zip(&op.d).enumerate().take(registers) {
            for lane in 0..64 {
                let (half, within) = ((lane / 32) as u32, lane % 32);
                let row = 8 * (register / 4) + 4 * (lane / size) + register % 4;
                let before = self.number(now.regs, spot(c + half, within, 4, 0), Format::F32);
                let terms = terms(a.row(row).iter().copied().zip(b.row(lane % size).iter().copied()));
                self.predict_sum((spot(d + half, within, 4, 0), lane as u8, Format::F32), before, terms);
            }
        }
    }

    /// Any other matrix instruction, by its layouts. Products of integers are exact.
    pub(super) fn atom(&mut self, now: &Now<'_, '_>, op: &AtomOp) {
        let format = |role: Role| {
            Some(match op.spec.operand(role).element {
                ScalarType::F16 => Format::F16,
                ScalarType::Bf16 => Format::Bf16,
                ScalarType::F8E4M3 => Format::E4m3,
                ScalarType::F8E5M2 => Format::E5m2,
                ScalarType::F32 => Format::F32,
                ScalarType::F64 => Format::F64,
                _ => return None,
            })
        };
        let slots = if op.spec.operand(Role::C).element.bytes() == 8 { 2 } else { 1 };
        self.pending.cleared.extend(op.d.iter().map(|spot| (spot.slot, slots)));
        let (Some(of_a), Some(of_b), Some(of_c)) = (format(Role::A), format(Role::B), format(Role::C)) else { return };
        if !now.checks.shadow {
            return;
        }
        let place = |spot: Spot, format: Format| {
            super::spot(spot.slot, usize::from(spot.lane) % LANES, format.width(), u32::from(spot.shift) / 8)
        };
        let number = |spots: &[Spot], index: usize, format: Format| {
            spots.get(index).map_or(Number::ZERO, |&spot| self.number(now.regs, place(spot, format), format))
        };
        // All lists count with the first dimension fastest, one block of the product after the other.
        let [m, n, k] = op.spec.shape;
        let blocks: Vec<_> = (0..op.d.len() / (m * n).max(1))
            .map(|block| {
                let (of_block_a, of_block_b) = (block * m * k, block * n * k);
                let a = Matrix::new(m, k, |row, k| number(&op.a, of_block_a + row + k * m, of_a));
                let b = Matrix::new(n, k, |column, k| number(&op.b, of_block_b + column + k * n, of_b));
                (a, b)
            })
            .collect();
        for (block, (a, b)) in blocks.iter().enumerate() {
            let sums = op.c.iter().zip(&op.d).skip(block * m * n).take(m * n);
            for (index, (&c, &d)) in sums.enumerate() {
                let before = self.number(now.regs, place(c, of_c), of_c);
                let terms = terms(a.row(index % m).iter().copied().zip(b.row(index / m).iter().copied()));
                self.predict_sum((place(d, of_c), d.lane, of_c), before, terms);
            }
        }
    }

    /// A warp's 16 rows of A of a warpgroup's product, from registers: `16 k` numbers, row after row.
    pub(crate) fn fragments(
        &self,
        regs: &Registers<'_>,
        (fragments, spec): (&[Reg], &WgmmaSpec),
        ty: InputType,
        k: usize,
    ) -> Vec<Number> {
        let format = Format::from(ty);
        let mut numbers = vec![Number::ZERO; 16 * k];
        for (index, &reg) in fragments.iter().enumerate() {
            let (first_row, first_k) = first_of_a(spec, index);
            for row in 0..8 {
                for element in 0..16 / ty.bytes() {
                    let at = SLOT * reg + (16 * row + ty.bytes() * element) as u32;
                    if let Some(number) = numbers.get_mut((first_row + row) * k + first_k + element) {
                        *number = self.number(regs, at, format);
                    }
                }
            }
        }
        numbers
    }

    /// The cells of a register of sums, for a product that starts with them.
    pub(crate) fn fill_tile(&self, tile: &mut ExactTile, c: Reg, register: usize) {
        for lane in 0..LANES {
            if let (Some(cell), Some(place)) = (self.get(spot(c, lane, 4, 0), 4), tile.place(register, lane)) {
                *place = cell;
            }
        }
    }

    /// The cells of a register that a wait gives.
    pub(crate) fn take_tile(&mut self, tile: &mut ExactTile, result: Reg, register: usize) {
        self.forget(result, 1);
        for lane in 0..LANES {
            if let Some(cell) = tile.place(register, lane).map(|place| *place) {
                self.set(spot(result, lane, 4, 0), 4, cell);
            }
        }
    }

    /// The cells of a register that a wait passes on as it is.
    pub(crate) fn pass_on(&mut self, value: Reg, result: Reg) {
        if value != result {
            self.forget(result, 1);
            self.pending.moved.clear();
            self.carry(SLOT * value, SLOT * result, SLOT);
            for Moved { at, width, cell } in std::mem::take(&mut self.pending.moved) {
                self.set(at, width.into(), cell);
            }
        }
    }
}

impl Number {
    pub(super) const ZERO: Self = Self { value: 0.0, exact: 0.0, origin: 0, digits: u8::MAX };
}

/// The shadows of a warp's sums of a product: 16 rows and 8 columns in each tile, the columns in the order of
/// [`COLUMNS`].
#[derive(Clone, Debug)]
pub(crate) struct ExactTile {
    spec: &'static WgmmaSpec,
    tiles: Vec<[[Cell; 8]; 16]>,
}

/// One warp's part of a product of a warpgroup.
pub(crate) struct ExactPart<'a> {
    pub(crate) memory: &'a ExactMemory,
    pub(crate) checks: &'a Checks,
    pub(crate) shared: &'a SharedMemory,
    /// The block in its cluster, and the warp in its block.
    pub(crate) rank: u32,
    pub(crate) warp: u32,
    pub(crate) pc: Pc,
    pub(crate) ty: InputType,
    pub(crate) k: usize,
}

impl ExactTile {
    pub(crate) fn new(spec: &'static WgmmaSpec) -> Self {
        Self { spec, tiles: vec![[[Cell::NOTHING; 8]; 16]; spec.shape[1] / 8] }
    }

    /// The element that a lane holds in a register.
    fn place(&mut self, register: usize, lane: usize) -> Option<&mut Cell> {
        let (tile, first_row, column) = wgmma::place(self.spec, register);
        self.tiles.get_mut(tile)?.get_mut(first_row + lane / 4)?.get_mut(column + lane % 4)
    }
}

impl ExactPart<'_> {
    /// A's rows `first .. first + 16` in shared memory.
    pub(crate) fn rows_of_a(&self, operand: &SharedOperand, base: u32, first: usize) -> Vec<Number> {
        let size = self.ty.bytes();
        Matrix::new(16, self.k, |row, k| {
            let (line, along) =
                if operand.layout.k_major() { (first + row, k * size) } else { (k, (first + row) * size) };
            self.number(operand, base, line, along)
        })
        .numbers
    }

    fn number(&self, operand: &SharedOperand, base: u32, line: usize, along: usize) -> Number {
        let offset = base + operand.layout.offset(line, along) as u32;
        self.memory.number(self.shared, self.rank, offset, self.ty.into())
    }

    /// Brings the shadows of the sums up to date: `before` and `after` are the sums themselves.
    pub(crate) fn settle(
        &self,
        tile: &mut ExactTile,
        (a, b, base): (&[Number], &SharedOperand, u32),
        before: &[[[f32; 8]; 16]],
        after: &[[[f32; 8]; 16]],
    ) {
        for (number, (exacts, (before, after))) in tile.tiles.iter_mut().zip(before.iter().zip(after)).enumerate() {
            let columns = COLUMNS.map(|column| {
                let column = 8 * number + column;
                let size = self.ty.bytes();
                let element = |k: usize| {
                    let (line, along) = if b.layout.k_major() { (column, k * size) } else { (k, column * size) };
                    self.number(b, base, line, along)
                };
                (0..self.k).map(element).collect::<Vec<_>>()
            });
            for (row, ((exacts, before), after)) in exacts.iter_mut().zip(before).zip(after).enumerate() {
                let row_of_a = a.get(row * self.k..(row + 1) * self.k).unwrap_or_default();
                for (place, cell) in exacts.iter_mut().enumerate() {
                    let (Some(before), Some(after)) = (before.get(place), after.get(place)) else { continue };
                    let Some(column) = columns.get(place) else { continue };
                    let before = Number::new((*before).into(), Some(*cell), Format::F32);
                    let terms = terms(row_of_a.iter().copied().zip(column.iter().copied()));
                    let lane = (4 * (row % 8) + place % 4) as u32;
                    *cell = self.sum(lane, before, terms, (*after).into());
                }
            }
        }
    }

    fn sum(&self, lane: u32, before: Number, terms: Terms, value: f64) -> Cell {
        let exact = before.exact + terms.exact;
        let digits = before.digits.min(terms.digits).min(Format::F32.digits());
        let mut cell = Cell::float(exact, 0, digits, Format::F32);
        if self.checks.shadow_bound.is_exceeded([value, exact], digits) {
            let error = (value - exact).abs();
            let of_before = (before.value - before.exact).abs();
            cell.origin = if before.origin != 0 && explains(of_before, error) {
                before.origin
            } else if terms.origin != 0 && explains(terms.contribution, error) {
                terms.origin
            } else {
                let operands = vec![[before.value, before.exact], [terms.value, terms.exact]];
                let result = [value, exact];
                self.memory.note(Origin { pc: self.pc, lane, warp: self.warp, operands, result, around: None })
            };
        }
        cell
    }
}
