//! `matmul`: C = A B on matrix units.
//!
//! | argument | shape | |
//! |---|---|---|
//! | `a` | `[M, K]` of f16 or bf16 | any strides |
//! | `b` | `[K, N]` of the same | any strides |
//! | `c` | `[M, N]` of f32 or the type of A | any strides; the result |
//!
//! M, N and K may be anything, 0 too. Products are exact and sums are f32. A block computes a tile of C, and the inner
//! dimension goes by in steps.
//!
//! | file | runs on |
//! |---|---|
//! | [`hopper`] | sm_90a, where rows or columns of A and of B are 16-byte vectors; not where a tiling of `mma` is asked for |
//! | [`blackwell`] | sm_100a, unless a tiling of `mma` is asked for |
//! | [`mma`] | other NVIDIA chips, and what `hopper` does not take |
//! | [`mfma`] | AMD chips |
//!
//! [`fp8`] is `matmul_fp8`, for 8-bit elements.

pub mod blackwell;
pub mod fp8;
pub mod hopper;
pub mod mfma;
pub mod mma;

use lacewing_core::prelude::*;
use lacewing_core::types::Scalar;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter, Settings};
use lacewing_runtime::runner::{Dimension, Laddered, SimpleRunner, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, Element, ElementOf, Error, HostTensor, KernelExt, LaunchStats, Tensors};

use self::hopper::{HopperTiles, Problem};
use crate::ladders::tiled;
use crate::reference::{self, unit_roundoff};
use crate::views::{HostFloat, check_shape, expected, rows_are_vectors};

/// How many elements of a row of each matrix a product is compiled to move at a time.
///
/// They are neighbours in memory and aligned together, and rows are whole multiples of them: up to 16 bytes, or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vectorized {
    /// Of A.
    pub a: usize,
    /// Of B.
    pub b: usize,
    /// Of C.
    pub c: usize,
}

impl Vectorized {
    /// Single elements of any layout.
    pub const NONE: Self = Vectorized { a: 1, b: 1, c: 1 };

    /// The most that the matrices allow.
    fn new<A: Element, C: Element>(a: &DevTensor<A, 2>, b: &DevTensor<A, 2>, c: &DevTensor<C, 2>) -> Self {
        Vectorized { a: widest(a), b: widest(b), c: widest(c) }
    }
}

/// Elements of 16, 8 or 4 bytes that can be moved together.
fn widest<H: Element>(tensor: &DevTensor<H, 2>) -> usize {
    let [_, columns] = tensor.shape();
    let fits = |bytes: &usize| columns.is_multiple_of(bytes / H::TYPE.bytes()) && rows_are_vectors(tensor, *bytes);
    [16, 8, 4].into_iter().find(fits).map_or(1, |bytes| bytes / H::TYPE.bytes())
}

/// Which of [`mma::Tiling`]'s a launch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TilingChoice {
    /// By the shape: [`mma::Tiling::for_shape`].
    Auto,
    /// [`mma::Tiling::TINY`].
    Tiny,
    /// [`mma::Tiling::SMALL`].
    Small,
    /// [`mma::Tiling::MEDIUM`].
    Medium,
    /// [`mma::Tiling::LARGE`].
    Large,
}

impl TilingChoice {
    const NAMES: &[&str] = &["auto", "tiny", "small", "medium", "large"];

    fn from_settings(settings: &Settings) -> Result<Self, Error> {
        Ok(match settings.choice("tiling")? {
            "tiny" => TilingChoice::Tiny,
            "small" => TilingChoice::Small,
            "medium" => TilingChoice::Medium,
            "large" => TilingChoice::Large,
            _ => TilingChoice::Auto,
        })
    }

    /// The tiling, or what `auto` gives.
    fn or(self, auto: impl FnOnce() -> mma::Tiling) -> mma::Tiling {
        match self {
            TilingChoice::Auto => auto(),
            TilingChoice::Tiny => mma::Tiling::TINY,
            TilingChoice::Small => mma::Tiling::SMALL,
            TilingChoice::Medium => mma::Tiling::MEDIUM,
            TilingChoice::Large => mma::Tiling::LARGE,
        }
    }
}

/// `a / b`, rounded up, of what is not negative: without the steps that signs would take, and right up to the largest.
#[device]
fn divide_up(a: I32, b: usize) -> I32 {
    ((a.cast::<U32>() + (b as u32 - 1)) / (b as u32)).cast::<I32>()
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
    run_tiled::<T, Out>(TilingChoice::Auto, a, b, c)
}

/// [`run`] with a choice of tiling, which the version with `mma.sync` alone has: a choice other than
/// [`TilingChoice::Auto`] takes that version on Hopper, too.
///
/// # Errors
/// As [`run`].
pub fn run_tiled<T, Out>(
    tiling: TilingChoice,
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
    if tiling == TilingChoice::Auto
        && let Some(launched) = hopper::run::<T, Out>(a, b, c, None)
    {
        return launched;
    }
    let device = a.device().clone();
    let vectorized = Vectorized::new(a, b, c);
    if device.target() == Target::SM_100A && tiling == TilingChoice::Auto {
        let grid = [blackwell::blocks(rows, columns), 1, 1];
        return blackwell::matmul_tcgen05::<T, Out>::new(vectorized).grid(grid).launch(&device, (a, b, c));
    }
    if device.target().is_nvidia() {
        let (processors, shared) = (device.multiprocessors() as usize, device.max_shared_bytes() as usize);
        let tiling = tiling.or(|| mma::Tiling::for_shape(rows, columns, processors, shared));
        let grid = [tiling.blocks(rows, columns), 1, 1];
        let whole_steps = tiling.has_whole_steps(inner);
        mma::matmul_mma::<T, Out>::new(tiling, vectorized, whole_steps).grid(grid).launch(&device, (a, b, c))
    } else {
        let grid = [mfma::blocks(rows, columns), 1, 1];
        mfma::matmul_mfma::<T, Out>::new(Vectorized { c: 1, ..vectorized }).grid(grid).launch(&device, (a, b, c))
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
        "columns" => device.tensor_from::<T::Host, 2>(&transposed::<T::Host>(&inputs["b"])?)?.permute([1, 0])?,
        _ => device.tensor_from::<T::Host, 2>(&inputs["b"])?,
    };
    let mut c = device.tensor_uninit([a.shape()[0], b.shape()[1]])?;
    run_tiled::<T, Out>(TilingChoice::from_settings(settings)?, &a, &b, &mut c)?;
    Ok(Tensors::from([("c".to_owned(), c.to_host()?)]))
}

/// The transpose of a matrix.
fn transposed<H: Element>(matrix: &HostTensor) -> Result<HostTensor, Error> {
    let [rows, columns] = matrix.shape_of::<2>()?;
    let elements = matrix.to_vec::<H>()?;
    let elements: Vec<H> = (0..columns).flat_map(|c| elements.iter().skip(c).step_by(columns).copied()).collect();
    HostTensor::new(&elements, &[columns, rows])
}

static LADDER: Laddered = Laddered {
    runner: &RUNNER,
    ladder: tiled(|settings, target| {
        let choice = TilingChoice::from_settings(settings).unwrap_or(TilingChoice::Auto);
        let [rows, columns, inner] = match choice {
            TilingChoice::Auto if target == Target::SM_90A => [2 * hopper::ROWS, 64, 64],
            TilingChoice::Auto if target == Target::SM_100A => blackwell::TILE,
            choice if target.is_nvidia() => choice.or(|| mma::Tiling::TINY).shape(),
            _ => mfma::TILE,
        };
        vec![Tile::new("M", rows), Tile::new("N", columns), Tile::new("K", inner)]
    }),
};

/// What a size does that is set.
const SIZES: &str = "M, N and K that tiles are compiled for on sm_90a; a run goes by its inputs";

/// Hopper's tiles for the sizes that are set, on an H100 or H200.
fn hopper_tiles(settings: &Settings, bytes: usize, k_major: bool) -> Result<HopperTiles, Error> {
    let [rows, columns, inner] = [settings.usize("rows")?, settings.usize("columns")?, settings.usize("inner")?];
    let whole = |extent: usize| extent.is_multiple_of(hopper::SECTOR / bytes);
    let problem = Problem {
        sizes: [rows, columns, inner],
        bytes,
        aligned: [whole(inner), whole(if k_major { inner } else { columns })],
        m_major: false,
        k_major,
        c_in_columns: false,
        multiprocessors: 132,
    };
    Ok(HopperTiles::best(&problem).0)
}

/// `matmul` by name.
pub static MATMUL: KernelEntry = KernelEntry {
    name: "matmul",
    about: "C = A B by tiles: wgmma on Hopper, in tensor memory on Blackwell, mma.sync on sm_80, MFMA on AMD",
    targets: &Target::ALL,
    parameters: &[
        Parameter::choice("dtype", &["f16", "bf16"], "f16", "element type of A and B"),
        Parameter::choice("out", &["f32", "same"], "f32", "element type of C: f32, or that of A and B"),
        Parameter::choice(
            "tiling",
            TilingChoice::NAMES,
            "auto",
            "tiles of the mma.sync version: tiny is 64 x 64, small 64 x 128, medium 128 x 128, large 128 x 256; auto goes by shape",
        ),
        Parameter::bool("vectorized", true, "rows go 16 bytes at a time, and K is whole steps; a run finds out itself"),
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
    let choice = TilingChoice::from_settings(settings)?;
    if target == Target::SM_90A && choice == TilingChoice::Auto && settings.bool("vectorized")? {
        let tiles = hopper_tiles(settings, T::BYTES, settings.choice("b")? == "columns")?;
        return Ok(Box::new(hopper::matmul_hopper::<T, Out>::new(tiles)));
    }
    let widest = |bytes: usize| 16 / bytes.max(1);
    let vectorized = match settings.bool("vectorized")? {
        true => Vectorized { a: widest(T::BYTES), b: widest(T::BYTES), c: widest(Out::BYTES) },
        false => Vectorized::NONE,
    };
    Ok(if target == Target::SM_100A && choice == TilingChoice::Auto {
        Box::new(blackwell::matmul_tcgen05::<T, Out>::new(vectorized))
    } else if target.is_nvidia() {
        let tiling = choice.or(|| mma::Tiling::LARGE);
        Box::new(mma::matmul_mma::<T, Out>::new(tiling, vectorized, vectorized != Vectorized::NONE))
    } else {
        Box::new(mfma::matmul_mfma::<T, Out>::new(Vectorized { c: 1, ..vectorized }))
    })
}
