//! How many blocks of a kernel a multiprocessor holds at once.

use crate::{Target, Vendor};

/// What one multiprocessor (compute unit) has, and in what portions it is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    /// Warps that are resident at once.
    warps: u32,
    /// Blocks that are resident at once.
    blocks: u32,
    /// Registers of 32 bits for each lane and scheduler, times lanes and schedulers.
    registers: u32,
    /// Registers are given to a warp in portions of so many.
    register_unit: u32,
    /// Warps are given out in portions of so many: one for each scheduler.
    warp_unit: u32,
    /// Bytes of shared memory.
    shared_bytes: u32,
    /// Shared memory is given to a block in portions of so many bytes.
    shared_unit: u32,
    /// What the system takes of each block's shared memory.
    shared_reserved: u32,
}

/// What limits the number of resident blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Resident warps.
    Warps,
    /// Resident blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
}

impl Limit {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Warps => "warps",
            Limit::Blocks => "blocks",
            Limit::Registers => "registers",
            Limit::Shared => "shared memory",
        }
    }
}

/// How full a multiprocessor is with one kernel's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks that are resident at once; 0 when not even one fits.
    pub blocks: u32,
    /// Warps of those blocks.
    pub warps: u32,
    /// Warps that a multiprocessor can hold.
    pub max_warps: u32,
    /// What there is too little of for one more block.
    pub limit: Limit,
}

impl Occupancy {
    /// Where the limits and the formula come from.
    pub fn source(target: Target) -> &'static str {
        match target.vendor() {
            Vendor::Nvidia => {
                "CUDA C++ Programming Guide, \"Technical Specifications per Compute Capability\"; portions as in NVIDIA's \
                 occupancy calculator"
            }
            Vendor::Amd => "AMD CDNA3 and CDNA4 ISA, \"Wave State\"; portions as in LLVM's AMDGPU back end",
        }
    }

    /// The occupancy of a kernel of `threads` a block, with so many registers a thread (on AMD, vector registers of both
    /// kinds) and bytes of shared memory a block.
    ///
    /// With W = ceil(threads / warp), a register portion of U and a warp portion of P: registers allow
    /// floor(registers / ceil(registers a thread * warp, U)) warps, rounded down to P, and a W-th of that in blocks;
    /// shared memory allows floor(bytes / ceil(bytes a block + reserved, portion)). The least of these and of the limits
    /// of warps and blocks holds.
    pub fn of(target: Target, threads: u32, registers: u32, shared_bytes: u32) -> Self {
        let limits = limits(target);
        let warps = threads.div_ceil(target.warp_size()).max(1);
        let a_warp = (registers.max(1) * target.warp_size()).next_multiple_of(limits.register_unit);
        let by_registers = limits.registers / a_warp / limits.warp_unit * limits.warp_unit / warps;
        let a_block = (shared_bytes + limits.shared_reserved).next_multiple_of(limits.shared_unit);
        let by_shared = limits.shared_bytes.checked_div(a_block).unwrap_or(u32::MAX);
        let by = [
            (limits.warps / warps, Limit::Warps),
            (limits.blocks, Limit::Blocks),
            (by_registers, Limit::Registers),
            (if shared_bytes == 0 { u32::MAX } else { by_shared }, Limit::Shared),
        ];
        let (blocks, limit) = by.into_iter().min_by_key(|(blocks, _)| *blocks).unwrap_or((0, Limit::Blocks));
        Self { blocks, warps: blocks * warps, max_warps: limits.warps, limit }
    }
}

fn limits(target: Target) -> Limits {
    match target.vendor() {
        Vendor::Nvidia => Limits {
            warps: 64,
            blocks: 32,
            registers: 65536,
            register_unit: 256,
            warp_unit: 4,
            shared_bytes: if target.generation() < 90 { 164 * 1024 } else { 228 * 1024 },
            shared_unit: 128,
            shared_reserved: 1024,
        },
        // Four SIMD units, each with room for 8 waves and 512 vector registers of 64 lanes, which are given out by eight.
        Vendor::Amd => Limits {
            warps: 32,
            blocks: 32,
            registers: 4 * 512 * 64,
            register_unit: 8 * 64,
            warp_unit: 4,
            shared_bytes: target.max_shared_bytes(),
            shared_unit: if target.generation() < 950 { 512 } else { 1280 },
            shared_reserved: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: Target, threads: u32, registers: u32, shared: u32) -> (u32, Limit) {
        let occupancy = Occupancy::of(target, threads, registers, shared);
        (occupancy.blocks, occupancy.limit)
    }

    #[test]
    fn the_scarcest_thing_limits() {
        // The figures of NVIDIA's occupancy calculator for compute capability 8.0 and 9.0.
        assert_eq!(of(Target::SM_80, 256, 32, 0), (8, Limit::Warps));
        assert_eq!(of(Target::SM_80, 256, 40, 0), (6, Limit::Registers));
        assert_eq!(of(Target::SM_80, 128, 255, 0), (2, Limit::Registers));
        assert_eq!(of(Target::SM_80, 32, 16, 0), (32, Limit::Blocks));
        assert_eq!(of(Target::SM_80, 128, 64, 48 * 1024), (3, Limit::Shared));
        assert_eq!(of(Target::SM_90A, 384, 168, 227 * 1024), (1, Limit::Registers));
        assert_eq!(of(Target::SM_90A, 256, 128, 100 * 1024), (2, Limit::Registers));
        assert_eq!(of(Target::SM_80, 128, 32, 163 * 1024), (1, Limit::Shared));
    }

    #[test]
    fn amd_counts_by_simd_unit() {
        // 105 registers become 112: 4 waves on each of 4 units.
        assert_eq!(of(Target::GFX942, 256, 105, 0), (4, Limit::Registers));
        assert_eq!(of(Target::GFX942, 256, 64, 0), (8, Limit::Warps));
        assert_eq!(of(Target::GFX942, 256, 64, 33 * 1024), (1, Limit::Shared));
        assert_eq!(Occupancy::of(Target::GFX950, 64, 512, 0).warps, 4);
    }
}
