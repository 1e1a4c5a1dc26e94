//! Which integers addresses are made of: the sums and products among them are tested for overflow.
//!
//! The search goes from addresses back to where their indices come from, through sums, products, conversions and what
//! loops and branches pass on. It ends at operations that mix bits (`%`, `&`, `^`, `|`, `>>`, `/`): what wraps before
//! those does so on purpose.

use std::collections::HashMap;

use lacewing_core::mlir::ir::{BlockLike, BlockRef, OperationLike, OperationRef, RegionLike};

use super::lifetime::{ValueKey, value_key};

/// An index that is extended with its sign.
const SIGNED: u8 = 1;
/// One that is extended with zeros.
const UNSIGNED: u8 = 2;

/// The integers that addresses are made of, and as what they are extended.
#[derive(Default)]
pub(crate) struct Indices(HashMap<ValueKey, u8>);

impl Indices {
    /// Searches a function's body.
    pub(crate) fn of(body: &[OperationRef<'_, '_>]) -> Self {
        let mut indices = Self::default();
        // What comes around a loop shows in the next pass.
        while indices.visit_all(body) {}
        indices
    }

    /// Whether an operation's only result is part of an address, and whether that is signed. Where it is used both
    /// ways it counts as signed.
    pub(crate) fn signed(&self, op: &OperationRef<'_, '_>) -> Option<bool> {
        let result = op.result(0).ok().filter(|_| !self.0.is_empty())?;
        self.0.get(&value_key(result)).map(|kind| kind & SIGNED != 0)
    }

    fn kind(&self, value: ValueKey) -> u8 {
        self.0.get(&value).copied().unwrap_or(0)
    }

    /// Adds kinds to a value; whether that says anything new.
    fn add(&mut self, value: Option<ValueKey>, kind: u8) -> bool {
        let Some(value) = value.filter(|_| kind != 0) else { return false };
        let known = self.0.entry(value).or_insert(0);
        let grown = *known | kind != *known;
        *known |= kind;
        grown
    }

    fn visit_block(&mut self, block: BlockRef<'_, '_>) -> bool {
        let ops: Vec<OperationRef<'_, '_>> =
            std::iter::successors(block.first_operation(), |op| op.next_in_block()).collect();
        self.visit_all(&ops)
    }

    fn visit_all(&mut self, ops: &[OperationRef<'_, '_>]) -> bool {
        // From uses to definitions.
        ops.iter().rev().fold(false, |grown, op| self.visit(op) | grown)
    }

    fn visit(&mut self, op: &OperationRef<'_, '_>) -> bool {
        let operand = |index: usize| op.operand(index).ok().map(value_key);
        let identifier = op.name();
        let Ok(name) = identifier.as_string_ref().as_str() else { return false };
        match name {
            "llvm.getelementptr" if op.operand_count() > 1 => return self.add(operand(1), SIGNED),
            "lw.buffer_load" => return self.add(operand(2), SIGNED),
            "lw.buffer_store" | "lw.buffer_load_lds" => return self.add(operand(3), SIGNED),
            "lw.tma_load" | "lw.tma_store" => {
                // Addresses and maps are no integers; their kinds are never asked for.
                return (0..op.operand_count()).fold(false, |grown, index| self.add(operand(index), SIGNED) | grown);
            }
            _ => {}
        }
        if op.region_count() > 0 {
            return self.visit_regions(op, name);
        }
        // Asking for a result that is not there is slow: the error holds the operation's text.
        if op.result_count() == 0 || self.0.is_empty() {
            return false;
        }
        let Ok(result) = op.result(0) else { return false };
        let kind = self.kind(value_key(result));
        if kind == 0 {
            return false;
        }
        match name {
            "arith.addi" | "arith.subi" | "arith.muli" | "arith.maxsi" | "arith.minsi" | "arith.maxui"
            | "arith.minui" => self.add(operand(0), kind) | self.add(operand(1), kind),
            "arith.shli" | "arith.trunci" | "lw.uniform" | "gpu.shuffle" => self.add(operand(0), kind),
            // One element of a vector is all of it: where another leads is not told apart.
            "vector.extract" | "vector.broadcast" | "vector.splat" => self.add(operand(0), kind),
            "vector.insert" => self.add(operand(0), kind) | self.add(operand(1), kind),
            "vector.from_elements" => {
                (0..op.operand_count()).fold(false, |grown, index| self.add(operand(index), kind) | grown)
            }
            "arith.select" => self.add(operand(1), kind) | self.add(operand(2), kind),
            "arith.extsi" | "arith.index_cast" => self.add(operand(0), SIGNED),
            "arith.extui" | "arith.index_castui" => self.add(operand(0), UNSIGNED),
            _ => false,
        }
    }

    /// What regions yield, and what goes around.
    fn visit_regions(&mut self, op: &OperationRef<'_, '_>, name: &str) -> bool {
        let mut grown = false;
        let results: Vec<u8> = (0..op.result_count())
            .map(|index| op.result(index).map_or(0, |result| self.kind(value_key(result))))
            .collect();
        let block_of = |index: usize| op.region(index).ok().and_then(|region| region.first_block());
        let last = |block: BlockRef<'_, '_>, skip: usize| -> Vec<ValueKey> {
            block.terminator().map(|last| last.operands().skip(skip).map(value_key).collect()).unwrap_or_default()
        };
        match name {
            "scf.for" => {
                let Some(body) = block_of(0) else { return false };
                let yields = last(body, 0);
                for (index, &kind) in results.iter().enumerate() {
                    let argument = body.argument(1 + index).ok().map(value_key);
                    let kind = kind | argument.map_or(0, |argument| self.kind(argument));
                    grown |= self.add(argument, kind);
                    grown |= self.add(yields.get(index).copied(), kind);
                    grown |= self.add(op.operand(3 + index).ok().map(value_key), kind);
                }
                let variable = body.argument(0).ok().map_or(0, |variable| self.kind(value_key(variable)));
                grown |= self.add(op.operand(0).ok().map(value_key), variable);
            }
            "scf.while" => {
                let (Some(before), Some(after)) = (block_of(0), block_of(1)) else { return false };
                let (forwarded, yields) = (last(before, 1), last(after, 0));
                for (index, &value) in forwarded.iter().enumerate() {
                    let argument = after.argument(index).ok().map(value_key);
                    let kind =
                        results.get(index).copied().unwrap_or(0) | argument.map_or(0, |argument| self.kind(argument));
                    grown |= self.add(Some(value), kind);
                }
                for index in 0..before.argument_count() {
                    let kind = before.argument(index).ok().map_or(0, |argument| self.kind(value_key(argument)));
                    grown |= self.add(yields.get(index).copied(), kind);
                    grown |= self.add(op.operand(index).ok().map(value_key), kind);
                }
            }
            _ => {
                for region in 0..op.region_count() {
                    let Some(block) = block_of(region) else { continue };
                    for (value, &kind) in last(block, 0).into_iter().zip(&results) {
                        grown |= self.add(Some(value), kind);
                    }
                }
            }
        }
        for region in (0..op.region_count()).rev() {
            if let Some(block) = block_of(region) {
                grown |= self.visit_block(block);
            }
        }
        grown
    }
}
