// run: lower target=sm_90a
// error: there is no proxy fence `tensor`
gpu.func @k() kernel attributes {$attributes} {
  "lw.fence_proxy"() {kind = "tensor"} : () -> ()
  gpu.return
}
