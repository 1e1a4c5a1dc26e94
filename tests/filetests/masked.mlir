// No access is made where the mask is false.
// run: lower target=nvidia
// check: bra
// check: ld.global.v
// check: st.global.b16
// run: lower target=amd
// check: v_cmp
// check: s_and
// run: lower target=sm_90a emit=lowered
// check: scf.if
// check: llvm.load
// check: scf.if
// check: llvm.store
gpu.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %n: i32, %h: f16) kernel attributes {$attributes} {
  %id = gpu.thread_id x
  %t = arith.index_cast %id : index to i32
  %m = arith.cmpi slt, %t, %n : i32
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %a = "lw.load_masked"(%p, %m, %zero) {align = 16 : i64} : (!llvm.ptr<1>, i1, vector<4xf32>) -> vector<4xf32>
  "lw.store"(%a, %q) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  "lw.store_masked"(%h, %p, %m) {align = 2 : i64} : (f16, !llvm.ptr<1>, i1) -> ()
  gpu.return
}
