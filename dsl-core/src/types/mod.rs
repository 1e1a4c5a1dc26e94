//! The types and functions of the kernel language, one module a topic.

pub(crate) mod arith;
mod atomics;
mod blackwell;
mod buffer;
mod collectives;
mod hopper;
pub(crate) mod ids;
mod index_math;
mod math;
mod mma;
pub(crate) mod place;
mod print;
mod reduce;
mod scalar;
mod shared;
mod sync;
mod tensor;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod uniform;
mod vector;

pub use crate::ScalarType;
pub use atomics::{Atomic, AtomicInt, Ordering, Scope};
pub use blackwell::{
    MmaInFlight, Tcgen05Operand, TensorMemory, TmemAccumulator, TmemLoad, TmemRows, TmemStore, TmemTile,
    tcgen05_commit, tcgen05_fence_after_thread_sync, tcgen05_fence_before_thread_sync, tcgen05_mma,
};
pub use buffer::{BufferRsrc, Elements, elements};
pub use collectives::{
    Lane, Shuffle, all, any, ballot, broadcast_first, elect_one, shfl_down, shfl_idx, shfl_up, shfl_xor,
};
pub use hopper::{
    Accumulator, BarrierSetup, Columns, Cursor, Fragments, InFlight, Mbarrier, Peer, Pipeline, ProxyFence, Schedule,
    SwizzledRing, SwizzledTile, TensorMap, Ticket, TileOrder, Transposed, UniformIndex, WarpgroupRole, WgmmaA, WgmmaB,
    WgmmaElement, cluster_rank, cluster_sync, fence_proxy, tma_store_commit, tma_store_wait, warpgroup_roles, wgmma,
    wgmma_add,
};
pub(crate) use hopper::{MapUse, cluster};
pub use ids::{Axis, block_dim, block_id, grid_dim, lane_id, target, thread_id, thread_index, warp_id};
pub use index_math::{IndexInt, KernelMath, coordinate_of, offset_of};
pub use math::{FloatExt, IntExt, NumExt, Signed, SignedExt};
pub use mma::{
    MmaElement, cp_async, cp_async_commit, cp_async_wait, ldmatrix_x1, ldmatrix_x1_trans, ldmatrix_x2,
    ldmatrix_x2_trans, ldmatrix_x4, ldmatrix_x4_trans, load_to_shared, mfma_16x16x16, mfma_32x32x8, mma_m16n8k8,
    mma_m16n8k8_tf32, mma_m16n8k16, stmatrix_x1, stmatrix_x1_trans, stmatrix_x2, stmatrix_x2_trans, stmatrix_x4,
    stmatrix_x4_trans,
};
pub use place::{Access, Coordinate, GlobalRead, GlobalWrite, InCluster, InGlobal, InShared, Indices, Place, Writable};
pub use print::{PrintArgument, Printable, device_assert, printf, static_assert};
pub use reduce::{Reduced, reduce_block, reduce_warp};
pub use scalar::{
    BF16, Bool, CastTarget, Cmp, F8E4M3, F8E5M2, F16, F32, F64, Float, I8, I16, I32, I64, Index, Int, Num, Scalar,
    ScalarExt, U8, U16, U32, U64,
};
pub use shared::{
    Shared, SharedAlloc, SharedArray, SharedField, SharedLayout, SharedMember, SharedSlice, SharedTile, shared,
    shared_array, shared_array_named,
};
pub use sync::{
    NamedBarrier, NamedBarriers, barrier, fence, named_barrier, named_barriers, release_next_grid, sched_barrier,
    wait_for_previous_grid, warp_sync,
};
pub(crate) use tensor::Rest;
pub use tensor::{GlobalTensor, Tensor, TensorMut};
pub use uniform::{Uniform, UniformSource, uniform};
pub use vector::{Vector, VectorOperand};
