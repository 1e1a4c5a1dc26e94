//! Rings of stages between a producer and its consumers.

use std::panic::Location;

use super::barriers::{BarrierSetup, Mbarrier, parity};
use super::cluster;
use super::swizzled::int;
use crate::ScalarType;
use crate::rt::{Carried, Poison, State, Visitor};
use crate::trace::{self, Attr, Loc, RawValue};
use crate::types::arith::{self, Binary};
use crate::types::collectives::when;
use crate::types::{Bool, Cmp, I32, Scalar, Uniform, ids};

/// A number that a whole warp goes by, such as that of a stage.
#[diagnostic::on_unimplemented(
    message = "a warp goes by one number here, and the lanes of `{Self}` may have several",
    label = "expected `Uniform<I32>`, `i32` or `usize`",
    note = "`uniform(x)` says that all lanes have `x` alike, which the emulator checks"
)]
pub trait UniformIndex: Copy {
    #[doc(hidden)]
    fn index(self, loc: Loc) -> Uniform<I32>;
}
impl UniformIndex for Uniform<I32> {
    fn index(self, _: Loc) -> Uniform<I32> {
        self
    }
}
macro_rules! host_indices {
    ($($ty:ty)*) => { $(
        impl UniformIndex for $ty {
            fn index(self, loc: Loc) -> Uniform<I32> {
                Uniform::assume(I32::from_raw(int(self as usize, loc)))
            }
        }
    )* };
}
host_indices! { i32 usize }

/// A ring of stages that one thread fills by tensor copies and warpgroups read.
///
/// Each stage has two mbarriers: *full* completes when the copies have landed, *empty* when every consumer has
/// released the stage. Which stage is next, and which of its phases, a [`Cursor`] knows; producer and consumers
/// have one each and advance it in step.
///
/// In a cluster, copies may be multicast: then a stage is empty when the consumers of all blocks have released
/// it, and [`Pipeline::release`] tells each block.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    full: Mbarrier,
    empty: Mbarrier,
    stages: usize,
    multicast: bool,
}

impl State for Pipeline {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.full.visit(visitor);
        self.empty.visit(visitor);
        visitor.host(format!("{} stages", self.stages));
    }
}
impl Carried for Pipeline {}

impl Pipeline {
    /// A ring of `stages` stages, each empty after `releases` releases: one for each warpgroup that calls
    /// [`Pipeline::release`], or for each warp that calls [`Pipeline::release_warp`].
    #[track_caller]
    pub fn new(setup: &mut BarrierSetup, name: &str, stages: usize, releases: usize) -> Self {
        Self::make(setup, name, stages, releases, false, Location::caller())
    }

    /// As [`Pipeline::new`], for copies that are multicast to every block of the cluster.
    #[track_caller]
    pub fn multicast(setup: &mut BarrierSetup, name: &str, stages: usize, releases: usize) -> Self {
        Self::make(setup, name, stages, releases, cluster::blocks() > 1, Location::caller())
    }

    fn make(setup: &mut BarrierSetup, name: &str, stages: usize, releases: usize, multicast: bool, loc: Loc) -> Self {
        let blocks = if multicast { cluster::blocks() as usize } else { 1 };
        let full = setup.group(&format!("{name}.full"), stages, 1, loc);
        let empty = setup.group(&format!("{name}.empty"), stages, releases * blocks, loc);
        Pipeline { full, empty, stages, multicast }
    }

    /// Number of stages.
    pub fn stages(&self) -> usize {
        self.stages
    }

    /// The first stage in its first phase.
    #[track_caller]
    pub fn start(&self) -> Cursor {
        let zero = known(int(0, Location::caller()));
        Cursor { stage: zero, phase: zero, stages: self.stages, counts: self.stages.is_power_of_two() }
    }

    /// The stage `stage` in its `round`-th use (from 0), for rings that are not used in turn.
    #[track_caller]
    pub fn at(&self, stage: impl UniformIndex, round: impl UniformIndex) -> Cursor {
        let loc = Location::caller();
        let phase = known(parity(round.index(loc).raw(), loc));
        Cursor { stage: stage.index(loc), phase, stages: self.stages, counts: false }
    }

    /// Producer: waits until the stage is empty, announces the bytes that copies will bring, and gives the
    /// barrier that they complete at. One thread calls it.
    #[track_caller]
    pub fn acquire(&self, cursor: Cursor, bytes: usize) -> Mbarrier {
        let loc = Location::caller();
        self.wait_empty_at(cursor, loc);
        let full = self.full.of(cursor.stage_at(loc), loc);
        trace::emit0("lw.mbarrier_expect_tx", &[full.address], &[("bytes", Attr::Int(bytes as i64))], loc);
        full
    }

    /// Producer without copies: waits until the stage is empty. It fills the stage itself, then calls
    /// [`Pipeline::commit`].
    #[track_caller]
    pub fn wait_empty(&self, cursor: Cursor) {
        self.wait_empty_at(cursor, Location::caller());
    }

    /// Producer without copies: hands the stage to the consumers, with what the calling thread wrote before.
    #[track_caller]
    pub fn commit(&self, cursor: Cursor) {
        let loc = Location::caller();
        trace::emit0("lw.mbarrier_arrive", &[self.full.of(cursor.stage_at(loc), loc).address], &[], loc);
    }

    fn wait_empty_at(&self, cursor: Cursor, loc: Loc) {
        // An empty ring is as after a phase of parity 1: the first round does not wait.
        let flipped = arith::binary(Binary::BitXor, ScalarType::I32, cursor.phase_at(loc).raw(), int(1, loc), loc);
        let empty = self.empty.of(cursor.stage_at(loc), loc);
        trace::emit0("lw.mbarrier_wait", &[empty.address, flipped], &[], loc);
    }

    /// Consumer: waits until the copies of the stage have landed.
    #[track_caller]
    pub fn wait(&self, cursor: Cursor) {
        let loc = Location::caller();
        let full = self.full.of(cursor.stage_at(loc), loc);
        trace::emit0("lw.mbarrier_wait", &[full.address, cursor.phase_at(loc).raw()], &[], loc);
    }

    /// Consumer: the warpgroup's products are done with the stage. All its threads call it, after the wait for
    /// those products; one arrives, or in a cluster one for each block.
    #[track_caller]
    pub fn release(&self, cursor: Cursor) {
        self.release_where(cursor, None, Location::caller());
    }

    /// [`Pipeline::release`] where a condition holds, the same for all threads of the warpgroup.
    #[track_caller]
    pub fn release_if(&self, condition: Uniform<Bool>, cursor: Cursor) {
        self.release_where(cursor, Some(condition.get()), Location::caller());
    }

    /// Consumer: the mbarrier at which the stage's releases arrive, for products that are committed to it.
    #[track_caller]
    pub fn empty(&self, cursor: Cursor) -> Mbarrier {
        let loc = Location::caller();
        self.empty.of(cursor.stage_at(loc), loc)
    }

    /// Consumer: the warp has read the stage itself. All its lanes call it, behind a `warp_sync()` where they have read by
    /// themselves; one arrives.
    ///
    /// `compute-sanitizer --tool racecheck` does not follow `warp_sync()` where ptxas needs no instruction for it, and takes what
    /// the other lanes read for a race; it follows arrivals of all lanes, `empty(cursor).arrive()`, of which there are then 32 a warp.
    #[track_caller]
    pub fn release_warp(&self, cursor: Cursor) {
        let loc = Location::caller();
        let lane = arith::compare(Cmp::Eq, ScalarType::I32, ids::lane(loc), int(0, loc), loc);
        let empty = self.empty.of(cursor.stage_at(loc), loc);
        when(Bool::from_raw(lane), || trace::emit0("lw.mbarrier_arrive", &[empty.address], &[], loc));
    }

    fn release_where(&self, cursor: Cursor, condition: Option<Bool>, loc: Loc) {
        let binary = |op, a, b| arith::binary(op, ScalarType::I32, a, b, loc);
        let thread = binary(Binary::BitAnd, ids::linear_thread(loc), int(WARPGROUP - 1, loc));
        let arrivals = if self.multicast { cluster::blocks() as usize } else { 1 };
        let mine = arith::compare(Cmp::Lt, ScalarType::I32, thread, int(arrivals, loc), loc);
        let mine = match condition {
            None => mine,
            Some(condition) => trace::emit1("arith.andi", &[mine, condition.raw()], trace::IrType::BOOL, &[], loc),
        };
        let empty = self.empty.of(cursor.stage_at(loc), loc);
        when(Bool::from_raw(mine), || {
            if self.multicast {
                trace::emit0("lw.mbarrier_arrive_peer", &[empty.address, thread], &[], loc);
            } else {
                trace::emit0("lw.mbarrier_arrive", &[empty.address], &[], loc);
            }
        });
    }

    /// Producer: waits until the consumers have released everything, from `cursor` on, once around the ring. A
    /// block of a cluster must not end while others may still arrive at its barriers.
    #[track_caller]
    pub fn drain(&self, cursor: Cursor) {
        let loc = Location::caller();
        let mut cursor = cursor;
        for _ in 0..self.stages {
            self.wait_empty_at(cursor, loc);
            cursor = cursor.after(loc);
        }
    }
}

/// Threads of a warpgroup.
pub(super) const WARPGROUP: usize = 128;

/// Where a producer or a consumer is in a [`Pipeline`].
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// The stage; for a number of stages that is a power of two, the number of stages used so far, of which
    /// stage and phase are bits: one value in the loop, and compilers see what it is.
    stage: Uniform<I32>,
    phase: Uniform<I32>,
    stages: usize,
    counts: bool,
}

impl State for Cursor {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.stage.visit(visitor);
        if !self.counts {
            self.phase.visit(visitor);
        }
        visitor.host(format!("{} stages", self.stages));
    }
}
impl Carried for Cursor {}
impl Poison for Cursor {
    fn poison() -> Self {
        Cursor { stage: Uniform::poison(), phase: Uniform::poison(), stages: 1, counts: false }
    }
}

/// A value that is computed from uniform ones.
fn known(value: RawValue) -> Uniform<I32> {
    Uniform::assume(I32::from_raw(value))
}

impl Cursor {
    fn stage_at(self, loc: Loc) -> Uniform<I32> {
        if !self.counts {
            return self.stage;
        }
        known(arith::binary(Binary::BitAnd, ScalarType::I32, self.stage.raw(), int(self.stages - 1, loc), loc))
    }

    fn phase_at(self, loc: Loc) -> Uniform<I32> {
        if !self.counts {
            return self.phase;
        }
        let shift = int(self.stages.ilog2() as usize, loc);
        let rounds = arith::binary(Binary::Shr, ScalarType::U32, self.stage.raw(), shift, loc);
        known(parity(rounds, loc))
    }

    fn after(self, loc: Loc) -> Self {
        let binary = |op, a: Uniform<I32>, b| arith::binary(op, ScalarType::I32, a.raw(), b, loc);
        let next = binary(Binary::Add, self.stage, int(1, loc));
        if self.counts {
            return Cursor { stage: known(next), ..self };
        }
        if self.stages == 1 {
            return Cursor { phase: known(binary(Binary::BitXor, self.phase, int(1, loc))), ..self };
        }
        let wraps = arith::compare(Cmp::Eq, ScalarType::I32, next, int(self.stages, loc), loc);
        let pick = |a, b| known(trace::emit1("arith.select", &[wraps, a, b], trace::IrType::I32, &[], loc));
        let flipped = binary(Binary::BitXor, self.phase, int(1, loc));
        Cursor { stage: pick(int(0, loc), next), phase: pick(flipped, self.phase.raw()), ..self }
    }

    /// The stage that it stands at: below the number of stages.
    #[track_caller]
    pub fn stage(self) -> Uniform<I32> {
        self.stage_at(Location::caller())
    }

    /// Where it will be one stage later.
    #[track_caller]
    pub fn next(self) -> Self {
        self.after(Location::caller())
    }

    /// Goes on by one stage.
    #[track_caller]
    pub fn advance(&mut self) {
        *self = self.after(Location::caller());
    }
}
