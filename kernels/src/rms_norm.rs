//! `rms_norm`: each row of a matrix divided by its root mean square.
//!
//! `y[r][c] = x[r][c] / sqrt(mean over j of x[r][j]^2 + epsilon) * weight[c]`
//!
//! | argument | shape | |
//! |---|---|---|
//! | `x` | `[R, C]` | any strides |
//! | `weight` | `[C]` | any stride |
//! | `y` | `[R, C]` | any strides; the result |
//! | `epsilon` | | keeps a row of zeros from dividing by 0 |
//!
//! One block computes one row, however long, and the grid is one block a row. Arithmetic is f32, in which
//! the squares of a row and their sum must be finite.

use lacewing_core::prelude::*;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter, Settings};
use lacewing_runtime::runner::{Dimension, Laddered, SimpleRunner, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, Error, KernelExt, LaunchStats, Tensors};

use crate::ladders::tiled;
use crate::reference::{self, unit_roundoff};
use crate::views::{FLOAT_NAMES, FLOATS, HostFloat, check_shape, expected};

/// Threads of a block.
const THREADS: usize = 128;

/// RMS norm of each row, in two passes: the sum of squares, then the products.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn rms_norm<T: Float>(x: Tensor<T, 2>, weight: Tensor<T, 1>, y: TensorMut<T, 2>, epsilon: F32) {
    let row = block_id(X);
    let columns = x.extent(1);

    let mut squares = F32::from(0.0);
    for column in range(thread_id(X), columns, THREADS) {
        let value = x.at((row, column)).load().cast::<F32>();
        squares = value.fma(value, squares);
    }
    let squares = reduce_block(squares, |a, b| a + b, F32::from(0.0));
    let factor = F32::from(1.0) / (squares / columns.cast::<F32>() + epsilon).sqrt();

    for column in range(thread_id(X), columns, THREADS) {
        let value = x.at((row, column)).load().cast::<F32>();
        let scaled = value * factor * weight.at(column).load().cast::<F32>();
        y.at((row, column)).store(scaled.cast::<T>());
    }
}

/// Launches [`rms_norm`].
///
/// # Errors
/// [`Error::Shape`] when the shapes do not go together, and all of a launch.
pub fn run<T: HostFloat>(
    x: &DevTensor<T::Host, 2>,
    weight: &DevTensor<T::Host, 1>,
    y: &mut DevTensor<T::Host, 2>,
    epsilon: f32,
) -> Result<LaunchStats, Error> {
    let [rows, columns] = x.shape();
    check_shape("weight", weight.shape(), [columns])?;
    check_shape("y", y.shape(), x.shape())?;
    let device = x.device().clone();
    let blocks = if columns == 0 { 0 } else { rows };
    rms_norm::<T>::new().grid([blocks, 1, 1]).launch(&device, (x, weight, y, epsilon))
}

/// The largest relative error of an element for rows of `columns` elements, where f32 is not left.
///
/// With u the unit roundoff of f32: the sum of squares in `depth` steps, the mean and the sum with epsilon are
/// right to depth + 3 roundings, of which the root halves the error; the root itself, the quotient and two
/// products add one each. Then comes one rounding to the type of `y`.
pub fn tolerance(columns: usize, dtype: ScalarType) -> f64 {
    // Each thread adds up its share, then the block adds up the threads' in a tree.
    let depth = columns.div_ceil(THREADS) + THREADS.ilog2() as usize;
    let roundings = (depth + 3) as f64 / 2.0 + 4.0;
    roundings * unit_roundoff(ScalarType::F32) + unit_roundoff(dtype)
}

const fn matrix(name: &'static str, about: &'static str) -> TensorSpec {
    TensorSpec { name, dimensions: &["R", "C"], types: FLOATS, optional: false, about }
}

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[
        matrix("x", "a matrix"),
        TensorSpec {
            name: "weight",
            dimensions: &["C"],
            types: FLOATS,
            optional: false,
            about: "what each column is multiplied with",
        },
        expected("y", &["R", "C"]),
    ],
    outputs: &[matrix("y", "the RMS norm of each row of x, weighted")],
    dimensions: &[
        Dimension { name: "R", default: 20, about: "rows" },
        Dimension { name: "C", default: 300, about: "columns" },
    ],
    run: |device, settings, inputs| match settings.choice("dtype")? {
        "f16" => run_typed::<F16>(device, settings, inputs),
        "bf16" => run_typed::<BF16>(device, settings, inputs),
        _ => run_typed::<F32>(device, settings, inputs),
    },
    reference: |settings, inputs| {
        let (x, weight) = (&inputs["x"], &inputs["weight"]);
        let epsilon = f64::from(settings.f32("epsilon")?);
        let numbers = reference::rms_norm(&x.to_f64()?, &weight.to_f64()?, epsilon);
        Ok(vec![Wanted { tensor: "y", numbers, tolerance: tolerance(weight.len(), x.scalar()) }])
    },
};

fn run_typed<T: HostFloat>(device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
    let x = device.tensor_from::<T::Host, 2>(&inputs["x"])?;
    let weight = device.tensor_from::<T::Host, 1>(&inputs["weight"])?;
    let mut y = device.tensor_uninit(x.shape())?;
    run::<T>(&x, &weight, &mut y, settings.f32("epsilon")?)?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

static LADDER: Laddered = Laddered { runner: &RUNNER, ladder: tiled(|_, _| vec![Tile::new("C", THREADS)]) };

/// `rms_norm` by name.
pub static RMS_NORM: KernelEntry = KernelEntry {
    name: "rms_norm",
    about: "RMS norm of each row, with weights",
    targets: &Target::ALL,
    parameters: &[
        Parameter::choice("dtype", FLOAT_NAMES, "f32", "element type of x, weight and y"),
        Parameter::f32("epsilon", 1e-5, "added to the mean square in a run; it is no part of the compiled kernel"),
    ],
    build: |settings, _| {
        Ok(match settings.choice("dtype")? {
            "f16" => Box::new(rms_norm::<F16>::new()) as Box<dyn AnyKernel>,
            "bf16" => Box::new(rms_norm::<BF16>::new()),
            _ => Box::new(rms_norm::<F32>::new()),
        })
    },
    runner: Some(&LADDER),
};
