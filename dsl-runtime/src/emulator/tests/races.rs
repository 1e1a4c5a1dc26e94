//! Races in shared memory (D18) and between blocks, copies that are not waited for, and loops that
//! cannot end (D15).

use super::*;
use crate::emulator::{Check, ReportKind};

const SHARED: &str = "%s = \"lw.shared\"() {offset = 0 : i64, bytes = 1024 : i64, align = 16 : i64, name = \"tile\"} : () -> !llvm.ptr<3>\n";

/// `%NAME = tile[index]` as a pointer to elements of a type.
fn pointer(name: &str, index: &str, ty: &str) -> String {
    format!("%{name} = llvm.getelementptr %s[%{index}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, {ty}\n")
}

fn put(value: &str, name: &str, ty: &str, line: u32) -> String {
    let align = scalar_bytes(ty);
    format!(
        "\"lw.store\"(%{value}, %{name}) {{align = {align} : i64}} : ({ty}, !llvm.ptr<3>) -> () loc(\"k.rs\":{line}:5)\n"
    )
}

fn get(result: &str, name: &str, ty: &str, line: u32) -> String {
    let align = scalar_bytes(ty);
    format!(
        "%{result} = \"lw.load\"(%{name}) {{align = {align} : i64}} : (!llvm.ptr<3>) -> {ty} loc(\"k.rs\":{line}:9)\n"
    )
}

/// All threads write their element at line 10, `sync`, and read element `tid ^ distance` at line 20.
fn exchange(distance: u32, sync: &str) -> String {
    format!(
        "{THREAD}{SHARED}{}{}{sync}%k = arith.constant {distance} : i32\n%j = arith.xori %tid_xi, %k : i32\n{}{}{}",
        pointer("p", "tid_xi", "i32"),
        put("tid", "p", "i32", 10),
        pointer("q", "j", "i32"),
        get("r", "q", "i32", 20),
        store("r", "d", "i32")
    )
}

fn kernel<'a>(target: &'a str, threads: u32, body: &'a str) -> Kernel<'a> {
    // Without the check for unwritten bytes: the race must be found whatever the order of warps.
    let checks = Checks::default().without(Check::Initialized);
    Kernel { target, block: [threads, 1, 1], shared: 1024, args: "d:out", body, checks, attributes: "" }
}

fn line(report: &Report) -> Option<u32> {
    report.location.as_ref().map(|location| location.line)
}

/// Runs under ten seeds; all must agree on whether there is a mistake.
fn under_seeds(kernel: &Kernel<'_>, grid: u32, args: &[Arg]) -> Result<(), Box<Report>> {
    let program = kernel.decode();
    let mut reports: Vec<Result<(), Box<Report>>> = (0..10)
        .map(|seed| {
            let (_, values) = bind(args);
            let launch = Launch { seed, checks: kernel.checks, ..Launch::new([grid, 1, 1], values) };
            crate::emulator::run(&program, &launch).map(|_| ())
        })
        .collect();
    assert!(reports.windows(2).all(|pair| pair[0].is_ok() == pair[1].is_ok()), "{reports:?}");
    reports.swap_remove(0)
}

#[test]
fn d18_shared_memory_written_by_one_warp_and_read_by_another() {
    let body = exchange(32, "");
    for seed in 0..10 {
        let (_, values) = bind(&[Arg::Uninit(256)]);
        let kernel = kernel("sm_80", 64, &body);
        let launch = Launch { seed, checks: kernel.checks, ..Launch::new([1, 1, 1], values) };
        let report = crate::emulator::run(&kernel.decode(), &launch).unwrap_err();
        // The second warp's write or read meets what the first has done.
        assert_eq!(report.kind, ReportKind::Race);
        assert!(matches!(line(&report), Some(10 | 20)), "{report}");
        assert!(report.message.contains("k.rs:10:5") || report.message.contains("k.rs:20:9"), "{report}");
        assert!(report.notes[1].ends_with("meet at no barrier between the two"), "{report}");
        assert_eq!(report.help.as_deref(), Some("put a `barrier()` between the two"));
    }
    for target in ["sm_80", "gfx942"] {
        under_seeds(&kernel(target, 128, &exchange(64, "gpu.barrier\n")), 3, &[Arg::Uninit(1536)]).unwrap();
    }
}

#[test]
fn d18_names_lines_threads_and_values_of_a_race() {
    // Warp 0 writes; the named barrier orders nothing, since it is passed before the write.
    let body = format!(
        "{THREAD}{SHARED}{}%c32 = arith.constant 32 : i32\n%first = arith.cmpi slt, %tid_xi, %c32 : i32\n\
         %j = arith.andi %tid_xi, %c31 : i32\n{}scf.if %first {{\n{}}} else {{\n}}\n\
         \"lw.named_barrier\"() {{id = 1 : i64, threads = 64 : i64, kind = \"sync\"}} : () -> ()\n\
         scf.if %first {{\n{}}} else {{\n{}{}}}\n",
        "%c31 = arith.constant 31 : i32\n",
        pointer("p", "j", "i32"),
        put("tid", "p", "i32", 10),
        put("tid_ni", "p", "i32", 11),
        get("r", "p", "i32", 20),
        store("r", "d", "i32"),
    );
    let kernel = kernel("sm_80", 64, &body);
    for seed in 0..10 {
        let (_, values) = bind(&[Arg::Bytes(vec![0; 256])]);
        let launch = Launch { seed, checks: kernel.checks, ..Launch::new([1, 1, 1], values) };
        let report = crate::emulator::run(&kernel.decode(), &launch).unwrap_err();
        if line(&report) == Some(20) {
            assert_eq!(
                report.message,
                "race in shared memory: nothing orders this read of index 0 of `tile` and the write at k.rs:11:5"
            );
            assert_eq!(report.notes[0], "the write was by thread (0, 0, 0) = warp 0, lane 0");
            assert_eq!((report.warp, report.lane, report.thread), (Some(1), Some(0), Some([32, 0, 0])));
        } else {
            assert_eq!(
                report.message,
                "race in shared memory: nothing orders this write of index 0 of `tile` and the read at k.rs:20:9"
            );
        }
        let address = report.address.unwrap();
        assert_eq!((address.allocation.as_str(), address.index), ("tile", Some(0)));
    }
}

#[test]
fn lanes_of_a_warp_need_a_warp_sync_where_they_are_not_in_lockstep() {
    let body = exchange(1, "");
    let report = kernel("sm_80", 32, &body).report(&[Arg::Uninit(128)]);
    assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(20)));
    assert_eq!(report.notes[0], "the write was by thread (1, 0, 0) = warp 0, lane 1");
    assert!(report.notes[1].contains("both are lanes of warp 0"), "{report}");
    assert!(report.help.as_deref().unwrap().contains("warp_sync()"));
    for sync in ["\"lw.warp_sync\"() : () -> ()\n", "gpu.barrier\n"] {
        under_seeds(&kernel("sm_80", 64, &exchange(1, sync)), 1, &[Arg::Uninit(256)]).unwrap();
    }
    under_seeds(&kernel("gfx942", 64, &exchange(1, "")), 1, &[Arg::Uninit(256)]).unwrap();
    // A thread is always in order with itself.
    under_seeds(&kernel("sm_80", 64, &exchange(0, "")), 1, &[Arg::Uninit(256)]).unwrap();
}

#[test]
fn a_write_after_reads_needs_a_barrier_too() {
    let reuse = |sync: &str| {
        format!(
            "{THREAD}{SHARED}{}{}gpu.barrier\n%k = arith.constant 32 : i32\n%j = arith.xori %tid_xi, %k : i32\n{}{}{sync}{}{}",
            pointer("p", "tid_xi", "i32"),
            put("tid", "p", "i32", 10),
            pointer("q", "j", "i32"),
            get("r", "q", "i32", 20),
            put("r", "p", "i32", 30),
            store("r", "d", "i32")
        )
    };
    let body = reuse("");
    let report = under_seeds(&kernel("sm_80", 64, &body), 1, &[Arg::Uninit(256)]).unwrap_err();
    assert_eq!(report.kind, ReportKind::Race);
    // Whichever comes second in the order of this seed tells.
    let (this, other) = if line(&report) == Some(30) {
        ("this write", "read at k.rs:20:9")
    } else {
        ("this read", "write at k.rs:30:5")
    };
    assert!(report.message.contains(this) && report.message.ends_with(other), "{report}");
    under_seeds(&kernel("sm_80", 64, &reuse("gpu.barrier\n")), 2, &[Arg::Uninit(512)]).unwrap();
}

#[test]
fn neighbours_in_bytes_and_half_words_do_not_race() {
    for (ty, mask) in [("f16", 0xffff), ("i8", 0xff)] {
        let value =
            if ty == "f16" { "%v = arith.sitofp %tid : i32 to f16\n" } else { "%v = arith.trunci %tid : i32 to i8\n" };
        let program = |sync: &str| {
            format!(
                "{THREAD}{SHARED}{value}{}{}{sync}%k = arith.constant 32 : i32\n%j = arith.xori %tid_xi, %k : i32\n{}{}{}",
                pointer("p", "tid_xi", ty),
                put("v", "p", ty, 10),
                pointer("q", "j", ty),
                get("r", "q", ty, 20),
                store("r", "d", ty)
            )
        };
        let _ = mask;
        under_seeds(&kernel("sm_80", 64, &program("gpu.barrier\n")), 1, &[Arg::Uninit(128)]).unwrap();
        let body = program("");
        let report = under_seeds(&kernel("sm_80", 64, &body), 1, &[Arg::Uninit(128)]).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
}

#[test]
fn one_place_written_by_several_lanes_of_one_instruction() {
    let all_to_one = |value: &str| {
        format!(
            "{THREAD}{SHARED}%z = arith.constant 0 : i32\n%n = arith.constant 7 : i32\n{}{}gpu.barrier\n{}{}",
            pointer("p", "z", "i32"),
            put(value, "p", "i32", 10),
            get("r", "p", "i32", 20),
            store("r", "d", "i32")
        )
    };
    // Who wins decides nothing when all write the same.
    under_seeds(&kernel("sm_80", 64, &all_to_one("n")), 1, &[Arg::Uninit(256)]).unwrap();
    let body = all_to_one("tid");
    let report = under_seeds(&kernel("sm_80", 32, &body), 1, &[Arg::Uninit(128)]).unwrap_err();
    assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(10)), "{report}");
}

#[test]
fn atomics_do_not_race_with_each_other_and_order_what_they_are_asked_to() {
    let atomic = |kind: &str, ordering: &str| {
        format!(
            "%old = \"lw.atomic_rmw\"(%c, %one) {{kind = \"{kind}\", ordering = \"{ordering}\", scope = \"block\"}} : (!llvm.ptr<3>, i32) -> i32 loc(\"k.rs\":15:5)\n"
        )
    };
    // A counter that a barrier clears the way for, read after another.
    let count = |before: &str, after: &str| {
        format!(
            "{THREAD}{SHARED}%z = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%first = arith.cmpi eq, %tid_xi, %z : i32\n{}\
             scf.if %first {{\n{}}}\n{before}{}{after}{}{}",
            pointer("c", "z", "i32"),
            put("z", "c", "i32", 10),
            atomic("add", "relaxed"),
            get("r", "c", "i32", 20),
            store("r", "d", "i32")
        )
    };
    under_seeds(&kernel("sm_80", 64, &count("gpu.barrier\n", "gpu.barrier\n")), 1, &[Arg::Uninit(256)]).unwrap();
    for body in [count("", "gpu.barrier\n"), count("gpu.barrier\n", "")] {
        let report = under_seeds(&kernel("sm_80", 64, &body), 1, &[Arg::Uninit(256)]).unwrap_err();
        assert_eq!(report.kind, ReportKind::Race, "{report}");
    }
    // The last warp to arrive reads what the first has written: ordered by release and acquire only.
    let last = |ordering: &str| {
        format!(
            "{THREAD}{SHARED}%z = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%c200 = arith.constant 200 : i32\n\
             %c5 = arith.constant 5 : i32\n%lane = arith.andi %tid_xi, %c31 : i32\n%warp = arith.shrui %tid_xi, %c5 : i32\n\
             %leader = arith.cmpi eq, %lane, %z : i32\n%first = arith.cmpi eq, %tid_xi, %z : i32\n{}{}scf.if %first {{\n{}}}\ngpu.barrier\n\
             scf.if %leader {{\n{}{}%last = arith.cmpi eq, %old, %one : i32\nscf.if %last {{\n%o = arith.subi %one, %warp : i32\n{}{}{}}}\n}}\n",
            pointer("c", "c200", "i32"),
            pointer("p", "warp", "i32"),
            put("z", "c", "i32", 10),
            put("tid", "p", "i32", 12),
            atomic("add", ordering),
            pointer("q", "o", "i32"),
            get("r", "q", "i32", 20),
            store("r", "d", "i32")
        )
        .replacen("%z = ", "%c31 = arith.constant 31 : i32\n%z = ", 1)
    };
    under_seeds(&kernel("sm_80", 64, &last("acq_rel")), 1, &[Arg::Uninit(256)]).unwrap();
    let report = under_seeds(&kernel("sm_80", 64, &last("relaxed")), 1, &[Arg::Uninit(256)]).unwrap_err();
    assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(20)), "{report}");
}

/// Copies 16 bytes a thread to the tile, then `sync`, then reads another thread's bytes.
fn copied(distance: u32, sync: &str) -> String {
    format!(
        "{THREAD}{SHARED}%four = arith.constant 4 : i32\n%yes = arith.constant true\n%e = arith.muli %tid_xi, %four : i32\n\
         %e64 = arith.extsi %e : i32 to i64\n%from = llvm.getelementptr %x[%e64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n{}\
         \"lw.cp_async\"(%to, %from, %yes) {{bytes = 16 : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> () loc(\"k.rs\":10:5)\n\
         {sync}%k = arith.constant {distance} : i32\n%j = arith.xori %e, %k : i32\n{}{}{}",
        pointer("to", "e", "f32"),
        pointer("q", "j", "f32"),
        get("r", "q", "f32", 20),
        store("r", "d", "f32")
    )
}

const COMMIT: &str = "\"lw.cp_async_commit\"() : () -> ()\n";
const WAIT: &str = "\"lw.cp_async_wait\"() {groups = 0 : i64} : () -> ()\n";

#[test]
fn copies_are_seen_by_others_after_the_wait_and_a_barrier() {
    let values: Vec<f32> = (0..256).map(|i| i as f32).collect();
    let args = [f32s(&values), Arg::Uninit(256)];
    let with = |distance: u32, sync: &str, check: fn(&Kernel<'_>, &[Arg])| {
        let body = copied(distance, sync);
        check(&Kernel { args: "x:in d:out", ..kernel("sm_80", 64, &body) }, &args);
    };
    let clean = |kernel: &Kernel<'_>, args: &[Arg]| under_seeds(kernel, 1, args).unwrap();
    with(0, &format!("{COMMIT}{WAIT}"), clean);
    with(128, &format!("{COMMIT}{WAIT}gpu.barrier\n"), clean);
    // The wait alone is each thread's own.
    with(4, &format!("{COMMIT}{WAIT}"), |kernel, args| {
        let report = kernel.report(args);
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(20)), "{report}");
        assert!(report.message.ends_with("and the asynchronous copy at k.rs:10:5"), "{report}");
        assert_eq!(report.notes[1], "only the thread that started the copy has waited for it");
    });
    // Without the wait, a barrier does not help.
    with(0, &format!("{COMMIT}gpu.barrier\n"), |kernel, args| {
        let report = kernel.report(args);
        assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(20)), "{report}");
        assert_eq!(report.notes[1], "the copy has not been waited for");
        // With the check for unwritten bytes on, that comes first, and names the copy as well.
        let report = Kernel { checks: Checks::default(), ..*kernel }.report(args);
        assert_eq!((report.kind, line(&report)), (ReportKind::Uninitialized, Some(20)), "{report}");
        assert!(report.notes.iter().any(|note| note.contains("was started at k.rs:10:5")), "{report}");
    });
}

#[test]
fn copies_that_nobody_waits_for_are_reported_at_the_end() {
    for sync in ["", COMMIT] {
        let body = copied(0, sync).split("%k =").next().unwrap().to_owned();
        let kernel = Kernel { args: "x:in d:out", ..kernel("sm_80", 64, &body) };
        let args = [f32s(&[0.0; 256]), Arg::Uninit(256)];
        let report = kernel.report(&args);
        assert_eq!((report.kind, line(&report)), (ReportKind::CopyInFlight, Some(10)), "{report}");
        Kernel { checks: kernel.checks.without(Check::Copies), ..kernel }.run([1, 1, 1], &args);
    }
    let body = copied(0, &format!("{COMMIT}{WAIT}"));
    Kernel { args: "x:in d:out", ..kernel("sm_80", 64, &body) }.run([1, 1, 1], &[f32s(&[0.0; 256]), Arg::Uninit(256)]);
}

#[test]
fn blocks_must_not_share_what_they_write() {
    // Every block writes the same 32 elements.
    let body = format!(
        "{THREAD}%at = arith.extsi %tid_xi : i32 to i64\n%p = llvm.getelementptr %d[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
         \"lw.store\"(%tid, %p) {{align = 4 : i64}} : (i32, !llvm.ptr<1>) -> () loc(\"k.rs\":10:5)\n"
    );
    let clash = kernel("sm_80", 32, &body);
    under_seeds(&clash, 1, &[Arg::Uninit(128)]).unwrap();
    let report = under_seeds(&clash, 4, &[Arg::Uninit(128)]).unwrap_err();
    assert_eq!((report.kind, line(&report)), (ReportKind::Race, Some(10)), "{report}");
    assert!(
        report.message.starts_with("race between blocks: nothing orders this write of index 0 of `d` and the write at"),
        "{report}"
    );
    assert!(report.notes[0].starts_with("the write was by block ("), "{report}");
    // A block that reads what its neighbour writes.
    let neighbour = |atomic: &str| {
        format!(
            "{THREAD}{}{atomic}%k = arith.constant 32 : i64\n%j = arith.xori %tid64, %k : i64\n\
             %q = llvm.getelementptr %d[%j] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
             %r = \"lw.load\"(%q) {{align = 4 : i64}} : (!llvm.ptr<1>) -> i32 loc(\"k.rs\":20:5)\n{}",
            store("tid", "d", "i32"),
            store("r", "e", "i32")
        )
    };
    let args = [Arg::Bytes(vec![0; 256]), Arg::Uninit(256), Arg::Bytes(vec![0; 4])];
    let body = neighbour("");
    let report =
        under_seeds(&Kernel { args: "d:out e:out f:out", ..kernel("sm_80", 32, &body) }, 2, &args).unwrap_err();
    assert_eq!(report.kind, ReportKind::Race, "{report}");
    assert!(report.message.contains("k.rs:20:5") || line(&report) == Some(20), "{report}");
    // After an atomic a block may know that the other is done.
    let atomic = "%one = arith.constant 1 : i32\n\
        %old = \"lw.atomic_rmw\"(%f, %one) {kind = \"add\", ordering = \"acq_rel\", scope = \"device\"} : (!llvm.ptr<1>, i32) -> i32\n";
    let body = neighbour(atomic);
    under_seeds(&Kernel { args: "d:out e:out f:out", ..kernel("sm_80", 32, &body) }, 2, &args).unwrap();
    // Neighbours in half-words are different places.
    let body = format!(
        "{THREAD}%v = arith.trunci %tid : i32 to i16\n%two = arith.constant 2 : i32\n%b = arith.muli %tid_xi, %two : i32\n\
         %i = arith.addi %b, %tid_bi : i32\n%at = arith.extsi %i : i32 to i64\n\
         %p = llvm.getelementptr %d[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16\n\
         \"lw.store\"(%v, %p) {{align = 2 : i64}} : (i16, !llvm.ptr<1>) -> ()\n"
    );
    under_seeds(&kernel("sm_80", 32, &body), 2, &[Arg::Uninit(128)]).unwrap();
}

#[test]
fn d15_a_loop_that_cannot_end_shows_its_bounds() {
    // Stop below start, as unsigned numbers: one less than zero.
    let body = "%c5 = arith.constant 5 : i32\n%stop = arith.constant -1 : i32\n%one = arith.constant 1 : i32\n\
                %r = scf.for unsigned %i = %c5 to %stop step %one iter_args(%v = %c5) -> (i32) : i32 {\n\
                %w = arith.xori %v, %i : i32\nscf.yield %w : i32\n} loc(\"k.rs\":4:5)\n";
    let report = Kernel { body, ..Kernel::default() }.report(&[]);
    assert_eq!((report.kind, line(&report)), (ReportKind::OpBudget, Some(4)), "{report}");
    assert_eq!(report.message, "this loop cannot end: it goes from 5 to 4294967295 in steps of 1");
}
