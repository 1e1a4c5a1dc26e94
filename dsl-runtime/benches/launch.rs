//! What a launch costs the host: time, and allocations of memory.
//!
//! `cargo bench -p lacewing-runtime --bench launch --no-default-features --features aot`, on a machine with an NVIDIA GPU. The
//! kernel is the committed artifact, so that nothing of a compiler is in the program.

#![allow(clippy::print_stdout, reason = "a benchmark says what it measured")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lacewing_core::types::{F32, Tensor, TensorMut};
use lacewing_runtime::artifact::Module;
use lacewing_runtime::{Device, Error};

type Axpy = (F32, Tensor<F32, 1>, TensorMut<F32, 1>);

/// Launches in a row between two waits: few enough that the stream's queue never fills up, so that the host never waits for
/// the GPU.
const BATCH: u32 = 200;
const BATCHES: usize = 500;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("not measured: {error}");
            // `cargo test` runs this too, on machines without a GPU.
            if std::env::args().any(|argument| argument == "--bench") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
    }
}

fn measure() -> Result<(), Error> {
    let device = Device::cuda(0)?;
    let kernel = Module::from_artifact(include_bytes!("../../examples/axpy.lwa").as_slice())?.kernel::<Axpy>("axpy")?;
    let x = device.tensor_zeros::<f32, 1>([256])?;
    let mut y = device.tensor_zeros::<f32, 1>([256])?;
    let prepared = kernel.grid([1, 1, 1]).prepare(&device)?;

    let mut launches = || (0..BATCH).try_for_each(|_| prepared.launch((1.0f32, &x, &mut y)));
    // What is loaded and grown once.
    launches()?;
    let mut outcome = Ok(());
    let counted = allocation_counter::measure(|| outcome = launches());
    outcome?;
    let allocations = counted.count_total;
    let (best, median) = times(&device, launches)?;
    let (by_name_best, by_name) =
        times(&device, || (0..BATCH).try_for_each(|_| kernel.grid([1, 1, 1]).launch(&device, (1.0f32, &x, &mut y))))?;
    println!("launch of axpy (3 parameters, 7 arguments) on {device}, host time a launch:");
    println!(
        "  prepared        best {best:>8.2?}  median {median:>8.2?}  {allocations} allocations in {BATCH} launches"
    );
    println!("  from the kernel best {by_name_best:>8.2?}  median {by_name:>8.2?}");
    if allocations > 0 {
        return Err(Error::Device(format!("{BATCH} launches made {allocations} allocations, and none is allowed")));
    }
    Ok(())
}

/// Best and median time of one launch of a batch.
fn times(device: &Device, mut batch: impl FnMut() -> Result<(), Error>) -> Result<(Duration, Duration), Error> {
    batch()?;
    let mut times = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        device.synchronize()?;
        let start = Instant::now();
        batch()?;
        times.push(start.elapsed() / BATCH);
    }
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    Ok((at(0), at(BATCHES / 2)))
}
