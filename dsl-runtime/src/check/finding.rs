//! What is wrong with a kernel, as a person and a program can read it.

use std::fmt;

use lacewing_core::{Diagnostic, SourceLocation, Target};

use crate::compare::Worst;
use crate::emulator::{Report, Writer};

/// The first thing that the ladder found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// What kind of mistake, in a word or two: the name of a [`ReportKind`](crate::emulator::ReportKind), or
    ///
    /// | kind | |
    /// |---|---|
    /// | `refused` | the language, the verifier or the launch refuses the kernel |
    /// | `unwritten output` | elements of an output that no thread writes |
    /// | `wrong result` | numbers outside the tolerance |
    /// | `wrong by a factor` | the same, all by one factor, or by one a row |
    /// | `unvisited input` | numbers outside the tolerance, and inputs that matter were never read |
    /// | `padding reaches the result` | a value that nothing may look at |
    /// | `write outside the tensor` | into the gap between two rows |
    /// | `not reproducible` | two runs on the same inputs that differ |
    /// | `bank conflicts` | lanes that queue at one bank of shared memory |
    pub kind: String,
    /// One sentence with the values.
    pub message: String,
    /// The line to look at: the operation, or the store that wrote the first wrong element.
    pub location: Option<SourceLocation>,
    /// Call sites of the helpers that led there, innermost first.
    pub call_chain: Vec<SourceLocation>,
    /// The block, where one is to blame.
    pub block: Option<[u32; 3]>,
    /// The thread within its block, where one is to blame.
    pub thread: Option<[u32; 3]>,
    /// The kernel.
    pub kernel: String,
    /// The target.
    pub target: Target,
    /// The rung that fails.
    pub rung: String,
    /// The smallest shape that was found to fail, as `name=value,..`.
    pub shape: String,
    /// The values of parameters that are not the defaults, as `name=value,..`.
    pub settings: String,
    /// Seed of inputs and scheduler.
    pub seed: u64,
    /// The output that is wrong, where one is.
    pub tensor: Option<String>,
    /// The first wrong element: its index, what the kernel gave and what is right.
    pub element: Option<Worst>,
    /// Further facts.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
    /// Rungs below that hold, for the same target and settings.
    pub held: Vec<String>,
    /// The command that shows it again.
    pub reproduce: String,
}

impl Finding {
    /// A report of the emulator.
    pub(super) fn report(mut self, report: &Report) -> Self {
        report.kind.name().clone_into(&mut self.kind);
        self.message.clone_from(&report.message);
        self.location.clone_from(&report.location);
        self.call_chain.clone_from(&report.call_chain);
        self.block = report.block;
        self.thread = report.thread;
        self.notes.clone_from(&report.notes);
        self.help.clone_from(&report.help);
        self
    }

    /// A diagnostic of the trace.
    pub(super) fn diagnostic(mut self, diagnostic: &Diagnostic) -> Self {
        "refused".clone_into(&mut self.kind);
        self.message.clone_from(&diagnostic.message);
        self.location.clone_from(&diagnostic.location);
        self.call_chain.clone_from(&diagnostic.call_chain);
        self.notes.clone_from(&diagnostic.notes);
        self.help.clone_from(&diagnostic.help);
        self
    }

    /// The thread that wrote an element.
    pub(super) fn writer(mut self, writer: Option<&Writer>) -> Self {
        if let Some(writer) = writer {
            self.location.clone_from(&writer.location);
            self.call_chain.clone_from(&writer.call_chain);
            self.block = Some(writer.block);
            self.thread = writer.thread;
        }
        self
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The finding as a diagnostic, which renders with the user's source line.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(&self.message).at(self.location.clone()).label(&self.kind);
        diagnostic.call_chain.clone_from(&self.call_chain);
        let mut place = format!("kernel `{}` for {}", self.kernel, self.target);
        if let Some([x, y, z]) = self.block {
            place += &format!(", block ({x}, {y}, {z})");
        }
        if let Some([x, y, z]) = self.thread {
            place += &format!(", thread ({x}, {y}, {z})");
        }
        diagnostic = diagnostic.note(place);
        let mut rung = format!("rung `{}` fails", self.rung);
        if !self.shape.is_empty() {
            rung += &format!(" with {}", self.shape);
        }
        if !self.settings.is_empty() {
            rung += &format!(" and {}", self.settings);
        }
        diagnostic = diagnostic.note(match self.held.as_slice() {
            [] => format!("{rung}; it is the first"),
            [only] => format!("{rung}; {only} holds"),
            held => format!("{rung}; {} hold", held.join(", ")),
        });
        for note in &self.notes {
            diagnostic = diagnostic.note(note);
        }
        diagnostic = diagnostic.note(format!("again: {}", self.reproduce));
        diagnostic.help.clone_from(&self.help);
        diagnostic
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_diagnostic().render())
    }
}
