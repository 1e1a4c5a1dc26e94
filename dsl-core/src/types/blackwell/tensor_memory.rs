//! Tensor memory: 128 lanes of 512 columns of 32 bits, beside the registers of a multiprocessor.
//!
//! A block takes columns of it for as long as it runs ([`TensorMemory`]). Matrix products sum there, and write when
//! they are done ([`TmemAccumulator`]); warps load rows to registers and store them, 32 lanes each ([`TmemRows`]).

use std::panic::Location;

use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::types::arith::{self, Binary};
use crate::types::collectives::when;
use crate::types::hopper::Mbarrier;
use crate::types::place::{Coord, Coordinate, InShared, Place};
use crate::types::shared::SharedAlloc;
use crate::types::{Bool, Cmp, F32, I32, Scalar, ids, sync};
use crate::{Diagnostic, ScalarType};

/// Lanes of tensor memory, and rows of a tile.
pub(super) const LANES: usize = 128;
/// Columns of tensor memory of a multiprocessor.
const COLUMNS: usize = 512;
/// Lanes that one warp reaches.
const QUARTER: usize = 32;

/// Orders what the thread did in tensor memory before the arrival or the barrier that it makes next. Loads and
/// stores must have been waited for (PTX ISA, "tcgen05.fence").
#[track_caller]
pub fn tcgen05_fence_before_thread_sync() {
    fence("before_thread_sync", Location::caller());
}

/// Orders what the thread does in tensor memory from here on after the barrier or the wait that it has passed.
#[track_caller]
pub fn tcgen05_fence_after_thread_sync() {
    fence("after_thread_sync", Location::caller());
}

pub(super) fn fence(kind: &str, loc: Loc) {
    trace::emit0("lw.tcgen05_fence", &[], &[("kind", Attr::Str(kind.to_owned()))], loc);
}

fn int(value: usize, loc: Loc) -> RawValue {
    ids::int(value as u32, loc)
}

/// Does something in the block's first warp.
fn in_first_warp(loc: Loc, body: impl FnOnce()) {
    if ids::block_threads() <= 32 {
        return body();
    }
    let first = arith::compare(Cmp::Eq, ScalarType::I32, ids::warp(loc), int(0, loc), loc);
    when(Bool::from_raw(first), body);
}

/// Columns of tensor memory that the block has, all 128 lanes of them.
///
/// The whole block calls [`TensorMemory::alloc`] and [`TensorMemory::dealloc`]; its first warp makes both. What is
/// not given back stays taken when the block has ended, and the next block waits for it forever: to drop the value is
/// a trace error, and a path that ends without `dealloc` a report of the emulator.
#[must_use = "tensor memory must be given back: call `.dealloc()`"]
#[derive(Debug)]
pub struct TensorMemory {
    /// Address of the first lane of the first column.
    address: RawValue,
    columns: usize,
    loc: Loc,
    freed: bool,
}

impl Drop for TensorMemory {
    fn drop(&mut self) {
        if !self.freed && !std::thread::panicking() {
            let message = "this tensor memory is never given back";
            let help = "the next block would wait for it forever: call `.dealloc()` at the end of the kernel";
            trace::error(self.loc, Diagnostic::error(message).help(help));
        }
    }
}

impl TensorMemory {
    /// Allocates `columns` columns (a host number): 32, 64, 128, 256 or 512. The block meets here; a later allocation
    /// of the same kernel may not be larger than an earlier one.
    ///
    /// It waits until other blocks of the multiprocessor have left enough of the 512.
    #[track_caller]
    pub fn alloc(columns: usize) -> Self {
        let loc = Location::caller();
        if !(32..=COLUMNS).contains(&columns) || !columns.is_power_of_two() {
            let message = format!("{columns} columns of tensor memory cannot be allocated");
            trace::error(loc, Diagnostic::error(message).help("allocate 32, 64, 128, 256 or 512"));
        }
        let threads = ids::block_threads();
        if !threads.is_multiple_of(32) {
            let message = format!("tensor memory in a block of {threads} threads");
            trace::error(loc, Diagnostic::error(message).help("whole warps use it: make the block a multiple of 32"));
        }
        let slot = SharedAlloc::new(loc).member("address of tensor memory", 4, Some(4));
        in_first_warp(loc, || {
            trace::emit0("lw.tcgen05_alloc", &[slot], &[("columns", Attr::Int(columns as i64))], loc);
        });
        fence("before_thread_sync", loc);
        sync::barrier_at(loc);
        fence("after_thread_sync", loc);
        let address = Place::<I32, InShared>::new(slot).load().raw();
        TensorMemory { address, columns, loc, freed: false }
    }

    /// Says that the block will allocate no more, so that other blocks of the multiprocessor can. The whole block
    /// calls it.
    #[track_caller]
    pub fn relinquish_alloc_permit(&self) {
        let loc = Location::caller();
        in_first_warp(loc, || trace::emit0("lw.tcgen05_relinquish_alloc_permit", &[], &[], loc));
    }

    /// Gives the columns back, when all threads of the block have come here. Nothing may be under way in them.
    #[track_caller]
    pub fn dealloc(mut self) {
        let loc = Location::caller();
        self.freed = true;
        fence("before_thread_sync", loc);
        sync::barrier_at(loc);
        fence("after_thread_sync", loc);
        let columns = [("columns", Attr::Int(self.columns as i64))];
        in_first_warp(loc, || trace::emit0("lw.tcgen05_dealloc", &[self.address], &columns, loc));
    }

    /// Columns of the allocation.
    pub fn columns(&self) -> usize {
        self.columns
    }

    fn part(&self, what: &str, first: usize, columns: usize, loc: Loc) -> RawValue {
        let last = first.saturating_add(columns.max(1) - 1);
        if columns == 0 || last >= self.columns {
            let message = format!("{what} of columns {first} to {last} of tensor memory");
            let help = format!("{} columns are allocated", self.columns);
            trace::error(loc, Diagnostic::error(message).help(help));
        }
        advance(self.address, 0, Coord::Known(first as i64), loc)
    }

    /// The tile of 128 rows in `columns` columns from `first` on (host numbers), for loads and stores.
    #[track_caller]
    pub fn tile(&self, first: usize, columns: usize) -> TmemTile {
        let address = self.part("a tile", first, columns, Location::caller());
        TmemTile { address, rows: LANES, columns }
    }

    /// The accumulator of products of `rows` x `columns` (host numbers) in the columns from `first` on. Rows are 128,
    /// one a lane, or 64: then row `r` lies in lane `32 (r / 16) + r % 16`.
    #[track_caller]
    pub fn accumulator(&self, rows: usize, first: usize, columns: usize) -> TmemAccumulator {
        let loc = Location::caller();
        if !matches!(rows, 64 | LANES) {
            let message = format!("an accumulator of {rows} rows");
            trace::error(loc, Diagnostic::error(message).help("products in tensor memory have 128 rows, or 64"));
        }
        let address = self.part("an accumulator", first, columns, loc);
        TmemAccumulator { tile: TmemTile { address, rows, columns } }
    }
}

/// An address so many lanes and columns further.
fn advance(address: RawValue, lane: usize, column: Coord, loc: Loc) -> RawValue {
    let add = |a, b| arith::binary(Binary::Add, ScalarType::I32, a, b, loc);
    let address = if lane == 0 { address } else { add(address, int(lane << 16, loc)) };
    match column {
        Coord::Known(0) => address,
        Coord::Known(column) => add(address, int(column as usize, loc)),
        column => add(address, column.narrow(loc)),
    }
}

/// What products sum into. Nothing can be read from it: [`TmemAccumulator::wait`] gives the tile that can.
#[derive(Clone, Copy, Debug)]
pub struct TmemAccumulator {
    pub(super) tile: TmemTile,
}

impl State for TmemAccumulator {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.tile.visit(visitor);
    }
}
impl Carried for TmemAccumulator {}

impl TmemAccumulator {
    /// Waits until the phase of this parity of the mbarrier that the products were committed to has completed, and
    /// gives the sums.
    #[track_caller]
    pub fn wait(&self, barrier: Mbarrier, parity: I32) -> TmemTile {
        let loc = Location::caller();
        trace::emit0("lw.mbarrier_wait", &[barrier.address(), parity.raw()], &[], loc);
        fence("after_thread_sync", loc);
        self.tile
    }
}

/// A matrix of `f32` in tensor memory, for loads and stores.
#[derive(Clone, Copy, Debug)]
pub struct TmemTile {
    pub(super) address: RawValue,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl State for TmemTile {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.address);
        visitor.host(format!("{} x {}", self.rows, self.columns));
    }
}
impl Carried for TmemTile {}

impl TmemTile {
    /// Rows of the tile.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the tile.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The rows that one warp can reach, number `index` of four: those in lanes `32 index` to `32 index + 31`. Warp
    /// `w` of the block reaches number `w % 4` alone, whatever its task is (PTX ISA, "tcgen05.ld", access
    /// restrictions).
    #[track_caller]
    pub fn row_block(&self, index: impl Coordinate) -> TmemRows {
        let loc = Location::caller();
        let index = index.coordinate(loc);
        let warps = ids::block_threads().div_ceil(32) as i64;
        if let Coord::Known(number) = index
            && !(0..4).contains(&number)
        {
            let message = format!("row block {number} of tensor memory");
            trace::error(loc, Diagnostic::error(message).help("there are four, of 32 lanes each"));
        } else if let Coord::Known(number) = index
            && number >= warps
        {
            let first = number * QUARTER as i64;
            let message = format!("lanes {first} to {} of tensor memory in a block of {warps} warps", first + 31);
            let help = format!(
                "warp `w` reaches lanes `32 (w % 4)` to `32 (w % 4) + 31` alone: that takes a block of {} warps",
                number + 1
            );
            trace::error(loc, Diagnostic::error(message).label("no warp of the block reaches them").help(help));
        }
        let address = match index {
            Coord::Known(number) => advance(self.address, QUARTER * number.clamp(0, 3) as usize, Coord::Known(0), loc),
            number => {
                let lanes =
                    arith::binary(Binary::Mul, ScalarType::I32, number.narrow(loc), int(QUARTER << 16, loc), loc);
                arith::binary(Binary::Add, ScalarType::I32, self.address, lanes, loc)
            }
        };
        TmemRows { tile: TmemTile { address, ..*self } }
    }

    /// The rows that the calling warp can reach: row block `warp_id() % 4`. The whole warp calls it.
    #[track_caller]
    pub fn own_rows(&self) -> TmemRows {
        let loc = Location::caller();
        let warp = ids::warp(loc);
        let warp = if ids::block_threads() <= 128 {
            warp
        } else {
            arith::binary(Binary::BitAnd, ScalarType::I32, warp, int(3, loc), loc)
        };
        self.row_block(I32::from_raw(warp))
    }
}

/// The part of a [`TmemTile`] that one warp reaches.
///
/// Lane `l` of the warp has the row in lane `l` of the part. In a tile of 64 rows, lanes 0 to 15 have rows `16 i` to
/// `16 i + 15` of row block `i`, and what the other lanes get means nothing.
#[derive(Clone, Copy, Debug)]
pub struct TmemRows {
    tile: TmemTile,
}

impl State for TmemRows {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.tile.visit(visitor);
    }
}
impl Carried for TmemRows {}

impl TmemRows {
    fn columns_at(&self, column: impl Coordinate, count: usize, loc: Loc) -> RawValue {
        if !count.is_power_of_two() || count > LANES {
            let message = format!("an access to {count} columns of tensor memory at once");
            trace::error(loc, Diagnostic::error(message).help("take 1, 2, 4, 8, 16, 32, 64 or 128"));
        }
        let column = column.coordinate(loc);
        if let Coord::Known(first) = column
            && (first < 0 || first as usize + count > self.tile.columns)
        {
            let message = format!("{count} columns from {first} on of a tile of {}", self.tile.columns);
            trace::error(loc, Diagnostic::error(message).label("outside of the tile"));
        }
        advance(self.tile.address, 0, column, loc)
    }

    /// Starts the load of `N` columns from `column` on, the row of the lane; `N` is a power of two up to 128. The
    /// whole warp calls it, with one column.
    #[track_caller]
    pub fn load<const N: usize>(&self, column: impl Coordinate) -> TmemLoad<N> {
        let loc = Location::caller();
        let address = self.columns_at(column, N, loc);
        let rows = [("rows", Attr::Int(if self.tile.rows == LANES { 32 } else { 16 }))];
        let values = trace::with(|t| t.emit("lw.tcgen05_ld", &[address], &[IrType::F32; N], &rows, loc));
        let values = values.unwrap_or_default();
        let value = |index| F32::from_raw(values.get(index).copied().unwrap_or(RawValue::DEAD));
        TmemLoad { values: std::array::from_fn(value), loc, waited: false }
    }

    /// Starts the store of `N` values to the columns from `column` on, to the row of the lane; `N` is a power of two
    /// up to 128. The whole warp calls it, with one column.
    #[track_caller]
    pub fn store<const N: usize>(&self, column: impl Coordinate, values: [F32; N]) -> TmemStore {
        let loc = Location::caller();
        let address = self.columns_at(column, N, loc);
        let operands: Vec<_> = std::iter::once(address).chain(values.iter().map(|value| value.raw())).collect();
        trace::emit0("lw.tcgen05_st", &operands, &[], loc);
        TmemStore { loc, waited: false }
    }
}

fn unwaited(what: &str, loc: Loc) {
    if !std::thread::panicking() {
        let message = format!("nothing waits for this {what} of tensor memory");
        trace::error(loc, Diagnostic::error(message).help("call `.wait()` on it"));
    }
}

/// A load under way. [`TmemLoad::wait`] alone hands out its values; to drop it is a trace error.
#[must_use = "a load that nobody waits for has no values: call `.wait()`"]
#[derive(Debug)]
pub struct TmemLoad<const N: usize> {
    values: [F32; N],
    loc: Loc,
    waited: bool,
}

impl<const N: usize> Drop for TmemLoad<N> {
    fn drop(&mut self) {
        if !self.waited {
            unwaited("load", self.loc);
        }
    }
}

impl<const N: usize> TmemLoad<N> {
    /// Waits for all loads that the warp has started, and gives the values of this one.
    #[track_caller]
    pub fn wait(mut self) -> [F32; N] {
        self.waited = true;
        let loc = Location::caller();
        let operands = self.values.map(|value| value.raw());
        let kind = [("kind", Attr::Str("ld".to_owned()))];
        let values = trace::with(|t| t.emit("lw.tcgen05_wait", &operands, &[IrType::F32; N], &kind, loc));
        let values = values.unwrap_or_default();
        std::array::from_fn(|index| F32::from_raw(values.get(index).copied().unwrap_or(RawValue::DEAD)))
    }
}

/// A store under way; to drop it is a trace error.
#[must_use = "a store must be waited for: call `.wait()`"]
#[derive(Debug)]
pub struct TmemStore {
    loc: Loc,
    waited: bool,
}

impl Drop for TmemStore {
    fn drop(&mut self) {
        if !self.waited {
            unwaited("store", self.loc);
        }
    }
}

impl TmemStore {
    /// Waits for all stores that the warp has started.
    #[track_caller]
    pub fn wait(mut self) {
        self.waited = true;
        trace::emit0("lw.tcgen05_wait", &[], &[("kind", Attr::Str("st".to_owned()))], Location::caller());
    }
}
