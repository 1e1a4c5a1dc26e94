//! What MLIR hands out as raw memory: compiled objects and LLVM IR text.

use std::ffi::{CStr, c_char};

use melior::ir::{Attribute, AttributeLike, Module};

unsafe extern "C" {
    /// LLVM-C core: frees a string that LLVM allocated.
    fn LLVMDisposeMessage(message: *mut c_char);
}

/// The bytes of the first object of a `gpu.binary`'s `objects`.
pub(crate) fn gpu_object(objects: Attribute<'_>) -> Option<Vec<u8>> {
    let first = super::array_elements(objects)?.into_iter().next()?;
    // SAFETY: the attribute is a `#gpu.object` (checked first); the bytes belong to the context, which
    // outlives this copy of them.
    unsafe {
        if !mlir_sys::mlirAttributeIsAGPUObjectAttr(first.to_raw()) {
            return None;
        }
        let object = mlir_sys::mlirGPUObjectAttrGetObject(first.to_raw());
        Some(std::slice::from_raw_parts(object.data.cast::<u8>(), object.length).to_vec())
    }
}

/// LLVM IR of a module in the LLVM dialect; `None` when the translation fails.
pub(crate) fn translate_to_llvm(module: &Module<'_>) -> Option<String> {
    // SAFETY: the operation is live; the returned string is ours to free and ends with a zero.
    unsafe {
        let text = mlir_sys::mlirTranslateModuleToLLVMIRToString(module.as_operation().to_raw());
        if text.is_null() {
            return None;
        }
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        Some(copy)
    }
}
