//! The arithmetic that the expansions of [`super::math`] and [`super::fp8`] are written in.
//!
//! Each expansion is written once over [`Numeric`]. The lowering implements it by emitting `arith`
//! ops; the tests implement it on host numbers and measure the error over the whole range.

/// Operations on `f32`, `i32` and `i64` values, and conditions, of one representation.
///
/// Floating operations round to nearest even, once; nothing is contracted. Integer arithmetic wraps.
pub(crate) trait Numeric {
    /// A number or a condition.
    type Value: Copy;
    /// Why an operation could not be emitted.
    type Error;

    /// An `f32` constant.
    fn float(&self, x: f32) -> Result<Self::Value, Self::Error>;
    /// An `i32` constant.
    fn int(&self, x: i32) -> Result<Self::Value, Self::Error>;
    /// An `i64` constant.
    fn long(&self, x: i64) -> Result<Self::Value, Self::Error>;

    /// `a + b`
    fn add(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a - b`
    fn sub(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a * b`
    fn mul(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a / b`
    fn div(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a * b + c`, rounded once
    fn fma(&self, a: Self::Value, b: Self::Value, c: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `-a`
    fn neg(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `|a|`
    fn abs(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// The magnitude of `a` with the sign of `b`.
    fn copysign(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// To the nearest integer, ties to even.
    fn round(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// The square root, correctly rounded.
    fn sqrt(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// 2 to the power `a` for `|a| <= 1`, within 2 ulp: the target's instruction.
    fn exp2_near_zero(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a < b`, false on NaN
    fn less(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a == b`, false on NaN
    fn equal(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;

    /// `a + b` of integers
    fn iadd(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a - b` of integers
    fn isub(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a * b` of integers
    fn imul(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a & b`
    fn iand(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a | b`
    fn ior(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a << n`, `n` below the width
    fn ishl(&self, a: Self::Value, n: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a >> n` filling with zeros, `n` below the width
    fn ishr(&self, a: Self::Value, n: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a >> n` filling with the sign, `n` below the width
    fn isar(&self, a: Self::Value, n: Self::Value) -> Result<Self::Value, Self::Error>;
    /// Leading zero bits
    fn ictlz(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a < b` of signed integers
    fn iless(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a < b` of unsigned integers
    fn uless(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `a == b` of integers
    fn iequal(&self, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;

    /// The bits of an `f32` as `i32`.
    fn bits(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// The `f32` of these bits.
    fn float_of(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `f32` to `i32`, toward zero, saturating; NaN gives 0.
    fn to_int(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `i32` or `i64` to `f32`.
    fn to_float(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// `i32`, taken as unsigned, to `i64`.
    fn widen(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;
    /// The low half of an `i64`.
    fn narrow(&self, a: Self::Value) -> Result<Self::Value, Self::Error>;

    /// `a` where the condition holds, else `b`.
    fn select(&self, condition: Self::Value, a: Self::Value, b: Self::Value) -> Result<Self::Value, Self::Error>;
    /// Two values by the arm that the condition picks; only that arm runs.
    fn branch(
        &self,
        condition: Self::Value,
        kinds: [Kind; 2],
        then: impl FnOnce(&Self) -> Result<[Self::Value; 2], Self::Error>,
        otherwise: impl FnOnce(&Self) -> Result<[Self::Value; 2], Self::Error>,
    ) -> Result<[Self::Value; 2], Self::Error>;
    /// Repeats `body` on two `i32` while `condition` holds of them.
    fn repeat(
        &self,
        start: [Self::Value; 2],
        condition: impl FnOnce(&Self, [Self::Value; 2]) -> Result<Self::Value, Self::Error> + Copy,
        body: impl FnOnce(&Self, [Self::Value; 2]) -> Result<[Self::Value; 2], Self::Error> + Copy,
    ) -> Result<[Self::Value; 2], Self::Error>;
}

/// Type of a value that a branch yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `f32`
    Float,
    /// `i32`
    Int,
}

/// The polynomial with these coefficients, lowest degree first, by Horner's rule in fma.
pub(crate) fn horner<N: Numeric>(n: &N, x: N::Value, coefficients: &[f32]) -> Result<N::Value, N::Error> {
    let mut rest = coefficients.iter().rev();
    let mut sum = n.float(rest.next().copied().unwrap_or(0.0))?;
    for &coefficient in rest {
        sum = n.fma(sum, x, n.float(coefficient)?)?;
    }
    Ok(sum)
}

#[cfg(test)]
pub(crate) mod host {
    //! The arithmetic on host numbers, for measuring errors.

    use super::{Kind, Numeric};

    /// A host value.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Host {
        F(f32),
        I(i32),
        L(i64),
        B(bool),
    }

    /// Evaluates at once.
    pub(crate) struct Evaluate;

    type Out = Result<Host, String>;

    impl Host {
        pub(crate) fn f(self) -> Result<f32, String> {
            if let Host::F(x) = self { Ok(x) } else { Err(format!("{self:?} is not a float")) }
        }
        pub(crate) fn i(self) -> Result<i32, String> {
            if let Host::I(x) = self { Ok(x) } else { Err(format!("{self:?} is not an i32")) }
        }
        fn b(self) -> Result<bool, String> {
            if let Host::B(x) = self { Ok(x) } else { Err(format!("{self:?} is not a condition")) }
        }
    }

    fn int2(a: Host, b: Host, f: impl Fn(i32, i32) -> i32, g: impl Fn(i64, i64) -> i64) -> Out {
        match (a, b) {
            (Host::I(a), Host::I(b)) => Ok(Host::I(f(a, b))),
            (Host::L(a), Host::L(b)) => Ok(Host::L(g(a, b))),
            _ => Err(format!("{a:?} and {b:?} are not integers of one width")),
        }
    }

    fn shift(a: Host, n: Host, f: impl Fn(i32, u32) -> i32, g: impl Fn(i64, u32) -> i64) -> Out {
        match (a, n) {
            (Host::I(a), Host::I(n)) if (0..32).contains(&n) => Ok(Host::I(f(a, n as u32))),
            (Host::L(a), Host::L(n)) if (0..64).contains(&n) => Ok(Host::L(g(a, n as u32))),
            _ => Err(format!("shift of {a:?} by {n:?}")),
        }
    }

    impl Numeric for Evaluate {
        type Value = Host;
        type Error = String;

        fn float(&self, x: f32) -> Out {
            Ok(Host::F(x))
        }
        fn int(&self, x: i32) -> Out {
            Ok(Host::I(x))
        }
        fn long(&self, x: i64) -> Out {
            Ok(Host::L(x))
        }
        fn add(&self, a: Host, b: Host) -> Out {
            Ok(Host::F(a.f()? + b.f()?))
        }
        fn sub(&self, a: Host, b: Host) -> Out {
            Ok(Host::F(a.f()? - b.f()?))
        }
        fn mul(&self, a: Host, b: Host) -> Out {
            Ok(Host::F(a.f()? * b.f()?))
        }
        fn div(&self, a: Host, b: Host) -> Out {
            Ok(Host::F(a.f()? / b.f()?))
        }
        fn fma(&self, a: Host, b: Host, c: Host) -> Out {
            Ok(Host::F(a.f()?.mul_add(b.f()?, c.f()?)))
        }
        fn neg(&self, a: Host) -> Out {
            Ok(Host::F(-a.f()?))
        }
        fn abs(&self, a: Host) -> Out {
            Ok(Host::F(a.f()?.abs()))
        }
        fn copysign(&self, a: Host, b: Host) -> Out {
            Ok(Host::F(a.f()?.copysign(b.f()?)))
        }
        fn round(&self, a: Host) -> Out {
            Ok(Host::F(a.f()?.round_ties_even()))
        }
        fn sqrt(&self, a: Host) -> Out {
            Ok(Host::F(a.f()?.sqrt()))
        }
        fn exp2_near_zero(&self, a: Host) -> Out {
            Ok(Host::F(a.f()?.exp2()))
        }
        fn less(&self, a: Host, b: Host) -> Out {
            Ok(Host::B(a.f()? < b.f()?))
        }
        fn equal(&self, a: Host, b: Host) -> Out {
            Ok(Host::B(a.f()? == b.f()?))
        }
        fn iadd(&self, a: Host, b: Host) -> Out {
            int2(a, b, i32::wrapping_add, i64::wrapping_add)
        }
        fn isub(&self, a: Host, b: Host) -> Out {
            int2(a, b, i32::wrapping_sub, i64::wrapping_sub)
        }
        fn imul(&self, a: Host, b: Host) -> Out {
            int2(a, b, i32::wrapping_mul, i64::wrapping_mul)
        }
        fn iand(&self, a: Host, b: Host) -> Out {
            int2(a, b, |a, b| a & b, |a, b| a & b)
        }
        fn ior(&self, a: Host, b: Host) -> Out {
            int2(a, b, |a, b| a | b, |a, b| a | b)
        }
        fn ishl(&self, a: Host, n: Host) -> Out {
            shift(a, n, |a, n| a << n, |a, n| a << n)
        }
        fn ishr(&self, a: Host, n: Host) -> Out {
            shift(a, n, |a, n| (a as u32 >> n) as i32, |a, n| (a as u64 >> n) as i64)
        }
        fn isar(&self, a: Host, n: Host) -> Out {
            shift(a, n, |a, n| a >> n, |a, n| a >> n)
        }
        fn ictlz(&self, a: Host) -> Out {
            Ok(Host::I(a.i()?.leading_zeros() as i32))
        }
        fn iless(&self, a: Host, b: Host) -> Out {
            Ok(Host::B(a.i()? < b.i()?))
        }
        fn uless(&self, a: Host, b: Host) -> Out {
            Ok(Host::B((a.i()? as u32) < b.i()? as u32))
        }
        fn iequal(&self, a: Host, b: Host) -> Out {
            Ok(Host::B(a.i()? == b.i()?))
        }
        fn bits(&self, a: Host) -> Out {
            Ok(Host::I(a.f()?.to_bits() as i32))
        }
        fn float_of(&self, a: Host) -> Out {
            Ok(Host::F(f32::from_bits(a.i()? as u32)))
        }
        fn to_int(&self, a: Host) -> Out {
            Ok(Host::I(a.f()? as i32))
        }
        fn to_float(&self, a: Host) -> Out {
            match a {
                Host::I(a) => Ok(Host::F(a as f32)),
                Host::L(a) => Ok(Host::F(a as f32)),
                _ => Err(format!("{a:?} is not an integer")),
            }
        }
        fn widen(&self, a: Host) -> Out {
            Ok(Host::L(i64::from(a.i()? as u32)))
        }
        fn narrow(&self, a: Host) -> Out {
            if let Host::L(a) = a { Ok(Host::I(a as i32)) } else { Err(format!("{a:?} is not an i64")) }
        }
        fn select(&self, condition: Host, a: Host, b: Host) -> Out {
            Ok(if condition.b()? { a } else { b })
        }
        fn branch(
            &self,
            condition: Host,
            _: [Kind; 2],
            then: impl FnOnce(&Self) -> Result<[Host; 2], String>,
            otherwise: impl FnOnce(&Self) -> Result<[Host; 2], String>,
        ) -> Result<[Host; 2], String> {
            if condition.b()? { then(self) } else { otherwise(self) }
        }
        fn repeat(
            &self,
            start: [Host; 2],
            condition: impl FnOnce(&Self, [Host; 2]) -> Out + Copy,
            body: impl FnOnce(&Self, [Host; 2]) -> Result<[Host; 2], String> + Copy,
        ) -> Result<[Host; 2], String> {
            let mut state = start;
            while condition(self, state)?.b()? {
                state = body(self, state)?;
            }
            Ok(state)
        }
    }
}
