//! `transpose`: y = x', a matrix by tiles through shared memory.
//!
//! | argument | shape | |
//! |---|---|---|
//! | `x` | `[R, C]` | any strides |
//! | `y` | `[C, R]` | any strides; the result |
//!
//! Without shared memory one side would be read or written with a stride: neighbouring threads would touch
//! addresses a whole row apart. A block therefore takes one tile of 32 x 32 elements, reads it along the
//! rows of `x`, and writes it along the rows of `y`. The grid is one block for each tile, flattened in x with
//! the tiles of a row of `x` innermost.

use lacewing_core::Target;
use lacewing_core::prelude::*;
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter};
use lacewing_runtime::runner::{Dimension, Laddered, SimpleRunner, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, Element, ElementOf, Error, KernelExt, LaunchStats, Tensors};

use crate::ladders::tiled;
use crate::reference;
use crate::views::{FLOAT_NAMES, FLOATS, HostFloat, check_shape, expected};

/// Rows and columns of a tile.
const TILE: usize = 32;
/// Rows of a tile that the block moves at once.
const ROWS: usize = 8;

/// The shared memory of a block.
#[derive(Shared)]
struct Buffers<T: Scalar> {
    /// Rows start 33 elements apart: with 32, the elements of one column would lie in one bank.
    tile: SharedTile<T, TILE, TILE, { TILE + 1 }>,
}

/// y = x'. Thread `(j, i)` of a block moves column `j` of the tile's rows `i`, `i + 8`, `i + 16` and `i + 24`.
#[kernel(block = [TILE as u32, ROWS as u32, 1])]
pub fn transpose<T: Scalar>(x: Tensor<T, 2>, y: TensorMut<T, 2>) {
    let tile = shared::<Buffers<T>>().tile;
    let (i, j) = (thread_id(Y), thread_id(X));
    let (rows, columns) = (x.extent(0), x.extent(1));
    // Rounded up; a block runs only where there is a column.
    let tiles_in_row = (columns - 1) / (TILE as i32) + 1;
    let first_row = block_id(X) / tiles_in_row * (TILE as i32);
    let first_column = block_id(X) % tiles_in_row * (TILE as i32);

    for step in range_constexpr(TILE / ROWS) {
        let r = i + ((step * ROWS) as i32);
        let (row, column) = (first_row + r, first_column + j);
        if row < rows && column < columns {
            tile.at((r, j)).store(x.at((row, column)).load());
        }
    }
    barrier();
    for step in range_constexpr(TILE / ROWS) {
        let c = i + ((step * ROWS) as i32);
        let (row, column) = (first_row + j, first_column + c);
        if row < rows && column < columns {
            y.at((column, row)).store(tile.at((j, c)).load());
        }
    }
}

/// Launches [`transpose`].
///
/// # Errors
/// [`Error::Shape`] when the shape of `y` is not that of `x` turned round, and all of a launch.
pub fn run<T, H>(x: &DevTensor<H, 2>, y: &mut DevTensor<H, 2>) -> Result<LaunchStats, Error>
where
    T: Scalar,
    H: Element + ElementOf<T>,
{
    let [rows, columns] = x.shape();
    check_shape("y", y.shape(), [columns, rows])?;
    let device = x.device().clone();
    let grid = [rows.div_ceil(TILE) * columns.div_ceil(TILE), 1, 1];
    transpose::<T>::new().grid(grid).launch(&device, (x, y))
}

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[
        TensorSpec { name: "x", dimensions: &["R", "C"], types: FLOATS, optional: false, about: "a matrix" },
        expected("y", &["C", "R"]),
    ],
    outputs: &[TensorSpec { name: "y", dimensions: &["C", "R"], types: FLOATS, optional: false, about: "x'" }],
    dimensions: &[
        Dimension { name: "R", default: 100, about: "rows of x" },
        Dimension { name: "C", default: 70, about: "columns of x" },
    ],
    run: |device, settings, inputs| match settings.choice("dtype")? {
        "f16" => run_typed::<F16>(device, inputs),
        "bf16" => run_typed::<BF16>(device, inputs),
        _ => run_typed::<F32>(device, inputs),
    },
    reference: |_, inputs| {
        let [_, columns] = inputs["x"].shape_of()?;
        let numbers = reference::transpose(&inputs["x"].to_f64()?, columns);
        // Nothing is computed: bits move.
        Ok(vec![Wanted { tensor: "y", numbers, tolerance: 0.0 }])
    },
};

fn run_typed<T: HostFloat>(device: &Device, inputs: &Tensors) -> Result<Tensors, Error> {
    let x = device.tensor_from::<T::Host, 2>(&inputs["x"])?;
    let [rows, columns] = x.shape();
    let mut y = device.tensor_uninit([columns, rows])?;
    run::<T, T::Host>(&x, &mut y)?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

static LADDER: Laddered =
    Laddered { runner: &RUNNER, ladder: tiled(|_, _| vec![Tile::new("R", TILE), Tile::new("C", TILE)]) };

/// `transpose` by name.
pub static TRANSPOSE: KernelEntry = KernelEntry {
    name: "transpose",
    about: "y = x', by tiles through shared memory",
    targets: &Target::ALL,
    parameters: &[Parameter::choice("dtype", FLOAT_NAMES, "f32", "element type of x and y")],
    build: |settings, _| {
        Ok(match settings.choice("dtype")? {
            "f16" => Box::new(transpose::<F16>::new()) as Box<dyn AnyKernel>,
            "bf16" => Box::new(transpose::<BF16>::new()),
            _ => Box::new(transpose::<F32>::new()),
        })
    },
    runner: Some(&LADDER),
};
