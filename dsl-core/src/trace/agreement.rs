//! What the trace knows of how a value differs between the lanes of a warp.
//!
//! It goes forward from what is the same by its nature (arguments, the block's index, what [`lw.uniform`] gives)
//! through operations without memory: equal operands give equal results. What loops and branches pass on is the same
//! where the condition is, and `crate::rt` says so.
//!
//! [`lw.uniform`]: crate::types::uniform

use super::{Loc, RawValue, Trace};
use crate::trace::Attr;

/// What is known of a value, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement(u8);

impl Agreement {
    /// Nothing.
    pub(crate) const NONE: Self = Self(0);
    /// All lanes of the warp that are here have it alike.
    pub(crate) const UNIFORM: Self = Self(1);
    /// [`Self::UNIFORM`], and of an origin from which compilers for the target see it.
    pub(crate) const EVIDENT: Self = Self(1 | 2);
    /// A condition that holds in one lane of the warp at most.
    pub(crate) const ONE_LANE: Self = Self(4);
    /// No two lanes of the warp have it alike.
    pub(crate) const DISTINCT: Self = Self(8);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is left of both kinds of being alike in a value computed from these two.
    fn meet(self, other: Self) -> Self {
        Self(self.0 & other.0 & Self::EVIDENT.0)
    }
}

/// Operations whose results depend on their operands alone.
fn is_pure(name: &str) -> bool {
    ["arith.", "math.", "vector."].iter().any(|dialect| name.starts_with(dialect)) || name == "llvm.getelementptr"
}

impl Trace {
    /// What is known of the results of an operation.
    pub(super) fn agreement_of(&self, name: &str, operands: &[RawValue], attributes: &[(&str, Attr)]) -> Agreement {
        match name {
            "lw.uniform" | "lw.cluster_rank" | "gpu.block_id" | "gpu.grid_dim" | "ub.poison" => Agreement::EVIDENT,
            "lw.ballot" => Agreement::UNIFORM,
            "lw.elect" => Agreement::ONE_LANE,
            "gpu.lane_id" => Agreement::DISTINCT,
            // Neighbours in x are neighbours in a warp; where the block has one row, or rows of whole warps, all are.
            "gpu.thread_id" if self.rows_are_warps() && is_along_x(attributes) => Agreement::DISTINCT,
            _ if is_pure(name) => self.computed(name, operands, attributes),
            _ => Agreement::NONE,
        }
    }

    fn rows_are_warps(&self) -> bool {
        let [x, y, z] = self.block;
        (y, z) == (1, 1) || x.is_multiple_of(self.target.warp_size())
    }

    fn computed(&self, name: &str, operands: &[RawValue], attributes: &[(&str, Attr)]) -> Agreement {
        let mut known = operands.iter().map(|operand| self.agreement(*operand));
        let (first, second) = (known.next().unwrap_or(Agreement::EVIDENT), known.next());
        let alike = known.fold(first.meet(second.unwrap_or(Agreement::EVIDENT)), Agreement::meet);
        let Some(second) = second else {
            // The conversion of an index is the index.
            return if name == "arith.index_cast" { first } else { alike };
        };
        let either = |kind| first.has(kind) || second.has(kind);
        // One of them is alike in all lanes, the other in no two.
        let apart = either(Agreement::DISTINCT) && either(Agreement::UNIFORM);
        let is_equality =
            || attributes.iter().any(|(name, value)| *name == "predicate" && matches!(value, Attr::Int(0)));
        match name {
            "arith.addi" | "arith.subi" if apart => Agreement::DISTINCT,
            "arith.cmpi" if apart && is_equality() => Agreement::ONE_LANE,
            "arith.andi" if either(Agreement::ONE_LANE) => Agreement::ONE_LANE,
            _ => alike,
        }
    }

    /// What is known of a value. One that was refused, or is none of this trace, is reported elsewhere.
    pub(crate) fn agreement(&self, value: RawValue) -> Agreement {
        match self.info(value) {
            Some(info) if info.value.is_some() => info.agreement,
            _ => Agreement::EVIDENT,
        }
    }

    /// Records what is known of a value.
    pub(crate) fn set_agreement(&mut self, value: RawValue, agreement: Agreement) {
        if value.epoch == self.epoch
            && let Some(info) = self.values.get_mut(value.index as usize)
        {
            info.agreement = agreement;
        }
    }

    /// Whether all lanes that are here have the value alike.
    pub(crate) fn is_uniform(&self, value: RawValue) -> bool {
        self.in_one_lane() || self.agreement(value).has(Agreement::UNIFORM)
    }

    /// The value, where nothing is to be done for compilers to see that all lanes have it alike. Where that is so because one
    /// lane alone is here, it is one that exists here alone: what keeps it beyond the branch, hidden from the macro, is found
    /// to use a value of control flow that has ended.
    pub(crate) fn evident(&mut self, value: RawValue, loc: Loc) -> Option<RawValue> {
        if self.agreement(value).has(Agreement::EVIDENT) {
            return Some(value);
        }
        self.in_one_lane().then(|| self.renamed_here(value, loc))
    }

    /// Whether one lane of a warp at most comes to what is traced next.
    pub(crate) fn in_one_lane(&self) -> bool {
        self.open.iter().any(|region| region.one_lane)
    }

    /// Says that one lane of a warp at most comes to the innermost region.
    pub(crate) fn enter_one_lane(&mut self) {
        if let Some(region) = self.open.last_mut() {
            region.one_lane = true;
        }
    }
}

fn is_along_x(attributes: &[(&str, Attr)]) -> bool {
    attributes.iter().any(|(_, value)| matches!(value, Attr::Text(text) if text == "#gpu<dim x>"))
}
