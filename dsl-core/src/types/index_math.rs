//! Indices of layouts at run time.

use std::panic::Location;

use super::arith::{self, Binary};
use super::{I32, I64, Int};
use crate::ScalarType;
use crate::layout::{IndexMath, LayoutError, Nested, Term};
use crate::trace::{self, Constant, IrType, Loc, Operand, RawValue};

/// An integer type that indices are computed in.
#[diagnostic::on_unimplemented(
    message = "indices of layouts are `I32` or `I64`, not `{Self}`",
    note = "`I64` for global memory, whose offsets pass 32 bits; `I32` for shared memory"
)]
pub trait IndexInt: Int {
    #[doc(hidden)]
    const UNSIGNED: ScalarType;
}
impl IndexInt for I32 {
    const UNSIGNED: ScalarType = ScalarType::U32;
}
impl IndexInt for I64 {
    const UNSIGNED: ScalarType = ScalarType::U64;
}

/// The arithmetic of kernel values for [`crate::layout::Layout::index_with`], with the values of the layout's symbols.
///
/// Coordinates and extents must not be negative; then division needs no sign. What is known at trace time is folded,
/// so a static layout at a static coordinate emits nothing.
///
/// ```
/// use lacewing_core::layout::{Layout, Nested, Term};
/// use lacewing_core::prelude::*;
/// use lacewing_core::types::{KernelMath, offset_of};
///
/// /// Element `(row, column)` of rows that are `?0` elements apart.
/// #[device]
/// fn offset(row: I64, column: I64, pitch: I64) -> I64 {
///     let rows: Layout = "(?1,64):(?0,1)".parse().in_kernel();
///     offset_of(&rows, [row, column], [pitch])
/// }
/// ```
#[derive(Clone, Debug)]
pub struct KernelMath<I: IndexInt> {
    symbols: Vec<I>,
    loc: Loc,
}

impl<I: IndexInt> KernelMath<I> {
    /// Arithmetic in which symbol `?n` is `symbols[n]`.
    #[track_caller]
    pub fn new(symbols: impl Into<Vec<I>>) -> Self {
        Self::at(symbols, Location::caller())
    }

    pub(crate) fn at(symbols: impl Into<Vec<I>>, loc: Loc) -> Self {
        Self { symbols: symbols.into(), loc }
    }

    fn int(&self, value: i64) -> RawValue {
        trace::constant(I::TYPE, Constant::Int(value), self.loc)
    }

    fn known(value: i64) -> Operand {
        Operand::Known(I::TYPE, value)
    }

    fn signed(&self, op: Binary, a: I, b: I) -> I {
        I::from_raw(arith::once(op, I::TYPE, a.raw(), b.raw(), self.loc))
    }

    fn unsigned(&self, op: Binary, a: I, b: impl Into<Operand>) -> I {
        I::from_raw(arith::once(op, I::UNSIGNED, a.raw(), b, self.loc))
    }

    /// A quotient or remainder: where it is written, since a divisor of run time may be 0 elsewhere.
    fn divided(&self, op: Binary, a: I, b: I) -> I {
        match trace::known(b.raw()) {
            Some(1..) => self.unsigned(op, a, b.raw()),
            _ => I::from_raw(arith::binary(op, I::UNSIGNED, a.raw(), b.raw(), self.loc)),
        }
    }
}

impl<I: IndexInt> IndexMath for KernelMath<I> {
    type Value = I;

    fn constant(&mut self, value: i64) -> I {
        I::from_raw(self.int(value))
    }

    fn symbol(&mut self, number: u32) -> Result<I, LayoutError> {
        let found = self.symbols.get(number as usize).copied();
        found.ok_or_else(|| LayoutError::Dynamic { operation: "an index", value: format!("?{number}") })
    }

    fn add(&mut self, a: I, b: I) -> I {
        self.signed(Binary::Add, a, b)
    }

    fn mul(&mut self, a: I, b: I) -> I {
        self.signed(Binary::Mul, a, b)
    }

    fn div(&mut self, a: I, b: I) -> I {
        self.divided(Binary::Div, a, b)
    }

    fn rem(&mut self, a: I, b: I) -> I {
        self.divided(Binary::Rem, a, b)
    }

    fn and(&mut self, a: I, mask: i64) -> I {
        self.unsigned(Binary::BitAnd, a, Self::known(mask))
    }

    fn xor(&mut self, a: I, b: I) -> I {
        self.unsigned(Binary::BitXor, a, b.raw())
    }

    fn shift(&mut self, a: I, distance: i32) -> I {
        let op = if distance < 0 { Binary::Shr } else { Binary::Shl };
        self.unsigned(op, a, Self::known(distance.unsigned_abs().into()))
    }
}

/// The index of a coordinate of kernel values in a layout, whose symbols have these values: `crd2idx` at run time.
///
/// The coordinate has one value for each mode. What the layout does not define is refused here.
#[track_caller]
pub fn offset_of<I: IndexInt>(
    layout: &crate::layout::Layout,
    coordinate: impl IntoIterator<Item = I>,
    symbols: impl Into<Vec<I>>,
) -> I {
    let loc = Location::caller();
    let mut math = KernelMath::at(symbols, loc);
    let part = |value: I| match trace::known(value.raw()) {
        Some(known) => Nested::Leaf(Term::Known(known)),
        None => Nested::Leaf(Term::Value(value)),
    };
    let coordinate = Nested::Tuple(coordinate.into_iter().map(part).collect());
    match layout.index_with(&coordinate, &mut math) {
        Ok(index) => index.materialize(&mut math),
        Err(error) => {
            trace::error(loc, crate::Diagnostic::error(error.to_string()).label("this index is not defined"));
            I::from_raw(trace::refused(IrType::Scalar(I::TYPE), loc))
        }
    }
}
