//! `lacewing run`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lacewing_runtime::compare::Comparison;
use lacewing_runtime::device::Printed;
use lacewing_runtime::emulator::{Bound, Checks};
use lacewing_runtime::host::Random;
use lacewing_runtime::registry::{KernelEntry, Settings};
use lacewing_runtime::runner::{Runner, Sizes, check_tensors};
use lacewing_runtime::{Device, Tensors};
use serde_json::{Map, Value as Json, json};

use super::failure::Failure;
use super::progress::Progress;
use super::{Io, files, find, list, settings, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kernel; `lacewing list` shows them
    kernel: String,
    /// Where to run: emulator, emulator:TARGET, cuda:N or cuda:N:TARGET
    #[arg(long, default_value = "emulator")]
    device: String,
    /// Inputs: a safetensors file
    #[arg(long, value_name = "FILE", required_unless_present = "random", conflicts_with = "random")]
    inputs: Option<PathBuf>,
    /// Inputs: random numbers from this seed
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,
    /// Sizes of random inputs: name=value,name=value
    #[arg(long, value_name = "SIZES", requires = "random")]
    shape: Vec<String>,
    /// Set a compile-time parameter
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Compare the outputs with those that the file carries (attention: `o`, `lse`), else with the reference on the
    /// host; says which
    #[arg(long)]
    check: bool,
    /// Write the outputs to a safetensors file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Seed for the order in which the emulator runs warps
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The emulator's checks: all, none, or names with commas (bounds, init, nan, inf, races, copies,
    /// overflow, shadow, performance)
    #[arg(long, value_name = "NAMES", default_value = "all")]
    checks: String,
    /// Turn `shadow` on with this bound: a part of the value (0.05) or units in the last place (16ulp), and after a comma
    /// the difference that is none (0.001)
    #[arg(long, value_name = "BOUND[,FLOOR]")]
    shadow: Option<String>,
    /// Operations after which the emulator takes a warp's loop for endless
    #[arg(long, value_name = "COUNT")]
    op_budget: Option<u64>,
    /// Write JSON about the run
    #[arg(long)]
    json: bool,
}

/// Everything that a run has to tell.
struct Outcome {
    settings: Settings,
    outputs: Tensors,
    comparisons: Vec<Comparison>,
    seconds: f64,
}

pub(crate) fn run(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let runner = entry
        .runner
        .ok_or_else(|| Failure::input(format!("kernel `{}` can only be compiled, not run by name", entry.name)))?;
    let mut settings = settings(entry, &arguments.set)?;
    // With `--json`, standard output holds the JSON and nothing else.
    let printed = if arguments.json { Printed::Stderr } else { Printed::Stdout };
    let checks: Checks = arguments.checks.parse().map_err(Failure::input)?;
    let shadow = arguments.shadow.as_deref().map(Bound::with_floor).transpose().map_err(Failure::input)?;
    let checks = shadow.map_or(checks, |(bound, floor)| checks.with_shadow(bound, floor));
    let checks = arguments.op_budget.map_or(checks, |operations| checks.with_op_budget(operations));
    // Synchronous, so that a fault on a GPU names its kernel.
    let device = Device::from_name(&arguments.device)?
        .with_seed(arguments.seed)
        .with_printed(printed)
        .with_checks(checks)
        .with_synchronous(true);
    if !entry.targets.contains(&device.target()) {
        // The kernel's own words about its targets.
        entry.build_for(&settings, device.target())?;
    }
    if let Some(path) = &arguments.output {
        check_output(path, arguments.inputs.as_deref())?;
    }

    let mut inputs = read_inputs(runner, &settings, arguments)?;
    let mut notices = extra_tensors(runner, &inputs);
    // What is wrong with the inputs is said with their file.
    let named = |error: lacewing_runtime::Error| match (&arguments.inputs, Failure::from(error)) {
        (Some(path), Failure::Input(text)) => Failure::input(format!("{}: {text}", path.display())),
        (_, failure) => failure,
    };
    check_tensors(runner.inputs(), &inputs).map_err(named)?;
    runner.prepare(&mut settings, &mut inputs, &mut notices).map_err(named)?;
    for notice in &notices {
        writeln!(io.err, "note: {notice}")?;
    }

    let start = Instant::now();
    let progress = Progress::start(format!("{} on {device}", entry.name));
    let outputs = runner.run(&device, &settings, &inputs).map_err(named)?;
    let seconds = start.elapsed().as_secs_f64();
    let comparisons = if arguments.check {
        runner.compare_from(&device, &settings, &inputs, &outputs).map_err(named)?
    } else {
        Vec::new()
    };
    drop(progress);

    let held = comparisons.iter().all(Comparison::holds);
    if let Some(path) = arguments.output.as_deref().filter(|_| held) {
        files::write(path, &outputs)?;
    }
    let outcome = Outcome { settings, outputs, comparisons, seconds };
    if arguments.json {
        write_json(io, &describe(entry, &device, arguments, &notices, &outcome))?;
    } else {
        tell(entry, &device, arguments, &outcome, io)?;
    }
    if held {
        return Ok(());
    }
    let mut text = format!("`{}` is outside its tolerance", entry.name);
    if arguments.output.is_some() {
        text.push_str("; the output was not written");
    }
    Err(Failure::failed(text))
}

/// Refuses an output file that could not be written, before the work.
fn check_output(path: &Path, inputs: Option<&Path>) -> Result<(), Failure> {
    if path == Path::new("-") {
        return Err(Failure::input("tensors do not go to standard output, which tells about the run: name a file"));
    }
    files::check_writable(path)?;
    if inputs.is_some_and(|inputs| files::same_file(inputs, path)) {
        return Err(Failure::input(format!("{}: the output would replace the inputs", path.display())));
    }
    Ok(())
}

fn read_inputs(runner: &dyn Runner, settings: &Settings, arguments: &Arguments) -> Result<Tensors, Failure> {
    if let Some(path) = &arguments.inputs {
        return Ok(files::read(path)?);
    }
    let mut sizes = Sizes::defaults(runner.dimensions());
    for text in &arguments.shape {
        sizes.set(text)?;
    }
    Ok(runner.random(settings, &sizes, &mut Random::new(arguments.random.unwrap_or(0)))?)
}

/// One line about tensors that the kernel does not read: a misspelt optional one would be among them.
fn extra_tensors(runner: &dyn Runner, inputs: &Tensors) -> Vec<String> {
    let known = |name: &&str| runner.inputs().iter().any(|spec| spec.name == *name);
    let extra: Vec<&str> = inputs.keys().map(String::as_str).filter(|name| !known(name)).collect();
    if extra.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "not read from the file: {}",
            extra.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
        )]
    }
}

fn tell(
    entry: &KernelEntry,
    device: &Device,
    arguments: &Arguments,
    outcome: &Outcome,
    io: &mut Io,
) -> Result<(), Failure> {
    let set: Vec<String> =
        outcome.settings.iter().map(|(parameter, value)| format!("{}={value}", parameter.name)).collect();
    writeln!(io.out, "{} on {device} ({}): {:.3} s", entry.name, set.join(", "), outcome.seconds)?;
    for (name, tensor) in &outcome.outputs {
        writeln!(io.out, "  {name}: {} {:?}", tensor.scalar().name(), tensor.shape())?;
    }
    for comparison in &outcome.comparisons {
        let Comparison { tensor, against, error, tolerance, .. } = comparison;
        let verdict = if comparison.holds() { "holds" } else { "FAILS" };
        writeln!(
            io.out,
            "check {tensor}: {verdict}: largest error {error:.3e}, tolerance {tolerance:.3e} ({against})"
        )?;
        if let Some(worst) = comparison.worst.as_ref().filter(|_| !comparison.holds()) {
            writeln!(io.out, "  worst at {:?}: got {}, wanted {}", worst.index, worst.got, worst.wanted)?;
        }
    }
    if let Some(path) = arguments.output.as_deref().filter(|_| outcome.comparisons.iter().all(Comparison::holds)) {
        writeln!(io.out, "written to {}", path.display())?;
    }
    Ok(())
}

fn describe(
    entry: &KernelEntry,
    device: &Device,
    arguments: &Arguments,
    notices: &[String],
    outcome: &Outcome,
) -> Json {
    let held = outcome.comparisons.iter().all(Comparison::holds);
    let settings: Map<String, Json> =
        outcome.settings.iter().map(|(parameter, value)| (parameter.name.to_owned(), list::value(value))).collect();
    let outputs: Vec<Json> = outcome
        .outputs
        .iter()
        .map(|(name, tensor)| json!({"name": name, "type": tensor.scalar().name(), "shape": tensor.shape()}))
        .collect();
    let checks: Vec<Json> = outcome
        .comparisons
        .iter()
        .map(|c| {
            let worst = c.worst.as_ref().map(|w| json!({"index": w.index, "got": w.got, "wanted": w.wanted}));
            json!({
                "tensor": c.tensor, "against": c.against, "error": c.error, "tolerance": c.tolerance,
                "holds": c.holds(), "worst": worst,
            })
        })
        .collect();
    json!({
        "kernel": entry.name,
        "device": device.to_string(),
        "settings": settings,
        "notices": notices,
        "seconds": outcome.seconds,
        "outputs": outputs,
        "checks": checks,
        "held": held,
        "output": arguments.output.as_ref().filter(|_| held).map(|path| path.display().to_string()),
    })
}
