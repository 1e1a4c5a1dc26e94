//! The layout itself: its modes, its sizes, and the rearrangement of modes.

use std::ops::Range;

use super::dim::{Dim, LIMIT};
use super::nested::{IntTuple, Nested};
use super::{IndexMap, LayoutError};

/// One extent with its stride.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mode {
    pub extent: Dim,
    pub stride: Dim,
}

impl Mode {
    pub(super) fn new(extent: impl Into<Dim>, stride: impl Into<Dim>) -> Self {
        Self { extent: extent.into(), stride: stride.into() }
    }

    /// The mode of one element.
    pub(super) fn unit() -> Self {
        Self::new(1, 0)
    }
}

/// A function from coordinates to indices: a shape and a stride of the same nesting.
///
/// ```
/// use lacewing_core::layout;
///
/// let matrix = layout![(4, (2, 2)); (4, (2, 1))]?;
/// assert_eq!(matrix.size(), 16);
/// assert_eq!(matrix.crd2idx((1, 2))?, 5); // 2 is (0,1) in the mode (2,2)
/// assert_eq!(matrix.crd2idx((1, (0, 1)))?, 5);
/// assert_eq!(matrix.crd2idx(9)?, 5); // and (1,2) is the tenth coordinate
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    // Shape and stride in one tree, so that they cannot but be congruent.
    tree: Nested<Mode>,
}

fn zip(shape: &IntTuple, stride: &IntTuple) -> Option<Nested<Mode>> {
    match (shape, stride) {
        (Nested::Leaf(extent), Nested::Leaf(stride)) => Some(Nested::Leaf(Mode::new(extent.clone(), stride.clone()))),
        (Nested::Tuple(shape), Nested::Tuple(stride)) if shape.len() == stride.len() => Some(Nested::Tuple(
            shape.iter().zip(stride).map(|(shape, stride)| zip(shape, stride)).collect::<Option<_>>()?,
        )),
        _ => None,
    }
}

impl Layout {
    /// `shape:stride`. Both must have the same nesting, and extents start at 1.
    pub fn new(shape: impl Into<IntTuple>, stride: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        let (shape, stride) = (shape.into(), stride.into());
        match zip(&shape, &stride) {
            Some(tree) => Self::from_tree(tree),
            None => Err(LayoutError::NotCongruent { shape: shape.to_string(), stride: stride.to_string() }),
        }
    }

    /// The layout of one element, at 0.
    pub(crate) fn unit() -> Self {
        Self { tree: Nested::Leaf(Mode::unit()) }
    }

    /// The compact layout in which the leftmost leaf of the shape has stride 1 (CuTe's `LayoutLeft`).
    ///
    /// ```
    /// use lacewing_core::layout::Layout;
    ///
    /// assert_eq!(Layout::column_major((2, (2, 2)))?.to_string(), "(2,(2,2)):(1,(2,4))");
    /// assert_eq!(Layout::row_major((2, (2, 2)))?.to_string(), "(2,(2,2)):(4,(2,1))");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn column_major(shape: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        let mut next = Dim::Static(1);
        let tree = shape.into().try_expand(&mut |extent| {
            let mode = Mode::new(extent.clone(), next.clone());
            next = next.times(extent)?;
            Ok(Nested::Leaf(mode))
        })?;
        Self::from_tree(tree)
    }

    /// The compact layout in which the rightmost leaf of the shape has stride 1 (CuTe's `LayoutRight`).
    pub fn row_major(shape: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        let shape = shape.into();
        let mut strides = Vec::new();
        let mut next = Dim::Static(1);
        for extent in shape.leaves().into_iter().rev() {
            strides.push(next.clone());
            next = next.times(extent)?;
        }
        let tree = shape
            .try_expand(&mut |extent| Ok(Nested::Leaf(Mode::new(extent.clone(), strides.pop().unwrap_or(1.into())))))?;
        Self::from_tree(tree)
    }

    /// The compact layout whose leaves are ordered by `order`: the smallest number has stride 1. Of equal numbers the
    /// left one comes first.
    ///
    /// ```
    /// use lacewing_core::layout::Layout;
    ///
    /// assert_eq!(Layout::ordered((2, 3, 4), (1, 2, 0))?.to_string(), "(2,3,4):(4,8,1)");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn ordered(shape: impl Into<IntTuple>, order: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        let (shape, order) = (shape.into(), order.into());
        if !shape.congruent(&order) {
            return Err(LayoutError::profile("ordered", &order, &shape));
        }
        let extents = shape.leaves();
        let mut ranks = Vec::new();
        for (leaf, rank) in order.leaves().into_iter().enumerate() {
            ranks.push((rank.get("the order of modes")?, leaf));
        }
        ranks.sort_unstable();
        let mut strides = vec![Dim::Static(0); extents.len()];
        let mut next = Dim::Static(1);
        for (_, leaf) in ranks {
            if let (Some(stride), Some(extent)) = (strides.get_mut(leaf), extents.get(leaf)) {
                *stride = next.clone();
                next = next.times(extent)?;
            }
        }
        let mut strides = strides.into_iter();
        let tree = shape.try_expand(&mut |extent| {
            Ok(Nested::Leaf(Mode::new(extent.clone(), strides.next().unwrap_or(0.into()))))
        })?;
        Self::from_tree(tree)
    }

    /// Layouts as the modes of one layout: CuTe's `make_layout(a, b, ..)`.
    pub fn concat<'a>(layouts: impl IntoIterator<Item = &'a Self>) -> Result<Self, LayoutError> {
        Self::from_tree(Nested::Tuple(layouts.into_iter().map(|layout| layout.tree.clone()).collect()))
    }

    /// Checks extents, and that size and indices stay in range.
    pub(super) fn from_tree(tree: Nested<Mode>) -> Result<Self, LayoutError> {
        let layout = Self { tree };
        let (mut size, mut reach) = (Dim::Static(1), 0i64);
        let limit = LIMIT.unsigned_abs();
        for mode in layout.tree.leaves() {
            if let Some(extent) = mode.extent.known()
                && extent < 1
            {
                return Err(LayoutError::Extent { extent });
            }
            let (extent, stride) = (mode.extent.known(), mode.stride.known());
            if extent.is_some_and(|extent| extent.unsigned_abs() > limit)
                || stride.is_some_and(|stride| stride.unsigned_abs() > limit)
            {
                return Err(LayoutError::too_large(format_args!("the mode {}:{}", mode.extent, mode.stride)));
            }
            size = size.times(&mode.extent)?;
            if let (Some(extent), Some(stride)) = (extent, stride) {
                reach = (extent - 1)
                    .checked_mul(stride.abs())
                    .and_then(|span| reach.checked_add(span))
                    .filter(|reach| *reach <= LIMIT)
                    .ok_or_else(|| LayoutError::too_large(format_args!("the largest index of {layout}")))?;
            }
        }
        Ok(layout)
    }

    pub(super) fn tree(&self) -> &Nested<Mode> {
        &self.tree
    }

    pub(super) fn leaf(mode: Mode) -> Result<Self, LayoutError> {
        Self::from_tree(Nested::Leaf(mode))
    }

    /// The shape.
    pub fn shape(&self) -> IntTuple {
        self.tree.map(&mut |mode| mode.extent.clone())
    }

    /// The stride.
    pub fn stride(&self) -> IntTuple {
        self.tree.map(&mut |mode| mode.stride.clone())
    }

    /// The number of modes.
    pub fn rank(&self) -> usize {
        self.tree.rank()
    }

    /// Levels of tuples.
    pub fn depth(&self) -> usize {
        self.tree.depth()
    }

    /// The number of coordinates: the product of the extents.
    pub fn size(&self) -> Dim {
        // Construction has seen that the product is in range.
        self.shape().product().unwrap_or(Dim::Static(LIMIT))
    }

    /// The number of coordinates, which must be static.
    pub fn static_size(&self) -> Result<i64, LayoutError> {
        self.size().get("the size of a layout")
    }

    /// Whether all extents and strides are known at trace time.
    pub fn is_static(&self) -> bool {
        self.tree.leaves().into_iter().all(|mode| mode.extent.known().is_some() && mode.stride.known().is_some())
    }

    /// The flat modes as numbers; an error where one is dynamic or, for `operation`, negative.
    pub(super) fn static_modes(&self, operation: &'static str) -> Result<Vec<(i64, i64)>, LayoutError> {
        let mut modes = Vec::new();
        for mode in self.tree.leaves() {
            let (extent, stride) = (mode.extent.get(operation)?, mode.stride.get(operation)?);
            if stride < 0 {
                return Err(LayoutError::Negative { operation, layout: self.to_string() });
            }
            modes.push((extent, stride));
        }
        Ok(modes)
    }

    /// One more than the largest index. Needs a static layout without negative strides.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(4, 8); (1, 10)]?.cosize()?, 74);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn cosize(&self) -> Result<i64, LayoutError> {
        let modes = self.static_modes("cosize")?;
        Ok(1 + modes.into_iter().map(|(extent, stride)| (extent - 1) * stride).sum::<i64>())
    }

    /// The sublayout at a path of mode numbers: `mode(&[1, 0])` is CuTe's `layout<1,0>`.
    pub fn mode(&self, path: &[usize]) -> Result<Self, LayoutError> {
        let mut tree = &self.tree;
        for &mode in path {
            let rank = tree.rank();
            tree = tree.at(&[mode]).ok_or(LayoutError::Mode { operation: "mode", mode, rank })?;
        }
        Ok(Self { tree: tree.clone() })
    }

    /// The modes as layouts.
    pub fn modes(&self) -> impl Iterator<Item = Self> + '_ {
        self.tree.modes().iter().map(|mode| Self { tree: mode.clone() })
    }

    /// The layout with all nesting removed. The function of a single integer stays the same.
    #[must_use]
    pub fn flatten(&self) -> Self {
        Self { tree: self.tree.flatten() }
    }

    /// The layout with modes `range` made one mode.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(2, 3, 5, 7)]?.group(0..2)?.to_string(), "((2,3),5,7):((1,2),6,30)");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn group(&self, range: Range<usize>) -> Result<Self, LayoutError> {
        Ok(Self { tree: self.tree.group(range)? })
    }

    /// The modes of these numbers in this order: `(2,3,5,7)` selected by `[1, 3]` has the shape `(3,7)`.
    pub fn select(&self, modes: &[usize]) -> Result<Self, LayoutError> {
        Self::from_tree(self.tree.select(modes)?)
    }

    /// Modes `range`.
    pub fn take(&self, range: Range<usize>) -> Result<Self, LayoutError> {
        Ok(Self { tree: self.tree.take(range)? })
    }

    /// The layout with one more mode at the end: `3:1` and `4:3` give `(3,4):(1,3)`.
    pub fn append(&self, mode: &Self) -> Result<Self, LayoutError> {
        Self::from_tree(self.tree.append(mode.tree.clone()))
    }

    /// The layout with one more mode in front.
    pub fn prepend(&self, mode: &Self) -> Result<Self, LayoutError> {
        Self::from_tree(self.tree.prepend(mode.tree.clone()))
    }

    /// The layout with another layout in place of mode number `at`.
    pub fn replace(&self, at: usize, mode: &Self) -> Result<Self, LayoutError> {
        Self::from_tree(self.tree.replace(at, mode.tree.clone())?)
    }

    /// The layout with modes `1:0` appended until it has `rank` modes.
    pub(super) fn padded(&self, rank: usize) -> Self {
        let mut modes = self.tree.modes().to_vec();
        while modes.len() < rank {
            modes.push(Nested::Leaf(Mode::unit()));
        }
        Self { tree: Nested::Tuple(modes) }
    }

    /// Whether every coordinate of this layout is one of `other`: see [`Nested::compatible`].
    pub fn compatible(&self, other: &Self) -> bool {
        self.shape().compatible(&other.shape())
    }

    /// The function beyond the size: `i` counts through the modes as ever, and the last mode does not end. Defined
    /// for `i` of at least 0 on static layouts; the stride of the last mode counts even where its extent is 1.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(4, 3); (1, 8)]?.extended(13)?, 25);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn extended(&self, i: i64) -> Result<i64, LayoutError> {
        let operation = "an index";
        let leaves = self.tree.leaves();
        let last = leaves.len().saturating_sub(1);
        let (mut rest, mut index) = (i, 0i64);
        if i < 0 {
            return Err(LayoutError::OutOfRange { coordinate: i, extent: self.static_size()? });
        }
        for (position, mode) in leaves.into_iter().enumerate() {
            let digit = if position == last {
                rest
            } else {
                let extent = mode.extent.get(operation)?;
                let digit = rest % extent;
                rest /= extent;
                digit
            };
            index = digit
                .checked_mul(mode.stride.get(operation)?)
                .and_then(|part| index.checked_add(part))
                .ok_or_else(|| LayoutError::too_large(format_args!("{self} at {i}")))?;
        }
        Ok(index)
    }
}

impl IndexMap for Layout {
    fn coordinates(&self) -> Result<i64, LayoutError> {
        self.static_size()
    }

    fn index_of(&self, i: i64) -> Result<i64, LayoutError> {
        self.crd2idx(i)
    }
}
