//! Persistent blocks: who works on what, and in which order.
//!
//! A grid of as many blocks as run at once goes through numbered pieces of work. Either each of `n` blocks takes every
//! `n`-th number, or blocks draw numbers from a counter in global memory; a kernel is written for both alike.

use std::panic::Location;

use super::barriers::BarrierSetup;
use super::cluster;
use super::pipeline::{Cursor, Pipeline, UniformIndex};
use super::swizzled::int;
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Loc, RawValue};
use crate::types::arith::{self, Binary};
use crate::types::collectives::when;
use crate::types::shared::{SharedSlice, shared_array_named};
use crate::types::uniform::agreed;
use crate::types::{Axis, Bool, Cmp, I32, Scalar, TensorMut, Uniform, ids};
use crate::{Diagnostic, ScalarType};

/// How the blocks of a persistent grid share out pieces of work 0 to `count - 1`.
///
/// ```ignore
/// let mut ticket = schedule.start();
/// while schedule.has(ticket) {
///     // .. ticket.number() ..
///     schedule.receive(&mut ticket); // the producer: `draw`
/// }
/// ```
///
/// The grid is of one dimension. The blocks of a cluster work on the same number.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    count: Uniform<I32>,
    first: Uniform<I32>,
    /// Blocks (or clusters) of the grid.
    step: Uniform<I32>,
    drawn: Option<Drawn>,
}

/// What a schedule from a counter has.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    counter: TensorMut<I32, 1>,
    tickets: Pipeline,
    numbers: SharedSlice<I32>,
}

/// Where a warp is in a [`Schedule`]. Producer and consumers have one each.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    number: Uniform<I32>,
    /// The stage that the next number comes by.
    at: Option<Cursor>,
}

impl State for Ticket {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.number.visit(visitor);
        if let Some(at) = &mut self.at {
            at.visit(visitor);
        }
    }
}
impl Carried for Ticket {}

impl Ticket {
    /// Number of the piece of work.
    pub fn number(self) -> Uniform<I32> {
        self.number
    }
}

/// The block's (or cluster's) number in the grid, and how many there are.
fn place_in_grid(loc: Loc) -> (Uniform<I32>, Uniform<I32>) {
    let blocks = cluster::blocks() as usize;
    let share = |number: I32| match blocks {
        1 => known(number.raw()),
        blocks => known(arith::binary(Binary::Div, ScalarType::U32, number.raw(), int(blocks, loc), loc)),
    };
    (share(ids::block_id(Axis::X)), share(ids::grid_dim(Axis::X)))
}

/// A value that is computed from uniform ones.
fn known(value: RawValue) -> Uniform<I32> {
    Uniform::assume(I32::from_raw(value))
}

fn sum(a: RawValue, b: Uniform<I32>, loc: Loc) -> RawValue {
    arith::binary(Binary::Add, ScalarType::I32, a, b.raw(), loc)
}

impl Schedule {
    /// Every block takes each `n`-th number, in a grid of `n` blocks (or clusters): for pieces of equal length.
    #[track_caller]
    pub fn in_turn(count: impl UniformIndex) -> Self {
        let loc = Location::caller();
        let (first, step) = place_in_grid(loc);
        Schedule { count: count.index(loc), first, step, drawn: None }
    }

    /// Blocks draw numbers from `counter`, in the order of their need: for pieces of unequal length, longest first. The
    /// producer draws, and hands the number on to `consumers` consumer warps.
    ///
    /// `counter` holds a zero, before and after; no other launch may use it at the same time. In a cluster it is a
    /// trace error: a number does not reach the other blocks.
    #[track_caller]
    pub fn drawn(
        setup: &mut BarrierSetup,
        name: &str,
        counter: TensorMut<I32, 1>,
        count: impl UniformIndex,
        consumers: usize,
    ) -> Self {
        let loc = Location::caller();
        if cluster::blocks() > 1 {
            let message = "work that is drawn from a counter, in a cluster";
            let help = "a number reaches the block that draws it alone: use `Schedule::in_turn`";
            trace::error(loc, Diagnostic::error(message).help(help));
        }
        let (first, step) = place_in_grid(loc);
        // Two, so that the producer draws the next number while consumers work on the last one's.
        let tickets = Pipeline::new(setup, name, 2, consumers);
        let numbers = shared_array_named::<I32>(&format!("{name} drawn"), 2);
        Schedule { count: count.index(loc), first, step, drawn: Some(Drawn { counter, tickets, numbers }) }
    }

    /// Where everyone begins.
    #[track_caller]
    pub fn start(&self) -> Ticket {
        Ticket { number: self.first, at: self.drawn.map(|drawn| drawn.tickets.start()) }
    }

    /// Whether there is such a piece of work.
    #[track_caller]
    pub fn has(&self, ticket: Ticket) -> Uniform<Bool> {
        let loc = Location::caller();
        let (number, count) = (ticket.number.raw(), self.count.raw());
        Uniform::assume(Bool::from_raw(arith::compare(Cmp::Lt, ScalarType::I32, number, count, loc)))
    }

    /// Goes on to the next piece of work, as the producer: one thread. Where others may come too, drawing is a trace error.
    #[track_caller]
    pub fn draw(&self, ticket: &mut Ticket) {
        let loc = Location::caller();
        let (Some(drawn), Some(at)) = (self.drawn, &mut ticket.at) else {
            ticket.number = known(sum(ticket.number.raw(), self.step, loc));
            return;
        };
        if trace::with(|t| t.in_one_lane()) == Some(false) {
            let message = "each lane that comes here draws a number of its own";
            let help = "let one thread of the producer draw: `if elect_one() { .. }` around its loop";
            trace::error(loc, Diagnostic::error(message).help(help));
        }
        let one = I32::from_raw(int(1, loc));
        let place = drawn.counter.at(0);
        let number = I32::from_raw(sum(place.atomic_add(one).raw(), self.step, loc));
        ticket.number = Uniform::assume(number);
        // Every block draws once in vain: the last to do so leaves the counter as it was.
        let all = arith::binary(Binary::Add, ScalarType::I32, self.count.raw(), self.step.raw(), loc);
        let last = arith::binary(Binary::Sub, ScalarType::I32, all, one.raw(), loc);
        let is_last = Bool::from_raw(arith::compare(Cmp::Eq, ScalarType::I32, number.raw(), last, loc));
        when(is_last, || place.store(I32::from_raw(int(0, loc))));
        drawn.tickets.wait_empty(*at);
        drawn.numbers.at(at.stage()).store(number);
        drawn.tickets.commit(*at);
        at.advance();
    }

    /// Goes on to the next piece of work, as a consumer: the whole warp.
    #[track_caller]
    pub fn receive(&self, ticket: &mut Ticket) {
        let loc = Location::caller();
        let (Some(drawn), Some(at)) = (self.drawn, &mut ticket.at) else {
            ticket.number = known(sum(ticket.number.raw(), self.step, loc));
            return;
        };
        drawn.tickets.wait(*at);
        let number = drawn.numbers.at(at.stage()).load();
        ticket.number = known(agreed(ScalarType::I32, number.raw(), loc));
        drawn.tickets.release_warp(*at);
        at.advance();
    }
}

/// The order in which the tiles of a matrix are taken: in groups of rows, inside of a group column by column, so that
/// tiles which are worked on together share rows and columns in the L2 cache.
#[derive(Clone, Copy, Debug)]
pub struct TileOrder {
    rows: Uniform<I32>,
    columns: Uniform<I32>,
    group: usize,
}

impl TileOrder {
    /// Tiles of a matrix of `rows` x `columns` tiles, in groups of `group` rows (a host number, at least 1).
    #[track_caller]
    pub fn grouped(rows: impl UniformIndex, columns: impl UniformIndex, group: usize) -> Self {
        let loc = Location::caller();
        if group == 0 {
            let message = "groups of no rows of tiles";
            trace::error(loc, Diagnostic::error(message).help("use 1 or more"));
        }
        TileOrder { rows: rows.index(loc), columns: columns.index(loc), group: group.max(1) }
    }

    /// Number of tiles.
    #[track_caller]
    pub fn count(&self) -> Uniform<I32> {
        let loc = Location::caller();
        known(arith::binary(Binary::Mul, ScalarType::I32, self.rows.raw(), self.columns.raw(), loc))
    }

    /// Row and column of tile `number`.
    #[track_caller]
    pub fn at(&self, number: impl UniformIndex) -> (Uniform<I32>, Uniform<I32>) {
        let loc = Location::caller();
        let number = number.index(loc);
        let op = |op, a: RawValue, b: RawValue| arith::binary(op, ScalarType::I32, a, b, loc);
        // Nothing is negative: quotients take no steps for signs.
        let divide = |a: RawValue, b: RawValue| arith::binary(Binary::Div, ScalarType::U32, a, b, loc);
        let group = int(self.group, loc);
        let per_group = op(Binary::Mul, self.columns.raw(), group);
        let before = divide(number.raw(), per_group);
        let inside = op(Binary::Sub, number.raw(), op(Binary::Mul, before, per_group));
        let first_row = op(Binary::Mul, before, group);
        // The last group may have fewer rows.
        let left = op(Binary::Sub, self.rows.raw(), first_row);
        let few = arith::compare(Cmp::Lt, ScalarType::I32, left, group, loc);
        let rows = trace::emit1("arith.select", &[few, left, group], trace::IrType::I32, &[], loc);
        let column = divide(inside, rows);
        let row = op(Binary::Add, first_row, op(Binary::Sub, inside, op(Binary::Mul, column, rows)));
        (known(row), known(column))
    }
}
