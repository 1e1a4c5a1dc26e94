// Executables of both vendors are ELF images.
// run: lower target=nvidia emit=cubin
// check: ELF
// run: lower target=amd emit=hsaco
// check: ELF
// run: lower target=gfx942 emit=ptx
// error: ptx cannot be emitted for gfx942
// run: lower target=sm_80 emit=hsaco
// error: emit ptx or cubin
gpu.func @k(%p: !llvm.ptr<1>, %x: f32) kernel attributes {$attributes} {
  "lw.store"(%x, %p) {align = 4 : i64} : (f32, !llvm.ptr<1>) -> ()
  gpu.return
}
