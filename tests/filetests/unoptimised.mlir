// run: lower target=all opt=0
gpu.func @k(%p: !llvm.ptr<1>, %x: f32, %n: i32, %v: vector<8xbf16>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 512 : i64} {
  %id = gpu.thread_id x
  %t = arith.index_cast %id : index to i32
  %c = arith.cmpi slt, %t, %n : i32
  %y = math.exp %x : f32
  %s = "lw.shared"() {offset = 16 : i64, bytes = 496 : i64, align = 16 : i64, name = "s"} : () -> !llvm.ptr<3>
  "lw.store_masked"(%y, %s, %c) {align = 4 : i64} : (f32, !llvm.ptr<3>, i1) -> ()
  gpu.barrier
  %z = "lw.load"(%s) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
  %b = "lw.ballot"(%c) : (i1) -> i64
  "lw.store"(%b, %p) {align = 8 : i64} : (i64, !llvm.ptr<1>) -> ()
  "lw.store"(%v, %p) {align = 16 : i64} : (vector<8xbf16>, !llvm.ptr<1>) -> ()
  %w = "lw.to_fp8"(%z) : (f32) -> f8E4M3FN
  "lw.store"(%w, %p) {align = 1 : i64} : (f8E4M3FN, !llvm.ptr<1>) -> ()
  gpu.return
}
