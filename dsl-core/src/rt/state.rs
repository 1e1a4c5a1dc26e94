//! Which variables run-time control flow may change, and how their handles are read and replaced.

use std::marker::PhantomData;

use crate::trace::{self, IrType, Loc, RawValue};
use crate::{Diagnostic, SourceLocation};

/// Walks the parts of a [`State`].
pub trait Visitor {
    /// A kernel value: may be read and replaced.
    fn value(&mut self, value: &mut RawValue);
    /// A kernel value whose type says that the lanes of a warp have it alike.
    fn uniform(&mut self, value: &mut RawValue) {
        self.value(value);
    }
    /// A host value, by a text that changes when it changes.
    fn host(&mut self, fingerprint: String);
}

/// A variable that run-time control flow may touch.
///
/// Kernel values in it are swapped in place at region boundaries; host values must stay as they are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take part in run-time control flow",
    label = "this variable may change inside run-time control flow",
    note = "add `#[derive(Carried)]` to the type, or bind the variable without `mut`"
)]
pub trait State {
    /// Shows every part, always in the same order.
    fn visit(&mut self, visitor: &mut dyn Visitor);
}

/// A [`State`] that holds kernel values: it can be carried through run-time control flow.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel value, so it cannot be carried through run-time control flow",
    label = "not a kernel value",
    note = "carried values are scalars, vectors, fragments, and tuples, arrays and `#[derive(Carried)]` structs of them"
)]
pub trait Carried: State {}

/// A [`Carried`] type that can stand for the result of a path that is not taken.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of run-time control flow that some paths leave early",
    label = "no value for the paths that do not come here",
    note = "derive `Carried` for the type, or compute the value before the early exit"
)]
pub trait Poison: Carried {
    /// A value that is never looked at.
    fn poison() -> Self;
}

/// [`Carried`], with the variable's name for the message.
#[diagnostic::on_unimplemented(
    message = "variable `{Name}` changes inside run-time control flow, but its type `{Self}` is not a kernel type",
    label = "`{Name}` changes here, but this code is traced once and runs many times",
    note = "for a number, use a kernel type (`I32::from(..)`) or make the loop a compile-time loop (`range_constexpr`)",
    note = "for a struct, add `#[derive(Carried)]`"
)]
pub trait CarriedAs<Name>: State {}
#[diagnostic::do_not_recommend]
impl<Name, T: Carried + ?Sized> CarriedAs<Name> for T {}

/// [`State`], with the variable's name for the message.
#[diagnostic::on_unimplemented(
    message = "variable `{Name}` may change here, inside run-time control flow, but its type `{Self}` is not a kernel type",
    label = "this use may change `{Name}`",
    note = "add `#[derive(Carried)]` to the type, or bind the variable without `mut`"
)]
pub trait WatchedAs<Name>: State {}
#[diagnostic::do_not_recommend]
impl<Name, T: State + ?Sized> WatchedAs<Name> for T {}

/// A local that is called inside run-time control flow.
#[diagnostic::on_unimplemented(
    message = "`{Name}` is a closure that changes variables it captured; it cannot be called inside run-time control flow",
    label = "this call changes captured variables",
    note = "pass the variables as `&mut` arguments, or make it a `#[device] fn`"
)]
pub trait CalledAs<Name> {}
#[diagnostic::do_not_recommend]
impl<Name, T: State> CalledAs<Name> for T {}

/// One variable at a region boundary.
pub struct Slot<'a> {
    pub(super) name: &'static str,
    pub(super) state: &'a mut dyn State,
}

/// A variable that the region changes. `Name` carries its name into error messages.
pub fn slot<'a, Name, S: CarriedAs<Name>>(_: PhantomData<Name>, name: &'static str, state: &'a mut S) -> Slot<'a> {
    Slot { name, state }
}

/// A variable that the region may change (a method is called on it, or a macro mentions it).
pub fn watch<'a, Name, S: WatchedAs<Name>>(_: PhantomData<Name>, name: &'static str, state: &'a mut S) -> Slot<'a> {
    Slot { name, state }
}

/// Refuses a closure that changes captured variables.
pub fn called<Name, S: CalledAs<Name>>(_: PhantomData<Name>, _closure: &mut S) {}

/// A variable of the expansion itself: exit flags and return values.
pub fn flag_slot<'a>(name: &'static str, state: &'a mut impl State) -> Slot<'a> {
    Slot { name, state }
}

/// Reborrows a variable that is a `&mut`, and makes rustc suggest `mut` for one that is not.
pub trait SlotRef {
    /// A reborrow.
    fn __lw_ref(&mut self) -> &mut Self {
        self
    }

    /// A reborrow of what turns out to be a `&mut` reference; [`SlotNone`] has the method for all else.
    ///
    /// Rust looks a method up for the receiver as it is first, and finds this one for a `&mut T`, that one
    /// for a `&T`. Only then it borrows the receiver, and finds that one for any other type.
    fn __lw_probe(&mut self) -> &mut Self {
        self
    }
}
impl<T: ?Sized> SlotRef for T {}

/// The other half of [`SlotRef::__lw_probe`].
pub trait SlotNone {
    /// Nothing to be carried.
    fn __lw_probe(&self) -> Unchanged {
        Unchanged
    }
}
impl<T: ?Sized> SlotNone for T {}

/// Stands for a variable through which nothing can be changed.
pub struct Unchanged;
impl State for Unchanged {
    fn visit(&mut self, _: &mut dyn Visitor) {}
}

/// A variable that may be a `&mut` reference, with its name for the message.
#[diagnostic::on_unimplemented(
    message = "variable `{Name}` may change here, inside run-time control flow, but its type `{Self}` is not a kernel type",
    label = "this use may change `{Name}`",
    note = "add `#[derive(Carried)]` to the type that the reference points to"
)]
pub trait ProbedAs<Name>: State {}
#[diagnostic::do_not_recommend]
impl<Name, T: State + ?Sized> ProbedAs<Name> for &mut T {}
impl<Name> ProbedAs<Name> for Unchanged {}

/// A variable that the region may change if it is a `&mut` reference.
pub fn watch_probed<'a, Name, S: ProbedAs<Name>>(
    _: PhantomData<Name>,
    name: &'static str,
    state: &'a mut S,
) -> Slot<'a> {
    Slot { name, state }
}

/// The parts of a state at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Snapshot {
    pub(super) values: Vec<RawValue>,
    /// Which of them are uniform by their type.
    uniform: Vec<usize>,
    host: Vec<String>,
}

impl Snapshot {
    pub(super) fn of(state: &mut (impl State + ?Sized)) -> Self {
        struct Read(Snapshot);
        impl Visitor for Read {
            fn value(&mut self, value: &mut RawValue) {
                self.0.values.push(*value);
            }
            fn uniform(&mut self, value: &mut RawValue) {
                self.0.uniform.push(self.0.values.len());
                self.value(value);
            }
            fn host(&mut self, fingerprint: String) {
                self.0.host.push(fingerprint);
            }
        }
        let mut read = Read(Self::default());
        state.visit(&mut read);
        read.0
    }

    pub(super) fn same_host(&self, other: &Self) -> bool {
        self.host == other.host && self.values.len() == other.values.len()
    }
}

/// Replaces the kernel values of a state, in visiting order.
pub(super) fn write(state: &mut (impl State + ?Sized), values: &[RawValue]) {
    struct Write<'v>(std::slice::Iter<'v, RawValue>);
    impl Visitor for Write<'_> {
        fn value(&mut self, value: &mut RawValue) {
            if let Some(new) = self.0.next() {
                *value = *new;
            }
        }
        fn host(&mut self, _: String) {}
    }
    state.visit(&mut Write(values.iter()));
}

pub(super) fn read_all(slots: &mut [Slot<'_>]) -> Vec<Snapshot> {
    slots.iter_mut().map(|slot| Snapshot::of(slot.state)).collect()
}

/// Writes one flat list of values over all slots.
pub(super) fn write_all(slots: &mut [Slot<'_>], shape: &[Snapshot], values: &[RawValue]) {
    let mut rest = values;
    for (slot, snapshot) in slots.iter_mut().zip(shape) {
        let (mine, others) = rest.split_at(snapshot.values.len().min(rest.len()));
        write(slot.state, mine);
        rest = others;
    }
}

pub(super) fn flatten(snapshots: &[Snapshot]) -> Vec<RawValue> {
    snapshots.iter().flat_map(|snapshot| snapshot.values.iter().copied()).collect()
}

pub(super) fn types(values: &[RawValue]) -> Vec<IrType> {
    values.iter().map(|value| trace::with(|t| t.type_of(*value)).flatten().unwrap_or(IrType::BOOL)).collect()
}

/// The position of each uniform value among all values of some snapshots, and the position of its snapshot.
pub(super) fn uniform_values(snapshots: &[Snapshot]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut first = 0;
    for (number, snapshot) in snapshots.iter().enumerate() {
        found.extend(snapshot.uniform.iter().map(|position| (first + position, number)));
        first += snapshot.values.len();
    }
    found
}

/// Reports host parts that changed between two moments.
pub(super) fn check_host(slots: &[Slot<'_>], before: &[Snapshot], after: &[Snapshot], what: &str, loc: Loc) -> bool {
    let mut same = true;
    for ((slot, before), after) in slots.iter().zip(before).zip(after) {
        if before.same_host(after) {
            continue;
        }
        same = false;
        let change = before
            .host
            .iter()
            .zip(&after.host)
            .find(|(b, a)| b != a)
            .map(|(b, a)| format!("from `{b}` to `{a}`"))
            .unwrap_or_else(|| format!("from {} parts to {}", before.values.len(), after.values.len()));
        trace::with(|t| {
            t.error(
                Diagnostic::error(format!("the host part of `{}` changed inside {what}, {change}", slot.name))
                    .at(SourceLocation::from_caller(loc))
                    .label("this code is traced once, but runs any number of times")
                    .help("keep what changes at run time in kernel types, or make the control flow compile-time"),
            )
        });
    }
    same
}

impl State for RawValue {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(self);
    }
}

macro_rules! host_state {
    ($($ty:ty),* $(,)?) => { $(
        impl State for $ty {
            fn visit(&mut self, visitor: &mut dyn Visitor) {
                visitor.host(format!("{self:?}"));
            }
        }
    )* };
}
host_state!(
    usize,
    u64,
    u32,
    u16,
    u8,
    u128,
    isize,
    i64,
    i32,
    i16,
    i8,
    i128,
    bool,
    char,
    f32,
    f64,
    half::f16,
    half::bf16,
    String,
    &'static str,
    crate::Target,
    crate::ScalarType
);
impl<A: std::fmt::Debug> State for std::ops::Range<A> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.host(format!("{self:?}"));
    }
}

impl State for () {
    fn visit(&mut self, _: &mut dyn Visitor) {}
}
impl Carried for () {}
impl Poison for () {
    fn poison() {}
}

impl<T: State> State for Vec<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.host(format!("length {}", self.len()));
        self.iter_mut().for_each(|item| item.visit(visitor));
    }
}
impl<T: Carried> Carried for Vec<T> {}

impl<T: State> State for Option<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.host(if self.is_some() { "Some" } else { "None" }.to_owned());
        if let Some(value) = self {
            value.visit(visitor);
        }
    }
}
impl<T: Carried> Carried for Option<T> {}

impl<T: State> State for [T] {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.iter_mut().for_each(|item| item.visit(visitor));
    }
}
impl<T: Carried> Carried for [T] {}

impl<T: State, const N: usize> State for [T; N] {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.iter_mut().for_each(|item| item.visit(visitor));
    }
}
impl<T: Carried, const N: usize> Carried for [T; N] {}
impl<T: Poison, const N: usize> Poison for [T; N] {
    fn poison() -> Self {
        std::array::from_fn(|_| T::poison())
    }
}

impl<T: State + ?Sized> State for &mut T {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        (**self).visit(visitor);
    }
}
impl<T: Carried + ?Sized> Carried for &mut T {}

impl<T: State + ?Sized> State for Box<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        (**self).visit(visitor);
    }
}
impl<T: Carried + ?Sized> Carried for Box<T> {}

impl<T> State for PhantomData<T> {
    fn visit(&mut self, _: &mut dyn Visitor) {}
}
impl<T> Carried for PhantomData<T> {}
impl<T> Poison for PhantomData<T> {
    fn poison() -> Self {
        PhantomData
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => { $(
        #[allow(non_snake_case, reason = "one name serves as type and as binding")]
        impl<$($name: State),*> State for ($($name,)*) {
            fn visit(&mut self, visitor: &mut dyn Visitor) {
                let ($($name,)*) = self;
                $($name.visit(visitor);)*
            }
        }
        impl<$($name: Carried),*> Carried for ($($name,)*) {}
        impl<$($name: Poison),*> Poison for ($($name,)*) {
            fn poison() -> Self {
                ($($name::poison(),)*)
            }
        }
    )* };
}
tuples! {
    (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) (A B C D E F G H)
    (A B C D E F G H I) (A B C D E F G H I J) (A B C D E F G H I J K) (A B C D E F G H I J K L)
}
