//! What Hopper brought: swizzled tiles, tensor copies, mbarriers and pipelines, warpgroup products, roles of
//! warpgroups, clusters.
//!
//! A tile's swizzle is chosen once, by [`SwizzledTile`]. The box of the tensor map and the descriptor of the
//! matrix product follow from it, so that no kernel states either.

mod barriers;
pub(crate) mod cluster;
mod peer;
mod pipeline;
mod roles;
mod schedule;
mod swizzled;
mod tensor_map;
mod wgmma;

pub use barriers::{BarrierSetup, Mbarrier, ProxyFence, fence_proxy};
pub use cluster::{cluster_rank, cluster_sync};
pub use peer::Peer;
pub use pipeline::{Cursor, Pipeline, UniformIndex};
pub use roles::{WarpgroupRole, warpgroup_roles};
pub use schedule::{Schedule, Ticket, TileOrder};
pub use swizzled::{Columns, SwizzledRing, SwizzledTile, Transposed};
pub(crate) use tensor_map::MapUse;
pub use tensor_map::{TensorMap, tma_store_commit, tma_store_wait};
pub use wgmma::Operand;
pub use wgmma::{Accumulator, Fragments, InFlight, WgmmaA, WgmmaB, WgmmaElement, wgmma, wgmma_add};
