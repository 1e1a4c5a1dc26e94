// Another block's shared memory: address space 7. Where a kernel reaches it, mbarriers order for the whole cluster.
// run: lower target=sm_90a
// check: mapa.shared::cluster.u64
// check: ld.shared::cluster.b32
// check: ld.shared::cluster.v4.b32
// check: st.shared::cluster.b32
// check: st.shared::cluster.v2.b32
// check: atom.shared::cluster.add.u32
// check: fence.acq_rel.cluster;
// check: atom.shared::cluster.add.f32
// check: fence.acq_rel.cluster;
// check: .cluster.shared::cluster.cas.b32
// check: mbarrier.arrive.release.cluster.shared::cluster.b64 _, [peer];
// check: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%r
// check: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r
// check: st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r
// check: cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r
// check: ], 512, [%r
// run: lower target=sm_100a
// check: mapa.shared::cluster.u64
// run: lower target=sm_80
// error: `lw.mapa` does not exist on sm_80
// error: it needs generation 90 or later
// run: lower target=amd
// error: CDNA has no clusters
gpu.func @k(%p: !llvm.ptr<1>, %rank: i32, %i: i32, %x: f32) kernel attributes {known_block_size = array<i32: 64, 1, 1>, lw.target = "$target", lw.shared_bytes = 1032 : i64, lw.cluster = array<i32: 4, 1, 1>} {
  %tile = "lw.shared"() {offset = 0 : i64, bytes = 1024 : i64, align = 16 : i64, name = "tile"} : () -> !llvm.ptr<3>
  %bar = "lw.shared"() {offset = 1024 : i64, bytes = 8 : i64, align = 8 : i64, name = "mbarrier full"} : () -> !llvm.ptr<3>
  %peer = "lw.mapa"(%tile, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  %at = llvm.getelementptr %peer[%i] : (!llvm.ptr<7>, i32) -> !llvm.ptr<7>, i32
  %word = "lw.load"(%at) {align = 4 : i64} : (!llvm.ptr<7>) -> i32
  %four = "lw.load"(%peer) {align = 16 : i64} : (!llvm.ptr<7>) -> vector<4xf32>
  "lw.store"(%word, %peer) {align = 4 : i64} : (i32, !llvm.ptr<7>) -> ()
  %pair = vector.broadcast %x : f32 to vector<2xf32>
  "lw.store"(%pair, %at) {align = 8 : i64} : (vector<2xf32>, !llvm.ptr<7>) -> ()
  %old = "lw.atomic_rmw"(%at, %i) {kind = "add", ordering = "relaxed", scope = "cluster"} : (!llvm.ptr<7>, i32) -> i32
  %was = "lw.atomic_rmw"(%at, %x) {kind = "fadd", ordering = "acq_rel", scope = "cluster"} : (!llvm.ptr<7>, f32) -> f32
  %cas = "lw.atomic_cas"(%at, %i, %old) {ordering = "relaxed", scope = "cluster"} : (!llvm.ptr<7>, i32, i32) -> i32
  "lw.mbarrier_arrive_peer"(%bar, %rank) : (!llvm.ptr<3>, i32) -> ()
  "lw.mbarrier_wait"(%bar, %i) : (!llvm.ptr<3>, i32) -> ()
  %there = "lw.mapa"(%bar, %rank) : (!llvm.ptr<3>, i32) -> !llvm.ptr<7>
  "lw.st_async"(%i, %at, %there) : (i32, !llvm.ptr<7>, !llvm.ptr<7>) -> ()
  "lw.st_async"(%four, %peer, %there) : (vector<4xf32>, !llvm.ptr<7>, !llvm.ptr<7>) -> ()
  "lw.bulk_copy"(%peer, %tile, %there) {bytes = 512 : i64} : (!llvm.ptr<7>, !llvm.ptr<3>, !llvm.ptr<7>) -> ()
  "lw.store"(%four, %p) {align = 16 : i64} : (vector<4xf32>, !llvm.ptr<1>) -> ()
  %q = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  "lw.store"(%cas, %q) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
