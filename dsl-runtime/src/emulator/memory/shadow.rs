//! One bit per byte: has anything written it?

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The written bytes of one allocation. Bits only go from clear to set while blocks run in
/// parallel, so relaxed operations suffice: a kernel that reads what another block writes without
/// ordering has a race, and may see either answer on a GPU too.
pub(crate) struct BitShadow {
    words: Box<[AtomicU64]>,
    bytes: usize,
}

/// Calls `visit` with each word that `start .. start + len` touches and the bits in it, until it says
/// false. A plain loop: an iterator is not inlined into the memory operations.
#[inline(always)]
fn for_pieces(start: usize, len: usize, mut visit: impl FnMut(usize, u64) -> bool) -> bool {
    let end = start + len;
    let mut at = start;
    while at < end {
        let bit = at & 63;
        let count = (64 - bit).min(end - at);
        if !visit(at >> 6, (u64::MAX >> (64 - count)) << bit) {
            return false;
        }
        at += count;
    }
    true
}

impl BitShadow {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { words: (0..bytes.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(), bytes }
    }

    /// Whether every byte of the range is written. The range lies inside the allocation.
    #[inline(always)]
    pub(crate) fn all(&self, start: usize, len: usize) -> bool {
        for_pieces(start, len, |word, bits| {
            self.words.get(word).is_some_and(|w| w.load(Ordering::Relaxed) & bits == bits)
        })
    }

    /// Marks the range as written, with other threads marking at the same time.
    #[inline(always)]
    pub(crate) fn set(&self, start: usize, len: usize) {
        for_pieces(start, len, |word, bits| {
            let Some(word) = self.words.get(word) else { return false };
            if bits == u64::MAX {
                word.store(bits, Ordering::Relaxed);
            } else if word.load(Ordering::Relaxed) & bits != bits {
                word.fetch_or(bits, Ordering::Relaxed);
            }
            true
        });
    }

    /// Marks the range as written, when only this thread uses the shadow.
    #[inline(always)]
    pub(crate) fn set_owned(&self, start: usize, len: usize) {
        for_pieces(start, len, |word, bits| {
            let Some(word) = self.words.get(word) else { return false };
            word.store(word.load(Ordering::Relaxed) | bits, Ordering::Relaxed);
            true
        });
    }

    /// Marks the range as not written, when only this thread uses the shadow.
    pub(crate) fn clear_owned(&self, start: usize, len: usize) {
        for_pieces(start, len, |word, bits| {
            let Some(word) = self.words.get(word) else { return false };
            word.store(word.load(Ordering::Relaxed) & !bits, Ordering::Relaxed);
            true
        });
    }

    /// Forgets all that was written.
    pub(crate) fn reset(&mut self) {
        for word in &mut self.words {
            *word.get_mut() = 0;
        }
    }

    /// The maximal ranges of bytes that nothing wrote.
    pub(crate) fn unwritten(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for byte in 0..self.bytes {
            if self.all(byte, 1) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end == byte => last.end += 1,
                _ => ranges.push(byte..byte + 1),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_vector_of_booleans() {
        let size = 300;
        let shadow = BitShadow::new(size);
        let mut model = vec![false; size];
        let mut state = 12345_u64;
        for round in 0..400 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let start = (state >> 33) as usize % size;
            let len = 1 + (state >> 20) as usize % (size - start).min(140);
            match round % 3 {
                0 => shadow.set(start, len),
                1 => shadow.set_owned(start, len),
                _ => shadow.clear_owned(start, len),
            }
            model[start..start + len].fill(round % 3 != 2);
            for probe in 0..size - 8 {
                assert_eq!(shadow.all(probe, 8), model[probe..probe + 8].iter().all(|&b| b), "{round} {probe}");
            }
        }
        let unwritten: usize = shadow.unwritten().iter().map(ExactSizeIterator::len).sum();
        assert_eq!(unwritten, model.iter().filter(|&&b| !b).count());
    }
}
