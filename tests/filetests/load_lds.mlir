// run: lower target=gfx950
// check: s_mov_b32 m0
// check: global_load_lds_dword v
// check: global_load_lds_dwordx3
// check: global_load_lds_dwordx4
// check: s_waitcnt vmcnt(0)
// check: s_barrier
// check: ds_read
// run: lower target=gfx942
// error: `load_lds.96` does not exist on gfx942
// error: gfx942 copies 4 bytes a lane
// run: lower target=sm_90a
// error: `lw.load_lds` does not exist on sm_90a
gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 8192 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 8192 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %t = gpu.thread_id x
  %t64 = arith.index_cast %t : index to i64
  %q = llvm.getelementptr %p[%t64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, vector<4xf32>
  "lw.load_lds"(%a, %q) {bytes = 4 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  %b = llvm.getelementptr %a[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  "lw.load_lds"(%b, %q) {bytes = 12 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  %c = llvm.getelementptr %a[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  "lw.load_lds"(%c, %q) {bytes = 16 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
  gpu.barrier
  %t32 = arith.trunci %t64 : i64 to i32
  %s = llvm.getelementptr %a[%t32] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %v = "lw.load"(%s) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
  "lw.store"(%v, %q) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
