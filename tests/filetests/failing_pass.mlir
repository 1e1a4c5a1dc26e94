// What LLVM or MLIR refuses is reported in its words at the user's line.
// run: lower target=all
// error: the lowering failed
// error: llvm.no.such.thing
// error: bad.rs:3:17
gpu.func @k(%x: f32) kernel attributes {$attributes} {
  %0 = llvm.call_intrinsic "llvm.no.such.thing"(%x) : (f32) -> f32 loc("bad.rs":3:17)
  gpu.return
}
