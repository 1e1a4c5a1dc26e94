//! What `Carried` and `Shared` cannot be derived for.

use lacewing::prelude::*;

#[derive(Carried)]
enum Choice {
    Left(F32),
    Right(I32),
}

#[derive(Shared)]
struct Memory {
    tile: SharedTile<F16, 8, 8>,
    count: usize,
    #[shared(overlap = "tyle")]
    other: SharedArray<F32, 8>,
    #[shared(align = 24)]
    odd: SharedArray<F32, 8>,
}

fn main() {}
