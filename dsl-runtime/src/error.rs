//! What can go wrong on the host side, as values.

use lacewing_core as core;

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
        matches!(self, Error::Input(_) | Error::Setting(_) | Error::Shape(_))
    }
}
