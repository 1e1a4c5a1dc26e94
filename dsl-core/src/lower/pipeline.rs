//! MLIR's own passes: from the rewritten kernel to the LLVM dialect, and on to target code.

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, OperationMutLike};
use melior::ir::{Attribute, Module, RegionLike};
use melior::pass::PassManager;
use melior::utility::{parse_pass_pipeline, register_all_llvm_translations};

use super::build::{name_of, ops_inside};
use crate::mlir::{IrModule, gpu_object, internal, translate_to_llvm};
use crate::{Diagnostic, Error, KernelMeta, ParamKind, Severity, Target};

/// The conversion of everything but the module itself to the LLVM dialect.
fn conversion(target: Target) -> String {
    let gpu = if target.is_nvidia() {
        "convert-gpu-to-nvvm{index-bitwidth=32},convert-nvvm-to-llvm".to_owned()
    } else {
        // The runtime decides how `gpu.printf` is written, and nothing else.
        format!("convert-gpu-to-rocdl{{index-bitwidth=32 chipset={target} runtime=HIP}}")
    };
    format!(
        "builtin.module(convert-scf-to-cf,gpu.module({gpu},reconcile-unrealized-casts,canonicalize{{region-simplify=normal}},cse))"
    )
}

/// PTX versions: the oldest that has all we emit for the chip, so that older drivers load it.
fn attach_target(target: Target, opt_level: u8) -> String {
    if target.is_nvidia() {
        let features = match target.generation() {
            ..90 => "+ptx80",
            90..100 => "+ptx84",
            _ => "+ptx86",
        };
        format!("nvvm-attach-target{{chip={target} features={features} O={opt_level}}}")
    } else {
        format!("rocdl-attach-target{{chip={target} O={opt_level}}}")
    }
}

/// Runs a textual pipeline; what MLIR reports becomes the error, at the user's lines.
fn run(module: &mut IrModule, pipeline: &str) -> Result<(), Error> {
    let context = std::rc::Rc::clone(module.context());
    let (result, mut diagnostics) = context.capture(|context| {
        let manager = PassManager::new(context);
        // The module is verified once, behind the conversions: after each pass it takes a tenth of a compilation.
        manager.enable_verifier(false);
        parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline)
            .map_err(|e| internal(&format!("pass pipeline `{pipeline}`: {e}"), vec![]))?;
        Ok::<_, Error>(manager.run(module.module_mut()).is_ok())
    });
    if result? {
        return Ok(());
    }
    diagnostics.retain(|d| d.severity == Severity::Error);
    diagnostics.dedup();
    for diagnostic in &mut diagnostics {
        shorten(diagnostic);
    }
    // What failed first is the cause, and it stands at the user's line.
    match diagnostics.first_mut() {
        Some(first) => {
            first.message = format!("the lowering failed: {}", first.message);
            first.help = Some("this is a fault in Lacewing: please report it with the kernel".to_owned());
            Err(diagnostics.into())
        }
        None => Err(internal("the lowering failed without a word", vec![])),
    }
}

/// MLIR attaches the whole operation to each error, for a module thousands of lines: one is enough.
fn shorten(diagnostic: &mut Diagnostic) {
    for note in &mut diagnostic.notes {
        if let Some((first, _)) = note.split_once('\n') {
            *note = format!("{first} ...");
        }
    }
}

/// Lowers a rewritten module to the LLVM dialect.
pub(super) fn to_llvm_dialect(module: &mut IrModule, meta: &KernelMeta) -> Result<(), Error> {
    run(module, &conversion(meta.target))?;
    module.verify()?;
    keep_loop_hints(module);
    describe_arguments(module, meta)
}

/// Tells LLVM what a launch guarantees of tensors: a mutable one is borrowed exclusively, so no two
/// overlap unless both are only read (`noalias`), and those are `readonly` while the kernel runs.
/// That lets loads move across stores and use the read-only path (PTX ISA, `ld.global.nc`).
fn describe_arguments(module: &IrModule, meta: &KernelMeta) -> Result<(), Error> {
    let mut arguments = Vec::new();
    for param in &meta.params {
        match param.kind {
            ParamKind::Scalar(_) => arguments.push("{}"),
            ParamKind::Tensor { rank, mutable, .. } => {
                arguments.push(if mutable { "{llvm.noalias}" } else { "{llvm.noalias, llvm.readonly}" });
                arguments.extend(std::iter::repeat_n("{}", 2 * rank));
            }
            // By value and never written: its address in parameter memory is what the copies take (PTX ISA,
            // "Tensor-map": 128 bytes, aligned to 64).
            ParamKind::TensorMap { .. } => {
                arguments.push("{llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant, llvm.align = 64 : i64}")
            }
        }
    }
    let text = format!("[{}]", arguments.join(", "));
    let context = module.context().get();
    let attribute = Attribute::parse(context, &text).ok_or_else(|| internal("argument attributes", vec![]))?;
    for (op, mut changeable) in ops_inside(module.module().as_operation()) {
        // Other functions are declarations of the runtime's, as `vprintf`.
        if name_of(op) != "llvm.func"
            || op.attribute("sym_name").is_ok_and(|a| a.to_string() != format!("\"{}\"", meta.name))
        {
            continue;
        }
        let body = op.region(0).ok().and_then(|region| region.first_block());
        if body.is_some_and(|block| block.argument_count() == arguments.len()) {
            changeable.set_attribute("arg_attrs", attribute);
        }
    }
    Ok(())
}

/// The conversion of loops leaves the hint as a foreign attribute on the back edge; LLVM reads the
/// branch's own attribute.
fn keep_loop_hints(module: &IrModule) {
    for (op, mut changeable) in ops_inside(module.module().as_operation()) {
        if matches!(name_of(op).as_str(), "llvm.br" | "llvm.cond_br")
            && let Ok(hint) = op.discardable_attribute("llvm.loop_annotation")
        {
            changeable.set_attribute("loop_annotation", hint);
            // Its absence now is what was wanted: nothing to report.
            let _ = changeable.remove_attribute("llvm.loop_annotation");
        }
    }
}

/// LLVM IR of a module in the LLVM dialect, as it is handed to LLVM's optimiser.
pub(super) fn llvm_ir(module: &IrModule) -> Result<String, Error> {
    let context = module.context();
    register_all_llvm_translations(context.get());
    let missing = || internal("the module holds no gpu.module", vec![]);
    // The translation takes a plain module: copy the kernel's symbols into one.
    let ops = ops_inside(module.module().as_operation());
    let (kernel, _) = ops.into_iter().find(|(op, _)| name_of(*op) == "gpu.module").ok_or_else(missing)?;
    let mut plain = Module::new(kernel.location());
    for name in ["llvm.data_layout", "llvm.target_triple"] {
        if let Ok(value) = kernel.attribute(name) {
            plain.as_operation_mut().set_attribute(name, value);
        }
    }
    let block = kernel.region(0).ok().and_then(|r| r.first_block()).ok_or_else(missing)?;
    let mut inner = block.first_operation();
    while let Some(operation) = inner {
        plain.body().append_operation((*operation).clone());
        inner = operation.next_in_block();
    }
    let (text, diagnostics) = context.capture(|_| translate_to_llvm(&plain));
    text.ok_or_else(|| internal("the translation to LLVM IR failed", diagnostics))
}

/// Compiles a module in the LLVM dialect: assembly text (`isa`) or an executable (`bin`).
///
/// LLVM ends the process where its instruction selection meets an operation that the target lacks; so
/// nothing may come here that `tests/filetests` does not show to be selected on every target.
pub(super) fn compile(
    module: &mut IrModule,
    target: Target,
    opt_level: u8,
    format: &str,
    toolkit: Option<&str>,
) -> Result<Vec<u8>, Error> {
    register_all_llvm_translations(module.context().get());
    let toolkit = toolkit.map(|path| format!(" toolkit=\"{path}\"")).unwrap_or_default();
    let attach = attach_target(target, opt_level);
    run(module, &format!("builtin.module({attach},gpu-module-to-binary{{format={format}{toolkit}}})"))?;
    let ops = ops_inside(module.module().as_operation());
    let binary = ops.into_iter().find(|(op, _)| name_of(*op) == "gpu.binary");
    let object = binary.and_then(|(op, _)| op.attribute("objects").ok()).and_then(gpu_object);
    object.ok_or_else(|| internal("the compiler gave no object", vec![]))
}

/// The pass pipeline of a target as text, for fingerprints of the toolchain and for the book.
pub fn describe(target: Target, opt_level: u8) -> String {
    format!("{}; {}", conversion(target), attach_target(target, opt_level))
}

/// The versions of what takes part in this process: our own and LLVM's.
pub fn toolchain() -> String {
    let llvm = std::str::from_utf8(mlir_sys::LLVM_VERSION_STRING).unwrap_or_default();
    format!("lacewing {}; LLVM {}", env!("CARGO_PKG_VERSION"), llvm.trim_end_matches('\0'))
}
