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

fn index<M: IndexMath>(
    shape: &IntTuple,
    stride: &IntTuple,
    coord: &Nested<Term<M::Value>>,
    math: &mut M,
) -> Result<Term<M::Value>, LayoutError> {
    match (shape, stride, coord) {
        (Nested::Leaf(_), Nested::Leaf(stride), Nested::Leaf(part)) => {
            // A part that is 0 or a stride of 0 must not make the other one be computed.
            match (part, stride) {
                (Term::Known(0), _) | (_, Dim::Static(0)) => Ok(Term::Known(0)),
                _ => {
                    let stride = stride.evaluate(math)?;
                    part.clone().mul(stride, math)
                }
            }
        }
        (Nested::Tuple(_), Nested::Tuple(_), Nested::Leaf(number)) => {
            // Adjacent modes that continue each other need no division.
            let flat = Layout::new(shape.clone(), stride.clone())?.coalesce()?;
            let (extents, strides) = (flat.shape(), flat.stride());
            let modes: Vec<_> = extents.leaves().into_iter().zip(strides.leaves()).collect();
            let (mut rest, mut sum) = (number.clone(), Term::Known(0));
            for (position, (extent, stride)) in modes.iter().enumerate() {
                let last = position + 1 == modes.len();
                let extent = extent.evaluate(math)?;
                if **stride != 0 {
                    let part = if last { rest.clone() } else { rest.clone().rem(&extent, math) };
                    let stride = stride.evaluate(math)?;
                    sum = sum.add(part.mul(stride, math)?, math)?;
                }
                if !last {
                    rest = rest.div(&extent, math);
                }
            }
            Ok(sum)
        }
        (Nested::Tuple(shapes), Nested::Tuple(strides), Nested::Tuple(parts)) if shapes.len() == parts.len() => {
            let mut sum = Term::Known(0);
            for ((shape, stride), part) in shapes.iter().zip(strides).zip(parts) {
                let part = index(shape, stride, part, math)?;
                sum = sum.add(part, math)?;
            }
            Ok(sum)
        }
        _ => {
            let pattern: Coord = coord.map(&mut |_| CoordLeaf::All);
            Err(LayoutError::profile("coordinate", &pattern, shape))
        }
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
        index(&self.shape(), &self.stride(), coord, math)
    }
}

impl ComposedLayout {
    /// See [`Layout::index_with`].
    pub fn index_with<M: IndexMath>(
        &self,
        coord: &Nested<Term<M::Value>>,
        math: &mut M,
    ) -> Result<Term<M::Value>, LayoutError> {
        let index = self.layout().index_with(coord, math)?.add(Term::Known(self.offset()), math)?;
        Ok(self.swizzle().apply_with(index, math))
    }
}
