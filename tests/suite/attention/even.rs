//! `fmha_fwd` of sm_90a with the keys of all sequences in parts of equal size.

use super::visibility::poisoned;
use super::*;

fn device() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

fn even<T: Dtype>(device: &Device, case: &Case, inputs: &Inputs) -> Got {
    let mut outputs = Outputs::<T::Host>::new(device, &case.shape());
    let tensors = inputs.on::<T>(device);
    let lengths = case.lengths_on(device);
    tensors.forward(case, &lengths).fmha_fwd_even::<T>(&mut outputs.o, &mut outputs.lse).unwrap();
    outputs.read()
}

fn check<T: Dtype>(case: &Case, inputs: &Inputs) {
    let wanted = case.wanted(inputs, T::PRECISION);
    let what = format!("{} {case:?}", T::TYPE.name());
    wanted.compare(&even::<T>(&device(), case, inputs), &what);
    if let Some(device) = gpu().filter(|device| device.target() == Target::SM_90A) {
        wanted.compare(&even::<T>(&device, case, inputs), &format!("{device}: {what}"));
    }
}

/// Blocks that have a part of a long sequence, several short ones, and both.
#[test]
fn lengths_far_apart() {
    for head_dim in [64, 96, 128, 192, 256] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(3, 900, head_dim) }.heads(4, 2).kv_len(&[900, 5, 64, 1, 400]);
            check::<BF16>(&case, &case.inputs::<BF16>());
        }
    }
    let case = Case::new(1, 1500, 64).heads(8, 1).kv_len(&[3, 1500]);
    check::<F16>(&case, &case.inputs::<F16>());
}

/// Sequences without keys, at either end of the line and in its middle, and no sequence with any.
#[test]
fn lengths_of_nothing() {
    let lengths: [&[usize]; 5] = [&[0, 300], &[300, 0], &[0, 0, 130, 0, 0, 129, 0], &[0, 0, 0], &[1, 0, 1]];
    for kv_len in lengths {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(2, 300, 128) }.heads(2, 2).kv_len(kv_len);
            check::<BF16>(&case, &case.inputs::<BF16>());
        }
    }
}

/// Two consumer warpgroups and several row blocks of a key head; rows whose part of the keys none of them sees.
#[test]
fn chunks_of_prompts() {
    for head_dim in [64, 128, 256] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(150, 500, head_dim) }.heads(2, 1).kv_len(&[500, 40, 470]);
            check::<F16>(&case, &case.inputs::<F16>());
        }
    }
}

/// More sequences than a warp has lanes.
#[test]
fn many_sequences() {
    let kv_len: Vec<usize> = (0..70).map(|sequence| [0, 3, 150, 64, 200][sequence % 5] + sequence % 3).collect();
    let case = Case::new(1, 202, 64).heads(2, 1).kv_len(&kv_len);
    check::<BF16>(&case, &case.inputs::<BF16>());
}

/// NaN in the keys and values of padding, from lengths at, before and behind the edges of tiles on.
#[test]
fn padding_may_hold_anything() {
    for causal in [false, true] {
        for (seqlen_q, head_dim) in [(3, 128), (3, 64), (80, 128)] {
            let case = Case { causal, ..Case::new(seqlen_q, 520, head_dim) }.heads(2, 1);
            let case = case.kv_len(&[0, 1, 64, 127, 130, 259, 511, 520]);
            check::<BF16>(&case, &poisoned::<BF16>(&case));
        }
    }
}

/// Neither the order of blocks nor that of warps reaches the results.
#[test]
fn reruns_are_equal_bit_for_bit() {
    let case = Case::new(70, 700, 64).heads(2, 1).kv_len(&[700, 30, 500]).causal();
    let inputs = case.inputs::<BF16>();
    let run = |seed| even::<BF16>(&device().with_seed(seed), &case, &inputs);
    assert!(run(1).same(&run(2)));
}

/// A launch takes even parts by itself where each sequence has a length of its own.
#[test]
fn a_launch_takes_even_parts_by_itself() {
    let case = Case::new(1, 600, 128).heads(4, 1).kv_len(&[600, 20]);
    let inputs = case.inputs::<BF16>();
    assert!(case.forward::<BF16>(&device(), &inputs).same(&even::<BF16>(&device(), &case, &inputs)));
    // One length for all sequences: two parts of each, as there are four multiprocessors.
    let (alike, device) = (Case { batch: 2, ..Case::new(1, 600, 128) }.heads(4, 1), device());
    let inputs = alike.inputs::<BF16>();
    let tensors = inputs.on::<BF16>(&device);
    let lengths = device.tensor_from_slice(&[600], [1]).unwrap().broadcast([2]).unwrap();
    let (mut by_itself, mut in_parts) = (Outputs::new(&device, &alike.shape()), Outputs::new(&device, &alike.shape()));
    let forward = tensors.forward(&alike, &lengths);
    forward.fmha_fwd::<BF16>(&mut by_itself.o, &mut by_itself.lse).unwrap();
    forward.fmha_fwd_split::<BF16>(2, &mut in_parts.o, &mut in_parts.lse).unwrap();
    assert!(by_itself.read().same(&in_parts.read()));
}

#[test]
fn what_cannot_be_cut_evenly_is_refused() {
    let refused = |target, case: &Case| {
        let device = Device::emulator(target).unwrap();
        let tensors = case.inputs::<F16>().on::<F16>(&device);
        let lengths = case.lengths_on(&device);
        let mut outputs = Outputs::new(&device, &case.shape());
        refusal(tensors.forward(case, &lengths).fmha_fwd_even::<F16>(&mut outputs.o, &mut outputs.lse))
    };
    let case = Case::new(2, 70, 64);
    assert_eq!(
        refused(Target::SM_80, &Case { batch: 2, ..case }),
        "even parts of the keys are for sm_90a and more than one sequence, with a head dimension of 64, 96, 128, 192 or 256, a key \
         or more, rows of 16-byte vectors and a positive scale; this is sm_80 with batch 2, head dimension 64, 70 keys \
         and scale 0.125"
    );
    let text = refused(Target::SM_90A, &Case::new(2, 70, 64));
    assert!(text.contains("this is sm_90a with batch 1"), "{text}");
}
