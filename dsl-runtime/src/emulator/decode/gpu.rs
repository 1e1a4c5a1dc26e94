//! `gpu` operations and `lw`'s collectives.

use lacewing_core::Error;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};

use super::attributes;
use super::emit::{Decoder, TRUE};
use super::lifetime::value_key;
use super::types::{Elem, Place, ValueType};
use crate::emulator::asynchronous::op::AsyncOp;
use crate::emulator::op::{Op, PrintArg, PrintOp, PrintType, ShuffleMode};
use crate::emulator::program::Builtin;

impl Decoder {
    /// Decodes an operation about threads. False when it is none.
    pub(crate) fn gpu(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<bool, Error> {
        match name {
            "gpu.thread_id" => self.builtin(op, Builtin::ThreadId)?,
            "gpu.block_id" => self.builtin(op, Builtin::BlockId)?,
            "gpu.grid_dim" => self.builtin(op, Builtin::GridDim)?,
            "gpu.lane_id" => self.builtin(op, |_| Builtin::LaneId)?,
            "gpu.block_dim" => {
                let axis = self.axis(op)?;
                let extent = self.program.block.get(usize::from(axis)).copied().unwrap_or(1);
                let ty = ValueType::scalar(Elem::Index);
                let place = self.constant_words(vec![extent], ty);
                let result = op.result(0).map_err(|_| self.unknown(op))?;
                self.known.insert(value_key(result), extent.into());
                self.bind(value_key(result), Place { ty, ..place });
            }
            "gpu.barrier" => {
                self.emit(Op::Barrier);
            }
            "gpu.shuffle" => self.shuffle(op)?,
            "gpu.printf" => self.printf(op)?,
            "lw.ballot" => {
                let mask = self.operand(op, 0)?.mask(0);
                let d = self.result(op, 0)?.base;
                let wave = self.halves == 2;
                self.emit(Op::Ballot { wave, d, mask });
            }
            "lw.elect" => {
                let d = self.result(op, 0)?.mask(0);
                self.emit(Op::Elect { d });
            }
            "lw.warp_sync" => {
                self.emit(Op::WarpSync);
            }
            "lw.fence" => {
                // One host thread runs a block and host atomics order blocks: nothing to do but to know
                // that relaxed atomics order what fences stand beside.
                self.program.has_fence = true;
            }
            // One launch ends before the next begins, and instructions run in their order.
            "lw.grid_dependency" | "lw.sched_barrier" => {}
            "lw.named_barrier" => self.named_barrier(op)?,
            "lw.assert" => {
                let mask = self.operand(op, 0)?.mask(0);
                let message = attributes::string(op, "message").unwrap_or_default().to_owned();
                let args = self.print_args(op, 1)?;
                self.program.messages.push(PrintOp { format: message, args });
                let message = self.program.messages.len() as u32 - 1;
                self.emit(Op::Assert { mask, message });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn axis(&self, op: &OperationRef<'_, '_>) -> Result<u8, Error> {
        let text = attributes::text(op, "dimension");
        let axis = text.strip_prefix("#gpu<dim ").and_then(|rest| rest.strip_suffix('>'));
        match axis {
            Some("x") => Ok(0),
            Some("y") => Ok(1),
            Some("z") => Ok(2),
            _ => Err(self.fail(op, format!("unknown dimension `{text}`"))),
        }
    }

    pub(crate) fn builtin(&mut self, op: &OperationRef<'_, '_>, make: impl Fn(u8) -> Builtin) -> Result<(), Error> {
        let axis = if op.has_attribute("dimension") { self.axis(op)? } else { 0 };
        let builtin = make(axis);
        let known = self.program.builtins.iter().find(|(other, _)| *other == builtin).map(|&(_, slot)| slot);
        let base = match known {
            Some(base) => base,
            None => {
                let base = self.slots.take_fresh(self.halves);
                self.program.builtins.push((builtin, base));
                base
            }
        };
        let result = op.result(0).map_err(|_| self.unknown(op))?;
        let ty = self.type_of(op, result)?;
        if ty.elem.bits() != 32 {
            return Err(self.unknown(op));
        }
        self.bind(value_key(result), Place { ty, base, stride: 1 });
        Ok(())
    }

    fn shuffle(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let text = attributes::text(op, "mode");
        let mode = match text.strip_prefix("#gpu<shuffle_mode ").and_then(|rest| rest.strip_suffix('>')) {
            Some("xor") => ShuffleMode::Xor,
            Some("up") => ShuffleMode::Up,
            Some("down") => ShuffleMode::Down,
            Some("idx") => ShuffleMode::Index,
            _ => return Err(self.fail(op, format!("unknown shuffle mode `{text}`"))),
        };
        let known = |this: &Self, index: usize| {
            op.operand(index).ok().and_then(|value| this.known.get(&value_key(value)).copied())
        };
        let width = self.program.target.warp_size();
        if known(self, 2) != Some(i64::from(width)) {
            return Err(self.fail(op, format!("a shuffle's width must be the constant {width}")));
        }
        let (value, index) = (self.operand(op, 0)?, self.operand(op, 1)?);
        if value.ty.is_vector || value.ty.elem.bits() != 32 {
            return Err(self.unknown(op));
        }
        let distance = known(self, 1);
        let d = self.result(op, 0)?.base;
        if op.result_count() > 1
            && let Ok(valid) = op.result(1)
        {
            // Nothing uses it: the trace never does.
            self.bind(value_key(valid), Place { ty: ValueType::scalar(Elem::I1), base: TRUE, stride: 0 });
        }
        match (mode, distance) {
            (ShuffleMode::Xor, Some(distance)) if self.halves == 1 => {
                self.emit(Op::ShuffleXor { d, a: value.base, distance: distance as u32 });
            }
            _ => {
                let wave = self.halves == 2;
                let (a, a_copy) = self.adjacent(value);
                let (index, index_copy) = self.adjacent(index);
                self.emit(Op::Shuffle { mode, wave, d, a, index });
                for copy in [a_copy, index_copy].into_iter().flatten() {
                    self.release(copy);
                }
            }
        }
        Ok(())
    }

    fn named_barrier(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let (id, threads) = (attributes::unsigned(op, "id"), attributes::unsigned(op, "threads"));
        let warp = self.program.target.warp_size();
        let base = if op.operand_count() > 0 { 0 } else { 1 };
        let (Some(id), Some(threads)) = (id.filter(|id| (base..=15).contains(id)), threads) else {
            return Err(self.fail(op, "a named barrier has a number from 1 to 15 and a count of threads"));
        };
        if threads == 0 || threads % warp != 0 {
            return Err(self.fail(op, format!("a named barrier's threads are a multiple of {warp}, not {threads}")));
        }
        if op.operand_count() > 0 {
            let index = self.operand(op, 0)?.base;
            let sync = attributes::string(op, "kind") == Some("sync");
            self.emit_async(AsyncOp::NamedBarrier { id, index, threads, sync });
            return Ok(());
        }
        self.emit(match attributes::string(op, "kind") {
            Some("sync") => Op::NamedSync { id, threads },
            Some("arrive") => Op::NamedArrive { id, threads },
            _ => return Err(self.unknown(op)),
        });
        Ok(())
    }

    fn printf(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        let format = attributes::string(op, "format").unwrap_or_default().to_owned();
        let args = self.print_args(op, 0)?;
        self.program.prints.push(PrintOp { format, args });
        let table = self.program.prints.len() as u32 - 1;
        self.emit(Op::Print { table });
        Ok(())
    }

    /// The operands from `first` on, as a format prints them.
    fn print_args(&mut self, op: &OperationRef<'_, '_>, first: usize) -> Result<Vec<PrintArg>, Error> {
        let mut args = Vec::new();
        for index in first..op.operand_count() {
            let place = self.operand(op, index)?;
            if place.ty.is_vector {
                return Err(self.unknown(op));
            }
            let ty = match place.ty.elem {
                Elem::I1 => PrintType::Bool,
                Elem::F16 => PrintType::F16,
                Elem::Bf16 => PrintType::Bf16,
                Elem::F32 => PrintType::F32,
                Elem::F64 => PrintType::F64,
                Elem::E4m3 | Elem::E5m2 => return Err(self.unknown(op)),
                elem => PrintType::Signed(elem.bits() as u8),
            };
            args.push(PrintArg { ty, reg: place.base, half_stride: place.stride });
        }
        Ok(args)
    }
}
