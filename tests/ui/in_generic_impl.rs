//! Errors inside of generic impl blocks point at the user's code (F20).

use lacewing::prelude::*;

struct Sum<T: Float, const N: usize> {
    parts: [T; N],
}

impl<T: Float, const N: usize> Sum<T, N> {
    #[device]
    fn add(&mut self, x: T, n: I32) -> impl Float {
        for i in range(n) {
            self.parts[0] += x;
            if i > x {
                return self.parts[0] * 2;
            }
        }
        self.misspelt(x)
    }
}

fn main() {}
