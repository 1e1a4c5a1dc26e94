//! `while` loops that cannot end, long before the budget of operations says so.
//!
//! The decoder knows the part of a loop's state that its condition depends on, where that is no memory
//! ([`Watch`]). When a warp has run for long, a few rounds of its loops are looked at: once that part has come
//! back to an earlier value, in all lanes that are still in the loop, it will do so for ever.

use crate::emulator::lanes::{MaskReg, Reg, Registers};
use crate::emulator::op::Pc;

/// The slots and masks that decide about a loop's next round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// First slot of each number in the low half, the distance to the high half, and whether it has 64 bits.
    pub(crate) numbers: Vec<(Reg, u32, bool)>,
    pub(crate) masks: Vec<MaskReg>,
}

impl Watch {
    /// The values in the active lanes, and which lanes these are.
    fn values(&self, regs: &Registers<'_>, mask: u64) -> Vec<u64> {
        let mut values = vec![mask];
        for &(first, stride, wide) in &self.numbers {
            for lane in (0..64).filter(|lane| mask >> lane & 1 == 1) {
                let (reg, lane) = (first + lane / 32 * stride, lane as usize % 32);
                values.push(if wide { regs.lane::<u64>(reg, lane) } else { u64::from(regs.lane::<u32>(reg, lane)) });
            }
        }
        values.extend(self.masks.iter().map(|&condition| regs.mask(condition) & mask));
        values
    }
}

/// Operations after which a warp's loops are looked at first.
const FIRST_LOOK: u64 = 1 << 20;
/// Rounds that are looked at each time: loops that come back to a state after more are left to the budget.
const ROUNDS: u32 = 4096;

/// What has been seen of a warp's loops.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Executed operations from which on rounds are looked at.
    pub(crate) from: u64,
    left: u32,
    /// The state of each loop, by its first operation, at its first round since looking began.
    seen: Vec<(Pc, Vec<u64>)>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { from: FIRST_LOOK, left: ROUNDS, seen: Vec::new() }
    }
}

impl Progress {
    /// Whether rounds are being looked at.
    #[inline(always)]
    pub(crate) fn is_looking(&self) -> bool {
        !self.seen.is_empty()
    }

    /// A loop begins anew: what it was before does not count.
    #[cold]
    pub(crate) fn enters(&mut self, body: Pc) {
        self.seen.retain(|(other, _)| *other != body);
    }

    /// Whether a loop that goes into another round comes back to a state that it was in.
    #[cold]
    #[inline(never)]
    pub(crate) fn is_stuck(
        &mut self,
        watch: Option<&Watch>,
        regs: &Registers<'_>,
        mask: u64,
        body: Pc,
        executed: u64,
    ) -> bool {
        if self.left == 0 {
            *self = Self { from: executed.saturating_mul(2), ..Self::default() };
            return false;
        }
        self.left -= 1;
        let Some(watch) = watch else { return false };
        let now = watch.values(regs, mask);
        match self.seen.iter().find(|(other, _)| *other == body) {
            Some((_, before)) => *before == now,
            None => {
                self.seen.push((body, now));
                false
            }
        }
    }
}
