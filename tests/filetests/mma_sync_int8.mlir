// run: lower target=sm_80
// check: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// check: mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32
// check-not: satfinite
// run: lower target=gfx942
// error: use `mfma_32x32x8`
gpu.func @k(%p: !llvm.ptr<1>, %s: vector<4xi8>, %i: i32) kernel attributes {$attributes} {
  %0:4 = "lw.mma_sync"(%s, %s, %s, %s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "s8", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %1:4 = "lw.mma_sync"(%s, %s, %s, %s, %s, %s, %0#0, %0#1, %0#2, %0#3) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "u8", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  "lw.store"(%1#2, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
