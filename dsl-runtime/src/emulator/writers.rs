//! Who wrote the elements that a launch may write.

use std::collections::BTreeMap;

use lacewing_core::SourceLocation;

use super::Buffer;
use super::blame::unflatten;
use super::memory::{Epoch, GlobalView};
use super::op::Pc;
use super::program::{Place, Program};

/// The last write to each cell of the buffers that a launch may write. Nothing is known of what a block writes after
/// it has executed an atomic on global memory, nor of launches without the check `races`.
#[derive(Clone, Debug, Default)]
pub struct Writers {
    buffers: Vec<Cells>,
    places: BTreeMap<Pc, Place>,
    grid: [u32; 3],
    block: [u32; 3],
    warp_size: u32,
}

/// The cells of one buffer.
#[derive(Clone, Debug)]
struct Cells {
    buffer: Buffer,
    /// Logarithm of a cell's size in bytes.
    shift: u32,
    epochs: Vec<Epoch>,
}

/// The thread and the line that wrote an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The store in the source.
    pub location: Option<SourceLocation>,
    /// Call sites of the helpers that led there, innermost first.
    pub call_chain: Vec<SourceLocation>,
    /// The block.
    pub block: [u32; 3],
    /// The thread within its block.
    pub thread: Option<[u32; 3]>,
}

impl Writers {
    /// Takes the shadows of a launch that has ended.
    pub(crate) fn collect<'a>(
        program: &Program,
        grid: [u32; 3],
        shadows: impl Iterator<Item = (&'a Buffer, &'a GlobalView<'a>)>,
    ) -> Self {
        let mut places = BTreeMap::new();
        let mut buffers = Vec::new();
        for (buffer, view) in shadows {
            let Some(races) = &view.races else { continue };
            let (shift, epochs) = races.writes();
            for pc in epochs.iter().filter(|epoch| epoch.time() != 0).filter_map(|epoch| epoch.pc()) {
                places.entry(pc).or_insert_with(|| program.place(pc));
            }
            buffers.push(Cells { buffer: buffer.clone(), shift, epochs });
        }
        Self { buffers, places, grid, block: program.block(), warp_size: program.target().warp_size() }
    }

    /// Who wrote a byte of a buffer.
    pub fn of(&self, buffer: &Buffer, byte: usize) -> Option<Writer> {
        let cells = self.buffers.iter().find(|cells| cells.buffer.same(buffer))?;
        self.writer(*cells.epochs.get(byte >> cells.shift)?)
    }

    fn writer(&self, epoch: Epoch) -> Option<Writer> {
        let block = u64::from(epoch.time()).checked_sub(1)?;
        let place = epoch.pc().and_then(|pc| self.places.get(&pc)).cloned().unwrap_or_default();
        let thread = epoch.lane().map(|lane| {
            let linear = u64::from(epoch.warp() * self.warp_size + lane);
            unflatten(linear, self.block)
        });
        Some(Writer {
            location: place.location,
            call_chain: place.call_chain,
            block: unflatten(block, self.grid),
            thread,
        })
    }
}
