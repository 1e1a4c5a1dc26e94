//! Copies of tiles by all threads of a block.

use std::marker::PhantomData;
use std::panic::Location;

use super::banks::WarpAccess;
use super::flat::{Flat, linear};
use super::fragment::extract;
use super::global_tile::GlobalTile;
use super::offset::Offset;
use super::shared_tensor::{IntoLayout, SharedTensor, or_stop};
use crate::layout::{Layout, LayoutError};
use crate::rt;
use crate::trace::{self, Attr, Constant, IrType, Loc, RawValue};
use crate::types::{Access, Bool, Cmp, Scalar, Writable, arith, ids};
use crate::{Diagnostic, ScalarType, Target};

/// The instruction that a [`TiledCopy`] is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyAtom {
    /// Loads and stores, through registers.
    Registers,
    /// `cp.async` (PTX ISA, *cp.async*), where 4, 8 or 16 bytes go together from global to shared memory; through
    /// registers where they do not.
    CpAsync,
}

/// A copy by all threads: thread `t` has `values[0] x values[1]` neighbouring elements at the place that a layout of the
/// threads gives it, and the whole is repeated over the tile. CuTe's `make_tiled_copy`.
#[derive(Clone, Debug)]
pub struct TiledCopy<T: Scalar> {
    atom: CopyAtom,
    /// The place of each thread, counted in groups of `values`.
    places: Vec<[usize; 2]>,
    groups: [usize; 2],
    values: [usize; 2],
    element: PhantomData<T>,
}

/// A layout of threads as the place of each one.
pub(super) fn places(threads: &Layout) -> Result<(Vec<[usize; 2]>, [usize; 2]), LayoutError> {
    let flat = Flat::of(&threads.clone().into_layout()?)?;
    let count = usize::try_from(threads.static_size()?).unwrap_or(0);
    let mut places = vec![None; count];
    let [rows, columns] = flat.shape();
    for row in 0..rows {
        for column in 0..columns {
            let index = flat.at([row, column]);
            let place = usize::try_from(index).ok().and_then(|index| places.get_mut(index));
            match place {
                Some(place @ None) => *place = Some([row, column]),
                _ => return Err(LayoutError::NotInImage { layout: threads.to_string(), index }),
            }
        }
    }
    Ok((places.into_iter().flatten().collect(), [rows, columns]))
}

impl<T: Scalar> TiledCopy<T> {
    /// A copy in which `threads` maps `(row, column)` to the thread's number, as `layout![(16, 8); (8, 1)]` does for
    /// eight threads to a row, and each thread has `values` elements of rows and columns.
    ///
    /// There must be as many threads as the block has, each once, and a power of two of them.
    #[track_caller]
    pub fn new(atom: CopyAtom, threads: impl IntoLayout, values: [usize; 2]) -> Self {
        let loc = Location::caller();
        let found = threads.into_layout().and_then(|threads| places(threads.layout()));
        let (places, groups) = or_stop(found, loc).unwrap_or((vec![[0, 0]], [1, 1]));
        let block = trace::with(|t| t.block).map_or(places.len(), |block| block.into_iter().product::<u32>() as usize);
        if block != places.len() {
            let message = format!("a copy by {} threads in a block of {block}", places.len());
            trace::error(loc, Diagnostic::error(message).help("each thread of the block has its part of a tiled copy"));
        }
        Self { atom, places, groups, values, element: PhantomData }
    }

    /// A copy by `threads` threads of tiles whose rows have `columns` elements: neighbours along a row first, each with
    /// `width` elements of it. `columns` is a multiple of `width`, and `threads` a power of two.
    #[track_caller]
    pub fn rows(atom: CopyAtom, threads: usize, columns: usize, width: usize) -> Self {
        let loc = Location::caller();
        let in_row = (columns / width.max(1)).max(1);
        // The most threads that divide a row: a power of two.
        let across = (1 << in_row.trailing_zeros()).min(threads);
        let layout = Layout::new((threads / across, across), (across, 1));
        let found = layout.and_then(|layout| places(&layout));
        let (places, groups) = or_stop(found, loc).unwrap_or((vec![[0, 0]], [1, 1]));
        Self { atom, places, groups, values: [1, width], element: PhantomData }
    }

    /// Rows and columns that the threads copy at once. Along each, a tile is a multiple of them, or divides them: then the
    /// threads beyond it have nothing to do.
    pub fn tile(&self) -> [usize; 2] {
        [0, 1].map(|dimension| self.groups[dimension] * self.values[dimension])
    }

    /// The first row and column of thread `t`.
    fn first(&self, t: usize) -> [usize; 2] {
        let place = self.places.get(t).copied().unwrap_or([0; 2]);
        [place[0] * self.values[0], place[1] * self.values[1]]
    }

    fn thread(&self, what: &str, f: impl Fn(usize) -> i64, loc: Loc) -> Option<(i64, Offset)> {
        let Some((first, digits)) = linear(self.places.len(), f) else {
            let message = format!("{what} does not divide among {} threads", self.places.len());
            trace::error(loc, Diagnostic::error(message).help("extents and threads are powers of two"));
            return None;
        };
        let offset = or_stop(Offset::of_thread(&digits, ids::linear_thread(loc), loc), loc)?;
        Some((first, offset))
    }

    /// This thread's part of a tile in global memory, as a source or destination: CuTe's `partition_S` and
    /// `partition_D`.
    #[track_caller]
    pub fn partition_global<A: Access>(&self, tile: &GlobalTile<T, A>) -> GlobalPart<T, A> {
        let loc = Location::caller();
        let thread = [0, 1].map(|dimension| {
            let found = self.thread("a tile", |t| self.first(t)[dimension] as i64, loc);
            found.map_or(Offset::known(0), |(first, offset)| offset.plus(Offset::known(first), loc))
        });
        GlobalPart { tile: tile.of_thread(thread, loc), thread }
    }

    /// This thread's part of a tile in shared memory, likewise.
    #[track_caller]
    pub fn partition_shared(&self, tile: &SharedTensor<T>) -> SharedPart<T> {
        let loc = Location::caller();
        let flat = or_stop(Flat::of(tile.layout()), loc);
        let part = flat.and_then(|flat| {
            if !flat.is_additive() {
                let message = format!("the nested modes of {} have extents that are no powers of two", tile.layout());
                trace::error(loc, Diagnostic::error(message));
                return None;
            }
            let what = format!("the layout {}", tile.layout());
            let inside = |at: [usize; 2]| [0, 1].map(|i| at[i] % flat.shape()[i].max(1));
            let (first, thread) = self.thread(&what, |t| flat.at(inside(self.first(t))), loc)?;
            let thread = thread.plus(Offset::known(first - flat.at([0, 0])), loc);
            Some((thread, flat))
        });
        SharedPart { tile: tile.clone(), part }
    }

    /// Where the thread's groups begin, but for the thread's own part, in the order of copying.
    fn groups(&self, shape: [usize; 2]) -> Vec<[usize; 2]> {
        let tile = self.tile();
        let mut groups = Vec::new();
        for row in (0..shape[0]).step_by(tile[0].max(1)) {
            for column in (0..shape[1]).step_by(tile[1].max(1)) {
                groups.push([row, column]);
            }
        }
        groups
    }

    /// The accesses of each warp to a tile of shared memory of `shape`, in which a lane takes `width` elements of a row at
    /// once: for [`super::conflict_free`].
    pub fn accesses(&self, target: Target, shape: [usize; 2], width: usize, store: bool) -> Vec<WarpAccess> {
        let mut accesses = Vec::new();
        let threads: Vec<usize> = (0..self.places.len()).collect();
        for warp in threads.chunks(target.warp_size() as usize) {
            for group in self.groups(shape) {
                for piece in pieces(self.values, 1, width.max(1)) {
                    let lane = |t: &usize| {
                        let first = self.first(*t);
                        [first[0] + group[0] + piece[0], first[1] + group[1] + piece[1]]
                    };
                    let lanes = warp.iter().map(lane).collect();
                    accesses.push(WarpAccess { lanes, bytes: width * T::BYTES, store });
                }
            }
        }
        accesses
    }

    /// Whether the threads' tile divides a tile, or the reverse; an error where not.
    fn divides(&self, shape: [usize; 2], loc: Loc) -> bool {
        let tile = self.tile();
        let divides =
            (0..2).all(|i| shape[i].is_multiple_of(tile[i].max(1)) || shape[i] > 0 && tile[i].is_multiple_of(shape[i]));
        if !divides {
            let message =
                format!("a tile of {} x {} is no multiple of the copy's {} x {}", shape[0], shape[1], tile[0], tile[1]);
            trace::error(loc, Diagnostic::error(message).label("every thread would need a mask of its own"));
        }
        divides
    }

    /// Runs `body` in the threads that have a part of a tile of this shape: all of them, or those in front.
    fn guarded(&self, shape: [usize; 2], loc: Loc, body: impl FnOnce()) {
        let tile = self.tile();
        let mut guard: Option<Bool> = None;
        for dimension in 0..2 {
            if tile[dimension] <= shape[dimension] {
                continue;
            }
            let Some((_, offset)) = self.thread("a tile", |t| self.first(t)[dimension] as i64, loc) else { return };
            let bound = super::offset::int(shape[dimension] as i64, loc);
            let inside = arith::compare(Cmp::Lt, ScalarType::I32, offset.materialize(loc), bound, loc);
            guard = Some(match guard {
                None => Bool::from_raw(inside),
                Some(before) => {
                    Bool::from_raw(trace::emit1("arith.andi", &[before.raw(), inside], IrType::BOOL, &[], loc))
                }
            });
        }
        match guard {
            None => body(),
            Some(guard) => {
                let mut open = rt::if_begin(guard, &mut []);
                body();
                rt::if_else(&mut open, &mut []);
                rt::if_end(open, &mut [], [(), ()]);
            }
        }
    }
}

/// A thread's part of a tile in global memory: see [`TiledCopy::partition_global`].
#[derive(Clone, Debug)]
pub struct GlobalPart<T: Scalar, A: Access> {
    tile: GlobalTile<T, A>,
    thread: [Offset; 2],
}

/// A thread's part of a tile in shared memory: see [`TiledCopy::partition_shared`].
#[derive(Clone, Debug)]
pub struct SharedPart<T: Scalar> {
    tile: SharedTensor<T>,
    part: Option<(Offset, Flat)>,
}

impl<T: Scalar, A: Access> GlobalPart<T, A> {
    fn at(&self, at: [usize; 2], loc: Loc) -> [Offset; 2] {
        [0, 1].map(|i| self.thread[i].plus(Offset::known(at[i] as i64), loc))
    }
}

impl<T: Scalar> SharedPart<T> {
    fn address(&self, at: [usize; 2], loc: Loc) -> RawValue {
        let Some((thread, flat)) = &self.part else { return RawValue::DEAD };
        let offset = thread.plus(Offset::known(flat.at(at)), loc);
        self.tile.address(offset.swizzled(self.tile.layout().swizzle(), loc), loc)
    }

    fn widest(&self, dimension: usize) -> usize {
        let swizzle = self.tile.layout().swizzle();
        let unit = if swizzle.bits() == 0 { 1 << 20 } else { 1_i64 << swizzle.base().min(20) };
        let run = self.part.as_ref().map_or(1, |(_, flat)| flat.run(dimension).min(unit));
        usize::try_from(run).unwrap_or(1)
    }

    fn shape(&self) -> [usize; 2] {
        self.part.as_ref().map_or([0; 2], |(_, flat)| flat.shape())
    }
}

/// Source and destination of a [`copy`].
pub trait CopyPair<T: Scalar> {
    #[doc(hidden)]
    fn run(self, copy: &TiledCopy<T>, loc: Loc);
}

/// Copies this thread's part of a tile from global to shared memory or back.
///
/// Elements outside the tensor arrive in shared memory as zeros, and are not written to global memory. The width of each
/// access is the widest that both layouts and the copy's values allow. With [`CopyAtom::CpAsync`] the copy belongs to the
/// open group: `cp_async_commit` closes it.
#[track_caller]
pub fn copy<T: Scalar, S, D>(copy: &TiledCopy<T>, source: &S, destination: &D)
where
    for<'a> (&'a S, &'a D): CopyPair<T>,
{
    (source, destination).run(copy, Location::caller());
}

fn vector(element: ScalarType, width: usize) -> IrType {
    if width == 1 { IrType::Scalar(element) } else { IrType::Vector(element, width) }
}

fn align(element: ScalarType, width: usize) -> [(&'static str, Attr); 1] {
    [("align", Attr::Int((element.bytes() * width) as i64))]
}

/// `shape` in steps of `width` along `dimension`.
fn pieces(shape: [usize; 2], dimension: usize, width: usize) -> Vec<[usize; 2]> {
    let step = |i: usize| if i == dimension { width } else { 1 };
    let mut pieces = Vec::new();
    for row in (0..shape[0]).step_by(step(0)) {
        for column in (0..shape[1]).step_by(step(1)) {
            pieces.push([row, column]);
        }
    }
    pieces
}

impl<T: Scalar, A: Access> CopyPair<T> for (&GlobalPart<T, A>, &SharedPart<T>) {
    fn run(self, copy: &TiledCopy<T>, loc: Loc) {
        let (source, destination) = self;
        if source.tile.shape() != destination.shape() && destination.part.is_some() {
            let message = format!("a tile of {:?} elements to one of {:?}", source.tile.shape(), destination.shape());
            trace::error(loc, Diagnostic::error(message).label("both must have one shape"));
            return;
        }
        if copy.divides(source.tile.shape(), loc) {
            copy.guarded(source.tile.shape(), loc, || fill(copy, source, destination, loc));
        }
    }
}

/// From global to shared memory.
fn fill<T: Scalar, A: Access>(copy: &TiledCopy<T>, source: &GlobalPart<T, A>, destination: &SharedPart<T>, loc: Loc) {
    // The dimension in which global memory is contiguous, and how many elements go together there.
    let along = source.tile.contiguous().unwrap_or(1);
    let load = source.tile.widest().min(copy.values[along]);
    let store = destination.widest(along).min(load);
    let asynchronous = copy.atom == CopyAtom::CpAsync && matches!(store * T::BYTES, 4 | 8 | 16);
    for group in copy.groups(source.tile.shape()) {
        // Elements of a group that could not be loaded together may still be stored together.
        let across = destination.widest(along).min(copy.values[along]);
        if asynchronous {
            for piece in pieces(copy.values, along, store) {
                let at = [group[0] + piece[0], group[1] + piece[1]];
                let from = source.at(at, loc);
                let valid = source
                    .tile
                    .inside(from, loc)
                    .unwrap_or_else(|| trace::constant(ScalarType::Bool, Constant::Int(1), loc));
                let operands = [destination.address(at, loc), source.tile.address(from, loc), valid];
                let bytes = [("bytes", Attr::Int((store * T::BYTES) as i64))];
                trace::emit0("lw.cp_async", &operands, &bytes, loc);
            }
            continue;
        }
        let mut loaded = Vec::new();
        for piece in pieces(copy.values, along, load) {
            let from = source.at([group[0] + piece[0], group[1] + piece[1]], loc);
            let value = source.tile.load(from, load, loc);
            loaded.push((piece, value));
        }
        if across == load {
            for (piece, value) in loaded {
                let address = destination.address([group[0] + piece[0], group[1] + piece[1]], loc);
                trace::emit0("lw.store", &[value, address], &align(T::TYPE, load), loc);
            }
            continue;
        }
        // Take apart, put together again in the order of storing.
        let mut elements = std::collections::BTreeMap::new();
        for (piece, value) in loaded {
            for part in 0..load {
                let mut at = piece;
                at[along] += part;
                let element = if load == 1 { value } else { extract(T::TYPE, value, part, loc) };
                elements.insert(at, element);
            }
        }
        for piece in pieces(copy.values, along, across) {
            let values: Vec<RawValue> = (0..across)
                .filter_map(|part| {
                    let mut at = piece;
                    at[along] += part;
                    elements.get(&at).copied()
                })
                .collect();
            let value = match values[..] {
                [one] => one,
                _ => trace::emit1("vector.from_elements", &values, vector(T::TYPE, across), &[], loc),
            };
            let address = destination.address([group[0] + piece[0], group[1] + piece[1]], loc);
            trace::emit0("lw.store", &[value, address], &align(T::TYPE, across), loc);
        }
    }
}

impl<T: Scalar, A: Writable> CopyPair<T> for (&SharedPart<T>, &GlobalPart<T, A>) {
    fn run(self, copy: &TiledCopy<T>, loc: Loc) {
        let (source, destination) = self;
        if destination.tile.shape() != source.shape() && source.part.is_some() {
            let message = format!("a tile of {:?} elements to one of {:?}", source.shape(), destination.tile.shape());
            trace::error(loc, Diagnostic::error(message).label("both must have one shape"));
            return;
        }
        if copy.divides(source.shape(), loc) {
            copy.guarded(source.shape(), loc, || drain(copy, source, destination, loc));
        }
    }
}

/// From shared to global memory.
fn drain<T: Scalar, A: Access>(copy: &TiledCopy<T>, source: &SharedPart<T>, destination: &GlobalPart<T, A>, loc: Loc) {
    let along = destination.tile.contiguous().unwrap_or(1);
    let width = destination.tile.widest().min(copy.values[along]).min(source.widest(along));
    for group in copy.groups(source.shape()) {
        for piece in pieces(copy.values, along, width) {
            let at = [group[0] + piece[0], group[1] + piece[1]];
            let to = destination.at(at, loc);
            let load = (source.address(at, loc), vector(T::TYPE, width), align(T::TYPE, width));
            let value = trace::emit1("lw.load", &[load.0], load.1, &load.2, loc);
            let address = destination.tile.address(to, loc);
            match destination.tile.inside(to, loc) {
                None => trace::emit0("lw.store", &[value, address], &load.2, loc),
                Some(mask) => trace::emit0("lw.store_masked", &[value, address, mask], &load.2, loc),
            }
        }
    }
}
