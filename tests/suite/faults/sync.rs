//! Who speaks for whom: arrivals, waits and fences by some lanes of a warp, flags, and counts of arrivals.

use super::*;

/// What one warp writes another takes, by way of an mbarrier for one arrival.
///
/// Faults: 1, the elected lane arrives before the others are known to have written; 2, it arrives in a branch of its own
/// lane, as 1; 3, one lane of the consumer waits, and all read. 4 is none: that lane waits, and meets the others.
#[kernel(block = [64, 1, 1])]
fn one_speaks(#[comptime] fault: usize, y: TensorMut<I32, 1>) {
    let tile = shared_array_named::<I32>("tile", 32);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 1);
    setup.finish();
    let lane = lane_id();
    if warp_id() == 0 {
        tile.at(lane).store(lane); // <- SPOKEN FOR
        if const_expr(fault == 0 || fault > 2) {
            warp_sync();
        }
        if const_expr(fault == 2) {
            if lane == 7 {
                full.arrive();
            }
        } else if elect_one() {
            full.arrive();
        }
    } else {
        if const_expr(fault > 2) {
            if elect_one() {
                full.wait(I32::from(0));
            }
            if const_expr(fault == 4) {
                warp_sync();
            }
        } else {
            full.wait(I32::from(0));
        }
        y.at(lane).store(tile.at(31 - lane).load()); // <- LISTENS
    }
}

fn run_one_speaks(dev: &Device, fault: usize) -> Result<LaunchStats, Error> {
    let mut y = dev.tensor_uninit::<i32, 1>([32])?;
    one_speaks::new(fault).grid([1, 1, 1]).launch(dev, (&mut y,))
}

#[test]
fn an_elected_lane_that_arrives_for_lanes_it_has_not_met() {
    clean(Target::SM_90A, |dev| run_one_speaks(dev, 0));
    clean(Target::SM_90A, |dev| run_one_speaks(dev, 4));
    for fault in [1, 2] {
        for report in faulty(Target::SM_90A, &[(ReportKind::Race, "LISTENS")], |dev| run_one_speaks(dev, fault)) {
            let text = report.to_string();
            assert!(text.contains("put a `warp_sync()` before the arrival"), "{text}");
        }
    }
}

#[test]
fn a_wait_by_one_lane_for_all() {
    let kinds =
        [(ReportKind::Race, "LISTENS"), (ReportKind::Race, "SPOKEN FOR"), (ReportKind::Uninitialized, "LISTENS")];
    faulty(Target::SM_90A, &kinds, |dev| run_one_speaks(dev, 3));
}

/// Lanes read a word each, and the elected one says that the warp is done with them: the other warp writes them anew.
#[kernel(block = [64, 1, 1])]
fn hands_back(#[comptime] met: bool, y: TensorMut<I32, 1>) {
    let words = shared_array_named::<I32>("words", 32);
    let mut setup = BarrierSetup::new();
    let empty = setup.mbarrier("empty", 1);
    setup.finish();
    let lane = lane_id();
    words.at(lane).store(lane); // <- SAME VALUE
    barrier();
    if warp_id() == 0 {
        let word = words.at(31 - lane).load(); // <- READS BACK
        if const_expr(met) {
            warp_sync();
        }
        if elect_one() {
            empty.arrive();
        }
        y.at(lane).store(word);
    } else {
        empty.wait(I32::from(0));
        words.at(lane).store(lane + 1); // <- OVERWRITES
    }
}

#[test]
fn reads_of_other_lanes_that_an_arrival_does_not_cover() {
    let run = |dev: &Device, met| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        hands_back::new(met).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, true));
    faulty(Target::SM_90A, &[(ReportKind::Race, "OVERWRITES")], |dev| run(dev, false));
}

/// Lanes fill a tile, and one of them stores it. `fence`: 0, all lanes make the fence and then meet; 1, the storing lane
/// makes it, behind the meeting; 2, all make it and do not meet; 3, one makes it and they do not meet.
#[kernel(block = [32, 1, 1])]
fn one_stores(#[comptime] fence: usize, y: TensorMap<F16, 2>) {
    let tile = SwizzledTile::<F16>::new("tile", 8, 64);
    for row in range_constexpr(8) {
        for half in range_constexpr(2) {
            let column = lane_id() + (32 * half) as i32;
            tile.at((row as i32, column)).store(column.cast::<F16>());
        }
    }
    if const_expr(fence == 0 || fence == 2) {
        fence_proxy(ProxyFence::AsyncShared);
    }
    if const_expr(fence < 2) {
        warp_sync();
    }
    if elect_one() {
        if const_expr(fence == 1 || fence == 3) {
            fence_proxy(ProxyFence::AsyncShared);
        }
        y.store((0, 0), tile); // <- ONE STORES
        tma_store_commit();
        tma_store_wait(0);
    }
}

#[test]
fn a_store_by_one_lane_of_what_all_wrote() {
    let run = |dev: &Device, fence| {
        let mut y = dev.tensor_zeros::<f16, 2>([8, 64])?;
        one_stores::new(fence).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    for fence in [0, 1] {
        clean(Target::SM_90A, |dev| run(dev, fence));
    }
    for fence in [2, 3] {
        faulty(Target::SM_90A, &[(ReportKind::Race, "ONE STORES")], |dev| run(dev, fence));
    }
}

/// Warp 1 waits in a loop for a flag in shared memory that warp 0 sets behind its data.
#[kernel(block = [64, 1, 1])]
fn spins(#[comptime] fault: usize, y: TensorMut<I32, 1>) {
    let flag = shared_array_named::<I32>("flag", 1);
    let data = shared_array_named::<I32>("data", 32);
    let lane = lane_id();
    if thread_id(X) == 0 {
        flag.at(0).store(I32::from(0));
    }
    barrier();
    if warp_id() == 0 {
        data.at(lane).store(lane * 3); // <- DATA
        if const_expr(fault == 0) {
            warp_sync();
        }
        if elect_one() {
            let _ = flag.at(0).atomic_exch_with(I32::from(1), Ordering::Release, Scope::Block);
        }
    } else {
        let mut seen = I32::from(0);
        while seen == 0 {
            seen = flag.at(0).atomic_add_with(I32::from(0), Ordering::Acquire, Scope::Block);
        }
        y.at(lane).store(data.at(31 - lane).load()); // <- TAKES DATA
    }
}

#[test]
fn a_flag_that_a_warp_spins_on() {
    let run = |dev: &Device, fault| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        let stats = spins::new(fault).grid([1, 1, 1]).launch(dev, (&mut y,))?;
        assert_eq!(y.to_vec()?, (0..32).map(|lane| 3 * (31 - lane)).collect::<Vec<_>>());
        Ok(stats)
    };
    clean(Target::SM_80, |dev| run(dev, 0));
    faulty(Target::SM_80, &[(ReportKind::Race, "TAKES DATA")], |dev| run(dev, 1));
}

/// Four warps tell one that they are done, at an mbarrier that is made for `count` arrivals.
#[kernel(block = [160, 1, 1])]
fn four_tell(#[comptime] count: usize, y: TensorMut<I32, 1>) {
    let words = shared_array_named::<I32>("words", 128);
    let mut setup = BarrierSetup::new();
    let done = setup.mbarrier("done", count);
    setup.finish();
    if warp_id() < 4 {
        words.at(thread_id(X)).store(thread_id(X));
        warp_sync();
        if elect_one() {
            done.arrive(); // <- FOUR ARRIVE
        }
    } else {
        done.wait(I32::from(0)); // <- WAITS FOR FOUR
        for part in range_constexpr(4) {
            let at = lane_id() + (32 * part) as i32;
            y.at(at).store(words.at(at).load()); // <- OF FOUR
        }
    }
}

#[test]
fn an_mbarrier_for_fewer_arrivals_than_there_are() {
    let run = |dev: &Device, count| {
        let mut y = dev.tensor_uninit::<i32, 1>([128])?;
        four_tell::new(count).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, 4));
    for count in [1, 2] {
        let kinds = [
            (ReportKind::Deadlock, "WAITS FOR FOUR"),
            (ReportKind::Race, "OF FOUR"),
            (ReportKind::Race, "FOUR ARRIVE"),
            (ReportKind::Uninitialized, "OF FOUR"),
        ];
        for report in faulty(Target::SM_90A, &kinds, |dev| run(dev, count)) {
            if report.kind == ReportKind::Deadlock {
                let text = report.to_string();
                assert!(text.contains("phases have completed without a wait for any"), "{text}");
                assert!(report.help.unwrap().starts_with("more arrive in a phase than"), "{text}");
            }
        }
    }
}

/// Two lanes of a warp bring a word each and arrive for themselves; they need not meet.
#[kernel(block = [64, 1, 1])]
fn each_for_itself(y: TensorMut<I32, 1>) {
    let words = shared_array_named::<I32>("words", 2);
    let mut setup = BarrierSetup::new();
    let full = setup.mbarrier("full", 2);
    setup.finish();
    let lane = lane_id();
    if warp_id() == 0 {
        if lane % 16 == 0 {
            words.at(lane / 16).store(lane);
            full.arrive();
        }
    } else {
        full.wait(I32::from(0));
        y.at(lane).store(words.at(lane % 2).load());
    }
}

/// Three warps in a row: what the first wrote reaches the third by way of the second, which does not read it.
#[kernel(block = [96, 1, 1])]
fn passed_on(#[comptime] met: bool, y: TensorMut<I32, 1>) {
    let words = shared_array_named::<I32>("words", 32);
    let mut setup = BarrierSetup::new();
    let (first, second) = (setup.mbarrier("first", 1), setup.mbarrier("second", 1));
    setup.finish();
    let lane = lane_id();
    if warp_id() == 0 {
        words.at(lane).store(lane);
        if const_expr(met) {
            warp_sync();
        }
        if elect_one() {
            first.arrive();
        }
    } else if warp_id() == 1 {
        if elect_one() {
            first.wait(I32::from(0));
            second.arrive();
        }
    } else {
        second.wait(I32::from(0));
        y.at(lane).store(words.at(31 - lane).load()); // <- AT THE END
    }
}

#[test]
fn lanes_that_arrive_for_themselves_and_chains_of_arrivals() {
    clean(Target::SM_90A, |dev| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        each_for_itself::new().grid([1, 1, 1]).launch(dev, (&mut y,))
    });
    let run = |dev: &Device, met| {
        let mut y = dev.tensor_uninit::<i32, 1>([32])?;
        passed_on::new(met).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_90A, |dev| run(dev, true));
    faulty(Target::SM_90A, &[(ReportKind::Race, "AT THE END")], |dev| run(dev, false));
}

/// Three warps meet at a barrier that says two.
#[kernel(block = [96, 1, 1])]
fn short_count(#[comptime] count: usize, y: TensorMut<I32, 1>) {
    let words = shared_array_named::<I32>("words", 96);
    words.at(thread_id(X)).store(thread_id(X)); // <- BEFORE TWO
    named_barrier(1, count).sync(); // <- COUNTS TWO
    y.at(thread_id(X)).store(words.at((thread_id(X) + 32) % 96).load()); // <- AFTER TWO
}

#[test]
fn a_named_barrier_that_lets_two_of_three_go() {
    let run = |dev: &Device, count| {
        let mut y = dev.tensor_uninit::<i32, 1>([96])?;
        short_count::new(count).grid([1, 1, 1]).launch(dev, (&mut y,))
    };
    clean(Target::SM_80, |dev| run(dev, 96));
    let kinds = [
        (ReportKind::Deadlock, "COUNTS TWO"),
        (ReportKind::Race, "BEFORE TWO"),
        (ReportKind::Race, "AFTER TWO"),
        (ReportKind::Uninitialized, "AFTER TWO"),
    ];
    faulty(Target::SM_80, &kinds, |dev| run(dev, 64));
}
