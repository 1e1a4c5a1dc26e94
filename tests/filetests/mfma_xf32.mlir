// run: lower target=gfx942
// check: v_mfma_f32_32x32x4_xf32
// check: v_mfma_f32_16x16x8_xf32
// run: lower target=gfx950
// error: it exists on gfx942 only
gpu.func @k(%p: !llvm.ptr<1>, %v: vector<2xf32>, %x: f32) kernel attributes {$attributes} {
  %r0:16 = "lw.mfma"(%v, %v, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x) {m = 32 : i64, n = 32 : i64, k = 4 : i64, kind = "xf32"} : (vector<2xf32>, vector<2xf32>, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r1:4 = "lw.mfma"(%v, %v, %x, %x, %x, %x) {m = 16 : i64, n = 16 : i64, k = 8 : i64, kind = "xf32"} : (vector<2xf32>, vector<2xf32>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
