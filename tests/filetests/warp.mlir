// Collectives of a warp.
// run: lower target=nvidia
// check: vote.sync.ballot.b32
// check: activemask.b32
// check: bar.warp.sync
// check: shfl.sync.bfly.b32
// check: shfl.sync.idx.b32
// run: lower target=amd
// check: v_mbcnt_lo_u32_b32
// check: v_mbcnt_hi_u32_b32
// check: v_cmp_ne_u32
// check: ds_bpermute_b32
gpu.func @k(%p: !llvm.ptr<1>, %i: i32, %x: f32) kernel attributes {$attributes} {
  %id = gpu.thread_id x
  %t = arith.index_cast %id : index to i32
  %lane = gpu.lane_id
  %l = arith.index_cast %lane : index to i32
  %w = arith.constant $warp : i32
  %c1 = arith.constant 1 : i32
  %c = arith.cmpi ne, %t, %i : i32
  %b = "lw.ballot"(%c) : (i1) -> i64
  %e = "lw.elect"() : () -> i1
  "lw.store_masked"(%b, %p, %e) {align = 8 : i64} : (i64, !llvm.ptr<1>, i1) -> ()
  "lw.warp_sync"() : () -> ()
  %s, %v = gpu.shuffle xor %x, %c1, %w : f32
  %s1, %v1 = gpu.shuffle idx %s, %l, %w : f32
  %s2, %v2 = gpu.shuffle up %l, %c1, %w : i32
  %s3, %v3 = gpu.shuffle down %s2, %c1, %w : i32
  "lw.store"(%s1, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%s3, %p1) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
