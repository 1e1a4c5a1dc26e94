// A helper's call sites are told with the error.
// run: lower target=gfx942
// error: helper.rs:2:3
// error: called from kernel.rs:9:5
gpu.func @k() kernel attributes {$attributes} {
  "lw.cp_async_commit"() : () -> () loc(callsite("helper.rs":2:3 at "kernel.rs":9:5))
  gpu.return
}
