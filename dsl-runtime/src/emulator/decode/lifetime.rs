//! How long each value must keep its slots.
//!
//! Operations are numbered in order; one with regions has a second number at its end. A value lives
//! until its last use, and a use inside a loop that does not contain the definition counts as one at
//! the loop's end. Some values are others under a new name (an element of a vector, a loop's argument
//! that becomes its result): they share slots, and the root lives as long as all of them.

use std::collections::HashMap;

use lacewing_core::mlir::ir::{BlockLike, OperationLike, OperationRef, RegionLike, Value, ValueLike};

use super::types::ValueType;

/// Identity of a value.
pub(crate) type ValueKey = usize;
/// Identity of an operation.
pub(crate) type OpKey = usize;

pub(crate) fn value_key<'c>(value: impl ValueLike<'c>) -> ValueKey {
    value.to_raw().ptr as usize
}

pub(crate) fn op_key(op: &OperationRef<'_, '_>) -> OpKey {
    op.to_raw().ptr as usize
}

pub(crate) fn op_name(op: &OperationRef<'_, '_>) -> String {
    op.name().as_string_ref().as_str().unwrap_or_default().to_owned()
}

/// Where values end.
#[derive(Default)]
pub(crate) struct Lifetimes {
    /// Values whose slots are free after an operation, by its number.
    ends: HashMap<u32, Vec<ValueKey>>,
    /// First and last number of each operation.
    numbers: HashMap<OpKey, (u32, u32)>,
    /// The value whose slots another one shares.
    roots: HashMap<ValueKey, ValueKey>,
}

impl Lifetimes {
    pub(crate) fn number(&self, op: &OperationRef<'_, '_>) -> (u32, u32) {
        self.numbers.get(&op_key(op)).copied().unwrap_or_default()
    }

    /// Values whose slots are free after the operation of that number.
    pub(crate) fn ending_at(&mut self, number: u32) -> Vec<ValueKey> {
        self.ends.remove(&number).unwrap_or_default()
    }

    /// Whether a value is another one under a new name.
    pub(crate) fn is_alias(&self, value: ValueKey) -> bool {
        self.roots.contains_key(&value)
    }

    /// Measures the operations of a function's body.
    pub(crate) fn of<'c: 'a, 'a>(body: &[OperationRef<'c, 'a>]) -> Self {
        let mut scan = Scan::default();
        for op in body {
            scan.operation(op);
        }
        let mut result = scan.result;
        for (value, life) in scan.lives {
            result.ends.entry(life.last).or_default().push(value);
        }
        // Numbers must not depend on the order of a hash map.
        result.ends.values_mut().for_each(|values| values.sort_unstable_by_key(|v| scan.order.get(v).copied()));
        result
    }
}

struct Life {
    last: u32,
    /// Loops around the definition.
    depth: usize,
}

#[derive(Default)]
struct Scan {
    result: Lifetimes,
    lives: HashMap<ValueKey, Life>,
    order: HashMap<ValueKey, usize>,
    next: u32,
    /// For each loop around the scan, the values to keep until its end.
    loops: Vec<Vec<ValueKey>>,
}

impl Scan {
    fn tick(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn define(&mut self, value: ValueKey, last: u32) {
        self.order.insert(value, self.order.len());
        self.lives.insert(value, Life { last, depth: self.loops.len() });
    }

    fn root(&self, value: ValueKey) -> ValueKey {
        self.result.roots.get(&value).copied().unwrap_or(value)
    }

    fn alias(&mut self, value: ValueKey, of: ValueKey) {
        let root = self.root(of);
        self.result.roots.insert(value, root);
    }

    fn use_at(&mut self, value: ValueKey, number: u32) {
        let root = self.root(value);
        let Some(life) = self.lives.get_mut(&root) else { return };
        match self.loops.get_mut(life.depth) {
            Some(kept) => kept.push(root),
            None => life.last = life.last.max(number),
        }
    }

    fn operation(&mut self, op: &OperationRef<'_, '_>) {
        let name = op_name(op);
        let name = name.as_str();
        let start = self.tick();
        for operand in op.operands() {
            self.use_at(value_key(operand), start);
        }
        if op.region_count() == 0 {
            self.result.numbers.insert(op_key(op), (start, start));
            let alias = is_renaming(op, name).then(|| op.operand(0).ok()).flatten();
            for result in op.results() {
                match alias {
                    Some(source) => self.alias(value_key(result), value_key(source)),
                    None => self.define(value_key(result), start),
                }
            }
            return;
        }

        for result in op.results() {
            self.define(value_key(result), start);
        }
        let is_loop = matches!(name, "scf.for" | "scf.while");
        if is_loop {
            self.loops.push(Vec::new());
        }
        for (index, region) in op.regions().enumerate() {
            let Some(block) = region.first_block() else { continue };
            // What becomes a result has the result's slots: a loop's carried arguments, and the
            // arguments of a `while`'s body.
            let shared = match (name, index) {
                ("scf.for", _) => Some(1),
                ("scf.while", 1) => Some(0),
                _ => None,
            };
            for argument in 0..block.argument_count() {
                let Ok(value) = block.argument(argument) else { continue };
                let result = shared.and_then(|skip| argument.checked_sub(skip)).filter(|&i| i < op.result_count());
                let result = result.and_then(|i| op.result(i).ok());
                match result {
                    Some(result) => self.alias(value_key(value), value_key(result)),
                    None => self.define(value_key(value), start),
                }
                // Arguments carry from one iteration to the next.
                self.keep(value_key(value));
            }
            let mut current = block.first_operation();
            while let Some(inner) = current {
                self.operation(&inner);
                current = inner.next_in_block();
            }
        }
        if name == "scf.for" {
            // Bound and step are used in every iteration.
            for operand in op.operands().skip(1).take(2) {
                let root = self.root(value_key(operand));
                self.keep(root);
            }
        }
        let end = self.tick();
        self.result.numbers.insert(op_key(op), (start, end));
        let kept = if is_loop { self.loops.pop().unwrap_or_default() } else { Vec::new() };
        for value in kept {
            let depth = self.lives.get(&value).map(|life| life.depth);
            match depth.and_then(|depth| self.loops.get_mut(depth)) {
                // Defined outside the next loop too.
                Some(outer) => outer.push(value),
                None => self.extend(value, end),
            }
            // A value defined in this loop's own body or outside all loops ends here at the earliest.
            self.extend(value, end);
        }
        for result in op.results() {
            self.extend(value_key(result), end);
        }
    }

    /// Keeps a value until the end of the innermost loop.
    fn keep(&mut self, value: ValueKey) {
        let root = self.root(value);
        if let Some(kept) = self.loops.last_mut() {
            kept.push(root);
        }
    }

    fn extend(&mut self, value: ValueKey, to: u32) {
        if let Some(life) = self.lives.get_mut(&value) {
            life.last = life.last.max(to);
        }
    }
}

/// Whether an operation gives its operand, or a part of it, a new name and nothing else. The decoder
/// emits no code for these.
pub(crate) fn is_renaming(op: &OperationRef<'_, '_>, name: &str) -> bool {
    let candidate = matches!(
        name,
        "arith.bitcast" | "vector.bitcast" | "arith.index_cast" | "arith.index_castui" | "vector.extract"
    );
    // Asking for an operand that is not there is slow: the error holds the operation's text.
    if !candidate || op.operand_count() != 1 || op.result_count() != 1 {
        return false;
    }
    // Asked first: a missing operand is an error that prints the operation and all of its function.
    if !matches!(
        name,
        "arith.bitcast" | "vector.bitcast" | "arith.index_cast" | "arith.index_castui" | "vector.extract"
    ) {
        return false;
    }
    let ty = |value: Option<Value<'_, '_>>| value.and_then(|v| ValueType::parse(&v.r#type().to_string()));
    let (Some(from), Some(to)) = (ty(op.operand(0).ok()), ty(op.result(0).ok().map(Into::into))) else {
        return false;
    };
    match name {
        // Words stay words; a pair of slots is read otherwise.
        "arith.bitcast" | "vector.bitcast" => {
            from.elem.is_wide() == to.elem.is_wide() && from.elem.bits() > 1 && from.slots() == to.slots()
        }
        "vector.extract" => to.elem.bits() >= 32,
        _ => from.elem.bits() == to.elem.bits(),
    }
}
