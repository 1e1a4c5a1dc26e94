//! Copies of tiles by all threads of a block.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use super::banks::WarpAccess;
use super::direct::Direct;
use super::flat::{Flat, linear};
use super::global_tile::GlobalTile;
use super::offset::Offset;
use super::shared_tensor::{IntoLayout, SharedTensor, or_stop};
use crate::layout::{Layout, LayoutError};
use crate::rt;
use crate::trace::{self, Loc, Operand, RawValue};
use crate::types::{Access, Bool, Cmp, Scalar, arith, ids};
use crate::{Diagnostic, ScalarType, Target};

/// The instruction that a [`TiledCopy`] is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyAtom {
    /// Loads and stores, through registers.
    Registers,
    /// Loads and stores of a bounded buffer, through registers: nothing branches at the end of a tensor, and the
    /// hardware's range check of AMD (CDNA3 ISA, *Vector Memory Buffer Instructions*) keeps accesses inside of it even where
    /// a promise like [`GlobalTile::whole`] is broken. Offsets count 32 bits: a tile may span 2 GiB of the tensor.
    Buffer,
    /// `cp.async` (PTX ISA, *cp.async*), where 4, 8 or 16 bytes go together from global to shared memory; through
    /// registers where they do not.
    CpAsync,
    /// From global memory straight to LDS (CDNA3 ISA, *Memory reads to LDS*), where the lanes of a wave have 4 bytes each,
    /// or on CDNA4 16, side by side in LDS; through registers where they do not. The next `barrier` waits for it.
    ///
    /// A swizzle of the tile goes into the global addresses: each lane loads what belongs where its bytes land. Offsets
    /// count 32 bits, as [`CopyAtom::Buffer`]'s, where the tile has a residue or a swizzle.
    LoadToLds,
}

/// A copy by all threads: thread `t` has `values[0] x values[1]` neighbouring elements at the place that a layout of the
/// threads gives it, and the whole is repeated over the tile. CuTe's `make_tiled_copy`.
#[derive(Clone, Debug)]
pub struct TiledCopy<T: Scalar> {
    atom: CopyAtom,
    threads: Arc<Threads>,
    element: PhantomData<T>,
}

/// Which thread has what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Threads {
    /// The place of each thread, counted in groups of `values`.
    places: Vec<[usize; 2]>,
    groups: [usize; 2],
    values: [usize; 2],
}

/// The place of each thread, and the rows and columns of places.
type Places = (Vec<[usize; 2]>, [usize; 2]);

/// Threads of a block, on every target.
const MAX_THREADS: usize = 1024;
/// Elements that a thread can have at once: more than any shared memory holds, and few enough to be written out.
const MAX_VALUES: usize = 1 << 16;

/// The largest number that divides both.
fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a.max(1) } else { greatest_common_divisor(b, a % b) }
}

/// A layout of threads as the place of each one.
pub(super) fn places(threads: &Layout) -> Result<Places, LayoutError> {
    let count = usize::try_from(threads.static_size()?).unwrap_or(0);
    if count > MAX_THREADS {
        let (value, why) = (count as i64, "a block has at most 1024");
        return Err(LayoutError::Argument { what: "a number of threads", value, why });
    }
    let flat = Flat::of(&threads.clone().into_layout()?)?;
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
    /// There must be as many threads as the block has, each once.
    #[track_caller]
    pub fn new(atom: CopyAtom, threads: impl IntoLayout, values: [usize; 2]) -> Self {
        let loc = Location::caller();
        Self::of(atom, threads.into_layout().and_then(|threads| places(threads.layout())), values, loc)
    }

    /// A copy by `threads` threads, all of the block, of tiles whose rows have `columns` elements: neighbours along a row
    /// first, each with `width` elements of it. `columns` is a multiple of `width`.
    #[track_caller]
    pub fn rows(atom: CopyAtom, threads: usize, columns: usize, width: usize) -> Self {
        let loc = Location::caller();
        if width == 0 || columns == 0 || !columns.is_multiple_of(width) {
            let message = format!("rows of {columns} elements in pieces of {width}");
            trace::error(loc, Diagnostic::error(message).label("a row must be a whole number of pieces"));
        }
        let in_row = (columns / width.max(1)).max(1);
        // The most threads that divide a row and the block.
        let across = greatest_common_divisor(in_row, threads.max(1));
        let layout = Layout::new((threads / across, across), (across, 1));
        Self::of(atom, layout.and_then(|layout| places(&layout)), [1, width.max(1)], loc)
    }

    fn of(atom: CopyAtom, found: Result<Places, LayoutError>, values: [usize; 2], loc: Loc) -> Self {
        let (places, groups) = or_stop(found, loc).unwrap_or((vec![[0, 0]], [1, 1]));
        let block = trace::with(|t| t.block).map_or(places.len(), |block| block.into_iter().product::<u32>() as usize);
        if block != places.len() {
            let message = format!("a copy by {} threads in a block of {block}", places.len());
            trace::error(loc, Diagnostic::error(message).help("each thread of the block has its part of a tiled copy"));
        }
        let mut values = values;
        if values.contains(&0) || values[0].saturating_mul(values[1]) > MAX_VALUES {
            let message = format!("a copy of {} x {} elements a thread", values[0], values[1]);
            trace::error(loc, Diagnostic::error(message).label(format!("each thread has from 1 to {MAX_VALUES}")));
            values = [1, 1];
        }
        let threads = Arc::new(Threads { places, groups, values });
        Self { atom, threads, element: PhantomData }
    }

    /// Rows and columns that the threads copy at once. A tile may have other sides: it is a multiple of each thread's
    /// values, and threads that lie beyond its last row or column have nothing to do there.
    pub fn tile(&self) -> [usize; 2] {
        [0, 1].map(|dimension| self.threads.groups[dimension] * self.threads.values[dimension])
    }

    /// The first row and column of thread `t`.
    pub(super) fn first(&self, t: usize) -> [usize; 2] {
        let place = self.threads.places.get(t).copied().unwrap_or([0; 2]);
        [place[0] * self.threads.values[0], place[1] * self.threads.values[1]]
    }

    fn thread(&self, what: &str, f: impl Fn(usize) -> i64, loc: Loc) -> Option<(i64, Offset)> {
        let Some((first, digits)) = linear(self.threads.places.len(), f) else {
            let message = format!("{what} does not divide among {} threads", self.threads.places.len());
            let label = "the index of a thread's first element is no layout of the thread's number";
            let help = "each extent of a nested mode must divide the threads' groups along it, or be divided by them";
            trace::error(loc, Diagnostic::error(message).label(label).help(help));
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
        GlobalPart {
            tile: tile.of_thread(thread, loc),
            thread,
            whole: tile.clone(),
            threads: Arc::clone(&self.threads),
        }
    }

    /// This thread's part of a tile in shared memory, likewise.
    #[track_caller]
    pub fn partition_shared(&self, tile: &SharedTensor<T>) -> SharedPart<T> {
        let loc = Location::caller();
        let part = or_stop(Flat::of(tile.layout()), loc).and_then(|flat| {
            let shape = flat.shape();
            for dimension in 0..2 {
                let starts: BTreeSet<_> = (0..self.threads.places.len()).map(|t| self.first(t)[dimension]).collect();
                let groups = (0..shape[dimension]).step_by(self.tile()[dimension].max(1));
                let steps = groups
                    .flat_map(|group| (0..self.threads.values[dimension]).map(move |value| group + value))
                    .collect();
                if let Err([start, step]) = flat.splits(dimension, &starts, &steps) {
                    let what = ["row", "column"][dimension];
                    let message = format!("{} does not divide among the threads of this copy", tile.layout());
                    let label = format!(
                        "a thread that begins at {what} {start} does not find {what} {} by a constant",
                        start + step
                    );
                    let help =
                        "each extent of a nested mode must divide what the threads copy at once, or be divided by it";
                    trace::error(loc, Diagnostic::error(message).label(label).help(help));
                    return None;
                }
            }
            let what = format!("the layout {}", tile.layout());
            let (first, thread) = self.thread(&what, |t| flat.at(self.first(t)), loc)?;
            let thread = thread.plus(Offset::known(first - flat.at([0, 0])), loc);
            Some((thread, flat))
        });
        let direct = match (self.atom, &part) {
            (CopyAtom::LoadToLds, Some((_, flat))) => Direct::of(self, tile, flat, loc),
            _ => None,
        };
        SharedPart { tile: tile.clone(), part, direct, threads: Arc::clone(&self.threads) }
    }

    /// Where the thread's groups begin, but for the thread's own part, in the order of copying: with the row and the column
    /// below which a thread must lie to have part of them, where not all have.
    pub(super) fn groups(&self, shape: [usize; 2]) -> Vec<Groups> {
        let tile = self.tile();
        let mut all: Vec<Groups> = Vec::new();
        for row in (0..shape[0]).step_by(tile[0].max(1)) {
            for column in (0..shape[1]).step_by(tile[1].max(1)) {
                let at = [row, column];
                let bounds = [0, 1].map(|i| (at[i] + tile[i] > shape[i]).then(|| shape[i] - at[i]));
                match all.iter_mut().find(|groups| groups.bounds == bounds) {
                    Some(groups) => groups.starts.push(at),
                    None => all.push(Groups { bounds, starts: vec![at] }),
                }
            }
        }
        all
    }

    /// The accesses of each warp to a tile of shared memory of `shape`, in which a lane takes `width` elements of a row at
    /// once: for [`super::conflict_free`].
    pub fn accesses(&self, target: Target, shape: [usize; 2], width: usize, store: bool) -> Vec<WarpAccess> {
        let mut accesses = Vec::new();
        let threads: Vec<usize> = (0..self.threads.places.len()).collect();
        for warp in threads.chunks(target.warp_size() as usize) {
            for group in self.groups(shape).into_iter().flat_map(|groups| groups.starts) {
                for piece in pieces(self.threads.values, 1, width.max(1)) {
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

    /// Whether a tile is a whole number of what a thread has; an error where not.
    pub(super) fn divides(&self, shape: [usize; 2], loc: Loc) -> bool {
        let divides = (0..2).all(|i| shape[i].is_multiple_of(self.threads.values[i]));
        if !divides {
            let [rows, columns] = self.threads.values;
            let message = format!("a tile of {} x {} in pieces of {rows} x {columns}", shape[0], shape[1]);
            let label = "a thread would have a part of its elements only";
            trace::error(
                loc,
                Diagnostic::error(message).label(label).help("the tile's sides are multiples of the pieces'"),
            );
        }
        divides
    }

    /// Whether parts were made by a copy with the same threads; an error where not.
    pub(super) fn owns(&self, parts: [&Arc<Threads>; 2], loc: Loc) -> bool {
        let owns = parts.into_iter().all(|part| *part == self.threads);
        if !owns {
            let message = "these parts are of another copy: its threads have other elements";
            let help = "partition both tiles by the copy that moves them";
            trace::error(loc, Diagnostic::error(message).help(help));
        }
        owns
    }

    /// Runs `body` in the threads that lie before these bounds.
    pub(super) fn guarded(&self, bounds: [Option<usize>; 2], loc: Loc, body: impl FnOnce()) {
        let mut guard: Option<RawValue> = None;
        for (dimension, bound) in bounds.into_iter().enumerate() {
            let Some(bound) = bound else { continue };
            let Some((first, offset)) = self.thread("a tile", |t| self.first(t)[dimension] as i64, loc) else { return };
            // The part that all threads share goes to the side of the bound.
            let known = offset.known + first;
            let place = offset.value.map_or(Operand::Known(ScalarType::I32, 0), Operand::from);
            let bound = Operand::Known(ScalarType::I32, bound as i64 - known);
            let inside = arith::compare_once(Cmp::Lt, ScalarType::I32, place, bound, loc);
            guard = Some(guard.map_or(inside, |before| arith::both_once(before, inside, loc)));
        }
        match guard {
            None => body(),
            Some(guard) => rt::when(Bool::from_raw(guard), loc, body),
        }
    }

    pub(super) fn values(&self) -> [usize; 2] {
        self.threads.values
    }

    pub(super) fn atom(&self) -> CopyAtom {
        self.atom
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.places.len()
    }
}

/// Groups of a copy that the same threads have part of.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The row and column below which a thread must lie; `None` where all do.
    pub bounds: [Option<usize>; 2],
    pub starts: Vec<[usize; 2]>,
}

/// A thread's part of a tile in global memory: see [`TiledCopy::partition_global`].
#[derive(Clone, Debug)]
pub struct GlobalPart<T: Scalar, A: Access> {
    /// The tile from the thread's first element on.
    pub(super) tile: GlobalTile<T, A>,
    thread: [Offset; 2],
    /// The tile from its own first element on.
    pub(super) whole: GlobalTile<T, A>,
    pub(super) threads: Arc<Threads>,
}

/// A thread's part of a tile in shared memory: see [`TiledCopy::partition_shared`].
#[derive(Clone, Debug)]
pub struct SharedPart<T: Scalar> {
    pub(super) tile: SharedTensor<T>,
    pub(super) part: Option<(Offset, Flat)>,
    /// How a wave copies straight to it.
    pub(super) direct: Option<Direct>,
    pub(super) threads: Arc<Threads>,
}

impl<T: Scalar, A: Access> GlobalPart<T, A> {
    pub(super) fn at(&self, at: [usize; 2], loc: Loc) -> [Offset; 2] {
        [0, 1].map(|i| self.thread[i].plus(Offset::known(at[i] as i64), loc))
    }
}

impl<T: Scalar> SharedPart<T> {
    pub(super) fn address(&self, at: [usize; 2], loc: Loc) -> RawValue {
        let Some((thread, flat)) = &self.part else { return RawValue::DEAD };
        let offset = thread.plus(Offset::known(flat.at(at)), loc);
        self.tile.address(offset.swizzled(self.tile.layout().swizzle(), loc), loc)
    }

    pub(super) fn widest(&self, dimension: usize) -> usize {
        let run = self.part.as_ref().map_or(1, |(_, flat)| flat.run(dimension).min(self.tile.unit()));
        usize::try_from(run).unwrap_or(1)
    }

    pub(super) fn shape(&self) -> [usize; 2] {
        self.part.as_ref().map_or([0; 2], |(_, flat)| flat.shape())
    }
}

/// `shape` in steps of `width` along `dimension`.
pub(super) fn pieces(shape: [usize; 2], dimension: usize, width: usize) -> Vec<[usize; 2]> {
    let step = |i: usize| if i == dimension { width } else { 1 };
    let mut pieces = Vec::new();
    for row in (0..shape[0]).step_by(step(0)) {
        for column in (0..shape[1]).step_by(step(1)) {
            pieces.push([row, column]);
        }
    }
    pieces
}
