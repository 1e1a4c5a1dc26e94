// run: lower target=sm_90a
// check: .reqnctapercluster 2
// run: lower target=sm_80
// error: clusters exist from sm_90a on
// run: lower target=gfx950
// error: `cluster` does not exist on gfx950
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {known_block_size = array<i32: 64, 2, 1>, lw.target = "$target", lw.shared_bytes = 0 : i64, lw.cluster = array<i32: 2, 1, 1>} {
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
