// A product may add to one that is under way: its accumulators go on in the same registers, also around a loop, and a wait
// without values leaves the newest product running.
// run: lower target=sm_90a
// check: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r
// check: wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r
// check: wgmma.wait_group.sync.aligned 1;
// check: wgmma.wait_group.sync.aligned 0;
gpu.func @k(%p: !llvm.ptr<1>, %n: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 9216 : i64} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %a = "lw.shared"() {offset = 0 : i64, bytes = 8192 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 8192 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "b"} : () -> !llvm.ptr<3>
  %s:4 = "lw.wgmma"(%a, %b) {m = 64 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", zero = true, a_layout = "k:128:64", b_layout = "k:128:8", operandSegmentSizes = array<i32: 1, 1, 0>} : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  %r:4 = scf.for %i = %zero to %n step %one iter_args(%c0 = %s#0, %c1 = %s#1, %c2 = %s#2, %c3 = %s#3) -> (f32, f32, f32, f32) : i32 {
    %o:4 = "lw.wgmma"(%a, %b, %c0, %c1, %c2, %c3) {m = 64 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", zero = false, a_layout = "k:128:64", b_layout = "k:128:8", operandSegmentSizes = array<i32: 1, 1, 4>} : (!llvm.ptr<3>, !llvm.ptr<3>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
    "lw.wgmma_wait"() {groups = 1 : i64} : () -> ()
    scf.yield %o#0, %o#1, %o#2, %o#3 : f32, f32, f32, f32
  }
  %w:4 = "lw.wgmma_wait"(%r#0, %r#1, %r#2, %r#3) {groups = 0 : i64} : (f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %v = vector.from_elements %w#0, %w#1, %w#2, %w#3 : vector<4xf32>
  "lw.store"(%v, %p) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
