//! Shared memory (LDS): typed pieces of the block's one allocation.

use std::marker::PhantomData;
use std::panic::Location;

use super::Scalar;
use super::place::{self, Access, Coord, InShared, Indices, Place};
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, IrType, Loc, Operand, RawValue, Space};
use crate::{Diagnostic, ScalarType};

/// Shared memory handed out while a kernel is traced.
#[derive(Clone, Debug, Default)]
pub struct SharedLayout {
    /// Bytes so far.
    pub(crate) bytes: u64,
    /// Largest alignment so far.
    pub(crate) align: u64,
    /// What was handed out, in order.
    pub(crate) members: Vec<SharedMember>,
}

/// One named piece of a block's shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMember {
    /// Type and field, or the call that made it.
    pub name: String,
    /// Bytes from the start of the block's shared memory.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u64,
}

impl SharedLayout {
    /// Places a member at the first aligned offset from `start` on.
    fn place(&mut self, name: &str, bytes: u64, align: u64, start: u64) -> SharedMember {
        let offset = start.next_multiple_of(align);
        let member = SharedMember { name: name.to_owned(), offset, bytes, align };
        self.bytes = self.bytes.max(offset.saturating_add(bytes));
        self.align = self.align.max(align);
        self.members.push(member.clone());
        member
    }

    /// What was handed out, in order; members of a union overlap.
    pub fn members(&self) -> &[SharedMember] {
        &self.members
    }
}

/// Alignment of a member that asks for none: 16 bytes, so that every vector access is possible, and a
/// 128-byte line for members that fill one.
fn default_align(bytes: u64) -> u64 {
    if bytes >= 128 { 128 } else { 16 }
}

/// Hands out the members of one `#[derive(Shared)]` struct.
#[derive(Debug)]
pub struct SharedAlloc {
    loc: Loc,
    /// Where each field so far starts, by type and field; a field can be several members.
    fields: Vec<(String, u64)>,
    /// Where the next field starts, if it shares memory with an earlier one.
    overlap: Option<u64>,
    /// Where the next member starts inside of a field that shares memory with an earlier one.
    running: Option<u64>,
}

impl SharedAlloc {
    pub(super) fn new(loc: Loc) -> Self {
        Self { loc, fields: Vec::new(), overlap: None, running: None }
    }

    /// Makes the next field start where field `name` of this struct starts.
    pub fn overlap_with(&mut self, name: &str) {
        match self.fields.iter().rev().find(|(field, _)| field == name) {
            Some((_, offset)) => self.overlap = Some(*offset),
            None => trace::error(
                self.loc,
                Diagnostic::error(format!("there is no earlier shared member `{name}` to overlap with"))
                    .help("a member can share the memory of one that stands before it in the struct"),
            ),
        }
    }

    /// Lays out a field that is several members, one after the other.
    fn field<R>(&mut self, name: &str, members: impl FnOnce(&mut Self) -> R) -> R {
        let outside = self.running;
        self.running = self.overlap.take().or(outside);
        let first = trace::with(|t| t.shared.members.len()).unwrap_or(0);
        let result = members(self);
        self.running = outside.map(|outside| outside.max(self.running.unwrap_or(0)));
        let offset = trace::with(|t| t.shared.members.get(first).map(|member| member.offset)).flatten();
        self.fields.extend(offset.map(|offset| (name.to_owned(), offset)));
        result
    }

    /// The address of `bytes` bytes under a name.
    pub(super) fn member(&mut self, name: &str, bytes: u64, align: Option<usize>) -> RawValue {
        let loc = self.loc;
        let align = align.map_or_else(|| default_align(bytes), |align| align as u64);
        if !align.is_power_of_two() || align > MAX_ALIGN {
            trace::error(
                loc,
                Diagnostic::error(format!("shared member `{name}` cannot be aligned to {align} bytes"))
                    .help(format!("alignments are powers of two up to {MAX_ALIGN}")),
            );
            return trace::refused(IrType::Pointer(Space::Shared), loc);
        }
        let start = self.overlap.take().or(self.running);
        trace::with(|t| {
            let member = t.shared.place(name, bytes, align, start.unwrap_or(t.shared.bytes));
            self.running = self.running.map(|running| running.max(member.offset.saturating_add(bytes)));
            self.fields.push((name.to_owned(), member.offset));
            let attributes = [
                ("offset", Attr::Int(member.offset as i64)),
                ("bytes", Attr::Int(member.bytes as i64)),
                ("align", Attr::Int(member.align as i64)),
                ("name", Attr::Str(member.name)),
            ];
            t.emit("lw.shared", &[], &[IrType::Pointer(Space::Shared)], &attributes, loc).first().copied()
        })
        .flatten()
        .unwrap_or(RawValue::DEAD)
    }
}

/// Largest alignment of a member: what swizzled tiles of matrix units need.
const MAX_ALIGN: u64 = 1024;

/// A struct of shared memory, under `#[derive(Shared)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not describe shared memory",
    label = "not a `#[derive(Shared)]` struct",
    note = "add `#[derive(Shared)]` to a struct of `SharedArray` and `SharedTile` fields"
)]
pub trait Shared: Sized {
    /// Allocates every field.
    fn alloc(alloc: &mut SharedAlloc) -> Self;
}

/// A field of a `#[derive(Shared)]` struct.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a `#[derive(Shared)]` struct",
    label = "not a piece of shared memory",
    note = "fields are `SharedArray<T, N>`, `SharedTile<T, ROWS, COLUMNS>`, arrays of them, and `#[derive(Shared)]` structs"
)]
pub trait SharedField: Sized {
    /// Allocates the field. `name` is type and field, `align` what `#[shared(align = ..)]` asks for.
    fn alloc(alloc: &mut SharedAlloc, name: &str, align: Option<usize>) -> Self;
}

impl<F: SharedField, const N: usize> SharedField for [F; N] {
    fn alloc(alloc: &mut SharedAlloc, name: &str, align: Option<usize>) -> Self {
        alloc.field(name, |alloc| std::array::from_fn(|index| F::alloc(alloc, &format!("{name}[{index}]"), align)))
    }
}

#[diagnostic::do_not_recommend]
impl<S: Shared> SharedField for S {
    fn alloc(alloc: &mut SharedAlloc, name: &str, _: Option<usize>) -> Self {
        alloc.field(name, S::alloc)
    }
}

/// Allocates a `#[derive(Shared)]` struct. Each call takes further memory.
#[track_caller]
pub fn shared<S: Shared>() -> S {
    S::alloc(&mut SharedAlloc::new(Location::caller()))
}

/// The address of the element at `index` of a piece with these extents and strides (in elements).
pub(super) fn element<T: Scalar, A: Access, const R: usize>(
    base: RawValue,
    index: [Coord; R],
    extents: [usize; R],
    strides: [usize; R],
    loc: Loc,
) -> Place<T, A> {
    for (dim, (coordinate, extent)) in index.iter().zip(extents).enumerate() {
        if let Coord::Known(value) = *coordinate
            && usize::try_from(value).map_or(true, |value| value >= extent)
        {
            let diagnostic = Diagnostic::error(format!("shared-memory index {value} of {extent}"));
            let diagnostic =
                if R > 1 { diagnostic.label(format!("in dimension {dim}")) } else { diagnostic.label("out of range") };
            trace::error(loc, diagnostic);
            return Place::new(trace::refused(IrType::Pointer(A::SPACE), loc));
        }
    }
    // What is known is added up on the host, and added last: there it is an immediate of the access.
    let known = |value: i64| Operand::Known(ScalarType::I32, value);
    let mut fixed = 0;
    let mut terms = Vec::new();
    for (coordinate, stride) in index.into_iter().zip(strides) {
        match coordinate {
            Coord::Known(value) => fixed += value * stride as i64,
            _ => terms.push(place::scaled(coordinate.narrow(loc), known(stride as i64), ScalarType::I32, loc)),
        }
    }
    let address = |base, index| place::element_address(A::SPACE, T::TYPE, base, index, loc);
    let base = address(base, place::sum(terms, ScalarType::I32, loc).map(Operand::from));
    Place::new(address(base, Some(known(fixed))))
}

/// A run of shared memory whose length is a host value of the trace.
#[derive(Clone, Copy, Debug)]
pub struct SharedSlice<T: Scalar> {
    pub(super) base: RawValue,
    pub(super) length: usize,
    element: PhantomData<T>,
}

impl<T: Scalar> State for SharedSlice<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
        visitor.host(format!("length {}", self.length));
    }
}
impl<T: Scalar> Carried for SharedSlice<T> {}

/// `length` elements of shared memory. Each call takes further memory, aligned to 16 bytes, or to 128
/// from 128 bytes on.
#[track_caller]
pub fn shared_array<T: Scalar>(length: usize) -> SharedSlice<T> {
    slice(&format!("shared_array::<{}>({length})", T::TYPE), length, Location::caller())
}

/// As [`shared_array`], under a name for reports.
#[track_caller]
pub fn shared_array_named<T: Scalar>(name: &str, length: usize) -> SharedSlice<T> {
    slice(name, length, Location::caller())
}

fn slice<T: Scalar>(name: &str, length: usize, loc: Loc) -> SharedSlice<T> {
    let bytes = (length as u64).saturating_mul(T::BYTES as u64);
    SharedSlice { base: SharedAlloc::new(loc).member(name, bytes, None), length, element: PhantomData }
}

impl<T: Scalar> SharedSlice<T> {
    pub(crate) fn base(self) -> RawValue {
        self.base
    }

    /// The element at `index`: `I32`, `I64`, `Index`, `usize` or `i32`. A constant that is out of range is a
    /// trace error; the emulator checks the others.
    #[track_caller]
    pub fn at(self, index: impl Indices<1>) -> Place<T, InShared> {
        let loc = Location::caller();
        element(self.base, index.coordinates(loc), [self.length], [1], loc)
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.length
    }

    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// `N` elements of shared memory: a field of a `#[derive(Shared)]` struct.
#[derive(Clone, Copy, Debug)]
pub struct SharedArray<T: Scalar, const N: usize> {
    pub(super) base: RawValue,
    element: PhantomData<T>,
}

impl<T: Scalar, const N: usize> State for SharedArray<T, N> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
    }
}
impl<T: Scalar, const N: usize> Carried for SharedArray<T, N> {}

impl<T: Scalar, const N: usize> SharedField for SharedArray<T, N> {
    fn alloc(alloc: &mut SharedAlloc, name: &str, align: Option<usize>) -> Self {
        Self { base: alloc.member(name, (N * T::BYTES) as u64, align), element: PhantomData }
    }
}

impl<T: Scalar, const N: usize> SharedArray<T, N> {
    /// Number of elements.
    pub const LEN: usize = N;

    /// The element at `index`, as [`SharedSlice::at`].
    #[track_caller]
    pub fn at(self, index: impl Indices<1>) -> Place<T, InShared> {
        let loc = Location::caller();
        element(self.base, index.coordinates(loc), [N], [1], loc)
    }
}

/// `ROWS` x `COLUMNS` elements of shared memory, row after row: a field of a `#[derive(Shared)]` struct.
///
/// Rows start `PITCH` elements apart. A pitch above `COLUMNS` pads each row, so that the elements of one
/// column fall into different banks.
#[derive(Clone, Copy, Debug)]
pub struct SharedTile<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize = COLUMNS> {
    pub(super) base: RawValue,
    element: PhantomData<T>,
}

impl<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize> State
    for SharedTile<T, ROWS, COLUMNS, PITCH>
{
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
    }
}
impl<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize> Carried
    for SharedTile<T, ROWS, COLUMNS, PITCH>
{
}

impl<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize> SharedField
    for SharedTile<T, ROWS, COLUMNS, PITCH>
{
    fn alloc(alloc: &mut SharedAlloc, name: &str, align: Option<usize>) -> Self {
        const { assert!(PITCH >= COLUMNS, "the pitch of a `SharedTile` is shorter than its rows") };
        Self { base: alloc.member(name, (ROWS * PITCH * T::BYTES) as u64, align), element: PhantomData }
    }
}

impl<T: Scalar, const ROWS: usize, const COLUMNS: usize, const PITCH: usize> SharedTile<T, ROWS, COLUMNS, PITCH> {
    /// Rows and columns.
    pub const SHAPE: [usize; 2] = [ROWS, COLUMNS];

    /// The element at `(row, column)`, each as in [`SharedSlice::at`].
    #[track_caller]
    pub fn at(self, index: impl Indices<2>) -> Place<T, InShared> {
        let loc = Location::caller();
        element(self.base, index.coordinates(loc), [ROWS, COLUMNS], [PITCH, 1], loc)
    }
}
