//! The operations of this module, as decoded.

use lacewing_core::atoms::WgmmaSpec;

pub(crate) use super::operand::SharedLayout;
use super::tcgen05::TensorOp;
use crate::emulator::lanes::{MaskReg, Reg};
use crate::emulator::op::AtomicOp;

/// One operation. `access` is the shape of the access to shared memory.
#[derive(Clone, Debug)]
pub(crate) enum AsyncOp {
    /// Makes 8 bytes an mbarrier.
    BarrierInit { address: Reg, count: u32, access: u32 },
    /// Arrives, after adding `bytes` to what is expected.
    BarrierArrive { address: Reg, bytes: Option<u32>, access: u32 },
    /// Arrives at the same address of another block.
    BarrierArrivePeer { address: Reg, rank: Reg, access: u32 },
    /// Waits for a phase.
    BarrierWait { address: Reg, parity: Reg, access: u32 },
    /// Orders ordinary accesses before bulk ones.
    FenceProxy(ProxyFence),
    /// A bulk copy to shared memory.
    TensorLoad(TensorCopyOp),
    /// A bulk copy from shared memory.
    TensorStore(TensorCopyOp),
    /// Closes the open group of bulk stores.
    StoreCommit,
    /// Completes all but the newest `groups` groups of bulk stores.
    StoreWait { groups: u32, read: bool },
    /// Starts a product.
    Wgmma(Box<WgmmaOp>),
    /// Completes all but the newest `groups` products.
    WgmmaWait { groups: u32, values: Vec<Reg>, results: Vec<Reg> },
    /// Changes the registers of a warpgroup.
    SetRegisters { count: u32, increase: bool },
    /// `d = a`, the same in all lanes.
    Uniform { d: [Reg; 2], a: [Reg; 2], halves: u8 },
    /// A named barrier whose number is `id + index`.
    NamedBarrier { id: u32, index: Reg, threads: u32, sync: bool },
    /// The barrier of the cluster.
    ClusterSync { arrive: bool, wait: bool },
    /// An access to the shared memory of a block of the cluster.
    Peer(PeerOp),
    /// A store to a block of the cluster that completes at an mbarrier.
    StoreAsync(StoreAsyncOp),
    /// A bulk copy to a block of the cluster.
    BlockCopy(BlockCopyOp),
    /// An operation on tensor memory.
    Tensor(TensorOp),
    /// A value that must not be in flight.
    Landed { value: Reg, slots: u32 },
}

/// An access to the shared memory of a block of the cluster. The slot behind the address has the block's rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PeerOp {
    Load { d: Reg, address: Reg, mask: MaskReg, access: u32 },
    Store { value: Reg, address: Reg, mask: MaskReg, access: u32 },
    Atomic(AtomicOp),
}

impl PeerOp {
    pub(crate) fn access(&self) -> u32 {
        match self {
            Self::Load { access, .. } | Self::Store { access, .. } => *access,
            Self::Atomic(op) => op.access,
        }
    }

    pub(crate) fn address(&self) -> Reg {
        match self {
            Self::Load { address, .. } | Self::Store { address, .. } => *address,
            Self::Atomic(op) => op.address,
        }
    }

    /// The slot with the block's rank.
    pub(crate) fn rank(&self) -> Reg {
        self.address() + 1
    }

    /// The lanes that take part, where not all do.
    pub(crate) fn mask(&self) -> Option<MaskReg> {
        match self {
            Self::Load { mask, .. } | Self::Store { mask, .. } => Some(*mask),
            Self::Atomic(_) => None,
        }
    }
}

/// Operands of a store that completes at an mbarrier. The slots behind the addresses have the block's rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreAsyncOp {
    pub(crate) value: Reg,
    pub(crate) address: Reg,
    pub(crate) barrier: Reg,
    pub(crate) access: u32,
    pub(crate) barrier_access: u32,
}

/// Operands of a bulk copy to a block of the cluster. The slots behind destination and mbarrier have the block's rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockCopyOp {
    pub(crate) destination: Reg,
    pub(crate) source: Reg,
    pub(crate) barrier: Reg,
    pub(crate) bytes: u32,
    /// Shape of the access to the destination.
    pub(crate) to: u32,
    /// Shape of the access to the source.
    pub(crate) from: u32,
    pub(crate) barrier_access: u32,
}

/// What a proxy fence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyFence {
    /// Writes to shared memory, or to all memory.
    Async,
    /// New mbarriers.
    BarrierInit,
}

/// Operands of a bulk tensor copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorCopyOp {
    /// Index of the kernel's parameter that is the map.
    pub(crate) map: u32,
    /// Address in shared memory.
    pub(crate) address: Reg,
    /// Innermost first; as many as the map has dimensions.
    pub(crate) coordinates: [Reg; 5],
    pub(crate) access: u32,
    /// The mbarrier of a load.
    pub(crate) barrier: Reg,
    pub(crate) barrier_access: u32,
    /// Blocks that receive a load; 0 for the own one.
    pub(crate) multicast: u32,
}

/// Element type of a product's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputType {
    F16,
    Bf16,
    E4m3,
    E5m2,
}

impl InputType {
    /// Size in bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::E4m3 | Self::E5m2 => 1,
        }
    }

    /// Depth of one instruction: 32 bytes.
    pub(crate) fn step(self) -> usize {
        32 / self.bytes()
    }
}

/// Operands of a product of a warpgroup: 64 x n x k.
#[derive(Clone, Debug)]
pub(crate) struct WgmmaOp {
    /// One instruction of it.
    pub(crate) spec: &'static WgmmaSpec,
    pub(crate) ty: InputType,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) a: OperandA,
    pub(crate) b: SharedOperand,
    /// Empty for a product that starts from zero.
    pub(crate) c: Vec<Reg>,
    pub(crate) d: Vec<Reg>,
}

/// The left operand.
#[derive(Clone, Debug)]
pub(crate) enum OperandA {
    /// Four registers for each step of k.
    Registers(Vec<Reg>),
    Shared(SharedOperand),
}

/// A tile in shared memory.
#[derive(Clone, Debug)]
pub(crate) struct SharedOperand {
    pub(crate) address: Reg,
    pub(crate) access: u32,
    pub(crate) layout: SharedLayout,
    /// Ranges of bytes from the address that each warp of the warpgroup reads.
    pub(crate) ranges: [Vec<(u32, u32)>; 4],
    /// Bytes from the address to the end of the last range.
    pub(crate) span: u32,
}
