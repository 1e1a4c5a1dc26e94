//! `lacewing run` for a kernel of a user's own program, on the emulator.

use std::ffi::OsString;

use lacewing::cli::{Io, files, run};
use lacewing::core::ScalarType;
use lacewing::kernels::reference;
use lacewing::prelude::*;
use lacewing::runtime::registry::{KernelEntry, Parameter, Settings};
use lacewing::runtime::runner::{Dimension, SimpleRunner, TensorSpec, Wanted};
use lacewing::runtime::{ElementOf, Error, Tensors};

/// y = 2 x + y. `guarded` false forgets the bounds check.
#[kernel(block = [64, 1, 1])]
fn axpy<T: Float>(#[comptime] guarded: bool, x: Tensor<T, 1>, y: TensorMut<T, 1>) {
    let i = block_id(X) * block_dim(X) + thread_id(X);
    let mut inside = Bool::from(true);
    if const_expr(guarded) {
        inside = i < x.extent(0);
    }
    if inside {
        let place = y.at(i);
        place.store(x.at(i).load() * 2.0 + place.load());
    }
}

fn launch<T: Float>(device: &Device, settings: &Settings, inputs: &Tensors) -> Result<Tensors, Error>
where
    T::Host: ElementOf<T>,
{
    let x = device.tensor_from::<T::Host, 1>(&inputs["x"])?;
    let mut y = device.tensor_from::<T::Host, 1>(&inputs["y"])?;
    let kernel = axpy::<T>::new(settings.bool("guarded")?);
    kernel.grid([x.len().div_ceil(64), 1, 1]).launch(device, (&x, &mut y))?;
    Ok(Tensors::from([("y".to_owned(), y.to_host()?)]))
}

const fn vector(name: &'static str, about: &'static str) -> TensorSpec {
    let types = &[ScalarType::F32, ScalarType::F16];
    TensorSpec { name, dimensions: &["N"], types, optional: false, about }
}

static RUNNER: SimpleRunner = SimpleRunner {
    inputs: &[vector("x", "what is added twice"), vector("y", "what it is added to")],
    outputs: &[vector("y", "2 x + y")],
    dimensions: &[Dimension { name: "N", default: 100, about: "elements" }],
    run: |device, settings, inputs| match settings.choice("dtype")? {
        "f16" => launch::<F16>(device, settings, inputs),
        _ => launch::<F32>(device, settings, inputs),
    },
    reference: |settings, inputs| {
        let numbers = reference::axpy(2.0, &inputs["x"].to_f64()?, &inputs["y"].to_f64()?);
        let tolerance = if settings.choice("dtype")? == "f16" { 2e-3 } else { 1e-6 };
        Ok(vec![Wanted { tensor: "y", numbers, tolerance }])
    },
};

static AXPY: KernelEntry = KernelEntry {
    name: "axpy",
    about: "y = 2 x + y",
    targets: &Target::ALL,
    parameters: &[
        Parameter::choice("dtype", &["f32", "f16"], "f32", "element type"),
        Parameter::bool("guarded", true, "check the bounds"),
    ],
    build: |settings, _| {
        let guarded = settings.bool("guarded")?;
        Ok(match settings.choice("dtype")? {
            "f16" => Box::new(axpy::<F16>::new(guarded)),
            _ => Box::new(axpy::<F32>::new(guarded)),
        })
    },
    runner: Some(&RUNNER),
};

fn lacewing(arguments: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments = ["lacewing", "run", "axpy"].iter().chain(arguments).map(OsString::from);
    let status = run(&[&AXPY], arguments, &mut Io { out: &mut out, err: &mut err });
    (status, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

#[test]
fn a_kernel_runs_on_each_emulated_chip_and_is_checked() {
    for device in ["emulator", "emulator:gfx942"] {
        for dtype in ["dtype=f32", "dtype=f16"] {
            let (status, out, err) =
                lacewing(&["--device", device, "--random", "5", "--shape", "N=1000", "--set", dtype, "--check"]);
            assert_eq!((status, err.as_str()), (0, ""), "{out}");
            assert!(out.contains("check y: holds"), "{out}");
        }
    }
}

#[test]
fn the_seed_of_the_scheduler_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = ["0", "1", "12345"].map(|seed| {
        let path = folder.path().join(seed);
        let (status, _, err) = lacewing(&["--random", "5", "--seed", seed, "--output", path.to_str().unwrap()]);
        assert_eq!(status, 0, "{err}");
        files::read(&path).unwrap()
    });
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}

#[test]
fn checks_are_chosen_by_name() {
    for checks in ["all", "none", "init,races", "all,inf"] {
        assert_eq!(lacewing(&["--random", "5", "--checks", checks]).0, 0);
    }
    let (status, _, err) = lacewing(&["--random", "5", "--checks", "race"]);
    assert_eq!(status, 2);
    assert!(err.contains("there is no check `race`") && err.contains("races"), "{err}");
}

#[test]
fn a_mistake_in_the_kernel_is_reported_at_its_line_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let output = path.to_str().unwrap();
    let (status, out, err) = lacewing(&["--random", "5", "--set", "guarded=false", "--output", output]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert!(err.starts_with("error: ") && err.contains("tests/suite/cli_run.rs:"), "{err}");
    assert!(err.contains("place.store(x.at(i).load() * 2.0 + place.load());"), "{err}");
    assert!(err.contains("kernel `axpy`, block (1, 0, 0), thread (36, 0, 0)"), "{err}");
    assert!(!path.exists());
}
