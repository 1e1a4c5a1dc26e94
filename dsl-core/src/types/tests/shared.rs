//! Shared memory.

use crate::rt::{SharedAlloc, SharedField};
use crate::types::testing::{body, messages, trace_body};
use crate::types::*;

/// As `#[derive(Shared)]` writes it.
#[derive(Clone, Copy)]
struct Smem {
    k: [SharedTile<F16, 8, 64, 72>; 2],
    v: SharedTile<F16, 8, 64>,
    scratch: SharedArray<F32, 3>,
}

impl Shared for Smem {
    fn alloc(alloc: &mut SharedAlloc) -> Self {
        let k = SharedField::alloc(alloc, "Smem.k", None);
        let v = SharedField::alloc(alloc, "Smem.v", Some(1024));
        alloc.overlap_with("Smem.v");
        let scratch = SharedField::alloc(alloc, "Smem.scratch", None);
        Smem { k, v, scratch }
    }
}

#[test]
fn members_are_placed_by_alignment_and_unions_overlap() {
    let traced = trace_body(|(i,): (I32,)| {
        let smem = shared::<Smem>();
        smem.k[1].at((i, 3)).store(smem.v.at((2, i)).load());
        smem.scratch.at(i).store(F32::from(0.0));
        let more = shared_array_named::<I8>("more", 5);
        more.at(I64::from(4)).store(I8::from(1));
    });
    assert_eq!(traced.as_ref().map(|traced| traced.meta.shared_bytes), Ok(4101));
    insta::assert_snapshot!(body(traced), @r#"
    %0 = "lw.shared"() {align = 128 : i64, bytes = 1152 : i64, name = "Smem.k[0]", offset = 0 : i64} : () -> !llvm.ptr<3>
    %1 = "lw.shared"() {align = 128 : i64, bytes = 1152 : i64, name = "Smem.k[1]", offset = 1152 : i64} : () -> !llvm.ptr<3>
    %2 = "lw.shared"() {align = 1024 : i64, bytes = 1024 : i64, name = "Smem.v", offset = 3072 : i64} : () -> !llvm.ptr<3>
    %3 = "lw.shared"() {align = 16 : i64, bytes = 12 : i64, name = "Smem.scratch", offset = 3072 : i64} : () -> !llvm.ptr<3>
    %c72_i32 = arith.constant 72 : i32
    %4 = arith.muli %arg0, %c72_i32 : i32
    %5 = llvm.getelementptr %1[%4] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
    %c3_i32 = arith.constant 3 : i32
    %6 = llvm.getelementptr %5[%c3_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
    %7 = llvm.getelementptr %2[%arg0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
    %c128_i32 = arith.constant 128 : i32
    %8 = llvm.getelementptr %7[%c128_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
    %9 = "lw.load"(%8) {align = 2 : i64} : (!llvm.ptr<3>) -> f16
    "lw.store"(%9, %6) {align = 2 : i64} : (f16, !llvm.ptr<3>) -> ()
    %10 = llvm.getelementptr %3[%arg0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %cst = arith.constant 0.000000e+00 : f32
    "lw.store"(%cst, %10) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
    %11 = "lw.shared"() {align = 16 : i64, bytes = 5 : i64, name = "more", offset = 4096 : i64} : () -> !llvm.ptr<3>
    %c4_i64 = arith.constant 4 : i64
    %c4_i32 = arith.constant 4 : i32
    %12 = llvm.getelementptr %11[%c4_i32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %c1_i8 = arith.constant 1 : i8
    "lw.store"(%c1_i8, %12) {align = 1 : i64} : (i8, !llvm.ptr<3>) -> ()
    "#);
}

#[test]
fn constant_indices_are_checked() {
    let found = messages(trace_body(|(): ()| {
        let slice = shared_array::<F32>(64);
        slice.at(100).store(F32::from(0.0));
        let _ = slice.at(64usize).load();
        let _ = slice.at(I32::from(-1)).load();
        let _ = shared::<Smem>().v.at((7, 64)).load();
        slice.at(63).store(F32::from(0.0));
    }));
    insta::assert_snapshot!(found.join("\n"), @"
    shared-memory index 100 of 64
    shared-memory index 64 of 64
    shared-memory index -1 of 64
    shared-memory index 64 of 64
    ");
}

#[test]
fn more_than_the_chip_has_is_refused() {
    let found = messages(trace_body(|(): ()| {
        shared_array::<F32>(100 * 1024).at(0).store(F32::from(0.0));
    }));
    insta::assert_snapshot!(found.join("\n"), @"kernel `test`: 409600 bytes of shared memory; sm_80 has 166912 a block");
}

#[test]
fn wrong_alignments_and_overlaps_are_refused() {
    #[derive(Clone, Copy)]
    struct Wrong;
    impl Shared for Wrong {
        fn alloc(alloc: &mut SharedAlloc) -> Self {
            let _: SharedArray<F32, 4> = SharedField::alloc(alloc, "Wrong.a", Some(24));
            alloc.overlap_with("Wrong.b");
            Wrong
        }
    }
    let found = messages(trace_body(|(): ()| {
        let _ = shared::<Wrong>();
    }));
    insta::assert_snapshot!(found.join("\n"), @"
    shared member `Wrong.a` cannot be aligned to 24 bytes
    there is no earlier shared member `Wrong.b` to overlap with
    ");
}
