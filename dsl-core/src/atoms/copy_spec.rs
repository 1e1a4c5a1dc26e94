//! What a copy instruction is: which thread names which bits of memory, and which thread gets which.

use super::spec::{Chips, Tv};
use crate::Target;
use crate::layout::{Layout, LayoutError};

/// A memory that copies read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Global memory.
    Global,
    /// Shared memory (LDS).
    Shared,
    /// Registers of a thread.
    Registers,
}

/// A copy instruction, described as CuTe's `Copy_Traits` are: two thread-value layouts of bits. Bit `source(t, v)` of
/// what is copied is bit `v` of what thread `t` names in the source, and bit `destination(t, v)` is bit `v` of what it
/// has in the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySpec {
    /// Its name, as `ldmatrix.x4.trans`.
    pub name: &'static str,
    /// Where it copies from.
    pub from: Memory,
    /// Where it copies to.
    pub to: Memory,
    /// Bits by thread and number on the source's side.
    pub source: Tv,
    /// Bits by thread and number on the destination's side.
    pub destination: Tv,
    /// Where it exists.
    pub chips: Chips,
    /// Section of the manual.
    pub isa: &'static str,
}

impl CopySpec {
    /// Threads that execute it together.
    pub fn threads(&self) -> usize {
        self.destination.thread.iter().map(|&(extent, _)| extent as usize).product()
    }

    /// Bits that a thread gets.
    pub fn bits(&self) -> usize {
        self.destination.value.iter().map(|&(extent, _)| extent as usize).product()
    }

    /// The layout from a thread and a number on one side to those on the other: `inverse(source) o destination`.
    ///
    /// # Errors
    /// None for the rows of the table, which a test has seen to be layouts.
    pub fn movement(&self) -> Result<Layout, LayoutError> {
        self.source.layout()?.right_inverse()?.composition(self.destination.layout()?)
    }

    /// Whether the chip has it; otherwise the reason.
    ///
    /// # Errors
    /// A sentence for the user.
    pub fn legal_on(&self, target: Target) -> Result<(), String> {
        let legal = match self.chips {
            Chips::All => true,
            Chips::NvidiaFrom(generation) => target.is_nvidia() && target.generation() >= generation,
            Chips::Amd => target.is_amd(),
            Chips::AmdOnly(generation) => target.is_amd() && target.generation() == generation,
        };
        if legal { Ok(()) } else { Err(format!("`{}` does not exist on {target}", self.name)) }
    }
}

const fn alone(
    name: &'static str,
    from: Memory,
    to: Memory,
    bits: &'static [(i64, i64)],
    chips: Chips,
    isa: &'static str,
) -> CopySpec {
    let side = Tv { thread: &[(1, 0)], value: bits };
    CopySpec { name, from, to, source: side, destination: side, chips, isa }
}

/// `ldmatrix`: threads 8i to 8i + 7 name the rows of matrix i, 128 bits each; thread t gets 32 bits of each matrix, of row
/// t / 4, or, transposed, two halves of column t / 4.
macro_rules! matrices {
    ($name:literal, $count:literal, straight) => {
        matrices!(@ $name, $count, &[(32, 32)], &[(32, 1), ($count, 1024)])
    };
    ($name:literal, $count:literal, transposed) => {
        matrices!(@ $name, $count, &[(4, 256), (8, 16)], &[(16, 1), (2, 128), ($count, 1024)])
    };
    (@ $name:literal, $count:literal, $thread:expr, $value:expr) => {
        CopySpec {
            name: $name,
            from: Memory::Shared,
            to: Memory::Registers,
            source: Tv { thread: &[(8 * $count, 128), (4 / $count, 0)], value: &[(128, 1)] },
            destination: Tv { thread: $thread, value: $value },
            chips: Chips::NvidiaFrom(80),
            isa: "PTX ISA, ldmatrix",
        }
    };
}

const LD: &str = "PTX ISA, ld; CDNA3 ISA, GLOBAL_LOAD and DS_READ";
const ST: &str = "PTX ISA, st; CDNA3 ISA, GLOBAL_STORE and DS_WRITE";
const ASYNC: &str = "PTX ISA, cp.async";
const BUFFER: &str = "CDNA3 ISA, Vector Memory Buffer Instructions";

/// Every copy instruction that Lacewing's tiles and [`crate::types::BufferRsrc`] are made of.
///
/// Left out: loads from global memory straight to LDS (CDNA), whose waits the emulator does not model, and `stmatrix`.
pub static COPY_TABLE: &[CopySpec] = &[
    alone("load.8", Memory::Global, Memory::Registers, &[(8, 1)], Chips::All, LD),
    alone("load.16", Memory::Global, Memory::Registers, &[(16, 1)], Chips::All, LD),
    alone("load.32", Memory::Global, Memory::Registers, &[(32, 1)], Chips::All, LD),
    alone("load.64", Memory::Global, Memory::Registers, &[(64, 1)], Chips::All, LD),
    alone("load.128", Memory::Global, Memory::Registers, &[(128, 1)], Chips::All, LD),
    alone("store.8", Memory::Registers, Memory::Global, &[(8, 1)], Chips::All, ST),
    alone("store.16", Memory::Registers, Memory::Global, &[(16, 1)], Chips::All, ST),
    alone("store.32", Memory::Registers, Memory::Global, &[(32, 1)], Chips::All, ST),
    alone("store.64", Memory::Registers, Memory::Global, &[(64, 1)], Chips::All, ST),
    alone("store.128", Memory::Registers, Memory::Global, &[(128, 1)], Chips::All, ST),
    alone("load_shared.32", Memory::Shared, Memory::Registers, &[(32, 1)], Chips::All, LD),
    alone("load_shared.64", Memory::Shared, Memory::Registers, &[(64, 1)], Chips::All, LD),
    alone("load_shared.128", Memory::Shared, Memory::Registers, &[(128, 1)], Chips::All, LD),
    alone("store_shared.32", Memory::Registers, Memory::Shared, &[(32, 1)], Chips::All, ST),
    alone("store_shared.64", Memory::Registers, Memory::Shared, &[(64, 1)], Chips::All, ST),
    alone("store_shared.128", Memory::Registers, Memory::Shared, &[(128, 1)], Chips::All, ST),
    alone("cp_async.32", Memory::Global, Memory::Shared, &[(32, 1)], Chips::NvidiaFrom(80), ASYNC),
    alone("cp_async.64", Memory::Global, Memory::Shared, &[(64, 1)], Chips::NvidiaFrom(80), ASYNC),
    alone("cp_async.128", Memory::Global, Memory::Shared, &[(128, 1)], Chips::NvidiaFrom(80), ASYNC),
    alone("buffer_load.32", Memory::Global, Memory::Registers, &[(32, 1)], Chips::Amd, BUFFER),
    alone("buffer_load.64", Memory::Global, Memory::Registers, &[(64, 1)], Chips::Amd, BUFFER),
    alone("buffer_load.128", Memory::Global, Memory::Registers, &[(128, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.32", Memory::Registers, Memory::Global, &[(32, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.64", Memory::Registers, Memory::Global, &[(64, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.128", Memory::Registers, Memory::Global, &[(128, 1)], Chips::Amd, BUFFER),
    matrices!("ldmatrix.x1", 1, straight),
    matrices!("ldmatrix.x2", 2, straight),
    matrices!("ldmatrix.x4", 4, straight),
    matrices!("ldmatrix.x1.trans", 1, transposed),
    matrices!("ldmatrix.x2.trans", 2, transposed),
    matrices!("ldmatrix.x4.trans", 4, transposed),
];
