//! Which index along which dimension of a tensor an address is made of.
//!
//! An address is its tensor's first plus the sum of each index times a stride. Where a product has a stride of a tensor in it,
//! the other factor is an index, and is compared with the extent; where the sum of such products is added to the tensor's
//! address, that is marked for the lanes whose index is outside. An address of anything else (a tile's, one some elements
//! further on) is what it is.

use lacewing_core::Error;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::emit::Decoder;
use super::lifetime::{ValueKey, value_key};
use super::types::{Elem, Place};
use crate::emulator::op::Op;
use crate::emulator::program::{Dimension, LARGEST_DIMENSION};

/// A parameter that is a stride of a tensor.
#[derive(Clone, Copy)]
pub(crate) struct Stride {
    /// The parameter of the tensor's address.
    tensor: u32,
    dim: u32,
    rank: u32,
    /// Where the extent lies.
    extent: Place,
}

/// Indices that are part of a number, by the entries of [`crate::emulator::program::Program::dimensions`]; all of one tensor,
/// each of another dimension.
#[derive(Clone, Default)]
pub(crate) struct Parts {
    tensor: u32,
    dims: u64,
    entries: Vec<u32>,
}

impl Decoder {
    /// Notes the strides of a tensor: `rank` extents and as many strides come behind its address.
    pub(crate) fn note_tensor(&mut self, tensor: u32, extents: &[(ValueKey, Place)], strides: &[(ValueKey, Place)]) {
        let rank = extents.len() as u32;
        for (dim, ((_, extent), (stride, _))) in (0..).zip(extents.iter().zip(strides)) {
            self.strides.insert(*stride, Stride { tensor, dim, rank, extent: *extent });
        }
    }

    /// Looks at a product or a sum of 64 bits that may be a part of an address.
    pub(crate) fn note_part(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<(), Error> {
        if self.strides.is_empty() || !matches!(name, "arith.muli" | "arith.addi") {
            return Ok(());
        }
        let (Ok(left), Ok(right), Ok(result)) = (op.operand(0), op.operand(1), op.result(0)) else { return Ok(()) };
        let (left, right, result) = (value_key(left), value_key(right), value_key(result));
        if name == "arith.addi" {
            let (Some(a), Some(b)) = (self.part(left), self.part(right)) else { return Ok(()) };
            if a.tensor == b.tensor && a.dims & b.dims == 0 {
                let entries = [a.entries, b.entries].concat();
                self.parts.insert(result, Parts { tensor: a.tensor, dims: a.dims | b.dims, entries });
            }
            return Ok(());
        }
        let (number, stride) = match (self.strides.get(&right), self.strides.get(&left)) {
            (Some(stride), None) => (0, *stride),
            (None, Some(stride)) => (1, *stride),
            _ => return Ok(()),
        };
        let index = self.operand(op, number)?;
        let mask = self.masks.take_fresh(1);
        let halves = |place: Place| [place.half(0), place.half(self.halves - 1)];
        let entry = Dimension {
            parameter: stride.tensor,
            dim: stride.dim,
            rank: stride.rank,
            mask,
            index: halves(index),
            extent: halves(stride.extent),
        };
        let table = self.program.dimensions.len() as u32;
        if index.ty.elem != Elem::I64 || stride.extent.ty.elem != Elem::I32 || table > LARGEST_DIMENSION {
            return Ok(());
        }
        self.program.dimensions.push(entry);
        for half in 0..self.halves {
            self.emit(Op::Beyond { table, half: half as u8 });
        }
        self.parts.insert(result, Parts { tensor: stride.tensor, dims: 1 << stride.dim, entries: vec![table] });
        Ok(())
    }

    /// What is known of a number: a stride by itself is the index 1, which is not looked at.
    fn part(&self, value: ValueKey) -> Option<Parts> {
        let stride = self.strides.get(&value);
        let alone = stride.map(|stride| Parts { tensor: stride.tensor, dims: 1 << stride.dim, entries: Vec::new() });
        self.parts.get(&value).cloned().or(alone)
    }

    /// Marks an address that has been made of a base and an index.
    pub(crate) fn mark_address(&mut self, base: ValueKey, index: Option<ValueKey>, result: ValueKey, d: Place) {
        let Some(&tensor) = self.origins.get(&base) else { return };
        let before = self.marked.get(&base).copied();
        let parts = index.and_then(|index| self.part(index)).filter(|parts| parts.tensor == tensor);
        let known = before.or_else(|| self.is_parameter(base, tensor).then_some(0));
        match (parts, known) {
            (Some(parts), Some(dims)) if dims & parts.dims == 0 => {
                for &table in &parts.entries {
                    for half in 0..self.halves {
                        self.emit(Op::MarkBeyond { d: d.half(half), table, half: half as u8 });
                    }
                }
                self.marked.insert(result, dims | parts.dims);
            }
            _ if before.is_some() => {
                for half in 0..self.halves {
                    self.emit(Op::Unmark { d: d.half(half) });
                }
            }
            _ => {}
        }
    }

    /// Whether a pointer is the parameter itself.
    fn is_parameter(&self, pointer: ValueKey, parameter: u32) -> bool {
        let slot = self.program.parameters.get(parameter as usize).map(|parameter| parameter.slot);
        self.place_of(pointer).is_some_and(|place| Some(place.base) == slot)
    }
}
