//! Tensor copies, mbarriers, warpgroup products and roles.

use crate::types::testing::{Closure, body, messages, trace_with};
use crate::types::*;
use crate::{Error, KernelAttributes, ParamKind, ScalarType, Target, Traced, trace_kernel};

fn on_hopper<P: crate::rt::KernelParams + Clone + 'static>(
    body: impl Fn(P) + Clone + 'static,
) -> Result<Traced, Error> {
    trace_with(Target::SM_90A, [128, 1, 1], body)
}

/// Traces a body for some warpgroups that start with what `min_blocks = 1` gives them.
#[track_caller]
fn with_warpgroups(warpgroups: u32, body: impl Fn(()) + Clone + 'static) -> Result<Traced, Error> {
    let location = std::panic::Location::caller();
    let attributes = KernelAttributes {
        block: [128 * warpgroups, 1, 1],
        min_blocks: Some(1),
        max_regs: None,
        waves_per_eu: None,
        cluster: None,
    };
    trace_kernel(&Closure { body, attributes, location, params: std::marker::PhantomData }, Target::SM_90A)
}

#[test]
fn one_tile_is_copied_multiplied_and_waited_for() {
    let traced = on_hopper(|(map, out): (TensorMap<BF16, 2>, TensorMut<F32, 1>)| {
        let tile = SwizzledTile::<BF16>::new("tile", 64, 32);
        let mut setup = BarrierSetup::new();
        let full = setup.mbarrier("full", 1);
        setup.finish();
        full.expect(tile.bytes());
        map.load(tile, (I32::from(5), 0), full);
        full.wait(I32::from(0));
        let product = wgmma(tile, tile.row_block(8, 1).t()).wait::<0>();
        out.at(0).store(product[3]);
    });
    let ParamKind::TensorMap { elem, rank, box_shape, swizzle, mutable } = traced.as_ref().unwrap().meta.params[0].kind
    else {
        panic!("not a tensor map")
    };
    assert_eq!((elem, rank, box_shape, swizzle, mutable), (ScalarType::Bf16, 2, [32, 64, 0, 0, 0], 64, false));
    insta::assert_snapshot!(body(traced));
}

#[test]
fn rings_know_stage_and_phase() {
    insta::assert_snapshot!(body(on_hopper(|(map,): (TensorMap<F16, 3>,)| {
        let ring = SwizzledRing::<F16>::new("ring", 3, 8, 64);
        let mut setup = BarrierSetup::new();
        let pipeline = Pipeline::new(&mut setup, "ring", ring.stages(), 1);
        setup.finish();
        let mut at = pipeline.start();
        let full = pipeline.acquire(at, ring.bytes());
        map.load(ring.stage(at.stage()), (0, 0, 0), full);
        pipeline.wait(at);
        pipeline.release(at);
        at.advance();
        pipeline.wait(at);
    })));
}

#[test]
fn accumulators_feed_the_next_product() {
    insta::assert_snapshot!(body(on_hopper(|(i,): (I32,)| {
        let tile = SwizzledTile::<F16>::new("tile", 64, 16);
        let values = SwizzledTile::<F16>::new("values", 16, 64);
        let s = wgmma(tile, tile.row_block(16, 0).t());
        let o = wgmma_add(&Accumulator::zeros(16).cast::<F16>(), values, Accumulator::zeros(64));
        let mut s = s.wait::<1>();
        s[0] *= 2.0;
        let o = o.wait_after::<0>(&mut s);
        tile.at((i, 8)).store((o[0] + s[0]).cast::<F16>());
    })));
}

#[test]
fn products_are_chained_without_a_wait_for_their_sums() {
    insta::assert_snapshot!(body(on_hopper(|(stage, out): (I32, TensorMut<F32, 1>)| {
        let a = SwizzledRing::<BF16>::new("a", 2, 64, 64);
        let b = SwizzledTile::<BF16>::new("b", 64, 128);
        let product = wgmma(a.stage(0), b.column_block(64, stage)).add(a.stage(1), b.first_columns(64));
        product.wait_before::<1>();
        out.at(0).store(product.wait::<0>()[3]);
    })));
}

#[test]
fn persistent_blocks_take_work_in_turn_or_draw_it() {
    insta::assert_snapshot!(body(on_hopper(|(count, out): (Uniform<I32>, TensorMut<I32, 1>)| {
        let schedule = Schedule::in_turn(count);
        let mut ticket = schedule.start();
        let order = TileOrder::grouped(count, count, 4);
        let (row, column) = order.at(ticket.number());
        schedule.draw(&mut ticket);
        schedule.receive(&mut ticket);
        out.at(row).store(*(column + ticket.number()));
    })));
    insta::assert_snapshot!(body(on_hopper(
        |(count, counter, out): (Uniform<I32>, TensorMut<I32, 1>, TensorMut<I32, 1>)| {
            let mut setup = BarrierSetup::new();
            let schedule = Schedule::drawn(&mut setup, "tickets", counter, count, 4);
            setup.finish();
            let mut producer = schedule.start();
            let mut consumer = schedule.start();
            crate::types::collectives::when(elect_one(), || {
                schedule.draw(&mut producer);
                out.at(producer.number()).store(0.into());
            });
            schedule.receive(&mut consumer);
            out.at(consumer.number()).store(*consumer.number());
        }
    )));
}

#[test]
fn what_one_thread_draws_for_itself_is_not_received() {
    let found = messages(on_hopper(|(counter,): (TensorMut<I32, 1>,)| {
        let schedule = Schedule::drawn_by_one(counter, 8);
        let mut ticket = schedule.start();
        schedule.receive(&mut ticket);
    }));
    assert_eq!(found, ["a number that one thread draws for itself is received"]);
}

#[test]
fn schedules_that_cannot_be_are_refused() {
    let location = std::panic::Location::caller();
    let attributes = KernelAttributes {
        block: [128, 1, 1],
        min_blocks: None,
        max_regs: None,
        waves_per_eu: None,
        cluster: Some([2, 1, 1]),
    };
    let body = |(counter,): (TensorMut<I32, 1>,)| {
        let mut setup = BarrierSetup::new();
        let schedule = Schedule::drawn(&mut setup, "tickets", counter, 8, 4);
        setup.finish();
        let order = TileOrder::grouped(2, 2, 0);
        let mut ticket = schedule.start();
        let (row, _) = order.at(ticket.number());
        counter.at(row).store(*row);
        schedule.draw(&mut ticket);
    };
    let kernel = Closure { body, attributes, location, params: std::marker::PhantomData };
    let found = messages(trace_kernel(&kernel, Target::SM_90A));
    let draws = "each lane that comes here draws a number of its own";
    assert_eq!(found, ["work that is drawn from a counter, in a cluster", "groups of no rows of tiles", draws]);
}

/// What is wrong with a body in a cluster, by the chip.
fn in_a_cluster(target: Target, cluster: Option<[u32; 3]>, body: impl Fn(()) + Clone + 'static) -> Vec<String> {
    let location = std::panic::Location::caller();
    let attributes =
        KernelAttributes { block: [64, 1, 1], min_blocks: None, max_regs: None, waves_per_eu: None, cluster };
    messages(trace_kernel(&Closure { body, attributes, location, params: std::marker::PhantomData }, target))
}

#[test]
fn blocks_that_a_cluster_does_not_have_are_refused() {
    let body = |(): ()| {
        let tile = shared_array::<I32>(8);
        let _ = tile.of_block(4).at(0);
        let _ = tile.of_block(-1).at(0);
        let _ = tile.at(0).of_block(I32::from(7));
        let _ = tile.of_block(3).at(8);
        let _ = SwizzledTile::<BF16>::new("tile", 8, 64).of_block(Uniform::<I32>::from(4)).at((0, 0));
    };
    let found = in_a_cluster(Target::SM_90A, Some([2, 2, 1]), body);
    let sizes = |(): ()| {
        let (words, more) = (shared_array::<I32>(8), shared_array::<I32>(12));
        let came = BarrierSetup::new().mbarrier("came", 1).of_block(1);
        words.of_block(1).copy_from(more, came);
        shared_array::<I32>(3).of_block(1).copy_from(shared_array::<I32>(3), came);
        shared_array::<BF16>(8).of_block(1).at(0).store_async(BF16::from(1.0), came);
        let tile = SwizzledTile::<BF16>::new("tile", 16, 128);
        tile.of_block(1).copy_from(tile, came);
        tile.of_block(1).copy_from(SwizzledTile::new("other", 16, 64), came);
        tile.row_block(8, 0).of_block(1).copy_from(tile.row_block(8, 1), came);
    };
    let apart = "a copy to another block between parts of tiles that do not lie alike";
    let wrong = [
        "these mbarriers are asked for and never made",
        "a copy of 48 bytes to 32 bytes of another block",
        "a copy of 12 bytes to another block",
        "an asynchronous store of 2 bytes",
        apart,
        apart,
    ];
    assert_eq!(in_a_cluster(Target::SM_90A, Some([2, 1, 1]), sizes), wrong);
    let block = |rank: i32| format!("block {rank} of a cluster of 4");
    assert_eq!(found, [block(4), block(-1), block(7), "shared-memory index 8 of 8".to_owned(), block(4)]);
}

#[test]
fn other_blocks_are_reached_in_clusters_alone() {
    let body = |(): ()| {
        let tile = shared_array::<I32>(8);
        tile.of_block(0).at(0).store(I32::from(1));
    };
    // The extents of a cluster may be computed, and be 1.
    assert_eq!(in_a_cluster(Target::SM_90A, Some([1, 1, 1]), body), ["no error"]);
    let none = "this kernel has no cluster, and so no way to another block's shared memory";
    assert_eq!(in_a_cluster(Target::SM_90A, None, body), [none]);
    for target in [Target::SM_80, Target::GFX942] {
        let none = format!("{target} has no clusters, and so no way to another block's shared memory");
        assert_eq!(in_a_cluster(target, None, body), [none]);
    }
    let scopes = |(): ()| {
        fence(Scope::Cluster);
        let one = I32::from(1);
        let _ = shared_array::<I32>(1).at(0).atomic_add_with(one, Ordering::Relaxed, Scope::Cluster);
    };
    assert_eq!(in_a_cluster(Target::SM_100A, None, scopes), ["no error"]);
    assert_eq!(in_a_cluster(Target::SM_80, None, scopes), ["sm_80 has no clusters"; 2]);
}

#[test]
fn shapes_that_do_not_multiply_are_refused() {
    let found = messages(on_hopper(|(): ()| {
        let a = SwizzledTile::<BF16>::new("a", 128, 64);
        let b = SwizzledTile::<BF16>::new("b", 64, 128);
        let _ = wgmma(a, b).wait::<0>();
        let _ = wgmma(a.row_block(64, 0), b.t()).wait::<0>();
        let _ = wgmma_add(a.row_block(64, 0), b, Accumulator::zeros(64)).wait::<0>();
        let bytes = SwizzledTile::<F8E4M3>::new("bytes", 64, 64);
        let _ = wgmma(bytes, bytes).wait::<0>();
        let _ = a.row_block(12, 0);
        let _ = a.row_block(64, 2);
        let _ = a.column_block(32, 0);
        let _ = b.column_block(64, 2);
        let _ = b.first_columns(136);
        let _ = SwizzledTile::<BF16>::new("narrow", 64, 8);
        let _ = SwizzledRing::<BF16>::new("ring", 2, 8, 16);
    }));
    assert_eq!(
        found,
        [
            "the left operand has 128 rows; a warpgroup multiplies 64",
            "the left operand has 64 columns, the right one 128 rows",
            "the product has 128 columns, the matrix that it is added to 64",
            "8-bit operands must lie along k in shared memory",
            "a tile of 128 rows has no such block of 12 rows",
            "a tile of 128 rows has no such block of 64 rows",
            "a tile of 64 columns has no such block of 32 columns",
            "a tile of 128 columns has no such block of 64 columns",
            "a tile of 128 columns has no first 136",
            "`narrow` cannot be a swizzled tile of rows of 16 bytes: the narrowest panel has 32",
            "`ring` cannot be a swizzled tile of stages of 256 bytes: they must be multiples of 1024",
        ]
    );
}

#[test]
fn what_is_started_must_be_waited_for() {
    let found = messages(on_hopper(|(): ()| {
        let tile = SwizzledTile::<BF16>::new("tile", 64, 64);
        drop(wgmma(tile, tile));
        let mut setup = BarrierSetup::new();
        let _ = setup.mbarrier("full", 1);
        drop(setup);
    }));
    assert_eq!(found, ["nothing waits for this product", "these mbarriers are asked for and never made"]);
}

#[test]
fn a_map_has_one_box() {
    let found = messages(on_hopper(|(map,): (TensorMap<BF16, 2>,)| {
        let tile = SwizzledTile::<BF16>::new("tile", 512, 64);
        let mut setup = BarrierSetup::new();
        let full = setup.mbarrier("full", 1);
        setup.finish();
        map.load(tile.row_block(64, 0), (0, 0), full);
        map.load(tile.row_block(128, 0), (0, 0), full);
        map.load(tile, (0, 0), full);
    }));
    assert_eq!(
        found,
        [
            "this copy's box is [64, 128] with 128-byte panels, and [64, 64] with 128 at another use of the map",
            "a copy of 512 rows: boxes have at most 256 in a dimension",
        ]
    );
}

#[test]
fn roles_share_the_registers() {
    let text = body(with_warpgroups(3, |()| {
        let [producer, consumer] = warpgroup_roles([(1, 24), (2, 240)]);
        let _ = producer.is_mine();
        producer.begin();
        let _ = consumer.is_mine();
        consumer.begin();
        let _ = consumer.number();
    }));
    assert!(text.contains("\"lw.setmaxnreg\"() {kind = \"dec\", regs = 24 : i64}"), "{text}");
    assert!(text.contains("\"lw.setmaxnreg\"() {kind = \"inc\", regs = 240 : i64}"), "{text}");

    let found = messages(with_warpgroups(3, |()| {
        let _ = warpgroup_roles([(1, 32), (2, 240)]);
        let _ = warpgroup_roles([(1, 24), (1, 240)]);
        let _ = warpgroup_roles([(1, 20), (2, 240)]);
    }));
    assert_eq!(
        found,
        [
            "these roles want 1 x 32 + 2 x 240 = 512 registers a lane",
            "roles for 2 warpgroups in a block of 384 threads",
            "a role with 20 registers a thread",
        ]
    );
    let unlimited = messages(on_hopper(|(): ()| {
        let _ = warpgroup_roles([(1, 24)]);
    }));
    assert_eq!(unlimited, ["roles with registers in a kernel that does not limit them"]);
}

#[test]
fn barriers_are_chosen_at_run_time() {
    insta::assert_snapshot!(body(on_hopper(|(i,): (I32,)| {
        let turns = named_barriers(2, 3, 64);
        turns.at(i).sync();
        turns.at(2).arrive();
    })));
    let found = messages(on_hopper(|(i,): (I32,)| named_barriers(14, 3, 64).at(i).sync()));
    assert_eq!(found, ["there is no named barrier 16"]);
}

#[test]
fn other_chips_have_none_of_it() {
    let found = messages(trace_with(Target::SM_80, [128, 1, 1], |(): ()| {
        let tile = SwizzledTile::<BF16>::new("tile", 64, 64);
        let _ = wgmma(tile, tile).wait::<0>();
    }));
    assert_eq!(found, ["`lw.wgmma` does not exist on sm_80", "`lw.wgmma_wait` does not exist on sm_80"]);
}
