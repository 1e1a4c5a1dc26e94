//! What a compiled kernel costs: registers, memory, occupancy, warnings, instructions.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::machine::{MainLoop, main_loops};
use super::mix::Mix;
use super::tools::{assemble, find_beside_ptxas, find_ptxas};
use super::{Emit, EmitOptions, emit};
use crate::occupancy::Occupancy;
use crate::{Diagnostic, Error, KernelMeta, Traced};

/// What is known of a compiled kernel. Counts of instructions are static: how often they stand in the code.
#[derive(Clone, Debug)]
pub struct Report {
    /// The kernel and its target.
    pub meta: KernelMeta,
    /// Registers and what does not fit in them; `None` for an NVIDIA target where there is no `ptxas`.
    pub resources: Option<Resources>,
    /// Blocks that a multiprocessor holds, where the registers are known.
    pub occupancy: Option<Occupancy>,
    /// What the assembler says about speed, each with what it means where that is known.
    pub warnings: Vec<Warning>,
    /// Instructions of the assembly text: PTX or AMDGCN.
    pub assembly: Mix,
    /// Machine instructions, where `nvdisasm` is found. On AMD the assembly text is as good.
    pub machine: Option<Mix>,
    /// The loops of warpgroup products, where `nvdisasm` is found; empty for kernels that have none.
    pub main_loops: Vec<MainLoop>,
}

/// What a thread is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread. On AMD, vector registers of both kinds.
    pub registers: u32,
    /// Scalar registers of a wave (AMD).
    pub scalar_registers: Option<u32>,
    /// Bytes of stack.
    pub stack_bytes: u32,
    /// Bytes that go to memory for want of registers; on AMD, 4 for each register.
    pub spill_store_bytes: u32,
    /// Bytes that come back.
    pub spill_load_bytes: u32,
}

/// A line of `ptxas` that speaks of speed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The line.
    pub text: String,
    /// What it means and what to do, for the ones that are known.
    pub meaning: Option<&'static str>,
}

/// Known codes. NVIDIA documents none of them; each was provoked, and undone by what is said here.
const MEANINGS: &[(&str, &str)] = &[
    (
        "C7508",
        "setmaxnreg is ignored, because nothing caps the registers at entry: give the kernel `max_regs` or `min_blocks`",
    ),
    (
        "C7510",
        "wgmma is serialised: something other than wgmma writes an accumulator's registers while it is in flight",
    ),
    ("C7512", "wgmma is serialised: a branch or a spill stands between its start and its wait"),
    ("C7514", "wgmma is serialised: an accumulator is read before the wait for it"),
    ("C7519", "a fence before wgmma was missing and has been added"),
];

impl Report {
    /// Compiles a traced kernel and says what came of it.
    ///
    /// # Errors
    /// When the kernel does not lower, or a tool that is there fails. [`EmitOptions::deny_warnings`] is not looked at: see
    /// [`complaints`](Self::complaints).
    pub fn of(traced: &Traced, options: &EmitOptions) -> Result<Self, Error> {
        let options = EmitOptions { deny_warnings: false, ..options.clone() };
        let meta = traced.meta.clone();
        if meta.target.is_amd() {
            let made = emit(traced, Emit::Amdgcn, &options)?;
            let text = made.text().unwrap_or_default();
            return Ok(Self::new(meta, amd_resources(text), Vec::new(), Mix::of_amdgcn(text)));
        }
        let made = emit(traced, Emit::Ptx, &options)?;
        let text = made.text().unwrap_or_default();
        let mix = Mix::of_ptx(text);
        if options.ptxas.is_none() && find_ptxas(None).is_err() {
            return Ok(Self::new(meta, None, Vec::new(), mix));
        }
        let (cubin, log) = assemble(text, meta.target, &options)?;
        let resources = Resources {
            registers: log.registers,
            scalar_registers: None,
            stack_bytes: log.stack_bytes,
            spill_store_bytes: log.spill_store_bytes,
            spill_load_bytes: log.spill_load_bytes,
        };
        let mut report = Self::new(meta, Some(resources), log.warnings, mix);
        if let Some(text) = machine_code(&cubin)? {
            report.machine = Some(Mix::of_sass(&text));
            report.main_loops = main_loops(&text);
        }
        Ok(report)
    }

    fn new(meta: KernelMeta, resources: Option<Resources>, warnings: Vec<String>, assembly: Mix) -> Self {
        let threads = u32::try_from(meta.attributes.threads()).unwrap_or(u32::MAX);
        let occupancy = resources.map(|found| Occupancy::of(meta.target, threads, found.registers, meta.shared_bytes));
        let warnings = warnings.into_iter().map(Warning::new).collect();
        Self { meta, resources, occupancy, warnings, assembly, machine: None, main_loops: Vec::new() }
    }

    /// What makes the code slower than it should be: warnings, spills, and moves to uniform registers in a main loop of warpgroup
    /// products.
    pub fn complaints(&self) -> Vec<String> {
        let spilled = self.resources.filter(|found| found.spill_store_bytes + found.spill_load_bytes > 0);
        let spilled = spilled.map(|Resources { spill_store_bytes, spill_load_bytes, .. }| {
            format!("registers spill to memory: a thread stores {spill_store_bytes} bytes and loads {spill_load_bytes}")
        });
        self.warnings
            .iter()
            .map(|warning| warning.text.clone())
            .chain(spilled)
            .chain(complaints_of_loops(&self.main_loops))
            .collect()
    }
}

impl Warning {
    fn new(text: String) -> Self {
        let meaning = MEANINGS.iter().find(|(code, _)| text.contains(code)).map(|(_, meaning)| *meaning);
        Self { text, meaning }
    }
}

/// The metadata that LLVM writes behind the code (AMDGPU Usage, "Code Object Metadata").
fn amd_resources(text: &str) -> Option<Resources> {
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(key))?;
        line.trim_start_matches([':', ' ']).trim().parse::<u32>().ok()
    };
    let spilled = number(".vgpr_spill_count").unwrap_or(0) * 4;
    Some(Resources {
        // Those of both kinds: `.agpr_count` are among them.
        registers: number(".vgpr_count")?,
        scalar_registers: number(".sgpr_count"),
        stack_bytes: number(".private_segment_fixed_size").unwrap_or(0),
        spill_store_bytes: spilled,
        spill_load_bytes: spilled,
    })
}

/// Finds `nvdisasm`: the variable `LACEWING_NVDISASM`, the folder of `ptxas`, then PATH.
pub fn find_nvdisasm() -> Option<PathBuf> {
    find_beside_ptxas("nvdisasm", "LACEWING_NVDISASM")
}

/// What stands against loops of warpgroup products. Where one thread starts the products, a move takes a few cycles of that
/// thread while the products before run on, hundreds of cycles each: nobody waits.
pub(super) fn complaints_of_loops(loops: &[MainLoop]) -> Vec<String> {
    let moved = loops.iter().filter(|found| found.moves_to_uniform > 0 && !found.by_one_thread);
    moved
        .map(|MainLoop { address, products, moves_to_uniform, .. }| {
            format!(
                "{moves_to_uniform} R2UR in the loop at {address:#06x}, which has {products} warpgroup products: they wait for \
                 values that come from registers of threads; `uniform()` what an address or a stage is computed from"
            )
        })
        .collect()
}

/// The machine code as text, where there is a disassembler.
pub(super) fn machine_code(cubin: &[u8]) -> Result<Option<String>, Error> {
    find_nvdisasm().map(|tool| disassemble(&tool, cubin)).transpose()
}

fn disassemble(tool: &Path, cubin: &[u8]) -> Result<String, Error> {
    let failed = |what: &dyn std::fmt::Display| {
        Error::from(
            Diagnostic::error(format!("{} failed: {what}", tool.display()))
                .help("LACEWING_NVDISASM names another one; set it to nothing for none"),
        )
    };
    let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
    let path = folder.path().join("kernel.cubin");
    std::fs::write(&path, cubin).map_err(|error| failed(&error))?;
    let run = Command::new(tool).arg("-c").arg(&path).output().map_err(|error| failed(&error))?;
    if !run.status.success() {
        return Err(failed(&String::from_utf8_lossy(&run.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_amd_is_read() {
        let text = "  - .agpr_count:     32\n    .private_segment_fixed_size: 24\n    .sgpr_count:     51\n    .vgpr_count:     105\n\
                    \n    .vgpr_spill_count: 3\n";
        let found = amd_resources(text).unwrap();
        assert_eq!((found.registers, found.scalar_registers, found.stack_bytes), (105, Some(51), 24));
        assert_eq!((found.spill_store_bytes, found.spill_load_bytes), (12, 12));
        assert_eq!(amd_resources("nothing"), None);
    }

    #[test]
    fn known_codes_are_explained() {
        let line = "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized";
        assert!(Warning::new(line.to_owned()).meaning.unwrap().contains("read before the wait"));
        assert_eq!(Warning::new("ptxas warning : something else".to_owned()).meaning, None);
    }
}
