// run: lower target=sm_100a
// error: there is no tcgen05.mma of 128 x 24 x 16 for f16
// error: 128 rows and a multiple of 16 columns, or 64 rows and a multiple of 8
gpu.func @k(%t: i32, %more: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 4096 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 4096 : i64, align = 1024 : i64, name = "a"} : () -> !llvm.ptr<3>
  "lw.tcgen05_mma"(%a, %a, %t, %more) {m = 128 : i64, n = 24 : i64, k = 16 : i64, kind = "f16", a_layout = "k:32:128", b_layout = "k:32:24"} : (!llvm.ptr<3>, !llvm.ptr<3>, i32, i1) -> ()
  gpu.return
}
