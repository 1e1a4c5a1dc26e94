// run: lower target=nvidia
// check: __assertfail
// run: lower target=sm_80 emit=llvm
// check: i is ? of 100 %, above ?
// check: helper.rs
// run: lower target=amd
// check: s_trap 2
gpu.func @k(%p: !llvm.ptr<1>, %i: i32) kernel attributes {$attributes} {
  %z = arith.constant 0 : i32
  %c = arith.cmpi sgt, %i, %z : i32
  "lw.assert"(%c) {message = "i is positive"} : (i1) -> () loc(callsite("helper.rs":4:5 at "kernel.rs":1:1))
  "lw.assert"(%c, %i, %z) {message = "i is %d of 100 %%, above %d"} : (i1, i32, i32) -> ()
  "lw.store"(%i, %p) {align = 4 : i64} : (i32, !llvm.ptr<1>) -> ()
  gpu.return
}
