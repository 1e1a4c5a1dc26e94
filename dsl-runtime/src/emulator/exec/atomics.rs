//! Read-modify-write operations. Lanes act in order; on global memory each is one atomic operation of
//! the host, since other blocks run at the same time. All orderings are at least as strong as asked:
//! within a block the emulator is sequential, and between blocks host atomics on one cell are coherent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use super::access::AccessError;
use crate::emulator::lanes::{Registers, half_of};
use crate::emulator::memory::{AccessFault, Bytes, GlobalMemory, GlobalView, Memory, Region, SharedMemory};
use crate::emulator::numeric::{math, narrow};
use crate::emulator::op::{Access, AtomicKind, AtomicOp, AtomicType};

/// Serialises 64-bit operations on global memory, whose cells have 32 bits.
static WIDE: Mutex<()> = Mutex::new(());

/// The new value of an element of `bytes` bytes.
pub(crate) fn combine(op: &AtomicOp, bytes: u32, old: u64, value: u64, expected: u64) -> u64 {
    let bits = 8 * bytes;
    let mask = u64::MAX >> (64 - bits);
    let signed = |x: u64| (x << (64 - bits)) as i64 >> (64 - bits);
    let float = |f32_op: fn(f32, f32) -> f32, f64_op: fn(f64, f64) -> f64| match op.ty {
        AtomicType::F64 => f64_op(f64::from_bits(old), f64::from_bits(value)).to_bits(),
        AtomicType::F32 | AtomicType::Integer => {
            u64::from(f32_op(f32::from_bits(old as u32), f32::from_bits(value as u32)).to_bits())
        }
        AtomicType::F16 => {
            let sum = f32_op(narrow::f16_to_f32(old as u16), narrow::f16_to_f32(value as u16));
            u64::from(narrow::f32_to_f16(sum))
        }
        AtomicType::Bf16 => {
            let sum = f32_op(narrow::bf16_to_f32(old as u16), narrow::bf16_to_f32(value as u16));
            u64::from(narrow::f32_to_bf16(sum))
        }
    };
    let new = match op.kind {
        AtomicKind::Add => old.wrapping_add(value),
        AtomicKind::Sub => old.wrapping_sub(value),
        AtomicKind::MaxS => signed(old).max(signed(value)) as u64,
        AtomicKind::MinS => signed(old).min(signed(value)) as u64,
        AtomicKind::MaxU => old.max(value),
        AtomicKind::MinU => old.min(value),
        AtomicKind::And => old & value,
        AtomicKind::Or => old | value,
        AtomicKind::Xor => old ^ value,
        AtomicKind::Exchange => value,
        AtomicKind::AddF => float(|a, b| a + b, |a, b| a + b),
        AtomicKind::MaxF => float(math::maxnum_f32, math::maxnum_f64),
        AtomicKind::MinF => float(math::minnum_f32, math::minnum_f64),
        AtomicKind::CompareExchange => {
            if old == expected {
                value
            } else {
                old
            }
        }
    };
    new & mask
}

/// A region whose elements can be replaced at once.
trait Replace: Region {
    /// # Safety
    /// The range was checked and is aligned to its size.
    unsafe fn replace(&self, at: usize, bytes: u32, f: impl Fn(u64) -> u64) -> u64;
}

impl Replace for SharedMemory {
    unsafe fn replace(&self, at: usize, bytes: u32, f: impl Fn(u64) -> u64) -> u64 {
        // SAFETY: as the caller promises. One thread uses the memory.
        unsafe {
            match bytes {
                1 => {
                    let old = u64::from(self.load_u8(at));
                    self.store_u8(at, f(old) as u8);
                    old
                }
                2 => {
                    let old = u64::from(self.load_u16(at));
                    self.store_u16(at, f(old) as u16);
                    old
                }
                4 => {
                    let [old] = self.load_words(at);
                    self.store_words(at, [f(u64::from(old)) as u32]);
                    u64::from(old)
                }
                _ => {
                    let [low, high] = self.load_words(at);
                    let old = u64::from(low) | u64::from(high) << 32;
                    let new = f(old);
                    self.store_words(at, [new as u32, (new >> 32) as u32]);
                    old
                }
            }
        }
    }
}

impl Replace for GlobalView<'_> {
    unsafe fn replace(&self, at: usize, bytes: u32, f: impl Fn(u64) -> u64) -> u64 {
        if bytes == 8 {
            let _turn = WIDE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            // SAFETY: as the caller promises. Plain stores to the same element may tear: they race.
            unsafe {
                let [low, high] = self.load_words(at);
                let old = u64::from(low) | u64::from(high) << 32;
                let new = f(old);
                self.store_words(at, [new as u32, (new >> 32) as u32]);
                return old;
            }
        }
        // SAFETY: as the caller promises.
        let cell: &AtomicU32 = unsafe { self.cell(at) };
        let shift = 8 * (at as u32 & 3);
        let mask = (u64::MAX >> (64 - 8 * bytes)) as u32;
        let mut old = cell.load(Ordering::Relaxed);
        loop {
            let element = old >> shift & mask;
            let new = old & !(mask << shift) | (f(u64::from(element)) as u32 & mask) << shift;
            match cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return u64::from(element),
                Err(now) => old = now,
            }
        }
    }
}

/// Executes the operation on one address space.
fn on<M: Memory>(
    memory: &M,
    regs: &mut Registers<'_>,
    op: &AtomicOp,
    active: u64,
    access: &Access,
) -> Result<(), AccessError>
where
    M::Region: Replace,
{
    let addresses = regs.read::<M::Address>(op.address);
    let (bytes, wide) = (access.bytes, access.bytes == 8);
    let mut rest = half_of(active, access.half);
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize & 31;
        rest &= rest - 1;
        let blame = |fault: AccessFault| AccessError { fault, lane: lane as u32, address: addresses[lane].into() };
        let (region, offset) = memory.region(addresses[lane]);
        let at = region.check_range(offset, bytes as usize, access).map_err(blame)?;
        region.check_writable().map_err(blame)?;
        region.check_written(at, bytes as usize).map_err(blame)?;
        let mask = u64::MAX >> (64 - 8 * bytes);
        let operand = |reg| {
            if wide { regs.lane::<u64>(reg, lane) } else { u64::from(regs.lane::<u32>(reg, lane)) & mask }
        };
        let (value, expected) = (operand(op.value), operand(op.expected));
        // SAFETY: the range was checked; the decoder asks for natural alignment.
        let old = unsafe { region.replace(at, bytes, |old| combine(op, bytes, old, value, expected)) };
        if wide {
            regs.set_lane::<u64>(op.d, lane, old);
        } else {
            regs.set_lane::<u32>(op.d, lane, old as u32);
        }
    }
    Ok(())
}

/// Executes one read-modify-write.
#[inline(never)]
pub(crate) fn atomic(
    global: &GlobalMemory<'_>,
    shared: &SharedMemory,
    regs: &mut Registers<'_>,
    op: &AtomicOp,
    active: u64,
    access: &Access,
) -> Result<(), AccessError> {
    if op.shared { on(shared, regs, op, active, access) } else { on(global, regs, op, active, access) }
}
