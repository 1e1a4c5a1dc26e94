//! Thread numbers and synchronisation.

use crate::Target;
use crate::types::Axis::{X, Y, Z};
use crate::types::testing::{body, messages, trace_body, trace_with};
use crate::types::*;

#[test]
fn thread_numbers_know_the_block() {
    let text = body(trace_with(Target::SM_80, [32, 4, 1], |(): ()| {
        let _ = (thread_id(X), thread_id(Y), thread_id(Z));
        let _ = (block_id(X), grid_dim(Y), block_dim(Y));
        let _ = (thread_index(), lane_id(), warp_id());
    }));
    insta::assert_snapshot!(text, @"
    %thread_id_x = gpu.thread_id  x upper_bound 32
    %0 = arith.index_cast %thread_id_x : index to i32
    %thread_id_y = gpu.thread_id  y upper_bound 4
    %1 = arith.index_cast %thread_id_y : index to i32
    %c0_i32 = arith.constant 0 : i32
    %block_id_x = gpu.block_id  x
    %2 = arith.index_cast %block_id_x : index to i32
    %grid_dim_y = gpu.grid_dim  y
    %3 = arith.index_cast %grid_dim_y : index to i32
    %c4_i32 = arith.constant 4 : i32
    %c32_i32 = arith.constant 32 : i32
    %4 = arith.muli %1, %c32_i32 : i32
    %5 = arith.addi %0, %4 : i32
    %6 = gpu.lane_id upper_bound 32
    %7 = arith.index_cast %6 : index to i32
    %c5_i32 = arith.constant 5 : i32
    %8 = arith.shrui %5, %c5_i32 : i32
    ");
}

#[test]
fn the_only_warp_is_number_zero_and_waves_have_64_lanes() {
    let text = body(trace_with(Target::GFX942, [64, 1, 1], |(y,): (TensorMut<I32, 1>,)| {
        y.at(warp_id()).store(lane_id());
        assert_eq!(target(), Target::GFX942);
    }));
    insta::assert_snapshot!(text, @r#"
    %c0_i32 = arith.constant 0 : i32
    %0 = gpu.lane_id upper_bound 64
    %1 = arith.index_cast %0 : index to i32
    "lw.store"(%1, %arg0) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
    "#);
}

#[test]
fn synchronisation() {
    let text = body(trace_body(|(): ()| {
        barrier();
        warp_sync();
        fence(Scope::Device);
        named_barrier(1, 64).sync();
        named_barrier(15, 128).arrive();
    }));
    insta::assert_snapshot!(text, @r#"
    gpu.barrier
    "lw.warp_sync"() : () -> ()
    "lw.fence"() {scope = "device"} : () -> ()
    "lw.named_barrier"() {id = 1 : i64, kind = "sync", threads = 64 : i64} : () -> ()
    "lw.named_barrier"() {id = 15 : i64, kind = "arrive", threads = 128 : i64} : () -> ()
    "#);
}

#[test]
fn impossible_named_barriers_are_refused() {
    let found = messages(trace_body(|(): ()| {
        named_barrier(0, 64).sync();
        named_barrier(16, 64).sync();
        named_barrier(1, 40).arrive();
        named_barrier(1, 0).arrive();
        named_barrier(1, 256).arrive();
    }));
    insta::assert_snapshot!(found.join("\n"), @"
    there is no named barrier 0
    there is no named barrier 16
    a named barrier for 40 threads
    a named barrier for 0 threads
    a named barrier for 256 threads in a block of 128
    ");
}
