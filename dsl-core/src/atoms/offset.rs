//! Offsets of which a part is known at trace time, and what is known of the bits of the rest.
//!
//! A thread's offset into a tile is a sum of *digits* of its number, each times a stride, and a constant for each
//! value. The digits are computed once; the constants end up in the immediate offsets of loads and stores. Under a
//! swizzle that needs care, since the swizzle of a sum is no sum: see [`Offset::swizzled`].

use crate::ScalarType;
use crate::layout::{Layout, LayoutError, Swizzle};
use crate::trace::{self, Constant, Loc, Operand, RawValue};
use crate::types::arith::{self, Binary};

/// A constant in the open trace.
pub(super) fn int(value: i64, loc: Loc) -> RawValue {
    trace::constant(ScalarType::I32, Constant::Int(value), loc)
}

fn known(value: i64) -> Operand {
    Operand::Known(ScalarType::I32, value)
}

/// `a op b` on values that are not negative.
fn unsigned(op: Binary, a: RawValue, b: impl Into<Operand>, loc: Loc) -> RawValue {
    arith::once(op, ScalarType::U32, a, b, loc)
}

fn signed(op: Binary, a: RawValue, b: impl Into<Operand>, loc: Loc) -> RawValue {
    arith::once(op, ScalarType::I32, a, b, loc)
}

fn log2(value: i64) -> Option<i64> {
    (value > 0 && value.count_ones() == 1).then(|| i64::from(value.trailing_zeros()))
}

/// `value * factor` for a factor of trace time.
pub(super) fn scaled(value: RawValue, factor: i64, loc: Loc) -> RawValue {
    match log2(factor) {
        Some(shift) => signed(Binary::Shl, value, known(shift), loc),
        None => signed(Binary::Mul, value, known(factor), loc),
    }
}

/// `value / divisor` for a value of at least 0.
pub(super) fn quotient(value: RawValue, divisor: i64, loc: Loc) -> RawValue {
    match log2(divisor) {
        Some(shift) => unsigned(Binary::Shr, value, known(shift), loc),
        None => unsigned(Binary::Div, value, known(divisor), loc),
    }
}

/// `value % divisor` for a value of at least 0.
fn remainder(value: RawValue, divisor: i64, loc: Loc) -> RawValue {
    match log2(divisor) {
        Some(_) => unsigned(Binary::BitAnd, value, known(divisor - 1), loc),
        None => unsigned(Binary::Rem, value, known(divisor), loc),
    }
}

/// The digit `number / divisor % extent`, times `stride`; the number is below `divisor * extent` if it is the `last` one.
fn digit(number: RawValue, [divisor, extent, stride]: [i64; 3], last: bool, loc: Loc) -> RawValue {
    if let (Some(from), Some(_), Some(to)) = (log2(divisor), log2(extent), log2(stride)) {
        // A field of bits: cut out where it lies, and moved once.
        let field = match last && (from == 0 || to == 0) {
            true => number,
            false => unsigned(Binary::BitAnd, number, known((extent - 1) << from), loc),
        };
        let op = if to >= from { Binary::Shl } else { Binary::Shr };
        return unsigned(op, field, known((to - from).abs()), loc);
    }
    let digit = quotient(number, divisor, loc);
    let digit = if last { digit } else { remainder(digit, extent, loc) };
    scaled(digit, stride, loc)
}

/// `known` plus a value of run time, none of whose bits outside `bits` is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offset {
    pub known: i64,
    pub value: Option<RawValue>,
    bits: i64,
}

/// The bits that a number from 0 to `largest` may have set, all multiples of `unit`.
fn bits_of(largest: i64, unit: i64) -> i64 {
    let all = if largest <= 0 { 0 } else { (1_i64 << (64 - largest.leading_zeros()).min(62)) - 1 };
    match unit.trailing_zeros() {
        shift if unit > 0 => all & !((1_i64 << shift.min(62)) - 1),
        _ => all,
    }
}

impl Offset {
    pub(super) fn known(known: i64) -> Self {
        Self { known, value: None, bits: 0 }
    }

    /// A value from 0 to `largest` that is a multiple of `unit`.
    pub(super) fn run_time(value: RawValue, largest: i64, unit: i64) -> Self {
        match trace::known(value) {
            Some(known) => Self::known(known),
            None => Self { known: 0, value: Some(value), bits: bits_of(largest, unit) },
        }
    }

    pub(super) fn plus(self, other: Self, loc: Loc) -> Self {
        let known = self.known + other.known;
        match (self.value, other.value) {
            (Some(a), Some(b)) => {
                let sum = signed(Binary::Add, a, b, loc);
                let bits = if self.bits & other.bits == 0 {
                    self.bits | other.bits
                } else {
                    // A carry may reach one bit further; below the lower one nothing is set.
                    let union = self.bits | other.bits;
                    bits_of(self.bits.saturating_add(other.bits), union & union.wrapping_neg())
                };
                Self { known, value: Some(sum), bits }
            }
            (value, None) => Self { known, value, bits: self.bits },
            (None, value) => Self { known, value, bits: other.bits },
        }
    }

    /// The index of `number`, from 0 to the size of the static layout, as the sum of its digits times the strides.
    pub(super) fn of_thread(layout: &Layout, number: RawValue, loc: Loc) -> Result<Self, LayoutError> {
        let flat = layout.coalesce()?;
        let (extents, strides) = (flat.shape(), flat.stride());
        let (mut sum, mut divisor) = (Self::known(0), 1);
        let total = flat.static_size()?;
        for (extent, stride) in extents.leaves().into_iter().zip(strides.leaves()) {
            let (extent, stride) = (extent.get("a thread's offset")?, stride.get("a thread's offset")?);
            if stride != 0 && extent > 1 {
                let value = digit(number, [divisor, extent, stride], divisor * extent == total, loc);
                let part = Self::run_time(value, (extent - 1) * stride, stride);
                sum = sum.plus(part, loc);
            }
            divisor *= extent;
        }
        Ok(sum)
    }

    /// Quotient and remainder by a power of two.
    pub(super) fn split(self, divisor: i64, loc: Loc) -> [Self; 2] {
        let (low, shift) = (divisor - 1, divisor.trailing_zeros());
        let Some(value) = self.value else { return [Self::known(self.known >> shift), Self::known(self.known & low)] };
        let (known, value, bits) = match self.known & self.bits {
            0 => (self.known, value, self.bits),
            _ => (0, self.materialize(loc), i64::MAX >> 2),
        };
        let part = |known, value, bits| Self { known, value: (bits != 0).then_some(value), bits };
        [
            part(known >> shift, quotient(value, divisor, loc), bits >> shift),
            part(known & low, remainder(value, divisor, loc), bits & low),
        ]
    }

    /// No value is larger than this, and none is smaller than the known part.
    pub(super) fn largest(self) -> i64 {
        self.known.saturating_add(self.bits)
    }

    /// The offset as a value.
    pub(super) fn materialize(self, loc: Loc) -> RawValue {
        match self.value {
            None => int(self.known, loc),
            Some(value) => signed(Binary::Add, value, known(self.known), loc),
        }
    }

    /// The swizzled offset, with as much as possible in its known part.
    ///
    /// Where the known part has no bit in common with the value, their sum is their xor, and a swizzle is linear over
    /// xor: `s(a + b) = s(a ^ b) = s(a) ^ s(b)`. Of `s(b)`, what again has no bit in common with `s(a)` is added, which
    /// is an immediate; only the rest is xored. Otherwise the sum is swizzled as a whole.
    pub(super) fn swizzled(self, swizzle: Swizzle, loc: Loc) -> Self {
        let Some(value) = self.value else { return Self::known(swizzle.apply(self.known)) };
        if swizzle.bits() == 0 {
            return self;
        }
        let apply = |value: RawValue| {
            let field = unsigned(Binary::BitAnd, value, known(swizzle.source_mask()), loc);
            let distance = known(swizzle.shift().unsigned_abs().into());
            let op = if swizzle.shift() >= 0 { Binary::Shr } else { Binary::Shl };
            unsigned(Binary::BitXor, value, unsigned(op, field, distance, loc), loc)
        };
        let spread = |bits: i64| {
            let source = bits & swizzle.source_mask();
            let distance = swizzle.shift().unsigned_abs();
            bits | if swizzle.shift() >= 0 { source >> distance } else { source << distance }
        };
        if self.known < 0 || self.bits & self.known != 0 {
            return Self { known: 0, value: Some(apply(self.materialize(loc))), bits: i64::MAX >> 2 };
        }
        let moved = if self.bits & swizzle.source_mask() == 0 { value } else { apply(value) };
        let (constant, bits) = (swizzle.apply(self.known), spread(self.bits));
        let common = constant & bits;
        Self { known: constant - common, value: Some(unsigned(Binary::BitXor, moved, known(common), loc)), bits }
    }
}
