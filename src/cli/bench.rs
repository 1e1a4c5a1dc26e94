//! `lacewing bench`.

use std::path::PathBuf;
use std::time::Duration;

use lacewing_core::Target;
use lacewing_runtime::bench::{self, Plan, Timing};
use lacewing_runtime::compare::Comparison;
use lacewing_runtime::cuda::{Assembler, CompileOptions};
use lacewing_runtime::device::Printed;
use lacewing_runtime::host::Random;
use lacewing_runtime::registry::{KernelEntry, Settings};
use lacewing_runtime::runner::{Runner, Sizes, Work, check_tensors};
use lacewing_runtime::{Device, Error, Tensors};
use serde_json::{Map, Value as Json, json};

use super::failure::Failure;
use super::progress::Progress;
use super::{Io, files, find, list, settings};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kernel; `lacewing list` shows them
    kernel: String,
    /// Where to run: cuda:N, cuda:N:TARGET; with emulator or emulator:TARGET it is the emulator that is timed
    #[arg(long)]
    device: String,
    /// Inputs: a safetensors file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["random", "shape"])]
    inputs: Option<PathBuf>,
    /// Inputs: random numbers from this seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    random: u64,
    /// Sizes of random inputs: name=value,name=value
    #[arg(long, value_name = "SIZES")]
    shape: Vec<String>,
    /// Set a compile-time parameter
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// How many times are taken
    #[arg(long, default_value_t = 31)]
    samples: usize,
    /// Refuse machine code that ptxas warns of or that spills registers; needs ptxas
    #[arg(long)]
    deny_warnings: bool,
    /// Do not measure what the device reaches: only the kernel
    #[arg(long)]
    no_limits: bool,
    /// Write JSON about the measurement; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What the device reaches, measured in the same run.
struct Limits {
    /// Bytes a second, read and written, of a copy within its memory.
    copy: f64,
    /// Operations a second of this program's own `matmul` in bf16.
    matmul: f64,
}

/// Everything that was measured.
struct Measured {
    settings: Settings,
    shapes: Vec<(String, Vec<usize>)>,
    kernels: Vec<String>,
    work: Work,
    timing: Timing,
    comparisons: Vec<Comparison>,
    /// The sizes that were compared, where those of the measurement are too large for the host.
    compared: Option<Tensors>,
    limits: Option<Limits>,
}

/// Operations that the host's references may cost.
const HOST_FLOPS: f64 = 4e9;
/// Bytes of tensors that the host's references may cost.
const HOST_BYTES: f64 = 2e8;

pub(crate) fn bench(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let runner = entry
        .runner
        .ok_or_else(|| Failure::input(format!("kernel `{}` can only be compiled, not run by name", entry.name)))?;
    let mut settings = settings(entry, &arguments.set)?;
    let mut device = Device::from_name(&arguments.device)?.with_printed(Printed::Nowhere);
    if arguments.deny_warnings {
        // The driver's own compiler warns of nothing.
        let options = CompileOptions { deny_warnings: true, assembler: Assembler::Ptxas, ..CompileOptions::default() };
        device = device.with_compile_options(options);
    }
    if !entry.targets.contains(&device.target()) {
        entry.build_for(&settings, device.target())?;
    }
    let json_file = arguments.json.as_deref().filter(|path| *path != std::path::Path::new("-"));
    if let Some(path) = json_file {
        files::check_writable(path)?;
    }
    let progress = Progress::start(format!("{} on {device}", entry.name));
    let mut sizes = Sizes::defaults(runner.dimensions());
    for text in &arguments.shape {
        sizes.set(text)?;
    }
    let given = settings.clone();
    let inputs = match &arguments.inputs {
        Some(path) => prepared(runner, &mut settings, files::read(path)?)?,
        None => made(runner, &mut settings, &sizes, arguments.random)?,
    };
    let plan = Plan { samples: arguments.samples.max(3), ..Plan::default() };
    let measured = measure(runner, &device, Asked { given, settings, inputs, sizes, plan }, arguments)?;
    drop(progress);

    let description = describe(entry, &device, &measured)?;
    match (json_file, &arguments.json) {
        (Some(path), _) => {
            let text = format!("{description:#}\n");
            files::write_atomically(path, text.as_bytes())
                .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
            tell(entry, &device, &measured, io)
        }
        (None, Some(_)) => super::write_json(io, &description),
        (None, None) => tell(entry, &device, &measured, io),
    }
}

/// What is to be measured.
struct Asked {
    /// The settings as the user gave them.
    given: Settings,
    /// The settings with what the inputs decide.
    settings: Settings,
    inputs: Tensors,
    sizes: Sizes,
    plan: Plan,
}

fn measure(runner: &dyn Runner, device: &Device, asked: Asked, arguments: &Arguments) -> Result<Measured, Failure> {
    let Asked { given, settings, inputs, sizes, plan } = asked;
    // Outputs start as NaN, so that one that is not written is no right answer of an earlier run.
    let (outputs, recorded) = bench::record(device, |device| runner.run(device, &settings, &inputs))?;
    let work = runner.work(&settings, &inputs, &outputs);
    let too_large = |work: &Work| work.flops.is_some_and(|flops| flops > HOST_FLOPS) || work.bytes > HOST_BYTES;
    let (comparisons, compared) = if too_large(&work) {
        refuse_nan(&outputs)?;
        let small = smaller(runner, &given, &settings, &sizes, arguments.random)?;
        let outputs = runner.run(device, &settings, &small)?;
        (runner.compare_from(device, &settings, &small, &outputs)?, Some(small))
    } else {
        (runner.compare_from(device, &settings, &inputs, &outputs)?, None)
    };
    if let Some(wrong) = comparisons.iter().find(|comparison| !comparison.holds()) {
        return Err(Failure::failed(format!(
            "`{}` is outside its tolerance ({:.3e} > {:.3e}, compared with {}), so it was not timed",
            wrong.tensor, wrong.error, wrong.tolerance, wrong.against
        )));
    }
    let timing = recorded.time(&plan)?;
    let limits = match device.is_gpu() && !arguments.no_limits {
        true => Some(Limits { copy: bench::copy_rate(device, &plan)?, matmul: matmul_rate(device, &plan)? }),
        false => None,
    };
    let shapes = |tensors: &Tensors| -> Vec<(String, Vec<usize>)> {
        tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shape().to_vec())).collect()
    };
    let kernels = recorded.kernels().into_iter().map(str::to_owned).collect();
    Ok(Measured { shapes: shapes(&inputs), settings, kernels, work, timing, comparisons, compared, limits })
}

/// Random inputs of these sizes, with the settings that they decide.
fn made(runner: &dyn Runner, settings: &mut Settings, sizes: &Sizes, seed: u64) -> Result<Tensors, Error> {
    let inputs = runner.random(settings, sizes, &mut Random::new(seed))?;
    prepared(runner, settings, inputs)
}

fn prepared(runner: &dyn Runner, settings: &mut Settings, mut inputs: Tensors) -> Result<Tensors, Error> {
    check_tensors(runner.inputs(), &inputs)?;
    runner.prepare(settings, &mut inputs, &mut Vec::new())?;
    Ok(inputs)
}

/// Inputs that the host can compute the answer for, and that the same kernel runs on: each dimension cut down, but those
/// that decide about the kernel.
fn smaller(
    runner: &dyn Runner,
    given: &Settings,
    wanted: &Settings,
    sizes: &Sizes,
    seed: u64,
) -> Result<Tensors, Failure> {
    let values = |settings: &Settings| settings.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>();
    for largest in [192, 96, 40, 16] {
        let cut = |kept: Option<&str>| -> Result<Option<Tensors>, Failure> {
            let mut small = sizes.clone();
            for dimension in runner.dimensions() {
                let size = sizes.get(dimension.name)?;
                if kept != Some(dimension.name) && size > largest {
                    small.put(dimension.name, largest);
                }
            }
            let mut settings = given.clone();
            let Ok(inputs) = made(runner, &mut settings, &small, seed) else { return Ok(None) };
            if values(&settings) != values(wanted) {
                return Ok(None);
            }
            let work = runner.work(&settings, &inputs, &Tensors::new());
            let cheap = work.flops.is_none_or(|flops| flops <= HOST_FLOPS) && work.bytes <= HOST_BYTES;
            Ok(cheap.then_some(inputs))
        };
        let kept = runner.dimensions().iter().map(|dimension| Some(dimension.name));
        for kept in std::iter::once(None).chain(kept) {
            if let Some(inputs) = cut(kept)? {
                return Ok(inputs);
            }
        }
    }
    Err(Failure::failed("no smaller inputs are found that the kernel's answer could be compared for"))
}

/// An output that nobody wrote is NaN.
fn refuse_nan(outputs: &Tensors) -> Result<(), Failure> {
    for (name, tensor) in outputs {
        let floats = tensor.scalar().is_float();
        if floats && tensor.to_f64()?.iter().any(|number| number.is_nan()) {
            return Err(Failure::failed(format!("`{name}` holds NaN, so the kernel was not timed")));
        }
    }
    Ok(())
}

/// What this program's own product of matrices reaches: operations a second.
fn matmul_rate(device: &Device, plan: &Plan) -> Result<f64, Failure> {
    let entry = &lacewing_kernels::matmul::MATMUL;
    let Some(runner) = entry.runner.filter(|_| entry.targets.contains(&device.target())) else { return Ok(f64::NAN) };
    let mut settings = Settings::defaults(entry.parameters);
    settings.set("dtype", "bf16")?;
    settings.set("out", "same")?;
    let mut sizes = Sizes::defaults(runner.dimensions());
    sizes.set("M=4096,N=4096,K=4096")?;
    let inputs = made(runner, &mut settings, &sizes, 0)?;
    let (outputs, recorded) = bench::record(device, |device| runner.run(device, &settings, &inputs))?;
    let flops = runner.work(&settings, &inputs, &outputs).flops.unwrap_or(f64::NAN);
    Ok(flops / recorded.time(plan)?.median())
}

/// A time with the unit that suits it.
fn duration(seconds: f64) -> String {
    format!("{:.3?}", Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// A rate with the unit that suits it.
fn rate(a_second: f64, unit: &str) -> String {
    let (factor, prefix) =
        [(1e12, "T"), (1e9, "G"), (1e6, "M")].into_iter().find(|(factor, _)| a_second >= *factor).unwrap_or((1e3, "k"));
    format!("{:.1} {prefix}{unit}/s", a_second / factor)
}

fn tell(entry: &KernelEntry, device: &Device, measured: &Measured, io: &mut Io) -> Result<(), Failure> {
    let Measured { settings, shapes, work, timing, comparisons, compared, limits, .. } = measured;
    let set: Vec<String> = settings.iter().map(|(parameter, value)| format!("{}={value}", parameter.name)).collect();
    writeln!(io.out, "{} on {device} ({})", entry.name, set.join(", "))?;
    if !device.is_gpu() {
        writeln!(io.out, "  this is the time of the emulator, with its checks: it says nothing about a GPU")?;
    }
    let shapes: Vec<String> = shapes.iter().map(|(name, shape)| format!("{name} {shape:?}")).collect();
    writeln!(io.out, "  inputs   {}", shapes.join(", "))?;
    for Comparison { tensor, against, error, tolerance, .. } in comparisons {
        let smaller = if compared.is_some() { ", on smaller inputs" } else { "" };
        writeln!(io.out, "  check    {tensor}: error {error:.3e}, tolerance {tolerance:.3e} ({against}{smaller})")?;
    }
    let (low, high) = (duration(timing.quantile(0.1)), duration(timing.quantile(0.9)));
    writeln!(
        io.out,
        "  time     {} (median of {}; 10 % below {low}, 10 % above {high})",
        duration(timing.median()),
        timing.seconds.len()
    )?;
    writeln!(
        io.out,
        "           {} runs a sample, in turn on {} copies of {:.1} MB",
        timing.repetitions,
        timing.copies,
        timing.copy_bytes as f64 / 1e6
    )?;
    if timing.restored_bytes > 0 {
        writeln!(io.out, "           {} bytes are put back before each run, in the time", timing.restored_bytes)?;
    }
    if !timing.repeats {
        writeln!(io.out, "  note     two runs from the same start gave different bits")?;
    }
    let of = |limit: Option<f64>, achieved: f64, what: &str| {
        limit.map_or(String::new(), |limit| format!(": {:.1} % of {what}", 100.0 * achieved / limit))
    };
    if let Some(flops) = work.flops {
        let achieved = flops / timing.median();
        let limit = limits.as_ref().map(|limits| limits.matmul);
        let what = limit
            .map_or(String::new(), |limit| format!("{} of this program's `matmul` (bf16, 4096)", rate(limit, "FLOP")));
        writeln!(io.out, "  rate     {}{}", rate(achieved, "FLOP"), of(limit, achieved, &what))?;
    }
    let achieved = work.bytes / timing.median();
    let limit = limits.as_ref().map(|limits| limits.copy);
    let what = limit.map_or(String::new(), |limit| format!("{} of a copy on the device", rate(limit, "B")));
    writeln!(io.out, "  rate     {}{}", rate(achieved, "B"), of(limit, achieved, &what))?;
    Ok(())
}

fn describe(entry: &KernelEntry, device: &Device, measured: &Measured) -> Result<Json, Failure> {
    let Measured { settings, shapes, kernels, work, timing, comparisons, compared, limits } = measured;
    let facts: Map<String, Json> =
        bench::describe(device)?.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let settings: Map<String, Json> =
        settings.iter().map(|(parameter, value)| (parameter.name.to_owned(), list::value(value))).collect();
    let shape_map = |shapes: &[(String, Vec<usize>)]| -> Map<String, Json> {
        shapes.iter().map(|(name, shape)| (name.clone(), json!(shape))).collect()
    };
    let compared: Option<Map<String, Json>> = compared
        .as_ref()
        .map(|inputs| inputs.iter().map(|(name, tensor)| (name.clone(), json!(tensor.shape()))).collect());
    let checks: Vec<Json> = comparisons
        .iter()
        .map(|c| json!({"tensor": c.tensor, "against": c.against, "error": c.error, "tolerance": c.tolerance}))
        .collect();
    Ok(json!({
        "kernel": entry.name,
        "functions": kernels,
        "version": env!("CARGO_PKG_VERSION"),
        "timed": if device.is_gpu() { "gpu" } else { "emulator" },
        "machine": facts,
        "settings": settings,
        "inputs": shape_map(shapes),
        "checks": checks,
        "checked_on_smaller_inputs": compared,
        "seconds": {
            "median": timing.median(),
            "p10": timing.quantile(0.1),
            "p90": timing.quantile(0.9),
            "min": timing.quantile(0.0),
            "max": timing.quantile(1.0),
            "samples": timing.seconds,
        },
        "runs_a_sample": timing.repetitions,
        "copies": timing.copies,
        "copy_bytes": timing.copy_bytes,
        "restored_bytes": timing.restored_bytes,
        "repeats_bit_for_bit": timing.repeats,
        "flops": work.flops,
        "flops_per_second": work.flops.map(|flops| flops / timing.median()),
        "bytes": work.bytes,
        "bytes_per_second": work.bytes / timing.median(),
        "limits": limits.as_ref().map(|limits| json!({
            "copy_bytes_per_second": limits.copy,
            "matmul_flops_per_second": limits.matmul,
            "matmul": "matmul of this program, bf16, M = N = K = 4096",
        })),
        "targets": entry.targets.iter().map(|target: &Target| target.name()).collect::<Vec<_>>(),
    }))
}
