//! The small bundled kernels against their references in f64: on two emulated chips, over awkward shapes and
//! layouts, and under several orders of the scheduler. Every element counts, and the tolerances are
//! derived where the kernels are.

use lacewing::core::ScalarType;
use lacewing::kernels::matmul::fp8;
use lacewing::kernels::reference::{self, unit_roundoff};
use lacewing::kernels::{HostFloat, axpy, matmul, rms_norm, softmax, transpose};
use lacewing::prelude::*;
use lacewing::runtime::compare::{Comparison, Unit};
use lacewing::runtime::emulator::{Check, Checks};
use lacewing::runtime::host::Random;
use lacewing::runtime::{Element, ElementOf, Error, LaunchStats};

/// Lengths around a warp, a wave, a block and a tile, and primes.
const LENGTHS: [usize; 11] = [1, 2, 31, 32, 33, 63, 64, 127, 128, 257, 1009];
const SEEDS: [u64; 3] = [0, 1, 12345];

fn devices() -> impl Iterator<Item = Device> {
    [Target::SM_80, Target::GFX942].into_iter().map(|target| Device::emulator(target).unwrap())
}

/// [`devices`], and the chip whose products sum in tensor memory.
fn product_devices() -> impl Iterator<Item = Device> {
    devices().chain(std::iter::once(Device::emulator(Target::SM_100A).unwrap()))
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Contiguous,
    /// Columns are contiguous instead of rows.
    ColumnsFirst,
    /// In the middle of a larger matrix, at an odd offset.
    Inside,
    /// The last element first.
    Backwards,
}

const LAYOUTS: [Layout; 4] = [Layout::Contiguous, Layout::ColumnsFirst, Layout::Inside, Layout::Backwards];

/// What lies around a matrix: nothing may depend on it, or change it.
const AROUND: f64 = -768.0;

/// A matrix with what is around it.
struct Matrix<H: Element> {
    view: DevTensor<H, 2>,
    whole: DevTensor<H, 2>,
}

impl<H: Element> Matrix<H> {
    fn new(device: &Device, [rows, columns]: [usize; 2], layout: Layout, numbers: &[f64]) -> Self {
        let upload = |shape: [usize; 2], numbers: &[f64]| -> DevTensor<H, 2> {
            device.tensor_from(&HostTensor::from_f64(H::TYPE, &shape, numbers).unwrap()).unwrap()
        };
        let shape = [rows, columns];
        match layout {
            Layout::Contiguous => {
                let whole = upload(shape, numbers);
                Matrix { view: whole.permute([0, 1]).unwrap(), whole }
            }
            Layout::ColumnsFirst => {
                let whole = upload([columns, rows], &reference::transpose(numbers, columns));
                Matrix { view: whole.permute([1, 0]).unwrap(), whole }
            }
            Layout::Inside => {
                let width = columns + 5;
                let mut around = vec![AROUND; (rows + 2) * width];
                for (i, row) in numbers.chunks(columns.max(1)).enumerate() {
                    around[(i + 1) * width + 3..][..columns].copy_from_slice(row);
                }
                let whole = upload([rows + 2, width], &around);
                let view = whole.slice(0, 1..rows + 1).unwrap().slice(1, 3..columns + 3).unwrap();
                Matrix { view, whole }
            }
            Layout::Backwards => {
                let whole = upload(shape, &numbers.iter().rev().copied().collect::<Vec<_>>());
                let last = whole.len().saturating_sub(1);
                Matrix { view: whole.as_strided(last, shape, [-(columns as i64), -1]).unwrap(), whole }
            }
        }
    }

    /// A matrix to be written: every element of it starts as a number that no kernel gives.
    fn output(device: &Device, shape: [usize; 2], layout: Layout) -> Self {
        Self::new(device, shape, layout, &vec![AROUND; shape[0] * shape[1]])
    }

    /// The elements; checks that as many as belong to the view were written, and none around it.
    fn read(&self) -> Vec<f64> {
        let numbers = self.view.to_host().unwrap().to_f64().unwrap();
        let kept = self.whole.to_host().unwrap().to_f64().unwrap().iter().filter(|x| **x == AROUND).count();
        let kept_inside = numbers.iter().filter(|x| **x == AROUND).count();
        assert_eq!(kept - kept_inside, self.whole.len() - self.view.len(), "something around the view was written");
        numbers
    }
}

/// Random numbers of a type, as f64.
fn numbers(scalar: ScalarType, count: usize, seed: u64) -> Vec<f64> {
    Random::new(seed).tensor(scalar, &[count], 1.0).unwrap().to_f64().unwrap()
}

#[track_caller]
fn check(what: &str, shape: &[usize], got: &[f64], wanted: &[f64], tolerance: f64) {
    let comparison = Comparison::new(what, shape, got, wanted, Unit::Relative, tolerance);
    assert!(comparison.holds(), "{what} {shape:?}: {comparison:?}");
}

/// Runs `launch` under each seed and gives the output, which is the same to the bit.
fn for_seeds(device: &Device, mut launch: impl FnMut(&Device) -> Vec<f64>) -> Vec<f64> {
    let bits = |numbers: &[f64]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let outputs = SEEDS.map(|seed| launch(&device.clone().with_seed(seed)));
    assert!(outputs.iter().all(|output| bits(output) == bits(&outputs[0])), "the scheduler changes the result");
    outputs.into_iter().next().unwrap()
}

fn check_axpy<T: HostFloat>(a: T::Host, a_number: f64) {
    for device in devices() {
        for n in [0, 4099].into_iter().chain(LENGTHS) {
            let (x, y) = (numbers(T::TYPE, n, 1), numbers(T::TYPE, n, 2));
            let got = for_seeds(&device, |device| {
                // One column of a matrix is a vector with a stride.
                let x = Matrix::<T::Host>::new(device, [n, 1], Layout::Inside, &x);
                let y = Matrix::<T::Host>::new(device, [n, 1], Layout::Backwards, &y);
                let column = |matrix: &Matrix<T::Host>| {
                    let offset = matrix.view.offset_bytes() / T::BYTES;
                    matrix.view.as_strided(offset, [n], [matrix.view.strides()[0]]).unwrap()
                };
                axpy::run::<T>(a, &column(&x), &mut column(&y)).unwrap();
                y.read()
            });
            let tolerance = unit_roundoff(T::TYPE) + unit_roundoff(ScalarType::F32);
            check("axpy", &[n], &got, &reference::axpy(a_number, &x, &y), tolerance);
        }
    }
}

#[test]
fn axpy_is_right() {
    check_axpy::<F32>(-1.75, -1.75);
    check_axpy::<F16>(half::f16::from_f32(0.3), half::f16::from_f32(0.3).to_f64());
    check_axpy::<BF16>(half::bf16::from_f32(3.0), 3.0);
}

fn check_transpose<T, H>(scalar: ScalarType)
where
    T: Scalar,
    H: Element + ElementOf<T>,
{
    let shapes = [[0, 5], [5, 0], [1, 1], [1, 70], [70, 1], [31, 33], [32, 32], [64, 32], [37, 101], [130, 67]];
    for device in devices() {
        for shape in shapes {
            let [rows, columns] = shape;
            let x = numbers(scalar, rows * columns, 3);
            for (from, to) in LAYOUTS.into_iter().zip(LAYOUTS.into_iter().cycle().skip(1)) {
                let got = for_seeds(&device, |device| {
                    let x = Matrix::<H>::new(device, shape, from, &x);
                    let mut y = Matrix::<H>::output(device, [columns, rows], to);
                    transpose::run::<T, H>(&x.view, &mut y.view).unwrap();
                    y.read()
                });
                check("transpose", &shape, &got, &reference::transpose(&x, columns), 0.0);
            }
        }
    }
}

#[test]
fn transpose_moves_every_element() {
    check_transpose::<F32, f32>(ScalarType::F32);
    check_transpose::<F16, half::f16>(ScalarType::F16);
    check_transpose::<F64, f64>(ScalarType::F64);
}

/// Runs a kernel from a matrix to one of the same shape over lengths of rows, layouts and seeds.
fn check_rows<T: HostFloat>(
    what: &str,
    launch: impl Fn(&DevTensor<T::Host, 2>, &mut DevTensor<T::Host, 2>) -> Result<LaunchStats, Error>,
    wanted: impl Fn(&[f64], usize) -> Vec<f64>,
    tolerance: fn(usize, ScalarType) -> f64,
) {
    for device in devices() {
        for (index, columns) in [0, 5003].into_iter().chain(LENGTHS).enumerate() {
            let shape = [[3, 1, 17, 0][index % 4], columns];
            let x = numbers(T::TYPE, shape[0] * columns, 4);
            let (from, to) = (LAYOUTS[index % 4], LAYOUTS[(index / 2) % 4]);
            let got = for_seeds(&device, |device| {
                let x = Matrix::<T::Host>::new(device, shape, from, &x);
                let mut y = Matrix::<T::Host>::output(device, shape, to);
                launch(&x.view, &mut y.view).unwrap();
                y.read()
            });
            check(what, &shape, &got, &wanted(&x, columns), tolerance(columns, T::TYPE));
        }
    }
}

#[test]
fn softmax_is_right() {
    check_rows::<F32>("softmax", softmax::run::<F32>, reference::softmax_rows, softmax::tolerance);
    check_rows::<F16>("softmax", softmax::run::<F16>, reference::softmax_rows, softmax::tolerance);
    check_rows::<BF16>("softmax", softmax::run::<BF16>, reference::softmax_rows, softmax::tolerance);
}

#[test]
fn softmax_has_no_overflow_and_gives_masked_elements_nothing() {
    let inf = f32::INFINITY;
    let columns = 300;
    for device in devices() {
        // The emulator would report the NaN that a row of -inf is documented to give.
        let device = device.with_checks(Checks::default().without(Check::Nan));
        let mut x = vec![0.0f32; 5 * columns];
        for (i, x) in x.iter_mut().enumerate() {
            *x = match i / columns {
                0 => 3e38 * ((i % 7) as f32 / 6.0),
                1 => -3e38,
                2 if i % 3 == 0 => -inf,
                3 => -inf,
                4 if i % columns == 299 => f32::NAN,
                _ => (i % 5) as f32,
            };
        }
        let x_device = device.tensor_from_slice(&x, [5, columns]).unwrap();
        let mut y = device.tensor_uninit([5, columns]).unwrap();
        softmax::run::<F32>(&x_device, &mut y).unwrap();
        let got: Vec<f64> = y.to_vec().unwrap().into_iter().map(f64::from).collect();
        let exact: Vec<f64> = x.iter().copied().map(f64::from).collect();
        let finite = 3 * columns;
        let wanted = reference::softmax_rows(&exact[..finite], columns);
        check("softmax", &[3, columns], &got[..finite], &wanted, softmax::tolerance(columns, ScalarType::F32));
        assert!(exact[..finite].iter().zip(&got).all(|(x, y)| *x != f64::NEG_INFINITY || *y == 0.0));
        assert!(got[finite..].iter().all(|x| x.is_nan()), "a row of -inf or with NaN is NaN");
    }
}

fn check_rms_norm<T: HostFloat>() {
    const EPSILON: f32 = 1e-5;
    let weights = |columns| numbers(T::TYPE, columns, 5);
    check_rows::<T>(
        "rms_norm",
        |x, y| {
            let [_, columns] = x.shape();
            let weight = Matrix::<T::Host>::new(x.device(), [columns, 1], Layout::Inside, &weights(columns));
            let offset = weight.view.offset_bytes() / T::BYTES;
            let weight = weight.view.as_strided(offset, [columns], [weight.view.strides()[0]])?;
            rms_norm::run::<T>(x, &weight, y, EPSILON)
        },
        |x, columns| reference::rms_norm(x, &weights(columns), EPSILON.into()),
        rms_norm::tolerance,
    );
}

#[test]
fn rms_norm_is_right() {
    check_rms_norm::<F32>();
    check_rms_norm::<F16>();
    check_rms_norm::<BF16>();
}

#[test]
fn rms_norm_of_zeros_is_zero() {
    for device in devices() {
        let x = device.tensor_zeros::<f32, 2>([2, 130]).unwrap();
        let weight = device.tensor_from_slice(&[3.0; 130], [130]).unwrap();
        let mut y = device.tensor_uninit([2, 130]).unwrap();
        rms_norm::run::<F32>(&x, &weight, &mut y, 1e-5).unwrap();
        assert!(y.to_vec().unwrap().iter().all(|y| *y == 0.0));
    }
}

/// Checks each element of C against its own bound.
fn check_matmul<T, Out>(device: &Device, sizes: [usize; 3], layouts: [Layout; 3])
where
    T: MmaElement + HostFloat,
    Out: HostFloat,
{
    check_tiled_matmul::<T, Out>(device, matmul::TilingChoice::Auto, sizes, layouts);
}

fn check_tiled_matmul<T, Out>(
    device: &Device,
    tiling: matmul::TilingChoice,
    [rows, columns, inner]: [usize; 3],
    [of_a, of_b, of_c]: [Layout; 3],
) where
    T: MmaElement + HostFloat,
    Out: HostFloat,
{
    let (a, b) = (numbers(T::TYPE, rows * inner, 6), numbers(T::TYPE, inner * columns, 7));
    let got = for_seeds(device, |device| {
        let a = Matrix::<T::Host>::new(device, [rows, inner], of_a, &a);
        let b = Matrix::<T::Host>::new(device, [inner, columns], of_b, &b);
        let mut c = Matrix::<Out::Host>::output(device, [rows, columns], of_c);
        matmul::run_tiled::<T, Out>(tiling, &a.view, &b.view, &mut c.view).unwrap();
        c.read()
    });
    let absolute = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).collect::<Vec<_>>();
    let wanted = reference::matmul(&a, &b, rows, columns);
    let sums = reference::matmul(&absolute(&a), &absolute(&b), rows, columns);
    assert_eq!(got.len(), wanted.len());
    for (index, ((got, wanted), sum)) in got.iter().zip(&wanted).zip(&sums).enumerate() {
        let summed = matmul::tolerance(inner, *sum);
        // Below the smallest normal number of f16, rounding errs by half its smallest subnormal.
        let bound = summed + unit_roundoff(Out::TYPE) * (wanted.abs() + summed).max(f64::powi(2.0, -14));
        assert!(
            (got - wanted).abs() <= bound,
            "{rows} x {columns} x {inner} on {device}: element {index} is {got}, not {wanted} +- {bound}"
        );
    }
}

#[test]
fn matmul_is_right_for_any_shape() {
    let shapes = [
        [1, 1, 1],
        [2, 3, 0],
        [0, 3, 4],
        [3, 0, 4],
        [16, 8, 16],
        [64, 64, 32],
        [65, 63, 33],
        [128, 64, 96],
        [7, 130, 104],
        [97, 101, 103],
        [3, 8, 1016],
    ];
    for device in product_devices() {
        for shape in shapes {
            check_matmul::<F16, F32>(&device, shape, [Layout::Contiguous; 3]);
            check_matmul::<BF16, BF16>(&device, shape, [Layout::Contiguous; 3]);
        }
        check_matmul::<F16, F16>(&device, [70, 72, 80], [Layout::Contiguous; 3]);
        check_matmul::<BF16, F32>(&device, [70, 72, 80], [Layout::Contiguous; 3]);
    }
}

/// More than one tile each way, less than a step and more steps than stages, whole steps and parts, and rows that go 16, 8, 4
/// and 2 bytes at a time.
#[test]
fn matmul_is_right_for_every_tiling() {
    use matmul::TilingChoice::{Large, Medium, Small, Tiny};
    let device = Device::emulator(Target::SM_80).unwrap();
    let contiguous = [Layout::Contiguous; 3];
    for tiling in [Tiny, Small, Medium, Large] {
        check_tiled_matmul::<BF16, BF16>(&device, tiling, [136, 264, 320], contiguous);
        check_tiled_matmul::<F16, F32>(&device, tiling, [136, 264, 64], contiguous);
        check_tiled_matmul::<F16, F16>(&device, tiling, [3, 260, 204], contiguous);
        check_tiled_matmul::<BF16, F32>(&device, tiling, [130, 66, 34], contiguous);
        check_tiled_matmul::<F16, F16>(&device, tiling, [131, 65, 33], contiguous);
        check_tiled_matmul::<F16, F16>(&device, tiling, [70, 72, 40], [Layout::Inside; 3]);
    }
}

#[test]
fn matmul_is_right_for_any_layout() {
    for device in product_devices() {
        for a in LAYOUTS {
            for b in LAYOUTS {
                check_matmul::<F16, F32>(&device, [40, 72, 48], [a, b, Layout::Contiguous]);
            }
        }
        for c in LAYOUTS {
            check_matmul::<BF16, F32>(&device, [70, 65, 40], [Layout::Contiguous, Layout::Contiguous, c]);
        }
    }
}

/// Where rows are vectors, by wgmma; all else by mma.sync. Either way by one call.
#[test]
fn matmul_is_right_on_hopper() {
    let device = Device::emulator(Target::SM_90A).unwrap();
    let contiguous = [Layout::Contiguous; 3];
    for shape in [[0, 8, 8], [8, 8, 0], [1, 8, 8], [64, 64, 64], [130, 136, 200], [97, 101, 103], [70, 1000, 72]] {
        check_matmul::<BF16, BF16>(&device, shape, contiguous);
        check_matmul::<F16, F32>(&device, shape, [Layout::Contiguous, Layout::ColumnsFirst, Layout::Contiguous]);
    }
    for layout in LAYOUTS {
        check_matmul::<F16, F16>(&device, [136, 72, 64], [layout, Layout::Contiguous, Layout::Contiguous]);
        check_matmul::<BF16, F32>(&device, [136, 72, 64], [Layout::Contiguous, layout, layout]);
    }
}

#[test]
fn matmul_fp8_says_what_it_does_not_take() {
    type Eighth = <F8E4M3 as Scalar>::Host;
    let hopper = Device::emulator(Target::SM_90A).unwrap();
    let zeros = |device: &Device, rows, columns| device.tensor_zeros::<Eighth, 2>([rows, columns]).unwrap();
    let mut c = hopper.tensor_uninit::<half::bf16, 2>([3, 5]).unwrap();
    let text = |outcome: Result<LaunchStats, Error>| outcome.unwrap_err().to_string();
    let (a, b) = (zeros(&hopper, 3, 32), zeros(&hopper, 5, 32));
    // Nothing to add up is zero.
    fp8::run::<F8E4M3, BF16>(1.0, &zeros(&hopper, 3, 0), &zeros(&hopper, 5, 0), &mut c).unwrap();
    assert!(c.to_vec().unwrap().iter().all(|x| x.to_f32() == 0.0));
    let refused = text(fp8::run::<F8E4M3, BF16>(1.0, &zeros(&hopper, 3, 31), &zeros(&hopper, 5, 31), &mut c));
    assert!(
        refused.contains("8-bit products read both along k, in rows that start at multiples of 16 bytes"),
        "{refused}"
    );
    let across = zeros(&hopper, 32, 5).permute([1, 0]).unwrap();
    let refused = text(fp8::run::<F8E4M3, BF16>(1.0, &a, &across, &mut c));
    assert!(refused.contains("`b` [1, 5]"), "{refused}");
    let refused = text(fp8::run::<F8E4M3, BF16>(f32::NAN, &a, &b, &mut c));
    assert!(refused.contains("`scale` is NaN"), "{refused}");
    let refused = text(fp8::run::<F8E4M3, BF16>(1.0, &a, &zeros(&hopper, 4, 32), &mut c));
    assert!(refused.contains("`c` has shape [3, 5]; [3, 4] is needed"), "{refused}");
    let ampere = Device::emulator(Target::SM_80).unwrap();
    let mut c = ampere.tensor_uninit::<half::bf16, 2>([3, 5]).unwrap();
    let refused = text(fp8::run::<F8E4M3, BF16>(1.0, &zeros(&ampere, 3, 32), &zeros(&ampere, 5, 32), &mut c));
    assert!(refused.contains("`matmul_fp8` has no version for sm_80"), "{refused}");
}

#[test]
fn shapes_that_do_not_go_together_are_refused() {
    let device = Device::emulator(Target::SM_80).unwrap();
    let matrix = |rows, columns| device.tensor_zeros::<half::f16, 2>([rows, columns]).unwrap();
    let vector = |n| device.tensor_zeros::<half::f16, 1>([n]).unwrap();
    let x = matrix(3, 4);
    let refused = [
        axpy::run::<F16>(half::f16::ONE, &vector(3), &mut vector(4)),
        transpose::run::<F16, _>(&x, &mut matrix(3, 4)),
        softmax::run::<F16>(&x, &mut matrix(4, 3)),
        rms_norm::run::<F16>(&x, &vector(3), &mut matrix(3, 4), 0.0),
        matmul::run::<F16, F16>(&x, &matrix(3, 4), &mut matrix(3, 4)),
    ];
    let texts = refused.map(|outcome| outcome.unwrap_err().to_string());
    assert!(texts[0].contains("`x` has shape [3]; [4] is needed"), "{}", texts[0]);
    assert!(texts[1].contains("`y` has shape [3, 4]; [4, 3] is needed"), "{}", texts[1]);
    assert!(texts[2].contains("`y` has shape [4, 3]; [3, 4] is needed"), "{}", texts[2]);
    assert!(texts[3].contains("`weight` has shape [3]; [4] is needed"), "{}", texts[3]);
    assert!(texts[4].contains("`b` has shape [3, 4]; [4, 4] is needed"), "{}", texts[4]);
}

#[test]
fn every_bundled_kernel_with_a_runner_holds_from_the_command_line() {
    use lacewing::cli::{Io, run};
    for name in ["axpy", "transpose", "softmax", "rms_norm", "matmul"] {
        for device in ["emulator:sm_80", "emulator:gfx942"] {
            let arguments = ["lacewing", "run", name, "--device", device, "--random", "1", "--check"];
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let entries = lacewing::kernels::ENTRIES;
            let status = run(entries, arguments.map(Into::into), &mut Io { out: &mut out, err: &mut err });
            let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
            assert_eq!(status, 0, "{name}: {out}{err}");
            assert!(out.contains(": holds"), "{name}: {out}");
        }
    }
}
