//! Every bundled kernel at every stage, as it was when somebody last looked: `tests/snapshots/`.
//!
//! `KERNEL[.SETTING]@TARGET.STAGE.snap` holds the trace, the module after our own lowering, or the assembly. After
//! a change that is meant, `cargo insta test --accept --test suite -- snapshots` writes them anew; read the
//! difference before you commit it.
//!
//! A chip of a vendor that gets the same text as the vendor's first one, but for its name, has no file. All PTX is
//! assembled by `ptxas`, and all AMDGCN linked to a code object.

use std::env;

use lacewing::Target;
use lacewing::core::lower::{Emit, EmitOptions, emit, find_lld, find_ptxas};
use lacewing::kernels::ENTRIES;
use lacewing::runtime::registry::Settings;

const TEXTS: [Emit; 2] = [Emit::Trace, Emit::Lowered];

/// Whether a tool is there. Without it the test says so, or fails where it must not be missing.
fn has(tool: &str, found: bool, required: &[&str]) -> bool {
    if !found {
        let required = required.iter().find(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
        assert!(required.is_none(), "no {tool}, which {required:?} asks for: assembly would go unchecked");
        eprintln!("SKIPPED in part: no {tool}, so that assembly is compared but not assembled");
    }
    found
}

/// The text without what differs between chips that get the same code.
fn without_target(text: &str, target: Target) -> String {
    let named = text.replace(target.name(), "TARGET");
    // PTX's version is the first that knows the chip.
    named.lines().filter(|line| !line.starts_with(".version ")).collect::<Vec<_>>().join("\n")
}

/// One kernel with some settings, at all stages or as assembly only, for all its targets.
fn snapshot(kernel: &str, settings: &[(&str, &str)], stages: &[Emit]) {
    let entry = ENTRIES.iter().find(|entry| entry.name == kernel).unwrap();
    snapshot_for(entry.targets, kernel, settings, stages);
}

/// The same for some of its targets.
fn snapshot_for(targets: &[Target], kernel: &str, settings: &[(&str, &str)], stages: &[Emit]) {
    let entry = ENTRIES.iter().find(|entry| entry.name == kernel).unwrap();
    let mut values = Settings::defaults(entry.parameters);
    let mut name = kernel.to_owned();
    for (parameter, value) in settings {
        values.set(parameter, value).unwrap();
        name = format!("{name}.{parameter}={value}");
    }
    let ptxas = has("ptxas", find_ptxas(None).is_ok(), &["CI", "LACEWING_REQUIRE_PTXAS"]);
    let lld = has("ld.lld", find_lld(None).is_ok(), &["CI"]);
    let mut firsts: Vec<(bool, Emit, String)> = Vec::new();
    for &target in targets {
        let traced = entry.build_for(&values, target).unwrap().trace(target).unwrap();
        let (assembly, binary, assembler) =
            if target.is_nvidia() { (Emit::Ptx, Emit::Cubin, ptxas) } else { (Emit::Amdgcn, Emit::Hsaco, lld) };
        let options = EmitOptions::default();
        for &stage in stages.iter().chain([&assembly]) {
            let artifact = emit(&traced, stage, &options).unwrap_or_else(|e| panic!("{name} for {target}: {e}"));
            let text = artifact.text().unwrap();
            assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{name} for {target} has a path in it");
            let bare = without_target(text, target);
            if firsts.contains(&(target.is_nvidia(), stage, bare.clone())) {
                continue;
            }
            firsts.push((target.is_nvidia(), stage, bare));
            let mut insta = insta::Settings::clone_current();
            insta.set_snapshot_path("../snapshots");
            insta.set_prepend_module_to_snapshot(false);
            insta.set_omit_expression(true);
            // Messages of assertions may name a file and line.
            insta.add_filter(r"[\w./-]*/([\w-]+\.rs):\d+(:\d+)?", "$1");
            insta.bind(|| insta::assert_snapshot!(format!("{name}@{target}.{}", stage.name()), text));
        }
        if assembler {
            emit(&traced, binary, &options).unwrap_or_else(|e| panic!("{name} for {target}: {e}"));
        }
    }
}

#[test]
fn axpy() {
    snapshot("axpy", &[], &TEXTS);
    snapshot("axpy", &[("dtype", "bf16")], &[]);
}

#[test]
fn transpose() {
    snapshot("transpose", &[], &TEXTS);
    snapshot("transpose", &[("dtype", "f16")], &[]);
}

#[test]
fn softmax() {
    snapshot("softmax", &[], &TEXTS);
}

#[test]
fn rms_norm() {
    snapshot("rms_norm", &[], &TEXTS);
    snapshot("rms_norm", &[("dtype", "f16")], &[]);
}

#[test]
fn matmul() {
    snapshot("matmul", &[], &TEXTS);
    snapshot("matmul", &[("dtype", "bf16"), ("out", "same"), ("vectorized", "false")], &[]);
}

#[test]
fn matmul_fp8() {
    snapshot("matmul_fp8", &[], &TEXTS);
}

#[test]
fn fmha_fwd() {
    snapshot("fmha_fwd", &[("head_dim", "16"), ("causal", "true")], &TEXTS);
    snapshot("fmha_fwd", &[("head_dim", "64"), ("dtype", "bf16")], &[]);
    for of in [("parts", "2"), ("join", "8"), ("even", "true")] {
        let settings = [("head_dim", "64"), ("dtype", "bf16"), ("seqlen", "8"), of];
        snapshot_for(&[Target::SM_90A], "fmha_fwd", &settings, &[]);
    }
    let settings = [("head_dim", "128"), ("dtype", "bf16"), ("shared", "true")];
    snapshot_for(&[Target::SM_90A], "fmha_fwd", &settings, &[]);
}

#[test]
fn fmha_ref() {
    snapshot("fmha_ref", &[("head_dim", "16"), ("causal", "true")], &TEXTS);
}

#[test]
fn no_kernel_is_without_snapshots() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
    let names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for entry in ENTRIES {
        for (vendor, assembly) in [(Target::SM_80, "ptx"), (Target::GFX942, "amdgcn")] {
            if entry.targets.contains(&vendor) {
                for stage in ["trace", "lowered", assembly] {
                    let ending = format!("@{vendor}.{stage}.snap");
                    let found = names.iter().any(|name| name.starts_with(entry.name) && name.ends_with(&ending));
                    assert!(found, "{} has no snapshot `{ending}`", entry.name);
                }
            }
        }
    }
}
