//! Names that look like something else.

use lacewing::prelude::*;

use super::run;

/// A helper whose name begins as a construct of the language does.
#[device]
fn range_of(x: I32) -> I32 {
    x + 1
}

#[device]
fn if_positive(x: I32, r#else: I32) -> I32 {
    if x > 0 { x } else { r#else }
}

#[device]
fn return_of<const_expr: Num>(value: const_expr) -> const_expr {
    value
}

#[kernel(block = [32, 1, 1])]
#[allow(non_camel_case_types, reason = "the name is the point")]
fn confusing_names(#[comptime] cfg_for_tiles: Vec<i32>, x: Tensor<I32, 1>, y: TensorMut<I32, 1>) {
    let i = thread_id(X);
    let for_x = x.at(i).load();
    let mut while_counting = for_x;
    let r#loop = I32::from(2);
    for x in constexpr(cfg_for_tiles.iter().copied()) {
        while_counting += x;
    }
    for break_at in range(0, for_x & 3) {
        let continue_with = break_at * r#loop;
        while_counting += if_positive(continue_with, range_of(break_at));
    }
    let range = |lo: I32, hi: I32| hi - lo;
    // A local of that name is not the construct.
    while_counting += range(for_x, r#loop);
    let lt = return_of(for_x);
    let (rt, slot) = (lt < 3, lt);
    if rt {
        while_counting += slot;
    }
    y.at(i).store(while_counting);
}

// F9
#[test]
fn names_are_not_taken_for_keywords() {
    let tiles = vec![4, 7];
    let x: Vec<i32> = (0..32).map(|i| i - 6).collect();
    let y = run(&confusing_names::new(tiles.clone()), 1, &x, &[0; 32]);
    for (v, y) in x.iter().zip(y) {
        let mut expected = v + tiles.iter().sum::<i32>();
        for at in 0..v & 3 {
            expected += if at * 2 > 0 { at * 2 } else { at + 1 };
        }
        expected += 2 - v + if *v < 3 { *v } else { 0 };
        assert_eq!(y, expected, "v = {v}");
    }
}
