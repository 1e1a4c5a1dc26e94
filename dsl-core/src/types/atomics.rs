//! Atomic accesses of one element.

use std::panic::Location;

use super::hopper::cluster;
use super::place::{Access, Place, Writable};
use super::{F32, F64, I32, I64, Index, Scalar, U32, U64};
use crate::trace::{self, Attr, IrType, Loc, Space};
use crate::{Diagnostic, ScalarType};

/// How an atomic access orders the thread's other accesses, as in C++ and Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// Only the element itself is ordered.
    Relaxed,
    /// What comes later stays later.
    Acquire,
    /// What came earlier stays earlier.
    Release,
    /// Both.
    AcqRel,
    /// Both, in one order for everyone.
    SeqCst,
}

impl Ordering {
    fn name(self) -> &'static str {
        match self {
            Self::Relaxed => "relaxed",
            Self::Acquire => "acquire",
            Self::Release => "release",
            Self::AcqRel => "acq_rel",
            Self::SeqCst => "seq_cst",
        }
    }
}

/// Who takes part in an ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The threads of the block.
    Block,
    /// The threads of the blocks of the cluster (sm_90 and later).
    Cluster,
    /// The threads of the device.
    Device,
    /// The device, the host and other devices.
    System,
}

impl Scope {
    /// It as an attribute of an op; a scope that the chip has none of is an error.
    pub(super) fn attribute(self, loc: Loc) -> (&'static str, Attr) {
        let target = trace::with(|t| t.target());
        if self == Self::Cluster && target.is_some_and(|target| !cluster::exist_on(target)) {
            let message = format!("{} has no clusters", target.map_or_else(String::new, |target| target.to_string()));
            trace::error(
                loc,
                Diagnostic::error(message).help("use `Scope::Device`, which holds the cluster's blocks too"),
            );
        }
        ("scope", Attr::Str(self.name().to_owned()))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Cluster => "cluster",
            Self::Device => "device",
            Self::System => "system",
        }
    }
}

/// An element that can be accessed atomically.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic accesses",
    label = "no atomics on `{Self}`",
    note = "atomics are on `I32`, `U32`, `I64`, `U64`, `Index`, `F32` and `F64`"
)]
pub trait Atomic: super::Num {
    #[doc(hidden)]
    const KINDS: Kinds;
}

/// What the operations of an element type are called.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    add: &'static str,
    max: &'static str,
    min: &'static str,
}

/// An integer that can be accessed atomically.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no such atomic access: it is for integers",
    note = "atomic subtraction and bit operations are on `I32`, `U32`, `I64`, `U64` and `Index`"
)]
pub trait AtomicInt: Atomic + super::Int {}

macro_rules! atomics {
    ($($kinds:expr => $($ty:ident)*;)*) => { $($( impl Atomic for $ty { const KINDS: Kinds = $kinds; } )*)* };
}
atomics! {
    Kinds { add: "add", max: "max", min: "min" } => I32 I64 Index;
    Kinds { add: "add", max: "umax", min: "umin" } => U32 U64;
    Kinds { add: "fadd", max: "fmax", min: "fmin" } => F32 F64;
}
impl AtomicInt for I32 {}
impl AtomicInt for U32 {}
impl AtomicInt for I64 {}
impl AtomicInt for Index {}
impl AtomicInt for U64 {}

fn ordered(ordering: Ordering, scope: Scope, loc: Loc) -> [(&'static str, Attr); 2] {
    [("ordering", Attr::Str(ordering.name().to_owned())), scope.attribute(loc)]
}

/// Who sees an atomic access that names no scope.
fn default_scope<A: Access>() -> Scope {
    match A::SPACE {
        Space::Global => Scope::Device,
        // In a cluster others may have the element, too.
        Space::Shared if cluster::blocks() == 1 => Scope::Block,
        Space::Shared | Space::Cluster => Scope::Cluster,
    }
}

impl<T: Scalar, A: Access> Place<T, A> {
    fn rmw(self, kind: &str, value: T, ordering: Ordering, scope: Scope, loc: Loc) -> T {
        let [ordering, scope] = ordered(ordering, scope, loc);
        let attributes = [("kind", Attr::Str(kind.to_owned())), ordering, scope];
        let operands = [self.address(), value.raw()];
        T::from_raw(trace::emit1("lw.atomic_rmw", &operands, IrType::Scalar(T::TYPE), &attributes, loc))
    }
}

macro_rules! rmw {
    ($bound:ident: $($(#[$doc:meta])* $name:ident $with:ident $kind:expr;)*) => {
        impl<T: Scalar, A: Access> Place<T, A> { $(
            $(#[$doc])*
            ///
            /// Relaxed, and visible to the device (in shared memory: to the cluster, or to the block where there is none). Gives
            /// the old element.
            #[track_caller]
            pub fn $name(self, value: T) -> T
            where
                T: $bound,
                A: Writable,
            {
                self.rmw($kind, value, Ordering::Relaxed, default_scope::<A>(), Location::caller())
            }

            $(#[$doc])*
            /// Gives the old element.
            #[track_caller]
            pub fn $with(self, value: T, ordering: Ordering, scope: Scope) -> T
            where
                T: $bound,
                A: Writable,
            {
                self.rmw($kind, value, ordering, scope, Location::caller())
            }
        )* }
    };
}
rmw! { Atomic:
    /// Adds at once to the element.
    atomic_add atomic_add_with T::KINDS.add;
    /// Makes the element the larger of itself and the value, at once; a float NaN gives way to the other.
    atomic_max atomic_max_with T::KINDS.max;
    /// Makes the element the smaller of itself and the value, at once; a float NaN gives way to the other.
    atomic_min atomic_min_with T::KINDS.min;
    /// Puts the value in the element's place, at once.
    atomic_exch atomic_exch_with "exch";
}
rmw! { AtomicInt:
    /// Subtracts at once from the element.
    atomic_sub atomic_sub_with "sub";
    /// Clears, at once, the element's bits that the value lacks.
    atomic_and atomic_and_with "and";
    /// Sets, at once, the value's bits in the element.
    atomic_or atomic_or_with "or";
    /// Flips, at once, the value's bits in the element.
    atomic_xor atomic_xor_with "xor";
}

impl<T: Scalar, A: Access> Place<T, A> {
    /// Stores `desired` if the element equals `expected`, at once; gives the old element. Floats are
    /// compared by their bits. Ordering and scope are as in [`Place::atomic_add`].
    #[track_caller]
    pub fn atomic_cas(self, expected: T, desired: T) -> T
    where
        T: Atomic,
        A: Writable,
    {
        self.compare_exchange(expected, desired, Ordering::Relaxed, default_scope::<A>(), Location::caller())
    }

    /// [`Place::atomic_cas`] with an ordering and a scope.
    #[track_caller]
    pub fn atomic_cas_with(self, expected: T, desired: T, ordering: Ordering, scope: Scope) -> T
    where
        T: Atomic,
        A: Writable,
    {
        self.compare_exchange(expected, desired, ordering, scope, Location::caller())
    }

    fn compare_exchange(self, expected: T, desired: T, ordering: Ordering, scope: Scope, loc: Loc) -> T {
        // The instruction compares integers.
        let bits = IrType::Scalar(if T::BYTES == 4 { ScalarType::I32 } else { ScalarType::I64 });
        let float = T::TYPE.is_float();
        let convert = |value, ty| if float { trace::emit1("arith.bitcast", &[value], ty, &[], loc) } else { value };
        let operands = [self.address(), convert(expected.raw(), bits), convert(desired.raw(), bits)];
        let old = trace::emit1("lw.atomic_cas", &operands, bits, &ordered(ordering, scope, loc), loc);
        T::from_raw(convert(old, IrType::Scalar(T::TYPE)))
    }
}
