//! Making artifacts: the part that needs the compiler.

use lacewing_core::Target;
use lacewing_core::lower::{self, Emit, EmitOptions, PtxasLog};

use super::format::NewVariant;
use crate::error::Error;
use crate::registry::AnyKernel;

/// A kernel compiled for one target: PTX and, where `ptxas` is found, machine code with `ptxas`'s log; for an AMD target a
/// code object.
///
/// # Errors
/// [`Error::Kernel`] when the kernel does not compile, or the code object's linker is missing.
pub fn compile(
    kernel: &dyn AnyKernel,
    target: Target,
    options: &EmitOptions,
) -> Result<(NewVariant, Option<PtxasLog>), Error> {
    let traced = kernel.trace(target)?;
    let settings = kernel.comptime().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut variant = NewVariant { meta: traced.meta.clone(), settings, ptx: None, code: None };
    let mut log = None;
    if target.is_nvidia() {
        let ptx = lower::emit_last(traced, Emit::Ptx, options)?;
        let text = ptx.text().unwrap_or_default();
        if lower::find_ptxas(options.ptxas.as_deref()).is_ok() {
            let (code, said) = lower::assemble(text, target, options)?;
            (variant.code, log) = (Some(code), Some(said));
        }
        variant.ptx = Some(text.as_bytes().to_vec());
    } else {
        variant.code = Some(lower::emit_last(traced, Emit::Hsaco, options)?.as_bytes().to_vec());
    }
    Ok((variant, log))
}
