// A divisor that may be -1 is tested: MIN / -1 is MIN and MIN % -1 is 0, as Rust's wrapping operators say.
// A constant above zero is not tested.
// run: lower target=sm_90a emit=lowered
// check: arith.cmpi eq, %arg2
// check: arith.select
// check: arith.divsi %arg1
// check: arith.select
// check: arith.remsi
// check: arith.select
// check: arith.divsi
// check: store
gpu.func @k(%p: !llvm.ptr<1>, %a: i32, %b: i32) kernel attributes {$attributes} {
  %0 = arith.divsi %a, %b : i32
  %1 = arith.remsi %0, %b : i32
  %c7 = arith.constant 7 : i32
  %2 = arith.divsi %1, %c7 : i32
  "lw.store"(%2, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
