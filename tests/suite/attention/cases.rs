//! Inputs on which released attention kernels were wrong, by the public call on sm_90a: what its kernel of warpgroup
//! products takes, and what goes to the one of `mma.sync`.
//!
//! Other inputs of the kind have tests beside this one: scores far below 0, NaN in padding and rows that see nothing in
//! `visibility` and `hopper`, constants up to the largest of f16 in `numbers`, all shapes of the well-known suites in
//! `shapes`, refused head dimensions, grids and strides in `limits`.

use super::layouts::{Layout, packed_forward};
use super::*;

const HEAD_DIMS: [usize; 5] = [64, 96, 128, 192, 256];

fn hopper() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

fn check<T: Dtype>(case: &Case) {
    let inputs = case.inputs::<T>();
    let got = case.forward::<T>(&hopper(), &inputs);
    case.wanted(&inputs, T::PRECISION).compare(&got, &format!("{} {case:?}", T::TYPE.name()));
}

/// Head dimensions that have no tiles: whole vectors of 16 bytes, and products that reach beyond a row.
#[test]
fn head_dimensions_without_tiles() {
    for (index, head_dim) in [8, 16, 32, 40, 48, 72, 80, 112, 136, 160, 200, 224, 248].into_iter().enumerate() {
        let case = Case { causal: index % 2 == 0, ..Case::new(70, 133, head_dim) }.heads(4, 2).kv_len(&[133, 70]);
        if index % 3 == 0 { check::<BF16>(&case) } else { check::<F16>(&case) }
    }
}

/// No keys in some sequences, part of a tile in others, more rows than keys, and a mask over it all.
#[test]
fn lengths_of_all_kinds_at_once() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(150, 131, head_dim) }.heads(2, 1).kv_len(&[0, 1, 79, 128, 131]);
            check::<F16>(&case);
        }
    }
}

/// No keys for anyone.
#[test]
fn no_keys_at_all() {
    for head_dim in HEAD_DIMS {
        for causal in [false, true] {
            let case = Case { causal, ..Case::new(67, 0, head_dim) }.heads(2, 2).kv_len(&[0, 0]);
            let got = case.forward::<BF16>(&hopper(), &case.inputs::<BF16>());
            assert_eq!((got.o.len(), got.lse.len()), (2 * 2 * 67 * head_dim, 2 * 2 * 67));
            assert!(got.o.iter().all(|o| *o == 0.0) && got.lse.iter().all(|lse| *lse == f64::NEG_INFINITY));
        }
    }
}

/// Where Q, K, V and O lie, and whether tensor maps describe the first three.
#[derive(Clone, Copy, Debug)]
struct Views {
    q: Layout,
    k: Layout,
    v: Layout,
    o: Layout,
    described: bool,
}

/// Views give what contiguous tensors give: bit for bit where the same kernel runs.
fn check_views<T: Dtype>(case: &Case, views: &Views) {
    let (device, inputs) = (hopper(), case.inputs::<T>());
    let lengths = case.lengths_on(&device);
    let tensors = OnDevice {
        q: views.q.place::<T>(&device, &inputs.q),
        k: views.k.place::<T>(&device, &inputs.k),
        v: views.v.place::<T>(&device, &inputs.v),
    };
    let buffer = device.tensor_uninit::<T::Host, 1>([views.o.elements]).unwrap();
    let o = buffer.as_strided(views.o.offset, case.shape().q(), views.o.strides).unwrap();
    let mut outputs = Outputs { o, lse: device.tensor_uninit(case.shape().lse()).unwrap() };
    tensors.forward(case, &lengths).fmha_fwd::<T>(&mut outputs.o, &mut outputs.lse).unwrap();
    let got = outputs.read();
    case.wanted(&inputs, T::PRECISION).compare(&got, &format!("{case:?} {views:?}"));
    assert_eq!(got.same(&case.forward::<T>(&device, &inputs)), views.described, "{case:?} {views:?}");
    let written = HostTensor::new(&buffer.to_vec_unchecked().unwrap(), &[views.o.elements]).unwrap();
    let beside = written.to_f64().unwrap().iter().filter(|x| x.is_nan()).count();
    assert_eq!(beside, views.o.elements - outputs.o.len(), "{case:?} {views:?}: something was written beside O");
}

/// `[B, S, H, D]`, the parts of one packed tensor, rows with gaps between them.
#[test]
fn views_that_tensor_maps_describe() {
    for (head_dim, causal) in [(64, true), (128, false), (96, true), (256, false)] {
        let case = Case { causal, batch: 2, ..Case::new(90, 90, head_dim) }.heads(3, 3);
        let shape = case.shape().q();
        let (rows, part) = (Layout::sequence_major(shape), |part| Layout::packed(shape, part, 3));
        let views = Views { q: rows, k: rows, v: rows, o: rows, described: true };
        check_views::<F16>(&case, &views);
        check_views::<BF16>(&case, &Views { q: part(0), k: part(1), v: part(2), ..views });
        let gaps = |offset, more| Layout::pitched(shape, offset, head_dim + more);
        check_views::<BF16>(&case, &Views { q: gaps(8, 8), k: gaps(16, 24), v: gaps(0, 64), o: gaps(8, 16), ..views });
    }
}

/// Q, K and V of one buffer, which the launch must not take for an overlap with O.
#[test]
fn one_packed_buffer() {
    let case = Case { batch: 2, ..Case::new(70, 70, 128) }.heads(2, 2).causal();
    let (device, inputs) = (hopper(), case.inputs::<BF16>());
    assert!(packed_forward::<BF16>(&case, &inputs, &device).same(&case.forward::<BF16>(&device, &inputs)));
}

/// Elements of a row that are no neighbours, rows that start between vectors, heads and rows in falling order.
#[test]
fn views_that_no_tensor_map_describes() {
    let case = Case { batch: 2, ..Case::new(40, 90, 64) }.heads(4, 2).causal();
    let (q, kv) = (case.shape().q(), case.shape().kv());
    let (plain_q, plain) = (Layout::pitched(q, 0, 64), Layout::pitched(kv, 0, 64));
    let views = Views { q: plain_q, k: plain, v: plain, o: plain_q, described: false };
    check_views::<F16>(&case, &Views { v: Layout::columns(kv), ..views });
    check_views::<F16>(&case, &Views { q: Layout::columns(q), o: Layout::columns(q), ..views });
    check_views::<F16>(&case, &Views { k: Layout::pitched(kv, 0, 68), ..views });
    check_views::<F16>(&case, &Views { q: Layout::pitched(q, 3, 72), ..views });
    check_views::<F16>(&case, &Views { o: Layout::pitched(q, 1, 64), ..views });
    check_views::<BF16>(&case, &Views { k: Layout::reversed(kv), v: Layout::reversed(kv), ..views });
    check_views::<BF16>(&case, &Views { q: Layout::reversed(q), ..views });
}

/// The stride of a dimension with one element means nothing, whatever it is.
#[test]
fn odd_strides_of_single_sequences_and_heads() {
    let case = Case::new(70, 100, 128).heads(4, 1);
    let plain = |shape: [usize; 4]| Layout::pitched(shape, 0, 128);
    let (q, kv) = (plain(case.shape().q()), plain(case.shape().kv()));
    for stride in [77, -3, 0, 1, i64::MAX, i64::MIN] {
        let odd = |mut layout: Layout, dimensions: &[usize]| {
            dimensions.iter().for_each(|dimension| layout.strides[*dimension] = stride);
            layout
        };
        let (q, kv) = (odd(q, &[0]), odd(kv, &[0, 1]));
        check_views::<F16>(&case, &Views { q, k: kv, v: kv, o: q, described: true });
    }
    // One row of queries, one key.
    let case = Case { batch: 2, ..Case::new(1, 1, 64) }.heads(2, 2);
    let mut one = Layout::pitched(case.shape().q(), 0, 64);
    one.strides[2] = -5;
    check_views::<BF16>(&case, &Views { q: one, k: one, v: one, o: one, described: true });
}

/// One sequence's keys for all, and one head's for all: strides of 0.
#[test]
fn broadcast_keys() {
    let one = Case::new(70, 100, 64);
    let (device, keys) = (hopper(), one.inputs::<F16>());
    let case = Case { batch: 3, ..one }.heads(4, 2).causal();
    let own = keys.on::<F16>(&device);
    let all = OnDevice {
        q: case.inputs::<F16>().on::<F16>(&device).q,
        k: own.k.broadcast(case.shape().kv()).unwrap(),
        v: own.v.broadcast(case.shape().kv()).unwrap(),
    };
    let lengths = case.lengths_on(&device);
    let mut outputs = Outputs::new(&device, &case.shape());
    all.forward(&case, &lengths).fmha_fwd::<F16>(&mut outputs.o, &mut outputs.lse).unwrap();
    let inputs = Inputs { q: all.q.to_host().unwrap(), k: all.k.to_host().unwrap(), v: all.v.to_host().unwrap() };
    case.wanted(&inputs, Precision::F16).compare(&outputs.read(), "broadcast keys");
}
