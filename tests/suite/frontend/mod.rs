//! The front end: that a kernel means what the same Rust means.
//!
//! Faults that kernel languages of this kind have shown are numbered F1, F2, ..; a test says in a
//! comment which one it is about. Each runs on a chip with warps of 32 and on one with waves of 64, both emulated, and on
//! a GPU where there is one, and is compared with plain Rust on the host.

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
mod uniform;
mod wishes;

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
    let mut results = devices()
        .into_iter()
        .map(|dev| run_on(kernel, &dev, blocks, x, y).unwrap_or_else(|error| panic!("{dev}: {error}")));
    let first = results.next().unwrap_or_default();
    assert!(results.all(|other| other == first), "the devices differ");
    first
}

/// Every device that a kernel of no fault must give the same on: both emulated chips, and the GPU where there is one,
/// with its own code and with that of the oldest chip. `LACEWING_REQUIRE_GPU=1` makes it a failure that there is none.
pub(crate) fn devices() -> Vec<Device> {
    let mut devices: Vec<Device> = TARGETS.iter().map(|target| Device::emulator(*target).unwrap()).collect();
    match Device::cuda(0) {
        Ok(gpu) => {
            devices.push(gpu.with_synchronous(true));
            devices.push(Device::cuda_for(0, Target::SM_80).unwrap().with_synchronous(true));
        }
        Err(error) => assert!(std::env::var_os("LACEWING_REQUIRE_GPU").is_none(), "{error}"),
    }
    devices
}

/// What `y` holds after `blocks` blocks of the kernel.
pub(crate) fn run_on(
    kernel: &impl IntKernel,
    dev: &Device,
    blocks: usize,
    x: &[i32],
    y: &[i32],
) -> Result<Vec<i32>, Error> {
    let x = dev.tensor_from_slice(x, [x.len()])?;
    let mut y = dev.tensor_from_slice(y, [y.len()])?;
    kernel.grid([blocks, 1, 1]).launch(dev, (&x, &mut y))?;
    y.to_vec()
}

/// What a check of the emulator says about the kernel.
pub(crate) fn report(kernel: &impl IntKernel, x: &[i32], y: &[i32]) -> Report {
    match run_on(kernel, &Device::emulator(Target::SM_80).unwrap(), 1, x, y) {
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
