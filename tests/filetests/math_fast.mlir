// `fastmath<afn>` is the approximate instruction.
// run: lower target=nvidia
// check: ex2.approx.ftz.f32
// check: lg2.approx.ftz.f32
// check: rsqrt.approx.ftz.f32
// check: tanh.approx.f32
// check: sin.approx.ftz.f32
// check: cos.approx.ftz.f32
// check: rcp.approx.ftz.f32
// run: lower target=amd
// check: v_exp_f32
// check: v_log_f32
// check: v_rsq_f32
// check: v_sin_f32
// check: v_cos_f32
// check: v_rcp_f32
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {$attributes} {
  %0 = math.exp2 %x fastmath<afn> : f32
  %1 = math.log2 %0 fastmath<afn> : f32
  %2 = math.rsqrt %1 fastmath<afn> : f32
  %3 = math.tanh %2 fastmath<afn> : f32
  %4 = math.sin %3 fastmath<afn> : f32
  %5 = math.cos %4 fastmath<afn> : f32
  %6 = "lw.rcp"(%5) : (f32) -> f32
  %7 = math.exp %6 fastmath<afn> : f32
  %8 = math.log %7 fastmath<afn> : f32
  %9 = math.log10 %8 fastmath<afn> : f32
  %10 = math.sqrt %9 fastmath<afn> : f32
  %11 = math.erf %10 fastmath<afn> : f32
  "lw.store"(%11, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
