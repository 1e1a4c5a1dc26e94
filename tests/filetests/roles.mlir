// Registers of a warpgroup, values that a warp has alike, and barriers chosen at run time.
// run: lower target=sm_90a
// check: shfl.sync.idx.b32
// check: setmaxnreg.inc.sync.aligned.u32 168;
// check: bar.sync 	%r
// check: setmaxnreg.dec.sync.aligned.u32 40;
// check: elect.sync
// run: lower target=sm_80
// error: `lw.setmaxnreg` does not exist on sm_80
// run: lower target=gfx942
// error: use `waves_per_eu`
gpu.func @k(%p: !llvm.ptr<1>, %x: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 0 : i64, lw.min_blocks = 4 : i32} {
  %u = "lw.uniform"(%x) : (i32) -> i32
  "lw.setmaxnreg"() {regs = 168 : i64, kind = "inc"} : () -> ()
  "lw.named_barrier"(%u) {id = 1 : i64, threads = 128 : i64, kind = "sync"} : (i32) -> ()
  "lw.setmaxnreg"() {regs = 40 : i64, kind = "dec"} : () -> ()
  %e = "lw.elect"() : () -> i1
  "lw.store_masked"(%u, %p, %e) {align = 4 : i64} : (i32, !llvm.ptr<1>, i1) -> ()
  gpu.return
}
