//! Generics, const generics, traits, impl blocks and `impl Trait` under the macros.

use half::{bf16, f16};
use lacewing::prelude::*;
use lacewing::runtime::ElementOf;

use super::run;

/// What to do with a pair of values: chosen by type.
trait Combine<T: Scalar> {
    const NAME: &'static str;

    fn combine(a: T, b: T) -> T;

    /// A default method is a helper like any other.
    #[device]
    fn twice(a: T, b: T) -> T {
        Self::combine(Self::combine(a, b), b)
    }
}

#[derive(Clone, Copy, Debug)]
struct Larger;
#[derive(Clone, Copy, Debug)]
struct Sum;

impl<T: Num> Combine<T> for Larger {
    const NAME: &'static str = "larger";

    #[device]
    fn combine(a: T, b: T) -> T {
        if a > b { a } else { b }
    }
}

impl<T: Num> Combine<T> for Sum {
    const NAME: &'static str = "sum";

    #[device]
    fn combine(a: T, b: T) -> T {
        let mut sum = a;
        sum += b;
        sum
    }

    #[device]
    fn twice(a: T, b: T) -> T {
        a + b + b
    }
}

#[kernel(block = [threads, 1, 1])]
fn rows<T, C, const N: usize>(#[comptime] threads: usize, x: Tensor<T, 2>, y: TensorMut<T, 1>)
where
    T: Num + lacewing::core::types::Num,
    C: Combine<T> + Clone + std::fmt::Debug + 'static,
{
    let row = thread_id(X);
    if row >= x.extent(0) {
        return;
    }
    let values: [T; N] = std::array::from_fn(|column| x.at((row, column)).load());
    let mut total = values[0];
    for value in constexpr(values.iter().skip(1)) {
        total = C::twice(total, *value);
    }
    if const_expr(C::NAME == "sum" && N > 2) {
        total = C::combine(total, total);
    }
    y.at(row).store(total);
}

fn rows_of<T, C, const N: usize>(x: &[T::Host]) -> Vec<T::Host>
where
    T: Num,
    T::Host: ElementOf<T>,
    C: Combine<T> + Clone + std::fmt::Debug + 'static,
{
    let count = x.len() / N;
    let mut results = super::devices().into_iter().map(|dev| {
        let x = dev.tensor_from_slice(x, [count, N]).unwrap();
        let mut y = dev.tensor_uninit::<T::Host, 1>([count]).unwrap();
        rows::<T, C, N>::new(32).grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
        y.to_vec().unwrap()
    });
    let first = results.next().unwrap();
    assert!(results.all(|other| other == first), "the devices differ");
    first
}

// F20
#[test]
fn a_kernel_is_generic_in_types_traits_and_numbers() {
    let x = [3, -1, 4, 1, -5, 9, 2, 6, 5, 3, 5, 8];
    let larger: Vec<i32> = x.chunks(3).map(|row| *row.iter().max().unwrap()).collect();
    assert_eq!(rows_of::<I32, Larger, 3>(&x), larger);
    let sums: Vec<i32> = x.chunks(4).map(|row| 2 * (row[0] + 2 * row[1..].iter().sum::<i32>())).collect();
    assert_eq!(rows_of::<I32, Sum, 4>(&x), sums);
    assert_eq!(rows_of::<U8, Sum, 2>(&[200, 100, 1, 2]), [200u8.wrapping_add(200), 5]);
    let halves = [1.5, -2.0, 0.25, 8.0];
    assert_eq!(rows_of::<F16, Larger, 2>(&halves.map(f16::from_f32)), [1.5, 8.0].map(f16::from_f32));
    assert_eq!(rows_of::<BF16, Sum, 2>(&halves.map(bf16::from_f32)), [-2.5, 16.25].map(bf16::from_f32));
    assert_eq!(rows_of::<F64, Sum, 2>(&[0.1, 0.2, 1.0, 2.0]), [0.1 + 0.2 + 0.2, 5.0]);
}

/// A running mean with its weight: methods in an impl block with generics of its own.
#[derive(Clone, Copy, Carried)]
struct Running<T: Float, const N: usize> {
    sums: [T; N],
    count: I32,
}

impl<T: Float, const N: usize> Running<T, N> {
    #[device]
    fn new(zero: T) -> Self {
        Running { sums: [zero; N], count: I32::from(0) }
    }

    #[device]
    fn add(&mut self, value: T) -> &mut Self {
        for power in range_constexpr(N) {
            let mut term = value;
            for _ in range_constexpr(power) {
                term *= value;
            }
            self.sums[power] += term;
        }
        self.count += 1;
        self
    }

    #[device]
    fn is_small(&self, than: impl Into<I32>) -> Bool {
        let than = than.into();
        self.count < than || self.sums[0] < 4.0
    }
}

/// `impl Trait` in and out; the closure is host code that makes kernel code.
#[device]
fn scaled<T: Float>(by: f32) -> impl Fn(T) -> T {
    move |value| value * by
}

#[device]
fn apply<T: Float>(value: T, f: impl Fn(T) -> T, times: I32) -> T {
    let mut value = value;
    for _ in range(times) {
        if value > 100.0 {
            return value;
        }
        value = f(value);
    }
    value
}

#[kernel(block = [32, 1, 1])]
fn moments<const N: usize>(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let mut running = Running::<F32, N>::new(F32::from(0.0));
    for k in range(0, x.at(i).load()) {
        running.add(k.cast::<F32>());
        if running.is_small(3) {
            running.add(F32::from(1.0)).add(2.0.into());
        }
    }
    let mut total = running.count.cast::<F32>();
    for sum in constexpr(running.sums) {
        total = total * 2.0 + sum;
    }
    y.at(i).store(apply(total, scaled(3.0), i % 4).cast::<I32>());
}

fn moments_on_host(n: i32, powers: usize, thread: i32) -> i32 {
    let (mut sums, mut count) = (vec![0.0f32; powers], 0);
    for k in 0..n {
        let mut add = |value: f32| {
            sums.iter_mut().enumerate().for_each(|(power, sum)| *sum += value.powi(power as i32 + 1));
            count += 1;
            count < 3 || sums[0] < 4.0
        };
        if add(k as f32) {
            add(1.0);
            add(2.0);
        }
    }
    let mut total = sums.iter().fold(count as f32, |total, sum| total * 2.0 + sum);
    for _ in 0..thread % 4 {
        if total > 100.0 {
            break;
        }
        total *= 3.0;
    }
    total as i32
}

// F20
#[test]
fn helpers_are_methods_of_generic_structs_and_take_closures() {
    let x: Vec<i32> = (0..32).map(|i| i / 4).collect();
    let expected = |powers| x.iter().zip(0..).map(|(n, i)| moments_on_host(*n, powers, i)).collect::<Vec<i32>>();
    assert_eq!(run(&moments::<1>::new(), 1, &x, &[0; 32]), expected(1));
    assert_eq!(run(&moments::<3>::new(), 1, &x, &[0; 32]), expected(3));
}

/// Adds up to `depth` terms: host recursion that ends at a compile-time condition.
#[device]
fn nested(depth: usize, v: I32) -> I32 {
    if const_expr(depth == 0) {
        return v;
    }
    if v % 2 == 0 {
        return nested(depth - 1, v / 2 + 1);
    }
    nested(depth - 1, v * 3 + 1)
}

#[kernel(block = [32, 1, 1])]
fn recursive(#[comptime] depth: usize, x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    y.at(i).store(nested(depth, x.at(i).load()));
}

// F20
#[test]
fn a_helper_calls_itself_to_a_depth_known_when_tracing() {
    let x: Vec<i32> = (0..32).collect();
    for depth in [0, 1, 5] {
        let expected = x.iter().map(|x| (0..depth).fold(*x, |v, _| if v % 2 == 0 { v / 2 + 1 } else { v * 3 + 1 }));
        assert_eq!(run(&recursive::new(depth), 1, &x, &[0; 32]), expected.collect::<Vec<_>>());
    }
}
