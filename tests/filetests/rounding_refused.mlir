// run: lower target=all
// error: casts round to nearest even
// error: r.rs:2:3
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {$attributes} {
  %6 = arith.truncf %x upward : f32 to f16 loc("r.rs":2:3)
  "lw.store"(%6, %p) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  gpu.return
}
