//! Memory ops that both vendors lower alike, through LLVM's own memory operations.

use super::build::{
    Builder, Elem, I1, I8, I64, Op, Ty, Val, integer, operand, pointed_to, refuse, result, string, type_of,
};
use super::kernel::SHARED_SYMBOL;
use super::nvidia;
use crate::Error;

/// `llvm.load` of a value with the alignment in bytes.
pub(super) fn load_from<'m>(b: &Builder<'m>, address: Val<'m>, ty: Ty, align: i64) -> Result<Val<'m>, Error> {
    let loaded = b.value("llvm.load", &[address], ty.storage(), &[("alignment", b.i64_attr(align))])?;
    b.bitcast(loaded, ty)
}

/// `llvm.store` of a value with the alignment in bytes.
pub(super) fn store_to<'m>(b: &Builder<'m>, value: Val<'m>, address: Val<'m>, align: i64) -> Result<(), Error> {
    let value = b.bitcast(value, type_of(value)?.storage())?;
    b.op("llvm.store", &[value, address], &[], &[("alignment", b.i64_attr(align))])?;
    Ok(())
}

/// The block's shared memory is one global of the module; each member is a constant offset into it.
pub(super) fn shared<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let pointer = Ty::scalar(Elem::Pointer(3));
    let symbol = b.attr(&format!("@{SHARED_SYMBOL}"))?;
    let base = b.value("llvm.mlir.addressof", &[], pointer, &[("global_name", symbol)])?;
    let offset = integer(op, "offset")?;
    if offset == 0 {
        return Ok(base);
    }
    let offset = b.constant(I64, offset)?;
    b.element_address(base, offset, I8)
}

pub(super) fn load<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    load_from(b, operand(op, 0)?, type_of(result(op, 0)?)?, integer(op, "align")?)
}

/// A branch around the load: the address may be invalid where the mask is false.
pub(super) fn load_masked<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let (address, mask, other) = (operand(op, 0)?, operand(op, 1)?, operand(op, 2)?);
    let ty = type_of(other)?;
    let align = integer(op, "align")?;
    let values = b.if_else(mask, &[ty], |b| Ok(vec![load_from(b, address, ty, align)?]), |_| Ok(vec![other]))?;
    values.first().copied().ok_or_else(|| refuse(op, "a masked load without a value", "this is a fault"))
}

pub(super) fn store<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    store_to(b, operand(op, 0)?, operand(op, 1)?, integer(op, "align")?)
}

pub(super) fn store_masked<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let (value, address, mask) = (operand(op, 0)?, operand(op, 1)?, operand(op, 2)?);
    let align = integer(op, "align")?;
    b.if_then(mask, |b| store_to(b, value, address, align))
}

/// LLVM's name of a scope; `None` for the whole system.
///
/// NVPTX Usage, "Memory model: synchronization scopes"; AMDGPU Usage, "Memory scopes".
fn sync_scope<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Option<&'static str>, Error> {
    let nvidia = b.target().is_nvidia();
    match string(op, "scope")?.as_str() {
        "block" => Ok(Some(if nvidia { "block" } else { "workgroup" })),
        "cluster" if nvidia && b.target().generation() >= 90 => Ok(Some("cluster")),
        "cluster" => Err(refuse(op, format!("{} has no clusters", b.target()), "use device")),
        "device" => Ok(Some(if nvidia { "device" } else { "agent" })),
        "system" => Ok(None),
        other => Err(refuse(op, format!("there is no memory scope `{other}`"), "use block, cluster, device or system")),
    }
}

/// `LLVM::AtomicOrdering` of the op, and the strongest one that a failed compare may have with it.
fn ordering(op: Op<'_>) -> Result<(i64, i64), Error> {
    match string(op, "ordering")?.as_str() {
        "relaxed" => Ok((MONOTONIC, MONOTONIC)),
        "acquire" => Ok((ACQUIRE, ACQUIRE)),
        "release" => Ok((RELEASE, MONOTONIC)),
        "acq_rel" => Ok((ACQUIRE_RELEASE, ACQUIRE)),
        "seq_cst" => Ok((SEQUENTIAL, SEQUENTIAL)),
        other => Err(refuse(
            op,
            format!("there is no memory ordering `{other}`"),
            "use relaxed, acquire, release, acq_rel or seq_cst",
        )),
    }
}

const MONOTONIC: i64 = 2;
const ACQUIRE: i64 = 4;
const RELEASE: i64 = 5;
const ACQUIRE_RELEASE: i64 = 6;
const SEQUENTIAL: i64 = 7;

fn fence_of<'m>(b: &Builder<'m>, ordering: i64, scope: Option<&str>) -> Result<(), Error> {
    let mut attributes = vec![("ordering", b.i64_attr(ordering))];
    if let Some(scope) = scope {
        attributes.push(("syncscope", b.string_attr(scope)));
    }
    b.op("llvm.fence", &[], &[], &attributes)?;
    Ok(())
}

pub(super) fn fence<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    fence_of(b, ACQUIRE_RELEASE, sync_scope(b, op)?)
}

/// `llvm.getelementptr` over 8-bit floats counts bytes: LLVM has no such types.
pub(super) fn element_pointer<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Option<Val<'m>>, Error> {
    match pointed_to(op) {
        Some(ty) if ty.is_fp8() => b.element_address(operand(op, 0)?, operand(op, 1)?, ty).map(Some),
        _ => Ok(None),
    }
}

/// What LLVM's back ends may assume of an atomic on global memory, so that AMD uses its instruction
/// instead of a compare-and-swap loop: buffers are coarse-grained device memory. Not said of
/// system-scope atomics, which exist for memory that is shared with the host.
fn device_memory<'m>(
    b: &Builder<'m>,
    address: Val<'m>,
    scope: Option<&str>,
    attributes: &mut Vec<(&'static str, melior::ir::Attribute<'m>)>,
) -> Result<(), Error> {
    let global = type_of(address)?.elem == Elem::Pointer(1);
    if b.target().is_amd() && global && scope.is_some() {
        for name in ["rocdl.no_fine_grained_memory", "rocdl.no_remote_memory", "rocdl.ignore_denormal_mode"] {
            attributes.push((name, b.unit_attr()));
        }
    }
    Ok(())
}

pub(super) fn atomic_rmw<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let (address, value) = (operand(op, 0)?, operand(op, 1)?);
    let ty = type_of(value)?;
    let kind = string(op, "kind")?;
    let number = match kind.as_str() {
        "exch" => 0,
        "add" => 1,
        "sub" => 2,
        "and" => 3,
        "or" => 5,
        "xor" => 6,
        "max" => 7,
        "min" => 8,
        "umax" => 9,
        "umin" => 10,
        "fadd" => 11,
        "fmax" => 13,
        "fmin" => 14,
        _ => return Err(refuse(op, format!("there is no atomic `{kind}`"), "see the table of `lw` ops")),
    };
    if ty.is_fp8() {
        return Err(refuse(op, "no atomic works on 8-bit floats", "accumulate in F32"));
    }
    let floating = kind.starts_with('f');
    if kind != "exch" && floating != ty.is_float() {
        let spelling = ty.spelling();
        return Err(refuse(
            op,
            format!("atomic `{kind}` does not apply to {spelling}"),
            "this is a fault in the trace",
        ));
    }
    let scope = sync_scope(b, op)?;
    let (ordering, _) = ordering(op)?;
    if !b.target().is_nvidia() {
        return read_modify_write(b, [address, value], ty, number, ordering, scope);
    }
    // LLVM 22's NVPTX back end drops the ordering and the scope of `atomicrmw` (an `atom` without
    // qualifiers is relaxed at device scope): fences order it, and system scope is asked for in PTX.
    match ordering {
        SEQUENTIAL => fence_of(b, SEQUENTIAL, scope)?,
        RELEASE | ACQUIRE_RELEASE => fence_of(b, ACQUIRE_RELEASE, scope)?,
        _ => {}
    }
    let system = scope.is_none() && type_of(address)?.elem == Elem::Pointer(1);
    let native = if system { nvidia::system_atomic(b, &kind, address, value)? } else { None };
    let old = match native {
        Some(old) => old,
        None => read_modify_write(b, [address, value], ty, number, MONOTONIC, scope)?,
    };
    if matches!(ordering, ACQUIRE | ACQUIRE_RELEASE | SEQUENTIAL) {
        fence_of(b, ACQUIRE_RELEASE, scope)?;
    }
    Ok(old)
}

fn read_modify_write<'m>(
    b: &Builder<'m>,
    [address, value]: [Val<'m>; 2],
    ty: Ty,
    operation: i64,
    ordering: i64,
    scope: Option<&str>,
) -> Result<Val<'m>, Error> {
    let mut attributes = vec![
        ("bin_op", b.i64_attr(operation)),
        ("ordering", b.i64_attr(ordering)),
        ("alignment", b.i64_attr(i64::from(ty.bytes()))),
    ];
    if let Some(scope) = scope {
        attributes.push(("syncscope", b.string_attr(scope)));
    }
    device_memory(b, address, scope, &mut attributes)?;
    b.value("llvm.atomicrmw", &[address, value], ty, &attributes)
}

pub(super) fn atomic_cas<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let (address, expected, desired) = (operand(op, 0)?, operand(op, 1)?, operand(op, 2)?);
    let ty = type_of(expected)?;
    // cmpxchg compares bits, so it takes integers.
    let bits = Ty::int(ty.bits());
    let (expected, desired) = (b.bitcast(expected, bits)?, b.bitcast(desired, bits)?);
    let (success, failure) = ordering(op)?;
    let scope = sync_scope(b, op)?;
    let mut attributes = vec![
        ("success_ordering", b.i64_attr(success)),
        ("failure_ordering", b.i64_attr(failure)),
        ("alignment", b.i64_attr(i64::from(ty.bytes()))),
    ];
    if let Some(scope) = scope {
        attributes.push(("syncscope", b.string_attr(scope)));
    }
    let pair = b.struct_type(&[bits, I1]);
    let exchange = b.op("llvm.cmpxchg", &[address, expected, desired], &[pair], &attributes)?;
    let old = b.field(result(exchange, 0)?, 0, bits)?;
    b.bitcast(old, ty)
}
