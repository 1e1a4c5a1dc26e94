//! Mbarriers: barriers in shared memory that count arrivals and the bytes of asynchronous copies.

use std::panic::Location;

use super::cluster;
use super::swizzled::{advance_by, int};
use crate::Diagnostic;
use crate::ScalarType;
use crate::rt::{Carried, State, Visitor};
use crate::trace::{self, Attr, Loc, RawValue};
use crate::types::collectives::when;
use crate::types::place::Coordinate;
use crate::types::shared::SharedAlloc;
use crate::types::{Bool, Cmp, I32, Scalar, arith, ids, sync};

/// Which writes a [`fence_proxy`] makes visible, and to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyFence {
    /// The thread's writes to shared memory, to tensor copies and matrix products.
    AsyncShared,
    /// The thread's writes to shared and global memory, to tensor copies and matrix products.
    Async,
    /// The mbarriers that the thread has made, to the cluster and to tensor copies.
    MbarrierInit,
}

/// Makes what the thread has written visible to asynchronous copies and matrix products that start later, or
/// its new mbarriers to everyone. Other threads must meet this one after it, at a barrier.
#[track_caller]
pub fn fence_proxy(kind: ProxyFence) {
    fence_at(kind, Location::caller());
}

fn fence_at(kind: ProxyFence, loc: Loc) {
    let kind = match kind {
        ProxyFence::AsyncShared => "async_shared",
        ProxyFence::Async => "async",
        ProxyFence::MbarrierInit => "mbarrier_init",
    };
    trace::emit0("lw.fence_proxy", &[], &[("kind", Attr::Str(kind.to_owned()))], loc);
}

/// A barrier in shared memory. Its phases complete one after the other, each by so many arrivals and by the
/// bytes that were announced for it; the first has parity 0.
#[derive(Clone, Copy, Debug)]
pub struct Mbarrier {
    pub(super) address: RawValue,
}

impl State for Mbarrier {
    fn visit(&mut self, visitor: &mut dyn Visitor) {
        visitor.value(&mut self.address);
    }
}
impl Carried for Mbarrier {}

impl Mbarrier {
    pub(in crate::types) fn address(self) -> RawValue {
        self.address
    }

    /// Mbarrier number `index` of those that were made together with this one.
    #[track_caller]
    pub(super) fn of(self, index: impl Coordinate, loc: Loc) -> Self {
        Mbarrier { address: advance_by(self.address, index.coordinate(loc), MBARRIER_BYTES, loc) }
    }

    /// Waits until the phase of this parity has completed; what was released before is visible after. A wait
    /// for the parity that the barrier is past already does not wait.
    #[track_caller]
    pub fn wait(self, parity: impl Into<I32>) {
        trace::emit0("lw.mbarrier_wait", &[self.address, parity.into().raw()], &[], Location::caller());
    }

    /// One arrival of each active thread.
    #[track_caller]
    pub fn arrive(self) {
        trace::emit0("lw.mbarrier_arrive", &[self.address], &[], Location::caller());
    }

    /// One arrival of each active thread at the same mbarrier of block `rank` of the cluster.
    #[track_caller]
    pub fn arrive_at(self, rank: impl Into<I32>) {
        trace::emit0("lw.mbarrier_arrive_peer", &[self.address, rank.into().raw()], &[], Location::caller());
    }

    /// Announces that copies will bring `bytes` bytes in this phase, and arrives, for each active thread.
    #[track_caller]
    pub fn expect(self, bytes: usize) {
        let bytes = [("bytes", Attr::Int(bytes as i64))];
        trace::emit0("lw.mbarrier_expect_tx", &[self.address], &bytes, Location::caller());
    }
}

/// Bytes of an mbarrier.
const MBARRIER_BYTES: usize = 8;

/// Makes the block's mbarriers: ask for all of them, then call [`BarrierSetup::finish`] once, before any is used.
#[must_use = "the barriers exist after `.finish()` alone"]
#[derive(Debug)]
pub struct BarrierSetup {
    loc: Loc,
    /// First of each group, how many, and the arrivals that complete a phase.
    groups: Vec<(Mbarrier, usize, usize)>,
    finished: bool,
}

impl BarrierSetup {
    /// No barriers yet.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "the place of the call is part of it")]
    pub fn new() -> Self {
        Self { loc: Location::caller(), groups: Vec::new(), finished: false }
    }

    /// `number` mbarriers, each of whose phases completes after `arrivals` arrivals (host numbers); gives the first.
    #[track_caller]
    pub(super) fn group(&mut self, name: &str, number: usize, arrivals: usize, loc: Loc) -> Mbarrier {
        // 2^20 - 1 arrivals: PTX ISA, "mbarrier object contents".
        if number == 0 || arrivals == 0 || arrivals >= 1 << 20 {
            let message = format!("`{name}` cannot be {number} mbarriers of {arrivals} arrivals");
            trace::error(loc, Diagnostic::error(message).help("arrivals are 1 to 1048575"));
        }
        let bytes = (number * MBARRIER_BYTES) as u64;
        let address = SharedAlloc::new(loc).member(&format!("mbarrier {name}"), bytes, Some(MBARRIER_BYTES));
        self.groups.push((Mbarrier { address }, number, arrivals));
        Mbarrier { address }
    }

    /// One mbarrier whose phases complete after `arrivals` arrivals each.
    #[track_caller]
    pub fn mbarrier(&mut self, name: &str, arrivals: usize) -> Mbarrier {
        self.group(name, 1, arrivals, Location::caller())
    }

    /// One thread makes the mbarriers; the block, or the cluster, goes on when they are there.
    #[track_caller]
    pub fn finish(mut self) {
        let loc = Location::caller();
        self.finished = true;
        let zero = ids::int(0, loc);
        let first = arith::compare(Cmp::Eq, ScalarType::I32, ids::linear_thread(loc), zero, loc);
        when(Bool::from_raw(first), || {
            for (group, number, arrivals) in &self.groups {
                for index in 0..*number {
                    let count = [("count", Attr::Int(*arrivals as i64))];
                    trace::emit0("lw.mbarrier_init", &[group.of(index, loc).address], &count, loc);
                }
            }
            fence_at(ProxyFence::MbarrierInit, loc);
        });
        if cluster::blocks() > 1 {
            cluster::sync_at("sync", loc);
        } else {
            sync::barrier_at(loc);
        }
    }
}

impl Drop for BarrierSetup {
    fn drop(&mut self) {
        if !self.finished && !std::thread::panicking() {
            let message = "these mbarriers are asked for and never made";
            trace::error(self.loc, Diagnostic::error(message).help("call `.finish()` before the first use"));
        }
    }
}

/// The parity of a count of phases.
pub(super) fn parity(count: RawValue, loc: Loc) -> RawValue {
    arith::binary(arith::Binary::BitAnd, ScalarType::I32, count, int(1, loc), loc)
}
