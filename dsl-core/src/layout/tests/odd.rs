//! Odd inputs: no operation aborts, hangs or gives a wrong number, whatever it is asked. Extents of 0 and below, numbers at the
//! edge of what an integer holds, run-time values where they make no sense, depths and ranks that do not fit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::layout::*;

/// Numbers of one seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn number(&mut self) -> i64 {
        const ODD: [i64; 24] = [
            0,
            1,
            1,
            1,
            2,
            2,
            3,
            4,
            4,
            6,
            8,
            8,
            16,
            24,
            -1,
            -2,
            -8,
            1 << 20,
            1 << 31,
            1 << 32,
            1 << 62,
            i64::MAX,
            i64::MIN,
            i64::MIN + 1,
        ];
        // Mostly small ones, or nothing is left of most layouts.
        let end = if self.below(4) == 0 { ODD.len() } else { 14 };
        ODD[self.below(end)]
    }

    fn dim(&mut self) -> Dim {
        match self.below(16) {
            0 => Symbol::Value(self.below(2) as u32).into(),
            1 => Dim::from(Symbol::Value(0)).times(&Dim::from(self.number())).unwrap_or_else(|_| 3.into()),
            _ => self.number().into(),
        }
    }

    fn tuple(&mut self, depth: usize) -> IntTuple {
        if depth == 0 || self.below(3) == 0 {
            return Nested::Leaf(self.dim());
        }
        let count = self.below(4);
        Nested::Tuple((0..count).map(|_| self.tuple(depth - 1)).collect())
    }

    /// A layout, or any that there is where the tuples are none.
    fn layout(&mut self) -> Layout {
        let shape = self.tuple(2);
        let stride = match self.below(3) {
            0 => self.tuple(2),
            _ => shape.map(&mut |_| self.dim()),
        };
        match self.below(3) {
            0 => Layout::column_major(shape).or_else(|_| Layout::new(4, 1)),
            _ => Layout::new(shape, stride).or_else(|_| Layout::new((4, 8), (8, 1))),
        }
        .unwrap()
    }

    fn coord(&mut self, depth: usize) -> Coord {
        match self.below(4) {
            0 => Nested::Leaf(CoordLeaf::All),
            1 | 2 if depth > 0 => {
                let count = self.below(4);
                Nested::Tuple((0..count).map(|_| self.coord(depth - 1)).collect())
            }
            _ => self.number().into(),
        }
    }

    fn tiler(&mut self) -> Tiler {
        match self.below(3) {
            0 => self.layout().into(),
            1 => Tiler::from_shape(&self.tuple(1)),
            _ => {
                let count = self.below(4);
                let mut tile = || match self.below(4) {
                    0 => Tile::Layout(self.layout()),
                    1 => Tile::All,
                    _ => Tile::Extent(self.dim()),
                };
                Nested::Tuple((0..count).map(|_| Nested::Leaf(tile())).collect())
            }
        }
    }
}

/// Everything that can be asked of these; the results are thrown away.
fn ask(l: &Layout, other: &Layout, random: &mut Random) {
    let (a, b) = (random.below(4), random.below(4));
    let number = random.number();
    let (tuple, coord, tiler) = (random.tuple(2), random.coord(2), random.tiler());
    let _ = (l.size(), l.static_size(), l.cosize(), l.rank(), l.depth(), l.is_static(), l.to_string());
    let _ = (l.mode(&[a, b]), l.flatten(), l.group(a..b), l.take(a..b), l.select(&[a, b]));
    let _ = (l.append(other), l.prepend(other), l.replace(a, other), Layout::concat([l, other]));
    let _ = (l.coalesce(), l.coalesce_by(tuple.clone()), l.filter(), l.filter_zeros(), l.filter_by(tuple.clone()));
    let _ = (l.crd2idx(coord.clone()), l.idx2crd(number), l.shape().idx2crd(coord.clone()), l.flat_coordinate(number));
    let _ = (l.slice(coord.clone()), l.slice_layout(&coord), l.dice(&coord), l.extended(number));
    let _ = (l.compatible(other), l.shape().congruent(&other.shape()), l.shape().compatible(&tuple));
    let _ = (Layout::ordered(l.shape(), tuple.clone()), Layout::row_major(tuple.clone()));
    let _ = (l.composition(tiler.clone()), l.complement(tuple.clone()), l.complement(number));
    let _ = (l.right_inverse(), l.left_inverse(), l.max_common_layout(other), l.max_common_vector(other));
    let _ = (l.logical_divide(tiler.clone()), l.zipped_divide(tiler.clone()), l.tiled_divide(tiler.clone()));
    let _ = (l.flat_divide(tiler.clone()), l.tile_count(tiler.clone()));
    let _ = (l.logical_product(tiler.clone()), l.zipped_product(tiler.clone()), l.tiled_product(tiler.clone()));
    let _ = (l.flat_product(tiler.clone()), l.blocked_product(other), l.raked_product(other));
    let _ = (l.tile_to_shape(tuple.clone()), l.tile_to_shape_by(tuple.clone(), other.shape()));
    let _ = (l.local_tile(tiler.clone(), coord.clone()), l.local_tile_by(tiler.clone(), coord.clone(), &coord));
    let _ = (l.local_partition(other, number), l.upcast(number), l.downcast(number), l.max_alignment());
    let (from, to) = (number as u32, random.number() as u32);
    let _ = l.recast(from, to);
    let swizzle = Swizzle::new(random.number() as u32, random.number() as u32, random.number() as i32);
    let _ = Swizzle::new(random.below(8) as u32, random.below(64) as u32, random.below(64) as i32 - 32);
    let swizzle = swizzle.or_else(|_| Swizzle::new(2, a as u32, 2 + b as i32)).unwrap();
    let _ =
        (swizzle.apply(number), swizzle.period(), swizzle.block(), swizzle.upcast(number), swizzle.downcast(number));
    let Ok(c) = ComposedLayout::with_offset(swizzle, random.number(), l.clone()) else { return };
    let _ = (c.cosize(), c.crd2idx(coord.clone()), c.slice(coord.clone()), c.size(), c.to_string());
    let _ =
        (c.local_tile(tiler.clone(), coord.clone()), c.local_partition(other, number), c.composition(tiler.clone()));
    let _ = (c.coalesce(), c.coalesce_by(tuple.clone()), c.logical_divide(tiler.clone()), c.flat_divide(tiler));
    let _ =
        (c.blocked_product(other), c.tile_to_shape(tuple), c.upcast(number), c.downcast(number), c.recast(from, to));
    let _ = c.max_common_vector(other);
    if let Ok(outer) = c.under(other.clone()) {
        let _ = (outer.cosize(), outer.crd2idx(coord), outer.flatten(), outer.to_string());
    }
}

#[test]
fn nothing_aborts_or_hangs() {
    for seed in 0..6_000 {
        let mut random = Random(seed);
        let (l, other) = (random.layout(), random.layout());
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| ask(&l, &other, &mut random)));
        assert!(result.is_ok(), "seed {seed}: {l} and {other}");
        assert!(start.elapsed() < Duration::from_secs(5), "seed {seed} took {:?}: {l} and {other}", start.elapsed());
    }
}

/// The index of a number by the definition, in arithmetic that does not overflow.
fn reference(l: &Layout, number: i64) -> i128 {
    let (shape, stride) = (l.shape(), l.stride());
    let (mut rest, mut sum) = (i128::from(number), 0_i128);
    for (extent, stride) in shape.leaves().into_iter().zip(stride.leaves()) {
        let (extent, stride) = (i128::from(extent.known().unwrap()), i128::from(stride.known().unwrap()));
        sum += rest % extent * stride;
        rest /= extent;
    }
    sum
}

/// An index that is given is right, however large the numbers are; and a composition is the composition.
#[test]
fn large_numbers_are_right_or_refused() {
    let (mut right, mut composed) = (0, 0);
    for seed in 0..60_000 {
        let mut random = Random(seed);
        let (a, b) = (random.layout(), random.layout());
        let (Ok(size_a), Ok(size_b)) = (a.static_size(), b.static_size()) else { continue };
        if !a.is_static() || !b.is_static() {
            continue;
        }
        let pick = |random: &mut Random, size: i64| match random.below(3) {
            0 => size - 1,
            _ => (random.next() % size as u64) as i64,
        };
        for _ in 0..8 {
            let number = pick(&mut random, size_a);
            if let Ok(index) = a.crd2idx(number) {
                assert_eq!(i128::from(index), reference(&a, number), "seed {seed}: {a} at {number}");
                right += 1;
            }
        }
        let Ok(both) = a.composition(&b) else { continue };
        assert_eq!(both.static_size(), Ok(size_b), "seed {seed}: {a} o {b} = {both}");
        for _ in 0..8 {
            let number = pick(&mut random, size_b);
            let Ok(inner) = b.crd2idx(number) else { continue };
            if (0..size_a).contains(&inner) {
                assert_eq!(
                    reference(&both, number),
                    reference(&a, inner),
                    "seed {seed}: {a} o {b} = {both} at {number}"
                );
                composed += 1;
            }
        }
    }
    assert!(right > 50_000 && composed > 5_000, "{right} indices and {composed} of compositions were looked at");
}

/// Texts that are nearly layouts.
#[test]
fn odd_texts_are_errors_or_read_again() {
    for text in ["()", "():()", "((((4))))", "?0*?0:1", "ceil(4/2):1", "4 : 1", "4:1 "] {
        // What is read is written so that it is read again.
        let written = text.parse::<Layout>().unwrap().to_string();
        assert_eq!(written.parse::<Layout>().unwrap().to_string(), written, "`{text}`");
    }
    for text in [
        "",
        ":",
        "(",
        ")",
        "(,)",
        "4:",
        ":4",
        "4:4:4",
        "(4,8):(1)",
        "(4,8):1",
        "4:(1,2)",
        "99999999999999999999:1",
        "-4:1",
        "0:1",
        "4:99999999999999999999",
        "?:1",
        "?99999999999:1",
        "0*?0:1",
        "ceil(?0/0):1",
        "ceil(?0/-4):1",
        "\u{663}:1",
        "4:+1",
        "4:1;",
        "Sw<1,2,3> o 4:1",
    ] {
        let parsed = catch_unwind(|| text.parse::<Layout>().map(|layout| layout.to_string()));
        let parsed = parsed.unwrap_or_else(|_| panic!("`{text}` aborts"));
        assert!(parsed.is_err(), "`{text}` is read as {parsed:?}");
    }
    let deep = "(".repeat(100_000) + "4" + &")".repeat(100_000) + ":1";
    assert!(deep.parse::<Layout>().is_err());
}
