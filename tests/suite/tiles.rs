//! Atoms, fragments, tiled copies and products: right on every atom, and nothing left of the layouts in the code.

use std::collections::BTreeMap;
use std::fmt::Debug;

use half::{bf16, f16};
use lacewing::core::atoms::{MmaAtom, Role};
use lacewing::core::layout::ComposedLayout;
use lacewing::core::lower::{Emit, EmitOptions, emit};
use lacewing::core::types::{CastTarget, Num, Scalar};
use lacewing::prelude::*;
use lacewing::runtime::{ElementOf, KernelExt};

/// How a tile lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// Rows along k, 16 bytes longer than their elements.
    Padded,
    /// Rows along k under a swizzle of 16 bytes.
    Swizzled,
    /// Rows along m or n, without gaps: transposed on the way.
    Across,
}

impl Storage {
    const ALL: [Storage; 3] = [Storage::Padded, Storage::Swizzled, Storage::Across];

    /// A tile of `(rows, k)` in elements of so many bytes.
    fn layout(self, rows: usize, k: usize, bytes: usize) -> Result<ComposedLayout, LayoutError> {
        let chunk = (16 / bytes).max(1);
        let plain = |layout: Layout| ComposedLayout::new(Swizzle::IDENTITY, layout);
        match self {
            Storage::Padded => plain(layout![(rows, k); (k + chunk, 1)]?),
            Storage::Swizzled => {
                ComposedLayout::new(Swizzle::new(2, chunk.trailing_zeros(), 3)?, layout![(rows, k); (k, 1)]?)
            }
            Storage::Across => plain(layout![(rows, k); (1, rows)]?),
        }
    }
}

/// The sizes of a block's product.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    warps: [usize; 2],
    threads: usize,
    m: usize,
    n: usize,
    k: usize,
}

/// C = A B for one block: `a` is M x K, `b` is N x K.
#[kernel(block = [sizes.threads as u32, 1, 1])]
fn product<M>(
    #[comptime] sizes: Sizes,
    #[comptime] storage: Storage,
    a: Tensor<M::A, 2>,
    b: Tensor<M::B, 2>,
    c: TensorMut<M::C, 2>,
) where
    M: MmaAtom<C: Num + CastTarget>,
{
    let Sizes { warps, threads, m, n, k } = sizes;
    let mma = TiledMma::<M>::new(warps);
    let a_tile = shared_tensor::<M::A>("a", storage.layout(m, k, <M::A as Scalar>::BYTES));
    let b_tile = shared_tensor::<M::B>("b", storage.layout(n, k, <M::B as Scalar>::BYTES));
    let (copy_a, copy_b) = (
        TiledCopy::<M::A>::rows(CopyAtom::Registers, threads, k, 1),
        TiledCopy::<M::B>::rows(CopyAtom::Registers, threads, k, 1),
    );
    copy(&copy_a, &copy_a.partition_global(&a.tile([m, k], (0, 0))), &copy_a.partition_shared(&a_tile));
    copy(&copy_b, &copy_b.partition_global(&b.tile([n, k], (0, 0))), &copy_b.partition_shared(&b_tile));
    barrier();
    let (a_part, b_part) = (mma.partition_a(&a_tile), mma.partition_b(&b_tile));
    let mut acc = mma.accumulators(m, n);
    for step in range_constexpr(a_part.k_steps()) {
        gemm(&a_part.load(step), &b_part.load(step), &mut acc);
    }
    mma.partition_c(&c.tile([m, n], (0, 0))).store(&acc);
}

/// How a small whole number becomes an element of A, of B and of C.
type FromSmall<A, B, C> = (fn(i32) -> A, fn(i32) -> B, fn(i32) -> C);

/// Small whole numbers, so that every sum is exact in every type.
fn small(seed: usize, index: usize) -> i32 {
    ((index.wrapping_mul(2654435761).wrapping_add(seed * 40503) >> 7) % 4) as i32
}

fn check<M, A, B, C>(targets: &[Target], host: FromSmall<A, B, C>)
where
    M: MmaAtom<C: Num + CastTarget>,
    A: ElementOf<M::A>,
    B: ElementOf<M::B>,
    C: ElementOf<M::C> + PartialEq + Debug,
{
    let warps = if M::SPEC.threads() == 1 { [8, 16] } else { [2, 2] };
    check_on_warps::<M, A, B, C>(targets, host, warps);
}

fn check_on_warps<M, A, B, C>(targets: &[Target], host: FromSmall<A, B, C>, warps: [usize; 2])
where
    M: MmaAtom<C: Num + CastTarget>,
    A: ElementOf<M::A>,
    B: ElementOf<M::B>,
    C: ElementOf<M::C> + PartialEq + Debug,
{
    let spec = M::SPEC;
    let [m, n, k] = spec.shape;
    // Two atoms a warp along m and n, and at least 32 of k.
    let sizes = Sizes {
        warps,
        threads: warps[0] * warps[1] * spec.threads(),
        m: 2 * m * warps[0],
        n: 2 * n * warps[1],
        k: (2 * k).max(32),
    };
    let (a_of, b_of, c_of) = host;
    for &target in targets {
        for storage in Storage::ALL {
            let device = Device::emulator(target).unwrap();
            let value = |seed, at: usize| small(seed, at);
            let a: Vec<A> = (0..sizes.m * sizes.k).map(|at| a_of(value(1, at))).collect();
            let b: Vec<B> = (0..sizes.n * sizes.k).map(|at| b_of(value(2, at))).collect();
            let a = device.tensor_from_slice(&a, [sizes.m, sizes.k]).unwrap();
            let b = device.tensor_from_slice(&b, [sizes.n, sizes.k]).unwrap();
            let mut c = device.tensor_uninit::<C, 2>([sizes.m, sizes.n]).unwrap();
            product::<M>::new(sizes, storage)
                .grid([1, 1, 1])
                .launch(&device, (&a, &b, &mut c))
                .unwrap_or_else(|error| panic!("{} {storage:?} on {target}: {error}", spec.name()));
            let got = c.to_vec().unwrap();
            for i in 0..sizes.m {
                for j in 0..sizes.n {
                    let sum = (0..sizes.k).map(|k| value(1, i * sizes.k + k) * value(2, j * sizes.k + k)).sum::<i32>();
                    let place = format!("{} {storage:?} on {target} at {i}, {j}", spec.name());
                    assert_eq!(got[i * sizes.n + j], c_of(sum), "{place}");
                }
            }
        }
    }
}

const HALF: FromSmall<f16, f16, f32> = (|x| f16::from_f32(x as f32), |x| f16::from_f32(x as f32), |x| x as f32);
const BRAIN: FromSmall<bf16, bf16, f32> = (|x| bf16::from_f32(x as f32), |x| bf16::from_f32(x as f32), |x| x as f32);
const SINGLE: FromSmall<f32, f32, f32> = (|x| x as f32, |x| x as f32, |x| x as f32);
const DOUBLE: FromSmall<f64, f64, f64> = (|x| x.into(), |x| x.into(), |x| x.into());
const BYTES: FromSmall<i8, i8, i32> = (|x| x as i8 - 2, |x| x as i8, |x| x);

type E4m3 = <F8E4M3 as Scalar>::Host;
type E5m2 = <F8E5M2 as Scalar>::Host;

fn e4m3(x: i32) -> E4m3 {
    E4m3::from_f32(x as f32)
}

fn e5m2(x: i32) -> E5m2 {
    E5m2::from_f32(x as f32)
}

const NVIDIA: [Target; 2] = [Target::SM_80, Target::SM_90A];
const CDNA: [Target; 2] = [Target::GFX942, Target::GFX950];
const CDNA4: [Target; 1] = [Target::GFX950];

#[test]
fn tiled_products_of_mma_sync() {
    check::<MmaSync<16, 8, 16, F16>, _, _, _>(&NVIDIA, HALF);
    check::<MmaSync<16, 8, 16, BF16>, _, _, _>(&NVIDIA, BRAIN);
    check::<MmaSync<16, 8, 8, F16>, _, _, _>(&NVIDIA, HALF);
    check::<MmaSync<16, 8, 8, Tf32>, _, _, _>(&NVIDIA, SINGLE);
    check::<MmaSync<16, 8, 32, U8>, _, _, _>(&NVIDIA, (|x| x as u8, |x| x as u8, |x| x));
    check::<MmaSync<16, 8, 32, F8E4M3, F8E5M2>, _, _, _>(&[Target::SM_90A], (e4m3, e5m2, |x| x as f32));
}

/// Any number of warps along m and n; sums of 16 bits.
#[test]
fn tiled_products_of_any_number_of_warps() {
    for warps in [[3, 1], [1, 5], [3, 2]] {
        check_on_warps::<MmaSync<16, 8, 16, F16>, _, _, _>(&[Target::SM_90A], HALF, warps);
        check_on_warps::<Mfma<16, 16, 16, BF16>, _, _, _>(&[Target::GFX942], BRAIN, warps);
    }
    let half: fn(i32) -> f16 = |x| f16::from_f32(x as f32);
    check_on_warps::<MmaSync<16, 8, 16, F16, F16, F16>, _, _, _>(&[Target::SM_80], (half, half, half), [3, 2]);
    check_on_warps::<MmaSync<8, 8, 4, F64>, _, _, _>(&[Target::SM_80], DOUBLE, [1, 3]);
    check_on_warps::<MmaSync<8, 8, 16, I8, U8>, _, _, _>(&[Target::SM_80], (|x| x as i8, |x| x as u8, |x| x), [2, 1]);
    check_on_warps::<ScalarFma<F32>, _, _, _>(&[Target::SM_80], SINGLE, [6, 16]);
}

#[test]
fn tiled_products_of_mfma() {
    check::<Mfma<32, 32, 8, F16>, _, _, _>(&CDNA, HALF);
    check::<Mfma<16, 16, 16, BF16>, _, _, _>(&CDNA, BRAIN);
    check::<Mfma<16, 16, 4, F32>, _, _, _>(&CDNA, SINGLE);
    check::<Mfma<16, 16, 4, F64>, _, _, _>(&CDNA, DOUBLE);
    check::<Mfma<16, 16, 8, Tf32>, _, _, _>(&[Target::GFX942], SINGLE);
    check::<Mfma<16, 16, 32, F16>, _, _, _>(&CDNA4, HALF);
    check::<Mfma<16, 16, 32, F8E5M2, F8E4M3>, _, _, _>(&CDNA4, (e5m2, e4m3, |x| x as f32));
    check::<Mfma<16, 16, 128, F8E4M3>, _, _, _>(&CDNA4, (e4m3, e4m3, |x| x as f32));
}

#[test]
fn tiled_products_of_one_thread_at_a_time() {
    check::<ScalarFma<F32>, _, _, _>(&[Target::SM_80, Target::GFX942], SINGLE);
    check::<ScalarFma<F64>, _, _, _>(&[Target::SM_80], DOUBLE);
}

/// Signed bytes: the host's numbers are shifted, so that some are negative.
#[test]
fn tiled_products_of_signed_bytes() {
    let device = Device::emulator(Target::SM_80).unwrap();
    let sizes = Sizes { warps: [2, 2], threads: 128, m: 64, n: 32, k: 64 };
    let (a_of, b_of, _) = BYTES;
    let a: Vec<i8> = (0..64 * 64).map(|at| a_of(small(1, at))).collect();
    let b: Vec<i8> = (0..32 * 64).map(|at| b_of(small(2, at))).collect();
    let (a_on, b_on) =
        (device.tensor_from_slice(&a, [64, 64]).unwrap(), device.tensor_from_slice(&b, [32, 64]).unwrap());
    let mut c = device.tensor_uninit::<i32, 2>([64, 32]).unwrap();
    product::<MmaSync<16, 8, 32, I8>>::new(sizes, Storage::Swizzled)
        .grid([1, 1, 1])
        .launch(&device, (&a_on, &b_on, &mut c))
        .unwrap();
    let wanted: Vec<i32> = (0..64 * 32)
        .map(|at| (0..64).map(|k| i32::from(a[at / 32 * 64 + k]) * i32::from(b[at % 32 * 64 + k])).sum())
        .collect();
    assert_eq!(c.to_vec().unwrap(), wanted);
}

/// Which way a tile is copied, and how.
#[derive(Clone, Copy, Debug)]
struct Way {
    atom: CopyAtom,
    vector: usize,
    swizzled: bool,
    transposed: bool,
}

/// y = x by way of shared memory, tile by tile of 16 x 32.
#[kernel(block = [64, 1, 1])]
fn through_shared<T: Float>(#[comptime] way: Way, x: Tensor<T, 2>, y: TensorMut<T, 2>) {
    let swizzle = if const_expr(way.swizzled) { Swizzle::new(2, 3, 3) } else { Ok(Swizzle::IDENTITY) };
    let layout = if const_expr(way.transposed) { layout![(16, 32); (1, 16)] } else { layout![(16, 32); (32, 1)] };
    let tile = shared_tensor::<T>("tile", ComposedLayout::new(swizzle.in_kernel(), layout.in_kernel()));
    let tiled = TiledCopy::<T>::new(way.atom, layout![(16, 4); (4, 1)], [1, 8]);
    let (row, column) = (block_id(X), block_id(Y));
    let from = x.tile([16, 32], (row, column)).vectors(way.vector);
    let to = y.tile([16, 32], (row, column)).vectors(way.vector);
    let part = tiled.partition_shared(&tile);
    copy(&tiled, &tiled.partition_global(&from), &part);
    cp_async_commit();
    cp_async_wait(0);
    barrier();
    copy(&tiled, &part, &tiled.partition_global(&to));
}

#[test]
fn copies_keep_to_the_tensor_and_move_every_element() {
    for (rows, columns, vectors) in [(16, 32, 8), (1, 8, 8), (37, 40, 8), (33, 64, 4), (5, 7, 1), (50, 31, 1)] {
        for vector in [1, vectors] {
            for (atom, swizzled, transposed) in [
                (CopyAtom::CpAsync, false, false),
                (CopyAtom::CpAsync, true, false),
                (CopyAtom::Registers, true, false),
                (CopyAtom::Registers, false, true),
                (CopyAtom::CpAsync, true, true),
            ] {
                let way = Way { atom, vector, swizzled, transposed };
                let device = Device::emulator(Target::SM_80).unwrap();
                let numbers: Vec<f16> = (0..rows * columns).map(|at| f16::from_f32(at as f32)).collect();
                let x = device.tensor_from_slice(&numbers, [rows, columns]).unwrap();
                let mut y = device.tensor_uninit::<f16, 2>([rows, columns]).unwrap();
                through_shared::<F16>::new(way)
                    .grid([rows.div_ceil(16), columns.div_ceil(32), 1])
                    .launch(&device, (&x, &mut y))
                    .unwrap_or_else(|error| panic!("{rows} x {columns}, {way:?}: {error}"));
                assert_eq!(y.to_vec().unwrap(), numbers, "{rows} x {columns}, {way:?}");
            }
        }
    }
}

/// How shared memory is laid out on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Plain,
    /// Groups of three rows with a gap after each.
    Threes,
    /// Pieces of 16 bytes permuted by their row.
    Swizzled,
}

/// A copy whose threads and tiles need not be powers of two.
#[derive(Clone, Copy, Debug)]
struct Parts {
    atom: CopyAtom,
    places: [usize; 2],
    values: [usize; 2],
    tile: [usize; 2],
    vector: usize,
    between: Between,
}

impl Parts {
    fn layout(self, bytes: usize) -> Result<ComposedLayout, LayoutError> {
        let [rows, columns] = self.tile;
        let plain = |layout: Layout| ComposedLayout::new(Swizzle::IDENTITY, layout);
        match self.between {
            Between::Plain => plain(layout![(rows, columns); (columns, 1)]?),
            Between::Threes => plain(layout![((3, rows / 3), columns); ((columns, 3 * columns + 8), 1)]?),
            Between::Swizzled => {
                let base = (16 / bytes).trailing_zeros();
                ComposedLayout::new(Swizzle::new(2, base, 3)?, layout![(rows, columns); (columns, 1)]?)
            }
        }
    }
}

/// y = x by way of shared memory, tile by tile.
#[kernel(block = [(parts.places[0] * parts.places[1]) as u32, 1, 1])]
fn in_parts<T: Float>(#[comptime] parts: Parts, x: Tensor<T, 2>, y: TensorMut<T, 2>) {
    let [rows, columns] = parts.places;
    let tile = shared_tensor::<T>("tile", parts.layout(T::BYTES));
    let tiled = TiledCopy::<T>::new(parts.atom, layout![(rows, columns); (columns, 1)], parts.values);
    let at = (block_id(X), block_id(Y));
    let part = tiled.partition_shared(&tile);
    copy(&tiled, &tiled.partition_global(&x.tile(parts.tile, at).vectors(parts.vector)), &part);
    if const_expr(target().is_nvidia()) {
        cp_async_commit();
        cp_async_wait(0);
    }
    barrier();
    copy(&tiled, &part, &tiled.partition_global(&y.tile(parts.tile, at).vectors(parts.vector)));
}

/// Copies by `parts` on `target`: a tensor of these sides arrives. Gives the traced text.
fn arrives<T: Float, H: ElementOf<T> + PartialEq + Debug>(
    parts: Parts,
    target: Target,
    [rows, columns]: [usize; 2],
    host: fn(f32) -> H,
) -> String {
    let device = Device::emulator(target).unwrap();
    let numbers: Vec<H> = (0..rows * columns).map(|at| host((at % 2039) as f32)).collect();
    let x = device.tensor_from_slice(&numbers, [rows, columns]).unwrap();
    let mut y = device.tensor_uninit::<H, 2>([rows, columns]).unwrap();
    let text = in_parts::<T>::new(parts).traced(target).unwrap_or_else(|error| panic!("{parts:?}: {error}")).text();
    in_parts::<T>::new(parts)
        .grid([rows.div_ceil(parts.tile[0]), columns.div_ceil(parts.tile[1]), 1])
        .launch(&device, (&x, &mut y))
        .unwrap_or_else(|error| panic!("{rows} x {columns} on {target}, {parts:?}: {error}"));
    assert_eq!(y.to_vec().unwrap(), numbers, "{rows} x {columns} on {target}, {parts:?}");
    text
}

/// Threads, values and tiles of any number: what does not divide is left to some of the threads.
#[test]
fn copies_by_any_number_of_threads() {
    let half: fn(f32) -> f16 = f16::from_f32;
    let at = |places, values, tile, vector, between| Parts {
        atom: CopyAtom::Registers,
        places,
        values,
        tile,
        vector,
        between,
    };
    use Between::{Plain, Threes};
    for parts in [
        at([6, 8], [1, 4], [36, 32], 4, Plain),
        at([6, 8], [1, 4], [20, 48], 4, Plain),
        at([5, 7], [3, 2], [45, 28], 2, Plain),
        at([12, 8], [1, 4], [36, 32], 4, Threes),
        at([6, 16], [1, 1], [15, 17], 1, Threes),
        at([3, 32], [1, 3], [7, 99], 1, Plain),
        at([16, 8], [1, 8], [8, 40], 8, Plain),
    ] {
        for (rows, columns) in [(36, 96), (7, 40), (50, 104), (1, 1)] {
            let vector = if columns % parts.vector == 0 { parts.vector } else { 1 };
            let parts = Parts { vector, ..parts };
            arrives::<F16, _>(parts, Target::SM_80, [rows, columns], half);
            arrives::<F16, _>(Parts { atom: CopyAtom::CpAsync, ..parts }, Target::SM_80, [rows, columns], half);
        }
    }
}

/// AMD's ways: bounded accesses, and copies straight to LDS, swizzled or not, at the end of a tensor or not.
#[test]
fn copies_by_the_atoms_of_amd() {
    let half: fn(f32) -> f16 = f16::from_f32;
    let single: fn(f32) -> f32 = |x| x;
    let parts = |atom, places, values, tile, vector, between| Parts { atom, places, values, tile, vector, between };
    for target in CDNA {
        for between in [Between::Plain, Between::Threes, Between::Swizzled] {
            for sides in [[48, 64], [47, 40], [1, 8]] {
                let buffer = parts(CopyAtom::Buffer, [12, 8], [1, 8], [24, 64], 8, between);
                let text = arrives::<F16, _>(buffer, target, sides, half);
                assert!(text.contains("lw.buffer_load") && text.contains("lw.buffer_store"), "{buffer:?}");
                assert!(!text.contains("lw.load_masked") && !text.contains("lw.store_masked"), "{buffer:?}");
            }
        }
        // 4 bytes a lane on both; 16 on CDNA4, through registers on CDNA3.
        for between in [Between::Plain, Between::Swizzled] {
            for sides in [[48, 64], [45, 40], [1, 4], [3, 130]] {
                let narrow = parts(CopyAtom::LoadToLds, [3, 64], [1, 1], [24, 64], 1, between);
                let text = arrives::<F32, _>(narrow, target, sides, single);
                assert!(text.contains("lw.buffer_load_lds") && !text.contains("lw.buffer_load\""), "{narrow:?}");
            }
            for sides in [[48, 64], [45, 40], [1, 8]] {
                let wide = parts(CopyAtom::LoadToLds, [24, 8], [1, 8], [24, 64], 8, between);
                let text = arrives::<F16, _>(wide, target, sides, half);
                assert_eq!(text.contains("lw.buffer_load_lds"), target == Target::GFX950, "{wide:?} on {target}");
            }
        }
        // Lanes that do not lie side by side go through registers.
        let apart = parts(CopyAtom::LoadToLds, [3, 64], [1, 1], [24, 64], 1, Between::Threes);
        assert!(!arrives::<F32, _>(apart, target, [48, 64], single).contains("load_lds"));
    }
}

/// What a tile of 24 x 64 halves takes on CDNA4 where nothing lies outside: one copy for each 16 bytes of a lane, and no
/// register in between.
#[test]
fn whole_tiles_go_straight_to_lds() {
    #[kernel(block = [192, 1, 1])]
    fn whole(x: Tensor<F16, 2>, y: TensorMut<F16, 1>) {
        let tile = shared_tensor::<F16>("tile", layout![(48, 64); (64, 1)]);
        let tiled = TiledCopy::<F16>::rows(CopyAtom::LoadToLds, 192, 64, 8);
        copy(
            &tiled,
            &tiled.partition_global(&x.tile([48, 64], (0, 0)).vectors(8).whole()),
            &tiled.partition_shared(&tile),
        );
        barrier();
        y.at(thread_id(X)).store(tile.at((thread_id(X) % 48, 3)).load());
    }
    let traced = whole::new().traced(Target::GFX950).unwrap();
    assert_eq!(traced.text().matches("lw.load_lds").count(), 2, "{}", traced.text());
    let artifact = emit(&traced, Emit::Amdgcn, &EmitOptions::default()).unwrap();
    let assembly = artifact.text().unwrap();
    assert_eq!(assembly.matches("global_load_lds_dwordx4").count(), 2, "{assembly}");
    assert!(!assembly.contains("ds_write") && !assembly.contains("s_cbranch"), "{assembly}");
    let numbers: Vec<f16> = (0..48 * 64).map(|at| f16::from_f32((at % 2039) as f32)).collect();
    let device = Device::emulator(Target::GFX950).unwrap();
    let x = device.tensor_from_slice(&numbers, [48, 64]).unwrap();
    let mut y = device.tensor_uninit::<f16, 1>([192]).unwrap();
    whole::new().grid([1, 1, 1]).launch(&device, (&x, &mut y)).unwrap();
    assert!(y.to_vec().unwrap().iter().enumerate().all(|(t, &value)| value == numbers[t % 48 * 64 + 3]));
}

/// The emulator does not let a promise be broken: rows of 7 elements are not aligned to 16 bytes.
#[test]
fn a_broken_promise_of_vectors_is_reported() {
    let way = Way { atom: CopyAtom::Registers, vector: 8, swizzled: false, transposed: false };
    let device = Device::emulator(Target::SM_80).unwrap();
    let x = device.tensor_from_slice(&[f16::ONE; 35], [5, 7]).unwrap();
    let mut y = device.tensor_uninit::<f16, 2>([5, 7]).unwrap();
    let error = through_shared::<F16>::new(way).grid([1, 1, 1]).launch(&device, (&x, &mut y)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("read of `x` at byte 14, which is no multiple of 16"), "{text}");
}

/// A tile of f16 whose memory holds f32 afterwards, in `rows` rows of 8.
#[kernel(block = [32, 1, 1])]
fn in_one_memory(#[comptime] rows: usize, #[comptime] stage: bool, x: Tensor<F16, 1>, y: TensorMut<F32, 1>) {
    let halves = shared_tensor::<F16>("halves", layout![(8, 8, 2); (8, 1, 64)]);
    let lane = lane_id();
    halves.at((lane % 8, lane / 8, 0)).store(x.at(lane).load());
    barrier();
    let half = halves.at((lane % 8, lane / 8, 0)).load();
    barrier();
    let halves = if const_expr(stage) { halves.stage(lane % 2) } else { halves };
    let floats = halves.reuse::<F32>(layout![(rows, 8); (8, 1)]);
    floats.at((lane / 8, lane % 8)).store(half.cast::<F32>() + 0.25);
    barrier();
    y.at(lane).store(floats.at((lane / 8, lane % 8)).load());
}

#[test]
fn shared_memory_is_used_again_for_another_type() {
    let device = Device::emulator(Target::SM_80).unwrap();
    let numbers: Vec<f16> = (0..32).map(|at| f16::from_f32(at as f32)).collect();
    let x = device.tensor_from_slice(&numbers, [32]).unwrap();
    let mut y = device.tensor_uninit::<f32, 1>([32]).unwrap();
    in_one_memory::new(8, false).grid([1, 1, 1]).launch(&device, (&x, &mut y)).unwrap();
    let wanted: Vec<f32> = (0..32).map(|at| at as f32 + 0.25).collect();
    assert_eq!(y.to_vec().unwrap(), wanted);

    let refusal = |rows, stage| in_one_memory::new(rows, stage).mlir(Target::SM_80).unwrap_err().to_string();
    let text = refusal(9, false);
    assert!(text.contains("Sw<0,0,0> o 0 o (9,8):(8,1) of f32 takes 288 bytes of a tensor of 256"), "{text}");
    assert!(text.contains("there is not room enough"), "{text}");
    let text = refusal(4, true);
    assert!(text.contains("only a whole tensor's memory can be used again, not a stage or tile of it"), "{text}");
}

/// What [`by_layout`] computes, with the addresses written out.
#[kernel(block = [128, 1, 1])]
fn by_hand(x: Tensor<F16, 2>, y: TensorMut<F32, 1>) {
    let tile = shared_array_named::<F16>("tile", 64 * 72);
    let thread = thread_id(X);
    let (row, column) = (thread / 8, thread % 8 * 8);
    for round in range_constexpr(4) {
        let place = x.at((row + ((round * 16) as i32), column));
        cp_async::<16>(tile.at((row + ((round * 16) as i32)) * 72 + column), place, Bool::from(true));
    }
    cp_async_commit();
    cp_async_wait(0);
    barrier();
    let lane = lane_id();
    let mut acc = [[F32::from(0.0); 4]; 8];
    for step in range_constexpr(4) {
        let a_row = warp_id() * 16 + lane % 16;
        let a = ldmatrix_x4(tile.at(a_row * 72 + lane / 16 * 8 + ((step * 16) as i32)));
        for pair in range_constexpr(4) {
            let b_row = lane % 8 + lane / 16 * 8 + ((pair * 16) as i32);
            let b = ldmatrix_x4(tile.at(b_row * 72 + lane / 8 % 2 * 8 + ((step * 16) as i32)));
            acc[2 * pair] = mma_m16n8k16(a, [b[0], b[1]], acc[2 * pair]);
            acc[2 * pair + 1] = mma_m16n8k16(a, [b[2], b[3]], acc[2 * pair + 1]);
        }
    }
    for n in range_constexpr(8) {
        y.at(thread * 32 + ((n * 4) as i32)).store_vec(Vector::from(acc[n]));
    }
}

/// The product of a tile of 64 x 64 halves with its own transpose.
#[kernel(block = [128, 1, 1])]
fn by_layout(x: Tensor<F16, 2>, y: TensorMut<F32, 1>) {
    let tile = shared_tensor::<F16>("tile", layout![(64, 64); (72, 1)]);
    let rows = TiledCopy::<F16>::rows(CopyAtom::CpAsync, 128, 64, 8);
    let from = x.tile([64, 64], (0, 0)).vectors(8).whole();
    copy(&rows, &rows.partition_global(&from), &rows.partition_shared(&tile));
    cp_async_commit();
    cp_async_wait(0);
    barrier();
    let mma = TiledMma::<MmaSync<16, 8, 16, F16>>::new([4, 1]);
    let mut acc = mma.accumulators(64, 64);
    let (a, b) = (mma.partition_a(&tile), mma.partition_b(&tile));
    for step in range_constexpr(4) {
        gemm(&a.load(step), &b.load(step), &mut acc);
    }
    for n in range_constexpr(8) {
        let sums: [F32; 4] = std::array::from_fn(|v| acc.get([0, n], v));
        y.at(thread_id(X) * 32 + ((n * 4) as i32)).store_vec(Vector::from(sums));
    }
}

/// Instructions of a PTX text by their first word.
fn instructions(ptx: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in ptx.lines().map(str::trim).filter(|line| line.ends_with(';') && !line.starts_with(['.', '/'])) {
        let word = line.split(['.', ' ', '\t']).next().unwrap_or_default();
        *counts.entry(word.to_owned()).or_default() += 1;
    }
    counts
}

/// Layouts that are static leave nothing behind: the same instructions as by hand, and no more arithmetic on integers.
#[test]
fn static_layouts_leave_no_arithmetic() {
    let counts = |traced: lacewing::Traced| {
        let artifact = emit(&traced, Emit::Ptx, &EmitOptions::default()).unwrap();
        instructions(artifact.text().unwrap())
    };
    let hand = counts(by_hand::new().traced(Target::SM_80).unwrap());
    let layout = counts(by_layout::new().traced(Target::SM_80).unwrap());
    for exact in ["ldmatrix", "mma", "cp", "st", "bar"] {
        assert_eq!(layout.get(exact), hand.get(exact), "{exact}: {layout:?} by hand {hand:?}");
    }
    let arithmetic = ["add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "cvt", "bfe", "bfi", "rem", "div"];
    let sum = |counts: &BTreeMap<String, usize>| arithmetic.iter().filter_map(|name| counts.get(*name)).sum::<usize>();
    assert!(sum(&layout) <= sum(&hand), "{layout:?} by hand {hand:?}");
}

/// Swizzled and padded layouts for the accesses of a real kernel, proven on every target.
#[test]
fn layouts_without_bank_conflicts_are_found_for_every_target() {
    use lacewing::core::atoms::{WarpAccess, access_conflicts};
    let mma = TiledMma::<MmaSync<16, 8, 16, BF16>>::new([4, 1]);
    for columns in [32, 64, 128] {
        let fill = TiledCopy::<BF16>::rows(CopyAtom::CpAsync, 128, columns, 8);
        let mut accesses = mma.matrix_accesses(Role::A, [64, columns], false);
        accesses.extend(mma.matrix_accesses(Role::B, [64, columns], false));
        accesses.extend(mma.matrix_accesses(Role::B, [columns, 64], true));
        accesses.extend(fill.accesses(Target::SM_90A, [64, columns], 8, true));
        for spread in [Spread::Pad, Spread::Swizzle] {
            let found = conflict_free(Target::SM_90A, [64, columns], 2, spread, &accesses);
            if (columns, spread) == (32, Spread::Pad) {
                // Two rows are filled at once, and between them a padded tile has a gap.
                let text = found.unwrap_err().to_string();
                assert!(text.contains("64 x 32 elements") && text.contains("2-way"), "{text}");
                continue;
            }
            let layout = found.unwrap();
            for access in &accesses {
                assert!(access_conflicts(Target::SM_90A, &layout, 2, access).unwrap().is_free(), "{layout}");
            }
        }
    }
    // Eight bytes a lane, four neighbours of k: how MFMA reads A.
    for target in CDNA {
        let lanes = (0..64).map(|lane| [lane % 32, lane / 32 * 4]).collect();
        let access = WarpAccess { lanes, bytes: 8, store: false };
        for spread in [Spread::Pad, Spread::Swizzle] {
            conflict_free(target, [64, 64], 2, spread, std::slice::from_ref(&access)).unwrap();
        }
        let plain = ComposedLayout::new(Swizzle::IDENTITY, layout![(64, 64); (64, 1)].unwrap()).unwrap();
        assert!(!access_conflicts(target, &plain, 2, &access).unwrap().is_free());
    }
}

/// y = the numbers of its elements, row by row, by way of sums and shared memory.
#[kernel(block = [128, 1, 1])]
fn numbered<T>(#[comptime] storage: Storage, y: TensorMut<T, 2>)
where
    T: Float + CastTarget,
{
    let mma = TiledMma::<MmaSync<16, 8, 16, F16>>::new([2, 2]);
    let mut acc = mma.accumulators(64, 48);
    let [row, column] = mma.thread_coordinate(64, 48);
    for element in constexpr(acc.elements()) {
        let number = (row + (element.row as i32)) * 48 + column + (element.column as i32);
        // Numbers that 16 bits hold.
        acc.set(element.atom, element.value, (number % 251).cast::<F32>());
    }
    let tile = shared_tensor::<T>("tile", storage.layout(64, 48, 2));
    mma.store_c(&acc, &tile);
    barrier();
    let tiled = TiledCopy::<T>::rows(CopyAtom::Registers, 128, 16, 1);
    copy(&tiled, &tiled.partition_shared(&tile), &tiled.partition_global(&y.tile([64, 48], (0, 0))));
}

/// Sums go to shared memory four matrices at a time where the chip can, and arrive the same where it cannot.
#[test]
fn sums_go_to_shared_memory_by_stmatrix() {
    for target in [Target::SM_80, Target::SM_90A, Target::SM_100A] {
        for storage in Storage::ALL {
            let traced = numbered::<BF16>::new(storage).traced(target).unwrap();
            let text = traced.text();
            let (count, transposed) = (text.matches("lw.stmatrix").count(), text.contains("trans = true"));
            // A warp has 32 x 24 sums: 12 matrices.
            let wanted = if target == Target::SM_80 { 0 } else { 3 };
            assert_eq!((count, transposed), (wanted, wanted > 0 && storage == Storage::Across), "{target} {storage:?}");
            let device = Device::emulator(target).unwrap();
            let mut y = device.tensor_uninit::<bf16, 2>([64, 48]).unwrap();
            numbered::<BF16>::new(storage).grid([1, 1, 1]).launch(&device, (&mut y,)).unwrap();
            let right = |(at, &x): (usize, &bf16)| x == bf16::from_f32((at % 251) as f32);
            assert!(y.to_vec().unwrap().iter().enumerate().all(right), "{target} {storage:?}");
        }
    }
    // The layout that `ldmatrix` reads without conflicts takes the sums without conflicts.
    let mma = TiledMma::<MmaSync<16, 8, 16, F16>>::new([2, 2]);
    for trans in [false, true] {
        let (shape, stores) = ([64, 64], mma.matrix_accesses(Role::C, [64, 64], trans));
        assert!(stores.len() == 4 * 4 && stores.iter().all(|access| access.store && access.lanes.len() == 32));
        let layout = conflict_free(Target::SM_90A, shape, 2, Spread::Swizzle, &stores).unwrap();
        assert_eq!(layout.to_string(), "Sw<3,3,3> o 0 o (64,64):(64,1)");
    }
}

/// The drawings of the book are those that the program makes. To write them anew, set `LACEWING_UPDATE_DRAWINGS`.
#[test]
fn the_drawings_of_the_book_are_true() {
    use lacewing::core::atoms::Drawing;
    let half = MmaSync::<16, 8, 16, F16>::SPEC;
    let memory = |swizzle| ComposedLayout::new(swizzle, layout![(8, 8); (8, 1)].unwrap()).unwrap();
    // Pieces of 16 bytes in rows of 128.
    let banks =
        |layout: &ComposedLayout| Drawing::of_layout(layout).unwrap().with_banks(layout, 16, Target::SM_90A).unwrap();
    let drawings = [
        ("mma-a", Drawing::of_operand(&half, Role::A)),
        ("mma-b", Drawing::of_operand(&half, Role::B)),
        ("mma-c", Drawing::of_operand(&half, Role::C)),
        ("mfma-c", Drawing::of_operand(&Mfma::<16, 16, 16, F16>::SPEC, Role::C)),
        ("tiled-mma", Drawing::of_tiled_mma(&half, [2, 1], Role::C, [32, 16]).unwrap()),
        ("tiled-copy", Drawing::of_tiled_copy(&layout![(8, 4); (4, 1)].unwrap(), [1, 2], [16, 8]).unwrap()),
        ("banks", banks(&memory(Swizzle::IDENTITY))),
        ("banks-swizzled", banks(&memory(Swizzle::new(3, 0, 3).unwrap()))),
    ];
    for (name, drawing) in drawings {
        let path = format!("{}/docs/src/reference/drawings/{name}.svg", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("LACEWING_UPDATE_DRAWINGS").is_some() {
            std::fs::write(&path, drawing.svg()).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == drawing.svg(), "{path} is not what is drawn: set LACEWING_UPDATE_DRAWINGS and look at it");
    }
}

/// `lacewing draw`, on all that it draws, and on what it refuses.
#[test]
fn drawings_from_the_command_line() {
    let draw = |arguments: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let words = ["lacewing", "draw"].iter().chain(arguments).map(std::ffi::OsString::from);
        let mut io = lacewing::cli::Io { out: &mut out, err: &mut err };
        let status = lacewing::cli::run(&[], words, &mut io);
        (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    };
    let (status, svg, err) = draw(&["layout", "(4,8):(8,1)", "--swizzle", "2,0,3", "--banks", "--element", "4"]);
    assert_eq!((status, err.as_str()), (0, ""));
    // Row 1, column 0 is index 8 ^ 1 in bank 9.
    assert!(svg.contains(">9</text>") && svg.contains(">b9</text>") && svg.contains("Sw&lt;2,0,3&gt;"), "{svg}");
    let (status, svg, _) = draw(&["mma", "mfma.16x16x4.f64", "--operand", "B"]);
    assert!(status == 0 && svg.contains(">T63</text>"), "{svg}");
    let (status, svg, _) = draw(&["mma", "mma_sync.16x8x16.bf16", "--warps", "2x2", "--tile", "64x32"]);
    assert!(status == 0 && svg.contains(">T127</text>") && svg.contains(">V15</text>"), "{svg}");
    let (status, svg, _) = draw(&["copy", "(4,8):(8,1)", "--values", "1x4", "--tile", "8x32", "--banks"]);
    assert!(status == 0 && svg.contains(">T31</text>") && svg.contains(">V7</text>"), "{svg}");
    for (arguments, message) in [
        (vec!["layout", "(4,8"], "expected"),
        (vec!["layout", "(4,8,2):(16,2,1)"], "a layout's rank of 3: a drawing has rows and columns"),
        (vec!["layout", "(4096,2)"], "rows and columns are 1 to 512"),
        (vec!["mma", "mma_sync.16x8x16.f32"], "did you mean `mma_sync.16x8x16.f16`?"),
        (vec!["mma", "fma.1x1x1.f32", "--operand", "E"], "there is no operand `E`"),
        (vec!["mma", "mma_sync.16x8x8.f16", "--warps", "2x2", "--tile", "16x16"], "2 x 2 warps of 16 x 8"),
        (vec!["copy", "(4,8):(8,2)", "--tile", "8x8"], "(4,8):(8,2)"),
        (vec!["layout", "8:1", "--swizzle", "3,3"], "`3,3` is no swizzle"),
        (vec!["layout", "8:1", "--swizzle", "3,0,1"], "the fields overlap"),
        (vec!["copy", "8:1", "--tile", "8"], "`8` is not two numbers"),
    ] {
        let (status, out, err) = draw(&arguments);
        assert!(status == 2 && out.is_empty() && err.contains(message), "{arguments:?}: {status} {err}");
    }
}
