//! What runs beside the threads: mbarriers, bulk tensor copies, warpgroup products, clusters.
//!
//! ```text
//! op            the operations, as decoded
//! state         what the warps of a cluster share: mbarriers, copies under way, registers
//! mbarrier      phases, pending arrivals and bytes of one mbarrier
//! tensor_map    a tensor in global memory as bulk copies see it; the swizzles
//! transfer      one bulk copy
//! operand       tiles of shared memory and registers as operands of a product
//! product       the dense micro-kernel
//! wgmma         products under way and their accumulators
//! tensor_memory a block's tensor memory: allocations, cells, who touched them
//! tcgen05       operations on it, and the products that sum there
//! execute       one operation of a warp
//! remote        stores and copies to other blocks of the cluster that complete at an mbarrier there
//! peer          accesses to the shared memory of other blocks of the cluster
//! fault         the rules that these operations have
//! ```
//!
//! Everything happens as late as the kernel's waits allow: a copy lands when nothing else can run and a
//! warp waits for it; a product reads shared memory when its group is waited for. So a wait that is
//! missing, or too weak, shows in the results, and not in the reports alone.

pub(crate) mod execute;
pub(crate) mod fault;
pub(crate) mod mbarrier;
pub(crate) mod op;
pub(crate) mod operand;
mod peer;
mod product;
mod remote;
pub(crate) mod state;
pub(crate) mod tcgen05;
pub(crate) mod tensor_map;
pub(crate) mod tensor_memory;
pub(crate) mod transfer;
pub(crate) mod wgmma;

pub use tensor_map::TensorMap;
