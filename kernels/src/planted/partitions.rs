//! Work in partitions: who writes which slot, and who reads it.

use lacewing_core::prelude::*;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::SimpleRunner;
use lacewing_runtime::{Error, KernelExt, Tensors};

use super::{dimension, entry, output, tensor, upload, wanted};

/// The sum of each row of a row-major matrix.
fn row_sums(inputs: &Tensors) -> Result<Vec<f64>, Error> {
    let x = &inputs["x"];
    let [rows, columns] = x.shape_of()?;
    let numbers = x.to_f64()?;
    Ok((0..rows).map(|row| numbers.iter().skip(row * columns).take(columns).sum()).collect())
}

/// One partition's sum for each block. `first` is the number of the first partition in all the work, which the slots
/// of this launch know nothing of.
#[kernel(block = [32, 1, 1])]
pub fn partial_sums(first: I32, x: Tensor<F32, 2>, partial: TensorMut<F32, 1>) {
    let partition = block_id(X);
    let mut sum = F32::from(0.0);
    for column in range(thread_id(X), x.extent(1), 32) {
        sum += x.at((partition, column)).load();
    }
    let sum = reduce_warp(sum, |a, b| a + b);
    if thread_id(X) == 0 {
        partial.at(first + partition).store(sum); // <- D4
    }
}

static SLOTS: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["P", "C"], "a row for each partition")],
    outputs: &[tensor("partial", &["P"], "the sum of each partition")],
    dimensions: &[dimension("P", 4), dimension("C", 50)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [partitions, _] = x.shape();
        // Room for more slots than this launch has, as workspaces do.
        let mut partial = device.tensor_uninit([partitions + 1])?;
        partial_sums::new().grid([partitions, 1, 1]).launch(device, (1, &x, &mut partial))?;
        output("partial", &partial.slice(0, 0..partitions)?)
    },
    reference: |_, inputs| wanted("partial", row_sums(inputs)?),
};

/// D4.
pub(super) static D4: KernelEntry =
    entry("planted_d4", "a slot by the partition's absolute number", |_, _| Ok(Box::new(partial_sums::new())), &SLOTS);

/// The maximum of each row; it should write `sums` too.
#[kernel(block = [32, 1, 1])]
pub fn maxima(x: Tensor<F32, 2>, max: TensorMut<F32, 1>, _sums: TensorMut<F32, 1>) {
    let row = block_id(X);
    let mut largest = F32::from(f32::NEG_INFINITY);
    for column in range(thread_id(X), x.extent(1), 32) {
        largest = largest.max(x.at((row, column)).load());
    }
    let largest = reduce_warp(largest, |a, b| a.max(b));
    if thread_id(X) == 0 {
        max.at(row).store(largest);
    }
}

/// The logarithm of the sum of exponentials, from what the main kernel left.
#[kernel(block = [32, 1, 1])]
pub fn log_sums(max: Tensor<F32, 1>, sums: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let row = block_id(X) * 32 + thread_id(X);
    if row < y.extent(0) {
        let sum = sums.at(row).load(); // <- D5
        y.at(row).store(max.at(row).load() + sum.log());
    }
}

static REDUCED: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "scores")],
    outputs: &[tensor("y", &["R"], "the logarithm of the sum of exponentials of each row")],
    dimensions: &[dimension("R", 6), dimension("C", 40)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, _] = x.shape();
        let mut max = device.tensor_uninit::<f32, 1>([rows])?;
        let mut sums = device.tensor_uninit::<f32, 1>([rows])?;
        let mut y = device.tensor_uninit([rows])?;
        maxima::new().grid([rows, 1, 1]).launch(device, (&x, &mut max, &mut sums))?;
        log_sums::new().grid([rows.div_ceil(32), 1, 1]).launch(device, (&max, &sums, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = &inputs["x"];
        let [_, columns] = x.shape_of()?;
        let numbers = x.to_f64()?;
        let rows = numbers.chunks(columns.max(1));
        wanted("y", rows.map(|row| row.iter().map(|x| x.exp()).sum::<f64>().ln()).collect())
    },
};

/// D5.
pub(super) static D5: KernelEntry = entry(
    "planted_d5",
    "sums that nothing wrote, read by the kernel that reduces",
    |_, _| Ok(Box::new(log_sums::new())),
    &REDUCED,
);

/// Columns of a partition.
const PARTITION: usize = 32;

/// The sum of one row's part in one partition.
#[kernel(block = [32, 1, 1])]
pub fn sums_of_parts(x: Tensor<F32, 2>, partial: TensorMut<F32, 2>) {
    let (row, partition) = (block_id(X), block_id(Z));
    let column = partition * (PARTITION as i32) + thread_id(X);
    let inside = column < x.extent(1);
    let value = x.at((row, column)).load_if(inside, F32::from(0.0)); // <- D6
    let sum = reduce_warp(value, |a, b| a + b);
    if thread_id(X) == 0 {
        partial.at((row, partition)).store(sum);
    }
}

/// The sum of a row's partitions.
#[kernel(block = [32, 1, 1])]
pub fn sums_of_sums(partial: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = block_id(X) * 32 + thread_id(X);
    if row < y.extent(0) {
        let mut sum = F32::from(0.0);
        for partition in range(partial.extent(1)) {
            sum += partial.at((row, partition)).load();
        }
        y.at(row).store(sum);
    }
}

static PARTS: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "a matrix")],
    outputs: &[tensor("y", &["R"], "the sum of each row")],
    dimensions: &[dimension("R", 3), dimension("C", 50)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, columns] = x.shape();
        let partitions = columns.div_ceil(PARTITION);
        let mut partial = device.tensor_zeros::<f32, 2>([rows, partitions])?;
        let mut y = device.tensor_uninit([rows])?;
        // Two blocks in z, however many partitions there are.
        sums_of_parts::new().grid([rows, 1, partitions.min(2)]).launch(device, (&x, &mut partial))?;
        sums_of_sums::new().grid([rows.div_ceil(32), 1, 1]).launch(device, (&partial, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| wanted("y", row_sums(inputs)?),
};

/// D6.
pub(super) static D6: KernelEntry = entry(
    "planted_d6",
    "fewer blocks than partitions, and no loop over them",
    |_, _| Ok(Box::new(sums_of_parts::new())),
    &PARTS,
);
