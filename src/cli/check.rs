//! `lacewing check`.

use indicatif::{ProgressBar, ProgressStyle};
use lacewing_runtime::check::{self, Finding, Options, Step, Verdict};
use lacewing_runtime::device::target_from_name;
use lacewing_runtime::emulator::Bound;
use lacewing_runtime::registry::KernelEntry;
use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::{Io, find, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kernel; `lacewing list` shows them
    kernel: String,
    /// The target, or several with commas; all that the kernel has when left out
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    target: Vec<String>,
    /// Set a compile-time parameter; choices that are left open are all tried
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Seed for the inputs, and the first one for the order in which the emulator runs warps
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Orders of warps that each case runs under
    #[arg(long, value_name = "COUNT", default_value_t = Options::default().schedules)]
    schedules: u64,
    /// Try this rung only
    #[arg(long, value_name = "NAME")]
    rung: Option<String>,
    /// Try this shape only: name=value,name=value
    #[arg(long, value_name = "SIZES")]
    shape: Option<String>,
    /// Run floats in binary64 beside those of the kernel, and report where they part by more than this: a part of the
    /// value (0.05) or units in the last place (16ulp), and after a comma the difference that is none (0.001)
    #[arg(long, value_name = "BOUND[,FLOOR]")]
    shadow: Option<String>,
    /// Write JSON: what was found, {"kind", "file", "line", "message", ..}, or what holds
    #[arg(long)]
    json: bool,
}

pub(crate) fn check(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let mut set = Vec::new();
    for assignment in &arguments.set {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| Failure::input(format!("`--set` takes name=value, not `{assignment}`")))?;
        set.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    let options = Options {
        targets: arguments.target.iter().map(|name| target_from_name(name)).collect::<Result<_, _>>()?,
        set,
        seed: arguments.seed,
        schedules: arguments.schedules,
        rung: arguments.rung.clone(),
        shape: arguments.shape.clone(),
        shadow: arguments.shadow.as_deref().map(Bound::with_floor).transpose().map_err(Failure::input)?,
    };
    let bar = bar();
    let verdict = check::check(entry, &options, &mut |step| show(&bar, entry.name, step));
    bar.finish_and_clear();
    let verdict = verdict?;
    if arguments.json {
        write_json(io, &describe(&verdict))?;
    } else {
        tell(&verdict, io)?;
    }
    match &verdict.finding {
        None => Ok(()),
        Some(finding) => Err(Failure::failed(format!(
            "`{}` fails rung `{}` for {}: {}",
            verdict.kernel, finding.rung, finding.target, finding.kind
        ))),
    }
}

/// Hidden by itself when standard error is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:30}] {msg} ({elapsed})") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn show(bar: &ProgressBar, kernel: &str, step: &Step) {
    let Step { target, settings, rung, shape, done, total } = step;
    bar.set_length(*total as u64);
    bar.set_position(*done as u64);
    let settings = if settings.is_empty() { String::new() } else { format!(" {settings}") };
    bar.set_message(format!("{kernel} {target}{settings}: {rung} {shape}"));
}

/// The rungs that hold, as `ones, zeros (2 cases)`.
fn held(verdict: &Verdict) -> String {
    let rungs = verdict.held.iter().map(|(rung, count)| match count {
        1 => rung.clone(),
        count => format!("{rung} ({count} cases)"),
    });
    rungs.collect::<Vec<_>>().join(", ")
}

fn tell(verdict: &Verdict, io: &mut Io) -> Result<(), Failure> {
    if let Some(finding) = &verdict.finding {
        writeln!(io.out, "{finding}")?;
        return Ok(());
    }
    let targets: Vec<&str> = verdict.targets.iter().map(|target| target.name()).collect();
    writeln!(io.out, "{}: every rung holds on {}", verdict.kernel, targets.join(", "))?;
    writeln!(io.out, "  {}", held(verdict))?;
    for refused in &verdict.refused {
        writeln!(io.out, "  not taken by the kernel: {refused}")?;
    }
    Ok(())
}

fn describe(verdict: &Verdict) -> Json {
    if let Some(finding) = &verdict.finding {
        return describe_finding(finding);
    }
    let targets: Vec<&str> = verdict.targets.iter().map(|target| target.name()).collect();
    let rungs: Vec<Json> =
        verdict.held.iter().map(|(rung, count)| json!({"rung": rung, "cases": count, "holds": true})).collect();
    json!({
        "kernel": verdict.kernel, "holds": true, "targets": targets, "rungs": rungs, "refused": verdict.refused,
    })
}

fn describe_finding(finding: &Finding) -> Json {
    let location = finding.location.as_ref();
    let element = finding.element.as_ref();
    let chain: Vec<String> = finding.call_chain.iter().map(ToString::to_string).collect();
    json!({
        "kind": finding.kind,
        "file": location.map(|location| &location.file),
        "line": location.map(|location| location.line),
        "column": location.map(|location| location.column),
        "message": finding.message,
        "kernel": finding.kernel,
        "holds": false,
        "target": finding.target.name(),
        "rung": finding.rung,
        "held": finding.held,
        "shape": finding.shape,
        "settings": finding.settings,
        "seed": finding.seed,
        "block": finding.block,
        "thread": finding.thread,
        "call_chain": chain,
        "tensor": finding.tensor,
        "index": element.map(|element| &element.index),
        "got": element.map(|element| number(element.got)),
        "wanted": element.map(|element| number(element.wanted)),
        "notes": finding.notes,
        "help": finding.help,
        "reproduce": finding.reproduce,
    })
}

/// A number, or the name of what JSON has no number for.
fn number(x: f64) -> Json {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}
