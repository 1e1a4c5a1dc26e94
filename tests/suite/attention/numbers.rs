//! Hard numbers: sizes at the edge of the formats, softmax at its extremes, and the same bits again.

use super::*;

/// Inputs that are one number each.
pub(super) fn constant<T: Dtype>(case: &Case, q: f64, k: f64, v: f64) -> Inputs {
    let shape = case.shape();
    let tensor = |x: f64, shape: [usize; 4]| host::<T>(&vec![x; shape.iter().product()], &shape);
    Inputs { q: tensor(q, shape.q()), k: tensor(k, shape.kv()), v: tensor(v, shape.kv()) }
}

/// Weights are equal, so that O is V, to the bit.
#[test]
fn constants_up_to_the_largest_of_f16() {
    for (constant_value, head_dim, seqlen_kv) in
        [(1.0, 64, 70), (1e2, 64, 64), (6e4, 64, 100), (6e4, 256, 33), (-6e4, 128, 7), (6e4, 8, 300)]
    {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(20, seqlen_kv, head_dim) }.heads(2, 1);
            let inputs = constant::<F16>(&case, constant_value, constant_value, constant_value);
            case.check_inputs::<F16>(&inputs);
            case.check_oracle::<F16>(&inputs);
            for target in TARGETS {
                let got = case.forward::<F16>(&Device::emulator(target).unwrap(), &inputs);
                let value = inputs.v.to_f64().unwrap()[0];
                let visible = |index: usize| !causal || index / head_dim % 20 + seqlen_kv >= 20;
                for (index, o) in got.o.iter().enumerate().filter(|(index, _)| visible(*index)) {
                    assert_eq!(*o, value, "{target} {case:?} element {index}");
                }
            }
        }
    }
}

/// Scores of 4096 to 65536 in base 2, of which the rounding of the reference would make weights that are not 1 in f16: for
/// these by 2^-10 and more.
#[test]
fn equal_weights_of_large_scores_are_one() {
    for number in [55.0, 61.0] {
        let case = Case::new(20, 100, 64);
        let inputs = constant::<F16>(&case, number, number, number);
        case.check_inputs::<F16>(&inputs);
        for target in [Target::SM_80, Target::SM_90A] {
            let got = case.forward::<F16>(&Device::emulator(target).unwrap(), &inputs);
            assert!(got.o.iter().all(|o| *o == number), "{target}: {:?}", got.o.iter().find(|o| **o != number));
        }
    }
}

/// bf16 has the range of f32: scores of 1e34 are still finite.
#[test]
fn large_numbers_in_bf16() {
    let case = Case::new(20, 70, 64).causal();
    case.check_inputs::<BF16>(&constant::<BF16>(&case, 1e16, 1e16, 1e30));
    let case = Case { amplitude: 1e8, ..case };
    case.check_with_oracle::<BF16>();
}

#[test]
fn zero_queries_weigh_all_keys_alike() {
    let case = Case::new(70, 90, 64).heads(2, 1).causal();
    let mut inputs = case.inputs::<F16>();
    inputs.q = host::<F16>(&vec![0.0; inputs.q.len()], &case.shape().q());
    case.check_inputs::<F16>(&inputs);
    case.check_oracle::<F16>(&inputs);
    let got = case.forward::<F16>(&Device::emulator(Target::GFX942).unwrap(), &inputs);
    for (row, lse) in got.lse.iter().enumerate() {
        let keys = (row % 70 + 21) as f64;
        assert!((lse - keys.ln()).abs() < 1e-5, "{lse} for {keys} keys");
    }
}

#[test]
fn ones_and_zeros() {
    let case = Case::new(65, 130, 32).heads(2, 2);
    case.check_inputs::<F16>(&constant::<F16>(&case, 1.0, 1.0, 1.0));
    case.check_inputs::<BF16>(&constant::<BF16>(&case, 1.0, 1.0, 1.0));
    case.check_inputs::<BF16>(&constant::<BF16>(&case, 0.0, 0.0, 0.0));
}

#[test]
fn scales_of_all_sizes_and_signs() {
    for scale in [0.0, -0.0, -0.125, -1.0, 1.0, 1e-30, 1e4, -1e4, 1e30] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(30 + usize::from(causal), 80, 64) }.scale(scale);
            case.check_with_oracle::<F16>();
        }
    }
}

#[test]
fn a_scale_that_is_no_number_is_refused() {
    let case = Case::new(3, 4, 16);
    let device = Device::emulator(Target::SM_80).unwrap();
    for scale in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let tensors = case.inputs::<F16>().on::<F16>(&device);
        let lengths = case.lengths_on(&device);
        let mut outputs = Outputs::new(&device, &case.shape());
        let forward = Forward { scale, ..tensors.forward(&case, &lengths) };
        let text = refusal(forward.fmha_fwd::<F16>(&mut outputs.o, &mut outputs.lse));
        assert!(text.contains("`scale` is"), "{text}");
        let text = refusal(forward.fmha_ref::<F16, F16, _>(&mut outputs.o, &mut outputs.lse));
        assert!(text.contains("`scale` is"), "{text}");
    }
}

/// Keys in order of their score, both ways: each tile moves the maximum, or none but the first does.
#[test]
fn scores_that_rise_and_fall() {
    for direction in [1.0, -1.0] {
        let case = Case::new(40, 200, 32);
        let mut inputs = case.inputs::<F16>();
        let q = vec![1.0; inputs.q.len()];
        let k: Vec<f64> = (0..inputs.k.len()).map(|i| direction * (i / 32) as f64 / 16.0).collect();
        (inputs.q, inputs.k) = (host::<F16>(&q, &case.shape().q()), host::<F16>(&k, &case.shape().kv()));
        case.check_inputs::<F16>(&inputs);
        case.check_oracle::<F16>(&inputs);
    }
}

/// One key outweighs all others by more than f32 can tell.
#[test]
fn one_key_has_all_the_weight() {
    for heavy in [0, 63, 64, 199] {
        let case = Case::new(10, 200, 64);
        let mut inputs = constant::<BF16>(&case, 1.0, -1.0, 0.0);
        let mut k = inputs.k.to_f64().unwrap();
        k[heavy * 64..(heavy + 1) * 64].fill(100.0);
        inputs.k = host::<BF16>(&k, &case.shape().kv());
        inputs.v = case.inputs::<BF16>().v;
        case.check_inputs::<BF16>(&inputs);
        let got = case.forward::<BF16>(&Device::emulator(Target::SM_80).unwrap(), &inputs);
        let v = inputs.v.to_f64().unwrap();
        assert_eq!(got.o[..64], v[heavy * 64..(heavy + 1) * 64]);
    }
}

/// Neither the order of warps nor the number of host threads changes a bit.
#[test]
fn runs_are_equal_bit_for_bit() {
    let case = Case::new(150, 210, 64).heads(4, 2).causal().kv_len(&[210, 111]);
    for target in TARGETS {
        let inputs = case.inputs::<F16>();
        let device = Device::emulator(target).unwrap();
        let first = case.forward::<F16>(&device, &inputs);
        for (seed, threads) in [(0, 0), (1, 1), (2, 2), (77, 3), (u64::MAX, 8)] {
            let again = case.forward::<F16>(&device.clone().with_seed(seed).with_threads(threads), &inputs);
            assert!(again.same(&first), "{target}: seed {seed}, {threads} threads");
        }
    }
    let case = Case::new(9, 70, 16);
    let device = Device::emulator(Target::SM_80).unwrap();
    let first = case.oracle::<BF16>(&device, &case.inputs::<BF16>());
    let again = case.oracle::<BF16>(&device.with_seed(5).with_threads(2), &case.inputs::<BF16>());
    assert!(again.same(&first));
}
