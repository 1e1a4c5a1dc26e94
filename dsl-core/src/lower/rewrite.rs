//! The first step of lowering: `lw` ops, `math` ops and what the standard conversions would get wrong
//! become `arith`, `scf`, `llvm`, `nvvm` and `rocdl` ops, each with the location of what it replaces.

use melior::IrRewriter;
use melior::ir::Attribute;
use melior::ir::operation::OperationLike;

use super::build::{APPROXIMATE, Builder, Elem, Op, Ty, Val};
use super::walk::ops_inside;
use super::{amd, arith, assertion, blackwell, elementary, hopper, memory, nvidia, printf};
use crate::dialect::{LwOp, row};
use crate::mlir::{IrModule, internal, name_of};
use crate::{Error, KernelMeta, Target};

/// Rewrites every op of the kernel that needs it.
pub(super) fn rewrite(module: &IrModule, meta: &KernelMeta) -> Result<(), Error> {
    let context = module.context().get();
    let rewriter = IrRewriter::new(context);
    let approximate = Attribute::parse(context, APPROXIMATE).ok_or_else(|| internal(APPROXIMATE, vec![]))?;
    let ops = ops_inside(module.module().as_operation());
    let reaches_peers = ops.iter().any(|(op, _)| name_of(*op) == "lw.mapa");
    for (op, _) in ops {
        let builder = Builder::before(context, op, meta.target, approximate)?.for_peers(reaches_peers);
        if let Some(values) = replacement(&builder, op, meta)? {
            if values.len() != op.result_count() {
                return Err(internal(&format!("`{}` was lowered to the wrong number of values", name_of(op)), vec![]));
            }
            rewriter.as_rewriter_base().replace_op_with_values(op, &values);
        }
    }
    Ok(())
}

/// The values that replace the op's results; `None` where it stays.
fn replacement<'m>(b: &Builder<'m>, op: Op<'m>, meta: &KernelMeta) -> Result<Option<Vec<Val<'m>>>, Error> {
    let name = name_of(op);
    if let Some(row) = row(name) {
        return lw(b, op, row.op, meta).map(Some);
    }
    if let Some(function) = name.strip_prefix("math.") {
        return elementary::lower(b, op, function).map(|value| Some(vec![value]));
    }
    let nvidia = meta.target.is_nvidia();
    match name {
        "gpu.printf" => printf::printf(b, op).map(|()| Some(vec![])),
        "gpu.shuffle" if !nvidia => amd::shuffle(b, op),
        "gpu.grid_dim" if !nvidia => amd::grid_dim(b, op).map(|value| Some(vec![value])),
        "gpu.block_dim" => block_dim(b, op, meta).map(|value| Some(vec![value])),
        "llvm.getelementptr" => memory::element_pointer(b, op).map(|value| value.map(|value| vec![value])),
        _ => arith::lower(b, op, name).map(|value| value.map(|value| vec![value])),
    }
}

/// The block size is part of the kernel.
fn block_dim<'m>(b: &Builder<'m>, op: Op<'m>, meta: &KernelMeta) -> Result<Val<'m>, Error> {
    let [x, y, z] = meta.attributes.block;
    let extent = match op.attribute("dimension").map(|a| a.to_string()).unwrap_or_default().as_str() {
        "#gpu<dim x>" => x,
        "#gpu<dim y>" => y,
        _ => z,
    };
    b.constant(Ty::scalar(Elem::Index), i64::from(extent))
}

fn lw<'m>(b: &Builder<'m>, op: Op<'m>, which: LwOp, meta: &KernelMeta) -> Result<Vec<Val<'m>>, Error> {
    let target: Target = meta.target;
    let nvidia = target.is_nvidia();
    let none = |()| Vec::new();
    let one = |value| vec![value];
    match which {
        LwOp::Shared => memory::shared(b, op).map(one),
        LwOp::Load => memory::load(b, op).map(one),
        LwOp::LoadMasked => memory::load_masked(b, op).map(one),
        LwOp::Store => memory::store(b, op).map(none),
        LwOp::StoreMasked => memory::store_masked(b, op).map(none),
        LwOp::BufferLoad if nvidia => nvidia::buffer_load(b, op).map(one),
        LwOp::BufferLoad => amd::buffer_load(b, op).map(one),
        LwOp::BufferStore if nvidia => nvidia::buffer_store(b, op).map(none),
        LwOp::BufferStore => amd::buffer_store(b, op).map(none),
        LwOp::AtomicRmw => memory::atomic_rmw(b, op).map(one),
        LwOp::AtomicCas => memory::atomic_cas(b, op).map(one),
        LwOp::Fence => memory::fence(b, op).map(none),
        LwOp::GridDependency => nvidia::grid_dependency(b, op, target).map(none),
        LwOp::CpAsync => nvidia::cp_async(b, op).map(none),
        LwOp::CpAsyncCommit => b.op("nvvm.cp.async.commit.group", &[], &[], &[]).map(|_| Vec::new()),
        LwOp::CpAsyncWait => nvidia::cp_async_wait(b, op).map(none),
        LwOp::LoadLds => amd::load_lds(b, op).map(none),
        LwOp::BufferLoadLds => amd::buffer_load_lds(b, op).map(none),
        LwOp::Ldmatrix => nvidia::ldmatrix(b, op),
        LwOp::Stmatrix => nvidia::stmatrix(b, op).map(none),
        LwOp::MmaSync => nvidia::mma_sync(b, op),
        LwOp::NamedBarrier => nvidia::named_barrier(b, op).map(none),
        LwOp::Mfma => amd::mfma(b, op),
        LwOp::Ballot if nvidia => nvidia::ballot(b, op).map(one),
        LwOp::Ballot => amd::ballot(b, op).map(one),
        LwOp::Elect if nvidia => nvidia::elect(b, op).map(one),
        LwOp::Elect => amd::elect(b).map(one),
        LwOp::WarpSync if nvidia => nvidia::warp_sync(b).map(none),
        LwOp::WarpSync => amd::warp_sync(b).map(none),
        LwOp::SchedBarrier if nvidia => nvidia::sched_barrier(b).map(none),
        LwOp::SchedBarrier => {
            b.op("rocdl.sched.barrier", &[], &[], &[("mask", b.attr("0 : i32")?)]).map(|_| Vec::new())
        }
        LwOp::Rcp => elementary::approximate_reciprocal(b, op).map(one),
        LwOp::ToFp8 => arith::to_fp8(b, op).map(one),
        LwOp::Assert if nvidia => assertion::assert(b, op).map(none),
        LwOp::Assert => amd::assert(b, op).map(none),
        LwOp::Uniform if !nvidia => amd::uniform(b, op).map(one),
        LwOp::MbarrierInit
        | LwOp::MbarrierArrive
        | LwOp::MbarrierArrivePeer
        | LwOp::MbarrierExpectTx
        | LwOp::MbarrierWait
        | LwOp::FenceProxy
        | LwOp::TmaLoad
        | LwOp::TmaStore
        | LwOp::TmaCommit
        | LwOp::TmaWait
        | LwOp::Wgmma
        | LwOp::WgmmaWait
        | LwOp::Setmaxnreg
        | LwOp::Uniform
        | LwOp::ClusterSync
        | LwOp::ClusterRank
        | LwOp::Mapa
        | LwOp::StAsync
        | LwOp::BulkCopy => hopper::lower(b, op, which),
        LwOp::Tcgen05Alloc
        | LwOp::Tcgen05Dealloc
        | LwOp::Tcgen05RelinquishAllocPermit
        | LwOp::Tcgen05Ld
        | LwOp::Tcgen05St
        | LwOp::Tcgen05Wait
        | LwOp::Tcgen05Fence
        | LwOp::Tcgen05Mma
        | LwOp::Tcgen05Commit => blackwell::lower(b, op, which),
    }
}
