//! Tensor maps: tensors that the copy engine knows, box by box.

use std::marker::PhantomData;
use std::panic::Location;

use super::barriers::Mbarrier;
use super::swizzled::{SwizzledTile, advance_by, int};
use crate::Diagnostic;
use crate::SourceLocation;
use crate::rt::{Carried, KernelParam, ParamBuilder, ParamValues, State, Visitor};
use crate::trace::{self, Attr, Loc, RawValue};
use crate::types::arith::{self, Binary};
use crate::types::place::{Coord, Indices};
use crate::types::{I32, Scalar};

/// A tensor of `R` dimensions (1 to 5) in global memory that boxes are copied from and to: a kernel parameter.
///
/// A launch is given a tensor whose innermost stride is 1 and whose other strides are multiples of 16 bytes,
/// and makes the map for the boxes that the kernel copies: the rows and panels of its [`SwizzledTile`]s. All
/// copies through one map have tiles of one shape. Elements outside the tensor are read as zeros, and not
/// written.
#[derive(Clone, Copy, Debug)]
pub struct TensorMap<T: Scalar, const R: usize> {
    value: RawValue,
    argument: usize,
    hint: &'static str,
    element: PhantomData<T>,
}

impl<T: Scalar, const R: usize> State for TensorMap<T, R> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        // Maps are parameters and stay so: the copy engine reads them where the launch put them.
        visitor.host(format!("argument {}", self.argument));
    }
}
impl<T: Scalar, const R: usize> Carried for TensorMap<T, R> {}

impl<T: Scalar, const R: usize> KernelParam for TensorMap<T, R> {
    fn declare(name: &str, builder: &mut ParamBuilder) {
        builder.tensor_map(name, T::TYPE, R);
    }
    fn take(values: &mut ParamValues) -> Self {
        let argument = values.taken();
        Self { value: values.next(), argument, hint: "none", element: PhantomData }
    }
}

/// How a kernel uses one of its maps.
#[derive(Clone, Debug)]
pub(crate) struct MapUse {
    /// Position of the map among the function's arguments.
    pub argument: usize,
    /// Elements of a box, innermost dimension first.
    pub shape: Vec<usize>,
    /// Bytes of a panel's row.
    pub swizzle: usize,
    /// Whether the kernel stores through it.
    pub written: bool,
    loc: Loc,
}

impl<T: Scalar, const R: usize> TensorMap<T, R> {
    /// The same map, with loads whose lines the L2 cache drops first: for what is read once.
    #[must_use]
    pub fn evict_first(self) -> Self {
        Self { hint: "evict_first", ..self }
    }

    /// The same map, with loads whose lines the L2 cache keeps longest: for what other blocks read too.
    #[must_use]
    pub fn evict_last(self) -> Self {
        Self { hint: "evict_last", ..self }
    }

    /// Notes the box of a copy; whether it agrees with those before.
    fn note(&self, tile: &SwizzledTile<T>, written: bool, loc: Loc) -> bool {
        let mut shape = vec![1; R];
        for (extent, value) in shape.iter_mut().zip([tile.shape.swizzle / T::BYTES, tile.shape.rows]) {
            *extent = value;
        }
        let fault = if R < 2 {
            Some(Diagnostic::error("a tile has rows and columns: a tensor map of one dimension has no tiles"))
        } else if tile.shape.rows > 256 {
            let message = format!("a copy of {} rows: boxes have at most 256 in a dimension", tile.shape.rows);
            Some(Diagnostic::error(message).help("copy it in blocks of rows: `tile.row_block(rows, index)`"))
        } else {
            let new = MapUse { argument: self.argument, shape, swizzle: tile.shape.swizzle, written, loc };
            trace::with(|t| match t.maps.iter_mut().find(|known| known.argument == new.argument) {
                Some(known) if known.shape == new.shape && known.swizzle == new.swizzle => {
                    known.written |= new.written;
                    None
                }
                Some(known) => Some(
                    Diagnostic::error(format!(
                        "this copy's box is {:?} with {}-byte panels, and {:?} with {} at another use of the map",
                        new.shape, new.swizzle, known.shape, known.swizzle
                    ))
                    .note(format!("the other is at {}", SourceLocation::from_caller(known.loc)))
                    .help("a tensor map has one box: pass the tensor twice, or copy tiles of one shape"),
                ),
                None => {
                    t.maps.push(new);
                    None
                }
            })
            .flatten()
        };
        fault.is_none_or(|fault| {
            trace::error(loc, fault);
            false
        })
    }

    /// For each panel of the tile: its address, and the coordinates of its box, innermost first.
    fn boxes(&self, tile: &SwizzledTile<T>, at: [Coord; R], loc: Loc) -> Vec<(RawValue, Vec<RawValue>)> {
        let columns = tile.shape.swizzle / T::BYTES;
        let outermost_first = at.map(|coordinate| coordinate.narrow(loc));
        (0..tile.shape.panels(T::BYTES))
            .map(|panel| {
                let address = advance_by(tile.base, Coord::Known(panel as i64), tile.shape.panel_bytes(), loc);
                let mut coordinates: Vec<_> = outermost_first.into_iter().rev().collect();
                if let Some(first) = coordinates.first_mut()
                    && panel > 0
                {
                    let moved = int(panel * columns, loc);
                    *first = match trace::known(*first) {
                        Some(0) => moved,
                        _ => arith::binary(Binary::Add, I32::TYPE, *first, moved, loc),
                    };
                }
                (address, coordinates)
            })
            .collect()
    }

    fn copy_in(self, tile: SwizzledTile<T>, at: [Coord; R], barrier: Mbarrier, multicast: u32, loc: Loc) {
        if !self.note(&tile, false, loc) {
            return;
        }
        for (address, coordinates) in self.boxes(&tile, at, loc) {
            let mut operands = vec![address, self.value, barrier.address];
            operands.extend(coordinates);
            let attributes = [("multicast", Attr::Int(multicast.into())), ("hint", Attr::Str(self.hint.to_owned()))];
            trace::emit0("lw.tma_load", &operands, &attributes, loc);
        }
    }

    /// Starts to copy the tile's worth of elements from the index `at` on (outermost dimension first, the last
    /// two are row and column) to shared memory. Each active thread starts one: one thread should. The bytes
    /// complete at `barrier`, which must expect them.
    #[track_caller]
    pub fn load(self, tile: SwizzledTile<T>, at: impl Indices<R>, barrier: Mbarrier) {
        let loc = Location::caller();
        self.copy_in(tile, at.coordinates(loc), barrier, 0, loc);
    }

    /// [`TensorMap::load`] to the same place of every block in `blocks`, a bit mask of ranks in the cluster. The
    /// bytes complete at the barrier at the same place in each.
    #[track_caller]
    pub fn load_multicast(self, tile: SwizzledTile<T>, at: impl Indices<R>, barrier: Mbarrier, blocks: u32) {
        let loc = Location::caller();
        self.copy_in(tile, at.coordinates(loc), barrier, blocks, loc);
    }

    /// Starts to copy a tile to the tensor, from the index `at` on. Each active thread starts one: one thread
    /// should, after those that wrote the tile have called `fence_proxy` and met it. The tile may be written
    /// again after [`tma_store_commit`] and [`tma_store_wait`].
    #[track_caller]
    pub fn store(self, at: impl Indices<R>, tile: SwizzledTile<T>) {
        let loc = Location::caller();
        if !self.note(&tile, true, loc) {
            return;
        }
        for (address, coordinates) in self.boxes(&tile, at.coordinates(loc), loc) {
            let mut operands = vec![self.value, address];
            operands.extend(coordinates);
            trace::emit0("lw.tma_store", &operands, &[], loc);
        }
    }
}

/// Closes the group of the tile stores that this thread has started since the last group.
#[track_caller]
pub fn tma_store_commit() {
    trace::emit0("lw.tma_commit", &[], &[], Location::caller());
}

/// Waits until at most `pending` (a host number) of this thread's newest groups of stores still read shared
/// memory.
#[track_caller]
pub fn tma_store_wait(pending: usize) {
    let attributes = [("groups", Attr::Int(pending as i64)), ("read", Attr::Bool(true))];
    trace::emit0("lw.tma_wait", &[], &attributes, Location::caller());
}
