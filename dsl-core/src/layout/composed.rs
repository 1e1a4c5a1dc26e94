//! Layouts under a swizzle.

use std::fmt;

use super::coord::{Coord, Slice};
use super::nested::IntTuple;
use super::tile::Tiler;
use super::{Dim, IndexMap, Layout, LayoutError, Swizzle};

/// `swizzle o offset o layout`: the index of `c` is `swizzle(offset + layout(c))`.
///
/// Operations on the coordinates act on the layout; slices add to the offset, which stands inside the swizzle because
/// a swizzle of a sum is not the sum of swizzles. So the offset of a [`Slice`] of a composed layout is always 0.
///
/// ```
/// use lacewing_core::layout;
/// use lacewing_core::layout::{ComposedLayout, Swizzle};
///
/// // Eight rows of 64 two-byte elements; pieces of 8 elements are swizzled by their row.
/// let tile = ComposedLayout::new(Swizzle::new(3, 3, 3)?, layout![(8, 64); (64, 1)]?)?;
/// assert_eq!(tile.crd2idx((5, 8))?, 5 * 64 + (1 ^ 5) * 8);
/// let row = tile.slice((5, ..))?.layout;
/// assert_eq!(row.to_string(), "Sw<3,3,3> o 320 o (64):(1)");
/// assert_eq!(row.crd2idx(8)?, tile.crd2idx((5, 8))?);
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ComposedLayout {
    swizzle: Swizzle,
    offset: i64,
    layout: Layout,
}

impl ComposedLayout {
    /// `swizzle o 0 o layout`. A swizzle is of bits of indices, so the strides must not be negative.
    pub fn new(swizzle: Swizzle, layout: Layout) -> Result<Self, LayoutError> {
        Self::with_offset(swizzle, 0, layout)
    }

    /// The layout of one element, at 0.
    pub(crate) fn unit() -> Self {
        Self { swizzle: Swizzle::IDENTITY, offset: 0, layout: Layout::unit() }
    }

    /// `swizzle o offset o layout`.
    pub fn with_offset(swizzle: Swizzle, offset: i64, layout: Layout) -> Result<Self, LayoutError> {
        let negative =
            layout.tree().leaves().into_iter().any(|mode| mode.stride.known().is_some_and(|known| known < 0));
        if negative || offset < 0 {
            return Err(LayoutError::Negative { operation: "swizzle", layout: format!("{offset} o {layout}") });
        }
        if offset > super::dim::LIMIT {
            return Err(LayoutError::too_large("the offset of a composed layout"));
        }
        Ok(Self { swizzle, offset, layout })
    }

    /// The swizzle.
    pub fn swizzle(&self) -> Swizzle {
        self.swizzle
    }

    /// What is added to the index before the swizzle.
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// The layout before the swizzle.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The shape.
    pub fn shape(&self) -> IntTuple {
        self.layout.shape()
    }

    /// The number of coordinates.
    pub fn size(&self) -> Dim {
        self.layout.size()
    }

    /// A bound for the indices, for allocation: the cosize before the swizzle, rounded up to whole blocks of the
    /// swizzle (see [`Swizzle::block`]).
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        let end = self.offset.checked_add(self.layout.cosize()?).ok_or_else(|| LayoutError::too_large(self))?;
        let block = self.swizzle.block();
        Dim::from(end).ceil_div(block)?.times(&block.into())?.get("cosize")
    }

    /// The index of a coordinate.
    pub fn crd2idx(&self, coord: impl Into<Coord>) -> Result<i64, LayoutError> {
        let index = self.offset.checked_add(self.layout.crd2idx(coord)?).ok_or_else(|| LayoutError::too_large(self))?;
        Ok(self.swizzle.apply(index))
    }

    fn on_layout(&self, f: impl FnOnce(&Layout) -> Result<Layout, LayoutError>) -> Result<Self, LayoutError> {
        Self::with_offset(self.swizzle, self.offset, f(&self.layout)?)
    }

    fn absorb(&self, slice: Slice) -> Result<Slice<Self>, LayoutError> {
        let offset = self.offset.checked_add(slice.offset).ok_or_else(|| LayoutError::too_large(self))?;
        Ok(Slice { layout: Self::with_offset(self.swizzle, offset, slice.layout)?, offset: 0 })
    }

    /// See [`Layout::slice`]; the offset moves inside the swizzle.
    pub fn slice(&self, coord: impl Into<Coord>) -> Result<Slice<Self>, LayoutError> {
        self.absorb(self.layout.slice(coord)?)
    }

    /// See [`Layout::local_tile`]; the offset moves inside the swizzle.
    pub fn local_tile(&self, tiler: impl Into<Tiler>, coord: impl Into<Coord>) -> Result<Slice<Self>, LayoutError> {
        self.absorb(self.layout.local_tile(tiler, coord)?)
    }

    /// See [`Layout::local_partition`]; the offset moves inside the swizzle.
    pub fn local_partition(&self, threads: &Layout, index: i64) -> Result<Slice<Self>, LayoutError> {
        self.absorb(self.layout.local_partition(threads, index)?)
    }

    /// `(swizzle o offset o layout) o rhs`. See [`Layout::composition`].
    pub fn composition(&self, rhs: impl Into<Tiler>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.composition(rhs))
    }

    /// See [`Layout::coalesce`].
    pub fn coalesce(&self) -> Result<Self, LayoutError> {
        self.on_layout(Layout::coalesce)
    }

    /// See [`Layout::coalesce_by`].
    pub fn coalesce_by(&self, profile: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.coalesce_by(profile))
    }

    /// See [`Layout::logical_divide`].
    pub fn logical_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.logical_divide(tiler))
    }

    /// See [`Layout::zipped_divide`].
    pub fn zipped_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.zipped_divide(tiler))
    }

    /// See [`Layout::tiled_divide`].
    pub fn tiled_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.tiled_divide(tiler))
    }

    /// See [`Layout::flat_divide`].
    pub fn flat_divide(&self, tiler: impl Into<Tiler>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.flat_divide(tiler))
    }

    /// Copies of the layout under one swizzle. See [`Layout::blocked_product`]; copies begin where the swizzle begins
    /// anew only if the block covers whole periods of it.
    pub fn blocked_product(&self, tile: &Layout) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.blocked_product(tile))
    }

    /// See [`Layout::tile_to_shape`].
    pub fn tile_to_shape(&self, shape: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.tile_to_shape(shape))
    }

    /// See [`Layout::tile_to_shape_by`].
    pub fn tile_to_shape_by(
        &self,
        shape: impl Into<IntTuple>,
        order: impl Into<IntTuple>,
    ) -> Result<Self, LayoutError> {
        self.on_layout(|layout| layout.tile_to_shape_by(shape, order))
    }

    /// See [`Layout::upcast`] and [`Swizzle::upcast`]; the offset must be a multiple of the factor.
    pub fn upcast(&self, factor: i64) -> Result<Self, LayoutError> {
        let swizzle = self.swizzle.upcast(factor)?;
        let offset = Dim::from(self.offset).exact_div(&factor.into())?.get("upcast")?;
        Self::with_offset(swizzle, offset, self.layout.upcast(factor)?)
    }

    /// See [`Layout::downcast`] and [`Swizzle::downcast`].
    pub fn downcast(&self, factor: i64) -> Result<Self, LayoutError> {
        let swizzle = self.swizzle.downcast(factor)?;
        let offset = Dim::from(self.offset).times(&factor.into())?.get("downcast")?;
        Self::with_offset(swizzle, offset, self.layout.downcast(factor)?)
    }

    /// See [`Layout::recast`].
    pub fn recast(&self, from: u32, to: u32) -> Result<Self, LayoutError> {
        match (to.checked_rem(from), from.checked_rem(to)) {
            _ if from == to => Ok(self.clone()),
            (Some(0), _) => self.upcast((to / from).into()),
            (_, Some(0)) => self.downcast((from / to).into()),
            // The layout words the refusal.
            _ => self.on_layout(|layout| layout.recast(from, to)),
        }
    }

    /// An upper bound for the width of a vector copy between this layout and `other`: [`Layout::max_common_vector`]
    /// without the swizzle, cut so that no vector is torn by the swizzle or by the offset.
    pub fn max_common_vector(&self, other: &Layout) -> Result<i64, LayoutError> {
        let common = self.layout.max_common_vector(other)?;
        if self.swizzle.bits() == 0 {
            return Ok(common);
        }
        // The largest power of two that divides all three.
        let zeros = [common, self.offset, 1 << self.swizzle.base()].into_iter().map(i64::trailing_zeros).min();
        Ok(1 << zeros.unwrap_or(0).min(61))
    }
}

impl IndexMap for ComposedLayout {
    fn coordinates(&self) -> Result<i64, LayoutError> {
        self.layout.static_size()
    }

    fn index_of(&self, i: i64) -> Result<i64, LayoutError> {
        self.crd2idx(i)
    }
}

impl fmt::Display for ComposedLayout {
    /// CuTe's notation: `Sw<3,3,3> o 0 o (8,64):(64,1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.swizzle, self.offset, self.layout)
    }
}
