//! Loads and stores of a warp: one range where the lanes are contiguous, else lane by lane. A range
//! that fails any check is tried again lane by lane, which finds the lane to blame.

use crate::emulator::lanes::{LANES, MaskReg, Reg, Registers, half_of};
use crate::emulator::memory::{AccessFault, Bytes, Memory, Region};
use crate::emulator::op::Access;

/// An access that broke a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessError {
    pub(crate) fault: AccessFault,
    /// Lane within its half.
    pub(crate) lane: u32,
    pub(crate) address: u64,
}

/// Whether lane i's address is `first + i * step`.
#[inline(always)]
fn contiguous<M: Memory>(regs: &Registers<'_>, address: Reg, step: u32) -> bool {
    M::contiguous(&regs.read::<M::Address>(address), step)
}

/// Checks one range for a load.
#[inline(always)]
fn check_load<'m, M: Memory>(
    memory: &'m M,
    address: M::Address,
    len: usize,
    access: &Access,
) -> Result<(&'m M::Region, usize), AccessFault> {
    let (region, offset) = memory.region(address);
    let offset = region.check_range(offset, len, access)?;
    region.check_written(offset, len)?;
    Ok((region, offset))
}

/// Checks one range for a store and notes it as written.
#[inline(always)]
fn check_store<'m, M: Memory>(
    memory: &'m M,
    address: M::Address,
    len: usize,
    access: &Access,
) -> Result<(&'m M::Region, usize), AccessFault> {
    let (region, offset) = memory.region(address);
    let offset = region.check_range(offset, len, access)?;
    region.check_writable()?;
    region.mark_written(offset, len);
    Ok((region, offset))
}

/// Rows of four words to four words of four rows.
#[inline(always)]
fn transpose4(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64; `[u32; 4]` and `__m128i` are plain bytes of one size.
    unsafe {
        use std::arch::x86_64::{
            __m128i, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        };
        let [a, b, c, d]: [__m128i; 4] = std::mem::transmute(rows);
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        std::mem::transmute([
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab_high, cd_high),
            _mm_unpackhi_epi64(ab_high, cd_high),
        ])
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::array::from_fn(|i| std::array::from_fn(|j| rows[j][i]))
}

/// Four lanes of a value of four words.
#[inline(always)]
fn set_quad(regs: &mut Registers<'_>, d: Reg, quad: usize, words: [[u32; 4]; 4]) {
    for (word, lanes) in words.into_iter().enumerate() {
        // SAFETY: the value has four slots and `quad` is below 8.
        unsafe { *regs.pointer_mut(d + word as u32).cast::<[u32; 4]>().add(quad) = lanes };
    }
}

/// Four lanes of a value of four words.
#[inline(always)]
fn quad(regs: &Registers<'_>, value: Reg, quad: usize) -> [[u32; 4]; 4] {
    // SAFETY: the value has four slots and `quad` is below 8.
    std::array::from_fn(|word| unsafe { *regs.pointer(value + word as u32).cast::<[u32; 4]>().add(quad) })
}

/// Whether the shape has a path of whole words.
#[inline(always)]
fn is_wide(access: &Access) -> bool {
    // Elements of 64 bits are contiguous words in memory and in a slot pair alike.
    matches!((access.bytes, access.unit), (4 | 8 | 16, 4) | (8, 8))
        && access.align.is_multiple_of(4)
        && access.align <= access.bytes
}

/// `d = memory[address]` in the active lanes where `mask` holds.
#[inline(always)]
pub(crate) fn load<M: Memory>(
    memory: &M,
    regs: &mut Registers<'_>,
    d: Reg,
    address: Reg,
    active: u64,
    access: &Access,
) -> Result<(), AccessError> {
    let lanes = half_of(active, access.half);
    if lanes == u32::MAX && is_wide(access) && contiguous::<M>(regs, address, access.bytes) {
        let first = regs.lane::<M::Address>(address, 0);
        if let Ok((region, at)) = check_load(memory, first, LANES * access.bytes as usize, access) {
            // SAFETY: the range was checked, and its start is a multiple of four.
            unsafe {
                match (access.bytes, access.unit) {
                    (4, _) => regs.write::<u32>(d, region.load_words(at)),
                    (8, 8) => {
                        regs.write::<u32>(d, region.load_words(at));
                        regs.write::<u32>(d + 1, region.load_words(at + 128));
                    }
                    (8, _) => {
                        let words: [u32; 64] = region.load_words(at);
                        regs.write::<u32>(d, std::array::from_fn(|i| words[2 * i]));
                        regs.write::<u32>(d + 1, std::array::from_fn(|i| words[2 * i + 1]));
                    }
                    _ => {
                        for group in 0..8 {
                            let rows = std::array::from_fn(|i| region.load_words(at + 16 * (4 * group + i)));
                            set_quad(regs, d, group, transpose4(rows));
                        }
                    }
                }
            }
            return Ok(());
        }
    }
    load_lanes(memory, regs, d, address, lanes, access)
}

/// The lanes of an access, each at its own address.
struct Scattered<'a, M: Memory> {
    memory: &'a M,
    addresses: [M::Address; LANES],
    lanes: u32,
    access: &'a Access,
}

impl<'a, M: Memory> Scattered<'a, M> {
    fn new(memory: &'a M, regs: &Registers<'_>, address: Reg, lanes: u32, access: &'a Access) -> Self {
        Self { memory, addresses: regs.read(address), lanes, access }
    }

    /// Bytes of a lane.
    fn len(&self) -> usize {
        self.access.bytes as usize
    }

    fn checked<R>(
        &self,
        lane: usize,
        check: impl Fn(&'a M, M::Address, usize, &Access) -> Result<R, AccessFault>,
    ) -> Result<R, AccessError> {
        let address = self.addresses[lane & (LANES - 1)];
        check(self.memory, address, self.len(), self.access).map_err(|fault| AccessError {
            fault,
            lane: lane as u32,
            address: address.into(),
        })
    }

    /// The bytes of a lane, for reading.
    #[inline(always)]
    fn source(&self, lane: usize) -> Result<(&'a M::Region, usize), AccessError> {
        self.checked(lane, check_load)
    }

    /// The bytes of a lane, for writing.
    #[inline(always)]
    fn target(&self, lane: usize) -> Result<(&'a M::Region, usize), AccessError> {
        self.checked(lane, check_store)
    }

    /// Whether every lane has four whole words.
    fn is_rows(&self) -> bool {
        self.lanes == u32::MAX && self.access.bytes == 16 && self.access.unit == 4 && self.access.align >= 4
    }

    /// The lanes that take part.
    fn active(&self) -> impl Iterator<Item = usize> + use<M> {
        let mut rest = self.lanes;
        std::iter::from_fn(move || {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (lane < LANES).then_some(lane)
        })
    }
}

/// A load lane by lane.
#[inline(never)]
fn load_lanes<M: Memory>(
    memory: &M,
    regs: &mut Registers<'_>,
    d: Reg,
    address: Reg,
    lanes: u32,
    access: &Access,
) -> Result<(), AccessError> {
    let scattered = Scattered::new(memory, regs, address, lanes, access);
    let len = scattered.len();
    if lanes == u32::MAX && is_wide(access) && contiguous::<M>(regs, address, 0) {
        // All lanes read one address.
        let (region, at) = scattered.source(0)?;
        for word in 0..access.slots() {
            // SAFETY: the range was checked, and its start is a multiple of four.
            let [bits] = unsafe { region.load_words(at + 4 * word as usize) };
            if access.unit == 4 {
                regs.write(d + word, [bits; LANES]);
            } else {
                for lane in 0..LANES {
                    // SAFETY: words 0 and 1 of each lane's pair lie inside the value's two slots.
                    unsafe { *regs.pointer_mut(d).cast::<u32>().add(2 * lane + word as usize) = bits };
                }
            }
        }
        return Ok(());
    }
    if scattered.is_rows() {
        for group in 0..8 {
            let mut rows = [[0; 4]; 4];
            for (i, row) in rows.iter_mut().enumerate() {
                let (region, at) = scattered.source(4 * group + i)?;
                // SAFETY: the range was checked, and its start is a multiple of four.
                *row = unsafe { region.load_words(at) };
            }
            set_quad(regs, d, group, transpose4(rows));
        }
        return Ok(());
    }
    for lane in scattered.active() {
        let (region, at) = scattered.source(lane)?;
        let mut done = 0;
        while done < len {
            let count = (len - done).min(4);
            // SAFETY: `at + done + count` lies inside the checked range.
            let word = unsafe { load_part(region, at + done, count) };
            // SAFETY: the word lies inside the value.
            unsafe { *word_of_lane(regs, d, lane, done, access.unit) = word };
            done += count;
        }
    }
    Ok(())
}

/// `memory[address] = value` in the active lanes where `mask` holds; later lanes win.
#[inline(always)]
pub(crate) fn store<M: Memory>(
    memory: &M,
    regs: &mut Registers<'_>,
    value: Reg,
    address: Reg,
    active: u64,
    access: &Access,
) -> Result<(), AccessError> {
    let lanes = half_of(active, access.half);
    if lanes == u32::MAX && is_wide(access) && contiguous::<M>(regs, address, access.bytes) {
        let first = regs.lane::<M::Address>(address, 0);
        if let Ok((region, at)) = check_store(memory, first, LANES * access.bytes as usize, access) {
            // SAFETY: the range was checked, and its start is a multiple of four.
            unsafe {
                match (access.bytes, access.unit) {
                    (4, _) => region.store_words(at, regs.read::<u32>(value)),
                    (8, 8) => {
                        region.store_words(at, regs.read::<u32>(value));
                        region.store_words(at + 128, regs.read::<u32>(value + 1));
                    }
                    (8, _) => {
                        let (low, high) = (regs.read::<u32>(value), regs.read::<u32>(value + 1));
                        let words: [u32; 64] =
                            std::array::from_fn(|i| if i % 2 == 0 { low[i / 2] } else { high[i / 2] });
                        region.store_words(at, words);
                    }
                    _ => {
                        for group in 0..8 {
                            for (i, row) in transpose4(quad(regs, value, group)).into_iter().enumerate() {
                                region.store_words(at + 16 * (4 * group + i), row);
                            }
                        }
                    }
                }
            }
            return Ok(());
        }
    }
    store_lanes(memory, regs, value, address, lanes, access)
}

/// A store lane by lane.
#[inline(never)]
fn store_lanes<M: Memory>(
    memory: &M,
    regs: &mut Registers<'_>,
    value: Reg,
    address: Reg,
    lanes: u32,
    access: &Access,
) -> Result<(), AccessError> {
    let scattered = Scattered::new(memory, regs, address, lanes, access);
    let len = scattered.len();
    if scattered.is_rows() {
        for group in 0..8 {
            for (i, row) in transpose4(quad(regs, value, group)).into_iter().enumerate() {
                let (region, at) = scattered.target(4 * group + i)?;
                // SAFETY: the range was checked, and its start is a multiple of four.
                unsafe { region.store_words(at, row) };
            }
        }
        return Ok(());
    }
    for lane in scattered.active() {
        let (region, at) = scattered.target(lane)?;
        let mut done = 0;
        while done < len {
            let count = (len - done).min(4);
            // SAFETY: the word lies inside the value, and the bytes inside the checked range.
            unsafe { store_part(region, at + done, count, *word_of_lane(regs, value, lane, done, access.unit)) };
            done += count;
        }
    }
    Ok(())
}

/// The word of a lane that holds byte `byte` of its value.
///
/// # Safety
/// `byte` is below the value's size, a multiple of four.
#[inline(always)]
unsafe fn word_of_lane(regs: &mut Registers<'_>, value: Reg, lane: usize, byte: usize, unit: u32) -> *mut u32 {
    if unit == 8 {
        let element = (byte / 8) as u32;
        // SAFETY: the element's pair of slots, as the caller promises.
        unsafe { regs.pointer_mut(value + 2 * element).cast::<u32>().add(2 * lane + byte / 4 % 2) }
    } else {
        // SAFETY: the word's slot, as the caller promises.
        unsafe { regs.pointer_mut(value + (byte / 4) as u32).cast::<u32>().add(lane) }
    }
}

/// Up to four bytes at any alignment, zero-extended.
///
/// # Safety
/// The range was checked.
#[inline(always)]
pub(crate) unsafe fn load_part<B: Bytes>(bytes: &B, at: usize, count: usize) -> u32 {
    // SAFETY: as the caller promises; alignment decides the width.
    unsafe {
        if count == 4 && at.is_multiple_of(4) {
            let [word] = bytes.load_words(at);
            word
        } else if count.is_multiple_of(2) && at.is_multiple_of(2) {
            (0..count / 2).fold(0, |word, i| word | u32::from(bytes.load_u16(at + 2 * i)) << (16 * i))
        } else {
            (0..count).fold(0, |word, i| word | u32::from(bytes.load_u8(at + i)) << (8 * i))
        }
    }
}

/// Up to four bytes at any alignment.
///
/// # Safety
/// The range was checked.
#[inline(always)]
pub(crate) unsafe fn store_part<B: Bytes>(bytes: &B, at: usize, count: usize, word: u32) {
    // SAFETY: as the caller promises; alignment decides the width.
    unsafe {
        if count == 4 && at.is_multiple_of(4) {
            bytes.store_words(at, [word]);
        } else if count.is_multiple_of(2) && at.is_multiple_of(2) {
            (0..count / 2).for_each(|i| bytes.store_u16(at + 2 * i, (word >> (16 * i)) as u16));
        } else {
            (0..count).for_each(|i| bytes.store_u8(at + i, (word >> (8 * i)) as u8));
        }
    }
}

/// The lanes that a bounded buffer serves: those where `mask` holds and the whole access lies in
/// `[0, bytes)`. Offsets are in elements.
#[inline(always)]
pub(crate) fn buffer_mask(
    regs: &mut Registers<'_>,
    d: MaskReg,
    mask: MaskReg,
    offset: Reg,
    bytes: Reg,
    access: &Access,
) {
    let (offsets, sizes) = (regs.read::<i32>(offset), regs.read::<i64>(bytes));
    let mut inside = 0_u32;
    for lane in 0..LANES {
        let start = i64::from(offsets[lane]) * i64::from(access.element);
        let fits = start >= 0 && start + i64::from(access.bytes) <= sizes[lane];
        inside |= u32::from(fits) << lane;
    }
    let bits = inside & half_of(regs.mask(mask), access.half);
    regs.set_half_mask(d, access.half, bits);
}
