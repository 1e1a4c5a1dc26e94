//! Permutations of indices by xor.

use std::fmt;

use super::LayoutError;

/// `Swizzle<B,M,S>`: the `B` bits of an index that start at bit `M + S` are xored into those that start at bit `M`.
///
/// With `S` negative, the bits from `M` are xored into those from `M + |S|`. The lowest `M` bits (of the lower field)
/// stay, so runs of `2^M` elements stay whole. For `|S| >= B` the fields do not overlap, and the swizzle is its own
/// inverse.
///
/// ```
/// use lacewing_core::layout::Swizzle;
///
/// // Rows of 128 bytes: the row number, modulo 8, moves each 16-byte piece.
/// let swizzle = Swizzle::new(3, 4, 3)?;
/// assert_eq!(swizzle.apply(5 * 128 + 2 * 16), 5 * 128 + (2 ^ 5) * 16);
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    bits: u32,
    base: u32,
    shift: i32,
}

impl Swizzle {
    /// The swizzle that leaves everything in place.
    pub const IDENTITY: Self = Self { bits: 0, base: 0, shift: 0 };

    /// `Swizzle<bits,base,shift>`. Needs `|shift| >= bits`, and all bits below 62.
    pub fn new(bits: u32, base: u32, shift: i32) -> Result<Self, LayoutError> {
        let refused = |why| Err(LayoutError::Swizzle { bits, base, shift, why });
        if shift.unsigned_abs() < bits {
            return refused("the fields overlap: the shift must be at least the number of bits");
        }
        if [bits, base, shift.unsigned_abs()].iter().map(|&part| u64::from(part)).sum::<u64>() > 61 {
            return refused("the fields must lie below bit 62");
        }
        Ok(Self { bits, base, shift })
    }

    /// The number of bits in each field.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The number of lowest bits that stay.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The distance of the two fields; positive where the upper is xored into the lower.
    pub fn shift(&self) -> i32 {
        self.shift
    }

    /// The bits that are read: those xored into the others after a shift right by [`Swizzle::shift`].
    pub fn source_mask(&self) -> i64 {
        ((1 << self.bits) - 1) << (self.base + self.shift.max(0).unsigned_abs())
    }

    /// The bits that change.
    pub fn target_mask(&self) -> i64 {
        ((1 << self.bits) - 1) << (self.base + self.shift.min(0).unsigned_abs())
    }

    /// The swizzled index. A bijection that permutes each aligned block of [`Swizzle::period`] indices.
    #[must_use]
    pub fn apply(&self, index: i64) -> i64 {
        let source = index & self.source_mask();
        let distance = self.shift.unsigned_abs();
        index ^ if self.shift >= 0 { source >> distance } else { source << distance }
    }

    /// `2^(M + |S| + B)`: what a swizzle does to an index depends on the index modulo this.
    pub fn period(&self) -> i64 {
        1 << (self.base + self.shift.unsigned_abs() + self.bits)
    }

    /// The size of the aligned blocks that a swizzle maps into themselves: `2^(M + B)`, or the period for negative `S`.
    pub fn block(&self) -> i64 {
        1 << (self.base + self.shift.min(0).unsigned_abs() + self.bits)
    }

    /// The same permutation of elements `factor` times as wide. `factor` must be a power of two that does not split
    /// what the swizzle moves as a whole, that is at most `2^M`.
    pub fn upcast(&self, factor: i64) -> Result<Self, LayoutError> {
        let base = self.log2(factor)?;
        match self.base.checked_sub(base) {
            Some(base) => Self::new(self.bits, base, self.shift),
            None if self.bits == 0 => Ok(*self),
            None => Err(self.recast_error(factor, "the swizzle moves parts of a wide element")),
        }
    }

    /// The same permutation of elements `factor` times as narrow; `factor` must be a power of two.
    pub fn downcast(&self, factor: i64) -> Result<Self, LayoutError> {
        Self::new(self.bits, self.base + self.log2(factor)?, self.shift)
    }

    fn log2(&self, factor: i64) -> Result<u32, LayoutError> {
        if factor > 0 && factor.count_ones() == 1 {
            Ok(factor.trailing_zeros())
        } else {
            Err(self.recast_error(factor, "the factor must be a power of two"))
        }
    }

    fn recast_error(&self, factor: i64, why: &'static str) -> LayoutError {
        LayoutError::Recast { layout: self.to_string(), factor, why }
    }
}

impl fmt::Display for Swizzle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}
