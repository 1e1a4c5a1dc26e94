// 8-bit operands lie along k: there are no bits for transposed ones.
// run: lower target=sm_90a
// check: wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {%r
// check: }, da, db, add, 1, 1; wgmma.commit_group
gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 3072 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 2048 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 2048 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "b"} : () -> !llvm.ptr<3>
  %s:8 = "lw.wgmma"(%a, %b) {m = 64 : i64, n = 16 : i64, k = 32 : i64, kind = "e4m3", zero = true, a_layout = "k:32:64", b_layout = "k:32:16", operandSegmentSizes = array<i32: 1, 1, 0>} : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32, f32, f32, f32, f32)
  %t:8 = "lw.wgmma_wait"(%s#0, %s#1, %s#2, %s#3, %s#4, %s#5, %s#6, %s#7) {groups = 0 : i64} : (f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32)
  "lw.store"(%t#0, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
