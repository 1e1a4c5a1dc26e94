//! Swizzles, composed layouts, bank conflicts, and indices of run-time values.

use std::collections::HashMap;

use proptest::prelude::*;

use super::model::{any_layout, cases, layout, size, values};
use crate::layout::{
    ComposedLayout, Dim, IndexMap, IndexMath, Layout, LayoutError, Nested, Swizzle, Symbol, Term, bank_conflicts,
};

fn any_swizzle() -> impl Strategy<Value = Swizzle> {
    (0..4u32, 0..5u32, 0..3i32, any::<bool>()).prop_map(|(bits, base, more, up)| {
        let shift = bits as i32 + more;
        Swizzle::new(bits, base, if up { shift } else { -shift }).unwrap()
    })
}

/// The smallest case of the property below: one index.
#[test]
fn a_layout_over_one_index_is_flat() {
    let one = ComposedLayout::with_offset(Swizzle::new(0, 0, 1).unwrap(), 0, Layout::new(1, 1).unwrap()).unwrap();
    let over = one.under(Layout::new(1, 2).unwrap()).unwrap();
    assert_eq!(over.flatten().unwrap().indices().unwrap(), [0]);
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_swizzle_permutes_its_blocks_and_undoes_itself(swizzle in any_swizzle(), index in 0..1i64 << 40) {
        prop_assert_eq!(swizzle.apply(swizzle.apply(index)), index);
        prop_assert_eq!(swizzle.apply(index) / swizzle.block(), index / swizzle.block());
        prop_assert_eq!(swizzle.apply(index + swizzle.period()), swizzle.apply(index) + swizzle.period());
        let whole = 1i64 << swizzle.base();
        prop_assert_eq!(swizzle.apply(index) % whole, index % whole);
        // Bit by bit, as the definition has it.
        let mut expected = index;
        for bit in 0..swizzle.bits() {
            let low = swizzle.base() + bit;
            let high = low + swizzle.shift().unsigned_abs();
            let (from, to) = if swizzle.shift() >= 0 { (high, low) } else { (low, high) };
            expected ^= (index >> from & 1) << to;
        }
        prop_assert_eq!(swizzle.apply(index), expected);
    }

    #[test]
    fn a_swizzle_of_wide_elements_moves_the_same_bytes(swizzle in any_swizzle(), power in 0..5u32, index in 0..1i64 << 20) {
        let factor = 1i64 << power;
        let narrow = swizzle.downcast(factor).unwrap();
        prop_assert_eq!(narrow.apply(index), swizzle.apply(index / factor) * factor + index % factor);
        prop_assert_eq!(narrow.upcast(factor).unwrap(), swizzle);
    }

    #[test]
    fn layouts_over_swizzles_are_the_composition(swizzle in any_swizzle(), layout in any_layout(4), offset in 0..64i64, power in 0..4u32, rows in 1..9i64) {
        let composed = ComposedLayout::with_offset(swizzle, offset, layout.clone()).unwrap();
        let reach = composed.cosize().unwrap();
        // Two modes with gaps, and one that is scaled by a power of two.
        let tall = Layout::new((rows, (reach + rows - 1) / rows), (3, 3 * rows + 5)).unwrap();
        let over = composed.under(tall.clone()).unwrap();
        let swizzled = composed.indices().unwrap();
        let expected: Vec<i64> = swizzled.iter().map(|index| index % rows * 3 + index / rows * (3 * rows + 5)).collect();
        prop_assert_eq!(over.indices().unwrap(), expected);
        let spread = composed.under(Layout::new(reach, 1i64 << power).unwrap()).unwrap();
        let expected: Vec<i64> = swizzled.iter().map(|index| index << power).collect();
        prop_assert_eq!(&spread.indices().unwrap(), &expected);
        prop_assert_eq!(spread.flatten().unwrap().indices().unwrap(), expected);
        if reach > 1 {
            let short = Layout::new(reach - 1, 1).unwrap();
            let refused = composed.under(short).unwrap_err();
            prop_assert_eq!(refused, LayoutError::OutOfRange { coordinate: reach - 1, extent: reach - 1 });
        }
    }

    #[test]
    fn composed_layouts_stay_the_same_function(swizzle in any_swizzle(), layout in any_layout(4), offset in 0..64i64, pick in 0..1000i64) {
        let composed = ComposedLayout::with_offset(swizzle, offset, layout.clone()).unwrap();
        let expected: Vec<i64> = values(&layout).into_iter().map(|index| swizzle.apply(offset + index)).collect();
        prop_assert_eq!(&composed.indices().unwrap(), &expected);
        prop_assert!(expected.iter().all(|index| *index < composed.cosize().unwrap()));
        prop_assert_eq!(composed.coalesce().unwrap().indices().unwrap(), expected.clone());
        let rank = layout.rank();
        if layout.depth() > 0 {
            let number = pick % size(&layout.mode(&[rank - 1]).unwrap());
            let mut coord = vec![Nested::Leaf(crate::layout::CoordLeaf::All); rank - 1];
            coord.push(number.into());
            let slice = composed.slice(Nested::Tuple(coord)).unwrap();
            let (count, start) = (size(slice.layout.layout()), number * size(slice.layout.layout()));
            prop_assert_eq!(slice.layout.indices().unwrap(), expected[start as usize..][..count as usize].to_vec());
            prop_assert_eq!(slice.offset, 0);
        }
    }

    #[test]
    fn bank_conflicts_are_counted_by_phase(offsets in any_layout(3), power in 0..5u32) {
        let width = 1i64 << power;
        let scaled = in_bytes(&offsets, width);
        let found = bank_conflicts(&scaled, width as u32, 32).unwrap();
        // Lane by lane, byte by byte.
        let (mut degree, mut wavefronts) = (0, 0);
        let lanes = values(&scaled);
        for phase in lanes.chunks((128 / width.max(4)) as usize) {
            let mut words: HashMap<i64, Vec<i64>> = HashMap::new();
            for byte in phase.iter().flat_map(|start| *start..start + width) {
                let word = byte / 4;
                let bank = words.entry(word % 32).or_default();
                if !bank.contains(&word) {
                    bank.push(word);
                }
            }
            let most = words.values().map(Vec::len).max().unwrap() as u64;
            degree = degree.max(most);
            wavefronts += most;
        }
        prop_assert_eq!((found.degree, found.wavefronts), (degree, wavefronts));
    }

    #[test]
    fn run_time_indices_are_the_indices(swizzle in any_swizzle(), layout in any_layout(4), pick in 0..1000i64) {
        let number = pick % size(&layout);
        let composed = ComposedLayout::new(swizzle, layout.clone()).unwrap();
        let natural = layout.shape().idx2crd(number).unwrap();
        let mut math = Host::default();
        for coord in [Nested::Leaf(Term::Value(number)), natural.map(&mut |part| Term::Value(part.known().unwrap()))] {
            let index = layout.index_with(&coord, &mut math).unwrap().materialize(&mut math);
            prop_assert_eq!(index, layout.crd2idx(number).unwrap());
            let index = composed.index_with(&coord, &mut math).unwrap().materialize(&mut math);
            prop_assert_eq!(index, composed.crd2idx(number).unwrap());
        }
        let known = natural.map(&mut |part| Term::Known(part.known().unwrap()));
        let mut untouched = Host::default();
        prop_assert_eq!(composed.index_with(&known, &mut untouched).unwrap(), Term::Known(composed.crd2idx(number).unwrap()));
        prop_assert_eq!(untouched.operations, 0);
    }
}

/// Indices of elements as offsets of bytes.
fn in_bytes(elements: &Layout, width: i64) -> Layout {
    let stride = elements.stride().map(&mut |stride| stride.times(&width.into()).unwrap());
    Layout::new(elements.shape(), stride).unwrap()
}

/// Numbers of the host as "values", that count operations and see the promises of [`IndexMath`] kept.
#[derive(Default)]
pub struct Host {
    pub symbols: Vec<i64>,
    pub operations: usize,
}

impl IndexMath for Host {
    type Value = i64;

    fn constant(&mut self, value: i64) -> i64 {
        value
    }

    fn symbol(&mut self, number: u32) -> Result<i64, LayoutError> {
        Ok(self.symbols[number as usize])
    }

    fn add(&mut self, a: i64, b: i64) -> i64 {
        self.operations += 1;
        a + b
    }

    fn mul(&mut self, a: i64, b: i64) -> i64 {
        self.operations += 1;
        a * b
    }

    fn div(&mut self, a: i64, b: i64) -> i64 {
        assert_ne!(b, 1);
        self.operations += 1;
        a / b
    }

    fn rem(&mut self, a: i64, b: i64) -> i64 {
        assert_ne!(b, 1);
        self.operations += 1;
        a % b
    }

    fn and(&mut self, a: i64, mask: i64) -> i64 {
        self.operations += 1;
        a & mask
    }

    fn xor(&mut self, a: i64, b: i64) -> i64 {
        self.operations += 1;
        a ^ b
    }

    fn shift(&mut self, a: i64, distance: i32) -> i64 {
        self.operations += 1;
        if distance >= 0 { a << distance } else { a >> -distance }
    }
}

#[test]
fn static_parts_cost_nothing_at_run_time() {
    let tile = layout("((8,4),(2,2)):((16,1),(8,128))");
    let thread = |value| Nested::Tuple(vec![Nested::Leaf(Term::Value(value)), Nested::Leaf(Term::Known(3))]);
    let mut math = Host::default();
    let index = tile.index_with(&thread(13), &mut math).unwrap().materialize(&mut math);
    assert_eq!(index, tile.crd2idx((13, 3)).unwrap());
    // rem, mul, div, add, and the constant of the known part.
    assert_eq!(math.operations, 5);
    let mut math = Host::default();
    let contiguous = layout("((8,4),2):((1,8),64)");
    assert_eq!(
        contiguous.index_with(&thread(13).modes()[0].clone().append(Nested::Leaf(Term::Known(0))), &mut math).unwrap(),
        Term::Value(13)
    );
    assert_eq!(math.operations, 0);
}

#[test]
fn a_tensor_of_run_time_extents_is_tiled() {
    let (rows, columns) = (Dim::from(Symbol::Value(0)), Dim::from(Symbol::Value(1)));
    let tensor = Layout::new((rows, columns.clone()), (columns, 1)).unwrap();
    assert_eq!(tensor.to_string(), "(?0,?1):(?1,1)");
    assert_eq!(tensor.size().to_string(), "?0*?1");
    let tiles = tensor.zipped_divide((64, 32)).unwrap();
    assert_eq!(tiles.to_string(), "((64,32),(ceil(?0/64),ceil(?1/32))):((?1,1),(64*?1,32))");
    assert_eq!(tiles.to_string().parse::<Layout>().unwrap(), tiles);

    let mut math = Host { symbols: vec![100, 90], operations: 0 };
    let rest = tiles.mode(&[1]).unwrap();
    let coord = Nested::Tuple(vec![Nested::Leaf(Term::Value(1)), Nested::Leaf(Term::Value(2))]);
    assert_eq!(rest.index_with(&coord, &mut math).unwrap().materialize(&mut math), 64 * 90 + 2 * 32);
    let count = rest.size().evaluate(&mut math).unwrap().materialize(&mut math);
    assert_eq!(count, 2 * 3);

    // A block number that counts through both modes, and what needs numbers says so.
    let block = Nested::Leaf(Term::Value(5));
    assert_eq!(rest.index_with(&block, &mut math).unwrap().materialize(&mut math), 64 * 90 + 2 * 32);
    let refused = tensor.crd2idx((1, 0)).unwrap_err();
    assert_eq!(refused.to_string(), "an index needs a value that is known at trace time, and ?1 is not");
    assert_eq!(tensor.crd2idx((0, 7)).unwrap(), 7);
    assert!(matches!(tensor.cosize(), Err(LayoutError::Dynamic { .. })));
    assert!(matches!(tensor.complement(64), Err(LayoutError::Dynamic { .. })));
    assert!(matches!(layout("(8,8):(8,1)").logical_divide((Symbol::Value(0), 8)), Err(LayoutError::Dynamic { .. })));
}

#[test]
fn compact_run_time_modes_are_seen_to_be_compact() {
    let tensor: Layout = "(?0,4,?1):(1,?0,4*?0)".parse().unwrap();
    assert_eq!(tensor.coalesce().unwrap().to_string(), "4*?0*?1:1");
    assert_eq!(tensor.composition(layout("32:2")).unwrap(), layout("32:2"));
    let padded: Layout = "(?0,4):(1,?2)".parse().unwrap();
    assert_eq!(padded.coalesce().unwrap(), padded);
    assert!(matches!(padded.composition(layout("32:1")), Err(LayoutError::Dynamic { .. })));
    assert_eq!("8*?1".parse::<Layout>().unwrap().logical_divide(4).unwrap().to_string(), "(4,2*?1):(1,4)");
}

#[test]
fn swizzles_free_the_rows_that_ldmatrix_reads_of_conflicts() {
    // Eight 16-byte rows, 128 bytes apart: of a tile of 64 two-byte elements.
    let rows = layout("8:128");
    let direct = bank_conflicts(&rows, 16, 32).unwrap();
    assert_eq!((direct.degree, direct.wavefronts, direct.phases), (8, 8, 1));
    for column in (0..128).step_by(16) {
        let swizzled = ComposedLayout::with_offset(Swizzle::new(3, 4, 3).unwrap(), column, rows.clone()).unwrap();
        assert!(bank_conflicts(&swizzled, 16, 32).unwrap().is_free());
    }
    // 64-byte and 32-byte rows take the narrower swizzles.
    for (pitch, bits, unswizzled) in [(64, 2, 4), (32, 1, 2)] {
        let rows = Layout::new(8, pitch).unwrap();
        assert_eq!(bank_conflicts(&rows, 16, 32).unwrap().degree, unswizzled);
        let swizzled = ComposedLayout::new(Swizzle::new(bits, 4, 3).unwrap(), rows).unwrap();
        assert!(bank_conflicts(&swizzled, 16, 32).unwrap().is_free());
    }
}

#[test]
fn bank_conflicts_of_common_accesses() {
    let degree = |lanes: &str, bytes| bank_conflicts(&layout(lanes), bytes, 32).unwrap().degree;
    assert_eq!(degree("32:4", 4), 1); // a row of floats
    assert_eq!(degree("32:0", 4), 1); // a broadcast
    assert_eq!(degree("32:8", 4), 2); // every other float
    assert_eq!(degree("32:128", 4), 32); // a column of 32 floats
    assert_eq!(degree("32:132", 4), 1); // the same, padded
    assert_eq!(degree("32:2", 2), 1); // two lanes to a word
    assert_eq!(degree("32:16", 16), 1); // four phases
    assert_eq!(bank_conflicts(&layout("32:16"), 16, 32).unwrap().wavefronts, 4);
    assert_eq!(bank_conflicts(&layout("64:256"), 4, 64).unwrap().degree, 64);
    assert!(bank_conflicts(&layout("8:8"), 16, 32).is_err());
    assert!(bank_conflicts(&layout("8:8"), 3, 32).is_err());
    assert!(bank_conflicts(&layout("8:8"), 8, 0).is_err());
    assert!(bank_conflicts(&layout("8:-8"), 8, 32).is_err());
}

#[test]
fn parameters_that_are_no_swizzle_are_refused() {
    assert!(Swizzle::new(3, 4, 2).is_err());
    assert!(Swizzle::new(20, 20, 22).is_err());
    assert!(Swizzle::new(u32::MAX, 0, i32::MIN).is_err());
    assert!(Swizzle::new(3, 4, 3).unwrap().upcast(32).is_err());
    assert!(Swizzle::new(3, 4, 3).unwrap().upcast(3).is_err());
    assert_eq!(Swizzle::new(3, 4, 3).unwrap().upcast(2).unwrap(), Swizzle::new(3, 3, 3).unwrap());
    assert!(ComposedLayout::new(Swizzle::IDENTITY, layout("4:-1")).is_err());
    let tile = ComposedLayout::new(Swizzle::new(3, 3, 3).unwrap(), layout("(8,64):(64,1)")).unwrap();
    assert_eq!(tile.recast(16, 128).unwrap().to_string(), "Sw<3,0,3> o 0 o (8,8):(8,1)");
    assert_eq!(tile.max_common_vector(&layout("(8,64):(256,1)")).unwrap(), 8);
}
