//! A decoded kernel.

/// A kernel as the emulator runs it: bytecode, locations, constants. Decode once, run often.
pub struct Program {
    pub(crate) name: String,
}
