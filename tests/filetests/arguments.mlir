// Every scalar type as an argument.
// run: lower target=all
gpu.func @k(%p: !llvm.ptr<1> {lw.name = "p", lw.elem = "f32", lw.access = "write", lw.rank = 1 : i64}, %n: i32 {lw.role = "extent"}, %s: i64 {lw.role = "stride"}, %b: i8, %h: f16, %bf: bf16, %e: f8E5M2, %d: f64, %w: i16) kernel attributes {$attributes} {
  %z = arith.constant 0 : i8
  %c = arith.cmpi ne, %b, %z : i8
  %w32 = arith.extsi %w : i16 to i32
  %x = arith.select %c, %n, %w32 : i32
  "lw.store"(%x, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%s, %p1) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%e, %p2) {align = 1 : i64} : (f8E5M2, !llvm.ptr<1>) -> ()
  %off3 = arith.constant 192 : i64
  %p3 = llvm.getelementptr %p[%off3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%d, %p3) {align = 8 : i64} : (f64, !llvm.ptr<1>) -> ()
  %off4 = arith.constant 256 : i64
  %p4 = llvm.getelementptr %p[%off4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%h, %p4) {align = 2 : i64} : (f16, !llvm.ptr<1>) -> ()
  %off5 = arith.constant 320 : i64
  %p5 = llvm.getelementptr %p[%off5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%bf, %p5) {align = 2 : i64} : (bf16, !llvm.ptr<1>) -> ()
  gpu.return
}
