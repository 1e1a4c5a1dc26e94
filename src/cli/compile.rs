//! `lacewing compile`.

use std::io::{IsTerminal, stdout};
use std::path::PathBuf;

use clap::ValueEnum;
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
    /// The target: sm_80, sm_90a, sm_100a, gfx942 or gfx950
    #[arg(long)]
    target: String,
    /// What to write; the target's assembly when left out
    #[arg(long, value_enum)]
    emit: Option<Form>,
    /// Set a compile-time parameter
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What compilation can stop at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The traced MLIR
    Trace,
    /// MLIR in the target's dialects
    Lowered,
    /// LLVM IR
    Llvm,
    /// Assembly of NVIDIA targets
    Ptx,
    /// Binary of NVIDIA targets, made by ptxas
    Cubin,
    /// Assembly of AMD targets
    Amdgcn,
    /// Binary of AMD targets, linked by lld
    Hsaco,
}

impl Form {
    fn of_target(target: Target) -> Self {
        if target.is_nvidia() { Form::Ptx } else { Form::Amdgcn }
    }

    fn emit(self) -> Emit {
        match self {
            Form::Trace => Emit::Trace,
            Form::Lowered => Emit::Lowered,
            Form::Llvm => Emit::Llvm,
            Form::Ptx => Emit::Ptx,
            Form::Cubin => Emit::Cubin,
            Form::Amdgcn => Emit::Amdgcn,
            Form::Hsaco => Emit::Hsaco,
        }
    }

    fn is_binary(self) -> bool {
        matches!(self, Form::Cubin | Form::Hsaco)
    }

    /// Refuses a form that the target does not have, before any work.
    fn check(self, target: Target) -> Result<(), Failure> {
        let fits = match self {
            Form::Trace | Form::Lowered | Form::Llvm => true,
            Form::Ptx | Form::Cubin => target.is_nvidia(),
            Form::Amdgcn | Form::Hsaco => target.is_amd(),
        };
        if fits {
            return Ok(());
        }
        let own = if target.is_nvidia() { "ptx and cubin" } else { "amdgcn and hsaco" };
        let name = self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        Err(Failure::input(format!("{} has no {name}; besides trace, lowered and llvm it has {own}", target.name())))
    }
}

pub(crate) fn compile(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let entry = find(entries, &arguments.kernel)?;
    let target = target_from_name(&arguments.target)?;
    let form = arguments.emit.unwrap_or(Form::of_target(target));
    form.check(target)?;
    match &arguments.output {
        Some(path) => files::check_writable(path)?,
        None if form.is_binary() && stdout().is_terminal() => {
            return Err(Failure::input("a binary does not belong on a terminal: name a file with `-o FILE`"));
        }
        None => {}
    }
    let settings = settings(entry, &arguments.set)?;

    let progress = Progress::start(format!("compiling {} for {}", entry.name, target.name()));
    let traced = entry.build_for(&settings, target)?.trace(target)?;
    let content = lower::emit(&traced, form.emit(), &EmitOptions::default())?;
    drop(progress);

    match &arguments.output {
        Some(path) => files::write_atomically(path, content.as_ref())
            .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display()))),
        None => {
            io.out.write_all(content.as_ref())?;
            Ok(())
        }
    }
}
