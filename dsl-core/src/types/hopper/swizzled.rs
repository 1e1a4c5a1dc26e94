//! Tiles of shared memory in the layout that tensor copies write and warpgroup products read.

use std::marker::PhantomData;
use std::panic::Location;

use crate::atoms::PanelLayout;
use crate::layout::{ComposedLayout, Layout, LayoutError, Nested, Term};
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Constant, IrType, Loc, RawValue, Space};
use crate::types::arith::{self, Binary};
use crate::types::place::{self, Access, Coord, Coordinate, InShared, Indices, Place};
use crate::types::shared::SharedAlloc;
use crate::types::{I32, KernelMath, Scalar};
use crate::{Diagnostic, ScalarType};

/// What a swizzle repeats over: 8 rows of at most 128 bytes. Tiles start at multiples of it.
const ATOM_BYTES: usize = 1024;

/// A matrix in shared memory, as tensor copies write it and warpgroup products read it.
///
/// Columns are cut into panels of 128, 64 or 32 bytes, the widest that divides a row; a panel holds all rows,
/// one after the other. Inside of a panel, the 16-byte chunks of each row are permuted by the row's number, so
/// that neither rows nor columns fall into the same banks (PTX ISA, "Swizzling modes"; bits 4 to 6 of the
/// address are exclusive-ored with bits 7 to 9 for 128 bytes).
#[derive(Clone, Copy, Debug)]
pub struct SwizzledTile<T: Scalar> {
    pub(super) base: RawValue,
    pub(super) shape: TileShape,
    element: PhantomData<T>,
}

/// The host side of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TileShape {
    pub rows: usize,
    pub columns: usize,
    /// Rows of the tile that this one is a part of.
    pub panel_rows: usize,
    /// Bytes of a row of a panel.
    pub swizzle: usize,
}

impl TileShape {
    /// Chooses the swizzle; the reason where there is none.
    fn new(rows: usize, columns: usize, element: usize) -> Result<Self, String> {
        let row = columns * element;
        if rows == 0 || !rows.is_multiple_of(8) {
            return Err(format!("{rows} rows: swizzles repeat every 8 rows"));
        }
        match [128, 64, 32].into_iter().find(|swizzle| row.is_multiple_of(*swizzle)) {
            Some(swizzle) if row > 0 => Ok(Self { rows, columns, panel_rows: rows, swizzle }),
            _ => Err(format!("rows of {row} bytes: the narrowest panel has 32")),
        }
    }

    /// The byte at which each element begins, of so many bytes each: the layout of a product's factor with its rows along k.
    fn layout(&self, element: usize) -> Result<ComposedLayout, LayoutError> {
        let panels = PanelLayout { k_major: true, swizzle: self.swizzle, rows: self.panel_rows };
        let elements = panels.layout(self.rows, self.columns, element)?;
        let all = elements.cosize()?;
        elements.under(Layout::new(all, element)?)?.flatten()
    }

    pub fn panels(&self, element: usize) -> usize {
        self.columns * element / self.swizzle
    }

    /// Bytes from one panel to the next.
    pub fn panel_bytes(&self) -> usize {
        self.panel_rows * self.swizzle
    }

    pub fn bytes(&self, element: usize) -> usize {
        self.rows * self.columns * element
    }
}

impl<T: Scalar> State for SwizzledTile<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
        visitor.host(format!("{:?}", self.shape));
    }
}
impl<T: Scalar> Carried for SwizzledTile<T> {}

/// An address `bytes` bytes (an `i32`) further.
pub(super) fn advance(base: RawValue, bytes: RawValue, loc: Loc) -> RawValue {
    advance_in(Space::Shared, base, bytes, loc)
}

fn advance_in(space: Space, base: RawValue, bytes: RawValue, loc: Loc) -> RawValue {
    place::element_address(space, ScalarType::U8, base, Some(bytes), loc)
}

pub(super) fn int(value: usize, loc: Loc) -> RawValue {
    trace::constant(ScalarType::I32, Constant::Int(value as i64), loc)
}

/// An address `index * bytes` bytes further.
pub(super) fn advance_by(base: RawValue, index: Coord, bytes: usize, loc: Loc) -> RawValue {
    match index {
        Coord::Known(0) => base,
        // An index that no memory has may wrap: whoever uses the address is out of bounds.
        Coord::Known(index) => advance(base, int((index as usize).wrapping_mul(bytes), loc), loc),
        index => {
            advance(base, arith::binary(Binary::Mul, ScalarType::I32, index.narrow(loc), int(bytes, loc), loc), loc)
        }
    }
}

impl<T: Scalar> SwizzledTile<T> {
    /// A tile of `rows` x `columns` elements (host numbers): rows come in eights and have a multiple of 32
    /// bytes. Each call takes further shared memory, aligned to 1024 bytes.
    #[track_caller]
    pub fn new(name: &str, rows: usize, columns: usize) -> Self {
        SwizzledRing::allocate(name, 1, rows, columns, Location::caller()).first
    }

    /// Rows of the tile.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Columns of the tile.
    pub fn columns(&self) -> usize {
        self.shape.columns
    }

    /// Bytes of the tile: what a copy into it completes at its barrier.
    pub fn bytes(&self) -> usize {
        self.shape.bytes(T::BYTES)
    }

    /// Block number `index` of `rows` rows, a multiple of 8.
    #[track_caller]
    pub fn row_block(&self, rows: usize, index: impl Coordinate) -> Self {
        let loc = Location::caller();
        let index = index.coordinate(loc);
        let all = self.shape.rows;
        let past = matches!(index, Coord::Known(index) if index < 0 || (index as usize + 1).saturating_mul(rows) > all);
        if rows == 0 || !rows.is_multiple_of(8) || past {
            let message = format!("a tile of {} rows has no such block of {rows} rows", self.shape.rows);
            trace::error(
                loc,
                Diagnostic::error(message).help("blocks of rows come in eights and lie inside of the tile"),
            );
        }
        let base = advance_by(self.base, index, rows * self.shape.swizzle, loc);
        Self { base, shape: TileShape { rows, ..self.shape }, ..*self }
    }

    /// Block number `index` of `columns` columns: whole panels.
    #[track_caller]
    pub fn column_block(&self, columns: usize, index: impl Coordinate) -> Self {
        let loc = Location::caller();
        let index = index.coordinate(loc);
        let panel = self.shape.swizzle / T::BYTES;
        let all = self.shape.columns;
        let past =
            matches!(index, Coord::Known(index) if index < 0 || (index as usize + 1).saturating_mul(columns) > all);
        if columns == 0 || !columns.is_multiple_of(panel) || past {
            let message = format!("a tile of {all} columns has no such block of {columns} columns");
            let help = format!("blocks of columns are whole panels, here of {panel}, and lie inside of the tile");
            trace::error(loc, Diagnostic::error(message).help(help));
        }
        let base = advance_by(self.base, index, columns / panel * self.shape.panel_bytes(), loc);
        Self { base, shape: TileShape { columns, ..self.shape }, ..*self }
    }

    /// The first `columns` columns, as an operand of a product: the others are not read. They need not be whole panels,
    /// so that no copy may have such a tile.
    #[track_caller]
    pub fn first_columns(&self, columns: usize) -> Columns<T> {
        let all = self.shape.columns;
        if columns == 0 || columns > all {
            let message = format!("a tile of {all} columns has no first {columns}");
            trace::error(Location::caller(), Diagnostic::error(message));
        }
        Columns(Self { shape: TileShape { columns, ..self.shape }, ..*self })
    }

    /// The tile with rows and columns exchanged, for matrix products: nothing moves.
    pub fn t(&self) -> Transposed<T> {
        Transposed(*self)
    }

    /// The element at `(row, column)`. The 16 bytes from a column that is a multiple of 16 bytes lie together.
    #[track_caller]
    pub fn at(&self, index: impl Indices<2>) -> Place<T, InShared> {
        self.place(index, Location::caller())
    }

    /// The same in the memory that the tile's base points into.
    pub(super) fn place<A: Access>(&self, index: impl Indices<2>, loc: Loc) -> Place<T, A> {
        let mut math = KernelMath::<I32>::at([], loc);
        let part = |coordinate: Coord| match coordinate {
            Coord::Known(value) => Term::Known(value),
            _ => Term::Value(I32::from_raw(coordinate.narrow(loc))),
        };
        let [row, column] = index.coordinates(loc).map(|coordinate| Nested::Leaf(part(coordinate)));
        let offset = self.shape.layout(T::BYTES).and_then(|layout| {
            Ok(layout.index_with(&Nested::Tuple(vec![row, column]), &mut math)?.materialize(&mut math))
        });
        match offset {
            Ok(offset) => Place::new(advance_in(A::SPACE, self.base, offset.raw(), loc)),
            Err(error) => {
                trace::error(loc, Diagnostic::error(error.to_string()));
                Place::new(trace::refused(IrType::Pointer(A::SPACE), loc))
            }
        }
    }
}

/// A [`SwizzledTile`] with rows and columns exchanged.
#[derive(Clone, Copy, Debug)]
pub struct Transposed<T: Scalar>(pub(super) SwizzledTile<T>);

/// Some first columns of a [`SwizzledTile`].
#[derive(Clone, Copy, Debug)]
pub struct Columns<T: Scalar>(pub(super) SwizzledTile<T>);

/// Several [`SwizzledTile`]s of one shape, for the stages of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct SwizzledRing<T: Scalar> {
    first: SwizzledTile<T>,
    stages: usize,
}

impl<T: Scalar> State for SwizzledRing<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.first.visit(visitor);
        visitor.host(format!("{} stages", self.stages));
    }
}
impl<T: Scalar> Carried for SwizzledRing<T> {}

impl<T: Scalar> SwizzledRing<T> {
    /// `stages` tiles of `rows` x `columns` elements, as [`SwizzledTile::new`].
    #[track_caller]
    pub fn new(name: &str, stages: usize, rows: usize, columns: usize) -> Self {
        Self::allocate(name, stages, rows, columns, Location::caller())
    }

    fn allocate(name: &str, stages: usize, rows: usize, columns: usize, loc: Loc) -> Self {
        let shape = TileShape::new(rows, columns, T::BYTES).and_then(|shape| {
            let bytes = shape.bytes(T::BYTES);
            if stages > 1 && !bytes.is_multiple_of(ATOM_BYTES) {
                return Err(format!("stages of {bytes} bytes: they must be multiples of {ATOM_BYTES}"));
            }
            Ok(shape)
        });
        let (base, shape) = match shape {
            Ok(shape) => {
                let bytes = (stages * shape.bytes(T::BYTES)) as u64;
                (SharedAlloc::new(loc).member(name, bytes, Some(ATOM_BYTES)), shape)
            }
            Err(reason) => {
                trace::error(loc, Diagnostic::error(format!("`{name}` cannot be a swizzled tile of {reason}")));
                let shape = TileShape { rows, columns, panel_rows: rows.max(1), swizzle: 128 };
                (trace::refused(IrType::Pointer(Space::Shared), loc), shape)
            }
        };
        SwizzledRing { first: SwizzledTile { base, shape, element: PhantomData }, stages }
    }

    /// The tile of a stage: an `I32` below the number of stages, or a host number.
    #[track_caller]
    pub fn stage(&self, stage: impl Coordinate) -> SwizzledTile<T> {
        let loc = Location::caller();
        let bytes = self.first.bytes();
        SwizzledTile { base: advance_by(self.first.base, stage.coordinate(loc), bytes, loc), ..self.first }
    }

    /// Number of stages.
    pub fn stages(&self) -> usize {
        self.stages
    }

    /// Bytes of one stage.
    pub fn bytes(&self) -> usize {
        self.first.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::TileShape;

    #[test]
    fn the_widest_panel_that_divides_a_row_is_taken() {
        let swizzle = |columns, bytes| TileShape::new(64, columns, bytes).map(|shape| shape.swizzle);
        assert_eq!(swizzle(128, 2), Ok(128));
        assert_eq!(swizzle(96, 2), Ok(64));
        assert_eq!(swizzle(16, 2), Ok(32));
        assert_eq!(swizzle(96, 1), Ok(32));
        assert!(swizzle(8, 2).is_err());
        assert!(TileShape::new(12, 64, 2).is_err());
    }
}
