//! From one instruction to a block's tile: which warp and thread computes what.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::panic::Location;

use super::flat::{Flat, linear};
use super::fragment::FragmentC;
use super::fragment::operand;
use super::global_tile::{GlobalTile, Inside};
use super::offset::Offset;
use super::operand_load::{GlobalOperand, SharedOperand};
use super::shared_tensor::SharedTensor;
use super::spec::{MmaSpec, Role};
use super::table::MmaAtom;
use crate::Diagnostic;
use crate::rt;
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::types::{Access, Bool, CastTarget, I32, Num, Scalar, Writable, arith, ids, place};

/// A matrix instruction repeated over the warps of a block: `warps[0]` of them along m, `warps[1]` along n.
///
/// A tile of `rows x columns` sums is cut into as many equal, contiguous parts; warp number `w` of the block has part
/// `(w / warps[1], w % warps[1])`, and repeats the instruction over it. A and B are partitioned to match: warps in a row
/// of parts share rows of A.
///
/// With [`ScalarFma`](super::ScalarFma), whose instruction is one thread's, read "thread" for "warp".
#[derive(Clone, Copy, Debug)]
pub struct TiledMma<M: MmaAtom> {
    warps: [usize; 2],
    atom: PhantomData<M>,
}

impl<M: MmaAtom> TiledMma<M> {
    /// The instruction over so many warps along m and n, at least one each; the kernel's block must have that many warps.
    #[track_caller]
    pub fn new(warps: [usize; 2]) -> Self {
        let loc = Location::caller();
        if warps.contains(&0) {
            let message = format!("{} x {} warps: there is at least one along each", warps[0], warps[1]);
            trace::error(loc, Diagnostic::error(message));
        }
        let warps = warps.map(|count| count.max(1));
        let threads = warps[0].saturating_mul(warps[1]).saturating_mul(M::SPEC.threads());
        let block = trace::with(|t| t.block).map_or(threads, |block| block.into_iter().product::<u32>() as usize);
        if block != threads {
            let message = format!("{} x {} warps of `{}` are {threads} threads", warps[0], warps[1], M::SPEC.name());
            trace::error(loc, Diagnostic::error(message).label(format!("the kernel's block has {block}")));
        }
        Self { warps, atom: PhantomData }
    }

    /// Threads that compute together: those of the block.
    pub fn threads(&self) -> usize {
        self.warps[0] * self.warps[1] * M::SPEC.threads()
    }

    /// Warps along m and n.
    pub fn warps(&self) -> [usize; 2] {
        self.warps
    }

    /// How many warps share an operand's rows (m of A and C, n of B), and its columns.
    fn parts(&self, role: Role) -> [usize; 2] {
        match role {
            Role::A => [self.warps[0], 1],
            Role::B => [self.warps[1], 1],
            Role::C => self.warps,
        }
    }

    /// The part of thread `t` of the block.
    pub(super) fn part_of(&self, role: Role, t: usize) -> [usize; 2] {
        part_of(role, self.warps, t / M::SPEC.threads())
    }

    /// Rows and columns of one warp's part; an error where they are no whole atoms.
    pub(super) fn part_shape(&self, role: Role, shape: [usize; 2], loc: Loc) -> [usize; 2] {
        let parts = self.parts(role);
        if !shape[0].is_multiple_of(parts[0]) || !shape[1].is_multiple_of(parts[1]) {
            let message = format!(
                "a tile of {} x {} does not divide among {} x {} warps",
                shape[0], shape[1], parts[0], parts[1]
            );
            trace::error(loc, Diagnostic::error(message));
        }
        [shape[0] / parts[0], shape[1] / parts[1]]
    }

    /// Accumulators for a block's tile of `rows x columns` sums: this thread's, all 0.
    #[track_caller]
    pub fn accumulators(&self, rows: usize, columns: usize) -> FragmentC<M> {
        let [rows, columns] = self.part_shape(Role::C, [rows, columns], Location::caller());
        FragmentC::zeros(rows, columns)
    }

    /// Where this thread's values of a block's tile of `rows x columns` sums begin: to be added to the rows and columns
    /// of [`Fragment::elements`](super::Fragment::elements).
    #[track_caller]
    pub fn thread_coordinate(&self, rows: usize, columns: usize) -> [I32; 2] {
        let loc = Location::caller();
        let part = self.part_shape(Role::C, [rows, columns], loc);
        self.coordinate(Role::C, part, loc).map(|offset| I32::from_raw(offset.materialize(loc)))
    }

    /// The largest power of two that divides where every thread's part of C begins along a dimension.
    fn thread_unit(&self, part: [usize; 2], dimension: usize) -> usize {
        let starts = (0..self.threads()).map(|t| self.start(Role::C, part, dimension, t));
        1 << starts.map(usize::trailing_zeros).min().unwrap_or(0).min(20)
    }

    /// Where the part of thread `t` begins along a dimension.
    fn start(&self, role: Role, part: [usize; 2], dimension: usize, t: usize) -> usize {
        let spec = M::SPEC;
        let [rows, _] = spec.extents(role);
        let index = spec.operand(role).tv.index(t % spec.threads(), 0);
        let inside = [index % rows, index / rows];
        self.part_of(role, t)[dimension] * part[dimension] + inside[dimension]
    }

    pub(super) fn coordinate(&self, role: Role, part: [usize; 2], loc: Loc) -> [Offset; 2] {
        let number = ids::linear_thread(loc);
        [0, 1].map(|dimension| {
            let f = |t: usize| self.start(role, part, dimension, t) as i64;
            let digits = linear(self.threads(), f).and_then(|(_, digits)| Offset::of_thread(&digits, number, loc).ok());
            digits.unwrap_or_else(|| {
                let message = format!("`{}` has no layout of its first values", M::SPEC.name());
                trace::error(loc, Diagnostic::error(message).label("this atom cannot be repeated over warps"));
                Offset::known(0)
            })
        })
    }

    /// The thread's part of an A tile in shared memory, whose modes are `(m, k)`: CuTe's `partition_A`.
    #[track_caller]
    pub fn partition_a(&self, tile: &SharedTensor<M::A>) -> SharedOperand<M, operand::A> {
        SharedOperand::new(self, tile, Location::caller())
    }

    /// The thread's part of a B tile in shared memory, whose modes are `(n, k)`: CuTe's `partition_B`. A tile that is
    /// stored `(k, n)` is passed as [`SharedTensor::transposed`].
    #[track_caller]
    pub fn partition_b(&self, tile: &SharedTensor<M::B>) -> SharedOperand<M, operand::B> {
        SharedOperand::new(self, tile, Location::caller())
    }

    /// The thread's part of an A tile in global memory, whose modes are `(m, k)`: for what one warp alone reads, and once.
    #[track_caller]
    pub fn partition_a_global<S: Access>(&self, tile: &GlobalTile<M::A, S>) -> GlobalOperand<M, operand::A, S> {
        GlobalOperand::new(self, tile, Location::caller())
    }

    /// The thread's part of a B tile in global memory, whose modes are `(n, k)`, likewise.
    #[track_caller]
    pub fn partition_b_global<S: Access>(&self, tile: &GlobalTile<M::B, S>) -> GlobalOperand<M, operand::B, S> {
        GlobalOperand::new(self, tile, Location::caller())
    }

    /// The thread's part of a tile of sums in global memory, whose modes are `(m, n)`: CuTe's `partition_C`.
    #[track_caller]
    pub fn partition_c<T: Scalar, A: Writable>(&self, tile: &GlobalTile<T, A>) -> GlobalSums<M, T, A> {
        let loc = Location::caller();
        let part = self.part_shape(Role::C, tile.shape(), loc);
        let origin = self.coordinate(Role::C, part, loc);
        let along = tile.contiguous().unwrap_or(1);
        let widest = tile.widest().min(self.thread_unit(part, along));
        GlobalSums { tile: tile.of_thread(origin, loc), origin, along, widest, atom: PhantomData }
    }

    /// Writes sums, converted as `.cast` converts, to a tile of shared memory whose modes are `(m, n)`.
    ///
    /// Sums of `mma.sync` become 16-bit elements by `stmatrix` (PTX ISA, *stmatrix*; sm_90 on) where the tile has rows of
    /// 16 bytes along n, or along m, transposed on the way. Elsewhere neighbours in a row go together where the layout
    /// keeps them so.
    #[track_caller]
    pub fn store_c<T: CastTarget>(&self, sums: &FragmentC<M>, tile: &SharedTensor<T>)
    where
        M: MmaAtom<C: Num>,
    {
        let loc = Location::caller();
        let Some(part) = Partition::new(self, tile, Role::C, loc) else { return };
        let part_shape = self.part_shape(Role::C, part.flat.shape(), loc);
        if super::matrix_store::store(self, sums, tile, &part, part_shape, loc) {
            return;
        }
        let widest = part.widest(1).min(16 / T::BYTES).min(self.thread_unit(part_shape, 1));
        for run in runs(sums, 1, widest.max(1)) {
            let Some(first) = run.first() else { continue };
            let value = converted::<M, T>(sums, &run, loc);
            let address = part.address(tile, [first.row, first.column], loc);
            write(value, address, run_type::<T>(run.len()), None, loc);
        }
    }
}

/// The part of an operand that warp number `warp` of `warps` has.
pub(super) fn part_of(role: Role, warps: [usize; 2], warp: usize) -> [usize; 2] {
    let across = warps[1].max(1);
    let (m, n) = (warp / across, warp % across);
    match role {
        Role::A => [m, 0],
        Role::B => [n, 0],
        Role::C => [m, n],
    }
}

/// A fragment's values in runs of neighbours along a dimension. The length of a run is a power of two, at most `widest`,
/// and it begins at a multiple of its length, but for the thread's own part: that is a multiple of `widest`.
fn runs<M: MmaAtom>(sums: &FragmentC<M>, along: usize, widest: usize) -> Vec<Run> {
    let place = |element: &super::Element| {
        let place = [element.row, element.column];
        (place[1 - along], place[along])
    };
    let mut elements = sums.elements();
    elements.sort_by_key(place);
    let mut runs = Vec::new();
    let mut rest = elements.as_slice();
    while let Some(first) = rest.first().map(place) {
        let neighbours = (0..).zip(rest).take_while(|(at, e)| place(e) == (first.0, first.1 + at)).count();
        let aligned = if first.1 == 0 { widest } else { widest.min(1 << first.1.trailing_zeros()) };
        let length = aligned.min(1 << neighbours.max(1).ilog2());
        let (run, after) = rest.split_at(length.max(1));
        runs.push(run.to_vec());
        rest = after;
    }
    runs
}

/// Some sums, converted together.
pub(super) fn converted<M: MmaAtom, T: CastTarget>(sums: &FragmentC<M>, run: &[super::Element], loc: Loc) -> RawValue {
    let values: Vec<RawValue> = run.iter().filter_map(|e| sums.value(e.atom, e.value, loc)).collect();
    let from = M::SPEC.c.element;
    if let [one] = values[..] {
        return arith::cast(from, T::TYPE, one, arith::Rounding::NearestEven, loc);
    }
    let wide = trace::emit1("vector.from_elements", &values, IrType::Vector(from, values.len()), &[], loc);
    arith::cast(from, T::TYPE, wide, arith::Rounding::NearestEven, loc)
}

fn run_type<T: Scalar>(length: usize) -> IrType {
    if length == 1 { IrType::Scalar(T::TYPE) } else { IrType::Vector(T::TYPE, length) }
}

pub(super) fn write(value: RawValue, address: RawValue, ty: IrType, mask: Option<RawValue>, loc: Loc) {
    let bytes = match ty {
        IrType::Vector(element, count) => element.bytes() * count,
        _ => ty.element().map_or(1, crate::ScalarType::bytes),
    };
    let align = [("align", Attr::Int(bytes as i64))];
    let value = place::to_memory(ty, value, loc);
    match mask {
        None => trace::emit0("lw.store", &[value, address], &align, loc),
        Some(mask) => trace::emit0("lw.store_masked", &[value, address, mask], &align, loc),
    }
}

/// A thread's part of sums in global memory: see [`TiledMma::partition_c`].
#[derive(Clone, Debug)]
pub struct GlobalSums<M: MmaAtom, T: Scalar, A: Writable> {
    tile: GlobalTile<T, A>,
    origin: [Offset; 2],
    /// The dimension in which neighbours go together, and how many of them.
    along: usize,
    widest: usize,
    atom: PhantomData<M>,
}

impl<M: MmaAtom<C: Num>, T: CastTarget, A: Writable> GlobalSums<M, T, A> {
    /// Stores sums, converted as `.cast` converts; what lies outside the tensor is left out. Neighbours go together
    /// as far as the tile promises ([`GlobalTile::vectors`]).
    #[track_caller]
    pub fn store(&self, sums: &FragmentC<M>) {
        let loc = Location::caller();
        // What lies inside together is stored together: one branch for all.
        let mut groups: Vec<(_, Vec<(Run, [Offset; 2])>)> = Vec::new();
        for run in runs(sums, self.along, self.widest) {
            let Some(first) = run.first() else { continue };
            let at = [first.row, first.column].map(|part| Offset::known(part as i64));
            let at = [self.origin[0].plus(at[0], loc), self.origin[1].plus(at[1], loc)];
            let Some(undecided) = self.tile.undecided(at) else { continue };
            match groups.iter_mut().find(|(of, _)| *of == undecided) {
                Some((_, runs)) => runs.push((run, at)),
                None => groups.push((undecided, vec![(run, at)])),
            }
        }
        for (_, runs) in groups {
            let store = |mask: Option<RawValue>| {
                for (run, at) in &runs {
                    let value = converted::<M, T>(sums, run, loc);
                    write(value, self.tile.address(*at, loc), run_type::<T>(run.len()), mask, loc);
                }
            };
            let inside = runs.first().map_or(Inside::Never, |(_, at)| self.tile.inside(*at, loc));
            match inside {
                Inside::Never => {}
                Inside::Always => store(None),
                Inside::Where(mask) if runs.len() == 1 => store(Some(mask)),
                Inside::Where(mask) => rt::when(Bool::from_raw(mask), loc, || store(None)),
            }
        }
    }
}

/// Some neighbours of a fragment.
type Run = Vec<super::Element>;

/// The rows or columns of a thread's values of a part, less those of its first one.
fn steps(spec: &MmaSpec, role: Role, part: [usize; 2], dimension: usize) -> BTreeSet<usize> {
    let (operand, extents) = (spec.operand(role), spec.extents(role));
    let inside = (0..operand.values()).map(|value| operand.tv.index(0, value));
    let inside: Vec<usize> = inside.map(|index| [index % extents[0], index / extents[0]][dimension]).collect();
    let atoms = (0..part[dimension]).step_by(extents[dimension].max(1));
    atoms.flat_map(|atom| inside.iter().map(move |at| atom + at)).collect()
}

/// Where a thread's values of a tile lie: an offset that depends on the thread, and constants.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    pub(super) thread: Offset,
    pub(super) flat: Flat,
    /// Elements that the swizzle keeps together.
    unit: i64,
}

impl Partition {
    /// For each thread, its values of a role's tile; an error at `loc` where the layout does not divide.
    pub(super) fn new<M: MmaAtom, T: Scalar>(
        mma: &TiledMma<M>,
        tile: &SharedTensor<T>,
        role: Role,
        loc: Loc,
    ) -> Option<Self> {
        let flat = super::shared_tensor::or_stop(Flat::of(tile.layout()), loc)?;
        let part = mma.part_shape(role, flat.shape(), loc);
        let (spec, [rows, _]) = (M::SPEC, M::SPEC.extents(role));
        for dimension in 0..2 {
            let starts = (0..mma.threads()).map(|t| mma.start(role, part, dimension, t)).collect();
            let steps = steps(&spec, role, part, dimension);
            if let Err([start, step]) = flat.splits(dimension, &starts, &steps) {
                let (what, at) = (["row", "column"][dimension], start + step);
                let message = format!("{} does not divide among the threads of `{}`", tile.layout(), spec.name());
                let label = format!("a thread that begins at {what} {start} does not find {what} {at} by a constant");
                let help = "each extent of a nested mode must divide a warp's part, or be divided by it";
                trace::error(loc, Diagnostic::error(message).label(label).help(help));
                return None;
            }
        }
        let f = |t: usize| {
            let index = spec.operand(role).tv.index(t % spec.threads(), 0);
            let warp = mma.part_of(role, t);
            flat.at([warp[0] * part[0] + index % rows, warp[1] * part[1] + index / rows])
        };
        let Some((first, digits)) = linear(mma.threads(), f) else {
            let message =
                format!("the layout {} does not divide among the threads of `{}`", tile.layout(), spec.name());
            let label = "the index of a thread's first element is no layout of the thread's number";
            trace::error(loc, Diagnostic::error(message).label(label));
            return None;
        };
        let thread = super::shared_tensor::or_stop(Offset::of_thread(&digits, ids::linear_thread(loc), loc), loc)?;
        let thread = thread.plus(Offset::known(first - flat.at([0, 0])), loc);
        let unit = tile.unit();
        Some(Self { thread, flat, unit })
    }

    /// The most neighbours along a mode that one access may take.
    pub(super) fn widest(&self, mode: usize) -> usize {
        usize::try_from(self.flat.run(mode).min(self.unit)).unwrap_or(1)
    }

    /// The address of the value whose coordinate, but for the thread's part, is `at`.
    pub(super) fn address<T: Scalar>(&self, tile: &SharedTensor<T>, at: [usize; 2], loc: Loc) -> RawValue {
        let offset = self.thread.plus(Offset::known(self.flat.at(at)), loc);
        tile.address(offset.swizzled(tile.layout().swizzle(), loc), loc)
    }
}
