//! What decides how long a `while` goes on: the part of its state that its condition depends on, now or in a later
//! round.

use std::collections::HashMap;

use lacewing_core::dialect::{self, Effects};
use lacewing_core::mlir::ir::{BlockLike, OperationLike, OperationRef, RegionLike};

use super::lifetime::{ValueKey, op_key, op_name, value_key};

/// How a value inside the loop is made.
#[derive(Clone, Copy)]
enum Made<'c, 'a> {
    /// A state of the condition's region.
    Before(usize),
    /// A state of the body.
    After(usize),
    /// By an operation of either region, or inside it.
    By(OperationRef<'c, 'a>),
}

/// Numbers of the states on which the condition of a `scf.while` depends. `None` where it depends on memory, which
/// others may change.
pub(crate) fn deciding(op: &OperationRef<'_, '_>) -> Option<Vec<usize>> {
    let [before, after] = [0, 1].map(|index| op.region(index).ok().and_then(|region| region.first_block()));
    let (before, after) = (before?, after?);
    let mut made = HashMap::new();
    for index in 0..before.argument_count() {
        made.insert(value_key(before.argument(index).ok()?), Made::Before(index));
    }
    for index in 0..after.argument_count() {
        made.insert(value_key(after.argument(index).ok()?), Made::After(index));
    }
    let mut last = [None, None];
    for (block, last) in [before, after].into_iter().zip(&mut last) {
        let mut current = block.first_operation();
        while let Some(inner) = current {
            note(&inner, inner, &mut made);
            *last = Some(inner);
            current = inner.next_in_block();
        }
    }
    let [Some(condition), Some(repeat)] = last else { return None };

    let mut states = Vec::new();
    let mut visited = Vec::new();
    let mut open: Vec<ValueKey> = vec![value_key(condition.operand(0).ok()?)];
    while let Some(key) = open.pop() {
        // What is made outside the loop is the same in every round.
        match made.get(&key) {
            None => {}
            Some(Made::Before(index)) if states.contains(index) => {}
            Some(Made::Before(index)) => {
                states.push(*index);
                open.push(value_key(repeat.operand(*index).ok()?));
            }
            // The condition's own operand comes first.
            Some(Made::After(index)) => open.push(value_key(condition.operand(index + 1).ok()?)),
            Some(Made::By(op)) if visited.contains(&op_key(op)) => {}
            Some(Made::By(op)) => {
                visited.push(op_key(op));
                if !depends_on_values(op, &mut open) {
                    return None;
                }
            }
        }
    }
    states.sort_unstable();
    Some(states)
}

/// Notes that an operation, and all inside it, belongs to `outer`.
fn note<'c: 'a, 'a>(
    op: &OperationRef<'c, 'a>,
    outer: OperationRef<'c, 'a>,
    made: &mut HashMap<ValueKey, Made<'c, 'a>>,
) {
    made.extend(op.results().map(|result| (value_key(result), Made::By(outer))));
    for region in op.regions() {
        let Some(block) = region.first_block() else { continue };
        for index in 0..block.argument_count() {
            if let Ok(argument) = block.argument(index) {
                made.insert(value_key(argument), Made::By(outer));
            }
        }
        let mut current = block.first_operation();
        while let Some(inner) = current {
            note(&inner, outer, made);
            current = inner.next_in_block();
        }
    }
}

/// Adds what an operation, and all inside it, uses; false where it reads memory.
fn depends_on_values(op: &OperationRef<'_, '_>, open: &mut Vec<ValueKey>) -> bool {
    let name = op_name(op);
    // Lanes that vote or are elected depend on the lanes' values alone.
    let votes = matches!(name.as_str(), "lw.ballot" | "lw.elect");
    let pure = dialect::row(&name).is_none_or(|row| matches!(row.effects, Effects::Pure | Effects::Write));
    if !pure && !votes {
        return false;
    }
    open.extend(op.operands().map(value_key));
    op.regions().filter_map(|region| region.first_block()).all(|block| {
        let mut current = block.first_operation();
        std::iter::from_fn(|| {
            let inner = current?;
            current = inner.next_in_block();
            Some(inner)
        })
        .all(|inner| depends_on_values(&inner, open))
    })
}
