//! Conflicts of one warp's access to shared memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{IndexMap, LayoutError};

/// How the accesses of one warp fall on the banks of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankConflicts {
    /// The most words that any bank serves in one phase: 1 is free of conflicts, 8 is an 8-way conflict.
    pub degree: u64,
    /// How many times the memory is read or written: the degrees of all phases together.
    pub wavefronts: u64,
    /// How many phases there are, which is what an access without conflicts needs.
    pub phases: u64,
}

impl BankConflicts {
    /// Whether no phase takes more than one turn.
    pub fn is_free(&self) -> bool {
        self.degree <= 1
    }

    /// Before any phase.
    pub(crate) const NONE: Self = BankConflicts { degree: 0, wavefronts: 0, phases: 0 };

    /// Counts one phase: lanes that access `width` bytes each, at these byte addresses.
    pub(crate) fn add_phase(&mut self, addresses: &[i64], width: i64, banks: i64) {
        let words: BTreeSet<i64> = addresses.iter().flat_map(|byte| byte / WORD..=(byte + width - 1) / WORD).collect();
        let mut served = BTreeMap::<i64, u64>::new();
        for word in words {
            *served.entry(word % banks).or_default() += 1;
        }
        let degree = served.into_values().max().unwrap_or(0);
        self.degree = self.degree.max(degree);
        self.wavefronts += degree;
        self.phases += 1;
    }
}

/// The bytes of a bank's word.
pub(crate) const WORD: i64 = 4;

/// The bank conflicts of one access by a warp, where lane `i` accesses `access_bytes` at byte `lanes(i)` of shared
/// memory.
///
/// Memory has `banks` banks of 4-byte words, word `w` in bank `w % banks`. An access wider than a word is made in
/// phases of as many consecutive lanes as together access each bank once: for 32 banks and 16 bytes, eight lanes.
/// (So it is on NVIDIA, where `ldmatrix` reads the eight rows of a matrix likewise. LDS on AMD groups other lanes for
/// its widest reads.) In a phase each bank serves one word after the other; lanes that access the same word share it.
///
/// `access_bytes` is 1, 2, 4, 8 or 16, and every address a multiple of it.
///
/// ```
/// use lacewing_core::layout;
/// use lacewing_core::layout::{ComposedLayout, Swizzle, bank_conflicts};
///
/// // `ldmatrix` of eight rows that are 128 bytes apart.
/// let rows = layout![8; 128]?;
/// assert_eq!(bank_conflicts(&rows, 16, 32)?.degree, 8);
/// let swizzled = ComposedLayout::new(Swizzle::new(3, 4, 3)?, rows)?;
/// assert!(bank_conflicts(&swizzled, 16, 32)?.is_free());
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
pub fn bank_conflicts(lanes: &impl IndexMap, access_bytes: u32, banks: u32) -> Result<BankConflicts, LayoutError> {
    let width = i64::from(access_bytes);
    if !matches!(width, 1 | 2 | 4 | 8 | 16) {
        return Err(LayoutError::Argument {
            what: "an access",
            value: width,
            why: "it must be 1, 2, 4, 8 or 16 bytes",
        });
    }
    let banks = i64::from(banks);
    if banks < 1 || banks * WORD % width != 0 {
        let why = "the banks together must hold a whole number of accesses";
        return Err(LayoutError::Argument { what: "a number of banks", value: banks, why });
    }
    if lanes.coordinates()? > 1024 {
        let why = "a warp has at most 64 lanes, a block 1024 threads";
        return Err(LayoutError::Argument { what: "a number of lanes", value: lanes.coordinates()?, why });
    }
    let offsets = lanes.indices()?;
    let lanes_per_phase = usize::try_from(banks * WORD / width.max(WORD)).unwrap_or(1);
    let mut conflicts = BankConflicts::NONE;
    for phase in offsets.chunks(lanes_per_phase) {
        if let Some(&offset) = phase.iter().find(|offset| **offset < 0 || **offset % width != 0) {
            let why = "it must be a multiple of the access's width, from 0";
            return Err(LayoutError::Argument { what: "an address", value: offset, why });
        }
        conflicts.add_phase(phase, width, banks);
    }
    Ok(conflicts)
}
