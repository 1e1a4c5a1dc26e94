//! Execution of one warp.

pub(crate) mod access;
pub(crate) mod atom;
pub(crate) mod atomics;
pub(crate) mod collective;
pub(crate) mod copy;
pub(crate) mod dimensions;
pub(crate) mod elementwise;
pub(crate) mod interpret;
pub(crate) mod matrix;
pub(crate) mod matrix_store;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod print;
pub(crate) mod progress;
pub(crate) mod traffic;
pub(crate) mod warp;
