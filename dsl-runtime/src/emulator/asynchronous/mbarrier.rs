//! One mbarrier: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".

use crate::emulator::memory::{Epoch, Knowledge};
use crate::emulator::op::Pc;

/// Largest number of arrivals and of pending bytes (PTX ISA, "Contents of the mbarrier object").
pub(crate) const LIMIT: i64 = (1 << 20) - 1;

/// An mbarrier. A phase completes when no arrival and no byte is pending.
#[derive(Clone, Debug)]
pub(crate) struct Mbarrier {
    /// Arrivals of a phase.
    pub(crate) count: u32,
    /// Arrivals that the current phase still waits for.
    pub(crate) pending: u32,
    /// Bytes that the current phase still waits for; negative when copies came before they were expected.
    pub(crate) bytes: i64,
    /// Bytes that were expected in the current phase.
    pub(crate) expected: i64,
    /// Number of the current phase: that of those completed.
    pub(crate) phase: u64,
    /// Phases that have completed since the last wait that went through, and where the last arrival was.
    pub(crate) unnoticed: u64,
    pub(crate) last_arrival: Option<Pc>,
    /// Where it was made.
    pub(crate) made: Pc,
    /// The thread that made it, and when.
    pub(crate) maker: Epoch,
    /// Whether its maker has made it known to the copy engine.
    pub(crate) fenced: bool,
    /// The component of what copies complete here, from the first copy on.
    pub(crate) component: Option<u32>,
    /// What the arrivals of the current phase released.
    pub(crate) current: Knowledge,
    /// What those of the completed phases released.
    pub(crate) done: Knowledge,
}

/// Why an operation on an mbarrier is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// More arrivals than a phase has.
    Arrivals,
    /// More pending bytes than fit.
    Bytes,
}

impl Mbarrier {
    pub(crate) fn new(count: u32, made: Pc, maker: Epoch, nothing: Knowledge) -> Self {
        let (current, done) = (nothing.clone(), nothing);
        Self {
            count,
            pending: count,
            bytes: 0,
            expected: 0,
            phase: 0,
            unnoticed: 0,
            last_arrival: None,
            made,
            maker,
            fenced: false,
            component: None,
            current,
            done,
        }
    }

    /// Parity of the current phase.
    pub(crate) fn parity(&self) -> u32 {
        (self.phase & 1) as u32
    }

    /// Whether the phase of this parity has completed: the one before the current has the other parity.
    pub(crate) fn is_complete(&self, parity: u32) -> bool {
        self.parity() != parity & 1
    }

    /// Expects more bytes in the current phase.
    pub(crate) fn expect(&mut self, bytes: u32) -> Result<(), Overflow> {
        self.bytes += i64::from(bytes);
        self.expected += i64::from(bytes);
        if self.bytes > LIMIT { Err(Overflow::Bytes) } else { Ok(()) }
    }

    /// One arrival. True when it completes the phase.
    pub(crate) fn arrive(&mut self) -> Result<bool, Overflow> {
        self.pending = self.pending.checked_sub(1).ok_or(Overflow::Arrivals)?;
        Ok(self.settle())
    }

    /// Bytes have landed. True when that completes the phase.
    pub(crate) fn complete(&mut self, bytes: u32) -> Result<bool, Overflow> {
        self.bytes -= i64::from(bytes);
        if self.bytes < -LIMIT { Err(Overflow::Bytes) } else { Ok(self.settle()) }
    }

    fn settle(&mut self) -> bool {
        if self.pending > 0 || self.bytes != 0 {
            return false;
        }
        self.phase += 1;
        self.unnoticed += 1;
        self.pending = self.count;
        self.expected = 0;
        let current = std::mem::take(&mut self.current);
        self.done.join(&current);
        self.current = current;
        self.current.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn barrier(count: u32) -> Mbarrier {
        Mbarrier::new(count, 0, Epoch::default(), Knowledge::default())
    }

    #[test]
    fn a_phase_completes_without_pending_arrivals_and_bytes() {
        let mut barrier = barrier(2);
        // A fresh barrier counts as if the phase before the first were complete.
        assert!(barrier.is_complete(1) && !barrier.is_complete(0));
        assert_eq!(barrier.arrive(), Ok(false));
        barrier.expect(96).unwrap();
        assert_eq!(barrier.arrive(), Ok(false));
        assert_eq!(barrier.arrive(), Err(Overflow::Arrivals));
        assert_eq!(barrier.complete(64), Ok(false));
        assert_eq!(barrier.complete(32), Ok(true));
        assert!(barrier.is_complete(0) && !barrier.is_complete(1));
        assert_eq!((barrier.pending, barrier.bytes, barrier.phase), (2, 0, 1));
    }

    #[test]
    fn bytes_may_land_before_they_are_expected() {
        let mut barrier = barrier(1);
        assert_eq!(barrier.complete(16), Ok(false));
        barrier.expect(16).unwrap();
        assert_eq!(barrier.arrive(), Ok(true));
        assert_eq!(barrier.expect(1 << 20), Err(Overflow::Bytes));
    }
}
