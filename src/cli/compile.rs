//! `lacewing compile`.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use lacewing_core::Target;
use lacewing_core::lower::{self, Emit, EmitOptions};
use lacewing_runtime::device::target_from_name;
use lacewing_runtime::registry::KernelEntry;

use super::failure::Failure;
use super::progress::Progress;
use super::{Io, artifact, files, find, report, settings};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kernel; `lacewing list` shows them
    kernel: String,
    /// The target, as sm_80 or gfx942; an artifact or a report takes several
    #[arg(long, required = true)]
    target: Vec<String>,
    /// What to write; the target's assembly (ptx, amdgcn) when left out
    #[arg(long, value_parser = PossibleValuesParser::new(Emit::ALL.map(Emit::name).into_iter().chain([ARTIFACT, REPORT])))]
    emit: Option<String>,
    /// Refuse machine code that ptxas warns of or that spills registers
    #[arg(long)]
    deny_warnings: bool,
    /// Write a report as JSON: an array with an object for each target
    #[arg(long)]
    json: bool,
    /// Set a compile-time parameter
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Write to a file instead of standard output (`-` is standard output too)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// `--emit artifact`: code for several targets and what a launch must know, in one file.
const ARTIFACT: &str = "artifact";
/// `--emit report`: what the machine code costs.
const REPORT: &str = "report";

pub(crate) fn compile(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let targets = arguments.target.iter().map(|name| target_from_name(name)).collect::<Result<Vec<_>, _>>()?;
    let options = EmitOptions { deny_warnings: arguments.deny_warnings, ..EmitOptions::default() };
    let emit = arguments.emit.as_deref();
    if arguments.json && emit != Some(REPORT) {
        return Err(Failure::input("`--json` is for `--emit report`"));
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name()).collect();
    let progress = || Progress::start(format!("compiling {} for {}", entry.name, names.join(", ")));
    if emit == Some(ARTIFACT) {
        let path = check_output(arguments, true)?;
        let settings = settings(entry, &arguments.set)?;
        let progress = progress();
        let bytes = artifact::make(entry, &settings, &targets, &options, io)?;
        drop(progress);
        return write(path, &bytes, io);
    }
    if emit == Some(REPORT) {
        let path = check_output(arguments, false)?;
        let settings = settings(entry, &arguments.set)?;
        let progress = progress();
        let reports = report::make(entry, &settings, &targets, &options)?;
        drop(progress);
        let text = if arguments.json { format!("{:#}\n", report::json(&reports)) } else { report::text(&reports) };
        write(path, text.as_bytes(), io)?;
        return match report::denied(&reports).filter(|_| options.deny_warnings) {
            Some(denied) => Err(denied),
            None => Ok(()),
        };
    }
    let [target] = targets.as_slice() else {
        return Err(Failure::input("only `--emit artifact` and `--emit report` take several targets"));
    };
    let target = *target;
    let assembly = if target.is_nvidia() { Emit::Ptx } else { Emit::Amdgcn };
    let emit = emit.map_or(Ok(assembly), Emit::from_name)?;
    check_form(emit, target)?;
    if options.deny_warnings && emit != Emit::Cubin {
        return Err(Failure::input("`--deny-warnings` is about machine code by ptxas: cubin, artifact or report"));
    }
    let path = check_output(arguments, matches!(emit, Emit::Cubin | Emit::Hsaco))?;
    let settings = settings(entry, &arguments.set)?;

    let progress = progress();
    let traced = entry.build_for(&settings, target)?.trace(target)?;
    let made = lower::emit_last(traced, emit, &options)?;
    drop(progress);

    write(path, made.as_bytes(), io)?;
    match made.log() {
        Some(log) => artifact::tell(target, log, io),
        None => Ok(()),
    }
}

/// The file to write to, if not standard output; refused before any work when it cannot be.
fn check_output(arguments: &Arguments, binary: bool) -> Result<Option<&Path>, Failure> {
    let output = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    match output {
        Some(path) => files::check_writable(path)?,
        None if binary && stdout().is_terminal() => {
            return Err(Failure::input("a binary does not belong on a terminal: name a file with `-o FILE`"));
        }
        None => {}
    }
    Ok(output)
}

fn write(path: Option<&Path>, bytes: &[u8], io: &mut Io) -> Result<(), Failure> {
    match path {
        Some(path) => files::write_atomically(path, bytes)
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
        None => Ok(io.out.write_all(bytes)?),
    }
}

/// Refuses a form that the target does not have, before any work.
fn check_form(emit: Emit, target: Target) -> Result<(), Failure> {
    let fits = match emit {
        Emit::Trace | Emit::Lowered | Emit::Llvm => true,
        Emit::Ptx | Emit::Cubin => target.is_nvidia(),
        Emit::Amdgcn | Emit::Hsaco => target.is_amd(),
    };
    if fits {
        return Ok(());
    }
    let own = if target.is_nvidia() { "ptx and cubin" } else { "amdgcn and hsaco" };
    let name = emit.name();
    Err(Failure::input(format!("{target} has no {name}; besides trace, lowered and llvm it has {own}")))
}
