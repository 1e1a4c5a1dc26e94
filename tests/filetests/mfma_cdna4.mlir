// run: lower target=gfx950 opt=0
// check: v_mfma_f32_32x32x16_f16
// check: v_mfma_f32_16x16x32_f16
// check: v_mfma_f32_32x32x16_bf16
// check: v_mfma_f32_16x16x32_bf16
// check: v_mfma_i32_32x32x32_i8
// check: v_mfma_i32_16x16x64_i8
// run: lower target=gfx942
// error: `mfma.32x32x16.f16` does not exist on gfx942
// error: it exists on gfx950 only
gpu.func @k(%p: !llvm.ptr<1>, %h: vector<8xf16>, %b: vector<8xbf16>, %s: vector<16xi8>, %x: f32, %i: i32) kernel attributes {$attributes} {
  %r0:16 = "lw.mfma"(%h, %h, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 16 : i64, kind = "f16"} : (vector<8xf16>, vector<8xf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r1:4 = "lw.mfma"(%h, %h, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 32 : i64, kind = "f16"} : (vector<8xf16>, vector<8xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r2:16 = "lw.mfma"(%b, %b, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 16 : i64, kind = "bf16"} : (vector<8xbf16>, vector<8xbf16>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i2 = arith.constant 2 : i64
  %p2 = llvm.getelementptr %p[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r2#1, %p2) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r3:4 = "lw.mfma"(%b, %b, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 32 : i64, kind = "bf16"} : (vector<8xbf16>, vector<8xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i3 = arith.constant 3 : i64
  %p3 = llvm.getelementptr %p[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r3#1, %p3) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r4:16 = "lw.mfma"(%s, %s, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i) {m = 32 : i64, n = 32 : i64, k = 32 : i64, kind = "s8"} : (vector<16xi8>, vector<16xi8>, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
  %i4 = arith.constant 4 : i64
  %p4 = llvm.getelementptr %p[%i4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r4#1, %p4) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r5:4 = "lw.mfma"(%s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 16 : i64, k = 64 : i64, kind = "s8"} : (vector<16xi8>, vector<16xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i5 = arith.constant 5 : i64
  %p5 = llvm.getelementptr %p[%i5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r5#1, %p5) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
