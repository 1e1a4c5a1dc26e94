//! Mistakes with copies and products: kind, line and what the report says (D19, D20 and their kin).

use super::products::{Layout, Product};
use super::*;
use crate::emulator::{Check, ReportKind};

const SMALL: Product = Product { kind: "f16", n: 8, k: 16, a: Layout::K(32), b: Layout::K(32), zero: true, seed: 1 };
const F4: &str = "f32, f32, f32, f32";

/// Tiles A and B of [`SMALL`], filled from buffers by ordinary stores, with or without the fence.
fn tiles(body: &mut Body, fence: bool) -> (String, String) {
    let (a, b) = (body.shared("a", 0, 2048), body.shared("b", 2048, 256));
    body.fill_shared(&a, "%a", 512, 128);
    body.fill_shared(&b, "%b", 64, 128);
    if fence {
        body.fence("async_shared");
    }
    body.barrier();
    (a, b)
}

fn issue(body: &mut Body, line: u32, result: &str, (a, b): &(String, String), c: Option<&str>) {
    let product = Product { zero: c.is_none(), ..SMALL };
    let c = c.map_or(String::new(), |c| format!(", {c}#0, {c}#1, {c}#2, {c}#3"));
    body.at(
        line,
        &format!("{result}:4 = \"lw.wgmma\"({a}, {b}{c}) {} : ({}) -> ({F4})", product.attributes(0), product.types(0)),
    );
}

fn wait(body: &mut Body, line: u32, result: &str, groups: u32, value: &str) {
    body.at(
        line,
        &format!(
            "{result}:4 = \"lw.wgmma_wait\"({value}#0, {value}#1, {value}#2, {value}#3) {{groups = {groups} : i64}} : \
             ({F4}) -> ({F4})"
        ),
    );
}

fn put(body: &mut Body, line: u32, value: &str) {
    body.text += &element("d", "f32");
    body.at(line, &format!("\"lw.store\"({value}, %d_p) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()"));
}

/// Ones times ones: every sum is 16.
fn args() -> Vec<Arg> {
    let one = narrow_one();
    vec![u16s(&[one; 1024]), u16s(&[one; 128]), Arg::Uninit(512)]
}

fn narrow_one() -> u16 {
    crate::emulator::numeric::narrow::f32_to_f16(1.0)
}

fn kernel(body: &str) -> Kernel<'_> {
    hopper(128, 4096, "a:in b:in d:out", body)
}

#[test]
fn d19_ordinary_stores_read_by_wgmma_without_a_proxy_fence() {
    let build = |fence| {
        let mut body = Body::new();
        let tiles = tiles(&mut body, fence);
        issue(&mut body, 20, "%acc", &tiles, None);
        wait(&mut body, 21, "%r", 0, "%acc");
        put(&mut body, 22, "%r#0");
        body.text
    };
    let right = build(true);
    let results = under_seeds(&kernel(&right), [1, 1, 1], &args());
    assert!(to_f32s(&results[2]).iter().all(|&sum| sum == 16.0));
    let wrong = build(false);
    for report in reports(&kernel(&wrong), [1, 1, 1], &args()) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(20)), "{report}");
        let first = "race in shared memory: nothing orders this wgmma of index ";
        assert!(report.message.starts_with(first), "{report}");
        assert!(report.message.ends_with("and the write at k.rs:60:5: no proxy fence between them"), "{report}");
        assert!(report.notes.iter().any(|note| note.contains("a wgmma goes through the async proxy")), "{report}");
        assert!(report.help.as_deref().unwrap().contains("`fence_proxy(ProxyFence::AsyncShared)`"));
    }
}

#[test]
fn d19_ordinary_stores_read_by_a_tma_store_without_a_proxy_fence() {
    let build = |fence: bool| {
        let mut body = Body::new();
        let tile = body.shared("out", 0, 1024);
        body.fill_shared(&tile, "%x", 256, 64);
        if fence {
            body.fence("async_shared");
        }
        body.barrier();
        body.by_first(|body| {
            body.store(10, "%m", &tile, &["%zero".to_owned(), "%zero".to_owned()]);
            body.add("\"lw.tma_commit\"() : () -> ()");
            body.store_wait(11, 0, true);
        });
        body.text
    };
    let target = Buffer::zeroed(1024);
    let args = [map_of(&target, 2, &[64, 8], &[64, 8], 128), Arg::Bytes(vec![7; 1024])];
    under_seeds(&hopper(64, 1024, "m:map/bf16/64x8/128 x:in", &build(true)), [1, 1, 1], &args);
    for report in reports(&hopper(64, 1024, "m:map/bf16/64x8/128 x:in", &build(false)), [1, 1, 1], &args) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(10)), "{report}");
        assert!(report.message.contains("this TMA store of"), "{report}");
        assert!(report.message.ends_with("no proxy fence between them"), "{report}");
    }
}

#[test]
fn a_fence_by_the_reader_alone_is_enough_when_it_is_behind_the_barrier() {
    let mut body = Body::new();
    let tiles = tiles(&mut body, false);
    body.fence("async_shared");
    issue(&mut body, 20, "%acc", &tiles, None);
    wait(&mut body, 21, "%r", 0, "%acc");
    put(&mut body, 22, "%r#0");
    under_seeds(&kernel(&body.text), [1, 1, 1], &args());
}

#[test]
fn d20_an_accumulator_is_used_before_its_wait() {
    let mut body = Body::new();
    let tiles = tiles(&mut body, true);
    issue(&mut body, 20, "%acc", &tiles, None);
    body.at(30, "%bad = arith.addf %acc#1, %acc#1 : f32");
    wait(&mut body, 40, "%r", 0, "%acc");
    put(&mut body, 41, "%bad");
    for report in reports(&kernel(&body.text), [1, 1, 1], &args()) {
        assert_eq!((report.kind, line(&report)), (ReportKind::InFlight, Some(30)), "{report}");
        assert_eq!(report.message, "an accumulator is used while its wgmma is in flight");
        assert_eq!(report.notes[0], "the product was issued at k.rs:20:5");
        assert!(report.help.as_deref().unwrap().contains("call `wait` on the product"));
    }
    // Completed, but not given back.
    let late = body.text.replace("%bad = arith.addf %acc#1, %acc#1 : f32 loc(\"k.rs\":30:5)\n", "");
    let late = late.replace("\"lw.store\"(%bad", "\"lw.store\"(%acc#2");
    let report = kernel(&late).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::InFlight, Some(41)), "{report}");
    assert_eq!(report.message, "an accumulator is used that no wait has given back");
}

#[test]
fn d20_behind_a_branch_and_around_a_loop() {
    // The wait is in one arm alone.
    let mut body = Body::new();
    let tiles = tiles(&mut body, true);
    issue(&mut body, 20, "%acc", &tiles, None);
    let low = body.value("arith.cmpi slt, %warp, %zero : i32");
    body.add(&format!("%x = scf.if {low} -> (f32) {{"));
    wait(&mut body, 21, "%r", 0, "%acc");
    body.add("scf.yield %r#0 : f32\n} else {\nscf.yield %acc#0 : f32\n}");
    put(&mut body, 30, "%x");
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::InFlight, Some(30)), "{report}");

    // A product that is carried to the next iteration is waited for there: right.
    let mut body = Body::new();
    let tiles = tiles_of(&mut body);
    let (one, four) = (body.i32(1), body.i32(4));
    body.add("%f0 = arith.constant 0.0 : f32");
    body.add(&format!(
        "%o:4 = scf.for %it = %zero to {four} step {one} iter_args(%o0 = %f0, %o1 = %f0, %o2 = %f0, %o3 = %f0) -> ({F4}) : i32 {{"
    ));
    body.at(20, &format!("%w:4 = \"lw.wgmma_wait\"(%o0, %o1, %o2, %o3) {{groups = 0 : i64}} : ({F4}) -> ({F4})"));
    issue(&mut body, 21, "%n", &tiles, Some("%w"));
    body.add(&format!("scf.yield %n#0, %n#1, %n#2, %n#3 : {F4}\n}}"));
    let right = {
        let mut body = Body { text: body.text.clone(), next: body.next };
        wait(&mut body, 30, "%r", 0, "%o");
        put(&mut body, 31, "%r#3");
        body.text
    };
    let results = under_seeds(&kernel(&right), [1, 1, 1], &args());
    assert!(to_f32s(&results[2]).iter().all(|&sum| sum == 64.0), "{:?}", to_f32s(&results[2]));
    put(&mut body, 31, "%o#3");
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::InFlight, Some(31)), "{report}");
    assert_eq!(report.notes[0], "the product was issued at k.rs:21:5");
}

fn tiles_of(body: &mut Body) -> (String, String) {
    tiles(body, true)
}

#[test]
fn products_chain_and_complete_in_order() {
    // Two chains; a wait for all but the newest gives the first alone.
    let mut body = Body::new();
    let tiles = tiles(&mut body, true);
    issue(&mut body, 20, "%s0", &tiles, None);
    issue(&mut body, 21, "%s1", &tiles, Some("%s0"));
    issue(&mut body, 22, "%t", &tiles, None);
    wait(&mut body, 23, "%s", 1, "%s1");
    let left = body.text.clone();
    wait(&mut body, 24, "%u", 0, "%t");
    body.add("%sum = arith.addf %s#0, %u#0 : f32");
    put(&mut body, 25, "%sum");
    let results = under_seeds(&kernel(&body.text), [1, 1, 1], &args());
    assert!(to_f32s(&results[2]).iter().all(|&sum| sum == 48.0));

    let mut body = Body { text: left.clone(), next: 900 };
    wait(&mut body, 24, "%u", 1, "%t");
    wait(&mut body, 25, "%v", 0, "%u");
    put(&mut body, 26, "%v#0");
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::InFlight, Some(24)), "{report}");
    assert!(report.message.starts_with("this wait leaves the newest 1 products in flight"), "{report}");

    // An accumulator that a later product has taken.
    let mut body = Body { text: left.clone(), next: 900 };
    wait(&mut body, 24, "%u", 0, "%s0");
    put(&mut body, 25, "%u#0");
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::InFlight, Some(24)), "{report}");
    assert_eq!(report.message, "an accumulator that was handed on to a later wgmma is used");

    // The newest is never waited for.
    let report = kernel(&left).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::CopyInFlight, Some(22)), "{report}");
    assert_eq!(report.message, "a wgmma that is never waited for");
}

#[test]
fn an_operand_that_is_overwritten_before_the_wait_is_a_race_and_shows() {
    let mut body = Body::new();
    let tiles = tiles(&mut body, true);
    issue(&mut body, 20, "%acc", &tiles, None);
    // Each thread overwrites a word of B, whoever reads it.
    let sixty_three = body.i32(63);
    let index = body.value(&format!("arith.andi %tid_xi, {sixty_three} : i32"));
    let place = body.element(&tiles.1, &index, "i32");
    body.at(21, &format!("\"lw.store\"(%zero, {place}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
    wait(&mut body, 22, "%r", 0, "%acc");
    put(&mut body, 23, "%r#0");
    for report in reports(&kernel(&body.text), [1, 1, 1], &args()) {
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        assert_eq!(line(&report), Some(21), "{report}");
        assert!(report.message.ends_with("of `b` and the wgmma at k.rs:20:5"), "{report}");
        assert!(report.notes.iter().any(|note| note == "the product reads its operands until its wait"), "{report}");
    }
    let checks = Checks::default().without(Check::Races);
    let results = under_seeds(&Kernel { checks, ..kernel(&body.text) }, [1, 1, 1], &args());
    assert!(to_f32s(&results[2]).iter().any(|&sum| sum != 16.0));
}

#[test]
fn a_copy_over_the_operand_of_a_product_in_flight() {
    let build = |wait_first: bool| {
        let mut body = Body::new();
        let bar = body.shared("full", 2304, 8);
        body.make(&[(&bar, 1)]);
        let tiles = tiles(&mut body, true);
        issue(&mut body, 20, "%acc", &tiles, None);
        if wait_first {
            wait(&mut body, 21, "%r", 0, "%acc");
            body.barrier();
        }
        body.by_first(|body| {
            body.expect(22, &bar, 256);
            body.load(23, (&tiles.1, "%m", &bar), &["%zero".to_owned(), "%zero".to_owned()], 0);
        });
        if !wait_first {
            wait(&mut body, 24, "%r", 0, "%acc");
        }
        body.wait(25, &bar, "%zero");
        put(&mut body, 26, "%r#0");
        body.text
    };
    let twos = Buffer::from_bytes(&[0; 256]);
    let args = [args(), vec![map_of(&twos, 2, &[16, 8], &[16, 8], 32)]].concat();
    let run = |body: &str| reports(&hopper(128, 4096, "a:in b:in d:out m:map/f16/16x8/32", body), [1, 1, 1], &args);
    for report in run(&build(false)) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(23)), "{report}");
        assert!(report.message.contains("this TMA load of index "), "{report}");
        assert!(report.message.ends_with("of `b` and the wgmma at k.rs:20:5"), "{report}");
        assert!(report.notes.iter().any(|note| note == "the product reads its operands until its wait"), "{report}");
    }
    let right = build(true);
    let results = under_seeds(&hopper(128, 4096, "a:in b:in d:out m:map/f16/16x8/32", &right), [1, 1, 1], &args);
    assert!(to_f32s(&results[2]).iter().all(|&sum| sum == 16.0));
}

#[test]
fn reads_of_what_nothing_wrote_are_found_at_the_product() {
    let mut body = Body::new();
    let tile = body.shared("a", 0, 2048);
    let b = body.shared("b", 2048, 256);
    body.fill_shared(&tile, "%a", 512, 128);
    body.fence("async_shared");
    body.barrier();
    issue(&mut body, 20, "%acc", &(tile, b), None);
    wait(&mut body, 21, "%r", 0, "%acc");
    put(&mut body, 22, "%r#0");
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::Uninitialized, Some(20)), "{report}");
    assert!(report.message.contains("index 0 of 128 in `b`"), "{report}");
    assert!(report.notes.iter().any(|note| note.contains("it shows at the wait at k.rs:21:5")), "{report}");

    let mut body = Body::new();
    let (a, b) = (body.shared("a", 0, 1024), body.shared("b", 2048, 256));
    issue(&mut body, 20, "%acc", &(a, b), None);
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::OutOfBounds, Some(20)), "{report}");
}

#[test]
fn the_first_nan_of_a_product_is_named() {
    let mut body = Body::new();
    let tiles = tiles(&mut body, true);
    issue(&mut body, 20, "%acc", &tiles, None);
    wait(&mut body, 21, "%r", 0, "%acc");
    put(&mut body, 22, "%r#0");
    let infinity = crate::emulator::numeric::narrow::f32_to_f16(f32::INFINITY);
    // Row 0 of A is infinite, column 0 of B zero.
    let mut a = vec![narrow_one(); 1024];
    a[..16].fill(infinity);
    let mut b = vec![narrow_one(); 128];
    b[..16].fill(0);
    let report = kernel(&body.text).report(&[u16s(&a), u16s(&b), Arg::Uninit(512)]);
    assert_eq!((report.kind, line(&report)), (ReportKind::NotANumber, Some(20)), "{report}");
    assert_eq!(report.message, "inf * 0 + 0 in a matrix product is NaN");
    assert!(report.notes.iter().any(|note| note.contains("leaves the registers at k.rs:22:5")), "{report}");
}

#[test]
fn the_warps_of_a_warpgroup_do_the_same() {
    // Warp 3 skips the second product.
    let mut body = Body::new();
    let tiles = tiles(&mut body, true);
    let three = body.i32(3);
    let most = body.value(&format!("arith.cmpi slt, %warp, {three} : i32"));
    body.when(&most, |body| {
        issue(body, 20, "%acc", &tiles, None);
        wait(body, 21, "%r", 0, "%acc");
    });
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::Deadlock, Some(21)), "{report}");
    assert_eq!(
        report.notes[0],
        "warps 0 to 2 wait for a product that other warps of the warpgroup have not issued, at k.rs:21:5"
    );
    assert_eq!(report.notes[1], "warp 3 has ended");
    assert!(report.help.as_deref().unwrap().contains("all four warps of a warpgroup execute each wgmma"));

    // Warp 0 has another address of B.
    let mut body = Body::new();
    let (a, _) = tiles_of(&mut body);
    let none = body.value("arith.cmpi eq, %warp, %zero : i32");
    let (step, no) = (body.i32(256), body.i32(0));
    let offset = body.value(&format!("arith.select {none}, {no}, {step} : i32"));
    let base = body.shared("tiles", 2048, 512);
    let b = body.element(&base, &offset, "i8");
    issue(&mut body, 20, "%acc", &(a, b), None);
    wait(&mut body, 21, "%r", 0, "%acc");
    let report = kernel(&body.text).report(&args());
    assert_eq!((report.kind, line(&report)), (ReportKind::Warpgroup, Some(20)), "{report}");
    assert!(report.message.contains("another warp of its warpgroup does something else"), "{report}");
}

/// One load of 8 rows of 64 bf16, with what goes around it.
fn one_load(before: impl FnOnce(&mut Body, &str, &str), after: impl FnOnce(&mut Body, &str, &str)) -> String {
    let mut body = Body::new();
    let (tile, bar) = (body.shared("tile", 0, 1024), body.shared("full", 1024, 8));
    before(&mut body, &tile, &bar);
    body.by_first(|body| {
        body.expect(9, &bar, 1024);
        body.load(10, (&tile, "%m", &bar), &["%zero".to_owned(), "%zero".to_owned()], 0);
    });
    after(&mut body, &tile, &bar);
    body.text
}

fn load_reports(body: &str) -> Vec<Report> {
    let source = Buffer::from_bytes(&[1; 1024]);
    let args = [map_of(&source, 2, &[64, 8], &[64, 8], 128), Arg::Uninit(1024)];
    reports(&hopper(64, 1032, "m:map/bf16/64x8/128 d:out", body), [1, 1, 1], &args)
}

#[test]
fn a_load_that_is_not_waited_for() {
    let make = |body: &mut Body, _: &str, bar: &str| body.make(&[(bar, 1)]);
    for report in load_reports(&one_load(make, |body, tile, _| {
        body.barrier();
        body.dump_shared(tile, "%d", 256, 64);
    })) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(70)), "{report}");
        assert!(report.message.ends_with("of `tile` and the TMA load at k.rs:10:5"), "{report}");
        assert!(report.notes.iter().any(|note| note == "the copy has not been waited for"), "{report}");
    }
    for report in load_reports(&one_load(make, |_, _, _| {})) {
        assert_eq!((report.kind, line(&report)), (ReportKind::CopyInFlight, Some(10)), "{report}");
        assert_eq!(report.message, "a TMA load that is never waited for");
    }
}

/// Without checks, what is read before the wait shows when the copy landed: late with seed 0, early or late with others.
#[test]
fn copies_land_late_and_by_seed_early() {
    let body = one_load(
        |body, _, bar| body.make(&[(bar, 1)]),
        |body, tile, bar| {
            body.barrier();
            body.dump_shared(tile, "%d", 256, 64);
            body.barrier();
            body.wait(20, bar, "%zero");
        },
    );
    let kernel =
        Kernel { checks: crate::emulator::Checks::none(), ..hopper(64, 1032, "m:map/bf16/64x8/128 d:out", &body) };
    let program = kernel.decode();
    let landed: Vec<bool> = (0..20)
        .map(|seed| {
            let source = Buffer::from_bytes(&[1; 1024]);
            let args = [map_of(&source, 2, &[64, 8], &[64, 8], 128), Arg::Uninit(1024)];
            let (buffers, values) = bind(&args);
            let launch = Launch { seed, checks: kernel.checks, ..Launch::new([1, 1, 1], values) };
            crate::emulator::run(&program, &launch).unwrap();
            // The first warp's part; the copy may land before the second warp reads.
            buffers.last().unwrap().read()[0] == 1
        })
        .collect();
    assert!(!landed[0], "with seed 0 copies land as late as they may");
    let early = landed.iter().filter(|landed| **landed).count();
    assert!((2..18).contains(&early), "{early} of 20 seeds land the copy early");
}

#[test]
fn a_load_that_brings_other_bytes_than_expected() {
    let make = |body: &mut Body, _: &str, bar: &str| body.make(&[(bar, 1)]);
    let wait = |body: &mut Body, tile: &str, bar: &str| {
        body.wait(11, bar, "%zero");
        body.dump_shared(tile, "%d", 256, 64);
    };
    let right = one_load(make, wait);
    let more =
        right.replace("bytes = 1024 : i64} : (!llvm.ptr<3>) -> ()", "bytes = 2048 : i64} : (!llvm.ptr<3>) -> ()");
    for report in load_reports(&more) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Deadlock, Some(11)), "{report}");
        assert!(
            report.notes[0]
                .contains("`full`, which is in phase 0 (parity 0): 1 of 1 arrivals, 1024 of 2048 bytes still to come"),
            "{report}"
        );
        assert!(report.help.as_deref().unwrap().contains("exactly the bytes"));
    }
    // An arrival without bytes: the phase completes before the copy lands.
    let none = right
        .replace("\"lw.mbarrier_expect_tx\"", "\"lw.mbarrier_arrive\"")
        .replace("{bytes = 1024 : i64} : (!llvm.ptr<3>) -> () loc", ": (!llvm.ptr<3>) -> () loc");
    for report in load_reports(&none) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(70)), "{report}");
        assert!(report.message.contains("the TMA load at k.rs:10:5"), "{report}");
    }
}

#[test]
fn an_mbarrier_that_the_copy_engine_does_not_know() {
    let wait = |body: &mut Body, _: &str, bar: &str| body.wait(11, bar, "%zero");
    let unfenced = one_load(
        |body, _, bar| {
            body.by_first(|body| body.init(5, bar, 1));
            body.barrier();
        },
        wait,
    );
    for report in load_reports(&unfenced) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(10)), "{report}");
        assert_eq!(report.message, "no fence makes the mbarrier `full` known to copies and other blocks");
        assert_eq!(report.notes[0], "it is made at k.rs:5:5");
    }
    let unordered = one_load(
        |body, _, bar| {
            body.by_first(|body| {
                body.init(5, bar, 1);
                body.fence("mbarrier_init");
            });
        },
        wait,
    );
    for report in load_reports(&unordered) {
        assert!(matches!(report.kind, ReportKind::Race | ReportKind::Mbarrier), "{report}");
        assert_eq!(line(&report), Some(11), "{report}");
    }
}

#[test]
fn a_load_over_what_is_still_read_or_was_stored() {
    let make = |body: &mut Body, tile: &str, bar: &str| {
        body.make(&[(bar, 1)]);
        let place = body.element(tile, "%tid_xi", "i32");
        body.at(7, &format!("\"lw.store\"(%tid_xi, {place}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
        body.barrier();
    };
    for report in load_reports(&one_load(make, |body, _, bar| body.wait(11, bar, "%zero"))) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(10)), "{report}");
        assert!(report.message.ends_with("the write at k.rs:7:5: no proxy fence between them"), "{report}");
    }
    let misaligned = one_load(|body, _, bar| body.make(&[(bar, 1)]), |_, _, _| {})
        .replace("offset = 0 : i64, bytes = 1024", "offset = 16 : i64, bytes = 1008");
    for report in load_reports(&misaligned) {
        assert_eq!(line(&report), Some(10));
        assert!(matches!(report.kind, ReportKind::Misaligned | ReportKind::OutOfBounds), "{report}");
    }
}

#[test]
fn launches_check_tensor_maps() {
    let body = one_load(|body, _, bar| body.make(&[(bar, 1)]), |body, _, bar| body.wait(11, bar, "%zero"));
    let kernel = hopper(64, 1032, "m:map/bf16/64x8/128 d:out", &body);
    let source = Buffer::from_bytes(&[1; 1024]);
    for (map, message) in [
        (map_of(&source, 4, &[32, 8], &[32, 8], 128), "has elements of 4 bytes; the kernel's have 2"),
        (map_of(&source, 2, &[512], &[64], 128), "has 1 dimensions; the kernel takes 2"),
        (map_of(&source, 2, &[64, 8], &[32, 8], 128), "has boxes of [32, 8]; the kernel copies boxes of [64, 8]"),
        (map_of(&source, 2, &[64, 8], &[64, 8], 64), "has a swizzle of 64 bytes; the kernel's tiles have 128"),
        (map_of(&source, 2, &[64, 9], &[64, 8], 128), "has an element outside its buffer"),
        (Arg::Uninit(64), "argument `m` is no tensor map; the kernel takes one"),
    ] {
        let report = kernel.report(&[map, Arg::Uninit(1024)]);
        assert_eq!(report.kind, ReportKind::BadLaunch);
        assert!(report.message.contains(message), "{report}");
    }
}
