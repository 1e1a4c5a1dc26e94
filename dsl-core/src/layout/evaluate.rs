//! Indices of coordinates that are values of run time.

use super::coord::{Coord, CoordLeaf};
use super::dim::{Dim, Symbol};
use super::nested::{IntTuple, Nested};
use super::{ComposedLayout, Layout, LayoutError, Swizzle};

/// The arithmetic in which [`Layout::index_with`] computes: of values of a trace, for example.
///
/// All values are at least 0, but for strides; constants never reach an operation that would fold away: there is no
/// addition of 0, no product by 0 or 1, no division by 1.
pub trait IndexMath {
    /// A value of run time.
    type Value: Clone;

    /// The value of a constant.
    fn constant(&mut self, value: i64) -> Self::Value;

    /// The value that a symbol of [`Symbol::Value`] stands for.
    fn symbol(&mut self, number: u32) -> Result<Self::Value, LayoutError>;

    /// `a + b`.
    fn add(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;

    /// `a * b`.
    fn mul(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;

    /// `a / b`, rounded towards 0.
    fn div(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;

    /// `a % b`.
    fn rem(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;

    /// `a & mask`.
    fn and(&mut self, a: Self::Value, mask: i64) -> Self::Value;

    /// `a ^ b`.
    fn xor(&mut self, a: Self::Value, b: Self::Value) -> Self::Value;

    /// `a << distance`, or for a negative distance `a >> -distance`.
    fn shift(&mut self, a: Self::Value, distance: i32) -> Self::Value;
}

/// A part of a coordinate or of an index: known at trace time, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term<V> {
    /// Known at trace time.
    Known(i64),
    /// A value of run time.
    Value(V),
}

fn too_large() -> LayoutError {
    LayoutError::too_large("an index")
}

impl<V: Clone> Term<V> {
    /// The value, with a constant made where it is known.
    pub fn materialize(self, math: &mut impl IndexMath<Value = V>) -> V {
        match self {
            Self::Known(value) => math.constant(value),
            Self::Value(value) => value,
        }
    }

    fn add(self, other: Self, math: &mut impl IndexMath<Value = V>) -> Result<Self, LayoutError> {
        Ok(match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a.checked_add(b).ok_or_else(too_large)?),
            (Self::Known(0), other) | (other, Self::Known(0)) => other,
            (a, b) => {
                let (a, b) = (a.materialize(math), b.materialize(math));
                Self::Value(math.add(a, b))
            }
        })
    }

    fn mul(self, other: Self, math: &mut impl IndexMath<Value = V>) -> Result<Self, LayoutError> {
        Ok(match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a.checked_mul(b).ok_or_else(too_large)?),
            (Self::Known(0), _) | (_, Self::Known(0)) => Self::Known(0),
            (Self::Known(1), other) | (other, Self::Known(1)) => other,
            (a, b) => {
                let (a, b) = (a.materialize(math), b.materialize(math));
                Self::Value(math.mul(a, b))
            }
        })
    }

    /// Quotient and remainder by an extent. A remainder or quotient that is not used should cost nothing, so each is
    /// asked for alone.
    fn div(self, extent: &Self, math: &mut impl IndexMath<Value = V>) -> Self {
        match (self, extent) {
            (Self::Known(a), Self::Known(b @ 1..)) => Self::Known(a / b),
            (this, Self::Known(1)) => this,
            (Self::Known(0), _) => Self::Known(0),
            (a, b) => {
                let (a, b) = (a.materialize(math), b.clone().materialize(math));
                Self::Value(math.div(a, b))
            }
        }
    }

    fn rem(self, extent: &Self, math: &mut impl IndexMath<Value = V>) -> Self {
        match (self, extent) {
            (Self::Known(a), Self::Known(b @ 1..)) => Self::Known(a % b),
            (_, Self::Known(1)) | (Self::Known(0), _) => Self::Known(0),
            (a, b) => {
                let (a, b) = (a.materialize(math), b.clone().materialize(math));
                Self::Value(math.rem(a, b))
            }
        }
    }
}

impl Dim {
    /// The value: known, or computed from its symbols.
    pub fn evaluate<M: IndexMath>(&self, math: &mut M) -> Result<Term<M::Value>, LayoutError> {
        let product = match self {
            Self::Static(value) => return Ok(Term::Known(*value)),
            Self::Dynamic(product) => product,
        };
        let mut value = Term::Known(product.factor());
        for symbol in product.symbols() {
            let factor = match symbol {
                Symbol::Value(number) => Term::Value(math.symbol(*number)?),
                Symbol::CeilDiv(dividend, divisor) => {
                    dividend.evaluate(math)?.add(Term::Known(divisor - 1), math)?.div(&Term::Known(*divisor), math)
                }
            };
            value = value.mul(factor, math)?;
        }
        Ok(value)
    }
}

impl Swizzle {
    /// The swizzled index of a value.
    pub fn apply_with<M: IndexMath>(&self, index: Term<M::Value>, math: &mut M) -> Term<M::Value> {
        match index {
            Term::Known(index) => Term::Known(self.apply(index)),
            Term::Value(value) if self.bits() == 0 => Term::Value(value),
            Term::Value(value) => {
                let field = math.and(value.clone(), self.source_mask());
                let field = if self.shift() == 0 { field } else { math.shift(field, -self.shift()) };
                Term::Value(math.xor(value, field))
            }
        }
    }
}

/// What one mode adds to an index: a digit times a stride.
struct Part<V> {
    extent: Option<i64>,
    stride: Option<i64>,
    value: Term<V>,
}

/// Appends what each mode adds to the index of a coordinate.
fn parts<M: IndexMath>(
    shape: &IntTuple,
    stride: &IntTuple,
    coord: &Nested<Term<M::Value>>,
    math: &mut M,
    out: &mut Vec<Part<M::Value>>,
) -> Result<(), LayoutError> {
    match (shape, stride, coord) {
        (Nested::Leaf(extent), Nested::Leaf(stride), Nested::Leaf(digit)) => {
            // A part that is 0 or a stride of 0 must not make the other one be computed.
            let value = match (digit, stride) {
                (Term::Known(0), _) | (_, Dim::Static(0)) => Term::Known(0),
                _ => {
                    let stride = stride.evaluate(math)?;
                    digit.clone().mul(stride, math)?
                }
            };
            out.push(Part { extent: extent.known(), stride: stride.known(), value });
            Ok(())
        }
        (Nested::Tuple(_), Nested::Tuple(_), Nested::Leaf(number)) => {
            // Adjacent modes that continue each other need no division.
            let flat = Layout::new(shape.clone(), stride.clone())?.coalesce()?;
            let (extents, strides) = (flat.shape(), flat.stride());
            let modes: Vec<_> = extents.leaves().into_iter().zip(strides.leaves()).collect();
            let mut rest = number.clone();
            for (position, (extent, stride)) in modes.iter().enumerate() {
                let last = position + 1 == modes.len();
                let bound = extent.known();
                let extent = extent.evaluate(math)?;
                if **stride != 0 {
                    let digit = if last { rest.clone() } else { rest.clone().rem(&extent, math) };
                    let value = digit.mul(stride.evaluate(math)?, math)?;
                    out.push(Part { extent: bound, stride: stride.known(), value });
                }
                if !last {
                    rest = rest.div(&extent, math);
                }
            }
            Ok(())
        }
        (Nested::Tuple(shapes), Nested::Tuple(strides), Nested::Tuple(coords)) if shapes.len() == coords.len() => {
            let modes = shapes.iter().zip(strides).zip(coords);
            modes.into_iter().try_for_each(|((shape, stride), coord)| parts(shape, stride, coord, math, out))
        }
        _ => {
            let pattern: Coord = coord.map(&mut |_| CoordLeaf::All);
            Err(LayoutError::profile("coordinate", &pattern, shape))
        }
    }
}

/// The sum of what modes add; what is known is added up first.
fn total<M: IndexMath>(
    parts: impl IntoIterator<Item = Part<M::Value>>,
    math: &mut M,
) -> Result<Term<M::Value>, LayoutError> {
    let (known, values): (Vec<_>, Vec<_>) =
        parts.into_iter().map(|part| part.value).partition(|value| matches!(value, Term::Known(_)));
    let known = known.into_iter().try_fold(Term::Known(0), |sum, part| sum.add(part, math))?;
    let values = values.into_iter().try_fold(Term::Known(0), |sum, part| sum.add(part, math))?;
    values.add(known, math)
}

impl Swizzle {
    /// Whether the modes below a row of the swizzle's period, and those of whole rows, are apart: then what is swizzled in a
    /// row depends on the rows alone, and is computed once for all of its elements.
    fn is_apart<V>(&self, parts: &[Part<V>]) -> bool {
        let row = 1_i64.checked_shl(self.base().saturating_add(self.shift().unsigned_abs())).unwrap_or(0);
        let inside = parts.iter().filter(|part| !Self::is_of_rows(part, row));
        let largest = inside.map(|part| match (part.extent, part.stride) {
            (Some(extent), Some(stride @ 0..)) => extent.saturating_sub(1).saturating_mul(stride),
            _ => i64::MAX,
        });
        self.shift() > 0 && row > 0 && largest.fold(0, i64::saturating_add) < row
    }

    /// Whether a mode's stride is whole rows.
    fn is_of_rows<V>(part: &Part<V>, row: i64) -> bool {
        part.stride.is_some_and(|stride| stride >= row && stride % row == 0)
    }

    /// The swizzled sum of parts that are apart: `rows + (inside ^ field of rows)`.
    fn apply_apart<M: IndexMath>(
        &self,
        parts: Vec<Part<M::Value>>,
        math: &mut M,
    ) -> Result<Term<M::Value>, LayoutError> {
        let row = 1_i64 << (self.base() + self.shift().unsigned_abs());
        let (rows, inside): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| Self::is_of_rows(part, row));
        // Strides of whole periods leave the field as it is.
        let (whole, rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|part| part.stride.is_some_and(|stride| stride % self.period() == 0));
        let (whole, rows, inside) = (total(whole, math)?, total(rows, math)?, total(inside, math)?);
        let field = match &rows {
            Term::Known(rows) => Term::Known((rows & self.source_mask()) >> self.shift()),
            Term::Value(rows) => {
                let field = math.and(rows.clone(), self.source_mask());
                Term::Value(math.shift(field, -self.shift()))
            }
        };
        let moved = match (inside, field) {
            (Term::Known(inside), Term::Known(field)) => Term::Known(inside ^ field),
            (inside, Term::Known(0)) => inside,
            (Term::Known(0), field) => field,
            (inside, field) => {
                let (inside, field) = (inside.materialize(math), field.materialize(math));
                Term::Value(math.xor(inside, field))
            }
        };
        whole.add(rows, math)?.add(moved, math)
    }
}

impl Layout {
    /// The index of a coordinate of which parts are values of run time: [`Layout::crd2idx`] in other arithmetic. What
    /// is known at trace time is folded; bounds are not checked.
    pub fn index_with<M: IndexMath>(
        &self,
        coord: &Nested<Term<M::Value>>,
        math: &mut M,
    ) -> Result<Term<M::Value>, LayoutError> {
        let mut found = Vec::new();
        parts(&self.shape(), &self.stride(), coord, math, &mut found)?;
        total(found, math)
    }

    /// The coordinate of a number below the size, one part for each mode and the first mode fastest: `shape().idx2crd` in
    /// other arithmetic, with the parts of nested modes as one number. The extent of the last mode is not asked for.
    ///
    /// # Errors
    /// A symbol that the arithmetic has no value for; a known number that is negative or beyond a known size.
    pub fn coordinate_with<M: IndexMath>(
        &self,
        number: Term<M::Value>,
        math: &mut M,
    ) -> Result<Vec<Term<M::Value>>, LayoutError> {
        if let (Term::Known(known), Ok(size)) = (&number, self.static_size())
            && !(0..size).contains(known)
        {
            return Err(LayoutError::Argument {
                what: "a number",
                value: *known,
                why: "it must be below the layout's size",
            });
        }
        let last = self.rank().saturating_sub(1);
        let (mut rest, mut parts) = (number, Vec::new());
        for (position, mode) in self.modes().enumerate() {
            if position == last {
                parts.push(rest.clone());
                continue;
            }
            let extent = mode.size().evaluate(math)?;
            parts.push(rest.clone().rem(&extent, math));
            rest = rest.div(&extent, math);
        }
        Ok(parts)
    }
}

impl ComposedLayout {
    /// See [`Layout::index_with`].
    pub fn index_with<M: IndexMath>(
        &self,
        coord: &Nested<Term<M::Value>>,
        math: &mut M,
    ) -> Result<Term<M::Value>, LayoutError> {
        let mut found = Vec::new();
        parts(&self.layout().shape(), &self.layout().stride(), coord, math, &mut found)?;
        let swizzle = self.swizzle();
        if swizzle.bits() > 0 && self.offset() % swizzle.period() == 0 && swizzle.is_apart(&found) {
            return swizzle.apply_apart(found, math)?.add(Term::Known(self.offset()), math);
        }
        let index = total(found, math)?.add(Term::Known(self.offset()), math)?;
        Ok(swizzle.apply_with(index, math))
    }
}
