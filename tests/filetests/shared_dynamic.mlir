// Above 48 KB NVIDIA kernels take dynamic shared memory; AMD's is static up to the chip's limit.
// run: lower target=nvidia
// check: .extern .shared .align 1024 .b8 lacewing_shared[]
// check: st.shared.b32
// run: lower target=amd
// check: .amdhsa_group_segment_fixed_size 65536
gpu.func @k(%x: f32, %t: i32, %p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 65536 : i64} {
  %a = "lw.shared"() {offset = 32768 : i64, bytes = 32768 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  "lw.store"(%x, %pa) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
  gpu.barrier
  %y = "lw.load"(%a) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
  "lw.store"(%y, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
