//! Attributes of operations, read leniently: a missing one is the caller's to report.

use lacewing_core::mlir::ir::{
    Attribute, BoolAttribute, DenseI32ArrayAttribute, FloatAttribute, IntegerAttribute, OperationLike, OperationRef,
    StringAttribute,
};

use super::types::{Elem, ValueType};
use crate::emulator::numeric::narrow::{self, Fp8};

/// An integer.
pub(crate) fn integer(op: &OperationRef<'_, '_>, name: &str) -> Option<i64> {
    let attribute = op.attribute(name).ok()?;
    IntegerAttribute::try_from(attribute).ok().map(|a| a.value())
}

/// An integer that fits u32.
pub(crate) fn unsigned(op: &OperationRef<'_, '_>, name: &str) -> Option<u32> {
    integer(op, name).and_then(|n| u32::try_from(n).ok())
}

/// A string.
pub(crate) fn string<'c>(op: &OperationRef<'c, '_>, name: &str) -> Option<&'c str> {
    StringAttribute::try_from(op.attribute(name).ok()?).ok().map(|a| a.value())
}

/// A flag; false when missing.
pub(crate) fn flag(op: &OperationRef<'_, '_>, name: &str) -> bool {
    let Ok(attribute) = op.attribute(name) else { return false };
    match BoolAttribute::try_from(attribute) {
        Ok(flag) => flag.value(),
        // A unit attribute is true by being there.
        Err(_) => IntegerAttribute::try_from(attribute).map_or(true, |a| a.value() != 0),
    }
}

/// The textual form of an attribute, for enumerations of other dialects.
pub(crate) fn text(op: &OperationRef<'_, '_>, name: &str) -> String {
    op.attribute(name).map(|a| a.to_string()).unwrap_or_default()
}

/// An array of i32.
pub(crate) fn i32_array(op: &OperationRef<'_, '_>, name: &str) -> Vec<i32> {
    let array = op.attribute(name).ok().and_then(|a| DenseI32ArrayAttribute::try_from(a).ok());
    array.map(|a| (0..a.len()).filter_map(|i| a.element(i).ok()).collect()).unwrap_or_default()
}

/// An array of i64, as `static_position` of vector operations.
pub(crate) fn i64_array(op: &OperationRef<'_, '_>, name: &str) -> Vec<i64> {
    // `array<i64: 1, 2>`
    let text = text(op, name);
    let inner = text.split_once(':').and_then(|(_, rest)| rest.strip_suffix('>')).unwrap_or_default();
    inner.split(',').filter_map(|n| n.trim().parse().ok()).collect()
}

/// The bits of a float in one of the formats.
fn float_bits(elem: Elem, value: f64) -> Option<u64> {
    let odd = narrow::f64_to_f32_odd(value);
    Some(match elem {
        Elem::F64 => value.to_bits(),
        Elem::F32 => u64::from((value as f32).to_bits()),
        Elem::F16 => u64::from(narrow::f32_to_f16(odd)),
        Elem::Bf16 => u64::from(narrow::f32_to_bf16(odd)),
        Elem::E4m3 => u64::from(narrow::f32_to_fp8(Fp8::E4m3, odd, false)),
        Elem::E5m2 => u64::from(narrow::f32_to_fp8(Fp8::E5m2, odd, false)),
        _ => return None,
    })
}

/// The bits of one element of a constant.
fn scalar_bits(elem: Elem, attribute: Attribute<'_>) -> Option<u64> {
    if let Ok(integer) = IntegerAttribute::try_from(attribute) {
        return Some(integer.value() as u64);
    }
    float_bits(elem, FloatAttribute::try_from(attribute).ok()?.value())
}

/// One element as `dense<..>` prints it.
fn parse_bits(elem: Elem, text: &str) -> Option<u64> {
    match text {
        "true" => return Some(1),
        "false" => return Some(0),
        _ => {}
    }
    // Infinities and NaNs are printed by their bits.
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    match elem {
        Elem::I1 | Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 | Elem::Index => {
            text.parse::<i64>().ok().map(|n| n as u64).or_else(|| text.parse().ok())
        }
        _ => float_bits(elem, text.parse().ok()?),
    }
}

/// The bits of each element of an `arith.constant`.
pub(crate) fn constant_bits(attribute: Attribute<'_>, ty: ValueType) -> Option<Vec<u64>> {
    if !ty.is_vector {
        return scalar_bits(ty.elem, attribute).map(|bits| vec![bits]);
    }
    let text = attribute.to_string();
    let inner = text.strip_prefix("dense<")?.rsplit_once("> :")?.0;
    if let Some(list) = inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let bits: Option<Vec<u64>> = list.split(',').map(|item| parse_bits(ty.elem, item.trim())).collect();
        return bits.filter(|bits| bits.len() == ty.count as usize);
    }
    parse_bits(ty.elem, inner).map(|bits| vec![bits; ty.count as usize])
}

/// Elements to the words of a value: see [`crate::emulator::lanes`].
pub(crate) fn pack_words(ty: ValueType, elements: &[u64]) -> Vec<u32> {
    let bits = ty.elem.bits();
    match bits {
        64 => elements.iter().flat_map(|&e| [e as u32, (e >> 32) as u32]).collect(),
        32 => elements.iter().map(|&e| e as u32).collect(),
        _ => {
            let mask = (1_u64 << bits) - 1;
            let word = |part: &[u64]| part.iter().rev().fold(0, |word, &e| word << bits | (e & mask) as u32);
            elements.chunks((32 / bits) as usize).map(word).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_packed_low_first() {
        let ty = |text| ValueType::parse(text).unwrap();
        assert_eq!(pack_words(ty("vector<3xi16>"), &[1, 2, 3]), [0x0002_0001, 3]);
        assert_eq!(pack_words(ty("vector<4xi8>"), &[1, 2, 3, 0xff]), [0xff03_0201]);
        assert_eq!(pack_words(ty("f64"), &[1.5_f64.to_bits()]), [0, 0x3ff8_0000]);
        assert_eq!(parse_bits(Elem::F16, "0x7C00"), Some(0x7c00));
        assert_eq!(parse_bits(Elem::F32, "-1.500000e+00"), Some(0xbfc0_0000));
        assert_eq!(parse_bits(Elem::I32, "-1"), Some(u64::MAX));
    }
}
