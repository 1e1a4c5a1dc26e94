//! Coordinates: to indices, from indices, and as slices.

use std::ops::RangeFull;

use super::LayoutError;
use super::dim::Dim;
use super::nested::{IntTuple, Nested};
use super::shape::{Layout, Mode};

/// One entry of a coordinate: a number, or all of a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordLeaf {
    /// A number, from 0.
    At(i64),
    /// The whole mode stays: written `..` in Rust, `_` in CuTe.
    All,
}

/// A coordinate, some entries of which may be `..`: `(.., (1, ..))`. An integer may stand for a tuple.
pub type Coord = Nested<CoordLeaf>;

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl From<$number> for CoordLeaf {
            /// What does not fit becomes the largest number, which lies outside every extent.
            fn from(number: $number) -> Self {
                Self::At(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
    )*};
}

numbers!(i32, i64, u32, usize);

impl From<RangeFull> for CoordLeaf {
    fn from(_: RangeFull) -> Self {
        Self::All
    }
}

/// What a slice leaves of a layout, and the index at which it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice<L = Layout> {
    /// The modes that stay.
    pub layout: L,
    /// The index of the coordinate in the modes that do not.
    pub offset: i64,
}

/// The parts of `i` in the modes of a shape, counted from left to right; the last part takes what is left.
fn spread(i: i64, shape: &IntTuple) -> Result<Nested<i64>, LayoutError> {
    let leaves = shape.leaves();
    let last = leaves.len().saturating_sub(1);
    let mut rest = i;
    let mut digits = Vec::new();
    for (position, extent) in leaves.into_iter().enumerate() {
        match extent.known() {
            Some(extent) if position < last => {
                digits.push(rest % extent);
                rest /= extent;
            }
            None if position < last => {
                extent.get("a coordinate of one number")?;
            }
            _ => digits.push(rest),
        }
    }
    let mut digits = digits.into_iter();
    shape.try_expand(&mut |_| Ok(Nested::Leaf(digits.next().unwrap_or(0))))
}

fn check(coordinate: i64, extent: &Dim) -> Result<(), LayoutError> {
    // The bound of a dynamic extent is the business of run time.
    let bound = extent.known().unwrap_or(i64::MAX);
    if (0..bound).contains(&coordinate) { Ok(()) } else { Err(LayoutError::OutOfRange { coordinate, extent: bound }) }
}

/// The natural coordinate in `shape` of `coord`, in which an integer may stand for a tuple.
fn natural(coord: &Coord, shape: &IntTuple) -> Result<Nested<i64>, LayoutError> {
    match (coord, shape) {
        (Nested::Leaf(CoordLeaf::At(i)), _) => {
            check(*i, &shape.product()?)?;
            spread(*i, shape)
        }
        (Nested::Tuple(coords), Nested::Tuple(modes)) if coords.len() == modes.len() => {
            let parts = coords.iter().zip(modes).map(|(coord, mode)| natural(coord, mode));
            Ok(Nested::Tuple(parts.collect::<Result<_, _>>()?))
        }
        _ => Err(LayoutError::profile("coordinate", coord, shape)),
    }
}

/// Splits a tree along a pattern into what lies under `..` and what lies under numbers, each in order.
fn split<T: Clone>(
    pattern: &Coord,
    tree: &Nested<T>,
    kept: &mut Vec<Nested<T>>,
    diced: &mut Vec<Nested<T>>,
) -> Result<(), (Coord, Nested<T>)> {
    match (pattern, tree) {
        (Nested::Leaf(CoordLeaf::All), _) => kept.push(tree.clone()),
        (Nested::Leaf(CoordLeaf::At(_)), _) => diced.push(tree.clone()),
        (Nested::Tuple(pattern), Nested::Tuple(modes)) if pattern.len() == modes.len() => {
            for (pattern, mode) in pattern.iter().zip(modes) {
                split(pattern, mode, kept, diced)?;
            }
        }
        _ => return Err((pattern.clone(), tree.clone())),
    }
    Ok(())
}

impl Coord {
    /// The entries that are numbers: the coordinate in [`Layout::dice`].
    pub fn dice(&self) -> Self {
        match self {
            Self::Leaf(_) => self.clone(),
            Self::Tuple(_) => {
                let (mut kept, mut diced) = (Vec::new(), Vec::new());
                // A pattern always fits itself.
                let _ = split(self, self, &mut kept, &mut diced);
                Self::Tuple(diced)
            }
        }
    }

    /// The coordinate with `..` appended until it has `rank` modes.
    pub(super) fn padded(&self, rank: usize) -> Self {
        let mut modes = self.modes().to_vec();
        while modes.len() < rank {
            modes.push(Self::Leaf(CoordLeaf::All));
        }
        Self::Tuple(modes)
    }
}

impl IntTuple {
    /// The natural coordinate in this shape, of the same nesting, for a coordinate in which integers stand for tuples.
    ///
    /// ```
    /// use lacewing_core::layout::{IntTuple, Nested};
    ///
    /// let shape = IntTuple::from((3, (2, 3)));
    /// let natural = IntTuple::from((1, (1, 2)));
    /// assert_eq!(shape.idx2crd(16)?, natural);
    /// assert_eq!(shape.idx2crd((1, 5))?, natural);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn idx2crd(&self, coord: impl Into<Coord>) -> Result<Self, LayoutError> {
        Ok(natural(&coord.into(), self)?.map(&mut |part| Dim::Static(*part)))
    }
}

impl Layout {
    /// The index of a coordinate: the sum of its natural parts times the strides.
    ///
    /// The coordinate may be one integer for the whole layout, one for each mode, or nested like the shape, and so on
    /// inside each mode. Numbers outside the shape are an error; of dynamic extents only the sign is checked.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let layout = layout![(3, (2, 3)); (3, (12, 1))]?;
    /// assert_eq!(layout.crd2idx(16)?, 17);
    /// assert_eq!(layout.crd2idx((1, 5))?, 17);
    /// assert_eq!(layout.crd2idx((1, (1, 2)))?, 17);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn crd2idx(&self, coord: impl Into<Coord>) -> Result<i64, LayoutError> {
        let parts = natural(&coord.into(), &self.shape())?;
        let mut index = 0i64;
        for (part, mode) in parts.leaves().into_iter().zip(self.tree().leaves()) {
            // A stride that is not known counts only where it is used.
            if *part == 0 {
                continue;
            }
            index = part
                .checked_mul(mode.stride.get("an index")?)
                .and_then(|part| index.checked_add(part))
                .ok_or_else(|| LayoutError::too_large(format_args!("an index of {self}")))?;
        }
        Ok(index)
    }

    /// The natural coordinate of the index `index`: the inverse of [`Layout::crd2idx`], where it has one.
    ///
    /// Each part is `index / stride % extent`, which is right where the strides, sorted, each are a multiple of the
    /// one before times its extent; broadcast modes (of stride 0) give 0. Needs a static layout without negative
    /// strides.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let threads = layout![(8, 4); (4, 1)]?;
    /// assert_eq!(threads.idx2crd(6)?.to_string(), "(1,2)");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn idx2crd(&self, index: i64) -> Result<IntTuple, LayoutError> {
        self.check_digits("idx2crd")?;
        let parts = self.tree().try_expand(&mut |mode: &Mode| {
            let (extent, stride) = (mode.extent.get("idx2crd")?, mode.stride.get("idx2crd")?);
            let part = if stride == 0 { 0 } else { index.div_euclid(stride).rem_euclid(extent) };
            Ok(Nested::Leaf(part))
        })?;
        let coord = parts.map(&mut |part| CoordLeaf::At(*part));
        if self.crd2idx(&coord)? == index {
            Ok(parts.map(&mut |part| Dim::Static(*part)))
        } else {
            Err(LayoutError::NotInImage { layout: self.to_string(), index })
        }
    }

    /// Whether `index / stride % extent` recovers each part of a coordinate.
    pub(super) fn check_digits(&self, operation: &'static str) -> Result<(), LayoutError> {
        let mut modes = self.static_modes(operation)?;
        modes.retain(|&(extent, stride)| extent > 1 && stride > 0);
        modes.sort_unstable_by_key(|&(_, stride)| stride);
        let mut block = 1;
        for (extent, stride) in modes {
            if stride % block != 0 {
                return Err(LayoutError::Overlap { operation, layout: self.to_string(), stride });
            }
            block = stride.checked_mul(extent).ok_or_else(|| LayoutError::too_large(self))?;
        }
        Ok(())
    }

    /// The modes under `..`, in order, with the index of the numbers of the coordinate.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let row = layout![(4, (2, 3)); (6, (3, 1))]?.slice((2, ..))?;
    /// assert_eq!(row.layout.to_string(), "((2,3)):((3,1))");
    /// assert_eq!(row.offset, 12);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn slice(&self, coord: impl Into<Coord>) -> Result<Slice, LayoutError> {
        let coord = coord.into();
        let layout = self.slice_layout(&coord)?;
        let offset = match &coord {
            Nested::Leaf(CoordLeaf::All) => 0,
            _ => self.dice(&coord)?.crd2idx(coord.dice())?,
        };
        Ok(Slice { layout, offset })
    }

    fn split(&self, pattern: &Coord) -> Result<(Self, Self), LayoutError> {
        let (mut kept, mut diced) = (Vec::new(), Vec::new());
        if split(pattern, self.tree(), &mut kept, &mut diced).is_err() {
            return Err(LayoutError::profile("slice", pattern, &self.shape()));
        }
        Ok((Self::from_tree(Nested::Tuple(kept))?, Self::from_tree(Nested::Tuple(diced))?))
    }

    /// The modes under `..`, in order, without the index: for coordinates that are values of run time, where
    /// [`Layout::dice`] gives the layout that computes it. The numbers in the pattern do not matter.
    pub fn slice_layout(&self, pattern: &Coord) -> Result<Self, LayoutError> {
        match pattern {
            Nested::Leaf(CoordLeaf::All) => Ok(self.clone()),
            _ => Ok(self.split(pattern)?.0),
        }
    }

    /// The modes under numbers, in order: what [`Layout::slice`] takes away.
    ///
    /// ```
    /// use lacewing_core::layout;
    /// use lacewing_core::layout::Coord;
    ///
    /// let pattern = Coord::from((2, (.., 1)));
    /// let layout = layout![(4, (2, 3)); (6, (3, 1))]?;
    /// assert_eq!(layout.dice(&pattern)?.to_string(), "(4,3):(6,1)");
    /// assert_eq!(layout.slice_layout(&pattern)?.to_string(), "(2):(3)");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn dice(&self, pattern: &Coord) -> Result<Self, LayoutError> {
        match pattern {
            Nested::Leaf(CoordLeaf::At(_)) => Ok(self.clone()),
            _ => Ok(self.split(pattern)?.1),
        }
    }
}
