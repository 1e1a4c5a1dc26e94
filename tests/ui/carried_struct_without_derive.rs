//! A struct that changes in a run-time loop and does not derive `Carried` (F13, D14).

use lacewing::prelude::*;

struct State {
    max: F32,
}

impl State {
    fn add(&mut self, x: F32) {
        self.max = self.max.max(x);
    }
}

#[kernel(block = [32, 1, 1])]
fn assigned(n: I32, x: F32) {
    let mut state = State { max: x };
    for _ in range(n) {
        state.max += 1.0;
    }
}

#[kernel(block = [32, 1, 1])]
fn method_called(n: I32, x: F32) {
    let mut state = State { max: x };
    for _ in range(n) {
        state.add(x);
    }
}

fn main() {}
