//! The examples of CuTe's documentation (*CuTe Layouts*, *CuTe Layout Algebra*), and what is refused.

use super::model::{layout, values};
use crate::layout;
use crate::layout::{IntTuple, Layout, LayoutError, Tiler};

fn shape(text: &str) -> IntTuple {
    text.parse().unwrap()
}

#[test]
fn compact_layouts() {
    for (left, right) in [
        ("8", "8:1"),
        ("(2,4)", "(2,4):(1,2)"),
        ("(2,(2,2))", "(2,(2,2)):(1,(2,4))"),
        ("(4,(3,6))", "(4,(3,6)):(1,(4,12))"),
    ] {
        assert_eq!(layout(left), layout(right));
        assert_eq!(layout(right).to_string(), right);
    }
    assert_eq!(Layout::row_major((2, 4)).unwrap(), layout("(2,4):(4,1)"));
    assert_eq!(values(&layout("(2,(2,2)):(4,(2,1))")), [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(values(&layout("((4,2)):((2,1))")), [0, 2, 4, 6, 1, 3, 5, 7]);
}

#[test]
fn compatibility() {
    for (a, b, compatible) in [
        ("24", "32", false),
        ("24", "(4,6)", true),
        ("(4,6)", "((2,2),6)", true),
        ("((2,2),6)", "((2,2),(3,2))", true),
        ("24", "((2,2),(3,2))", true),
        ("24", "((2,3),4)", true),
        ("((2,3),4)", "((2,2),(3,2))", false),
        ("((2,2),(3,2))", "((2,3),4)", false),
        ("24", "(24)", true),
        ("(24)", "24", false),
        ("(24)", "(4,6)", false),
    ] {
        assert_eq!(shape(a).compatible(&shape(b)), compatible, "{a} with {b}");
    }
}

#[test]
fn coordinates_of_a_hierarchical_shape() {
    let table = shape("(3,(2,3))");
    for (number, natural) in
        [(0, "(0,(0,0))"), (4, "(1,(1,0))"), (8, "(2,(0,1))"), (12, "(0,(0,2))"), (17, "(2,(1,2))")]
    {
        assert_eq!(table.idx2crd(number).unwrap().to_string(), natural);
    }
    let strided = layout("(3,(2,3)):(3,(12,1))");
    let row = |i: i32| (0..6).map(|j| strided.crd2idx((i, j)).unwrap()).collect::<Vec<_>>();
    assert_eq!(row(0), [0, 12, 1, 13, 2, 14]);
    assert_eq!(row(2), [6, 18, 7, 19, 8, 20]);
    for coord in [layout::Coord::from(16), (1, 5).into(), (1, (1, 2)).into()] {
        assert_eq!(strided.crd2idx(&coord).unwrap(), 17);
    }
}

#[test]
fn modes_are_taken_joined_and_grouped() {
    let a = layout("(4,(3,6)):(1,(4,12))");
    assert_eq!(a.mode(&[0]).unwrap(), layout("4:1"));
    assert_eq!(a.mode(&[1, 1]).unwrap(), layout("6:12"));
    let a = layout("(2,3,5,7)");
    assert_eq!(a.select(&[1, 3]).unwrap(), layout("(3,7):(2,30)"));
    assert_eq!(a.select(&[2]).unwrap(), layout("(5):(6)"));
    assert_eq!(a.take(1..3).unwrap(), layout("(3,5):(2,6)"));
    assert!(a.take(1..1).is_err());
    assert!(a.take(3..5).is_err());
    assert!(a.select(&[4]).is_err());
    let b = a.group(0..2).unwrap();
    assert_eq!(b, layout("((2,3),5,7):((1,2),6,30)"));
    assert_eq!(b.group(1..3).unwrap(), layout("((2,3),(5,7)):((1,2),(6,30))"));
    assert_eq!(b.flatten(), a);

    let (three, four) = (layout("3:1"), layout("4:3"));
    assert_eq!(Layout::concat([&three, &four]).unwrap(), layout("(3,4):(1,3)"));
    assert_eq!(Layout::concat([&three]).unwrap(), layout("(3):(1)"));
    let both = three.append(&four).unwrap();
    assert_eq!(both, layout("(3,4):(1,3)"));
    assert_eq!(three.prepend(&four).unwrap(), layout("(4,3):(3,1)"));
    let nested = both.append(&both).unwrap();
    assert_eq!(nested, layout("(3,4,(3,4)):(1,3,(1,3))"));
    assert_eq!(nested.replace(2, &four).unwrap(), layout("(3,4,4):(1,3,3)"));
    assert_eq!(layout("(4,(3,6))").slice((.., (1, ..))).unwrap().layout, layout("(4,6):(1,12)"));
}

#[test]
fn compositions() {
    for (a, b, result) in [
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(4,3):(3,1)", "24", "(4,6):(3,1)"),
        ("(4,3):(3,1)", "8", "(4,2):(3,1)"),
        // A last mode 1:0 ends the layout: what lies beyond is 0.
        ("(4,3,1):(3,1,0)", "24", "(4,3,2):(3,1,0)"),
        ("1:0", "4", "4:0"),
        ("(8,8):(8,1)", "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))", "((2,2,2),(2,2,2)):((8,2,32),(1,16,4))"),
        ("(4,8,2):(2,8,1)", "(4,2,2):(2,8,1)", "(4,2,2):(4,16,2)"),
    ] {
        assert_eq!(layout(a).composition(layout(b)).unwrap(), layout(result), "{a} o {b}");
    }
    let matrix = layout("(12,(4,8)):(59,(13,1))");
    let tiler: Tiler = "<3:4,8:2>".parse().unwrap();
    assert_eq!(matrix.composition(tiler).unwrap(), layout("(3,(2,4)):(236,(26,1))"));
    assert_eq!(matrix.composition((3, 8)).unwrap(), layout("(3,(4,2)):(59,(13,1))"));
    assert_eq!(matrix.composition((.., 8)).unwrap(), layout("(12,(4,2)):(59,(13,1))"));
}

#[test]
fn compositions_that_are_no_layout_are_refused() {
    let refuse = |a: &str, b: &str| layout(a).composition(layout(b)).unwrap_err();
    assert!(matches!(refuse("(4,3):(3,1)", "6:1"), LayoutError::ShapeDivisibility { elements: 6, extent: 4, .. }));
    assert!(matches!(refuse("(6,2):(8,2)", "4:4"), LayoutError::StrideDivisibility { stride: 4, extent: 6, .. }));
    // Two elements end inside the mode of 6, though 4 does not divide it.
    assert_eq!(layout("(6,2):(8,2)").composition(layout("2:4")).unwrap(), layout("2:32"));
    // Each mode alone is defined, their sum runs over the mode of 4: 3 + 3 is coordinate (2,1), not 6.
    let carry = refuse("(4,3):(3,1)", "(2,2):(3,3)");
    assert!(matches!(carry, LayoutError::Carry { reached: 6, extent: 4, .. }));
    assert_eq!(
        carry.to_string(),
        "(4,3):(3,1) o (2,2):(3,3): the modes of the right layout together reach 6 in a mode of extent 4; \
         the carry is no layout"
    );
}

#[test]
fn complements() {
    for (a, target, result) in [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("1:0", 24, "24:1"),
        ("4:0", 24, "24:1"),
    ] {
        assert_eq!(layout(a).complement(target).unwrap(), layout(result), "{a} in {target}");
    }
    assert!(matches!(layout("(4,2):(1,2)").complement(16), Err(LayoutError::Overlap { stride: 2, .. })));
}

#[test]
fn divisions() {
    let vector = layout("(4,2,3):(2,1,8)");
    assert_eq!(vector.logical_divide(layout("4:2")).unwrap(), layout("((2,2),(2,3)):((4,1),(2,8))"));
    let matrix = layout("(9,(4,8)):(59,(13,1))");
    let tiler = || "<3:3,(2,4):(1,8)>".parse::<Tiler>().unwrap();
    let text = |layout: Layout| layout.to_string();
    assert_eq!(text(matrix.logical_divide(tiler()).unwrap()), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
    assert_eq!(text(matrix.zipped_divide(tiler()).unwrap()), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
    assert_eq!(text(matrix.tiled_divide(tiler()).unwrap()), "((3,(2,4)),3,(2,2)):((177,(13,2)),59,(26,1))");
    assert_eq!(text(matrix.flat_divide(tiler()).unwrap()), "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))");
    assert_eq!(matrix.composition(tiler()).unwrap(), layout("(3,(2,4)):(177,(13,2))"));
    // Modes without a tile go with the rest, a tile `_` keeps its mode.
    let batched = layout("(64,32,5):(32,1,2048)");
    assert_eq!(text(batched.zipped_divide((16, 8)).unwrap()), "((16,8),(4,4,5)):((32,1),(512,8,2048))");
    assert_eq!(text(batched.zipped_divide((16, ..)).unwrap()), "((16,32),(4,1,5)):((32,1),(512,0,2048))");
    assert!(batched.zipped_divide((1, 1, 1, 1)).is_err());
}

#[test]
fn products() {
    let block = layout("(2,2):(4,1)");
    assert_eq!(block.logical_product(layout("6:1")).unwrap(), layout("((2,2),(2,3)):((4,1),(2,8))"));
    assert_eq!(block.logical_product(layout("(4,2):(2,1)")).unwrap(), layout("((2,2),(4,2)):((4,1),(8,2))"));
    let (block, tile) = (layout("(2,5):(5,1)"), layout("(3,4):(1,3)"));
    assert_eq!(block.blocked_product(&tile).unwrap(), layout("(6,(5,4)):(5,(1,30))"));
    assert_eq!(block.raked_product(&tile).unwrap(), layout("((3,2),(4,5)):((10,5),(30,1))"));
    // The same by a tiler that knows the strides of the block.
    let tiler = || "<3:5,4:6>".parse::<Tiler>().unwrap();
    assert_eq!(block.logical_product(tiler()).unwrap(), layout("((2,3),(5,4)):((5,10),(1,30))"));
    assert_eq!(block.zipped_product(tiler()).unwrap(), layout("((2,5),(3,4)):((5,1),(10,30))"));
    assert_eq!(block.tiled_product(tiler()).unwrap(), layout("((2,5),3,4):((5,1),10,30)"));
    assert_eq!(block.flat_product(tiler()).unwrap(), layout("(2,5,3,4):(5,1,10,30)"));
    assert!(matches!(layout("(2,2):(1,1)").logical_product(layout("2:1")), Err(LayoutError::Overlap { .. })));
}

#[test]
fn inverses_and_common_vectors() {
    assert_eq!(layout("(4,8):(8,1)").right_inverse().unwrap(), layout("(8,4):(4,1)"));
    assert_eq!(layout("(2,4,6):(4,8,0)").right_inverse().unwrap(), layout("1:0"));
    assert_eq!(layout("4:2").left_inverse().unwrap(), layout("(2,4):(0,1)"));
    assert!(layout("4:0").left_inverse().is_err());
    assert!(layout("(2,2):(2,3)").left_inverse().is_err());
    assert_eq!(layout("(8,4)").max_common_vector(&layout("(8,4):(1,10)")).unwrap(), 8);
    assert_eq!(layout("(8,4)").max_common_vector(&layout("(8,4):(4,1)")).unwrap(), 1);
}

#[test]
fn recasts() {
    assert_eq!(layout("(4,16):(16,1)").recast(16, 128).unwrap(), layout("(4,2):(2,1)"));
    assert_eq!(layout("(4,2):(2,1)").recast(128, 16).unwrap(), layout("(4,16):(16,1)"));
    assert_eq!(layout("(2,2,8):(1,2,4)").upcast(4).unwrap(), layout("(1,1,8):(0,0,1)"));
    assert!(layout("(4,16):(20,1)").recast(16, 128).is_err());
    assert!(layout("(2,2):(1,1)").upcast(4).is_err());
    assert!(layout("6:1").upcast(4).is_err());
    assert!(layout("4:2").downcast(2).is_err());
    assert!(layout("4:1").recast(24, 16).is_err());
    assert!(layout("4:1").recast(0, 16).is_err());
    assert!(layout("4:1").upcast(0).is_err());
}

#[test]
fn layouts_that_are_none() {
    assert!(matches!(layout![(4, 8); 1], Err(LayoutError::NotCongruent { .. })));
    assert!(matches!(layout![0; 1], Err(LayoutError::Extent { extent: 0 })));
    assert!(matches!(layout![(4, -1)], Err(LayoutError::Extent { extent: -1 })));
    assert!(matches!(layout![usize::MAX; 1], Err(LayoutError::TooLarge { .. })));
    assert!(matches!(layout![2; i64::MIN], Err(LayoutError::TooLarge { .. })));
    assert!(matches!(layout![(1i64 << 40, 1i64 << 40)], Err(LayoutError::TooLarge { .. })));
    assert!(matches!(layout![(4, 4); (1i64 << 61, 1)], Err(LayoutError::TooLarge { .. })));
    let wide = layout![4; 1i64 << 40].unwrap();
    assert!(matches!(wide.composition(layout![4; 1i64 << 30].unwrap()), Err(LayoutError::TooLarge { .. })));
    assert!(matches!(wide.downcast(1i64 << 30), Err(LayoutError::Recast { .. } | LayoutError::TooLarge { .. })));
    assert!(matches!(wide.extended(1i64 << 40), Err(LayoutError::TooLarge { .. })));
    assert!(matches!(wide.logical_product(layout("(2,2):(0,4611686018427387903)")), Err(LayoutError::TooLarge { .. })));
    assert!(matches!(layout("4:1").crd2idx((1, 2)), Err(LayoutError::Profile { .. })));
    assert!(matches!(layout("(4,2)").crd2idx((1, usize::MAX)), Err(LayoutError::OutOfRange { .. })));
}

#[test]
fn texts_that_are_no_layout() {
    for text in [
        "",
        "(",
        "(4",
        "(4,)",
        "4:",
        "4:1:2",
        "(4,8):(1)",
        "4 8",
        "x",
        "4:1x",
        "99999999999999999999",
        "-",
        "?",
        "?-1",
        "ceil(4/0)",
        "ceil(?0/0)",
    ] {
        assert!(text.parse::<Layout>().is_err(), "{text}");
    }
    assert_eq!("(4,8:1".parse::<Layout>().unwrap_err().to_string(), "`(4,8:1`, byte 4: expected ,");
    assert!("(".repeat(100_000).parse::<Layout>().is_err());
    assert!("<".repeat(100_000).parse::<Tiler>().is_err());
    assert!("ceil(".repeat(100_000).parse::<Layout>().is_err());
    assert_eq!(" ( 4 , 8 ) : ( 8 , 1 ) ".parse::<Layout>().unwrap(), layout("(4,8):(8,1)"));
    assert_eq!("():()".parse::<Layout>().unwrap().size(), 1);
    let tiler: Tiler = "<3:3,<8,_>>".parse().unwrap();
    assert_eq!(tiler.to_string(), "<3:3,<8,_>>");
    let dynamic: Layout = "(?0,4*?1):(-?2,ceil(?0/64))".parse().unwrap();
    assert_eq!(dynamic.to_string().parse::<Layout>().unwrap(), dynamic);
}
