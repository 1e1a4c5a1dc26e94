//! Devices, launch and the checking emulator of Lacewing

pub mod emulator;
