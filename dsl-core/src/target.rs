//! The chips that Lacewing compiles for and emulates.

use std::fmt;

use crate::{Diagnostic, Error};

/// Who makes the chip: decides warp width, address spaces and the back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// PTX through NVVM; warps of 32.
    Nvidia,
    /// AMDGCN through ROCDL; waves of 64.
    Amd,
}

/// A chip, by its compiler name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target(&'static Facts);

#[derive(PartialEq, Eq, Hash)]
struct Facts {
    name: &'static str,
    vendor: Vendor,
    /// Compute capability times ten for NVIDIA; the gfx number's digits for AMD.
    generation: u32,
    max_shared_bytes: u32,
    about: &'static str,
}

static SM_80: Facts = Facts {
    name: "sm_80",
    vendor: Vendor::Nvidia,
    generation: 80,
    // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 163 KB a block.
    max_shared_bytes: 163 * 1024,
    about: "NVIDIA Ampere (A100)",
};
static SM_90A: Facts = Facts {
    name: "sm_90a",
    vendor: Vendor::Nvidia,
    generation: 90,
    max_shared_bytes: 227 * 1024,
    about: "NVIDIA Hopper (H100, H200)",
};
static SM_100A: Facts = Facts {
    name: "sm_100a",
    vendor: Vendor::Nvidia,
    generation: 100,
    max_shared_bytes: 227 * 1024,
    about: "NVIDIA Blackwell (B200)",
};
static GFX942: Facts = Facts {
    name: "gfx942",
    vendor: Vendor::Amd,
    generation: 942,
    // CDNA3 ISA, "LDS": 64 KiB a compute unit and work-group.
    max_shared_bytes: 64 * 1024,
    about: "AMD CDNA3 (MI300X, MI325X)",
};
static GFX950: Facts = Facts {
    name: "gfx950",
    vendor: Vendor::Amd,
    generation: 950,
    max_shared_bytes: 160 * 1024,
    about: "AMD CDNA4 (MI350X, MI355X)",
};

impl Target {
    /// NVIDIA Ampere.
    pub const SM_80: Target = Target(&SM_80);
    /// NVIDIA Hopper with its architecture-specific instructions.
    pub const SM_90A: Target = Target(&SM_90A);
    /// NVIDIA Blackwell with its architecture-specific instructions.
    pub const SM_100A: Target = Target(&SM_100A);
    /// AMD CDNA3.
    pub const GFX942: Target = Target(&GFX942);
    /// AMD CDNA4.
    pub const GFX950: Target = Target(&GFX950);
    /// Every target.
    pub const ALL: [Target; 5] = [Self::SM_80, Self::SM_90A, Self::SM_100A, Self::GFX942, Self::GFX950];

    /// The compiler's name of the chip, as `sm_90a` or `gfx942`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The chip's family and products, for people.
    pub fn about(self) -> &'static str {
        self.0.about
    }

    /// Finds a target by [`Target::name`].
    ///
    /// # Errors
    /// When there is none of that name: the error lists those that exist.
    pub fn from_name(name: &str) -> Result<Target, Error> {
        Self::ALL.into_iter().find(|t| t.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|t| t.name()).collect();
            Diagnostic::error(format!("there is no target `{name}`"))
                .help(format!("the targets are {}", known.join(", ")))
                .into()
        })
    }

    /// The chip's vendor.
    pub fn vendor(self) -> Vendor {
        self.0.vendor
    }

    /// Whether this is an NVIDIA chip.
    pub fn is_nvidia(self) -> bool {
        self.0.vendor == Vendor::Nvidia
    }

    /// Whether this is an AMD chip.
    pub fn is_amd(self) -> bool {
        self.0.vendor == Vendor::Amd
    }

    /// Compute capability times ten (80, 90, 100) or the gfx digits (942, 950).
    pub fn generation(self) -> u32 {
        self.0.generation
    }

    /// Threads that execute together: 32 (warp) or 64 (wave).
    pub fn warp_size(self) -> u32 {
        match self.0.vendor {
            Vendor::Nvidia => 32,
            Vendor::Amd => 64,
        }
    }

    /// Shared memory (LDS) that one block may use, in bytes.
    pub fn max_shared_bytes(self) -> u32 {
        self.0.max_shared_bytes
    }

    /// Threads that one block may have.
    pub fn max_block_threads(self) -> u32 {
        1024
    }

    /// Largest extents of a block in x, y and z.
    pub fn max_block_dims(self) -> [u32; 3] {
        match self.0.vendor {
            Vendor::Nvidia => [1024, 1024, 64],
            Vendor::Amd => [1024, 1024, 1024],
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_a_wrong_one_lists_the_known() {
        for target in Target::ALL {
            assert_eq!(Target::from_name(target.name()).unwrap(), target);
        }
        let text = Target::from_name("sm_75").unwrap_err().to_string();
        assert!(text.contains("no target `sm_75`") && text.contains("gfx942"), "{text}");
    }
}
