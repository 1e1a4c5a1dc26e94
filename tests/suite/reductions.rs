//! Reductions of values of several parts over warps and blocks, against plain Rust, for every chip and for blocks of any size.

use lacewing::prelude::*;
use lacewing::{Error, rt};

use crate::cuda::gpu;

/// Runs for each chip, and on a GPU if there is one.
#[track_caller]
fn everywhere(run: impl Fn(&Device) -> Result<(), Error>) {
    for target in [Target::SM_80, Target::SM_90A, Target::GFX942] {
        for seed in 0..3 {
            let device = Device::emulator(target).unwrap().with_seed(seed);
            run(&device).unwrap_or_else(|error| panic!("{target}, seed {seed}: {error}"));
        }
    }
    if let Some(device) = gpu() {
        run(&device).unwrap_or_else(|error| panic!("{}: {error}", device.target()));
    }
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 1009) as f32 * 0.25 - 100.0).collect()
}

/// The largest element and its index; of equal ones the first. Blocks of any number of threads.
#[kernel(block = [threads, 1, 1])]
fn argmax(#[comptime] threads: u32, x: Tensor<F32, 2>, best: TensorMut<F32, 1>, at: TensorMut<I32, 1>) {
    let row = block_id(X);
    let none = (F32::from(f32::NEG_INFINITY), I32::from(i32::MAX));
    let mut own = none;
    for i in range(thread_id(X), x.extent(1), threads as usize) {
        let value = x.at((row, i)).load();
        // Later ones of a thread are further on.
        let larger = value > own.0;
        own = (larger.select(value, own.0), larger.select(i, own.1));
    }
    let (value, index) = reduce_block(
        own,
        |a, b| {
            let first = a.0 > b.0 || a.0 == b.0 && a.1 < b.1;
            (first.select(a.0, b.0), first.select(a.1, b.1))
        },
        none,
    );
    if thread_id(X) == 0 {
        best.at(row).store(value);
        at.at(row).store(index);
    }
}

#[test]
fn the_largest_with_its_index() {
    let (rows, columns) = (3, 1500);
    let x = numbers(rows * columns);
    for threads in [32, 40, 64, 96, 100, 256] {
        everywhere(|device| {
            let input = device.tensor_from_slice(&x, [rows, columns])?;
            let mut best = device.tensor_uninit::<f32, 1>([rows])?;
            let mut at = device.tensor_uninit::<i32, 1>([rows])?;
            argmax::new(threads).grid([rows, 1, 1]).launch(device, (&input, &mut best, &mut at))?;
            let (best, at) = (best.to_vec()?, at.to_vec()?);
            for (row, x) in x.chunks(columns).enumerate() {
                let wanted = (0..columns).fold(0, |best, i| if x[i] > x[best] { i } else { best });
                assert_eq!((best[row], at[row] as usize), (x[wanted], wanted), "{threads} threads, row {row}");
            }
            Ok(())
        });
    }
}

/// Mean and spread of some numbers, as they are put together (Chan, Golub, LeVeque: "Updating Formulae and a Pairwise Algorithm
/// for Computing Sample Variances").
#[derive(Clone, Copy, Carried)]
struct Moments {
    mean: F32,
    squares: F32,
    count: F32,
}

impl Moments {
    #[device]
    fn of(x: F32) -> Self {
        Moments { mean: x, squares: F32::from(0.0), count: F32::from(1.0) }
    }

    #[device]
    fn none() -> Self {
        let zero = F32::from(0.0);
        Moments { mean: zero, squares: zero, count: zero }
    }

    #[device]
    fn with(self, other: Self) -> Self {
        let count = self.count + other.count;
        let share = (count > 0.0).select(other.count / count.max(F32::from(1.0)), F32::from(0.0));
        let apart = other.mean - self.mean;
        let squares = self.squares + other.squares + apart * apart * self.count * share;
        Moments { mean: self.mean + apart * share, squares, count }
    }
}

#[kernel(block = [threads, 1, 1])]
fn moments(#[comptime] threads: u32, x: Tensor<F32, 2>, y: TensorMut<F32, 2>) {
    let row = block_id(X);
    let mut own = Moments::none();
    for i in range(thread_id(X), x.extent(1), threads as usize) {
        own = own.with(Moments::of(x.at((row, i)).load()));
    }
    let all = reduce_block(own, |a, b| a.with(b), Moments::none());
    if thread_id(X) == 0 {
        y.at((row, 0)).store(all.mean);
        y.at((row, 1)).store(all.squares / all.count);
        y.at((row, 2)).store(all.count);
    }
}

#[test]
fn mean_and_variance_by_a_struct() {
    let (rows, columns) = (2, 1100);
    let x: Vec<f32> = numbers(rows * columns).into_iter().map(|x| x + 1000.0).collect();
    for threads in [48, 128] {
        everywhere(|device| {
            let input = device.tensor_from_slice(&x, [rows, columns])?;
            let mut y = device.tensor_uninit::<f32, 2>([rows, 3])?;
            moments::new(threads).grid([rows, 1, 1]).launch(device, (&input, &mut y))?;
            for (x, y) in x.chunks(columns).zip(y.to_vec()?.chunks(3)) {
                let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / columns as f64;
                let variance = x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / columns as f64;
                // Some forty roundings of f32 on the way of each number.
                assert!((f64::from(y[0]) - mean).abs() <= 4e-6 * mean, "{threads}: {} and {mean}", y[0]);
                assert!((f64::from(y[1]) - variance).abs() <= 1e-5 * variance, "{threads}: {} and {variance}", y[1]);
                assert_eq!(y[2], columns as f32);
            }
            Ok(())
        });
    }
}

/// Parts of every kind: conditions, vectors, bytes, 64 bits, an array.
#[kernel(block = [threads, 1, 1])]
fn parts(#[comptime] threads: u32, y: TensorMut<I64, 1>) {
    let i = thread_id(X);
    type Parts = (Bool, (Vector<I32, 2>, U8), [I64; 2]);
    let own: Parts = (
        i < 5,
        (Vector::<I32, 2>::splat(I32::from(1)).with(0, i), i.cast::<U8>()),
        [i.cast::<I64>() << 33, I64::from(1) << 40],
    );
    let none: Parts = (Bool::from(false), (Vector::splat(I32::from(0)), U8::from(0)), [I64::from(0), I64::from(0)]);
    let all = reduce_block(
        own,
        |a, b| (a.0 | b.0, (a.1.0 + b.1.0, a.1.1.max(b.1.1)), [a.2[0] + b.2[0], a.2[1] + b.2[1]]),
        none,
    );
    let each = [
        all.0.select(I64::from(1), I64::from(0)),
        all.1.0.get(0).cast::<I64>(),
        all.1.0.get(1).cast::<I64>(),
        all.1.1.cast::<I64>(),
        all.2[0],
        all.2[1],
    ];
    // Every thread has the result.
    for (part, value) in constexpr(each.into_iter().enumerate()) {
        y.at(i * 6 + part as i32).store(value);
    }
}

#[test]
fn parts_of_every_kind() {
    for threads in [33_u32, 64, 192] {
        everywhere(|device| {
            let mut y = device.tensor_uninit::<i64, 1>([6 * threads as usize])?;
            parts::new(threads).grid([1, 1, 1]).launch(device, (&mut y,))?;
            let n = i64::from(threads);
            let sum = n * (n - 1) / 2;
            let wanted = [1, sum, n, n - 1, sum << 33, n << 40];
            for (thread, got) in y.to_vec()?.chunks(6).enumerate() {
                assert_eq!(got, wanted, "thread {thread} of {threads}");
            }
            Ok(())
        });
    }
}

#[kernel(block = [64, 1, 1])]
fn uniform_sum(n: Uniform<I32>, y: TensorMut<I32, 1>) {
    let sum = reduce_block(n, |a, b| a + b, Uniform::<I32>::from(0));
    y.at(thread_id(X)).store(*sum);
}

#[kernel(block = [64, 1, 1])]
fn place_sum(y: TensorMut<I32, 1>) {
    let at = y.at(thread_id(X));
    let (_, sum) = reduce_warp((at, I32::from(1)), |a, b| (a.0, a.1 + b.1));
    y.at(thread_id(X)).store(sum);
}

#[test]
fn what_is_no_threads_own_is_refused() {
    let refusal = |kernel: &dyn Fn() -> Result<lacewing::Traced, Error>| kernel().unwrap_err().to_string();
    let text = refusal(&|| trace(&uniform_sum::new()));
    assert!(text.contains("a uniform value is reduced, which the lanes of a warp have alike"), "{text}");
    let text = refusal(&|| trace(&place_sum::new()));
    assert!(text.contains("an address is reduced: a place, or a piece of memory"), "{text}");
}

fn trace(kernel: &impl rt::Kernel) -> Result<lacewing::Traced, Error> {
    Ok(lacewing::core::trace_kernel(kernel, Target::SM_80)?)
}
