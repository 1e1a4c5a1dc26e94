//! Static layouts as plain numbers, for looking at all of a tile at once.

use crate::layout::{ComposedLayout, Layout, LayoutError};

/// A static layout of two modes: extents and strides of each, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flat {
    modes: [Vec<(i64, i64)>; 2],
    offset: i64,
}

fn modes_of(layout: &Layout) -> Result<Vec<(i64, i64)>, LayoutError> {
    let flat = layout.coalesce()?;
    let (extents, strides) = (flat.shape(), flat.stride());
    let modes = extents.leaves().into_iter().zip(strides.leaves());
    modes.map(|(extent, stride)| Ok((extent.get("a tile")?, stride.get("a tile")?))).collect()
}

impl Flat {
    /// The layout before its swizzle. It must have two modes and no dynamic part.
    pub(super) fn of(layout: &ComposedLayout) -> Result<Self, LayoutError> {
        let inner = layout.layout();
        if inner.rank() != 2 {
            return Err(LayoutError::Argument {
                what: "a tile's rank",
                value: inner.rank() as i64,
                why: "a tile has rows and columns: fix its other modes",
            });
        }
        let modes = [modes_of(&inner.mode(&[0])?)?, modes_of(&inner.mode(&[1])?)?];
        Ok(Self { modes, offset: layout.offset() })
    }

    /// Rows and columns.
    pub(super) fn shape(&self) -> [usize; 2] {
        [0, 1].map(|mode| self.extent(mode))
    }

    fn extent(&self, mode: usize) -> usize {
        let extents = self.modes.get(mode).into_iter().flatten().map(|&(extent, _)| extent);
        usize::try_from(extents.product::<i64>()).unwrap_or(1)
    }

    /// The index of a coordinate inside the shape.
    pub(super) fn at(&self, coordinate: [usize; 2]) -> i64 {
        let mut index = self.offset;
        for (modes, part) in self.modes.iter().zip(coordinate) {
            let mut rest = part as i64;
            for &(extent, stride) in modes {
                index += rest % extent * stride;
                rest /= extent;
            }
        }
        index
    }

    /// How many neighbours along `mode` are neighbours in memory and aligned to their own size: the largest power of
    /// two that divides the first extent of stride 1 and every other stride.
    pub(super) fn run(&self, mode: usize) -> i64 {
        let mut run: i64 = 1 << 20;
        let mut contiguous = false;
        for (number, modes) in self.modes.iter().enumerate() {
            for (position, &(extent, stride)) in modes.iter().enumerate() {
                if number == mode && position == 0 && stride == 1 {
                    contiguous = true;
                    run = run.min(1 << extent.trailing_zeros());
                } else if extent > 1 {
                    run = run.min(if stride == 0 { 1 << 20 } else { 1 << stride.trailing_zeros() });
                }
            }
        }
        if self.offset != 0 {
            run = run.min(1 << self.offset.trailing_zeros());
        }
        if contiguous { run } else { 1 }
    }
}

impl Flat {
    /// Whether `at(a + b) == at(a) + at(b) - at(0)` for coordinates whose parts have no bits in common in powers of two:
    /// true of plain strides always, of nested modes where all their extents are powers of two.
    pub(super) fn is_additive(&self) -> bool {
        self.modes.iter().all(|modes| modes.len() < 2 || modes.iter().all(|(extent, _)| extent.count_ones() == 1))
    }
}

/// A function of `0 .. count`, a power of two, as a layout of its bits; `None` where it is none.
pub(super) fn linear(count: usize, f: impl Fn(usize) -> i64) -> Option<(i64, Layout)> {
    let bits = count.checked_ilog2().filter(|_| count.is_power_of_two())?;
    let first = f(0);
    let strides: Vec<i64> = (0..bits).map(|bit| f(1 << bit) - first).collect();
    let sum = |number: usize| {
        let set = strides.iter().enumerate().filter(|(bit, _)| number >> bit & 1 == 1);
        set.map(|(_, stride)| stride).sum::<i64>()
    };
    if (0..count).any(|number| f(number) != first + sum(number)) || strides.iter().any(|stride| *stride < 0) {
        return None;
    }
    let layout = match strides.len() {
        0 => Layout::unit(),
        _ => Layout::new(vec![2_i64; strides.len()], strides).ok()?,
    };
    Some((first, layout))
}
