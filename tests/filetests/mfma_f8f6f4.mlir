// run: lower target=gfx950 opt=0
// check: v_mfma_f32_32x32x64_f8f6f4
// check: v_mfma_f32_16x16x128_f8f6f4
// check: v_mfma_f32_32x32x64_f8f6f4
// check: v_mfma_f32_16x16x128_f8f6f4
// check: v_mfma_f32_32x32x64_f8f6f4
// check: v_mfma_f32_16x16x128_f8f6f4
// check: v_mfma_f32_32x32x64_f8f6f4
// check: v_mfma_f32_16x16x128_f8f6f4
gpu.func @k(%p: !llvm.ptr<1>, %w: vector<32xi8>, %x: f32) kernel attributes {$attributes} {
  %we = arith.bitcast %w : vector<32xi8> to vector<32xf8E4M3FN>
  %wg = arith.bitcast %w : vector<32xi8> to vector<32xf8E5M2>
  %r0:16 = "lw.mfma"(%we, %we, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 64 : i64, kind = "e4m3.e4m3"} : (vector<32xf8E4M3FN>, vector<32xf8E4M3FN>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r1:4 = "lw.mfma"(%we, %we, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 128 : i64, kind = "e4m3.e4m3"} : (vector<32xf8E4M3FN>, vector<32xf8E4M3FN>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r2:16 = "lw.mfma"(%we, %wg, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 64 : i64, kind = "e4m3.e5m2"} : (vector<32xf8E4M3FN>, vector<32xf8E5M2>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i2 = arith.constant 2 : i64
  %p2 = llvm.getelementptr %p[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r2#1, %p2) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r3:4 = "lw.mfma"(%we, %wg, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 128 : i64, kind = "e4m3.e5m2"} : (vector<32xf8E4M3FN>, vector<32xf8E5M2>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i3 = arith.constant 3 : i64
  %p3 = llvm.getelementptr %p[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r3#1, %p3) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r4:16 = "lw.mfma"(%wg, %we, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 64 : i64, kind = "e5m2.e4m3"} : (vector<32xf8E5M2>, vector<32xf8E4M3FN>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i4 = arith.constant 4 : i64
  %p4 = llvm.getelementptr %p[%i4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r4#1, %p4) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r5:4 = "lw.mfma"(%wg, %we, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 128 : i64, kind = "e5m2.e4m3"} : (vector<32xf8E5M2>, vector<32xf8E4M3FN>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i5 = arith.constant 5 : i64
  %p5 = llvm.getelementptr %p[%i5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r5#1, %p5) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r6:16 = "lw.mfma"(%wg, %wg, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 64 : i64, kind = "e5m2.e5m2"} : (vector<32xf8E5M2>, vector<32xf8E5M2>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i6 = arith.constant 6 : i64
  %p6 = llvm.getelementptr %p[%i6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r6#1, %p6) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r7:4 = "lw.mfma"(%wg, %wg, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 128 : i64, kind = "e5m2.e5m2"} : (vector<32xf8E5M2>, vector<32xf8E5M2>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i7 = arith.constant 7 : i64
  %p7 = llvm.getelementptr %p[%i7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r7#1, %p7) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
