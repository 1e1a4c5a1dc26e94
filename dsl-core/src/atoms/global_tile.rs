//! A block's tile of a tensor in global memory.

use std::marker::PhantomData;
use std::panic::Location;

use super::offset::Offset;
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, Constant, IrType, Loc, Operand, RawValue, Space};
use crate::types::arith::{self, Binary};
use crate::types::{Access, Cmp, Indices, Rest, Scalar, Tensor, TensorMut, place};
use crate::{Diagnostic, ScalarType};

/// A tile of `shape[0] x shape[1]` elements of a tensor of rank 2, with what is left of the tensor from its first
/// element on: what lies beyond is the *residue*, which copies leave out or fill with zeros.
///
/// Made by `tile` of a tensor; strides are the tensor's.
#[derive(Clone, Debug)]
pub struct GlobalTile<T: Scalar, A: Access> {
    base: RawValue,
    /// Elements from the base to the tile's first one; `None` for 0.
    start: Option<RawValue>,
    shape: [usize; 2],
    /// Rows and columns that are left of the tensor; `None` where all of the tile is inside.
    left: [Option<RawValue>; 2],
    strides: [RawValue; 2],
    /// The dimension whose stride is promised to be 1.
    contiguous: Option<usize>,
    /// Elements that are promised to be aligned together.
    vector: usize,
    kind: PhantomData<(T, A)>,
}

impl<T: Scalar, A: Access> State for GlobalTile<T, A> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.base);
        self.start.iter_mut().for_each(|start| visitor.value(start));
        self.left.iter_mut().flatten().chain(&mut self.strides).for_each(|value| visitor.value(value));
        visitor.host(format!("{:?} {:?} {}", self.shape, self.contiguous, self.vector));
    }
}
impl<T: Scalar, A: Access> Carried for GlobalTile<T, A> {}

/// A tile's memory as a bounded buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded {
    pub base: RawValue,
    /// As an `I64`.
    pub bytes: RawValue,
}

/// Whether elements are inside of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// In every thread.
    Always,
    /// In none.
    Never,
    /// Where this holds.
    Where(RawValue),
}

impl Inside {
    /// As an operand.
    pub(super) fn mask(self, loc: Loc) -> RawValue {
        match self {
            Self::Always => trace::constant(ScalarType::Bool, Constant::Int(1), loc),
            Self::Never => trace::constant(ScalarType::Bool, Constant::Int(0), loc),
            Self::Where(mask) => mask,
        }
    }
}

/// Some neighbours as they lie in memory.
pub(super) fn run_type(element: ScalarType, width: usize) -> IrType {
    place::stored(if width == 1 { IrType::Scalar(element) } else { IrType::Vector(element, width) })
}

fn wide(value: i64, loc: Loc) -> RawValue {
    trace::constant(ScalarType::I64, Constant::Int(value), loc)
}

impl<T: Scalar, A: Access> GlobalTile<T, A> {
    fn new(rest: Rest<2>, shape: [usize; 2]) -> Self {
        let Rest { base, start, left, strides } = rest;
        Self { base, start, shape, left: left.map(Some), strides, contiguous: None, vector: 1, kind: PhantomData }
    }

    /// Promises that rows are contiguous and that every run of `elements` elements of a row, from its beginning on, is
    /// aligned to its own size and inside or outside of the tensor as a whole. Copies then move that many at once.
    ///
    /// It is the launch that can prove this, from strides, alignment and extents; the emulator reports every access
    /// that breaks the promise. `elements` is a power of two; 1 promises nothing.
    #[track_caller]
    pub fn vectors(self, elements: usize) -> Self {
        self.promise(1, elements, Location::caller())
    }

    fn promise(mut self, dimension: usize, elements: usize, loc: Loc) -> Self {
        if !elements.is_power_of_two() || elements * T::BYTES > 16 {
            let message = format!("vectors of {elements} elements of {} bytes", T::BYTES);
            trace::error(loc, Diagnostic::error(message).label("a power of two, up to 16 bytes"));
            return self;
        }
        if elements > 1 {
            (self.contiguous, self.vector) = (Some(dimension), elements);
        }
        self
    }

    /// The tile without a residue: all of it lies inside the tensor, which the kernel has seen to.
    pub fn whole(self) -> Self {
        Self { left: [None; 2], ..self }
    }

    /// The tile without a residue in its columns: the tensor has at least as many.
    pub fn whole_rows(self) -> Self {
        self.whole_along(1)
    }

    /// The tile without a residue along `dimension`, 0 for rows and 1 for columns: the tensor has at least as many there,
    /// which the kernel has seen to.
    pub fn whole_along(mut self, dimension: usize) -> Self {
        self.left.iter_mut().skip(dimension).take(1).for_each(|left| *left = None);
        self
    }

    /// The tile with a residue along `dimension` that is known: exactly `count` of its rows (0) or columns (1) are inside of
    /// the tensor, which the kernel has seen to. What lies beyond costs no mask.
    #[track_caller]
    pub fn with_extent(mut self, dimension: usize, count: usize) -> Self {
        let loc = Location::caller();
        if dimension > 1 || count > self.shape[dimension.min(1)] {
            let message = format!("{count} elements along dimension {dimension} of a tile of {:?}", self.shape);
            trace::error(loc, Diagnostic::error(message).label("the tile has no such part"));
            return self;
        }
        let count = trace::constant(ScalarType::I32, Constant::Int(count as i64), loc);
        self.left.iter_mut().skip(dimension).take(1).for_each(|left| *left = Some(count));
        self
    }

    /// Rows and columns exchanged.
    pub fn transposed(self) -> Self {
        let swap = |[a, b]: [RawValue; 2]| [b, a];
        Self {
            shape: [self.shape[1], self.shape[0]],
            left: [self.left[1], self.left[0]],
            strides: swap(self.strides),
            contiguous: self.contiguous.map(|dimension| 1 - dimension),
            ..self
        }
    }

    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    pub(super) fn contiguous(&self) -> Option<usize> {
        self.contiguous
    }

    pub(super) fn widest(&self) -> usize {
        self.vector
    }

    fn scaled(&self, dimension: usize, value: RawValue, loc: Loc) -> RawValue {
        match self.contiguous == Some(dimension) {
            true => value,
            false => place::scaled(value, self.strides[dimension], ScalarType::I64, loc),
        }
    }

    fn step(address: RawValue, offset: impl Into<Operand>, loc: Loc) -> RawValue {
        place::element_address(Space::Global, T::TYPE, address, Some(offset), loc)
    }

    /// The tile seen from a thread's own first element: its base is moved there, its residue is not.
    ///
    /// The thread's part comes before that of the tile: it is the same for all tiles of a tensor.
    pub(super) fn of_thread(&self, at: [Offset; 2], loc: Loc) -> Self {
        let threads =
            (0..2).filter_map(|dimension| Some(self.scaled(dimension, arith::widened(at[dimension].value?, loc), loc)));
        let offset = place::sum(threads.collect::<Vec<_>>(), ScalarType::I64, loc);
        let base = offset.map_or(self.base, |offset| Self::step(self.base, offset, loc));
        Self { base, ..self.clone() }
    }

    /// The address of the tile's first element.
    fn first(&self, loc: Loc) -> RawValue {
        self.start.map_or(self.base, |start| Self::step(self.base, start, loc))
    }

    /// The address of the known part of a coordinate from the base on.
    pub(super) fn address(&self, at: [Offset; 2], loc: Loc) -> RawValue {
        // Constants of the contiguous dimension come last: they become immediates.
        let last = self.contiguous.unwrap_or(1);
        let known = |dimension: usize| Operand::Known(ScalarType::I64, at[dimension].known);
        let base = match known(1 - last).known() {
            Some(0) => self.first(loc),
            _ => {
                let row = place::scaled(self.strides[1 - last], known(1 - last), ScalarType::I64, loc);
                Self::step(self.first(loc), row, loc)
            }
        };
        match self.contiguous {
            Some(_) => Self::step(base, known(last), loc),
            None if at[last].known == 0 => base,
            None => {
                let column = place::scaled(self.strides[last], known(last), ScalarType::I64, loc);
                Self::step(base, column, loc)
            }
        }
    }

    /// `width` elements from a coordinate on; zeros outside the tensor.
    pub(super) fn load(&self, at: [Offset; 2], width: usize, loc: Loc) -> RawValue {
        let ty = run_type(T::TYPE, width);
        let align = [("align", Attr::Int((T::BYTES * width) as i64))];
        let inside = self.inside(at, loc);
        if inside == Inside::Always {
            return trace::emit1("lw.load", &[self.address(at, loc)], ty, &align, loc);
        }
        let zero = if T::TYPE.is_float() { Constant::Float(0.0) } else { Constant::Int(0) };
        let zero = trace::constant(place::stored(IrType::Scalar(T::TYPE)).element().unwrap_or(T::TYPE), zero, loc);
        let zero = if width == 1 { zero } else { trace::emit1("vector.broadcast", &[zero], ty, &[], loc) };
        match inside {
            Inside::Where(mask) => {
                trace::emit1("lw.load_masked", &[self.address(at, loc), mask, zero], ty, &align, loc)
            }
            _ => zero,
        }
    }

    /// Whether a part of the tile may lie outside of the tensor.
    pub(super) fn has_residue(&self) -> bool {
        self.left.iter().any(Option::is_some)
    }

    /// The tile as a bounded buffer that begins at its first element and ends with the tensor, or with the tile where that
    /// is promised to lie inside.
    ///
    /// Offsets into it are of 32 bits: a tile that spans more stops the kernel.
    pub(super) fn bounded(&self, loc: Loc) -> Bounded {
        let int = |value| wide(value, loc);
        let long = |op, a, b| arith::once(op, ScalarType::I64, a, b, loc);
        let compare = |cmp, a, b| arith::compare_once(cmp, ScalarType::I64, a, b, loc);
        let both = |a, b| arith::both_once(a, b, loc);
        let (mut last, mut reach, mut filled, mut upward) = (None, None, None, None);
        let and = |before: Option<RawValue>, next| Some(before.map_or(next, |before| both(before, next)));
        let plus = |before: Option<RawValue>, next| Some(before.map_or(next, |before| long(Binary::Add, before, next)));
        for dimension in 0..2 {
            let whole = int(self.shape[dimension] as i64);
            let extent = match self.left[dimension] {
                Some(left) => long(Binary::Min, arith::widened(left, loc), whole),
                None => whole,
            };
            let before = |extent| self.scaled(dimension, long(Binary::Sub, extent, int(1)), loc);
            last = plus(last, before(extent));
            reach = plus(reach, before(whole));
            filled = and(filled, compare(Cmp::Gt, extent, int(0)));
            upward = and(upward, compare(Cmp::Ge, self.strides[dimension], int(0)));
        }
        let nothing = int(0);
        let end = long(Binary::Add, last.unwrap_or(nothing), int(1));
        let bytes = long(Binary::Mul, end, int(T::BYTES as i64));
        let bytes = match filled {
            Some(filled) => {
                trace::once("arith.select", &[filled.into(), bytes.into(), nothing.into()], IrType::I64, &[], loc)
            }
            None => bytes,
        };
        let limit = int(i64::from(i32::MAX) / T::BYTES as i64);
        let short = and(upward, compare(Cmp::Lt, reach.unwrap_or(nothing), limit));
        if let Some(short) = short.filter(|&short| trace::known(short) != Some(1)) {
            let message =
                "a tile that is copied as a bounded buffer spans 2 GiB or goes backwards: use `CopyAtom::Registers`";
            trace::emit0("lw.assert", &[short], &[("message", Attr::Str(message.to_owned()))], loc);
        }
        Bounded { base: self.first(loc), bytes }
    }

    /// Elements from the tile's first one to a coordinate.
    pub(super) fn bounded_offset(&self, at: [Offset; 2], loc: Loc) -> RawValue {
        let mut terms = Vec::new();
        for (dimension, at) in at.into_iter().enumerate() {
            let scaled = |value| match self.contiguous == Some(dimension) {
                true => value,
                // That the product fits is asserted where the buffer is made.
                false => {
                    let stride = arith::narrowed(self.strides[dimension], loc);
                    place::scaled(value, stride, ScalarType::I32, loc)
                }
            };
            terms.extend(at.value.map(scaled));
            if at.known != 0 {
                terms.push(scaled(trace::constant(ScalarType::I32, Constant::Int(at.known), loc)));
            }
        }
        let zero = || trace::constant(ScalarType::I32, Constant::Int(0), loc);
        place::sum(terms, ScalarType::I32, loc).unwrap_or_else(zero)
    }

    fn bounded_access(&self, bounded: &Bounded, at: [Offset; 2], loc: Loc) -> [RawValue; 4] {
        [bounded.base, bounded.bytes, self.bounded_offset(at, loc), self.inside(at, loc).mask(loc)]
    }

    /// [`GlobalTile::load`] from the tile's buffer.
    pub(super) fn load_bounded(&self, bounded: &Bounded, at: [Offset; 2], width: usize, loc: Loc) -> RawValue {
        let operands = self.bounded_access(bounded, at, loc);
        trace::emit1("lw.buffer_load", &operands, run_type(T::TYPE, width), &[], loc)
    }

    /// Stores some neighbours to the tile's buffer; nothing outside the tensor.
    pub(super) fn store_bounded(&self, bounded: &Bounded, at: [Offset; 2], value: RawValue, loc: Loc) {
        let [base, bytes, offset, mask] = self.bounded_access(bounded, at, loc);
        trace::emit0("lw.buffer_store", &[value, base, bytes, offset, mask], &[], loc);
    }

    /// The known parts of a coordinate in those dimensions in which a mask decides whether it is inside the tensor; `None`
    /// where it is outside in every thread.
    pub(super) fn undecided(&self, at: [Offset; 2]) -> Option<[Option<i64>; 2]> {
        let mut undecided = [None; 2];
        for ((at, left), known) in at.into_iter().zip(self.left).zip(&mut undecided) {
            match left.map(trace::known) {
                None => {}
                Some(Some(left)) if at.largest() < left => {}
                Some(Some(left)) if at.known >= left => return None,
                Some(_) => *known = Some(at.known),
            }
        }
        Some(undecided)
    }

    /// Whether a coordinate is inside the tensor.
    pub(super) fn inside(&self, at: [Offset; 2], loc: Loc) -> Inside {
        let Some(undecided) = self.undecided(at) else { return Inside::Never };
        let mut all = Inside::Always;
        for ((at, left), known) in at.into_iter().zip(self.left).zip(undecided) {
            let (Some(left), Some(known)) = (left, known) else { continue };
            // The known part goes to the side of the bound, which all threads share.
            let bound = arith::once(Binary::Sub, ScalarType::I32, left, Operand::Known(ScalarType::I32, known), loc);
            let value = at.value.map_or(Operand::Known(ScalarType::I32, 0), Operand::from);
            let inside = arith::compare_once(Cmp::Lt, ScalarType::I32, value, bound, loc);
            all = match all {
                Inside::Where(before) => Inside::Where(arith::both_once(before, inside, loc)),
                _ => Inside::Where(inside),
            };
        }
        all
    }
}

/// The sides of a tile; an error at `loc` where they are none.
fn checked_shape(shape: [usize; 2], loc: Loc) -> [usize; 2] {
    let small = |side: &usize| (1..=1 << 30).contains(side);
    if shape.iter().all(small) {
        return shape;
    }
    let message = format!("a tile of {} x {} elements", shape[0], shape[1]);
    trace::error(loc, Diagnostic::error(message).label("each side has from 1 to 2^30"));
    [1, 1]
}

macro_rules! tiles {
    ($($tensor:ident $access:ident)*) => { $(
        impl<T: Scalar> $tensor<T, 2> {
            /// Tile number `coordinate` of the tensor cut into tiles of `shape` elements: CuTe's `local_tile`, with what
            /// is left of the tensor as its residue.
            #[track_caller]
            pub fn tile(self, shape: [usize; 2], coordinate: impl Indices<2>) -> GlobalTile<T, crate::types::$access> {
                let loc = Location::caller();
                let shape = checked_shape(shape, loc);
                GlobalTile::new(self.rest(shape, coordinate, loc), shape)
            }
        }
    )* };
}
tiles! { Tensor GlobalRead TensorMut GlobalWrite }
