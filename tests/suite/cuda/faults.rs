//! Kernels that fail on a GPU. A fault is the end of a process's context, so each runs in a process of its own: this
//! test binary again, with a variable that says which fault to make.

use std::process::Command;

use lacewing::prelude::*;
use lacewing::runtime::Error;

use super::gpu;

const VARIABLE: &str = "LACEWING_TEST_FAULT";

#[kernel(block = [32, 1, 1])]
fn fill(y: TensorMut<F32, 1>) {
    y.at(thread_id(X)).store(F32::from(1.0));
}

/// Writes far beyond the end of its tensor.
#[kernel(block = [32, 1, 1])]
fn stray(far: I64, y: TensorMut<F32, 1>) {
    y.at(far + thread_id(X).cast::<I64>()).store(F32::from(1.0));
}

#[kernel(block = [32, 1, 1])]
fn asserts(y: TensorMut<F32, 1>) {
    device_assert!(y.at(thread_id(X)).load() < 0.0, "not negative");
}

/// Runs another test of this binary with a fault, and gives what it printed.
fn in_a_process(fault: &str) -> String {
    let program = std::env::current_exe().unwrap();
    let test = "cuda::faults::make_a_fault";
    let run = Command::new(program).args([test, "--exact", "--nocapture"]).env(VARIABLE, fault).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr))
}

/// Does nothing unless it is told to.
#[test]
fn make_a_fault() {
    let (Ok(fault), Some(device)) = (std::env::var(VARIABLE), gpu()) else { return };
    let mut y = device.tensor_zeros::<f32, 1>([32]).unwrap();
    let outcome = match fault.as_str() {
        "synchronous" => stray::new().grid([1, 1, 1]).launch(&device, (1 << 40, &mut y)).map(drop),
        "assertion" => asserts::new().grid([1, 1, 1]).launch(&device, (&mut y,)).map(drop),
        _ => {
            let device = device.with_synchronous(false);
            fill::new().grid([1, 1, 1]).launch(&device, (&mut y,)).unwrap();
            stray::new().grid([1, 1, 1]).launch(&device, (1 << 40, &mut y)).unwrap();
            y.to_vec().map(drop)
        }
    };
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::Fault { .. }), "{error:?}");
    println!("told: {error}");
    // Every later call says so as well, and nothing panics.
    println!("then: {}", y.to_vec().unwrap_err());
    println!("then: {}", device_again());
}

fn device_again() -> String {
    match Device::cuda(0).and_then(|device| device.tensor_zeros::<f32, 1>([1])) {
        Ok(_) => "a new handle works".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_stray_access_names_its_kernel() {
    let Some(_) = gpu() else { return };
    let told = in_a_process("synchronous");
    assert!(told.contains("told: kernel `stray` failed on cuda:0: it accessed memory outside"), "{told}");
    assert!(told.contains("run it on the emulator"), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

#[test]
fn a_stray_access_found_later_names_the_kernels_under_way() {
    let Some(_) = gpu() else { return };
    let told = in_a_process("later");
    assert!(told.contains("told: one of the kernels `stray`, `fill` failed on cuda:0"), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}

#[test]
fn an_assertion_that_fails_is_an_error() {
    let Some(_) = gpu() else { return };
    let told = in_a_process("assertion");
    assert!(told.contains("told: kernel `asserts` failed on cuda:0"), "{told}");
    assert!(told.contains("1 passed"), "{told}");
}
