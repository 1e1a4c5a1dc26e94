// run: lower target=amd opt=0
// check: v_mfma_i32_32x32x16_i8
// check: v_mfma_i32_16x16x32_i8
// check: v_mfma_f32_32x32x2_f32
// check: v_mfma_f32_16x16x4_f32
// check: v_mfma_f64_16x16x4_f64
gpu.func @k(%p: !llvm.ptr<1>, %s: vector<8xi8>, %x: f32, %i: i32, %d: f64) kernel attributes {$attributes} {
  %r0:16 = "lw.mfma"(%s, %s, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i) {m = 32 : i64, n = 32 : i64, k = 16 : i64, kind = "s8"} : (vector<8xi8>, vector<8xi8>, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r1:4 = "lw.mfma"(%s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 16 : i64, k = 32 : i64, kind = "s8"} : (vector<8xi8>, vector<8xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r2:16 = "lw.mfma"(%x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 2 : i64, kind = "f32"} : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i2 = arith.constant 2 : i64
  %p2 = llvm.getelementptr %p[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r2#1, %p2) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r3:4 = "lw.mfma"(%x, %x, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 4 : i64, kind = "f32"} : (f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i3 = arith.constant 3 : i64
  %p3 = llvm.getelementptr %p[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r3#1, %p3) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r4:4 = "lw.mfma"(%d, %d, %d, %d, %d, %d) {m = 16 : i64, n = 16 : i64, k = 4 : i64, kind = "f64"} : (f64, f64, f64, f64, f64, f64) -> (f64, f64, f64, f64)
  %i4 = arith.constant 4 : i64
  %p4 = llvm.getelementptr %p[%i4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r4#1, %p4) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  gpu.return
}
