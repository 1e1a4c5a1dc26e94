// Loops of both index types, while, carried state, and the unrolling hint.
// run: lower target=all
// run: lower target=sm_80 emit=llvm
// check: !llvm.loop
// check: llvm.loop.unroll.count
gpu.func @k(%p: !llvm.ptr<1>, %n: i32, %l: i64, %x: f32) kernel attributes {$attributes} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l0 = arith.constant 0 : i64
  %l1 = arith.constant 1 : i64
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (f32) : i32 {
    %y = arith.mulf %a, %x : f32
    scf.yield %y : f32
  } {lw.unroll = 4 : i64}
  %1 = scf.for %i = %l0 to %l step %l1 iter_args(%a = %0) -> (f32) : i64 {
    %y = arith.addf %a, %x : f32
    scf.yield %y : f32
  } {lw.pipeline = 2 : i64, lw.unroll = 1 : i64}
  %2:2 = scf.while (%a = %1, %i = %c0) : (f32, i32) -> (f32, i32) {
    %c = arith.cmpi slt, %i, %n : i32
    scf.condition(%c) %a, %i : f32, i32
  } do {
  ^bb0(%a: f32, %i: i32):
    %y = arith.divf %a, %x : f32
    %j = arith.addi %i, %c1 : i32
    scf.yield %y, %j : f32, i32
  }
  %c = arith.cmpf ogt, %2#0, %x : f32
  %3 = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    %u = ub.poison : f32
    scf.yield %2#0 : f32
  }
  "lw.store"(%3, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
