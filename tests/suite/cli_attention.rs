//! The contract of `lacewing run` for attention, with a kernel that is computed on the host: what
//! is tested here are files, settings, checks and exit statuses, not a kernel.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lacewing::cli::{Io, files, run};
use lacewing::core::{ScalarType, Target};
use lacewing::kernels::attention::{AttentionInputs, AttentionOutputs, AttentionRunner};
use lacewing::kernels::reference::{Attention, Precision, attention, attention_low};
use lacewing::runtime::host::Random;
use lacewing::runtime::registry::{KernelEntry, Parameter, Settings};
use lacewing::runtime::{Device, Error, HostTensor, Tensors};

static RUNNER: AttentionRunner = AttentionRunner { forward: on_host };

static HOST_ATTENTION: KernelEntry = KernelEntry {
    name: "host_attention",
    about: "attention on the host, in the kernel's precision",
    targets: &[Target::SM_80, Target::GFX942],
    parameters: &[
        Parameter::usize("head_dim", 64, "elements of a query"),
        Parameter::bool("causal", false, "whether a query sees only keys up to its own"),
        Parameter::choice("dtype", &["f16", "bf16"], "f16", "element type"),
        Parameter::bool("wrong", false, "break one element"),
    ],
    build: |_, _| Err(Error::Setting("`host_attention` is no kernel".to_owned())),
    runner: Some(&RUNNER),
};

fn on_host(_device: &Device, settings: &Settings, inputs: &AttentionInputs) -> Result<AttentionOutputs, Error> {
    let numbers = |tensor: &HostTensor| -> Result<Vec<f32>, Error> {
        Ok(tensor.to_f64()?.into_iter().map(|x| x as f32).collect())
    };
    let (q, k, v) = (numbers(&inputs.q)?, numbers(&inputs.k)?, numbers(&inputs.v)?);
    let kv_len: Option<Vec<usize>> =
        inputs.kv_len.as_ref().map(|lengths| lengths.iter().map(|x| *x as usize).collect());
    let problem = Attention {
        shape: inputs.shape,
        q: &q,
        k: &k,
        v: &v,
        kv_len: kv_len.as_deref(),
        causal: inputs.causal,
        scale: f64::from(inputs.scale),
    };
    let precision = if inputs.q.scalar() == ScalarType::F16 { Precision::F16 } else { Precision::Bf16 };
    let mut output = attention_low(&problem, precision)?;
    // The low-precision LSE comes from rounded scores; a kernel's does not.
    output.lse = attention(&problem)?.lse;
    if settings.bool("wrong")?
        && let Some(first) = output.o.first_mut()
    {
        *first += 0.5;
    }
    let o = HostTensor::from_f64(inputs.q.scalar(), &inputs.shape.q(), &output.o)?;
    let lse = HostTensor::from_f64(ScalarType::F32, &inputs.shape.lse(), &output.lse)?;
    Ok(AttentionOutputs { o, lse })
}

struct Outcome {
    status: u8,
    out: String,
    err: String,
}

fn lacewing(arguments: &[&str]) -> Outcome {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["lacewing"].iter().chain(arguments).map(OsString::from);
    let status = run(&[&HOST_ATTENTION], arguments, &mut Io { out: &mut out, err: &mut err });
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Outcome { status, out: text(out), err: text(err) }
}

/// A folder with an input file, and the name of an output file in it.
struct Files {
    folder: tempfile::TempDir,
    input: PathBuf,
    output: PathBuf,
}

impl Files {
    fn new(tensors: &Tensors) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (input, output) = (folder.path().join("in.safetensors"), folder.path().join("out.safetensors"));
        files::write(&input, tensors).unwrap();
        Files { folder, input, output }
    }

    fn run(&self, more: &[&str]) -> Outcome {
        let (input, output) = (self.input.to_str().unwrap(), self.output.to_str().unwrap());
        let mut arguments = vec!["run", "host_attention", "--inputs", input, "--output", output];
        arguments.extend(more);
        lacewing(&arguments)
    }

    /// A run that must be refused: status 2, the reason, and nothing written.
    fn refused(&self, more: &[&str], reason: &str) {
        let outcome = self.run(more);
        assert_eq!(outcome.status, 2, "{}", outcome.err);
        assert!(outcome.err.starts_with("error: ") && outcome.err.contains(reason), "{}", outcome.err);
        assert_eq!(outcome.out, "");
        assert_eq!(fs::read_dir(self.folder.path()).unwrap().count(), 1, "something was written");
    }
}

/// Two sequences, 4 query heads on 2, 5 queries, 7 keys, D 8.
fn inputs(scalar: ScalarType) -> Tensors {
    let mut random = Random::new(3);
    let mut tensors = Tensors::new();
    for (name, shape) in [("q", [2, 4, 5, 8]), ("k", [2, 2, 7, 8]), ("v", [2, 2, 7, 8])] {
        tensors.insert(name.into(), random.tensor(scalar, &shape, 1.0).unwrap());
    }
    tensors
}

fn with(mut tensors: Tensors, name: &str, tensor: HostTensor) -> Tensors {
    tensors.insert(name.into(), tensor);
    tensors
}

fn lengths(lengths: &[i32]) -> HostTensor {
    HostTensor::new(lengths, &[lengths.len()]).unwrap()
}

#[test]
fn a_file_is_run_checked_and_written_in_f32() {
    for scalar in [ScalarType::F16, ScalarType::Bf16] {
        let files = Files::new(&with(inputs(scalar), "kv_len", lengths(&[7, 0])));
        let outcome = files.run(&["--set", "causal=true", "--check"]);
        assert_eq!((outcome.status, outcome.err.as_str()), (0, ""), "{}", outcome.out);
        assert!(outcome.out.contains("check o: holds") && outcome.out.contains("check lse: holds"), "{}", outcome.out);
        let output = files::read(&files.output).unwrap();
        assert_eq!(output.keys().collect::<Vec<_>>(), ["lse", "o"]);
        assert_eq!((output["o"].scalar(), output["o"].shape()), (ScalarType::F32, &[2, 4, 5, 8][..]));
        assert_eq!((output["lse"].scalar(), output["lse"].shape()), (ScalarType::F32, &[2, 4, 5][..]));
        // The second sequence has no key: O = 0, LSE = -inf.
        assert!(output["o"].to_vec::<f32>().unwrap()[160..].iter().all(|x| *x == 0.0));
        assert!(output["lse"].to_vec::<f32>().unwrap()[20..].iter().all(|x| *x == f32::NEG_INFINITY));
    }
}

#[test]
fn f32_inputs_are_rounded_with_a_notice() {
    let files = Files::new(&inputs(ScalarType::F32));
    let outcome = files.run(&["--set", "dtype=bf16", "--check"]);
    assert_eq!(outcome.status, 0, "{}{}", outcome.out, outcome.err);
    assert_eq!(outcome.err, "note: q, k and v are f32 and were rounded to bf16, the kernel's element type\n");
}

#[test]
fn the_answer_of_the_file_is_compared_with() {
    let files = Files::new(&inputs(ScalarType::F16));
    assert_eq!(files.run(&[]).status, 0);
    let mut tensors = inputs(ScalarType::F16);
    tensors.extend(files::read(&files.output).unwrap());
    let files = Files::new(&tensors);
    let outcome = files.run(&["--check", "--json"]);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let json: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(json["held"], true);
    assert_eq!(json["checks"][0]["against"], "the file");
    assert_eq!(json["settings"]["head_dim"], 8);

    // One wrong number in the file must not pass, nor widen its own tolerance.
    for (wrong, text) in [(0.5, "got"), (f32::NAN, "error NaN")] {
        let mut o = tensors["o"].to_vec::<f32>().unwrap();
        o[17] += wrong;
        let files = Files::new(&with(tensors.clone(), "o", HostTensor::new(&o, &[2, 4, 5, 8]).unwrap()));
        let outcome = files.run(&["--check"]);
        assert_eq!(outcome.status, 1, "{}", outcome.out);
        assert!(outcome.out.contains("check o: FAILS") && outcome.out.contains(text), "{}", outcome.out);
        assert!(outcome.out.contains("worst at [0, 0, 2, 1]"), "{}", outcome.out);
        assert!(!files.output.exists());
    }
}

#[test]
fn a_wrong_kernel_fails_the_check() {
    let files = Files::new(&inputs(ScalarType::F16));
    let outcome = files.run(&["--check", "--set", "wrong=true"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.err.contains("outside its tolerance; the output was not written"), "{}", outcome.err);
    assert!(!files.output.exists());
    // Without `--check` nobody asked.
    assert_eq!(files.run(&["--set", "wrong=true"]).status, 0);
    assert!(files.output.exists());
}

#[test]
fn bad_tensors_are_refused() {
    let good = || inputs(ScalarType::F16);
    let missing = |name: &str| {
        let mut tensors = good();
        tensors.remove(name);
        Files::new(&tensors)
    };
    missing("v").refused(&[], "tensor `v` is missing");
    missing("q").refused(&[], "tensors that are there: k, v");

    let float =
        |shape: &[usize]| HostTensor::from_f64(ScalarType::F16, shape, &vec![0.0; shape.iter().product()]).unwrap();
    let refuse = |name: &str, tensor: HostTensor, reason: &str| {
        Files::new(&with(good(), name, tensor)).refused(&["--check"], reason);
    };
    refuse("k", float(&[2, 2, 7]), "`k` has shape [2, 2, 7], but it must be [B, Hkv, Sk, D]");
    refuse("k", float(&[2, 2, 6, 8]), "Sk = 7, but Sk = 6 in `k`");
    refuse("k", float(&[1, 2, 7, 8]), "B = 1, but B = 2 in `q`");
    refuse("v", float(&[2, 2, 7, 16]), "D = 16, but D = 8 in `q`");
    refuse("q", float(&[2, 5, 5, 8]), "not a multiple");
    refuse("o", float(&[2, 4, 5, 4]), "D = 4, but D = 8 in `q`");
    refuse("lse", HostTensor::new(&[0.0f32; 8], &[2, 4, 1]).unwrap(), "Sq = 1, but Sq = 5 in `q`");
    refuse("q", HostTensor::new(&[0i32; 320], &[2, 4, 5, 8]).unwrap(), "`q` holds i32");
    refuse("k", inputs(ScalarType::Bf16)["k"].clone(), "they must be of one type");

    refuse("kv_len", lengths(&[7, 8]), "`kv_len` of sequence 1 is 8, and must be between 0 and Sk = 7");
    refuse("kv_len", lengths(&[-1, 7]), "`kv_len` of sequence 0 is -1");
    refuse("kv_len", lengths(&[7]), "B = 1, but B = 2 in `q`");
    refuse("kv_len", HostTensor::new(&[f32::NAN, 7.0], &[2]).unwrap(), "`kv_len` holds f32, but it must be [B] of i32");
    refuse("kv_len", HostTensor::new(&[7i64, 7], &[2]).unwrap(), "`kv_len` holds i64");
}

#[test]
fn bad_files_are_refused() {
    let files = Files::new(&inputs(ScalarType::F16));
    let whole = fs::read(&files.input).unwrap();
    for length in [0, 7, 100, whole.len() - 1] {
        fs::write(&files.input, &whole[..length]).unwrap();
        files.refused(&[], "is no valid safetensors file");
    }
    fs::write(&files.input, "not a tensor in sight").unwrap();
    files.refused(&[], "is no valid safetensors file");
    fs::write(&files.input, &whole).unwrap();
    let outcome = lacewing(&["run", "host_attention", "--inputs", "no/such/file"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.err.contains("no/such/file: cannot be read"), "{}", outcome.err);
    // A folder that does not exist is found before the kernel runs.
    let input = files.input.to_str().unwrap();
    let outcome = lacewing(&["run", "host_attention", "--inputs", input, "--output", "no/such/folder/x"]);
    assert_eq!(outcome.status, 2);
    assert!(outcome.err.contains("there is no such folder"), "{}", outcome.err);
}

#[test]
fn settings_obey_the_inputs_and_their_own_types() {
    let files = Files::new(&inputs(ScalarType::F16));
    files.refused(&["--set", "head_dim=64"], "`head_dim` is set to 64, but the inputs need 8");
    files.refused(&["--set", "dtype=bf16"], "`dtype` is set to bf16, but the inputs need f16");
    files.refused(&["--set", "causal=yes"], "`causal` takes `true` or `false`, not `yes`");
    files.refused(&["--set", "casual=true"], "did you mean `causal`?");
    files.refused(&["--set", "causal"], "`--set` takes name=value");
    files.refused(&["--device", "emulator:gfx950"], "has one for sm_80, gfx942");
    files.refused(&["--device", "emulator:gfx94"], "did you mean `gfx942`?");
    files.refused(&["--device", "tpu"], "there is no device `tpu`");
    assert_eq!(files.run(&["--set", "head_dim=8", "--device", "emulator:gfx942"]).status, 0);
}

#[test]
fn random_inputs_have_the_sizes_asked_for_and_are_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, seed: &str| {
        let path = folder.path().join(name);
        let arguments = ["run", "host_attention", "--random", seed, "--shape", "B=2,Sq=3,Sk=9,D=16"];
        let outcome = lacewing(&[&arguments[..], &["--check", "--output", path.to_str().unwrap()]].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        files::read(&path).unwrap()
    };
    let first = run("a", "1");
    assert_eq!(first["o"].shape(), [2, 4, 3, 16]);
    assert_eq!(first, run("b", "1"));
    assert_ne!(first, run("c", "2"));

    let refused = |shape: &str| lacewing(&["run", "host_attention", "--random", "1", "--shape", shape]);
    assert!(refused("sq=3").err.contains("did you mean `Sq`?"), "{}", refused("sq=3").err);
    assert!(refused("Sq=-3").err.contains("natural number"));
    assert!(refused("Hq=3").err.contains("not a multiple"));
    assert_eq!(refused("B=99999999999,Sq=99999999999").status, 2);
    assert!(refused("Sq=99999999999").err.contains("does not fit in memory"));
    assert_eq!(lacewing(&["run", "host_attention"]).status, 2);
}

#[test]
fn a_kernel_is_compiled_only_to_what_its_target_has() {
    let refused = |emit: &str, target: &str| {
        let outcome = lacewing(&["compile", "host_attention", "--target", target, "--emit", emit]);
        assert_eq!(outcome.status, 2, "{}", outcome.err);
        outcome.err
    };
    assert!(refused("ptx", "gfx942").contains("besides trace, lowered and llvm it has amdgcn and hsaco"));
    assert!(refused("hsaco", "sm_80").contains("ptx and cubin"));
    assert!(refused("ptx", "sm_81").contains("did you mean `sm_80`?"));
    assert!(refused("ptx", "sm_100a").contains("no version for sm_100a"));
    assert!(refused("elf", "sm_80").contains("possible values"));
}

/// Real inputs carry the exact answer.
#[test]
fn the_reference_agrees_with_the_exact_answers_of_real_inputs() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, causal) in [
        ("smollm2_l0", "causal=true"),
        ("smollm2_l15", "causal=true"),
        ("minilm_l0", "causal=false"),
        ("minilm_l5", "causal=false"),
    ] {
        let path = data.join(format!("{name}.safetensors"));
        let outcome =
            lacewing(&["run", "host_attention", "--inputs", path.to_str().unwrap(), "--set", causal, "--check"]);
        assert_eq!(outcome.status, 0, "{name}: {}{}", outcome.out, outcome.err);
        assert!(outcome.out.contains("(the file)"), "{}", outcome.out);
    }
}
