//! How the operands of a matrix instruction come from shared memory to registers.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::panic::Location;

use super::banks::WarpAccess;
use super::flat::linear;
use super::fragment::operand::OperandRole;
use super::fragment::{Fragment, extract, grid_of};
use super::global_tile::GlobalTile;
use super::offset::Offset;
use super::shared_tensor::{SharedTensor, or_stop};
use super::spec::{MatrixOp, OperandSpec, Role};
use super::table::MmaAtom;
use super::tiled_mma::{Partition, TiledMma};
use crate::Diagnostic;
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::types::{Access, ids};

/// How the registers of an operand are filled.
#[derive(Clone, Debug)]
enum Plan {
    /// `ldmatrix`: four matrices of 8 rows of 16 bytes at a time.
    Matrices {
        /// Whether rows of memory run along m or n.
        trans: bool,
        /// Where in the warp's first four matrices the row lies that this lane names.
        lanes: Offset,
    },
    /// Each register by a load of so many elements.
    Vectors(usize),
}

/// A thread's part of an A or B tile in shared memory: the result of [`TiledMma::partition_a`] and
/// [`TiledMma::partition_b`].
///
/// How it is loaded follows from the layouts: by `ldmatrix` (PTX ISA, *ldmatrix*) where each register of the atom is a
/// row of a matrix of 8 x 16 bytes and the tile has such rows, transposed or not; else by the widest loads that the
/// tile's strides prove to be aligned.
#[derive(Clone, Debug)]
pub struct SharedOperand<M: MmaAtom, R: OperandRole> {
    tile: SharedTensor<R::Element<M>>,
    partition: Option<Partition>,
    plan: Plan,
    /// Rows of the warp's part, and columns.
    part: [usize; 2],
    kind: PhantomData<(M, R)>,
}

/// Rows of 16 bytes and their matrices: what `ldmatrix` and `stmatrix` move.
pub(super) const ROW_BYTES: usize = 16;

/// Whether each register is a matrix of `ldmatrix`: lane t has bytes `4 (t % 4)` to `4 (t % 4) + 3` of row t / 4.
pub(super) fn registers_are_matrix_rows(operand: &OperandSpec, rows: usize) -> bool {
    let bytes = operand.element.bytes();
    if operand.threads() != 32 || operand.pack * bytes != 4 {
        return false;
    }
    let at = |t: usize, v: usize| {
        let index = operand.tv.index(t, v);
        (index % rows, index / rows)
    };
    (0..operand.values()).all(|v| {
        let (row, column) = at(0, v - v % operand.pack);
        (0..32).all(|t| at(t, v) == (row + t / 4, column + t % 4 * operand.pack + v % operand.pack))
    })
}

/// How many of the matrices that are left one instruction moves: four, two or one.
pub(super) fn at_once(left: usize) -> usize {
    if left >= 4 { 4 } else { left.clamp(1, 2) }
}

/// The element at which the row begins that thread t of the block names of a warp's first `size` matrices, which begin at
/// these rows and columns of its part of an operand. `None` where the later groups of as many do not lie alike.
pub(super) fn lane_rows<M: MmaAtom>(
    mma: &TiledMma<M>,
    partition: &Partition,
    (role, part): (Role, [usize; 2]),
    (matrices, size): (&[[usize; 2]], usize),
    trans: bool,
    loc: Loc,
) -> Option<Offset> {
    let place = |t: usize| {
        let lane = t % 32;
        let [row, column] = matrices.get(lane / 8 % matrices.len().clamp(1, size)).copied().unwrap_or([0; 2]);
        let warp = mma.part_of(role, t);
        let base = [warp[0] * part[0], warp[1] * part[1]];
        match trans {
            false => [base[0] + row + lane % 8, base[1] + column],
            true => [base[0] + row, base[1] + column + lane % 8],
        }
    };
    // All groups begin alike, or each would need its own addresses.
    let group = |first: usize| -> Vec<i64> {
        let start = matrices.get(first).map_or(0, |&at| partition.flat.at(at));
        matrices.iter().skip(first).take(size).map(|&at| partition.flat.at(at) - start).collect()
    };
    let first = group(0);
    if (0..matrices.len()).step_by(size).any(|at| !first.starts_with(&group(at))) {
        return None;
    }
    // A thread's row of a later group is that of the first one and a constant.
    for dimension in 0..2 {
        let starts: BTreeSet<usize> = (0..mma.threads()).map(|t| place(t)[dimension]).collect();
        let steps = matrices.iter().step_by(size).map(|at| at[dimension]).collect();
        partition.flat.splits(dimension, &starts, &steps).ok()?;
    }
    let (start, digits) = linear(mma.threads(), |t| partition.flat.at(place(t)))?;
    let offset = or_stop(Offset::of_thread(&digits, ids::linear_thread(loc), loc), loc)?;
    Some(offset.plus(Offset::known(start - partition.flat.at([0, 0])), loc))
}

impl<M: MmaAtom, R: OperandRole> SharedOperand<M, R> {
    const OPERAND: OperandSpec = *M::SPEC.operand(R::ROLE);

    pub(super) fn new(mma: &TiledMma<M>, tile: &SharedTensor<R::Element<M>>, loc: Loc) -> Self {
        let partition = Partition::new(mma, tile, R::ROLE, loc);
        let mut this = Self { tile: tile.clone(), partition, plan: Plan::Vectors(1), part: [0; 2], kind: PhantomData };
        let Some(partition) = &this.partition else { return this };
        this.part = mma.part_shape(R::ROLE, partition.flat.shape(), loc);
        let [rows, columns] = M::SPEC.extents(R::ROLE);
        if !this.part[0].is_multiple_of(rows) || !this.part[1].is_multiple_of(columns) {
            let message = format!(
                "a warp's {} x {} elements of operand {} are no grid of atoms",
                this.part[0],
                this.part[1],
                R::ROLE
            );
            let label = format!("operand {} of `{}` is {rows} x {columns}", R::ROLE, M::SPEC.name());
            trace::error(loc, Diagnostic::error(message).label(label));
            this.partition = None;
            return this;
        }
        this.plan = this.choose(mma, partition, loc);
        this
    }

    fn choose(&self, mma: &TiledMma<M>, partition: &Partition, loc: Loc) -> Plan {
        let operand = Self::OPERAND;
        let elements = ROW_BYTES / operand.element.bytes();
        let [rows, _] = M::SPEC.extents(R::ROLE);
        let straight = partition.widest(1) >= elements;
        // Only 16-bit elements can be transposed.
        let across = partition.widest(0) >= elements && operand.element.bytes() == 2;
        if M::SPEC.op == MatrixOp::MmaSync && (straight || across) && registers_are_matrix_rows(&operand, rows) {
            let trans = !straight;
            if let Some(lanes) = lane_rows(mma, partition, (R::ROLE, self.part), (&self.matrices(0), 4), trans, loc) {
                return Plan::Matrices { trans, lanes };
            }
        }
        // Values of a register are neighbours along k in every atom.
        let run = partition.widest(1).min(ROW_BYTES / operand.element.bytes());
        Plan::Vectors(if operand.pack.is_multiple_of(run) { run } else { operand.pack.min(run) })
    }

    fn matrices(&self, step: usize) -> Vec<[usize; 2]> {
        matrices(&Self::OPERAND, M::SPEC.extents(R::ROLE), self.part[0], step)
    }

    /// Steps of the atom's K in the tile.
    pub fn k_steps(&self) -> usize {
        self.part[1] / M::SPEC.extents(R::ROLE)[1]
    }

    /// Loads the fragment of one step of k: all rows of the warp's part, and K columns.
    #[track_caller]
    pub fn load(&self, step: usize) -> Fragment<M, R> {
        let loc = Location::caller();
        let grid = [(self.part[0] / M::SPEC.extents(R::ROLE)[0]).max(1), 1];
        let operand = Self::OPERAND;
        let count = grid[0] * operand.registers();
        let refused = || vec![trace::refused(operand.register_type(), loc); count];
        let registers = match &self.partition {
            None => refused(),
            Some(_) if step >= self.k_steps() => {
                let message = format!("step {step} of {} along k", self.k_steps());
                trace::error(loc, Diagnostic::error(message).label("steps count from 0"));
                refused()
            }
            Some(partition) => match self.plan {
                Plan::Matrices { trans, lanes } => self.load_matrices(partition, step, trans, lanes, loc),
                Plan::Vectors(width) => self.load_vectors(partition, step, width, loc),
            },
        };
        Fragment::from_registers(registers, grid)
    }

    fn load_matrices(&self, partition: &Partition, step: usize, trans: bool, lanes: Offset, loc: Loc) -> Vec<RawValue> {
        let register = Self::OPERAND.register_type();
        let mut registers = Vec::new();
        let mut rest = self.matrices(step).into_iter().peekable();
        while let Some(&first) = rest.peek() {
            let count = at_once(rest.len());
            let offset = lanes.plus(Offset::known(partition.flat.at(first)), loc);
            let address = self.tile.address(offset.swizzled(self.tile.layout().swizzle(), loc), loc);
            let attributes = [("trans", Attr::Bool(trans))];
            let loaded = trace::with(|t| t.emit("lw.ldmatrix", &[address], &vec![register; count], &attributes, loc));
            registers.extend(loaded.unwrap_or_default());
            rest.by_ref().take(count).for_each(drop);
        }
        registers
    }

    fn load_vectors(&self, partition: &Partition, step: usize, width: usize, loc: Loc) -> Vec<RawValue> {
        let operand = Self::OPERAND;
        let [rows, columns] = M::SPEC.extents(R::ROLE);
        let mut registers = Vec::new();
        for atom in 0..self.part[0] / rows {
            for register in 0..operand.registers() {
                let mut pieces = Vec::new();
                for part in (0..operand.pack).step_by(width) {
                    let index = operand.tv.index(0, register * operand.pack + part);
                    let at = [atom * rows + index % rows, step * columns + index / rows];
                    let address = partition.address(&self.tile, at, loc);
                    let whole = width == operand.pack;
                    let ty = match (width, whole) {
                        (1, _) => IrType::Scalar(operand.element),
                        _ => IrType::Vector(operand.element, width),
                    };
                    let align = [("align", Attr::Int((width * operand.element.bytes()) as i64))];
                    pieces.push(trace::emit1("lw.load", &[address], ty, &align, loc));
                }
                registers.push(joined(&operand, &pieces, width, loc));
            }
        }
        registers
    }
}

impl<M: MmaAtom> TiledMma<M> {
    /// The accesses by which `ldmatrix` loads a warp's part of operand `role` from a tile of `shape`, `(m, k)` or
    /// `(n, k)`, or by which `stmatrix` stores its sums to one of `(m, n)`: for [`super::conflict_free`]. Rows run along
    /// k, or n for sums, or with `trans` along m or n, or m for sums. Coordinates are those of the tile as it is stored:
    /// with `trans` the first is k, or n for sums.
    pub fn matrix_accesses(&self, role: Role, shape: [usize; 2], trans: bool) -> Vec<WarpAccess> {
        if role == Role::C {
            return super::matrix_store::accesses(self, shape, trans);
        }
        let operand = *M::SPEC.operand(role);
        let [rows, columns] = M::SPEC.extents(role);
        let [part, _] = self.part_shape(role, shape, Location::caller());
        let mut accesses = Vec::new();
        for warp in (0..self.threads()).step_by(M::SPEC.threads()) {
            let base = self.part_of(role, warp)[0] * part;
            for step in 0..shape[1] / columns {
                let matrices = matrices(&operand, [rows, columns], part, step);
                for group in matrices.chunks(4) {
                    let lane = |lane: usize| {
                        let [row, column] = group.get(lane / 8).copied()?;
                        Some(match trans {
                            false => [base + row + lane % 8, column],
                            true => [column + lane % 8, base + row],
                        })
                    };
                    accesses.push(WarpAccess {
                        lanes: (0..32).map_while(lane).collect(),
                        bytes: ROW_BYTES,
                        store: false,
                    });
                }
            }
        }
        accesses
    }
}

/// The matrices of one step of k, by the row and column at which each begins: those of the first atom, then of the next
/// one along the rows, and so on.
fn matrices(operand: &OperandSpec, [rows, columns]: [usize; 2], part: usize, step: usize) -> Vec<[usize; 2]> {
    let mut matrices = Vec::new();
    for atom in 0..part / rows {
        for register in 0..operand.registers() {
            let index = operand.tv.index(0, register * operand.pack);
            matrices.push([atom * rows + index % rows, step * columns + index / rows]);
        }
    }
    matrices
}

/// One register of pieces of `width` elements.
fn joined(operand: &OperandSpec, pieces: &[RawValue], width: usize, loc: Loc) -> RawValue {
    match pieces {
        [whole] if width == operand.pack => *whole,
        _ => {
            let each = |piece: &RawValue| -> Vec<RawValue> {
                match width {
                    1 => vec![*piece],
                    _ => (0..width).map(|at| extract(operand.element, *piece, at, loc)).collect(),
                }
            };
            let values: Vec<_> = pieces.iter().flat_map(each).collect();
            trace::emit1("vector.from_elements", &values, operand.register_type(), &[], loc)
        }
    }
}

/// A thread's part of an A or B tile in global memory, loaded without a stop in shared memory: the result of
/// [`TiledMma::partition_a_global`] and [`TiledMma::partition_b_global`].
#[derive(Clone, Debug)]
pub struct GlobalOperand<M: MmaAtom, R: OperandRole, S: Access> {
    tile: GlobalTile<R::Element<M>, S>,
    origin: [Offset; 2],
    part: [usize; 2],
    kind: PhantomData<(M, R)>,
}

impl<M: MmaAtom, R: OperandRole, S: Access> GlobalOperand<M, R, S> {
    pub(super) fn new(mma: &TiledMma<M>, tile: &GlobalTile<R::Element<M>, S>, loc: Loc) -> Self {
        let part = mma.part_shape(R::ROLE, tile.shape(), loc);
        let grid = grid_of(&M::SPEC, R::ROLE, [part[0], M::SPEC.extents(R::ROLE)[1]], loc);
        let [rows, columns] = M::SPEC.extents(R::ROLE);
        if !part[1].is_multiple_of(columns) {
            grid_of(&M::SPEC, R::ROLE, part, loc);
        }
        let part = [grid[0].saturating_mul(rows), part[1]];
        let origin = mma.coordinate(R::ROLE, part, loc);
        Self { tile: tile.of_thread(origin, loc), origin, part, kind: PhantomData }
    }

    /// Steps of the atom's K in the tile.
    pub fn k_steps(&self) -> usize {
        self.part[1] / M::SPEC.extents(R::ROLE)[1]
    }

    /// Loads the fragment of one step of k; zeros outside the tensor.
    #[track_caller]
    pub fn load(&self, step: usize) -> Fragment<M, R> {
        let loc = Location::caller();
        let operand = *M::SPEC.operand(R::ROLE);
        let [rows, columns] = M::SPEC.extents(R::ROLE);
        let grid = [(self.part[0] / rows).max(1), 1];
        if step >= self.k_steps() {
            let message = format!("step {step} of {} along k", self.k_steps());
            trace::error(loc, Diagnostic::error(message).label("steps count from 0"));
            let register = trace::refused(operand.register_type(), loc);
            return Fragment::from_registers(vec![register; grid[0] * operand.registers()], grid);
        }
        // Values of a register are neighbours along k in every atom.
        let promised = if self.tile.contiguous() == Some(1) { self.tile.widest() } else { 1 };
        let width = if operand.pack.is_multiple_of(promised) { promised } else { operand.pack.min(promised) };
        let mut registers = Vec::new();
        for atom in 0..grid[0] {
            for register in 0..operand.registers() {
                let mut pieces = Vec::new();
                for part in (0..operand.pack).step_by(width) {
                    let index = operand.tv.index(0, register * operand.pack + part);
                    let at = [atom * rows + index % rows, step * columns + index / rows];
                    let at = [0, 1].map(|i| self.origin[i].plus(Offset::known(at[i] as i64), loc));
                    pieces.push(self.tile.load(at, width, loc));
                }
                registers.push(joined(&operand, &pieces, width, loc));
            }
        }
        Fragment::from_registers(registers, grid)
    }
}
