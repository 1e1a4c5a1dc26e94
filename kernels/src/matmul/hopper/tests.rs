//! Every shape of tiles on the emulator, under all its checks, against sums in f64.

use half::{bf16, f16};
use lacewing_core::lower::{EmitOptions, Report, find_nvdisasm, find_ptxas};
use lacewing_core::trace_kernel;
use lacewing_runtime::host::{HostTensor, Random};
use lacewing_runtime::{Device, Element};
use rayon::prelude::*;

use super::super::tolerance;
use super::tiles::*;
use super::*;
use crate::reference::{self, unit_roundoff};

/// A matrix of random numbers of a type, in rows of `pitch` elements, or in columns of as many; and the numbers.
fn matrix<H: Element>(
    device: &Device,
    [rows, columns]: [usize; 2],
    pitch: usize,
    in_columns: bool,
    seed: u64,
) -> (DevTensor<H, 2>, Vec<f64>) {
    let [outer, inner] = if in_columns { [columns, rows] } else { [rows, columns] };
    assert!(pitch >= inner);
    let whole = Random::new(seed).tensor(H::TYPE, &[outer, pitch], 1.0).unwrap();
    let numbers = whole.to_f64().unwrap();
    let numbers: Vec<f64> = numbers.chunks(pitch).flat_map(|row| &row[..inner]).copied().collect();
    let view = device.tensor_from::<H, 2>(&whole).unwrap().slice(1, 0..inner).unwrap();
    if in_columns { (view.permute([1, 0]).unwrap(), reference::transpose(&numbers, inner)) } else { (view, numbers) }
}

/// What products of 8-bit elements are multiplied with: exactly, so that the bounds stay.
const SCALE: f32 = 0.25;

/// Where C lies.
#[derive(Clone, Copy)]
enum Out {
    /// In rows of 16-byte vectors.
    Vectors,
    /// In columns of 16-byte vectors, which no kernel expects that is not compiled for them.
    Columns,
}

fn check<T, C>(device: &Device, tiles: &HopperTiles, [rows, columns, inner]: [usize; 3], out: Out)
where
    T: WgmmaElement + types::Scalar<Host: ElementOf<T>>,
    C: HostFloat,
{
    let pitch = |extent: usize| extent.next_multiple_of(16 / T::BYTES) + 16 / T::BYTES;
    let a_pitch = pitch(if tiles.m_major { rows } else { inner });
    let (a, left) = matrix::<T::Host>(device, [rows, inner], a_pitch, tiles.m_major, 1);
    let b_pitch = pitch(if tiles.k_major { inner } else { columns });
    let (b, right) = matrix::<T::Host>(device, [inner, columns], b_pitch, tiles.k_major, 2);
    assert!(Majors::of(&a, &b).is_some());
    if inner > 1 && columns > 1 && rows > 1 {
        assert_eq!(Majors::of(&a, &b), Some(Majors { m: tiles.m_major, k: tiles.k_major }));
    }
    let scale = if T::BYTES == 1 { Some(SCALE) } else { None };
    let factor = scale.map_or(1.0, f64::from);
    // What lies around C may not change.
    const AROUND: f64 = -768.0;
    let [outer, across] = if matches!(out, Out::Columns) { [columns, rows] } else { [rows, columns] };
    let width = across.next_multiple_of(16 / C::BYTES) + 16 / C::BYTES;
    let around = HostTensor::from_f64(C::TYPE, &[outer + 2, width], &vec![AROUND; (outer + 2) * width]).unwrap();
    let whole = device.tensor_from::<C::Host, 2>(&around).unwrap();
    let inside = whole.slice(0, 1..outer + 1).unwrap().slice(1, 0..across).unwrap();
    let mut c = if matches!(out, Out::Columns) { inside.permute([1, 0]).unwrap() } else { inside };
    launch::<T, C>(tiles.clone(), (&a, &b, &mut c), scale).unwrap_or_else(|error| panic!("{tiles:?}: {error}"));
    let got = c.to_host().unwrap().to_f64().unwrap();
    let kept = whole.to_host().unwrap().to_f64().unwrap().iter().filter(|x| **x == AROUND).count();
    assert_eq!(kept, (outer + 2) * width - rows * columns, "{tiles:?}: something around C was written");

    let absolute = |numbers: &[f64]| numbers.iter().map(|x| x.abs()).collect::<Vec<_>>();
    let wanted = reference::matmul(&left, &right, rows, columns);
    let sums = reference::matmul(&absolute(&left), &absolute(&right), rows, columns);
    for (index, ((got, wanted), sum)) in got.iter().zip(&wanted).zip(&sums).enumerate() {
        let (wanted, sum) = (factor * wanted, factor * sum);
        let summed = tolerance(inner, sum);
        let bound = summed + unit_roundoff(C::TYPE) * (wanted.abs() + summed).max(f64::powi(2.0, -14));
        assert!(
            (got - wanted).abs() <= bound,
            "{tiles:?}, {rows} x {columns} x {inner}: element {index} is {got}, not {wanted} +- {bound}"
        );
    }
}

fn device() -> Device {
    Device::emulator(Target::SM_90A).unwrap()
}

/// Widths with whole panels of C and without, even and odd numbers of them, and of all kinds of blocks.
fn some_tiles(k_major: bool) -> impl Iterator<Item = HopperTiles> {
    let shapes = [
        (2, 1, 256, 2),
        (2, 1, 208, 2),
        (2, 1, 192, 1),
        (2, 1, 128, 4),
        (2, 1, 72, 1),
        (1, 1, 256, 1),
        (1, 1, 144, 2),
        (1, 1, 16, 1),
        (2, 2, 192, 1),
        (2, 2, 152, 1),
        (2, 2, 136, 2),
        (3, 1, 192, 1),
        (3, 1, 96, 2),
    ];
    let of =
        move |(consumers, stacked, block_n, cluster)| HopperTiles::of(consumers, stacked, block_n, cluster, k_major);
    shapes.into_iter().map(of)
}

/// Sizes that no tile divides: several tiles a block, several rounds of the ring, pairs whose second tile is empty.
fn awkward(tiles: &HopperTiles) -> [usize; 3] {
    [2 * tiles.block_m() + 37, 3 * tiles.block_n + 21, 1031]
}

#[test]
fn every_shape_of_tiles_is_right() {
    for k_major in [false, true] {
        for tiles in some_tiles(k_major) {
            check::<BF16, BF16>(&device(), &tiles, awkward(&tiles), Out::Vectors);
        }
    }
}

/// C whose columns are contiguous: through the copy engine where the kernel is compiled for that.
#[test]
fn columns_of_c_are_right() {
    for (consumers, stacked, block_n, cluster) in
        [(2, 1, 256, 2), (2, 1, 144, 1), (2, 2, 152, 2), (3, 1, 96, 1), (1, 1, 16, 1)]
    {
        for m_major in [false, true] {
            let tiles = HopperTiles {
                m_major,
                c_in_columns: true,
                ..HopperTiles::of(consumers, stacked, block_n, cluster, true)
            };
            check::<BF16, BF16>(&device(), &tiles, awkward(&tiles), Out::Columns);
            check::<F16, F32>(&device(), &tiles, [129, 130, 65], Out::Columns);
            check::<F16, F32>(&device(), &tiles, [64, 8, 64], Out::Vectors);
        }
        let tiles = HopperTiles { c_in_columns: true, ..HopperTiles::of(consumers, stacked, block_n, cluster, true) };
        check::<F8E4M3, BF16>(&device(), &tiles, awkward(&tiles), Out::Columns);
    }
}

/// The same product twice gives the same bits, whatever the order in which warps run and copies land.
#[test]
fn a_rerun_gives_the_same_bits() {
    let mut bits = Vec::new();
    for seed in 0..3 {
        let device = device().with_seed(seed);
        let (a, _) = matrix::<bf16>(&device, [333, 264], 264, false, 5);
        let (b, _) = matrix::<bf16>(&device, [264, 200], 200, false, 6);
        let mut c = device.tensor_uninit::<f32, 2>([333, 200]).unwrap();
        run::<BF16, F32>(&a, &b, &mut c, None).unwrap().unwrap();
        bits.push(c.to_vec().unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>());
    }
    assert!(bits.iter().all(|others| *others == bits[0]));
}

/// A whose columns are contiguous, with B of both kinds.
#[test]
fn m_major_operands_are_right() {
    for k_major in [false, true] {
        for (consumers, stacked, block_n, cluster) in [(2, 1, 128, 2), (2, 1, 208, 1), (1, 1, 64, 1), (2, 2, 128, 1)] {
            let tiles = HopperTiles { m_major: true, ..HopperTiles::of(consumers, stacked, block_n, cluster, k_major) };
            check::<BF16, BF16>(
                &device(),
                &tiles,
                [2 * tiles.block_m() + 37, 2 * tiles.block_n + 21, 331],
                Out::Vectors,
            );
            for sizes in [[1, 1, 1], [64, 8, 64], [129, 130, 65], [300, 1, 127]] {
                check::<F16, F32>(&device(), &tiles, sizes, Out::Columns);
            }
        }
    }
}

#[test]
fn small_and_odd_sizes_are_right() {
    for k_major in [false, true] {
        let tiles = HopperTiles::of(2, 1, 128, 2, k_major);
        for sizes in [[1, 1, 1], [64, 8, 64], [129, 130, 65], [1, 300, 40], [300, 1, 127], [128, 128, 512]] {
            check::<F16, F32>(&device(), &tiles, sizes, Out::Vectors);
            check::<F16, F16>(&device(), &tiles, sizes, Out::Columns);
        }
    }
}

#[test]
fn products_of_8_bit_elements_are_right() {
    for tiles in some_tiles(true) {
        check::<F8E4M3, BF16>(&device(), &tiles, awkward(&tiles), Out::Vectors);
    }
    let tiles = HopperTiles::of(2, 1, 128, 2, true);
    for sizes in [[1, 1, 1], [64, 8, 64], [129, 130, 65]] {
        check::<F8E4M3, F32>(&device(), &tiles, sizes, Out::Columns);
        check::<F8E5M2, F16>(&device(), &tiles, sizes, Out::Vectors);
    }
}

/// Whatever the order in which warps run and copies land.
#[test]
fn the_scheduler_does_not_change_the_result() {
    for (consumers, block_n, cluster) in [(2, 256, 2), (1, 64, 1)] {
        let tiles = HopperTiles::of(consumers, 1, block_n, cluster, false);
        for seed in 0..4 {
            check::<BF16, BF16>(&device().with_seed(seed), &tiles, [300, 200, 700], Out::Vectors);
        }
    }
}

/// Few rows: the product is computed as its transpose.
#[test]
fn few_rows_are_right() {
    let device = device();
    for [rows, columns, inner] in [[1, 64, 64], [16, 200, 130], [63, 77, 40]] {
        let (a, left) = matrix::<bf16>(&device, [rows, inner], inner.next_multiple_of(8), false, 3);
        for in_columns in [true, false] {
            let pitch = if in_columns { inner } else { columns }.next_multiple_of(8);
            let (b, right) = matrix::<bf16>(&device, [inner, columns], pitch, in_columns, 4);
            let mut c = device.tensor_uninit::<f32, 2>([rows, columns]).unwrap();
            run::<BF16, F32>(&a, &b, &mut c, None).unwrap().unwrap();
            let wanted = reference::matmul(&left, &right, rows, columns);
            let magnitude = |numbers: &[f64]| -> Vec<f64> { numbers.iter().map(|x| x.abs()).collect() };
            let sums = reference::matmul(&magnitude(&left), &magnitude(&right), rows, columns);
            for (got, (wanted, sum)) in c.to_vec().unwrap().into_iter().zip(wanted.into_iter().zip(sums)) {
                assert!((f64::from(got) - wanted).abs() <= tolerance(inner, sum), "{got} {wanted}");
            }
        }
    }
}

#[test]
fn tensors_that_no_map_describes_are_left_to_another_kernel() {
    let device = device();
    let zeros = |rows, columns| device.tensor_zeros::<f16, 2>([rows, columns]).unwrap();
    let (a, b) = (zeros(16, 24), zeros(24, 32));
    let majors = |m, k| Some(Majors { m, k });
    assert_eq!(Majors::of(&a, &b), majors(false, false));
    assert_eq!(Majors::of(&a, &zeros(32, 24).permute([1, 0]).unwrap()), majors(false, true));
    assert_eq!(Majors::of(&zeros(24, 16).permute([1, 0]).unwrap(), &b), majors(true, false));
    // Rows of 46 bytes, or that start between vectors; none at all.
    assert_eq!(Majors::of(&zeros(16, 23), &zeros(23, 32)), None);
    assert_eq!(Majors::of(&a, &zeros(24, 33)), None);
    assert_eq!(Majors::of(&zeros(16, 40).slice(1, 3..27).unwrap(), &b), None);
    assert_eq!(Majors::of(&zeros(24, 17).permute([1, 0]).unwrap(), &b), None);
    assert_eq!(Majors::of(&zeros(16, 0), &zeros(0, 32)), None);
    let eights = |rows, columns| device.tensor_zeros::<<F8E4M3 as Scalar>::Host, 2>([rows, columns]).unwrap();
    assert_eq!(Majors::of(&eights(16, 32), &eights(32, 16)), None);
    assert_eq!(Majors::of(&eights(32, 16).permute([1, 0]).unwrap(), &eights(16, 32).permute([1, 0]).unwrap()), None);
    assert_eq!(Majors::of(&eights(16, 32), &eights(16, 32).permute([1, 0]).unwrap()), majors(false, true));
    let ampere = Device::emulator(Target::SM_80).unwrap();
    let zeros = |rows, columns| ampere.tensor_zeros::<bf16, 2>([rows, columns]).unwrap();
    assert_eq!(Majors::of(&zeros(16, 24), &zeros(24, 32)), None);
}

#[test]
fn tiles_follow_the_shape() {
    let tiles = |sizes, aligned| {
        let problem = Problem {
            sizes,
            bytes: 2,
            aligned: [aligned; 2],
            m_major: false,
            k_major: true,
            c_in_columns: false,
            multiprocessors: 132,
        };
        let HopperTiles { consumers, stacked, block_n, cluster, .. } = HopperTiles::new(&problem);
        (consumers, stacked, block_n, cluster)
    };
    let cube = |size, aligned| tiles([size; 3], aligned);
    assert_eq!(cube(4096, true), (2, 1, 256, 1));
    assert_eq!(cube(2048, true), (2, 1, 128, 1));
    assert_eq!(cube(3072, true), (2, 1, 192, 1));
    // One round of 8 x 16 blocks.
    assert_eq!(cube(1536, true), (3, 1, 96, 1));
    // Where rows straddle sectors, larger tiles and shared loads are worth more.
    assert_eq!(cube(1000, false), (1, 1, 160, 4));
    assert_eq!(cube(3000, false), (3, 1, 192, 2));
    assert_eq!(cube(5000, false), (2, 2, 152, 2));
    assert_eq!(tiles([64, 8192, 8192], true), (1, 1, 64, 1));
    // B is larger than the L2 cache: one block alone reads a column of it.
    assert_eq!(tiles([128, 8192, 8192], true), (2, 1, 64, 1));
    for tiles in [true, false].into_iter().flat_map(HopperTiles::candidates) {
        assert!(tiles.stages >= 3, "{tiles:?}");
    }
}

/// B in rows has panels of 64 columns; as A of the transpose, its columns are the rows of tiles, and any number of rows of A the
/// width.
#[test]
fn c_may_be_computed_as_its_transpose() {
    let problem = |sizes, k_major| Problem {
        sizes,
        bytes: 2,
        aligned: [true; 2],
        m_major: false,
        k_major,
        c_in_columns: false,
        multiprocessors: 132,
    };
    let (tiles, turned) = HopperTiles::best(&problem([1536; 3], false));
    assert!(turned && tiles.m_major && tiles.k_major && tiles.c_in_columns, "{tiles:?}");
    let (tiles, turned) = HopperTiles::best(&problem([4096; 3], false));
    assert!(!turned && !tiles.m_major && !tiles.k_major && !tiles.c_in_columns, "{tiles:?}");
    // Few rows always, and few columns never, whatever the estimates.
    assert!(HopperTiles::best(&problem([16, 8192, 8192], true)).1);
    assert!(!HopperTiles::best(&problem([8192, 16, 8192], true)).1);
}

fn complaints<T: WgmmaElement, C: types::Float>(tiles: &HopperTiles) -> Vec<String> {
    let options = EmitOptions::default();
    let name = format!("{tiles:?}");
    let tiles = || tiles.clone();
    let traced = if T::BYTES == 1 {
        let through_map = trace_kernel(&matmul_hopper_scaled::<T, C>::new(tiles()), Target::SM_90A);
        [through_map, trace_kernel(&matmul_hopper_scaled_strided::<T, C>::new(tiles()), Target::SM_90A)]
    } else {
        let through_map = trace_kernel(&matmul_hopper::<T, C>::new(tiles()), Target::SM_90A);
        [through_map, trace_kernel(&matmul_hopper_strided::<T, C>::new(tiles()), Target::SM_90A)]
    };
    let reports = traced.map(|traced| Report::of(&traced.unwrap(), &options).unwrap());
    // One that is not found would mean that nobody looked.
    assert!(reports.iter().all(|report| report.main_loops.iter().any(|found| found.products >= 4)), "{name}");
    reports.iter().flat_map(Report::complaints).collect()
}

/// Serialised products, registers in memory, an ignored `setmaxnreg` and addresses that threads must hand to the warp cost
/// more than any tuning wins.
#[test]
fn the_machine_code_has_nothing_to_complain_of() {
    if find_ptxas(None).is_err() || find_nvdisasm().is_none() {
        let required = ["CI", "LACEWING_REQUIRE_PTXAS"].iter().find(|name| std::env::var_os(name).is_some());
        assert!(required.is_none(), "no ptxas or no nvdisasm: nobody would see serialised products");
        eprintln!("SKIPPED: no ptxas or no nvdisasm");
        return;
    }
    let mut all: Vec<_> = [false, true].into_iter().flat_map(some_tiles).collect();
    all.extend([false, true].map(|k_major| HopperTiles { m_major: true, ..HopperTiles::of(2, 1, 256, 2, k_major) }));
    let in_columns = |tiles| HopperTiles { m_major: true, c_in_columns: true, ..tiles };
    all.push(in_columns(HopperTiles::of(1, 1, 16, 1, true)));
    all.push(in_columns(HopperTiles::of(2, 2, 152, 2, true)));
    all.push(in_columns(HopperTiles::of(3, 1, 192, 2, true)));
    let found: Vec<_> = all
        .par_iter()
        .flat_map_iter(|tiles| {
            let mut found = complaints::<BF16, BF16>(tiles);
            found.extend(complaints::<F16, F32>(tiles));
            if tiles.k_major && !tiles.m_major {
                found.extend(complaints::<F8E4M3, BF16>(tiles));
            }
            found.into_iter().map(move |complaint| format!("{tiles:?}: {complaint}"))
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

