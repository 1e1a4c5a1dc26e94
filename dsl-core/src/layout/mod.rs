//! The layout algebra: functions from coordinates to indices, as values of trace time.
//!
//! A [`Layout`] is a *shape* and a *stride* of the same nesting, written `shape:stride`. It maps a coordinate inside
//! the shape to the sum of its parts times the strides: `(4,8):(8,1)` is four rows of eight elements. A tuple in the
//! place of an extent is a *mode* that is itself made of modes, and every mode may be indexed by one integer, which
//! counts through its parts from left to right. So each layout is also a function `0 .. size -> integers`, and that
//! is what the algebra works on.
//!
//! The operations are CuTe's, under CuTe's names (*CuTe Layout Algebra*, in the documentation of CUTLASS):
//!
//! | | |
//! |---|---|
//! | ask | [`size`](Layout::size), [`cosize`](Layout::cosize), [`rank`](Layout::rank), [`depth`](Layout::depth), [`crd2idx`](Layout::crd2idx), [`idx2crd`](Layout::idx2crd) |
//! | rearrange modes | [`mode`](Layout::mode), [`flatten`](Layout::flatten), [`group`](Layout::group), [`select`](Layout::select), [`take`](Layout::take), [`append`](Layout::append), [`prepend`](Layout::prepend), [`concat`](Layout::concat), [`slice`](Layout::slice), [`dice`](Layout::dice) |
//! | simplify | [`coalesce`](Layout::coalesce), [`coalesce_by`](Layout::coalesce_by), [`filter`](Layout::filter) |
//! | combine | [`composition`](Layout::composition), [`complement`](Layout::complement), [`right_inverse`](Layout::right_inverse), [`left_inverse`](Layout::left_inverse) |
//! | divide | [`logical_divide`](Layout::logical_divide), [`zipped_divide`](Layout::zipped_divide), [`tiled_divide`](Layout::tiled_divide), [`flat_divide`](Layout::flat_divide), [`local_tile`](Layout::local_tile), [`local_partition`](Layout::local_partition) |
//! | multiply | [`logical_product`](Layout::logical_product), [`zipped_product`](Layout::zipped_product), [`tiled_product`](Layout::tiled_product), [`flat_product`](Layout::flat_product), [`blocked_product`](Layout::blocked_product), [`raked_product`](Layout::raked_product), [`tile_to_shape`](Layout::tile_to_shape) |
//! | change the element | [`upcast`](Layout::upcast), [`downcast`](Layout::downcast), [`recast`](Layout::recast) |
//! | permute in place | [`Swizzle`], [`ComposedLayout`], [`OuterLayout`] |
//! | compare | [`max_common_vector`](Layout::max_common_vector), [`max_common_layout`](Layout::max_common_layout), [`bank_conflicts`] |
//!
//! # Undefined is an error
//!
//! Many pairs of layouts have no composition, complement or inverse that is a layout. Each operation states its
//! conditions, checks them exactly, and answers with a [`LayoutError`] that names the condition and the values. No
//! operation panics, wraps around, or gives a layout that is right for some coordinates only. Extents, strides, sizes
//! and indices lie within 2^62 either way.
//!
//! # Beyond the end
//!
//! As in CuTe, the last mode of a layout extends beyond its extent: `(4,3):(1,8)` at 12 is 24. Tiles that do not
//! divide a layout evenly overhang in this way, and keep their full shape; whoever uses them masks what lies outside.
//! [`Layout::crd2idx`] refuses coordinates outside the shape; [`Layout::extended`] is the extended function.
//!
//! # Run-time extents and strides
//!
//! An extent or a stride may be a [`Symbol`]: a value of run time. Rearranging, `size`, and simplifying work on
//! such layouts. `composition` and the divisions need the right operand static, and of the left operand every extent
//! but the last of each mode that they apply to (after coalescing); strides of the left operand may be dynamic. So
//! the tensor `(?0,?1):(?1,1)` is divided into tiles of `(64,64)`, and has `(ceil(?0/64),ceil(?1/64))` of them.
//! `cosize`, `complement`, the inverses, `recast`, products (of the block) and everything that gives a number
//! need static operands. Indices of dynamic layouts are computed by [`Layout::index_with`], which emits only the
//! arithmetic that trace time leaves over.

mod algebra;
pub(crate) mod banks;
mod composed;
mod coord;
mod dim;
mod error;
mod evaluate;
mod nested;
mod outer;
mod recast;
mod shape;
mod swizzle;
mod text;
mod tile;
mod tiling;

#[cfg(test)]
mod tests;

pub use banks::{BankConflicts, bank_conflicts};
pub use composed::ComposedLayout;
pub use coord::{Coord, CoordLeaf, Slice};
pub use dim::{Dim, Product, Symbol};
pub use error::LayoutError;
pub use evaluate::{IndexMath, Term};
pub use nested::{IntTuple, Nested};
pub use outer::OuterLayout;
pub use shape::Layout;
pub use swizzle::Swizzle;
pub use tile::{Tile, Tiler};

/// A [`Layout`](crate::layout::Layout) from expressions: `layout![shape; stride]`, or `layout![shape]` for the
/// compact column-major one. Gives a `Result`, because the numbers may be computed.
///
/// ```
/// use lacewing_core::layout;
///
/// let columns = 8;
/// assert_eq!(layout![(4, columns); (columns, 1)]?.to_string(), "(4,8):(8,1)");
/// assert_eq!(layout![((2, 4), 3); ((1, 2), 8)]?, layout![((2, 4), 3)]?);
/// assert!(layout![(4, 8); 1].is_err());
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[macro_export]
macro_rules! layout {
    [$shape:expr; $stride:expr $(;)?] => {
        $crate::layout::Layout::new($shape, $stride)
    };
    [$shape:expr] => {
        $crate::layout::Layout::column_major($shape)
    };
}

/// A function from `0 .. size` to indices: layouts, and layouts under a swizzle.
pub trait IndexMap {
    /// How many coordinates there are.
    fn coordinates(&self) -> Result<i64, LayoutError>;

    /// The index of coordinate number `i`, counted from left to right.
    fn index_of(&self, i: i64) -> Result<i64, LayoutError>;

    /// All indices in order.
    fn indices(&self) -> Result<Vec<i64>, LayoutError> {
        (0..self.coordinates()?).map(|i| self.index_of(i)).collect()
    }
}
