//! `lacewing compile --emit artifact`.

use lacewing_core::Target;
use lacewing_core::lower::{EmitOptions, PtxasLog};
use lacewing_runtime::artifact::{self, NewVariant};
use lacewing_runtime::registry::{KernelEntry, Settings};

use super::Io;
use super::failure::Failure;

/// The bytes of an artifact with a kernel for each target.
pub(super) fn make(
    entry: &KernelEntry,
    settings: &Settings,
    targets: &[Target],
    options: &EmitOptions,
    io: &mut Io,
) -> Result<Vec<u8>, Failure> {
    let mut variants: Vec<NewVariant> = Vec::new();
    for target in targets {
        let kernel = entry.build_for(settings, *target)?;
        let (mut variant, log) = artifact::compile(&*kernel, *target, options)?;
        // By the names of the command line, which say more than those of the function.
        variant.settings =
            settings.iter().map(|(parameter, value)| (parameter.name.to_owned(), value.to_string())).collect();
        match &log {
            Some(log) => tell(*target, log, io)?,
            None if target.is_nvidia() => writeln!(
                io.err,
                "note: {target}: no ptxas is found, so the artifact has PTX alone, which the driver compiles when it is \
                 loaded"
            )?,
            None => {}
        }
        variants.push(variant);
    }
    Ok(artifact::encode(&variants)?)
}

/// What `ptxas` said, in a line and one for each warning.
pub(super) fn tell(target: Target, log: &PtxasLog, io: &mut Io) -> Result<(), Failure> {
    let spilled = log.spill_store_bytes + log.spill_load_bytes;
    writeln!(io.err, "note: ptxas for {target}: {} registers a thread, {spilled} bytes spilled", log.registers)?;
    for warning in &log.warnings {
        writeln!(io.err, "warning: {warning}")?;
    }
    Ok(())
}
