//! Scalars of the kernel language: one Rust type for each element type.

use std::ops;
use std::panic::Location;

use half::{bf16, f16};

use super::arith::{self, Binary, Rounding};
use crate::ScalarType;
use crate::rt::{Carried, Compare, Equal, Poison, State, Visitor};
use crate::trace::{self, Constant, IrType, RawValue};

pub use super::arith::Cmp;

/// A scalar type of the kernel language: the element of a tensor, a vector or a fragment.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a scalar type of the kernel language",
    label = "not a kernel scalar",
    note = "the scalars are `I8` to `I64`, `U8` to `U64`, `Index`, `F16`, `BF16`, `F32`, `F64`, `F8E4M3`, `F8E5M2` and `Bool`"
)]
pub trait Scalar: Carried + Poison + Copy + std::fmt::Debug + 'static {
    /// The host's type with the same bits.
    type Host: Copy + Send + Sync + std::fmt::Debug + PartialEq + 'static;
    /// The type as data.
    const TYPE: ScalarType;
    /// Size in memory, in bytes.
    const BYTES: usize = Self::TYPE.bytes();
    /// Wraps a traced value of this type.
    fn from_raw(raw: RawValue) -> Self;
    /// The traced value.
    fn raw(self) -> RawValue;
    /// A constant.
    #[track_caller]
    fn constant(value: Self::Host) -> Self;
}

/// A scalar with arithmetic.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no arithmetic in the kernel language",
    label = "no arithmetic on `{Self}`",
    note = "8-bit floats and conditions are converted first: `x.cast::<F32>()`"
)]
pub trait Num:
    CastTarget
    + ops::Add<Output = Self>
    + ops::Sub<Output = Self>
    + ops::Mul<Output = Self>
    + ops::Div<Output = Self>
    + ops::Rem<Output = Self>
    + ops::AddAssign
    + ops::SubAssign
    + ops::MulAssign
    + ops::DivAssign
    + ops::RemAssign
    + Compare<Self, Bool>
    + Equal<Self, Bool>
{
}

/// An integer type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer type of the kernel language",
    note = "the integers are `I8`, `I16`, `I32`, `I64`, `U8`, `U16`, `U32`, `U64` and `Index`"
)]
pub trait Int:
    Num
    + ops::BitAnd<Output = Self>
    + ops::BitOr<Output = Self>
    + ops::BitXor<Output = Self>
    + ops::Shl<Output = Self>
    + ops::Shr<Output = Self>
    + ops::Not<Output = Self>
{
}

/// A float type with arithmetic. Literals of generic code are `f32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a float type of the kernel language",
    note = "these are `F16`, `BF16` and `F32`; `F64` has arithmetic and exact functions of its own"
)]
pub trait Float:
    Num
    + ops::Neg<Output = Self>
    + From<f32>
    + ops::Add<f32, Output = Self>
    + ops::Sub<f32, Output = Self>
    + ops::Mul<f32, Output = Self>
    + ops::Div<f32, Output = Self>
    + ops::AddAssign<f32>
    + ops::SubAssign<f32>
    + ops::MulAssign<f32>
    + ops::DivAssign<f32>
    + Compare<f32, Bool>
    + Equal<f32, Bool>
{
}

/// What `.cast::<U>()` can give.
#[diagnostic::on_unimplemented(
    message = "`.cast` cannot give `{Self}`",
    label = "not the target of a conversion",
    note = "to get a condition, compare: `x != 0`"
)]
pub trait CastTarget: Scalar {}

/// Methods that every scalar has.
pub trait ScalarExt: Scalar {
    /// Converts with the meaning of Rust's `as`: to a float, rounds to nearest even; to an 8-bit float,
    /// saturates; from float to integer, truncates and saturates, and NaN gives 0; between integers, wraps.
    #[track_caller]
    fn cast<U: CastTarget>(self) -> U {
        U::from_raw(arith::cast(Self::TYPE, U::TYPE, self.raw(), Rounding::NearestEven, Location::caller()))
    }

    /// As [`ScalarExt::cast`], but a narrower float is rounded toward zero.
    #[track_caller]
    fn cast_rz<U: CastTarget>(self) -> U {
        U::from_raw(arith::cast(Self::TYPE, U::TYPE, self.raw(), Rounding::TowardZero, Location::caller()))
    }

    /// The same bits as another type of the same size.
    #[track_caller]
    fn bitcast<U: CastTarget>(self) -> U {
        const { assert!(Self::BYTES == U::BYTES, "`bitcast` needs types of equal size") };
        if Self::TYPE.is_float() == U::TYPE.is_float()
            && Self::TYPE.is_integer() == U::TYPE.is_integer()
            && Self::TYPE.is_integer()
        {
            return U::from_raw(self.raw());
        }
        U::from_raw(trace::emit1("arith.bitcast", &[self.raw()], IrType::Scalar(U::TYPE), &[], Location::caller()))
    }
}

impl<T: Scalar> ScalarExt for T {}

macro_rules! scalar {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $host:ty, |$v:ident| $constant:expr) => {
        $(#[$doc])*
        #[must_use = "a kernel value that is never used computes nothing"]
        #[derive(Clone, Copy, Debug)]
        pub struct $name(RawValue);

        impl State for $name {
            fn visit(&mut self, visitor: &mut dyn Visitor) {
                visitor.value(&mut self.0);
            }
        }
        impl Carried for $name {}
        impl Poison for $name {
            fn poison() -> Self {
                $name(crate::rt::poison_value(IrType::Scalar(ScalarType::$variant)))
            }
        }
        impl Scalar for $name {
            type Host = $host;
            const TYPE: ScalarType = ScalarType::$variant;
            fn from_raw(raw: RawValue) -> Self {
                $name(raw)
            }
            fn raw(self) -> RawValue {
                self.0
            }
            #[track_caller]
            fn constant($v: $host) -> Self {
                $name(trace::constant(ScalarType::$variant, $constant, Location::caller()))
            }
        }
        impl From<$host> for $name {
            #[track_caller]
            fn from(value: $host) -> Self {
                <$name as Scalar>::constant(value)
            }
        }
    };
}

scalar!(/// A condition, known at run time.
    Bool, Bool, bool, |v| Constant::Int(i64::from(v)));
scalar!(/// A signed integer of 8 bits. Arithmetic wraps.
    I8, I8, i8, |v| Constant::Int(i64::from(v)));
scalar!(/// A signed integer of 16 bits. Arithmetic wraps.
    I16, I16, i16, |v| Constant::Int(i64::from(v)));
scalar!(/// A signed integer of 32 bits. Arithmetic wraps.
    I32, I32, i32, |v| Constant::Int(i64::from(v)));
scalar!(/// A signed integer of 64 bits. Arithmetic wraps.
    I64, I64, i64, |v| Constant::Int(v));
scalar!(/// A position or a length: signed, 64 bits on every target. Arithmetic wraps.
    ///
    /// It is `I64` in IR and in memory (a tensor of it holds `i64`), and a type of its own for two reasons. Its
    /// literals and its argument at launch are `usize`, as lengths and compile-time sizes are in Rust, so that
    /// `i * TILE + 1` needs no conversion. And it is signed, although no position is below 0: differences of
    /// positions are, as in `row - column` of a causal mask, and must compare as what they are.
    ///
    /// As between all types, nothing is converted silently: `x.cast::<Index>()`. A loop over `range` counts in
    /// `Index` where a bound is one. Host values above `i64::MAX` wrap.
    Index, I64, usize, |v| Constant::Int(v as i64));
scalar!(/// An unsigned integer of 8 bits. Arithmetic wraps.
    U8, U8, u8, |v| Constant::Int(i64::from(v)));
scalar!(/// An unsigned integer of 16 bits. Arithmetic wraps.
    U16, U16, u16, |v| Constant::Int(i64::from(v)));
scalar!(/// An unsigned integer of 32 bits. Arithmetic wraps.
    U32, U32, u32, |v| Constant::Int(i64::from(v)));
scalar!(/// An unsigned integer of 64 bits. Arithmetic wraps.
    U64, U64, u64, |v| Constant::Int(v as i64));
scalar!(/// IEEE binary16.
    F16, F16, f16, |v| Constant::Float(v.to_f64()));
scalar!(/// The upper half of binary32 ("brain float").
    BF16, Bf16, bf16, |v| Constant::Float(v.to_f64()));
scalar!(/// IEEE binary32.
    F32, F32, f32, |v| Constant::Float(f64::from(v)));
scalar!(/// IEEE binary64.
    F64, F64, f64, |v| Constant::Float(v));
scalar!(/// OCP E4M3, an 8-bit float without infinities: largest 448. For storage; convert to compute.
    F8E4M3, F8E4M3, float8::F8E4M3, |v| Constant::Float(v.to_f64()));
scalar!(/// OCP E5M2, an 8-bit float: largest 57344. For storage; convert to compute.
    F8E5M2, F8E5M2, float8::F8E5M2, |v| Constant::Float(v.to_f64()));

macro_rules! operators {
    ($name:ident, $lit:ty: $($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => { $(
        impl ops::$trait for $name {
            type Output = $name;
            #[track_caller]
            fn $method(self, rhs: $name) -> $name {
                $name(arith::binary(Binary::$trait, <$name as Scalar>::TYPE, self.0, rhs.0, Location::caller()))
            }
        }
        impl ops::$trait<$lit> for $name {
            type Output = $name;
            #[track_caller]
            fn $method(self, rhs: $lit) -> $name {
                ops::$trait::$method(self, $name::literal(rhs))
            }
        }
        impl ops::$trait<$name> for $lit {
            type Output = $name;
            #[track_caller]
            fn $method(self, rhs: $name) -> $name {
                ops::$trait::$method($name::literal(self), rhs)
            }
        }
        impl ops::$assign for $name {
            #[track_caller]
            fn $assign_method(&mut self, rhs: $name) {
                *self = ops::$trait::$method(*self, rhs);
            }
        }
        impl ops::$assign<$lit> for $name {
            #[track_caller]
            fn $assign_method(&mut self, rhs: $lit) {
                *self = ops::$trait::$method(*self, rhs);
            }
        }
    )* };
}

macro_rules! comparisons {
    ($name:ident, $lit:ty: $($trait:ident)*) => { $(
        impl $trait<$name, Bool> for $name {
            #[track_caller]
            fn apply(&self, rhs: &$name, op: Cmp) -> Bool {
                Bool(arith::compare(op, <$name as Scalar>::TYPE, self.0, rhs.0, Location::caller()))
            }
        }
        impl $trait<$lit, Bool> for $name {
            #[track_caller]
            fn apply(&self, rhs: &$lit, op: Cmp) -> Bool {
                $trait::<$name, Bool>::apply(self, &$name::literal(*rhs), op)
            }
        }
        impl $trait<$name, Bool> for $lit {
            #[track_caller]
            fn apply(&self, rhs: &$name, op: Cmp) -> Bool {
                $trait::<$name, Bool>::apply(&$name::literal(*self), rhs, op)
            }
        }
    )* };
}

macro_rules! number {
    ($name:ident, literal $lit:ty) => {
        impl $name {
            #[track_caller]
            fn literal(value: $lit) -> $name {
                <$name as From<$lit>>::from(value)
            }

            /// The larger of the two; for floats NaN if either is NaN (IEEE 754-2019 `maximum`).
            #[track_caller]
            pub fn max(self, other: impl Into<$name>) -> $name {
                let other = other.into();
                $name(arith::binary(Binary::Max, <$name as Scalar>::TYPE, self.0, other.0, Location::caller()))
            }

            /// The smaller of the two; for floats NaN if either is NaN (IEEE 754-2019 `minimum`).
            #[track_caller]
            pub fn min(self, other: impl Into<$name>) -> $name {
                let other = other.into();
                $name(arith::binary(Binary::Min, <$name as Scalar>::TYPE, self.0, other.0, Location::caller()))
            }
        }
        impl $name {
            /// The value, but no less than `low` and no more than `high`; for floats NaN if any of the three is NaN. With
            /// `low > high`, `high`.
            #[track_caller]
            pub fn clamp(self, low: impl Into<$name>, high: impl Into<$name>) -> $name {
                self.max(low).min(high)
            }
        }
        impl Num for $name {}
        impl CastTarget for $name {}
        operators! { $name, $lit:
            Add add AddAssign add_assign;
            Sub sub SubAssign sub_assign;
            Mul mul MulAssign mul_assign;
            Div div DivAssign div_assign;
            Rem rem RemAssign rem_assign;
        }
        comparisons! { $name, $lit: Compare Equal }
    };
}

macro_rules! integer {
    ($($name:ident $lit:ty;)*) => { $(
        number!($name, literal $lit);
        impl Int for $name {}
        operators! { $name, $lit:
            BitAnd bitand BitAndAssign bitand_assign;
            BitOr bitor BitOrAssign bitor_assign;
            BitXor bitxor BitXorAssign bitxor_assign;
            Shl shl ShlAssign shl_assign;
            Shr shr ShrAssign shr_assign;
        }
        impl ops::Not for $name {
            type Output = $name;
            #[track_caller]
            fn not(self) -> $name {
                let ones = $name(trace::constant(<$name as Scalar>::TYPE, Constant::Int(-1), Location::caller()));
                self ^ ones
            }
        }
    )* };
}
integer! { I8 i8; I16 i16; I32 i32; I64 i64; U8 u8; U16 u16; U32 u32; U64 u64; Index usize; }

macro_rules! negation {
    ($($name:ident)*) => { $(
        impl ops::Neg for $name {
            type Output = $name;
            #[track_caller]
            fn neg(self) -> $name {
                $name(arith::negate(<$name as Scalar>::TYPE, self.0, Location::caller()))
            }
        }
    )* };
}
negation! { I8 I16 I32 I64 Index F16 BF16 F32 F64 }

macro_rules! float {
    ($($name:ident $lit:ty;)*) => { $(
        number!($name, literal $lit);
        impl $name {
            /// The larger of the two; the other one where one is NaN (IEEE 754-2008 `maxNum`).
            #[track_caller]
            pub fn maxnum(self, other: impl Into<$name>) -> $name {
                let other = other.into();
                $name(arith::binary(Binary::MaxNum, <$name as Scalar>::TYPE, self.0, other.0, Location::caller()))
            }

            /// The smaller of the two; the other one where one is NaN (IEEE 754-2008 `minNum`).
            #[track_caller]
            pub fn minnum(self, other: impl Into<$name>) -> $name {
                let other = other.into();
                $name(arith::binary(Binary::MinNum, <$name as Scalar>::TYPE, self.0, other.0, Location::caller()))
            }
        }
    )* };
}
float! { F16 f32; BF16 f32; F32 f32; F64 f64; }
impl Float for F16 {}
impl Float for BF16 {}
impl Float for F32 {}
impl CastTarget for F8E4M3 {}
impl CastTarget for F8E5M2 {}

/// Literals of 16-bit floats are written as `f32` and rounded once.
macro_rules! short_literals {
    ($($name:ident $host:ty;)*) => { $(
        impl From<f32> for $name {
            #[track_caller]
            fn from(value: f32) -> Self {
                <$name as Scalar>::constant(<$host>::from_f32(value))
            }
        }
    )* };
}
short_literals! { F16 f16; BF16 bf16; }

impl Bool {
    /// Both values are computed; the result is `a` where the condition holds, else `b`.
    #[track_caller]
    pub fn select<V: Carried + Copy>(self, a: V, b: V) -> V {
        crate::rt::select(self, a, b, Location::caller())
    }

    #[track_caller]
    fn both(self, rhs: Bool, op: &'static str) -> Bool {
        Bool(trace::emit1(op, &[self.0, rhs.0], IrType::BOOL, &[], Location::caller()))
    }
}

impl ops::Not for Bool {
    type Output = Bool;
    #[track_caller]
    fn not(self) -> Bool {
        Bool(arith::not(self.0, Location::caller()))
    }
}

macro_rules! bool_operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $op:literal;)*) => { $(
        impl ops::$trait for Bool {
            type Output = Bool;
            #[track_caller]
            fn $method(self, rhs: Bool) -> Bool {
                self.both(rhs, $op)
            }
        }
        impl ops::$assign for Bool {
            #[track_caller]
            fn $assign_method(&mut self, rhs: Bool) {
                *self = self.both(rhs, $op);
            }
        }
    )* };
}
bool_operators! {
    BitAnd bitand BitAndAssign bitand_assign "arith.andi";
    BitOr bitor BitOrAssign bitor_assign "arith.ori";
    BitXor bitxor BitXorAssign bitxor_assign "arith.xori";
}

impl Equal<Bool, Bool> for Bool {
    #[track_caller]
    fn apply(&self, rhs: &Bool, op: Cmp) -> Bool {
        Bool(arith::compare(op, ScalarType::Bool, self.0, rhs.0, Location::caller()))
    }
}
impl Equal<bool, Bool> for Bool {
    #[track_caller]
    fn apply(&self, rhs: &bool, op: Cmp) -> Bool {
        Equal::<Bool, Bool>::apply(self, &Bool::from(*rhs), op)
    }
}
