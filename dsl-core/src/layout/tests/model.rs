//! The definition of a layout, written as plainly as it can be, and random layouts.

use proptest::prelude::*;

use crate::layout::{Dim, IntTuple, Layout, Nested};

/// Random cases of each property.
pub fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, max_global_rejects: 1 << 20, ..ProptestConfig::default() }
}

pub fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn numbers(tree: &IntTuple) -> Vec<i64> {
    tree.leaves().into_iter().map(|dim| dim.known().unwrap()).collect()
}

/// The flat `(extent, stride)` pairs.
pub fn pairs(layout: &Layout) -> Vec<(i64, i64)> {
    numbers(&layout.shape()).into_iter().zip(numbers(&layout.stride())).collect()
}

pub fn size(layout: &Layout) -> i64 {
    pairs(layout).into_iter().map(|(extent, _)| extent).product()
}

/// The extended function: digits from the left, and all that remains in the last one.
pub fn at(layout: &Layout, mut i: i64) -> i64 {
    let pairs = pairs(layout);
    let mut index = 0;
    for (position, (extent, stride)) in pairs.iter().enumerate() {
        let digit = if position + 1 == pairs.len() { i } else { i % extent };
        index += digit * stride;
        i /= extent;
    }
    index
}

pub fn values(layout: &Layout) -> Vec<i64> {
    (0..size(layout)).map(|i| at(layout, i)).collect()
}

pub fn injective(layout: &Layout) -> bool {
    let mut values = values(layout);
    let count = values.len();
    values.sort_unstable();
    values.dedup();
    values.len() == count
}

/// Whether some layout is the function with these values: the first mode is any run of equal steps whose length
/// divides the count, and the starts of the runs must again be a layout.
pub fn is_layout(values: &[i64]) -> bool {
    let count = values.len();
    count == 1
        || (2..=count).filter(|run| count.is_multiple_of(*run)).any(|run| {
            let step = values[1] - values[0];
            let runs = values.chunks(run).all(|part| part.windows(2).all(|pair| pair[1] - pair[0] == step));
            let starts: Vec<i64> = values.iter().copied().step_by(run).collect();
            runs && is_layout(&starts)
        })
}

fn dims(values: Vec<i64>) -> Vec<Nested<Dim>> {
    values.into_iter().map(|value| Nested::Leaf(Dim::Static(value))).collect()
}

/// Puts flat modes into a hierarchy, as the bits of `how` say.
fn nest(mut modes: Vec<Nested<Dim>>, how: u32) -> IntTuple {
    if modes.len() == 1 && how & 1 == 0 {
        return modes.remove(0);
    }
    let tree = Nested::Tuple(modes);
    let rank = tree.rank();
    match how >> 1 & 3 {
        1 if rank > 2 => tree.group(0..2).unwrap(),
        2 if rank > 2 => tree.group(1..rank).unwrap(),
        3 if rank > 3 => tree.group(1..3).unwrap().group(0..2).unwrap(),
        _ => tree,
    }
}

fn extents(most: usize) -> impl Strategy<Value = Vec<i64>> {
    let extent = prop_oneof![2 => Just(1i64), 5 => Just(2), 3 => Just(3), 4 => Just(4), 2 => Just(6), 1 => Just(5), 2 => Just(8)];
    prop::collection::vec(extent, 1..=most).prop_map(|mut extents| {
        // The model counts every element.
        while extents.iter().product::<i64>() > 400 {
            extents.pop();
        }
        extents
    })
}

/// Compact strides in a random order of the modes.
fn compact(extents: &[i64], order: &[u32]) -> Vec<i64> {
    let mut modes: Vec<usize> = (0..extents.len()).collect();
    modes.sort_by_key(|&mode| order[mode]);
    let (mut strides, mut next) = (vec![0; extents.len()], 1);
    for mode in modes {
        strides[mode] = next;
        next *= extents[mode];
    }
    strides
}

/// Any layout of up to `most` flat modes: compact, padded, broadcast, or with strides that mean nothing.
pub fn any_layout(most: usize) -> impl Strategy<Value = Layout> {
    (
        extents(most),
        prop::collection::vec(any::<u32>(), 4..=4),
        prop::collection::vec(0i64..24, 4..=4),
        0..10u32,
        any::<u32>(),
    )
        .prop_map(|(extents, order, random, kind, how)| {
            let mut strides = compact(&extents, &order);
            match kind {
                0..=4 => {}
                5 => strides.iter_mut().for_each(|stride| *stride *= random[0].max(1)),
                6 => strides[random[0] as usize % extents.len()] = 0,
                7 => {
                    let longest = *strides.iter().max().unwrap();
                    strides.iter_mut().filter(|stride| **stride == longest).for_each(|stride| *stride += random[0]);
                }
                _ => strides.iter_mut().zip(random).for_each(|(stride, random)| *stride = random),
            }
            Layout::new(nest(dims(extents), how), nest(dims(strides), how)).unwrap()
        })
}

/// A layout that is onto `0 .. size`.
pub fn compact_layout(most: usize) -> impl Strategy<Value = Layout> {
    (extents(most), prop::collection::vec(any::<u32>(), 4..=4), any::<u32>()).prop_map(|(extents, order, how)| {
        let strides = compact(&extents, &order);
        Layout::new(nest(dims(extents), how), nest(dims(strides), how)).unwrap()
    })
}
