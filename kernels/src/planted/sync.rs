//! Loops that do not end, barriers that not all reach, and barriers that are missing.

use lacewing_core::prelude::*;
use lacewing_runtime::KernelExt;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::SimpleRunner;

use super::{dimension, entry, output, tensor, upload, wanted};

/// Samples of a vector.
const SAMPLES: i32 = 16;

/// The sum of about sixteen elements, as far apart as their number allows; none at all for shorter vectors.
#[kernel(block = [1, 1, 1])]
pub fn sampled_sum(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let step = x.extent(0) / SAMPLES;
    let mut sum = F32::from(0.0);
    // -> D15
    for i in range(0, x.extent(0), step) {
        sum += x.at(i).load();
    }
    y.at(0).store(sum);
}

static SAMPLED: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["N"], "numbers")],
    outputs: &[tensor("y", &["One"], "the sum of the samples")],
    dimensions: &[dimension("N", 100)],
    run: |device, _, inputs| {
        let x = upload::<1>(device, inputs, "x")?;
        let mut y = device.tensor_uninit([1])?;
        sampled_sum::new().grid([1, 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = inputs["x"].to_f64()?;
        let step = (x.len() / SAMPLES as usize).max(1);
        wanted("y", vec![x.iter().step_by(step).sum()])
    },
};

/// D15.
pub(super) static D15: KernelEntry =
    entry("planted_d15", "a step that turns out to be 0", |_, _| Ok(Box::new(sampled_sum::new())), &SAMPLED);

/// The largest element of each part of 64, with a barrier where only the threads inside arrive.
#[kernel(block = [64, 1, 1])]
pub fn guarded_maximum(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let values = shared_array_named::<F32>("values", 64);
    let (thread, i) = (thread_id(X), block_id(X) * 64 + thread_id(X));
    let count = (x.extent(0) - block_id(X) * 64).min(I32::from(64));
    if i < x.extent(0) {
        values.at(thread).store(x.at(i).load());
        barrier(); // <- D16
    }
    if thread == 0 {
        let mut largest = values.at(0).load();
        for other in range(1, count) {
            largest = largest.max(values.at(other).load());
        }
        y.at(block_id(X)).store(largest);
    }
}

static MAXIMA: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["N"], "numbers")],
    outputs: &[tensor("y", &["Parts"], "the largest element of each part of 64")],
    dimensions: &[dimension("N", 128)],
    run: |device, _, inputs| {
        let x = upload::<1>(device, inputs, "x")?;
        let parts = x.len().div_ceil(64);
        let mut y = device.tensor_uninit([parts])?;
        guarded_maximum::new().grid([parts, 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = inputs["x"].to_f64()?;
        wanted("y", x.chunks(64).map(|part| part.iter().copied().fold(f64::NEG_INFINITY, f64::max)).collect())
    },
};

/// D16.
pub(super) static D16: KernelEntry =
    entry("planted_d16", "a barrier in a divergent branch", |_, _| Ok(Box::new(guarded_maximum::new())), &MAXIMA);

/// Reverses each part of 128 elements through shared memory, without the barrier between writing and reading.
#[kernel(block = [128, 1, 1])]
pub fn hasty_reverse(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let tile = shared_array_named::<F32>("tile", 128);
    let (i, base) = (thread_id(X), block_id(X) * 128);
    let count = (x.extent(0) - base).min(I32::from(128));
    // Of two accesses that race, the one that runs later is reported: both lines are named.
    let value = x.at(base + i).load_if(i < count, F32::from(0.0));
    tile.at(i).store(value); // <- D18 write
    if i < count {
        y.at(base + i).store(tile.at(count - 1 - i).load()); // <- D18
    }
}

static REVERSED: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["N"], "numbers")],
    outputs: &[tensor("y", &["N"], "x, with each part of 128 reversed")],
    dimensions: &[dimension("N", 256)],
    run: |device, _, inputs| {
        let x = upload::<1>(device, inputs, "x")?;
        let [n] = x.shape();
        let mut y = device.tensor_uninit([n])?;
        hasty_reverse::new().grid([n.div_ceil(128), 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = inputs["x"].to_f64()?;
        wanted("y", x.chunks(128).flat_map(|part| part.iter().rev().copied().collect::<Vec<f64>>()).collect())
    },
};

/// D18.
pub(super) static D18: KernelEntry =
    entry("planted_d18", "shared memory without a barrier", |_, _| Ok(Box::new(hasty_reverse::new())), &REVERSED);
