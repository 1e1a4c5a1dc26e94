//! The state of one warp between two runs of the interpreter: nothing of it lives on the Rust stack.

use std::cell::{Cell, RefCell};

use super::access::AccessError;
use super::collective::BadSource;
use super::copy::CopyQueue;
use super::dimensions::Outside;
use super::numbers::{Births, NumberFault};
use super::progress::Progress;
use super::traffic::Traffic;
use crate::emulator::Checks;
use crate::emulator::asynchronous::execute::WarpAsync;
use crate::emulator::asynchronous::fault::AsyncFault;
use crate::emulator::asynchronous::state::{AsyncState, Wait};
use crate::emulator::asynchronous::tensor_map::BoundMap;
use crate::emulator::exact::{ExactMemory, Follower, Inexact};
use crate::emulator::lanes::{LANES, Reg, Slot};
use crate::emulator::memory::{BlockConflict, Conflict, GlobalMemory, SharedMemory, SharedRaces, ThreadRaces, Touch};
use crate::emulator::op::Pc;
use crate::emulator::program::Program;

/// A saved mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) mask: u64,
    /// The lanes of the other arm of an `if`.
    pub(crate) other: u64,
}

/// One warp (or wave).
pub(crate) struct Warp {
    /// Number within the block.
    pub(crate) index: u32,
    pub(crate) pc: Pc,
    /// Lanes that execute.
    pub(crate) mask: u64,
    /// Lanes that exist: fewer than the width in the last warp of an odd block.
    pub(crate) existing: u64,
    pub(crate) frames: Vec<Frame>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) masks: Vec<u64>,
    pub(crate) copies: CopyQueue,
    pub(crate) asynchronous: WarpAsync,
    pub(crate) births: Births,
    /// By the program's dimensions.
    pub(crate) outside: Vec<Outside>,
    pub(crate) progress: Progress,
    pub(crate) traffic: Traffic,
    /// What goes along with the warp, where exact values are asked for or a difference was seen.
    pub(crate) follower: Option<Box<Follower>>,
    /// Rounds of loops whose conditions read memory.
    pub(crate) spins: u32,
    /// Operations executed in this block.
    pub(crate) executed: u64,
    pub(crate) printed: Vec<String>,
    pub(crate) printed_dropped: u64,
}

impl Warp {
    /// A warp of a program, with its constants in place.
    pub(crate) fn new(program: &Program, index: u32) -> Self {
        let threads = program.block_threads();
        let width = program.target.warp_size();
        let count = threads.saturating_sub(index * width).min(width);
        let mut masks = vec![0; program.mask_count as usize];
        for &(mask, value) in &program.mask_constants {
            if let Some(mask) = masks.get_mut(mask as usize) {
                *mask = if value { u64::MAX } else { 0 };
            }
        }
        let mut warp = Self {
            index,
            pc: 0,
            mask: 0,
            existing: if count == 0 { 0 } else { u64::MAX >> (64 - count) },
            frames: Vec::with_capacity(program.frame_depth as usize),
            slots: vec![Slot([0; LANES]); program.slot_count as usize],
            masks,
            copies: CopyQueue::default(),
            asynchronous: WarpAsync::default(),
            births: Births::new(program),
            outside: vec![Outside::default(); program.dimensions.len()],
            progress: Progress::default(),
            traffic: Traffic::default(),
            follower: None,
            spins: 0,
            executed: 0,
            printed: Vec::new(),
            printed_dropped: 0,
        };
        for &(slot, bits, wide) in &program.constants {
            warp.splat(slot, bits, wide);
        }
        warp
    }

    /// One number in every lane of a slot, or of a pair of slots.
    pub(crate) fn splat(&mut self, first: Reg, bits: u64, wide: bool) {
        let words = std::array::from_fn(|i| if wide && i % 2 == 1 { (bits >> 32) as u32 } else { bits as u32 });
        let count = if wide { 2 } else { 1 };
        if let Some(slots) = self.slots.get_mut(first as usize..first as usize + count) {
            slots.fill(Slot(words));
        }
    }

    /// Back to the start, for the next block. Values of the last block cannot be read: every value
    /// is defined before its uses.
    pub(crate) fn reset(&mut self) {
        self.pc = 0;
        self.mask = self.existing;
        self.frames.clear();
        self.copies.clear();
        self.asynchronous.clear();
        self.births.clear();
        self.progress = Progress::default();
        if let Some(follower) = &mut self.follower {
            follower.clear();
        }
        self.executed = 0;
        self.printed.clear();
        self.printed_dropped = 0;
    }
}

/// What all warps of a block share.
pub(crate) struct BlockMemory<'a> {
    pub(crate) global: GlobalMemory<'a>,
    pub(crate) shared: &'a SharedMemory,
    pub(crate) checks: Checks,
    /// The shadow of races in shared memory, when it is checked.
    pub(crate) races: Option<&'a RefCell<SharedRaces>>,
    /// The shadow of races between threads in global memory, for kernels that load what they store.
    pub(crate) threads: Option<&'a RefCell<ThreadRaces>>,
    /// The block in the shadows of global memory.
    pub(crate) time: u32,
    /// Whether the block has executed an atomic on global memory: it may know then what others did.
    pub(crate) synchronised: Cell<bool>,
    /// The block's number in its cluster.
    pub(crate) rank: u32,
    /// Tensor maps, by parameter.
    pub(crate) maps: &'a [Option<BoundMap>],
    /// What followers know together.
    pub(crate) exact: &'a ExactMemory,
    /// What the warps of the cluster share, for kernels that have it.
    pub(crate) asynchronous: Option<&'a RefCell<AsyncState<'a>>>,
}

/// Why a warp stopped running.
#[derive(Debug)]
pub(crate) enum Stop {
    /// At the block's barrier; `pc` is past it.
    Barrier,
    /// At a named barrier; `pc` is past it.
    NamedSync { id: u32, threads: u32 },
    /// Passed a named barrier.
    NamedArrive { id: u32, threads: u32 },
    /// Waits; `pc` is at the operation, which is tried again.
    Wait(Wait),
    /// In a loop whose condition reads memory: others may have to write there first.
    Spins,
    /// An index wraps at the operation: a follower must see it.
    Wraps,
    /// At the end.
    Done,
    /// Broke a rule; `pc` is at the operation.
    Fault(Box<Fault>),
}

/// A broken rule, before it is put in the user's words.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) pc: Pc,
    /// Lane within the warp.
    pub(crate) lane: u32,
    pub(crate) kind: FaultKind,
}

/// Which rule.
#[derive(Debug)]
pub(crate) enum FaultKind {
    Access {
        error: AccessError,
        access: u32,
        shared: bool,
        action: Action,
    },
    DivisionByZero,
    Assert {
        text: String,
    },
    OpBudget {
        executed: u64,
    },
    LoopStep {
        step: i64,
    },
    /// A loop that is in a state again that it was in.
    Stuck {
        executed: u64,
    },
    /// A shuffle from a lane that has nothing to give.
    BadRead(BadSource),
    /// A barrier with some lanes missing.
    DivergentBarrier {
        missing: u64,
    },
    /// Accesses to shared memory that nothing orders.
    Race {
        conflict: Conflict,
        access: u32,
        touch: Touch,
    },
    /// Accesses of two blocks to global memory.
    BlockRace {
        conflict: BlockConflict,
        address: u64,
        access: u32,
        is_write: bool,
    },
    /// Accesses of two threads of a block to global memory.
    ThreadRace {
        conflict: Conflict,
        address: u64,
        access: u32,
        is_write: bool,
    },
    /// The kernel ends with copies under way.
    CopyInFlight {
        pc: Pc,
    },
    /// A loop of more iterations than the budget has operations.
    Endless {
        low: i128,
        high: i128,
        step: i128,
    },
    /// A float or an index that is not what it should be.
    Inexact(Box<Inexact>),
    /// A NaN or an infinity made of numbers.
    Number(Box<NumberFault>),
    /// A warp-wide operation with some lanes missing.
    PartialWarp {
        missing: u64,
    },
    /// A rule of what runs beside the threads.
    Async(Box<AsyncFault>),
    /// An access to the shared memory of another block of the cluster.
    OfBlock {
        rank: u32,
        kind: Box<FaultKind>,
    },
    /// A mistake of an earlier operation, which shows here.
    At {
        pc: Pc,
        kind: Box<FaultKind>,
    },
}

/// What an access wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    Update,
}

impl Action {
    /// In reports.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Update => "atomic",
        }
    }
}
