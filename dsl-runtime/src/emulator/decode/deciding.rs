//! What decides how long a `while` goes on: the part of its state that its condition depends on, now or in a later
//! round.

use std::collections::{HashMap, HashSet};

use lacewing_core::dialect::{self, Effects};
use lacewing_core::mlir::ir::{BlockLike, OperationLike, OperationRef, RegionLike};

use super::lifetime::{ValueKey, op_key, op_name, value_key};

/// How a value inside the loop is made.
#[derive(Clone, Copy)]
enum Made<'c, 'a> {
    /// A result of an operation.
    Result(OperationRef<'c, 'a>, usize),
    /// An argument of a region of an operation.
    Argument(OperationRef<'c, 'a>, usize, usize),
}

/// Numbers of the states on which the condition of a `scf.while` depends. `None` where it depends on memory that others may
/// change; `stays` tells of which addresses nobody writes what lies there.
pub(crate) fn deciding<'c: 'a, 'a>(op: &OperationRef<'c, 'a>, stays: impl Fn(ValueKey) -> bool) -> Option<Vec<usize>> {
    let mut made = HashMap::new();
    note(op, &mut made);
    let mut states = Vec::new();
    let mut visited = HashSet::new();
    let mut open = vec![terminator_operand(op, 0, 0)?];
    while let Some(key) = open.pop() {
        // What is made outside the loop is the same in every round.
        let Some(made) = made.get(&key).filter(|_| visited.insert(key)) else { continue };
        match *made {
            Made::Argument(of, 0, index) if op_key(&of) == op_key(op) => {
                states.push(index);
                // The initial value is made outside.
                open.push(terminator_operand(op, 1, index)?);
            }
            Made::Argument(of, region, index) => argument(&of, region, index, &mut open)?,
            Made::Result(of, index) => result(&of, index, &stays, &mut open)?,
        }
    }
    states.sort_unstable();
    Some(states)
}

/// Notes what is made in the regions of an operation.
fn note<'c: 'a, 'a>(op: &OperationRef<'c, 'a>, made: &mut HashMap<ValueKey, Made<'c, 'a>>) {
    for (number, region) in op.regions().enumerate() {
        let Some(block) = region.first_block() else { continue };
        for index in 0..block.argument_count() {
            if let Ok(argument) = block.argument(index) {
                made.insert(value_key(argument), Made::Argument(*op, number, index));
            }
        }
        let mut current = block.first_operation();
        while let Some(inner) = current {
            made.extend(
                inner.results().enumerate().map(|(index, result)| (value_key(result), Made::Result(inner, index))),
            );
            note(&inner, made);
            current = inner.next_in_block();
        }
    }
}

/// Adds what a result of an operation is made of; `None` where that is memory that may change, or not known.
fn result(
    op: &OperationRef<'_, '_>,
    index: usize,
    stays: impl Fn(ValueKey) -> bool,
    open: &mut Vec<ValueKey>,
) -> Option<()> {
    let name = op_name(op);
    match name.as_str() {
        "scf.if" => {
            open.extend([operand(op, 0)?, terminator_operand(op, 0, index)?, terminator_operand(op, 1, index)?])
        }
        "scf.for" => {
            bounds(op, open)?;
            open.extend([operand(op, 3 + index)?, terminator_operand(op, 0, index)?]);
        }
        "scf.while" => open.extend([terminator_operand(op, 0, 0)?, terminator_operand(op, 0, 1 + index)?]),
        "lw.load" | "lw.load_masked" if operand(op, 0).is_some_and(&stays) => {
            open.extend(op.operands().map(value_key));
        }
        _ => {
            // Lanes that vote or are elected depend on the lanes' values alone.
            let votes = matches!(name.as_str(), "lw.ballot" | "lw.elect");
            let pure = dialect::row(&name).is_none_or(|row| row.effects == Effects::Pure);
            if op.region_count() > 0 || !(pure || votes) {
                return None;
            }
            open.extend(op.operands().map(value_key));
        }
    }
    Some(())
}

/// The same for an argument of a region.
fn argument(op: &OperationRef<'_, '_>, region: usize, index: usize, open: &mut Vec<ValueKey>) -> Option<()> {
    match (op_name(op).as_str(), region, index.checked_sub(1)) {
        ("scf.for", _, None) => bounds(op, open)?,
        ("scf.for", _, Some(carried)) => open.extend([operand(op, 3 + carried)?, terminator_operand(op, 0, carried)?]),
        ("scf.while", 0, _) => open.extend([operand(op, index)?, terminator_operand(op, 1, index)?]),
        ("scf.while", _, _) => open.push(terminator_operand(op, 0, 1 + index)?),
        _ => return None,
    }
    Some(())
}

/// Start, end and step of a `scf.for`.
fn bounds(op: &OperationRef<'_, '_>, open: &mut Vec<ValueKey>) -> Option<()> {
    open.extend([operand(op, 0)?, operand(op, 1)?, operand(op, 2)?]);
    Some(())
}

fn operand(op: &OperationRef<'_, '_>, index: usize) -> Option<ValueKey> {
    // Asking for an operand that is not there is slow: the error holds the operation's text.
    (index < op.operand_count()).then(|| op.operand(index).ok().map(value_key))?
}

/// An operand of the last operation of a region.
fn terminator_operand(op: &OperationRef<'_, '_>, region: usize, index: usize) -> Option<ValueKey> {
    let block = op.region(region).ok()?.first_block()?;
    let mut last = block.first_operation()?;
    while let Some(next) = last.next_in_block() {
        last = next;
    }
    operand(&last, index)
}
