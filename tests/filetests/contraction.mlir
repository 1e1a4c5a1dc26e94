// A product and a sum stay two roundings, for every width. (sm_80 has no bf16 product: it is an fma
// with -0 there.)
// run: lower target=sm_90a
// check: mul.rn.f16
// check: add.rn.f16
// check: mul.rn.bf16x2
// check: sub.rn.bf16x2
// check-not: fma
// run: lower target=amd
// check-not: v_fma_
// check-not: v_fmac
// check-not: v_mac
// check-not: v_pk_fma
gpu.func @k(%p: !llvm.ptr<1>, %h: f16, %b: bf16, %d: f64, %v: vector<2xf16>, %w: vector<2xbf16>, %f: vector<2xf32>) kernel attributes {$attributes} {
  %0 = arith.mulf %h, %h : f16
  %1 = arith.addf %0, %h : f16
  %2 = arith.mulf %b, %b : bf16
  %3 = arith.addf %2, %b : bf16
  %4 = arith.mulf %d, %d : f64
  %5 = arith.addf %4, %d : f64
  %6 = arith.mulf %v, %v : vector<2xf16>
  %7 = arith.addf %6, %v : vector<2xf16>
  %8 = arith.mulf %w, %w : vector<2xbf16>
  %9 = arith.subf %8, %w : vector<2xbf16>
  %10 = arith.mulf %f, %f : vector<2xf32>
  %11 = arith.subf %10, %f : vector<2xf32>
  "lw.store"(%1, %p) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %c1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%c1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%3, %p1) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %p2 = llvm.getelementptr %p1[%c1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%5, %p2) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  %p3 = llvm.getelementptr %p2[%c1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%7, %p3) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  %p4 = llvm.getelementptr %p3[%c1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%9, %p4) {align = 4 : i64} : (vector<2xbf16>, !llvm.ptr<1>) -> ()
  %p5 = llvm.getelementptr %p4[%c1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%11, %p5) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
