//! Kernels with one mistake each, planted on purpose: what `lacewing check` must find, by kind and by line.
//!
//! The numbers are those of the debugging cases that the book lists. A comment `<- D1` marks the line that is to be
//! reported (`-> D1` the next one). Mistakes that rustc or the macro refuses are no kernels: they stand in `tests/ui`, and
//! their entries give what the compiler says. D30, a stale cache, cannot be made.
//!
//! | kernel | mistake |
//! |---|---|
//! | `planted_d1` | `-inf - -inf` in a row in which all is masked |
//! | `planted_d2` | `1 / 0`, and then `0 * inf` |
//! | `planted_d3` | the first iteration of online softmax, with the rescale factor inverted |
//! | `planted_d4` | results stored to a slot by the partition's absolute number |
//! | `planted_d5` | sums that the main kernel does not write, read by the one that reduces |
//! | `planted_d6` | fewer blocks than partitions, and no loop over them |
//! | `planted_d7` | rows of one factor of a product in another order than those of the other |
//! | `planted_d8` | refused: the factors of a product swapped |
//! | `planted_d9` | refused: a buffer offset without its unit |
//! | `planted_d10` | refused: a value of another type stored |
//! | `planted_d11` | a scale applied twice |
//! | `planted_d12` | refused: a run-time number as the index of a host array |
//! | `planted_d13` | refused: a run-time condition in `const_expr` |
//! | `planted_d14` | refused: state of a loop of a type that cannot be carried |
//! | `planted_d15` | a loop's step that turns out to be 0 |
//! | `planted_d16` | a barrier in a divergent branch |
//! | `planted_d17` | a barrier for two arrivals, of which one comes |
//! | `planted_d18` | shared memory written by one warp and read by another, with no barrier between |
//! | `planted_d19` | plain stores that the copy engine reads without a proxy fence |
//! | `planted_d20` | an accumulator in tensor memory, read while its product is under way |
//! | `planted_d21` | rows of tensor memory that a warp does not reach |
//! | `planted_d22` | a tile in panels, filled by the column of the whole row |
//! | `planted_d23` | a tensor map of rows that are no multiple of 16 bytes apart |
//! | `planted_d24` | a column of a tile in one bank |
//! | `planted_d25` | a stride that is right when two extents are equal |
//! | `planted_d26` | a mask of keys made from the number of queries |
//! | `planted_d27` | a weight of 0 for values that may be NaN |
//! | `planted_d28` | the output rescaled by the inverted factor, the denominator rightly |
//! | `planted_d29` | a block that a warp's reduction does not fit |
//! | `planted_cancellation` | a variance in one pass: two large numbers cancel |
//! | `planted_f16_sum` | a long sum in F16 |
//! | `planted_narrow` | weights narrowed to F16 before they are rescaled |
//! | `planted_index` | an index that wraps at 2^31 and passes its guard |

mod blackwell;
mod exact;
mod hopper;
mod memory;
mod numbers;
mod operands;
mod partitions;
mod refused;
mod sync;

use lacewing_core::{ScalarType, Target};
use lacewing_runtime::registry::{Build, KernelEntry};
use lacewing_runtime::runner::{Dimension, Runner, TensorSpec, Wanted};
use lacewing_runtime::{DevTensor, Device, Error, Tensors};

pub use refused::{REFUSED, Refused};

/// The planted kernels, as the command line knows them with the cargo feature `planted`.
pub static PLANTED: &[&KernelEntry] = &[
    &numbers::D1,
    &numbers::D2,
    &numbers::D3,
    &partitions::D4,
    &partitions::D5,
    &partitions::D6,
    &operands::D7,
    &refused::D8,
    &refused::D9,
    &refused::D10,
    &operands::D11,
    &refused::D12,
    &refused::D13,
    &refused::D14,
    &sync::D15,
    &sync::D16,
    &hopper::D17,
    &sync::D18,
    &hopper::D19,
    &blackwell::D20,
    &blackwell::D21,
    &memory::D22,
    &hopper::D23,
    &memory::D24,
    &operands::D25,
    &operands::D26,
    &operands::D27,
    &operands::D28,
    &memory::D29,
    &exact::CANCELLATION,
    &exact::F16_SUM,
    &exact::NARROW,
    &exact::INDEX,
];

/// A planted kernel's entry: no parameters, every target.
const fn entry(name: &'static str, about: &'static str, build: Build, runner: &'static dyn Runner) -> KernelEntry {
    KernelEntry { name, about, targets: &Target::ALL, parameters: &[], build, runner: Some(runner) }
}

const F32S: &[ScalarType] = &[ScalarType::F32];

/// A tensor of F32.
const fn tensor(name: &'static str, dimensions: &'static [&'static str], about: &'static str) -> TensorSpec {
    TensorSpec { name, dimensions, types: F32S, optional: false, about }
}

const fn dimension(name: &'static str, default: usize) -> Dimension {
    Dimension { name, default, about: "an extent" }
}

/// An input on the device.
fn upload<const RANK: usize>(device: &Device, inputs: &Tensors, name: &str) -> Result<DevTensor<f32, RANK>, Error> {
    device.tensor_from(&inputs[name])
}

/// One output by name.
fn output<const RANK: usize>(name: &str, tensor: &DevTensor<f32, RANK>) -> Result<Tensors, Error> {
    Ok(Tensors::from([(name.to_owned(), tensor.to_host()?)]))
}

/// An output that must be right up to the roundings of f32.
fn wanted(tensor: &'static str, numbers: Vec<f64>) -> Result<Vec<Wanted>, Error> {
    Ok(vec![Wanted { tensor, numbers, tolerance: 1e-4 }])
}
