//! MLIR types as the emulator lays them out in slots.

use crate::emulator::lanes::{MaskReg, Reg};

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Elem {
    I1,
    I8,
    I16,
    I32,
    I64,
    /// Thread numbers on their way to an `index_cast`: 32 bits here.
    Index,
    F16,
    Bf16,
    F32,
    F64,
    E4m3,
    E5m2,
    GlobalPointer,
    SharedPointer,
    /// Into the shared memory of a block of the cluster: the address there, and the block's rank.
    ClusterPointer,
    /// A parameter that bulk copies name; it has no value of its own.
    TensorMap,
}

impl Elem {
    /// Size in registers and in memory, in bits.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Self::I1 => 1,
            Self::I8 | Self::E4m3 | Self::E5m2 => 8,
            Self::I16 | Self::F16 | Self::Bf16 => 16,
            Self::I32 | Self::Index | Self::F32 | Self::SharedPointer | Self::ClusterPointer => 32,
            Self::I64 | Self::F64 | Self::GlobalPointer | Self::TensorMap => 64,
        }
    }

    /// Whether it takes a pair of slots.
    pub(crate) fn is_wide(self) -> bool {
        self.bits() == 64
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "i1" => Self::I1,
            "i8" => Self::I8,
            "i16" => Self::I16,
            "i32" => Self::I32,
            "i64" => Self::I64,
            "index" => Self::Index,
            "f16" => Self::F16,
            "bf16" => Self::Bf16,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "f8E4M3FN" => Self::E4m3,
            "f8E5M2" => Self::E5m2,
            "!llvm.ptr" => Self::TensorMap,
            "!llvm.ptr<1>" => Self::GlobalPointer,
            "!llvm.ptr<3>" => Self::SharedPointer,
            "!llvm.ptr<7>" => Self::ClusterPointer,
            _ => return None,
        })
    }
}

/// A scalar, or a vector of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueType {
    pub(crate) elem: Elem,
    /// Elements of a vector, words of a pointer into a cluster's memory.
    pub(crate) count: u32,
    pub(crate) is_vector: bool,
}

/// Longest vector: an operand of the matrix instructions of CDNA4.
const MAX_COUNT: u32 = 32;

impl ValueType {
    pub(crate) fn scalar(elem: Elem) -> Self {
        let count = if elem == Elem::ClusterPointer { 2 } else { 1 };
        Self { elem, count, is_vector: false }
    }

    /// Reads MLIR's textual form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix("vector<").and_then(|rest| rest.strip_suffix('>')) {
            let (count, elem) = inner.split_once('x')?;
            let count: u32 = count.parse().ok()?;
            let known = (1..=MAX_COUNT).contains(&count);
            return Elem::parse(elem).filter(|_| known).map(|elem| Self { elem, count, is_vector: true });
        }
        Elem::parse(text).map(Self::scalar)
    }

    /// Slots of one half of the wave; conditions have none.
    pub(crate) fn slots(self) -> u32 {
        match self.elem.bits() {
            1 => 0,
            64 => 2 * self.count,
            bits => (self.count * bits).div_ceil(32),
        }
    }

    /// Size in memory, in bytes.
    pub(crate) fn bytes(self) -> u32 {
        (self.count * self.elem.bits()).div_ceil(8)
    }

    /// Bytes that stay together in a register lane, as [`crate::emulator::op::Access::unit`].
    pub(crate) fn unit(self) -> u32 {
        match self.elem.bits() {
            64 => 8,
            bits if self.count * bits < 32 => self.bytes().next_power_of_two().min(4),
            _ => 4,
        }
    }
}

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) ty: ValueType,
    /// First slot of the low half, or the first mask.
    pub(crate) base: u32,
    /// Distance to the high half's first slot.
    pub(crate) stride: u32,
}

impl Place {
    /// First slot of a half.
    pub(crate) fn half(&self, half: u32) -> Reg {
        self.base + half * self.stride
    }

    /// The mask of one element of a condition.
    pub(crate) fn mask(&self, element: u32) -> MaskReg {
        self.base + element
    }

    pub(crate) fn is_mask(&self) -> bool {
        self.ty.elem == Elem::I1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let slots = |text: &str| ValueType::parse(text).map(|ty| (ty.slots(), ty.bytes(), ty.unit()));
        assert_eq!(slots("f16"), Some((1, 2, 2)));
        assert_eq!(slots("vector<4xf16>"), Some((2, 8, 4)));
        assert_eq!(slots("vector<16xf8E4M3FN>"), Some((4, 16, 4)));
        assert_eq!(slots("vector<2xf64>"), Some((4, 16, 8)));
        assert_eq!(slots("!llvm.ptr<1>"), Some((2, 8, 8)));
        assert_eq!(slots("!llvm.ptr<7>"), Some((2, 8, 4)));
        assert_eq!(slots("vector<33xf32>"), None);
        assert_eq!(slots("vector<2x2xf32>"), None);
        assert_eq!(slots("memref<4xf32>"), None);
    }
}
