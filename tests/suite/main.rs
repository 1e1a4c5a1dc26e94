//! The integration suite: one binary, because each links MLIR statically.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests say what they expect by panicking")]

mod cli;
mod cli_attention;
mod cli_compile;
