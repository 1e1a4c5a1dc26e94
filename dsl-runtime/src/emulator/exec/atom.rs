//! Any matrix instruction of the core's table, by its thread-value layouts.
//!
//! The layouts say in which lane and which bits of which register each element lies; the product itself is the
//! definition. The instructions that attention lives on have faster forms in [`super::matrix`], which tests compare
//! with this one.

use lacewing_core::ScalarType;
use lacewing_core::atoms::{MmaSpec, Role};

use crate::emulator::lanes::{LANES, Reg, Registers};
use crate::emulator::numeric::narrow::{self, Fp8};

/// Where one element of an operand lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// The slot, the first one of 64-bit elements.
    pub(crate) slot: Reg,
    /// The lane in the warp or wave; the slot is that of its half.
    pub(crate) lane: u8,
    /// The lowest bit in the word.
    pub(crate) shift: u8,
}

impl Spot {
    /// The lane in the slot.
    fn in_half(self) -> usize {
        usize::from(self.lane) % LANES
    }
}

/// Operands of [`crate::emulator::op::Op::Atom`]; each lists its elements with the first dimension fastest, as the
/// layouts count.
#[derive(Clone, Debug)]
pub(crate) struct AtomOp {
    pub(crate) spec: &'static MmaSpec,
    pub(crate) a: Vec<Spot>,
    pub(crate) b: Vec<Spot>,
    pub(crate) c: Vec<Spot>,
    pub(crate) d: Vec<Spot>,
}

/// The elements of an operand, whose registers start at these slots in each half of the wave.
pub(crate) fn spots(spec: &MmaSpec, role: Role, registers: &[[Reg; 2]]) -> Vec<Spot> {
    let operand = spec.operand(role);
    let bits = 8 * operand.element.bytes();
    let [rows, columns] = spec.extents(role);
    let mut spots = vec![Spot { slot: 0, lane: 0, shift: 0 }; rows * columns];
    for thread in 0..operand.threads() {
        for value in 0..operand.values() {
            let (register, part) = (value / operand.pack, value % operand.pack);
            let first = registers.get(register).map_or(0, |halves| halves[thread / 32]);
            let spot =
                Spot { slot: first + (part * bits / 32) as u32, lane: thread as u8, shift: (part * bits % 32) as u8 };
            if let Some(place) = spots.get_mut(operand.tv.index(thread, value)) {
                *place = spot;
            }
        }
    }
    spots
}

impl AtomOp {
    /// An element of A, B or C as f32; of integers and f64 as nearly as it holds them.
    pub(crate) fn float(&self, regs: &Registers<'_>, role: Role, spot: Spot) -> f32 {
        let word = || regs.lane::<u32>(spot.slot, spot.in_half());
        let part = || word() >> spot.shift;
        match self.spec.operand(role).element {
            ScalarType::F16 => narrow::f16_to_f32(part() as u16),
            ScalarType::Bf16 => narrow::bf16_to_f32(part() as u16),
            ScalarType::F8E4M3 => narrow::fp8_to_f32(Fp8::E4m3, part() as u8),
            ScalarType::F8E5M2 => narrow::fp8_to_f32(Fp8::E5m2, part() as u8),
            // The low 13 bits of the factors are ignored.
            ScalarType::F32 if role != Role::C && matches!(self.spec.kind, "tf32" | "xf32") => {
                f32::from_bits(word() & 0xffff_e000)
            }
            ScalarType::F64 => self.double(regs, spot) as f32,
            ScalarType::F32 => f32::from_bits(word()),
            _ => self.integer(regs, role, spot) as f32,
        }
    }

    fn integer(&self, regs: &Registers<'_>, role: Role, spot: Spot) -> i32 {
        let word = regs.lane::<u32>(spot.slot, spot.in_half());
        match self.spec.operand(role).element {
            ScalarType::I8 => i32::from((word >> spot.shift) as i8),
            ScalarType::U8 => i32::from((word >> spot.shift) as u8),
            _ => word as i32,
        }
    }

    fn double(&self, regs: &Registers<'_>, spot: Spot) -> f64 {
        regs.lane::<f64>(spot.slot, spot.in_half())
    }

    /// Whether a result is not finite.
    pub(crate) fn any_special(&self, regs: &Registers<'_>) -> bool {
        self.spec.c.element.is_float() && self.d.iter().any(|&spot| !self.float(regs, Role::C, spot).is_finite())
    }

    /// Rows and columns of A, B and C as the layouts count them.
    fn at(spots: &[Spot], rows: usize, row: usize, column: usize) -> Spot {
        spots.get(row + column * rows).copied().unwrap_or(Spot { slot: 0, lane: 0, shift: 0 })
    }

    /// The factors of element `(i, j)` in k order.
    pub(crate) fn factors<'a>(
        &'a self,
        regs: &'a Registers<'_>,
        i: usize,
        j: usize,
    ) -> impl Iterator<Item = (f32, f32)> + Clone + 'a {
        let [m, n, k] = self.spec.shape;
        // Columns of the sums go through the blocks, and so do those of the factors.
        let (block, j) = (j / n, j % n);
        (k * block..k * (block + 1)).map(move |k| {
            let (a, b) = (Self::at(&self.a, m, i, k), Self::at(&self.b, n, j, k));
            (self.float(regs, Role::A, a), self.float(regs, Role::B, b))
        })
    }

    /// Writes an element of D.
    fn set(&self, regs: &mut Registers<'_>, spot: Spot, value: f32) {
        match self.spec.c.element {
            ScalarType::F16 => {
                let word = regs.lane::<u32>(spot.slot, spot.in_half());
                let bits = u32::from(narrow::f32_to_f16(value)) << spot.shift;
                regs.set_lane(spot.slot, spot.in_half(), word & !(0xffff << spot.shift) | bits);
            }
            _ => regs.set_lane(spot.slot, spot.in_half(), value),
        }
    }

    /// Computes all of D before anything is written: D may share its slots with C.
    #[inline(never)]
    pub(crate) fn run(&self, regs: &mut Registers<'_>) {
        match self.spec.c.element {
            ScalarType::I32 => {
                let dense = |spots: &[Spot], role| -> Vec<i32> {
                    spots.iter().map(|&spot| self.integer(regs, role, spot)).collect()
                };
                let (a, b) = (dense(&self.a, Role::A), dense(&self.b, Role::B));
                let mut d = dense(&self.c, Role::C);
                self.accumulate(&a, &b, &mut d, |sum, a, b| sum.wrapping_add(a.wrapping_mul(b)));
                for (spot, value) in self.d.iter().zip(d) {
                    regs.set_lane(spot.slot, spot.in_half(), value);
                }
            }
            ScalarType::F64 => {
                let dense =
                    |spots: &[Spot]| -> Vec<f64> { spots.iter().map(|&spot| self.double(regs, spot)).collect() };
                let (a, b, mut d) = (dense(&self.a), dense(&self.b), dense(&self.c));
                self.accumulate(&a, &b, &mut d, |sum, a, b| a.mul_add(b, sum));
                for (spot, value) in self.d.iter().zip(d) {
                    regs.set_lane(spot.slot, spot.in_half(), value);
                }
            }
            _ => {
                let dense = |spots: &[Spot], role| -> Vec<f32> {
                    spots.iter().map(|&spot| self.float(regs, role, spot)).collect()
                };
                let (a, b) = (dense(&self.a, Role::A), dense(&self.b, Role::B));
                let mut d = dense(&self.c, Role::C);
                self.accumulate(&a, &b, &mut d, |sum, a, b| a.mul_add(b, sum));
                for (&spot, value) in self.d.iter().zip(d) {
                    self.set(regs, spot, value);
                }
            }
        }
    }

    /// `d += a b` in each block, products in k order; all with the first dimension fastest.
    fn accumulate<T: Copy>(&self, a: &[T], b: &[T], d: &mut [T], step: impl Fn(T, T, T) -> T) {
        let [m, n, k] = self.spec.shape;
        let blocks = a.chunks_exact(m * k).zip(b.chunks_exact(n * k)).zip(d.chunks_exact_mut(m * n));
        for ((a, b), d) in blocks {
            for (j, column) in d.chunks_exact_mut(m).enumerate() {
                for at in 0..k {
                    let b = b[j + at * n];
                    for (sum, &a) in column.iter_mut().zip(&a[at * m..(at + 1) * m]) {
                        *sum = step(*sum, a, b);
                    }
                }
            }
        }
    }
}
