// No device library is called; division and square root are the correctly rounded forms.
// run: lower target=nvidia
// check: ex2.approx.f32
// check: sqrt.rn.f32
// check: div.rn.f32
// check-not: __nv_
// check-not: .approx.ftz
// run: lower target=amd
// check: v_exp_f32
// check-not: __ocml
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %h: f16, %b: bf16, %v: vector<2xf32>, %d: f64) kernel attributes {$attributes} {
  %0 = math.exp %x : f32
  %1 = math.exp2 %0 : f32
  %2 = math.log %1 : f32
  %3 = math.log2 %2 : f32
  %4 = math.log10 %3 : f32
  %5 = math.sqrt %4 : f32
  %6 = math.rsqrt %5 : f32
  %7 = math.sin %6 : f32
  %8 = math.cos %7 : f32
  %9 = math.tanh %8 : f32
  %10 = math.erf %9 : f32
  %11 = math.floor %10 : f32
  %12 = math.ceil %11 : f32
  %13 = math.round %12 : f32
  %14 = math.roundeven %13 : f32
  %15 = math.trunc %14 : f32
  %16 = math.copysign %15, %x : f32
  %17 = math.absf %16 : f32
  %18 = math.fma %17, %x, %x : f32
  "lw.store"(%18, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  %h0 = math.exp %h : f16
  %h1 = math.floor %h0 : f16
  %h2 = math.fma %h1, %h, %h : f16
  %h3 = math.sqrt %h2 : f16
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%h3, %p1) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %b0 = math.tanh %b : bf16
  %b1 = math.fma %b0, %b, %b : bf16
  %b2 = math.absf %b1 : bf16
  %b3 = math.copysign %b2, %b : bf16
  %b4 = math.round %b3 : bf16
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%b4, %p2) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  %v0 = math.exp2 %v : vector<2xf32>
  %v1 = math.absf %v0 : vector<2xf32>
  %v2 = math.fma %v1, %v, %v : vector<2xf32>
  %v3 = math.floor %v2 : vector<2xf32>
  %off3 = arith.constant 192 : i64
  %p3 = llvm.getelementptr %p[%off3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%v3, %p3) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<1>) -> ()
  %d0 = math.sqrt %d : f64
  %d1 = math.rsqrt %d0 : f64
  %d2 = math.fma %d1, %d, %d : f64
  %d3 = math.roundeven %d2 : f64
  %d4 = math.round %d3 : f64
  %off4 = arith.constant 256 : i64
  %p4 = llvm.getelementptr %p[%off4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%d4, %p4) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  gpu.return
}
