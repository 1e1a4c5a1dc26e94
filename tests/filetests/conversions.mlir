// Float to integer is Rust's `as`; casts toward zero do not round up.
// run: lower target=nvidia
// check: cvt.rzi.s32.f32
// run: lower target=amd
// check: v_cvt_i32_f32
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %h: f16, %b: bf16, %d: f64, %i: i32, %l: i64, %v: vector<4xf32>) kernel attributes {$attributes} {
  %0 = arith.fptosi %x : f32 to i32
  "lw.store"(%0, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %1 = arith.fptoui %x : f32 to i8
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%1, %p1) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  %2 = arith.fptosi %d : f64 to i64
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%2, %p2) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %3 = arith.fptoui %h : f16 to i16
  %off3 = arith.constant 192 : i64
  %p3 = llvm.getelementptr %p[%off3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%3, %p3) {align = 2 : i64} : (i16, !llvm.ptr<1>) -> ()
  %4 = arith.fptosi %b : bf16 to i64
  %off4 = arith.constant 256 : i64
  %p4 = llvm.getelementptr %p[%off4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%4, %p4) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %5 = arith.fptosi %v : vector<4xf32> to vector<4xi32>
  %off5 = arith.constant 320 : i64
  %p5 = llvm.getelementptr %p[%off5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%5, %p5) {align = 16 : i64} : (vector<4xi32>, !llvm.ptr<1>) -> ()
  %6 = arith.truncf %x toward_zero : f32 to f16
  %off6 = arith.constant 384 : i64
  %p6 = llvm.getelementptr %p[%off6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%6, %p6) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %7 = arith.truncf %v toward_zero : vector<4xf32> to vector<4xbf16>
  %off7 = arith.constant 448 : i64
  %p7 = llvm.getelementptr %p[%off7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%7, %p7) {align = 8 : i64} : (vector<4xbf16>, !llvm.ptr<1>) -> ()
  %8 = arith.truncf %x : f32 to bf16
  %off8 = arith.constant 512 : i64
  %p8 = llvm.getelementptr %p[%off8] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%8, %p8) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %9 = arith.truncf %d : f64 to bf16
  %off9 = arith.constant 576 : i64
  %p9 = llvm.getelementptr %p[%off9] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%9, %p9) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %10 = arith.sitofp %l : i64 to f16
  %off10 = arith.constant 640 : i64
  %p10 = llvm.getelementptr %p[%off10] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%10, %p10) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %11 = arith.uitofp %i : i32 to bf16
  %off11 = arith.constant 704 : i64
  %p11 = llvm.getelementptr %p[%off11] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%11, %p11) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %12 = arith.extf %b : bf16 to f64
  %off12 = arith.constant 768 : i64
  %p12 = llvm.getelementptr %p[%off12] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%12, %p12) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  %13 = arith.truncf %d toward_zero : f64 to f32
  %off13 = arith.constant 832 : i64
  %p13 = llvm.getelementptr %p[%off13] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%13, %p13) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %14 = arith.fptosi %x : f32 to i1
  %15 = arith.extui %14 : i1 to i8
  %off14 = arith.constant 896 : i64
  %p14 = llvm.getelementptr %p[%off14] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%15, %p14) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  gpu.return
}
