//! What a kernel's file imports: `use lacewing::prelude::*`.

pub use crate::Target;
pub use crate::atoms::{
    CopyAtom, Fragment, FragmentA, FragmentB, FragmentC, GlobalTile, LayoutResult, Mfma, MfmaBlocks, MmaAtom, MmaSync,
    ScalarFma, SharedTensor, Spread, Tf32, TiledCopy, TiledMma, conflict_free, copy, gemm, shared_tensor,
};
pub use crate::layout::{ComposedLayout, Coord, IntTuple, Layout, LayoutError, Swizzle, Tiler};
pub use crate::rt::{Carried, const_expr, constexpr, range, range_constexpr};
pub use crate::types::Axis::{X, Y, Z};
pub use crate::types::{
    Accumulator, BarrierSetup, Cursor, Fragments, InFlight, Mbarrier, NamedBarriers, Peer, Pipeline, ProxyFence,
    Schedule, SwizzledRing, SwizzledTile, TensorMap, Ticket, TileOrder, WgmmaElement, cluster_rank, cluster_sync,
    fence_proxy, named_barriers, tma_store_commit, tma_store_wait, warpgroup_roles, wgmma, wgmma_add,
};
pub use crate::types::{
    Atomic, AtomicInt, BF16, Bool, BufferRsrc, CastTarget, Elements, F8E4M3, F8E5M2, F16, F32, F64, Float, FloatExt,
    I8, I16, I32, I64, Index, Int, IntExt, MmaElement, Num, NumExt, Ordering, Place, Scalar, ScalarExt, Scope, Shared,
    SharedArray, SharedSlice, SharedTile, Shuffle, Signed, SignedExt, Tensor, TensorMut, U8, U16, U32, U64, Uniform,
    Vector, all, any, ballot, barrier, block_dim, block_id, broadcast_first, cp_async, cp_async_commit, cp_async_wait,
    elect_one, elements, fence, grid_dim, lane_id, ldmatrix_x1, ldmatrix_x1_trans, ldmatrix_x2, ldmatrix_x2_trans,
    ldmatrix_x4, ldmatrix_x4_trans, load_to_shared, mfma_16x16x16, mfma_32x32x8, mma_m16n8k8, mma_m16n8k8_tf32,
    mma_m16n8k16, named_barrier, reduce_block, reduce_warp, release_next_grid, sched_barrier, shared, shared_array,
    shared_array_named, shfl_down, shfl_idx, shfl_up, shfl_xor, stmatrix_x1, stmatrix_x1_trans, stmatrix_x2,
    stmatrix_x2_trans, stmatrix_x4, stmatrix_x4_trans, target, thread_id, thread_index, uniform,
    wait_for_previous_grid, warp_id, warp_sync,
};
pub use crate::types::{
    MmaInFlight, TensorMemory, TmemAccumulator, TmemTile, tcgen05_commit, tcgen05_fence_after_thread_sync,
    tcgen05_fence_before_thread_sync, tcgen05_mma,
};
pub use crate::{device_assert, layout, printf, static_assert};
pub use lacewing_macros::*;
