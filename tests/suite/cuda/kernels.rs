//! The bundled kernels on a GPU: right by their references, and equal to the emulator.

use std::path::Path;

use lacewing::Target;
use lacewing::cli::files;
use lacewing::runtime::Tensors;

use super::{gpu, lacewing};

/// Kernel, settings, sizes of random inputs, and the largest difference between the two devices, in units of
/// `max(1, |x|)`. Zero where the operations are the same, one by one, on both.
#[rustfmt::skip]
const CASES: &[(&str, &[&str], &str, f64)] = &[
    ("axpy", &["dtype=f32"], "N=100003", 0.0),
    ("axpy", &["dtype=f16"], "N=1000", 0.0),
    ("axpy", &["dtype=bf16"], "N=1", 0.0),
    ("transpose", &["dtype=f32"], "R=130,C=70", 0.0),
    ("transpose", &["dtype=f16"], "R=33,C=257", 0.0),
    ("softmax", &["dtype=f32"], "R=20,C=1000", 1e-6),
    ("softmax", &["dtype=bf16"], "R=7,C=31", 4e-3),
    ("rms_norm", &["dtype=f32"], "R=20,C=1000", 1e-6),
    ("rms_norm", &["dtype=f16"], "R=7,C=4096", 1e-3),
    ("matmul", &["dtype=f16"], "M=100,N=72,K=80", 1e-4),
    ("matmul", &["dtype=bf16", "out=same"], "M=256,N=256,K=512", 8e-3),
    ("matmul", &["dtype=f16"], "M=33,N=17,K=65", 1e-4),
    ("fmha_ref", &["dtype=f32"], "B=1,Hq=2,Hkv=1,Sq=33,Sk=65,D=64", 1e-5),
    ("fmha_fwd", &["dtype=f16"], "B=1,Hq=2,Hkv=1,Sq=130,Sk=70,D=64", 2e-3),
    ("fmha_fwd", &["dtype=bf16", "causal=true"], "B=2,Hq=2,Hkv=2,Sq=100,Sk=200,D=128", 2e-2),
    ("fmha_fwd", &["dtype=f16", "causal=true"], "B=1,Hq=1,Hkv=1,Sq=70,Sk=70,D=256", 2e-3),
    ("fmha_fwd", &["dtype=f16"], "B=1,Hq=1,Hkv=1,Sq=1,Sk=1,D=8", 2e-3),
    ("fmha_fwd", &["dtype=f16"], "B=1,Hq=3,Hkv=1,Sq=65,Sk=129,D=40", 2e-3),
];

/// Sizes that the emulator would take too long for.
#[rustfmt::skip]
const LARGE: &[(&str, &[&str], &str)] = &[
    ("axpy", &["dtype=f32"], "N=10000019"),
    ("transpose", &["dtype=f32"], "R=4099,C=2053"),
    ("softmax", &["dtype=f16"], "R=1000,C=5000"),
    ("rms_norm", &["dtype=bf16"], "R=1000,C=5000"),
    ("matmul", &["dtype=f16"], "M=700,N=648,K=1032"),
    ("fmha_fwd", &["dtype=f16", "causal=true"], "B=1,Hq=4,Hkv=2,Sq=1024,Sk=1024,D=64"),
    ("fmha_fwd", &["dtype=bf16"], "B=1,Hq=2,Hkv=1,Sq=1000,Sk=1000,D=128"),
];

/// Runs and checks a kernel on random inputs, and gives its outputs.
fn outputs(device: &str, kernel: &str, settings: &[&str], sizes: &str) -> Tensors {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let path_text = path.to_str().unwrap();
    let mut arguments =
        vec!["run", kernel, "--device", device, "--random", "3", "--shape", sizes, "--check", "--output", path_text];
    settings.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    let (status, out, err) = lacewing(&arguments);
    assert_eq!(status, 0, "{kernel} {settings:?} {sizes} on {device}: {out}{err}");
    assert!(out.contains("holds"), "{out}");
    println!("{}", out.trim_end());
    files::read(&path).unwrap()
}

#[test]
fn every_kernel_is_right_and_equals_the_emulator() {
    let Some(device) = gpu() else { return };
    let emulator = format!("emulator:{}", device.target());
    for (kernel, settings, sizes, bound) in CASES {
        let (got, wanted) = (outputs("cuda:0", kernel, settings, sizes), outputs(&emulator, kernel, settings, sizes));
        for (name, tensor) in &got {
            let (a, b) = (tensor.to_f64().unwrap(), wanted[name].to_f64().unwrap());
            let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
            let differ = a.iter().zip(&b).filter(|(a, b)| !same(**a, **b)).count();
            let off = |a: f64, b: f64| if same(a, b) { 0.0 } else { (a - b).abs() / b.abs().max(1.0) };
            // A NaN on one side only gives NaN, which no bound admits.
            let largest = a.iter().zip(&b).map(|(a, b)| off(*a, *b)).fold(0.0, |x: f64, y| if y <= x { x } else { y });
            println!("{kernel} {settings:?} {sizes}: `{name}`: {differ} of {} differ, largest {largest:.2e}", a.len());
            assert!(largest <= *bound, "{kernel} {settings:?} {sizes}: `{name}` is {largest:e} off the emulator");
        }
    }
}

#[test]
fn every_kernel_is_right_at_sizes_of_use() {
    let Some(_) = gpu() else { return };
    for (kernel, settings, sizes) in LARGE {
        outputs("cuda:0", kernel, settings, sizes);
    }
}

/// Code for sm_80 on whatever chip there is.
#[test]
fn every_kernel_is_right_as_sm_80_code() {
    let Some(_) = gpu() else { return };
    for (kernel, settings, sizes, _) in CASES {
        outputs("cuda:0:sm_80", kernel, settings, sizes);
    }
}

/// wgmma, of both layouts of B, and of 8-bit elements. The bound of the latter is what an instruction cuts off.
#[rustfmt::skip]
const ON_HOPPER: &[(&str, &[&str], &str)] = &[
    ("matmul", &["dtype=bf16", "out=same"], "M=1000,N=520,K=808"),
    ("matmul", &["dtype=f16", "b=columns"], "M=777,N=1001,K=520"),
    ("matmul", &["dtype=bf16", "b=columns", "out=same"], "M=64,N=2048,K=4096"),
    ("matmul", &["dtype=f16"], "M=2048,N=1024,K=64"),
    ("matmul_fp8", &[], "M=500,N=1000,K=1040"),
    ("matmul_fp8", &["dtype=f8e5m2", "out=f32", "scale=0.5"], "M=130,N=77,K=100"),
];

#[test]
fn products_of_warpgroups_are_right() {
    let Some(_) = gpu().filter(|gpu| gpu.target() == Target::SM_90A) else { return };
    for (kernel, settings, sizes) in ON_HOPPER {
        outputs("cuda:0", kernel, settings, sizes);
    }
}

#[test]
fn attention_of_real_inputs_is_right() {
    let Some(_) = gpu() else { return };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    for (name, causal) in [
        ("smollm2_l0", "causal=true"),
        ("smollm2_l15", "causal=true"),
        ("minilm_l0", "causal=false"),
        ("minilm_l5", "causal=false"),
    ] {
        let path = data.join(format!("{name}.safetensors"));
        let arguments =
            ["run", "fmha_fwd", "--device", "cuda:0", "--inputs", path.to_str().unwrap(), "--set", causal, "--check"];
        let (status, out, err) = lacewing(&arguments);
        assert_eq!(status, 0, "{name}: {out}{err}");
        println!("{name}: {}", out.trim_end());
    }
}
