//! Loads, stores, atomics, asynchronous copies, and the reports about them.

use super::*;
use crate::emulator::ReportKind;

const TARGETS: [&str; 2] = ["sm_80", "gfx942"];

/// A member of shared memory.
fn shared(name: &str, offset: u32, bytes: u32) -> String {
    format!(
        "%{name} = \"lw.shared\"() {{offset = {offset} : i64, bytes = {bytes} : i64, align = 16 : i64, name = \"{name}\"}} : () -> !llvm.ptr<3>\n"
    )
}

#[test]
fn every_width_loads_and_stores_contiguous_scattered_and_masked() {
    let types = [
        "i8",
        "f16",
        "f32",
        "f64",
        "vector<2xi8>",
        "vector<3xi8>",
        "vector<4xi8>",
        "vector<2xf16>",
        "vector<3xf16>",
        "vector<8xf16>",
        "vector<2xf32>",
        "vector<4xf32>",
        "vector<3xf32>",
        "vector<8xf32>",
        "vector<2xf64>",
        "vector<16xi8>",
        "vector<16xf64>",
        "i64",
    ];
    for target in TARGETS {
        for ty in types {
            let elem = ty.split_once('x').map_or(ty, |(_, rest)| rest.trim_end_matches('>'));
            let layout = crate::emulator::decode::types::ValueType::parse(ty).unwrap();
            let (size, count) = (layout.bytes() as usize, layout.count);
            // Even threads read forward, the others backward; every fourth is masked off.
            for pattern in ["forward", "backward", "masked", "same"] {
                let index = match pattern {
                    "forward" | "masked" => "%x = arith.addi %tid64, %zero : i64\n",
                    "backward" => "%x = arith.subi %last, %tid64 : i64\n",
                    _ => "%x = arith.addi %zero, %three : i64\n",
                };
                let align = scalar_bytes(elem);
                let body = format!(
                    "{THREAD}{}%zero = arith.constant 0 : i64\n%three = arith.constant 3 : i64\n%last = arith.constant 63 : i64\n\
                     %count = arith.constant {count} : i64\n%four = arith.constant 4 : i32\n%z = arith.constant 0 : i32\n\
                     %m4 = arith.remui %tid, %four : i32\n%on = arith.cmpi ne, %m4, %z : i32\n\
                     {index}%e = arith.muli %x, %count : i64\n%t = arith.muli %tid64, %count : i64\n%xi = arith.trunci %x : i64 to i32\n\
                     %ei = arith.trunci %e : i64 to i32\n\
                     %ap = llvm.getelementptr %a[%e] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {elem}\n\
                     %sp = llvm.getelementptr %s[%ei] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, {elem}\n\
                     %dp = llvm.getelementptr %d[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {elem}\n\
                     %st = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, {elem}\n\
                     %other = \"lw.load\"(%ap) {{align = {align} : i64}} : (!llvm.ptr<1>) -> {ty}\n\
                     %t0 = llvm.getelementptr %a[%t] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {elem}\n\
                     %mine = \"lw.load\"(%t0) {{align = {align} : i64}} : (!llvm.ptr<1>) -> {ty}\n\
                     \"lw.store\"(%mine, %st) {{align = {align} : i64}} : ({ty}, !llvm.ptr<3>) -> ()\ngpu.barrier\n\
                     %v = {}\n{}",
                    shared("s", 0, 64 * size as u32),
                    if pattern == "masked" {
                        format!(
                            "\"lw.load_masked\"(%sp, %on, %other) {{align = {align} : i64}} : (!llvm.ptr<3>, i1, {ty}) -> {ty}"
                        )
                    } else {
                        format!("\"lw.load\"(%sp) {{align = {align} : i64}} : (!llvm.ptr<3>) -> {ty}")
                    },
                    if pattern == "masked" {
                        format!(
                            "\"lw.store_masked\"(%v, %dp, %on) {{align = {align} : i64}} : ({ty}, !llvm.ptr<1>, i1) -> ()\n"
                        )
                    } else {
                        format!("\"lw.store\"(%v, %dp) {{align = {align} : i64}} : ({ty}, !llvm.ptr<1>) -> ()\n")
                    }
                );
                let kernel = Kernel {
                    target,
                    block: [64, 1, 1],
                    shared: 64 * size as u32,
                    args: "a:in d:out",
                    body: &body,
                    ..Kernel::default()
                };
                let bytes: Vec<u8> = (0..64 * size).map(|i| (i * 89 + i / 256 * 3) as u8).collect();
                let result = kernel.run([1, 1, 1], &[Arg::Bytes(bytes.clone()), Arg::Uninit(64 * size)]).pop().unwrap();
                for thread in 0..64 {
                    let source = match pattern {
                        "backward" => 63 - thread,
                        "same" => 3,
                        _ => thread,
                    };
                    let expected = if pattern == "masked" && thread % 4 == 0 {
                        vec![0xff; size]
                    } else {
                        bytes[source * size..][..size].to_vec()
                    };
                    assert_eq!(result[thread * size..][..size], expected, "{target} {ty} {pattern} thread {thread}");
                }
            }
        }
    }
}

/// Stores a float to `%d[tid + shift]`.
fn shifted_store(shift: i64) -> String {
    format!(
        "{THREAD}%k = arith.constant {shift} : i64\n%i = arith.addi %tid64, %k : i64\n%v = arith.constant 1.0 : f32\n\
         %p = llvm.getelementptr %d[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
         \"lw.store\"(%v, %p) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> () loc(\"k.rs\":9:5)\n"
    )
}

#[test]
fn out_of_bounds_names_argument_index_and_thread() {
    for (shift, thread, index) in [(8, 24, 32), (-3, 0, -3)] {
        let report =
            Kernel { args: "d:out", body: &shifted_store(shift), ..Kernel::default() }.report(&[Arg::Uninit(128)]);
        assert_eq!(report.kind, ReportKind::OutOfBounds);
        assert_eq!(report.message, format!("index {index} of 32: write outside `d`"));
        assert_eq!((report.block, report.thread), (Some([0, 0, 0]), Some([thread, 0, 0])));
        assert_eq!(report.location.as_ref().map(|l| l.line), Some(9));
        let address = report.address.as_ref().unwrap();
        assert_eq!((address.allocation.as_str(), address.offset, address.extent), ("d", 4 * index, 128));
        assert!(report.to_string().contains("kernel `test`, block (0, 0, 0), thread ("), "{report}");
    }
}

#[test]
fn the_lowest_failing_block_is_reported_whatever_runs_first() {
    let kernel = Kernel { args: "d:out", body: &shifted_store(0), ..Kernel::default() };
    let program = kernel.decode();
    for seed in 0..20 {
        let (_, values) = bind(&[Arg::Uninit(4 * 32 * 5 + 64)]);
        let launch = Launch { seed, ..Launch::new([40, 1, 1], values) };
        let report = crate::emulator::run(&program, &launch).unwrap_err();
        assert_eq!((report.block, report.thread), (Some([5, 0, 0]), Some([16, 0, 0])));
    }
}

#[test]
fn misaligned_read_only_and_unwritten() {
    let vector_load = |buffer: &str| {
        format!(
            "{THREAD}%p = llvm.getelementptr %{buffer}[%tid64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n\
             %v = \"lw.load\"(%p) {{align = 8 : i64}} : (!llvm.ptr<1>) -> vector<2xf32>\n"
        )
    };
    let report =
        Kernel { args: "x:in", body: &vector_load("x"), ..Kernel::default() }.report(&[Arg::Bytes(vec![0; 256])]);
    assert_eq!((report.kind, report.lane), (ReportKind::Misaligned, Some(1)));
    assert_eq!(report.message, "read of `x` at byte 4, which is no multiple of 8");

    let report =
        Kernel { args: "d:in", body: &shifted_store(0), ..Kernel::default() }.report(&[Arg::Bytes(vec![0; 128])]);
    assert_eq!(report.kind, ReportKind::ReadOnly);

    // Half the threads write, then all read.
    let body = format!(
        "{THREAD}%c16 = arith.constant 16 : i32\n%v = arith.constant 1.0 : f32\n%low = arith.cmpi slt, %tid, %c16 : i32\n{}\
         \"lw.store_masked\"(%v, %x_p, %low) {{align = 4 : i64}} : (f32, !llvm.ptr<1>, i1) -> ()\n\
         %r = \"lw.load\"(%x_p) {{align = 4 : i64}} : (!llvm.ptr<1>) -> f32\n",
        element("x", "f32")
    );
    let kernel = Kernel { args: "x:out", body: &body, ..Kernel::default() };
    let report = kernel.report(&[Arg::Uninit(128)]);
    assert_eq!((report.kind, report.lane), (ReportKind::Uninitialized, Some(16)));
    assert_eq!(report.message, "read of global memory that nothing wrote: index 16 of 32 in `x`");
    // The check can be turned off, and a filled buffer passes it.
    let (_, values) = bind(&[Arg::Uninit(128)]);
    let mut launch = Launch::new([1, 1, 1], values);
    launch.checks.initialized = false;
    assert!(crate::emulator::run(&kernel.decode(), &launch).is_ok());
    kernel.run([1, 1, 1], &[Arg::Bytes(vec![0; 128])]);
}

#[test]
fn shared_members_are_bounded_by_themselves() {
    let body = |index: i32| {
        format!(
            "{THREAD}{}{}%k = arith.constant {index} : i32\n%i = arith.addi %tid, %k : i32\n%v = arith.constant 1.0 : f32\n\
             %p = llvm.getelementptr %first[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32\n\
             \"lw.store\"(%v, %p) {{align = 4 : i64}} : (f32, !llvm.ptr<3>) -> ()\n",
            shared("first", 0, 256),
            shared("second", 256, 256)
        )
    };
    let report = |index| Kernel { shared: 512, body: &body(index), ..Kernel::default() }.report(&[]);
    assert_eq!(report(69).message, "shared-memory index 69 of 64: write outside `first`");
    assert_eq!(report(-1).message, "shared-memory index -1 of 64: write outside `first`");
    Kernel { shared: 512, body: &body(32), ..Kernel::default() }.run([1, 1, 1], &[]);
}

#[test]
fn unwritten_shared_memory_is_fresh_in_every_block() {
    // Block 0 writes, block 1 does not: the worker's memory is the same.
    let body = format!(
        "{THREAD}{}%z = arith.constant 0 : i32\n%first = arith.cmpi eq, %tid_bi, %z : i32\n%v = arith.constant 1.0 : f32\n\
         %p = llvm.getelementptr %s[%tid_xi] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32\n\
         \"lw.store_masked\"(%v, %p, %first) {{align = 4 : i64}} : (f32, !llvm.ptr<3>, i1) -> ()\n\
         %r = \"lw.load\"(%p) {{align = 4 : i64}} : (!llvm.ptr<3>) -> f32\n",
        shared("s", 0, 128)
    );
    let kernel = Kernel { shared: 128, body: &body, ..Kernel::default() };
    let launch = Launch { threads: 1, ..Launch::new([2, 1, 1], vec![]) };
    let report = crate::emulator::run(&kernel.decode(), &launch).unwrap_err();
    assert_eq!((report.kind, report.block), (ReportKind::Uninitialized, Some([1, 0, 0])));
    assert_eq!(report.message, "read of shared memory that nothing wrote: index 0 of 32 in `s`");
}

#[test]
fn bounded_buffers_give_zero_outside() {
    for target in TARGETS {
        // 20 of 32 elements are in range; negative offsets are not.
        let body = format!(
            "{THREAD}%bytes = arith.constant 40 : i64\n%c4 = arith.constant 4 : i32\n%o = arith.subi %tid, %c4 : i32\n\
             %c30 = arith.constant 30 : i32\n%m = arith.cmpi ne, %tid, %c4 : i32\n\
             %v = \"lw.buffer_load\"(%x, %bytes, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> f16\n\
             \"lw.buffer_store\"(%v, %d, %bytes, %tid, %m) : (f16, !llvm.ptr<1>, i64, i32, i1) -> ()\n"
        );
        let kernel = Kernel { target, block: [64, 1, 1], args: "x:in d:out", body: &body, ..Kernel::default() };
        let x: Vec<u16> = (0..64).map(|i| 1000 + i).collect();
        let results = kernel.run([1, 1, 1], &[u16s(&x), u16s(&[7; 64])]);
        let d: Vec<u16> = results[1].chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
        for (thread, &value) in d.iter().enumerate() {
            let expected = match thread {
                4 | 20.. => 7,
                0..4 => 0,
                _ => 1000 + thread as u16 - 4,
            };
            assert_eq!(value, expected, "{target} {thread}");
        }
    }
    // A vector across the end: CDNA gives the dwords in range, NVIDIA's form nothing.
    for (target, expected) in [("sm_80", [0, 0, 0, 0]), ("gfx942", [8, 9, 0, 0])] {
        let body = "%bytes = arith.constant 40 : i64\n%o = arith.constant 8 : i32\n%m = arith.constant true\n\
             %v = \"lw.buffer_load\"(%x, %bytes, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> vector<4xi32>\n\
             \"lw.store\"(%v, %d) {align = 4 : i64} : (vector<4xi32>, !llvm.ptr<1>) -> ()\n";
        let kernel = Kernel { target, args: "x:in d:out", body, ..Kernel::default() };
        let x: Vec<i32> = (0..16).collect();
        assert_eq!(to_i32s(&kernel.run([1, 1, 1], &[i32s(&x), Arg::Uninit(16)])[1]), expected, "{target}");
    }
}

#[test]
fn atomics_count_every_lane_of_every_block() {
    for target in TARGETS {
        for (ty, kind, value) in [
            ("i32", "add", "3"),
            ("i64", "add", "3"),
            ("f32", "fadd", "3.0"),
            ("f64", "fadd", "3.0"),
            ("f16", "fadd", "3.0"),
            ("i16", "add", "3"),
        ] {
            let body = format!(
                "%v = arith.constant {value} : {ty}\n%o = \"lw.atomic_rmw\"(%d, %v) {{kind = \"{kind}\", ordering = \"relaxed\", scope = \"device\"}} \
                 : (!llvm.ptr<1>, {ty}) -> {ty}\n"
            );
            let kernel = Kernel { target, block: [64, 1, 1], args: "d:out", body: &body, ..Kernel::default() };
            let (buffers, _) = launch(&kernel.decode(), [10, 1, 1], &[Arg::Bytes(vec![0; 8])], 0);
            let bytes = &buffers[0];
            let word = u32::from_le_bytes(bytes[..4].try_into().unwrap());
            let long = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let total = match ty {
                "f32" => f64::from(f32::from_bits(word)),
                "f64" => f64::from_bits(long),
                "f16" => f64::from(crate::emulator::numeric::narrow::f16_to_f32(word as u16)),
                _ => long as f64,
            };
            assert_eq!(total, 1920.0, "{target} {ty}");
        }
    }
}

#[test]
fn shared_atomics_and_compare_exchange() {
    let ops: &[(&str, fn(i32, i32) -> i32)] = &[
        ("sub", i32::wrapping_sub),
        ("max", i32::max),
        ("min", i32::min),
        ("umax", |a, b| (a as u32).max(b as u32) as i32),
        ("umin", |a, b| (a as u32).min(b as u32) as i32),
        ("and", |a, b| a & b),
        ("or", |a, b| a | b),
        ("xor", |a, b| a ^ b),
        ("exch", |_, b| b),
    ];
    for (kind, model) in ops {
        let body = format!(
            "{THREAD}{}%k = arith.constant 5 : i32\n%kk = arith.constant -77777 : i32\n%v = arith.muli %tid, %kk : i32\n\
             \"lw.store\"(%k, %s) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()\n\"lw.warp_sync\"() : () -> ()\n\
             %o = \"lw.atomic_rmw\"(%s, %v) {{kind = \"{kind}\", ordering = \"acq_rel\", scope = \"block\"}} : (!llvm.ptr<3>, i32) -> i32\n{}",
            shared("s", 0, 4),
            store("o", "d", "i32")
        );
        let kernel = Kernel { shared: 4, args: "d:out", body: &body, ..Kernel::default() };
        let old = to_i32s(&kernel.run([1, 1, 1], &[Arg::Uninit(128)])[0]);
        let mut value = 5;
        for (lane, &old) in old.iter().enumerate() {
            assert_eq!(old, value, "{kind} {lane}");
            value = model(value, (lane as i32).wrapping_mul(-77777));
        }
    }
    // Only one lane wins the exchange from zero.
    let body = format!(
        "{THREAD}{}%z = arith.constant 0 : i32\n\"lw.store\"(%z, %s) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()\ngpu.barrier\n\
         %k = arith.constant 1 : i32\n%n = arith.addi %tid, %k : i32\n\
         %o = \"lw.atomic_cas\"(%s, %z, %n) {{ordering = \"relaxed\", scope = \"block\"}} : (!llvm.ptr<3>, i32, i32) -> i32\n{}",
        shared("s", 0, 4),
        store("o", "d", "i32")
    );
    let kernel = Kernel { shared: 4, args: "d:out", body: &body, block: [64, 1, 1], ..Kernel::default() };
    let old = to_i32s(&kernel.run([1, 1, 1], &[Arg::Uninit(256)])[0]);
    let winners: Vec<usize> = (0..64).filter(|&i| old[i] == 0).collect();
    assert_eq!(winners.len(), 1);
    assert!((0..64).all(|i| old[i] == 0 || old[i] == winners[0] as i32 + 1));
}

/// Copies 16 bytes a thread through shared memory; `between` stands after the copy is started.
fn copy_kernel(between: &str) -> String {
    format!(
        "{THREAD}{}%c8 = arith.constant 8 : i32\n%c8l = arith.constant 8 : i64\n%c30 = arith.constant 30 : i32\n\
         %valid = arith.cmpi slt, %tid, %c30 : i32\n%e = arith.muli %tid, %c8 : i32\n%el = arith.muli %tid64, %c8l : i64\n\
         %to = llvm.getelementptr %s[%e] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16\n\
         %from = llvm.getelementptr %x[%el] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16\n\
         \"lw.cp_async\"(%to, %from, %valid) {{bytes = 16 : i64}} : (!llvm.ptr<3>, !llvm.ptr<1>, i1) -> () loc(\"k.rs\":20:1)\n\
         {between}\
         %v = \"lw.load\"(%to) {{align = 16 : i64}} : (!llvm.ptr<3>) -> vector<8xf16> loc(\"k.rs\":30:1)\n\
         %out = llvm.getelementptr %d[%el] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16\n\
         \"lw.store\"(%v, %out) {{align = 16 : i64}} : (vector<8xf16>, !llvm.ptr<1>) -> ()\n",
        shared("s", 0, 512)
    )
}

#[test]
fn asynchronous_copies_land_when_waited_for() {
    let commit = "\"lw.cp_async_commit\"() : () -> ()\n";
    let wait = |n: u32| format!("\"lw.cp_async_wait\"() {{groups = {n} : i64}} : () -> ()\n");
    let run = |between: &str| {
        let body = copy_kernel(between);
        let kernel = Kernel { shared: 512, args: "x:in d:out", body: &body, ..Kernel::default() };
        // The last two threads are not valid and read nothing: their source is out of range.
        let (buffers, values) = bind(&[u16s(&(0..240).collect::<Vec<u16>>()), Arg::Uninit(512)]);
        crate::emulator::run(&kernel.decode(), &Launch::new([1, 1, 1], values)).map(|_| buffers[1].read())
    };
    let result = run(&format!("{commit}{}", wait(0))).unwrap();
    let halves: Vec<u16> = result.chunks(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect();
    let expected: Vec<u16> = (0..256).map(|i| if i < 240 { i } else { 0 }).collect();
    assert_eq!(halves, expected);
    for between in
        [String::new(), commit.to_owned(), wait(0), format!("{commit}{}", wait(1)), format!("{}{commit}", wait(0))]
    {
        let report = run(&between).unwrap_err();
        assert_eq!(report.kind, ReportKind::Uninitialized, "{between}");
        assert_eq!(report.location.as_ref().map(|l| l.line), Some(30));
        assert!(
            report.notes.iter().any(|n| n.contains("started at k.rs:20:1 and has not been waited for")),
            "{report}"
        );
    }
    assert!(run(&format!("{commit}{commit}{}", wait(1))).is_ok());
}

#[test]
fn one_buffer_under_two_names_is_one_allocation() {
    let body = format!(
        "{THREAD}{}%one = arith.constant 1.0 : f32\n%r = arith.addf %x_v, %one : f32\n{}",
        load("x", "f32"),
        store("r", "y", "f32")
    );
    let kernel = Kernel { args: "x:in y:out", body: &body, ..Kernel::default() };
    let buffer = Buffer::from_bytes(&[0; 128]);
    let launch = Launch::new([1, 1, 1], vec![(&buffer).into(), (&buffer).into()]);
    crate::emulator::run(&kernel.decode(), &launch).unwrap();
    assert_eq!(to_f32s(&buffer.read()), [1.0; 32]);
}
