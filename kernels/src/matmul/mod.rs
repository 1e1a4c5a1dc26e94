//! `matmul`: C = A B on matrix units.
//!
//! | argument | shape | |
//! |---|---|---|
//! | `a` | `[M, K]` of f16 or bf16 | any strides |
//! | `b` | `[K, N]` of the same | any strides |
//! | `c` | `[M, N]` of f32 or the type of A | any strides; the result |
//!
//! M, N and K may be anything, 0 too. Products are exact and sums are f32.
//!
//! | file | runs on |
//! |---|---|
//! | [`hopper`] | sm_90a, where A lies along k and B along either dimension, in rows of 16-byte vectors |
//! | [`mma`] | other NVIDIA chips, and what `hopper` does not take |
//! | [`mfma`] | AMD chips |
//!
//! In the last two, a block of four warps (or waves) computes a tile of 64 x 64 elements, 32 x 32 each; the grid is one
//! block for each tile, flattened in x with the tiles of a row of C innermost. The inner dimension goes by in steps
//! of 32.
//!
//! [`fp8`] is `matmul_fp8`, for 8-bit elements.

pub mod fp8;
pub mod hopper;
pub mod mfma;
pub mod mma;

use lacewing_core::prelude::*;
use lacewing_core::types::Scalar;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter, Settings};
use lacewing_runtime::runner::{Dimension, Laddered, SimpleRunner, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, ElementOf, Error, HostTensor, KernelExt, LaunchStats, Tensors};

use self::hopper::{HopperTiles, Problem};
use crate::ladders::tiled;
use crate::reference::{self, unit_roundoff};
use crate::views::{HostFloat, check_shape, expected, rows_are_vectors};

/// Rows and columns of C that a block computes.
const BLOCK: usize = 64;
/// Rows and columns of C that a warp computes.
const WARP: usize = 32;
/// Elements of the inner dimension of one step.
const BLOCK_K: usize = 32;
/// Elements of one copy of 16 bytes.
const CHUNK: usize = 8;

/// Which matrices a product is compiled to read 16 bytes at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vectorized {
    /// Whether A can be read 16 bytes at a time: rows are contiguous, aligned and a multiple of 16 bytes.
    pub a: bool,
    /// The same for B.
    pub b: bool,
}

impl Vectorized {
    fn new<A: lacewing_runtime::Element>(a: &DevTensor<A, 2>, b: &DevTensor<A, 2>) -> Self {
        let whole = |tensor: &DevTensor<A, 2>| {
            let [_, columns] = tensor.shape();
            columns.is_multiple_of(CHUNK) && rows_are_vectors(tensor, CHUNK * A::TYPE.bytes())
        };
        Vectorized { a: whole(a), b: whole(b) }
    }

    /// Elements of A that are read at a time.
    fn width_a(&self) -> usize {
        if self.a { CHUNK } else { 1 }
    }

    /// Elements of B that are read at a time.
    fn width_b(&self) -> usize {
        if self.b { CHUNK } else { 1 }
    }
}

/// Row and column of a block's tile among the tiles of C.
#[device]
fn block_coordinate(columns: I32) -> (I32, I32) {
    // Rounded up; a block runs only where there is a column.
    let tiles_in_row = (columns - 1) / (BLOCK as i32) + 1;
    (block_id(X) / tiles_in_row, block_id(X) % tiles_in_row)
}

/// Steps of the inner dimension, rounded up.
#[device]
fn k_steps(inner: I32) -> I32 {
    inner / (BLOCK_K as i32) + (inner % (BLOCK_K as i32)).min(1)
}

/// Launches the version for the device's chip.
///
/// # Errors
/// [`Error::Shape`] when the shapes do not go together, and all of a launch.
pub fn run<T, Out>(
    a: &DevTensor<T::Host, 2>,
    b: &DevTensor<T::Host, 2>,
    c: &mut DevTensor<Out::Host, 2>,
) -> Result<LaunchStats, Error>
where
    T: MmaElement + Scalar<Host: ElementOf<T>>,
    Out: HostFloat,
{
    let ([rows, inner], [_, columns]) = (a.shape(), b.shape());
    check_shape("b", b.shape(), [inner, columns])?;
    check_shape("c", c.shape(), [rows, columns])?;
    if let Some(launched) = hopper::run::<T, Out>(a, b, c, None) {
        return launched;
    }
    let device = a.device().clone();
    let vectorized = Vectorized::new(a, b);
    let grid = [rows.div_ceil(BLOCK) * columns.div_ceil(BLOCK), 1, 1];
    if device.target().is_nvidia() {
        mma::matmul_mma::<T, Out>::new(vectorized).grid(grid).launch(&device, (a, b, c))
    } else {
        mfma::matmul_mfma::<T, Out>::new(vectorized).grid(grid).launch(&device, (a, b, c))
    }
}

/// How far an element may be off, for an inner dimension of `inner` and the sum of `|a| |b|` over it.
///
/// Each of the `inner` additions rounds by at most u of the sum so far. Such errors do not all point one way:
/// they stay below 4 sqrt(inner) u times the sum of absolute values with overwhelming probability
/// (N. J. Higham, T. Mary, "A new approach to probabilistic rounding error analysis", 2019, theorem 2.4). The
/// rounding to the type of C comes on top.
pub fn tolerance(inner: usize, absolute: f64) -> f64 {
    4.0 * (inner as f64).sqrt() * unit_roundoff(ScalarType::F32) * absolute
}

const INPUTS: &[ScalarType] = &[ScalarType::F16, ScalarType::Bf16];
const OUTPUTS: &[ScalarType] = &[ScalarType::F32, ScalarType::F16, ScalarType::Bf16];

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[
        TensorSpec { name: "a", dimensions: &["M", "K"], types: INPUTS, optional: false, about: "the left matrix" },
        TensorSpec { name: "b", dimensions: &["K", "N"], types: INPUTS, optional: false, about: "the right matrix" },
        expected("c", &["M", "N"]),
    ],
    outputs: &[TensorSpec { name: "c", dimensions: &["M", "N"], types: OUTPUTS, optional: false, about: "a b" }],
    dimensions: &[
        Dimension { name: "M", default: 100, about: "rows of a" },
        Dimension { name: "N", default: 72, about: "columns of b" },
        Dimension { name: "K", default: 80, about: "columns of a, rows of b" },
    ],
    run: |device, settings, inputs| match (settings.choice("dtype")?, settings.choice("out")?) {
        ("bf16", "f32") => run_typed::<BF16, F32>(device, settings, inputs),
        ("bf16", _) => run_typed::<BF16, BF16>(device, settings, inputs),
        (_, "f32") => run_typed::<F16, F32>(device, settings, inputs),
        _ => run_typed::<F16, F16>(device, settings, inputs),
    },
    reference: |settings, inputs| {
        let (a, b) = (&inputs["a"], &inputs["b"]);
        let ([rows, inner], [_, columns]) = (a.shape_of::<2>()?, b.shape_of::<2>()?);
        let (left, right) = (a.to_f64()?, b.to_f64()?);
        let numbers = reference::matmul(&left, &right, rows, columns);
        let absolute = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).collect::<Vec<_>>();
        let sums = reference::matmul(&absolute(&left), &absolute(&right), rows, columns);
        let out = if settings.choice("out")? == "f32" { ScalarType::F32 } else { a.scalar() };
        let largest = sums.iter().copied().fold(0.0, f64::max);
        Ok(vec![Wanted { tensor: "c", numbers, tolerance: tolerance(inner, largest) + unit_roundoff(out) }])
    },
};

fn run_typed<T, Out>(device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error>
where
    T: MmaElement + Scalar<Host: ElementOf<T>>,
    Out: HostFloat,
{
    let a = device.tensor_from::<T::Host, 2>(&inputs["a"])?;
    let b = match settings.choice("b")? {
        "columns" => device.tensor_from::<T::Host, 2>(&turned::<T::Host>(&inputs["b"])?)?.permute([1, 0])?,
        _ => device.tensor_from::<T::Host, 2>(&inputs["b"])?,
    };
    let mut c = device.tensor_uninit([a.shape()[0], b.shape()[1]])?;
    run::<T, Out>(&a, &b, &mut c)?;
    Ok(Tensors::from([("c".to_owned(), c.to_host()?)]))
}

/// The transpose of a matrix.
fn turned<H: lacewing_runtime::Element>(matrix: &HostTensor) -> Result<HostTensor, Error> {
    let [rows, columns] = matrix.shape_of::<2>()?;
    let elements = matrix.to_vec::<H>()?;
    let elements: Vec<H> = (0..columns).flat_map(|c| elements.iter().skip(c).step_by(columns).copied()).collect();
    HostTensor::new(&elements, &[columns, rows])
}

/// The tiles of the version for a target.
fn tiles(target: Target) -> Vec<Tile> {
    let (rows, columns, inner) =
        if target == Target::SM_90A { (2 * hopper::ROWS, 64, 64) } else { (BLOCK, BLOCK, BLOCK_K) };
    vec![Tile::new("M", rows), Tile::new("N", columns), Tile::new("K", inner)]
}

static LADDER: Laddered = Laddered { runner: &RUNNER, ladder: tiled(|_, target| tiles(target)) };

/// What a size does that is set.
const SIZES: &str = "M, N and K that tiles are compiled for on sm_90a; a run goes by its inputs";

/// Hopper's tiles for the sizes that are set, on an H100 or H200, and whether C is computed as its transpose.
fn hopper_tiles(settings: &Settings, bytes: usize, along_k: bool) -> Result<(HopperTiles, bool), Error> {
    let [rows, columns, inner] = [settings.usize("rows")?, settings.usize("columns")?, settings.usize("inner")?];
    let turned = hopper::is_turned([rows, columns], along_k);
    let sizes = if turned { [columns, rows, inner] } else { [rows, columns, inner] };
    let whole = |extent: usize| extent.is_multiple_of(hopper::SECTOR / bytes);
    let aligned = whole(inner) && (along_k || whole(columns));
    Ok((HopperTiles::new(&Problem { sizes, bytes, aligned, along_k, multiprocessors: 132 }), turned))
}

/// `matmul` by name.
pub static MATMUL: KernelEntry = KernelEntry {
    name: "matmul",
    about: "C = A B by tiles: wgmma on Hopper, mma.sync on other NVIDIA chips, MFMA on AMD",
    targets: &Target::ALL,
    parameters: &[
        Parameter::choice("dtype", &["f16", "bf16"], "f16", "element type of A and B"),
        Parameter::choice("out", &["f32", "same"], "f32", "element type of C: f32, or that of A and B"),
        Parameter::bool("vectorized", true, "rows of A and B can be read 16 bytes at a time; a run finds out itself"),
        Parameter::choice("b", &["rows", "columns"], "rows", "which of B's are contiguous"),
        Parameter::usize("rows", 4096, SIZES),
        Parameter::usize("columns", 4096, SIZES),
        Parameter::usize("inner", 4096, SIZES),
    ],
    build: |settings, target| match (settings.choice("dtype")?, settings.choice("out")?) {
        ("bf16", "f32") => build::<BF16, F32>(settings, target),
        ("bf16", _) => build::<BF16, BF16>(settings, target),
        (_, "f32") => build::<F16, F32>(settings, target),
        _ => build::<F16, F16>(settings, target),
    },
    runner: Some(&LADDER),
};

fn build<T: MmaElement, Out: Float>(settings: &Settings, target: Target) -> Result<Box<dyn AnyKernel>, Error> {
    let vectorized = settings.bool("vectorized")?;
    if target == Target::SM_90A && vectorized {
        return Ok(match hopper_tiles(settings, T::BYTES, settings.choice("b")? == "columns")? {
            (tiles, false) => Box::new(hopper::matmul_hopper::<T, Out>::new(tiles)),
            (tiles, true) => Box::new(hopper::matmul_hopper_strided::<T, Out>::new(tiles)),
        });
    }
    let vectorized = Vectorized { a: vectorized, b: vectorized };
    Ok(if target.is_nvidia() {
        Box::new(mma::matmul_mma::<T, Out>::new(vectorized))
    } else {
        Box::new(mfma::matmul_mfma::<T, Out>::new(vectorized))
    })
}
