//! Matrix products of warpgroups.
//!
//! A product runs on its own once it has started. What it gives is inside of [`InFlight`], and
//! [`InFlight::wait`] alone hands it out: code that reads it too early does not compile.

use std::ops::{Deref, DerefMut};
use std::panic::Location;

use super::swizzled::{Columns, SwizzledTile, Transposed};
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, Constant, IrType, Loc, RawValue};
use crate::types::{BF16, F8E4M3, F8E5M2, F16, F32, MmaElement, Scalar, Vector};
use crate::{Diagnostic, ScalarType};

/// An element of warpgroup products.
#[diagnostic::on_unimplemented(
    message = "warpgroup products do not take `{Self}`",
    label = "not an element of a warpgroup product",
    note = "their elements are `F16`, `BF16`, `F8E4M3` and `F8E5M2`"
)]
pub trait WgmmaElement: Scalar {
    #[doc(hidden)]
    const KIND: &'static str;
    #[doc(hidden)]
    const STEP: usize = 32 / Self::BYTES;
}
impl WgmmaElement for F16 {
    const KIND: &'static str = "f16";
}
impl WgmmaElement for BF16 {
    const KIND: &'static str = "bf16";
}
impl WgmmaElement for F8E4M3 {
    const KIND: &'static str = "e4m3";
}
impl WgmmaElement for F8E5M2 {
    const KIND: &'static str = "e5m2";
}

/// One operand as it goes into the op.
#[doc(hidden)]
#[derive(Debug)]
pub struct Operand {
    pub(in crate::types) values: Vec<RawValue>,
    /// Rows of A, or columns of B.
    pub(in crate::types) extent: usize,
    pub(in crate::types) k: usize,
    pub(in crate::types) layout: String,
}

impl Operand {
    /// A tile whose contiguous dimension is k or not.
    fn of<T: Scalar>(tile: &SwizzledTile<T>, k_major: bool) -> Self {
        let shape = tile.shape;
        let (extent, k) = if k_major { (shape.rows, shape.columns) } else { (shape.columns, shape.rows) };
        let major = if k_major { "k" } else { "mn" };
        let layout = format!("{major}:{}:{}", shape.swizzle, shape.panel_rows);
        Operand { values: vec![tile.base], extent, k, layout }
    }
}

/// What can be the left operand A of a product: 64 rows.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the left operand of a warpgroup product",
    label = "not a matrix of 64 rows",
    note = "it is a `SwizzledTile`, its transpose `.t()`, or `&Fragments` in registers"
)]
pub trait WgmmaA {
    /// Element type.
    type Elem: WgmmaElement;
    #[doc(hidden)]
    fn left(self) -> Operand;
}
impl<T: WgmmaElement> WgmmaA for SwizzledTile<T> {
    type Elem = T;
    fn left(self) -> Operand {
        Operand::of(&self, true)
    }
}
impl<T: WgmmaElement> WgmmaA for Transposed<T> {
    type Elem = T;
    fn left(self) -> Operand {
        Operand::of(&self.0, false)
    }
}
impl<T: WgmmaElement> WgmmaA for &Fragments<T> {
    type Elem = T;
    fn left(self) -> Operand {
        let values: Vec<_> = self.values.iter().map(|value| value.raw()).collect();
        Operand { k: values.len() / 4 * T::STEP, values, extent: ROWS, layout: "reg".to_owned() }
    }
}

/// What can be the right operand B of a product.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the right operand of a warpgroup product",
    label = "not a matrix in shared memory",
    note = "it is a `SwizzledTile` of k rows, or the transpose `.t()` of one whose columns are k"
)]
pub trait WgmmaB {
    /// Element type.
    type Elem: WgmmaElement;
    #[doc(hidden)]
    fn right(self) -> Operand;
}
impl<T: WgmmaElement> WgmmaB for SwizzledTile<T> {
    type Elem = T;
    fn right(self) -> Operand {
        Operand::of(&self, false)
    }
}
impl<T: WgmmaElement> WgmmaB for Columns<T> {
    type Elem = T;
    fn right(self) -> Operand {
        Operand::of(&self.0, false)
    }
}
impl<T: WgmmaElement> WgmmaB for Transposed<T> {
    type Elem = T;
    fn right(self) -> Operand {
        Operand::of(&self.0, true)
    }
}

/// Rows of a warpgroup's product.
const ROWS: usize = 64;

/// A warpgroup's 64 x n matrix of `f32`, `n / 2` elements a thread.
///
/// Warp `w` has rows 16 w to 16 w + 15. Lane `l`'s element `i` stands in row `16 w + l / 4 + 8 (i / 2 % 2)` and
/// column `8 (i / 4) + 2 (l % 4) + i % 2` (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16").
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    values: Vec<F32>,
}

impl State for Accumulator {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.values.visit(visitor);
    }
}
impl Carried for Accumulator {}

impl Deref for Accumulator {
    type Target = [F32];
    fn deref(&self) -> &[F32] {
        &self.values
    }
}
impl DerefMut for Accumulator {
    fn deref_mut(&mut self) -> &mut [F32] {
        &mut self.values
    }
}

impl Accumulator {
    /// Zeros: 64 rows, `columns` columns.
    #[track_caller]
    pub fn zeros(columns: usize) -> Self {
        let loc = Location::caller();
        let zero = F32::from_raw(trace::constant(ScalarType::F32, Constant::Float(0.0), loc));
        Accumulator { values: vec![zero; columns / 2] }
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        2 * self.values.len()
    }

    /// The matrix as the left operand of a product, rounded to nearest even: no element changes its thread.
    #[track_caller]
    pub fn cast<T: MmaElement>(&self) -> Fragments<T> {
        let loc = Location::caller();
        if !self.columns().is_multiple_of(T::STEP) {
            let message = format!("{} columns as the left operand of a product", self.columns());
            trace::error(loc, Diagnostic::error(message).help(format!("products take {} at a time", T::STEP)));
        }
        let pairs = self.values.chunks_exact(2).filter_map(|pair| <[F32; 2]>::try_from(pair).ok());
        // Elements 8 kk + 2 i and 8 kk + 2 i + 1 are register i of step kk: the order of the pairs.
        Fragments { values: pairs.map(|pair| Vector::<F32, 2>::from(pair).cast::<T>()).collect() }
    }
}

/// A matrix of 64 rows in a warpgroup's registers, as the left operand of a product: 4 registers a step of k.
#[derive(Clone, Debug)]
pub struct Fragments<T: Scalar> {
    values: Vec<Vector<T, 2>>,
}

impl<T: Scalar> State for Fragments<T> {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.values.visit(visitor);
    }
}
impl<T: Scalar> Carried for Fragments<T> {}

/// A product under way. Its result is handed out by [`InFlight::wait`] alone; to drop it is a trace error.
#[must_use = "a product that nobody waits for has no result: call `.wait::<PENDING>()`"]
#[derive(Debug)]
pub struct InFlight {
    accumulator: Accumulator,
    loc: Loc,
}

impl State for InFlight {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        self.accumulator.visit(visitor);
    }
}
/// A chain of products goes through loops: see [`InFlight::add`].
impl Carried for InFlight {}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.accumulator.values.is_empty() && !std::thread::panicking() {
            let message = "nothing waits for this product";
            trace::error(self.loc, Diagnostic::error(message).help("take its result: `.wait::<0>()`"));
        }
    }
}

impl InFlight {
    /// Starts to add `a b` to what this product will give, without waiting for it: products that go into one
    /// accumulator run one after the other on their own.
    #[track_caller]
    pub fn add<A: WgmmaA>(mut self, a: A, b: impl WgmmaB<Elem = A::Elem>) -> Self {
        let sums = std::mem::take(&mut self.accumulator);
        start::<A::Elem>(a.left(), b.right(), Some(sums), Location::caller())
    }

    /// Waits until at most `PENDING` of the warpgroup's newest products are under way, this one among them: what older
    /// ones read in shared memory may be written again. `PENDING` is 1 or more; to take this product's result, use
    /// [`InFlight::wait`].
    #[track_caller]
    pub fn wait_before<const PENDING: usize>(&self) {
        const { assert!(PENDING > 0, "the product itself stays under way: `wait::<0>()` waits for it") };
        let groups = [("groups", Attr::Int(PENDING as i64))];
        trace::emit0("lw.wgmma_wait", &[], &groups, Location::caller());
    }

    /// Waits until at most `PENDING` of the warpgroup's newest products are under way, this one not among them,
    /// and gives its result.
    #[track_caller]
    pub fn wait<const PENDING: usize>(self) -> Accumulator {
        self.finish(PENDING, None, Location::caller())
    }

    /// [`InFlight::wait`], after what has been computed into `other` so far: an accumulator's elements, or some of them.
    #[track_caller]
    pub fn wait_after<const PENDING: usize>(self, other: &mut [F32]) -> Accumulator {
        self.finish(PENDING, Some(other), Location::caller())
    }

    fn finish(mut self, pending: usize, other: Option<&mut [F32]>, loc: Loc) -> Accumulator {
        let mut result = std::mem::take(&mut self.accumulator);
        let mut all: Vec<&mut F32> = result.values.iter_mut().collect();
        if let Some(other) = other {
            all.extend(other.iter_mut());
        }
        let operands: Vec<_> = all.iter().map(|value| value.raw()).collect();
        let types = vec![IrType::F32; operands.len()];
        let groups = [("groups", Attr::Int(pending as i64))];
        let values = trace::with(|t| t.emit("lw.wgmma_wait", &operands, &types, &groups, loc)).unwrap_or_default();
        for (element, value) in all.into_iter().zip(values) {
            *element = F32::from_raw(value);
        }
        result
    }
}

/// Starts the product `a b` of a 64 x k by a k x n matrix, from zero. The whole warpgroup calls it.
///
/// Operands in shared memory are read while the product runs: they may be written again after it has been
/// waited for.
#[track_caller]
pub fn wgmma<A: WgmmaA>(a: A, b: impl WgmmaB<Elem = A::Elem>) -> InFlight {
    start::<A::Elem>(a.left(), b.right(), None, Location::caller())
}

/// Starts `c + a b`, as [`wgmma`].
#[track_caller]
pub fn wgmma_add<A: WgmmaA>(a: A, b: impl WgmmaB<Elem = A::Elem>, c: Accumulator) -> InFlight {
    start::<A::Elem>(a.left(), b.right(), Some(c), Location::caller())
}

fn start<T: WgmmaElement>(a: Operand, b: Operand, c: Option<Accumulator>, loc: Loc) -> InFlight {
    let columns = b.extent;
    let fault = if a.extent != ROWS {
        Some(format!("the left operand has {} rows; a warpgroup multiplies {ROWS}", a.extent))
    } else if a.k != b.k {
        Some(format!("the left operand has {} columns, the right one {} rows", a.k, b.k))
    } else if !a.k.is_multiple_of(T::STEP) || a.k == 0 {
        Some(format!("{} columns of the left operand: products take {} at a time", a.k, T::STEP))
    } else if !columns.is_multiple_of(8) || !(8..=256).contains(&columns) {
        Some(format!("the right operand has {columns} columns: a multiple of 8 up to 256"))
    } else if let Some(c) = c.as_ref().filter(|c| c.columns() != columns) {
        Some(format!("the product has {columns} columns, the matrix that it is added to {}", c.columns()))
    } else if T::BYTES == 1 && (a.layout.starts_with("mn") || b.layout.starts_with("mn")) {
        Some("8-bit operands must lie along k in shared memory".to_owned())
    } else {
        None
    };
    if let Some(message) = fault {
        trace::error(loc, Diagnostic::error(message).label("these shapes do not multiply"));
        let value = F32::from_raw(trace::refused(IrType::F32, loc));
        return InFlight { accumulator: Accumulator { values: vec![value; (columns / 2).max(1)] }, loc };
    }
    let sums: Vec<_> = c.iter().flat_map(|c| c.values.iter().map(|value| value.raw())).collect();
    let segments = format!("array<i32: {}, 1, {}>", a.values.len(), sums.len());
    let attributes = [
        ("m", Attr::Int(ROWS as i64)),
        ("n", Attr::Int(columns as i64)),
        ("k", Attr::Int(a.k as i64)),
        ("kind", Attr::Str(T::KIND.to_owned())),
        ("zero", Attr::Bool(c.is_none())),
        ("a_layout", Attr::Str(a.layout)),
        ("b_layout", Attr::Str(b.layout)),
        ("operandSegmentSizes", Attr::Text(segments)),
    ];
    let operands = [a.values, b.values, sums].concat();
    let types = vec![IrType::F32; columns / 2];
    let values = trace::with(|t| t.emit("lw.wgmma", &operands, &types, &attributes, loc)).unwrap_or_default();
    let values = (0..columns / 2).map(|i| F32::from_raw(values.get(i).copied().unwrap_or(RawValue::DEAD))).collect();
    InFlight { accumulator: Accumulator { values }, loc }
}
