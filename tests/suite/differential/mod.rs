//! Random programs mean the same as kernels and as plain Rust.
//!
//! `corpus.rs` holds functions that `generate.rs` wrote once: loops of every kind, branches, jumps out of
//! both, state that is carried, shadowed, destructured and borrowed. They are compiled twice, as helpers
//! of a kernel and as functions of the host, and run for every lane of a warp with other inputs. So are those of
//! `odd.rs`, which was written by hand.

mod generate;

use lacewing::prelude::*;

/// How many functions each corpus has.
const FUNCTIONS: [usize; 2] = [60, 18];

/// Numbers that compile-time loops read.
const WEIGHTS: [i32; 3] = [1, 5, 9];

/// The corpus in the kernel language.
mod kernels {
    #![allow(warnings, clippy::all, reason = "the programs are random: they hold code that is never reached or used")]

    use lacewing::prelude::*;

    use super::WEIGHTS;

    macro_rules! corpus {
        ($(fn $name:ident $arguments:tt -> I32 $body:tt)*) => {
            $( #[device] fn $name $arguments -> I32 $body )*

            /// By number.
            pub const ALL: &[fn(I32, I32, &mut I32) -> I32] = &[$($name),*];
        };
    }

    /// Helpers of the functions by hand.
    #[device]
    fn small(x: I32) -> I32 {
        if x < 0 {
            return I32::from(0);
        }
        for i in range(0, 3) {
            if i * 2 > x {
                return i;
            }
        }
        I32::from(3)
    }

    #[device]
    fn twice<F: Fn(I32) -> I32>(f: F, x: I32) -> I32 {
        if x > 2 {
            return f(x);
        }
        f(f(x))
    }

    #[device]
    fn clamp_to<const N: usize>(limits: [I32; N], x: I32) -> I32 {
        for limit in constexpr(limits) {
            if x > limit {
                return limit;
            }
        }
        x
    }

    #[derive(Clone, Copy, Carried)]
    struct Pair {
        first: I32,
        second: [I32; 2],
    }

    #[device]
    fn some_if(known: bool, value: I32) -> Option<I32> {
        if const_expr(known) { Some(value) } else { None }
    }

    pub mod random {
        use super::*;

        include!("corpus.rs");
    }

    pub mod odd {
        use super::*;

        include!("odd.rs");
    }
}

/// The corpus as plain Rust, on integers that wrap.
mod host {
    #![allow(warnings, clippy::all, reason = "the programs are random: they hold code that is never reached or used")]

    use super::WEIGHTS;
    use super::wrapping::{I32, range};

    macro_rules! corpus {
        ($(fn $name:ident $arguments:tt -> I32 $body:tt)*) => {
            $( fn $name $arguments -> I32 $body )*

            /// By number.
            pub const ALL: &[fn(I32, I32, &mut I32) -> I32] = &[$($name),*];
        };
    }

    #[derive(Clone, Copy)]
    struct Pair {
        first: I32,
        second: [I32; 2],
    }

    fn some_if(known: bool, value: I32) -> Option<I32> {
        known.then_some(value)
    }

    fn const_expr(condition: bool) -> bool {
        condition
    }

    fn range_constexpr(passes: usize) -> std::ops::Range<usize> {
        0..passes
    }

    fn constexpr<I: IntoIterator>(iterator: I) -> I::IntoIter {
        iterator.into_iter()
    }

    fn small(x: I32) -> I32 {
        I32(if x.0 < 0 { 0 } else { (0..3).find(|i| i * 2 > x.0).unwrap_or(3) })
    }

    fn twice<F: Fn(I32) -> I32>(f: F, x: I32) -> I32 {
        if x > 2 { f(x) } else { f(f(x)) }
    }

    fn clamp_to<const N: usize>(limits: [I32; N], x: I32) -> I32 {
        limits.into_iter().find(|limit| x > *limit).unwrap_or(x)
    }

    pub mod random {
        use super::*;

        include!("corpus.rs");
    }

    pub mod odd {
        use super::*;

        include!("odd.rs");
    }
}

/// An `i32` that wraps and mixes with literals, as the kernel language's does.
mod wrapping {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct I32(pub i32);

    macro_rules! operators {
        ($($trait:ident $method:ident $assign:ident $assign_method:ident $of:expr;)*) => { $(
            impl std::ops::$trait for I32 {
                type Output = I32;
                fn $method(self, other: I32) -> I32 {
                    I32(($of)(self.0, other.0))
                }
            }
            impl std::ops::$trait<i32> for I32 {
                type Output = I32;
                fn $method(self, other: i32) -> I32 {
                    I32(($of)(self.0, other))
                }
            }
            impl std::ops::$assign for I32 {
                fn $assign_method(&mut self, other: I32) {
                    self.0 = ($of)(self.0, other.0);
                }
            }
            impl std::ops::$assign<i32> for I32 {
                fn $assign_method(&mut self, other: i32) {
                    self.0 = ($of)(self.0, other);
                }
            }
        )* };
    }
    macro_rules! literals_on_the_left {
        ($($trait:ident $method:ident;)*) => { $(
            impl std::ops::$trait<I32> for i32 {
                type Output = I32;
                fn $method(self, other: I32) -> I32 {
                    std::ops::$trait::$method(I32(self), other)
                }
            }
        )* };
    }
    literals_on_the_left! {
        Add add; Sub sub; Mul mul; Div div; Rem rem; BitAnd bitand; BitOr bitor; BitXor bitxor; Shl shl; Shr shr;
    }

    impl std::ops::Neg for I32 {
        type Output = I32;
        fn neg(self) -> I32 {
            I32(self.0.wrapping_neg())
        }
    }

    impl std::ops::Not for I32 {
        type Output = I32;
        fn not(self) -> I32 {
            I32(!self.0)
        }
    }

    impl I32 {
        pub fn abs(self) -> I32 {
            I32(self.0.wrapping_abs())
        }
        pub fn max(self, other: I32) -> I32 {
            I32(self.0.max(other.0))
        }
        pub fn min(self, other: I32) -> I32 {
            I32(self.0.min(other.0))
        }
    }

    operators! {
        Add add AddAssign add_assign i32::wrapping_add;
        Sub sub SubAssign sub_assign i32::wrapping_sub;
        Mul mul MulAssign mul_assign i32::wrapping_mul;
        BitAnd bitand BitAndAssign bitand_assign std::ops::BitAnd::bitand;
        BitOr bitor BitOrAssign bitor_assign std::ops::BitOr::bitor;
        BitXor bitxor BitXorAssign bitxor_assign std::ops::BitXor::bitxor;
        Div div DivAssign div_assign i32::wrapping_div;
        Rem rem RemAssign rem_assign i32::wrapping_rem;
        Shl shl ShlAssign shl_assign |x: i32, y: i32| x.wrapping_shl(y as u32);
        Shr shr ShrAssign shr_assign |x: i32, y: i32| x.wrapping_shr(y as u32);
    }

    impl PartialEq<i32> for I32 {
        fn eq(&self, other: &i32) -> bool {
            self.0 == *other
        }
    }

    impl PartialOrd<i32> for I32 {
        fn partial_cmp(&self, other: &i32) -> Option<std::cmp::Ordering> {
            self.0.partial_cmp(other)
        }
    }

    /// As the kernel language's `range(lo, hi)`.
    pub fn range(lo: i32, hi: I32) -> impl Iterator<Item = I32> {
        (lo..hi.0).map(I32)
    }
}

/// Runs one function of the corpus for a pair of inputs a thread; `y` gets its result and its log.
#[kernel(block = [64, 1, 1])]
fn one_of_the_corpus(#[comptime] by_hand: bool, #[comptime] function: usize, x: Tensor<I32, 2>, y: TensorMut<I32, 2>) {
    let i = thread_id(X);
    let mut log = I32::from(0);
    let corpus = if const_expr(by_hand) { kernels::odd::ALL } else { kernels::random::ALL };
    let result = corpus[function](x.at((i, 0)).load(), x.at((i, 1)).load(), &mut log);
    y.at((i, 0)).store(result);
    y.at((i, 1)).store(log);
}

/// Inputs of the lanes: all small pairs, then ends of the type.
fn inputs() -> Vec<[i32; 2]> {
    let mut inputs: Vec<[i32; 2]> = (0..56).map(|i| [i % 8 - 2, i / 8 - 1]).collect();
    inputs.extend([[10, 3], [-7, 100], [i32::MAX, 1], [i32::MIN, -1], [12345, -6789], [0, i32::MAX], [3, 3], [-1, -1]]);
    inputs
}

fn computes_what_it_computes_on_the_host(
    by_hand: bool,
    corpus: &[fn(wrapping::I32, wrapping::I32, &mut wrapping::I32) -> wrapping::I32],
) {
    let inputs = inputs();
    for dev in crate::frontend::devices() {
        let x = dev.tensor_from_slice(inputs.as_flattened(), [64, 2]).unwrap();
        for (number, function) in corpus.iter().enumerate() {
            let mut y = dev.tensor_uninit::<i32, 2>([64, 2]).unwrap();
            let ran = one_of_the_corpus::new(by_hand, number).grid([1, 1, 1]).launch(&dev, (&x, &mut y));
            ran.unwrap_or_else(|error| panic!("f{number} on {dev}: {error}"));
            let found = y.to_vec().unwrap();
            for ([a, b], found) in inputs.iter().zip(found.chunks(2)) {
                let mut log = wrapping::I32(0);
                let result = function(wrapping::I32(*a), wrapping::I32(*b), &mut log);
                assert_eq!(found, [result.0, log.0], "f{number}({a}, {b}) on {dev}: result and log");
            }
        }
    }
}

#[test]
fn random_programs_compute_what_they_compute_on_the_host() {
    assert_eq!((kernels::random::ALL.len(), host::random::ALL.len()), (FUNCTIONS[0], FUNCTIONS[0]));
    computes_what_it_computes_on_the_host(false, host::random::ALL);
}

#[test]
fn odd_programs_compute_what_they_compute_on_the_host() {
    assert_eq!((kernels::odd::ALL.len(), host::odd::ALL.len()), (FUNCTIONS[1], FUNCTIONS[1]));
    computes_what_it_computes_on_the_host(true, host::odd::ALL);
}
