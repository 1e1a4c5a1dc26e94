// run: lower target=sm_90a
// check: .reqnctapercluster 2
// check: %cluster_ctarank
// check: barrier.cluster.arrive.release.aligned;barrier.cluster.wait.acquire.aligned;
// check: barrier.cluster.arrive.release.aligned;
// check: barrier.cluster.wait.acquire.aligned;
// run: lower target=amd
// error: CDNA has no clusters
gpu.func @k(%p: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 64, 1, 1>, lw.target = "$target", lw.shared_bytes = 0 : i64, lw.cluster = array<i32: 2, 1, 1>} {
  %rank = "lw.cluster_rank"() : () -> i32
  "lw.cluster_sync"() {kind = "sync"} : () -> ()
  "lw.store"(%rank, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  "lw.cluster_sync"() {kind = "arrive"} : () -> ()
  "lw.cluster_sync"() {kind = "wait"} : () -> ()
  gpu.return
}
