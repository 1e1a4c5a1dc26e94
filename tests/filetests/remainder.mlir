// Rust's `%`, exact, by integer division of the significands.
// run: lower target=all
// check-not: fmod
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %y: f32, %b: bf16, %v: vector<2xf32>) kernel attributes {$attributes} {
  %0 = arith.remf %x, %y : f32
  "lw.store"(%0, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %1 = arith.remf %b, %b : bf16
  "lw.store"(%1, %p) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %2 = arith.remf %v, %v : vector<2xf32>
  "lw.store"(%2, %p) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
