//! The bundled kernels of Lacewing: attention and the small ones the book teaches with

pub mod attention;
pub mod axpy;
pub mod fmha;
mod ladders;
pub mod matmul;
#[cfg(any(feature = "planted", debug_assertions))]
pub mod planted;
pub mod reference;
pub mod rms_norm;
pub mod softmax;
mod tiles;
pub mod transpose;
mod views;

pub use views::HostFloat;

use lacewing_runtime::registry::KernelEntry;

/// The bundled kernels, as the command line knows them.
pub static ENTRIES: &[&KernelEntry] = &[
    &axpy::AXPY,
    &transpose::TRANSPOSE,
    &softmax::SOFTMAX,
    &rms_norm::RMS_NORM,
    &matmul::MATMUL,
    &matmul::fp8::MATMUL_FP8,
    &fmha::FMHA_FWD,
    &fmha::FMHA_REF,
];

#[cfg(test)]
mod tests;
