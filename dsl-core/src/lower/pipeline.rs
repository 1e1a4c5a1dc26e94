//! MLIR's own passes, from the rewritten kernel to the LLVM dialect, and LLVM's, on to target code.

use std::borrow::Cow;

use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationLike, OperationMutLike, OperationRefMut};
use melior::ir::{Attribute, RegionLike};
use melior::pass::PassManager;
use melior::utility::{parse_pass_pipeline, register_all_llvm_translations};

use super::build::Op;
use super::walk::{blocks_of, children_of, kernel_module};
use crate::mlir::{IrModule, LlvmModule, Machine, gpu_object, internal, list_back_ends, name_of};
use crate::{Diagnostic, Error, KernelMeta, ParamKind, Severity, Target};

/// The conversion of everything but the module itself to the LLVM dialect.
fn conversion(target: Target) -> String {
    if target.is_nvidia() {
        // One conversion of all dialects: `convert-gpu-to-nvvm` first folds the whole kernel, which LLVM does again.
        // The target among the module's attributes says what becomes of `gpu` ops. Dead code goes in LLVM's first pass.
        // To be able to take patterns back is two fifths of what a conversion costs, and no pattern here needs it: each op that it
        // makes is legal. MLIR would end the process at one that is not, so what comes here has its file in `tests/filetests`.
        return format!(
            "builtin.module(nvvm-attach-target{{chip={target}}},convert-scf-to-cf{{allow-pattern-rollback=false}},\
             gpu.module(convert-to-llvm{{dynamic=true allow-pattern-rollback=false}},convert-nvvm-to-llvm,\
             reconcile-unrealized-casts))"
        );
    }
    // The runtime decides how `gpu.printf` is written, and nothing else.
    format!(
        "builtin.module(convert-scf-to-cf,gpu.module(convert-gpu-to-rocdl{{index-bitwidth=32 chipset={target} runtime=HIP}},\
         reconcile-unrealized-casts,canonicalize{{region-simplify=normal}},cse))"
    )
}

/// What [`conversion`] reads of a kernel for NVIDIA as the width of `index`, which thread and block ids have.
const INDEX_WIDTH: &str = "#dlti.dl_spec<index = 32 : i64>";

/// PTX versions: the oldest that has all we emit for the chip, so that older drivers load it.
fn ptx_version(target: Target) -> &'static str {
    match target.generation() {
        ..90 => "+ptx80",
        90..100 => "+ptx84",
        _ => "+ptx86",
    }
}

/// What LLVM does to a kernel for NVIDIA before it generates code, in the spelling of `opt -passes`.
///
/// `ptxas` optimises all of it once more, and knows the machine. What it cannot know is left to LLVM: that tensors do
/// not overlap, so that loads leave loops; the ranges of thread ids; hints for unrolling; pairs of 16-bit numbers. The
/// trace has inlined all functions, so nothing goes on between functions. `-O3` runs the same passes, the costly
/// ones up to eight times, and takes four times as long for main loops of the same length, within a few instructions.
const NVIDIA_PASSES: &str = "function(early-cse,instcombine<no-verify-fixpoint>,simplifycfg,sccp,\
    loop-mssa(loop-rotate,licm),loop(indvars,loop-unroll-full),loop-unroll<O3>,slp-vectorizer,div-rem-pairs,\
    simplifycfg)";

/// The pass of [`NVIDIA_PASSES`] that makes pairs of 16-bit numbers. It looks for numbers that fit into a register of 32 bits together, and
/// takes a twenty-fifth of a compilation to find none.
const PAIRS: &str = "slp-vectorizer,";

/// [`NVIDIA_PASSES`], or what LLVM does without optimising.
fn nvidia_passes(opt_level: u8, narrow_numbers: bool) -> Cow<'static, str> {
    match (opt_level, narrow_numbers) {
        (0, _) => "default<O0>".into(),
        (_, true) => NVIDIA_PASSES.into(),
        (_, false) => NVIDIA_PASSES.replace(PAIRS, "").into(),
    }
}

/// What LLVM leaves out of generating code for a large kernel none of whose innermost loops steps through global memory, in the
/// spelling of its command line.
///
/// All but `canon-freeze`, which prepares for `loop-reduce`, look for address arithmetic that they can share, make cheaper or turn into
/// sums over the turns of a loop. `ptxas` does all of that again, and as well, but for addresses of global memory in loops; where
/// the copy engine fetches tiles there are none. In such a kernel these passes take a seventh of a compilation.
const NVIDIA_LEFT_OUT: [&str; 5] = ["early-cse", "slsr", "nary-reassociate", "canon-freeze", "loop-reduce"];

/// The instructions of LLVM IR that make a kernel large: more than products of matrices on Hopper have, fewer than attention.
const LARGE: usize = 1500;

/// [`NVIDIA_LEFT_OUT`] where it holds.
fn nvidia_left_out(opt_level: u8, module: &LlvmModule) -> &'static [&'static str] {
    let all = opt_level == 0 || module.instruction_count() < LARGE || module.loops_step_through_memory();
    if all { &[] } else { &NVIDIA_LEFT_OUT }
}

/// LLVM's level for generating PTX. Its highest numbers values once more, which takes a tenth of a compilation and
/// changes nothing that `ptxas` does not find.
fn nvidia_level(opt_level: u8) -> u8 {
    opt_level.min(2)
}

fn attach_amd(target: Target, opt_level: u8) -> String {
    format!("rocdl-attach-target{{chip={target} O={opt_level}}}")
}

/// Runs a textual pipeline; what MLIR reports becomes the error, at the user's lines.
fn run(module: &mut IrModule, pipeline: &str) -> Result<(), Error> {
    let context = std::rc::Rc::clone(module.context());
    let (result, diagnostics) = context.capture(|context| {
        let manager = PassManager::new(context);
        // Our rewriting has been verified, and the translation to LLVM IR verifies what comes of the conversions: to do so
        // after each pass takes a tenth of a compilation.
        manager.enable_verifier(false);
        parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline)
            .map_err(|e| internal(&format!("pass pipeline `{pipeline}`: {e}"), vec![]))?;
        Ok::<_, Error>(manager.run(module.module_mut()).is_ok())
    });
    if result? {
        return Ok(());
    }
    Err(failed(diagnostics))
}

/// The error of a lowering that MLIR or LLVM refused, from what they reported.
fn failed(mut diagnostics: Vec<Diagnostic>) -> Error {
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
            diagnostics.into()
        }
        None => internal("the lowering failed without a word", vec![]),
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
    if meta.target.is_nvidia() {
        let width = Attribute::parse(module.context().get(), INDEX_WIDTH);
        let width = width.ok_or_else(|| internal(INDEX_WIDTH, vec![]))?;
        if let Some((_, mut changeable)) = kernel_module(module) {
            changeable.set_attribute("dlti.dl_spec", width);
        }
    }
    run(module, &conversion(meta.target))?;
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
    for (op, mut changeable) in functions(module) {
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
    for (function, _) in functions(module) {
        for block in blocks_of(function) {
            let (Some(op), Some(mut changeable)) = (block.terminator(), block.terminator_mut()) else { continue };
            if matches!(name_of(op), "llvm.br" | "llvm.cond_br")
                && let Ok(hint) = op.discardable_attribute("llvm.loop_annotation")
            {
                changeable.set_attribute("loop_annotation", hint);
                // Its absence now is what was wanted: nothing to report.
                let _ = changeable.remove_attribute("llvm.loop_annotation");
            }
        }
    }
}

/// What stands beside the kernel, itself included.
fn functions(module: &IrModule) -> Vec<(Op<'_>, OperationRefMut<'_, '_>)> {
    kernel_module(module).map(|(op, _)| children_of(op)).unwrap_or_default()
}

/// LLVM IR of a module in the LLVM dialect, as it is handed to LLVM's optimiser.
pub(super) fn llvm_ir(module: &IrModule) -> Result<LlvmModule, Error> {
    let context = module.context();
    register_all_llvm_translations(context.get());
    let (kernel, _) = kernel_module(module).ok_or_else(|| internal("the module holds no gpu.module", vec![]))?;
    let (module, diagnostics) = context.capture(|_| LlvmModule::translate(kernel));
    module.ok_or_else(|| failed(diagnostics))
}

/// PTX of a module in the LLVM dialect.
///
/// Not by MLIR's `gpu-module-to-binary`, which has AMD's linker and device library to offer but none but LLVM's
/// standard pipelines.
///
/// LLVM ends the process where its instruction selection meets an operation that the target lacks; so
/// nothing may come here that `tests/filetests` does not show to be selected on every target.
pub(super) fn ptx(module: &IrModule, target: Target, opt_level: u8) -> Result<String, Error> {
    let machine = Machine::nvidia(target.name(), ptx_version(target), nvidia_level(opt_level))?;
    let mut module = llvm_ir(module)?;
    let passes = nvidia_passes(opt_level, module.has_narrow_numbers());
    module.optimise(&machine, &passes)?;
    let left_out = nvidia_left_out(opt_level, &module);
    module.assembly(&machine, left_out)
}

/// Compiles a module in the LLVM dialect for AMD: assembly text (`isa`) or an executable (`bin`).
///
/// The same holds of LLVM's instruction selection as for [`ptx`].
pub(super) fn amd(
    module: &mut IrModule,
    target: Target,
    opt_level: u8,
    format: &str,
    toolkit: Option<&str>,
) -> Result<Vec<u8>, Error> {
    list_back_ends();
    register_all_llvm_translations(module.context().get());
    let toolkit = toolkit.map(|path| format!(" toolkit=\"{path}\"")).unwrap_or_default();
    let attach = attach_amd(target, opt_level);
    run(module, &format!("builtin.module({attach},gpu-module-to-binary{{format={format}{toolkit}}})"))?;
    let ops = children_of(module.module().as_operation());
    let binary = ops.into_iter().find(|(op, _)| name_of(*op) == "gpu.binary");
    let object = binary.and_then(|(op, _)| op.attribute("objects").ok()).and_then(gpu_object);
    object.ok_or_else(|| internal("the compiler gave no object", vec![]))
}

/// The pass pipeline of a target as text, for fingerprints of the toolchain and for the book.
pub fn describe(target: Target, opt_level: u8) -> String {
    let llvm = if target.is_nvidia() {
        let (features, level) = (ptx_version(target), nvidia_level(opt_level));
        let (passes, left_out) = (nvidia_passes(opt_level, true), NVIDIA_LEFT_OUT.join(","));
        format!(
            "chip={target} features={features} O={level} passes={passes} without={left_out} from={LARGE} assembly=convergent"
        )
    } else {
        attach_amd(target, opt_level)
    };
    format!("{}; {INDEX_WIDTH}; {llvm}", conversion(target))
}

/// The versions of what takes part in this process: our own and LLVM's.
pub fn toolchain() -> String {
    let llvm = std::str::from_utf8(mlir_sys::LLVM_VERSION_STRING).unwrap_or_default();
    format!("lacewing {}; LLVM {}", env!("CARGO_PKG_VERSION"), llvm.trim_end_matches('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mlir::IrContext;

    /// A kernel in the LLVM dialect with this body.
    fn kernel(body: &str) -> IrModule {
        let context = IrContext::new().unwrap();
        let text = format!(
            "gpu.module @m {{\nllvm.func @k(%p: !llvm.ptr<1>) attributes {{gpu.kernel, nvvm.kernel}} {{\n{body}\nllvm.return\n}}\n}}"
        );
        IrModule::parse(&context, &text).unwrap()
    }

    #[test]
    fn the_passes_are_llvms() {
        let module = kernel("%c = llvm.mlir.constant(1 : i32) : i32\nllvm.store %c, %p : i32, !llvm.ptr<1>");
        for target in Target::ALL.into_iter().filter(|target| target.is_nvidia()) {
            for level in 0..=3 {
                let text = ptx(&module, target, level).unwrap();
                assert!(text.contains(&format!(".target {target}")) && text.contains("st.global.b32"), "{text}");
                let described = describe(target, level);
                assert!(described.contains(&*nvidia_passes(level, true)) && described.contains(ptx_version(target)));
            }
        }
    }

    #[test]
    fn a_wrong_pipeline_is_an_error() {
        let machine = Machine::nvidia("sm_80", "+ptx80", 2).unwrap();
        let mut module = llvm_ir(&kernel("")).unwrap();
        let error = module.optimise(&machine, "function(early-cse,no-such-pass)").unwrap_err().to_string();
        assert!(error.contains("refuses the pipeline") && error.contains("no-such-pass"), "{error}");
        let error = module.assembly(&machine, &["early-cse", "no-such-pass"]).unwrap_err().to_string();
        assert!(error.contains("generates no code: `no-such-pass`"), "{error}");
    }

    /// A loop that adds up numbers of 16 bits, at places that `index` makes of `%i`, the counter, and `%stride`; and so many more instructions.
    fn reads_in_a_loop(index: &str, more: usize) -> IrModule {
        kernel(&format!(
            r#"%zero = llvm.mlir.constant(0 : i64) : i64
            %one = llvm.mlir.constant(1 : i64) : i64
            %some = llvm.mlir.constant(1000 : i64) : i64
            %stride = llvm.load volatile %p : !llvm.ptr<1> -> i64
            %start = llvm.mlir.constant(0 : i16) : i16
            llvm.br ^loop(%zero, %start : i64, i16)
            ^loop(%i: i64, %sum: i16):
            %index = {index} : i64
            %place = llvm.getelementptr %p[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
            %value = llvm.load volatile %place : !llvm.ptr<1> -> i16
            %more = llvm.add %sum, %value : i16
            %next = llvm.add %i, %one : i64
            %again = llvm.icmp "slt" %next, %some : i64
            llvm.cond_br %again, ^loop(%next, %more : i64, i16), ^end
            ^end:
            llvm.store volatile %more, %p : i16, !llvm.ptr<1>
            {}"#,
            "llvm.store volatile %start, %p : i16, !llvm.ptr<1>\n".repeat(more)
        ))
    }

    #[test]
    fn a_large_kernel_goes_without_some_passes_where_no_loop_steps_through_memory() {
        let left_out = |index, more, level| {
            let module = llvm_ir(&reads_in_a_loop(index, more)).unwrap();
            nvidia_left_out(level, &module)
        };
        let (steps, leaps) = ("llvm.mul %i, %stride", "llvm.xor %i, %stride");
        assert_eq!(left_out(leaps, LARGE, 2), NVIDIA_LEFT_OUT);
        assert!(left_out(leaps, 0, 2).is_empty() && left_out(leaps, LARGE, 0).is_empty());
        assert!(left_out(steps, LARGE, 2).is_empty());

        // The index of an address is a product before the loop and a sum in it; what does not step stays as it is.
        let in_the_loop = |index| {
            let text = ptx(&reads_in_a_loop(index, LARGE), Target::SM_90A, 3).unwrap();
            text.split_once("$L__BB0_1:").unwrap().1.to_owned()
        };
        let text = in_the_loop(steps);
        assert!(!text.contains("mul.lo") && text.contains("add.s64"), "{text}");
        assert!(in_the_loop(leaps).contains("xor.b64"));
    }

    #[test]
    fn pairs_are_looked_for_where_numbers_are_narrow() {
        let narrow = llvm_ir(&reads_in_a_loop("llvm.mul %i, %stride", 0)).unwrap().has_narrow_numbers();
        let wide = llvm_ir(&kernel("%c = llvm.load %p : !llvm.ptr<1> -> i32")).unwrap().has_narrow_numbers();
        assert!(narrow && !wide);
        assert!(nvidia_passes(1, narrow).contains(PAIRS) && !nvidia_passes(1, wide).contains(PAIRS));
        assert_eq!(nvidia_passes(0, narrow), nvidia_passes(0, wide));
    }

    #[test]
    fn what_llvm_reports_is_an_error() {
        let module = kernel(r#"llvm.inline_asm has_side_effects "mov.b32 $0, 1;", "=Z" : () -> i32"#);
        let error = ptx(&module, Target::SM_90A, 3).unwrap_err().to_string();
        assert!(error.contains("code generation failed") && error.contains("constraint 'Z'"), "{error}");
    }

    /// What lies between two branches on one condition invites LLVM to copy it into both arms.
    #[test]
    fn inline_assembly_is_not_copied_into_the_arms_of_a_branch() {
        let module = kernel(
            r#"%t = nvvm.read.ptx.sreg.tid.x : i32
            %zero = llvm.mlir.constant(0 : i32) : i32
            %first = llvm.icmp "eq" %t, %zero : i32
            llvm.cond_br %first, ^a, ^b
            ^a:
            llvm.store volatile %t, %p : i32, !llvm.ptr<1>
            llvm.br ^b
            ^b:
            llvm.inline_asm has_side_effects "bar.arrive 1, 64;", "" : () -> ()
            llvm.cond_br %first, ^c, ^d
            ^c:
            llvm.store volatile %zero, %p : i32, !llvm.ptr<1>
            llvm.br ^d
            ^d:"#,
        );
        assert!(llvm_ir(&module).unwrap().text().contains("convergent"));
        for level in 0..=3 {
            let text = ptx(&module, Target::SM_90A, level).unwrap();
            assert_eq!(text.matches("bar.arrive").count(), 1, "{text}");
        }
    }

    #[test]
    fn what_does_not_translate_is_an_error_at_its_line() {
        let error = ptx(&kernel("%c = arith.constant 1 : i32"), Target::SM_90A, 3).unwrap_err();
        assert!(error.to_string().contains("arith.constant"), "{error}");
        assert!(error.diagnostics.iter().any(|d| d.location.as_ref().is_some_and(|at| at.line == 3)), "{error:?}");
    }
}
