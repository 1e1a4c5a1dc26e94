//! `cargo xtask demo`: from a bare machine to attention on a real model's inputs.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::process::{self, Context, Error, Workspace};
use crate::setup;
use crate::tensors;

const INPUTS: &str = "data/smollm2_l15.safetensors";
const FOLDER: &str = "target/demo";

/// Where the demo leaves what it makes.
struct Files {
    output: String,
    trace: String,
    ptx: String,
}

/// Sets up, builds, runs the kernel on the emulator, compiles it to PTX, and says what came out.
pub fn run(workspace: &Workspace, options: &setup::Options) -> Result<(), Error> {
    let start = Instant::now();
    let options = setup::Options { ptxas_is_optional: true, ..options.clone() };
    let workspace = &setup::run(workspace, &options)?;
    let files = Files {
        output: format!("{FOLDER}/out.safetensors"),
        trace: format!("{FOLDER}/fmha_fwd.mlir"),
        ptx: format!("{FOLDER}/fmha_fwd.sm_80.ptx"),
    };
    let folder = workspace.root().join(FOLDER);
    fs::create_dir_all(&folder).cannot(format_args!("make {}", folder.display()))?;
    // What an earlier run left must not pass for the result of this one.
    for file in [&files.output, &files.trace, &files.ptx] {
        let file = workspace.root().join(file);
        if file.exists() {
            fs::remove_file(&file).cannot(format_args!("remove {}", file.display()))?;
        }
    }
    process::run(&mut workspace.cargo(["build", "--package", "lacewing", "--bin", "lacewing"]))?;
    lacewing(
        workspace,
        &[
            "run",
            "fmha_fwd",
            "--device",
            "emulator",
            "--inputs",
            INPUTS,
            "--set",
            "causal=true",
            "--check",
            "--output",
            &files.output,
        ],
    )?;
    compile(workspace, "trace", &files.trace)?;
    compile(workspace, "ptx", &files.ptx)?;
    report(workspace, &files, start)
}

fn compile(workspace: &Workspace, emit: &str, file: &str) -> Result<(), Error> {
    let settings = ["--set", "head_dim=64", "--set", "causal=true"];
    let mut args = vec!["compile", "fmha_fwd", "--target", "sm_80"];
    args.extend(settings);
    args.extend(["--emit", emit, "-o", file]);
    lacewing(workspace, &args)
}

/// Runs the command line as a user would type it.
fn lacewing(workspace: &Workspace, args: &[&str]) -> Result<(), Error> {
    eprintln!("$ lacewing {}", args.join(" "));
    let mut command = workspace.cargo(["run", "--quiet", "--package", "lacewing", "--"]);
    process::run_silently(command.args(args))
}

fn report(workspace: &Workspace, files: &Files, start: Instant) -> Result<(), Error> {
    let differ = |name: &str| -> Result<f32, Error> {
        let found = tensors::read(&workspace.root().join(&files.output), name)?;
        let exact = tensors::read(&workspace.root().join(INPUTS), name)?;
        tensors::largest_difference(&found, &exact)
            .map_err(|error| Error::new(format!("{name} in {}: {error}", files.output)))
    };
    let (output, lse) = (differ("o")?, differ("lse")?);
    let size = |file: &String| lines(&workspace.root().join(file));
    println!(
        "
Attention of layer 15 of SmolLM2-135M (9 query heads on 3 KV heads, 106 tokens, causal, f16)
ran on the emulator. Against the exact result that {INPUTS} carries:

  largest error of O    {output:.2e}
  largest error of LSE  {lse:.2e}

  result        {}
  traced IR     {} ({} lines of MLIR)
  PTX for sm_80 {} ({} lines)

Done in {:.0} s. To go on: break an index in kernels/ and see the emulator name the line, or

  cargo run -- run fmha_fwd --device emulator:gfx942 --inputs data/minilm_l5.safetensors \\
      --set causal=false --check --output {FOLDER}/minilm.safetensors",
        files.output,
        files.trace,
        size(&files.trace)?,
        files.ptx,
        size(&files.ptx)?,
        start.elapsed().as_secs_f32(),
    );
    Ok(())
}

fn lines(file: &Path) -> Result<usize, Error> {
    let text = fs::read_to_string(file).cannot(format_args!("read {}", file.display()))?;
    if text.is_empty() {
        return Err(Error::new(format!("{} is empty", file.display())));
    }
    Ok(text.lines().count())
}
