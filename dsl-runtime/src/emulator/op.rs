//! The bytecode: one [`Op`] is what all 32 lanes of a slot do at once.
//!
//! Operands are numbers of slots ([`Reg`]) and masks ([`MaskReg`]). What does not fit 24 bytes lies
//! in a table of the program, by index. `half` is the half of a wave (always 0 for warps of 32).

use super::exec::elementwise::{BinaryOp, CompareOp, DivideOp, UnaryOp};
use super::lanes::{MaskReg, Reg};

/// Index of an op.
pub(crate) type Pc = u32;

/// One operation of a warp.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// `d = op(a)`.
    Unary { op: UnaryOp, d: Reg, a: Reg },
    /// `d = op(a, b)`.
    Binary { op: BinaryOp, d: Reg, a: Reg, b: Reg },
    /// `Binary` of `AddF32`: the commonest have an operation of their own, which saves a jump.
    AddF32 { d: Reg, a: Reg, b: Reg },
    /// `Binary` of `SubF32`.
    SubF32 { d: Reg, a: Reg, b: Reg },
    /// `Binary` of `MulF32`.
    MulF32 { d: Reg, a: Reg, b: Reg },
    /// `Binary` of 32-bit integers, as part of an address; `signed` says as what its index is extended.
    Index { op: BinaryOp, signed: bool, d: Reg, a: Reg, b: Reg },
    /// `d = a * b + c` with one rounding.
    FmaF32 { d: Reg, a: Reg, b: Reg, c: Reg },
    /// The same in binary64.
    FmaF64 { d: Reg, a: Reg, b: Reg, c: Reg },
    /// `a * b + c` rounded to odd; the 16-bit format's rounding follows.
    FmaOdd { d: Reg, a: Reg, b: Reg, c: Reg },
    /// Integer division or remainder; active lanes must not divide by zero.
    Divide { op: DivideOp, half: u8, d: Reg, a: Reg, b: Reg },
    /// `d = op(a, b)`, or its opposite.
    Compare { op: CompareOp, negate: bool, half: u8, d: MaskReg, a: Reg, b: Reg },
    /// `d = mask ? a : b` for 32-bit values.
    Select32 { half: u8, d: Reg, mask: MaskReg, a: Reg, b: Reg },
    /// `d = mask ? a : b` for 64-bit values.
    Select64 { half: u8, d: Reg, mask: MaskReg, a: Reg, b: Reg },
    /// The low binary16 of each word.
    F16LowToF32 { d: Reg, a: Reg },
    /// The high binary16 of each word.
    F16HighToF32 { d: Reg, a: Reg },
    /// Two binary32 values, rounded to nearest even, as the halves of a word.
    PackF16 { d: Reg, low: Reg, high: Reg },
    /// Two slots of words to one pair of slots of 64-bit numbers, low words first.
    JoinWords { d: Reg, a: Reg },
    /// The opposite.
    SplitWords { d: Reg, a: Reg },
    /// `base + index * scale` for 64-bit addresses and indices.
    Address64 { d: Reg, base: Reg, index: Reg, scale: u32 },
    /// Notes the active lanes whose index is outside of a tensor, along one dimension.
    Beyond { table: u32, half: u8 },
    /// Marks the addresses that are made of such indices.
    MarkBeyond { d: Reg, table: u32, half: u8 },
    /// Takes the marks off.
    Unmark { d: Reg },
    /// `base + index * scale` for 32-bit addresses and indices.
    Address32 { d: Reg, base: Reg, index: Reg, scale: u32 },

    /// `count` adjacent slots.
    Move { d: Reg, a: Reg, count: u32 },
    /// `count` adjacent slots of 32-bit lanes, in active lanes only.
    MoveMasked { half: u8, d: Reg, a: Reg, count: u32 },
    /// Pairs of slots of 64-bit lanes, in active lanes only; `count` pairs.
    MoveMasked64 { half: u8, d: Reg, a: Reg, count: u32 },
    /// `d = a` for conditions.
    MaskMove { d: MaskReg, a: MaskReg },
    /// `d = a` in active lanes.
    MaskMoveMasked { d: MaskReg, a: MaskReg },
    /// `d = a & b`.
    MaskAnd { d: MaskReg, a: MaskReg, b: MaskReg },
    /// `d = a | b`.
    MaskOr { d: MaskReg, a: MaskReg, b: MaskReg },
    /// `d = a ^ b`.
    MaskXor { d: MaskReg, a: MaskReg, b: MaskReg },
    /// `d = !a`.
    MaskNot { d: MaskReg, a: MaskReg },
    /// `d = mask ? a : b`.
    MaskSelect { d: MaskReg, mask: MaskReg, a: MaskReg, b: MaskReg },

    /// Load from global memory where `mask` holds.
    LoadGlobal { d: Reg, address: Reg, mask: MaskReg, access: u32 },
    /// Load from shared memory where `mask` holds.
    LoadShared { d: Reg, address: Reg, mask: MaskReg, access: u32 },
    /// Store to global memory where `mask` holds.
    StoreGlobal { value: Reg, address: Reg, mask: MaskReg, access: u32 },
    /// Store to shared memory where `mask` holds.
    StoreShared { value: Reg, address: Reg, mask: MaskReg, access: u32 },
    /// `d = mask` where `index * size + access size <= bytes`: the lanes that a bounded buffer serves.
    BufferMask { d: MaskReg, mask: MaskReg, offset: Reg, bytes: Reg, access: u32 },
    /// Read-modify-write; operands in the table of atomics.
    Atomic { table: u32 },
    /// Starts a copy; operands in the table of copies.
    CopyAsync { table: u32 },
    /// Closes the open group of copies.
    CopyCommit,
    /// Lands all but the newest `groups` groups.
    CopyWait { groups: u32 },
    /// `ldmatrix`; operands in the table of matrix loads.
    LoadMatrix { table: u32 },
    /// `stmatrix`; operands in the table of matrix stores.
    StoreMatrix { table: u32 },
    /// `mma.sync`; operands in the table of products.
    Mma { table: u32 },
    /// `mfma`; operands in the table of products.
    Mfma { table: u32 },
    /// Any other matrix instruction; operands in the table of atoms.
    Atom { table: u32 },

    /// Lane i reads lane `i ^ distance`, for warps of 32.
    ShuffleXor { d: Reg, a: Reg, distance: u32 },
    /// Lane i reads the lane that mode and `index` name.
    Shuffle { mode: ShuffleMode, wave: bool, d: Reg, a: Reg, index: Reg },
    /// The active lanes where `mask` holds, as a 64-bit number.
    Ballot { wave: bool, d: Reg, mask: MaskReg },
    /// True in the first active lane.
    Elect { d: MaskReg },
    /// All lanes of the warp must be here.
    WarpSync,
    /// Reports unless `mask` holds in all active lanes.
    Assert { mask: MaskReg, message: u32 },
    /// Prints a line for each active lane; operands in the table of prints.
    Print { table: u32 },

    /// Saves the mask and keeps the lanes where `cond` holds; jumps to `otherwise` (an `Else`) when none.
    If { cond: MaskReg, otherwise: Pc },
    /// Turns to the other lanes; jumps to `end` (an `EndIf`) when there are none.
    Else { end: Pc },
    /// Restores the mask.
    EndIf,
    /// Saves the mask; `iv = low`; keeps the lanes where `iv < high`; jumps past the loop when none.
    For { kind: LoopKind, wave: bool, iv: Reg, low: Reg, high: Reg, step: Reg, end: Pc },
    /// `iv += step`; keeps the lanes where `iv < high`; jumps to `body` while there are some, else
    /// restores the mask.
    Next { kind: LoopKind, wave: bool, iv: Reg, high: Reg, step: Reg, body: Pc },
    /// Saves the mask.
    While,
    /// Keeps the lanes where `cond` holds; without any, restores the mask and jumps to `end`.
    WhileTest { cond: MaskReg, end: Pc },
    /// Back to the start of the loop; what decides about its rounds is in the table of watches, or is memory and in
    /// none.
    Repeat { body: Pc, watch: u32 },

    /// The block's barrier.
    Barrier,
    /// One of the block's named barriers, waiting.
    NamedSync { id: u32, threads: u32 },
    /// One of the block's named barriers, not waiting.
    NamedArrive { id: u32, threads: u32 },
    /// An operation of [`super::asynchronous`].
    Async { table: u32 },
    /// The end of the kernel.
    End,
}

impl Op {
    /// The operation that stands for this one in the interpreter.
    pub(crate) fn specific(self) -> Self {
        match self {
            Self::Binary { op: BinaryOp::AddF32, d, a, b } => Self::AddF32 { d, a, b },
            Self::Binary { op: BinaryOp::SubF32, d, a, b } => Self::SubF32 { d, a, b },
            Self::Binary { op: BinaryOp::MulF32, d, a, b } => Self::MulF32 { d, a, b },
            other => other,
        }
    }

    /// The opposite: what everything but the interpreter looks at.
    pub(crate) fn general(self) -> Self {
        match self {
            Self::AddF32 { d, a, b } => Self::Binary { op: BinaryOp::AddF32, d, a, b },
            Self::SubF32 { d, a, b } => Self::Binary { op: BinaryOp::SubF32, d, a, b },
            Self::MulF32 { d, a, b } => Self::Binary { op: BinaryOp::MulF32, d, a, b },
            other => other,
        }
    }
}

/// What lane a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    /// `lane ^ index`.
    Xor,
    /// `lane - index`; the own lane below zero.
    Up,
    /// `lane + index`; the own lane beyond the last.
    Down,
    /// `index`.
    Index,
}

/// Type of a loop's induction variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopKind {
    /// 32 bits, compared as signed.
    I32,
    /// 32 bits, compared as unsigned.
    U32,
    /// 64 bits, compared as signed.
    I64,
    /// 64 bits, compared as unsigned.
    U64,
}

impl LoopKind {
    /// Slots of the induction variable in one half.
    pub(crate) fn slots(self) -> u32 {
        match self {
            Self::I32 | Self::U32 => 1,
            Self::I64 | Self::U64 => 2,
        }
    }
}

/// Shape of a load or store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// Bytes of one lane.
    pub(crate) bytes: u32,
    /// Bytes that stay together in a register lane: 1, 2, 4, or 8 for 64-bit elements. Divides
    /// `bytes` unless it is 4 and the last word is partial.
    pub(crate) unit: u32,
    /// Alignment that the address must have.
    pub(crate) align: u32,
    /// Size of the element, for indices in reports.
    pub(crate) element: u32,
    /// Half of the wave.
    pub(crate) half: u8,
    /// Number format of the elements.
    pub(crate) format: NumberFormat,
    /// Member of shared memory, by index in the program's table; the whole block's for global.
    pub(crate) member: u32,
    /// First byte of the member.
    pub(crate) low: u32,
    /// Past its last byte.
    pub(crate) high: u32,
}

impl Access {
    /// Slots of the accessed value in one half.
    pub(crate) fn slots(&self) -> u32 {
        self.bytes.div_ceil(4)
    }
}

/// Number format of an access's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFormat {
    /// Whatever is not a float.
    Integer,
    F16,
    Bf16,
    F32,
    F64,
    E4m3,
    E5m2,
}

/// What a read-modify-write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Add,
    Sub,
    MaxS,
    MinS,
    MaxU,
    MinU,
    And,
    Or,
    Xor,
    Exchange,
    AddF,
    MaxF,
    MinF,
    CompareExchange,
}

/// Number format of an atomic's element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicType {
    /// An integer of the access's size.
    Integer,
    F16,
    Bf16,
    F32,
    F64,
}

/// Operands of [`Op::Atomic`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicOp {
    pub(crate) kind: AtomicKind,
    pub(crate) ty: AtomicType,
    pub(crate) shared: bool,
    /// Whether later accesses of the thread stay behind it.
    pub(crate) acquires: bool,
    /// Whether earlier accesses of the thread stay before it.
    pub(crate) releases: bool,
    pub(crate) d: Reg,
    pub(crate) address: Reg,
    /// The operand; the desired value of a compare-exchange.
    pub(crate) value: Reg,
    /// The expected value of a compare-exchange.
    pub(crate) expected: Reg,
    pub(crate) access: u32,
}

/// Operands of [`Op::CopyAsync`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyOp {
    pub(crate) destination: Reg,
    pub(crate) source: Reg,
    pub(crate) valid: MaskReg,
    /// Shape in shared memory.
    pub(crate) to: u32,
    /// Shape in global memory.
    pub(crate) from: u32,
    /// Half of the wave.
    pub(crate) half: u8,
    /// How the destination is named, and when the copy lands.
    pub(crate) lds: Option<ToLds>,
}

/// A copy straight to LDS: its destination is one for the wave, and it lands at the next barrier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToLds {
    /// The destination in the low half of the wave.
    pub(crate) first: Reg,
    /// Bytes from one lane's destination to the next.
    pub(crate) pitch: u32,
    /// Bytes of the lane before this part.
    pub(crate) part: u32,
}

/// Operands of [`Op::LoadMatrix`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixLoadOp {
    pub(crate) d: [Reg; 4],
    /// Matrices: 1, 2 or 4.
    pub(crate) count: u8,
    pub(crate) transposed: bool,
    pub(crate) address: Reg,
    pub(crate) access: u32,
}

/// Element type of a matrix product's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixType {
    F16,
    Bf16,
    Tf32,
}

/// Operands of [`Op::Mma`]: m16n8, `k` by the number of registers of A.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MmaOp {
    pub(crate) ty: MatrixType,
    pub(crate) k: u8,
    pub(crate) a: [Reg; 4],
    pub(crate) b: [Reg; 2],
    pub(crate) c: [Reg; 4],
    pub(crate) d: [Reg; 4],
}

/// Operands of [`Op::Mfma`]. Slots of the low half; those of the high half follow each value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MfmaOp {
    pub(crate) ty: MatrixType,
    /// Rows and columns: 32 (k 8) or 16 (k 16).
    pub(crate) size: u8,
    pub(crate) a: Reg,
    pub(crate) b: Reg,
    pub(crate) c: [Reg; 16],
    pub(crate) d: [Reg; 16],
}

impl MfmaOp {
    /// Registers of a lane that the sums take.
    pub(crate) fn registers(&self) -> usize {
        if self.size == 32 { 16 } else { 4 }
    }
}

/// How an argument of a print is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrintType {
    Bool,
    /// Signed integers of so many bits.
    Signed(u8),
    F16,
    Bf16,
    F32,
    F64,
}

/// One argument of a print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrintArg {
    pub(crate) ty: PrintType,
    /// Slot of the low half, or the mask of a `Bool`.
    pub(crate) reg: Reg,
    /// Distance to the slot of the high half.
    pub(crate) half_stride: u32,
}

/// Operands of [`Op::Print`].
#[derive(Clone, Debug)]
pub(crate) struct PrintOp {
    pub(crate) format: String,
    pub(crate) args: Vec<PrintArg>,
}
