// run: lower target=sm_90a
// error: there is no warpgroup product of 64 x 12 x 16 for f16
gpu.func @k() kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 3072 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 3072 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  %s:6 = "lw.wgmma"(%a, %a) {m = 64 : i64, n = 12 : i64, k = 16 : i64, kind = "f16", zero = true, a_layout = "k:32:64", b_layout = "k:32:16", operandSegmentSizes = array<i32: 1, 1, 0>} : (!llvm.ptr<3>, !llvm.ptr<3>) -> (f32, f32, f32, f32, f32, f32)
  gpu.return
}
