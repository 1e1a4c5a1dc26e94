//! NVIDIA GPUs. What needs one is skipped, and says so, where there is none; `LACEWING_REQUIRE_GPU=1` makes that a
//! failure.

mod counters;
mod faults;
mod kernels;

use std::ffi::OsString;
use std::time::Instant;

use lacewing::Traced;
use lacewing::cli::{Io, run};
use lacewing::core::lower::Emit;
use lacewing::prelude::*;
use lacewing::runtime::cuda::{Assembler, CompileOptions, cache_key};
use lacewing::runtime::{Error, LaunchStats};

/// The first GPU, or why a test is skipped.
pub(crate) fn gpu() -> Option<Device> {
    match Device::cuda(0) {
        Ok(device) => Some(device.with_synchronous(true)),
        Err(error) => {
            assert!(std::env::var_os("LACEWING_REQUIRE_GPU").is_none(), "{error}");
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Status, standard output and standard error of a command.
pub(crate) fn lacewing(arguments: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["lacewing"].iter().chain(arguments).map(OsString::from);
    let status = run(lacewing::kernels::ENTRIES, arguments, &mut Io { out: &mut out, err: &mut err });
    (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn without_a_gpu_every_way_in_says_what_is_missing() {
    let Err(error) = Device::cuda(0) else { return };
    assert!(matches!(error, Error::Device(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("CUDA driver") && text.contains("--device emulator"), "{text}");
    assert_eq!(Device::cuda_for(7, Target::SM_80).unwrap_err().to_string(), text);

    let (status, out, err) = lacewing(&["run", "axpy", "--device", "cuda:0", "--random", "1"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.starts_with("error: ") && err.contains("--device emulator"), "{err}");

    let (status, out, _) = lacewing(&["doctor"]);
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("missing  CUDA driver"), "{out}");
}

#[test]
fn a_gpu_does_not_run_code_for_another_vendor() {
    let Some(_) = gpu() else { return };
    let text = Device::cuda_for(0, Target::GFX942).unwrap_err().to_string();
    assert!(text.contains("does not run code for gfx942"), "{text}");
    let text = Device::cuda(99).unwrap_err().to_string();
    assert!(text.contains("there is no cuda:99: the driver lists cuda:0"), "{text}");
    let (status, out, _) = lacewing(&["doctor"]);
    assert_eq!(status, 0);
    assert!(out.contains("found    CUDA driver") && out.contains("cuda:0 NVIDIA"), "{out}");
}

#[kernel(block = [256, 1, 1])]
fn axpy(a: F32, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = block_id(X) * block_dim(X) + thread_id(X);
    if i < x.extent(0) {
        let place = y.at(i);
        place.store(a * x.at(i).load() + place.load());
    }
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

#[test]
fn each_way_to_compile_gives_the_same_numbers() {
    let Some(device) = gpu() else { return };
    let n = 100_003;
    let mut targets = vec![device.clone()];
    targets.extend(Device::cuda_for(0, Target::SM_80));
    for device in targets {
        for assembler in [Assembler::Best, Assembler::Driver] {
            for opt_level in [0, 3] {
                let device =
                    device.clone().with_compile_options(CompileOptions { opt_level, assembler, deny_warnings: false });
                let x = device.tensor_from_slice(&ramp(n), [n]).unwrap();
                let mut y = device.tensor_from_slice(&ramp(n), [n]).unwrap();
                axpy::new().grid([n.div_ceil(256), 1, 1]).launch(&device, (2.0, &x, &mut y)).unwrap();
                assert!(y.to_vec().unwrap().iter().enumerate().all(|(i, y)| *y == 3.0 * i as f32));
            }
        }
    }
}

/// A helper before and after an edit.
mod before {
    use lacewing::prelude::*;

    #[device]
    pub fn helper(x: F32) -> F32 {
        x * 2.0
    }
}

mod after {
    use lacewing::prelude::*;

    #[device]
    pub fn helper(x: F32) -> F32 {
        x * 3.0
    }
}

/// One kernel in two programs that differ in a helper.
macro_rules! program {
    ($name:ident, $helper:path) => {
        mod $name {
            use super::*;

            #[kernel(block = [32, 1, 1])]
            pub fn scale(y: TensorMut<F32, 1>) {
                let place = y.at(thread_id(X));
                place.store($helper(place.load()));
            }
        }
    };
}

program!(first, before::helper);
program!(same, before::helper);
program!(edited, after::helper);

#[test]
fn what_is_cached_on_disk_is_found_by_all_that_it_is_made_from() {
    let key = |kernel: &dyn Fn() -> Result<Traced, Error>, form, level| {
        cache_key(&kernel().unwrap(), form, level).unwrap().to_string()
    };
    let first = || first::scale::new().traced(Target::SM_90A);
    let known = key(&first, Emit::Ptx, 3);
    // The same kernel elsewhere in a program, and traced again, is the same code.
    assert_eq!(known, key(&first, Emit::Ptx, 3));
    assert_eq!(known, key(&|| same::scale::new().traced(Target::SM_90A), Emit::Ptx, 3));
    let others = [
        key(&|| edited::scale::new().traced(Target::SM_90A), Emit::Ptx, 3),
        key(&|| first::scale::new().traced(Target::SM_80), Emit::Ptx, 3),
        key(&first, Emit::Ptx, 2),
    ];
    assert!(!others.contains(&known), "{known} {others:?}");
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

#[test]
fn views_are_read_and_written_as_on_the_emulator() {
    let Some(gpu) = gpu() else { return };
    let run = |device: &Device| {
        let x = device.tensor_from_slice(&(0..24).collect::<Vec<i32>>(), [4, 6]).unwrap();
        let transposed = x.slice(0, 1..3).unwrap().slice(1, 2..5).unwrap().permute([1, 0]).unwrap();
        let z = device.tensor_zeros::<i32, 2>([4, 6]).unwrap();
        let mut part = z.slice(0, 1..4).unwrap().slice(1, 3..5).unwrap();
        copy2::new().grid([1, 1, 1]).launch(device, (&transposed, &mut part)).unwrap();
        let mut column = z.slice(1, 0..1).unwrap();
        column.copy_from(&[100, 101, 102, 103]).unwrap();
        let reversed = z.as_strided(23, [24], [-1]).unwrap();
        let empty = z.slice(0, 2..2).unwrap();
        (z.to_vec().unwrap(), part.to_vec().unwrap(), reversed.to_vec().unwrap(), empty.to_vec().unwrap())
    };
    assert_eq!(run(&gpu), run(&Device::emulator(gpu.target()).unwrap()));
}

#[kernel(block = [32, 1, 1])]
fn scalars(a: I8, b: I16, c: I32, d: I64, e: U8, f: U16, g: F32, h: F64, i: Bool, j: F16, right: TensorMut<I32, 1>) {
    let one = |good: Bool| good.select(I32::from(1), I32::from(0));
    let small = one(a == I8::from(-5i8)) + one(b == I16::from(-300i16)) + one(e == U8::from(200u8));
    let large = one(c == I32::from(-70000)) + one(d == I64::from(-(1i64 << 40))) + one(f == U16::from(60000u16));
    let real = one(g == F32::from(0.1f32)) + one(h == F64::from(0.1f64)) + one(j.cast::<F32>() == F32::from(1.5f32));
    let count = small + large + real + one(i);
    right.at(thread_id(X)).store(count);
}

#[test]
fn scalars_of_every_size_arrive() {
    let Some(device) = gpu() else { return };
    let mut right = device.tensor_uninit::<i32, 1>([32]).unwrap();
    let half = half::f16::from_f32(1.5);
    let arguments = (-5i8, -300i16, -70000, -(1i64 << 40), 200u8, 60000u16, 0.1f32, 0.1f64, true, half, &mut right);
    scalars::new().grid([1, 1, 1]).launch(&device, arguments).unwrap();
    assert_eq!(right.to_vec().unwrap(), [10; 32]);
}

/// Reverses a row of `n` numbers through shared memory.
#[kernel(block = [256, 1, 1])]
fn reverse(#[comptime] n: usize, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let room = shared_array::<F32>(n);
    for step in range_constexpr(0, n / 256) {
        let i = thread_id(X) + 256 * step as i32;
        room.at(i).store(x.at(i).load());
    }
    barrier();
    for step in range_constexpr(0, n / 256) {
        let i = thread_id(X) + 256 * step as i32;
        y.at(i).store(room.at(n as i32 - 1 - i).load());
    }
}

#[test]
fn a_block_may_have_more_shared_memory_than_is_static() {
    let Some(device) = gpu() else { return };
    for kib in [16, 48, 96, 160] {
        let n = kib * 256;
        let x = device.tensor_from_slice(&ramp(n), [n]).unwrap();
        let mut y = device.tensor_uninit::<f32, 1>([n]).unwrap();
        reverse::new(n).grid([1, 1, 1]).launch(&device, (&x, &mut y)).unwrap();
        assert!(y.to_vec().unwrap().iter().enumerate().all(|(i, y)| *y == (n - 1 - i) as f32), "{kib} KiB");
    }
}

#[test]
fn what_a_kernel_forgets_to_write_is_no_number() {
    let Some(device) = gpu() else { return };
    let y = device.tensor_uninit::<f32, 1>([1000]).unwrap();
    assert!(y.to_vec().unwrap().iter().all(|y| y.is_nan()));
}

/// Adds one `steps` times, each time through memory: long enough to be under way while the host goes on.
#[kernel(block = [256, 1, 1])]
fn count_up(steps: I32, y: TensorMut<F32, 1>) {
    let place = y.at(block_id(X) * 256 + thread_id(X));
    for _ in range(steps) {
        place.store(place.load() + 1.0);
    }
}

#[test]
fn streams_wait_for_each_other_where_they_share_memory() {
    let Some(device) = gpu() else { return };
    let first = device.with_synchronous(false);
    let second = first.new_stream().unwrap();
    let n = 256 * 64;
    for round in 0..20 {
        let mut y = first.tensor_zeros::<f32, 1>([n]).unwrap();
        let mut z = second.tensor_zeros::<f32, 1>([n]).unwrap();
        count_up::new().grid([64, 1, 1]).launch(&first, (1_000_000, &mut y)).unwrap();
        // Reads what the other stream is writing; then the other writes what this one reads.
        axpy::new().grid([64, 1, 1]).launch(&second, (1.0, &y, &mut z)).unwrap();
        count_up::new().grid([64, 1, 1]).launch(&first, (1, &mut y)).unwrap();
        assert_eq!(z.to_vec().unwrap(), vec![1_000_000.0; n], "round {round}");
        assert_eq!(second.tensor_zeros::<f32, 1>([1]).unwrap().to_vec().unwrap(), [0.0]);
        assert_eq!(y.to_vec().unwrap(), vec![1_000_001.0; n], "round {round}");
    }
}

#[test]
fn work_under_way_keeps_its_memory() {
    let Some(device) = gpu() else { return };
    let first = device.with_synchronous(false);
    let second = first.new_stream().unwrap();
    let n = 256 * 64;
    let mut z = second.tensor_zeros::<f32, 1>([n]).unwrap();
    let mut y = first.tensor_zeros::<f32, 1>([n]).unwrap();
    count_up::new().grid([64, 1, 1]).launch(&first, (1_000_000, &mut y)).unwrap();
    axpy::new().grid([64, 1, 1]).launch(&second, (1.0, &y, &mut z)).unwrap();
    // Freed while both streams use it, and asked for again at once with other content.
    drop(y);
    let other = first.tensor_from_slice(&vec![-1.0f32; n], [n]).unwrap();
    assert_eq!(z.to_vec().unwrap(), vec![1_000_000.0; n]);
    assert_eq!(other.to_vec().unwrap(), vec![-1.0; n]);
}

#[test]
fn a_graph_replays_its_launches_and_keeps_its_tensors() {
    let Some(device) = gpu() else { return };
    let n = 256 * 64;
    let mut y = device.tensor_zeros::<f32, 1>([n]).unwrap();
    let graph = {
        let x = device.tensor_from_slice(&vec![1.0f32; n], [n]).unwrap();
        let graph = device.capture(|device| {
            for _ in 0..5 {
                axpy::new().grid([64, 1, 1]).launch(device, (2.0, &x, &mut y))?;
            }
            let refused = device.tensor_zeros::<f32, 1>([1]).unwrap_err().to_string();
            assert!(refused.contains("cannot be captured"), "{refused}");
            Ok(())
        });
        graph.unwrap()
    };
    assert_eq!(y.to_vec().unwrap(), vec![0.0; n]);
    for _ in 0..10 {
        graph.launch().unwrap();
    }
    assert_eq!(y.to_vec().unwrap(), vec![100.0; n]);
    // Seen by other streams, too.
    let other = device.new_stream().unwrap();
    graph.launch().unwrap();
    let mut z = other.tensor_zeros::<f32, 1>([n]).unwrap();
    axpy::new().grid([64, 1, 1]).launch(&other, (1.0, &y, &mut z)).unwrap();
    assert_eq!(z.to_vec().unwrap(), vec![110.0; n]);
    // An error in the capture ends it, and the device goes on.
    let failed = device.capture(|_| Err(Error::Setting("no".to_owned())));
    assert!(matches!(failed, Err(Error::Setting(_))));
    assert_eq!(y.to_vec().unwrap(), vec![110.0; n]);
}

#[test]
fn others_go_on_while_a_graph_is_captured() {
    let Some(device) = gpu() else { return };
    let mut y = device.tensor_zeros::<f32, 1>([256]).unwrap();
    let graph = device.capture(|device| {
        let other = std::thread::spawn(|| {
            let device = Device::cuda(0)?;
            let stream = device.new_stream()?;
            let mut z = device.tensor_from_slice(&ramp(256), [256])?;
            count_up::new().grid([1, 1, 1]).launch(&stream, (3, &mut z))?;
            device.synchronize()?;
            z.to_vec()
        });
        assert_eq!(other.join().unwrap()?[255], 258.0);
        count_up::new().grid([1, 1, 1]).launch(device, (2, &mut y)).map(drop)
    });
    graph.unwrap().launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [2.0; 256]);
}

#[test]
fn the_emulator_says_that_it_has_no_graphs() {
    let text = Device::emulator(Target::SM_80).unwrap().capture(|_| Ok(())).unwrap_err().to_string();
    assert_eq!(text, "emulator:sm_80 has no graphs: launch the kernels themselves");
}

#[test]
fn a_prepared_launch_is_cheap() {
    let Some(device) = gpu() else { return };
    let device = device.with_synchronous(false);
    let x = device.tensor_zeros::<f32, 1>([256]).unwrap();
    let mut y = device.tensor_zeros::<f32, 1>([256]).unwrap();
    let launch = axpy::new().grid([1, 1, 1]);
    let prepared = launch.prepare(&device).unwrap();
    // Few enough at a time that the queue of the stream never fills up.
    let mut best = |launch: &mut dyn FnMut(&mut DevTensor<f32, 1>)| {
        let rounds = (0..50).map(|_| {
            device.synchronize().unwrap();
            let start = Instant::now();
            (0..100).for_each(|_| launch(&mut y));
            start.elapsed() / 100
        });
        rounds.min().unwrap_or_default()
    };
    let warm = best(&mut |y| drop(prepared.launch((1.0, &x, y)).unwrap()));
    let looked_up = best(&mut |y| drop(launch.launch(&device, (1.0, &x, y)).unwrap()));
    println!("a prepared launch takes {warm:?} of the CPU, one by name {looked_up:?}");
    assert!(warm.as_micros() < 20, "{warm:?}");
}

#[test]
fn events_keep_the_time() {
    let Some(device) = gpu() else { return };
    let device = device.with_synchronous(false);
    let mut y = device.tensor_zeros::<f32, 1>([256]).unwrap();
    let mut time = |steps: i32| {
        let start = device.record().unwrap();
        count_up::new().grid([1, 1, 1]).launch(&device, (steps, &mut y)).unwrap();
        start.until(&device.record().unwrap()).unwrap()
    };
    time(1);
    let (short, long) = (time(100_000), time(5_000_000));
    assert!(long > 10 * short && long < 200 * short, "{short:?} {long:?}");
    device.synchronize().unwrap();
}

#[test]
fn a_launch_that_breaks_a_limit_is_refused_before_it_runs() {
    let Some(device) = gpu() else { return };
    let x = device.tensor_zeros::<f32, 1>([1]).unwrap();
    let mut y = device.tensor_zeros::<f32, 1>([1]).unwrap();
    let refused = |outcome: Result<LaunchStats, Error>| match outcome {
        Err(Error::Launch { reason, .. }) => reason,
        other => panic!("not refused: {other:?}"),
    };
    let text = refused(axpy::new().grid([1, 70_000, 1]).launch(&device, (1.0, &x, &mut y)));
    assert!(text.contains("70000 blocks in y"), "{text}");
    let foreign = Device::emulator(Target::SM_80).unwrap().tensor_zeros::<f32, 1>([1]).unwrap();
    let text = refused(axpy::new().grid([1, 1, 1]).launch(&device, (1.0, &foreign, &mut y)));
    assert!(text.contains("lies on another device"), "{text}");
    let huge = device.tensor_zeros::<f32, 1>([1 << 42]).unwrap_err().to_string();
    assert!(huge.contains("cuda:0") && huge.contains("MiB are free"), "{huge}");
    // And the device is as good as before.
    axpy::new().grid([1, 1, 1]).launch(&device, (1.0, &x, &mut y)).unwrap();
    assert_eq!(axpy::new().grid([0, 1, 1]).launch(&device, (1.0, &x, &mut y)).unwrap(), LaunchStats::default());
}
