//! Copies from global memory straight to LDS.

use super::*;
use crate::emulator::ReportKind;

const SHARED: &str = "%s = \"lw.shared\"() {offset = 0 : i64, bytes = 2048 : i64, align = 16 : i64, name = \"tile\"} : () -> !llvm.ptr<3>\n";

/// Two waves; wave w's destination is byte 1024 w. `copy` uses `%d`, `%t` (the thread), `%lane` and `%x`; then the first
/// 512 words of LDS are written out, which other waves have loaded.
fn body(copy: &str, between: &str) -> String {
    let mut text = format!(
        "{THREAD}{SHARED}%c63 = arith.constant 63 : i32\n%c6 = arith.constant 6 : i32\n%c10 = arith.constant 10 : i32\n\
         %t = arith.addi %tid_xi, %c0 : i32\n%lane = arith.andi %tid_xi, %c63 : i32\n%wave = arith.shrui %tid_xi, %c6 : i32\n\
         %at = arith.shli %wave, %c10 : i32\n%d = llvm.getelementptr %s[%at] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
    )
    .replace("%c63 =", "%c0 = arith.constant 0 : i32\n%c63 =");
    // Memory that no copy reaches is defined.
    text += "%fill = arith.constant -1 : i32\n%c128 = arith.constant 128 : i32\n%c512 = arith.constant 512 : i32\n\
             scf.for %i = %tid_xi to %c512 step %c128 : i32 {\n\
             %p = llvm.getelementptr %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n\
             \"lw.store\"(%fill, %p) {align = 4 : i64} : (i32, !llvm.ptr<3>) -> ()\n}\ngpu.barrier\n";
    text += copy;
    text += between;
    text += "scf.for %i = %tid_xi to %c512 step %c128 : i32 {\n\
             %r = arith.subi %c511, %i : i32\n%l = arith.extsi %r : i32 to i64\n\
             %p = llvm.getelementptr %s[%r] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n\
             %v = \"lw.load\"(%p) {align = 4 : i64} : (!llvm.ptr<3>) -> i32\n\
             %q = llvm.getelementptr %out[%l] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\n\
             \"lw.store\"(%v, %q) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()\n}\n";
    text.replace("%c512 =", "%c511 = arith.constant 511 : i32\n%c512 =")
}

fn kernel<'a>(target: &'a str, body: &'a str) -> Kernel<'a> {
    Kernel { target, block: [128, 1, 1], shared: 2048, args: "x:in out:out", body, ..Kernel::default() }
}

/// Lane l of all threads' order reads from word `4 (t ^ 1)`.
fn plain(bytes: usize) -> String {
    format!(
        "%c1 = arith.constant 1 : i32\n%u = arith.xori %t, %c1 : i32\n%u64 = arith.extsi %u : i32 to i64\n\
         %from = llvm.getelementptr %x[%u64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xi32>\n\
         \"lw.load_lds\"(%d, %from) {{bytes = {bytes} : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()\n"
    )
}

#[test]
fn lanes_land_side_by_side() {
    let x: Vec<i32> = (0..512).collect();
    for (target, bytes, pitch) in [("gfx942", 4, 1), ("gfx950", 4, 1), ("gfx950", 12, 4), ("gfx950", 16, 4)] {
        let text = body(&plain(bytes), "gpu.barrier\n");
        let out = kernel(target, &text).run([1, 1, 1], &[i32s(&x), Arg::Uninit(2048)]).pop().unwrap();
        let mut wanted = vec![-1; 512];
        for thread in 0..128 {
            let (wave, lane) = (thread / 64, thread % 64);
            for word in 0..bytes / 4 {
                wanted[256 * wave + lane * pitch + word] = (4 * (thread ^ 1) + word) as i32;
            }
        }
        assert_eq!(to_i32s(&out), wanted, "{target}, {bytes} bytes");
    }
}

/// Dwords out of range and masked lanes are zeros; offsets count elements.
#[test]
fn bounded_copies_bring_zeros() {
    let x: Vec<i32> = (0..512).map(|i| i + 1).collect();
    for (target, bytes, range) in [("gfx942", 4, 100), ("gfx950", 16, 1000), ("gfx950", 16, 1004), ("gfx950", 12, 52)] {
        let copy = format!(
            "%n = arith.constant {range} : i64\n%c5 = arith.constant 5 : i32\n%mask = arith.cmpi ne, %lane, %c5 : i32\n\
             %each = arith.constant {} : i32\n%first = arith.constant -1 : i32\n%o0 = arith.addi %t, %first : i32\n%o = arith.muli %o0, %each : i32\n\
             \"lw.buffer_load_lds\"(%d, %x, %n, %o, %mask) {{bytes = {bytes} : i64, unit = 2 : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>, i64, i32, i1) -> ()\n",
            bytes / 2
        );
        let text = body(&copy, "gpu.barrier\n");
        let out = kernel(target, &text).run([1, 1, 1], &[i32s(&x), Arg::Uninit(2048)]).pop().unwrap();
        let mut wanted = vec![-1; 512];
        let pitch = if bytes == 4 { 1 } else { 4 };
        for thread in 0..128_i64 {
            let (wave, lane) = (thread / 64, thread % 64);
            for word in 0..bytes / 4 {
                let at = (thread - 1) * bytes / 4 + word;
                let valid = lane != 5 && at >= 0 && 4 * (at + 1) <= range;
                wanted[(256 * wave + lane * pitch + word) as usize] = if valid { at as i32 + 1 } else { 0 };
            }
        }
        assert_eq!(to_i32s(&out), wanted, "{target}, {bytes} bytes of {range}");
    }
}

/// A load of four dwords at the end of a buffer, in both halves of a wave: the hardware decides for each dword.
#[test]
fn bounded_loads_decide_dword_by_dword() {
    for range in [396, 400, 404, 408, 920, 924, 928, 1024] {
        let body = format!(
            "{THREAD}%n = arith.constant {range} : i64\n%c4 = arith.constant 4 : i32\n%o = arith.muli %tid_xi, %c4 : i32\n\
             %all = arith.constant true\n\
             %v = \"lw.buffer_load\"(%x, %n, %o, %all) : (!llvm.ptr<1>, i64, i32, i1) -> vector<4xi32>\n{}",
            store("v", "out", "vector<4xi32>")
        );
        let kernel =
            Kernel { target: "gfx942", block: [64, 1, 1], args: "x:in out:out", body: &body, ..Kernel::default() };
        let x: Vec<i32> = (1..=256).collect();
        let out = kernel.run([1, 1, 1], &[i32s(&x), Arg::Uninit(1024)]).pop().unwrap();
        let wanted: Vec<i32> = x.iter().map(|&x| if 4 * x <= range { x } else { 0 }).collect();
        assert_eq!(to_i32s(&out), wanted, "{range}");
    }
}

#[test]
fn what_has_not_landed_is_not_read() {
    let x = i32s(&[7; 512]);
    for seed in 0..4 {
        // Each wave reads what it has copied itself.
        let text = body(&plain(4), "").replace("arith.subi %c511, %i", "arith.addi %c0, %i");
        let program = kernel("gfx942", &text).decode();
        let (_, values) = bind(&[x.clone(), Arg::Uninit(2048)]);
        let launch = Launch { seed, ..Launch::new([1, 1, 1], values) };
        let report = super::super::run(&program, &launch).unwrap_err();
        // With another seed a copy may land early, and is then never waited for.
        let unread = matches!(report.kind, ReportKind::Uninitialized | ReportKind::Race);
        assert!(unread || seed > 0 && report.kind == ReportKind::CopyInFlight, "seed {seed}: {report}");
    }
    let text = body(&plain(4), "").replace("arith.subi %c511, %i", "arith.addi %c0, %i");
    let report = kernel("gfx942", &text).report(&[x.clone(), Arg::Uninit(2048)]);
    assert_eq!(report.help.as_deref(), Some("a `barrier()` lands it"), "{report}");
    // Nothing reads it, and nothing waits.
    let only = format!(
        "{THREAD}{SHARED}%d = llvm.getelementptr %s[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n%t = arith.addi %tid_xi, %tid_bi : i32\n{}",
        plain(4)
    );
    let report = Kernel { block: [64, 1, 1], ..kernel("gfx942", &only) }.report(&[x, Arg::Uninit(2048)]);
    assert_eq!(report.kind, ReportKind::CopyInFlight, "{report}");
    assert_eq!(report.help.as_deref(), Some("a `barrier()` lands it"));
}

#[test]
fn one_destination_serves_the_wave() {
    let each = plain(4).replace("(%d,", "(%dd,");
    let copy = format!("%dd = llvm.getelementptr %d[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32\n{each}");
    let text = body(&copy, "gpu.barrier\n");
    let report = kernel("gfx950", &text).report(&[i32s(&[0; 512]), Arg::Uninit(2048)]);
    assert_eq!(report.kind, ReportKind::NotUniform);
    assert_eq!(report.message, "the destination of a copy to LDS is not the same in all lanes of the warp: 0 and 4");
    // Lanes that are off leave their place as it is.
    let copy = format!(
        "%c9 = arith.constant 9 : i32\n%few = arith.cmpi sge, %lane, %c9 : i32\nscf.if %few {{\n{}}}\n",
        plain(4)
    );
    let text = body(&copy, "gpu.barrier\n");
    let out = kernel("gfx950", &text).run([1, 1, 1], &[i32s(&[3; 512]), Arg::Uninit(2048)]).pop().unwrap();
    let wanted: Vec<i32> = (0..512).map(|i| if i % 256 >= 9 && i % 256 < 64 { 3 } else { -1 }).collect();
    assert_eq!(to_i32s(&out), wanted);
}

#[test]
fn sizes_that_do_not_exist_are_refused() {
    let refusal = |target, bytes| kernel(target, &body(&plain(bytes), "")).try_decode().unwrap_err().to_string();
    assert!(refusal("gfx942", 16).contains("`load_lds.128` does not exist on gfx942"));
    assert!(refusal("gfx950", 8).contains("no lane copies 8 bytes to LDS"));
}
