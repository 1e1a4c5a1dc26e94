//! soon
#![allow(dead_code, reason = "wip")]
mod fp8;
mod math;
mod numeric;
