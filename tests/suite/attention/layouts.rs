//! Views: packed, transposed, reversed, unaligned and broadcast tensors give what contiguous ones give.

use super::*;

/// Where the elements of a `[B, H, S, D]` tensor lie in a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub(super) elements: usize,
    pub(super) offset: usize,
    pub(super) strides: [i64; 4],
}

impl Layout {
    /// `[B, S, H, D]` in memory.
    pub(super) fn sequence_major([batch, heads, length, head_dim]: [usize; 4]) -> Self {
        let row = heads * head_dim;
        Layout {
            elements: batch * length * row,
            offset: 0,
            strides: [(length * row) as i64, head_dim as i64, row as i64, 1],
        }
    }

    /// Part `part` of `[B, S, parts, H, D]` in memory.
    pub(super) fn packed([batch, heads, length, head_dim]: [usize; 4], part: usize, parts: usize) -> Self {
        let row = parts * heads * head_dim;
        Layout {
            elements: batch * length * row,
            offset: part * heads * head_dim,
            strides: [(length * row) as i64, head_dim as i64, row as i64, 1],
        }
    }

    /// `[B, H, D, S]` in memory.
    pub(super) fn columns([batch, heads, length, head_dim]: [usize; 4]) -> Self {
        let head = length * head_dim;
        Layout {
            elements: batch * heads * head,
            offset: 0,
            strides: [(heads * head) as i64, head as i64, 1, length as i64],
        }
    }

    /// Rows `pitch` elements apart, from `offset` on.
    pub(super) fn pitched([batch, heads, length, _]: [usize; 4], offset: usize, pitch: usize) -> Self {
        let head = length * pitch;
        Layout {
            elements: offset + batch * heads * head,
            offset,
            strides: [(heads * head) as i64, head as i64, pitch as i64, 1],
        }
    }

    /// Heads and rows in falling order.
    pub(super) fn reversed([batch, heads, length, head_dim]: [usize; 4]) -> Self {
        let head = length * head_dim;
        Layout {
            elements: batch * heads * head,
            offset: heads * head - head_dim,
            strides: [(heads * head) as i64, -(head as i64), -(head_dim as i64), 1],
        }
    }

    /// A view of a buffer in which all else is NaN.
    pub(super) fn place<T: Dtype>(&self, device: &Device, tensor: &HostTensor) -> DevTensor<T::Host, 4> {
        let poison = host::<T>(&vec![f64::NAN; self.elements], &[self.elements]);
        let buffer = device.tensor_from::<T::Host, 1>(&poison).unwrap();
        let mut view = buffer.as_strided(self.offset, tensor.shape_of().unwrap(), self.strides).unwrap();
        view.copy_from(&tensor.to_vec().unwrap()).unwrap();
        view
    }
}

/// The layouts of Q, K, V and O.
type Layouts = [Layout; 4];

/// Runs both kernels on views and compares them, bit for bit, with contiguous tensors: the order of all sums
/// is the same.
fn check<T: Dtype>(case: &Case, layouts: &Layouts) {
    let inputs = case.inputs::<T>();
    let wanted = case.wanted(&inputs, T::PRECISION);
    for target in TARGETS {
        let device = Device::emulator(target).unwrap();
        let contiguous = case.forward::<T>(&device, &inputs);
        let [q, k, v, o] = layouts;
        let tensors = OnDevice {
            q: q.place::<T>(&device, &inputs.q),
            k: k.place::<T>(&device, &inputs.k),
            v: v.place::<T>(&device, &inputs.v),
        };
        let lengths = case.lengths_on(&device);
        let buffer = device.tensor_uninit::<T::Host, 1>([o.elements]).unwrap();
        let mut outputs = Outputs {
            o: buffer.as_strided(o.offset, case.shape().q(), o.strides).unwrap(),
            lse: device.tensor_uninit(case.shape().lse()).unwrap(),
        };
        tensors.forward(case, &lengths).fmha_fwd::<T>(&mut outputs.o, &mut outputs.lse).unwrap();
        let got = outputs.read();
        wanted.compare(&got, &format!("{target} {case:?} {layouts:?}"));
        assert!(got.same(&contiguous), "{target} {case:?} {layouts:?}");
        // All bits are set where nothing was written: a NaN.
        let nan = HostTensor::new(&buffer.to_vec_unchecked().unwrap(), &[o.elements]).unwrap().to_f64().unwrap();
        let beside = nan.iter().filter(|x| x.is_nan()).count();
        assert_eq!(beside, o.elements - outputs.o.len(), "{target}: something was written beside O");

        let oracle = case.oracle::<T>(&device, &inputs);
        let mut outputs = Outputs::new(&device, &case.shape());
        tensors.forward(case, &lengths).fmha_ref::<T, F32, f32>(&mut outputs.o, &mut outputs.lse).unwrap();
        assert!(outputs.read().same(&oracle), "{target} {case:?} {layouts:?}");
    }
}

fn case(head_dim: usize) -> Case {
    Case { batch: 2, ..Case::new(20, 70, head_dim) }.heads(4, 2).causal()
}

#[test]
fn sequence_major_tensors() {
    for head_dim in [32, 40] {
        let case = case(head_dim);
        let (q, kv) = (Layout::sequence_major(case.shape().q()), Layout::sequence_major(case.shape().kv()));
        check::<F16>(&case, &[q, kv, kv, q]);
    }
}

/// Q, K and V of one packed tensor, as one product with three weights gives it.
#[test]
fn one_packed_tensor() {
    let case = Case { batch: 2, ..Case::new(70, 70, 32) }.heads(3, 3).causal();
    let part = |part| Layout::packed(case.shape().q(), part, 3);
    check::<BF16>(&case, &[part(0), part(1), part(2), Layout::sequence_major(case.shape().q())]);

    let device = Device::emulator(Target::SM_80).unwrap();
    let inputs = case.inputs::<F16>();
    assert!(packed_forward::<F16>(&case, &inputs, &device).same(&case.forward::<F16>(&device, &inputs)));
}

/// Runs `fmha_fwd` on Q, K and V that are views of one buffer.
pub(super) fn packed_forward<T: Dtype>(case: &Case, inputs: &Inputs, device: &Device) -> Got {
    let part = |part| Layout::packed(case.shape().q(), part, 3);
    let packed = device.tensor_zeros::<T::Host, 1>([part(0).elements]).unwrap();
    let view = |index: usize, from: &HostTensor| {
        let mut view = packed.as_strided(part(index).offset, case.shape().q(), part(index).strides).unwrap();
        view.copy_from(&from.to_vec().unwrap()).unwrap();
        view
    };
    let tensors = OnDevice { q: view(0, &inputs.q), k: view(1, &inputs.k), v: view(2, &inputs.v) };
    let mut outputs = Outputs::new(device, &case.shape());
    let lengths = case.lengths_on(device);
    tensors.forward(case, &lengths).fmha_fwd::<T>(&mut outputs.o, &mut outputs.lse).unwrap();
    outputs.read()
}

/// Elements of a row that are no neighbours: the kernels load them one by one.
#[test]
fn values_by_columns() {
    let case = case(24);
    let (q, kv) = (case.shape().q(), case.shape().kv());
    let (plain_q, plain) = (Layout::pitched(q, 0, 24), Layout::pitched(kv, 0, 24));
    check::<F16>(&case, &[plain_q, plain, Layout::columns(kv), plain_q]);
    check::<F16>(&case, &[Layout::columns(q), Layout::columns(kv), Layout::columns(kv), Layout::columns(q)]);
}

/// Rows that start off 16 bytes, with NaN between them.
#[test]
fn rows_that_are_not_aligned() {
    let case = case(24);
    let (q, kv) = (case.shape().q(), case.shape().kv());
    let kv_plain = Layout::pitched(kv, 0, 24);
    for (offset, pitch) in [(1, 24), (0, 25), (3, 31), (4, 28)] {
        check::<F16>(&case, &[Layout::pitched(q, offset, pitch), kv_plain, kv_plain, Layout::pitched(q, 0, 24)]);
        check::<F16>(
            &case,
            &[
                Layout::pitched(q, 0, 24),
                Layout::pitched(kv, offset, pitch),
                Layout::pitched(kv, 0, pitch),
                Layout::pitched(q, offset, pitch),
            ],
        );
    }
    // Aligned, and still with room between the rows.
    check::<F16>(
        &case,
        &[
            Layout::pitched(q, 8, 32),
            Layout::pitched(kv, 16, 40),
            Layout::pitched(kv, 8, 56),
            Layout::pitched(q, 8, 32),
        ],
    );
}

#[test]
fn strides_below_zero() {
    let case = case(40);
    let (q, kv) = (Layout::reversed(case.shape().q()), Layout::reversed(case.shape().kv()));
    check::<BF16>(&case, &[q, kv, kv, q]);
}

/// The stride of a dimension with one element means nothing.
#[test]
fn an_odd_stride_of_the_only_key_head() {
    let case = Case::new(20, 70, 32).heads(4, 1);
    let q = Layout::pitched(case.shape().q(), 0, 32);
    let mut kv = Layout::pitched(case.shape().kv(), 0, 32);
    for stride in [77, -3, 0, i64::MAX, i64::MIN] {
        kv.strides[1] = stride;
        kv.strides[0] = stride;
        check::<F16>(&case, &[q, kv, kv, q]);
    }
}

/// One sequence's keys for all sequences, and one head's for all heads.
#[test]
fn broadcast_keys() {
    let one = Case::new(20, 70, 32).heads(1, 1);
    let device = Device::emulator(Target::GFX942).unwrap();
    let keys = one.inputs::<F16>().on::<F16>(&device);
    let case = Case { batch: 3, ..one }.heads(4, 2);
    let all = OnDevice {
        q: case.inputs::<F16>().on::<F16>(&device).q,
        k: keys.k.broadcast(case.shape().kv()).unwrap(),
        v: keys.v.broadcast(case.shape().kv()).unwrap(),
    };
    let lengths = case.lengths_on(&device);
    let mut outputs = Outputs::new(&device, &case.shape());
    all.forward(&case, &lengths).fmha_fwd::<F16>(&mut outputs.o, &mut outputs.lse).unwrap();
    let inputs = Inputs { q: all.q.to_host().unwrap(), k: all.k.to_host().unwrap(), v: all.v.to_host().unwrap() };
    case.wanted(&inputs, Precision::F16).compare(&outputs.read(), "broadcast keys");
}
