// run: lower target=nvidia
// check: fence.acq_rel.cta
// check: fence.acq_rel.gpu
// check: fence.acq_rel.sys
// run: lower target=amd
// check: buffer_wbl2 sc1
// check: buffer_wbl2 sc0 sc1
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {$attributes} {
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  "lw.fence"() {scope = "block"} : () -> ()
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  "lw.fence"() {scope = "device"} : () -> ()
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  "lw.fence"() {scope = "system"} : () -> ()
  gpu.return
}
