//! The order of accesses to tensor memory (PTX ISA, "tcgen05 memory consistency model").
//!
//! Threads that synchronise do not order what they do in tensor memory by that alone: `tcgen05.fence` takes part on
//! both sides. What a warp has completed counts for others when it is behind a fence `before_thread_sync` of its own
//! and the others have passed a fence `after_thread_sync`; a commit of products is such a fence itself.

use super::clock::{Clock, join_longer};
use super::races::SharedRaces;

/// How an earlier access to tensor memory stands to one that a warp makes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TensorOrder {
    Ordered,
    /// Threads have synchronised, but the earlier thread without a fence before.
    NoFenceBefore,
    /// Threads have synchronised, but this one without a fence after.
    NoFenceAfter,
    Unordered,
}

impl SharedRaces {
    /// What the warp has completed in tensor memory becomes part of what it releases from here on.
    pub(crate) fn tensor_fence_before(&mut self, warp: u32) {
        let (component, now) = self.moment(warp);
        self.step(warp);
        if let Some(clock) = self.clocks.get_mut(component as usize) {
            let passed_on = std::mem::take(&mut clock.tensor);
            join_longer(&mut clock.known.tensor, &passed_on);
            clock.tensor = passed_on;
            clock.known.see_tensor(component, now);
        }
    }

    /// What the warp has acquired is before its accesses to tensor memory from here on.
    pub(crate) fn tensor_fence_after(&mut self, warp: u32) {
        let component = self.first_warp + warp;
        if let Some(clock) = self.clocks.get_mut(component as usize) {
            // Of lanes that have acquired apart from the others too: which lane uses tensor memory is not told apart.
            let known = clock.known_to(u64::MAX);
            join_longer(&mut clock.tensor, &known.tensor);
        }
    }

    /// What a warp knows now of accesses to tensor memory.
    pub(crate) fn tensor_view(&self, warp: u32) -> TensorView {
        let mut clock = self.clock(warp).cloned().unwrap_or_default();
        clock.reunite();
        TensorView { own: self.first_warp + warp, clock }
    }
}

/// What a warp knows of accesses to tensor memory.
pub(crate) struct TensorView {
    own: u32,
    clock: Clock,
}

impl TensorView {
    /// How what a component did at a tick stands to what the warp does.
    pub(crate) fn order(&self, (component, tick): (u32, u32)) -> TensorOrder {
        let of = |seen: &[u32]| seen.get(component as usize).copied().unwrap_or(0);
        if component == self.own || tick <= of(&self.clock.tensor) {
            TensorOrder::Ordered
        } else if tick <= of(&self.clock.known.tensor) {
            TensorOrder::NoFenceAfter
        } else if tick <= self.clock.known.seen_of(component) {
            TensorOrder::NoFenceBefore
        } else {
            TensorOrder::Unordered
        }
    }
}
