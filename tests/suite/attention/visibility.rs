//! Which keys a query sees: masks, lengths, and rows that see nothing.

use super::*;

/// Inputs with NaN in K and V from each sequence's length on: whoever reads a masked key shows it.
pub(super) fn poisoned<T: Dtype>(case: &Case) -> Inputs {
    let mut inputs = case.inputs::<T>();
    let lengths = case.kv_len.clone().unwrap_or_default();
    for tensor in [&mut inputs.k, &mut inputs.v] {
        let mut numbers = tensor.to_f64().unwrap();
        let heads = numbers.chunks_mut(case.seqlen_kv * case.head_dim);
        for (head, keys) in heads.enumerate() {
            keys[lengths[head / case.heads_kv] * case.head_dim..].fill(f64::NAN);
        }
        *tensor = host::<T>(&numbers, &case.shape().kv());
    }
    inputs
}

/// 88 queries of 14 heads on 448 keys of 2, causal, with scores near -100.
#[test]
fn scores_far_below_zero() {
    let case = Case::new(88, 448, 64).heads(14, 2).causal();
    let mut inputs = case.inputs::<F16>();
    let one_sign = |tensor: &HostTensor, factor: f64, shape: [usize; 4]| {
        let numbers: Vec<f64> = tensor.to_f64().unwrap().into_iter().map(|x| x.abs() * factor).collect();
        host::<F16>(&numbers, &shape)
    };
    inputs.q = one_sign(&inputs.q, 1.0, case.shape().q());
    inputs.k = one_sign(&inputs.k, -20.0, case.shape().kv());
    case.check_inputs::<F16>(&inputs);
}

/// Causal with more queries than keys: the first rows see nothing.
#[test]
fn more_queries_than_keys() {
    for (seqlen_q, seqlen_kv) in [(5, 2), (130, 1), (113, 20), (200, 136), (64, 63), (129, 65)] {
        let case = Case::new(seqlen_q, seqlen_kv, 32).heads(2, 1).causal();
        case.check::<F16>();
        let got = case.forward::<BF16>(&Device::emulator(Target::SM_80).unwrap(), &case.inputs::<BF16>());
        let (blind, rest) = got.lse[..seqlen_q].split_at(seqlen_q - seqlen_kv);
        assert!(blind.iter().all(|lse| *lse == f64::NEG_INFINITY), "{case:?}");
        assert!(rest.iter().all(|lse| lse.is_finite()), "{case:?}");
        assert!(got.o[..blind.len() * 32].iter().all(|o| *o == 0.0), "{case:?}");
    }
    Case::new(40, 7, 48).causal().check_with_oracle::<BF16>();
}

#[test]
fn each_sequence_has_its_own_length() {
    for causal in [false, true] {
        for lengths in [[0, 90, 64], [1, 0, 63], [65, 89, 0], [128, 127, 1]] {
            let seqlen_kv = lengths.iter().copied().max().unwrap().max(90);
            let case = Case { causal, ..Case::new(70, seqlen_kv, 40) }.heads(2, 1).kv_len(&lengths);
            case.check_inputs::<F16>(&poisoned::<F16>(&case));
        }
        let case = Case { causal, ..Case::new(20, 70, 72) }.heads(3, 1).kv_len(&[70, 0, 64, 3]);
        let inputs = poisoned::<BF16>(&case);
        case.check_inputs::<BF16>(&inputs);
        case.check_oracle::<BF16>(&inputs);
    }
}

#[test]
fn a_call_without_keys() {
    for causal in [false, true] {
        let case = Case { causal, ..Case::new(65, 0, 64) }.heads(2, 2).kv_len(&[0, 0]);
        let got = case.forward::<F16>(&Device::emulator(Target::SM_80).unwrap(), &case.inputs::<F16>());
        assert!(got.o.iter().all(|o| *o == 0.0) && got.o.len() == 2 * 2 * 65 * 64);
        assert!(got.lse.iter().all(|lse| *lse == f64::NEG_INFINITY));
        case.check_with_oracle::<BF16>();
    }
}

#[test]
fn a_call_without_queries_sequences_or_heads() {
    for case in [Case::new(0, 9, 16), Case::new(9, 9, 16).kv_len(&[]), Case::new(9, 9, 16).heads(0, 2)] {
        case.check_with_oracle::<F16>();
    }
    // Nothing is asked of no key heads.
    Case::new(9, 9, 16).heads(0, 0).check_with_oracle::<F16>();
}

#[test]
fn lengths_outside_the_keys_end_with_them() {
    let case = Case::new(5, 70, 16).kv_len(&[70, 70]);
    let inputs = case.inputs::<F16>();
    for target in TARGETS {
        let device = Device::emulator(target).unwrap();
        let tensors = inputs.on::<F16>(&device);
        let run = |lengths: [i32; 2], oracle: bool| {
            let lengths = device.tensor_from_slice(&lengths, [2]).unwrap();
            let mut outputs = Outputs::new(&device, &case.shape());
            let forward = tensors.forward(&case, &lengths);
            if oracle {
                forward.fmha_ref::<F16, F16, _>(&mut outputs.o, &mut outputs.lse).unwrap();
            } else {
                forward.fmha_fwd::<F16>(&mut outputs.o, &mut outputs.lse).unwrap();
            }
            outputs.read()
        };
        for oracle in [false, true] {
            assert!(run([71, i32::MAX], oracle).same(&run([70, 70], oracle)));
            assert!(run([-1, i32::MIN], oracle).same(&run([0, 0], oracle)));
        }
    }
}

/// A length that ends within a tile, with a head dimension that takes several rounds of copies.
#[test]
fn the_last_tile_is_shorter() {
    for seqlen_kv in [8, 127, 129, 250] {
        Case::new(8, seqlen_kv, 128).heads(4, 2).check::<F16>();
        Case::new(77, seqlen_kv, 128).causal().check::<BF16>();
    }
}

#[test]
fn one_query_one_key() {
    for head_dim in [8, 64, 256] {
        let case = Case::new(1, 1, head_dim);
        let inputs = case.inputs::<F16>();
        case.check_inputs::<F16>(&inputs);
        case.check_oracle::<F16>(&inputs);
        // The only key has all the weight.
        let got = case.forward::<F16>(&Device::emulator(Target::SM_80).unwrap(), &inputs);
        assert_eq!(got.o, inputs.v.to_f64().unwrap());
    }
}
