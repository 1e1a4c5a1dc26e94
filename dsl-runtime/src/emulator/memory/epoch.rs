//! Who touched a cell of memory, when and where: one word.

use crate::emulator::op::Pc;

/// An access: `time << 32 | pc << 16 | atomic << 15 | in flight << 14 | warp << 7 | lane`. Time is a tick of
/// the block's clock for shared memory, the block's number + 1 for global memory; 0 is never. The warp is a
/// component of the clocks: see [`super::SharedRaces`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(transparent)]
pub(crate) struct Epoch(pub(crate) u64);

/// Operations beyond this one are not told apart.
const LAST_PC: u32 = (1 << 16) - 1;
/// Components of a clock.
pub(crate) const COMPONENTS: u32 = 128;
const IN_FLIGHT: u64 = 1 << 14;
const ATOMIC: u64 = 1 << 15;

/// So many cells that nobody has touched. Their pages come zeroed from the system, and only those that
/// are used cost anything.
pub(super) fn untouched(count: usize) -> Box<[Epoch]> {
    let boxed = vec![0_u64; count].into_boxed_slice();
    // SAFETY: `Epoch` is a transparent `u64`, and the slice is owned.
    unsafe { Box::from_raw(Box::into_raw(boxed) as *mut [Epoch]) }
}

impl Epoch {
    /// The lane that stands for several.
    pub(crate) const MANY: u32 = 127;
    /// All lanes of a warp at once, in an operation that none leaves before the others.
    pub(crate) const TOGETHER: u32 = 126;

    #[inline(always)]
    pub(crate) fn new(time: u32, pc: Pc, warp: u32, lane: u32) -> Self {
        let warp = u64::from(warp & (COMPONENTS - 1)) << 7;
        Self(u64::from(time) << 32 | u64::from(pc.min(LAST_PC)) << 16 | warp | u64::from(lane))
    }

    /// The same by a read-modify-write.
    pub(crate) fn atomic(self) -> Self {
        Self(self.0 | ATOMIC)
    }

    /// The same by a copy that has been started and not waited for.
    pub(crate) fn in_flight(self) -> Self {
        Self(self.0 | IN_FLIGHT)
    }

    #[inline(always)]
    pub(crate) fn time(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn pc(self) -> Option<Pc> {
        let pc = (self.0 >> 16) as u32 & LAST_PC;
        (pc < LAST_PC).then_some(pc)
    }

    #[inline(always)]
    pub(crate) fn warp(self) -> u32 {
        (self.0 >> 7) as u32 & (COMPONENTS - 1)
    }

    /// `None` for several lanes.
    #[inline(always)]
    pub(crate) fn lane(self) -> Option<u32> {
        let lane = self.0 as u32 & 127;
        (lane < 64).then_some(lane)
    }

    /// Warp and lane, as one number.
    #[inline(always)]
    pub(crate) fn thread(self) -> u32 {
        self.0 as u32 & ((1 << 14) - 1)
    }

    /// Whether the same thread, by warp and lane, made another access.
    #[inline(always)]
    pub(crate) fn is_by(self, other: Self) -> bool {
        self.thread() == other.thread()
    }

    /// A read beside the last one of the same warp: several lanes at one tick become "many".
    #[inline(always)]
    pub(super) fn merged(self, new: Self) -> Self {
        let same_tick = self.0 >> 32 == new.0 >> 32;
        let other_lane = (self.0 ^ new.0) & u64::from(Self::MANY) != 0;
        Self(new.0 | if same_tick & other_lane { u64::from(Self::MANY) } else { 0 })
    }

    pub(crate) fn is_together(self) -> bool {
        self.0 as u32 & 127 == Self::TOGETHER
    }

    pub(crate) fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    #[inline(always)]
    pub(crate) fn is_in_flight(self) -> bool {
        self.0 & IN_FLIGHT != 0
    }
}
