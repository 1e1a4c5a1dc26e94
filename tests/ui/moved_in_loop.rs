//! Rust's own rules hold in a run-time loop: moves and first values.

use lacewing::prelude::*;

#[derive(Carried)]
struct Token(F32);

#[device]
fn consume(token: Token) {
    let _ = token;
}

#[kernel(block = [32, 1, 1])]
fn moves(n: I32, x: F32) {
    let token = Token(x);
    for _ in range(n) {
        consume(token);
    }
}

#[kernel(block = [32, 1, 1])]
fn one_arm(n: I32, x: F32, y: TensorMut<F32, 1>) {
    let value;
    if n > 3 {
        value = x;
    }
    y.at(0).store(value);
}

#[kernel(block = [32, 1, 1])]
fn not_mut(n: I32, x: F32, y: TensorMut<F32, 1>) {
    let sum = x;
    for _ in range(n) {
        sum += 1.0;
    }
    y.at(0).store(sum);
}

fn main() {}
