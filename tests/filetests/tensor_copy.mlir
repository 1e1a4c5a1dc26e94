// A tensor map is 128 bytes of parameters; copies take its generic address.
// run: lower target=sm_90a
// check: .param .align 64 .b8 k_param_0[128]
// check: cvta.param.u64
// check: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r
// check: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%r
// check: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd
// check: cp.async.bulk.commit_group;
// check: cp.async.bulk.wait_group.read 0;
// check: cp.async.bulk.wait_group 1;
// run: lower target=sm_80
// error: `lw.tma_load` does not exist on sm_80
// run: lower target=gfx950
// error: CDNA has no tensor copies: use `place.store_vec(source.load_vec())`
gpu.func @k(%map: !llvm.ptr {lw.name = "map", lw.role = "tensor_map", lw.elem = "bf16", lw.rank = 2 : i64, lw.box = array<i64: 64, 8>, lw.swizzle = 128 : i64, lw.access = "write"},
            %x: i32 {lw.name = "x", lw.elem = "i32"}) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 1032 : i64} {
  %tile = "lw.shared"() {offset = 0 : i64, bytes = 1024 : i64, align = 1024 : i64, name = "tile"} : () -> !llvm.ptr<3>
  %full = "lw.shared"() {offset = 1024 : i64, bytes = 8 : i64, align = 8 : i64, name = "mbarrier full"} : () -> !llvm.ptr<3>
  "lw.tma_load"(%tile, %map, %full, %x, %x) {multicast = 0 : i64, hint = "none"} : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
  "lw.tma_load"(%tile, %map, %full, %x, %x) {multicast = 3 : i64, hint = "evict_first"} : (!llvm.ptr<3>, !llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
  "lw.tma_store"(%map, %tile, %x, %x) : (!llvm.ptr, !llvm.ptr<3>, i32, i32) -> ()
  "lw.tma_commit"() : () -> ()
  "lw.tma_wait"() {groups = 0 : i64, read = true} : () -> ()
  "lw.tma_wait"() {groups = 1 : i64, read = false} : () -> ()
  gpu.return
}
