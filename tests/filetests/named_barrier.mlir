// run: lower target=nvidia
// check: bar.sync 	3, 64
// check: bar.arrive 	4, 128
// run: lower target=gfx942
// error: CDNA has one barrier a block
gpu.func @k() kernel attributes {$attributes} {
  "lw.named_barrier"() {id = 3 : i64, threads = 64 : i64, kind = "sync"} : () -> ()
  "lw.named_barrier"() {id = 4 : i64, threads = 128 : i64, kind = "arrive"} : () -> ()
  gpu.return
}
