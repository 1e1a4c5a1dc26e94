//! Rounding and wrapping: what only values without either tell.

use lacewing_core::prelude::*;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::{Ladder, Laddered, SimpleRunner};
use lacewing_runtime::{Error, KernelExt, Tensors};

use super::{dimension, entry, output, tensor, upload, wanted};

/// The variance of each row as the mean of squares minus the square of the mean, far from zero.
#[kernel(block = [32, 1, 1])]
pub fn variance_in_one_pass(x: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = block_id(X) * 32 + thread_id(X);
    if row < x.extent(0) {
        let (mut sum, mut squares) = (F32::from(0.0), F32::from(0.0));
        for column in range(x.extent(1)) {
            let value = x.at((row, column)).load() + 3000.0;
            sum += value;
            squares += value * value;
        }
        let count = x.extent(1).cast::<F32>();
        let mean = sum / count;
        let variance = squares / count - mean * mean; // <- CANCELLATION
        y.at(row).store(variance);
    }
}

/// A number of each row from the row.
fn of_rows(inputs: &Tensors, f: impl Fn(&[f64]) -> f64) -> Result<Vec<f64>, Error> {
    let x = &inputs["x"];
    let [_, columns] = x.shape_of()?;
    Ok(x.to_f64()?.chunks(columns.max(1)).map(f).collect())
}

fn variance(row: &[f64]) -> f64 {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64
}

static VARIANCE: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "a matrix")],
    outputs: &[tensor("y", &["R"], "the variance of each row, each element 3000 larger")],
    dimensions: &[dimension("R", 40), dimension("C", 100)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, _] = x.shape();
        let mut y = device.tensor_uninit([rows])?;
        variance_in_one_pass::new().grid([rows.div_ceil(32), 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| wanted("y", of_rows(inputs, variance)?),
};

pub(super) static CANCELLATION: KernelEntry = entry(
    "planted_cancellation",
    "a variance in one pass: two large numbers cancel",
    |_, _| Ok(Box::new(variance_in_one_pass::new())),
    &VARIANCE,
);

/// The mean of each row, added up in F16.
#[kernel(block = [32, 1, 1])]
pub fn mean_in_f16(x: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = block_id(X) * 32 + thread_id(X);
    if row < x.extent(0) {
        let mut sum = F16::from(half::f16::ZERO);
        for column in range(x.extent(1)) {
            sum += x.at((row, column)).load().cast::<F16>(); // <- F16 SUM
        }
        y.at(row).store(sum.cast::<F32>() / x.extent(1).cast::<F32>());
    }
}

static MEANS: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "a matrix")],
    outputs: &[tensor("y", &["R"], "the mean of each row")],
    dimensions: &[dimension("R", 3), dimension("C", 3000)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, _] = x.shape();
        let mut y = device.tensor_uninit([rows])?;
        mean_in_f16::new().grid([rows.div_ceil(32), 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| wanted("y", of_rows(inputs, |row| row.iter().sum::<f64>() / row.len() as f64)?),
};

pub(super) static F16_SUM: KernelEntry =
    entry("planted_f16_sum", "a long sum in F16", |_, _| Ok(Box::new(mean_in_f16::new())), &MEANS);

/// Softmax of rows of at most 32 elements, whose weights are narrowed to F16 without being brought near 1 first.
#[kernel(block = [32, 1, 1])]
pub fn narrow_weights(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let (row, column) = (block_id(X), thread_id(X));
    let inside = column < x.extent(1);
    let score = x.at((row, column)).load_if(inside, F32::from(0.0));
    let weight = (score - 15.0).exp().cast::<F16>(); // <- NARROW
    let weight = inside.select(weight.cast::<F32>(), F32::from(0.0));
    let total = reduce_warp(weight, |a, b| a + b);
    y.at((row, column)).store_if(inside, weight / total);
}

static WEIGHTS: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "scores")],
    outputs: &[tensor("y", &["R", "C"], "the softmax of each row")],
    dimensions: &[dimension("R", 7), dimension("C", 29)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, columns] = x.shape();
        if columns > 32 {
            return Err(Error::Shape(format!("rows have {columns} elements, and a warp takes 32")));
        }
        let mut y = device.tensor_uninit([rows, columns])?;
        narrow_weights::new().grid([rows, 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = &inputs["x"];
        let [_, columns] = x.shape_of()?;
        let softmax = |row: &[f64]| {
            let total: f64 = row.iter().map(|x| x.exp()).sum();
            row.iter().map(|x| x.exp() / total).collect::<Vec<_>>()
        };
        wanted("y", x.to_f64()?.chunks(columns.max(1)).flat_map(softmax).collect())
    },
};

pub(super) static NARROW: KernelEntry = entry(
    "planted_narrow",
    "weights narrowed to F16 before they are rescaled",
    |_, _| Ok(Box::new(narrow_weights::new())),
    &WEIGHTS,
);

/// Elements of one block's part: far more than it has threads, so that most blocks have nothing to do.
const PART: i32 = 1 << 26;

/// Doubles a vector. Each block's part begins at a multiple of 2^26, which an `I32` holds for 32 blocks.
#[kernel(block = [32, 1, 1])]
pub fn double_by_parts(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let first = block_id(X) * PART; // <- INDEX
    for step in range(4) {
        let at = first + step * 32 + thread_id(X);
        if at < x.extent(0) {
            y.at(at).store(x.at(at).load() * 2.0);
        }
    }
}

static DOUBLES: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["N"], "a vector of at most 128 elements")],
    outputs: &[tensor("y", &["N"], "twice the vector")],
    dimensions: &[dimension("N", 100)],
    run: |device, _, inputs| {
        let x = upload::<1>(device, inputs, "x")?;
        let [length] = x.shape();
        if length > 128 {
            return Err(Error::Shape(format!("the vector has {length} elements, and a block takes 128")));
        }
        let mut y = device.tensor_uninit([length])?;
        double_by_parts::new().grid([40, 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| wanted("y", inputs["x"].to_f64()?.iter().map(|x| 2.0 * x).collect()),
};

static DOUBLES_LADDER: Laddered =
    Laddered { runner: &DOUBLES, ladder: Ladder { shapes: &["N=100", "N=3"], ..Ladder::DEFAULT } };

pub(super) static INDEX: KernelEntry = entry(
    "planted_index",
    "an index that wraps at 2^31 and passes its guard",
    |_, _| Ok(Box::new(double_by_parts::new())),
    &DOUBLES_LADDER,
);
