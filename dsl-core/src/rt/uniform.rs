//! What run-time control flow leaves uniform.
//!
//! A variable that is uniform by its type may differ between lanes once some of them have gone another way. So a
//! branch or a loop that changes it needs a condition, or bounds, that the lanes agree on; what they then leave in the
//! variable is uniform again.

use super::control::Differing;
use super::state::{Slot, Snapshot, uniform_values};
use crate::Diagnostic;
use crate::trace::{self, Agreement, Loc, RawValue};

/// Where lanes may part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parting {
    Branch,
    Loop,
    Select,
}

impl Parting {
    fn refusal(self, name: &str) -> Diagnostic {
        let (message, label) = match self {
            Self::Branch => (
                format!("{name} is uniform, but changes under a condition that lanes of a warp may not agree on"),
                "lanes can go on from here with different values",
            ),
            Self::Loop => (
                format!("{name} is uniform, but changes in a loop that lanes of a warp may not leave together"),
                "lanes can leave this loop with different values",
            ),
            Self::Select => (
                format!("{name} is uniform, but chosen by a condition that lanes of a warp may not agree on"),
                "lanes can get different values here",
            ),
        };
        let help = match self {
            Self::Loop => {
                "make its bounds, and all conditions that end it, uniform: `range(uniform(n))`, or `elect_one()` around it"
            }
            _ => "make the condition a `Uniform<Bool>`: compute it from uniform values, or write `uniform(condition)`",
        };
        Diagnostic::error(message).label(label).help(help)
    }

    /// Refuses uniform variables and results that differ where lanes may part, and marks them as uniform.
    ///
    /// `slots` and `shape` are the variables, `merged` what all of them are from here on, and `changes` which of those
    /// are changed. A snapshot without a slot is the construct's own result.
    pub(super) fn check(
        self,
        slots: &[Slot<'_>],
        shape: &[Snapshot],
        changes: &Differing,
        together: bool,
        merged: &[RawValue],
        loc: Loc,
    ) {
        for (position, number) in uniform_values(shape) {
            if !changes.at(position) {
                continue;
            }
            if !together {
                let name = match slots.get(number).map(|slot| slot.name) {
                    Some(name) if !name.is_empty() => format!("`{name}`"),
                    _ => "the result".to_owned(),
                };
                trace::error(loc, self.refusal(&name));
            }
            if let Some(value) = merged.get(position) {
                trace::set_agreement(*value, Agreement::EVIDENT);
            }
        }
    }
}

/// The positions of the expansion's own flags among all values of some variables.
fn flags(slots: &[Slot<'_>], shape: &[Snapshot]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut first = 0;
    for (slot, snapshot) in slots.iter().zip(shape) {
        if matches!(slot.name, "break" | "continue" | "return") {
            found.push(first);
        }
        first += snapshot.values.len();
    }
    found
}

/// Says of the arguments of a loop's region which are uniform: by their type, or because they are flags, which are false
/// in all lanes that come to the start of a round.
pub(super) fn mark(slots: &[Slot<'_>], shape: &[Snapshot], arguments: &[RawValue]) {
    let by_type = uniform_values(shape).into_iter().map(|(position, _)| position);
    for position in by_type.chain(flags(slots, shape)) {
        if let Some(value) = arguments.get(position) {
            trace::set_agreement(*value, Agreement::EVIDENT);
        }
    }
}

/// Says of the flags that a loop leaves which are uniform: those that lanes set together, where they leave together.
/// `known` is what is known of each variable at the end of a round.
pub(super) fn mark_flags(slots: &[Slot<'_>], shape: &[Snapshot], known: &[Agreement], results: &[RawValue]) {
    for position in flags(slots, shape) {
        if let (Some(known), Some(value)) = (known.get(position), results.get(position))
            && known.has(Agreement::UNIFORM)
        {
            trace::set_agreement(*value, *known);
        }
    }
}

/// What is known of some values.
pub(super) fn agreements(values: &[RawValue]) -> Vec<Agreement> {
    trace::with(|t| values.iter().map(|value| t.agreement(*value)).collect()).unwrap_or_default()
}
