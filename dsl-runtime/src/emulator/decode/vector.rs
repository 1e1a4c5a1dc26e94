//! `vector` operations.

use lacewing_core::Error;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::attributes;
use super::emit::{Canon, Decoder};
use super::lifetime::value_key;
use super::types::{Place, ValueType};
use crate::emulator::lanes::Reg;
use crate::emulator::op::Op;

impl Decoder {
    /// Decodes a `vector` operation. False when it is none.
    pub(crate) fn vector(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<bool, Error> {
        match name {
            "vector.extract" => self.extract(op)?,
            "vector.insert" => self.insert(op)?,
            "vector.from_elements" => self.gather_elements(op)?,
            "vector.broadcast" | "vector.splat" => self.broadcast(op)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The one constant position of an extract or insert.
    fn position(&self, op: &OperationRef<'_, '_>, count: u32) -> Result<u32, Error> {
        let positions = attributes::i64_array(op, "static_position");
        match positions.as_slice() {
            [position] if (0..i64::from(count)).contains(position) => Ok(*position as u32),
            _ => Err(self.fail(op, "the emulator knows one constant position in a vector")),
        }
    }

    fn extract(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let a = self.operand(op, 0)?;
        let position = self.position(op, a.ty.count)?;
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        let ty = self.type_of(op, result)?;
        if self.lifetimes.is_alias(value_key(result)) {
            let offset = position * ValueType::scalar(ty.elem).slots();
            self.bind(value_key(result), Place { ty, base: a.base + offset, stride: a.stride });
            return Ok(());
        }
        let d = self.result(op, 0)?;
        if d.is_mask() {
            self.emit(Op::MaskMove { d: d.mask(0), a: a.mask(position) });
            return Ok(());
        }
        for half in 0..self.halves {
            let (reg, temporary) = self.fetch(a, half, position, Canon::Raw);
            self.emit(Op::Move { d: d.half(half), a: reg, count: d.ty.slots() });
            if temporary {
                self.slots.give(reg, 1);
            }
        }
        Ok(())
    }

    fn insert(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (value, vector) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let position = self.position(op, vector.ty.count)?;
        let d = self.result(op, 0)?;
        self.copy(d, vector);
        if d.is_mask() {
            self.emit(Op::MaskMove { d: d.mask(position), a: value.mask(0) });
            return Ok(());
        }
        let bits = d.ty.elem.bits();
        for half in 0..self.halves {
            if bits >= 32 {
                let slots = bits / 32;
                self.emit(Op::Move { d: d.half(half) + position * slots, a: value.half(half), count: slots });
                continue;
            }
            // Repack the word that holds the element.
            let per_word = 32 / bits;
            let word = position / per_word;
            let mut parts: Vec<(Reg, bool)> = (word * per_word..d.ty.count.min((word + 1) * per_word))
                .map(|element| self.fetch(vector, half, element, Canon::Raw))
                .collect();
            let replaced = parts.get_mut((position % per_word) as usize);
            let old = replaced.map(|part| std::mem::replace(part, (value.half(half), false)));
            let registers: Vec<Reg> = parts.iter().map(|part| part.0).collect();
            let ty = ValueType { count: registers.len() as u32, ..d.ty };
            self.pack(ty, d.half(half) + word, &registers, Canon::Raw);
            for (reg, temporary) in parts.into_iter().chain(old) {
                if temporary {
                    self.slots.give(reg, 1);
                }
            }
        }
        Ok(())
    }

    fn gather_elements(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let elements: Vec<Place> = (0..op.operand_count()).map(|i| self.operand(op, i)).collect::<Result<_, _>>()?;
        let d = self.result(op, 0)?;
        if elements.len() != d.ty.count as usize {
            return Err(self.unknown(op));
        }
        self.gather(d, &elements);
        Ok(())
    }

    fn broadcast(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let element = self.operand(op, 0)?;
        if element.ty.is_vector {
            return Err(self.unknown(op));
        }
        let d = self.result(op, 0)?;
        self.gather(d, &vec![element; d.ty.count as usize]);
        Ok(())
    }

    /// A vector of scalars.
    fn gather(&mut self, d: Place, elements: &[Place]) {
        if d.is_mask() {
            for (i, element) in elements.iter().enumerate() {
                self.emit(Op::MaskMove { d: d.mask(i as u32), a: element.mask(0) });
            }
            return;
        }
        let bits = d.ty.elem.bits();
        for half in 0..self.halves {
            if bits < 32 {
                let registers: Vec<Reg> = elements.iter().map(|element| element.half(half)).collect();
                self.pack(d.ty, d.half(half), &registers, Canon::Raw);
                continue;
            }
            let slots = bits / 32;
            for (i, element) in elements.iter().enumerate() {
                self.emit(Op::Move { d: d.half(half) + i as u32 * slots, a: element.half(half), count: slots });
            }
        }
    }
}
