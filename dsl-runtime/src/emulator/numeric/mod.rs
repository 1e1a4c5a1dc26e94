//! Arithmetic that gives the same bits on every host (but for the payloads of NaNs).

pub(crate) mod fused;
pub(crate) mod math;
pub(crate) mod narrow;
