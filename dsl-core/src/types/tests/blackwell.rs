//! Tensor memory and the products that sum in it.

use crate::types::testing::{body, trace_with};
use crate::types::*;
use crate::{Error, Target, Traced};

fn on_blackwell<P: crate::rt::KernelParams + Clone + 'static>(
    threads: u32,
    body: impl Fn(P) + Clone + 'static,
) -> Result<Traced, Error> {
    trace_with(Target::SM_100A, [threads, 1, 1], body)
}

#[test]
fn memory_is_allocated_used_by_rows_and_given_back() {
    insta::assert_snapshot!(body(on_blackwell(256, |(out,): (TensorMut<F32, 1>,)| {
        let memory = TensorMemory::alloc(64);
        memory.relinquish_alloc_permit();
        let rows = memory.tile(16, 48).own_rows();
        rows.store(I32::from(4), [F32::from(1.0), F32::from(2.0)]).wait();
        let [first, second] = rows.load::<2>(4).wait();
        out.at(0).store(first + second);
        memory.dealloc();
    })));
}

#[test]
fn a_product_is_started_committed_and_waited_for() {
    insta::assert_snapshot!(body(on_blackwell(128, |(out,): (TensorMut<F32, 1>,)| {
        let (a, b) = (SwizzledTile::<BF16>::new("a", 128, 32), SwizzledTile::<BF16>::new("b", 32, 64));
        let mut setup = BarrierSetup::new();
        let done = setup.mbarrier("done", 1);
        setup.finish();
        let memory = TensorMemory::alloc(64);
        let sums = memory.accumulator(128, 0, 64);
        let first = tcgen05_mma(a, b, sums, Bool::from(false));
        first.before(tcgen05_mma(a, b, sums, Bool::from(true))).commit(done);
        tcgen05_commit(done);
        let [sum] = sums.wait(done, I32::from(0)).row_block(3).load::<1>(63).wait();
        out.at(0).store(sum);
        memory.dealloc();
    })));
}

fn text(threads: u32, body: impl Fn(()) + Clone + 'static) -> String {
    on_blackwell(threads, body).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_is_taken_must_be_given_back_and_waited_for() {
    let text = text(128, |()| {
        let memory = TensorMemory::alloc(64);
        let tile = memory.tile(0, 32);
        drop(tile.own_rows().load::<4>(0));
        drop(tile.own_rows().store(0, [F32::from(1.0)]));
        let a = SwizzledTile::<F16>::new("a", 128, 16);
        drop(tcgen05_mma(a, a.t(), memory.accumulator(128, 0, 64), Bool::from(false)));
    });
    for message in [
        "nothing waits for this load of tensor memory",
        "nothing waits for this store of tensor memory",
        "this tensor memory is never given back",
        "the right operand has 128 columns, the accumulator 64",
        "nothing can wait for this product",
    ] {
        assert!(text.contains(message), "no `{message}` in {text}");
    }
}

#[test]
fn extents_are_those_of_the_hardware() {
    let text = text(96, |()| {
        TensorMemory::alloc(48).dealloc();
        let memory = TensorMemory::alloc(64);
        let _ = memory.tile(48, 32);
        let _ = memory.accumulator(96, 0, 32);
        let tile = memory.tile(0, 32);
        let _ = tile.row_block(4);
        let rows = tile.own_rows();
        let _ = rows.load::<3>(0).wait();
        let _ = rows.load::<16>(24).wait();
        let (a, b) = (SwizzledTile::<F16>::new("a", 64, 16), SwizzledTile::<F16>::new("b", 24, 16));
        let mut setup = BarrierSetup::new();
        let done = setup.mbarrier("done", 1);
        setup.finish();
        tcgen05_mma(a, b.t(), memory.accumulator(128, 0, 24), Bool::from(false)).commit(done);
        tcgen05_mma(a, b, memory.accumulator(64, 0, 16), Bool::from(false)).commit(done);
        memory.dealloc();
    });
    for message in [
        "48 columns of tensor memory cannot be allocated",
        "a tile of columns 48 to 79 of tensor memory",
        "64 columns are allocated",
        "an accumulator of 96 rows",
        "row block 4 of tensor memory",
        "an access to 3 columns of tensor memory at once",
        "16 columns from 24 on of a tile of 32",
        "the left operand has 64 rows, the accumulator 128",
        "the left operand has 16 columns, the right one 24 rows",
    ] {
        assert!(text.contains(message), "no `{message}` in {text}");
    }
}

#[test]
fn d21_lanes_that_no_warp_of_the_block_reaches() {
    let text = text(64, |()| {
        let memory = TensorMemory::alloc(32);
        let tile = memory.tile(0, 32);
        tile.row_block(1).store(0, [F32::from(0.0)]).wait();
        tile.row_block(2).store(0, [F32::from(0.0)]).wait();
        memory.dealloc();
    });
    assert!(text.contains("lanes 64 to 95 of tensor memory in a block of 2 warps"), "{text}");
    assert!(text.contains("warp `w` reaches lanes `32 (w % 4)` to `32 (w % 4) + 31` alone"), "{text}");
    assert!(!text.contains("lanes 32 to 63"), "{text}");
}
