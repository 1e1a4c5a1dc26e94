//! Rust that has no meaning on a device.

use lacewing::prelude::*;

#[device]
fn question_mark(x: Option<F32>, n: I32) -> Option<F32> {
    if n > 3 {
        let _ = x?;
    }
    x
}

#[kernel(block = [32, 1, 1])]
fn question_mark_of_a_kernel(#[comptime] x: Option<f32>, y: TensorMut<F32, 1>) {
    let x = x?;
    y.at(0).store(F32::from(x));
}

#[device]
fn return_from_closure(x: F32) -> F32 {
    let clip = |v: F32| {
        if v > 1.0 {
            return F32::from(1.0);
        }
        v
    };
    clip(x)
}

#[device]
fn chain(x: Option<F32>, n: I32) {
    if let Some(x) = x && n > 3 {
        let _ = x;
    }
}

#[device]
async fn future() {}

#[device]
fn assertion_with_values(n: I32) {
    device_assert!(n > 0, "{} is not positive", n);
}

fn main() {}
