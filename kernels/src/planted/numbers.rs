//! NaN: where it is born.

use lacewing_core::prelude::*;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::SimpleRunner;
use lacewing_runtime::{Device, Error, KernelExt, Tensors};

use super::{dimension, entry, output, tensor, upload, wanted};

/// Softmax of rows of at most 32 elements, in which an element that is not positive is masked.
#[kernel(block = [32, 1, 1])]
pub fn masked_softmax(#[comptime] guarded: bool, x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let (row, column) = (block_id(X), thread_id(X));
    let inside = column < x.extent(1);
    let score = x.at((row, column)).load_if(inside, F32::from(0.0));
    let score = (score > 0.0).select(score, F32::from(f32::NEG_INFINITY));
    let mut max = reduce_warp(score, |a, b| a.max(b));
    if const_expr(guarded) {
        max = (max == f32::NEG_INFINITY).select(F32::from(0.0), max);
    }
    let weight = (score - max).exp(); // <- D1
    let total = reduce_warp(weight, |a, b| a + b);
    let inverse = F32::from(1.0) / total; // <- D2
    y.at((row, column)).store_if(inside, weight * inverse);
}

/// A row without a positive element has no weight at all: its softmax is 0.
fn softmax_reference(inputs: &Tensors) -> Result<Vec<f64>, Error> {
    let x = &inputs["x"];
    let [_, columns] = x.shape_of()?;
    let mut y = x.to_f64()?;
    for row in y.chunks_mut(columns.max(1)) {
        let total: f64 = row.iter().filter(|x| **x > 0.0).map(|x| x.exp()).sum();
        row.iter_mut().for_each(|x| *x = if *x > 0.0 { x.exp() / total } else { 0.0 });
    }
    Ok(y)
}

fn run_softmax(guarded: bool, device: &Device, inputs: &Tensors) -> Result<Tensors, Error> {
    let x = upload::<2>(device, inputs, "x")?;
    let [rows, columns] = x.shape();
    if columns > 32 {
        return Err(Error::Shape(format!("rows have {columns} elements, and a warp takes 32")));
    }
    let mut y = device.tensor_uninit([rows, columns])?;
    masked_softmax::new(guarded).grid([rows, 1, 1]).launch(device, (&x, &mut y))?;
    output("y", &y)
}

macro_rules! softmax_runner {
    ($guarded:literal) => {
        SimpleRunner {
            inputs: &[tensor("x", &["R", "C"], "scores; those that are not positive are masked")],
            outputs: &[tensor("y", &["R", "C"], "the softmax of each row")],
            dimensions: &[dimension("R", 5), dimension("C", 29)],
            run: |device, _, inputs| run_softmax($guarded, device, inputs),
            reference: |_, inputs| wanted("y", softmax_reference(inputs)?),
        }
    };
}

static UNGUARDED: SimpleRunner = softmax_runner!(false);
static GUARDED: SimpleRunner = softmax_runner!(true);

/// D1.
pub(super) static D1: KernelEntry =
    entry("planted_d1", "a fully masked row: -inf - -inf", |_, _| Ok(Box::new(masked_softmax::new(false))), &UNGUARDED);

/// D2.
pub(super) static D2: KernelEntry =
    entry("planted_d2", "one over an empty sum", |_, _| Ok(Box::new(masked_softmax::new(true))), &GUARDED);

/// The sum of exponentials of each row in one pass, with the factor the wrong way round.
#[kernel(block = [32, 1, 1])]
pub fn online_sum(x: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = block_id(X) * 32 + thread_id(X);
    if row < x.extent(0) {
        let mut max = F32::from(f32::NEG_INFINITY);
        let mut sum = F32::from(0.0);
        for column in range(x.extent(1)) {
            let score = x.at((row, column)).load();
            let new_max = max.max(score);
            let rescale = (new_max - max).exp();
            sum = sum * rescale + (score - new_max).exp(); // <- D3
            max = new_max;
        }
        y.at(row).store(sum);
    }
}

static ONLINE: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "scores")],
    outputs: &[tensor("y", &["R"], "the sum of exp(x - max x) of each row")],
    dimensions: &[dimension("R", 40), dimension("C", 9)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, _] = x.shape();
        let mut y = device.tensor_uninit([rows])?;
        online_sum::new().grid([rows.div_ceil(32), 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = &inputs["x"];
        let [_, columns] = x.shape_of()?;
        let numbers = x.to_f64()?;
        let sums = numbers.chunks(columns.max(1)).map(|row| {
            let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter().map(|x| (x - max).exp()).sum()
        });
        wanted("y", sums.collect())
    },
};

/// D3.
pub(super) static D3: KernelEntry = entry(
    "planted_d3",
    "the first iteration of online softmax: 0 * inf",
    |_, _| Ok(Box::new(online_sum::new())),
    &ONLINE,
);
