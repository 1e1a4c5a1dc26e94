// Rust's `%`, exact, by integer division of the significands.
// run: lower target=all
// check-not: fmod
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %y: f32, %b: bf16, %v: vector<2xf32>) kernel attributes {$attributes} {
  %0 = arith.remf %x, %y : f32
  "lw.store"(%0, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %1 = arith.remf %b, %b : bf16
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%1, %p1) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %2 = arith.remf %v, %v : vector<2xf32>
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%2, %p2) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
