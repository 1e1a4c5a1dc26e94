//! `matmul_fp8`: C = scale A B^T of 8-bit floats, on Hopper.
//!
//! | argument | shape | |
//! |---|---|---|
//! | `a` | `[M, K]` of f8e4m3 or f8e5m2 | rows of 16-byte vectors |
//! | `b` | `[N, K]` of the same | rows of 16-byte vectors |
//! | `c` | `[M, N]` of f32, bf16 or f16 | any strides; the result |
//! | `scale` | a number | what the product is multiplied with, in f32: as a rule the scales of A and B |
//!
//! Both matrices lie along k, because 8-bit products have no bits for transposed operands (PTX ISA, "wgmma.mma_async").
//!
//! On a GPU, an instruction adds 32 products and the sum so far with fewer bits than f32 has: each term is cut to about 13
//! bits below the largest of them. cuBLAS calls this fast accumulation. The emulator adds in f32, and is held to that.

use lacewing_core::prelude::*;
use lacewing_core::types::Scalar;
use lacewing_core::{ScalarType, Target};
use lacewing_runtime::compare::Comparison;
use lacewing_runtime::host::Random;
use lacewing_runtime::registry::{AnyKernel, KernelEntry, Parameter, Settings};
use lacewing_runtime::runner::{Dimension, Laddered, Runner, SimpleRunner, Sizes, TensorSpec, Tile, Wanted};
use lacewing_runtime::{DevTensor, Device, Element, ElementOf, Error, HostTensor, LaunchStats, Tensors};

use super::hopper::{self, HopperTiles};
use super::hopper_tiles;
use crate::ladders::tiled;
use crate::reference::{self, unit_roundoff};
use crate::views::{HostFloat, check_shape, expected};

/// Elements of 16 bytes.
const CHUNK: usize = 16;

/// C = scale A B^T, with A `[M, K]`, B `[N, K]` and C `[M, N]`.
///
/// # Errors
/// [`Error::Shape`] when the shapes do not go together or the rows of A or B are no 16-byte vectors,
/// [`Error::Setting`] on another chip than sm_90a or for a scale that is no number, and all of a launch.
pub fn run<T, Out>(
    scale: f32,
    a: &DevTensor<T::Host, 2>,
    b: &DevTensor<T::Host, 2>,
    c: &mut DevTensor<Out::Host, 2>,
) -> Result<LaunchStats, Error>
where
    T: WgmmaElement + Scalar<Host: ElementOf<T>>,
    Out: HostFloat,
{
    let ([rows, inner], [columns, _]) = (a.shape(), b.shape());
    check_shape("b", b.shape(), [columns, inner])?;
    check_shape("c", c.shape(), [rows, columns])?;
    let target = a.device().target();
    if target != Target::SM_90A {
        return Err(Error::Setting(format!("`matmul_fp8` has no version for {target}: 8-bit products are of sm_90a")));
    }
    if !scale.is_finite() {
        return Err(Error::Setting(format!("`scale` is {scale}: a product times that is no number")));
    }
    if c.is_empty() {
        return Ok(LaunchStats::default());
    }
    if inner == 0 {
        let zeros = HostTensor::from_f64(Out::TYPE, &[1], &[0.0])?.to_vec::<Out::Host>()?;
        c.copy_from(&zeros.repeat(rows * columns))?;
        return Ok(LaunchStats::default());
    }
    let launched = hopper::run::<T, Out>(a, &b.permute([1, 0])?, c, Some(scale));
    launched.unwrap_or_else(|| {
        Err(Error::Shape(format!(
            "`a` has strides {:?} and `b` {:?}: 8-bit products read both along k, in rows that start at multiples of 16 bytes \
             and whose elements are neighbours",
            a.strides(),
            b.strides()
        )))
    })
}

/// What an element of a GPU may be off by beside the rounding of f32 sums: the bits that each instruction of 32 products
/// cuts off. `absolute` is the sum of `|a| |b|`. As in [`super::tolerance`], errors do not all point one way; on an H200,
/// cuBLAS's are up to 0.8, 2.6, 3.0 and 3.1 units of 2^-13 for 32, 128, 1024 and 4096 products.
fn cut_off(inner: usize, absolute: f64) -> f64 {
    const CUT: f64 = 1.0 / 8192.0;
    2.0 * (inner.div_ceil(32) as f64).sqrt() * CUT * absolute
}

/// The largest element of `scale |A| |B|^T`.
fn largest_sum(settings: &Settings, inputs: &Tensors) -> Result<f64, Error> {
    let (a, b) = (&inputs["a"], &inputs["b"]);
    let ([rows, inner], [columns, _]) = (a.shape_of::<2>()?, b.shape_of::<2>()?);
    let absolute = |numbers: Vec<f64>| numbers.into_iter().map(f64::abs).collect::<Vec<_>>();
    let right = reference::transpose(&absolute(b.to_f64()?), inner);
    let sums = reference::matmul(&absolute(a.to_f64()?), &right, rows, columns);
    Ok(sums.into_iter().fold(0.0, f64::max) * f64::from(settings.f32("scale")?).abs())
}

/// [`RUNNER`], which knows the emulator's sums of f32, with what a GPU cuts off.
struct OfEights;

impl Runner for OfEights {
    fn inputs(&self) -> &'static [TensorSpec] {
        RUNNER.inputs()
    }

    fn outputs(&self) -> &'static [TensorSpec] {
        RUNNER.outputs()
    }

    fn dimensions(&self) -> &'static [Dimension] {
        RUNNER.dimensions()
    }

    fn random(&self, settings: &Settings, sizes: &Sizes, random: &mut Random) -> Result<Tensors, Error> {
        RUNNER.random(settings, sizes, random)
    }

    fn prepare(&self, settings: &mut Settings, inputs: &mut Tensors, notices: &mut Vec<String>) -> Result<(), Error> {
        RUNNER.prepare(settings, inputs, notices)
    }

    fn run(&self, device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
        RUNNER.run(device, settings, inputs)
    }

    fn compare(&self, settings: &Settings, inputs: &Tensors, outputs: &Tensors) -> Result<Vec<Comparison>, Error> {
        RUNNER.compare(settings, inputs, outputs)
    }

    fn compare_from_gpu(
        &self,
        settings: &Settings,
        inputs: &Tensors,
        outputs: &Tensors,
    ) -> Result<Vec<Comparison>, Error> {
        let [_, inner] = inputs["a"].shape_of::<2>()?;
        let more = cut_off(inner, largest_sum(settings, inputs)?);
        let mut comparisons = RUNNER.compare(settings, inputs, outputs)?;
        comparisons.iter_mut().for_each(|comparison| comparison.tolerance += more);
        Ok(comparisons)
    }
}

const INPUTS: &[ScalarType] = &[ScalarType::F8E4M3, ScalarType::F8E5M2];
const OUTPUTS: &[ScalarType] = &[ScalarType::F32, ScalarType::Bf16, ScalarType::F16];

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[
        TensorSpec { name: "a", dimensions: &["M", "K"], types: INPUTS, optional: false, about: "the left matrix" },
        TensorSpec {
            name: "b",
            dimensions: &["N", "K"],
            types: INPUTS,
            optional: false,
            about: "the right matrix, column by column",
        },
        expected("c", &["M", "N"]),
    ],
    outputs: &[TensorSpec {
        name: "c",
        dimensions: &["M", "N"],
        types: OUTPUTS,
        optional: false,
        about: "scale times a times the transpose of b",
    }],
    dimensions: &[
        Dimension { name: "M", default: 100, about: "rows of a" },
        Dimension { name: "N", default: 72, about: "rows of b" },
        Dimension { name: "K", default: 80, about: "columns of a and b" },
    ],
    run: |device, settings, inputs| match settings.choice("dtype")? {
        "f8e5m2" => run_typed::<F8E5M2>(device, settings, inputs),
        _ => run_typed::<F8E4M3>(device, settings, inputs),
    },
    reference: |settings, inputs| {
        let (a, b) = (&inputs["a"], &inputs["b"]);
        let ([rows, inner], [columns, _]) = (a.shape_of::<2>()?, b.shape_of::<2>()?);
        let (left, right) = (a.to_f64()?, reference::transpose(&b.to_f64()?, inner));
        let scale = f64::from(settings.f32("scale")?);
        let mut numbers = reference::matmul(&left, &right, rows, columns);
        numbers.iter_mut().for_each(|x| *x *= scale);
        let tolerance = super::tolerance(inner, largest_sum(settings, inputs)?) + unit_roundoff(output(settings)?);
        Ok(vec![Wanted { tensor: "c", numbers, tolerance }])
    },
};

/// The type of C.
fn output(settings: &Settings) -> Result<ScalarType, Error> {
    Ok(match settings.choice("out")? {
        "f32" => ScalarType::F32,
        "f16" => ScalarType::F16,
        _ => ScalarType::Bf16,
    })
}

fn run_typed<T>(device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error>
where
    T: WgmmaElement + Scalar<Host: ElementOf<T>>,
{
    fn into<T, Out>(device: &Device, scale: f32, inputs: &Tensors) -> Result<Tensors, Error>
    where
        T: WgmmaElement + Scalar<Host: ElementOf<T>>,
        Out: HostFloat,
    {
        let (a, b) = (vectors::<T::Host>(device, &inputs["a"])?, vectors::<T::Host>(device, &inputs["b"])?);
        let mut c = device.tensor_uninit([a.shape()[0], b.shape()[0]])?;
        run::<T, Out>(scale, &a, &b, &mut c)?;
        Ok(Tensors::from([("c".to_owned(), c.to_host()?)]))
    }
    let scale = settings.f32("scale")?;
    match output(settings)? {
        ScalarType::F32 => into::<T, F32>(device, scale, inputs),
        ScalarType::F16 => into::<T, F16>(device, scale, inputs),
        _ => into::<T, BF16>(device, scale, inputs),
    }
}

/// A matrix on a device, in rows that start at multiples of 16 bytes.
fn vectors<H: Element>(device: &Device, matrix: &HostTensor) -> Result<DevTensor<H, 2>, Error> {
    let [rows, columns] = matrix.shape_of::<2>()?;
    if columns.is_multiple_of(CHUNK) {
        return device.tensor_from(matrix);
    }
    let pitch = columns.next_multiple_of(CHUNK);
    let mut bytes = Vec::with_capacity(rows * pitch);
    for row in matrix.bytes().chunks(columns) {
        bytes.extend_from_slice(row);
        bytes.resize(bytes.len().next_multiple_of(pitch), 0);
    }
    device.tensor_from::<H, 2>(&HostTensor::from_bytes(H::TYPE, &[rows, pitch], bytes)?)?.slice(1, 0..columns)
}

static LADDER: Laddered = Laddered {
    runner: &OfEights,
    ladder: tiled(|_, _| vec![Tile::new("M", 2 * hopper::ROWS), Tile::new("N", 64), Tile::new("K", 128)]),
};

/// `matmul_fp8` by name.
pub static MATMUL_FP8: KernelEntry = KernelEntry {
    name: "matmul_fp8",
    about: "C = scale A B^T of 8-bit floats by tiles: wgmma on Hopper",
    targets: &[Target::SM_90A],
    parameters: &[
        Parameter::choice("dtype", &["f8e4m3", "f8e5m2"], "f8e4m3", "element type of A and B"),
        Parameter::choice("out", &["bf16", "f16", "f32"], "bf16", "element type of C"),
        Parameter::f32("scale", 1.0, "what the product is multiplied with"),
        Parameter::usize("rows", 4096, super::SIZES),
        Parameter::usize("columns", 4096, super::SIZES),
        Parameter::usize("inner", 4096, super::SIZES),
    ],
    build: |settings, _| match settings.choice("dtype")? {
        "f8e5m2" => build::<F8E5M2>(settings),
        _ => build::<F8E4M3>(settings),
    },
    runner: Some(&LADDER),
};

fn build<T: WgmmaElement>(settings: &Settings) -> Result<Box<dyn AnyKernel>, Error> {
    fn into<T: WgmmaElement, Out: Float>(tiles: HopperTiles) -> Box<dyn AnyKernel> {
        Box::new(hopper::matmul_hopper_scaled::<T, Out>::new(tiles))
    }
    let tiles = hopper_tiles(settings, T::BYTES, true)?;
    Ok(match output(settings)? {
        ScalarType::F32 => into::<T, F32>(tiles),
        ScalarType::F16 => into::<T, F16>(tiles),
        _ => into::<T, BF16>(tiles),
    })
}
