// What keeps an accumulator from being read before its wait. Handed on to later products alone, and multiplied, it does not go through
// the wait: the factor is held back, once for each block in which it is used. What the wait comes after is read by it.
// run: lower target=sm_90a emit=llvm
// check: asm sideeffect "{ .reg .pred add;
// check: asm sideeffect "wgmma.wait_group.sync.aligned 0;", "f,~{memory}"(float
// check: asm sideeffect "", "=f,0,~{memory}"(float
// check: fmul float
// check: fmul float
// check: asm sideeffect "wgmma.wait_group.sync.aligned 0;", "~{memory}"()
// check: asm sideeffect "", "=f,0,~{memory}"(float
// check: fmul float
// check: fmul float
// check: fmul float
// check: fmul float
// check-not: "wgmma.wait_group.sync.aligned 0;", "=f
// run: lower target=sm_90a
// check: wgmma.wait_group.sync.aligned 0;
// check: mul.rn.f32
// check: wgmma.wait_group.sync.aligned 0;
// check: mul.rn.f32
gpu.func @k(%p: !llvm.ptr<1>, %n: i32, %factor: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 9216 : i64} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %nothing = arith.constant 0.0 : f32
  %a = "lw.shared"() {offset = 0 : i64, bytes = 8192 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 8192 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "b"} : () -> !llvm.ptr<3>
  %r:4 = scf.for %i = %zero to %n step %one iter_args(%c0 = %nothing, %c1 = %nothing, %c2 = %nothing, %c3 = %nothing) -> (f32, f32, f32, f32) : i32 {
    %o:4 = "lw.wgmma"(%a, %b, %c0, %c1, %c2, %c3) {m = 64 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", zero = false, a_layout = "k:128:64", b_layout = "k:128:8", operandSegmentSizes = array<i32: 1, 1, 4>} : (!llvm.ptr<3>, !llvm.ptr<3>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
    %before = arith.addf %factor, %factor : f32
    %w:5 = "lw.wgmma_wait"(%o#0, %o#1, %o#2, %o#3, %before) {groups = 0 : i64} : (f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32)
    %grows = arith.cmpf ogt, %w#4, %factor : f32
    %s:4 = scf.if %grows -> (f32, f32, f32, f32) {
      %0 = arith.mulf %w#0, %w#4 : f32
      %1 = arith.mulf %w#4, %w#1 : f32
      %2 = arith.mulf %w#2, %w#4 : f32
      %3 = arith.mulf %w#3, %w#4 : f32
      scf.yield %0, %1, %2, %3 : f32, f32, f32, f32
    } else {
      scf.yield %w#0, %w#1, %w#2, %w#3 : f32, f32, f32, f32
    }
    scf.yield %s#0, %s#1, %s#2, %s#3 : f32, f32, f32, f32
  }
  %o:4 = "lw.wgmma"(%a, %b, %r#0, %r#1, %r#2, %r#3) {m = 64 : i64, n = 8 : i64, k = 16 : i64, kind = "bf16", zero = false, a_layout = "k:128:64", b_layout = "k:128:8", operandSegmentSizes = array<i32: 1, 1, 4>} : (!llvm.ptr<3>, !llvm.ptr<3>, f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %w:4 = "lw.wgmma_wait"(%o#0, %o#1, %o#2, %o#3) {groups = 0 : i64} : (f32, f32, f32, f32) -> (f32, f32, f32, f32)
  %0 = arith.mulf %w#0, %factor : f32
  %1 = arith.mulf %w#1, %factor : f32
  %2 = arith.mulf %w#2, %factor : f32
  %3 = arith.mulf %w#3, %factor : f32
  %v = vector.from_elements %0, %1, %2, %3 : vector<4xf32>
  "lw.store"(%v, %p) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  gpu.return
}
