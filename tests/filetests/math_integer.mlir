// run: lower target=nvidia
// check: popc.b32
// check: clz.b32
// run: lower target=amd
// check: s_bcnt1_i32_b32
gpu.func @k(%p: !llvm.ptr<1>, %i: i32, %l: i64, %b: i8) kernel attributes {$attributes} {
  %0 = math.ctpop %i : i32
  %1 = math.ctlz %0 : i32
  %2 = math.cttz %1 : i32
  %3 = math.absi %2 : i32
  "lw.store"(%3, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %4 = math.ctlz %l : i64
  %5 = math.ctpop %4 : i64
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%5, %p1) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %6 = math.ctlz %b : i8
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%6, %p2) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  gpu.return
}
