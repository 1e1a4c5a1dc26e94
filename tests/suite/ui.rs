//! What rustc says about mistakes, word for word: `tests/ui/*.rs` against the `.stderr` beside each.
//!
//! After a deliberate change of a message, run with `TRYBUILD=overwrite` and read the difference.

#[test]
fn mistakes_are_compile_errors_that_speak_of_kernels() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
