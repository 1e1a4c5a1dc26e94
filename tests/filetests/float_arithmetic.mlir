// Nothing is contracted or approximated; minima and maxima of both kinds.
// run: lower target=nvidia
// check: mul.rn.f32
// check: add.rn.f32
// check: max.NaN.f32
// check: min.f32
// check-not: fma.rn.f32
// run: lower target=amd
// check: v_mul_f32
// check: v_add_f32
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %y: f32, %d: f64, %vb: vector<2xbf16>) kernel attributes {$attributes} {
  %id = gpu.thread_id x
  %t = arith.index_cast %id : index to i32
  %z = arith.sitofp %t : i32 to f32
  %0 = arith.mulf %x, %z : f32
  %1 = arith.addf %0, %y : f32
  %2 = arith.maximumf %1, %z : f32
  %3 = arith.minnumf %2, %x : f32
  "lw.store"(%3, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %4 = arith.maximumf %vb, %vb : vector<2xbf16>
  %5 = arith.minnumf %4, %vb : vector<2xbf16>
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%5, %p1) {align = 4 : i64} : (vector<2xbf16>, !llvm.ptr<1>) -> ()
  %6 = arith.minimumf %d, %d : f64
  %7 = arith.maxnumf %6, %d : f64
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%7, %p2) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  gpu.return
}
