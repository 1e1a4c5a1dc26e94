//! The shell around MLIR: contexts with the `lw` dialect, modules that own their context, captured
//! diagnostics. All `unsafe` over the bindings that the trace needs lives here.

mod llvm;
mod object;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Once;

use melior::Context;
use melior::StringRef;
use melior::dialect::DialectRegistry;
use melior::ir::operation::{OperationLike, OperationPrintingFlags, OperationRef};
use melior::ir::{
    Attribute, AttributeLike, Block, BlockLike, Location, Module, Operation, Type, TypeLike, Value, ValueLike,
};
use melior::utility::{load_irdl_dialects, register_all_dialects, register_all_passes};

use crate::{Diagnostic, Error, SourceLocation, dialect};

pub(crate) use llvm::{LlvmModule, Machine, list_back_ends};
pub(crate) use object::gpu_object;

/// An MLIR context with every upstream dialect that a trace may use and the dialect `lw`.
pub struct IrContext {
    context: Context,
}

impl IrContext {
    /// Makes a context. Some milliseconds: one serves a trace and all that is made from it.
    ///
    /// # Errors
    /// When the `lw` dialect does not load, which means that its table is wrong.
    pub fn new() -> Result<Rc<Self>, Error> {
        static PASSES: Once = Once::new();
        PASSES.call_once(register_all_passes);

        let registry = DialectRegistry::new();
        register_all_dialects(&registry);
        // A context serves one thread: locks inside it would only cost.
        let context = Context::new_with_registry(&registry, false);
        for name in ["arith", "gpu", "irdl", "llvm", "math", "nvvm", "rocdl", "scf", "ub", "vector"] {
            context.get_or_load_dialect(name);
        }
        let this = Rc::new(Self { context });
        let text = dialect::irdl_text();
        let (loaded, diagnostics) =
            this.capture(|context| Module::parse(context, &text).is_some_and(|module| load_irdl_dialects(&module)));
        if loaded { Ok(this) } else { Err(internal("the `lw` dialect does not load", diagnostics)) }
    }

    /// A context that this thread may have used before: to make one takes longer than to trace a small kernel.
    ///
    /// What a context has made unique, types, attributes and locations, it keeps. So each serves a limited number of times.
    ///
    /// # Errors
    /// As [`IrContext::new`].
    pub fn shared() -> Result<Rc<Self>, Error> {
        const USES: u32 = 16;
        thread_local! {
            static LAST: RefCell<Option<(Rc<IrContext>, u32)>> = const { RefCell::new(None) };
        }
        LAST.with(|last| {
            let mut last = last.borrow_mut();
            match last.as_mut() {
                Some((context, uses)) if *uses < USES => {
                    *uses += 1;
                    Ok(Rc::clone(context))
                }
                _ => {
                    let context = Self::new()?;
                    *last = Some((Rc::clone(&context), 1));
                    Ok(context)
                }
            }
        })
    }

    /// The context, for building.
    pub fn get(&self) -> &Context {
        &self.context
    }

    /// The context with a lifetime that types can carry beside it.
    ///
    /// What is built from the result must not outlive `self`: the trace and [`IrModule`], the only
    /// places that use it, keep the `Rc` and drop it last.
    pub(crate) fn get_static(self: &Rc<Self>) -> &'static Context {
        // SAFETY: see above; the function is not visible outside the crate.
        unsafe { &*std::ptr::from_ref(&self.context) }
    }

    /// Runs `f` and returns what MLIR reported meanwhile.
    pub fn capture<R>(&self, f: impl FnOnce(&Context) -> R) -> (R, Vec<Diagnostic>) {
        let sink = Rc::new(RefCell::new(Vec::new()));
        let handler = {
            let sink = Rc::clone(&sink);
            self.context.attach_diagnostic_handler(move |diagnostic| {
                let mut found = Diagnostic::error(diagnostic.to_string());
                if matches!(
                    diagnostic.severity(),
                    melior::diagnostic::DiagnosticSeverity::Warning | melior::diagnostic::DiagnosticSeverity::Remark
                ) {
                    found.severity = crate::Severity::Warning;
                }
                let (location, chain) = source_location(diagnostic.location());
                found.location = location;
                found.call_chain = chain;
                for index in 0..diagnostic.note_count() {
                    if let Ok(note) = diagnostic.note(index) {
                        found.notes.push(note.to_string());
                    }
                }
                sink.borrow_mut().push(found);
                true
            })
        };
        let result = f(&self.context);
        self.context.detach_diagnostic_handler(handler);
        (result, sink.take())
    }
}

impl fmt::Debug for IrContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IrContext")
    }
}

/// A fault of Lacewing itself, not of the user's kernel.
pub(crate) fn internal(message: &str, diagnostics: Vec<Diagnostic>) -> Error {
    let mut all =
        vec![Diagnostic::error(message).help("this is a fault in Lacewing: please report it with the kernel")];
    all.extend(diagnostics);
    all.into()
}

/// The user's place behind an MLIR location, and the call sites of the helpers that led there.
pub fn source_location(location: Location<'_>) -> (Option<SourceLocation>, Vec<SourceLocation>) {
    let mut chain = Vec::new();
    let mut current = location;
    let mut callers = Vec::new();
    loop {
        if current.is_call_site() {
            callers.push(current.call_site_caller());
            current = current.call_site_callee();
        } else if current.is_name() {
            current = current.name_child_location();
        } else if current.is_fused() && current.fused_num_locations() > 0 {
            current = current.fused_location(0);
        } else {
            break;
        }
    }
    // `callee at (caller at ..)`: each caller may itself be a call site.
    while let Some(caller) = callers.pop() {
        let (place, more) = source_location(caller);
        chain.extend(place);
        chain.extend(more);
    }
    let place = current.is_file_line_col_range().then(|| SourceLocation {
        file: current.file_line_col_range_filename().as_string_ref().as_str().unwrap_or_default().to_owned(),
        line: current.file_line_col_range_start_line() as u32,
        column: current.file_line_col_range_start_column() as u32,
    });
    (place, chain)
}

/// A module together with the context that it lives in.
pub struct IrModule {
    // Dropped before `context`: fields drop in order.
    module: Module<'static>,
    context: Rc<IrContext>,
}

impl IrModule {
    /// Parses the textual form.
    ///
    /// # Errors
    /// What the parser and the verifier found, with locations in the text.
    pub fn parse(context: &Rc<IrContext>, text: &str) -> Result<Self, Error> {
        let static_context = context.get_static();
        let (module, diagnostics) = context.capture(|_| Module::parse(static_context, text));
        match module {
            Some(module) => Ok(Self { module, context: Rc::clone(context) }),
            None if diagnostics.is_empty() => Err(Error::new("this is not an MLIR module")),
            None => Err(diagnostics.into()),
        }
    }

    /// Wraps a module that was built in `context`.
    pub(crate) fn from_module(context: Rc<IrContext>, module: Module<'static>) -> Self {
        Self { module, context }
    }

    /// An independent copy in the same context.
    ///
    /// # Errors
    /// Never for a module that came from here; the type says so for callers' sake.
    pub fn try_clone(&self) -> Result<Self, Error> {
        // Of the operation itself: a copy of the reference would own the same operation twice.
        let copy = Operation::clone(&self.module.as_operation());
        let module = Module::from_operation(copy).ok_or_else(|| internal("a module's copy is not a module", vec![]))?;
        Ok(Self { module, context: Rc::clone(&self.context) })
    }

    /// The context of the module.
    pub fn context(&self) -> &Rc<IrContext> {
        &self.context
    }

    /// The module, for reading.
    pub fn module(&self) -> &Module<'static> {
        &self.module
    }

    /// The module, for rewriting.
    pub fn module_mut(&mut self) -> &mut Module<'static> {
        &mut self.module
    }

    /// Runs MLIR's verifier.
    ///
    /// # Errors
    /// What the verifier found, at the user's lines.
    pub fn verify(&self) -> Result<(), Error> {
        let (valid, diagnostics) = self.context.capture(|_| self.module.as_operation().verify());
        if valid {
            Ok(())
        } else if diagnostics.is_empty() {
            Err(internal("the module does not verify", vec![]))
        } else {
            Err(diagnostics.into())
        }
    }

    /// The textual form, with locations when `locations` is set.
    pub fn text(&self, locations: bool) -> String {
        let flags = OperationPrintingFlags::new();
        let flags = if locations { flags.enable_debug_info(true, false) } else { flags };
        self.module.as_operation().to_string_with_flags(flags).unwrap_or_default()
    }
}

impl fmt::Debug for IrModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(false))
    }
}

/// Erases a block argument that nothing uses.
pub(crate) fn erase_block_argument(block: &Block<'static>, index: usize) {
    // SAFETY: the trace replaces every use of the argument before it erases it.
    unsafe { block.erase_argument(index) }
}

/// Makes every use of `old` a use of `new`.
pub(crate) fn replace_all_uses(old: Value<'static, 'static>, new: Value<'static, 'static>) {
    // SAFETY: both are live values of one context; MLIR only rewires use lists.
    unsafe { mlir_sys::mlirValueReplaceAllUsesOfWith(old.to_raw(), new.to_raw()) }
}

/// A value whose lifetime is that of the trace's context, kept by `Rc` beside it.
pub(crate) fn extend_value(value: impl ValueLike<'static>) -> Value<'static, 'static> {
    // SAFETY: the op or block that owns the value is owned by the trace and, in the end, by the module.
    unsafe { Value::from_raw(value.to_raw()) }
}

/// The name of an operation, which lives as long as the context.
pub(crate) fn name_of<'m>(op: OperationRef<'m, 'm>) -> &'m str {
    // SAFETY: the operation is live; the context owns the text and outlives what borrows from it.
    let name = unsafe { StringRef::<'m>::from_raw(mlir_sys::mlirIdentifierStr(op.name().to_raw())) };
    name.as_str().unwrap_or_default()
}

/// The operations that read a value, each with the number of the operand.
pub(crate) fn uses<'m>(value: Value<'m, 'm>) -> Vec<(OperationRef<'m, 'm>, usize)> {
    let mut found = Vec::new();
    // SAFETY: the value is live, and so are the operations that read it; the list does not change here.
    unsafe {
        let mut operand = mlir_sys::mlirValueGetFirstUse(value.to_raw());
        while !mlir_sys::mlirOpOperandIsNull(operand) {
            let owner = OperationRef::from_raw(mlir_sys::mlirOpOperandGetOwner(operand));
            found.push((owner, mlir_sys::mlirOpOperandGetOperandNumber(operand) as usize));
            operand = mlir_sys::mlirOpOperandGetNextUse(operand);
        }
    }
    found
}

/// Makes an operation read another value.
pub(crate) fn set_operand<'m>(op: OperationRef<'m, 'm>, index: usize, value: Value<'m, 'm>) {
    debug_assert!(index < op.operand_count());
    // SAFETY: both are live and of one context, and the operation has this operand: it came from `uses`.
    unsafe { mlir_sys::mlirOperationSetOperand(op.to_raw(), index as isize, value.to_raw()) }
}

/// What tells one value from another.
pub(crate) fn identity(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

/// The elements of an array attribute; `None` for any other attribute.
///
/// melior 0.27's `ArrayAttribute` converts from dense arrays only.
pub fn array_elements<'c>(attribute: Attribute<'c>) -> Option<Vec<Attribute<'c>>> {
    if !attribute.is_array() {
        return None;
    }
    // SAFETY: the attribute is an array (checked above) and indices stay below its length.
    let elements = unsafe {
        let count = mlir_sys::mlirArrayAttrGetNumElements(attribute.to_raw());
        (0..count).map(|i| Attribute::from_raw(mlir_sys::mlirArrayAttrGetElement(attribute.to_raw(), i))).collect()
    };
    Some(elements)
}

/// Length and element of a vector of one dimension; `None` for any other type.
pub(crate) fn vector_parts<'c>(ty: Type<'c>) -> Option<(u32, Type<'c>)> {
    // SAFETY: the type is live, and only a vector is asked for its rank, its first extent and its element.
    unsafe {
        let raw = ty.to_raw();
        if !mlir_sys::mlirTypeIsAVector(raw) || mlir_sys::mlirShapedTypeGetRank(raw) != 1 {
            return None;
        }
        let lanes = u32::try_from(mlir_sys::mlirShapedTypeGetDimSize(raw, 0)).ok()?;
        Some((lanes, Type::from_raw(mlir_sys::mlirShapedTypeGetElementType(raw))))
    }
}

/// Address space of an LLVM pointer; `None` for any other type.
pub(crate) fn pointer_space(ty: Type<'_>) -> Option<u32> {
    // SAFETY: the type is live, and only a pointer is asked for its space.
    unsafe {
        let raw = ty.to_raw();
        mlir_sys::mlirTypeIsALLVMPointerType(raw).then(|| mlir_sys::mlirLLVMPointerTypeGetAddressSpace(raw))
    }
}

/// A constant vector whose elements are all `element`, an integer or float attribute of `ty`'s element type.
///
/// `ty` is a vector type: [`vector_parts`] tells.
pub(crate) fn splat<'c>(ty: Type<'c>, element: Attribute<'c>) -> Option<Attribute<'c>> {
    let (_, of) = vector_parts(ty)?;
    // SAFETY: the type is a vector and the element has its element type (both checked), as MLIR asserts.
    unsafe {
        if !mlir_sys::mlirTypeEqual(mlir_sys::mlirAttributeGetType(element.to_raw()), of.to_raw()) {
            return None;
        }
        Some(Attribute::from_raw(mlir_sys::mlirDenseElementsAttrSplatGet(ty.to_raw(), element.to_raw())))
    }
}

/// Bits that the rest of the crate uses unqualified.
pub mod ir {
    pub use melior::ir::attribute::{
        ArrayAttribute, BoolAttribute, DenseI32ArrayAttribute, DenseI64ArrayAttribute, DictionaryAttribute,
        FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute, StringAttribute, TypeAttribute,
    };
    pub use melior::ir::block::BlockLike;
    pub use melior::ir::operation::{OperationBuilder, OperationLike, OperationMutLike};
    pub use melior::ir::r#type::{FunctionType, IntegerType, TypeLike};
    pub use melior::ir::{
        Attribute, AttributeLike, Block, BlockRef, Identifier, Location, Module, Operation, OperationRef, Region,
        RegionLike, Type, Value, ValueLike,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_serves_a_limited_number_of_times() {
        let contexts: Vec<_> = (0..40).map(|_| IrContext::shared().unwrap()).collect();
        let changes = contexts.windows(2).filter(|pair| !Rc::ptr_eq(&pair[0], &pair[1])).count();
        assert_eq!(changes, 2);
        let text = "module { %0 = arith.constant 1 : i32 }";
        assert!(contexts.iter().all(|context| IrModule::parse(context, text).unwrap().verify().is_ok()));
        let elsewhere = std::thread::spawn(|| IrContext::shared().map(|context| Rc::as_ptr(&context) as usize));
        let elsewhere = elsewhere.join().unwrap().unwrap();
        assert!(contexts.iter().all(|context| Rc::as_ptr(context) as usize != elsewhere));
    }
}
