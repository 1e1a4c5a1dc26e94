//! Clusters: blocks that run together and reach each other's shared memory.

use std::panic::Location;

use crate::trace::{self, Attr, IrType, Loc, RawValue, Space};
use crate::types::place::Coord;
use crate::types::{I32, Scalar, Uniform};
use crate::{Diagnostic, Target};

/// Blocks of the kernel's cluster; 1 where it has none.
pub(crate) fn blocks() -> u32 {
    let cluster = trace::with(|t| t.cluster).flatten();
    cluster.map_or(1, |extents| extents.into_iter().fold(1, u32::saturating_mul))
}

/// Whether a chip has clusters.
pub(crate) fn exist_on(target: Target) -> bool {
    target.is_nvidia() && target.generation() >= 90
}

pub(super) fn sync_at(kind: &str, loc: Loc) {
    trace::emit0("lw.cluster_sync", &[], &[("kind", Attr::Str(kind.to_owned()))], loc);
}

/// The address, in block `rank` of the cluster, of what is at an address of the own shared memory.
pub(super) fn map_rank(address: RawValue, rank: Coord, loc: Loc) -> RawValue {
    let Some((target, in_cluster)) = trace::with(|t| (t.target(), t.in_cluster)) else { return RawValue::DEAD };
    let blocks = i64::from(blocks());
    let refusal = match rank {
        _ if !exist_on(target) => Some((
            format!("{target} has no clusters, and so no way to another block's shared memory"),
            "clusters need sm_90a or later; elsewhere blocks exchange data through global memory".to_owned(),
        )),
        _ if !in_cluster => Some((
            "this kernel has no cluster, and so no way to another block's shared memory".to_owned(),
            "ask for one, as by `#[kernel(cluster = [4, 1, 1])]`".to_owned(),
        )),
        Coord::Known(rank) if !(0..blocks).contains(&rank) => Some((
            format!("block {rank} of a cluster of {blocks}"),
            format!("the blocks of this cluster are 0 to {}", blocks - 1),
        )),
        _ => None,
    };
    if let Some((message, help)) = refusal {
        trace::error(loc, Diagnostic::error(message).help(help));
        return trace::refused(IrType::Pointer(Space::Cluster), loc);
    }
    let rank = rank.narrow(loc);
    trace::once("lw.mapa", &[address.into(), rank.into()], IrType::Pointer(Space::Cluster), &[], loc)
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
