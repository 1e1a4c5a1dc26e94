//! From a traced module to target code.
//!
//! The stages, each of which [`emit`] can show:
//!
//! 1. [`Emit::Trace`]: the module as traced: `gpu`, `arith`, `math`, `scf`, `vector`, `llvm` pointers, `lw`.
//! 2. [`Emit::Lowered`]: after our own rewriting. No `lw` and no `math` op is left: they have become
//!    `nvvm`, `rocdl`, `llvm`, `arith` and `scf` ops; control flow is still structured and the kernel
//!    still a `gpu.func`.
//! 3. [`Emit::Llvm`]: LLVM IR after MLIR's conversions, as LLVM's optimiser receives it.
//! 4. [`Emit::Ptx`], by LLVM with a few passes of its own that [`describe`] names, or [`Emit::Amdgcn`], by MLIR's back
//!    end with LLVM's standard ones: assembly, made in this process.
//! 5. [`Emit::Cubin`] by `ptxas`, [`Emit::Hsaco`] by `ld.lld`.
//!
//! Nothing is assumed that the kernel did not say: floating operations are neither contracted nor
//! reordered, division and square root are correctly rounded, subnormals are kept, except where an op
//! carries a fast-math flag.

mod amd;
mod arith;
mod assertion;
mod blackwell;
mod build;
mod elementary;
mod fp8;
mod hopper;
mod in_flight;
mod kernel;
mod machine;
mod math;
mod memory;
mod mix;
mod numeric;
mod nvidia;
mod pipeline;
mod printf;
mod report;
mod rewrite;
mod tools;
mod walk;

#[cfg(test)]
mod atom_texts;
#[cfg(test)]
mod filetests;

use std::path::{Path, PathBuf};

use crate::atoms::{MMA_TABLE, MatrixOp, MmaSpec};
use crate::mlir::IrModule;
use crate::{Diagnostic, Error, KernelMeta, Target, Traced, dialect};

pub use machine::{MainLoop, main_loops};
pub use mix::{Class, Mix};
pub use pipeline::{describe, toolchain};
pub use report::{Report, Resources, Warning, find_nvdisasm};
pub use tools::{PtxasLog, assemble, find_device_library, find_lld, find_ptxas, ptxas_version};

/// What to make of a traced kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Emit {
    /// The traced module.
    Trace,
    /// The module after our own rewriting, control flow still structured.
    Lowered,
    /// LLVM IR before optimisation.
    Llvm,
    /// PTX text (NVIDIA).
    Ptx,
    /// Machine code by `ptxas` (NVIDIA).
    Cubin,
    /// AMDGCN assembly (AMD).
    Amdgcn,
    /// Code object by `ld.lld` (AMD).
    Hsaco,
}

impl Emit {
    /// Every stage.
    pub const ALL: [Emit; 7] =
        [Emit::Trace, Emit::Lowered, Emit::Llvm, Emit::Ptx, Emit::Cubin, Emit::Amdgcn, Emit::Hsaco];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Emit::Trace => "trace",
            Emit::Lowered => "lowered",
            Emit::Llvm => "llvm",
            Emit::Ptx => "ptx",
            Emit::Cubin => "cubin",
            Emit::Amdgcn => "amdgcn",
            Emit::Hsaco => "hsaco",
        }
    }

    /// Finds a stage by [`Emit::name`].
    ///
    /// # Errors
    /// When there is none: the error lists those that exist.
    pub fn from_name(name: &str) -> Result<Emit, Error> {
        Self::ALL.into_iter().find(|emit| emit.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|emit| emit.name()).collect();
            Diagnostic::error(format!("nothing called `{name}` can be emitted"))
                .help(format!("the choices are {}", known.join(", ")))
                .into()
        })
    }
}

/// How to lower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitOptions {
    /// LLVM's and `ptxas`'s optimisation level, 0 to 3. For NVIDIA LLVM runs one list of passes from 1 on.
    pub opt_level: u8,
    /// `ptxas` to use instead of the one that [`find_ptxas`] finds.
    pub ptxas: Option<PathBuf>,
    /// `ld.lld` to use instead of the one that [`find_lld`] finds.
    pub lld: Option<PathBuf>,
    /// Refuse machine code that `ptxas` warns of, that spills registers, or that moves values to uniform registers in a
    /// loop of warpgroup products (the last where [`find_nvdisasm`] finds a disassembler).
    pub deny_warnings: bool,
    /// The folder of ROCm's device library (`ockl.bc`) to use instead of the one that [`find_device_library`] finds.
    /// Kernels that print need it on AMD, and no others.
    pub device_library: Option<PathBuf>,
}

impl Default for EmitOptions {
    fn default() -> Self {
        Self { opt_level: 3, ptxas: None, lld: None, deny_warnings: false, device_library: None }
    }
}

/// What [`emit`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Artifact {
    /// MLIR, LLVM IR or assembly.
    Text(String),
    /// An ELF image, with `ptxas`'s log for a cubin.
    Binary {
        /// The image.
        bytes: Vec<u8>,
        /// What `ptxas` said.
        log: Option<PtxasLog>,
    },
}

impl Artifact {
    /// The bytes to write to a file.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Artifact::Text(text) => text.as_bytes(),
            Artifact::Binary { bytes, .. } => bytes,
        }
    }

    /// The text, if it is text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Artifact::Text(text) => Some(text),
            Artifact::Binary { .. } => None,
        }
    }

    /// `ptxas`'s log, for a cubin.
    pub fn log(&self) -> Option<&PtxasLog> {
        match self {
            Artifact::Text(_) => None,
            Artifact::Binary { log, .. } => log.as_ref(),
        }
    }
}

/// [`emit`] of a trace that is needed no more: without the copy that leaves the trace as it is.
///
/// # Errors
/// As [`emit`].
pub fn emit_last(traced: Traced, what: Emit, options: &EmitOptions) -> Result<Artifact, Error> {
    if let Some(library) = library(&traced, what, options)? {
        return lowered(traced.module, &traced.meta, what, options, library.as_deref());
    }
    Ok(Artifact::Text(traced.text()))
}

/// Lowers a traced kernel for the target that it was traced for.
///
/// # Errors
/// An op or a wish of the kernel that the target lacks, at its line; a form that the target's vendor
/// does not have; a missing tool, with what to install; a fault of the compiler, with its own words.
pub fn emit(traced: &Traced, what: Emit, options: &EmitOptions) -> Result<Artifact, Error> {
    if let Some(library) = library(traced, what, options)? {
        return lowered(traced.module.try_clone()?, &traced.meta, what, options, library.as_deref());
    }
    Ok(Artifact::Text(traced.text()))
}

/// Checks what can be known before the lowering. Gives the device library that the kernel needs, if any; `None` where nothing is to be
/// lowered.
fn library(traced: &Traced, what: Emit, options: &EmitOptions) -> Result<Option<Option<PathBuf>>, Error> {
    let target = traced.meta.target;
    let wrong_vendor = match what {
        Emit::Ptx | Emit::Cubin => target.is_amd(),
        Emit::Amdgcn | Emit::Hsaco => target.is_nvidia(),
        Emit::Trace | Emit::Lowered | Emit::Llvm => false,
    };
    if wrong_vendor {
        let instead = if target.is_nvidia() { "ptx or cubin" } else { "amdgcn or hsaco" };
        return Err(Diagnostic::error(format!("{} cannot be emitted for {target}", what.name()))
            .help(format!("emit {instead}, or choose another target"))
            .into());
    }
    if options.opt_level > 3 {
        return Err(Error::new(format!("there is no optimisation level {}: they are 0 to 3", options.opt_level)));
    }
    if what == Emit::Trace {
        return Ok(None);
    }
    dialect::check_target(&traced.module, target)?;
    match what {
        Emit::Amdgcn | Emit::Hsaco => {
            printf::device_library(&traced.module, target, options.device_library.as_deref()).map(Some)
        }
        _ => Ok(Some(None)),
    }
}

/// Lowers a traced module, in place.
fn lowered(
    mut module: IrModule,
    meta: &KernelMeta,
    what: Emit,
    options: &EmitOptions,
    library: Option<&Path>,
) -> Result<Artifact, Error> {
    let target = meta.target;
    lower(&mut module, meta)?;
    if what == Emit::Lowered {
        return Ok(Artifact::Text(module.text(false)));
    }
    pipeline::to_llvm_dialect(&mut module, meta)?;
    let level = options.opt_level;
    let toolkit = |lld: Option<&Path>| tools::toolkit(lld, library);
    match what {
        Emit::Trace | Emit::Lowered | Emit::Llvm => Ok(Artifact::Text(pipeline::llvm_ir(&module)?.text())),
        Emit::Ptx => pipeline::ptx(&module, target, level).map(Artifact::Text),
        Emit::Cubin => {
            let ptx = pipeline::ptx(&module, target, level)?;
            let (bytes, log) = tools::assemble(&ptx, target, options)?;
            Ok(Artifact::Binary { bytes, log: Some(log) })
        }
        Emit::Amdgcn => {
            let toolkit = library.is_some().then(|| toolkit(None)).transpose()?;
            let path = toolkit.as_ref().map(|toolkit| toolkit.path().to_string_lossy());
            let bytes = pipeline::amd(&mut module, target, level, "isa", path.as_deref())?;
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            // LLVM ends the text with a zero byte.
            text.truncate(text.trim_end_matches('\0').len());
            Ok(Artifact::Text(text))
        }
        Emit::Hsaco => {
            let lld = find_lld(options.lld.as_deref())?;
            let toolkit = toolkit(Some(&lld))?;
            let path = toolkit.path().to_string_lossy();
            let bytes = pipeline::amd(&mut module, target, level, "bin", Some(&path))?;
            Ok(Artifact::Binary { bytes, log: None })
        }
    }
}

/// The instruction of an op's shape and kind; an error where the table or the target has none.
fn matrix_instruction(op: build::Op<'_>, which: MatrixOp, target: Target) -> Result<&'static MmaSpec, Error> {
    let extent = |name| build::integer(op, name).map(|value| usize::try_from(value).unwrap_or(0));
    let (shape, kind) = ([extent("m")?, extent("n")?, extent("k")?], build::string(op, "kind")?);
    let Some(spec) = MmaSpec::find(which, shape, &kind) else {
        let [m, n, k] = shape;
        let known: Vec<_> = MMA_TABLE
            .iter()
            .filter(|spec| spec.op == which && spec.legal_on(target).is_ok())
            .map(MmaSpec::name)
            .collect();
        let message = format!("there is no `{}` of shape {m}x{n}x{k} for {kind}", which.name());
        return Err(build::refuse(op, message, format!("{target} has {}", known.join(", "))));
    };
    match spec.legal_on(target) {
        Ok(()) => Ok(spec),
        Err(reason) => Err(build::refuse(op, format!("`{}` does not exist on {target}", spec.name()), reason)),
    }
}

/// Our own rewriting, in place; the result verifies.
fn lower(module: &mut IrModule, meta: &KernelMeta) -> Result<(), Error> {
    kernel::prepare(module, meta)?;
    rewrite::rewrite(module, meta)?;
    module.verify()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::IrContext;

    fn traced() -> Traced {
        let text = "module attributes {gpu.container_module} { gpu.module @k {\ngpu.func @k(%p: !llvm.ptr<1>) kernel attributes \
             {known_block_size = array<i32: 64, 1, 1>, lw.target = \"sm_90a\", lw.shared_bytes = 0 : i64} {\n\
             %i = gpu.thread_id x upper_bound 64\n%c = arith.index_cast %i : index to i32\n\
             \"lw.store\"(%c, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()\ngpu.return\n}\n} }";
        Traced::from_module(IrModule::parse(&IrContext::shared().unwrap(), text).unwrap()).unwrap()
    }

    #[test]
    fn the_last_lowering_of_a_trace_gives_what_the_first_gives() {
        let (kept, options) = (traced(), EmitOptions::default());
        for what in [Emit::Trace, Emit::Lowered, Emit::Llvm, Emit::Ptx] {
            let first = emit(&kept, what, &options).unwrap();
            assert!(first.text().is_some_and(|text| text.contains("@k") || text.contains(".entry k")), "{first:?}");
            assert_eq!(emit_last(traced(), what, &options).unwrap(), first);
            assert_eq!(emit(&kept, what, &options).unwrap(), first, "the first changed the trace");
        }
        let wrong = EmitOptions { opt_level: 4, ..options };
        for (what, options) in [(Emit::Hsaco, &EmitOptions::default()), (Emit::Ptx, &wrong)] {
            let error = emit_last(traced(), what, options).unwrap_err().to_string();
            assert_eq!(error, emit(&kept, what, options).unwrap_err().to_string());
        }
    }
}
