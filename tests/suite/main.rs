//! The integration suite: one binary, because each links MLIR statically.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests say what they expect by panicking"
)]

mod artifact;
mod attention;
mod bench;
#[cfg(debug_assertions)]
mod check;
mod cli;
mod cli_attention;
mod cli_compile;
mod cli_files;
mod cli_run;
mod constructs;
mod counts;
mod cuda;
mod differential;
mod distributed;
mod exact;
mod faults;
mod frontend;
mod kernels;
mod launch;
mod manner;
mod reductions;
mod report;
mod sanitizer;
mod schedules;
mod snapshots;
mod tensor_maps;
mod tensor_memory;
mod tiles;
mod ui;
mod users;
