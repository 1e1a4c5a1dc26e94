//! `fmha_fwd` of sm_90a for whole rows: every head dimension that it has tiles for, tails of rows and keys, padding, several rounds of
//! work a block.

use super::visibility::poisoned;
use super::*;

const HEAD_DIMS: [usize; 5] = [64, 96, 128, 192, 256];

/// Runs the kernel for whole rows, whatever a launch would take by itself.
fn forward<T: Dtype>(device: &Device, case: &Case, inputs: &Inputs) -> Got {
    case.forward_tiled::<T>(TilingChoice::Whole, device, inputs)
}

/// Compares on this chip alone: the other kernels have tests of their own.
fn check<T: Dtype>(case: &Case, inputs: &Inputs) {
    let device = Device::emulator(Target::SM_90A).unwrap();
    let got = forward::<T>(&device, case, inputs);
    case.wanted(inputs, T::PRECISION).compare(&got, &format!("fmha_fwd {} {case:?}", T::TYPE.name()));
}

#[test]
fn every_head_dimension_with_tails_of_rows_and_keys() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(70, 203, head_dim) }.heads(2, 1);
            check::<BF16>(&case, &case.inputs::<BF16>());
        }
    }
}

/// More work than the emulated chip has multiprocessors, so that blocks take work several times.
#[test]
fn blocks_take_work_several_times() {
    for causal in [false, true] {
        let case = Case { causal, ..Case::new(400, 300, 64) }.heads(3, 1).kv_len(&[300, 300]);
        check::<F16>(&case, &case.inputs::<F16>());
    }
}

/// NaN in the keys and values of padding, from lengths at, before and behind the edges of tiles on.
#[test]
fn padding_may_hold_anything() {
    for causal in [false, true] {
        let case = Case { causal, ..Case::new(65, 170, 128) }.heads(2, 1).kv_len(&[0, 1, 80, 127, 169, 170]);
        check::<BF16>(&case, &poisoned::<BF16>(&case));
    }
}

/// Rows that see nothing, more rows than keys, one key, one row.
#[test]
fn odd_lengths() {
    for (seqlen_q, seqlen_kv) in [(1, 1), (1, 300), (200, 3), (129, 128), (191, 80)] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(seqlen_q, seqlen_kv, 128) };
            check::<F16>(&case, &case.inputs::<F16>());
        }
    }
}

/// Other tiles than for little work: rows from 513 or 1025 on, and keys from 4097 on.
#[test]
fn tiles_of_long_inputs() {
    for (seqlen_q, head_dim, causal) in [(520, 64, false), (1030, 64, true), (1030, 96, false)] {
        let case = Case { causal, ..Case::new(seqlen_q, 210, head_dim) };
        check::<BF16>(&case, &case.inputs::<BF16>());
    }
    for head_dim in [96, 128] {
        let case = Case::new(70, 4200, head_dim).causal();
        check::<F16>(&case, &case.inputs::<F16>());
    }
}

/// Causal row blocks of which some warpgroups see nothing of the tiles on the right: more rows than keys, more keys than
/// rows, and padding.
#[test]
fn tiles_that_a_warpgroup_does_not_see() {
    for (seqlen_q, seqlen_kv, head_dim) in [(300, 300, 256), (1100, 700, 64), (190, 460, 192), (1030, 1030, 64)] {
        let case = Case::new(seqlen_q, seqlen_kv, head_dim).causal();
        check::<BF16>(&case, &case.inputs::<BF16>());
        let padded = case.kv_len(&[seqlen_kv / 2]);
        check::<BF16>(&padded, &poisoned::<BF16>(&padded));
    }
}

/// Keys that `size` multiplies, by their number. Tiles come from right to left.
fn sized<T: Dtype>(case: &Case, size: impl Fn(usize) -> f64) -> Inputs {
    let inputs = case.inputs::<T>();
    let mut k = inputs.k.to_f64().unwrap();
    for (key, row) in k.chunks_mut(case.head_dim).enumerate() {
        row.iter_mut().for_each(|x| *x *= size(key % case.seqlen_kv));
    }
    Inputs { k: host::<T>(&k, &case.shape().kv()), ..inputs }
}

/// Scores that outgrow the reference in every tile, in one tile, or by so much that a weight against it is infinite; and
/// in about half of the rows, as a key's score is as often negative.
#[test]
fn tiles_that_outgrow_the_reference() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(150, 330, head_dim) };
            check::<BF16>(&case, &sized::<BF16>(&case, |key| 1.0 + 0.1 * (330 - key) as f64));
            check::<F16>(&case, &sized::<F16>(&case, |key| if key == 70 { 30.0 } else { 1.0 }));
            check::<BF16>(&case, &sized::<BF16>(&case, |key| if key < 9 { 1e4 } else { 1.0 }));
        }
    }
}

/// Scores that differ by less than the reference lets pass, and by more.
#[test]
fn growing_maxima() {
    for amplitude in [0.1, 3.0, 12.0] {
        let case = Case { amplitude, ..Case::new(64, 400, 128) };
        check::<BF16>(&case, &case.inputs::<BF16>());
    }
}

/// A key that is no number makes the rows that see it no numbers, and no others.
#[test]
fn a_key_that_is_no_number() {
    let case = Case::new(250, 250, 64).causal();
    let got = forward::<BF16>(
        &Device::emulator(Target::SM_90A).unwrap(),
        &case,
        &sized::<BF16>(&case, |key| if key == 100 { f64::NAN } else { 1.0 }),
    );
    for (row, o) in got.o.chunks(64).enumerate() {
        assert!(o.iter().all(|o| o.is_nan() == (row >= 100)), "row {row}: {o:?}");
    }
}

/// The order in which blocks draw their work does not reach the results.
#[test]
fn reruns_are_equal_bit_for_bit() {
    let case = Case::new(260, 260, 64).heads(4, 2).causal();
    let inputs = case.inputs::<BF16>();
    let run = |seed| forward::<BF16>(&Device::emulator(Target::SM_90A).unwrap().with_seed(seed), &case, &inputs);
    assert!(run(1).same(&run(2)));
}
