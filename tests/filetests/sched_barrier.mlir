// Two loads that would otherwise stand together, at offsets 0 and 64, stay on their sides of a product.
// run: lower target=nvidia
// check: ld.global
// check: fma.rn.f32
// check: ld.global
// run: lower target=amd
// check: , 0x0
// check: v_fma
// check: , 0x40
// check: v_add_f32
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {$attributes} {
  %a = "lw.load"(%p) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
  "lw.sched_barrier"() : () -> ()
  %m = math.fma %a, %x, %x : f32
  "lw.sched_barrier"() : () -> ()
  %off = arith.constant 64 : i64
  %q = llvm.getelementptr %p[%off] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  %b = "lw.load"(%q) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
  %s = arith.addf %m, %b : f32
  "lw.store"(%s, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
