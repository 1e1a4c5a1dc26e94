// run: lower target=nvidia
// check: mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16
// check: mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16
// check: mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32
// check: mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64
// run: lower target=gfx942
// error: use `mfma_32x32x8`
gpu.func @k(%p: !llvm.ptr<1>, %h: vector<2xf16>, %x: f32, %d: f64, %s: vector<4xi8>, %i: i32) kernel attributes {$attributes} {
  %r0:2 = "lw.mma_sync"(%h, %h, %h, %h, %h, %h, %h, %h) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "f16+f16", operandSegmentSizes = array<i32: 4, 2, 2>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) -> (vector<2xf16>, vector<2xf16>)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  %r1:2 = "lw.mma_sync"(%h, %h, %h, %h, %h) {m = 16 : i64, n = 8 : i64, k = 8 : i64, kind = "f16+f16", operandSegmentSizes = array<i32: 2, 1, 2>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) -> (vector<2xf16>, vector<2xf16>)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  %r2:4 = "lw.mma_sync"(%x, %x, %x, %x, %x, %x, %x) {m = 16 : i64, n = 8 : i64, k = 4 : i64, kind = "tf32", operandSegmentSizes = array<i32: 2, 1, 4>} : (f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %i2 = arith.constant 2 : i64
  %p2 = llvm.getelementptr %p[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r2#1, %p2) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %r3:2 = "lw.mma_sync"(%d, %d, %d, %d) {m = 8 : i64, n = 8 : i64, k = 4 : i64, kind = "f64", operandSegmentSizes = array<i32: 1, 1, 2>} : (f64, f64, f64, f64) -> (f64, f64)
  %i3 = arith.constant 3 : i64
  %p3 = llvm.getelementptr %p[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r3#1, %p3) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  gpu.return
}
