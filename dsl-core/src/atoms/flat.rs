//! Static layouts as plain numbers, for looking at all of a tile at once.

use std::collections::BTreeSet;

use crate::layout::{ComposedLayout, Layout, LayoutError};

/// A static layout of two modes: extents and strides of each, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flat {
    modes: [Vec<(i64, i64)>; 2],
    offset: i64,
}

/// The largest tile.
const MAX_ELEMENTS: i64 = 1 << 22;

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
        let size = inner.static_size()?;
        if size > MAX_ELEMENTS {
            let why = "copies and products are written out element by element, up to 2^22";
            return Err(LayoutError::Argument { what: "a tile's size", value: size, why });
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

    /// The index of a coordinate. Beyond the shape the last mode of each dimension goes on, as in CuTe.
    pub(super) fn at(&self, coordinate: [usize; 2]) -> i64 {
        let parts = self.modes.iter().zip(coordinate);
        self.offset + parts.map(|(modes, part)| index_of(modes, part)).sum::<i64>()
    }

    /// Whether in a dimension the index of `start + step` is the sum of the indices of both, for all that lie inside the
    /// shape; otherwise the first two for which it is not.
    pub(super) fn splits(
        &self,
        dimension: usize,
        starts: &BTreeSet<usize>,
        steps: &BTreeSet<usize>,
    ) -> Result<(), [usize; 2]> {
        let Some(modes) = self.modes.get(dimension).filter(|modes| modes.len() > 1) else { return Ok(()) };
        let extent = self.extent(dimension);
        for &start in starts {
            for &step in steps.iter().take_while(|&step| start + step < extent) {
                if index_of(modes, start + step) != index_of(modes, start) + index_of(modes, step) {
                    return Err([start, step]);
                }
            }
        }
        Ok(())
    }

    /// The one stride of a dimension; `None` where it has nested modes.
    pub(super) fn stride(&self, dimension: usize) -> Option<i64> {
        match self.modes.get(dimension)?[..] {
            [(_, stride)] => Some(stride),
            _ => None,
        }
    }

    /// Where the first element lies.
    pub(super) fn offset(&self) -> i64 {
        self.offset
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

/// The index of a coordinate in the modes of one dimension, of which the last goes on beyond its extent.
fn index_of(modes: &[(i64, i64)], coordinate: usize) -> i64 {
    let (mut rest, mut index) = (coordinate as i64, 0);
    let last = modes.len().saturating_sub(1);
    for (position, &(extent, stride)) in modes.iter().enumerate() {
        let digit = if position == last { rest } else { rest % extent };
        index += digit * stride;
        rest /= extent;
    }
    index
}

/// A function of `0 .. count` as its first value and a layout of what is added to it; `None` where there is no such layout,
/// or one with negative strides.
///
/// The first mode is the longest run of equal steps that divides the count: the lengths of all such runs divide it. The
/// starts of the runs are the rest of the layout.
pub(super) fn linear(count: usize, f: impl Fn(usize) -> i64) -> Option<(i64, Layout)> {
    let mut starts: Vec<i64> = (0..count).map(f).collect();
    let first = starts.first().copied()?;
    let (mut extents, mut strides) = (Vec::new(), Vec::new());
    while let [start, next, ..] = starts[..] {
        let step = next - start;
        let even = |part: &[i64]| part.iter().zip(part.iter().skip(1)).all(|(a, b)| b - a == step);
        let runs = |length: &usize| starts.len().is_multiple_of(*length) && starts.chunks(*length).all(even);
        let run = (2..=starts.len()).rev().find(runs).filter(|_| step >= 0)?;
        extents.push(run as i64);
        strides.push(step);
        starts = starts.into_iter().step_by(run).collect();
    }
    let layout = if extents.is_empty() { Layout::unit() } else { Layout::new(extents, strides).ok()? };
    Some((first, layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atoms::IntoLayout;

    /// Every layout of non-negative strides is found again from its values, also where its extents are no powers of two;
    /// what is no layout is not.
    #[test]
    fn functions_are_recognised_as_layouts() {
        for text in
            ["(4,3):(1,16)", "(3,5,2):(0,7,100)", "(6,2):(2,1)", "12:1", "1:0", "(7,3):(3,0)", "(2,3,4):(12,4,1)"]
        {
            let layout: Layout = text.parse().unwrap();
            let count = layout.static_size().unwrap() as usize;
            let (first, found) = linear(count, |at| 5 + layout.crd2idx(at).unwrap()).unwrap();
            assert_eq!(first, 5, "{text}");
            for at in 0..count {
                assert_eq!(found.crd2idx(at).unwrap(), layout.crd2idx(at).unwrap(), "{text} as {found}");
            }
            assert_eq!(found.coalesce().unwrap(), layout.coalesce().unwrap(), "{text}");
        }
        assert_eq!(linear(6, |at| [0, 1, 2, 3, 4, 6][at]), None);
        assert_eq!(linear(8, |at| (at ^ (at >> 1)) as i64), None);
        assert_eq!(linear(4, |at| -(at as i64)), None);
        assert_eq!(linear(0, |_| 0), None);
    }

    #[test]
    fn a_dimension_splits_where_no_digit_carries() {
        let flat = Flat::of(&"((3,4),8):((1,24),3)".parse::<Layout>().unwrap().into_layout().unwrap()).unwrap();
        let set = |numbers: &[usize]| numbers.iter().copied().collect::<BTreeSet<_>>();
        // Whole groups of three, then what lies inside of one.
        assert_eq!(flat.splits(0, &set(&[0, 3, 6, 9]), &set(&[0, 1, 2])), Ok(()));
        assert_eq!(flat.splits(0, &set(&[0, 2]), &set(&[0, 4])), Err([2, 4]));
        assert_eq!(flat.splits(1, &set(&[0, 1, 5]), &set(&[0, 1, 2])), Ok(()));
        // The last mode goes on.
        assert_eq!(flat.at([12, 9]), 96 + 27);
    }
}
