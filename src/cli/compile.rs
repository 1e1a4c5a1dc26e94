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
use super::{Io, files, find, settings};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The kernel; `lacewing list` shows them
    kernel: String,
    /// The target, as sm_80 or gfx942
    #[arg(long)]
    target: String,
    /// What to write; the target's assembly (ptx, amdgcn) when left out
    #[arg(long, value_parser = PossibleValuesParser::new(Emit::ALL.map(Emit::name)))]
    emit: Option<String>,
    /// Set a compile-time parameter
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Write to a file instead of standard output (`-` is standard output too)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn compile(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let target = target_from_name(&arguments.target)?;
    let assembly = if target.is_nvidia() { Emit::Ptx } else { Emit::Amdgcn };
    let emit = arguments.emit.as_deref().map_or(Ok(assembly), Emit::from_name)?;
    check_form(emit, target)?;
    let output = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    match output {
        Some(path) => files::check_writable(path)?,
        None if matches!(emit, Emit::Cubin | Emit::Hsaco) && stdout().is_terminal() => {
            return Err(Failure::input("a binary does not belong on a terminal: name a file with `-o FILE`"));
        }
        None => {}
    }
    let settings = settings(entry, &arguments.set)?;

    let progress = Progress::start(format!("compiling {} for {target}", entry.name));
    let traced = entry.build_for(&settings, target)?.trace(target)?;
    let artifact = lower::emit(&traced, emit, &EmitOptions::default())?;
    drop(progress);

    match output {
        Some(path) => files::write_atomically(path, artifact.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?,
        None => io.out.write_all(artifact.as_bytes())?,
    }
    if let Some(log) = artifact.log() {
        let spilled = log.spill_store_bytes + log.spill_load_bytes;
        writeln!(io.err, "note: ptxas: {} registers a thread, {spilled} bytes spilled", log.registers)?;
        for warning in &log.warnings {
            writeln!(io.err, "warning: {warning}")?;
        }
    }
    Ok(())
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
