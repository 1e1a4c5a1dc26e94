//! Attention on the emulator: conventions, tolerance and hard inputs.
//!
//! O and LSE are compared, element by element, with attention in f64 over the same rounded inputs. O may be
//! off by twice the error of a plain implementation in the kernel's precision plus 1e-5, LSE by 2e-4 times
//! `max(1, |LSE|)`; NaN never passes. All outputs start as memory that nothing wrote, so that an element that
//! a kernel forgets is an error of its own.
//!
//! There are no tests of windows, variable lengths in one packed tensor, pages, splits, softcap or sinks: the
//! kernels have no such parameters.

mod cases;
mod data;
mod even;
mod graphs;
mod hopper;
mod layouts;
mod limits;
mod numbers;
mod seeds;
mod shapes;
mod split;
mod visibility;

use lacewing::kernels::fmha::{Forward, TilingChoice};
use lacewing::kernels::reference::{
    self, Attention, AttentionShape, Output, Precision, attention_tolerance, compare_lse, compare_o,
};
use lacewing::prelude::*;
use lacewing::runtime::host::Random;
use lacewing::runtime::{Element, ElementOf, Error};

use crate::cuda::gpu;

/// Chips with a kernel of their own.
const TARGETS: [Target; 3] = [Target::SM_80, Target::SM_90A, Target::GFX942];

/// A problem with random inputs.
#[derive(Clone, Debug)]
struct Case {
    batch: usize,
    heads_q: usize,
    heads_kv: usize,
    seqlen_q: usize,
    seqlen_kv: usize,
    head_dim: usize,
    causal: bool,
    kv_len: Option<Vec<usize>>,
    /// 1/sqrt(D) when absent.
    scale: Option<f32>,
    /// What the normal inputs are multiplied with.
    amplitude: f64,
}

impl Case {
    /// One sequence, one head, all keys seen.
    fn new(seqlen_q: usize, seqlen_kv: usize, head_dim: usize) -> Self {
        Case {
            batch: 1,
            heads_q: 1,
            heads_kv: 1,
            seqlen_q,
            seqlen_kv,
            head_dim,
            causal: false,
            kv_len: None,
            scale: None,
            amplitude: 1.0,
        }
    }

    fn heads(self, heads_q: usize, heads_kv: usize) -> Self {
        Case { heads_q, heads_kv, ..self }
    }

    fn causal(self) -> Self {
        Case { causal: true, ..self }
    }

    /// As many sequences as lengths.
    fn kv_len(self, lengths: &[usize]) -> Self {
        Case { batch: lengths.len(), kv_len: Some(lengths.to_vec()), ..self }
    }

    fn scale(self, scale: f32) -> Self {
        Case { scale: Some(scale), ..self }
    }

    fn shape(&self) -> AttentionShape {
        AttentionShape {
            batch: self.batch,
            heads_q: self.heads_q,
            heads_kv: self.heads_kv,
            seqlen_q: self.seqlen_q,
            seqlen_kv: self.seqlen_kv,
            head_dim: self.head_dim,
        }
    }

    fn scale_value(&self) -> f32 {
        self.scale.unwrap_or((self.head_dim as f32).sqrt().recip())
    }

    /// Hopper's own version where it has one. Else the sizes decide, so that both tilings meet as many of them: by itself a launch takes large blocks only where
    /// there is more to do than an emulator should.
    fn tiling(&self, target: Target) -> TilingChoice {
        if target == Target::SM_90A {
            return TilingChoice::Auto;
        }
        let even = (self.seqlen_q + self.seqlen_kv + self.head_dim / 8 + self.heads_q).is_multiple_of(2);
        if even { TilingChoice::Large } else { TilingChoice::Small }
    }

    /// Random inputs, which depend on the sizes only.
    fn inputs<T: Dtype>(&self) -> Inputs {
        let sizes = [self.batch, self.heads_q, self.seqlen_q, self.seqlen_kv, self.head_dim];
        let seed = sizes.iter().fold(1u64, |seed, size| seed.wrapping_mul(1_000_003) ^ *size as u64);
        let mut random = Random::new(seed);
        let mut tensor = |shape: [usize; 4]| random.tensor(T::TYPE, &shape, self.amplitude).unwrap();
        let shape = self.shape();
        Inputs { q: tensor(shape.q()), k: tensor(shape.kv()), v: tensor(shape.kv()) }
    }

    /// Runs `fmha_fwd` on random inputs on every chip and compares.
    fn check<T: Dtype>(&self) {
        self.check_inputs::<T>(&self.inputs::<T>());
    }

    fn check_inputs<T: Dtype>(&self, inputs: &Inputs) {
        let wanted = self.wanted(inputs, T::PRECISION);
        // For other head dimensions Hopper runs the kernel of sm_80.
        let hopper = matches!(self.head_dim, 64 | 96 | 128 | 192 | 256);
        for target in TARGETS.into_iter().filter(|target| hopper || *target != Target::SM_90A) {
            let device = Device::emulator(target).unwrap();
            let got = self.forward::<T>(&device, inputs);
            wanted.compare(&got, &format!("fmha_fwd {} on {target} {self:?}", T::TYPE.name()));
        }
        if let Some(device) = gpu() {
            let got = self.forward::<T>(&device, inputs);
            wanted.compare(&got, &format!("fmha_fwd {} on {device} {self:?}", T::TYPE.name()));
        }
    }

    /// As [`check`](Self::check), and `fmha_ref` too.
    fn check_with_oracle<T: Dtype>(&self) {
        let inputs = self.inputs::<T>();
        self.check_inputs::<T>(&inputs);
        self.check_oracle::<T>(&inputs);
    }

    fn check_oracle<T: Dtype>(&self, inputs: &Inputs) {
        let wanted = self.wanted(inputs, Precision::F32);
        for target in TARGETS {
            let device = Device::emulator(target).unwrap();
            let got = self.oracle::<T>(&device, inputs);
            wanted.compare(&got, &format!("fmha_ref {} on {target} {self:?}", T::TYPE.name()));
        }
    }

    fn forward<T: Dtype>(&self, device: &Device, inputs: &Inputs) -> Got {
        self.forward_tiled::<T>(self.tiling(device.target()), device, inputs)
    }

    fn forward_tiled<T: Dtype>(&self, tiling: TilingChoice, device: &Device, inputs: &Inputs) -> Got {
        let mut outputs = Outputs::<T::Host>::new(device, &self.shape());
        let tensors = inputs.on::<T>(device);
        let kv_len = self.lengths_on(device);
        let forward = tensors.forward(self, &kv_len);
        forward.fmha_fwd_tiled::<T>(tiling, &mut outputs.o, &mut outputs.lse).unwrap();
        outputs.read()
    }

    fn oracle<T: Dtype>(&self, device: &Device, inputs: &Inputs) -> Got {
        let mut outputs = Outputs::<f32>::new(device, &self.shape());
        let tensors = inputs.on::<T>(device);
        let kv_len = self.lengths_on(device);
        tensors.forward(self, &kv_len).fmha_ref::<T, F32, f32>(&mut outputs.o, &mut outputs.lse).unwrap();
        outputs.read()
    }

    fn lengths_on(&self, device: &Device) -> DevTensor<i32, 1> {
        let all = vec![self.seqlen_kv; self.batch];
        let lengths: Vec<i32> = self.kv_len.as_ref().unwrap_or(&all).iter().map(|x| *x as i32).collect();
        device.tensor_from_slice(&lengths, [self.batch]).unwrap()
    }

    /// What is right, for a kernel that computes in `precision`.
    fn wanted(&self, inputs: &Inputs, precision: Precision) -> Wanted {
        let numbers =
            |tensor: &HostTensor| -> Vec<f32> { tensor.to_f64().unwrap().into_iter().map(|x| x as f32).collect() };
        let (q, k, v) = (numbers(&inputs.q), numbers(&inputs.k), numbers(&inputs.v));
        let problem = Attention {
            shape: self.shape(),
            q: &q,
            k: &k,
            v: &v,
            kv_len: self.kv_len.as_deref(),
            causal: self.causal,
            scale: f64::from(self.scale_value()),
        };
        let exact = reference::attention(&problem).unwrap();
        let low = reference::attention_low(&problem, precision).unwrap();
        let tolerance = attention_tolerance(&low.o, &exact.o);
        Wanted { exact, tolerance, shape: self.shape() }
    }
}

/// An element type of the kernels.
trait Dtype: MmaElement + Scalar<Host: ElementOf<Self>> {
    const PRECISION: Precision;
}

impl Dtype for F16 {
    const PRECISION: Precision = Precision::F16;
}

impl Dtype for BF16 {
    const PRECISION: Precision = Precision::Bf16;
}

/// Q, K and V, contiguous.
#[derive(Clone)]
struct Inputs {
    q: HostTensor,
    k: HostTensor,
    v: HostTensor,
}

impl Inputs {
    fn on<T: Dtype>(&self, device: &Device) -> OnDevice<T::Host> {
        let tensor = |host: &HostTensor| device.tensor_from(host).unwrap();
        OnDevice { q: tensor(&self.q), k: tensor(&self.k), v: tensor(&self.v) }
    }
}

struct OnDevice<H: Element> {
    q: DevTensor<H, 4>,
    k: DevTensor<H, 4>,
    v: DevTensor<H, 4>,
}

impl<H: Element> OnDevice<H> {
    fn forward<'a>(&'a self, case: &Case, kv_len: &'a DevTensor<i32, 1>) -> Forward<'a, H> {
        Forward { q: &self.q, k: &self.k, v: &self.v, kv_len, causal: case.causal, scale: case.scale_value() }
    }
}

/// Outputs of which nothing is written yet.
struct Outputs<H: Element> {
    o: DevTensor<H, 4>,
    lse: DevTensor<f32, 3>,
}

impl<H: Element> Outputs<H> {
    fn new(device: &Device, shape: &AttentionShape) -> Self {
        Outputs { o: device.tensor_uninit(shape.q()).unwrap(), lse: device.tensor_uninit(shape.lse()).unwrap() }
    }

    /// The outputs, each element of which must have been written.
    fn read(&self) -> Got {
        let o = self.o.to_host().unwrap();
        Got { o: o.to_f64().unwrap(), lse: self.lse.to_host().unwrap().to_f64().unwrap() }
    }
}

/// What a kernel gave.
#[derive(Clone, Debug)]
struct Got {
    o: Vec<f64>,
    lse: Vec<f64>,
}

impl Got {
    /// Equal bit for bit, where NaN would be unequal.
    fn same(&self, other: &Got) -> bool {
        let bits = |x: &[f64]| -> Vec<u64> { x.iter().map(|x| x.to_bits()).collect() };
        bits(&self.o) == bits(&other.o) && bits(&self.lse) == bits(&other.lse)
    }
}

/// What is right, and how far off O may be.
struct Wanted {
    exact: Output,
    tolerance: f64,
    shape: AttentionShape,
}

impl Wanted {
    fn compare(&self, got: &Got, what: &str) {
        let o = compare_o(&got.o, &self.exact.o, &self.shape.q(), self.tolerance);
        assert!(o.holds(), "{what}: {o:?}");
        let lse = compare_lse(&got.lse, &self.exact.lse, &self.shape.lse(), 0.0);
        assert!(lse.holds(), "{what}: {lse:?}");
    }
}

/// Elements of `T` in a tensor.
fn host<T: Dtype>(numbers: &[f64], shape: &[usize]) -> HostTensor {
    HostTensor::from_f64(T::TYPE, shape, numbers).unwrap()
}

/// The text of a refusal that comes before anything runs.
fn refusal<R: std::fmt::Debug>(outcome: Result<R, Error>) -> String {
    match outcome {
        Err(error @ (Error::Launch { .. } | Error::Setting(_) | Error::Shape(_) | Error::Input(_))) => {
            error.to_string()
        }
        other => panic!("not refused: {other:?}"),
    }
}
