// Arrivals and waits take 32-bit addresses in shared memory.
// run: lower target=sm_90a
// check: mbarrier.init.shared::cta.b64 [%r
// check: ], 3;
// check: fence.mbarrier_init.release.cluster;
// check: mbarrier.arrive.shared::cta.b64 _, [%r
// check: mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r
// check: ], 512;
// check: mapa.shared::cluster.u32 peer, %r
// check: mbarrier.arrive.shared::cluster.b64 _, [peer];
// check: mbarrier.try_wait.parity.shared::cta.b64 done, [%r
// check: fence.proxy.async.shared::cta;
// check: fence.proxy.async;
// run: lower target=sm_100a
// check: mbarrier.try_wait.parity.shared::cta.b64 done, [%r
// run: lower target=sm_80
// error: `lw.mbarrier_init` does not exist on sm_80
// error: it needs generation 90 or later
// run: lower target=gfx942
// error: CDNA has no mbarriers: use `barrier()`
gpu.func @k(%i: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, lw.target = "$target", lw.shared_bytes = 32 : i64} {
  %all = "lw.shared"() {offset = 0 : i64, bytes = 32 : i64, align = 8 : i64, name = "mbarrier full"} : () -> !llvm.ptr<3>
  %one = llvm.getelementptr %all[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  "lw.mbarrier_init"(%all) {count = 3 : i64} : (!llvm.ptr<3>) -> ()
  "lw.fence_proxy"() {kind = "mbarrier_init"} : () -> ()
  "lw.mbarrier_arrive"(%one) : (!llvm.ptr<3>) -> ()
  "lw.mbarrier_expect_tx"(%one) {bytes = 512 : i64} : (!llvm.ptr<3>) -> ()
  "lw.mbarrier_arrive_peer"(%one, %i) : (!llvm.ptr<3>, i32) -> ()
  "lw.mbarrier_wait"(%one, %i) : (!llvm.ptr<3>, i32) -> ()
  "lw.fence_proxy"() {kind = "async_shared"} : () -> ()
  "lw.fence_proxy"() {kind = "async"} : () -> ()
  gpu.return
}
