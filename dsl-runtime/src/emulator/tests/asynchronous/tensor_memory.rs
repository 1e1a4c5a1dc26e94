//! Tensor memory: allocations, loads and stores, products, and the order between them (cases D19, D20, D21).

use super::*;
use crate::emulator::{Check, ReportKind};

/// Allocates columns in warp 0 and gives their address to all.
fn allocate(body: &mut Body, line: u32, columns: u32) -> String {
    let slot = body.shared("slot", 0, 4);
    only_first_warp(body, |body| {
        body.at(line, &format!("\"lw.tcgen05_alloc\"({slot}) {{columns = {columns} : i64}} : (!llvm.ptr<3>) -> ()"));
    });
    sync(body);
    body.value(&format!("\"lw.load\"({slot}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"))
}

fn only_first_warp(body: &mut Body, inner: impl FnOnce(&mut Body)) {
    let is_first = body.value("arith.cmpi eq, %warp, %zero : i32");
    body.when(&is_first, inner);
}

fn free(body: &mut Body, line: u32, address: &str, columns: u32) {
    only_first_warp(body, |body| free_here(body, line, address, columns));
}

fn free_here(body: &mut Body, line: u32, address: &str, columns: u32) {
    body.at(line, &format!("\"lw.tcgen05_dealloc\"({address}) {{columns = {columns} : i64}} : (i32) -> ()"));
}

fn fence(body: &mut Body, kind: &str) {
    body.add(&format!("\"lw.tcgen05_fence\"() {{kind = \"{kind}_thread_sync\"}} : () -> ()"));
}

fn sync(body: &mut Body) {
    fence(body, "before");
    body.barrier();
    fence(body, "after");
}

/// The address of the warp's own lanes, some columns further.
fn own(body: &mut Body, address: &str, column: i32) -> String {
    let (four, lanes, column) = (body.i32(4), body.i32(32 << 16), body.i32(column));
    let quarter = body.value(&format!("arith.remui %warp, {four} : i32"));
    let lane = body.value(&format!("arith.muli {quarter}, {lanes} : i32"));
    let there = body.value(&format!("arith.addi {address}, {lane} : i32"));
    body.value(&format!("arith.addi {there}, {column} : i32"))
}

fn store(body: &mut Body, line: u32, address: &str, values: &[&str]) {
    let types = vec!["f32"; values.len()].join(", ");
    body.at(line, &format!("\"lw.tcgen05_st\"({address}, {}) : (i32, {types}) -> ()", values.join(", ")));
}

fn wait_stores(body: &mut Body) {
    body.add("\"lw.tcgen05_wait\"() {kind = \"st\"} : () -> ()");
}

/// Loads one column and waits.
fn load(body: &mut Body, line: u32, address: &str) -> String {
    let loaded = start_load(body, line, address);
    body.value(&format!("\"lw.tcgen05_wait\"({loaded}) {{kind = \"ld\"}} : (f32) -> f32"))
}

fn start_load(body: &mut Body, line: u32, address: &str) -> String {
    let name = body.name();
    body.at(line, &format!("{name} = \"lw.tcgen05_ld\"({address}) {{rows = 32 : i64}} : (i32) -> f32"));
    name
}

fn put(body: &mut Body, value: &str) {
    body.text += &element("d", "f32");
    body.add(&format!("\"lw.store\"({value}, %d_p) {{align = 4 : i64}} : (f32, !llvm.ptr<1>) -> ()"));
}

fn kernel(body: &str) -> Kernel<'_> {
    Kernel { target: "sm_100a", ..hopper(128, 1 << 14, "d:out", body) }
}

fn report(body: &Body) -> Report {
    let found = reports(&kernel(&body.text), [1, 1, 1], &[Arg::Uninit(512)]);
    let first = found[0].clone();
    assert!(found.iter().all(|other| (other.kind, line(other)) == (first.kind, line(&first))), "{found:?}");
    first
}

#[test]
fn rows_come_back_as_they_were_stored() {
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 30);
    let value = body.value("arith.sitofp %tid : i32 to f32");
    let twice = body.value(&format!("arith.addf {value}, {value} : f32"));
    store(&mut body, 20, &there, &[&value, &twice]);
    wait_stores(&mut body);
    let second = own(&mut body, &address, 31);
    let loaded = load(&mut body, 21, &second);
    put(&mut body, &loaded);
    sync(&mut body);
    free(&mut body, 22, &address, 32);
    let buffers = under_seeds(&kernel(&body.text), [3, 1, 1], &[Arg::Uninit(3 * 512)]);
    let expected: Vec<f32> = (0..384).map(|i| 2.0 * i as f32).collect();
    assert_eq!(to_f32s(&buffers[0]), expected);
}

#[test]
fn allocations_have_rules() {
    // More than the block has: it waits forever, and the report says for what.
    let mut body = Body::new();
    let slot = body.shared("slot", 0, 4);
    only_first_warp(&mut body, |body| {
        for line in [10, 11] {
            body.at(line, &format!("\"lw.tcgen05_alloc\"({slot}) {{columns = 512 : i64}} : (!llvm.ptr<3>) -> ()"));
        }
    });
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::Deadlock, Some(11)), "{found}");
    assert!(found.notes[0].contains("waits for 512 columns of tensor memory, of which 0 are free"), "{found}");

    let two = |first: u32, second: u32, between: &str| {
        let mut body = Body::new();
        let slot = body.shared("slot", 0, 4);
        only_first_warp(&mut body, |body| {
            let alloc =
                |columns| format!("\"lw.tcgen05_alloc\"({slot}) {{columns = {columns} : i64}} : (!llvm.ptr<3>) -> ()");
            body.at(10, &alloc(first));
            body.at(11, between);
            body.at(12, &alloc(second));
        });
        report(&body)
    };
    let found = two(32, 64, "\"lw.tcgen05_fence\"() {kind = \"before_thread_sync\"} : () -> ()");
    assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(12)), "{found}");
    assert_eq!(found.message, "an allocation of 64 columns of tensor memory behind one of 32");
    let found = two(32, 32, "\"lw.tcgen05_relinquish_alloc_permit\"() : () -> ()");
    assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(12)), "{found}");
    assert_eq!(found.notes, ["the permit was given up at k.rs:11:5"]);

    for columns in ["48", "16", "1024"] {
        let body = format!(
            "%s = \"lw.shared\"() {{offset = 0 : i64, bytes = 4 : i64, align = 4 : i64, name = \"s\"}} : () -> !llvm.ptr<3>\n\
             \"lw.tcgen05_alloc\"(%s) {{columns = {columns} : i64}} : (!llvm.ptr<3>) -> ()\n"
        );
        let refused = kernel(&body).try_decode().unwrap_err().to_string();
        assert!(refused.contains(&format!("32, 64, 128, 256 or 512 columns, not {columns}")), "{refused}");
    }
}

#[test]
fn what_is_freed_is_gone_and_what_is_not_is_a_leak() {
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 0);
    sync(&mut body);
    free(&mut body, 20, &address, 32);
    let freed = Body { text: body.text.clone(), next: 500 };
    under_seeds(&kernel(&body.text), [2, 1, 1], &[Arg::Uninit(512)]);

    free(&mut body, 21, &address, 32);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(21)), "{found}");
    assert_eq!(found.message, "32 columns of tensor memory are freed a second time");
    assert_eq!(found.notes, ["they were freed at k.rs:20:5"]);

    let mut body = freed;
    body.barrier();
    let value = load(&mut body, 22, &there);
    put(&mut body, &value);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(22)), "{found}");
    assert!(found.message.starts_with("tcgen05.ld to columns ") && found.message.ends_with("which are freed"));

    // On one path alone.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 64);
    let (one, block) = (body.i32(1), "%tid_bi");
    let is_second = body.value(&format!("arith.cmpi eq, {block}, {one} : i32"));
    sync(&mut body);
    body.when(&is_second, |body| free(body, 20, &address, 64));
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(10)), "{found}");
    assert_eq!(found.message, "64 columns of tensor memory are never freed");

    // With another number of columns.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 64);
    free(&mut body, 20, &address, 32);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(20)), "{found}");
    assert!(found.message.ends_with("of tensor memory are freed, and no such allocation exists"), "{found}");

    // While another warp may still read.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 0);
    let value = body.value("arith.sitofp %tid : i32 to f32");
    store(&mut body, 20, &there, &[&value]);
    wait_stores(&mut body);
    only_first_warp(&mut body, |body| free_here(body, 30, &address, 32));
    let found = reports(&kernel(&body.text), [1, 1, 1], &[Arg::Uninit(512)]);
    for found in found {
        let early = (ReportKind::TensorMemory, Some(30));
        let late = (ReportKind::TensorMemory, Some(20));
        assert!([early, late].contains(&(found.kind, line(&found))), "{found}");
    }
}

#[test]
fn d21_a_warp_reaches_its_own_lanes_alone() {
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let value = body.value("arith.sitofp %tid : i32 to f32");
    let there = own(&mut body, &address, 0);
    store(&mut body, 20, &there, &[&value]);
    wait_stores(&mut body);
    let loaded = load(&mut body, 21, &address);
    put(&mut body, &loaded);
    sync(&mut body);
    free(&mut body, 22, &address, 32);
    for found in reports(&kernel(&body.text), [1, 1, 1], &[Arg::Uninit(512)]) {
        assert_eq!((found.kind, line(&found)), (ReportKind::TensorMemory, Some(21)), "{found}");
        let warp = found.warp.unwrap();
        let (first, last) = (32 * warp, 32 * warp + 31);
        assert_eq!(
            found.message,
            format!("warp {warp} loads lanes 0 to 31 of tensor memory, and it reaches lanes {first} to {last} alone")
        );
        assert_eq!(found.notes, ["warp w reaches lanes 32 (w mod 4) to 32 (w mod 4) + 31 (PTX ISA, tcgen05.ld)"]);
    }
}

#[test]
fn loads_and_stores_are_checked_cell_by_cell() {
    // Beyond the allocation.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 32);
    let value = load(&mut body, 20, &there);
    put(&mut body, &value);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::OutOfBounds, Some(20)), "{found}");

    // Of what nothing wrote.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 7);
    let value = load(&mut body, 20, &there);
    put(&mut body, &value);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::Uninitialized, Some(20)), "{found}");
    assert!(found.message.ends_with("column 7"), "{found}");

    // Before the store's own wait.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 7);
    let value = body.value("arith.sitofp %tid : i32 to f32");
    store(&mut body, 20, &there, &[&value]);
    let value = load(&mut body, 21, &there);
    put(&mut body, &value);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::InFlight, Some(21)), "{found}");
    assert!(found.message.contains("column 7, while the tcgen05.st at k.rs:20:5 is under way, which writes it"));

    // A load that nothing waits for.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 7);
    let value = body.value("arith.sitofp %tid : i32 to f32");
    store(&mut body, 20, &there, &[&value]);
    wait_stores(&mut body);
    start_load(&mut body, 21, &there);
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::CopyInFlight, Some(21)), "{found}");

    // Lanes that part from their warp.
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let there = own(&mut body, &address, 0);
    let five = body.i32(5);
    let few = body.value(&format!("arith.cmpi slt, %lane, {five} : i32"));
    let value = body.value("arith.sitofp %tid : i32 to f32");
    body.when(&few, |body| store(body, 20, &there, &[&value]));
    let found = report(&body);
    assert_eq!((found.kind, line(&found)), (ReportKind::PartialWarp, Some(20)), "{found}");
}

/// Warp 0 stores a row of each of its lanes, and warp 4 of 8 reads it.
fn passed_on(before: bool, after: bool, barrier: bool) -> Body {
    let mut body = Body::new();
    let address = allocate(&mut body, 10, 32);
    let value = body.value("arith.sitofp %lane : i32 to f32");
    only_first_warp(&mut body, |body| {
        store(body, 20, &address, &[&value]);
        wait_stores(body);
        if before {
            fence(body, "before");
        }
    });
    if barrier {
        body.barrier();
    }
    let four = body.i32(4);
    let is_fifth = body.value(&format!("arith.cmpi eq, %warp, {four} : i32"));
    body.when(&is_fifth, |body| {
        if after {
            fence(body, "after");
        }
        let value = load(body, 21, &address);
        put(body, &value);
    });
    sync(&mut body);
    free(&mut body, 22, &address, 32);
    body
}

#[test]
fn fences_order_what_threads_do_in_tensor_memory() {
    let kernel = |body: &Body| {
        let text: &'static str = Box::leak(body.text.clone().into_boxed_str());
        Kernel { target: "sm_100a", ..hopper(256, 64, "d:out", text) }
    };
    let args = [Arg::Bytes(vec![0; 1024])];
    let buffers = under_seeds(&kernel(&passed_on(true, true, true)), [1, 1, 1], &args);
    let expected: Vec<f32> = (0..256).map(|i| if i / 32 == 4 { (i % 32) as f32 } else { 0.0 }).collect();
    assert_eq!(to_f32s(&buffers[0]), expected);
    for (before, after, missing) in [(false, true, "before"), (true, false, "after")] {
        for found in reports(&kernel(&passed_on(before, after, true)), [1, 1, 1], &args) {
            assert_eq!((found.kind, line(&found)), (ReportKind::Race, Some(21)), "{found}");
            assert!(found.message.contains("the tcgen05.st at k.rs:20:5, which wrote it"), "{found}");
            assert!(found.message.ends_with("no tcgen05 fence between them"), "{found}");
            assert!(found.notes[0].ends_with(&format!("there is no tcgen05.fence::{missing}_thread_sync")), "{found}");
        }
    }
    let unchecked =
        Kernel { checks: Checks::default().without(Check::Initialized), ..kernel(&passed_on(true, true, false)) };
    for found in reports(&unchecked, [1, 1, 1], &args) {
        assert_eq!(found.kind, ReportKind::Race, "{found}");
        assert_eq!(found.notes, ["no barrier or mbarrier orders the two"], "{found}");
    }
}
