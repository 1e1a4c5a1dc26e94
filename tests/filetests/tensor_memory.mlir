// Tensor memory is allocated by address through shared memory, reached by rows of a warp, and given back.
// run: lower target=sm_100a
// check: tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32
// check: tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
// check: tcgen05.fence::before_thread_sync;
// check: tcgen05.fence::after_thread_sync;
// check: tcgen05.st.sync.aligned.32x32b.x4.b32 [%r
// check: tcgen05.st.sync.aligned.32x32b.x1.b32 [%r
// check: tcgen05.wait::st.sync.aligned;
// check: tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r
// check: tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r
// check: tcgen05.wait::ld.sync.aligned;
// check: begin inline asm
// check: st.global
// check: tcgen05.dealloc.cta_group::1.sync.aligned.b32
// run: lower target=sm_90a
// error: `lw.tcgen05_alloc` does not exist on sm_90a
// error: tensor memory exists on sm_100a alone: multiply by `wgmma` on sm_90a
// run: lower target=gfx950
// error: CDNA has no tensor memory
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 16 : i64} {
  %slot = "lw.shared"() {offset = 0 : i64, bytes = 4 : i64, align = 4 : i64, name = "slot"} : () -> !llvm.ptr<3>
  "lw.tcgen05_alloc"(%slot) {columns = 64 : i64} : (!llvm.ptr<3>) -> ()
  "lw.tcgen05_relinquish_alloc_permit"() : () -> ()
  "lw.tcgen05_fence"() {kind = "before_thread_sync"} : () -> ()
  gpu.barrier
  "lw.tcgen05_fence"() {kind = "after_thread_sync"} : () -> ()
  %t = "lw.load"(%slot) {align = 4 : i64} : (!llvm.ptr<3>) -> i32
  "lw.tcgen05_st"(%t, %x, %x, %x, %x) : (i32, f32, f32, f32, f32) -> ()
  "lw.tcgen05_st"(%t, %x) : (i32, f32) -> ()
  "lw.tcgen05_wait"() {kind = "st"} : () -> ()
  %v:4 = "lw.tcgen05_ld"(%t) {rows = 32 : i64} : (i32) -> (f32, f32, f32, f32)
  %w = "lw.tcgen05_ld"(%t) {rows = 16 : i64} : (i32) -> f32
  %y:5 = "lw.tcgen05_wait"(%v#0, %v#1, %v#2, %v#3, %w) {kind = "ld"} : (f32, f32, f32, f32, f32) -> (f32, f32, f32, f32, f32)
  %s = arith.addf %y#3, %y#4 : f32
  "lw.store"(%s, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  "lw.tcgen05_dealloc"(%t) {columns = 64 : i64} : (i32) -> ()
  gpu.return
}
