// run: lower target=nvidia
// check: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// check: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// check: mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
// check: mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32
// check: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// run: lower target=gfx942
// error: use `mfma_32x32x8`
gpu.func @k(%p: !llvm.ptr<1>, %h: vector<2xf16>, %b: vector<2xbf16>, %x: f32) kernel attributes {$attributes} {
  %0:4 = "lw.mma_sync"(%h, %h, %h, %h, %h, %h, %x, %x, %x, %x) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "f16", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %1:4 = "lw.mma_sync"(%b, %b, %b, %b, %b, %b, %0#0, %0#1, %0#2, %0#3) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %2:4 = "lw.mma_sync"(%h, %h, %h, %1#0, %1#1, %1#2, %1#3) {m = 16 : i64, n = 8 : i64, k = 8 : i64, kind = "f16", operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %3:4 = "lw.mma_sync"(%b, %b, %b, %2#0, %2#1, %2#2, %2#3) {m = 16 : i64, n = 8 : i64, k = 8 : i64, kind = "bf16", operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %4:4 = "lw.mma_sync"(%x, %x, %x, %x, %x, %x, %3#0, %3#1, %3#2, %3#3) {m = 16 : i64, n = 8 : i64, k = 8 : i64, kind = "tf32", operandSegmentSizes = array<i32: 4, 2, 4>} : (f32, f32, f32, f32, f32, f32, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  "lw.store"(%4#2, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
