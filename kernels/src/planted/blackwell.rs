//! Tensor memory of Blackwell: products that are read too early, and lanes that a warp does not reach.

use half::f16;
use lacewing_core::prelude::*;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::{Dimension, Ladder, Laddered, SimpleRunner, TensorSpec, Wanted};
use lacewing_runtime::{DevTensor, Device, Error, KernelExt, Tensors};

use super::dimension;
use crate::reference;

/// The chips that have tensor memory.
const TARGETS: &[Target] = &[Target::SM_100A];
/// Rows of A and O, rows of B, and columns of both.
const M: usize = 128;
const N: usize = 16;
const K: usize = 32;

/// Starts `o = a b^T` in one thread, when all have filled the operands: the accumulator, and the mbarrier that says
/// when it holds the sums.
#[device]
fn start_product(memory: &TensorMemory, a: Tensor<F16, 2>, b: Tensor<F16, 2>) -> (TmemAccumulator, Mbarrier) {
    let (left, right) = (SwizzledTile::<F16>::new("left", M, K), SwizzledTile::<F16>::new("right", N, K));
    let mut setup = BarrierSetup::new();
    let done = setup.mbarrier("done", 1);
    setup.finish();
    let thread = thread_id(X);
    for k in range(K) {
        left.at((thread, k)).store(a.at((thread, k)).load());
        if thread < (N as i32) {
            right.at((thread, k)).store(b.at((thread, k)).load());
        }
    }
    fence_proxy(ProxyFence::AsyncShared);
    barrier();
    let sums = memory.accumulator(M, 0, N);
    if warp_id() == 0 && elect_one() {
        tcgen05_mma(left, right.t(), sums, Bool::from(false)).commit(done);
    }
    // From here on all warps are behind the start of the product.
    barrier();
    (sums, done)
}

/// One tile of `a b^T`. The product is waited for by the parity of the phase before.
#[kernel(block = [128, 1, 1])]
pub fn read_too_early(a: Tensor<F16, 2>, b: Tensor<F16, 2>, o: TensorMut<F32, 2>) {
    let memory = TensorMemory::alloc(32);
    memory.relinquish_alloc_permit();
    let (sums, done) = start_product(&memory, a, b);
    let rows = sums.wait(done, I32::from(1)).own_rows();
    let sums = rows.load::<N>(0).wait(); // <- D20
    for j in range_constexpr(N) {
        o.at((thread_id(X), j)).store(sums[j]);
    }
    memory.dealloc();
}

/// The same with the right parity. Every warp loads the first rows.
#[kernel(block = [128, 1, 1])]
pub fn first_rows_only(a: Tensor<F16, 2>, b: Tensor<F16, 2>, o: TensorMut<F32, 2>) {
    let memory = TensorMemory::alloc(32);
    memory.relinquish_alloc_permit();
    let (sums, done) = start_product(&memory, a, b);
    let rows = sums.wait(done, I32::from(0)).row_block(0);
    let sums = rows.load::<N>(0).wait(); // <- D21
    for j in range_constexpr(N) {
        o.at((thread_id(X), j)).store(sums[j]);
    }
    memory.dealloc();
}

const F16S: &[ScalarType] = &[ScalarType::F16];
const F32S: &[ScalarType] = &[ScalarType::F32];
const SIZES: &[Dimension] = &[dimension("M", M), dimension("N", N), dimension("K", K)];
const ONE: &str = "M=128,N=16,K=32";

fn run_tile(
    device: &Device,
    inputs: &Tensors,
    launch: impl Fn(&DevTensor<f16, 2>, &DevTensor<f16, 2>, &mut DevTensor<f32, 2>) -> Result<(), Error>,
) -> Result<Tensors, Error> {
    let (a, b) = (device.tensor_from::<f16, 2>(&inputs["a"])?, device.tensor_from::<f16, 2>(&inputs["b"])?);
    if (a.shape(), b.shape()) != ([M, K], [N, K]) {
        let (left, right) = (a.shape(), b.shape());
        return Err(Error::Shape(format!("a tile is of 128 x 32 and 16 x 32, not {left:?} and {right:?}")));
    }
    let mut o = device.tensor_uninit::<f32, 2>([M, N])?;
    launch(&a, &b, &mut o)?;
    Ok(Tensors::from([("o".to_owned(), o.to_host()?)]))
}

fn product(inputs: &Tensors) -> Result<Vec<Wanted>, Error> {
    let (a, b) = (inputs["a"].to_f64()?, inputs["b"].to_f64()?);
    let across: Vec<f64> = (0..K * N).map(|i| b.get(i % N * K + i / N).copied().unwrap_or(0.0)).collect();
    Ok(vec![Wanted { tensor: "o", numbers: reference::matmul(&a, &across, M, N), tolerance: 1e-3 }])
}

macro_rules! tile {
    ($runner:ident, $ladder:ident, $kernel:ident) => {
        static $runner: SimpleRunner = SimpleRunner {
            inputs: &[
                TensorSpec { name: "a", dimensions: &["M", "K"], types: F16S, optional: false, about: "a tile" },
                TensorSpec { name: "b", dimensions: &["N", "K"], types: F16S, optional: false, about: "a tile" },
            ],
            outputs: &[TensorSpec {
                name: "o",
                dimensions: &["M", "N"],
                types: F32S,
                optional: false,
                about: "a times b transposed",
            }],
            dimensions: SIZES,
            run: |device, _, inputs| {
                run_tile(device, inputs, |a, b, o| $kernel::new().grid([1, 1, 1]).launch(device, (a, b, o)).map(|_| ()))
            },
            reference: |_, inputs| product(inputs),
        };
        static $ladder: Laddered =
            Laddered { runner: &$runner, ladder: Ladder { single: ONE, shapes: &[ONE], ..Ladder::DEFAULT } };
    };
}

tile!(EARLY, EARLY_LADDER, read_too_early);
tile!(FIRST, FIRST_LADDER, first_rows_only);

/// D20.
pub(super) static D20: KernelEntry = KernelEntry {
    name: "planted_d20",
    about: "an accumulator in tensor memory that is read before its product is waited for",
    targets: TARGETS,
    parameters: &[],
    build: |_, _| Ok(Box::new(read_too_early::new())),
    runner: Some(&EARLY_LADDER),
};

/// D21.
pub(super) static D21: KernelEntry = KernelEntry {
    name: "planted_d21",
    about: "warps that load rows of tensor memory which they do not reach",
    targets: TARGETS,
    parameters: &[],
    build: |_, _| Ok(Box::new(first_rows_only::new())),
    runner: Some(&FIRST_LADDER),
};
