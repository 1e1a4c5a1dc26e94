//! From a traced kernel, through the disk cache, to one that is loaded.

use std::borrow::Cow;
use std::sync::OnceLock;

use lacewing_core::Traced;
use lacewing_core::lower::{self, Emit, EmitOptions};

use super::gpu::Gpu;
use super::kernel::CudaKernel;
use crate::cache::disk::{self, Key, Parts};
use crate::error::Error;

/// How kernels are compiled for a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Optimisation level of LLVM and `ptxas`, 0 to 3.
    pub opt_level: u8,
    /// Who makes machine code from PTX.
    pub assembler: Assembler,
    /// Refuse machine code that `ptxas` warns of or that spills registers. It has no effect where the driver compiles.
    pub deny_warnings: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self { opt_level: 3, assembler: Assembler::default(), deny_warnings: false }
    }
}

/// Who makes machine code from PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assembler {
    /// `ptxas` where it is found and the GPU runs its code, else the driver.
    #[default]
    Best,
    /// The driver, when the kernel is loaded.
    Driver,
    /// `ptxas`; an error where it is not found.
    Ptxas,
}

/// Compiles a traced kernel and loads it.
pub(crate) fn compile(gpu: &Gpu, traced: &Traced, options: CompileOptions) -> Result<CudaKernel, Error> {
    let meta = &traced.meta;
    let load = |form| Ok::<_, Error>(CudaKernel::load(gpu, &image(traced, form, options)?, meta));
    let cubin = match options.assembler {
        Assembler::Driver => false,
        Assembler::Ptxas => true,
        Assembler::Best => gpu.runs_code_for(meta.target) && lower::find_ptxas(None).is_ok(),
    };
    let mut kernel = load(if cubin { Emit::Cubin } else { Emit::Ptx })?;
    if cubin && options.assembler == Assembler::Best && kernel.as_ref().is_err_and(|refused| refused.is_of_form()) {
        // A driver older than ptxas does not know its files, but compiles PTX itself.
        kernel = load(Emit::Ptx)?;
    }
    kernel.map_err(|refused| refused.into_error(gpu, &meta.name))
}

/// PTX or machine code of a kernel: from the disk cache, or made and kept there.
fn image(traced: &Traced, form: Emit, options: CompileOptions) -> Result<Vec<u8>, Error> {
    let CompileOptions { opt_level, deny_warnings, .. } = options;
    let emit = EmitOptions { opt_level, deny_warnings, ..EmitOptions::default() };
    let make = || Ok::<_, Error>(lower::emit(traced, form, &emit)?.as_bytes().to_vec());
    // What is kept has no warnings with it: whoever denies them must see them.
    let Some(cache) = disk::default_cache().filter(|_| !deny_warnings) else { return make() };
    let key = cache_key(traced, form, opt_level)?;
    if let Some(found) = cache.get(&key) {
        return Ok(found);
    }
    let made = make()?;
    cache.put(&key, &made);
    Ok(made)
}

/// The key of a kernel's PTX or machine code in the disk cache.
///
/// # Errors
/// When the kernel does not lower, or `ptxas` is asked for and not found.
pub fn cache_key(traced: &Traced, form: Emit, opt_level: u8) -> Result<Key, Error> {
    let target = traced.meta.target;
    // The IR after our own lowering: an edit of a kernel, a helper or the lowering is in it.
    let ir = lower::emit(traced, Emit::Llvm, &EmitOptions { opt_level, ..EmitOptions::default() })?;
    let parts = Parts {
        ir: ir.text().unwrap_or_default(),
        target: target.name(),
        form: form.name(),
        options: &format!("O{opt_level}"),
        pipeline: &lower::describe(target, opt_level),
        toolchain: &toolchain(form)?,
    };
    Ok(parts.key())
}

/// What makes an image of this form. `ptxas` is asked once in a process.
fn toolchain(form: Emit) -> Result<Cow<'static, str>, Error> {
    static PTXAS: OnceLock<Result<String, lacewing_core::Error>> = OnceLock::new();
    if form != Emit::Cubin {
        return Ok(lower::toolchain().into());
    }
    let ptxas = PTXAS.get_or_init(|| lower::ptxas_version(&lower::find_ptxas(None)?));
    Ok(format!("{}; {}", lower::toolchain(), ptxas.as_ref().map_err(Clone::clone)?).into())
}
