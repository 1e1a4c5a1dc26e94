//! `lacewing doctor`: what is found on this machine, and what to do about what is not.

use std::path::{Path, PathBuf};
use std::process::Command;

use lacewing_core::lower;
use lacewing_runtime::cuda;
use serde_json::json;

use super::failure::Failure;
use super::{Io, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write JSON: an array of {"name", "found", "needed", "detail", "hint"}
    #[arg(long)]
    json: bool,
}

/// One thing that was looked for.
struct Finding {
    name: &'static str,
    found: bool,
    /// Whether nothing works without it.
    needed: bool,
    /// What was found, or where it was looked for.
    detail: String,
    /// What it is for and how to get it.
    hint: &'static str,
}

pub(crate) fn doctor(arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    let findings = [mlir(), emulator(), ptxas(), lld(), device_library(), cuda_driver(), nvidia_gpus(), amd_gpus()];
    if arguments.json {
        let list: Vec<_> = findings
            .iter()
            .map(|Finding { name, found, needed, detail, hint }| {
                json!({"name": name, "found": found, "needed": needed, "detail": detail, "hint": hint})
            })
            .collect();
        write_json(io, &json!(list))?;
    } else {
        let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
        for Finding { name, found, detail, hint, .. } in &findings {
            let mark = if *found { "found  " } else { "missing" };
            writeln!(io.out, "{mark}  {name:width$}  {detail}")?;
            if !found {
                writeln!(io.out, "         {:width$}  {hint}", "")?;
            }
        }
    }
    match findings.iter().find(|finding| finding.needed && !finding.found) {
        Some(finding) => Err(Failure::failed(format!("{} is missing: {}", finding.name, finding.hint))),
        None => Ok(()),
    }
}

fn mlir() -> Finding {
    let context = lacewing_core::mlir::IrContext::new();
    Finding {
        name: "LLVM and MLIR",
        found: context.is_ok(),
        needed: true,
        detail: match &context {
            Ok(_) => "version 22, linked into this program".to_owned(),
            Err(error) => error.to_string(),
        },
        hint: "the dialects do not load: build the program again against LLVM 22 (`cargo xtask setup`)",
    }
}

fn emulator() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Finding {
        name: "emulator",
        found: true,
        needed: true,
        detail: format!("part of this program; {cores} cores for it"),
        hint: "",
    }
}

fn ptxas() -> Finding {
    tool("ptxas", lower::find_ptxas(None), "release", "makes `--emit cubin`; `cargo xtask setup` fetches it")
}

fn lld() -> Finding {
    tool("ld.lld", lower::find_lld(None), "LLD", "makes `--emit hsaco`; it comes with the package lld-22")
}

fn device_library() -> Finding {
    let found = lower::find_device_library(None);
    Finding {
        name: "ROCm device library",
        found: found.is_ok(),
        needed: false,
        detail: match &found {
            Ok(folder) => folder.display().to_string(),
            Err(error) => error.diagnostics.iter().flat_map(|d| d.notes.iter()).map(String::as_str).collect(),
        },
        hint: "needed to compile `printf!` for AMD, and for nothing else: it comes with the package rocm-device-libs",
    }
}

/// A program that the compiler looks for; `word` is in the line of `--version` that counts.
fn tool(name: &'static str, found: Result<PathBuf, lacewing_core::Error>, word: &str, hint: &'static str) -> Finding {
    // An environment variable may name a file that is not there.
    let (found, detail) = match found {
        Ok(path) if path.is_file() => (true, format!("{} ({})", path.display(), version(&path, word))),
        Ok(path) => (false, format!("{} is no file", path.display())),
        Err(error) => {
            let looked = error.diagnostics.iter().flat_map(|d| d.notes.iter());
            (false, looked.map(String::as_str).collect::<Vec<_>>().join("; "))
        }
    };
    Finding { name, found, needed: false, detail, hint }
}

fn cuda_driver() -> Finding {
    let driver = cuda::driver();
    Finding {
        name: "CUDA driver",
        found: driver.is_ok(),
        needed: false,
        detail: match &driver {
            Ok(driver) => format!("for CUDA {driver}"),
            Err(error) => first_line(&error.to_string()),
        },
        hint: "needed by `--device cuda:N` alone: it comes with NVIDIA's driver for the GPU",
    }
}

fn nvidia_gpus() -> Finding {
    // Without a driver its own finding says why there is none.
    let gpus = cuda::driver().and_then(cuda::Driver::gpus).unwrap_or_default();
    let names: Vec<String> = gpus
        .iter()
        .map(|gpu| {
            let (major, minor) = gpu.capability;
            let target = gpu.target().map_or("too old".to_owned(), |target| format!("runs {target}"));
            let memory = gpu.memory_bytes >> 30;
            format!("cuda:{} {} (compute capability {major}.{minor}, {memory} GiB, {target})", gpu.ordinal, gpu.name)
        })
        .collect();
    Finding {
        name: "NVIDIA GPUs",
        found: !names.is_empty(),
        needed: false,
        detail: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        hint: "none is needed: the emulator runs every kernel",
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

fn amd_gpus() -> Finding {
    // Every compute node of the kernel driver; those with a gfx version of 0 are CPUs.
    let versions = std::fs::read_dir("/sys/class/kfd/kfd/topology/nodes").into_iter().flatten().flatten();
    let names: Vec<String> = versions
        .filter_map(|node| {
            let text = std::fs::read_to_string(node.path().join("properties")).ok()?;
            let version = text.lines().find_map(|line| line.strip_prefix("gfx_target_version "))?;
            let version: u32 = version.trim().parse().ok().filter(|version| *version != 0)?;
            Some(format!("gfx{:x}{:x}{:x}", version / 10_000, version / 100 % 100, version % 100))
        })
        .collect();
    Finding {
        name: "AMD GPUs",
        found: !names.is_empty(),
        needed: false,
        detail: if names.is_empty() { "none".to_owned() } else { names.join(", ") },
        hint: "none is needed: the emulator runs every kernel",
    }
}

/// The line of `--version` that has this word in it.
fn version(program: &Path, word: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().find(|line| line.contains(word)).unwrap_or("it does not say its version").trim().to_owned()
}
