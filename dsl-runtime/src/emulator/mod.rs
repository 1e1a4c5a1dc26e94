//! The checking emulator: runs a traced kernel on the CPU, as it stands, and checks every access.
//!
//! A kernel is decoded once ([`Program::decode`]) into flat bytecode whose operands are numbered
//! slots of 32 lanes. [`run`] executes a grid of blocks: warps (32 threads, 64 on AMD) are suspended
//! frames under one seeded scheduler per block, and blocks run in parallel.
//!
//! ```text
//! Buffer            bytes of global memory plus what is known of them (written or not); shared by Arc
//! Program::decode   Traced -> Program (Send + Sync, reusable)
//! Launch            grid, flat arguments, seed, checks, threads
//! run               &Program, &Launch -> LaunchStats, or the first Report
//! Report            what went wrong, where in the source, in which thread, at which address
//! ```
//!
//! The first mistake ends the launch with a [`Report`]. When several blocks fail, the report is that
//! of the lowest block, whatever the number of threads. Results depend on nothing of the host: not on
//! its vector instructions, not on the number of threads. They depend on `seed` only where the kernel
//! itself leaves an order open (an atomic, a race).
//!
//! What the emulator does not know: lowering. It executes the traced ops by their definition.

mod asynchronous;
mod blame;
mod blame_async;
mod blame_exact;
mod blame_race;
mod blame_tensor;
mod checks;
mod decode;
mod exact;
mod exec;
mod isa;
mod lanes;
mod launch;
mod memory;
mod numeric;
mod op;
mod program;
mod report;
mod schedule;
mod spin;
mod writers;

#[cfg(test)]
mod tests;

pub use asynchronous::TensorMap;
pub use checks::{Bound, Check, Checks};
pub use exec::traffic::{BranchCost, LineCost, Space, Work, WorkCost};
pub(crate) use launch::run_recorded;
pub use launch::{ArgValue, Launch, LaunchStats, run};
pub use memory::Buffer;
pub use program::Program;
pub use report::{Address, Report, ReportKind};
pub use writers::{Writer, Writers};
