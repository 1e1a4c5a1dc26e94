//! Every operation on values against a model on one element: scalars and vectors, warps and waves,
//! in divergent code.

use super::*;
use crate::emulator::numeric::narrow::{self, Fp8};

const TARGETS: [&str; 2] = ["sm_80", "gfx942"];
/// Threads: the last warp is partial.
const THREADS: usize = 104;
const INTEGERS: [&str; 4] = ["i8", "i16", "i32", "i64"];
const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];

fn bits(ty: &str) -> u32 {
    8 * scalar_bytes(ty)
}

/// One operation on inputs of `inputs` types.
struct Case<'a> {
    /// The operation with its attributes.
    op: &'a str,
    attributes: &'a str,
    inputs: &'a [&'a str],
    output: &'a str,
    /// What an input may be, by its index.
    draw: &'a dyn Fn(&mut Random, usize) -> u64,
    model: &'a dyn Fn(&[u64]) -> u64,
}

fn vector(ty: &str, count: usize) -> String {
    if count == 1 { ty.to_owned() } else { format!("vector<{count}x{ty}>") }
}

fn to_bytes(ty: &str, values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()[..scalar_bytes(ty) as usize].to_vec()).collect()
}

fn from_bytes(ty: &str, bytes: &[u8]) -> Vec<u64> {
    let size = scalar_bytes(ty) as usize;
    bytes
        .chunks(size)
        .map(|chunk| {
            let mut all = [0; 8];
            all[..size].copy_from_slice(chunk);
            u64::from_le_bytes(all)
        })
        .collect()
}

/// A float's value; exact for every type here.
fn to_f64(ty: &str, bits: u64) -> f64 {
    match ty {
        "f16" => narrow::f16_to_f32(bits as u16).into(),
        "bf16" => narrow::bf16_to_f32(bits as u16).into(),
        "f32" => f32::from_bits(bits as u32).into(),
        "f64" => f64::from_bits(bits),
        "f8E4M3FN" => narrow::fp8_to_f32(Fp8::E4m3, bits as u8).into(),
        "f8E5M2" => narrow::fp8_to_f32(Fp8::E5m2, bits as u8).into(),
        _ => panic!("{ty}"),
    }
}

/// A float of a type, rounded once.
fn from_f64(ty: &str, value: f64) -> u64 {
    let odd = narrow::f64_to_f32_odd(value);
    match ty {
        "f16" => narrow::f32_to_f16(odd).into(),
        "bf16" => narrow::f32_to_bf16(odd).into(),
        "f32" => (value as f32).to_bits().into(),
        "f64" => value.to_bits(),
        "f8E4M3FN" => narrow::f32_to_fp8(Fp8::E4m3, odd, false).into(),
        "f8E5M2" => narrow::f32_to_fp8(Fp8::E5m2, odd, false).into(),
        _ => panic!("{ty}"),
    }
}

fn is_float(ty: &str) -> bool {
    !ty.starts_with('i')
}

fn same(ty: &str, a: u64, b: u64) -> bool {
    a == b || is_float(ty) && to_f64(ty, a).is_nan() && to_f64(ty, b).is_nan()
}

fn sext(ty: &str, value: u64) -> i64 {
    let unused = 64 - bits(ty);
    (value << unused) as i64 >> unused
}

/// Operations on numbers of all kinds make NaN as they should.
fn quiet<'a>() -> Kernel<'a> {
    Kernel { checks: Checks::none(), ..Kernel::default() }
}

impl Case<'_> {
    fn check(&self) {
        for target in TARGETS {
            for count in [1, 4] {
                self.check_on(target, count);
            }
        }
    }

    fn check_on(&self, target: &str, count: usize) {
        let names = ["a", "b", "c"];
        let mut random = Random(count as u64 * 77);
        let inputs: Vec<Vec<u64>> = (0..self.inputs.len())
            .map(|index| (0..THREADS * count).map(|_| (self.draw)(&mut random, index)).collect())
            .collect();
        let mut body = format!(
            "{THREAD}%three = arith.constant 3 : i32\n%rem = arith.remui %tid, %three : i32\n%zero = arith.constant 0 : i32\n\
             %some = arith.cmpi ne, %rem, %zero : i32\nscf.if %some {{\n"
        );
        let mut args = String::new();
        let mut types = Vec::new();
        let mut operands = Vec::new();
        for (name, ty) in names.iter().zip(self.inputs) {
            let ty = vector(ty, count);
            body += &load(name, &ty);
            args += &format!("{name}:in ");
            operands.push(format!("%{name}_v"));
            types.push(ty);
        }
        let output = vector(self.output, count);
        body += &format!(
            "%r = \"{}\"({}) {{{}}} : ({}) -> {output}\n",
            self.op,
            operands.join(", "),
            self.attributes,
            types.join(", ")
        );
        body += &store("r", "d", &output);
        body += "}\n";
        args += "d:out";
        let kernel = Kernel { target, block: [THREADS as u32, 1, 1], args: &args, body: &body, ..quiet() };
        let mut values: Vec<Arg> = inputs.iter().zip(self.inputs).map(|(v, ty)| Arg::Bytes(to_bytes(ty, v))).collect();
        values.push(Arg::Bytes(vec![0x55; THREADS * count * scalar_bytes(self.output) as usize]));
        let buffers = kernel.run([1, 1, 1], &values);
        let results = from_bytes(self.output, buffers.last().unwrap());
        let untouched = 0x5555_5555_5555_5555 & (u64::MAX >> (64 - bits(self.output)));
        for (index, &result) in results.iter().enumerate() {
            let operands: Vec<u64> = inputs.iter().map(|input| input[index]).collect();
            let active = !(index / count).is_multiple_of(3);
            let expected = if active { (self.model)(&operands) } else { untouched };
            assert!(
                same(self.output, result, expected),
                "{} {} {:?} -> {} on {target} x{count}: {operands:x?} gives {result:x}, expected {expected:x}",
                self.op,
                self.attributes,
                self.inputs,
                self.output
            );
        }
    }
}

fn edgy(ty: &'static str) -> impl Fn(&mut Random, usize) -> u64 {
    move |random, _| random.edgy(bits(ty))
}

/// Bits of floats, many near one.
fn edgy_float(ty: &'static str) -> impl Fn(&mut Random, usize) -> u64 {
    move |random, _| match random.next() % 3 {
        0 => random.edgy(bits(ty)),
        _ => from_f64(ty, (random.next() % 4001) as f64 / 100.0 - 20.0),
    }
}

#[test]
fn integer_arithmetic() {
    type Model = fn(i64, i64, u64, u64, u32) -> u64;
    let ops: &[(&str, Model)] = &[
        ("arith.addi", |a, b, _, _, _| a.wrapping_add(b) as u64),
        ("arith.subi", |a, b, _, _, _| a.wrapping_sub(b) as u64),
        ("arith.muli", |a, b, _, _, _| a.wrapping_mul(b) as u64),
        ("arith.andi", |a, b, _, _, _| (a & b) as u64),
        ("arith.ori", |a, b, _, _, _| (a | b) as u64),
        ("arith.xori", |a, b, _, _, _| (a ^ b) as u64),
        ("arith.maxsi", |a, b, _, _, _| a.max(b) as u64),
        ("arith.minsi", |a, b, _, _, _| a.min(b) as u64),
        ("arith.maxui", |_, _, a, b, _| a.max(b)),
        ("arith.minui", |_, _, a, b, _| a.min(b)),
    ];
    for ty in INTEGERS {
        let mask = u64::MAX >> (64 - bits(ty));
        for (op, model) in ops {
            let model = |v: &[u64]| model(sext(ty, v[0]), sext(ty, v[1]), v[0], v[1], bits(ty)) & mask;
            Case { op, attributes: "", inputs: &[ty, ty], output: ty, draw: &edgy(ty), model: &model }.check();
        }
    }
}

#[test]
fn division_wraps_at_its_overflow() {
    type Model = fn(i64, i64, u64, u64) -> u64;
    let ops: &[(&str, Model)] = &[
        ("arith.divsi", |a, b, _, _| a.wrapping_div(b) as u64),
        ("arith.remsi", |a, b, _, _| a.wrapping_rem(b) as u64),
        ("arith.divui", |_, _, a, b| a / b),
        ("arith.remui", |_, _, a, b| a % b),
    ];
    for ty in INTEGERS {
        let mask = u64::MAX >> (64 - bits(ty));
        for (op, model) in ops {
            let model = |v: &[u64]| model(sext(ty, v[0]), sext(ty, v[1]), v[0], v[1]) & mask;
            let draw = |random: &mut Random, index: usize| {
                let value = random.edgy(bits(ty));
                if index == 1 && value == 0 { mask } else { value }
            };
            Case { op, attributes: "", inputs: &[ty, ty], output: ty, draw: &draw, model: &model }.check();
        }
    }
}

#[test]
fn shifts_and_bit_counts() {
    for ty in INTEGERS {
        let width = bits(ty);
        let mask = u64::MAX >> (64 - width);
        type Model = fn(i64, u64, u64) -> u64;
        let ops: &[(&str, Model)] = &[
            ("arith.shli", |a, _, n| (a as u64) << n),
            ("arith.shrui", |_, a, n| a >> n),
            ("arith.shrsi", |a, _, n| (a >> n) as u64),
        ];
        for (op, model) in ops {
            let draw = |random: &mut Random, index: usize| {
                if index == 1 { random.next() % u64::from(width) } else { random.edgy(width) }
            };
            let model = |v: &[u64]| model(sext(ty, v[0]), v[0], v[1]) & mask;
            Case { op, attributes: "", inputs: &[ty, ty], output: ty, draw: &draw, model: &model }.check();
        }
        let counts: &[(&str, fn(u64, i64, u32) -> u64)] = &[
            ("math.ctpop", |a, _, _| a.count_ones().into()),
            ("math.ctlz", |a, _, width| (a.leading_zeros() - (64 - width)).into()),
            ("math.cttz", |a, _, width| a.trailing_zeros().min(width).into()),
            ("math.absi", |_, a, _| a.wrapping_abs() as u64),
        ];
        for (op, model) in counts {
            let model = |v: &[u64]| model(v[0], sext(ty, v[0]), width) & mask;
            Case { op, attributes: "", inputs: &[ty], output: ty, draw: &edgy(ty), model: &model }.check();
        }
    }
}

/// A condition as a byte through `arith.extui`.
fn check_compare(
    op: &str,
    predicate: i64,
    ty: &'static str,
    draw: &dyn Fn(&mut Random, usize) -> u64,
    model: &dyn Fn(u64, u64) -> bool,
) {
    for (target, count) in [("sm_80", 1), ("sm_80", 4), ("gfx942", 1), ("gfx942", 4)] {
        let mut random = Random(predicate as u64);
        let inputs: Vec<Vec<u64>> =
            (0..2).map(|i| (0..THREADS * count).map(|_| draw(&mut random, i)).collect()).collect();
        let (t, i1, i8) = (vector(ty, count), vector("i1", count), vector("i8", count));
        let body = format!(
            "{THREAD}{}{}%c = \"{op}\"(%a_v, %b_v) {{predicate = {predicate} : i64}} : ({t}, {t}) -> {i1}\n\
             %r = arith.extui %c : {i1} to {i8}\n{}",
            load("a", &t),
            load("b", &t),
            store("r", "d", &i8)
        );
        let kernel = Kernel { target, block: [THREADS as u32, 1, 1], args: "a:in b:in d:out", body: &body, ..quiet() };
        let args =
            [Arg::Bytes(to_bytes(ty, &inputs[0])), Arg::Bytes(to_bytes(ty, &inputs[1])), Arg::Uninit(THREADS * count)];
        let results = kernel.run([1, 1, 1], &args).pop().unwrap();
        for (i, &result) in results.iter().enumerate() {
            let (a, b) = (inputs[0][i], inputs[1][i]);
            assert_eq!(result == 1, model(a, b), "{op} {predicate} {ty} {target} x{count}: {a:x} {b:x}");
        }
    }
}

#[test]
fn comparisons() {
    use std::cmp::Ordering;
    for ty in INTEGERS {
        for predicate in 0..10 {
            let model = |a: u64, b: u64| {
                let (x, y) = (sext(ty, a), sext(ty, b));
                [a == b, a != b, x < y, x <= y, x > y, x >= y, a < b, a <= b, a > b, a >= b][predicate as usize]
            };
            let draw = |random: &mut Random, _| random.edgy(bits(ty)) & 0x8000_0000_8080_8083;
            check_compare("arith.cmpi", predicate, ty, &draw, &model);
        }
    }
    for ty in FLOATS {
        for predicate in 0..16 {
            let model = |a: u64, b: u64| {
                let order = to_f64(ty, a).partial_cmp(&to_f64(ty, b));
                // Bits of `arith::CmpFPredicate` from 1 to 6 and 8 on: equal, greater, less, unordered.
                let (equal, greater, less, unordered) = (
                    order == Some(Ordering::Equal),
                    order == Some(Ordering::Greater),
                    order == Some(Ordering::Less),
                    order.is_none(),
                );
                let ordered = [false, equal, greater, greater | equal, less, less | equal, less | greater, !unordered];
                match predicate {
                    0..=7 => ordered[predicate as usize],
                    8..=13 => unordered | ordered[predicate as usize - 7],
                    14 => unordered,
                    _ => true,
                }
            };
            check_compare("arith.cmpf", predicate, ty, &edgy_float(ty), &model);
        }
    }
}

#[test]
fn float_arithmetic() {
    fn extremum(a: f64, b: f64, larger: bool, number: bool) -> f64 {
        if a.is_nan() || b.is_nan() {
            return if number && !a.is_nan() {
                a
            } else if number && !b.is_nan() {
                b
            } else {
                f64::NAN
            };
        }
        // Zeros are ordered by sign.
        let a_larger = if a == b { b.is_sign_negative() } else { a > b };
        if a_larger == larger { a } else { b }
    }
    let ops: &[(&str, fn(f64, f64) -> f64)] = &[
        ("arith.addf", |a, b| a + b),
        ("arith.subf", |a, b| a - b),
        ("arith.mulf", |a, b| a * b),
        ("arith.divf", |a, b| a / b),
        ("arith.remf", |a, b| a % b),
        ("arith.maximumf", |a, b| extremum(a, b, true, false)),
        ("arith.minimumf", |a, b| extremum(a, b, false, false)),
        ("arith.maxnumf", |a, b| extremum(a, b, true, true)),
        ("arith.minnumf", |a, b| extremum(a, b, false, true)),
        ("math.copysign", f64::copysign),
    ];
    for ty in FLOATS {
        for (op, model) in ops {
            // Twice rounding is innocuous from binary64 to these for one operation (Figueroa).
            let model = |v: &[u64]| from_f64(ty, model(to_f64(ty, v[0]), to_f64(ty, v[1])));
            let draw = edgy_float(ty);
            Case { op, attributes: "", inputs: &[ty, ty], output: ty, draw: &draw, model: &model }.check();
        }
        let fma = |v: &[u64]| {
            let [a, b, c] = [v[0], v[1], v[2]].map(|v| to_f64(ty, v));
            match ty {
                "f32" => u64::from(libm::fmaf(a as f32, b as f32, c as f32).to_bits()),
                "f64" => libm::fma(a, b, c).to_bits(),
                // The product is exact in binary64; the sum is too for these draws or rounds to odd.
                _ => {
                    let sum = libm::fma(a, b, c);
                    let error = libm::fma(a, b, -sum) + c;
                    let odd = if error != 0.0 && sum.to_bits() & 1 == 0 && error.is_finite() {
                        let outward = (error > 0.0) == (sum > 0.0);
                        f64::from_bits(if outward { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
                    } else {
                        sum
                    };
                    from_f64(ty, odd)
                }
            }
        };
        let draw = edgy_float(ty);
        Case { op: "math.fma", attributes: "", inputs: &[ty; 3], output: ty, draw: &draw, model: &fma }.check();
    }
}

#[test]
fn float_functions() {
    let exact: &[(&str, fn(f64) -> f64)] = &[
        ("arith.negf", |a| -a),
        ("math.absf", f64::abs),
        ("math.sqrt", f64::sqrt),
        ("math.floor", f64::floor),
        ("math.ceil", f64::ceil),
        ("math.round", f64::round),
        ("math.roundeven", f64::round_ties_even),
        ("math.trunc", f64::trunc),
    ];
    for ty in FLOATS {
        for (op, model) in exact {
            let model = |v: &[u64]| from_f64(ty, model(to_f64(ty, v[0])));
            let draw = edgy_float(ty);
            Case { op, attributes: "", inputs: &[ty], output: ty, draw: &draw, model: &model }.check();
        }
    }
    let close: &[(&str, fn(f64) -> f64, f64)] = &[
        ("math.exp", f64::exp, 1e-4),
        ("math.exp2", f64::exp2, 1e-4),
        ("math.log", f64::ln, 1e-5),
        ("math.log2", f64::log2, 1e-5),
        ("math.log10", f64::log10, 1e-5),
        ("math.rsqrt", |a| 1.0 / a.sqrt(), 1e-6),
        ("math.sin", f64::sin, 1e-6),
        ("math.cos", f64::cos, 1e-6),
        ("math.tanh", f64::tanh, 1e-5),
        ("math.erf", libm::erf, 1e-6),
    ];
    for ty in FLOATS {
        for (op, exact, fast_error) in close {
            for attributes in ["", "fastmath = #arith.fastmath<afn>"] {
                let body = format!(
                    "{THREAD}{}%r = \"{op}\"(%a_v) {{{attributes}}} : ({ty}) -> {ty}\n{}",
                    load("a", ty),
                    store("r", "d", ty)
                );
                let kernel = Kernel { block: [96, 1, 1], args: "a:in d:out", body: &body, ..quiet() };
                let inputs: Vec<u64> = (0..96).map(|i| from_f64(ty, f64::from(i) * 0.21 - 9.0)).collect();
                let args = [Arg::Bytes(to_bytes(ty, &inputs)), Arg::Uninit(96 * scalar_bytes(ty) as usize)];
                let results = from_bytes(ty, &kernel.run([1, 1, 1], &args).pop().unwrap());
                let step = match ty {
                    "f16" => 2e-3,
                    "bf16" => 1.6e-2,
                    "f32" => 4e-7,
                    _ => 1e-14,
                };
                let allowed = if attributes.is_empty() || ty == "f64" { step } else { step + fast_error };
                for (&input, &result) in inputs.iter().zip(&results) {
                    let (expected, result) = (exact(to_f64(ty, input)), to_f64(ty, result));
                    let near = (result - expected).abs() <= allowed * expected.abs().max(1e-3);
                    assert!(
                        near || result.is_nan() && expected.is_nan() || from_f64(ty, expected) == from_f64(ty, result),
                        "{op} {attributes} {ty}: {} gives {result:e}, expected {expected:e}",
                        to_f64(ty, input)
                    );
                }
            }
        }
    }
}

#[test]
fn conversions_between_integers() {
    for (i, narrow) in INTEGERS.into_iter().enumerate() {
        for wide in INTEGERS.into_iter().skip(i + 1) {
            let mask = u64::MAX >> (64 - bits(wide));
            let sign = |v: &[u64]| sext(narrow, v[0]) as u64 & mask;
            let zero = |v: &[u64]| v[0];
            let low = |v: &[u64]| v[0] & (u64::MAX >> (64 - bits(narrow)));
            let (up, down) = (edgy(narrow), edgy(wide));
            Case { op: "arith.extsi", attributes: "", inputs: &[narrow], output: wide, draw: &up, model: &sign }
                .check();
            Case { op: "arith.extui", attributes: "", inputs: &[narrow], output: wide, draw: &up, model: &zero }
                .check();
            Case { op: "arith.trunci", attributes: "", inputs: &[wide], output: narrow, draw: &down, model: &low }
                .check();
        }
    }
}

#[test]
fn conversions_between_floats() {
    for (from, to) in [
        ("f16", "f32"),
        ("bf16", "f32"),
        ("f16", "f64"),
        ("bf16", "f64"),
        ("f32", "f64"),
        ("f8E4M3FN", "f32"),
        ("f8E5M2", "f32"),
        ("f8E4M3FN", "f16"),
        ("f8E5M2", "f64"),
    ] {
        let model = |v: &[u64]| from_f64(to, to_f64(from, v[0]));
        let draw = |random: &mut Random, _| random.edgy(bits(from));
        Case { op: "arith.extf", attributes: "", inputs: &[from], output: to, draw: &draw, model: &model }.check();
    }
    for (from, to) in [
        ("f32", "f16"),
        ("f32", "bf16"),
        ("f64", "f16"),
        ("f64", "bf16"),
        ("f64", "f32"),
        ("f32", "f8E4M3FN"),
        ("f32", "f8E5M2"),
        ("f16", "f8E5M2"),
        ("f64", "f8E4M3FN"),
    ] {
        let draw = edgy_float(from);
        let model = |v: &[u64]| from_f64(to, to_f64(from, v[0]));
        Case { op: "arith.truncf", attributes: "", inputs: &[from], output: to, draw: &draw, model: &model }.check();
        if scalar_bytes(to) == 1 {
            continue;
        }
        let toward_zero = |v: &[u64]| {
            let exact = to_f64(from, v[0]);
            let nearest = from_f64(to, exact);
            let away = to_f64(to, nearest).abs() > exact.abs();
            if away { nearest - 1 } else { nearest }
        };
        let attributes = "roundingmode = 3 : i32";
        Case { op: "arith.truncf", attributes, inputs: &[from], output: to, draw: &draw, model: &toward_zero }.check();
    }
    for (to, format) in [("f8E4M3FN", Fp8::E4m3), ("f8E5M2", Fp8::E5m2)] {
        let model = |v: &[u64]| narrow::f32_to_fp8(format, f32::from_bits(v[0] as u32), true).into();
        let draw = edgy_float("f32");
        for target in TARGETS {
            Case { op: "lw.to_fp8", attributes: "", inputs: &["f32"], output: to, draw: &draw, model: &model }
                .check_on(target, 1);
        }
    }
}

#[test]
fn conversions_between_integers_and_floats() {
    for integer in INTEGERS {
        for float in FLOATS {
            let draw = edgy(integer);
            let exact = |value: i128| {
                // Once rounded: to binary64 with the last bit sticky, then to the type.
                let nearest = value as f64;
                let error = value - nearest as i128;
                let bits = nearest.to_bits();
                let odd = if float == "f64" || error == 0 || bits & 1 == 1 {
                    nearest
                } else {
                    f64::from_bits(if (error > 0) == (value > 0) { bits + 1 } else { bits - 1 })
                };
                from_f64(float, odd)
            };
            let signed = |v: &[u64]| exact(sext(integer, v[0]).into());
            let unsigned = |v: &[u64]| exact(v[0].into());
            Case { op: "arith.sitofp", attributes: "", inputs: &[integer], output: float, draw: &draw, model: &signed }
                .check();
            Case {
                op: "arith.uitofp",
                attributes: "",
                inputs: &[integer],
                output: float,
                draw: &draw,
                model: &unsigned,
            }
            .check();

            let draw = edgy_float(float);
            let mask = u64::MAX >> (64 - bits(integer));
            let width = bits(integer);
            let to_signed = |v: &[u64]| {
                let (low, high) = (-(2_f64.powi(width as i32 - 1)), 2_f64.powi(width as i32 - 1));
                let x = to_f64(float, v[0]);
                (if x >= high {
                    i64::MAX >> (64 - width)
                } else if x <= low {
                    i64::MIN >> (64 - width)
                } else {
                    x as i64
                }) as u64
                    & mask
            };
            let to_unsigned = |v: &[u64]| {
                let x = to_f64(float, v[0]);
                if x >= 2_f64.powi(width as i32) { mask } else { x as u64 & mask }
            };
            Case {
                op: "arith.fptosi",
                attributes: "",
                inputs: &[float],
                output: integer,
                draw: &draw,
                model: &to_signed,
            }
            .check();
            Case {
                op: "arith.fptoui",
                attributes: "",
                inputs: &[float],
                output: integer,
                draw: &draw,
                model: &to_unsigned,
            }
            .check();
        }
    }
}

#[test]
fn bit_casts() {
    for (a, b) in [("i32", "f32"), ("i64", "f64"), ("i16", "f16"), ("bf16", "i16"), ("i8", "f8E5M2")] {
        let same_bits = |v: &[u64]| v[0];
        for (from, to) in [(a, b), (b, a)] {
            let draw = |random: &mut Random, _| random.next() & (u64::MAX >> (64 - bits(from)));
            Case { op: "arith.bitcast", attributes: "", inputs: &[from], output: to, draw: &draw, model: &same_bits }
                .check();
        }
    }
    // Vectors of other element widths keep their bytes.
    for target in TARGETS {
        for (from, to) in [
            ("vector<4xi8>", "vector<2xf16>"),
            ("vector<4xf16>", "vector<2xf32>"),
            ("vector<2xi32>", "vector<1xi64>"),
            ("vector<2xf64>", "vector<8xf16>"),
            ("vector<16xi8>", "vector<2xi64>"),
        ] {
            let body = format!(
                "{THREAD}{}%r = vector.bitcast %a_v : {from} to {to}\n{}",
                load("a", from),
                store("r", "d", to)
            );
            let kernel = Kernel { target, block: [64, 1, 1], args: "a:in d:out", body: &body, ..quiet() };
            let bytes: Vec<u8> = (0..64 * 16).map(|i: u32| (i * 37 + i / 256) as u8).collect();
            let size = crate::emulator::decode::types::ValueType::parse(from).unwrap().bytes() as usize * 64;
            let result = kernel.run([1, 1, 1], &[Arg::Bytes(bytes[..size].to_vec()), Arg::Uninit(size)]).pop().unwrap();
            assert_eq!(result, bytes[..size], "{from} {to} {target}");
        }
    }
}

#[test]
fn selects_and_vector_parts() {
    let body = format!(
        "{THREAD}{}{}\
         %c = arith.cmpf olt, %a_v, %b_v : vector<4xf16>\n%m = arith.select %c, %a_v, %b_v : vector<4xi1>, vector<4xf16>\n\
         %x = vector.extract %m[3] : f16 from vector<4xf16>\n%y = vector.extract %m[0] : f16 from vector<4xf16>\n\
         %c0 = vector.extract %c[0] : i1 from vector<4xi1>\n\
         %z = arith.select %c0, %x, %y : f16\n\
         %i = vector.insert %z, %m [2] : f16 into vector<4xf16>\n\
         %f = vector.from_elements %y, %x : vector<2xf16>\n%g = vector.extract %f[1] : f16 from vector<2xf16>\n\
         %h = vector.insert %g, %i [1] : f16 into vector<4xf16>\n{}",
        load("a", "vector<4xf16>"),
        load("b", "vector<4xf16>"),
        store("h", "d", "vector<4xf16>")
    );
    for target in TARGETS {
        let kernel = Kernel { target, block: [64, 1, 1], args: "a:in b:in d:out", body: &body, ..quiet() };
        let value = |seed: u64| {
            let mut random = Random(seed);
            (0..256).map(|_| from_f64("f16", (random.next() % 100) as f64)).collect::<Vec<u64>>()
        };
        let (a, b) = (value(1), value(1000));
        let args = [Arg::Bytes(to_bytes("f16", &a)), Arg::Bytes(to_bytes("f16", &b)), Arg::Uninit(512)];
        let results = from_bytes("f16", &kernel.run([1, 1, 1], &args).pop().unwrap());
        for (thread, result) in results.chunks(4).enumerate() {
            let (a, b) = (&a[4 * thread..], &b[4 * thread..]);
            let m: Vec<u64> = (0..4).map(|i| a[i].min(b[i])).collect();
            let z = if a[0] < b[0] { m[3] } else { m[0] };
            assert_eq!(result, [m[0], m[3], z, m[3]], "{target}");
        }
    }
}

#[test]
fn conditions_are_values() {
    let body = format!(
        "{THREAD}%c8 = arith.constant 8 : i32\n%c16 = arith.constant 16 : i32\n%t = arith.constant true\n\
         %a = arith.cmpi slt, %tid, %c8 : i32\n%b = arith.cmpi slt, %tid, %c16 : i32\n\
         %x = arith.xori %a, %b : i1\n%n = arith.xori %x, %t : i1\n%e = arith.cmpi eq, %a, %n : i1\n\
         %s = arith.select %x, %e, %b : i1\n%w = arith.extui %s : i1 to i32\n%v = arith.extsi %n : i1 to i64\n\
         %v32 = arith.trunci %v : i64 to i32\n%back = arith.trunci %v32 : i32 to i1\n%f = arith.uitofp %back : i1 to f32\n\
         %fi = arith.fptosi %f : f32 to i32\n%sh = arith.shli %fi, %c8 : i32\n%r = arith.addi %w, %sh : i32\n{}",
        store("r", "d", "i32")
    );
    for target in TARGETS {
        let kernel = Kernel { target, block: [64, 1, 1], args: "d:out", body: &body, ..quiet() };
        let results = to_i32s(&kernel.run([1, 1, 1], &[Arg::Uninit(256)]).pop().unwrap());
        for (thread, result) in results.into_iter().enumerate() {
            let (a, b) = (thread < 8, thread < 16);
            let (x, n) = (a ^ b, !(a ^ b));
            let s = if x { a == n } else { b };
            assert_eq!(result, i32::from(s) + (i32::from(n) << 8), "{target} {thread}");
        }
    }
}

#[test]
fn constants_of_every_type() {
    for (ty, text, expected) in [
        ("i8", "-3 : i8", vec![0xfd]),
        ("i64", "-3 : i64", vec![u64::MAX - 2]),
        ("f16", "1.5 : f16", vec![0x3e00]),
        ("bf16", "0xFF80 : bf16", vec![0xff80]),
        ("f32", "0x7FC00000 : f32", vec![0x7fc0_0000]),
        ("f64", "0.1 : f64", vec![0.1_f64.to_bits()]),
        ("f8E5M2", "2.0 : f8E5M2", vec![0x40]),
        ("vector<3xi16>", "dense<[1, -1, 2]> : vector<3xi16>", vec![1, 0xffff, 2]),
        ("vector<2xf16>", "dense<[0.5, 0xFC00]> : vector<2xf16>", vec![0x3800, 0xfc00]),
        ("vector<2xf64>", "dense<2.0> : vector<2xf64>", vec![2.0_f64.to_bits(); 2]),
    ] {
        let elem = ty.split_once('x').map_or(ty, |(_, rest)| rest.trim_end_matches('>'));
        let body = format!("{THREAD}%r = arith.constant {text}\n{}", store("r", "d", ty));
        let kernel = Kernel { block: [1, 1, 1], args: "d:out", body: &body, ..quiet() };
        let size = expected.len() * scalar_bytes(elem) as usize;
        let result = from_bytes(elem, &kernel.run([1, 1, 1], &[Arg::Uninit(size)]).pop().unwrap());
        assert_eq!(result, expected, "{text}");
    }
}
