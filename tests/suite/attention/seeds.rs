//! The whole list of shapes under all checks and ten orders of the scheduler: no check reports anything, no order changes
//! a bit, and the numbers are right.
//!
//! Each length of the list meets each head dimension, and of the other factors (heads, mask, amplitude, type, chip) each
//! level meets each level of every other factor: [`each_level_meets_each_other`] counts that. Each point runs ten times, so
//! that kernels which differ in mask and type are four for a head dimension, one on each chip.

use lacewing::runtime::emulator::{Bound, Check, Checks};

use super::layouts::packed_forward;
use super::numbers::constant;
use super::shapes::{HEAD_DIMS, HEADS, every_length};
use super::visibility::poisoned;
use super::*;

/// With seed 0 whatever runs beside the threads happens as late as it may; others move it about.
const SEEDS: u64 = 10;

/// Lengths of the list before those that take long.
const SHORT: usize = 16;

const CHIPS: [Target; 4] = [Target::SM_80, Target::SM_90A, Target::GFX942, Target::GFX950];

/// One point: the levels of all factors.
#[derive(Clone, Copy, Debug)]
struct Point {
    lengths: usize,
    head_dim: usize,
    heads: usize,
    tripled: usize,
    chip: usize,
}

impl Point {
    const LEVELS: [usize; 7] = [20, HEAD_DIMS.len(), HEADS.len(), 2, CHIPS.len(), 2, 2];

    /// The mask and the type are those of the head dimension's kernel on the chip, so that the kernels to trace are few.
    fn levels(&self) -> [usize; 7] {
        let causal = (self.chip ^ self.head_dim) & 1;
        let bf16 = (self.chip >> 1 ^ self.head_dim >> 1) & 1;
        [self.lengths, self.head_dim, self.heads, self.tripled, self.chip, causal, bf16]
    }

    fn case(&self, lengths: &[(usize, usize)]) -> Case {
        let (seqlen_q, seqlen_kv) = lengths[self.lengths];
        let is_long = seqlen_q.min(seqlen_kv) > 1000;
        let (heads_q, heads_kv) = HEADS[self.heads];
        // Of the longest, heads of their own are one.
        let own = if heads_q == heads_kv && is_long { 1 } else { heads_q };
        let [.., causal, _] = self.levels();
        Case {
            causal: causal == 1,
            amplitude: if self.tripled == 1 { 3.0 } else { 1.0 },
            ..Case::new(seqlen_q, seqlen_kv, HEAD_DIMS[self.head_dim]).heads(own, heads_kv.min(own))
        }
    }

    /// Multiplications, about.
    fn work(&self, lengths: &[(usize, usize)]) -> usize {
        let case = self.case(lengths);
        let all = case.heads_q * case.seqlen_q.next_multiple_of(64) * case.seqlen_kv.next_multiple_of(64);
        all * case.head_dim / if case.causal { 2 } else { 1 }
    }
}

/// The pairs of levels that a point has.
fn pairs(point: &Point) -> impl Iterator<Item = [(usize, usize); 2]> {
    let levels = point.levels();
    (0..7).flat_map(move |a| (a + 1..7).map(move |b| [(a, levels[a]), (b, levels[b])]))
}

/// Every length with every head dimension, the other factors such that most pairs are new, and then such that there is
/// little to do.
fn points() -> Vec<Point> {
    let lengths: Vec<(usize, usize)> = every_length().collect();
    let mut met = std::collections::HashSet::new();
    let mut chosen = Vec::new();
    for index in 0..lengths.len() {
        for head_dim in 0..HEAD_DIMS.len() {
            let choices = (0..CHIPS.len()).flat_map(|chip| {
                (0..HEADS.len()).flat_map(move |heads| {
                    (0..2).map(move |tripled| Point { lengths: index, head_dim, heads, tripled, chip })
                })
            });
            let best = choices.max_by_key(|point| {
                let new = pairs(point).filter(|pair| !met.contains(pair)).count();
                // What takes long goes to the chips that are emulated fastest, and the rest to each in turn.
                let in_turn = match index < SHORT {
                    true => (point.chip + index + head_dim) % CHIPS.len(),
                    false => [1, 0, 3, 2][point.chip],
                };
                let work = point.work(&lengths);
                (new, std::cmp::Reverse((work, in_turn, point.heads, point.tripled)))
            });
            met.extend(best.iter().flat_map(pairs));
            chosen.extend(best);
        }
    }
    chosen
}

#[test]
fn each_level_meets_each_other() {
    let points = points();
    for a in 0..7 {
        for b in a + 1..7 {
            for (level_a, level_b) in (0..Point::LEVELS[a]).flat_map(|x| (0..Point::LEVELS[b]).map(move |y| (x, y))) {
                let met = points.iter().any(|point| {
                    let levels = point.levels();
                    (levels[a], levels[b]) == (level_a, level_b)
                });
                assert!(met, "level {level_a} of factor {a} never meets level {level_b} of factor {b}");
            }
        }
    }
    assert_eq!(Point::LEVELS[0], every_length().count());
}

/// Runs under every seed; what the first gives is compared with what is right.
fn under_seeds(target: Target, what: &str, wanted: &Wanted, run: impl Fn(&Device) -> Got) {
    let device = |seed| Device::emulator(target).unwrap().with_seed(seed);
    // What accesses cost is the same in every order.
    let first = run(&device(0).with_checks(Checks::default().with(Check::Performance)));
    wanted.compare(&first, &format!("{what} on {target}"));
    for seed in 1..SEEDS {
        assert!(first.same(&run(&device(seed))), "seed {seed} gives other numbers on {target}: {what}");
    }
}

fn check<T: Dtype>(target: Target, case: &Case, inputs: &Inputs) {
    let wanted = case.wanted(inputs, T::PRECISION);
    under_seeds(target, &format!("{case:?}"), &wanted, |device| case.forward::<T>(device, inputs));
}

fn check_chip(chip: usize) {
    let lengths: Vec<(usize, usize)> = every_length().collect();
    for point in points().into_iter().filter(|point| point.chip == chip) {
        let case = point.case(&lengths);
        let [.., bf16] = point.levels();
        if bf16 == 1 {
            check::<BF16>(CHIPS[chip], &case, &case.inputs::<BF16>());
        } else {
            check::<F16>(CHIPS[chip], &case, &case.inputs::<F16>());
        }
    }
}

#[test]
fn every_length_on_sm_80() {
    check_chip(0);
}

#[test]
fn every_length_on_sm_90a() {
    check_chip(1);
}

#[test]
fn every_length_on_gfx942() {
    check_chip(2);
}

#[test]
fn every_length_on_gfx950() {
    check_chip(3);
}

/// Inputs on which released attention kernels were wrong, as far as these kernels have such features.
#[test]
fn inputs_that_were_hard_for_others() {
    let plain = |case: Case| {
        let inputs = case.inputs::<F16>();
        (case, inputs)
    };
    let with_padding = |case: Case| {
        let inputs = poisoned::<F16>(&case);
        (case, inputs)
    };
    let equal = |case: Case, number: f64| {
        let inputs = constant::<F16>(&case, number, number, number);
        (case, inputs)
    };
    // Behind a masked tile.
    let mut far_below = plain(Case::new(88, 448, 64).heads(14, 2).causal());
    let one_sign = |tensor: &HostTensor, factor: f64, shape: [usize; 4]| {
        let numbers: Vec<f64> = tensor.to_f64().unwrap().into_iter().map(|x| x.abs() * factor).collect();
        host::<F16>(&numbers, &shape)
    };
    far_below.1.q = one_sign(&far_below.1.q, 1.0, far_below.0.shape().q());
    far_below.1.k = one_sign(&far_below.1.k, -20.0, far_below.0.shape().kv());
    let hard = [
        ("scores far below 0", far_below),
        ("more rows than keys", plain(Case::new(130, 20, 64).heads(2, 1).causal())),
        ("no keys in one sequence", with_padding(Case::new(70, 90, 64).heads(2, 1).kv_len(&[90, 0, 64]))),
        ("no keys", plain(Case::new(65, 0, 64).kv_len(&[0, 0]))),
        ("no keys", plain(Case::new(65, 0, 64).kv_len(&[0, 0]).causal())),
        ("no keys in most", with_padding(Case::new(20, 70, 64).heads(3, 1).kv_len(&[0, 70, 0, 3, 0]).causal())),
        ("no keys between others", with_padding(Case::new(150, 150, 32).kv_len(&[150, 0, 150]))),
        ("keys between none", with_padding(Case::new(1, 64, 64).kv_len(&[0, 64, 0]))),
        ("lengths beside a tile", with_padding(Case::new(65, 170, 128).heads(2, 1).kv_len(&[1, 127, 129]))),
        ("many sequences", plain(Case::new(1, 2, 64).kv_len(&[2; 83]))),
        ("more keys than rows", plain(Case::new(130, 250, 128).causal())),
        ("few rows", plain(Case::new(8, 250, 128).heads(2, 1))),
        ("equal scores", equal(Case::new(20, 100, 64).heads(2, 1), 1.0)),
        ("equal scores", equal(Case::new(20, 100, 64).heads(2, 1), 1e2)),
        ("equal scores", equal(Case::new(20, 100, 64).heads(2, 1), 6e4)),
    ];
    for (name, (case, inputs)) in &hard {
        let wanted = case.wanted(inputs, Precision::F16);
        for target in CHIPS {
            let what = format!("{name} {case:?}");
            under_seeds(target, &what, &wanted, |device| case.forward::<F16>(device, inputs));
        }
    }
}

/// Q, K and V as views of one tensor.
#[test]
fn views_of_one_packed_tensor() {
    let case = Case { batch: 2, ..Case::new(40, 40, 64) }.heads(2, 2).causal();
    let inputs = case.inputs::<F16>();
    let wanted = case.wanted(&inputs, Precision::F16);
    for target in CHIPS {
        under_seeds(target, "packed", &wanted, |device| packed_forward::<F16>(&case, &inputs, device));
    }
}

/// Floats in binary64 beside the kernel's, where they are not too slow: no result is further off than its type explains.
#[test]
fn shadows_agree_on_short_sequences() {
    for (index, (seqlen_q, seqlen_kv)) in [(1, 1), (64, 128), (239, 1), (113, 128)].into_iter().enumerate() {
        for (number, target) in CHIPS.into_iter().enumerate() {
            let case = Case { causal: (index + number) % 2 == 1, ..Case::new(seqlen_q, seqlen_kv, 64) };
            let inputs = case.inputs::<F16>();
            let checks = Checks::default().with_shadow(Bound::Relative(0.05), 1e-2);
            let device = Device::emulator(target).unwrap().with_seed(index as u64).with_checks(checks);
            case.wanted(&inputs, Precision::F16)
                .compare(&case.forward::<F16>(&device, &inputs), &format!("{target} {case:?}"));
        }
    }
}
