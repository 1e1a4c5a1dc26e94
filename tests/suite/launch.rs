//! Launches: what a device takes, what it refuses, and what comes back.

use std::sync::atomic::{AtomicUsize, Ordering};

use lacewing::prelude::*;
use lacewing::runtime::{Error, LaunchStats};

#[kernel(block = [threads, 1, 1])]
fn axpy<T: Float>(#[comptime] threads: usize, a: T, x: Tensor<T, 1>, y: TensorMut<T, 1>) {
    let i = block_id(X) * block_dim(X) + thread_id(X);
    if i < x.extent(0) {
        let place = y.at(i);
        place.store(a * x.at(i).load() + place.load());
    }
}

#[kernel(block = [64, 1, 1])]
fn copy2(x: Tensor<I32, 2>, y: TensorMut<I32, 2>) {
    let i = thread_id(X);
    if i < x.extent(0) {
        for j in range(x.extent(1)) {
            y.at((i, j)).store(x.at((i, j)).load());
        }
    }
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

/// The text of a launch that is refused before anything runs.
fn refusal(outcome: Result<LaunchStats, Error>) -> String {
    match outcome {
        Err(error @ Error::Launch { .. }) => error.to_string(),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_kernel_runs_with_typed_arguments() {
    let n = 1000;
    for target in [Target::SM_80, Target::GFX942] {
        let dev = Device::emulator(target).unwrap();
        let x = dev.tensor_from_slice(&numbers(n), [n]).unwrap();
        let mut y = dev.tensor_zeros::<f32, 1>([n]).unwrap();
        // Without a suffix: the kernel says what 2.0 is.
        axpy::<F32>::new(256).grid([n.div_ceil(256), 1, 1]).launch(&dev, (2.0, &x, &mut y)).unwrap();
        assert!(y.to_vec().unwrap().iter().enumerate().all(|(i, y)| *y == 2.0 * i as f32));
    }
}

#[test]
fn views_are_arguments_like_any_other() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let x = dev.tensor_from_slice(&(0..24).collect::<Vec<i32>>(), [4, 6]).unwrap();
    let part = x.slice(0, 1..3).unwrap().slice(1, 2..5).unwrap();
    let transposed = part.permute([1, 0]).unwrap();
    let mut y = dev.tensor_uninit::<i32, 2>([3, 2]).unwrap();
    copy2::new().grid([1, 1, 1]).launch(&dev, (&transposed, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [8, 14, 9, 15, 10, 16]);

    // Backwards, and the same row twice.
    let reversed = x.as_strided(23, [2, 3], [-6, -1]).unwrap();
    let row = x.slice(0, 3..4).unwrap().slice(1, 0..3).unwrap().broadcast([2, 3]).unwrap();
    let mut y = dev.tensor_uninit::<i32, 2>([2, 3]).unwrap();
    copy2::new().grid([1, 1, 1]).launch(&dev, (&reversed, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [23, 22, 21, 17, 16, 15]);
    copy2::new().grid([1, 1, 1]).launch(&dev, (&row, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [18, 19, 20, 18, 19, 20]);

    // A view that is written: only its elements change.
    let mut z = dev.tensor_zeros::<i32, 2>([4, 6]).unwrap();
    let mut column = z.slice(1, 5..6).unwrap();
    let source = x.slice(1, 0..1).unwrap();
    copy2::new().grid([1, 1, 1]).launch(&dev, (&source, &mut column)).unwrap();
    let written = z.to_vec().unwrap();
    assert_eq!(written.iter().filter(|x| **x != 0).count(), 3);
    assert_eq!((written[11], written[17], written[23]), (6, 12, 18));
    assert!(z.copy_from(&[0; 24]).is_ok());
}

#[test]
fn what_is_written_overlaps_nothing() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let x = dev.tensor_from_slice(&[1, 2, 3, 4], [2, 2]).unwrap();
    let mut alias = x.reshape([2, 2]).unwrap();
    let text = refusal(copy2::new().grid([1, 1, 1]).launch(&dev, (&x, &mut alias)));
    assert!(text.contains("tensor `y` is written and shares memory with `x`"), "{text}");

    let mut rows = x.slice(0, 0..1).unwrap().broadcast([2, 2]).unwrap();
    let other = dev.tensor_from_slice(&[1, 2, 3, 4], [2, 2]).unwrap();
    let text = refusal(copy2::new().grid([1, 1, 1]).launch(&dev, (&other, &mut rows)));
    assert!(text.contains("`y` is written, but its view has one element at several indices"), "{text}");

    // Parts of one buffer that do not meet are two tensors.
    let top = x.slice(0, 0..1).unwrap();
    let mut bottom = x.slice(0, 1..2).unwrap();
    copy2::new().grid([1, 1, 1]).launch(&dev, (&top, &mut bottom)).unwrap();
    assert_eq!(x.to_vec().unwrap(), [1, 2, 1, 2]);
}

#[test]
fn a_launch_beyond_a_limit_is_refused() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let x = dev.tensor_zeros::<f32, 1>([1]).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([1]).unwrap();
    let kernel = axpy::<F32>::new(32);
    let text = refusal(kernel.grid([1, 65536, 1]).launch(&dev, (1.0, &x, &mut y)));
    assert_eq!(
        text,
        "kernel `axpy` cannot be launched: the grid has 65536 blocks in y, and at most 65535 are possible"
    );
    let text = refusal(kernel.grid([1 << 31, 1, 1]).launch(&dev, (1.0, &x, &mut y)));
    assert!(text.contains("in x"), "{text}");

    let long = x.as_strided(0, [1 << 31], [0]).unwrap();
    let text = refusal(kernel.grid([1, 1, 1]).launch(&dev, (1.0, &long, &mut y)));
    assert!(text.contains("tensor `x` has an extent of 2147483648"), "{text}");

    let other = Device::emulator(Target::SM_80).unwrap();
    let text = refusal(kernel.grid([1, 1, 1]).launch(&other, (1.0, &x, &mut y)));
    assert!(text.contains("tensor `x` lies on another device"), "{text}");

    // 4096 threads: refused by the target's limit, whoever finds it.
    let outcome = axpy::<F32>::new(4096).grid([1, 1, 1]).launch(&dev, (1.0, &x, &mut y));
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("4096") && text.contains("1024"), "{text}");
}

#[test]
fn a_grid_without_blocks_and_tensors_without_elements_are_nothing_to_do() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let x = dev.tensor_zeros::<f32, 1>([0]).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([0]).unwrap();
    let kernel = axpy::<F32>::new(32);
    assert_eq!(kernel.grid([0, 1, 1]).launch(&dev, (1.0, &x, &mut y)).unwrap(), LaunchStats::default());
    kernel.grid([1, 1, 1]).launch(&dev, (1.0, &x, &mut y)).unwrap();
    assert!(y.to_vec().unwrap().is_empty());
}

#[test]
fn a_read_of_what_nobody_wrote_is_reported() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let x = dev.tensor_uninit::<f32, 1>([64]).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([64]).unwrap();
    let outcome = axpy::<F32>::new(64).grid([1, 1, 1]).launch(&dev, (1.0, &x, &mut y));
    let Err(Error::Report(report)) = outcome else { panic!("no report: {outcome:?}") };
    assert_eq!(report.kind.name(), "uninitialized");
    // And at the user's line.
    assert!(report.to_string().contains("place.store(a * x.at(i).load() + place.load());"), "{report}");
}

/// Counts the threads that find every argument as it was given.
macro_rules! scalar_kernel {
    ($($name:ident: $ty:ident = $value:expr),*) => {
        #[kernel(block = [32, 1, 1])]
        fn scalars($($name: $ty,)* right: TensorMut<I32, 1>) {
            $(right.at(thread_id(X)).store(right.at(thread_id(X)).load() + ($name == $ty::from($value)).select(
                I32::from(1),
                I32::from(0),
            ));)*
        }
    };
}

scalar_kernel! {
    a: I8 = -5i8, b: I16 = -300i16, c: I32 = -70000i32, d: I64 = -(1i64 << 40), e: U8 = 200u8, f: U16 = 60000u16,
    g: U32 = 4_000_000_000u32, h: U64 = 1u64 << 63, i: F32 = 0.1f32, j: F64 = 0.1f64, k: Bool = true
}

#[test]
fn scalars_of_every_type_arrive() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let mut right = dev.tensor_zeros::<i32, 1>([32]).unwrap();
    let arguments = (
        -5i8,
        -300i16,
        -70000,
        -(1i64 << 40),
        200u8,
        60000u16,
        4_000_000_000u32,
        1u64 << 63,
        0.1f32,
        0.1f64,
        true,
        &mut right,
    );
    scalars::new().grid([1, 1, 1]).launch(&dev, arguments).unwrap();
    assert_eq!(right.to_vec().unwrap(), [11; 32]);
}

static TRACES: AtomicUsize = AtomicUsize::new(0);

fn count_trace() {
    TRACES.fetch_add(1, Ordering::SeqCst);
}

#[kernel(block = [32, 1, 1])]
fn counted(#[comptime] value: i32, y: TensorMut<I32, 1>) {
    count_trace();
    y.at(thread_id(X)).store(I32::from(value));
}

#[test]
fn a_kernel_is_traced_once_however_many_threads_ask() {
    let dev = Device::emulator(Target::SM_80).unwrap();
    let run = |value: i32, dev: &Device| {
        let mut y = dev.tensor_uninit::<i32, 1>([32]).unwrap();
        counted::new(value).grid([1, 1, 1]).launch(dev, (&mut y,)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [value; 32]);
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| run(7, &dev));
        }
    });
    assert_eq!(TRACES.load(Ordering::SeqCst), 1);
    // Another value of a compile-time parameter, or another target, is another kernel.
    run(8, &dev);
    run(8, &dev);
    assert_eq!(TRACES.load(Ordering::SeqCst), 2);
    run(8, &Device::emulator(Target::GFX942).unwrap());
    assert_eq!(TRACES.load(Ordering::SeqCst), 3);
}

#[test]
fn the_ir_of_a_kernel_is_text() {
    let text = axpy::<F16>::new(128).mlir(Target::SM_90A).unwrap();
    assert!(text.contains("gpu.func @axpy") && text.contains("array<i32: 128, 1, 1>"), "{text}");
}
