//! Devices.

/// A device.
pub struct Device;
