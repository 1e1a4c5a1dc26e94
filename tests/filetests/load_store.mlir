// Scalars and vectors keep their alignment: one wide access.
// run: lower target=nvidia
// check: ld.global.b32
// check: ld.global.v4.b32
// check: ld.global.b8
// check: st.global.b32
// check: st.global.v4.b32
// check: st.global.b8
// run: lower target=amd
// check: global_load_ubyte
// check: global_store_dwordx4
// run: lower target=sm_80 emit=lowered
// check: llvm.load
// check: {alignment = 16 : i64}
// check-not: lw.load
gpu.func @k(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %c: !llvm.ptr<1>) kernel attributes {$attributes} {
  %a = "lw.load"(%p) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
  %b = "lw.load"(%q) {align = 16 : i64} : (!llvm.ptr<1>) -> vector<8xbf16>
  %d = "lw.load"(%c) {align = 1 : i64} : (!llvm.ptr<1>) -> f8E4M3FN
  "lw.store"(%a, %q) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  "lw.store"(%b, %p) {align = 16 : i64} : (vector<8xbf16>, !llvm.ptr<1>) -> ()
  "lw.store"(%d, %q) {align = 1 : i64} : (f8E4M3FN, !llvm.ptr<1>) -> ()
  gpu.return
}
