// A product is one tcgen05.mma for each 16 of k. Descriptors hold address / 16 and the leading offset below (1 for A,
// panels of 4096 bytes for B), and 0x40004040 above: 8 rows of 128 bytes, the constant 1, the swizzle of 128 bytes. A
// step of k is 32 bytes of A and 16 rows of B. The instruction descriptor says bf16 to f32, B not along k, 128 x 64.
// run: lower target=sm_100a
// check: , 65536;
// check: , 16777216;
// check: , 4611756662049472512;
// check: , 135333008;
// check: tcgen05.mma.cta_group::1.kind::f16.collector::a::discard [%r
// check: , 4611756662049538050;
// check: , 16777344;
// check: tcgen05.mma.cta_group::1.kind::f16.collector::a::discard [%r
// check: tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64
// run: lower target=sm_90a
// error: `lw.tcgen05_mma` does not exist on sm_90a
gpu.func @k(%t: i32, %more: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 20496 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 16384 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 16384 : i64, bytes = 4096 : i64, align = 1024 : i64, name = "b"} : () -> !llvm.ptr<3>
  %done = "lw.shared"() {offset = 20480 : i64, bytes = 8 : i64, align = 8 : i64, name = "mbarrier done"} : () -> !llvm.ptr<3>
  %one = "lw.elect"() : () -> i1
  scf.if %one {
    "lw.tcgen05_mma"(%a, %b, %t, %more) {m = 128 : i64, n = 64 : i64, k = 32 : i64, kind = "bf16", a_layout = "k:128:128", b_layout = "mn:128:32"} : (!llvm.ptr<3>, !llvm.ptr<3>, i32, i1) -> ()
    "lw.tcgen05_commit"(%done) : (!llvm.ptr<3>) -> ()
  }
  gpu.return
}
