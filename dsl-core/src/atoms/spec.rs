//! What a matrix instruction is: its shape, its element types, and where each thread's values lie.

use std::fmt;

use crate::layout::{Layout, LayoutError};
use crate::trace::IrType;
use crate::{ScalarType, Target, Vendor};

/// An operand of a matrix product `D = A B + C`; C and D are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The left factor, M x K.
    A,
    /// The right factor, K x N. Its layouts count `(n, k)`, as CuTe's do.
    B,
    /// The accumulator, M x N.
    C,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}

/// A thread-value layout: modes `(extent, stride)` of the thread number and of the value number. The index counts
/// the operand's elements with the first dimension (m of A and C, n of B) fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tv {
    /// Modes of the thread's number in its warp.
    pub thread: &'static [(i64, i64)],
    /// Modes of the value's number in the thread.
    pub value: &'static [(i64, i64)],
}

impl Tv {
    /// As a layout of two modes, `(T, V)`.
    ///
    /// # Errors
    /// None for the rows of the table, which a test has seen to be layouts.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        let mode = |modes: &[(i64, i64)]| {
            let (extents, strides): (Vec<i64>, Vec<i64>) = modes.iter().copied().unzip();
            Layout::new(extents, strides)
        };
        Layout::concat([&mode(self.thread)?, &mode(self.value)?])
    }

    /// The index of value `value` of thread `thread`, both below their counts.
    pub fn index(&self, thread: usize, value: usize) -> usize {
        let part = |modes: &[(i64, i64)], number: usize| {
            let (mut rest, mut sum) = (number as i64, 0);
            for &(extent, stride) in modes {
                sum += rest % extent * stride;
                rest /= extent;
            }
            sum
        };
        (part(self.thread, thread) + part(self.value, value)) as usize
    }
}

/// One operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperandSpec {
    /// Element type of the values.
    pub element: ScalarType,
    /// Values in one register: 1 for a scalar, else the length of a vector.
    pub pack: usize,
    /// Where the values lie.
    pub tv: Tv,
}

impl OperandSpec {
    /// Threads that hold the operand.
    pub const fn threads(&self) -> usize {
        product(self.tv.thread)
    }

    /// Values of a thread.
    pub const fn values(&self) -> usize {
        product(self.tv.value)
    }

    /// Registers of a thread: SSA values, each of [`OperandSpec::pack`] values.
    pub const fn registers(&self) -> usize {
        self.values() / self.pack
    }

    /// The type of a register.
    pub const fn register_type(&self) -> IrType {
        if self.pack == 1 { IrType::Scalar(self.element) } else { IrType::Vector(self.element, self.pack) }
    }
}

const fn product(modes: &[(i64, i64)]) -> usize {
    let (mut product, mut i) = (1, 0);
    while i < modes.len() {
        product *= modes[i].0 as usize;
        i += 1;
    }
    product
}

/// The op of the traced IR that an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixOp {
    /// `lw.mma_sync`
    MmaSync,
    /// `lw.mfma`
    Mfma,
    /// `math.fma` of one thread.
    Fma,
}

impl MatrixOp {
    /// Name of the op.
    pub fn name(self) -> &'static str {
        match self {
            Self::MmaSync => "lw.mma_sync",
            Self::Mfma => "lw.mfma",
            Self::Fma => "math.fma",
        }
    }
}

/// On which chips an instruction exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chips {
    /// All chips of all vendors.
    All,
    /// NVIDIA, from this [`Target::generation`] on.
    NvidiaFrom(u32),
    /// AMD, all.
    Amd,
    /// AMD, of this generation alone.
    AmdOnly(u32),
}

/// A matrix instruction: `D = A B + C` of one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaSpec {
    /// The op of the traced IR.
    pub op: MatrixOp,
    /// The attribute `kind` of the op: the element type of A and B, or both as `u8.s8`, and of sums of 16 bits as
    /// `f16+f16`.
    pub kind: &'static str,
    /// M, N and K.
    pub shape: [usize; 3],
    /// Independent products of that shape; more than one for some MFMA.
    pub blocks: usize,
    /// The left factor; its layout counts `(m, k)`.
    pub a: OperandSpec,
    /// The right factor; its layout counts `(n, k)`.
    pub b: OperandSpec,
    /// Accumulator and result; their layout counts `(m, n)`.
    pub c: OperandSpec,
    /// Where it exists.
    pub chips: Chips,
    /// The section of the instruction set manual that the layouts are from.
    pub isa: &'static str,
}

impl MmaSpec {
    /// An operand.
    pub const fn operand(&self, role: Role) -> &OperandSpec {
        match role {
            Role::A => &self.a,
            Role::B => &self.b,
            Role::C => &self.c,
        }
    }

    /// Rows and columns in the order in which the operand's layout counts: `(m, k)`, `(n, k)` or `(m, n)`, with the
    /// blocks side by side along the second.
    pub const fn extents(&self, role: Role) -> [usize; 2] {
        let [m, n, k] = self.shape;
        match role {
            Role::A => [m, k * self.blocks],
            Role::B => [n, k * self.blocks],
            Role::C => [m, n * self.blocks],
        }
    }

    /// Threads that execute it together.
    pub const fn threads(&self) -> usize {
        self.c.threads()
    }

    /// Its name, as `mma_sync.16x8x16.f16`, or `mfma.4x4x4x16.f16` of 16 blocks.
    pub fn name(&self) -> String {
        let [m, n, k] = self.shape;
        let op = match self.op {
            MatrixOp::MmaSync => "mma_sync",
            MatrixOp::Mfma => "mfma",
            MatrixOp::Fma => "fma",
        };
        let blocks = if self.blocks == 1 { String::new() } else { format!("x{}", self.blocks) };
        format!("{op}.{m}x{n}x{k}{blocks}.{}", self.kind)
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
        if legal {
            return Ok(());
        }
        let vendor = match self.op {
            MatrixOp::MmaSync => Vendor::Nvidia,
            _ => Vendor::Amd,
        };
        if target.vendor() != vendor {
            return Err(match vendor {
                Vendor::Nvidia => "it is an instruction of NVIDIA chips; use an `Mfma` atom".to_owned(),
                Vendor::Amd => "it is an instruction of AMD chips; use an `MmaSync` atom".to_owned(),
            });
        }
        Err(match self.chips {
            Chips::NvidiaFrom(generation) => format!("it needs sm_{generation} or later"),
            Chips::AmdOnly(generation) => format!("it exists on gfx{generation} only"),
            Chips::All | Chips::Amd => "it does not exist there".to_owned(),
        })
    }

    /// The instruction of an op's attributes.
    pub fn find(op: MatrixOp, shape: [usize; 3], kind: &str) -> Option<&'static Self> {
        super::MMA_TABLE.iter().find(|spec| spec.op == op && spec.shape == shape && spec.kind == kind)
    }
}
