//! mbarriers, bulk copies, warpgroup products, clusters.

use lacewing_core::atoms::WgmmaSpec;
use lacewing_core::mlir::ir::{OperationLike, OperationRef};
use lacewing_core::{Error, ParamKind};

use super::attributes;
use super::emit::Decoder;
use super::lifetime::{op_name, value_key};
use super::types::{Elem, Place, ValueType};
use crate::emulator::asynchronous::mbarrier::LIMIT;
use crate::emulator::asynchronous::op::{
    AsyncOp, BlockCopyOp, InputType, OperandA, ProxyFence, SharedLayout, SharedOperand, StoreAsyncOp, TensorCopyOp,
    WgmmaOp,
};
use crate::emulator::op::Op;
use crate::emulator::program::{Builtin, MapShape, ParameterKind};

impl Decoder {
    /// Decodes an operation of these. False when it is none.
    pub(crate) fn asynchronous(&mut self, op: &OperationRef<'_, '_>, name: &str) -> Result<bool, Error> {
        let decoded = match name {
            "lw.mbarrier_init" => {
                let count = attributes::unsigned(op, "count").unwrap_or(0);
                if count == 0 || i64::from(count) > LIMIT {
                    let message = format!("an mbarrier's phase has 1 to {LIMIT} arrivals, not {count}");
                    return Err(self.fail(op, message));
                }
                AsyncOp::BarrierInit { address: self.operand(op, 0)?.base, count, access: self.barrier_access(op, 0)? }
            }
            "lw.mbarrier_arrive" => AsyncOp::BarrierArrive {
                address: self.operand(op, 0)?.base,
                bytes: None,
                access: self.barrier_access(op, 0)?,
            },
            "lw.mbarrier_expect_tx" => {
                let bytes = attributes::unsigned(op, "bytes").ok_or_else(|| self.unknown(op))?;
                if i64::from(bytes) > LIMIT {
                    return Err(self.fail(op, format!("an mbarrier's phase has at most {LIMIT} bytes, not {bytes}")));
                }
                let (address, access) = (self.operand(op, 0)?.base, self.barrier_access(op, 0)?);
                AsyncOp::BarrierArrive { address, bytes: Some(bytes), access }
            }
            "lw.mbarrier_arrive_peer" => {
                let (address, rank) = (self.operand(op, 0)?.base, self.operand(op, 1)?.base);
                AsyncOp::BarrierArrivePeer { address, rank, access: self.barrier_access(op, 0)? }
            }
            "lw.mbarrier_wait" => {
                let (address, parity) = (self.operand(op, 0)?.base, self.operand(op, 1)?.base);
                AsyncOp::BarrierWait { address, parity, access: self.barrier_access(op, 0)? }
            }
            "lw.fence_proxy" => AsyncOp::FenceProxy(match attributes::string(op, "kind") {
                Some("async" | "async_shared") => ProxyFence::Async,
                Some("mbarrier_init") => ProxyFence::BarrierInit,
                _ => return Err(self.unknown(op)),
            }),
            "lw.st_async" => {
                let value = self.operand(op, 0)?;
                let bytes = value.ty.bytes();
                if !matches!(bytes, 4 | 8 | 16) {
                    return Err(self.fail(op, format!("an asynchronous store is of 4, 8 or 16 bytes, not {bytes}")));
                }
                AsyncOp::StoreAsync(StoreAsyncOp {
                    value: value.base,
                    address: self.operand(op, 1)?.base,
                    barrier: self.operand(op, 2)?.base,
                    access: self.access(op, 1, value.ty, bytes, 0)?,
                    barrier_access: self.barrier_access(op, 2)?,
                })
            }
            "lw.bulk_copy" => {
                let bytes = attributes::unsigned(op, "bytes").unwrap_or(0);
                if bytes == 0 || !bytes.is_multiple_of(16) || i64::from(bytes) > LIMIT {
                    return Err(self.fail(op, format!("a bulk copy is of a multiple of 16 bytes, not {bytes}")));
                }
                let byte = ValueType::scalar(Elem::I8);
                AsyncOp::BlockCopy(BlockCopyOp {
                    destination: self.operand(op, 0)?.base,
                    source: self.operand(op, 1)?.base,
                    barrier: self.operand(op, 2)?.base,
                    bytes,
                    to: self.access(op, 0, byte, 16, 0)?,
                    from: self.access(op, 1, byte, 16, 0)?,
                    barrier_access: self.barrier_access(op, 2)?,
                })
            }
            "lw.tma_load" => self.tensor_load(op)?,
            "lw.tma_store" => self.tensor_store(op)?,
            "lw.tma_commit" => AsyncOp::StoreCommit,
            "lw.tma_wait" => AsyncOp::StoreWait {
                groups: attributes::unsigned(op, "groups").ok_or_else(|| self.unknown(op))?,
                read: attributes::flag(op, "read"),
            },
            "lw.wgmma" => self.wgmma(op)?,
            "lw.wgmma_wait" => {
                let groups = attributes::unsigned(op, "groups").ok_or_else(|| self.unknown(op))?;
                let mut values = Vec::new();
                for index in 0..op.operand_count() {
                    values.push(self.operand(op, index)?.base);
                }
                let mut results = Vec::new();
                for index in 0..op.result_count() {
                    results.push(self.result(op, index)?.base);
                }
                AsyncOp::WgmmaWait { groups, values, results }
            }
            "lw.setmaxnreg" => {
                let count = attributes::unsigned(op, "regs").unwrap_or(0);
                if !count.is_multiple_of(8) || !(24..=256).contains(&count) {
                    let message = format!("setmaxnreg takes a multiple of 8 from 24 to 256, not {count}");
                    return Err(self.fail(op, message));
                }
                AsyncOp::SetRegisters { count, increase: attributes::string(op, "kind") == Some("inc") }
            }
            "lw.uniform" => {
                let a = self.operand(op, 0)?;
                let d = self.result(op, 0)?;
                let both = |place: Place| [place.half(0), place.half(self.halves - 1)];
                AsyncOp::Uniform { d: both(d), a: both(a), halves: self.halves as u8 }
            }
            "lw.cluster_sync" => match attributes::string(op, "kind") {
                Some("sync") => AsyncOp::ClusterSync { arrive: true, wait: true },
                Some("arrive") => AsyncOp::ClusterSync { arrive: true, wait: false },
                Some("wait") => AsyncOp::ClusterSync { arrive: false, wait: true },
                _ => return Err(self.unknown(op)),
            },
            "lw.cluster_rank" => {
                self.builtin(op, |_| Builtin::ClusterRank)?;
                return Ok(true);
            }
            _ => match self.tensor_memory(op, name)? {
                Some(decoded) => decoded,
                None => return Ok(false),
            },
        };
        if self.halves != 1 && !matches!(decoded, AsyncOp::Uniform { .. }) {
            return Err(self.unknown(op));
        }
        self.program.has_async |= !matches!(decoded, AsyncOp::Uniform { .. });
        if matches!(decoded, AsyncOp::BarrierWait { .. } | AsyncOp::WgmmaWait { .. }) {
            let held = self.held_across(op);
            self.program.held.push((self.here(), held));
        }
        self.emit_async(decoded);
        Ok(true)
    }

    pub(crate) fn emit_async(&mut self, op: AsyncOp) {
        self.program.asynchronous.push(op);
        let table = self.program.asynchronous.len() as u32 - 1;
        self.emit(Op::Async { table });
    }

    /// Emits a check of each operand that may be in flight where it must not be.
    pub(crate) fn check_flight(&mut self, op: &OperationRef<'_, '_>) -> Result<(), Error> {
        if self.flight.is_empty() {
            return Ok(());
        }
        let name = op_name(op);
        let skipped = match name.as_str() {
            "lw.wgmma_wait" | "scf.yield" | "scf.condition" | "scf.while" => return Ok(()),
            // Bounds and step, then what is carried.
            "scf.for" => 3..usize::MAX,
            "lw.wgmma" => {
                let sizes = attributes::i32_array(op, "operandSegmentSizes");
                sizes.iter().take(2).map(|&size| size.max(0) as usize).sum::<usize>()..usize::MAX
            }
            _ => 0..0,
        };
        let mut checked: Vec<usize> = Vec::new();
        for (index, operand) in op.operands().enumerate() {
            let key = value_key(operand);
            if skipped.contains(&index) || !self.flight.contains(key) || checked.contains(&key) {
                continue;
            }
            checked.push(key);
            let place = self.place(op, operand)?;
            self.emit_async(AsyncOp::Landed { value: place.base, slots: place.ty.slots() });
        }
        Ok(())
    }

    pub(super) fn barrier_access(&mut self, op: &OperationRef<'_, '_>, pointer: usize) -> Result<u32, Error> {
        self.access(op, pointer, ValueType::scalar(Elem::I64), 8, 0)
    }

    /// The parameter that an operand is the map of, and its shape.
    fn map(&mut self, op: &OperationRef<'_, '_>, operand: usize, writes: bool) -> Result<(u32, MapShape), Error> {
        let value = op.operand(operand).map_err(|_| self.unknown(op))?;
        let Some(&map) = self.maps.get(&value_key(value)) else {
            return Err(self.fail(op, "a tensor map must be a parameter of the kernel itself"));
        };
        match self.program.parameters.get_mut(map as usize).map(|parameter| &mut parameter.kind) {
            Some(ParameterKind::Map { shape, writable }) => {
                *writable |= writes;
                Ok((map, *shape))
            }
            _ => Err(self.unknown(op)),
        }
    }

    fn tensor_copy(
        &mut self,
        op: &OperationRef<'_, '_>,
        (map, pointer, first): (usize, usize, usize),
        writes: bool,
    ) -> Result<TensorCopyOp, Error> {
        let (map, shape) = self.map(op, map, writes)?;
        self.note_map_use(map, writes);
        let rank = shape.rank as usize;
        if op.operand_count() != first + rank {
            let given = op.operand_count().saturating_sub(first);
            return Err(self.fail(op, format!("a map of {rank} dimensions takes {rank} coordinates, not {given}")));
        }
        let element = match shape.element_bytes {
            1 => Elem::I8,
            2 => Elem::I16,
            4 => Elem::I32,
            _ => Elem::I64,
        };
        let access = self.access(op, pointer, ValueType::scalar(element), 128, 0)?;
        let address = self.operand(op, pointer)?.base;
        let zero = self.constant32(0);
        let mut coordinates = [zero; 5];
        for (index, coordinate) in coordinates.iter_mut().enumerate().take(rank) {
            *coordinate = self.operand(op, first + index)?.base;
        }
        let (barrier, barrier_access) = (zero, access);
        Ok(TensorCopyOp { map, address, coordinates, access, barrier, barrier_access, multicast: 0 })
    }

    fn tensor_load(&mut self, op: &OperationRef<'_, '_>) -> Result<AsyncOp, Error> {
        let copy = self.tensor_copy(op, (1, 0, 3), false)?;
        let barrier_access = self.barrier_access(op, 2)?;
        let barrier = self.operand(op, 2)?.base;
        let multicast = attributes::unsigned(op, "multicast").unwrap_or(0);
        Ok(AsyncOp::TensorLoad(TensorCopyOp { barrier, barrier_access, multicast, ..copy }))
    }

    fn tensor_store(&mut self, op: &OperationRef<'_, '_>) -> Result<AsyncOp, Error> {
        Ok(AsyncOp::TensorStore(self.tensor_copy(op, (0, 1, 2), true)?))
    }

    fn wgmma(&mut self, op: &OperationRef<'_, '_>) -> Result<AsyncOp, Error> {
        let ty = match attributes::string(op, "kind") {
            Some("f16") => InputType::F16,
            Some("bf16") => InputType::Bf16,
            Some("e4m3") => InputType::E4m3,
            Some("e5m2") => InputType::E5m2,
            _ => return Err(self.unknown(op)),
        };
        let [m, n, k] = ["m", "n", "k"].map(|name| attributes::unsigned(op, name).unwrap_or(0) as usize);
        let spec = WgmmaSpec::find(attributes::string(op, "kind").unwrap_or_default(), n);
        let Some(spec) = spec.filter(|spec| m == spec.shape[0] && k > 0 && k.is_multiple_of(spec.shape[2])) else {
            return Err(self.fail(op, format!("the emulator knows no wgmma of shape {m} x {n} x {k}")));
        };
        let sizes = attributes::i32_array(op, "operandSegmentSizes");
        let [count_a, 1, count_c] = sizes[..] else { return Err(self.unknown(op)) };
        let (count_a, count_c) = (count_a.max(0) as usize, count_c.max(0) as usize);
        let registers = n / 2;
        if op.result_count() != registers || count_c != if attributes::flag(op, "zero") { 0 } else { registers } {
            return Err(self.unknown(op));
        }
        let layout_a = attributes::string(op, "a_layout").unwrap_or("reg").to_owned();
        let a = if layout_a == "reg" {
            if count_a != k / spec.shape[2] * spec.a.registers() {
                return Err(self.unknown(op));
            }
            let mut fragments = Vec::new();
            for index in 0..count_a {
                fragments.push(self.operand(op, index)?.base);
            }
            OperandA::Registers(fragments)
        } else {
            OperandA::Shared(self.tile(op, (0, &layout_a), ty, (64, k), |part| (16 * part, 16))?)
        };
        let layout_b = attributes::string(op, "b_layout").unwrap_or_default().to_owned();
        let b = self.tile(op, (count_a, &layout_b), ty, (n, k), |_| (0, n))?;
        let mut c = Vec::new();
        for index in 0..count_c {
            c.push(self.operand(op, count_a + 1 + index)?.base);
        }
        let mut d = Vec::new();
        for index in 0..registers {
            d.push(self.result(op, index)?.base);
        }
        Ok(AsyncOp::Wgmma(Box::new(WgmmaOp { spec, ty, n, k, a, b, c, d })))
    }

    /// An operand in shared memory: `rows` x k, of which each warp of the warpgroup reads some rows.
    pub(super) fn tile(
        &mut self,
        op: &OperationRef<'_, '_>,
        (operand, layout): (usize, &str),
        ty: InputType,
        (rows, k): (usize, usize),
        rows_of: impl Fn(usize) -> (usize, usize),
    ) -> Result<SharedOperand, Error> {
        let known = SharedLayout::parse(layout).filter(|layout| layout.k_major() || ty.bytes() == 2);
        let Some(layout) = known else {
            return Err(self.fail(op, format!("the emulator knows no operand with the layout `{layout}`")));
        };
        let element = if ty.bytes() == 2 { Elem::F16 } else { Elem::I8 };
        let access = self.access(op, operand, ValueType::scalar(element), layout.alignment(), 0)?;
        let address = self.operand(op, operand)?.base;
        let ranges = std::array::from_fn(|part| {
            let (first, count) = rows_of(part);
            layout.ranges(ty, first, count, k)
        });
        let all = layout.ranges(ty, 0, rows, k);
        let span = all.iter().map(|&(at, len)| at + len).max().unwrap_or(0);
        Ok(SharedOperand { address, access, layout, ranges, span })
    }

    /// What a kernel wants of the tensor map that is one of its parameters.
    pub(crate) fn map_shape(&self, name: &str) -> Option<(MapShape, bool)> {
        self.params.iter().find(|parameter| parameter.name == name).and_then(|parameter| match parameter.kind {
            ParamKind::TensorMap { elem, rank, box_shape, swizzle, mutable } => {
                let element_bytes = elem.bytes() as u32;
                Some((MapShape { element_bytes, rank: rank as u32, box_shape, swizzle }, mutable))
            }
            _ => None,
        })
    }
}
