// Inside control flow the vote names the lanes that are there.
// run: lower target=sm_90a
// check: activemask.b32
// check: vote.sync.ballot.b32
gpu.func @k(%p: !llvm.ptr<1>, %i: i32) kernel attributes {$attributes} {
  %id = gpu.thread_id x
  %t = arith.index_cast %id : index to i32
  %c = arith.cmpi slt, %t, %i : i32
  scf.if %c {
    %b = "lw.ballot"(%c) : (i1) -> i64
    "lw.store"(%b, %p) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  }
  gpu.return
}
