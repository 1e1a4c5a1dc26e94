//! What the macros emit against. Not for use by hand: the shapes are those of the expansion.

mod control;
mod logic;
mod params;
mod range;
mod state;
mod uniform;

use std::panic::Location;

use crate::trace::{self, Attr, Constant, IrType, Loc, RawValue};
use crate::types::{Bool, Scalar};
use crate::{Diagnostic, ScalarType, SourceLocation};

pub use crate::KernelAttributes;
pub use crate::types::{
    PrintArgument, Printable, Shared, SharedAlloc, SharedField, device_assert, printf, static_assert,
};
pub(crate) use control::when;
pub use control::{
    For, Guard, If, Joined, While, for_begin, for_end, guard, guard_end, if_begin, if_else, if_end, ret_join,
    while_begin, while_cond, while_end,
};
pub use logic::{
    Compare, Condition, Enter, Equal, HostBool, HostEqual, HostLeft, HostOrder, LogicRhs, LogicToken, RtCond,
    RuntimeLeft, UniformLeft, and_begin, and_begin_with, const_expr, eq, ge, gt, host_eq, host_ge, host_gt, host_le,
    host_lt, host_ne, le, logic_end, logic_end_with, logic_skip, lt, ne, never, no, or_begin, or_begin_with, unit, yes,
};
pub use params::{HostCount, Kernel, KernelParam, KernelParams, ParamBuilder, ParamValues, count};
pub use range::{
    Bound, HostInt, HostRangeArgs, Join, Lit, LoopIndex, Range, RangeArgs, RtRange, Step, constexpr, range, range_args,
    range_constexpr, range_constexpr_args,
};
pub use state::{
    CalledAs, Carried, CarriedAs, Poison, ProbedAs, Slot, SlotNone, SlotRef, State, Unchanged, Visitor, WatchedAs,
    called, flag_slot, slot, watch, watch_probed,
};

/// A value that is never looked at.
pub fn poison<V: Poison>() -> V {
    V::poison()
}

/// A poison value of a type in the open trace.
#[track_caller]
pub(crate) fn poison_value(ty: IrType) -> RawValue {
    trace::emit1("ub.poison", &[], ty, &[("value", Attr::Text("#ub.poison".to_owned()))], Location::caller())
}

pub(crate) fn constant_bool(value: bool, loc: Loc) -> Bool {
    Bool::from_raw(trace::constant(ScalarType::Bool, Constant::Int(i64::from(value)), loc))
}

/// Both values, chosen by a condition, part by part.
pub(crate) fn select<V: Carried + Copy>(condition: Bool, a: V, b: V, loc: Loc) -> V {
    let (mut chosen, mut other) = (a, b);
    let (left, right) = (state::Snapshot::of(&mut chosen), state::Snapshot::of(&mut other));
    if !left.same_host(&right) {
        trace::error(loc, Diagnostic::error("the two sides of this `select` differ in their host parts"));
        return chosen;
    }
    let changes = control::Differing::between(&left.values, &right.values);
    let merged: Vec<RawValue> = left
        .values
        .iter()
        .zip(&right.values)
        .map(|(a, b)| {
            if a == b {
                return *a;
            }
            let ty = trace::with(|t| t.type_of(*a)).flatten().unwrap_or(IrType::BOOL);
            trace::emit1("arith.select", &[condition.raw(), *a, *b], ty, &[], loc)
        })
        .collect();
    let together = trace::is_uniform(condition.raw());
    uniform::Parting::Select.check(&[], std::slice::from_ref(&left), &changes, together, &merged, loc);
    state::write(&mut chosen, &merged);
    chosen
}

/// Marks the body of a `#[device] fn`, so that its ops know the call that led to them.
#[must_use]
pub struct Frame(());

/// Enters a `#[device] fn` called from `loc`.
pub fn frame(loc: Loc) -> Frame {
    let sane = trace::with(|t| {
        let sane = t.push_frame(loc);
        if !sane {
            t.error(
                Diagnostic::error("this `#[device] fn` calls itself without end")
                    .at(SourceLocation::from_caller(loc))
                    .help("recursion must end by a compile-time condition: `if const_expr(depth > 0)`"),
            );
        }
        sane
    });
    if sane == Some(false) {
        // Tracing on would overflow the host's stack. The unwinding ends in `trace_kernel`.
        std::panic::resume_unwind(Box::new(EndlessRecursion));
    }
    Frame(())
}

/// Carried by the unwinding that ends a trace whose helpers call each other without end.
pub(crate) struct EndlessRecursion;

impl Drop for Frame {
    fn drop(&mut self) {
        trace::with(trace::Trace::pop_frame);
    }
}

#[cfg(test)]
mod tests;
