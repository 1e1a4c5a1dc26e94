//! `stmatrix`, by the thread-value layouts of its copy atom.

use lacewing_core::atoms::CopySpec;

use super::access::AccessError;
use super::atom::Spot;
use crate::emulator::lanes::{LANES, Reg, Registers};
use crate::emulator::memory::{Bytes, Region, SharedMemory};
use crate::emulator::op::Access;

/// Halves of 16 bits in a row.
const HALVES: usize = 8;
/// Bits of a row.
const ROW_BITS: usize = 128;

/// A row of a matrix: which lane names it, and where its halves are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixRow {
    pub(crate) lane: u8,
    pub(crate) halves: [Spot; HALVES],
}

/// Operands of [`crate::emulator::op::Op::StoreMatrix`].
#[derive(Clone, Debug)]
pub(crate) struct MatrixStoreOp {
    pub(crate) rows: Vec<MatrixRow>,
    /// The registers that are stored.
    pub(crate) values: Vec<Reg>,
    pub(crate) address: Reg,
    /// Shape of a row in shared memory.
    pub(crate) access: u32,
    /// Shape of a register.
    pub(crate) value: u32,
}

/// The rows that the instruction stores, from registers of 32 bits in these slots; `None` where the description has no
/// rows of 16 bytes.
pub(crate) fn rows_of(spec: &CopySpec, values: &[Reg]) -> Option<Vec<MatrixRow>> {
    let nowhere = Spot { slot: 0, lane: 0, shift: 0 };
    let (held, named) = (spec.held(), spec.named());
    let mut rows: Vec<MatrixRow> = Vec::new();
    for lane in 0..spec.threads() {
        // Lanes beyond the last row name nothing of their own.
        if named.index(lane, 0) == rows.len() * ROW_BITS {
            rows.push(MatrixRow { lane: lane as u8, halves: [nowhere; HALVES] });
        }
    }
    for thread in 0..spec.threads() {
        for bit in (0..spec.bits()).step_by(16) {
            let at = held.index(thread, bit);
            let half = rows.get_mut(at / ROW_BITS)?.halves.get_mut(at % ROW_BITS / 16)?;
            let slot = values.get(bit / 32).copied()?;
            *half = Spot { slot, lane: thread as u8, shift: (bit % 32) as u8 };
        }
    }
    Some(rows)
}

/// A row on its way: the lane that names it, where it goes, and its words.
pub(crate) struct Row {
    pub(crate) lane: u32,
    pub(crate) at: usize,
    pub(crate) words: [u32; 4],
}

/// Gathers the rows, whose ranges are checked.
pub(crate) fn gather(
    memory: &SharedMemory,
    regs: &Registers<'_>,
    op: &MatrixStoreOp,
    access: &Access,
) -> Result<Vec<Row>, AccessError> {
    let addresses = regs.read::<u32>(op.address);
    let row = |row: &MatrixRow| {
        let lane = usize::from(row.lane) % LANES;
        let address = addresses[lane];
        let at = memory.check_range(u64::from(address), ROW_BITS / 8, access).map_err(|fault| AccessError {
            fault,
            lane: lane as u32,
            address: address.into(),
        })?;
        let halves = row.halves.map(|spot| (regs.lane::<u32>(spot.slot, usize::from(spot.lane)) >> spot.shift) as u16);
        Ok(Row { lane: lane as u32, at, words: bytemuck::cast(halves) })
    };
    op.rows.iter().map(row).collect()
}

/// Writes gathered rows.
pub(crate) fn scatter(memory: &SharedMemory, rows: &[Row]) {
    for row in rows {
        // SAFETY: `gather` has checked the range, and its start is a multiple of 16.
        unsafe { memory.store_words(row.at, row.words) };
        memory.mark_written(row.at, ROW_BITS / 8);
    }
}
