//! The bundled kernels of Lacewing: attention and the small ones the book teaches with

pub mod attention;
pub mod fmha;
pub mod reference;

use lacewing_runtime::registry::KernelEntry;

/// The bundled kernels, as the command line knows them.
pub static ENTRIES: &[&KernelEntry] = &[&fmha::FMHA_FWD, &fmha::FMHA_REF];
