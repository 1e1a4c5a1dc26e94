//! Distributed shared memory: what a thread reaches of the shared memory of other blocks of its cluster.
//!
//! All blocks of a cluster lay out their shared memory alike. A piece of it in another block is therefore the own
//! piece and that block's rank: `tile.of_block(rank)` (CUDA's `cluster.map_shared_rank`, PTX's `mapa`).

use std::panic::Location;

use super::barriers::Mbarrier;
use super::cluster;
use super::swizzled::SwizzledTile;
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::types::place::{Coordinate, InCluster, InShared, Indices, Place};
use crate::types::shared::{SharedArray, SharedSlice, SharedTile, element};
use crate::types::{Scalar, Vector};
use crate::{Diagnostic, ScalarType};

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

impl Mbarrier {
    /// The same mbarrier of block `rank` of the cluster, for what completes its bytes there, as
    /// [`SharedSlice::of_block`].
    #[track_caller]
    pub fn of_block(mut self, rank: impl Coordinate) -> Peer<Self> {
        let loc = Location::caller();
        self.address = cluster::map_rank(self.address, rank.coordinate(loc), loc);
        Peer(self)
    }
}

impl<T: Scalar> Place<T, InCluster> {
    /// Starts to store an element of 4 or 8 bytes, for each active thread. The bytes complete at an mbarrier of the same
    /// block, which must expect them ([`Mbarrier::expect`]); its threads see the element behind their wait for it, and
    /// nobody sees it before.
    #[track_caller]
    pub fn store_async(self, value: T, barrier: Peer<Mbarrier>) {
        let loc = Location::caller();
        start_store(self.address(), IrType::Scalar(T::TYPE), value.raw(), barrier, loc);
    }

    /// [`Place::store_async`] of the element and the `N - 1` that follow it in memory: 4, 8 or 16 bytes, at a multiple of as
    /// many.
    #[track_caller]
    pub fn store_vec_async<const N: usize>(self, value: Vector<T, N>, barrier: Peer<Mbarrier>) {
        start_store(self.address(), Vector::<T, N>::TYPE, value.raw(), barrier, Location::caller());
    }
}

fn start_store(address: RawValue, ty: IrType, value: RawValue, barrier: Peer<Mbarrier>, loc: Loc) {
    let count = if let IrType::Vector(_, count) = ty { count } else { 1 };
    let bytes = ty.element().map_or(0, ScalarType::bytes) * count;
    if !matches!(bytes, 4 | 8 | 16) || ty.element() == Some(ScalarType::Bool) {
        let message = format!("an asynchronous store of {bytes} bytes");
        trace::error(loc, Diagnostic::error(message).help("store 4, 8 or 16 bytes a thread, as by `store_vec_async`"));
        return;
    }
    trace::emit0("lw.st_async", &[value, address, barrier.0.address()], &[], loc);
}

macro_rules! copy_from {
    ($([$($generics:tt)*] $piece:ty, $bytes:expr;)*) => { $(
        impl<$($generics)*> Peer<$piece> {
            /// Starts to copy the whole of the own block's piece here, once for each active thread: let one do it
            /// (`if elect_one()`). The bytes, a multiple of 16, complete at an mbarrier of the same block, which must expect
            /// them; behind a wait for it they are there, and the source may be written again.
            ///
            /// What threads stored to the source must pass [`super::fence_proxy`] and a barrier first.
            #[track_caller]
            pub fn copy_from(self, source: $piece, barrier: Peer<Mbarrier>) {
                let bytes: fn(&$piece) -> usize = $bytes;
                let sizes = [bytes(&source), bytes(&self.0)];
                start_copy(self.0.base, source.base, sizes, barrier, Location::caller());
            }
        }
    )* };
}
copy_from! {
    [T: Scalar] SharedSlice<T>, |piece| piece.len() * T::BYTES;
    [T: Scalar, const N: usize] SharedArray<T, N>, |_| N * T::BYTES;
    [T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize] SharedTile<T, ROWS, COLUMNS, PITCH>,
        |_| ROWS * PITCH * T::BYTES;
}

fn start_copy(to: RawValue, from: RawValue, [given, taken]: [usize; 2], barrier: Peer<Mbarrier>, loc: Loc) {
    if given != taken || given == 0 || !given.is_multiple_of(16) {
        let message = match given == taken {
            true => format!("a copy of {given} bytes to another block"),
            false => format!("a copy of {given} bytes to {taken} bytes of another block"),
        };
        trace::error(loc, Diagnostic::error(message).help("both pieces have the same size, a multiple of 16 bytes"));
        return;
    }
    let bytes = [("bytes", Attr::Int(given as i64))];
    trace::emit0("lw.bulk_copy", &[to, from, barrier.0.address()], &bytes, loc);
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
    /// Starts to copy the whole of the own block's tile here, as for the other pieces of shared memory. Both are of one shape,
    /// and of rows that lie together: a whole tile, or some rows of one panel.
    #[track_caller]
    pub fn copy_from(&self, source: SwizzledTile<T>, barrier: Peer<Mbarrier>) {
        let loc = Location::caller();
        let together =
            |tile: &SwizzledTile<T>| tile.rows() == tile.shape.panel_rows || tile.shape.panels(T::BYTES) == 1;
        let shape = |tile: &SwizzledTile<T>| (tile.rows(), tile.columns(), tile.shape.swizzle);
        if shape(&source) != shape(&self.0) || !together(&source) || !together(&self.0) {
            let message = "a copy to another block between parts of tiles that do not lie alike";
            let help = "copy whole tiles of one shape, or blocks of rows of tiles of one panel";
            trace::error(loc, Diagnostic::error(message).help(help));
            return;
        }
        start_copy(self.0.base, source.base, [source.bytes(), self.0.bytes()], barrier, loc);
    }

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
