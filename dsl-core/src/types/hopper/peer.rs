//! Distributed shared memory: what a thread reaches of the shared memory of other blocks of its cluster.
//!
//! All blocks of a cluster lay out their shared memory alike. A piece of it in another block is therefore the own
//! piece and that block's rank: `tile.of_block(rank)` (CUDA's `cluster.map_shared_rank`, PTX's `mapa`).

use std::panic::Location;

use super::cluster;
use super::swizzled::SwizzledTile;
use crate::rt::{Carried, State, Visitor};
use crate::types::Scalar;
use crate::types::place::{Coordinate, InCluster, InShared, Indices, Place};
use crate::types::shared::{SharedArray, SharedSlice, SharedTile, element};

/// A piece of the shared memory of one block of the cluster, the own one or another: what `.of_block(rank)` gives.
///
/// Its places are read, written and updated at once as those of the own block's. What orders the threads of several
/// blocks is [`super::cluster_sync`], or an arrival at an mbarrier of the other block ([`super::Mbarrier::arrive_at`])
/// that it waits for; a `barrier()` orders those of one block alone. One of the two must lie
///
/// - before the first access, so that the other block runs and has written what is read;
/// - behind the last one, before the other block ends, and its shared memory with it.
///
/// A warp whose lanes go to several blocks makes one access for each of them.
#[must_use = "a view of a block's shared memory does nothing by itself"]
#[derive(Clone, Copy, Debug)]
pub struct Peer<P>(
    /// The own block's piece, with the base in the other one's memory.
    P,
);

impl<P: State> State for Peer<P> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.0.visit(visitor);
    }
}
impl<P: Carried> Carried for Peer<P> {}

impl<T: Scalar> SharedSlice<T> {
    /// The same piece of the shared memory of block `rank` of the cluster, the own one among them: an `I32`, a
    /// `Uniform<I32>`, or a host number. One that is outside of the cluster is a trace error where it is known; else the
    /// emulator reports the access. For kernels with `cluster = [..]`, on sm_90 and later.
    #[track_caller]
    pub fn of_block(mut self, rank: impl Coordinate) -> Peer<Self> {
        let loc = Location::caller();
        self.base = cluster::map_rank(self.base, rank.coordinate(loc), loc);
        Peer(self)
    }
}

impl<T: Scalar, const N: usize> SharedArray<T, N> {
    /// The same array of block `rank` of the cluster, as [`SharedSlice::of_block`].
    #[track_caller]
    pub fn of_block(mut self, rank: impl Coordinate) -> Peer<Self> {
        let loc = Location::caller();
        self.base = cluster::map_rank(self.base, rank.coordinate(loc), loc);
        Peer(self)
    }
}

impl<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize> SharedTile<T, ROWS, COLUMNS, PITCH> {
    /// The same tile of block `rank` of the cluster, as [`SharedSlice::of_block`].
    #[track_caller]
    pub fn of_block(mut self, rank: impl Coordinate) -> Peer<Self> {
        let loc = Location::caller();
        self.base = cluster::map_rank(self.base, rank.coordinate(loc), loc);
        Peer(self)
    }
}

impl<T: Scalar> SwizzledTile<T> {
    /// The same tile of block `rank` of the cluster, swizzled alike, as [`SharedSlice::of_block`].
    #[track_caller]
    pub fn of_block(mut self, rank: impl Coordinate) -> Peer<Self> {
        let loc = Location::caller();
        self.base = cluster::map_rank(self.base, rank.coordinate(loc), loc);
        Peer(self)
    }
}

impl<T: Scalar> Place<T, InShared> {
    /// The same place of the shared memory of block `rank` of the cluster, as [`SharedSlice::of_block`].
    #[track_caller]
    pub fn of_block(self, rank: impl Coordinate) -> Place<T, InCluster> {
        let loc = Location::caller();
        Place::new(cluster::map_rank(self.address(), rank.coordinate(loc), loc))
    }
}

impl<T: Scalar> Peer<SharedSlice<T>> {
    /// The element at `index`, as [`SharedSlice::at`].
    #[track_caller]
    pub fn at(self, index: impl Indices<1>) -> Place<T, InCluster> {
        let loc = Location::caller();
        element(self.0.base, index.coordinates(loc), [self.0.length], [1], loc)
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.0.length
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.0.length == 0
    }
}

impl<T: Scalar, const N: usize> Peer<SharedArray<T, N>> {
    /// Number of elements.
    pub const LEN: usize = N;

    /// The element at `index`, as [`SharedArray::at`].
    #[track_caller]
    pub fn at(self, index: impl Indices<1>) -> Place<T, InCluster> {
        let loc = Location::caller();
        element(self.0.base, index.coordinates(loc), [N], [1], loc)
    }
}

impl<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize> Peer<SharedTile<T, ROWS, COLUMNS, PITCH>> {
    /// Rows and columns.
    pub const SHAPE: [usize; 2] = [ROWS, COLUMNS];

    /// The element at `(row, column)`, as [`SharedTile::at`].
    #[track_caller]
    pub fn at(self, index: impl Indices<2>) -> Place<T, InCluster> {
        let loc = Location::caller();
        element(self.0.base, index.coordinates(loc), [ROWS, COLUMNS], [PITCH, 1], loc)
    }
}

impl<T: Scalar> Peer<SwizzledTile<T>> {
    /// The element at `(row, column)`, wherever the permutation has put it, as [`SwizzledTile::at`].
    #[track_caller]
    pub fn at(&self, index: impl Indices<2>) -> Place<T, InCluster> {
        self.0.place(index, Location::caller())
    }

    /// Rows of the tile.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Columns of the tile.
    pub fn columns(&self) -> usize {
        self.0.columns()
    }
}
