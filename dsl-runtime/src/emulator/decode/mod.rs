//! From the traced module to bytecode.
//!
//! A function is read twice: once to learn how long each value lives ([`lifetime`]), once to emit
//! code. Constants, arguments and thread numbers have slots of their own, set before the kernel runs.

mod arith;
mod asynchronous;
mod atom;
mod attributes;
mod control;
mod convert;
mod deciding;
mod dimensions;
mod emit;
mod flight;
mod gpu;
mod indices;
mod lds;
mod lifetime;
mod memory;
mod slots;
mod tensor_memory;
pub(crate) mod types;
mod vector;

use lacewing_core::mlir::IrModule;
use lacewing_core::mlir::array_elements;
use lacewing_core::mlir::ir::{
    BlockLike, DictionaryAttribute, OperationLike, OperationRef, RegionLike, StringAttribute,
};
use lacewing_core::{Error, KernelMeta, Traced};

use self::emit::Decoder;
use self::flight::Flight;
use self::indices::Indices;
use self::lifetime::{Lifetimes, op_name, value_key};
use self::types::{Elem, Place};
use super::op::Op;
use super::program::{Member, Parameter, ParameterKind, Program};

/// Decodes a traced kernel.
pub(crate) fn decode(traced: &Traced) -> Result<Program, Error> {
    let function =
        find_function(&traced.module).ok_or_else(|| Error::new("the module holds no kernel (`gpu.func`)"))?;
    decode_function(&traced.meta, &function)
}

/// The module's `gpu.func`.
fn find_function(module: &IrModule) -> Option<OperationRef<'_, '_>> {
    let mut modules = operations(module.module().body());
    let gpu_module = modules.find(|op| op_name(op) == "gpu.module")?;
    let body = gpu_module.region(0).ok()?.first_block()?;
    operations(body).find(|op| op_name(op) == "gpu.func")
}

/// The operations of a block.
fn operations<'c: 'a, 'a>(block: impl BlockLike<'c, 'a>) -> impl Iterator<Item = OperationRef<'c, 'a>> {
    std::iter::successors(block.first_operation(), |op| op.next_in_block())
}

fn decode_function(meta: &KernelMeta, function: &OperationRef<'_, '_>) -> Result<Program, Error> {
    let program = Program {
        name: meta.name.clone(),
        target: meta.target,
        block: meta.attributes.block,
        cluster: meta.attributes.cluster.unwrap_or([1; 3]),
        min_blocks: meta.attributes.min_blocks,
        max_regs: meta.attributes.max_regs,
        shared_bytes: meta.shared_bytes,
        members: vec![Member { name: "shared memory".into(), low: 0, high: meta.shared_bytes }],
        parameters: Vec::new(),
        uses: Vec::new(),
        ops: Vec::new(),
        locations: Vec::new(),
        places: Vec::new(),
        op_halves: Vec::new(),
        has_fence: false,
        slot_count: 0,
        mask_count: 0,
        frame_depth: 0,
        constants: Vec::new(),
        mask_constants: Vec::new(),
        builtins: Vec::new(),
        accesses: Vec::new(),
        atomics: Vec::new(),
        copies: Vec::new(),
        matrix_loads: Vec::new(),
        matrix_stores: Vec::new(),
        products: Vec::new(),
        wave_products: Vec::new(),
        atoms: Vec::new(),
        prints: Vec::new(),
        messages: Vec::new(),
        asynchronous: Vec::new(),
        has_async: false,
        held: Vec::new(),
        watches: Vec::new(),
        dimensions: Vec::new(),
    };
    let threads = meta.attributes.threads();
    if threads == 0 || threads > u64::from(meta.target.max_block_threads()) {
        return Err(Error::new(format!("kernel `{}`: a block of {threads} threads cannot be launched", meta.name)));
    }
    let body = function.region(0).ok().and_then(|region| region.first_block());
    let body = body.ok_or_else(|| Error::new(format!("kernel `{}` has no body", meta.name)))?;
    let ops: Vec<OperationRef<'_, '_>> = operations(body).collect();
    let mut decoder = Decoder::new(program, Lifetimes::of(&ops));
    decoder.flight = Flight::of(&ops);
    decoder.indices = Indices::of(&ops);
    decoder.accumulators = Flight::accumulators(&ops);
    decoder.params.clone_from(&meta.params);
    decoder.program.has_async = decoder.program.cluster_blocks() > 1;
    decoder.locate(function);
    decoder.parameters(function)?;
    let last = decoder.block(function, body)?;
    decoder.locate(&last);
    decoder.emit(Op::End);
    let mut program = decoder.program;
    program.slot_count = decoder.slots.size();
    program.mask_count = decoder.masks.size();
    if program.verify() {
        Ok(program)
    } else {
        Err(Error::new(format!("kernel `{}`: the emulator decoded it wrongly: this is a fault in Lacewing", meta.name)))
    }
}

impl Decoder {
    /// Gives the kernel's arguments their slots.
    fn parameters(&mut self, function: &OperationRef<'_, '_>) -> Result<(), Error> {
        let block = function.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or_else(|| self.unknown(function))?;
        let attributes = function.attribute("arg_attrs").ok().and_then(array_elements).unwrap_or_default();
        let mut tensor = String::new();
        // The last tensor's address, extents and strides.
        let (mut address, mut extents, mut strides) = (None, Vec::new(), Vec::new());
        for index in 0..block.argument_count() {
            let argument = block.argument(index).map_err(|_| self.unknown(function))?;
            let ty = self.type_of(function, argument)?;
            let dictionary = attributes.get(index).and_then(|&a| DictionaryAttribute::try_from(a).ok());
            let text = |name: &str| {
                let attribute = dictionary.as_ref()?.element_by_name(name)?;
                Some(StringAttribute::try_from(attribute).ok()?.value().to_owned())
            };
            let name = match (text("lw.name"), text("lw.role")) {
                (Some(name), _) => {
                    tensor.clone_from(&name);
                    name
                }
                (None, Some(role)) => format!("{role} of {tensor}"),
                (None, None) => format!("argument {index}"),
            };
            let kind = match ty.elem {
                Elem::TensorMap => {
                    let (shape, writable) = self.map_shape(&name).ok_or_else(|| self.unknown(function))?;
                    self.maps.insert(value_key(argument), self.program.parameters.len() as u32);
                    ParameterKind::Map { shape, writable }
                }
                Elem::GlobalPointer => {
                    ParameterKind::Pointer { writable: text("lw.access").as_deref() == Some("write") }
                }
                Elem::I1 | Elem::SharedPointer => return Err(self.unknown(function)),
                elem => ParameterKind::Scalar { bytes: (elem.bits() / 8) as u8 },
            };
            if ty.is_vector {
                return Err(self.unknown(function));
            }
            let base = self.slots.take_fresh(ty.slots() * self.halves);
            self.bind(value_key(argument), Place { ty, base, stride: ty.slots() });
            let number = self.program.parameters.len() as u32;
            if matches!(kind, ParameterKind::Pointer { .. }) {
                self.origins.insert(value_key(argument), number);
            }
            self.program.parameters.push(Parameter { name, kind, slot: base });
            let part = (value_key(argument), Place { ty, base, stride: ty.slots() });
            match text("lw.role").as_deref() {
                Some("extent") => extents.push(part),
                Some("stride") => strides.push(part),
                _ => {
                    address = matches!(kind, ParameterKind::Pointer { .. }).then_some(number);
                    (extents, strides) = (Vec::new(), Vec::new());
                }
            }
            if let Some(address) = address.filter(|_| !extents.is_empty() && extents.len() == strides.len()) {
                self.note_tensor(address, &extents, &strides);
            }
        }
        Ok(())
    }

    /// Decodes one operation.
    pub(crate) fn operation(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<(), Error> {
        self.check_flight(op)?;
        let known = match name.split('.').next() {
            Some("scf") => self.control(op, name)?,
            Some("gpu") => self.gpu(op, name)?,
            _ => {
                self.arith(op, name)?
                    || self.vector(op, name)?
                    || self.memory(op, name)?
                    || self.gpu(op, name)?
                    || self.asynchronous(op, name)?
            }
        };
        if known { Ok(()) } else { Err(self.unknown(op)) }
    }
}
