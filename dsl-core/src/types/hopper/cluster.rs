//! Clusters: blocks that run together and reach each other's shared memory.

use std::panic::Location;

use crate::trace::{self, Attr, IrType, Loc};
use crate::types::{I32, Scalar, Uniform};

/// Blocks of the kernel's cluster; 1 where it has none.
pub(crate) fn blocks() -> u32 {
    let cluster = trace::with(|t| t.cluster).flatten();
    cluster.map_or(1, |extents| extents.into_iter().fold(1, u32::saturating_mul))
}

pub(super) fn sync_at(kind: &str, loc: Loc) {
    trace::emit0("lw.cluster_sync", &[], &[("kind", Attr::Str(kind.to_owned()))], loc);
}

/// All threads of all blocks of the cluster meet.
#[track_caller]
pub fn cluster_sync() {
    sync_at("sync", Location::caller());
}

/// The block's number in its cluster, x fastest.
#[track_caller]
pub fn cluster_rank() -> Uniform<I32> {
    Uniform::assume(I32::from_raw(trace::emit1("lw.cluster_rank", &[], IrType::I32, &[], Location::caller())))
}
