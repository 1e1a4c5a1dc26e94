// Thread ids have the range that the block size gives; a known block size is a constant.
// run: lower target=nvidia
// check: %tid.x
// check: %ctaid.y
// check: %nctaid.z
// run: lower target=amd
// check: global_store
// run: lower target=sm_80 emit=llvm
// check: range(i32 0, 128)
gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {$attributes} {
  %a = gpu.thread_id x
  %b = gpu.block_id y
  %d = gpu.grid_dim z
  %e = gpu.block_dim x
  %0 = arith.index_cast %a : index to i32
  %1 = arith.index_cast %b : index to i32
  %2 = arith.index_cast %d : index to i32
  %3 = arith.index_cast %e : index to i32
  %4 = arith.addi %0, %1 : i32
  %5 = arith.addi %4, %2 : i32
  %6 = arith.addi %5, %3 : i32
  %7 = arith.extsi %0 : i32 to i64
  %q = llvm.getelementptr %p[%7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
  "lw.store"(%6, %q) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
