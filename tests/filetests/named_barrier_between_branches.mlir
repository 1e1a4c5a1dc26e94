// The arrival stays between the branches: copied into both sides of them, a warp that splits there would arrive twice.
// run: lower target=sm_90a
// check: bra
// check: mbarrier.arrive
// check: bar.arrive
// check: bra
// check: mbarrier.arrive
// run: lower target=gfx942
// error: CDNA has no mbarriers
gpu.func @k(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 16 : i64} {
  %base = "lw.shared"() {offset = 0 : i64, bytes = 16 : i64, align = 8 : i64, name = "mbarrier"} : () -> !llvm.ptr<3>
  %zero = arith.constant 0 : i32
  %first = arith.cmpi eq, %i, %zero : i32
  scf.if %first {
    "lw.mbarrier_arrive"(%base) : (!llvm.ptr<3>) -> ()
  }
  "lw.named_barrier"() {id = 4 : i64, threads = 128 : i64, kind = "arrive"} : () -> ()
  scf.if %first {
    "lw.mbarrier_arrive"(%base) : (!llvm.ptr<3>) -> ()
  }
  gpu.return
}
