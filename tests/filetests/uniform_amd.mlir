// run: lower target=amd
// check: v_readfirstlane_b32
gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {$attributes} {
  %t = gpu.thread_id x
  %i = arith.index_cast %t : index to i32
  %u = "lw.uniform"(%i) : (i32) -> i32
  "lw.store"(%u, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
