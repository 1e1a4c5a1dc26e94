//! Devices, launch and the checking emulator of Lacewing.

pub mod element;
pub mod error;
pub mod host;
pub mod registry;
pub mod runner;
pub mod device;
