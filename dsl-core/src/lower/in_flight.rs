//! Waiting for products of warpgroups: what keeps LLVM from reading an accumulator before the wait.
//!
//! Assembly with side effects stays in order; arithmetic does not, and only the data that it reads holds it back. To pass each
//! accumulator through the wait does that, at the price of two copies and two operands each, which LLVM then merges again: for 128
//! accumulators that is more than all else that a kernel does to them. One that is only handed on to later products, which are
//! assembly, need not be held back at all. Where it is multiplied, as outputs of attention are by one factor a row, to hold back the
//! factor is enough.

use std::collections::{HashMap, HashSet};

use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, RegionLike};

use super::build::{Builder, F32, Op, Val, integer, maker, operand, refuse, result, type_of};
use super::hopper::assembly;
use crate::Error;
use crate::mlir::{identity, internal, name_of, set_operand, uses};

/// A multiplication that reads an accumulator, and which of its operands is the other factor.
type Product<'m> = (Op<'m>, usize);

/// A wait, with what must be held back passed through it; gives the values of its results.
pub(super) fn wait<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let count = op.result_count();
    if op.operand_count() != count {
        return Err(refuse(op, "a wait with the wrong number of values", "this is a fault in the trace"));
    }
    let unflagged = b.attr("#arith.fastmath<none>")?;
    let mut values = (0..count).map(|index| operand(op, index)).collect::<Result<Vec<_>, _>>()?;
    let (mut held, mut multiplied, mut earlier) = (Vec::new(), Vec::new(), Vec::new());
    for (index, value) in values.iter().enumerate() {
        if !may_be_in_flight(*value) {
            // Nothing but the order of the trace: what makes it comes before the wait.
            earlier.push(*value);
            continue;
        }
        match products(result(op, index)?, unflagged)? {
            None => held.push(index),
            Some(found) if !found.is_empty() => multiplied.push((index, found)),
            Some(_) => {}
        }
    }
    // In the order of the trace, so that the text is always the same.
    let mut groups: Vec<Vec<Product<'m>>> = Vec::new();
    let mut places: HashMap<(usize, usize), usize> = HashMap::new();
    for (op, factor) in multiplied.iter().flat_map(|(_, found)| found) {
        let place = *places.entry(group(*op, *factor)?).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push((*op, *factor)),
            None => groups.push(vec![(*op, *factor)]),
        }
    }
    if 2 * groups.len() > multiplied.len() {
        // Almost as many factors as accumulators.
        groups.clear();
        held.extend(multiplied.iter().map(|(index, _)| *index));
        held.sort_unstable();
    }

    let mut operands: Vec<_> = held.iter().filter_map(|index| values.get(*index).copied()).collect();
    let mut constraints = vec!["=f".to_owned(); held.len()];
    constraints.extend((0..held.len()).map(|index| index.to_string()));
    constraints.extend(earlier.iter().map(|_| "f".to_owned()));
    operands.extend(earlier);
    constraints.push("~{memory}".to_owned());
    let text = format!("wgmma.wait_group.sync.aligned {};", integer(op, "groups")?);
    let outputs = assembly(b, &text, &constraints.join(","), &operands, held.len())?;
    for (index, output) in held.into_iter().zip(outputs) {
        if let Some(value) = values.get_mut(index) {
            *value = output;
        }
    }
    for products in &groups {
        hold_back(b, products)?;
    }
    Ok(values)
}

/// Whether a value may be a product's: it is one's result, as such or after lowering, or came through a loop or a branch.
fn may_be_in_flight(value: Val<'_>) -> bool {
    let Some(op) = maker(value) else { return true };
    let name = name_of(op);
    name.starts_with("scf.") || name.starts_with("lw.") || matches!(name, "llvm.extractvalue" | "llvm.inline_asm")
}

/// The multiplications that read what a value becomes in loops and branches, where nothing else does but later products and
/// waits.
fn products<'m>(value: Val<'m>, unflagged: Attribute<'m>) -> Result<Option<Vec<Product<'m>>>, Error> {
    let (mut seen, mut open) = (HashSet::from([identity(value)]), vec![value]);
    let mut products = Vec::new();
    while let Some(value) = open.pop() {
        for (op, index) in uses(value) {
            let parent = || op.parent_operation().ok_or_else(|| internal("an op outside an op", vec![]));
            let onward = match name_of(op) {
                "arith.mulf" if index < 2 && needs_both(op, unflagged)? => {
                    products.push((op, 1 - index));
                    continue;
                }
                // In order by itself: a later product, or one that comes around a loop and has been lowered already.
                "lw.wgmma" => continue,
                "llvm.inline_asm" if op.has_attribute("has_side_effects") => continue,
                "lw.wgmma_wait" => vec![result(op, index)?],
                "scf.for" if index >= 3 => vec![argument(op, 0, index - 2)?, result(op, index - 3)?],
                "scf.while" => vec![argument(op, 0, index)?],
                "scf.condition" if index >= 1 => {
                    vec![argument(parent()?, 1, index - 1)?, result(parent()?, index - 1)?]
                }
                "scf.yield" => match name_of(parent()?) {
                    "scf.if" => vec![result(parent()?, index)?],
                    "scf.for" => vec![argument(parent()?, 0, index + 1)?, result(parent()?, index)?],
                    "scf.while" => vec![argument(parent()?, 0, index)?],
                    _ => return Ok(None),
                },
                _ => return Ok(None),
            };
            open.extend(onward.into_iter().filter(|value| seen.insert(identity(*value))));
        }
    }
    Ok(Some(products))
}

/// Whether LLVM computes a product from both factors alone. With flags it may multiply by something else first, and it takes the sign
/// of a product to a factor.
fn needs_both<'m>(op: Op<'m>, unflagged: Attribute<'m>) -> Result<bool, Error> {
    if type_of(operand(op, 0)?)? != F32 || op.attribute("fastmath").is_ok_and(|flags| flags != unflagged) {
        return Ok(false);
    }
    Ok(uses(result(op, 0)?).into_iter().all(|(user, _)| !matches!(name_of(user), "arith.negf" | "arith.subf")))
}

/// An argument of the first block of a region.
fn argument<'m>(op: Op<'m>, region: usize, index: usize) -> Result<Val<'m>, Error> {
    let block = op.region(region).ok().and_then(|region| region.first_block());
    let argument = block.and_then(|block| block.argument(index).ok());
    argument.map(Into::into).ok_or_else(|| refuse(op, "a loop that lacks a value", "this is a fault in the trace"))
}

/// Products of one factor in one block, by the identity of both.
fn group(op: Op<'_>, factor: usize) -> Result<(usize, usize), Error> {
    let block = op.block().ok_or_else(|| internal("an op outside a block", vec![]))?;
    Ok((block.to_raw().ptr as usize, identity(operand(op, factor)?)))
}

/// Passes the factor that products of one block share through assembly, which stays behind the wait, before the first of them.
fn hold_back<'m>(b: &Builder<'m>, products: &[Product<'m>]) -> Result<(), Error> {
    let first = products.iter().copied().reduce(|a, b| if b.0.is_before_in_block(a.0) { b } else { a });
    let Some((first, index)) = first else { return Ok(()) };
    let guarded = assembly(&b.ahead_of(first)?, "", "=f,0,~{memory}", &[operand(first, index)?], 1)?;
    for (op, index) in products {
        for value in &guarded {
            set_operand(*op, *index, *value);
        }
    }
    Ok(())
}
