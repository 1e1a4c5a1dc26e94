//! Broken rules in the user's words.

use super::exec::access::AccessError;
use super::exec::collective::BadSource;
use super::exec::dimensions::marked;
use super::exec::numbers::{NumberFault, Rule};
use super::exec::warp::{Action, Fault, FaultKind, Warp};
use super::memory::{AccessFault, GlobalMemory};
use super::op::{Access, Op, Pc};
use super::program::Program;
use super::report::{Address, Report, ReportKind};
use super::schedule::{BlockFailure, Position, Status, blamed};

/// Position `linear` of a box, x fastest.
pub(crate) fn unflatten(linear: u64, dims: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = dims.map(|n| u64::from(n.max(1)));
    [(linear % x) as u32, (linear / x % y) as u32, (linear / (x * y)) as u32]
}

/// What a report may look at.
pub(crate) struct Scene<'a> {
    pub(crate) program: &'a Program,
    pub(crate) global: GlobalMemory<'a>,
    pub(crate) warps: &'a [Warp],
    pub(crate) block: [u32; 3],
    pub(crate) grid: [u32; 3],
}

impl Scene<'_> {
    /// The report of a block that failed.
    pub(crate) fn report(&self, failure: &BlockFailure) -> Report {
        match failure {
            BlockFailure::Fault { warp, fault } => self.fault(*warp, fault),
            BlockFailure::Stuck { positions } => self.stuck(positions),
            BlockFailure::Late(fault) => self.late(fault),
            BlockFailure::NamedMismatch { warp, pc, id, threads, barrier } => {
                let message = format!(
                    "named barrier {id} is reached with {threads} threads while {} of {} have arrived",
                    barrier.arrived, barrier.expected
                );
                let mut report = self.at(ReportKind::Deadlock, message, *pc);
                report.warp = Some(*warp);
                report.help = Some("every sync and arrive of a phase must give the same number of threads".into());
                report
            }
        }
    }

    pub(super) fn at(&self, kind: ReportKind, message: String, pc: Pc) -> Report {
        let mut report = Report::new(kind, &self.program.name, message);
        let place = self.program.place(pc);
        report.location = place.location;
        report.call_chain = place.call_chain;
        report.block = Some(self.block);
        report
    }

    fn fault(&self, warp: u32, fault: &Fault) -> Report {
        match &fault.kind {
            FaultKind::At { pc, kind } => self.fault_at(warp, fault, *pc, kind),
            kind => self.fault_of(warp, fault.pc, fault.lane, kind),
        }
    }

    /// The report of a fault of an operation.
    pub(super) fn fault_of(&self, warp: u32, pc: Pc, lane: u32, kind: &FaultKind) -> Report {
        let width = self.program.target.warp_size();
        let mut report = match kind {
            FaultKind::Access { error, access, shared, action } => {
                let shape = *self.program.access(*access);
                let mut report = self.access(pc, error, *shared, *action, &shape);
                if let Some((number, _)) = marked(error.address).filter(|_| !shared) {
                    self.beyond(&mut report, (warp, lane), number, *action);
                }
                report
            }
            FaultKind::DivisionByZero => self.at(ReportKind::DivisionByZero, "integer division by zero".into(), pc),
            FaultKind::Assert { text } => self.at(ReportKind::AssertFailed, format!("assertion failed: {text}"), pc),
            FaultKind::OpBudget { executed } => {
                let message = format!("a warp has executed {executed} operations: this loop seems not to end");
                let mut report = self.at(ReportKind::OpBudget, message, pc);
                report.help =
                    Some("raise `Checks::op_budget` (`--op-budget`) if the loop is meant to be this long".into());
                report
            }
            FaultKind::Stuck { executed } => {
                let message = "this loop cannot end: all that its condition depends on is as it was some rounds before";
                let mut report = self.at(ReportKind::OpBudget, message.to_owned(), pc);
                report.notes.push(format!("found after {executed} operations of the warp"));
                report.help = Some("change what the condition depends on in every round".into());
                report
            }
            FaultKind::LoopStep { step } => {
                let message = format!("the loop's step is {step}: it must be positive");
                self.at(ReportKind::LoopStep, message, pc)
            }
            FaultKind::BadRead(source) => self.bad_read(pc, *source),
            FaultKind::DivergentBarrier { missing } => {
                let message = "a barrier that only part of a warp reaches".to_owned();
                let mut report = self.at(ReportKind::DivergentBarrier, message, pc);
                report.notes.push(format!("lanes {} are elsewhere", lanes(*missing)));
                report.help = Some("move the barrier out of the divergent branch or loop".into());
                report
            }
            FaultKind::Async(broken) => self.async_fault(warp, pc, broken),
            FaultKind::At { pc, kind } => return self.fault_of(warp, *pc, lane, kind),
            FaultKind::OfBlock { rank, kind } => return self.of_block(*rank, self.fault_of(warp, pc, lane, kind)),
            FaultKind::Race { conflict, access, touch } => {
                let shape = *self.program.access(*access);
                self.race((warp, pc), conflict, *touch, &shape)
            }
            FaultKind::BlockRace { conflict, address, access, is_write } => {
                let shape = *self.program.access(*access);
                self.block_race(pc, conflict, *address, &shape, *is_write)
            }
            FaultKind::ThreadRace { conflict, address, access, is_write } => {
                let shape = *self.program.access(*access);
                self.thread_race((warp, pc), conflict, *address, &shape, *is_write)
            }
            FaultKind::CopyInFlight { pc: started } => {
                let message = "an asynchronous copy that is never waited for".to_owned();
                let mut report = self.at(ReportKind::CopyInFlight, message, *started);
                report.notes.push("the warp ends while it is under way".into());
                report.help = Some(match self.lands_at_a_barrier(*started) {
                    true => "a `barrier()` lands it".into(),
                    false => "close its group by `cp_async_commit()` and wait by `cp_async_wait(0)`".into(),
                });
                report
            }
            FaultKind::Endless { low, high, step } => {
                let message = format!("this loop cannot end: it goes from {low} to {high} in steps of {step}");
                let mut report = self.at(ReportKind::OpBudget, message, pc);
                report.notes.push(format!("that is {} iterations", (high - low) / step.max(&1)));
                report.help =
                    Some("raise `Checks::op_budget` (`--op-budget`) if the loop is meant to be this long".into());
                report
            }
            FaultKind::Number(found) => self.number(found),
            FaultKind::Inexact(found) => self.inexact(found),
            FaultKind::PartialWarp { missing } => {
                let message = "a matrix operation that only part of a warp takes part in".to_owned();
                let mut report = self.at(ReportKind::PartialWarp, message, pc);
                if *missing == 0 {
                    report.notes.push("the block's last warp has too few threads".into());
                } else {
                    report.notes.push(format!("lanes {} are elsewhere", lanes(*missing)));
                }
                report
            }
        };
        // A value may have come from another warp, through shared memory.
        let warp = if let FaultKind::Inexact(found) = kind { found.origin.warp } else { warp };
        report.warp = Some(warp);
        report.lane = Some(lane);
        report.thread = Some(unflatten(u64::from(warp * width + lane), self.program.block));
        report
    }

    /// A shuffle from a lane that has nothing to give.
    fn bad_read(&self, pc: Pc, source: BadSource) -> Report {
        let width = self.program.target.warp_size();
        let message = match source {
            BadSource::Inactive(source) => format!("a shuffle reads lane {source}, which does not take part"),
            BadSource::NoLane(lane) => {
                format!("a shuffle reads lane {lane}: a warp of this target has lanes 0 to {}", width - 1)
            }
            BadSource::TooFar(distance) => {
                format!("a shuffle over {distance} lanes: a warp of this target has {width}")
            }
        };
        let mut report = self.at(ReportKind::InactiveLaneRead, message, pc);
        let (note, help) = match source {
            BadSource::Inactive(_) => {
                ("its value is undefined on a GPU", "move the shuffle out of the divergent branch or loop")
            }
            _ => (
                "hardware drops the bits of the number that are too many",
                "keep it below `target().warp_size()`; where it shall wrap around, take it modulo that",
            ),
        };
        report.notes.push(note.into());
        report.help = Some(help.into());
        report
    }

    /// A NaN that reached memory, or an infinity. A division by zero that a NaN came of is the mistake
    /// to show: what follows only carries it on.
    fn number(&self, fault: &NumberFault) -> Report {
        let NumberFault { birth, infinity, stored } = fault;
        let value = if birth.result.is_nan() { "NaN".to_owned() } else { birth.result.to_string() };
        let divided = infinity.as_ref().filter(|cause| cause.rule == Rule::DivisionByZero);
        let mut report = if let Some(cause) = divided {
            let message = format!("division by zero: {} is {}", cause.expression, cause.result);
            let mut report = self.at(ReportKind::DivisionByZero, message, cause.pc);
            report.notes.push(format!("it becomes NaN{}: {}", self.spot(birth.pc), birth.expression));
            report.help = Some(advice(cause.rule).into());
            report
        } else if birth.result.is_nan() {
            let kind = match birth.rule {
                Rule::DivisionByZero => ReportKind::DivisionByZero,
                _ => ReportKind::NotANumber,
            };
            let mut report = self.at(kind, format!("{} is {value}", birth.expression), birth.pc);
            match infinity {
                Some(cause) => report.notes.push(format!(
                    "the infinity was made{}: {} is {}",
                    self.spot(cause.pc),
                    cause.expression,
                    cause.result
                )),
                None if birth.from_infinity => {
                    report
                        .notes
                        .push("no operation of this warp made the infinity: it was loaded, or is a constant".into());
                }
                None => {}
            }
            report.help = Some(advice(birth.rule).into());
            report
        } else {
            let kind = match birth.rule {
                Rule::DivisionByZero => ReportKind::DivisionByZero,
                _ => ReportKind::Infinity,
            };
            let mut report = self.at(kind, format!("{} is {value}", birth.expression), birth.pc);
            report.help = Some("turn the check `inf` off where infinities are meant".into());
            report
        };
        let around = divided.unwrap_or(birth).around.or(birth.around);
        if let Some(state) = around {
            report.notes.push(match state.first {
                Some(true) => format!("in the first iteration of the loop{}", self.spot(state.pc)),
                _ => format!("in the iteration of {} of the loop{}", state.variable, self.spot(state.pc)),
            });
        }
        if let Some(pc) = stored {
            report.notes.push(format!("the NaN leaves the registers{}", self.spot(*pc)));
        }
        report
    }

    /// ` at FILE:LINE:COLUMN`, where it is known.
    pub(super) fn spot(&self, pc: Pc) -> String {
        self.program.place(pc).location.map_or_else(String::new, |location| format!(" at {location}"))
    }

    pub(super) fn shared_address(&self, address: u64, shape: &Access) -> Address {
        let member = self.program.members.get(shape.member as usize);
        let (name, low, high) = member.map_or(("shared memory", 0, 0), |m| (m.name.as_str(), m.low, m.high));
        // Addresses wrap at 32 bits: one before the member is a large number.
        let offset = i64::from((address as u32).wrapping_sub(low) as i32);
        Address { allocation: name.to_owned(), offset, index: index(offset, shape), extent: u64::from(high - low) }
    }

    pub(super) fn global_address(&self, address: u64, shape: &Access) -> Address {
        match self.global.nearest(address) {
            (Some(view), offset) => Address {
                allocation: view.name.to_owned(),
                offset,
                index: index(offset, shape),
                extent: view.bytes as u64,
            },
            (None, _) => Address { allocation: "no buffer".into(), offset: address as i64, index: None, extent: 0 },
        }
    }

    /// An index that leaves its tensor along one dimension.
    fn beyond(&self, report: &mut Report, (warp, lane): (u32, u32), number: u32, action: Action) {
        let Some(dimension) = self.program.dimensions.get(number as usize) else { return };
        let outside = self.warps.get(warp as usize).and_then(|warp| warp.outside.get(number as usize)?.of(lane));
        let name = self.program.parameters.get(dimension.parameter as usize).map_or("", |parameter| &parameter.name);
        let verb = action.verb();
        let along = match dimension.rank {
            1 => String::new(),
            _ => format!(" along dimension {}", dimension.dim),
        };
        let what = match outside {
            // Another address may have been made since this one.
            Some((index, extent)) if !(0..i64::from(extent)).contains(&index) => {
                format!("index {index} of {extent}{along}")
            }
            _ => format!("an index that is too large{along}"),
        };
        report.message = format!("{what}: {verb} outside `{name}`");
        let inside = report.address.as_ref().is_some_and(|a| (0..a.extent as i64).contains(&a.offset));
        if inside && dimension.rank > 1 {
            report.notes.push("the address is that of another element, such as one of the next row".into());
        }
    }

    fn access(&self, pc: Pc, error: &AccessError, shared: bool, action: Action, shape: &Access) -> Report {
        let (fault, raw) = (error.fault, error.address);
        let raw = if shared { raw } else { marked(raw).map_or(raw, |(_, address)| address) };
        let address = if shared { self.shared_address(raw, shape) } else { self.global_address(raw, shape) };
        let verb = action.verb();
        let element = i64::from(shape.element.max(1));
        let what = match address.index {
            Some(index) => format!("index {index} of {}", address.extent as i64 / element),
            None => format!("byte {} of {}", address.offset, address.extent),
        };
        let name = &address.allocation;
        let (space, owner) = if shared { ("shared-memory ", "shared memory") } else { ("", "global memory") };
        let (kind, message) = match fault {
            AccessFault::OutOfBounds => (ReportKind::OutOfBounds, format!("{space}{what}: {verb} outside `{name}`")),
            AccessFault::Misaligned => {
                let by = shape.align;
                (
                    ReportKind::Misaligned,
                    format!("{verb} of `{name}` at byte {}, which is no multiple of {by}", address.offset),
                )
            }
            AccessFault::Uninitialized => {
                (ReportKind::Uninitialized, format!("{verb} of {owner} that nothing wrote: {what} in `{name}`"))
            }
            AccessFault::ReadOnly => {
                (ReportKind::ReadOnly, format!("{verb} of `{name}`, which the kernel takes as read-only"))
            }
        };
        let mut report = self.at(kind, message, pc);
        report.notes.push(format!(
            "`{name}` has {} bytes; the {verb} is of {} bytes at byte {}",
            address.extent, shape.bytes, address.offset
        ));
        if shared && fault == AccessFault::Uninitialized {
            let pending = (0..shape.bytes)
                .find_map(|byte| self.warps.iter().find_map(|w| w.copies.pending_at(raw as u32 + byte)));
            if let Some(pc) = pending {
                let place = self.program.place(pc);
                let place = place.location.map_or_else(String::new, |l| format!(" at {l}"));
                report.notes.push(format!("an asynchronous copy to it was started{place} and has not been waited for"));
                report.help = Some(match self.lands_at_a_barrier(pc) {
                    true => "a `barrier()` lands it".into(),
                    false => "close its group by `cp_async_commit()` and wait by `cp_async_wait(..)`".into(),
                });
            }
        }
        if fault == AccessFault::Uninitialized && report.help.is_none() {
            report.help = Some(match (shared, action) {
                (true, _) if self.has_arrivals() => {
                    "wait before this for what brings it: for the mbarrier of a copy, or for the threads that write it, which \
                     arrive behind their stores"
                        .into()
                }
                (true, _) if self.program.warps() > 1 => {
                    "where other threads write it, put a `barrier()` between their writes and this; else write it before".into()
                }
                (true, _) => "write it before: shared memory begins with nothing".into(),
                (false, Action::Update) => "give it a start: `device.tensor_zeros(..)`, or a kernel before this one".into(),
                (false, _) => "fill the tensor on the host, or by a kernel before this one".into(),
            });
        }
        report.address = Some(address);
        report
    }

    /// Whether the copy that was started there is one straight to LDS.
    fn lands_at_a_barrier(&self, pc: Pc) -> bool {
        let Some(&Op::CopyAsync { table }) = self.program.ops.get(pc as usize) else { return false };
        self.program.copies.get(table as usize).is_some_and(|copy| copy.lds.is_some())
    }

    fn stuck(&self, positions: &[Position]) -> Report {
        let done = positions.iter().any(|p| p.status == Status::Done);
        let waiting = blamed(positions);
        let at_barrier = positions.iter().all(|p| matches!(p.status, Status::Done | Status::Barrier));
        let (kind, message) = match () {
            () if at_barrier && done => {
                (ReportKind::DivergentBarrier, "a barrier that part of the block never reaches".to_owned())
            }
            () if positions.iter().any(|p| p.status == Status::Spins) => {
                let message = "deadlock: this loop waits for memory that no warp is left to write".to_owned();
                (ReportKind::Deadlock, message)
            }
            () => (ReportKind::Deadlock, "deadlock: every warp waits or has ended".to_owned()),
        };
        let first = waiting.or(positions.first());
        let mut report = self.at(kind, message, first.map_or(0, |p| p.pc));
        report.warp = waiting.map(|p| p.warp);
        if let Some(position) = waiting {
            report.help = match position.status {
                Status::Waiting(wait) => self.waiting(position, wait).help,
                Status::Spins => Some("let what the loop waits for be written before the others wait or end".into()),
                _ => None,
            };
        }
        let mut stands: Vec<Stand> = Vec::new();
        let mut unnoticed = Vec::new();
        for position in positions {
            let place = self.program.place(position.pc);
            let place = place.location.map_or_else(|| "an unknown place".to_owned(), |l| l.to_string());
            let (verb, rest) = match position.status {
                Status::Done => (["has", "have"], "ended".to_owned()),
                Status::Spins => (["goes", "go"], format!("round in the loop at {place}, which reads shared memory")),
                Status::Barrier | Status::Ready => (WAITS, format!("at the block's barrier at {place}")),
                Status::Named(id) => {
                    let barrier = position.named;
                    let state = format!("{} of {} threads have arrived", barrier.arrived, barrier.expected);
                    (WAITS, format!("at named barrier {id} at {place}: {state}"))
                }
                Status::Waiting(wait) => {
                    let waiting = self.waiting(position, wait);
                    report.help = report.help.or(waiting.help);
                    unnoticed.extend(waiting.note.filter(|note| !unnoticed.contains(note)));
                    (WAITS, format!("{} at {place}", waiting.text))
                }
            };
            match stands.last_mut() {
                Some(stand) if stand.rank == position.rank && stand.rest == rest => stand.last = position.warp,
                _ => stands.push(Stand { rank: position.rank, first: position.warp, last: position.warp, verb, rest }),
            }
        }
        let in_cluster = self.program.cluster_blocks() > 1;
        report.notes.extend(stands.iter().map(|stand| stand.text(in_cluster)));
        report.notes.extend(unnoticed);
        report
    }
}

const WAITS: [&str; 2] = ["waits", "wait"];

/// Neighbouring warps that stand at one place for one reason.
struct Stand {
    rank: u32,
    first: u32,
    last: u32,
    /// Of one, and of several.
    verb: [&'static str; 2],
    rest: String,
}

impl Stand {
    fn text(&self, in_cluster: bool) -> String {
        let block = if in_cluster { format!("block {} of the cluster, ", self.rank) } else { String::new() };
        let Self { first, last, verb: [of_one, of_several], rest, .. } = self;
        match last - first {
            0 => format!("{block}warp {first} {of_one} {rest}"),
            1 => format!("{block}warps {first} and {last} {of_several} {rest}"),
            _ => format!("{block}warps {first} to {last} {of_several} {rest}"),
        }
    }
}

/// The usual way out of what made a NaN.
fn advice(rule: Rule) -> &'static str {
    match rule {
        Rule::InfinityMinusInfinity => {
            "a row in which all is masked has the maximum -inf: subtract a finite base instead, as in \
             `(max == f32::NEG_INFINITY).select(F32::from(0.0), max)`"
        }
        Rule::TooLargeMinusTooLarge => {
            "a value of +inf was loaded, or grew too large before: keep it finite, as by a scale, by `.min(..)`, or by \
             a wider type"
        }
        Rule::InfinityOverInfinity => {
            "both grew too large before: subtract the maximum before an exponential, scale, or compute in a wider type"
        }
        Rule::ZeroTimesInfinity => {
            "keep infinities out of factors: guard what makes them, or `select` a zero before the product"
        }
        Rule::DivisionByZero => {
            "guard the divisor, as in `(total == 0.0).select(F32::from(1.0), total)`, and `select` the result"
        }
        Rule::Domain => "keep the operand inside the function's domain, or `select` another before the call",
        Rule::Overflow => "scale the operands, or compute in a wider type",
    }
}

fn index(offset: i64, shape: &Access) -> Option<i64> {
    let element = i64::from(shape.element.max(1));
    (offset % element == 0).then_some(offset / element)
}

/// Lanes as ranges, `0-3, 7`.
fn lanes(mask: u64) -> String {
    let mut ranges: Vec<String> = Vec::new();
    let mut lane = 0;
    while lane < 64 {
        let rest = mask >> lane;
        if rest == 0 {
            break;
        }
        let start = lane + rest.trailing_zeros();
        let length = (!(mask >> start)).trailing_zeros();
        ranges.push(if length == 1 { start.to_string() } else { format!("{start}-{}", start + length - 1) });
        lane = start + length;
    }
    ranges.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_lane_ranges() {
        assert_eq!(unflatten(7, [2, 3, 4]), [1, 0, 1]);
        assert_eq!(lanes(0b1000_1111), "0-3, 7");
        assert_eq!(lanes(u64::MAX), "0-63");
        assert_eq!(lanes(1 << 63), "63");
    }
}
