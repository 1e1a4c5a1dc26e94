//! Operations between the lanes of a warp.

use crate::emulator::lanes::{LANES, Reg, Registers};
use crate::emulator::op::ShuffleMode;

/// A shuffle in which an active lane reads one that does not take part, or that a warp does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRead {
    pub(crate) lane: u32,
    pub(crate) kind: BadSource,
}

/// What is wrong with the lane that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadSource {
    Inactive(u32),
    /// A lane number that is not below the width of a warp.
    NoLane(i32),
    /// A distance that is not.
    TooFar(i32),
}

/// `d[i] = a[i ^ distance]` over 32 lanes.
#[inline(always)]
pub(crate) fn shuffle_xor(regs: &mut Registers<'_>, d: Reg, a: Reg, distance: u32, mask: u64) -> Result<(), BadRead> {
    if distance as usize >= LANES && mask != 0 {
        return Err(BadRead { lane: mask.trailing_zeros(), kind: BadSource::TooFar(distance as i32) });
    }
    let distance = distance as usize & (LANES - 1);
    if mask as u32 != u32::MAX {
        for lane in 0..LANES {
            let source = lane ^ distance;
            if mask >> lane & 1 == 1 && mask >> source & 1 == 0 {
                return Err(BadRead { lane: lane as u32, kind: BadSource::Inactive(source as u32) });
            }
        }
    }
    let lanes = regs.read::<u32>(a);
    // A constant distance makes each arm a few shuffles of vector registers.
    let out = match distance {
        1 => std::array::from_fn(|i| lanes[i ^ 1]),
        2 => std::array::from_fn(|i| lanes[i ^ 2]),
        4 => std::array::from_fn(|i| lanes[i ^ 4]),
        8 => std::array::from_fn(|i| lanes[i ^ 8]),
        16 => std::array::from_fn(|i| lanes[i ^ 16]),
        other => std::array::from_fn(|i| lanes[(i ^ other) & (LANES - 1)]),
    };
    regs.write(d, out);
    Ok(())
}

/// The lane that a lane reads: PTX ISA, `shfl`, with the whole warp as one segment.
pub(crate) fn source_lane(mode: ShuffleMode, lane: usize, index: u32, width: usize) -> usize {
    let index = index as usize & (width - 1);
    match mode {
        ShuffleMode::Xor => lane ^ index,
        ShuffleMode::Up => lane.checked_sub(index).unwrap_or(lane),
        ShuffleMode::Down => {
            if lane + index < width {
                lane + index
            } else {
                lane
            }
        }
        ShuffleMode::Index => index,
    }
}

/// `d[i] = a[source(i)]` over a warp or a wave.
pub(crate) fn shuffle(
    regs: &mut Registers<'_>,
    mode: ShuffleMode,
    wave: bool,
    d: Reg,
    a: Reg,
    index: Reg,
    mask: u64,
) -> Result<(), BadRead> {
    let width = if wave { 64 } else { 32 };
    let mut out = [0_u32; 64];
    for (lane, out) in out.iter_mut().enumerate().take(width) {
        let distance = regs.lane::<u32>(index + (lane / 32) as u32, lane % 32);
        let source = source_lane(mode, lane, distance, width);
        if mask >> lane & 1 == 1 && (distance as usize >= width || mask >> source & 1 == 0) {
            let kind = match mode {
                _ if (distance as usize) < width => BadSource::Inactive(source as u32),
                ShuffleMode::Index => BadSource::NoLane(distance as i32),
                _ => BadSource::TooFar(distance as i32),
            };
            return Err(BadRead { lane: lane as u32, kind });
        }
        *out = regs.lane::<u32>(a + (source / 32) as u32, source % 32);
    }
    let [low, high]: [[u32; LANES]; 2] = bytemuck::cast(out);
    regs.write(d, low);
    if wave {
        regs.write(d + 1, high);
    }
    Ok(())
}

/// The active lanes where a condition holds, as a number in every lane.
pub(crate) fn ballot(regs: &mut Registers<'_>, wave: bool, d: Reg, bits: u64) {
    regs.write(d, [bits; LANES]);
    if wave {
        regs.write(d + 2, [bits; LANES]);
    }
}
