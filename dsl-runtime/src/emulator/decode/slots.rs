//! Numbers for values: a linear scan that reuses what is free.

/// A file of slots or masks.
#[derive(Default)]
pub(crate) struct Allocator {
    used: Vec<bool>,
    /// No number below is free.
    first_free: usize,
}

impl Allocator {
    /// The first run of `count` free numbers, now used.
    pub(crate) fn take(&mut self, count: u32) -> u32 {
        let count = count as usize;
        while self.used.get(self.first_free) == Some(&true) {
            self.first_free += 1;
        }
        let mut start = self.first_free;
        let mut at = start;
        while at < start + count {
            if self.used.get(at) == Some(&true) {
                start = at + 1;
            }
            at += 1;
        }
        if self.used.len() < start + count {
            self.used.resize(start + count, false);
        }
        for used in self.used.iter_mut().skip(start).take(count) {
            *used = true;
        }
        start as u32
    }

    /// Numbers that nothing has used before and nothing else will: set once, before the kernel runs.
    pub(crate) fn take_fresh(&mut self, count: u32) -> u32 {
        let start = self.used.len();
        self.used.resize(start + count as usize, true);
        start as u32
    }

    /// Gives numbers back.
    pub(crate) fn give(&mut self, start: u32, count: u32) {
        for used in self.used.iter_mut().skip(start as usize).take(count as usize) {
            *used = false;
        }
        self.first_free = self.first_free.min(start as usize);
    }

    /// Size of the file.
    pub(crate) fn size(&self) -> u32 {
        self.used.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_holes_but_never_for_fresh_numbers() {
        let mut allocator = Allocator::default();
        assert_eq!(allocator.take(2), 0);
        assert_eq!(allocator.take(1), 2);
        allocator.give(0, 2);
        assert_eq!(allocator.take(1), 0);
        assert_eq!(allocator.take(2), 3);
        assert_eq!(allocator.take_fresh(1), 5);
        assert_eq!(allocator.take(1), 1);
        assert_eq!(allocator.size(), 6);
    }
}
