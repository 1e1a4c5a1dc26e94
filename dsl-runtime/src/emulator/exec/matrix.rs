//! Tensor-core operations on whole warps, with the register layouts of the instruction sets.
//!
//! Sums run over k in order, in f32, one product at a time: neither NVIDIA's truncation nor CDNA's
//! groups of eight is modelled, so results agree with hardware within rounding, and on every host bit
//! for bit.

use super::access::AccessError;
use crate::emulator::isa::Isa;
use crate::emulator::lanes::{Reg, Registers, Slot};
use crate::emulator::memory::{Bytes, Region, SharedMemory};
use crate::emulator::numeric::narrow;
use crate::emulator::op::{Access, MatrixLoadOp, MatrixType, MfmaOp, MmaOp};

/// Transposes 8 x 8 elements of 16 bits.
#[inline(always)]
pub(crate) fn transpose8(rows: [[u16; 8]; 8]) -> [[u16; 8]; 8] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64; `[u16; 8]` and `__m128i` are plain bytes of one size.
    unsafe {
        use std::arch::x86_64::{
            __m128i, _mm_unpackhi_epi16, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi16,
            _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        };
        let r: [__m128i; 8] = std::mem::transmute(rows);
        // Words of two rows, then of four, then of eight.
        let low = |i: usize| _mm_unpacklo_epi16(r[i], r[i + 1]);
        let high = |i: usize| _mm_unpackhi_epi16(r[i], r[i + 1]);
        let quads = |i: usize| {
            let (a, b, c, d) = (low(i), high(i), low(i + 2), high(i + 2));
            [_mm_unpacklo_epi32(a, c), _mm_unpackhi_epi32(a, c), _mm_unpacklo_epi32(b, d), _mm_unpackhi_epi32(b, d)]
        };
        let (top, bottom) = (quads(0), quads(4));
        let pair = |i: usize| [_mm_unpacklo_epi64(top[i], bottom[i]), _mm_unpackhi_epi64(top[i], bottom[i])];
        std::mem::transmute([pair(0), pair(1), pair(2), pair(3)])
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
}

/// `ldmatrix`: lane `8 i + j` names row j of matrix i. In a slot read as 64 halves the fragment is the
/// matrix itself, row after row (PTX ISA, ldmatrix).
#[inline(always)]
pub(crate) fn load_matrix(
    memory: &SharedMemory,
    regs: &mut Registers<'_>,
    op: &MatrixLoadOp,
    access: &Access,
) -> Result<(), AccessError> {
    let addresses = regs.read::<u32>(op.address);
    for matrix in 0..usize::from(op.count).min(4) {
        let mut rows = [[0_u16; 8]; 8];
        for (row, out) in rows.iter_mut().enumerate() {
            let lane = 8 * matrix + row;
            let address = addresses[lane];
            let at = memory
                .check_range(u64::from(address), 16, access)
                .and_then(|at| memory.check_written(at, 16).map(|()| at))
                .map_err(|fault| AccessError { fault, lane: lane as u32, address: address.into() })?;
            // SAFETY: the range was checked, and its start is a multiple of 16.
            let words: [u32; 4] = unsafe { memory.load_words(at) };
            *out = bytemuck::cast(words);
        }
        let rows = if op.transposed { transpose8(rows) } else { rows };
        regs.write::<u32>(op.d[matrix], bytemuck::cast(rows));
    }
    Ok(())
}

/// Eight numbers of a 16-bit type to f32.
///
/// # Safety
/// As for [`Isa::widen_f16x8`].
#[inline(always)]
pub(crate) unsafe fn widen8<I: Isa>(ty: MatrixType, source: *const u16, target: *mut f32) {
    // SAFETY: as the caller promises.
    unsafe {
        if ty == MatrixType::F16 {
            I::widen_f16x8(source, target);
        } else {
            let bits = source.cast::<[u16; 8]>().read_unaligned();
            target.cast::<[f32; 8]>().write_unaligned(bits.map(narrow::bf16_to_f32));
        }
    }
}

/// Order of B's columns while the product runs: the even ones lie in `c0` and `c2`, the odd ones in
/// `c1` and `c3`, so that a row of the sums is one load from each slot.
pub(crate) const COLUMNS: [usize; 8] = [0, 2, 4, 6, 1, 3, 5, 7];

/// Operands of m16n8kN in f32, k in panels of 8.
struct Dense {
    /// `[panel][row][k]`.
    a: [[[f32; 8]; 16]; 2],
    /// `[panel][k][column in COLUMNS' order]`.
    b: [[[f32; 8]; 8]; 2],
}

/// `mma.sync` of m16n8k8 and m16n8k16 (PTX ISA, "Matrix fragments for mma.m16n8k16", "..k8").
#[inline(always)]
pub(crate) fn mma<I: Isa>(regs: &mut Registers<'_>, op: &MmaOp) {
    let mut dense = Dense { a: [[[0.0; 8]; 16]; 2], b: [[[0.0; 8]; 8]; 2] };
    match op.ty {
        MatrixType::Tf32 => {
            gather_tf32(regs, op, &mut dense);
            product::<I, false>(regs, op, &dense, 1);
        }
        ty => {
            let panels = if op.k == 16 { 2 } else { 1 };
            for panel in 0..panels {
                gather_panel::<I>(regs, op, ty, panel, &mut dense);
            }
            // Products of two f16 are exact in f32, those of bf16 only away from its ends.
            if ty == MatrixType::F16 {
                product::<I, true>(regs, op, &dense, panels);
            } else {
                product::<I, false>(regs, op, &dense, panels);
            }
        }
    }
}

/// One panel of 8 k: a register of A is 8 x 8 elements, row by row, and one of B is B transposed.
#[inline(always)]
fn gather_panel<I: Isa>(regs: &Registers<'_>, op: &MmaOp, ty: MatrixType, panel: usize, dense: &mut Dense) {
    for half in 0..2 {
        let source = regs.pointer(op.a[2 * panel + half]).cast::<u16>();
        for row in 0..8 {
            // SAFETY: the slot holds 64 halves; the target has 8 floats.
            unsafe { widen8::<I>(ty, source.add(8 * row), dense.a[panel][8 * half + row].as_mut_ptr()) };
        }
    }
    let columns: [[u16; 8]; 8] = bytemuck::cast(regs.read::<u32>(op.b[panel]));
    let by_k = transpose8(COLUMNS.map(|column| columns[column]));
    for (k, row) in by_k.iter().enumerate() {
        // SAFETY: both are arrays of 8.
        unsafe { widen8::<I>(ty, row.as_ptr(), dense.b[panel][k].as_mut_ptr()) };
    }
}

/// m16n8k8 of tf32: lane `4 g + t` holds A's (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4) and B's
/// (t, g), (t + 4, g). The low 13 bits of each operand are ignored.
#[inline(always)]
fn gather_tf32(regs: &Registers<'_>, op: &MmaOp, dense: &mut Dense) {
    let element = |reg: Reg, lane: usize| f32::from_bits(regs.lane::<u32>(reg, lane) & 0xffff_e000);
    for lane in 0..32 {
        let (group, thread) = (lane / 4, lane % 4);
        for (i, &reg) in op.a.iter().enumerate() {
            dense.a[0][group + 8 * (i % 2)][thread + 4 * (i / 2)] = element(reg, lane);
        }
        let place = COLUMNS.iter().position(|&column| column == group).unwrap_or(0);
        for (i, &reg) in op.b.iter().enumerate() {
            dense.b[0][thread + 4 * i][place] = element(reg, lane);
        }
    }
}

/// `d = a * b + c`, eight rows of sums at a time.
#[inline(always)]
fn product<I: Isa, const EXACT: bool>(regs: &mut Registers<'_>, op: &MmaOp, dense: &Dense, panels: usize) {
    for half in 0..2 {
        let (even, odd) = (regs.pointer(op.c[2 * half]).cast::<f32>(), regs.pointer(op.c[2 * half + 1]).cast::<f32>());
        // SAFETY: each slot holds 32 floats, four to a row; the ISA was detected before it was chosen.
        let mut sums: [I::F32x8; 8] =
            std::array::from_fn(|row| unsafe { I::join(even.add(4 * row), odd.add(4 * row)) });
        for panel in 0..panels {
            for k in 0..8 {
                let row_of_b = dense.b[panel][k].as_ptr();
                // SAFETY: the row has eight floats.
                let row_of_b = unsafe { I::join(row_of_b, row_of_b.add(4)) };
                for (row, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the ISA was detected before it was chosen.
                    *sum = unsafe { I::add_scaled::<EXACT>(*sum, dense.a[panel][8 * half + row][k], row_of_b) };
                }
            }
        }
        let even = regs.pointer_mut(op.d[2 * half]).cast::<f32>();
        let odd = regs.pointer_mut(op.d[2 * half + 1]).cast::<f32>();
        for (row, sum) in sums.into_iter().enumerate() {
            // SAFETY: as for the loads.
            unsafe { I::split(sum, even.add(4 * row), odd.add(4 * row)) };
        }
    }
}

/// `mfma` 32x32x8 and 16x16x16 (CDNA3 ISA, "Dense matrix multiply-accumulate": lane `l`, element `e`
/// hold A's row `l % size` and B's column `l % size` at k = 4 (l / size) + e).
#[inline(never)]
pub(crate) fn mfma(regs: &mut Registers<'_>, op: &MfmaOp) {
    if op.size == 32 { mfma_of::<32, 8>(regs, op) } else { mfma_of::<16, 16>(regs, op) }
}

#[inline(always)]
fn mfma_of<const SIZE: usize, const K: usize>(regs: &mut Registers<'_>, op: &MfmaOp) {
    let mut a = [[0.0_f32; SIZE]; K];
    let mut b = [[0.0_f32; SIZE]; K];
    for (reg, out) in [(op.a, &mut a), (op.b, &mut b)] {
        for lane in 0..64 {
            for element in 0..4 {
                // Each half of the wave has two words of two elements.
                let word = regs.lane::<u32>(reg + (lane / 32 * 2 + element / 2) as u32, lane % 32);
                let bits = (word >> (16 * (element % 2))) as u16;
                let value = if op.ty == MatrixType::F16 { narrow::f16_to_f32(bits) } else { narrow::bf16_to_f32(bits) };
                out[4 * (lane / SIZE) + element][lane % SIZE] = value;
            }
        }
    }
    // Register r of lane l: 32x32 has row 8 (r / 4) + 4 (l / 32) + r % 4; 16x16 has row 4 (l / 16) + r.
    let row_of = |register: usize, lane: usize| 8 * (register / 4) + 4 * (lane / SIZE) + register % 4;
    let registers = SIZE * SIZE / 64;
    let mut sums = [[0.0_f32; SIZE]; SIZE];
    for register in 0..registers {
        for lane in 0..64 {
            let value = regs.lane::<f32>(op.c[register] + (lane / 32) as u32, lane % 32);
            sums[row_of(register, lane)][lane % SIZE] = value;
        }
    }
    for (row, sum) in sums.iter_mut().enumerate() {
        for k in 0..K {
            for column in 0..SIZE {
                sum[column] += a[k][row] * b[k][column];
            }
        }
    }
    for register in 0..registers {
        for lane in 0..64 {
            let value = sums[row_of(register, lane)][lane % SIZE];
            regs.set_lane(op.d[register] + (lane / 32) as u32, lane % 32, value);
        }
    }
}

/// Slots that the tables of this module's operations name, for verification.
pub(crate) fn slots_of_mma(op: &MmaOp) -> impl Iterator<Item = Reg> {
    op.a.into_iter().chain(op.b).chain(op.c).chain(op.d)
}

const _: () = assert!(size_of::<Slot>() == 128);
