// 8-bit floats: hardware from sm_89 on, integers elsewhere (gfx942 has other encodings).
// run: lower target=sm_80
// check-not: e4m3x2
// run: lower target=sm_90a
// check: cvt.rn.satfinite.e4m3x2.f32
// check: cvt.rn.f16x2.e5m2x2
// run: lower target=sm_100a
// check: cvt.rn.satfinite.e4m3x2.f32
// run: lower target=amd
// check-not: cvt_pk_fp8
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %arg: f8E4M3FN, %n: i32) kernel attributes {$attributes} {
  %a = "lw.to_fp8"(%x) : (f32) -> f8E4M3FN
  %b = "lw.to_fp8"(%x) : (f32) -> f8E5M2
  "lw.store"(%a, %p) {align = 1 : i64} : (f8E4M3FN, !llvm.ptr<1>) -> ()
  %q = llvm.getelementptr %p[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f8E5M2
  "lw.store"(%b, %q) {align = 1 : i64} : (f8E5M2, !llvm.ptr<1>) -> ()
  %v = "lw.load"(%p) {align = 8 : i64} : (!llvm.ptr<1>) -> vector<8xf8E5M2>
  %w = arith.extf %v : vector<8xf8E5M2> to vector<8xf32>
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%w, %p1) {align = 16 : i64} : (vector<8xf32>, !llvm.ptr<1>) -> ()
  %e = vector.extract %v[1] : f8E5M2 from vector<8xf8E5M2>
  %v2 = vector.insert %e, %v [3] : f8E5M2 into vector<8xf8E5M2>
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%v2, %p2) {align = 8 : i64} : (vector<8xf8E5M2>, !llvm.ptr<1>) -> ()
  // Carried through control flow, selected, constant.
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f8E4M3FN
  %f = scf.for %i = %c0 to %n step %c1 iter_args(%c = %arg) -> (f8E4M3FN) : i32 {
    %even = arith.cmpi eq, %i, %c1 : i32
    %s = arith.select %even, %one, %c : f8E4M3FN
    scf.yield %s : f8E4M3FN
  }
  %g = arith.extf %f : f8E4M3FN to f32
  %h = arith.extf %f : f8E4M3FN to bf16
  %bits = arith.bitcast %f : f8E4M3FN to i8
  %off3 = arith.constant 192 : i64
  %p3 = llvm.getelementptr %p[%off3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%g, %p3) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %off4 = arith.constant 256 : i64
  %p4 = llvm.getelementptr %p[%off4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%h, %p4) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %off5 = arith.constant 320 : i64
  %p5 = llvm.getelementptr %p[%off5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%bits, %p5) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  gpu.return
}
