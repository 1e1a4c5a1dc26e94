//! The interpreter loop: written once, compiled for each instruction set.

use std::cell::RefCell;

use super::access;
use super::atomics::atomic;
use super::collective::{ballot, shuffle, shuffle_xor};
use super::copy::CopyError;
use super::dimensions::{beyond, mark, unmark};
use super::elementwise::UnaryOp;
use super::matrix::{load_matrix, mfma, mma};
use super::matrix_store::{gather, scatter};
use super::numbers::{LARGEST_TO_F16, Moment, nan_converted, nan_stored};
use super::order::{self, Visitor};
use super::print::{assertion, print};
use super::warp::{Action, BlockMemory, Fault, FaultKind, Frame, Stop, Warp};
use crate::emulator::asynchronous::execute::{Flow, execute, finish};
use crate::emulator::asynchronous::fault::AsyncFault;
use crate::emulator::exact::Now;
use crate::emulator::isa::{Baseline, Isa};
use crate::emulator::lanes::{Reg, Registers, half_of};
use crate::emulator::memory::{AccessFault, Touch};
use crate::emulator::numeric::fused::{fma_f32, fma_f64, fma_odd};
use crate::emulator::op::{LoopKind, Op};
use crate::emulator::program::Program;

/// Rounds of a loop on memory after which other warps have their turn.
const ROUNDS_OF_A_SPIN: u32 = 16;

/// Runs a warp until it stops.
pub(crate) type Interpreter = fn(&Program, &mut Warp, &BlockMemory<'_>) -> Stop;

/// For warps with a follower.
pub(crate) fn interpret_followed(program: &Program, warp: &mut Warp, block: &BlockMemory<'_>) -> Stop {
    interpret::<Baseline, true>(program, warp, block)
}

/// The fastest interpreter that the host can run.
pub(crate) fn interpreter() -> Interpreter {
    #[cfg(target_arch = "x86_64")]
    if crate::emulator::isa::has_avx2() {
        return interpret_avx2;
    }
    interpret_baseline
}

/// For every host.
pub(crate) fn interpret_baseline(program: &Program, warp: &mut Warp, block: &BlockMemory<'_>) -> Stop {
    interpret::<Baseline, false>(program, warp, block)
}

/// For hosts with the instructions of [`crate::emulator::isa::Avx2`], which the caller has detected.
#[cfg(target_arch = "x86_64")]
pub(crate) fn interpret_avx2(program: &Program, warp: &mut Warp, block: &BlockMemory<'_>) -> Stop {
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    fn inner(program: &Program, warp: &mut Warp, block: &BlockMemory<'_>) -> Stop {
        interpret::<crate::emulator::isa::Avx2, false>(program, warp, block)
    }
    // SAFETY: `interpreter` returns this function only where `has_avx2` holds.
    unsafe { inner(program, warp, block) }
}

/// The lanes of a wave or warp where `iv < high`.
#[inline(always)]
fn loop_test(regs: &Registers<'_>, kind: LoopKind, wave: bool, iv: Reg, high: Reg) -> u64 {
    let test = |iv, high| match kind {
        LoopKind::I32 => regs.compare::<i32>(iv, high, |x, y| x < y),
        LoopKind::U32 => regs.compare::<u32>(iv, high, |x, y| x < y),
        LoopKind::I64 => regs.compare::<i64>(iv, high, |x, y| x < y),
        LoopKind::U64 => regs.compare::<u64>(iv, high, |x, y| x < y),
    };
    let low_half = u64::from(test(iv, high));
    if wave { low_half | u64::from(test(iv + kind.slots(), high + kind.slots())) << 32 } else { low_half }
}

/// The first active lane whose step is not positive.
fn bad_step(regs: &Registers<'_>, kind: LoopKind, step: Reg, mask: u64) -> Option<(u32, i64)> {
    (0..64).filter(|lane| mask >> lane & 1 == 1).find_map(|lane| {
        let reg = step + (lane as u32 / 32) * kind.slots();
        let value = match kind {
            LoopKind::I32 => i64::from(regs.lane::<i32>(reg, lane % 32)),
            LoopKind::U32 => i64::from(regs.lane::<u32>(reg, lane % 32)),
            LoopKind::I64 | LoopKind::U64 => regs.lane::<i64>(reg, lane % 32),
        };
        (value <= 0).then_some((lane as u32, value))
    })
}

/// Whether a loop's bounds alone make it longer than the budget: the lane and the numbers.
#[inline(never)]
fn endless(program: &Program, regs: &Registers<'_>, pc: usize, mask: u64, budget: u64) -> Option<(u32, FaultKind)> {
    let &Op::For { kind, iv, high, step, end, .. } = program.ops.get(pc)? else { return None };
    let lane = mask.trailing_zeros();
    let number = |reg: Reg| {
        let (reg, lane) = (reg + lane / 32 * kind.slots(), lane as usize % 32);
        match kind {
            LoopKind::I32 => i128::from(regs.lane::<i32>(reg, lane)),
            LoopKind::U32 => i128::from(regs.lane::<u32>(reg, lane)),
            LoopKind::I64 => i128::from(regs.lane::<i64>(reg, lane)),
            LoopKind::U64 => i128::from(regs.lane::<u64>(reg, lane)),
        }
    };
    let (low, high, step) = (number(iv), number(high), number(step));
    let iterations = (high - low) / step.max(1);
    if iterations <= i128::from(budget) / 64 {
        return None;
    }
    // Operations that every iteration executes: those of no branch.
    let mut depth = 0;
    let mut least = 0;
    for op in program.ops.get(pc + 1..end as usize)? {
        match op {
            Op::If { .. } | Op::For { .. } | Op::While => depth += 1,
            Op::EndIf | Op::Next { .. } | Op::Repeat { .. } => depth -= 1,
            _ => {}
        }
        least += i128::from(depth <= 0);
    }
    (iterations * least > i128::from(budget)).then_some((lane, FaultKind::Endless { low, high, step }))
}

/// Whether an access fails since nothing wrote what it reads.
fn is_unwritten(result: &Result<(), access::AccessError>) -> bool {
    matches!(result, Err(error) if error.fault == AccessFault::Uninitialized)
}

#[cold]
#[inline(never)]
fn fault(warp: &mut Warp, pc: usize, mask: u64, lane: u32, kind: FaultKind) -> Stop {
    warp.pc = pc as u32;
    warp.mask = mask;
    Stop::Fault(Box::new(Fault { pc: pc as u32, lane, kind }))
}

#[inline(always)]
fn interpret<I: Isa, const FOLLOWED: bool>(program: &Program, warp: &mut Warp, block: &BlockMemory<'_>) -> Stop {
    let ops = program.ops.as_ptr();
    let existing = warp.existing;
    let (strict, numbers) = (block.checks.infinity, block.checks.nan || block.checks.infinity);
    let mut pc = warp.pc as usize;
    let mut mask = warp.mask;
    // Operations are counted where control jumps, by the length of what ran since the last jump.
    let mut executed = warp.executed;
    let mut since = pc;
    let mut slots = std::mem::take(&mut warp.slots);
    let mut masks = std::mem::take(&mut warp.masks);
    let mut regs = Registers::new(&mut slots, &mut masks);

    macro_rules! jump {
        ($target:expr) => {{
            executed += (pc + 1 - since) as u64;
            pc = $target as usize;
            since = pc;
            continue;
        }};
    }
    macro_rules! stop {
        ($lane:expr, $kind:expr) => {
            break fault(warp, pc, mask, $lane, $kind)
        };
    }
    // A float operation's result: is the first NaN or infinity in it?
    macro_rules! born {
        ($special:expr) => {
            if numbers && $special {
                let (regs, births) = (&regs, &mut warp.births);
                let moment = Moment { program, regs, births, pc: pc as u32, mask, strict };
                if let Some(found) = moment.inspect() {
                    let (lane, kind) = FaultKind::number(found);
                    stop!(lane, kind)
                }
            }
        };
    }
    // What takes NaN out of registers, after one was born.
    macro_rules! escape {
        ($found:expr) => {
            if warp.births.any()
                && let Some(found) = $found
            {
                let (lane, kind) = FaultKind::number(found);
                stop!(lane, kind)
            }
        };
    }
    // Counts what an access costs, when that is asked for.
    macro_rules! count_shared {
        ($address:expr, $active:expr, $access:expr, $is_read:expr) => {
            if block.checks.performance {
                let shape = program.access($access);
                warp.traffic.shared(program.target, &regs, $address, $active, shape, (pc as u32, $is_read));
            }
        };
    }
    macro_rules! count_global {
        ($address:expr, $active:expr, $access:expr) => {
            if block.checks.performance {
                let shape = program.access($access);
                warp.traffic.global(program.target, &regs, $address, $active, shape, pc as u32);
            }
        };
    }
    // Races with an access to shared memory: `$order` gets the shadow.
    macro_rules! ordered {
        ($order:expr, $access:expr, $touch:expr) => {
            if let Some(races) = block.races
                && let Err(conflict) = $order(&mut *races.borrow_mut())
            {
                stop!(conflict.lane, FaultKind::Race { conflict, access: $access, touch: $touch })
            }
        };
    }
    // Races in global memory.
    macro_rules! block_ordered {
        ($address:expr, $active:expr, $access:expr, $is_write:expr) => {
            if block.races.is_some() && !block.synchronised.get() {
                let how = (Visitor { warp: warp.index, pc: pc as u32 }, $is_write);
                let shape = ($access, program.access($access));
                if let Err((lane, kind)) = order::global(block, &regs, $address, $active, shape, how) {
                    stop!(lane, kind)
                }
            }
        };
    }
    // An access's outcome; `half` places the lane within the wave.
    macro_rules! checked {
        ($result:expr, $access:expr, $shared:expr, $action:expr) => {
            if let Err(error) = $result {
                let half = program.access($access).half;
                let kind = FaultKind::Access { error, access: $access, shared: $shared, action: $action };
                stop!(error.lane + 32 * u32::from(half), kind)
            }
        };
    }
    macro_rules! whole_warp {
        ($kind:ident) => {
            if mask != existing {
                stop!(mask.trailing_zeros(), FaultKind::$kind { missing: existing & !mask })
            }
        };
    }
    macro_rules! leave {
        ($next:expr, $stop:expr) => {{
            warp.pc = $next as u32;
            warp.mask = mask;
            break $stop;
        }};
    }

    // What is shown to the follower of an operation.
    macro_rules! now {
        () => {
            Now {
                program,
                regs: &regs,
                memory: block.exact,
                checks: &block.checks,
                rank: block.rank,
                pc: pc as u32,
                mask,
            }
        };
    }

    let stop = loop {
        debug_assert!(pc < program.ops.len());
        if FOLLOWED && let Some(follower) = &mut warp.follower {
            // What the last operation gave is looked at here, wherever it led.
            let broken = follower.after(&now!()).or_else(|| follower.before(&now!()));
            if let Some((lane, kind)) = broken {
                stop!(lane, kind)
            }
        }
        // SAFETY: `Program::verify` has checked that jumps lead to ops and that the last op is `End`.
        match unsafe { *ops.add(pc) } {
            Op::Unary { op, d, a } => {
                regs.unary(op, d, a);
                let from_f32 = op.bears_f32() && op != UnaryOp::F64ToF32;
                born!(
                    from_f32 && regs.any_birth(d, [a])
                        || op == UnaryOp::F64ToF32 && regs.any_special(d)
                        || op.bears_f64() && regs.any_special_f64(d)
                );
                if op.swallows_nan() {
                    let lanes = (mask, program.half(pc as u32));
                    escape!(nan_converted(&regs, &warp.births, a, lanes, pc as u32));
                }
            }
            Op::Binary { op, d, a, b } => {
                regs.binary(op, d, a, b);
                born!(op.bears_f32() && regs.any_birth(d, [a, b]) || op.bears_f64() && regs.any_special_f64(d));
            }
            Op::Index { op, signed, d, a, b } => {
                if !FOLLOWED && block.checks.overflow {
                    let wrapped = regs.wraps(op, signed, a, b);
                    if wrapped != 0 && wrapped & half_of(mask, program.half(pc as u32)) != 0 {
                        leave!(pc, Stop::Wraps)
                    }
                }
                regs.binary(op, d, a, b);
            }
            Op::AddF32 { d, a, b } => {
                regs.map2(d, a, b, |x: f32, y: f32| x + y);
                born!(regs.any_birth(d, [a, b]));
            }
            Op::SubF32 { d, a, b } => {
                regs.map2(d, a, b, |x: f32, y: f32| x - y);
                born!(regs.any_birth(d, [a, b]));
            }
            Op::MulF32 { d, a, b } => {
                regs.map2(d, a, b, |x: f32, y: f32| x * y);
                born!(regs.any_birth(d, [a, b]));
            }
            Op::FmaF32 { d, a, b, c } => {
                regs.map3::<f32>(d, a, b, c, fma_f32::<I>);
                born!(regs.any_birth(d, [a, b, c]));
            }
            Op::FmaF64 { d, a, b, c } => {
                regs.map3::<f64>(d, a, b, c, fma_f64::<I>);
                born!(regs.any_special_f64(d));
            }
            Op::FmaOdd { d, a, b, c } => {
                regs.map3::<f32>(d, a, b, c, fma_odd);
                born!(regs.any_special(d));
            }
            Op::Divide { op, half, d, a, b } => {
                let zero = regs.divide(op, d, a, b, half_of(mask, half));
                if zero != 0 {
                    stop!(zero.trailing_zeros() + 32 * u32::from(half), FaultKind::DivisionByZero)
                }
            }
            Op::Compare { op, negate, half, d, a, b } => {
                let bits = regs.compare_op(op, a, b) ^ if negate { u32::MAX } else { 0 };
                regs.set_half_mask(d, half, bits);
            }
            Op::Select32 { half, d, mask, a, b } => {
                let bits = half_of(regs.mask(mask), half);
                regs.blend32(d, a, b, bits);
            }
            Op::Select64 { half, d, mask, a, b } => {
                let bits = half_of(regs.mask(mask), half);
                regs.blend64(d, a, b, bits);
            }
            Op::F16LowToF32 { d, a } => widen_f16::<I, 0>(&mut regs, d, a),
            Op::F16HighToF32 { d, a } => widen_f16::<I, 16>(&mut regs, d, a),
            Op::PackF16 { d, low, high } => {
                pack_f16::<I>(&mut regs, d, low, high);
                born!(regs.any_above(low, LARGEST_TO_F16) || regs.any_above(high, LARGEST_TO_F16));
            }
            Op::JoinWords { d, a } => {
                let (low, high) = (regs.read::<u32>(a), regs.read::<u32>(a + 1));
                regs.write::<u64>(d, std::array::from_fn(|i| u64::from(low[i]) | u64::from(high[i]) << 32));
            }
            Op::SplitWords { d, a } => {
                let lanes = regs.read::<u64>(a);
                regs.write(d, lanes.map(|x| x as u32));
                regs.write(d + 1, lanes.map(|x| (x >> 32) as u32));
            }
            Op::Address64 { d, base, index, scale } => {
                regs.map2::<u64, u64, u64>(d, base, index, |base, index| {
                    base.wrapping_add(index.wrapping_mul(u64::from(scale)))
                });
            }
            Op::Beyond { table, half } => {
                if let Some(dimension) = program.dimensions.get(table as usize) {
                    beyond(&mut regs, dimension, half, mask, warp.outside.get_mut(table as usize));
                }
            }
            Op::MarkBeyond { d, table, half } => {
                if let Some(dimension) = program.dimensions.get(table as usize) {
                    mark(&mut regs, d, dimension, table, half);
                }
            }
            Op::Unmark { d } => unmark(&mut regs, d),
            Op::Address32 { d, base, index, scale } => {
                regs.map2::<u32, u32, u32>(d, base, index, |base, index| base.wrapping_add(index.wrapping_mul(scale)));
            }

            Op::Move { d, a, count } => {
                for i in 0..count {
                    let lanes = regs.read::<u32>(a + i);
                    regs.write(d + i, lanes);
                }
            }
            Op::MoveMasked { half, d, a, count } => {
                let bits = half_of(mask, half);
                for i in 0..count {
                    if bits == u32::MAX {
                        let lanes = regs.read::<u32>(a + i);
                        regs.write(d + i, lanes);
                    } else {
                        regs.blend32(d + i, a + i, d + i, bits);
                    }
                }
            }
            Op::MoveMasked64 { half, d, a, count } => {
                let bits = half_of(mask, half);
                for i in 0..count {
                    regs.blend64(d + 2 * i, a + 2 * i, d + 2 * i, bits);
                }
            }
            Op::MaskMove { d, a } => regs.set_mask(d, regs.mask(a)),
            Op::MaskMoveMasked { d, a } => regs.set_mask(d, regs.mask(a) & mask | regs.mask(d) & !mask),
            Op::MaskAnd { d, a, b } => regs.set_mask(d, regs.mask(a) & regs.mask(b)),
            Op::MaskOr { d, a, b } => regs.set_mask(d, regs.mask(a) | regs.mask(b)),
            Op::MaskXor { d, a, b } => regs.set_mask(d, regs.mask(a) ^ regs.mask(b)),
            Op::MaskNot { d, a } => regs.set_mask(d, !regs.mask(a)),
            Op::MaskSelect { d, mask: choice, a, b } => {
                let choice = regs.mask(choice);
                regs.set_mask(d, regs.mask(a) & choice | regs.mask(b) & !choice);
            }

            Op::LoadGlobal { d, address, mask: where_, access } => {
                let active = mask & regs.mask(where_);
                let result = access::load(&block.global, &mut regs, d, address, active, program.access(access));
                checked!(result, access, false, Action::Read);
                block_ordered!(address, active, access, false);
                count_global!(address, active, access);
            }
            Op::LoadShared { d, address, mask: where_, access } => {
                let active = mask & regs.mask(where_);
                let result = access::load(block.shared, &mut regs, d, address, active, program.access(access));
                let visit = (Visitor { warp: warp.index, pc: pc as u32 }, Touch::Read);
                let shape = program.access(access);
                if program.has_async && is_unwritten(&result) {
                    // A copy under way is the better answer.
                    ordered!(
                        |races| order::shared(races, block.shared, &regs, (d, address), active, shape, visit),
                        access,
                        Touch::Read
                    );
                }
                checked!(result, access, true, Action::Read);
                count_shared!(address, active, access, true);
                ordered!(
                    |races| order::shared(races, block.shared, &regs, (d, address), active, shape, visit),
                    access,
                    Touch::Read
                );
            }
            Op::StoreGlobal { value, address, mask: where_, access } => {
                let active = mask & regs.mask(where_);
                escape!(nan_stored(&regs, &warp.births, value, active, program.access(access), pc as u32));
                let result = access::store(&block.global, &mut regs, value, address, active, program.access(access));
                checked!(result, access, false, Action::Write);
                block_ordered!(address, active, access, true);
                count_global!(address, active, access);
            }
            Op::StoreShared { value, address, mask: where_, access } => {
                let active = mask & regs.mask(where_);
                escape!(nan_stored(&regs, &warp.births, value, active, program.access(access), pc as u32));
                count_shared!(address, active, access, false);
                // The shadow is asked while the old bytes are still there; broken bounds come first.
                let shape = program.access(access);
                let conflict = block.races.and_then(|races| {
                    let (races, visit) =
                        (&mut *races.borrow_mut(), (Visitor { warp: warp.index, pc: pc as u32 }, Touch::Write));
                    order::shared(races, block.shared, &regs, (value, address), active, shape, visit).err()
                });
                let result = access::store(block.shared, &mut regs, value, address, active, shape);
                checked!(result, access, true, Action::Write);
                if let Some(conflict) = conflict {
                    stop!(conflict.lane, FaultKind::Race { conflict, access, touch: Touch::Write })
                }
            }
            Op::BufferMask { d, mask: where_, offset, bytes, access } => {
                access::buffer_mask(&mut regs, d, where_, offset, bytes, program.access(access));
            }
            Op::Atomic { table } => {
                let op = program.atomic(table);
                let access = program.access(op.access);
                escape!(nan_stored(&regs, &warp.births, op.value, mask, access, pc as u32));
                let result = atomic(&block.global, block.shared, &mut regs, op, mask, access);
                checked!(result, op.access, op.shared, Action::Update);
                if op.shared {
                    let visit = (Visitor { warp: warp.index, pc: pc as u32 }, Touch::Atomic);
                    ordered!(
                        |races| order::atomic(races, &regs, (op, program.has_fence), mask, access, visit.0),
                        op.access,
                        Touch::Atomic
                    );
                } else {
                    if block.races.is_some() {
                        let visitor = Visitor { warp: warp.index, pc: pc as u32 };
                        let how = (visitor, block.time, block.synchronised.get());
                        let result = order::global_atomic(&block.global, &regs, op, mask, access, how);
                        if let Err((lane, conflict)) = result {
                            let address = regs.lane::<u64>(op.address, lane as usize % 32);
                            let (access, is_write) = (op.access, true);
                            stop!(lane, FaultKind::BlockRace { conflict, address, access, is_write })
                        }
                    }
                    block.synchronised.set(true);
                }
            }
            Op::CopyAsync { table } => {
                let op = program.copy(table);
                let shapes = (program.access(op.to), program.access(op.from));
                let started = warp.copies.start((&block.global, block.shared), &regs, op, shapes, mask, pc as u32);
                match started {
                    Ok(()) => {
                        ordered!(|races| warp.copies.note_start(races, warp.index, op), op.to, Touch::CopyStart);
                    }
                    Err(CopyError::Source(error)) => checked!(Err::<(), _>(error), op.from, false, Action::Read),
                    Err(CopyError::Destination(error)) => checked!(Err::<(), _>(error), op.to, true, Action::Write),
                    Err(CopyError::NotUniform { lane, values }) => {
                        let what = "destination of a copy to LDS";
                        stop!(lane, FaultKind::Async(Box::new(AsyncFault::NotUniform { what, values })))
                    }
                }
            }
            Op::CopyCommit => warp.copies.commit(&block.global, block.shared),
            Op::CopyWait { groups } => {
                let mut races = block.races.map(RefCell::borrow_mut);
                let races = races.as_deref_mut().map(|races| (races, warp.index));
                warp.copies.wait(groups as usize, &block.global, block.shared, races);
            }
            Op::LoadMatrix { table } => {
                whole_warp!(PartialWarp);
                let op = program.matrix_load(table);
                let result = load_matrix(block.shared, &mut regs, op, program.access(op.access));
                let visitor = Visitor { warp: warp.index, pc: pc as u32 };
                if program.has_async && is_unwritten(&result) {
                    ordered!(|races| order::matrix(races, &regs, op, visitor), op.access, Touch::Read);
                }
                checked!(result, op.access, true, Action::Read);
                if block.checks.performance {
                    warp.traffic.matrix(&regs, (op.address, usize::from(op.count)), pc as u32);
                }
                ordered!(|races| order::matrix(races, &regs, op, visitor), op.access, Touch::Read);
            }
            Op::StoreMatrix { table } => {
                whole_warp!(PartialWarp);
                let op = program.matrix_store(table);
                let shape = program.access(op.value);
                escape!(op.values.iter().find_map(|&value| nan_stored(
                    &regs,
                    &warp.births,
                    value,
                    mask,
                    shape,
                    pc as u32
                )));
                match gather(block.shared, &regs, op, program.access(op.access)) {
                    Ok(rows) => {
                        let visitor = Visitor { warp: warp.index, pc: pc as u32 };
                        ordered!(
                            |races| order::matrix_store(races, block.shared, &rows, visitor),
                            op.access,
                            Touch::Write
                        );
                        scatter(block.shared, &rows);
                    }
                    Err(error) => checked!(Err::<(), _>(error), op.access, true, Action::Write),
                }
                if block.checks.performance {
                    warp.traffic.matrix(&regs, (op.address, op.values.len()), pc as u32);
                }
            }
            Op::Mma { table } => {
                whole_warp!(PartialWarp);
                let op = program.mma(table);
                mma::<I>(&mut regs, op);
                born!(regs.any_special_of(&op.d));
            }
            Op::Mfma { table } => {
                whole_warp!(PartialWarp);
                let op = program.mfma(table);
                mfma(&mut regs, op);
                born!(op.d.iter().take(op.registers()).any(|&d| regs.any_special_of(&[d, d + 1])));
            }

            Op::Atom { table } => {
                whole_warp!(PartialWarp);
                let op = program.atom(table);
                op.run(&mut regs);
                born!(op.any_special(&regs));
            }

            Op::ShuffleXor { d, a, distance } => {
                if let Err(read) = shuffle_xor(&mut regs, d, a, distance, mask) {
                    stop!(read.lane, FaultKind::BadRead(read.kind))
                }
            }
            Op::Shuffle { mode, wave, d, a, index } => {
                if let Err(read) = shuffle(&mut regs, mode, wave, d, a, index, mask) {
                    stop!(read.lane, FaultKind::BadRead(read.kind))
                }
            }
            Op::Ballot { wave, d, mask: condition } => {
                let bits = regs.mask(condition) & mask;
                ballot(&mut regs, wave, d, bits);
            }
            Op::Elect { d } => regs.set_mask(d, mask & mask.wrapping_neg()),
            Op::WarpSync => {
                whole_warp!(DivergentBarrier);
                if let Some(races) = block.races {
                    races.borrow_mut().warp_sync(warp.index);
                }
            }
            Op::Assert { mask: holds, message } => {
                let failed = mask & !regs.mask(holds);
                if failed != 0 {
                    let lane = failed.trailing_zeros();
                    let text = program.messages.get(message as usize).map(|message| assertion(&regs, message, lane));
                    stop!(lane, FaultKind::Assert { text: text.unwrap_or_default() })
                }
            }
            Op::Print { table } => {
                if let Some(op) = program.prints.get(table as usize) {
                    print(&regs, op, mask, &mut warp.printed, &mut warp.printed_dropped);
                }
            }

            Op::If { cond, otherwise } => {
                let holds = regs.mask(cond);
                if block.checks.performance {
                    warp.traffic.branch(pc as u32, mask, holds);
                }
                warp.frames.push(Frame { mask, other: mask & !holds });
                mask &= holds;
                if mask == 0 {
                    jump!(otherwise)
                }
            }
            Op::Else { end } => {
                mask = warp.frames.last().map_or(0, |frame| frame.other);
                if mask == 0 {
                    jump!(end)
                }
            }
            Op::EndIf => mask = warp.frames.pop().map_or(0, |frame| frame.mask),
            Op::For { kind, wave, iv, low, high, step, end } => {
                if let Some((lane, step)) = bad_step(&regs, kind, step, mask) {
                    stop!(lane, FaultKind::LoopStep { step })
                }
                for i in 0..kind.slots() << u32::from(wave) {
                    let lanes = regs.read::<u32>(low + i);
                    regs.write(iv + i, lanes);
                }
                let inside = mask & loop_test(&regs, kind, wave, iv, high);
                if inside == 0 {
                    jump!(end)
                }
                if let Some((lane, kind)) = endless(program, &regs, pc, inside, block.checks.op_budget) {
                    stop!(lane, kind)
                }
                warp.frames.push(Frame { mask, other: 0 });
                mask = inside;
            }
            Op::Next { kind, wave, iv, high, step, body } => {
                for half in 0..1 + u32::from(wave) {
                    let at = half * kind.slots();
                    match kind.slots() {
                        1 => regs.map2::<u32, u32, u32>(iv + at, iv + at, step + at, u32::wrapping_add),
                        _ => regs.map2::<u64, u64, u64>(iv + at, iv + at, step + at, u64::wrapping_add),
                    }
                }
                let inside = mask & loop_test(&regs, kind, wave, iv, high);
                if inside != 0 {
                    if executed > block.checks.op_budget {
                        stop!(inside.trailing_zeros(), FaultKind::OpBudget { executed })
                    }
                    mask = inside;
                    jump!(body)
                }
                mask = warp.frames.pop().map_or(0, |frame| frame.mask);
            }
            Op::While => {
                if warp.progress.is_looking() {
                    warp.progress.enters(pc as u32 + 1);
                }
                warp.frames.push(Frame { mask, other: 0 });
            }
            Op::WhileTest { cond, end } => {
                mask &= regs.mask(cond);
                if mask == 0 {
                    mask = warp.frames.pop().map_or(0, |frame| frame.mask);
                    jump!(end)
                }
            }
            Op::Repeat { body, watch } => {
                if executed > block.checks.op_budget {
                    stop!(mask.trailing_zeros(), FaultKind::OpBudget { executed })
                }
                let watch = program.watches.get(watch as usize);
                if executed > warp.progress.from && warp.progress.is_stuck(watch, &regs, mask, body, executed) {
                    stop!(mask.trailing_zeros(), FaultKind::Stuck { executed })
                }
                if watch.is_none() {
                    warp.spins = warp.spins.wrapping_add(1);
                    if warp.spins.is_multiple_of(ROUNDS_OF_A_SPIN) {
                        leave!(body, Stop::Spins)
                    }
                }
                jump!(body)
            }

            Op::Barrier => {
                whole_warp!(DivergentBarrier);
                if warp.copies.any_to_lds() {
                    let mut races = block.races.map(RefCell::borrow_mut);
                    let races = races.as_deref_mut().map(|races| (races, warp.index));
                    warp.copies.barrier(&block.global, block.shared, races);
                }
                leave!(pc + 1, Stop::Barrier)
            }
            Op::NamedSync { id, threads } => {
                whole_warp!(DivergentBarrier);
                leave!(pc + 1, Stop::NamedSync { id, threads })
            }
            Op::NamedArrive { id, threads } => {
                whole_warp!(DivergentBarrier);
                leave!(pc + 1, Stop::NamedArrive { id, threads })
            }
            Op::Async { table } => match execute::<I>(program, table, warp, &mut regs, block, (mask, pc as u32)) {
                Flow::Next => {
                    if block.checks.performance {
                        warp.traffic.asynchronous(program, block.maps, (table, pc as u32), mask);
                    }
                }
                Flow::Wait(wait) => leave!(pc, Stop::Wait(wait)),
                Flow::Stop(stop) => leave!(pc + 1, stop),
                Flow::Fault(lane, kind) => stop!(lane, kind),
            },
            Op::End => {
                if program.has_async
                    && let Some((at, kind)) = finish(warp, block)
                {
                    stop!(0, FaultKind::At { pc: at, kind: Box::new(kind) })
                }
                if block.checks.copies
                    && let Some(copy) = warp.copies.first_pending()
                {
                    stop!(0, FaultKind::CopyInFlight { pc: copy })
                }
                leave!(pc, Stop::Done)
            }
        }
        pc += 1;
    };
    warp.executed = executed + (pc + 1 - since) as u64;
    warp.slots = slots;
    warp.masks = masks;
    stop
}

/// The low (`SHIFT` 0) or high (16) binary16 of each word to binary32.
#[inline(always)]
fn widen_f16<I: Isa, const SHIFT: u32>(regs: &mut Registers<'_>, d: Reg, a: Reg) {
    let words = regs.read::<u32>(a);
    let target = regs.pointer_mut(d).cast::<f32>();
    for chunk in 0..4 {
        let halves: [u16; 8] = std::array::from_fn(|i| (words[8 * chunk + i] >> SHIFT) as u16);
        // SAFETY: the slot holds 32 floats; the ISA was detected before it was chosen.
        unsafe { I::widen_f16x8(halves.as_ptr(), target.add(8 * chunk)) };
    }
}

/// Two binary32 values as the binary16 halves of words.
#[inline(always)]
fn pack_f16<I: Isa>(regs: &mut Registers<'_>, d: Reg, low: Reg, high: Reg) {
    let mut words = [0_u32; 32];
    let (low, high) = (regs.pointer(low).cast::<f32>(), regs.pointer(high).cast::<f32>());
    for chunk in 0..4 {
        let (mut lows, mut highs) = ([0_u16; 8], [0_u16; 8]);
        // SAFETY: each slot holds 32 floats; the ISA was detected before it was chosen.
        unsafe {
            I::narrow_f16x8(low.add(8 * chunk), lows.as_mut_ptr());
            I::narrow_f16x8(high.add(8 * chunk), highs.as_mut_ptr());
        }
        for i in 0..8 {
            words[8 * chunk + i] = u32::from(lows[i]) | u32::from(highs[i]) << 16;
        }
    }
    regs.write(d, words);
}
