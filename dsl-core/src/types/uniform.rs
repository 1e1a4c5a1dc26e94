//! Values that the lanes of a warp have alike.

use std::ops::{self, Deref};
use std::panic::Location;

use super::collectives::through_words;
use super::place::{Coord, Coordinate, Indices};
use super::{
    BF16, Bool, CastTarget, Cmp, F8E4M3, F8E5M2, F16, F32, F64, I8, I16, I32, I64, Index, Lane, PrintArgument,
    Printable, Scalar, ScalarExt, U8, U16, U32, U64,
};
use crate::ScalarType;
use crate::rt::{Carried, Compare, Equal, Poison, State, Visitor};
use crate::trace::{self, Agreement, IrType, Loc, RawValue};

/// A scalar that all lanes of the warp (wave) that are at this point have alike.
///
/// It is made from what is alike by its nature: host values (`Uniform::<I32>::from(3)`), kernel parameters of this type,
/// loops over uniform bounds, what [`super::cluster_rank`], roles, schedules and cursors give; and from any other value by
/// [`uniform`]. Arithmetic and comparisons of uniform values and host numbers are uniform; with a plain value the result
/// is plain. It becomes a plain value by `*x`, `x.into()` or a method of the plain type; the way back is [`uniform`] alone.
///
/// A branch or loop whose condition is a `Uniform<Bool>` is taken by all lanes or by none. A uniform variable can change
/// under such a condition only (or in a branch that one lane takes: `if elect_one()`): elsewhere lanes would leave with
/// different values, and the change is a trace error.
///
/// What it buys: stages, addresses, descriptors and trip counts computed from it stay in uniform registers (NVIDIA) or
/// SGPRs (AMD), and calls that a whole warp must make are known to be made by one.
#[must_use = "a kernel value that is never used computes nothing"]
#[derive(Clone, Copy, Debug)]
pub struct Uniform<T: Scalar>(T);

/// What [`uniform`] takes: a scalar, or a value that is uniform already.
#[diagnostic::on_unimplemented(
    message = "`uniform` takes a scalar of the kernel language, found `{Self}`",
    label = "not a kernel scalar",
    note = "of a vector or a struct, say it of each part"
)]
pub trait UniformSource: Copy {
    /// Its plain type.
    type Plain: Scalar;
    #[doc(hidden)]
    fn plain(self) -> Self::Plain;
}
impl<T: Scalar> UniformSource for T {
    type Plain = T;
    fn plain(self) -> T {
        self
    }
}
impl<T: Scalar> UniformSource for Uniform<T> {
    type Plain = T;
    fn plain(self) -> T {
        self.0
    }
}

/// The value, which the lanes of the warp have alike, as a value that the compiler knows to be so.
///
/// It is an assertion: the whole warp must be here, and all its lanes must have one value. The emulator checks both and
/// reports the line, the lane and two values. A GPU takes lane 0's (the first active one's on AMD). To take lane 0's value
/// where lanes differ, say so: `uniform(broadcast_first(x))`.
///
/// It costs nothing where the trace knows already: for constants, launch scalars, block indices, what is computed from
/// them, and in a branch that one lane takes.
#[track_caller]
pub fn uniform<S: UniformSource>(x: S) -> Uniform<S::Plain> {
    Uniform(Scalar::from_raw(agreed(S::Plain::TYPE, x.plain().raw(), Location::caller())))
}

/// [`uniform`] of a traced value.
pub(super) fn agreed(ty: ScalarType, value: RawValue, loc: Loc) -> RawValue {
    if let Some(value) = trace::with(|t| t.evident(value, loc)).unwrap_or(Some(value)) {
        return value;
    }
    through_words(value, ty, loc, |word| trace::emit1("lw.uniform", &[word], IrType::I32, &[], loc))
}

impl<T: Scalar> Uniform<T> {
    /// Takes the caller's word that lanes have the value alike.
    pub(crate) fn assume(value: T) -> Self {
        trace::set_agreement(value.raw(), Agreement::EVIDENT);
        Uniform(value)
    }

    /// The value as one that need not be alike.
    pub fn get(self) -> T {
        self.0
    }

    /// Converts with the meaning of Rust's `as`, as [`ScalarExt::cast`].
    #[track_caller]
    pub fn cast<U: CastTarget>(self) -> Uniform<U> {
        let value = self.0.cast::<U>();
        // Conversions of 8-bit floats are operations that the trace knows nothing of.
        let _ = trace::with(|t| {
            let known = t.agreement(self.0.raw());
            if known.has(Agreement::UNIFORM) {
                t.set_agreement(value.raw(), known);
            }
        });
        Uniform(value)
    }
}

impl<T: Scalar> Deref for Uniform<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Scalar> State for Uniform<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        let mut raw = self.0.raw();
        visitor.uniform(&mut raw);
        self.0 = T::from_raw(raw);
    }
}
impl<T: Scalar> Carried for Uniform<T> {}
impl<T: Scalar> Poison for Uniform<T> {
    fn poison() -> Self {
        Uniform(T::poison())
    }
}

impl<T: Scalar + Printable> Printable for Uniform<T> {
    fn argument(&self) -> PrintArgument {
        self.0.argument()
    }
}

macro_rules! indices {
    ($($ty:ident)*) => { $(
        impl Coordinate for Uniform<$ty> {
            fn coordinate(self, loc: Loc) -> Coord {
                self.0.coordinate(loc)
            }
        }
        impl Indices<1> for Uniform<$ty> {
            fn coordinates(self, loc: Loc) -> [Coord; 1] {
                [self.coordinate(loc)]
            }
        }
    )* };
}
indices! { I32 I64 Index }

impl Lane for Uniform<I32> {
    fn lane(self, loc: Loc) -> RawValue {
        self.0.lane(loc)
    }
}

/// `a op b`: uniform for two uniform values and for host numbers, plain for a plain value.
macro_rules! operators {
    ($name:ident, $host:ty: $($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => { $(
        operators! { $trait $method: Uniform<$name>, Uniform<$name> => Uniform<$name>, |a, b| Uniform(a.0.$method(b.0)) }
        operators! { $trait $method: Uniform<$name>, $host => Uniform<$name>, |a, b| Uniform(a.0.$method(b)) }
        operators! { $trait $method: $host, Uniform<$name> => Uniform<$name>, |a, b| Uniform(a.$method(b.0)) }
        operators! { $trait $method: Uniform<$name>, $name => $name, |a, b| a.0.$method(b) }
        operators! { $trait $method: $name, Uniform<$name> => $name, |a, b| a.$method(b.0) }
        operators! { $trait $method $assign $assign_method: Uniform<$name>, Uniform<$name> }
        operators! { $trait $method $assign $assign_method: Uniform<$name>, $host }
        operators! { $trait $method $assign $assign_method: $name, Uniform<$name> }
    )* };
    ($trait:ident $method:ident: $left:ty, $right:ty => $out:ty, |$a:ident, $b:ident| $result:expr) => {
        impl ops::$trait<$right> for $left {
            type Output = $out;
            #[track_caller]
            fn $method(self, rhs: $right) -> $out {
                let ($a, $b) = (self, rhs);
                $result
            }
        }
    };
    ($trait:ident $method:ident $assign:ident $assign_method:ident: $left:ty, $right:ty) => {
        impl ops::$assign<$right> for $left {
            #[track_caller]
            fn $assign_method(&mut self, rhs: $right) {
                *self = ops::$trait::$method(*self, rhs);
            }
        }
    };
}

/// `a cmp b`, as [`operators`].
macro_rules! comparisons {
    ($name:ident, $host:ty: $($trait:ident)*) => { $(
        comparisons! { $trait: Uniform<$name>, Uniform<$name> => Uniform<Bool>, |a, b, op| Uniform(Apply::apply(&a.0, &b.0, op)) }
        comparisons! { $trait: Uniform<$name>, $host => Uniform<Bool>, |a, b, op| Uniform(Apply::apply(&a.0, b, op)) }
        comparisons! { $trait: $host, Uniform<$name> => Uniform<Bool>, |a, b, op| Uniform(Apply::apply(a, &b.0, op)) }
        comparisons! { $trait: Uniform<$name>, $name => Bool, |a, b, op| Apply::apply(&a.0, b, op) }
        comparisons! { $trait: $name, Uniform<$name> => Bool, |a, b, op| Apply::apply(a, &b.0, op) }
    )* };
    ($trait:ident: $left:ty, $right:ty => $out:ty, |$a:ident, $b:ident, $op:ident| $result:expr) => {
        impl $trait<$right, $out> for $left {
            #[track_caller]
            fn apply(&self, rhs: &$right, $op: Cmp) -> $out {
                use $trait as Apply;
                let ($a, $b) = (self, rhs);
                $result
            }
        }
    };
}

/// Conversions from the host's value, and to the plain one.
macro_rules! conversions {
    ($($name:ident $host:ty;)*) => { $(
        impl From<$host> for Uniform<$name> {
            #[track_caller]
            fn from(value: $host) -> Self {
                Uniform($name::from(value))
            }
        }
        impl From<Uniform<$name>> for $name {
            fn from(value: Uniform<$name>) -> Self {
                value.0
            }
        }
    )* };
}
conversions! { Bool bool; I8 i8; I16 i16; I32 i32; I64 i64; U8 u8; U16 u16; U32 u32; U64 u64; Index usize; F32 f32; F64 f64; }

/// Conversions to the plain value, of types whose host values are another crate's.
macro_rules! plain {
    ($($name:ident)*) => { $(
        impl From<Uniform<$name>> for $name {
            fn from(value: Uniform<$name>) -> Self {
                value.0
            }
        }
    )* };
}
plain! { F16 BF16 F8E4M3 F8E5M2 }

macro_rules! integers {
    ($($name:ident $host:ty;)*) => { $(
        operators! { $name, $host:
            Add add AddAssign add_assign;
            Sub sub SubAssign sub_assign;
            Mul mul MulAssign mul_assign;
            Div div DivAssign div_assign;
            Rem rem RemAssign rem_assign;
            BitAnd bitand BitAndAssign bitand_assign;
            BitOr bitor BitOrAssign bitor_assign;
            BitXor bitxor BitXorAssign bitxor_assign;
            Shl shl ShlAssign shl_assign;
            Shr shr ShrAssign shr_assign;
        }
        comparisons! { $name, $host: Compare Equal }
        impl Uniform<$name> {
            /// The larger of the two.
            #[track_caller]
            pub fn max(self, other: impl Into<Uniform<$name>>) -> Self {
                Uniform(self.0.max(other.into().0))
            }

            /// The smaller of the two.
            #[track_caller]
            pub fn min(self, other: impl Into<Uniform<$name>>) -> Self {
                Uniform(self.0.min(other.into().0))
            }
        }
    )* };
}
integers! { I32 i32; I64 i64; U32 u32; U64 u64; Index usize; }

macro_rules! negation {
    ($($name:ident)*) => { $(
        impl ops::Neg for Uniform<$name> {
            type Output = Self;
            #[track_caller]
            fn neg(self) -> Self {
                Uniform(-self.0)
            }
        }
    )* };
}
negation! { I32 I64 Index }

macro_rules! logic {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident;)*) => { $(
        operators! { $trait $method: Uniform<Bool>, Uniform<Bool> => Uniform<Bool>, |a, b| Uniform(a.0.$method(b.0)) }
        operators! { $trait $method: Uniform<Bool>, Bool => Bool, |a, b| a.0.$method(b) }
        operators! { $trait $method: Bool, Uniform<Bool> => Bool, |a, b| a.$method(b.0) }
        operators! { $trait $method $assign $assign_method: Uniform<Bool>, Uniform<Bool> }
        operators! { $trait $method $assign $assign_method: Bool, Uniform<Bool> }
    )* };
}
logic! {
    BitAnd bitand BitAndAssign bitand_assign;
    BitOr bitor BitOrAssign bitor_assign;
    BitXor bitxor BitXorAssign bitxor_assign;
}
comparisons! { Equal: Uniform<Bool>, Uniform<Bool> => Uniform<Bool>, |a, b, op| Uniform(Apply::apply(&a.0, &b.0, op)) }
comparisons! { Equal: Uniform<Bool>, bool => Uniform<Bool>, |a, b, op| Uniform(Apply::apply(&a.0, b, op)) }

impl ops::Not for Uniform<Bool> {
    type Output = Self;
    #[track_caller]
    fn not(self) -> Self {
        Uniform(!self.0)
    }
}

impl Uniform<Bool> {
    /// Both values are computed; the result is `a` where the condition holds, else `b`. Of uniform values, it is uniform.
    #[track_caller]
    pub fn select<V: Carried + Copy>(self, a: V, b: V) -> V {
        crate::rt::select(self.0, a, b, Location::caller())
    }
}
