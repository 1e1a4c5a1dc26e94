//! Located diagnostics, rendered with the user's source line.

use std::fmt;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A place in the user's source.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLocation {
    /// Path as rustc wrote it: relative to the workspace root for workspace members.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

impl SourceLocation {
    /// The location that `#[track_caller]` hands down.
    pub fn from_caller(location: &std::panic::Location<'_>) -> Self {
        Self { file: location.file().to_owned(), line: location.line(), column: location.column() }
    }

    /// The text of the file, found as written or under a parent of the current directory
    /// (rustc's paths are relative to the workspace root; a program may run anywhere below it).
    fn read_source(&self) -> Option<String> {
        let path = Path::new(&self.file);
        if path.is_absolute() {
            return std::fs::read_to_string(path).ok();
        }
        let mut directory: Option<PathBuf> = std::env::current_dir().ok();
        while let Some(current) = directory {
            if let Ok(text) = std::fs::read_to_string(current.join(path)) {
                return Some(text);
            }
            directory = current.parent().map(Path::to_owned);
        }
        None
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How grave a [`Diagnostic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The kernel is refused.
    Error,
    /// The kernel is accepted.
    Warning,
}

/// One finding: what is wrong, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The user's expression, where there is one.
    pub location: Option<SourceLocation>,
    /// The text under the caret; empty for none.
    pub label: String,
    /// Call sites of the `#[device]` helpers that led here, innermost first.
    pub call_chain: Vec<SourceLocation>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place yet.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            location: None,
            label: String::new(),
            call_chain: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, location: impl Into<Option<SourceLocation>>) -> Self {
        self.location = location.into();
        self
    }

    /// Sets the text under the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The diagnostic as a terminal shows it, with the user's line when its file can be read.
    pub fn render(&self) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let source = self.location.as_ref().and_then(|l| l.read_source().map(|text| (l, text)));
        let mut chain: Vec<String> = self.call_chain.iter().map(|l| format!("called from {l}")).collect();
        chain.extend(self.notes.iter().cloned());

        let title = level.primary_title(self.message.as_str());
        let mut group = match &source {
            Some((location, text)) => {
                let span = caret_span(text, location);
                let mut annotation = AnnotationKind::Primary.span(span);
                if !self.label.is_empty() {
                    annotation = annotation.label(self.label.as_str());
                }
                title.element(Snippet::source(text.as_str()).path(location.file.as_str()).annotation(annotation))
            }
            None => {
                if let Some(location) = &self.location {
                    chain.insert(0, format!("at {location}"));
                }
                Group::with_title(title)
            }
        };
        for note in &chain {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        Renderer::plain().render(&[group])
    }
}

/// The byte range of the expression that starts at `location`: up to the end of its identifier or,
/// for an operator, of the run of punctuation.
fn caret_span(text: &str, location: &SourceLocation) -> std::ops::Range<usize> {
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if index + 1 == location.line as usize {
            let column = (location.column as usize).saturating_sub(1);
            let offset = line.char_indices().nth(column).map_or(line.trim_end().len(), |(at, _)| at);
            let rest = line[offset..].trim_end();
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if rest.starts_with(is_word) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else {
                rest.find(|c: char| c.is_whitespace() || is_word(c)).unwrap_or(rest.len())
            };
            return start + offset..start + offset + length.max(usize::from(!rest.is_empty()));
        }
        start += line.len();
    }
    text.len()..text.len()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render())
    }
}

/// Why a kernel could not be traced, verified or lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// At least one; the first is the root cause where that is known.
    pub diagnostics: Vec<Diagnostic>,
}

impl Error {
    /// An error of one diagnostic without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Diagnostic::error(message).into()
    }
}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic] }
    }
}

impl From<Vec<Diagnostic>> for Error {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            if index > 0 {
                f.write_str("\n\n")?;
            }
            fmt::Display::fmt(diagnostic, f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_line_with_a_caret_and_the_chain() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "fn f() {\n    let y = x + one;\n}\n").unwrap();
        let path = file.path().display().to_string();
        let text = Diagnostic::error("no such thing")
            .at(SourceLocation { file: path.clone(), line: 2, column: 13 })
            .label("this one")
            .help("do another")
            .render();
        assert!(text.starts_with("error: no such thing"), "{text}");
        assert!(text.contains("let y = x + one;"), "{text}");
        assert!(text.contains("^ this one"), "{text}");
        assert!(text.contains("help: do another"), "{text}");
        assert!(text.contains(&format!("{path}:2:13")), "{text}");
    }

    #[test]
    fn a_missing_file_still_gives_the_place() {
        let text =
            Diagnostic::error("m").at(SourceLocation { file: "/nowhere/x.rs".into(), line: 3, column: 9 }).render();
        assert!(text.contains("/nowhere/x.rs:3:9"), "{text}");
    }
}
