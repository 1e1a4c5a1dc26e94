//! What the kernels must give, computed on the host in f64.
//!
//! Each reference is the textbook formula over the same rounded inputs that the kernel reads. None
//! shares code with a kernel.

mod attention;
mod small;
mod tolerance;

pub use attention::{Attention, AttentionShape, Output, attention, attention_low};
pub use small::{axpy, matmul, rms_norm, softmax_rows, transpose};
pub use tolerance::{attention_tolerance, compare_lse, compare_o, input_rounding, unit_roundoff};

pub use lacewing_runtime::host_math::Precision;
