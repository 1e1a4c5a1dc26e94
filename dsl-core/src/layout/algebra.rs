//! Simplification, composition, complement and inverses.

use super::LayoutError;
use super::dim::Dim;
use super::nested::{IntTuple, Nested};
use super::shape::{Layout, Mode};
use super::tile::{Tile, Tiler};

/// One mode alone, or the tuple of several; no mode at all is `1:0`.
fn tree_of(mut modes: Vec<Mode>) -> Nested<Mode> {
    match (modes.len(), modes.pop()) {
        (1, Some(mode)) => Nested::Leaf(mode),
        (_, Some(last)) => {
            modes.push(last);
            Nested::Tuple(modes.into_iter().map(Nested::Leaf).collect())
        }
        (_, None) => Nested::Leaf(Mode::unit()),
    }
}

/// Adds a mode after `modes`, merged into the last one where that continues it.
fn push_coalesced(modes: &mut Vec<Mode>, mode: Mode) -> Result<(), LayoutError> {
    if mode.extent == 1 {
        return Ok(());
    }
    if let Some(last) = modes.last_mut()
        && last.extent.times(&last.stride)? == mode.stride
    {
        last.extent = last.extent.times(&mode.extent)?;
        return Ok(());
    }
    modes.push(mode);
    Ok(())
}

/// A layout as the function of one integer without an end: digits of these extents, and a last one that is unbounded.
struct Digits {
    bounded: Vec<Mode>,
    last: Dim,
}

impl Digits {
    fn of(layout: &Layout) -> Result<Self, LayoutError> {
        let leaves = layout.tree().leaves();
        let mut bounded = Vec::new();
        let mut last = Dim::Static(0);
        if let Some((end, before)) = leaves.split_last() {
            for mode in before {
                push_coalesced(&mut bounded, (*mode).clone())?;
            }
            last = end.stride.clone();
        }
        if let Some(mode) = bounded.last()
            && mode.extent.times(&mode.stride)? == last
        {
            last = mode.stride.clone();
            bounded.pop();
        }
        Ok(Self { bounded, last })
    }
}

/// A composition under way: the digits of the left operand, and how far the modes seen so far reach in each.
struct Composition<'a> {
    digits: &'a Digits,
    reach: Vec<i64>,
    lhs: &'a Layout,
    rhs: &'a Layout,
}

impl Composition<'_> {
    /// The left operand after one mode `extent:stride`. Exact: for every `i` in `0 .. extent`, the result at `i` is
    /// the left operand at `i * stride`.
    fn mode(&mut self, mode: &Mode) -> Result<Nested<Mode>, LayoutError> {
        let operation = "composition";
        if mode.stride.known().is_some_and(|stride| stride < 0) {
            return Err(LayoutError::Negative { operation, layout: self.rhs.to_string() });
        }
        if mode.stride == 0 || mode.extent == 1 {
            return Ok(Nested::Leaf(Mode::new(mode.extent.clone(), 0)));
        }
        if self.digits.bounded.is_empty() {
            return Ok(Nested::Leaf(Mode::new(mode.extent.clone(), mode.stride.times(&self.digits.last)?)));
        }
        let (mut elements, mut stride) = (mode.extent.get(operation)?, mode.stride.get(operation)?);
        let (left, right) = (self.lhs, self.rhs);
        let texts = || Ok::<_, LayoutError>((left.coalesce()?.to_string(), right.to_string()));
        let mut result = Vec::new();
        for (digit, reach) in self.digits.bounded.iter().zip(&mut self.reach) {
            let extent = digit.extent.get(operation)?;
            if stride % extent == 0 {
                stride /= extent;
                continue;
            }
            // How many elements this digit holds before it carries.
            let inside = if (elements - 1).checked_mul(stride).is_some_and(|end| end < extent) {
                elements
            } else if extent % stride == 0 {
                extent / stride
            } else {
                let (lhs, rhs) = texts()?;
                return Err(LayoutError::StrideDivisibility { lhs, rhs, stride, extent });
            };
            if elements % inside != 0 {
                let (lhs, rhs) = texts()?;
                return Err(LayoutError::ShapeDivisibility { lhs, rhs, elements, extent: inside });
            }
            *reach += (inside - 1) * stride;
            if *reach >= extent {
                let (lhs, rhs) = texts()?;
                return Err(LayoutError::Carry { lhs, rhs, reached: *reach, extent });
            }
            result.push(Mode::new(inside, digit.stride.times(&stride.into())?));
            elements /= inside;
            stride = 1;
            if elements == 1 {
                break;
            }
        }
        if elements > 1 {
            result.push(Mode::new(elements, self.digits.last.times(&stride.into())?));
        }
        Ok(tree_of(result))
    }
}

/// The digits that fill the gaps of a layout, and the number of indices below the first one beyond it.
pub(super) struct Fill {
    pub gaps: Vec<Mode>,
    pub block: i64,
    /// The stride, and the block below it, at which a gap is no whole number of blocks.
    pub hole: Option<(i64, i64)>,
}

impl Fill {
    pub(super) fn of(layout: &Layout, operation: &'static str) -> Result<Self, LayoutError> {
        let mut modes = layout.filter()?.static_modes(operation)?;
        modes.retain(|&(extent, _)| extent > 1);
        modes.sort_unstable_by_key(|&(_, stride)| stride);
        let mut fill = Self { gaps: Vec::new(), block: 1, hole: None };
        for (extent, stride) in modes {
            let gap = stride / fill.block;
            if gap == 0 {
                return Err(LayoutError::Overlap { operation, layout: layout.to_string(), stride });
            }
            if stride % fill.block != 0 {
                fill.hole.get_or_insert((stride, fill.block));
            }
            fill.gaps.push(Mode::new(gap, fill.block));
            fill.block = extent.checked_mul(stride).ok_or_else(|| LayoutError::too_large(layout))?;
        }
        Ok(fill)
    }

    /// The complement with `rest` repetitions of the whole.
    pub(super) fn complement(self, rest: Dim) -> Result<Layout, LayoutError> {
        let mut modes = Vec::new();
        for gap in self.gaps {
            push_coalesced(&mut modes, gap)?;
        }
        push_coalesced(&mut modes, Mode::new(rest, self.block))?;
        Layout::from_tree(tree_of(modes))
    }
}

impl Layout {
    /// The same function of one integer with as few modes as possible.
    ///
    /// Modes of extent 1 go, and `s0:d0, s1:(s0*d0)` becomes `(s0*s1):d0`. The result has a depth of at most 1, the
    /// same size, and for every `i` below that, `result(i) == self(i)`. Dynamic modes merge where the equality holds
    /// whatever their values are.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(2, (1, 6)); (1, (6, 2))]?.coalesce()?.to_string(), "12:1");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn coalesce(&self) -> Result<Self, LayoutError> {
        let mut modes = Vec::new();
        for mode in self.tree().leaves() {
            push_coalesced(&mut modes, mode.clone())?;
        }
        Self::from_tree(tree_of(modes))
    }

    /// [`Layout::coalesce`] in each mode where the profile has a leaf: CuTe's `coalesce(layout, profile)`. The numbers
    /// in the profile do not matter; modes beyond its rank stay as they are.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(2, (1, 6)); (1, (6, 2))]?.coalesce_by((1, 1))?.to_string(), "(2,6):(1,2)");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn coalesce_by(&self, profile: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        self.by_profile("coalesce", &profile.into(), &Self::coalesce)
    }

    fn by_profile(
        &self,
        operation: &'static str,
        profile: &IntTuple,
        f: &impl Fn(&Self) -> Result<Self, LayoutError>,
    ) -> Result<Self, LayoutError> {
        match profile {
            Nested::Leaf(_) => f(self),
            Nested::Tuple(profiles) => {
                if profiles.len() > self.rank() {
                    return Err(LayoutError::profile(operation, profile, &self.shape()));
                }
                let mut modes = Vec::new();
                for (i, mode) in self.modes().enumerate() {
                    modes.push(match profiles.get(i) {
                        Some(profile) => mode.by_profile(operation, profile, f)?,
                        None => mode,
                    });
                }
                Self::concat(&modes)
            }
        }
    }

    /// The layout with an extent of 1 wherever the stride is 0.
    #[must_use]
    pub fn filter_zeros(&self) -> Self {
        let tree = self.tree().map(&mut |mode| if mode.stride == 0 { Mode::unit() } else { mode.clone() });
        // Smaller extents cannot leave the range.
        Self::from_tree(tree).unwrap_or_else(|_| self.clone())
    }

    /// The layout without its modes of stride 0 or extent 1: one coordinate for each index of a broadcast.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(2, 4, 1, 3); (0, 1, 7, 4)]?.filter()?.to_string(), "12:1");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn filter(&self) -> Result<Self, LayoutError> {
        self.filter_zeros().coalesce()
    }

    /// [`Layout::filter`] in each mode where the profile has a leaf.
    pub fn filter_by(&self, profile: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        self.by_profile("filter", &profile.into(), &Self::filter)
    }

    /// The composition `R(c) = self(rhs(c))`, whose coordinates are those of `rhs`; or, for a tuple of tiles, the
    /// composition mode by mode, which drops the modes that no tile is for.
    ///
    /// For one mode `s:d` of `rhs` and the extents `a0, a1, ..` of the coalesced `self`, `d` is divided by the `a`
    /// from the left until it is used up, and then `s` is. The result is a layout where
    ///
    /// - what is left of `d` at a mode is a multiple of its extent or divides it (*stride divisibility*); it need not
    ///   divide where all `s` elements end inside the mode;
    /// - what is left of `s` at a mode is a multiple of the elements that the mode holds (*shape divisibility*);
    /// - the modes of `rhs` together do not reach beyond a mode of `self` (*no carry*): then `self` of their sum is
    ///   the sum of `self` of each. CuTe does not check this one.
    ///
    /// The last mode of `self` extends beyond its extent, so `rhs` may reach beyond the size of `self`.
    ///
    /// ```
    /// use lacewing_core::layout;
    /// use lacewing_core::layout::Tiler;
    ///
    /// let a = layout![(6, 2); (8, 2)]?;
    /// assert_eq!(a.composition(layout![(4, 3); (3, 1)]?)?.to_string(), "((2,2),3):((24,2),8)");
    ///
    /// let matrix = layout![(12, (4, 8)); (59, (13, 1))]?;
    /// assert_eq!(matrix.composition("<3:4,8:2>".parse::<Tiler>()?)?.to_string(), "(3,(2,4)):(236,(26,1))");
    /// assert_eq!(matrix.composition((3, 8))?.to_string(), "(3,(4,2)):(59,(13,1))");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn composition(&self, rhs: impl Into<Tiler>) -> Result<Self, LayoutError> {
        self.compose_tiler(&rhs.into())
    }

    fn compose_tiler(&self, tiler: &Tiler) -> Result<Self, LayoutError> {
        match tiler {
            Nested::Leaf(Tile::All) => Ok(self.clone()),
            Nested::Leaf(tile) => self.compose(&tile.layout()?),
            Nested::Tuple(tiles) => {
                if tiles.len() > self.rank() {
                    return Err(LayoutError::profile("composition", tiler, &self.shape()));
                }
                let modes = self.modes().zip(tiles).map(|(mode, tile)| mode.compose_tiler(tile));
                Self::concat(&modes.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }

    fn compose(&self, rhs: &Self) -> Result<Self, LayoutError> {
        let digits = Digits::of(self)?;
        let mut composition = Composition { reach: vec![0; digits.bounded.len()], digits: &digits, lhs: self, rhs };
        let tree = rhs.tree().try_expand(&mut |mode| composition.mode(mode))?;
        Self::from_tree(tree)
    }

    /// The layout of the repetitions of this one that fill `0 .. size(cotarget)`.
    ///
    /// The strides of the result are positive and increasing. Its indices and those of `self` have only 0 in common,
    /// and no two sums of them are equal: `(self, result)` is injective. It reaches to the cotarget, and beyond where
    /// the block of `self` does not divide it.
    ///
    /// Defined where the modes of `self`, without those of stride 0, do not overlap when sorted by stride. Where each
    /// stride is a multiple of the block below it, `(self, result)` has every index from 0 to its end. Where one is
    /// not (a padded tile), the indices in between belong to neither layout; divisions refuse such a tiler, products
    /// accept such a block.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![4; 2]?.complement(24)?.to_string(), "(2,3):(1,8)");
    /// assert_eq!(layout![(2, 2); (1, 6)]?.complement(24)?.to_string(), "(3,2):(2,12)");
    /// assert!(layout![(2, 2); (1, 1)]?.complement(24).is_err());
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn complement(&self, cotarget: impl Into<IntTuple>) -> Result<Self, LayoutError> {
        let fill = Fill::of(self, "complement")?;
        let rest = cotarget.into().product()?.ceil_div(fill.block)?;
        fill.complement(rest)
    }

    /// The layout `R` of the contiguous part of this one: `self(R(i)) == i` for every `i` below the size of `R`.
    ///
    /// It follows the modes of stride 1, then of the stride at which those end, and so on, and is as long as that
    /// chain: `1:0` where no mode has stride 1. Dynamic modes end the chain.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(4, 8); (8, 1)]?.right_inverse()?.to_string(), "(8,4):(4,1)");
    /// assert_eq!(layout![(4, 8); (1, 5)]?.right_inverse()?.to_string(), "4:1");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn right_inverse(&self) -> Result<Self, LayoutError> {
        let flat = self.coalesce()?;
        let mut weight = Dim::Static(1);
        let mut modes = Vec::new();
        for mode in flat.tree().leaves() {
            let (extent, stride) = (mode.extent.known(), mode.stride.known());
            // Modes of stride 0 and of one element cannot continue the chain.
            if let (Some(extent @ 2..), Some(stride @ 1..)) = (extent, stride) {
                modes.push((extent, stride, weight.clone()));
            }
            weight = weight.times(&mode.extent)?;
        }
        let (mut next, mut chain) = (1, Vec::new());
        while let Some((extent, _, weight)) = modes.iter().find(|(_, stride, _)| *stride == next) {
            push_coalesced(&mut chain, Mode::new(*extent, weight.clone()))?;
            next = next.checked_mul(*extent).ok_or_else(|| LayoutError::too_large(self))?;
        }
        Self::from_tree(tree_of(chain))
    }

    /// The layout `L` that finds the coordinate of an index: `L(self(i)) == i` for every `i` below the size.
    ///
    /// Defined where `self` is injective with strides that, sorted, each are a multiple of the one before and not
    /// smaller than its block. Indices that `self` does not have map somewhere. Needs a static layout without negative
    /// strides.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(4, 8); (8, 1)]?.left_inverse()?.to_string(), "(8,4):(4,1)");
    /// // Rows of 32, 33 apart.
    /// let padded = layout![(8, 32); (33, 1)]?;
    /// assert_eq!(padded.left_inverse()?.extended(33 * 5 + 7)?, 5 + 8 * 7);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn left_inverse(&self) -> Result<Self, LayoutError> {
        let operation = "left_inverse";
        let (mut weight, mut modes) = (1i64, Vec::new());
        for (extent, stride) in self.static_modes(operation)? {
            if extent > 1 {
                modes.push((stride, extent, weight));
            }
            weight = weight.checked_mul(extent).ok_or_else(|| LayoutError::too_large(self))?;
        }
        modes.sort_unstable();
        let refused = |stride| LayoutError::Overlap { operation, layout: self.to_string(), stride };
        let mut inverse = Vec::new();
        // Indices below the first stride belong to the first element.
        let (mut stride, mut weight, mut block) = (1, 0, 1);
        for (next, extent, next_weight) in modes {
            if next < block || next % stride != 0 {
                return Err(refused(next));
            }
            push_coalesced(&mut inverse, Mode::new(next / stride, weight))?;
            block = next.checked_mul(extent).ok_or_else(|| LayoutError::too_large(self))?;
            (stride, weight) = (next, next_weight);
        }
        // The last mode has no end but that of the layout.
        if block > 1 {
            push_coalesced(&mut inverse, Mode::new(block / stride, weight))?;
        }
        Self::from_tree(tree_of(inverse))
    }

    /// The longest layout `R` with `self(R(i)) == i` and `other(R(i)) == i`: the elements that are contiguous in both
    /// layouts at the same coordinates.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// let (global, shared) = (layout![(8, 64); (256, 1)]?, layout![(8, 64); (72, 1)]?);
    /// assert_eq!(global.max_common_layout(&shared)?.to_string(), "64:8");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn max_common_layout(&self, other: &Self) -> Result<Self, LayoutError> {
        let (left, right) = (self.right_inverse()?, other.right_inverse()?);
        let mut common = Vec::new();
        for (left, right) in left.tree().leaves().into_iter().zip(right.tree().leaves()) {
            if left.stride != right.stride {
                break;
            }
            let (a, b) = (left.extent.get("max_common_layout")?, right.extent.get("max_common_layout")?);
            push_coalesced(&mut common, Mode::new(a.min(b), left.stride.clone()))?;
            if a != b {
                break;
            }
        }
        Self::from_tree(tree_of(common))
    }

    /// The number of elements of [`Layout::max_common_layout`]: an upper bound for the width of a vector copy
    /// between the two.
    pub fn max_common_vector(&self, other: &Self) -> Result<i64, LayoutError> {
        self.max_common_layout(other)?.static_size()
    }
}
