//! Kernels that are compiled ahead of time, and the programs that launch them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lacewing::core::lower::{EmitOptions, find_ptxas};
use lacewing::prelude::*;
use lacewing::runtime::artifact::{Form, Module, compile, encode};
use lacewing::runtime::registry::{KernelEntry, Settings};

use crate::cuda::lacewing;

/// The parameters of `axpy`.
type Axpy = (F32, Tensor<F32, 1>, TensorMut<F32, 1>);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn axpy() -> &'static KernelEntry {
    lacewing::kernels::ENTRIES.iter().find(|entry| entry.name == "axpy").unwrap()
}

/// The lines of PTX that the version of LLVM and debug information do not change.
fn code_of(ptx: &[u8]) -> Vec<&str> {
    let text = std::str::from_utf8(ptx).unwrap();
    text.lines().filter(|line| !line.starts_with("//") && !line.trim().is_empty()).collect()
}

#[test]
fn the_committed_artifact_is_what_the_compiler_makes() {
    let committed = lacewing::artifact!("../../examples/axpy.lwa").unwrap();
    let settings = Settings::defaults(axpy().parameters);
    let targets = [Target::SM_80, Target::SM_90A, Target::SM_100A];
    assert_eq!(committed.metas().map(|meta| meta.target).collect::<Vec<_>>(), targets);
    for (target, meta) in targets.into_iter().zip(committed.metas()) {
        let kernel = axpy().build_for(&settings, target).unwrap();
        let (made, _) = compile(&*kernel, target, &EmitOptions::default()).unwrap();
        assert_eq!(made.meta, *meta);
        let ptx = committed.image("axpy", target, Form::Ptx).unwrap();
        assert_eq!(
            code_of(ptx),
            code_of(&made.ptx.unwrap()),
            "examples/axpy.lwa is of an older compiler; examples/deploy.rs says how to make it"
        );
        assert!(committed.image("axpy", target, Form::Code).unwrap().starts_with(b"\x7fELF"));
    }
    assert_eq!(committed.settings("axpy")[0], ("dtype".to_owned(), "f32".to_owned()));
}

#[test]
fn the_command_writes_what_a_program_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("axpy.lwa");
    let file = path.to_str().unwrap();
    let (status, out, err) = lacewing(&[
        "compile",
        "axpy",
        "--target",
        "sm_90a",
        "--target",
        "gfx942",
        "--set",
        "dtype=bf16",
        "--emit",
        "artifact",
        "-o",
        file,
    ]);
    assert_eq!((status, out.as_str()), (0, ""), "{err}");
    let module = Module::from_file(&path).unwrap();
    assert_eq!(format!("{module:?}"), r#"["axpy for sm_90a", "axpy for gfx942"]"#);
    assert!(module.kernel::<(BF16, Tensor<BF16, 1>, TensorMut<BF16, 1>)>("axpy").is_ok());
    assert_eq!(module.settings("axpy")[0], ("dtype".to_owned(), "bf16".to_owned()));
    assert!(module.image("axpy", Target::GFX942, Form::Code).unwrap().starts_with(b"\x7fELF"));
    let with_code = module.image("axpy", Target::SM_90A, Form::Code).is_some();
    assert_eq!(with_code, find_ptxas(None).is_ok());
    assert_eq!(err.contains("no ptxas is found"), !with_code, "{err}");

    // What is written over it is found, and the file is named.
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let text = Module::from_file(&path).unwrap_err().to_string();
    assert!(text.starts_with(file) && text.contains("the artifact is damaged"), "{text}");
}

#[test]
fn mistakes_on_the_command_line_are_refused_before_any_work() {
    let several = ["compile", "axpy", "--target", "sm_80", "--target", "sm_90a"];
    let (status, _, err) = lacewing(&several);
    assert_eq!((status, err.as_str()), (2, "error: only `--emit artifact` and `--emit report` take several targets\n"));
    let (status, _, err) =
        lacewing(&["compile", "axpy", "--target", "sm_80", "--target", "sm_80", "--emit", "artifact"]);
    assert_eq!(status, 2);
    assert!(err.contains("kernel `axpy` is there twice for sm_80"), "{err}");
    let (status, _, err) = lacewing(&["compile", "axpy", "--target", "sm_80", "--deny-warnings"]);
    assert_eq!(status, 2);
    assert!(err.contains("is about machine code by ptxas"), "{err}");
}

/// A kernel that wants more registers than it allows itself.
#[kernel(block = [32, 1, 1], max_regs = 24)]
fn greedy(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let lane = thread_id(X);
    let mut held = [F32::from(0.0); 64];
    for i in range_constexpr(64) {
        held[i] = x.at(lane + 32 * (i as i32)).load();
    }
    barrier();
    let mut sum = F32::from(0.0);
    for i in range_constexpr(64) {
        sum = held[63 - i].fma(sum, held[i]);
    }
    y.at(lane).store(sum);
}

#[test]
fn spills_are_errors_where_warnings_are_denied() {
    if find_ptxas(None).is_err() {
        assert!(std::env::var_os("LACEWING_REQUIRE_PTXAS").is_none(), "no ptxas");
        eprintln!("skipped: no ptxas");
        return;
    }
    let options = EmitOptions::default();
    let (variant, log) = compile(&greedy::new(), Target::SM_80, &options).unwrap();
    assert!(variant.code.is_some() && log.unwrap().spill_store_bytes > 0);
    let denied = EmitOptions { deny_warnings: true, ..options };
    let text = compile(&greedy::new(), Target::SM_80, &denied).unwrap_err().to_string();
    assert!(text.contains("the machine code for sm_80 is slower than it should be"), "{text}");
    assert!(text.contains("registers spill to memory: a thread stores"), "{text}");
}

#[test]
fn an_artifact_of_a_users_own_kernel() {
    let (variant, _) = compile(&greedy::new(), Target::SM_80, &EmitOptions::default()).unwrap();
    let module = Module::from_artifact(encode(&[variant]).unwrap()).unwrap();
    module.kernel::<(Tensor<F32, 1>, TensorMut<F32, 1>)>("greedy").unwrap();
    let text = module.kernel::<Axpy>("greedy").unwrap_err().to_string();
    assert_eq!(
        text,
        "kernel `greedy` of the artifact takes (x: Tensor<F32, 1>, y: TensorMut<F32, 1>), and is asked for with (F32, \
         Tensor<F32, 1>, TensorMut<F32, 1>)"
    );
}

#[test]
fn the_artifact_launches_as_the_kernel_does() {
    let Some(device) = crate::cuda::gpu() else { return };
    let module = lacewing::artifact!("../../examples/axpy.lwa").unwrap();
    let kernel = module.kernel::<Axpy>("axpy").unwrap();
    let x = device.tensor_from_slice(&[1.0f32, 2.0, 3.0], [3]).unwrap();
    let mut y = device.tensor_from_slice(&[10.0f32, 20.0, 30.0], [3]).unwrap();
    let prepared = kernel.grid([1, 1, 1]).prepare(&device).unwrap();
    prepared.launch((2.0f32, &x, &mut y)).unwrap();
    kernel.grid([1, 1, 1]).launch(&device, (1.0f32, &x, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [13.0, 26.0, 39.0]);
    let text = kernel.grid([1, 1, 1]).launch(&device, (1.0f32, &y.slice(0, 0..3).unwrap(), &mut y)).unwrap_err();
    assert!(text.to_string().contains("shares memory with"), "{text}");
}

/// Runs cargo on the workspace without a network: all that it needs is there when tests run.
fn cargo(arguments: &[&str], folder: &Path) -> Output {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    Command::new(cargo).args(arguments).current_dir(folder).env_remove("CARGO_TARGET_DIR").output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_deployed_program_depends_on_no_compiler() {
    let tree = |features: &[&str]| {
        let fixed = ["tree", "--offline", "--package", "lacewing", "--edges", "normal,build", "--prefix", "none"];
        let output = cargo(&[&fixed[..], features].concat(), root());
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let has = |tree: &str, package: &str| tree.lines().any(|line| line.split(' ').next() == Some(package));
    let (whole, deployed) = (tree(&[]), tree(&["--no-default-features", "--features", "aot"]));
    for compiler in ["melior", "mlir-sys", "tblgen", "bindgen", "lacewing-macros", "lacewing-kernels", "rayon", "clap"]
    {
        assert!(has(&whole, compiler), "{compiler} is gone from the whole tree: this test shows nothing");
        assert!(!has(&deployed, compiler), "{compiler} is in a program that deploys:\n{deployed}");
    }
    assert!(has(&deployed, "lacewing-runtime") && has(&deployed, "cudarc"));
}

/// What a program that is shipped may weigh, stripped.
const LARGEST: u64 = 5_000_000;

#[test]
fn a_deployed_program_is_small_and_says_what_is_missing() {
    // The example as a package of its own, as a user has it: then cargo builds none of our development dependencies.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deployed");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"deployed\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         lacewing = {{ path = {:?}, default-features = false, features = [\"aot\"] }}\n\n[profile.release]\nstrip = true\n",
        root()
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    for (from, to) in [("Cargo.lock", "Cargo.lock"), ("examples/deploy.rs", "src/main.rs")] {
        std::fs::copy(root().join(from), folder.join(to)).unwrap();
    }
    std::fs::copy(root().join("examples/axpy.lwa"), folder.join("src/axpy.lwa")).unwrap();
    let built = cargo(&["build", "--release", "--offline", "--target-dir", "target"], &folder);
    assert!(built.status.success(), "{}", text(&built));
    let program = folder.join("target/release/deployed");
    let size = std::fs::metadata(&program).unwrap().len();
    assert!(size < LARGEST, "the program has {size} bytes");

    let run = |arguments: &[&str]| Command::new(&program).args(arguments).output().unwrap();
    let emulated = run(&["emulator"]);
    assert_eq!(emulated.status.code(), Some(1));
    assert!(text(&emulated).contains("this program has no emulator"), "{}", text(&emulated));
    let launched = run(&[]);
    match Device::cuda(0) {
        Ok(_) => assert_eq!(text(&launched), "axpy on cuda:0: 10000 elements, 0 wrong\n"),
        Err(_) => {
            assert_eq!(launched.status.code(), Some(1));
            let text = text(&launched);
            assert!(text.starts_with("error: there is") && text.contains("holds compiled kernels alone"), "{text}");
        }
    }
}

/// The header and the program of the book, for other languages.
#[test]
fn a_program_in_c_reads_the_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let program: PathBuf = folder.path().join("deploy");
    let compiled = Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
            "dsl-runtime/include",
            "examples/deploy.c",
            "-ldl",
            "-o",
        ])
        .arg(&program)
        .current_dir(root())
        .output();
    // Rust's own linking goes through `cc`, so it is there.
    let compiled = compiled.unwrap();
    assert!(compiled.status.success(), "{}", text(&compiled));
    let run = |artifact: &Path, arguments: &[&str]| {
        let output = Command::new(&program).arg(artifact).args(arguments).output().unwrap();
        (output.status.code(), text(&output))
    };
    let artifact = root().join("examples/axpy.lwa");
    let (status, listed) = run(&artifact, &["--list"]);
    assert_eq!(status, Some(0), "{listed}");
    let wanted = "axpy for sm_90a: block 256 x 1 x 1, 0 bytes shared, PTX ";
    assert!(listed.contains(wanted) && listed.contains("  y: kind 2, element 11, rank 1\n"), "{listed}");

    let (status, said) = run(&artifact, &[]);
    match Device::cuda(0) {
        Ok(_) => assert_eq!((status, said.as_str()), (Some(0), "axpy by C: 10000 elements, 0 wrong\n")),
        Err(_) => assert!(status == Some(1) && said.starts_with("error: "), "{said}"),
    }
    let bytes = std::fs::read(&artifact).unwrap();
    let cut = folder.path().join("cut.lwa");
    std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
    let (status, said) = run(&cut, &["--list"]);
    assert!(status == Some(2) && said.contains("the artifact is truncated"), "{said}");
}
