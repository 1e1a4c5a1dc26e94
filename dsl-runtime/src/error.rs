//! What can go wrong on the host side, as values.

use lacewing_core as core;

#[cfg(feature = "mlir")]
use crate::emulator::Report;

/// Why a device, a launch, a file or a setting was refused.
///
/// `Display` is what a person reads: it says what was found and what to do about it, and for
/// kernels it renders the line of the user's source.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel was refused by the trace, the verifier or a lowering.
    #[error(transparent)]
    Kernel(#[from] core::Error),

    /// A device is missing or cannot do what was asked.
    #[error("{0}")]
    Device(String),

    /// A launch was refused before anything ran.
    #[error("kernel `{kernel}` cannot be launched: {reason}")]
    Launch {
        /// Name of the kernel.
        kernel: String,
        /// What is wrong, and the limit that it broke.
        reason: String,
    },

    /// The kernel ran and a check of the emulator stopped it.
    #[cfg(feature = "mlir")]
    #[error(transparent)]
    Report(Box<Report>),

    /// A kernel failed on a GPU, which says neither where nor, if several were under way, which one.
    #[error("{}", fault_text(device, kernels, meaning))]
    Fault {
        /// Name of the device.
        device: String,
        /// The kernels that were under way, the last one first.
        kernels: Vec<String>,
        /// What the driver reports.
        meaning: String,
    },

    /// An element was asked for that neither the host nor a kernel has written.
    #[error("element {index:?} of a tensor {shape:?} was never written")]
    Unwritten {
        /// Its index.
        index: Vec<usize>,
        /// The shape of the tensor.
        shape: Vec<usize>,
    },

    /// A host tensor or a view does not have the shape, strides or type that was asked for.
    #[error("{0}")]
    Shape(String),

    /// The bytes are no artifact that can be used: foreign, truncated, damaged, of another version, or without a kernel
    /// or target that was asked for.
    #[error("{0}")]
    Artifact(String),

    /// An input tensor (from a file or made at random) is not what the kernel takes.
    #[error("{0}")]
    Input(String),

    /// A compile-time parameter is unknown, has the wrong type, or a value that the kernel refuses.
    #[error("{0}")]
    Setting(String),
}

fn fault_text(device: &str, kernels: &[String], meaning: &str) -> String {
    let who = match kernels {
        [] => "a kernel".to_owned(),
        [one] => format!("kernel `{one}`"),
        several => format!(
            "one of the kernels {}",
            several.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    format!(
        "{who} failed on {device}: {meaning}\n  run it on the emulator, which names the line, the thread and the \
         address; the device is of no more use to this process"
    )
}

impl Error {
    /// Whether the fault lies in what the caller gave (a file, a setting, a shape) rather than in
    /// a kernel or a device. The command line exits with status 2 for these.
    pub fn is_input(&self) -> bool {
        matches!(self, Error::Artifact(_) | Error::Input(_) | Error::Setting(_) | Error::Shape(_))
    }
}

/// The text for a name that is not known: the closest known one first, then all of them.
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let mut text = format!("there is no {what} `{name}`");
    let close = known
        .iter()
        .map(|candidate| {
            // A wrong case is a smaller mistake than a wrong letter.
            let without_case = distance(&name.to_lowercase(), &candidate.to_lowercase());
            (without_case, distance(name, candidate), candidate)
        })
        .min()
        .filter(|(distance, _, candidate)| *distance <= candidate.chars().count().div_ceil(3));
    if let Some((_, _, close)) = close {
        text.push_str(&format!("; did you mean `{close}`?"));
    }
    if known.is_empty() {
        text.push_str(&format!(" (there is no {what} at all)"));
    } else {
        text.push_str(&format!("\n  known: {}", known.join(", ")));
    }
    text
}

/// Levenshtein distance: how many letters to change, add or drop.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, &above) in b.iter().zip(row.iter().skip(1)) {
            let changed = diagonal + usize::from(x != *y);
            left = changed.min(left + 1).min(above + 1);
            diagonal = above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
