//! Mistakes with mbarriers, bulk copies and warpgroup products in the user's words.

use super::asynchronous::fault::AsyncFault;
use super::asynchronous::mbarrier::{LIMIT, Overflow};
use super::asynchronous::op::{AsyncOp, PeerOp};
use super::asynchronous::state::{LateFault, Wait, entry_registers};
use super::blame::Scene;
use super::exec::warp::{Fault, FaultKind};
use super::memory::{Conflict, Missing, Touch};
use super::op::{Op, Pc};
use super::program::Member;
use super::report::{Report, ReportKind};
use super::schedule::Position;

/// A wait in the user's words.
pub(super) struct Waiting {
    /// What for.
    pub(super) text: String,
    pub(super) help: Option<String>,
    /// What is odd about what is waited for.
    pub(super) note: Option<String>,
}

impl Scene<'_> {
    fn async_op(&self, pc: Pc) -> Option<&AsyncOp> {
        match self.program.ops.get(pc as usize)? {
            Op::Async { table } => self.program.asynchronous.get(*table as usize),
            _ => None,
        }
    }

    /// What an operation is called where it accesses memory beside the threads.
    pub(super) fn async_noun(&self, pc: Pc) -> Option<&'static str> {
        match self.async_op(pc)? {
            AsyncOp::TensorLoad(_) => Some("TMA load"),
            AsyncOp::TensorStore(_) => Some("TMA store"),
            AsyncOp::Wgmma(_) => Some("wgmma"),
            AsyncOp::StoreAsync(_) => Some("asynchronous store"),
            AsyncOp::BlockCopy(_) => Some("bulk copy"),
            op => Self::tensor_noun(op),
        }
    }

    /// What an operation on another block's shared memory is called, and the kind of a report on that block.
    fn visit(&self, pc: Pc) -> (&'static str, ReportKind) {
        match self.async_op(pc) {
            Some(AsyncOp::Peer(PeerOp::Load { .. })) => ("read", ReportKind::Cluster),
            Some(AsyncOp::Peer(PeerOp::Store { .. })) => ("write", ReportKind::Cluster),
            Some(AsyncOp::Peer(PeerOp::Atomic(_))) => ("atomic", ReportKind::Cluster),
            Some(AsyncOp::StoreAsync(_)) => ("asynchronous store", ReportKind::Cluster),
            Some(AsyncOp::BlockCopy(_)) => ("bulk copy", ReportKind::Cluster),
            _ => ("arrival", ReportKind::Mbarrier),
        }
    }

    /// The block's rank in its cluster.
    pub(super) fn rank(&self) -> u32 {
        let [x, y, z] = std::array::from_fn(|axis| {
            let extent = self.program.cluster.get(axis).copied().unwrap_or(1).max(1);
            self.block.get(axis).copied().unwrap_or(0) % extent
        });
        let [nx, ny, _] = self.program.cluster;
        (z * ny + y) * nx + x
    }

    /// The report of an access, where the memory is that of another block.
    pub(super) fn of_block(&self, rank: u32, mut report: Report) -> Report {
        if let Some(address) = &report.address {
            // Each message on an access names the member once.
            let name = format!("`{}`", address.allocation);
            report.message = report.message.replacen(&name, &format!("{name} of block {rank} of the cluster"), 1);
        }
        if report.kind == ReportKind::Uninitialized {
            report.help = Some(format!(
                "let block {rank} write it, and put a `cluster_sync()` between that and this: a `barrier()` orders the \
                 threads of one block alone"
            ));
        }
        report
    }

    /// The name of an mbarrier: that of its member of shared memory, with an index where the member has several.
    fn mbarrier(&self, address: u32) -> String {
        let of = self.program.members.iter().skip(1).filter(|m| (m.low..m.high).contains(&address));
        let name = |member: &Member| member.name.strip_prefix("mbarrier ").unwrap_or(&member.name).to_owned();
        match of.min_by_key(|member| member.high - member.low) {
            Some(member) if member.high - member.low > 8 => {
                format!("`{}[{}]`", name(member), (address - member.low) / 8)
            }
            Some(member) => format!("`{}`", name(member)),
            None => format!("at byte {address} of shared memory"),
        }
    }

    /// A mistake of an earlier operation that shows at a wait.
    pub(super) fn fault_at(&self, warp: u32, fault: &Fault, pc: Pc, kind: &FaultKind) -> Report {
        // The parts of a fault but its kind are the operation and the lane.
        let (shown, lane) = (fault.pc, fault.lane);
        let mut report = self.fault_of(warp, pc, lane, kind);
        let place = self.spot(shown);
        if !place.is_empty() && !matches!(self.program.ops.get(shown as usize), Some(Op::End)) {
            report.notes.push(format!("it shows at the wait{place}: until then the operation may be under way"));
        }
        report
    }

    /// An access to the bytes of an mbarrier.
    pub(super) fn mbarrier_touched(&self, pc: Pc, conflict: &Conflict, touch: Touch) -> Report {
        let name = self.mbarrier(conflict.byte as u32 / 8 * 8);
        let verb = match touch {
            Touch::Read => "read",
            Touch::Write => "write",
            Touch::Atomic => "atomic",
            Touch::CopyStart | Touch::CopyEnd => "copy",
        };
        let verb = self.async_noun(pc).unwrap_or(verb);
        let mut report = self.at(ReportKind::Mbarrier, format!("{verb} of the bytes of the mbarrier {name}"), pc);
        if let Some(made) = conflict.earlier.pc() {
            report.notes.push(format!("it was made{}", self.spot(made)));
        }
        report.help = Some("an mbarrier's bytes are its own: use the operations on mbarriers".into());
        report
    }

    /// Why two accesses race of which one at least is made beside the threads.
    pub(super) fn explain_async(
        &self,
        report: &mut Report,
        warp: u32,
        conflict: &Conflict,
        noun: &'static str,
        verb: &'static str,
    ) {
        let earlier = conflict.earlier;
        let by_async = earlier.pc().and_then(|pc| self.async_noun(pc));
        if conflict.missing == Missing::ProxyFence {
            report.message = format!("{}: no proxy fence between them", report.message);
            report.notes.push(format!("the {noun} was by {}", self.author(earlier)));
            report.notes.push(format!(
                "a {verb} goes through the async proxy: it sees what ordinary stores wrote behind a proxy fence only"
            ));
            report.help =
                Some("put `fence_proxy(ProxyFence::AsyncShared)` behind the stores, in the threads that store, then the barrier".into());
            return;
        }
        if by_async.is_none() && conflict.missing == Missing::WarpSync {
            let (edge, help) = self.unmet(earlier);
            report.notes.push(format!("the {noun} was by {}", self.author(earlier)));
            report.notes.push(edge);
            report.help = Some(help.into());
            return;
        }
        let (edge, help) = match (by_async, conflict.earlier_read) {
            (Some("TMA load"), false) => (
                "the copy has not been waited for".to_owned(),
                "wait for the mbarrier that the copy completes, before its destination is used",
            ),
            (Some("asynchronous store" | "bulk copy"), false) => (
                "its mbarrier has not been waited for".to_owned(),
                "wait for the mbarrier that its bytes complete at, before the place is used",
            ),
            (Some("bulk copy"), true) => (
                "the copy reads its source until its bytes have completed".to_owned(),
                "write the source again when the other block, having waited for the copy, has told so: by `arrive_at`, or by a \
                 `cluster_sync()`",
            ),
            (Some("wgmma"), true) => (
                "the product reads its operands until its wait".to_owned(),
                "overwrite the tile after the product's `wait`, and after an arrival that the writer waits for",
            ),
            (Some("tcgen05.mma"), true) => (
                "the product reads its operands until its commit arrives".to_owned(),
                "overwrite the tile behind a wait for the mbarrier that the product is committed to",
            ),
            (Some("TMA store"), true) => (
                "the copy reads its source until the thread that started it has waited for it, and others have met that thread"
                    .to_owned(),
                "of what the store takes out: write it, fence it and meet at a barrier before the store is started; of what comes \
                 next: `tma_store_commit()`, `tma_store_wait(0)` by the thread that started it, and a barrier before the \
                 source is overwritten",
            ),
            _ => {
                report.notes.push(format!("the {noun} was by {}", self.author(earlier)));
                let edge = match earlier.warp() == self.component(warp) {
                    true => format!("both are of warp {warp}, and nothing waits for the first between them"),
                    false => "no barrier, mbarrier or wait orders the two".to_owned(),
                };
                (edge, "wait for an mbarrier that the first arrives at, or put a `barrier()` between the two")
            }
        };
        report.notes.push(edge);
        report.help = Some(help.into());
    }

    /// A rule of what runs beside the threads.
    pub(super) fn async_fault(&self, warp: u32, pc: Pc, fault: &AsyncFault) -> Report {
        use AsyncFault as F;
        let mut notes = Vec::new();
        let (kind, message, help) = match fault {
            F::NotABarrier { address } => (
                ReportKind::Mbarrier,
                format!("{} is no mbarrier: nothing has made it one", self.mbarrier(*address)),
                "ask a `BarrierSetup` for it, and call its `finish()` before the first use",
            ),
            F::BarrierAgain { address, made } => {
                notes.push(format!("it was made{}", self.spot(*made)));
                (
                    ReportKind::Mbarrier,
                    format!("the mbarrier {} is made a second time", self.mbarrier(*address)),
                    "make each mbarrier once, in one thread, as `BarrierSetup` does",
                )
            }
            F::BarrierUnseen { address, made } => {
                notes.push(format!("it is made{}, and no barrier orders that before this use", self.spot(*made)));
                (
                    ReportKind::Race,
                    format!("race with the making of the mbarrier {}", self.mbarrier(*address)),
                    "put a `barrier()` (in a cluster: `cluster_sync()`) behind what makes it, as `BarrierSetup::finish` does",
                )
            }
            F::BarrierUnfenced { address, made } => {
                notes.push(format!("it is made{}", self.spot(*made)));
                (
                    ReportKind::Race,
                    format!("no fence makes the mbarrier {} known to copies and other blocks", self.mbarrier(*address)),
                    "the thread that makes it puts `fence_proxy(ProxyFence::MbarrierInit)` behind, before the barrier",
                )
            }
            F::BarrierOverflow { address, overflow: Overflow::Arrivals, count, .. } => (
                ReportKind::Mbarrier,
                format!("an arrival too many at the mbarrier {}: its phase has {count}", self.mbarrier(*address)),
                "make the mbarrier for as many arrivals as threads arrive in a phase",
            ),
            F::PhasesAtOnce { address, count, lanes } => (
                ReportKind::Mbarrier,
                format!(
                    "{lanes} lanes arrive together at the mbarrier {}, of which {count} complete{} a phase",
                    self.mbarrier(*address),
                    if *count == 1 { "s" } else { "" }
                ),
                "let one lane arrive, as by `if elect_one()`, or make the mbarrier for as many arrivals as threads arrive \
                 in a phase",
            ),
            F::BarrierOverflow { address, bytes, .. } => (
                ReportKind::Mbarrier,
                format!(
                    "{bytes} bytes are pending at the mbarrier {}, and at most {LIMIT} fit",
                    self.mbarrier(*address)
                ),
                "expect exactly the bytes that the copies of the phase bring",
            ),
            F::NoSuchRank { rank, blocks } => (
                ReportKind::Cluster,
                format!("block {} of a cluster of {blocks}", rank.cast_signed()),
                "ranks count from 0; set the cluster's size by `#[kernel(cluster = [..])]`",
            ),
            F::NotBegun { rank } => {
                notes.push("a block's shared memory is there from its begin to its end, and a cluster's blocks begin one by one".into());
                (
                    ReportKind::Cluster,
                    format!(
                        "nothing orders this {} behind the begin of block {rank} of the cluster, and of its shared memory",
                        self.visit(pc).0
                    ),
                    "put a `cluster_sync()` before the first access to other blocks' shared memory, behind what they write \
                     there for it",
                )
            }
            F::OtherBlock { rank, other } => (
                ReportKind::Cluster,
                format!("what goes to block {rank} of the cluster is to complete at an mbarrier of block {other}"),
                "name the mbarrier of the block that receives it: `barrier.of_block(rank)` of the same rank",
            ),
            F::SourceEnded { rank } => (
                ReportKind::Cluster,
                format!("block {rank} of the cluster has ended while this copy still reads its shared memory"),
                "let the block that copies stay until the other has waited for it, as by a last `cluster_sync()` of both",
            ),
            F::SourceMayEnd { rank } => (
                ReportKind::Cluster,
                format!(
                    "nothing orders the end of block {rank} of the cluster behind this copy, which reads its shared memory"
                ),
                "let the block that copies stay until the other has waited for it, as by a last `cluster_sync()` of both",
            ),
            F::BlockEnded { rank } => (
                self.visit(pc).1,
                format!("block {rank} of the cluster has ended, and its shared memory with it"),
                "let no block end before the others are done with it: `pipeline.drain(..)`, or a last `cluster_sync()`",
            ),
            F::MayHaveEnded { rank } => (
                self.visit(pc).1,
                format!(
                    "nothing orders this {} before the end of block {rank} of the cluster, and of its shared memory",
                    self.visit(pc).0
                ),
                "let no block end before the others are done with it: `pipeline.drain(..)`, or a last `cluster_sync()`",
            ),
            F::NotUniform { what, values: [first, other] } => (
                ReportKind::NotUniform,
                format!("the {what} is not the same in all lanes of the warp: {first} and {other}"),
                "compute it from values that are the same in the whole warp",
            ),
            F::NoSuchBarrier { id } => (
                ReportKind::Deadlock,
                format!("named barrier {id}: there are those from 1 to 15"),
                "keep the number within 1 and 15; 0 is the block's own barrier",
            ),
            F::InFlight { issued } => {
                notes.push(format!("the product was issued{}", self.spot(*issued)));
                (
                    ReportKind::InFlight,
                    "an accumulator is used while its wgmma is in flight".to_owned(),
                    "call `wait` on the product and use the accumulator that it gives",
                )
            }
            F::NotTied { issued } => {
                notes.push(format!("the product was issued{}, and a wait has completed it", self.spot(*issued)));
                (
                    ReportKind::InFlight,
                    "an accumulator is used that no wait has given back".to_owned(),
                    "give the accumulator to the wait, and use the values that it gives: nothing else keeps the \
                     compiler from reading it early",
                )
            }
            F::LeftInFlight { issued, groups } => {
                notes.push(format!("the product was issued{}", self.spot(*issued)));
                (
                    ReportKind::InFlight,
                    format!("this wait leaves the newest {groups} products in flight, and this accumulator is of one"),
                    "wait for fewer, or give this accumulator to a later wait",
                )
            }
            F::HandedOn => (
                ReportKind::InFlight,
                "an accumulator that was handed on to a later wgmma is used".to_owned(),
                "use the results of the last wgmma that adds to it",
            ),
            F::Warpgroup { warp: other_warp, other } => {
                let message = if *other == pc && *other_warp == warp {
                    format!("warp {warp} ends without this operation, which other warps of its warpgroup execute")
                } else {
                    notes.push(format!("warp {other_warp} executes the one{} there", self.spot(*other)));
                    format!("warp {warp} executes this where another warp of its warpgroup does something else")
                };
                (ReportKind::Warpgroup, message, "all four warps of a warpgroup execute it, with the same operands")
            }
            F::NoWarpgroup { threads } => (
                ReportKind::Warpgroup,
                format!("warp {warp} is in no whole warpgroup: the block has {threads} threads"),
                "make the block a multiple of 128 threads",
            ),
            F::WrongDirection { from, to } => (
                ReportKind::Warpgroup,
                format!("registers go from {from} to {to} a thread here"),
                "`inc` takes a larger number than the warp has, `dec` a smaller one",
            ),
            F::Tensor(fault) => return self.tensor_fault(pc, fault),
            F::NeverWaited => {
                let noun = self.async_noun(pc).unwrap_or("asynchronous operation");
                let help = match noun {
                    "wgmma" => "call `wait::<0>()` on the product before the kernel ends",
                    "tcgen05.mma" => "commit it to an mbarrier, and wait for that before the kernel ends",
                    "tcgen05.ld" | "tcgen05.st" => "call `.wait()` on it before the kernel ends",
                    "TMA store" => {
                        "close its group by `tma_store_commit()` and wait by `tma_store_wait(0)` before the kernel ends"
                    }
                    _ => "wait for its mbarrier before the kernel ends",
                };
                (ReportKind::CopyInFlight, format!("a {noun} that is never waited for"), help)
            }
        };
        let mut report = self.at(kind, message, pc);
        report.notes = notes;
        report.help = Some(help.into());
        report
    }

    /// A rule that shows when no warp runs.
    pub(super) fn late(&self, late: &LateFault) -> Report {
        let mut report = self.async_fault(late.warp.unwrap_or(u32::MAX), late.pc, &late.fault);
        report.warp = late.warp;
        report
    }

    /// What a warp waits for, and what may help.
    pub(super) fn waiting(&self, position: &Position, wait: Wait) -> Waiting {
        let mut note = None;
        let (text, help) = match wait {
            Wait::Cluster => ("at the cluster's barrier".to_owned(), None),
            Wait::TensorMemory { columns, free } => (
                format!("for {columns} columns of tensor memory, of which {free} are free,"),
                Some("a block has 512 columns: free what it does not need any more, or allocate less".to_owned()),
            ),
            Wait::Warpgroup => (
                "for a product that other warps of the warpgroup have not issued,".to_owned(),
                Some("all four warps of a warpgroup execute each wgmma, with the same operands".to_owned()),
            ),
            Wait::Registers { count } => {
                let (own, all) = position.registers;
                let entry = entry_registers(self.program);
                let text = format!(
                    "for {count} registers a thread (it has {own}; all {} warps have {all} together, {entry} each)",
                    self.program.warps()
                );
                let help = format!(
                    "the registers of all warpgroups together must not exceed {entry} times their number: lower what \
                     consumers ask for, or what the producer keeps"
                );
                (text, Some(help))
            }
            Wait::Mbarrier { address, parity } => {
                let name = self.mbarrier(address);
                let Some(barrier) = &position.mbarrier else {
                    return Waiting { text: format!("for the mbarrier {name}"), help: None, note };
                };
                let arrived = barrier.count - barrier.pending;
                let bytes = match barrier.bytes {
                    bytes if bytes < 0 => format!("{} bytes more than the {} expected", -bytes, barrier.expected),
                    bytes => format!("{bytes} of {} bytes still to come", barrier.expected),
                };
                let text = format!(
                    "for parity {parity} of the mbarrier {name}, which is in phase {} (parity {}): {arrived} of {} \
                     arrivals, {bytes}",
                    barrier.phase,
                    barrier.parity(),
                    barrier.count,
                );
                if let Some(pc) = barrier.last_arrival.filter(|_| barrier.unnoticed > 1) {
                    note = Some(format!(
                        "{} phases have completed without a wait for any of the mbarrier {name}; the last arrival was{}",
                        barrier.unnoticed,
                        self.spot(pc)
                    ));
                }
                let help = match () {
                    () if barrier.unnoticed > 1 => {
                        "more arrive in a phase than the mbarrier is made for, so that it completes too often: make it for \
                         as many arrivals as threads arrive in a phase"
                    }
                    () if arrived == 0 && barrier.bytes == 0 && barrier.phase > 0 => {
                        "nothing has arrived in this phase: is it the phase before that is meant (the other parity)?"
                    }
                    () if barrier.pending > 0 => "make the mbarrier for as many arrivals as threads arrive in a phase",
                    _ => "expect exactly the bytes that the copies of the phase bring",
                };
                (text, Some(help.into()))
            }
        };
        Waiting { text, help, note }
    }
}
