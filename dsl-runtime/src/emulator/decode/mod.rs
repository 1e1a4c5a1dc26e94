//! From the traced module to bytecode.

use lacewing_core::{Error, Traced};

use super::program::Program;

pub(crate) fn decode(_traced: &Traced) -> Result<Program, Error> {
    Err(Error::new("not yet"))
}
