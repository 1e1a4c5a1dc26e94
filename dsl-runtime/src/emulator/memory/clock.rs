//! What a warp knows of what others did: vector clocks over the components of a block or a cluster.
//!
//! Components are the warps, and after them one for each mbarrier that bulk copies complete on: a copy
//! is ordered before what waits for its mbarrier, not before what merely follows the warp that issued it.

/// For each component, the latest tick that is ordered before the holder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Knowledge {
    /// Of all that it did.
    pub(crate) seen: Vec<u32>,
    /// Of its ordinary (generic-proxy) writes that a proxy fence has made visible to bulk copies and to
    /// wgmma (the async proxy). Empty for kernels without either.
    pub(crate) fenced: Vec<u32>,
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
        let fenced = vec![0; if asynchronous { components } else { 0 }];
        Self { seen: vec![0; components], fenced, ..Self::default() }
    }

    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Self) {
        join(&mut self.seen, &other.seen);
        join(&mut self.fenced, &other.fenced);
        join_longer(&mut self.tensor, &other.tensor);
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.seen.fill(0);
        self.fenced.fill(0);
        self.tensor.clear();
    }

    /// The latest tick seen of a component.
    #[inline(always)]
    pub(crate) fn seen_of(&self, component: u32) -> u32 {
        self.seen.get(component as usize).copied().unwrap_or(u32::MAX)
    }

    /// The latest tick of a component whose writes bulk copies and wgmma see.
    pub(crate) fn fenced_of(&self, component: u32) -> u32 {
        self.fenced.get(component as usize).copied().unwrap_or(u32::MAX)
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
        if let Some(seen) = self.seen.get_mut(component as usize) {
            *seen = (*seen).max(tick);
        }
    }
}

/// A warp's knowledge and its own time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) now: u32,
    /// The smallest tick seen of the warps of its own block.
    pub(crate) floor: u32,
    pub(crate) known: Knowledge,
    /// Of other components' accesses to tensor memory, those that the warp's own are ordered behind: what it knew at
    /// its last `tcgen05.fence::after_thread_sync`.
    pub(crate) tensor: Vec<u32>,
}
