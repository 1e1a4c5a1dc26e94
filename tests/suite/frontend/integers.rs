//! Integers of every width and sign, operator by operator, against Rust's wrapping operations.

use lacewing::prelude::*;
use lacewing::runtime::emulator::ReportKind;

use super::{devices, line_of, report};

/// Values at the ends, around zero, and with single bits.
macro_rules! edges {
    ($int:ident) => {{
        let bits = $int::BITS;
        let mut edges = vec![$int::MIN, $int::MIN + 1, $int::MAX, $int::MAX - 1, $int::MAX / 2, $int::MIN / 2];
        edges.extend([0, 1, 2, 3, 5, 7, 10, 100, bits as $int, (bits - 1) as $int, (bits + 1) as $int]);
        edges.extend([0 as $int, 1, 2, 3, 7, 10].map(|small| (0 as $int).wrapping_sub(small)));
        edges.extend([0x55u8 as $int, 0xaau8 as $int, (1 as $int) << (bits / 2), 0x0123_4567_89ab_cdefu64 as $int]);
        edges.sort_unstable();
        edges.dedup();
        edges
    }};
}

macro_rules! integer_type {
    ($module:ident $ty:ident $int:ident { $($signed:tt)* }) => {
        mod $module {
            use super::devices;
            use lacewing::prelude::*;

            /// The operators whose result has the type of the operands.
            #[kernel(block = [64, 1, 1])]
            pub fn arithmetic(a: Tensor<$ty, 1>, b: Tensor<$ty, 1>, y: TensorMut<$ty, 2>) {
                let i = block_id(X) * block_dim(X) + thread_id(X);
                if i >= a.extent(0) {
                    return;
                }
                let (a, b) = (a.at(i).load(), b.at(i).load());
                let mut assigned = a;
                assigned += b;
                assigned *= a;
                assigned -= b;
                assigned ^= a;
                assigned |= b;
                assigned <<= 3;
                assigned >>= 2;
                assigned &= a;
                let results = [
                    a + b, a - b, a * b, a & b, a | b, a ^ b, a << b, a >> b, a.max(b), a.min(b), !a, assigned,
                    a + 3, 3 - a, a * 5, 100 - a, a / 3, a % 3, a << 2, a >> 1,
                    a.count_ones().cast(), a.leading_zeros().cast(), a.trailing_zeros().cast(),
                ];
                for (op, result) in constexpr(results.into_iter().enumerate()) {
                    y.at((op, i)).store(result);
                }
                if b != 0 {
                    y.at((23, i)).store(a / b);
                    y.at((24, i)).store(a % b);
                    let mut assigned = a;
                    assigned /= b;
                    assigned %= b;
                    y.at((25, i)).store(assigned);
                }
            }

            fn arithmetic_on_host(a: $int, b: $int) -> [$int; 26] {
                let assigned = a.wrapping_add(b).wrapping_mul(a).wrapping_sub(b) ^ a | b;
                let assigned = (assigned << 3) >> 2 & a;
                let nonzero = |value: &dyn Fn() -> $int| if b == 0 { 0 } else { value() };
                [
                    a.wrapping_add(b), a.wrapping_sub(b), a.wrapping_mul(b), a & b, a | b, a ^ b,
                    a.wrapping_shl(b as u32), a.wrapping_shr(b as u32), a.max(b), a.min(b), !a, assigned,
                    a.wrapping_add(3), (3 as $int).wrapping_sub(a), a.wrapping_mul(5), (100 as $int).wrapping_sub(a),
                    a / 3, a % 3, a << 2, a >> 1,
                    a.count_ones() as $int, a.leading_zeros() as $int, a.trailing_zeros() as $int,
                    nonzero(&|| a.wrapping_div(b)), nonzero(&|| a.wrapping_rem(b)),
                    nonzero(&|| a.wrapping_div(b).wrapping_rem(b)),
                ]
            }

            /// The comparisons, as bits of one number, and what literals compare to.
            #[kernel(block = [64, 1, 1])]
            pub fn comparisons(a: Tensor<$ty, 1>, b: Tensor<$ty, 1>, y: TensorMut<I32, 1>) {
                let i = block_id(X) * block_dim(X) + thread_id(X);
                if i >= a.extent(0) {
                    return;
                }
                let (a, b) = (a.at(i).load(), b.at(i).load());
                let found = [a < b, a <= b, a > b, a >= b, a == b, a != b, a < 100, 100 < a, a == 0, 1 != a];
                let mut bits = I32::from(0);
                for (bit, found) in constexpr(found.into_iter().enumerate()) {
                    bits += found.select(I32::from(1 << bit), I32::from(0));
                }
                y.at(i).store(bits);
            }

            fn comparisons_on_host(a: $int, b: $int) -> i32 {
                let found = [a < b, a <= b, a > b, a >= b, a == b, a != b, a < 100, 100 < a, a == 0, 1 != a];
                found.iter().enumerate().map(|(bit, found)| i32::from(*found) << bit).sum()
            }

            #[test]
            fn operators_are_those_of_rust() {
                let edges = edges!($int);
                let pairs: Vec<[$int; 2]> = edges.iter().flat_map(|a| edges.iter().map(|b| [*a, *b])).collect();
                let [a, b] = [0, 1].map(|side| pairs.iter().map(|pair| pair[side]).collect::<Vec<$int>>());
                let n = pairs.len();
                for dev in devices() {
                    let (a, b) = (dev.tensor_from_slice(&a, [n]).unwrap(), dev.tensor_from_slice(&b, [n]).unwrap());
                    let mut y = dev.tensor_zeros::<$int, 2>([26, n]).unwrap();
                    let grid = [n.div_ceil(64), 1, 1];
                    arithmetic::new().grid(grid).launch(&dev, (&a, &b, &mut y)).unwrap();
                    let mut bits = dev.tensor_zeros::<i32, 1>([n]).unwrap();
                    comparisons::new().grid(grid).launch(&dev, (&a, &b, &mut bits)).unwrap();
                    let (y, bits) = (y.to_vec().unwrap(), bits.to_vec().unwrap());
                    for (i, [a, b]) in pairs.iter().enumerate() {
                        let found: [$int; 26] = std::array::from_fn(|op| y[op * n + i]);
                        assert_eq!(found, arithmetic_on_host(*a, *b), "{dev}: {a} and {b}");
                        assert_eq!(bits[i], comparisons_on_host(*a, *b), "{dev}: {a} and {b}");
                    }
                }
            }

            $($signed)*
        }
    };
}

/// What only signed types have.
macro_rules! signed_type {
    ($module:ident $ty:ident $int:ident) => {
        integer_type! { $module $ty $int {
            #[kernel(block = [64, 1, 1])]
            fn signs(x: Tensor<$ty, 1>, y: TensorMut<$ty, 2>) {
                let i = thread_id(X);
                if i < x.extent(0) {
                    let x = x.at(i).load();
                    y.at((i, 0)).store(-x);
                    y.at((i, 1)).store(x.abs());
                }
            }

            #[test]
            fn signs_are_those_of_rust() {
                let edges = edges!($int);
                for dev in devices() {
                    let x = dev.tensor_from_slice(&edges, [edges.len()]).unwrap();
                    let mut y = dev.tensor_uninit::<$int, 2>([edges.len(), 2]).unwrap();
                    signs::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
                    let expected: Vec<_> = edges.iter().flat_map(|x| [x.wrapping_neg(), x.wrapping_abs()]).collect();
                    assert_eq!(y.to_vec().unwrap(), expected, "{dev}");
                }
            }
        } }
    };
}

// F18
signed_type! { i8_values I8 i8 }
signed_type! { i16_values I16 i16 }
signed_type! { i32_values I32 i32 }
signed_type! { i64_values I64 i64 }
integer_type! { u8_values U8 u8 {} }
integer_type! { u16_values U16 u16 {} }
integer_type! { u32_values U32 u32 {} }
integer_type! { u64_values U64 u64 {} }

/// One value converted to every type of number.
#[kernel(block = [64, 1, 1])]
fn conversions<A: Num>(
    x: Tensor<A, 1>,
    to_i8: TensorMut<I8, 1>,
    to_i16: TensorMut<I16, 1>,
    to_i32: TensorMut<I32, 1>,
    to_i64: TensorMut<I64, 1>,
    to_u8: TensorMut<U8, 1>,
    to_u16: TensorMut<U16, 1>,
    to_u32: TensorMut<U32, 1>,
    to_u64: TensorMut<U64, 1>,
    to_f32: TensorMut<F32, 1>,
    to_f64: TensorMut<F64, 1>,
) {
    let i = thread_id(X);
    if i < x.extent(0) {
        let x = x.at(i).load();
        to_i8.at(i).store(x.cast());
        to_i16.at(i).store(x.cast());
        to_i32.at(i).store(x.cast());
        to_i64.at(i).store(x.cast());
        to_u8.at(i).store(x.cast());
        to_u16.at(i).store(x.cast());
        to_u32.at(i).store(x.cast());
        to_u64.at(i).store(x.cast());
        to_f32.at(i).store(x.cast());
        to_f64.at(i).store(x.cast());
    }
}

macro_rules! conversions {
    ($($name:ident: $from:ident $host:ident, $values:expr;)*) => { $(
        // F18
        #[test]
        fn $name() {
            let values: Vec<$host> = $values;
            let n = values.len();
            assert!(n <= 64);
            for dev in devices() {
                let x = dev.tensor_from_slice(&values, [n]).unwrap();
                conversions!(@run dev x values n $from $host i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
            }
        }
    )* };
    (@run $dev:ident $x:ident $values:ident $n:ident $from:ident $host:ident $($to:ident)*) => {
        $( let mut $to = $dev.tensor_uninit::<$to, 1>([$n]).unwrap(); )*
        let arguments = (&$x, $(&mut $to),*);
        conversions::<$from>::new().grid([1, 1, 1]).launch(&$dev, arguments).unwrap();
        $(
            for (from, found) in $values.iter().zip($to.to_vec().unwrap()) {
                let expected = *from as $to;
                // NaN is NaN; its bits are not promised.
                let same = found.to_ne_bytes() == expected.to_ne_bytes() || (found != found && expected != expected);
                assert!(same, "{}: {from} as {}: {found}, not {expected}", $dev, stringify!($to));
            }
        )*
    };
}

/// Floats around the ends of every integer type, and those that are no number.
macro_rules! float_edges {
    ($float:ident) => {{
        let mut edges = vec![0.0, -0.0, 0.5, -0.5, 0.99, 1.0, -1.0, 1.5, 2.5, -2.5, 1e-30, 3.3, 200.7, -200.7, 1e5];
        edges.extend([$float::NAN, $float::INFINITY, $float::NEG_INFINITY, $float::MAX, $float::MIN]);
        for power in [7, 8, 15, 16, 31, 32, 63, 64] {
            let end = (2.0 as $float).powi(power);
            edges.extend([end, -end, end.next_down(), -(end.next_up())]);
        }
        edges
    }};
}

conversions! {
    i8_converts_as_in_rust: I8 i8, edges!(i8);
    i16_converts_as_in_rust: I16 i16, edges!(i16);
    i32_converts_as_in_rust: I32 i32, edges!(i32);
    i64_converts_as_in_rust: I64 i64, edges!(i64);
    u8_converts_as_in_rust: U8 u8, edges!(u8);
    u16_converts_as_in_rust: U16 u16, edges!(u16);
    u32_converts_as_in_rust: U32 u32, edges!(u32);
    u64_converts_as_in_rust: U64 u64, edges!(u64);
    f32_converts_as_in_rust: F32 f32, float_edges!(f32);
    f64_converts_as_in_rust: F64 f64, float_edges!(f64);
}

#[kernel(block = [32, 1, 1])]
fn divided(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let divisor = x.at(i).load();
    if divisor >= 0 {
        y.at(i).store(100 / divisor);
    }
}

#[kernel(block = [32, 1, 1])]
fn remainder(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    y.at(i).store(i % x.at(i).load());
}

// F18: where Rust panics, the emulator reports; threads that do not divide are not asked.
#[test]
fn a_division_by_zero_is_reported_at_its_line() {
    let mut x = [7; 32];
    (x[3], x[9], x[17]) = (-1, 0, 0);
    let found = report(&divided::new(), &x, &[0; 32]);
    assert_eq!((found.kind, found.thread), (ReportKind::DivisionByZero, Some([9, 0, 0])), "{found}");
    assert_eq!(line_of(&found.location), "y.at(i).store(100 / divisor);");
    let found = report(&remainder::new(), &x, &[0; 32]);
    assert_eq!((found.kind, found.thread), (ReportKind::DivisionByZero, Some([9, 0, 0])), "{found}");
    assert_eq!(line_of(&found.location), "y.at(i).store(i % x.at(i).load());");
}
