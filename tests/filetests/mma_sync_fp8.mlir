// run: lower target=sm_90a
// check: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
// check: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32
// check: mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32
// check: mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32
// run: lower target=sm_100a
// check: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
// run: lower target=sm_80
// error: `mma_sync.16x8x32.e4m3.e4m3` does not exist on sm_80
// error: it needs sm_89 or later
gpu.func @k(%p: !llvm.ptr<1>, %e: vector<4xi8>, %g: vector<4xi8>, %x: f32) kernel attributes {$attributes} {
  %e4 = arith.bitcast %e : vector<4xi8> to vector<4xf8E4M3FN>
  %e5 = arith.bitcast %g : vector<4xi8> to vector<4xf8E5M2>
  %0:4 = "lw.mma_sync"(%e4, %e4, %e4, %e4, %e4, %e4, %x, %x, %x, %x) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "e4m3.e4m3", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %1:4 = "lw.mma_sync"(%e4, %e4, %e4, %e4, %e5, %e5, %0#0, %0#1, %0#2, %0#3) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "e4m3.e5m2", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, vector<4xf8E5M2>, vector<4xf8E5M2>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %2:4 = "lw.mma_sync"(%e5, %e5, %e5, %e5, %e4, %e4, %1#0, %1#1, %1#2, %1#3) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "e5m2.e4m3", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E4M3FN>, vector<4xf8E4M3FN>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %3:4 = "lw.mma_sync"(%e5, %e5, %e5, %e5, %e5, %e5, %2#0, %2#1, %2#2, %2#3) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "e5m2.e5m2", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, vector<4xf8E5M2>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  "lw.store"(%3#2, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
