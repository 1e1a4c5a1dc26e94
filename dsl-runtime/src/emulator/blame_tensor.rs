//! Reports about tensor memory, in the user's words.

use super::asynchronous::op::AsyncOp;
use super::asynchronous::tcgen05::TensorOp;
use super::asynchronous::tensor_memory::TensorFault;
use super::blame::Scene;
use super::memory::TensorOrder;
use super::op::Pc;
use super::report::{Report, ReportKind};

impl Scene<'_> {
    /// What an operation on tensor memory is called.
    pub(super) fn tensor_noun(op: &AsyncOp) -> Option<&'static str> {
        match op {
            AsyncOp::Tensor(TensorOp::Multiply(_)) => Some("tcgen05.mma"),
            AsyncOp::Tensor(TensorOp::Load { .. }) => Some("tcgen05.ld"),
            AsyncOp::Tensor(TensorOp::Store { .. }) => Some("tcgen05.st"),
            AsyncOp::Tensor(TensorOp::Commit { .. }) => Some("tcgen05.commit"),
            _ => None,
        }
    }

    fn tensor_op(&self, pc: Pc) -> &'static str {
        self.async_noun(pc).unwrap_or("operation")
    }

    /// Where an operation stands that another is compared with.
    fn earlier(&self, pc: Pc) -> String {
        format!("the {}{}", self.tensor_op(pc), self.spot(pc))
    }

    /// A rule of tensor memory.
    pub(super) fn tensor_fault(&self, pc: Pc, fault: &TensorFault) -> Report {
        use TensorFault as F;
        let noun = self.tensor_op(pc);
        let (kind, message, notes, help) = match fault {
            F::OtherLanes { warp, lane, store } => {
                let (verb, own) = (if *store { "stores to" } else { "loads" }, 32 * (warp % 4));
                (
                    ReportKind::TensorMemory,
                    format!(
                        "warp {warp} {verb} lanes {lane} to {} of tensor memory, and it reaches lanes {own} to {} alone",
                        lane + 31,
                        own + 31
                    ),
                    vec!["warp w reaches lanes 32 (w mod 4) to 32 (w mod 4) + 31 (PTX ISA, tcgen05.ld)".to_owned()],
                    "take the rows that the warp reaches, `tile.own_rows()`, and compute their numbers from \
                     `warp_id() % 4`"
                        .to_owned(),
                )
            }
            F::NotAllocated { first, count, freed } => {
                let columns = format!("columns {first} to {} of tensor memory", first + count.max(&1) - 1);
                match freed {
                    Some(at) => (
                        ReportKind::TensorMemory,
                        format!("{noun} to {columns}, which are freed"),
                        vec![format!("they were freed{}", self.spot(*at))],
                        "give tensor memory back when nothing uses it any more".to_owned(),
                    ),
                    None => (
                        ReportKind::OutOfBounds,
                        format!("{noun} to {columns}, which are not all allocated"),
                        vec!["columns count from the start of the allocation".to_owned()],
                        "allocate more columns, or stay inside of the tile".to_owned(),
                    ),
                }
            }
            F::UnderWay { earlier, earlier_read, lane, column } => {
                self.under_way(noun, *earlier, *earlier_read, (*lane, *column))
            }
            F::Race { earlier, earlier_read, order, lane, column } => {
                let verb = if *earlier_read { "read" } else { "wrote" };
                let message = format!(
                    "race in tensor memory: this {noun} of lane {lane}, column {column} and {}, which {verb} it",
                    self.earlier(*earlier)
                );
                let (missing, help) = match order {
                    TensorOrder::NoFenceAfter => (
                        "the threads have synchronised, but nothing orders this access behind that: there is no \
                         tcgen05.fence::after_thread_sync",
                        "put `tcgen05_fence_after_thread_sync()` behind the wait or the barrier, as \
                         `accumulator.wait(barrier, parity)` does",
                    ),
                    TensorOrder::NoFenceBefore => (
                        "the threads have synchronised, but nothing orders the earlier access before that: there is no \
                         tcgen05.fence::before_thread_sync",
                        "put `tcgen05_fence_before_thread_sync()` before the arrival or the barrier, behind the wait \
                         for the load or store",
                    ),
                    _ => (
                        "no barrier or mbarrier orders the two",
                        "wait for an mbarrier that the first is committed to, or that its thread arrives at",
                    ),
                };
                let message = match order {
                    TensorOrder::NoFenceAfter | TensorOrder::NoFenceBefore => {
                        format!("{message}: no tcgen05 fence between them")
                    }
                    _ => message,
                };
                (ReportKind::Race, message, vec![missing.to_owned()], help.to_owned())
            }
            F::Unwritten { lane, column } => (
                ReportKind::Uninitialized,
                format!("{noun} reads tensor memory that nothing wrote: lane {lane}, column {column}"),
                vec!["a fresh allocation holds what the last kernel left".to_owned()],
                "let the first product start from zero (`accumulate` false), or store zeros first".to_owned(),
            ),
            F::Relinquished { at } => (
                ReportKind::TensorMemory,
                "an allocation of tensor memory behind the end of the permit".to_owned(),
                vec![format!("the permit was given up{}", self.spot(*at))],
                "allocate all before `relinquish_alloc_permit()`".to_owned(),
            ),
            F::Grows { columns, before, at } => (
                ReportKind::TensorMemory,
                format!("an allocation of {columns} columns of tensor memory behind one of {before}"),
                vec![format!("the one before was made{}", self.spot(*at))],
                "allocations of a block may not grow: allocate the largest first".to_owned(),
            ),
            F::NotAnAllocation { address, columns, freed } => match freed {
                Some(at) => (
                    ReportKind::TensorMemory,
                    format!("{columns} columns of tensor memory are freed a second time"),
                    vec![format!("they were freed{}", self.spot(*at))],
                    "free each allocation once".to_owned(),
                ),
                None => (
                    ReportKind::TensorMemory,
                    format!(
                        "{columns} columns at column {} of tensor memory are freed, and no such allocation exists",
                        address & 0xffff
                    ),
                    vec![],
                    "free the address that the allocation gave, with as many columns".to_owned(),
                ),
            },
            F::FreedInUse { earlier } => (
                ReportKind::TensorMemory,
                format!("tensor memory is freed while {} may be under way", self.earlier(*earlier)),
                vec![],
                "wait for it, and let its thread meet the one that frees".to_owned(),
            ),
            F::Leak { columns } => (
                ReportKind::TensorMemory,
                format!("{columns} columns of tensor memory are never freed"),
                vec!["the block ends with them: the next one on the multiprocessor waits forever".to_owned()],
                "call `.dealloc()` on every path to the kernel's end".to_owned(),
            ),
            F::ManyThreads { threads } => (
                ReportKind::TensorMemory,
                format!("{threads} threads of the warp execute this {noun}, and each makes one of its own"),
                vec![],
                "let one thread do it: `if warp_id() == 0 && elect_one() { .. }`".to_owned(),
            ),
            F::AccumulatorLane { lane } => (
                ReportKind::TensorMemory,
                format!("an accumulator from lane {lane} of tensor memory on"),
                vec!["accumulators begin at lane 0, those of 64 rows at lane 0 or 16".to_owned()],
                "give the accumulator itself to the product, and no part of it".to_owned(),
            ),
        };
        let mut report = self.at(kind, message, pc);
        report.notes = notes;
        report.help = Some(help);
        report
    }

    /// An access to cells that an earlier operation has not left yet.
    fn under_way(
        &self,
        noun: &str,
        earlier: Pc,
        earlier_read: bool,
        (lane, column): (u32, u32),
    ) -> (ReportKind, String, Vec<String>, String) {
        let (what, help) = match (self.tensor_op(earlier), earlier_read) {
            ("tcgen05.mma", _) => (
                "sums there",
                "wait for the mbarrier that the product is committed to, by the parity of that phase: \
                 `accumulator.wait(barrier, parity)`",
            ),
            (_, true) => ("reads it", "call `.wait()` on the load before others may write there"),
            _ => ("writes it", "call `.wait()` on the store before the cells are used"),
        };
        let message = format!(
            "{noun} of tensor memory, lane {lane}, column {column}, while {} is under way, which {what}",
            self.earlier(earlier)
        );
        (ReportKind::InFlight, message, vec![], help.to_owned())
    }
}
