//! Emission: values to places, element by element.

use std::collections::{HashMap, HashSet};

use lacewing_core::mlir::ir::{OperationLike, OperationRef, TypeLike, Value, ValueLike};
use lacewing_core::mlir::source_location;
use lacewing_core::{Diagnostic, Error, ParamDesc};

use super::dimensions::{Parts, Stride};
use super::flight::Flight;
use super::indices::Indices;
use super::lifetime::{Lifetimes, ValueKey, op_name, value_key};
use super::slots::Allocator;
use super::types::{Elem, Place, ValueType};
use crate::emulator::exec::elementwise::{BinaryOp, UnaryOp};
use crate::emulator::lanes::Reg;
use crate::emulator::op::Op;
use crate::emulator::program::{self, Program};

/// How an element is brought to a register for computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Canon {
    /// As it is; bits above a narrow element's size are arbitrary.
    Raw,
    /// Floats of 16 and 8 bits as binary32.
    Float,
    /// Narrow integers sign-extended to 32 bits.
    Signed,
    /// Narrow integers zero-extended to 32 bits.
    Unsigned,
}

/// Masks that always are.
pub(crate) const TRUE: u32 = 0;
pub(crate) const FALSE: u32 = 1;

/// The state of decoding one kernel.
pub(crate) struct Decoder {
    pub(crate) program: Program,
    pub(crate) halves: u32,
    pub(crate) slots: Allocator,
    pub(crate) masks: Allocator,
    pub(crate) lifetimes: Lifetimes,
    places: HashMap<ValueKey, Place>,
    /// Values whose room is theirs alone and free at the end of their life.
    linear: HashSet<ValueKey>,
    /// By the identity of the MLIR type.
    types: HashMap<usize, Option<ValueType>>,
    constants: HashMap<Vec<u32>, u32>,
    /// Known values of constants, for operands that must be one.
    pub(crate) known: HashMap<ValueKey, i64>,
    /// The member of shared memory that a pointer was made from.
    pub(crate) members: HashMap<ValueKey, u32>,
    /// The parameter that a pointer to global memory was made from.
    pub(crate) origins: HashMap<ValueKey, u32>,
    /// Parameters that are strides of tensors.
    pub(crate) strides: HashMap<ValueKey, Stride>,
    /// Numbers that are sums of indices times strides.
    pub(crate) parts: HashMap<ValueKey, Parts>,
    /// Addresses that are made of them, and of which dimensions, one bit each.
    pub(crate) marked: HashMap<ValueKey, u64>,
    /// The parameter that a tensor map is.
    pub(crate) maps: HashMap<ValueKey, u32>,
    /// The kernel's parameters in source order.
    pub(crate) params: Vec<ParamDesc>,
    /// Values that may be those of products under way.
    pub(crate) flight: Flight,
    /// Values that are sums of products, in flight or not.
    pub(crate) accumulators: Flight,
    /// Values that addresses are made of.
    pub(crate) indices: Indices,
    source_places: HashMap<program::Place, u32>,
    location: u32,
    /// Half of the wave that code is emitted for.
    half: u8,
    pub(crate) depth: u32,
}

impl Decoder {
    pub(crate) fn new(program: Program, lifetimes: Lifetimes) -> Self {
        let halves = program.halves();
        let mut masks = Allocator::default();
        masks.take_fresh(2);
        let mut this = Self {
            program,
            halves,
            slots: Allocator::default(),
            masks,
            lifetimes,
            places: HashMap::new(),
            linear: HashSet::new(),
            types: HashMap::new(),
            constants: HashMap::new(),
            known: HashMap::new(),
            members: HashMap::new(),
            origins: HashMap::new(),
            strides: HashMap::new(),
            parts: HashMap::new(),
            marked: HashMap::new(),
            maps: HashMap::new(),
            params: Vec::new(),
            flight: Flight::default(),
            accumulators: Flight::default(),
            indices: Indices::default(),
            source_places: HashMap::new(),
            location: 0,
            half: 0,
            depth: 0,
        };
        this.program.mask_constants = vec![(TRUE, true), (FALSE, false)];
        this
    }

    /// An error at an operation.
    pub(crate) fn fail(&self, op: &OperationRef<'_, '_>, message: impl Into<String>) -> Error {
        let (location, chain) = source_location(op.location());
        let mut diagnostic =
            Diagnostic::error(message).at(location).note(format!("the operation is `{}`", op_name(op)));
        diagnostic.call_chain = chain;
        diagnostic.into()
    }

    /// An error about an operation that the emulator does not know.
    pub(crate) fn unknown(&self, op: &OperationRef<'_, '_>) -> Error {
        let types: Vec<String> = op.operands().map(|v| v.r#type().to_string()).collect();
        self.fail(op, format!("the emulator does not know `{}` of ({})", op_name(op), types.join(", ")))
    }

    /// Sets the source location of the operations to come.
    pub(crate) fn locate(&mut self, op: &OperationRef<'_, '_>) {
        let (location, call_chain) = source_location(op.location());
        let place = program::Place { location, call_chain };
        let places = &mut self.program.places;
        self.location = *self.source_places.entry(place).or_insert_with_key(|place| {
            places.push(place.clone());
            places.len() as u32 - 1
        });
    }

    /// Appends an operation; returns its index.
    pub(crate) fn emit(&mut self, op: Op) -> u32 {
        self.program.ops.push(op.specific());
        self.program.locations.push(self.location);
        self.program.op_halves.push(self.half);
        self.program.ops.len() as u32 - 1
    }

    /// Notes that an operation accesses global memory through a parameter's pointer.
    pub(crate) fn note_use(&mut self, op: &OperationRef<'_, '_>, pointer: ValueKey) {
        if let Some(&parameter) = self.origins.get(&pointer) {
            let name = op_name(op);
            let is_write = name.contains("store") || name.contains("atomic");
            let found = program::Use { parameter, place: self.location, is_write };
            if !self.program.uses.contains(&found) {
                self.program.uses.push(found);
            }
        }
    }

    /// Notes that an operation copies through a tensor map.
    pub(crate) fn note_map_use(&mut self, parameter: u32, is_write: bool) {
        let found = program::Use { parameter, place: self.location, is_write };
        if !self.program.uses.contains(&found) {
            self.program.uses.push(found);
        }
    }

    /// Registers of accumulators that live across an operation: it neither gives nor takes them.
    pub(crate) fn held_across(&self, op: &OperationRef<'_, '_>) -> u32 {
        if self.accumulators.is_empty() {
            return 0;
        }
        let own: Vec<ValueKey> = op.operands().map(value_key).chain(op.results().map(value_key)).collect();
        let held = self.linear.iter().filter(|value| self.accumulators.contains(**value) && !own.contains(value));
        held.filter_map(|value| self.places.get(value)).map(|place| place.ty.slots()).sum()
    }

    /// Index of the next operation.
    pub(crate) fn here(&self) -> u32 {
        self.program.ops.len() as u32
    }

    /// The layout of a value.
    pub(crate) fn type_of<'c>(
        &mut self,
        op: &OperationRef<'_, '_>,
        value: impl ValueLike<'c>,
    ) -> Result<ValueType, Error> {
        let ty = value.r#type();
        let key = ty.to_raw().ptr as usize;
        let parsed = *self.types.entry(key).or_insert_with(|| ValueType::parse(&ty.to_string()));
        parsed.ok_or_else(|| self.fail(op, format!("the emulator does not know the type `{ty}`")))
    }

    /// Where a value lies.
    pub(crate) fn place(&self, op: &OperationRef<'_, '_>, value: Value<'_, '_>) -> Result<Place, Error> {
        let place = self.places.get(&value_key(value)).copied();
        place.ok_or_else(|| self.fail(op, "an operand has no value yet"))
    }

    /// The same, for a value that may have none.
    pub(crate) fn place_of(&self, value: ValueKey) -> Option<Place> {
        self.places.get(&value).copied()
    }

    /// Where an operand lies.
    pub(crate) fn operand(&self, op: &OperationRef<'_, '_>, index: usize) -> Result<Place, Error> {
        let value = op.operand(index).map_err(|_| self.fail(op, format!("operand {index} is missing")))?;
        self.place(op, value)
    }

    /// Says where a value lies.
    pub(crate) fn bind(&mut self, value: ValueKey, place: Place) {
        self.places.insert(value, place);
    }

    /// Room for a value, to be given back by [`Self::release`] or at the end of its life.
    pub(crate) fn allocate(&mut self, ty: ValueType) -> Place {
        if ty.elem == Elem::I1 {
            return Place { ty, base: self.masks.take(ty.count), stride: 0 };
        }
        let slots = ty.slots();
        Place { ty, base: self.slots.take(slots * self.halves), stride: slots }
    }

    /// Gives back the room of a value.
    pub(crate) fn release(&mut self, place: Place) {
        if place.is_mask() {
            self.masks.give(place.base, place.ty.count);
        } else {
            self.slots.give(place.base, place.ty.slots() * self.halves);
        }
    }

    /// Room for a result.
    pub(crate) fn result(&mut self, op: &OperationRef<'_, '_>, index: usize) -> Result<Place, Error> {
        let value = op.result(index).map_err(|_| self.fail(op, format!("result {index} is missing")))?;
        let ty = self.type_of(op, value)?;
        let place = self.allocate(ty);
        self.bind(value_key(value), place);
        self.linear.insert(value_key(value));
        Ok(place)
    }

    /// Frees the values that end after the operation of this number.
    pub(crate) fn expire(&mut self, number: u32) {
        for value in self.lifetimes.ending_at(number) {
            if self.linear.remove(&value)
                && let Some(place) = self.places.get(&value).copied()
            {
                self.release(place);
            }
        }
    }

    /// Room for a block argument that is no other value's.
    pub(crate) fn own(&mut self, value: ValueKey, ty: ValueType) -> Place {
        let place = self.allocate(ty);
        self.bind(value, place);
        self.linear.insert(value);
        place
    }

    /// A slot holding 32 bits in every lane.
    pub(crate) fn constant32(&mut self, bits: u32) -> Reg {
        self.constant_words(vec![bits], ValueType::scalar(Elem::I32)).base
    }

    /// A pair of slots holding 64 bits in every lane.
    pub(crate) fn constant64(&mut self, bits: u64) -> Reg {
        self.constant_words(vec![bits as u32, (bits >> 32) as u32], ValueType::scalar(Elem::I64)).base
    }

    /// A value whose words are the same in every lane. 64-bit elements give two words each.
    pub(crate) fn constant_words(&mut self, words: Vec<u32>, ty: ValueType) -> Place {
        let wide = ty.elem.is_wide();
        let slots = ty.slots();
        let mut key = words.clone();
        key.push(u32::from(wide));
        if let Some(&base) = self.constants.get(&key) {
            return Place { ty, base, stride: slots };
        }
        let base = self.slots.take_fresh(slots * self.halves);
        for half in 0..self.halves {
            let first = base + half * slots;
            if wide {
                for (element, pair) in words.chunks(2).enumerate() {
                    let bits = pair.iter().rev().fold(0, |bits, &word| bits << 32 | u64::from(word));
                    self.program.constants.push((first + 2 * element as u32, bits, true));
                }
            } else {
                for (slot, &word) in words.iter().enumerate() {
                    self.program.constants.push((first + slot as u32, word.into(), false));
                }
            }
        }
        self.constants.insert(key, base);
        Place { ty, base, stride: slots }
    }

    /// A register with one element of a value, and whether it is a temporary of one slot.
    pub(crate) fn fetch(&mut self, value: Place, half: u32, element: u32, canon: Canon) -> (Reg, bool) {
        let first = value.half(half);
        match value.ty.elem.bits() {
            64 => (first + 2 * element, false),
            32 => (first + element, false),
            bits => {
                let per_word = 32 / bits;
                let word = first + element / per_word;
                self.fetch_narrow(value.ty.elem, word, element % per_word, canon)
            }
        }
    }

    fn fetch_narrow(&mut self, elem: Elem, word: Reg, part: u32, canon: Canon) -> (Reg, bool) {
        let direct = match (elem, canon, part) {
            (Elem::F16, Canon::Float, 0) => Some(Op::F16LowToF32 { d: 0, a: word }),
            (Elem::F16, Canon::Float, _) => Some(Op::F16HighToF32 { d: 0, a: word }),
            (Elem::Bf16, Canon::Float, 0) => Some(Op::Unary { op: UnaryOp::Bf16LowToF32, d: 0, a: word }),
            (Elem::Bf16, Canon::Float, _) => Some(Op::Unary { op: UnaryOp::Bf16HighToF32, d: 0, a: word }),
            _ => None,
        };
        if let Some(op) = direct {
            let d = self.slots.take(1);
            self.emit(match op {
                Op::F16LowToF32 { a, .. } => Op::F16LowToF32 { d, a },
                Op::F16HighToF32 { a, .. } => Op::F16HighToF32 { d, a },
                Op::Unary { op, a, .. } => Op::Unary { op, d, a },
                other => other,
            });
            return (d, true);
        }
        let raw = if part == 0 {
            (word, false)
        } else {
            let d = self.slots.take(1);
            let shift = self.constant32(part * elem.bits());
            self.emit(Op::Binary { op: BinaryOp::ShrU32, d, a: word, b: shift });
            (d, true)
        };
        let extend = match (elem, canon) {
            (Elem::E4m3, Canon::Float) => UnaryOp::E4m3ToF32,
            (Elem::E5m2, Canon::Float) => UnaryOp::E5m2ToF32,
            (_, Canon::Signed) if elem.bits() == 8 => UnaryOp::SignExtend8,
            (_, Canon::Signed) => UnaryOp::SignExtend16,
            (_, Canon::Unsigned) if elem.bits() == 8 => UnaryOp::ZeroExtend8,
            (_, Canon::Unsigned) => UnaryOp::ZeroExtend16,
            _ => return raw,
        };
        let d = if raw.1 { raw.0 } else { self.slots.take(1) };
        self.emit(Op::Unary { op: extend, d, a: raw.0 });
        (d, true)
    }

    /// Computes `d` element by element: `f(decoder, target, operands)` emits one element's code.
    /// `out` says what `f` gives: [`Canon::Float`] is rounded to the result's type, to nearest even.
    pub(crate) fn elementwise(
        &mut self,
        d: Place,
        operands: &[(Place, Canon)],
        out: Canon,
        f: &mut dyn FnMut(&mut Self, Reg, &[Reg]),
    ) {
        let bits = d.ty.elem.bits();
        // A narrow scalar's upper bits are arbitrary: nothing to pack.
        let packs = bits < 32 && (d.ty.count > 1 || out == Canon::Float);
        for half in 0..self.halves {
            self.half = half as u8;
            let mut results = Vec::with_capacity(d.ty.count as usize);
            for element in 0..d.ty.count {
                let fetched: Vec<(Reg, bool)> =
                    operands.iter().map(|&(value, canon)| self.fetch(value, half, element, canon)).collect();
                let registers: Vec<Reg> = fetched.iter().map(|&(reg, _)| reg).collect();
                let target = match bits {
                    64 => d.half(half) + 2 * element,
                    _ if packs => self.slots.take(1),
                    _ => d.half(half) + element,
                };
                f(self, target, &registers);
                results.push(target);
                for (reg, temporary) in fetched {
                    if temporary {
                        self.slots.give(reg, 1);
                    }
                }
            }
            if packs {
                self.pack(d.ty, d.half(half), &results, out);
                results.into_iter().for_each(|reg| self.slots.give(reg, 1));
            }
        }
        self.half = 0;
    }

    /// [`Self::pack`] for one half of the wave.
    pub(crate) fn pack_half(&mut self, d: Place, half: u32, elements: &[Reg], canon: Canon) {
        self.half = half as u8;
        self.pack(d.ty, d.half(half), elements, canon);
        self.half = 0;
    }

    /// Narrow elements, one to a register, to the words of a value.
    pub(crate) fn pack(&mut self, ty: ValueType, d: Reg, elements: &[Reg], canon: Canon) {
        let per_word = (32 / ty.elem.bits()) as usize;
        for (word, parts) in elements.chunks(per_word).enumerate() {
            let d = d + word as u32;
            match (ty.elem, canon) {
                (Elem::F16, Canon::Float) => {
                    let (low, high) = (parts[0], *parts.get(1).unwrap_or(&parts[0]));
                    self.emit(Op::PackF16 { d, low, high });
                }
                (Elem::Bf16, Canon::Float) => {
                    let (a, b) = (parts[0], *parts.get(1).unwrap_or(&parts[0]));
                    self.emit(Op::Binary { op: BinaryOp::PackBf16, d, a, b });
                }
                _ if per_word == 2 => {
                    let (a, b) = (parts[0], *parts.get(1).unwrap_or(&parts[0]));
                    self.emit(Op::Binary { op: BinaryOp::Pack16, d, a, b });
                }
                _ => {
                    let part = |i: usize| *parts.get(i).unwrap_or(&parts[0]);
                    let high = self.slots.take(1);
                    self.emit(Op::Binary { op: BinaryOp::Pack8, d: high, a: part(2), b: part(3) });
                    let low = self.slots.take(1);
                    self.emit(Op::Binary { op: BinaryOp::Pack8, d: low, a: part(0), b: part(1) });
                    self.emit(Op::Binary { op: BinaryOp::Pack16, d, a: low, b: high });
                    self.slots.give(low, 1);
                    self.slots.give(high, 1);
                }
            }
        }
    }

    /// Copies a value whatever the mask.
    pub(crate) fn copy(&mut self, d: Place, a: Place) {
        if d.is_mask() {
            for element in 0..d.ty.count {
                self.emit(Op::MaskMove { d: d.mask(element), a: a.mask(element) });
            }
            return;
        }
        for half in 0..self.halves {
            self.emit(Op::Move { d: d.half(half), a: a.half(half), count: d.ty.slots() });
        }
    }

    /// Copies a value in active lanes.
    pub(crate) fn copy_masked(&mut self, d: Place, a: Place) {
        if d.is_mask() {
            for element in 0..d.ty.count {
                self.emit(Op::MaskMoveMasked { d: d.mask(element), a: a.mask(element) });
            }
            return;
        }
        for half in 0..self.halves {
            let (to, from) = (d.half(half), a.half(half));
            let slots = d.ty.slots();
            self.emit(if d.ty.elem.is_wide() {
                Op::MoveMasked64 { half: half as u8, d: to, a: from, count: slots / 2 }
            } else {
                Op::MoveMasked { half: half as u8, d: to, a: from, count: slots }
            });
        }
    }

    /// The first slot of a value whose halves are adjacent, and the copy to release, if one was needed.
    pub(crate) fn adjacent(&mut self, value: Place) -> (Reg, Option<Place>) {
        if self.halves == 1 || value.stride == value.ty.slots() {
            return (value.base, None);
        }
        let copy = self.allocate(value.ty);
        self.copy(copy, value);
        (copy.base, Some(copy))
    }
}
