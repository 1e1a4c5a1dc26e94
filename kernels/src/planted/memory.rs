//! Shared memory: indices within a panel, banks; and a block that an instruction does not fit.

use lacewing_core::prelude::*;
use lacewing_runtime::registry::KernelEntry;
use lacewing_runtime::runner::{Ladder, Laddered, SimpleRunner};
use lacewing_runtime::{Error, KernelExt};

use super::{dimension, entry, output, tensor, upload, wanted};
use crate::reference;

/// Rows of a tile in panels.
const ROWS: usize = 8;
/// Columns of a panel: what one row of the canonical layout holds.
const PANEL: usize = 16;

/// Copies a matrix of eight rows through shared memory in panels of 16 columns. Each panel is filled by the column
/// of the whole row, where the column within the panel belongs.
#[kernel(block = [32, 1, 1])]
pub fn through_panels(#[comptime] columns: usize, x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let lane = thread_id(X) % (PANEL as i32);
    let half = thread_id(X) / (PANEL as i32);
    for number in range_constexpr(columns / PANEL) {
        let panel = shared_array_named::<F32>("panel", ROWS * PANEL);
        let column = lane + ((number * PANEL) as i32);
        for pair in range_constexpr(ROWS / 2) {
            let row = half + ((pair * 2) as i32);
            let value = x.at((row, column)).load();
            panel.at(row * (PANEL as i32) + column).store(value); // <- D22
        }
        barrier();
        for pair in range_constexpr(ROWS / 2) {
            let row = half + ((pair * 2) as i32);
            y.at((row, column)).store(panel.at(row * (PANEL as i32) + lane).load());
        }
    }
}

static PANELS: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "D"], "a matrix of eight rows")],
    outputs: &[tensor("y", &["R", "D"], "the same")],
    dimensions: &[dimension("R", ROWS), dimension("D", PANEL)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, columns] = x.shape();
        if rows != ROWS || columns % PANEL != 0 {
            return Err(Error::Shape(format!("the matrix is {rows} x {columns}, and must be 8 x a multiple of 16")));
        }
        let mut y = device.tensor_uninit([rows, columns])?;
        through_panels::new(columns).grid([1, 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| wanted("y", inputs["x"].to_f64()?),
};

static PANELS_LADDER: Laddered = Laddered {
    runner: &PANELS,
    ladder: Ladder { single: "R=8,D=16", shapes: &["R=8,D=16", "R=8,D=32", "R=8,D=64"], ..Ladder::DEFAULT },
};

/// D22.
pub(super) static D22: KernelEntry = entry(
    "planted_d22",
    "a panel filled by the column of the whole row",
    |_, _| Ok(Box::new(through_panels::new(2 * PANEL))),
    &PANELS_LADDER,
);

/// Rows and columns of a tile.
const TILE: usize = 32;

/// A transpose by tiles whose rows are 32 words apart: a column lies in one bank.
#[kernel(block = [TILE as u32, 1, 1])]
pub fn transpose_by_tiles(x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let tile = shared_array_named::<F32>("tile", TILE * TILE);
    let (lane, base_row, base_column) = (thread_id(X), block_id(X) * (TILE as i32), block_id(Y) * (TILE as i32));
    for row in range_constexpr(TILE) {
        let (from_row, from_column) = (base_row + (row as i32), base_column + lane);
        let inside = from_row < x.extent(0) && from_column < x.extent(1);
        tile.at(lane + ((row * TILE) as i32)).store(x.at((from_row, from_column)).load_if(inside, F32::from(0.0)));
    }
    barrier();
    for row in range_constexpr(TILE) {
        let (to_row, to_column) = (base_column + (row as i32), base_row + lane);
        let value = tile.at(lane * (TILE as i32) + (row as i32)).load(); // <- D24
        y.at((to_row, to_column)).store_if(to_row < y.extent(0) && to_column < y.extent(1), value);
    }
}

static TRANSPOSED: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "a matrix")],
    outputs: &[tensor("y", &["C", "R"], "its transpose")],
    dimensions: &[dimension("R", 70), dimension("C", 40)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, columns] = x.shape();
        let mut y = device.tensor_uninit([columns, rows])?;
        let grid = [rows.div_ceil(TILE), columns.div_ceil(TILE), 1];
        transpose_by_tiles::new().grid(grid).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = &inputs["x"];
        let [_, columns] = x.shape_of()?;
        wanted("y", reference::transpose(&x.to_f64()?, columns))
    },
};

/// D24.
pub(super) static D24: KernelEntry =
    entry("planted_d24", "a column of a tile in one bank", |_, _| Ok(Box::new(transpose_by_tiles::new())), &TRANSPOSED);

/// The sum of each row by a block of 24 threads.
#[kernel(block = [24, 1, 1])]
pub fn sum_of_24(x: Tensor<F32, 2>, y: TensorMut<F32, 1>) {
    let row = block_id(X);
    let mut sum = F32::from(0.0);
    for column in range(thread_id(X), x.extent(1), 24) {
        sum += x.at((row, column)).load();
    }
    let sum = reduce_warp(sum, |a, b| a + b); // <- D29
    if thread_id(X) == 0 {
        y.at(row).store(sum);
    }
}

static SUMS: SimpleRunner = SimpleRunner {
    inputs: &[tensor("x", &["R", "C"], "a matrix")],
    outputs: &[tensor("y", &["R"], "the sum of each row")],
    dimensions: &[dimension("R", 5), dimension("C", 50)],
    run: |device, _, inputs| {
        let x = upload::<2>(device, inputs, "x")?;
        let [rows, _] = x.shape();
        let mut y = device.tensor_uninit([rows])?;
        sum_of_24::new().grid([rows, 1, 1]).launch(device, (&x, &mut y))?;
        output("y", &y)
    },
    reference: |_, inputs| {
        let x = &inputs["x"];
        let [_, columns] = x.shape_of()?;
        wanted("y", x.to_f64()?.chunks(columns.max(1)).map(|row| row.iter().sum()).collect())
    },
};

/// D29.
pub(super) static D29: KernelEntry =
    entry("planted_d29", "a block that a warp's reduction does not fit", |_, _| Ok(Box::new(sum_of_24::new())), &SUMS);
