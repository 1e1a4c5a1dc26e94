//! Devices, launch and the checking emulator of Lacewing.

pub mod element;
pub mod error;
pub mod host;
pub mod host_math;
pub mod registry;
pub mod runner;
pub mod device;

pub use error::Error;
