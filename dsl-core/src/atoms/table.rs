//! The one table of matrix instructions, and the types that name its rows in kernels.

use super::spec::{Chips, MatrixOp, MmaSpec, OperandSpec, Tv};
use crate::ScalarType;
use crate::types::{BF16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, MmaElement, Scalar, U8};

/// Sections of the manuals.
mod isa {
    pub const M8N8K4: &str = "PTX ISA, Matrix Fragments for mma.m8n8k4 with .f64 floating point type";
    pub const M8N8K16: &str = "PTX ISA, Matrix Fragments for mma.m8n8k16";
    pub const M16N8K4: &str = "PTX ISA, Matrix Fragments for mma.m16n8k4";
    pub const M16N8K16_INT8: &str = "PTX ISA, Matrix Fragments for mma.m16n8k16 with integer type";
    pub const M16N8K8: &str = "PTX ISA, Matrix Fragments for mma.m16n8k8";
    pub const M16N8K16: &str = "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type";
    pub const M16N8K32: &str = "PTX ISA, Matrix Fragments for mma.m16n8k32";
    pub const CDNA3: &str = "CDNA3 ISA, Matrix Arithmetic Instructions, Dense Matrices";
    pub const CDNA4: &str = "CDNA4 ISA, Matrix Arithmetic Instructions, Dense Matrices";
    pub const FMA: &str = "PTX ISA, fma; CDNA3 ISA, V_FMA_F32";
}

const fn operand(
    element: ScalarType,
    pack: usize,
    thread: &'static [(i64, i64)],
    value: &'static [(i64, i64)],
) -> OperandSpec {
    OperandSpec { element, pack, tv: Tv { thread, value } }
}

/// C of m16n8: lane `4 g + t` holds rows g and g + 8 of columns 2t and 2t + 1.
const fn c_16x8(element: ScalarType) -> OperandSpec {
    operand(element, 1, &[(4, 32), (8, 1)], &[(2, 16), (2, 8)])
}

const fn mma_sync(
    shape: [usize; 3],
    kind: &'static str,
    operands: [OperandSpec; 3],
    from: u32,
    isa: &'static str,
) -> MmaSpec {
    let [a, b, c] = operands;
    MmaSpec { op: MatrixOp::MmaSync, kind, shape, blocks: 1, a, b, c, chips: Chips::NvidiaFrom(from), isa }
}

const fn mma_16x8x16(element: ScalarType, kind: &'static str) -> MmaSpec {
    let a = operand(element, 2, &[(4, 32), (8, 1)], &[(2, 16), (2, 8), (2, 128)]);
    let b = operand(element, 2, &[(4, 16), (8, 1)], &[(2, 8), (2, 64)]);
    mma_sync([16, 8, 16], kind, [a, b, c_16x8(ScalarType::F32)], 80, isa::M16N8K16)
}

const fn mma_16x8x8(element: ScalarType, kind: &'static str) -> MmaSpec {
    let a = operand(element, 2, &[(4, 32), (8, 1)], &[(2, 16), (2, 8)]);
    let b = operand(element, 2, &[(4, 16), (8, 1)], &[(2, 8)]);
    mma_sync([16, 8, 8], kind, [a, b, c_16x8(ScalarType::F32)], 80, isa::M16N8K8)
}

/// Sums of 16 bits, two neighbours of a row in one register.
const C_16X8_F16: OperandSpec = OperandSpec { pack: 2, ..c_16x8(ScalarType::F16) };

const fn with_half_sums(spec: MmaSpec) -> MmaSpec {
    MmaSpec { c: C_16X8_F16, kind: "f16+f16", ..spec }
}

const MMA_16X8X4_TF32: MmaSpec = {
    let a = operand(ScalarType::F32, 1, &[(4, 16), (8, 1)], &[(2, 8)]);
    let b = operand(ScalarType::F32, 1, &[(4, 8), (8, 1)], &[(1, 0)]);
    mma_sync([16, 8, 4], "tf32", [a, b, c_16x8(ScalarType::F32)], 80, isa::M16N8K4)
};

/// C of m8n8: lane `4 g + t` holds row g of columns 2t and 2t + 1.
const fn c_8x8(element: ScalarType) -> OperandSpec {
    operand(element, 1, &[(4, 16), (8, 1)], &[(2, 8)])
}

const MMA_8X8X4_F64: MmaSpec = {
    let factor = operand(ScalarType::F64, 1, &[(4, 8), (8, 1)], &[(1, 0)]);
    mma_sync([8, 8, 4], "f64", [factor, factor, c_8x8(ScalarType::F64)], 80, isa::M8N8K4)
};

/// Integers of 8 bits in half of [`mma_16x8x32`]'s k.
const fn mma_16x8x16_int8(a: ScalarType, b: ScalarType, kind: &'static str) -> MmaSpec {
    let a = operand(a, 4, &[(4, 64), (8, 1)], &[(4, 16), (2, 8)]);
    let b = operand(b, 4, &[(4, 32), (8, 1)], &[(4, 8)]);
    mma_sync([16, 8, 16], kind, [a, b, c_16x8(ScalarType::I32)], 80, isa::M16N8K16_INT8)
}

const fn mma_8x8x16_int8(a: ScalarType, b: ScalarType, kind: &'static str) -> MmaSpec {
    let a = operand(a, 4, &[(4, 32), (8, 1)], &[(4, 8)]);
    let b = operand(b, 4, &[(4, 32), (8, 1)], &[(4, 8)]);
    mma_sync([8, 8, 16], kind, [a, b, c_8x8(ScalarType::I32)], 80, isa::M8N8K16)
}

const MMA_16X8X8_TF32: MmaSpec = {
    let a = operand(ScalarType::F32, 1, &[(4, 16), (8, 1)], &[(2, 8), (2, 64)]);
    let b = operand(ScalarType::F32, 1, &[(4, 8), (8, 1)], &[(2, 32)]);
    mma_sync([16, 8, 8], "tf32", [a, b, c_16x8(ScalarType::F32)], 80, isa::M16N8K8)
};

/// Elements of 8 bits: lane `4 g + t` holds four neighbours along k, from 4t and from 4t + 16.
const fn mma_16x8x32(a: ScalarType, b: ScalarType, c: ScalarType, kind: &'static str, from: u32) -> MmaSpec {
    let a = operand(a, 4, &[(4, 64), (8, 1)], &[(4, 16), (2, 8), (2, 256)]);
    let b = operand(b, 4, &[(4, 32), (8, 1)], &[(4, 8), (2, 128)]);
    mma_sync([16, 8, 32], kind, [a, b, c_16x8(c)], from, isa::M16N8K32)
}

/// The layouts that all dense MFMA share: for `K = G E` with `G = 64 / size` groups of lanes, lane `size g + i`
/// holds row (or column) i at k from `E g` to `E g + E - 1`.
macro_rules! mfma {
    (factor $element:expr, $size:literal, $values:literal, $pack:literal) => {
        operand($element, $pack, &[($size, 1), (64 / $size, $size * $values)], &[($values, $size)])
    };
    // f8f6f4 with 8-bit elements: two runs of 16, half of K apart.
    (runs $element:expr, $size:literal) => {
        operand($element, 32, &[($size, 1), (64 / $size, 16 * $size)], &[(16, $size), (2, 16 * 64)])
    };
    // Lane `32 h + j`, register r: row 8 (r / 4) + 4 h + r % 4 of column j.
    (sums $element:expr, 32) => {
        operand($element, 1, &[(32, 32), (2, 4)], &[(4, 1), (4, 8)])
    };
    // Lane `16 g + j`, register r: row 4 g + r of column j.
    (sums $element:expr, 16) => {
        operand($element, 1, &[(16, 16), (4, 4)], &[(4, 1)])
    };
}

const fn mfma_row(shape: [usize; 3], kind: &'static str, operands: [OperandSpec; 3], chips: Chips) -> MmaSpec {
    let [a, b, c] = operands;
    let isa = if matches!(chips, Chips::AmdOnly(950)) { isa::CDNA4 } else { isa::CDNA3 };
    MmaSpec { op: MatrixOp::Mfma, kind, shape, blocks: 1, a, b, c, chips, isa }
}

const fn mfma_32x32x8(e: ScalarType, kind: &'static str) -> MmaSpec {
    let factor = mfma!(factor e, 32, 4, 4);
    mfma_row([32, 32, 8], kind, [factor, factor, mfma!(sums ScalarType::F32, 32)], Chips::Amd)
}

const fn mfma_16x16x16(e: ScalarType, kind: &'static str) -> MmaSpec {
    let factor = mfma!(factor e, 16, 4, 4);
    mfma_row([16, 16, 16], kind, [factor, factor, mfma!(sums ScalarType::F32, 16)], Chips::Amd)
}

/// Eight values a lane: 16-bit floats of CDNA4, and 8-bit elements of both.
const fn mfma_32x32x16(a: ScalarType, b: ScalarType, c: ScalarType, kind: &'static str, chips: Chips) -> MmaSpec {
    let (a, b) = (mfma!(factor a, 32, 8, 8), mfma!(factor b, 32, 8, 8));
    mfma_row([32, 32, 16], kind, [a, b, mfma!(sums c, 32)], chips)
}

const fn mfma_16x16x32(a: ScalarType, b: ScalarType, c: ScalarType, kind: &'static str, chips: Chips) -> MmaSpec {
    let (a, b) = (mfma!(factor a, 16, 8, 8), mfma!(factor b, 16, 8, 8));
    mfma_row([16, 16, 32], kind, [a, b, mfma!(sums c, 16)], chips)
}

const MFMA_32X32X32_I8: MmaSpec = {
    let factor = mfma!(factor ScalarType::I8, 32, 16, 16);
    mfma_row([32, 32, 32], "s8", [factor, factor, mfma!(sums ScalarType::I32, 32)], Chips::AmdOnly(950))
};

const MFMA_16X16X64_I8: MmaSpec = {
    let factor = mfma!(factor ScalarType::I8, 16, 16, 16);
    mfma_row([16, 16, 64], "s8", [factor, factor, mfma!(sums ScalarType::I32, 16)], Chips::AmdOnly(950))
};

const MFMA_32X32X2_F32: MmaSpec = {
    let factor = mfma!(factor ScalarType::F32, 32, 1, 1);
    mfma_row([32, 32, 2], "f32", [factor, factor, mfma!(sums ScalarType::F32, 32)], Chips::Amd)
};

const MFMA_16X16X4_F32: MmaSpec = {
    let factor = mfma!(factor ScalarType::F32, 16, 1, 1);
    mfma_row([16, 16, 4], "f32", [factor, factor, mfma!(sums ScalarType::F32, 16)], Chips::Amd)
};

/// The only result whose rows go to the lanes first: lane `16 (i % 4) + j`, register i / 4.
const MFMA_16X16X4_F64: MmaSpec = {
    let factor = mfma!(factor ScalarType::F64, 16, 1, 1);
    let sums = operand(ScalarType::F64, 1, &[(16, 16), (4, 1)], &[(4, 4)]);
    mfma_row([16, 16, 4], "f64", [factor, factor, sums], Chips::Amd)
};

const MFMA_32X32X4_XF32: MmaSpec = {
    let factor = mfma!(factor ScalarType::F32, 32, 2, 2);
    mfma_row([32, 32, 4], "xf32", [factor, factor, mfma!(sums ScalarType::F32, 32)], Chips::AmdOnly(942))
};

const MFMA_16X16X8_XF32: MmaSpec = {
    let factor = mfma!(factor ScalarType::F32, 16, 2, 2);
    mfma_row([16, 16, 8], "xf32", [factor, factor, mfma!(sums ScalarType::F32, 16)], Chips::AmdOnly(942))
};

const fn mfma_32x32x64(a: ScalarType, b: ScalarType, kind: &'static str) -> MmaSpec {
    let (a, b) = (mfma!(runs a, 32), mfma!(runs b, 32));
    mfma_row([32, 32, 64], kind, [a, b, mfma!(sums ScalarType::F32, 32)], Chips::AmdOnly(950))
}

const fn mfma_16x16x128(a: ScalarType, b: ScalarType, kind: &'static str) -> MmaSpec {
    let (a, b) = (mfma!(runs a, 16), mfma!(runs b, 16));
    mfma_row([16, 16, 128], kind, [a, b, mfma!(sums ScalarType::F32, 16)], Chips::AmdOnly(950))
}

/// Several products at once, which have no element in common. All lanes that hold one k are `size` of each block, and
/// the elements of a lane are neighbours along k.
macro_rules! blocks {
    (factor $element:expr, $size:literal, $blocks:literal, $k:literal) => {
        operand($element, $k, &[($size, 1), ($blocks, $size * $k)], &[($k, $size)])
    };
    // Each block has the registers that a single product of this size would have, after those of the block before.
    (sums $element:expr, 32) => {
        operand($element, 1, &[(32, 32), (2, 4)], &[(4, 1), (4, 8), (2, 1024)])
    };
    (sums $element:expr, 16) => {
        operand($element, 1, &[(16, 16), (4, 4)], &[(4, 1), (4, 256)])
    };
    // Lane `4 b + j`, register r: row r of column j of block b.
    (sums $element:expr, 4) => {
        operand($element, 1, &[(4, 4), (16, 16)], &[(4, 1)])
    };
    ($name:ident, $size:tt, $blocks:literal, $k:literal) => {
        const fn $name(factor: ScalarType, sum: ScalarType, kind: &'static str) -> MmaSpec {
            let factor = blocks!(factor factor, $size, $blocks, $k);
            let spec = mfma_row([$size, $size, $k], kind, [factor, factor, blocks!(sums sum, $size)], Chips::Amd);
            MmaSpec { blocks: $blocks, ..spec }
        }
    };
}

blocks!(mfma_32x32x4_2, 32, 2, 4);
blocks!(mfma_16x16x4_4, 16, 4, 4);
blocks!(mfma_4x4x4_16, 4, 16, 4);
blocks!(mfma_32x32x1_2, 32, 2, 1);
blocks!(mfma_16x16x1_4, 16, 4, 1);
blocks!(mfma_4x4x1_16, 4, 16, 1);

/// Lane `16 k + 4 b + i` holds row i at k of block b, and lane `16 i + 4 b + j` row i of column j of the sums.
const MFMA_4X4X4_4_F64: MmaSpec = {
    let factor = operand(ScalarType::F64, 1, &[(4, 1), (4, 16), (4, 4)], &[(1, 0)]);
    let sums = operand(ScalarType::F64, 1, &[(4, 4), (4, 16), (4, 1)], &[(1, 0)]);
    MmaSpec { blocks: 4, ..mfma_row([4, 4, 4], "f64", [factor, factor, sums], Chips::Amd) }
};

const fn fma(element: ScalarType, kind: &'static str) -> MmaSpec {
    let one = operand(element, 1, &[(1, 0)], &[(1, 0)]);
    let shape = [1, 1, 1];
    MmaSpec { op: MatrixOp::Fma, kind, shape, blocks: 1, a: one, b: one, c: one, chips: Chips::All, isa: isa::FMA }
}

/// A matrix instruction as a type. Implemented by the rows of [`MMA_TABLE`]: [`MmaSync`], [`Mfma`], [`ScalarFma`].
#[diagnostic::on_unimplemented(
    message = "there is no matrix instruction `{Self}`",
    label = "no atom of this shape and these elements",
    note = "NVIDIA: `MmaSync<16, 8, 16, T>` and `<16, 8, 8, T>` of `F16` and `BF16`, `<16, 8, 8, Tf32>`, `<16, 8, 32, T>` of `I8`, `U8`, `F8E4M3`, `F8E5M2`",
    note = "AMD: `Mfma<32, 32, 8, T>` and `<16, 16, 16, T>` of `F16` and `BF16`; the book's page on atoms lists the others",
    note = "any chip: `ScalarFma<T>` of `F32` and `F64`"
)]
pub trait MmaAtom: Copy + std::fmt::Debug + 'static {
    /// Element type of A's values.
    type A: Scalar;
    /// Element type of B's values.
    type B: Scalar;
    /// Element type of the sums.
    type C: Scalar;
    /// The description.
    const SPEC: MmaSpec;
}

/// `mma.sync` of one warp: `MmaSync<M, N, K, A, B>` with element types `A` and `B`. From sm_80 on.
///
/// Sums are of the widest type that the elements have, [`Widest`]: `F32`, `I32` or `F64`. `MmaSync<M, N, K, F16, F16, F16>`
/// has sums of 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct MmaSync<const M: usize, const N: usize, const K: usize, A, B = A, C = Widest>(
    std::marker::PhantomData<(A, B, C)>,
);

/// Names the widest sums that an instruction has for its elements.
#[derive(Clone, Copy, Debug)]
pub struct Widest;

/// `v_mfma` of one wave: `Mfma<M, N, K, A, B>` with element types `A` and `B`. CDNA3 and CDNA4.
#[derive(Clone, Copy, Debug)]
pub struct Mfma<const M: usize, const N: usize, const K: usize, A, B = A>(std::marker::PhantomData<(A, B)>);

/// `v_mfma` of several independent products: `MfmaBlocks<M, N, K, BLOCKS, T>`. CDNA3 and CDNA4.
///
/// Block b of the sums is block b of A times block b of B: no product of the whole matrices. The blocks lie side by side:
/// block b of A and B is columns `K b` to `K b + K - 1`, that of the sums columns `N b` to `N b + N - 1`.
#[derive(Clone, Copy, Debug)]
pub struct MfmaBlocks<const M: usize, const N: usize, const K: usize, const BLOCKS: usize, T>(
    std::marker::PhantomData<T>,
);

/// A fused multiply-add of one thread: the atom of 1 x 1 x 1 for types that have no matrix instruction.
#[derive(Clone, Copy, Debug)]
pub struct ScalarFma<T>(std::marker::PhantomData<T>);

/// Names the instructions that read `F32` as TF32 (8 bits of exponent, 10 of mantissa), ignoring the low bits: `tf32`
/// on NVIDIA, `xf32` on AMD.
#[derive(Clone, Copy, Debug)]
pub struct Tf32;

/// Rows of 16-bit floats, for `F16` and `BF16` alike, so that generic kernels need no further bound.
macro_rules! halves {
    ($($atom:ident<$($number:literal),*> $($again:ident)? = |$element:ident, $kind:ident| $spec:expr;)*) => { $(
        impl<T: MmaElement> MmaAtom for $atom<$($number,)* T $(, $again)?> {
            type A = T;
            type B = T;
            type C = F32;
            const SPEC: MmaSpec = {
                let ($element, $kind) = (T::TYPE, T::KIND);
                $spec
            };
        }
    )* };
}

halves! {
    MmaSync<16, 8, 16> T = |e, kind| mma_16x8x16(e, kind);
    MmaSync<16, 8, 8> T = |e, kind| mma_16x8x8(e, kind);
    Mfma<32, 32, 8> T = |e, kind| mfma_32x32x8(e, kind);
    Mfma<16, 16, 16> T = |e, kind| mfma_16x16x16(e, kind);
    Mfma<32, 32, 16> T = |e, kind| mfma_32x32x16(e, e, ScalarType::F32, kind, Chips::AmdOnly(950));
    Mfma<16, 16, 32> T = |e, kind| mfma_16x16x32(e, e, ScalarType::F32, kind, Chips::AmdOnly(950));
    MfmaBlocks<32, 32, 4, 2> = |e, kind| mfma_32x32x4_2(e, ScalarType::F32, kind);
    MfmaBlocks<16, 16, 4, 4> = |e, kind| mfma_16x16x4_4(e, ScalarType::F32, kind);
    MfmaBlocks<4, 4, 4, 16> = |e, kind| mfma_4x4x4_16(e, ScalarType::F32, kind);
}

/// Rows of other elements.
macro_rules! rows {
    ($($atom:ty: $a:ident $b:ident $c:ident = $spec:expr;)*) => { $(
        impl MmaAtom for $atom {
            type A = $a;
            type B = $b;
            type C = $c;
            const SPEC: MmaSpec = $spec;
        }
    )* };
}

/// Rows of 8-bit floats in all four mixtures.
macro_rules! eighths {
    ($($a:ident $b:ident $kind:literal;)*) => { rows! { $(
        MmaSync<16, 8, 32, $a, $b>: $a $b F32 = mma_16x8x32($a::TYPE, $b::TYPE, ScalarType::F32, $kind, 89);
        // CDNA3 reads the encodings of these instructions as FNUZ, which Lacewing has no type for.
        Mfma<32, 32, 16, $a, $b>: $a $b F32 =
            mfma_32x32x16($a::TYPE, $b::TYPE, ScalarType::F32, $kind, Chips::AmdOnly(950));
        Mfma<16, 16, 32, $a, $b>: $a $b F32 =
            mfma_16x16x32($a::TYPE, $b::TYPE, ScalarType::F32, $kind, Chips::AmdOnly(950));
        Mfma<32, 32, 64, $a, $b>: $a $b F32 = mfma_32x32x64($a::TYPE, $b::TYPE, $kind);
        Mfma<16, 16, 128, $a, $b>: $a $b F32 = mfma_16x16x128($a::TYPE, $b::TYPE, $kind);
    )* } };
}

eighths! {
    F8E4M3 F8E4M3 "e4m3.e4m3";
    F8E4M3 F8E5M2 "e4m3.e5m2";
    F8E5M2 F8E4M3 "e5m2.e4m3";
    F8E5M2 F8E5M2 "e5m2.e5m2";
}

rows! {
    MmaSync<16, 8, 8, Tf32>: F32 F32 F32 = MMA_16X8X8_TF32;
    Mfma<32, 32, 16, I8>: I8 I8 I32 =
        mfma_32x32x16(ScalarType::I8, ScalarType::I8, ScalarType::I32, "s8", Chips::Amd);
    Mfma<16, 16, 32, I8>: I8 I8 I32 =
        mfma_16x16x32(ScalarType::I8, ScalarType::I8, ScalarType::I32, "s8", Chips::Amd);
    Mfma<32, 32, 32, I8>: I8 I8 I32 = MFMA_32X32X32_I8;
    Mfma<16, 16, 64, I8>: I8 I8 I32 = MFMA_16X16X64_I8;
    Mfma<32, 32, 2, F32>: F32 F32 F32 = MFMA_32X32X2_F32;
    Mfma<16, 16, 4, F32>: F32 F32 F32 = MFMA_16X16X4_F32;
    Mfma<16, 16, 4, F64>: F64 F64 F64 = MFMA_16X16X4_F64;
    Mfma<32, 32, 4, Tf32>: F32 F32 F32 = MFMA_32X32X4_XF32;
    Mfma<16, 16, 8, Tf32>: F32 F32 F32 = MFMA_16X16X8_XF32;
    MmaSync<16, 8, 16, F16, F16, F16>: F16 F16 F16 = with_half_sums(mma_16x8x16(ScalarType::F16, "f16"));
    MmaSync<16, 8, 8, F16, F16, F16>: F16 F16 F16 = with_half_sums(mma_16x8x8(ScalarType::F16, "f16"));
    MmaSync<16, 8, 4, Tf32>: F32 F32 F32 = MMA_16X8X4_TF32;
    MmaSync<8, 8, 4, F64>: F64 F64 F64 = MMA_8X8X4_F64;
    MfmaBlocks<32, 32, 4, 2, I8>: I8 I8 I32 = mfma_32x32x4_2(ScalarType::I8, ScalarType::I32, "s8");
    MfmaBlocks<16, 16, 4, 4, I8>: I8 I8 I32 = mfma_16x16x4_4(ScalarType::I8, ScalarType::I32, "s8");
    MfmaBlocks<4, 4, 4, 16, I8>: I8 I8 I32 = mfma_4x4x4_16(ScalarType::I8, ScalarType::I32, "s8");
    MfmaBlocks<32, 32, 1, 2, F32>: F32 F32 F32 = mfma_32x32x1_2(ScalarType::F32, ScalarType::F32, "f32");
    MfmaBlocks<16, 16, 1, 4, F32>: F32 F32 F32 = mfma_16x16x1_4(ScalarType::F32, ScalarType::F32, "f32");
    MfmaBlocks<4, 4, 1, 16, F32>: F32 F32 F32 = mfma_4x4x1_16(ScalarType::F32, ScalarType::F32, "f32");
    MfmaBlocks<4, 4, 4, 4, F64>: F64 F64 F64 = MFMA_4X4X4_4_F64;
    ScalarFma<F32>: F32 F32 F32 = fma(ScalarType::F32, "f32");
    ScalarFma<F64>: F64 F64 F64 = fma(ScalarType::F64, "f64");
}

/// Rows of integers of 8 bits, in all mixtures of signs.
macro_rules! bytes {
    ($($a:ident $b:ident $kind:literal;)*) => { rows! { $(
        MmaSync<16, 8, 32, $a, $b>: $a $b I32 = mma_16x8x32($a::TYPE, $b::TYPE, ScalarType::I32, $kind, 80);
        MmaSync<16, 8, 16, $a, $b>: $a $b I32 = mma_16x8x16_int8($a::TYPE, $b::TYPE, $kind);
        MmaSync<8, 8, 16, $a, $b>: $a $b I32 = mma_8x8x16_int8($a::TYPE, $b::TYPE, $kind);
    )* } };
}

bytes! {
    I8 I8 "s8";
    U8 U8 "u8";
    I8 U8 "s8.u8";
    U8 I8 "u8.s8";
}

macro_rules! table {
    ($($atom:ty),* $(,)?) => {
        /// Every matrix instruction of one warp.
        ///
        /// Left out, of `mma.sync`: `m8n8k4` of f16, which is made for sm_70; `m16n8k16` and sums of f16 for 8-bit floats,
        /// which need PTX 8.7 (Lacewing emits 8.4 for sm_90a, for older drivers); `m16n8k4` to `k16` of f64, which LLVM
        /// does not have; elements of 4 and 1 bits, and block scales. Of MFMA: 8-bit floats of CDNA3, which are FNUZ; the
        /// 6- and 4-bit elements and block scales of CDNA4; sparse products (`smfmac`).
        pub static MMA_TABLE: &[MmaSpec] = &[$(<$atom as MmaAtom>::SPEC),*];
    };
}

table! {
    MmaSync<16, 8, 16, F16>, MmaSync<16, 8, 16, BF16>,
    MmaSync<16, 8, 8, F16>, MmaSync<16, 8, 8, BF16>, MmaSync<16, 8, 8, Tf32>,
    MmaSync<16, 8, 16, F16, F16, F16>, MmaSync<16, 8, 8, F16, F16, F16>, MmaSync<16, 8, 4, Tf32>, MmaSync<8, 8, 4, F64>,
    MmaSync<16, 8, 32, I8>, MmaSync<16, 8, 32, U8>, MmaSync<16, 8, 32, I8, U8>, MmaSync<16, 8, 32, U8, I8>,
    MmaSync<16, 8, 16, I8>, MmaSync<16, 8, 16, U8>, MmaSync<16, 8, 16, I8, U8>, MmaSync<16, 8, 16, U8, I8>,
    MmaSync<8, 8, 16, I8>, MmaSync<8, 8, 16, U8>, MmaSync<8, 8, 16, I8, U8>, MmaSync<8, 8, 16, U8, I8>,
    MmaSync<16, 8, 32, F8E4M3>, MmaSync<16, 8, 32, F8E4M3, F8E5M2>,
    MmaSync<16, 8, 32, F8E5M2, F8E4M3>, MmaSync<16, 8, 32, F8E5M2>,
    Mfma<32, 32, 8, F16>, Mfma<32, 32, 8, BF16>, Mfma<16, 16, 16, F16>, Mfma<16, 16, 16, BF16>,
    Mfma<32, 32, 16, F16>, Mfma<32, 32, 16, BF16>, Mfma<16, 16, 32, F16>, Mfma<16, 16, 32, BF16>,
    Mfma<32, 32, 16, F8E4M3>, Mfma<32, 32, 16, F8E4M3, F8E5M2>,
    Mfma<32, 32, 16, F8E5M2, F8E4M3>, Mfma<32, 32, 16, F8E5M2>,
    Mfma<16, 16, 32, F8E4M3>, Mfma<16, 16, 32, F8E4M3, F8E5M2>,
    Mfma<16, 16, 32, F8E5M2, F8E4M3>, Mfma<16, 16, 32, F8E5M2>,
    Mfma<32, 32, 64, F8E4M3>, Mfma<32, 32, 64, F8E4M3, F8E5M2>,
    Mfma<32, 32, 64, F8E5M2, F8E4M3>, Mfma<32, 32, 64, F8E5M2>,
    Mfma<16, 16, 128, F8E4M3>, Mfma<16, 16, 128, F8E4M3, F8E5M2>,
    Mfma<16, 16, 128, F8E5M2, F8E4M3>, Mfma<16, 16, 128, F8E5M2>,
    Mfma<32, 32, 16, I8>, Mfma<16, 16, 32, I8>, Mfma<32, 32, 32, I8>, Mfma<16, 16, 64, I8>,
    Mfma<32, 32, 2, F32>, Mfma<16, 16, 4, F32>, Mfma<16, 16, 4, F64>,
    Mfma<32, 32, 4, Tf32>, Mfma<16, 16, 8, Tf32>,
    MfmaBlocks<32, 32, 4, 2, F16>, MfmaBlocks<16, 16, 4, 4, F16>, MfmaBlocks<4, 4, 4, 16, F16>,
    MfmaBlocks<32, 32, 4, 2, BF16>, MfmaBlocks<16, 16, 4, 4, BF16>, MfmaBlocks<4, 4, 4, 16, BF16>,
    MfmaBlocks<32, 32, 4, 2, I8>, MfmaBlocks<16, 16, 4, 4, I8>, MfmaBlocks<4, 4, 4, 16, I8>,
    MfmaBlocks<32, 32, 1, 2, F32>, MfmaBlocks<16, 16, 1, 4, F32>, MfmaBlocks<4, 4, 1, 16, F32>,
    MfmaBlocks<4, 4, 4, 4, F64>,
    ScalarFma<F32>, ScalarFma<F64>,
}

/// Atoms whose accumulators, side by side along n, are the A operand of a next product as they lie: each thread has
/// the same elements. `D = A B` then gives `D` rounded to `Self::A`, with no exchange between threads.
///
/// It is so where the layouts agree, which a test compares for every pair of the table.
#[diagnostic::on_unimplemented(
    message = "the accumulators of `{Self}` do not lie as its A operand does",
    label = "this atom's C cannot become an A without moving data between threads",
    note = "`MmaSync<16, 8, 16, T>` and `<16, 8, 8, T>` allow it; on AMD compute the transposed product and use `to_b`"
)]
pub trait AccumulatorAsA: MmaAtom {}
impl<T: MmaElement> AccumulatorAsA for MmaSync<16, 8, 16, T, T> {}
impl<T: MmaElement> AccumulatorAsA for MmaSync<16, 8, 8, T, T> {}
impl AccumulatorAsA for MmaSync<16, 8, 16, F16, F16, F16> {}
impl AccumulatorAsA for MmaSync<16, 8, 8, F16, F16, F16> {}

/// Atoms whose accumulators, one above the other along m, are the B operand of a next product as they lie.
#[diagnostic::on_unimplemented(
    message = "the accumulators of `{Self}` do not lie as its B operand does",
    label = "this atom's C cannot become a B without moving data between threads",
    note = "`Mfma<32, 32, 8, T>` and `<16, 16, 16, T>` allow it; on NVIDIA use `to_a`"
)]
pub trait AccumulatorAsB: MmaAtom {}
impl<T: MmaElement> AccumulatorAsB for Mfma<32, 32, 8, T, T> {}
impl<T: MmaElement> AccumulatorAsB for Mfma<16, 16, 16, T, T> {}
impl AccumulatorAsB for Mfma<16, 16, 4, F64> {}
