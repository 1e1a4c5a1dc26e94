//! What MLIR hands out as raw memory: compiled objects.

use melior::ir::{Attribute, AttributeLike};

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
