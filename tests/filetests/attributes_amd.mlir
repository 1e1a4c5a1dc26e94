// run: lower target=amd
// check: .max_flat_workgroup_size: 128
// run: lower target=gfx942 emit=llvm
// check: "amdgpu-flat-work-group-size"="128,128"
// check: "amdgpu-waves-per-eu"="4"
// run: lower target=sm_90a
// error: `waves_per_eu` does not exist on sm_90a
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {known_block_size = array<i32: 64, 2, 1>, lw.target = "$target", lw.shared_bytes = 0 : i64, lw.waves_per_eu = 4 : i32} {
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
