//! Values that are known when a kernel is traced, beside values that are not.

use lacewing::prelude::*;

use super::run;

#[kernel(block = [32, 1, 1])]
fn folded_constants(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    // Constants that the trace knows, and that are then changed at run time.
    let mut half = I32::from(256 / 2);
    let mut one = I32::from(1);
    let mut flag = Bool::from(true);
    let mut ratio = F32::from(256.0 / 2.0);
    one += 1;
    half = half / one;
    for k in range(0, n) {
        half = half / 2 + k;
        ratio = ratio / 2.0;
        if half > 10 {
            one = one * 3;
            flag = !flag;
        }
    }
    if flag {
        half += 256 / 2;
    }
    y.at(i).store(half + 1000 * one + ratio.cast::<I32>());
}

fn folded_constants_on_host(n: i32) -> i32 {
    let (mut half, mut one, mut flag, mut ratio) = (128, 1i32, true, 128.0f32);
    one += 1;
    half /= one;
    for k in 0..n {
        half = half / 2 + k;
        ratio /= 2.0;
        if half > 10 {
            one = one.wrapping_mul(3);
            flag = !flag;
        }
    }
    if flag {
        half += 256 / 2;
    }
    one.wrapping_mul(1000).wrapping_add(half).wrapping_add(ratio as i32)
}

// F19, F21
#[test]
fn a_constant_can_be_changed_at_run_time() {
    let x: Vec<i32> = (0..32).map(|i| i - 4).collect();
    let y = run(&folded_constants::new(), 1, &x, &[0; 32]);
    let expected: Vec<i32> = x.iter().map(|n| folded_constants_on_host(*n)).collect();
    assert_eq!(y, expected);
}

#[kernel(block = [32, 1, 1])]
fn unrolled(#[comptime] steps: usize, #[comptime] weights: Vec<i32>, x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let n = x.at(i).load();
    let mut sum = I32::from(0);
    let mut parts = Vec::new();
    for step in range_constexpr(steps) {
        // Bound under an unrolled loop, changed under a run-time one, used after it.
        let mut part = I32::from(step as i32);
        for k in range(0, n & 3) {
            part += k * weights[step];
        }
        if const_expr(step % 2 == 1) {
            sum -= part;
        } else {
            sum += part;
        }
        parts.push(part);
    }
    let mut last = sum;
    for (position, part) in constexpr(parts.iter().enumerate().rev()) {
        last = last * 2 + *part * (position as i32 + 1);
    }
    y.at(i).store(last);
}

fn unrolled_on_host(weights: &[i32], n: i32) -> i32 {
    let mut sum = 0;
    let mut parts = Vec::new();
    for (step, weight) in weights.iter().enumerate() {
        let part = step as i32 + (0..n & 3).map(|k| k * weight).sum::<i32>();
        sum += if step % 2 == 1 { -part } else { part };
        parts.push(part);
    }
    parts.iter().enumerate().rev().fold(sum, |last, (position, part)| last * 2 + part * (position as i32 + 1))
}

// F21
#[test]
fn a_variable_of_an_unrolled_loop_is_one_a_pass() {
    for weights in [vec![], vec![3], vec![5, -2, 7, 1]] {
        let kernel = unrolled::new(weights.len(), weights.clone());
        let x: Vec<i32> = (0..32).collect();
        let expected: Vec<i32> = x.iter().map(|n| unrolled_on_host(&weights, *n)).collect();
        assert_eq!(run(&kernel, 1, &x, &[0; 32]), expected, "{weights:?}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Plain,
    Scaled(i32),
    Clipped { at: i32, twice: bool },
}

#[kernel(block = [32, 1, 1])]
fn decided_when_tracing(
    #[comptime] mode: Mode,
    #[comptime] offset: Option<i32>,
    x: Tensor<I32, 1>,
    y: TensorMut<I32, 1>,
) {
    let i = thread_id(X);
    let mut v = x.at(i).load();
    for k in range(0, 3) {
        match mode {
            Mode::Plain => break,
            Mode::Scaled(by) if by > 100 => static_assert!(false, "never traced"),
            Mode::Scaled(by) => v = v * by + k,
            Mode::Clipped { at, twice } => {
                if v > at {
                    v = I32::from(at);
                    if const_expr(twice) {
                        continue;
                    }
                }
                v += 1;
            }
        }
    }
    if let Some(offset) = offset {
        v += offset;
    }
    if const_expr(mode == Mode::Plain && offset.is_none()) {
        v = -v;
    }
    y.at(i).store(v);
}

fn decided_when_tracing_on_host(mode: Mode, offset: Option<i32>, mut v: i32) -> i32 {
    for k in 0..3 {
        match mode {
            Mode::Plain => break,
            Mode::Scaled(by) => v = v * by + k,
            Mode::Clipped { at, twice } => {
                if v > at {
                    v = at;
                    if twice {
                        continue;
                    }
                }
                v += 1;
            }
        }
    }
    v += offset.unwrap_or(0);
    if mode == Mode::Plain && offset.is_none() { -v } else { v }
}

// F21: a decision of the trace inside of a run-time loop.
#[test]
fn host_values_decide_what_is_traced() {
    let x: Vec<i32> = (0..32).map(|i| i - 9).collect();
    let clipped = |twice| Mode::Clipped { at: 6, twice };
    for mode in [Mode::Plain, Mode::Scaled(3), clipped(false), clipped(true)] {
        for offset in [None, Some(100)] {
            let y = run(&decided_when_tracing::new(mode, offset), 1, &x, &[0; 32]);
            let expected: Vec<i32> = x.iter().map(|v| decided_when_tracing_on_host(mode, offset, *v)).collect();
            assert_eq!(y, expected, "{mode:?} {offset:?}");
        }
    }
}

#[device]
fn step(x: Tensor<I32, 1>, i: I32, masked: bool, sum: &mut I32) {
    if const_expr(masked) {
        *sum += x.at(i).load_if(i < x.extent(0), I32::from(0));
    } else {
        *sum += x.at(i).load();
    }
}

#[kernel(block = [64, 1, 1])]
fn masked_at_the_end(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let mut sum = I32::from(0);
    let whole = x.extent(0) / 64 * 64;
    for first in range(0, whole, 64) {
        step(x, first + thread_id(X), false, &mut sum);
    }
    for first in range(whole, x.extent(0), 64) {
        step(x, first + thread_id(X), true, &mut sum);
    }
    y.at(thread_id(X)).store(sum);
}

#[test]
fn a_body_is_written_once_and_traced_with_a_mask_and_without() {
    let kernel = masked_at_the_end::new();
    let text = kernel.traced(Target::SM_80).unwrap().text();
    let count = |what: &str| text.matches(what).count();
    let loads = [count("scf.for"), count("\"lw.load\"("), count("\"lw.load_masked\"(")];
    assert_eq!(loads, [2, 1, 1], "{text}");
    for n in [1, 63, 64, 65, 200] {
        let x: Vec<i32> = (0..n).collect();
        let y = run(&kernel, 1, &x, &[-1; 64]);
        let expected: Vec<i32> = (0..64).map(|lane| (lane..n).step_by(64).sum()).collect();
        assert_eq!(y, expected, "n = {n}");
    }
}
