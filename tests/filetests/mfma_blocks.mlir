// run: lower target=amd opt=0
// check: v_mfma_f32_32x32x4
// check: v_mfma_f32_16x16x4
// check: v_mfma_f32_4x4x4
// check: v_mfma_f32_32x32x4
// check: v_mfma_f32_16x16x4
// check: v_mfma_f32_4x4x4
// check: v_mfma_i32_32x32x4
// check: v_mfma_i32_16x16x4
// check: v_mfma_i32_4x4x4
// check: v_mfma_f32_32x32x1
// check: v_mfma_f32_16x16x1
// check: v_mfma_f32_4x4x1
// check: v_mfma_f64_4x4x4
// run: lower target=sm_80
// error: `lw.mfma` does not exist on sm_80
gpu.func @k(%p: !llvm.ptr<1>, %h: vector<4xf16>, %b: vector<4xbf16>, %s: vector<4xi8>, %x: f32, %i: i32, %d: f64) kernel attributes {$attributes} {
  %r0:32 = "lw.mfma"(%h, %h, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 4 : i64, kind = "f16"} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r1:16 = "lw.mfma"(%h, %h, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 4 : i64, kind = "f16"} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r2:4 = "lw.mfma"(%h, %h, %x, %x, %x, %x) {m = 4 : i64, n = 4 : i64, k = 4 : i64, kind = "f16"} : (vector<4xf16>, vector<4xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i2 = arith.constant 2 : i64
  %p2 = llvm.getelementptr %p[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r2#1, %p2) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r3:32 = "lw.mfma"(%b, %b, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 4 : i64, kind = "bf16"} : (vector<4xbf16>, vector<4xbf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i3 = arith.constant 3 : i64
  %p3 = llvm.getelementptr %p[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r3#1, %p3) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r4:16 = "lw.mfma"(%b, %b, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 4 : i64, kind = "bf16"} : (vector<4xbf16>, vector<4xbf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i4 = arith.constant 4 : i64
  %p4 = llvm.getelementptr %p[%i4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r4#1, %p4) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r5:4 = "lw.mfma"(%b, %b, %x, %x, %x, %x) {m = 4 : i64, n = 4 : i64, k = 4 : i64, kind = "bf16"} : (vector<4xbf16>, vector<4xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i5 = arith.constant 5 : i64
  %p5 = llvm.getelementptr %p[%i5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r5#1, %p5) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r6:32 = "lw.mfma"(%s, %s, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i) {m = 32 : i64, n = 32 : i64, k = 4 : i64, kind = "s8"} : (vector<4xi8>, vector<4xi8>, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
  %i6 = arith.constant 6 : i64
  %p6 = llvm.getelementptr %p[%i6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r6#1, %p6) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r7:16 = "lw.mfma"(%s, %s, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i) {m = 16 : i64, n = 16 : i64, k = 4 : i64, kind = "s8"} : (vector<4xi8>, vector<4xi8>, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
  %i7 = arith.constant 7 : i64
  %p7 = llvm.getelementptr %p[%i7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r7#1, %p7) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r8:4 = "lw.mfma"(%s, %s, %i, %i, %i, %i) {m = 4 : i64, n = 4 : i64, k = 4 : i64, kind = "s8"} : (vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i8 = arith.constant 8 : i64
  %p8 = llvm.getelementptr %p[%i8] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r8#1, %p8) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r9:32 = "lw.mfma"(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 1 : i64, kind = "f32"} : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i9 = arith.constant 9 : i64
  %p9 = llvm.getelementptr %p[%i9] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r9#1, %p9) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r10:16 = "lw.mfma"(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 1 : i64, kind = "f32"} : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i10 = arith.constant 10 : i64
  %p10 = llvm.getelementptr %p[%i10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r10#1, %p10) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r11:4 = "lw.mfma"(%x, %x, %x, %x, %x, %x) {m = 4 : i64, n = 4 : i64, k = 1 : i64, kind = "f32"} : (f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i11 = arith.constant 11 : i64
  %p11 = llvm.getelementptr %p[%i11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r11#1, %p11) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r12:1 = "lw.mfma"(%d, %d, %d) {m = 4 : i64, n = 4 : i64, k = 4 : i64, kind = "f64"} : (f64, f64, f64) -> (f64)
  %i12 = arith.constant 12 : i64
  %p12 = llvm.getelementptr %p[%i12] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r12#0, %p12) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  gpu.return
}
