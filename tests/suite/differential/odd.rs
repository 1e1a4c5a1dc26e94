// Written by hand: constructs that random programs do not hit upon.

corpus! {
// Closures in closures, that capture kernel values, called in run-time control flow.
fn closures(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let add = |x: I32, y: I32| x + y;
    let scale = move |factor: I32| move |x: I32| x * factor + a;
    let thrice = |f: &dyn Fn(I32) -> I32, x: I32| f(f(f(x)));
    let larger = |x: I32, y: I32| if x > y { x } else { y };
    if a > b {
        a = thrice(&scale(b), a);
    } else {
        b = add(larger(a, b), thrice(&|x| add(x, a), b));
    }
    for i in range(0, b & 3) {
        a = (|x: I32| { let y = x + i; y * y })(a);
        *log = add(*log, larger(i, a & 7));
    }
    a + b
}

// `return` in a closure leaves the closure; with `?` on host values around it.
fn returns_in_closures(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let first = |n: usize| -> Option<i32> {
        if const_expr(n == 0) { return None; }
        let w = WEIGHTS.get(n)?;
        Some(*w)
    };
    let sum = |x: I32| { let mut s = x; for w in constexpr(WEIGHTS) { s += w; } s };
    for n in range_constexpr(4) {
        if let Some(w) = first(n) {
            a += w;
        } else {
            b = sum(b);
        }
        if a < b { *log += 1; }
    }
    a ^ b
}

// One name for many things, inside and outside of regions.
fn shadows(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let x = a + 1;
    let x = if x > b { let x = x * 2; x - b } else { let b = x; b + x };
    for x in range(0, x & 7) {
        let x = x + 1;
        let mut a = x;
        a += b;
        if a & 1 == 0 { continue; }
        let a = a * 3;
        *log = *log * 3 + a + x;
        let b = a;
        if b > 40 { break; }
    }
    let (a, b) = (b, a);
    let x = { let a = x; let y = { let x = a + b; x }; y + a };
    x + a * 5 + b
}

// Host enums: guards, ranges, bindings, nested patterns; arms that jump.
fn host_enums(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    enum Step { Add(i32), Twice, Skip, Both(Option<i32>, [i32; 2]) }
    let steps = [Step::Add(3), Step::Twice, Step::Skip, Step::Both(None, [1, 2]), Step::Both(Some(7), [4, 5]), Step::Add(12)];
    'steps: for (number, step) in constexpr(steps.iter().enumerate()) {
        match step {
            Step::Add(n @ 0..=9) if number == 0 => a += *n,
            Step::Add(n) => { b -= *n; if b < a { break 'steps; } }
            Step::Twice => { for i in range(0, a & 3) { a = a * 2; if i == 1 { break; } } }
            Step::Skip => continue,
            Step::Both(Some(n), [x, ..]) => a += *n * *x,
            Step::Both(None, [.., y]) => { if a > *y { *log += number as i32; continue 'steps; } a ^= b }
        }
        *log = *log * 7 + a;
    }
    a + b
}

// Patterns of every kind in `let`, in parameters and in assignments.
fn patterns(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let (x, [y, z]) = (a, [b, a + b]);
    let Pair { first, second: [_, mut last] } = Pair { first: x, second: [y, z] };
    let [head, middle @ .., tail] = [x, y, z, last];
    let ((p, _), q @ [r, ..]) = ((head, tail), middle);
    let mut pair = Pair { first: p, second: q };
    {
        let Pair { first: ref mut f, second: [ref mut s, _] } = pair;
        if *f > *s { *f += r; } else { *s -= *f; }
    }
    for i in range(0, a & 3) {
        let Pair { first, ref mut second } = pair;
        second[0] += first;
        last += i;
        (a, b) = (b + 1, a);
        [pair.first, pair.second[1]] = [pair.second[1], pair.first + i];
        (last, _) = (last + a, b);
        Pair { first: *log, .. } = Pair { first: *log + last, second: [a, b] };
    }
    pair.first + pair.second[0] * 3 + pair.second[1] * 5 + last + first
}

// Blocks, labels and loops as values.
fn values_of_blocks(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let x = 'found: {
        for i in range(0, b & 7) {
            if i * i > a { break 'found i; }
            *log += i;
        }
        if a < 0 { break 'found a; }
        b
    };
    let y = loop {
        a += 3;
        if a > x { break a - x; }
        if a & 8 == 8 { break 100 + a; }
    };
    let mut tries = a & 1;
    let z = 'outer: loop {
        let mut k = y & 3;
        while k < 10 {
            k += 4;
            if k + x > 5 { break 'outer k; }
            if k == 7 && tries < 3 { tries += 1; continue 'outer; }
        }
        if k > x { break k * 2; }
        break k * 3;
    };
    x * 7 + if y > z { y } else if y == z { z + 1 } else { let y = { let y = z; y }; y - 1 }
}

// Conditions of several parts with effects in them.
fn conditions(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut rounds = b & 15;
    while rounds > 0 && { *log += 1; a < 50 } && !(a == 7 || b == 3 && rounds > 2) {
        rounds -= 1;
        a += if rounds & 1 == 1 && a != b || rounds > 9 { b & 3 } else { 1 + (a & 1) };
        if (a > b) == (b > rounds) { continue; }
        b ^= 1;
    }
    let flag = a > b;
    let other = flag ^ (b > 4) | !(a < 3) & flag;
    if other != flag && !other || flag { *log *= 3; }
    a - rounds
}

// References to parts, kept across regions, swapped, handed on.
fn references(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    fn bump(place: &mut I32, by: I32) { *place += by; }
    let mut cells = [a, b, a + b, a - b];
    let mut nested = [[a; 2], [b; 2]];
    {
        let (low, high) = cells.split_at_mut(2);
        let third = &mut high[0];
        if a > b { std::mem::swap(&mut low[0], third); }
        for i in range(0, b & 3) {
            *third += i;
            low[1] = std::mem::replace(&mut low[0], *third);
            bump(&mut low[0], i);
        }
    }
    for row in constexpr(nested.iter_mut()) {
        for cell in constexpr(row) {
            if *cell > 2 { *cell -= 1; bump(cell, a); }
        }
    }
    let cell = if const_expr(WEIGHTS[0] == 1) { &mut cells[3] } else { &mut nested[0][0] };
    while *cell > 10 { *cell /= 3; bump(log, *cell); }
    cells.swap(0, 3);
    if cells[0] > cells[1] { cells.swap(0, 1); nested.reverse(); }
    cells[0] + cells[1] * 3 + cells[2] * 5 + cells[3] * 7 + nested[0][1] * 11 + nested[1][0] * 13
}

// Arrays by map and from_fn, folds, zips, windows: host iterators over kernel values.
fn iterators(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let lanes: [I32; 4] = std::array::from_fn(|i| a * (i as i32) + b);
    let doubled = lanes.map(|x| if x > 3 { x * 2 } else { x });
    let list: Vec<I32> = doubled.iter().zip(WEIGHTS).map(|(x, w)| *x + w).collect();
    let total = list.iter().fold(a, |sum, x| sum * 3 + *x);
    let most = lanes.into_iter().reduce(|x, y| if x > y { x } else { y });
    for pair in constexpr(doubled.windows(2)) {
        if pair[0] > pair[1] { *log += pair[0]; } else { *log ^= pair[1]; }
    }
    for (x, w) in constexpr(list.iter().rev().zip(WEIGHTS.iter().skip(1))) {
        a += *x * *w;
    }
    if let Some(most) = most { a += most; }
    a ^ total
}

// Items, macros and host code in a body.
fn items(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    const LIMIT: i32 = 5 * 4;
    static TABLE: [i32; 4] = [2, 3, 5, 7];
    type Row = [I32; 2];
    struct Local { row: Row }
    impl Local { fn total(&self) -> I32 { self.row[0] + self.row[1] } }
    macro_rules! add_all { ($to:ident: $($x:expr),*) => { $( $to += $x; )* }; }
    macro_rules! square { ($x:expr) => {{ let x = $x; x * x }}; }
    use std::cmp::max as larger_host;
    let local = Local { row: [a, b] };
    for i in range(0, a & 3) {
        add_all!(b: i, local.row[0], square!(i + 1), local.total());
    }
    if b > LIMIT { b -= TABLE[larger_host(1, 2)]; }
    let list = vec![a, b, local.total()];
    if const_expr(matches!(list.len(), 2..=4)) { *log += list[2]; }
    a + b + list[0]
}

// Chains of early returns below loops and branches of every kind.
fn early(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    if a > 100 { return a; }
    for i in range(0, a & 7) {
        if i == b { return i * 100; }
        let x = if i > 2 { if i == a { return a + i; } i + 1 } else if i == 1 { continue } else { *log += 1; i };
        while b < x {
            b += 2;
            if b == 6 { return *log + b; }
            if b & 1 == 1 { break; }
        }
        let Some(y) = some_if(true, x) else { return a };
        *log = *log * 5 + y;
        for w in constexpr(WEIGHTS) {
            if y == w { return y - w + i; }
            if y > w { break; }
        }
    }
    match WEIGHTS.len() { 3 => if b > 3 { return b }, _ => return a }
    { if a < b { return b - a; } }
    a * 2
}

// Helpers that return early, called inside loops and conditions; generic ones, with closures.
fn helpers(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    for i in range(0, b & 3) {
        if small(a + i) > 1 && small(b) < 3 { a += small(i); } else { *log += twice(|x| x + i, small(a)); }
        b = clamp_to([a, b], i);
    }
    a + small(clamp_to([b, a], a)) * b
}

// Structs of structs and arrays of structs as state, updated by parts, by methods and whole.
fn nested_state(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let start = Pair { first: a, second: [b, a] };
    let mut grid = [start, Pair { first: b, ..start }];
    let mut tuple = (a, (grid, [b]));
    for i in range(0, a & 3) {
        grid[1].second[0] += i;
        grid[0] = Pair { first: grid[1].first + i, ..grid[1] };
        if i & 1 == 1 {
            tuple.1.0[1].second[1] = grid[0].first;
            tuple.1.0[0] = tuple.1.0[1];
            (tuple.1).1[0] -= 1;
        } else {
            tuple.0 += tuple.1.0[0].first;
            grid.swap(0, 1);
        }
    }
    let (x, (grids, [y])) = tuple;
    grids.iter().fold(x, |s, p| s * 3 + p.first + p.second[0] * 2 + p.second[1]) + y + grid[0].first + grid[1].second[0]
}

// A variable without a first value, in branches, loops and matches; one that is moved on.
fn late_values(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let x;
    let y: I32;
    if a > b { x = a; y = b; } else if a == b { y = a; x = y + 1; } else { let z; if b > 4 { z = a; } else { z = b; } x = z; y = z - 1; }
    let n;
    match WEIGHTS.len() { 3 => n = 2, _ => n = 5 }
    let mut w;
    for i in range(0, x & 3) {
        w = i + n;
        let v;
        if w > y { v = w; } else { v = y; continue; }
        *log += v;
        w += 1;
        *log ^= w;
    }
    x + y
}

// Both sides of compile-time and run-time decisions inside each other.
fn mixed_stages(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    for pass in range_constexpr(3) {
        let weight = WEIGHTS[pass];
        if const_expr(pass == 1) {
            if a > b { a -= weight; } else { break; }
        } else if a < weight {
            for i in range(0, b & 3) {
                if const_expr(pass == 0) { a += i; } else if i == 2 { continue; }
                *log += a;
            }
        }
        let last = pass == WEIGHTS.len() - 1;
        let add = if const_expr(last) { a } else { b };
        for k in range_constexpr(2) {
            if add > weight { b += k as i32; if b > 30 { return b; } }
        }
    }
    a + b
}

// Deep nests: six levels, jumps over several of them.
fn deep(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    'a: for i in range(0, 3 + (a & 1)) {
        let mut k = i;
        'b: while k < 5 {
            k += 1;
            if k > a {
                'c: loop {
                    for j in range(0, k) {
                        if j == i { continue 'b; }
                        if j + k > 6 {
                            if b > j { break 'c; }
                            if a == j { continue 'a; }
                            break 'a;
                        }
                        *log = *log * 3 + j;
                    }
                    b += 1;
                    if b > 3 { break 'b; }
                }
                a += 1;
            }
            *log += k;
        }
        b -= i;
    }
    a * 3 + b
}

// Arithmetic that reads unusually: signs, shifts, precedence, literals on the left, wrapping at the ends.
fn arithmetic(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let x = 5 - a * 2 + -b;
    let y = !x & 0xff | 1 << 4 ^ b;
    let z = 1 - -(-x) - (y >> 2 & 3);
    let w = 100 / (3 + (a & 7)) + 17 % (1 + (b & 3)) - z / 3 + z % 5;
    a <<= 3;
    a >>= 1;
    b |= 6;
    b &= !2;
    b %= 9;
    a /= 2;
    *log += (1 << (b & 31)) + (a.max(b).min(y)) + w.abs() - 0x7fff_fff0;
    x * y - z + w * (2 + 3 * 4) - (a - (b - 1))
}

// Options, boxes and vectors of kernel values on the host's side.
fn containers(mut a: I32, mut b: I32, log: &mut I32) -> I32 {
    let mut stack = vec![a];
    for w in constexpr(WEIGHTS) {
        let top = stack[stack.len() - 1];
        stack.push(top * w + b);
    }
    for i in range(0, a & 3) {
        stack[0] += i;
        if stack[1] > i { stack[2] = stack[0]; }
    }
    let mut best: Option<I32> = None;
    while let Some(x) = stack.pop() {
        best = match best { Some(y) => Some(if x > y { x } else { y }), None => Some(x) };
    }
    let boxed = Box::new((a, b));
    if let (Some(best), true) = (best, WEIGHTS.len() == 3) { *log += best; }
    if boxed.0 > boxed.1 { *log -= boxed.1; }
    boxed.0 + b
}
}
