//! Which values may be those of a product under way.
//!
//! The results of `lw.wgmma` are in flight until `lw.wgmma_wait` gives them back. They may pass through loops
//! and branches, and serve as the accumulator of a later product; before any other use a check is emitted.

use std::collections::HashSet;

use lacewing_core::mlir::ir::{BlockLike, OperationLike, OperationRef, RegionLike};

use super::lifetime::{ValueKey, op_name, value_key};

/// The values that may be in flight.
#[derive(Debug, Default)]
pub(crate) struct Flight(HashSet<ValueKey>);

/// Which values a search starts from, and what it goes through beside loops and branches.
struct Rules {
    seeds: &'static [&'static str],
    through: &'static [&'static str],
}

const IN_FLIGHT: Rules = Rules { seeds: &["lw.wgmma"], through: &[] };
/// Sums, rescaled or not.
const ACCUMULATORS: Rules =
    Rules { seeds: &["lw.wgmma", "lw.wgmma_wait"], through: &["arith.mulf", "arith.select", "math.fma"] };

impl Flight {
    /// Finds them in the operations of a function's body.
    pub(crate) fn of(body: &[OperationRef<'_, '_>]) -> Self {
        Self::search(body, &IN_FLIGHT)
    }

    /// Finds the accumulators of products, in flight or not.
    pub(crate) fn accumulators(body: &[OperationRef<'_, '_>]) -> Self {
        Self::search(body, &ACCUMULATORS)
    }

    fn search(body: &[OperationRef<'_, '_>], rules: &Rules) -> Self {
        let mut flight = Self::default();
        if body.iter().any(has_product) {
            // A value that comes around a loop shows in the next pass.
            let mut grown = true;
            while grown {
                grown = false;
                for op in body {
                    grown |= flight.visit(op, rules);
                }
            }
        }
        flight
    }

    /// Whether a value may be in flight.
    pub(crate) fn contains(&self, value: ValueKey) -> bool {
        self.0.contains(&value)
    }

    /// Whether none is.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn pass(&mut self, from: ValueKey, to: ValueKey) -> bool {
        self.0.contains(&from) && self.0.insert(to)
    }

    /// One pass over an operation; whether a value was added.
    fn visit(&mut self, op: &OperationRef<'_, '_>, rules: &Rules) -> bool {
        let name = op_name(op);
        let mut grown = false;
        let passes_on =
            rules.through.contains(&name.as_str()) && op.operands().any(|operand| self.0.contains(&value_key(operand)));
        if passes_on || rules.seeds.contains(&name.as_str()) {
            for result in op.results() {
                grown |= self.0.insert(value_key(result));
            }
        }
        for (index, region) in op.regions().enumerate() {
            let Some(block) = region.first_block() else { continue };
            let mut current = block.first_operation();
            let mut last = None;
            while let Some(inner) = current {
                grown |= self.visit(&inner, rules);
                last = Some(inner);
                current = inner.next_in_block();
            }
            let Some(last) = last else { continue };
            // Where the values of the terminator and of the operation's operands go.
            let argument = |i: usize| block.argument(i).ok().map(value_key);
            let result = |i: usize| op.result(i).ok().map(value_key);
            for (i, operand) in last.operands().enumerate() {
                let from = value_key(operand);
                let targets = match (name.as_str(), index) {
                    ("scf.for", _) => [argument(i + 1), result(i)],
                    // The condition comes first.
                    ("scf.while", 0) => {
                        let carried = i.checked_sub(1);
                        let body = op.region(1).ok().and_then(|region| region.first_block());
                        let argument = carried.and_then(|i| body.and_then(|body| body.argument(i).ok()).map(value_key));
                        [argument, carried.and_then(result)]
                    }
                    ("scf.while", _) => {
                        let before = op.region(0).ok().and_then(|region| region.first_block());
                        [before.and_then(|before| before.argument(i).ok()).map(value_key), None]
                    }
                    _ => [result(i), None],
                };
                for to in targets.into_iter().flatten() {
                    grown |= self.pass(from, to);
                }
            }
            let entry = match (name.as_str(), index) {
                ("scf.for", _) => Some((3, 1)),
                ("scf.while", 0) => Some((0, 0)),
                _ => None,
            };
            if let Some((first_operand, first_argument)) = entry {
                for (i, operand) in op.operands().skip(first_operand).enumerate() {
                    if let Some(to) = argument(first_argument + i) {
                        grown |= self.pass(value_key(operand), to);
                    }
                }
            }
        }
        grown
    }
}

fn has_product(op: &OperationRef<'_, '_>) -> bool {
    if op_name(op) == "lw.wgmma" {
        return true;
    }
    op.regions()
        .filter_map(|region| region.first_block())
        .any(|block| std::iter::successors(block.first_operation(), |op| op.next_in_block()).any(|op| has_product(&op)))
}
