//! Reductions over the lanes of a warp and the threads of a block.

use std::panic::Location;

use super::arith::{self, Binary, Cmp};
use super::collectives::{Exchange, Lane, when};
use super::place;
use super::shared::SharedAlloc;
use super::{Bool, I32, Scalar};
use super::{ids, sync};
use crate::rt::{Carried, Visitor};
use crate::trace::{self, Attr, IrType, Loc, Operand, RawValue, Space};
use crate::{Diagnostic, ScalarType};

/// What [`reduce_warp`] and [`reduce_block`] combine: scalars, vectors, and arrays, tuples and structs of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be reduced over threads",
    label = "not a kernel value that can be copied",
    note = "reduced are scalars, vectors, and arrays, tuples and `#[derive(Clone, Copy, Carried)]` structs of them"
)]
pub trait Reduced: Carried + Copy {}
#[diagnostic::do_not_recommend]
impl<V: Carried + Copy> Reduced for V {}

/// Replaces each scalar and vector of a value.
struct Parts<'f>(&'f mut dyn FnMut(RawValue, IrType) -> RawValue);

impl Visitor for Parts<'_> {
    fn value(&mut self, value: &mut RawValue) {
        let ty = trace::with(|t| t.type_of(*value)).flatten();
        if let Some(ty) = ty.filter(|ty| ty.element().is_some()) {
            *value = (self.0)(*value, ty);
        }
    }
    fn uniform(&mut self, _: &mut RawValue) {}
    fn host(&mut self, _: String) {}
}

fn each<V: Reduced>(mut value: V, f: &mut dyn FnMut(RawValue, IrType) -> RawValue) -> V {
    value.visit(&mut Parts(f));
    value
}

/// Finds parts that no thread has for itself, or that lie elsewhere.
struct Foreign {
    uniform: bool,
    address: bool,
}

impl Visitor for Foreign {
    fn value(&mut self, value: &mut RawValue) {
        let ty = trace::with(|t| t.type_of(*value)).flatten();
        self.address |= ty.is_some_and(|ty| ty.element().is_none());
    }
    fn uniform(&mut self, _: &mut RawValue) {
        self.uniform = true;
    }
    fn host(&mut self, _: String) {}
}

/// Whether each part is a thread's own value; says what is wrong else.
fn is_own<V: Reduced>(mut value: V, loc: Loc) -> bool {
    let mut found = Foreign { uniform: false, address: false };
    value.visit(&mut found);
    if found.uniform {
        let message = "a uniform value is reduced, which the lanes of a warp have alike";
        trace::error(loc, Diagnostic::error(message).help("give each thread's value, as by `*x`"));
    }
    if found.address {
        let message = "an address is reduced: a place, or a piece of memory";
        trace::error(loc, Diagnostic::error(message).help("reduce what is loaded from there"));
    }
    !(found.uniform || found.address)
}

/// Combines over groups of `lanes` lanes (a power of two): every lane gets its group's result.
fn butterfly<V: Reduced>(mut value: V, lanes: u32, op: &mut impl FnMut(V, V) -> V, loc: Loc) -> V {
    let mut distance = lanes / 2;
    while distance > 0 {
        let how = Exchange { mode: "xor", lane: distance.lane(loc), loc };
        let other = each(value, &mut |part, ty| how.value(part, ty));
        value = op(value, other);
        distance /= 2;
    }
    value
}

/// Combines the values of the warp's lanes: every lane gets the result.
///
/// A value may have several parts: a tuple, an array, a struct that derives `Carried`. `op` must be associative and
/// commutative: lanes are combined as a butterfly. All lanes must take part; a block whose last warp is not full is refused,
/// unless it is one warp of a power of two.
#[track_caller]
pub fn reduce_warp<V: Reduced>(value: V, mut op: impl FnMut(V, V) -> V) -> V {
    let loc = Location::caller();
    let (warp, threads) = (ids::target().warp_size(), ids::block_threads());
    let full = threads.is_multiple_of(warp);
    let part = threads < warp && threads.is_power_of_two();
    if !(full || part) {
        let message = format!("`reduce_warp` in a block of {threads} threads: its last warp has missing lanes");
        trace::error(loc, Diagnostic::error(message).help(format!("make the block a multiple of {warp} threads")));
        return value;
    }
    if !is_own(value, loc) {
        return value;
    }
    butterfly(value, if full { warp } else { threads }, &mut op, loc)
}

/// Shared memory for some values: an array for each scalar of theirs.
struct Partial {
    /// Element type and first element.
    arrays: Vec<(ScalarType, RawValue)>,
}

/// Where one of those values lies.
struct Slot(Vec<(ScalarType, RawValue)>);

impl Partial {
    fn new<V: Reduced>(like: V, count: u32, loc: Loc) -> Self {
        let mut types = Vec::new();
        each(like, &mut |part, ty| {
            let count = if let IrType::Vector(_, count) = ty { count } else { 1 };
            types.extend(ty.element().into_iter().cycle().take(count));
            part
        });
        let number = types.len();
        let name = |part| if number == 1 { "reduce_block".to_owned() } else { format!("reduce_block.{part}") };
        let array = |(part, ty): (usize, ScalarType)| {
            let bytes = u64::from(count) * ty.bytes() as u64;
            (ty, SharedAlloc::new(loc).member(&name(part), bytes, None))
        };
        Self { arrays: types.into_iter().enumerate().map(array).collect() }
    }

    fn at(&self, index: Operand, loc: Loc) -> Slot {
        let element = |&(ty, base)| (ty, place::element_address(Space::Shared, ty, base, Some(index), loc));
        Slot(self.arrays.iter().map(element).collect())
    }
}

impl Slot {
    /// The value so many further on.
    fn offset(&self, by: u32, loc: Loc) -> Self {
        let by = Operand::Known(ScalarType::I32, i64::from(by));
        let element = |&(ty, at)| (ty, place::element_address(Space::Shared, ty, at, Some(by), loc));
        Self(self.0.iter().map(element).collect())
    }

    fn store<V: Reduced>(&self, value: V, loc: Loc) {
        for (&(ty, address), part) in self.0.iter().zip(scalars(value, loc)) {
            place::write(address, IrType::Scalar(ty), part, None, loc);
        }
    }

    /// A value of the form of another; under a mask, that other value where it is false.
    fn load<V: Reduced>(&self, like: V, mask: Option<Bool>, loc: Loc) -> V {
        let others = mask.map(|mask| (mask, scalars(like, loc)));
        let loaded = self.0.iter().enumerate().map(|(part, &(ty, address))| {
            let other = others.as_ref().and_then(|(mask, others)| Some((*mask, *others.get(part)?)));
            place::read(address, IrType::Scalar(ty), other, loc)
        });
        let mut loaded = loaded.collect::<Vec<_>>().into_iter();
        each(like, &mut |part, ty| match ty {
            IrType::Vector(_, count) => {
                let elements: Vec<_> = loaded.by_ref().take(count).collect();
                trace::emit1("vector.from_elements", &elements, ty, &[], loc)
            }
            _ => loaded.next().unwrap_or(part),
        })
    }
}

/// The scalars of a value, those of its vectors too.
fn scalars<V: Reduced>(value: V, loc: Loc) -> Vec<RawValue> {
    let mut found = Vec::new();
    each(value, &mut |part, ty| {
        match ty {
            IrType::Vector(element, count) => found.extend((0..count).map(|index| {
                let position = [("static_position", Attr::Text(format!("array<i64: {index}>")))];
                trace::emit1("vector.extract", &[part], IrType::Scalar(element), &position, loc)
            })),
            _ => found.push(part),
        }
        part
    });
    found
}

/// Combines the values of the block's threads: every thread gets the result.
///
/// A value may have several parts, as for [`reduce_warp`]: the largest element with its index, the mean with the sum of
/// squares and the count. `op` must be associative and commutative, `identity` its neutral element. Every thread of the block
/// must come here: there are two barriers in it, and shared memory for one value a warp (a block that is not made of whole
/// warps takes one value a thread and more barriers).
#[track_caller]
pub fn reduce_block<V: Reduced>(value: V, mut op: impl FnMut(V, V) -> V, identity: V) -> V {
    let loc = Location::caller();
    let (warp, threads) = (ids::target().warp_size(), ids::block_threads());
    if threads == 0 || !is_own(value, loc) {
        return value;
    }
    if !threads.is_multiple_of(warp) {
        return reduce_by_tree(value, threads, &mut op, loc);
    }
    let mut result = butterfly(value, warp, &mut op, loc);
    let warps = threads / warp;
    if warps == 1 {
        return result;
    }
    let partial = Partial::new(result, warps, loc);
    let lane = I32::from_raw(ids::lane(loc));
    let first = compare(Cmp::Eq, lane, 0, loc);
    when(first, || partial.at(ids::warp(loc).into(), loc).store(result, loc));
    sync::barrier_at(loc);
    // Each warp reads all partial results, as often as they fit into its lanes.
    let group = warps.next_power_of_two();
    let mask = ids::int(group - 1, loc);
    let slot = arith::binary(Binary::BitAnd, ScalarType::I32, lane.raw(), mask, loc);
    let place = partial.at(slot.into(), loc);
    result = if group == warps {
        place.load(result, None, loc)
    } else {
        place.load(identity, Some(compare(Cmp::Lt, I32::from_raw(slot), warps, loc)), loc)
    };
    // The arrays may be written again when this code comes round.
    sync::barrier_at(loc);
    butterfly(result, group, &mut op, loc)
}

/// The reduction of a block with a warp that is not full: a tree in shared memory.
#[track_caller]
fn reduce_by_tree<V: Reduced>(value: V, threads: u32, op: &mut impl FnMut(V, V) -> V, loc: Loc) -> V {
    let partial = Partial::new(value, threads, loc);
    let thread = I32::from_raw(ids::linear_thread(loc));
    let at = |thread: I32| partial.at(thread.raw().into(), loc);
    at(thread).store(value, loc);
    sync::barrier_at(loc);
    let mut live = threads;
    while live > 1 {
        // The upper half is folded onto the lower one; an odd one in the middle waits.
        let half = live.div_ceil(2);
        when(compare(Cmp::Lt, thread, live - half, loc), || {
            let mine = at(thread);
            let other = mine.offset(half, loc).load(value, None, loc);
            mine.store(op(mine.load(value, None, loc), other), loc);
        });
        sync::barrier_at(loc);
        live = half;
    }
    let result = partial.at(Operand::Known(ScalarType::I32, 0), loc).load(value, None, loc);
    sync::barrier_at(loc);
    result
}

fn compare(op: Cmp, value: I32, limit: u32, loc: Loc) -> Bool {
    Bool::from_raw(arith::compare(op, ScalarType::I32, value.raw(), ids::int(limit, loc), loc))
}
