// run: lower target=nvidia
// check: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// check: ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
// check: ldmatrix.sync.aligned.m8n8.x1.shared.b16
// check: ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16
// check: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// check: ldmatrix.sync.aligned.m8n8.x2.shared.b16
// run: lower target=gfx950
// error: `lw.ldmatrix` does not exist on gfx950
gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 4096 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 4096 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %0:4 = "lw.ldmatrix"(%a) {trans = false} : (!llvm.ptr<3>) -> (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>)
  %1:2 = "lw.ldmatrix"(%a) {trans = true} : (!llvm.ptr<3>) -> (vector<2xbf16>, vector<2xbf16>)
  %2 = "lw.ldmatrix"(%a) {trans = false} : (!llvm.ptr<3>) -> vector<2xf16>
  %3 = "lw.ldmatrix"(%a) {trans = true} : (!llvm.ptr<3>) -> vector<2xf16>
  %4:4 = "lw.ldmatrix"(%a) {trans = true} : (!llvm.ptr<3>) -> (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>)
  %5:2 = "lw.ldmatrix"(%a) {trans = false} : (!llvm.ptr<3>) -> (vector<2xf16>, vector<2xf16>)
  %off5 = arith.constant 512 : i64
  %p5 = llvm.getelementptr %p[%off5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%3, %p5) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  %off6 = arith.constant 516 : i64
  %p6 = llvm.getelementptr %p[%off6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%4#1, %p6) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  %off7 = arith.constant 520 : i64
  %p7 = llvm.getelementptr %p[%off7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%5#1, %p7) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  "lw.store"(%0#3, %p) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  %off1 = arith.constant 64 : i64
  %p1 = llvm.getelementptr %p[%off1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%1#1, %p1) {align = 4 : i64} : (vector<2xbf16>, !llvm.ptr<1>) -> ()
  %off2 = arith.constant 128 : i64
  %p2 = llvm.getelementptr %p[%off2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
  "lw.store"(%2, %p2) {align = 4 : i64} : (vector<2xf16>, !llvm.ptr<1>) -> ()
  gpu.return
}
