//! Fragments as the operands of a product that they are not of: role, atom, element type (D8, F6).

use lacewing::prelude::*;

type Half = MmaSync<16, 8, 16, F16>;
type Brain = MmaSync<16, 8, 16, BF16>;
type Short = MmaSync<16, 8, 8, F16>;

#[kernel(block = [32, 1, 1])]
fn multiplies(_x: Tensor<F32, 1>) {
    let a = FragmentA::<Half>::splat(16, 16, F16::from(1.0));
    let b = FragmentB::<Half>::splat(8, 16, F16::from(1.0));
    let brain = FragmentB::<Brain>::splat(8, 16, BF16::from(1.0));
    let short = FragmentA::<Short>::splat(16, 8, F16::from(1.0));
    let mut acc = FragmentC::<Half>::zeros(16, 8);
    gemm(&b, &a, &mut acc);
    gemm(&a, &brain, &mut acc);
    gemm(&short, &b, &mut acc);
}

#[kernel(block = [32, 1, 1])]
fn loads_and_converts(_x: Tensor<F32, 1>) {
    let mma = TiledMma::<Brain>::new([1, 1]);
    let tile = shared_tensor::<F16>("tile", layout![(16, 16)]);
    let _ = mma.partition_a(&tile);
    let _ = FragmentC::<MmaSync<16, 8, 32, F8E4M3>>::zeros(16, 8).to_a();
    let _ = FragmentC::<Mfma<16, 16, 16, F16>>::zeros(16, 16).to_a();
    let _ = FragmentC::<MmaSync<16, 16, 16, F16>>::zeros(16, 16);
}

fn main() {}
