// run: lower target=nvidia
// check: .reqntid 64, 2, 1
// check: .minnctapersm 2
// check: .maxnreg 96
// run: lower target=amd
// error: `min_blocks` does not exist on gfx9
// error: use `waves_per_eu`
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {known_block_size = array<i32: 64, 2, 1>, lw.target = "$target", lw.shared_bytes = 0 : i64, lw.min_blocks = 2 : i32, lw.max_regs = 96 : i32} {
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
