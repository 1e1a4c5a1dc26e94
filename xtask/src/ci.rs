//! `cargo xtask ci`: everything that a change must pass.

use std::time::Instant;

use crate::process::{self, Error, Workspace};
use crate::{checks, setup, status, suite};

/// A step's name for people, and what it does.
type Step = (&'static str, fn(&Workspace) -> Result<(), Error>);

/// What is checked before the tests.
const STEPS: &[Step] = &[
    ("format", |workspace| process::run(&mut workspace.cargo(["fmt", "--all", "--check"]))),
    ("repository", checks::run),
    ("spelling", spelling),
    ("licences", licences),
    ("lints", lints),
    ("documentation", documentation),
    ("book", book),
    ("kernel table", status::check_kernels),
];

/// Runs every step, also after one that failed: a person wants to see all that is wrong at once.
/// The tests come last, so that their summary ends the output.
pub fn run(workspace: &Workspace, tests: bool) -> Result<(), Error> {
    let ready = setup::run(workspace, &setup::Options::default())?;
    let last: Step = ("tests", |workspace| suite::run_ready(workspace, &[]));
    let mut failures = Vec::new();
    for (name, step) in STEPS.iter().chain(tests.then_some(&last)) {
        let start = Instant::now();
        eprintln!("\n==> {name}");
        let result = step(&ready);
        eprintln!("==> {name}: {:.0} s", start.elapsed().as_secs_f32());
        if let Err(error) = result {
            eprintln!("error: {error}");
            failures.push(*name);
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::new(format!("failed: {}", failures.join(", ")))) }
}

fn lints(workspace: &Workspace) -> Result<(), Error> {
    let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(&mut workspace.cargo(args))?;
    // What a deployed program is built from: much of the runtime is compiled another way there.
    let deployed = ["clippy", "--package", "lacewing", "--lib", "--no-default-features", "--features", "aot"];
    process::run(workspace.cargo(deployed).args(["--", "-D", "warnings"]))
}

fn documentation(workspace: &Workspace) -> Result<(), Error> {
    let args = ["doc", "--workspace", "--no-deps"];
    process::run(workspace.cargo(args).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs `typos` where it is installed; the repository checks hold the commonest mistakes.
fn spelling(workspace: &Workspace) -> Result<(), Error> {
    if_installed(workspace, "typos", &[])
}

/// Builds the book where `mdbook` is installed; that its code compiles and its links lead somewhere is tested anyway.
fn book(workspace: &Workspace) -> Result<(), Error> {
    if_installed(workspace, "mdbook", &["build", "docs"])
}

/// Runs `cargo-deny` where it is installed. Advisories are left out: they need a network.
fn licences(workspace: &Workspace) -> Result<(), Error> {
    if_installed(workspace, "cargo-deny", &["--offline", "check", "licenses", "bans", "sources"])
}

fn if_installed(workspace: &Workspace, program: &str, args: &[&str]) -> Result<(), Error> {
    match process::which(program) {
        Some(path) => process::run(workspace.command(path).args(args)),
        None => {
            eprintln!("{program} is not installed: skipped");
            Ok(())
        }
    }
}
