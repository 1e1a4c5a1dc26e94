//! Atoms: the instructions that a tile is made of, as layouts.
//!
//! A matrix instruction is described by three *thread-value layouts*: where in A, B and C lies value `v` of thread
//! `t`. [`MmaSpec`] is such a description, [`MMA_TABLE`] holds one for each instruction that Lacewing knows, and
//! the types [`MmaSync`], [`Mfma`] and [`ScalarFma`] name them in kernels. [`CopySpec`] and [`COPY_TABLE`] do the same
//! for copies.
//!
//! Everything else follows from the descriptions: [`Fragment`]s, whose type says of which operand of which atom they
//! are; how a [`TiledMma`] or [`TiledCopy`] divides a tile among threads; which loads fill a fragment; what
//! `lacewing draw` shows; and what the emulator computes, which decodes an instruction by the same table.
//!
//! A warpgroup's products, whose factors are in shared memory, and the tensor copies that bring them are [`WgmmaSpec`],
//! [`PanelLayout`] and [`BoxSpec`].
//!
//! A new instruction is a row with its layouts, a type that names it, and an arm in the lowerings.

mod banks;
mod copy_spec;
mod copying;
mod direct;
mod draw;
mod flat;
mod fragment;
mod global_tile;
mod matrix_store;
mod offset;
mod operand_load;
mod shared_tensor;
mod spec;
mod table;
mod tiled_copy;
mod tiled_mma;
mod warpgroup;

#[cfg(test)]
mod tests;

pub use banks::{Spread, WarpAccess, access_conflicts, bank_phases, conflict_free};
pub use copy_spec::{COPY_TABLE, CopySpec, Memory};
pub use copying::{CopyPair, copy};
pub use draw::{Cell, Drawing, MAX_EXTENT};
pub use fragment::{Element, FactorA, FactorB, Fragment, FragmentA, FragmentB, FragmentC, gemm, operand};
pub use global_tile::GlobalTile;
pub use operand_load::{GlobalOperand, SharedOperand};
pub use shared_tensor::{IntoLayout, LayoutResult, SharedTensor, shared_tensor};
pub use spec::{Chips, MatrixOp, MmaSpec, OperandSpec, Role, Tv};
pub use table::{
    AccumulatorAsA, AccumulatorAsB, MMA_TABLE, Mfma, MfmaBlocks, MmaAtom, MmaSync, ScalarFma, Tf32, Widest,
};
pub use tiled_copy::{CopyAtom, GlobalPart, SharedPart, TiledCopy};
pub use tiled_mma::{GlobalSums, TiledMma};
pub use warpgroup::{BoxSpec, PanelLayout, WGMMA_ROWS, WGMMA_TABLE, WgmmaSpec, byte_swizzle, swizzled_byte};
