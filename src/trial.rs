//! The debugging ladder in a test.

/// Climbs the debugging ladder with a kernel, as `lacewing check` does, and panics with the finding if there is one.
///
/// Takes a [`KernelEntry`](crate::runtime::registry::KernelEntry), then any of the fields of
/// [`check::Options`](crate::runtime::check::Options): `targets`, `set`, `seed`, `schedules`, `rung`, `shape`.
///
/// ```
/// use lacewing::kernels::axpy::AXPY;
/// use lacewing::prelude::*;
///
/// lacewing::check!(AXPY, targets: vec![Target::SM_80], schedules: 10);
/// ```
///
/// # Panics
/// When the ladder finds something, with the finding as the command line shows it; when the kernel does not take the
/// settings.
#[macro_export]
macro_rules! check {
    ($entry:expr $(, $field:ident: $value:expr)* $(,)?) => {{
        #[allow(clippy::needless_update, reason = "the caller may give every field")]
        let options = $crate::runtime::check::Options { $($field: $value,)* ..Default::default() };
        $crate::__check(&$entry, &options)
    }};
}

/// What [`check!`](crate::check) calls.
#[doc(hidden)]
#[track_caller]
#[allow(clippy::panic, reason = "a test says what is wrong by panicking")]
pub fn __check(
    entry: &lacewing_runtime::registry::KernelEntry,
    options: &lacewing_runtime::check::Options,
) -> lacewing_runtime::check::Verdict {
    match lacewing_runtime::check::check(entry, options, &mut |_| {}) {
        Ok(verdict) => match &verdict.finding {
            Some(finding) => panic!("{finding}"),
            None => verdict,
        },
        Err(error) => panic!("{error}"),
    }
}
