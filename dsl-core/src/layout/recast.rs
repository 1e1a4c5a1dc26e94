//! The same memory as elements of another width.

use super::LayoutError;
use super::dim::Dim;
use super::nested::Nested;
use super::shape::{Layout, Mode};

impl Layout {
    /// The layout of the same memory in elements that are `factor` times as wide.
    ///
    /// Strides of at least `factor` must be multiples of it; the modes of smaller strides must begin with exactly the
    /// elements `0 .. factor`, which become one. Dynamic strides must have a multiple of `factor` as their known part.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(4, 16); (16, 1)]?.upcast(8)?.to_string(), "(4,2):(2,1)");
    /// assert!(layout![(4, 16); (20, 1)]?.upcast(8).is_err());
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn upcast(&self, factor: i64) -> Result<Self, LayoutError> {
        let refused = |why| LayoutError::Recast { layout: self.to_string(), factor, why };
        if factor < 1 {
            return Err(refused("the factor must be at least 1"));
        }
        // The modes that vanish into one wide element.
        let mut inside = Vec::new();
        let tree = self.tree().try_expand(&mut |mode| {
            if mode.extent == 1 {
                return Ok(Nested::Leaf(Mode::unit()));
            }
            if mode.stride == 0 {
                return Ok(Nested::Leaf(mode.clone()));
            }
            if let Ok(stride) = mode.stride.exact_div(&factor.into()) {
                return Ok(Nested::Leaf(Mode::new(mode.extent.clone(), stride)));
            }
            let (extent, stride) = match (mode.extent.known(), mode.stride.known()) {
                (Some(extent), Some(stride)) if stride > 0 && factor % stride == 0 => (extent, stride),
                _ => return Err(refused("a stride is neither a multiple of the factor nor divides it")),
            };
            let held = factor / stride;
            if extent % held == 0 {
                inside.push((stride, held));
                let extent = extent / held;
                Ok(Nested::Leaf(if extent == 1 { Mode::unit() } else { Mode::new(extent, 1) }))
            } else if held % extent == 0 {
                inside.push((stride, extent));
                Ok(Nested::Leaf(Mode::unit()))
            } else {
                Err(refused("an extent ends inside a wide element"))
            }
        })?;
        inside.sort_unstable();
        let mut filled = 1;
        for (stride, extent) in inside {
            if stride != filled {
                return Err(refused("the elements of a wide element are not adjacent"));
            }
            filled = stride * extent;
        }
        if filled != factor {
            return Err(refused("a wide element is not filled"));
        }
        Self::from_tree(tree)
    }

    /// The layout of the same memory in elements that are `factor` times as narrow: the mode of stride 1 becomes
    /// `factor` times as long, all other strides become `factor` times as large. Needs exactly one mode of stride 1.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(4, 2); (2, 1)]?.downcast(8)?.to_string(), "(4,16):(16,1)");
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn downcast(&self, factor: i64) -> Result<Self, LayoutError> {
        let refused = |why| LayoutError::Recast { layout: self.to_string(), factor, why };
        if factor < 1 {
            return Err(refused("the factor must be at least 1"));
        }
        let factor = Dim::Static(factor);
        let mut adjacent = 0;
        let tree = self.tree().try_expand(&mut |mode| {
            Ok(Nested::Leaf(if mode.stride == 1 {
                adjacent += 1;
                Mode::new(mode.extent.times(&factor)?, 1)
            } else {
                Mode::new(mode.extent.clone(), mode.stride.times(&factor)?)
            }))
        })?;
        if adjacent != 1 && factor != 1 {
            return Err(refused("it needs exactly one mode of stride 1"));
        }
        Self::from_tree(tree)
    }

    /// The largest power of two `N` for which [`Layout::upcast`] by `N` is defined: the widest vectors in which all of
    /// the layout can be copied, if its first element is aligned for them.
    ///
    /// ```
    /// # use lacewing_core::layout;
    /// assert_eq!(layout![(8, 64); (72, 1)]?.max_alignment(), 8);
    /// # Ok::<(), lacewing_core::layout::LayoutError>(())
    /// ```
    pub fn max_alignment(&self) -> i64 {
        let mut factor = 1i64;
        // The factor ends at the size of the layout at the latest.
        while factor < super::dim::LIMIT && self.upcast(factor * 2).is_ok() {
            factor *= 2;
        }
        factor
    }

    /// The layout of memory that held elements of `from` bits, in elements of `to` bits.
    pub fn recast(&self, from: u32, to: u32) -> Result<Self, LayoutError> {
        match (to.checked_rem(from), from.checked_rem(to)) {
            _ if from == to => Ok(self.clone()),
            (Some(0), _) => self.upcast((to / from).into()),
            (_, Some(0)) => self.downcast((from / to).into()),
            _ => Err(LayoutError::NotDivisible {
                operation: "recast",
                divisor: format!("an element of {from} bits"),
                value: format!("one of {to} bits"),
            }),
        }
    }
}
