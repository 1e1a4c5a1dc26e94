//! Short vectors: what a thread loads, stores and feeds to matrix instructions at once.

use std::marker::PhantomData;
use std::ops;
use std::panic::Location;

use super::arith::{self, Binary, Cmp, Rounding};
use super::math::Signed;
use super::{Bool, CastTarget, Float, Int, Num, Scalar};
use crate::rt::{Carried, Lit, Poison, State, Visitor};
use crate::trace::{self, Attr, IrType, Loc, RawValue};
use crate::{Diagnostic, ScalarType};

/// `N` elements of type `T`, 1 to 16, held by one thread.
///
/// Operators work element by element; an operand that is a scalar is broadcast.
#[must_use = "a kernel value that is never used computes nothing"]
#[derive(Clone, Copy, Debug)]
pub struct Vector<T: Scalar, const N: usize> {
    raw: RawValue,
    element: PhantomData<T>,
}

impl<T: Scalar, const N: usize> State for Vector<T, N> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.raw);
    }
}
impl<T: Scalar, const N: usize> Carried for Vector<T, N> {}
impl<T: Scalar, const N: usize> Poison for Vector<T, N> {
    fn poison() -> Self {
        Self::from_raw(crate::rt::poison_value(Self::TYPE))
    }
}

impl<T: Scalar, const N: usize> Vector<T, N> {
    /// The type as the trace has it.
    pub(crate) const TYPE: IrType = {
        assert!(N >= 1 && N <= 16, "a `Vector` has 1 to 16 elements");
        IrType::Vector(T::TYPE, N)
    };

    pub(crate) fn from_raw(raw: RawValue) -> Self {
        Self { raw, element: PhantomData }
    }

    pub(crate) fn raw(self) -> RawValue {
        self.raw
    }

    pub(crate) fn from_raw_elements(elements: &[RawValue], loc: Loc) -> Self {
        Self::from_raw(trace::emit1("vector.from_elements", elements, Self::TYPE, &[], loc))
    }

    pub(crate) fn element(self, index: usize, loc: Loc) -> RawValue {
        trace::emit1("vector.extract", &[self.raw], IrType::Scalar(T::TYPE), &[position(index)], loc)
    }

    pub(crate) fn elements(self, loc: Loc) -> [RawValue; N] {
        std::array::from_fn(|index| self.element(index, loc))
    }

    /// Every element is `value`.
    #[track_caller]
    pub fn splat(value: T) -> Self {
        Self::broadcast(value, Location::caller())
    }

    fn broadcast(value: T, loc: Loc) -> Self {
        let splat = trace::emit1("vector.broadcast", &[value.raw()], Self::TYPE, &[], loc);
        if let Some(known) = trace::known(value.raw()) {
            trace::with(|t| t.set_known(splat, known));
        }
        Self::from_raw(splat)
    }

    /// Element `index`, a host number: vectors live in registers, which have no run-time index.
    ///
    /// An index that is out of range is a trace error at the caller's line.
    #[track_caller]
    pub fn get(self, index: usize) -> T {
        let loc = Location::caller();
        if in_range::<N>(index, loc) {
            T::from_raw(self.element(index, loc))
        } else {
            T::from_raw(trace::refused(IrType::Scalar(T::TYPE), loc))
        }
    }

    /// The vector with element `index` replaced by `value`. The index is as in [`Vector::get`].
    #[track_caller]
    pub fn with(self, index: usize, value: T) -> Self {
        let loc = Location::caller();
        if !in_range::<N>(index, loc) {
            return Self::from_raw(trace::refused(Self::TYPE, loc));
        }
        let operands = [value.raw(), self.raw];
        Self::from_raw(trace::emit1("vector.insert", &operands, Self::TYPE, &[position(index)], loc))
    }

    /// The elements, as an array that host indices reach into.
    #[track_caller]
    pub fn to_array(self) -> [T; N] {
        self.elements(Location::caller()).map(T::from_raw)
    }

    /// Applies `f` to each element.
    #[track_caller]
    pub fn map<U: Scalar>(self, f: impl FnMut(T) -> U) -> Vector<U, N> {
        let loc = Location::caller();
        let results = self.elements(loc).map(T::from_raw).map(f).map(U::raw);
        Vector::from_raw_elements(&results, loc)
    }

    /// Combines the elements pairwise, as a tree: `op` must be associative.
    #[track_caller]
    pub fn reduce(self, mut op: impl FnMut(T, T) -> T) -> T {
        let mut row: Vec<T> = self.to_array().to_vec();
        while row.len() > 1 {
            row = row
                .chunks(2)
                .filter_map(|pair| match *pair {
                    [a, b] => Some(op(a, b)),
                    [a] => Some(a),
                    _ => None,
                })
                .collect();
        }
        row.first().copied().unwrap_or_else(T::poison)
    }

    /// Converts each element, with the meaning of `.cast` on scalars.
    #[track_caller]
    pub fn cast<U: CastTarget>(self) -> Vector<U, N> {
        let loc = Location::caller();
        let convert = |value| arith::cast(T::TYPE, U::TYPE, value, Rounding::NearestEven, loc);
        let is_fp8 = |ty| matches!(ty, ScalarType::F8E4M3 | ScalarType::F8E5M2);
        if T::TYPE != U::TYPE && (is_fp8(T::TYPE) || is_fp8(U::TYPE)) {
            // The 8-bit conversions are defined on scalars.
            return Vector::from_raw_elements(&self.elements(loc).map(convert), loc);
        }
        Vector::from_raw(convert(self.raw))
    }

    /// The same bits as `M` elements of another type; both must have the same size.
    #[track_caller]
    pub fn bitcast<U: CastTarget, const M: usize>(self) -> Vector<U, M> {
        const { assert!(N * T::BYTES == M * U::BYTES, "`bitcast` needs vectors of equal size") };
        const { assert!(!matches!(T::TYPE, ScalarType::Bool), "conditions have no bits in memory order") };
        let loc = Location::caller();
        let same_mlir = N == M && (T::TYPE == U::TYPE || T::TYPE.is_integer() && U::TYPE.is_integer());
        if same_mlir {
            return Vector::from_raw(self.raw);
        }
        let op = if N == M { "arith.bitcast" } else { "vector.bitcast" };
        Vector::from_raw(trace::emit1(op, &[self.raw], Vector::<U, M>::TYPE, &[], loc))
    }

    fn apply(self, op: Binary, other: Self, loc: Loc) -> Self {
        Self::from_raw(arith::binary(op, T::TYPE, self.raw, other.raw, loc))
    }
}

fn position(index: usize) -> (&'static str, Attr) {
    ("static_position", Attr::Text(format!("array<i64: {index}>")))
}

fn in_range<const N: usize>(index: usize, loc: Loc) -> bool {
    if index >= N {
        trace::error(loc, Diagnostic::error(format!("element {index} of a vector of {N}")).label("no such element"));
    }
    index < N
}

impl<T: Scalar, const N: usize> From<[T; N]> for Vector<T, N> {
    #[track_caller]
    fn from(elements: [T; N]) -> Self {
        Self::from_raw_elements(&elements.map(T::raw), Location::caller())
    }
}

/// The right side of an operation on a `Vector<T, N>`: such a vector, or a scalar for every element.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a vector of {N} `{T}`",
    label = "expected a vector of the same type, or one `{T}` for every element"
)]
pub trait VectorOperand<T: Scalar, const N: usize> {
    #[doc(hidden)]
    #[track_caller]
    fn vector(self, loc: Loc) -> Vector<T, N>;
}
impl<T: Scalar, const N: usize> VectorOperand<T, N> for Vector<T, N> {
    fn vector(self, _: Loc) -> Vector<T, N> {
        self
    }
}
impl<T: Scalar, const N: usize> VectorOperand<T, N> for T {
    fn vector(self, loc: Loc) -> Vector<T, N> {
        Vector::broadcast(self, loc)
    }
}

macro_rules! binary_methods {
    ($bound:ident: $($(#[$doc:meta])* $method:ident $op:ident;)*) => {
        impl<T: $bound, const N: usize> Vector<T, N> { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(self, other: impl VectorOperand<T, N>) -> Self {
                let loc = Location::caller();
                self.apply(Binary::$op, other.vector(loc), loc)
            }
        )* }
    };
}
binary_methods! { Num:
    /// The larger of each pair; for floats NaN if either is NaN.
    max Max;
    /// The smaller of each pair; for floats NaN if either is NaN.
    min Min;
}
binary_methods! { Float:
    /// The larger of each pair; the other one where one is NaN.
    maxnum MaxNum;
    /// The smaller of each pair; the other one where one is NaN.
    minnum MinNum;
}

macro_rules! comparison_methods {
    ($($(#[$doc:meta])* $method:ident $op:ident;)*) => {
        impl<T: Num, const N: usize> Vector<T, N> { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $method(self, other: impl VectorOperand<T, N>) -> Vector<Bool, N> {
                let loc = Location::caller();
                let other = other.vector(loc);
                Vector::from_raw(arith::compare(Cmp::$op, T::TYPE, self.raw, other.raw, loc))
            }
        )* }
    };
}
comparison_methods! {
    /// Where the elements are equal.
    eq Eq;
    /// Where the elements differ.
    ne Ne;
    /// Where the element is smaller.
    lt Lt;
    /// Where the element is smaller or equal.
    le Le;
    /// Where the element is larger.
    gt Gt;
    /// Where the element is larger or equal.
    ge Ge;
}

impl<const N: usize> Vector<Bool, N> {
    /// Element by element `a` where the condition holds, else `b`.
    #[track_caller]
    pub fn select<T: Scalar>(self, a: impl VectorOperand<T, N>, b: impl VectorOperand<T, N>) -> Vector<T, N> {
        let loc = Location::caller();
        let (a, b) = (a.vector(loc), b.vector(loc));
        Vector::from_raw(trace::emit1("arith.select", &[self.raw, a.raw, b.raw], Vector::<T, N>::TYPE, &[], loc))
    }

    /// Whether any element holds.
    #[track_caller]
    pub fn any(self) -> Bool {
        self.reduce(|a, b| a | b)
    }

    /// Whether all elements hold.
    #[track_caller]
    pub fn all(self) -> Bool {
        self.reduce(|a, b| a & b)
    }
}

impl<T: Float, const N: usize> Vector<T, N> {
    /// `self * b + c` with one rounding for `F32`; for 16-bit floats each element is computed in `f32`.
    #[track_caller]
    pub fn fma(self, b: impl VectorOperand<T, N>, c: impl VectorOperand<T, N>) -> Self {
        let loc = Location::caller();
        let operands = [self.raw, b.vector(loc).raw, c.vector(loc).raw];
        let result = super::math::through_f32("math.fma", T::TYPE, &operands, &[], loc);
        Self::from_raw(result)
    }
}

impl<T: Signed, const N: usize> Vector<T, N> {
    /// The absolute value of each element; the smallest integer stays as it is.
    #[track_caller]
    pub fn abs(self) -> Self {
        let op = if T::TYPE.is_float() { "math.absf" } else { "math.absi" };
        Self::from_raw(trace::emit1(op, &[self.raw], Self::TYPE, &[], Location::caller()))
    }
}

impl<T: Signed, const N: usize> ops::Neg for Vector<T, N> {
    type Output = Self;
    #[track_caller]
    fn neg(self) -> Self {
        Self::from_raw(arith::negate(T::TYPE, self.raw, Location::caller()))
    }
}

macro_rules! operators {
    ($bound:ident: $($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => { $(
        impl<T: $bound, O: VectorOperand<T, N>, const N: usize> ops::$trait<O> for Vector<T, N> {
            type Output = Vector<T, N>;
            #[track_caller]
            fn $method(self, rhs: O) -> Vector<T, N> {
                let loc = Location::caller();
                self.apply(Binary::$trait, rhs.vector(loc), loc)
            }
        }
        impl<T: $bound, O: VectorOperand<T, N>, const N: usize> ops::$assign<O> for Vector<T, N> {
            #[track_caller]
            fn $assign_method(&mut self, rhs: O) {
                let loc = Location::caller();
                *self = self.apply(Binary::$trait, rhs.vector(loc), loc);
            }
        }
    )* };
}
operators! { Num:
    Add add AddAssign add_assign;
    Sub sub SubAssign sub_assign;
    Mul mul MulAssign mul_assign;
    Div div DivAssign div_assign;
    Rem rem RemAssign rem_assign;
}
operators! { Int:
    BitAnd bitand BitAndAssign bitand_assign;
    BitOr bitor BitOrAssign bitor_assign;
    BitXor bitxor BitXorAssign bitxor_assign;
    Shl shl ShlAssign shl_assign;
    Shr shr ShrAssign shr_assign;
}

/// Literals on the right, and scalars and literals on the left.
macro_rules! broadcasts {
    ($name:ident $lit:ty: $($trait:ident $method:ident;)*) => {
        impl<const N: usize> VectorOperand<super::$name, N> for $lit {
            #[track_caller]
            fn vector(self, loc: Loc) -> Vector<super::$name, N> {
                Vector::broadcast(super::$name::from(self), loc)
            }
        }
        $(
            impl<const N: usize> ops::$trait<Vector<super::$name, N>> for super::$name {
                type Output = Vector<super::$name, N>;
                #[track_caller]
                fn $method(self, rhs: Vector<super::$name, N>) -> Vector<super::$name, N> {
                    let loc = Location::caller();
                    Vector::broadcast(self, loc).apply(Binary::$trait, rhs, loc)
                }
            }
            impl<const N: usize> ops::$trait<Vector<super::$name, N>> for $lit {
                type Output = Vector<super::$name, N>;
                #[track_caller]
                fn $method(self, rhs: Vector<super::$name, N>) -> Vector<super::$name, N> {
                    let loc = Location::caller();
                    VectorOperand::<super::$name, N>::vector(self, loc).apply(Binary::$trait, rhs, loc)
                }
            }
        )*
    };
}
macro_rules! all_broadcasts {
    ($($name:ident $lit:ty;)*) => { $(
        broadcasts! { $name $lit: Add add; Sub sub; Mul mul; Div div; }
    )* };
}
all_broadcasts! {
    I8 i8; I16 i16; I32 i32; I64 i64; Index usize; U8 u8; U16 u16; U32 u32; U64 u64; F16 f32; BF16 f32; F32 f32; F64 f64;
}

macro_rules! left_literals {
    ($($trait:ident $method:ident;)*) => { $(
        impl<T: Float, const N: usize> ops::$trait<Vector<T, N>> for Lit<f32> {
            type Output = Vector<T, N>;
            #[track_caller]
            fn $method(self, rhs: Vector<T, N>) -> Vector<T, N> {
                let loc = Location::caller();
                Vector::broadcast(T::from(self.0), loc).apply(Binary::$trait, rhs, loc)
            }
        }
    )* };
}
left_literals! { Add add; Sub sub; Mul mul; Div div; }
