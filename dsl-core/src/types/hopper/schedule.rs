//! Persistent blocks: who works on what, and in which order.
//!
//! A grid of as many blocks as run at once goes through numbered pieces of work. Each of `n` blocks takes every `n`-th
//! number, or blocks draw numbers from a counter in global memory, or the host has listed each block's numbers in a table; a
//! kernel is written for all alike.

use std::panic::Location;

use super::barriers::BarrierSetup;
use super::cluster;
use super::pipeline::{Cursor, Pipeline, UniformIndex};
use super::swizzled::int;
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Constant, Loc, RawValue};
use crate::types::arith::{self, Binary};
use crate::types::collectives::when;
use crate::types::shared::{SharedSlice, shared_array_named};
use crate::types::uniform::agreed;
use crate::types::{Axis, Bool, Cmp, I32, Scalar, Tensor, TensorMut, Uniform, ids};
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
    source: Source,
}

/// Where numbers come from.
#[derive(Clone, Copy, Debug)]
enum Source {
    Turns,
    Counter(Drawn),
    Table(Tensor<I32, 2>),
}

/// What a schedule from a counter has.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    counter: TensorMut<I32, 1>,
    /// How the others learn of a number, if they do.
    tickets: Option<(Pipeline, SharedSlice<I32>)>,
}

/// Where a warp is in a [`Schedule`]. Producer and consumers have one each.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    number: Uniform<I32>,
    from: Origin,
}

/// Where a ticket's next number comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Turns,
    /// The stage that it comes by.
    Stage(Cursor),
    /// Its place in the block's list.
    Place(Uniform<I32>),
}

impl State for Ticket {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.number.visit(visitor);
        match &mut self.from {
            Origin::Turns => {}
            Origin::Stage(at) => at.visit(visitor),
            Origin::Place(place) => place.visit(visitor),
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
        Schedule { count: count.index(loc), first, step, source: Source::Turns }
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
        Self::refuse_clusters(loc);
        let (first, step) = place_in_grid(loc);
        // Two, so that the producer draws the next number while consumers work on the last one's.
        let tickets = Pipeline::new(setup, name, 2, consumers);
        let numbers = shared_array_named::<I32>(&format!("{name} drawn"), 2);
        let source = Source::Counter(Drawn { counter, tickets: Some((tickets, numbers)) });
        Schedule { count: count.index(loc), first, step, source }
    }

    /// [`Schedule::drawn`] for one thread of the block, which hands on to the others what it makes of a number: that thread
    /// draws, and nobody receives.
    #[track_caller]
    pub fn drawn_by_one(counter: TensorMut<I32, 1>, count: impl UniformIndex) -> Self {
        let loc = Location::caller();
        Self::refuse_clusters(loc);
        let (first, step) = place_in_grid(loc);
        let source = Source::Counter(Drawn { counter, tickets: None });
        Schedule { count: count.index(loc), first, step, source }
    }

    fn refuse_clusters(loc: Loc) {
        if cluster::blocks() > 1 {
            let message = "work that is drawn from a counter, in a cluster";
            let help = "a number reaches the block that draws it alone: use `Schedule::in_turn`";
            trace::error(loc, Diagnostic::error(message).help(help));
        }
    }

    /// The host has listed the work: row `b` of `table` has the numbers of block (or cluster) `b`, up to the first that is
    /// negative or to the end of the row. For work whose lengths the host knows, or whose order it wants to choose.
    ///
    /// The table has a row for each block (or cluster) of the grid. Producer and consumers read it themselves, the consumers by
    /// whole warps.
    #[track_caller]
    pub fn listed(table: Tensor<I32, 2>) -> Self {
        let loc = Location::caller();
        let (first, step) = place_in_grid(loc);
        Schedule { count: known(int(0, loc)), first, step, source: Source::Table(table) }
    }

    /// Where everyone begins.
    #[track_caller]
    pub fn start(&self) -> Ticket {
        let loc = Location::caller();
        match self.source {
            Source::Turns => Ticket { number: self.first, from: Origin::Turns },
            Source::Counter(drawn) => {
                let from = drawn.tickets.map_or(Origin::Turns, |(tickets, _)| Origin::Stage(tickets.start()));
                Ticket { number: self.first, from }
            }
            Source::Table(table) => {
                let place = known(int(0, loc));
                Ticket { number: self.entry(table, place, loc), from: Origin::Place(place) }
            }
        }
    }

    /// Entry `place` of the block's list; behind its end -1.
    #[track_caller]
    fn entry(&self, table: Tensor<I32, 2>, place: Uniform<I32>, loc: Loc) -> Uniform<I32> {
        let minus_one = I32::from_raw(trace::constant(ScalarType::I32, Constant::Int(-1), loc));
        let inside = arith::compare(Cmp::Lt, ScalarType::I32, place.raw(), table.extent(1).raw(), loc);
        let entry = table.at((self.first, place)).load_if(Bool::from_raw(inside), minus_one);
        known(agreed(ScalarType::I32, entry.raw(), loc))
    }

    /// Whether there is such a piece of work.
    #[track_caller]
    pub fn has(&self, ticket: Ticket) -> Uniform<Bool> {
        let loc = Location::caller();
        let number = ticket.number.raw();
        let has = match self.source {
            Source::Table(_) => arith::compare(Cmp::Ge, ScalarType::I32, number, int(0, loc), loc),
            _ => arith::compare(Cmp::Lt, ScalarType::I32, number, self.count.raw(), loc),
        };
        Uniform::assume(Bool::from_raw(has))
    }

    /// Goes on to the next piece of work, as the producer: one thread. Where others may come too, drawing is a trace error.
    #[track_caller]
    pub fn draw(&self, ticket: &mut Ticket) {
        let loc = Location::caller();
        let Source::Counter(drawn) = self.source else { return self.go_on(ticket, loc) };
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
        if let (Some((tickets, numbers)), Origin::Stage(at)) = (drawn.tickets, &mut ticket.from) {
            tickets.wait_empty(*at);
            numbers.at(at.stage()).store(number);
            tickets.commit(*at);
            at.advance();
        }
    }

    /// Goes on to the next piece of work, as a consumer: the whole warp.
    #[track_caller]
    pub fn receive(&self, ticket: &mut Ticket) {
        let loc = Location::caller();
        let Source::Counter(drawn) = self.source else { return self.go_on(ticket, loc) };
        let (Some((tickets, numbers)), Origin::Stage(at)) = (drawn.tickets, &mut ticket.from) else {
            let message = "a number that one thread draws for itself is received";
            let help = "hand on what the others need, or use `Schedule::drawn`";
            return trace::error(loc, Diagnostic::error(message).help(help));
        };
        tickets.wait(*at);
        let number = numbers.at(at.stage()).load();
        ticket.number = known(agreed(ScalarType::I32, number.raw(), loc));
        tickets.release_warp(*at);
        at.advance();
    }

    /// Where the producer hands nothing on.
    #[track_caller]
    fn go_on(&self, ticket: &mut Ticket, loc: Loc) {
        match (self.source, &mut ticket.from) {
            (Source::Table(table), Origin::Place(place)) => {
                *place = known(sum(int(1, loc), *place, loc));
                let place = *place;
                ticket.number = self.entry(table, place, loc);
            }
            _ => ticket.number = known(sum(ticket.number.raw(), self.step, loc)),
        }
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
