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
    /// Where the destination is one address for all threads: the bits from where one thread's land to where the next
    /// one's do. 0 where each thread has its own.
    pub pitch: usize,
    /// Where it exists.
    pub chips: Chips,
    /// Section of the manual.
    pub isa: &'static str,
}

impl CopySpec {
    /// Threads that execute it together.
    pub fn threads(&self) -> usize {
        extent(self.destination.thread)
    }

    /// The side on which each bit belongs to one thread: registers, where there are any, else the destination.
    /// The other side may name bits by several threads, or by few.
    pub fn held(&self) -> &Tv {
        if self.from == Memory::Registers { &self.source } else { &self.destination }
    }

    /// The opposite side of [`CopySpec::held`].
    pub fn named(&self) -> &Tv {
        if self.from == Memory::Registers { &self.destination } else { &self.source }
    }

    /// Bits of a thread on the side of [`CopySpec::held`].
    pub fn bits(&self) -> usize {
        extent(self.held().value)
    }

    /// The instruction of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        COPY_TABLE.iter().find(|spec| spec.name == name)
    }

    /// `ldmatrix` or `stmatrix` of so many matrices; `None` where there is no such instruction.
    pub fn of_matrices(store: bool, count: usize, trans: bool) -> Option<&'static Self> {
        let (op, trans) = (if store { "st" } else { "ld" }, if trans { ".trans" } else { "" });
        Self::find(&format!("{op}matrix.x{count}{trans}"))
    }

    /// The copy of so many bytes of each lane from global memory straight to LDS, from a bounded buffer or not; `None`
    /// where there is no such instruction.
    pub fn to_lds(bytes: usize, bounded: bool) -> Option<&'static Self> {
        Self::find(&format!("{}load_lds.{}", if bounded { "buffer_" } else { "" }, 8 * bytes))
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

fn extent(modes: &[(i64, i64)]) -> usize {
    modes.iter().map(|&(extent, _)| extent as usize).product()
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
    CopySpec { name, from, to, source: side, destination: side, pitch: 0, chips, isa }
}

/// A wave's copy straight to LDS.
const fn to_lds(
    name: &'static str,
    thread: &'static [(i64, i64)],
    bits: &'static [(i64, i64)],
    pitch: usize,
    chips: Chips,
) -> CopySpec {
    let side = Tv { thread, value: bits };
    let (from, to) = (Memory::Global, Memory::Shared);
    CopySpec { name, from, to, source: side, destination: side, pitch, chips, isa: LDS }
}

/// `ldmatrix`: threads 8i to 8i + 7 name the rows of matrix i, 128 bits each; thread t gets 32 bits of each matrix, of row
/// t / 4, or, transposed, two halves of column t / 4. `stmatrix` is the same in the opposite direction.
macro_rules! matrices {
    ($name:literal, $count:literal, straight) => {
        matrices!(@ $name, $count, &[(32, 32)], &[(32, 1), ($count, 1024)])
    };
    ($name:literal, $count:literal, transposed) => {
        matrices!(@ $name, $count, &[(4, 256), (8, 16)], &[(16, 1), (2, 128), ($count, 1024)])
    };
    (@ $name:literal, $count:literal, $thread:expr, $value:expr) => {
        CopySpec {
            name: concat!("ldmatrix.", $name),
            from: Memory::Shared,
            to: Memory::Registers,
            source: Tv { thread: &[(8 * $count, 128), (4 / $count, 0)], value: &[(128, 1)] },
            destination: Tv { thread: $thread, value: $value },
            pitch: 0,
            chips: Chips::NvidiaFrom(80),
            isa: "PTX ISA, ldmatrix",
        }
    };
    (store $name:literal, $count:literal, $order:ident) => {
        CopySpec {
            name: concat!("stmatrix.", $name),
            from: Memory::Registers,
            to: Memory::Shared,
            source: matrices!($name, $count, $order).destination,
            destination: matrices!($name, $count, $order).source,
            pitch: 0,
            chips: Chips::NvidiaFrom(90),
            isa: "PTX ISA, stmatrix",
        }
    };
}

const LD: &str = "PTX ISA, ld; CDNA3 ISA, GLOBAL_LOAD and DS_READ";
const ST: &str = "PTX ISA, st; CDNA3 ISA, GLOBAL_STORE and DS_WRITE";
const ASYNC: &str = "PTX ISA, cp.async";
const LDS: &str = "CDNA3 ISA, Memory reads to LDS; CDNA4 ISA, the same of 96 and 128 bits";
const BUFFER: &str = "CDNA3 ISA, Vector Memory Buffer Instructions";

/// Every copy instruction that Lacewing's tiles and [`crate::types::BufferRsrc`] are made of.
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
    alone("load_shared.8", Memory::Shared, Memory::Registers, &[(8, 1)], Chips::All, LD),
    alone("load_shared.16", Memory::Shared, Memory::Registers, &[(16, 1)], Chips::All, LD),
    alone("load_shared.32", Memory::Shared, Memory::Registers, &[(32, 1)], Chips::All, LD),
    alone("load_shared.64", Memory::Shared, Memory::Registers, &[(64, 1)], Chips::All, LD),
    alone("load_shared.128", Memory::Shared, Memory::Registers, &[(128, 1)], Chips::All, LD),
    alone("store_shared.8", Memory::Registers, Memory::Shared, &[(8, 1)], Chips::All, ST),
    alone("store_shared.16", Memory::Registers, Memory::Shared, &[(16, 1)], Chips::All, ST),
    alone("store_shared.32", Memory::Registers, Memory::Shared, &[(32, 1)], Chips::All, ST),
    alone("store_shared.64", Memory::Registers, Memory::Shared, &[(64, 1)], Chips::All, ST),
    alone("store_shared.128", Memory::Registers, Memory::Shared, &[(128, 1)], Chips::All, ST),
    alone("cp_async.32", Memory::Global, Memory::Shared, &[(32, 1)], Chips::NvidiaFrom(80), ASYNC),
    alone("cp_async.64", Memory::Global, Memory::Shared, &[(64, 1)], Chips::NvidiaFrom(80), ASYNC),
    alone("cp_async.128", Memory::Global, Memory::Shared, &[(128, 1)], Chips::NvidiaFrom(80), ASYNC),
    alone("buffer_load.8", Memory::Global, Memory::Registers, &[(8, 1)], Chips::Amd, BUFFER),
    alone("buffer_load.16", Memory::Global, Memory::Registers, &[(16, 1)], Chips::Amd, BUFFER),
    alone("buffer_load.32", Memory::Global, Memory::Registers, &[(32, 1)], Chips::Amd, BUFFER),
    alone("buffer_load.64", Memory::Global, Memory::Registers, &[(64, 1)], Chips::Amd, BUFFER),
    alone("buffer_load.128", Memory::Global, Memory::Registers, &[(128, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.8", Memory::Registers, Memory::Global, &[(8, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.16", Memory::Registers, Memory::Global, &[(16, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.32", Memory::Registers, Memory::Global, &[(32, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.64", Memory::Registers, Memory::Global, &[(64, 1)], Chips::Amd, BUFFER),
    alone("buffer_store.128", Memory::Registers, Memory::Global, &[(128, 1)], Chips::Amd, BUFFER),
    to_lds("load_lds.32", &[(64, 32)], &[(32, 1)], 32, Chips::Amd),
    to_lds("load_lds.96", &[(64, 96)], &[(96, 1)], 128, Chips::AmdOnly(950)),
    to_lds("load_lds.128", &[(64, 128)], &[(128, 1)], 128, Chips::AmdOnly(950)),
    to_lds("buffer_load_lds.32", &[(64, 32)], &[(32, 1)], 32, Chips::Amd),
    to_lds("buffer_load_lds.96", &[(64, 96)], &[(96, 1)], 128, Chips::AmdOnly(950)),
    to_lds("buffer_load_lds.128", &[(64, 128)], &[(128, 1)], 128, Chips::AmdOnly(950)),
    matrices!("x1", 1, straight),
    matrices!("x2", 2, straight),
    matrices!("x4", 4, straight),
    matrices!("x1.trans", 1, transposed),
    matrices!("x2.trans", 2, transposed),
    matrices!("x4.trans", 4, transposed),
    matrices!(store "x1", 1, straight),
    matrices!(store "x2", 2, straight),
    matrices!(store "x4", 4, straight),
    matrices!(store "x1.trans", 1, transposed),
    matrices!(store "x2.trans", 2, transposed),
    matrices!(store "x4.trans", 4, transposed),
];
