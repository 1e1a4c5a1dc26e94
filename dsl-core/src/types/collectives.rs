//! Values exchanged between the lanes of a warp and the threads of a block.

use std::panic::Location;

use super::arith::{self, Binary, Cmp, Rounding};
use super::ids;
use super::{BF16, Bool, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, Index, Scalar, U8, U16, U32, U64, Vector};
use crate::ScalarType;
use crate::trace::{self, Attr, Constant, IrType, Loc, RawValue};

/// A lane number or distance: `I32`, `i32`, `u32` or `usize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a lane number",
    label = "expected `I32`, `i32`, `u32` or `usize`"
)]
pub trait Lane: Copy {
    #[doc(hidden)]
    fn lane(self, loc: Loc) -> RawValue;
}
impl Lane for I32 {
    fn lane(self, _: Loc) -> RawValue {
        self.raw()
    }
}
macro_rules! host_lanes {
    ($($ty:ty)*) => { $(
        impl Lane for $ty {
            fn lane(self, loc: Loc) -> RawValue {
                trace::constant(ScalarType::I32, Constant::Int(self as i64), loc)
            }
        }
    )* };
}
host_lanes! { i32 u32 usize }

/// How lanes are paired.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    pub(super) mode: &'static str,
    pub(super) lane: RawValue,
    pub(super) loc: Loc,
}

impl Exchange {
    /// Exchanges a value of type `i32` or `f32`.
    fn word(self, value: RawValue, ty: IrType) -> RawValue {
        let width = ids::int(ids::target().warp_size(), self.loc);
        let mode = [("mode", Attr::Text(format!("#gpu<shuffle_mode {}>", self.mode)))];
        trace::with(|t| {
            t.emit("gpu.shuffle", &[value, self.lane, width], &[ty, IrType::BOOL], &mode, self.loc).first().copied()
        })
        .flatten()
        .unwrap_or(RawValue::DEAD)
    }

    /// Exchanges a scalar or a vector.
    pub(super) fn value(self, value: RawValue, ty: IrType) -> RawValue {
        match ty {
            IrType::Scalar(ty) => self.scalar(value, ty),
            IrType::Vector(ty, count) => self.vector(value, ty, count),
            _ => value,
        }
    }

    /// Exchanges a vector: small elements travel packed, others one by one.
    fn vector(self, value: RawValue, ty: ScalarType, count: usize) -> RawValue {
        let loc = self.loc;
        let bytes = count * ty.bytes();
        let words = bytes / 4;
        let element = |value, of, index| {
            let position = [("static_position", Attr::Text(format!("array<i64: {index}>")))];
            trace::emit1("vector.extract", &[value], of, &position, loc)
        };
        let shape = IrType::Vector(ty, count);
        if ty.bytes() < 4 && ty != ScalarType::Bool && bytes.is_multiple_of(4) {
            let packed = IrType::Vector(ScalarType::U32, words);
            let value = trace::emit1("vector.bitcast", &[value], packed, &[], loc);
            let word = |index| self.word(element(value, IrType::I32, index), IrType::I32);
            let exchanged: Vec<_> = (0..words).map(word).collect();
            let value = trace::emit1("vector.from_elements", &exchanged, packed, &[], loc);
            return trace::emit1("vector.bitcast", &[value], shape, &[], loc);
        }
        let elements: Vec<_> = (0..count).map(|index| element(value, IrType::Scalar(ty), index)).collect();
        let exchanged: Vec<_> = elements.into_iter().map(|element| self.scalar(element, ty)).collect();
        trace::emit1("vector.from_elements", &exchanged, shape, &[], loc)
    }

    /// Exchanges a scalar of any type.
    fn scalar(self, value: RawValue, ty: ScalarType) -> RawValue {
        if ty == ScalarType::F32 {
            return self.word(value, IrType::F32);
        }
        through_words(value, ty, self.loc, |word| self.word(word, IrType::I32))
    }
}

/// What becomes of a scalar of any type when each of its words does: one `i32`, or the two halves of 64 bits.
pub(super) fn through_words(
    value: RawValue,
    ty: ScalarType,
    loc: Loc,
    word: impl Fn(RawValue) -> RawValue,
) -> RawValue {
    let bits = match ty.bytes() {
        1 => ScalarType::U8,
        2 => ScalarType::U16,
        4 => ScalarType::U32,
        _ => ScalarType::U64,
    };
    let cast = |from, to, value| arith::cast(from, to, value, Rounding::NearestEven, loc);
    let binary = |op, a, b| arith::binary(op, ScalarType::U64, a, b, loc);
    // Into an unsigned integer of the same size, through words, and back.
    let as_bits = match ty {
        ScalarType::Bool => cast(ScalarType::Bool, ScalarType::U8, value),
        _ if ty.is_float() => trace::emit1("arith.bitcast", &[value], IrType::Scalar(bits), &[], loc),
        _ => value,
    };
    let exchanged = if bits == ScalarType::U64 {
        let half = trace::constant(ScalarType::U64, Constant::Int(32), loc);
        let low = word(cast(bits, ScalarType::U32, as_bits));
        let high = binary(Binary::Shr, as_bits, half);
        let high = word(cast(bits, ScalarType::U32, high));
        let high = binary(Binary::Shl, cast(ScalarType::U32, bits, high), half);
        binary(Binary::BitOr, high, cast(ScalarType::U32, bits, low))
    } else {
        cast(ScalarType::U32, bits, word(cast(bits, ScalarType::U32, as_bits)))
    };
    match ty {
        ScalarType::Bool => {
            let zero = trace::constant(ScalarType::U8, Constant::Int(0), loc);
            arith::compare(Cmp::Ne, ScalarType::U8, exchanged, zero, loc)
        }
        _ if ty.is_float() => trace::emit1("arith.bitcast", &[exchanged], IrType::Scalar(ty), &[], loc),
        _ => exchanged,
    }
}

/// What lanes can exchange: scalars, vectors, arrays and tuples of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be exchanged between lanes",
    label = "not a kernel value",
    note = "lanes exchange scalars, vectors, and arrays and tuples of them"
)]
pub trait Shuffle: Copy {
    #[doc(hidden)]
    fn exchange(self, how: Exchange) -> Self;
}

macro_rules! shuffle_scalars {
    ($($ty:ident)*) => { $(
        impl Shuffle for $ty {
            fn exchange(self, how: Exchange) -> Self {
                $ty::from_raw(how.scalar(self.raw(), <$ty as Scalar>::TYPE))
            }
        }
    )* };
}
shuffle_scalars! { Bool I8 I16 I32 I64 Index U8 U16 U32 U64 F16 BF16 F32 F64 F8E4M3 F8E5M2 }

impl<T: Scalar, const N: usize> Shuffle for Vector<T, N> {
    fn exchange(self, how: Exchange) -> Self {
        Vector::from_raw(how.vector(self.raw(), T::TYPE, N))
    }
}

impl<S: Shuffle, const N: usize> Shuffle for [S; N] {
    fn exchange(self, how: Exchange) -> Self {
        self.map(|item| item.exchange(how))
    }
}

macro_rules! shuffle_tuples {
    ($(($($name:ident)*))*) => { $(
        #[allow(non_snake_case, reason = "one name serves as type and as binding")]
        impl<$($name: Shuffle),*> Shuffle for ($($name,)*) {
            fn exchange(self, how: Exchange) -> Self {
                let ($($name,)*) = self;
                ($($name.exchange(how),)*)
            }
        }
    )* };
}
shuffle_tuples! { (A) (A B) (A B C) (A B C D) }

fn shuffle<V: Shuffle>(value: V, mode: &'static str, lane: impl Lane, loc: Loc) -> V {
    value.exchange(Exchange { mode, lane: lane.lane(loc), loc })
}

/// The value of the lane whose number differs from this one's in the bits of `mask`.
///
/// All lanes of the warp must take part in a shuffle, and one without a source lane gets a value that
/// must not be relied on.
#[track_caller]
pub fn shfl_xor<V: Shuffle>(value: V, mask: impl Lane) -> V {
    shuffle(value, "xor", mask, Location::caller())
}

/// The value of the lane `distance` below.
#[track_caller]
pub fn shfl_up<V: Shuffle>(value: V, distance: impl Lane) -> V {
    shuffle(value, "up", distance, Location::caller())
}

/// The value of the lane `distance` above.
#[track_caller]
pub fn shfl_down<V: Shuffle>(value: V, distance: impl Lane) -> V {
    shuffle(value, "down", distance, Location::caller())
}

/// The value of a lane given by its number.
#[track_caller]
pub fn shfl_idx<V: Shuffle>(value: V, lane: impl Lane) -> V {
    shuffle(value, "idx", lane, Location::caller())
}

/// The value of lane 0, in every lane.
#[track_caller]
pub fn broadcast_first<V: Shuffle>(value: V) -> V {
    shuffle(value, "idx", 0, Location::caller())
}

fn vote(condition: RawValue, loc: Loc) -> RawValue {
    trace::emit1("lw.ballot", &[condition], IrType::I64, &[], loc)
}

/// One bit for each lane of the warp: its condition. Lanes that are not here give 0.
#[track_caller]
pub fn ballot(condition: Bool) -> U64 {
    U64::from_raw(vote(condition.raw(), Location::caller()))
}

fn no_vote(condition: RawValue, loc: Loc) -> Bool {
    let zero = trace::constant(ScalarType::U64, Constant::Int(0), loc);
    Bool::from_raw(arith::compare(Cmp::Eq, ScalarType::U64, vote(condition, loc), zero, loc))
}

/// Whether the condition holds in any lane that is here.
#[track_caller]
pub fn any(condition: Bool) -> Bool {
    !no_vote(condition.raw(), Location::caller())
}

/// Whether the condition holds in all lanes that are here.
#[track_caller]
pub fn all(condition: Bool) -> Bool {
    no_vote((!condition).raw(), Location::caller())
}

/// True in one lane of the warp: the first that is here.
#[track_caller]
pub fn elect_one() -> Bool {
    Bool::from_raw(trace::emit1("lw.elect", &[], IrType::BOOL, &[], Location::caller()))
}

/// A run-time `if` without results.
#[track_caller]
pub(crate) fn when(condition: Bool, body: impl FnOnce()) {
    crate::rt::when(condition, Location::caller(), body);
}
