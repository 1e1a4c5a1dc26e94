// Bounded access: predicated on NVIDIA, by resource descriptor on AMD.
// run: lower target=nvidia
// check: setp
// check: ld.global
// check: st.global
// run: lower target=amd
// check: buffer_load_dwordx4
// check: buffer_load_ushort
// check: buffer_store_dwordx4
// check: buffer_store_byte
gpu.func @k(%p: !llvm.ptr<1>, %n: i64, %o: i32, %limit: i32, %q: !llvm.ptr<1>) kernel attributes {$attributes} {
  %m = arith.cmpi slt, %o, %limit : i32
  %a = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> vector<8xbf16>
  %b = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> f16
  %c = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> vector<3xf32>
  %d = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> f8E4M3FN
  %e = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> vector<8xf32>
  "lw.buffer_store"(%a, %q, %n, %o, %m) : (vector<8xbf16>, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%b, %q, %n, %o, %m) : (f16, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%c, %q, %n, %o, %m) : (vector<3xf32>, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%e, %q, %n, %o, %m) : (vector<8xf32>, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%d, %q, %n, %o, %m) : (f8E4M3FN, !llvm.ptr<1>, i64, i32, i1) -> ()
  gpu.return
}
