// A launch borrows mutable tensors exclusively: loads of the others take the read-only path.
// run: lower target=nvidia
// check: ld.global.nc.b32
// run: lower target=sm_80 emit=llvm
// check: noalias readonly
gpu.func @k(%x: !llvm.ptr<1> {lw.name = "x", lw.elem = "f32", lw.access = "read", lw.rank = 1 : i64}, %x0: i32, %xs: i64, %y: !llvm.ptr<1> {lw.name = "y", lw.elem = "f32", lw.access = "write", lw.rank = 1 : i64}, %y0: i32, %ys: i64) kernel attributes {$attributes} {
  %a = "lw.load"(%x) {align = 4 : i64} : (!llvm.ptr<1>) -> f32
  "lw.store"(%a, %y) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
