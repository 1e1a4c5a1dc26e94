//! What the record of a launch says of its tensors.

use lacewing_core::KernelMeta;

use super::{Argument, Arguments};
use crate::emulator::Program;
use crate::record::RecordedView;
use crate::storage::Storage;

impl Arguments {
    /// The tensors, for the record of a launch.
    pub(super) fn views(&self, meta: &KernelMeta, program: &Program) -> Vec<RecordedView> {
        let lines = |name: &str, is_write: bool| {
            let places = program.uses_of(name, is_write);
            places.map(|place| place.location.iter().chain(&place.call_chain).cloned().collect()).collect()
        };
        let named = self.list.iter().zip(&meta.params);
        named
            .filter_map(|(argument, parameter)| {
                let tensor = match argument {
                    Argument::Tensor(tensor) => tensor,
                    Argument::Map(map) => &map.tensor,
                    Argument::Scalar { .. } => return None,
                };
                let Storage::Emulated(buffer) = &tensor.storage else { return None };
                Some(RecordedView {
                    name: parameter.name.clone(),
                    mutable: tensor.mutable,
                    reads: lines(&parameter.name, false),
                    writes: lines(&parameter.name, true),
                    extents: tensor.extents.to_vec(),
                    strides: tensor.strides.to_vec(),
                    buffer: buffer.clone(),
                    offset: tensor.offset,
                    element_bytes: tensor.element_bytes,
                })
            })
            .collect()
    }
}
