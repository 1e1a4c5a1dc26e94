//! Run-time control flow, built in place.
//!
//! Each construct is a `begin` and an `end` around ordinary code. Between them the carried variables
//! hold block arguments or branch-local values; `end` makes the op and leaves its results in them.

use std::panic::Location;

use melior::ir::operation::OperationLike;
use melior::ir::{Block, BlockLike, Region, RegionLike};

use super::state::{Carried, Poison, Slot, Snapshot, check_host, flatten, read_all, types, write, write_all};
use super::uniform::{self, Parting};
use super::{RtCond, constant_bool};
use crate::mlir;
use crate::trace::{self, Agreement, Attr, ClosedRegion, Constant, IrType, Loc, RawValue, Trace};
use crate::types::arith::{self, Binary};
use crate::types::{Bool, Cmp, Scalar};
use crate::{Diagnostic, ScalarType, SourceLocation};

fn region_of(closed: Option<ClosedRegion>) -> Region<'static> {
    let region = Region::new();
    if let Some(closed) = closed {
        region.append_block(closed.block);
    }
    region
}

/// Which of some values differ between two sides, and so have to be passed on.
pub(super) struct Differing(Vec<bool>);

impl Differing {
    pub(super) fn between(one: &[RawValue], other: &[RawValue]) -> Self {
        Self(one.iter().zip(other).map(|(one, other)| one != other).collect())
    }

    /// Those that differ here or there.
    fn or(self, other: &Self) -> Self {
        Self(self.0.into_iter().zip(&other.0).map(|(here, there)| here || *there).collect())
    }

    fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    /// Whether value number `position` differs.
    pub(super) fn at(&self, position: usize) -> bool {
        self.0.get(position).copied().unwrap_or(false)
    }

    /// The differing ones of `values`.
    fn pick(&self, values: &[RawValue]) -> Vec<RawValue> {
        values.iter().zip(&self.0).filter(|(_, differs)| **differs).map(|(value, _)| *value).collect()
    }

    /// `values`, with a result for each that differs.
    fn merge(&self, values: &[RawValue], results: impl IntoIterator<Item = RawValue>) -> Vec<RawValue> {
        let mut results = results.into_iter();
        let passed = |(value, differs): (&RawValue, &bool)| match differs {
            true => results.next().unwrap_or(RawValue::DEAD),
            false => *value,
        };
        values.iter().zip(&self.0).map(passed).collect()
    }
}

/// Splits off the first values of a list that has at least as many.
fn split_first<const N: usize>(values: Vec<RawValue>) -> ([RawValue; N], Vec<RawValue>) {
    let mut values = values.into_iter();
    let first = std::array::from_fn(|_| values.next().unwrap_or(RawValue::DEAD));
    (first, values.collect())
}

fn yield_values(trace: &mut Trace, values: &[RawValue], loc: Loc) {
    trace.emit("scf.yield", values, &[], &[], loc);
}

/// An open `if`.
pub struct If {
    condition: RawValue,
    loc: Loc,
    base: Vec<Snapshot>,
    then: Vec<Snapshot>,
    /// The taken arm, whose yield is known only when both arms are.
    then_region: Option<ClosedRegion>,
}

/// Begins the taken arm of a run-time `if`.
#[track_caller]
pub fn if_begin<C: RtCond>(condition: C, slots: &mut [Slot<'_>]) -> If {
    begin_if(condition.condition().raw(), read_all(slots), Location::caller())
}

fn begin_if(condition: RawValue, base: Vec<Snapshot>, loc: Loc) -> If {
    trace::with(|t| {
        t.open_region(&[], loc);
        if t.agreement(condition).has(Agreement::ONE_LANE) {
            t.enter_one_lane();
        }
    });
    If { condition, loc, base, then: Vec::new(), then_region: None }
}

/// Ends the taken arm and begins the other: the variables are as before the `if`.
pub fn if_else(open: &mut If, slots: &mut [Slot<'_>]) {
    open.then = read_all(slots);
    check_host(slots, &open.base, &open.then, "a run-time branch", open.loc);
    let base = flatten(&open.base);
    write_all(slots, &open.base, &base);
    open.then_region = trace::with(Trace::close_region).flatten();
    trace::with(|t| t.open_region(&[], open.loc));
}

/// What the arms of a run-time `if` may give.
#[diagnostic::on_unimplemented(
    message = "the arms of a run-time `if` give `{Self}`, a host value",
    label = "`{Self}` is a host value",
    note = "wrap it in a kernel value (`I32::from(..)`, `F32::from(..)`), or decide at compile time with `if const_expr(..)`"
)]
pub trait Joined: super::State {}
#[diagnostic::do_not_recommend]
impl<T: Carried> Joined for T {}

/// Ends a run-time `if`: the variables and the result are what the taken arm made them.
pub fn if_end<V: Joined>(mut open: If, slots: &mut [Slot<'_>], values: [V; 2]) -> V {
    let [mut value, mut other] = values;
    let (then_value, else_value) = (Snapshot::of(&mut value), Snapshot::of(&mut other));
    if !then_value.same_host(&else_value) {
        trace::error(open.loc, Diagnostic::error("the arms of this `if` give values whose host parts differ"));
    }
    let otherwise = read_all(slots);
    check_host(slots, &open.base, &otherwise, "a run-time branch", open.loc);

    let mut then_all = flatten(&open.then);
    let mut else_all = flatten(&otherwise);
    let value_at = then_all.len();
    then_all.extend(&then_value.values);
    else_all.extend(&else_value.values);
    let differing = Differing::between(&then_all, &else_all);
    let merged = end_if(&mut open, then_all, else_all, &differing);
    let together = trace::is_uniform(open.condition);
    open.base.push(then_value);
    Parting::Branch.check(slots, &open.base, &differing, together, &merged, open.loc);
    let (states, result) = merged.split_at(value_at.min(merged.len()));
    write_all(slots, &open.base, states);
    write(&mut value, result);
    value
}

/// A run-time `if` without results, as a part of what was called at `loc`.
pub(crate) fn when(condition: Bool, loc: Loc, body: impl FnOnce()) {
    let mut open = begin_if(condition.raw(), Vec::new(), loc);
    body();
    if_else(&mut open, &mut []);
    if_end(open, &mut [], [(), ()]);
}

/// Builds the `scf.if` and returns one value for each pair.
fn end_if(open: &mut If, then_all: Vec<RawValue>, else_all: Vec<RawValue>, differing: &Differing) -> Vec<RawValue> {
    let loc = open.loc;
    let merged = trace::with(|t| {
        let (then_yield, else_yield) = (differing.pick(&then_all), differing.pick(&else_all));
        let result_types: Vec<_> = then_yield.iter().map(|v| t.type_of(*v).unwrap_or(IrType::BOOL)).collect();

        yield_values(t, &else_yield, loc);
        let else_region = t.close_region();
        if let Some(region) = open.then_region.take() {
            t.reopen_region(region);
            yield_values(t, &then_yield, loc);
        }
        let then_region = t.close_region();
        let else_is_empty = differing.is_empty() && only_yields(&else_region);
        if else_is_empty && only_yields(&then_region) {
            // Neither arm does anything.
            return then_all.clone();
        }
        let regions = vec![region_of(then_region), region_of(else_region.filter(|_| !else_is_empty))];
        let results = t.emit_with_regions("scf.if", &[open.condition], &result_types, &[], regions, loc);
        for (result, (then, otherwise)) in results.iter().zip(then_yield.iter().zip(&else_yield)) {
            t.set_agreement(*result, joined(t, open.condition, *then, *otherwise));
        }
        differing.merge(&then_all, results)
    });
    merged.unwrap_or_default()
}

/// What is known of a value that one arm or the other gives.
fn joined(t: &Trace, condition: RawValue, then: RawValue, otherwise: RawValue) -> Agreement {
    let [condition, yielded, other] = [condition, then, otherwise].map(|value| t.agreement(value));
    let all = |kind| condition.has(kind) && yielded.has(kind) && other.has(kind);
    // `a && b` is false in all lanes but those that a, or b, picks.
    let picked = [condition, yielded].iter().any(|part| part.has(Agreement::ONE_LANE));
    match [Agreement::EVIDENT, Agreement::UNIFORM].into_iter().find(|kind| all(*kind)) {
        Some(kind) => kind,
        None if picked && t.known(otherwise) == Some(0) => Agreement::ONE_LANE,
        None => Agreement::NONE,
    }
}

fn only_yields(region: &Option<ClosedRegion>) -> bool {
    let first = region.as_ref().and_then(|region| region.block.first_operation());
    first.is_none_or(|first| first.next_in_block().is_none())
}

/// The code after a statement that may have left the block early.
pub enum Guard {
    /// No path left: traced as it stands.
    Open,
    /// Some paths left: inside an `if`.
    If(If),
}

/// Begins what follows a statement that may set one of `flags`; `None` where a flag is certainly set.
#[track_caller]
pub fn guard(flags: &[Bool], slots: &mut [Slot<'_>]) -> Option<Guard> {
    let loc = Location::caller();
    let mut open: Option<Bool> = None;
    for flag in flags {
        match trace::with(|t| t.known(flag.raw())).flatten() {
            Some(0) => {}
            Some(_) => return None,
            None => {
                open = Some(match open {
                    None => *flag,
                    Some(before) => {
                        Bool::from_raw(trace::emit1("arith.ori", &[before.raw(), flag.raw()], IrType::BOOL, &[], loc))
                    }
                })
            }
        }
    }
    let Some(left) = open else { return Some(Guard::Open) };
    let stayed = arith::not(left.raw(), loc);
    Some(Guard::If(begin_if(stayed, read_all(slots), loc)))
}

/// Ends what [`guard`] began.
pub fn guard_end<V: Poison>(guard: Guard, slots: &mut [Slot<'_>], value: V) -> V {
    match guard {
        Guard::Open => value,
        Guard::If(mut open) => {
            if_else(&mut open, slots);
            let nothing = V::poison();
            if_end(open, slots, [value, nothing])
        }
    }
}

/// Joins an early return with the function's tail.
#[track_caller]
pub fn ret_join<V: Poison>(returned: Bool, early: V, tail: V) -> V {
    match trace::with(|t| t.known(returned.raw())).flatten() {
        Some(0) => return tail,
        Some(_) => return early,
        None => {}
    }
    let mut open = begin_if(returned.raw(), Vec::new(), Location::caller());
    if_else(&mut open, &mut []);
    if_end(open, &mut [], [early, tail])
}

pub(super) fn any(flags: &[Bool], loc: Loc) -> Bool {
    let mut all: Option<Bool> = None;
    for flag in flags {
        match trace::with(|t| t.known(flag.raw())).flatten() {
            Some(0) => continue,
            Some(_) => return *flag,
            None => {}
        }
        all = Some(match all {
            None => *flag,
            Some(before) => {
                Bool::from_raw(trace::emit1("arith.ori", &[before.raw(), flag.raw()], IrType::BOOL, &[], loc))
            }
        });
    }
    all.unwrap_or_else(|| constant_bool(false, loc))
}

/// Bounds of a run-time loop over integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) ty: ScalarType,
    pub(super) lo: RawValue,
    pub(super) hi: RawValue,
    pub(super) step: RawValue,
    pub(super) unroll: Option<u32>,
    pub(super) pipeline: Option<u32>,
}

impl Bounds {
    fn known(&self, value: RawValue) -> Option<i64> {
        trace::with(|t| t.known(value)).flatten()
    }

    /// Refuses a step that is known not to be positive, and asserts what is not known.
    fn check(&self, loc: Loc) {
        let Some(step) = self.known(self.step) else {
            let zero = trace::constant(self.ty, Constant::Int(0), loc);
            let positive = arith::compare(Cmp::Gt, self.ty, self.step, zero, loc);
            let number = if self.ty == ScalarType::I32 { "%d" } else { "%lld" };
            let message = format!(
                "the step of this loop is {number}, and must be positive: it goes from {number} up to {number}"
            );
            let values = [positive, self.step, self.lo, self.hi];
            trace::emit0("lw.assert", &values, &[("message", Attr::Str(message))], loc);
            return;
        };
        if step <= 0 {
            let (what, why) = match step {
                0 => ("the step of this loop is zero", "this loop cannot end"),
                _ => ("the step of this loop is negative", "run-time loops count up"),
            };
            let why = match (self.known(self.lo), self.known(self.hi)) {
                (Some(lo), Some(hi)) => format!("{why}: it goes from {lo} up to {hi}"),
                _ => why.to_owned(),
            };
            trace::error(
                loc,
                Diagnostic::error(what)
                    .label(why)
                    .help("steps are positive, as in Rust's `step_by`; to count down, compute `hi - 1 - i`"),
            );
        }
    }

    /// Whether `iv + step` can pass the largest value of the type.
    fn may_overflow(&self) -> bool {
        if self.known(self.step) == Some(1) {
            return false;
        }
        let max = if self.ty == ScalarType::I32 { i64::from(i32::MAX) } else { i64::MAX };
        match (self.known(self.hi), self.known(self.step)) {
            (Some(hi), Some(step)) => hi.checked_add(step).is_none_or(|last| last > max),
            _ => true,
        }
    }
}

/// An open run-time `for`.
pub struct For<I> {
    core: Loop,
    bounds: Bounds,
    iv: I,
    entered: bool,
}

struct Loop {
    loc: Loc,
    init: Vec<Snapshot>,
    arguments: Vec<RawValue>,
    shape: LoopShape,
    /// Whether all lanes of a warp have the same bounds.
    together: bool,
}

/// How the loop counts.
#[derive(Clone, Copy, Debug)]
enum LoopShape {
    /// `scf.for` over the user's own variable.
    Direct,
    /// `scf.for` in 64 bits: the user's variable could overflow on the way past the end.
    Wide { range: [RawValue; 3] },
    /// `scf.while`: the body can leave early.
    Leaving { range: [RawValue; 3], counter: RawValue },
}

/// Begins a run-time `for`. `exits` is the number of ways in which the body leaves it early.
#[track_caller]
pub fn for_begin<R: super::RtRange<I>, I>(range: R, slots: &mut [Slot<'_>], exits: usize) -> For<I> {
    let loc = Location::caller();
    let bounds = range.bounds();
    bounds.check(loc);
    if exits > 0 && (bounds.unroll.is_some() || bounds.pipeline.is_some()) {
        trace::error(
            loc,
            Diagnostic::error("a loop that can be left early cannot be unrolled or pipelined")
                .label("its number of rounds is not known when it starts")
                .help("drop the hint, or replace the `break` or `return` by a condition around the body"),
        );
    }
    let init = read_all(slots);
    let initial = flatten(&init);
    let carried = types(&initial);

    // Loops that leave early, and those whose variable could overflow, count in 64 bits.
    let widen = |value: RawValue| {
        if bounds.ty == ScalarType::I64 {
            return value;
        }
        match trace::with(|t| t.known(value)).flatten() {
            Some(known) => trace::constant(ScalarType::I64, Constant::Int(known), loc),
            None => trace::emit1("arith.extsi", &[value], IrType::I64, &[], loc),
        }
    };
    let overflows = bounds.may_overflow();
    let limits = [bounds.lo, bounds.hi, bounds.step];
    let wide = limits.map(|value| (exits > 0 || overflows).then(|| widen(value)));
    let known = limits.map(|value| trace::with(|t| t.agreement(value)).unwrap_or(Agreement::EVIDENT));
    let together = [Agreement::EVIDENT, Agreement::UNIFORM].into_iter().find(|kind| known.iter().all(|k| k.has(*kind)));
    let counted = together.unwrap_or(Agreement::NONE);
    let (shape, arguments, iv) = match wide {
        [Some(lo), Some(hi), Some(step)] => {
            // 64 bits can overflow too: then the loop counts its rounds.
            let rounds = overflows && bounds.ty == ScalarType::I64;
            let range = if rounds { count_rounds(lo, hi, step, loc) } else { [lo, hi, step] };
            let ([counter], arguments) = open_for(IrType::I64, &carried, loc);
            trace::set_agreement(counter, counted);
            let iv = if rounds {
                let ahead = arith::binary(Binary::Mul, ScalarType::I64, counter, step, loc);
                arith::binary(Binary::Add, ScalarType::I64, lo, ahead, loc)
            } else {
                narrow(counter, bounds.ty, loc)
            };
            let shape = if exits > 0 { LoopShape::Leaving { range, counter } } else { LoopShape::Wide { range } };
            (shape, arguments, iv)
        }
        _ => {
            let ([iv], arguments) = open_for(IrType::Scalar(bounds.ty), &carried, loc);
            trace::set_agreement(iv, counted);
            (LoopShape::Direct, arguments, iv)
        }
    };
    write_all(slots, &init, &arguments);
    uniform::mark(slots, &init, &arguments);
    let core = Loop { loc, init, arguments, shape, together: together.is_some() };
    For { core, bounds, iv: R::index(iv), entered: false }
}

/// The range `0, 1, ..` over the rounds of a loop from `lo` below `hi`, in 64 bits.
fn count_rounds(lo: RawValue, hi: RawValue, step: RawValue, loc: Loc) -> [RawValue; 3] {
    let int = |value| trace::constant(ScalarType::I64, Constant::Int(value), loc);
    let unsigned = |op, a, b| arith::binary(op, ScalarType::U64, a, b, loc);
    // `hi - lo` is right as an unsigned number wherever `lo < hi`; elsewhere it is not looked at.
    let last = unsigned(Binary::Sub, unsigned(Binary::Sub, hi, lo), int(1));
    let rounds = unsigned(Binary::Add, unsigned(Binary::Div, last, step), int(1));
    let some = arith::compare(Cmp::Lt, ScalarType::I64, lo, hi, loc);
    let rounds = trace::emit1("arith.select", &[some, rounds, int(0)], IrType::I64, &[], loc);
    [int(0), rounds, int(1)]
}

/// Opens the body of a loop: its counter, and its carried arguments.
fn open_for(counter: IrType, carried: &[IrType], loc: Loc) -> ([RawValue; 1], Vec<RawValue>) {
    let mut arguments = vec![counter];
    arguments.extend(carried);
    let opened = trace::with(|t| t.open_loop(&arguments, loc));
    split_first(opened.unwrap_or_else(|| vec![RawValue::DEAD; arguments.len()]))
}

fn narrow(counter: RawValue, ty: ScalarType, loc: Loc) -> RawValue {
    if ty == ScalarType::I64 {
        return counter;
    }
    trace::emit1("arith.trunci", &[counter], IrType::Scalar(ty), &[], loc)
}

impl<I: Copy> For<I> {
    /// True once: rustc sees a loop, and reports moves and uninitialised variables as in one.
    pub fn enter(&mut self) -> bool {
        !std::mem::replace(&mut self.entered, true)
    }

    /// The loop variable.
    pub fn iv(&self) -> I {
        self.iv
    }
}

/// Ends a run-time `for`. `exits` says, after the body, whether it left.
#[track_caller]
pub fn for_end<I>(open: For<I>, exits: &[Bool], slots: &mut [Slot<'_>]) {
    let For { core, bounds, .. } = open;
    let loc = core.loc;
    let last = read_all(slots);
    if !check_host(slots, &core.init, &last, "a run-time loop", loc) {
        trace::with(Trace::close_region);
        return;
    }
    let (initial, yielded) = (flatten(&core.init), flatten(&last));
    let kept = Differing::between(&yielded, &core.arguments);
    let known = if exits.is_empty() { Vec::new() } else { uniform::agreements(&yielded) };
    let (results, leave_together) = match core.shape {
        LoopShape::Direct => {
            let range = [bounds.lo, bounds.hi, bounds.step];
            (end_for(&core, &bounds, range, &initial, &yielded, &kept), true)
        }
        LoopShape::Wide { range } => (end_for(&core, &bounds, range, &initial, &yielded, &kept), true),
        LoopShape::Leaving { range, counter } => {
            let left = any(exits, loc);
            let together = trace::is_uniform(left.raw());
            (end_leaving(&core, range, counter, left, &initial, &yielded, &kept), together)
        }
    };
    let together = core.together && leave_together || in_one_lane();
    Parting::Loop.check(slots, &core.init, &kept, together, &results, loc);
    if together {
        uniform::mark_flags(slots, &core.init, &known, &results);
    }
    write_all(slots, &core.init, &results);
}

/// Builds an `scf.for`, leaving out what the body does not change.
fn end_for(
    core: &Loop,
    bounds: &Bounds,
    range: [RawValue; 3],
    initial: &[RawValue],
    yielded: &[RawValue],
    kept: &Differing,
) -> Vec<RawValue> {
    let loc = core.loc;
    trace::with(|t| {
        yield_values(t, &kept.pick(yielded), loc);
        let body = t.close_region();
        if let Some(body) = &body {
            drop_arguments(t, &body.block, 1, &core.arguments, initial, kept, loc);
        }
        let passed = kept.pick(initial);
        let result_types: Vec<_> = passed.iter().map(|value| t.type_of(*value).unwrap_or(IrType::BOOL)).collect();
        let mut operands = range.to_vec();
        operands.extend(passed);
        let mut attributes = Vec::new();
        if let Some(factor) = bounds.unroll {
            attributes.push(("lw.unroll", Attr::Int(i64::from(factor))));
        }
        if let Some(stages) = bounds.pipeline {
            attributes.push(("lw.pipeline", Attr::Int(i64::from(stages))));
        }
        let results = t.emit_with_regions("scf.for", &operands, &result_types, &attributes, vec![region_of(body)], loc);
        kept.merge(initial, results)
    })
    .unwrap_or_default()
}

/// Builds the `scf.while` of a `for` that can leave early: it goes on while the counter is below the
/// end and the body has not left.
fn end_leaving(
    core: &Loop,
    [lo, hi, step]: [RawValue; 3],
    counter: RawValue,
    left: Bool,
    initial: &[RawValue],
    yielded: &[RawValue],
    kept: &Differing,
) -> Vec<RawValue> {
    let loc = core.loc;
    trace::with(|t| {
        let passed = kept.pick(initial);
        let carried: Vec<_> = passed.iter().map(|value| t.type_of(*value).unwrap_or(IrType::BOOL)).collect();
        let mut values = vec![t.emit1("arith.addi", &[counter, step], IrType::I64, &[], loc), left.raw()];
        values.extend(kept.pick(yielded));
        yield_values(t, &values, loc);
        let after = t.close_region();
        if let Some(after) = &after {
            drop_arguments(t, &after.block, 1, &core.arguments, initial, kept, loc);
        }

        let mut argument_types = vec![IrType::I64, IrType::BOOL];
        argument_types.extend(&carried);
        let ([ahead, left], arguments) = split_first(t.open_region(&argument_types, loc));
        let less = [("predicate", Attr::Int(2))];
        let more = t.emit1("arith.cmpi", &[ahead, hi], IrType::BOOL, &less, loc);
        let stayed = t.not(left, loc);
        let mut forwarded = vec![t.emit1("arith.andi", &[more, stayed], IrType::BOOL, &[], loc), ahead];
        forwarded.extend(arguments);
        t.emit("scf.condition", &forwarded, &[], &[], loc);
        let before = t.close_region();

        let mut operands = vec![lo, t.constant(ScalarType::Bool, Constant::Int(0), loc)];
        operands.extend(passed);
        let mut result_types = vec![IrType::I64];
        result_types.extend(&carried);
        let regions = vec![region_of(before), region_of(after)];
        let results = t.emit_with_regions("scf.while", &operands, &result_types, &[], regions, loc);
        // The first result is the counter.
        kept.merge(initial, results.into_iter().skip(1))
    })
    .unwrap_or_default()
}

/// Replaces the block arguments that are not in `kept` by their initial values and erases them.
/// `first` is the number of arguments before the carried ones.
fn drop_arguments(
    t: &mut Trace,
    block: &Block<'static>,
    first: usize,
    arguments: &[RawValue],
    initial: &[RawValue],
    kept: &Differing,
    loc: Loc,
) {
    // From the last on, so that the numbers of those before stay.
    for (index, ((argument, initial), kept)) in arguments.iter().zip(initial).zip(&kept.0).enumerate().rev() {
        if *kept {
            continue;
        }
        if let (Some(old), Some(new)) = (t.peek(*argument), t.resolve(*initial, loc)) {
            mlir::replace_all_uses(old, new);
            mlir::erase_block_argument(block, first + index);
        }
        t.alias(*argument, *initial);
    }
}

/// An open run-time `while` or `loop`.
pub struct While {
    loc: Loc,
    init: Vec<Snapshot>,
    before: Vec<RawValue>,
    condition_region: Option<ClosedRegion>,
    condition: RawValue,
    forwarded: Vec<RawValue>,
    after: Vec<RawValue>,
    /// Whether all lanes of a warp have the same condition.
    together: bool,
    entered: bool,
}

/// Begins a run-time `while` or `loop`: what follows up to [`while_cond`] is its condition.
#[track_caller]
pub fn while_begin(slots: &mut [Slot<'_>]) -> While {
    let loc = Location::caller();
    let init = read_all(slots);
    let carried = types(&flatten(&init));
    let before = trace::with(|t| t.open_loop(&carried, loc)).unwrap_or_else(|| vec![RawValue::DEAD; carried.len()]);
    write_all(slots, &init, &before);
    uniform::mark(slots, &init, &before);
    While {
        loc,
        init,
        before,
        condition_region: None,
        condition: RawValue::DEAD,
        forwarded: Vec::new(),
        after: Vec::new(),
        together: true,
        entered: false,
    }
}

impl While {
    /// True once, as [`For::enter`].
    pub fn enter(&mut self) -> bool {
        !std::mem::replace(&mut self.entered, true)
    }
}

/// Ends the condition and begins the body.
#[track_caller]
pub fn while_cond<C: RtCond>(open: &mut While, condition: C, slots: &mut [Slot<'_>]) {
    open.condition = condition.condition().raw();
    open.together = trace::is_uniform(open.condition);
    let now = read_all(slots);
    check_host(slots, &open.init, &now, "the condition of a run-time loop", open.loc);
    open.forwarded = flatten(&now);
    let carried = types(&open.forwarded);
    open.condition_region = trace::with(Trace::close_region).flatten();
    open.after =
        trace::with(|t| t.open_loop(&carried, open.loc)).unwrap_or_else(|| vec![RawValue::DEAD; carried.len()]);
    write_all(slots, &open.init, &open.after);
    uniform::mark(slots, &open.init, &open.after);
}

/// Ends a run-time `while` or `loop`. `exits` says, after the body, whether it left.
#[track_caller]
pub fn while_end(open: While, exits: &[Bool], slots: &mut [Slot<'_>]) {
    let loc = open.loc;
    let last = read_all(slots);
    if !check_host(slots, &open.init, &last, "a run-time loop", loc) {
        trace::with(Trace::close_region);
        return;
    }
    let (initial, yielded) = (flatten(&open.init), flatten(&last));
    if exits.is_empty() && trace::with(|t| t.known(open.condition)).flatten() == Some(1) {
        trace::with(|t| {
            t.error(
                Diagnostic::error("this loop cannot end")
                    .at(SourceLocation::from_caller(loc))
                    .label("no `break` leaves it")
                    .help("add a `break` under a run-time condition, or count with `range`"),
            );
        });
    }
    let left = (!exits.is_empty()).then(|| any(exits, loc));
    let together = open.together && left.is_none_or(|left| trace::is_uniform(left.raw()));
    let known = if exits.is_empty() { Vec::new() } else { uniform::agreements(&yielded) };
    let While { before, condition_region, condition, forwarded, after, .. } = open;
    let kept = Differing::between(&forwarded, &before).or(&Differing::between(&yielded, &after));
    let results = trace::with(|t| {
        let Some(condition_region) = condition_region else { return initial.clone() };
        let passed = kept.pick(&initial);
        let carried: Vec<_> = passed.iter().map(|value| t.type_of(*value).unwrap_or(IrType::BOOL)).collect();
        let mut values: Vec<_> = left.iter().map(|left| left.raw()).collect();
        values.extend(kept.pick(&yielded));
        yield_values(t, &values, loc);
        let body = t.close_region();
        if let Some(body) = &body {
            drop_arguments(t, &body.block, 0, &after, &initial, &kept, loc);
        }
        drop_arguments(t, &condition_region.block, 0, &before, &initial, &kept, loc);
        let mut tested = vec![condition];
        tested.extend(kept.pick(&forwarded));

        let mut operands = Vec::new();
        let test = if left.is_some() {
            // After an early exit the condition is not evaluated again: it moves into an `if`.
            operands.push(t.constant(ScalarType::Bool, Constant::Int(0), loc));
            let mut argument_types = vec![IrType::BOOL];
            argument_types.extend(&carried);
            let ([gone], outer) = split_first(t.open_region(&argument_types, loc));
            let go = t.not(gone, loc);
            t.open_region(&[], loc);
            let mut skipped = vec![t.constant(ScalarType::Bool, Constant::Int(0), loc)];
            skipped.extend(&outer);
            yield_values(t, &skipped, loc);
            let skip = t.close_region();
            let all = Differing(vec![false; outer.len()]);
            drop_arguments(t, &condition_region.block, 0, &kept.pick(&before), &outer, &all, loc);
            t.reopen_region(condition_region);
            yield_values(t, &tested, loc);
            let test = t.close_region();
            let mut result_types = vec![IrType::BOOL];
            result_types.extend(&carried);
            let regions = vec![region_of(test), region_of(skip)];
            let tested = t.emit_with_regions("scf.if", &[go], &result_types, &[], regions, loc);
            t.emit("scf.condition", &tested, &[], &[], loc);
            t.close_region()
        } else {
            t.reopen_region(condition_region);
            t.emit("scf.condition", &tested, &[], &[], loc);
            t.close_region()
        };
        operands.extend(passed);
        let regions = vec![region_of(test), region_of(body)];
        let results = t.emit_with_regions("scf.while", &operands, &carried, &[], regions, loc);
        kept.merge(&initial, results)
    })
    .unwrap_or_default();
    let together = together || in_one_lane();
    Parting::Loop.check(slots, &open.init, &kept, together, &results, loc);
    if together {
        uniform::mark_flags(slots, &open.init, &known, &results);
    }
    write_all(slots, &open.init, &results);
}

fn in_one_lane() -> bool {
    trace::with(|t| t.in_one_lane()).unwrap_or(true)
}
