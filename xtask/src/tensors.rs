//! Reading float tensors from safetensors files, to compare what the demo wrote with what is exact.
//! The product has its own reader; this one shares nothing with it, so that it can judge it.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::{Context, Error};

/// A tensor of 32-bit floats.
#[derive(Debug, PartialEq)]
pub struct Tensor {
    /// Its extents.
    pub shape: Vec<usize>,
    /// Its elements, the last index fastest.
    pub elements: Vec<f32>,
}

/// The tensor of this name in a file.
pub fn read(file: &Path, name: &str) -> Result<Tensor, Error> {
    let bytes = fs::read(file).cannot(format_args!("read {}", file.display()))?;
    parse(&bytes, name).map_err(|error| Error::new(format!("{}: {error}", file.display())))
}

/// A safetensors file is the length of its header (64 bits, little-endian), a JSON header with the
/// type, shape and byte range of each tensor, and the bytes.
fn parse(bytes: &[u8], name: &str) -> Result<Tensor, Error> {
    let broken = || Error::new("not a safetensors file");
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(broken)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| broken())?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(broken)?;
    let header: Value = serde_json::from_slice(header).map_err(|_| broken())?;
    let entry = header.get(name).ok_or_else(|| Error::new(format!("no tensor `{name}`")))?;
    if entry.get("dtype").and_then(Value::as_str) != Some("F32") {
        return Err(Error::new(format!("`{name}` is not of type F32")));
    }
    let shape = numbers(entry.get("shape")).ok_or_else(broken)?;
    let range = numbers(entry.get("data_offsets")).ok_or_else(broken)?;
    let &[start, end] = range.as_slice() else {
        return Err(broken());
    };
    let (elements, rest) = data.get(start..end).ok_or_else(broken)?.as_chunks::<4>();
    let count = shape.iter().try_fold(1usize, |count, &extent| count.checked_mul(extent));
    if !rest.is_empty() || count != Some(elements.len()) {
        return Err(broken());
    }
    Ok(Tensor { shape, elements: elements.iter().map(|&word| f32::from_le_bytes(word)).collect() })
}

fn numbers(value: Option<&Value>) -> Option<Vec<usize>> {
    let number = |value: &Value| usize::try_from(value.as_u64()?).ok();
    value?.as_array()?.iter().map(number).collect()
}

/// The largest difference of two tensors, element by element. A NaN or a differing shape is an
/// error: neither may hide behind a maximum.
pub fn largest_difference(found: &Tensor, exact: &Tensor) -> Result<f32, Error> {
    if found.shape != exact.shape {
        return Err(Error::new(format!("the shape is {:?}, but should be {:?}", found.shape, exact.shape)));
    }
    let mut largest = 0.0f32;
    for (index, (&found, &exact)) in found.elements.iter().zip(&exact.elements).enumerate() {
        // Equal infinities (the LSE of a row that sees nothing) differ by zero, not by NaN.
        let difference = if found == exact { 0.0 } else { (found - exact).abs() };
        if difference.is_nan() {
            return Err(Error::new(format!("element {index} is {found}, but should be {exact}")));
        }
        largest = largest.max(difference);
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, elements: &[f32]) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(elements.iter().flat_map(|element| element.to_le_bytes()));
        bytes
    }

    fn tensor(elements: &[f32]) -> Tensor {
        Tensor { shape: vec![elements.len()], elements: elements.to_vec() }
    }

    #[test]
    fn a_tensor_is_found_by_its_name() {
        let header = r#"{"o":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},
                         "q":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
        let bytes = file(header, &[0.0, 1.5, -2.0]);
        let expected = Tensor { shape: vec![2, 1], elements: vec![1.5, -2.0] };
        assert_eq!(parse(&bytes, "o").unwrap(), expected);
        assert_eq!(parse(&bytes, "lse").unwrap_err().to_string(), "no tensor `lse`");
        assert_eq!(parse(&bytes, "q").unwrap_err().to_string(), "`q` is not of type F32");
    }

    #[test]
    fn broken_files_are_errors() {
        let header = |shape, range| format!(r#"{{"o":{{"dtype":"F32","shape":{shape},"data_offsets":{range}}}}}"#);
        let good = file(&header("[2]", "[0,8]"), &[1.0, 2.0]);
        assert!(parse(&good, "o").is_ok());
        let truncated = &good[..good.len() - 1];
        let too_long = u64::MAX.to_le_bytes();
        let shape = file(&header("[3]", "[0,8]"), &[1.0, 2.0]);
        let product = file(&header("[4294967296,4294967296]", "[0,0]"), &[]);
        let range = file(&header("[2]", "[8,0]"), &[1.0, 2.0]);
        for bytes in [truncated, &too_long, b"", b"abc", &shape, &product, &range] {
            let error = parse(bytes, "o").unwrap_err();
            assert_eq!(error.to_string(), "not a safetensors file");
        }
    }

    #[test]
    fn the_largest_difference_counts_and_nothing_hides() {
        let minus_infinity = f32::NEG_INFINITY;
        let exact = tensor(&[1.0, 2.0, minus_infinity]);
        assert_eq!(largest_difference(&tensor(&[1.5, 2.0, minus_infinity]), &exact).unwrap(), 0.5);
        let nan = largest_difference(&tensor(&[f32::NAN, 2.0, minus_infinity]), &exact);
        assert_eq!(nan.unwrap_err().to_string(), "element 0 is NaN, but should be 1");
        let finite = largest_difference(&tensor(&[1.0, 2.0, 0.0]), &exact).unwrap();
        assert_eq!(finite, f32::INFINITY);
        assert!(largest_difference(&tensor(&[1.0]), &exact).is_err());
    }
}
