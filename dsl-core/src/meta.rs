//! What a launch must know of a kernel: plain data, which artifacts carry to programs without a compiler.

use crate::{ScalarType, Target};

/// Resource attributes of `#[kernel(..)]`. `None` leaves the choice to the compiler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelAttributes {
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks that should fit on one multiprocessor at once.
    pub min_blocks: Option<u32>,
    /// Registers a thread may use.
    pub max_regs: Option<u32>,
    /// Waves a SIMD unit should hold (AMD).
    pub waves_per_eu: Option<u32>,
    /// Blocks of a cluster in x, y, z (sm_90 and later).
    pub cluster: Option<[u32; 3]>,
}

/// Registers of an NVIDIA multiprocessor (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability").
const NVIDIA_REGISTERS: u32 = 64 * 1024;

impl KernelAttributes {
    /// Registers that a thread of an NVIDIA kernel starts with, where the attributes decide it: what `max_regs`
    /// says, or an equal share of the registers that `min_blocks` blocks have, in units of 8.
    pub fn entry_registers(&self) -> Option<u32> {
        let threads = u32::try_from(self.threads()).ok()?;
        let share =
            |blocks: u32| NVIDIA_REGISTERS.checked_div(threads.checked_mul(blocks)?).map(|n| (n / 8 * 8).min(255));
        self.max_regs.or_else(|| self.min_blocks.and_then(share))
    }

    /// Threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }
}

/// What one parameter of a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamKind {
    /// One value, passed by value.
    Scalar(ScalarType),
    /// A view of global memory: pointer, extents (i32), strides (i64, in elements).
    Tensor {
        /// Element type.
        elem: ScalarType,
        /// Number of dimensions.
        rank: usize,
        /// Whether the kernel may write it.
        mutable: bool,
    },
    /// A description of a tensor and of the boxes that are copied of it, in 128 bytes that the driver encodes.
    ///
    /// Box and swizzle follow from the shared memory that the kernel copies into.
    TensorMap {
        /// Element type.
        elem: ScalarType,
        /// Number of dimensions.
        rank: usize,
        /// Elements of a box, innermost dimension first; the first `rank` count. Zeros where the kernel
        /// never uses the map.
        box_shape: [u32; 5],
        /// Bytes of a swizzled row in shared memory: 128, 64, 32, or 0 for none.
        swizzle: u32,
        /// Whether the kernel stores through it.
        mutable: bool,
    },
}

impl ParamKind {
    /// Arguments of the traced function that it becomes.
    pub fn arguments(&self) -> usize {
        match self {
            ParamKind::Scalar(_) | ParamKind::TensorMap { .. } => 1,
            ParamKind::Tensor { rank, .. } => 1 + 2 * rank,
        }
    }
}

/// One parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamDesc {
    /// Name in the source.
    pub name: String,
    /// What it is.
    pub kind: ParamKind,
}

/// What a launch must know of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelMeta {
    /// Symbol of the kernel.
    pub name: String,
    /// Chip that it was traced for.
    pub target: Target,
    /// Block size and resource wishes.
    pub attributes: KernelAttributes,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Parameters in source order.
    pub params: Vec<ParamDesc>,
    /// For each parameter, bytes that a tensor's first element must be aligned to: the widest vector that the kernel moves
    /// from or to it in one access. 1 for scalars.
    pub alignments: Vec<u32>,
    /// Whether it calls `wait_for_previous_grid()` somewhere, so that it may start before the launch before it is through.
    pub waits_for_previous: bool,
}

/// Static shared memory that an NVIDIA kernel may declare; beyond it, memory is asked for at launch
/// (CUDA C++ Programming Guide, "Shared Memory": kernels relying on more than 48 KB must use dynamic memory).
const NVIDIA_STATIC_SHARED_BYTES: u32 = 48 * 1024;

impl KernelMeta {
    /// Bytes of dynamic shared memory that a launch must ask for; then the kernel has no static one.
    ///
    /// On NVIDIA the launcher must also raise the function's limit to it
    /// (`CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`). On AMD shared memory is always static.
    pub fn dynamic_shared_bytes(&self) -> u32 {
        let dynamic = self.target.is_nvidia() && self.shared_bytes > NVIDIA_STATIC_SHARED_BYTES;
        if dynamic { self.shared_bytes } else { 0 }
    }
}
