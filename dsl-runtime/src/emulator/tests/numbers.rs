//! Births of NaN and infinity: D1, D2 and D3 of the debugging cases, and what must not be reported.

use super::*;
use crate::emulator::{Check, ReportKind};

/// Computes `%r` from `%x` (an element of `x`) and stores it.
fn elementwise(lines: &str) -> String {
    format!("{THREAD}{}{lines}\n{}", load("x", "f32"), store("r", "d", "f32"))
}

fn kernel(body: &str) -> Kernel<'_> {
    Kernel { args: "x:in d:out", body, ..Kernel::default() }
}

/// 32 ones, with another number in lane 5.
fn ones_but(value: f32) -> [Arg; 2] {
    let mut x = [1.0; 32];
    x[5] = value;
    [f32s(&x), Arg::Uninit(128)]
}

fn line(report: &Report) -> Option<u32> {
    report.location.as_ref().map(|location| location.line)
}

fn run_with_checks(kernel: &Kernel<'_>, args: &[Arg], checks: Checks) -> Result<LaunchStats, Box<Report>> {
    let (_, values) = bind(args);
    crate::emulator::run(&kernel.decode(), &Launch { checks, ..Launch::new([1, 1, 1], values) })
}

#[test]
fn d1_a_fully_masked_row_is_infinity_minus_infinity() {
    // Row 5 has no visible key: its maximum stays -inf.
    let body = elementwise(
        "%ninf = arith.constant 0xFF800000 : f32\n%zero = arith.constant 0.0 : f32\n\
         %seen = arith.cmpf ogt, %x_v, %zero : f32\n%s = arith.select %seen, %x_v, %ninf : f32\n\
         %m = arith.maximumf %s, %ninf : f32 loc(\"k.rs\":10:5)\n\
         %t = arith.subf %s, %m : f32 loc(\"k.rs\":11:17)\n%r = math.exp %t : f32 loc(\"k.rs\":12:5)",
    );
    let report = kernel(&body).report(&ones_but(-1.0));
    assert_eq!((report.kind, line(&report)), (ReportKind::NotANumber, Some(11)));
    assert_eq!(report.message, "-inf - -inf is NaN");
    assert_eq!((report.lane, report.thread, report.block), (Some(5), Some([5, 0, 0]), Some([0, 0, 0])));
    assert!(report.notes[0].contains("was loaded, or is a constant"), "{report}");
    assert!(report.help.as_deref().unwrap().contains("select(F32::from(0.0), max)"), "{report}");
}

#[test]
fn a_score_that_was_too_large_is_told_from_a_masked_row() {
    let body =
        elementwise("%t = arith.subf %x_v, %x_v : f32 loc(\"k.rs\":11:17)\n%r = math.exp %t : f32 loc(\"k.rs\":12:5)");
    let report = kernel(&body).report(&ones_but(f32::INFINITY));
    assert_eq!((report.kind, line(&report)), (ReportKind::NotANumber, Some(11)));
    assert_eq!(report.message, "inf - inf is NaN");
    let help = report.help.as_deref().unwrap();
    assert!(help.contains("+inf") && !help.contains("masked"), "{help}");
}

/// A birth is found in the first lane that has one, whatever infinities others and earlier rounds go on with, and by
/// every operation.
#[test]
fn a_birth_beside_infinities_that_were_given_is_found() {
    let inf = f32::INFINITY;
    for (op, x, born) in [
        ("arith.subf %x_v, %one", -inf, None),
        ("arith.addf %x_v, %ninf", inf, Some("inf + -inf is NaN")),
        ("arith.mulf %x_v, %zero", -inf, Some("-inf * 0 is NaN")),
        ("math.fma %x_v, %zero, %one", inf, Some("inf * 0 + 1 is NaN")),
        ("math.fma %x_v, %one, %one", inf, None),
        ("math.fma %x_v, %one, %ninf", inf, Some("inf * 1 + -inf is NaN")),
        ("arith.divf %x_v, %inf", inf, Some("inf / inf is NaN")),
        ("math.sqrt %x_v", -inf, Some("sqrt(-inf) is NaN")),
        ("math.sqrt %x_v", inf, None),
        ("arith.addf %x_v, %one", f32::NAN, None),
    ] {
        let body = elementwise(&format!(
            "%one = arith.constant 1.0 : f32\n%zero = arith.constant 0.0 : f32\n%inf = arith.constant 0x7F800000 : f32\n\
             %ninf = arith.constant 0xFF800000 : f32\n%r = {op} : f32 loc(\"k.rs\":11:17)"
        ));
        let mut lanes = [1.0; 32];
        (lanes[5], lanes[30]) = (x, x);
        let found = run_with_checks(&kernel(&body), &[f32s(&lanes), Arg::Uninit(128)], Checks::default());
        assert_eq!(
            found.as_ref().err().map(|report| (report.message.as_str(), report.lane)),
            born.map(|b| (b, Some(5))),
            "{op}"
        );
    }
}

#[test]
fn d2_a_division_by_zero_is_the_mistake_not_the_nan_that_follows() {
    for (divide, shown) in [
        ("%i = arith.divf %one, %x_v : f32 loc(\"k.rs\":20:9)", "division by zero: 1 / 0 is inf"),
        ("%i = \"lw.rcp\"(%x_v) : (f32) -> f32 loc(\"k.rs\":20:9)", "division by zero: 1 / 0 is inf"),
        ("%i = math.rsqrt %x_v : f32 loc(\"k.rs\":20:9)", "division by zero: rsqrt(0) is inf"),
    ] {
        let body = elementwise(&format!(
            "%one = arith.constant 1.0 : f32\n{divide}\n%r = arith.mulf %x_v, %i : f32 loc(\"k.rs\":21:9)"
        ));
        let report = kernel(&body).report(&ones_but(0.0));
        assert_eq!((report.kind, line(&report)), (ReportKind::DivisionByZero, Some(20)), "{report}");
        assert_eq!(report.message, shown);
        assert_eq!(report.notes[0], "it becomes NaN at k.rs:21:9: 0 * inf");
        assert_eq!(report.lane, Some(5));
        assert!(report.help.as_deref().unwrap().contains("guard the divisor"));
    }
    let body = elementwise("%r = arith.divf %x_v, %x_v : f32 loc(\"k.rs\":20:9)");
    let report = kernel(&body).report(&ones_but(0.0));
    assert_eq!((report.kind, report.message.as_str()), (ReportKind::DivisionByZero, "0 / 0 is NaN"));
}

/// A loop in which the carried maximum starts at -inf.
fn online(step: &str) -> String {
    format!(
        "{THREAD}{}%ninf = arith.constant 0xFF800000 : f32\n%inf = arith.constant 0x7F800000 : f32\n\
         %zero = arith.constant 0.0 : f32\n%one = arith.constant 1.0 : f32\n\
         %c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%c3 = arith.constant 3 : i32\n\
         %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%m = %ninf, %l = %zero) -> (f32, f32) : i32 {{\n\
         %new = arith.maximumf %m, %x_v : f32\n{step}\n%sum = arith.addf %scaled, %one : f32\n\
         scf.yield %new, %sum : f32, f32\n}} loc(\"k.rs\":30:5)\n{}",
        load("x", "f32"),
        store("r#1", "d", "f32").replace("%d_p", "%dp")
    )
}

#[test]
fn d3_the_first_iteration_of_online_softmax_is_named() {
    // The old sum, 0, times exp(new - old) = exp(inf).
    let body = online(
        "%t = arith.subf %new, %m : f32 loc(\"k.rs\":31:9)\n%e = math.exp %t : f32 loc(\"k.rs\":32:9)\n\
         %scaled = arith.mulf %l, %e : f32 loc(\"k.rs\":33:9)",
    );
    let report = kernel(&body).report(&ones_but(2.0));
    assert_eq!((report.kind, line(&report)), (ReportKind::NotANumber, Some(33)), "{report}");
    assert_eq!(report.message, "0 * inf is NaN");
    assert!(report.notes.contains(&"in the first iteration of the loop at k.rs:30:5".to_owned()), "{report}");
    assert!(report.notes.iter().any(|note| note.starts_with("the NaN leaves the registers")), "{report}");
    // The right way round: exp(old - new) is 0.
    let body = online("%t = arith.subf %m, %new : f32\n%e = math.exp %t : f32\n%scaled = arith.mulf %l, %e : f32");
    kernel(&body).run([1, 1, 1], &ones_but(2.0));
}

#[test]
fn masks_and_results_that_are_thrown_away_are_not_reported() {
    let quiet = [
        // exp2(-inf) is 0; the maximum and the sum of -inf and a number are what they should be.
        "%ninf = arith.constant 0xFF800000 : f32\n%m = arith.maximumf %x_v, %ninf : f32\n%t = arith.subf %ninf, %m : f32\n\
         %r = math.exp2 %t : f32",
        // A guarded quotient.
        "%zero = arith.constant 0.0 : f32\n%q = arith.divf %x_v, %x_v : f32\n%e = arith.cmpf oeq, %x_v, %zero : f32\n\
         %r = arith.select %e, %zero, %q : f32",
        // The logarithm of an empty sum.
        "%r = math.log2 %x_v : f32",
        // NaN from memory.
        "%nan = arith.constant 0x7FC00000 : f32\n%r = arith.addf %nan, %x_v : f32",
    ];
    for lines in quiet {
        kernel(&elementwise(lines)).run([1, 1, 1], &ones_but(0.0));
    }
    let nan = kernel(&elementwise("%r = arith.mulf %x_v, %x_v : f32")).run([1, 1, 1], &ones_but(f32::NAN));
    assert!(to_f32s(&nan[1])[5].is_nan());
}

#[test]
fn every_form_of_nan_is_named_with_its_values() {
    let two = "%two = arith.constant 2.0 : f32\n%inf = arith.constant 0x7F800000 : f32\n";
    for (lines, value, message) in [
        ("%r = math.sqrt %x_v : f32", -1.0, "sqrt(-1) is NaN"),
        ("%r = math.log2 %x_v : f32", -3.5, "log2(-3.5) is NaN"),
        ("%n = arith.negf %inf : f32\n%r = arith.addf %inf, %n : f32", 1.0, "inf + -inf is NaN"),
        ("%r = arith.divf %inf, %inf : f32", 1.0, "inf / inf is NaN"),
        ("%r = math.fma %x_v, %inf, %two : f32", 0.0, "0 * inf + 2 is NaN"),
        ("%r = math.sin %inf : f32", 0.0, "sin(inf) is NaN"),
        ("%r = arith.remf %two, %x_v : f32", 0.0, "2 % 0 is NaN"),
    ] {
        let report = kernel(&elementwise(&format!("{two}{lines}"))).report(&ones_but(value));
        assert_eq!(report.message, message);
        let grown = message.starts_with("inf / ") || message.starts_with("inf + ");
        assert_eq!(report.help.is_some_and(|help| help.contains("grew too large")), grown, "{message}");
    }
}

#[test]
fn a_loaded_nan_is_not_laid_to_another_lanes_quotient() {
    // Lane 5 divides zero by zero and throws it away; lane 6 passes on what it loaded.
    let body = elementwise(
        "%zero = arith.constant 0.0 : f32\n%q = arith.divf %x_v, %x_v : f32\n%e = arith.cmpf oeq, %x_v, %zero : f32\n\
         %r = arith.select %e, %zero, %q : f32",
    );
    let mut x = [1.0; 32];
    (x[5], x[6]) = (0.0, f32::NAN);
    kernel(&body).run([1, 1, 1], &[f32s(&x), Arg::Uninit(128)]);
}

#[test]
fn idle_lanes_do_not_make_reports() {
    let body = format!(
        "{THREAD}%zero = arith.constant 0.0 : f32\n{}%some = arith.cmpf une, %x_v, %zero : f32\nscf.if %some {{\n\
         %r = arith.divf %x_v, %x_v : f32\n{}}}",
        load("x", "f32"),
        store("r", "d", "f32")
    );
    for target in ["sm_80", "gfx942"] {
        Kernel { target, block: [64, 1, 1], ..kernel(&body) }.run([1, 1, 1], &[f32s(&[0.0; 64]), Arg::Uninit(256)]);
    }
}

#[test]
fn the_upper_half_of_a_wave_and_narrow_types_are_looked_at() {
    let mut x = vec![1.0; 64];
    x[40] = 0.0;
    let body = elementwise("%r = arith.divf %x_v, %x_v : f32");
    let report = Kernel { target: "gfx942", block: [64, 1, 1], ..kernel(&body) }.report(&[f32s(&x), Arg::Uninit(256)]);
    assert_eq!((report.lane, report.thread), (Some(40), Some([40, 0, 0])));
    let body = format!("{THREAD}{}%r = arith.subf %x_v, %x_v : f16\n{}", load("x", "f16"), store("r", "d", "f16"));
    let mut halves = [0x3c00_u16; 32];
    halves[7] = 0xfc00;
    let report = kernel(&body).report(&[u16s(&halves), Arg::Uninit(64)]);
    assert_eq!((report.message.as_str(), report.lane), ("-inf - -inf is NaN", Some(7)));
}

#[test]
fn nan_that_becomes_an_integer_is_reported() {
    let body = format!(
        "{THREAD}{}%q = arith.divf %x_v, %x_v : f32\n%r = arith.fptosi %q : f32 to i32 loc(\"k.rs\":9:1)\n{}",
        load("x", "f32"),
        store("r", "d", "i32")
    );
    let report = kernel(&body).report(&ones_but(0.0));
    assert_eq!(report.message, "0 / 0 is NaN");
    assert_eq!(report.notes, ["the NaN leaves the registers at k.rs:9:1"]);
}

#[test]
fn infinities_are_reported_on_request() {
    let strict = Checks::default().with(Check::Infinity);
    for (lines, value, kind, message) in [
        ("%r = math.log2 %x_v : f32", 0.0, ReportKind::Infinity, "log2(0) is -inf"),
        (
            "%r = arith.mulf %x_v, %x_v : f32",
            1e30,
            ReportKind::Infinity,
            "1000000000000000000000000000000 * 1000000000000000000000000000000 is inf",
        ),
        (
            "%c = arith.constant -1.0 : f32\n%r = arith.divf %c, %x_v : f32",
            0.0,
            ReportKind::DivisionByZero,
            "-1 / 0 is -inf",
        ),
        (
            "%h = arith.truncf %x_v : f32 to f16\n%r = arith.extf %h : f16 to f32",
            70000.0,
            ReportKind::Infinity,
            "f16(70000) is inf",
        ),
    ] {
        let body = elementwise(lines);
        let report = run_with_checks(&kernel(&body), &ones_but(value), strict).unwrap_err();
        assert_eq!((report.kind, report.message.as_str(), report.lane), (kind, message, Some(5)));
        run_with_checks(&kernel(&body), &ones_but(value), Checks::default()).unwrap();
    }
    let body = elementwise("%r = arith.divf %x_v, %x_v : f32");
    run_with_checks(&kernel(&body), &ones_but(0.0), Checks::default().without(Check::Nan)).unwrap();
}

#[test]
fn a_matrix_product_names_the_term() {
    // A is all zeros but for an infinity that meets B's zeros in row 0.
    let body = format!(
        "{THREAD}%z = arith.constant 0.0 : f32\n%b = arith.constant dense<0.0> : vector<2xf16>\n{}\
         %h = arith.truncf %x_v : f32 to f16\n%a = vector.from_elements %h, %h : vector<2xf16>\n\
         %acc:4 = \"lw.mma_sync\"(%a, %a, %a, %a, %b, %b, %z, %z, %z, %z) {{m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = \"f16\", operandSegmentSizes = array<i32: 4, 2, 4>}} : \
         (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32) loc(\"k.rs\":7:2)\n{}",
        load("x", "f32"),
        store("acc#0", "d", "f32")
    );
    let report = kernel(&body).report(&ones_but(f32::INFINITY));
    assert_eq!((report.message.as_str(), line(&report)), ("inf * 0 + 0 in a matrix product is NaN", Some(7)));
    kernel(&body).run([1, 1, 1], &ones_but(2.0));
}
