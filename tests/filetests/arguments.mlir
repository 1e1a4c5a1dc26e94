// Every scalar type as an argument.
// run: lower target=all
gpu.func @k(%p: !llvm.ptr<1> {lw.name = "p", lw.elem = "f32", lw.access = "write", lw.rank = 1 : i64}, %n: i32 {lw.role = "extent"}, %s: i64 {lw.role = "stride"}, %b: i8, %h: f16, %bf: bf16, %e: f8E5M2, %d: f64, %w: i16) kernel attributes {$attributes} {
  %z = arith.constant 0 : i8
  %c = arith.cmpi ne, %b, %z : i8
  %w32 = arith.extsi %w : i16 to i32
  %x = arith.select %c, %n, %w32 : i32
  "lw.store"(%x, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  "lw.store"(%s, %p) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  "lw.store"(%e, %p) {align = 1 : i64} : (f8E5M2, !llvm.ptr<1>) -> ()
  "lw.store"(%d, %p) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  "lw.store"(%h, %p) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  "lw.store"(%bf, %p) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  gpu.return
}
