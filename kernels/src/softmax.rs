//! `softmax`: of each row of a matrix.
//!
//! `y[r][c] = exp(x[r][c] - m) / sum over j of exp(x[r][j] - m)`, with m the largest element of row r. Taking m
//! off changes nothing in exact arithmetic, and keeps the exponentials from 0 to 1 here.
//!
//! | argument | shape | |
//! |---|---|---|
//! | `x` | `[R, C]` | any strides |
//! | `y` | `[R, C]` | any strides; the result |
//!
//! One block computes one row, however long, and the grid is one block a row. Arithmetic is f32.
//!
//! An element of -inf gives 0. A row of nothing but -inf, or with +inf or NaN in it, gives NaN in every
//! element, as the formula does: what a row without any weight means is for the caller to say.

use lacewing_core::prelude::*;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter};
use lacewing_runtime::runner::{Dimension, Laddered, SimpleRunner, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, Error, KernelExt, LaunchStats, Tensors};

use crate::ladders::tiled;
use crate::reference::{self, unit_roundoff};
use crate::views::{FLOAT_NAMES, FLOATS, HostFloat, check_shape, expected};

/// Threads of a block.
const THREADS: usize = 128;

/// Softmax of each row, in three passes: the largest element, the sum, the quotients.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn softmax<T: Float>(x: Tensor<T, 2>, y: TensorMut<T, 2>) {
    let row = block_id(X);
    let columns = x.extent(1);

    let mut max = F32::from(f32::NEG_INFINITY);
    for column in range(thread_id(X), columns, THREADS) {
        max = max.max(x.at((row, column)).load().cast::<F32>());
    }
    let max = reduce_block(max, |a, b| a.max(b), F32::from(f32::NEG_INFINITY));

    let mut sum = F32::from(0.0);
    for column in range(thread_id(X), columns, THREADS) {
        sum += (x.at((row, column)).load().cast::<F32>() - max).exp();
    }
    let sum = reduce_block(sum, |a, b| a + b, F32::from(0.0));

    for column in range(thread_id(X), columns, THREADS) {
        let weight = (x.at((row, column)).load().cast::<F32>() - max).exp();
        y.at((row, column)).store((weight / sum).cast::<T>());
    }
}

/// Launches [`softmax`].
///
/// # Errors
/// [`Error::Shape`] when `x` and `y` differ in shape, and all of a launch.
pub fn run<T: HostFloat>(x: &DevTensor<T::Host, 2>, y: &mut DevTensor<T::Host, 2>) -> Result<LaunchStats, Error> {
    check_shape("y", y.shape(), x.shape())?;
    let device = x.device().clone();
    let [rows, columns] = x.shape();
    let blocks = if columns == 0 { 0 } else { rows };
    softmax::<T>::new().grid([blocks, 1, 1]).launch(&device, (x, y))
}

/// The largest error of an element, in units of 1, for rows of `columns` elements.
///
/// With u the unit roundoff of f32: a sum of positive numbers in `depth` steps is right to depth u; `exp`
/// is right to 2 u, and its argument's rounding changes it by at most d exp(-d) u < u; the
/// quotient adds u. Then comes one rounding to the type of `y`. No result exceeds 1.
pub fn tolerance(columns: usize, dtype: ScalarType) -> f64 {
    // Each thread adds up its share, then the block adds up the threads' in a tree.
    let depth = columns.div_ceil(THREADS) + THREADS.ilog2() as usize;
    // Numerator and denominator both carry the errors of `exp`.
    let roundings = depth + 2 * (2 + 1) + 1;
    roundings as f64 * unit_roundoff(ScalarType::F32) + unit_roundoff(dtype)
}

const fn matrix(name: &'static str, about: &'static str) -> TensorSpec {
    TensorSpec { name, dimensions: &["R", "C"], types: FLOATS, optional: false, about }
}

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[matrix("x", "a matrix"), expected("y", &["R", "C"])],
    outputs: &[matrix("y", "the softmax of each row of x")],
    dimensions: &[
        Dimension { name: "R", default: 20, about: "rows" },
        Dimension { name: "C", default: 300, about: "columns" },
    ],
    run: |device, settings, inputs| match settings.choice("dtype")? {
        "f16" => run_typed::<F16>(device, inputs),
        "bf16" => run_typed::<BF16>(device, inputs),
        _ => run_typed::<F32>(device, inputs),
    },
    reference: |_, inputs| {
        let x = &inputs["x"];
        let [_, columns] = x.shape_of()?;
        let numbers = reference::softmax_rows(&x.to_f64()?, columns);
        Ok(vec![Wanted { tensor: "y", numbers, tolerance: tolerance(columns, x.scalar()) }])
    },
};

fn run_typed<T: HostFloat>(device: &Device, inputs: &Tensors) -> Result<Tensors, Error> {
    let x = device.tensor_from::<T::Host, 2>(&inputs["x"])?;
    let mut y = device.tensor_uninit(x.shape())?;
    run::<T>(&x, &mut y)?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

static LADDER: Laddered = Laddered { runner: &RUNNER, ladder: tiled(|_, _| vec![Tile::new("C", THREADS)]) };

/// `softmax` by name.
pub static SOFTMAX: KernelEntry = KernelEntry {
    name: "softmax",
    about: "softmax of each row",
    targets: &Target::ALL,
    parameters: &[Parameter::choice("dtype", FLOAT_NAMES, "f32", "element type of x and y")],
    build: |settings, _| {
        Ok(match settings.choice("dtype")? {
            "f16" => Box::new(softmax::<F16>::new()) as Box<dyn AnyKernel>,
            "bf16" => Box::new(softmax::<BF16>::new()),
            _ => Box::new(softmax::<F32>::new()),
        })
    },
    runner: Some(&LADDER),
};
