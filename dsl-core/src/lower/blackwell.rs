//! Tensor memory and the products that accumulate in it: the ops of [`crate::dialect`]'s rows for Blackwell, as
//! NVVM's. Sections are the PTX ISA's.
//!
//! An address in tensor memory has its lane in bits 16 and up and its column below; it is an `i32` until an
//! instruction takes it as a pointer.

use melior::ir::operation::OperationLike;

use super::build::{Builder, Elem, F32, I32, I64, Op, Ty, Val, integer, operand, refuse, string};
use super::hopper::{assembly, panels, shared_address};
use crate::Error;
use crate::atoms::PanelLayout;
use crate::dialect::LwOp;
use crate::mlir::{internal, name_of};

/// A pointer into tensor memory.
const TENSOR_POINTER: Ty = Ty::scalar(Elem::Pointer(6));

/// Lowers one of Blackwell's ops; gives the values of its results.
pub(super) fn lower<'m>(b: &Builder<'m>, op: Op<'m>, which: LwOp) -> Result<Vec<Val<'m>>, Error> {
    match which {
        LwOp::Tcgen05Alloc => {
            let columns = b.constant(I32, columns_of(op)?)?;
            b.op("nvvm.tcgen05.alloc", &[operand(op, 0)?, columns], &[], &[])?;
        }
        LwOp::Tcgen05Dealloc => {
            let columns = b.constant(I32, columns_of(op)?)?;
            b.op("nvvm.tcgen05.dealloc", &[pointer(b, operand(op, 0)?)?, columns], &[], &[])?;
        }
        LwOp::Tcgen05RelinquishAllocPermit => {
            b.op("nvvm.tcgen05.relinquish_alloc_permit", &[], &[], &[])?;
        }
        LwOp::Tcgen05Ld => return load(b, op),
        LwOp::Tcgen05St => store(b, op)?,
        LwOp::Tcgen05Wait => return wait(b, op),
        LwOp::Tcgen05Fence => {
            let kind = match string(op, "kind")?.as_str() {
                "before_thread_sync" => "before",
                "after_thread_sync" => "after",
                other => {
                    let help = "use before_thread_sync or after_thread_sync";
                    return Err(refuse(op, format!("there is no tcgen05 fence `{other}`"), help));
                }
            };
            let kind = b.attr(&format!("#nvvm.tcgen05_fence<{kind}>"))?;
            b.op("nvvm.tcgen05.fence", &[], &[], &[("kind", kind)])?;
        }
        LwOp::Tcgen05Mma => multiply(b, op)?,
        LwOp::Tcgen05Commit => {
            b.op("nvvm.tcgen05.commit", &[operand(op, 0)?], &[], &[])?;
        }
        _ => return Err(internal(&format!("`{}` is lowered elsewhere", name_of(op)), vec![])),
    }
    Ok(vec![])
}

fn pointer<'m>(b: &Builder<'m>, address: Val<'m>) -> Result<Val<'m>, Error> {
    b.cast("llvm.inttoptr", address, TENSOR_POINTER)
}

/// Columns of an allocation ("tcgen05.alloc": a power of two from 32 to 512).
fn columns_of(op: Op<'_>) -> Result<i64, Error> {
    let columns = integer(op, "columns")?;
    match columns {
        32 | 64 | 128 | 256 | 512 => Ok(columns),
        _ => Err(refuse(
            op,
            format!("{columns} columns of tensor memory cannot be allocated"),
            "allocate 32, 64, 128, 256 or 512",
        )),
    }
}

/// Registers of one load or store ("tcgen05.ld": `.x1` to `.x128`).
fn registers(op: Op<'_>, count: usize) -> Result<u32, Error> {
    match count {
        1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 => Ok(count as u32),
        _ => Err(refuse(
            op,
            format!("there is no access to {count} columns of tensor memory at once"),
            "take 1, 2, 4, 8, 16, 32, 64 or 128",
        )),
    }
}

fn load<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let count = registers(op, op.result_count())?;
    let ty = if count == 1 { I32 } else { I32.vector(count) };
    let shape = b.attr("#nvvm.tcgen05_ldst_shape<shape_32x32b>")?;
    let loaded = b.value("nvvm.tcgen05.ld", &[pointer(b, operand(op, 0)?)?], ty, &[("shape", shape)])?;
    (0..count)
        .map(|index| {
            let word = if count == 1 { loaded } else { b.extract(loaded, index)? };
            b.bitcast(word, F32)
        })
        .collect()
}

fn store<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let count = registers(op, op.operand_count().saturating_sub(1))?;
    let words =
        (0..count as usize).map(|index| b.bitcast(operand(op, 1 + index)?, I32)).collect::<Result<Vec<_>, _>>()?;
    let value = match words.as_slice() {
        [word] => *word,
        words => b.vector_of(words)?,
    };
    let shape = b.attr("#nvvm.tcgen05_ldst_shape<shape_32x32b>")?;
    b.op("nvvm.tcgen05.st", &[pointer(b, operand(op, 0)?)?, value], &[], &[("shape", shape)])?;
    Ok(())
}

/// The loaded values go through an assembly without text behind the wait: the wait itself names no register, and
/// nothing else keeps the compiler from using them before it.
fn wait<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<Vec<Val<'m>>, Error> {
    let count = op.result_count();
    if op.operand_count() != count {
        return Err(refuse(op, "a wait with the wrong number of values", "this is a fault in the trace"));
    }
    let kind = match string(op, "kind")?.as_str() {
        "ld" => "load",
        "st" => "store",
        other => return Err(refuse(op, format!("there is no wait for `{other}`"), "use ld or st")),
    };
    b.op("nvvm.tcgen05.wait", &[], &[], &[("kind", b.attr(&format!("#nvvm.tcgen05_wait<{kind}>"))?)])?;
    if count == 0 {
        return Ok(vec![]);
    }
    let operands = (0..count).map(|index| operand(op, index)).collect::<Result<Vec<_>, _>>()?;
    let mut constraints = vec!["=f".to_owned(); count];
    constraints.extend((0..count).map(|index| index.to_string()));
    constraints.push("~{memory}".to_owned());
    assembly(b, "", &constraints.join(","), &operands, count)
}

/// The upper word of a shared-memory descriptor ("Shared memory descriptor"): stride byte offset / 16 in bits 32 to
/// 45, the constant 1 in bit 46, the swizzle in bits 61 to 63. The stride leads from one group of eight rows to the
/// next; bits 49 to 51 are 0, as operands start where the pattern of their swizzle does.
fn upper(layout: &PanelLayout) -> i64 {
    let swizzle = match layout.swizzle {
        128 => 2,
        64 => 4,
        _ => 6,
    };
    let word = (8 * layout.swizzle as i64 / 16) | (1 << 14) | (swizzle << 29);
    word << 32
}

/// The instruction descriptor ("Instruction descriptor", kind::f16): f32 sums in bits 4 and 5, the types of A and B
/// from bits 7 and 10 on, which of them do not lie along k in bits 15 and 16, N / 8 from bit 17 and M / 16 from bit
/// 24 on.
fn instruction((m, n): (i64, i64), is_bf16: bool, a: &PanelLayout, b: &PanelLayout) -> i64 {
    let element = i64::from(is_bf16);
    let across = |layout: &PanelLayout| i64::from(!layout.k_major);
    1 << 4 | element << 7 | element << 10 | across(a) << 15 | across(b) << 16 | (n / 8) << 17 | (m / 16) << 24
}

/// Lower word of the descriptor of an operand's first step: start address / 16 and leading offset.
fn descriptor<'m>(b: &Builder<'m>, pointer: Val<'m>, layout: &PanelLayout) -> Result<Val<'m>, Error> {
    let start = b.binary("arith.shrui", shared_address(b, pointer)?, b.constant(I32, 4)?)?;
    // In a cluster, bits 24 and up of a shared address say whose memory it is in.
    let start = b.binary("arith.andi", start, b.constant(I32, 0x3FFF)?)?;
    b.binary("arith.ori", start, b.constant(I32, i64::from(layout.descriptor_leading()) << 16)?)
}

/// One `tcgen05.mma` for each 16 of k; all but the first add to what is there.
fn multiply<'m>(b: &Builder<'m>, op: Op<'m>) -> Result<(), Error> {
    let (m, n, k) = (integer(op, "m")?, integer(op, "n")?, integer(op, "k")?);
    let kind = string(op, "kind")?;
    let step_n = if m == 128 { 16 } else { 8 };
    let exists = matches!(m, 64 | 128) && n % step_n == 0 && (step_n..=256).contains(&n) && k % 16 == 0 && k > 0;
    if !exists || !matches!(kind.as_str(), "f16" | "bf16") {
        return Err(refuse(
            op,
            format!("there is no tcgen05.mma of {m} x {n} x {k} for {kind}"),
            "f16 or bf16; 128 rows and a multiple of 16 columns, or 64 rows and a multiple of 8, up to 256; a multiple \
             of 16 in k",
        ));
    }
    let (a_layout, b_layout) = (panels(op, "a_layout")?, panels(op, "b_layout")?);
    let (a, right) = (descriptor(b, operand(op, 0)?, &a_layout)?, descriptor(b, operand(op, 1)?, &b_layout)?);
    let target = pointer(b, operand(op, 2)?)?;
    let shape = b.constant(I32, instruction((m, n), kind == "bf16", &a_layout, &b_layout))?;
    let attributes = [
        ("kind", b.attr("#nvvm.tcgen05_mma_kind<f16>")?),
        ("ctaGroup", b.attr("#nvvm.cta_group<cta_1>")?),
        ("operandSegmentSizes", b.attr("array<i32: 1, 1, 1, 1, 1, 0, 0>")?),
    ];
    let at_step = |lower: Val<'m>, layout: &PanelLayout, step: i64| {
        let units = layout.step_bytes(step as usize) as i64 / 16;
        let lower = b.binary("arith.addi", lower, b.constant(I32, units)?)?;
        b.binary("arith.ori", b.cast("arith.extui", lower, I64)?, b.constant(I64, upper(layout))?)
    };
    for step in 0..k / 16 {
        let add = if step == 0 { operand(op, 3)? } else { b.constant(Ty::int(1), 1)? };
        let operands = [target, at_step(a, &a_layout, step)?, at_step(right, &b_layout, step)?, shape, add];
        b.op("nvvm.tcgen05.mma", &operands, &[], &attributes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_those_of_the_manual() {
        let layout = |k_major, swizzle, rows| PanelLayout { k_major, swizzle, rows };
        assert_eq!(upper(&layout(true, 128, 128)) as u64 >> 32, 0x4000_4040);
        assert_eq!(upper(&layout(true, 64, 128)) as u64 >> 32, 0x8000_4020);
        assert_eq!(upper(&layout(false, 32, 128)) as u64 >> 32, 0xC000_4010);
        let (along, across) = (layout(true, 128, 128), layout(false, 128, 128));
        assert_eq!(instruction((128, 128), true, &along, &along), 0x0820_0490);
        assert_eq!(instruction((128, 64), true, &along, &across), 0x0811_0490);
        assert_eq!(instruction((128, 256), false, &along, &across), 0x0841_0010);
        assert_eq!(instruction((64, 8), false, &across, &along), 0x0402_8010);
    }
}
