//! Which thread this is.

use std::panic::Location;

use super::arith::{self, Binary};
use super::{I32, Scalar};
use crate::trace::{self, Agreement, Attr, Constant, IrType, Loc, Operand, RawValue};
use crate::{ScalarType, Target};

/// One of the three axes of a block and a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The fastest: neighbouring threads differ in it.
    X,
    /// The second.
    Y,
    /// The slowest.
    Z,
}

impl Axis {
    fn attribute(self) -> (&'static str, Attr) {
        let letter = match self {
            Self::X => 'x',
            Self::Y => 'y',
            Self::Z => 'z',
        };
        ("dimension", Attr::Text(format!("#gpu<dim {letter}>")))
    }

    fn block(self) -> u32 {
        let [x, y, z] = block();
        match self {
            Self::X => x,
            Self::Y => y,
            Self::Z => z,
        }
    }
}

/// The block of the kernel that is being traced.
pub(crate) fn block() -> [u32; 3] {
    trace::with(|t| t.block).unwrap_or([0; 3])
}

/// Threads of the block of the kernel that is being traced.
pub(crate) fn block_threads() -> u32 {
    block().into_iter().fold(1, u32::saturating_mul)
}

pub(crate) fn int(value: u32, loc: Loc) -> RawValue {
    trace::constant(ScalarType::I32, Constant::Int(i64::from(value)), loc)
}

fn known(value: u32) -> Operand {
    Operand::Known(ScalarType::I32, i64::from(value))
}

/// A number that is the same wherever a thread asks for it: made once.
fn id(op: &'static str, attributes: &[(&'static str, Attr)], loc: Loc) -> RawValue {
    let index = trace::once(op, &[], IrType::Index, attributes, loc);
    trace::once("arith.index_cast", &[index.into()], IrType::I32, &[], loc)
}

fn bound(limit: u32) -> (&'static str, Attr) {
    ("upper_bound", Attr::Text(format!("{limit} : index")))
}

fn thread(axis: Axis, loc: Loc) -> RawValue {
    match axis.block() {
        1 => int(0, loc),
        0 => id("gpu.thread_id", &[axis.attribute()], loc),
        extent => id("gpu.thread_id", &[axis.attribute(), bound(extent)], loc),
    }
}

/// The thread's index in its block, along an axis.
#[track_caller]
pub fn thread_id(axis: Axis) -> I32 {
    I32::from_raw(thread(axis, Location::caller()))
}

/// The block's index in the grid, along an axis.
#[track_caller]
pub fn block_id(axis: Axis) -> I32 {
    I32::from_raw(id("gpu.block_id", &[axis.attribute()], Location::caller()))
}

/// Threads of a block along an axis: a constant, since every kernel states its block.
#[track_caller]
pub fn block_dim(axis: Axis) -> I32 {
    I32::from_raw(int(axis.block(), Location::caller()))
}

/// Blocks of the grid along an axis.
#[track_caller]
pub fn grid_dim(axis: Axis) -> I32 {
    I32::from_raw(id("gpu.grid_dim", &[axis.attribute()], Location::caller()))
}

pub(crate) fn lane(loc: Loc) -> RawValue {
    id("gpu.lane_id", &[bound(target().warp_size())], loc)
}

pub(crate) fn linear_thread(loc: Loc) -> RawValue {
    let [x, y, z] = block();
    let add = |a: RawValue, b| arith::once(Binary::Add, ScalarType::I32, a, b, loc);
    let mul = |a: RawValue, factor| arith::once(Binary::Mul, ScalarType::I32, a, known(factor), loc);
    let axes = [(Axis::X, x, 1), (Axis::Y, y, x), (Axis::Z, z, x.saturating_mul(y))];
    let terms = axes.into_iter().filter(|(_, extent, _)| *extent != 1);
    let sum = terms.map(|(axis, _, stride)| mul(thread(axis, loc), stride)).reduce(add);
    sum.unwrap_or_else(|| int(0, loc))
}

/// The thread's number in its block: x first, then y, then z.
#[track_caller]
pub fn thread_index() -> I32 {
    I32::from_raw(linear_thread(Location::caller()))
}

/// The thread's number in its warp (wave): below 32 on NVIDIA, 64 on AMD.
#[track_caller]
pub fn lane_id() -> I32 {
    I32::from_raw(lane(Location::caller()))
}

pub(crate) fn warp(loc: Loc) -> RawValue {
    let size = target().warp_size();
    if block_threads() <= size {
        return int(0, loc);
    }
    // Thread numbers are not negative: the shift is a division.
    let warp = arith::once(Binary::Shr, ScalarType::U32, linear_thread(loc), known(size.ilog2()), loc);
    // Compilers do not see what a warp is.
    trace::set_agreement(warp, Agreement::UNIFORM);
    warp
}

/// The number of the thread's warp (wave) in its block: [`thread_index`] over the warp size. Compilers do not see that
/// a warp's lanes have it alike: [`super::uniform`] tells them.
#[track_caller]
pub fn warp_id() -> I32 {
    I32::from_raw(warp(Location::caller()))
}

/// The chip that the kernel is being traced for, for decisions at compile time. Outside a trace, the
/// first of [`Target::ALL`].
pub fn target() -> Target {
    trace::with(|t| t.target()).unwrap_or(Target::SM_80)
}
