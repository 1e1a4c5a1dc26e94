//! The `lacewing` command, with the bundled kernels.

use std::process::ExitCode;

fn main() -> ExitCode {
    lacewing::cli::main(lacewing_kernels::ENTRIES)
}
