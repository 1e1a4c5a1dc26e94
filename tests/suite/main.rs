//! The integration suite: one binary, because each links MLIR statically.

mod cli;
mod cli_attention;
