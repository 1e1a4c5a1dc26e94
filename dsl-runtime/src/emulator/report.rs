//! What a check found, and how it is told.

use std::fmt;

use lacewing_core::{Diagnostic, SourceLocation};

/// Which rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReportKind {
    /// An access outside its buffer, its member of shared memory, or the block's shared memory.
    OutOfBounds,
    /// An address that is no multiple of the access's alignment.
    Misaligned,
    /// A read of bytes that nothing wrote.
    Uninitialized,
    /// A store through a pointer to a read-only buffer.
    ReadOnly,
    /// A barrier that only some threads of a warp, or some warps of a block, reach.
    DivergentBarrier,
    /// Accesses to one place of which at least one writes, and that nothing orders.
    Race,
    /// An asynchronous copy that is never waited for.
    CopyInFlight,
    /// Warps wait and nothing can wake them.
    Deadlock,
    /// A division by zero: of integers, or of floats when NaN came of it.
    DivisionByZero,
    /// A NaN made of numbers.
    NotANumber,
    /// An infinity made of finite numbers.
    Infinity,
    /// A float that differs from its shadow in binary64 by more than the bound, and that reached global memory.
    Inexact,
    /// An index of 32 bits that wrapped and reached an address.
    IndexOverflow,
    /// `device_assert!` did not hold.
    AssertFailed,
    /// A loop that cannot end: a warp executed more operations than [`Checks::op_budget`](super::Checks::op_budget) allows, or its
    /// loop has more iterations.
    OpBudget,
    /// A loop whose step is zero or negative.
    LoopStep,
    /// A shuffle that reads a lane which does not take part.
    InactiveLaneRead,
    /// A warp-wide matrix operation that some lanes do not take part in.
    PartialWarp,
    /// An mbarrier that is used against its rules: bytes that are none, too many arrivals, its bytes accessed.
    Mbarrier,
    /// A value of an asynchronous product that is used before the wait that gives it.
    InFlight,
    /// An operation that the four warps of a warpgroup do not do together, or not with the same operands.
    Warpgroup,
    /// Tensor memory that is used against its rules: lanes of another warp, allocations that are freed twice or never.
    TensorMemory,
    /// A block of the cluster whose shared memory is accessed and that is not there: a rank outside of the cluster, a block that
    /// may not have begun or may have ended.
    Cluster,
    /// A value that must be the same in all lanes of a warp and is not.
    NotUniform,
    /// Arguments or grid that do not fit the kernel.
    BadLaunch,
}

impl ReportKind {
    /// A short name for tools and tests, as `out of bounds`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out of bounds",
            Self::Misaligned => "misaligned",
            Self::Uninitialized => "uninitialized",
            Self::ReadOnly => "read-only",
            Self::DivergentBarrier => "divergent barrier",
            Self::Race => "race",
            Self::CopyInFlight => "copy not waited for",
            Self::Deadlock => "deadlock",
            Self::DivisionByZero => "division by zero",
            Self::NotANumber => "not a number",
            Self::Infinity => "infinity",
            Self::Inexact => "inexact result",
            Self::IndexOverflow => "index overflow",
            Self::AssertFailed => "assertion failed",
            Self::OpBudget => "operation budget",
            Self::LoopStep => "loop step",
            Self::InactiveLaneRead => "inactive lane read",
            Self::PartialWarp => "partial warp",
            Self::Mbarrier => "mbarrier",
            Self::InFlight => "value in flight",
            Self::Warpgroup => "warpgroup",
            Self::TensorMemory => "tensor memory",
            Self::Cluster => "cluster",
            Self::NotUniform => "not uniform",
            Self::BadLaunch => "bad launch",
        }
    }
}

impl fmt::Display for ReportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where in memory an access went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The kernel argument or the member of shared memory.
    pub allocation: String,
    /// Bytes from the start of the allocation; negative before it.
    pub offset: i64,
    /// `offset` in elements of the access, where it is a multiple of their size.
    pub index: Option<i64>,
    /// Size of the allocation in bytes.
    pub extent: u64,
}

/// The mistake that ended a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Which rule was broken.
    pub kind: ReportKind,
    /// One sentence with the values.
    pub message: String,
    /// The kernel's name.
    pub kernel: String,
    /// The user's expression.
    pub location: Option<SourceLocation>,
    /// Call sites of the helpers that led there, innermost first.
    pub call_chain: Vec<SourceLocation>,
    /// The block, where one is to blame.
    pub block: Option<[u32; 3]>,
    /// The thread within its block, where one is to blame.
    pub thread: Option<[u32; 3]>,
    /// The warp within its block.
    pub warp: Option<u32>,
    /// The lane within its warp.
    pub lane: Option<u32>,
    /// The address, for accesses.
    pub address: Option<Address>,
    /// Further facts: extents, positions of the other warps.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Report {
    pub(crate) fn new(kind: ReportKind, kernel: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            kernel: kernel.to_owned(),
            location: None,
            call_chain: Vec::new(),
            block: None,
            thread: None,
            warp: None,
            lane: None,
            address: None,
            notes: Vec::new(),
            help: None,
        }
    }

    /// The report as a diagnostic, which renders with the user's source line.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(&self.message).at(self.location.clone());
        diagnostic.call_chain.clone_from(&self.call_chain);
        let mut place = format!("kernel `{}`", self.kernel);
        if let Some([x, y, z]) = self.block {
            place += &format!(", block ({x}, {y}, {z})");
        }
        if let Some([x, y, z]) = self.thread {
            place += &format!(", thread ({x}, {y}, {z})");
        }
        if let (Some(warp), Some(lane)) = (self.warp, self.lane) {
            place += &format!(" = warp {warp}, lane {lane}");
        } else if let Some(warp) = self.warp {
            place += &format!(", warp {warp}");
        }
        diagnostic = diagnostic.note(place);
        for note in &self.notes {
            diagnostic = diagnostic.note(note);
        }
        diagnostic.help.clone_from(&self.help);
        diagnostic
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_diagnostic().render())
    }
}

impl std::error::Error for Report {}
