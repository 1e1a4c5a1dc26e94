//! `cargo xtask test`: makes the machine ready, and runs every test.

use crate::process::{self, Error, Workspace};
use crate::setup;

/// Set where a test that wants `ptxas` must fail, and not say "skipped", when there is none.
const REQUIRE_PTXAS: &str = "LACEWING_REQUIRE_PTXAS";

/// Sets up and runs the tests; `args` go to the test runner.
pub fn run(workspace: &Workspace, options: &setup::Options, args: &[String]) -> Result<(), Error> {
    let ready = setup::run(workspace, options)?;
    run_ready(&ready, args)
}

/// Runs the tests on a machine that is ready. The runner's own summary is the end of the output.
pub fn run_ready(workspace: &Workspace, args: &[String]) -> Result<(), Error> {
    let marked = process::in_ci().then(|| workspace.with_variable(REQUIRE_PTXAS, "1"));
    let workspace = marked.as_ref().unwrap_or(workspace);
    // Documentation first: nextest does not run it, and its summary is not the one that counts.
    // Arguments choose among the other tests, so they leave it out.
    if args.is_empty() {
        process::run(&mut workspace.cargo(["test", "--workspace", "--doc"]))?;
    }
    let mut tests = if process::which("cargo-nextest").is_some() {
        workspace.cargo(["nextest", "run", "--workspace"])
    } else {
        workspace.cargo(["test", "--workspace", "--lib", "--bins", "--tests"])
    };
    process::run(tests.args(args))
}
