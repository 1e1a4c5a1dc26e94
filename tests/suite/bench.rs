//! `lacewing bench`: on the emulator everywhere, on a GPU where there is one.

use std::ffi::OsString;

use lacewing::cli::{Io, run};
use lacewing::prelude::*;
use lacewing::runtime::bench::{Plan, record};
use lacewing::runtime::registry::{KernelEntry, Parameter, Settings};
use lacewing::runtime::runner::{Dimension, SimpleRunner, TensorSpec, Wanted};
use lacewing::runtime::{Error, Tensors};
use serde_json::Value;

use crate::cuda::{gpu, lacewing};

#[test]
fn a_measurement_of_the_emulator_says_so() {
    let (status, out, err) =
        lacewing(&["bench", "matmul", "--device", "emulator", "--shape", "M=64,N=64,K=48", "--samples", "3"]);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    for wanted in
        ["matmul on emulator:sm_80", "the time of the emulator", "  check    c: error", "median of 3", "FLOP/s\n"]
    {
        assert!(out.contains(wanted), "{wanted:?} is not in\n{out}");
    }
}

#[test]
fn the_json_has_what_was_measured_and_what_it_amounts_to() {
    let arguments = [
        "bench",
        "fmha_fwd",
        "--device",
        "emulator:sm_90a",
        "--shape",
        "B=1,Hq=2,Hkv=1,Sq=64,Sk=96,D=16",
        "--set",
        "causal=true",
        "--samples",
        "3",
        "--json",
        "-",
    ];
    let (status, out, err) = lacewing(&arguments);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["timed"], "emulator");
    assert_eq!(said["inputs"]["q"], serde_json::json!([1, 2, 64, 16]));
    // Half of 4 B Hq Sq Sk D; Q, K, V and O in 16 bits, LSE in 32.
    assert_eq!(said["flops"], 2.0 * 2.0 * 64.0 * 96.0 * 16.0);
    assert_eq!(said["bytes"], (2 * (2 * 2 * 64 * 16 + 2 * 96 * 16) + 4 * 2 * 64) as f64);
    assert_eq!(said["repeats_bit_for_bit"], true);
    assert_eq!(said["seconds"]["samples"].as_array().unwrap().len(), 3);
    let median = said["seconds"]["median"].as_f64().unwrap();
    assert!(median > 0.0 && said["flops_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(said["checks"].as_array().unwrap().len(), 2);
    assert_eq!(said["limits"], Value::Null);
}

/// Adds one, and one more to the last element.
#[kernel(block = [32, 1, 1])]
fn nearly(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = block_id(X) * 32 + thread_id(X);
    if i < x.extent(0) {
        let extra = (i == x.extent(0) - 1).select(F32::from(1.0), F32::from(0.0));
        y.at(i).store(x.at(i).load() + 1.0 + extra);
    }
}

const fn vector(name: &'static str) -> TensorSpec {
    TensorSpec {
        name,
        dimensions: &["N"],
        types: &[lacewing::core::ScalarType::F32],
        optional: false,
        about: "numbers",
    }
}

fn run_nearly(device: &Device, _: &Settings, inputs: &Tensors) -> Result<Tensors, Error> {
    let x = device.tensor_from::<f32, 1>(&inputs["x"])?;
    let mut y = device.tensor_uninit::<f32, 1>(x.shape())?;
    nearly::new().grid([x.len().div_ceil(32), 1, 1]).launch(device, (&x, &mut y))?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

static NEARLY_RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[vector("x")],
    outputs: &[vector("y")],
    dimensions: &[Dimension { name: "N", default: 100, about: "elements" }],
    run: run_nearly,
    reference: |_, inputs| {
        let numbers = inputs["x"].to_f64()?.into_iter().map(|x| x + 1.0).collect();
        Ok(vec![Wanted { tensor: "y", numbers, tolerance: 1e-6 }])
    },
};

static NEARLY: KernelEntry = KernelEntry {
    name: "nearly",
    about: "wrong in one element",
    targets: &Target::ALL,
    parameters: &[Parameter::usize("unused", 1, "nothing")],
    build: |_, _| Ok(Box::new(nearly::new())),
    runner: Some(&NEARLY_RUNNER),
};

#[test]
fn a_wrong_kernel_is_not_timed() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["lacewing", "bench", "nearly", "--device", "emulator"].map(OsString::from);
    let status = run(&[&NEARLY], arguments, &mut Io { out: &mut out, err: &mut err });
    let err = String::from_utf8(err).unwrap();
    assert_eq!((status, out.len()), (1, 0), "{err}");
    assert!(err.contains("`y` is outside its tolerance") && err.contains("so it was not timed"), "{err}");
}

/// A counter that the run sets to zero, and that each block draws its number from.
#[kernel(block = [32, 1, 1])]
fn draw(counter: TensorMut<I32, 1>, y: TensorMut<F32, 1>) {
    if thread_id(X) == 0 {
        let number = counter.at(0).atomic_add(I32::from(1));
        if number < y.extent(0) {
            y.at(number).store(F32::from(1.0));
        }
    }
}

#[test]
fn a_counter_is_put_back_before_each_run() {
    let devices = [Some(Device::emulator(Target::SM_80).unwrap()), gpu()];
    for device in devices.into_iter().flatten() {
        let work = |device: &Device| {
            let mut counter = device.tensor_zeros::<i32, 1>([1])?;
            let mut y = device.tensor_uninit::<f32, 1>([8])?;
            draw::new().grid([8, 1, 1]).launch(device, (&mut counter, &mut y))?;
            y.to_vec()
        };
        let (y, recorded) = record(&device, work).unwrap();
        assert_eq!(y, [1.0; 8]);
        assert_eq!(recorded.kernels(), ["draw"]);
        let timing = recorded.time(&Plan { samples: 3, ..Plan::default() }).unwrap();
        // Counter and outputs; the outputs are small too.
        assert_eq!((timing.restored_bytes, timing.repeats, timing.seconds.len()), (4 + 32, true, 3));
        let nothing = record(&device, |_| Ok(())).err().unwrap().to_string();
        assert!(nothing.contains("the run launched no kernel"), "{nothing}");
    }
}

#[test]
fn a_kernel_is_measured_on_a_gpu() {
    if gpu().is_none() {
        return;
    }
    let arguments = ["bench", "axpy", "--device", "cuda:0", "--shape", "N=50000000", "--json", "-"];
    let (status, out, err) = lacewing(&arguments);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&said["timed"], &said["repeats_bit_for_bit"]), (&"gpu".into(), &true.into()));
    assert_eq!(said["bytes"], 600e6);
    assert!(said["copies"].as_u64().unwrap() >= 2, "{said}");
    let (reached, limit) = (&said["bytes_per_second"], &said["limits"]["copy_bytes_per_second"]);
    let share = reached.as_f64().unwrap() / limit.as_f64().unwrap();
    assert!((0.3..1.2).contains(&share), "{reached} of {limit}");
    println!("{out}");
}
