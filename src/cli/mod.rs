//! The `lacewing` command, for any set of kernels.
//!
//! A user's own binary gets the same commands for its kernels by one call:
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     lacewing::cli::main(&[&MY_KERNEL])
//! }
//! ```
//!
//! Exit status: 0 when what was asked for held; 1 when a kernel or a check failed; 2 when the command
//! line or a file is at fault (nothing has been written then).

mod artifact;
mod bench;
mod check;
mod compile;
mod doctor;
mod draw;
mod failure;
pub mod files;
mod lint;
mod list;
mod progress;
mod report;
mod run;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lacewing_runtime::registry::{KernelEntry, Settings, unknown};

use failure::Failure;

/// GPU kernels in Rust: list, compile and run them.
#[derive(Parser)]
#[command(name = "lacewing", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the kernels and their compile-time parameters
    List(list::Arguments),
    /// Show which tools and devices are found, and what to do about those that are not
    Doctor(doctor::Arguments),
    /// Compile a kernel for a target
    Compile(compile::Arguments),
    /// Draw a layout, a matrix instruction or a copy as SVG
    Draw(draw::Arguments),
    /// Run a kernel on a device
    Run(run::Arguments),
    /// Check a kernel on a device, and take its time
    Bench(bench::Arguments),
    /// Try a kernel on inputs from the simplest to the hardest, and say what is wrong with it
    Check(check::Arguments),
    /// Show what a kernel's lines cost: bank conflicts, uncoalesced accesses, divergent branches
    Lint(lint::Arguments),
}

/// Runs the command line of the process on these kernels.
pub fn main(entries: &[&KernelEntry]) -> ExitCode {
    let mut io = Io { out: &mut io::stdout(), err: &mut io::stderr() };
    ExitCode::from(run(entries, std::env::args_os(), &mut io))
}

/// Where a command writes.
pub struct Io<'a> {
    /// What was asked for.
    pub out: &'a mut dyn Write,
    /// Errors, and notices for people.
    pub err: &'a mut dyn Write,
}

/// Runs a command line (the program's name first) on these kernels; gives the exit status.
pub fn run(entries: &[&KernelEntry], arguments: impl IntoIterator<Item = OsString>, io: &mut Io) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(refused) => return refuse(&refused, io),
    };
    let outcome = match &arguments.command {
        Command::List(arguments) => list::list(entries, arguments, io),
        Command::Doctor(arguments) => doctor::doctor(arguments, io),
        Command::Compile(arguments) => compile::compile(entries, arguments, io),
        Command::Draw(arguments) => draw::draw(arguments, io),
        Command::Run(arguments) => run::run(entries, arguments, io),
        Command::Bench(arguments) => bench::bench(entries, arguments, io),
        Command::Check(arguments) => check::check(entries, arguments, io),
        Command::Lint(arguments) => lint::lint(entries, arguments, io),
    };
    let flushed = io.out.flush().map_err(Failure::from);
    match outcome.and(flushed) {
        Ok(()) => 0,
        Err(failure) if failure.is_closed_pipe() => 0,
        Err(failure) => {
            // When standard error is gone too, the status is all that is left to say.
            let _ = writeln!(io.err, "{failure}");
            failure.status()
        }
    }
}

/// Help and version go out with status 0, mistakes with 2. On a terminal they are coloured.
fn refuse(refused: &clap::Error, io: &mut Io) -> u8 {
    let text = refused.render();
    let _ = if refused.use_stderr() { write!(io.err, "{text}") } else { write!(io.out, "{text}") };
    u8::try_from(refused.exit_code()).unwrap_or(2)
}

fn find<'a>(entries: &[&'a KernelEntry], name: &str) -> Result<&'a KernelEntry, Failure> {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .copied()
        .ok_or_else(|| Failure::input(unknown("kernel", name, entries.iter().map(|entry| entry.name))))
}

/// The settings of a kernel with each `--set name=value` applied. A name that is set twice is refused: one of the
/// values would be lost.
fn settings(entry: &KernelEntry, set: &[String]) -> Result<Settings, Failure> {
    let mut settings = Settings::defaults(entry.parameters);
    for assignment in set {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| Failure::input(format!("`--set` takes name=value, not `{assignment}`")))?;
        let name = name.trim();
        if settings.has(name) && settings.is_given(name) {
            return Err(Failure::input(format!("`{name}` is set twice")));
        }
        settings.set(name, value.trim())?;
    }
    Ok(settings)
}

/// Writes a value as JSON with a newline.
fn write_json(io: &mut Io, value: &serde_json::Value) -> Result<(), Failure> {
    serde_json::to_writer_pretty(&mut *io.out, value).map_err(|error| Failure::from(io::Error::from(error)))?;
    writeln!(io.out)?;
    Ok(())
}
