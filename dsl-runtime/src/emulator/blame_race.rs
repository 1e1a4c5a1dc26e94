//! Races in the user's words.

use super::asynchronous::op::AsyncOp;
use super::blame::{Scene, unflatten};
use super::memory::{BlockConflict, Conflict, Epoch, Missing, Touch};
use super::op::{Access, Op, Pc};
use super::report::{Report, ReportKind};

impl Scene<'_> {
    fn thread(&self, warp: u32, lane: u32) -> String {
        let linear = u64::from(warp * self.program.target.warp_size() + lane);
        let [x, y, z] = unflatten(linear, self.program.block);
        format!("thread ({x}, {y}, {z})")
    }

    /// Who made an access, as `thread (5, 0, 0) = warp 0, lane 5`.
    pub(super) fn author(&self, epoch: Epoch) -> String {
        let warps = self.program.warps().max(1);
        let (rank, warp) = (epoch.warp() / warps, epoch.warp() % warps);
        if self.program.cluster_blocks() > 1 {
            return format!("warp {warp} of block {rank} of the cluster");
        }
        match epoch.lane() {
            Some(lane) => format!("{} = warp {warp}, lane {lane}", self.thread(warp, lane)),
            None => format!("several lanes of warp {warp}"),
        }
    }

    fn earlier_place(&self, epoch: Epoch) -> String {
        epoch.pc().map_or_else(String::new, |pc| self.spot(pc))
    }

    fn is_copy(&self, epoch: Epoch) -> bool {
        let op = epoch.pc().and_then(|pc| self.program.ops.get(pc as usize));
        matches!(op, Some(Op::CopyAsync { .. }))
    }

    /// A lane has told others of what it did, by an arrival or an atomic, and not of what its warp's other lanes did.
    pub(super) fn unmet(&self, earlier: Epoch) -> (String, &'static str) {
        let warp = earlier.warp() % self.program.warps().max(1);
        (
            format!("another lane of warp {warp} has arrived since, and no `warp_sync()` lies between the two"),
            "put a `warp_sync()` before the arrival: a lane's arrival tells of what it did itself, and of what it has met",
        )
    }

    /// Whether warps of the kernel arrive where others wait, so that a barrier of the block may be the wrong advice.
    pub(super) fn has_arrivals(&self) -> bool {
        self.program.ops.iter().any(|op| match op {
            Op::NamedSync { .. } | Op::NamedArrive { .. } => true,
            Op::Async { table } => matches!(
                self.program.asynchronous.get(*table as usize),
                Some(AsyncOp::NamedBarrier { .. } | AsyncOp::BarrierWait { .. })
            ),
            _ => false,
        })
    }

    /// A warp of the block as a component of the clocks.
    pub(super) fn component(&self, warp: u32) -> u32 {
        self.rank() * self.program.warps().max(1) + warp
    }

    /// What two threads lack, and what to do.
    fn unordered(&self, earlier: Epoch, warp: u32) -> (String, &'static str) {
        let warps = self.program.warps().max(1);
        let (block, own) = (earlier.warp() / warps, self.rank());
        if block != own {
            let edge = format!(
                "blocks {block} and {own} of the cluster meet at no `cluster_sync()` between the two; a `barrier()` orders \
                 the threads of one block alone"
            );
            let help = "put a `cluster_sync()` between the two, or let the first arrive behind its access at an mbarrier of the \
                        second's block (`arrive_at`), where the second waits before its own";
            return (edge, help);
        }
        let first = earlier.warp() % warps;
        if first == warp {
            let help = match warps {
                ..=1 => "put a `warp_sync()` between the two: lanes of a warp do not run in lockstep",
                _ => {
                    "put a `warp_sync()` between the two, or a `barrier()` where other warps have a part in it: lanes of a \
                     warp do not run in lockstep"
                }
            };
            return (format!("both are lanes of warp {warp}, and no `warp_sync()` or barrier lies between"), help);
        }
        let help = match self.has_arrivals() {
            false => "put a `barrier()` between the two",
            true => {
                "put a `barrier()` between the two, or let the first arrive (at a named barrier, at an mbarrier) behind its \
                 access, where the second waits before its own"
            }
        };
        (format!("warps {first} and {warp} meet at no barrier between the two"), help)
    }

    /// Two threads of a block at one place of global memory.
    pub(super) fn thread_race(
        &self,
        (warp, pc): (u32, Pc),
        conflict: &Conflict,
        address: u64,
        shape: &Access,
        is_write: bool,
    ) -> Report {
        let address = self.global_address(address + conflict.byte, shape);
        let what = address.index.map_or_else(|| format!("byte {}", address.offset), |index| format!("index {index}"));
        let (verb, noun) = if is_write { ("write", "read") } else { ("read", "write") };
        let place = self.earlier_place(conflict.earlier);
        let name = &address.allocation;
        let message =
            format!("race in global memory: nothing orders this {verb} of {what} of `{name}` and the {noun}{place}");
        let mut report = self.at(ReportKind::Race, message, pc);
        report.notes.push(format!("the {noun} was by {}", self.author(conflict.earlier)));
        let (edge, help) = match conflict.missing {
            Missing::WarpSync => self.unmet(conflict.earlier),
            _ => self.unordered(conflict.earlier, warp),
        };
        report.notes.push(edge);
        report.help = Some(help.into());
        report.address = Some(address);
        report
    }

    /// Two accesses to shared memory that nothing orders.
    pub(super) fn race(&self, (warp, pc): (u32, Pc), conflict: &Conflict, touch: Touch, shape: &Access) -> Report {
        let earlier = conflict.earlier;
        if let Some(Op::Async { table }) = earlier.pc().and_then(|pc| self.program.ops.get(pc as usize))
            && let Some(AsyncOp::BarrierInit { .. }) = self.program.asynchronous.get(*table as usize)
        {
            return self.mbarrier_touched(pc, conflict, touch);
        }
        let address = self.shared_address(conflict.byte, shape);
        let what = match address.index {
            Some(index) => format!("index {index} of `{}`", address.allocation),
            None => format!("byte {} of `{}`", address.offset, address.allocation),
        };
        let verb = match touch {
            Touch::Read => "read",
            Touch::Write => "write",
            Touch::Atomic => "atomic",
            Touch::CopyStart | Touch::CopyEnd => "asynchronous copy",
        };
        let verb = self.async_noun(pc).unwrap_or(verb);
        let copied = self.is_copy(earlier);
        let by_async = earlier.pc().and_then(|pc| self.async_noun(pc));
        let noun = match () {
            () if by_async.is_some() => by_async.unwrap_or_default(),
            () if conflict.earlier_read => "read",
            () if copied => "asynchronous copy",
            () if earlier.is_atomic() => "atomic",
            () => "write",
        };
        let place = self.earlier_place(earlier);
        let message = format!("race in shared memory: nothing orders this {verb} of {what} and the {noun}{place}");
        let mut report = self.at(ReportKind::Race, message, pc);
        if by_async.is_some() || conflict.missing == Missing::ProxyFence || self.async_noun(pc).is_some() {
            self.explain_async(&mut report, warp, conflict, noun, verb);
            report.address = Some(address);
            return report;
        }
        report.notes.push(format!("the {noun} was by {}", self.author(earlier)));
        let (edge, help) = match () {
            () if earlier.is_in_flight() => (
                "the copy has not been waited for".to_owned(),
                "wait by `cp_async_wait(..)` and then `barrier()` before its destination is used; where it brings the next \
                 tile, put a `barrier()` before it is started, too",
            ),
            () if copied && !conflict.earlier_read => (
                "only the thread that started the copy has waited for it".to_owned(),
                "put a `barrier()` between `cp_async_wait(..)` and the first use by other threads; where the copy brings the \
                 next tile, put a `barrier()` before it is started, too",
            ),
            () if conflict.missing == Missing::WarpSync => self.unmet(earlier),
            () => self.unordered(earlier, warp),
        };
        report.notes.push(edge);
        report.help = Some(help.into());
        report.address = Some(address);
        report
    }

    /// Two blocks at one place of global memory.
    pub(super) fn block_race(
        &self,
        pc: u32,
        conflict: &BlockConflict,
        address: u64,
        shape: &Access,
        is_write: bool,
    ) -> Report {
        let mut address = self.global_address(address, shape);
        address.offset = conflict.byte as i64;
        address.index = (address.offset % i64::from(shape.element.max(1)) == 0)
            .then(|| address.offset / i64::from(shape.element.max(1)));
        let what = address.index.map_or_else(|| format!("byte {}", address.offset), |index| format!("index {index}"));
        let is_atomic = matches!(self.program.ops.get(pc as usize), Some(Op::Atomic { .. }));
        let verb = match () {
            () if is_atomic => "atomic",
            () if is_write => "write",
            () => "read",
        };
        let noun = match () {
            () if conflict.earlier_read => "read",
            () if conflict.earlier.is_atomic() => "atomic",
            () => "write",
        };
        let place = self.earlier_place(conflict.earlier);
        let message = format!(
            "race between blocks: nothing orders this {verb} of {what} of `{}` and the {noun}{place}",
            address.allocation
        );
        let mut report = self.at(ReportKind::Race, message, pc);
        report.notes.push(match conflict.block() {
            Some(block) => {
                let [x, y, z] = unflatten(block, self.grid);
                format!("the {noun} was by block ({x}, {y}, {z}), {}", self.author(conflict.earlier))
            }
            None => format!("the {noun} was by several blocks"),
        });
        report.notes.push("blocks run in any order, and at the same time".into());
        report.help = Some("give each element to one block, use an atomic, or launch a second kernel".into());
        report.address = Some(address);
        report
    }
}
