//! Coordinates, simplification, composition, complement, inverses, recast: their defining properties.

use std::cell::Cell;
use std::collections::HashSet;

use proptest::prelude::*;

use super::model::{any_layout, at, cases, compact_layout, injective, is_layout, layout, pairs, size, values};
use crate::layout::{CoordLeaf, IndexMap, IntTuple, Layout, LayoutError, Nested};

fn numbers(coord: &IntTuple) -> Nested<CoordLeaf> {
    coord.map(&mut |dim| CoordLeaf::At(dim.known().unwrap()))
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn every_kind_of_coordinate_has_the_index_of_its_number(layout in any_layout(4)) {
        prop_assert_eq!(layout.indices().unwrap(), values(&layout));
        let shape = layout.shape();
        for i in 0..size(&layout) {
            let natural = shape.idx2crd(i).unwrap();
            prop_assert!(natural.congruent(&shape));
            prop_assert_eq!(layout.crd2idx(numbers(&natural)).unwrap(), at(&layout, i));
            prop_assert_eq!(Layout::column_major(shape.clone()).unwrap().crd2idx(numbers(&natural)).unwrap(), i);
            let by_mode: Vec<i64> = natural.modes().iter().zip(layout.modes()).map(|(part, mode)| {
                Layout::column_major(mode.shape()).unwrap().crd2idx(numbers(part)).unwrap()
            }).collect();
            if layout.depth() > 0 {
                prop_assert_eq!(layout.crd2idx(by_mode).unwrap(), at(&layout, i));
            }
        }
        for i in size(&layout)..size(&layout) + 20 {
            prop_assert_eq!(layout.extended(i).unwrap(), at(&layout, i));
            prop_assert!(layout.crd2idx(i).is_err());
        }
        prop_assert!(layout.crd2idx(-1).is_err());
    }

    #[test]
    fn cosize_is_one_more_than_the_largest_index(layout in any_layout(4)) {
        prop_assert_eq!(layout.cosize().unwrap(), values(&layout).into_iter().max().unwrap() + 1);
    }

    #[test]
    fn the_coordinate_of_an_index_has_that_index(layout in any_layout(4)) {
        let image: HashSet<i64> = values(&layout).into_iter().collect();
        for index in 0..layout.cosize().unwrap() + 3 {
            match layout.idx2crd(index) {
                Ok(coord) => prop_assert_eq!(layout.crd2idx(numbers(&coord)).unwrap(), index),
                Err(LayoutError::NotInImage { .. }) => prop_assert!(!image.contains(&index)),
                Err(LayoutError::Overlap { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn coalesce_keeps_the_function_and_has_nothing_left_to_do(layout in any_layout(4)) {
        let coalesced = layout.coalesce().unwrap();
        prop_assert_eq!(values(&coalesced), values(&layout));
        prop_assert!(coalesced.depth() <= 1);
        let modes = pairs(&coalesced);
        prop_assert!(modes.windows(2).all(|pair| pair[0].0 * pair[0].1 != pair[1].1));
        prop_assert!(modes.len() == 1 || modes.iter().all(|(extent, _)| *extent != 1));

        let profile: Vec<i64> = vec![1; layout.rank()];
        let by_mode = layout.coalesce_by(profile).unwrap();
        prop_assert_eq!(by_mode.rank(), layout.rank());
        for (mode, coalesced) in layout.modes().zip(by_mode.modes()) {
            prop_assert_eq!(mode.coalesce().unwrap(), coalesced);
        }
    }

    #[test]
    fn filter_keeps_the_image_without_broadcasts(layout in any_layout(4)) {
        let filtered = layout.filter().unwrap();
        let image = |layout: &Layout| values(layout).into_iter().collect::<HashSet<_>>();
        prop_assert_eq!(image(&filtered), image(&layout));
        prop_assert!(pairs(&filtered).iter().all(|mode| *mode == (1, 0) || (mode.0 > 1 && mode.1 != 0)));
    }

    #[test]
    fn structure_changes_no_index(layout in any_layout(4)) {
        let flat = layout.flatten();
        prop_assert_eq!(values(&flat), values(&layout));
        prop_assert_eq!(&Layout::concat(&layout.modes().collect::<Vec<_>>()).unwrap().flatten().to_string(),
            &Layout::concat([&flat]).unwrap().flatten().to_string());
        for end in 1..=flat.rank() {
            prop_assert_eq!(values(&flat.group(0..end).unwrap()), values(&layout));
        }
        prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
    }

    #[test]
    fn a_slice_with_its_offset_is_the_layout(layout in any_layout(4), pick in 0..1000i64, kept in any::<u32>()) {
        let natural = layout.shape().idx2crd(pick % size(&layout)).unwrap();
        let mut leaf = 0;
        let pattern = natural.map(&mut |dim| {
            leaf += 1;
            if kept >> leaf & 1 == 1 { CoordLeaf::All } else { CoordLeaf::At(dim.known().unwrap()) }
        });
        let slice = layout.slice(&pattern).unwrap();
        // All coordinates that agree with the pattern, in order.
        let mut expected = Vec::new();
        for i in 0..size(&layout) {
            let coord = layout.shape().idx2crd(i).unwrap();
            let agrees = coord.leaves().into_iter().zip(pattern.leaves()).all(|(part, entry)| match entry {
                CoordLeaf::All => true,
                CoordLeaf::At(number) => *part == *number,
            });
            if agrees {
                expected.push(at(&layout, i));
            }
        }
        let found: Vec<i64> = values(&slice.layout).into_iter().map(|index| index + slice.offset).collect();
        prop_assert_eq!(found, expected);
        let diced = layout.dice(&pattern).unwrap();
        prop_assert_eq!(size(&diced) * size(&slice.layout), size(&layout));
    }
}

/// `a o b` where it is defined; otherwise sees that it could not be.
fn check_composition(a: &Layout, b: &Layout) -> bool {
    let expected: Vec<i64> = values(b).into_iter().map(|i| at(a, i)).collect();
    match a.composition(b) {
        Ok(result) => {
            assert_eq!(values(&result), expected, "{a} o {b} = {result}");
            assert!(b.compatible(&result), "{a} o {b} = {result}");
            true
        }
        Err(LayoutError::ShapeDivisibility { .. }) => {
            // Some mode of b alone gives no layout, whatever its shape.
            let impossible = b
                .flatten()
                .modes()
                .any(|mode| !is_layout(&values(&mode).into_iter().map(|i| at(a, i)).collect::<Vec<_>>()));
            assert!(impossible, "{a} o {b} exists");
            false
        }
        Err(LayoutError::Carry { .. }) => {
            // The modes of b one by one do not add up to the whole.
            let parts: Vec<Layout> = b.flatten().modes().collect();
            let sums = (0..size(b)).map(|mut i| {
                parts
                    .iter()
                    .map(|mode| {
                        let digit = i % size(mode);
                        i /= size(mode);
                        at(a, at(mode, digit))
                    })
                    .sum::<i64>()
            });
            assert_ne!(sums.collect::<Vec<_>>(), expected, "{a} o {b} exists");
            false
        }
        Err(LayoutError::StrideDivisibility { .. }) => false,
        Err(other) => panic!("{a} o {b}: {other}"),
    }
}

#[test]
fn composition_is_the_composition_of_functions() {
    let defined = Cell::new((0, 0));
    let mut runner = proptest::test_runner::TestRunner::new(cases(8_000));
    runner
        .run(&(any_layout(4), any_layout(3)), |(a, b)| {
            let (yes, all) = defined.get();
            defined.set((yes + u32::from(check_composition(&a, &b)), all + 1));
            Ok(())
        })
        .unwrap();
    // The test means something only if many compositions exist and many do not.
    let (yes, all) = defined.get();
    assert!(yes > all / 10 && yes < all - all / 10, "{yes} of {all}");
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn composition_is_associative(a in any_layout(3), b in any_layout(3), c in any_layout(2)) {
        if let (Ok(ab), Ok(bc)) = (a.composition(&b), b.composition(&c))
            && let (Ok(left), Ok(right)) = (ab.composition(&c), a.composition(&bc))
            && c.cosize().unwrap() <= size(&b)
        {
            prop_assert_eq!(values(&left), values(&right));
        }
    }

    #[test]
    fn a_complement_is_ordered_disjoint_and_large_enough(layout in any_layout(4), target in 1..200i64) {
        let filtered = layout.filter().unwrap();
        match layout.complement(target) {
            Ok(rest) => {
                let indices = values(&rest);
                prop_assert!(indices.windows(2).all(|pair| pair[0] < pair[1]), "{} of {}", rest, layout);
                let own: HashSet<i64> = values(&filtered).into_iter().collect();
                prop_assert!(indices.iter().skip(1).all(|index| !own.contains(index)));
                let both = Layout::concat([&filtered, &rest]).unwrap();
                prop_assert!(injective(&both));
                // Gapless layouts and their complements have every index; others reach as far with their padding.
                let mut modes = pairs(&filtered);
                modes.sort_by_key(|mode| mode.1);
                let blocks: Vec<i64> = [1].into_iter().chain(modes.iter().map(|mode| mode.0 * mode.1.max(1))).collect();
                let gapless = modes.iter().zip(&blocks).all(|(mode, block)| mode.1 % block == 0);
                prop_assert_eq!(gapless, size(&both) == both.cosize().unwrap());
                prop_assert!(!gapless || both.cosize().unwrap() >= target);
                prop_assert!(indices.len() as i64 * blocks[blocks.len() - 1] >= target);
                // No more repetitions than it takes.
                let block = filtered.cosize().unwrap().max(1);
                prop_assert!(rest.cosize().unwrap() < target.max(1) + block);
            }
            Err(LayoutError::Overlap { .. }) => {
                // A layout whose modes are separated, sorted by stride, has a complement.
                let mut modes = pairs(&filtered);
                modes.sort_by_key(|mode| mode.1);
                let separated = modes.iter().scan(1, |block, (extent, stride)| {
                    let separate = stride >= block;
                    *block = extent * stride;
                    Some(separate)
                }).all(|separate| separate);
                prop_assert!(!separated, "{}", layout);
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_right_inverse_counts_through_the_indices(layout in any_layout(4)) {
        let inverse = layout.right_inverse().unwrap();
        for i in 0..size(&inverse) {
            prop_assert_eq!(at(&layout, at(&inverse, i)), i);
            prop_assert!(at(&inverse, i) < size(&layout));
        }
    }

    #[test]
    fn inverses_of_compact_layouts_are_whole(layout in compact_layout(4)) {
        let inverse = layout.right_inverse().unwrap();
        prop_assert_eq!(size(&inverse), size(&layout));
        prop_assert_eq!(values(&layout.left_inverse().unwrap()), values(&inverse));
        prop_assert_eq!(values(&inverse.right_inverse().unwrap()), values(&layout));
    }

    #[test]
    fn a_left_inverse_finds_each_coordinate(layout in any_layout(4)) {
        match layout.left_inverse() {
            Ok(inverse) => {
                for (i, index) in values(&layout).into_iter().enumerate() {
                    prop_assert_eq!(at(&inverse, index), i as i64, "{} of {}", inverse, layout);
                    prop_assert!(index < size(&inverse));
                }
            }
            Err(LayoutError::Overlap { .. }) => {
                let mut modes = pairs(&layout);
                modes.retain(|mode| mode.0 > 1);
                modes.sort_by_key(|mode| mode.1);
                let divisible = modes.windows(2).all(|pair| pair[0].1 > 0 && pair[1].1 % pair[0].1 == 0);
                prop_assert!(!divisible || !injective(&layout), "{}", layout);
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_common_vector_is_contiguous_in_both_and_maximal(a in any_layout(3), b in any_layout(3)) {
        let common = a.max_common_layout(&b).unwrap();
        let length = a.max_common_vector(&b).unwrap();
        prop_assert_eq!(size(&common), length);
        for i in 0..length {
            prop_assert_eq!(at(&a, at(&common, i)), i);
            prop_assert_eq!(at(&b, at(&common, i)), i);
        }
        if injective(&a) && injective(&b) {
            let (in_a, in_b) = (values(&a), values(&b));
            let position = |values: &[i64], index| values.iter().position(|value| *value == index);
            let longest = (0..).take_while(|&i| {
                let place = position(&in_a, i);
                place.is_some() && place == position(&in_b, i)
            }).count();
            prop_assert_eq!(length, longest as i64);
        }
    }

    #[test]
    fn upcast_divides_and_downcast_undoes(layout in any_layout(4), power in 0..4u32) {
        let factor = 1i64 << power;
        if let Ok(wide) = layout.upcast(factor) {
            let narrow: HashSet<i64> = values(&layout).into_iter().collect();
            let image: HashSet<i64> = values(&wide).into_iter().collect();
            let expanded: HashSet<i64> = image.iter().flat_map(|index| (0..factor).map(move |i| index * factor + i)).collect();
            prop_assert_eq!(expanded, narrow);
            prop_assert_eq!(size(&wide) * factor, size(&layout));
            prop_assert!(layout.max_alignment() >= factor);
        } else {
            prop_assert!(layout.max_alignment() < factor);
        }
        if let Ok(narrow) = layout.downcast(factor) {
            prop_assert_eq!(values(&narrow.upcast(factor).unwrap()), values(&layout));
            prop_assert_eq!(layout.recast(16 * factor as u32, 16).unwrap(), narrow);
        }
    }

    #[test]
    fn ordered_layouts_are_compact(extents in prop::collection::vec(1..6i64, 1..5), order in prop::collection::vec(0..9i64, 4)) {
        let order: Vec<i64> = order.into_iter().take(extents.len()).collect();
        let layout = Layout::ordered(extents, order.clone()).unwrap();
        prop_assert!(injective(&layout));
        prop_assert_eq!(layout.cosize().unwrap(), size(&layout));
        let strides = pairs(&layout);
        for (a, b) in (0..order.len()).flat_map(|a| (0..order.len()).map(move |b| (a, b))) {
            prop_assert!(order[a] >= order[b] || strides[a].1 <= strides[b].1);
        }
    }
}

#[test]
fn negative_strides_count_but_are_no_operand_where_undefined() {
    let reversed = layout("(4,2):(-1,4)");
    assert_eq!(values(&reversed), [0, -1, -2, -3, 4, 3, 2, 1]);
    assert_eq!(reversed.indices().unwrap(), values(&reversed));
    assert_eq!(values(&reversed.composition(layout("2:2")).unwrap()), [0, -2]);
    assert_eq!(layout("(2,3):(-1,-2)").coalesce().unwrap(), layout("6:-1"));
    for refused in [layout("8:1").composition(layout("4:-1")), reversed.complement(8), reversed.left_inverse()] {
        assert!(matches!(refused, Err(LayoutError::Negative { .. })), "{refused:?}");
    }
    assert!(reversed.cosize().is_err());
}
