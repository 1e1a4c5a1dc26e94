// run: lower target=all
gpu.func @k(%p: !llvm.ptr<1>, %a: i32, %b: i32, %l: i64, %m: i64, %c: i8, %s: i16, %v: vector<4xi32>) kernel attributes {$attributes} {
  %0 = arith.addi %a, %b : i32
  %1 = arith.subi %0, %b : i32
  %2 = arith.muli %1, %b : i32
  %3 = arith.divsi %2, %b : i32
  %4 = arith.divui %3, %b : i32
  %5 = arith.remsi %4, %b : i32
  %6 = arith.remui %5, %b : i32
  %7 = arith.andi %6, %b : i32
  %8 = arith.ori %7, %b : i32
  %9 = arith.xori %8, %b : i32
  %10 = arith.shli %9, %b : i32
  %11 = arith.shrsi %10, %b : i32
  %12 = arith.shrui %11, %b : i32
  %13 = arith.maxsi %12, %b : i32
  %14 = arith.minui %13, %b : i32
  %15 = arith.cmpi ult, %14, %b : i32
  %16 = arith.select %15, %14, %b : i32
  "lw.store"(%16, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %17 = arith.extsi %16 : i32 to i64
  %18 = arith.muli %17, %l : i64
  %19 = arith.divsi %18, %m : i64
  %20 = arith.remui %19, %l : i64
  "lw.store"(%20, %p) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %21 = arith.trunci %20 : i64 to i8
  %22 = arith.addi %21, %c : i8
  %23 = arith.muli %22, %c : i8
  %24 = arith.divsi %23, %c : i8
  "lw.store"(%24, %p) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  %25 = arith.extui %c : i8 to i16
  %26 = arith.maxui %25, %s : i16
  "lw.store"(%26, %p) {align = 2 : i64} : (i16, !llvm.ptr<1>) -> ()
  %27 = arith.addi %v, %v : vector<4xi32>
  %28 = arith.minsi %27, %v : vector<4xi32>
  "lw.store"(%28, %p) {align = 16 : i64} : (vector<4xi32>, !llvm.ptr<1>) -> ()
  gpu.return
}
