//! Why a command ends with a status other than 0.

use std::fmt;
use std::io;

/// What to tell the user, and the exit status.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or a file is at fault: status 2.
    Input(String),
    /// A kernel, a device or a check failed: status 1. The text says `error:` itself or not.
    Failed(String),
    /// Standard output or a file could not be written.
    Io(io::Error),
}

impl Failure {
    pub(crate) fn input(text: impl Into<String>) -> Self {
        Failure::Input(text.into())
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Failure::Failed(text.into())
    }

    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Input(_) => 2,
            Failure::Failed(_) | Failure::Io(_) => 1,
        }
    }

    /// Whether the reader of our output (`head`, a pager) has had enough: no fault of anybody.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Failure::Io(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Failure::Input(text) | Failure::Failed(text) => text.clone(),
            Failure::Io(error) => error.to_string(),
        };
        // Diagnostics with a source line come rendered with their own heading.
        if text.starts_with("error") { f.write_str(&text) } else { write!(f, "error: {text}") }
    }
}

impl From<lacewing_runtime::Error> for Failure {
    fn from(error: lacewing_runtime::Error) -> Self {
        let text = error.to_string();
        // A launch that is refused has not run: its sizes come from the file or the command line.
        let refused = error.is_input() || matches!(error, lacewing_runtime::Error::Launch { .. });
        if refused { Failure::Input(text) } else { Failure::Failed(text) }
    }
}

impl From<lacewing_core::Error> for Failure {
    fn from(error: lacewing_core::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_that_is_refused_is_a_fault_of_the_input() {
        let refused = |kernel: &str| lacewing_runtime::Error::Launch {
            kernel: kernel.to_owned(),
            reason: "the grid has 65536 blocks in y, and at most 65535 are possible".to_owned(),
        };
        assert_eq!(Failure::from(refused("k")).status(), 2);
        assert_eq!(Failure::from(lacewing_runtime::Error::Device("gone".to_owned())).status(), 1);
    }
}
