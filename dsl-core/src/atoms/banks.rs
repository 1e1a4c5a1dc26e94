//! Shared memory without bank conflicts: rules of each target, and layouts that keep them.

use std::ops::Range;

use super::shared_tensor::IntoLayout;
use crate::layout::banks::WORD;
use crate::layout::{BankConflicts, ComposedLayout, Dim, Layout, LayoutError, Swizzle};
use crate::{Target, Vendor};

/// One access of a warp to a tile in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpAccess {
    /// The row and column of the first element that each lane accesses, in lane order.
    pub lanes: Vec<[usize; 2]>,
    /// Bytes of a lane: 1, 2, 4, 8 or 16.
    pub bytes: usize,
    /// Whether it writes.
    pub store: bool,
}

/// How a target serves an access: the number of banks, and which lanes it serves at once.
///
/// NVIDIA: 32 banks of 4 bytes; as many consecutive lanes at once as access 128 bytes (CUDA C++ Programming Guide,
/// *Shared Memory*; for `ldmatrix` these are the eight rows of a matrix). AMD: for wide accesses the groups are those
/// that Composable Kernel documents for CDNA3 and that HipKittens measured on CDNA4, whose reads have 64 banks; for
/// 8 bytes on CDNA3 no group is documented, and 16 consecutive lanes are assumed.
pub fn bank_phases(target: Target, bytes: usize, store: bool) -> (i64, Vec<Vec<usize>>) {
    let consecutive = |lanes: usize| -> Vec<Vec<usize>> {
        let warp: Vec<usize> = (0..target.warp_size() as usize).collect();
        warp.chunks(lanes.max(1)).map(<[usize]>::to_vec).collect()
    };
    let grouped = |half: &[&[Range<usize>]]| -> Vec<Vec<usize>> {
        let lanes = |group: &&[Range<usize>], from: usize| group.iter().cloned().flatten().map(|l| l + from).collect();
        [0, 32].iter().flat_map(|&from| half.iter().map(move |group| lanes(group, from))).collect()
    };
    let narrow = bytes.max(WORD as usize);
    match (target.vendor(), store, bytes) {
        (Vendor::Amd, false, 16) if target == Target::GFX942 => {
            (32, grouped(&[&[0..4, 20..24], &[4..8, 16..20], &[8..12, 28..32], &[12..16, 24..28]]))
        }
        (Vendor::Amd, false, 16) => (64, grouped(&[&[0..4, 12..16, 20..28], &[4..12, 16..20, 28..32]])),
        (Vendor::Amd, false, _) if target != Target::GFX942 => (64, consecutive(256 / narrow)),
        _ => (32, consecutive(128 / narrow)),
    }
}

/// The bank conflicts of an access to a tile under a layout of `(row, column)` in elements of so many bytes.
///
/// # Errors
/// An access that is no multiple of its width, or a layout that is not defined there.
pub fn access_conflicts(
    target: Target,
    layout: &ComposedLayout,
    element_bytes: usize,
    access: &WarpAccess,
) -> Result<BankConflicts, LayoutError> {
    let width = access.bytes as i64;
    let refused = |what, value, why| Err(LayoutError::Argument { what, value, why });
    if !matches!(width, 1 | 2 | 4 | 8 | 16) {
        return refused("an access", width, "it must be 1, 2, 4, 8 or 16 bytes");
    }
    let (banks, phases) = bank_phases(target, access.bytes, access.store);
    let mut conflicts = BankConflicts::NONE;
    for phase in phases {
        let mut addresses = Vec::new();
        for lane in phase {
            let Some(&[row, column]) = access.lanes.get(lane) else { continue };
            let byte = Dim::from(layout.crd2idx((row, column))?).times(&element_bytes.into())?.get("an address")?;
            if byte % width != 0 {
                return refused("an address", byte, "it must be a multiple of the access's width");
            }
            addresses.push(byte);
        }
        conflicts.add_phase(&addresses, width, banks);
    }
    Ok(conflicts)
}

/// How a layout spreads rows over the banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Rows are longer than their elements: addresses stay sums, which become immediate offsets.
    Pad,
    /// Pieces of rows change places, by a [`Swizzle`]: no memory is lost, some addresses take an xor.
    Swizzle,
}

/// A row-major layout of `shape` in which none of these accesses has a bank conflict, with as little padding, or as few
/// bits of swizzle, as do. That it is so is evaluated for each lane of each access by [`access_conflicts`].
///
/// Accesses that share the banks as well as their target can, but move more than all banks hold at once, are free of
/// conflicts too: the degree counts per phase.
///
/// ```
/// use lacewing_core::Target;
/// use lacewing_core::atoms::{Spread, WarpAccess, conflict_free};
///
/// // `ldmatrix` of four matrices one above the other, in a tile of 32 rows of 64 halves.
/// let rows = WarpAccess { lanes: (0..32).map(|row| [row, 0]).collect(), bytes: 16, store: false };
/// let swizzled = conflict_free(Target::SM_80, [32, 64], 2, Spread::Swizzle, &[rows.clone()])?;
/// assert_eq!(swizzled.to_string(), "Sw<3,3,3> o 0 o (32,64):(64,1)");
/// let padded = conflict_free(Target::SM_80, [32, 64], 2, Spread::Pad, &[rows])?;
/// assert_eq!(padded.to_string(), "Sw<0,0,0> o 0 o (32,64):(72,1)");
/// # Ok::<(), lacewing_core::layout::LayoutError>(())
/// ```
///
/// # Errors
/// [`LayoutError::Conflicts`] where no such layout was found, and all of [`access_conflicts`].
pub fn conflict_free(
    target: Target,
    shape: [usize; 2],
    element_bytes: usize,
    spread: Spread,
    accesses: &[WarpAccess],
) -> Result<ComposedLayout, LayoutError> {
    let [rows, columns] = shape;
    // What must stay together: the widest access.
    let unit = accesses.iter().map(|access| access.bytes / element_bytes.max(1)).max().unwrap_or(1).max(1);
    let plain = Layout::new((rows, columns), (columns, 1))?;
    let mut candidates = vec![plain.clone().into_layout()?];
    match spread {
        Spread::Pad => {
            for pad in 1..=8 {
                candidates.push(Layout::new((rows, columns), (columns + pad * unit, 1))?.into_layout()?);
            }
        }
        Spread::Swizzle => {
            let base = unit.ilog2();
            for bits in 1..=4 {
                for shift in bits..=7 {
                    let swizzle = Swizzle::new(bits, base, shift as i32)?;
                    // A swizzle must permute the tile itself.
                    if (rows * columns) as i64 % swizzle.block() == 0 {
                        candidates.push(ComposedLayout::new(swizzle, plain.clone())?);
                    }
                }
            }
        }
    }
    let mut best = u64::MAX;
    for candidate in candidates {
        let mut worst = 0;
        for access in accesses {
            worst = worst.max(access_conflicts(target, &candidate, element_bytes, access)?.degree);
            if worst > 1 {
                break;
            }
        }
        if worst <= 1 {
            return Ok(candidate);
        }
        best = best.min(worst);
    }
    Err(LayoutError::Conflicts { rows: rows as i64, columns: columns as i64, degree: best })
}
