//! Ops that only AMD chips have, or that ROCDL spells its own way.

use super::build::{
    Builder, Elem, F16, F32, I1, I16, I32, I64, Op, Ty, Val, integer, operand, refuse, result, type_of,
};
use crate::Error;
use crate::atoms::{CopySpec, MatrixOp};
use melior::ir::operation::OperationLike;

/// `rocdl.mfma` of the table's rows: accumulators travel as one vector; the last three operands (cbsz, abid, blgp:
/// broadcast controls) are off.
pub(super) fn mfma<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let spec = super::matrix_instruction(op, MatrixOp::Mfma, b.target())?;
    let [m, n, k] = spec.shape;
    let count = spec.c.registers();
    if op.operand_count() != 2 + count || op.result_count() != count {
        return Err(refuse(op, "mfma has the wrong number of accumulators", "this is a fault in the trace"));
    }
    let bytes = spec.a.values() as u32;
    // What LLVM calls the instruction, and the type in which it takes the multiplicands' bits.
    let float = |kind: &str| if kind == "e4m3" { "fp8" } else { "bf8" };
    let (name, multiplicand) = match (spec.kind, spec.kind.split_once('.')) {
        (_, Some(_)) if bytes == 32 => (format!("mfma.scale.f32.{m}x{n}x{k}.f8f6f4"), I32.vector(8)),
        (_, Some((left, right))) => (format!("mfma.f32.{m}x{n}x{k}.{}.{}", float(left), float(right)), I64),
        // Of several blocks, as before CDNA3: without the dot.
        ("s8", _) if bytes == 4 => (format!("mfma.i32.{m}x{n}x{k}i8"), I32),
        ("s8", _) => (format!("mfma.i32.{m}x{n}x{k}.i8"), if bytes == 8 { I64 } else { I32.vector(4) }),
        ("xf32", _) => (format!("mfma.f32.{m}x{n}x{k}.xf32"), F32.vector(2)),
        ("f32", _) => (format!("mfma.f32.{m}x{n}x{k}f32"), F32),
        ("f64", _) => (format!("mfma.f64.{m}x{n}x{k}f64"), Ty::scalar(Elem::F64)),
        ("f16", _) if bytes == 8 => (format!("mfma.f32.{m}x{n}x{k}.f16"), F16.vector(8)),
        ("bf16", _) if bytes == 8 => (format!("mfma.f32.{m}x{n}x{k}.bf16"), Ty::scalar(Elem::Bf16).vector(8)),
        ("f16", _) => (format!("mfma.f32.{m}x{n}x{k}f16"), F16.vector(4)),
        // The older bf16 forms take the bits as integers.
        _ => (format!("mfma.f32.{m}x{n}x{k}bf16.1k"), I16.vector(4)),
    };
    let accumulators = (0..count).map(|i| operand(op, 2 + i)).collect::<Result<Vec<_>, _>>()?;
    let sum = type_of(result(op, 0)?)?;
    let mut operands = vec![
        b.bitcast(operand(op, 0)?, multiplicand)?,
        b.bitcast(operand(op, 1)?, multiplicand)?,
        if let [one] = accumulators[..] { one } else { b.vector_of(&accumulators)? },
    ];
    let off = b.constant(I32, 0)?;
    match spec.kind.split_once('.').filter(|_| bytes == 32) {
        // Formats of A and B (0 is e4m3, 1 is e5m2), then byte and scale of each; scales of constant 0 stand for the
        // form without scales.
        Some((left, right)) => {
            let format = |kind: &str| b.constant(I32, i64::from(kind != "e4m3"));
            operands.extend([format(left)?, format(right)?, off, off, off, off]);
        }
        None => operands.extend([off; 3]),
    }
    let sums = if count == 1 { sum } else { sum.vector(count as u32) };
    let product = b.value(&format!("rocdl.{name}"), &operands, sums, &[])?;
    if count == 1 {
        return Ok(vec![product]);
    }
    (0..count).map(|i| b.extract(product, i as u32)).collect()
}

pub(super) fn uniform<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    b.value("rocdl.readfirstlane", &[operand(op, 0)?], I32, &[])
}

pub(super) fn ballot<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    b.cast("rocdl.ballot", operand(op, 0)?, I64)
}

/// The lane below which no lane is active: `mbcnt` counts the active lanes before this one.
pub(super) fn elect<'m>(b: &Builder<'m>) -> Result<Val<'m>, Error> {
    let active = b.cast("rocdl.ballot", b.constant(I1, 1)?, I64)?;
    let low = b.cast("arith.trunci", active, I32)?;
    let high = b.binary("arith.shrui", active, b.constant(I64, 32)?)?;
    let high = b.cast("arith.trunci", high, I32)?;
    let zero = b.constant(I32, 0)?;
    let before = b.value("rocdl.mbcnt.lo", &[low, zero], I32, &[])?;
    let before = b.value("rocdl.mbcnt.hi", &[high, before], I32, &[])?;
    b.compare(0, before, zero)
}

fn lane<'m>(b: &Builder<'m>) -> Result<Val<'m>, Error> {
    let (zero, all) = (b.constant(I32, 0)?, b.constant(I32, -1)?);
    let low = b.value("rocdl.mbcnt.lo", &[all, zero], I32, &[])?;
    b.value("rocdl.mbcnt.hi", &[all, low], I32, &[])
}

/// `gpu.shuffle up|down`: a lane whose source would lie outside the wave keeps its own value. (The
/// standard conversion lets `up` wrap around.) Other modes stay.
pub(super) fn shuffle<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Option<Vec<Val<'m>>>, Error> {
    let mode = op.attribute("mode").map(|a| a.to_string()).unwrap_or_default();
    let up = mode.contains("up");
    if !up && !mode.contains("down") {
        return Ok(None);
    }
    let (value, distance) = (operand(op, 0)?, operand(op, 1)?);
    let ty = type_of(value)?;
    let lane = lane(b)?;
    let source = b.binary(if up { "arith.subi" } else { "arith.addi" }, lane, distance)?;
    // One unsigned comparison: below 0 is above 63.
    let inside = b.compare(6, source, b.constant(I32, i64::from(b.target().warp_size()))?)?;
    let source = b.pick(inside, source, lane)?;
    let byte = b.binary("arith.shli", source, b.constant(I32, 2)?)?;
    let moved = b.value("rocdl.ds_bpermute", &[byte, b.bitcast(value, I32)?], I32, &[])?;
    Ok(Some(vec![b.bitcast(moved, ty)?, inside]))
}

/// `gpu.grid_dim`: the first three words of the hidden kernel arguments (AMDGPU Usage, "Code object
/// V5 kernel argument metadata": `hidden_block_count_x`, `_y`, `_z`). The standard conversion would
/// call the device library.
pub(super) fn grid_dim<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let dimension = op.attribute("dimension").map(|a| a.to_string()).unwrap_or_default();
    let index = match dimension.as_str() {
        "#gpu<dim x>" => 0,
        "#gpu<dim y>" => 1,
        _ => 2,
    };
    let hidden = b.call("llvm.amdgcn.implicitarg.ptr", &[], Ty::scalar(Elem::Pointer(4)))?;
    let address = b.element_address(hidden, b.constant(I64, index)?, I32)?;
    let attributes = [("alignment", b.i64_attr(4)), ("invariant", b.unit_attr())];
    let count = b.value("llvm.load", &[address], I32, &attributes)?;
    b.cast("arith.index_cast", count, Ty::scalar(Elem::Index))
}

/// Lanes run in step, so only the compiler must be kept from moving memory accesses across.
pub(super) fn warp_sync<'m>(b: &Builder<'m>) -> Result<(), Error> {
    let fence = |ordering| {
        b.op("llvm.fence", &[], &[], &[("ordering", b.i64_attr(ordering)), ("syncscope", b.string_attr("wavefront"))])
    };
    fence(5)?;
    b.intrinsic("llvm.amdgcn.wave.barrier", &[], None)?;
    fence(4)?;
    Ok(())
}

/// A trap stops the wave; there is no channel to the host for the message without a device library.
pub(super) fn assert<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let failed = b.binary("arith.xori", operand(op, 0)?, b.constant(I1, 1)?)?;
    b.if_then(failed, |b| b.intrinsic("llvm.trap", &[], None).map(|_| ()))
}

/// Largest `num_records` used, and an offset beyond it. A multiple of 16, so that no wide access
/// that starts there wraps around.
const BUFFER_LIMIT: i64 = 0xffff_fff0;
/// Raw access: untyped 32-bit data, no swizzle (CDNA3 ISA, buffer resource descriptor, word 3).
const BUFFER_FLAGS: i64 = 0x2_7000;

/// One access of a bounded buffer through a resource descriptor.
struct BufferAccess<'m> {
    resource: Val<'m>,
    /// Byte offset of the first element in 32 bits; meaningful where `valid`.
    start: Val<'m>,
    valid: Val<'m>,
}

impl<'m> BufferAccess<'m> {
    fn new(b: &Builder<'m>, operands: [Val<'m>; 4], ty: Ty) -> Result<Self, Error> {
        let [base, bytes, offset, mask] = operands;
        // The descriptor holds 32 bits of size: clamp, so that 4 GiB is not taken for 0.
        let records = b.binary("arith.minui", bytes, b.constant(I64, BUFFER_LIMIT)?)?;
        let resource = b.value(
            "rocdl.make.buffer.rsrc",
            &[base, b.constant(I16, 0)?, records, b.constant(I32, BUFFER_FLAGS)?],
            Ty::scalar(Elem::Pointer(8)),
            &[],
        )?;
        // A negative offset, or one whose bytes do not fit 32 bits, must not wrap into the buffer.
        let size = i64::from(ty.element_bytes());
        let limit = (BUFFER_LIMIT / size - i64::from(ty.lane_count())).min(i64::from(i32::MAX));
        let representable = b.compare(6, offset, b.constant(I32, limit)?)?;
        let valid = b.binary("arith.andi", mask, representable)?;
        let start = b.binary("arith.muli", offset, b.constant(I32, size)?)?;
        Ok(Self { resource, start, valid })
    }

    /// The operands after the data: descriptor, byte offset, scalar offset, cache policy.
    fn operands(&self, b: &Builder<'m>, skip: u32) -> Result<[Val<'m>; 4], Error> {
        let offset = b.binary("arith.addi", self.start, b.constant(I32, i64::from(skip))?)?;
        let offset = b.pick(self.valid, offset, b.constant(I32, BUFFER_LIMIT - (1 << 32))?)?;
        let zero = b.constant(I32, 0)?;
        Ok([self.resource, offset, zero, zero])
    }
}

/// The accesses that a value of so many bytes is split into.
fn chunks(ty: Ty) -> Vec<(u32, u32)> {
    let (mut at, mut parts) = (0, Vec::new());
    while at < ty.bytes() {
        let rest = ty.bytes() - at;
        let size = [16, 8, 4, 2].into_iter().find(|size| *size <= rest).unwrap_or(1);
        parts.push((at, size));
        at += size;
    }
    parts
}

/// The integer type that a buffer instruction of so many bytes moves.
fn chunk_type(size: u32) -> Ty {
    match size {
        1 | 2 | 4 => Ty::int(size * 8),
        _ => I32.vector(size / 4),
    }
}

/// The part of `ty` that a chunk holds.
fn part_type(ty: Ty, size: u32) -> Ty {
    let lanes = size / ty.element_bytes();
    if ty.lanes.is_none() { ty.storage() } else { ty.storage().element().vector(lanes) }
}

pub(super) fn buffer_load<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let ty = type_of(result(op, 0)?)?;
    let access = BufferAccess::new(b, [operand(op, 0)?, operand(op, 1)?, operand(op, 2)?, operand(op, 3)?], ty)?;
    let mut loaded = Vec::new();
    for (at, size) in chunks(ty) {
        let operands = access.operands(b, at)?;
        let data = b.value("rocdl.raw.ptr.buffer.load", &operands, chunk_type(size), &[])?;
        loaded.push(b.bitcast(data, part_type(ty, size))?);
    }
    if let [whole] = loaded[..] {
        return b.bitcast(whole, ty);
    }
    let mut elements = Vec::new();
    for part in loaded {
        for lane in 0..type_of(part)?.lane_count() {
            elements.push(b.extract(part, lane)?);
        }
    }
    b.bitcast(b.vector_of(&elements)?, ty)
}

pub(super) fn buffer_store<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let value = operand(op, 0)?;
    let ty = type_of(value)?;
    let access = BufferAccess::new(b, [operand(op, 1)?, operand(op, 2)?, operand(op, 3)?, operand(op, 4)?], ty)?;
    let value = b.bitcast(value, ty.storage())?;
    let parts = chunks(ty);
    let single = parts.len() == 1;
    for (at, size) in parts {
        let part = if single {
            value
        } else {
            let first = at / ty.element_bytes();
            let lanes = size / ty.element_bytes();
            let elements = (first..first + lanes).map(|lane| b.extract(value, lane)).collect::<Result<Vec<_>, _>>()?;
            b.vector_of(&elements)?
        };
        let data = b.bitcast(part, chunk_type(size))?;
        let [resource, offset, scalar_offset, policy] = access.operands(b, at)?;
        b.op("rocdl.raw.ptr.buffer.store", &[data, resource, offset, scalar_offset, policy], &[], &[])?;
    }
    Ok(())
}

/// The copy straight to LDS that moves the op's bytes in each lane: an atom of the table that the chip has.
fn lds_copy(b: &Builder<'_>, op: Op<'_>) -> Result<i64, Error> {
    let bytes = integer(op, "bytes")?;
    let spec = CopySpec::to_lds(bytes.unsigned_abs() as usize, false);
    match spec.map(|spec| spec.legal_on(b.target())) {
        Some(Ok(())) => Ok(bytes),
        Some(Err(reason)) => Err(refuse(op, reason, "gfx942 copies 4 bytes a lane, gfx950 also 12 and 16")),
        None => Err(refuse(op, format!("no lane copies {bytes} bytes to LDS"), "copy 4, 12 or 16")),
    }
}

pub(super) fn load_lds<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let bytes = lds_copy(b, op)?;
    let attributes = [("size", b.i32_attr(bytes)), ("offset", b.i32_attr(0)), ("aux", b.i32_attr(0))];
    b.op("rocdl.global.load.lds", &[operand(op, 1)?, operand(op, 0)?], &[], &attributes)?;
    Ok(())
}

/// Lanes that are masked or out of range name an offset beyond the descriptor's: the hardware writes zeros for them.
pub(super) fn buffer_load_lds<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let (bytes, unit) = (lds_copy(b, op)?, integer(op, "unit")?);
    if !matches!(unit, 1 | 2 | 4 | 8) || bytes % unit != 0 {
        return Err(refuse(op, format!("{bytes} bytes of elements of {unit}"), "a copy is of whole elements"));
    }
    let ty = Ty::int(8 * unit as u32).vector((bytes / unit) as u32);
    let access = BufferAccess::new(b, [operand(op, 1)?, operand(op, 2)?, operand(op, 3)?, operand(op, 4)?], ty)?;
    let [resource, offset, zero, _] = access.operands(b, 0)?;
    let size = b.constant(I32, bytes)?;
    b.op("rocdl.raw.ptr.buffer.load.lds", &[resource, operand(op, 0)?, size, offset, zero, zero, zero], &[], &[])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_split_into_accesses_of_whole_elements() {
        let parts = |text: &str| chunks(Ty::parse(text).unwrap());
        assert_eq!(parts("f32"), [(0, 4)]);
        assert_eq!(parts("vector<8xbf16>"), [(0, 16)]);
        assert_eq!(parts("vector<3xf16>"), [(0, 4), (4, 2)]);
        assert_eq!(parts("vector<8xf32>"), [(0, 16), (16, 16)]);
        assert_eq!(parts("vector<3xf64>"), [(0, 16), (16, 8)]);
    }
}
