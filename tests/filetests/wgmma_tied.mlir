// Accumulators go through the wait where more than a factor would have to be held back: read as they are, in a product whose sign may go
// to them or whose order is free, and in squares.
// run: lower target=sm_90a emit=llvm
// check: asm sideeffect "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,0,1,2,3,~{memory}"(float
// check-not: asm sideeffect "", "=f,0
gpu.func @k(%p: !llvm.ptr<1>, %factor: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 9216 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 8192 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 8192 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "b"} : () -> !llvm.ptr<3>
  %o:4 = "lw.wgmma"(%a, %b) {m = 64 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", zero = true, a_layout = "k:128:64", b_layout = "k:128:8", operandSegmentSizes = array<i32: 1, 1, 0>} : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32)
  %w:4 = "lw.wgmma_wait"(%o#0, %o#1, %o#2, %o#3) {groups = 0 : i64} : (f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %product = arith.mulf %w#1, %factor : f32
  %1 = arith.negf %product : f32
  %2 = arith.mulf %w#2, %factor fastmath<reassoc> : f32
  %3 = arith.mulf %w#3, %w#3 : f32
  %v = vector.from_elements %w#0, %1, %2, %3 : vector<4xf32>
  "lw.store"(%v, %p) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
