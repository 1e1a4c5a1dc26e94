//! The shapes that the suites of well-known kernels run, crossed with heads, masks, types and amplitudes.

use super::*;

pub(super) const HEAD_DIMS: [usize; 10] = [16, 32, 40, 64, 80, 96, 128, 160, 192, 256];

/// (Sq, Sk) of which each meets each head dimension.
const SMALL: [(usize, usize); 10] =
    [(1, 1), (1, 1000), (64, 128), (239, 1), (799, 3), (113, 203), (113, 128), (128, 217), (113, 211), (108, 256)];
/// (Sq, Sk) of which each meets a few head dimensions.
const MEDIUM: [(usize, usize); 6] = [(128, 192), (256, 256), (256, 512), (384, 256), (640, 128), (512, 256)];
/// (Sq, Sk, D, causal) that run once, with one head.
const LARGE: [(usize, usize, usize, bool); 4] =
    [(1024, 1024, 128, true), (1023, 1024, 32, false), (1024, 1023, 64, true), (2048, 2048, 64, true)];
/// Query heads on key heads: each its own, in groups, and all on one.
pub(super) const HEADS: [(usize, usize); 3] = [(2, 2), (6, 2), (3, 1)];

/// Every pair of `seqlen_q` and `seqlen_kv` of the lists above.
pub(super) fn every_length() -> impl Iterator<Item = (usize, usize)> {
    let large = LARGE.into_iter().map(|(seqlen_q, seqlen_kv, ..)| (seqlen_q, seqlen_kv));
    SMALL.into_iter().chain(MEDIUM).chain(large)
}

/// One shape, and the levels of the other factors.
#[derive(Clone, Copy, Debug)]
struct Point {
    lengths: usize,
    head_dim: usize,
    heads: usize,
    causal: usize,
    bf16: usize,
    tripled: usize,
}

impl Point {
    /// The other factors follow from the shape so that each pair of levels occurs. A head dimension has one
    /// mask for each type: there are only two versions of its kernel to compile.
    fn new(lengths: usize, head_dim: usize) -> Self {
        let bf16 = (lengths + head_dim / 2) % 2;
        Point {
            lengths,
            head_dim,
            heads: (lengths + head_dim) % 3,
            causal: (bf16 + head_dim) % 2,
            bf16,
            tripled: (lengths / 2 + head_dim / 3) % 2,
        }
    }

    fn levels(&self) -> [usize; 6] {
        [self.lengths, self.head_dim, self.heads, self.causal, self.bf16, self.tripled]
    }

    fn check(&self, (seqlen_q, seqlen_kv): (usize, usize)) {
        let (heads_q, heads_kv) = HEADS[self.heads];
        let mut case = Case::new(seqlen_q, seqlen_kv, HEAD_DIMS[self.head_dim]).heads(heads_q, heads_kv);
        case.causal = self.causal == 1;
        case.amplitude = if self.tripled == 1 { 3.0 } else { 1.0 };
        if self.bf16 == 1 { case.check::<BF16>() } else { case.check::<F16>() }
    }
}

fn small_points() -> impl Iterator<Item = Point> {
    (0..SMALL.len()).flat_map(|lengths| (0..HEAD_DIMS.len()).map(move |head_dim| Point::new(lengths, head_dim)))
}

#[test]
fn each_pair_of_levels_occurs() {
    let levels = [SMALL.len(), HEAD_DIMS.len(), HEADS.len(), 2, 2, 2];
    let points: Vec<[usize; 6]> = small_points().map(|point| point.levels()).collect();
    for (a, count_a) in levels.into_iter().enumerate() {
        for (b, count_b) in levels.into_iter().enumerate().skip(a + 1) {
            for level_a in 0..count_a {
                for level_b in 0..count_b {
                    assert!(
                        points.iter().any(|point| point[a] == level_a && point[b] == level_b),
                        "level {level_a} of factor {a} never meets level {level_b} of factor {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn short_sequences_of_every_head_dimension() {
    small_points().for_each(|point| point.check(SMALL[point.lengths]));
}

#[test]
fn longer_sequences_of_some_head_dimensions() {
    for (lengths, pair) in MEDIUM.into_iter().enumerate() {
        // Ten head dimensions over six shapes, each twice.
        for head_dim in (0..HEAD_DIMS.len()).filter(|head_dim| head_dim % 5 == lengths % 5) {
            Point::new(lengths, head_dim).check(pair);
        }
    }
}

#[test]
fn long_sequences() {
    for (seqlen_q, seqlen_kv, head_dim, causal) in LARGE {
        Case { causal, ..Case::new(seqlen_q, seqlen_kv, head_dim) }.check::<F16>();
    }
}

/// `fmha_ref` runs where it takes no longer than the rest.
#[test]
fn the_oracle_is_right_too() {
    for (lengths, head_dim, causal) in [
        ((1, 1), 256, false),
        ((1, 1000), 16, true),
        ((64, 128), 40, true),
        ((39, 1), 80, false),
        ((99, 3), 32, true),
        ((13, 203), 96, false),
        ((28, 217), 128, true),
        ((8, 256), 160, false),
        ((30, 30), 192, true),
    ] {
        let case = Case { causal, ..Case::new(lengths.0, lengths.1, head_dim) }.heads(3, 1);
        let f16 = case.inputs::<F16>();
        case.check_oracle::<F16>(&f16);
        let bf16 = case.inputs::<BF16>();
        case.check_oracle::<BF16>(&bf16);
    }
}

/// Head dimensions off the usual ones: any multiple of 8.
#[test]
fn head_dimensions_are_multiples_of_eight() {
    for (index, head_dim) in [8, 24, 48, 56, 72, 88, 104, 120, 136, 200, 224, 248].into_iter().enumerate() {
        let case = Case { causal: index % 2 == 0, ..Case::new(70, 90, head_dim) }.heads(2, 1);
        if index % 3 == 0 { case.check::<BF16>() } else { case.check::<F16>() }
    }
}
