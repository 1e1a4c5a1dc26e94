//! Divisions and products: what each promises of its result.

use std::collections::HashSet;

use proptest::prelude::*;

use super::model::{any_layout, at, cases, compact_layout, injective, layout, pairs, size, values};
use crate::layout::{Coord, CoordLeaf, Layout, LayoutError, Nested, Tile, Tiler};

/// Extents that divide each mode of a layout, picked by `choice`.
fn dividing(layout: &Layout, choice: u32) -> Vec<i64> {
    let pick = |(i, mode): (usize, Layout)| {
        let size = size(&mode);
        let divisors: Vec<i64> = (1..=size).filter(|divisor| size % divisor == 0).collect();
        divisors[(choice >> (4 * i)) as usize % divisors.len()]
    };
    layout.modes().enumerate().map(pick).collect()
}

fn tuple(extents: &[i64]) -> Tiler {
    Nested::Tuple(extents.iter().map(|&extent| Nested::Leaf(Tile::Extent(extent.into()))).collect())
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_division_has_the_tile_and_all_the_rest(a in any_layout(4), tile in any_layout(2)) {
        let divided = match a.logical_divide(&tile) {
            Ok(divided) => divided,
            Err(LayoutError::Holes { .. } | LayoutError::Overlap { .. } | LayoutError::Carry { .. }
                | LayoutError::ShapeDivisibility { .. } | LayoutError::StrideDivisibility { .. }) => return Ok(()),
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(divided.rank(), 2);
        let (first, second) = (divided.mode(&[0]).unwrap(), divided.mode(&[1]).unwrap());
        prop_assert_eq!(&first, &a.composition(&tile).unwrap());
        prop_assert!(tile.compatible(&first));
        // Each element of a lies in exactly one tile, at one place (of a tile without broadcasts).
        if injective(&tile) {
            let complement = tile.complement(size(&a)).unwrap();
            let mut coordinates: Vec<i64> = values(&complement).into_iter()
                .flat_map(|base| values(&tile).into_iter().map(move |i| base + i)).collect();
            let in_order: Vec<i64> = coordinates.iter().map(|&i| at(&a, i)).collect();
            prop_assert_eq!(values(&divided), in_order);
            coordinates.sort_unstable();
            let count = coordinates.len() as i64;
            prop_assert_eq!(coordinates, (0..count).collect::<Vec<_>>());
            prop_assert!(count >= size(&a));
        }
        prop_assert_eq!(size(&second) * size(&first), size(&divided));
    }

    #[test]
    fn the_flavours_of_division_hold_the_same_elements(a in any_layout(4), choice in any::<u32>()) {
        let extents = dividing(&a, choice);
        let tiler = tuple(&extents);
        let Ok(logical) = a.logical_divide(&tiler) else { return Ok(()) };
        let zipped = a.zipped_divide(&tiler).unwrap();
        let (tiled, flat) = (a.tiled_divide(&tiler).unwrap(), a.flat_divide(&tiler).unwrap());
        let rank = extents.len();
        prop_assert_eq!((logical.rank(), zipped.rank(), tiled.rank(), flat.rank()), (rank, 2, 1 + rank, 2 * rank));
        prop_assert_eq!(&zipped.mode(&[0]).unwrap(), &a.composition(&tiler).unwrap());
        prop_assert_eq!(values(&tiled), values(&zipped));
        prop_assert_eq!(values(&flat), values(&zipped));
        // Where each tile divides its mode, every element occurs as often as in the layout.
        let sorted = |layout: &Layout| { let mut all = values(layout); all.sort_unstable(); all };
        prop_assert_eq!(sorted(&zipped), sorted(&a));
        prop_assert_eq!(sorted(&logical), sorted(&a));
        for i in 0..rank {
            prop_assert_eq!(&flat.mode(&[i]).unwrap(), &zipped.mode(&[0, i]).unwrap());
            prop_assert_eq!(&flat.mode(&[rank + i]).unwrap(), &zipped.mode(&[1, i]).unwrap());
            prop_assert_eq!(&logical.mode(&[i, 0]).unwrap(), &zipped.mode(&[0, i]).unwrap());
        }
        prop_assert_eq!(a.tile_count(&tiler).unwrap(), size(&a) / extents.iter().product::<i64>());
    }

    #[test]
    fn local_tiles_cover_the_layout(a in any_layout(4), choice in any::<u32>()) {
        let extents = dividing(&a, choice);
        let tiler = tuple(&extents);
        let Ok(zipped) = a.zipped_divide(&tiler) else { return Ok(()) };
        let rest = zipped.mode(&[1]).unwrap();
        for number in 0..size(&rest) {
            let tile = a.local_tile(&tiler, number).unwrap();
            prop_assert_eq!(tile.layout.rank(), extents.len());
            let expected: Vec<i64> = values(&zipped.mode(&[0]).unwrap()).into_iter().map(|i| i + at(&rest, number)).collect();
            let found: Vec<i64> = values(&tile.layout).into_iter().map(|i| i + tile.offset).collect();
            prop_assert_eq!(found, expected);
        }
        // A coordinate that stays open in the last mode keeps that mode of the rest.
        let kept = a.local_tile(&tiler, Coord::Tuple(vec![Nested::Leaf(CoordLeaf::At(0)); extents.len() - 1])).unwrap();
        prop_assert_eq!(kept.layout.rank(), extents.len() + 1);
    }

    #[test]
    fn threads_share_the_elements_out(a in any_layout(4), choice in any::<u32>(), order in any::<u32>()) {
        let extents = dividing(&a, choice);
        let order: Vec<i64> = (0..extents.len()).map(|i| i64::from(order >> (4 * i) & 15)).collect();
        let threads = Layout::ordered(extents.clone(), order).unwrap();
        let mut found = Vec::new();
        for index in 0..size(&threads) {
            match a.local_partition(&threads, index) {
                Ok(part) => {
                    let coord = threads.flat_coordinate(index).unwrap();
                    let coord = if a.depth() == 0 { coord[0].into() } else { Coord::from(coord) };
                    prop_assert_eq!(part.offset, a.crd2idx(coord).unwrap());
                    found.extend(values(&part.layout).into_iter().map(|i| i + part.offset));
                }
                Err(_) => return Ok(()),
            }
        }
        let mut expected = values(&a);
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        prop_assert!(a.local_partition(&threads, size(&threads)).is_err());
    }

    #[test]
    fn a_product_repeats_the_block_without_overlap(block in any_layout(3), tile in compact_layout(2)) {
        let product = match block.logical_product(&tile) {
            Ok(product) => product,
            Err(LayoutError::Overlap { .. } | LayoutError::Carry { .. } | LayoutError::ShapeDivisibility { .. }
                | LayoutError::StrideDivisibility { .. }) => return Ok(()),
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(product.rank(), 2);
        prop_assert_eq!(&product.mode(&[0]).unwrap(), &block);
        prop_assert!(tile.compatible(&product.mode(&[1]).unwrap()));
        let filtered = block.filter().unwrap();
        let distinct = Layout::concat([&filtered, &product.mode(&[1]).unwrap()]).unwrap();
        prop_assert!(injective(&distinct), "{} by {} = {}", block, tile, product);
        // Copy number k of the repetitions is the element of the tile with index k.
        let complement = block.complement(size(&block) * tile.cosize().unwrap()).unwrap();
        let copies = values(&product.mode(&[1]).unwrap());
        if size(&complement) >= tile.cosize().unwrap() {
            for (copy, number) in copies.into_iter().zip(values(&tile)) {
                prop_assert_eq!(copy, at(&complement, number));
            }
        }
    }

    #[test]
    fn blocked_and_raked_products_place_the_copies(block in any_layout(3), tile in compact_layout(3)) {
        let (Ok(blocked), Ok(raked)) = (block.blocked_product(&tile), block.raked_product(&tile)) else { return Ok(()) };
        let rank = block.rank().max(tile.rank());
        prop_assert_eq!((blocked.rank(), raked.rank()), (rank, rank));
        if size(&blocked) > 1000 {
            return Ok(());
        }
        let padded = |layout: &Layout| {
            let mut layout = layout.clone();
            if layout.depth() == 0 {
                layout = Layout::concat([&layout]).unwrap();
            }
            while layout.rank() < rank {
                layout = layout.append(&"1:0".parse().unwrap()).unwrap();
            }
            layout
        };
        let (block, tile) = (padded(&block), padded(&tile));
        let product = block.logical_product(&tile).unwrap();
        let copies = product.mode(&[1]).unwrap();
        let modes = |layout: &Layout| layout.modes().map(|mode| size(&mode)).collect::<Vec<_>>();
        let (inner, outer) = (modes(&block), modes(&tile));
        for i in 0..size(&blocked) {
            let mut rest = i;
            let (mut of_block, mut of_tile, mut raked_coord, mut blocked_coord) = (vec![], vec![], vec![], vec![]);
            for (inner, outer) in inner.iter().zip(&outer) {
                let coord = rest % (inner * outer);
                rest /= inner * outer;
                of_block.push(coord % inner);
                of_tile.push(coord / inner);
                blocked_coord.push(coord);
                raked_coord.push(coord / inner + coord % inner * outer);
            }
            let expected = block.crd2idx(of_block).unwrap() + copies.crd2idx(of_tile).unwrap();
            prop_assert_eq!(blocked.crd2idx(blocked_coord).unwrap(), expected);
            prop_assert_eq!(raked.crd2idx(raked_coord).unwrap(), expected);
        }
    }

    #[test]
    fn tile_to_shape_repeats_the_block(block in compact_layout(3), copies in prop::collection::vec(1..4i64, 3), order in prop::collection::vec(0..3i64, 3)) {
        let sizes: Vec<i64> = block.modes().map(|mode| size(&mode)).collect();
        let shape: Vec<i64> = sizes.iter().zip(&copies).map(|(size, copies)| size * copies).collect();
        let order: Vec<i64> = order.into_iter().take(shape.len()).collect();
        let tiled = block.tile_to_shape_by(shape.clone(), order).unwrap();
        prop_assert_eq!(tiled.modes().map(|mode| size(&mode)).collect::<Vec<_>>(), shape.clone());
        // Compact blocks fill the whole.
        let all: HashSet<i64> = values(&tiled).into_iter().collect();
        prop_assert_eq!(all.len() as i64, shape.iter().product::<i64>());
        prop_assert_eq!(tiled.cosize().unwrap(), shape.iter().product::<i64>());
        let first = tiled.local_tile(tuple(&sizes), 0).unwrap();
        prop_assert_eq!(values(&first.layout), values(&block));
        if let Some(bad) = sizes.iter().position(|&size| size > 1) {
            let mut shape = shape;
            shape[bad] += 1;
            prop_assert!(block.tile_to_shape(shape).is_err());
        }
    }
}

#[test]
fn tiles_that_do_not_divide_overhang() {
    let tiles = layout("(10,8):(8,1)").zipped_divide((4, 4)).unwrap();
    assert_eq!(tiles, layout("((4,4),(3,2)):((8,1),(32,4))"));
    // Rows 10 and 11 of the third tile lie beyond the matrix, where its rows would go on.
    assert_eq!(tiles.crd2idx(((3, 0), (2, 0))).unwrap(), 11 * 8);
}

#[test]
fn a_padded_tile_is_a_block_but_no_tiler() {
    let padded = layout("(32,32):(33,1)");
    let stages = padded.blocked_product(&layout("(1,1,3):(0,0,1)")).unwrap();
    assert_eq!(stages, layout("(32,32,3):(33,1,1056)"));
    assert!(matches!(layout("4096:1").logical_divide(padded), Err(LayoutError::Holes { stride: 33, block: 32, .. })));
}

#[test]
fn copies_of_a_block_with_many_holes_stay_apart() {
    // The size of the block says too little about the room that it takes.
    let block = layout("(2,2,2,2):(1,3,11,43)");
    let product = block.logical_product(layout("2:1")).unwrap();
    assert!(injective(&product), "{product}");
}

#[test]
fn local_tile_by_serves_three_operands() {
    let tiler = || Tiler::from((64, 32, 8));
    let coord = || Coord::from((1, 2, ..));
    let a = layout("(256,128):(1,256)").local_tile_by(tiler(), coord(), (1, .., 1)).unwrap();
    assert_eq!((a.layout, a.offset), (layout("(64,8,16):(1,256,2048)"), 64));
    let b = layout("(96,128):(1,96)").local_tile_by(tiler(), coord(), (.., 1, 1)).unwrap();
    assert_eq!((b.layout, b.offset), (layout("(32,8,16):(1,96,768)"), 64));
    let c = layout("(256,96):(1,256)").local_tile_by(tiler(), coord(), (1, 1, ..)).unwrap();
    assert_eq!((c.layout, c.offset), (layout("(64,32):(1,256)"), 64 + 64 * 256));
}

#[test]
fn a_thread_layout_of_one_mode_divides_the_whole() {
    let part = layout("(16,8):(8,1)").local_partition(&layout("32:1"), 17).unwrap();
    // 32 threads take two columns at a time.
    assert_eq!((part.layout, part.offset), (layout("(4):(2)"), 8 + 1));
    assert_eq!(pairs(&layout("8:1").local_partition(&layout("(4):(1)"), 3).unwrap().layout), [(2, 4)]);
}
