//! Ops that only NVIDIA chips have, or that NVVM spells its own way. Sections are the PTX ISA's.

use super::build::{
    Builder, I1, I8, I32, I64, Op, Ty, Val, boolean, integer, operand, refuse, result, string, type_of,
};
use super::memory::{load_from, store_to};
use crate::atoms::MatrixOp;
use crate::mlir::name_of;
use crate::{Error, ScalarType, Target};
use melior::ir::Type;
use melior::ir::operation::OperationLike;

/// `cp.async`: the source size operand is 0 where invalid, which fills with zeros and reads nothing.
pub(super) fn cp_async<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let (destination, source, valid) = (operand(op, 0)?, operand(op, 1)?, operand(op, 2)?);
    let bytes = integer(op, "bytes")?;
    // Only the 16-byte form may bypass L1 (`.cg`).
    let modifier = match bytes {
        16 => "cg",
        4 | 8 => "ca",
        _ => return Err(refuse(op, format!("cp_async cannot copy {bytes} bytes"), "copy 4, 8 or 16 bytes a thread")),
    };
    let read = b.pick(valid, b.constant(I32, bytes)?, b.constant(I32, 0)?)?;
    b.op(
        "nvvm.cp.async.shared.global",
        &[destination, source, read],
        &[],
        &[("size", b.i32_attr(bytes)), ("modifier", b.attr(&format!("#nvvm<load_cache_modifier {modifier}>"))?)],
    )?;
    Ok(())
}

pub(super) fn cp_async_wait<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    b.op("nvvm.cp.async.wait.group", &[], &[], &[("n", b.i32_attr(integer(op, "groups")?))])?;
    Ok(())
}

/// The type of `count` results: an LLVM struct, but of one alone.
fn results_of<'m>(b: &Builder<'m>, count: usize, ty: Ty) -> Result<Type<'m>, Error> {
    if count == 1 { b.ty(ty) } else { Ok(b.struct_type(&vec![ty; count])) }
}

pub(super) fn ldmatrix<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let count = op.result_count();
    if ![1, 2, 4].contains(&count) {
        return Err(refuse(op, format!("ldmatrix cannot load {count} matrices"), "load 1, 2 or 4"));
    }
    let layout = if boolean(op, "trans") { "col" } else { "row" };
    let loaded = b.op(
        "nvvm.ldmatrix",
        &[operand(op, 0)?],
        &[results_of(b, count, I32)?],
        &[
            ("num", b.i32_attr(count as i64)),
            ("layout", b.attr(&format!("#nvvm.mma_layout<{layout}>"))?),
            ("shape", b.attr("#nvvm.ld_st_matrix_shape<m = 8, n = 8>")?),
            ("eltType", b.attr("#nvvm.ld_st_matrix_elt_type<b16>")?),
        ],
    )?;
    let loaded = result(loaded, 0)?;
    (0..count)
        .map(|i| {
            let word = if count == 1 { loaded } else { b.field(loaded, i, I32)? };
            b.bitcast(word, type_of(result(op, i)?)?)
        })
        .collect()
}

pub(super) fn stmatrix<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let count = op.operand_count().saturating_sub(1);
    if ![1, 2, 4].contains(&count) {
        return Err(refuse(op, format!("stmatrix cannot store {count} matrices"), "store 1, 2 or 4"));
    }
    let layout = if boolean(op, "trans") { "col" } else { "row" };
    let mut operands = vec![operand(op, 0)?];
    for i in 0..count {
        operands.push(b.bitcast(operand(op, 1 + i)?, I32)?);
    }
    b.op(
        "nvvm.stmatrix",
        &operands,
        &[],
        &[
            ("layout", b.attr(&format!("#nvvm.mma_layout<{layout}>"))?),
            ("shape", b.attr("#nvvm.ld_st_matrix_shape<m = 8, n = 8>")?),
            ("eltType", b.attr("#nvvm.ld_st_matrix_elt_type<b16>")?),
        ],
    )?;
    Ok(())
}

/// `mma.sync` of the table's rows. NVVM takes f16 pairs as vectors, f64 as it is, and all other multiplicands as words; it
/// has no 8-bit floats, whose instructions are written out.
pub(super) fn mma_sync<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let spec = super::matrix_instruction(op, MatrixOp::MmaSync, b.target())?;
    let (a_count, b_count, c_count) = (spec.a.registers(), spec.b.registers(), spec.c.registers());
    if op.operand_count() != a_count + b_count + c_count || op.result_count() != c_count {
        return Err(refuse(op, "mma_sync has the wrong number of fragments", "this is a fault in the trace"));
    }
    let mut operands = Vec::new();
    for i in 0..a_count + b_count {
        let fragment = operand(op, i)?;
        let kept = matches!(spec.a.element, ScalarType::F16 | ScalarType::F64);
        operands.push(if kept { fragment } else { b.bitcast(fragment, I32)? });
    }
    for i in 0..c_count {
        operands.push(operand(op, a_count + b_count + i)?);
    }
    let sum = type_of(result(op, 0)?)?;
    let results = results_of(b, c_count, sum)?;
    let [m, n, k] = spec.shape;
    let (left, right) = spec.kind.split_once('.').unwrap_or_else(|| {
        let one = spec.kind.split('+').next().unwrap_or_default();
        (one, one)
    });
    let product = if matches!(spec.a.element, ScalarType::F8E4M3 | ScalarType::F8E5M2) {
        let list = |from: usize, count: usize| {
            let names: Vec<_> = (from..from + count).map(|i| format!("${i}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let text = format!(
            "mma.sync.aligned.m{m}n{n}k{k}.row.col.f32.{left}.{right}.f32 {}, {}, {}, {};",
            list(0, c_count),
            list(c_count, a_count),
            list(c_count + a_count, b_count),
            list(c_count + a_count + b_count, c_count),
        );
        let constraints = [vec!["=f"; c_count], vec!["r"; a_count + b_count], vec!["f"; c_count]].concat().join(",");
        b.op(
            "llvm.inline_asm",
            &operands,
            &[results],
            &[("asm_string", b.string_attr(&text)), ("constraints", b.string_attr(&constraints))],
        )?
    } else {
        let element = |kind: &str| b.attr(&format!("#nvvm.mma_type<{kind}>"));
        let segments = format!("array<i32: {a_count}, {b_count}, {c_count}>");
        let mut attributes = vec![
            ("shape", b.attr(&format!("#nvvm.shape<m = {m}, n = {n}, k = {k}>"))?),
            ("layoutA", b.attr("#nvvm.mma_layout<row>")?),
            ("layoutB", b.attr("#nvvm.mma_layout<col>")?),
            ("multiplicandAPtxType", element(left)?),
            ("multiplicandBPtxType", element(right)?),
            ("operandSegmentSizes", b.attr(&segments)?),
        ];
        if !sum.is_float() {
            // Sums of integers wrap, as everywhere in the language.
            attributes.push(("intOverflowBehavior", b.attr("#nvvm.mma_int_overflow<wrapped>")?));
        }
        b.op("nvvm.mma.sync", &operands, &[results], &attributes)?
    };
    let product = result(product, 0)?;
    (0..c_count).map(|i| b.field(product, i, sum)).collect()
}

pub(super) fn named_barrier<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let (id, threads) = (integer(op, "id")?, integer(op, "threads")?);
    if !(1..16).contains(&id) || threads % 32 != 0 || threads == 0 {
        return Err(refuse(
            op,
            format!("there is no barrier {id} of {threads} threads"),
            "ids are 1 to 15 and threads come in whole warps of 32",
        ));
    }
    let mut barrier = b.constant(I32, id)?;
    if op.operand_count() == 1 {
        barrier = b.binary("arith.addi", barrier, operand(op, 0)?)?;
    }
    let operands = [barrier, b.constant(I32, threads)?];
    if string(op, "kind")? == "arrive" {
        // MLIR's own op is inline assembly, of which LLVM knows nothing by itself. The intrinsic is convergent: it is not copied
        // into both sides of a branch, where a warp that splits would arrive twice.
        b.intrinsic("llvm.nvvm.barrier.cta.arrive.aligned.count", &operands, None)?;
    } else {
        b.op("nvvm.barrier", &operands, &[], &[("operandSegmentSizes", b.attr("array<i32: 1, 1, 0>")?)])?;
    }
    Ok(())
}

/// `atom.relaxed.sys` of a kind that PTX has for the type (PTX ISA, atom), else `None`: then LLVM's
/// compare-and-swap loop keeps the scope.
pub(super) fn system_atomic<'m>(
    b: &Builder<'m>,
    kind: &str,
    address: Val<'m>,
    value: Val<'m>,
) -> Result<Option<Val<'m>>, Error> {
    let ty = type_of(value)?;
    let width = ty.bits();
    let register = match (ty.lanes, width) {
        (None, 32) => {
            if ty.is_float() {
                "f"
            } else {
                "r"
            }
        }
        (None, 64) => {
            if ty.is_float() {
                "d"
            } else {
                "l"
            }
        }
        _ => return Ok(None),
    };
    let (operation, suffix) = match kind {
        "add" | "sub" => ("add", "u"),
        "max" | "min" => (kind, "s"),
        "umax" => ("max", "u"),
        "umin" => ("min", "u"),
        "and" | "or" | "xor" => (kind, "b"),
        "exch" => ("exch", "b"),
        "fadd" => ("add", "f"),
        _ => return Ok(None),
    };
    if kind == "exch" && ty.is_float() {
        let bits = Ty::int(width);
        let old = system_atomic(b, kind, address, b.bitcast(value, bits)?)?;
        return old.map(|old| b.bitcast(old, ty)).transpose();
    }
    let value = if kind == "sub" { b.binary("arith.subi", b.zero(ty)?, value)? } else { value };
    let text = format!("atom.relaxed.sys.global.{operation}.{suffix}{width} $0, [$1], $2;");
    let constraints = format!("={register},l,{register},~{{memory}}");
    let attributes = [
        ("asm_string", b.string_attr(&text)),
        ("constraints", b.string_attr(&constraints)),
        ("has_side_effects", b.unit_attr()),
    ];
    b.value("llvm.inline_asm", &[address, value], ty, &attributes).map(Some)
}

/// Whether every lane of the warp surely reaches the op: it stands at the top level of the kernel.
fn is_convergent(op: Op<'_>) -> bool {
    op.parent_operation().is_some_and(|parent| name_of(parent) == "gpu.func")
}

/// `vote.sync.ballot`. Its mask must name exactly the lanes that take part: all at the top level of
/// the kernel; inside control flow the active ones, so that the others give 0 as promised.
pub(super) fn ballot<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let mask = if is_convergent(op) { b.constant(I32, -1)? } else { b.call("llvm.nvvm.activemask", &[], I32)? };
    let kind = b.attr("#nvvm<vote_sync_kind ballot>")?;
    let lanes = b.value("nvvm.vote.sync", &[mask, operand(op, 0)?], I32, &[("kind", kind)])?;
    b.cast("arith.extui", lanes, I64)
}

pub(super) fn elect<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let active = b.call("llvm.nvvm.activemask", &[], I32)?;
    if b.target().generation() >= 90 {
        // The assembler knows from it that one thread is active (PTX ISA, elect.sync).
        let mask = if is_convergent(op) { b.constant(I32, -1)? } else { active };
        return b.value("nvvm.elect.sync", &[mask], I1, &[]);
    }
    let first = b.call("llvm.cttz", &[active, b.constant(I1, 0)?], I32)?;
    let lane = b.value("nvvm.read.ptx.sreg.laneid", &[], I32, &[])?;
    b.compare(0, lane, first)
}

/// `bar.warp.sync` of the whole warp, as CUDA's `__syncwarp()`.
pub(super) fn warp_sync<'m>(b: &Builder<'m>) -> Result<(), Error> {
    b.op("nvvm.bar.warp.sync", &[b.constant(I32, -1)?], &[], &[])?;
    Ok(())
}

/// What LLVM cannot see through, it moves no memory access across.
pub(super) fn sched_barrier<'m>(b: &Builder<'m>) -> Result<(), Error> {
    let attributes = [
        ("asm_string", b.string_attr("")),
        ("constraints", b.string_attr("~{memory}")),
        ("has_side_effects", b.unit_attr()),
    ];
    b.op("llvm.inline_asm", &[], &[], &attributes)?;
    Ok(())
}

/// `griddepcontrol`; nothing on chips whose launches never overlap, of either vendor.
pub(super) fn grid_dependency<'m>(b: &Builder<'m>, op: Op<'m>, target: Target) -> Result<(), Error> {
    let kind = match string(op, "kind")?.as_str() {
        "wait" => "wait",
        "release" => "launch_dependents",
        other => return Err(refuse(op, format!("there is no grid dependency `{other}`"), "use wait or release")),
    };
    if target.is_nvidia() && target.generation() >= 90 {
        let kind = b.attr(&format!("#nvvm<grid_dep_action {kind}>"))?;
        b.op("nvvm.griddepcontrol", &[], &[], &[("kind", kind)])?;
    }
    Ok(())
}

/// One access of a bounded buffer: byte offset of the first element in 64 bits, and its limits.
struct BufferAccess<'m> {
    base: Val<'m>,
    bytes: Val<'m>,
    start: Val<'m>,
    mask: Val<'m>,
    ty: Ty,
}

impl<'m> BufferAccess<'m> {
    fn new(b: &Builder<'m>, operands: [Val<'m>; 4], ty: Ty) -> Result<Self, Error> {
        let [base, bytes, offset, mask] = operands;
        let size = b.constant(I64, i64::from(ty.element_bytes()))?;
        let start = b.binary("arith.muli", b.cast("arith.extsi", offset, I64)?, size)?;
        Ok(Self { base, bytes, start, mask, ty })
    }

    fn at(&self, b: &Builder<'m>, element: u32) -> Result<Val<'m>, Error> {
        let skip = b.constant(I64, i64::from(element * self.ty.element_bytes()))?;
        b.binary("arith.addi", self.start, skip)
    }

    /// Whether `size` bytes from `start` lie inside and the mask holds. A negative start is a huge
    /// unsigned one.
    fn inside(&self, b: &Builder<'m>, start: Val<'m>, size: u32) -> Result<Val<'m>, Error> {
        let end = b.binary("arith.addi", start, b.constant(I64, i64::from(size))?)?;
        let begins = b.compare(6, start, self.bytes)?;
        let ends = b.compare(7, end, self.bytes)?;
        b.binary("arith.andi", self.mask, b.binary("arith.andi", begins, ends)?)
    }

    fn address(&self, b: &Builder<'m>, start: Val<'m>) -> Result<Val<'m>, Error> {
        b.element_address(self.base, start, I8)
    }

    /// Whether the whole vector lies inside at an address that one wide access may use.
    fn whole(&self, b: &Builder<'m>) -> Result<Val<'m>, Error> {
        let inside = self.inside(b, self.start, self.ty.bytes())?;
        if self.ty.lanes.is_none() {
            return Ok(inside);
        }
        if !self.ty.bytes().is_power_of_two() {
            return b.constant(I1, 0);
        }
        let address = b.cast("llvm.ptrtoint", self.address(b, self.start)?, I64)?;
        let low = b.binary("arith.andi", address, b.constant(I64, i64::from(self.ty.bytes()) - 1)?)?;
        b.binary("arith.andi", inside, b.compare(0, low, b.constant(I64, 0)?)?)
    }
}

/// A vector that fits and is aligned is one load; otherwise each element is tested for itself, which
/// is what the buffer instructions of the other vendor do.
pub(super) fn buffer_load<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Val<'m>, Error> {
    let ty = type_of(result(op, 0)?)?;
    let access = BufferAccess::new(b, [operand(op, 0)?, operand(op, 1)?, operand(op, 2)?, operand(op, 3)?], ty)?;
    let whole = access.whole(b)?;
    let load = |b: &Builder<'m>, start, ty: Ty| load_from(b, access.address(b, start)?, ty, i64::from(ty.bytes()));
    let values = b.if_else(
        whole,
        &[ty],
        |b| Ok(vec![load(b, access.start, ty)?]),
        |b| {
            if ty.lanes.is_none() {
                return Ok(vec![b.zero(ty)?]);
            }
            let mut elements = Vec::new();
            for lane in 0..ty.lane_count() {
                let start = access.at(b, lane)?;
                let inside = access.inside(b, start, ty.element_bytes())?;
                elements.extend(b.if_else(
                    inside,
                    &[ty.element()],
                    |b| Ok(vec![load(b, start, ty.element())?]),
                    |b| Ok(vec![b.zero(ty.element())?]),
                )?);
            }
            Ok(vec![b.vector_of(&elements)?])
        },
    )?;
    values.first().copied().ok_or_else(|| refuse(op, "a buffer load without a value", "this is a fault"))
}

pub(super) fn buffer_store<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let value = operand(op, 0)?;
    let ty = type_of(value)?;
    let access = BufferAccess::new(b, [operand(op, 1)?, operand(op, 2)?, operand(op, 3)?, operand(op, 4)?], ty)?;
    let whole = access.whole(b)?;
    let store =
        |b: &Builder<'m>, start, value, ty: Ty| store_to(b, value, access.address(b, start)?, i64::from(ty.bytes()));
    if ty.lanes.is_none() {
        return b.if_then(whole, |b| store(b, access.start, value, ty));
    }
    b.if_else(
        whole,
        &[],
        |b| store(b, access.start, value, ty).map(|()| vec![]),
        |b| {
            for lane in 0..ty.lane_count() {
                let start = access.at(b, lane)?;
                let inside = access.inside(b, start, ty.element_bytes())?;
                b.if_then(inside, |b| store(b, start, b.extract(value, lane)?, ty.element()))?;
            }
            Ok(vec![])
        },
    )?;
    Ok(())
}
