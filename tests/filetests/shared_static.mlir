// One global; members at their offsets; a barrier between.
// run: lower target=nvidia
// check: .shared .align 1024 .b8 lacewing_shared[1024]
// check: st.shared.b32
// check: bar.sync
// check: ld.shared.b32
// run: lower target=amd
// check: ds_write_b32
// check: s_barrier
// check: ds_read_b32
// check: .amdhsa_group_segment_fixed_size 1024
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 1024 : i64} {
  %id = gpu.thread_id x
  %t = arith.index_cast %id : index to i32
  %c127 = arith.constant 127 : i32
  %r = arith.subi %c127, %t : i32
  %a = "lw.shared"() {offset = 0 : i64, bytes = 512 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %b = "lw.shared"() {offset = 512 : i64, bytes = 512 : i64, align = 16 : i64, name = "b"} : () -> !llvm.ptr<3>
  %pa = llvm.getelementptr %a[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %pb = llvm.getelementptr %b[%r] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  "lw.store"(%x, %pa) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
  "lw.store"(%x, %pb) {align = 4 : i64} : (f32, !llvm.ptr<3>) -> ()
  gpu.barrier
  %qa = llvm.getelementptr %a[%r] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  %y = "lw.load"(%qa) {align = 4 : i64} : (!llvm.ptr<3>) -> f32
  "lw.store"(%y, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
