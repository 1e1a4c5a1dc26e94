//! LLVM as a library: a module of LLVM IR is optimised and becomes assembly.
//!
//! What LLVM says meanwhile comes back as diagnostics: without a handler it would write errors to the terminal and
//! end the process. What it cannot report is a chip or a feature that its back end refuses, so both come from
//! [`crate::Target`] alone.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{self, NonNull};
use std::sync::Once;

use melior::ir::operation::OperationRef;
use mlir_sys::{LLVMContextRef, LLVMDiagnosticInfoRef, LLVMMemoryBufferRef, LLVMModuleRef};

use super::internal;
use crate::{Diagnostic, Error};

/// LLVM-C's opaque types that `mlir-sys`, which binds MLIR's functions alone, does not name.
type TargetRef = *mut c_void;
type TargetMachineRef = *mut c_void;
type TargetDataRef = *mut c_void;
type ErrorRef = *mut c_void;
type PassOptionsRef = *mut c_void;
type ValueRef = *mut c_void;
type BlockRef = *mut c_void;
type AttributeRef = *mut c_void;
type Handler = unsafe extern "C" fn(LLVMDiagnosticInfoRef, *mut c_void);

/// `LLVMDSError` of `LLVMDiagnosticSeverity`.
const SEVERITY_ERROR: c_int = 0;
/// `LLVMAttributeFunctionIndex`: an attribute of a call, not of what it takes or returns.
const OF_THE_CALL: c_uint = c_uint::MAX;

// LLVM-C 22: Core.h, Error.h, Target.h, TargetMachine.h and Transforms/PassBuilder.h.
unsafe extern "C" {
    fn LLVMContextCreate() -> LLVMContextRef;
    fn LLVMContextDispose(context: LLVMContextRef);
    fn LLVMContextSetDiagnosticHandler(context: LLVMContextRef, handler: Option<Handler>, data: *mut c_void);
    fn LLVMGetDiagInfoDescription(info: LLVMDiagnosticInfoRef) -> *mut c_char;
    fn LLVMGetDiagInfoSeverity(info: LLVMDiagnosticInfoRef) -> c_int;
    fn LLVMDisposeMessage(message: *mut c_char);
    fn LLVMDisposeModule(module: LLVMModuleRef);
    fn LLVMPrintModuleToString(module: LLVMModuleRef) -> *mut c_char;
    fn LLVMSetTarget(module: LLVMModuleRef, triple: *const c_char);
    fn LLVMSetModuleDataLayout(module: LLVMModuleRef, layout: TargetDataRef);
    fn LLVMGetBufferStart(buffer: LLVMMemoryBufferRef) -> *const c_char;
    fn LLVMGetBufferSize(buffer: LLVMMemoryBufferRef) -> usize;
    fn LLVMDisposeMemoryBuffer(buffer: LLVMMemoryBufferRef);

    fn LLVMGetFirstFunction(module: LLVMModuleRef) -> ValueRef;
    fn LLVMGetNextFunction(function: ValueRef) -> ValueRef;
    fn LLVMGetFirstBasicBlock(function: ValueRef) -> BlockRef;
    fn LLVMGetNextBasicBlock(block: BlockRef) -> BlockRef;
    fn LLVMGetFirstInstruction(block: BlockRef) -> ValueRef;
    fn LLVMGetNextInstruction(instruction: ValueRef) -> ValueRef;
    fn LLVMIsACallInst(value: ValueRef) -> ValueRef;
    fn LLVMGetCalledValue(call: ValueRef) -> ValueRef;
    fn LLVMIsAInlineAsm(value: ValueRef) -> ValueRef;
    fn LLVMGetEnumAttributeKindForName(name: *const c_char, length: usize) -> c_uint;
    fn LLVMCreateEnumAttribute(context: LLVMContextRef, kind: c_uint, value: u64) -> AttributeRef;
    fn LLVMAddCallSiteAttribute(call: ValueRef, index: c_uint, attribute: AttributeRef);

    fn LLVMInitializeNVPTXTargetInfo();
    fn LLVMInitializeNVPTXTarget();
    fn LLVMInitializeNVPTXTargetMC();
    fn LLVMInitializeNVPTXAsmPrinter();
    fn LLVMInitializeAMDGPUTargetInfo();
    fn LLVMInitializeAMDGPUTarget();
    fn LLVMInitializeAMDGPUTargetMC();
    fn LLVMInitializeAMDGPUAsmPrinter();
    fn LLVMGetTargetFromTriple(triple: *const c_char, target: *mut TargetRef, message: *mut *mut c_char) -> c_int;
    fn LLVMCreateTargetMachine(
        target: TargetRef,
        triple: *const c_char,
        chip: *const c_char,
        features: *const c_char,
        level: c_uint,
        relocation: c_uint,
        code_model: c_uint,
    ) -> TargetMachineRef;
    fn LLVMDisposeTargetMachine(machine: TargetMachineRef);
    fn LLVMCreateTargetDataLayout(machine: TargetMachineRef) -> TargetDataRef;
    fn LLVMDisposeTargetData(layout: TargetDataRef);

    fn LLVMCreatePassBuilderOptions() -> PassOptionsRef;
    fn LLVMDisposePassBuilderOptions(options: PassOptionsRef);
    fn LLVMRunPasses(
        module: LLVMModuleRef,
        passes: *const c_char,
        machine: TargetMachineRef,
        options: PassOptionsRef,
    ) -> ErrorRef;
    fn LLVMGetErrorMessage(error: ErrorRef) -> *mut c_char;
    fn LLVMDisposeErrorMessage(message: *mut c_char);
}

// `assembly.cpp`, beside this file.
unsafe extern "C" {
    fn lacewing_has_narrow_numbers(module: LLVMModuleRef) -> bool;
    fn lacewing_instruction_count(module: LLVMModuleRef) -> usize;
    fn lacewing_loops_step_through_memory(module: LLVMModuleRef) -> bool;
    fn lacewing_assembly(
        machine: TargetMachineRef,
        module: LLVMModuleRef,
        without: *const *const c_char,
        count: usize,
        assembly: *mut LLVMMemoryBufferRef,
    ) -> *const c_char;
}

/// A zero-terminated copy of what goes to LLVM.
fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| internal("a text for LLVM with a zero byte in it", vec![]))
}

/// A copy of a string that LLVM allocated, which is freed; empty for none.
///
/// # Safety
/// `message` is null or comes from a function of LLVM whose result `LLVMDisposeMessage` frees.
unsafe fn take_message(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's strings end with a zero; ours by the contract above, and used no more after this.
    unsafe {
        let copy = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        copy
    }
}

/// What LLVM reported of a module: errors, and the rest as warnings.
type Sink = RefCell<Vec<Diagnostic>>;

/// Writes a diagnostic of LLVM to the sink behind `data`.
unsafe extern "C" fn report(info: LLVMDiagnosticInfoRef, data: *mut c_void) {
    // SAFETY: LLVM passes a diagnostic that lives during this call, and `data` as it was given to it: the sink,
    // which lives as long as the context (`LlvmModule`).
    let (text, severity, sink) = unsafe {
        (take_message(LLVMGetDiagInfoDescription(info)), LLVMGetDiagInfoSeverity(info), &*data.cast::<Sink>())
    };
    let mut diagnostic = Diagnostic::error(text);
    if severity != SEVERITY_ERROR {
        diagnostic.severity = crate::Severity::Warning;
    }
    sink.borrow_mut().push(diagnostic);
}

/// A module of LLVM IR in a context of its own.
pub(crate) struct LlvmModule {
    module: LLVMModuleRef,
    context: LLVMContextRef,
    reported: Box<Sink>,
}

impl Drop for LlvmModule {
    fn drop(&mut self) {
        // SAFETY: both are ours alone; the module goes before the context that it lives in.
        unsafe {
            if !self.module.is_null() {
                LLVMDisposeModule(self.module);
            }
            LLVMContextDispose(self.context);
        }
    }
}

impl LlvmModule {
    /// Translates the functions inside `operation`, a module of MLIR in the LLVM dialect, and verifies the result.
    /// `None` where MLIR refuses, which it then has reported to its own context.
    pub fn translate(operation: OperationRef<'_, '_>) -> Option<Self> {
        // SAFETY: the handler's data is a box, which neither moves nor goes before the context. MLIR reads the live
        // operation; a module that it returns is ours.
        unsafe {
            let context = LLVMContextCreate();
            let mut this = Self { module: ptr::null_mut(), context, reported: Box::default() };
            let sink: *const Sink = &*this.reported;
            LLVMContextSetDiagnosticHandler(context, Some(report), sink.cast_mut().cast());
            this.module = mlir_sys::mlirTranslateModuleToLLVMIR(operation.to_raw(), context);
            if this.module.is_null() {
                return None;
            }
            this.keep_assembly_in_place();
            Some(this)
        }
    }

    /// Marks inline assembly as `convergent`: which threads come to it together must stay as it is (LLVM's language
    /// reference, "Function Attributes").
    ///
    /// Many of NVIDIA's instructions are inline assembly by the time they are LLVM IR, products of warpgroups, waits
    /// and arrivals at barriers among them, and MLIR does not mark it. LLVM is then free to copy it into both arms of
    /// a branch that threads of one warp take differently: the warp arrives twice.
    fn keep_assembly_in_place(&self) {
        const CONVERGENT: &[u8] = b"convergent";
        // SAFETY: module and context are live, and what the lists give belongs to the module. An attribute belongs to
        // the context. None of the lists changes here.
        unsafe {
            let kind = LLVMGetEnumAttributeKindForName(CONVERGENT.as_ptr().cast(), CONVERGENT.len());
            let convergent = LLVMCreateEnumAttribute(self.context, kind, 0);
            let mut function = LLVMGetFirstFunction(self.module);
            while !function.is_null() {
                let mut block = LLVMGetFirstBasicBlock(function);
                while !block.is_null() {
                    let mut instruction = LLVMGetFirstInstruction(block);
                    while !instruction.is_null() {
                        let call = LLVMIsACallInst(instruction);
                        if !call.is_null() && !LLVMIsAInlineAsm(LLVMGetCalledValue(call)).is_null() {
                            LLVMAddCallSiteAttribute(call, OF_THE_CALL, convergent);
                        }
                        instruction = LLVMGetNextInstruction(instruction);
                    }
                    block = LLVMGetNextBasicBlock(block);
                }
                function = LLVMGetNextFunction(function);
            }
        }
    }

    /// The module in LLVM's assembly language.
    pub fn text(&self) -> String {
        // SAFETY: the module is live; the string is ours to free.
        unsafe { take_message(LLVMPrintModuleToString(self.module)) }
    }

    /// Whether some instruction gives a scalar of 8 or 16 bits.
    pub fn has_narrow_numbers(&self) -> bool {
        // SAFETY: the module is live and only read.
        unsafe { lacewing_has_narrow_numbers(self.module) }
    }

    /// How many instructions it has.
    pub fn instruction_count(&self) -> usize {
        // SAFETY: the module is live and only read.
        unsafe { lacewing_instruction_count(self.module) }
    }

    /// Whether an address of global memory goes up by the same amount with each turn of some innermost loop.
    pub fn loops_step_through_memory(&self) -> bool {
        // SAFETY: the module is live; what is computed of its functions goes with the call.
        unsafe { lacewing_loops_step_through_memory(self.module) }
    }

    /// Makes this a module for `machine` and runs `passes`, a pipeline in the spelling of LLVM's `opt -passes`.
    ///
    /// # Errors
    /// A pipeline that LLVM does not know, and what its passes report.
    pub fn optimise(&mut self, machine: &Machine, passes: &str) -> Result<(), Error> {
        let (pipeline, machine) = (c_string(passes)?, machine.machine.as_ptr());
        // SAFETY: module and machine are live. The data layout is copied into the module. Options are read during
        // the run. The message is freed by the function that LLVM gives for it.
        unsafe {
            LLVMSetTarget(self.module, NVIDIA_TRIPLE.as_ptr());
            let layout = LLVMCreateTargetDataLayout(machine);
            LLVMSetModuleDataLayout(self.module, layout);
            LLVMDisposeTargetData(layout);

            let options = LLVMCreatePassBuilderOptions();
            let error = LLVMRunPasses(self.module, pipeline.as_ptr(), machine, options);
            LLVMDisposePassBuilderOptions(options);
            if error.is_null() {
                return Ok(());
            }
            let message = LLVMGetErrorMessage(error);
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            LLVMDisposeErrorMessage(message);
            Err(self.refused(&format!("LLVM refuses the pipeline `{passes}`: {text}")))
        }
    }

    /// Generates assembly for `machine`, for which [`LlvmModule::optimise`] made the module, by all passes of LLVM's code generation
    /// but those that `without` names, as its command line does.
    ///
    /// # Errors
    /// A name that no pass has, and each error that the code generator reports.
    pub fn assembly(self, machine: &Machine, without: &[&str]) -> Result<String, Error> {
        let texts = without.iter().map(|name| c_string(name)).collect::<Result<Vec<_>, _>>()?;
        let names: Vec<_> = texts.iter().map(|name| name.as_ptr()).collect();
        let (machine, mut buffer) = (machine.machine.as_ptr(), ptr::null_mut());
        // SAFETY: module and machine are live, and so are the names, of which a problem may be one; otherwise it is static. There is
        // a buffer where there is no problem, and it is freed once it is copied.
        let text = unsafe {
            let problem = lacewing_assembly(machine, self.module, names.as_ptr(), names.len(), &mut buffer);
            if !problem.is_null() {
                let problem = CStr::from_ptr(problem).to_string_lossy().into_owned();
                return Err(self.refused(&format!("LLVM generates no code: `{problem}`")));
            }
            let bytes = std::slice::from_raw_parts(LLVMGetBufferStart(buffer).cast::<u8>(), LLVMGetBufferSize(buffer));
            let text = String::from_utf8_lossy(bytes).into_owned();
            LLVMDisposeMemoryBuffer(buffer);
            text
        };
        // Code generation goes on after an error, so that it can report more than one.
        if self.reported.borrow().iter().any(|found| found.severity == crate::Severity::Error) {
            return Err(self.refused("LLVM's code generation failed"));
        }
        Ok(text)
    }

    /// An error with what LLVM reported.
    fn refused(&self, message: &str) -> Error {
        internal(message, self.reported.take())
    }
}

/// Puts both vendors' back ends on LLVM's list, which no lock protects. It is to be called before any code is generated:
/// MLIR does the same for AMD when it first needs it, and changes nothing then, where another thread may be reading.
pub(crate) fn list_back_ends() {
    static LISTED: Once = Once::new();
    // SAFETY: these fill LLVM's list of targets, once and on one thread: others wait here.
    LISTED.call_once(|| unsafe {
        LLVMInitializeNVPTXTargetInfo();
        LLVMInitializeNVPTXTarget();
        LLVMInitializeNVPTXTargetMC();
        LLVMInitializeNVPTXAsmPrinter();
        LLVMInitializeAMDGPUTargetInfo();
        LLVMInitializeAMDGPUTarget();
        LLVMInitializeAMDGPUTargetMC();
        LLVMInitializeAMDGPUAsmPrinter();
    });
}

/// LLVM's back end for one chip of NVIDIA.
pub(crate) struct Machine {
    machine: NonNull<c_void>,
}

const NVIDIA_TRIPLE: &CStr = c"nvptx64-nvidia-cuda";

impl Machine {
    /// The back end for `chip` with `features`, as `+ptx84`, generating code at `level`, 0 to 3.
    ///
    /// # Errors
    /// When LLVM was built without the back end.
    pub fn nvidia(chip: &str, features: &str, level: u8) -> Result<Self, Error> {
        list_back_ends();
        let (chip, features) = (c_string(chip)?, c_string(features)?);
        let (mut target, mut message) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: strings end with a zero and are read during the calls; a target is static; the machine is ours.
        // Zero is the default of relocation and code model.
        let machine = unsafe {
            if LLVMGetTargetFromTriple(NVIDIA_TRIPLE.as_ptr(), &mut target, &mut message) != 0 {
                return Err(internal(&format!("no back end for NVIDIA: {}", take_message(message)), vec![]));
            }
            let level = c_uint::from(level.min(3));
            LLVMCreateTargetMachine(target, NVIDIA_TRIPLE.as_ptr(), chip.as_ptr(), features.as_ptr(), level, 0, 0)
        };
        let machine = NonNull::new(machine).ok_or_else(|| internal("LLVM makes no back end", vec![]))?;
        Ok(Self { machine })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: the machine is ours alone and goes once.
        unsafe { LLVMDisposeTargetMachine(self.machine.as_ptr()) }
    }
}
