//! Finding ops.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, OperationRefMut};
use melior::ir::{BlockRef, RegionLike};

use super::build::Op;
use crate::mlir::{IrModule, name_of};

/// Every op inside `op` but not itself, for reading and for changing its attributes; innermost first,
/// so that a rewrite never meets an erased op.
pub(super) fn ops_inside<'m>(op: Op<'m>) -> Vec<(Op<'m>, OperationRefMut<'m, 'm>)> {
    fn collect<'m>(op: Op<'m>, found: &mut Vec<(Op<'m>, OperationRefMut<'m, 'm>)>) {
        for (inner, changeable) in blocks_of(op).flat_map(operations) {
            collect(inner, found);
            found.push((inner, changeable));
        }
    }
    let mut found = Vec::new();
    collect(op, &mut found);
    found
}

/// The blocks of an op's regions.
pub(super) fn blocks_of<'m>(op: Op<'m>) -> impl Iterator<Item = BlockRef<'m, 'm>> {
    let regions = (0..op.region_count()).filter_map(move |index| op.region(index).ok());
    regions.flat_map(|region| std::iter::successors(region.first_block(), |block| block.next_in_region()))
}

/// The ops that stand in an op's regions themselves, for reading and for changing their attributes.
pub(super) fn children_of<'m>(op: Op<'m>) -> Vec<(Op<'m>, OperationRefMut<'m, 'm>)> {
    blocks_of(op).flat_map(operations).collect()
}

/// A block's ops.
fn operations<'m>(block: BlockRef<'m, 'm>) -> impl Iterator<Item = (Op<'m>, OperationRefMut<'m, 'm>)> {
    let first = block.first_operation().zip(block.first_operation_mut());
    std::iter::successors(first, |(op, _)| op.next_in_block().zip(op.next_in_block_mut()))
}

/// The `gpu.module` of a traced module.
pub(super) fn kernel_module(module: &IrModule) -> Option<(Op<'_>, OperationRefMut<'_, '_>)> {
    children_of(module.module().as_operation()).into_iter().find(|(op, _)| name_of(*op) == "gpu.module")
}
