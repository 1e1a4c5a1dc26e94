//! From one instruction to a block's tile: which warp and thread computes what.

use std::marker::PhantomData;
use std::panic::Location;

use super::flat::{Flat, linear};
use super::fragment::FragmentC;
use super::fragment::operand;
use super::global_tile::GlobalTile;
use super::offset::Offset;
use super::operand_load::{GlobalOperand, SharedOperand};
use super::shared_tensor::SharedTensor;
use super::spec::Role;
use super::table::MmaAtom;
use crate::Diagnostic;
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::types::{Access, CastTarget, I32, Num, Scalar, Writable, arith, ids, place};

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
    /// The instruction over so many warps along m and n. Both must be powers of two; the kernel's block must have
    /// that many warps.
    #[track_caller]
    pub fn new(warps: [usize; 2]) -> Self {
        let loc = Location::caller();
        let threads = warps[0] * warps[1] * M::SPEC.threads();
        if !warps[0].is_power_of_two() || !warps[1].is_power_of_two() {
            let message = format!("{} x {} warps: both numbers must be powers of two", warps[0], warps[1]);
            trace::error(loc, Diagnostic::error(message));
        }
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
        let warp = t / M::SPEC.threads();
        let (m, n) = (warp / self.warps[1], warp % self.warps[1]);
        match role {
            Role::A => [m, 0],
            Role::B => [n, 0],
            Role::C => [m, n],
        }
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
    /// of [`Fragment::elements`].
    #[track_caller]
    pub fn thread_coordinate(&self, rows: usize, columns: usize) -> [I32; 2] {
        let loc = Location::caller();
        let part = self.part_shape(Role::C, [rows, columns], loc);
        self.coordinate(Role::C, part, loc).map(|offset| I32::from_raw(offset.materialize(loc)))
    }

    pub(super) fn coordinate(&self, role: Role, part: [usize; 2], loc: Loc) -> [Offset; 2] {
        let spec = M::SPEC;
        let [rows, _] = spec.extents(role);
        let number = ids::linear_thread(loc);
        [0, 1].map(|dimension| {
            let f = |t: usize| {
                let index = spec.operand(role).tv.index(t % spec.threads(), 0);
                let inside = [index % rows, index / rows];
                (self.part_of(role, t)[dimension] * part[dimension] + inside[dimension]) as i64
            };
            let digits = linear(self.threads(), f).and_then(|(_, digits)| Offset::of_thread(&digits, number, loc).ok());
            digits.unwrap_or_else(|| Offset::known(0))
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
        GlobalSums { tile: tile.of_thread(origin, loc), origin, atom: PhantomData }
    }

    /// Writes sums, converted as `.cast` converts, to a tile of shared memory whose modes are `(m, n)`. Neighbours in a
    /// row go together where the layout keeps them so.
    #[track_caller]
    pub fn store_c<T: CastTarget>(&self, sums: &FragmentC<M>, tile: &SharedTensor<T>)
    where
        M: MmaAtom<C: Num>,
    {
        let loc = Location::caller();
        let Some(part) = Partition::new(self, tile, Role::C, loc) else { return };
        for run in runs(sums, 1, part.widest(1)) {
            let Some(first) = run.first() else { continue };
            let value = converted::<M, T>(sums, &run, loc);
            let address = part.address(tile, [first.row, first.column], loc);
            write(value, address, run_type::<T>(run.len()), None, loc);
        }
    }
}

/// Neighbours of a fragment along a dimension, in powers of two up to `widest`.
fn runs<M: MmaAtom>(sums: &FragmentC<M>, along: usize, widest: usize) -> Vec<Vec<super::Element>> {
    let mut elements = sums.elements();
    let place = |element: &super::Element| [element.row, element.column];
    elements.sort_by_key(|element| (place(element)[1 - along], place(element)[along]));
    let mut runs: Vec<Vec<super::Element>> = Vec::new();
    for element in elements {
        let at = place(&element);
        match runs.last_mut() {
            Some(run)
                if run.len() < widest
                    && run
                        .last()
                        .map(place)
                        .is_some_and(|last| last[1 - along] == at[1 - along] && last[along] + 1 == at[along])
                    && run.first().is_some_and(|first| place(first)[along].is_multiple_of(widest)) =>
            {
                run.push(element);
            }
            _ => runs.push(vec![element]),
        }
    }
    // A run that is shorter than a power of two goes one by one.
    runs.into_iter()
        .flat_map(|run| if run.len() == widest { vec![run] } else { run.into_iter().map(|e| vec![e]).collect() })
        .collect()
}

/// Some sums, converted together.
fn converted<M: MmaAtom, T: CastTarget>(sums: &FragmentC<M>, run: &[super::Element], loc: Loc) -> RawValue {
    let values: Vec<RawValue> = run.iter().filter_map(|e| sums.atom(e.atom).get(e.value).copied()).collect();
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
    atom: PhantomData<M>,
}

impl<M: MmaAtom<C: Num>, T: CastTarget, A: Writable> GlobalSums<M, T, A> {
    /// Stores sums, converted as `.cast` converts; what lies outside the tensor is left out. Neighbours go together
    /// as far as the tile promises ([`GlobalTile::vectors`]).
    #[track_caller]
    pub fn store(&self, sums: &FragmentC<M>) {
        let loc = Location::caller();
        let along = self.tile.contiguous().unwrap_or(1);
        for run in runs(sums, along, self.tile.widest()) {
            let Some(first) = run.first() else { continue };
            let value = converted::<M, T>(sums, &run, loc);
            let at = [first.row, first.column].map(|part| Offset::known(part as i64));
            let at = [self.origin[0].plus(at[0], loc), self.origin[1].plus(at[1], loc)];
            let (address, mask) = (self.tile.address(at, loc), self.tile.inside(at, loc));
            write(value, address, run_type::<T>(run.len()), mask, loc);
        }
    }
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
        if !flat.is_additive() {
            let message = format!("the nested modes of {} have extents that are no powers of two", tile.layout());
            trace::error(loc, Diagnostic::error(message).label("threads and values would meet in one digit"));
            return None;
        }
        let f = |t: usize| {
            let index = spec.operand(role).tv.index(t % spec.threads(), 0);
            let warp = mma.part_of(role, t);
            flat.at([warp[0] * part[0] + index % rows, warp[1] * part[1] + index / rows])
        };
        let Some((first, digits)) = linear(mma.threads(), f) else {
            let message =
                format!("the layout {} does not divide among the threads of `{}`", tile.layout(), spec.name());
            trace::error(loc, Diagnostic::error(message).help("extents of tiles are multiples of powers of two"));
            return None;
        };
        let thread = super::shared_tensor::or_stop(Offset::of_thread(&digits, ids::linear_thread(loc), loc), loc)?;
        let thread = thread.plus(Offset::known(first - flat.at([0, 0])), loc);
        let unit =
            if tile.layout().swizzle().bits() == 0 { 1 << 20 } else { 1 << tile.layout().swizzle().base().min(20) };
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
