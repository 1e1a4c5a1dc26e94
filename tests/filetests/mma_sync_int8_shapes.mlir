// run: lower target=nvidia
// check: mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32
// check: mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32
// check: mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32
// check: mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32
// check: mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32
// check: mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32
// check: mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32
// check: mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32
// check: mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32
// check: mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32
// check-not: satfinite
// run: lower target=gfx942
// error: use `mfma_32x32x8`
gpu.func @k(%p: !llvm.ptr<1>, %h: vector<2xf16>, %x: f32, %d: f64, %s: vector<4xi8>, %i: i32) kernel attributes {$attributes} {
  %r0:4 = "lw.mma_sync"(%s, %s, %s, %s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "s8.u8", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i0 = arith.constant 0 : i64
  %p0 = llvm.getelementptr %p[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r0#1, %p0) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r1:4 = "lw.mma_sync"(%s, %s, %s, %s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 32 : i64, kind = "u8.s8", operandSegmentSizes = array<i32: 4, 2, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i1 = arith.constant 1 : i64
  %p1 = llvm.getelementptr %p[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r1#1, %p1) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r2:4 = "lw.mma_sync"(%s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "s8", operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i2 = arith.constant 2 : i64
  %p2 = llvm.getelementptr %p[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r2#1, %p2) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r3:4 = "lw.mma_sync"(%s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "u8", operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i3 = arith.constant 3 : i64
  %p3 = llvm.getelementptr %p[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r3#1, %p3) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r4:4 = "lw.mma_sync"(%s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "s8.u8", operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i4 = arith.constant 4 : i64
  %p4 = llvm.getelementptr %p[%i4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r4#1, %p4) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r5:4 = "lw.mma_sync"(%s, %s, %s, %i, %i, %i, %i) {m = 16 : i64, n = 8 : i64, k = 16 : i64, kind = "u8.s8", operandSegmentSizes = array<i32: 2, 1, 4>} : (vector<4xi8>, vector<4xi8>, vector<4xi8>, i32, i32, i32, i32) -> (i32, i32, i32, i32)
  %i5 = arith.constant 5 : i64
  %p5 = llvm.getelementptr %p[%i5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r5#1, %p5) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r6:2 = "lw.mma_sync"(%s, %s, %i, %i) {m = 8 : i64, n = 8 : i64, k = 16 : i64, kind = "s8", operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<4xi8>, vector<4xi8>, i32, i32) -> (i32, i32)
  %i6 = arith.constant 6 : i64
  %p6 = llvm.getelementptr %p[%i6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r6#1, %p6) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r7:2 = "lw.mma_sync"(%s, %s, %i, %i) {m = 8 : i64, n = 8 : i64, k = 16 : i64, kind = "u8", operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<4xi8>, vector<4xi8>, i32, i32) -> (i32, i32)
  %i7 = arith.constant 7 : i64
  %p7 = llvm.getelementptr %p[%i7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r7#1, %p7) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r8:2 = "lw.mma_sync"(%s, %s, %i, %i) {m = 8 : i64, n = 8 : i64, k = 16 : i64, kind = "s8.u8", operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<4xi8>, vector<4xi8>, i32, i32) -> (i32, i32)
  %i8 = arith.constant 8 : i64
  %p8 = llvm.getelementptr %p[%i8] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r8#1, %p8) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %r9:2 = "lw.mma_sync"(%s, %s, %i, %i) {m = 8 : i64, n = 8 : i64, k = 16 : i64, kind = "u8.s8", operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<4xi8>, vector<4xi8>, i32, i32) -> (i32, i32)
  %i9 = arith.constant 9 : i64
  %p9 = llvm.getelementptr %p[%i9] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  "lw.store"(%r9#1, %p9) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
