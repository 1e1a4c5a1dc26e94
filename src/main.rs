//! The `lacewing` command, with the bundled kernels (and those with planted mistakes, with the feature `planted`).

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(feature = "planted")]
    let entries = &[lacewing_kernels::ENTRIES, lacewing_kernels::planted::PLANTED].concat();
    #[cfg(not(feature = "planted"))]
    let entries = lacewing_kernels::ENTRIES;
    lacewing::cli::main(entries)
}
