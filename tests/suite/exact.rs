//! Values beside what they would be without rounding and wrapping: reports at the operation that went wrong, and none
//! for kernels that round as they should.

use lacewing::kernels::ENTRIES;
use lacewing::prelude::*;
use lacewing::runtime::Error;
use lacewing::runtime::check::{Options, check};
use lacewing::runtime::emulator::{Bound, Check, Checks, Report, ReportKind};

/// The line of this file that ends with a mark.
fn marked(tag: &str) -> u32 {
    let mark = format!("// <- {tag}");
    include_str!("exact.rs").lines().position(|line| line.trim_end().ends_with(&mark)).unwrap() as u32 + 1
}

fn report<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Report {
    match outcome {
        Err(Error::Report(report)) => *report,
        other => panic!("no report: {other:?}"),
    }
}

fn device(target: Target, checks: Checks) -> Device {
    Device::emulator(target).unwrap().with_checks(checks)
}

fn shadowed(target: Target) -> Device {
    device(target, Checks::default().with_shadow(Bound::Relative(0.01), 1e-6))
}

const TARGETS: [Target; 3] = [Target::SM_80, Target::SM_90A, Target::GFX942];

/// What is lost in one operation, told by its operands.
#[kernel(block = [32, 1, 1])]
fn difference(#[comptime] at_once: bool, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    let value = x.at(i).load();
    let large = value * 1048576.0 + 1.0;
    let rest = large - value * 1048576.0; // <- ABSORBED
    if const_expr(at_once) {
        y.at(i).store(rest);
    } else {
        // A small part of a large number: what was lost does not matter here.
        y.at(i).store(rest + 1000.0);
    }
}

#[test]
fn a_loss_is_reported_where_it_was_made_and_only_if_it_matters() {
    for target in TARGETS {
        let dev = shadowed(target);
        let x = dev.tensor_from_slice(&[100.5_f32; 32], [32]).unwrap();
        let mut y = dev.tensor_zeros::<f32, 1>([32]).unwrap();
        difference::new(false).grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
        let found = report(difference::new(true).grid([1, 1, 1]).launch(&dev, (&x, &mut y)));
        assert_eq!(found.kind, ReportKind::Inexact, "{found}");
        let line = found.location.as_ref().unwrap().line;
        assert_eq!(line, marked("ABSORBED"), "{found}");
        // 100.5 * 2^20 = 105381888, whose neighbours are 8 away: the 1 is lost.
        let text = found.to_string();
        assert!(text.contains("105381888 - 105381888 is 0, and 1 without rounding"), "{text}");
        assert!(text.contains("without rounding the operands are 105381889 and 105381888"), "{text}");
        assert!(text.contains("what is stored at tests/suite/exact.rs:"), "{text}");
        assert!(text.contains("nearly equal cancel"), "{text}");
        assert_eq!((found.block, found.thread), (Some([0, 0, 0]), Some([0, 0, 0])), "{text}");
    }
}

/// Shadows go through shared memory, shuffles, vectors, packed halves, and a helper.
#[kernel(block = [64, 1, 1])]
fn detours(x: Tensor<F16, 1>, y: TensorMut<F16, 1>) {
    let tile = shared_array_named::<F16>("tile", 256);
    let i = thread_id(X);
    let four = x.at(i * 4).load_vec::<4>();
    let lossy = (four.get(1).cast::<F32>() + 4096.0).cast::<F16>(); // <- DETOUR
    tile.at(i).store(lossy);
    barrier();
    let other = tile.at((i + 32) % 64).load();
    let other = shfl_xor(other.cast::<F32>(), 1).cast::<F16>();
    let pair = Vector::<F16, 2>::from([other - F16::from(half::f16::from_f32(4096.0)), four.get(0)]);
    y.at(i * 2).store_vec(pair);
}

#[test]
fn shadows_follow_values_through_memory_shuffles_and_packed_words() {
    for target in TARGETS {
        let dev = shadowed(target);
        let x: Vec<half::f16> = (0..256).map(|i| half::f16::from_f32(1.0 + i as f32 / 256.0)).collect();
        let x = dev.tensor_from_slice(&x, [256]).unwrap();
        let mut y = dev.tensor_zeros::<half::f16, 1>([128]).unwrap();
        let found = report(detours::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)));
        assert_eq!(found.kind, ReportKind::Inexact, "{found}");
        // The rounding to F16 loses half of the small part: 4097.25 becomes 4096 or 4100. That it is the small part of
        // a large number shows only after the subtraction.
        let text = found.to_string();
        assert!(text.contains("- 4096 is ") && text.contains("without rounding the operands are 4097."), "{text}");
    }
}

/// A sum of products whose factors have lost their digits, by `mma.sync`.
#[kernel(block = [32, 1, 1])]
fn product_of_losses(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    let value = x.at(i).load();
    let lost = (value + 2048.0).cast::<F16>() - F16::from(half::f16::from_f32(2048.0)); // <- FACTOR
    let pair = Vector::<F16, 2>::splat(lost);
    let one = Vector::<F16, 2>::splat(F16::from(half::f16::ONE));
    let sums = mma_m16n8k16([pair, pair, pair, pair], [one, one], [F32::from(0.0); 4]);
    y.at(i).store(sums[0]);
}

#[test]
fn products_pass_on_what_their_factors_lost() {
    let dev = shadowed(Target::SM_80);
    let x = dev.tensor_from_slice(&[0.9_f32; 32], [32]).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([32]).unwrap();
    let found = report(product_of_losses::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)));
    assert_eq!(found.location.as_ref().unwrap().line, marked("FACTOR"), "{found}");
    let text = found.to_string();
    // 2048.9 in F16 is 2048; sixteen products of 0 where 14.4 is right.
    assert!(text.contains("2048 - 2048 is 0, and 0.9 without"), "{text}");
    assert!(text.contains("is 0 where 14.3") || text.contains("is 0 where 14.4"), "{text}");
}

/// Adds 1 many times, by an atomic on global memory.
#[kernel(block = [32, 1, 1])]
fn atomic_sum(x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    for _ in range(4) {
        let _ = y.at(0).atomic_add(x.at(thread_id(X)).load()); // <- ATOMIC
    }
}

#[test]
fn atomics_are_followed() {
    let dev = shadowed(Target::SM_80);
    let x = dev.tensor_from_slice(&[1.0_f32; 32], [32]).unwrap();
    // 2^26 + 1 is 2^26: 128 additions are lost.
    let mut y = dev.tensor_from_slice(&[0.0_f32], [1]).unwrap();
    atomic_sum::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [128.0]);
    let dev = device(Target::SM_80, Checks::default().with_shadow(Bound::Ulps(4.0), 0.0));
    let x = dev.tensor_from_slice(&[1.0_f32; 32], [32]).unwrap();
    let mut y = dev.tensor_from_slice(&[67_108_864.0_f32], [1]).unwrap();
    let found = report(atomic_sum::new().grid([1, 1, 1]).launch(&dev, (&x, &mut y)));
    assert_eq!((found.kind, found.location.as_ref().unwrap().line), (ReportKind::Inexact, marked("ATOMIC")), "{found}");
    assert!(found.to_string().contains("an atomic on 67108864 and 1"), "{found}");
}

#[test]
fn shadows_are_off_unless_asked_for() {
    let dev = device(Target::SM_80, Checks::default());
    let x = dev.tensor_from_slice(&[100.5_f32; 32], [32]).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([32]).unwrap();
    difference::new(true).grid([1, 1, 1]).launch(&dev, (&x, &mut y)).unwrap();
    assert_eq!(y.to_vec().unwrap(), [0.0; 32]);
}

/// An index of 32 bits: what wraps is reported where it wraps, if an address is made of it.
#[kernel(block = [32, 1, 1])]
fn wrapped_index(#[comptime] used: bool, stride: I32, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    let far = i * stride; // <- WRAPS
    let at = if_used(used, far + 1, i);
    y.at(i).store(x.at(at).load());
}

#[device]
fn if_used(used: bool, far: I32, near: I32) -> I32 {
    if const_expr(used) { far } else { near }
}

#[test]
fn an_index_that_wraps_is_reported_at_its_operation() {
    for target in TARGETS {
        for seed in [0, 3] {
            let dev = device(target, Checks::default()).with_seed(seed);
            let x = dev.tensor_from_slice(&[1.0_f32; 64], [64]).unwrap();
            let mut y = dev.tensor_zeros::<f32, 1>([32]).unwrap();
            wrapped_index::new(true).grid([1, 1, 1]).launch(&dev, (1, &x, &mut y)).unwrap();
            wrapped_index::new(false).grid([1, 1, 1]).launch(&dev, (i32::MAX / 7, &x, &mut y)).unwrap();
            let found = report(wrapped_index::new(true).grid([1, 1, 1]).launch(&dev, (i32::MAX / 2 + 1, &x, &mut y)));
            assert_eq!(found.kind, ReportKind::IndexOverflow, "{found}");
            assert_eq!(found.location.as_ref().unwrap().line, marked("WRAPS"), "{found}");
            let text = found.to_string();
            assert!(text.contains("2 * 1073741824 is 2147483648"), "{text}");
            assert!(text.contains("it wraps to -2147483648") && text.contains("cast::<I64>()"), "{text}");
            assert_eq!(found.thread, Some([2, 0, 0]), "{text}");
        }
    }
}

/// Numbers that wrap on purpose: a hash, a generator, and a detour over zero that comes back.
#[kernel(block = [32, 1, 1])]
fn hashes(seed: U32, x: Tensor<F32, 1>, y: TensorMut<F32, 1>) {
    let i = thread_id(X);
    let mut state = i.bitcast::<U32>() * 2_654_435_761_u32 + seed;
    for _ in range(5) {
        state = state * 1_664_525_u32 + 1_013_904_223_u32;
        state ^= state >> 13_u32;
    }
    let slot = (state % 64_u32).cast::<I32>();
    let masked = (state & 63_u32).cast::<I32>();
    let top = (state >> 26_u32).cast::<I32>();
    // From 0 down and up again.
    let back = (i.bitcast::<U32>() - 31_u32 + 31_u32).cast::<I32>();
    y.at(back).store(x.at(slot).load() + x.at(masked).load() + x.at(top).load());
}

#[test]
fn hashes_may_wrap() {
    for target in TARGETS {
        let dev = device(target, Checks::default());
        let x = dev.tensor_from_slice(&[1.0_f32; 64], [64]).unwrap();
        let mut y = dev.tensor_zeros::<f32, 1>([32]).unwrap();
        hashes::new().grid([1, 1, 1]).launch(&dev, (0xffff_fff0, &x, &mut y)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0; 32]);
    }
}

#[test]
fn overflow_can_be_turned_off() {
    let dev = device(Target::SM_80, Checks::default().without(Check::Overflow));
    let x = dev.tensor_from_slice(&[1.0_f32; 64], [64]).unwrap();
    let mut y = dev.tensor_zeros::<f32, 1>([32]).unwrap();
    let found = report(wrapped_index::new(true).grid([1, 1, 1]).launch(&dev, (i32::MAX / 2 + 1, &x, &mut y)));
    assert_eq!(found.kind, ReportKind::OutOfBounds, "{found}");
}

/// Kernels that are right are so beside their shadows, at the bound that the documentation gives.
#[test]
fn bundled_kernels_stay_near_their_shadows() {
    for entry in ENTRIES {
        for target in TARGETS.into_iter().filter(|target| entry.targets.contains(target)) {
            for rung in ["single", "random"] {
                let options = Options {
                    targets: vec![target],
                    rung: Some(rung.into()),
                    schedules: 1,
                    shadow: Some((Bound::Relative(0.05), 1e-3)),
                    ..Options::default()
                };
                let verdict = check(entry, &options, &mut |_| {}).unwrap();
                assert!(verdict.finding.is_none(), "{} {target}: {}", entry.name, verdict.finding.unwrap());
            }
        }
    }
}
