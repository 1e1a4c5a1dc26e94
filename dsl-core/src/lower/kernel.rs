//! The kernel function itself: resource attributes, index ranges, loop hints, shared memory.

use melior::Context;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike};
use melior::ir::{Attribute, Identifier, Location, Region, RegionLike};

use super::build::{Op, refuse};
use super::walk::{kernel_module, ops_inside};
use crate::mlir::{IrModule, internal, name_of};
use crate::{Error, KernelMeta};

/// Symbol of the block's shared memory.
pub(super) const SHARED_SYMBOL: &str = "lacewing_shared";

/// Alignment of the block's shared memory: what TMA and wgmma swizzles want at most.
const SHARED_ALIGN: u32 = 1024;

/// Sets what the back ends read: attributes of the kernel, ranges of thread ids, unrolling of loops.
///
/// # Errors
/// A wish in `#[kernel(..)]` that the target has no means to honour.
pub(super) fn prepare(module: &IrModule, meta: &KernelMeta) -> Result<(), Error> {
    let context = module.context().get();
    for (op, mut changeable) in ops_inside(module.module().as_operation()) {
        match name_of(op) {
            "gpu.func" => {
                for (name, text) in function_attributes(op, meta)? {
                    changeable.set_attribute(name, parse(context, &text)?);
                }
                // The conversion would also write maxntid from it, which PTX forbids beside reqntid.
                changeable
                    .remove_attribute("known_block_size")
                    .map_err(|_| internal("a kernel without `known_block_size`", vec![]))?;
            }
            "gpu.thread_id" => {
                let dimension = op.attribute("dimension").map(|a| a.to_string()).unwrap_or_default();
                let [x, y, z] = meta.attributes.block;
                let extent = match dimension.as_str() {
                    "#gpu<dim x>" => x,
                    "#gpu<dim y>" => y,
                    _ => z,
                };
                changeable.set_attribute("upper_bound", parse(context, &format!("{extent} : index"))?);
            }
            "scf.for" => {
                if let Some(hint) = loop_hint(op)? {
                    changeable.set_attribute("llvm.loop_annotation", parse(context, hint.as_str())?);
                }
            }
            _ => {}
        }
    }
    declare_shared(module, meta)
}

fn parse<'m>(context: &'m Context, text: &str) -> Result<Attribute<'m>, Error> {
    Attribute::parse(context, text).ok_or_else(|| internal(&format!("no such attribute: {text}"), vec![]))
}

/// `lw.unroll = N` becomes LLVM's loop metadata; 1 forbids unrolling. `lw.pipeline` has no
/// counterpart in LLVM: it stays a hint for readers of the trace.
fn loop_hint(op: Op<'_>) -> Result<Option<String>, Error> {
    let count = op.attribute("lw.unroll").ok().and_then(|a| IntegerAttribute::try_from(a).ok()).map(|a| a.value());
    let options = match count {
        None => return Ok(None),
        Some(1) => "disable = true".to_owned(),
        Some(count) if count > 1 => format!("disable = false, count = {count} : i32"),
        Some(count) => {
            return Err(refuse(
                op,
                format!("a loop cannot be unrolled {count} times"),
                "give the number of copies of the body: 2, 4, 8; 1 forbids unrolling",
            ));
        }
    };
    Ok(Some(format!("#llvm.loop_annotation<unroll = <{options}>>")))
}

/// Names and texts of the attributes that the target's translation reads (PTX ISA, "Performance-tuning
/// directives" and "Cluster dimension directives"; AMDGPU Usage, "LLVM IR attributes").
fn function_attributes(op: Op<'_>, meta: &KernelMeta) -> Result<Vec<(&'static str, String)>, Error> {
    let wishes = &meta.attributes;
    let target = meta.target;
    let [x, y, z] = wishes.block;
    let refused = |wish: &str, help: &str| refuse(op, format!("`{wish}` does not exist on {target}"), help);
    let mut attributes = Vec::new();
    if target.is_nvidia() {
        attributes.push(("nvvm.reqntid", format!("array<i32: {x}, {y}, {z}>")));
        if let Some(blocks) = wishes.min_blocks {
            attributes.push(("nvvm.minctasm", format!("{blocks} : i32")));
        }
        if let Some(registers) = wishes.max_regs {
            attributes.push(("nvvm.maxnreg", format!("{registers} : i32")));
        }
        if wishes.waves_per_eu.is_some() {
            return Err(refused("waves_per_eu", "use `min_blocks` or `max_regs` on NVIDIA targets"));
        }
        if let Some([x, y, z]) = wishes.cluster {
            if target.generation() < 90 {
                return Err(refused("cluster", "clusters exist from sm_90a on"));
            }
            attributes.push(("nvvm.cluster_dim", format!("array<i32: {x}, {y}, {z}>")));
        }
    } else {
        let threads = wishes.threads();
        attributes.push(("rocdl.reqd_work_group_size", format!("array<i32: {x}, {y}, {z}>")));
        attributes.push(("rocdl.flat_work_group_size", format!("\"{threads},{threads}\"")));
        if let Some(waves) = wishes.waves_per_eu {
            attributes.push(("rocdl.waves_per_eu", format!("{waves} : i32")));
        }
        for (wish, present) in [("min_blocks", wishes.min_blocks), ("max_regs", wishes.max_regs)] {
            if present.is_some() {
                return Err(refused(wish, "use `waves_per_eu` on AMD targets"));
            }
        }
        if wishes.cluster.is_some() {
            return Err(refused("cluster", "clusters exist from sm_90a on"));
        }
    }
    Ok(attributes)
}

/// Declares the global that `lw.shared` points into: static, or the launch's dynamic memory where the
/// target limits static memory.
fn declare_shared(module: &IrModule, meta: &KernelMeta) -> Result<(), Error> {
    if meta.shared_bytes == 0 {
        return Ok(());
    }
    let context = module.context().get();
    let (linkage, bytes) =
        if meta.dynamic_shared_bytes() > 0 { ("external", 0) } else { ("internal", meta.shared_bytes) };
    // Rounding the alignment up to 1024 would waste memory of small kernels.
    let align = meta.shared_bytes.next_power_of_two().clamp(16, SHARED_ALIGN);
    let text = |text: &str| parse(context, text);
    let attributes = [
        ("sym_name", text(&format!("\"{SHARED_SYMBOL}\""))?),
        ("global_type", text(&format!("!llvm.array<{bytes} x i8>"))?),
        ("linkage", text(&format!("#llvm.linkage<{linkage}>"))?),
        ("addr_space", text("3 : i32")?),
        ("alignment", text(&format!("{align} : i64"))?),
    ]
    .map(|(name, value)| (Identifier::new(context, name), value));
    let global = OperationBuilder::new("llvm.mlir.global", Location::unknown(context))
        .add_attributes(&attributes)
        .add_regions([Region::new()])
        .build()
        .map_err(|e| internal(&e.to_string(), vec![]))?;
    let (op, _) = kernel_module(module).ok_or_else(|| internal("the module holds no gpu.module", vec![]))?;
    let body = op.region(0).ok().and_then(|region| region.first_block());
    body.ok_or_else(|| internal("an empty gpu.module", vec![]))?.insert_operation(0, global);
    Ok(())
}
