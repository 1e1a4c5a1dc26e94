//! The front end: that a kernel means what the same Rust means.
//!
//! Faults that kernel languages of this kind have shown are numbered F1, F2, ..; a test says in a
//! comment which one it is about. Each runs on a chip with warps of 32 and on one with waves of 64, and
//! is compared with plain Rust on the host.

mod early_exits;
mod endless;
mod evaluation;
mod generics;
mod host_values;
mod integers;
mod names;
mod ranges;
mod refusals;
mod state;

use lacewing::prelude::*;
use lacewing::runtime::emulator::Report;
use lacewing::{Error, rt};

/// One chip with warps of 32 and one with waves of 64.
pub(crate) const TARGETS: [Target; 2] = [Target::SM_80, Target::GFX942];

/// A kernel from integers to integers.
pub(crate) trait IntKernel: rt::Kernel<Params = (Tensor<I32, 1>, TensorMut<I32, 1>)> {}
impl<K: rt::Kernel<Params = (Tensor<I32, 1>, TensorMut<I32, 1>)>> IntKernel for K {}

/// What `y` holds after `blocks` blocks of the kernel, the same on every target.
pub(crate) fn run(kernel: &impl IntKernel, blocks: usize, x: &[i32], y: &[i32]) -> Vec<i32> {
    let [first, second] =
        TARGETS.map(|target| run_on(kernel, target, blocks, x, y).unwrap_or_else(|error| panic!("{target}: {error}")));
    assert_eq!(first, second, "the targets differ");
    first
}

/// What `y` holds after `blocks` blocks of the kernel.
pub(crate) fn run_on(
    kernel: &impl IntKernel,
    target: Target,
    blocks: usize,
    x: &[i32],
    y: &[i32],
) -> Result<Vec<i32>, Error> {
    let dev = Device::emulator(target)?;
    let x = dev.tensor_from_slice(x, [x.len()])?;
    let mut y = dev.tensor_from_slice(y, [y.len()])?;
    kernel.grid([blocks, 1, 1]).launch(&dev, (&x, &mut y))?;
    y.to_vec()
}

/// What a check of the emulator says about the kernel.
pub(crate) fn report(kernel: &impl IntKernel, x: &[i32], y: &[i32]) -> Report {
    match run_on(kernel, Target::SM_80, 1, x, y) {
        Err(Error::Report(report)) => *report,
        other => panic!("not reported: {other:?}"),
    }
}

/// The source line that a report or a diagnostic points at, trimmed.
pub(crate) fn line_of(location: &Option<lacewing::SourceLocation>) -> String {
    let location = location.as_ref().expect("a location");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(&location.file)).expect("the source of the suite");
    text.lines().nth(location.line as usize - 1).expect("a line of it").trim().to_owned()
}
