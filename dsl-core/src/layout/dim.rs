//! Extents and strides: integers known at trace time, or products with run-time values.

use super::LayoutError;

/// The largest magnitude of extents, strides, sizes and indices.
pub(super) const LIMIT: i64 = 1 << 62;

/// A run-time value in a layout. It is never negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// A value that the holder of the layout knows by this number: for example the extent of a tensor. Written `?3`.
    Value(u32),
    /// `ceil(a / b)`, which tiling a run-time extent makes. Written `ceil(?3/64)`.
    CeilDiv(Box<Dim>, i64),
}

/// An extent or a stride.
///
/// A static one is an `i64`. A dynamic one is a product `factor * symbol * symbol ..`, which is what extents and
/// strides become under the layout algebra: sums occur only in indices. Arithmetic folds what is known, and equal
/// products compare equal, so `(?0,4):(1,?0)` is seen to be compact.
///
/// ```
/// use lacewing_core::layout::{Dim, Symbol};
///
/// let rows = Dim::from(Symbol::Value(0));
/// assert_eq!(Dim::from(4).times(&rows)?.to_string(), "4*?0");
/// assert_eq!(Dim::from(4).times(&rows)?.exact_div(&rows)?, Dim::from(4));
/// assert_eq!(rows.ceil_div(64)?.to_string(), "ceil(?0/64)");
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// Known at trace time.
    Static(i64),
    /// Known at run time.
    Dynamic(Product),
}

/// `factor * symbol * symbol ..`: a factor that is not 0 and at least one symbol.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Product {
    factor: i64,
    // Sorted, so that equal products are equal values.
    symbols: Vec<Symbol>,
}

impl Product {
    /// The part that is known at trace time; never 0.
    pub fn factor(&self) -> i64 {
        self.factor
    }

    /// The run-time values; at least one.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }
}

impl Dim {
    /// The value, if it is known at trace time.
    pub fn known(&self) -> Option<i64> {
        match self {
            Self::Static(value) => Some(*value),
            Self::Dynamic(_) => None,
        }
    }

    /// The value, or an error that names the operation that needs it.
    pub fn get(&self, operation: &'static str) -> Result<i64, LayoutError> {
        self.known().ok_or_else(|| LayoutError::Dynamic { operation, value: self.to_string() })
    }

    fn parts(&self) -> (i64, &[Symbol]) {
        match self {
            Self::Static(value) => (*value, &[]),
            Self::Dynamic(product) => (product.factor, &product.symbols),
        }
    }

    pub(super) fn from_parts(factor: i64, mut symbols: Vec<Symbol>) -> Self {
        if factor == 0 || symbols.is_empty() {
            return Self::Static(factor);
        }
        symbols.sort();
        Self::Dynamic(Product { factor, symbols })
    }

    /// The product; an error where its factor leaves the range of layouts.
    pub fn times(&self, other: &Self) -> Result<Self, LayoutError> {
        let ((a, left), (b, right)) = (self.parts(), other.parts());
        let factor = a
            .checked_mul(b)
            .filter(|product| product.unsigned_abs() <= LIMIT.unsigned_abs())
            .ok_or_else(|| LayoutError::too_large(format_args!("{self} * {other}")))?;
        Ok(Self::from_parts(factor, [left, right].concat()))
    }

    /// The quotient, where `other` is seen to divide this: by its factor and by each of its symbols.
    pub fn exact_div(&self, other: &Self) -> Result<Self, LayoutError> {
        let refused =
            || LayoutError::NotDivisible { operation: "division", divisor: other.to_string(), value: self.to_string() };
        let ((a, symbols), (b, removed)) = (self.parts(), other.parts());
        let factor = match a.checked_rem(b) {
            Some(0) => a / b,
            _ => return Err(refused()),
        };
        let mut symbols = symbols.to_vec();
        for symbol in removed {
            let at = symbols.iter().position(|known| known == symbol).ok_or_else(refused)?;
            symbols.remove(at);
        }
        Ok(Self::from_parts(factor, symbols))
    }

    /// `ceil(self / divisor)` for a divisor of at least 1.
    pub fn ceil_div(&self, divisor: i64) -> Result<Self, LayoutError> {
        let refused = || LayoutError::Argument { what: "a divisor", value: divisor, why: "it must be at least 1" };
        if divisor < 1 {
            return Err(refused());
        }
        match self {
            Self::Static(value) => {
                let quotient = value.div_euclid(divisor);
                Ok(Self::Static(if value.rem_euclid(divisor) == 0 { quotient } else { quotient + 1 }))
            }
            Self::Dynamic(_) => Ok(self
                .exact_div(&Self::Static(divisor))
                .unwrap_or_else(|_| Self::from_parts(1, vec![Symbol::CeilDiv(Box::new(self.clone()), divisor)]))),
        }
    }
}

impl PartialEq<i64> for Dim {
    fn eq(&self, other: &i64) -> bool {
        self.known() == Some(*other)
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Self {
        Self::Static(value)
    }
}

impl From<i32> for Dim {
    fn from(value: i32) -> Self {
        Self::Static(value.into())
    }
}

impl From<u32> for Dim {
    fn from(value: u32) -> Self {
        Self::Static(value.into())
    }
}

impl From<usize> for Dim {
    /// What does not fit becomes `i64::MAX`, which every layout refuses as too large.
    fn from(value: usize) -> Self {
        Self::Static(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<Symbol> for Dim {
    fn from(symbol: Symbol) -> Self {
        Self::from_parts(1, vec![symbol])
    }
}
