//! Operators, conversions and functions.

use lacewing::prelude::*;

use super::constructs;

#[kernel(block = [32, 1, 1])]
fn integer_operators<T: Int>(a: T, b: T, y: TensorMut<T, 1>) {
    let results = [a + b, a - b, a * b, a / b, a % b, a & b, a | b, a ^ b, a << b, a >> b, !a, a.max(b), a.min(b)];
    for (i, result) in constexpr(results.into_iter().enumerate()) {
        y.at(i).store(result);
    }
}

#[kernel(block = [32, 1, 1])]
fn float_operators<T: Float>(a: T, b: T, y: TensorMut<T, 1>) {
    let results =
        [a + b, a - b, a * b, a / b, a % b, -a, a.max(b), a.min(b), a.maxnum(b), a.minnum(b), a * 2.0, 1.0 - a];
    for (i, result) in constexpr(results.into_iter().enumerate()) {
        y.at(i).store(result);
    }
}

#[kernel(block = [32, 1, 1])]
fn assignment(n: I32, y: TensorMut<I32, 1>) {
    let mut a = n;
    a += 1;
    a <<= 3;
    a ^= n;
    y.at(0).store(-a.abs() + a.count_ones() - a.leading_zeros() * a.trailing_zeros());
}

#[kernel(block = [32, 1, 1])]
fn vectors(x: F16, y: TensorMut<F16, 1>) {
    let v = y.at(0).load_vec::<4>();
    let sum = (v * x + Vector::splat(x)).max(v).with(1, x);
    y.at(0).store_vec(sum.fma(2.0, v).gt(v).select(v, sum));
    y.at(0).store(sum.reduce(|a, b| a + b));
}

#[kernel(block = [32, 1, 1])]
fn integer_casts(a: I8, u: U8, n: I32, y: TensorMut<I64, 1>) {
    let results =
        [a.cast::<I64>(), u.cast(), n.cast(), n.cast::<I8>().cast(), n.cast::<U8>().cast(), n.cast::<U32>().cast()];
    for (i, result) in constexpr(results.into_iter().enumerate()) {
        y.at(i).store(result);
    }
}

#[kernel(block = [32, 1, 1])]
fn float_casts(x: F32, h: F16, b: BF16, d: F64, n: I32, u: U64, y: TensorMut<F32, 1>) {
    let results =
        [h.cast::<F32>(), b.cast(), d.cast(), n.cast(), u.cast(), x.cast::<I32>().cast(), x.cast::<U8>().cast()];
    let results =
        results.into_iter().chain([x.cast::<F16>().cast(), x.cast_rz::<F16>().cast(), h.cast::<BF16>().cast()]);
    for (i, result) in constexpr(results.enumerate()) {
        y.at(i).store(result);
    }
}

#[kernel(block = [32, 1, 1])]
fn narrow_float_casts(x: F32, h: F16, e: TensorMut<F8E4M3, 1>, f: TensorMut<F8E5M2, 1>) {
    e.at(0).store(x.cast());
    f.at(0).store(h.cast());
    e.at(4).store_vec(Vector::<F32, 4>::splat(x).cast());
    f.at(1).store((e.at(1).load().cast::<F32>() + f.at(2).load().cast::<F32>()).cast());
}

#[kernel(block = [32, 1, 1])]
fn bitcasts(x: F32, n: U32, y: TensorMut<F32, 1>) {
    y.at(0).store((x.bitcast::<U32>() | n).bitcast());
    y.at(1).store_vec(Vector::<U32, 1>::splat(n).bitcast::<F16, 2>().cast::<F32>());
}

#[kernel(block = [32, 1, 1])]
fn exact_math(x: F32, y: TensorMut<F32, 1>) {
    let exponential = [x.exp2(), x.exp(), x.log2(), x.log(), x.tanh(), x.erf(), x.sin(), x.cos()];
    let algebraic = [x.sqrt(), x.rsqrt(), x.rcp(), x.fma(2.0, x), x.abs(), x.copysign(x)];
    let rounded = [x.floor(), x.ceil(), x.round(), x.round_ties_even(), x.trunc()];
    for (i, result) in constexpr(exponential.into_iter().chain(algebraic).chain(rounded).enumerate()) {
        y.at(i).store(result);
    }
}

#[kernel(block = [32, 1, 1])]
fn fast_math(x: F32, y: TensorMut<F32, 1>) {
    let results =
        [x.exp2_fast(), x.exp_fast(), x.log2_fast(), x.log_fast(), x.rsqrt_fast(), x.tanh_fast(), x.rcp_fast()];
    for (i, result) in constexpr(results.into_iter().enumerate()) {
        y.at(i).store(result);
    }
}

#[kernel(block = [32, 1, 1])]
fn half_math(h: F16, d: F64, y: TensorMut<F16, 1>, z: TensorMut<F64, 1>) {
    y.at(0).store(h.exp2().max(h.rsqrt()));
    y.at(1).store(h.abs());
    z.at(0).store(d.sqrt().fma(2.0, 1.0).floor().abs());
}

constructs! {
    "operators" {
        of_i32: integer_operators::<I32>::new();
        of_u8: integer_operators::<U8>::new();
        of_f32: float_operators::<F32>::new();
        of_bf16: float_operators::<BF16>::new();
        op_assign: assignment::new();
        of_vectors: vectors::new();
    }
    "casts" {
        between_integers: integer_casts::new();
        between_floats: float_casts::new();
        to_8_bit_floats: narrow_float_casts::new();
        of_bits: bitcasts::new();
    }
    "math" {
        exact: exact_math::new();
        fast: fast_math::new();
        in_other_widths: half_math::new();
    }
}
