//! Synchronisation of the threads of a block.

use std::panic::Location;

use super::Scope;
use super::ids;
use super::place::{Coord, Coordinate};
use crate::Diagnostic;
use crate::trace::{self, Attr, Loc, RawValue};

/// All threads of the block meet; shared and global memory written before is visible to them after.
///
/// Every thread of the block must come here: the emulator reports those that do not.
#[track_caller]
pub fn barrier() {
    barrier_at(Location::caller());
}

pub(crate) fn barrier_at(loc: Loc) {
    trace::emit0("gpu.barrier", &[], &[], loc);
}

/// The lanes of the warp meet; shared memory written before is visible to them after.
#[track_caller]
pub fn warp_sync() {
    trace::emit0("lw.warp_sync", &[], &[], Location::caller());
}

/// The compiler moves no instruction from one side of this line to the other. It costs no instruction and orders nothing
/// between threads: it keeps, for instance, loads that were started early from sinking to where they are used.
///
/// On AMD it binds all of the scheduling. On NVIDIA it binds LLVM, which writes PTX; `ptxas` schedules machine
/// instructions afterwards as it likes.
#[track_caller]
pub fn sched_barrier() {
    trace::emit0("lw.sched_barrier", &[], &[], Location::caller());
}

/// Orders the thread's earlier accesses before its later ones, as threads in the scope see them.
#[track_caller]
pub fn fence(scope: Scope) {
    let loc = Location::caller();
    trace::emit0("lw.fence", &[], &[scope.attribute(loc)], loc);
}

/// Waits until the launch before this one on the stream is through and all that it wrote is visible.
///
/// A launch with `.overlapping()` may start while the one before it still runs, on chips from sm_90 on: to read or write
/// nothing of its before this call is the kernel's business. Every thread that does must make the call. Any other launch,
/// and any other chip, has waited already.
#[track_caller]
pub fn wait_for_previous_grid() {
    grid_dependency("wait", Location::caller());
}

/// Lets the next launch on the stream start, if it was made with `.overlapping()`, once every block has made this call or
/// is through. It says nothing of what this launch has written: the next one waits for that.
#[track_caller]
pub fn release_next_grid() {
    grid_dependency("release", Location::caller());
}

fn grid_dependency(kind: &str, loc: Loc) {
    trace::emit0("lw.grid_dependency", &[], &[("kind", Attr::Str(kind.to_owned()))], loc);
}

/// One of the 15 barriers that a part of a block meets at; NVIDIA chips have them.
#[must_use = "a named barrier does nothing until `.sync()` or `.arrive()`"]
#[derive(Clone, Copy, Debug)]
pub struct NamedBarrier {
    id: usize,
    index: Option<RawValue>,
    threads: usize,
    valid: bool,
}

/// Barrier `id` (1 to 15) for `threads` threads: those that sync plus those that arrive, a multiple of the
/// warp size and no more than the block has. Anything else is a trace error.
#[track_caller]
pub fn named_barrier(id: usize, threads: usize) -> NamedBarrier {
    let loc = Location::caller();
    let (warp, block) = (ids::target().warp_size() as usize, ids::block_threads() as usize);
    let fault = if !(1..=15).contains(&id) {
        let help = "named barriers are 1 to 15; 0 is `barrier()`";
        Some(Diagnostic::error(format!("there is no named barrier {id}")).help(help))
    } else if threads == 0 || !threads.is_multiple_of(warp) {
        let message = format!("a named barrier for {threads} threads");
        Some(Diagnostic::error(message).help(format!("whole warps meet: use a multiple of {warp}")))
    } else if threads > block {
        Some(Diagnostic::error(format!("a named barrier for {threads} threads in a block of {block}")))
    } else {
        None
    };
    let valid = fault.is_none();
    if let Some(fault) = fault {
        trace::error(loc, fault);
    }
    NamedBarrier { id, index: None, threads, valid }
}

/// Several named barriers in a row, to be chosen from at run time: `first` to `first + count - 1`, each for
/// `threads` threads as [`named_barrier`].
#[track_caller]
pub fn named_barriers(first: usize, count: usize, threads: usize) -> NamedBarriers {
    let barrier = named_barrier(first, threads);
    let last = if count > 1 { named_barrier((first + count).saturating_sub(1), threads) } else { barrier };
    NamedBarriers { first: NamedBarrier { valid: barrier.valid && last.valid && count > 0, ..barrier } }
}

/// What [`named_barriers`] gives.
#[derive(Clone, Copy, Debug)]
pub struct NamedBarriers {
    first: NamedBarrier,
}

impl NamedBarriers {
    /// Barrier number `index` of them, an `I32` that the warp's lanes agree on, or a host number.
    #[track_caller]
    pub fn at(self, index: impl Coordinate) -> NamedBarrier {
        match index.coordinate(Location::caller()) {
            Coord::Known(index) => NamedBarrier { id: self.first.id + index as usize, ..self.first },
            index => NamedBarrier { index: Some(index.narrow(Location::caller())), ..self.first },
        }
    }
}

impl NamedBarrier {
    /// Waits until all threads of the barrier are here or have arrived.
    #[track_caller]
    pub fn sync(self) {
        self.emit("sync", Location::caller());
    }

    /// Tells the barrier that this thread has come, and goes on.
    #[track_caller]
    pub fn arrive(self) {
        self.emit("arrive", Location::caller());
    }

    fn emit(self, kind: &str, loc: Loc) {
        if self.valid {
            let attributes = [
                ("id", Attr::Int(self.id as i64)),
                ("threads", Attr::Int(self.threads as i64)),
                ("kind", Attr::Str(kind.to_owned())),
            ];
            trace::emit0("lw.named_barrier", self.index.as_slice(), &attributes, loc);
        }
    }
}
