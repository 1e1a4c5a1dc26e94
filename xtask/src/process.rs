//! Running other programs, and saying which.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a task did not do what was asked, as one text for a person.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds what was being done to an error of the system.
pub trait Context<T> {
    /// `what` completes "cannot ...".
    fn cannot(self, what: impl fmt::Display) -> Result<T, Error>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn cannot(self, what: impl fmt::Display) -> Result<T, Error> {
        self.map_err(|error| Error::new(format!("cannot {what}: {error}")))
    }
}

/// The checkout, and the environment that its builds need.
pub struct Workspace {
    root: PathBuf,
    variables: Vec<(&'static str, OsString)>,
}

impl Workspace {
    /// The workspace that this program was built from.
    pub fn find() -> Result<Self, Error> {
        // `cargo run` sets this one at run time too, so a moved checkout is found again.
        let manifest =
            env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().ok_or_else(|| Error::new(format!("{} is in no workspace", manifest.display())))?;
        Ok(Self { root: root.to_path_buf(), variables: Vec::new() })
    }

    /// The folder of the workspace's `Cargo.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The same workspace; programs it runs see `name` set to `value`.
    pub fn with_variable(&self, name: &'static str, value: impl Into<OsString>) -> Self {
        let mut variables = self.variables.clone();
        variables.push((name, value.into()));
        Self { root: self.root.clone(), variables }
    }

    /// A command that runs in the root of the workspace with its variables.
    pub fn command(&self, program: impl Into<OsString>) -> Command {
        let mut command = Command::new(program.into());
        command.current_dir(&self.root);
        // Cargo describes xtask in these; a nested cargo must not take them for its own.
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("CARGO_PKG_") {
                command.env_remove(&name);
            }
        }
        command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }

    /// `cargo` with these arguments, by the toolchain that runs this program.
    pub fn cargo<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(cargo);
        command.args(args);
        command
    }
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program());
    let name = name.file_name().unwrap_or(name.as_os_str());
    std::iter::once(name)
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word in the form that a POSIX shell reads back as that word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Shows the command, runs it with this program's input and output, and asks that it succeed.
pub fn run(command: &mut Command) -> Result<(), Error> {
    eprintln!("$ {}", shown(command));
    run_silently(command)
}

/// The same without showing the command.
pub fn run_silently(command: &mut Command) -> Result<(), Error> {
    let status = command.status().cannot(format_args!("run `{}`", shown(command)))?;
    if status.success() { Ok(()) } else { Err(Error::new(format!("`{}` failed ({status})", shown(command)))) }
}

/// What the command prints on its standard output; its other output is dropped. `None` where it
/// cannot be run or fails.
pub fn output(command: &mut Command) -> Option<String> {
    let result = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    result.status.success().then(|| String::from_utf8_lossy(&result.stdout).into_owned())
}

/// The first file of this name in the folders of `path` (the form of the variable `PATH`).
pub fn search(path: &OsString, name: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The first file of this name on `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    search(&env::var_os("PATH")?, name)
}

/// Whether this run is one of continuous integration.
pub fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("target/demo/a.ptx"), "target/demo/a.ptx");
        assert_eq!(quoted("-D warnings"), "'-D warnings'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--", "a b"]);
        assert_eq!(shown(&command), "cargo test -- 'a b'");
    }

    #[test]
    fn the_first_folder_of_the_path_wins() {
        let base = env::temp_dir().join(format!("lacewing-xtask-path-{}", std::process::id()));
        let (first, second) = (base.join("first"), base.join("second"));
        for folder in [&first, &second] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(second.join("tool"), "").unwrap();
        // A folder of that name is not the program.
        std::fs::create_dir_all(first.join("tool")).unwrap();
        let path = env::join_paths([&first, &second]).unwrap();
        assert_eq!(search(&path, "tool"), Some(second.join("tool")));
        assert_eq!(search(&path, "missing"), None);
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_failing_command_is_named_in_the_error() {
        let error = run_silently(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'exit 3'` failed (exit status: 3)");
        let error = run_silently(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().starts_with("cannot run `no-such-program-here`"), "{error}");
    }

    #[test]
    fn variables_reach_the_commands_of_their_workspace_only() {
        let plain = Workspace::find().unwrap();
        let marked = plain.with_variable("LACEWING_MARK", "1");
        let mark = |workspace: &Workspace| {
            let command = workspace.command("true");
            command.get_envs().any(|(name, value)| name == "LACEWING_MARK" && value.is_some())
        };
        assert!(mark(&marked) && !mark(&plain));
    }
}
