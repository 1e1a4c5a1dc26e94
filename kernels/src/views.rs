//! What a launch decides by looking at its tensors.

use lacewing_core::rt::KernelParam;
use lacewing_core::types::Scalar;
use lacewing_core::{ScalarType, types};
use lacewing_runtime::host::HostTensor;
use lacewing_runtime::launch::Arg;
use lacewing_runtime::runner::TensorSpec;
use lacewing_runtime::{DevTensor, Element, ElementOf, Error};

/// A float type of kernels whose host form can be a tensor's element and a scalar argument.
pub trait HostFloat: types::Float + KernelParam + Scalar<Host: ElementOf<Self> + Arg<Self>> {}
impl<T: types::Float + KernelParam + Scalar<Host: ElementOf<T> + Arg<T>>> HostFloat for T {}

/// The types that most small kernels take.
pub(crate) const FLOATS: &[ScalarType] = &[ScalarType::F32, ScalarType::F16, ScalarType::Bf16];
/// Their names, for the parameter `dtype`.
pub(crate) const FLOAT_NAMES: &[&str] = &["f32", "f16", "bf16"];

/// A number in the host form of `T`, rounded to nearest even. One that `T` has only an infinity for is refused.
pub(crate) fn host_float<T: HostFloat>(name: &str, number: f32) -> Result<T::Host, Error> {
    let tensor = HostTensor::from_f64(T::TYPE, &[1], &[f64::from(number)])?;
    if number.is_finite() && !tensor.to_f64()?.iter().all(|rounded| rounded.is_finite()) {
        let ty = T::TYPE;
        return Err(Error::Setting(format!("`{name}` is {number:e}, which is too large for {ty}, the kernel's type")));
    }
    let numbers = tensor.to_vec::<T::Host>()?;
    numbers.first().copied().ok_or_else(|| Error::Shape("a tensor of one element has none".to_owned()))
}

/// Whether every row starts at a multiple of `bytes` (a power of two) and its elements are neighbours.
pub(crate) fn rows_are_vectors<H: Element, const RANK: usize>(tensor: &DevTensor<H, RANK>, bytes: usize) -> bool {
    let element = H::TYPE.bytes() as i64;
    let (extents, strides) = (tensor.shape(), tensor.strides());
    let Some((last, outer)) = strides.split_last() else { return false };
    let contiguous = *last == 1 || extents.last().is_some_and(|extent| *extent <= 1);
    let mut outer = extents.iter().zip(outer);
    let aligned = tensor.offset_bytes().is_multiple_of(bytes);
    contiguous && aligned && outer.all(|(extent, stride)| *extent <= 1 || (stride * element) % bytes as i64 == 0)
}

/// Whether a tensor map can describe a tensor whose rows are vectors of 16 bytes: it has an element, and strides are
/// positive and end below 2^40 bytes.
pub(crate) fn tensor_map_describes<H: Element, const RANK: usize>(tensor: &DevTensor<H, RANK>) -> bool {
    let limit = (1i64 << 40) / H::TYPE.bytes() as i64;
    let mut outer = tensor.shape().into_iter().zip(tensor.strides());
    !tensor.is_empty() && outer.all(|(extent, stride)| extent <= 1 || (1..limit).contains(&stride))
}

/// A right output that a file may carry for a check.
pub(crate) const fn expected(name: &'static str, dimensions: &'static [&'static str]) -> TensorSpec {
    TensorSpec { name, dimensions, types: EXPECTED, optional: true, about: "the right output, to compare with" }
}

/// The types of right outputs: they may be more precise than the kernel's.
const EXPECTED: &[ScalarType] = &[ScalarType::F32, ScalarType::F16, ScalarType::Bf16, ScalarType::F64];

/// Refuses a shape that is not the one that the other arguments ask for.
pub(crate) fn check_shape<const RANK: usize>(
    name: &str,
    have: [usize; RANK],
    need: [usize; RANK],
) -> Result<(), Error> {
    if have == need {
        return Ok(());
    }
    Err(Error::Shape(format!("`{name}` has shape {have:?}; {need:?} is needed")))
}
