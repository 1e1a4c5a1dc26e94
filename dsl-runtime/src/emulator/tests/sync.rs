//! Barriers, shuffles, deadlocks, and the order of warps.

use super::*;
use crate::emulator::ReportKind;

/// Reverses a block of values through shared memory.
fn reversal(barrier: &str) -> String {
    format!(
        "{THREAD}%s = \"lw.shared\"() {{offset = 0 : i64, bytes = 1024 : i64, align = 16 : i64, name = \"s\"}} : () -> !llvm.ptr<3>\n\
         %p = llvm.getelementptr %s[%tid_xi] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n\
         \"lw.store\"(%tid, %p) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()\n{barrier}\
         %last = arith.constant 255 : i32\n%j = arith.subi %last, %tid_xi : i32\n\
         %q = llvm.getelementptr %s[%j] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n\
         %r = \"lw.load\"(%q) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32\n{}",
        store("r", "d", "i32")
    )
}

#[test]
fn barriers_order_warps_under_every_seed() {
    for target in ["sm_80", "gfx942"] {
        let kernel = Kernel {
            target,
            block: [256, 1, 1],
            shared: 1024,
            args: "d:out",
            body: &reversal("gpu.barrier\n"),
            ..Kernel::default()
        };
        let program = kernel.decode();
        for seed in 0..30 {
            let (buffers, _) = launch(&program, [3, 1, 1], &[Arg::Uninit(3072)], seed);
            let expected: Vec<i32> = (0..768).map(|i| i / 256 * 256 + 255 - i % 256).collect();
            assert_eq!(to_i32s(&buffers[0]), expected);
        }
    }
    // Without the barrier some warp reads what is not there yet.
    let kernel = Kernel { block: [256, 1, 1], shared: 1024, args: "d:out", body: &reversal(""), ..Kernel::default() };
    assert_eq!(kernel.report(&[Arg::Uninit(1024)]).kind, ReportKind::Uninitialized);
}

#[test]
fn a_barrier_in_a_divergent_branch_is_reported_at_once() {
    let body = format!(
        "{THREAD}%c5 = arith.constant 5 : i32\n%few = arith.cmpi slt, %tid_xi, %c5 : i32\nscf.if %few {{\ngpu.barrier loc(\"k.rs\":5:9)\n}}\n"
    );
    let report = Kernel { body: &body, ..Kernel::default() }.report(&[]);
    assert_eq!(report.kind, ReportKind::DivergentBarrier);
    assert_eq!(report.message, "a barrier that only part of a warp reaches");
    assert_eq!(report.notes, ["lanes 5-31 are elsewhere"]);
    assert_eq!(report.location.as_ref().map(|l| (l.line, l.column)), Some((5, 9)));
}

#[test]
fn a_barrier_that_some_warps_skip_names_every_warp() {
    let body = format!(
        "{THREAD}%c32 = arith.constant 32 : i32\n%low = arith.cmpi slt, %tid_xi, %c32 : i32\nscf.if %low {{\ngpu.barrier loc(\"k.rs\":5:9)\n}}\n"
    );
    let report = Kernel { body: &body, block: [96, 1, 1], ..Kernel::default() }.report(&[]);
    assert_eq!(report.kind, ReportKind::DivergentBarrier);
    assert_eq!(report.message, "a barrier that part of the block never reaches");
    assert_eq!(report.notes, ["warp 0 waits at the block's barrier at k.rs:5:9", "warps 1 and 2 have ended"]);
    assert_eq!(report.location.as_ref().map(|l| l.line), Some(5));
}

fn named(id: u32, threads: u32, kind: &str) -> String {
    format!(
        "\"lw.named_barrier\"() {{id = {id} : i64, threads = {threads} : i64, kind = \"{kind}\"}} : () -> () loc(\"k.rs\":8:1)\n"
    )
}

#[test]
fn named_barriers_join_producers_and_consumers() {
    // Warp 0 writes for all others: it arrives and goes on, they wait.
    let body = format!(
        "{THREAD}%s = \"lw.shared\"() {{offset = 0 : i64, bytes = 128 : i64, align = 16 : i64, name = \"s\"}} : () -> !llvm.ptr<3>\n\
         %c31 = arith.constant 31 : i32\n%c32 = arith.constant 32 : i32\n%lane = arith.andi %tid_xi, %c31 : i32\n\
         %p = llvm.getelementptr %s[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n\
         %producer = arith.cmpi slt, %tid_xi, %c32 : i32\n\
         scf.if %producer {{\n%v = arith.muli %tid, %tid : i32\n\"lw.store\"(%v, %p) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()\n{}\
         }} else {{\n{}%r = \"lw.load\"(%p) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32\n{}}}\n",
        named(3, 128, "arrive"),
        named(3, 128, "sync"),
        store("r", "d", "i32")
    );
    let kernel = Kernel { block: [128, 1, 1], shared: 128, args: "d:out", body: &body, ..Kernel::default() };
    let program = kernel.decode();
    for seed in 0..30 {
        let (buffers, _) = launch(&program, [1, 1, 1], &[Arg::Bytes(vec![0; 512])], seed);
        let expected: Vec<i32> = (0..128).map(|i| if i < 32 { 0 } else { (i % 32) * (i % 32) }).collect();
        assert_eq!(to_i32s(&buffers[0]), expected);
    }
}

#[test]
fn deadlocks_show_where_each_warp_waits() {
    let body = named(1, 96, "sync");
    let report = Kernel { block: [64, 1, 1], body: &body, ..Kernel::default() }.report(&[]);
    assert_eq!(report.kind, ReportKind::Deadlock);
    assert_eq!(report.notes, ["warps 0 and 1 wait at named barrier 1 at k.rs:8:1: 64 of 96 threads have arrived"]);
    let report = Kernel { block: [64, 1, 1], body: &named(1, 32, "arrive").clone(), ..Kernel::default() };
    report.run([1, 1, 1], &[]);
}

#[test]
fn shuffles_follow_ptx_on_warps_and_waves() {
    for (target, width) in [("sm_80", 32_usize), ("gfx942", 64)] {
        for (mode, index) in [("xor", 1), ("xor", 16), ("xor", 5), ("up", 3), ("down", 7), ("idx", 9)] {
            for dynamic in [false, true] {
                let offset = if dynamic {
                    "%z = arith.muli %tid, %zero : i32\n%o = arith.addi %z, %k : i32\n".to_string()
                } else {
                    "%o = arith.constant 0 : i32\n".replace("0 :", &format!("{index} :"))
                };
                let body = format!(
                    "{THREAD}%zero = arith.constant 0 : i32\n%k = arith.constant {index} : i32\n{offset}%w = arith.constant {width} : i32\n\
                     %f = arith.sitofp %tid : i32 to f32\n%v, %ok = gpu.shuffle {mode} %f, %o, %w : f32\n%r = arith.fptosi %v : f32 to i32\n{}",
                    store("r", "d", "i32")
                );
                let kernel = Kernel { target, block: [128, 1, 1], args: "d:out", body: &body, ..Kernel::default() };
                let results = to_i32s(&kernel.run([1, 1, 1], &[Arg::Uninit(512)])[0]);
                for (thread, &result) in results.iter().enumerate() {
                    let (warp, lane) = (thread / width * width, thread % width);
                    let source = match mode {
                        "xor" => lane ^ index,
                        "up" => {
                            if lane >= index {
                                lane - index
                            } else {
                                lane
                            }
                        }
                        "down" => {
                            if lane + index < width {
                                lane + index
                            } else {
                                lane
                            }
                        }
                        _ => index,
                    };
                    assert_eq!(result as usize, warp + source, "{target} {mode} {index} {thread}");
                }
            }
        }
    }
}

#[test]
fn a_shuffle_from_an_idle_lane_is_reported() {
    let body = format!(
        "{THREAD}%c20 = arith.constant 20 : i32\n%o = arith.constant 16 : i32\n%w = arith.constant 32 : i32\n\
         %low = arith.cmpi slt, %tid, %c20 : i32\nscf.if %low {{\n%v, %ok = gpu.shuffle xor %tid, %o, %w : i32\n}}\n"
    );
    let report = Kernel { body: &body, ..Kernel::default() }.report(&[]);
    assert_eq!((report.kind, report.lane), (ReportKind::InactiveLaneRead, Some(4)));
    assert_eq!(report.message, "a shuffle reads lane 20, which does not take part");
}

#[test]
fn ballots_and_elections_see_active_lanes_only() {
    for (target, width) in [("sm_80", 32), ("gfx942", 64)] {
        let body = format!(
            "{THREAD}%c3 = arith.constant 3 : i32\n%c7 = arith.constant 7 : i32\n%z = arith.constant 0 : i32\n%c100 = arith.constant 100 : i64\n\
             %lane = gpu.lane_id\n%li = arith.index_cast %lane : index to i32\n\
             %m3 = arith.remui %tid, %c3 : i32\n%m7 = arith.remui %tid, %c7 : i32\n\
             %a = arith.cmpi ne, %m3, %z : i32\n%b = arith.cmpi eq, %m7, %z : i32\n\
             %r = scf.if %a -> (i64) {{\n%x = \"lw.ballot\"(%b) : (i1) -> i64\n%e = \"lw.elect\"() : () -> i1\n\
             %y = arith.select %e, %c100, %x : i64\nscf.yield %y : i64\n}} else {{\n%l = arith.extui %li : i32 to i64\nscf.yield %l : i64\n}}\n{}",
            store("r", "d", "i64")
        );
        let kernel = Kernel { target, block: [128, 1, 1], args: "d:out", body: &body, ..Kernel::default() };
        let results = kernel.run([1, 1, 1], &[Arg::Uninit(1024)]).pop().unwrap();
        for (thread, chunk) in results.chunks(8).enumerate() {
            let result = u64::from_le_bytes(chunk.try_into().unwrap());
            let warp = thread / width * width;
            let active = |t: usize| !t.is_multiple_of(3);
            let expected = if !active(thread) {
                (thread % width) as u64
            } else if (warp..thread).all(|t| !active(t)) {
                100
            } else {
                (0..width).filter(|l| active(warp + l) && (warp + l) % 7 == 0).fold(0, |bits, l| bits | 1 << l)
            };
            assert_eq!(result, expected, "{target} {thread}");
        }
    }
}

#[test]
fn assertions_give_their_message() {
    let body = format!(
        "{THREAD}%c9 = arith.constant 9 : i32\n%ok = arith.cmpi ne, %tid, %c9 : i32\n\"lw.assert\"(%ok) {{message = \"nine is odd\"}} : (i1) -> () loc(callsite(\"h.rs\":3:4 at \"k.rs\":11:2))\n"
    );
    let report = Kernel { body: &body, ..Kernel::default() }.report(&[]);
    assert_eq!((report.kind, report.thread), (ReportKind::AssertFailed, Some([9, 0, 0])));
    assert_eq!(report.message, "assertion failed: nine is odd");
    assert_eq!(report.location.as_ref().map(|l| l.file.as_str()), Some("h.rs"));
    assert_eq!(report.call_chain.iter().map(|l| l.line).collect::<Vec<_>>(), [11]);
}

#[test]
fn thread_numbers_in_three_dimensions() {
    let body = "%x = gpu.thread_id x\n%y = gpu.thread_id y\n%z = gpu.thread_id z\n%bx = gpu.block_id x\n%by = gpu.block_id y\n%bz = gpu.block_id z\n\
         %gx = gpu.grid_dim x\n%gy = gpu.grid_dim y\n%nx = gpu.block_dim x\n%ny = gpu.block_dim y\n%nz = gpu.block_dim z\n"
        .to_owned();
    let names = ["x", "y", "z", "bx", "by", "bz", "gx", "gy", "nx", "ny", "nz"];
    let mut body = body;
    for name in names {
        body += &format!("%{name}i = arith.index_cast %{name} : index to i32\n");
    }
    // block = (bz * gy + by) * gx + bx; thread = (z * ny + y) * nx + x; slot = block * threads + thread.
    body += "%a = arith.muli %bzi, %gyi : i32\n%b = arith.addi %a, %byi : i32\n%c = arith.muli %b, %gxi : i32\n%blk = arith.addi %c, %bxi : i32\n\
         %e = arith.muli %zi, %nyi : i32\n%f = arith.addi %e, %yi : i32\n%g = arith.muli %f, %nxi : i32\n%thr = arith.addi %g, %xi : i32\n\
         %n1 = arith.muli %nxi, %nyi : i32\n%n2 = arith.muli %n1, %nzi : i32\n%h = arith.muli %blk, %n2 : i32\n%slot = arith.addi %h, %thr : i32\n\
         %p = llvm.getelementptr %d[%slot] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n\"lw.store\"(%slot, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()\n";
    for target in ["sm_80", "gfx942"] {
        let kernel = Kernel { target, block: [5, 3, 4], args: "d:out", body: &body, ..Kernel::default() };
        let results = kernel.run([2, 3, 2], &[Arg::Uninit(4 * 720)]);
        assert_eq!(to_i32s(&results[0]), (0..720).collect::<Vec<i32>>());
    }
}
