// run: lower target=nvidia
// check: atom.shared
// run: lower target=amd
// check: ds_add_u32
// check: ds_add_f32
gpu.func @k(%x: f32, %i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 64 : i64} {
  %a = "lw.shared"() {offset = 0 : i64, bytes = 64 : i64, align = 16 : i64, name = "a"} : () -> !llvm.ptr<3>
  %0 = "lw.atomic_rmw"(%a, %i) {kind = "add", ordering = "relaxed", scope = "block"} : (!llvm.ptr<3>, i32) -> i32
  %1 = "lw.atomic_rmw"(%a, %x) {kind = "fadd", ordering = "relaxed", scope = "block"} : (!llvm.ptr<3>, f32) -> f32
  %2 = "lw.atomic_rmw"(%a, %x) {kind = "fmin", ordering = "relaxed", scope = "block"} : (!llvm.ptr<3>, f32) -> f32
  gpu.return
}
