//! `axpy`: y = a x + y, the smallest kernel that computes something.
//!
//! | argument | shape | |
//! |---|---|---|
//! | `a` | | the factor |
//! | `x` | `[N]` | what is scaled, any stride |
//! | `y` | `[N]` | what it is added to, any stride; the result |
//!
//! Each thread computes one element, and the grid is one block for each 256 elements.

use lacewing_core::Target;
use lacewing_core::prelude::*;
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter, Settings};
use lacewing_runtime::runner::{Dimension, Laddered, SimpleRunner, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, Error, KernelExt, LaunchStats, Tensors};

use crate::ladders::tiled;
use crate::reference::{self, unit_roundoff};
use crate::views::{FLOAT_NAMES, FLOATS, HostFloat, check_shape, host_float};

/// Threads of a block.
const THREADS: usize = 256;

/// y = a x + y, with one rounding an element.
#[kernel(block = [THREADS as u32, 1, 1])]
pub fn axpy<T: Float>(a: T, x: Tensor<T, 1>, y: TensorMut<T, 1>) {
    let i = block_id(X) * (THREADS as i32) + thread_id(X);
    // The last block reaches past the end, unless N is a multiple of its threads.
    if i < y.extent(0) {
        let place = y.at(i);
        place.store(a.fma(x.at(i).load(), place.load()));
    }
}

/// Launches [`axpy`].
///
/// # Errors
/// [`Error::Shape`] when `x` and `y` differ in length, and all of a launch.
pub fn run<T: HostFloat>(
    a: T::Host,
    x: &DevTensor<T::Host, 1>,
    y: &mut DevTensor<T::Host, 1>,
) -> Result<LaunchStats, Error> {
    check_shape("x", x.shape(), y.shape())?;
    let device = y.device().clone();
    axpy::<T>::new().grid([y.len().div_ceil(THREADS), 1, 1]).launch(&device, (a, x, y))
}

const fn vector(name: &'static str, about: &'static str) -> TensorSpec {
    TensorSpec { name, dimensions: &["N"], types: FLOATS, optional: false, about }
}

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[vector("x", "what is scaled"), vector("y", "what it is added to")],
    outputs: &[vector("y", "a x + y")],
    dimensions: &[Dimension { name: "N", default: 1000, about: "elements" }],
    run: |device, settings, inputs| match settings.choice("dtype")? {
        "f16" => run_typed::<F16>(device, settings, inputs),
        "bf16" => run_typed::<BF16>(device, settings, inputs),
        _ => run_typed::<F32>(device, settings, inputs),
    },
    reference: |settings, inputs| {
        let (x, y) = (&inputs["x"], &inputs["y"]);
        // The kernel gets `a` in the type of x.
        let a = lacewing_runtime::HostTensor::from_f64(x.scalar(), &[], &[f64::from(settings.f32("a")?)])?;
        let a = a.to_f64()?.iter().sum();
        let numbers = reference::axpy(a, &x.to_f64()?, &y.to_f64()?);
        // One rounding to f32 and one to the type of y.
        let tolerance = unit_roundoff(y.scalar()) + unit_roundoff(lacewing_core::ScalarType::F32);
        Ok(vec![Wanted { tensor: "y", numbers, tolerance }])
    },
};

fn run_typed<T: HostFloat>(device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
    let x = device.tensor_from::<T::Host, 1>(&inputs["x"])?;
    let mut y = device.tensor_from::<T::Host, 1>(&inputs["y"])?;
    run::<T>(host_float::<T>("a", settings.f32("a")?)?, &x, &mut y)?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

static LADDER: Laddered = Laddered { runner: &RUNNER, ladder: tiled(|_, _| vec![Tile::new("N", THREADS)]) };

/// `axpy` by name.
pub static AXPY: KernelEntry = KernelEntry {
    name: "axpy",
    about: "y = a x + y",
    targets: &Target::ALL,
    parameters: &[
        Parameter::choice("dtype", FLOAT_NAMES, "f32", "element type of x and y"),
        Parameter::f32("a", 2.0, "the factor of a run; it is no part of the compiled kernel"),
    ],
    build: |settings, _| {
        Ok(match settings.choice("dtype")? {
            "f16" => Box::new(axpy::<F16>::new()) as Box<dyn AnyKernel>,
            "bf16" => Box::new(axpy::<BF16>::new()),
            _ => Box::new(axpy::<F32>::new()),
        })
    },
    runner: Some(&LADDER),
};
