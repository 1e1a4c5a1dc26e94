//! Pointers, accesses and tensor-core operations.

use lacewing_core::Error;
use lacewing_core::atoms::{CopySpec, MatrixOp};
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::attributes;
use super::emit::{Decoder, TRUE};
use super::lifetime::value_key;
use super::types::{Elem, Place, ValueType};
use crate::emulator::asynchronous::op::{AsyncOp, PeerOp};
use crate::emulator::exec::elementwise::UnaryOp;
use crate::emulator::exec::matrix_store::{MatrixStoreOp, rows_of};
use crate::emulator::lanes::MaskReg;
use crate::emulator::op::{
    Access, AtomicKind, AtomicOp, AtomicType, CopyOp, MatrixLoadOp, MatrixType, MfmaOp, MmaOp, NumberFormat, Op,
};
use crate::emulator::program::Member;

impl Decoder {
    /// Decodes an operation on memory or matrices. False when it is none.
    pub(crate) fn memory(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<bool, Error> {
        match name {
            "llvm.getelementptr" => self.element_pointer(op)?,
            "lw.shared" => self.shared(op)?,
            "lw.mapa" => self.map_rank(op)?,
            "lw.load" => {
                let d = self.result(op, 0)?;
                self.load_into(op, d, TRUE)?;
            }
            "lw.load_masked" => {
                let (mask, other) = (self.operand(op, 1)?.mask(0), self.operand(op, 2)?);
                let d = self.result(op, 0)?;
                self.copy(d, other);
                self.load_into(op, d, mask)?;
            }
            "lw.store" => self.store(op, TRUE)?,
            "lw.store_masked" => {
                let mask = self.operand(op, 2)?.mask(0);
                self.store(op, mask)?;
            }
            "lw.buffer_load" | "lw.buffer_store" => self.buffer(op, name == "lw.buffer_load")?,
            "lw.atomic_rmw" | "lw.atomic_cas" => self.atomic(op, name == "lw.atomic_cas")?,
            "lw.cp_async" => self.copy_async(op)?,
            "lw.cp_async_commit" => {
                self.emit(Op::CopyCommit);
            }
            "lw.cp_async_wait" => {
                let groups = attributes::unsigned(op, "groups").ok_or_else(|| self.unknown(op))?;
                self.emit(Op::CopyWait { groups });
            }
            "lw.load_lds" => self.load_lds(op, false)?,
            "lw.buffer_load_lds" => self.load_lds(op, true)?,
            "lw.ldmatrix" => self.matrix_load(op)?,
            "lw.stmatrix" => self.matrix_store(op)?,
            "lw.mma_sync" => {
                let spec = self.instruction(op, MatrixOp::MmaSync)?;
                match (spec.kind, spec.shape) {
                    ("f16" | "bf16", _) | ("tf32", [16, 8, 8]) => self.mma(op)?,
                    _ => self.atom(op, spec)?,
                }
            }
            "lw.mfma" => {
                let spec = self.instruction(op, MatrixOp::Mfma)?;
                match (spec.shape, spec.kind) {
                    ([32, 32, 8] | [16, 16, 16], "f16" | "bf16") => self.mfma(op)?,
                    _ => self.atom(op, spec)?,
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn element_pointer(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let base_value = op.operand(0).map_err(|_| self.unknown(op))?;
        let base = self.place(op, base_value)?;
        let element = op.attribute("elem_type").map(|a| a.to_string()).unwrap_or_default();
        let element = ValueType::parse(&element).ok_or_else(|| self.unknown(op))?;
        let (wide, peer) = (base.ty.elem == Elem::GlobalPointer, base.ty.elem == Elem::ClusterPointer);
        let index = match (op.operand_count(), attributes::i32_array(op, "rawConstantIndices").as_slice()) {
            (2, [i32::MIN]) => self.operand(op, 1)?,
            (1, [constant]) => {
                let base =
                    if wide { self.constant64(i64::from(*constant) as u64) } else { self.constant32(*constant as u32) };
                let ty = ValueType::scalar(if wide { Elem::I64 } else { Elem::I32 });
                Place { ty, base, stride: ty.slots() }
            }
            _ => return Err(self.fail(op, "the emulator knows pointers with one index")),
        };
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        if let Some(&member) = self.members.get(&value_key(base_value)) {
            self.members.insert(value_key(result), member);
        }
        if let Some(&parameter) = self.origins.get(&value_key(base_value)) {
            self.origins.insert(value_key(result), parameter);
        }
        let d = self.result(op, 0)?;
        let scale = element.bytes();
        for half in 0..self.halves {
            let (d, base, index_reg) = (d.half(half), base.half(half), index.half(half));
            match (wide, index.ty.elem.bits()) {
                (true, 64) => {
                    self.emit(Op::Address64 { d, base, index: index_reg, scale });
                }
                (true, _) => {
                    let long = self.slots.take(2);
                    self.emit(Op::Unary { op: UnaryOp::SignExtend64, d: long, a: index_reg });
                    self.emit(Op::Address64 { d, base, index: long, scale });
                    self.slots.give(long, 2);
                }
                (false, 64) => {
                    // Shared addresses have 32 bits, and so does what is left of the index.
                    let short = self.slots.take(1);
                    self.emit(Op::Unary { op: UnaryOp::Truncate64, d: short, a: index_reg });
                    self.emit(Op::Address32 { d, base, index: short, scale });
                    self.slots.give(short, 1);
                }
                (false, _) => {
                    self.emit(Op::Address32 { d, base, index: index_reg, scale });
                }
            }
            if peer {
                self.emit(Op::Move { d: d + 1, a: base + 1, count: 1 });
            }
        }
        if wide {
            let index = if op.operand_count() > 1 { op.operand(1).ok().map(value_key) } else { None };
            self.mark_address(value_key(base_value), index, value_key(result), d);
        }
        Ok(())
    }

    fn shared(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (offset, bytes) = (attributes::unsigned(op, "offset"), attributes::unsigned(op, "bytes"));
        let (Some(offset), Some(bytes)) = (offset, bytes) else { return Err(self.unknown(op)) };
        let high = offset.checked_add(bytes).filter(|&high| high <= self.program.shared_bytes);
        let Some(high) = high else {
            let message = format!("a member of {bytes} bytes at {offset} lies outside the block's shared memory");
            return Err(self.fail(op, message));
        };
        let name = attributes::string(op, "name").filter(|name| !name.is_empty()).unwrap_or("shared memory").to_owned();
        let member = Member { name, low: offset, high };
        let index = self.program.members.iter().position(|other| *other == member).unwrap_or_else(|| {
            self.program.members.push(member);
            self.program.members.len() - 1
        });
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        self.members.insert(value_key(result), index as u32);
        let ty = ValueType::scalar(Elem::SharedPointer);
        let place = self.constant_words(vec![offset], ty);
        self.bind(value_key(result), Place { ty, ..place });
        Ok(())
    }

    /// An address with the rank of the block that it is in.
    fn map_rank(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (address, rank) = (self.operand(op, 0)?, self.operand(op, 1)?);
        if self.halves != 1 {
            return Err(self.unknown(op));
        }
        let value = op.operand(0).map_err(|_| self.unknown(op))?;
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        if let Some(&member) = self.members.get(&value_key(value)) {
            self.members.insert(value_key(result), member);
        }
        let d = self.result(op, 0)?;
        self.emit(Op::Move { d: d.base, a: address.base, count: 1 });
        self.emit(Op::Move { d: d.base + 1, a: rank.base, count: 1 });
        Ok(())
    }

    /// Emits an access to the shared memory of a block of the cluster.
    fn emit_peer(&mut self, op: PeerOp) {
        self.program.has_async = true;
        self.emit_async(AsyncOp::Peer(op));
    }

    /// Adds the shape of an access through an operand of `op`; returns its index.
    pub(crate) fn access(
        &mut self,
        op: &OperationRef<'_, '_>,
        pointer: usize,
        ty: ValueType,
        align: u32,
        half: u32,
    ) -> Result<u32, Error> {
        let value = op.operand(pointer).map_err(|_| self.unknown(op))?;
        self.note_use(op, value_key(value));
        let member = self.members.get(&value_key(value)).copied().unwrap_or(0);
        let (low, high) = self.program.members.get(member as usize).map_or((0, 0), |m| (m.low, m.high));
        if ty.elem == Elem::I1 || !align.is_power_of_two() {
            return Err(self.unknown(op));
        }
        let element = ty.elem.bits() / 8;
        let format = match ty.elem {
            Elem::F16 => NumberFormat::F16,
            Elem::Bf16 => NumberFormat::Bf16,
            Elem::F32 => NumberFormat::F32,
            Elem::F64 => NumberFormat::F64,
            Elem::E4m3 => NumberFormat::E4m3,
            Elem::E5m2 => NumberFormat::E5m2,
            _ => NumberFormat::Integer,
        };
        let half = half as u8;
        let access = Access { bytes: ty.bytes(), unit: ty.unit(), align, element, half, format, member, low, high };
        self.program.accesses.push(access);
        Ok(self.program.accesses.len() as u32 - 1)
    }

    fn alignment(&self, op: &OperationRef<'_, '_>, ty: ValueType) -> u32 {
        attributes::unsigned(op, "align").unwrap_or(ty.elem.bits() / 8)
    }

    fn load_into(&mut self, op: &OperationRef<'_, '_>, d: Place, mask: MaskReg) -> Result<(), Error> {
        let address = self.operand(op, 0)?;
        let align = self.alignment(op, d.ty);
        for half in 0..self.halves {
            let access = self.access(op, 0, d.ty, align, half)?;
            let (d, at) = (d.half(half), address.half(half));
            let op = match address.ty.elem {
                Elem::ClusterPointer => {
                    self.emit_peer(PeerOp::Load { d, address: at, mask, access });
                    continue;
                }
                Elem::SharedPointer => Op::LoadShared { d, address: at, mask, access },
                _ => Op::LoadGlobal { d, address: at, mask, access },
            };
            self.emit(op);
        }
        Ok(())
    }

    fn store(&mut self, op: &OperationRef<'_, '_>, mask: MaskReg) -> Result<(), Error> {
        let (value, address) = (self.operand(op, 0)?, self.operand(op, 1)?);
        let align = self.alignment(op, value.ty);
        for half in 0..self.halves {
            let access = self.access(op, 1, value.ty, align, half)?;
            let (value, at) = (value.half(half), address.half(half));
            let op = match address.ty.elem {
                Elem::ClusterPointer => {
                    self.emit_peer(PeerOp::Store { value, address: at, mask, access });
                    continue;
                }
                Elem::SharedPointer => Op::StoreShared { value, address: at, mask, access },
                _ => Op::StoreGlobal { value, address: at, mask, access },
            };
            self.emit(op);
        }
        Ok(())
    }

    /// Bounded access. On NVIDIA the whole access is in range or not; CDNA's hardware decides for each
    /// dword (CDNA3 ISA, "Buffer addressing: range checking").
    fn buffer(&mut self, op: &OperationRef<'_, '_>, is_load: bool) -> Result<(), Error> {
        let first = if is_load { 0 } else { 1 };
        let (base, bytes, offset) =
            (self.operand(op, first)?, self.operand(op, first + 1)?, self.operand(op, first + 2)?);
        let mask = self.operand(op, first + 3)?.mask(0);
        let value = if is_load { self.result(op, 0)? } else { self.operand(op, 0)? };
        if is_load {
            let zero = self.constant_words(vec![0; value.ty.slots() as usize], value.ty);
            self.copy(value, zero);
        }
        let element = value.ty.elem.bits() / 8;
        let by_word = self.program.target.is_amd() && value.ty.bytes() > 4 && value.ty.bytes() % 4 == 0;
        let pieces = if by_word && value.ty.unit() == 4 { value.ty.bytes() / 4 } else { 1 };
        let inside = self.masks.take(1);
        for half in 0..self.halves {
            let address = self.slots.take(2);
            let long = self.slots.take(2);
            self.emit(Op::Unary { op: UnaryOp::SignExtend64, d: long, a: offset.half(half) });
            self.emit(Op::Address64 { d: address, base: base.half(half), index: long, scale: element });
            self.slots.give(long, 2);
            for piece in 0..pieces {
                let access = self.access(op, first, value.ty, element, half)?;
                // The range test looks at the bytes up to the piece's end.
                let test = self.program.accesses.len() as u32;
                let mut shape = *self.program.access(access);
                if pieces > 1 {
                    shape.bytes = 4 * (piece + 1);
                }
                self.program.accesses.push(shape);
                let (offset, bytes) = (offset.half(half), bytes.half(half));
                self.emit(Op::BufferMask { d: inside, mask, offset, bytes, access: test });
                let mut at = address;
                if pieces > 1 {
                    if let Some(shape) = self.program.accesses.get_mut(access as usize) {
                        shape.bytes = 4;
                    }
                    if piece > 0 {
                        let step = self.constant64(4 * u64::from(piece));
                        at = self.slots.take(2);
                        self.emit(Op::Address64 { d: at, base: address, index: step, scale: 1 });
                    }
                }
                let value = value.half(half) + piece;
                self.emit(if is_load {
                    Op::LoadGlobal { d: value, address: at, mask: inside, access }
                } else {
                    Op::StoreGlobal { value, address: at, mask: inside, access }
                });
                if at != address {
                    self.slots.give(at, 2);
                }
            }
            self.slots.give(address, 2);
        }
        self.masks.give(inside, 1);
        Ok(())
    }

    fn atomic(&mut self, op: &OperationRef<'_, '_>, is_cas: bool) -> Result<(), Error> {
        let address = self.operand(op, 0)?;
        let (expected, value) = if is_cas {
            (self.operand(op, 1)?, self.operand(op, 2)?)
        } else {
            (self.operand(op, 1)?, self.operand(op, 1)?)
        };
        let ty = match value.ty.elem {
            Elem::F16 => AtomicType::F16,
            Elem::Bf16 => AtomicType::Bf16,
            Elem::F32 => AtomicType::F32,
            Elem::F64 => AtomicType::F64,
            Elem::I8 | Elem::I16 | Elem::I32 | Elem::I64 => AtomicType::Integer,
            _ => return Err(self.unknown(op)),
        };
        let kind = if is_cas { "cas" } else { attributes::string(op, "kind").unwrap_or_default() };
        let kind = match kind {
            "cas" => AtomicKind::CompareExchange,
            "add" => AtomicKind::Add,
            "sub" => AtomicKind::Sub,
            "max" => AtomicKind::MaxS,
            "min" => AtomicKind::MinS,
            "umax" => AtomicKind::MaxU,
            "umin" => AtomicKind::MinU,
            "and" => AtomicKind::And,
            "or" => AtomicKind::Or,
            "xor" => AtomicKind::Xor,
            "exch" => AtomicKind::Exchange,
            "fadd" => AtomicKind::AddF,
            "fmax" => AtomicKind::MaxF,
            "fmin" => AtomicKind::MinF,
            other => return Err(self.fail(op, format!("unknown atomic operation `{other}`"))),
        };
        let is_float = matches!(kind, AtomicKind::AddF | AtomicKind::MaxF | AtomicKind::MinF);
        let bitwise = matches!(kind, AtomicKind::Exchange | AtomicKind::CompareExchange);
        if value.ty.is_vector || !bitwise && is_float == (ty == AtomicType::Integer) {
            return Err(self.unknown(op));
        }
        let d = self.result(op, 0)?;
        let peer = address.ty.elem == Elem::ClusterPointer;
        let shared = peer || address.ty.elem == Elem::SharedPointer;
        let ordering = attributes::string(op, "ordering").unwrap_or_default().to_owned();
        let acquires = matches!(ordering.as_str(), "acquire" | "acq_rel" | "seq_cst");
        let releases = matches!(ordering.as_str(), "release" | "acq_rel" | "seq_cst");
        for half in 0..self.halves {
            let access = self.access(op, 0, value.ty, value.ty.bytes(), half)?;
            let [d, address, value, expected] = [d, address, value, expected].map(|p| p.half(half));
            let atomic = AtomicOp { kind, ty, shared, acquires, releases, d, address, value, expected, access };
            if peer {
                self.emit_peer(PeerOp::Atomic(atomic));
                continue;
            }
            self.program.atomics.push(atomic);
            let table = self.program.atomics.len() as u32 - 1;
            self.emit(Op::Atomic { table });
        }
        Ok(())
    }

    fn copy_async(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        if self.halves != 1 {
            return Err(self.unknown(op));
        }
        let words = match attributes::integer(op, "bytes") {
            Some(bytes @ (4 | 8 | 16)) => bytes as u32 / 4,
            _ => return Err(self.fail(op, "an asynchronous copy is of 4, 8 or 16 bytes")),
        };
        let ty = ValueType { elem: Elem::I32, count: words, is_vector: true };
        let to = self.access(op, 0, ty, 4 * words, 0)?;
        let from = self.access(op, 1, ty, 4 * words, 0)?;
        let (destination, source) = (self.operand(op, 0)?.base, self.operand(op, 1)?.base);
        let valid = self.operand(op, 2)?.mask(0);
        self.program.copies.push(CopyOp { destination, source, valid, to, from, half: 0, lds: None });
        let table = self.program.copies.len() as u32 - 1;
        self.emit(Op::CopyAsync { table });
        Ok(())
    }

    fn matrix_store(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let count = op.operand_count().saturating_sub(1);
        let spec = CopySpec::of_matrices(true, count, attributes::flag(op, "trans"));
        let Some(spec) = spec.filter(|_| self.halves == 1) else {
            return Err(self.fail(op, format!("there is no stmatrix of {count} matrices")));
        };
        let row = ValueType { elem: Elem::F16, count: 8, is_vector: true };
        let access = self.access(op, 0, row, 16, 0)?;
        let address = self.operand(op, 0)?.base;
        let mut values = Vec::new();
        let mut ty = row;
        for index in 0..count {
            let value = self.operand(op, 1 + index)?;
            ty = value.ty;
            values.push(value.base);
        }
        let value = self.access(op, 0, ty, 4, 0)?;
        let rows = rows_of(spec, &values).ok_or_else(|| self.unknown(op))?;
        self.program.matrix_stores.push(MatrixStoreOp { rows, values, address, access, value });
        let table = self.program.matrix_stores.len() as u32 - 1;
        self.emit(Op::StoreMatrix { table });
        Ok(())
    }

    fn matrix_load(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let count = op.result_count();
        if !matches!(count, 1 | 2 | 4) || self.halves != 1 {
            return Err(self.unknown(op));
        }
        let row = ValueType { elem: Elem::F16, count: 8, is_vector: true };
        let access = self.access(op, 0, row, 16, 0)?;
        let address = self.operand(op, 0)?.base;
        let mut d = [0; 4];
        for (index, d) in d.iter_mut().enumerate().take(count) {
            *d = self.result(op, index)?.base;
        }
        let transposed = attributes::flag(op, "trans");
        self.program.matrix_loads.push(MatrixLoadOp { d, count: count as u8, transposed, address, access });
        let table = self.program.matrix_loads.len() as u32 - 1;
        self.emit(Op::LoadMatrix { table });
        Ok(())
    }

    fn matrix_type(&self, op: &OperationRef<'_, '_>) -> Result<MatrixType, Error> {
        match attributes::string(op, "kind") {
            Some("f16") => Ok(MatrixType::F16),
            Some("bf16") => Ok(MatrixType::Bf16),
            Some("tf32") => Ok(MatrixType::Tf32),
            _ => Err(self.unknown(op)),
        }
    }

    fn shape(&self, op: &OperationRef<'_, '_>) -> [u32; 3] {
        ["m", "n", "k"].map(|name| attributes::unsigned(op, name).unwrap_or(0))
    }

    fn mma(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let ty = self.matrix_type(op)?;
        let (count_a, count_b) = match (self.shape(op), ty) {
            ([16, 8, 16], MatrixType::F16 | MatrixType::Bf16) | ([16, 8, 8], MatrixType::Tf32) => (4, 2),
            ([16, 8, 8], _) => (2, 1),
            (shape, _) => return Err(self.fail(op, format!("the emulator knows no mma of shape {shape:?}"))),
        };
        if op.operand_count() != count_a + count_b + 4 || op.result_count() != 4 || self.halves != 1 {
            return Err(self.unknown(op));
        }
        // Registers that a shape lacks repeat the first, unread.
        let mut mma = MmaOp {
            ty,
            k: attributes::unsigned(op, "k").unwrap_or(0) as u8,
            a: [0; 4],
            b: [0; 2],
            c: [0; 4],
            d: [0; 4],
        };
        for (i, a) in mma.a.iter_mut().enumerate() {
            *a = self.operand(op, if i < count_a { i } else { 0 })?.base;
        }
        for (i, b) in mma.b.iter_mut().enumerate() {
            *b = self.operand(op, count_a + if i < count_b { i } else { 0 })?.base;
        }
        for (i, c) in mma.c.iter_mut().enumerate() {
            *c = self.operand(op, count_a + count_b + i)?.base;
        }
        for (i, d) in mma.d.iter_mut().enumerate() {
            *d = self.result(op, i)?.base;
        }
        self.program.products.push(mma);
        let table = self.program.products.len() as u32 - 1;
        self.emit(Op::Mma { table });
        Ok(())
    }

    fn mfma(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let ty = self.matrix_type(op)?;
        let (size, registers) = match self.shape(op) {
            [32, 32, 8] => (32, 16),
            [16, 16, 16] => (16, 4),
            shape => return Err(self.fail(op, format!("the emulator knows no mfma of shape {shape:?}"))),
        };
        if op.operand_count() != 2 + registers
            || op.result_count() != registers
            || self.halves != 2
            || ty == MatrixType::Tf32
        {
            return Err(self.unknown(op));
        }
        let mut copies = Vec::new();
        let mut inputs = Vec::new();
        for index in 0..2 + registers {
            let place = self.operand(op, index)?;
            let (base, copy) = self.adjacent(place);
            inputs.push(base);
            copies.extend(copy);
        }
        let (a, b) = (inputs[0], inputs[1]);
        // Registers that a shape lacks repeat the first, unread.
        let first = inputs[2];
        let c = std::array::from_fn(|i| inputs.get(2 + i).copied().unwrap_or(first));
        let mut d = [0; 16];
        for (index, d) in d.iter_mut().enumerate().take(registers) {
            *d = self.result(op, index)?.base;
        }
        self.program.wave_products.push(MfmaOp { ty, size, a, b, c, d });
        let table = self.program.wave_products.len() as u32 - 1;
        self.emit(Op::Mfma { table });
        for copy in copies {
            self.release(copy);
        }
        Ok(())
    }
}
