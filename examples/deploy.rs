//! A program as it is shipped: it launches a kernel that was compiled before, and links neither LLVM nor MLIR.
//!
//! ```text
//! lacewing compile axpy --target sm_80 --target sm_90a --target sm_100a --emit artifact -o examples/axpy.lwa
//! cargo build --release --example deploy --no-default-features --features aot
//! ```

use std::process::ExitCode;

use lacewing::prelude::*;

/// The parameters of the kernel, as its source declares them.
type Axpy = (F32, Tensor<F32, 1>, TensorMut<F32, 1>);

fn axpy(device: &Device, a: f32, x: &[f32], y: &[f32]) -> Result<Vec<f32>, lacewing::Error> {
    let kernel = lacewing::artifact!("axpy.lwa")?.kernel::<Axpy>("axpy")?;
    let n = y.len();
    let x = device.tensor_from_slice(x, [n])?;
    let mut y = device.tensor_from_slice(y, [n])?;
    kernel.grid([n.div_ceil(256), 1, 1]).launch(device, (a, &x, &mut y))?;
    y.to_vec()
}

fn run() -> Result<(), lacewing::Error> {
    let name = std::env::args().nth(1);
    let device = Device::from_name(name.as_deref().unwrap_or("cuda:0"))?;
    let numbers: Vec<f32> = (0u16..10_000).map(f32::from).collect();
    let got = axpy(&device, 2.0, &numbers, &numbers)?;
    let wrong = got.iter().zip(&numbers).filter(|(got, x)| **got != 3.0 * **x).count();
    println!("axpy on {device}: {} elements, {wrong} wrong", got.len());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
