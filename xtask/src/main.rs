//! Everything that a person runs more than twice: `cargo xtask setup | demo | test | ci`.
//!
//! This crate installs LLVM, so it must build where there is none: it depends on no other crate of
//! the workspace.

mod book;
mod checks;
mod ci;
mod count;
mod demo;
mod needs;
mod process;
mod ptxas;
mod setup;
mod status;
mod suite;
mod system;
mod tensors;

use std::process::ExitCode;

use process::{Error, Workspace};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  setup [--no-install] [--add-llvm-repository]
          find LLVM/MLIR 22, a C++ compiler and ptxas, and install what is missing
  demo  [--no-install] [--add-llvm-repository]
          setup, build, and run the attention kernel on a real model's inputs
  test  [--no-install] [--add-llvm-repository] [-- ARGS]
          setup, and run every test; ARGS go to the test runner
  ci    [--no-tests]
          everything that a change must pass: format, lints, docs, repository checks, tests
  check   the repository checks alone (no LLVM needed)
  count [--at COMMIT] SNAPSHOT..
          instructions in snapshots of assembly (tests/snapshots), as they are or as they were

  --no-install            print the commands that would install what is missing, and fail
  --add-llvm-repository   allow adding LLVM's own apt repository where the distribution has no LLVM 22
";

/// What the command line asked for.
#[derive(Debug, PartialEq)]
enum Command {
    Setup(setup::Options),
    Demo(setup::Options),
    Test(setup::Options, Vec<String>),
    Ci { tests: bool },
    Check,
    Count { commit: Option<String>, names: Vec<String> },
    Help,
}

/// Reads the command line (without the program's name).
fn parse(args: &[String]) -> Result<Command, String> {
    let Some((name, rest)) = args.split_first() else {
        return Err("no command given".into());
    };
    let (own, forwarded) = match rest.iter().position(|arg| arg == "--") {
        Some(at) => (&rest[..at], rest[at + 1..].to_vec()),
        None => (rest, Vec::new()),
    };
    if own.iter().any(|arg| arg == "-h" || arg == "--help") {
        return Ok(Command::Help);
    }
    if name == "ci" && own == ["--no-tests"] && forwarded.is_empty() {
        return Ok(Command::Ci { tests: false });
    }
    if name == "count" {
        let (commit, names) = match own {
            [at, commit, names @ ..] if at == "--at" => (Some(commit.clone()), names),
            names => (None, names),
        };
        if names.is_empty() || names.iter().any(|name| name.starts_with('-')) {
            return Err("`count` needs names of snapshots".into());
        }
        return Ok(Command::Count { commit, names: names.to_vec() });
    }
    let mut options = setup::Options::default();
    for arg in own {
        match arg.as_str() {
            "--no-install" => options.no_install = true,
            "--add-llvm-repository" => options.add_llvm_repository = true,
            other => return Err(format!("`{name}` has no option `{other}`")),
        }
    }
    let command = match name.as_str() {
        "setup" => Command::Setup(options),
        "demo" => Command::Demo(options),
        "test" => return Ok(Command::Test(options, forwarded)),
        "ci" => Command::Ci { tests: true },
        "check" => Command::Check,
        "help" | "-h" | "--help" => Command::Help,
        other => return Err(format!("no such command: `{other}`")),
    };
    if !forwarded.is_empty() {
        return Err(format!("`{name}` takes nothing after `--`"));
    }
    if matches!(command, Command::Ci { .. } | Command::Check) && !own.is_empty() {
        return Err(format!("`{name}` has no option `{}`", own.join(" ")));
    }
    Ok(command)
}

fn run(command: &Command) -> Result<(), Error> {
    let workspace = Workspace::find()?;
    match command {
        Command::Setup(options) => setup::run(&workspace, options).map(|_| ()),
        Command::Demo(options) => demo::run(&workspace, options),
        Command::Test(options, args) => suite::run(&workspace, options, args),
        Command::Ci { tests } => ci::run(&workspace, *tests),
        Command::Check => checks::run(&workspace),
        Command::Count { commit, names } => count::run(&workspace, commit.as_deref(), names),
        Command::Help => {
            print!("{USAGE}");
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let command = match parse(&args) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let args: Vec<String> = line.split_whitespace().map(String::from).collect();
        parse(&args)
    }

    #[test]
    fn options_belong_to_their_command() {
        let no_install = setup::Options { no_install: true, ..Default::default() };
        assert_eq!(parsed("setup --no-install"), Ok(Command::Setup(no_install)));
        assert_eq!(parsed("ci"), Ok(Command::Ci { tests: true }));
        assert_eq!(parsed("ci --no-tests"), Ok(Command::Ci { tests: false }));
        assert_eq!(parsed("ci --no-install"), Err("`ci` has no option `--no-install`".into()));
        assert_eq!(parsed("setup --fast"), Err("`setup` has no option `--fast`".into()));
        assert_eq!(parsed("demo -- x"), Err("`demo` takes nothing after `--`".into()));
        assert_eq!(parsed("dance"), Err("no such command: `dance`".into()));
        let count = |commit: Option<&str>, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Ok(Command::Count { commit: commit.map(str::to_owned), names })
        };
        assert_eq!(parsed("count matmul@sm_80.ptx"), count(None, &["matmul@sm_80.ptx"]));
        assert_eq!(parsed("count --at 2809a71 a b"), count(Some("2809a71"), &["a", "b"]));
        assert_eq!(parsed("count --at 2809a71"), Err("`count` needs names of snapshots".into()));
        assert_eq!(parsed(""), Err("no command given".into()));
    }

    #[test]
    fn what_follows_two_dashes_goes_to_the_test_runner() {
        let expected = Command::Test(setup::Options::default(), vec!["fmha".into(), "--no-capture".into()]);
        assert_eq!(parsed("test -- fmha --no-capture"), Ok(expected));
    }

    #[test]
    fn help_wins_over_other_options() {
        assert_eq!(parsed("setup --no-install --help"), Ok(Command::Help));
        assert_eq!(parsed("--help"), Ok(Command::Help));
    }
}
