//! Shared memory of other blocks of the cluster: read too early, too late, out of order, out of bounds.

use super::*;

/// Each block leaves a tile and reads the other's, twice.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn exchanges(#[comptime] fault: usize, y: TensorMut<I32, 1>) {
    let tile = shared_array_named::<I32>("tile", 64);
    let (rank, i) = (cluster_rank(), thread_id(X));
    let other = if const_expr(fault == 5) { *rank + 1 } else { I32::from(1) - *rank };
    if const_expr(fault == 3) {
        cluster_sync();
    }
    if const_expr(fault == 6) {
        if i != 40 {
            tile.at(i).store(i);
        }
    } else {
        tile.at(i).store(i); // <- LEAVES
    }
    if const_expr(fault != 3) {
        if const_expr(fault == 1) {
            barrier();
        } else {
            cluster_sync();
        }
    }
    let index = if const_expr(fault == 4) { I32::from(64) - i } else { I32::from(63) - i };
    let there = tile.of_block(other);
    let mut sum = there.at(index).load(); // <- READS
    if const_expr(fault != 7) {
        cluster_sync();
    } else {
        barrier();
    }
    tile.at(i).store(sum * 2); // <- LEAVES AGAIN
    cluster_sync();
    sum += there.at(i).load(); // <- READS AGAIN
    y.at(block_id(X) * 64 + i).store(sum);
    if const_expr(fault != 2) {
        cluster_sync();
    }
}

#[test]
fn reads_of_another_blocks_memory() {
    let run = |dev: &Device, fault| {
        let mut y = dev.tensor_uninit::<i32, 1>([128])?;
        exchanges::new(fault).grid([2, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    let reports = |fault, allowed: &[(ReportKind, &str)]| faulty(Target::SM_90A, allowed, |dev| run(dev, fault));

    // A barrier of the block alone.
    for report in reports(1, &[(ReportKind::Cluster, "READS")]) {
        let message = "behind the begin of block";
        assert!(report.message.contains(message), "{report}");
        assert!(report.help.as_ref().is_some_and(|help| help.contains("cluster_sync()")), "{report}");
    }
    // No meeting behind the last read.
    for report in reports(2, &[(ReportKind::Cluster, "READS AGAIN")]) {
        let ended = report.message.ends_with("has ended, and its shared memory with it");
        assert!(ended || report.message.starts_with("nothing orders this read before the end of block "), "{report}");
    }
    // The blocks have begun, and nothing orders the stores.
    let kinds = [(ReportKind::Race, "READS"), (ReportKind::Race, "LEAVES"), (ReportKind::Uninitialized, "READS")];
    for report in reports(3, &kinds) {
        assert!(
            report.kind != ReportKind::Race || report.notes.iter().any(|n| n.contains("of the cluster")),
            "{report}"
        );
    }
    for report in reports(4, &[(ReportKind::OutOfBounds, "READS")]) {
        let told = ["0", "1"]
            .map(|rank| format!("shared-memory index 64 of 64: read outside `tile` of block {rank} of the cluster"));
        assert!(told.contains(&report.message), "{report}");
    }
    for report in reports(5, &[(ReportKind::Cluster, "READS")]) {
        assert_eq!(report.message, "block 2 of a cluster of 2");
    }
    for report in reports(6, &[(ReportKind::Uninitialized, "READS")]) {
        let start = "read of shared memory that nothing wrote: index 40 of 64 in `tile` of block ";
        assert!(report.message.starts_with(start), "{report}");
    }
    let kinds = [(ReportKind::Race, "READS"), (ReportKind::Race, "LEAVES AGAIN")];
    for report in reports(7, &kinds) {
        let edge = report.notes.iter().any(|note| note.contains("meet at no `cluster_sync()` between the two"));
        assert!(edge && report.help.as_ref().is_some_and(|help| help.contains("cluster_sync()")), "{report}");
    }
}

/// Block 0's threads write to block 1, whose threads read when they have been told.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn delivers(#[comptime] fault: usize, y: TensorMut<F32, 1>) {
    let inbox = shared_array_named::<F32>("inbox", 64);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", if const_expr(fault == 2) { 2 } else { 64 });
    setup.finish();
    let i = thread_id(X);
    if cluster_rank() == 0 {
        let there = inbox.of_block(1);
        if const_expr(fault == 1) {
            full.arrive_at(1);
            there.at(i).store(i.cast::<F32>()); // <- DELIVERS
        } else if const_expr(fault == 2) {
            // One lane speaks for its warp, without having met the others.
            there.at(i).store(i.cast::<F32>()); // <- DELIVERS UNMET
            if elect_one() {
                full.arrive_at(1);
            }
        } else {
            there.at(i).store(i.cast::<F32>());
            full.arrive_at(1);
        }
    } else {
        if const_expr(fault != 3) {
            full.wait(I32::from(0));
        }
        y.at(i).store(inbox.at(I32::from(63) - i).load()); // <- RECEIVES
    }
    cluster_sync();
}

#[test]
fn stores_to_another_blocks_memory() {
    let run = |dev: &Device, fault| {
        let mut y = dev.tensor_uninit::<f32, 1>([64])?;
        delivers::new(fault).grid([2, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    let late =
        [(ReportKind::Race, "RECEIVES"), (ReportKind::Race, "DELIVERS"), (ReportKind::Uninitialized, "RECEIVES")];
    faulty(Target::SM_90A, &late, |dev| run(dev, 1));
    for report in faulty(Target::SM_90A, &[(ReportKind::Race, "RECEIVES")], |dev| run(dev, 2)) {
        assert!(report.help.as_ref().is_some_and(|help| help.contains("warp_sync()")), "{report}");
    }
    faulty(Target::SM_90A, &[(ReportKind::Race, "RECEIVES"), (ReportKind::Uninitialized, "RECEIVES")], |dev| {
        run(dev, 3)
    })
    .iter()
    .for_each(drop);
}

/// Every thread of the cluster counts in block 0; one lets its own block's atomic be a store.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn counts(#[comptime] plain: bool, y: TensorMut<I32, 1>) {
    let count = shared_array_named::<I32>("count", 1);
    let rank = cluster_rank();
    if rank == 0 && thread_id(X) == 0 {
        count.at(0).store(I32::from(0));
    }
    cluster_sync();
    if const_expr(plain) && rank == 0 {
        if thread_id(X) == 0 {
            count.at(0).store(count.at(0).load() + 1); // <- COUNTS
        }
    } else {
        let _ = count.of_block(0).at(0).atomic_add(I32::from(1)); // <- COUNTS AT ONCE
    }
    cluster_sync();
    if rank == 0 && thread_id(X) == 0 {
        y.at(0).store(count.at(0).load());
    }
}

#[test]
fn a_store_beside_atomics_of_another_block() {
    let run = |dev: &Device, plain| {
        let mut y = dev.tensor_uninit::<i32, 1>([1])?;
        let stats = counts::new(plain).grid([2, 1, 1]).launch(dev, (&mut y,))?;
        assert!(plain || y.to_vec()? == [128]);
        Ok(stats)
    };
    clean(Target::SM_90A, |dev| run(dev, false));
    let kinds = [(ReportKind::Race, "COUNTS"), (ReportKind::Race, "COUNTS AT ONCE")];
    faulty(Target::SM_90A, &kinds, |dev| run(dev, true));
}

/// Block 1 waits in a loop for a word that block 0 writes there, or does not.
#[kernel(block = [32, 1, 1], cluster = [2, 1, 1])]
fn signals(#[comptime] fault: usize, y: TensorMut<I32, 1>) {
    let flag = shared_array_named::<I32>("flag", 1);
    let data = shared_array_named::<I32>("data", 32);
    let i = thread_id(X);
    if i == 0 {
        flag.at(0).store(I32::from(0));
    }
    cluster_sync();
    if cluster_rank() == 0 {
        data.of_block(1).at(i).store(i + 1); // <- SENDS
        warp_sync();
        let release = if const_expr(fault == 1) { Ordering::Relaxed } else { Ordering::Release };
        if i == 0 {
            if const_expr(fault != 2) {
                let _ = flag.of_block(1).at(0).atomic_exch_with(I32::from(1), release, Scope::Cluster);
            }
        }
    } else {
        if i == 0 {
            while flag.at(0).atomic_add_with(I32::from(0), Ordering::Acquire, Scope::Cluster) == 0 {} // <- POLLS
        }
        warp_sync();
        y.at(i).store(data.at(31 - i).load()); // <- TAKES
    }
    cluster_sync();
}

#[test]
fn a_flag_in_another_blocks_memory() {
    let run = |dev: &Device, fault| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        signals::new(fault).grid([2, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, 0));
    faulty(Target::SM_90A, &[(ReportKind::Race, "TAKES")], |dev| run(dev, 1));
    faulty(Target::SM_90A, &[(ReportKind::Deadlock, "POLLS")], |dev| run(dev, 2));
}

/// Block 0 sends 64 words to block 1, by stores or by a copy that complete at an mbarrier.
#[kernel(block = [64, 1, 1], cluster = [2, 1, 1])]
fn posts(#[comptime] fault: usize, #[comptime] by_copy: bool, y: TensorMut<I32, 1>) {
    let (outbox, inbox) = (shared_array_named::<I32>("outbox", 64), shared_array_named::<I32>("inbox", 64));
    let mut setup = BarrierSetup::new();
    let came = setup.mbarrier("came", 1);
    setup.finish();
    let i = thread_id(X);
    let (rank, there) = (cluster_rank(), inbox.of_block(1));
    let at = came.of_block(if const_expr(fault == 1) { 0 } else { 1 });
    if rank == 0 {
        outbox.at(i).store(i); // <- WRITES
        if const_expr(fault != 3) {
            fence_proxy(ProxyFence::AsyncShared);
        }
        barrier();
        if const_expr(by_copy) {
            if i == 0 {
                there.copy_from(outbox, at); // <- COPIES
            }
        } else {
            there.at(i).store_async(i, at); // <- POSTS
        }
        if const_expr(fault == 4) {
            barrier();
            outbox.at(i).store(I32::from(0)); // <- OVERWRITES
        }
    } else {
        if i == 0 {
            came.expect(if const_expr(fault == 5) { 128 } else { 256 });
        }
        if const_expr(fault != 2) {
            came.wait(I32::from(0)); // <- WAITS
        }
        y.at(i).store(inbox.at(63 - i).load()); // <- TAKES IT
    }
    if const_expr(fault != 6) {
        cluster_sync();
    }
}

#[test]
fn what_completes_at_another_blocks_mbarrier() {
    let run = |dev: &Device, fault, by_copy| {
        let mut y = dev.tensor_uninit::<i32, 1>([64])?;
        posts::new(fault, by_copy).grid([2, 1, 1]).launch(dev, (&mut y,))
    };
    for by_copy in [false, true] {
        clean(Target::SM_90A, |dev| run(dev, 0, by_copy));
        let sends = if by_copy { "COPIES" } else { "POSTS" };
        let reports =
            |fault, allowed: &[(ReportKind, &str)]| faulty(Target::SM_90A, allowed, |dev| run(dev, fault, by_copy));
        for report in reports(1, &[(ReportKind::Cluster, sends)]) {
            let message = "what goes to block 1 of the cluster is to complete at an mbarrier of block 0";
            assert_eq!(report.message, message);
        }
        let unread = [
            (ReportKind::Race, "TAKES IT"),
            (ReportKind::Race, sends),
            (ReportKind::Uninitialized, "TAKES IT"),
            (ReportKind::CopyInFlight, sends),
        ];
        reports(2, &unread);
        // Half of the bytes complete the phase.
        let half = [(ReportKind::Race, "TAKES IT"), (ReportKind::Deadlock, "WAITS"), (ReportKind::CopyInFlight, sends)];
        reports(5, &half);
    }
    // What a copy reads: behind a proxy fence, and until it has come.
    faulty(Target::SM_90A, &[(ReportKind::Race, "COPIES")], |dev| run(dev, 3, true));
    for report in faulty(Target::SM_90A, &[(ReportKind::Race, "OVERWRITES"), (ReportKind::Race, "COPIES")], |dev| {
        run(dev, 4, true)
    }) {
        assert!(report.message.contains("bulk copy"), "{report}");
    }
    let ends = [(ReportKind::Cluster, "COPIES")];
    for report in faulty(Target::SM_90A, &ends, |dev| run(dev, 6, true)) {
        let told = [
            "block 0 of the cluster has ended while this copy still reads its shared memory",
            "nothing orders the end of block 0 of the cluster behind this copy, which reads its shared memory",
        ];
        assert!(told.contains(&report.message.as_str()), "{report}");
    }
    // What a thread gave to a store is on its way: its block may end.
    clean(Target::SM_90A, |dev| run(dev, 6, false));
}
