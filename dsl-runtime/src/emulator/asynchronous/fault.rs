//! The rules that these operations have.

use super::mbarrier::Overflow;
use super::tensor_memory::TensorFault;
use crate::emulator::op::Pc;

/// Which rule was broken. Addresses are in the block's shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AsyncFault {
    /// The bytes are no mbarrier.
    NotABarrier { address: u32 },
    /// They are one already.
    BarrierAgain { address: u32, made: Pc },
    /// Nothing orders the making of the mbarrier before this use.
    BarrierUnseen { address: u32, made: Pc },
    /// The copy engine may not know the mbarrier yet.
    BarrierUnfenced { address: u32, made: Pc },
    /// Lanes that arrive together complete more than one phase.
    PhasesAtOnce { address: u32, count: u32, lanes: u32 },
    /// Too many arrivals or bytes.
    BarrierOverflow { address: u32, overflow: Overflow, count: u32, bytes: i64 },
    /// There is no such block in the cluster.
    NoSuchRank { rank: u32, blocks: u32 },
    /// Nothing says that a block has begun whose memory is accessed.
    NotBegun { rank: u32 },
    /// What goes to a block is to complete at another one's mbarrier.
    OtherBlock { rank: u32, other: u32 },
    /// A block has ended whose shared memory a copy still reads.
    SourceEnded { rank: u32 },
    /// A block has not waited, before its end, for a copy that reads its shared memory.
    SourceMayEnd { rank: u32 },
    /// All warps of that block have ended.
    BlockEnded { rank: u32 },
    /// That block has not waited for this arrival or access before its end.
    MayHaveEnded { rank: u32 },
    /// A value that must be the same in all lanes is not.
    NotUniform { what: &'static str, values: [u32; 2] },
    /// A named barrier that does not exist.
    NoSuchBarrier { id: u32 },
    /// A value of a product that is under way.
    InFlight { issued: Pc },
    /// A value of a product that has been completed by a wait that did not give it.
    NotTied { issued: Pc },
    /// A value of a product that this wait leaves under way.
    LeftInFlight { issued: Pc, groups: u32 },
    /// An accumulator that was given to another product.
    HandedOn,
    /// A warp of the warpgroup does something else.
    Warpgroup { warp: u32, other: Pc },
    /// The block has no whole warpgroup here.
    NoWarpgroup { threads: u32 },
    /// A change of registers in the wrong direction.
    WrongDirection { from: u32, to: u32 },
    /// A rule of tensor memory.
    Tensor(TensorFault),
    /// Something that the kernel ends without waiting for.
    NeverWaited,
}
