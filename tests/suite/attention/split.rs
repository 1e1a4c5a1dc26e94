//! `fmha_fwd` of sm_90a with its keys in parts: few rows and many keys, heads that share keys, chunks of prompts.

use super::layouts::Layout;
use super::visibility::poisoned;
use super::*;
use lacewing::runtime::registry::Settings;

const HEAD_DIMS: [usize; 5] = [64, 96, 128, 192, 256];

fn device() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

/// Runs with so many parts.
fn parts<T: Dtype>(device: &Device, case: &Case, inputs: &Inputs, parts: usize) -> Got {
    let mut outputs = Outputs::<T::Host>::new(device, &case.shape());
    let tensors = inputs.on::<T>(device);
    let lengths = case.lengths_on(device);
    tensors.forward(case, &lengths).fmha_fwd_split::<T>(parts, &mut outputs.o, &mut outputs.lse).unwrap();
    outputs.read()
}

fn check<T: Dtype>(case: &Case, inputs: &Inputs, counts: &[usize]) {
    let wanted = case.wanted(inputs, T::PRECISION);
    for count in counts {
        let what = format!("{count} parts, {} {case:?}", T::TYPE.name());
        wanted.compare(&parts::<T>(&device(), case, inputs, *count), &what);
        if let Some(device) = gpu().filter(|device| device.target() == Target::SM_90A) {
            wanted.compare(&parts::<T>(&device, case, inputs, *count), &format!("{device}: {what}"));
        }
    }
}

/// One consumer warpgroup: up to 64 rows of all heads that share keys.
#[test]
fn few_rows_of_every_head_dimension() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(5, 700, head_dim) }.heads(6, 2);
            check::<BF16>(&case, &case.inputs::<BF16>(), &[1, 3]);
        }
        let case = Case::new(1, 403, head_dim).heads(8, 1);
        check::<F16>(&case, &case.inputs::<F16>(), &[2, 8]);
    }
}

/// Two consumer warpgroups, and more row blocks than one.
#[test]
fn chunks_of_prompts() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(70, 500, head_dim) }.heads(4, 2);
            check::<BF16>(&case, &case.inputs::<BF16>(), &[3]);
        }
    }
    let case = Case::new(140, 390, 64).heads(3, 1).causal();
    check::<F16>(&case, &case.inputs::<F16>(), &[1, 2, 5]);
}

/// More parts than tiles, one key, one row, rows that see nothing, and rows that see one part alone.
#[test]
fn parts_without_keys() {
    for (seqlen_q, seqlen_kv) in [(1, 1), (2, 129), (40, 3), (100, 33), (64, 300), (129, 128)] {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(seqlen_q, seqlen_kv, 128) }.heads(2, 2);
            check::<F16>(&case, &case.inputs::<F16>(), &[4, 7]);
        }
    }
}

/// NaN in the keys and values of padding, from lengths at, before and behind the edges of parts and tiles on.
#[test]
fn padding_may_hold_anything() {
    for causal in [false, true] {
        for (seqlen_q, head_dim) in [(3, 128), (3, 64), (80, 128)] {
            let case = Case { causal, ..Case::new(seqlen_q, 520, head_dim) }.heads(2, 1);
            let case = case.kv_len(&[0, 1, 64, 127, 130, 259, 511, 520]);
            check::<BF16>(&case, &poisoned::<BF16>(&case), &[4]);
        }
    }
}

/// Each part has a reference of its own: one that outgrows the others, in the first part, the last one or in each.
#[test]
fn parts_of_different_size() {
    for amplitude in [0.1, 4.0] {
        let case = Case { amplitude, ..Case::new(4, 640, 128) }.heads(2, 1);
        let scaled = |size: &dyn Fn(usize) -> f64| {
            let inputs = case.inputs::<BF16>();
            let mut k = inputs.k.to_f64().unwrap();
            for (key, row) in k.chunks_mut(case.head_dim).enumerate() {
                row.iter_mut().for_each(|x| *x *= size(key));
            }
            Inputs { k: host::<BF16>(&k, &case.shape().kv()), ..inputs }
        };
        check::<BF16>(&case, &scaled(&|key| 1.0 + key as f64 / 200.0), &[5]);
        check::<BF16>(&case, &scaled(&|key| if key < 9 { 1e4 } else { 1.0 }), &[5]);
        check::<BF16>(&case, &scaled(&|key| if key > 630 { 30.0 } else { 1e-3 }), &[5]);
    }
}

/// A key that is no number makes the rows that see it no numbers, and no others.
#[test]
fn a_key_that_is_no_number() {
    let case = Case::new(40, 300, 64).causal();
    let mut inputs = case.inputs::<BF16>();
    let mut k = inputs.k.to_f64().unwrap();
    k[280 * 64..281 * 64].fill(f64::NAN);
    inputs.k = host::<BF16>(&k, &case.shape().kv());
    let got = parts::<BF16>(&device(), &case, &inputs, 3);
    for (row, o) in got.o.chunks(64).enumerate() {
        assert!(o.iter().all(|o| o.is_nan() == (row >= 20)), "row {row}: {o:?}");
    }
}

/// Views of one packed tensor, and rows farther apart than they are long, give what contiguous tensors give.
#[test]
fn views() {
    let case = Case { batch: 2, ..Case::new(3, 200, 64) }.heads(4, 2).causal();
    let inputs = case.inputs::<F16>();
    let contiguous = parts::<F16>(&device(), &case, &inputs, 2);
    let (q, kv) = (case.shape().q(), case.shape().kv());
    let layouts = [
        [Layout::sequence_major(q), Layout::packed(kv, 0, 2), Layout::packed(kv, 1, 2), Layout::sequence_major(q)],
        [
            Layout::pitched(q, 8, 72),
            Layout::pitched(kv, 16, 80),
            Layout::pitched(kv, 8, 88),
            Layout::pitched(q, 24, 96),
        ],
    ];
    for [q, k, v, o] in layouts {
        let device = device();
        let tensors = OnDevice {
            q: q.place::<F16>(&device, &inputs.q),
            k: k.place::<F16>(&device, &inputs.k),
            v: v.place::<F16>(&device, &inputs.v),
        };
        let lengths = case.lengths_on(&device);
        let buffer = device.tensor_uninit::<_, 1>([o.elements]).unwrap();
        let mut outputs = Outputs {
            o: buffer.as_strided(o.offset, case.shape().q(), o.strides).unwrap(),
            lse: device.tensor_uninit(case.shape().lse()).unwrap(),
        };
        tensors.forward(&case, &lengths).fmha_fwd_split::<F16>(2, &mut outputs.o, &mut outputs.lse).unwrap();
        assert!(outputs.read().same(&contiguous), "{o:?}");
    }
}

/// Neither the order of blocks nor that of warps reaches the results.
#[test]
fn reruns_are_equal_bit_for_bit() {
    let case = Case::new(9, 900, 64).heads(4, 2).causal();
    let inputs = case.inputs::<BF16>();
    let run = |seed| parts::<BF16>(&device().with_seed(seed), &case, &inputs, 6);
    assert!(run(1).same(&run(2)));
    if let Some(device) = gpu().filter(|device| device.target() == Target::SM_90A) {
        assert!(parts::<BF16>(&device, &case, &inputs, 6).same(&parts::<BF16>(&device, &case, &inputs, 6)));
    }
}

/// What a launch takes by itself for few rows: the parts that the emulated chip has room for.
#[test]
fn a_launch_cuts_keys_by_itself() {
    let case = Case::new(1, 1100, 128).heads(8, 1);
    let inputs = case.inputs::<BF16>();
    let by_itself = case.forward::<BF16>(&device(), &inputs);
    assert!(by_itself.same(&parts::<BF16>(&device(), &case, &inputs, 0)));
    // One for each of the four multiprocessors.
    assert!(by_itself.same(&parts::<BF16>(&device(), &case, &inputs, 4)));
    assert!(!by_itself.same(&parts::<BF16>(&device(), &case, &inputs, 1)));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let refused = |target, case: &Case, count: usize| {
        let device = Device::emulator(target).unwrap();
        let tensors = case.inputs::<F16>().on::<F16>(&device);
        let lengths = case.lengths_on(&device);
        let mut outputs = Outputs::new(&device, &case.shape());
        refusal(tensors.forward(case, &lengths).fmha_fwd_split::<F16>(count, &mut outputs.o, &mut outputs.lse))
    };
    let case = Case::new(2, 70, 64);
    assert_eq!(refused(Target::SM_90A, &case, 257), "257 parts of the keys: there are at most 256");
    assert_eq!(
        refused(Target::SM_80, &case, 2),
        "keys in parts are for sm_90a, with a head dimension of 64, 96, 128, 192 or 256, a key or more, rows of 16-byte \
         vectors and a positive scale; this is sm_80 with head dimension 64, 70 keys and scale 0.125"
    );
    let text = refused(Target::SM_90A, &Case::new(2, 70, 40), 2);
    assert!(text.ends_with("this is sm_90a with head dimension 40, 70 keys and scale 0.15811388"), "{text}");
}

/// What `lacewing compile` says of settings that ask for no kernel.
#[test]
fn settings_that_name_no_kernel_of_parts_are_refused() {
    let entry = lacewing_kernels::ENTRIES.iter().find(|entry| entry.name == "fmha_fwd").unwrap();
    let refused = |target, set: &[(&str, &str)]| {
        let mut settings = Settings::defaults(entry.parameters);
        set.iter().for_each(|(name, value)| settings.set(name, value).unwrap());
        entry.build_for(&settings, target).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let most = "257 parts of the keys: there are at most 256";
    assert_eq!(refused(Target::SM_90A, &[("parts", "257")]), most);
    assert_eq!(refused(Target::SM_90A, &[("join", "257")]), most);
    let both = "`parts` and `join` are two kernels: set one of them";
    assert_eq!(refused(Target::SM_90A, &[("parts", "2"), ("join", "2")]), both);
    let text = refused(Target::SM_80, &[("parts", "2")]);
    assert!(text.starts_with("`parts` and `join` are for sm_90a"), "{text}");
    let two_ways = "`parts` and `even` are two ways to cut keys: set one of them";
    assert_eq!(refused(Target::SM_90A, &[("parts", "2"), ("even", "true")]), two_ways);
    assert_eq!(refused(Target::SM_90A, &[("parts", "256")]), "");
}
