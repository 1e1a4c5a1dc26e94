//! mbarriers between threads, registers, run-time named barriers.

use super::*;
use crate::emulator::{Check, ReportKind};

/// Warp 0 writes numbers to two stages, warps 1 and 2 read them: `rounds` times.
fn pipeline(rounds: i32, full_arrivals: u32) -> String {
    let mut body = Body::new();
    let tile = body.shared("tile", 0, 256);
    let full = body.shared("full", 256, 16);
    let empty = body.shared("empty", 272, 16);
    let one = body.i32(1);
    let [full1, empty1] = [&full, &empty].map(|base| body.element(base, &one, "i64"));
    body.make(&[(&full, full_arrivals), (&full1, full_arrivals), (&empty, 64), (&empty1, 64)]);
    let is_producer = body.value("arith.cmpi eq, %warp, %zero : i32");
    let (count, two) = (body.i32(rounds), body.i32(2));
    // it: stage = it % 2, phase = it / 2 % 2.
    let stages = |body: &mut Body, inner: &dyn Fn(&mut Body, &str, [&str; 3], &str)| {
        body.add(&format!("scf.for %it = %zero to {count} step {one} : i32 {{"));
        let stage = body.value(&format!("arith.remui %it, {two} : i32"));
        let turn = body.value(&format!("arith.divui %it, {two} : i32"));
        let phase = body.value(&format!("arith.andi {turn}, {one} : i32"));
        let full = body.element(&full, &stage, "i64");
        let empty = body.element(&empty, &stage, "i64");
        let row = body.value(&format!("arith.muli {stage}, %c32 : i32"));
        let index = body.value(&format!("arith.addi {row}, %lane : i32"));
        let place = body.element(&tile, &index, "i32");
        inner(body, &phase, [&full, &empty, &place], "%it");
        body.add("}");
    };
    body.add(&format!("scf.if {is_producer} {{"));
    stages(&mut body, &|body, phase, [full, empty, place], it| {
        let free = body.value(&format!("arith.xori {phase}, {one} : i32"));
        body.wait(20, empty, &free);
        let hundred = body.i32(100);
        let value = body.value(&format!("arith.muli {it}, {hundred} : i32"));
        let value = body.value(&format!("arith.addi {value}, %lane : i32"));
        body.at(21, &format!("\"lw.store\"({value}, {place}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
        body.arrive(22, full);
    });
    body.add("} else {");
    stages(&mut body, &|body, phase, [full, empty, place], it| {
        body.wait(30, full, phase);
        let value = body.name();
        body.at(31, &format!("{value} = \"lw.load\"({place}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"));
        body.arrive(32, empty);
        // d[it][consumer][lane]
        let sixty_four = body.i32(64);
        let row = body.value(&format!("arith.muli {it}, {sixty_four} : i32"));
        let slot = body.value(&format!("arith.addi {row}, %tid_xi : i32"));
        let slot = body.value(&format!("arith.subi {slot}, %c32 : i32"));
        let wide = body.value(&format!("arith.extsi {slot} : i32 to i64"));
        let to = body.value(&format!("llvm.getelementptr %d[{wide}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32"));
        body.add(&format!("\"lw.store\"({value}, {to}) {{align = 4 : i64}} : (i32, !llvm.ptr<1>) -> ()"));
    });
    body.add("}");
    body.text
}

#[test]
fn a_pipeline_of_stages_hands_over_every_value() {
    let body = pipeline(7, 32);
    let kernel = hopper(96, 512, "d:out", &body);
    let results = to_i32s(&under_seeds(&kernel, [1, 1, 1], &[Arg::Uninit(7 * 64 * 4)])[0]);
    for (slot, value) in results.iter().enumerate() {
        assert_eq!(*value, (slot / 64 * 100 + slot % 32) as i32);
    }
}

#[test]
fn d17_an_arrival_too_few_is_a_deadlock_with_its_counts() {
    let body = pipeline(7, 33);
    for report in reports(&hopper(96, 512, "d:out", &body), [1, 1, 1], &[Arg::Uninit(7 * 64 * 4)]) {
        assert_eq!(report.kind, ReportKind::Deadlock);
        assert_eq!(report.message, "deadlock: every warp waits or has ended");
        assert_eq!((line(&report), report.warp), (Some(20), Some(0)));
        assert_eq!(
            report.notes[0],
            "warp 0 waits for parity 0 of the mbarrier `empty[0]`, which is in phase 0 (parity 0): 0 of 64 arrivals, \
             0 of 0 bytes still to come at k.rs:20:5"
        );
        assert_eq!(
            report.notes[1],
            "warps 1 and 2 wait for parity 0 of the mbarrier `full[0]`, which is in phase 0 (parity 0): 32 of 33 arrivals, \
             0 of 0 bytes still to come at k.rs:30:5"
        );
        assert!(report.help.unwrap().contains("as many arrivals as threads arrive"));
    }
}

#[test]
fn d17_a_wait_for_the_wrong_parity_is_a_deadlock_that_says_so() {
    let mut body = Body::new();
    let bar = body.shared("ready", 0, 8);
    body.make(&[(&bar, 64)]);
    body.arrive(10, &bar);
    let one = body.i32(1);
    body.wait(11, &bar, "%zero");
    body.wait(12, &bar, &one);
    for report in reports(&hopper(64, 64, "", &body.text), [1, 1, 1], &[]) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Deadlock, Some(12)));
        assert!(
            report.notes[0].starts_with(
                "warps 0 and 1 wait for parity 1 of the mbarrier `ready`, which is in phase 1 (parity 1): 0 of 64 arrivals"
            ),
            "{report}"
        );
        assert!(report.help.unwrap().contains("the other parity"));
    }
}

#[test]
fn a_reader_that_skips_its_wait_is_a_race() {
    let mut skipping = Body::new();
    let tile = skipping.shared("tile", 0, 128);
    let bar = skipping.shared("full", 128, 8);
    skipping.make(&[(&bar, 32)]);
    let place = skipping.element(&tile, "%lane", "i32");
    let is_producer = skipping.value("arith.cmpi eq, %warp, %zero : i32");
    skipping.add(&format!("scf.if {is_producer} {{"));
    skipping.at(21, &format!("\"lw.store\"(%lane, {place}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
    skipping.arrive(22, &bar);
    skipping.add("} else {");
    skipping.at(31, &format!("%x = \"lw.load\"({place}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"));
    skipping.add("}");
    let kernel =
        Kernel { checks: Checks::default().without(Check::Initialized), ..hopper(64, 256, "", &skipping.text) };
    for report in reports(&kernel, [1, 1, 1], &[]) {
        assert_eq!(report.kind, ReportKind::Race, "{report}");
        assert!(matches!(line(&report), Some(21 | 31)));
    }
}

#[test]
fn wrong_use_of_an_mbarrier_is_reported() {
    let run = |build: &dyn Fn(&mut Body, &str)| {
        let mut body = Body::new();
        let bar = body.shared("bar", 0, 16);
        build(&mut body, &bar);
        let kernel = hopper(64, 64, "", &body.text);
        let report = reports(&kernel, [1, 1, 1], &[]).swap_remove(0);
        (report.kind, line(&report), report.message.clone(), report)
    };
    let (kind, at, message, _) = run(&|body, bar| body.arrive(10, bar));
    assert_eq!((kind, at), (ReportKind::Mbarrier, Some(10)));
    assert_eq!(message, "`bar[0]` is no mbarrier: nothing has made it one");

    let (kind, at, message, report) = run(&|body, bar| {
        body.by_first(|body| {
            body.init(10, bar, 1);
            body.init(11, bar, 1);
        });
    });
    assert_eq!((kind, at), (ReportKind::Mbarrier, Some(11)));
    assert_eq!(message, "the mbarrier `bar[0]` is made a second time");
    assert_eq!(report.notes[0], "it was made at k.rs:10:5");

    let (kind, at, message, _) = run(&|body, bar| {
        // The bytes of the phase are still to come.
        body.make(&[(bar, 1)]);
        body.by_first(|body| {
            body.expect(11, bar, 64);
            body.arrive(12, bar);
        });
    });
    assert_eq!((kind, at), (ReportKind::Mbarrier, Some(12)));
    assert_eq!(message, "an arrival too many at the mbarrier `bar[0]`: its phase has 1");

    let (kind, at, message, report) = run(&|body, bar| {
        body.by_first(|body| body.init(10, bar, 64));
        body.arrive(12, bar);
    });
    assert!(matches!(kind, ReportKind::Race | ReportKind::Mbarrier), "{report}");
    assert_eq!(at, Some(12), "{message}");

    for (op, verb) in [
        ("%x = \"lw.load\"(BAR) {align = 4 : i64} : (!llvm.ptr<3>) -> i32", "read"),
        ("\"lw.store\"(%zero, BAR) {align = 4 : i64} : (i32, !llvm.ptr<3>) -> ()", "write"),
    ] {
        let (kind, at, message, report) = run(&|body, bar| {
            body.make(&[(bar, 1)]);
            body.at(13, &op.replace("BAR", bar));
        });
        assert_eq!((kind, at), (ReportKind::Mbarrier, Some(13)), "{report}");
        assert_eq!(message, format!("{verb} of the bytes of the mbarrier `bar[0]`"));
    }

    let mut body = Body::new();
    let bar = body.shared("bar", 4, 8);
    body.by_first(|body| body.init(10, &bar, 1));
    let report = hopper(32, 64, "", &body.text).report(&[]);
    assert_eq!((report.kind, line(&report)), (ReportKind::Misaligned, Some(10)));

    let mut body = Body::new();
    let bar = body.shared("bar", 0, 8);
    body.init(10, &bar, 0);
    let refused = hopper(32, 64, "", &body.text).try_decode().unwrap_err().to_string();
    assert!(refused.contains("1 to 1048575 arrivals, not 0"), "{refused}");
}

#[test]
fn named_barriers_by_run_time_numbers() {
    let mut body = Body::new();
    let two = body.i32(2);
    // Warps 0 and 1 meet at barrier 2, warps 2 and 3 at barrier 3.
    let pair = body.value(&format!("arith.divui %warp, {two} : i32"));
    let tile = body.shared("tile", 0, 512);
    let mine = body.element(&tile, "%tid_xi", "i32");
    let other = body.value("arith.xori %tid_xi, %c32 : i32");
    let theirs = body.element(&tile, &other, "i32");
    body.add(&format!("\"lw.store\"(%tid_xi, {mine}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
    body.at(
        9,
        &format!("\"lw.named_barrier\"({pair}) {{id = 2 : i64, threads = 64 : i64, kind = \"sync\"}} : (i32) -> ()"),
    );
    let value = body.value(&format!("\"lw.load\"({theirs}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"));
    body.text += &store(&value[1..], "d", "i32");
    let results = under_seeds(&hopper(128, 512, "d:out", &body.text), [1, 1, 1], &[Arg::Uninit(512)]);
    let results = to_i32s(&results[0]);
    assert!(results.iter().enumerate().all(|(i, &v)| v as usize == i ^ 32), "{results:?}");

    let wrong = body.text.replace("id = 2", "id = 15");
    let report = &reports(&hopper(128, 512, "d:out", &wrong), [1, 1, 1], &[Arg::Uninit(512)])[0];
    assert_eq!((report.message.as_str(), line(report)), ("named barrier 16: there are those from 1 to 15", Some(9)));
    let wrong = body.text.replace(&format!("({pair}) {{id"), "(%tid_xi) {id");
    let report = &reports(&hopper(128, 512, "d:out", &wrong), [1, 1, 1], &[Arg::Uninit(512)])[0];
    assert_eq!(report.kind, ReportKind::NotUniform);
    assert!(report.message.starts_with("the number of a named barrier is not the same in all lanes of the warp"));
}

#[test]
fn uniform_values_are_checked() {
    for target in ["sm_80", "sm_90a", "gfx942"] {
        let mut body = Body::new();
        let width = if target == "gfx942" { 6 } else { 5 };
        let shift = body.i32(width);
        let wave = body.value(&format!("arith.shrui %tid_xi, {shift} : i32"));
        let same = body.value(&format!("\"lw.uniform\"({wave}) : (i32) -> i32"));
        body.text += &store(&same[1..], "d", "i32");
        let kernel = Kernel { target, block: [128, 1, 1], args: "d:out", body: &body.text, ..Kernel::default() };
        let results = to_i32s(&kernel.run([1, 1, 1], &[Arg::Uninit(512)])[0]);
        assert!(results.iter().enumerate().all(|(i, &v)| v as usize == i >> width));

        let mut body = Body::new();
        body.at(9, "%u = \"lw.uniform\"(%tid_xi) : (i32) -> i32");
        let report = Kernel { target, body: &body.text, ..Kernel::default() }.report(&[]);
        assert_eq!((report.kind, line(&report), report.lane), (ReportKind::NotUniform, Some(9), Some(1)));
        assert_eq!(report.message, "the value is not the same in all lanes of the warp: 0 and 1");
    }
}

/// Four warpgroups: the first gives registers away, the others take more.
fn registers(taken: [u32; 4]) -> String {
    let mut body = Body::new();
    let c128 = body.i32(128);
    let group = body.value(&format!("arith.divui %tid_xi, {c128} : i32"));
    for (number, count) in taken.into_iter().enumerate() {
        let this = body.i32(number as i32);
        let own = body.value(&format!("arith.cmpi eq, {group}, {this} : i32"));
        let kind = if count < 128 { "dec" } else { "inc" };
        let at = 10 + number as u32;
        body.when(&own, |body| {
            body.at(at, &format!("\"lw.setmaxnreg\"() {{regs = {count} : i64, kind = \"{kind}\"}} : () -> ()"));
        });
    }
    body.text
}

#[test]
fn registers_move_between_warpgroups() {
    under_seeds(&hopper(512, 0, "", &registers([32, 160, 160, 160])), [2, 1, 1], &[]);
    for report in reports(&hopper(512, 0, "", &registers([40, 160, 160, 160])), [1, 1, 1], &[]) {
        assert_eq!(report.kind, ReportKind::Deadlock);
        assert!(matches!(line(&report), Some(11..=13)), "{report}");
        let waits = report.notes.iter().find(|note| note.contains("registers")).unwrap();
        assert!(
            waits.contains("waits for 160 registers a thread (it has 128; all 16 warps have 2048 together, 128 each)"),
            "{waits}"
        );
        assert!(report.help.unwrap().contains("must not exceed 128 times their number"));
    }
    let mut body = Body::new();
    body.at(9, "\"lw.setmaxnreg\"() {regs = 24 : i64, kind = \"inc\"} : () -> ()");
    let report = hopper(128, 0, "", &body.text).report(&[]);
    assert_eq!((report.kind, line(&report)), (ReportKind::Warpgroup, Some(9)));
    assert_eq!(report.message, "registers go from 248 to 24 a thread here");
    let refused = body.text.replace("= 24", "= 30");
    let refused = hopper(128, 0, "", &refused).try_decode().unwrap_err().to_string();
    assert!(refused.contains("a multiple of 8 from 24 to 256, not 30"), "{refused}");

    // One warp of the warpgroup alone.
    let mut body = Body::new();
    let own = body.value("arith.cmpi eq, %warp, %zero : i32");
    body.when(&own, |body| body.at(9, "\"lw.setmaxnreg\"() {regs = 24 : i64, kind = \"dec\"} : () -> ()"));
    let report = hopper(128, 0, "", &body.text).report(&[]);
    assert_eq!((report.kind, line(&report)), (ReportKind::Warpgroup, Some(9)));
    assert!(report.message.contains("which other warps of its warpgroup execute"), "{}", report.message);
}
