// run: lower target=gfx950
// check: buffer_load_dword 
// check: lds
// check: buffer_load_dwordx4
// check: buffer_load_dwordx3
// check: s_waitcnt vmcnt(0)
// check: s_barrier
// run: lower target=gfx942
// error: `load_lds.128` does not exist on gfx942
// run: lower target=sm_80
// error: `lw.buffer_load_lds` does not exist on sm_80
gpu.func @k(%p: !llvm.ptr<1>, %n: i64, %m: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 8192 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 8192 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %t = gpu.thread_id x
  %t64 = arith.index_cast %t : index to i64
  %i = arith.trunci %t64 : i64 to i32
  "lw.buffer_load_lds"(%a, %p, %n, %i, %m) {bytes = 4 : i64, unit = 2 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i64, i32, i1) -> ()
  %b = llvm.getelementptr %a[1024] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  "lw.buffer_load_lds"(%b, %p, %n, %i, %m) {bytes = 16 : i64, unit = 4 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i64, i32, i1) -> ()
  %c = llvm.getelementptr %a[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  "lw.buffer_load_lds"(%c, %p, %n, %i, %m) {bytes = 12 : i64, unit = 4 : i64} : (!llvm.ptr<3>, !llvm.ptr<1>, i64, i32, i1) -> ()
  gpu.barrier
  %s = llvm.getelementptr %a[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %v = "lw.load"(%s) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
  %q = llvm.getelementptr %p[%t64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  "lw.store"(%v, %q) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
