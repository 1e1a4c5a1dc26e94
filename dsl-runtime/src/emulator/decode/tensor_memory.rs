//! Tensor memory and the products that sum there.

use std::sync::Arc;

use lacewing_core::Error;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::attributes;
use super::emit::Decoder;
use super::types::{Elem, ValueType};
use crate::emulator::asynchronous::op::{AsyncOp, InputType};
use crate::emulator::asynchronous::tcgen05::{MultiplyOp, TensorOp};
use crate::emulator::lanes::Reg;

impl Decoder {
    /// Decodes an operation of these; `None` when it is none.
    pub(crate) fn tensor_memory(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<Option<AsyncOp>, Error> {
        let decoded = match name {
            "lw.tcgen05_alloc" => {
                let columns = self.tensor_columns(op)?;
                let threads = self.program.block_threads();
                if !threads.is_multiple_of(32) {
                    return Err(self.fail(op, format!("tensor memory in a block of {threads} threads: no whole warps")));
                }
                let access = self.access(op, 0, ValueType::scalar(Elem::I32), 4, 0)?;
                TensorOp::Alloc { slot: self.operand(op, 0)?.base, columns, access }
            }
            "lw.tcgen05_dealloc" => {
                TensorOp::Dealloc { address: self.operand(op, 0)?.base, columns: self.tensor_columns(op)? }
            }
            "lw.tcgen05_relinquish_alloc_permit" => TensorOp::Relinquish,
            "lw.tcgen05_ld" => {
                let rows = attributes::unsigned(op, "rows").filter(|rows| matches!(rows, 16 | 32));
                let rows = rows.ok_or_else(|| self.unknown(op))?;
                let address = self.operand(op, 0)?.base;
                TensorOp::Load { address, d: self.tensor_results(op)?, rows }
            }
            "lw.tcgen05_st" => {
                TensorOp::Store { address: self.operand(op, 0)?.base, values: self.tensor_values(op, 1)? }
            }
            "lw.tcgen05_wait" => {
                let store = match attributes::string(op, "kind") {
                    Some("ld") => false,
                    Some("st") => true,
                    _ => return Err(self.unknown(op)),
                };
                let values = self.tensor_values(op, 0)?;
                let results = self.tensor_results(op)?;
                if values.len() != results.len() {
                    return Err(self.unknown(op));
                }
                TensorOp::Wait { store, values, results }
            }
            "lw.tcgen05_fence" => match attributes::string(op, "kind") {
                Some("before_thread_sync") => TensorOp::Fence { before: true },
                Some("after_thread_sync") => TensorOp::Fence { before: false },
                _ => return Err(self.unknown(op)),
            },
            "lw.tcgen05_mma" => TensorOp::Multiply(Arc::new(self.tensor_product(op)?)),
            "lw.tcgen05_commit" => {
                TensorOp::Commit { barrier: self.operand(op, 0)?.base, access: self.barrier_access(op, 0)? }
            }
            _ => return Ok(None),
        };
        Ok(Some(AsyncOp::Tensor(decoded)))
    }

    fn tensor_columns(&self, op: &OperationRef<'_, '_>) -> Result<u32, Error> {
        let columns = attributes::unsigned(op, "columns").unwrap_or(0);
        if columns.is_power_of_two() && (32..=512).contains(&columns) {
            return Ok(columns);
        }
        Err(self.fail(op, format!("allocations of tensor memory have 32, 64, 128, 256 or 512 columns, not {columns}")))
    }

    fn tensor_values(&self, op: &OperationRef<'_, '_>, first: usize) -> Result<Vec<Reg>, Error> {
        (first..op.operand_count()).map(|index| Ok(self.operand(op, index)?.base)).collect()
    }

    fn tensor_results(&mut self, op: &OperationRef<'_, '_>) -> Result<Vec<Reg>, Error> {
        (0..op.result_count()).map(|index| Ok(self.result(op, index)?.base)).collect()
    }

    fn tensor_product(&mut self, op: &OperationRef<'_, '_>) -> Result<MultiplyOp, Error> {
        let ty = match attributes::string(op, "kind") {
            Some("f16") => InputType::F16,
            Some("bf16") => InputType::Bf16,
            _ => return Err(self.unknown(op)),
        };
        let [m, n, k] = ["m", "n", "k"].map(|name| attributes::unsigned(op, name).unwrap_or(0) as usize);
        let step = if m == 128 { 16 } else { 8 };
        let exists = matches!(m, 64 | 128) && n.is_multiple_of(step) && (step..=256).contains(&n);
        if !exists || k == 0 || !k.is_multiple_of(ty.step()) {
            return Err(self.fail(op, format!("the emulator knows no tcgen05.mma of shape {m} x {n} x {k}")));
        }
        // One thread has the whole of both operands read.
        let whole = |rows: usize| move |part: usize| (0, if part == 0 { rows } else { 0 });
        let layout = |name| attributes::string(op, name).unwrap_or_default().to_owned();
        let (layout_a, layout_b) = (layout("a_layout"), layout("b_layout"));
        let a = self.tile(op, (0, &layout_a), ty, (m, k), whole(m))?;
        let b = self.tile(op, (1, &layout_b), ty, (n, k), whole(n))?;
        let (d, accumulate) = (self.operand(op, 2)?.base, self.operand(op, 3)?.mask(0));
        Ok(MultiplyOp { ty, m, n, k, a, b, d, accumulate })
    }
}
