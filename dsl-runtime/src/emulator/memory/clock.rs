//! What a warp knows of what others did: vector clocks over the components of a block or a cluster.
//!
//! Components are the warps, and after them one for each mbarrier that bulk copies complete on: a copy
//! is ordered before what waits for its mbarrier, not before what merely follows the warp that issued it.
//!
//! A warp has one clock for all its lanes. Where a lane synchronises alone, before the others have touched anything
//! since the last `warp_sync()`, that is all there is to know. Otherwise its lanes are told apart: by a [`Part`] where it
//! releases, by [`Clock::apart`] where it acquires.

use super::epoch::Epoch;
use super::races::Missing;

/// What some lanes of a component did, where the rest of the warp is not ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    component: u32,
    /// The latest tick that counts.
    tick: u32,
    lanes: u64,
}

impl Part {
    fn has(&self, epoch: Epoch) -> bool {
        self.component == epoch.warp()
            && epoch.time() <= self.tick
            && (epoch.is_together() || epoch.lane().is_some_and(|lane| self.lanes >> lane & 1 == 1))
    }
}

/// For each component, the latest tick of which all is known, and parts of what came later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Horizon {
    ticks: Vec<u32>,
    parts: Vec<Part>,
}

impl Horizon {
    fn nothing(components: usize) -> Self {
        Self { ticks: vec![0; components], parts: Vec::new() }
    }

    /// The ticks by component.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> &[u32] {
        &self.ticks
    }

    /// The tick up to which all that a component did is known.
    #[inline(always)]
    pub(crate) fn tick_of(&self, component: u32) -> u32 {
        self.ticks.get(component as usize).copied().unwrap_or(u32::MAX)
    }

    /// Whether an access is known.
    #[inline(always)]
    pub(crate) fn covers(&self, epoch: Epoch) -> bool {
        epoch.time() <= self.tick_of(epoch.warp()) || self.parts.iter().any(|part| part.has(epoch))
    }

    /// Whether anything is known that some components did after a tick.
    pub(crate) fn is_past(&self, components: &std::ops::Range<u32>, tick: u32) -> bool {
        components.clone().any(|component| self.tick_of(component) > tick)
            || self.parts.iter().any(|part| components.contains(&part.component) && part.tick > tick)
    }

    /// What an access that is not known lacks: whether another lane of its warp has told of its time.
    pub(crate) fn missing(&self, epoch: Epoch) -> Missing {
        let told = |part: &Part| part.component == epoch.warp() && epoch.time() <= part.tick;
        if self.parts.iter().any(told) { Missing::WarpSync } else { Missing::Barrier }
    }

    /// Notes that all is known of a component up to a tick.
    pub(crate) fn see(&mut self, component: u32, tick: u32) {
        if let Some(seen) = self.ticks.get_mut(component as usize) {
            *seen = (*seen).max(tick);
        }
    }

    /// Notes that what some lanes of a component did is known up to a tick.
    fn see_part(&mut self, part: Part) {
        if part.tick <= self.tick_of(part.component) {
            return;
        }
        let same = |other: &&mut Part| (other.component, other.lanes) == (part.component, part.lanes);
        match self.parts.iter_mut().find(same) {
            Some(known) => known.tick = known.tick.max(part.tick),
            None => self.parts.push(part),
        }
    }

    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Self) {
        join(&mut self.ticks, &other.ticks);
        other.parts.iter().for_each(|part| self.see_part(*part));
        let ticks = &self.ticks;
        let is_new = |part: &Part| ticks.get(part.component as usize).is_some_and(|tick| part.tick > *tick);
        self.parts.retain(is_new);
    }

    /// All up to a tick, of every component.
    pub(crate) fn start(&mut self, tick: u32) {
        self.ticks.fill(tick);
        self.parts.clear();
    }

    /// All up to a tick, of some components.
    pub(crate) fn start_of(&mut self, components: std::ops::Range<usize>, tick: u32) {
        self.parts.retain(|part| !components.contains(&(part.component as usize)));
        if let Some(ticks) = self.ticks.get_mut(components) {
            ticks.fill(tick);
        }
    }
}

/// For each component, what is ordered before the holder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// Of all that it did.
    pub(crate) seen: Horizon,
    /// Of its ordinary (generic-proxy) writes, those that a proxy fence has made visible to bulk copies and to
    /// wgmma (the async proxy). Empty for kernels without either.
    pub(crate) fenced: Horizon,
    /// Of its accesses to tensor memory, as far as a `tcgen05.fence::before_thread_sync` or a commit covers them. As
    /// long as needed: empty for kernels without.
    pub(crate) tensor: Vec<u32>,
    /// The holder's own time when this was a snapshot of what it knew; 0 else.
    pub(crate) issued: u32,
}

fn join(mine: &mut [u32], theirs: &[u32]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = (*mine).max(*theirs);
    }
}

/// [`join`] where what is missing at the end is 0.
pub(super) fn join_longer(mine: &mut Vec<u32>, theirs: &[u32]) {
    if mine.len() < theirs.len() {
        mine.resize(theirs.len(), 0);
    }
    join(mine, theirs);
}

impl Knowledge {
    /// Nothing, of so many components.
    pub(crate) fn nothing(components: usize, asynchronous: bool) -> Self {
        let fenced = Horizon::nothing(if asynchronous { components } else { 0 });
        Self { seen: Horizon::nothing(components), fenced, ..Self::default() }
    }

    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Self) {
        self.seen.join(&other.seen);
        self.fenced.join(&other.fenced);
        join_longer(&mut self.tensor, &other.tensor);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.seen.start(0);
        self.fenced.start(0);
        self.tensor.clear();
    }

    /// The latest tick seen of a component.
    #[inline(always)]
    pub(crate) fn seen_of(&self, component: u32) -> u32 {
        self.seen.tick_of(component)
    }

    /// Notes that the accesses of a component to tensor memory are covered up to a tick.
    pub(crate) fn see_tensor(&mut self, component: u32, tick: u32) {
        let place = component as usize;
        if self.tensor.len() <= place {
            self.tensor.resize(place + 1, 0);
        }
        if let Some(seen) = self.tensor.get_mut(place) {
            *seen = (*seen).max(tick);
        }
    }

    /// Notes that a component was seen up to a tick.
    pub(crate) fn see(&mut self, component: u32, tick: u32) {
        self.seen.see(component, tick);
    }
}

/// What lanes have acquired that the rest of their warp has not.
#[derive(Clone, Debug)]
pub(crate) struct Apart {
    pub(crate) lanes: u64,
    pub(crate) known: Knowledge,
}

/// A warp's knowledge and its own time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) now: u32,
    /// The smallest tick seen of the warps of its own block; of the cluster, where blocks reach each other's memory.
    pub(crate) floor: u32,
    /// What all its lanes know. Of the warp itself: up to where its lanes were last ordered among themselves.
    pub(crate) known: Knowledge,
    /// What some lanes know beyond that.
    pub(crate) apart: Option<Box<Apart>>,
    /// The lanes that have touched memory since the warp's were ordered among themselves, whether one has written, and
    /// the last tick when one did.
    pub(crate) touched: u64,
    pub(crate) wrote: bool,
    pub(crate) touched_at: u32,
    /// Of other components' accesses to tensor memory, those that the warp's own are ordered behind: what it knew at
    /// its last `tcgen05.fence::after_thread_sync`.
    pub(crate) tensor: Vec<u32>,
}

impl Clock {
    /// Whether a lane knows of an access.
    pub(crate) fn sees(&self, epoch: Epoch, lane: u32) -> bool {
        self.known.seen.covers(epoch)
            || self
                .apart
                .as_ref()
                .is_some_and(|apart| lane < 64 && apart.lanes >> lane & 1 == 1 && apart.known.seen.covers(epoch))
    }

    /// All that one of these lanes knows.
    pub(crate) fn known_to(&self, lanes: u64) -> Knowledge {
        let mut known = self.known.clone();
        if let Some(apart) = self.apart.as_ref().filter(|apart| apart.lanes & lanes != 0) {
            known.join(&apart.known);
        }
        known
    }

    /// Whether all that the warp did is what these lanes did, as far as its lanes are not ordered.
    pub(crate) fn speaks_for_all(&self, lanes: u64) -> bool {
        self.touched & !lanes == 0
    }

    /// Adds what some lanes of the warp, which is a component, did to what is known.
    pub(crate) fn tell(&self, component: u32, lanes: u64, to: &mut Horizon) {
        if self.speaks_for_all(lanes) {
            to.see(component, self.now);
        } else {
            to.see_part(Part { component, tick: self.now, lanes });
        }
    }

    /// What some lanes have acquired becomes known to all.
    pub(crate) fn reunite(&mut self) {
        if let Some(apart) = self.apart.take() {
            self.known.join(&apart.known);
        }
    }
}
