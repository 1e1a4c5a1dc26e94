//! Sizes at the limits of grids and addresses, and what is refused.

use lacewing::kernels::fmha::{Geometry, mfma, mma};
use lacewing::runtime::LaunchStats;
use lacewing::runtime::emulator::{ArgValue, Buffer, Launch, Program, Report, ReportKind, run};

use super::*;

/// Few of many sequences have keys, which is most of the work.
fn sequences(batch: usize) -> Case {
    let lengths: Vec<usize> = (1..=batch).map(|i| if i % 64 == 5 || i == batch { 2 } else { 0 }).collect();
    Case::new(1, 2, 8).kv_len(&lengths)
}

#[test]
fn many_sequences() {
    sequences(8300).check::<F16>();
}

/// More sequences than a grid has blocks in y or z, and more heads.
#[test]
fn more_sequences_or_heads_than_the_y_and_z_of_a_grid() {
    sequences(65536).check::<F16>();
    let case = Case::new(1, 1, 8).heads(71280, 1);
    let inputs = case.inputs::<F16>();
    let got = case.forward::<F16>(&Device::emulator(Target::SM_80).unwrap(), &inputs);
    case.wanted(&inputs, Precision::F16).compare(&got, "71280 heads");
    let case = Case::new(1, 0, 8).heads(71280, 1);
    case.check::<F16>();
}

#[test]
fn a_grid_beyond_the_device_is_refused() {
    let device = Device::emulator(Target::SM_80).unwrap();
    // 2^32 heads of one query, all in the same place.
    let shape = [1 << 16, 1 << 16, 1, 8];
    let one = device.tensor_zeros::<<F16 as Scalar>::Host, 4>([1, 1, 1, 8]).unwrap();
    let everywhere = one.broadcast(shape).unwrap();
    let lengths = device.tensor_zeros::<i32, 1>([1]).unwrap().broadcast([1 << 16]).unwrap();
    let mut o = one.broadcast(shape).unwrap();
    let mut lse = device.tensor_zeros::<f32, 3>([1, 1, 1]).unwrap().broadcast([1 << 16, 1 << 16, 1]).unwrap();
    let forward =
        Forward { q: &everywhere, k: &everywhere, v: &everywhere, kv_len: &lengths, causal: false, scale: 1.0 };
    let text = refusal(forward.fmha_fwd::<F16>(&mut o, &mut lse));
    assert!(text.contains("the grid has 4294967296 blocks in x, and at most 2147483647 are possible"), "{text}");
    let text = refusal(forward.fmha_ref::<F16, F16, _>(&mut o, &mut lse));
    assert!(text.contains("the grid has 4294967296 blocks in x"), "{text}");
}

/// Sizes whose product passes 64 bits are an error like any other.
#[test]
fn sizes_that_no_machine_has_are_refused() {
    let device = Device::emulator(Target::GFX942).unwrap();
    let most = i32::MAX as usize;
    let shape = [most, most, most, 8];
    let one = device.tensor_zeros::<<F16 as Scalar>::Host, 4>([1, 1, 1, 8]).unwrap();
    let everywhere = one.broadcast(shape).unwrap();
    let lengths = device.tensor_zeros::<i32, 1>([1]).unwrap().broadcast([most]).unwrap();
    let mut lse = device.tensor_zeros::<f32, 3>([1, 1, 1]).unwrap().broadcast([most; 3]).unwrap();
    let mut o = one.broadcast(shape).unwrap();
    let forward =
        Forward { q: &everywhere, k: &everywhere, v: &everywhere, kv_len: &lengths, causal: true, scale: 1.0 };
    refusal(forward.fmha_fwd::<F16>(&mut o, &mut lse));
    refusal(forward.fmha_ref::<F16, F16, _>(&mut o, &mut lse));
}

/// Products of an index and a stride are 64 bits wide: an element 2^32 + 64 bytes on is missed there, and
/// nowhere else. (A buffer of that size would do as well, and take 4 GiB.)
#[test]
fn strides_that_pass_32_bits() {
    const STRIDE: i64 = (1 << 31) + 32;
    for target in TARGETS {
        for (tensor, name) in ["q", "k", "v", "o"].into_iter().enumerate() {
            for dimension in 0..3 {
                let report = run_with_stride(target, tensor, dimension, STRIDE).unwrap_err();
                let address = report.address.clone().unwrap();
                assert_eq!((report.kind, address.allocation.as_str()), (ReportKind::OutOfBounds, name), "{report}");
                // Two bytes an element; the other dimensions add less than the whole tensor.
                let beyond = address.offset - 2 * STRIDE;
                assert!((0..128).contains(&beyond), "{target} {name}, dimension {dimension}: {address:?}");
            }
        }
    }
}

/// Runs the kernel on four small tensors, of which one claims another stride in one dimension.
fn run_with_stride(target: Target, changed: usize, dimension: usize, stride: i64) -> Result<LaunchStats, Box<Report>> {
    const SHAPE: [i32; 4] = [2, 2, 2, 8];
    let geometry = Geometry::new(8, false, true).unwrap();
    let traced = if target.is_nvidia() {
        let tiling = mma::Tiling::small(&geometry);
        mma::fmha_fwd_mma::<F16>::new(geometry, tiling).traced(target)
    } else {
        mfma::fmha_fwd_mfma::<F16>::new(geometry).traced(target)
    };
    let program = Program::decode(&traced.unwrap()).unwrap();
    let mut arguments = Vec::new();
    let mut tensor = |buffer: Buffer, shape: &[i32], strides: &[i64]| {
        arguments.push(ArgValue::from(&buffer));
        arguments.extend(shape.iter().map(|extent| ArgValue::from(*extent)));
        arguments.extend(strides.iter().map(|stride| ArgValue::from(*stride)));
    };
    let strides_of = |index: usize| {
        let mut strides = [32, 16, 8, 1];
        if index == changed {
            strides[dimension] = stride;
        }
        strides
    };
    (0..3).for_each(|index| tensor(Buffer::zeroed(128), &SHAPE, &strides_of(index)));
    tensor(Buffer::from_bytes(&[2, 0, 0, 0, 2, 0, 0, 0]), &[2], &[1]);
    tensor(Buffer::zeroed(128), &SHAPE, &strides_of(3));
    tensor(Buffer::zeroed(32), &[2, 2, 2], &[4, 2, 1]);
    arguments.push(ArgValue::from(1f32));
    run(&program, &Launch::new([4, 1, 1], arguments))
}

#[test]
fn head_dimensions_are_refused_by_name() {
    for head_dim in [4, 46, 100, 257, 264] {
        let case = Case::new(3, 4, head_dim);
        for target in TARGETS {
            let device = Device::emulator(target).unwrap();
            let tensors = case.inputs::<F16>().on::<F16>(&device);
            let lengths = case.lengths_on(&device);
            let mut outputs = Outputs::new(&device, &case.shape());
            let forward = tensors.forward(&case, &lengths);
            let wanted = format!("`head_dim` is {head_dim}: it must be a multiple of 8 from 8 to 256");
            assert_eq!(refusal(forward.fmha_fwd::<F16>(&mut outputs.o, &mut outputs.lse)), wanted);
            assert_eq!(refusal(forward.fmha_ref::<F16, F16, _>(&mut outputs.o, &mut outputs.lse)), wanted);
        }
    }
}

#[test]
fn tensors_that_do_not_go_together_are_refused() {
    let device = Device::emulator(Target::SM_80).unwrap();
    let case = Case { batch: 2, ..Case::new(3, 4, 16) }.heads(4, 2);
    let good = case.inputs::<F16>().on::<F16>(&device);
    let lengths = case.lengths_on(&device);
    let try_with = |tensors: &OnDevice<_>, lengths: &DevTensor<i32, 1>, outputs: &mut Outputs<_>| {
        refusal(tensors.forward(&case, lengths).fmha_fwd::<F16>(&mut outputs.o, &mut outputs.lse))
    };
    let mut outputs = Outputs::new(&device, &case.shape());

    let mut bad = case.inputs::<F16>().on::<F16>(&device);
    bad.k = good.k.slice(1, 0..1).unwrap();
    assert!(try_with(&bad, &lengths, &mut outputs).contains("must be the same"));
    bad.v = good.v.slice(1, 0..1).unwrap();
    bad.q = good.q.slice(0, 0..1).unwrap();
    assert!(try_with(&bad, &lengths, &mut outputs).contains("1 sequences and `k` 2"));
    let three = case.clone().heads(3, 2).inputs::<F16>().on::<F16>(&device);
    assert!(try_with(&three, &lengths, &mut outputs).contains("3 query heads cannot share 2 key heads"));

    let short = device.tensor_from_slice(&[4], [1]).unwrap();
    assert!(try_with(&good, &short, &mut outputs).contains("`kv_len` has shape [1] for 2 sequences"));
    let mut small = Outputs::new(&device, &Case { seqlen_q: 2, ..case.clone() }.shape());
    assert!(try_with(&good, &lengths, &mut small).contains("are needed"));

    let elsewhere = Device::emulator(Target::SM_80).unwrap();
    let mut foreign = Outputs::new(&elsewhere, &case.shape());
    assert!(try_with(&good, &lengths, &mut foreign).contains("tensor `o` lies on another device"));
    // O written over Q.
    let mut shared = Outputs { o: good.q.reshape(good.q.shape()).unwrap(), lse: outputs.lse };
    assert!(try_with(&good, &lengths, &mut shared).contains("shares memory"));
}
