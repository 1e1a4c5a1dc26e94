//! Tiles of shared memory and registers as operands of a product, in f32.
//!
//! Layouts (PTX ISA, "Asynchronous warpgroup level matrix shared memory layout"): a tile is made of panels of
//! as many bytes as the swizzle has. K-major: a panel has the rows of the tile, each with consecutive k;
//! MN-major: a panel has the k of the tile, each with consecutive rows (or columns of B).

use lacewing_core::atoms::{PanelLayout, WgmmaSpec};

use super::op::InputType;
use crate::emulator::exec::matrix::{COLUMNS, transpose8, widen8};
use crate::emulator::isa::Isa;
use crate::emulator::lanes::{Reg, Registers};
use crate::emulator::memory::{Bytes, SharedMemory};
use crate::emulator::numeric::narrow::{self, Fp8};
use crate::emulator::op::MatrixType;

/// How a tile lies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedLayout(PanelLayout);

impl SharedLayout {
    /// Reads `k:SWIZZLE:ROWS` or `mn:SWIZZLE:ROWS`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        PanelLayout::parse(text).map(Self)
    }

    /// Whether consecutive bytes are consecutive k.
    pub(crate) fn k_major(&self) -> bool {
        self.0.k_major
    }

    /// Alignment of an operand's address: the pattern of the swizzle repeats there.
    pub(crate) fn alignment(&self) -> u32 {
        self.0.alignment() as u32
    }

    /// Distance from the address to the 16-byte chunk that holds an element: `line` is what a panel's rows
    /// count, `along` what lies in them, in bytes.
    #[inline(always)]
    fn chunk(&self, line: usize, along: usize) -> usize {
        self.0.byte(line, along)
    }

    /// Distance from the address to an element, as [`Self::chunk`].
    pub(crate) fn offset(&self, line: usize, along: usize) -> usize {
        // A swizzle moves chunks and leaves what is in them.
        self.chunk(line, along)
    }

    /// The ranges that the rows `first .. first + count` (columns of B) and all of k take.
    pub(crate) fn ranges(&self, ty: InputType, first: usize, count: usize, k: usize) -> Vec<(u32, u32)> {
        let size = ty.bytes();
        let (lines, along) = if self.k_major() {
            (first..first + count, 0..k * size)
        } else {
            (0..k, first * size..(first + count) * size)
        };
        let mut chunks: Vec<usize> =
            lines.flat_map(|line| along.clone().step_by(16).map(move |along| self.chunk(line, along))).collect();
        chunks.sort_unstable();
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for chunk in chunks {
            match ranges.last_mut() {
                Some((start, len)) if (*start + *len) as usize == chunk => *len += 16,
                _ => ranges.push((chunk as u32, 16)),
            }
        }
        ranges
    }
}

/// Both operands of one warp's part of a product, and whether all their products are exact in f32.
pub(crate) struct Gather<'a> {
    pub(crate) memory: &'a SharedMemory,
    pub(crate) ty: InputType,
    pub(crate) k: usize,
}

/// The smallest and the largest binary exponent of bf16 numbers whose products are exact in f32, as bits.
const SAFE_BF16: (u16, u16) = (67 << 7, 188 << 7);

/// Whether a chunk of bf16 has only numbers whose products are exact in f32, sums of them aside.
#[inline(always)]
fn is_safe(chunk: [u16; 8]) -> bool {
    let mut unsafe_ones = 0_u16;
    for bits in chunk {
        let magnitude = bits & 0x7fff;
        let outside = u16::from(magnitude.wrapping_sub(SAFE_BF16.0) >= SAFE_BF16.1 - SAFE_BF16.0);
        unsafe_ones |= outside & u16::from(magnitude != 0);
    }
    unsafe_ones == 0
}

fn fp8(ty: InputType) -> Fp8 {
    if ty == InputType::E4m3 { Fp8::E4m3 } else { Fp8::E5m2 }
}

/// Where register `index` of A begins, of those of all steps: row and k, by the atom's layout. It is eight rows from there
/// on, in each of which four lanes have adjacent bytes.
pub(crate) fn first_of_a(spec: &WgmmaSpec, index: usize) -> (usize, usize) {
    let ([m, _, step], registers) = (spec.shape, spec.a.registers().max(1));
    let first = spec.a.tv.index(0, index % registers * spec.a.pack);
    (first % m, index / registers * step + first / m)
}

impl Gather<'_> {
    /// Reads one chunk. The ranges of the operand have been checked.
    #[inline(always)]
    fn chunk(&self, base: usize, layout: &SharedLayout, line: usize, along: usize) -> [u16; 8] {
        // SAFETY: the chunk is in the ranges of the operand, which were checked against shared memory when the
        // product was issued; shared memory does not change its size during a launch.
        let words: [u32; 4] = unsafe { self.memory.load_words(base + layout.chunk(line, along)) };
        bytemuck::cast(words)
    }

    #[inline(always)]
    fn widen<I: Isa>(&self, chunk: &[u16; 8], target: &mut [f32; 8]) -> bool {
        let half = if self.ty == InputType::F16 { MatrixType::F16 } else { MatrixType::Bf16 };
        // SAFETY: both are arrays of 8.
        unsafe { widen8::<I>(half, chunk.as_ptr(), target.as_mut_ptr()) };
        self.ty == InputType::F16 || is_safe(*chunk)
    }

    /// Rows `first .. first + 16` of A, row after row of k. True when all are safe.
    #[inline(always)]
    pub(crate) fn rows_of_a<I: Isa>(&self, base: usize, layout: &SharedLayout, first: usize, a: &mut [f32]) -> bool {
        let mut safe = true;
        if self.ty.bytes() == 1 {
            let fp8 = fp8(self.ty);
            for (row, out) in a.chunks_exact_mut(self.k).enumerate() {
                for (chunk, out) in out.chunks_exact_mut(16).enumerate() {
                    let bytes: [u8; 16] = bytemuck::cast(self.chunk(base, layout, first + row, 16 * chunk));
                    for (out, byte) in out.iter_mut().zip(bytes) {
                        *out = narrow::fp8_to_f32(fp8, byte);
                    }
                }
            }
        } else if layout.k_major() {
            for (row, out) in a.chunks_exact_mut(self.k).enumerate() {
                for (chunk, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    safe &= self.widen::<I>(&self.chunk(base, layout, first + row, 16 * chunk), out);
                }
            }
        } else {
            for (half, out) in a.chunks_exact_mut(8 * self.k).enumerate() {
                for group in 0..self.k / 8 {
                    let along = 2 * (first + 8 * half);
                    let by_k: [[u16; 8]; 8] = std::array::from_fn(|i| self.chunk(base, layout, 8 * group + i, along));
                    for (row, chunk) in transpose8(by_k).iter().enumerate() {
                        let at = row * self.k + 8 * group;
                        if let Some(out) = out.get_mut(at..at + 8).and_then(|out| out.as_mut_array()) {
                            safe &= self.widen::<I>(chunk, out);
                        }
                    }
                }
            }
        }
        safe
    }

    /// The fragments of A, four registers for each step of k, as the atom's layout has them.
    #[inline(always)]
    pub(crate) fn fragments_of_a<I: Isa>(
        &self,
        regs: &Registers<'_>,
        (fragments, spec): (&[Reg], &WgmmaSpec),
        a: &mut [f32],
    ) -> bool {
        let (k, mut safe) = (self.k, true);
        for (index, &reg) in fragments.iter().enumerate() {
            let (first_row, first_k) = first_of_a(spec, index);
            let rows: [[u16; 8]; 8] = bytemuck::cast(regs.read::<u32>(reg));
            for (row, chunk) in rows.iter().enumerate() {
                let at = (first_row + row) * k + first_k;
                if self.ty.bytes() == 1 {
                    let bytes: [u8; 16] = bytemuck::cast(*chunk);
                    for (out, byte) in a.iter_mut().skip(at).zip(bytes) {
                        *out = narrow::fp8_to_f32(fp8(self.ty), byte);
                    }
                } else if let Some(out) = a.get_mut(at..at + 8).and_then(|out| out.as_mut_array()) {
                    safe &= self.widen::<I>(chunk, out);
                }
            }
        }
        safe
    }

    /// Columns `first .. first + 8` of B, k after k, the columns in the order of [`COLUMNS`].
    #[inline(always)]
    pub(crate) fn columns_of_b<I: Isa>(
        &self,
        base: usize,
        layout: &SharedLayout,
        first: usize,
        b: &mut [[f32; 8]],
    ) -> bool {
        let mut safe = true;
        if self.ty.bytes() == 1 {
            let fp8 = fp8(self.ty);
            for (chunk, out) in b.as_chunks_mut::<16>().0.iter_mut().enumerate() {
                for (place, column) in COLUMNS.into_iter().enumerate() {
                    let bytes: [u8; 16] = bytemuck::cast(self.chunk(base, layout, first + column, 16 * chunk));
                    for (out, byte) in out.iter_mut().zip(bytes) {
                        out[place] = narrow::fp8_to_f32(fp8, byte);
                    }
                }
            }
        } else if layout.k_major() {
            for (chunk, out) in b.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let by_column = COLUMNS.map(|column| self.chunk(base, layout, first + column, 16 * chunk));
                for (by_k, out) in transpose8(by_column).iter().zip(out) {
                    safe &= self.widen::<I>(by_k, out);
                }
            }
        } else {
            for (k, out) in b.iter_mut().enumerate() {
                let chunk = self.chunk(base, layout, k, 2 * first);
                safe &= self.widen::<I>(&COLUMNS.map(|column| chunk[column]), out);
            }
        }
        safe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_whole_panels_where_they_can_be() {
        let k_major = SharedLayout::parse("k:128:176").unwrap();
        // 64 elements of k are a panel; rows 16 to 31 of it are adjacent.
        assert_eq!(k_major.ranges(InputType::Bf16, 16, 16, 128), [(2048, 2048), (176 * 128 + 2048, 2048)]);
        assert_eq!(k_major.ranges(InputType::E4m3, 0, 176, 128), [(0, 176 * 128)]);
        // One step of k is 32 bytes of each row.
        let step = k_major.ranges(InputType::F16, 0, 8, 16);
        assert_eq!((step.len(), step.iter().map(|range| range.1).sum::<u32>()), (8, 256));
        let mn_major = SharedLayout::parse("mn:64:48").unwrap();
        assert_eq!(mn_major.ranges(InputType::F16, 0, 64, 48), [(0, 2 * 48 * 64)]);
    }

    #[test]
    fn products_of_safe_numbers_are_exact() {
        let safe = |x: f32| is_safe([narrow::f32_to_bf16(x); 8]);
        assert!(safe(0.0) && safe(-0.0) && safe(1.5) && safe(-1e18) && safe(1e-18));
        assert!(!safe(1e-20) && !safe(3e18) && !safe(f32::INFINITY) && !safe(f32::NAN));
        let (low, high) = SAFE_BF16;
        let (low, high) = (narrow::bf16_to_f32(low), narrow::bf16_to_f32(high - 1));
        assert_eq!(f64::from(low) * f64::from(low), f64::from(low * low));
        assert_eq!(f64::from(high) * f64::from(high), f64::from(high * high));
    }
}
