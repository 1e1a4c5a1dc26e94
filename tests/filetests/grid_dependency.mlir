// run: lower target=sm_90a
// check: griddepcontrol.launch_dependents
// check: griddepcontrol.wait
// check: st.global
// run: lower target=sm_80
// check-not: griddepcontrol
// run: lower target=amd
// check: s_endpgm
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {$attributes} {
  "lw.grid_dependency"() {kind = "release"} : () -> ()
  "lw.grid_dependency"() {kind = "wait"} : () -> ()
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
