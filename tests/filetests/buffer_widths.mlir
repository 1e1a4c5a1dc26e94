// run: lower target=amd
// check: buffer_load_ubyte
// check: buffer_load_ushort
// check: buffer_load_dword v
// check: buffer_load_dwordx2
// check: buffer_load_dwordx4
// check: buffer_store_byte
// check: buffer_store_short
// check: buffer_store_dword v
// check: buffer_store_dwordx2
// check: buffer_store_dwordx4
// run: lower target=nvidia
// check: ld.global.v
// check: st.global.v
gpu.func @k(%p: !llvm.ptr<1>, %n: i64, %o: i32, %m: i1, %q: !llvm.ptr<1>) kernel attributes {$attributes} {
  %v0 = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> i8
  %v1 = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> f16
  %v2 = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> f32
  %v3 = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> vector<2xf32>
  %v4 = "lw.buffer_load"(%p, %n, %o, %m) : (!llvm.ptr<1>, i64, i32, i1) -> vector<4xf32>
  "lw.buffer_store"(%v0, %q, %n, %o, %m) : (i8, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%v1, %q, %n, %o, %m) : (f16, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%v2, %q, %n, %o, %m) : (f32, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%v3, %q, %n, %o, %m) : (vector<2xf32>, !llvm.ptr<1>, i64, i32, i1) -> ()
  "lw.buffer_store"(%v4, %q, %n, %o, %m) : (vector<4xf32>, !llvm.ptr<1>, i64, i32, i1) -> ()
  gpu.return
}
