//! Which vector instructions the interpreter is compiled for. It is written once, generic over
//! [`Isa`], and instantiated for the architecture's baseline and, on x86-64, for the instructions of
//! 2013 and later (AVX2, FMA, F16C, BMI). AVX-512 gains nothing: auto-vectorised gathers get slower.

use super::numeric::narrow;

/// A set of vector instructions.
pub(crate) trait Isa: 'static {
    /// Whether fused multiply-add is one instruction.
    const FMA: bool;

    /// Eight binary32 numbers.
    type F32x8: Copy;

    /// Four numbers at `low`, then four at `high`.
    ///
    /// # Safety
    /// Both are readable for 16 bytes, and the host has the instructions.
    unsafe fn join(low: *const f32, high: *const f32) -> Self::F32x8;

    /// The opposite of [`join`](Self::join).
    ///
    /// # Safety
    /// Both are writable for 16 bytes, and the host has the instructions.
    unsafe fn split(value: Self::F32x8, low: *mut f32, high: *mut f32);

    /// `sum + factor * row`, in two roundings; in one where the instruction exists and `EXACT` says
    /// that the product is exact anyway.
    ///
    /// # Safety
    /// The host has the instructions.
    unsafe fn add_scaled<const EXACT: bool>(sum: Self::F32x8, factor: f32, row: Self::F32x8) -> Self::F32x8;

    /// Eight binary16 numbers to binary32.
    ///
    /// # Safety
    /// `source` is readable for 16 bytes, `target` writable for 32, and the host has the instructions.
    unsafe fn widen_f16x8(source: *const u16, target: *mut f32);

    /// Eight binary32 numbers to binary16, to nearest even.
    ///
    /// # Safety
    /// `source` is readable for 32 bytes, `target` writable for 16, and the host has the instructions.
    unsafe fn narrow_f16x8(source: *const f32, target: *mut u16);
}

/// What every host of the architecture has.
pub(crate) struct Baseline;

impl Isa for Baseline {
    const FMA: bool = false;
    type F32x8 = [f32; 8];

    #[inline(always)]
    unsafe fn join(low: *const f32, high: *const f32) -> [f32; 8] {
        // SAFETY: as the caller promises.
        let (low, high) =
            unsafe { (low.cast::<[f32; 4]>().read_unaligned(), high.cast::<[f32; 4]>().read_unaligned()) };
        let ([a, b, c, d], [e, f, g, h]) = (low, high);
        [a, b, c, d, e, f, g, h]
    }

    #[inline(always)]
    unsafe fn split(value: [f32; 8], low: *mut f32, high: *mut f32) {
        let [a, b, c, d, e, f, g, h] = value;
        // SAFETY: as the caller promises.
        unsafe {
            low.cast::<[f32; 4]>().write_unaligned([a, b, c, d]);
            high.cast::<[f32; 4]>().write_unaligned([e, f, g, h]);
        }
    }

    #[inline(always)]
    unsafe fn add_scaled<const EXACT: bool>(sum: [f32; 8], factor: f32, row: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| sum[i] + factor * row[i])
    }

    #[inline(always)]
    unsafe fn widen_f16x8(source: *const u16, target: *mut f32) {
        // SAFETY: as the caller promises.
        unsafe {
            let halves = source.cast::<[u16; 8]>().read_unaligned();
            target.cast::<[f32; 8]>().write_unaligned(halves.map(narrow::f16_to_f32));
        }
    }

    #[inline(always)]
    unsafe fn narrow_f16x8(source: *const f32, target: *mut u16) {
        // SAFETY: as the caller promises.
        unsafe {
            let floats = source.cast::<[f32; 8]>().read_unaligned();
            target.cast::<[u16; 8]>().write_unaligned(floats.map(narrow::f32_to_f16));
        }
    }
}

/// AVX2, FMA, F16C, BMI1, BMI2, LZCNT and POPCNT.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Isa for Avx2 {
    const FMA: bool = true;
    type F32x8 = std::arch::x86_64::__m256;

    #[inline(always)]
    unsafe fn join(low: *const f32, high: *const f32) -> Self::F32x8 {
        use std::arch::x86_64::{_mm_loadu_ps, _mm256_castps128_ps256, _mm256_insertf128_ps};
        // SAFETY: as the caller promises; inlined into functions that enable AVX.
        unsafe { _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high)) }
    }

    #[inline(always)]
    unsafe fn split(value: Self::F32x8, low: *mut f32, high: *mut f32) {
        use std::arch::x86_64::{_mm_storeu_ps, _mm256_castps256_ps128, _mm256_extractf128_ps};
        // SAFETY: as the caller promises; inlined into functions that enable AVX.
        unsafe {
            _mm_storeu_ps(low, _mm256_castps256_ps128(value));
            _mm_storeu_ps(high, _mm256_extractf128_ps::<1>(value));
        }
    }

    #[inline(always)]
    unsafe fn add_scaled<const EXACT: bool>(sum: Self::F32x8, factor: f32, row: Self::F32x8) -> Self::F32x8 {
        use std::arch::x86_64::{_mm256_add_ps, _mm256_fmadd_ps, _mm256_mul_ps, _mm256_set1_ps};
        // SAFETY: inlined into functions that enable AVX and FMA.
        unsafe {
            let factor = _mm256_set1_ps(factor);
            if EXACT { _mm256_fmadd_ps(factor, row, sum) } else { _mm256_add_ps(sum, _mm256_mul_ps(factor, row)) }
        }
    }

    #[inline(always)]
    unsafe fn widen_f16x8(source: *const u16, target: *mut f32) {
        use std::arch::x86_64::{_mm_loadu_si128, _mm256_cvtph_ps, _mm256_storeu_ps};
        // SAFETY: as the caller promises; inlined into functions that enable F16C.
        unsafe { _mm256_storeu_ps(target, _mm256_cvtph_ps(_mm_loadu_si128(source.cast()))) }
    }

    #[inline(always)]
    unsafe fn narrow_f16x8(source: *const f32, target: *mut u16) {
        use std::arch::x86_64::{_mm_storeu_si128, _mm256_cvtps_ph, _mm256_loadu_ps};
        // SAFETY: as the caller promises; inlined into functions that enable F16C.
        unsafe { _mm_storeu_si128(target.cast(), _mm256_cvtps_ph::<0>(_mm256_loadu_ps(source))) }
    }
}

/// A piece of work that is worth compiling for each instruction set.
pub(crate) trait Vectorised {
    type Output;

    /// Does it; to be inlined, so that it has the caller's instructions.
    fn run<I: Isa>(self) -> Self::Output;
}

/// Does a piece of work with the instructions of `I`, from code that is not compiled for them.
pub(crate) fn run_on<I: Isa, W: Vectorised>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if I::FMA {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
        fn with_avx2<W: Vectorised>(work: W) -> W::Output {
            work.run::<Avx2>()
        }
        // SAFETY: an instruction set with FMA is chosen only where `has_avx2` holds.
        return unsafe { with_avx2(work) };
    }
    work.run::<Baseline>()
}

/// Whether the host has the instructions of [`Avx2`].
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// The bits of eight lanes' conditions, each all ones or zero.
#[inline(always)]
pub(crate) fn pack_conditions(conditions: [i32; 8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadu_ps, _mm_movemask_ps};
        let pointer = conditions.as_ptr().cast::<f32>();
        // SAFETY: SSE is part of x86-64; both loads lie inside the array.
        unsafe { (_mm_movemask_ps(_mm_loadu_ps(pointer)) | _mm_movemask_ps(_mm_loadu_ps(pointer.add(4))) << 4) as u32 }
    }
    #[cfg(not(target_arch = "x86_64"))]
    conditions.iter().enumerate().fold(0, |bits, (lane, c)| bits | ((c & 1) as u32) << lane)
}
