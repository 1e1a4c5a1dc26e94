//! How the address of each tensor must be aligned, from the widths of the accesses to it.
//!
//! Chips fault on a vector that is not aligned to its size. A kernel makes such accesses at whole vectors from a tensor's
//! first element; then that element must be aligned, and a launch can say so before anything runs. What an index or a
//! stride makes of an address is found by the emulator alone.

use melior::ir::attribute::IntegerAttribute;
use melior::ir::block::BlockArgument;
use melior::ir::operation::{OperationLike, OperationRef, OperationResult, WalkOrder, WalkResult};
use melior::ir::{BlockLike, Value, ValueLike};

use crate::mlir::IrModule;

/// Bytes, for each argument of the kernel's function from the first to the last that an access was found for.
pub(super) fn of_arguments(module: &IrModule) -> Vec<u32> {
    let mut found = Vec::new();
    module.module().as_operation().walk(WalkOrder::PreOrder, |operation| {
        if let Some((argument, bytes)) = access(&operation) {
            if found.len() <= argument {
                found.resize(argument + 1, 1);
            }
            if let Some(known) = found.get_mut(argument) {
                *known = bytes.max(*known);
            }
        }
        WalkResult::Advance
    });
    found
}

/// The function's argument that an access goes through, and the bytes that it is aligned to.
fn access(operation: &OperationRef<'_, '_>) -> Option<(usize, u32)> {
    let (address, attribute) = match operation.name().as_string_ref().as_str().ok()? {
        "lw.load" | "lw.load_masked" => (0, "align"),
        "lw.store" | "lw.store_masked" => (1, "align"),
        "lw.cp_async" => (1, "bytes"),
        _ => return None,
    };
    let bytes = IntegerAttribute::try_from(operation.attribute(attribute).ok()?).ok()?.value();
    Some((root(operation.operand(address).ok()?)?, u32::try_from(bytes).ok()?))
}

/// The function's argument that an address is computed from, without a loop or a branch in between.
fn root(address: Value<'_, '_>) -> Option<usize> {
    // Asked first: a conversion that fails prints the whole kernel into its error.
    if address.is_block_argument() {
        let argument = BlockArgument::try_from(address).ok()?;
        let parent = argument.owner().parent_operation()?;
        return (parent.name().as_string_ref().as_str() == Ok("gpu.func")).then(|| argument.argument_number());
    }
    let producer = OperationResult::try_from(address).ok()?.owner();
    if producer.name().as_string_ref().as_str() != Ok("llvm.getelementptr") {
        return None;
    }
    root(producer.operand(0).ok()?)
}
