//! Textual tests of the lowering: `tests/filetests/*.mlir` in the root of the repository.
//!
//! A file starts with what to do and what must come out, then holds a kernel:
//!
//! ```text
//! // run: lower target=sm_80 emit=ptx
//! // check: cp.async.cg.shared.global
//! // check-not: bar.sync
//! // run: lower target=gfx942 emit=amdgcn
//! // error: does not exist on gfx942
//! gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {$attributes} { ... }
//! ```
//!
//! `check` lines are substrings of the output, in order; `check-not` ones occur nowhere; `error` lines
//! are substrings of the error that is wanted instead. `target=nvidia`, `amd` and `all` stand for several
//! targets. A file without a `module` is wrapped in one; `$attributes` are those that every kernel has
//! (128 threads, no shared memory), `$target` is the name, `$warp` the width of a warp. All PTX is given to `ptxas` as well.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::build::Ty;
use super::{Emit, EmitOptions, emit, tools};
use crate::atoms::{COPY_TABLE, CopySpec, MMA_TABLE, MatrixOp, WGMMA_TABLE};
use crate::mlir::{IrContext, IrModule};
use crate::{Target, Traced};

#[derive(Default)]
struct Run {
    targets: Vec<Target>,
    emit: Option<Emit>,
    options: EmitOptions,
    checks: Vec<String>,
    absent: Vec<String>,
    errors: Vec<String>,
}

fn parse_run(command: &str) -> Result<Run, String> {
    let mut run = Run::default();
    let mut words = command.split_whitespace();
    if words.next() != Some("lower") {
        return Err(format!("unknown command `{command}`"));
    }
    for word in words {
        match word.split_once('=') {
            Some(("target", name)) => {
                run.targets = match name {
                    "all" => Target::ALL.to_vec(),
                    "nvidia" => Target::ALL.into_iter().filter(|t| t.is_nvidia()).collect(),
                    "amd" => Target::ALL.into_iter().filter(|t| t.is_amd()).collect(),
                    _ => vec![Target::from_name(name).map_err(|e| e.to_string())?],
                }
            }
            Some(("emit", name)) => run.emit = Some(Emit::from_name(name).map_err(|e| e.to_string())?),
            Some(("opt", level)) => run.options.opt_level = level.parse().map_err(|e| format!("{word}: {e}"))?,
            _ => return Err(format!("unknown word `{word}`")),
        }
    }
    if run.targets.is_empty() { Err("a run without a target".into()) } else { Ok(run) }
}

fn parse(text: &str) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("//") else { continue };
        let Some((directive, rest)) = line.trim_start().split_once(':') else { continue };
        let rest = rest.trim().to_owned();
        let last = runs.last_mut().ok_or("a check before the first run");
        match directive {
            "run" => runs.push(parse_run(&rest)?),
            "check" => last?.checks.push(rest),
            "check-not" => last?.absent.push(rest),
            "error" => last?.errors.push(rest),
            _ => {}
        }
    }
    if runs.is_empty() { Err("no `// run:` line".into()) } else { Ok(runs) }
}

fn module_text(text: &str, target: Target) -> String {
    let attributes =
        format!("known_block_size = array<i32: 128, 1, 1>, lw.target = \"{target}\", lw.shared_bytes = 0 : i64");
    let text = text.replace("$attributes", &attributes).replace("$target", target.name());
    let text = text.replace("$warp", &target.warp_size().to_string());
    if text.contains("gpu.module") {
        return text;
    }
    format!("module attributes {{gpu.container_module}} {{ gpu.module @k {{\n{text}\n}} }}")
}

/// Runs one file; the error says all that is wrong.
fn run_filetest(context: &Rc<IrContext>, path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut wrong = String::new();
    for run in parse(&text)? {
        for &target in &run.targets {
            if let Err(message) = run_once(context, &text, &run, target) {
                let _ = writeln!(wrong, "{} on {target}: {message}", path.display());
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn run_once(context: &Rc<IrContext>, text: &str, run: &Run, target: Target) -> Result<(), String> {
    let what = run.emit.unwrap_or(if target.is_nvidia() { Emit::Ptx } else { Emit::Amdgcn });
    let module = IrModule::parse(context, &module_text(text, target)).map_err(|e| e.to_string())?;
    let traced = Traced::from_module(module).map_err(|e| e.to_string())?;
    // Said loudly once, by the test itself; an error that is wanted does not need the tool.
    let lacks_tool = match what {
        Emit::Cubin => tools::find_ptxas(None).is_err(),
        Emit::Hsaco => tools::find_lld(None).is_err(),
        _ => false,
    };
    if lacks_tool && run.errors.is_empty() {
        return Ok(());
    }
    let output = match emit(&traced, what, &run.options) {
        Ok(_) if !run.errors.is_empty() => return Err("was accepted, an error was wanted".into()),
        Ok(artifact) => String::from_utf8_lossy(artifact.as_bytes()).into_owned(),
        Err(error) => {
            let text = error.to_string();
            return match run.errors.iter().find(|wanted| !text.contains(*wanted)) {
                Some(wanted) => Err(format!("the error lacks `{wanted}`:\n{text}")),
                None if run.errors.is_empty() => Err(text),
                None => Ok(()),
            };
        }
    };
    let mut rest = output.as_str();
    for check in &run.checks {
        match rest.find(check.as_str()) {
            Some(at) => rest = rest.get(at + check.len()..).unwrap_or_default(),
            None => return Err(format!("`{check}` is missing or out of order in\n{output}")),
        }
    }
    if let Some(found) = run.absent.iter().find(|absent| output.contains(*absent)) {
        return Err(format!("`{found}` must not occur in\n{output}"));
    }
    if what == Emit::Ptx && tools::find_ptxas(None).is_ok() {
        tools::assemble(&output, target, &EmitOptions::default()).map_err(|e| format!("{e}\n{output}"))?;
    }
    Ok(())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/filetests")
}

#[test]
fn every_filetest_holds() {
    if tools::find_ptxas(None).is_err() {
        assert!(
            ["CI", "LACEWING_REQUIRE_PTXAS"].iter().all(|name| std::env::var_os(name).is_none()),
            "no ptxas: PTX would go unchecked"
        );
        eprintln!("SKIPPED in part: no ptxas, so that PTX is compared but not assembled");
    }
    if tools::find_lld(None).is_err() {
        assert!(std::env::var_os("CI").is_none(), "no ld.lld: code objects would go unchecked");
        eprintln!("SKIPPED in part: no ld.lld, so that no code object is linked");
    }
    let only = std::env::var("LACEWING_FILETEST").ok();
    let context = IrContext::new().unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "mlir"));
    paths.retain(|path| only.as_ref().is_none_or(|name| path.to_string_lossy().contains(name)));
    paths.sort();
    assert!(!paths.is_empty(), "no filetests in {}", folder().display());
    let wrong: String = paths.iter().filter_map(|path| run_filetest(&context, path).err()).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_lw_op_has_a_filetest() {
    let all: String = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok())
        .collect();
    for row in crate::dialect::TABLE {
        assert!(all.contains(&format!("\"lw.{}\"", row.name)), "no file in tests/filetests uses lw.{}", row.name);
    }
}

/// Whether a line of a filetest uses an atom of copies.
fn uses_copy(line: &str, spec: &CopySpec) -> bool {
    let (name, variant) = spec.name.split_once('.').unwrap();
    let op = match name {
        "load_shared" => "load",
        "store_shared" => "store",
        name => name,
    };
    if !line.contains(&format!("\"lw.{op}\"(")) {
        return false;
    }
    let (operands, results) = line.rsplit_once(") -> ").unwrap();
    let operands = operands.rsplit_once(": (").unwrap().1;
    let types = |text: &str| -> Vec<String> {
        let text = text.trim_matches(['(', ')']).replace("!llvm.ptr<", "ptr");
        text.split(", ").filter(|ty| !ty.is_empty()).map(str::to_owned).collect()
    };
    let (operands, results) = (types(operands), types(results));
    let bits = |ty: &String| Ty::parse(ty).is_some_and(|ty| (8 * ty.bytes()).to_string() == variant);
    let memory = if name.contains("shared") { "ptr3>" } else { "ptr1>" };
    match name {
        "ldmatrix" | "stmatrix" => {
            let count = if name == "ldmatrix" { results.len() } else { operands.len() - 1 };
            let trans = if line.contains("trans = true") { ".trans" } else { "" };
            format!("x{count}{trans}") == variant
        }
        "cp_async" | "load_lds" | "buffer_load_lds" => {
            line.contains(&format!("bytes = {} : i64", variant.parse::<usize>().unwrap() / 8))
        }
        "load" | "load_shared" => operands == [memory] && bits(&results[0]),
        "store" | "store_shared" => operands[1] == memory && bits(&operands[0]),
        "buffer_load" => bits(&results[0]),
        _ => bits(&operands[0]),
    }
}

/// Each atom of the tables is lowered by some filetest.
#[test]
fn every_atom_has_a_filetest() {
    let paths = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let all: String = paths.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut missing: Vec<String> = Vec::new();
    for spec in MMA_TABLE {
        let [m, n, k] = spec.shape;
        let found = match spec.op {
            MatrixOp::Fma => {
                all.lines().any(|line| line.contains("math.fma") && line.ends_with(&format!(": {}", spec.kind)))
            }
            _ => {
                let attributes = format!("{{m = {m} : i64, n = {n} : i64, k = {k} : i64, kind = \"{}\"", spec.kind);
                let op = format!("\"{}\"(", spec.op.name());
                all.lines().any(|line| line.contains(&op) && line.contains(&attributes))
            }
        };
        missing.extend((!found).then(|| spec.name()));
    }
    for spec in COPY_TABLE {
        missing.extend((!all.lines().any(|line| uses_copy(line, spec))).then(|| spec.name.to_owned()));
    }
    // All N of a kind are in the listing of `atom_texts`.
    for kind in WGMMA_TABLE.iter().map(|spec| spec.kind).collect::<BTreeSet<_>>() {
        let attribute = format!("kind = \"{kind}\"");
        let found = all.lines().any(|line| line.contains("\"lw.wgmma\"(") && line.contains(&attribute));
        missing.extend((!found).then(|| format!("wgmma.{kind}")));
    }
    for op in ["tma_load", "tma_store"] {
        missing.extend((!all.contains(&format!("\"lw.{op}\"("))).then(|| op.to_owned()));
    }
    assert_eq!(missing, Vec::<String>::new(), "atoms without a file in tests/filetests");
}
