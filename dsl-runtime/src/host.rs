//! Tensors in host memory, whose type is known at run time only: what files and checks work with.

use std::collections::BTreeMap;

use half::{bf16, f16};
use lacewing_core::ScalarType;

use crate::element::Element;
use crate::error::Error;

/// Named host tensors: the contents of a file.
pub type Tensors = BTreeMap<String, HostTensor>;

/// A tensor in host memory, contiguous with the last dimension fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct HostTensor {
    scalar: ScalarType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl HostTensor {
    /// A tensor from the bytes of its elements (little-endian). Refused when the number of bytes
    /// is not that of the shape.
    pub fn from_bytes(scalar: ScalarType, shape: &[usize], bytes: Vec<u8>) -> Result<Self, Error> {
        let wanted = element_count(shape)?.checked_mul(scalar.bytes()).ok_or_else(|| too_large(shape))?;
        if wanted != bytes.len() {
            return Err(Error::Shape(format!(
                "a tensor of shape {shape:?} and type {} has {wanted} bytes, not {}",
                scalar.name(),
                bytes.len()
            )));
        }
        Ok(HostTensor { scalar, shape: shape.to_vec(), bytes })
    }

    /// A tensor from its elements in row-major order.
    pub fn new<T: Element>(elements: &[T], shape: &[usize]) -> Result<Self, Error> {
        let wanted = element_count(shape)?;
        if wanted != elements.len() {
            return Err(Error::Shape(format!(
                "a tensor of shape {shape:?} has {wanted} elements, not {}",
                elements.len()
            )));
        }
        Self::from_bytes(T::TYPE, shape, T::to_bytes(elements))
    }

    /// Type of the elements.
    pub fn scalar(&self) -> ScalarType {
        self.scalar
    }

    /// The extents, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The shape as an array, for a tensor that must have rank `RANK`.
    pub fn shape_of<const RANK: usize>(&self) -> Result<[usize; RANK], Error> {
        self.shape.as_slice().try_into().map_err(|_| {
            Error::Shape(format!("the tensor has {} dimensions {:?}, not {RANK}", self.shape.len(), self.shape))
        })
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.scalar.bytes()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements' bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements. Refused when `T` is not their type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, Error> {
        if T::TYPE != self.scalar {
            return Err(Error::Shape(format!("the tensor holds {}, not {}", self.scalar.name(), T::TYPE.name())));
        }
        T::from_bytes(&self.bytes)
    }

    /// The elements as f64: exact for every type but 64-bit integers beyond 2^53.
    pub fn to_f64(&self) -> Result<Vec<f64>, Error> {
        fn widen<T: Element>(bytes: &[u8], f: impl Fn(T) -> f64) -> Result<Vec<f64>, Error> {
            Ok(T::from_bytes(bytes)?.into_iter().map(f).collect())
        }
        let bytes = &self.bytes;
        match self.scalar {
            ScalarType::Bool => widen(bytes, |x: bool| f64::from(u8::from(x))),
            ScalarType::I8 => widen(bytes, |x: i8| x.into()),
            ScalarType::I16 => widen(bytes, |x: i16| x.into()),
            ScalarType::I32 => widen(bytes, |x: i32| x.into()),
            ScalarType::I64 => widen(bytes, |x: i64| x as f64),
            ScalarType::U8 => widen(bytes, |x: u8| x.into()),
            ScalarType::U16 => widen(bytes, |x: u16| x.into()),
            ScalarType::U32 => widen(bytes, |x: u32| x.into()),
            ScalarType::U64 => widen(bytes, |x: u64| x as f64),
            ScalarType::F16 => widen(bytes, |x: f16| x.to_f64()),
            ScalarType::Bf16 => widen(bytes, |x: bf16| x.to_f64()),
            ScalarType::F32 => widen(bytes, |x: f32| x.into()),
            ScalarType::F64 => widen(bytes, |x: f64| x),
            ScalarType::F8E4M3 => widen(bytes, |x: float8::F8E4M3| x.to_f64()),
            ScalarType::F8E5M2 => widen(bytes, |x: float8::F8E5M2| x.to_f64()),
        }
    }

    /// The same numbers in another floating-point type, rounded to nearest even.
    pub fn to_float(&self, scalar: ScalarType) -> Result<HostTensor, Error> {
        if scalar == self.scalar {
            return Ok(self.clone());
        }
        Self::from_f64(scalar, &self.shape, &self.to_f64()?)
    }

    /// A tensor of a floating-point type from f64 numbers, rounded to nearest even.
    pub fn from_f64(scalar: ScalarType, shape: &[usize], numbers: &[f64]) -> Result<HostTensor, Error> {
        match scalar {
            ScalarType::F16 => Self::new(&map(numbers, f16::from_f64), shape),
            ScalarType::Bf16 => Self::new(&map(numbers, bf16::from_f64), shape),
            ScalarType::F32 => Self::new(&map(numbers, |x| x as f32), shape),
            ScalarType::F64 => Self::new(numbers, shape),
            ScalarType::F8E4M3 => Self::new(&map(numbers, float8::F8E4M3::from_f64), shape),
            ScalarType::F8E5M2 => Self::new(&map(numbers, float8::F8E5M2::from_f64), shape),
            other => Err(Error::Shape(format!("{} is no floating-point type here", other.name()))),
        }
    }
}

fn map<T: Send>(numbers: &[f64], f: impl Fn(f64) -> T + Sync + Send) -> Vec<T> {
    made(numbers.len(), |at| f(numbers.get(at).copied().unwrap_or_default()))
}

/// `f` of each number below `count`, in order, by all cores where the library has them.
fn made<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    #[cfg(feature = "mlir")]
    if count > 1 << 16 {
        use rayon::prelude::*;
        return (0..count).into_par_iter().with_min_len(1 << 12).map(f).collect();
    }
    (0..count).map(f).collect()
}

/// Product of the extents, refused when it does not fit the address space.
pub(crate) fn element_count(shape: &[usize]) -> Result<usize, Error> {
    // A zero extent makes the product zero whatever the others are.
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1usize, |count, extent| count.checked_mul(*extent))
        .filter(|count| isize::try_from(count.saturating_mul(8)).is_ok())
        .ok_or_else(|| too_large(shape))
}

/// Refuses a tensor that the host's memory has no room for, before anything is allocated in a way that
/// would end the process.
pub(crate) fn check_room(shape: &[usize], bytes_per_element: usize) -> Result<usize, Error> {
    let bytes = element_count(shape)?.checked_mul(bytes_per_element).ok_or_else(|| too_large(shape))?;
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| too_large(shape))?;
    Ok(bytes)
}

pub(crate) fn too_large(shape: &[usize]) -> Error {
    Error::Shape(format!("a tensor of shape {shape:?} does not fit in memory"))
}

/// A small random generator for inputs (SplitMix64): the same seed gives the same tensors on every
/// host and in every version.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

/// From one state of [`Random`] to the next.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
/// Uniform numbers in a normal one.
const UNIFORMS: u64 = 12;

impl Random {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        // Constants of Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
        self.state = self.state.wrapping_add(GAMMA);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About normal with mean 0 and variance 1, within +-6: a sum of twelve uniform numbers. It
    /// uses no library function, so that its bits do not depend on the host.
    pub fn normal(&mut self) -> f64 {
        (0..UNIFORMS).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// The generator after `count` normal numbers: its state is a count of what it has given.
    fn after(&self, count: usize) -> Self {
        Random { state: self.state.wrapping_add(GAMMA.wrapping_mul((count as u64).wrapping_mul(UNIFORMS))) }
    }

    /// A tensor of normal numbers times `scale`, rounded to `scalar`.
    pub fn tensor(&mut self, scalar: ScalarType, shape: &[usize], scale: f64) -> Result<HostTensor, Error> {
        check_room(shape, size_of::<f64>())?;
        let (start, count) = (self.clone(), element_count(shape)?);
        let numbers = made(count, |at| start.after(at).normal() * scale);
        *self = start.after(count);
        HostTensor::from_f64(scalar, shape, &numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_tensor_has_as_many_elements_as_its_shape() {
        let tensor = HostTensor::new(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
        assert_eq!(tensor.to_vec::<f32>().unwrap()[4], 5.0);
        assert!(tensor.to_vec::<f64>().is_err());
        assert!(HostTensor::new(&[1.0f32], &[2]).is_err());
        assert!(HostTensor::from_bytes(ScalarType::F32, &[usize::MAX, 3], vec![]).is_err());
        assert!(HostTensor::new::<f32>(&[], &[usize::MAX, 0, 9]).unwrap().is_empty());
    }

    #[test]
    fn floats_are_rounded_to_nearest_even() {
        let tensor = HostTensor::new(&[1.0f32 + 1.0 / 2048.0, 70000.0, f32::NAN], &[3]).unwrap();
        let half = tensor.to_float(ScalarType::F16).unwrap().to_f64().unwrap();
        assert_eq!(half[0], 1.0);
        assert_eq!(half[1], f64::INFINITY);
        assert!(half[2].is_nan());
    }

    #[test]
    fn random_numbers_are_the_same_everywhere() {
        let mut random = Random::new(7);
        assert_eq!(random.next_u64(), 0x63CB_E1E4_5932_0DD7);
        let (mut apart, mut together) = (random.clone(), random.clone());
        let count = 1 << 17;
        let tensor = together.tensor(ScalarType::F64, &[count], 1.0).unwrap().to_f64().unwrap();
        assert!(tensor.iter().all(|number| *number == apart.normal()));
        assert_eq!(together.next_u64(), apart.next_u64());
        let sample: Vec<f64> = (0..10_000).map(|_| random.normal()).collect();
        let mean = sample.iter().sum::<f64>() / 1e4;
        let variance = sample.iter().map(|x| x * x).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
