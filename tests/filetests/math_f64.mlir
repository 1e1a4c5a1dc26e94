// run: lower target=all
// error: `exp` does not exist for F64
// error: m.rs:5:7
gpu.func @k(%p: !llvm.ptr<1>, %x: f64) kernel attributes {$attributes} {
  %0 = math.exp %x : f64 loc("m.rs":5:7)
  "lw.store"(%0, %p) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  gpu.return
}
