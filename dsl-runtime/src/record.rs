//! What launches on the emulator did: which elements were read and written, by whom, at what cost.
//!
//! A [`Observer`] is given to a device ([`Device::with_observer`](crate::Device::with_observer)); tensors that are
//! made with that handle are watched, and every launch with it leaves a [`Recorded`]. The debugging ladder
//! ([`check`](mod@crate::check)) and the performance report read them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use lacewing_core::SourceLocation;

use crate::emulator::{Buffer, LaunchStats, Writer, Writers};
use crate::tensor::{coordinates, positions, span};

/// Collects what launches did. Share it with a device by `Arc`.
#[derive(Debug, Default)]
pub struct Observer {
    launches: Mutex<Vec<Recorded>>,
}

impl Observer {
    /// The launches since the last call, in order.
    pub fn take(&self) -> Vec<Recorded> {
        std::mem::take(&mut *self.launches.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, recorded: Recorded) {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner).push(recorded);
    }
}

/// One launch.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Name of the kernel.
    pub kernel: String,
    /// Where the kernel is defined.
    pub location: Option<SourceLocation>,
    /// Its tensor arguments.
    pub views: Vec<RecordedView>,
    /// What it did; `None` when a check ended it.
    pub stats: Option<LaunchStats>,
    pub(crate) writers: Writers,
}

/// A tensor argument of a launch.
#[derive(Clone, Debug)]
pub struct RecordedView {
    /// Name of the kernel's parameter.
    pub name: String,
    /// Whether the kernel may write it.
    pub mutable: bool,
    /// Where the kernel reads it: the expression, then the call sites of the helpers that led there.
    pub reads: Vec<Vec<SourceLocation>>,
    /// Where the kernel writes it.
    pub writes: Vec<Vec<SourceLocation>>,
    /// The extents, outermost first.
    pub extents: Vec<usize>,
    pub(crate) strides: Vec<i64>,
    pub(crate) buffer: Buffer,
    /// Elements before the first one of the view.
    pub(crate) offset: usize,
    pub(crate) element_bytes: usize,
}

/// Elements of a view that something has not happened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    /// Their positions in row-major order of the view.
    pub elements: Vec<usize>,
    /// Elements of the view.
    pub total: usize,
    /// Index of the first one.
    pub first: Vec<usize>,
}

impl RecordedView {
    /// The elements that no launch has read, by now.
    pub fn unread(&self) -> Option<Missed> {
        self.within(&self.buffer.unread())
    }

    /// The elements that neither the host nor a launch has written, by now.
    pub fn unwritten(&self) -> Option<Missed> {
        self.within(&self.buffer.unwritten())
    }

    /// The first byte between the rows of the view, or outside it, that was written. Only tensors made with padding
    /// ([`Device::with_padding`](crate::Device::with_padding)) have bytes there that count as unwritten.
    pub(crate) fn stray_write(&self) -> Option<usize> {
        if !self.buffer.tracks_writes() {
            return None;
        }
        let (low, high) = span(self.offset, &self.extents, &self.strides)?;
        let size = self.element_bytes;
        let mut own = vec![false; self.buffer.len()];
        for at in self.positions() {
            own.get_mut(at..at + size)?.fill(true);
        }
        let mut written = vec![true; own.len()];
        for range in self.buffer.unwritten() {
            written.get_mut(range)?.fill(false);
        }
        let mut inside =
            usize::try_from(low).ok()?.checked_mul(size)?..usize::try_from(high + 1).ok()?.checked_mul(size)?;
        inside.find(|byte| own.get(*byte) == Some(&false) && written.get(*byte) == Some(&true))
    }

    fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        positions(self.offset, &self.extents, &self.strides, self.element_bytes)
    }

    fn within(&self, ranges: &[Range<usize>]) -> Option<Missed> {
        if ranges.is_empty() {
            return None;
        }
        let hit = |at: usize| {
            let next = ranges.partition_point(|range| range.end <= at);
            ranges.get(next).is_some_and(|range| range.start < at + self.element_bytes)
        };
        let elements: Vec<usize> =
            self.positions().enumerate().filter(|(_, at)| hit(*at)).map(|(index, _)| index).collect();
        let first = coordinates(*elements.first()?, &self.extents);
        Some(Missed { elements, total: self.positions().count(), first })
    }
}

impl Recorded {
    /// The argument of this name.
    pub fn view(&self, name: &str) -> Option<&RecordedView> {
        self.views.iter().find(|view| view.name == name)
    }

    /// Who wrote an element of an argument last in this launch.
    pub fn writer(&self, name: &str, index: &[usize]) -> Option<Writer> {
        let view = self.view(name)?;
        if index.len() != view.strides.len() {
            return None;
        }
        let steps = index.iter().zip(&view.strides).map(|(index, stride)| *index as i64 * stride);
        let at = view.offset as i64 + steps.sum::<i64>();
        self.writers.of(&view.buffer, usize::try_from(at).ok()? * view.element_bytes)
    }

    /// Who wrote a byte of an argument's buffer.
    pub(crate) fn writer_of_byte(&self, view: &RecordedView, byte: usize) -> Option<Writer> {
        self.writers.of(&view.buffer, byte)
    }
}
