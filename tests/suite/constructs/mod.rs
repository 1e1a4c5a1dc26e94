//! What each construct of the language becomes: one small kernel and a snapshot of its traced IR each.

mod arithmetic;
mod branches;
mod device;
mod loops;
mod memory;
mod tensor_cores;

use lacewing::{Target, core, rt};

/// The rows of the language table.
const LANGUAGE: &[&str] = &[
    "range",
    "compile-time loops",
    "loop hints",
    "carried state",
    "explicit carry",
    "while, break, continue, return",
    "if",
    "const_expr, match, if let",
    "&&, ||, !",
    "select",
    "comparisons",
    "operators",
    "casts",
    "math",
    "ids",
    "uniform values",
    "synchronisation",
    "collectives",
    "shared memory",
    "tensors",
    "buffers",
    "matrix instructions",
    "asynchronous copies",
    "atomics",
    "printf, device_assert, static_assert",
    "resource attributes",
    "generics, helpers, compile-time parameters",
];

/// The function of the traced module, its regions indented from the left margin.
fn ir(kernel: &impl rt::Kernel, target: Target) -> String {
    let traced = core::trace_kernel(kernel, target).unwrap_or_else(|error| panic!("{error}"));
    let text = traced.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("    "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Snapshots of kernels, each under the row of the language table that it shows.
macro_rules! constructs {
    ($($row:literal { $($test:ident: $kernel:expr $(, on $target:ident)?;)* })*) => {
        $($(
            #[test]
            fn $test() {
                #[allow(unused_variables, unused_assignments, reason = "most kernels are traced for one chip")]
                let target = lacewing::Target::SM_80;
                $( let target = lacewing::Target::$target; )?
                insta::with_settings!({ description => $row, omit_expression => true }, {
                    insta::assert_snapshot!(super::ir(&$kernel, target));
                });
            }
        )*)*

        /// The rows that are shown here.
        pub(super) const ROWS: &[&str] = &[$($row),*];
    };
}
use constructs;

#[test]
fn every_row_of_the_language_table_has_a_snapshot() {
    let shown =
        [loops::ROWS, branches::ROWS, arithmetic::ROWS, device::ROWS, memory::ROWS, tensor_cores::ROWS].concat();
    for row in LANGUAGE {
        assert!(shown.contains(row), "no snapshot shows `{row}`");
    }
    for row in shown {
        assert!(LANGUAGE.contains(&row), "`{row}` is no row of the table");
    }
}
