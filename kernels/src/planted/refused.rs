//! Mistakes that rustc or the macro refuses: there is no kernel to run, and what is found is what the compiler says.
//!
//! Each is a program of `tests/ui`, whose message is compared word for word there; the entries here give its first
//! line and its place, and a test compares those with the compiler's.

use lacewing_core::{Diagnostic, SourceLocation};
use lacewing_runtime::Error;
use lacewing_runtime::registry::{AnyKernel, KernelEntry};
use lacewing_runtime::runner::SimpleRunner;

use super::entry;

/// A program that the compiler refuses.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// The program, from the repository's root.
    pub file: &'static str,
    /// The line that is refused.
    pub line: u32,
    /// The column.
    pub column: u32,
    /// What the compiler says first.
    pub message: &'static str,
}

/// Nothing runs, so there is nothing to run with.
static NOTHING: SimpleRunner = SimpleRunner {
    inputs: &[],
    outputs: &[],
    dimensions: &[],
    run: |_, _, _| Ok(lacewing_runtime::Tensors::new()),
    reference: |_, _| Ok(Vec::new()),
};

fn refuse(refused: &Refused) -> Result<Box<dyn AnyKernel>, Error> {
    let Refused { file, line, column, message } = *refused;
    let place = SourceLocation { file: file.to_owned(), line, column };
    let said = Diagnostic::error(message)
        .at(place)
        .label("refused by the compiler")
        .note("the compiler refuses this program, so that there is no kernel to trace or run")
        .note(format!(
            "all that it says is in {}, which the tests compare word for word",
            file.replace(".rs", ".stderr")
        ));
    Err(Error::Kernel(said.into()))
}

macro_rules! refused {
    ($($name:ident, $kernel:literal, $about:literal, $file:literal, $line:literal, $column:literal, $message:literal;)*) => {
        $(pub(super) static $name: KernelEntry = entry(
            $kernel,
            $about,
            |_, _| refuse(&Refused { file: $file, line: $line, column: $column, message: $message }),
            &NOTHING,
        );)*

        /// The planted kernels that the compiler refuses, by name.
        pub static REFUSED: &[(&str, Refused)] = &[
            $(($kernel, Refused { file: $file, line: $line, column: $column, message: $message }),)*
        ];
    };
}

refused! {
    D8, "planted_d8", "the factors of a product swapped", "tests/ui/fragment_role.rs", 16, 10,
        "the left factor of `gemm` must be a fragment A of the accumulators' atom";
    D9, "planted_d9", "a buffer offset without its unit", "tests/ui/buffer_offset_unit.rs", 10, 36,
        "mismatched types";
    D10, "planted_d10", "a value of another type stored", "tests/ui/store_type.rs", 7, 19,
        "mismatched types";
    D12, "planted_d12", "a run-time number as the index of a host array", "tests/ui/index_of_host_array.rs", 9, 31,
        "`i` counts at run time: it cannot index a host array; make the loop a compile-time one with `range_constexpr`, or keep the values in shared memory";
    D13, "planted_d13", "a run-time condition in `const_expr`", "tests/ui/const_expr_at_run_time.rs", 8, 19,
        "`const_expr` compares compile-time values, found `lacewing::prelude::I32`";
    D14, "planted_d14", "state of a loop of a type that cannot be carried", "tests/ui/carried_host_integer.rs", 10, 9,
        "variable `count` changes inside run-time control flow, but its type `{integer}` is not a kernel type";
}
