//! `return`, `break` and `continue` under conditions that threads do not share.

use lacewing::prelude::*;

use super::run;

const UNTOUCHED: i32 = -77;

#[kernel(block = [64, 1, 1])]
fn guarded_by_return(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = block_id(X) * block_dim(X) + thread_id(X);
    if i >= x.extent(0) {
        return;
    }
    y.at(i).store(x.at(i).load() * 2);
}

// F1
#[test]
fn an_early_return_keeps_its_threads_from_storing() {
    for n in [1, 31, 32, 63, 64, 65, 100, 128] {
        let x: Vec<i32> = (0..n).collect();
        let y = run(&guarded_by_return::new(), 2, &x, &[UNTOUCHED; 128]);
        let expected: Vec<i32> = (0..128).map(|i| if i < n { 2 * i } else { UNTOUCHED }).collect();
        assert_eq!(y, expected, "n = {n}");
    }
}

#[kernel(block = [64, 1, 1])]
fn several_returns(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let v = x.at(i).load();
    y.at(i).store(I32::from(1));
    if v < 0 {
        if v < -10 {
            return;
        }
        y.at(i).store(I32::from(2));
        if v == -5 {
            return;
        } else {
            y.at(i).store(I32::from(3));
        }
    } else if v > 10 {
        y.at(i).store(I32::from(4));
        return;
    }
    let place = y.at(i);
    place.store(place.load() + 10);
}

fn several_returns_on_host(v: i32, y: &mut i32) {
    *y = 1;
    if v < 0 {
        if v < -10 {
            return;
        }
        *y = 2;
        if v == -5 {
            return;
        } else {
            *y = 3;
        }
    } else if v > 10 {
        *y = 4;
        return;
    }
    *y += 10;
}

// F1
#[test]
fn every_return_leaves_at_its_place() {
    let x: Vec<i32> = (0..64).map(|i| i - 32).collect();
    let y = run(&several_returns::new(), 1, &x, &[0; 64]);
    for (v, y) in x.iter().zip(y) {
        let mut expected = 0;
        several_returns_on_host(*v, &mut expected);
        assert_eq!(y, expected, "v = {v}");
    }
}

#[kernel(block = [64, 1, 1])]
fn return_from_nested_loops(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let limit = x.at(i).load();
    let mut steps = I32::from(0);
    for a in range(0, 4) {
        for b in range(a, 6) {
            steps += 1;
            y.at(i).store(steps);
            if a * b > limit {
                return;
            }
        }
        steps += 100;
    }
    y.at(i).store(I32::from(-1));
}

fn return_from_nested_loops_on_host(limit: i32) -> i32 {
    let mut steps = 0;
    for a in 0..4 {
        for b in a..6 {
            steps += 1;
            if a * b > limit {
                return steps;
            }
        }
        steps += 100;
    }
    -1
}

// F2
#[test]
fn a_return_ends_the_loops_around_it() {
    let x: Vec<i32> = (0..64).map(|i| i % 20 - 1).collect();
    let y = run(&return_from_nested_loops::new(), 1, &x, &[0; 64]);
    let expected: Vec<i32> = x.iter().map(|x| return_from_nested_loops_on_host(*x)).collect();
    assert_eq!(y, expected);
}

/// The first index from `lo` on whose element is above `limit`, or -1.
#[device]
fn first_above(x: Tensor<I32, 1>, lo: I32, limit: I32) -> I32 {
    if lo < 0 {
        return I32::from(-2);
    }
    for i in range(lo, x.extent(0)) {
        if x.at(i).load() > limit {
            return i;
        }
    }
    I32::from(-1)
}

#[device]
fn store_positive(place: Place<I32, lacewing::core::types::GlobalWrite>, v: I32) {
    if v <= 0 {
        return;
    }
    place.store(v);
}

#[kernel(block = [64, 1, 1])]
fn returns_in_helpers(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let mut sum = I32::from(0);
    // Called in a loop, in a branch, and with the result of another call: each return ends one call.
    for k in range(0, 3) {
        let found = first_above(x, i % 8 + k - 2, I32::from(5));
        if found == -1 {
            continue;
        }
        sum += found * 10;
    }
    if first_above(x, first_above(x, I32::from(0), i), I32::from(2)) >= 0 {
        sum += 1000;
    }
    store_positive(y.at(i), sum - 500);
    let place = y.at(i);
    place.store(place.load() + 1);
}

fn first_above_on_host(x: &[i32], lo: i32, limit: i32) -> i32 {
    if lo < 0 {
        return -2;
    }
    (lo as usize..x.len()).find(|i| x[*i] > limit).map_or(-1, |i| i as i32)
}

// F2
#[test]
fn a_return_in_a_helper_ends_the_helper() {
    let x = [3, 9, 1, 7, 2, 6, 0, 5, 8, 4];
    let y = run(&returns_in_helpers::new(), 1, &x, &[0; 64]);
    for (i, y) in (0..64).zip(y) {
        let mut sum = 0;
        for k in 0..3 {
            let found = first_above_on_host(&x, i % 8 + k - 2, 5);
            if found != -1 {
                sum += found * 10;
            }
        }
        if first_above_on_host(&x, first_above_on_host(&x, 0, i), 2) >= 0 {
            sum += 1000;
        }
        assert_eq!(y, if sum > 500 { sum - 500 } else { 0 } + 1, "thread {i}");
    }
}

#[kernel(block = [64, 1, 1])]
fn labelled_jumps(x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let v = x.at(i).load();
    let mut log = I32::from(0);
    'outer: for a in range(0, 5) {
        let mut b = I32::from(0);
        'inner: while b < 5 {
            b += 1;
            log = log * 3 + b;
            if a + b == v {
                continue 'outer;
            }
            if a * b == v {
                break 'outer;
            }
            for c in range_constexpr(3) {
                if a + b + (c as i32) == v + 4 {
                    continue 'inner;
                }
                if log % 7 == 6 {
                    break;
                }
                log += c as i32;
            }
            if b == 4 {
                break;
            }
        }
        log += 1;
    }
    let doubled = 'block: {
        if log % 2 == 0 {
            break 'block log * 2;
        }
        loop {
            log += 3;
            if log % 5 == 0 {
                break 'block log;
            }
            if log % 4 == 0 {
                break;
            }
        }
        -log
    };
    y.at(i).store(doubled);
}

fn labelled_jumps_on_host(v: i32) -> i32 {
    let mut log = 0i32;
    'outer: for a in 0..5 {
        let mut b = 0;
        'inner: while b < 5 {
            b += 1;
            log = log.wrapping_mul(3).wrapping_add(b);
            if a + b == v {
                continue 'outer;
            }
            if a * b == v {
                break 'outer;
            }
            for c in 0..3 {
                if a + b + c == v + 4 {
                    continue 'inner;
                }
                if log % 7 == 6 {
                    break;
                }
                log = log.wrapping_add(c);
            }
            if b == 4 {
                break;
            }
        }
        log = log.wrapping_add(1);
    }
    'block: {
        if log % 2 == 0 {
            break 'block log.wrapping_mul(2);
        }
        loop {
            log = log.wrapping_add(3);
            if log % 5 == 0 {
                break 'block log;
            }
            if log % 4 == 0 {
                break;
            }
        }
        log.wrapping_neg()
    }
}

// F2
#[test]
fn a_labelled_jump_goes_to_its_label() {
    let x: Vec<i32> = (0..64).map(|i| i - 20).collect();
    let y = run(&labelled_jumps::new(), 1, &x, &[0; 64]);
    let expected: Vec<i32> = x.iter().map(|x| labelled_jumps_on_host(*x)).collect();
    assert_eq!(y, expected);
}
