//! Extents and strides of run time: whatever their values turn out to be, an operation on symbols gives what the same
//! operation gives on the numbers.

use proptest::prelude::*;

use super::model::{at, cases, size, values};
use super::swizzles::Host;
use crate::layout::{Dim, IntTuple, Layout, LayoutError, Nested, Term, Tile, Tiler};

/// The layout with numbers for its symbols.
fn known(layout: &Layout, symbols: &[i64]) -> Layout {
    let mut math = Host { symbols: symbols.to_vec(), operations: 0 };
    let mut number =
        |tree: &IntTuple| tree.map(&mut |dim: &Dim| Dim::from(dim.evaluate(&mut math).unwrap().materialize(&mut math)));
    Layout::new(number(&layout.shape()), number(&layout.stride())).unwrap()
}

fn tiler(extents: [i64; 2]) -> Tiler {
    Nested::Tuple(extents.iter().map(|&extent| Nested::Leaf(Tile::Extent(extent.into()))).collect())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn divisions_of_run_time_tensors_are_those_of_their_numbers(
        rows in 1..40i64,
        columns in 1..40i64,
        gap in 0..9i64,
        tile in [1..24i64, 1..24],
        pick in any::<u32>(),
        order in any::<bool>(),
    ) {
        let pitch = if order { columns + gap } else { rows + gap };
        let text = if order { "(?0,?1):(?2,1)" } else { "(?0,?1):(1,?2)" };
        let dynamic: Layout = text.parse().unwrap();
        let symbols = [rows, columns, pitch];
        let numbers = known(&dynamic, &symbols);
        let tiler = tiler(tile);
        type Division = fn(&Layout, Tiler) -> Result<Layout, LayoutError>;
        let divisions: [Division; 5] = [
            |l, t| l.logical_divide(t),
            |l, t| l.zipped_divide(t),
            |l, t| l.tiled_divide(t),
            |l, t| l.flat_divide(t),
            |l, t| l.composition(t),
        ];
        for division in divisions {
            let (symbolic, plain) = (division(&dynamic, tiler.clone()).unwrap(), division(&numbers, tiler.clone()).unwrap());
            let found = known(&symbolic, &symbols);
            prop_assert_eq!(found.shape(), plain.shape(), "{}", symbolic);
            prop_assert_eq!(values(&found), values(&plain), "{}", symbolic);
            // The index of a coordinate, computed in the arithmetic of run time.
            let number = i64::from(pick) % size(&plain);
            let natural = plain.shape().idx2crd(number).unwrap();
            let coord = natural.map(&mut |part: &Dim| Term::Value(part.known().unwrap()));
            let mut math = Host { symbols: symbols.to_vec(), operations: 0 };
            let index = symbolic.index_with(&coord, &mut math).unwrap().materialize(&mut math);
            prop_assert_eq!(index, at(&plain, number));
        }
        prop_assert_eq!(known(&dynamic, &symbols).tile_count(tiler.clone()).unwrap(), {
            let mut math = Host { symbols: symbols.to_vec(), operations: 0 };
            let count = dynamic.tile_count(tiler).unwrap().evaluate(&mut math).unwrap();
            count.materialize(&mut math)
        });
    }

    /// Rearranging and simplifying, of three modes that may or may not continue each other.
    #[test]
    fn rearranged_run_time_layouts_keep_their_function(
        extents in [1..9i64, 1..9, 1..9],
        kind in 0..3usize,
    ) {
        let [a, b, c] = extents;
        let text = ["(?0,4,?1):(1,?0,4*?0)", "(?0,4,?1):(1,?2,4*?2)", "(?0,(4,?1)):(4*?1,(?1,1))"][kind];
        let dynamic: Layout = text.parse().unwrap();
        let symbols = [a, b, a + c];
        let numbers = known(&dynamic, &symbols);
        for (symbolic, plain) in [
            (dynamic.coalesce().unwrap(), numbers.coalesce().unwrap()),
            (dynamic.flatten(), numbers.flatten()),
            (dynamic.flatten().group(0..2).unwrap(), numbers.flatten().group(0..2).unwrap()),
            (dynamic.filter().unwrap(), numbers.filter().unwrap()),
        ] {
            prop_assert_eq!(values(&known(&symbolic, &symbols)), values(&plain), "{}", symbolic);
        }
        let swapped = |layout: &Layout| layout.flatten().select(&[2, 0, 1]).unwrap();
        prop_assert_eq!(known(&swapped(&dynamic), &symbols), swapped(&numbers));
        let more = "3:?2".parse::<Layout>().unwrap();
        let both = known(&dynamic.append(&more).unwrap(), &symbols);
        prop_assert_eq!(both, numbers.append(&known(&more, &symbols)).unwrap());
    }

    /// The coordinate of a number, in the arithmetic of run time.
    #[test]
    fn coordinates_of_numbers_are_those_of_the_shape(extents in [2..7i64, 2..7, 2..7], pick in any::<u32>()) {
        let [a, b, c] = extents;
        let dynamic: Layout = "(?0,(3,?1),?2):(1,(?0,3*?0),1)".parse().unwrap();
        let number = i64::from(pick) % (a * 3 * b * c);
        let mut math = Host { symbols: vec![a, b, c], operations: 0 };
        let parts = dynamic.coordinate_with(Term::Value(number), &mut math).unwrap();
        let parts: Vec<i64> = parts.into_iter().map(|part| part.materialize(&mut math)).collect();
        prop_assert_eq!(parts, [number % a, number / a % (3 * b), number / (3 * a * b)]);
        // What is known is folded, and bounded where the size is.
        let plain: Layout = "(4,8):(8,1)".parse().unwrap();
        let mut math = Host { symbols: vec![], operations: 0 };
        let parts = plain.coordinate_with(Term::Known(number % 32), &mut math).unwrap();
        prop_assert_eq!(parts, [Term::Known(number % 4), Term::Known(number % 32 / 4)]);
        prop_assert_eq!(math.operations, 0);
        prop_assert!(plain.coordinate_with(Term::Known(32), &mut math).is_err());
    }
}
