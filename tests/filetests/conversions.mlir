// Float to integer is Rust's `as`; casts toward zero do not round up.
// run: lower target=nvidia
// check: cvt.rzi.s32.f32
// run: lower target=amd
// check: v_cvt_i32_f32
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %h: f16, %b: bf16, %d: f64, %i: i32, %l: i64, %v: vector<4xf32>) kernel attributes {$attributes} {
  %0 = arith.fptosi %x : f32 to i32
  "lw.store"(%0, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %1 = arith.fptoui %x : f32 to i8
  "lw.store"(%1, %p) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  %2 = arith.fptosi %d : f64 to i64
  "lw.store"(%2, %p) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %3 = arith.fptoui %h : f16 to i16
  "lw.store"(%3, %p) {align = 2 : i64} : (i16, !llvm.ptr<1>) -> ()
  %4 = arith.fptosi %b : bf16 to i64
  "lw.store"(%4, %p) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %5 = arith.fptosi %v : vector<4xf32> to vector<4xi32>
  "lw.store"(%5, %p) {align = 16 : i64} : (vector<4xi32>, !llvm.ptr<1>) -> ()
  %6 = arith.truncf %x toward_zero : f32 to f16
  "lw.store"(%6, %p) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %7 = arith.truncf %v toward_zero : vector<4xf32> to vector<4xbf16>
  "lw.store"(%7, %p) {align = 8 : i64} : (vector<4xbf16>, !llvm.ptr<1>) -> ()
  %8 = arith.truncf %x : f32 to bf16
  "lw.store"(%8, %p) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %9 = arith.truncf %d : f64 to bf16
  "lw.store"(%9, %p) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %10 = arith.sitofp %l : i64 to f16
  "lw.store"(%10, %p) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %11 = arith.uitofp %i : i32 to bf16
  "lw.store"(%11, %p) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %12 = arith.extf %b : bf16 to f64
  "lw.store"(%12, %p) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  %13 = arith.truncf %d toward_zero : f64 to f32
  "lw.store"(%13, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %14 = arith.fptosi %x : f32 to i1
  %15 = arith.extui %14 : i1 to i8
  "lw.store"(%15, %p) {align = 1 : i64} : (i8, !llvm.ptr<1>) -> ()
  gpu.return
}
