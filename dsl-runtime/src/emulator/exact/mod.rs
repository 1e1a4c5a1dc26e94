//! What values would be without rounding and without wrapping, beside what they are.
//!
//! A [`Follower`] goes along with a warp and keeps for registers a [`Cell`] wherever the exact value is known to differ
//! from the machine's, or to have come from a coarser format:
//!
//! - **Floats** (check `shadow`): the same operations in binary64, from the same inputs. Where a result is further from
//!   its shadow than the bound allows, and no operand explains it, an [`Origin`] is noted; it is reported when such a
//!   value reaches global memory. Differences that later operations absorb are no mistakes: the `x - max` of a softmax
//!   may lose every digit and its exponential none.
//! - **Integers** (check `overflow`): the sum or product that an index of 32 bits had no room for. The decoder knows
//!   which operations lead to an address; only those are tested, by the fast interpreter too. The first that wraps
//!   makes its warp go on with a follower, and an access through what came of it is reported. Hashes and random
//!   numbers, which wrap by design and reach no address but through `%`, `&`, `^`, `|` and `>>`, are left alone.
//!
//! Decisions are those of the machine's values: a comparison, a maximum's index or a conversion to an integer does not
//! ask the shadow. Functions that jump (`floor`, `round`, `%`) start a shadow anew.
//!
//! The register file is bytes here: lane `l` of a 32-bit slot `r` lies at `128 r + 4 l`, a 64-bit lane at `128 r + 8 l`,
//! and the parts of packed words at their bytes. So loads, stores, packing and matrix fragments all move cells alike.

mod expression;
mod format;
mod integers;
mod memory;
mod products;
mod step;
mod transfer;

pub(crate) use expression::{expression, show};
pub(crate) use format::Format;
pub(crate) use memory::ExactMemory;
use memory::shared_key;
pub(crate) use products::{ExactPart, ExactTile};
pub(crate) use step::Now;

use super::checks::Bound;
use super::exec::numbers::LoopState;
use super::lanes::{LANES, Reg, Registers};
use super::op::Pc;
use super::program::Program;

/// Bytes of a slot.
const SLOT: u32 = 4 * LANES as u32;

/// Which kind of exact value a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nothing,
    Float(Format),
    Integer,
}

/// What is known of one value beside its bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    bits: u64,
    /// Number of the [`Origin`] of its error, counted from 1; 0 while the error is within the bound.
    origin: u32,
    kind: Kind,
    /// Binary digits of the coarsest format that it has been through.
    digits: u8,
}

impl Cell {
    const NOTHING: Self = Self { bits: 0, origin: 0, kind: Kind::Nothing, digits: 0 };

    fn float(value: f64, origin: u32, digits: u8, format: Format) -> Self {
        Self { bits: value.to_bits(), origin, kind: Kind::Float(format), digits }
    }

    fn integer(value: i64, origin: u32) -> Self {
        Self { bits: value as u64, origin, kind: Kind::Integer, digits: 0 }
    }

    fn as_float(self) -> Option<f64> {
        matches!(self.kind, Kind::Float(_)).then(|| f64::from_bits(self.bits))
    }

    fn as_integer(self) -> Option<i64> {
        (self.kind == Kind::Integer).then_some(self.bits as i64)
    }

    fn format(self) -> Option<Format> {
        match self.kind {
            Kind::Float(format) => Some(format),
            _ => None,
        }
    }
}

/// The operation in which a value first went wrong.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) pc: Pc,
    /// Lane within the warp.
    pub(crate) lane: u32,
    pub(crate) warp: u32,
    /// The operands as they are and as they would be.
    pub(crate) operands: Vec<[f64; 2]>,
    /// The result likewise.
    pub(crate) result: [f64; 2],
    /// The innermost counted loop around it.
    pub(crate) around: Option<LoopState>,
}

/// A value that reached memory or an address and is not what it should be.
#[derive(Debug)]
pub(crate) struct Inexact {
    pub(crate) origin: Origin,
    /// Where it showed.
    pub(crate) shown: Pc,
    /// The value there as it is and as it would be.
    pub(crate) value: [f64; 2],
    /// Whether it is an index that wrapped.
    pub(crate) is_index: bool,
}

impl Bound {
    /// Whether a value is further from its shadow than this. `digits` are those of the coarsest format on the way.
    pub(crate) fn is_exceeded(self, [value, exact]: [f64; 2], digits: u8) -> bool {
        if value == exact || value.is_nan() && exact.is_nan() {
            return false;
        }
        let error = (value - exact).abs();
        let allowed = match self {
            Self::Relative(bound) => bound * exact.abs(),
            Self::Ulps(ulps) => ulps * f64::from(1 - i32::from(digits)).exp2() * exact.abs(),
        };
        // A NaN, or an infinity on one side, is beyond every bound.
        error.is_nan() || error > allowed || !value.is_finite() || !exact.is_finite()
    }
}

/// Whether an operand's error explains that of a result: without it the result would change by so much.
fn explains(contribution: f64, error: f64) -> bool {
    contribution.is_nan() || error.is_nan() || contribution >= 0.25 * error
}

/// Whether an error matters more than another.
fn outweighs(error: f64, other: f64) -> bool {
    error.is_nan() || error > other
}

/// The cells of one slot.
#[derive(Clone, Debug, Default)]
struct Row {
    /// Bytes of each value; 0 where nothing is known.
    width: u8,
    cells: Vec<Cell>,
}

/// A result that is predicted before its operation runs.
#[derive(Clone, Copy, Debug)]
struct Predicted {
    at: u32,
    format: Format,
    exact: f64,
    operands: [[f64; 2]; 3],
    count: u8,
    /// The origin among those of the operands whose error matters most, and how much the result changes by it.
    origin: u32,
    contribution: f64,
    digits: u8,
    lane: u8,
}

/// A known value that only moves.
#[derive(Clone, Copy, Debug)]
struct Moved {
    at: u32,
    width: u8,
    cell: Cell,
}

/// A load that has yet to happen: `bytes` bytes of a register lane from memory.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    at: u32,
    key: u64,
    bytes: u32,
}

/// What the running operation will have done.
#[derive(Debug, Default)]
struct Pending {
    pc: Pc,
    /// Slots that are overwritten.
    cleared: Vec<(Reg, u32)>,
    /// Bytes that are overwritten in slots whose other lanes stay.
    emptied: Vec<(u32, u32)>,
    predicted: Vec<Predicted>,
    moved: Vec<Moved>,
    loaded: Vec<Loaded>,
    stored: Vec<step::Stored>,
    updated: Vec<step::Updated>,
}

/// Goes along with one warp.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    rows: Vec<Row>,
    pending: Pending,
    /// Number of the warp in its block.
    warp: u32,
}

/// The bits of a register value.
fn raw(regs: &Registers<'_>, at: u32, width: u32) -> u64 {
    let (slot, word) = (at / SLOT, (at % SLOT / 4) as usize);
    let low = u64::from(regs.lane::<u32>(slot, word)) >> (8 * (at % 4));
    match width {
        8 => low | u64::from(regs.lane::<u32>(slot, word + 1)) << 32,
        4 => low,
        2 => low & 0xffff,
        _ => low & 0xff,
    }
}

/// Where the value of a lane lies: `part` is the byte in its word.
fn spot(reg: Reg, lane: usize, width: u32, part: u32) -> u32 {
    if width == 8 { SLOT * reg + 8 * lane as u32 } else { SLOT * reg + 4 * lane as u32 + part }
}

impl Follower {
    /// A follower that knows nothing.
    pub(crate) fn new(program: &Program, warp: u32) -> Self {
        Self { rows: vec![Row::default(); program.slot_count as usize], pending: Pending::default(), warp }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.rows.iter_mut().for_each(|row| row.width = 0);
        self.pending = Pending::default();
    }

    fn get(&self, at: u32, width: u32) -> Option<Cell> {
        let row = self.rows.get((at / SLOT) as usize).filter(|row| u32::from(row.width) == width)?;
        row.cells.get((at % SLOT / width) as usize).copied().filter(|cell| cell.kind != Kind::Nothing)
    }

    /// The widest value that starts at a byte, with its width.
    fn get_any(&self, at: u32) -> Option<(u32, Cell)> {
        let row = self.rows.get((at / SLOT) as usize)?;
        let width = u32::from(row.width);
        if width == 0 || !at.is_multiple_of(width) {
            return None;
        }
        self.get(at, width).map(|cell| (width, cell))
    }

    fn set(&mut self, at: u32, width: u32, cell: Cell) {
        let Some(row) = self.rows.get_mut((at / SLOT) as usize) else { return };
        if u32::from(row.width) != width {
            if cell.kind == Kind::Nothing {
                return;
            }
            row.width = width as u8;
            row.cells.clear();
            row.cells.resize((SLOT / width) as usize, Cell::NOTHING);
        }
        if let Some(place) = row.cells.get_mut((at % SLOT / width) as usize) {
            *place = cell;
        }
    }

    /// Forgets what is known of some bytes of one slot.
    fn unset(&mut self, at: u32, bytes: u32) {
        let Some(row) = self.rows.get_mut((at / SLOT) as usize).filter(|row| row.width > 0) else { return };
        let width = u32::from(row.width);
        let first = at % SLOT / width;
        let past = (at % SLOT + bytes).div_ceil(width);
        for place in row.cells.iter_mut().take(past as usize).skip(first as usize) {
            *place = Cell::NOTHING;
        }
    }

    /// Forgets what is known of whole slots.
    pub(crate) fn forget(&mut self, first: Reg, count: u32) {
        self.rows.iter_mut().skip(first as usize).take(count as usize).for_each(|row| row.width = 0);
    }

    /// A float as it is and as it would be, its origin, and its digits.
    fn number(&self, regs: &Registers<'_>, at: u32, format: Format) -> Number {
        let value = format.value(raw(regs, at, format.width()));
        Number::new(value, self.get(at, format.width()), format)
    }
}

/// A float beside its shadow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    pub(crate) value: f64,
    pub(crate) exact: f64,
    origin: u32,
    digits: u8,
}

impl Number {
    fn new(value: f64, cell: Option<Cell>, format: Format) -> Self {
        match cell.and_then(|cell| cell.as_float().map(|exact| (exact, cell))) {
            Some((exact, cell)) => Self { value, exact, origin: cell.origin, digits: cell.digits },
            None => Self { value, exact: value, origin: 0, digits: format.digits() },
        }
    }
}
