//! Layouts over swizzles.

use std::fmt;

use super::coord::Coord;
use super::evaluate::{IndexMath, Term};
use super::nested::{IntTuple, Nested};
use super::{ComposedLayout, Dim, IndexMap, Layout, LayoutError};

/// `outer o swizzle o offset o layout`: the index of `c` is `outer(swizzle(offset + layout(c)))`, where `outer` takes the
/// swizzled index as one integer.
///
/// A tile that is swizzled as if it were compact, and lies in memory with gaps or in another order.
///
/// ```
/// use lacewing_core::layout;
/// use lacewing_core::layout::{ComposedLayout, Swizzle};
///
/// // Eight rows of eight pieces, swizzled; in memory every piece is followed by a gap of its own size.
/// let swizzled = ComposedLayout::new(Swizzle::new(3, 0, 3)?, layout![(8, 8); (8, 1)]?)?;
/// let spread = swizzled.under(layout![64; 2]?)?;
/// assert_eq!(spread.crd2idx((5, 1))?, 2 * (5 * 8 + (1 ^ 5)));
/// assert_eq!(spread.to_string(), "64:2 o Sw<3,0,3> o 0 o (8,8):(8,1)");
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OuterLayout {
    outer: Layout,
    inner: ComposedLayout,
}

impl ComposedLayout {
    /// `outer o self`. All indices of `self` must be coordinates of `outer`: both static, the
    /// [`cosize`](ComposedLayout::cosize) of `self` at most the size of `outer`.
    pub fn under(&self, outer: Layout) -> Result<OuterLayout, LayoutError> {
        let (reach, extent) = (self.cosize()?, outer.static_size()?);
        if reach > extent {
            return Err(LayoutError::OutOfRange { coordinate: reach - 1, extent });
        }
        Ok(OuterLayout { outer, inner: self.clone() })
    }
}

impl OuterLayout {
    /// The layout that is applied last.
    pub fn outer(&self) -> &Layout {
        &self.outer
    }

    /// The swizzled layout.
    pub fn inner(&self) -> &ComposedLayout {
        &self.inner
    }

    /// The shape.
    pub fn shape(&self) -> IntTuple {
        self.inner.shape()
    }

    /// The number of coordinates.
    pub fn size(&self) -> Dim {
        self.inner.size()
    }

    /// A bound for the indices, for allocation: the cosize of the outer layout.
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        self.outer.cosize()
    }

    /// The index of a coordinate.
    pub fn crd2idx(&self, coord: impl Into<Coord>) -> Result<i64, LayoutError> {
        self.outer.crd2idx(self.inner.crd2idx(coord)?)
    }

    /// See [`Layout::index_with`].
    pub fn index_with<M: IndexMath>(
        &self,
        coord: &Nested<Term<M::Value>>,
        math: &mut M,
    ) -> Result<Term<M::Value>, LayoutError> {
        let index = self.inner.index_with(coord, math)?;
        self.outer.index_with(&Nested::Leaf(index), math)
    }

    /// The composition without the outer layout, where that moves whole runs: `Swizzle` by swizzle, if `outer` is
    /// `n:d` with `d` a power of two, so that the swizzle can be applied to the scaled index.
    ///
    /// # Errors
    /// An outer layout of any other form.
    pub fn flatten(&self) -> Result<ComposedLayout, LayoutError> {
        let outer = self.outer.coalesce()?;
        let (strides, operation) = (outer.stride(), "flatten");
        let refused = || LayoutError::NotDivisible {
            operation,
            divisor: self.inner.swizzle().to_string(),
            value: self.outer.to_string(),
        };
        let stride = match strides.leaves().as_slice() {
            // One index, which is 0: whatever it is scaled by.
            [_] if matches!(outer.size(), Dim::Static(1)) => 1,
            [stride] => stride.get(operation)?,
            _ => return Err(refused()),
        };
        if stride < 1 || stride.count_ones() != 1 {
            return Err(refused());
        }
        let swizzle = self.inner.swizzle().downcast(stride)?;
        let modes = self.inner.layout();
        let scaled: Result<Vec<_>, _> = modes.stride().leaves().into_iter().map(|d| d.times(&stride.into())).collect();
        let mut scaled = scaled?.into_iter();
        let strides = modes.stride().map(&mut |_| scaled.next().unwrap_or(Dim::Static(0)));
        let offset = Dim::from(self.inner.offset()).times(&stride.into())?.get(operation)?;
        ComposedLayout::with_offset(swizzle, offset, Layout::new(modes.shape(), strides)?)
    }
}

impl IndexMap for OuterLayout {
    fn coordinates(&self) -> Result<i64, LayoutError> {
        self.inner.coordinates()
    }

    fn index_of(&self, i: i64) -> Result<i64, LayoutError> {
        self.crd2idx(i)
    }
}

impl fmt::Display for OuterLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {}", self.outer, self.inner)
    }
}
