//! Tilers: what compositions, divisions and products take on their right.

use super::LayoutError;
use super::dim::{Dim, Symbol};
use super::nested::{IntTuple, Nested};
use super::shape::{Layout, Mode};
use std::ops::RangeFull;

/// What a tiler applies to one mode.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// The elements that a layout points to.
    Layout(Layout),
    /// That many elements of stride 1.
    Extent(Dim),
    /// The mode as it is: written `..` in Rust, `_` in CuTe.
    All,
}

/// A layout for a whole layout, or a tuple of tilers for its modes; a shape is a tuple of layouts of stride 1.
///
/// Note that a *layout* `(4,8):(1,4)` speaks of 32 elements of the whole, and the *shape* `(4, 8)` of 4 by 8 of two
/// modes. Written `<3:3,(2,4):(1,8)>`.
///
/// ```
/// use lacewing_core::layout;
/// use lacewing_core::layout::Tiler;
///
/// let tiler = Tiler::from((layout![3; 3]?, (8, ..)));
/// assert_eq!(tiler.to_string(), "<3:3,<8,_>>");
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
pub type Tiler = Nested<Tile>;

impl Tile {
    /// The layout; an error for [`Tile::All`] of nothing, or for an extent that is none.
    pub(super) fn layout(&self) -> Result<Layout, LayoutError> {
        match self {
            Self::Layout(layout) => Ok(layout.clone()),
            Self::Extent(extent) => Layout::leaf(Mode::new(extent.clone(), 1)),
            Self::All => Layout::leaf(Mode::unit()),
        }
    }
}

impl Tiler {
    /// The tiler of layouts of stride 1 with these extents.
    pub fn from_shape(shape: &IntTuple) -> Self {
        shape.map(&mut |extent| Tile::Extent(extent.clone()))
    }
}

impl From<Dim> for Tile {
    fn from(extent: Dim) -> Self {
        Self::Extent(extent)
    }
}

macro_rules! extents {
    ($($extent:ty),*) => {$(
        impl From<$extent> for Tile {
            fn from(extent: $extent) -> Self {
                Self::Extent(extent.into())
            }
        }
    )*};
}

extents!(i32, i64, u32, usize, Symbol);

impl From<RangeFull> for Tile {
    fn from(_: RangeFull) -> Self {
        Self::All
    }
}

impl From<Layout> for Tiler {
    fn from(layout: Layout) -> Self {
        Self::Leaf(Tile::Layout(layout))
    }
}

impl From<&Layout> for Tiler {
    fn from(layout: &Layout) -> Self {
        layout.clone().into()
    }
}
