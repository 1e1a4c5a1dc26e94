//! What Blackwell brought: tensor memory, and matrix products that one thread starts and that sum in it.

mod product;
mod tensor_memory;

pub use product::{MmaInFlight, Tcgen05Operand, tcgen05_commit, tcgen05_mma};
pub use tensor_memory::{
    TensorMemory, TmemAccumulator, TmemLoad, TmemRows, TmemStore, TmemTile, tcgen05_fence_after_thread_sync,
    tcgen05_fence_before_thread_sync,
};
