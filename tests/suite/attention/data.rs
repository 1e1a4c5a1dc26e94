//! Q, K and V of real models on text, with the exact answers in the files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lacewing::cli::{Io, files, run};
use lacewing::core::ScalarType;
use lacewing::kernels::ENTRIES;
use lacewing::runtime::Tensors;

use super::*;

const FILES: [(&str, bool); 4] =
    [("smollm2_l0", true), ("smollm2_l15", true), ("minilm_l0", false), ("minilm_l5", false)];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(format!("{name}.safetensors"))
}

fn case_of(tensors: &Tensors, causal: bool) -> Case {
    let [batch, heads_q, seqlen_q, head_dim] = tensors["q"].shape_of().unwrap();
    let [_, heads_kv, seqlen_kv, _] = tensors["k"].shape_of().unwrap();
    let lengths = tensors.get("kv_len").map(|lengths| lengths.to_vec::<i32>().unwrap());
    let kv_len = lengths.map(|lengths| lengths.into_iter().map(|x| x as usize).collect());
    Case { batch, heads_q, kv_len, causal, ..Case::new(seqlen_q, seqlen_kv, head_dim) }.heads(heads_q, heads_kv)
}

#[test]
fn real_inputs_through_the_library() {
    for (name, causal) in FILES {
        let tensors = files::read(&path(name)).unwrap();
        let case = case_of(&tensors, causal);
        let inputs = Inputs { q: tensors["q"].clone(), k: tensors["k"].clone(), v: tensors["v"].clone() };
        // The answers come from the file, the tolerance from the host's own.
        let given = |name: &str| tensors[name].to_f64().unwrap();
        let exact = Output { o: given("o"), lse: given("lse") };
        for target in TARGETS {
            let device = Device::emulator(target).unwrap();
            let wanted = Wanted { exact: exact.clone(), ..case.wanted(&inputs, Precision::F16) };
            wanted.compare(&case.forward::<F16>(&device, &inputs), &format!("fmha_fwd on {name}, {target}"));
        }
        // The oracle takes a block for each row: the smaller files are enough.
        if causal {
            let device = Device::emulator(Target::SM_80).unwrap();
            let wanted = Wanted { exact, ..case.wanted(&inputs, Precision::F16) };
            wanted.compare(&case.oracle::<F16>(&device, &inputs), &format!("fmha_ref on {name}"));
        }
    }
}

#[test]
fn real_inputs_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, causal) in FILES {
        let given = files::read(&path(name)).unwrap();
        for target in TARGETS {
            let output = folder.path().join(format!("{name}_{target}.safetensors"));
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let device = format!("emulator:{target}");
            let causal = format!("causal={causal}");
            let arguments = ["lacewing", "run", "fmha_fwd", "--device", &device, "--set", &causal, "--check"];
            let arguments = arguments.into_iter().map(OsString::from).chain([
                "--inputs".into(),
                path(name).into(),
                "--output".into(),
                output.clone().into(),
            ]);
            let status = run(ENTRIES, arguments, &mut Io { out: &mut out, err: &mut err });
            let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
            assert_eq!(status, 0, "{name} on {target}: {out}{err}");
            assert!(out.contains("(the file)"), "{out}");

            let written = files::read(&output).unwrap();
            assert_eq!(written.keys().collect::<Vec<_>>(), ["lse", "o"]);
            for name in ["o", "lse"] {
                assert_eq!(written[name].scalar(), ScalarType::F32);
                assert_eq!(written[name].shape(), given[name].shape());
            }
        }
    }
}
