//! Matrix instructions and the copies that feed them.
//!
//! How fragments lie over the lanes is as the vendors document it: PTX ISA, "Matrix Fragments for
//! mma.m16n8k16" and "ldmatrix"; CDNA3 ISA, "Matrix Arithmetic Instructions".

use std::panic::Location;

use super::place::{InGlobal, InShared, Place};
use super::{BF16, Bool, F16, F32, Float, Scalar, Vector, WgmmaElement};
use crate::Diagnostic;
use crate::atoms::CopySpec;
use crate::trace::{self, Attr, IrType, Loc, RawValue};

/// An element of the 16-bit matrix instructions.
#[diagnostic::on_unimplemented(
    message = "the 16-bit matrix instructions do not take `{Self}`",
    label = "not a matrix element",
    note = "their elements are `F16` and `BF16`; `F32` goes through `mma_m16n8k8_tf32`"
)]
pub trait MmaElement: Float + WgmmaElement {}
impl MmaElement for F16 {}
impl MmaElement for BF16 {}

/// Emits an op with several results.
fn emit_many<const N: usize>(
    op: &str,
    operands: &[RawValue],
    result: IrType,
    attributes: &[(&str, Attr)],
    loc: Loc,
) -> [RawValue; N] {
    let results = trace::with(|t| t.emit(op, operands, &[result; N], attributes, loc)).unwrap_or_default();
    std::array::from_fn(|index| results.get(index).copied().unwrap_or(RawValue::DEAD))
}

fn ldmatrix<T: MmaElement, const R: usize>(row: Place<T, InShared>, trans: bool, loc: Loc) -> [Vector<T, 2>; R] {
    let attributes = [("trans", Attr::Bool(trans))];
    emit_many("lw.ldmatrix", &[row.address()], Vector::<T, 2>::TYPE, &attributes, loc).map(Vector::from_raw)
}

macro_rules! ldmatrix {
    ($($(#[$doc:meta])* $name:ident $count:literal $trans:literal;)*) => { $(
        $(#[$doc])*
        ///
        /// `row` is the first element of the 8-element row that this lane names: lanes 8i to 8i + 7 name the
        /// rows of matrix i, and lanes beyond the last matrix are ignored. Rows are 16 bytes, aligned to
        /// 16. NVIDIA only.
        #[track_caller]
        pub fn $name<T: MmaElement>(row: Place<T, InShared>) -> [Vector<T, 2>; $count] {
            ldmatrix(row, $trans, Location::caller())
        }
    )* };
}
ldmatrix! {
    /// Loads one matrix of 8 x 8 elements from shared memory: 2 elements of each lane's row.
    ldmatrix_x1 1 false;
    /// Loads two matrices of 8 x 8 elements from shared memory.
    ldmatrix_x2 2 false;
    /// Loads four matrices of 8 x 8 elements from shared memory.
    ldmatrix_x4 4 false;
    /// [`ldmatrix_x1`], with the matrix transposed on the way.
    ldmatrix_x1_trans 1 true;
    /// [`ldmatrix_x2`], with each matrix transposed on the way.
    ldmatrix_x2_trans 2 true;
    /// [`ldmatrix_x4`], with each matrix transposed on the way.
    ldmatrix_x4_trans 4 true;
}

macro_rules! stmatrix {
    ($($(#[$doc:meta])* $name:ident $count:literal $trans:literal;)*) => { $(
        $(#[$doc])*
        ///
        /// `row` is the first element of the 8-element row that this lane names: lanes 8i to 8i + 7 name the
        /// rows of matrix i, and lanes beyond the last matrix are ignored. Rows are 16 bytes, aligned to
        /// 16. All lanes of the warp take part. From sm_90 on.
        #[track_caller]
        pub fn $name<T: MmaElement>(row: Place<T, InShared>, fragments: [Vector<T, 2>; $count]) {
            let operands: Vec<_> = [row.address()].into_iter().chain(fragments.map(Vector::raw)).collect();
            trace::emit0("lw.stmatrix", &operands, &[("trans", Attr::Bool($trans))], Location::caller());
        }
    )* };
}
stmatrix! {
    /// Stores one matrix of 8 x 8 elements to shared memory: 2 neighbours of row `lane / 4` from each lane, columns
    /// `2 (lane % 4)` and one more, as an accumulator of `mma.sync` has them (PTX ISA, *stmatrix*).
    stmatrix_x1 1 false;
    /// Stores two matrices of 8 x 8 elements to shared memory, each as [`stmatrix_x1`].
    stmatrix_x2 2 false;
    /// Stores four matrices of 8 x 8 elements to shared memory, each as [`stmatrix_x1`].
    stmatrix_x4 4 false;
    /// [`stmatrix_x1`], with the matrix transposed on the way: a lane's neighbours go to two rows.
    stmatrix_x1_trans 1 true;
    /// [`stmatrix_x2`], with each matrix transposed on the way.
    stmatrix_x2_trans 2 true;
    /// [`stmatrix_x4`], with each matrix transposed on the way.
    stmatrix_x4_trans 4 true;
}

fn product<const C: usize>(
    op: &str,
    [m, n, k]: [i64; 3],
    kind: &str,
    [a, b]: [&[RawValue]; 2],
    c: [F32; C],
    loc: Loc,
) -> [F32; C] {
    let mut operands = a.to_vec();
    operands.extend(b);
    operands.extend(c.map(F32::raw));
    let mut attributes =
        vec![("m", Attr::Int(m)), ("n", Attr::Int(n)), ("k", Attr::Int(k)), ("kind", Attr::Str(kind.to_owned()))];
    if op == "lw.mma_sync" {
        // Three variadic groups: the op must say where each ends.
        let segments = format!("array<i32: {}, {}, {C}>", a.len(), b.len());
        attributes.push(("operandSegmentSizes", Attr::Text(segments)));
    }
    emit_many(op, &operands, IrType::F32, &attributes, loc).map(F32::from_raw)
}

fn raws<T: Scalar, const W: usize, const N: usize>(fragment: [Vector<T, W>; N]) -> [RawValue; N] {
    fragment.map(Vector::raw)
}

/// One warp's product of a 16 x 16 by a 16 x 8 matrix of 16-bit floats, added to `c`: `a * b + c` in
/// `f32`. NVIDIA only.
#[track_caller]
pub fn mma_m16n8k16<T: MmaElement>(a: [Vector<T, 2>; 4], b: [Vector<T, 2>; 2], c: [F32; 4]) -> [F32; 4] {
    product("lw.mma_sync", [16, 8, 16], T::KIND, [&raws(a), &raws(b)], c, Location::caller())
}

/// One warp's product of a 16 x 8 by an 8 x 8 matrix of 16-bit floats, added to `c`. NVIDIA only.
#[track_caller]
pub fn mma_m16n8k8<T: MmaElement>(a: [Vector<T, 2>; 2], b: [Vector<T, 2>; 1], c: [F32; 4]) -> [F32; 4] {
    product("lw.mma_sync", [16, 8, 8], T::KIND, [&raws(a), &raws(b)], c, Location::caller())
}

/// One warp's product of a 16 x 8 by an 8 x 8 matrix of `f32`, added to `c`. The elements of `a` and `b` are
/// used as TF32: their 13 lowest bits are ignored. NVIDIA only.
#[track_caller]
pub fn mma_m16n8k8_tf32(a: [F32; 4], b: [F32; 2], c: [F32; 4]) -> [F32; 4] {
    product("lw.mma_sync", [16, 8, 8], "tf32", [&a.map(F32::raw), &b.map(F32::raw)], c, Location::caller())
}

/// One wave's product of a 32 x 8 by an 8 x 32 matrix of 16-bit floats, added to `c`: `a * b + c` in `f32`.
/// AMD only.
#[track_caller]
pub fn mfma_32x32x8<T: MmaElement>(a: Vector<T, 4>, b: Vector<T, 4>, c: [F32; 16]) -> [F32; 16] {
    product("lw.mfma", [32, 32, 8], T::KIND, [&[a.raw()], &[b.raw()]], c, Location::caller())
}

/// One wave's product of a 16 x 16 by a 16 x 16 matrix of 16-bit floats, added to `c`. AMD only.
#[track_caller]
pub fn mfma_16x16x16<T: MmaElement>(a: Vector<T, 4>, b: Vector<T, 4>, c: [F32; 4]) -> [F32; 4] {
    product("lw.mfma", [16, 16, 16], T::KIND, [&[a.raw()], &[b.raw()]], c, Location::caller())
}

/// Starts a copy of `BYTES` bytes (4, 8 or 16) from global to shared memory, without registers. Where
/// `valid` is false, zeros are written and `source` is not read.
///
/// Both addresses must be multiples of `BYTES`, and both places of one element type. What was copied may
/// be read after [`cp_async_commit`], [`cp_async_wait`] and, for other threads' copies, a barrier. NVIDIA
/// only.
#[track_caller]
pub fn cp_async<const BYTES: usize>(
    destination: Place<impl Scalar, InShared>,
    source: Place<impl Scalar, impl InGlobal>,
    valid: Bool,
) {
    const { assert!(BYTES == 4 || BYTES == 8 || BYTES == 16, "`cp_async` copies 4, 8 or 16 bytes") };
    let loc = Location::caller();
    let (to, from) = (destination.element_type(), source.element_type());
    if to != from {
        let message = format!("`cp_async` would copy `{from}` elements into shared memory of `{to}`");
        trace::error(loc, Diagnostic::error(message).help("bits are copied as they are: both sides have one type"));
        return;
    }
    let operands = [destination.address(), source.address(), valid.raw()];
    trace::emit0("lw.cp_async", &operands, &[("bytes", Attr::Int(BYTES as i64))], loc);
}

/// Whether the chip copies so many bytes of a lane straight to LDS; an error at `loc` where it does not.
pub(super) fn can_copy_to_lds(bytes: usize, loc: Loc) -> bool {
    let spec = CopySpec::to_lds(bytes, false);
    let legal = trace::with(|t| t.target()).and_then(|target| Some(spec?.legal_on(target).is_ok()));
    if spec.is_none() || legal == Some(false) {
        let message = format!("a lane cannot copy {bytes} bytes straight to LDS here");
        let help = "gfx942 copies 4 bytes a lane, gfx950 also 12 and 16; on NVIDIA use `cp_async`";
        trace::error(loc, Diagnostic::error(message).help(help));
    }
    spec.is_some() && legal != Some(false)
}

/// Starts copies of `BYTES` bytes a lane (4, or on CDNA4 also 12 and 16) from global memory straight to LDS, without
/// registers.
///
/// `destination` is one place for the wave: lane `l`'s bytes land `4 l` bytes after it, or `16 l` of 12 and 16 bytes. Each
/// lane has its own `source`. Addresses are multiples of `BYTES`, of 4 for 12; both places are of one element type. What
/// was copied may be read after the next [`barrier`](super::barrier), which waits for it. AMD only.
#[track_caller]
pub fn load_to_shared<const BYTES: usize>(
    destination: Place<impl Scalar, InShared>,
    source: Place<impl Scalar, impl InGlobal>,
) {
    let loc = Location::caller();
    let (to, from) = (destination.element_type(), source.element_type());
    if to != from {
        let message = format!("`load_to_shared` would copy `{from}` elements into shared memory of `{to}`");
        trace::error(loc, Diagnostic::error(message).help("bits are copied as they are: both sides have one type"));
        return;
    }
    if can_copy_to_lds(BYTES, loc) {
        let operands = [destination.address(), source.address()];
        trace::emit0("lw.load_lds", &operands, &[("bytes", Attr::Int(BYTES as i64))], loc);
    }
}

/// Closes the group of the copies that this thread has started since the last group.
#[track_caller]
pub fn cp_async_commit() {
    trace::emit0("lw.cp_async_commit", &[], &[], Location::caller());
}

/// Waits until at most `pending` (a host number) of this thread's newest groups are under way.
#[track_caller]
pub fn cp_async_wait(pending: usize) {
    trace::emit0("lw.cp_async_wait", &[], &[("groups", Attr::Int(pending as i64))], Location::caller());
}
