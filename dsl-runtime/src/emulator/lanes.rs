//! The register file of one warp: values as slots of 32 lanes, conditions as bit masks.
//!
//! A value of 32 bits or less takes one slot (bits above its size are arbitrary); one of 64 bits two
//! adjacent slots, read as 32 times `u64`. Vectors of 8- and 16-bit elements are packed into words,
//! low element first; other vectors are their elements one after the other. On AMD a wave is two
//! halves of 32 lanes: all slots of the low half, then all slots of the high one.
//!
//! Operations run on all lanes whatever the execution mask: SSA makes the garbage in idle lanes
//! harmless. An operation's result never shares slots with its operands unless it is the same slot.

use super::isa;

/// Number of a slot.
pub(crate) type Reg = u32;
/// Number of a mask. Mask 0 is all ones.
pub(crate) type MaskReg = u32;

/// Lanes of a slot.
pub(crate) const LANES: usize = 32;

/// One word for each of 32 lanes.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Slot(pub(crate) [u32; LANES]);

/// Types that lanes are computed in.
///
/// # Safety
/// Plain data without padding whose size is 4 or 8 bytes, valid for every bit pattern.
pub(crate) unsafe trait Lane: Copy {
    /// Slots that 32 lanes take.
    const SLOTS: u32 = (size_of::<Self>() / 4) as u32;
    /// Any value.
    const ZERO: Self;
}

macro_rules! lanes {
    ($($ty:ty),*) => {$(
        // SAFETY: a primitive number of 4 or 8 bytes.
        unsafe impl Lane for $ty {
            const ZERO: Self = 0 as $ty;
        }
    )*};
}
lanes!(u32, i32, f32, u64, i64, f64);

/// Lanes handled at a time: one vector register of the wider instruction set.
const CHUNK: usize = 8;

/// The registers of one warp, borrowed for as long as it runs.
///
/// # Invariant
/// Every slot and mask number that a decoded program holds lies inside: the decoder verifies its
/// program against the sizes that the files are made with ([`super::program::Program::verify`]).
pub(crate) struct Registers<'a> {
    slots: &'a mut [Slot],
    masks: &'a mut [u64],
}

impl<'a> Registers<'a> {
    pub(crate) fn new(slots: &'a mut [Slot], masks: &'a mut [u64]) -> Self {
        Self { slots, masks }
    }

    /// Address of a slot, for kernels over several slots.
    #[inline(always)]
    pub(crate) fn pointer(&self, reg: Reg) -> *const Slot {
        debug_assert!((reg as usize) < self.slots.len());
        // SAFETY: the type's invariant.
        unsafe { self.slots.as_ptr().add(reg as usize) }
    }

    /// Address of a slot, for writing.
    #[inline(always)]
    pub(crate) fn pointer_mut(&mut self, reg: Reg) -> *mut Slot {
        debug_assert!((reg as usize) < self.slots.len());
        // SAFETY: the type's invariant.
        unsafe { self.slots.as_mut_ptr().add(reg as usize) }
    }

    /// All lanes of a value.
    #[inline(always)]
    pub(crate) fn read<T: Lane>(&self, reg: Reg) -> [T; LANES] {
        // SAFETY: a value's slots are adjacent and inside the file; every bit pattern is a `T`.
        unsafe { *self.pointer(reg).cast::<[T; LANES]>() }
    }

    /// Overwrites all lanes of a value.
    #[inline(always)]
    pub(crate) fn write<T: Lane>(&mut self, reg: Reg, lanes: [T; LANES]) {
        // SAFETY: as for `read`.
        unsafe { *self.pointer_mut(reg).cast::<[T; LANES]>() = lanes }
    }

    /// One lane of a value.
    #[inline(always)]
    pub(crate) fn lane<T: Lane>(&self, reg: Reg, lane: usize) -> T {
        debug_assert!(lane < LANES);
        // SAFETY: as for `read`; `lane` is below 32 in every caller.
        unsafe { *self.pointer(reg).cast::<T>().add(lane & (LANES - 1)) }
    }

    /// Overwrites one lane of a value.
    #[inline(always)]
    pub(crate) fn set_lane<T: Lane>(&mut self, reg: Reg, lane: usize, value: T) {
        debug_assert!(lane < LANES);
        // SAFETY: as for `lane`.
        unsafe { *self.pointer_mut(reg).cast::<T>().add(lane & (LANES - 1)) = value }
    }

    #[inline(always)]
    pub(crate) fn chunk<T: Lane>(&self, reg: Reg, chunk: usize) -> [T; CHUNK] {
        // SAFETY: `chunk` is below 4, so the chunk lies inside the value.
        unsafe { *self.pointer(reg).cast::<[T; CHUNK]>().add(chunk) }
    }

    #[inline(always)]
    fn set_chunk<T: Lane>(&mut self, reg: Reg, chunk: usize, lanes: [T; CHUNK]) {
        // SAFETY: as for `chunk`.
        unsafe { *self.pointer_mut(reg).cast::<[T; CHUNK]>().add(chunk) = lanes }
    }

    /// A condition.
    #[inline(always)]
    pub(crate) fn mask(&self, mask: MaskReg) -> u64 {
        debug_assert!((mask as usize) < self.masks.len());
        // SAFETY: the type's invariant.
        unsafe { *self.masks.get_unchecked(mask as usize) }
    }

    /// Overwrites a condition.
    #[inline(always)]
    pub(crate) fn set_mask(&mut self, mask: MaskReg, bits: u64) {
        debug_assert!((mask as usize) < self.masks.len());
        // SAFETY: the type's invariant.
        unsafe { *self.masks.get_unchecked_mut(mask as usize) = bits }
    }

    /// Overwrites the 32 bits of one half of a condition. The low half comes first and clears the
    /// high one.
    #[inline(always)]
    pub(crate) fn set_half_mask(&mut self, mask: MaskReg, half: u8, bits: u32) {
        let low = self.mask(mask) & u64::from(u32::MAX);
        let bits = if half == 0 { u64::from(bits) } else { low | u64::from(bits) << 32 };
        self.set_mask(mask, bits);
    }

    /// The chunks of a value: the address of the file is read once an operation, not after each store.
    #[inline(always)]
    fn chunks<T: Lane>(&self, reg: Reg) -> *const [T; CHUNK] {
        self.pointer(reg).cast()
    }

    /// `d = f(a)` in every lane.
    #[inline(always)]
    pub(crate) fn map1<A: Lane, D: Lane>(&mut self, d: Reg, a: Reg, f: impl Fn(A) -> D) {
        let (a, d) = (self.chunks::<A>(a), self.pointer_mut(d).cast::<[D; CHUNK]>());
        for chunk in 0..LANES / CHUNK {
            // SAFETY: `chunk` is below 4, so the chunk lies inside the value.
            let x = unsafe { *a.add(chunk) };
            let mut out = [D::ZERO; CHUNK];
            for i in 0..CHUNK {
                out[i] = f(x[i]);
            }
            // SAFETY: as above.
            unsafe { *d.add(chunk) = out };
        }
    }

    /// `d = f(a, b)` in every lane.
    #[inline(always)]
    pub(crate) fn map2<A: Lane, B: Lane, D: Lane>(&mut self, d: Reg, a: Reg, b: Reg, f: impl Fn(A, B) -> D) {
        let (a, b, d) = (self.chunks::<A>(a), self.chunks::<B>(b), self.pointer_mut(d).cast::<[D; CHUNK]>());
        for chunk in 0..LANES / CHUNK {
            // SAFETY: `chunk` is below 4, so the chunks lie inside the values.
            let (x, y) = unsafe { (*a.add(chunk), *b.add(chunk)) };
            let mut out = [D::ZERO; CHUNK];
            for i in 0..CHUNK {
                out[i] = f(x[i], y[i]);
            }
            // SAFETY: as above.
            unsafe { *d.add(chunk) = out };
        }
    }

    /// `d = f(a, b, c)` in every lane.
    #[inline(always)]
    pub(crate) fn map3<T: Lane>(&mut self, d: Reg, a: Reg, b: Reg, c: Reg, f: impl Fn(T, T, T) -> T) {
        let (a, b, c) = (self.chunks::<T>(a), self.chunks::<T>(b), self.chunks::<T>(c));
        let d = self.pointer_mut(d).cast::<[T; CHUNK]>();
        for chunk in 0..LANES / CHUNK {
            // SAFETY: `chunk` is below 4, so the chunks lie inside the values.
            let (x, y, z) = unsafe { (*a.add(chunk), *b.add(chunk), *c.add(chunk)) };
            let mut out = [T::ZERO; CHUNK];
            for i in 0..CHUNK {
                out[i] = f(x[i], y[i], z[i]);
            }
            // SAFETY: as above.
            unsafe { *d.add(chunk) = out };
        }
    }

    /// The lanes where a comparison holds.
    #[inline(always)]
    pub(crate) fn compare<T: Lane>(&self, a: Reg, b: Reg, f: impl Fn(T, T) -> bool) -> u32 {
        let mut bits = 0;
        for chunk in 0..LANES / CHUNK {
            let (x, y) = (self.chunk::<T>(a, chunk), self.chunk::<T>(b, chunk));
            let mut holds = [0_i32; CHUNK];
            for i in 0..CHUNK {
                holds[i] = -i32::from(f(x[i], y[i]));
            }
            bits |= isa::pack_conditions(holds) << (CHUNK * chunk);
        }
        bits
    }

    /// `d = bit ? a : b` in every lane of 32 bits. `d` may be `a` or `b`.
    #[inline(always)]
    pub(crate) fn blend32(&mut self, d: Reg, a: Reg, b: Reg, bits: u32) {
        for chunk in 0..LANES / CHUNK {
            let (x, y) = (self.chunk::<u32>(a, chunk), self.chunk::<u32>(b, chunk));
            let bits = bits >> (CHUNK * chunk);
            // Masks instead of conditions: those are not vectorised whole.
            let out = std::array::from_fn(|i| {
                let mask = (bits >> i & 1).wrapping_neg();
                x[i] & mask | y[i] & !mask
            });
            self.set_chunk(d, chunk, out);
        }
    }

    /// `d = bit ? a : b` in every lane of 64 bits. `d` may be `a` or `b`.
    #[inline(always)]
    pub(crate) fn blend64(&mut self, d: Reg, a: Reg, b: Reg, bits: u32) {
        for chunk in 0..LANES / CHUNK {
            let (x, y) = (self.chunk::<u64>(a, chunk), self.chunk::<u64>(b, chunk));
            let bits = u64::from(bits >> (CHUNK * chunk));
            let out = std::array::from_fn(|i| {
                let mask = (bits >> i & 1).wrapping_neg();
                x[i] & mask | y[i] & !mask
            });
            self.set_chunk(d, chunk, out);
        }
    }
}

/// The 32 bits of one half of a mask.
#[inline(always)]
pub(crate) fn half_of(mask: u64, half: u8) -> u32 {
    (mask >> (32 * u32::from(half & 1))) as u32
}
