//! The programs outside this process: `ptxas` and `ld.lld`.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{EmitOptions, main_loops, report};
use crate::{Diagnostic, Error, Target};

/// What `ptxas -v` said of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PtxasLog {
    /// The whole text.
    pub text: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of stack of a thread.
    pub stack_bytes: u32,
    /// Bytes that a thread stores to memory for want of registers.
    pub spill_store_bytes: u32,
    /// Bytes that a thread loads back.
    pub spill_load_bytes: u32,
    /// Warnings and advisories (`C7508`, serialised wgmma, and so on), each one line.
    pub warnings: Vec<String>,
}

impl PtxasLog {
    /// What makes the code slower than it should be: `ptxas`'s warnings, and registers kept in memory.
    pub fn complaints(&self) -> Vec<String> {
        let (stores, loads) = (self.spill_store_bytes, self.spill_load_bytes);
        let spilled = (stores + loads > 0)
            .then(|| format!("registers spill to memory: a thread stores {stores} bytes and loads {loads}"));
        self.warnings.iter().cloned().chain(spilled).collect()
    }

    fn parse(text: String) -> Self {
        let number_before = |line: &str, what: &str| -> Option<u32> {
            let (head, _) = line.split_once(what)?;
            head.split_whitespace().next_back()?.parse().ok()
        };
        let mut log = Self::default();
        for line in text.lines() {
            log.stack_bytes = number_before(line, " bytes stack frame").unwrap_or(log.stack_bytes);
            log.spill_store_bytes = number_before(line, " bytes spill stores").unwrap_or(log.spill_store_bytes);
            log.spill_load_bytes = number_before(line, " bytes spill loads").unwrap_or(log.spill_load_bytes);
            log.registers = number_before(line, " registers").unwrap_or(log.registers);
            let lower = line.to_ascii_lowercase();
            // `info` lines about performance count: wgmma that is serialised, setmaxnreg that is ignored.
            if lower.contains("warning") || lower.contains("(c7") || lower.contains("potential performance loss") {
                log.warnings.push(line.trim().to_owned());
            }
        }
        log.text = text;
        log
    }
}

/// Finds an executable on PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Finds `ptxas`: `explicit`, then the variable `LACEWING_PTXAS`, then `.lacewing/ptxas/bin/ptxas` in
/// the current directory or above, then PATH.
///
/// # Errors
/// Where it was looked for and how to get it.
pub fn find_ptxas(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = explicit {
        return Ok(path.to_owned());
    }
    if let Some(path) = env::var_os("LACEWING_PTXAS").filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let mut directory = env::current_dir().ok();
    while let Some(current) = directory {
        let candidate = current.join(".lacewing/ptxas/bin/ptxas");
        if candidate.is_file() {
            return Ok(candidate);
        }
        directory = current.parent().map(Path::to_owned);
    }
    on_path("ptxas").ok_or_else(|| {
        Diagnostic::error("ptxas was not found")
            .note("looked at the variable LACEWING_PTXAS, `.lacewing/ptxas/bin/ptxas` here and above, and PATH")
            .help("`cargo xtask setup` fetches it; without it, emit PTX: the driver compiles that")
            .into()
    })
}

/// Finds a program of the CUDA toolkit: the file that `variable` names (nothing, for none), the folder of `ptxas`, PATH.
pub(super) fn find_beside_ptxas(name: &str, variable: &str) -> Option<PathBuf> {
    if let Some(path) = env::var_os(variable) {
        return (!path.is_empty()).then(|| path.into());
    }
    let beside = find_ptxas(None).ok().map(|ptxas| ptxas.with_file_name(name)).filter(|path| path.is_file());
    beside.or_else(|| on_path(name))
}

/// What tells one `ptxas` from another: its own words about its version.
///
/// # Errors
/// When it cannot be run.
pub fn ptxas_version(ptxas: &Path) -> Result<String, Error> {
    let run = Command::new(ptxas)
        .arg("--version")
        .output()
        .map_err(|e| io_error(&format!("running {}", ptxas.display()), &e))?;
    Ok(String::from_utf8_lossy(&run.stdout).trim().to_owned())
}

/// Finds LLVM's ELF linker: `explicit`, then PATH, then the usual places of LLVM 22.
///
/// # Errors
/// What to install.
pub fn find_lld(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = explicit {
        return Ok(path.to_owned());
    }
    let fixed = [Path::new("/usr/lib/llvm-22/bin/ld.lld"), Path::new("/opt/rocm/llvm/bin/ld.lld")];
    on_path("ld.lld-22")
        .or_else(|| fixed.into_iter().find(|path| path.is_file()).map(Path::to_owned))
        .or_else(|| on_path("ld.lld"))
        .ok_or_else(|| {
            Diagnostic::error("ld.lld was not found, and code objects for AMD are linked by it")
                .note("looked for ld.lld-22 and ld.lld on PATH, in /usr/lib/llvm-22/bin and in /opt/rocm/llvm/bin")
                .help("install the package lld-22; without it, emit AMDGCN assembly")
                .into()
        })
}

fn io_error(what: &str, error: &std::io::Error) -> Error {
    Diagnostic::error(format!("{what}: {error}")).into()
}

/// Assembles PTX to a cubin by `ptxas`.
///
/// # Errors
/// `ptxas`'s own words where it refuses the text; with [`EmitOptions::deny_warnings`], what it warns of.
pub fn assemble(ptx: &str, target: Target, options: &EmitOptions) -> Result<(Vec<u8>, PtxasLog), Error> {
    let ptxas = find_ptxas(options.ptxas.as_deref())?;
    let directory = tempfile::tempdir().map_err(|e| io_error("a temporary directory for ptxas", &e))?;
    let (input, output) = (directory.path().join("kernel.ptx"), directory.path().join("kernel.cubin"));
    std::fs::write(&input, ptx).map_err(|e| io_error("writing PTX for ptxas", &e))?;
    let arguments: [&OsStr; 6] = [
        OsStr::new("-v"),
        OsStr::new("-arch"),
        OsStr::new(target.name()),
        OsStr::new("-o"),
        output.as_os_str(),
        input.as_os_str(),
    ];
    let run = Command::new(&ptxas)
        .arg(format!("-O{}", options.opt_level.min(3)))
        .args(arguments)
        .output()
        .map_err(|e| io_error(&format!("running {}", ptxas.display()), &e))?;
    let mut text = String::from_utf8_lossy(&run.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&run.stderr));
    if !run.status.success() {
        let error = Diagnostic::error(format!("ptxas refused the PTX for {target}"))
            .note(text.trim())
            .help("this is a fault in Lacewing: please report it with the kernel's PTX");
        return Err(error.into());
    }
    let cubin = std::fs::read(&output).map_err(|e| io_error("reading ptxas's cubin", &e))?;
    let log = PtxasLog::parse(text);
    if options.deny_warnings {
        let mut complaints = log.complaints();
        if let Some(text) = report::machine_code(&cubin)? {
            complaints.extend(report::complaints_of_loops(&main_loops(&text)));
        }
        if !complaints.is_empty() {
            return Err(complaints.into_iter().fold(denied(target), Diagnostic::note).into());
        }
    }
    Ok((cubin, log))
}

fn denied(target: Target) -> Diagnostic {
    Diagnostic::error(format!("the machine code for {target} is slower than it should be, and warnings are denied"))
        .help("smaller tiles or fewer stages need fewer registers; `--emit report` shows what each complaint means")
}

/// Finds the folder of ROCm's device library, which has `ockl.bc` in it: `explicit`, then the variable
/// `LACEWING_ROCM_DEVICE_LIBRARY`, then `amdgcn/bitcode` below ROCM_PATH, /opt/rocm and the system's library folders.
///
/// # Errors
/// Where it was looked for and how to get it.
pub fn find_device_library(explicit: Option<&Path>) -> Result<PathBuf, Error> {
    const VARIABLE: &str = "LACEWING_ROCM_DEVICE_LIBRARY";
    let variable = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let given = explicit.map(Path::to_owned).or_else(|| variable(VARIABLE));
    let places = match given {
        Some(given) => vec![given],
        None => {
            let fixed = ["/opt/rocm", "/usr/lib/x86_64-linux-gnu", "/usr/lib"];
            let roots = variable("ROCM_PATH").into_iter().chain(fixed.map(PathBuf::from));
            roots.map(|root| root.join("amdgcn/bitcode")).collect()
        }
    };
    places.iter().find(|folder| folder.join("ockl.bc").is_file()).cloned().ok_or_else(|| {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        Diagnostic::error("ROCm's device library was not found")
            .note(format!("looked for ockl.bc in {}", places.join(", ")))
            .help(format!(
                "install the package rocm-device-libs, or set {VARIABLE} to its folder; the emulator prints without it"
            ))
            .into()
    })
}

/// A folder in ROCm's layout that holds what MLIR's back end takes from a ROCm installation: the linker for code
/// objects, and the device library for kernels that print.
pub(super) fn toolkit(lld: Option<&Path>, library: Option<&Path>) -> Result<tempfile::TempDir, Error> {
    let directory = tempfile::tempdir().map_err(|e| io_error("a temporary directory for LLVM's AMD tools", &e))?;
    for (tool, folder, name) in [(lld, "llvm/bin", "ld.lld"), (library, "amdgcn", "bitcode")] {
        let Some(tool) = tool else { continue };
        let folder = directory.path().join(folder);
        std::fs::create_dir_all(&folder).map_err(|e| io_error("a folder for LLVM's AMD tools", &e))?;
        link(tool, &folder.join(name)).map_err(|e| io_error(&format!("a link to {}", tool.display()), &e))?;
    }
    Ok(directory)
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(std::path::absolute(from)?, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.is_file() {
        return std::fs::copy(from, to).map(|_| ());
    }
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_ptxas_is_read() {
        let text = "ptxas info    : Function properties for k\n    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n\
                    ptxas info    : Used 40 registers, used 1 barriers\nptxas info    : (C7510) Potential Performance Loss: wgmma serialized\n";
        let log = PtxasLog::parse(text.to_owned());
        assert_eq!((log.registers, log.stack_bytes, log.spill_store_bytes, log.spill_load_bytes), (40, 8, 12, 16));
        assert_eq!(log.warnings.len(), 1);
        let complaints = log.complaints();
        assert!(complaints[0].contains("(C7510)") && complaints[1].contains("stores 12 bytes and loads 16"));
        assert_eq!(PtxasLog::default().complaints(), [""; 0]);
    }

    #[test]
    fn a_missing_tool_names_itself() {
        let options = EmitOptions { ptxas: Some("/nowhere/ptxas".into()), ..EmitOptions::default() };
        let error = assemble("", Target::SM_80, &options).unwrap_err().to_string();
        assert!(error.contains("/nowhere/ptxas"), "{error}");
    }
}
