//! Clusters: ranks, their barrier, arrivals at other blocks, multicast.

use super::*;
use crate::emulator::ReportKind;

fn cluster<'a>(threads: u32, shared: u32, args: &'a str, body: &'a str) -> Kernel<'a> {
    Kernel { attributes: ", lw.cluster = array<i32: 2, 1, 1>", ..hopper(threads, shared, args, body) }
}

fn sync(body: &mut Body, line: u32, kind: &str) {
    body.at(line, &format!("\"lw.cluster_sync\"() {{kind = \"{kind}\"}} : () -> ()"));
}

#[test]
fn blocks_know_their_rank() {
    let mut body = Body::new();
    let rank = body.value("\"lw.cluster_rank\"() : () -> i32");
    sync(&mut body, 5, "sync");
    body.text += &store(&rank[1..], "d", "i32");
    let results = under_seeds(&cluster(64, 0, "d:out", &body.text), [6, 1, 1], &[Arg::Uninit(6 * 256)]);
    let results = to_i32s(&results[0]);
    assert!(results.iter().enumerate().all(|(i, &rank)| rank == (i / 64 % 2) as i32), "{results:?}");

    let report = {
        let kernel = cluster(64, 0, "d:out", &body.text);
        let (_, values) = bind(&[Arg::Uninit(5 * 256)]);
        *crate::emulator::run(&kernel.decode(), &Launch::new([5, 1, 1], values)).unwrap_err()
    };
    assert_eq!(report.kind, ReportKind::BadLaunch);
    assert_eq!(report.message, "the grid [5, 1, 1] is not made of whole clusters of [2, 1, 1] blocks");
}

/// Each block loads half of a tile to both; each waits for the whole of its own.
fn multicast(with_sync: bool, expected: u32) -> String {
    let mut body = Body::new();
    let (tile, bar) = (body.shared("tile", 0, 2048), body.shared("full", 2048, 8));
    let rank = body.value("\"lw.cluster_rank\"() : () -> i32");
    body.by_first(|body| {
        body.init(1, &bar, 1);
        body.fence("mbarrier_init");
    });
    if with_sync {
        sync(&mut body, 5, "sync");
    } else {
        body.barrier();
    }
    let (eight, size) = (body.i32(8), body.i32(1024));
    body.by_first(|body| {
        body.expect(9, &bar, expected);
        let row = body.value(&format!("arith.muli {rank}, {eight} : i32"));
        let offset = body.value(&format!("arith.muli {rank}, {size} : i32"));
        let half = body.element(&tile, &offset, "i8");
        body.load(10, (&half, "%m", &bar), &["%zero".to_owned(), row], 3);
    });
    body.wait(11, &bar, "%zero");
    // d[block] = the whole tile
    let words = body.i32(512);
    body.add(&format!("scf.for %w = %tid_xi to {words} step %tid_ni : i32 {{"));
    let from = body.element(&tile, "%w", "i32");
    body.at(12, &format!("%x = \"lw.load\"({from}) {{align = 4 : i64}} : (!llvm.ptr<3>) -> i32"));
    let base = body.value(&format!("arith.muli %tid_bi, {words} : i32"));
    let slot = body.value(&format!("arith.addi {base}, %w : i32"));
    let slot = body.value(&format!("arith.extsi {slot} : i32 to i64"));
    let to = body.value(&format!("llvm.getelementptr %d[{slot}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32"));
    body.add(&format!("\"lw.store\"(%x, {to}) {{align = 4 : i64}} : (i32, !llvm.ptr<1>) -> ()\n}}"));
    sync(&mut body, 13, "sync");
    body.text
}

#[test]
fn a_multicast_load_reaches_both_blocks() {
    let mut random = Random(11);
    let tensor: Vec<u8> = (0..2048).map(|_| random.next() as u8).collect();
    let source = Buffer::from_bytes(&tensor);
    let map = map_of(&source, 2, &[64, 16], &[64, 8], 0);
    let args = [map, Arg::Uninit(4096)];
    let results = under_seeds(&cluster(64, 2056, "m:map/bf16/64x8/0 d:out", &multicast(true, 2048)), [2, 1, 1], &args);
    assert!(results[0][..2048] == tensor && results[0][2048..] == tensor);

    // Without the barrier of the cluster the other block's mbarrier may not be there.
    for report in reports(&cluster(64, 2056, "m:map/bf16/64x8/0 d:out", &multicast(false, 2048)), [2, 1, 1], &args) {
        assert!(matches!(report.kind, ReportKind::Race | ReportKind::Mbarrier), "{report}");
        assert_eq!(line(&report), Some(10), "{report}");
    }
    // Each block expects its own half alone: the phase completes before the other half has come, or the bytes of
    // the other half are too many.
    for report in reports(&cluster(64, 2056, "m:map/bf16/64x8/0 d:out", &multicast(true, 1024)), [2, 1, 1], &args) {
        assert!(
            matches!(
                report.kind,
                ReportKind::Race | ReportKind::Deadlock | ReportKind::CopyInFlight | ReportKind::Uninitialized
            ),
            "{report}"
        );
    }
}

#[test]
fn arrivals_at_another_block() {
    // Every thread of the pair arrives at block 0's mbarrier; its threads wait for 128.
    let build = |count: u32, rank: i32| {
        let mut body = Body::new();
        let bar = body.shared("all", 0, 8);
        let own = body.value("\"lw.cluster_rank\"() : () -> i32");
        body.by_first(|body| {
            body.init(1, &bar, count);
            body.fence("mbarrier_init");
        });
        sync(&mut body, 5, "arrive");
        sync(&mut body, 6, "wait");
        let target = body.i32(rank);
        body.at(10, &format!("\"lw.mbarrier_arrive_peer\"({bar}, {target}) : (!llvm.ptr<3>, i32) -> ()"));
        let is_target = body.value(&format!("arith.cmpi eq, {own}, {target} : i32"));
        body.when(&is_target, |body| body.wait(11, &bar, "%zero"));
        sync(&mut body, 12, "sync");
        body.text
    };
    for rank in [0, 1] {
        under_seeds(&cluster(64, 64, "", &build(128, rank)), [4, 1, 1], &[]);
    }
    for report in reports(&cluster(64, 64, "", &build(129, 1)), [2, 1, 1], &[]) {
        assert_eq!(report.kind, ReportKind::Deadlock);
        let waits = report.notes.iter().find(|note| note.contains("`all`")).unwrap();
        assert!(waits.starts_with("block 1 of the cluster, warps 0 and 1 wait for "), "{waits}");
        assert!(waits.contains("128 of 129 arrivals"), "{waits}");
        assert!(
            report.notes.iter().any(|note| note.contains("wait at the cluster's barrier at k.rs:12:5")),
            "{report}"
        );
    }
    let report = &reports(&cluster(64, 64, "", &build(128, 2)), [2, 1, 1], &[])[0];
    assert_eq!((line(report), report.message.as_str()), (Some(10), "block 2 of a cluster of 2"));
}

#[test]
fn an_arrival_at_a_block_that_has_ended() {
    // Block 0 ends at once; block 1 arrives at its mbarrier.
    let mut body = Body::new();
    let bar = body.shared("all", 0, 8);
    let rank = body.value("\"lw.cluster_rank\"() : () -> i32");
    body.by_first(|body| {
        body.init(1, &bar, 1000);
        body.fence("mbarrier_init");
    });
    sync(&mut body, 5, "sync");
    let one = body.i32(1);
    let late = body.value(&format!("arith.cmpi eq, {rank}, {one} : i32"));
    body.when(&late, |body| {
        // Long enough for the other block to end, whatever the order.
        body.at(8, "\"lw.named_barrier\"() {id = 1 : i64, threads = 64 : i64, kind = \"sync\"} : () -> ()");
        body.at(10, &format!("\"lw.mbarrier_arrive_peer\"({bar}, %zero) : (!llvm.ptr<3>, i32) -> ()"));
    });
    let kernel = cluster(64, 64, "", &body.text);
    let program = kernel.decode();
    let found: Vec<Report> = (0..20)
        .filter_map(|seed| {
            let launch = Launch { seed, ..Launch::new([2, 1, 1], Vec::new()) };
            crate::emulator::run(&program, &launch).err().map(|report| *report)
        })
        .collect();
    // Whether the block has ended by then or only may have: each order shows it.
    assert_eq!(found.len(), 20);
    let ended = "block 0 of the cluster has ended, and its shared memory with it";
    let may_have = "nothing orders this arrival before the end of block 0 of the cluster, and of its shared memory";
    for report in &found {
        assert_eq!((report.kind, line(report)), (ReportKind::Mbarrier, Some(10)), "{report}");
        assert!([ended, may_have].contains(&report.message.as_str()), "{report}");
    }
    assert!(found.iter().any(|report| report.message == ended));
}

#[test]
fn a_block_that_has_ended_does_not_hold_the_cluster() {
    let mut body = Body::new();
    let rank = body.value("\"lw.cluster_rank\"() : () -> i32");
    let first = body.value(&format!("arith.cmpi eq, {rank}, %zero : i32"));
    body.when(&first, |body| sync(body, 5, "sync"));
    under_seeds(&cluster(64, 0, "", &body.text), [2, 1, 1], &[]);
}

/// Thread i of each block of a pair leaves 100 rank + i, and reads, at an offset, what thread i left in block `i % 2`; the first
/// `taken` threads alone.
fn by_lane(offset: i32, taken: i32, ends_together: bool) -> String {
    let mut body = Body::new();
    let tile = body.shared("tile", 0, 256);
    let (rank, hundred, two) = (body.value("\"lw.cluster_rank\"() : () -> i32"), body.i32(100), body.i32(2));
    let base = body.value(&format!("arith.muli {rank}, {hundred} : i32"));
    let mine = body.value(&format!("arith.addi {base}, %tid_xi : i32"));
    let at = body.element(&tile, "%tid_xi", "i32");
    body.at(4, &format!("\"lw.store\"({mine}, {at}) {{align = 4 : i64}} : (i32, !llvm.ptr<3>) -> ()"));
    sync(&mut body, 5, "sync");
    let named = body.value(&format!("arith.remui %tid_xi, {two} : i32"));
    let peer = body.value(&format!("\"lw.mapa\"({tile}, {named}) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>"));
    let offset = body.i32(offset);
    let index = body.value(&format!("arith.addi %tid_xi, {offset} : i32"));
    let at = body.value(&format!("llvm.getelementptr {peer}[{index}] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i32"));
    let (taken, other) = (body.i32(taken), body.i32(-1));
    let mask = body.value(&format!("arith.cmpi slt, %tid_xi, {taken} : i32"));
    body.at(
        8,
        &format!("%x = \"lw.load_masked\"({at}, {mask}, {other}) {{align = 4 : i64}} : (!llvm.ptr<7>, i1, i32) -> i32"),
    );
    if ends_together {
        sync(&mut body, 9, "sync");
    }
    body.text += &store("x", "d", "i32");
    body.text
}

#[test]
fn lanes_reach_the_blocks_that_they_name() {
    let results = under_seeds(&cluster(64, 256, "d:out", &by_lane(0, 50, true)), [4, 1, 1], &[Arg::Uninit(4 * 256)]);
    let wanted: Vec<i32> = (0..256).map(|i| i % 64).map(|i| if i < 50 { i % 2 * 100 + i } else { -1 }).collect();
    assert_eq!(to_i32s(&results[0]), wanted);

    for report in reports(&cluster(64, 256, "d:out", &by_lane(-1, 50, true)), [2, 1, 1], &[Arg::Uninit(512)]) {
        assert_eq!((report.kind, line(&report)), (ReportKind::OutOfBounds, Some(8)), "{report}");
        let [own, other] = ["", " of block 0 of the cluster"]
            .map(|block| format!("shared-memory index -1 of 64: read outside `tile`{block}"));
        assert!([own, other].contains(&report.message), "{report}");
    }
    for report in reports(&cluster(64, 256, "d:out", &by_lane(0, 50, false)), [2, 1, 1], &[Arg::Uninit(512)]) {
        assert_eq!((report.kind, line(&report)), (ReportKind::Cluster, Some(8)), "{report}");
    }
}
